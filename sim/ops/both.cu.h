/* All kernels for both types, and the table of them by number: gpu_kernels[f64][GPU_...]. */
#include "gpu/kernels.h"
#include "gpu/lang.h"
#define GPU_REAL float
#define GPU_SUFFIX _f32
#include "ops/all.cu.h"
#undef GPU_REAL
#undef GPU_SUFFIX
#define GPU_REAL double
#define GPU_SUFFIX _f64
#include "ops/all.cu.h"
#undef GPU_REAL
#undef GPU_SUFFIX
typedef void GpuKernel(const GpuArgs a);
#define GPU_F32(name, together) gpu_##name##_f32,
#define GPU_F64(name, together) gpu_##name##_f64,
static GpuKernel *const gpu_kernels[2][GPU_N_KERNELS] = {{GPU_KERNELS(GPU_F32)},
                                                         {GPU_KERNELS(GPU_F64)}};
