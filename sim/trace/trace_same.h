/* Are two runs of one plan the same but for where they ran? Refuses to compare pictures or plans:
 * that is what `diff` lists. */
#ifndef SP_TRACE_TRACE_SAME_H
#define SP_TRACE_TRACE_SAME_H
#include "trace/trace.h"

/* Where the records of two executed traces part. Times, modelled and measured, never count. Of two
 * backends magnitudes do not either: what was computed in another order has other last bits, so
 * errors, distances, bounds and numbers of values are left out, and of the checks of a value the
 * verdict, the ranks and the first wrong element count, not by which of the two levels it was held.
 */
typedef struct TraceApart {
    bool backends; /* they differ, so magnitudes were left out */
    const char *a,
        *b; /* the first records that differ, as JSON; NULL: there is none on that side */
    int n;  /* records that differ, one against one; 0: the traces are equal */
} TraceApart;
TraceApart trace_apart(const Trace *a, const Trace *b, Arena *arena);
#endif
