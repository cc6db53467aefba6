/* A folder and an arena of one test's own: made before it, gone after it. The names are short
 * because every line of such a test says them. Refuses to hold anything from one test to the next.
 */
#ifndef SP_TESTS_SANDBOX_H
#define SP_TESTS_SANDBOX_H
#include "base/arena.h"

/* Column, row, on two ranks: small, uneven, with a reduction. SMALL_PLAN has a name too. */
#define SMALL_MODEL "model: {kind: mlp, sizes: [6, 10, 3], bias: false, activation: relu}\n"
#define SMALL_REST                                                                                 \
    "data: {rows: 5, dtype: f32, seed: 1}\n"                                                       \
    "mesh: {tp: 2}\n"                                                                              \
    "plan:\n"                                                                                      \
    "  net1: colwise\n"                                                                            \
    "  net2: rowwise\n"
#define SMALL_PLAN "name: small\n" SMALL_MODEL SMALL_REST

extern Arena *arena; /* of the test that runs */
extern char dir[];   /* its folder */
/* The path of a name in it. */
const char *in(const char *name);
/* Writes a file in it; gives its path. */
const char *put(const char *name, const char *text);
/* Give 0 when it is there, and gone. With sandbox_plan "plan.yaml" is in it: SMALL_PLAN. */
int sandbox_new(void **state);
int sandbox_plan(void **state);
int sandbox_gone(void **state);
#endif
