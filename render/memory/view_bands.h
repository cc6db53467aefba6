/* The bands of the program under the course of memory. */
#ifndef SP_RENDER_VIEW_BANDS_H
#define SP_RENDER_VIEW_BANDS_H
#include "render/furniture/furniture.h"
#include "render/memory/memory.h"

/* Draws them under a plot of all steps and its ticks, which they share; returns the height taken.
 * leaders: bands too narrow for their names have them below. 0: the trace has no compute steps. */
double memory_draw_bands(const ViewCall *c, Scene *s, const MemCourse *m, Area plot, bool leaders);
#endif
