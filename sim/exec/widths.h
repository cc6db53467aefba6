/* What the elements of values are on a machine: whole numbers, the plan's dtype, or that of
 * `data: {gradients}`. For records, which are of the machine; a run computes in what it is told. */
#ifndef SP_EXEC_WIDTHS_H
#define SP_EXEC_WIDTHS_H
#include "exec/region.h"

/* Of value `v`, where real numbers are `real`. */
static inline Dtype widths_of(const Program *p, const Val *v, Dtype real) {
    int own = p->assign->plan->gradients_in;
    if (v->cot && p->graph->t[v->tensor].kind == KIND_PARAM && own >= 0) return (Dtype)own;
    return region_dtype(&p->graph->t[v->tensor], real);
}
#endif
