/* Who looks at the run of the ranks, in the order in which they look: progress, the check of every
 * value, the hunt for NaN, numbers for pictures, choices of routers, losses, values for files, a
 * test's own eye. None of them changes a value, but for the last. */
#include "drive/run.h"
#include "exec/busy.h"
#include "exec/routed.h"
#include "exec/sample.h"

/* ---- sources and checks ---- */
/* The sources of this micro-batch and training step, for the run and for its check. */
static void check_begun(void *arg, WalkInstance at) {
    Run *r = arg;
    r->src.step = r->pure.step = r->check->step = at.iteration;
    r->src.part = r->pure.part = r->check->part = at.part;
    reference_set_step(&r->model->g, at.iteration);
}
static void check_loaded(void *arg, int val) {
    Run *r = arg;
    check_source(r->check, val);
}
static void check_stepped(void *arg, const Step *s) {
    Run *r = arg;
    check_step(r->check, s);
}
static void check_stopped(void *arg, const Step *s) {
    Run *r = arg;
    check_stuck(r->check, s, r->exec->stuck ? r->exec->stuck : "the step cannot be run");
}

/* ---- numbers ---- */
static void nonfinite_stepped(void *arg, const Step *s) { nonfinite_find(arg, s); }
static void numbers_stepped(void *arg, const Step *s) {
    Run *r = arg;
    bool legal = r->o->rank >= 0 && r->o->rank < r->mesh->nranks;
    numbers_keep(r, s);
    if (r->o->numbers) sample_step(r->t, r->exec, s, legal ? r->o->rank : 0);
    routed_step(r->t, r->exec, s); /* the model of time and `comms` ask how many rows there were */
}
static void losses_ended(void *arg, WalkInstance at) {
    Run *r = arg;
    if (r->losses)
        r->losses[at.iteration] +=
            numbers_first(r, program_loss(r->program, stages_way(r->assign->stages, at.part)));
}
/* ---- what routers chose ---- */
static void routes_begun(void *arg, WalkInstance at) {
    Run *r = arg;
    r->at = at;
}
static void routes_settled(void *arg, const Step *s) {
    const Run *r = arg;
    if (r->pure.routes) routes_keep(r->pure.routes, r->exec, s, r->at);
}
/* Those of bends: what the step read is still there. */
static void sides_stepped(void *arg, const Step *s) {
    const Run *r = arg;
    if (r->sides) sides_keep(r->sides, r->exec, s, r->at);
}
static void outside_iterated(void *arg, int64_t iteration) {
    outside_ranks_stepped(arg, iteration);
}

/* ---- a device's clock ---- */
static void busy_stepped(void *arg, const Step *s) {
    const Run *r = arg;
    if (r->busy) busy_step(r->busy, r->exec, s);
}

/* ---- a test's eye ---- */
static void watch(const Run *r, const Step *s, bool checked) {
    if (r->o->watch) r->o->watch(r->o->watch_arg, r->exec, s, checked);
}
static void watch_stepped(void *arg, const Step *s) { watch(arg, s, false); }
static void watch_settled(void *arg, const Step *s) { watch(arg, s, true); }

const Observer *observers_check(Run *r) {
    Observer *o = ARENA_NEW(r->arena, Observer);
    *o = (Observer){.arg = r,
                    .begun = check_begun,
                    .loaded = check_loaded,
                    .stepped = check_stepped,
                    .stuck = check_stopped};
    return o;
}
const Observer *observers_sides(Run *r) {
    Observer *o = ARENA_NEW(r->arena, Observer);
    *o = (Observer){.arg = r, .stepped = sides_stepped};
    return o;
}
static void add(Run *r, const Observer **list, int *n, Observer one) {
    if (!one.arg) one.arg = r;
    list[(*n)++] = arena_memdup(r->arena, &one, sizeof one);
}
const Observer *const *observers_of(Run *r, int *n) {
    Observer ran, seen;
    work_observers(&r->eye, &ran, &seen);
    const Observer all[] = {
        ran,
        {.stepped = busy_stepped},
        {.stepped = watch_stepped, .settled = watch_settled}, /* what it spoils is looked at */
        *observers_check(r),
        {.stepped = nonfinite_stepped},
        {.stepped = numbers_stepped},
        {.begun = routes_begun, .settled = routes_settled},
        *observers_sides(r),
        {.ended = losses_ended, .iterated = outside_iterated},
        seen,
    };
    const int most = sizeof all / sizeof all[0];
    const Observer **list = ARENA_ARRAY(r->arena, const Observer *, most);
    *n = 0;
    for (int i = 0; i < most; i++) add(r, list, n, all[i]);
    return list;
}
