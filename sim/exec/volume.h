/* How much travels in a move: what each rank hands in, takes out and sends by the ring or pairwise
 * algorithm, with blocks padded as frameworks pad them; rows of experts are those to expect, whole
 * ones, and not padded. From the pieces (pieces.h), as multiples of
 * the largest; it lists none. What really goes from one rank to another is pieces_between. */
#ifndef SP_EXEC_VOLUME_H
#define SP_EXEC_VOLUME_H
#include "exec/pieces.h"

/* In elements. */
typedef struct {
    int64_t in, out, sent;
} Volume;

/* Of the group of `rank`, for all rounds of the act. */
Volume volume_of(const Pieces *x, int64_t rank);
/* False for an exchange whose pieces differ (another cut of the same dim, axes that pass each
 * other): what a rank sends there depends on the rank. */
bool volume_even(const Pieces *x);
#endif
