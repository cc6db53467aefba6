/* What a rank would hold of the same model if data parallelism kept it in other ways: DDP and the
 * three stages of ZeRO. Refuses to guess what ZeRO-3 would gather for use where the plan gathers
 * nothing, and what a plan's own optimizer is: all rows have AdamW with its state in float32. */
#ifndef SP_RENDER_MEMORY_COMPARE_H
#define SP_RENDER_MEMORY_COMPARE_H
#include "render/memory/memory.h"

enum { MEM_WAYS = 4 };
typedef struct {
    const char *name, *cut; /* "ZeRO-1", "state over dp·cp, 4 ranks" */
    MemClass held;          /* rank and bytes; total is their sum; step: where it has most */
    const char *formula;    /* "(2 + 2 + 12/4) B × 634,400,768" */
    const char *experts;    /* over which ranks they are cut where those are fewer; else "" */
} MemWay;
/* Rows for the rank of `m`; returns their number, 0 if nothing says over which axes gradients of
 * weights are added up, or ZeRO would cut next to nothing. Gradients are there all the time, so
 * all rows have the live values of the step that has most beside gradients, which may be another
 * than the plan's own peak; beside a plan with FSDP the row of ZeRO-3 has the step's that has most
 * of these and of gathered parameters together, and both as they are there. In the arena. */
int memory_ways(Arena *a, const Trace *t, const MemClass *m, MemWay out[MEM_WAYS]);
/* "4,015,263,744" */
const char *memory_thousands(Arena *a, int64_t n);
#endif
