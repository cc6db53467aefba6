/* Which sums of gradients a plan declares (room: styles). The result is Assign.summed; lowering
 * makes what is declared as declared, and marks or leaves out the rest. */
#ifndef SP_ASSIGN_SUMS_H
#define SP_ASSIGN_SUMS_H
#include "assign/assign.h"

/* The style of `u`, whose field `spec` places the parameter: its axes are added to
 * a->summed[tensor] if its system sums. */
void sums_of_style(Assign *a, int tensor, const ModuleUse *u, const RawSpec *spec);
/* Resolves `data_parallel` into a->data and a->shard; `batch` and `seq` cut the data. Every mode
 * has the same default: all axes that cut the batch or the sequence. */
void sums_of_data(Assign *a, const AxisList *batch, const AxisList *seq);
/* Adds to a->summed of every parameter what `data_parallel` and `gradients` declare. */
void sums_of_parameters(Assign *a);
/* Does a pattern of `gradients` mean this parameter? It names it, in the plan's scheme or the
 * checkpoint's, or a module of it. */
bool sums_names(const Graph *g, const GTensor *t, const char *pattern);
#endif
