/* The plan of a command as it would be with other settings, for views that show several. */
#ifndef SP_CLI_SWEEP_H
#define SP_CLI_SWEEP_H
#include "cli/cli.h"

/* Of a plan that breaks no rule; NULL: it is a trace, or one that does. Nothing is executed. */
const PlanOthers *sweep_others(Cli *c, const PipelineOptions *o, const Loaded *l);
/* Shows on a terminal how far the asking is, until sweep_end or all is asked. NULL: nothing. */
void sweep_watch(const PlanOthers *others, const Cli *c);
/* Gives back what the last one that was asked for took. NULL: nothing. */
void sweep_end(const PlanOthers *others);
#endif
