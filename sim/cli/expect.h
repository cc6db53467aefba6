/* Holds a run against the plan's own `expect` section. */
#ifndef SP_CLI_EXPECT_H
#define SP_CLI_EXPECT_H
#include "drive/pipeline.h"
/* Adds E0505 for each expectation that failed (with its line). Returns the exit code of the plan
 * after expectations: with `equivalent: false` or `diagnostics`, exactly that result is 0 and its
 * absence 1. `exit_before` is report->exit. */
int expect_check(const Plan *p, const Trace *t, Diags *d, int exit_before);
/* Does the plan mean this note or warning? It lists the code, or the warning is about a mistake
 * whose wrong values it expects. */
bool expect_means(const Plan *p, const Diag *g);
#endif
