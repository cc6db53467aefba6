/* View `overview`: the whole model of the trace from input to output, repeated layers folded, with
 * what each part holds and the axes over which it sends: forward, backward, gradients and weights
 * side by side. */
#include "render/overview/overview.h"
#include "render/furniture/views.h"
#include <math.h>
#include <string.h>

enum { LINE = 23, SIDE = 16, HEADS = 12 };

typedef struct {
    double from, to;
} Span;

typedef struct {
    Overview o;
    Scene *s;
    double box, gap, width; /* heights: of a box, between boxes; width of the boxes */
    bool stacked;           /* kinds of collectives as lines instead of columns */
    bool flat;              /* axes side by side instead of as lines, in few words */
    double col[SEND_KINDS]; /* x of the columns, relative to the right border of the boxes */
    unsigned legend;
} Pen;

/* ---- words ---- */

static const char *unit_line(Arena *a, const OverviewUnit *u) {
    const char *ops = arena_printf(a, "%d op%s", u->ops, u->ops == 1 ? "" : "s");
    return u->weights <= 0 ? arena_printf(a, "%s, no weights", ops)
                           : arena_printf(a, "%s, weights %s here", ops, bytes_text(u->weights, a));
}

/* Behind the pill of an axis: in full where there is one kind, short in columns. */
static const char *total_line(const Pen *p, const Total *t, SendKind k) {
    Arena *a = p->o.c->arena;
    const char *bytes = bytes_text(t->bytes, a);
    if (!p->o.all && !p->flat)
        return arena_printf(a, "%lld collective%s, sends %s", (long long)t->count,
                            t->count == 1 ? "" : "s", bytes);
    return p->stacked ? arena_printf(a, "%s: %s in %lld", overview_kind(&p->o, k), bytes,
                                     (long long)t->count)
                      : arena_printf(a, "%s in %lld", bytes, (long long)t->count);
}

static const char *edge_numbers(const Pen *p, const TraceValue *v) {
    const TraceLocal *l = v ? words_find_local(&v->shape, p->o.rank) : NULL;
    Arena *a = p->o.c->arena;
    if (!l) return "";
    if (!v->shape.nd) return bytes_text(l->bytes, a);
    return arena_printf(a, "%s   %s", words_shape(a, l->shape, v->shape.nd),
                        bytes_text(l->bytes, a));
}

static const char *edge_symbols(const Pen *p, const TraceValue *v) {
    return v->shape.nd ? words_symbol(p->o.c->arena, v->shape.symbolic) : "one number";
}

/* ---- places ---- */

static double total_width(const Pen *p, const Total *t, SendKind k) {
    return pill_width(p->s, words_axis_list(p->o.c->arena, p->o.c->t, t->axis)) + 8 +
           scene_width(p->s, 12.5, REGULAR, total_line(p, t, k));
}

/* Of all that a unit sends of one kind: of the widest line, or of the one line. */
static double totals_width(const Pen *p, const OverviewUnit *u, SendKind k) {
    double w = 0;
    for (int j = 0; j < u->n_total[k]; j++) {
        double one = total_width(p, &u->total[k][j], k);
        w = p->flat ? w + (j ? SIDE : 0) + one : fmax(w, one);
    }
    return w;
}

/* Is what the optimizer sends beside its own box only? Then it needs no column and no heading. */
static bool apart_only(const Overview *o, SendKind k) {
    bool only = k == SEND_OPTIMIZER;
    for (int i = 0; only && i < o->n; i++) only = o->unit[i].apart || !o->unit[i].n_total[k];
    return only;
}

/* Columns right of the boxes; returns their width. */
static double columns(Pen *p) {
    double x = SIDE, widest = 0;
    for (int k = 0; k < SEND_KINDS; k++) {
        double w = 0;
        bool apart = apart_only(&p->o, (SendKind)k);
        p->col[k] = apart ? SIDE : x;
        for (int i = 0; i < p->o.n; i++) w = fmax(w, totals_width(p, &p->o.unit[i], (SendKind)k));
        if (apart) w = 0;
        if (w > 0 && p->o.all && !p->stacked)
            w = fmax(w, scene_width(p->s, 12.5, SEMIBOLD, overview_kind(&p->o, k)));
        widest = fmax(widest, w);
        if (w > 0 && !p->stacked) x += w + 18;
    }
    return p->stacked ? SIDE + widest : x > SIDE ? x - 18 : SIDE + 100;
}

static int lines(const Pen *p, const OverviewUnit *u) {
    int n = 0;
    for (int k = 0; k < SEND_KINDS; k++)
        if (p->flat) n |= u->n_total[k] > 0;
        else n = p->stacked ? n + u->n_total[k] : n > u->n_total[k] ? n : u->n_total[k];
    return n;
}

static double unit_height(const Pen *p, const OverviewUnit *u) {
    return fmax(p->box, LINE * lines(p, u) + 4);
}

/* Does what leaves unit i - 1 not flow into unit i: the pass ends, or goes on elsewhere? */
static bool breaks(const Overview *o, int i) {
    return i > 0 && (o->unit[i].in || (o->unit[i].apart && !o->unit[i - 1].apart));
}

/* Under the last box there is an edge, unless it stands apart and hands nothing on. */
static double tail_height(const Pen *p) {
    const OverviewUnit *last = &p->o.unit[p->o.n - 1];
    return last->apart && last->pass != PHASE_OPTIMIZER ? 0 : p->gap;
}

static double all_height(const Pen *p) {
    double h = tail_height(p) + (p->o.all && !p->stacked ? HEADS : 0);
    for (int i = 0; i < p->o.n; i++)
        h += p->gap + unit_height(p, &p->o.unit[i]) + (breaks(&p->o, i) ? p->gap : 0);
    return h;
}

/* ---- drawing ---- */

static void draw_total(Pen *p, const Total *t, SendKind k, double x, double y) {
    Arena *a = p->o.c->arena;
    scene_begin(p->s, "sent", "sent",
                arena_printf(a, "over %s: %lld collective%s, %s leave the rank%s%s", t->axis,
                             (long long)t->count, t->count == 1 ? "" : "s", bytes_text(t->bytes, a),
                             p->o.all ? ", " : "", p->o.all ? overview_kind(&p->o, k) : ""));
    double w = draw_pill(p->s, x, y, words_axis_list(a, p->o.c->t, t->axis),
                         words_color_axis(a, p->o.c->t, t->axis, t->axes));
    scene_text(p->s, x + w + 8, y + 4.4, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
               total_line(p, t, k));
    scene_end(p->s);
}

static void draw_totals(Pen *p, const OverviewUnit *u, double x, double mid) {
    int n = lines(p, u), line = 0;
    if (n == 0)
        scene_text(p->s, x + SIDE, mid + 4, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   "nothing is sent");
    for (int k = 0; k < SEND_KINDS; k++) {
        int own = p->stacked || p->flat ? n : u->n_total[k];
        double along = 0;
        if (!p->stacked) line = 0;
        for (int j = 0; j < u->n_total[k] && p->flat; j++) {
            draw_total(p, &u->total[k][j], (SendKind)k, x + p->col[k] + along, mid);
            along += total_width(p, &u->total[k][j], k) + SIDE;
        }
        for (int j = 0; j < u->n_total[k] && !p->flat; j++, line++)
            draw_total(p, &u->total[k][j], (SendKind)k, x + p->col[k],
                       mid + LINE * (line - (own - 1) / 2.0));
    }
}

static void draw_unit(Pen *p, const OverviewUnit *u, double x, double y) {
    Arena *a = p->o.c->arena;
    Scene *s = p->s;
    double h = unit_height(p, u), mid = y + h / 2;
    Str tip = str_new(a);
    str_addf(&tip, "%s: %d ops, %sFLOP", u->title, u->ops, count_text(u->flops, a));
    if (u->out) tip_add(&tip, "makes", u->out->shape.name);
    scene_begin(s, "compute", arena_printf(a, "part-%s-%d", u->title, u->layer), tip.s);
    scene_frame(s, x, y, p->width, h);
    Mark *m =
        scene_rect(s, (Area){x, y, p->width, h}, 3, (Look){ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25});
    if (u->wrong >= 0) m->stroke = ROLE_FAIL, m->line = 3;
    bool low = h < 40; /* one line */
    double tw = scene_text(s, x + 14, low ? mid + 4.5 : mid - 3,
                           (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, u->title);
    double tx = low ? x + 24 + tw : x + 14;
    scene_text(s, tx, low ? mid + 4.5 : mid + 14,
               (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_COMPUTE_NOTE},
               scene_fit(s, low && u->weights > 0 ? bytes_text(u->weights, a) : unit_line(a, u),
                         x + p->width - 8 - tx, 12, REGULAR));
    wrong_flag(s, p->o.wrong, u->wrong, x, y - 2);
    scene_end(s);
    draw_totals(p, u, x + p->width, mid);
}

static void draw_edge(Pen *p, const TraceValue *v, double x, double y0, double y1, int to) {
    Arena *a = p->o.c->arena;
    double size = fmax(11.5, p->s->min_size);
    Pt pt[2] = {{x, y0}, {x, y1}};
    scene_begin(p->s, "edge", arena_printf(a, "value-%s", v ? v->shape.name : "input"),
                v ? v->shape.name : "the input");
    scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, to);
    if (v) {
        double w = scene_text(p->s, x + 14, (y0 + y1) / 2 + 4.4,
                              (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK}, edge_symbols(p, v));
        scene_text(p->s, x + 14 + w + 12, (y0 + y1) / 2 + 4.4,
                   (TextLook){ALIGN_LEFT, size, REGULAR, ROLE_SECOND}, edge_numbers(p, v));
    }
    scene_end(p->s);
}

/* A bracket at the left of layers that are folded: how many, and which. */
static void draw_bracket(Pen *p, const OverviewUnit *u, double x, double y0, double y1) {
    Pt pt[4] = {{x + 10, y0}, {x, y0}, {x, y1}, {x + 10, y1}};
    scene_at(p->s, 0);
    scene_line(p->s, pt, 4, ROLE_FAINT, 1.25);
    double mid = (y0 + y1) / 2;
    if (u->layers == 1) {
        scene_textf(p->s, x - 10, mid + 5, (TextLook){ALIGN_RIGHT, 13, SEMIBOLD, ROLE_INK},
                    "layer %d", u->layer);
        return;
    }
    scene_textf(p->s, x - 10, mid - 2, (TextLook){ALIGN_RIGHT, 15, BOLD, ROLE_INK}, "× %d",
                u->layers);
    scene_textf(p->s, x - 10, mid + 15, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
                "layers %d to %d", u->layer, u->layer + u->layers - 1);
}

/* "1 of 32 layers"; "" if the trace has them all or there are none. */
static const char *layers_shown(const Overview *o) {
    double all = words_find_dim(o->c->t, "L");
    int shown = 0;
    for (int i = 0; i < o->n; i++) shown += o->unit[i].open ? o->unit[i].layers : 0;
    return isfinite(all) && shown > 0 && shown < all
               ? arena_printf(o->c->arena, "%d of %.0f layers", shown, all)
               : "";
}

/* The edge of a box that stands apart: the optimizer reads gradients and makes weights, no value
 * of the pass flows through it. */
static void draw_apart(Pen *p, const OverviewUnit *u, const char *words, Span y, double x, int to) {
    Pt pt[2] = {{x, y.from}, {x, y.to}};
    if (u->pass != PHASE_OPTIMIZER) return;
    scene_begin(p->s, "edge", words, words);
    scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, to);
    scene_text(p->s, x + 14, (y.from + y.to) / 2 + 4.4,
               (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK}, words);
    scene_end(p->s);
}

static double draw_units(Pen *p, double x, double y) {
    double open_y = 0, cx = x + 40;
    bool heads = p->o.all && !p->stacked;
    const TraceValue *v = p->o.in;
    for (int k = 0; k < SEND_KINDS && heads; k++)
        if (overview_sends(&p->o, (SendKind)k) && !apart_only(&p->o, (SendKind)k))
            scene_text(p->s, x + p->width + p->col[k], y + 4,
                       (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK},
                       overview_kind(&p->o, (SendKind)k));
    if (heads) y += HEADS;
    for (int i = 0; i < p->o.n; i++) {
        const OverviewUnit *u = &p->o.unit[i];
        int group;
        scene_at(p->s, i + 1);
        if (breaks(&p->o, i)) {
            draw_edge(p, v, cx, y, y + p->gap, -1);
            y += p->gap;
        }
        if (u->in) v = u->in;
        group = p->s->n_groups;
        if (u->open) open_y = y + p->gap - 4;
        draw_unit(p, u, x, y + p->gap);
        if (u->apart)
            draw_apart(p, u, "gradients of the weights", (Span){y, y + p->gap}, cx, group);
        else draw_edge(p, v, cx, y, y + p->gap, group);
        y += p->gap + unit_height(p, u);
        v = u->out;
        if (u->close && u->layers > 0) draw_bracket(p, u, x - 22, open_y, y + 4);
    }
    const OverviewUnit *last = &p->o.unit[p->o.n - 1];
    if (last->apart)
        draw_apart(p, last, "weights for the next step", (Span){y, y + p->gap}, cx, -1);
    else draw_edge(p, v, cx, y, y + p->gap, -1);
    scene_at(p->s, 0);
    return y + tail_height(p) + 6;
}

static const char *title(const Overview *o) {
    Arena *a = o->c->arena;
    int64_t weights, sent, count;
    overview_totals(o, &weights, &sent, &count);
    int64_t run = sent + overview_beyond(o);
    const char *model = words_model(a, o->c->t);
    if (!model || !strcmp(model, "mlp")) model = "The model";
    Str s = str_new(a);
    str_addf(&s, "%s: a rank holds %s of weights and sends ", model, bytes_text(weights, a));
    const char *all = bytes_text(run, a), *due = bytes_text(sent, a);
    if (count)
        str_addf(&s, "%s%s in %lld collective%s", all,
                 strcmp(all, due) ? arena_printf(a, " (%s expected)", due) : "", (long long)count,
                 count == 1 ? "" : "s");
    else str_add(&s, "nothing");
    if (!o->whole) str_addf(&s, " in %s", phase_text(o->pass));
    return s.s;
}

/* The widest name of a bracket, which stands left of the boxes. */
static double bracket_width(const Pen *p) {
    double w = 0;
    for (int i = 0; i < p->o.n; i++) {
        const OverviewUnit *u = &p->o.unit[i];
        const char *name =
            arena_printf(p->o.c->arena, "layers %d to %d", u->layer, u->layer + u->layers - 1);
        if (u->layers > 1) w = fmax(w, scene_width(p->s, 12, REGULAR, name));
    }
    return w;
}

/* Boxes and gaps take the room that there is, down to one line of text. Is there enough? */
static bool fill_room(Pen *p, double room) {
    while (all_height(p) < room - p->o.n - 2 && p->gap < 46) {
        p->gap += 1;
        p->box += p->box < 58 ? 1 : 0;
    }
    while (all_height(p) > room && p->gap > 18) {
        p->gap -= 1;
        p->box = fmax(24, p->box - 1.8);
    }
    while (all_height(p) > room && p->box > 24) p->box -= 1;
    return all_height(p) <= room;
}

int view_overview(const ViewCall *c, Scene **page) {
    Pen p = {0};
    PresetKind preset;
    Arena *a = c->arena;
    furniture_preset(c->o->preset, &preset);
    if (!overview_read(&p.o, c)) return 0;
    const Preset *pr = &presets[preset];
    Scene *s = p.s = figure_new(c, "overview", preset);
    bool back = p.o.all &&
                (overview_sends(&p.o, SEND_BACKWARD) || overview_sends(&p.o, SEND_GRADIENTS)),
         layered = false;
    for (int i = 0; i < c->t->n_computes && p.o.all; i++)
        back |= c->t->computes[i].pass == PHASE_BACKWARD;
    const char *sub[] = {
        arena_printf(a, "rank %lld %s", (long long)p.o.rank, words_coords(a, c->t, p.o.rank)),
        words_data(a, c->t),
        words_mesh(a, c->t),
        back && p.o.whole ? "forward and backward" : phase_text(p.o.pass),
        words_class(a, c->t, p.o.rank),
        layers_shown(&p.o),
        NULL};
    for (int i = 0; i < p.o.n; i++) layered |= p.o.unit[i].open;
    p.stacked = preset == PRESET_COLUMN && p.o.all;
    p.width = 190;
    p.box = 46, p.gap = 34;
    for (int i = 0; i < p.o.n; i++)
        p.width = fmax(p.width, 28 + scene_width(s, 12, REGULAR, unit_line(a, &p.o.unit[i])));
    double x = pr->margin + (layered ? fmax(106, 34 + bracket_width(&p)) : 0),
           right = x + p.width + columns(&p);
    const TraceValue *v = p.o.in;
    for (int i = -1; i < p.o.n; v = ++i < p.o.n ? p.o.unit[i].out : NULL)
        if (v)
            right = fmax(right, x + 70 + scene_width(s, 12.5, MEDIUM, edge_symbols(&p, v)) +
                                    scene_width(s, 12, REGULAR, edge_numbers(&p, v)));
    double titled = scene_width(s, 20, BOLD, title(&p.o)) + 2 * pr->margin + 1;
    if (preset == PRESET_WIDE) s->w = fmax(860, titled <= pr->w ? ceil(titled) : 0);
    s->w = fmax(s->w, right + pr->margin);
    if (preset == PRESET_WIDE) s->px_width = (int)(pr->px * s->w / pr->w);
    double w = s->w - 2 * pr->margin, y = figure_head(s, preset, title(&p.o), sub, 0) + 2;
    y = wrong_notes(s, p.o.wrong, pr->margin, w, y, preset == PRESET_SLIDE ? 3 : 0) + 10;
    if (preset == PRESET_SLIDE && !fill_room(&p, pr->h - y - 80)) {
        p.flat = true; /* no room for a line per axis */
        columns(&p);
        fill_room(&p, pr->h - y - 80);
    }
    y = draw_units(&p, x, y);
    y = figure_foot(s, c, (Band){pr->margin, w, y + 8}, overview_sent(&p.o), NULL);
    s->desc = arena_printf(a, "Overview of the model. %s. %s", title(&p.o), overview_sent(&p.o));
    figure_page(s, preset, y);
    page[0] = s;
    return 1;
}

const char *view_overview_text(const ViewCall *c) {
    Overview o;
    Arena *a = c->arena;
    Role role;
    int w = furniture_columns(c->o);
    if (!overview_read(&o, c)) return NULL;
    Str s = str_new(a);
    words_paragraph(&s, "", title(&o), w);
    wrong_text(&s, o.wrong, w);
    str_add(&s, "\n");
    for (int i = 0; i < o.n; i++) {
        const OverviewUnit *u = &o.unit[i];
        bool in = u->layer >= 0; /* a layer's */
        WordsCell row[] = {
            {arena_printf(a, "%s%s", in ? "  " : "", u->title), w < 80 ? 14 : 16, false},
            {in ? arena_printf(a, "layer %d × %d", u->layer, u->layers) : "", w < 80 ? 15 : 18,
             false},
            {u->out ? words_symbol(a, u->out->shape.symbolic) : "", w < 80 ? 22 : 24, false},
            {bytes_text(u->weights, a), w < 80 ? 9 : 12, true}};
        words_row(&s, "      ", row, 4);
        for (int k = 0; k < SEND_KINDS; k++)
            for (int j = 0; j < u->n_total[k]; j++) {
                const Total *t = &u->total[k][j];
                words_paragraph(&s, "      ",
                                arena_printf(a, "%s%s%s: %lld collective%s, sends %s",
                                             o.all ? overview_kind(&o, (SendKind)k) : "",
                                             o.all ? " " : "", words_axis_list(a, c->t, t->axis),
                                             (long long)t->count, t->count == 1 ? "" : "s",
                                             bytes_text(t->bytes, a)),
                                w);
            }
        if (u->wrong >= 0) str_add(&s, "      ✗ wrong, see above\n");
    }
    str_add(&s, "\n");
    words_paragraph(&s, "", overview_sent(&o), w);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), w);
    return s.s;
}
