/* The kernel of a step on all ranks, and its call on one of them. */
#ifndef SP_EXEC_CALL_H
#define SP_EXEC_CALL_H
#include "exec/exec.h"
#include "ops/op.h"

/* ST_OP and ST_ADJOINT. False, with e->stuck, if the ranks' sizes do not fit together. */
bool call_step(Exec *e, const Step *s);
/* The call of a step's kernel on one rank: operands and the shape of the output, out.p still NULL;
 * index lists live in tmp. False, with e->stuck, if the operands' sizes do not fit together. */
bool call_make(Exec *e, const Step *s, int64_t rank, OpCall *c, Arena *tmp);
/* Replaces the call's index lists, which are global, by those of contiguous cuts or by none (from 0
 * on every rank); they live in tmp. */
void call_positions(const Exec *e, const Step *s, Positions how, int64_t rank, OpCall *c,
                    Arena *tmp);
/* A local with a flattened stored dim 0 as a tensor with all its letters: the first letter takes
 * the list, the others of that dim are 1. Element-wise ops see it so. */
Tensor call_letters(const Tensor *t, const GTensor *g);
#endif
