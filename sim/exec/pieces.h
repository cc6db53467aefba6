/* Who gives what to whom in a move, as it is done: for each rank the block that it comes to hold,
 * and whose blocks it is put together from. The data, the bytes per pair of ranks and the log
 * follow from here; nothing else computes who sends what to whom. It looks at no data. */
#ifndef SP_EXEC_PIECES_H
#define SP_EXEC_PIECES_H
#include "exec/exec.h"

/* A move of one value, to be asked for each rank. */
typedef struct Pieces {
    const Mesh *m;
    const GTensor *t;
    Act act, declared;
    Layout from, to; /* what blocks are taken for before and after */
    AxisList axes;   /* the declared group: whose members' blocks they are taken for */
    int64_t n;       /* its size */
    const Exec *e; /* a value in rows, while it is run: whose lists say which rows there are; NULL:
                      nobody knows yet */
    int in, out;   /* its values then */
} Pieces;

/* One rank's part in a block. */
typedef struct Piece {
    int64_t rank;  /* who hands it in */
    int64_t owner; /* whose block, under `from`, it is taken for */
} Piece;

/* Of a step that is run, if this is what is done: of rows, those that the ranks have. */
Pieces pieces_of_run(const Exec *e, const Step *s, const Act *done);
/* Of a step; of a move of a tensor with these sizes, whose axes are the declared ones. */
Pieces pieces_of(const Program *p, const Step *s);
Pieces pieces_of_move(const Mesh *m, const GTensor *t, const Move *v, const Act *act);
/* How many pieces the block of `rank` is made from, in the order of the sum; 0: of none, it is
 * zero, or the value is at another place. */
int64_t pieces_count(const Pieces *x, int64_t rank);
Piece pieces_at(const Pieces *x, int64_t rank, int64_t i);
/* Where the elements of a piece stand, and those that `rank` comes to hold; lists live in `arena`.
 * An element goes from a piece to a block where both have its index. */
Region pieces_from(const Pieces *x, const Piece *one, Arena *arena);
Region pieces_to(const Pieces *x, int64_t rank, Arena *arena);
/* What is done at that rank: not all need do the same. */
const Act *pieces_act(const Pieces *x, int64_t rank);
/* Does this piece of the block of `rank` not arrive? */
bool pieces_absent(const Pieces *x, int64_t rank, const Piece *one);
/* What becomes of several pieces for one place of the block of `rank`; a mean is their sum, to be
 * divided. */
Combine pieces_combine(const Pieces *x, int64_t rank);
/* Where sizes are divided without remainder (`floor`): the letter that the move's axes cut, into *n
 * equal blocks that have its first *whole elements. -1: no letter is cut. */
int pieces_tail(const Pieces *x, int64_t *n, int64_t *whole);
/* Does the rank's own block go on as it is, whole? */
bool pieces_pass(const Pieces *x, int64_t rank);
/* Elements that `to` gets from `from` under this move. */
int64_t pieces_between(const Pieces *x, int64_t from, int64_t to);
#endif
