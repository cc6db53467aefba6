/* The course of a pipeline's rank over the modelled time, drawn. */
#ifndef SP_RENDER_MEMORY_VIEW_TIME_H
#define SP_RENDER_MEMORY_VIEW_TIME_H
#include "render/furniture/furniture.h"
#include "render/memory/memory.h"

/* In the plot, with a strip of the rank's actions and a line of what is in flight under it. Returns
 * the height of what stands under the ticks. highest: the bytes that fill the plot. */
double memory_draw_time(const ViewCall *c, Scene *s, const MemTime *m, Area plot, int64_t highest);
/* "in B of micro-batch 0 on stage 3" */
const char *memory_when(Arena *a, const MemTime *m);
#endif
