/* Marks of lanes. See gpu_lanes.h. */
#include "exec/gpu_lanes.h"
#include <assert.h>

void gpu_lanes_begin(GpuLanes *l, int lane) {
    assert(!l->now && lane > 0 && lane < GPU_LANES);
    l->ready = l->gpu->mark(l->gpu, l->ready);
    l->now = lane;
    l->gpu->lane(l->gpu, lane);
    l->gpu->after(l->gpu, l->ready);
}
void gpu_lanes_end(GpuLanes *l) {
    assert(l->now);
    void **mark = &l->lane[l->now].mark[l->lane[l->now].ends++ % GPU_MARKS];
    *mark = l->gpu->mark(l->gpu, *mark);
    l->now = 0;
    l->gpu->lane(l->gpu, 0);
}
/* Behind an end of another lane; where its mark has been used again, behind the later end that it
 * is of now. */
static void wait_for(GpuLanes *l, int lane, int64_t end) {
    if (lane == l->now) return;
    assert(end < l->lane[lane].ends); /* it was left: one lane is asked at a time */
    l->gpu->after(l->gpu, l->lane[lane].mark[end % GPU_MARKS]);
}
void gpu_lanes_touch(GpuLanes *l, GpuUse *use, bool writes) {
    if (use->writer) wait_for(l, use->writer, use->end);
    if (!writes) {
        if (l->now) use->readers |= (uint32_t)1 << l->now;
        return;
    }
    for (int k = 1; k < GPU_LANES && use->readers; k++)
        if (use->readers >> k & 1) wait_for(l, k, l->lane[k].ends - 1);
    *use = (GpuUse){.writer = l->now, .end = l->lane[l->now].ends};
}
