/* From a lowered program to the records of a trace: parameters, values, steps, collectives, memory.
 * Shape-only: no tensor data is touched, ranks with the same local shapes are one class. */
#ifndef SP_EXEC_RECORD_H
#define SP_EXEC_RECORD_H
#include "lower/program.h"
#include "schedule/play.h"
#include "trace/trace.h"
/* Fills everything of `t` but checks, events and the verdict. */
void record_program(Trace *t, const Program *p, const Plan *plan, const Model *model, Dtype dtype);
/* Of a schedule that comes to no end: the run, its mesh and sizes, the actions that are done, in
 * units of a forward's time, and where each rank stands. */
void record_stuck(Trace *t, Mesh *mesh, const Plan *plan, const Model *model, const Play *play);
#endif
