/* All ranks' blocks in the process that checks, as the ranks have sent them. The keys of the
 * virtual wire say who would share a block there; whether the bytes are really the same is looked
 * at here. So whatever looks at an executor finds in this one what it would find in a virtual run.
 */
#include "exec/wire_told.h"
#include "exec/store.h"
#include "exec/tuplemap.h"
#include <stdlib.h>
#include <string.h>

typedef struct {
    int64_t nd, n[LAYOUT_MAX_DIMS];
    FarHead head; /* the block stays where it is */
} Shape;
struct WireTold {
    Wire w; /* first: a Wire is one of these */
    int64_t ranks;
    Tensor *block; /* per rank: what was told last, packed; p owned until it is taken; a rank that
                      holds nothing of a value has told nothing */
    Device *host;  /* of which p is memory */
    Far *far;      /* large blocks stay with their ranks; NULL: all are sent */
};

/* ---- telling ---- */
static Shape shape_of(const Tensor *t) {
    Shape s = {.nd = t->nd, .head = {.id = -1}};
    memcpy(s.n, t->n, sizeof s.n);
    return s;
}
static Tensor shaped(const Shape *s) {
    Tensor t = {.nd = (int)s->nd};
    memcpy(t.n, s->n, sizeof t.n);
    tensor_pack(&t);
    return t;
}
/* Packed, in memory of the host that the caller releases. */
static Tensor packed_copy(const Exec *e, const Tensor *of, Dtype dt) {
    Tensor host = e->dev->get(e->dev, of, dt), out = *of;
    Region r = region_plain(of);
    tensor_pack(&out);
    out.p = device_array(e->host, tensor_count(&out), dtype_size(dt));
    if (tensor_count(&out)) region_copy((Block){&r, &out}, (Block){&r, &host}, dt, COMBINE_COPY);
    e->dev->done(e->dev, &host);
    return out;
}
static void tell(Engine *engine, const Shape *s, const Tensor *t, int64_t bytes) {
    EngineItem head = {0, sizeof *s, (void *)(uintptr_t)s}, data = {0, bytes, t->p};
    engine->tell(engine, &head, 1, NULL, 0);
    if (s->head.id < 0) engine->tell(engine, &data, 1, NULL, 0);
}
/* A block that lies packed is sent from where it lies: it may be as large as all else that the rank
 * holds. */
static void tell_held(Engine *engine, const Exec *own, int val, const Local *l) {
    const Tensor *held = &l->t;
    Dtype dt = exec_dtype(own, val);
    Tensor host = own->dev->get(own->dev, held, dt), packed = host;
    int64_t bytes = tensor_count(&host) * dtype_size(dt);
    Shape s = shape_of(&host);
    tensor_pack(&packed);
    bool lies = memcmp(packed.s, host.s, sizeof *host.s * (size_t)host.nd) == 0;
    if (!lies) packed = packed_copy(own, held, dt);
    if (far_stays(own, val, bytes)) s.head = far_keep(own->far, l, &packed, dt);
    tell(engine, &s, &packed, bytes);
    if (!lies) own->host->release(own->host, packed.p);
    own->dev->done(own->dev, &host);
}
/* Of what was told, what nobody took: another rank's block has its bytes, or the step only gave its
 * input another name. */
static void forget(WireTold *o) {
    for (int64_t r = 0; r < o->ranks; r++) {
        if (o->block[r].p) o->host->release(o->host, o->block[r].p);
        o->block[r].p = NULL;
    }
}
static void hear(WireTold *o, Engine *engine, const Exec *own, int val) {
    int n = 0, sent = 0;
    int64_t es = dtype_size(exec_dtype(own, val));
    Shape *s = base_malloc(base_mul((size_t)o->ranks, sizeof *s));
    EngineItem *from = base_malloc(base_mul((size_t)o->ranks, sizeof *from));
    for (int64_t r = 1; r < o->ranks; r++)
        if (exec_holds(own, val, r)) from[n++] = (EngineItem){r, sizeof *s, &s[r]};
    engine->tell(engine, NULL, 0, from, n);
    for (int k = 0; k < n; k++) {
        int64_t r = from[k].peer;
        Tensor *t = &o->block[r];
        *t = shaped(&s[r]);
        int64_t bytes = tensor_count(t) * es;
        if (s[r].head.id >= 0) t->p = far_block(o->far, r, &s[r].head, bytes);
        else {
            t->p = device_array(own->host, tensor_count(t), es);
            from[sent++] = (EngineItem){r, bytes, t->p};
        }
    }
    engine->tell(engine, NULL, 0, from, sent);
    free(from);
    free(s);
}
void wire_tell(WireTold *o, Engine *engine, const Exec *own, int val) {
    Dtype dt = exec_dtype(own, val);
    const Local *held = exec_local(own, val, engine->rank);
    if (!o) {
        if (held) tell_held(engine, own, val, held);
        return;
    }
    forget(o);
    if (held) o->block[0] = packed_copy(own, &held->t, dt);
    hear(o, engine, own, val);
}

/* ---- taking ---- */
static bool same(Exec *e, const Local *l, const Tensor *t, Dtype dt) {
    if (l->t.nd != t->nd || memcmp(l->t.n, t->n, sizeof *t->n * (size_t)t->nd) != 0) return false;
    if (far_rank(e, &l->t) >= 0 || far_rank(e, t) >= 0) return far_alike(e, &l->t, t, dt);
    Tensor host = e->dev->get(e->dev, &l->t, dt);
    size_t bytes = (size_t)(tensor_count(t) * dtype_size(dt));
    bool equal = !bytes || !memcmp(host.p, t->p, bytes);
    e->dev->done(e->dev, &host);
    return equal;
}
static Local take(WireTold *o, Exec *e, int val, int64_t rank) {
    Dtype dt = exec_dtype(e, val);
    Tensor *t = &o->block[rank];
    int64_t bytes = tensor_count(t) * dtype_size(dt);
    Local l = {.rank = rank, .key = store_key(e->p->mesh, &e->p->val[val].L, rank), .t = *t};
    if (e->dev == o->host) l.buf = store_buf_adopt(e, t->p, bytes);
    else {
        l.buf = store_buf_new(e, bytes);
        l.t.p = l.buf->p;
        e->dev->put(e->dev, &l.t, t, dt);
        o->host->release(o->host, t->p);
    }
    t->p = NULL;
    return l;
}
static bool share(Wire *w, Exec *e, int out, const WireBlocks *b) {
    WireTold *o = (WireTold *)w;
    Store *st = store_open(e, out);
    Dtype dt = exec_dtype(e, out);
    TupleMap map;
    tuplemap_open(&map, b->width);
    for (int64_t rank = 0; rank < o->ranks; rank++) {
        int64_t key[WIRE_MAX_KEY];
        bool fresh;
        if (!exec_holds(e, out, rank)) continue;
        b->key(b->arg, rank, key);
        int *at = tuplemap_find(&map, key, &fresh);
        if (!fresh && same(e, &st->l[*at], &o->block[rank], dt)) {
            st->which[rank] = (uint32_t)*at;
            continue;
        }
        int own = store_add(st, take(o, e, out, rank));
        if (fresh) *at = own;
        st->which[rank] = (uint32_t)own;
    }
    tuplemap_close(&map);
    forget(o);
    return true;
}
static void which_key(void *arg, int64_t rank, int64_t *key) { *key = ((uint32_t *)arg)[rank]; }
void wire_told_again(Exec *e, int val) {
    size_t bytes = base_mul((size_t)e->p->mesh->nranks, sizeof(uint32_t));
    uint32_t *which = base_malloc(bytes);
    memcpy(which, exec_store(e, val)->which, bytes);
    WireBlocks b = {.width = 1, .key = which_key, .arg = which};
    e->wire->share(e->wire, e, val, &b);
    free(which);
}

WireTold *wire_told_new(int64_t ranks, Device *host, Far *far) {
    WireTold *o = base_malloc(sizeof *o);
    *o = (WireTold){
        .w = {.self = -1, .told = true, .share = share}, .ranks = ranks, .host = host, .far = far};
    size_t bytes = base_mul((size_t)ranks, sizeof *o->block);
    o->block = memset(base_malloc(bytes), 0, bytes);
    return o;
}
void wire_told_free(WireTold *o) {
    if (o) forget(o);
    if (o) free(o->block);
    free(o);
}
Wire *wire_told(WireTold *o) { return &o->w; }
