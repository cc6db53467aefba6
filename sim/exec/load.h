/* The work of one step on a class of ranks: sizes of its operands, and positions where the op's
 * work depends on them. Under causal attention a rank with late tokens sees more keys than one with
 * early ones, though their shapes are the same. Refuses to touch data. */
#ifndef SP_EXEC_LOAD_H
#define SP_EXEC_LOAD_H
#include "lower/program.h"
#include "ops/op.h"
#include "trace/trace.h"

/* Ranks with the same shapes and the same work. */
typedef struct {
    RankSet ranks;
    double flops;  /* per rank */
    int64_t bytes; /* read and written, per rank */
    bool product;  /* sums over something: not element-wise */
} Load;

typedef struct Loads Loads;
/* For a program whose n classes of ranks have the first ranks rep[]. Lives in `arena`. */
Loads *loads_new(Arena *arena, const Program *p, Dtype dtype, const RankSet *classes,
                 const int64_t *rep, int n);
/* The loads of the step of an op, an adjoint or a sum, *n of them, every rank that does it in
 * exactly one; valid until the next call. */
const Load *loads_of(Loads *l, const Step *s, int *n);
#endif
