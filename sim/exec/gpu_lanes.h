/* Who waits for whom on a GPU. Moves between processes have a lane of their own for each group of
 * axes; all else is asked of lane 0. Whoever touches what another lane wrote, or writes what it
 * reads, waits for that on the GPU, and for as little else of that lane as its marks can say: a hop
 * of a ring does not wait for the kernel before it that reads the same block. The host waits for
 * nothing here. */
#ifndef SP_EXEC_GPU_LANES_H
#define SP_EXEC_GPU_LANES_H
#include "gpu/gpu.h"

enum { GPU_MARKS = 32 };
typedef struct GpuLanes {
    Gpu *gpu;
    int now; /* the lane that is asked */
    struct {
        int64_t ends;          /* how often it was left; of lane 0: ended for a while */
        int64_t behind;        /* it waits for so many ends of lane 0 */
        void *mark[GPU_MARKS]; /* of the last of these; that of the n-th at (n - 1) % GPU_MARKS */
    } lane[GPU_LANES];
} GpuLanes;
/* How lanes use some memory. Ends are counted from 1; 0: none. */
typedef struct GpuUse {
    int writer;       /* who wrote it last */
    int64_t end;      /* which of its ends is behind that */
    int64_t read;     /* which end of lane 0 is behind what that has read since */
    uint32_t readers; /* a bit for each other lane that has read it since */
} GpuUse;
/* From here to the end another lane than 0 is asked. */
void gpu_lanes_begin(GpuLanes *l, int lane);
void gpu_lanes_end(GpuLanes *l);
/* What lane 0 was asked so far, and what it is asked from now on, are two things to wait for. */
void gpu_lanes_pause(GpuLanes *l);
/* Before the lane that is asked reads or writes there. */
void gpu_lanes_touch(GpuLanes *l, GpuUse *use, bool writes);
/* Could it write there without waiting for another? */
bool gpu_lanes_free(const GpuLanes *l, const GpuUse *use);
#endif
