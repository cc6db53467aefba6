/* Reading inputs and parameters for ranks. */
#ifndef SP_EXEC_SOURCE_H
#define SP_EXEC_SOURCE_H
#include "exec/exec.h"

/* Makes what the ranks hold of an input or parameter, from its source. False, and a diagnostic, if
 * it could not be read. */
bool source_load(Exec *e, int val);
/* The elements of a source that `rank` takes for its block under a layout, if this is what is done
 * to reading: whatever `apart` makes of them then. Lists live in `arena`. */
Region source_region(const Mesh *m, const GTensor *t, const Layout *l, const ReadAct *act,
                     int64_t rank, Arena *arena);
#endif
