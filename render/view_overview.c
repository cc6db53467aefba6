/* View `overview`: the whole model of the trace from input to output, repeated layers folded, with the axes that each
 * part uses. Every number is a sum over records; nothing is known about models. */
#include "render/furniture.h"
#include "render/views.h"
#include <math.h>
#include <string.h>

enum { MAX_UNITS = 1024, MAX_TOTALS = 8, BOX_W = 300 };

/* Steps of one layer and part in a row. */
typedef struct {
    const char *part, *title;
    int layer, layers; /* first layer, and how many like it are folded into it */
    int64_t weights;   /* bytes of parameters on the rank */
    double flops;
    int ops;
    int n_total;
    Total total[MAX_TOTALS];
    const TraceValue *out; /* what leaves it */
    bool open, close;      /* first and last of a folded group of layers */
} Unit;

typedef struct {
    const ViewCall *c;
    Scene *s;
    int64_t rank;
    const char *pass;
    double box, gap; /* heights: of a box, between boxes */
    int n;
    Unit *unit;
    int first_step[MAX_UNITS];
} Pen;

static const char *part_title(Arena *a, const char *part) {
    static const struct {
        const char *part, *title;
    } row[] = {{"attention", "Attention"}, {"mlp", "MLP"},         {"embedding", "Embedding"},
               {"head", "Head"},           {"norm", "Final norm"}, {"loss", "Loss"}};
    for (size_t i = 0; part && i < sizeof row / sizeof *row; i++)
        if (!strcmp(row[i].part, part)) return row[i].title;
    return part ? words_capital(a, part) : "Steps";
}

static bool same_text(const char *a, const char *b) { return !strcmp(a ? a : "", b ? b : ""); }
static bool on_rank(const RankSet *r, int64_t rank) { return r->n == 0 || rankset_has(r, rank); }

/* The part of compute i; a norm inside a layer belongs to what follows it. */
static const char *part_of(const Pen *p, int i) {
    const Trace *t = p->c->t;
    const TraceCompute *c = &t->computes[i];
    if (!c->part || strcmp(c->part, "norm") || c->layer < 0) return c->part;
    for (int k = i + 1; k < t->n_computes && t->computes[k].layer == c->layer; k++)
        if (t->computes[k].part && strcmp(t->computes[k].part, "norm")) return t->computes[k].part;
    return c->part;
}

static void count_params(Pen *p, Unit *u, const TraceCompute *c) {
    for (int i = 0; i < c->n_inputs; i++) {
        const TraceParam *q = words_find_param(p->c->t, c->inputs[i]);
        const TraceLocal *l = q ? words_find_local(&q->rest, p->rank) : NULL;
        if (l) u->weights += l->bytes;
    }
}

static void read_units(Pen *p) {
    const Trace *t = p->c->t;
    p->unit = ARENA_ARRAY(p->c->arena, Unit, MAX_UNITS);
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (!same_text(c->pass ? c->pass : "forward", p->pass) || c->iteration > 0 || c->microbatch > 0) continue;
        if (!on_rank(&c->ranks, p->rank)) continue;
        const char *part = part_of(p, i);
        Unit *u = p->n ? &p->unit[p->n - 1] : NULL;
        if (!u || u->layer != c->layer || !same_text(u->part, part)) {
            if (p->n == MAX_UNITS) return;
            p->first_step[p->n] = c->step;
            u = &p->unit[p->n++];
            *u = (Unit){.part = part, .title = part_title(p->c->arena, part), .layer = c->layer, .layers = 1};
        }
        count_params(p, u, c);
        u->flops += c->flops;
        u->ops++;
        u->out = words_find_value(t, c->output, c->step);
    }
}

/* A collective belongs to the unit in whose steps it stands. */
static void read_collectives(Pen *p) {
    const Trace *t = p->c->t;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (!same_text(c->pass ? c->pass : "forward", p->pass) || words_group_of(&c->groups, p->rank) < 0) continue;
        int k = 0;
        while (k + 1 < p->n && p->first_step[k + 1] <= c->step) k++;
        /* moves of a value before the first op that reads it stand at the end of the unit before */
        if (k + 1 < p->n && c->layer == p->unit[k + 1].layer && same_text(c->part, p->unit[k + 1].part)) k++;
        Unit *u = &p->unit[k];
        int j = 0;
        while (j < u->n_total && strcmp(u->total[j].axis, c->axis)) j++;
        if (j == MAX_TOTALS) continue;
        if (j == u->n_total) u->total[u->n_total++] = (Total){.axis = c->axis, .axes = c->axes};
        u->total[j].bytes += c->bytes_sent;
        u->total[j].count++;
    }
}

static bool alike(const Unit *a, const Unit *b) {
    bool same = same_text(a->part, b->part) && a->weights == b->weights && a->ops == b->ops &&
                a->n_total == b->n_total &&
                same_text(a->out ? a->out->shape.symbolic : "", b->out ? b->out->shape.symbolic : "");
    for (int i = 0; same && i < a->n_total; i++)
        same = same_text(a->total[i].axis, b->total[i].axis) && a->total[i].bytes == b->total[i].bytes &&
               a->total[i].count == b->total[i].count;
    return same;
}

static int units_of_layer(const Pen *p, int i) {
    int n = 1;
    while (i + n < p->n && p->unit[i + n].layer == p->unit[i].layer) n++;
    return n;
}

/* Layers that repeat the one before are folded into it. */
static void fold(Pen *p) {
    int out = 0;
    for (int i = 0; i < p->n;) {
        int n = units_of_layer(p, i), first = out;
        if (p->unit[i].layer < 0) n = 1;
        memmove(&p->unit[out], &p->unit[i], (size_t)n * sizeof(Unit));
        int next = i + n, copies = 1;
        while (p->unit[out].layer >= 0 && next + n <= p->n && units_of_layer(p, next) == n) {
            bool same = true;
            for (int k = 0; k < n; k++) same &= alike(&p->unit[out + k], &p->unit[next + k]);
            if (!same) break;
            next += n;
            copies++;
        }
        for (int k = 0; k < n; k++) p->unit[out + k].layers = copies;
        p->unit[first].open = p->unit[first].layer >= 0;
        p->unit[out + n - 1].close = p->unit[first].layer >= 0;
        out += n;
        i = next;
    }
    p->n = out;
}

/* ---- drawing ---- */

static const char *unit_line(Arena *a, const Unit *u) {
    if (u->weights <= 0) return arena_printf(a, "%d op%s, no weights", u->ops, u->ops == 1 ? "" : "s");
    return arena_printf(a, "%d op%s, weights %s here", u->ops, u->ops == 1 ? "" : "s", bytes_text(u->weights, a));
}

static const char *total_line(Arena *a, const Total *t) {
    return arena_printf(a, "%lld collective%s, sends %s", (long long)t->count, t->count == 1 ? "" : "s",
                        bytes_text(t->bytes, a));
}

/* Room for the words right of the boxes. */
static double side_width(const Pen *p) {
    double w = 0;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->unit[i].n_total; k++) {
            const Total *t = &p->unit[i].total[k];
            w = fmax(w, 24 + pill_width(p->s, words_axis_list(p->c->arena, p->c->t, t->axis)) +
                            scene_width(p->s, 12.5, REGULAR, total_line(p->c->arena, t)));
        }
    return w;
}

static double unit_height(const Pen *p, const Unit *u) { return fmax(p->box, 23.0 * u->n_total); }

static void draw_unit(Pen *p, const Unit *u, double x, double y) {
    Arena *a = p->c->arena;
    Scene *s = p->s;
    double h = unit_height(p, u), mid = y + h / 2;
    Str tip = str_new(a);
    str_addf(&tip, "%s: %d ops, %sFLOP", u->title, u->ops, count_text(u->flops, a));
    if (u->out) tip_add(&tip, "makes", u->out->shape.name);
    scene_begin(s, "compute", arena_printf(a, "part-%s-%d", u->title, u->layer), tip.s);
    scene_frame(s, x, y, BOX_W, h);
    scene_rect(s, x, y, BOX_W, h, 3, ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25);
    bool low = p->box < 34; /* one line */
    double tw = scene_text(s, x + 14, low ? mid + 4.5 : mid - 3, ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK, u->title);
    scene_text(s, low ? x + 24 + tw : x + 14, low ? mid + 4.5 : mid + 14, ALIGN_LEFT, 12, REGULAR, ROLE_COMPUTE_NOTE,
               unit_line(a, u));
    scene_end(s);
    double ty = mid - 23.0 * (u->n_total - 1) / 2;
    for (int i = 0; i < u->n_total; i++, ty += 23) {
        double px = x + BOX_W + 16, w = draw_pill(s, px, ty, words_axis_list(a, p->c->t, u->total[i].axis),
                                                  words_color_axis(a, p->c->t, u->total[i].axis, u->total[i].axes));
        scene_text(s, px + w + 8, ty + 4.4, ALIGN_LEFT, 12.5, REGULAR, ROLE_INK, total_line(a, &u->total[i]));
    }
    if (u->n_total == 0)
        scene_text(s, x + BOX_W + 16, mid + 4, ALIGN_LEFT, 12, REGULAR, ROLE_SECOND, "nothing is sent");
}

static void draw_edge(Pen *p, const TraceValue *v, double x, double y0, double y1, int to) {
    Arena *a = p->c->arena;
    Pt pt[2] = {{x, y0}, {x, y1}};
    scene_begin(p->s, "edge", arena_printf(a, "value-%s", v ? v->shape.name : "input"), v ? v->shape.name : NULL);
    scene_arrow(p->s, pt, 2, ROLE_INK, 1.5, false, false, to);
    const TraceLocal *l = v ? words_find_local(&v->shape, p->rank) : NULL;
    if (v) {
        double w = scene_text(p->s, x + 14, (y0 + y1) / 2 + 4.4, ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK,
                              words_symbol(a, v->shape.symbolic));
        if (l)
            scene_textf(p->s, x + 14 + w + 12, (y0 + y1) / 2 + 4.4, ALIGN_LEFT,
                        11.5 < p->s->min_size ? p->s->min_size : 11.5, REGULAR, ROLE_SECOND, "%s",
                        bytes_text(l->bytes, a));
    }
    scene_end(p->s);
}

/* A bracket at the left of layers that are folded: how many, and which. */
static void draw_bracket(Pen *p, const Unit *u, double x, double y0, double y1) {
    Pt pt[4] = {{x + 10, y0}, {x, y0}, {x, y1}, {x + 10, y1}};
    scene_line(p->s, pt, 4, ROLE_FAINT, 1.25);
    double mid = (y0 + y1) / 2;
    if (u->layers == 1) {
        scene_textf(p->s, x - 10, mid + 5, ALIGN_RIGHT, 13, SEMIBOLD, ROLE_INK, "layer %d", u->layer);
        return;
    }
    scene_textf(p->s, x - 10, mid - 2, ALIGN_RIGHT, 15, BOLD, ROLE_INK, "× %d", u->layers);
    scene_textf(p->s, x - 10, mid + 15, ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND, "layers %d to %d", u->layer,
                u->layer + u->layers - 1);
}

/* "1 of 32 layers"; "" if the trace has them all or there are none. */
static const char *layers_shown(const Pen *p) {
    double all = words_find_dim(p->c->t, "L");
    int shown = 0;
    for (int i = 0; i < p->n; i++) shown += p->unit[i].open ? p->unit[i].layers : 0;
    return isfinite(all) && shown > 0 && shown < all ? arena_printf(p->c->arena, "%d of %.0f layers", shown, all) : "";
}

static const TraceValue *first_input(const Pen *p) {
    for (int i = 0; i < p->c->t->n_values; i++)
        if (p->c->t->values[i].step < 0 && !words_find_param(p->c->t, p->c->t->values[i].shape.name))
            return &p->c->t->values[i];
    return NULL;
}

static double draw_units(Pen *p, double x, double y) {
    double open_y = 0, cx = x + BOX_W / 2.0 - 60;
    const TraceValue *v = first_input(p);
    for (int i = 0; i < p->n; i++) {
        const Unit *u = &p->unit[i];
        int group = p->s->n_groups;
        if (u->open) open_y = y + p->gap - 4;
        draw_unit(p, u, x, y + p->gap);
        draw_edge(p, v, cx, y, y + p->gap, group);
        y += p->gap + unit_height(p, u);
        v = u->out;
        if (u->close && u->layers > 0) draw_bracket(p, u, x - 22, open_y, y + 4);
    }
    draw_edge(p, v, cx, y, y + p->gap, -1);
    return y + p->gap + 6;
}

static void totals(const Pen *p, int64_t *weights, int64_t *sent, int64_t *count) {
    *weights = *sent = *count = 0;
    for (int i = 0; i < p->n; i++) {
        *weights += p->unit[i].weights * p->unit[i].layers;
        for (int k = 0; k < p->unit[i].n_total; k++) {
            *sent += p->unit[i].total[k].bytes * p->unit[i].layers;
            *count += p->unit[i].total[k].count * p->unit[i].layers;
        }
    }
}

static const char *axis_totals(const Pen *p) {
    Arena *a = p->c->arena;
    Total all[MAX_TOTALS];
    int n = 0;
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->unit[i].n_total; k++) {
            const Total *t = &p->unit[i].total[k];
            int j = 0;
            while (j < n && strcmp(all[j].axis, t->axis)) j++;
            if (j == MAX_TOTALS) continue;
            if (j == n) all[n++] = (Total){.axis = t->axis};
            all[j].bytes += t->bytes * p->unit[i].layers;
            all[j].count += t->count * p->unit[i].layers;
        }
    Str s = str_new(a);
    str_addf(&s, n ? "Sent per rank in one %s: " : "Nothing is sent in one %s.", p->pass);
    for (int j = 0; j < n; j++)
        str_addf(&s, "%s%s %s in %lld%s", j ? ", " : "", all[j].axis, bytes_text(all[j].bytes, a),
                 (long long)all[j].count,
                 j                   ? ""
                 : all[j].count == 1 ? " collective"
                                     : " collectives");
    return s.s;
}

static bool read(Pen *p, const ViewCall *c) {
    *p = (Pen){.c = c, .rank = c->o->rank >= 0 ? c->o->rank : 0, .pass = c->o->pass ? c->o->pass : "forward"};
    read_units(p);
    if (p->n == 0) {
        diag_error(c->d, "E0211", (Loc){0}, NULL,
                   "nothing to draw in view 'overview': no steps of pass '%s' on rank %lld", p->pass,
                   (long long)p->rank);
        return false;
    }
    read_collectives(p);
    fold(p);
    return true;
}

static const char *title(const Pen *p) {
    Arena *a = p->c->arena;
    int64_t weights, sent, count;
    totals(p, &weights, &sent, &count);
    const char *model = words_model(a, p->c->t);
    if (count == 0)
        return arena_printf(a, "%s: a rank holds %s of weights and sends nothing", model ? model : "The model",
                            bytes_text(weights, a));
    return arena_printf(a, "%s: a rank holds %s of weights and sends %s in %lld collective%s",
                        model ? model : "The model", bytes_text(weights, a), bytes_text(sent, a), (long long)count,
                        count == 1 ? "" : "s");
}

int view_overview(const ViewCall *c, Scene **page) {
    Pen p;
    PresetKind preset;
    Arena *a = c->arena;
    furniture_preset(c->o->preset, &preset);
    if (!read(&p, c)) return 0;
    const Preset *pr = &presets[preset];
    Scene *s = p.s = figure_new(c, "overview", preset);
    const char *sub[] = {arena_printf(a, "rank %lld %s", (long long)p.rank, words_coords(a, c->t, p.rank)),
                         words_data(a, c->t),
                         words_mesh(a, c->t),
                         p.pass,
                         layers_shown(&p),
                         NULL};
    if (preset == PRESET_WIDE) {
        s->w = 860;
        s->px_width = (int)(pr->px * s->w / pr->w);
    }
    double w = s->w - 2 * pr->margin, y = figure_head(s, preset, title(&p), sub, 0) + 12;
    bool layered = false;
    for (int i = 0; i < p.n; i++) layered |= p.unit[i].open;
    double x = pr->margin + (layered ? 128 : 0);
    if (preset == PRESET_COLUMN && layered) x = pr->margin + 110;
    s->w = fmax(s->w, x + BOX_W + side_width(&p) + pr->margin);
    p.box = 46, p.gap = 34;
    /* a slide: gaps give way, then boxes, down to one line of text */
    double less = preset == PRESET_SLIDE ? y + p.n * (p.box + p.gap) + p.gap + 60 - pr->h : 0;
    if (less > 0) p.gap = 23, p.box = less / p.n < 20 ? 36 : 25;
    y = draw_units(&p, x, y);
    y = figure_foot(s, c, pr->margin, w, y + 8, axis_totals(&p), NULL);
    s->desc = arena_printf(a, "Overview of the model. %s. %s", title(&p), axis_totals(&p));
    figure_page(s, preset, y);
    page[0] = s;
    return 1;
}

const char *view_overview_text(const ViewCall *c) {
    Pen p;
    Arena *a = c->arena;
    Role role;
    if (!read(&p, c)) return NULL;
    Str s = str_new(a);
    words_paragraph(&s, "", title(&p), 80);
    str_add(&s, "\n");
    for (int i = 0; i < p.n; i++) {
        const Unit *u = &p.unit[i];
        words_pad(&s, arena_printf(a, "%s%s", u->layer >= 0 ? "  " : "", u->title), 16, false);
        words_pad(&s, u->layer >= 0 ? arena_printf(a, "layer %d × %d", u->layer, u->layers) : "", 18, false);
        words_pad(&s, u->out ? words_symbol(a, u->out->shape.symbolic) : "", 24, false);
        words_pad(&s, bytes_text(u->weights, a), 12, true);
        words_end_line(&s);
        for (int k = 0; k < u->n_total; k++)
            words_paragraph(&s, "      ",
                            arena_printf(a, "%s: %lld collectives, sends %s", u->total[k].axis,
                                         (long long)u->total[k].count, bytes_text(u->total[k].bytes, a)),
                            80);
    }
    str_add(&s, "\n");
    words_paragraph(&s, "", axis_totals(&p), 80);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), 80);
    return s.s;
}
