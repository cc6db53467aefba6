/* What each rank of a real run took for each step: time, waiting, bytes that it sent. Of the last
 * micro-batch of the last training step, where caches are warm. Time stands still while ranks are
 * told and checked: each step begins for all ranks together, when all are ready for it. Where a
 * device has clocks of its own and the program was walked once more without being told
 * (drive/real.c), times are those, and steps overlap as they did there. */
#ifndef SP_EXEC_TOOK_H
#define SP_EXEC_TOOK_H
#include "engine/engine.h"
#include "exec/device.h"
#include "lower/program.h"
#include "trace/trace.h"

/* One step on one rank. */
typedef struct Took {
    double begin, seconds, wait; /* of which it waited for other ranks */
    int64_t given;               /* bytes handed to the engine for a sum of its own */
    int64_t *sent;               /* per rank: bytes of values sent to it */
} Took;

typedef struct Tooks Tooks;
/* Room for the steps of a program on one rank of an engine; given back by took_free. */
Tooks *took_new(Engine *engine, const Program *p);
void took_free(Tooks *t);
/* The step that is being run, to be filled; between took_begin and took_end. */
Took *took_now(Tooks *t);
/* When all ranks are ready: the clock of the next step goes. Loading what it reads is none of it:
 * then it begins again. */
void took_begin(Tooks *t);
/* A move begins: nothing of it was sent yet. (A step with a planted mistake is made twice.) */
void took_moves(Tooks *t);
/* This rank has done what the step asks of it. */
void took_end(Tooks *t);
/* It was this step. */
void took_step(Tooks *t, int step);
/* What took_step has written is that of the device's clock from now on, which began for all ranks
 * together; all that was asked of the device is done. */
void took_clocked(Tooks *t, Device *dev);
/* All ranks', into the trace of rank 0: records `measured`, in the order of steps and ranks. All
 * ranks call it. */
void took_record(Tooks *t, Trace *trace);
#endif
