/* What a run routed: rows per rank and expert, and who sent how many to whom. */
#ifndef SP_EXEC_ROUTED_H
#define SP_EXEC_ROUTED_H
#include "exec/exec.h"
#include "trace/trace.h"
/* After a step has run that makes or moves an index list: a record of the rows that the list of
 * each rank names, by expert. After a collective that moves rows: a record of those that each rank
 * had, has and sent, and (not of an all-reduce) for each pair of ranks what the one that sends and
 * the one that receives say, each from its own list. Nothing of any other step, once per step.
 * Without rows by expert where ranks times experts are more than ROUTED_MOST, without pairs where
 * there are more than PAIRS_MOST. */
enum { ROUTED_MOST = 1 << 20, PAIRS_MOST = 1 << 16 };
void routed_step(Trace *t, const Exec *e, const Step *s);
#endif
