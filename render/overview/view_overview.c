/* View `overview`: the whole model of the trace from input to output, repeated layers folded, with
 * what each part holds and the axes over which it sends: forward, backward, gradients and weights
 * side by side. */
#include "render/overview/overview_pen.h"
#include "render/furniture/headline.h"
#include "render/furniture/views.h"
#include "trace/trace_parts.h"
#include <math.h>
#include <string.h>

/* "1 of 32 layers"; "" if the trace has them all or there are none. */
static const char *layers_shown(const Overview *o) {
    double all = words_find_dim(o->c->t, "L");
    int n = 0;
    for (int i = 0; i < o->n; i++) n += o->unit[i].open ? o->unit[i].layers : 0;
    return isfinite(all) && n > 0 && n < all
               ? arena_printf(o->c->arena, "%d of %.0f layers", n, all)
               : "";
}

static const char *title(const Overview *o) {
    Arena *a = o->c->arena;
    int64_t weights;
    Total sent = overview_totals(o, &weights);
    sent.bytes += overview_beyond(o);
    const char *model = words_model(a, o->c->t);
    if (!model || o->c->t->model_kind) model = "The model"; /* nobody has named it */
    Str s = str_new(a);
    RankSet *part;
    bool alike = trace_parts(o->c->t, a, &part) <= 1;
    const char *who = alike ? "a rank" : arena_printf(a, "rank %lld", (long long)o->rank);
    str_addf(&s, "%s: %s holds %s of weights and sends %s", model, who, bytes_text(weights, a),
             words_sent(a, &sent, NULL));
    if (!o->whole) str_addf(&s, " in %s", phase_text(o->pass));
    return s.s;
}

enum { LEGEND_ROOM = 34 };
int view_overview(const ViewCall *c, Scene **page) {
    OverviewPen p = {0};
    PresetKind preset;
    Arena *a = c->arena;
    furniture_preset(c->o->preset, &preset);
    if (!overview_read(&p.o, c)) return 0;
    const Preset *pr = &presets[preset];
    Scene *s = p.s = figure_new(c, "overview", preset);
    const bool back = p.o.all && (overview_sends(&p.o, SEND_BACKWARD) ||
                                  overview_sends(&p.o, SEND_GRADIENTS) || trace_has_backward(c->t));
    const char *sub[] = {
        arena_printf(a, "rank %lld %s", (long long)p.o.rank, words_coords(a, c->t, p.o.rank)),
        words_data(a, c->t),
        words_mesh(a, c->t),
        back && p.o.whole ? "forward and backward" : phase_text(p.o.pass),
        words_class(a, c->t, p.o.rank),
        layers_shown(&p.o),
        NULL};
    double right = overview_layout(&p, pr, preset);
    double titled = scene_width(s, 20, BOLD, title(&p.o)) + 2 * pr->margin + 1;
    if (preset == PRESET_WIDE) s->w = fmax(860, titled <= pr->w ? ceil(titled) : 0);
    s->w = fmax(s->w, right + pr->margin);
    if (preset == PRESET_WIDE) s->px_width = (int)(pr->px * s->w / pr->w);
    double w = s->w - 2 * pr->margin, y = headline_draw(s, preset, p.o.wrong, title(&p.o), sub) + 2;
    y = wrong_notes(s, p.o.wrong, pr->margin, w, y, preset == PRESET_SLIDE ? 3 : 0) + 10;
    double foot = 0; /* where that of a slide begins */
    if (preset == PRESET_SLIDE) {
        const char *line[6];
        int n = scene_wrap(s, overview_sent(&p.o), (TextColumn){w, 12.5, REGULAR, 6, NULL}, line);
        for (int k = 0; k < 2; k++) { /* what finds no room is a word of the footer */
            foot = pr->h - 48 - 17 * (n + (*overview_codes(&p) ? 1 : 0));
            overview_fit(&p, pr, foot - y);
            overview_set_lines(&p);
        }
    } else overview_set_lines(&p);
    y = overview_draw(&p, y);
    if (preset != PRESET_SLIDE || y + LEGEND_ROOM <= foot) /* on a slide where room is left */
        y = figure_legend(s, (Band){pr->margin, w, y + 4}, p.legend | 1u << LEGEND_COMPUTE);
    y = figure_foot(s, c, (Band){pr->margin, w, y + 8}, overview_sent(&p.o), overview_codes(&p));
    s->desc = arena_printf(a, "Overview of the model. %s. %s", title(&p.o), overview_sent(&p.o));
    figure_page(s, preset, y);
    page[0] = s;
    return 1;
}

/* What stands on a unit's way: "sp AllGather, 16 KiB; cp AllGather ×2, 8 KiB; ..." */
static const char *ways_text(OverviewPen *p, const OverviewUnit *u) {
    Str s = str_new(p->o.c->arena);
    for (int k = 0; k < WAYS; k++)
        for (int i = 0; i < u->way[k].n; i++) {
            const OverviewItem *item = &u->way[k].item[i];
            if (item->c)
                str_addf(&s, "%s%s %s", s.n ? "; " : "",
                         words_axis_list(p->o.c->arena, p->o.c->t, item->c->axis),
                         overview_item(p, item));
        }
    return s.s;
}

/* "backward: tp AllGather, 4 KiB; tp ReduceScatter, 4 KiB" */
static const char *totals_text(OverviewPen *p, const OverviewUnit *u, SendKind k) {
    Str s = str_new(p->o.c->arena);
    if (p->o.all) str_addf(&s, "%s: ", overview_kind(&p->o, k));
    for (int i = 0; i < u->n_total[k]; i++)
        str_addf(&s, "%s%s %s", i ? "; " : "",
                 words_axis_list(p->o.c->arena, p->o.c->t, u->total[k][i].c->axis),
                 overview_item(p, &u->total[k][i]));
    return s.s;
}

const char *view_overview_text(const ViewCall *c) {
    OverviewPen p = {.bytes = true};
    Overview o;
    Arena *a = c->arena;
    Role role;
    int w = furniture_columns(c->o);
    if (!overview_read(&p.o, c)) return NULL;
    o = p.o;
    Str s = str_new(a);
    words_paragraph(&s, "", title(&o), w);
    wrong_text(&s, o.wrong, w);
    str_add(&s, "\n");
    for (int i = 0; i < o.n; i++) {
        const OverviewUnit *u = &o.unit[i];
        bool in = u->layer >= 0; /* a layer's */
        WordsCell row[] = {
            {arena_printf(a, "%s%s", in ? "  " : "", u->title), w < 80 ? 14 : 20, false},
            {in ? arena_printf(a, "layer %d × %d", u->layer, u->layers) : "", w < 80 ? 15 : 18,
             false},
            {u->out ? overview_symbols(&p, u->out) : "", w < 80 ? 22 : 24, false},
            {u->message ? "" : bytes_text(u->weights, a), w < 80 ? 9 : 12, true}};
        words_row(&s, "      ", row, 4);
        const char *ways = ways_text(&p, u);
        if (*ways) words_paragraph(&s, "      ", ways, w);
        for (int k = 0; k < SEND_KINDS; k++)
            if (k != (int)o.flow && u->n_total[k])
                words_paragraph(&s, "      ", totals_text(&p, u, (SendKind)k), w);
        if (u->n_wrong) str_add(&s, "      ✗ wrong, see above\n");
    }
    str_add(&s, "\n");
    words_paragraph(&s, "", overview_sent(&o), w);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), w);
    return s.s;
}
