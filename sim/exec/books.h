/* What a run keeps of its ranks beside their numbers: who holds which block, the headers of blocks,
 * maps that find equal ones, calls of kernels, records of checks. With many small ranks it is more
 * than the tensors. The dry walk adds them to what the device counts. */
#ifndef SP_EXEC_BOOKS_H
#define SP_EXEC_BOOKS_H
#include "lower/program.h"

/* Bytes for one value with `locals` distinct blocks, while it is there (store.c: Store). */
int64_t books_value(int64_t ranks, int64_t locals);
/* Bytes beside the numbers of n buffers (store.c: Buf). */
int64_t books_buffers(int64_t n);
/* Most bytes that running and checking one step wants besides: `in` blocks of its first input,
 * `out` of its output. Given back after it. */
int64_t books_step(const Program *p, const Step *s, int64_t in, int64_t out);
/* Records of the checks of so many training steps of `parts` micro-batches; they stay to the end.
 */
int64_t books_records(const Program *p, int64_t steps, int64_t parts);
#endif
