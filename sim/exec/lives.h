/* From when to when values are held. One answer for all who ask: the executor gives values back by
 * it, so the run and the dry walk that estimates it do; what records say about memory, and the
 * picture of it, add up by it. It sees a program and sizes of whole tensors; no rank and no machine
 * changes it, so all ranks load and drop in the same order. */
#ifndef SP_EXEC_LIVES_H
#define SP_EXEC_LIVES_H
#include "exec/held.h"
#include "kernel/tensor.h"

static const int64_t LIVES_FIRST = (int64_t)1 << 26; /* bytes of whole sources */

/* Values as virtual ranks hold them: from the step that makes one to the last that reads it (a view
 * keeps the buffer that it shares); what nobody reads stays. Sources (inputs, parameters, state)
 * are loaded before the first step. Of a model whose sources are large, what comes after the first
 * LIVES_FIRST bytes of them, in the order of the program, is late: such a parameter is loaded when
 * a step reads it. Training keeps its parameters, so there none is late. */
typedef struct Lives {
    int *last;         /* per value: the last step that reads it; -1: none */
    bool *late;        /* per value: not loaded before a step reads it */
    int *go, *next_go; /* per step: a value that is given back after it; per value: the next one of
                          that step; -1 ends */
} Lives;
/* Of a program whose real numbers are `dtype`. In `arena`. */
Lives lives_find(const Program *p, Dtype dtype, Arena *arena);

/* Buffers as a rank of a machine holds them: from the step that makes one, or from when it is
 * gathered ahead (`held`, of held_find), to the last step that reads it or a view of it; a
 * gathered parameter goes with its unit, also one that nobody reads; sources are held from step 0,
 * what nobody reads to the last step. Views have no buffer of their own. Nor has what
 * the optimizer writes over the parameter or state that it updates, and a sum over a group is
 * written where its input is, if that is read by nothing else; so is a gradient that is clipped.
 * With more than one of `parts` (micro-batches) the last of them is meant: a gradient that is added
 * up (lives_adds_up) is held from step 0, as the sum of those before, and added to in place.
 * Two terms of a sum that lie on different ranks (a gradient of each way of a pipeline) stay where
 * they are, and the sum over the group of both is made there: nobody makes the zeros of the other.
 * What is made once for all micro-batches (lives_once) is held as long as those go on.
 * Per value; NULL: it has no buffer, or lies at rest all the time (parameters, state). In `arena`.
 */
const TraceHeld **lives_buffers(const Program *p, const TraceHeld *const *held, int64_t parts,
                                Arena *arena);
/* Is the step such a sum? Then term[] are the values that the terms are of. `last`: program_reads,
 * through views. */
bool lives_joins(const Program *p, const Step *s, const int *last, int term[2]);
/* Is what the step makes added up over micro-batches? A parameter's gradient as its adjoint leaves
 * it, before anything moves it. */
bool lives_adds_up(const Program *p, const Step *s);
/* Micro-batches: is the step done once, after the last of them (moves and sums of parameter
 * gradients, the optimizer)? */
bool lives_deferred(const Program *p, const Step *s);
/* Is it the step after which the uses of a parameter differ by the way that micro-batches go
 * through a pipeline? Each way needs it, whichever comes first makes it. */
bool lives_both(const Program *p, const Step *s);
/* Does the first micro-batch make it for all of them? A copy of a parameter that
 * another stage is sent; each copy of a parameter where the plan keeps what is gathered: with
 * `reshard: step`, in a pipeline with `false` too. */
bool lives_once(const Program *p, const Val *v);
#endif
