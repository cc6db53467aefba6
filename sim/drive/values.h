/* The values of a run under the names that files give them (interface: names of values). One list
 * serves both directions: what
 * --save-values writes is what --against finds again. */
#ifndef SP_DRIVE_VALUES_H
#define SP_DRIVE_VALUES_H
#include "exec/reference.h"

/* What a name means: "layers.0.q_proj", "grad.param.W", "losses", "after.3.W.exp_avg",
 * "rank5/grad.layers.0.q_proj". */
typedef struct ValueKey {
    int tensor;    /* of the graph; -1: losses */
    bool grad;     /* the gradient of the loss with respect to it */
    int64_t after; /* what it is after this training step, counted from 0; -1: in the (last) step */
    int64_t rank;  /* what this rank holds of it; -1: the unsharded value */
    int part;      /* 1 + which of the tensors it is that files make an expert weight of; 0: all */
} ValueKey;

/* How a value lies: letters, which stored dims group, and their symbols. */
typedef struct ValueShape {
    Dtype dtype; /* DT_I64; unsharded values DT_F64; ranks' values the run's */
    int nd;
    int64_t size[LAYOUT_MAX_DIMS];
    const char *sym[LAYOUT_MAX_DIMS];
    int nstored;
    uint8_t stored[LAYOUT_MAX_DIMS];
    int64_t shape[LAYOUT_MAX_DIMS]; /* of the stored dims */
} ValueShape;

/* A run whose values are asked for. */
typedef struct ValueSet {
    Arena *arena;
    const Reference *ref;    /* NULL: there are no unsharded values yet */
    const Reference *narrow; /* the unsharded model in bf16; NULL: nobody asked for it */
    Exec *ranks;             /* NULL: there are no ranks' values */
    int64_t steps;           /* of training; 0: one pass */
    int64_t
        after; /* the training step that the stores' parameters and state stand after; -1: none */
} ValueSet;

/* Understands a name of the graph of `p`, in the plan's scheme or in that of any checkpoint, with
 * `steps` of training (0: none). False if the model has no such value; gradients are known only if
 * the program makes them. */
bool value_key(Arena *arena, const Program *p, int64_t steps, const char *name, ValueKey *out);
/* The name under which it is written: parameters under the names of the plan's scheme. */
const char *value_name(Arena *arena, const Graph *g, const ValueKey *k);
/* Does the rank hold a share of a sum that is pending, or its part of one micro-batch of several?
 */
bool value_is_share(const ValueSet *s, const ValueKey *k);
/* Its shape, or false if the run does not hold it (any more). */
bool value_shape(const ValueSet *s, const ValueKey *k, ValueShape *out);
/* Its numbers, packed, in the dtype of its shape; malloc'ed for the caller. NULL and a diagnostic
 * if an input or parameter cannot be loaded again. Only what value_shape knows. */
void *value_read(const ValueSet *s, const ValueKey *k, const ValueShape *shape);
/* All values that the run holds of one rank, or unsharded (-1), in the order of the graph. */
ValueKey *value_list(const ValueSet *s, int64_t rank, int *n);
/* Elements of a shape. */
int64_t value_count(const ValueShape *s);
#endif
