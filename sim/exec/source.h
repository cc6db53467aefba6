/* Reading inputs and parameters for ranks. */
#ifndef SP_EXEC_SOURCE_H
#define SP_EXEC_SOURCE_H
#include "exec/exec.h"

/* Makes what the ranks hold of an input or parameter, from its source. False, and a diagnostic, if
 * it could not be read. */
bool source_load(Exec *e, int val);
#endif
