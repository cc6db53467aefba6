/* A plug-in of --cuda for tests: its GPU is the process that opens it, which runs the kernels'
 * sources (tests/support/emulate.h). SHARDPROOF_GPU may say how it fails: "driver", "device",
 * "old", "version", "broken"; "launch 12": the twelfth kernel; "room 4096": so many bytes of
 * memory; "limit 4096": no more, and it says that there is more. Where the run has the tests' CUDA
 * too (nccl.c), its memory and streams are those: kernels go on while the caller does other things.
 */
#define _GNU_SOURCE
#include "emulate.h"
#include "base/arena.h"
#include "trip/fake.h"
#include <dlfcn.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static GpuHost program;
static long until; /* launches before one fails; below 0: none does */
static void (*launch)(Gpu *g, const GpuLaunch *l);
static void failing_launch(Gpu *g, const GpuLaunch *l) {
    if (until >= 0 && --until < 0)
        program.failed(program.arg, "softmax: an illegal memory access was encountered");
    launch(g, l);
}
/* Memory: no more at once than there is. */
static size_t room = (size_t)1 << 34, used;
static struct {
    void *p;
    size_t n;
} taken[1 << 16];
static void *(*alloc)(Gpu *g, size_t n);
static void (*release)(Gpu *g, void *p);
static void *limited_alloc(Gpu *g, size_t n) {
    size_t k = 0;
    if (n > room - used) return NULL;
    while (taken[k].p) k++;
    used += n;
    taken[k].n = n;
    return taken[k].p = alloc(g, n);
}
static void limited_release(Gpu *g, void *p) {
    size_t k = 0;
    while (taken[k].p != p) k++;
    used -= taken[k].n;
    taken[k].p = NULL;
    release(g, p);
}

/* ---- on streams of the tests' CUDA ---- */
#define CUDA_FUNCTIONS(X)                                                                          \
    X(cudaMalloc)                                                                                  \
    X(cudaFree)                                                                                    \
    X(cudaMemcpyAsync)                                                                             \
    X(cudaStreamCreateWithFlags)                                                                   \
    X(cudaStreamSynchronize)                                                                       \
    X(cudaStreamWaitEvent)                                                                         \
    X(cudaEventCreateWithFlags)                                                                    \
    X(cudaEventRecord)                                                                             \
    X(cudaEventSynchronize) X(cudaEventElapsedTime) X(fake_fence) X(fake_run)
static struct {
#define FIELD(name) __typeof__(&name) name;
    CUDA_FUNCTIONS(FIELD)
#undef FIELD
} C;
static struct {
    Gpu plain; /* what computes, when its turn has come */
    cudaStream_t stream[GPU_LANES];
    int lane;
    pthread_mutex_t one; /* one GPU, one block of threads at a time */
} L = {.one = PTHREAD_MUTEX_INITIALIZER};
static void must(cudaError_t e) {
    if (e == cudaSuccess) return;
    fprintf(stderr, "the tests' GPU: CUDA error %d\n", (int)e);
    abort();
}
static cudaStream_t on(void) {
    cudaStream_t *s = &L.stream[L.lane];
    if (!*s) must(C.cudaStreamCreateWithFlags(s, cudaStreamNonBlocking));
    return *s;
}
static void *cuda_alloc(Gpu *g, size_t n) {
    void *p;
    (void)g;
    return C.cudaMalloc(&p, n) == cudaSuccess ? p : NULL;
}
static void cuda_release(Gpu *g, void *p) {
    (void)g;
    for (int i = 0; i < GPU_LANES; i++) /* as the real one waits for the GPU */
        if (L.stream[i]) must(C.cudaStreamSynchronize(L.stream[i]));
    must(C.cudaFree(p));
}
static void cuda_put(Gpu *g, void *to, const void *from, size_t n) {
    (void)g;
    must(C.cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, on()));
}
static void cuda_get(Gpu *g, void *to, const void *from, size_t n) {
    (void)g;
    must(C.cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, on()));
}
typedef struct {
    Gpu *g;
    GpuLaunch launch;
    GpuGemm gemm;
} Asked;
static void do_launch(void *arg) {
    const Asked *a = arg;
    pthread_mutex_lock(&L.one);
    L.plain.launch(a->g, &a->launch);
    pthread_mutex_unlock(&L.one);
}
static void do_gemm(void *arg) {
    const Asked *a = arg;
    pthread_mutex_lock(&L.one);
    L.plain.gemm(a->g, &a->gemm);
    pthread_mutex_unlock(&L.one);
}
static void cuda_launch(Gpu *g, const GpuLaunch *l) {
    static const char *const names[] = {
#define NAME(name, together) #name,
        GPU_KERNELS(NAME)
#undef NAME
    };
    Asked a = {.g = g, .launch = *l};
    FakeTask t = {names[l->kernel], do_launch, &a, sizeof a, {{l->args.table, false}}, 1};
    for (int k = 0; k < GPU_IN; k++) t.touches[t.n++].p = l->args.x[k].p;
    t.touches[t.n].p = l->args.out.p;
    t.touches[t.n++].writes = true;
    C.fake_run(on(), &t);
}
static void cuda_gemm(Gpu *g, const GpuGemm *m) {
    Asked a = {.g = g, .gemm = *m};
    C.fake_run(on(), &(FakeTask){"a product",
                                 do_gemm,
                                 &a,
                                 sizeof a,
                                 {{m->a.p, false}, {m->b.p, false}, {m->c.p, true}},
                                 3});
}
static void cuda_lane(Gpu *g, int lane) {
    (void)g;
    L.lane = lane;
}
static void *cuda_stream(Gpu *g) {
    (void)g;
    return on();
}
static void *event_here(cudaEvent_t e, unsigned flags) {
    if (!e) must(C.cudaEventCreateWithFlags(&e, flags));
    must(C.cudaEventRecord(e, on()));
    return e;
}
static void *cuda_mark(Gpu *g, void *mark) {
    (void)g;
    return event_here(mark, cudaEventDisableTiming);
}
static void *cuda_stamp(Gpu *g, void *stamp) {
    (void)g;
    return event_here(stamp, cudaEventDefault);
}
static double cuda_between(Gpu *g, void *from, void *to) {
    float ms = 0;
    (void)g;
    must(C.cudaEventSynchronize(from));
    must(C.cudaEventSynchronize(to));
    must(C.cudaEventElapsedTime(&ms, from, to));
    return ms * 1e-3;
}
static void cuda_after(Gpu *g, void *mark) {
    (void)g;
    must(C.cudaStreamWaitEvent(on(), mark, 0));
}
static double cuda_busy(Gpu *g) {
    for (int i = 0; i < GPU_LANES; i++)
        if (L.stream[i]) must(C.cudaStreamSynchronize(L.stream[i]));
    return L.plain.busy(g);
}
/* Is the tests' CUDA in this process? Then the GPU is on it. */
static Gpu *on_streams(void) {
    void *cuda = dlopen("fake_nccl.so", RTLD_NOW | RTLD_NOLOAD);
    if (!cuda) return NULL;
#define FIND(name) *(void **)&C.name = dlsym(cuda, #name);
    CUDA_FUNCTIONS(FIND)
#undef FIND
    Gpu *g = emulated_gpu_in(C.fake_fence(), GPU_WARP);
    L.plain = *g;
    g->alloc = cuda_alloc;
    g->release = cuda_release;
    g->put = cuda_put;
    g->get = cuda_get;
    g->launch = cuda_launch;
    g->gemm = cuda_gemm;
    g->lane = cuda_lane;
    g->stream = cuda_stream;
    g->mark = cuda_mark;
    g->after = cuda_after;
    g->stamp = cuda_stamp;
    g->between = cuda_between;
    g->busy = cuda_busy;
    return g;
}
static const struct {
    const char *word;
    GpuWhy why;
    const char *text;
} fails[] = {
    {"driver", GPU_NO_DRIVER, "CUDA driver version is insufficient for CUDA runtime version"},
    {"device", GPU_NO_DEVICE, "no CUDA-capable device is detected"},
    {"old", GPU_OLD_DRIVER, "CUDA driver version is insufficient for CUDA runtime version"},
    {"version", GPU_OTHER_VERSION, "the plug-in was built from another version of the program"},
    {"broken", GPU_BROKEN, "there is no libcublasLt.so.13 or .12"},
};
__attribute__((visibility("default"))) Gpu *shardproof_gpu(const GpuHost *host, GpuWhy *why,
                                                           const char **text);
Gpu *shardproof_gpu(const GpuHost *host, GpuWhy *why, const char **text) {
    const char *how = getenv("SHARDPROOF_GPU");
    for (size_t i = 0; how && i < sizeof fails / sizeof *fails; i++)
        if (!strcmp(how, fails[i].word)) {
            *why = fails[i].why;
            *text = fails[i].text;
            return NULL;
        }
    until = how && !strncmp(how, "launch ", 7) ? atol(how + 7) - 1 : -1;
    if (how && !strncmp(how, "room ", 5)) room = (size_t)atoll(how + 5);
    const size_t says = room;
    if (how && !strncmp(how, "limit ", 6)) room = (size_t)atoll(how + 6);
    program = *host;
    Gpu *g = on_streams();
    if (!g) g = emulated_gpu((size_t)1 << 34, GPU_WARP);
    g->memory = says;
    alloc = g->alloc;
    release = g->release;
    g->alloc = limited_alloc;
    g->release = limited_release;
    launch = g->launch;
    g->launch = failing_launch;
    *why = GPU_OK;
    return g;
}
