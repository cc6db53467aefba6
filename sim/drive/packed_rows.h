/* A packed weight (gate and up in one) that a framework cuts as one list of rows, where the plan
 * cuts each of its blocks. What the ranks compute is the same where the result is gathered whole;
 * else each has the rows of another. Refuses to guess: it says what such a rank would hold, and
 * whoever asks compares. */
#ifndef SP_DRIVE_PACKED_ROWS_H
#define SP_DRIVE_PACKED_ROWS_H
#include "drive/values.h"

typedef struct PackedRows {
    double *x;        /* what the key's rank would hold of the list; malloc'ed for the caller */
    const char *what; /* "rows 20 to 39 of 40, gate and up as one list" */
    bool gathered;    /* nobody sees the order: its module hands out the whole result */
} PackedRows;

/* False where the key is no part of a packed weight, its gradient or state, or where the run holds
 * no whole value of it. `n`: as many numbers as the rank holds. */
bool packed_rows(const ValueSet *s, const Program *p, const ValueKey *k, int64_t n,
                 PackedRows *out);
#endif
