/* The lowered program on all ranks with its checks, then the unsharded one and what is compared
 * with it. */
#include "drive/run.h"
#include "kernel/gemm.h"
#include <malloc.h>
#include <string.h>

/* Runs the ranks, with everybody who looks on. False if something could not be loaded. */
static bool iterate(Run *r) {
    int64_t steps = run_iterations(r);
    if (r->program->loss >= 0) r->losses = ARENA_ARRAY(r->arena, double, steps);
    r->rep->n_losses = r->model->g.nn_model ? steps : 0;
    r->rep->losses = r->losses;
    Walk walk = {
        .e = r->exec, .iterations = steps, .parts = r->plan->microbatches, .load_first = true};
    walk.observers = observers_of(r, &walk.n);
    WalkEnd end = walk_run(&walk);
    r->rep->seconds_sharded = walk.seconds_run;
    r->rep->seconds_check = walk.seconds_observed;
    return end != WALK_FAILED;
}
/* The unsharded run once more, on numbers that are off by a share; nobody could know of it before,
 * so no share of the work. */
static Reference *nudged_run(void *arg, double share) {
    const Run *r = arg;
    FullSource src = r->pure;
    src.nudge = share;
    src.progress = NULL;
    src.step_done = NULL;
    bool backward = run_backward(r);
    return reference_run(r->arena, r->plan, r->whole, r->weights, r->d, &src, backward, backward);
}
static void end_to_end(Run *r, const Reference *ref) {
    EndToEnd e = {.check = r->check,
                  .ref = ref,
                  .nudged = nudged_run,
                  .arg = r,
                  .measure = r->o->sensitivity,
                  .losses = r->losses,
                  .steps = run_iterations(r),
                  .parts = r->plan->microbatches,
                  .progress = r->o->progress,
                  .work = r->work.compare};
    if (!r->exec->stuck) endtoend_check(&e, r->rep);
}
/* What the ranks load, and what the check holds the run against. */
static void sources(Run *r) {
    FullSource *src = &r->src, *pure = &r->pure;
    *src = (FullSource){.w = r->weights,
                        .d = r->d,
                        .g = &r->model->g,
                        .pool = r->pool,
                        .data_seed = r->plan->seed,
                        .whole = &r->whole->g,
                        .parts = r->plan->microbatches};
    *pure = *src;
    if (r->plan->normalise && !strcmp(r->plan->normalise, "local_mean"))
        src->local_mean = r->program;
    pure->progress = r->o->progress;
    if (r->against) pure->step_done = outside_reference_stepped, pure->step_arg = r;
    pure->exact_work = limits_exact_work(r);
    pure->reference_work = r->work.reference;
}
static void prepare(Run *r) {
    /* memory that was touched once is kept: fresh pages cost more than the work in them */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    r->pool = pool_new(r->o->threads);
    r->exec->pool = r->pool;
    sources(r);
    r->exec->full = reference_full;
    r->exec->full_arg = &r->src;
    r->exec->keep_all = run_keeps_all(r);
    r->check = check_new(r->arena, r->exec, r->t);
    r->check->full_arg = &r->pure;
    if (r->src.local_mean)
        r->check->weights_cause = "the plan's `normalise: local_mean`: each rank divides by the "
                                  "count of its own tokens, so tokens of short blocks weigh more";
    progress_total(r->o->progress, r->work.run + r->pure.exact_work + r->pure.reference_work +
                                       limits_compare_work(r));
}
/* Level 3, where the program has no backward pass. */
static void exact(Run *r) {
    if (!r->o->exact || r->exec->stuck) return;
    if (run_backward(r))
        diag_note(r->d, "N0007", (Loc){0}, NULL,
                  "--exact covers forward programs in this version; the backward pass was "
                  "checked by levels 1 and 2");
    else reference_exact(r->check, r->plan, r->model, &r->pure, r->o->exact);
}
/* The unsharded run and what is compared with it. False if it could not be made. */
static bool unsharded(Run *r) {
    bool backward = run_backward(r), keep = r->o->against || r->o->save_values || backward;
    Reference *ref =
        reference_run(r->arena, r->plan, r->whole, r->weights, r->d, &r->pure, backward, keep);
    progress_phase(r->o->progress, "comparison");
    if (!ref) return false;
    r->rep->seconds_reference = ref->seconds;
    end_to_end(r, ref);
    outside_finish(r, ref);
    reference_free(ref);
    return true;
}
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
    if (!r->weights) return false;
    prepare(r);
    progress_phase(r->o->progress, "ranks and check");
    bool ok = iterate(r), compared = false;
    if (ok) {
        exact(r);
        compared = unsharded(r);
    }
    report(r);
    r->t->executed = ok;
    exec_free(r->exec);
    pool_free(r->pool);
    /* what could not be read again is not equivalent to anything */
    ok = compared && !weights_failed(r->weights);
    weights_close(r->weights);
    return ok;
}
bool execute_run(Run *r) {
    bool ok = outside_open(r) && limits_fit(r) && execute(r);
    against_close(r->against);
    return ok;
}
