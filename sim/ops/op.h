/* An op: everything the program knows about it, in one entry.
 * Each op family is one file that defines `const Op op_NAME`; ops/list.h has one line per op.
 * Nothing else in the program tests an op's name. No op knows about ranks: kernels ask for the
 * global indices of a letter. */
#ifndef SP_OPS_OP_H
#define SP_OPS_OP_H
#include "kernel/attention.h"
#include "kernel/errors.h"
#include "kernel/tensor.h"
#include "ops/rule.h"

typedef enum { LIN_NONE, LIN_SET, LIN_BILINEAR, LIN_ADD } Linearity;
/* Of no call, of forward calls, of adjoints too. */
typedef enum { BOUND_OF_ALL, BOUND_EACH_FORWARD, BOUND_EACH } OpBoundEach;

/* Which elements of a head rope turns together, and where they go. */
typedef enum {
    ROPE_HALVES,              /* (i, i + d/2), as Hugging Face keeps Llama's rows */
    ROPE_NEIGHBOURS,          /* (2i, 2i + 1), as Meta does */
    ROPE_NEIGHBOURS_TO_HALVES /* reads (2i, 2i + 1), writes (i, i + d/2): DeepSeek */
} RopeOrder;
/* Constants of a node that kernels read. Which fields mean something depends on the op. */
typedef struct Attrs {
    double eps;    /* norms */
    double scale;  /* attention: softmax scale */
    double cap;    /* attention: scores are cap tanh(x / cap); 0: as they are */
    double factor; /* scale, share: the factor; ops over the vocabulary: ids that exist, the rest is
                      padding (0: no padding) */
    RopeOrder order; /* rope */
    double turn;     /* rope: factor on cos and sin (1; YaRN: more) */
    int n_freq;      /* rope: d/2 */
    const double *inv_freq;
    double ignore; /* pick, loss weights: label value to ignore */
    double a, b;   /* optimizer: coefficients; share: a is 1 where the sum of the chosen divides */
    double lr, beta1, beta2, decay;
    int64_t step;         /* optimizer: number of the step, from 1 */
    int top;              /* selection: experts per token */
    char priority;        /* capacity: order 'o', slot 's' or weight 'w' */
    const int32_t *group; /* capacity: of each token of the batch, b * S + t, the group that it is
                             counted in; NULL: all are one */
    int64_t parts;        /* counts: micro-batches that the batch is cut in */
    int64_t groups, top_groups; /* selection: groups of experts (0, 1: none), how many stay */
    int64_t chunk;  /* attention: positions per chunk, none sees another; temperature: positions per
                       step; 0: none */
    bool full;      /* attention: every query sees every key */
    int64_t window; /* attention: a query sees so many positions up to its own; 0: all */
    const AttentionPacking *documents; /* attention, rope, temperature: none sees another, and
                                          positions count from 0 in each; NULL: a row is one */
    const int32_t *block; /* partial attention: of each position the block that it lies in; NULL:
                             all are one */
    int hop, blocks;      /* the block of the keys is so many before that of the query; how many
                             there are */
    int64_t offset;       /* split: where the block begins */
} Attrs;

/* One call of a kernel on one rank's local data (or on the whole, for the reference). */
typedef struct OpCall {
    const struct Op *op;
    const Rule *rule;
    const Attrs *at;
    Dtype dtype;            /* of all floating operands; ids and labels are DT_I64 (see in_int) */
    Tensor in[RULE_MAX_IN]; /* operands; in an adjoint those not saved have p = NULL */
    bool narrow;            /* every real operand holds bf16 numbers, as float32 */
    uint32_t floats; /* dtype is DT_F64, and operand i is float32 still, bit i; the cotangent,
                        the bit after the last operand's (see Op.widens) */
    uint32_t in_int; /* bit i: operand i holds int64 */
    Tensor out;      /* the output; allocated by the caller, to be written in full */
    Tensor cot;      /* adjoint: the cotangent of the output */
    Tensor fout;     /* adjoint: the forward output, where adj_reads_output */
    int operand;     /* adjoint: towards which operand; result goes to `out` */
    Tensor ids;   /* where a letter is listed: the index list that all rows of the call follow, one
                     row-major index over the listed letters per row, ascending; else p = NULL */
    int64_t rows; /* how many */
    const int64_t *index[26]; /* global indices of a letter on this rank; NULL: 0..size-1 */
    int64_t batch_from; /* of the rows of the whole batch, the first of the batch that this call is
                           of: a micro-batch's own */
    int64_t local[26];  /* local size of a letter */
    int64_t global[26]; /* global size of a letter */
    struct Pool *pool;  /* workers for work inside this call, or NULL */
    double modulus;     /* integer adjoint: all numbers are residues of this; 0: they are real */
} OpCall;

/* What a bound needs: the same call in float64 with the exact result in `out`; writes into `bound`
 * (same shape as out, f64, packed) the bound of the absolute error of one evaluation in unit
 * roundoff u, for any order of summation; `prob` gets the probabilistic one. `u` = 2^-24 for f32
 * and 2^-53 for f64. */
typedef struct OpBound {
    OpCall call; /* f64 operands, whole, packed; call.out holds the f64 result */
    int operand; /* -1: forward; else the adjoint towards this operand */
    double u;
    double *bound, *prob;
    bool *finite; /* NULL, or set where the op knows that no bound is infinite */
    /* NULL, or of a call that is `factored`: gets both bounds as a product, in place of bound and
     * prob, which are NULL then; row and col are malloc'ed, and the caller's */
    ErrorFactors *factors;
} OpBound;

/* Where another list differs from what a call chose: a row of that one, the row that stands here in
 * its place (row-major indices over the listed letters), and how far the two scores are apart that
 * would have to be equal for it; INFINITY: no scores explain it. */
typedef struct ListTie {
    int64_t taken, left;
    double gap;
} ListTie;

/* A number at which an op's slope jumps; `above`: it has itself the slope of those above it. */
typedef struct OpBend {
    double at;
    bool above;
} OpBend;
enum { OP_MOST_BENDS = 2 };

/* Bytes of memory, at most, that calls take beside their operands and results. */
typedef struct OpScratch {
    /* of each thread, which keeps them as large as they ever were: what products pack, what
     * attention holds, the rows of a ring's blocks side by side */
    int64_t packed, attention, rows;
    int64_t passing; /* of each thread while it is at a piece of a call */
    int64_t call;    /* of each call that is under way */
} OpScratch;

typedef struct Op {
    const char *name; /* as in records: "linear" is the label of an einsum node, see GNode.label */
    const char *rule; /* default rule, or NULL: the node gives one */
    const char *typical; /* without a default rule: one that nodes give it, for lists */
    Linearity lin;
    uint32_t lin_set; /* LIN_SET: operands in which it is linear */
    uint32_t nodiff;  /* operands without gradient */
    uint32_t picks;   /* letters (RULE_BIT) of which ids pick one for each element of the result, so
                         that of an operand that has them no more than that is read */
    bool max;         /* contraction is a max, not a sum */
    /* Ops that make an index list: how many rows a call's will have. NULL: follows its operands'.
     */
    int64_t (*rows)(const OpCall *c);
    /* The same ops: how the list `ids` of n rows, ascending, that another run of this call on the
     * whole chose differs from c->out, which is as long: into `tie`, room for n; how many. A choice
     * does not depend on ranks, so c has all tokens. */
    int64_t (*ties)(const OpCall *c, const int64_t *ids, int64_t n, ListTie *tie);
    /* Ops of one operand, element by element, whose slope jumps: where, ascending; how many. NULL:
     * it jumps nowhere. Rounding may decide which slope a number gets (exec/sides.h). */
    int (*bends)(const Attrs *at, OpBend *to);
    uint32_t asks; /* letters whose global indices the kernel asks for (RULE_BIT) */
    /* 1 + the operand whose rows (its last dim) the result's are sums of, with weights that follow
     * from the other operands: it may have any width, which is the result's then. 0: none. */
    int mixed;
    bool adj_reads_output;
    bool adj_hands_on;      /* its adjoint is the cotangent itself, and reads nothing else */
    const char *activation; /* name in plans and configs ("silu", "gelu"), or NULL */
    void (*forward)(const OpCall *c);
    /* NULL: no operand has a gradient. A wrong one passes `run`, whose unsharded reference uses
     * the same kernel: only the differences of tests/test_ops.c tell. */
    void (*adjoint)(const OpCall *c);
    /* n calls of one step (its adjoint's) at once, on all workers, with the bits of one by one;
     * false: nothing is gained by it, and nothing done. NULL: never. */
    bool (*together)(const OpCall *c, int64_t n, bool adjoint, struct Pool *pool);
    /* Adds to *s, where it is 0, what one of n such calls (adjoints) of a step takes; asks for
     * sizes only. NULL: nothing that counts. */
    void (*scratch)(const OpCall *c, int64_t n, bool adjoint, OpScratch *s);
    void (*bound)(const OpBound *b); /* error of forward and adjoint; op_bound_contraction,
                                        op_bound_pointwise... */
    void (*bound_scratch)(const OpBound *b, OpScratch *s); /* what that takes */
    /* Are the bounds of the call's result (its adjoint's towards `operand`, if that is not below 0)
     * products of one magnitude for the outer dims of the result, and one for its inner ones, of
     * which *split are outer? NULL: never. */
    bool (*factored)(const OpCall *c, int operand, int *split);
    /* In float64, does the call (its adjoint) take float32 operands, for itself and for its bounds,
     * any of them, and widen each number when it reads it? NULL: never. */
    bool (*widens)(const OpCall *c, int operand);
    /* Of which calls does an element's bound follow from the operands' elements that have its
     * letters, so that it is the same in any part of the call? */
    OpBoundEach bound_each;
    void (*exact)(const OpCall *c); /* integer map for --exact; op_exact_same: forward is already
                                       exact on integers */
    /* Adjoint of --exact, in integers modulo c->modulus: linear in the cotangent and in what the op
     * is linear in, and of every saved number; op_exact_adjoint: as the rule says.
     * NULL: no operand has a gradient. */
    void (*exact_adjoint)(const OpCall *c);
    double flops_each; /* operations per element of the result; 0: a view */
    double (*flops)(
        const OpCall *c); /* of one forward call, where they are none per element of the
                             result; from local sizes only (tensors may have p = NULL) */
    const char *probe;    /* last name of an inner value that other implementations report
                             ("attn_probs"), or NULL */
    double *(*probe_run)(const OpCall *c,
                         int64_t *n); /* computes it in float64 from whole operands; malloc'ed */
    /* a query of one position reads keys of others: what context parallelism is about */
    bool mixes;
    const char *table; /* what it multiplies by and no node makes, a tensor of the model's own in
                          other programs ("cosines and sines"); NULL: nothing */
    /* the op in parts, one for each block of keys: partial results with the log of their softmax's
     * sum, and how two of them become one; `join` leaves all that is differentiated to the parts.
     * NULL: it cannot be cut so */
    const struct Op *part, *merge, *join;
    /* what an op that weighs its terms makes of them without their weights: a mistake that plans
     * can plant; NULL: it weighs nothing */
    const struct Op *unweighted;
    const char *label; /* for people and figures: "RMSNorm" */
    const char *glyph; /* how a figure draws it: "plus", "times", "view", "loss"; NULL: "box" */
} Op;

/* All ops, in the order of ops/list.h. */
extern const Op *const op_list[];
extern const int n_ops;
/* The op of that name or activation name, or NULL. */
const Op *op_find(const char *name);
/* The op whose part of the keys `part` computes, or NULL. */
const Op *op_of_part(const Op *part);
/* The op that plans and configs know as an activation of that name, or NULL. */
const Op *op_activation(const char *name);
/* Is the op linear in operand i (0 to RULE_MAX_IN - 1)? */
bool op_linear_in(const Op *op, int i);
/* Operands that the adjoint towards i reads (its saved set): all but i where the op is linear in i;
 * none for an add. */
uint32_t op_saved(const Op *op, int nin, int i);

/* Gives operands that an adjoint does not read (p = NULL) their local sizes, from the letters'
 * (c->local). */
void op_unread_sizes(OpCall *c, int nin);

/* Letters whose global indices mean something to the op (RULE_BIT): its own, and the rows of the
 * batch where each packs documents of its own. */
uint32_t op_positions(const Op *op, const Attrs *at);
/* Those that a call by this rule asks for: the op's, and those that rows list. */
uint32_t op_asks(const Op *op, const Rule *r, const Attrs *at);

/* Shared building blocks for op files. */
void op_einsum(const OpCall *c); /* out = contraction of all operands by c->rule; 1 or 2 operands */
void op_einsum_adjoint(
    const OpCall *c); /* swap operand and output; letters only operand i has are broadcast */
/* The contraction that makes the cotangent of an operand; its rule goes into *rule. */
OpCall op_einsum_towards(const OpCall *c, int operand, Rule *rule);
void op_einsum_scratch(const OpCall *c, int64_t n, bool adjoint, OpScratch *s);
void op_einsum_bound_scratch(const OpBound *b, OpScratch *s);
/* Those that read one operand in common as one product. */
bool op_einsum_together(const OpCall *c, int64_t n, bool adjoint, struct Pool *pool);
double op_einsum_flops(const OpCall *c);
void op_bound_contraction(const OpBound *b);
bool op_factored_contraction(const OpCall *c, int operand, int *split);
bool op_widening_contraction(const OpCall *c, int operand);
void op_bound_pointwise(const OpBound *b); /* a few u of the magnitudes involved */
void op_bound_copy(const OpBound *b);      /* exact: zero */
void op_exact_same(const OpCall *c);
void op_exact_adjoint_same(const OpCall *c); /* the op's own adjoint, where that is of integers */
void op_exact_adjoint(const OpCall *c);
/* Operations of one forward call of c->op, from its local sizes (tensors may have p = NULL). */
double op_flops(const OpCall *c);
/* Rows that an expert with a capacity takes of so many tokens, when there are so many experts. */
int64_t op_places(const Attrs *at, int64_t tokens, int64_t experts);
/* The forward call with the sizes of a built one, which may be an adjoint: what `flops` wants. */
OpCall op_call_forward(const OpCall *c);
#endif
