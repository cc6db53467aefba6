/* How many rows each rank has for each expert, for the picture of a routing. */
#ifndef SP_EXEC_ROUTED_H
#define SP_EXEC_ROUTED_H
#include "exec/exec.h"
#include "trace/trace.h"
/* After a step has run that makes or moves an index list: a record of the rows that the list of
 * each rank names, by expert. Nothing of any other step, once per step, and nothing where ranks
 * times experts are more than ROUTED_MOST. */
enum { ROUTED_MOST = 1 << 18 };
void routed_step(Trace *t, const Exec *e, const Step *s);
#endif
