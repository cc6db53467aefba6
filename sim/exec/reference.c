/* The unsharded run and what is compared with it. */
#include "exec/reference.h"
#include "exec/narrow.h"
#include "exec/walk.h"
#include "kernel/bf16.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    RandomStream r;
    int64_t first, n, step;
    Dtype dtype;
    char *out;
} FillJob;
static void fill_part(void *arg, int64_t i) {
    const FillJob *j = arg;
    int64_t at = i * j->step, n = j->n - at < j->step ? j->n - at : j->step;
    random_fill(&j->r, j->first + at, n, j->dtype, j->out + at * dtype_size(j->dtype));
}
/* Elements first .. first + n - 1 of a large random source by all workers, as each depends on its
 * index only; false: it is not one. */
static bool fill_random(const FullSource *f, int tensor, Dtype dtype, int64_t first, int64_t n,
                        void *out) {
    enum { TASK = 1 << 16 };
    bool random = f->pool && n > 2 * TASK && !f->g->t[tensor].is_int &&
                  !strcmp(weights_source(f->w, tensor), "random");
    if (!random) return false;
    FillJob j = {weights_random(f->w, tensor), first, n, TASK, dtype, out};
    pool_run(f->pool, (n + j.step - 1) / j.step, fill_part, &j);
    return true;
}
static bool is_loss_weights(const GTensor *t) {
    return t->kind == KIND_INPUT && !t->is_int && t->nd == 2 && !strcmp(t->name, "loss_weights");
}
int reference_loss_weights(const Program *p) {
    for (int i = 0; i < p->graph->nt; i++)
        if (is_loss_weights(&p->graph->t[i]) && p->first[i] >= 0) return i;
    return -1;
}
AxisList reference_mean_axes(const Program *p, int tensor) {
    const Layout *L = &p->val[p->first[tensor]].L;
    AxisList cut = {0};
    for (int a = 0; a < p->mesh->naxes; a++)
        if (L->type[a] == TY_V) cut.a[cut.n++] = (uint8_t)a;
    return cut;
}
/* Mean of means: every block of tokens is divided by its own count and by the number of blocks
 * (what AVG of per-rank means does). The blocks are those in which the loss weights are cut. */
static void local_means(const Program *p, int tensor, Dtype dtype, int64_t parts, void *data) {
    const GTensor *t = &p->graph->t[tensor];
    const Layout *L = &p->val[p->first[tensor]].L;
    AxisList cut = reference_mean_axes(p, tensor);
    int64_t blocks = mesh_size(p->mesh, &cut),
            means = blocks * parts; /* of all ranks and micro-batches */
    Arena *tmp = arena_new();
    for (int64_t k = 0; k < blocks; k++) {
        int64_t rank = mesh_member(p->mesh, &cut, 0, k), count = 0;
        IndexList b = layout_index(p->mesh, L, 0, t->size[0], rank, tmp),
                  s = layout_index(p->mesh, L, 1, t->size[1], rank, tmp);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < b.n; i++)
                for (int64_t j = 0; j < s.n; j++) {
                    int64_t at = b.at[i] * t->size[1] + s.at[j];
                    double w = dtype == DT_F32 ? (double)((float *)data)[at] : ((double *)data)[at];
                    if (w == 0) continue;
                    if (!pass) count++;
                    else if (dtype == DT_F32)
                        ((float *)data)[at] = (float)(1.0 / (double)(count * means));
                    else ((double *)data)[at] = 1.0 / (double)(count * means);
                }
    }
    arena_free(tmp);
}
/* Is it this micro-batch's rows of the whole batch? */
static bool is_cut(const FullSource *f, const GTensor *t) {
    return f->parts > 1 && t->kind == KIND_INPUT && t->nd && t->role[0] == DIM_BATCH;
}
/* Takes what loading would take, and reads nothing. */
static void *dry_full(const FullSource *f, Device *dev, int tensor, Dtype dtype, void *p) {
    FullSource all = *f;
    all.g = f->whole;
    all.parts = 1;
    bool cut = is_cut(f, &f->g->t[tensor]);
    dev->release(dev, cut ? reference_full(&all, tensor, dtype) : NULL);
    return p;
}
/* As its source has it. */
static void *load_full(FullSource *f, int tensor, Dtype dtype) {
    const GTensor *t = &f->g->t[tensor];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    size_t bytes = base_mul((size_t)(n > 0 ? n : 1), (size_t)dtype_size(dtype));
    Device *dev = f->dev ? f->dev : device_plain();
    void *p = dev->alloc(dev, bytes);
    if (dev->sizes_only) return dry_full(f, dev, tensor, dtype, p);
    if (f->modulus > 0 && !t->is_int && !is_cut(f, t)) {
        RandomStream r = random_stream(f->g, tensor, f->seed);
        int64_t x[256];
        for (int64_t i = 0; i < n; i++) {
            const int64_t k = i % 256, left = n - i;
            if (k == 0) random_ints(&r, i, left < 256 ? left : 256, (int64_t)f->modulus, x);
            if (dtype == DT_F32) ((float *)p)[i] = (float)x[k];
            else ((double *)p)[i] = (double)x[k];
        }
        return p;
    }
    if (!is_cut(f, t) && fill_random(f, tensor, dtype, 0, n, p)) return p;
    if (t->state_of) { /* optimizer state starts as zeros */
        memset(p, 0, bytes);
        return p;
    }
    /* this micro-batch's rows of the whole batch */
    if (is_cut(f, t)) {
        FullSource all = *f;
        all.g = f->whole;
        all.parts = 1;
        all.local_mean = NULL; /* means are the micro-batch's own: below */
        char *full = load_full(&all, tensor, dtype);
        if (full) memcpy(p, full + f->part * n * dtype_size(dtype), bytes);
        else dev->release(dev, p);
        dev->release(dev, full);
        if (!full) return NULL;
    } else if (!(f->step ? weights_load_step(f->w, f->d, tensor, dtype, f->step, p)
                         : weights_load(f->w, f->d, tensor, dtype, p))) {
        dev->release(dev, p);
        return NULL;
    }
    if (f->local_mean && is_loss_weights(t))
        local_means(f->local_mean, tensor, dtype, f->parts > 1 ? f->parts : 1, p);
    return p;
}
static void narrow(const FullSource *f, int tensor, Dtype dtype, int64_t n, void *x) {
    if (!f->narrow || !f->narrow[tensor] || f->modulus > 0) return;
    if (dtype == DT_F32) bf16_round_f32(n, x);
    else bf16_round_f64(n, x);
}
void *reference_full(void *arg, int tensor, Dtype dtype) {
    FullSource *f = arg;
    const GTensor *t = &f->g->t[tensor];
    bool numbers = !(f->dev && f->dev->sizes_only) && !t->is_int && !t->state_of && !f->modulus;
    double *p = load_full(f, tensor, dtype);
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    if (!p || !numbers) return p;
    narrow(f, tensor, dtype, n, p);
    for (int64_t i = 0; f->nudge != 0 && dtype == DT_F64 && i < n;
         i++) { /* up or down, by the index */
        bool up = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u >> 63;
        p[i] *= 1 + (up ? f->nudge : -f->nudge);
    }
    return p;
}
/* ---- parts ---- */
typedef struct {
    FullSource *f;
    int tensor;
    Dtype dtype;
    int64_t shift; /* of this micro-batch's rows in the whole batch */
    char *out;
} PartJob;
static bool part_run(void *arg, int64_t first, int64_t n, int64_t at) {
    const PartJob *j = arg;
    void *out = j->out + at * dtype_size(j->dtype);
    first += j->shift;
    if (fill_random(j->f, j->tensor, j->dtype, first, n, out)) return true;
    WeightsPart p = {j->tensor, j->dtype, j->f->step, first, n};
    return weights_part(j->f->w, j->f->d, &p, out);
}
/* Of the whole, where an element depends on others than itself. */
static bool part_of_whole(FullSource *f, int tensor, Dtype dtype, const Region *of, void *out) {
    Region all = region_whole(&f->g->t[tensor]);
    Tensor whole = region_packed(&all), part = region_packed(of);
    Device *dev = f->dev ? f->dev : device_plain();
    whole.p = reference_full(f, tensor, dtype);
    part.p = out;
    if (whole.p) region_copy((Block){of, &part}, (Block){&all, &whole}, dtype, COMBINE_COPY);
    dev->release(dev, whole.p);
    return whole.p != NULL;
}
bool reference_part(void *arg, int tensor, Dtype dtype, const Region *of, void *out) {
    FullSource *f = arg;
    const GTensor *t = &f->g->t[tensor];
    Tensor part = region_packed(of);
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    bool means = f->local_mean && is_loss_weights(t);
    if (f->modulus > 0 || f->nudge != 0 || means) return part_of_whole(f, tensor, dtype, of, out);
    if (t->state_of) { /* optimizer state starts as zeros */
        memset(out, 0, (size_t)(tensor_count(&part) * dtype_size(dtype)));
        return true;
    }
    PartJob j = {f, tensor, dtype, is_cut(f, t) ? f->part * n : 0, out};
    if (!region_runs(of, part_run, &j)) return false;
    narrow(f, tensor, dtype, t->is_int ? 0 : tensor_count(&part), out);
    return true;
}

Program *reference_program(Arena *arena, const Plan *p, const Model *m, Diags *d, bool backward) {
    Mesh *one = ARENA_NEW(arena, Mesh);
    mesh_finish(one);
    Assign *a = ARENA_NEW(arena, Assign);
    int nt = m->g.nt;
    *a = (Assign){.plan = p, .mesh = one, .model = m, .d = d, .arena = arena};
    a->use = ARENA_ARRAY(arena, ModuleUse, m->g.nm + 1);
    a->compute = ARENA_ARRAY(arena, Layout, nt + 1);
    a->rest = ARENA_ARRAY(arena, Layout, nt + 1);
    a->group = arena_alloc(arena, base_mul((size_t)nt + 1, sizeof *a->group));
    a->line = ARENA_ARRAY(arena, int, nt + 1);
    a->claimed = ARENA_ARRAY(arena, bool, nt + 1);
    for (int t = 0; t < nt; t++) a->compute[t] = a->rest[t] = layout_whole(one, m->g.t[t].nd, TY_I);
    Program *q = lower(arena, a);
    if (backward && q->loss >= 0) adjoint_program(q);
    if (backward && q->loss >= 0) lower_optimizer(q);
    return q;
}
static const double *val_data(const Reference *r, int v) {
    const Exec *e = r->exec;
    if (v < 0 || !exec_store(e, v)->alive) return NULL;
    const Tensor *t = &exec_store(e, v)->l[0].t;
    if (e->dtype == DT_F64 || e->dev->sizes_only) return t->p;
    int64_t n = tensor_count(t);
    double *x = arena_alloc(r->arena, base_mul((size_t)n + 1, sizeof *x));
    for (int64_t i = 0; i < n; i++) x[i] = (double)((const float *)t->p)[i];
    return x;
}
void reference_set_step(Graph *g, int64_t it) {
    for (int n = g->nn_model; g->nn_model && n < g->nn; n++) g->node[n].at.step = it + 1;
}
/* What the walk of the unsharded program is told and tells. */
typedef struct {
    Reference *r;
    FullSource *src;
} Watch;
static void ref_begun(void *arg, WalkInstance at) {
    const Watch *x = arg;
    x->src->step = at.iteration;
    reference_set_step((Graph *)(uintptr_t)x->r->graph, at.iteration);
}
static void ref_stepped(void *arg, const Step *s) {
    const Watch *x = arg;
    const FullSource *f = x->src;
    if (f->routes) routes_replay(f->routes, x->r->exec, s, f->step, &f->replay);
    if (f->sides) sides_replay(f->sides, x->r->exec, s, f->step, f->replay.share, f->taken);
}
static void ref_ended(void *arg, WalkInstance at) {
    const Watch *x = arg;
    const double *loss = x->r->losses ? val_data(x->r, x->r->program->loss) : NULL;
    if (x->r->losses && !x->r->exec->dev->sizes_only)
        x->r->losses[at.iteration] = loss ? *loss : NAN;
}
static void ref_iterated(void *arg, int64_t iteration) {
    const Watch *x = arg;
    if (x->src->step_done) x->src->step_done(x->src->step_arg, x->r->exec, iteration);
}
/* The source of the unsharded run: never the micro-batches of the run, so that how those are added
 * up is looked at too. */
static FullSource *whole_source(Arena *arena, const FullSource *like, const Graph *g) {
    FullSource *src = arena_memdup(arena, like, sizeof *src);
    src->g = g;
    src->whole = NULL;
    src->local_mean = NULL;
    src->part = src->step = 0;
    src->parts = 1;
    return src;
}
Reference *reference_run(Arena *arena, Program *program, const Model *m, const FullSource *like,
                         int64_t steps, bool keep_all) {
    Reference *r = ARENA_NEW(arena, Reference);
    r->graph = &m->g;
    r->program = program;
    r->exec = exec_new(arena, r->program, like->numbers, like->pool);
    r->arena = arena;
    FullSource *src = whole_source(arena, like, &m->g);
    r->exec->full = reference_full;
    r->exec->full_arg = src;
    if (like->numbers == DT_BF16 && !like->narrow) src->narrow = narrow_sources(r->exec, arena);
    if (like->dev) r->exec->dev = r->exec->host = like->dev;
    r->exec->keep_all = keep_all;
    if (r->program->loss >= 0) r->losses = ARENA_ARRAY(arena, double, steps);
    Watch x = {.r = r, .src = src};
    progress_phase(like->progress, "unsharded float64 run");
    const Observer look = {.arg = &x,
                           .begun = ref_begun,
                           .stepped = ref_stepped,
                           .ended = ref_ended,
                           .iterated = ref_iterated};
    Observer first, last;
    const Observer *const all[] = {&look, &first, &last};
    if (like->eye) {
        like->eye->e = r->exec;
        work_observers(like->eye, &first, &last);
    }
    Walk walk = {.e = r->exec,
                 .iterations = steps,
                 .parts = 1,
                 .load_first = keep_all,
                 .observers = all,
                 .n = like->eye ? 3 : 1};
    WalkEnd end = walk_run(&walk);
    r->seconds = walk.seconds_run + walk.seconds_observed;
    if (end == WALK_DONE) return r;
    exec_free(r->exec);
    return NULL;
}
void reference_free(Reference *r) {
    if (r) exec_free(r->exec);
}
const double *reference_value(const Reference *r, int tensor) {
    return val_data(r, r->program->first[tensor]);
}
static bool has_part(const Val *v, const Part *p) {
    return v->n_parts == 1 && v->parts[0].node == p->node && v->parts[0].operand == p->operand;
}
int reference_use(const Program *p, const Part *use) {
    for (int i = 0; i < p->nv; i++) {
        const Val *w = &p->val[i];
        if (w->cot && w->step >= 0 && p->step[w->step].kind != ST_MOVE && has_part(w, use))
            return i;
    }
    return -1;
}
/* Its elements: of rows those that the unsharded run has, not those that could be. */
static int64_t cotangent_count(const Reference *r, const Val *v) {
    const GTensor *t = &r->graph->t[v->tensor];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    for (int k = 0; t->listed && k < v->n_parts; k++) {
        int use = reference_use(r->program, &v->parts[k]);
        if (use >= 0 && exec_store(r->exec, use)->alive)
            return tensor_count(&exec_store(r->exec, use)->l[0].t);
    }
    return n;
}
double *reference_cotangent(const Reference *r, const Val *v) {
    int64_t n = cotangent_count(r, v);
    Device *dev = r->exec->dev;
    double *sum = device_array(dev, n, 8);
    if (!dev->sizes_only) memset(sum, 0, (size_t)n * 8);
    for (int k = 0; k < v->n_parts; k++) {
        const double *x = NULL;
        if (v->parts[k].way) continue; /* both ways of a pipeline: here once for all rows */
        x = val_data(r, reference_use(r->program, &v->parts[k]));
        if (!x) {
            dev->release(dev, sum);
            return NULL;
        }
        for (int64_t i = 0; i < n && !dev->sizes_only; i++) sum[i] += x[i];
    }
    return sum;
}
