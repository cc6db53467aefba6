/* What JAX says of dims that axes do not divide. Refuses to look at layouts: who calls knows which
 * axes cut the dim. */
#include "assign/compiled.h"
#include "assign/suggest.h"

void compiled_unevenly(const Assign *a, Loc at, const CompiledCut *c) {
    diag_error(a->d, "E0409", at, NULL,
               "%s: %s is no multiple of %s (%lld), and a NamedSharding cuts evenly", c->name,
               c->dim, c->axes, (long long)c->n);
}
bool compiled_heads(const Assign *a, Loc at, const GTensor *t, int dim, const AxisList *by) {
    const ModelDims *m = &a->model->dims;
    const char *axes = mesh_axes_text(a->mesh, a->arena, by, true);
    int64_t n = mesh_size(a->mesh, by), size = 1;
    if (a->plan->trust != TRUST_COMPILER) return false;
    const int first = graph_stored_first(t, dim);
    for (int letter = first; letter < first + t->stored[dim]; letter++) {
        /* heads are shrunk as if no axis cut them */
        bool shrunk = t->role[letter] == DIM_HEAD_SIZE && t->size[letter] == m->d;
        size *= shrunk ? m->full_d : t->size[letter];
    }
    const char *sym = arena_printf(a->arena, "%lld", (long long)size);
    if (size % n) compiled_unevenly(a, at, &(CompiledCut){graph_name(t), sym, axes, n});
    else
        diag_error(
            a->d, "E0214", at,
            arena_printf(a->arena,
                         "jax.jit runs this where the spec is of the whole dim, XLA moves what a "
                         "head lacks (with heads apart jax raises); here choose one of %s "
                         "ranks for it",
                         suggest_head_ranks(a->arena, m->H, m->K)),
            "%s over %s (%lld) cuts within heads: not supported by this version", graph_name(t),
            axes, (long long)n);
    return true;
}
