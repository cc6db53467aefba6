/* A run in bf16: which of its values are held in it, and their one rounding. Everything is computed
 * in float32; a value that is held in bf16 is rounded when what makes it, an op, a sum over ranks
 * or a sum of two, has come to its end. As frameworks do, the inside of an op stays in float32 (the
 * statistics of a norm, the scores of attention), and so do all values of the loss from the logits
 * on, scalars, the partial results of a ring, and what an optimizer has in float32 by the plan's
 * `data: {master, moments}`. It refuses to know how anything is computed. */
#ifndef SP_EXEC_NARROW_H
#define SP_EXEC_NARROW_H
#include "exec/exec.h"

/* Per Val: is it held in bf16? In the arena. */
bool *narrow_values(const Program *p, Arena *arena);
/* Per tensor: is what is loaded for it (inputs, parameters) rounded to bf16? In the arena; NULL:
 * the run is not in bf16. */
const bool *narrow_sources(const Exec *e, Arena *arena);
/* Rounds numbers of a value in place, if it is held so; t is packed and lies on `dev`. */
void narrow_round(const Exec *e, Device *dev, int val, const Tensor *t);
/* The same of a block of the run, packed in a buffer of its own or that it shares: where the device
 * holds bf16 in two bytes the buffer counts half from here on. */
void narrow_block(Exec *e, int val, Buf *b, const Tensor *t);
/* Where a value was computed in float32 within bound[i] of want[i], what it can be after its
 * rounding: any number from the rounding of want - bound to that of want + bound, for rounding is
 * monotone. Makes want[i] the middle of these and bound[i] what lies between; prob[i] (NULL: none)
 * likewise, and never less than what it allowed. That is below bound + 2^-8 (|want| + bound),
 * and 0 wherever float32 leaves no doubt. Infinite bounds where one end is. */
void narrow_bounds(int64_t n, double *want, double *bound, double *prob);

/* Parameters that the optimizer keeps in float32 (`data: {master: f32}`): between steps the ranks
 * hold the rounded ones, which forward and backward read, and these; the optimizer reads and makes
 * these. */
void narrow_enter(Exec *e, const Step *s); /* before a step: the optimizer's find float32 */
/* What the optimizer made of parameter value `to` was just put in its place: keeps it, and rounds
 * what the next step will read. */
void narrow_keep(Exec *e, int to);
/* ZeRO: ranks that update a part of a parameter keep that part in float32, and what they hand on to
 * the others is rounded before it is sent, as frameworks do. Per Val: of what the optimizer made
 * and hands on, the value that the next step's optimizer reads in its place; of that value, the one
 * it is kept from; -1: of no such pair. In the arena. */
int *narrow_handed(const Program *p, const bool *narrow, Arena *arena);
/* Before the next training step: such parts are kept. */
void narrow_keep_parts(Exec *e);
/* What is kept for the output of a step of the optimizer, and not to be cut from the rounded
 * parameter; NULL: nothing is. */
const Store *narrow_part(const Exec *e, const Step *s);
/* The step's output is a copy of that. */
void narrow_take_part(Exec *e, const Step *s, const Store *part);
/* Is what the move makes rounded, and what it reads not? */
bool narrow_rounds(const Exec *e, const Step *s);
/* After it all: what forward reads is in place again. */
void narrow_leave(Exec *e);
void narrow_free(Exec *e);
#endif
