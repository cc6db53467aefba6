/* The passes of a run, with numbers or without: the ranks with whoever looks on, level 3, the
 * unsharded program and what is compared with it. */
#include "drive/distance.h"
#include "drive/run.h"
#include "exec/busy.h"
#include "exec/narrow.h"
#include <assert.h>
#include <string.h>

/* Runs the ranks, with everybody who looks on. False if something could not be loaded. */
static bool iterate(Run *r) {
    int64_t steps = run_iterations(r);
    if (r->program->loss >= 0) r->losses = ARENA_ARRAY(r->arena, double, steps);
    r->rep->n_losses = r->model->g.nn_model ? steps : 0;
    r->rep->losses = r->losses;
    real_begin(r);
    if (r->real) r->look = real_observers(r, r->look, &r->n_look);
    Walk walk = {.e = real_exec(r),
                 .beside = real_beside(r),
                 .iterations = steps,
                 .parts = r->plan->microbatches,
                 .load_first = true,
                 .observers = r->look,
                 .n = r->n_look,
                 .stop = &r->stop};
    walk.tasks = tasks_new(r->program, r->arena);
    if (r->dry && !walk.tasks) walk.parts = work_turns(walk.parts);
    WalkEnd end = walk_run(&walk);
    real_walked(r, end);
    if (r->busy) busy_record(r->busy, r->t);
    r->rep->seconds_sharded = walk.seconds_run;
    r->rep->seconds_loaded = walk.seconds_loaded;
    r->rep->seconds_check = walk.seconds_observed;
    return end == WALK_DONE || end == WALK_STUCK;
}
/* The unsharded run once more, on numbers that are off by a share or in the ranks' dtype; nobody
 * could know of it before, so no share of the work. */
static Reference *again(const Run *r, FullSource src) {
    src.replay.always = true;
    src.replay.t = NULL; /* what was taken over, and what was not */
    src.progress = NULL;
    src.eye = NULL;
    src.step_done = NULL;
    return reference_run(r->arena, r->unsharded, r->whole, &src, run_iterations(r),
                         run_keeps_whole(r));
}
static Reference *nudged_run(void *arg, double share) {
    const Run *r = arg;
    FullSource src = r->pure;
    src.nudge = share;
    return again(r, src);
}
static Reference *run_in(const Run *r, Dtype numbers) {
    FullSource src = r->pure;
    src.numbers = numbers;
    return again(r, src);
}
static Reference *alike_run(void *arg) {
    const Run *r = arg;
    return run_in(r, r->exec->numbers);
}
static Reference *sides_run(void *arg) {
    Run *r = arg;
    FullSource src = r->pure;
    src.sides = r->sides;
    src.taken = &r->taken;
    return r->sides ? again(r, src) : NULL;
}
static void end_to_end(Run *r, const Reference *ref) {
    EndToEnd e = {.check = r->check,
                  .ref = ref,
                  .nudged = nudged_run,
                  .alike = alike_run,
                  .with_sides = sides_run,
                  .arg = r,
                  .measure = r->o->sensitivity,
                  .told = r->nonfinite,
                  .losses = r->losses,
                  .steps = run_iterations(r),
                  .parts = r->plan->microbatches,
                  .progress = r->o->progress};
    if (r->exec->stuck) return;
    endtoend_check(&e, r->rep);
    if (r->rep->sides_decided) sides_note(r);
    if (r->rep->nothing_left) nothing_left_note(r);
    if (r->distances) distance_record(&e);
}
/* What the ranks load, and what the check holds the run against. */
static void sources(Run *r) {
    FullSource *src = &r->src, *pure = &r->pure;
    *src = (FullSource){.w = r->weights,
                        .d = r->d,
                        .g = &r->model->g,
                        .dev = r->dev,
                        .pool = r->pool,
                        .whole = &r->whole->g,
                        .numbers = DT_F64,
                        .narrow = narrow_sources(r->exec, r->arena),
                        .parts = r->plan->microbatches};
    *pure = *src;
    if (plan_local_means(r->plan)) src->local_mean = r->program;
    pure->routes =
        run_has_reference(r) && !r->dry ? routes_new(r->arena, r->plan->microbatches) : NULL;
    r->sides = run_has_reference(r) && run_backward(r)
                   ? sides_new(r->arena, r->dev, r->plan->microbatches)
                   : NULL;
    pure->replay = (RoutesRule){.share = endtoend_rounding(r->exec->numbers),
                                .always = !strcmp(r->plan->moe.routing, "replayed"),
                                .t = r->t};
    pure->progress = r->dry ? NULL : r->o->progress;
    r->ref_eye = (WorkEye){.work = r->ref_work, .progress = pure->progress, .parts = 1};
    r->ref_eye.iterations = r->eye.iterations;
    pure->eye = &r->ref_eye;
    if (r->against && !r->dry) pure->step_done = outside_reference_stepped, pure->step_arg = r;
    pure->exact_work = r->need.exact;
}
static int64_t room_now(Arena *tmp) { return memory_room(tmp).bytes; }
static void prepare(Run *r) {
    r->exec->pool = r->pool;
    r->exec->host = r->dev;
    r->exec->dev = r->on ? r->on : r->o->device && !r->dry ? r->o->device : r->dev;
    if (r->o->device) { /* whatever lies here was computed there, or will be */
        r->dev->own_order = r->o->device->own_order;
        r->dev->halves = r->dry && !r->o->ranks && r->o->device->halves;
    }
    /* processes say themselves what they took, waiting for their GPU included (exec/took.h) */
    r->busy = r->o->ranks ? NULL : busy_new(r->arena, r->exec);
    sources(r);
    r->exec->full = reference_full;
    r->exec->part = reference_part;
    r->exec->full_arg = &r->src;
    r->exec->keep_all = run_keeps_all(r);
    r->check = check_new(r->arena, r->exec, r->t);
    r->check->full_arg = &r->pure;
    r->check->room = room_now;
    r->check->quick = r->rep->quick = r->quick;
    r->check->each = run_has_reference(r);
    r->check->seed = r->plan->seed;
    if (r->quick) r->check->piece = CHECK_PIECE_QUICK;
    if (r->o->check_piece) r->check->piece = r->o->check_piece;
    if (r->src.local_mean)
        r->check->weights_cause = "the plan's `normalise: local_mean`: each rank divides by the "
                                  "count of its own tokens, so tokens of short blocks weigh more";
}
/* Level 3, up to the gradients. */
static void exact(Run *r) {
    if (!r->o->exact || r->exec->stuck) return;
    if (r->model->g.nn_model)
        diag_note(r->d, "N0007", diag_nowhere, NULL,
                  "--exact ends with the gradients of the first step: what the optimizer does "
                  "was checked by levels 1 and 2");
    exact_check(r->check, r->plan, r->model, &r->pure, r->o->exact);
}
static void exact_pass(Run *r) {
    DeviceWork before = device_work(r->dev);
    exact(r);
    if (r->dry) r->need.exact = work_exact(before, device_work(r->dev));
}
/* The unsharded run and what is compared with it. False if it could not be made. */
static bool unsharded(Run *r) {
    int64_t steps = run_iterations(r);
    Reference *ref =
        reference_run(r->arena, r->unsharded, r->whole, &r->pure, steps, run_keeps_whole(r));
    progress_phase(r->o->progress, "comparison");
    if (!ref) return false;
    if (!r->dry) ties_notes(r);
    r->peak_unsharded = ref->exec->peak_bytes;
    r->rep->seconds_reference = ref->seconds;
    end_to_end(r, ref);
    Reference *narrow = outside_wants_narrow(r) ? run_in(r, DT_BF16) : NULL;
    if (!r->dry) outside_finish(r, ref, narrow);
    reference_free(narrow);
    reference_free(ref);
    return true;
}
void passes_ranks(Run *r) {
    assert(r->dry && r->on);
    prepare(r);
    iterate(r);
}
bool passes_run(Run *r, bool *ran) {
    assert(r->dev && r->dev->sizes_only == r->dry);
    prepare(r);
    progress_total(r->o->progress, r->need.all);
    progress_phase(r->o->progress, "ranks and check");
    *ran = iterate(r);
    DeviceUse use = device_use(r->dev);
    r->peak_sharded = (int64_t)(use.large + use.small);
    if (!*ran) return false;
    if (!real_checks(r)) return true;
    if (!r->dry) beyond_note(r);
    exact_pass(r);
    r->rep->end_to_end = run_has_reference(r);
    return !r->rep->end_to_end || unsharded(r);
}
