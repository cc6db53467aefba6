/* Shardings that JAX's compiler is given (`trust: compiler`) and that cannot be run here: those
 * that JAX refuses, and those that it runs. */
#ifndef SP_ASSIGN_COMPILED_H
#define SP_ASSIGN_COMPILED_H
#include "assign/assign.h"

/* A dim, by its symbol or size, over n ranks of axes. */
typedef struct {
    const char *name, *dim, *axes;
    int64_t n;
} CompiledCut;
/* E0409: a NamedSharding does not pad. */
void compiled_unevenly(const Assign *a, Loc at, const CompiledCut *c);
/* Under `trust: compiler`, of heads that cannot be cut over all the axes `by` of their stored dim
 * of t: where these divide its size JAX runs it, each rank with parts of heads, and only this
 * version does not (E0214); where they do not, E0409. False under another trust, and nothing is
 * said. */
bool compiled_heads(const Assign *a, Loc at, const GTensor *t, int dim, const AxisList *by);
#endif
