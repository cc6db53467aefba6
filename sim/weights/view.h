/* Experts that a file stores otherwise than the model has them: input dim first (Llama 4's), gate
 * and up in one tensor, or both. A view says where each element of a parameter lies in the file's
 * tensor. It refuses to know files: whoever reads asks for runs. */
#ifndef SP_WEIGHTS_VIEW_H
#define SP_WEIGHTS_VIEW_H
#include "model/model.h"

/* Of a parameter [E, rows, cols], row-major: element (e, r, c) is number
 * e * matrix + from + r * row + c * col of the file's; row or col is 1. rows 0: no view. */
typedef struct {
    int64_t experts, rows, cols;
    int64_t matrix, from, row, col;
    int64_t shape[3]; /* that the file's tensor must have */
} View;

/* The parameter as a file has it under its own name, `turned` (input dim first) or not, or as half
 * of a tensor that holds gate and up; `own_turned`: as the model has it. False: the name is none of
 * a weight of experts, or of one that has no half. */
bool view_of_file(const GTensor *t, bool own_turned, bool turned, bool packed, View *out);
/* The name of the tensor that holds gate and up where `name` is one of them, or NULL. */
const char *view_packed_name(Arena *arena, const char *name);

/* n numbers of the file, from number `first` on, for the places at, at + step, ... of what is read.
 */
typedef struct {
    int64_t first, n, at, step;
} ViewRun;
/* Calls fn for runs that together are the parameter's elements [first, first + n); `at` counts from
 * `first`. No run is longer than `most`. Ends with false when fn does. */
bool view_runs(const View *v, int64_t first, int64_t n, int64_t most,
               bool (*fn)(void *arg, ViewRun run), void *arg);
#endif
