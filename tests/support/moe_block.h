/* A MoE block alone, out of a plan for whole layers: other systems record the block by itself. The
 * attention before it has zeros for weights and adds nothing; the norm changes nothing, as one more
 * column gives all tokens one length and its weight is that length. What the record has not (the
 * added column) is zero in all weights of the block. */
#ifndef SP_TESTS_MOE_BLOCK_H
#define SP_TESTS_MOE_BLOCK_H
#include "support.h"

/* Blocks of [rows, cols] in zeros of [rows1, cols1]. */
typedef struct {
    int64_t blocks, rows, cols, rows1, cols1;
} Pad;
/* In the arena. */
double *pad_blocks(Arena *a, const double *x, Pad p);
/* Of rows of `cols1` numbers the first `cols`; in the arena. */
double *first_columns(Arena *a, const double *x, int64_t rows, int cols1, int cols);

/* A parameter under the plan's name, and its numbers. */
typedef struct {
    const char *name;
    const double *x;
    Pad pad;
} BlockWeight;
typedef struct {
    Arena *a;
    const double *x, *dy; /* [B, S, D]: what goes in, and the gradient of what comes out */
    int64_t B, S;
    int D;
    double eps;       /* of the norms */
    const char *norm; /* the weight of the one before the block */
    const BlockWeight *weight;
    int n;
} MoeBlock;
/* Writes `layers.0.input` and `cotangent`, and all parameters that `plan` has (a plan of width D +
 * 1 without files); returns the path. */
const char *moe_block_inputs(const MoeBlock *b);
const char *moe_block_weights(const MoeBlock *b, const char *plan);
#endif
