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
/* Of it the elements that `box` names, a part of assemble_region's; no rows. */
Tensor assemble_box(const Exec *e, int val, const AxisList *fixed, int64_t rank, const Region *box);
/* The blocks that assemble_value would put together, where they lie; each element is in one of
 * them. False where they have to be put together: rows, and labels that do not say what is there.
 * Lists live in `arena`. */
typedef struct AssembleParts {
    Region box; /* the elements of all */
    bool one;   /* a single rank has them: known where there are sizes only, and no parts, too */
    int64_t n;
    struct AssemblePart {
        Region has;
        Tensor t; /* of the executor's device */
    } * part;
} AssembleParts;
bool assemble_parts(const Exec *e, int val, const AxisList *fixed, int64_t rank, Arena *arena,
                    AssembleParts *parts);
/* Its elements: of rows those that these ranks hold together. Lists live in `arena`. */
Region assemble_region(const Exec *e, int val, const AxisList *fixed, int64_t rank, Arena *arena);
/* The layout that says which indices assemble_value gives: all axes but `fixed` become ghosts. */
Layout assemble_layout(const Exec *e, const Layout *l, const AxisList *fixed);
#endif
