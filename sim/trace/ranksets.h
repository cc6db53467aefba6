/* Different sets of ranks, each with a number: records by the thousand have one of a few. Refuses
 * to know what the sets are of. */
#ifndef SP_TRACE_RANKSETS_H
#define SP_TRACE_RANKSETS_H
#include "trace/trace.h"

typedef struct {
    Arena *arena;
    int n, cap;
    const RankSet **set; /* by number; those that were handed in */
    int places, *place;  /* 1 + the number that stands there, by a hash of the set; 0: none */
} RankSets;

/* None yet. */
RankSets ranksets_new(Arena *arena);
/* The number of the set, which is kept (not copied) where no equal one was met before. */
int ranksets_number(RankSets *s, const RankSet *x);
#endif
