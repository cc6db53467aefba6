/* The passes of a run on a device of sizes only: what they will need, from the very walk that the
 * run will make. The device counts arrays and operations; what ranks cost beside their numbers is
 * added step by step (books.c), what the work takes is priced (work.c). Nothing is read, computed
 * or recorded. */
#include "exec/books.h"
#include "drive/run.h"
#include "exec/device_gpu.h"
#include "exec/reference.h"
#include "kernel/pool.h"
#include <assert.h>
#include <math.h>
#include <string.h>

static const int64_t MOST = (int64_t)1 << 40; /* enough is known of what needs more */

/* What the layers take that the forward walk has not come to: one that is like another takes as
 * long. A run of days is told after its first layers, not when the walk has come so far. */
typedef struct {
    int n;         /* layers */
    int *like;     /* per layer: the first one with the same ops and sizes */
    double *takes; /* per layer: what it took; 0: not yet */
    int layer;     /* the walk is in; -1: before all */
    double from;   /* the work that was done when it came there */
    double all;    /* at least, with what is left; 0: not known yet */
} Ahead;
/* The tables of what is there. */
typedef struct Tables {
    Run *r;
    int64_t *of;        /* per value: bytes of its tables while it is there */
    int64_t live, most; /* of all of them; with those of a step */
    const Step *last;
    Ahead ahead;
} Tables;

/* ---- what is ahead ---- */
/* Do the nodes make the same of tensors of the same sizes? */
static bool same_node(const Graph *g, const GNode *x, const GNode *y) {
    const GTensor *a = &g->t[x->out], *b = &g->t[y->out];
    return x->op == y->op && x->nin == y->nin && a->nd == b->nd &&
           !memcmp(a->size, b->size, (size_t)a->nd * sizeof *a->size);
}
bool dry_same_layer(const Graph *g, int k, int l) {
    int x = 0, y = 0;
    for (;; x++, y++) {
        while (x < g->nn && g->node[x].layer != k) x++;
        while (y < g->nn && g->node[y].layer != l) y++;
        if (x >= g->nn || y >= g->nn) return x >= g->nn && y >= g->nn;
        if (!same_node(g, &g->node[x], &g->node[y])) return false;
    }
}
static Ahead ahead_new(const Run *r) {
    const Graph *g = r->program->graph;
    Ahead a = {.layer = -1};
    for (int i = 0; i < g->nn; i++)
        if (g->node[i].layer >= a.n) a.n = g->node[i].layer + 1;
    if (run_iterations(r) > 1 || r->assign->stages) a.n = 0; /* these go another way */
    a.like = ARENA_ARRAY(r->arena, int, a.n + 1);
    a.takes = ARENA_ARRAY(r->arena, double, a.n + 1);
    for (int l = 0; l < a.n; l++)
        for (a.like[l] = l > 0 && dry_same_layer(g, a.like[l - 1], l) ? a.like[l - 1] : 0;
             a.like[l] < l && !dry_same_layer(g, a.like[l], l);)
            a.like[l]++;
    return a;
}
static void look_ahead(Ahead *a, const Run *r, const Step *s) {
    const Program *p = r->program;
    const int producer = p->graph->t[p->val[s->out].tensor].producer;
    const int layer = producer < 0 ? -1 : p->graph->node[producer].layer;
    if (s->id >= p->n_forward || layer <= a->layer || layer >= a->n) return;
    const double now = r->work->total;
    if (a->layer >= 0) a->takes[a->layer] = now - a->from;
    a->layer = layer;
    a->from = now;
    double all = now;
    for (int l = layer; l < a->n; l++) all += a->takes[a->like[l]];
    a->all = all;
}
/* ---- tables ---- */

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
    /* of several iterations the limit is told as how many of them would do: all are counted */
    const double all = fmax(t->r->work->total, t->ahead.all);
    bool endless = all > RUN_MAX_HOURS * 3600e9 && run_iterations(t->r) == 1;
    t->r->stop = (int64_t)use.large > (t->r->follow ? t->r->follow : MOST) || endless;
}
static void tables_loaded(void *arg, int val) {
    update(arg, val);
    see(arg, 0);
}
static void tables_stepped(void *arg, const Step *s) {
    Tables *t = arg;
    const Exec *e = t->r->exec;
    look_ahead(&t->ahead, t->r, s);
    int r[RULE_MAX_IN + 2], n = t->last ? step_reads(t->last, r) : 0;
    for (int k = 0; k < n; k++) update(t, r[k]); /* what the step before has dropped */
    update(t, s->out);
    int64_t in = s->nin ? exec_store(e, s->in[0])->n : 1;
    see(t, books_step(e->p, s, in, exec_store(e, s->out)->n));
    t->last = s;
}
static Tables *tables_new(Run *r) {
    Tables *t = ARENA_NEW(r->arena, Tables);
    *t = (Tables){
        .r = r, .of = ARENA_ARRAY(r->arena, int64_t, r->program->nv + 1), .ahead = ahead_new(r)};
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
static int threads_of(const Run *run) { return run->o->ranks ? 1 : pool_would(run->o->threads); }
static MemoryNeed memory_of(const Run *run, const Run *r) {
    DeviceUse use = device_use(r->dev);
    MemoryNeed need = {.large = (int64_t)use.large, .more = r->stop};
    need.records = books_records(run->program, run_iterations(run), run->plan->microbatches);
    const int64_t beside = r->tables->most + need.records + (int64_t)use.scratch;
    need.peak = need.large + (int64_t)use.small + beside;
    need.sharded = r->peak_sharded + beside;
    if (need.peak > need.sharded) need.unsharded = r->peak_unsharded;
    return need;
}

/* A run with sizes only, beside the one that will be made. */
typedef struct {
    Run r;
    PipelineOptions o;
    PipelineReport rep;
    Progress compared;
} Dry;
static void dry_open(Dry *x, const Run *run) {
    assert(!run->dry && run->program); /* the passes are lowered, and none has run */
    Arena *tmp = arena_new();
    *x = (Dry){.r = *run, .o = *run->o};
    x->o.progress = &x->compared;
    x->o.watch = NULL;
    x->r.arena = tmp;
    x->r.d = diags_new(tmp);
    x->r.o = &x->o;
    x->r.rep = &x->rep;
    x->r.t = trace_new(tmp);
    x->r.dry = true;
    x->r.dev = device_dry(threads_of(run));
    x->r.exec = exec_new(tmp, run->program, plan_executes_in(run->plan), NULL);
    x->r.exec->dev = x->r.dev;
}
static void dry_close(Dry *x) {
    exec_free(x->r.exec);
    real_end(&x->r);
    sides_free(x->r.sides);
    device_free(x->r.on);
    device_free(x->r.dev);
    arena_free(x->r.arena);
}
RunNeed dry_run(Run *run) {
    assert(run->unsharded);
    Dry x;
    run->work = work_new(run->arena, run->program);
    run->ref_work = work_new(run->arena, run->unsharded);
    dry_open(&x, run);
    Run *r = &x.r;
    r->eye = (WorkEye){.e = r->exec,
                       .work = r->work,
                       .iterations = run_iterations(run),
                       .parts = r->plan->microbatches};
    r->tables = tables_new(r);
    bool ran;
    r->look = dry_observers(r, &r->n_look);
    passes_run(r, &ran);
    RunNeed need = {
        .memory = memory_of(run, r), .exact = r->need.exact, .compare = x.compared.done};
    need.all = r->work->total + r->ref_work->total + need.exact + need.compare;
    if (r->stop) need.all = fmax(need.all, r->tables->ahead.all);
    dry_close(&x);
    return need;
}

/* ---- the memory of a GPU ---- */
/* Whoever checks a step, or a process that tells of it, has these brought to the host. */
static void bring(const Exec *e, int val) {
    const Store *s = exec_store(e, val);
    for (int i = 0; s->alive && i < s->n; i++) {
        Tensor host = e->dev->get(e->dev, &s->l[i].t, exec_dtype(e, val));
        e->dev->done(e->dev, &host);
    }
}
static void brought_loaded(void *arg, int val) {
    Run *r = arg;
    bring(r->exec, val);
    r->stop = (int64_t)device_use(r->on).large > MOST;
}
static void brought_stepped(void *arg, const Step *s) {
    Run *r = arg;
    int in[RULE_MAX_IN + 2], n = step_reads(s, in);
    for (int k = 0; k < n; k++) bring(r->exec, in[k]);
    brought_loaded(r, s->out);
}
int64_t dry_on_gpu(const Run *run) {
    Dry x;
    dry_open(&x, run);
    const Observer brought = {.arg = &x.r, .loaded = brought_loaded, .stepped = brought_stepped};
    const Observer *look[] = {&brought};
    x.r.on = device_gpu_sizes();
    x.r.look = look;
    x.r.n_look = run->o->ranks ? 0 : 1; /* processes say what they hold */
    passes_ranks(&x.r);
    const int64_t most = (int64_t)device_use(x.r.on).large;
    dry_close(&x);
    return most;
}
/* Values that are kept for their distances must not be what a run is refused or waits for. */
static void walk_keeping(Run *r) {
    const int64_t most = r->o->memory_limit
                             ? r->o->memory_limit
                             : memory_room_of(r->arena, pool_would(r->o->threads)).bytes;
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
    if (!r->o->ranks && r->o->device && r->o->device->room) need->device = dry_on_gpu(r);
    if (!r->o->ranks) return;
    /* the parts of the processes here, beside what rank 0 is told */
    need->beside = need->sharded / r->mesh->nranks * ranks_beside(r->o->ranks);
    need->peak += need->beside;
}
double dry_hours(const RunNeed *need) { return need->all * 1e-9 / 3600; }
bool dry_within(int64_t bytes, int64_t room) { return bytes <= room - room / 16; }
