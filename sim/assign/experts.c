/* What `moe:` says of the layouts of experts' weights [E, .., ..]: which axes cut e, which cut each
 * expert inside, and which dim FSDP cuts at rest. Refuses to lay anything out. */
#include "assign/experts.h"
#include <string.h>

static bool is_expert(const Assign *a, const GTensor *t) {
    return t->kind == KIND_PARAM && t->module >= 0 &&
           !strcmp(a->model->g.module[t->module].kind, "experts");
}

/* ---- axes ---- */
static uint32_t cutting(const Layout *l, int letter) {
    AxisList axes = layout_dim_axes(l, letter);
    return mesh_axes_set(&axes);
}
/* The axes of a group that are more than one rank; 0: nothing has that name. */
static uint32_t group_axes(const Assign *a, const char *name) {
    AxisList l;
    uint32_t set = 0;
    if (!mesh_lookup(a->mesh, name, &l)) return 0;
    for (int i = 0; i < l.n; i++)
        if (a->mesh->axis[l.a[i]].size > 1) set |= 1u << l.a[i];
    return set;
}
/* What cuts one letter against what the plan declares of it; false and E0215. */
static bool holds(const Assign *a, int t, char letter, const char *key, const char *group,
                  Loc loc) {
    const GTensor *x = &a->model->g.t[t];
    const char *at = memchr(x->letter, letter, (size_t)x->nd);
    if (!loc.file || !at) return true;
    uint32_t want = group_axes(a, group), have = cutting(&a->compute[t], (int)(at - x->letter));
    for (int k = 0; k < a->mesh->naxes; k++)
        if (a->mesh->axis[k].size == 1) have &= ~(1u << k);
    if (want == have) return true;
    AxisList is = mesh_set_axes(a->mesh, have), due = mesh_set_axes(a->mesh, want);
    const char *pattern = a->line[t] >= 0 ? a->plan->lines[a->line[t]].pattern : NULL;
    diag_error(a->d, "E0215", loc,
               pattern ? arena_printf(a->arena, "leave `%s` out, or the line '%s'", key, pattern)
                       : "leave the line for the experts out",
               "`moe: {%s: %s}`, and %s is cut there over %s", key,
               mesh_axes_text(a->mesh, a->arena, &due, true), graph_name(x),
               have ? mesh_axes_text(a->mesh, a->arena, &is, true) : "nothing");
    return false;
}
/* ---- at rest ---- */
/* Does FSDP cut dim 1? torchtitan does where more ranks than there are experts would cut dim 0. */
static bool cuts_second(const Assign *a, int t) {
    const GTensor *x = &a->model->g.t[t];
    const char *dim = a->plan->moe.fsdp_dim;
    if (strcmp(dim, "auto") != 0) return !strcmp(dim, "1");
    int64_t ranks = 1;
    for (int k = 0; k < a->mesh->naxes; k++) {
        bool sharded = false, ep = layout_where(&a->compute[t], k) == 0;
        for (int i = 0; i < a->shard.n; i++)
            sharded |= a->shard.a[i] == k && layout_where(&a->compute[t], k) < 0;
        if (sharded || ep) ranks *= a->mesh->axis[k].size;
    }
    return ranks > x->size[0];
}
int experts_rest_dim(const Assign *a, int t) {
    const GTensor *x = &a->model->g.t[t];
    return a->shard.n && is_expert(a, x) && x->nstored > 1 && cuts_second(a, t);
}

/* Systems that have as many experts on each rank, and what they do where that cannot be. */
static const char *const refuses[NAMES_COUNT] = {
    [NAMES_TORCHTITAN] = "torchtitan exchanges equal parts of the experts' counts, and raises",
    [NAMES_HF] = "transformers raises as it loads them",
    [NAMES_MEGATRON] = "Megatron core raises as it reads its options"};
static void uneven_experts(const Assign *a) {
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        if (!is_expert(a, x) || !refuses[a->plan->names]) continue;
        AxisList by = layout_dim_axes(&a->compute[t], 0);
        int64_t n = by.n ? mesh_size(a->mesh, &by) : 1;
        if (x->letter[0] != 'e' || x->size[0] % n == 0) continue;
        int m = x->module;
        while (m >= 0 && !a->use[m].style) m = a->model->g.module[m].parent;
        diag_note(a->d, "N0006", m >= 0 ? a->use[m].loc : a->plan->moe.axis_loc,
                  "a number of ranks that divides the experts",
                  "%lld experts over %s of %lld: here the last ranks have fewer, %s",
                  (long long)x->size[0], mesh_axes_text(a->mesh, a->arena, &by, false),
                  (long long)n, refuses[a->plan->names]);
        return; /* the other weights, and layers, would only say it again */
    }
}
void experts_check(const Assign *a) {
    uneven_experts(a);
    const Plan *p = a->plan;
    for (int t = 0; t < a->model->g.nt; t++) {
        if (!is_expert(a, &a->model->g.t[t]) || a->claimed[t]) continue;
        if (!holds(a, t, 'e', "axis", "ep", p->moe.axis_loc) ||
            !holds(a, t, 'w', "etp", "etp", p->moe.etp_loc))
            return; /* the other weights would only say it again */
    }
}
