/* View `sweep`: how large may the batch be, and is there a better way to cut these ranks? Left what
 * the fullest rank holds with each batch, right how long a step takes on each mesh. */
#include "render/furniture/headline.h"
#include "render/furniture/page_room.h"
#include "render/furniture/views.h"
#include "render/memory/inks.h"
#include "render/sweep/sweep.h"
#include "render/sweep/sweep_bars.h"
#include "render/sweep/sweep_rows.h"
#include <math.h>

enum { APART = 34, WIDE_H = 400, COLUMN_H = 360, FOOT = 118, TRIES = 4 };
typedef struct {
    const ViewCall *c;
    Scene *s;
    const Sweep *w;
    PresetKind preset;
} SweepPage;

/* What a page with a panel so wide counts, and how it draws the plan's bar. */
static const char *totals_of(const SweepPage *p, double w, int left) {
    const char *totals = sweep_totals(p->w, sweep_hidden(p->w, w), left);
    return arena_printf(p->c->arena, "%s%s", totals,
                        sweep_own_scale(p->w, w)
                            ? " The plan's bar has a scale of its own: beside the others it would "
                              "be a line."
                            : "");
}
/* Both panels beside each other, or on a narrow page one below the other. Returns the y under them;
 * *totals: what they count. */
static double draw_panels(SweepPage *p, Band at, double h, const char **totals) {
    const Sweep *w = p->w;
    const bool two = sweep_compares(w), below = p->preset == PRESET_COLUMN;
    const double each = two && !below ? (at.w - APART) / 2 : at.w, rows = sweep_rows_height(w);
    sweep_draw_batches(p->s, w, (Area){at.x, at.y, each, h});
    *totals = totals_of(p, each, 0);
    if (!two) return at.y + h;
    const Area ways = below ? (Area){at.x, at.y + h + 14, each, rows}
                            : (Area){at.x + each + APART, at.y, each, h};
    *totals = totals_of(p, each, sweep_ways_left(w, ways.h));
    sweep_draw_ways(p->s, w, ways);
    return below ? ways.y + ways.h : at.y + h;
}
/* A page whose foot is so high where its height is fixed; its lower end to *end. */
static Scene *sweep_page(const ViewCall *c, const Sweep *w, double below, double *end) {
    Arena *a = c->arena;
    SweepPage p = {.c = c, .w = w};
    furniture_preset(c->o->preset, &p.preset);
    const Preset *pr = &presets[p.preset];
    Scene *s = p.s = figure_new(c, "sweep", p.preset);
    const char *model = words_model(a, c->t),
               *sub[] = {model ? model : "",
                         words_data(a, c->t),
                         words_layers(a, c->t),
                         words_mesh(a, c->t),
                         arena_printf(a, "pass %s", pass_words[c->t->pass]),
                         sweep_compares(w) ? "modelled time" : "",
                         NULL};
    double y = headline_draw(s, p.preset, w->wrong, sweep_title(w), sub) + 8;
    const Band all = {pr->margin, s->w - 2 * pr->margin, y};
    y = wrong_banner(s, c, all);
    y = sweep_draw_key(s, w, (Band){all.x, all.w, y + 4});
    const double room = page_room(p.preset) - y - below,
                 h = p.preset == PRESET_SLIDE    ? fmax(180, room)
                     : p.preset == PRESET_COLUMN ? COLUMN_H
                                                 : fmax(WIDE_H, room);
    const char *totals;
    y = draw_panels(&p, (Band){all.x, all.w, y + 6}, h, &totals);
    y = figure_foot(s, c, (Band){all.x, all.w, y + 8}, totals, c->t->hardware);
    s->desc = arena_printf(a, "%s. %s", sweep_title(w), totals);
    figure_page(s, p.preset, *end = y);
    return s;
}
int view_sweep(const ViewCall *c, Scene **page) {
    Sweep *w = ARENA_NEW(c->arena, Sweep);
    double below = FOOT;
    if (!sweep_read(w, c)) return 0;
    PresetKind preset = PRESET_WIDE;
    furniture_preset(c->o->preset, &preset);
    const double room = page_room(preset);
    for (int k = 0; k < TRIES; k++) { /* a page of a fixed height is filled */
        double end;
        page[0] = sweep_page(c, w, below, &end);
        if (room <= 0 || (end <= room && end > room - 2)) break;
        below += end - room + 1;
    }
    return 1;
}

/* ---- text ---- */
static const char *is_plan(bool own) { return own ? "the plan" : ""; }
/* "no: +12.3 GiB" */
static const char *fits_words(const Sweep *w, int64_t total) {
    if (!w->capacity) return "";
    return sweep_fits(w, total)
               ? "yes"
               : arena_printf(w->c->arena, "no: +%s", bytes_text(total - w->capacity, w->c->arena));
}
static void batch_rows(Str *s, const Sweep *w) {
    enum { CELLS = 6 };
    static const int wide[CELLS] = {9, 12, 12, 11, 2, 14}; /* 60 in all */
    const char *head[CELLS] = {
        "", sweep_what(w), "at the peak", "at rest", "", w->capacity ? "fits" : ""};
    for (int i = -1; i < w->n; i++) {
        const SweepBatch *b = &w->at[i < 0 ? 0 : i];
        Arena *a = w->c->arena;
        const char *text[CELLS] = {is_plan(b->own),
                                   arena_printf(a, "%lld", (long long)b->batch),
                                   bytes_text(b->total, a),
                                   bytes_text(b->bytes[MEM_PARAMS] + b->bytes[MEM_OPTIMIZER], a),
                                   "",
                                   fits_words(w, b->total)};
        WordsCell cell[CELLS];
        for (int k = 0; k < CELLS; k++)
            cell[k] = (WordsCell){i < 0 ? head[k] : text[k], wide[k], k > 0 && k < 4};
        words_row(s, "    ", cell, CELLS);
    }
}
static void way_rows(Str *s, const Sweep *w) {
    enum { CELLS = 6 };
    static const int wide[CELLS] = {26, 10, 10, 10, 1, 3};
    const char *head[CELLS] = {sweep_span(w), "time", "compute",
                               "exposed",     "",     w->capacity ? "fit" : ""};
    Arena *a = w->c->arena;
    if (sweep_compares(w)) str_add(s, "\n");
    for (int i = -1; sweep_compares(w) && i < w->n_ways; i++) {
        const SweepWay *x = &w->way[i < 0 ? 0 : i];
        const char *text[CELLS] = {
            arena_printf(a, "%s%s", sweep_way_name(w, x), x->own ? ", the plan" : ""),
            time_text(x->span, a),
            time_text(x->compute, a),
            time_text(x->exposed, a),
            "",
            !w->capacity              ? ""
            : sweep_fits(w, x->total) ? "yes"
                                      : "no"};
        WordsCell cell[CELLS];
        for (int k = 0; k < CELLS; k++)
            cell[k] = (WordsCell){i < 0 ? head[k] : text[k], wide[k], k > 0 && k < 4};
        words_row(s, "    ", cell, CELLS);
    }
}
const char *view_sweep_text(const ViewCall *c) {
    Sweep *w = ARENA_NEW(c->arena, Sweep);
    Role role;
    if (!sweep_read(w, c)) return NULL;
    Str s = str_new(c->arena);
    const int columns = furniture_columns(c->o);
    words_paragraph(&s, "", sweep_title(w), columns);
    wrong_text(&s, w->wrong, columns);
    str_add(&s, "\n");
    batch_rows(&s, w);
    way_rows(&s, w);
    str_add(&s, "\n");
    words_paragraph(&s, "", sweep_totals(w, 0, 0), columns);
    if (w->capacity)
        words_paragraph(&s, "", words_capital(c->arena, memory_capacity_words(c->arena, c->t)),
                        columns);
    words_paragraph(&s, "", words_stamp(c->arena, c->t, &role), columns);
    return s.s;
}
