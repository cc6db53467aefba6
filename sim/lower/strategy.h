/* What an op needs: one strategy per mesh axis, and the layouts of operands and result that follow.
 * For sim/lower only. */
#ifndef SP_LOWER_STRATEGY_H
#define SP_LOWER_STRATEGY_H
#include "lower/moves.h"

/* What an axis does in an op: it cuts a letter of its rule, the result is a pending sum as an
 * operand is, all ranks of it do the same, with uses that differ (R) or not (I), or only those at
 * one coordinate do anything. */
typedef struct Strategy {
    enum { S_LETTER, S_P, S_R, S_I, S_AT } kind;
    char letter;
    uint16_t at;
} Strategy;
/* Ordered entries of each letter: the order of the operand that decided, parameters first. */
typedef struct LetterCuts {
    int n[26];
    Entry e[26][LAYOUT_MAX_ENTRIES];
} LetterCuts;
typedef struct Strategies {
    Strategy axis[MESH_MAX_AXES];
    LetterCuts cuts;
    bool constant; /* no operand has a gradient */
} Strategies;

/* For node n with the values in[nin] as they lie now. goal: how its result has to lie in the end,
 * where an operand is a pending sum that the op refuses; or NULL. */
void strategy_find(const Lower *l, const GNode *n, const int *in, const Layout *goal,
                   Strategies *s);
/* How operand i, which is v now, has to lie; how the result lies then (diff: it has a gradient). */
Layout strategy_operand(const Lower *l, const GNode *n, const Strategies *s, int i, const Val *v);
Layout strategy_output(const Lower *l, const GNode *n, const Strategies *s, bool diff);
#endif
