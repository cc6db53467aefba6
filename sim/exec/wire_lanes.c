/* From one GPU's memory to another's. See wire_lanes.h. */
#include "exec/wire_lanes.h"
#include "base/clock.h"
#include "exec/transfer.h"
#include "gpu/gpu.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    EngineItem *item;
    int n, cap;
} Items;
/* What was put side by side last: a gather hands the same to all. */
typedef struct {
    Piece one;
    void *p;
    int64_t n;
} Packed;
struct WireLanes {
    Engine *engine;
    Device *dev;
    Tooks *tooks;
    bool heads; /* sizes may be other than layouts say */
    /* of the move that is made */
    EngineOn on;
    bool open;
    int64_t n;      /* pieces of our block */
    Tensor *part;   /* what comes of each; p NULL: nothing */
    PieceHead *own; /* per piece: what its rank says of it; NULL: what its layout says */
    void **lent;    /* blocks that are given back when it is made */
    int n_lent, cap_lent;
    Packed last;
};

static void add(Items *x, int64_t peer, int64_t bytes, void *p) {
    if (x->n == x->cap) {
        x->cap = 2 * x->cap + 16;
        x->item = base_realloc(x->item, base_mul((size_t)x->cap, sizeof *x->item));
    }
    x->item[x->n++] = (EngineItem){peer, bytes, p};
}
/* n numbers of the move's type, until it is made. */
static void *lend(WireLanes *l, const WireMove *m, int64_t n) {
    if (l->n_lent == l->cap_lent) {
        l->cap_lent = 2 * l->cap_lent + 16;
        l->lent = base_realloc(l->lent, base_mul((size_t)l->cap_lent, sizeof *l->lent));
    }
    return l->lent[l->n_lent++] = device_array(l->dev, n, dtype_size(m->dt));
}
/* As the engine names it. */
static int64_t peer_of(const WireLanes *l, const WireMove *m, int64_t place) {
    return l->on.group < 0 ? mesh_member(m->x.m, wire_peers(m), m->e->wire->self, place) : place;
}
/* A piece of ours, and what of it goes to another rank. */
typedef struct {
    Region has, what;
    Tensor src;
} Ours;
/* Lists live in `arena`. */
static Ours part_for(const WireMove *m, const Piece *one, int64_t rank, Arena *arena) {
    Ours x;
    Region to = pieces_to(&m->x, rank, arena);
    x.src = transfer_piece(m, one, &x.has, arena);
    x.what = region_meet(&to, &x.has, arena);
    return x;
}

/* ---- sending ---- */
/* Where the engine reads it: where it lies, if its numbers are side by side there as they travel.
 */
static void *to_be_sent(WireLanes *l, const WireMove *m, const Ours *x, const Piece *one) {
    const bool narrow = wire_narrow(m);
    const int64_t n = wire_count(&x->what);
    const bool whole = n == wire_count(&x->has);
    Tensor view, packed = region_packed(&x->what);
    void *p = NULL;
    if (region_view(&x->what, &x->has, &x->src, m->dt, &view) && tensor_is_packed(&view))
        p = l->dev->reach(l->dev, &view, narrow, false);
    if (!p && whole && l->last.p && l->last.n == n && l->last.one.rank == one->rank &&
        l->last.one.owner == one->owner)
        p = l->last.p;
    if (p) return p;
    packed.p = lend(l, m, n);
    l->dev->copy(l->dev, (Block){&x->what, &packed}, (Block){&x->has, &x->src}, m->dt,
                 COMBINE_COPY);
    if (narrow) l->dev->round(l->dev, &packed);
    p = l->dev->reach(l->dev, &packed, narrow, false);
    if (whole) l->last = (Packed){*one, p, n};
    return p;
}
static void send_to(WireLanes *l, const WireMove *m, int64_t rank, int64_t place, Items *to) {
    int64_t n = pieces_count(&m->x, rank), es = wire_element(m);
    for (int64_t i = 0; i < n; i++) {
        Piece one = pieces_at(&m->x, rank, i);
        if (one.rank != m->e->wire->self || !wire_hands_in(m, rank, &one)) continue;
        Arena *tmp = arena_new();
        Ours x = part_for(m, &one, rank, tmp);
        int64_t count = wire_count(&x.what);
        if (count && x.src.p) {
            add(to, peer_of(l, m, place), count * es, to_be_sent(l, m, &x, &one));
            took_now(l->tooks)->sent[rank] += count * es;
        }
        arena_free(tmp);
    }
}

/* ---- receiving ---- */
static bool comes(const WireMove *m, const Piece *one) {
    const int64_t self = m->e->wire->self;
    return one->rank != self && wire_hands_in(m, self, one);
}
/* Which elements of piece i come. */
static Region part_of(const WireLanes *l, const WireMove *m, int64_t i, Arena *arena) {
    const int64_t self = m->e->wire->self;
    Piece one = pieces_at(&m->x, self, i);
    Region from = pieces_from(&m->x, &one, arena), to = pieces_to(&m->x, self, arena);
    if (l->own) region_clamp(&from, l->own[i].n);
    return region_meet(&to, &from, arena);
}
static void receive_from(WireLanes *l, const WireMove *m, int64_t rank, int64_t place, Items *in) {
    int64_t es = wire_element(m);
    for (int64_t i = 0; i < l->n; i++) {
        Piece one = pieces_at(&m->x, m->e->wire->self, i);
        if (one.rank != rank || !comes(m, &one) || (l->own && !l->own[i].count)) continue;
        Arena *tmp = arena_new();
        Region at = part_of(l, m, i, tmp);
        Tensor t = region_packed(&at);
        int64_t count = tensor_count(&t);
        if (count) {
            t.p = lend(l, m, count);
            add(in, peer_of(l, m, place), count * es,
                l->dev->reach(l->dev, &t, wire_narrow(m), true));
            l->part[i] = t;
        }
        arena_free(tmp);
    }
}

/* ---- sizes, where layouts may not say them: a list's rows, planted mistakes ---- */
static void heads_for(const WireMove *m, int64_t rank, Items *to) {
    int64_t n = pieces_count(&m->x, rank);
    for (int64_t i = 0; i < n; i++) {
        Piece one = pieces_at(&m->x, rank, i);
        if (one.rank != m->e->wire->self || !wire_hands_in(m, rank, &one)) continue;
        Arena *tmp = arena_new();
        PieceHead *head = memset(base_malloc(sizeof *head), 0, sizeof *head);
        Ours x = part_for(m, &one, rank, tmp);
        head->count = x.src.p ? wire_count(&x.what) : 0;
        memcpy(head->n, x.src.n, sizeof head->n);
        add(to, rank, sizeof *head, head);
        arena_free(tmp);
    }
}
static void share_heads(WireLanes *l, const WireMove *m) {
    const AxisList *axes = wire_peers(m);
    const int64_t members = mesh_size(m->x.m, axes), self = m->e->wire->self;
    Items to = {0}, in = {0};
    l->own = memset(base_malloc(base_mul((size_t)l->n + 1, sizeof *l->own)), 0,
                    (size_t)(l->n + 1) * sizeof *l->own);
    for (int64_t k = 0; k < members; k++) {
        int64_t rank = mesh_member(m->x.m, axes, self, k);
        if (rank == self) continue;
        heads_for(m, rank, &to);
        for (int64_t i = 0; i < l->n; i++) {
            Piece one = pieces_at(&m->x, self, i);
            if (one.rank == rank && comes(m, &one)) add(&in, rank, sizeof *l->own, &l->own[i]);
        }
    }
    l->engine->exchange(l->engine, NULL, to.item, to.n, in.item, in.n);
    for (int i = 0; i < to.n; i++) free(to.item[i].p);
    free(to.item);
    free(in.item);
}

/* ---- a move ---- */
void wire_lanes_bring(WireLanes *l, const WireMove *m, int group, bool sums) {
    const AxisList *axes = wire_peers(m);
    const int64_t members = mesh_size(m->x.m, axes), self = m->e->wire->self;
    Items to = {0}, in = {0};
    took_moves(l->tooks);
    l->n = sums ? 0 : pieces_count(&m->x, self);
    if (l->heads && !sums) share_heads(l, m);
    l->part = memset(base_malloc(base_mul((size_t)l->n + 1, sizeof *l->part)), 0,
                     (size_t)(l->n + 1) * sizeof *l->part);
    l->on.group = group;
    l->on.stream =
        l->dev->lane(l->dev, group < 0 || group >= GPU_LANES - 2 ? GPU_LANES - 1 : group + 1);
    l->open = true;
    if (sums) return;
    for (int64_t k = 0; k < members; k++) {
        int64_t rank = mesh_member(m->x.m, axes, self, k);
        if (rank == self) continue;
        send_to(l, m, rank, k, &to);
        receive_from(l, m, rank, k, &in);
    }
    double asleep = clock_seconds();
    l->engine->exchange(l->engine, &l->on, to.item, to.n, in.item, in.n);
    took_now(l->tooks)->wait += clock_seconds() - asleep;
    free(to.item);
    free(in.item);
}
Tensor wire_lanes_piece(WireLanes *l, const WireMove *m, int64_t i, Region *at, Arena *arena) {
    if (!l->part || !l->part[i].p) return (Tensor){0};
    *at = part_of(l, m, i, arena);
    return l->part[i];
}
void wire_lanes_spent(WireLanes *l) {
    while (l->n_lent) l->dev->release(l->dev, l->lent[--l->n_lent]);
    free(l->part);
    free(l->own);
    l->part = NULL;
    l->own = NULL;
    l->last = (Packed){0};
    if (l->open) l->dev->lane(l->dev, 0);
    l->open = false;
}

/* ---- sums by the engine ---- */
/* Our block cut for each member of the group, one part behind the other at `out`. */
static void cut_for_each(WireLanes *l, const WireMove *m, Block own, int64_t *each, char *out) {
    const AxisList *axes = &m->x.act.axes;
    int64_t n = mesh_size(m->x.m, axes);
    for (int64_t k = 0; k < n; k++) {
        Arena *tmp = arena_new();
        int64_t rank = mesh_member(m->x.m, axes, m->e->wire->self, k);
        Region to = pieces_to(&m->x, rank, tmp), both = region_meet(&to, own.has, tmp);
        Tensor part = region_packed(&both);
        part.p = out;
        each[k] = tensor_count(&part);
        if (each[k]) l->dev->copy(l->dev, (Block){&both, &part}, own, m->dt, COMBINE_COPY);
        out += each[k] * dtype_size(m->dt);
        arena_free(tmp);
    }
}
void wire_lanes_reduce(WireLanes *l, const WireMove *m, const Region *to, Tensor *out) {
    Device *dev = l->dev;
    Arena *tmp = arena_new();
    const int64_t self = m->e->wire->self, members = mesh_size(m->x.m, &m->x.act.axes);
    const bool cut = move_cuts(m->x.act.kind);
    Piece one = {self, self};
    Region at;
    Tensor own = transfer_piece(m, &one, &at, tmp);
    Region all = cut ? region_meet(to, &at, tmp) : at;
    Tensor whole = region_packed(&all), packed = region_packed(&at);
    const int64_t total = tensor_count(&packed), got = tensor_count(&whole);
    int64_t *each = ARENA_ARRAY(tmp, int64_t, members);
    packed.p = lend(l, m, total);
    whole.p = lend(l, m, got);
    if (cut) cut_for_each(l, m, (Block){&at, &own}, each, packed.p);
    else if (total) dev->copy(dev, (Block){&at, &packed}, (Block){&at, &own}, m->dt, COMBINE_COPY);
    EngineSum s = {.group = l->on.group,
                   .number = m->dt == DT_F32 ? ENGINE_F32 : ENGINE_F64,
                   .max = m->x.act.combine == COMBINE_MAX,
                   .mine = total ? dev->reach(dev, &packed, false, false) : NULL,
                   .out = got ? dev->reach(dev, &whole, false, true) : NULL,
                   .n = total,
                   .each = cut ? each : NULL};
    double asleep = clock_seconds();
    l->engine->sum(l->engine, &l->on, &s);
    took_now(l->tooks)->wait += clock_seconds() - asleep;
    took_now(l->tooks)->given = total * dtype_size(m->dt);
    if (got) dev->copy(dev, (Block){to, out}, (Block){&all, &whole}, m->dt, COMBINE_COPY);
    arena_free(tmp);
}

/* ---- begin and end ---- */
static void settle(void *arg) {
    Engine *e = ((WireLanes *)arg)->engine;
    e->settle(e);
}
void wire_lanes_settle(WireLanes *l) {
    double asleep = clock_seconds();
    settle(l);
    took_now(l->tooks)->wait += clock_seconds() - asleep;
}
static bool sizes_vary(const Program *p) {
    bool vary = false;
    for (int i = 0; i < p->ns; i++) vary |= p->step[i].act != NULL;
    for (int v = 0; v < p->nv; v++) vary |= p->val[v].act != NULL || p->val[v].list >= 0;
    return vary;
}
WireLanes *wire_lanes_new(Engine *engine, const Program *p, Device *dev, Tooks *tooks) {
    if (!dev->lane || !engine->settle) return NULL;
    WireLanes *l = base_malloc(sizeof *l);
    *l = (WireLanes){
        .engine = engine, .dev = dev, .tooks = tooks, .heads = !dev->sizes_only && sizes_vary(p)};
    dev->settles(dev, settle, l);
    return l;
}
void wire_lanes_free(WireLanes *l) {
    if (!l) return;
    wire_lanes_spent(l);
    l->dev->settles(l->dev, NULL, NULL);
    free(l->lent);
    free(l);
}
