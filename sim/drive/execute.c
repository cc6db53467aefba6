/* The lowered program on all ranks with its checks, then the unsharded one and what is compared
 * with it. */
#include "drive/run.h"
#include "base/clock.h"
#include "exec/sample.h"
#include "kernel/gemm.h"
#include <malloc.h>
#include <math.h>
#include <string.h>

/* An input or parameter, through the plan's own data path, against its source. */
static bool load_source(Run *r, int v) {
    double t0 = clock_seconds();
    if (!exec_load(r->exec, v)) return false;
    r->rep->seconds_sharded += clock_seconds() - t0;
    progress_add(r->o->progress, r->work.load[v]);
    t0 = clock_seconds();
    check_source(r->check, v);
    r->rep->seconds_check += clock_seconds() - t0;
    progress_add(r->o->progress, r->work.load_check[v]);
    return true;
}
/* What a micro-batch starts from and does not have yet. Large models wait with a weight until a
 * step reads it. */
static bool load_sources(Run *r) {
    const Program *p = r->program;
    for (int v = 0; v < p->nv; v++) {
        if (p->val[v].step >= 0 || r->exec->store[v].alive) continue;
        bool late = p->val[v].kind == KIND_PARAM && !r->model->g.nn_model && r->exec->last[v] >= 0;
        if (late && r->exec->live_bytes > (int64_t)3 << 30) continue;
        if (!load_source(r, v)) return false;
    }
    return true;
}
static bool load_read(Run *r, const Step *s) {
    int v[RULE_MAX_IN + 2], n = step_reads(s, v);
    for (int k = 0; k < n; k++)
        if (!r->exec->store[v[k]].alive && r->program->val[v[k]].step < 0 && !load_source(r, v[k]))
            return false;
    return true;
}
static bool step_all(Run *r, int64_t part, int64_t parts) {
    const Program *p = r->program;
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (part + 1 < parts && exec_deferred(r->exec, s)) continue;
        if (!load_read(r, s)) return false;
        double t0 = clock_seconds();
        int before = diags_errors(r->d);
        if (!exec_step(r->exec, s)) {
            if (diags_errors(r->d) > before) return false;
            check_stuck(r->check, s, r->exec->stuck ? r->exec->stuck : "the step cannot be run");
            return true;
        }
        double t1 = clock_seconds();
        progress_add(r->o->progress, r->work.step[i]);
        if (r->o->watch) r->o->watch(r->o->watch_arg, r->exec, s, false);
        check_step(r->check, s);
        nonfinite_find(r, s);
        numbers_keep(r, s);
        if (r->o->numbers)
            sample_step(r->t, r->exec, s,
                        r->o->rank >= 0 && r->o->rank < r->mesh->nranks ? r->o->rank : 0);
        exec_accumulate(r->exec, s, part, parts);
        if (r->o->watch) r->o->watch(r->o->watch_arg, r->exec, s, true);
        r->rep->seconds_sharded += t1 - t0;
        r->rep->seconds_check += clock_seconds() - t1;
        exec_release(r->exec, s);
        progress_add(r->o->progress, r->work.check[i]);
    }
    return true;
}
static bool iterate(Run *r, FullSource *src, FullSource *pure) {
    int64_t steps = run_iterations(r);
    if (r->program->loss >= 0) r->losses = ARENA_ARRAY(r->arena, double, steps);
    r->rep->n_losses = r->model->g.nn_model ? steps : 0;
    r->rep->losses = r->losses;
    for (int64_t it = 0; it < steps; it++) {
        src->step = pure->step = r->check->step = it;
        reference_set_step(&r->model->g, it);
        for (int64_t part = 0; part < src->parts; part++) {
            src->part = pure->part = r->check->part = part;
            if (part) exec_drop_inputs(r->exec);
            if (!load_sources(r)) return false;
            if (!step_all(r, part, src->parts)) return false;
            if (r->exec->stuck) return true;
            if (!r->losses) continue;
            r->losses[it] += numbers_first(r, r->program->loss, 0);
        }
        if (!r->model->g.nn_model) continue;
        exec_next_iteration(r->exec);
        outside_ranks_stepped(r, it);
    }
    return true;
}
typedef struct {
    Run *r;
    const FullSource *pure;
} Ends;
/* The unsharded run once more, on numbers that are off by a share; nobody could know of it before,
 * so no share of the work. */
static Reference *nudged_run(void *arg, double share) {
    const Ends *e = arg;
    FullSource src = *e->pure;
    src.nudge = share;
    src.progress = NULL;
    src.step_done = NULL;
    const Run *r = e->r;
    bool backward = run_backward(r);
    return reference_run(r->arena, r->plan, r->whole, r->weights, r->d, &src, backward, backward);
}
static void end_to_end(Run *r, const Reference *ref, const FullSource *pure) {
    Ends ends = {r, pure};
    EndToEnd e = {.check = r->check,
                  .ref = ref,
                  .nudged = nudged_run,
                  .arg = &ends,
                  .measure = r->o->sensitivity,
                  .losses = r->losses,
                  .steps = run_iterations(r),
                  .parts = r->plan->microbatches,
                  .progress = r->o->progress,
                  .work = r->work.compare};
    if (!r->exec->stuck) endtoend_check(&e, r->rep);
}
/* What the ranks load, and what the check holds the run against. */
static void sources(Run *r, FullSource *src, FullSource *pure) {
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
static void prepare(Run *r, FullSource *src, FullSource *pure) {
    /* memory that was touched once is kept: fresh pages cost more than the work in them */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    r->pool = pool_new(r->o->threads);
    r->exec->pool = r->pool;
    sources(r, src, pure);
    r->exec->full = reference_full;
    r->exec->full_arg = src;
    r->exec->keep_all = run_keeps_all(r);
    r->check = check_new(r->arena, r->exec, r->t);
    r->check->full_arg = pure;
    if (src->local_mean)
        r->check->weights_cause = "the plan's `normalise: local_mean`: each rank divides by the "
                                  "count of its own tokens, so tokens of short blocks weigh more";
    progress_total(r->o->progress,
                   r->work.run + pure->exact_work + pure->reference_work + limits_compare_work(r));
}
/* Level 3, where the program has no backward pass. */
static void exact(Run *r, const FullSource *pure) {
    if (!r->o->exact || r->exec->stuck) return;
    if (run_backward(r))
        diag_note(r->d, "N0007", (Loc){0}, NULL,
                  "--exact covers forward programs in this version; the backward pass was "
                  "checked by levels 1 and 2");
    else reference_exact(r->check, r->plan, r->model, pure, r->o->exact);
}
/* The unsharded run and what is compared with it. False if it could not be made. */
static bool unsharded(Run *r, const FullSource *pure) {
    bool backward = run_backward(r), keep = r->o->against || r->o->save_values || backward;
    Reference *ref =
        reference_run(r->arena, r->plan, r->whole, r->weights, r->d, pure, backward, keep);
    progress_phase(r->o->progress, "comparison");
    if (!ref) return false;
    r->rep->seconds_reference = ref->seconds;
    end_to_end(r, ref, pure);
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
    FullSource src, pure;
    r->weights = weights_open(r->arena, r->d, r->plan, r->whole);
    if (!r->weights) return false;
    prepare(r, &src, &pure);
    progress_phase(r->o->progress, "ranks and check");
    bool ok = iterate(r, &src, &pure), compared = false;
    if (ok) {
        exact(r, &pure);
        compared = unsharded(r, &pure);
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
