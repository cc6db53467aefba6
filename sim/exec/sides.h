/* On which side of a bend each number of a run lies. An op may have a slope that jumps: a ReLU at
 * 0, a clamp at its ends. Where a number is all but there, rounding decides which slope its
 * gradient gets, and a small model's gradients are far from the unsharded one's although each step
 * follows from its inputs. So sides are kept while the ranks run, and where the end of the run is
 * beyond its bound the unsharded model is run once more with the run's sides, if its own number is
 * no further from the bend than rounding can put it. Refuses to change a value: only which slope is
 * taken. */
#ifndef SP_EXEC_SIDES_H
#define SP_EXEC_SIDES_H
#include "exec/exec.h"
#include "exec/walk.h"

typedef struct Sides Sides;

/* Memory is of `dev`, so that a dry walk counts it; until sides_free. `parts`: micro-batches of a
 * training step. */
Sides *sides_new(Arena *arena, Device *dev, int64_t parts);
void sides_free(Sides *s);
/* After a step of the ranks: keeps the sides of what it reads, if it is the adjoint of such an op.
 */
void sides_keep(Sides *s, const Exec *e, const Step *step, WalkInstance at);
/* What a run with the sides of another took over. */
typedef struct SidesTaken {
    int64_t n;       /* numbers that lie on the other side */
    double farthest; /* from the bend, as a share of what rounding may make */
} SidesTaken;
/* After a step of the unsharded run (f64, one rank, the whole batch): makes the gradient anew where
 * sides differ. `share`: of the largest number that rounding may move one by, in the first layer;
 * deeper ones have as many times that. Adds to *taken. */
void sides_replay(const Sides *s, Exec *one, const Step *step, int64_t iteration, double share,
                  SidesTaken *taken);
#endif
