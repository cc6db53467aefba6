/* An op in slices along a letter of its result: the same op on less, whose results side by side are
 * the op's, bit for bit, and whose bounds are too. What is put together, computed in float64 and
 * compared is then never there as a whole, and is looked at while it is near. It refuses ops whose
 * bounds follow from more than an element's own operands, letters that mean something to the op or
 * are not cut in ranges, and rows. */
#ifndef SP_EXEC_SLICES_H
#define SP_EXEC_SLICES_H
#include "exec/joint.h"

typedef struct Slices {
    OpCall call; /* of all of it, sizes only */
    Region box;  /* the elements of its result */
    char letter;
    int dim;         /* of the result that has it */
    int64_t n, each; /* along the letter: in all, in a slice */
} Slices;

/* Is what each rank has of a value along that dim a range? */
bool slices_ranges(const Exec *e, int val, int dim);
/* Is the step at the coordinate of j worth slices? Lists live in tmp. */
bool slices_of(const Joint *j, const Step *s, Slices *x, Arena *tmp);
/* The tensors of a call, whose numbers are read: the operands, the cotangent, the result; the value
 * of each, -1: it is not read; the dim that has the letter, -1: none. */
int slices_tensors(const Step *s, const OpCall *c);
Tensor *slices_tensor(OpCall *c, int k);
int slices_value(const Step *s, const OpCall *c, int k);
int slices_dim(const Slices *x, int k);
/* The call of the slice that begins at lo, sizes only, and the elements of its result. */
OpCall slices_call(const Slices *x, const Step *s, int64_t lo, Region *box);
/* What that slice has of tensor k, put together. To be given back. */
Tensor slices_part(const Joint *j, const Slices *x, const Step *s, int k, int64_t lo);
#endif
