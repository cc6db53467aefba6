/* CUDA's plug-in as it is (gpu_cuda.cu), compiled for the host: its kernels are coroutines
 * (support/emulate.h), CUDA's runtime and cuBLASLt those of cuda_host.c. What it asks of them is
 * what it would ask of the real ones. */
#include "gpu/cuda/gpu_cuda.cu"
extern "C" int cuda_host_waits(const void *kernel);
/* Do the threads of that kernel's blocks wait for each other? -1: there is no such kernel. */
int cuda_host_waits(const void *kernel) {
    static const int waits[] = {
#define WAITS(name, together) together,
        GPU_KERNELS(WAITS)};
    for (int k = 0; k < 2 * GPU_N_KERNELS; k++)
        if ((const void *)gpu_kernels[k / GPU_N_KERNELS][k % GPU_N_KERNELS] == kernel)
            return waits[k % GPU_N_KERNELS];
    return -1;
}
