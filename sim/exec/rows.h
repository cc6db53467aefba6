/* How many rows a rank may have of a value in rows, before anything is routed: at most, whatever
 * the router says. (What to expect is graph_rows: its share of all.) What a run really has is
 * counted from its lists (routed.h); nothing here looks at one. */
#ifndef SP_EXEC_ROWS_H
#define SP_EXEC_ROWS_H
#include "lower/program.h"

/* Rows that `rank` can have of a value in rows when it lies so: a token asks for at most k of the
 * rank's experts, and an expert takes no more than it has room for from each rank's tokens (of all
 * tokens, where its capacity is global). 0 for a value that has no rows. */
int64_t rows_most(const Program *p, const Val *v, const Layout *l, int64_t rank);
/* Rows that one expert takes of the tokens that come to `rank`, at most; 0 without a capacity. */
int64_t rows_room(const Program *p, const Val *v, const Layout *l, int64_t rank);
/* Of those the ones that may have to leave the rank in an exchange from one layout to another:
 * their experts, or their tokens, are others'. */
int64_t rows_most_leaving(const Program *p, const Val *v, const Layout *from, const Layout *to,
                          int64_t rank);
/* With a capacity, the block that frameworks make room for: "[E/ep, ep*C, D]", for each expert C
 * rows from each rank whose tokens come together (GShard, Lepikhin et al. 2020, algorithm 1). In
 * `arena`; NULL without a capacity. */
const char *rows_most_symbol(const Program *p, const Val *v, Arena *arena);
#endif
