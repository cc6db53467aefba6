/* Which axes cut the sequence, the heads inside attention, or carry a ring. It reads the plan and
 * the model's sizes, and refuses to know how attention is lowered (lower/context.c). */
#include "assign/context.h"
#include <string.h>

bool context_axes(const Mesh *m, const Plan *p, AxisList *out) {
    return mesh_product(m, p->context_parallel.axis ? p->context_parallel.axis : "cp", out);
}
bool context_ordered(const Mesh *m, const Plan *p, AxisList *out) {
    return p->context_parallel.ring ? mesh_product(m, p->context_parallel.ring, out)
                                    : context_axes(m, p, out);
}
AxisList context_heads(const Mesh *m, const Plan *p) {
    AxisList out = {0};
    if (p->context_parallel.ulysses) mesh_product(m, p->context_parallel.ulysses, &out);
    return out;
}

int context_ring(const Mesh *m, const Plan *p) {
    AxisList ring = {0};
    if (p->context_parallel.ring) mesh_product(m, p->context_parallel.ring, &ring);
    return ring.n == 1 ? ring.a[0] : -1;
}

/* KV heads that a rank has before attention: what the style of k's projection leaves of them. */
static int64_t kv_heads(const Assign *a) {
    const Graph *g = &a->model->g;
    int64_t K = a->model->dims.K;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->kind != KIND_PARAM || x->module < 0 || x->role[0] != DIM_KV_HEADS) continue;
        const ModuleUse *u = &a->use[x->module];
        const Style *s = u->style;
        bool cut = s && s->weight.set && !s->weight.mapping && s->weight.bare.kind == RP_SHARD;
        int64_t n = cut ? mesh_size(a->mesh, &u->axes) : 1;
        return n < K ? K / n : 1;
    }
    return K;
}
static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }

bool context_split(Assign *a, Mesh *mesh) {
    AxisList heads = context_heads(mesh, a->plan);
    if (heads.n != 1 || mesh->axis[heads.a[0]].parent || !a->model->dims.K) return false;
    int64_t n = mesh->axis[heads.a[0]].size, K = kv_heads(a), outer = common_divisor(K, n);
    if (K >= n || outer == 1) return false;
    const char *name = mesh->axis[heads.a[0]].name;
    diag_note(a->d, "N0004", a->plan->context_parallel.loc, NULL,
              "%lld KV heads on %s of %lld: the axis is split into %s.0 of %lld, which cuts the KV "
              "heads, and %s.1 of %lld, over which each KV head is replicated",
              (long long)K, name, (long long)n, name, (long long)outer, name,
              (long long)(n / outer));
    if (mesh_split(mesh, a->arena, name, outer)) return true;
    diag_error(a->d, "E0703", a->plan->context_parallel.loc, NULL,
               "axis '%s' cannot be split: too many axes", name);
    return false;
}
/* A ring goes round the ranks whose tokens differ. */
static void check_ring(const Assign *a) {
    int ring = context_ring(a->mesh, a->plan);
    if (ring < 0 || a->mesh->axis[ring].size == 1 || (a->tokens >> ring & 1)) return;
    diag_error(a->d, "E0215", a->plan->context_parallel.loc,
               "name the axis under `data: cut: sequence` too, or leave that key out",
               "the ring goes round %s, which does not cut the sequence", a->mesh->axis[ring].name);
}
/* Only latent attention makes keys and values of one latent. */
static void check_latent(const Assign *a) {
    if (!a->plan->context_parallel.latent || a->model->dims.kv_rank) return;
    diag_error(a->d, "E0215", a->plan->context_parallel.latent_loc, "leave `latent` out",
               "`latent` is for latent attention, and the keys and values of this model are made "
               "of no latent");
}
void context_check(Assign *a) {
    check_ring(a);
    check_latent(a);
    const ModelDims *m = &a->model->dims;
    AxisList heads = context_heads(a->mesh, a->plan);
    int64_t n = mesh_size(a->mesh, &heads);
    Loc loc = a->plan->context_parallel.mode_loc;
    if (!heads.n || m->mlp || n <= m->H) return;
    diag_error(a->d, "E0303", loc, "use as many ranks as there are heads at most, or mode: ring",
               "%lld heads cannot be cut over %s of size %lld", (long long)m->H,
               mesh_axes_text(a->mesh, a->arena, &heads, true), (long long)n);
}
