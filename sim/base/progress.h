/* How far a long run is: written by the one thread that runs the steps, read by one that shows it
 * (cli/progress.c). Refuses to print and to know time: it costs two relaxed loads and a store per
 * step. All take a NULL for "nobody looks". */
#ifndef SP_BASE_PROGRESS_H
#define SP_BASE_PROGRESS_H
#include <stdatomic.h>
#include <stddef.h>

typedef struct {
    _Atomic double total, done; /* work, in nanoseconds that it should take: exec/work.h */
    const char *_Atomic phase;  /* a literal: "ranks and check"; NULL: nothing has begun */
} Progress;

/* The runner did `work` more of the total, in the units of progress_total; p may be NULL. */
static inline void progress_add(Progress *p, double work) {
    if (p)
        atomic_store_explicit(&p->done, atomic_load_explicit(&p->done, memory_order_relaxed) + work,
                              memory_order_relaxed);
}
/* All the work there is, in nanoseconds that it should take; p may be NULL. */
static inline void progress_total(Progress *p, double work) {
    if (p) atomic_store_explicit(&p->total, work, memory_order_relaxed);
}
/* What the runner does from here on: a static text; p may be NULL. */
static inline void progress_phase(Progress *p, const char *phase) {
    if (p) atomic_store_explicit(&p->phase, phase, memory_order_release);
}
#endif
