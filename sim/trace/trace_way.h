/* Pipelines that are entered at both ends (DualPipe): every value is there twice, under one name.
 * Which of the two a rank has. */
#ifndef SP_TRACE_TRACE_WAY_H
#define SP_TRACE_TRACE_WAY_H
#include "trace/trace.h"

/* What the records show of a step that has several: "one micro-batch", with `both` "one micro-batch
 * each way". */
const char *trace_way_one(bool both);
/* The trace as one rank sees it: of names that are there in both ways only the way in which the
 * rank has any of it, and what makes that. Where it has both (it makes the value for one stage and
 * gets it for the other), that of the way in which it computes `layer`; -1: both stay. What is made
 * of both ways together stays, and so do names of which the rank has nothing. The trace itself
 * where there is but one way; else a copy in `arena` that shares what its records point to. */
const Trace *trace_own_way(const Trace *t, int64_t rank, int layer, Arena *arena);
#endif
