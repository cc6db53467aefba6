/* Marks of lanes. See gpu_lanes.h. */
#include "exec/gpu_lanes.h"
#include <assert.h>

void gpu_lanes_begin(GpuLanes *l, int lane) {
    assert(!l->now && lane > 0 && lane < GPU_LANES);
    l->now = lane;
    l->gpu->lane(l->gpu, lane);
}
static void mark_end(GpuLanes *l, int lane) {
    void **mark = &l->lane[lane].mark[l->lane[lane].ends++ % GPU_MARKS];
    *mark = l->gpu->mark(l->gpu, *mark);
}
void gpu_lanes_end(GpuLanes *l) {
    assert(l->now);
    mark_end(l, l->now);
    l->now = 0;
    l->gpu->lane(l->gpu, 0);
}
void gpu_lanes_pause(GpuLanes *l) {
    if (!l->now) mark_end(l, 0);
}
/* Behind an end of another lane; where its mark has been used again, behind the first that still
 * has one. */
static void wait_for(GpuLanes *l, int lane, int64_t end) {
    if (lane == l->now || !end) return;
    if (!lane && end <= l->lane[l->now].behind) return;
    if (!lane && end > l->lane[0].ends) { /* lane 0 is not left, but goes on */
        l->gpu->lane(l->gpu, 0);
        mark_end(l, 0);
        l->gpu->lane(l->gpu, l->now);
    }
    int64_t ends = l->lane[lane].ends;
    assert(end <= ends);
    if (end <= ends - GPU_MARKS) end = ends - GPU_MARKS + 1;
    l->gpu->after(l->gpu, l->lane[lane].mark[(end - 1) % GPU_MARKS]);
    if (!lane) l->lane[l->now].behind = end;
}
void gpu_lanes_touch(GpuLanes *l, GpuUse *use, bool writes) {
    int64_t next = l->lane[l->now].ends + 1;
    wait_for(l, use->writer, use->end);
    if (!writes) {
        if (l->now) use->readers |= (uint32_t)1 << l->now;
        else use->read = next;
        return;
    }
    wait_for(l, 0, use->read);
    for (int k = 1; k < GPU_LANES && use->readers; k++)
        if (use->readers >> k & 1) wait_for(l, k, l->lane[k].ends);
    *use = (GpuUse){.writer = l->now, .end = next};
}
bool gpu_lanes_free(const GpuLanes *l, const GpuUse *use) {
    if (use->readers & ~((uint32_t)1 << l->now)) return false;
    int64_t behind = l->now ? l->lane[l->now].behind : INT64_MAX;
    bool written = use->writer ? use->writer == l->now : use->end <= behind;
    return written && use->read <= behind;
}
