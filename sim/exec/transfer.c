/* A move on all ranks: each rank's block is put together from its pieces (pieces.h). What is done
 * may be another thing than what is declared; only the act says so. */
#include "exec/transfer.h"
#include "exec/counts.h"
#include "exec/narrow.h"
#include "exec/pieces.h"
#include "exec/store.h"
#include "exec/tuplemap.h"
#include "exec/wire.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    WireMove m;
    Arena *tmp; /* of the block being built: lists of positions may be as long as the value */
} MoveRun;
void transfer_tile(Device *dev, Tensor *out, const Tensor *own, Dtype dt) {
    assert(out->nd == own->nd);
    int64_t i[LAYOUT_MAX_DIMS] = {0}, es = dtype_size(dt);
    if (!tensor_count(out) || dev->sizes_only) return;
    if (!tensor_count(own)) {
        dev->fill(dev, out, dt, 0);
        return;
    }
    Tensor to = dev->get(dev, out, dt), from = dev->get(dev, own, dt);
    for (int64_t k = 0; k < tensor_count(&to); k++) {
        int64_t o = 0;
        for (int d = 0; d < to.nd; d++) o += i[d] % from.n[d] * from.s[d];
        memcpy((char *)to.p + k * es, (const char *)from.p + o * es, (size_t)es);
        for (int d = to.nd - 1; d >= 0; d--) {
            if (++i[d] < to.n[d]) break;
            i[d] = 0;
        }
    }
    dev->put(dev, out, &to, dt);
    dev->done(dev, &to);
    dev->done(dev, &from);
}
void transfer_drop_tail(Device *dev, const Pieces *x, const Region *b, Tensor *t, Dtype dt) {
    int64_t n, whole, inner = 1;
    int d = pieces_tail(x, &n, &whole), dim = region_dim(b, d);
    if (d < 0 || graph_is_list(x->t)) return;
    for (int k = dim + 1; k < t->nd; k++) inner *= t->n[k];
    for (int64_t i = 0; i < tensor_count(t); i++) {
        if (region_letter(b, d, i / inner % t->n[dim]) < whole) continue;
        Tensor one = {.nd = 1, .n = {1}, .s = {1}, .p = (char *)t->p + i * dtype_size(dt)};
        dev->fill(dev, &one, dt, 0);
    }
}
static void share(Local *l, const Local *own, const Tensor *t) {
    l->t = *t;
    l->buf = own->buf;
    own->buf->refs++;
}
/* A block's elements in their order, taken for another block of as many; what lies in strides is
 * packed in `arena` for it. */
static Tensor read_as(const WireMove *m, const Region *as, const Tensor *t, Arena *arena) {
    Tensor shaped = region_shaped(as, t), packed = *t;
    bool same = shaped.nd == t->nd && !memcmp(shaped.n, t->n, sizeof *t->n * (size_t)t->nd);
    if (same || m->e->dev->sizes_only) return shaped;
    Region plain = region_plain(t);
    tensor_pack(&packed);
    packed.p = arena_alloc(arena, base_mul((size_t)tensor_count(t) + 1, (size_t)dtype_size(m->dt)));
    m->e->dev->copy(m->e->dev, (Block){&plain, &packed}, (Block){&plain, t}, m->dt, COMBINE_COPY);
    return region_shaped(as, &packed);
}
Tensor transfer_piece(const WireMove *m, const Piece *one, Region *at, Arena *arena) {
    const Local *own = exec_local(m->e, m->s->in[0], one->rank);
    *at = pieces_from(&m->x, one, arena);
    if (!own) return region_packed(at); /* it holds nothing that could arrive */
    Tensor src = m->x.act.dim >= 0 ? read_as(m, at, &own->t, arena) : own->t;
    region_clamp(at, src.n);
    return src;
}
/* Piece i of the block of `rank`, wherever it lies. */
static Tensor piece_data(const WireMove *m, int64_t rank, int64_t i, Region *at, Arena *arena) {
    Piece one = pieces_at(&m->x, rank, i);
    bool here = m->e->wire->self < 0 || m->e->wire->self == one.rank;
    return here ? transfer_piece(m, &one, at, arena)
                : m->e->wire->piece(m->e->wire, m, i, at, arena);
}
/* The pieces of `rank` put together in `to`, in the order of the group: the order of the sum is
 * declared. */
static void put_together(const WireMove *m, int64_t rank, const Region *to, Tensor *out) {
    Combine how = pieces_combine(&m->x, rank), first = how == COMBINE_MAX ? how : COMBINE_COPY;
    Device *dev = m->e->dev;
    Wire *w = m->e->wire;
    if (w->reduce && w->reduce(w, m, to, out)) return;
    int64_t n = device_counts_arrays(dev) ? 0 : pieces_count(&m->x, rank);
    dev->fill(dev, out, m->dt, how == COMBINE_MAX ? -INFINITY : 0);
    for (int64_t i = 0, had = 0; i < n; i++) {
        Piece one = pieces_at(&m->x, rank, i);
        if (pieces_absent(&m->x, rank, &one)) continue;
        Arena *part = arena_new();
        Region at;
        Tensor src = piece_data(m, rank, i, &at, part);
        if (src.p && tensor_count(&src))
            dev->copy(dev, (Block){to, out}, (Block){&at, &src}, m->dt, had++ ? how : first);
        arena_free(part);
    }
    if (m->e->modulus > 0 && how == COMBINE_SUM) device_residues(dev, out, m->dt, m->e->modulus);
}
/* What the act does to the numbers that arrived: a mean, another round of the sum (of n equal
 * values), a factor, a tail that is not there. */
static void finish(const WireMove *m, int64_t rank, const Region *to, Tensor *out) {
    const Act *act = pieces_act(&m->x, rank);
    double n = (double)m->x.n, f = act->scale;
    if (act->combine == COMBINE_AVG) f *= 1 / n;
    for (int k = 1; k < act->times; k++) f *= n;
    if (f != 1) m->e->dev->scale(m->e->dev, out, m->dt, f);
    if (act->floor && !m->e->dev->sizes_only) transfer_drop_tail(m->e->dev, &m->x, to, out, m->dt);
    if (act->counts) counts_misread(m->e->dev, &m->x, rank, to, out, m->dt);
}
/* What the rank had in place of what does not arrive: the parameter as it was before the step. */
static const Local *stale(const WireMove *m, int64_t rank) {
    const Program *p = m->e->p;
    int old = m->x.t->next_of && move_relocates(m->x.act.kind) ? p->first[m->x.t->next_of - 1] : -1;
    return old >= 0 && exec_store(m->e, old)->alive ? exec_local(m->e, old, rank) : NULL;
}
/* The rank's own block in a buffer of its own, as the output is held. */
static void pack(const WireMove *m, const Local *own, Local *l) {
    l->t = own->t;
    tensor_pack(&l->t);
    l->buf = store_buf_new(m->e, tensor_count(&l->t) * dtype_size(m->dt));
    l->t.p = l->buf->p;
    Region box = region_plain(&l->t);
    m->e->dev->copy(m->e->dev, (Block){&box, &l->t}, (Block){&box, &own->t}, m->dt, COMBINE_COPY);
    narrow_block(m->e, m->s->out, l->buf, &l->t);
}
/* The block that `rank` comes to hold, written into l: a view of its own where nothing has to be
 * copied. */
static void build_block(const MoveRun *run, int64_t rank, Local *l) {
    const WireMove *r = &run->m;
    const Act *act = pieces_act(&r->x, rank);
    const Local *own = exec_local(r->e, r->s->in[0], rank);
    assert(l->rank == rank); /* who is asked for a block is here, with what it had */
    bool as_is = act->scale == 1 && act->combine == COMBINE_COPY && !act->floor;
    bool alias = !move_shares(act->kind) || !act->times, rounds = narrow_rounds(r->e, r->s);
    if (own && alias && pieces_pass(&r->x, rank) && (as_is || !act->times)) {
        if (rounds) pack(r, own, l);
        else share(l, own, &own->t);
        return;
    }
    const Local *before = act->times ? NULL : stale(r, rank);
    if (before && !own) {
        share(l, before, &before->t);
        return;
    }
    Region to = pieces_to(&r->x, rank, run->tmp);
    if (own && act->kind == MOVE_SLICE && as_is && act->dim < 0 && !r->s->packs && !rounds) {
        Region at;
        Tensor src = piece_data(r, rank, 0, &at, run->tmp), view;
        if (region_view(&to, &at, &src, r->dt, &view)) {
            share(l, own, &view);
            return;
        }
    }
    l->t = region_packed(&to);
    l->buf = store_buf_new(r->e, tensor_count(&l->t) * dtype_size(r->dt));
    l->t.p = l->buf->p;
    if (!act->times && !move_reduces(act->kind) && own) {
        Region held = region_of(r->e, r->s->in[0], rank, run->tmp), as;
        as = region_listed(&to, held.outer, run->tmp);
        Tensor out = region_shaped(&as, &l->t);
        transfer_tile(r->e->dev, &out, &own->t, r->dt);
    } else {
        put_together(r, rank, &to, &l->t);
        finish(r, rank, &to, &l->t);
    }
    narrow_block(r->e, r->s->out, l->buf, &l->t);
}
static int compare_ids(const void *a, const void *b) {
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}
/* After a planted mistake a list may name a row twice, or not in its order. What follows it is
 * defined for lists only: each row once, ascending. */
static void tidy_list(const WireMove *m, Local *l) {
    int64_t n = l->t.n[0], kept = 0;
    if (!m->s->act || !graph_is_list(m->x.t) || m->e->dev->sizes_only || n < 2) return;
    Tensor host = m->e->dev->get(m->e->dev, &l->t, DT_I64);
    int64_t *id = host.p;
    bool tidy = true;
    for (int64_t i = 1; i < n; i++) tidy &= id[i - 1] < id[i];
    if (!tidy) {
        qsort(id, (size_t)n, sizeof *id, compare_ids);
        for (int64_t i = 0; i < n; i++)
            if (!i || id[i] != id[i - 1]) id[kept++] = id[i];
        m->e->dev->put(m->e->dev, &l->t, &host, DT_I64);
        l->t.n[0] = kept;
    }
    m->e->dev->done(m->e->dev, &host);
}
/* One id per group: which blocks its members hold. */
static int64_t *group_ids(const WireMove *r) {
    const Mesh *m = r->x.m;
    const Store *src = exec_store(r->e, r->s->in[0]);
    const AxisList *axes = &r->x.act.axes;
    int64_t n = mesh_size(m, axes);
    int64_t *gid = base_malloc(base_mul((size_t)m->nranks, sizeof *gid)),
            *key = base_malloc(base_mul((size_t)n, sizeof *key));
    TupleMap map;
    tuplemap_open(&map, (int)n);
    int next = 0;
    for (int64_t rank = 0; rank < m->nranks; rank++) {
        if (!mesh_takes_part(m, axes, rank)) gid[rank] = -1;
        if (mesh_index_in(m, axes, rank) || !mesh_takes_part(m, axes, rank)) continue;
        for (int64_t i = 0; i < n; i++) key[i] = src->which[mesh_member(m, axes, rank, i)];
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) *at = next++;
        for (int64_t i = 0; i < n; i++) gid[mesh_member(m, axes, rank, i)] = *at;
    }
    tuplemap_close(&map);
    free(key);
    return gid;
}
static void share_all(Exec *e, int from, int to) {
    Store *a = exec_store(e, from), *b = store_open(e, to);
    for (int i = 0; i < a->n; i++) {
        Local same = a->l[i];
        same.buf->refs++;
        same.seconds = 0; /* nothing is done */
        store_add(b, same);
    }
    memcpy(b->which, a->which, sizeof *b->which * (size_t)e->p->mesh->nranks);
}
/* With another dim cut: what arrives is taken for the block that was asked for. */
static void retype(const MoveRun *r, int64_t rank, Local *l) {
    const WireMove *m = &r->m;
    if (m->x.act.dim < 0 || m->x.t->listed) return;
    Region want = region_at(m->x.m, m->x.t, &m->s->move.to, rank, r->tmp);
    Tensor as = region_packed(&want);
    if (tensor_count(&as) == tensor_count(&l->t)) store_shape(m->e, l, &as, m->dt);
}
/* Whose blocks are equal: those with equal keys. */
typedef struct {
    MoveRun r;
    int64_t *gid;   /* per rank: who its group's members are, by their blocks; NULL: alone */
    bool own;       /* what the rank itself holds matters */
    bool shares;    /* its place in the group does */
    bool elsewhere; /* another group takes part than the one that it stands for, or ranks differ */
} Keyed;
/* Rows: ranks that hold equal lists, before and after. A list: it is its own data. */
static int64_t rows_key(const Pieces *x, int64_t rank) {
    if (!x->e || graph_is_list(x->t)) return 0;
    const Program *p = x->e->p;
    const Store *in = exec_store(x->e, p->val[x->in].list),
                *out = exec_store(x->e, p->val[x->out].list);
    return (int64_t)in->which[rank] << 32 | (int64_t)out->which[rank];
}
static void move_key(void *arg, int64_t rank, int64_t *key) {
    const Keyed *k = arg;
    const WireMove *m = &k->r.m;
    const Pieces *x = &m->x;
    key[0] = k->gid ? k->gid[rank] : 0;
    key[1] = store_key(x->m, &x->to, rank);
    key[2] = k->own ? exec_store(m->e, m->s->in[0])->which[rank] : 0;
    key[4] = rows_key(x, rank);
    key[3] = k->elsewhere ? rank : k->shares ? mesh_index_in(x->m, &x->axes, rank) : 0;
}
static bool move_block(void *arg, int64_t rank, Local *l) {
    MoveRun *r = &((Keyed *)arg)->r;
    const WireMove *m = &r->m;
    l->key = store_key(m->x.m, &m->e->p->val[m->s->out].L, rank);
    r->tmp = arena_new();
    build_block(r, rank, l);
    tidy_list(m, l);
    retype(r, rank, l);
    arena_free(r->tmp);
    return true;
}
void transfer_step(Exec *e, const Step *s) {
    Wire *wire = e->wire;
    Act done = act_of(s);
    Keyed k = {
        .r.m = {.e = e, .s = s, .x = pieces_of_run(e, s, &done), .dt = exec_dtype(e, s->out)}};
    const Act *act = &k.r.m.x.act;
    if (act->kind == MOVE_ID && !s->act) {
        share_all(e, s->in[0], s->out);
        return;
    }
    bool joint = move_source(act->kind) != FROM_OWN;
    k.gid = joint && wire->self < 0 ? group_ids(&k.r.m) : NULL;
    k.own = !joint || s->act;
    k.shares = move_shares(act->kind) || act->shift;
    k.elsewhere = act_elsewhere(&s->move, act) || act->alone || act->counts;
    WireBlocks w = {.width = 5, .key = move_key, .make = move_block, .arg = &k};
    if (wire->bring) wire->bring(wire, &k.r.m);
    wire->share(wire, e, s->out, &w);
    if (wire->spent) wire->spent(wire);
    free(k.gid);
}
