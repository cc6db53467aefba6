/* The two devices that there are. Both take large arrays from a heap of the same kind, so they
 * agree about what it grows to. */
#include "exec/device.h"
#include "base/heap.h"
#include "kernel/bf16.h"
#include <math.h>
#include <stdlib.h>

enum { LARGE = 1 << 16, CHUNK = 16 }; /* malloc's header and rounding */

typedef struct {
    Device d; /* first: a Device is one of these */
    Heap *heap;
    size_t small, most_small; /* dry: bytes of small arrays */
    OpScratch scratch;        /* dry: the most of each kind */
    int threads;              /* dry: of the host that it stands for */
    DeviceWork work;          /* dry: all that was asked for */
} Own;

static DeviceUse own_use(const Device *d) {
    const Own *o = (const Own *)d;
    const OpScratch *s = &o->scratch;
    const int64_t one = s->packed + s->attention + s->rows + s->passing;
    return (DeviceUse){o->heap ? heap_top(o->heap) : 0, o->most_small,
                       (size_t)(one * o->threads + s->call)};
}
static DeviceWork own_work(const Device *d) { return ((const Own *)d)->work; }
static void own_end(Device *d) {
    heap_free(((Own *)d)->heap);
    free(d);
}

void device_residues(Device *d, const Tensor *t, Dtype dt, double p) {
    if (d->sizes_only) return;
    Tensor host = d->get(d, t, dt);
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        double x = dt == DT_F32 ? (double)((float *)host.p)[i] : ((double *)host.p)[i];
        x -= p * floor(x / p);
        if (dt == DT_F32) ((float *)host.p)[i] = (float)x;
        else ((double *)host.p)[i] = x;
    }
    d->put(d, t, &host, dt);
    d->done(d, &host);
}

/* ---- the host ---- */
static void *host_alloc(Device *d, size_t n) {
    Own *o = (Own *)d;
    void *p = n >= LARGE && o->heap ? heap_take(o->heap, n) : NULL;
    return p ? p : base_big(n);
}
static void host_release(Device *d, void *p) {
    Own *o = (Own *)d;
    if (p && o->heap && heap_has(o->heap, p)) heap_give(o->heap, p);
    else free(p);
}
static Tensor host_get(Device *d, const Tensor *t, Dtype dt) {
    (void)d, (void)dt;
    return *t;
}
static void host_put(Device *d, const Tensor *t, const Tensor *host, Dtype dt) {
    (void)d;
    Region box = region_plain(t);
    Tensor to = *t;
    if (t->p != host->p) region_copy((Block){&box, &to}, (Block){&box, host}, dt, COMBINE_COPY);
}
static void host_done(Device *d, Tensor *host) { (void)d, (void)host; }
static void host_copy(Device *d, Block dst, Block src, Dtype dt, Combine how) {
    (void)d;
    region_copy(dst, src, dt, how);
}
static void host_fill(Device *d, Tensor *t, Dtype dt, double v) {
    (void)d;
    int64_t n = tensor_count(t);
    if (dt == DT_F32)
        for (int64_t i = 0; i < n; i++) ((float *)t->p)[i] = (float)v;
    else if (dt == DT_F64)
        for (int64_t i = 0; i < n; i++) ((double *)t->p)[i] = v;
    else
        for (int64_t i = 0; i < n; i++) ((int64_t *)t->p)[i] = (int64_t)v;
}
static void host_scale(Device *d, Tensor *t, Dtype dt, double v) {
    (void)d;
    int64_t n = tensor_count(t);
    if (dt == DT_F32)
        for (int64_t i = 0; i < n; i++) ((float *)t->p)[i] *= (float)v;
    else if (dt == DT_F64)
        for (int64_t i = 0; i < n; i++) ((double *)t->p)[i] *= v;
}
static void host_round(Device *d, const Tensor *t) {
    (void)d;
    bf16_round_f32(tensor_count(t), t->p);
}
typedef struct {
    OpCall *call;
    DeviceKernel what;
} Job;
static void run_call(void *arg, int64_t i) {
    const Job *j = arg;
    const OpCall *c = &j->call[i];
    const Op *op = c->op;
    void (*const kernel[])(const OpCall *) = {[DEVICE_FORWARD] = op->forward,
                                              [DEVICE_ADJOINT] = op->adjoint,
                                              [DEVICE_EXACT] = op->exact,
                                              [DEVICE_EXACT_ADJOINT] = op->exact_adjoint};
    kernel[j->what](c);
}
static void host_call(Device *d, OpCall *c, int64_t n, DeviceKernel what, Pool *pool) {
    (void)d;
    Job j = {c, what};
    bool (*together)(const OpCall *, int64_t, bool, Pool *) = n > 1 ? c->op->together : NULL;
    if (together && (what == DEVICE_FORWARD || what == DEVICE_ADJOINT) &&
        together(c, n, what == DEVICE_ADJOINT, pool))
        return;
    if (pool && n >= pool_threads(pool)) pool_run(pool, n, run_call, &j);
    else /* few calls: each uses the workers inside */
        for (int64_t i = 0; i < n; i++) run_call(&j, i);
}
static void host_bound(Device *d, const OpBound *b) {
    (void)d;
    b->call.op->bound(b);
}
static void host_pieces(Device *d, Pool *pool, int64_t n,
                        void (*fn)(void *arg, int64_t lo, int64_t hi), void *arg) {
    (void)d;
    pool_pieces(pool, n, fn, arg);
}
#define HOST                                                                                       \
    {                                                                                              \
        .d = {                                                                                     \
            .alloc = host_alloc,                                                                   \
            .release = host_release,                                                               \
            .get = host_get,                                                                       \
            .put = host_put,                                                                       \
            .done = host_done,                                                                     \
            .copy = host_copy,                                                                     \
            .fill = host_fill,                                                                     \
            .scale = host_scale,                                                                   \
            .round = host_round,                                                                   \
            .call = host_call,                                                                     \
            .bound = host_bound,                                                                   \
            .pieces = host_pieces,                                                                 \
            .use = own_use                                                                         \
        }                                                                                          \
    }
Device *device_plain(void) {
    static Own plain = HOST; /* it has no heap: nothing of it changes */
    return &plain.d;
}
Device *device_host(size_t large) {
    Own *o = base_malloc(sizeof *o);
    *o = (Own)HOST;
    o->d.end = own_end;
    (void)large;
#ifndef __SANITIZE_ADDRESS__ /* which looks at every array by itself */
    if (large) o->heap = heap_new(large);
#endif
    return &o->d;
}

/* ---- no numbers ---- */
/* An address that is never followed: it says the size of what would be there. */
static const uintptr_t SMALL = (uintptr_t)1 << 62;
static void *dry_alloc(Device *d, size_t n) {
    Own *o = (Own *)d;
    void *p = n >= LARGE ? heap_take(o->heap, n) : NULL;
    o->work.bytes += (double)n;
    if (p) return p;
    o->small += n + CHUNK;
    if (o->small > o->most_small) o->most_small = o->small;
    return (void *)(SMALL | n << 1);
}
static void dry_release(Device *d, void *p) {
    Own *o = (Own *)d;
    if ((uintptr_t)p & SMALL) o->small -= (((uintptr_t)p & ~SMALL) >> 1) + CHUNK;
    else if (p) heap_give(o->heap, p);
}
static void dry_put(Device *d, const Tensor *t, const Tensor *host, Dtype dt) {
    (void)d, (void)t, (void)host, (void)dt;
}
static void dry_copy(Device *d, Block dst, Block src, Dtype dt, Combine how) {
    (void)d, (void)dst, (void)src, (void)dt, (void)how;
}
static void dry_set(Device *d, Tensor *t, Dtype dt, double v) {
    (void)d, (void)t, (void)dt, (void)v;
}
/* Of an adjoint those of its forward call. */
static void count(Device *d, const OpCall *c, DeviceKernel what) {
    OpCall f = op_call_forward(c);
    DeviceArithmetic with = device_of_integers(what) ? DEVICE_INTEGER
                            : c->dtype == DT_F32     ? DEVICE_F32
                                                     : DEVICE_F64;
    ((Own *)d)->work.ops[with] += op_flops(&f);
}
static void most(int64_t *of, int64_t n) { *of = n > *of ? n : *of; }
/* n calls that take so much are at work, as many at once as there are threads. */
static void holds(Own *o, const OpScratch *one, int64_t n) {
    most(&o->scratch.packed, one->packed);
    most(&o->scratch.attention, one->attention);
    most(&o->scratch.rows, one->rows);
    most(&o->scratch.passing, one->passing);
    most(&o->scratch.call, one->call * (n < o->threads ? n : o->threads));
}
static void dry_call(Device *d, OpCall *c, int64_t n, DeviceKernel what, Pool *pool) {
    (void)pool;
    Own *o = (Own *)d;
    for (int64_t i = 0; i < n; i++) {
        count(d, &c[i], what);
        if (!c[i].op->scratch || device_of_integers(what)) continue;
        OpScratch one = {0};
        c[i].op->scratch(&c[i], n, what == DEVICE_ADJOINT, &one);
        holds(o, &one, n);
    }
}
/* A bound is a sum over the same terms. */
static void dry_bound(Device *d, const OpBound *b) {
    OpScratch one = {0};
    count(d, &b->call, DEVICE_FORWARD);
    if (b->call.op->bound_scratch) b->call.op->bound_scratch(b, &one);
    holds((Own *)d, &one, 1);
}
static void dry_round(Device *d, const Tensor *t) { (void)d, (void)t; }
static void dry_pieces(Device *d, Pool *pool, int64_t n,
                       void (*fn)(void *arg, int64_t lo, int64_t hi), void *arg) {
    (void)d, (void)pool, (void)n, (void)fn, (void)arg;
}
Device *device_dry(int threads) {
    Own *o = base_malloc(sizeof *o);
    *o = (Own){.d = {.sizes_only = true,
                     .alloc = dry_alloc,
                     .release = dry_release,
                     .get = host_get,
                     .put = dry_put,
                     .done = host_done,
                     .copy = dry_copy,
                     .fill = dry_set,
                     .scale = dry_set,
                     .round = dry_round,
                     .call = dry_call,
                     .bound = dry_bound,
                     .pieces = dry_pieces,
                     .use = own_use,
                     .work = own_work,
                     .end = own_end},
               .heap = heap_new(0),
               .threads = threads};
    return &o->d;
}

void device_free(Device *d) {
    if (d && d->end) d->end(d);
}
DeviceUse device_use(const Device *d) { return d->use ? d->use(d) : (DeviceUse){0, 0, 0}; }
DeviceWork device_work(const Device *d) { return d->work ? d->work(d) : (DeviceWork){0}; }
