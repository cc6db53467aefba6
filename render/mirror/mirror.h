/* Structure of the picture "backward beside forward": each strip of a block becomes a list of rows,
 * and to each row the steps of the backward pass that undo it. What belongs together is read off
 * the names: the step that reads "grad.y" and makes "grad.x" is the mirror of the one that reads x
 * and makes y; nothing else is known of ops or models. */
#ifndef SP_RENDER_MIRROR_H
#define SP_RENDER_MIRROR_H
#include "render/graph/grads.h"

enum { MIRROR_MAX = 24, MIRROR_FLOW = 8 };

/* ROW_BACK: a collective or move of the backward pass where forward does nothing. ROW_FROM: no
 * step, a value of rows further above, with which a chain beside them begins (a shared expert). */
typedef enum { ROW_OPS, ROW_COLL, ROW_MOVE, ROW_BACK, ROW_FROM } MirrorKind;

typedef struct {
    const TraceCompute *f; /* forward */
    bool rest;             /* abuts another: stands in the lower box */
    bool dx, dw;           /* its backward makes the gradient of an input, of a parameter */
} MirrorOp;

/* What comes to a row straight from the row next to it: all whole, some of it a pending sum,
 * nothing. */
typedef enum { FED_UNKNOWN, FED_WHOLE, FED_PARTIAL, FED_NOT } MirrorFed;

typedef struct {
    MirrorKind kind;
    MirrorFed fed[2]; /* forward from the row above, backward from below; not of plain strips */
    int level;
    bool beside; /* of a chain beside the rows above it; its ROW_FROM, too */
    bool acts;   /* mirror_has_back */
    int n_op;
    MirrorOp op[MIRROR_MAX];
    int n_back;
    MirrorOp back[MIRROR_MAX]; /* .f: a step of the backward pass */
    int n_sum;                 /* of them, sums of several uses */
    int n_coll, n_conj;
    const TraceCollective *coll[MIRROR_FLOW], *conj[MIRROR_FLOW]; /* forward, backward */
    unsigned rides; /* bits of coll, of move: those that take the index list of the rows of another
                     */
    unsigned move_rides;
    int n_move, n_back_move;
    const TraceLocalMove *move[MIRROR_FLOW], *back_move[MIRROR_FLOW]; /* forward, backward */
    int n_silent; /* moves that change nothing one can see of gradients that the row makes, as over
                     an axis of one rank: they have no row, and what they make is the row's */
    const TraceLocalMove *silent[MIRROR_FLOW];
    int n_grad;
    ParamGrad grad[MIRROR_MAX];
    int n_in, n_out;
    const char *in[MIRROR_FLOW * 2], *out[MIRROR_FLOW * 2]; /* values */
} MirrorRow;

/* A version of a value that passes rows: those between the row that makes it (-1: it is the strip's
 * input) and the one that reads it. */
typedef struct {
    const TraceValue *v;
    int from, to;
    bool sum; /* backward: it is there added to the gradients of other uses */
    int lane; /* of the line round the rows; what one row makes runs in one lane, 0 innermost */
} MirrorRead;

typedef struct {
    int n;
    MirrorRead *read;
} MirrorCrossing;

/* A piece of the residual stream with what branches off it, or (plain) a chain: embedding, head,
 * loss, a model without a stream. */
typedef struct {
    const BlockStrip *strip;
    bool plain;
    const char *from, *branch, *to; /* values: the stream above, what comes back into it, the stream
                                       below; plain: the input (NULL: none), the output twice */
    const char *added, *sum; /* of the last chain of a divided strip: what it is added to, and
                                gives; else NULL */
    int n;
    MirrorRow *row;
    bool up;    /* the gradient of `from` is made: the stream goes on upwards */
    bool piece; /* of a divided strip */
    int number; /* among the strips of the block, of a piece that of its strip */
    int n_past[2], lanes[2];
    int n_read[2];
    MirrorRead *read[2];          /* whatever rows read of other rows; as `past` */
    MirrorCrossing in[2], out[2]; /* what comes to a row and what leaves one without a line, named
                                     at both ends: of a piece from and to other pages, but for that
                                     of its ends; and `far` */
    MirrorRead *past[2]; /* what passes rows, forward and backward; none of plain strips that are no
                            pieces */
    MirrorCrossing far[2]; /* the same, where a line for each would crowd the side */
} MirrorStrip;

typedef struct {
    const BlockGraph *g;
    int first_back; /* first step of the backward pass */
    int n;
    MirrorStrip strip[BLOCK_MAX_STRIPS];
} Mirror;

/* Is there a backward pass, and do the residual strips of g mirror it? Else NULL: draw forward
 * alone. */
Mirror *mirror_new(const BlockGraph *g);
/* How a strip is divided: into chains of at most so many rows. A ring whose hops are a band counts
 * none of them and stays whole, however many rows it has; torn, it has all its hops. */
typedef struct {
    int most;
    bool torn;
} MirrorCut;
/* The same with strips of the stream divided, strip i as cut[i] says (mirror_divide.c); in the
 * arena. */
const Mirror *mirror_divide(Arena *a, const Mirror *m, const MirrorCut *cut);
/* Rows [from, until) of a strip that stand as one band: hops 2 to `hops` of a ring, which do what
 * the first does, from row `first` on (mirror_fold.c); from == until == s->n, hops 0: there are
 * none. */
typedef struct {
    int first, from, until, hops;
} MirrorFold;
MirrorFold mirror_fold(const BlockGraph *g, const MirrorStrip *s);
/* What a module does beside the others stands in rows of its own just above the row that takes it
 * up: sets beside[k] for such a node k of the strip, and moves level[k], of all nodes, so that rows
 * ordered by it stand so. */
void mirror_beside(const BlockGraph *g, const BlockStrip *b, int *level, bool *beside);
/* "grad.x" of "x". */
const char *mirror_grad(const BlockGraph *g, const char *value);
/* Values that row r (-1: the stream or the input) makes and rows below it read (n: the stream), as
 * they lie there; returns their number. `back`: the gradients that row r + 1 makes for rows above
 * it, as it made them (several of one value where its uses are summed further up); they flow
 * upwards. Each value is listed where it is made, so what passes a row is not said
 * twice. */
int mirror_flow(const Mirror *m, const MirrorStrip *s, int r, bool back, const TraceValue **out,
                int max);
/* Does a chain beside the rows up to r begin below it? Does one further below read what r makes? */
bool mirror_breaks(const MirrorStrip *s, int r);
bool mirror_forks(const Mirror *m, const MirrorStrip *s, int r);
/* Fills `past`, `lanes` and the rows' `fed` of a strip of the stream (mirror_past.c); of a piece
 * that begins at row `lo` of a strip, with what begins and ends on it. */
void mirror_pass(const Mirror *m, MirrorStrip *s);
void mirror_pass_piece(const Mirror *m, const MirrorStrip *whole, int lo, MirrorStrip *p);
/* Does what row r makes pass others? Is what passes, or what is only named, added to others above
 * it? */
bool mirror_parts(const MirrorStrip *s, int r, bool back);
bool mirror_sums(const MirrorStrip *s, int r);
/* The row in front of the chain that begins at row `from` that makes what it reads, as it reads it;
 * -1: none of the strip does. */
int mirror_maker(const Mirror *m, const MirrorStrip *s, int from);
/* Values that row r reads from outside of the strip, besides `from`; returns their number. */
int mirror_sides(const Mirror *m, const MirrorStrip *s, int r, const TraceValue **out, int max);
/* Does anything without a line come to row r that a short one brings: upwards, or to a collective
 * or move? Does what row r (backward: that is no op) makes leave the page, and no line leads on
 * from it? */
bool mirror_comes(const MirrorStrip *s, int r, bool back);
bool mirror_leaves_alone(const MirrorStrip *s, int r, bool back);
/* Gradients that the backward of row r makes and that leave it without a line, those of values of
 * other pages above all; returns their number. */
int mirror_side_grads(const MirrorStrip *s, int r, const TraceValue **out, int max);
/* Is it such a gradient, which the line up from the box does not carry? */
bool mirror_told_aside(const MirrorStrip *s, int r, const TraceValue *v);
/* Does anything stand in the backward column of the row? */
bool mirror_has_back(const Mirror *m, const MirrorRow *row);
/* Does the backward of the row make the gradient `name` at that step? */
bool mirror_makes_grad(const MirrorRow *r, const char *name, int step);
/* The steps of strips [first, first + n) that are wrong. */
const WrongList *mirror_wrong(const Mirror *m, int first, int n);
/* What the backward steps of a row have kept of the forward pass. `rest`: those of the lower box.
 */
int mirror_saved(const Mirror *m, const MirrorRow *row, bool rest, const TraceValue **out, int max);
/* Is a saved value made again in the backward pass? */
bool mirror_again(const Mirror *m, const TraceValue *v);
/* Do both lie in one buffer? A copy that is only a view lies where the other lies. */
bool mirror_one_buffer(const Mirror *m, const TraceValue *a, const TraceValue *b);
/* The nth collective (from 0) that brings the parameter before it is used, its own or that of its
 * unit: forward, and where it was given up in between once more for backward; NULL: there is none.
 */
const TraceCollective *mirror_fetch(const Mirror *m, const TraceParam *p, int nth);
/* Is what was gathered given up before the backward pass? */
bool mirror_freed(const Mirror *m, const TraceParam *p);
/* Does the parameter lie at rest in another way than in compute? */
bool mirror_moves(const TraceParam *p);
#endif
