/* See guard.h. The memory is one range, PROT_NONE but while one of its functions runs. */
#include "guard.h"
#include "base/arena.h"
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

typedef struct {
    Device d; /* first */
    char *base;
    size_t size, used;
    int open; /* functions that run now: workers copy side by side */
    pthread_mutex_t lock;
    GuardCalls calls;
} Guard;

/* Opens the memory for a function, which counts as n of its kind (NULL: of none). */
static void open_memory(Guard *g, long *count, long n) {
    pthread_mutex_lock(&g->lock);
    if (count) *count += n;
    if (!g->open++ && mprotect(g->base, g->size, PROT_READ | PROT_WRITE)) abort();
    pthread_mutex_unlock(&g->lock);
}
static void close_memory(Guard *g) {
    pthread_mutex_lock(&g->lock);
    if (!--g->open && mprotect(g->base, g->size, PROT_NONE)) abort();
    pthread_mutex_unlock(&g->lock);
}
static void *guard_alloc(Device *d, size_t n) {
    Guard *g = (Guard *)d;
    size_t size = (n + 63) / 64 * 64;
    if (size > g->size - g->used) abort();
    g->used += size;
    return g->base + g->used - size;
}
static void guard_release(Device *d, void *p) { (void)d, (void)p; }
static Tensor guard_get(Device *d, const Tensor *t, Dtype dt) {
    Guard *g = (Guard *)d;
    Tensor host = *t, src = *t;
    Region box = region_plain(t);
    tensor_pack(&host);
    host.p = base_malloc((size_t)((tensor_count(t) + 1) * dtype_size(dt)));
    open_memory(g, &g->calls.gets, 1);
    region_copy((Block){&box, &host}, (Block){&box, &src}, dt, COMBINE_COPY);
    close_memory(g);
    return host;
}
static void guard_put(Device *d, const Tensor *t, const Tensor *host, Dtype dt) {
    Guard *g = (Guard *)d;
    Tensor to = *t;
    Region box = region_plain(t);
    open_memory(g, &g->calls.puts, 1);
    region_copy((Block){&box, &to}, (Block){&box, host}, dt, COMBINE_COPY);
    close_memory(g);
}
static void guard_done(Device *d, Tensor *host) {
    (void)d;
    free(host->p);
}
static void guard_copy(Device *d, Block dst, Block src, Dtype dt, Combine how) {
    Guard *g = (Guard *)d;
    open_memory(g, &g->calls.copies, 1);
    region_copy(dst, src, dt, how);
    close_memory(g);
}
/* What the host device does, on memory that is open meanwhile. */
static void guard_fill(Device *d, Tensor *t, Dtype dt, double v) {
    open_memory((Guard *)d, NULL, 0);
    device_plain()->fill(device_plain(), t, dt, v);
    close_memory((Guard *)d);
}
static void guard_scale(Device *d, Tensor *t, Dtype dt, double v) {
    open_memory((Guard *)d, NULL, 0);
    device_plain()->scale(device_plain(), t, dt, v);
    close_memory((Guard *)d);
}
static void guard_call(Device *d, OpCall *c, int64_t n, DeviceKernel what, Pool *pool) {
    Guard *g = (Guard *)d;
    open_memory(g, &g->calls.kernels, (long)n);
    device_plain()->call(device_plain(), c, n, what, pool);
    close_memory(g);
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
                       .call = guard_call,
                       .bound = no_bound,
                       .pieces = no_pieces},
                 .size = bytes};
    g->base = mmap(NULL, bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (g->base == MAP_FAILED) abort();
    pthread_mutex_init(&g->lock, NULL);
    return &g->d;
}
void guard_free(Device *d) {
    Guard *g = (Guard *)d;
    munmap(g->base, g->size);
    pthread_mutex_destroy(&g->lock);
    free(g);
}
GuardCalls guard_calls(const Device *d) { return ((const Guard *)d)->calls; }
