/* Reading events: names, lanes, lines. What is hidden and exposed: trace_times.h. */
#include "render/timeline/timeline.h"
#include "base/text.h"
#include "render/timeline/time_index.h"
#include "trace/ranksets.h"
#include "trace/trace_parts.h"
#include "trace/trace_took.h"
#include "trace/trace_way.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* "q" of "layers.0.q_rope"; "input_norm", "o_proj" stay; a parameter is called by its module: "wq".
 */
static const char *value_word(const Trace *t, Arena *a, Subject s) {
    const char *of = words_updated(a, s.of);
    const TraceParam *p = s.role == OF_GRADIENT ? NULL : trace_param(t, of);
    if (p && p->module && *words_leaf(p->module)) return words_weight(a, p->module, p);
    const char *leaf = words_leaf(of), *before = of + strlen(of) - strlen(".weight");
    if (of != s.of && before > of && !strcmp(before, ".weight")) /* in the checkpoint's scheme */
        return words_leaf(arena_strndup(a, of, (size_t)(before - of)));
    return strcspn(leaf, "_") == 1 && strchr("qkv", *leaf) ? arena_strndup(a, leaf, 1) : leaf;
}

/* The weight that the step reads, as pictures of blocks call it: "wq", "shared w1", "w1" of
 * experts; with `matrix` no norm's. NULL: it reads none. */
static const char *weight_word(const Trace *t, Arena *a, const TraceCompute *c, bool matrix) {
    for (int i = 0; i < c->n_inputs; i++) {
        const TraceParam *p = trace_param(t, c->inputs[i]);
        if (p && (!matrix || p->compute.nd >= 2) && c->module && *words_leaf(c->module))
            return words_weight(a, c->module, p);
    }
    return NULL;
}
/* Is a weight called so, or another value of the layer of what step c makes: "output"? */
static bool says_little(const Trace *t, const TraceCompute *c, const char *leaf) {
    enum { NEAR = 64 }; /* steps of a layer stand together */
    for (int i = 0; i < t->n_params; i++)
        if (t->params[i].module && !strcmp(words_leaf(t->params[i].module), leaf)) return true;
    const int at = (int)(c - t->computes);
    for (int i = at < NEAR ? 0 : at - NEAR; i < t->n_computes && i < at + NEAR; i++) {
        const TraceCompute *k = &t->computes[i];
        if (k->layer == c->layer && k->makes.role == OF_ITSELF && strcmp(k->output, c->output) &&
            !strcmp(words_leaf(k->output), leaf))
            return true;
    }
    return false;
}
/* The weight that makes the value: "wo" of "layers.0.o_proj"; of what a module gives that ends with
 * none, where its own name says little, the module, "moe"; NULL: none does, or it is one of
 * attention's three, which hops and gathers speak of by their letters. */
static const char *maker(const TimeIndex *x, Arena *a, const char *value) {
    const char *leaf = words_leaf(value);
    if (strcspn(leaf, "_") == 1 && strchr("qkv", *leaf)) return NULL;
    const TraceCompute *c = time_maker(x, value);
    const char *weight = c ? weight_word(x->t, a, c, false) : NULL,
               *module = c && c->module ? words_leaf(c->module) : "";
    if (weight || !*module || isdigit((unsigned char)*module)) return weight;
    return says_little(x->t, c, leaf) ? module : NULL;
}
/* "dwq", "d output", "d shared w1", as the block and its mirror have it. */
static const char *joined(Arena *a, const char *weight) {
    return arena_printf(a, strlen(weight) > 3 ? "d %s" : "d%s", weight);
}
/* What is moved: "k", "wq"; "after w2" what w2 gives, of which backward "dy w2" is the gradient, as
 * "dx w2" is that of what it takes; of other gradients "dk", "dwq" as the boxes have it, "d x":
 * backward a ring's hops carry both, and a norm's sums stand beside those of its weight. */
static const char *moved_word(const TimeIndex *x, Arena *a, Subject s) {
    const char *word = value_word(x->t, a, s), *by = maker(x, a, s.of);
    bool one = s.role == OF_PARAM_GRADIENT || (!word[1] && strchr("qkv", *word));
    if (s.role == OF_ITSELF) return by ? arena_printf(a, "after %s", by) : word;
    if (s.role == OF_GRADIENT && by) return arena_printf(a, "dy %s", by);
    return one ? joined(a, word) : arena_printf(a, "d %s", word);
}
/* "part 2" of attention, "part 2 dk" of its adjoint; NULL: it is no part. */
static const char *part_word(const Trace *t, Arena *a, const TraceCompute *c) {
    const int part = words_part_of(c);
    if (part < 0) return NULL;
    if (c->makes.role == OF_ITSELF) return arena_printf(a, "part %d", part);
    return arena_printf(a, "part %d d%s", part, value_word(t, a, c->makes));
}
/* Does it run backward, or make a gradient of the loss? What it makes again is as in forward. */
static bool is_back(const TraceCompute *c) {
    return (c->pass == PHASE_BACKWARD && c->makes.role != OF_ITSELF) ||
           c->makes.role == OF_GRADIENT;
}
/* The weight of the product of which it makes a gradient, NULL: none. */
static const char *product_word(const Trace *t, Arena *a, const TraceCompute *c) {
    if (c->makes.role == OF_PARAM_GRADIENT) return value_word(t, a, c->makes);
    return is_back(c) && !trace_adds_uses(c) ? weight_word(t, a, c, true) : NULL;
}
static const char *compute_name(const Trace *t, Arena *a, const TraceCompute *c,
                                const TraceEvent *e) {
    if (!c) return e->name ? e->name : "";
    const char *matrix = weight_word(t, a, c, true), *name = matrix                  ? matrix
                                                             : c->label && *c->label ? c->label
                                                             : e->name               ? e->name
                                                                                     : "";
    /* parts of attention, between which hops are hidden: one word of which there are many */
    const char *part = part_word(t, a, c);
    if (part) return part;
    /* the gradient of a parameter: "dw2" */
    if (c->makes.role == OF_PARAM_GRADIENT) return joined(a, value_word(t, a, c->makes));
    return !is_back(c) || trace_adds_uses(c) ? name
           : matrix                          ? arena_printf(a, "dx %s", name)
                                             : words_adjoint(a, name);
}

/* "exp" of "sum of exp over V", "logit′" of "target logit′": the word that says what is done. What
 * has a weight, or is the gradient of one, is called by all of its name. */
static const char *brief_name(const Trace *t, Arena *a, const TraceCompute *c, const char *name) {
    static const char prime[] = "′";
    if (!c || c->makes.role == OF_PARAM_GRADIENT || weight_word(t, a, c, true)) return name;
    if (trace_adds_uses(c)) return "sum";
    const char *note = strchr(name, ','); /* "SwiGLU, up + 1" */
    if (note && strstr(note, prime))
        name = words_adjoint(a, arena_strndup(a, name, (size_t)(note - name)));
    else if (note) name = arena_strndup(a, name, (size_t)(note - name));
    const char *over = strstr(name, " over "), *end = name + strlen(name) - strlen(prime);
    const bool adjoint = over && end > over && !strcmp(end, prime);
    const char *what = over ? arena_strndup(a, name, (size_t)(over - name)) : name,
               *blank = strrchr(what, ' '), *last = blank ? blank + 1 : what;
    if (isdigit((unsigned char)*last)) return name; /* "part 2": a number alone says nothing */
    return adjoint ? words_adjoint(a, last) : last;
}

/* What a collective moves: "k", "dwq"; of a unit "layer 3", "root" for what is outside the layers,
 * or "model" for all. */
static const char *unit_word(const TimeIndex *x, Arena *a, const TraceCollective *c) {
    const char *unit = words_unit(x->t, c);
    if (!unit) return moved_word(x, a, c->subject);
    return c->layer < 0 ? unit : arena_printf(a, "%s %d", unit, c->layer);
}

static TimeEvent read_event(const TimeIndex *by, Arena *a, const TraceEvent *e) {
    const Trace *t = by->t;
    TimeEvent x = {.e = e, .rec = e, .code = "", .name = e->name ? e->name : "", .brief = ""};
    if (trace_is_compute(e)) {
        x.c = time_compute(by, e);
        x.name = compute_name(t, a, x.c, e);
        x.brief = brief_name(t, a, x.c, x.name);
        x.product = x.c ? product_word(t, a, x.c) : NULL;
        x.small = x.c && !x.c->product && !x.c->attends;
        x.gradient = x.c && !x.small && x.c->makes.role == OF_PARAM_GRADIENT;
        return x;
    }
    x.coll = time_collective(by, e);
    const CollWord *w = x.coll ? coll_word(x.coll->op) : NULL;
    if (w) x.code = w->code;
    if (w) x.name = arena_printf(a, "%s %s", w->code, unit_word(by, a, x.coll));
    return x;
}

static int by_start(const void *a, const void *b) {
    const TimeEvent *x = a, *y = b;
    if (x->e->start != y->e->start) return x->e->start < y->e->start ? -1 : 1;
    if (x->e->end != y->e->end) return x->e->end < y->e->end ? -1 : 1;
    return (x->e->step > y->e->step) - (x->e->step < y->e->step);
}

int64_t timeline_sent(const TimeEvent *e) {
    const RankSet *r = &e->e->ranks;
    return r->n ? collective_on(e->coll, rankset_first(r)).bytes_sent : e->coll->bytes_sent;
}
int timeline_lane(const Timeline *t, const TraceEvent *e) {
    for (int i = 1; i < t->n_lanes && !trace_is_compute(e); i++)
        if (text_same(t->lane[i].axes, e->stream)) return i;
    return 0;
}

/* The rank's groups in a lane, "{0,1}"; over a part of an axis there are several: a send is two
 * ranks' own, and copies of a stage are on two, "{0,1} {0,3}". */
static const char *lane_members(Arena *a, const Timeline *t, const char *stream, int64_t rank) {
    enum { MOST = 3 };
    const char *seen[MOST];
    int n = 0;
    Str s = str_new(a);
    for (int i = 0; i < t->n_events; i++) {
        const TimeEvent *e = &t->event[i];
        if (!e->coll || trace_is_compute(e->e) || !text_same(stream, e->e->stream)) continue;
        int64_t group = words_group_of(&e->coll->groups, rank);
        if (group < 0) continue;
        const char *members = words_members(a, &e->coll->groups, group);
        int k = 0;
        while (k < n && strcmp(seen[k], members)) k++;
        if (k < n) continue;
        str_addf(&s, "%s%s", n ? " " : "", n < MOST ? members : "…");
        if (n == MOST) break;
        seen[n++] = members;
    }
    return s.s ? s.s : "";
}
/* "sp"; of a stream whose collectives call one group by several names all of them: "ep, dp*cp". */
static const char *lane_axis(Arena *a, const Timeline *t, const char *stream) {
    Str s = str_new(a);
    for (int i = 0; i < t->n_events; i++) {
        const TimeEvent *e = &t->event[i];
        if (!e->coll || trace_is_compute(e->e) || !text_same(stream, e->e->stream)) continue;
        const char *axis = e->coll->axis ? e->coll->axis : "";
        if (*axis && !text_has_word(s.s ? s.s : "", axis))
            str_addf(&s, "%s%s", s.n ? ", " : "", axis);
    }
    return s.n ? s.s : stream;
}
static void read_lanes(const ViewCall *c, Timeline *t, int64_t rank) {
    int cap = 0;
    *ARENA_PUSH(c->arena, t->lane, t->n_lanes, cap) = (TimeLane){"compute", "compute", ""};
    for (int i = 0; i < t->n_events; i++) {
        const TimeEvent *e = &t->event[i];
        if (trace_is_compute(e->e) || timeline_lane(t, e->e) > 0) continue;
        *ARENA_PUSH(c->arena, t->lane, t->n_lanes, cap) =
            (TimeLane){e->e->stream, lane_axis(c->arena, t, e->e->stream),
                       lane_members(c->arena, t, e->e->stream, rank)};
    }
}

/* ---- lines ---- */

static Phase pass_of(const TimeEvent *e) { return words_phase(e->c); }
static int layer_of(const TimeEvent *e) { return e->c ? e->c->layer : -1; }
static const char *part_of(const TimeEvent *e) { return e->c && e->c->part ? e->c->part : ""; }

/* The part of kernel i of n; a norm belongs to what follows it. */
static const char *unit_part(TimeEvent *const *k, int n, int i) {
    /* sums: to what is before */
    while (i > 0 && !*part_of(k[i]) && layer_of(k[i - 1]) == layer_of(k[i])) i--;
    for (int j = i; j < n && layer_of(k[j]) == layer_of(k[i]); j++)
        if (!part_term(part_of(k[j]))->norm) return part_of(k[j]);
    return part_of(k[i]);
}

static bool same_unit(TimeEvent *const *k, int n, int i, int j) {
    return pass_of(k[i]) == pass_of(k[j]) && layer_of(k[i]) == layer_of(k[j]) &&
           !strcmp(unit_part(k, n, i), unit_part(k, n, j));
}

typedef struct {
    int first, n; /* kernels, by index into the list of kernels */
} Unit;

/* "attention and MLP": the parts of a line in the order of the program; a norm belongs to what
 * follows it. */
static const char *parts_text(Arena *a, TimeEvent *const *k, int n, Unit u) {
    const char *part[8];
    int m = 0;
    for (int i = u.first; i < u.first + u.n; i++) {
        const char *p = unit_part(k, n, i);
        bool known = !*p || part_term(p)->norm;
        for (int j = 0; j < m; j++) known |= !strcmp(part[j], p);
        if (!known && m < 8) part[m++] = p;
    }
    if (m == 0) return unit_part(k, n, u.first); /* norms alone */
    Str s = str_new(a);
    for (int j = 0; j < m; j++)
        str_addf(&s, "%s%s", j == 0 ? "" : j + 1 < m ? ", " : " and ", part_term_word(part[j]));
    return s.s;
}

bool timeline_again(const TimeEvent *x) {
    return (x->c && x->c->pass == PHASE_BACKWARD && x->c->makes.role == OF_ITSELF) ||
           (x->coll && x->coll->pass == PHASE_BACKWARD && x->coll->subject.role == OF_ITSELF);
}
/* ", partly again" of a line in which some kernels make what was made before and not kept. */
static const char *again_text(TimeEvent *const *k, Unit u) {
    int again = 0;
    for (int i = u.first; i < u.first + u.n; i++) again += timeline_again(k[i]);
    return !again ? "" : again == u.n ? ", again" : ", partly again";
}
static const char *line_title(Arena *a, TimeEvent *const *k, int n, Unit u, bool whole_pass,
                              int layers) {
    const char *pass = words_capital(a, phase_text(pass_of(k[u.first]))), *again = again_text(k, u);
    if (whole_pass) return arena_printf(a, "%s%s", pass, again);
    int to = u.first + u.n - 1; /* a sum behind a layer is of what the one before it gives */
    while (to > u.first && k[to]->small && !*part_of(k[to])) to--;
    int first = layer_of(k[u.first]), last = layer_of(k[to]);
    if (layers > 1 && first >= 0 && last >= 0)
        pass = first == last
                   ? arena_printf(a, "%s, layer %d", pass, first)
                   : arena_printf(a, "%s, layers %d to %d", pass, first < last ? first : last,
                                  first < last ? last : first);
    const char *parts = parts_text(a, k, n, u);
    return arena_printf(a, "%s%s%s%s", pass, *parts ? ", " : "", parts, again);
}

/* In a pipeline lines are of one layer, so that those of all stages are alike: does kernel i belong
 * to the part that begins with `first`? So does the sum with which a layer ends, of the gradient of
 * what it reads, which another layer makes. */
static bool part_goes_on(TimeEvent *const *k, int n, int i, int first) {
    bool sum = k[i]->small && !*part_of(k[i]) && pass_of(k[i]) == PHASE_BACKWARD;
    return (sum && pass_of(k[first]) == pass_of(k[i])) || same_unit(k, n, i, first);
}
/* May units share a line there? */
static bool same_line(TimeEvent *const *k, int n, Unit u, Unit v) {
    return layer_of(k[u.first]) == layer_of(k[v.first]) &&
           part_term(unit_part(k, n, u.first))->embedding ==
               part_term(unit_part(k, n, v.first))->embedding;
}
/* Is more sent behind the last kernel of a unit of n kernels than it takes? */
static bool sends_on(const Timeline *t, TimeEvent *const *k, int n, Unit u) {
    const TraceEvent *first = k[u.first]->e, *last = k[u.first + u.n - 1]->e;
    double end = last->end;
    for (int i = 0; i < t->n_events; i++) end = fmax(end, t->event[i].e->end);
    return u.first + u.n == n && end - last->end > last->end - first->start;
}
/* A few norms and sums behind a part of a layer get no line of their own, but for the last of the
 * program, behind which much is still sent. */
static bool is_tail(const Timeline *t, TimeEvent *const *k, int n, Unit u) {
    enum { FEW = 6 };
    bool small = u.n <= FEW && layer_of(k[u.first]) >= 0 && (t->step || !sends_on(t, k, n, u));
    for (int i = u.first; i < u.first + u.n; i++)
        small &= k[i]->small && (!*part_of(k[i]) || part_term(part_of(k[i]))->norm);
    return small;
}
/* A kernel or two outside the layers of a model of one: a line of their own says nothing. Beside
 * layers that are alike they would make one unlike the others, and in a pipeline a stage. */
static bool is_crumb(const Timeline *t, TimeEvent *const *k, Unit u, int layers) {
    return !t->step && layers == 1 && u.n <= 2 && layer_of(k[u.first]) < 0;
}
/* Layers that have kernels. */
static int layers_of(TimeEvent *const *k, int n) {
    int layers = 0, last = -1;
    for (int i = 0; i < n; i++)
        if (layer_of(k[i]) > last) layers++, last = layer_of(k[i]);
    return layers;
}
/* Units of the program joined into lines: a pass on one line if it has few kernels, else by layer,
 * else by part. */
static int make_units(Arena *a, const Timeline *t, TimeEvent *const *k, int n, int kernels,
                      Unit **out) {
    Unit *u = ARENA_ARRAY(a, Unit, n + 1);
    int m = 0;
    for (int i = 0; i < n; i++) {
        const bool next =
            m && (t->step ? part_goes_on(k, n, i, u[m - 1].first) : same_unit(k, n, i, i - 1));
        if (next) u[m - 1].n++;
        else u[m++] = (Unit){i, 1};
    }
    const int layers = layers_of(k, n);
    int kept = 0;
    for (int i = 0; i < m; i++) {
        bool joins = kept && pass_of(k[u[kept - 1].first]) == pass_of(k[u[i].first]) &&
                     (u[kept - 1].n + u[i].n <= kernels || is_tail(t, k, n, u[i]) ||
                      is_crumb(t, k, u[i], layers) || is_crumb(t, k, u[kept - 1], layers)) &&
                     (!t->step || same_line(k, n, u[kept - 1], u[i]));
        if (joins) u[kept - 1].n += u[i].n;
        else u[kept++] = u[i];
    }
    *out = u;
    return kept;
}

/* ---- sums ---- */

/* Of what lines show, or with `all` also of what is aside. */
static TraceTimes sum_of(const Timeline *t, Arena *a, double from, double to, bool all) {
    const TraceEvent **e = ARENA_ARRAY(a, const TraceEvent *, t->n_events + 1);
    int n = 0;
    for (int i = 0; i < t->n_events; i++)
        if (all || !t->event[i].aside) e[n++] = all ? t->event[i].rec : t->event[i].e;
    return trace_times(e, n, from, to);
}

/* The next event from i on that begins in the line, or NULL; of compute alone under `kernels`. */
static const TimeEvent *next_in(const Timeline *t, const TimeLine *l, bool kernels, int *i) {
    double eps = 1e-6 * (l->end - l->start);
    while (*i < t->n_events) {
        const TimeEvent *e = &t->event[(*i)++];
        if (e->aside) continue;
        if (e->e->start >= l->end - eps) return NULL;
        if (e->e->start >= l->start - eps && (!kernels || trace_is_compute(e->e))) return e;
    }
    return NULL;
}
#define SEEN 5e-3 /* of a line: who looks at two ranks sees no less, and sums differ by no more */
/* The same kernels with the same durations, and the same collectives where not `kernels` alone,
 * which are those of another rank. */
static bool alike(const Timeline *t, const TimeLine *p, const Timeline *u, const TimeLine *q,
                  bool kernels) {
    const double eps = (kernels ? SEEN : 1e-6) * (p->end - p->start);
    if (fabs((p->end - p->start) - (q->end - q->start)) > eps) return false;
    for (int i = 0, j = 0;;) {
        const TimeEvent *x = next_in(t, p, kernels, &i), *y = next_in(u, q, kernels, &j);
        if (!x || !y) return x == y;
        bool unit = x->coll && y->coll && x->coll->n_with && y->coll->n_with; /* of any layer */
        if (strcmp(unit ? x->code : x->name, unit ? y->code : y->name) ||
            !text_same(x->e->stream, y->e->stream))
            return false;
        if (fabs((x->e->start - p->start) - (y->e->start - q->start)) > eps ||
            fabs((x->e->end - x->e->start) - (y->e->end - y->e->start)) > eps)
            return false;
    }
}
bool timeline_as_long(const Timeline *t, const TimeLine *p, const Timeline *u, const TimeLine *q) {
    const double eps = SEEN * p->sum.span;
    return !strcmp(p->title, q->title) && (t->step ? u->step != NULL : p->same == q->same) &&
           fabs(p->sum.exposed - q->sum.exposed) <= eps &&
           fabs(p->sum.waiting - q->sum.waiting) <= eps && alike(t, p, u, q, true);
}

/* Where on the clock of a pipeline the last message came that was waited for from one time to
 * another, which that stands still for; `from`: none was. What is sent before it is of the line
 * before. */
static double message_at(const Timeline *t, double from, double to) {
    double at = from;
    for (int i = 0; i < t->n_events && t->step; i++) {
        const TimeEvent *x = &t->event[i];
        bool stands = timeline_is_message(x) && (x->rec->exposed > 0 || x->rec->wait_exposed > 0);
        if (stands && x->e->end <= to) at = fmax(at, x->e->end);
    }
    return at;
}
/* Adds a line, or one more to those that are like it. */
static void add_line(Timeline *t, Arena *a, TimeLine l) {
    int like = 0; /* the layers of a model repeat */
    while (like < t->n_lines && (!alike(t, &t->line[like], t, &l, false) ||
                                 (t->step && strcmp(t->line[like].title, l.title))))
        like++;
    if (like < t->n_lines) {
        t->line[like].same++;
        return;
    }
    l.sum = sum_of(t, a, l.start, l.end, false);
    t->line[t->n_lines++] = l;
}
/* Where what is sent after the last kernel takes so many times as long as its line, it has a line
 * of its own: at one scale the kernels were a few pixels. */
enum { TAIL = 2, FEW_KERNELS = 4 };
static void make_lines(Timeline *t, Arena *a, int kernels) {
    TimeEvent **k = ARENA_ARRAY(a, TimeEvent *, t->n_events + 1);
    Unit *u;
    int n = 0, layers = 0;
    double end = 0;
    for (int i = 0; i < t->n_events; i++) {
        end = fmax(end, t->event[i].e->end);
        if (trace_is_compute(t->event[i].e) && !t->event[i].aside) k[n++] = &t->event[i];
    }
    for (int i = 0; i < n; i++) layers = layer_of(k[i]) + 1 > layers ? layer_of(k[i]) + 1 : layers;
    int units = make_units(a, t, k, n, kernels, &u);
    t->line = ARENA_ARRAY(a, TimeLine, units + 1);
    if (units == 0) {
        t->line[t->n_lines++] =
            (TimeLine){.title = "Communication", .end = end, .sum = sum_of(t, a, 0, end, true)};
        return;
    }
    double from = 0;
    for (int i = 0; i < units; i++) {
        Phase pass = pass_of(k[u[i].first]);
        bool before = i > 0 && pass == pass_of(k[u[i - 1].first]);
        bool after = i + 1 < units && pass == pass_of(k[u[i + 1].first]), last = i + 1 == units;
        double to = k[u[i].first + u[i].n - 1]->e->end;
        const bool tail =
            last && !t->step && u[i].n >= FEW_KERNELS && end - to > TAIL * (to - from);
        if (!last) to = message_at(t, to, k[u[i + 1].first]->e->start);
        else if (!tail) to = end;
        add_line(t, a,
                 (TimeLine){.title = line_title(a, k, n, u[i], !before && !after && !t->step,
                                                t->step ? 1 : layers),
                            .start = from,
                            .end = to,
                            .step = k[u[i].first]->e->step});
        if (tail)
            add_line(t, a,
                     (TimeLine){.title = arena_printf(a, "%s, communication alone",
                                                      words_capital(a, phase_text(pass))),
                                .start = to,
                                .end = end,
                                .step = k[u[i].first + u[i].n - 1]->e->step});
        from = to;
    }
}

/* ---- classes ---- */

static void read_hidden(Timeline *t, Arena *a) {
    const TraceEvent **e = ARENA_ARRAY(a, const TraceEvent *, t->n_events + 1);
    double *hidden = ARENA_ARRAY(a, double, t->n_events + 1),
           *beside = ARENA_ARRAY(a, double, t->n_events + 1);
    for (int i = 0; i < t->n_events; i++) e[i] = t->event[i].rec;
    trace_hidden(e, t->n_events, hidden, beside);
    for (int i = 0; i < t->n_events; i++)
        t->event[i].hidden = hidden[i], t->event[i].beside = beside[i];
}
/* What all classes of a trace have in common. */
typedef struct {
    const ViewCall *c;
    TimeIndex by;
    bool staged;
    int kernels;
    RankSets sets; /* of the events */
    int *set;      /* of each event, its number among them */
} ClassReader;
static ClassReader class_reader(const ViewCall *c, int kernels) {
    const Trace *t = c->t;
    ClassReader r = {c,       time_index(t, c->arena), timeline_staged(c),
                     kernels, ranksets_new(c->arena),  NULL};
    r.set = ARENA_ARRAY(c->arena, int, t->n_events + 1);
    for (int i = 0; i < t->n_events; i++) r.set[i] = ranksets_number(&r.sets, &t->events[i].ranks);
    return r;
}
/* Of each set of events, whether the rank is in it; events of no ranks are those of all. */
static bool *sets_of(const ClassReader *r, int64_t rank) {
    bool *has = base_malloc(base_mul((size_t)r->sets.n + 1, sizeof *has));
    for (int i = 0; i < r->sets.n; i++)
        has[i] = !r->sets.set[i]->n || rankset_has(r->sets.set[i], rank);
    return has;
}
static Timeline read_class(const ClassReader *r, int64_t rank, RankSet ranks) {
    const ViewCall *c = r->c;
    const Trace *tr = c->t;
    Timeline t = {.trace = tr, .ranks = ranks, .how = "modelled"};
    int n = 0, *own = base_malloc(base_mul((size_t)tr->n_events + 1, sizeof *own));
    bool *has = sets_of(r, rank);
    for (int i = 0; i < tr->n_events; i++) {
        const TraceEvent *e = &tr->events[i];
        if (!has[r->set[i]]) continue;
        if (isfinite(e->start) && isfinite(e->end) && e->end >= e->start) own[n++] = i;
    }
    t.event = ARENA_ARRAY(c->arena, TimeEvent, n + 1); /* far fewer than those of all classes */
    while (t.n_events < n) {
        t.event[t.n_events] = read_event(&r->by, c->arena, &tr->events[own[t.n_events]]);
        t.n_events++;
    }
    free(own);
    free(has);
    qsort(t.event, (size_t)t.n_events, sizeof *t.event, by_start);
    read_hidden(&t, c->arena);
    read_lanes(c, &t, rank);
    if (r->staged) {
        timeline_take_aside(&t, c->arena);
        t.step = timeline_step(&t, c->arena, rank);
    }
    make_lines(&t, c->arena, r->kernels);
    double end = 0;
    for (int i = 0; i < t.n_events; i++) end = fmax(end, t.event[i].rec->end);
    t.sum = sum_of(&t, c->arena, 0, end, true);
    return t;
}

static bool same_times(const Timeline *a, const Timeline *b) {
    if (a->n_events != b->n_events) return false;
    for (int i = 0; i < a->n_events; i++) {
        const TraceEvent *x = a->event[i].rec, *y = b->event[i].rec;
        if (x->start != y->start || x->end != y->end || !text_same(x->name, y->name)) return false;
    }
    return true;
}

/* Moves the class to place `to`; the others stay in their order. */
static void move_class(Timeline *t, int from, int to) {
    Timeline x = t[from];
    for (; from > to; from--) t[from] = t[from - 1];
    t[to] = x;
}
/* Where not all can be shown, the one that waits longest for others comes after the first. */
static void idlest_second(Timeline *t, int n, int max) {
    int idle = 1;
    for (int i = 2; i < n; i++)
        if (t[i].sum.waiting > t[idle].sum.waiting) idle = i;
    if (n > max && max > 1) move_class(t, idle, 1);
}
/* The class of a rank as the model has it, and what the rank took: the first is left out where the
 * trace has no model of time. */
static int read_both(const ViewCall *c, int64_t focus, Timeline *out, int kernels) {
    ViewCall own = *c;
    int n = 0;
    if (c->t->n_measured == 0) {
        diag_error(
            c->d, "E0211", (Loc){0},
            "mpirun ... shardproof run PLAN --mpi -o DIR (or run PLAN --cuda=virtual), and draw "
            "the trace in DIR",
            "the trace has no measured times: it is not of a run on processes or on a GPU");
        return 0;
    }
    RankSet *part;
    int parts = c->t->n_events ? trace_parts(c->t, c->arena, &part) : 0;
    const ClassReader modelled = class_reader(c, kernels);
    for (int i = 0; i < parts && !n; i++)
        if (rankset_has(&part[i], focus)) out[n++] = read_class(&modelled, focus, part[i]);
    own.t = timeline_measured(c->t, c->arena, focus);
    const ClassReader took = class_reader(&own, kernels);
    out[n] = read_class(&took, focus, rankset_range(c->arena, focus, 1, 1));
    out[n++].how = "measured";
    return n;
}
int timeline_read(const ViewCall *c, Timeline *out, int max, int kernels, TimeFold *folded) {
    const Trace *t = c->t;
    const char *view = c->o->view ? c->o->view : "timeline"; /* others read it, too */
    int64_t focus = c->o->rank >= 0 ? c->o->rank : 0;
    int n = 0;
    *folded = (TimeFold){0};
    if (c->o->measured) return read_both(c, focus, out, kernels);
    for (int i = 0; i < t->n_diags && t->n_events == 0; i++) {
        if (t->diags[i].severity != DIAG_ERROR) continue;
        diag_error(c->d, "E0211", diag_nowhere,
                   "mend that line, or draw view 'block', which shows the step",
                   "view '%s' has no times, for the plan breaks a rule: %s [%s]", view,
                   t->diags[i].message, t->diags[i].code);
        return 0;
    }
    if (t->n_events == 0) {
        diag_error(c->d, "E0211", diag_nowhere,
                   "draw the plan itself, or run it with a `hardware:` profile (--hardware NAME) "
                   "and draw that trace",
                   "the trace has no times for view '%s'", view);
        return 0;
    }
    RankSet *part; /* ranks that do the same work take the same time */
    int classes = trace_parts(t, c->arena, &part), first = 0;
    bool busiest;
    const RankSet *slowest = trace_slowest(t, &busiest);
    Timeline *all = ARENA_ARRAY(c->arena, Timeline, classes + 1);
    const ClassReader reader = class_reader(c, kernels);
    for (int k = 0; k < classes; k++) {
        bool own = rankset_has(&part[k], focus);
        bool told = c->o->rank >= 0 ? own : slowest && rankset_same(&part[k], slowest);
        if (part[k].n == 0) continue;
        Timeline x = read_class(&reader, own ? focus : rankset_first(&part[k]), part[k]);
        int like = 0;
        while (like < n && !same_times(&all[like], &x)) like++;
        if (x.n_events == 0) continue;
        folded->same += like < n;
        if (like == n) n++;
        else if (!told) continue;
        all[like] = x; /* of equal ones the one that is told of */
        if (told) first = like;
    }
    for (int k = 0; k < n && c->o->rank < 0 && all[first].step; k++)
        if (all[k].step->idle < all[first].step->idle * (1 - 1e-9)) first = k;
    if (n) move_class(all, first, 0);
    idlest_second(all, n, max);
    folded->left = n > max ? n - max : 0;
    n -= folded->left;
    for (int k = 0; k < n; k++) out[k] = all[k];
    if (n == 0)
        diag_error(c->d, "E0211", diag_nowhere, NULL, "the trace has no times for rank %lld",
                   (long long)focus);
    return n;
}

/* ---- sentences ---- */

const char *timeline_ranks(const Timeline *t, Arena *a) {
    return arena_printf(a, "%s %s", rankset_count(&t->ranks) == 1 ? "rank" : "ranks",
                        rankset_text(&t->ranks, a));
}

const char *timeline_folded(Arena *a, TimeFold f) {
    const char *same = f.same ? arena_printf(a, ", %d with the same times folded", f.same) : "";
    return f.left ? arena_printf(a, "%s, %d more not shown (--rank)", same, f.left) : same;
}
const char *timeline_who(const ViewCall *c, const Timeline *t) {
    const char *ranks = timeline_ranks(t, c->arena);
    return c->o->measured ? arena_printf(c->arena, "%s, %s", t->how, ranks) : ranks;
}
const char *timeline_kind(const ViewCall *c) {
    if (!c->o->measured) return "modelled time";
    if (trace_took_in_turns(c->t))
        return "measured on one GPU in turns (--cuda=share): times say nothing";
    return c->t->n_events ? "modelled and measured time, each at a scale of its own"
                          : "measured time";
}
/* "Rank 0 took 12.1 ms where the model says 9.4 ms (1.3 times as long)" */
static const char *measured_title(const ViewCall *c, const Timeline *t, int n) {
    Arena *a = c->arena;
    double took = t[n - 1].sum.span, model = n > 1 ? t[0].sum.span : 0;
    const char *what = arena_printf(a, "%s took %s", words_capital(a, timeline_ranks(&t[n - 1], a)),
                                    time_text(took, a));
    if (model <= 0) return what;
    if (trace_took_in_turns(c->t))
        return arena_printf(a, "%s in turns with others on its GPU", what);
    return arena_printf(a, "%s where the model says %s (%.3g times that)", what,
                        time_text(model, a), took / model);
}
/* "Busiest, rank 3: " */
static const char *whose(const ViewCall *c, const Timeline *x, int n) {
    Arena *a = c->arena;
    if (n == 1) return "";
    if (c->o->rank >= 0) return arena_printf(a, "On rank %lld: ", (long long)c->o->rank);
    bool busiest;
    const RankSet *r = trace_slowest(c->t, &busiest);
    const char *what = r && busiest ? "Busiest" : "Last to end", *ranks = timeline_ranks(x, a);
    return strlen(ranks) < 16 ? arena_printf(a, "%s, %s: ", what, ranks)
                              : arena_printf(a, "%s: ", what);
}
/* The class of those shown that waits longest for others. */
static const Timeline *most_waiting(const Timeline *t, int n) {
    const Timeline *most = t;
    for (int i = 1; i < n; i++)
        if (t[i].sum.waiting > most->sum.waiting) most = &t[i];
    return most;
}
/* What a title says beside how much compute waits: of ranks out of balance who waits for whom. */
static const char *beside_waiting(const ViewCall *c, const Timeline *t, int n) {
    Arena *a = c->arena;
    const TraceTimes *s = &t->sum;
    const Timeline *most = most_waiting(t, n);
    if (c->o->rank < 0 && most != t && most->sum.waiting >= 0.01 * most->sum.span)
        return arena_printf(a, "%s %s %s for others", timeline_ranks(most, a),
                            rankset_count(&most->ranks) == 1 ? "waits" : "wait",
                            percent_text(a, most->sum.waiting, most->sum.span));
    if (s->waiting >= 0.01 * s->span)
        return arena_printf(a, "%s for other ranks", percent_text(a, s->waiting, s->span));
    return arena_printf(a, "%s communication is hidden%s",
                        s->hidden <= 1e-9 * s->span
                            ? "no"
                            : arena_printf(a, "%s of", percent_text(a, s->hidden, s->comm)),
                        n == 1 ? " behind it" : "");
}
const char *timeline_plain_title(const ViewCall *c, const Timeline *t, int n) {
    Arena *a = c->arena;
    if (c->o->measured) return measured_title(c, t, n);
    const TraceTimes *s = &t->sum;
    double still = s->exposed + s->waiting;
    const char *who = whose(c, t, n);
    const char *how = s->comm <= 0 ? "compute never waits, nothing is communicated"
                      : still <= 1e-9 * s->span && most_waiting(t, n) == t
                          ? "compute never waits, all communication is hidden behind it"
                          : arena_printf(a, "compute waits %s of the time, %s",
                                         percent_text(a, still, s->span), beside_waiting(c, t, n));
    return *who ? arena_printf(a, "%s%s", who, how) : words_capital(a, how);
}

const char *timeline_hidden_text(double comm, double hidden, double beside, const char *exposed,
                                 Arena *a) {
    const char *more = beside > 0 ? arena_printf(a, ", and %s is behind other communication",
                                                 percent_text(a, beside, comm))
                                  : "";
    return arena_printf(a, "%s (overlaps counted once), of which %s is hidden%s",
                        comm_text(comm, hidden, beside, exposed, a), percent_text(a, hidden, comm),
                        more);
}
/* Where each step began when all ranks had ended the one before, nothing is hidden. What is left is
 * slices and views, which no event stands for, and waiting. */
static const char *measured_totals(const Timeline *x, Arena *a) {
    const TraceTimes *s = &x->sum;
    double rest = s->span - s->compute - s->exposed;
    bool beside = s->hidden > 1e-9 * s->span;
    Str r = str_new(a);
    const bool other = rest > 1e-3 * s->span;
    const char *part[3], *span = time_sum_text((double[]){s->compute, s->exposed, other ? rest : 0},
                                               3, part, a); /* as the report has it */
    str_addf(&r, "Measured, %s: step %s = compute %s", timeline_ranks(x, a), span, part[0]);
    if (s->comm > 0) str_addf(&r, " + %scommunication %s", beside ? "exposed " : "", part[1]);
    if (other) str_addf(&r, " + %s of slices, and of waiting for ranks that take longer", part[2]);
    str_add(&r, ".");
    if (beside)
        str_addf(&r, " Communication %s.",
                 timeline_hidden_text(s->comm, s->hidden, s->beside, part[1], a));
    return r.s;
}
/* What a span is the time of: the records have one micro-batch of a step that has several. */
static const char *spanned(const Trace *t, Arena *a) {
    double parts = words_find_dim(t, "microbatches");
    if (!(parts > 1)) return "step";
    return arena_printf(a, "%s%s,", trace_way_one(trace_both_ways(t)),
                        t->pass == PASS_FORWARD ? "" : " and what is done once a step");
}
const char *timeline_plain_totals(const ViewCall *c, const Timeline *t, int n) {
    Arena *a = c->arena;
    if (c->o->measured) return measured_totals(&t[n - 1], a);
    const TraceTimes *s = &t->sum;
    bool busiest;
    Str r = str_new(a);
    trace_slowest(c->t, &busiest);
    if (n > 1)
        str_addf(&r, "%s%s: ",
                 c->o->rank >= 0 ? "On "
                 : busiest       ? "The busiest, "
                                 : "The last to end, ",
                 timeline_ranks(t, a));
    const char *of = spanned(c->t, a);
    const char *part[3],
        *span = time_sum_text((double[]){s->compute, s->exposed, s->waiting}, 3, part, a);
    str_addf(&r, "%s %s = compute %s", r.n ? of : words_capital(a, of), span, part[0]);
    if (s->comm > 0) str_addf(&r, " + exposed %s", part[1]);
    if (s->waiting > 0) str_addf(&r, " + waiting for other ranks %s", part[2]);
    str_add(&r, ".");
    if (s->comm > 0)
        str_addf(&r, " Communication %s.",
                 timeline_hidden_text(s->comm, s->hidden, s->beside, part[1], a));
    const Timeline *most = most_waiting(t, n);
    if (n > 1 && most->sum.waiting > s->waiting)
        str_addf(&r, " Of its %s %s wait%s %s for others.", time_text(most->sum.span, a),
                 timeline_ranks(most, a), rankset_count(&most->ranks) == 1 ? "s" : "",
                 time_text(most->sum.waiting, a));
    return r.s;
}
