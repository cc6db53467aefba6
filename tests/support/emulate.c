/* Coroutines in place of a GPU's threads. See emulate.h. */
#include "emulate.h"
#include "base/arena.h"
#include "base/clock.h"
#include "gpu/lang.h"
#include <math.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <ucontext.h>
#ifdef __SANITIZE_ADDRESS__
#include <sanitizer/asan_interface.h>
#endif

#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wmissing-prototypes"
#include "ops/both.cu.h"
#pragma GCC diagnostic pop

enum { MOST = 1024, STACK = 64 << 10, ARRAYS = 12, SHARED = 128 << 10, NOTHING = 0xFF };
typedef enum { RUNS, AT_BLOCK, AT_WARP, ENDED } State;
/* libc's jumps are intercepted by sanitizers, which look through whole stacks and ask the system
 * each time: a product of a few rows took minutes. Frames that are left for good have nothing to
 * guard.
 */
#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
typedef void *Place[5];
#define PLACE_HERE(p) __builtin_setjmp(p)
#define GO_TO(p) __builtin_longjmp(p, 1)
#define UNGUARDED __attribute__((no_sanitize("address", "thread")))
#else
typedef jmp_buf Place;
#define PLACE_HERE(p) _setjmp(p)
#define GO_TO(p) _longjmp(p, 1)
#define UNGUARDED
#endif
typedef struct {
    Place at;   /* once it has begun: a switch without a call of the system */
    bool begun; /* and runs one block after the other */
    int arrays; /* of shared memory that it has asked for */
    int turn;   /* of its shuffles */
} Thread;
/* The block that runs now. One process, one GPU, one block at a time. */
static struct {
    Thread thread[MOST];
    State state[MOST]; /* of each thread */
    char stacks[MOST][STACK];
    _Alignas(32) char shared[SHARED];
    size_t used;
    void *array[ARRAYS];
    int arrays, self, width;
    int64_t block, blocks;
    double slot[2][MOST];
    bool together;
    Place scheduler;
    void (*kernel)(const GpuArgs a);
    const GpuArgs *args;
} now;

int gpu_thread(void) { return now.self; }
int64_t gpu_block(void) { return now.block; }
int gpu_width(void) { return now.width; }
int64_t gpu_blocks(void) { return now.blocks; }
UNGUARDED static void wait_for(State what) {
    Thread *me = &now.thread[now.self];
    if (!now.together) {
        fprintf(stderr, "a kernel waits that the list does not call `together`\n");
        abort();
    }
    now.state[now.self] = what;
    if (!PLACE_HERE(me->at)) GO_TO(now.scheduler);
}
void gpu_barrier(void) { wait_for(AT_BLOCK); }
double gpu_shuffle(double v, int mask) {
    double *slot = now.slot[now.thread[now.self].turn++ % 2];
    slot[now.self] = v;
    wait_for(AT_WARP);
    return slot[now.self ^ mask];
}
void gpu_mma(float *c, int ldc, GpuTile a, GpuTile b, int depth) {
    bool bad = (uintptr_t)a.p % 32 || (uintptr_t)b.p % 32 || (uintptr_t)c % 32 || a.ld % 8 ||
               b.ld % 8 || ldc % 4 || depth % GPU_MMA;
    if (bad) {
        fprintf(stderr, "a tile that tensor cores cannot read\n");
        abort();
    }
    /* all of the warp come; in every other block nobody waits before, so that what is not there yet
     * is seen, and else nobody behind */
    if (now.block % 2 == 0) wait_for(AT_WARP);
    for (int e = now.self % GPU_WARP; e < GPU_MMA * GPU_MMA; e += GPU_WARP) {
        int i = e / GPU_MMA, j = e % GPU_MMA;
        float sum = c[i * ldc + j];
        for (int k = 0; k < depth; k++)
            sum += gpu_wide(a.p[a.across ? k * a.ld + i : i * a.ld + k]) *
                   gpu_wide(b.p[b.across ? j * b.ld + k : k * b.ld + j]);
        c[i * ldc + j] = sum;
    }
    if (now.block % 2) wait_for(AT_WARP);
}
void *gpu_shared(size_t bytes) {
    int k = now.thread[now.self].arrays++;
    if (k == now.arrays) {
        if (k == ARRAYS || now.used + bytes > SHARED) abort();
        now.array[now.arrays++] = now.shared + now.used;
        now.used += (bytes + 31) / 32 * 32;
    }
    return now.array[k];
}
/* A thread of a block, and then of the next one. */
UNGUARDED static void entry(void) {
    for (;;) {
        now.kernel(*now.args);
        now.state[now.self] = ENDED;
        if (!PLACE_HERE(now.thread[now.self].at)) GO_TO(now.scheduler);
    }
}
/* Stacks begin at different places of a page: else a cache holds those of a few threads only. */
UNGUARDED static void begin(int i) {
    ucontext_t at;
    now.thread[i].begun = true;
#ifdef __SANITIZE_ADDRESS__
    __asan_unpoison_memory_region(now.stacks[i], STACK); /* who was left there has not */
#endif
    getcontext(&at);
    at.uc_stack.ss_sp = now.stacks[i];
    at.uc_stack.ss_size = STACK - (size_t)(i % 64) * 64;
    at.uc_link = NULL;
    makecontext(&at, entry, 0);
    setcontext(&at);
}
/* Lets thread i run until it waits or ends. */
UNGUARDED static void resume(int i) {
    now.self = i;
    if (PLACE_HERE(now.scheduler)) return;
    if (now.thread[i].begun) GO_TO(now.thread[i].at);
    begin(i);
}
static int count_of(int from, int to, State s) {
    int n = 0;
    for (int i = from; i < to; i++) n += now.state[i] == s;
    return n;
}
static void let_go(int from, int to, State s) {
    for (int i = from; i < to; i++)
        if (now.state[i] == s) now.state[i] = RUNS;
}
/* Lets on those who wait for what all have reached. False: nobody can go on. */
static bool release(void) {
    bool moved = false;
    for (int w = 0; w < now.width; w += GPU_WARP)
        if (count_of(w, w + GPU_WARP, AT_WARP) == GPU_WARP) {
            let_go(w, w + GPU_WARP, AT_WARP);
            moved = true;
        }
    if (count_of(0, now.width, AT_BLOCK) == now.width) {
        let_go(0, now.width, AT_BLOCK);
        moved = true;
    }
    return moved;
}
/* One block; every other one lets its threads run from the last to the first. */
static const char *run_block(void) {
    memset(now.shared, NOTHING, now.used);
    now.arrays = 0;
    now.used = 0;
    for (int i = 0; i < now.width; i++) {
        Thread *t = &now.thread[i];
        t->begun &= now.state[i] == ENDED; /* one that was left in a block that hung begins anew */
        now.state[i] = RUNS;
        t->arrays = t->turn = 0;
    }
    for (;;) {
        for (int k = 0; k < now.width; k++) {
            int i = now.block % 2 ? now.width - 1 - k : k;
            if (now.state[i] == RUNS) resume(i);
        }
        if (count_of(0, now.width, ENDED) == now.width) return NULL;
        if (!release()) return "threads wait for others of their block that do not come";
    }
}
const char *emulated_run(void (*kernel)(const GpuArgs a), const GpuArgs *a, int64_t blocks,
                         int threads, bool together) {
    const char *wrong = NULL;
    now.kernel = kernel;
    now.args = a;
    now.blocks = blocks;
    now.width = threads;
    now.together = together;
    now.used = SHARED;
    for (now.block = 0; now.block < blocks && !wrong; now.block++) {
        if (together) wrong = run_block();
        else
            for (now.self = 0; now.self < threads; now.self++) kernel(*a);
    }
    return wrong;
}

/* ---- as a Gpu ---- */
typedef struct {
    Gpu g; /* first */
    Fence *memory;
    bool own; /* the memory */
    int threads;
    long calls[GPU_N_KERNELS + 1];
    double seconds; /* of launches, since it was last asked */
} Emulated;
static const bool together[] = {
#define TOGETHER(name, waits) [GPU_##name] = waits,
    GPU_KERNELS(TOGETHER)};
static void *alloc(Gpu *g, size_t n) { return fence_take(((Emulated *)g)->memory, n); }
static void release_memory(Gpu *g, void *p) { fence_give(((Emulated *)g)->memory, p); }
static bool owns(Gpu *g, const void *p) { return fence_has(((Emulated *)g)->memory, p); }
static void put(Gpu *g, void *to, const void *from, size_t n) {
    if (!owns(g, to) || owns(g, from)) abort();
    memcpy(fence_at(((Emulated *)g)->memory, to), from, n);
}
static void get(Gpu *g, void *to, const void *from, size_t n) {
    if (owns(g, to) || !owns(g, from)) abort();
    memcpy(to, fence_at(((Emulated *)g)->memory, from), n);
}
/* What a kernel may reach: nothing of the host. */
static void *reach(Emulated *e, const void *p) {
    if (p && !fence_has(e->memory, p)) {
        fprintf(stderr, "a kernel is given an address of the host\n");
        abort();
    }
    return p ? fence_at(e->memory, p) : NULL;
}
static void launch(Gpu *g, const GpuLaunch *l) {
    Emulated *e = (Emulated *)g;
    GpuArgs a = l->args;
    bool waits = together[l->kernel];
    e->calls[l->kernel]++;
    a.out.p = reach(e, a.out.p);
    for (int k = 0; k < GPU_IN; k++) a.x[k].p = reach(e, a.x[k].p);
    a.table = reach(e, a.table);
    const char *wrong = emulated_run(gpu_kernels[l->f64][l->kernel], &a, l->blocks,
                                     waits ? e->threads : l->threads, waits);
    if (!wrong) return;
    fprintf(stderr, "kernel %d: %s\n", l->kernel, wrong);
    abort();
}
static double element(const void *p, const GpuGemm *m, int64_t o) {
    return m->f64    ? ((const double *)p)[o]
           : m->bf16 ? (double)gpu_wide(((const uint16_t *)p)[o])
                     : (double)((const float *)p)[o];
}
/* The product that a descriptor says, from its last term to its first: no order is promised. The
 * sums of a row grow side by side, so that none waits for its own last term. */
static void gemm(Gpu *g, const GpuGemm *m) {
    Emulated *e = (Emulated *)g;
    const void *a = reach(e, m->a.p), *b = reach(e, m->b.p);
    void *c = reach(e, m->c.p);
    double *right = base_malloc((size_t)(m->k * m->n + 1) * sizeof *right),
           *sum = base_malloc((size_t)(m->n + 1) * sizeof *sum);
    e->calls[GPU_N_KERNELS]++;
    for (int64_t z = 0; z < m->batch; z++) {
        for (int64_t k = 0; k < m->k; k++)
            for (int64_t j = 0; j < m->n; j++)
                right[k * m->n + j] = element(b, m, z * m->b.next + k * m->b.row + j * m->b.col);
        for (int64_t i = 0; i < m->m; i++) {
            for (int64_t j = 0; j < m->n; j++) sum[j] = 0;
            for (int64_t k = m->k - 1; k >= 0; k--) {
                const double x = element(a, m, z * m->a.next + i * m->a.row + k * m->a.col);
                const double *y = right + k * m->n;
                for (int64_t j = 0; j < m->n; j++) sum[j] += x * y[j];
            }
            for (int64_t j = 0; j < m->n; j++) {
                int64_t o = z * m->c.next + i * m->c.row + j * m->c.col;
                if (m->f64) ((double *)c)[o] = sum[j];
                else ((float *)c)[o] = (float)sum[j];
            }
        }
    }
    free(right);
    free(sum);
}
/* By the clock, with what the emulation itself takes. */
static double busy(Gpu *g) {
    Emulated *e = (Emulated *)g;
    double seconds = e->seconds;
    e->seconds = 0;
    return seconds;
}
static void timed_launch(Gpu *g, const GpuLaunch *l) {
    double begin = clock_seconds();
    launch(g, l);
    ((Emulated *)g)->seconds += clock_seconds() - begin;
}
static void timed_gemm(Gpu *g, const GpuGemm *m) {
    double begin = clock_seconds();
    gemm(g, m);
    ((Emulated *)g)->seconds += clock_seconds() - begin;
}
static void close_gpu(Gpu *g) {
    if (((Emulated *)g)->own) fence_free(((Emulated *)g)->memory);
    free(g);
}
Gpu *emulated_gpu(size_t bytes, int threads) {
    Gpu *g = emulated_gpu_in(fence_new(bytes), threads);
    ((Emulated *)g)->own = true;
    g->memory = bytes;
    return g;
}
Gpu *emulated_gpu_in(Fence *memory, int threads) {
    Emulated *e = base_malloc(sizeof *e);
    *e = (Emulated){.g = {.name = "this process",
                          .alloc = alloc,
                          .release = release_memory,
                          .put = put,
                          .get = get,
                          .launch = timed_launch,
                          .gemm = timed_gemm,
                          .busy = busy,
                          .staged = (size_t)1 << 16,
                          .close = close_gpu},
                    .memory = memory,
                    .threads = threads};
    return &e->g;
}
const long *emulated_calls(const Gpu *g) { return ((const Emulated *)g)->calls; }
