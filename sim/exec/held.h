/* From when to when copies of parameters that lie cut at rest (FSDP) are held: one rule for memory
 * and for time.
 *
 * A unit is what one gather brings: a block's parameters under `unit: block`, else one parameter.
 * It is gathered ahead of its use by at most TRACE_PREFETCH units: not before the first step that
 * uses the unit that many places earlier has begun, and the first of the backward pass not before
 * that pass. It is given up whole after the last step that reads any of it. (PyTorch's FSDP2 does
 * the same by default: the gather of the next unit runs during the compute of this one.) */
#ifndef SP_EXEC_HELD_H
#define SP_EXEC_HELD_H
#include "lower/program.h"
#include "trace/trace.h"

/* Per step: NULL where it gathers no parameter; steps of one unit share an entry. In `arena`. */
const TraceHeld **held_find(const Program *p, Arena *arena);
#endif
