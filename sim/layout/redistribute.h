/* Every collective is a change of layout: from one layout to another by single moves.
 * The planner is greedy; the result is compared with the mirror, the reverse of greedy(dual(to) ->
 * dual(from)), and the cheaper one is taken. The adjoint of a move f -> t is the move dual(t) ->
 * dual(f). */
#ifndef SP_LAYOUT_REDISTRIBUTE_H
#define SP_LAYOUT_REDISTRIBUTE_H
#include "layout/layout.h"

typedef enum {
    MOVE_ID,    /* I -> R, R -> I: nothing happens */
    MOVE_SLICE, /* I or R -> cut: local */
    MOVE_KEEP,  /* I or R -> P: the first rank keeps the value, the others hold zeros */
    MOVE_PAD,   /* cut -> P: own block, zeros elsewhere */
    MOVE_ALL_GATHER,
    MOVE_REDUCE_SCATTER,
    MOVE_ALL_REDUCE,
    MOVE_ALL_REDUCE_MAX,
    MOVE_ALL_TO_ALL,
    MOVE_SHIFT, /* the same cut, a place further round: every rank sends its block to the next */
    MOVE_SEND,  /* from one coordinate of the axis to another */
    MOVE_PICK,  /* I or R -> at one coordinate: the others give their copies up */
    MOVE_TERM,  /* at one coordinate -> P: the one term of the sum that is not zero */
    MOVE_BROADCAST, /* from one coordinate of the axis to all */
    MOVE_KINDS
} MoveKind;
/* What a rank's block is made from: its own block alone, the blocks of its group side by side,
 * terms of a sum or maximum, or the block of the one member that has the value. */
typedef enum { FROM_OWN, FROM_BLOCKS, FROM_TERMS, FROM_PLACE } MoveSource;
/* What a rank of a group of n sends, as frameworks do it. */
typedef enum {
    SENDS_NOTHING,
    SENDS_BLOCK,  /* n - 1 blocks as before the move: a ring that gathers */
    SENDS_PART,   /* n - 1 blocks as after it: a ring that scatters */
    SENDS_BOTH,   /* both, with an n-th of its block */
    SENDS_PIECES, /* to each other member what that comes to hold */
    SENDS_ONCE,   /* its block, from the one member that has it to another */
    SENDS_ON,     /* its block, along a chain from the one that has it: each hands it on */
    MOVE_SENDS
} MoveSends;

typedef struct {
    Layout from, to;
    MoveKind kind;
    AxisList axes;
} Move;

enum { MOVES_MAX = 32 };
typedef struct {
    int n;
    Move m[MOVES_MAX];
} MovePlan;

/* What kind a single move from -> to over `axis` is, of layouts that differ there only; MOVE_KINDS
 * if there is none. */
MoveKind move_kind(const Layout *from, const Layout *to, int axis);
/* Plans from -> to, layouts of the same dims, for a value of `ndim` global sizes N, into `out`: no
 * move where they are equal. False if there is no way (a case the notation cannot say). */
bool redistribute(const Mesh *m, const int64_t *N, const Layout *from, const Layout *to,
                  MovePlan *out);
/* Only the greedy plan, without the mirror (for tests). */
bool redistribute_greedy(const Layout *from, const Layout *to, MovePlan *out);
/* The adjoint plan, into `out`: the mirror image of `p`. */
void redistribute_mirror(const MovePlan *p, MovePlan *out);

/* What a rank's block is made from. */
MoveSource move_source(MoveKind k);
/* What a rank sends of it. */
MoveSends move_sends(MoveKind k);
/* Is the result cut over the axes, so that which part of it a rank gets is a question? */
bool move_cuts(MoveKind k);
/* True for kinds that send anything. */
bool move_communicates(MoveKind k);
/* Is the result nothing but a part of the rank's own block, or all of it: a view? */
bool move_views(MoveKind k);
/* Does a value become terms of a sum: each rank's own part, and zeros, a block of its own? */
bool move_shares(MoveKind k);
/* Does it put blocks for one place together? */
bool move_reduces(MoveKind k);
/* Does the value change ranks as it is, from those at one place to those at another? */
bool move_relocates(MoveKind k);
/* Does it put the blocks of a whole group side by side? */
bool move_gathers(MoveKind k);
/* "all_gather", ... as records call it; words for people: trace/collectives.h. */
const char *move_name(MoveKind k);
#endif
