/* What a GPU is asked for: memory, kernels by number, plain matrix products. The interface between
 * the program and the plug-in that is opened at run time, in plain C types: they come from
 * different compilers. A GPU here knows no ops, values, layouts or ranks. */
#ifndef SP_GPU_GPU_H
#define SP_GPU_GPU_H
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GPU_ABI = 7,
    GPU_DIMS = 16,
    GPU_IN = 5,
    GPU_NUMBERS = 8,
    GPU_THREADS = 128,
    GPU_WARP = 32,
    GPU_LANES = 32
};

/* A tensor along the space that a kernel goes through: one stride, in elements, for each dim of it;
 * 0 where the tensor lacks the dim. */
typedef struct GpuTensor {
    void *p;
    int64_t s[GPU_DIMS];
    bool half; /* an operand whose numbers lie there in bf16 */
} GpuTensor;
/* What every kernel is given, by value. */
typedef struct GpuArgs {
    int nd;              /* of the space */
    int64_t n[GPU_DIMS]; /* its sizes, row-major */
    GpuTensor out, x[GPU_IN];
    int64_t k[GPU_NUMBERS]; /* what each kernel says that they are */
    double a[GPU_NUMBERS];
    const int64_t *table; /* in the GPU's memory; NULL: none */
} GpuArgs;
/* One launch: f32 or f64, so many blocks of so many threads (a multiple of GPU_WARP). */
typedef struct GpuLaunch {
    int kernel; /* GPU_..., see gpu/kernels.h */
    bool f64;
    int64_t blocks;
    int threads;
    GpuArgs args;
    const void *table; /* the host's: `bytes` of it become args.table */
    size_t bytes;
} GpuLaunch;
/* A matrix: strides of its two indices, and from one of the batch to the next. */
typedef struct GpuMatrix {
    void *p;
    int64_t row, col, next;
} GpuMatrix;
/* C[i][j] = sum over l of A[i][l] B[l][j], row-major, `batch` times. Of A and B one of the two
 * strides is 1, of C that of j. All in elements. */
typedef struct GpuGemm {
    bool f64, bf16; /* bf16: A and B are, C and the sums are float32 */
    int64_t m, n, k, batch;
    GpuMatrix a, b, c;
} GpuGemm;

/* What a GPU tells the program: an error in the library's own words. It must not return. */
typedef struct GpuHost {
    int abi;     /* GPU_ABI of the program */
    int kernels; /* how many it knows */
    int device;  /* which GPU, as CUDA counts those that this process sees */
    void (*failed)(void *arg, const char *what);
    void *arg;
} GpuHost;
typedef enum {
    GPU_OK,
    GPU_NO_DRIVER,
    GPU_NO_DEVICE,
    GPU_OLD_DRIVER,
    GPU_OTHER_VERSION,
    GPU_BROKEN
} GpuWhy;
typedef struct Gpu Gpu;
struct Gpu {
    const char *name; /* "NVIDIA H100 80GB HBM3" */
    size_t memory;    /* bytes that are free */
    size_t staged;    /* so much of the host's memory put reads without waiting for the lane */
    void *(*alloc)(Gpu *g, size_t n); /* NULL: there is no room */
    void (*release)(Gpu *g, void *p);
    void (*put)(Gpu *g, void *to, const void *from, size_t n); /* from the host */
    void (*get)(Gpu *g, void *to, const void *from, size_t n); /* to the host */
    void (*launch)(Gpu *g, const GpuLaunch *l);
    void (*gemm)(Gpu *g, const GpuGemm *m);
    /* Lanes, from 0: what is asked for goes to that which was chosen last, one thing behind the
     * other. Nothing but marks orders two lanes. What put reads has been read when it returns, what
     * get writes is there. */
    void (*lane)(Gpu *g, int lane);
    void *(*stream)(Gpu *g); /* the lane, as other libraries know it: a cudaStream_t */
    /* What the lane has been asked for so far, in `mark`, or in a new one (NULL); what is asked of
     * the lane from now on begins when that is done. Marks live as long as the GPU. */
    void *(*mark)(Gpu *g, void *mark);
    void (*after)(Gpu *g, void *mark);
    /* The moment when the lane has done what it was asked for so far, in `stamp`, or in a new one
     * (NULL), as long as the GPU lives; seconds from one moment to another, when both are over. */
    void *(*stamp)(Gpu *g, void *stamp);
    double (*between)(Gpu *g, void *from, void *to);
    double (*busy)(Gpu *g); /* seconds that launches and products took since it was last asked */
    void (*close)(Gpu *g);
};
/* The one symbol of a plug-in. NULL: there is no GPU to use, *why and the library's words in text
 * (static) say why. */
#define GPU_SYMBOL "shardproof_gpu"
typedef Gpu *GpuOpen(const GpuHost *host, GpuWhy *why, const char **text);
#endif
