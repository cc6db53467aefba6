/* See guard.h. What is computed is what the host device computes, on memory that is open meanwhile.
 */
#include "guard.h"
#include "base/arena.h"
#include "fence.h"
#include <stdlib.h>

typedef struct {
    Device d; /* first */
    Fence *memory;
    GuardCalls calls;
} Guard;

/* One more call; workers copy side by side. */
static void count(long *calls, int64_t n) { __atomic_add_fetch(calls, n, __ATOMIC_RELAXED); }
static Tensor reach(const Guard *g, const Tensor *t) {
    Tensor x = *t;
    x.p = fence_at(g->memory, t->p);
    return x;
}
static void *guard_alloc(Device *d, size_t n) { return fence_take(((Guard *)d)->memory, n); }
static void guard_release(Device *d, void *p) { fence_give(((Guard *)d)->memory, p); }
static Tensor guard_get(Device *d, const Tensor *t, Dtype dt) {
    Guard *g = (Guard *)d;
    Tensor host = *t, src = reach(g, t);
    Region box = region_plain(t);
    count(&g->calls.gets, 1);
    tensor_pack(&host);
    host.p = base_malloc((size_t)((tensor_count(t) + 1) * dtype_size(dt)));
    region_copy((Block){&box, &host}, (Block){&box, &src}, dt, COMBINE_COPY);
    return host;
}
static void guard_put(Device *d, const Tensor *t, const Tensor *host, Dtype dt) {
    Guard *g = (Guard *)d;
    Tensor to = reach(g, t);
    Region box = region_plain(t);
    count(&g->calls.puts, 1);
    region_copy((Block){&box, &to}, (Block){&box, host}, dt, COMBINE_COPY);
}
static void guard_done(Device *d, Tensor *host) {
    (void)d;
    free(host->p);
}
static void guard_copy(Device *d, Block dst, Block src, Dtype dt, Combine how) {
    Guard *g = (Guard *)d;
    Tensor to = reach(g, dst.t), from = reach(g, src.t);
    count(&g->calls.copies, 1);
    region_copy((Block){dst.has, &to}, (Block){src.has, &from}, dt, how);
}
static void guard_fill(Device *d, Tensor *t, Dtype dt, double v) {
    Tensor to = reach((Guard *)d, t);
    device_plain()->fill(device_plain(), &to, dt, v);
}
static void guard_scale(Device *d, Tensor *t, Dtype dt, double v) {
    Tensor to = reach((Guard *)d, t);
    device_plain()->scale(device_plain(), &to, dt, v);
}
static void guard_round(Device *d, const Tensor *t) {
    Tensor to = reach((Guard *)d, t);
    device_plain()->round(device_plain(), &to);
}
static OpCall reached(const Guard *g, const OpCall *c) {
    OpCall x = *c;
    for (int i = 0; i < c->rule->nin; i++) x.in[i] = reach(g, &c->in[i]);
    x.cot = reach(g, &c->cot);
    x.fout = reach(g, &c->fout);
    x.ids = reach(g, &c->ids);
    x.out = reach(g, &c->out);
    return x;
}
static void guard_call(Device *d, OpCall *c, int64_t n, DeviceKernel what, Pool *pool) {
    Guard *g = (Guard *)d;
    OpCall *call = base_malloc((size_t)n * sizeof *call + 1);
    count(&g->calls.kernels, n);
    for (int64_t i = 0; i < n; i++) call[i] = reached(g, &c[i]);
    device_plain()->call(device_plain(), call, n, what, pool);
    free(call);
}
/* Bounds and loops over elements are the check's, which is the host's. */
static void no_bound(Device *d, const OpBound *b) {
    (void)d, (void)b;
    abort();
}
static void no_pieces(Device *d, Pool *pool, int64_t n,
                      void (*fn)(void *arg, int64_t lo, int64_t hi), void *arg) {
    (void)d, (void)pool, (void)n, (void)fn, (void)arg;
    abort();
}
Device *guard_new(size_t bytes) {
    Guard *g = base_malloc(sizeof *g);
    *g = (Guard){.d = {.alloc = guard_alloc,
                       .release = guard_release,
                       .get = guard_get,
                       .put = guard_put,
                       .done = guard_done,
                       .copy = guard_copy,
                       .fill = guard_fill,
                       .scale = guard_scale,
                       .round = guard_round,
                       .call = guard_call,
                       .bound = no_bound,
                       .pieces = no_pieces},
                 .memory = fence_new(bytes)};
    return &g->d;
}
void guard_free(Device *d) {
    Guard *g = (Guard *)d;
    fence_free(g->memory);
    free(g);
}
GuardCalls guard_calls(const Device *d) { return ((const Guard *)d)->calls; }
