/* Words, sizes and places in an overview. See overview_pen.h. */
#include "render/overview/overview_pen.h"
#include "base/text.h"
#include "trace/counts.h"
#include <math.h>
#include <string.h>

/* ---- words ---- */

const char *overview_ops(Arena *a, const OverviewUnit *u) {
    return arena_printf(a, "%d op%s", u->ops, u->ops == 1 ? "" : "s");
}
const char *overview_weights(Arena *a, const OverviewUnit *u) {
    return u->weights > 0 ? arena_printf(a, "%s of weights", bytes_text(u->weights, a))
           : u->reads     ? "no weights of its own"
                          : "no weights";
}

const char *overview_note(const OverviewPen *p, const OverviewUnit *u) {
    Arena *a = p->o.c->arena;
    return u->weights <= 0 || p->of_weights ? overview_weights(a, u) : bytes_text(u->weights, a);
}

/* A message is called by its name: it has no code that says which way it goes. */
static const CollWord *coded(const OverviewItem *i) {
    return i->c && !collective_is_message(i->c) ? coll_word(i->c->op) : NULL;
}
/* "AllGather ×2, 8 KiB", "AG ×2, 8 KiB", "AllGather layer, 373 KiB" of what stands at one part of
 * that. */
static const char *item_text(const OverviewPen *p, const OverviewItem *i, bool code) {
    Arena *a = p->o.c->arena;
    Str s = str_new(a);
    const CollWord *w = code ? coded(i) : NULL;
    bool comes = words_message(i->c, p->o.rank) == MESSAGE_FROM && !i->c->skipped;
    str_add(&s, w       ? words_done(a, w->code, i->c)
                : comes ? words_coll_on(i->c, p->o.rank)
                        : words_coll_done(a, i->c));
    const char *unit = words_unit(p->o.c->t, i->c);
    const bool again = !p->merged && overview_again(&p->o, i->c);
    if (unit && !(again && code)) str_addf(&s, " %s", unit); /* its first gather says of what */
    if (again) str_add(&s, " again");
    int64_t count = i->sum.count + i->sum.received;
    if (count > collective_times(i->c))
        str_addf(&s, "%s×%lld", p->dense && code ? "" : " ", (long long)count);
    if (p->bytes && i->sum.bytes) str_addf(&s, ", %s", bytes_text(i->sum.bytes, a));
    return s.s;
}
static void add_code(Str *s, const OverviewItem *i) {
    const CollWord *w = coded(i);
    if (w && strcmp(w->code, w->name) && (!s->n || !strstr(s->s, w->name)))
        str_addf(s, "%s%s %s", s->n ? ", " : "", w->code, w->name);
}
/* Is there a norm on a way for which there is no room? */
static bool lacks_norms(const OverviewPen *p) {
    for (int k = 0; k < p->o.n && !p->norms; k++)
        for (int q = 0; q < WAYS; q++)
            for (int i = 0; i < p->o.unit[k].way[q].n; i++)
                if (!p->o.unit[k].way[q].item[i].c) return true;
    return false;
}
const char *overview_codes(const OverviewPen *p) {
    Str s = str_new(p->o.c->arena);
    for (int k = 0; k < p->o.n; k++) {
        const OverviewUnit *u = &p->o.unit[k];
        for (int q = 0; q < SEND_KINDS && p->kinds && p->codes; q++)
            for (int i = 0; q != (int)p->o.flow && i < u->n_total[q]; i++)
                add_code(&s, &u->total[q][i]);
        for (int q = 0; q < WAYS && p->codes_too && !u->message; q++)
            for (int i = 0; i < u->way[q].n; i++) add_code(&s, &u->way[q].item[i]);
    }
    if (lacks_norms(p)) str_add(&s, s.n ? " · norms are not drawn" : "norms are not drawn");
    return s.n ? s.s : "";
}

/* Behind the pill of an axis in a column. */
const char *overview_total(const OverviewPen *p, const OverviewItem *t) {
    Arena *a = p->o.c->arena;
    if (p->kinds) return item_text(p, t, p->codes);
    if (!t->sum.count) return "receives";
    const char *bytes = bytes_text(t->sum.bytes, a);
    return t->sum.count == 1 ? bytes
                             : arena_printf(a, "%s in %lld", bytes, (long long)t->sum.count);
}

/* In the hexagon of collectives: "AllGather ×2, 8 KiB". */
const char *overview_item(const OverviewPen *p, const OverviewItem *i) {
    return item_text(p, i, p->codes_too);
}

const char *overview_numbers(const OverviewPen *p, const TraceValue *v) {
    const TraceLocal *l = v ? words_find_local(&v->shape, p->o.rank) : NULL;
    Arena *a = p->o.c->arena;
    if (!l) return "";
    if (!v->shape.nd) return bytes_text(l->bytes, a);
    return arena_printf(a, "%s   %s", words_shape(a, l->shape, v->shape.nd),
                        bytes_text(l->bytes, a));
}

const char *overview_symbols(const OverviewPen *p, const TraceValue *v) {
    return v->shape.nd ? words_symbol(p->o.c->arena, v->shape.symbolic) : "one number";
}

const char *overview_bracket(const OverviewPen *p, const OverviewUnit *u) {
    return arena_printf(p->o.c->arena, p->brief ? "%d to %d" : "layers %d to %d", u->layer,
                        u->layer + u->layers - 1);
}

/* ---- places ---- */

bool overview_shown(const OverviewPen *p, const OverviewItem *i) { return i->c || p->norms; }

double overview_item_width(const OverviewPen *p, const OverviewItem *i) {
    if (!i->c) return NORM;
    return pill_width(p->s, words_axis_list(p->o.c->arena, p->o.c->t, i->c->axis)) + 4 +
           scene_width(p->s, 12, MEDIUM, overview_item(p, i)) + 0.8 * p->hex + 6;
}
/* From the stream to the box: what stands there, and an arrow before each and behind the last. */
static double way_width(const OverviewPen *p, const OverviewWay *w) {
    double x = JOIN;
    for (int i = 0; i < w->n; i++)
        if (overview_shown(p, &w->item[i])) x += overview_item_width(p, &w->item[i]) + JOIN;
    return x;
}
static int on_way(const OverviewPen *p, const OverviewWay *w) {
    int n = 0;
    for (int i = 0; i < w->n; i++) n += overview_shown(p, &w->item[i]);
    return n;
}

const char *overview_message(const OverviewPen *p, const OverviewUnit *u) {
    const OverviewItem *i = u->way[WAY_INSIDE].n ? u->way[WAY_INSIDE].item : NULL;
    Arena *a = p->o.c->arena;
    return i && i->sum.bytes ? arena_printf(a, "%s, %s", u->title, bytes_text(i->sum.bytes, a))
                             : u->title;
}
/* Of its hexagon and the pill before it. */
double overview_message_width(const OverviewPen *p, const OverviewUnit *u) {
    const OverviewItem *i = u->way[WAY_INSIDE].n ? u->way[WAY_INSIDE].item : NULL;
    double w = scene_width(p->s, 12, MEDIUM, overview_message(p, u)) + 0.8 * p->hex + 6;
    if (!i) return w;
    return w + 4 + pill_width(p->s, words_axis_list(p->o.c->arena, p->o.c->t, i->c->axis));
}

int overview_lines(const OverviewPen *p, const OverviewUnit *u, SendKind k, OverviewItem **out) {
    *out = ARENA_ARRAY(p->o.c->arena, OverviewItem, OVERVIEW_TOTALS);
    if (!p->kinds) return overview_by_axis(u->total[k], u->n_total[k], *out);
    int n = 0;
    for (int i = 0; i < u->n_total[k]; i++) {
        const OverviewItem *one = &u->total[k][i];
        int j = p->merged ? 0 : n;
        while (j < n &&
               (strcmp((*out)[j].c->axis, one->c->axis) || strcmp((*out)[j].c->op, one->c->op)))
            j++;
        if (j < n) words_add_total(&(*out)[j].sum, &one->sum, 1);
        else (*out)[n++] = *one;
    }
    return n;
}
double overview_line_gap(const OverviewPen *p) { return p->dense ? 5 : 8; }
double overview_line_size(const OverviewPen *p) { return p->dense ? 12 : 12.5; }
double overview_line_width(const OverviewPen *p, const OverviewItem *t) {
    return pill_width(p->s, words_axis_list(p->o.c->arena, p->o.c->t, t->c->axis)) +
           overview_line_gap(p) +
           scene_width(p->s, overview_line_size(p), REGULAR, overview_total(p, t));
}
/* Of all that a unit sends of one kind, as lines or in one line. */
static double totals_width(const OverviewPen *p, const OverviewUnit *u, SendKind k) {
    double w = 0;
    OverviewItem *line;
    int n = overview_lines(p, u, k, &line);
    for (int j = 0; j < n; j++) {
        double one = overview_line_width(p, &line[j]);
        w = p->flat ? w + (j ? SIDE : 0) + one : fmax(w, one);
    }
    return w;
}

/* Is what the optimizer sends beside its own box only? Then it needs no column and no heading. */
bool overview_apart_only(const Overview *o, SendKind k) {
    bool only = k == SEND_OPTIMIZER;
    for (int i = 0; only && i < o->n; i++) only = o->unit[i].apart || !o->unit[i].n_total[k];
    return only;
}

const char *overview_head(const OverviewPen *p, SendKind k) {
    return k == SEND_GRADIENTS && p->brief ? "gradients" : overview_kind(&p->o, k);
}

/* Columns right of the boxes, of the kinds that stand on no way; returns their width. */
static double columns(OverviewPen *p) {
    const double gap = p->dense ? 9 : 18;
    double x = SIDE, widest = 0;
    p->heads = false;
    for (int k = 0; k < SEND_KINDS; k++) {
        double w = 0;
        bool apart = overview_apart_only(&p->o, (SendKind)k);
        p->col[k] = apart ? SIDE : x;
        if (k == (int)p->o.flow) continue;
        for (int i = 0; i < p->o.n; i++) w = fmax(w, totals_width(p, &p->o.unit[i], (SendKind)k));
        widest = fmax(widest, w);
        if (apart) w = 0;
        if (w > 0) w = fmax(w, scene_width(p->s, 12.5, SEMIBOLD, overview_head(p, (SendKind)k)));
        if (w > 0 && !p->stacked) x += w + gap, p->heads = true;
    }
    return p->stacked ? 0 : fmax(x > SIDE ? x - gap : 0, widest > 0 ? SIDE + widest : 0);
}

/* Lines of the columns that a unit needs; below it, of all kinds. */
static int lines(const OverviewPen *p, const OverviewUnit *u) {
    int n = 0;
    for (int k = 0; k < SEND_KINDS; k++) {
        OverviewItem *line;
        int own = k == (int)p->o.flow ? 0 : overview_lines(p, u, (SendKind)k, &line);
        if (p->stacked) n += own;
        else if (p->flat) n |= own > 0;
        else n = n > own ? n : own;
    }
    return n;
}

/* A box has the height of what stands on the two ways, and in it. */
double overview_box(const OverviewPen *p, const OverviewUnit *u) {
    if (u->message) return p->hex + 2;
    double h = p->box;
    int in = on_way(p, &u->way[WAY_IN]), out = on_way(p, &u->way[WAY_OUT]);
    if (in || out) h = fmax(h, in && out ? 2 * p->hex + 6 : p->hex + 14);
    if (u->way[WAY_INSIDE].n) h = fmax(h, 26 + u->way[WAY_INSIDE].n * (p->hex + 4));
    int n = p->stacked ? 0 : lines(p, u);
    return n > 1 ? fmax(h, LINE * n + 4) : fmax(h, n * p->lowest);
}
double overview_height(const OverviewPen *p, const OverviewUnit *u) {
    return overview_box(p, u) + (p->stacked ? LINE * lines(p, u) + (lines(p, u) ? 4 : 0) : 0);
}
/* Where the ways in and out meet a unit, under its top. */
double overview_lane(const OverviewPen *p, const OverviewUnit *u, bool out) {
    double h = overview_box(p, u), at = fmax(h * 0.25, 7);
    if (u->message) return h / 2;
    if (on_way(p, &u->way[out ? WAY_OUT : WAY_IN])) at = p->hex / 2 + 1;
    if (h >= 2 * p->hex + 6) at = h / 2 - p->hex / 2 - 3;
    return out ? h - at : at;
}

/* Does what leaves unit i - 1 not flow into unit i: the pass ends, or goes on elsewhere? */
bool overview_breaks(const Overview *o, int i) {
    const OverviewUnit *u = &o->unit[i], *before = i > 0 ? u - 1 : NULL;
    return before && (before->message == MESSAGE_TO || u->message == MESSAGE_FROM ||
                      (u->in && before->message != MESSAGE_FROM) || (u->apart && !before->apart));
}

/* A layout is written where the stream comes to have it, and where it begins and ends; `inside`:
 * in the gap above unit i. */
bool overview_labelled(const OverviewPen *p, int i, const TraceValue *v, const TraceValue *last,
                       bool inside) {
    if (!v || (i < p->o.n && p->o.unit[i].message == MESSAGE_FROM)) return false;
    if (p->bare && inside) return i == 0 || i == p->o.n;
    return i == 0 || i == p->o.n || !last || overview_breaks(&p->o, i) ||
           p->o.unit[i - 1].message == MESSAGE_FROM ||
           !text_same(v->shape.symbolic, last->shape.symbolic);
}

/* Under the last box there is an edge, unless it hands nothing on. */
double overview_tail(const OverviewPen *p) {
    const OverviewUnit *last = &p->o.unit[p->o.n - 1];
    bool ends = last->message == MESSAGE_TO || (last->apart && last->pass != PHASE_OPTIMIZER);
    return ends ? 0 : p->gap;
}

void overview_set_lines(OverviewPen *p) {
    enum { TWO = 40 };
    p->one_line = false, p->of_weights = true;
    for (int i = 0; i < p->o.n; i++) {
        const OverviewUnit *u = &p->o.unit[i];
        if (u->message) continue;
        p->one_line |= overview_box(p, u) < TWO || u->way[WAY_INSIDE].n;
    }
    for (int i = 0; i < p->o.n; i++) {
        const OverviewUnit *u = &p->o.unit[i];
        double w = 12 + scene_width(p->s, 13, SEMIBOLD, u->title) + 9 + 8 +
                   scene_width(p->s, 12, REGULAR, overview_note(p, u)) + (u->n_wrong ? 60 : 0);
        if (!u->message && w > p->width) p->of_weights = false;
    }
}

/* The value that enters unit i, n: that leaves the last one. */
const TraceValue *overview_enters(const Overview *o, int i) {
    if (i < o->n && o->unit[i].in) return o->unit[i].in;
    return i ? o->unit[i - 1].out : o->in;
}
/* The height above unit i, in which the stream comes to it. */
double overview_gap(const OverviewPen *p, int i) {
    const OverviewUnit *u = &p->o.unit[i];
    const TraceValue *last = i ? overview_enters(&p->o, i - 1) : NULL;
    if (u->message == MESSAGE_FROM) return p->shortest;
    if (u->apart || overview_labelled(p, i, overview_enters(&p->o, i), last, true)) return p->gap;
    return fmax(p->gap * 0.5, p->shortest);
}

/* Above that: the end of a stream that does not come to unit i. */
double overview_end(const OverviewPen *p, int i) {
    if (!overview_breaks(&p->o, i)) return 0;
    const OverviewUnit *before = &p->o.unit[i - 1];
    return before->message || before->apart ? 0 : p->gap;
}

static double all_height(const OverviewPen *p) {
    double h = overview_tail(p) + (p->heads ? HEADS : 0);
    for (int i = 0; i < p->o.n; i++)
        h += overview_gap(p, i) + overview_height(p, &p->o.unit[i]) + overview_end(p, i);
    return h;
}

/* The widest name of a bracket, which stands left of the stream; 0: there are no layers. */
static double bracket_width(const OverviewPen *p) {
    double w = 0;
    for (int i = 0; i < p->o.n; i++) {
        const OverviewUnit *u = &p->o.unit[i];
        if (u->open && u->layers > 1)
            w = fmax(w, scene_width(p->s, 12, REGULAR, overview_bracket(p, u)));
        else if (u->open)
            w = fmax(w, scene_width(p->s, 13, SEMIBOLD,
                                    arena_printf(p->o.c->arena, "layer %d", u->layer)));
    }
    return w > 0 ? w + 26 : 0;
}

/* Places and widths from what the units say; returns the right border of all. */
static double measure(OverviewPen *p, double margin) {
    double way = 52, right, message = 0;
    p->width = 120;
    p->stream = margin + 10 + bracket_width(p);
    for (int i = 0; i < p->o.n; i++) {
        const OverviewUnit *u = &p->o.unit[i];
        if (u->message) {
            message = fmax(message, JOIN + overview_message_width(p, u));
            continue;
        }
        double title = 12 + scene_width(p->s, 13, SEMIBOLD, u->title);
        way = fmax(way, fmax(way_width(p, &u->way[WAY_IN]), way_width(p, &u->way[WAY_OUT])));
        const char *held = p->roomy || u->weights <= 0 ? overview_weights(p->o.c->arena, u)
                                                       : bytes_text(u->weights, p->o.c->arena);
        p->width =
            fmax(p->width, title + (p->roomy ? 21 : 17) + scene_width(p->s, 12, REGULAR, held));
        p->width =
            fmax(p->width, 24 + scene_width(p->s, 12, REGULAR, overview_weights(p->o.c->arena, u)));
        for (int k = 0; k < u->way[WAY_INSIDE].n; k++)
            p->width = fmax(p->width, 24 + overview_item_width(p, &u->way[WAY_INSIDE].item[k]));
    }
    p->width = fmax(p->width, message - way);
    p->box_x = p->stream + way;
    right = p->box_x + p->width + columns(p);
    for (int i = 0; i <= p->o.n; i++) {
        const TraceValue *v = overview_enters(&p->o, i);
        if (!v) continue;
        right =
            fmax(right, p->stream + 30 + scene_width(p->s, 12.5, MEDIUM, overview_symbols(p, v)) +
                            scene_width(p->s, 12, REGULAR, overview_numbers(p, v)));
    }
    for (int i = 0; i < p->o.n && p->stacked; i++)
        for (int k = 0; k < SEND_KINDS; k++)
            if (k != (int)p->o.flow)
                right = fmax(right,
                             p->stream + 26 + totals_width(p, &p->o.unit[i], (SendKind)k) +
                                 scene_width(p->s, 12, REGULAR, overview_kind(&p->o, (SendKind)k)));
    return right;
}

/* Boxes and gaps take the room that there is, down to one line of text. Is there enough? */
static bool fill_room(OverviewPen *p, double room) {
    while (all_height(p) < room - p->o.n - 2 && p->gap < 40) {
        p->gap += 1;
        p->box += p->box < 50 ? 1 : 0;
    }
    while (all_height(p) > room && p->gap > 16) {
        p->gap -= 1;
        p->box = fmax(p->lowest, p->box - 1.8);
    }
    while (all_height(p) > room && p->box > p->lowest) p->box -= 1;
    return all_height(p) <= room;
}
/* What does not fit on a slide: first the boxes of norms go, then room between things, then axes
 * stand side by side if that is lower and not too wide, then columns say no kinds of collectives,
 * then layouts within the stream go, then what room is left. */
void overview_fit(OverviewPen *p, const Preset *pr, double room) {
    for (int step = 0; step < 8; step++) {
        const bool beside = (step == 3 || step == 5) && !p->flat;
        double high = all_height(p);
        if (step == 1) p->norms = false;
        if (step == 2) p->hex = 18, p->shortest = 7;
        if (beside) p->flat = true;
        if (step == 4) p->kinds = false;
        if (step == 6) p->bare = true;
        if (step == 7) p->hex = 17, p->shortest = 5, p->lowest = 20;
        bool wide = measure(p, pr->margin) > pr->w - pr->margin;
        if (beside && (wide || all_height(p) >= high)) p->flat = false, measure(p, pr->margin);
        if (fill_room(p, room)) return;
    }
}

/* The size of everything; where the page is small, closer, then without norms, then in fewer words.
 * Returns the right border. */
double overview_layout(OverviewPen *p, const Preset *pr, PresetKind preset) {
    p->box = 42, p->gap = 32, p->hex = 22, p->shortest = 12, p->lowest = 24;
    p->norms = p->bytes = p->kinds = true;
    p->stacked = preset == PRESET_COLUMN;
    p->roomy = preset != PRESET_SLIDE && preset != PRESET_COLUMN;
    double right = measure(p, pr->margin), room = pr->w - pr->margin;
    if (preset == PRESET_A4) { /* so wide that its text is not too small */
        enum { MOST = 1310 };
        if (right > MOST - pr->margin) p->dense = true, right = measure(p, pr->margin);
        if (right > MOST - pr->margin) p->codes = true, right = measure(p, pr->margin);
        if (right > MOST - pr->margin) p->codes_too = true, right = measure(p, pr->margin);
    }
    if (preset == PRESET_SLIDE || preset == PRESET_COLUMN) {
        if (right > room) p->dense = true, right = measure(p, pr->margin);
        if (right > room) p->dense = p->norms = false, right = measure(p, pr->margin);
        if (right > room) p->codes = true, right = measure(p, pr->margin);
        if (right > room) p->brief = true, right = measure(p, pr->margin);
        if (right > room) p->codes_too = true, right = measure(p, pr->margin);
        if (right > room) p->dense = true, right = measure(p, pr->margin);
        if (right > room) p->merged = true, right = measure(p, pr->margin);
        if (right > room) p->kinds = false, p->dense = false, right = measure(p, pr->margin);
        if (right > room) p->bytes = false, right = measure(p, pr->margin);
        if (!p->norms && right <= room) { /* fewer words leave room for them again */
            p->norms = true;
            p->norms = measure(p, pr->margin) <= room;
            right = measure(p, pr->margin);
        }
    }
    return right;
}
