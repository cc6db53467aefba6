/* The virtual wire: all ranks of the mesh are in this process, and ranks that would hold equal
 * blocks of a value hold one. Who is equal is told by a key; the first rank of each key makes the
 * block. It is the one place that knows that ranks share, and the order in which they come. */
#ifndef SP_EXEC_WIRE_H
#define SP_EXEC_WIRE_H
#include "exec/exec.h"

enum { WIRE_MAX_KEY = 2 * (RULE_MAX_IN + 2) + 2 };

typedef struct WireBlocks {
    int width; /* numbers in a key, at most WIRE_MAX_KEY */
    void (*key)(void *arg, int64_t rank, int64_t *key);
    /* Makes the block of a rank (l->rank is set) with one reference to its buffer. False: it cannot
     * be made, e->stuck says why. */
    bool (*make)(void *arg, int64_t rank, Local *l);
    void *arg;
} WireBlocks;
/* Makes what every rank holds of value `out`. False as soon as one block cannot be made. */
bool wire_share(Exec *e, int out, const WireBlocks *w);
#endif
