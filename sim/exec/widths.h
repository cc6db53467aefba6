/* What the elements of values are on a machine: whole numbers, the plan's dtype, or that of
 * `data: {gradients}`. For records, which are of the machine; a run computes in what it is told. */
#ifndef SP_EXEC_WIDTHS_H
#define SP_EXEC_WIDTHS_H
#include "exec/region.h"

/* Of value `v`, where real numbers are `real`. In a plan of bf16 scalars, and the loss from the
 * logits on, are float32: a sum over a vocabulary or over all gradients has no place in 8 bits. */
static inline Dtype widths_of(const Program *p, const Val *v, Dtype real) {
    const GTensor *t = &p->graph->t[v->tensor];
    if (real == DT_BF16 && !t->is_int && (!t->nd || graph_of_loss(p->graph, t))) return DT_F32;
    int own = p->assign->plan->gradients_in;
    if (v->cot && t->kind == KIND_PARAM && own >= 0) return (Dtype)own;
    return region_dtype(t, real);
}
#endif
