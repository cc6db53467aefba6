/* What the ranks hold of a value, put together. */
#ifndef SP_EXEC_ASSEMBLE_H
#define SP_EXEC_ASSEMBLE_H
#include "exec/exec.h"

/* Assembles what the ranks that agree with `rank` on the axes of `fixed` hold together: the whole
 * of the value where nothing is fixed. Packed, dims as in Local. With `fixed` every axis whose
 * copies are pending sums must be fixed. t.p is memory of the
 * executor's host, which the caller releases. Sizes and the index lists of the
 * result's dims follow from assemble_layout. */
Tensor assemble_value(const Exec *e, int val, const AxisList *fixed, int64_t rank);
/* Its elements: of rows those that these ranks hold together. Lists live in `arena`. */
Region assemble_region(const Exec *e, int val, const AxisList *fixed, int64_t rank, Arena *arena);
/* The layout that says which indices assemble_value gives: all axes but `fixed` become ghosts. */
Layout assemble_layout(const Exec *e, const Layout *l, const AxisList *fixed);
#endif
