/* The passes, visible one after the other: plan, mesh, model, styles, lower, adjoint, faults,
 * verify, record, execute and check, compare with the outside, verdict. */
#include "exec/pipeline.h"
#include "cost/cost.h"
#include "exec/against.h"
#include "exec/assemble.h"
#include "exec/check.h"
#include "exec/endtoend.h"
#include "exec/memory.h"
#include "exec/record.h"
#include "exec/reference.h"
#include "exec/sample.h"
#include "exec/save.h"
#include "exec/work.h"
#include "kernel/gemm.h"
#include <malloc.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    Arena *arena;
    Diags *d;
    const PipelineOptions *o;
    PipelineReport *rep;
    Plan *plan;
    Mesh *mesh;
    Model *model, *whole; /* whole: of the whole batch, where micro-batches cut it; else the same */
    Assign *assign;
    Program *program;
    Trace *t;
    Weights *weights;
    Pool *pool;
    Check *check;
    Exec *exec;
    Work work;
    double *losses; /* per training step, on rank 0, added up over the micro-batches; NULL: there is
                       no loss */
    int found;      /* by verify */
    bool nonfinite; /* reported already */
    Against *against; /* NULL: no file */
} Run;

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static bool wants(const Run *r, const char *pass) {
    return r->o->dump && r->o->dump_to && !strcmp(r->o->dump, pass);
}

/* ---- front: from text to a lowered program ---- */
/* With micro-batches the program is that of one of them; inputs are read from the whole batch. */
static bool build_model(Run *r) {
    int64_t m = r->plan->microbatches;
    r->model = r->whole = model_build(r->arena, r->d, r->plan, r->mesh);
    if (!r->model || m < 2) return r->model != NULL;
    int64_t B = r->whole->dims.B;
    if (B % m) {
        diag_error(r->d, "E0307", r->plan->batch_loc,
                   arena_printf(r->arena, "make the batch a multiple of %lld", (long long)m),
                   "a batch of %lld cannot be cut in %lld equal micro-batches", (long long)B,
                   (long long)m);
        return false;
    }
    Plan *one = arena_memdup(r->arena, r->plan, sizeof *one);
    one->batch = one->rows = B / m;
    one->inputs = NULL; /* sizes are known */
    if (!r->whole->dims.mlp) one->sequence = r->whole->dims.S;
    r->model = model_build(r->arena, r->d, one, r->mesh);
    if (r->model)
        diag_note(r->d, "N0007", r->plan->batch_loc, NULL,
                  "the records show one micro-batch of %lld; gradients are added up and reduced "
                  "once, after the last",
                  (long long)m);
    return r->model != NULL;
}

static bool front(Run *r) {
    r->mesh = assign_mesh(r->arena, r->d, r->plan);
    if (!r->mesh) return false;
    if (!build_model(r)) return false;
    const ModelDims *m = &r->model->dims;
    if (r->plan->shrink > 1 && !m->mlp)
        r->rep->shrunk = arena_printf(
            r->arena, "D %lld -> %lld, d %lld -> %lld, F %lld -> %lld, V %lld -> %lld",
            (long long)m->full_D, (long long)m->D, (long long)m->full_d, (long long)m->d,
            (long long)m->full_F, (long long)m->F, (long long)m->full_V, (long long)m->V);
    if (!model_add_optimizer(r->arena, r->d, r->plan, r->model)) return false;
    if (r->whole != r->model && !model_add_optimizer(r->arena, r->d, r->plan, r->whole))
        return false;
    r->assign = assign_plan(r->arena, r->d, r->plan, r->mesh, r->model);
    return r->assign != NULL;
}
/* What the plan language knows and this version cannot do yet is refused, never ignored. */
static bool supported(Run *r) {
    const Plan *p = r->plan;
    int before = diags_errors(r->d);
    Loc kwargs = {0}; /* the modules of a block have positional arguments */
    for (int i = 0; i < p->n_lines + p->n_styles; i++) {
        const Style *s = i < p->n_lines ? &p->lines[i].style : &p->styles[i - p->n_lines];
        if (s->n_kwargs && !kwargs.file) kwargs = s->kwargs[0].loc;
    }
    const struct {
        bool used;
        Loc loc;
        const char *what;
    } row[] = {
        {p->data_parallel.mode && strncmp(p->data_parallel.mode, "zero", 4) == 0,
         p->data_parallel.mode_loc, "data_parallel: zero1, zero2"},
        {!strcmp(p->data_parallel.reduce, "avg"), p->data_parallel.loc,
         "data_parallel: reduce: avg (the loss is the mean over all tokens: its gradients are "
         "sums)"},
        {kwargs.file != NULL, kwargs, "kwargs"},
        {p->context_parallel.mode && strcmp(p->context_parallel.mode, "all_gather"),
         p->context_parallel.mode_loc, "context_parallel modes other than all_gather"},
        {p->pass == PASS_TRAIN && p->optimizer.steps < 1, p->pass_loc, "optimizer steps below 1"},
        {p->microbatches > 1 && p->pass == PASS_FORWARD, p->batch_loc,
         "microbatches of a forward pass (there is nothing to add up)"},
    };
    for (size_t i = 0; i < sizeof row / sizeof row[0]; i++)
        if (row[i].used)
            diag_error(r->d, "E0214", row[i].loc, NULL, "%s: not supported by this version",
                       row[i].what);
    return diags_errors(r->d) == before;
}
/* Whose gradients are summed over which axes of the data, for the report: the default is a
 * declaration too. */
static const char *data_parallel_text(const Run *r) {
    const Assign *a = r->assign;
    const char *mode = r->plan->data_parallel.mode;
    if (r->plan->pass == PASS_FORWARD || mesh_size(r->mesh, &a->data) == 1) return NULL;
    return arena_printf(r->arena, "%s over %s%s", mode ? mode : "ddp",
                        mesh_axes_text(r->mesh, r->arena, &a->data, false),
                        a->data_default ? ", by default: the axes that cut the data" : "");
}
static bool middle(Run *r) {
    int before = diags_errors(r->d);
    r->program = lower(r->arena, r->assign);
    if (r->plan->pass != PASS_FORWARD && r->program->loss >= 0) adjoint_program(r->program);
    if (r->plan->pass == PASS_TRAIN && r->program->loss >= 0) lower_optimizer(r->program);
    if (diags_errors(r->d) > before) return false;
    bool blocks = r->plan->data_parallel.unit && !strcmp(r->plan->data_parallel.unit, "block");
    if (blocks) order_units(r->program); /* before anybody notes a step's number */
    r->t->n_unasked = unasked_notes(r->program, r->d, &r->t->unasked);
    r->rep->data_parallel = data_parallel_text(r);
    r->t->n_undeclared = undeclared_notes(r->program, r->d, &r->t->undeclared);
    not_due_notes(r->program, r->d);
    bool plant = !r->o->sound;
    if (plant && (!apply_gradients(r->program, r->plan, r->d) ||
                  !apply_faults(r->program, r->plan, r->d, r->o->fault)))
        return false;
    if (blocks) mark_units(r->program);
    if (wants(r, "lower")) program_dump(r->program, r->o->dump_to);
    bool planted = plant && (r->plan->n_faults || r->plan->n_gradients || r->o->fault);
    bool warn = planted || r->plan->trust_declared;
    r->found = r->o->no_verify ? 0 : verify(r->program, r->d, warn, NULL);
    return warn || !r->found;
}

/* ---- back: execution and checks ---- */
enum {
    RUN_MAX_RANKS = 1 << 14
}; /* every rank holds blocks of its own: more take minutes even for the smallest model */
/* Ranks' values are written, or compared, when all is done. */
static bool keeps_all(const Run *r) {
    return r->o->save_values || (r->against && against_wants_ranks(r->against));
}
/* All training steps, or the one pass. */
static int64_t iterations(const Run *r) {
    return r->model->g.nn_model ? r->plan->optimizer.steps : 1;
}
/* What --exact and the comparison add to the work of the run. */
static double exact_work(const Run *r) {
    bool backward = r->program->ns > r->program->n_forward;
    return r->o->exact && !backward ? 2 * r->o->exact * r->work.exact
                                    : 0; /* on the ranks and on one */
}
static double compare_work(const Run *r) {
    double n = 0;
    for (int v = 0; v < r->program->nv; v++) {
        bool grad;
        if (!endtoend_result(r->program, v, &grad)) continue;
        const GTensor *t = &r->model->g.t[r->program->val[v].tensor];
        double one = 1;
        for (int d = 0; d < t->nd; d++) one *= (double)t->size[d];
        n += one;
    }
    return n * r->work.compare;
}
/* A slip of a number that would take years is told at once. */
static bool ends(Run *r) {
    enum { RUN_MAX_HOURS = 100 };
    const Plan *p = r->plan;
    double more = exact_work(r) + compare_work(r);
    double hours = work_seconds(r->exec, &r->work, iterations(r), p->microbatches, more) / 3600;
    if (hours <= RUN_MAX_HOURS) return true;
    bool steps = iterations(r) > 1;
    double least = fmax(1, floor((double)iterations(r) * RUN_MAX_HOURS / hours));
    const char *fewer = arena_printf(r->arena, "use `optimizer.steps` of at most %.0f", least);
    diag_error(r->d, "E0707", steps ? p->optimizer.steps_loc : p->model_loc,
               steps ? fewer
                     : "use smaller sizes or a larger `shrink`; shapes, params, comms and draw "
                       "compute nothing",
               "executing this plan would take about %.3g hours; the limit is %d", hours,
               RUN_MAX_HOURS);
    return false;
}
static bool refuse_memory(Run *r, const MemoryNeed *need, const MemoryRoom *room) {
    const Plan *p = r->plan;
    bool mlp = r->model->dims.mlp, steps = iterations(r) > 1 && need->records > need->peak / 2;
    const char *wider = p->dtype == DT_F64 ? "`dtype: f32`, " : "";
    const char *rest = "shapes, params, comms and draw need none of it";
    const char *hint = arena_printf(
        r->arena,
        "use `shrink` (--set model.shrink=%lld), %sfewer layers or a shorter sequence; %s",
        (long long)(p->shrink > 1 ? p->shrink * 2 : 2), wider, rest);
    if (mlp) hint = arena_printf(r->arena, "use smaller sizes or fewer rows; %s", rest);
    if (steps) hint = "use fewer `optimizer.steps`: the checks of every step are kept";
    diag_error(r->d, "E0701", steps ? p->optimizer.steps_loc : p->model_loc, hint,
               "executing this plan needs about %s of memory (%s for the ranks and their check, %s "
               "for the unsharded run), there are %s: %s",
               bytes_text(need->peak, r->arena), bytes_text(need->sharded, r->arena),
               bytes_text(need->unsharded, r->arena), bytes_text(room->bytes, r->arena),
               room->what);
    return false;
}
static bool fits(Run *r) {
    if (r->mesh->nranks > RUN_MAX_RANKS) {
        diag_error(r->d, "E0703", r->plan->mesh_loc,
                   "use smaller axes, or a shape-only command (shapes, params, comms, draw)",
                   "a run of %lld ranks; the limit is %d", (long long)r->mesh->nranks,
                   RUN_MAX_RANKS);
        return false;
    }
    if (r->plan->dtype != DT_F32 && r->plan->dtype != DT_F64) {
        diag_error(r->d, "E0602", r->plan->dtype_loc,
                   "use `dtype: f32` or `f64` to execute; shape-only commands accept it",
                   "the virtual backend computes in f32 and f64 only");
        return false;
    }
    r->exec = exec_new(r->arena, r->program, r->plan->dtype, NULL);
    r->work = work_of(r->arena, r->exec, iterations(r), r->plan->microbatches);
    bool in_time = ends(r);
    bool backward = r->program->ns > r->program->n_forward;
    MemoryUse use = {.dtype = r->plan->dtype,
                     .keep_all = keeps_all(r),
                     .keep_whole = r->o->against || r->o->save_values || backward,
                     .exact = r->o->exact && !backward,
                     .nudged = r->o->sensitivity,
                     .microbatches = (int)r->plan->microbatches,
                     .steps = iterations(r),
                     .whole = &r->whole->g};
    MemoryNeed need = memory_predict(r->program, &use);
    MemoryRoom room = memory_room(r->arena);
    if (r->o->memory_limit) room = (MemoryRoom){r->o->memory_limit, "the limit that was set"};
    r->rep->predicted_bytes = need.peak;
    if (need.peak <= room.bytes - room.bytes / 16) return in_time;
    return refuse_memory(r, &need, &room);
}
/* Observes what is due after a step: the value's numbers for pictures. */
static void keep_numbers(Run *r, const Step *s) {
    const Val *v = &r->program->val[s->out];
    const GTensor *t = &r->model->g.t[v->tensor];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    for (int a = 0; a < r->mesh->naxes; a++)
        if (v->L.type[a] == TY_P || v->L.type[a] == TY_M) return;
    if (!r->o->numbers || n > 64 || t->is_int) return;
    AxisList none = {0};
    Tensor x = assemble_value(r->exec, s->out, &none, 0);
    for (int i = r->t->n_values - 1; i >= 0; i--)
        if (r->t->values[i].step == s->id) {
            r->t->values[i].numbers = ARENA_ARRAY(r->arena, double, n);
            r->t->values[i].n_numbers = n;
            for (int64_t k = 0; k < n; k++)
                r->t->values[i].numbers[k] =
                    r->exec->dtype == DT_F32 ? (double)((float *)x.p)[k] : ((double *)x.p)[k];
        }
    free(x.p);
}
/* Copies a value of one rank, packed, as doubles. */
static double *rank_values(const Run *r, int v, int64_t rank, int64_t *n) {
    const Local *l = exec_local(r->exec, v, rank);
    int64_t i[LAYOUT_MAX_DIMS] = {0};
    *n = tensor_count(&l->t);
    double *o = base_malloc(base_mul((size_t)(*n ? *n : 1), 8));
    for (int64_t k = 0; k < *n; k++) {
        int64_t at = 0;
        for (int d = 0; d < l->t.nd; d++) at += i[d] * l->t.s[d];
        o[k] = exec_is_int(r->exec, v)    ? (double)((int64_t *)l->t.p)[at]
               : r->exec->dtype == DT_F32 ? (double)((float *)l->t.p)[at]
                                          : ((double *)l->t.p)[at];
        for (int d = l->t.nd - 1; d >= 0; d--) {
            if (++i[d] < l->t.n[d]) break;
            i[d] = 0;
        }
    }
    return o;
}
/* An input or parameter, through the plan's own data path, against its source. */
static bool load_source(Run *r, int v) {
    double t0 = now();
    if (!exec_load(r->exec, v)) return false;
    r->rep->seconds_sharded += now() - t0;
    progress_add(r->o->progress, r->work.load[v]);
    t0 = now();
    check_source(r->check, v);
    r->rep->seconds_check += now() - t0;
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
/* n packed numbers are finite up to at least here: whole blocks, by one test of their exponents. */
static int64_t finite_until(const void *p, Dtype dt, int64_t n) {
    enum { BLOCK = 512 };
    int64_t i = 0;
    for (; i + BLOCK <= n; i += BLOCK) {
        uint32_t odd32 = 0;
        uint64_t odd64 = 0;
        if (dt == DT_F32) {
            const float *x = (const float *)p + i;
            for (int k = 0; k < BLOCK; k++) odd32 |= !(fabsf(x[k]) <= 0x1.fffffep127f);
        } else {
            const double *x = (const double *)p + i;
            for (int k = 0; k < BLOCK; k++) odd64 |= !(fabs(x[k]) <= 0x1.fffffffffffffp1023);
        }
        if (odd32 || odd64) break;
    }
    return i;
}
/* NaN and infinity pass every comparison of a number with itself: the first step that makes one is
 * reported. A pending maximum over an empty shard is minus infinity by right. */
static void find_nonfinite(Run *r, const Step *s) {
    const Val *v = &r->program->val[s->out];
    const Store *st = &r->exec->store[s->out];
    if (r->nonfinite || exec_is_int(r->exec, s->out)) return;
    for (int a = 0; a < r->mesh->naxes; a++)
        if (v->L.type[a] == TY_M) return;
    for (int k = 0; k < st->n; k++) {
        const Local *l = &st->l[k];
        int64_t n = tensor_count(&l->t), bad = -1;
        double value = 0;
        /* nothing new */
        if (l->buf == NULL || s->kind == ST_CLAIM ||
            (s->kind == ST_MOVE && s->move.kind <= MOVE_SLICE))
            continue;
        for (int64_t i = finite_until(l->t.p, r->exec->dtype, n); i < n && bad < 0; i++) {
            value = r->exec->dtype == DT_F32 ? (double)((float *)l->t.p)[i] : ((double *)l->t.p)[i];
            if (!isfinite(value)) bad = i;
        }
        if (bad < 0) continue;
        r->nonfinite = true;
        diag_error(r->d, "E0504", s->loc,
                   "look at the sizes and scales of weights and inputs; in f64 the range is larger",
                   "%s: %s first appears here (step %d, %s, rank %lld, element %lld of its part)",
                   step_name(r->program, s, r->arena), isnan(value) ? "NaN" : "infinity", s->id,
                   phase_text(s->pass), (long long)st->l[k].rank, (long long)bad);
        return;
    }
}
static bool step_all(Run *r, int64_t part, int64_t parts) {
    const Program *p = r->program;
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (part + 1 < parts && exec_deferred(r->exec, s)) continue;
        if (!load_read(r, s)) return false;
        double t0 = now();
        int before = diags_errors(r->d);
        if (!exec_step(r->exec, s)) {
            if (diags_errors(r->d) > before) return false;
            check_stuck(r->check, s, r->exec->stuck ? r->exec->stuck : "the step cannot be run");
            return true;
        }
        double t1 = now();
        progress_add(r->o->progress, r->work.step[i]);
        if (r->o->watch) r->o->watch(r->o->watch_arg, r->exec, s, false);
        check_step(r->check, s);
        find_nonfinite(r, s);
        keep_numbers(r, s);
        if (r->o->numbers)
            sample_step(r->t, r->exec, s,
                        r->o->rank >= 0 && r->o->rank < r->mesh->nranks ? r->o->rank : 0);
        exec_accumulate(r->exec, s, part, parts);
        if (r->o->watch) r->o->watch(r->o->watch_arg, r->exec, s, true);
        r->rep->seconds_sharded += t1 - t0;
        r->rep->seconds_check += now() - t1;
        exec_release(r->exec, s);
        progress_add(r->o->progress, r->work.check[i]);
    }
    return true;
}
/* ---- the outside: values of a file, values for a file ---- */
static int64_t training_steps(const Run *r) {
    return r->model->g.nn_model ? r->plan->optimizer.steps : 0;
}
static ValueSet values_of(Run *r, const Reference *ref, Exec *ranks, int64_t after) {
    return (ValueSet){r->arena, ref, ranks, training_steps(r), after};
}
/* After a training step of the unsharded run: parameters and state as they are now. */
static void reference_stepped(void *arg, Exec *e, int64_t step) {
    Run *r = arg;
    Reference ref = {.program = (Program *)(uintptr_t)e->p, .exec = e, .graph = e->p->graph};
    ValueSet s = values_of(r, &ref, NULL, step);
    against_step(r->against, &s);
}
static void ranks_stepped(Run *r, int64_t step) {
    ValueSet s = values_of(r, NULL, r->exec, step);
    if (r->against && against_wants_ranks(r->against)) against_step(r->against, &s);
}
static void outside(Run *r, const Reference *ref) {
    ValueSet s = values_of(r, ref, r->exec, training_steps(r) - 1);
    if (r->o->save_values) save_values(&s, r->d, r->o->save_values);
    if (!r->against) return;
    against_rest(r->against, &s);
    against_report(r->against, &s, r->rep, r->t);
}
/* `src` is what the ranks load, `pure` what the check reads: of the same micro-batch and training
 * step. */
static bool iterate(Run *r, FullSource *src, FullSource *pure) {
    int64_t steps = iterations(r);
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
            int64_t n;
            double *x = rank_values(r, r->program->loss, 0, &n);
            r->losses[it] += n ? x[0] : NAN;
            free(x);
        }
        if (!r->model->g.nn_model) continue;
        exec_next_iteration(r->exec);
        ranks_stepped(r, it);
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
    bool backward = r->program->ns > r->program->n_forward;
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
                  .steps = iterations(r),
                  .parts = r->plan->microbatches,
                  .progress = r->o->progress,
                  .work = r->work.compare};
    if (!r->exec->stuck) endtoend_check(&e, r->rep);
}
static bool execute(Run *r) {
    r->weights = weights_open(r->arena, r->d, r->plan, r->whole);
    if (!r->weights) return false;
    /* memory that was touched once is kept: fresh pages cost more than the work in them */
    mallopt(M_MMAP_MAX, 0);
    mallopt(M_TRIM_THRESHOLD, INT32_MAX);
    r->pool = pool_new(r->o->threads);
    r->exec->pool = r->pool;
    FullSource src = {.w = r->weights,
                      .d = r->d,
                      .g = &r->model->g,
                      .pool = r->pool,
                      .data_seed = r->plan->seed,
                      .whole = &r->whole->g,
                      .parts = r->plan->microbatches};
    FullSource pure = src; /* what the check holds the run against */
    if (r->plan->normalise && !strcmp(r->plan->normalise, "local_mean"))
        src.local_mean = r->program;
    r->exec->full = reference_full;
    r->exec->full_arg = &src;
    r->exec->keep_all = keeps_all(r);
    r->check = check_new(r->arena, r->exec, r->t);
    r->check->full_arg = &pure;
    if (src.local_mean)
        r->check->weights_cause = "the plan's `normalise: local_mean`: each rank divides by the "
                                  "count of its own tokens, so tokens of short blocks weigh more";
    bool backward = r->program->ns > r->program->n_forward;
    pure.progress = r->o->progress;
    if (r->against) pure.step_done = reference_stepped, pure.step_arg = r;
    pure.exact_work = exact_work(r);
    pure.reference_work = r->work.reference;
    progress_total(r->o->progress,
                   r->work.run + pure.exact_work + pure.reference_work + compare_work(r));
    progress_phase(r->o->progress, "ranks and check");
    bool ok = iterate(r, &src, &pure);
    if (ok && r->o->exact && !r->exec->stuck) {
        if (backward)
            diag_note(r->d, "N0007", (Loc){0}, NULL,
                      "--exact covers forward programs in this version; the backward pass was "
                      "checked by levels 1 and 2");
        else reference_exact(r->check, r->plan, r->model, &pure, r->o->exact);
    }
    bool keep = r->o->against || r->o->save_values || backward;
    Reference *ref =
        ok ? reference_run(r->arena, r->plan, r->whole, r->weights, r->d, &pure, backward, keep)
           : NULL;
    progress_phase(r->o->progress, "comparison");
    if (ref) {
        r->rep->seconds_reference = ref->seconds;
        end_to_end(r, ref, &pure);
        outside(r, ref);
    }
    r->rep->peak_bytes = r->exec->peak_bytes;
    r->rep->flops_distinct = r->exec->flops;
    r->rep->gemm = kernel_isa();
    r->rep->fault_acted = r->exec->edited;
    r->rep->unobservable = r->check->unobservable;
    *ARENA_PUSH(r->arena, r->check->unobservable_text, r->check->n_unobservable,
                r->check->cap_unobservable) = NULL; /* ends the list */
    r->rep->unobservable_text = r->check->unobservable_text;
    r->t->executed = ok;
    reference_free(ref);
    exec_free(r->exec);
    pool_free(r->pool);
    ok &= ref && !weights_failed(
                     r->weights); /* what could not be read again is not equivalent to anything */
    weights_close(r->weights);
    return ok;
}
/* A file that cannot be compared is refused before the work. */
static bool back(Run *r) {
    const PipelineOptions *o = r->o;
    if (o->against)
        r->against = against_open(r->arena, r->d, r->program, training_steps(r), o->against, o->map,
                                  o->tolerance);
    if (o->against && !r->against) return false;
    bool ok = fits(r) && execute(r);
    against_close(r->against);
    return ok;
}
/* Structure: what verify found about owners, reductions and groups, a record for each step with a
 * finding, or one for the whole program. A finding is no number: whether the values hold is decided
 * by levels 1 to 3 and the end of the run alone, so it counts in no total. Without verify nobody
 * knows. */
static void level0(Run *r) {
    RankSet all = rankset_range(r->arena, 0, r->mesh->nranks, 1);
    TraceCheck sound = {.step = -1,
                        .value = "program",
                        .pass = PHASE_FORWARD,
                        .ranks = all,
                        .verdict = "PASS",
                        .count = r->program->ns};
    Trace *t = r->t;
    if (r->o->no_verify) return;
    if (!r->found) {
        *ARENA_PUSH(t->arena, t->checks, t->n_checks, t->cap_checks) = sound;
        t->n_pass++;
    }
    for (int i = 0; i < r->program->ns && r->found; i++) {
        const Step *s = &r->program->step[i];
        if (!s->wrong) continue;
        *ARENA_PUSH(t->arena, t->checks, t->n_checks, t->cap_checks) = (TraceCheck){
            .step = i,
            .value = program_value_name(r->program, &r->program->val[s->out], r->arena),
            .pass = s->pass,
            .ranks = all,
            .verdict = "FAIL",
            .cause = s->wrong,
            .count = 1};
    }
}
/* A wrong structure whose values hold: another run may be less lucky. */
static void note_lucky(Run *r) {
    const Step *first = NULL;
    for (int i = r->program->ns - 1; i >= 0; i--)
        if (r->program->step[i].wrong) first = &r->program->step[i];
    if (r->found && first && !r->t->n_fail)
        diag_warn(r->d, "W0401", first->loc, "other data, sizes or passes may show it",
                  "%s: the structure is wrong, and no number of this run shows it",
                  step_name(r->program, first, r->arena));
}
static void events(Run *r) {
    const Hardware *h = hardware_of_plan(r->arena, r->d, r->o->hardware, r->plan->hardware,
                                         r->plan->dir, r->plan->hardware_loc);
    if (h) cost_simulate(r->t, h);
}
static void verdict(Run *r, bool valid, bool ran) {
    Trace *t = r->t;
    if (ran) note_lucky(r);
    t->diags = r->d->item;
    t->n_diags = r->d->n;
    if (!valid) t->verdict = "invalid";
    else if (ran) t->verdict = t->n_fail ? "different" : "equivalent";
    int code = diags_exit(r->d);
    if (!code && ran && (t->n_fail || (r->o->strict && t->n_suspect))) code = 1;
    r->rep->exit = code;
    if (ran && t->n_fail) {
        const TraceCheck *c = &t->checks[r->check->first_fail];
        Loc loc = {0};
        if (c->step >= 0) loc = r->program->step[c->step].loc;
        diag_error(r->d, "E0501", loc, NULL, "%s is wrong on rank%s %s: %s", c->value,
                   rankset_count(&c->ranks) == 1 ? "" : "s", rankset_text(&c->ranks, r->arena),
                   c->cause ? c->cause : "it differs");
        t->diags = r->d->item;
        t->n_diags = r->d->n;
    }
}

/* What no line of the plan leads to is said of its file: one of many that are checked together. */
static void name_file(Diags *d, int from, const char *file) {
    for (int i = from; i < d->n; i++)
        if (!d->item[i].loc.file) d->item[i].loc = (Loc){file, 0, 0};
}
Trace *pipeline_run(Arena *arena, Diags *d, const char *file, const char *text, size_t n,
                    const PlanSet *sets, int n_sets, const PipelineOptions *o,
                    PipelineReport *report) {
    memset(report, 0, sizeof *report);
    Run r = {.arena = arena, .d = d, .o = o, .rep = report};
    int before = d->n;
    r.plan = report->plan = plan_parse(arena, d, file, text, n, sets, n_sets);
    bool read = !diags_errors(d);
    if (!read) model_check_preset(arena, d, r.plan);
    if (!read || !supported(&r) || !front(&r)) {
        report->exit = diags_exit(d);
        name_file(d, before, file);
        return NULL;
    }
    r.t = trace_new(arena);
    bool valid = middle(&r);
    record_program(r.t, r.program, r.plan, r.model, r.plan->dtype);
    bool ran = false;
    if (valid) {
        if (o->events) events(&r);
        if (o->execute) {
            level0(&r);
            ran = back(&r);
        }
    }
    verdict(&r, valid, ran);
    name_file(d, before, file);
    return r.t;
}
