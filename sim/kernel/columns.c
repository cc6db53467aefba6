/* Rows through columns. Products and sums are correctly rounded one by one, so no instruction set
 * changes a bit. It draws no columns and knows no bounds: exec/project.c does. */
#include "kernel/columns.h"
#include "kernel/isa.h"

void columns_add_f32(int64_t n, int rows, const float *const *x, const double *weight,
                     const ColumnSums *to) {
    kernel_current()->f32->columns_add(n, rows, x, weight, to);
}
void columns_add_f64(int64_t n, int rows, const double *const *x, const double *weight,
                     const ColumnSums *to) {
    kernel_current()->f64->columns_add(n, rows, x, weight, to);
}
void columns_dot_f32(int64_t n, const float *x, const double *const column[2], double out[3]) {
    kernel_current()->f32->columns_dot(n, x, column, out);
}
void columns_dot_f64(int64_t n, const double *x, const double *const column[2], double out[3]) {
    kernel_current()->f64->columns_dot(n, x, column, out);
}
