/* Any bytes as a file of names and shapes, with tables of both kinds laid over it. */
#include "fuzz.h"
#include "import/named.h"
#include <assert.h>

void fuzz_names(const uint8_t *p, size_t n) {
    if (n > 1 << 14) return;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const NamedPlan *plan = import_named(a, d, fuzz_file(p, n), (NamedTables){.tp = 3, .ep = 2});
    assert(plan || diags_errors(d));
    for (int i = 0; plan && i < plan->n_params; i++) {
        const NamedParam *x = &plan->param[i];
        assert(x->nd >= 0 && x->nd <= NAMED_DIMS && x->ranks >= 1);
        for (int r = 0; x->local && r < x->ranks; r++)
            for (int k = 0; k < x->nd; k++) assert(x->local[r][k] >= 0);
    }
    arena_free(a);
}
