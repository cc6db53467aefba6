/* Puts the ranks' parts of a value together. */
#include "exec/assemble.h"
#include "ops/op.h"
#include <assert.h>
#include <string.h>

Layout assemble_layout(const Exec *e, const Layout *l, const AxisList *fixed) {
    Layout r = *l;
    for (int d = 0; d <= r.ndim; d++) {
        for (int i = 0; i < r.n[d]; i++) {
            bool f = false;
            for (int k = 0; k < fixed->n; k++) f |= fixed->a[k] == r.e[d][i].axis;
            if (!f) r.e[d][i].ghost = 1;
        }
        while (r.n[d] && r.e[d][r.n[d] - 1].ghost) memset(&r.e[d][--r.n[d]], 0, sizeof(Entry));
    }
    for (int a = 0; a < e->p->mesh->naxes; a++)
        if (layout_where(&r, a) < 0 && r.type[a] == TY_V) r.type[a] = TY_I;
    return r;
}
/* The axes of a layout that cut, but for those that are fixed: their ranks hold the parts. */
static AxisList cutting(const Exec *e, const Layout *l, const AxisList *fixed) {
    AxisList over = {0};
    for (int a = 0; a < e->p->mesh->naxes; a++) {
        bool f = false;
        for (int k = 0; k < fixed->n; k++) f |= fixed->a[k] == a;
        if (!f && l->type[a] == TY_V) over.a[over.n++] = (uint8_t)a;
    }
    return over;
}
static DimIndex rows_over(const Exec *e, int list, const AxisList *over, int64_t rank,
                          Arena *arena) {
    const Mesh *m = e->p->mesh;
    int64_t n = mesh_size(m, over);
    DimIndex *part = ARENA_ARRAY(arena, DimIndex, n);
    for (int64_t i = 0; i < n; i++)
        part[i] = exec_rows(e, list, mesh_member(m, over, rank, i), arena);
    return region_joined(part, n, arena);
}
/* The rows that those ranks hold together. */
static DimIndex joint_rows(const Exec *e, int v, const AxisList *fixed, int64_t rank,
                           Arena *arena) {
    int list = e->p->val[v].list;
    AxisList over = cutting(e, &e->p->val[list].L, fixed);
    return rows_over(e, list, &over, rank, arena);
}
Region assemble_region(const Exec *e, int v, const AxisList *fixed, int64_t rank, Arena *arena) {
    const Val *x = &e->p->val[v];
    const GTensor *t = &e->p->graph->t[x->tensor];
    Layout joint = assemble_layout(e, &x->L, fixed);
    if (!t->listed) return region_at(e->p->mesh, t, &joint, rank, arena);
    int64_t local[LAYOUT_MAX_DIMS];
    layout_local(e->p->mesh, &joint, t->size, rank, local);
    DimIndex rows = {.range = true, .n = graph_rows(t, local)};
    if (!e->dev->sizes_only) rows = joint_rows(e, v, fixed, rank, arena);
    return region_rows(e->p->mesh, t, &joint, rank, rows, arena);
}
/* Are the rows that ranks hold parts of these: each in one of them? Only after a mistake they are
 * not: a list lacks a row that another copy of it names, or names one of another rank's. */
static bool rows_part(const Exec *e, int v, const AxisList *over, int64_t rank,
                      const DimIndex *rows) {
    const Program *p = e->p;
    int list = p->val[v].list;
    AxisList by_list = cutting(e, &p->val[list].L, &(AxisList){0}), others = {0}, along = {0};
    uint32_t cuts = mesh_axes_set(&by_list);
    for (int i = 0; i < over->n; i++) {
        AxisList *to = cuts >> over->a[i] & 1 ? &along : &others;
        to->a[to->n++] = over->a[i];
    }
    Arena *tmp = arena_new();
    bool fit = true;
    for (int64_t k = 0; k < mesh_size(p->mesh, &others) && fit; k++) {
        int64_t q = mesh_member(p->mesh, &others, rank, k), held = 0;
        for (int64_t i = 0; i < mesh_size(p->mesh, &along); i++)
            held += exec_local(e, list, mesh_member(p->mesh, &along, q, i))->t.n[0];
        DimIndex all = rows_over(e, list, &along, q, tmp);
        fit = held == rows->n && region_same(&all, rows);
    }
    arena_free(tmp);
    return fit;
}
typedef struct {
    const Exec *e;
    int v;
    int64_t rank;
    const AxisList *over;
    const Region *box;
    Tensor *out;
    Dtype dt;
} AssembleJob;
/* The part of one rank. */
static void assemble_part(void *arg, int64_t i) {
    const AssembleJob *j = arg;
    const Program *p = j->e->p;
    int64_t q = mesh_member(p->mesh, j->over, j->rank, i);
    Arena *tmp = arena_new();
    Region sb = region_of(j->e, j->v, q, tmp);
    const Local *l = exec_local(j->e, j->v, q);
    Tensor part = l->t, none = region_packed(&sb);
    if (l->t.nd != sb.nd || memcmp(l->t.n, sb.n, sizeof(int64_t) * (size_t)sb.nd) != 0) {
        /* a false label: what it says that is there is not */
        size_t bytes = base_mul((size_t)tensor_count(&none) + 1, (size_t)dtype_size(j->dt));
        none.p = memset(arena_alloc(tmp, bytes), 0, bytes);
        part = none;
    }
    j->e->dev->copy(j->e->dev, (Block){j->box, j->out}, (Block){&sb, &part}, j->dt, COMBINE_COPY);
    arena_free(tmp);
}
static Tensor assembled(const Exec *e, int v, const AxisList *fixed, int64_t rank,
                        const Region *box) {
    const Program *p = e->p;
    const Val *x = &p->val[v];
    Tensor out = region_packed(box);
    Dtype dt = exec_dtype(e, v);
    int64_t bytes = tensor_count(&out) * dtype_size(dt);
    out.p = device_array(e->host, bytes, 1);
    AxisList over = cutting(e, &x->L, fixed);
    int64_t n = e->dev->sizes_only ? 0 : mesh_size(p->mesh, &over);
    AssembleJob j = {e, v, rank, &over, box, &out, dt};
    bool part = !n || !p->graph->t[x->tensor].listed || rows_part(e, v, &over, rank, &box->d[0]);
    /* what nobody holds is 0; of what two hold the last one's stands */
    if (!part) e->host->fill(e->host, &out, dt, 0);
    /* what is elsewhere one thread asks for */
    if (part && e->pool && !e->far && n > 1 && bytes > 1 << 20)
        pool_run(e->pool, n, assemble_part, &j);
    else
        for (int64_t i = 0; i < n; i++) assemble_part(&j, i);
    return out;
}
Tensor assemble_value(const Exec *e, int v, const AxisList *fixed, int64_t rank) {
    Arena *tmp = arena_new();
    Region box = assemble_region(e, v, fixed, rank, tmp);
    Tensor out = assembled(e, v, fixed, rank, &box);
    arena_free(tmp);
    return out;
}
Tensor assemble_box(const Exec *e, int v, const AxisList *fixed, int64_t rank, const Region *box) {
    assert(!e->p->graph->t[e->p->val[v].tensor].listed);
    return assembled(e, v, fixed, rank, box);
}
bool assemble_parts(const Exec *e, int v, const AxisList *fixed, int64_t rank, Arena *arena,
                    AssembleParts *parts) {
    const Program *p = e->p;
    const Val *x = &p->val[v];
    if (p->graph->t[x->tensor].listed) return false;
    *parts = (AssembleParts){.box = assemble_region(e, v, fixed, rank, arena)};
    AxisList over = cutting(e, &x->L, fixed);
    int64_t n = mesh_size(p->mesh, &over), held = 0;
    parts->one = n == 1;
    if (e->dev->sizes_only) return true;
    parts->part = ARENA_ARRAY(arena, struct AssemblePart, n);
    for (; parts->n < n; parts->n++) {
        int64_t q = mesh_member(p->mesh, &over, rank, parts->n);
        const Local *l = exec_local(e, v, q);
        if (!l) return false;
        struct AssemblePart *part = &parts->part[parts->n];
        *part = (struct AssemblePart){region_of(e, v, q, arena), l->t};
        size_t sizes = sizeof(int64_t) * (size_t)l->t.nd;
        if (part->has.nd != l->t.nd || memcmp(part->has.n, l->t.n, sizes) != 0) return false;
        held += region_common(&parts->box, &part->has);
    }
    Tensor all = region_packed(&parts->box);
    return held == tensor_count(&all);
}
