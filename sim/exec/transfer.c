/* A move between layouts on all ranks: gathers, scatters, reductions, slices, and what a planted
 * mistake makes of them. */
#include "exec/transfer.h"
#include "exec/call.h"
#include "exec/store.h"
#include "exec/tuplemap.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    Exec *e;
    const Step *s;
    const GTensor *t;
    Layout from, to;
    Dtype dt;
    bool flat;
    AxisList axes;
    int64_t n;      /* group size */
    AxisList other; /* a planted wrong group: the ranks that take part instead */
    int64_t parts;  /* how many blocks are put together */
    Arena *tmp;     /* of the block being built: lists of positions may be as long as the value */
} MoveRun;

/* Takes a local tensor for one of another shape with as many elements (a planted wrong dim); needs
 * packed data. */
static Tensor reshaped(const Tensor *t, const Box *b) {
    bool same = t->nd == b->nd;
    for (int d = 0; same && d < b->nd; d++) same = t->n[d] == b->n[d];
    if (same) return *t; /* may be a strided view */
    Tensor r = region_packed(b);
    r.p = t->p;
    return tensor_count(&r) == tensor_count(t) ? r : *t;
}
static void member_data(const MoveRun *r, int64_t rank, int64_t i, int64_t *owner,
                        const Local **data) {
    const Mesh *m = r->e->p->mesh;
    int64_t from = i;
    if (r->s->edit == EDIT_OFFSET && r->from.type[r->axes.a[0]] == TY_V &&
        r->to.type[r->axes.a[0]] != TY_V)
        from = ((i - r->s->edit_offset) % r->n + r->n) % r->n;
    *owner = mesh_member(m, &r->axes, rank, i); /* whose block it is meant to be */
    int64_t q = mesh_member(m, &r->axes, rank, from);
    /* with fewer ranks than blocks they come again */
    if (r->s->edit == EDIT_AXIS) q = mesh_member(m, &r->other, rank, i);
    *data = exec_local(r->e, r->s->in[0], q);
}
void transfer_fill(Tensor *t, Dtype dt, double v) {
    int64_t n = tensor_count(t);
    if (dt == DT_F32)
        for (int64_t i = 0; i < n; i++) ((float *)t->p)[i] = (float)v;
    else if (dt == DT_F64)
        for (int64_t i = 0; i < n; i++) ((double *)t->p)[i] = v;
    else
        for (int64_t i = 0; i < n; i++) ((int64_t *)t->p)[i] = (int64_t)v;
}
void transfer_scale(Tensor *t, Dtype dt, double v) {
    int64_t n = tensor_count(t);
    if (dt == DT_F32)
        for (int64_t i = 0; i < n; i++) ((float *)t->p)[i] *= (float)v;
    else if (dt == DT_F64)
        for (int64_t i = 0; i < n; i++) ((double *)t->p)[i] *= v;
}
/* Repeats what is there until the block is full: what a skipped gather leaves in the buffer. */
static void tile(Tensor *out, const Tensor *own, Dtype dt) {
    int64_t i[LAYOUT_MAX_DIMS] = {0}, es = dtype_size(dt);
    if (!tensor_count(out)) return;
    if (!tensor_count(own)) {
        transfer_fill(out, dt, 0);
        return;
    }
    for (int64_t k = 0; k < tensor_count(out); k++) {
        int64_t o = 0;
        for (int d = 0; d < out->nd; d++) o += i[d] % own->n[d] * own->s[d];
        memcpy((char *)out->p + k * es, (const char *)own->p + o * es, (size_t)es);
        for (int d = out->nd - 1; d >= 0; d--) {
            if (++i[d] < out->n[d]) break;
            i[d] = 0;
        }
    }
}
/* After a planted mistake a block may be shorter than its layout says: what it lacks is not there
 * to be read. */
static void clamp_box(Box *b, const Tensor *t) {
    for (int d = 0; d < b->nd; d++)
        if (t->n[d] < b->d[d].n) b->d[d].n = b->n[d] = t->n[d];
}
/* Sizes divided without remainder: elements of a cut dim behind n equal blocks are zero. */
static void drop_tail(const MoveRun *r, const Box *b, Tensor *t) {
    const Mesh *m = r->e->p->mesh;
    const Layout *cut = layout_where(&r->to, r->axes.a[0]) >= 0 ? &r->to : &r->from;
    int d = layout_where(cut, r->axes.a[0]);
    if (r->flat || d < 0 || d >= r->t->nd) return;
    AxisList cutters = layout_dim_axes(cut, d);
    int64_t n = mesh_size(m, &cutters), whole = r->t->size[d] / n * n, inner = 1;
    for (int k = d + 1; k < t->nd; k++) inner *= t->n[k];
    for (int64_t i = 0; i < tensor_count(t); i++) {
        int64_t at = i / inner % t->n[d], x = b->d[d].range ? b->d[d].lo + at : b->d[d].list[at];
        if (x < whole) continue;
        Tensor one = {.nd = 1, .n = {1}, .s = {1}, .p = (char *)t->p + i * dtype_size(r->dt)};
        transfer_fill(&one, r->dt, 0);
    }
}
/* The block of `rank` under the target layout, written into l (a view where nothing has to be
 * copied). */
static void build_block(MoveRun *r, int64_t rank, Local *l) {
    Exec *e = r->e;
    const Mesh *m = e->p->mesh;
    const Step *s = r->s;
    int tf = r->from.type[r->axes.a[0]], tt = r->to.type[r->axes.a[0]];
    int64_t index = mesh_index_in(m, &r->axes, rank), as = rank;
    if (s->edit == EDIT_AXIS && tf != TY_V && tf != TY_P && tf != TY_M)
        index = mesh_coord(m, rank, s->edit_axis);
    if (s->edit == EDIT_AXIS && tf != TY_V && tf != TY_P && tf != TY_M)
        as = mesh_member(m, &r->axes, rank, index % r->n);
    if (s->edit == EDIT_OFFSET && tt == TY_V)
        as = mesh_member(m, &r->axes, rank, (index + s->edit_offset) % r->n);
    Box tb = region_box(m, r->t, &r->to, as, r->flat, r->tmp);
    const Local *own = exec_local(e, s->in[0], rank);
    Box ob = region_box(m, r->t, &r->from, rank, r->flat, r->tmp);
    Tensor own_t = s->edit == EDIT_DIM || r->flat ? reshaped(&own->t, &ob) : own->t;
    clamp_box(&ob, &own_t);
    bool same = s->edit == EDIT_NONE || s->edit == EDIT_OFFSET;
    bool keep = (tf == TY_I || tf == TY_R) && tt == TY_P;
    if (same && ((tf == TY_I || tf == TY_R) && tt == TY_V) && !r->flat &&
        region_view(&tb, &ob, &own->t, r->dt, &l->t)) {
        l->buf = own->buf;
        own->buf->refs++;
        return;
    }
    bool dropped = s->edit == EDIT_DROP && (tf == TY_V                 ? false
                                            : tf == TY_P || tf == TY_M ? tt != TY_V
                                                                       : true);
    if ((keep && index == 0 && s->edit != EDIT_SCALE) ||
        dropped) { /* the own part goes on as it is */
        l->t = own->t;
        l->buf = own->buf;
        own->buf->refs++;
        return;
    }
    l->t = region_packed(&tb);
    l->buf = store_buf_new(e, tensor_count(&l->t) * dtype_size(r->dt));
    l->t.p = l->buf->p;
    if (s->edit == EDIT_DROP && tf == TY_V) {
        tile(&l->t, &own->t, r->dt);
        return;
    }
    int op = tf == TY_P   ? (s->edit == EDIT_MAX ? 2 : 1)
             : tf == TY_M ? (s->edit == EDIT_AVG ? 1 : 2)
                          : 0;
    bool only_own = tf == TY_I || tf == TY_R || tt == TY_P ||
                    ((s->edit == EDIT_DROP || s->edit == EDIT_SLICE) && (tf == TY_P || tf == TY_M));
    transfer_fill(&l->t, r->dt, tt == TY_P || keep ? 0 : op == 2 ? -INFINITY : 0);
    if (keep && index) return;
    if (only_own) {
        region_copy(&tb, &l->t, &ob, &own_t, r->dt, 0);
        if (s->edit == EDIT_SCALE) transfer_scale(&l->t, r->dt, s->edit_scale);
        if (s->edit == EDIT_FLOOR) drop_tail(r, &tb, &l->t);
        return;
    }
    /* in the order of the group: the order of the sum is declared */
    for (int64_t i = 0; i < r->parts; i++) {
        int64_t owner;
        const Local *data;
        member_data(r, rank, i, &owner, &data);
        Arena *part = arena_new();
        Box sb = region_box(m, r->t, &r->from, owner, r->flat, part);
        Tensor src = reshaped(&data->t, &sb);
        if (tensor_count(&src)) {
            /* flattened: packed letters are read as one dim */
            if (s->edit != EDIT_DIM && !r->flat) src = data->t;
            clamp_box(&sb, &src);
            region_copy(&tb, &l->t, &sb, &src, r->dt, op == 1 && i == 0 ? 0 : op);
        }
        arena_free(part);
    }
    if (e->modulus > 0 && op == 1) call_residues(&l->t, r->dt, e->modulus);
    if (s->edit == EDIT_AVG) transfer_scale(&l->t, r->dt, 1 / (double)r->n);
    if (s->edit == EDIT_DOUBLE) transfer_scale(&l->t, r->dt, (double)r->n);
    if (s->edit == EDIT_SCALE) transfer_scale(&l->t, r->dt, s->edit_scale);
    if (s->edit == EDIT_FLOOR) drop_tail(r, &tb, &l->t);
}
/* One id per group: which blocks its members hold. */
static int64_t *group_ids(MoveRun *r) {
    const Mesh *m = r->e->p->mesh;
    const Store *src = exec_store(r->e, r->s->in[0]);
    int64_t *gid = base_malloc(base_mul((size_t)m->nranks, sizeof *gid)),
            *key = base_malloc(base_mul((size_t)r->parts, sizeof *key));
    const AxisList *axes = r->s->edit == EDIT_AXIS ? &r->other : &r->axes;
    TupleMap map;
    tuplemap_open(&map, (int)r->parts);
    int next = 0;
    for (int64_t rank = 0; rank < m->nranks; rank++) {
        if (mesh_index_in(m, axes, rank)) continue;
        for (int64_t i = 0; i < r->parts; i++) key[i] = src->which[mesh_member(m, axes, rank, i)];
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) *at = next++;
        for (int64_t i = 0; i < r->parts; i++) gid[mesh_member(m, axes, rank, i)] = *at;
    }
    tuplemap_close(&map);
    free(key);
    return gid;
}
static bool needs_group(int tf, int tt) { return !((tf == TY_I || tf == TY_R)) && tt != TY_P; }
static void share_all(Exec *e, int from, int to) {
    Store *a = exec_store(e, from), *b = store_open(e, to);
    for (int i = 0; i < a->n; i++) {
        a->l[i].buf->refs++;
        store_add(b, a->l[i]);
    }
    memcpy(b->which, a->which, sizeof *b->which * (size_t)e->p->mesh->nranks);
}
void transfer_step(Exec *e, const Step *s) {
    const Program *p = e->p;
    const Mesh *m = p->mesh;
    if (s->move.kind == MOVE_ID && s->edit == EDIT_NONE) {
        share_all(e, s->in[0], s->out);
        return;
    }
    Move done = fault_move(s);
    MoveRun r = {.e = e,
                 .s = s,
                 .t = &p->graph->t[p->val[s->out].tensor],
                 .from = done.from,
                 .to = done.to,
                 .dt = exec_dtype(e, s->out),
                 .axes = s->move.axes};
    r.n = mesh_size(m, &r.axes);
    r.flat = region_is_flat(&r.from, &r.to);
    int tf = r.from.type[r.axes.a[0]], tt = r.to.type[r.axes.a[0]];
    r.other = done.axes;
    r.parts = s->edit == EDIT_AXIS && (tf == TY_P || tf == TY_M) ? mesh_size(m, &r.other) : r.n;
    int64_t *gid = needs_group(tf, tt) ? group_ids(&r) : NULL;
    bool own_matters = !gid || s->edit != EDIT_NONE;
    Store *st = store_open(e, s->out);
    const Store *src = exec_store(e, s->in[0]);
    TupleMap map;
    tuplemap_open(&map, 4);
    for (int64_t rank = 0; rank < m->nranks; rank++) {
        int64_t key[4] = {gid ? gid[rank] : 0, store_key(m, &r.to, rank),
                          own_matters ? src->which[rank] : 0, 0};
        if (tt == TY_P || s->edit == EDIT_OFFSET) key[3] = mesh_index_in(m, &r.axes, rank);
        if (s->edit == EDIT_AXIS) key[3] = rank;
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) {
            Local l = {.key = store_key(m, &p->val[s->out].L, rank), .rank = rank};
            r.tmp = arena_new();
            build_block(&r, rank, &l);
            if (r.flat && !r.to.n[r.to.ndim]) { /* gathered: the flat list is letters again */
                Box letters = region_box(m, r.t, &r.to, rank, false, r.tmp);
                l.t = reshaped(&l.t, &letters);
            }
            if (s->edit == EDIT_DIM) { /* what arrives is taken for the block that was asked for */
                Box want = region_box(m, r.t, &s->move.to, rank, r.flat, r.tmp);
                l.t = reshaped(&l.t, &want);
            }
            arena_free(r.tmp);
            *at = store_add(st, l);
        }
        st->which[rank] = (uint32_t)*at;
    }
    tuplemap_close(&map);
    free(gid);
}
