/* explain --hooks: what runs before and after each module's forward, and which collective that is.
 * Reads traces only: who hangs there is the record `module`, what it does are the records of moves
 * with their `where`. */
#ifndef SP_CLI_HOOKS_H
#define SP_CLI_HOOKS_H
#include "cli/cli.h"

/* Who stands under `by`, for people. */
extern const char hooks_legend[];

/* A row for each hook, whether it moves anything or not, and for each move of a module that none
 * makes; modules in the trace's order. `name` (NULL: all): only this module and those inside. */
Table table_hooks(const Cli *c, const Trace *t, const char *name);
#endif
