/* What ranks hand in, take out and send in one collective, as it is done: with what a planted
 * mistake makes of it, for all steps that travel together, and per class of ranks where groups are
 * unequal. Refuses to look at data. */
#ifndef SP_EXEC_TRAFFIC_H
#define SP_EXEC_TRAFFIC_H
#include "base/recent.h"
#include "exec/classes.h"

typedef struct {
    const Program *p;
    Arena *arena, *tmp; /* of the record; of the work */
    RankSets *sets;
    Dtype dtype;
    Recent *alike; /* bytes of moves that were asked for; made by traffic_alike */
} Traffic;
/* Layers repeat: what is kept of moves, in the arena of the record. */
Recent traffic_alike(Arena *arena);

/* Fills axis, axes, groups, reduce, times, bytes, local, with, planted, declared and skipped of the
 * record of step `s`, which leads its unit if it is in one. Bytes are padded as the framework pads.
 */
void traffic_record(const Traffic *c, const Step *s, TraceCollective *x);
/* "plan.yaml:14", the entry that plants a mistake in a step or source whose own line is `own`;
 * NULL: none does, or that very line. */
const char *traffic_planted_at(Arena *a, Loc planted, Loc own);
#endif
