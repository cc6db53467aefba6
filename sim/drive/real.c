/* A run whose ranks are processes: each walks the program with its own rank's blocks; after every
 * load and every step it says to rank 0 what its rank holds. Rank 0 keeps an executor of all ranks
 * beside its own, made from what it is told, and whoever looks at a run looks at that. In a quick
 * check large blocks stay where they are and answer questions (exec/far.h). It refuses to check
 * anything: the observers do, as in a virtual run. */
#include "drive/run.h"
#include "engine/nobody.h"
#include "exec/apart.h"
#include "exec/wire_own.h"
#include "exec/wire_told.h"
#include <assert.h>

struct Real {
    Ranks *ranks;
    Engine *engine;
    WireOwn *wire;
    WireTold *told;  /* rank 0; else NULL */
    Far *far;        /* blocks stay with their ranks; NULL: all are told */
    bool clock_goes; /* of the walk that nobody is told of */
    Exec *own;
    Pool *pool; /* rank 0: for its own steps, while the other processes make theirs */
};

Exec *real_exec(const Run *r) { return r->real ? r->real->own : r->exec; }
Exec *real_beside(const Run *r) { return r->real && r->real->told ? r->exec : NULL; }
bool real_checks(const Run *r) { return !r->real || r->real->told; }

/* ---- what is told ---- */
static void told_begun(void *arg, WalkInstance at) {
    Run *r = arg;
    r->src.step = at.iteration;
    r->src.part = at.part;
    reference_set_step(&r->model->g, at.iteration);
}
static void tell(Run *r, int val) { wire_tell(r->real->told, r->real->engine, r->real->own, val); }
static void told_loaded(void *arg, int val) {
    Run *r = arg;
    tell(r, val);
    if (r->real->told) exec_load(r->exec, val);
    if (r->real->far) far_open(r->real->far);
}
static void told_stepped(void *arg, const Step *s) {
    Run *r = arg;
    took_step(wire_own_tooks(r->real->wire), s->id);
    tell(r, s->out);
    if (r->real->told) exec_step(r->exec, s);
    if (r->real->far) far_open(r->real->far);
}
/* In the last micro-batch (of its way through a pipeline) a gradient is the sum of all; that need
 * not be the one that is run. */
static void told_summed(void *arg, const Step *s) {
    Run *r = arg;
    const Real *x = r->real;
    const Stages *st = r->assign->stages;
    bool half = st && st->ways == 2 && !stages_way_of(st, s->stage);
    int64_t now = x->own->now, last = r->plan->microbatches / (half ? 2 : 1) - 1;
    exec_turn(x->own, last);
    tell(r, s->out);
    exec_turn(x->own, now);
    if (!x->told) return;
    exec_turn(r->exec, last);
    wire_told_again(r->exec, s->out);
    exec_turn(r->exec, now);
}
static void told_stuck(void *arg, const Step *s) {
    Run *r = arg;
    (void)s;
    r->exec->stuck = r->real->own->stuck;
}
/* When everybody has looked. */
static void seen_stepped(void *arg, const Step *s) {
    const Run *r = arg;
    (void)s;
    if (r->real->far) far_close(r->real->far);
}
static void seen_loaded(void *arg, int val) {
    const Run *r = arg;
    (void)val;
    if (r->real->far) far_close(r->real->far);
    took_begin(wire_own_tooks(r->real->wire));
}
static void seen_settled(void *arg, const Step *s) {
    const Run *r = arg;
    (void)s;
    took_begin(wire_own_tooks(r->real->wire));
}
const Observer *const *real_observers(Run *r, const Observer *const *look, int *n) {
    assert(r->real && *n >= 0);
    const Observer **list = ARENA_ARRAY(r->arena, const Observer *, *n + 2);
    Observer *told = ARENA_NEW(r->arena, Observer), *last = ARENA_NEW(r->arena, Observer);
    *told = (Observer){.arg = r,
                       .begun = told_begun,
                       .loaded = told_loaded,
                       .stepped = told_stepped,
                       .summed = told_summed,
                       .stuck = told_stuck};
    *last = (Observer){
        .arg = r, .loaded = seen_loaded, .stepped = seen_stepped, .settled = seen_settled};
    int others = r->real->told ? *n : 0;
    list[0] = told;
    for (int i = 0; i < others; i++) list[i + 1] = look[i];
    list[others + 1] = last;
    *n = others + 2;
    return list;
}

/* ---- begin and end ---- */
bool real_fits(Run *r) {
    const Ranks *all = r->o->ranks;
    if (!all || ranks_count(all) == r->mesh->nranks) return true;
    diag_error(r->d, "E0603", r->plan->mesh_loc,
               arena_printf(r->arena,
                            "start %lld (mpirun -n, torchrun --nproc-per-node), or take "
                            "another mesh (--set)",
                            (long long)r->mesh->nranks),
               "%lld process%s for a mesh of %lld ranks", (long long)ranks_count(all),
               ranks_count(all) == 1 ? "" : "es", (long long)r->mesh->nranks);
    return false;
}
/* Do blocks stay with their ranks? Not where all of their numbers are wanted later, or shown. */
static bool stays(const Run *r) {
    const PipelineOptions *o = r->o;
    return r->quick && !run_has_reference(r) && !run_keeps_all(r) && !r->exec->narrow &&
           !o->exact && !o->numbers && !o->watch;
}
/* All ranks do as rank 0 does, which knows how the check is made. */
static void begin_far(Run *r) {
    Real *x = r->real;
    bool first = ranks_first(x->ranks);
    if (!x->engine->least(x->engine, first ? stays(r) : 1)) return;
    x->far = x->own->far = far_new(x->engine, x->own);
    apart_answers(r->check, x->far);
    if (!first) return;
    r->exec->far = x->far;
    r->exec->dev = far_device(x->far);
}
/* In the dry walk a rank of a GPU's has its own part of what moves and is read: as much as there
 * will be, and nothing of it. */
static bool sized_part(void *arg, int tensor, Dtype t, const Region *of, void *out) {
    (void)arg, (void)tensor, (void)t, (void)of, (void)out;
    return true;
}
static void begin_sizes(Run *r) {
    const Engine *e = ranks_engine(r->o->ranks);
    Real *x = r->real = ARENA_NEW(r->arena, Real);
    *x = (Real){.ranks = r->o->ranks, .engine = ARENA_NEW(r->arena, Engine), .own = r->exec};
    *x->engine = engine_nobody(e->rank, e->ranks);
    x->wire = wire_own_new(x->engine, r->program, r->exec->dev, ranks_engine_sums(x->ranks));
    x->own->part = sized_part;
    x->own->wire = wire_own(x->wire);
    x->own->keep_all = false;
}
void real_begin(Run *r) {
    if (!r->o->ranks) return;
    if (r->dry) {
        if (r->on) begin_sizes(r);
        return;
    }
    Real *x = r->real = ARENA_NEW(r->arena, Real);
    *x = (Real){.ranks = r->o->ranks, .engine = ranks_engine(r->o->ranks), .own = r->exec};
    assert(x->engine->ranks == r->mesh->nranks); /* real_fits has said so */
    x->engine->ungroup(x->engine);
    x->wire = wire_own_new(x->engine, r->program, r->exec->dev, ranks_engine_sums(x->ranks));
    if (ranks_first(x->ranks)) {
        x->pool = pool_new(ranks_threads(x->ranks, r->o->threads));
        x->own = exec_new(r->arena, r->program, plan_executes_in(r->plan), x->pool);
        x->own->host = r->exec->host;
        x->own->dev = r->exec->dev;
        x->own->full_arg = r->exec->full_arg;
        if (x->own->dev != r->exec->host) r->exec->kernels = x->own->dev;
        r->exec->dev = r->exec->host; /* what all ranks hold has no room on the GPU of one */
    }
    begin_far(r);
    if (ranks_first(x->ranks)) {
        x->told = wire_told_new(r->mesh->nranks, r->exec->dev, x->far);
        r->exec->wire = wire_told(x->told);
    }
    x->own->part = reference_part;
    x->own->wire = wire_own(x->wire);
    x->own->keep_all = false;
    ranks_run(x->ranks, r->program);
}
/* Something could not be loaded on some rank: rank 0 says what. */
static void say_unread(Run *r) {
    int64_t rank = wire_own_stuck(r->real->wire);
    if (!r->real->told || diags_errors(r->d)) return;
    diag_error(r->d, "E0606", diag_nowhere, "all processes must be able to read the same files",
               "rank %lld could not read its part of an input or parameter, which rank 0 can",
               (long long)rank);
}
/* ---- once more, as a program that nobody checks ---- */
static void clock_begun(void *arg, WalkInstance at) {
    told_begun(arg, (WalkInstance){run_iterations(arg) - 1, at.part});
}
/* All ranks are ready for the first step. */
static void clock_loaded(void *arg, int val) {
    const Run *r = arg;
    Device *dev = r->real->own->dev;
    (void)val;
    if (r->real->clock_goes) return;
    r->real->engine->least(r->real->engine, 0);
    dev->step(dev, DEVICE_FIRST_STEP);
}
static void clock_stepped(void *arg, const Step *s) {
    const Run *r = arg;
    (void)s;
    r->real->clock_goes = true;
}
/* Where moves go on by themselves a step is only asked for: in one more training step, or the same
 * pass, nobody is told, nobody waits for a step of another rank, and the devices' clocks say when
 * each was made. Its numbers are nobody's: it begins where the run has ended. */
static void walk_clocked(Run *r) {
    Real *x = r->real;
    Device *dev = x->own->dev;
    const bool can = wire_own_goes_on(x->wire) && dev->step && !r->exec->edited;
    if (!x->engine->least(x->engine, can)) return;
    const Observer o = {
        .arg = r, .begun = clock_begun, .loaded = clock_loaded, .stepped = clock_stepped};
    const Observer *list[] = {&o};
    Far *far = x->own->far;
    Walk walk = {.e = x->own,
                 .iterations = 1,
                 .parts = r->plan->microbatches,
                 .load_first = true,
                 .observers = list,
                 .n = 1,
                 .tasks = tasks_new(r->program, r->arena)};
    x->own->far = NULL;
    wire_own_alone(x->wire, true);
    WalkEnd end = walk_run(&walk);
    dev->step(dev, DEVICE_NO_STEP);
    wire_own_alone(x->wire, false);
    x->own->far = far;
    if (end == WALK_DONE) took_clocked(wire_own_tooks(x->wire), dev);
}
void real_walked(Run *r, WalkEnd end) {
    Real *x = r->real;
    if (x && r->dry && end == WALK_DONE) walk_clocked(r);
    if (!x || r->dry) return;
    bool edited = x->engine->least(x->engine, !x->own->edited) == 0;
    r->exec->edited |= edited;
    r->exec->flops = x->own->flops;
    if (end == WALK_DONE) walk_clocked(r);
    if (end == WALK_FAILED) say_unread(r);
    else took_record(wire_own_tooks(x->wire), r->t);
    ranks_run(x->ranks, NULL);
}
void real_end(Run *r) {
    Real *x = r->real;
    if (!x) return;
    if (x->own != r->exec) {
        exec_free(x->own);
        pool_free(x->pool);
    }
    r->exec->wire = x->own->wire = wire_virtual();
    wire_own_free(x->wire);
    wire_told_free(x->told);
    far_free(x->far);
}
