/* Reading the units of an overview. See overview.h. */
#include "render/overview/overview.h"
#include "base/text.h"
#include "render/overview/ways.h"
#include "trace/trace_rows.h"
#include "trace/trace_way.h"
#include <limits.h>
#include <math.h>
#include <string.h>

static const char *part_title(Arena *a, const char *part) {
    if (part_term(part)->norm) return "Final norm";
    return part ? words_capital(a, part_term_word(part)) : "Steps";
}

static bool on_rank(const RankSet *r, int64_t rank) { return r->n == 0 || rankset_has(r, rank); }

/* The part of the forward step that made the value which `s` speaks of, or that reads the
 * parameter; NULL: none has one. */
static const char *part_of_subject(const Trace *t, Subject s) {
    bool param = s.of && trace_param(t, s.of) != NULL;
    for (int i = 0; s.of && i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        bool mine = !param && text_same(c->output, s.of);
        for (int k = 0; param && k < c->n_inputs; k++) mine |= text_same(c->inputs[k], s.of);
        if (mine && c->part && phase_or_forward(c->pass) == PHASE_FORWARD) return c->part;
    }
    return NULL;
}

/* The part of compute i; a sum of gradients, which has none, belongs to the unit that it stands
 * behind, or else to the part whose gradients it adds. */
static const char *part_of(const Overview *o, int i, bool second) {
    const Trace *t = o->c->t;
    const TraceCompute *c = &t->computes[i];
    const OverviewUnit *last = o->n ? &o->unit[o->n - 1] : NULL;
    if (!c->part && last && last->layer == c->layer && last->second == second) return last->part;
    if (!c->part) return part_of_subject(t, c->makes);
    return trace_unit(t, i);
}

/* The sum of a gradient's uses, of no part, belongs to the unit that makes the last of them. */
static bool goes_on(const Overview *o, const TraceCompute *c) {
    bool reads = false;
    if (c->part || c->layer < 0 || !c->input_step || !o->n) return false;
    for (int i = 0; i < c->n_inputs; i++) reads |= c->input_step[i] >= o->first_step[o->n - 1];
    return reads;
}

static void read_units(Overview *o) {
    const Trace *t = o->c->t;
    o->unit = ARENA_ARRAY(o->c->arena, OverviewUnit, OVERVIEW_UNITS);
    o->first_step = ARENA_ARRAY(o->c->arena, int, OVERVIEW_UNITS);
    o->last_step = ARENA_ARRAY(o->c->arena, int, OVERVIEW_UNITS);
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (!ways_wants(o, c)) continue;
        const TraceValue *out = trace_value(t, c->output, c->step);
        bool second = o->both_ways && out && out->way;
        const char *part = part_of(o, i, second);
        OverviewUnit *u = o->n ? &o->unit[o->n - 1] : NULL;
        bool other = u && (u->layer != c->layer || !text_same(u->part, part));
        if (!u || u->second != second || (!goes_on(o, c) && other)) {
            if (o->n == OVERVIEW_UNITS) return;
            o->first_step[o->n] = c->step;
            u = &o->unit[o->n++];
            *u = (OverviewUnit){.part = part,
                                .title = part_title(o->c->arena, part),
                                .layer = c->layer,
                                .layers = 1,
                                .second = second};
        }
        o->last_step[o->n - 1] = c->step;
        u->flops += c->flops;
        u->ops++;
        u->out = out;
    }
}

/* ---- weights ---- */

/* The unit of forward step i: the one that it stands in, in another pass that of its part and
 * layer; -1: none. */
static int unit_of_forward(const Overview *o, int i) {
    const TraceCompute *c = &o->c->t->computes[i];
    const char *part = trace_unit(o->c->t, i);
    bool own = o->pass == PHASE_FORWARD;
    for (int k = 0; k < o->n_own; k++)
        if (own ? c->step >= o->first_step[k] && c->step <= o->last_step[k]
                : o->unit[k].layer == c->layer && text_same(o->unit[k].part, part))
            return k;
    return -1;
}

/* Every parameter belongs to the first unit of the model whose forward steps on the rank read it,
 * whichever pass is drawn and whether a step of that pass reads it or not. */
static void read_weights(Overview *o) {
    const Trace *t = o->c->t;
    o->unit_of_param = ARENA_ARRAY(o->c->arena, int, t->n_params);
    for (int i = 0; i < t->n_params; i++) o->unit_of_param[i] = -1;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (phase_or_forward(c->pass) != PHASE_FORWARD || c->iteration > 0 || c->microbatch > 0 ||
            c->recompute || !on_rank(&c->ranks, o->rank))
            continue;
        int unit = -2; /* not looked for yet */
        for (int j = 0; j < c->n_inputs; j++) {
            const TraceParam *q = trace_param(t, c->inputs[j]);
            if (q && unit == -2) unit = unit_of_forward(o, i);
            if (!q || unit < 0) continue;
            o->unit[unit].reads = true;
            if (o->unit_of_param[q - t->params] >= 0) continue;
            const TraceLocal *l = words_find_local(&q->rest, o->rank);
            o->unit_of_param[q - t->params] = unit;
            o->unit[unit].weights += l ? l->bytes : 0;
        }
    }
}

/* ---- collectives ---- */

/* A collective of the pass belongs to the unit in whose steps it stands. */
static int unit_of_step(const Overview *o, const TraceCollective *c, int way) {
    int k = 0;
    while (k + 1 < o->n_own && o->first_step[k + 1] <= c->step) k++;
    /* moves of a value before the first op that reads it stand at the end of the unit before */
    if (k + 1 < o->n_own && (way < 0 || o->unit[k + 1].second == way) &&
        c->layer == o->unit[k + 1].layer && text_same(c->part, o->unit[k + 1].part))
        k++;
    return k;
}

/* The way of a pipeline in which a step makes its value; -1: there is but one, or it serves both.
 */
static int way_at(const Overview *o, const char *value, int step) {
    const TraceValue *v = o->both_ways ? trace_value(o->c->t, value, step) : NULL;
    return v && !v->once && !trace_param(o->c->t, value) ? v->way : -1;
}
/* The first unit with a step that makes the value, or that reads it, in that way (-1: in any); -1:
 * none. */
static int unit_with(const Overview *o, const char *name, int way, bool reads) {
    const Trace *t = o->c->t;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        bool mine = !reads && !strcmp(c->output, name);
        for (int k = 0; reads && k < c->n_inputs; k++) mine |= !strcmp(c->inputs[k], name);
        if (!mine || !ways_wants(o, c)) continue;
        if (way >= 0 && way_at(o, c->output, c->step) != way) continue;
        for (int k = 0; k < o->n_own; k++)
            if (c->step >= o->first_step[k] && c->step <= o->last_step[k]) return k;
    }
    return -1;
}
/* The unit whose step makes the value (of a gradient: made it in forward), or reads the parameter
 * or what another rank's step has made; of a parameter that no step of the pass reads, the one that
 * holds it; -1: none. */
static int unit_of_value(const Overview *o, Subject s, int way) {
    bool param = trace_param(o->c->t, s.of) != NULL;
    int k = param ? -1 : unit_with(o, s.of, way, false);
    if (k < 0) k = unit_with(o, s.of, way, true);
    return k < 0 && param ? o->unit_of_param[trace_param(o->c->t, s.of) - o->c->t->params] : k;
}
/* The unit that goes on with what comes from a rank that makes it, where no step here does: a stage
 * of a pipeline; -1: there is none. */
static int unit_reached(const Overview *o, const TraceCollective *c, int way) {
    return unit_with(o, c->value, way, false) >= 0 ? -1 : unit_with(o, c->value, way, true);
}

static SendKind kind_of(const Overview *o, const TraceCollective *c) {
    if (!o->all) return SEND_FORWARD;
    if (c->pass == PHASE_OPTIMIZER) return SEND_OPTIMIZER;
    if (c->subject.role == OF_PARAM_GRADIENT) return SEND_GRADIENTS;
    if (trace_param(o->c->t, c->value)) return SEND_WEIGHTS;
    return subject_is_gradient(c->subject) || c->pass == PHASE_BACKWARD ? SEND_BACKWARD
                                                                        : SEND_FORWARD;
}

bool overview_again(const Overview *o, const TraceCollective *c) {
    return kind_of(o, c) == SEND_WEIGHTS && c->step >= o->backward;
}
static bool one_total(const Overview *o, const TraceCollective *a, const TraceCollective *b) {
    return text_same(a->axis, b->axis) && text_same(a->op, b->op) &&
           overview_again(o, a) == overview_again(o, b);
}
static void count(const Overview *o, OverviewUnit *u, const TraceCollective *c) {
    int j = 0;
    const SendKind kind = kind_of(o, c);
    while (j < u->n_total[kind] && !one_total(o, u->total[kind][j].c, c)) j++;
    if (j == OVERVIEW_TOTALS) return;
    if (j == u->n_total[kind])
        u->total[kind][u->n_total[kind]++] = (OverviewItem){.c = c, .step = c->step};
    words_add(&u->total[kind][j].sum, c, o->rank);
}

static bool counted(const Overview *o, const TraceCollective *c) {
    return (o->whole || words_pass_of(c, o->backward) == o->pass) &&
           words_group_of(&c->groups, o->rank) >= 0;
}

/* What belongs to no unit of the pass, such as the optimizer's sums, stands in one of its own
 * behind them, by the part that it is of. */
static int unit_apart(Overview *o, const char *part, int layer, Phase pass) {
    const Trace *t = o->c->t;
    for (int k = 0; k < o->n; k++)
        if (!o->unit[k].message && text_same(o->unit[k].part, part) && o->unit[k].layer == layer)
            return k;
    if (o->n == OVERVIEW_UNITS) return o->n - 1;
    OverviewUnit *u = &o->unit[o->n];
    const char *title = part ? part_title(o->c->arena, part) : "Other steps";
    *u = (OverviewUnit){.part = part,
                        .title = title,
                        .layer = layer,
                        .layers = 1,
                        .apart = pass != PHASE_LOSS, /* a loss reads what the stream ends in */
                        .pass = pass};
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *s = &t->computes[i];
        if (s->pass != pass || !text_same(s->part, part) || s->layer != layer || s->iteration > 0 ||
            s->microbatch > 0 || !on_rank(&s->ranks, o->rank))
            continue;
        u->flops += s->flops;
        u->ops++;
        if (u->apart || subject_is_gradient(s->makes)) continue;
        if (!u->out) u->from = s->step;
        u->until = s->step;
        u->out = trace_value(t, s->output, s->step);
    }
    return o->n++;
}

static bool is_message(const Overview *o, const TraceCollective *c) {
    return words_message(c, o->rank) != MESSAGE_NONE;
}

/* The unit of messages behind unit k, with which the stage ends, or before it, where it goes on;
 * made where there is none. What ends in forward is where a gradient comes from. */
static int unit_of_message(Overview *o, int k, const TraceCollective *c) {
    bool sends = words_message(c, o->rank) == MESSAGE_TO,
         own = phase_or_forward(c->pass) == o->pass, here = own == sends;
    Message way = here ? MESSAGE_TO : MESSAGE_FROM;
    if (own && !sends) /* where it goes on */
        for (k = 0; k + 1 < o->n_own && o->last_step[k] < c->step;) k++;
    const char *title = words_message_title(o->c->arena, c, o->rank, way);
    for (int i = o->n_own; i < o->n; i++) {
        if (o->unit[i].message != way || o->unit[i].beside != k) continue;
        if (strcmp(title, o->unit[i].title) != 0) o->unit[i].title = words_message_way(way);
        return i;
    }
    if (k >= o->n_own || o->n == OVERVIEW_UNITS) return k;
    o->unit[o->n] = (OverviewUnit){.part = "stage",
                                   .title = title,
                                   .layer = -1,
                                   .layers = 1,
                                   .message = way,
                                   .beside = k,
                                   .out = here ? o->unit[k].out : NULL};
    return o->n++;
}

/* Of a rank with a stage of each way of a pipeline: does the second way's come first in the model?
 */
static bool second_first(const Overview *o) {
    int layer[2] = {-1, -1};
    for (int k = o->n_own; k-- > 0;)
        if (o->unit[k].layer >= 0) layer[o->unit[k].second] = o->unit[k].layer;
    return layer[0] >= 0 && layer[1] >= 0 && (layer[1] < layer[0]) == (o->pass == PHASE_FORWARD);
}
/* Messages go to their places among the units, which stand in the order of the model. */
static void weave(Overview *o) {
    OverviewUnit *all = ARENA_ARRAY(o->c->arena, OverviewUnit, o->n);
    int n = 0, swap = second_first(o);
    for (int twice = 0; twice < 2 * o->n; twice++) {
        int k = twice % o->n;
        bool late = k >= o->n_own || o->unit[k].second != swap;
        if (o->unit[k].message || late != (twice >= o->n)) continue;
        for (int i = o->n_own; i < o->n; i++)
            if (o->unit[i].message == MESSAGE_FROM && o->unit[i].beside == k)
                all[n] = o->unit[i], all[n++].out = o->unit[k].in;
        all[n++] = o->unit[k];
        for (int i = o->n_own; i < o->n; i++)
            if (o->unit[i].message == MESSAGE_TO && o->unit[i].beside == k) all[n++] = o->unit[i];
    }
    memcpy(o->unit, all, (size_t)n * sizeof *all);
}

/* Adds a step of the unit, if it is wrong and no other tells of the same mistake. */
static void add_wrong(const Overview *o, OverviewUnit *u, int step) {
    const int number = wrong_number(o->wrong, step);
    for (int i = 0; i < u->n_wrong; i++)
        if (wrong_number(o->wrong, u->wrong[i]) == number) return;
    if (number) *ARENA_PUSH(o->c->arena, u->wrong, u->n_wrong, u->cap_wrong) = step;
}

static void read_collectives(Overview *o) {
    const Trace *t = o->c->t;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!counted(o, c)) continue;
        bool own = phase_or_forward(c->pass) == o->pass;
        int way = way_at(o, c->value, c->step),
            to = own && !trace_param(t, c->value) ? unit_reached(o, c, way) : -1;
        int k = to >= 0                            ? to
                : own && !trace_param(t, c->value) ? unit_of_step(o, c, way)
                                                   : unit_of_value(o, c->subject, way);
        if (k < 0) {
            const char *part = c->part ? c->part : part_of_subject(t, c->subject);
            k = unit_apart(o, part, c->layer, c->pass);
        }
        if (is_message(o, c) && !trace_param(t, c->subject.of)) k = unit_of_message(o, k, c);
        OverviewUnit *u = &o->unit[k];
        add_wrong(o, u, c->step);
        if (!wrong_skipped(c)) count(o, u, c);
        if (kind_of(o, c) == o->flow) ways_add(o, k, c);
        const TraceValue *made = trace_value(t, c->value, c->step);
        bool here = made && words_find_local(&made->shape, o->rank);
        if (to >= 0 && here) o->unit[to].in = made;
        /* what leaves the unit is what its last move makes of it */
        if (own && here && u->out && !strcmp(u->out->shape.name, c->value) &&
            c->step > u->out->step)
            u->out = made;
    }
    for (int i = 0; i < t->n_moves; i++) {
        int k = wrong_number(o->wrong, t->moves[i].step) ? unit_of_value(o, t->moves[i].subject, -1)
                                                         : -1;
        if (k >= 0) add_wrong(o, &o->unit[k], t->moves[i].step);
    }
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        int k = wrong_number(o->wrong, c->step) ? unit_of_value(o, c->makes, -1) : -1;
        if (k < 0 && wrong_number(o->wrong, c->step) && c->pass == PHASE_OPTIMIZER && o->whole)
            k = unit_apart(o, c->part, c->layer, c->pass);
        if (k >= 0) add_wrong(o, &o->unit[k], c->step);
    }
}

/* ---- folding ---- */

/* Of two layers with mistakes each shows its own. */
static bool same_mistakes(const Overview *o, const OverviewUnit *a, const OverviewUnit *b) {
    bool same = a->n_wrong == b->n_wrong;
    for (int i = 0; same && i < a->n_wrong; i++)
        same = wrong_number(o->wrong, a->wrong[i]) == wrong_number(o->wrong, b->wrong[i]);
    return same;
}
static bool alike(const Overview *o, const OverviewUnit *a, const OverviewUnit *b) {
    bool same =
        text_same(a->part, b->part) && a->weights == b->weights && a->reads == b->reads &&
        a->ops == b->ops && ways_alike(a, b) && same_mistakes(o, a, b) &&
        text_same(a->out ? a->out->shape.symbolic : "", b->out ? b->out->shape.symbolic : "");
    for (int k = 0; same && k < SEND_KINDS; k++) {
        same = a->n_total[k] == b->n_total[k];
        for (int i = 0; same && i < a->n_total[k]; i++)
            same = one_total(o, a->total[k][i].c, b->total[k][i].c) &&
                   words_same_total(&a->total[k][i].sum, &b->total[k][i].sum);
    }
    return same;
}

static int units_of_layer(const Overview *o, int i) {
    int n = 1;
    while (i + n < o->n && o->unit[i + n].layer == o->unit[i].layer) n++;
    return n;
}

/* Layers that repeat the one before are folded into it. */
static void fold(Overview *o) {
    int out = 0;
    for (int i = 0; i < o->n;) {
        int n = units_of_layer(o, i), first = out;
        if (o->unit[i].layer < 0) n = 1;
        memmove(&o->unit[out], &o->unit[i], (size_t)n * sizeof *o->unit);
        int next = i + n, copies = 1;
        while (o->unit[out].layer >= 0 && next + n <= o->n && units_of_layer(o, next) == n) {
            bool same = true;
            for (int k = 0; k < n; k++) same &= alike(o, &o->unit[out + k], &o->unit[next + k]);
            if (!same) break;
            next += n;
            copies++;
        }
        for (int k = 0; k < n; k++) o->unit[out + k].layers = copies;
        o->unit[first].open = o->unit[first].layer >= 0;
        o->unit[out + n - 1].close = o->unit[first].layer >= 0;
        out += n;
        i = next;
    }
    o->n = out;
}

/* What enters the pass: the first input of the model, in backward the gradient that the first step
 * reads; NULL: none. */
static const TraceValue *entering(const Overview *o) {
    const Trace *t = o->c->t;
    bool second = second_first(o);
    for (int i = 0; o->pass == PHASE_BACKWARD && i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (o->both_ways && way_at(o, c->output, c->step) != second) continue;
        for (int k = 0; ways_wants(o, c) && k < c->n_inputs; k++) {
            const TraceValue *v =
                trace_value(t, c->inputs[k], c->input_step ? c->input_step[k] : c->step - 1);
            if (v && subject_is_gradient(v->subject)) return v;
        }
        if (ways_wants(o, c)) return NULL;
    }
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].step < 0 && !trace_param(t, t->values[i].shape.name)) return &t->values[i];
    return NULL;
}

bool overview_read(Overview *o, const ViewCall *c) {
    int64_t rank = c->o->rank >= 0 ? c->o->rank : 0;
    ViewCall *own = arena_memdup(c->arena, c, sizeof *c);
    own->t = trace_own_way(c->t, rank, -1, c->arena);
    c = own;
    *o = (Overview){.c = c,
                    .rank = rank,
                    .both_ways = trace_both_ways(c->t),
                    .whole = c->pass == PHASE_NONE,
                    .pass = phase_or_forward(c->pass),
                    .backward = words_backward(c->t)};
    o->all = o->whole && o->backward < INT_MAX;
    for (int i = 0; i < c->t->n_collectives; i++) {
        const TraceCollective *k = &c->t->collectives[i];
        bool weights = trace_param(c->t, k->value) || k->subject.role == OF_PARAM_GRADIENT;
        o->all |= counted(o, k) && weights;
    }
    o->wrong = wrong_find(c->arena, c->t, NULL, NULL);
    read_units(o);
    if (o->n == 0) {
        diag_error(c->d, "E0211", diag_nowhere, NULL,
                   "nothing to draw in view 'overview': no steps of pass '%s' on rank %lld",
                   phase_text(o->pass), (long long)o->rank);
        return false;
    }
    o->n_own = o->n;
    read_weights(o);
    o->in = entering(o);
    o->flow = o->all && o->pass == PHASE_BACKWARD ? SEND_BACKWARD : SEND_FORWARD;
    ways_read(o);
    read_collectives(o);
    weave(o);
    fold(o);
    return true;
}

/* ---- sums ---- */

bool overview_sends(const Overview *o, SendKind k) {
    for (int i = 0; i < o->n; i++)
        if (o->unit[i].n_total[k]) return true;
    return false;
}

int64_t overview_beyond(const Overview *o) {
    const Trace *t = o->c->t;
    int64_t more = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (counted(o, c)) more += trace_sent(t, c, o->rank) - collective_on(c, o->rank).bytes_sent;
    }
    return more;
}
Total overview_totals(const Overview *o, int64_t *weights) {
    const Trace *t = o->c->t;
    Total all = {0};
    *weights = 0;
    for (int i = 0; i < t->n_params; i++) {
        const TraceLocal *l = words_find_local(&t->params[i].rest, o->rank);
        *weights += l ? l->bytes : 0;
    }
    for (int i = 0; i < o->n; i++) {
        const OverviewUnit *u = &o->unit[i];
        for (int k = 0; k < SEND_KINDS; k++)
            for (int j = 0; j < u->n_total[k]; j++)
                words_add_total(&all, &u->total[k][j].sum, u->layers);
    }
    return all;
}

/* To n sums by axis, `times` one more; returns their number. */
static int add_by_axis(OverviewItem *out, int n, const OverviewItem *one, int times) {
    int j = 0;
    while (j < n && strcmp(out[j].c->axis, one->c->axis)) j++;
    if (j == OVERVIEW_TOTALS) return n;
    if (j == n) out[n++] = (OverviewItem){.c = one->c, .step = one->step};
    words_add_total(&out[j].sum, &one->sum, times);
    return n;
}
int overview_by_axis(const OverviewItem *of, int n, OverviewItem *out) {
    int k = 0;
    for (int i = 0; i < n; i++) k = add_by_axis(out, k, &of[i], 1);
    return k;
}

const char *overview_kind(const Overview *o, SendKind k) {
    static const char *const word[SEND_KINDS] = {"forward", "backward", "weight gradients",
                                                 "weights", "optimizer"};
    return o->all ? word[k] : phase_text(o->pass);
}

/* " 3 of them no line of the plan asks for." */
static const char *not_asked(const Overview *o) {
    int n = 0;
    for (int i = 0; i < o->c->t->n_collectives; i++) {
        const TraceCollective *c = &o->c->t->collectives[i];
        bool shown = o->whole || words_pass_of(c, o->backward) == o->pass;
        n += c->inferred && shown && words_group_of(&c->groups, o->rank) >= 0;
    }
    return n ? arena_printf(o->c->arena, " %d of them no line of the plan asks for.", n) : "";
}

/* What the units' bytes add up to, where the run of experts' rows sent other ones. */
static const char *expected(const Overview *o) {
    int64_t weights, sent = overview_totals(o, &weights).bytes;
    const char *due = bytes_text(sent, o->c->arena),
               *run = bytes_text(sent + overview_beyond(o), o->c->arena);
    return strcmp(due, run) ? arena_printf(o->c->arena, ", %s expected", due) : "";
}
/* What the totals of a kind are called: what the loss sends stands among those of forward. */
static const char *sent_in(const Overview *o, SendKind k) {
    const Trace *t = o->c->t;
    for (int i = 0; k == SEND_FORWARD && o->all && i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->pass == PHASE_LOSS && kind_of(o, c) == k && counted(o, c)) return "forward and loss";
    }
    return overview_kind(o, k);
}
/* ", for forward and again for backward": weights that are cut at rest. */
static const char *gathered_again(const Overview *o) {
    bool before = false, again = false;
    for (int i = 0; i < o->n; i++)
        for (int q = 0; q < o->unit[i].n_total[SEND_WEIGHTS]; q++) {
            const bool back = overview_again(o, o->unit[i].total[SEND_WEIGHTS][q].c);
            before |= !back, again |= back;
        }
    return before && again ? ", for forward and again for backward" : "";
}
const char *overview_sent(const Overview *o) {
    Arena *a = o->c->arena;
    Str s = str_new(a);
    const char *start = arena_printf(a, "%s%s: ", words_sent_by(a, o->c->t, o->rank), expected(o));
    Total last;
    const Total *said = NULL;
    for (int k = 0; k < SEND_KINDS; k++) {
        OverviewItem all[OVERVIEW_TOTALS];
        int n = 0;
        for (int i = 0; i < o->n; i++)
            for (int q = 0; q < o->unit[i].n_total[k]; q++)
                n = add_by_axis(all, n, &o->unit[i].total[k][q], o->unit[i].layers);
        if (n) str_addf(&s, "%s%s ", s.n ? "; " : start, sent_in(o, (SendKind)k));
        for (int j = 0; j < n; j++) {
            str_addf(&s, "%s%s", j ? ", " : "",
                     words_sent_over(a, o->c->t, &all[j].sum, all[j].c->axis, said));
            if (all[j].sum.count) last = all[j].sum, said = &last;
        }
        if (n && k == SEND_WEIGHTS) str_add(&s, gathered_again(o));
    }
    if (!s.n) return arena_printf(a, "Nothing is sent in one %s.", phase_text(o->pass));
    str_addf(&s, ".%s", not_asked(o));
    return s.s;
}
