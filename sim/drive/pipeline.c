/* The passes, visible one after the other: plan, mesh, model, styles, lower, adjoint, faults,
 * verify, record, execute and check, compare with the outside, verdict. */
#include "drive/pipeline.h"
#include "cost/cost.h"
#include "drive/run.h"
#include "exec/record.h"
#include <string.h>

static bool wants(const Run *r, const char *pass) {
    return r->o->dump && r->o->dump_to && !strcmp(r->o->dump, pass);
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
        {!strcmp(p->data_parallel.reduce, "avg"), p->data_parallel.loc,
         "data_parallel: reduce: avg (the loss is the mean over all tokens: its gradients are "
         "sums)"},
        {kwargs.file != NULL, kwargs, "kwargs"},
        {p->pass == PASS_TRAIN && p->optimizer.steps < 1, p->pass_loc, "optimizer steps below 1"},
        {p->microbatches > 1 && p->pass == PASS_FORWARD && !p->pipeline.loc.file, p->batch_loc,
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
    const DataMode *m = plan_data_mode(r->plan);
    const char *mode = m->name;
    if (m->cuts_state && !m->cuts_params)
        mode = arena_printf(r->arena, "%s (%s)", mode, plan_data_form(r->plan)->name);
    if (r->plan->pass == PASS_FORWARD || mesh_size(r->mesh, &a->data) == 1) return NULL;
    return arena_printf(r->arena, "%s over %s%s", mode,
                        mesh_axes_text(r->mesh, r->arena, &a->data, false),
                        a->data_default ? ", by default: the axes that cut the data" : "");
}
/* Which means are averaged, before any number is seen: types know nothing of how many labels count
 * in a block. What the tokens weigh is marked as a planted mistake is. */
static void warn_means(Run *r) {
    int w = plan_local_means(r->plan) ? reference_loss_weights(r->program) : -1;
    if (w < 0) return;
    AxisList cut = reference_mean_axes(r->program, w);
    int64_t blocks = mesh_size(r->mesh, &cut), m = r->plan->microbatches;
    if (blocks * (m > 1 ? m : 1) < 2) return;
    for (int i = 0; i < r->program->nv; i++) {
        Val *v = &r->program->val[i];
        if (v->tensor != w || v->step >= 0) continue;
        v->fault = "normalise: local_mean";
        v->planted_at = r->plan->normalise_loc;
    }
    const char *ranks =
        blocks > 1 ? arena_printf(r->arena, "each of %lld blocks of tokens (%s)", (long long)blocks,
                                  mesh_axes_text(r->mesh, r->arena, &cut, true))
                   : "";
    const char *parts =
        m > 1 ? arena_printf(r->arena, "each of %lld micro-batches", (long long)m) : "";
    diag_warn(r->d, "W0402", r->plan->normalise_loc,
              "`normalise: global` divides by the count of all tokens",
              "%s%s%s is divided by its own count: a mean of means, which is the mean only where "
              "all have as many labels that count",
              ranks, blocks > 1 && m > 1 ? " in " : "", parts);
}
static bool middle(Run *r) {
    if (!run_lower(r)) return false;
    bool together = plan_data_unit(r->plan) != UNIT_PARAMETER;
    r->t->n_unasked = unasked_notes(r->program, r->d, &r->t->unasked);
    r->rep->data_parallel = data_parallel_text(r);
    r->t->n_undeclared = undeclared_notes(r->program, r->d, &r->t->undeclared);
    not_due_notes(r->program, r->d);
    bool plant = !r->o->sound;
    if (plant &&
        (!program_own_counts(r->program, r->d) || !apply_gradients(r->program, r->plan, r->d) ||
         !apply_faults(r->program, r->plan, r->d, r->o->fault)))
        return false;
    if (together) mark_units(r->program);
    if (wants(r, "lower")) program_dump(r->program, r->o->dump_to);
    bool planted = plant && (r->plan->n_faults || r->plan->n_gradients || r->o->fault ||
                             r->model->dims.balanced_apart);
    bool warn = planted || r->plan->trust == TRUST_DECLARED;
    r->found = r->o->no_verify ? 0 : verify(r->program, r->d, warn, NULL);
    warn_means(r);
    return warn || !r->found;
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
static void warn_idle(Run *r, Loc loc, const char *at, const char *fault) {
    diag_warn(r->d, "W0001", loc, "other data, sizes or passes may show it",
              "%s: '%s' is planted, and no number of this run shows it", at, fault);
}
/* A wrong structure whose values hold, or a planted mistake that changes nothing: another run may
 * be less lucky, and nobody should take it for a mistake that the check does not see. */
static void note_lucky(Run *r) {
    const Program *p = r->program;
    const Step *first = NULL;
    for (int i = p->ns - 1; i >= 0; i--)
        if (p->step[i].wrong) first = &p->step[i];
    for (int i = 0; i < p->ns; i++)
        if (p->step[i].fault && !p->step[i].wrong)
            warn_idle(r, p->step[i].planted_at, step_name(p, &p->step[i], r->arena),
                      p->step[i].fault);
    for (int i = 0; i < p->nv; i++)
        if (p->val[i].fault)
            warn_idle(r, p->val[i].planted_at, program_value_name(p, &p->val[i], r->arena),
                      p->val[i].fault);
    if (r->found && first)
        diag_warn(r->d, "W0401", first->loc, "other data, sizes or passes may show it",
                  "%s: the structure is wrong, and no number of this run shows it",
                  step_name(r->program, first, r->arena));
}
/* Where no number tells, as there are none or another mistake has changed them: what is planted and
 * changes none, whatever they are. */
static void note_idle(Run *r) {
    const Program *p = r->program;
    for (int i = 0; i < p->ns; i++) {
        const char *why = fault_idle(p, &p->step[i]);
        if (why)
            diag_warn(r->d, "W0001", p->step[i].planted_at, "another step, or another mistake",
                      "%s: '%s' is planted, and changes nothing: %s",
                      step_name(p, &p->step[i], r->arena), p->step[i].fault, why);
    }
}
static void events(Run *r) {
    const Hardware *h = hardware_of_plan(r->arena, r->d, r->o->hardware, r->plan->hardware,
                                         r->plan->dir, r->plan->hardware_loc);
    if (h) cost_simulate(r->t, h);
    if (h) cost_stages(r->t);
}
/* Blocks that do not fit stop PyTorch too. A label it believes as we do: the DTensor that it makes
 * has another size, which stops where it meets one that is right. */
static const char *torch_end(const Run *r, const Step *s) {
    if (!r->exec->stuck || !s || !program_of_torch(r->program)) return "";
    return s->unasked ? "; PyTorch moves no plain tensor by itself: it raises"
                      : "; PyTorch believes the label, and raises where that tensor meets one of "
                        "its true size; where it meets none, the numbers are others";
}
/* The line that is to blame for what a rank loads. */
static Loc source_loc(const Run *r, const TraceCheck *c) {
    const Program *p = r->program;
    for (int i = 0; i < p->nv; i++)
        if (p->val[i].fault && !strcmp(program_value_name(p, &p->val[i], r->arena), c->value))
            return p->val[i].planted_at;
    return (Loc){0};
}
/* ", in a step of line 13" of the plan in which the mistake is planted, "of recipe megatron-sp:6"
 * of another text; "": the step has no line, or it is the same one. */
static const char *step_of_line(Arena *a, Loc planted, Loc own) {
    if (!own.file || own.line < 1) return "";
    if (strcmp(planted.file, own.file))
        return arena_printf(a, ", in a step of %s:%d", own.file, own.line);
    return planted.line == own.line ? "" : arena_printf(a, ", in a step of line %d", own.line);
}
/* What mends a step that a line plants a mistake in, where it is told at that line: which line asks
 * for the step. NULL: nothing is to say, or it was planted by --fault, which has no line. */
static const char *planted_hint(const Run *r, const Step *s) {
    if (!s || !s->fault || !s->planted_at.file) return NULL;
    const Loc planted = s->planted_at, own = s->loc;
    if (own.file && !strcmp(planted.file, own.file) && planted.line == own.line &&
        planted.col == own.col)
        return NULL;
    return arena_printf(r->arena,
                        "planted here%s; `explain PLAN NAME` shows how the value came "
                        "about, `draw --view errors` where it began",
                        step_of_line(r->arena, planted, own));
}
static void values_differ(Run *r) {
    Trace *t = r->t;
    const TraceCheck *c = &t->checks[r->check->first_fail];
    const Step *s = c->step >= 0 ? &r->program->step[c->step] : NULL;
    const char *line = s ? unasked_line(r->program, s) : NULL;
    if (s && !line) line = undeclared_line(r->program, s);
    const char *planted = planted_hint(r, s);
    diag_error(r->d, "E0501",
               !s                    ? source_loc(r, c)
               : planted             ? s->planted_at
               : s->kind == ST_CLAIM ? program_place(r->program, s)
                                     : s->loc,
               planted ? planted : line, "%s is wrong on %s: %s%s", c->value,
               rankset_words(&c->ranks, r->arena), c->cause ? c->cause : "it differs",
               torch_end(r, s));
    t->diags = r->d->item;
    t->n_diags = r->d->n;
}
static void verdict(Run *r, bool valid, bool ran) {
    Trace *t = r->t;
    if (ran && !t->n_fail) note_lucky(r);
    else note_idle(r);
    t->end_to_end = r->rep->end_to_end_worst;
    t->end_to_end_off = r->rep->end_to_end_rel;
    t->end_to_end_bound = r->rep->end_to_end_bound;
    t->diags = r->d->item;
    t->n_diags = r->d->n;
    if (!valid) t->verdict = "invalid";
    else if (ran) t->verdict = t->n_fail || r->nonfinite ? "different" : "equivalent";
    int code = diags_exit(r->d);
    if (!code && ran && (t->n_fail || (r->o->strict && t->n_suspect))) code = 1;
    r->rep->exit = code;
    if (ran && t->n_fail) values_differ(r);
}

static uint64_t hash(const char *s, size_t n) {
    uint64_t h = 1469598103934665603u;
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return h;
}
/* Ranks that are processes: do all of them have the same plan, and make the same program of it, up
 * to its last number? */
static bool meet(Run *r, PlanText given, bool ready) {
    Ranks *all = r->o->ranks;
    size_t n;
    if (!all || !r->o->execute) return true;
    if (!ranks_meet(all, r->d, ready, hash(given.text, given.n), RANKS_PLAN)) return false;
    Arena *tmp = arena_new();
    const char *s = trace_text(r->t, tmp, true, &n);
    uint64_t h = hash(s, n);
    arena_free(tmp);
    r->t->backend = ranks_backend(all);
    return ranks_meet(all, r->d, true, h, RANKS_PROGRAM);
}
/* What no line of the plan leads to is said of its file: one of many that are checked together. */
static void name_file(Diags *d, int from, const char *file) {
    const char *said_of = diags_origin(d, (Loc){file, 1, 1}).file;
    for (int i = from; i < d->n; i++)
        if (!d->item[i].loc.file) d->item[i].loc = (Loc){said_of, 0, 0};
}
/* What there is to say of a plan whose schedule comes to no end. */
static Trace *stuck_trace(Run *r) {
    Trace *t = trace_new(r->arena);
    record_stuck(t, r->mesh, r->plan, r->model, r->stuck);
    t->verdict = "invalid";
    t->diags = r->d->item;
    t->n_diags = r->d->n;
    return t;
}

Trace *pipeline_run(Arena *arena, Diags *d, PlanText given, const PipelineOptions *o,
                    PipelineReport *report) {
    memset(report, 0, sizeof *report);
    Run r = {.arena = arena, .d = d, .o = o, .rep = report};
    int before = d->n;
    r.plan = report->plan = plan_parse(arena, d, given);
    if (o->sound) plan_ask_right(r.plan);
    /* a line that is wrong keeps nobody from hearing of the other mistakes */
    bool read = diags_errors(d) == r.plan->line_errors;
    if (!read) model_check_preset(arena, d, r.plan);
    bool built = read && supported(&r) && run_front(&r), valid = false;
    r.t = built ? trace_new(arena) : NULL;
    if (built) valid = middle(&r);
    if (!built || !r.program) {
        meet(&r, given, false);
        report->exit = diags_exit(d);
        name_file(d, before, given.file);
        return o->stuck && r.stuck ? stuck_trace(&r) : NULL;
    }
    record_program(r.t, r.program, r.plan, r.model, r.plan->dtype);
    bool ran = false, together = meet(&r, given, valid);
    if (valid) {
        if (o->events) events(&r);
        if (o->execute || o->structure) level0(&r);
        if (o->execute && together) ran = execute_run(&r);
        bool alone = !o->ranks && o->device;
        if (ran && alone && o->device->backend) r.t->backend = o->device->backend;
        if (o->events && r.t->n_routed) events(&r); /* now it is known which rows there are */
    }
    verdict(&r, valid, ran);
    name_file(d, before, given.file);
    return r.t;
}
