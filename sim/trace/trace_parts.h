/* Which ranks do the same work: finer than a trace's rank classes, which have the same local
 * shapes. Ranks of one part also compute the same FLOPs (causal attention gives contiguous blocks
 * unequal loads) and send the same bytes in every step (groups of unequal size). */
#ifndef SP_TRACE_TRACE_PARTS_H
#define SP_TRACE_TRACE_PARTS_H
#include "trace/trace.h"

/* All ranks in parts, ordered by their first rank; returns their number, at least 1. In `arena`. */
int trace_parts(const Trace *t, Arena *arena, RankSet **out);
#endif
