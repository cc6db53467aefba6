/* From when to when values are held. One answer for all who ask: the executor gives values back by
 * it, so the run and the dry walk that estimates it do, and what records say about memory adds up
 * by it. It sees a program and sizes of whole tensors; no rank and no machine changes it, so all
 * ranks load and drop in the same order.
 *
 * A value is there from the step that makes it to the last one that reads it; what nobody reads
 * stays. A source (input, parameter, state) is there before the first step. Two things are more:
 * a machine holds what it gathers in advance as long as held.h says, where virtual ranks gather
 * when a step asks for it; and of a model whose sources are large, what comes after the first
 * LIVES_FIRST bytes of them is late: such a parameter is loaded when a step reads it, and not
 * before. Training keeps its parameters: none is late. */
#ifndef SP_EXEC_LIVES_H
#define SP_EXEC_LIVES_H
#include "exec/held.h"
#include "kernel/tensor.h"

static const int64_t LIVES_FIRST = (int64_t)3 << 30; /* bytes of whole sources */

typedef struct Lives {
    int *last;             /* per value: the last step that reads it; -1: none */
    bool *late;            /* per value: a parameter that is not loaded before a step reads it */
    int *come, *next_come; /* per step: a value that is there from its beginning on; per value: the
                              next one of that step; -1 ends. Sources are in no such list */
    int *go, *next_go;     /* and those that are given back after it */
} Lives;
/* Of a program whose real numbers are `dtype`. `held` (of held_find): what is gathered ahead; NULL:
 * gathers come when a step asks for them, as they do on virtual ranks. In `arena`. */
Lives lives_find(const Program *p, Dtype dtype, const TraceHeld *const *held, Arena *arena);
#endif
