/* Rows of bfloat16. See bf16.h. */
#include "kernel/bf16.h"

void bf16_round_f32(int64_t n, float *x) {
    for (int64_t i = 0; i < n; i++) x[i] = bf16_round(x[i]);
}
void bf16_round_f64(int64_t n, double *x) {
    for (int64_t i = 0; i < n; i++) x[i] = bf16_of_double(x[i]);
}
