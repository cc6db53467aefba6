/* A GPU that is this process: its kernels' texts compiled for the host, the threads of a block as
 * coroutines, its memory behind a fence. It shows values, barriers and indices, not speed, and no
 * races that depend on time. */
#ifndef SP_TESTS_EMULATE_H
#define SP_TESTS_EMULATE_H
#include "fence.h"
#include "gpu/gpu.h"
#include "gpu/kernels.h"

/* One with room for `bytes`; `close` of the Gpu ends it. `threads`: of a block, in place of what a
 * launch asks for, where they wait for each other (a multiple of GPU_WARP). */
Gpu *emulated_gpu(size_t bytes, int threads);
/* The same in memory that is another's: it stays there. It has one lane; who has more asks it from
 * theirs. */
Gpu *emulated_gpu_in(Fence *memory, int threads);
/* How often each kernel ran, [GPU_N_KERNELS], and how often a plain product was made, behind it. */
const long *emulated_calls(const Gpu *g);
/* Runs one kernel on memory of the host. NULL, or what is wrong with its barriers. */
const char *emulated_run(void (*kernel)(const GpuArgs a), const GpuArgs *a, int64_t blocks,
                         int threads, bool together);
#endif
