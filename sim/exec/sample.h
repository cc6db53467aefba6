/* Real numbers of collectives for the storyboard. */
#ifndef SP_EXEC_SAMPLE_H
#define SP_EXEC_SAMPLE_H
#include "exec/exec.h"
#include "trace/trace.h"
enum { SAMPLE_ROWS = 4, SAMPLE_COLUMNS = 8 }; /* of a chunk that is recorded whole */
/* After a step has run and before its inputs are dropped: a sample record of the group of `rank`,
 * if the step is a collective or a slice of at most 64 ranks without a planted mistake; nothing
 * otherwise, and once per step. */
void sample_step(Trace *t, const Exec *e, const Step *s, int64_t rank);
#endif
