/* How another implementation's tensor may hold the same numbers in another order: transposed,
 * sequence first, heads before the sequence, heads flattened. */
#ifndef SP_DRIVE_ARRANGE_H
#define SP_DRIVE_ARRANGE_H
#include "drive/values.h"

enum { ARRANGE_UNITS = 5 };
typedef struct Arrangement {
    const char *what;    /* "transposed", "sequence first", ..., or NULL: no order of our dims gives
                            that shape */
    const char *symbols; /* the order of theirs in our letters: "[S, B, D]" */
    bool same_shape;     /* a square: only the numbers tell */
    bool equal;          /* put right, the numbers agree within the tolerance */
    int perm[ARRANGE_UNITS]; /* which of our letters stands in each place of theirs */
} Arrangement;

/* A tensor of another implementation: packed numbers in its own order. */
typedef struct {
    int nd;
    const int64_t *shape; /* [nd] */
    const double *x;
} Theirs;
/* Tries the orders of our dims (heads as a dim of their own) that give the shape of theirs. `ours`:
 * packed numbers in our order, as many; `allowed`: the largest difference of equal numbers. An
 * order in which the numbers agree wins; for the shape as it is (`same_shape`) only such a one is
 * told. */
Arrangement arrange(Arena *arena, const ValueShape *s, const double *ours, Theirs theirs,
                    double allowed);
/* Their numbers in our order: out[value_count(s)]. Only where `how` is equal, and not by rope's
 * pairs.
 */
void arrange_put(const ValueShape *s, const Arrangement *how, const double *theirs, double *out);
/* "[B, S, H*d]": the stored dims of ours. */
const char *arrange_symbols(Arena *arena, const ValueShape *s);
#endif
