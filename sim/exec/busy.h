/* What the steps of a run took on a device that has a clock of its own: records `measured`, of the
 * last micro-batch of the last training step. Ranks share the device and each block is made once,
 * so a rank's time is that of the kernels that made what it holds; a move's is that of the copies
 * and sums that stand for it, nothing is sent. Refuses to say what ranks of their own would take
 * beside each other. */
#ifndef SP_EXEC_BUSY_H
#define SP_EXEC_BUSY_H
#include "exec/exec.h"
#include "trace/trace.h"

typedef struct Busy Busy;
/* For the steps of e's program, in `arena`; NULL: its device has no clock. */
Busy *busy_new(Arena *arena, const Exec *e);
/* The step was just made, and nothing was checked yet. */
void busy_step(Busy *b, const Exec *e, const Step *s);
/* Into the trace, in the order of steps and ranks: each step begins when the rank that took the
 * longest has ended the one before. */
void busy_record(const Busy *b, Trace *t);
#endif
