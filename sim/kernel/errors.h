/* How far computed numbers are from what they must be, a row at a time. */
#ifndef SP_KERNEL_ERRORS_H
#define SP_KERNEL_ERRORS_H
#include <stdbool.h>
#include <stdint.h>

/* The largest of many errors; starts as zeros. The order in which rows are joined changes none of
 * them. */
typedef struct ErrorTop {
    double abs, rel;    /* |got - want|; the same by |want|, where that is not zero */
    double used, bound; /* the largest share of its bound that an error takes, and the largest bound
                           of which it takes it */
} ErrorTop;

/* Bounds that follow from two magnitudes: element i may err by m g + tiny, and hardly errs by more
 * than m p + tiny, where m = row[i / cols] * col[i % cols]. */
typedef struct ErrorFactors {
    double *row, *col; /* NULL: bounds are no such products */
    int64_t cols;
    double g, p, tiny;
} ErrorFactors;
double errors_bound(const ErrorFactors *f, int64_t i);
double errors_prob(const ErrorFactors *f, int64_t i);
/* Of n elements each: true if every |got - want| is at most its bound and at most its prob; then
 * *top is raised. Else (NaN and infinities too) *top stays as it was, and the row has to be looked
 * at element by element. */
bool errors_within_f32(int64_t n, const float *got, const double *want, const double *bound,
                       const double *prob, ErrorTop *top);
bool errors_within_f64(int64_t n, const double *got, const double *want, const double *bound,
                       const double *prob, ErrorTop *top);
/* The same of elements `at` to at + n - 1, whose bounds are products. */
bool errors_factored_f32(int64_t n, const float *got, const double *want, int64_t at,
                         const ErrorFactors *f, ErrorTop *top);
bool errors_factored_f64(int64_t n, const double *got, const double *want, int64_t at,
                         const ErrorFactors *f, ErrorTop *top);
/* Raises *top to what t adds. */
static inline void errors_join(ErrorTop *top, const ErrorTop *t) {
    if (t->abs > top->abs) top->abs = t->abs;
    if (t->rel > top->rel) top->rel = t->rel;
    if (t->used > top->used || (t->used == top->used && t->bound > top->bound)) {
        top->used = t->used;
        top->bound = t->bound;
    }
}
#endif
