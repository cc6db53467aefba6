/* What the ranks of a run hold of each named value, put together: to compare runs with each other
 * by bits, where no sum was split on the way, or by a bound. */
#ifndef SP_TESTS_RUN_VALUES_H
#define SP_TESTS_RUN_VALUES_H
#include "support.h"

typedef struct {
    const char *name;
    Dtype dtype;
    int64_t n;
    const void *x;
    bool split; /* it, or what it is made of, was added up over ranks */
    bool gradient;
} RunValue;
typedef struct {
    Arena *a;
    int n, cap;
    RunValue *v;
    const bool *done; /* per Val of the program: is it split? */
} RunValues;
/* Runs a plan that must come out equivalent and keeps, whole, what each op of the forward pass
 * makes and the gradient of each parameter; pending sums are left out. `one`: with every axis of
 * the mesh set to 1. */
void run_values(RunValues *k, const char *file, const char *text, bool one);
const RunValue *run_value(const RunValues *k, const char *name);
/* Element i as a double. */
double run_value_at(const RunValue *v, int64_t i);
#endif
