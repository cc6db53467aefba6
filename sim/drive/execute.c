/* A run on this machine: its memory, its workers, its files; the passes are those of passes.c. */
#include "drive/run.h"
#include "kernel/gemm.h"
#include <malloc.h>

static void report(Run *r) {
    r->rep->peak_bytes = r->exec->peak_bytes;
    r->rep->flops_distinct = r->exec->flops;
    r->rep->gemm = kernel_isa();
    r->rep->fault_acted = r->exec->edited;
    r->rep->unobservable = r->check->unobservable;
    *ARENA_PUSH(r->arena, r->check->unobservable_text, r->check->n_unobservable,
                r->check->cap_unobservable) = NULL; /* ends the list */
    r->rep->unobservable_text = r->check->unobservable_text;
}
static bool execute(Run *r) {
    r->weights = weights_open(r->arena, r->d, r->plan, r->whole);
    bool open = r->weights != NULL;
    uint64_t files = open && r->o->ranks ? weights_fingerprint(r->weights) : 0;
    if (r->o->ranks && !ranks_meet(r->o->ranks, r->d, open, files, RANKS_FILES)) open = false;
    if (!open) {
        weights_close(r->weights);
        return false;
    }
    const Ranks *others = r->o->ranks && !ranks_first(r->o->ranks) ? r->o->ranks : NULL;
    r->pool = pool_new(others ? ranks_threads(others, r->o->threads) : r->o->threads);
    r->dev = device_host((size_t)r->need.memory.large);
    bool ran, compared;
    r->eye = (WorkEye){.e = r->exec,
                       .work = r->work,
                       .progress = r->o->progress,
                       .iterations = run_iterations(r),
                       .parts = r->plan->microbatches};
    r->look = observers_of(r, &r->n_look);
    compared = passes_run(r, &ran);
    report(r);
    r->t->executed = ran;
    pool_free(r->pool);
    /* what could not be read again is not equivalent to anything */
    bool ok = compared && !weights_failed(r->weights);
    weights_close(r->weights);
    return ok;
}
bool execute_run(Run *r) {
    bool fits = real_fits(r) && outside_open(r) && limits_fit(r);
    if (r->o->ranks) fits = ranks_decide(r->o->ranks, fits) != 0; /* rank 0 knows what it needs */
    if (fits && r->o->ranks && r->o->device) /* each knows what it needs of its GPU */
        fits = ranks_decide(r->o->ranks, limits_fit_gpus(r)) != 0;
    /* memory that was touched once is kept: fresh pages cost more than the work in them */
    if (fits && (!r->o->ranks || ranks_first(r->o->ranks))) {
        mallopt(M_MMAP_MAX, 0);
        mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    }
    bool ok = fits && execute(r);
    if (r->exec) exec_free(r->exec); /* of a run that does not fit too */
    real_end(r);
    sides_free(r->sides);
    if (r->dev) device_free(r->dev);
    against_close(r->against);
    return ok;
}
