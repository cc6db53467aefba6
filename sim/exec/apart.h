/* Steps of a real run held where their blocks lie (far.h): each rank holds its own part of the
 * step, and copies are held by digests; no block travels. It says "held" or "look closer", never
 * "wrong": the check then asks for the blocks. */
#ifndef SP_EXEC_APART_H
#define SP_EXEC_APART_H
#include "exec/levels.h"

/* Each rank holds the step on its own blocks, at each coordinate of X. False: it cannot be, or
 * something is wrong; then nothing was seen. */
bool apart_held(Check *c, const Step *s, const AxisList *X, Levels *to);
/* A copy whose blocks are elsewhere. False: it needs a closer look. */
bool apart_copied(const Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank);
/* Answers what rank 0 asks of the steps and blocks of this rank (far.h); c is its own check. */
void apart_answers(Check *c, Far *f);
#endif
