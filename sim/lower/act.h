/* What a step does, beside what is declared of it. The layouts of its values say what is due; an
 * Act says what happens. As lowered the two say the same, and a step has none of its own; faults
 * and mutations rewrite what is done and leave what is declared, so that verify and the check can
 * hold one against the other. Nothing else tells a planted step from a right one. */
#ifndef SP_LOWER_ACT_H
#define SP_LOWER_ACT_H
#include "layout/redistribute.h"

/* What becomes of the blocks of several ranks for one place. */
typedef enum { COMBINE_COPY, COMBINE_SUM, COMBINE_MAX, COMBINE_AVG } Combine;
/* Whose positions an op counts by that asks for them. */
typedef enum { AT_GLOBAL, AT_LOCAL, AT_CONTIGUOUS } Positions;

/* What is done: a move uses all fields but `positions`; an op or adjoint `times` (0: its first
 * operand goes on in place of its result), `scale`, `positions` and `unweighted`. */
typedef struct Act {
    MoveKind kind;   /* who hands blocks to whom */
    AxisList axes;   /* the group; in place of the declared one block i is that of its member i */
    Combine combine; /* of moves that reduce */
    int dim;         /* the letter that the axes are taken to cut; -1: as the layouts say */
    int shift;       /* blocks are those of the member so many places after */
    int times;       /* done so often, one on the result of the other; 0: nothing is done */
    int64_t alone;   /* 1 + the only rank of a move that does so, the others do what is declared; 0:
                        all do */
    bool absent;     /* that rank hands nothing in: the others lack its part */
    bool counts;     /* rows that arrive are told apart by the counts of the next rank */
    bool floor;      /* sizes are divided without remainder: what is left over does not arrive */
    double scale;    /* the result times this */
    Positions positions;
    bool unweighted; /* an op that weighs its terms takes them as they are */
} Act;

/* What is done to an input or parameter when a rank takes its part of it. */
typedef struct ReadAct {
    bool nest;  /* the axes that cut one dim do so in the other order */
    bool apart; /* ranks that should read the same data read different data */
    int shift;  /* the part of the rank so many places after among those that cut it */
} ReadAct;

/* What a declared move asks for: its kind, group and combination; nothing where its layouts are
 * equal. */
Act act_declared(const Move *m);
/* The layouts between which it moves blocks: the declared ones, or with the axes' cuts on another
 * dim; its kind and axes. */
Move act_move(const Move *declared, const Act *a);
/* Is it done in another group than the declared one? */
bool act_elsewhere(const Move *declared, const Act *a);
#endif
