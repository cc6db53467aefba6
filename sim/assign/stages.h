/* The stages of a pipeline. See stages.c. For sim/assign only: others read Assign.stages. */
#ifndef SP_ASSIGN_STAGES_H
#define SP_ASSIGN_STAGES_H
#include "assign/assign.h"

/* Fills a->stages from the plan's `pipeline`, if it has one. False and diagnostics (E0310, E0311)
 * if there is no such schedule, or layers do not fill the stages. */
bool stages_find(Assign *a);
/* Puts each parameter and input where it is read first. An error (E0310) where the axis of the
 * stages cuts one. */
void stages_place(Assign *a);
#endif
