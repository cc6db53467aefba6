/* The collectives that a record may name: how people write them, and the rounds that they take.
 * Whoever reads, writes, draws or times them asks this table. Refuses to know layouts: when a
 * change of placement is which of them, the planner says (layout/redistribute.h). */
#ifndef SP_TRACE_COLLECTIVES_H
#define SP_TRACE_COLLECTIVES_H

#include <stdbool.h>

typedef struct {
    const char *op, *name, *code; /* "all_gather", "AllGather", "AG" */
    const char *effect;           /* on the length of the dim: "×" "÷" "" */
    int rounds;                   /* times n - 1 messages one after the other; 0: one in all */
    bool ahead; /* sent on while the kernel computes that reads it: it begins with that kernel */
    bool pairs; /* each rank sends another part to each */
    const char *there;  /* the op that it is to the rank it comes to; NULL: the same to all */
    const char *undone; /* who goes on with what where it is left out; NULL: by what it does */
} CollWord;

/* The row of an op, NULL if it is none that is known; a foreign trace may name any. */
const CollWord *coll_word(const char *op);
/* Does each rank send another part to each? */
bool coll_is_pairs(const char *op);
/* All of them, ended by an op of NULL. */
const CollWord *coll_table(void);
#endif
