/* The unsharded run and what is compared with it. */
#include "exec/reference.h"
#include "base/clock.h"
#include "exec/work.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef struct {
    RandomStream r;
    int64_t n, step;
    Dtype dtype;
    char *out;
} FillJob;
static void fill_part(void *arg, int64_t i) {
    const FillJob *j = arg;
    int64_t first = i * j->step, n = j->n - first < j->step ? j->n - first : j->step;
    random_fill(&j->r, first, n, j->dtype, j->out + first * dtype_size(j->dtype));
}
/* Mean of means: every block of tokens is divided by its own count and by the number of blocks
 * (what AVG of per-rank means does). The blocks are those in which the loss weights are cut. */
static void local_means(const Program *p, int tensor, Dtype dtype, int64_t parts, void *data) {
    const GTensor *t = &p->graph->t[tensor];
    const Layout *L = &p->val[p->first[tensor]].L;
    AxisList cut = {0};
    for (int a = 0; a < p->mesh->naxes; a++)
        if (L->type[a] == TY_V) cut.a[cut.n++] = (uint8_t)a;
    int64_t blocks = mesh_size(p->mesh, &cut),
            means = blocks * parts; /* of all ranks and micro-batches */
    Arena *tmp = arena_new();
    for (int64_t k = 0; k < blocks; k++) {
        int64_t rank = mesh_member(p->mesh, &cut, 0, k), nb, nt, count = 0;
        const int64_t *b = layout_index(p->mesh, L, 0, t->size[0], rank, &nb, tmp),
                      *s = layout_index(p->mesh, L, 1, t->size[1], rank, &nt, tmp);
        for (int pass = 0; pass < 2; pass++)
            for (int64_t i = 0; i < nb; i++)
                for (int64_t j = 0; j < nt; j++) {
                    int64_t at = b[i] * t->size[1] + s[j];
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
void *reference_full(void *arg, int tensor, Dtype dtype) {
    FullSource *f = arg;
    const GTensor *t = &f->g->t[tensor];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    size_t bytes = base_mul((size_t)(n > 0 ? n : 1), (size_t)dtype_size(dtype));
    void *p = base_big(bytes);
    if (f->modulus > 0 && !t->is_int) {
        RandomStream r = random_stream(f->g, tensor, f->seed);
        for (int64_t i = 0; i < n; i++) {
            int64_t x;
            random_ints(&r, i, 1, (int64_t)f->modulus, &x);
            if (dtype == DT_F32) ((float *)p)[i] = (float)x;
            else ((double *)p)[i] = (double)x;
        }
        return p;
    }
    if (f->pool && !f->nudge && n > 1 << 20 && t->kind == KIND_PARAM &&
        !strcmp(weights_source(f->w, tensor), "random")) {
        FillJob j = {random_stream(f->g, tensor, f->data_seed), n, 1 << 20, dtype,
                     p}; /* a value depends on its index only */
        pool_run(f->pool, (n + j.step - 1) / j.step, fill_part, &j);
        return p;
    }
    if (t->state_of) { /* optimizer state starts as zeros */
        memset(p, 0, bytes);
        return p;
    }
    /* this micro-batch's rows of the whole batch */
    if (f->parts > 1 && t->kind == KIND_INPUT && t->nd && !strcmp(t->sym[0], "B")) {
        FullSource all = *f;
        all.g = f->whole;
        all.parts = 1;
        all.local_mean = NULL; /* means are the micro-batch's own: below */
        all.nudge = 0;
        char *full = reference_full(&all, tensor, dtype);
        if (full) memcpy(p, full + f->part * n * dtype_size(dtype), bytes);
        else free(p);
        free(full);
        if (!full) return NULL;
    } else if (!(f->step ? weights_load_step(f->w, f->d, tensor, dtype, f->step, p)
                         : weights_load(f->w, f->d, tensor, dtype, p))) {
        free(p);
        return NULL;
    }
    if (f->local_mean && t->kind == KIND_INPUT && !t->is_int && t->nd == 2 &&
        !strcmp(t->name, "loss_weights"))
        local_means(f->local_mean, tensor, dtype, f->parts > 1 ? f->parts : 1, p);
    if (f->nudge > 0 && !t->is_int && dtype == DT_F64) /* up or down, by the index */
        for (int64_t i = 0; i < n; i++) {
            bool up = (uint64_t)(i + 1) * 0x9e3779b97f4a7c15u >> 63;
            ((double *)p)[i] *= 1 + (up ? f->nudge : -f->nudge);
        }
    return p;
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
    return v >= 0 && r->exec->store[v].alive ? r->exec->store[v].l[0].t.p : NULL;
}
void reference_set_step(Graph *g, int64_t it) {
    for (int n = g->nn_model; g->nn_model && n < g->nn; n++) g->node[n].at.step = it + 1;
}
/* One training step, or the one pass. `unit`: what one piece of `work` is of the whole run's. */
static bool run_steps(Reference *r, const Work *work, double unit, Progress *progress) {
    for (int i = 0; i < r->program->ns; i++) {
        const Step *s = &r->program->step[i];
        double loads = 0;
        int reads[RULE_MAX_IN + 2], n = step_reads(s, reads);
        for (int k = 0; k < n; k++)
            if (!r->exec->store[reads[k]].alive) loads += work->load[reads[k]];
        if (!exec_step(r->exec, s)) return false;
        progress_add(progress, (loads + work->step[i]) * unit);
        exec_release(r->exec, s);
    }
    return true;
}
Reference *reference_run(Arena *arena, const Plan *p, const Model *m, Weights *w, Diags *d,
                         const FullSource *like, bool backward, bool keep_all) {
    Reference *r = ARENA_NEW(arena, Reference);
    r->graph = &m->g;
    r->program = reference_program(arena, p, m, d, backward);
    r->exec = exec_new(arena, r->program, DT_F64, like->pool);
    FullSource *src = ARENA_NEW(arena, FullSource);
    *src = *like;
    src->w = w;
    src->d = d;
    src->g = &m->g;
    src->whole = NULL;
    src->local_mean = NULL;
    src->part = src->step = 0;
    src->parts =
        1; /* never the micro-batches of the run: how those are added up is looked at too */
    r->exec->full = reference_full;
    r->exec->full_arg = src;
    r->exec->keep_all = keep_all;
    double t0 = clock_seconds();
    int64_t steps = m->g.nn_model ? p->optimizer.steps : 1;
    Work work = work_of(arena, r->exec, steps, 1);
    double unit = work.plain > 0 ? like->reference_work / work.plain
                                 : 0; /* its share of the whole was estimated without its program */
    progress_phase(like->progress, "unsharded float64 run");
    bool ok = true;
    for (int v = 0; v < r->program->nv && keep_all && ok; v++) {
        if (r->program->val[v].step >= 0) continue;
        ok = exec_load(r->exec, v);
        progress_add(like->progress, work.load[v] * unit);
    }
    if (r->program->loss >= 0) r->losses = ARENA_ARRAY(arena, double, steps);
    for (int64_t it = 0; it < steps && ok; it++) {
        src->step = it;
        reference_set_step((Graph *)(uintptr_t)&m->g, it);
        ok = run_steps(r, &work, unit, like->progress);
        const double *loss = ok && r->losses ? val_data(r, r->program->loss) : NULL;
        if (r->losses) r->losses[it] = loss ? *loss : NAN;
        if (!ok || !m->g.nn_model) continue;
        exec_next_iteration(r->exec);
        if (src->step_done) src->step_done(src->step_arg, r->exec, it);
    }
    r->seconds = clock_seconds() - t0;
    if (ok) return r;
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
double *reference_cotangent(const Reference *r, const Val *v) {
    const GTensor *t = &r->graph->t[v->tensor];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    double *sum = base_malloc(base_mul((size_t)(n ? n : 1), 8));
    memset(sum, 0, (size_t)n * 8);
    for (int k = 0; k < v->n_parts; k++) {
        const double *x = NULL;
        for (int i = 0; i < r->program->nv && !x; i++) {
            const Val *w = &r->program->val[i];
            if (w->cot && w->step >= 0 && r->program->step[w->step].kind != ST_MOVE &&
                has_part(w, &v->parts[k]))
                x = val_data(r, i);
        }
        if (!x) {
            free(sum);
            return NULL;
        }
        for (int64_t i = 0; i < n; i++) sum[i] += x[i];
    }
    return sum;
}

/* ---- level 3 ---- */
static bool exact_once(Check *c, const Program *ref, FullSource *src) {
    const Program *p = c->e->p;
    Pool *pool = src->pool;
    double work = src->exact_work / (ref->ns + p->ns);
    Exec *one = exec_new(c->arena, ref, c->e->dtype, pool),
         *all = exec_new(c->arena, p, c->e->dtype, pool);
    Exec *keep = c->e;
    one->full = all->full = reference_full;
    one->full_arg = all->full_arg = src;
    one->modulus = all->modulus = src->modulus;
    one->keep_all = true;
    bool ok = true;
    for (int i = 0; i < ref->ns && ok; i++) {
        ok = exec_step(one, &ref->step[i]);
        progress_add(src->progress, work);
    }
    c->e = all;
    for (int i = 0; i < p->ns && ok; i++) {
        ok = exec_step(all, &p->step[i]);
        if (!ok) break;
        int v = ref->first[p->val[p->step[i].out].tensor];
        if (one->store[v].alive) check_exact(c, &p->step[i], one->store[v].l[0].t.p, src->modulus);
        exec_release(all, &p->step[i]);
        progress_add(src->progress, work);
    }
    c->e = keep;
    exec_free(one);
    exec_free(all);
    return ok;
}
void reference_exact(Check *c, const Plan *p, const Model *m, const FullSource *like, int seeds) {
    Program *ref = reference_program(c->arena, p, m, like->d, false);
    /* sums of up to K products of residues must stay exact: K p^2 < 2^24 in f32 */
    double modulus = c->e->dtype == DT_F32 && (m->dims.F > 18000 || m->dims.D > 18000) ? 13 : 31;
    FullSource src = {.w = like->w,
                      .d = like->d,
                      .g = &m->g,
                      .pool = like->pool,
                      .modulus = modulus,
                      .progress = like->progress,
                      .exact_work = like->exact_work / seeds};
    progress_phase(like->progress, "integer data");
    for (int i = 0; i < seeds; i++) {
        src.seed = p->seed * 1000003 + (uint64_t)i + 1;
        if (!exact_once(c, ref, &src)) return;
    }
}
