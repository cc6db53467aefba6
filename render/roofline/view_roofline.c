/* View `roofline`: when is it compute-bound? Left every kernel of a rank by its FLOPs per byte of
 * memory, under what the machine reaches; right every collective by the FLOPs of the products
 * around it per byte that it sends, under what the links let them reach. */
#include "base/text.h"
#include "render/furniture/headline.h"
#include "render/furniture/page_room.h"
#include "render/furniture/views.h"
#include "render/roofline/roof_plot.h"
#include "render/roofline/roofline.h"
#include <math.h>

enum { APART = 34, WIDE_H = 400, COLUMN_H = 350, FOOT = 108, TRIES = 4, BAR = 16, BAR_H = 42 };
typedef struct {
    const ViewCall *c;
    Scene *s;
    Roofline r;
    PresetKind preset;
    RoofPart part;
    const WrongList *wrong;
    unsigned legend;
    RoofSays says; /* both panels' */
} RoofPage;

/* ---- tooltips ---- */
static const char *several(Arena *a, int n) { return n > 1 ? arena_printf(a, " ×%d", n) : ""; }
static const char *kernel_tip(const RoofPage *p, const RoofKernel *k) {
    Arena *a = p->c->arena;
    Str s = str_new(a);
    str_addf(&s, "%s%s: %s", k->name, several(a, k->n), bound_words[k->bound]);
    if (k->moved > 0) tip_add(&s, "", roofline_amount(a, k->work / k->moved, "FLOP per byte"));
    tip_add(&s, "", roofline_amount(a, k->work / k->took, "FLOP/s"));
    if (k->x->c) tip_add(&s, "makes", k->x->c->output);
    tip_add(&s, "", k->x->rec->formula);
    return s.s;
}
static const char *coll_tip(const RoofPage *p, const RoofColl *k) {
    Arena *a = p->c->arena;
    const TraceCollective *c = k->x->coll;
    Str s = str_new(a);
    str_addf(&s, "%s%s: %s of %s over %s, sends %s", k->name, several(a, k->n), c->op, c->value,
             c->axis ? c->axis : "", bytes_text((int64_t)k->sent, a));
    tip_add(&s, "takes", time_text(k->took, a));
    tip_add(&s, k->makes ? "the products that make it take" : "the products that read it take",
            arena_printf(a, "%s, %s", time_text(k->math, a), roofline_amount(a, k->work, "FLOP")));
    tip_add(&s, "", roofline_amount(a, k->work / k->sent, "FLOP per byte sent"));
    tip_add(&s, "", k->x->rec->formula);
    tip_inferred(&s, c);
    return s.s;
}

/* ---- the panels ---- */
static const char *joined(Arena *a, const char *x, const char *between, const char *y) {
    return x ? arena_printf(a, "%s%s%s", x, *x && *y ? between : "", y) : y;
}
static void keep(RoofPage *p, RoofSays one) {
    Arena *a = p->c->arena;
    p->says.numbered = joined(a, p->says.numbered, "; ", one.numbered);
    p->says.without = joined(a, p->says.without, ", ", one.without);
    p->says.more |= one.more, p->says.shared |= one.shared;
    p->says.last = one.last;
}
static RoofMark kernel_mark(RoofPage *p, const RoofKernel *k, int i) {
    const TimeEvent *x = k->x;
    p->legend |= 1u << (x->small ? LEGEND_SMALL : x->gradient ? LEGEND_GRADIENT : LEGEND_MATMUL);
    return (RoofMark){.x = k->work / k->moved,
                      .y = k->work / k->took,
                      .share = k->n * k->took / p->r.compute,
                      .fill = x->small      ? ROLE_COMPUTE_DARK
                              : x->gradient ? ROLE_COMPUTE_PALE
                                            : ROLE_COMPUTE,
                      .line = ROLE_COMPUTE_LINE,
                      .what = "compute",
                      .step = x->rec->step,
                      .id = arena_printf(p->c->arena, "kernel-%d", i),
                      .label = x->small ? x->brief : k->name,
                      .tip = kernel_tip(p, k),
                      .thing = x->c ? x->c->module : NULL};
}
/* Those that compute next to nothing would take half of a logarithmic axis. */
static bool computes(const RoofKernel *k) {
    return k->moved > 0 && k->work >= ROOF_FEWEST * k->moved;
}
/* "memory-bound: 3 TB/s": what is at this roof, and how high it is. */
static RoofName roof_name(Arena *a, const char *what, const char *rate) {
    return (RoofName){arena_printf(a, "%s: %s", what, rate), rate};
}
static const char *ridge_label(Arena *a, double at) {
    return arena_printf(a, "ridge %s", count_text(at, a));
}
static void draw_kernels(RoofPage *p, Area at) {
    const Roofline *r = &p->r;
    const Trace *t = r->t;
    Arena *a = p->c->arena;
    RoofPlot plot = {
        .c = p->c, .s = p->s, .at = at, .id = "kernels", .wrong = p->wrong, .first = 1};
    plot.peak = t->flop_rate;
    plot.mark = ARENA_ARRAY(a, RoofMark, r->n_kernels + 1);
    for (int i = 0; i < r->n_kernels; i++)
        if (computes(&r->kernel[i])) plot.mark[plot.n++] = kernel_mark(p, &r->kernel[i], i);
    plot.head = "Kernels: FLOP/s by FLOPs per byte of memory";
    plot.x_name = "FLOP per byte read and written";
    plot.peak_name =
        roof_name(a, bound_words[BOUND_COMPUTE], roofline_amount(a, t->flop_rate, "FLOP/s"));
    plot.slope[plot.n_slopes++] = (RoofSlope){
        t->memory_rate,
        roof_name(a, bound_words[BOUND_MEMORY], roofline_amount(a, t->memory_rate, "B/s")),
        ridge_label(a, roofline_ridge(t))};
    plot.under = t->launch > 0 ? 0.5 : 0;
    plot.under_name = (RoofName){"below this line: launch-bound", "below: launch-bound"};
    keep(p, roof_plot(&plot, &p->legend));
}
/* The slope of a link: of NCCL's model some collectives are faster than a ring's steps. */
static void add_link(RoofPage *p, RoofPlot *plot, bool across) {
    const Roofline *r = &p->r;
    double rate = r->t->link_rate[across];
    bool used = false;
    for (int i = 0; i < r->n_colls; i++) {
        const RoofColl *k = &r->coll[i];
        if (k->across != across) continue;
        used = true;
        rate = fmax(rate, k->sent / k->took);
    }
    if (!used) return;
    Arena *a = p->c->arena;
    RoofName name =
        roof_name(a, across ? "sending across nodes" : "sending", roofline_amount(a, rate, "B/s"));
    if (across) name.brief = arena_printf(a, "across nodes: %s", name.brief);
    plot->slope[plot->n_slopes++] = (RoofSlope){rate, name, ridge_label(a, plot->peak / rate)};
}
static bool is_drawn(const RoofPage *p, const RoofColl *k) {
    const Trace *t = p->r.t;
    return k->work / k->sent <= ROOF_MOST * t->flop_rate / t->link_rate[k->across];
}
static RoofMark coll_mark(RoofPage *p, const RoofColl *k, int i) {
    const bool longer = k->took > k->math;
    const TraceCollective *c = k->x->coll;
    return (RoofMark){.x = k->work / k->sent,
                      .y = k->work / fmax(k->math, k->took),
                      .share = k->n * k->took / p->r.sent,
                      .fill = longer ? ROLE_COLL : ROLE_COLL_PALE,
                      .line = ROLE_COLL_LINE,
                      .hexagon = true,
                      .what = "collective",
                      .step = k->x->rec->step,
                      .id = arena_printf(p->c->arena, "collective-%d", i),
                      .label = k->name,
                      .tip = coll_tip(p, k),
                      .thing = c->n_with ? NULL : c->module};
}
static void draw_colls(RoofPage *p, Area at) {
    const Roofline *r = &p->r;
    Arena *a = p->c->arena;
    RoofPlot plot = {.c = p->c, .s = p->s, .at = at, .id = "collectives", .wrong = p->wrong};
    plot.first = p->says.last + 1;
    plot.peak = r->t->flop_rate;
    plot.mark = ARENA_ARRAY(a, RoofMark, r->n_colls + 1);
    for (int i = 0; i < r->n_colls; i++)
        if (is_drawn(p, &r->coll[i])) plot.mark[plot.n++] = coll_mark(p, &r->coll[i], i);
    plot.head = "Collectives: FLOP/s of the products around them, if both go on at once";
    plot.x_name = "FLOP of its products per byte sent";
    plot.peak_name = roof_name(a, "computing", roofline_amount(a, r->t->flop_rate, "FLOP/s"));
    add_link(p, &plot, false), add_link(p, &plot, true);
    keep(p, roof_plot(&plot, &p->legend));
}

/* ---- where the time goes ---- */
typedef struct {
    const char *word;
    double part;
    Role fill, line;
    bool hatched;
} Share;
static void draw_share(Scene *s, Area at, const Share *x) {
    scene_rect(s, at, 0, (Look){x->fill, ROLE_NONE, 0});
    if (x->hatched && at.w > 3) scene_hatch(s, at, x->line, 5, 0.75);
    scene_rect(s, at, 0, (Look){ROLE_NONE, x->line, 1});
}
/* What stands under a bar, as wide as the bar: its key, which is that of the marks too. */
static void draw_words(RoofPage *p, Area at, const Share *x, int n, double whole) {
    enum { KEY = 16, GAP = 16 };
    Arena *a = p->c->arena;
    const char **text = ARENA_ARRAY(a, const char *, n);
    double all = 0, word = at.x;
    int shown = 0;
    for (int i = 0; i < n; i++) {
        text[i] = arena_printf(a, "%s %s", x[i].word, percent_text(a, x[i].part, whole));
        if (x[i].part <= 0) continue;
        all += KEY + scene_width(p->s, 12, REGULAR, text[i]);
        shown++;
    }
    const double gap = shown > 1 ? fmax(5, fmin(GAP, (at.w - all) / (shown - 1))) : 0;
    for (int i = 0; i < n; i++) {
        if (x[i].part <= 0) continue;
        scene_begin(p->s, "legend", "share-key", NULL); /* the words stay with the bar on a slide */
        draw_share(p->s, (Area){word, at.y, 11, 11}, &x[i]);
        scene_end(p->s);
        word += KEY + gap +
                scene_text(p->s, word + KEY, at.y + 10,
                           (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, text[i]);
    }
}
/* A bar of shares of a whole, with their words under it. */
static void draw_bar(RoofPage *p, Area at, const char *what, const Share *x, int n) {
    double whole = 0, from = at.x;
    for (int i = 0; i < n; i++) whole += x[i].part;
    scene_begin(p->s, "share", what, what);
    for (int i = 0; i < n; i++) {
        const double w = whole > 0 ? at.w * x[i].part / whole : 0;
        if (w > 0) draw_share(p->s, (Area){from, at.y, w, BAR}, &x[i]);
        from += w;
    }
    draw_words(p, (Area){at.x, at.y + BAR + 8, at.w, 0}, x, n, whole);
    scene_end(p->s);
}
static void draw_compute_bar(RoofPage *p, Area at) {
    const double *took = p->r.took;
    const Share x[] = {
        {bound_words[BOUND_COMPUTE], took[BOUND_COMPUTE], ROLE_COMPUTE, ROLE_COMPUTE_LINE, false},
        {bound_words[BOUND_MEMORY], took[BOUND_MEMORY], ROLE_BYTES, ROLE_COMPUTE_LINE, false},
        {bound_words[BOUND_LAUNCH], took[BOUND_LAUNCH], ROLE_PAPER, ROLE_COMPUTE_LINE, true}};
    draw_bar(p, at, "compute time", x, 3);
}
static void draw_sent_bar(RoofPage *p, Area at) {
    const Roofline *r = &p->r;
    const Share x[] = {
        {"outlast their products", r->sent_longer, ROLE_COLL, ROLE_COLL_LINE, false},
        {"shorter", r->sent - r->sent_longer, ROLE_COLL_PALE, ROLE_COLL_LINE, false}};
    draw_bar(p, at, "time of collectives", x, 2);
}

/* ---- the page ---- */
/* Both panels with their bars: beside each other, or on a narrow page one below the other; or one
 * of them alone. */
static double draw_panels(RoofPage *p, double y, double h) {
    const double x = presets[p->preset].margin, w = p->s->w - 2 * x;
    const bool two = p->part == ROOF_BOTH && p->r.n_colls > 0,
               below = two && p->preset == PRESET_COLUMN;
    const double each = two && !below ? (w - APART) / 2 : w;
    if (p->part != ROOF_COLLS) {
        draw_kernels(p, (Area){x, y, each, h});
        draw_compute_bar(p, (Area){x, y + h + 10, each, 0});
        if (!two) return y + h + 10 + BAR_H;
    }
    const double x2 = two && !below ? x + each + APART : x,
                 y2 = below ? y + h + 10 + BAR_H + 16 : y;
    draw_colls(p, (Area){x2, y2, each, h});
    draw_sent_bar(p, (Area){x2, y2 + h + 10, each, 0});
    return y2 + h + 10 + BAR_H;
}
static const char *foot(const RoofPage *p) {
    const Roofline *r = &p->r;
    Str s = str_new(p->c->arena);
    int bare = 0, far = 0;
    for (int i = 0; i < r->n_kernels && p->part != ROOF_COLLS; i++)
        bare += computes(&r->kernel[i]) ? 0 : r->kernel[i].n;
    for (int i = 0; i < r->n_colls && p->part != ROOF_KERNELS; i++)
        far += is_drawn(p, &r->coll[i]) ? 0 : r->coll[i].n;
    str_add(&s, roofline_totals(r, p->part));
    if (bare)
        str_addf(&s, " In no panel: %d kernel%s with less than %g FLOP per byte%s", bare,
                 bare == 1 ? "" : "s", ROOF_FEWEST, far ? "" : ".");
    if (far)
        str_addf(&s, "%s %d collective%s with more than %g times the ridge's FLOP per byte sent.",
                 bare ? " and" : " In no panel:", far, far == 1 ? "" : "s", ROOF_MOST);
    if (p->says.more) str_add(&s, " + and a number: so many more at that place.");
    if (p->says.numbered && *p->says.numbered)
        str_addf(&s, " Marks with a number%s: %s.",
                 p->says.shared ? ", some for a few side by side" : "", p->says.numbered);
    if (p->says.without && *p->says.without)
        str_addf(&s, " Marks without room for a name: %s.", p->says.without);
    return s.s;
}
/* A page whose foot, with the bars above it, is so high where its height is fixed; its lower end to
 * *end. */
static Scene *roofline_page(const ViewCall *c, const Roofline *r, RoofPart part, double below,
                            double *end) {
    RoofPage p = {.c = c, .r = *r, .part = part, .wrong = r->wrong};
    Arena *a = c->arena;
    furniture_preset(c->o->preset, &p.preset);
    const Preset *pr = &presets[p.preset];
    p.legend = 1u << LEGEND_LARGER;
    Scene *s = p.s = figure_new(c, "roofline", p.preset);
    const char *model = words_model(a, c->t),
               *sub[] = {model ? model : "",       words_data(a, c->t),
                         words_layers(a, c->t),    words_mesh(a, c->t),
                         roofline_whose(r, false), part == ROOF_COLLS ? "" : roofline_limits(r),
                         "modelled time",          NULL};
    double y = headline_draw(s, p.preset, p.wrong, roofline_title(r, part), sub) + 8;
    const Band all = {pr->margin, s->w - 2 * pr->margin, y};
    y = wrong_banner(s, c, all);
    const double room = page_room(p.preset) - y - below,
                 h = p.preset == PRESET_SLIDE    ? fmax(150, room)
                     : p.preset == PRESET_COLUMN ? COLUMN_H
                                                 : fmax(WIDE_H, room);
    y = draw_panels(&p, y, h);
    y = figure_legend(s, (Band){all.x, all.w, y}, p.legend);
    y = figure_foot(s, c, (Band){all.x, all.w, y}, foot(&p), c->t->hardware);
    s->desc = arena_printf(a, "Roofline of kernels and collectives. %s", roofline_totals(r, part));
    figure_page(s, p.preset, *end = y);
    return s;
}
/* A page of a fixed height is filled, as far as its foot lets it: with another height other marks
 * have no room for their names, which stand there, and one that is too high is made smaller. */
static Scene *filled_page(const ViewCall *c, const Roofline *r, RoofPart part, double room) {
    Scene *page = NULL;
    double below = FOOT;
    bool over = false;
    for (int k = 0; k < TRIES; k++) {
        double end;
        page = roofline_page(c, r, part, below, &end);
        if (room <= 0 || (end <= room && (over || end > room - 2))) break;
        over |= end > room;
        below += end - room + 1;
    }
    return page;
}
int view_roofline(const ViewCall *c, Scene **page) {
    Roofline r;
    if (!roofline_read(&r, c)) return 0;
    PresetKind preset = PRESET_WIDE;
    furniture_preset(c->o->preset, &preset);
    const double room = page_room(preset);
    const bool two =
        preset == PRESET_SLIDE && r.n_colls > 0; /* names of both have no room on one */
    page[0] = filled_page(c, &r, two ? ROOF_KERNELS : ROOF_BOTH, room);
    if (two) page[1] = filled_page(c, &r, ROOF_COLLS, room);
    return two ? 2 : 1;
}

/* ---- text ---- */
enum { MOST_ROWS = 30, CELLS = 7 };
/* A row of either table in w columns: closer where these do not hold it. */
static void row(Str *s, int w, const char *rail, const WordsCell *cell) {
    static const int less[CELLS] = {7, 1, 1, 1, 1, 0, 3};
    WordsCell fit[CELLS];
    int all = 0;
    for (int i = 0; i < CELLS; i++) all += cell[i].w;
    for (int i = 0; i < CELLS; i++) {
        fit[i] = cell[i];
        if (all > w) fit[i].w -= less[i];
    }
    words_row(s, rail, fit, CELLS);
}
static void kernel_rows(Str *s, int w, const Roofline *r) {
    Arena *a = r->c->arena;
    row(s, w, "",
        (WordsCell[]){{"kernel", 24, false},
                      {"×", 5, true},
                      {"FLOP/byte", 11, true},
                      {"FLOP/s", 9, true},
                      {"share", 8, true},
                      {"", 2, false},
                      {"bound by", 15, false}});
    for (int i = 0; i < r->n_kernels && i < MOST_ROWS; i++) {
        const RoofKernel *k = &r->kernel[i];
        row(s, w, "    ",
            (WordsCell[]){{k->name, 24, false},
                          {arena_printf(a, "%d", k->n), 5, true},
                          {k->moved > 0 ? count_text(k->work / k->moved, a) : "", 11, true},
                          {count_text(k->work / k->took, a), 9, true},
                          {percent_text(a, k->n * k->took, r->compute), 8, true},
                          {"", 2, false},
                          {bound_words[k->bound], 15, false}});
    }
    if (r->n_kernels > MOST_ROWS) str_addf(s, "%d more rows\n", r->n_kernels - MOST_ROWS);
}
static void coll_rows(Str *s, int w, const Roofline *r) {
    Arena *a = r->c->arena;
    if (!r->n_colls) return;
    str_add(s, "\n");
    row(s, w, "",
        (WordsCell[]){{"collective", 24, false},
                      {"×", 5, true},
                      {"FLOP/byte", 11, true},
                      {"takes", 10, true},
                      {"products", 10, true},
                      {"", 2, false},
                      {"over", 12, false}});
    for (int i = 0; i < r->n_colls && i < MOST_ROWS; i++) {
        const RoofColl *k = &r->coll[i];
        const char *axis = k->x->coll->axis ? words_axis_list(a, r->t, k->x->coll->axis) : "";
        row(s, w, "    ",
            (WordsCell[]){{k->name, 24, false},
                          {arena_printf(a, "%d", k->n), 5, true},
                          {count_text(k->work / k->sent, a), 11, true},
                          {time_text(k->took, a), 10, true},
                          {time_text(k->math, a), 10, true},
                          {"", 2, false},
                          {axis, 12, false}});
    }
    if (r->n_colls > MOST_ROWS) str_addf(s, "%d more rows\n", r->n_colls - MOST_ROWS);
}
const char *view_roofline_text(const ViewCall *c) {
    Roofline r;
    Arena *a = c->arena;
    Role role;
    if (!roofline_read(&r, c)) return NULL;
    Str s = str_new(a);
    const int w = furniture_columns(c->o);
    words_paragraph(&s, "", roofline_title(&r, ROOF_BOTH), w);
    words_paragraph(&s, "",
                    arena_printf(a, "%s · %s", roofline_whose(&r, true), roofline_limits(&r)), w);
    wrong_text(&s, r.wrong, w);
    str_add(&s, "\n");
    kernel_rows(&s, w, &r);
    coll_rows(&s, w, &r);
    str_add(&s, "\n");
    words_paragraph(&s, "", roofline_totals(&r, ROOF_BOTH), w);
    if (c->t->hardware)
        words_paragraph(&s, "", arena_printf(a, "time model: %s", c->t->hardware), w);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), w);
    return s.s;
}
