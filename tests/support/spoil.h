/* One rank's copy of a value, made its own and changed: what a rank would hold that computed or
 * received something else than the others. For tests of the check; PipelineOptions.watch is where
 * it is done. */
#ifndef SP_TESTS_SPOIL_H
#define SP_TESTS_SPOIL_H
#include "exec/exec.h"

/* A rank's part of a value, apart from all others: packed, of n elements. Until spoil_undo the rank
 * holds it in place of what it held. */
typedef struct {
    Exec *e;
    int val;
    int64_t rank, n;
    uint32_t held; /* what `which` said before */
    Local own;
} Spoil;

/* Gives `rank` a packed copy of its part of the value, to be changed. */
Spoil spoil_part(Exec *e, int val, int64_t rank);
/* The rank holds again what it held. Parts are undone in the reverse order of spoil_part. */
void spoil_undo(Spoil *s);
double spoil_get(const Spoil *s, int64_t i);
/* Rounds x to the run's dtype. */
void spoil_set(Spoil *s, int64_t i, double x);
/* The neighbour of x in that dtype, towards `to`; a whole number's is the next. */
double spoil_next(Dtype dt, double x, double to);
/* Multiplies the value by `factor` on all ranks alike and for good: every buffer that is shared
 * stays shared. */
void spoil_all(Exec *e, int val, double factor);
/* One number for what all ranks hold of the value: equal numbers, equal bits. */
uint64_t spoil_hash(Exec *e, int val);
#endif
