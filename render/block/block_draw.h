/* Lengths and marks of one strip of a block picture. */
#ifndef SP_RENDER_BLOCK_DRAW_H
#define SP_RENDER_BLOCK_DRAW_H
#include "render/graph/block_graph.h"
#include "render/furniture/furniture.h"

/* Lengths of a level of detail. */
typedef struct {
    double op, joint, abut, weight, coll, move; /* heights */
    double gap, fork;              /* between boxes, and where a value goes to several */
    double head, plain_head, tail; /* above the first box, below the last */
    double sym, num;               /* baselines of a label from the top of its gap */
    bool numbers;                  /* second lines: numeric shapes, weights, a circle at the end */
    bool brief;                    /* of a collective only what it sends: its group stands beside */
} BlockLook;

/* Rows shared by the strips that stand side by side. */
typedef struct {
    int n;
    double *h, *gap, *top; /* top is relative to the first */
    double head, head_gap; /* height of the head; part of it under an input pill */
} BlockGrid;

typedef struct {
    const ViewCall *c;
    BlockGraph *g;
    Scene *s;
    const BlockLook *look;
    unsigned legend; /* marks in use */
    int *group;      /* scene group of each node, for arrows; -1 */
} BlockPen;

typedef struct {
    const BlockStrip *strip;
    bool tight;             /* boxes only as wide as they need to be, short reasons */
    double x, y;            /* top left corner */
    double stream;          /* x of the residual stream */
    double *centre, *width; /* of each column */
    int *row;               /* row of each level */
    const BlockGrid *grid;
    const char *in_name, *out_name, *note; /* circles of the stream; words beside the last */
} BlockFrame;

/* Lays the strips of one line on common rows: fills grid and frame[i].row. */
void block_rows(BlockPen *p, BlockGrid *grid, BlockFrame *frame, int n);
/* Columns of a strip from its measured boxes, relative to x. */
void block_columns(BlockPen *p, BlockFrame *f);
/* Is what the step makes the gradient of a parameter, and no other? */
bool block_ends_here(const BlockNode *n);
/* Height of a strip whose rows are laid. */
double block_height(const BlockPen *p, const BlockFrame *f);
/* Top of the gap under a level (-1: the head), where labels stand. */
double block_gap_top(const BlockFrame *f, int level);
/* Draws a strip whose rows and columns are laid: boxes, edges, the stream. */
void block_strip(BlockPen *p, BlockFrame *f);
/* Height of a node's box. */
double block_box_height(const BlockLook *l, const BlockNode *n);

/* ---- contents of boxes (block_box.c) ---- */
/* Width that the texts of a node's box need. */
double block_box_width(BlockPen *p, const BlockNode *n);
/* Draws the box of a node, w wide, its top left corner at x, y. */
void block_box(BlockPen *p, const BlockNode *n, double x, double y, double w);
/* What stands in the pill of a value that comes from another page or goes there: "x", "k, v" of
 * twins. */
const char *block_pill_words(const BlockGraph *g, const BlockNode *n);
/* Width of block_label; 0 of a node that makes no value. */
double block_label_width(BlockPen *p, const BlockNode *n);
/* The two lines of a value's label, symbols with their baseline at `sym`, numbers at `num`; dims
 * that differ from `from`, what the step read, are bold. */
void block_label(BlockPen *p, const BlockNode *n, const TraceValue *from, double x, double sym,
                 double num);
/* Where the words about a collective go: behind it, on both sides of it, behind it in little room.
 */
typedef enum { SIDE_RIGHT, SIDE_BOTH, SIDE_NARROW } BlockSide;
typedef struct {
    BlockSide side;
    double x, y; /* right of the box, and its top */
    double left; /* SIDE_BOTH: where the reason ends, left of the box */
    double room; /* width for the reason */
} SideRoom;
/* Group, members and reason of a collective, beside its box (block_side.c). */
void block_side(BlockPen *p, const BlockNode *n, SideRoom at);
/* Width of pill, members and map under them, as SIDE_BOTH has them right of the box. */
double block_group_width(BlockPen *p, const BlockNode *n);
/* Width of group and reason right of it, as SIDE_NARROW has them in that room. */
double block_side_width(BlockPen *p, const BlockNode *n, double room);
/* Does a clause of the reason fit left of the box, as SIDE_BOTH has it, in w? */
bool block_reason_fits(BlockPen *p, const BlockNode *n, double w);
/* Gradients of the parameters of a box, right of it (block_leave.c): how wide and high they are, 0
 * without any, and drawn from x on, beside a box at y, h high. */
double block_leave_width(BlockPen *p, const BlockNode *n);
double block_leave_height(const BlockPen *p, const BlockNode *n);
void block_leave(BlockPen *p, const BlockNode *n, double x, double y, double h);
/* The same in words: "AllReduce dw1: dp·cp · sends 84 MiB"; "" if there are none. */
const char *block_leave_text(const BlockGraph *g, const BlockNode *n);
/* Name of an op for people: "wq", "RMSNorm", "+ bias". */
const char *block_op_name(const BlockGraph *g, const BlockNode *n, const BlockOp *op);
/* Name of a collective's box, "AllGather", and the line under it, "dim S, ×4". */
const char *block_coll_name(const BlockGraph *g, const BlockNode *n);
const char *block_coll_line(const BlockPen *p, const BlockNode *n);
/* Everything about a collective, for the one who points at it. */
const char *block_coll_tip(const BlockGraph *g, const TraceCollective *c);
/* Value read by the node, for "what changed". */
const TraceValue *block_read(const BlockGraph *g, const BlockNode *n);
#endif
