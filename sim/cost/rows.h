/* Rows of experts in the model of time: as many as the run had on the rank that has most, or those
 * to expect. Others wait for that rank at the next collective, so the step takes its time. */
#ifndef SP_COST_ROWS_H
#define SP_COST_ROWS_H
#include "trace/trace.h"

typedef struct CostRows {
    const Trace *t;
    int n;                   /* steps */
    const TraceValue **made; /* per step: the value in rows that it makes; NULL: no rows */
    bool any, run;           /* values in rows; numbers of a run */
    double most;             /* rows at most over rows expected: the worst that a router can do */
} CostRows;
/* Of a trace with steps below n; lives in `arena`. */
CostRows cost_rows(const Trace *t, int n, Arena *arena);
/* Rows of a kernel's operands: on the busiest rank of a class, and expected on one. */
typedef struct RowLoad {
    double rows, expected;
    int64_t bytes; /* of all operands in rows, of the expected ones */
} RowLoad;
/* False: its operands have no rows. Without a run rows are those expected. */
bool cost_rows_of(const CostRows *c, const TraceCompute *k, const RankSet *ranks, RowLoad *out);
/* Bytes that a collective of rows puts on the busiest link: pairwise, in as many rounds as there
 * are other members (exchange_round()), each as long as its largest pair. -1: they are not known,
 * or it moves no rows. */
int64_t cost_rows_sent(const CostRows *c, const TraceCollective *k);
/* "; rows of experts: ..." for the line that says what times are made from; "" without rows. */
const char *cost_rows_line(const CostRows *c, Arena *arena);
#endif
