/* Errors of a row against bounds. Differences, quotients and maxima are exact or correctly rounded,
 * so no instruction set changes a bit. It refuses to judge a row that holds anything but errors
 * within their bounds. */
#include "kernel/errors.h"
#include "kernel/isa.h"

void errors_join(ErrorTop *top, const ErrorTop *t) {
    if (t->abs > top->abs) top->abs = t->abs;
    if (t->rel > top->rel) top->rel = t->rel;
    if (t->used > top->used || (t->used == top->used && t->bound > top->bound)) {
        top->used = t->used;
        top->bound = t->bound;
    }
}
bool errors_within_f32(int64_t n, const float *got, const double *want, const double *bound,
                       const double *prob, ErrorTop *top) {
    return kernel_current()->f32->within(n, got, want, bound, prob, top);
}
bool errors_within_f64(int64_t n, const double *got, const double *want, const double *bound,
                       const double *prob, ErrorTop *top) {
    return kernel_current()->f64->within(n, got, want, bound, prob, top);
}
