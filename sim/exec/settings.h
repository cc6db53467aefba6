/* The settings of a run that decide its numbers. */
#ifndef SP_EXEC_SETTINGS_H
#define SP_EXEC_SETTINGS_H
#include "lower/program.h"
#include "trace/trace.h"

/* Fills t->settings, in `arena`: the plan's seed, files, loss and optimizer, and the model's
 * constants. Numbers are written so that different ones read differently. */
void record_settings(Arena *arena, const Plan *plan, const Model *model, Trace *t);
#endif
