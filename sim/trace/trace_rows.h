/* What a run says of rows: the one reading that tables and pictures share. Trusts no record that
 * has not a number for each rank. */
#ifndef SP_TRACE_TRACE_ROWS_H
#define SP_TRACE_TRACE_ROWS_H
#include "trace/trace.h"

/* The record of the rows that a collective moved; NULL: the trace is of no run, or too large. */
const TraceExchange *trace_exchange(const Trace *t, int step);
/* Bytes that `rank` sent of a collective in the run; where the run counted no rows of it, those to
 * expect. */
int64_t trace_sent(const Trace *t, const TraceCollective *c, int64_t rank);
/* The record of an index list; NULL: there is none. */
const TraceRouted *trace_routed(const Trace *t, int step);
/* Rows that `rank` has in a list, of all experts. */
double routed_on(const TraceRouted *k, int64_t rank);

/* One row of a rank in a list. */
typedef struct RoutedRow {
    int64_t expert, token; /* sequence * length + position */
    double weight;         /* NaN: not known */
} RoutedRow;
/* The rows of a rank, in order, if the record names tokens. */
typedef struct RoutedWalk {
    const TraceRouted *k;
    int64_t expert, left, at, end; /* of the expert; in tokens[] */
} RoutedWalk;
/* Does the record name the token of each row? NULL: no. */
bool routed_named(const TraceRouted *k);
RoutedWalk routed_walk(const TraceRouted *k, int64_t rank);
bool routed_next(RoutedWalk *w, RoutedRow *row);

/* How n numbers lie. */
typedef struct TraceSpread {
    double least, peak, mean, sum;
    int64_t peak_at;
} TraceSpread;
TraceSpread trace_spread(const double *x, int64_t n);

/* Row i of rank `from` and member of `to` in a record's pairs: rows that the one that sends counts,
 * and rows that the one that receives counts. They agree where no mistake is planted; -1: nobody
 * counted. `group` and members are those of the collective's groups. */
typedef struct TracePair {
    double sent, received;
} TracePair;
TracePair exchange_pair(const TraceExchange *x, const TraceCollective *c, int64_t group,
                        int64_t from, int64_t to);
/* In which round of an all-to-all of n members `from` sends to `to`: 1 to n - 1, 0 to itself. Pairs
 * swap, for powers of two by the bits in which they differ, for other even n in a round-robin; of
 * an odd n each sends to the member that is as far on. Both the model of time and the storyboard
 * have it from here. */
int64_t exchange_round(int64_t n, int64_t from, int64_t to);

/* What became of the rows of one layer's experts in a run. Copies of a token count once. */
typedef struct TraceDispatch {
    int layer;
    const char *value;  /* "layers.0.moe.list" */
    double asked, kept; /* rows that tokens asked for; that a capacity left of them */
    int64_t experts;
    double *wanted;         /* [experts]: rows asked for */
    double *by_expert;      /* [experts]: of the rows kept */
    TraceSpread at_experts; /* by_expert */
    TraceSpread at_ranks;   /* rows that a rank's experts compute on */
} TraceDispatch;
/* All that a trace has, in the order of their layers; *n of them, in `arena`. */
TraceDispatch *trace_dispatches(const Trace *t, Arena *arena, int *n);
#endif
