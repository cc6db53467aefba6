/* The plug-in: gpu.h on an NVIDIA GPU. CUDA's runtime is inside (static); cuBLASLt is looked for
 * when the GPU is opened, as it is hundreds of MB. Built by `make CUDA=1`; all else is the
 * program's. */
#include "ops/both.cu.h"
#include <cublasLt.h>
#include <cuda_runtime.h>
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

namespace {
/* What is used of cuBLASLt, from whichever library is found. */
struct Lt {
    decltype(&cublasLtCreate) create;
    decltype(&cublasLtDestroy) destroy;
    decltype(&cublasLtMatmulDescCreate) desc_new;
    decltype(&cublasLtMatmulDescDestroy) desc_free;
    decltype(&cublasLtMatmulDescSetAttribute) desc_set;
    decltype(&cublasLtMatrixLayoutCreate) layout_new;
    decltype(&cublasLtMatrixLayoutDestroy) layout_free;
    decltype(&cublasLtMatrixLayoutSetAttribute) layout_set;
    decltype(&cublasLtMatmulPreferenceCreate) pref_new;
    decltype(&cublasLtMatmulPreferenceDestroy) pref_free;
    decltype(&cublasLtMatmulPreferenceSetAttribute) pref_set;
    decltype(&cublasLtMatmulAlgoGetHeuristic) choose;
    decltype(&cublasLtMatmul) matmul;
};
const size_t WORKSPACE = (size_t)32 << 20;
const int EVENTS = 1024; // pairs that wait to be read
struct Cuda {
    Gpu g; /* first */
    GpuHost host;
    cudaDeviceProp about;
    Lt lt;
    cublasLtHandle_t handle;
    void *workspace;
    cudaStream_t lanes[GPU_LANES]; /* the first is CUDA's own, the others are made when asked for */
    int lane;
    cudaEvent_t *marks; /* all that were made, stamps too */
    int n_marks;
    cudaEvent_t begin[EVENTS], end[EVENTS]; /* around each launch and product */
    int pairs;                              /* recorded, and not read yet */
    double seconds;                         /* of those that were read, since `busy` asked */
    bool asked;                             /* `busy` was: else nobody wants to know */
};
void failed(Cuda *c, const char *where, const char *what) {
    static char text[512];
    snprintf(text, sizeof text, "%s: %s", where, what);
    c->host.failed(c->host.arg, text);
    abort(); /* the program ends there */
}
void must(Cuda *c, const char *where, cudaError_t e) {
    if (e != cudaSuccess) failed(c, where, cudaGetErrorString(e));
}
void must_lt(Cuda *c, const char *where, cublasStatus_t s) {
    char text[64];
    snprintf(text, sizeof text, "cuBLASLt status %d", (int)s);
    if (s != CUBLAS_STATUS_SUCCESS) failed(c, where, text);
}
/* Each thread has a device of its own, at first the first one; those that check a run ask too. */
void here(Cuda *c) {
    static thread_local int device = -1;
    if (device == c->host.device) return;
    must(c, "the GPU", cudaSetDevice(c->host.device));
    device = c->host.device;
}
/* ---- lanes ---- */
cudaStream_t on(Cuda *c) {
    here(c);
    if (c->lane && !c->lanes[c->lane])
        must(c, "a stream", cudaStreamCreateWithFlags(&c->lanes[c->lane], cudaStreamNonBlocking));
    return c->lanes[c->lane];
}
void cuda_lane(Gpu *g, int lane) { ((Cuda *)g)->lane = lane; }
void *cuda_stream(Gpu *g) { return on((Cuda *)g); }
void *event_here(Gpu *g, void *old, unsigned flags) {
    Cuda *c = (Cuda *)g;
    cudaEvent_t e = (cudaEvent_t)old;
    if (!e) {
        must(c, "events", cudaEventCreateWithFlags(&e, flags));
        c->marks = (cudaEvent_t *)realloc(c->marks, (size_t)(c->n_marks + 1) * sizeof e);
        if (!c->marks) failed(c, "events", "out of memory");
        c->marks[c->n_marks++] = e;
    }
    must(c, "events", cudaEventRecord(e, on(c)));
    return e;
}
void *cuda_mark(Gpu *g, void *mark) { return event_here(g, mark, cudaEventDisableTiming); }
void *cuda_stamp(Gpu *g, void *stamp) { return event_here(g, stamp, cudaEventDefault); }
double cuda_between(Gpu *g, void *from, void *to) {
    Cuda *c = (Cuda *)g;
    float ms = 0;
    must(c, "waiting for the GPU", cudaEventSynchronize((cudaEvent_t)from));
    must(c, "waiting for the GPU", cudaEventSynchronize((cudaEvent_t)to));
    must(c, "events", cudaEventElapsedTime(&ms, (cudaEvent_t)from, (cudaEvent_t)to));
    return ms * 1e-3;
}
void cuda_after(Gpu *g, void *mark) {
    Cuda *c = (Cuda *)g;
    must(c, "events", cudaStreamWaitEvent(on(c), (cudaEvent_t)mark, 0));
}

/* ---- time: an event before and one behind each launch, on the GPU's own clock ---- */
void settle(Cuda *c) {
    for (int i = 0; i < c->pairs; i++) {
        float ms = 0;
        must(c, "waiting for the GPU", cudaEventSynchronize(c->end[i]));
        must(c, "events", cudaEventElapsedTime(&ms, c->begin[i], c->end[i]));
        c->seconds += ms * 1e-3;
    }
    c->pairs = 0;
}
void timed_begin(Cuda *c) {
    if (!c->asked) return;
    if (c->pairs == EVENTS) settle(c);
    must(c, "events", cudaEventRecord(c->begin[c->pairs], on(c)));
}
void timed_end(Cuda *c) {
    if (c->asked) must(c, "events", cudaEventRecord(c->end[c->pairs++], on(c)));
}
double cuda_busy(Gpu *g) {
    Cuda *c = (Cuda *)g;
    settle(c);
    c->asked = true;
    double seconds = c->seconds;
    c->seconds = 0;
    return seconds;
}

void *cuda_alloc(Gpu *g, size_t n) {
    void *p = NULL;
    here((Cuda *)g);
    cudaError_t e = cudaMalloc(&p, n ? n : 1);
    if (e == cudaErrorMemoryAllocation) {
        cudaGetLastError();
        return NULL;
    }
    must((Cuda *)g, "cudaMalloc", e);
    return p;
}
void cuda_release(Gpu *g, void *p) {
    here((Cuda *)g);
    must((Cuda *)g, "cudaFree", cudaFree(p));
}
/* From memory that is not pinned: when this returns CUDA has read it; of much of it the stream may
 * have been waited for (CUDA's "API synchronization behavior"). A GPU that reads the host's pages
 * by itself promises nothing before the stream has come there. */
void cuda_put(Gpu *g, void *to, const void *from, size_t n) {
    Cuda *c = (Cuda *)g;
    must(c, "copy to the GPU", cudaMemcpyAsync(to, from, n, cudaMemcpyHostToDevice, on(c)));
    if (!g->staged) must(c, "copy to the GPU", cudaStreamSynchronize(on(c)));
}
void cuda_get(Gpu *g, void *to, const void *from, size_t n) {
    Cuda *c = (Cuda *)g;
    must(c, "copy from the GPU", cudaMemcpyAsync(to, from, n, cudaMemcpyDeviceToHost, on(c)));
    must(c, "copy from the GPU", cudaStreamSynchronize(on(c)));
}
void cuda_launch(Gpu *g, const GpuLaunch *l) {
    static const char *const names[] = {
#define NAME(name, together) #name,
        GPU_KERNELS(NAME)};
    Cuda *c = (Cuda *)g;
    timed_begin(c);
    void *args[] = {(void *)&l->args};
    must(c, names[l->kernel],
         cudaLaunchKernel((const void *)gpu_kernels[l->f64][l->kernel], (unsigned)l->blocks,
                          (unsigned)l->threads, args, 0, on(c)));
    timed_end(c);
}

/* ---- products: row-major C = A B is column-major C' = B' A' ---- */
/* A row-major matrix with unit stride along one index, as cuBLASLt's column-major one. */
cublasLtMatrixLayout_t layout_of(Cuda *c, const GpuMatrix *m, int64_t rows, int64_t cols,
                                 cudaDataType type, int64_t batch, cublasOperation_t *op) {
    cublasLtMatrixLayout_t l;
    bool along_row = m->col == 1; /* a row's elements side by side: the transpose, column-major */
    int64_t ld = along_row ? m->row : m->col;
    int64_t r = along_row ? cols : rows, k = along_row ? rows : cols;
    int32_t count = (int32_t)batch;
    *op = along_row ? CUBLAS_OP_N : CUBLAS_OP_T;
    must_lt(c, "layout", c->lt.layout_new(&l, type, (uint64_t)r, (uint64_t)k, ld > r ? ld : r));
    must_lt(c, "layout",
            c->lt.layout_set(l, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, &count, sizeof count));
    must_lt(
        c, "layout",
        c->lt.layout_set(l, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, &m->next, sizeof m->next));
    return l;
}
/* What may be asked for: the workspace; addresses as they are, for cuBLASLt takes them to be
 * multiples of 256 if nobody says; no sum in a type narrower than that of the computation. */
cublasLtMatmulPreference_t preference_of(Cuda *c, const GpuGemm *m) {
    cublasLtMatmulPreference_t pref;
    const size_t room = WORKSPACE;
    const uint32_t sums = CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE;
    const struct {
        cublasLtMatmulPreferenceAttributes_t what;
        const void *p;
    } at[] = {{CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, m->b.p},
              {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, m->a.p},
              {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, m->c.p},
              {CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, m->c.p}};
    must_lt(c, "product", c->lt.pref_new(&pref));
    must_lt(c, "product",
            c->lt.pref_set(pref, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, &room, sizeof room));
    must_lt(c, "product",
            c->lt.pref_set(pref, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, &sums, sizeof sums));
    for (const auto &x : at) {
        uint32_t bytes = 256;
        while ((uintptr_t)x.p % bytes) bytes /= 2;
        must_lt(c, "product", c->lt.pref_set(pref, x.what, &bytes, sizeof bytes));
    }
    return pref;
}
void cuda_gemm(Gpu *g, const GpuGemm *m) {
    Cuda *c = (Cuda *)g;
    const cudaDataType wide = m->f64 ? CUDA_R_64F : CUDA_R_32F, in = m->bf16 ? CUDA_R_16BF : wide;
    const double one64 = 1, zero64 = 0;
    const float one32 = 1, zero32 = 0;
    cublasOperation_t oa, ob, oc;
    cublasLtMatmulDesc_t desc;
    cublasLtMatmulPreference_t pref = preference_of(c, m);
    cublasLtMatmulHeuristicResult_t found;
    int n_found = 0;
    cublasLtMatrixLayout_t a = layout_of(c, &m->a, m->m, m->k, in, m->batch, &oa),
                           b = layout_of(c, &m->b, m->k, m->n, in, m->batch, &ob),
                           out = layout_of(c, &m->c, m->m, m->n, wide, m->batch, &oc);
    must_lt(c, "product",
            c->lt.desc_new(&desc, m->f64 ? CUBLAS_COMPUTE_64F : CUBLAS_COMPUTE_32F, wide));
    must_lt(c, "product", c->lt.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSA, &ob, sizeof ob));
    must_lt(c, "product", c->lt.desc_set(desc, CUBLASLT_MATMUL_DESC_TRANSB, &oa, sizeof oa));
    must_lt(c, "product", c->lt.choose(c->handle, desc, b, a, out, out, pref, 1, &found, &n_found));
    if (!n_found) failed(c, "product", "cuBLASLt knows no way to do it");
    timed_begin(c);
    must_lt(c, "product",
            c->lt.matmul(c->handle, desc, m->f64 ? (const void *)&one64 : &one32, m->b.p, b, m->a.p,
                         a, m->f64 ? (const void *)&zero64 : &zero32, m->c.p, out, m->c.p, out,
                         &found.algo, c->workspace, WORKSPACE, on(c)));
    timed_end(c);
    c->lt.pref_free(pref);
    c->lt.desc_free(desc);
    c->lt.layout_free(a);
    c->lt.layout_free(b);
    c->lt.layout_free(out);
}
void cuda_close(Gpu *g) {
    Cuda *c = (Cuda *)g;
    cudaFree(c->workspace);
    for (int i = 0; i < EVENTS; i++) {
        cudaEventDestroy(c->begin[i]);
        cudaEventDestroy(c->end[i]);
    }
    for (int i = 0; i < c->n_marks; i++) cudaEventDestroy(c->marks[i]);
    for (int i = 1; i < GPU_LANES; i++)
        if (c->lanes[i]) cudaStreamDestroy(c->lanes[i]);
    free(c->marks);
    c->lt.destroy(c->handle);
    delete c;
}

/* ---- opening ---- */
/* cuBLASLt of CUDA 13 or 12, where the linker finds it or SHARDPROOF_CUBLASLT says. */
const char *find_lt(Lt *lt) {
    const char *names[] = {getenv("SHARDPROOF_CUBLASLT"), "libcublasLt.so.13", "libcublasLt.so.12",
                           "libcublasLt.so"};
    void *lib = NULL;
    for (const char *name : names)
        if (!lib && name && *name) lib = dlopen(name, RTLD_NOW | RTLD_LOCAL);
    if (!lib) return "there is no libcublasLt.so.13 or .12; SHARDPROOF_CUBLASLT may name its file";
    const char *missing = NULL;
#define FIND(field, symbol)                                                                        \
    lt->field = (decltype(lt->field))dlsym(lib, #symbol);                                          \
    if (!lt->field) missing = "cuBLASLt has no " #symbol;
    FIND(create, cublasLtCreate)
    FIND(destroy, cublasLtDestroy)
    FIND(desc_new, cublasLtMatmulDescCreate)
    FIND(desc_free, cublasLtMatmulDescDestroy)
    FIND(desc_set, cublasLtMatmulDescSetAttribute)
    FIND(layout_new, cublasLtMatrixLayoutCreate)
    FIND(layout_free, cublasLtMatrixLayoutDestroy)
    FIND(layout_set, cublasLtMatrixLayoutSetAttribute)
    FIND(pref_new, cublasLtMatmulPreferenceCreate)
    FIND(pref_free, cublasLtMatmulPreferenceDestroy)
    FIND(pref_set, cublasLtMatmulPreferenceSetAttribute)
    FIND(choose, cublasLtMatmulAlgoGetHeuristic)
    FIND(matmul, cublasLtMatmul)
#undef FIND
    return missing;
}
/* What the driver says before anything is used. */
GpuWhy look(const GpuHost *host, const char **text) {
    int devices = 0;
    if (host->abi != GPU_ABI || host->kernels != GPU_N_KERNELS) {
        *text = "the plug-in was built from another version of the program";
        return GPU_OTHER_VERSION;
    }
    cudaError_t e = cudaGetDeviceCount(&devices);
    *text = cudaGetErrorString(e);
    if (e == cudaErrorInsufficientDriver) {
        int version = 0;
        return cudaDriverGetVersion(&version) == cudaSuccess && version ? GPU_OLD_DRIVER
                                                                        : GPU_NO_DRIVER;
    }
    if (e == cudaErrorNoDevice || (e == cudaSuccess && !devices)) return GPU_NO_DEVICE;
    if (e == cudaSuccess) e = cudaSetDevice(host->device);
    *text = cudaGetErrorString(e);
    return e == cudaSuccess ? GPU_OK : GPU_BROKEN;
}
/* What it has to have. NULL, or why it cannot be used. */
const char *take_over(Cuda *c) {
    static char text[512];
    cudaFuncAttributes kernel;
    size_t all = 0;
    cudaError_t e = cudaGetDeviceProperties(&c->about, c->host.device);
    if (e != cudaSuccess) return cudaGetErrorString(e);
    e = cudaFuncGetAttributes(&kernel, (const void *)gpu_kernels[0][0]);
    snprintf(text, sizeof text, "%s, of compute capability %d.%d: %s; make CUDA=1 CUDA_ARCHS=%d%d",
             c->about.name, c->about.major, c->about.minor, cudaGetErrorString(e), c->about.major,
             c->about.minor);
    if (c->about.major < 8) /* bf16 on tensor cores */
        snprintf(text, sizeof text, "%s, of compute capability %d.%d: the kernels want 8.0 or more",
                 c->about.name, c->about.major, c->about.minor);
    if (e != cudaSuccess || c->about.major < 8) return text;
    const char *wrong = find_lt(&c->lt);
    if (wrong) return wrong;
    if (cudaMemGetInfo(&c->g.memory, &all) != cudaSuccess) return "no memory is told";
    if (cudaMalloc(&c->workspace, WORKSPACE) != cudaSuccess) return "no memory is free";
    if (c->lt.create(&c->handle) != CUBLAS_STATUS_SUCCESS) return "cuBLASLt cannot be started";
    for (int i = 0; i < EVENTS; i++)
        if (cudaEventCreate(&c->begin[i]) != cudaSuccess ||
            cudaEventCreate(&c->end[i]) != cudaSuccess)
            return "events cannot be made";
    return NULL;
}
} // namespace

extern "C" __attribute__((visibility("default"))) Gpu *
shardproof_gpu(const GpuHost *host, GpuWhy *why, const char **text) {
    *why = look(host, text);
    if (*why != GPU_OK) return NULL;
    Cuda *c = new Cuda();
    c->host = *host;
    const char *wrong = take_over(c);
    if (wrong) {
        delete c;
        *why = GPU_BROKEN;
        *text = wrong;
        return NULL;
    }
    Gpu *g = &c->g;
    g->name = c->about.name;
    g->staged = c->about.pageableMemoryAccessUsesHostPageTables ? 0 : (size_t)1 << 16;
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
    g->close = cuda_close;
    return g;
}
