/* Errors of a row against bounds. Differences, quotients and maxima are exact or correctly rounded,
 * so no instruction set changes a bit. It refuses to judge a row that holds anything but errors
 * within their bounds. */
#include "kernel/errors.h"
#include "kernel/isa.h"

bool errors_within_f32(int64_t n, const float *got, const double *want, const double *bound,
                       const double *prob, ErrorTop *top) {
    return kernel_current()->f32->within(n, got, want, bound, prob, top);
}
bool errors_within_f64(int64_t n, const double *got, const double *want, const double *bound,
                       const double *prob, ErrorTop *top) {
    return kernel_current()->f64->within(n, got, want, bound, prob, top);
}
bool errors_factored_f32(int64_t n, const float *got, const double *want, int64_t at,
                         const ErrorFactors *f, ErrorTop *top) {
    return kernel_current()->f32->factored(n, got, want, at, f, top);
}
bool errors_factored_f64(int64_t n, const double *got, const double *want, int64_t at,
                         const ErrorFactors *f, ErrorTop *top) {
    return kernel_current()->f64->factored(n, got, want, at, f, top);
}
static double magnitude(const ErrorFactors *f, int64_t i) {
    return f->row[i / f->cols] * f->col[i % f->cols];
}
double errors_bound(const ErrorFactors *f, int64_t i) { return magnitude(f, i) * f->g + f->tiny; }
double errors_prob(const ErrorFactors *f, int64_t i) { return magnitude(f, i) * f->p + f->tiny; }
