/* The wire of whoever checks a real run: it has all ranks' blocks, as they say that they are. */
#ifndef SP_EXEC_WIRE_TOLD_H
#define SP_EXEC_WIRE_TOLD_H
#include "exec/far.h"
#include "exec/wire.h"

typedef struct WireTold WireTold;
/* Of so many ranks, whose blocks are told in memory of `host`: of far's device where large ones
 * stay with their ranks, which own executors know as Exec.far; else far is NULL. Given back by
 * wire_told_free. */
WireTold *wire_told_new(int64_t ranks, Device *host, Far *far);
void wire_told_free(WireTold *w);
/* As an executor's wire: an executor with it does each step, and loads each source, after it was
 * told what that made. Ranks that share a block in the virtual run share one where their bytes are
 * equal. */
Wire *wire_told(WireTold *w);
/* Every process says what its rank holds of a value, to rank 0, which has a `told`. All of them
 * call it. The next value that an executor with that wire makes is this one. */
void wire_tell(WireTold *told, Engine *engine, const Exec *own, int val);
/* The value as it is in the executor with the told wire becomes what was told of it. */
void wire_told_again(Exec *all, int val);
#endif
