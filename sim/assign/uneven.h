/* Dims that the axes of a style do not divide: notes (N0006) of what PyTorch's DTensor does with
 * them, for plans of systems whose styles are DTensor's. */
#ifndef SP_ASSIGN_UNEVEN_H
#define SP_ASSIGN_UNEVEN_H
#include "assign/assign.h"

/* A plain tensor that comes under a label. */
typedef struct {
    int module;            /* whose label it is */
    const char *what;      /* "input", "output" */
    const RawList *labels; /* one per argument */
    int arg, tensor;
    int by; /* the module that hands it out plain, or -1 */
} PlainLabel;
/* A plain tensor under a label that cuts it: from_local takes n times a rank's own block for the
 * whole, which raises where blocks differ (06_wrong_uneven_local). */
void uneven_plain_label(Assign *a, const PlainLabel *p);
/* Ranks that have nothing of the data or of a parameter as it is computed with (N0003): they wait
 * for the others. Once for each kind. False: there are none. */
bool uneven_empty(const Assign *a);
/* Ops of the styled layer m do not run on shards of a dim that is shorter than the axis
 * (06_small_*, 06_uneven_seq3). */
void uneven_layer(Assign *a, int m);
/* Under `trust: compiler` parameters and tokens have JAX's NamedSharding, which does not pad: an
 * error (E0409) for each that its axes do not divide, as it lies at rest. */
void uneven_sharding(Assign *a);
/* A rank without any class: the loss_parallel of module m fails there (semantics.md 2.6). */
void uneven_loss(Assign *a, int m);
#endif
