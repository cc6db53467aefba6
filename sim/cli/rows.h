/* Rows of experts as tables say them: expected where all experts are asked for as often, at most
 * whatever the router says, and those of the run where there was one. Refuses to leave open which
 * of the three a number is. */
#ifndef SP_CLI_ROWS_H
#define SP_CLI_ROWS_H
#include "cli/table.h"
#include "trace/trace.h"

/* Of a collective that moves rows: what goes in, comes out and is sent. Empty for any other. `rank`
 * -1: of all ranks the least and the most. */
Cell rows_of_collective(Arena *a, const Trace *t, const TraceCollective *k, int64_t rank);
/* Of a value in rows, whose local shape has the expected ones: at most, and in the run. */
Cell rows_of_value(Arena *a, const Trace *t, const TraceValue *v, const TraceLocal *l,
                   int64_t rank);
/* Lines under a table of collectives: what became of each layer's rows, or that only a run knows.
 */
void rows_notes(Str *notes, Arena *a, const Trace *t);
/* What became of each layer's rows in a run, as lines and as a table; nothing without a run. */
void rows_dispatched(Str *notes, Arena *a, const Trace *t);
Table rows_dispatches(Arena *a, const Trace *t);
/* What a rank sends in all collectives of a run that counted its rows: "165 KiB (rank 0) to 172 KiB
 * (rank 2) in the run, 168 KiB expected", of `rank` (-1: of all ranks). NULL: no run, or no rows.
 */
const char *rows_sent(Arena *a, const Trace *t, int64_t rank);
/* `comms --pairs`: who sends how many rows to whom, a row for each pair of a collective that moves
 * rows; of the group of `rank`, -1: of all groups. Without a run those of one rank stand for all.
 */
Table pairs_table(Arena *a, const Trace *t, int64_t rank);
/* The same for people: a matrix for each, of the first group or that of `rank`. `width`: of the
 * terminal, 0: any. */
void pairs_text(Str *out, Arena *a, const Trace *t, int64_t rank, int width);
#endif
