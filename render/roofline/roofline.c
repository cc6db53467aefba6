/* Kernels and collectives of one rank, counted. See roofline.h. */
#include "render/roofline/roofline.h"
#include "base/text.h"
#include "trace/trace_way.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

const char *const bound_words[BOUNDS] = {
    [BOUND_COMPUTE] = "compute-bound",
    [BOUND_MEMORY] = "memory-bound",
    [BOUND_LAUNCH] = "launch-bound",
};

double roofline_ridge(const Trace *t) { return t->flop_rate / t->memory_rate; }
double roofline_roof(const Trace *t, double per_byte) {
    return fmin(t->flop_rate, per_byte * t->memory_rate);
}
static Bound bound_of(const Trace *t, const TraceEvent *e) {
    const double work = e->work / t->flop_rate, moved = e->moved / t->memory_rate;
    if (t->launch > fmax(work, moved)) return BOUND_LAUNCH;
    return work >= moved ? BOUND_COMPUTE : BOUND_MEMORY;
}
static double lasts(const TraceEvent *e) { return e->end - e->start - e->wait; }
static bool alike(double x, double y) { return fabs(x - y) <= 1e-6 * fmax(fabs(x), fabs(y)); }

static int note_of(const Roofline *r, const TimeEvent *x) {
    return wrong_number(r->wrong, x->rec->step);
}

/* ---- kernels ---- */
static RoofKernel *kernel_like(Roofline *r, const TimeEvent *x) {
    for (int i = 0; i < r->n_kernels; i++) {
        RoofKernel *k = &r->kernel[i];
        if (note_of(r, k->x) == note_of(r, x) && k->x->small == x->small &&
            k->x->gradient == x->gradient && alike(k->work, x->rec->work) &&
            alike(k->moved, x->rec->moved) && alike(k->took, lasts(x->rec)) &&
            text_same(k->name, x->name))
            return k;
    }
    return NULL;
}
static void add_kernel(Roofline *r, const TimeEvent *x) {
    const Bound b = bound_of(r->t, x->rec);
    RoofKernel *k = kernel_like(r, x);
    if (!k) {
        k = &r->kernel[r->n_kernels++];
        *k = (RoofKernel){x, x->name, 0, x->rec->work, x->rec->moved, lasts(x->rec), b};
    }
    k->n++;
    r->kernels++, r->of_bound[b]++;
    r->took[b] += lasts(x->rec), r->compute += lasts(x->rec);
}
static int by_time(const void *x, const void *y) {
    const RoofKernel *a = x, *b = y;
    const double d = b->n * b->took - a->n * a->took;
    if (fabs(d) > 1e-15) return d > 0 ? 1 : -1;
    return (a->x->rec->step > b->x->rec->step) - (a->x->rec->step < b->x->rec->step);
}

/* ---- collectives ---- */
static const char *coll_name(const Roofline *r, const TimeEvent *x) {
    const char *unit = words_unit(r->t, x->coll);
    return unit && x->coll->layer >= 0 ? arena_printf(r->c->arena, "%s %s", x->code, unit)
                                       : x->name;
}
static bool spans_nodes(const Trace *t, const RankGroups *g) {
    const int64_t node = t->node_ranks, m = groups_size(g);
    for (int64_t i = 0; node > 0 && m > 1 && i < groups_count(g); i++)
        if (groups_member(g, i, 0) / node != groups_member(g, i, m - 1) / node) return true;
    return false;
}
static RoofColl *coll_like(Roofline *r, const RoofColl *want) {
    for (int i = 0; i < r->n_colls; i++) {
        RoofColl *k = &r->coll[i];
        if (note_of(r, k->x) == note_of(r, want->x) && k->makes == want->makes &&
            k->products == want->products && alike(k->sent, want->sent) &&
            alike(k->took, want->took) && alike(k->work, want->work) &&
            alike(k->math, want->math) && text_same(k->name, want->name) &&
            text_same(k->x->rec->stream, want->x->rec->stream))
            return k;
    }
    return NULL;
}
static void add_coll(Roofline *r, RoofSteps *steps, const TimeEvent *x) {
    RoofColl one = {.x = x, .name = coll_name(r, x), .sent = x->rec->moved, .took = lasts(x->rec)};
    one.across = spans_nodes(r->t, &x->coll->groups);
    roof_products(steps, &one);
    if (!one.products || one.work <= 0 || one.sent <= 0) {
        r->alone++;
        return;
    }
    RoofColl *k = coll_like(r, &one);
    if (!k) *(k = &r->coll[r->n_colls++]) = one;
    k->n++;
    const bool longer = one.took > one.math;
    r->colls++, r->longer += longer;
    r->sent += one.took, r->sent_longer += longer ? one.took : 0;
}
static int by_sent(const void *x, const void *y) {
    const RoofColl *a = x, *b = y;
    const double d = b->n * b->took - a->n * a->took;
    if (fabs(d) > 1e-15) return d > 0 ? 1 : -1;
    return (a->x->rec->step > b->x->rec->step) - (a->x->rec->step < b->x->rec->step);
}

/* ---- the whole ---- */
static bool sound(double v) { return isfinite(v) && v > 0; }
static bool has_rates(const ViewCall *c) {
    const Trace *t = c->t;
    if (sound(t->flop_rate) && sound(t->memory_rate) && isfinite(t->launch) && t->launch >= 0)
        return true;
    diag_error(c->d, "E0211", diag_nowhere, "draw the plan itself",
               "nothing to draw in view 'roofline': the trace does not say what its times are made "
               "from");
    return false;
}
bool roofline_read(Roofline *r, const ViewCall *c) {
    TimeFold folded;
    *r = (Roofline){.c = c, .t = c->t, .wrong = wrong_find(c->arena, c->t, NULL, NULL)};
    if (timeline_read(c, &r->line, 1, 24, &folded) == 0 || !has_rates(c)) return false;
    const Timeline *l = &r->line;
    RoofSteps *steps = roof_steps(l, c->arena);
    r->kernel = ARENA_ARRAY(c->arena, RoofKernel, l->n_events + 1);
    r->coll = ARENA_ARRAY(c->arena, RoofColl, l->n_events + 1);
    for (int i = 0; i < l->n_events; i++) {
        const TimeEvent *x = &l->event[i];
        if (!isfinite(lasts(x->rec)) || lasts(x->rec) <= 0) continue;
        if (x->c) add_kernel(r, x);
        else if (timeline_is_message(x)) r->messages++;
        else if (x->coll) add_coll(r, steps, x);
    }
    qsort(r->kernel, (size_t)r->n_kernels, sizeof *r->kernel, by_time);
    qsort(r->coll, (size_t)r->n_colls, sizeof *r->coll, by_sent);
    return true;
}

/* ---- sentences ---- */
const char *roofline_amount(Arena *a, double v, const char *unit) {
    const char *s = count_text(v, a);
    return arena_printf(a, "%s%s%s", s, strchr(s, ' ') ? "" : " ", unit);
}
static const char *colls_title(const Roofline *r) {
    Arena *a = r->c->arena;
    if (!r->colls) return "";
    if (r->colls == 2 && !r->longer) return "; both collectives are shorter than their products";
    if (!r->longer)
        return r->colls == 1
                   ? "; the collective is shorter than its products"
                   : arena_printf(a, "; all %d collectives are shorter than their products",
                                  r->colls);
    if (r->colls == 1) return "; the collective outlasts its products";
    if (r->colls == 2 && r->longer == 2) return "; both collectives outlast their products";
    if (r->longer == r->colls)
        return arena_printf(a, "; all %d collectives outlast their products", r->colls);
    return arena_printf(a, "; %d of %d collectives outlast%s products", r->longer, r->colls,
                        r->longer == 1 ? "s its" : " their");
}
const char *roofline_title(const Roofline *r, RoofPart part) {
    Arena *a = r->c->arena;
    const char *colls = part == ROOF_KERNELS ? "" : colls_title(r);
    if (part == ROOF_COLLS)
        return words_capital(a, *colls ? colls + strlen("; ")
                                       : "no collective has products around it");
    Bound most = BOUND_COMPUTE;
    for (int b = 0; b < BOUNDS; b++)
        if (r->took[b] > r->took[most]) most = (Bound)b;
    const int n = r->of_bound[most];
    if (n == r->kernels)
        return n == 1   ? arena_printf(a, "The kernel is %s%s", bound_words[most], colls)
               : n == 2 ? arena_printf(a, "Both kernels are %s%s", bound_words[most], colls)
                        : arena_printf(a, "All %d kernels are %s%s", n, bound_words[most], colls);
    return arena_printf(a, "%d of %d kernels %s %s: %s of the compute time%s", n, r->kernels,
                        n == 1 ? "is" : "are", bound_words[most],
                        percent_text(a, r->took[most], r->compute), colls);
}
static void kernels_total(const Roofline *r, Str *s) {
    Arena *a = r->c->arena;
    str_addf(s, "Compute %s", time_text(r->compute, a));
    for (int b = 0, k = 0; b < BOUNDS; b++)
        if (r->of_bound[b])
            str_addf(s, "%s%s %s in %d kernel%s", k++ ? ", " : ": ", bound_words[b],
                     time_text(r->took[b], a), r->of_bound[b], r->of_bound[b] == 1 ? "" : "s");
    str_add(s, ".");
}
static void colls_total(const Roofline *r, Str *s) {
    Arena *a = r->c->arena;
    const char *blank = s->n ? " " : "";
    if (r->colls)
        str_addf(s, "%sCollectives with products %s, added one by one, %s.", blank,
                 time_text(r->sent, a),
                 !r->longer ? "none of which outlasts them"
                            : arena_printf(a, "%s of it in %d that outlast%s",
                                           time_text(r->sent_longer, a), r->longer,
                                           r->longer == 1 ? "s them" : " them"));
    if (r->alone)
        str_addf(s, " %d more collective%s %s no product around %s.", r->alone,
                 r->alone == 1 ? "" : "s", r->alone == 1 ? "has" : "have",
                 r->alone == 1 ? "it" : "them");
    if (r->messages)
        str_addf(s, " %d message%s between stages %s not drawn.", r->messages,
                 r->messages == 1 ? "" : "s", r->messages == 1 ? "is" : "are");
}
const char *roofline_totals(const Roofline *r, RoofPart part) {
    Str s = str_new(r->c->arena);
    if (part != ROOF_COLLS) kernels_total(r, &s);
    if (part != ROOF_KERNELS) colls_total(r, &s);
    return s.s;
}
const char *roofline_whose(const Roofline *r, bool alone) {
    const Trace *t = r->t;
    Arena *a = r->c->arena;
    const char *who = timeline_ranks(&r->line, a);
    if (rankset_count(&r->line.ranks) == t->ranks && t->ranks > 1)
        who = arena_printf(a, "all %lld ranks alike", (long long)t->ranks);
    if (!(words_find_dim(t, "microbatches") > 1)) return who;
    if (alone) who = arena_printf(a, "%s, %s", who, trace_way_one(trace_both_ways(t)));
    if (t->pass == PASS_FORWARD) return who;
    return arena_printf(a, "%s%s what is done once a step", who, alone ? " and" : ", and");
}
const char *roofline_limits(const Roofline *r) {
    const Trace *t = r->t;
    Arena *a = r->c->arena;
    return arena_printf(a, "ridge at %s", roofline_amount(a, roofline_ridge(t), "FLOP per byte"));
}
