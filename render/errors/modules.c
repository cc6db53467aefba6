#include "render/errors/modules.h"
#include "base/text.h"
#include <string.h>

/* "layers.0.attention" of "layers.0.attention.wq" and of itself; "loss" of "loss"; NULL of
 * "layers.0": what a layer does itself stands between its parts. */
static const char *part_of(Arena *a, const char *module) {
    size_t n = 0;
    int components = 0;
    while (module[n] && (module[n] != '.' || ++components < 3)) n++;
    if (!strncmp(module, "layers.", 7) && components < 2) return NULL;
    return arena_strndup(a, module, n);
}
/* Per step, up to `steps`, the module that makes it. */
static const char **made_by(Arena *a, const Trace *t, int steps) {
    const char **module = ARENA_ARRAY(a, const char *, steps + 1);
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].step >= 0 && t->computes[i].step <= steps)
            module[t->computes[i].step] = t->computes[i].module;
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step >= 0 && t->collectives[i].step <= steps)
            module[t->collectives[i].step] = t->collectives[i].module;
    return module;
}
const char **errors_modules(Arena *a, const ErrMap *m) {
    const char **of = ARENA_ARRAY(a, const char *, m->n + 1);
    int steps = 0;
    for (int i = 0; i < m->n; i++)
        if (m->row[i].step > steps) steps = m->row[i].step;
    const char **made = made_by(a, m->t, steps);
    for (int i = 0; i < m->n; i++) {
        const ErrRow *r = &m->row[i], *before = i ? r - 1 : NULL;
        const char *module = r->step >= 0 ? made[r->step] : NULL;
        bool grad = !strncmp(r->name, "grad.", 5);
        if (module) module = part_of(a, module);
        if (module) of[i] = grad ? arena_printf(a, "grad.%s", module) : module;
        else if (before && !strcmp(before->name, r->name)) of[i] = of[i - 1]; /* passed on */
    }
    return of;
}
int errors_longest(const ErrMap *m, const char *const *module,
                   bool (*alike)(const ErrRow *a, const ErrRow *b), int *length) {
    int best = -1;
    *length = 2;
    for (int i = 0, k; i < m->n; i = k) {
        k = i + 1;
        while (k < m->n && module[i] && text_same(module[k], module[i]) &&
               alike(&m->row[i], &m->row[k]))
            k++;
        if (k - i > *length) best = i, *length = k - i;
    }
    return best;
}
