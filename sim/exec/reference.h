/* The unsharded program in float64: the same graph on a mesh of one rank. Compared with the ranks
 * end to end, with other people's values (against.c), and written to a file (save.c). */
#ifndef SP_EXEC_REFERENCE_H
#define SP_EXEC_REFERENCE_H
#include "exec/check.h"
#include "exec/routes.h"
#include "exec/sides.h"
#include "exec/work.h"
#include "weights/weights.h"

/* Loads a tensor for exec (a callback). */
typedef struct {
    Weights *w;
    Diags *d;
    const Graph *g;
    double modulus;     /* level 3: integers modulo this instead of the real values; 0: off */
    uint64_t seed;      /* of those integers */
    const Graph *whole; /* micro-batches: the graph of the whole batch, whose inputs are read and
                           cut; NULL: there is one */
    int64_t part, parts;
    int64_t step;              /* of the training loop, from 0: which of the per-step inputs */
    const Program *local_mean; /* normalise: local_mean: loss weights are each data rank's own mean;
                                  NULL: the global one */
    const bool *narrow;        /* per tensor: rounded to bf16 when read; NULL: none is */
    Dtype numbers;             /* of the unsharded run: DT_F64, or as the ranks have them */
    double nudge; /* every real number is off by this share of itself: what rounding can do, see
               drive/endtoend.c; 0: right */
    Device *dev;  /* where what is loaded lies; NULL: from malloc */
    Pool *pool;   /* random weights are made by all workers; NULL: by the caller */
    WorkEye *eye; /* looks at the walk of the unsharded run; or NULL */
    Progress *progress; /* told what is done of level 3, which takes exact_work; or NULL */
    double exact_work;
    Routes *routes; /* what the ranks' routers chose, taken over as `replay` says; NULL: nothing */
    RoutesRule replay;
    const Sides *sides; /* of the ranks, taken over with replay.share; NULL: they are not */
    SidesTaken *taken;  /* what of them was */
    /* told of each training step of the unsharded run; or NULL */
    void (*step_done)(void *arg, Exec *e, int64_t step);
    void *step_arg;
} FullSource;
typedef struct Reference {
    Arena *arena;
    Program *program;
    Exec *exec;
    const Graph *graph;
    double seconds;
    double *losses; /* per training step (one where nothing is trained); NULL: there is no loss */
} Reference;
/* The unsharded program of a model (with its backward if `backward`); no errors are possible that
 * the plan had not. */
Program *reference_program(Arena *arena, const Plan *p, const Model *m, Diags *d, bool backward);
/* Runs that program of model `m` in `like->numbers` on what `like` loads, always the whole
 * batch at once (`m` is the model of that), for `steps` training steps. keep_all keeps every value.
 * NULL and diagnostics if weights cannot be loaded. */
Reference *reference_run(Arena *arena, Program *program, const Model *m, const FullSource *like,
                         int64_t steps, bool keep_all);
void reference_free(Reference *r);
/* A value's numbers (whole, packed letters) or NULL if it is not kept. */
const double *reference_value(const Reference *r, int tensor);
/* The value that is the cotangent of one use in an unsharded program, or -1. */
int reference_use(const Program *p, const Part *use);
/* The tensor of the loss's weights, one for each token, or -1; and the axes that cut it, each block
 * of which has a mean of its own under `normalise: local_mean`. */
int reference_loss_weights(const Program *p);
AxisList reference_mean_axes(const Program *p, int tensor);
/* The sum of the uses that a cotangent lists, or NULL. The caller gives it back to the device of
 * r->exec. */
double *reference_cotangent(const Reference *r, const Val *v);
/* Tells the optimizer's nodes which training step (from 0) is run. */
void reference_set_step(Graph *g, int64_t it);
/* The whole of a tensor as `arg`, a FullSource, says: Exec.full. */
void *reference_full(void *arg, int tensor, Dtype dtype);
/* Some of its elements, and nothing of the others is made or read: Exec.part. */
bool reference_part(void *arg, int tensor, Dtype dtype, const Region *of, void *out);
#endif
