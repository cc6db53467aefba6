/* The wire of a process that is one rank of a real run. */
#ifndef SP_EXEC_WIRE_OWN_H
#define SP_EXEC_WIRE_OWN_H
#include "engine/engine.h"
#include "exec/took.h"
#include "exec/wire.h"

typedef struct WireOwn WireOwn;
/* Of the rank that the engine says, whose blocks lie on dev; sums: reductions that nobody tampers
 * with are left to the engine, else blocks are gathered and added in the declared order. Given back
 * by wire_own_free. */
WireOwn *wire_own_new(Engine *engine, const Program *p, Device *dev, bool sums);
void wire_own_free(WireOwn *w);
/* As an executor's wire. */
Wire *wire_own(WireOwn *w);
/* What its steps take: it measures, who runs it says which step it was. */
Tooks *wire_own_tooks(WireOwn *w);
/* Do its moves go on while it is asked for other steps? */
bool wire_own_goes_on(const WireOwn *w);
/* From here on nobody says whether a step was done everywhere, nor waits for it; up to the same
 * with false, which returns when all that was asked for is done. Only where moves go on. */
void wire_own_alone(WireOwn *w, bool alone);
/* The lowest rank that could not do the last step or load; -1: all could. */
int64_t wire_own_stuck(const WireOwn *w);
#endif
