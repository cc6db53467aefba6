/* One rank in this process, the others behind an engine. What a move needs of them is what its
 * pieces say (pieces.h): each rank sends to every other the elements that both its piece and the
 * other's block have, and both compute which those are. It knows no kind of move. */
#include "exec/wire_own.h"
#include "base/clock.h"
#include "exec/narrow.h"
#include "exec/store.h"
#include "exec/transfer.h"
#include "exec/wire_lanes.h"
#include "kernel/bf16.h"
#include <stdlib.h>
#include <string.h>

enum { MAX_TEXT = 256, MAX_GROUPS = 16 };

struct WireOwn {
    Wire w; /* first: a Wire is one of these */
    Engine *engine;
    const Mesh *mesh;
    bool sums;
    bool alone; /* nobody is asked whether a step was done everywhere */
    int64_t stuck;
    Tooks *tooks;     /* what each step takes */
    WireLanes *lanes; /* where blocks lie on a GPU that the engine reaches; else NULL */
    char *in;         /* what has arrived for the move that is made */
    char **head;      /* per piece of its block: where it is in `in`; NULL: nothing of it comes */
    struct {
        AxisList axes;
        int id;
    } group[MAX_GROUPS]; /* for sums by the engine, and lanes */
    int n_groups;
};

/* ---- blocks ---- */
/* The block of a rank's index list, [rows, 1, ...], with these rows. */
static void add_list(WireOwn *o, Exec *e, int val, int64_t rank, int64_t rows, int64_t *ids) {
    const Val *v = &e->p->val[val];
    Arena *tmp = arena_new();
    DimIndex some = {.range = true, .n = rows};
    Region at = region_rows(o->mesh, &e->p->graph->t[v->tensor], &v->L, rank, some, tmp);
    Local l = {.rank = rank, .t = region_packed(&at), .key = store_key(o->mesh, &v->L, rank)};
    arena_free(tmp);
    l.buf = store_buf_new(e, tensor_count(&l.t) * 8);
    Tensor host = l.t;
    l.t.p = l.buf->p;
    host.p = ids;
    e->dev->put(e->dev, &l.t, &host, DT_I64);
    Store *st = exec_store(e, val);
    st->which[rank] = (uint32_t)store_add(st, l);
}
/* So many, where there are sizes only. */
static int64_t rows_expected(const Exec *e, int val, int64_t rank) {
    const Val *v = &e->p->val[val];
    const GTensor *t = &e->p->graph->t[v->tensor];
    int64_t local[LAYOUT_MAX_DIMS];
    layout_local(e->p->mesh, &v->L, t->size, rank, local);
    return graph_rows(t, local);
}
/* Which rows each rank has is known to all: they say what is in the messages. So an index list is
 * held for every rank, also by those that have none themselves. */
static void share_list(WireOwn *o, Exec *e, int val) {
    Engine *engine = o->engine;
    size_t ranks = (size_t)engine->ranks;
    int64_t *rows = base_malloc(base_mul(ranks, sizeof *rows)), mine = 0;
    EngineItem *to = base_malloc(base_mul(ranks, sizeof *to)),
               *from = base_malloc(base_mul(ranks, sizeof *from));
    bool holds = exec_holds(e, val, engine->rank);
    Tensor own = {0};
    if (holds) own = e->dev->get(e->dev, &exec_store(e, val)->l[0].t, DT_I64); /* packed */
    if (holds) mine = own.n[0];
    int n_to = 0, n_from = 0;
    for (int64_t r = 0; r < engine->ranks; r++) {
        if (r == engine->rank) continue;
        if (holds) to[n_to++] = (EngineItem){r, sizeof mine, &mine};
        if (exec_holds(e, val, r)) from[n_from++] = (EngineItem){r, sizeof mine, &rows[r]};
    }
    engine->exchange(engine, NULL, to, n_to, from, n_from);
    for (int k = 0; k < n_from && e->dev->sizes_only; k++)
        rows[from[k].peer] = rows_expected(e, val, from[k].peer);
    for (int k = 0; k < n_to; k++) to[k] = (EngineItem){to[k].peer, mine * 8, own.p};
    for (int k = 0; k < n_from; k++) {
        int64_t r = from[k].peer;
        from[k] = (EngineItem){r, rows[r] * 8, base_malloc(base_mul((size_t)rows[r] + 1, 8))};
    }
    engine->exchange(engine, NULL, to, n_to, from, n_from);
    for (int k = 0; k < n_from; k++) {
        add_list(o, e, val, from[k].peer, rows[from[k].peer], from[k].p);
        free(from[k].p);
    }
    if (holds) e->dev->done(e->dev, &own);
    free(rows);
    free(to);
    free(from);
}
/* Which value is made: for the others, should this rank be lost. */
static void at_value(WireOwn *o, int val) {
    __atomic_store_n(&o->engine->at, (int64_t)val + 1, __ATOMIC_RELAXED);
}
static bool share(Wire *w, Exec *e, int out, const WireBlocks *b) {
    Store *st = store_open(e, out);
    Local l = {.rank = w->self};
    at_value((WireOwn *)w, out);
    if (exec_holds(e, out, w->self)) {
        if (!b->make(b->arg, w->self, &l)) return false;
        st->which[w->self] = (uint32_t)store_add(st, l);
    }
    if (e->p->val[out].list == out) {
        if (b->ready) b->ready(b->arg);
        share_list((WireOwn *)w, e, out);
    }
    return true;
}
static bool agree(Wire *w, Exec *e, bool done) {
    WireOwn *o = (WireOwn *)w;
    Engine *engine = o->engine;
    if (o->alone) return done;
    if (o->lanes) wire_lanes_settle(o->lanes);
    took_end(o->tooks);
    int64_t first = engine->least(engine, done ? engine->ranks : w->self);
    o->stuck = first < engine->ranks ? first : -1;
    if (o->stuck < 0) return true;
    char text[MAX_TEXT] = "";
    EngineItem *to = base_malloc(base_mul((size_t)engine->ranks, sizeof *to)),
               from = {first, sizeof text, text};
    int n = 0;
    if (e->stuck) snprintf(text, sizeof text, "%s", e->stuck);
    for (int64_t r = 0; r < engine->ranks; r++)
        if (r != first) to[n++] = (EngineItem){r, sizeof text, text};
    if (w->self == first) engine->tell(engine, to, n, NULL, 0);
    else engine->tell(engine, NULL, 0, &from, 1);
    free(to);
    e->stuck = *text ? arena_strdup(e->arena, text) : NULL;
    return false;
}

/* ---- pieces ---- */
static int64_t group_of(WireOwn *o, const AxisList *axes) {
    Engine *e = o->engine;
    for (int i = 0; i < o->n_groups; i++)
        if (mesh_same_axes(&o->group[i].axes, axes)) return o->group[i].id;
    if (o->n_groups == MAX_GROUPS) return -1;
    bool in = mesh_takes_part(o->mesh, axes, e->rank); /* else alone: all ranks make groups */
    int id = e->group(e, in ? mesh_member(o->mesh, axes, e->rank, 0) : e->rank,
                      in ? mesh_index_in(o->mesh, axes, e->rank) : 0);
    o->group[o->n_groups].axes = *axes;
    return o->group[o->n_groups++].id = id;
}
static bool by_engine(WireOwn *o, const WireMove *m) {
    bool plain =
        !m->s->act && !m->x.e && m->e->modulus == 0 && (m->dt == DT_F32 || m->dt == DT_F64);
    return o->sums && plain && move_reduces(m->x.act.kind) && group_of(o, &m->x.act.axes) >= 0;
}
/* Writes a piece of ours for `rank` to `out` (NULL: only asks for its room), and counts what is in
 * it; bytes of it. */
static int64_t write_piece(WireOwn *o, const WireMove *m, const Piece *one, int64_t rank,
                           char *out) {
    Arena *tmp = arena_new();
    Device *dev = m->e->dev;
    PieceHead head = {0};
    Region at, most = wire_most(m, one, rank, tmp), to = pieces_to(&m->x, rank, tmp);
    int64_t es = wire_element(m), n = wire_count(&most),
            room = n ? (int64_t)sizeof head + n * es : 0;
    if (out && room) {
        memset(out, 0, (size_t)room);
        Tensor src = transfer_piece(m, one, &at, tmp), host = dev->get(dev, &src, m->dt);
        Region both = region_meet(&to, &at, tmp);
        Tensor packed = region_packed(&both);
        char *data = out + sizeof head;
        packed.p = wire_narrow(m) ? arena_alloc(tmp, base_mul((size_t)n + 1, sizeof(float))) : data;
        if (tensor_count(&host) && tensor_count(&packed))
            head.count =
                region_copy((Block){&both, &packed}, (Block){&at, &host}, m->dt, COMBINE_COPY);
        if (wire_narrow(m)) bf16_round_f32(tensor_count(&packed), packed.p);
        for (int64_t i = 0; wire_narrow(m) && i < tensor_count(&packed) && head.count; i++) {
            uint16_t h = bf16_bits(((const float *)packed.p)[i]);
            memcpy(data + i * es, &h, sizeof h);
        }
        took_now(o->tooks)->sent[rank] += head.count * es;
        memcpy(head.n, src.n, sizeof head.n);
        memcpy(out, &head, sizeof head);
        dev->done(dev, &host);
    }
    arena_free(tmp);
    return room;
}
/* What we hand in to the block of `rank`, one piece after the other. */
static int64_t write_all(WireOwn *o, const WireMove *m, int64_t rank, char *out) {
    int64_t n = pieces_count(&m->x, rank), bytes = 0;
    for (int64_t i = 0; i < n; i++) {
        Piece one = pieces_at(&m->x, rank, i);
        if (one.rank == o->w.self && wire_hands_in(m, rank, &one))
            bytes += write_piece(o, m, &one, rank, out ? out + bytes : NULL);
    }
    return bytes;
}
/* Room for what comes from each rank; *items of `from`, in the order of ranks in the group. */
static int make_inbox(WireOwn *o, const WireMove *m, EngineItem *from) {
    const Pieces *x = &m->x;
    int64_t self = o->w.self, n = pieces_count(x, self), es = wire_element(m), all = 0;
    const AxisList *axes = wire_peers(m);
    int64_t members = mesh_size(x->m, axes), items = 0;
    int64_t *room = base_malloc(base_mul((size_t)n + 1, sizeof *room));
    Arena *tmp = arena_new();
    o->head = base_malloc(base_mul((size_t)n + 1, sizeof *o->head));
    for (int64_t i = 0; i < n; i++) {
        Piece one = pieces_at(x, self, i);
        int64_t k = 0;
        if (one.rank != self && wire_hands_in(m, self, &one)) {
            Region most = wire_most(m, &one, self, tmp);
            k = wire_count(&most);
        }
        room[i] = k ? (int64_t)sizeof(PieceHead) + k * es : 0;
        all += room[i];
    }
    char *at = o->in = base_malloc((size_t)all + 1);
    for (int64_t k = 0; k < members; k++) {
        int64_t rank = mesh_member(x->m, axes, self, k);
        EngineItem item = {rank, 0, at};
        for (int64_t i = 0; i < n; i++) {
            if (pieces_at(x, self, i).rank != rank) continue;
            o->head[i] = room[i] ? at + item.bytes : NULL;
            item.bytes += room[i];
        }
        at += item.bytes;
        if (item.bytes) from[items++] = item;
    }
    free(room);
    arena_free(tmp);
    return (int)items;
}
/* A gather sends the same to all: it is held once. */
static void share_last(EngineItem *to, int n) {
    if (n < 2 || to[n - 1].bytes != to[n - 2].bytes) return;
    if (memcmp(to[n - 1].p, to[n - 2].p, (size_t)to[n - 1].bytes) != 0) return;
    free(to[n - 1].p);
    to[n - 1].p = to[n - 2].p;
}
static void bring(Wire *w, const WireMove *m) {
    WireOwn *o = (WireOwn *)w;
    const AxisList *axes = wire_peers(m);
    Engine *engine = o->engine;
    at_value(o, m->s->out);
    if (!wire_joins(m)) return;
    if (o->lanes) wire_lanes_bring(o->lanes, m, (int)group_of(o, axes), by_engine(o, m));
    if (o->lanes || by_engine(o, m)) return;
    int64_t n = mesh_size(o->mesh, axes), bytes;
    EngineItem *to = base_malloc(base_mul((size_t)n, sizeof *to)),
               *from = base_malloc(base_mul((size_t)n, sizeof *from));
    took_moves(o->tooks);
    int n_to = 0, n_from = make_inbox(o, m, from);
    for (int64_t k = 0; k < n; k++) {
        int64_t rank = mesh_member(o->mesh, axes, w->self, k);
        if (rank == w->self || !(bytes = write_all(o, m, rank, NULL))) continue;
        to[n_to] = (EngineItem){rank, bytes, base_malloc((size_t)bytes)};
        write_all(o, m, rank, to[n_to++].p);
        share_last(to, n_to);
    }
    double asleep = clock_seconds();
    engine->exchange(engine, NULL, to, n_to, from, n_from);
    took_now(o->tooks)->wait += clock_seconds() - asleep;
    for (int k = 0; k < n_to; k++)
        if (!k || to[k].p != to[k - 1].p) free(to[k].p);
    free(to);
    free(from);
}
static void spent(Wire *w) {
    WireOwn *o = (WireOwn *)w;
    if (o->lanes) wire_lanes_spent(o->lanes);
    free(o->in);
    free(o->head);
    o->in = NULL;
    o->head = NULL;
}
static Tensor piece(Wire *w, const WireMove *m, int64_t i, Region *at, Arena *arena) {
    const WireOwn *o = (WireOwn *)w;
    Piece one = pieces_at(&m->x, w->self, i);
    PieceHead head;
    if (o->lanes) return wire_lanes_piece(o->lanes, m, i, at, arena);
    if (!o->head || !o->head[i]) return (Tensor){0};
    memcpy(&head, o->head[i], sizeof head);
    if (!head.count) return (Tensor){0};
    Region from = pieces_from(&m->x, &one, arena), to = pieces_to(&m->x, w->self, arena);
    region_clamp(&from, head.n);
    *at = region_meet(&to, &from, arena);
    Tensor t = region_packed(at);
    t.p = o->head[i] + sizeof head;
    if (!wire_narrow(m)) return t;
    float *wide = arena_alloc(arena, base_mul((size_t)tensor_count(&t) + 1, sizeof *wide));
    for (int64_t k = 0; k < tensor_count(&t); k++) {
        uint16_t h;
        memcpy(&h, (const char *)t.p + k * (int64_t)sizeof h, sizeof h);
        wide[k] = bf16_value(h);
    }
    t.p = wide;
    return t;
}

/* ---- sums by the engine ---- */
/* Our block cut for each member of the group, one part behind the other. */
static void cut_for_each(const WireMove *m, const Region *at, const Tensor *own, int64_t *each,
                         char *out) {
    const AxisList *axes = &m->x.act.axes;
    int64_t n = mesh_size(m->x.m, axes);
    for (int64_t k = 0; k < n; k++) {
        Arena *tmp = arena_new();
        int64_t rank = mesh_member(m->x.m, axes, m->e->wire->self, k);
        Region to = pieces_to(&m->x, rank, tmp), both = region_meet(&to, at, tmp);
        Tensor part = region_packed(&both);
        part.p = out;
        each[k] = tensor_count(&part);
        if (each[k]) region_copy((Block){&both, &part}, (Block){at, own}, m->dt, COMBINE_COPY);
        out += each[k] * dtype_size(m->dt);
        arena_free(tmp);
    }
}
static bool reduce(Wire *w, const WireMove *m, const Region *to, Tensor *out) {
    WireOwn *o = (WireOwn *)w;
    if (!wire_joins(m) || !by_engine(o, m)) return false;
    if (o->lanes) {
        wire_lanes_reduce(o->lanes, m, to, out);
        return true;
    }
    Device *dev = m->e->dev;
    Arena *tmp = arena_new();
    Piece one = {w->self, w->self};
    Region at;
    Tensor own = transfer_piece(m, &one, &at, tmp), host = dev->get(dev, &own, m->dt);
    int64_t es = dtype_size(m->dt), n = mesh_size(o->mesh, &m->x.act.axes),
            total = tensor_count(&own);
    int64_t *each = base_malloc(base_mul((size_t)n, sizeof *each));
    bool cut = move_cuts(m->x.act.kind);
    char *mine = base_malloc((size_t)(total * es) + 1),
         *sum = base_malloc((size_t)(total * es) + 1);
    Region all = cut ? region_meet(to, &at, tmp) : at;
    Tensor whole = region_packed(&all), packed = region_packed(&at);
    packed.p = mine;
    whole.p = sum;
    if (cut) cut_for_each(m, &at, &host, each, mine);
    else if (total) region_copy((Block){&at, &packed}, (Block){&at, &host}, m->dt, COMBINE_COPY);
    EngineSum s = {.group = (int)group_of(o, &m->x.act.axes),
                   .number = m->dt == DT_F32 ? ENGINE_F32 : ENGINE_F64,
                   .max = m->x.act.combine == COMBINE_MAX,
                   .mine = mine,
                   .out = sum,
                   .n = total,
                   .each = cut ? each : NULL};
    double asleep = clock_seconds();
    o->engine->sum(o->engine, NULL, &s);
    took_now(o->tooks)->wait += clock_seconds() - asleep;
    took_now(o->tooks)->given = total * es;
    if (tensor_count(&whole))
        dev->copy(dev, (Block){to, out}, (Block){&all, &whole}, m->dt, COMBINE_COPY);
    dev->done(dev, &host);
    free(each);
    free(mine);
    free(sum);
    arena_free(tmp);
    return true;
}

WireOwn *wire_own_new(Engine *engine, const Program *p, Device *dev, bool sums) {
    WireOwn *o = base_malloc(sizeof *o);
    *o = (WireOwn){.w = {.self = engine->rank,
                         .share = share,
                         .bring = bring,
                         .spent = spent,
                         .piece = piece,
                         .agree = agree,
                         .reduce = reduce},
                   .engine = engine,
                   .mesh = p->mesh,
                   .tooks = took_new(engine, p),
                   .sums = sums,
                   .stuck = -1};
    o->lanes = wire_lanes_new(engine, p, dev, o->tooks);
    return o;
}
void wire_own_free(WireOwn *o) {
    if (o) {
        spent(&o->w);
        wire_lanes_free(o->lanes);
        took_free(o->tooks);
    }
    free(o);
}
Wire *wire_own(WireOwn *o) { return &o->w; }
Tooks *wire_own_tooks(WireOwn *o) { return o->tooks; }
int64_t wire_own_stuck(const WireOwn *o) { return o->stuck; }
bool wire_own_goes_on(const WireOwn *o) { return o->lanes != NULL; }
void wire_own_alone(WireOwn *o, bool alone) {
    o->alone = alone;
    wire_lanes_settle(o->lanes);
}
