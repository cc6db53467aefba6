/* Which modules the model of --model or --config has, for importers whose tables are of several
 * models. */
#ifndef SP_IMPORT_MODULES_H
#define SP_IMPORT_MODULES_H
#include "import/import.h"
#include "model/model.h"

/* As few of its first layers as have experts, one if none has; that many are then what the plan
 * has, unless it is --full. NULL: what is wrong with the model will be said when the plan is run.
 * Lives in the draft's arena. */
const Graph *draft_modules(Draft *x, Names names);
/* Is there a module, or a parameter (those of experts are lines of their own)? */
bool draft_has(const Graph *g, const char *pattern);
#endif
