/* The report of a run for people: one line, the head of a failure, and the short report of `run`.
 * Refuses to explain more than the trace knows; `explain` goes into detail. */
#include "base/text.h"
#include "cli/cli.h"
#include "cli/find.h"
#include "cli/rows.h"
#include "trace/trace_times.h"
#include "trace/trace_way.h"
#include <math.h>
#include <string.h>

enum {
    SHOWN_SUMS = 3,
    MAIN_SHAPES = 12,
    SHOWN_RANKS = 16,
    SHOWN_NOTES = 8,
    SHOWN_UNOBSERVABLE = 3
};

static const char *or_empty(const char *s) { return s ? s : ""; }

/* ---- one line ---- */
static const char *share_text(double used, Arena *a) {
    if (!isfinite(used)) return arena_printf(a, "%g times", used);
    if (used > 9.99) return arena_printf(a, "%.3g times", used);
    double percent = used * 100;
    return arena_printf(a,
                        percent >= 9.95                  ? "%.0f %% of"
                        : percent >= 0.1 || percent == 0 ? "%.2g %% of"
                                                         : "%.0e %% of",
                        percent);
}
static const Diag *first_error(const Diags *d) {
    for (int i = 0; i < d->n; i++)
        if (d->item[i].severity == DIAG_ERROR) return &d->item[i];
    return NULL;
}
int summary_structure(const Trace *t) {
    int n = 0;
    for (int i = 0; i < t->n_checks; i++)
        n += t->checks[i].level == LEVEL_STRUCTURE && t->checks[i].verdict &&
             !strcmp(t->checks[i].verdict, "FAIL");
    return n;
}
/* "wrong at 1 step"; for values that hold all the same. */
static const char *structure_text(const Trace *t, Arena *arena) {
    int n = summary_structure(t);
    return n ? arena_printf(arena, "wrong at %d step%s", n, n == 1 ? "" : "s") : NULL;
}
static bool holds(const Trace *t) { return t->verdict && strcmp(t->verdict, "equivalent") == 0; }
/* check --static: every rank runs the one program, so all of a group meet in the same order. */
static const char *static_line(const Trace *t, const Loaded *l, Arena *arena) {
    const char *structure = structure_text(t, arena), *if_so = undeclared_text(t, 0, arena);
    const Plan *p = l->report.plan;
    bool unheld = p && (p->expect.equivalent == 0 || p->expect.first_wrong);
    Str s = str_new(arena);
    if (structure) str_addf(&s, "the structure is %s", structure);
    else str_addf(&s, "rules and structure hold%s%s", if_so ? ", " : "", if_so ? if_so : "");
    str_addf(&s, ", %d value%s, %d collective%s in one order on all ranks, not executed",
             t->n_values, t->n_values == 1 ? "" : "s", t->n_collectives,
             t->n_collectives == 1 ? "" : "s");
    if (unheld) str_add(&s, ": what it expects of values is not held");
    return s.s;
}
bool summary_unexecuted(const Trace *t) { return !t->verdict && !t->executed && t->n_checks; }
const char *summary_line(const Trace *t, const Loaded *l, Arena *arena) {
    const Diag *g = first_error(l->d);
    if (!t)
        return g ? arena_printf(arena, "%s %s", g->code, table_clean(g->message, 0, arena))
                 : "not run";
    Str s = str_new(arena);
    if (summary_unexecuted(t)) return static_line(t, l, arena);
    const char *if_so = holds(t) ? undeclared_text(t, 0, arena) : NULL;
    str_add(&s, t->verdict ? t->verdict : "not run");
    if (if_so) str_addf(&s, ", %s", if_so);
    if (holds(t) && summary_structure(t))
        str_addf(&s, ", but the structure is %s", structure_text(t, arena));
    if (t->first_wrong) str_addf(&s, ", first wrong value %s", t->first_wrong);
    int64_t checks = t->n_pass + t->n_suspect + t->n_fail;
    if (checks) {
        str_addf(&s, ", %lld check%s", (long long)checks, checks == 1 ? "" : "s");
        if (t->n_fail) str_addf(&s, ", %lld failed", (long long)t->n_fail);
        if (t->n_suspect) str_addf(&s, ", %lld suspect", (long long)t->n_suspect);
        if (l->report.quick) str_add(&s, ", products by projections");
    }
    if (t->worst_value && !t->n_fail)
        str_addf(&s, ", worst %s used %s its bound", t->worst_value,
                 share_text(t->worst_used, arena));
    return s.s;
}

/* ---- the head of a failure ---- */
static const TraceCheck *first_with(const Trace *t, const char *verdict) {
    for (int i = 0; i < t->n_checks; i++)
        if (t->checks[i].level != LEVEL_STRUCTURE && t->checks[i].verdict &&
            strcmp(t->checks[i].verdict, verdict) == 0)
            return &t->checks[i];
    return NULL;
}
/* With --strict a value that only a bad summation order could explain is a failure too. */
const TraceCheck *summary_failure(const Trace *t, bool strict) {
    const TraceCheck *k = first_with(t, "FAIL");
    return k || !strict ? k : first_with(t, "SUSPECT");
}
const char *summary_cause(const Trace *t, bool strict) {
    const TraceCheck *k = summary_failure(t, strict);
    return k ? k->cause : NULL;
}
static void line(Cli *c, const char *indent, const char *name, const char *text) {
    str_addf(&c->text, "%s%-15s %s\n", indent, name, table_clean(text, 0, c->arena));
}
/* The axis of a wrong value: what moved it, what it still owes, or what cuts it. Of an input or a
 * parameter nobody moved none is told: what cuts it says nothing of why it is wrong. */
static const char *axis_of(const FoundStep *f, const TraceValue *v) {
    if (!f) return NULL;
    if (f->collective) return f->collective->axis ? f->collective->axis : f->collective->axes;
    if (f->move) return f->move->axes;
    if (v && v->shape.pending) return v->shape.pending;
    for (int i = 0; v && i < v->shape.n_places; i++)
        if (v->shape.place[i].place && strncmp(v->shape.place[i].place, "shard", 5) == 0)
            return v->shape.place[i].axis;
    return NULL;
}
/* The plan line of a step: of its collective or local move, or of a parameter that it reads. */
static bool plan_line(const Trace *t, const FoundStep *f, const char **file, int *at) {
    if (f && f->collective && f->collective->line > 0) {
        *file = f->collective->file;
        *at = f->collective->line;
        return true;
    }
    if (f && f->move && f->move->line > 0) {
        *file = f->move->file;
        *at = f->move->line;
        return true;
    }
    for (int i = 0; f && f->compute && i < f->compute->n_inputs; i++) {
        const TraceParam *p = lookup_param(t, f->compute->inputs[i]);
        if (!p || p->line <= 0) continue;
        *file = p->file;
        *at = p->line;
        return true;
    }
    return false;
}
/* The text of a line, of the plan or of the file it was imported from, without its indentation; ""
 * if that is not at hand. */
static const char *source_line(const Loaded *l, const char *file, int at, Arena *a) {
    const char *p;
    size_t n, blank = 0;
    if (l->is_trace || !diags_line(l->d, file, at, &p, &n)) return "";
    while (blank < n && (p[blank] == ' ' || p[blank] == '\t')) blank++;
    return arena_strndup(a, p + blank, n - blank);
}
static const char *errors_text(const TraceCheck *k, Arena *a) {
    Str s = str_new(a);
    for (int i = 0; i < k->n_rank_error && i < SHOWN_RANKS; i++)
        str_addf(&s, "%s%lld: %.2g", i ? "  " : "", (long long)k->rank_error[i].rank,
                 k->rank_error[i].error);
    if (k->n_rank_error > SHOWN_RANKS)
        str_addf(&s, "  and %d more ranks", k->n_rank_error - SHOWN_RANKS);
    return s.s;
}
static void head_of_check(Cli *c, const Loaded *l, const TraceCheck *k, const char *indent) {
    const Trace *t = l->trace;
    Arena *a = c->arena;
    StepIndex x = lookup_steps(t, a);
    const FoundStep *f = k->step >= 0 && k->step < x.n ? &x.step[k->step] : NULL;
    const TraceValue *v = lookup_operand(t, k->value, k->step);
    const char *axis = axis_of(f, v), *file = NULL;
    int at = 0;
    str_add(&c->text, indent);
    cli_paint(c, "1;31",
              arena_printf(a, "first %s value %s",
                           strcmp(k->verdict, "FAIL") == 0 ? "wrong" : "suspect", k->value));
    if (k->step >= 0)
        str_addf(&c->text, "  (step %d, %s)", k->step,
                 phase_text(k->pass ? k->pass
                            : v     ? v->pass
                                    : PHASE_NONE));
    str_add(&c->text, "\n");
    line(c, indent, "  ranks", rankset_text(&k->ranks, a));
    if (axis) line(c, indent, "  axis", axis);
    const char *numbers = arena_printf(a, "got %.9g, want %.9g", k->got == 0 ? 0 : k->got,
                                       k->want == 0 ? 0 : k->want);
    if (k->n_index)
        line(c, indent, "  at",
             arena_printf(a, "%s: %s", cell_shape(a, k->index, k->n_index).text, numbers));
    else if (k->got != 0 || k->want != 0) line(c, indent, "  number", numbers);
    line(c, indent, "  error",
         k->bound > 0 ? arena_printf(a, "%.3g, bound %.3g: %s its bound", k->max_abs, k->bound,
                                     share_text(k->used, a))
                      : arena_printf(a, "%.3g, where every bit must be right", k->max_abs));
    if (plan_line(t, f, &file, &at))
        line(c, indent, "  plan line",
             arena_printf(a, "%s:%d  %s", or_empty(file), at, source_line(l, file, at, a)));
    if (k->cause) line(c, indent, "  likely cause", k->cause);
    if (k->n_rank_error) line(c, indent, "  error per rank", errors_text(k, a));
    if (l->report.loss_wrong)
        line(c, indent, "  loss",
             arena_printf(a, "%.9g, of the unsharded model %.9g", l->report.loss,
                          l->report.loss_unsharded));
}
void summary_head(Cli *c, const Loaded *l, const char *indent) {
    if (!l->trace) return;
    const TraceCheck *k = summary_failure(l->trace, c->o.strict);
    if (k) {
        head_of_check(c, l, k, indent);
        return;
    }
    const Diag *g = first_error(l->d);
    if (!g) return;
    str_add(&c->text, indent);
    cli_paint(c, "1;31", g->code);
    str_addf(&c->text, " %s", table_clean(g->message, 0, c->arena));
    if (g->loc.file && g->loc.line) str_addf(&c->text, "  (%s:%d)", g->loc.file, g->loc.line);
    str_add(&c->text, "\n");
}

/* ---- the short report ---- */
static void heading(Cli *c, const char *text) {
    str_add(&c->text, "\n");
    cli_paint(c, "1", text);
    str_add(&c->text, "\n");
}
static void report_verdict(Cli *c, const Loaded *l) {
    const Trace *t = l->trace;
    const char *v = t->verdict ? t->verdict : "not run";
    const char *if_so = holds(t) ? undeclared_text(t, SHOWN_SUMS, c->arena) : NULL;
    const char *color = if_so ? "1;33" : holds(t) ? "1;32" : t->verdict ? "1;31" : "1";
    str_addf(&c->text, "%s: ", table_clean(or_empty(t->plan), 0, c->arena));
    cli_paint(c, color, v);
    if (if_so) str_addf(&c->text, ", %s", if_so);
    else if (t->verdict && strcmp(v, "invalid") != 0)
        str_addf(&c->text, " %s the unsharded model", strcmp(v, "different") == 0 ? "from" : "to");
    str_add(&c->text, "\n");
}
/* What a quick check would have noticed, by the value of which it would have noticed least. */
static void report_projected(Cli *c, const Loaded *l) {
    Arena *a = c->arena;
    TraceProjected q = trace_projected(l->trace);
    const char *seed =
        l->report.plan ? arena_printf(a, ", seed %llu", (unsigned long long)l->report.plan->seed)
                       : "";
    bool asked = c->o.check && !strcmp(c->o.check, "quick");
    if (asked && l->trace->executed && !l->report.quick)
        line(c, "  ", "projected",
             "nothing, the check is full: in bf16 the roundings of a row hide what it looks for");
    if (l->report.quick && !q.notice)
        line(c, "  ", "projected", "nothing: no product that gets cheaper, no sum over ranks");
    if (q.partly)
        line(c, "  ", "in float64",
             arena_printf(a, "%.2g %% of the numbers of %lld large op%s, drawn%s; bits hold all",
                          100 * (double)q.asked / (double)q.numbers, (long long)q.partly,
                          q.partly == 1 ? "" : "s", seed));
    if (!q.notice) return;
    line(c, "  ", "projected",
         arena_printf(a, "%s, by %d sums with random weights of each 64 numbers%s",
                      trace_projected_text(&q, a), q.projections, seed));
    line(c, "  ", "  notices",
         arena_printf(a,
                      "any number off by more than %.2g %% of its row's root mean square (%s), "
                      "with probability 1 - 2^-%d whatever else is off",
                      100 * q.notice->notice, q.notice->value, q.projections));
}
static void report_run(Cli *c, const Loaded *l) {
    const Trace *t = l->trace;
    Arena *a = c->arena;
    Str mesh = str_new(a);
    for (int i = 0; i < t->n_axes; i++)
        str_addf(&mesh, "%s=%lld ", t->axes[i].name, (long long)t->axes[i].size);
    for (int i = 0; i < t->n_groups; i++)
        str_addf(&mesh, "%s=%s ", t->groups[i].name, t->groups[i].axes);
    str_addf(&mesh, "(%lld rank%s)", (long long)t->ranks, t->ranks == 1 ? "" : "s");
    line(c, "  ", "mesh", mesh.s);
    if (t->model_name)
        line(c, "  ", "model",
             arena_printf(a, "%s, %s, %s%s%s", t->model_name, pass_words[t->pass],
                          or_empty(t->dtype), t->executed_in ? ", numbers computed in " : "",
                          or_empty(t->executed_in)));
    if (l->report.shrunk) line(c, "  ", "shrunk", l->report.shrunk);
    if (l->report.data_parallel) line(c, "  ", "data parallel", l->report.data_parallel);
    if (t->n_pass + t->n_suspect + t->n_fail)
        line(c, "  ", "checks",
             arena_printf(a, "%lld pass, %lld suspect, %lld fail", (long long)t->n_pass,
                          (long long)t->n_suspect, (long long)t->n_fail));
    if (holds(t) && summary_structure(t))
        line(c, "  ", "structure",
             arena_printf(a, "%s, and no number of this run shows it", structure_text(t, a)));
    if (t->worst_value)
        line(c, "  ", "worst",
             arena_printf(a, "%s used %s its bound", t->worst_value, share_text(t->worst_used, a)));
    report_projected(c, l);
    if (c->o.no_end_to_end && t->executed)
        line(c, "  ", "end to end", "not compared with the unsharded run, as --no-end-to-end asks");
    else if (l->report.quick && !l->report.end_to_end)
        line(c, "  ", "end to end", "not compared with the unsharded run; --end-to-end does it");
    if (l->report.end_to_end_worst)
        line(c, "  ", "end to end",
             arena_printf(a, "%s is off by %.2g of its largest number, bound %.2g",
                          l->report.end_to_end_worst, l->report.end_to_end_rel,
                          l->report.end_to_end_bound));
}
/* Collectives of one pass, counted by op and group, with what a rank sends in them. */
typedef struct {
    Phase pass;
    const char *op, *axis;
    int64_t n, skipped;
} CommSum;
static int in_sum(const TraceCollective *k, const void *arg) {
    const CommSum *s = arg;
    return k->pass == s->pass && !strcmp(or_empty(k->op), s->op) &&
           !strcmp(or_empty(k->axis ? k->axis : k->axes), s->axis);
}
/* A heading over what the records show of one micro-batch. */
static const char *of_parts(const Trace *t, const char *text, Arena *a) {
    int64_t n = trace_microbatches(t);
    return n < 2 ? text
                 : arena_printf(a, "%s (%s of %lld, and what is done once a step)", text,
                                trace_way_one(trace_both_ways(t)), (long long)n);
}
static void report_comms(Cli *c, const Trace *t) {
    CommSum *sum = NULL;
    int n = 0, cap = 0;
    bool rows = false; /* whose bytes are only expected */
    if (t->n_collectives == 0) {
        heading(c, "Collectives: none");
        return;
    }
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *k = &t->collectives[i];
        const char *axis = or_empty(k->axis ? k->axis : k->axes), *op = or_empty(k->op);
        int j = 0;
        while (j < n && !in_sum(k, &sum[j])) j++;
        if (j == n) *ARENA_PUSH(c->arena, sum, n, cap) = (CommSum){k->pass, op, axis, 0, 0};
        sum[j].n += collective_times(k);
        sum[j].skipped += k->skipped;
        rows |= k->row_bytes > 0;
    }
    heading(c, of_parts(t, "Collectives, bytes sent per rank", c->arena));
    for (int j = 0; j < n; j++) {
        bool first = j == 0 || sum[j].pass != sum[j - 1].pass;
        str_addf(&c->text, "  %-11s %3lld × %-24s %10s", first ? phase_text(sum[j].pass) : "",
                 (long long)sum[j].n, arena_printf(c->arena, "%s(%s)", sum[j].op, sum[j].axis),
                 lookup_sent_text(t, in_sum, &sum[j], false, c->arena));
        if (sum[j].skipped)
            str_addf(&c->text, "; %lld skipped by a planted mistake", (long long)sum[j].skipped);
        str_add(&c->text, "\n");
    }
    const char *run = rows ? rows_sent(c->arena, t, -1) : NULL;
    if (rows)
        str_addf(&c->text,
                 "  rows of experts: as if all were asked for as often%s%s; by pairs: "
                 "`comms TRACE --pairs`\n",
                 run ? "; in all " : "", or_empty(run));
    if (trace_microbatches(t) > 1) str_addf(&c->text, "  %s\n", lookup_step_text(t, -1, c->arena));
}
/* Where the local shape changes, in the first layer's forward: the story of a block in a dozen
 * lines. */
static void report_shapes(Cli *c, const Trace *t) {
    static const Column columns[] = {{"value", "", false, 0},
                                     {"symbolic", "", false, 0},
                                     {"local", "", false, 0},
                                     {"bytes", "", true, 0}};
    Table table = table_new(c->arena, "shape", columns, 4);
    const char *last = NULL;
    int layer = -1, left = 0;
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        bool forward = phase_or_forward(v->pass) == PHASE_FORWARD;
        if (!forward || !v->shape.symbolic || !v->shape.n_local) continue;
        if (layer < 0) layer = v->layer;
        if (v->layer >= 0 && layer >= 0 && v->layer != layer) continue;
        if (last && strcmp(last, v->shape.symbolic) == 0) continue;
        last = v->shape.symbolic;
        if (table.n_rows == MAIN_SHAPES) {
            left++;
            continue;
        }
        Cell *r = table_row(&table);
        r[0] = cell_text(arena_printf(c->arena, "  %s", or_empty(v->shape.name)));
        r[1] = cell_text(v->shape.symbolic);
        r[2] = cell_shape(c->arena, v->shape.local[0].shape, v->shape.nd);
        r[3] = cell_bytes(c->arena, v->shape.local[0].bytes);
    }
    if (!table.n_rows) return;
    heading(c, t->n_classes > 1 ? "Local shapes of the first rank, where they change"
                                : "Local shapes, where they change");
    const char *text = table_render(&table, "text", c->look, c->arena);
    str_add(&c->text, strchr(text, '\n') + 1); /* no head */
    if (left) str_addf(&c->text, "  and %d more: shardproof shapes\n", left);
}
static void report_notes(Cli *c, const Loaded *l) {
    const Trace *t = l->trace;
    int inferred = 0, shown = 0;
    for (int i = 0; i < t->n_collectives; i++)
        inferred += t->collectives[i].inferred && !undeclared_collective(t, &t->collectives[i]);
    if (!inferred && !l->report.unobservable) return;
    heading(c, "Notes");
    if (inferred)
        str_addf(&c->text, "  %d collective%s that no style asked for:\n", inferred,
                 inferred == 1 ? "" : "s");
    for (int i = 0; i < t->n_collectives && shown < SHOWN_NOTES; i++) {
        const TraceCollective *k = &t->collectives[i];
        if (!k->inferred || undeclared_collective(t, k)) continue;
        str_addf(&c->text, "    step %d %s(%s) of %s: %s\n", k->step, or_empty(k->op),
                 or_empty(k->axis ? k->axis : k->axes), or_empty(k->value), or_empty(k->why));
        shown++;
    }
    if (inferred > shown)
        str_addf(&c->text, "    and %d more: shardproof comms\n", inferred - shown);
    const char **unseen = l->report.unobservable_text; /* ends with NULL, and may end early */
    int told = 0;
    if (l->report.unobservable)
        str_addf(&c->text, "  %lld rank%s of reductions could be missing unnoticed%s\n",
                 (long long)l->report.unobservable, l->report.unobservable == 1 ? "" : "s",
                 unseen && unseen[0] ? ":" : "");
    for (; unseen && unseen[told] && told < SHOWN_UNOBSERVABLE; told++)
        str_addf(&c->text, "    %s\n", unseen[told]);
    if (told && l->report.unobservable > told)
        str_addf(&c->text, "    and %lld more\n", (long long)l->report.unobservable - told);
}
static void report_time(Cli *c, const Trace *t) {
    if (!t->n_events) return;
    bool differ = false;
    for (int i = 0; i < t->n_events; i++)
        differ |= t->events[i].ranks.n && rankset_count(&t->events[i].ranks) < t->ranks;
    bool busiest;
    const RankSet *slowest = trace_slowest(t, &busiest);
    if (!slowest) return;
    TraceTimes s = trace_times_of(t, rankset_first(slowest));
    Arena *a = c->arena;
    heading(c, of_parts(t, "Time, modelled", a));
    const char *part[3],
        *span = time_sum_text((double[]){s.compute, s.exposed, s.waiting}, 3, part, a);
    str_addf(&c->text, "  %s = compute %s + exposed communication %s", span, part[0], part[1]);
    if (s.waiting > 0) str_addf(&c->text, " + waiting for other ranks %s", part[2]);
    if (s.comm > 0)
        str_addf(&c->text, "; %s of %s of communication is hidden",
                 percent_text(a, s.hidden, s.comm),
                 comm_text(s.comm, s.hidden, s.beside, part[1], a));
    if (s.beside > 0)
        str_addf(&c->text, ", %s behind other communication", percent_text(a, s.beside, s.comm));
    if (differ)
        str_addf(&c->text, "; on the %s, %s", busiest ? "busiest" : "last to end",
                 rankset_words(slowest, a));
    double end = 0, busy = 0;
    for (int i = 0; i < t->n_actions; i++) {
        const TraceAction *x = &t->actions[i];
        bool second = i && t->actions[i - 1].joined && t->actions[i - 1].rank == x->rank;
        end = x->end > end ? x->end : end;
        busy += second ? 0 : x->end - x->start; /* the two of a pair have the same span */
    }
    int places = t->n_actions ? t->actions[t->n_actions - 1].rank + 1 : 0;
    if (end > 0)
        str_addf(
            &c->text,
            "\n  all %lld micro-batches by the schedule %s: %s, ranks idle %.1f %% of it"
            "\n  (from the first forward to the last backward; what is done once a step is extra)",
            (long long)trace_microbatches(t), t->schedule, time_text(end, a),
            100 * (1 - busy / (end * places)));
    str_addf(&c->text, "\n  %s\n", or_empty(t->hardware));
}
static void report_verbose(Cli *c, const Loaded *l) {
    const PipelineReport *r = &l->report;
    Arena *a = c->arena;
    if (!c->o.verbose) return;
    heading(c, "This machine");
    str_addf(&c->text,
             "  sharded %s, of it inputs and weights %s, reference %s, checks %s; values of the "
             "ranks at most %s; %s FLOP in distinct work; %s\n",
             time_text(r->seconds_sharded, a), time_text(r->seconds_loaded, a),
             time_text(r->seconds_reference, a), time_text(r->seconds_check, a),
             bytes_text(r->peak_bytes, a), count_text(r->flops_distinct, a), or_empty(r->gemm));
}
/* ---- --against ---- */
static int64_t count_results(const Trace *t, const char *result) {
    int64_t n = 0;
    for (int i = 0; i < t->n_against; i++) n += !strcmp(t->against[i].result, result);
    return n;
}
const char *summary_against_line(const Trace *t, Arena *arena) {
    static const char *const results[] = {"equal", "different", "not read", "only in the file",
                                          "only in the model"};
    Str s = str_new(arena);
    for (size_t i = 0; t->n_against && i < sizeof results / sizeof *results; i++) {
        int64_t n = count_results(t, results[i]);
        if (n || !i) str_addf(&s, "%s%lld %s", i ? ", " : "", (long long)n, results[i]);
    }
    return s.n ? s.s : NULL;
}
/* What only one side has, as one line of names: there may be hundreds. */
static void only_in(Cli *c, const Trace *t, const char *result, Str *notes) {
    enum { SHOWN = 12 };
    int64_t n = count_results(t, result), told = 0;
    if (!n) return;
    str_addf(notes, "%s (%lld): ", result, (long long)n);
    for (int i = 0; i < t->n_against; i++) {
        if (strcmp(t->against[i].result, result)) continue;
        if (told++ < SHOWN || c->o.verbose)
            str_addf(notes, "%s%s", told > 1 ? ", " : "",
                     table_clean(t->against[i].name, 0, c->arena));
    }
    if (n > SHOWN && !c->o.verbose)
        str_addf(notes, " and %lld more (-v shows them)", (long long)n - SHOWN);
    str_add(notes, "\n");
}
void summary_against(Cli *c, const Loaded *l) {
    enum { ALL = 40 };
    static const Column columns[] = {
        {"name", "against", false, 0},       {"result", "result", false, 0},
        {"max_abs", "max abs", true, 0},     {"max_rel", "of largest", true, 0},
        {"tolerance", "tolerance", true, 0}, {"count", "numbers", true, 0},
        {"why", "why", false, COL_OPTIONAL}};
    const Trace *k = l->trace;
    if (!k || !k->n_against) return;
    Table t = table_new(c->arena, "against", columns, 7);
    int64_t hidden = 0, equal = count_results(k, "equal");
    for (int i = 0; i < k->n_against; i++) {
        const TraceAgainst *x = &k->against[i];
        bool ok = !strcmp(x->result, "equal"), unread = !strcmp(x->result, "not read");
        if (!strncmp(x->result, "only", 4)) continue;
        if (ok && !c->o.verbose && equal > ALL) {
            hidden++;
            continue;
        }
        Cell *row = table_row(&t);
        row[0] = cell_text(x->name);
        row[1] = cell_text(ok || unread ? x->result : "DIFFERENT");
        if (x->why) row[6] = cell_text(x->why);
        if (unread) continue;
        row[4] = cell_real(c->arena, x->tolerance);
        row[5] = cell_int(c->arena, x->count);
        if (x->why && !ok) continue; /* no numbers were compared */
        row[2] = cell_real(c->arena, x->max_abs);
        row[3] = cell_real(c->arena, x->max_rel);
    }
    if (hidden)
        str_addf(&t.notes,
                 t.n_rows ? "and %lld that are equal (-v shows them)\n"
                          : "against: all %lld that were compared are equal (-v shows "
                            "them)\n",
                 (long long)hidden);
    only_in(c, k, "only in the file", &t.notes);
    only_in(c, k, "only in the model", &t.notes);
    str_addf(&c->text, "\n%s", /* no head of a table that has no row */
             t.n_rows ? table_render(&t, "text", c->look, c->arena)
                      : text_visible_lines(c->arena, t.notes.s, t.notes.n));
}
void summary_report(Cli *c, const Loaded *l, const char *const *files, int n_files) {
    const Trace *t = l->trace;
    report_verdict(c, l);
    summary_head(c, l, "  ");
    report_run(c, l);
    report_comms(c, t);
    report_shapes(c, t);
    report_notes(c, l);
    report_time(c, t);
    summary_against(c, l);
    report_verbose(c, l);
    if (n_files) heading(c, "Files");
    for (int i = 0; i < n_files; i++) str_addf(&c->text, "  %s\n", files[i]);
}
