/* A pool of worker threads for loops over independent tasks. It refuses to make anything depend on
 * who runs what: tasks are handed out one by one from a counter, and results are the tasks' own
 * business. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* sched_getaffinity */
#endif
#include "kernel/pool.h"
#include "base/arena.h"
#include "kernel/isa.h"
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>

struct Pool {
    int nworkers; /* threads besides the caller */
    int spin;     /* how often a waiter looks before it sleeps */
    pthread_t *thread;
    pthread_mutex_t run;  /* held by the one caller whose loop is running */
    pthread_mutex_t lock; /* guards all that follows; the atomics may also be read without it */
    pthread_cond_t wake, done;
    atomic_uint round; /* counts loops; a worker sleeps until it changes */
    atomic_int active; /* workers inside the current loop */
    atomic_bool quit;
    bool open; /* may a worker still join? */
    int sleeping;
    void (*fn)(void *arg, int64_t i);
    void *arg;
    int64_t n;
    _Atomic int64_t next;
};

/* True while this thread runs a task: nested loops then run inline. */
static _Thread_local bool in_task;

static void cpu_pause(void) {
#if defined(__x86_64__)
    __builtin_ia32_pause();
#endif
}

static void run_tasks(Pool *p, void (*fn)(void *, int64_t), void *arg, int64_t n) {
    in_task = true;
    for (;;) {
        int64_t i = atomic_fetch_add_explicit(&p->next, 1, memory_order_relaxed);
        if (i >= n) break;
        fn(arg, i);
    }
    in_task = false;
}

/* Waits for a loop this worker has not seen. Returns with the lock held. */
static void wait_for_work(Pool *p, unsigned seen) {
    for (int i = 0; i < p->spin; i++) {
        if (atomic_load_explicit(&p->round, memory_order_acquire) != seen) break;
        if (atomic_load_explicit(&p->quit, memory_order_relaxed)) break;
        cpu_pause();
    }
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->round) == seen && !atomic_load(&p->quit)) {
        p->sleeping++;
        pthread_cond_wait(&p->wake, &p->lock);
        p->sleeping--;
    }
}

static void *worker(void *pool) {
    Pool *p = pool;
    unsigned seen = 0;
    for (;;) {
        wait_for_work(p, seen);
        if (atomic_load(&p->quit)) break;
        seen = atomic_load(&p->round);
        if (p->open) {
            void (*fn)(void *, int64_t) = p->fn;
            void *arg = p->arg;
            int64_t n = p->n;
            atomic_fetch_add(&p->active, 1);
            pthread_mutex_unlock(&p->lock);
            run_tasks(p, fn, arg, n);
            pthread_mutex_lock(&p->lock);
            if (atomic_fetch_sub(&p->active, 1) == 1) pthread_cond_signal(&p->done);
        }
        pthread_mutex_unlock(&p->lock);
    }
    pthread_mutex_unlock(&p->lock);
    kernel_thread_cleanup();
    return NULL;
}

static int count_cores(void) {
    cpu_set_t set;
    if (sched_getaffinity(0, sizeof set, &set) == 0 && CPU_COUNT(&set) > 0) return CPU_COUNT(&set);
    return 1;
}

int pool_would(int nthreads) { return nthreads > 0 ? nthreads : count_cores(); }
Pool *pool_new(int nthreads) {
    int cores = count_cores();
    nthreads = pool_would(nthreads);
    Pool *p = base_malloc(sizeof *p);
    *p = (Pool){0};
    p->spin = nthreads > cores
                  ? 0
                  : 2000; /* some 20 us; more threads than cores had better sleep at once */
    p->thread = base_malloc(base_mul((size_t)nthreads, sizeof *p->thread));
    pthread_mutex_init(&p->run, NULL);
    pthread_mutex_init(&p->lock, NULL);
    pthread_cond_init(&p->wake, NULL);
    pthread_cond_init(&p->done, NULL);
    while (p->nworkers < nthreads - 1) {
        /* fewer threads, same results */
        if (pthread_create(&p->thread[p->nworkers], NULL, worker, p) != 0) break;
        p->nworkers++;
    }
    return p;
}

void pool_free(Pool *p) {
    if (!p) return;
    pthread_mutex_lock(&p->lock);
    atomic_store(&p->quit, true);
    pthread_cond_broadcast(&p->wake);
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->nworkers; i++) pthread_join(p->thread[i], NULL);
    pthread_cond_destroy(&p->wake);
    pthread_cond_destroy(&p->done);
    pthread_mutex_destroy(&p->lock);
    pthread_mutex_destroy(&p->run);
    free(p->thread);
    free(p);
    kernel_thread_cleanup(); /* the caller took part */
}

int pool_threads(const Pool *p) { return p->nworkers + 1; }

static void open_loop(Pool *p, int64_t n, void (*fn)(void *arg, int64_t i), void *arg) {
    pthread_mutex_lock(&p->lock);
    p->fn = fn;
    p->arg = arg;
    p->n = n;
    atomic_store_explicit(&p->next, 0, memory_order_relaxed);
    p->open = true;
    atomic_fetch_add(&p->round, 1);
    if (p->sleeping > 0) {
        if (n > 2) pthread_cond_broadcast(&p->wake);
        else pthread_cond_signal(&p->wake);
    }
    pthread_mutex_unlock(&p->lock);
}

/* Closes the loop to late workers and waits for those inside. */
static void close_loop(Pool *p) {
    pthread_mutex_lock(&p->lock);
    p->open = false;
    pthread_mutex_unlock(&p->lock);
    for (int i = 0; i < p->spin && atomic_load_explicit(&p->active, memory_order_acquire) > 0; i++)
        cpu_pause();
    pthread_mutex_lock(&p->lock);
    while (atomic_load(&p->active) > 0) pthread_cond_wait(&p->done, &p->lock);
    pthread_mutex_unlock(&p->lock);
}

void pool_run(Pool *p, int64_t n, void (*fn)(void *arg, int64_t i), void *arg) {
    /* A pool that is busy with another thread's loop is no help either: run inline. */
    if (n <= 1 || in_task || p->nworkers == 0 || pthread_mutex_trylock(&p->run) != 0) {
        for (int64_t i = 0; i < n; i++) fn(arg, i);
        return;
    }
    open_loop(p, n, fn, arg);
    run_tasks(p, fn, arg, n);
    close_loop(p);
    pthread_mutex_unlock(&p->run);
}

enum { PIECE = 1 << 16 };
typedef struct {
    int64_t n;
    void (*fn)(void *arg, int64_t lo, int64_t hi);
    void *arg;
} Pieces;
static void one_piece(void *arg, int64_t i) {
    const Pieces *p = arg;
    int64_t lo = i * PIECE;
    p->fn(p->arg, lo, p->n - lo < PIECE ? p->n : lo + PIECE);
}
void pool_pieces(Pool *p, int64_t n, void (*fn)(void *arg, int64_t lo, int64_t hi), void *arg) {
    Pieces all = {n, fn, arg};
    if (n <= 0) return;
    if (!p || n <= PIECE) fn(arg, 0, n);
    else pool_run(p, (n + PIECE - 1) / PIECE, one_piece, &all);
}
