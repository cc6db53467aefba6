/* Title, subtitle, legend, footer, pills and maps of ranks. See furniture.h. */
#include "render/furniture/furniture.h"
#include "render/furniture/hexagon.h"
#include <assert.h>
#include <math.h>
#include <string.h>

const Preset presets[PRESET_COUNT] = {
    [PRESET_WIDE] = {"wide", 1120, 0, 28, 11.5, 1600},
    [PRESET_COLUMN] = {"column", 572, 0, 22, 11.5, 900},
    [PRESET_SLIDE] = {"slide", 960, 540, 22, 12, 1920},
    [PRESET_A4] = {"a4", 1120, 0, 28, 11.5, 1600},
};

int furniture_columns(const RenderOptions *o) {
    enum { WIDEST = 80, NARROWEST = 60 };
    if (o->columns <= 0 || o->columns > WIDEST) return WIDEST;
    return o->columns < NARROWEST ? NARROWEST : o->columns;
}

bool furniture_preset(const char *name, PresetKind *out) {
    *out = PRESET_WIDE;
    for (int i = 0; name && i < PRESET_COUNT; i++)
        if (!strcmp(presets[i].name, name)) {
            *out = (PresetKind)i;
            return true;
        }
    return !name;
}

/* View, plan and whatever else makes one figure differ from another of the same plan, so that
 * figures which stand on one page share no id. */
static const char *figure_name(const ViewCall *c, const char *view, PresetKind p) {
    const RenderOptions *o = c->o;
    Str s = str_new(c->arena);
    str_addf(&s, "%s-%.8s", view, c->t->hash && *c->t->hash ? c->t->hash : "figure");
    if (o->rank > 0) str_addf(&s, "-rank%lld", (long long)o->rank);
    if (o->layer >= 0) str_addf(&s, "-layer%lld", (long long)o->layer);
    if (o->part) str_addf(&s, "-%s", o->part);
    if (c->pass) str_addf(&s, "-%s", phase_text(c->pass));
    if (p != PRESET_WIDE) str_addf(&s, "-%s", presets[p].name);
    if (c->theme != THEME_LIGHT) str_addf(&s, "-%s", theme_names()[c->theme]);
    return scene_clean_id(c->arena, s.s);
}

Scene *figure_new(const ViewCall *c, const char *view, PresetKind p) {
    assert(p < PRESET_COUNT);
    Scene *s = scene_new(c->arena, c->fonts, c->theme, presets[p].w, presets[p].h);
    s->min_size = presets[p].min_size;
    s->px_width = presets[p].px;
    s->name = figure_name(c, view, p);
    return s;
}

/* A part that more parts follow ends without a stop: " · " is the sign between them. */
static const char *part_of(Scene *s, const char *const *part, int i) {
    size_t n = strlen(part[i]);
    bool more = false;
    for (int k = i + 1; part[k]; k++) more |= *part[k] != 0;
    return more && n && part[i][n - 1] == '.' ? arena_strndup(s->arena, part[i], n - 1) : part[i];
}
/* Joins parts with " · " and breaks the line there; a part that is wider than the line is broken at
 * spaces. */
static double wrap_parts(Scene *s, Band at, double size, double pitch, const char *const *part) {
    const TextLook look = {ALIGN_LEFT, size, REGULAR, ROLE_SECOND};
    const char *line = "";
    double x = at.x, w = at.w, y = at.y;
    for (int i = 0; part[i]; i++) {
        if (!*part[i]) continue;
        const char *own = part_of(s, part, i),
                   *next = *line ? arena_printf(s->arena, "%s · %s", line, own) : own;
        if (*line && scene_width(s, size, REGULAR, next) > w) {
            scene_text(s, x, y, look, line);
            y += pitch;
            next = own;
        }
        const char *cut[8];
        int n = scene_width(s, size, REGULAR, next) > w
                    ? scene_wrap(s, next, (TextColumn){w, size, REGULAR, 8, NULL}, cut)
                    : 0;
        for (int k = 0; k + 1 < n; k++, y += pitch) scene_text(s, x, y, look, cut[k]);
        line = n ? cut[n - 1] : next;
    }
    if (*line) scene_text(s, x, y, look, line);
    return y;
}

/* Breaks a title of two lines at the sign between parts of it at which these are most alike in
 * length. False: no part ends so that both lines have room and none is short. */
static bool break_at(Scene *s, const char *title, TextColumn c, const char *sign,
                     const char **line) {
    const double least = 0.4; /* of the longer line */
    double best = least;
    for (const char *at = strstr(title, sign); at; at = strstr(at + 1, sign)) {
        const char *one = arena_strndup(s->arena, title, (size_t)(at - title) + 1), *two = at + 2;
        const double w1 = scene_width(s, c.size, c.weight, one),
                     w2 = scene_width(s, c.size, c.weight, two),
                     alike = fmin(w1, w2) / fmax(w1, w2);
        if (fmax(w1, w2) > c.w || alike <= best) continue;
        best = alike;
        line[0] = one, line[1] = arena_strdup(s->arena, two);
    }
    return best > least;
}
/* The lines of a title: of two, the second is no word alone. */
static int title_lines(Scene *s, const char *title, TextColumn c, const char **line) {
    static const char *const sign[] = {"; ", ": ", ", "};
    const int n = scene_wrap(s, title, c, line);
    if (n != 2) return n;
    for (size_t i = 0; i < sizeof sign / sizeof *sign; i++)
        if (break_at(s, title, c, sign[i], line)) return n;
    for (double lo = c.w / 2, hi = c.w; hi - lo > 2;) {
        const char *try[3];
        TextColumn less = c;
        less.w = (lo + hi) / 2;
        if (scene_wrap(s, title, less, try) > n) {
            lo = less.w;
            continue;
        }
        hi = less.w;
        line[0] = try[0], line[1] = try[1];
    }
    return n;
}
double figure_head(Scene *s, PresetKind p, const char *title, const char *const *sub,
                   double sub_w) {
    double m = presets[p].margin, w = s->w - 2 * m;
    double size = p == PRESET_SLIDE ? 18 : 20, pitch = 25, y = p == PRESET_SLIDE ? 29 : 38;
    const char *line[3];
    const TextLook look = {ALIGN_LEFT, size, BOLD, s->wrong ? ROLE_FAIL : ROLE_INK};
    scene_begin(s, "title", "title", NULL);
    int n = title_lines(s, title, (TextColumn){w, size, BOLD, 3, NULL}, line);
    for (int i = 0; i < n; i++) scene_text(s, m, y + pitch * i, look, line[i]);
    Band under = {m, sub_w > 0 ? sub_w : w, y + pitch * (n - 1) + (p == PRESET_SLIDE ? 20 : 22)};
    y = wrap_parts(s, under, 12.5, 18, sub);
    scene_end(s);
    s->title = title;
    return y + 10;
}

void figure_a4(Scene *s) {
    const double a = 595.276, b = 841.890, m = 20;
    double up = fmin((a - 2 * m) / s->w, (b - 2 * m) / s->h),
           across = fmin((b - 2 * m) / s->w, (a - 2 * m) / s->h);
    s->page_w = across > up ? b : a;
    s->page_h = across > up ? a : b;
    s->scale = fmax(across, up);
    s->off_x = (s->page_w - s->scale * s->w) / 2;
    s->off_y = m;
    s->points = true;
}

void figure_page(Scene *s, PresetKind p, double h) {
    double fixed = presets[p].h;
    s->h = s->page_h = fixed > h ? fixed : ceil(h);
    s->page_w = s->w;
    if (p == PRESET_A4) figure_a4(s);
    if (fixed > 0 && h <= fixed && s->w <= presets[p].w) slide_fill(s, presets[p].margin, fixed);
    if (!(fixed > 0 && (s->h > fixed || s->w > presets[p].w))) return;
    /* a slide keeps 16:9: what is larger is scaled onto it */
    s->page_w = presets[p].w;
    s->page_h = fixed;
    s->scale = fmin(presets[p].w / s->w, fixed / s->h);
    s->off_x = (presets[p].w - s->scale * s->w) / 2;
}

/* Is there room for a text of width w that ends at x on the baseline y? */
static bool free_text(const Scene *s, double x, double y, double w) {
    for (int i = 0; i < s->n_marks; i++) {
        Box b = scene_box(&s->marks[i]);
        if (b.x1 > x - w - 12 && b.x0 < x && b.y1 > y - 11 && b.y0 < y + 5) return false;
    }
    return true;
}

/* The baseline of the lowest text: that of the stamp. */
static double lowest_text(const Scene *s) {
    double y = 0;
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i].kind == MARK_TEXT) y = fmax(y, s->marks[i].y);
    return y;
}

static void number_page(Scene *s, const char *number, const char *red) {
    enum { GAP = 10 };
    double m = s->w < 1000 ? presets[PRESET_SLIDE].margin : presets[PRESET_WIDE].margin,
           x = s->w - m, number_w = scene_width(s, 12, REGULAR, number),
           red_w = scene_width(s, 12, SEMIBOLD, red), gap = *number && *red ? GAP : 0,
           line = s->w < 1000 ? 29 : 38, /* that of the title */
        last = line < 38 ? 10.5 : 18;
    const double low = lowest_text(s),
                 place[] = {line, line + 20, line + 38, low, low - 21, low - 38};
    for (int k = 5; k >= 0; k--)
        if (free_text(s, x, place[k], number_w + gap + red_w)) last = place[k];
    scene_begin(s, "page", "page", NULL);
    if (*number) scene_text(s, x, last, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, number);
    if (*red)
        scene_text(s, x - (number_w + gap), last, (TextLook){ALIGN_RIGHT, 12, SEMIBOLD, ROLE_FAIL},
                   red);
    scene_end(s);
}
void figure_number(Scene *const *page, const PageWords *w) {
    for (int i = 0; i < w->n; i++) {
        Scene *s = page[i];
        const char *red = w->says && i < w->n_says ? w->says[i] : NULL,
                   *number = w->n < 2 ? "" : arena_printf(s->arena, "page %d of %d", i + 1, w->n);
        if (*number || red) number_page(s, number, red ? red : "");
    }
}

double pill_width(Scene *s, const char *text) {
    return fmax(28, scene_width(s, 12.5, SEMIBOLD, text) + 16);
}

static double pill_of(Scene *s, double x, double y, const char *text, AxisKind k) {
    double w = pill_width(s, text);
    scene_rect(s, (Area){x, y - 9, w, 18}, 9, (Look){ROLE_AXIS + k, ROLE_NONE, 0});
    scene_text(s, x + w / 2, y + 4.5, (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_AXIS_PILL + k},
               text);
    return w;
}
double draw_pill(Scene *s, double x, double y, const char *text, const char *axes) {
    return pill_of(s, x, y, text, theme_axis(axes));
}

/* Rows and columns of a map: the slowest axis makes rows if there are two or more; gaps between
 * blocks of the second.
 */
typedef struct {
    int64_t rows, cols, block;
} MapShape;
static MapShape map_shape(Arena *a, const Trace *t) {
    WordAxis ax[TRACE_MAX_AXES];
    MapShape m = {1, 1, 0};
    int used = 0, n = words_axes(a, t, ax, TRACE_MAX_AXES);
    for (int i = 0; i < n; i++) {
        if (ax[i].size <= 1) continue;
        used++;
        if (used == 1) m.rows = ax[i].size;
        else m.cols *= ax[i].size;
        if (used == 2) m.block = ax[i].size;
    }
    if (used == 1) return (MapShape){1, m.rows, 0};
    m.block = used > 2 ? m.cols / m.block : 0;
    return m;
}

enum { MAP_CELL = 7, MAP_GAP = 2, MAP_RANKS = 16 };
static double map_column(const MapShape *m, int64_t col) {
    return (double)col * (MAP_CELL + MAP_GAP) + (m->block ? (double)(col / m->block) * 2 : 0);
}
double map_size(Scene *s, const RankMap *map, double *height) {
    *height = 0;
    if (map->t->ranks > MAP_RANKS || map->t->ranks < 2) return 0;
    MapShape m = map_shape(s->arena, map->t);
    *height = (double)m.rows * (MAP_CELL + MAP_GAP) - MAP_GAP;
    return map_column(&m, m.cols - 1) + MAP_CELL;
}
void draw_map(Scene *s, const RankMap *map, double x, double y) {
    const RankGroups *g = map->groups;
    if (map->t->ranks > MAP_RANKS || map->t->ranks < 2) return;
    MapShape m = map_shape(s->arena, map->t);
    for (int64_t r = 0; r < map->t->ranks; r++) {
        bool in = g && words_group_of(g, r) == words_group_of(g, map->rank), own = r == map->rank;
        double px = x + (double)(r % m.cols) * (MAP_CELL + MAP_GAP) +
                    (m.block ? (double)(r % m.cols / m.block) * 2 : 0);
        double py = y + (double)(r / m.cols) * (MAP_CELL + MAP_GAP);
        scene_rect(s, (Area){px, py, MAP_CELL, MAP_CELL}, 0,
                   (Look){in ? ROLE_AXIS + theme_axis(map->axes) : ROLE_PAPER,
                          own ? ROLE_INK : ROLE_FAINT, own ? 1.6 : 0.8});
        if (in && own && theme_axis(map->axes) == AXIS_PP) /* in the outline's own colour */
            scene_rect(s, (Area){px + 0.8, py + 0.8, MAP_CELL - 1.6, MAP_CELL - 1.6}, 0,
                       (Look){ROLE_NONE, ROLE_PAPER, 1.2});
    }
}

int furniture_state(Scene *s, Arena *arena, Pt at, double r, const char *name, const char *tip) {
    scene_begin(s, "state", arena_printf(arena, "state-%s", name), tip);
    scene_frame(s, at.x - r, at.y - r, 2 * r, 2 * r);
    scene_circle(s, at.x, at.y, r, (Look){ROLE_PAPER, ROLE_INK, 1.75});
    Run run = {name, SEMIBOLD, ROLE_INK, false, true};
    scene_runs(s, (Pt){at.x, at.y + 4.5}, ALIGN_MIDDLE, 13, &run, 1);
    int group = s->open;
    scene_end(s);
    return group;
}
/* A box of that width in a legend's line. */
static double swatch(Scene *s, Pt at, double w, double r, Look look) {
    scene_rect(s, (Area){at.x, at.y - 8, w, 16}, r, look);
    return w;
}
static double key_compute(Scene *s, double x, double y) {
    return swatch(s, (Pt){x, y}, 26, 3, (Look){ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25});
}
static double key_coll(Scene *s, double x, double y) {
    hexagon_draw(s, &(Hexagon){.x = x, .y = y - 8, .w = 30, .h = 16}, NULL);
    return 30;
}
static double key_inferred(Scene *s, double x, double y) {
    hexagon_draw(s, &(Hexagon){.x = x, .y = y - 8, .w = 30, .h = 16, .inferred = true}, NULL);
    return 30;
}
static double key_partial(Scene *s, double x, double y) {
    static const double dash[2] = {4, 3};
    scene_segment(s, (Pt){x, y - 2.25}, (Pt){x + 28, y - 2.25}, ROLE_INK, 1.5);
    Mark *m = scene_segment(s, (Pt){x, y + 2.25}, (Pt){x + 28, y + 2.25}, ROLE_INK, 1.5);
    m->dash = dash;
    m->n_dash = 2;
    return 28;
}
static double key_weight(Scene *s, double x, double y) {
    scene_rect(s, (Area){x, y - 9, 18, 18}, 0, (Look){ROLE_WEIGHT_REST, ROLE_WEIGHT_LINE, 1.25});
    scene_rect(s, (Area){x, y - 9, 18, 9}, 0, (Look){ROLE_WEIGHT_FILL, ROLE_WEIGHT_LINE, 1.25});
    return 18;
}
static double key_experts(Scene *s, double x, double y) {
    for (int i = 2; i >= 0; i--)
        scene_rect(s, (Area){x + i * 3, y - 4 - i * 3, 14, 13}, 0,
                   (Look){i ? ROLE_WEIGHT_REST : ROLE_WEIGHT_FILL, ROLE_WEIGHT_LINE, 0.75});
    return 20;
}
static double key_summed(Scene *s, double x, double y) {
    Run run = {"D", REGULAR, ROLE_INK, true, false};
    return scene_runs(s, (Pt){x, y + 4.5}, ALIGN_LEFT, 12.5, &run, 1);
}
/* In no axis' colour: groups of any may be meant. */
static double key_map(Scene *s, double x, double y) {
    for (int i = 0; i < 8; i++)
        scene_rect(
            s, (Area){x + (i % 4) * 9 + (i % 4 > 1 ? 2 : 0), y - 8 + (double)(i / 4) * 9, 7, 7}, 0,
            (Look){i < 2 ? ROLE_TICK : ROLE_PAPER, i ? ROLE_FAINT : ROLE_INK, i ? 0.8 : 1.6});
    return 36;
}
static double key_changed(Scene *s, double x, double y) {
    return scene_text(s, x, y + 4.5, (TextLook){ALIGN_LEFT, 12.5, BOLD, ROLE_INK}, "D");
}
static double key_wrong(Scene *s, double x, double y) {
    return swatch(s, (Pt){x, y}, 26, 3, (Look){ROLE_PAPER, ROLE_FAIL, 3});
}
static double key_move(Scene *s, double x, double y) {
    static const double dash[2] = {3, 2};
    Mark *m = scene_rect(s, (Area){x, y - 7, 26, 14}, 2, (Look){ROLE_PAPER, ROLE_INK, 1});
    m->dash = dash;
    m->n_dash = 2;
    return 26;
}
static double key_small(Scene *s, double x, double y) {
    return swatch(s, (Pt){x, y}, 8, 0, (Look){ROLE_COMPUTE_DARK, ROLE_COMPUTE_LINE, 1});
}
static double key_gradient(Scene *s, double x, double y) {
    return swatch(s, (Pt){x, y}, 26, 0, (Look){ROLE_COMPUTE_PALE, ROLE_COMPUTE_LINE, 1.25});
}
static double key_exposed(Scene *s, double x, double y) {
    scene_rect(s, (Area){x, y - 8, 26, 16}, 0, (Look){ROLE_COLL, ROLE_COLL_LINE, 1.25});
    scene_hatch(s, (Area){x, y - 8, 26, 16}, ROLE_COLL_LINE, 3.5, 1);
    return 26;
}
static double key_hidden(Scene *s, double x, double y) {
    return swatch(s, (Pt){x, y}, 26, 0, (Look){ROLE_COLL_PALE, ROLE_COLL_LINE, 1.25});
}
static double key_beside(Scene *s, double x, double y) {
    return swatch(s, (Pt){x, y}, 26, 0, (Look){ROLE_PAPER, ROLE_COLL_LINE, 1.25});
}
void figure_waiting(Scene *s, Area at) {
    static const double dash[2] = {3, 2};
    Mark *m = scene_rect(s, at, 0, (Look){ROLE_PAPER, ROLE_COLL_LINE, 0.8});
    m->dash = dash;
    m->n_dash = 2;
}
static double key_others(Scene *s, double x, double y) {
    return figure_waiting(s, (Area){x, y - 8, 26, 16}), 26;
}
static double key_wait(Scene *s, double x, double y) {
    return swatch(s, (Pt){x, y}, 18, 0, (Look){ROLE_BAND, ROLE_NONE, 0});
}

static double key_unlike(Scene *s, double x, double y) {
    unsigned own = 0;
    return figure_unlike(s, (Pt){x, y + 2}, 26, NOT_SO, &own), 26;
}
static double key_alone(Scene *s, double x, double y) {
    unsigned own = 0;
    return figure_unlike(s, (Pt){x, y + 2}, 26, ONLY_HERE, &own), 26;
}
void figure_goes_on(Scene *s, Pt tip) {
    const Pt pt[3] = {{tip.x - 6, tip.y - 4}, tip, {tip.x - 6, tip.y + 4}};
    scene_poly(s, pt, 3, (Look){ROLE_COLL_LINE, ROLE_NONE, 0});
}
static double key_goes_on(Scene *s, double x, double y) {
    swatch(s, (Pt){x, y}, 26, 0, (Look){ROLE_COLL_PALE, ROLE_COLL_LINE, 1.25});
    figure_goes_on(s, (Pt){x + 24, y});
    return 26;
}
static double key_larger(Scene *s, double x, double y) {
    const Look look = {ROLE_PAPER, ROLE_SECOND, 1.25};
    scene_circle(s, x + 4, y, 4, look), scene_circle(s, x + 20, y, 8, look);
    return 28;
}
static double key_saved(Scene *s, double x, double y) {
    Pt pt[2] = {{x, y}, {x + 28, y}};
    scene_arrow(s, pt, 2, (ArrowLook){ROLE_TICK, 1.2, false, false}, -1);
    return 28;
}

static const struct {
    double (*draw)(Scene *, double, double);
    const char *text;
} keys[LEGEND_COUNT] = {
    [LEGEND_COMPUTE] = {key_compute, "compute on local data"},
    [LEGEND_COLL] = {key_coll, "collective"},
    [LEGEND_MESSAGE] = {key_coll, "message between stages"},
    [LEGEND_EITHER] = {key_coll, "collective, or message between stages"},
    [LEGEND_INFERRED] = {key_inferred, "collective that no line of the plan asks for"},
    [LEGEND_PARTIAL] = {key_partial, "partial sum"},
    [LEGEND_WEIGHT] = {key_weight, "weight, local part filled"},
    [LEGEND_EXPERTS] = {key_experts, "experts one behind another, those here filled"},
    [LEGEND_SUMMED] = {key_summed, "the matmul sums over it"},
    [LEGEND_MAP] = {key_map, "group members, own rank outlined"},
    [LEGEND_CHANGED] = {key_changed, "changed by the step above"},
    [LEGEND_WRONG] = {key_wrong, "wrong step or first wrong value"},
    [LEGEND_MOVE] = {key_move, "local move, nothing is sent"},
    [LEGEND_MATMUL] = {key_compute, "matmul, attention"},
    [LEGEND_GRADIENT] = {key_gradient, "weight gradient"},
    [LEGEND_SMALL] = {key_small, "other kernels: norm, RoPE, residual"},
    [LEGEND_EXPOSED] = {key_exposed, "communication, exposed: compute waits"},
    [LEGEND_HIDDEN] = {key_hidden, "communication, hidden behind compute"},
    [LEGEND_BESIDE] = {key_beside, "communication behind other communication"},
    [LEGEND_OTHERS] = {key_others, "waits for another rank, nothing is sent"},
    [LEGEND_WAIT] = {key_wait, "compute waits"},
    [LEGEND_SAVED] = {key_saved, "kept for backward, bytes here"},
    [LEGEND_UNLIKE] = {key_unlike, "not so in the other plan"},
    [LEGEND_ALONE] = {key_alone, "only in this plan"},
    [LEGEND_LARGER] = {key_larger, "larger: takes more of the time"},
    [LEGEND_GOES_ON] = {key_goes_on, "goes on in the next line"},
    [LEGEND_AGAIN] = {key_saved, "again: not kept, made again for backward"},
};

/* "dp·cp": the first product of axes that the figure names in the colour of products; NULL: none.
 */
static const char *product_named(const Scene *s) {
    const Role pill = ROLE_AXIS_PILL + AXIS_PRODUCT, word = ROLE_AXIS_TEXT + AXIS_PRODUCT;
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; k < s->marks[i].n_run; k++) {
            const Run *run = &s->marks[i].run[k];
            const char *dot = run->role == pill || run->role == word ? strstr(run->s, "·") : NULL,
                       *from = dot;
            while (from && from > run->s && from[-1] != ' ') from--;
            if (from) return arena_strndup(s->arena, from, strcspn(from, " "));
        }
    return NULL;
}
/* Where the next entry of a legend stands, `need` wide, in a line of w from x. */
static void next_entry(Pt *at, double x, double w, double need) {
    if (at->x > x && at->x + need > x + w) *at = (Pt){x, at->y + 24};
}
/* What an entry means, behind its mark of width k; and on to the next one. */
static void entry_words(Scene *s, Pt *at, double k, const char *text) {
    const TextLook look = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    at->x += k + 8;
    at->x += scene_text(s, at->x, at->y + 4.5, look, text) + 22;
    scene_end(s);
}

double figure_key_width(Scene *s, int mark) {
    return 36 + scene_width(s, 12, REGULAR, keys[mark].text);
}
double figure_key(Scene *s, Pt at, int mark) {
    const double x = at.x;
    scene_begin(s, "key", keys[mark].text, NULL);
    entry_words(s, &at, keys[mark].draw(s, at.x, at.y), keys[mark].text);
    return at.x - x;
}
double figure_legend(Scene *s, Band at, unsigned marks) {
    static const char product[] = "one group over several axes";
    static const unsigned either = 1u << LEGEND_COLL | 1u << LEGEND_MESSAGE;
    assert(at.w > 0);
    const char *axes = product_named(s);
    Pt p = {at.x, at.y + 22};
    if ((marks & either) == either) marks = (marks & ~either) | 1u << LEGEND_EITHER;
    scene_begin(s, "legend", "legend", NULL);
    scene_segment(s, (Pt){at.x, at.y}, (Pt){at.x + at.w, at.y}, ROLE_GRID, 1);
    for (int i = 0; i < LEGEND_COUNT; i++) {
        if (!(marks >> i & 1)) continue;
        next_entry(&p, at.x, at.w, 38 + scene_width(s, 12, REGULAR, keys[i].text));
        scene_begin(s, "key", keys[i].text, NULL);
        entry_words(s, &p, keys[i].draw(s, p.x, p.y), keys[i].text);
    }
    if (axes) {
        next_entry(&p, at.x, at.w, pill_width(s, axes) + 8 + scene_width(s, 12, REGULAR, product));
        scene_begin(s, "key", product, NULL);
        entry_words(s, &p, pill_of(s, p.x, p.y, axes, AXIS_PRODUCT), product);
    }
    scene_end(s);
    return p.y + 22;
}

/* What stands behind the stamp: plan, hash, version. */
static const char *status(const ViewCall *c, const char *extra) {
    Str rest = str_new(c->arena);
    if (c->t->plan && *c->t->plan) str_addf(&rest, " · plan %s", c->t->plan);
    if (c->t->hash && *c->t->hash) str_addf(&rest, " · %.8s", c->t->hash);
    if (c->t->version && *c->t->version) str_addf(&rest, " · shardproof %s", c->t->version);
    if (extra && *extra) str_addf(&rest, " · %s", extra);
    return rest.s;
}

const char *figure_verdict(Scene *s, const ViewCall *c, double w, Role *role) {
    const char *stamp = words_stamp(c->arena, c->t, role),
               *aside = strstr(stamp, *role == ROLE_FAIL ? ": " : " (");
    int weight = *role == ROLE_SECOND ? REGULAR : SEMIBOLD;
    if (aside && scene_width(s, 12, weight, stamp) > w)
        stamp = arena_strndup(c->arena, stamp, (size_t)(aside - stamp));
    return scene_fit(s, stamp, w, 12, weight);
}

double figure_stamp(Scene *s, const ViewCall *c, Band at, const char *extra) {
    double x = at.x, w = at.w, y = at.y;
    Role role;
    const char *stamp = figure_verdict(s, c, w, &role), *rest = status(c, extra);
    Run run[2] = {{stamp, role == ROLE_SECOND ? REGULAR : SEMIBOLD, role, false, false},
                  {rest, REGULAR, ROLE_SECOND, false, false}};
    /* as many parts behind the stamp as fit, the others on lines of their own */
    size_t end = strlen(rest);
    while (end > 0 && fonts_width(s->fonts, run, 2, 12) > w) {
        while (end > 0 && strncmp(rest + --end, " · ", strlen(" · "))) {
        }
        run[1].s = arena_strndup(c->arena, rest, end);
    }
    scene_runs(s, (Pt){x, y}, ALIGN_LEFT, 12, run, end > 0 ? 2 : 1);
    const char *part[16];
    int n = 0;
    /* " · " stands before each part */
    for (const char *p = rest + end, *next; p && *p && n < 15; p = next) {
        p += strlen(" · ");
        next = strstr(p, " · ");
        part[n++] = next ? arena_strndup(c->arena, p, (size_t)(next - p)) : p;
    }
    part[n] = NULL;
    return n ? wrap_parts(s, (Band){x, w, y + 17}, 12, 17, part) : y;
}

double figure_foot(Scene *s, const ViewCall *c, Band at, const char *totals, const char *extra) {
    double x = at.x, w = at.w, y = at.y;
    const char *line[6];
    scene_begin(s, "footer", "footer", NULL);
    int n = totals && *totals ? scene_wrap(s, totals, (TextColumn){w, 12.5, REGULAR, 6, NULL}, line)
                              : 0;
    for (int i = 0; i < n; i++, y += 17)
        scene_text(s, x, y + 13, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK}, line[i]);
    const int step = scene_at(s, 0);
    y = figure_stamp(s, c, (Band){x, w, y + 17}, extra);
    scene_at(s, step);
    scene_end(s);
    return y + 16;
}

const char *fit_name(Scene *s, const char *name, double w, double size, int weight) {
    const char *p = name, *t = name, *keep = subject_is_gradient(subject_of(name)) ? "grad" : "";
    while (scene_width(s, size, weight, t) > w && (p = strchr(p, '.')) != NULL) {
        if (!strcmp(++p, "weight")) { /* every matrix ends like this: the module says more */
            const char *end = p - 1, *from = end;
            while (from > name && from[-1] != '.') from--;
            t = arena_printf(s->arena, "%s…%.*s", keep, (int)(end - from), from);
            break;
        }
        t = arena_printf(s->arena, "%s…%s", keep, p);
    }
    return scene_fit(s, t, w, size, weight);
}

void tip_add(Str *s, const char *name, const char *value) {
    if (value && *value) str_addf(s, "%s%s%s%s", s->n ? "\n" : "", name, *name ? ": " : "", value);
}
void tip_inferred(Str *s, const TraceCollective *c) {
    if (!c || !c->inferred) return;
    bool gradient = subject_is_gradient(c->subject);
    tip_add(s, "inferred",
            gradient && c->reduce
                ? "no line of the plan asks for this sum; without it the gradient is wrong"
                : "no line of the plan asks for it");
}
