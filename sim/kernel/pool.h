/* Worker threads: a loop over tasks on all cores. Results may not depend on which thread runs a
 * task. */
#ifndef SP_KERNEL_POOL_H
#define SP_KERNEL_POOL_H
#include <stdint.h>
typedef struct Pool Pool;
/* nthreads 0: all cores. With 1 everything runs on the caller, as it does with as many threads as
 * the system gives. Free with pool_free, when no task runs. */
Pool *pool_new(int nthreads);
void pool_free(Pool *p);
/* How many threads pool_new(nthreads) has work, the caller among them. */
int pool_would(int nthreads);
/* Threads that work, the caller among them; at least 1. */
int pool_threads(const Pool *p);
/* Runs fn(arg, i) for i in 0..n-1, the caller taking part; returns when all are done. Tasks are
 * taken in ascending order. A nested call from inside a task runs inline. */
void pool_run(Pool *p, int64_t n, void (*fn)(void *arg, int64_t i), void *arg);
/* Cuts 0..n-1 into pieces of 65,536 and runs fn(arg, lo, hi) for each; inline where there is but
 * one or no pool (NULL). */
void pool_pieces(Pool *p, int64_t n, void (*fn)(void *arg, int64_t lo, int64_t hi), void *arg);
#endif
