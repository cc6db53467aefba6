/* What each kind of step took, a bar for the model's time and one for the measured, with the ratio
 * of the two: the second figure of a timeline with what was measured. Refuses to compare where the
 * model speaks of something else: of links, where one GPU copies in its memory, and of ranks at the
 * same time, where they take turns. */
#include "render/timeline/view_took.h"
#include "render/furniture/wrong.h"
#include "trace/trace_took.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { SIDE = 210, NUMBERS = 270, BAR = 10 };
static const struct {
    int rows, pitch;
} room[PRESET_COUNT] = {[PRESET_WIDE] = {18, 36},
                        [PRESET_COLUMN] = {14, 62},
                        [PRESET_SLIDE] = {9, 36},
                        [PRESET_A4] = {18, 36}};
/* Steps of one op, over one group: their times together. */
typedef struct {
    TraceTook k;
    int64_t n, more; /* steps; kinds, of the last row that stands for several */
} Took;
typedef struct {
    const ViewCall *c;
    Scene *s;
    Arena *a;
    PresetKind preset;
    bool narrow;
    Took *row;
    int n;
    Took all[2];          /* of computation, of communication */
    const Took *far;      /* whose ratio is furthest from 1; NULL: nothing is compared */
    int compared;         /* kinds */
    double x, w, longest; /* the bars' left edge and room; seconds */
} TookPen;

static bool same_kind(const TraceTook *a, const TraceTook *b) {
    return a->moves == b->moves && a->size == b->size && !strcmp(a->op, b->op) &&
           !strcmp(a->axis ? a->axis : "", b->axis ? b->axis : "");
}
static bool compares(const Trace *t, const TraceTook *k) {
    bool other = (k->moves && trace_took_in_memory(t)) || trace_took_in_turns(t);
    return k->modelled > 0 && k->measured >= 0 && !other;
}
/* "8.97", as the table of times has it. */
static double ratio(const Trace *t, const TraceTook *k) {
    return compares(t, k) ? k->measured / k->modelled : -1;
}
static void add(Took *to, const TraceTook *k, int64_t n) {
    to->n += n;
    if (k->modelled >= 0) to->k.modelled = fmax(0, to->k.modelled) + k->modelled;
    to->k.measured += k->measured;
    to->k.bytes += k->bytes;
}
static int longest_first(const void *a, const void *b) {
    const Took *x = a, *y = b;
    if (x->k.measured != y->k.measured) return x->k.measured < y->k.measured ? 1 : -1;
    return x->k.step - y->k.step;
}
/* One of all kinds: its part of the sums, and whether it is the furthest. */
static void see(TookPen *p, const Took *x) {
    double r = ratio(p->c->t, &x->k), far = p->far ? ratio(p->c->t, &p->far->k) : 1;
    add(&p->all[x->k.moves], &x->k, x->n);
    if (r <= 0) return;
    p->compared++;
    if (!p->far || fabs(log(r)) > fabs(log(far))) p->far = arena_memdup(p->a, x, sizeof *x);
}
/* The kinds of what was measured on a rank, the longest first; the last row is what has no room. */
static void read_kinds(TookPen *p, int64_t rank) {
    int n, most = room[p->preset].rows;
    const TraceTook *k = trace_took(p->c->t, rank, p->a, &n);
    p->row = ARENA_ARRAY(p->a, Took, n + 1);
    p->all[0].k.modelled = p->all[1].k.modelled = -1;
    p->all[1].k.moves = true;
    for (int i = 0; i < n; i++) {
        int at = 0;
        if (k[i].measured < 0) continue;
        while (at < p->n && !same_kind(&p->row[at].k, &k[i])) at++;
        if (at == p->n) p->row[p->n++] = (Took){k[i], 1, 0};
        else add(&p->row[at], &k[i], 1);
    }
    qsort(p->row, (size_t)p->n, sizeof *p->row, longest_first);
    for (int i = 0; i < p->n; i++) see(p, &p->row[i]);
    for (int i = most; i < p->n; i++) add(&p->row[most - 1], &p->row[i].k, p->row[i].n);
    if (p->n > most) p->row[most - 1].more = p->n - most + 1, p->n = most;
    for (int i = 0; i < p->n; i++) {
        TraceTook *x = &p->row[i].k;
        if (!compares(p->c->t, x)) x->modelled = -1;
        p->longest = fmax(p->longest, fmax(x->modelled, x->measured));
    }
}
static const char *kind_name(const TookPen *p, const Took *x) {
    if (x->more) return arena_printf(p->a, "%lld more kinds", (long long)x->more);
    return x->k.moves && x->k.axis ? arena_printf(p->a, "%s (%s)", x->k.op, x->k.axis) : x->k.op;
}
/* "332 µs, modelled 37.1 µs: 8.97 ×" */
static const char *numbers(const TookPen *p, const Took *x) {
    double r = ratio(p->c->t, &x->k);
    const char *took = time_text(x->k.measured, p->a);
    if (r < 0) return took;
    return arena_printf(p->a, "%s, modelled %s: %.3g ×", took, time_text(x->k.modelled, p->a), r);
}
/* "bus 226 MiB/s, algorithm 302 MiB/s", as nccl-tests define them; "": it is no collective. */
static const char *bandwidths(const TookPen *p, const Took *x) {
    double size = trace_took_size(&x->k), took = x->k.measured;
    if (x->more || size <= 0 || took <= 0) return "";
    return arena_printf(p->a, "bus %s/s, algorithm %s/s",
                        bytes_text((int64_t)(x->k.bytes / took), p->a),
                        bytes_text((int64_t)(size / took), p->a));
}
static const char *tip_of(const TookPen *p, const Took *x) {
    Str tip = str_new(p->a);
    str_addf(&tip, "%s", kind_name(p, x));
    tip_add(&tip, "steps", arena_printf(p->a, "%lld", (long long)x->n));
    if (x->k.modelled >= 0) tip_add(&tip, "modelled", time_text(x->k.modelled, p->a));
    tip_add(&tip, "measured", time_text(x->k.measured, p->a));
    const char *rates = bandwidths(p, x);
    if (*rates) tip_add(&tip, "bandwidth", rates);
    return tip.s;
}
static const struct {
    Look look;
    const char *name;
} bars[] = {{{ROLE_LIVE, ROLE_WEIGHT_LINE, 1}, "modelled"},
            {{ROLE_SHARD_1, ROLE_WEIGHT_LINE, 1}, "measured"}};
static void draw_row(TookPen *p, const Took *x, double y, int at) {
    const double took[] = {x->k.modelled, x->k.measured};
    const char *words = numbers(p, x), *name = kind_name(p, x),
               *n = x->n > 1 ? arena_printf(p->a, "   %lld steps", (long long)x->n) : "";
    scene_begin(p->s, "took", arena_printf(p->a, "took-%d", at), tip_of(p, x));
    double top = p->narrow ? y + 34 : y, name_w = p->narrow ? p->w : SIDE - 14,
           x0 = p->narrow ? p->x : p->x - SIDE;
    double n_w = scene_width(p->s, 12, REGULAR, n);
    Run run[2] = {
        {scene_fit(p->s, name, name_w - n_w, 13, SEMIBOLD), SEMIBOLD, ROLE_INK, false, false},
        {n, REGULAR, ROLE_SECOND, false, false}};
    scene_runs(p->s, (Pt){x0, y + 14}, ALIGN_LEFT, 13, run, *n ? 2 : 1);
    for (int i = 0; i < 2; i++) {
        if (took[i] < 0) continue;
        Area box = {p->x, top + (BAR + 2) * i, fmax(1.5, p->w * took[i] / p->longest), BAR};
        scene_rect(p->s, box, 0, bars[i].look);
    }
    const char *rates = bandwidths(p, x);
    if (p->narrow && *rates) words = arena_printf(p->a, "%s; %s", words, rates);
    TextLook second = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
             ink = {ALIGN_LEFT, 12.5, REGULAR, ROLE_INK};
    double side = p->x + p->w + 14, margin = presets[p->preset].margin,
           side_w = p->s->w - margin - side;
    if (p->narrow) {
        scene_text(p->s, p->x, y + 29, second, scene_fit(p->s, words, p->w, 12, REGULAR));
    } else {
        scene_text(p->s, side, y + (*rates ? 10 : 16), ink,
                   scene_fit(p->s, words, side_w, 12.5, REGULAR));
        if (*rates)
            scene_text(p->s, side, y + 25, second, scene_fit(p->s, rates, side_w, 12, REGULAR));
    }
    scene_end(p->s);
}
/* The key: of what there are bars. */
static double draw_key(TookPen *p, double x, double y) {
    scene_begin(p->s, "legend", "legend", NULL);
    for (int i = p->far ? 0 : 1; i < 2; i++) {
        scene_rect(p->s, (Area){x, y - 10, 14, BAR}, 0, bars[i].look);
        x += 20;
        x += scene_text(p->s, x, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK}, bars[i].name);
        x += 24;
    }
    scene_end(p->s);
    return y + 16;
}
static void draw_axis(TookPen *p, double y0, double y1) {
    enum { TICKS = 4 };
    double tick = pow(10, floor(log10(p->longest / TICKS)));
    while (p->longest / tick > TICKS) tick *= p->longest / (2 * tick) <= TICKS ? 2 : 5;
    for (int i = 0; i * tick <= p->longest * (1 + 1e-9); i++) {
        double x = p->x + p->w * i * tick / p->longest;
        if (!p->narrow) scene_segment(p->s, (Pt){x, y0}, (Pt){x, y1}, ROLE_GRID, 1)->ground = true;
        else scene_segment(p->s, (Pt){x, y1 - 4}, (Pt){x, y1}, ROLE_FAINT, 1);
        const char *word = i ? time_text(i * tick, p->a) : "0";
        double half = scene_width(p->s, 12, REGULAR, word) / 2;
        bool ends = x + half > p->s->w - presets[p->preset].margin;
        scene_text(p->s, ends ? p->x + p->w : x, y1 + 16,
                   (TextLook){ends ? ALIGN_RIGHT
                              : i  ? ALIGN_MIDDLE
                                   : ALIGN_LEFT,
                              12, REGULAR, ROLE_TICK},
                   word);
    }
}
/* "all_reduce (tp) took 8.97 times as long as modelled, the furthest of 7 kinds" */
static const char *title(const TookPen *p) {
    if (!p->far) return "What each kind of step took; there is no model to compare with";
    const char *name = words_capital(p->a, kind_name(p, p->far));
    double r = ratio(p->c->t, &p->far->k);
    if (p->compared == 1) return arena_printf(p->a, "%s took %.3g times what is modelled", name, r);
    return arena_printf(p->a, "%s took %.3g times what is modelled, the furthest of %d kinds", name,
                        r, p->compared);
}
static const char *totals(const TookPen *p) {
    Str s = str_new(p->a);
    for (int moves = 0; moves < 2; moves++) {
        const Took *all = &p->all[moves];
        if (!all->n) continue;
        str_addf(&s, "%s: measured %s", moves ? "Communication" : "Computation",
                 time_text(all->k.measured, p->a));
        if (ratio(p->c->t, &all->k) > 0)
            str_addf(&s, ", modelled %s", time_text(all->k.modelled, p->a));
        str_add(&s, ". ");
    }
    str_add(&s, "Each step by itself, none beside another.");
    return s.s;
}
Scene *timeline_took(const ViewCall *c, PresetKind preset, int64_t rank) {
    TookPen p = {.c = c, .a = c->arena, .preset = preset, .narrow = preset == PRESET_COLUMN};
    const Preset *pr = &presets[preset];
    read_kinds(&p, rank);
    if (!p.n || p.longest <= 0) return NULL;
    Scene *s = p.s = figure_new(c, "timeline", preset);
    double w = s->w - 2 * pr->margin, pitch = room[preset].pitch;
    const char *model = words_model(p.a, c->t);
    const char *sub[] = {model ? model : "",
                         words_data(p.a, c->t),
                         words_mesh(p.a, c->t),
                         arena_printf(p.a, "rank %lld", (long long)rank),
                         trace_took_in_memory(c->t) ? "collectives are copies in one GPU's memory"
                                                    : "",
                         trace_took_in_turns(c->t) ? "ranks took turns: times say nothing" : "",
                         NULL};
    const char *part[8];
    int k = 0;
    for (int i = 0; sub[i]; i++)
        if (*sub[i]) part[k++] = sub[i];
    part[k] = NULL;
    double y = figure_head(s, preset, title(&p), part, 0) + 10;
    y = wrong_banner(s, c, (Band){pr->margin, w, y});
    y = draw_key(&p, pr->margin, y + 12) + 6;
    p.x = pr->margin + (p.narrow ? 0 : SIDE);
    p.w = p.narrow ? w : w - SIDE - NUMBERS;
    double y1 = y + pitch * p.n - (p.narrow ? 0 : 6);
    draw_axis(&p, y - 4, y1);
    for (int i = 0; i < p.n; i++) draw_row(&p, &p.row[i], y + pitch * i, i);
    const char *hw = c->t->hardware ? c->t->hardware : "";
    y = figure_foot(s, c, (Band){pr->margin, w, y1 + 34}, totals(&p), hw);
    s->desc = arena_printf(p.a, "Modelled and measured time of each kind of step. %s", totals(&p));
    figure_page(s, preset, y);
    return s;
}
