/* See pipeline.h. */
#include "render/pipeline/pipeline.h"
#include "base/text.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const char *stages_of(const Pipe *p, const PipeRow *r) {
    Str s = str_new(p->a);
    bool *seen = ARENA_ARRAY(p->a, bool, p->t->stages + 1);
    for (int i = 0; i < r->n; i++) {
        int g = r->a[i].stage;
        if (g < 0 || g >= p->t->stages || seen[g]) continue;
        seen[g] = true;
    }
    if (r->stuck && r->stuck->stage >= 0 && r->stuck->stage < p->t->stages)
        seen[r->stuck->stage] = true;
    for (int g = 0; g < p->t->stages; g++)
        if (seen[g]) str_addf(&s, "%s%d", s.n ? ", " : "", g);
    return s.s;
}
/* Actions that run together have the same times: counted once. */
static void add_up(Pipe *p, PipeRow *r) {
    int live = 0;
    bool forward = p->t->pass == PASS_FORWARD; /* nothing waits for a backward */
    for (int i = 0; i < r->n; i++) {
        const TraceAction *a = &r->a[i];
        live = forward ? 0 : action_flight(a, live);
        if (live > r->flight) r->flight = live;
        if (!(i && r->a[i - 1].joined)) r->busy += a->end - a->start;
        if (a->end > p->end) p->end = a->end;
        if (a->microbatch >= p->parts) p->parts = a->microbatch + 1;
    }
    r->stages = stages_of(p, r);
}
static bool nothing(const ViewCall *c, const char *why, const char *help) {
    diag_error(c->d, "E0211", diag_nowhere, help, "nothing to draw in view 'pipeline': %s", why);
    return false;
}
bool pipe_read(Pipe *p, const ViewCall *c) {
    const Trace *t = c->t;
    *p = (Pipe){.t = t, .a = c->arena, .name = t->schedule ? t->schedule : "pipeline"};
    p->parts = (int)trace_microbatches(t); /* what stands still may not have come to all */
    p->stuck = t->n_stuck > 0;
    if (!t->n_actions && !p->stuck)
        return nothing(c, "the plan has no pipeline",
                       "pipeline: {schedule: 1f1b, microbatches: 8}");
    for (int i = 0; i < t->n_actions; i++)
        if (t->actions[i].rank >= p->n) p->n = t->actions[i].rank + 1;
    for (int i = 0; i < t->n_stuck; i++)
        if (t->stuck[i].rank >= p->n) p->n = t->stuck[i].rank + 1;
    p->row = ARENA_ARRAY(p->a, PipeRow, p->n);
    for (int i = 0; i < t->n_stuck; i++) p->row[t->stuck[i].rank].stuck = &t->stuck[i];
    for (int i = 0; i < t->n_actions; i++) {
        if (t->actions[i].rank < 0 || !strchr("FBIW", *t->actions[i].kind))
            return nothing(c, "an action of the trace is none", NULL);
        PipeRow *r = &p->row[t->actions[i].rank];
        if (!r->n++) r->a = &t->actions[i];
    }
    double busy = 0;
    for (int k = 0; k < p->n; k++) add_up(p, &p->row[k]);
    for (int k = 0; k < p->n; k++) busy += p->row[k].busy;
    p->unit = 1;
    if (p->stuck) p->end += p->unit; /* room for the first action that is not done */
    if (p->end <= 0)
        return nothing(c, "the trace has no times",
                       "draw the plan, or a trace of a run with times");
    p->idle = 1 - busy / (p->end * p->n);
    return true;
}

/* Of those that come to an end the first one's mean forward; 0: none does. */
static double mean_forward(const Pipe *all, int n) {
    double sum = 0;
    int forwards = 0;
    for (int k = 0; k < n && !forwards; k++)
        for (int i = 0; i < all[k].t->n_actions && !all[k].stuck; i++) {
            const TraceAction *a = &all[k].t->actions[i];
            if (*a->kind == 'F') sum += a->end - a->start, forwards++;
        }
    return forwards ? sum / forwards : 0;
}
/* The same with actions of another length. */
static void stretch(Pipe *p, double unit) {
    Trace *t = ARENA_NEW(p->a, Trace);
    *t = *p->t;
    t->actions = ARENA_ARRAY(p->a, TraceAction, t->n_actions + 1);
    for (int i = 0; i < t->n_actions; i++) {
        t->actions[i] = p->t->actions[i];
        t->actions[i].start *= unit, t->actions[i].end *= unit;
    }
    for (int k = 0; k < p->n; k++) {
        if (p->row[k].n) p->row[k].a = t->actions + (p->row[k].a - p->t->actions);
        p->row[k].busy *= unit;
    }
    p->t = t, p->end *= unit, p->unit = unit;
}
/* Two of one name are told apart by their plans' names, or else by their places. */
static void tell_apart(Pipe *all, int n) {
    bool *twice = ARENA_ARRAY(all->a, bool, n), *plans = ARENA_ARRAY(all->a, bool, n);
    for (int k = 0; k < n; k++) {
        plans[k] = all[k].t->plan && *all[k].t->plan;
        for (int j = 0; j < n; j++) {
            if (j == k || strcmp(all[j].name, all[k].name) != 0) continue;
            twice[k] = true;
            plans[k] &= !text_same(all[j].t->plan, all[k].t->plan);
        }
    }
    for (int k = 0; k < n; k++)
        if (twice[k])
            all[k].name = plans[k] ? arena_printf(all->a, "%s of %s", all[k].name, all[k].t->plan)
                                   : arena_printf(all->a, "%s (%d)", all[k].name, k + 1);
}
int pipe_read_all(const ViewCall *c, Pipe *all, double *span) {
    int n = c->o->n_several + 1;
    *span = 0;
    for (int k = 0; k < n; k++) {
        ViewCall one = *c;
        if (k) one.t = c->o->several[k - 1];
        if (!pipe_read(&all[k], &one)) return 0;
    }
    tell_apart(all, n);
    double unit = mean_forward(all, n);
    for (int k = 0; k < n; k++) {
        if (all[k].stuck && unit > 0) stretch(&all[k], unit);
        *span = fmax(*span, all[k].end);
    }
    return n;
}

const char *pipe_idle(const Pipe *p, const PipeRow *r) {
    return arena_printf(p->a, "%.1f %%", 100 * (1 - r->busy / p->end));
}
/* "rank 0 stands before 0B0 and waits for ...", as the diagnostic has it. */
static void stand(Str *s, const TraceStuck *b) {
    if (b->action) str_addf(s, "rank %d stands before %s and waits for ", b->rank, b->action);
    str_add(s, b->waits);
}
const char *pipe_title(const Pipe *p) {
    if (p->stuck)
        return arena_printf(p->a, "%s comes to no end: %s",
                            p->t->schedule ? p->name : "The schedule", pipe_cell(p, 3));
    return arena_printf(p->a, "%s: %d rank%s of %s, %d micro-batch%s, %.1f %% of their time idle",
                        p->name, p->n, p->n == 1 ? "" : "s",
                        p->t->schedule_axis ? p->t->schedule_axis : "the pipeline", p->parts,
                        p->parts == 1 ? "" : "es", 100 * p->idle);
}
/* How far apart two ranks are that are neighbours on the schedule's axis. */
static int64_t stride_of(const Trace *t) {
    int64_t stride = 1;
    for (int i = t->n_axes - 1; i >= 0; i--) {
        if (t->schedule_axis && !strcmp(t->axes[i].name, t->schedule_axis)) break;
        stride *= t->axes[i].size;
    }
    return stride;
}
/* Which rows compute values of the forward pass again in their backwards, as "0, 2"; "" if none
 * does, *all if each does. */
static const char *rows_again(const Pipe *p, bool *all) {
    const Trace *t = p->t;
    Str s = str_new(p->a);
    int64_t stride = stride_of(t);
    int n = 0;
    for (int k = 0; k < p->n; k++) {
        bool again = false;
        for (int i = 0; i < t->n_computes && !again; i++)
            again = t->computes[i].recompute && rankset_has(&t->computes[i].ranks, k * stride);
        if (again) str_addf(&s, "%s%d", n++ ? ", " : "", k);
    }
    *all = n == p->n;
    return s.s;
}
/* Time that is added to another, as "3 us more" or "3 us less"; NULL where it is next to nothing.
 */
static const char *added(const Pipe *p, double seconds) {
    double mean = p->idle * p->end;
    if (fabs(seconds) < 0.005 * mean) return NULL;
    return arena_printf(p->a, "%s %s", time_text(fabs(seconds), p->a),
                        seconds > 0 ? "more" : "less");
}
/* "0, 1, 2, 3, 7" as "0 to 3, 7": three in a row or more. */
static const char *runs_of(const Pipe *p, const char *list) {
    Str s = str_new(p->a);
    for (char *at = (char *)list, *end; *at; at = *end ? end + 1 : end) {
        long from = strtol(at, &end, 10), to = from;
        while (*end && strtol(end + 1, &at, 10) == to + 1) to++, end = at;
        const char *between = to == from ? "" : to == from + 1 ? ", " : " to ";
        str_addf(&s, "%s%ld%s", s.n ? ", " : "", from, between);
        if (to > from) str_addf(&s, "%ld", to);
    }
    return s.s;
}
/* "3 us more as stages differ (stage 3 takes 1.58 times the mean)". */
static const char *uneven(const Pipe *p, const char *more) {
    const char *slow = p->t->slow_stages;
    if (!slow) return arena_printf(p->a, "%s as stages differ", more);
    bool many = strchr(slow, ',') != NULL;
    return arena_printf(p->a, "%s as stages differ (stage%s %s take%s %.2f times the mean)", more,
                        many ? "s" : "", runs_of(p, slow), many ? "" : "s", p->t->slow_times);
}
/* What the mean idle time is made of: a closed form stands beside the number that it is of. */
static const char *idle_parts(const Pipe *p) {
    const Trace *t = p->t;
    const char *stages = added(p, t->bubble_stages), *sent = added(p, t->bubble_messages);
    if (!t->bubble_form)
        return t->bubble_unfit ? arena_printf(p->a, " (no closed form: %s only)", t->bubble_unfit)
                               : "";
    if (!stages && !sent) return arena_printf(p->a, ", the closed form %s", t->bubble_form);
    const char *one = t->stages > p->n ? ", with times of one stage," : "";
    return arena_printf(p->a,
                        ": %s by the closed form %s%s of even stages and free messages%s%s%s%s",
                        time_text(t->bubble, p->a), t->bubble_form, one, stages ? ", " : "",
                        stages ? uneven(p, stages) : "", sent ? ", " : "",
                        sent ? arena_printf(p->a, "%s for messages", sent) : "");
}
/* The same as a sum, for a table. */
static const char *idle_sum(const Pipe *p) {
    const Trace *t = p->t;
    Str s = str_new(p->a);
    str_add(&s, time_text(p->idle * p->end, p->a));
    if (t->bubble_unfit) str_addf(&s, "; %s", t->bubble_unfit);
    if (!t->bubble_form) return s.s;
    str_addf(&s, " = %s", t->bubble_form);
    const double add[] = {t->bubble_stages, t->bubble_messages};
    static const char *const what[] = {"stages", "messages"};
    bool any = added(p, add[0]) || added(p, add[1]);
    if (any) str_addf(&s, " %s", time_text(t->bubble, p->a));
    for (int i = 0; i < 2; i++)
        if (added(p, add[i]))
            str_addf(&s, " %s %s %s", add[i] < 0 ? "-" : "+", what[i],
                     time_text(fabs(add[i]), p->a));
    return s.s;
}
const char *pipe_foot(const Pipe *p) {
    if (p->stuck) {
        Str s = str_new(p->a);
        for (int i = 0; i < p->t->n_stuck; i++) {
            if (i) str_add(&s, "; ");
            stand(&s, &p->t->stuck[i]);
        }
        for (int i = 0; i < p->t->n_diags; i++)
            if (text_same(p->t->diags[i].code, "E0311") && p->t->diags[i].hint)
                str_addf(&s, ". Help: %s", p->t->diags[i].hint);
        return s.s;
    }
    int most = 0, least = p->row[0].flight;
    double worst = 0;
    for (int k = 0; k < p->n; k++) {
        most = p->row[k].flight > most ? p->row[k].flight : most;
        least = p->row[k].flight < least ? p->row[k].flight : least;
        worst = fmax(worst, p->end - p->row[k].busy);
    }
    Str s = str_new(p->a);
    bool forward = p->t->pass == PASS_FORWARD;
    str_addf(&s,
             "%s from the first forward to the last%s. A rank idles at most %s, on average %s%s",
             time_text(p->end, p->a), forward ? "" : " backward", time_text(worst, p->a),
             time_text(p->idle * p->end, p->a), idle_parts(p));
    if (forward) {
        str_add(&s, ". Nothing is kept for a backward");
        return s.s;
    }
    str_addf(&s, ". In flight at most %d", most);
    if (least != most) str_addf(&s, ", at least %d on every rank", least);
    str_addf(&s, " (pairs of stage and micro-batch)");
    bool all;
    const char *again = rows_again(p, &all), *axis = p->t->schedule_axis;
    if (all) str_add(&s, ". Backward computes forward values again");
    else if (*again)
        str_addf(&s, ". On %s %s backward computes forward values again", axis ? axis : "rank",
                 again);
    return s.s;
}

/* ---- among others ---- */
/* A size of all the work, not of a micro-batch; NAN: it has none. */
static double size_of(const Trace *t, const char *dim) {
    double v = words_find_dim(t, dim);
    return strcmp(dim, "B") && strcmp(dim, "rows") ? v : v * (double)trace_microbatches(t);
}
static void add_other(Str *s, const char *text) { str_addf(s, "%s%s", s->n ? ", " : "", text); }
const char *pipe_other_work(const Pipe *first, const Pipe *other) {
    static const char *const dims[] = {"B", "S", "rows", "shrink"};
    const Trace *t = other->t, *u = first->t;
    Arena *a = other->a;
    Str s = str_new(a);
    if (!text_same(t->model_name, u->model_name)) {
        const char *model = words_model(a, t);
        add_other(&s, model ? model : "another model");
    }
    double layers = words_find_dim(t, "layers");
    if (layers > 0 && layers != words_find_dim(u, "layers"))
        add_other(&s, arena_printf(a, "%.0f layer%s", layers, layers == 1 ? "" : "s"));
    for (size_t i = 0; i < sizeof dims / sizeof *dims; i++) {
        double v = size_of(t, dims[i]), w = size_of(u, dims[i]);
        if (v == w || (isnan(v) && isnan(w))) continue;
        add_other(&s, i == 3     ? "other widths"
                      : isnan(v) ? arena_printf(a, "no %s", dims[i])
                                 : arena_printf(a, "%s=%.0f", dims[i], v));
    }
    if (!text_same(t->dtype, u->dtype)) add_other(&s, t->dtype ? t->dtype : "another dtype");
    if (t->ranks != u->ranks)
        add_other(&s,
                  arena_printf(a, "%lld rank%s", (long long)t->ranks, t->ranks == 1 ? "" : "s"));
    if (t->pass != u->pass) add_other(&s, "another pass");
    size_t machine = t->hardware ? strcspn(t->hardware, ":") : 0; /* its rates are of a dtype */
    if (machine && u->hardware && strncmp(t->hardware, u->hardware, machine + 1) != 0)
        add_other(&s, arena_printf(a, "on %.*s", (int)machine, t->hardware));
    return s.s;
}
const char *const pipe_columns[PIPE_COLUMNS] = {
    "schedule", "time", "idle", "a rank idles", "in flight", "held at most", "messages", "weights"};
/* Bytes of parameters at rest, of the rank that has most. */
static int64_t most_weights(const Pipe *p) {
    const Trace *t = p->t;
    int64_t most = 0, stride = stride_of(t);
    for (int k = 0; k < p->n; k++) {
        int64_t bytes = 0;
        for (int i = 0; i < t->n_params; i++)
            for (int j = 0; j < t->params[i].rest.n_local; j++)
                if (rankset_has(&t->params[i].rest.local[j].ranks, k * stride))
                    bytes += t->params[i].rest.local[j].bytes;
        most = bytes > most ? bytes : most;
    }
    return most;
}
static int64_t messages(const Trace *t) {
    int64_t n = 0;
    for (int i = 0; i < t->n_collectives; i++)
        if (!strcmp(t->collectives[i].op, "send")) n += collective_per_step(&t->collectives[i]);
    return n;
}
PipeSums pipe_sums(const Pipe *p) {
    const Trace *t = p->t;
    PipeSums s = {.messages = messages(t), .weights = most_weights(p)};
    for (int k = 0; k < p->n; k++)
        s.flight = p->row[k].flight > s.flight ? p->row[k].flight : s.flight;
    for (int i = 0; i < t->n_actions; i++) {
        s.held = t->actions[i].held > s.held ? t->actions[i].held : s.held;
        s.held = t->actions[i].kept > s.held ? t->actions[i].kept : s.held;
    }
    return s;
}
/* Of one that comes to no end there are no numbers but what was in flight when it stood still. */
static const char *stuck_cell(const Pipe *p, int column) {
    if (column == 1) return "no end";
    if (column == 3)
        return arena_printf(p->a, "%d of %d rank%s stand%s still", p->t->n_stuck, p->n,
                            p->n == 1 ? "" : "s", p->t->n_stuck == 1 ? "s" : "");
    return "\u2013";
}
const char *pipe_cell(const Pipe *p, int column) {
    if (p->stuck && column > 0 && column != 4) return stuck_cell(p, column);
    PipeSums s = pipe_sums(p);
    switch (column) {
    case 0: return p->name;
    case 1: return time_text(p->end, p->a);
    case 2: return arena_printf(p->a, "%.1f %%", 100 * p->idle);
    case 3: return idle_sum(p);
    case 4: return arena_printf(p->a, "%d", s.flight);
    case 5: return bytes_text(s.held, p->a);
    case 6: return arena_printf(p->a, "%lld", (long long)s.messages);
    default: return bytes_text(s.weights, p->a);
    }
}
