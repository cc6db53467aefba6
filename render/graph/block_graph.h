/* From a trace to the structure of a block picture: nodes (boxes), strips (a piece of the residual
 * stream and what branches off it), levels and columns. Knows no lengths, no colours, no model and
 * no op by name: what it sees are inputs and outputs, shapes, and the glyph "plus". Whatever the
 * trace is, every step of the chosen layer gets a place.
 */
#ifndef SP_RENDER_BLOCK_GRAPH_H
#define SP_RENDER_BLOCK_GRAPH_H
#include "render/furniture/options.h"
#include "render/furniture/words.h"
#include "render/furniture/wrong.h"

enum { BLOCK_MAX_IN = 8, BLOCK_MAX_OPS = 8, BLOCK_MAX_STRIPS = 64 };

typedef enum { NODE_INPUT, NODE_OP, NODE_COLL, NODE_MOVE } BlockKind;

/* An op inside a box; ops that change no shape abut the one before. */
typedef struct {
    const TraceCompute *c;
    int n_param;
    const TraceParam *param[3];
    const TraceCollective *fetch; /* collective that brings its parameter, or NULL */
    const char
        *saved; /* backward: values of the forward pass that it reads: "gate, up"; NULL: none */
    const char *only; /* in a box of twins: the one that has this op ("k") */
    int n_leave;      /* backward: gradients of its parameters, which leave the picture here */
    const struct ParamGrad *leave;
    int claim; /* step that claims of its parameter what does not hold; -1: none */
} BlockOp;

typedef struct BlockNode {
    BlockKind kind;
    int step;
    const char *name; /* of the value it makes */
    const char *part;
    int n_op;
    BlockOp op[BLOCK_MAX_OPS];
    const TraceCollective *coll;
    const TraceLocalMove *move;
    int n_in;
    int in[BLOCK_MAX_IN]; /* nodes; sorted as operands */
    const TraceValue *out;
    int alias;        /* node that stands for it (identities, abutting ops, twins), or itself */
    int twin;         /* a node drawn together with this one, or -1 */
    const char *pair; /* names of the twins: "k, v" */
    int shared;       /* a node of the same op in whose box this one stands, or -1 */
    int joined;       /* a collective of the same kind in whose box this one stands, or -1 */
    const char *role; /* of what an op makes several gradients of: which this is ("dq"); NULL */
    bool hidden;      /* changes nothing one can see */
    int users;        /* operands that read its output */
    const TraceCollective *with;     /* takes the index list of its rows the same way, for no step
                                        that is drawn, and is drawn with it; NULL: none */
    const TraceLocalMove *with_move; /* the same of a move */
    int hops; /* of a hop: so many of a ring do the same, and are this one; else 0 */
    int strip;
    /* place in its strip */
    int level, col, col_last; /* level -1: the head of the strip */
    int in_col[BLOCK_MAX_IN]; /* column in which each input arrives */
} BlockNode;

typedef struct {
    int from, to; /* residual strips: the node whose output is the stream, and the add; -1, -1: a
                     plain chain; .., -1: nothing of it comes back (block_is_open) */
    const char *part, *title;
    const char *whole; /* the title of the strip that this is a piece of; NULL: it is no piece */
    int n;
    int *node; /* in step order */
    int last;  /* node whose output leaves the strip */
    int levels, cols;
} BlockStrip;

/* What a value of the residual stream is called: "x" goes into the block, "y" comes out of it. */
typedef struct {
    const char *value, *name;
} BlockState;

typedef struct BlockGraph {
    const Trace *t;
    Arena *arena;
    int64_t rank;
    Phase pass;
    int layer, n_layers; /* drawn; layers in the trace. layer -1: all */
    int first_layer;     /* of those in the trace */
    bool loss;           /* the pass of the loss, too */
    bool outside;        /* also what lies outside of layers */
    bool whole;          /* no part was asked for */
    int n, cap;
    BlockNode *node;
    int n_strips;
    BlockStrip strip[BLOCK_MAX_STRIPS];
    bool unlike;            /* unlike_throughout */
    bool one_pass;          /* the other plan has no backward pass: this one's is not drawn */
    int wrong_step;         /* step that makes the first wrong value, -2: none */
    const WrongList *wrong; /* illegal, planted and missing steps of what is drawn */
    int n_states;           /* of the forward pass, whatever part and pass are drawn */
    BlockState *state;
    int n_used; /* collectives of what is drawn, parameters' included */
    const TraceCollective **used;
} BlockGraph;

/* Is the step one of strips [first, first + n)? Its parameters' steps, too. */
bool block_shows(const BlockGraph *g, int first, int n, int step);
/* The wrong steps of strips [first, first + n). */
const WrongList *block_wrong(const BlockGraph *g, int first, int n);
/* Does the node draw the collective: its own, one that brings a parameter, one that ends a
 * gradient? */
bool block_draws(const BlockNode *n, const TraceCollective *c);
/* Is the step one that the rank does, the first time that it does it? */
bool block_on_rank(const BlockGraph *g, const TraceCompute *c);
/* Does the strip begin at the stream, and nothing of it come back? */
bool block_is_open(const BlockStrip *s);
/* Names the states of the strips of g, a graph of the forward pass (block_states.c). */
void block_name_states(BlockGraph *g);
/* "x", "h", "y" of a value of the stream, "dx" of its gradient, "y of layer 31" of that of a layer
 * that is not drawn; NULL of any other. */
const char *block_state(const BlockGraph *g, const char *value);
/* A value where it stands alone, as words_value says it, states by their names. */
const char *block_value(const BlockGraph *g, const char *value);
/* What is kept of the forward pass, as words_kept says it, states by their names. */
const char *block_kept(const BlockGraph *g, const char *value, bool brief);
/* Node that stands for node i. */
int block_real(const BlockGraph *g, int i);
/* Bytes on this rank of what the node makes: of both twins, and of the index list that comes with
 * rows. */
int64_t block_bytes(const BlockGraph *g, const BlockNode *n);
/* How many of them are of values whose sum over ranks is yet to be made. */
int64_t block_pending_bytes(const BlockGraph *g, const BlockNode *n);
/* The dim in which the values of two twins differ, and in no other: as their symbols say; -1: in
 * none or in several. */
int block_twin_dim(const BlockGraph *g, const BlockNode *n);
/* Do two values lie alike on this rank (sizes, bytes, pending)? */
bool block_same_shape(const BlockGraph *g, const TraceValue *a, const TraceValue *b);
/* "k, v" of the names of twins "wk", "wv"; a short name of one of a pair. */
const char *block_differs(Arena *a, const char *one, const char *other);
/* Dims of the symbolic shape that the step changed, as a bit mask. */
unsigned block_changed(const TraceValue *from, const TraceValue *to);
/* Dim of a weight that is contracted, as a bit mask. */
unsigned block_contracted(Arena *a, const TraceParam *p, const TraceValue *out);
#endif
