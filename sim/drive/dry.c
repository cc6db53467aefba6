/* The passes of a run on a device of sizes only: what they will need, from the very walk that the
 * run will make. The device counts arrays and operations; what ranks cost beside their numbers is
 * added step by step (books.c), what the work takes is priced (work.c). Nothing is read, computed
 * or recorded. */
#include "exec/books.h"
#include "drive/run.h"
#include "exec/reference.h"
#include <assert.h>
#include <string.h>

enum { BESIDE = 2 }; /* blocks that lie on a device in other orders, to be read or written */
static const int64_t MOST = (int64_t)1 << 40; /* enough is known of what needs more */

/* The tables of what is there. */
typedef struct Tables {
    Run *r;
    int64_t *of;        /* per value: bytes of its tables while it is there */
    int64_t live, most; /* of all of them; with those of a step */
    const Step *last;
} Tables;

static void update(Tables *t, int val) {
    const Exec *e = t->r->exec;
    const Store *s = exec_store(e, val);
    t->live -= t->of[val];
    t->of[val] = s->alive ? books_value(e->p->mesh->nranks, s->n) + books_buffers(s->n) : 0;
    t->live += t->of[val];
}
static void see(Tables *t, int64_t beside) {
    DeviceUse use = device_use(t->r->dev);
    if (t->live + beside > t->most) t->most = t->live + beside;
    t->r->stop = (int64_t)use.large > (t->r->follow ? t->r->follow : MOST);
}
static void tables_loaded(void *arg, int val) {
    update(arg, val);
    see(arg, 0);
}
static void tables_stepped(void *arg, const Step *s) {
    Tables *t = arg;
    const Exec *e = t->r->exec;
    int r[RULE_MAX_IN + 2], n = t->last ? step_reads(t->last, r) : 0;
    for (int k = 0; k < n; k++) update(t, r[k]); /* what the step before has dropped */
    update(t, s->out);
    int64_t in = s->nin ? exec_store(e, s->in[0])->n : 1;
    see(t, books_step(e->p, s, in, exec_store(e, s->out)->n));
    t->last = s;
}
static Tables *tables_new(Run *r) {
    Tables *t = ARENA_NEW(r->arena, Tables);
    *t = (Tables){.r = r, .of = ARENA_ARRAY(r->arena, int64_t, r->program->nv + 1)};
    return t;
}
static const Observer *const *dry_observers(Run *r, int *n) {
    const Observer **list = ARENA_ARRAY(r->arena, const Observer *, *n = 5);
    Observer *own = arena_alloc(r->arena, 3 * sizeof *own);
    work_observers(&r->eye, &own[0], &own[1]);
    own[2] = (Observer){.arg = r->tables, .loaded = tables_loaded, .stepped = tables_stepped};
    list[0] = &own[0];
    list[1] = &own[2];
    list[2] = observers_check(r);
    list[3] = observers_sides(r);
    list[4] = &own[1];
    return list;
}
static MemoryNeed memory_of(const Run *run, const Run *r) {
    DeviceUse use = device_use(r->dev);
    MemoryNeed need = {.large = (int64_t)use.large, .more = r->stop};
    need.records = books_records(run->program, run_iterations(run), run->plan->microbatches);
    need.peak = need.large + (int64_t)use.small + r->tables->most + need.records;
    need.sharded = r->peak_sharded + r->tables->most + need.records;
    need.device = r->exec->peak_bytes + BESIDE * r->exec->largest_bytes;
    if (need.peak > need.sharded) need.unsharded = r->peak_unsharded;
    return need;
}

RunNeed dry_run(Run *run) {
    assert(!run->dry && run->program &&
           run->unsharded); /* the passes are lowered, and none has run */
    Arena *tmp = arena_new();
    PipelineOptions o = *run->o;
    PipelineReport rep = {0};
    Progress compared = {0};
    o.progress = &compared;
    o.watch = NULL;
    run->work = work_new(run->arena, run->program);
    run->ref_work = work_new(run->arena, run->unsharded);
    Run r = *run;
    r.arena = tmp;
    r.d = diags_new(tmp);
    r.o = &o;
    r.rep = &rep;
    r.t = trace_new(tmp);
    r.dry = true;
    r.dev = device_dry();
    r.exec = exec_new(tmp, r.program, plan_executes_in(r.plan), NULL);
    r.exec->dev = r.dev;
    r.eye = (WorkEye){.e = r.exec,
                      .work = r.work,
                      .iterations = run_iterations(run),
                      .parts = r.plan->microbatches};
    r.tables = tables_new(&r);
    bool ran;
    r.look = dry_observers(&r, &r.n_look);
    passes_run(&r, &ran);
    RunNeed need = {.memory = memory_of(run, &r), .exact = r.need.exact, .compare = compared.done};
    need.all = r.work->total + r.ref_work->total + need.exact + need.compare;
    exec_free(r.exec);
    sides_free(r.sides);
    device_free(r.dev);
    arena_free(tmp);
    return need;
}
/* Values that are kept for their distances must not be what a run is refused or waits for. */
static void walk_keeping(Run *r) {
    const int64_t most = r->o->memory_limit ? r->o->memory_limit : memory_room(r->arena).bytes;
    const int64_t keeps = (int64_t)1 << 30;
    r->distances = r->o->distances && !r->o->ranks && !r->o->device && run_has_reference(r);
    if (r->distances) {
        r->need = dry_run(r);
        if (r->need.memory.peak <= keeps && dry_within(r->need.memory.peak, most)) return;
    }
    r->distances = false;
    r->need = dry_run(r);
}
/* What the run needs, and whether its products are held by projections: where nobody said, by how
 * much the first walk found to compute. */
static void walk_dry(Run *r) {
    bool can = !r->exec->narrow; /* roundings, added up, hide what a projection looks for */
    r->quick = can && r->o->check == CHECK_QUICK;
    walk_keeping(r);
    if (!can || r->o->check != CHECK_AUTO || r->work->flops <= CHECK_AUTO_GFLOP * 1e9) return;
    r->quick = true;
    walk_keeping(r);
}
void dry_estimate(Run *r) {
    r->exec = exec_new(r->arena, r->program, plan_executes_in(r->plan), NULL);
    if (r->o->ranks && !ranks_first(r->o->ranks)) return; /* it has its own parts only */
    r->unsharded = reference_program(r->arena, r->plan, r->whole, r->d, run_backward(r));
    walk_dry(r);
    MemoryNeed *need = &r->need.memory;
    if (!r->o->ranks) return;
    /* the parts of the processes here, beside what rank 0 is told */
    need->beside = need->sharded / r->mesh->nranks * ranks_beside(r->o->ranks);
    need->peak += need->beside;
}
double dry_hours(const RunNeed *need) { return need->all * 1e-9 / 3600; }
bool dry_within(int64_t bytes, int64_t room) { return bytes <= room - room / 16; }
