/* What CUDA's plug-in uses of CUDA's runtime and of cuBLASLt, without a GPU: with the names and,
 * from NVIDIA's headers, the types of the real ones. Memory is behind a fence, so that the host
 * reaches none of it; a stream does at once what it is asked for; a product is what its
 * descriptors say, and what they say that the real one refuses is refused. FAKE_CAPABILITY=75: that
 * of the GPU; FAKE_IMAGE=none: the plug-in has no kernels for it. */
#include "emulate.h"
#include "fence.h"
#include "gpu/lang.h"
#include "base/clock.h"
#include <cublasLt.h>
#include <cuda_runtime_api.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define ASKED __attribute__((visibility("default")))
enum { ROOM = 1 << 30 };
int cuda_host_waits(const void *kernel);
static Fence *fence(void) {
    static Fence *all;
    if (!all) all = fence_new(ROOM);
    return all;
}
static void never(const char *what) {
    fprintf(stderr, "CUDA is asked for what it refuses: %s\n", what);
    abort();
}

/* ---- the device: of each thread its own, and at first one that is not the run's ---- */
static _Thread_local int device = -1;
static int made_on = -1;
static void on_device(void) {
    if (device != made_on) never("a thread asks another device");
}
cudaError_t cudaGetDeviceCount(int *n) {
    *n = 2;
    return cudaSuccess;
}
cudaError_t cudaDriverGetVersion(int *version) {
    *version = CUDART_VERSION;
    return cudaSuccess;
}
cudaError_t cudaSetDevice(int which) {
    device = which;
    if (made_on < 0) made_on = which;
    return which >= 0 && which < 2 ? cudaSuccess : cudaErrorInvalidDevice;
}
cudaError_t cudaGetDeviceProperties(struct cudaDeviceProp *p, int which) {
    const char *as = getenv("FAKE_CAPABILITY");
    int capability = as ? atoi(as) : 90;
    if (which != made_on) return cudaErrorInvalidDevice;
    memset(p, 0, sizeof *p);
    snprintf(p->name, sizeof p->name, "no GPU");
    p->major = capability / 10, p->minor = capability % 10;
    return cudaSuccess;
}
cudaError_t cudaFuncGetAttributes(struct cudaFuncAttributes *a, const void *kernel) {
    memset(a, 0, sizeof *a);
    if (cuda_host_waits(kernel) < 0) return cudaErrorInvalidDeviceFunction;
    return getenv("FAKE_IMAGE") ? cudaErrorNoKernelImageForDevice : cudaSuccess;
}
cudaError_t cudaMemGetInfo(size_t *free_bytes, size_t *all) {
    *free_bytes = *all = ROOM / 2;
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t e) {
    return e == cudaSuccess                       ? "no error"
           : e == cudaErrorNoKernelImageForDevice ? "no kernel image is available for execution on "
                                                    "the device"
                                                  : "invalid argument";
}
cudaError_t cudaGetLastError(void) { return cudaSuccess; }

/* ---- memory ---- */
cudaError_t cudaMalloc(void **p, size_t n) {
    on_device();
    if (!n) never("no bytes");
    *p = fence_take(fence(), n);
    return cudaSuccess;
}
cudaError_t cudaFree(void *p) {
    fence_give(fence(), p);
    return cudaSuccess;
}
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t s) {
    bool up = kind == cudaMemcpyHostToDevice;
    (void)s;
    on_device();
    if (fence_has(fence(), to) != up || fence_has(fence(), from) == up) never("the other way");
    memcpy(fence_at(fence(), to), fence_at(fence(), from), n);
    return cudaSuccess;
}

/* ---- streams and events ---- */
struct CUstream_st {
    int device;
};
struct CUevent_st {
    bool timed, recorded;
    double at;
};
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *s, unsigned flags) {
    on_device();
    *s = calloc(1, sizeof **s);
    return flags == cudaStreamNonBlocking ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    free(s);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    (void)s;
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    (void)s, (void)e;
    return flags ? cudaErrorInvalidValue : cudaSuccess;
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
    on_device();
    *e = calloc(1, sizeof **e);
    (*e)->timed = flags == cudaEventDefault;
    return cudaSuccess;
}
cudaError_t cudaEventCreate(cudaEvent_t *e) {
    return cudaEventCreateWithFlags(e, cudaEventDefault);
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    (void)s;
    on_device();
    e->recorded = true;
    e->at = clock_seconds();
    return cudaSuccess;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    (void)e;
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    if (!from->timed || !to->timed || !from->recorded || !to->recorded)
        return cudaErrorInvalidResourceHandle;
    *ms = (float)(1e3 * (to->at - from->at));
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    free(e);
    return cudaSuccess;
}

/* ---- kernels ---- */
static void *reach(const void *p) {
    if (p && !fence_has(fence(), p)) never("an address of the host");
    return p ? fence_at(fence(), p) : NULL;
}
cudaError_t cudaLaunchKernel(const void *kernel, dim3 blocks, dim3 threads, void **args,
                             size_t shared, cudaStream_t s) {
    GpuArgs a = *(const GpuArgs *)args[0];
    int waits = cuda_host_waits(kernel);
    void (*run)(const GpuArgs a);
    (void)s;
    on_device();
    memcpy(&run, &kernel, sizeof run);
    if (waits < 0) return cudaErrorInvalidDeviceFunction;
    bool all = blocks.y == 1 && blocks.z == 1 && threads.y == 1 && threads.z == 1 && !shared;
    if (!all || !blocks.x || blocks.x > 0x7fffffff || !threads.x || threads.x > 1024 ||
        threads.x % GPU_WARP)
        return cudaErrorInvalidConfiguration;
    a.out.p = reach(a.out.p);
    for (int k = 0; k < GPU_IN; k++) a.x[k].p = reach(a.x[k].p);
    a.table = reach(a.table);
    const char *wrong = emulated_run(run, &a, blocks.x, (int)threads.x, waits);
    if (wrong) never(wrong);
    return cudaSuccess;
}

/* ---- cuBLASLt: column-major, op(A) op(B), as its manual says ---- */
typedef struct {
    cudaDataType type;
    uint64_t rows, cols;
    int64_t ld, next;
    int32_t count;
} Layout;
typedef struct {
    cublasComputeType_t sums;
    cudaDataType scale;
    cublasOperation_t a, b;
} Desc;
typedef struct {
    uint64_t workspace;
    uint32_t sums, align[4];
} Wants;
#define IS(what, field)                                                                            \
    case what:                                                                                     \
        if (n != sizeof(field)) return CUBLAS_STATUS_INVALID_VALUE;                                \
        memcpy(&(field), value, n);                                                                \
        return CUBLAS_STATUS_SUCCESS
ASKED cublasStatus_t cublasLtCreate(cublasLtHandle_t *h) {
    *h = malloc(1);
    return CUBLAS_STATUS_SUCCESS;
}
ASKED cublasStatus_t cublasLtDestroy(cublasLtHandle_t h) {
    free(h);
    return CUBLAS_STATUS_SUCCESS;
}
ASKED cublasStatus_t cublasLtMatmulDescCreate(cublasLtMatmulDesc_t *d, cublasComputeType_t sums,
                                              cudaDataType scale) {
    Desc *x = malloc(sizeof *x);
    *x = (Desc){sums, scale, CUBLAS_OP_N, CUBLAS_OP_N};
    *d = (cublasLtMatmulDesc_t)x;
    return CUBLAS_STATUS_SUCCESS;
}
ASKED cublasStatus_t cublasLtMatmulDescDestroy(cublasLtMatmulDesc_t d) {
    free(d);
    return CUBLAS_STATUS_SUCCESS;
}
ASKED cublasStatus_t cublasLtMatmulDescSetAttribute(cublasLtMatmulDesc_t d,
                                                    cublasLtMatmulDescAttributes_t what,
                                                    const void *value, size_t n) {
    Desc *x = (Desc *)d;
    switch ((int)what) {
        IS(CUBLASLT_MATMUL_DESC_TRANSA, x->a);
        IS(CUBLASLT_MATMUL_DESC_TRANSB, x->b);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}
ASKED cublasStatus_t cublasLtMatrixLayoutCreate(cublasLtMatrixLayout_t *l, cudaDataType type,
                                                uint64_t rows, uint64_t cols, int64_t ld) {
    Layout *x = malloc(sizeof *x);
    *x = (Layout){type, rows, cols, ld, 0, 1};
    *l = (cublasLtMatrixLayout_t)x;
    return rows && cols && ld >= (int64_t)rows ? CUBLAS_STATUS_SUCCESS
                                               : CUBLAS_STATUS_INVALID_VALUE;
}
ASKED cublasStatus_t cublasLtMatrixLayoutDestroy(cublasLtMatrixLayout_t l) {
    free(l);
    return CUBLAS_STATUS_SUCCESS;
}
ASKED cublasStatus_t cublasLtMatrixLayoutSetAttribute(cublasLtMatrixLayout_t l,
                                                      cublasLtMatrixLayoutAttribute_t what,
                                                      const void *value, size_t n) {
    Layout *x = (Layout *)l;
    switch ((int)what) {
        IS(CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT, x->count);
        IS(CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET, x->next);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}
ASKED cublasStatus_t cublasLtMatmulPreferenceCreate(cublasLtMatmulPreference_t *p) {
    Wants *x = malloc(sizeof *x);
    *x = (Wants){0, CUBLASLT_REDUCTION_SCHEME_MASK, {256, 256, 256, 256}};
    *p = (cublasLtMatmulPreference_t)x;
    return CUBLAS_STATUS_SUCCESS;
}
ASKED cublasStatus_t cublasLtMatmulPreferenceDestroy(cublasLtMatmulPreference_t p) {
    free(p);
    return CUBLAS_STATUS_SUCCESS;
}
ASKED cublasStatus_t cublasLtMatmulPreferenceSetAttribute(cublasLtMatmulPreference_t p,
                                                          cublasLtMatmulPreferenceAttributes_t what,
                                                          const void *value, size_t n) {
    Wants *x = (Wants *)p;
    switch ((int)what) {
        IS(CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES, x->workspace);
        IS(CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK, x->sums);
        IS(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES, x->align[0]);
        IS(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES, x->align[1]);
        IS(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES, x->align[2]);
        IS(CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES, x->align[3]);
    }
    return CUBLAS_STATUS_INVALID_VALUE;
}
/* What of types and shapes goes together. */
static bool fits(const Desc *d, const Layout *a, const Layout *b, const Layout *c) {
    bool wide = d->sums == CUBLAS_COMPUTE_64F && d->scale == CUDA_R_64F && a->type == CUDA_R_64F,
         narrow = d->sums == CUBLAS_COMPUTE_32F && d->scale == CUDA_R_32F &&
                  (a->type == CUDA_R_32F || a->type == CUDA_R_16BF);
    uint64_t m = d->a == CUBLAS_OP_N ? a->rows : a->cols,
             k = d->a == CUBLAS_OP_N ? a->cols : a->rows;
    uint64_t k_b = d->b == CUBLAS_OP_N ? b->rows : b->cols,
             n = d->b == CUBLAS_OP_N ? b->cols : b->rows;
    return (wide || narrow) && a->type == b->type && c->type == (wide ? CUDA_R_64F : CUDA_R_32F) &&
           m == c->rows && n == c->cols && k == k_b && a->count == c->count &&
           b->count == c->count && c->count > 0 && (c->count == 1 || c->next != 0);
}
ASKED cublasStatus_t cublasLtMatmulAlgoGetHeuristic(
    cublasLtHandle_t h, cublasLtMatmulDesc_t d, cublasLtMatrixLayout_t a, cublasLtMatrixLayout_t b,
    cublasLtMatrixLayout_t c, cublasLtMatrixLayout_t out, cublasLtMatmulPreference_t p, int most,
    cublasLtMatmulHeuristicResult_t result[], int *n) {
    (void)h;
    *n = 0;
    if (most < 1 || c != out) return CUBLAS_STATUS_INVALID_VALUE;
    if (!fits((Desc *)d, (Layout *)a, (Layout *)b, (Layout *)c)) return CUBLAS_STATUS_NOT_SUPPORTED;
    memset(result, 0, sizeof *result);
    memcpy(&result->algo, p, sizeof(Wants)); /* it counts on what it was told */
    *n = 1;
    return CUBLAS_STATUS_SUCCESS;
}
static double number(cudaDataType type, const void *p, int64_t o) {
    return type == CUDA_R_64F    ? ((const double *)p)[o]
           : type == CUDA_R_16BF ? (double)gpu_wide(((const uint16_t *)p)[o])
                                 : (double)((const float *)p)[o];
}
static int64_t at(const Layout *l, bool across, int64_t i, int64_t j, int64_t z) {
    return z * l->next + (across ? j + i * l->ld : i + j * l->ld);
}
static void product(const Desc *d, const void *a, const Layout *la, const void *b, const Layout *lb,
                    void *out, const Layout *lc) {
    bool ta = d->a != CUBLAS_OP_N, tb = d->b != CUBLAS_OP_N;
    int64_t terms = (int64_t)(ta ? la->rows : la->cols);
    for (int64_t z = 0; z < lc->count; z++)
        for (int64_t j = 0; j < (int64_t)lc->cols; j++)
            for (int64_t i = 0; i < (int64_t)lc->rows; i++) {
                double sum = 0;
                for (int64_t k = 0; k < terms; k++)
                    sum += number(la->type, a, at(la, ta, i, k, z)) *
                           number(lb->type, b, at(lb, tb, k, j, z));
                int64_t o = at(lc, false, i, j, z);
                if (lc->type == CUDA_R_64F) ((double *)out)[o] = sum;
                else ((float *)out)[o] = (float)sum;
            }
}
ASKED cublasStatus_t cublasLtMatmul(cublasLtHandle_t h, cublasLtMatmulDesc_t d, const void *one,
                                    const void *a, cublasLtMatrixLayout_t la, const void *b,
                                    cublasLtMatrixLayout_t lb, const void *zero, const void *c,
                                    cublasLtMatrixLayout_t lc, void *out, cublasLtMatrixLayout_t lo,
                                    const cublasLtMatmulAlgo_t *algo, void *workspace, size_t bytes,
                                    cudaStream_t s) {
    const Desc *x = (const Desc *)d;
    Wants w;
    (void)h, (void)s;
    on_device();
    memcpy(&w, algo, sizeof w);
    bool wide = x->scale == CUDA_R_64F;
    if ((wide ? *(const double *)one : (double)*(const float *)one) != 1 ||
        (wide ? *(const double *)zero : (double)*(const float *)zero) != 0)
        never("a product that is scaled");
    if (c != out || lc != lo || bytes < w.workspace || (uintptr_t)workspace % 64 ||
        (w.sums & CUBLASLT_REDUCTION_SCHEME_OUTPUT_TYPE))
        never("a product");
    const void *p[] = {a, b, c, out};
    for (int i = 0; i < 4; i++)
        if ((uintptr_t)p[i] % w.align[i]) never("an operand that is less aligned than was said");
    product(x, reach(a), (Layout *)la, reach(b), (Layout *)lb, reach(out), (Layout *)lo);
    return CUBLAS_STATUS_SUCCESS;
}
