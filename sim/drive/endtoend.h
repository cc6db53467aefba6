/* The end of a run against the unsharded float64 model: output, losses, gradients, and what
 * training left. This closes what the checks of single steps leave open: a step that follows from
 * its inputs and should not be there, or one that is missing. It refuses to judge anything in
 * between: check.c does, and distance.c says how far it is. */
#ifndef SP_DRIVE_ENDTOEND_H
#define SP_DRIVE_ENDTOEND_H
#include "drive/pipeline.h"
#include "exec/reference.h"

typedef struct {
    Check *check;
    const Reference
        *ref; /* of the whole batch, every value of which is kept where there is a backward */
    /* runs it once more, every real number off by that share of itself; NULL if that fails */
    Reference *(*nudged)(void *arg, double share);
    /* runs it once more in the ranks' own dtype; asked for where that is not float64 */
    Reference *(*alike)(void *arg);
    /* runs it once more with the ranks' sides of bends (exec/sides.h); NULL if nobody kept them */
    Reference *(*with_sides)(void *arg);
    void *arg;
    bool measure; /* --sensitivity: every bound is measured; else only one that is passed */
    bool told;    /* where NaN or an infinity first came from: a value of such is its consequence */
    const double *
        losses; /* of each training step, added up over the micro-batches; NULL: there is no loss */
    int64_t steps, parts; /* training steps, micro-batches */
    Progress *progress;   /* told what each value takes (work_compare); or NULL */
} EndToEnd;
/* The share of a value by which a run in that dtype may move it by rounding, one layer deep. */
double endtoend_rounding(Dtype dtype);
/* The share of its largest magnitude by which a value may differ from the unsharded float64
 * model's, in a run of numbers t. */
double endtoend_share(const Program *p, Dtype t);
/* Is the value one of those that are compared? *grad: as a gradient. */
bool endtoend_result(const Program *p, int val, bool *grad);
/* Numbers of an unsharded run (`whole`) that the ranks' last micro-batch is compared with: its rows
 * of the batch, which is always first. */
const double *endtoend_last_rows(const EndToEnd *e, const GTensor *t, const double *whole);
/* Compares all of them and fills end_to_end_* of the report. Records the first that is beyond its
 * bound as a failure, unless a step has failed before: then it is known where. */
void endtoend_check(const EndToEnd *e, PipelineReport *report);
#endif
