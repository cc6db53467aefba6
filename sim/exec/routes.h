/* The lists that a run's routers chose, kept for the unsharded run. Where two experts are all but
 * equal, rounding decides between them, and one other choice changes everything behind it: so the
 * unsharded run takes the run's choice over, if its own scores are no further apart than rounding
 * can put them, and goes on. Whether the run's list follows from the run's own scores is not asked
 * here: the check of its step holds it by bits. */
#ifndef SP_EXEC_ROUTES_H
#define SP_EXEC_ROUTES_H
#include "exec/exec.h"
#include "exec/walk.h"
#include "trace/trace.h"

typedef struct Routes Routes;

/* Lives in the arena, as do the lists. `parts`: micro-batches of a training step. */
Routes *routes_new(Arena *arena, int64_t parts);
/* After a step of the ranks: keeps the list that it has chosen, if it is such a step; those of
 * micro-batches make up that of the batch. */
void routes_keep(Routes *r, const Exec *e, const Step *s, WalkInstance at);
/* A row (row-major over the listed letters of `t`) of one of so many micro-batches as a row of the
 * batch. */
int64_t routes_row(const GTensor *t, int64_t id, int64_t part, int64_t parts);
/* What the unsharded run makes of a choice that is not its own. */
typedef struct RoutesRule {
    double share; /* of the largest score that rounding may move one by, in the first layer; deeper
                     ones have as many times that */
    bool always;  /* whatever the gap (`routing: replayed`, or a run that repeats another) */
    Trace *t;     /* gets a record of each choice that was taken over; NULL: nobody asks */
} RoutesRule;
/* After a step of the unsharded run (f64, one rank, the whole batch): takes the kept choices over,
 * before anybody has read the list. From then on that is what is kept. */
void routes_replay(Routes *r, Exec *one, const Step *s, int64_t iteration, const RoutesRule *rule);
#endif
