/* Blocks elsewhere, and questions about them. See far.h. */
#include "exec/far.h"
#include "exec/gpu_blocks.h"
#include "exec/store.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

/* What rank 0 says: a question, or that this meeting is over, followed by as many bytes. */
enum { GO = -1 };
typedef struct {
    int64_t what, id, bytes;
} Message;
typedef struct {
    int64_t rank;
    FarHead head;
} Away;
struct Far {
    Device d; /* first: rank 0's device is one of these */
    Device *host;
    Engine *engine;
    Exec *own;
    struct {
        FarAnswer *by;
        void *arg;
    } answer[FAR_QUESTIONS];
    /* rank 0 */
    GpuBlocks blocks; /* addresses of what is elsewhere; `host` of one is what was brought */
    Away *away;       /* where it is; as many as blocks.cap */
    int n_away, *brought, n_brought;
    struct {
        int64_t *id;
        int n, cap;
    } * over; /* per rank: blocks that nobody will ask for any more */
    bool open;
    /* the others: by number; p NULL: nobody asks for it any more */
    Local *kept;
    int64_t n_kept, cap_kept;
};
enum { SMALL = 512 }; /* bytes */

static void send(const Far *f, int64_t rank, const void *p, int64_t n) {
    EngineItem to = {rank, n, (void *)(uintptr_t)p};
    if (n) f->engine->tell(f->engine, &to, 1, NULL, 0);
}
static void receive(const Far *f, int64_t rank, void *p, int64_t n) {
    EngineItem from = {rank, n, p};
    if (n) f->engine->tell(f->engine, NULL, 0, &from, 1);
}
static void *room(Arena *arena, int64_t n) {
    return arena_alloc(arena, base_mul((size_t)n + 1, 1));
}
bool far_stays(const Exec *own, int val, int64_t bytes) {
    return own->far && bytes > SMALL && !exec_is_int(own, val);
}

/* ---- places ---- */
static FarBytes write_places(const FarPlaces *x, Dtype dt, Arena *arena) {
    int64_t n = 2 + x->nd, at = 2;
    for (int d = 0; d < x->nd; d++) n += x->n[d];
    int64_t *to = ARENA_ARRAY(arena, int64_t, n);
    to[0] = dt;
    to[1] = x->nd;
    for (int d = 0; d < x->nd; d++) to[at++] = x->n[d];
    for (int d = 0; d < x->nd; d++)
        for (int64_t i = 0; i < x->n[d]; i++) to[at++] = x->at[d][i];
    return (FarBytes){n * 8, to};
}
static FarPlaces read_places(FarBytes q, Dtype *dt) {
    int64_t *from = q.p, at = 2;
    FarPlaces x = {.nd = (int)from[1]};
    *dt = (Dtype)from[0];
    assert(x.nd >= 0 && x.nd <= LAYOUT_MAX_DIMS);
    for (int d = 0; d < x.nd; d++) x.n[d] = from[at++];
    for (int d = 0; d < x.nd; d++) x.at[d] = from + at, at += x.n[d];
    return x;
}
/* Where row i of the places begins; a row is the last dim. */
static int64_t row_at(const FarPlaces *x, int64_t i) {
    int64_t at = 0;
    for (int d = x->nd - 2; d >= 0; i /= x->n[d--]) at += x->at[d][i % x->n[d]];
    return at;
}
/* Of packed numbers that the host can read. What lies side by side is not copied: it may be as
 * large as all else that a rank holds. */
static Digest digest_of(const void *p, Dtype dt, const FarPlaces *some) {
    int64_t es = dtype_size(dt), rows = 1, row = some->nd ? some->n[some->nd - 1] : 1, none = 0;
    const int64_t *in_row = some->nd ? some->at[some->nd - 1] : &none;
    for (int d = 0; d + 1 < some->nd; d++) rows *= some->n[d];
    int64_t n = rows * row, first = n ? row_at(some, 0) + in_row[0] : 0;
    bool side = n > 0;
    for (int64_t k = 1; k < row && side; k++) side = in_row[k] == in_row[k - 1] + 1;
    bool all = side;
    for (int64_t i = 1; i < rows && all; i++) all = row_at(some, i) + in_row[0] == first + i * row;
    if (all || !n) return digest_bytes((const char *)p + first * es, (size_t)(n * es));
    char *copy = base_malloc(base_mul((size_t)n, (size_t)es)), *to = copy;
    for (int64_t i = 0; i < rows; i++) {
        const char *x = (const char *)p + row_at(some, i) * es;
        for (int64_t k = 0, step = side ? row : 1; k < row; k += step, to += step * es)
            memcpy(to, x + in_row[k] * es, (size_t)(step * es));
    }
    Digest x = digest_bytes(copy, (size_t)(n * es));
    free(copy);
    return x;
}

/* ---- the ranks that have the blocks ---- */
FarHead far_keep(Far *f, const Local *l, const Tensor *packed, Dtype dt) {
    int64_t n = tensor_count(packed);
    FarHead h = {f->n_kept, digest_bytes(packed->p, (size_t)(n * dtype_size(dt))),
                 digest_finite(packed->p, dt, n) == n};
    if (f->n_kept == f->cap_kept) {
        f->cap_kept = 2 * f->cap_kept + 64;
        f->kept = base_realloc(f->kept, base_mul((size_t)f->cap_kept, sizeof *f->kept));
    }
    f->kept[f->n_kept] = *l;
    f->kept[f->n_kept++].buf->refs++;
    return h;
}
/* A block of this rank, packed, for the host to read; from where it lies, if it lies so. */
static FarBytes packed_block(const Tensor *host, Dtype dt, Arena *arena) {
    Tensor packed = *host;
    Region box = region_plain(host);
    tensor_pack(&packed);
    FarBytes out = {tensor_count(host) * dtype_size(dt), host->p};
    if (!memcmp(packed.s, host->s, sizeof *host->s * (size_t)host->nd)) return out;
    packed.p = out.p = room(arena, out.n);
    region_copy((Block){&box, &packed}, (Block){&box, host}, dt, COMBINE_COPY);
    return out;
}
static FarBytes give_block(const Far *f, const Local *l, Dtype dt, Arena *arena) {
    Device *dev = f->own->dev;
    Tensor host = dev->get(dev, &l->t, dt);
    FarBytes out = packed_block(&host, dt, arena);
    if (dev != f->own->host) out.p = arena_memdup(arena, out.p, (size_t)out.n);
    dev->done(dev, &host);
    return out;
}
static FarBytes give_digest(const Far *f, const Local *l, FarBytes q, Arena *arena) {
    Device *dev = f->own->dev;
    Dtype dt;
    FarPlaces some = read_places(q, &dt);
    Tensor host = dev->get(dev, &l->t, dt);
    Digest x = digest_of(packed_block(&host, dt, arena).p, dt, &some);
    dev->done(dev, &host);
    return (FarBytes){sizeof x, arena_memdup(arena, &x, sizeof x)};
}
static FarBytes answer(const Far *f, const Message *m, FarBytes q, Arena *arena) {
    const Local *of = m->id < 0 ? NULL : &f->kept[m->id];
    assert(m->id < f->n_kept && (!of || of->buf));
    if (m->what == FAR_BLOCK) return give_block(f, of, (Dtype) * (int64_t *)q.p, arena);
    if (m->what == FAR_DIGEST) return give_digest(f, of, q, arena);
    return f->answer[m->what].by(f->answer[m->what].arg, of, q, arena);
}
static void let_go(Far *f, int64_t id) {
    assert(id >= 0 && id < f->n_kept && f->kept[id].buf);
    store_buf_drop(f->own, f->kept[id].buf);
    f->kept[id].buf = NULL;
}
static void serve(Far *f) {
    for (bool go = false; !go;) {
        Arena *tmp = arena_new();
        Message m = {0};
        receive(f, 0, &m, sizeof m);
        FarBytes q = {m.bytes, room(tmp, m.bytes)};
        receive(f, 0, q.p, q.n);
        go = m.what == GO;
        for (int64_t i = 0; go && i < q.n / 8; i++) let_go(f, ((int64_t *)q.p)[i]);
        if (!go) {
            FarBytes a = answer(f, &m, q, tmp);
            send(f, 0, &a.n, sizeof a.n);
            send(f, 0, a.p, a.n);
        }
        arena_free(tmp);
    }
}

/* ---- rank 0: memory ---- */
/* The block that an address is in; NULL: it is here. */
static GpuBlock *find(const Far *f, const void *p, size_t *offset) {
    return gpu_blocks_find(&f->blocks, p, offset);
}
static Away *away(const Far *f, const GpuBlock *b) { return &f->away[b - f->blocks.block]; }
void *far_block(Far *f, int64_t rank, const FarHead *h, int64_t bytes) {
    void *at = gpu_blocks_add(&f->blocks, f, (size_t)bytes); /* p is never followed */
    if (f->n_away < f->blocks.cap) {
        f->n_away = f->blocks.cap;
        f->away = base_realloc(f->away, base_mul((size_t)f->n_away, sizeof *f->away));
        f->brought = base_realloc(f->brought, base_mul((size_t)f->n_away, sizeof *f->brought));
    }
    size_t offset;
    *away(f, find(f, at, &offset)) = (Away){rank, *h};
    return at;
}
static void *far_alloc(Device *d, size_t n) {
    const Far *f = (Far *)d;
    return f->host->alloc(f->host, n);
}
static void far_release(Device *d, void *p) {
    Far *f = (Far *)d;
    size_t offset;
    GpuBlock *b = find(f, p, &offset);
    if (!b) {
        f->host->release(f->host, p);
        return;
    }
    int64_t rank = away(f, b)->rank;
    int n = f->over[rank].n;
    if (n == f->over[rank].cap) {
        f->over[rank].cap = 2 * n + 16;
        f->over[rank].id =
            base_realloc(f->over[rank].id, base_mul((size_t)f->over[rank].cap, sizeof(int64_t)));
    }
    f->over[rank].id[f->over[rank].n++] = away(f, b)->head.id;
    gpu_blocks_drop(&f->blocks, b);
}
static Message message_about(const Far *f, FarQuestion what, const GpuBlock *b) {
    return (Message){what, b ? away(f, b)->head.id : -1, 0};
}
static FarBytes ask(const Far *f, int64_t rank, Message m, FarBytes q, Arena *arena) {
    assert(f->open && rank > 0 && rank < f->engine->ranks);
    m.bytes = q.n;
    send(f, rank, &m, sizeof m);
    send(f, rank, q.p, q.n);
    FarBytes a = {0};
    receive(f, rank, &a.n, sizeof a.n);
    a.p = room(arena, a.n);
    receive(f, rank, a.p, a.n);
    return a;
}
/* Its numbers here, packed, until the next meeting. */
static char *bring(Far *f, GpuBlock *b, Dtype dt) {
    if (b->host) return b->host;
    Arena *tmp = arena_new();
    int64_t as = dt;
    FarBytes a =
        ask(f, away(f, b)->rank, message_about(f, FAR_BLOCK, b), (FarBytes){sizeof as, &as}, tmp);
    assert((size_t)a.n == b->bytes);
    b->host = base_malloc((size_t)a.n + 1);
    memcpy(b->host, a.p, (size_t)a.n);
    arena_free(tmp);
    f->brought[f->n_brought++] = (int)(b - f->blocks.block);
    return b->host;
}
static Tensor here(Far *f, const Tensor *t, Dtype dt) {
    size_t offset;
    GpuBlock *b = find(f, t->p, &offset);
    Tensor x = *t;
    if (b) x.p = bring(f, b, dt) + offset;
    return x;
}
static Tensor far_get(Device *d, const Tensor *t, Dtype dt) { return here((Far *)d, t, dt); }
static void far_done(Device *d, Tensor *host) { (void)d, (void)host; }
static void far_copy(Device *d, Block dst, Block src, Dtype dt, Combine how) {
    Tensor from = here((Far *)d, src.t, dt);
    region_copy(dst, (Block){src.has, &from}, dt, how);
}
static void far_call(Device *d, OpCall *c, int64_t n, DeviceKernel what, Pool *pool) {
    for (int64_t i = 0; i < n; i++) {
        OpCall call = device_fetch(d, &c[i]);
        ((Far *)d)->host->call(((Far *)d)->host, &call, 1, what, pool);
        device_fetched(d, &call);
    }
}

/* ---- rank 0: questions ---- */
static Far *far_of(const Exec *e) { return e->far && e->dev == &e->far->d ? e->far : NULL; }
/* The block elsewhere that the tensor is, whole and packed; NULL: it is something else. */
static GpuBlock *block_of(const Far *f, const Tensor *t, Dtype dt) {
    size_t offset;
    GpuBlock *b = f ? find(f, t->p, &offset) : NULL;
    Tensor packed = *t;
    tensor_pack(&packed);
    bool whole = b && !offset && (size_t)(tensor_count(t) * dtype_size(dt)) == b->bytes &&
                 !memcmp(packed.s, t->s, sizeof *t->s * (size_t)t->nd);
    return whole ? b : NULL;
}
int64_t far_rank(const Exec *e, const Tensor *t) {
    const Far *f = far_of(e);
    size_t offset;
    GpuBlock *b = f ? find(f, t->p, &offset) : NULL;
    return b ? away(f, b)->rank : -1;
}
bool far_finite(const Exec *e, const Tensor *t) {
    const Far *f = far_of(e);
    const GpuBlock *b = block_of(f, t, e->dtype);
    return b && away(f, b)->head.finite;
}
/* Of a packed block, here or elsewhere. */
static Digest digest_at(const Far *f, const Tensor *t, Dtype dt) {
    const GpuBlock *b = block_of(f, t, dt);
    return b ? away(f, b)->head.digest
             : digest_bytes(t->p, (size_t)(tensor_count(t) * dtype_size(dt)));
}
bool far_same(const Exec *e, const Tensor *t, const Tensor *packed, Dtype dt) {
    const Far *f = far_of(e);
    return block_of(f, t, dt) && digest_same(digest_at(f, t, dt), digest_at(f, packed, dt));
}
bool far_alike(const Exec *e, const Tensor *a, const Tensor *b, Dtype dt) {
    Far *f = far_of(e);
    bool one = block_of(f, a, dt) != NULL, other = block_of(f, b, dt) != NULL;
    return (one || other) && digest_same(digest_at(f, a, dt), digest_at(f, b, dt));
}
Digest far_digest(const Exec *e, const Tensor *t, Dtype dt, const FarPlaces *some) {
    const Far *f = far_of(e);
    size_t offset;
    if (!f || !find(f, t->p, &offset)) return digest_of(t->p, dt, some);
    Arena *tmp = arena_new();
    FarBytes a = far_ask(e, FAR_DIGEST, t, -1, write_places(some, dt, tmp), tmp);
    Digest x;
    assert(a.n == sizeof x);
    memcpy(&x, a.p, sizeof x);
    arena_free(tmp);
    return x;
}
FarBytes far_ask(const Exec *e, FarQuestion what, const Tensor *t, int64_t rank, FarBytes question,
                 Arena *arena) {
    const Far *f = far_of(e);
    size_t offset;
    GpuBlock *b = t ? find(f, t->p, &offset) : NULL;
    return ask(f, b ? away(f, b)->rank : rank, message_about(f, what, b), question, arena);
}
void far_open(Far *f) { f->open = !f->engine->rank; }
void far_close(Far *f) {
    if (f->engine->rank) {
        serve(f);
        return;
    }
    f->open = false;
    while (f->n_brought) {
        GpuBlock *b = &f->blocks.block[f->brought[--f->n_brought]];
        free(b->host);
        b->host = NULL;
    }
    for (int64_t r = 1; r < f->engine->ranks; r++) {
        Message go = {GO, -1, f->over[r].n * 8};
        send(f, r, &go, sizeof go);
        send(f, r, f->over[r].id, go.bytes);
        f->over[r].n = 0;
    }
}

/* ---- begin and end ---- */
Far *far_new(Engine *engine, Exec *own) {
    Far *f = base_malloc(sizeof *f);
    *f = (Far){.engine = engine, .own = own, .host = own->host};
    size_t bytes = base_mul((size_t)engine->ranks, sizeof *f->over);
    f->over = memset(base_malloc(bytes), 0, bytes);
    return f;
}
void far_answers(Far *f, FarQuestion what, FarAnswer *by, void *arg) {
    f->answer[what].by = by;
    f->answer[what].arg = arg;
}
Device *far_device(Far *f) {
    f->d = *f->host; /* loops and bounds of the host need no more */
    f->d.alloc = far_alloc;
    f->d.release = far_release;
    f->d.get = far_get;
    f->d.done = far_done;
    f->d.copy = far_copy;
    f->d.call = far_call;
    f->d.use = NULL;
    f->d.end = NULL;
    return &f->d;
}
void far_free(Far *f) {
    if (!f) return;
    for (int64_t i = 0; i < f->n_kept; i++)
        if (f->kept[i].buf) let_go(f, i);
    for (int64_t r = 0; r < f->engine->ranks; r++) free(f->over[r].id);
    gpu_blocks_free(&f->blocks);
    free(f->over);
    free(f->away);
    free(f->brought);
    free(f->kept);
    free(f);
}
