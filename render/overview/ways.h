/* The way of the stream through a unit of an overview: what stands on it before the unit's own
 * ops, among them and behind them, and whether the unit only adds to the stream. */
#ifndef SP_RENDER_WAYS_H
#define SP_RENDER_WAYS_H
#include "render/overview/overview.h"

/* Is it a step of the pass that the units are made of? */
bool ways_wants(const Overview *o, const TraceCompute *c);
/* Norms on the ways of all units, and which units are branches of the residual stream. Before any
 * collective is added. */
void ways_read(Overview *o);
/* The collective stands on the way of unit k. */
void ways_add(Overview *o, int k, const TraceCollective *c);
/* Is there the same on both units' ways? */
bool ways_alike(const OverviewUnit *a, const OverviewUnit *b);
#endif
