/* Rows seen through two columns of numbers, in float64: what random projections are made of. The
 * same bits on every instruction set. */
#ifndef SP_KERNEL_COLUMNS_H
#define SP_KERNEL_COLUMNS_H
#include <stdint.h>

/* Sums that grow by rows: of their n elements times one number for each column (weight: [rows][2]),
 * and of their squares. */
enum { COLUMN_ROWS = 4 }; /* at most, at once */
typedef struct ColumnSums {
    double *sum[2], *square; /* [n] each */
} ColumnSums;
void columns_add_f32(int64_t n, int rows, const float *const *x, const double *weight,
                     const ColumnSums *to);
void columns_add_f64(int64_t n, int rows, const double *const *x, const double *weight,
                     const ColumnSums *to);
/* Adds to out[0] and out[1] the sums over a row of n elements times those of each column, to out[2]
 * that of their squares; in eight lanes (lane = index mod 8), folded pairwise. */
void columns_dot_f32(int64_t n, const float *x, const double *const column[2], double out[3]);
void columns_dot_f64(int64_t n, const double *x, const double *const column[2], double out[3]);
#endif
