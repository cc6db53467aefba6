/* From a lowered program to the records of a trace: parameters, values, steps, collectives, memory.
 * Shape-only: no tensor data is touched, ranks with the same local shapes are one class. */
#ifndef SP_EXEC_RECORD_H
#define SP_EXEC_RECORD_H
#include "lower/program.h"
#include "trace/trace.h"
/* Fills everything of `t` but checks, events and the verdict. */
void record_program(Trace *t, const Program *p, const Plan *plan, const Model *model, Dtype dtype);
#endif
