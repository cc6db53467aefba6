/* Who waits for whom on a GPU. Moves between processes have a lane of their own for each group of
 * axes; all else is asked of lane 0. What is asked of another lane, from begin to end, is done
 * behind all that lane 0 was asked before; whoever touches later what it wrote, or writes what it
 * reads, waits for it on the GPU, and for no more of that lane than need be. The host waits for
 * nothing here. */
#ifndef SP_EXEC_GPU_LANES_H
#define SP_EXEC_GPU_LANES_H
#include "gpu/gpu.h"

enum { GPU_MARKS = 8 };
typedef struct GpuLanes {
    Gpu *gpu;
    int now;     /* the lane that is asked */
    void *ready; /* the mark of lane 0 at the last begin */
    struct {
        int64_t ends;          /* how often it was left */
        void *mark[GPU_MARKS]; /* of the last of these */
    } lane[GPU_LANES];
} GpuLanes;
/* How lanes but 0 use some memory. */
typedef struct GpuUse {
    int writer;       /* who wrote it last; 0: lane 0, or nobody */
    int64_t end;      /* which of its ends is behind that */
    uint32_t readers; /* a bit for each lane that has read it since */
} GpuUse;
/* From here to the end another lane than 0 is asked. */
void gpu_lanes_begin(GpuLanes *l, int lane);
void gpu_lanes_end(GpuLanes *l);
/* Before the lane that is asked reads or writes there. */
void gpu_lanes_touch(GpuLanes *l, GpuUse *use, bool writes);
#endif
