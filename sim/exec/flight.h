/* Memory of a pipeline: what each rank holds while the schedule goes on, micro-batch by
 * micro-batch. Every value of every micro-batch is counted from the step that makes it to the last
 * step of that micro-batch that reads it, in the order in which all ranks come to their actions. It
 * refuses to know sizes (footprint.h has them) and times: the order is that of stages that are
 * alike. */
#ifndef SP_EXEC_FLIGHT_H
#define SP_EXEC_FLIGHT_H
#include "exec/footprint.h"

/* Adds the records of memory of a program with stages, as footprint_record does for others. A step
 * is done once for each micro-batch: its record says the most that a rank of the class holds just
 * after it in any of them. Sums of gradients count from the beginning, and so do copies of
 * parameters that the first micro-batch makes for all (lives_once). Fills `held` of the trace's
 * actions: the most that a rank of that coordinate holds during each, beside what lies at rest. */
void flight_record(const Footprint *f);
#endif
