/* What a step's check has in common, whatever it is held by: the ranks' parts of a value put
 * together at one coordinate of the axes on which sums are pending, and the step's call on them. It
 * judges nothing. */
#ifndef SP_EXEC_JOINT_H
#define SP_EXEC_JOINT_H
#include "exec/assemble.h"
#include "exec/check.h"

/* The ranks that agree with `rank` on the axes of X. */
typedef struct Joint {
    const Check *c;
    const AxisList *X;
    int64_t rank;
    bool sizes; /* numbers have sizes only, what lists rows is there */
} Joint;

/* Memory of the host: what a check puts together. */
static inline void *joint_take(const Check *c, int64_t n, int64_t size) {
    return device_array(c->e->host, n, size);
}
static inline void joint_give(const Check *c, void *p) { c->e->host->release(c->e->host, p); }
/* Are there numbers to look at? */
static inline bool joint_numbers(const Check *c) { return !c->e->dev->sizes_only; }

/* Is the axis in the list? */
bool joint_has_axis(const AxisList *l, int a);
/* Axes over which the step's values are pending sums: they are looked at one coordinate at a time.
 */
AxisList joint_pending(const Check *c, const Step *s);
/* The first rank that holds the value at coordinate i of some axes. */
int64_t joint_rank(const Check *c, int val, const AxisList *X, int64_t i);
/* The first ranks of the blocks of a value among those of j, into `to`; how many. */
int64_t joint_holders(const Joint *j, int val, int64_t *to);
/* A value put together, a dim for each letter of its op: rows, which lie as one list, too. To be
 * given back. */
Tensor joint_letters(const Joint *j, int val);
/* The step's op on what is put together; *ob: the elements of its output. False if they do not fit
 * together. To be freed in either case; lists live in tmp. */
bool joint_call(const Joint *j, const Step *s, OpCall *call, Region *ob, Arena *tmp);
void joint_free(const Check *x, OpCall *c, int nin);
/* Has each block of the ranks of j the shape that its layout gives it of the whole, whose elements
 * are `box`? Else what is put together has gaps. */
bool joint_shapes(const Joint *j, const Compare *m, int val, const Region *box);
/* What is wrong only later than in the first micro-batch of the first step says when; NULL stays.
 */
const char *joint_when(const Check *c, const char *cause);
#endif
