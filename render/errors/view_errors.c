/* View `errors`: where a run first differs from the unsharded model. A map of checked values (rows,
 * in step order) over ranks (columns, folded above 64), and a panel: the first wrong value, its
 * cause, the evidence, the line of the plan. A right plan gets the same map and is told so. Refuses
 * a trace without checks: nothing is right that was not run. */
#include "render/errors/twins.h"
#include "render/furniture/views.h"
#include "render/furniture/wrong.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const struct {
    Role fill, text;
    const char *words;
} look[ERR_STATES] = {
    [ERR_NONE] = {ROLE_PAPER, ROLE_SECOND, "not compared"},
    [ERR_EQUAL] = {ROLE_EQUAL, ROLE_SECOND, "bit for bit equal"},
    [ERR_ROUNDED] = {ROLE_ROUNDED, ROLE_INK, "rounding, within its bound"},
    [ERR_RIGHT] = {ROLE_ROUNDED, ROLE_INK, "within its bound on this rank"},
    [ERR_AFTER] = {ROLE_WRONG_AFTER, ROLE_INK, "a right step on wrong inputs"},
    [ERR_SUSPECT] = {ROLE_SUSPECT, ROLE_INK, "suspect: more than rounding likely gives"},
    [ERR_FIRST] = {ROLE_WRONG, ROLE_WRONG_TEXT, "the wrong step"},
    [ERR_ALSO] = {ROLE_WRONG, ROLE_WRONG_TEXT, "the wrong step"}, /* and another */
    [ERR_LATER] = {ROLE_WRONG_LATER, ROLE_INK, "wrong because of it"}};

typedef struct {
    const ViewCall *c;
    Scene *s;
    Arena *a;
    PresetKind preset;
    ErrMap map, other;              /* other: the run beside it */
    bool twin;                      /* there is one */
    int left_over;                  /* its rows that have no place */
    const char *layer;              /* "layers.0." where no row is of another one; "" */
    double x, w;                    /* of the page */
    double left, cell, row, beside; /* names, a cell, numbers at the right of a row */
    double far[2];                  /* what the distances take at the right of map i; 0: none */
    double name_size;
    int first_row; /* group of the first wrong row */
    bool brief;    /* the evidence is two numbers */
} ErrPen;

enum { FAR_GAP = 6 };
/* Between two maps. */
static double twin_gap(const ErrPen *p) { return p->preset == PRESET_SLIDE ? 18 : 34; }
static const char far_head[] = "end to end";
/* Width of map i with the numbers at its right, and its left edge. */
static double map_width(const ErrPen *p, int i) {
    return p->map.n_columns * p->cell + p->beside + p->far[i];
}
static double map_at(const ErrPen *p, int i) {
    return p->x + p->left + i * (map_width(p, 0) + twin_gap(p));
}
static double maps_width(const ErrPen *p) {
    return p->left + map_width(p, 0) + p->twin * (map_width(p, 1) + twin_gap(p));
}

/* ---- the map ---- */

static bool is_beside_wrong(const ErrRow *r, int col) {
    return r->state[col] == ERR_AFTER && r->worst_state >= ERR_FIRST;
}
/* What the bar at the left of a cell of that state takes of it. */
static double bar_width(const ErrPen *p, ErrState k) {
    return k == ERR_AFTER && p->cell > 8 ? 5 : 0;
}
/* In a cell of a right step on wrong inputs, where the row's number is another rank's: one word in
 * all pictures, if the bar leaves room for it. */
static const char *follows(ErrPen *p) {
    static const char word[] = "after";
    bool room = scene_width(p->s, 12, MEDIUM, word) + bar_width(p, ERR_AFTER) + 5 <= p->cell;
    return room ? word : "…";
}
static const char *cell_text(ErrPen *p, const ErrRow *r, int col) {
    if (r->state[col] == ERR_EQUAL) return "=";
    bool other = is_beside_wrong(r, col);
    if (r->state[col] == ERR_RIGHT) return "ok";
    if (other) return follows(p);
    if (r->state[col] < ERR_FIRST)
        return r->max > 0 ? errors_number(p->a, r->max) : r->projected ? "0" : "=";
    const char *none = errors_without_numbers(r->worst);
    return none ? none : isnan(r->error[col]) ? "×" : errors_number(p->a, r->error[col]);
}

/* Right values have one number for all ranks, so one cell; wrong ones a number per rank. */
static int span(const ErrMap *m, const ErrRow *r, int col) {
    ErrState s = r->state[col];
    int n = 1;
    bool one = s == ERR_ROUNDED || s == ERR_SUSPECT ||
               (s == ERR_AFTER && r->worst_state == s && r->max > 0);
    while (one && col + n < m->n_columns && r->state[col + n] == s) n++;
    return n;
}

static const char *row_tip(ErrPen *p, const ErrRow *r) {
    Str tip = str_new(p->a);
    tip_add(&tip, "value", r->name);
    if (r->step >= 0) tip_add(&tip, "step", arena_printf(p->a, "%d", r->step));
    if (r->how && *r->how == '+')
        tip_add(&tip, "and", arena_printf(p->a, "%s more values, the worst is shown", r->how + 1));
    else if (r->how) tip_add(&tip, "by", r->how);
    tip_add(&tip, "which", r->by);
    tip_add(&tip, "planted here", r->planted);
    tip_add(&tip,
            r->projected ? "largest error, of products and sums in projections" : "largest error",
            arena_printf(p->a, "%.3g", r->max));
    if (r->bound > 0) tip_add(&tip, "bound", arena_printf(p->a, "%.3g", r->bound));
    if (r->far) {
        tip_add(&tip, "from the unsharded model", arena_printf(p->a, "%.3g", r->far->max_abs));
        tip_add(&tip, "of numbers up to", arena_printf(p->a, "%.3g", r->far->top));
        if (rankset_count(&r->far->ranks))
            tip_add(&tip, "more than rounding on ranks", rankset_text(&r->far->ranks, p->a));
    }
    if (r->worst_state == ERR_AFTER) tip_add(&tip, "but", "computed from wrong values");
    return tip.s;
}

/* "layers.0." at the start of a value's name, or behind what says that it is a gradient, with the
 * length of it; NULL: the value is of no layer. */
static const char *layer_in(const char *name, size_t *n) {
    static const char *const before[] = {"grad.", "param."};
    for (int i = 0; i < 2; i++)
        if (!strncmp(name, before[i], strlen(before[i]))) name += strlen(before[i]);
    int layer;
    const char *in = words_in_layer(name, &layer);
    if (in) *n = (size_t)(in - name);
    return in ? name : NULL;
}
/* Of a run of one layer nobody needs to read in every row which it is. */
static const char *one_layer(const ErrPen *p) {
    const char *one = "";
    for (int i = 0; i < p->map.n; i++) {
        size_t n;
        const char *at = layer_in(p->map.row[i].name, &n);
        if (at && *one && (strlen(one) != n || strncmp(one, at, n))) return "";
        if (at) one = arena_strndup(p->a, at, n);
    }
    return one;
}
static const char *own_label(const ErrPen *p, const char *before, const char *name) {
    size_t n;
    const char *at = *p->layer ? layer_in(name, &n) : NULL;
    if (!before) before = "";
    return at        ? arena_printf(p->a, "%s%.*s%s", before, (int)(at - name), name, at + n)
           : *before ? arena_printf(p->a, "%s%s", before, name)
                     : name;
}
/* Is a module of the plan called so? */
static bool names_module(const ErrPen *p, const char *word) {
    const Trace *t = p->c->t;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].module && !strcmp(words_leaf(t->computes[i].module), word)) return true;
    return false;
}
/* A value as other figures of the plan call it, by the module that makes it: "wo" of what records
 * call layers.0.o_proj; one that no weight makes by its own name, in full where that is the name of
 * a module too. *before: "gradient after ", "gradient of ", "". */
static const char *value_word(const ErrPen *p, const char *name, const char **before) {
    const ValueName k = words_value_name(p->a, p->c->t, name);
    const Subject of = subject_of(name);
    *before = k.gradient ? k.before : "";
    if (of.role == OF_PARAM_GRADIENT && *p->layer) return k.brief;
    if (k.after) return *p->layer ? k.brief : k.path;
    const char *own = own_label(p, NULL, of.of);
    int layer;
    const char *inside = *p->layer ? words_in_layer(of.of, &layer) : NULL;
    return !names_module(p, own) ? own : inside ? inside : of.of;
}
static const char *value_label(const ErrPen *p, const char *name) {
    const char *before, *word = value_word(p, name, &before);
    return *before ? arena_printf(p->a, "%s%s", before, word) : word;
}
/* "dwq", "d gate", "dy w2" of what w2 gives, as the timeline has it, of a row that is one gradient;
 * NULL: it is not. */
static const char *gradient_word(const ErrPen *p, const ErrRow *r) {
    const ValueName k = words_value_name(p->a, p->c->t, r->name);
    const char *before, *word = value_word(p, r->name, &before);
    if (!k.gradient || r->before || r->to) return NULL;
    return k.after ? arena_printf(p->a, "dy %s", word) : words_gradient(p->a, word);
}
/* Of a part of the model its name (`before` says what is done there), of a value the plan's. */
static const char *part_label(const ErrPen *p, const char *before, const char *name) {
    return before ? own_label(p, before, name) : value_label(p, name);
}
/* "attention", "embedding … loss" of several parts in one row. */
static const char *row_label(const ErrPen *p, const ErrRow *r) {
    const char *own = part_label(p, r->before, r->name);
    return r->to ? arena_printf(p->a, "%s … %s", own, part_label(p, r->to_before, r->to)) : own;
}

/* What stands behind a name: " · AllReduce, over dp", " · via w1", " +4" of a row that stands for
 * four more values; `how` is its own, or shorter. */
static const char *joined(Arena *a, const char *how, const ErrRow *r) {
    if (how && r->by) return arena_printf(a, " · %s, %s", how, r->by);
    if (!how) return r->by ? arena_printf(a, " · %s", r->by) : "";
    return arena_printf(a, *how == '+' ? " %s" : " · %s", how);
}

/* Where the plan plants a mistake, in the row of what it spoils. */
static const char *planted_words(ErrPen *p, const ErrRow *r) {
    return r->planted ? arena_printf(p->a, " · %s", wrong_asked(p->a, r->planted)) : "";
}

/* "RS" of "ReduceScatter", which the panel and the tooltip spell out; anything else as it is. */
static const char *coll_code(const char *name) {
    for (const CollWord *w = coll_table(); w->op; w++)
        if (!strcmp(w->name, name)) return w->code;
    return name;
}
/* " · planted" of " · planted: drop"; of a key that is missing or wrong " · KEY". */
static const char *planted_brief(const ErrPen *p, const ErrRow *r) {
    return wrong_right_key(r->planted) ? arena_printf(p->a, " · %s", strrchr(r->planted, ' ') + 1)
                                       : " · planted";
}
static void row_name(ErrPen *p, const ErrRow *r, double y) {
    bool first = r->worst_state == ERR_FIRST, later = r->worst_state > ERR_FIRST;
    const char *how =
        r->values > 1 && !r->how ? arena_printf(p->a, "%d pieces", r->values) : r->how;
    how = joined(p->a, how, r);
    int weight = first ? BOLD : REGULAR;
    double size = p->name_size, hw = scene_width(p->s, size, REGULAR, how), room = p->left - 12;
    const char *planted = planted_words(p, r);
    double pw = scene_width(p->s, size, SEMIBOLD, planted);
    const char *label = row_label(p, r);
    if (r->to && hw + pw + scene_width(p->s, size, weight, label) > room)
        label = part_label(p, r->before, r->name); /* of how many it is the first stands behind */
    const double lw = scene_width(p->s, size, weight, label);
    if (r->sources && lw + hw > room) how = "", hw = 0; /* all of them, however many */
    if (hw + pw + lw > room && pw > room * 0.4)
        planted = planted_brief(p, r), pw = scene_width(p->s, size, SEMIBOLD, planted);
    if (hw + pw + lw > room && r->how)
        how = joined(p->a, coll_code(r->how), r), hw = scene_width(p->s, size, REGULAR, how);
    if (hw + pw + lw > room && r->by && r->planted) { /* that tells it from others, too */
        how = r->how ? arena_printf(p->a, " · %s", coll_code(r->how)) : "";
        hw = scene_width(p->s, size, REGULAR, how);
    }
    if (hw + pw + lw > room && r->planted) /* the panel has it all */
        planted = planted_brief(p, r), pw = scene_width(p->s, size, SEMIBOLD, planted);
    if (hw + pw + lw > room && r->planted) how = "", hw = 0;
    room -= pw;
    double most = fmax(room * 0.55, room - lw);
    if (hw > most)
        how = scene_fit(p->s, how, most, size, REGULAR), hw = scene_width(p->s, size, REGULAR, how);
    const char *gradient = lw > room - hw ? gradient_word(p, r) : NULL;
    if (gradient) label = gradient;
    label = r->before ? scene_fit(p->s, label, room - hw, size, weight)
                      : fit_name(p->s, label, room - hw, size, weight);
    Run run[3] = {{label, weight, later ? ROLE_SECOND : ROLE_INK, false, false},
                  {how, REGULAR, ROLE_SECOND, false, false}};
    int n = *how ? 2 : 1;
    if (*planted) run[n++] = (Run){planted, SEMIBOLD, ROLE_FAIL, false, false};
    scene_runs(p->s, (Pt){p->x + p->left - 12, y + p->row / 2 + 4}, ALIGN_RIGHT, size, run, n);
}

/* What a right step makes of wrong inputs is told by more than its tint. */
static void after_bar(ErrPen *p, double x, double y) {
    scene_rect(p->s, (Area){x + 1, y + 1, 4, p->row - 2}, 0,
               (Look){ROLE_WRONG_LATER, ROLE_NONE, 0});
}
/* "4e-7" of "4e-07", for a cell that has less room: the exponent without its zero. */
static const char *short_number(Arena *a, const char *text) {
    const char *e = strchr(text, 'e');
    const bool zero = e && (e[1] == '-' || e[1] == '+') && e[2] == '0';
    return zero ? arena_printf(a, "%.*s%s%s", (int)(e - text) + 1, text, e[1] == '-' ? "-" : "",
                               e + 3)
                : text;
}
/* What a cell of that width says, NULL: it has no room for that. */
static const char *said_in(ErrPen *p, const ErrRow *r, int col, double w) {
    const char *text = cell_text(p, r, col);
    if (scene_width(p->s, 12, MEDIUM, text) + bar_width(p, r->state[col]) + 7 > w)
        text = short_number(p->a, text);
    return scene_width(p->s, 12, MEDIUM, text) + 5 <= w ? text : NULL;
}
/* Has the row a cell that has no room for what it says? Then its number stands at its right. */
static bool is_silent(ErrPen *p, const ErrRow *r) {
    for (int c = 0, n; c < p->map.n_columns; c += n) {
        n = span(&p->map, r, c);
        if (r->state[c] != ERR_NONE && !said_in(p, r, c, n * p->cell)) return true;
    }
    return false;
}
static void draw_cells(ErrPen *p, const ErrRow *r, double x, double y) {
    const ErrMap *m = &p->map;
    for (int c = 0; c < m->n_columns;) {
        int n = span(m, r, c);
        double at = x + c * p->cell, w = n * p->cell;
        const char *text = said_in(p, r, c, w);
        scene_rect(p->s, (Area){at, y, w, p->row}, 0,
                   (Look){look[r->state[c]].fill, ROLE_PAPER, p->cell > 8 ? 1.5 : 0.5});
        const double bar = bar_width(p, r->state[c]);
        if (bar > 0) after_bar(p, at, y);
        const double free = text ? (w - scene_width(p->s, 12, MEDIUM, text)) / 2 - 1 : 0;
        if (text && r->state[c] != ERR_NONE)
            scene_text(p->s, at + w / 2 + fmin(bar / 2, free), y + p->row / 2 + 4.3,
                       (TextLook){ALIGN_MIDDLE, 12, MEDIUM, look[r->state[c]].text}, text);
        c += n;
    }
    const char *beside = errors_row_number(p->a, r);
    if (is_silent(p, r))
        scene_text(p->s, x + m->n_columns * p->cell + 8, y + p->row / 2 + 4.3,
                   (TextLook){ALIGN_LEFT, 12, MEDIUM, ROLE_INK}, beside);
}
/* The distance from the unsharded model, whatever the step itself is. */
static void draw_far(ErrPen *p, int map, const ErrRow *r, double y) {
    const ErrMap *m = map ? &p->other : &p->map;
    ErrState s = errors_far(m, r);
    double w = p->far[map] - FAR_GAP, x = map_at(p, map) + map_width(p, map) - w;
    if (s == ERR_NONE || p->far[map] == 0) return;
    const char *text = s == ERR_EQUAL ? "=" : errors_number(p->a, r->far->max_abs);
    scene_rect(p->s, (Area){x, y, w, p->row}, 0, (Look){look[s].fill, ROLE_PAPER, 1.5});
    scene_text(p->s, x + w / 2, y + p->row / 2 + 4.3,
               (TextLook){ALIGN_MIDDLE, 12, s < ERR_FIRST ? MEDIUM : SEMIBOLD, look[s].text}, text);
}
/* In a wrong run each micro-batch and training step has rows of its own. A line and a word say
 * where the next one begins. */
static bool in_rounds(const ErrMap *m) {
    for (int i = 1; i < m->n; i++)
        if (m->row[i].round < m->row[i - 1].round) return false;
    return m->n && m->row[m->n - 1].round > 0;
}
/* "micro-batch 2" of the first row of one, counted from 0 as in schedules, causes and records;
 * NULL: the row is not that. */
static const char *round_words(const ErrPen *p, const ErrRow *r) {
    const ErrMap *m = &p->map;
    bool starts =
        r == m->row ? !r->sources : r->round != r[-1].round || (r == m->row + 1 && r[-1].sources);
    int parts = m->parts, step = (int)(r->round / parts), part = (int)(r->round % parts);
    if (!starts || !in_rounds(m)) return NULL;
    if (m->row[m->n - 1].round < parts) return arena_printf(p->a, "micro-batch %d", part);
    if (parts == 1) return arena_printf(p->a, "training step %d", step);
    return arena_printf(p->a, "step %d, micro-batch %d", step, part);
}
static void draw_round(ErrPen *p, const ErrRow *r, double y) {
    const char *what = round_words(p, r);
    if (!what) return;
    scene_begin(p->s, "round", arena_printf(p->a, "round-%lld", (long long)r->round + 1), what);
    scene_segment(p->s, (Pt){p->x, y}, (Pt){p->x + maps_width(p), y}, ROLE_SECOND, 1);
    const char *label = arena_printf(p->a, "%s%s", row_label(p, r), joined(p->a, r->how, r));
    double room = p->left - 24 - scene_width(p->s, p->name_size, BOLD, label);
    if (scene_width(p->s, 12, SEMIBOLD, what) <= room)
        scene_text(p->s, p->x, y + p->row / 2 + 4, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK},
                   what);
    scene_end(p->s);
}
/* Where the distances of an earlier micro-batch or training step would stand: none are kept. */
static void draw_not_kept(ErrPen *p, const ErrRow *r, double y) {
    static const char words[] = "not kept";
    const ErrMap *m = &p->map;
    const double w = p->far[0] - FAR_GAP;
    if (r->far || r->round == m->row[m->n - 1].round || !round_words(p, r) ||
        scene_width(p->s, 12, REGULAR, words) > w)
        return;
    scene_text(p->s, map_at(p, 0) + map_width(p, 0) - w / 2, y + p->row / 2 + 4.3,
               (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, words);
}
static void draw_row(ErrPen *p, const ErrRow *r, double y, int index) {
    int group = scene_begin(p->s, "row", arena_printf(p->a, "row-%d", index), row_tip(p, r));
    if (r == p->map.first) p->first_row = group;
    row_name(p, r, y);
    draw_cells(p, r, map_at(p, 0), y);
    draw_far(p, 0, r, y);
    draw_not_kept(p, r, y);
    scene_end(p->s);
    if (!p->twin || !r->beside) return;
    scene_begin(p->s, "row", arena_printf(p->a, "beside-%d", index), row_tip(p, r->beside));
    draw_cells(p, r->beside, map_at(p, 1), y);
    draw_far(p, 1, r->beside, y);
    scene_end(p->s);
}

/* "all 1024 ranks", "512 ranks", "3" of a column. */
static const char *column_text(ErrPen *p, int c, bool words) {
    const ErrMap *m = &p->map;
    if (m->per_column)
        return arena_printf(p->a, "%s%lld", words ? "rank " : "", (long long)(c * m->per_column));
    int64_t n = rankset_count(&m->members[c]);
    if (n == 1)
        return arena_printf(p->a, "%s%lld", words ? "rank " : "",
                            (long long)rankset_first(&m->members[c]));
    return words ? arena_printf(p->a, "%s%lld ranks", n == m->t->ranks ? "all " : "", (long long)n)
                 : arena_printf(p->a, "×%lld", (long long)n);
}
/* Labels of columns, as many as fit; the step between them is constant. */
static void draw_columns(ErrPen *p, int map, double y) {
    double x = map_at(p, map);
    const ErrMap *m = &p->map;
    double need = 8, wide = 0;
    for (int c = 0; c < m->n_columns; c++) {
        need = fmax(need, scene_width(p->s, 12, REGULAR, column_text(p, c, false)) + 8);
        wide = fmax(wide, scene_width(p->s, 12, REGULAR, column_text(p, c, true)) + 8);
    }
    bool words = (wide <= p->cell || m->n_columns == 1) && m->per_column <= 1;
    int step = 1;
    while (step * p->cell < need) step *= 2;
    for (int c = 0; c < m->n_columns; c += step)
        scene_text(p->s, x + (c + 0.5) * p->cell, y,
                   (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_SECOND}, column_text(p, c, words));
    if (p->far[map] > 0)
        scene_text(p->s, x + map_width(p, map) - (p->far[map] - FAR_GAP) / 2, y,
                   (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_INK}, far_head);
    if (!words && map == 0)
        scene_text(p->s, x - 12, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
                   m->per_column > 1
                       ? arena_printf(p->a, "ranks, %lld in a column", (long long)m->per_column)
                   : m->per_column ? "rank"
                                   : "ranks of a class");
}

/* What the one mistake is made in again and again, "micro-batches", and how many of them there are;
 * NULL: it is made once, or others are made beside it. */
static const char *made_again(const ErrMap *m, int64_t *of) {
    const int64_t rounds = m->row[m->n - 1].round + 1;
    const bool batches = rounds <= m->parts;
    if (!m->again || m->again != m->also || !(batches || m->parts == 1)) return NULL;
    *of = batches ? m->parts : rounds;
    return batches ? "micro-batches" : "training steps";
}
/* "3 wrong steps": those of the darkest ink, as the title counts them; one that is wrong in several
 * micro-batches or training steps is one. In w. */
static const char *wrong_steps(ErrPen *p, const ErrMap *m, double w) {
    int64_t of;
    const char *in = made_again(m, &of);
    const int n = in ? 1 : 1 + m->also;
    const char *steps = arena_printf(p->a, "%d wrong step%s", n, n == 1 ? "" : "s");
    if (!in) return steps;
    const char *all = arena_printf(p->a, "%s in %d %s", steps, m->again + 1, in);
    return scene_width(p->s, 12.5, SEMIBOLD, all) <= w ? all : steps;
}
/* What stands over each of two maps: whose it is, and how it came out. */
static double draw_heads(ErrPen *p, double y) {
    const RenderOptions *o = p->c->o;
    static const char *const heads[3][2] = {{"The plan as written", "As written"},
                                            {"Without the mistake", "Without it"},
                                            {"Beside it", "Beside it"}};
    for (int i = 0; i < 2; i++) {
        const Trace *t = i ? p->other.t : p->map.t;
        const ErrMap *m = i ? &p->other : &p->map;
        bool planted = i && o->beside_planted;
        double w = fmin(map_width(p, i) + twin_gap(p) - 10,
                        p->x + p->w - map_at(p, i)); /* the page ends at the second */
        const char *result = m->wrong ? wrong_steps(p, m, w) : m->suspect ? "suspect" : "all right";
        Run run[2] = {{result, SEMIBOLD,
                       m->wrong     ? ROLE_FAIL
                       : m->suspect ? ROLE_WARN
                                    : ROLE_PASS,
                       false, false},
                      {t->plan && !planted ? arena_printf(p->a, " · %s", t->plan) : "", REGULAR,
                       ROLE_SECOND, false, false}};
        double rw = scene_width(p->s, 12.5, SEMIBOLD, result);
        const char *const *head = heads[i ? planted ? 1 : 2 : 0],
                          *what = head[scene_width(p->s, 13, SEMIBOLD, head[0]) > w];
        scene_text(p->s, map_at(p, i), y + 12, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
                   scene_fit(p->s, what, w, 13, SEMIBOLD));
        if (scene_width(p->s, 12.5, REGULAR, run[1].s) > w - rw)
            run[1].s = ""; /* the footer has it */
        scene_runs(p->s, (Pt){map_at(p, i), y + 29}, ALIGN_LEFT, 12.5, run, *run[1].s ? 2 : 1);
    }
    return y + 38;
}

/* Returns the y under the map; *at: middle of the first wrong row, *right: where its arrow starts.
 */
static double draw_map_of_errors(ErrPen *p, double y, double *at) {
    const ErrMap *m = &p->map;
    double w = m->n_columns * p->cell, top = y + 22;
    int maps = 1 + p->twin;
    for (int i = 0; i < maps; i++) draw_columns(p, i, y + 14);
    for (int i = 0; i < m->n; i++) draw_row(p, &m->row[i], top + i * p->row, i);
    for (int i = 0; i < m->n; i++) draw_round(p, &m->row[i], top + i * p->row);
    for (int i = 0; i < maps; i++) {
        Look frame = {ROLE_NONE, ROLE_FAINT, 1.25};
        double x = map_at(p, i), far = p->far[i] - FAR_GAP;
        scene_rect(p->s, (Area){x, top, w, m->n * p->row}, 0, frame)->ground = true;
        if (far > 0)
            scene_rect(p->s, (Area){x + map_width(p, i) - far, top, far, m->n * p->row}, 0, frame)
                ->ground = true;
    }
    *at = 0;
    if (!m->first) return top + m->n * p->row;
    double fy = top + (double)(m->first - m->row) * p->row;
    scene_begin(p->s, "wrong", "first-wrong", "the first wrong value");
    scene_rect(p->s, (Area){map_at(p, 0) - 1, fy, w + 2, p->row}, 0,
               (Look){ROLE_NONE, ROLE_INK, 3});
    scene_end(p->s);
    *at = fy + p->row / 2;
    return top + m->n * p->row;
}

/* Where map i ends in that row. */
static double row_end(ErrPen *p, int i, const ErrRow *r) {
    const double cells = map_at(p, i) + p->map.n_columns * p->cell + 2;
    const bool empty =
        r && !round_words(p, r) && errors_far(i ? &p->other : &p->map, r) == ERR_NONE;
    if (p->far[i] > 0 && !empty) return map_at(p, i) + map_width(p, i) + 2;
    if (p->beside <= 0 || !r || !is_silent(p, r)) return cells;
    return cells + 14 + scene_width(p->s, 12, MEDIUM, errors_row_number(p->a, r));
}
/* The second map stands between the first wrong row and the panel, which speaks of the same row of
 * it too: the line to the panel goes round that. Returns where it goes on. */
static double draw_across(ErrPen *p, double at) {
    const double from = row_end(p, 0, p->map.first), x = map_at(p, 1) - 1;
    scene_begin(p->s, "edge", "across", "the first wrong value without the mistake");
    scene_segment(p->s, (Pt){from, at}, (Pt){x, at}, ROLE_FAIL, 2);
    scene_rect(p->s, (Area){x, at - p->row / 2, p->map.n_columns * p->cell + 2, p->row}, 0,
               (Look){ROLE_NONE, ROLE_FAIL, 2});
    scene_end(p->s);
    return row_end(p, 1, p->map.first->beside);
}

/* ---- the panel ---- */

typedef struct {
    ErrPen *p;
    double x, y, w;
} Panel;

static const TextLook heading = {ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
                      body = {ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
                      small = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};

/* A text in at most `lines` (8) lines, and a gap under it. */
static void say(Panel *q, TextLook set, const char *text, int lines, double gap) {
    const char *line[8];
    int n = scene_wrap(q->p->s, text, (TextColumn){q->w, set.size, set.weight, lines, NULL}, line);
    for (int i = 0; i < n; i++, q->y += set.size + 5)
        scene_text(q->p->s, q->x, q->y + set.size, set, line[i]);
    q->y += gap;
}
static void pair(Panel *q, const char *name, const char *value, int weight, Role role) {
    scene_text(q->p->s, q->x + 10, q->y + 12, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
               name);
    scene_text(q->p->s, q->x + fmin(q->w, 240), q->y + 12,
               (TextLook){ALIGN_RIGHT, 12.5, weight, role}, value);
    q->y += 18;
}

/* What each rank handed in, which adds up to the right value: of many ranks those of the first, and
 * the rest in one. */
static void terms(Panel *q, const TraceCheck *k) {
    Arena *a = q->p->a;
    const int64_t most = q->p->preset == PRESET_SLIDE ? 3 : 4,
                  shown = k->n_terms <= most ? k->n_terms : most - 1;
    double rest = 0;
    for (int64_t i = 0; i < k->n_terms; i++) {
        if (i >= shown) rest += k->terms[i];
        else
            pair(q, arena_printf(a, "rank %.0f has", k->term_ranks[i]),
                 errors_digits(a, k->terms[i]), REGULAR, ROLE_INK);
    }
    if (shown < k->n_terms)
        pair(q, arena_printf(a, "%lld more have", (long long)(k->n_terms - shown)),
             errors_digits(a, rest), REGULAR, ROLE_INK);
    const double right = q->x + fmin(q->w, 240);
    scene_begin(q->p->s, "sum", "terms", "what the ranks of a group have adds up to what is right");
    scene_segment(q->p->s, (Pt){right - 90, q->y + 1}, (Pt){right, q->y + 1}, ROLE_INK, 1);
    scene_end(q->p->s);
    q->y += 3;
}
/* Minus this is what a part of attention gives as lse of a row that sees no key. */
#define NO_KEY 0x1p100
/* The sentence of "size" (errors_without_numbers). */
static const char without_numbers[] = "No number can be compared: the sizes differ.";
static void evidence(Panel *q, const TraceCheck *k) {
    Arena *a = q->p->a;
    const bool sum = k->n_terms > 0 && !q->p->brief,
               tight = (q->p->preset == PRESET_SLIDE && sum) || q->p->brief;
    say(q, heading, sum ? "Evidence: the terms add up" : "Evidence", 1, 0);
    if (k->n_index && !tight)
        say(q, small,
            arena_printf(a, "first wrong element %s", words_shape(a, k->index, k->n_index)), 1, 1);
    if (sum) terms(q, k);
    if (errors_has_numbers(k) && sum) {
        pair(q, "their sum, unsharded", errors_digits(a, k->want), SEMIBOLD, ROLE_PASS);
        pair(q, "the ranks go on with", errors_digits(a, k->got), SEMIBOLD, ROLE_FAIL);
    } else if (errors_has_numbers(k)) {
        pair(q, "the ranks give", errors_digits(a, k->got), SEMIBOLD, ROLE_FAIL);
        pair(q, "unsharded", errors_digits(a, k->want), SEMIBOLD, ROLE_PASS);
    }
    const char *none = errors_without_numbers(k);
    if (none && k->n_shape &&
        k->n_due) { /* face to face, as the page of an illegal plan has them */
        pair(q,
             k->n_rank_error ? arena_printf(a, "rank %lld has", (long long)k->rank_error[0].rank)
                             : "the rank has",
             words_shape(a, k->shape, k->n_shape), SEMIBOLD, ROLE_FAIL);
        pair(q, "it should have", words_shape(a, k->due, k->n_due), SEMIBOLD, ROLE_PASS);
    }
    const bool told = k->n_shape && k->n_due && q->p->preset == PRESET_SLIDE;
    if (none && !told) say(q, body, without_numbers, 2, 0);
    else if (!none && !tight)
        pair(q, "largest error", arena_printf(a, "%.3g", k->max_abs), REGULAR, ROLE_INK);
    if (fabs(k->max_abs - NO_KEY) < 0.01 * NO_KEY)
        say(q, small, "That large where a row sees no key, and should see some, or the reverse.", 2,
            0);
    if (k->bound > 0 && !tight)
        pair(q, "bound of rounding", arena_printf(a, "%.2g", k->bound), REGULAR, ROLE_INK);
    Str s = str_new(a);
    int most = q->p->preset == PRESET_SLIDE ? 4 : 8;
    for (int i = 0; i < k->n_rank_error && i < most; i++)
        str_addf(&s, "%srank %lld: %.2g",
                 i ? ", " : "Error per rank: ", (long long)k->rank_error[i].rank,
                 k->rank_error[i].error);
    if (k->n_rank_error > most)
        str_addf(&s, " and on %lld more", (long long)(rankset_count(&k->ranks) - most));
    q->y += 2;
    /* its numbers stand in the cells of the row where these are wide enough */
    bool room = (q->p->preset != PRESET_SLIDE || !q->p->twin) &&
                (q->p->beside > 0 || q->p->map.per_column != 1);
    if (s.n && room) say(q, small, s.s, 4, 0);
    q->y += 8;
}

/* What makes the first wrong value in the run beside it. */
static void repair(Panel *q) {
    const ErrRow *r = q->p->map.first ? q->p->map.first->beside : NULL;
    const Trace *u = q->p->other.t;
    Arena *a = q->p->a;
    const TraceCollective *c = NULL;
    for (int i = 0; r && i < u->n_collectives; i++)
        if (u->collectives[i].step == r->step) c = &u->collectives[i];
    const RenderOptions *o = q->p->c->o;
    bool planted = o->beside_planted;
    const char *key = planted ? wrong_right_key(q->p->map.first->planted) : NULL;
    say(q, heading,
        key       ? arena_printf(a, "With `%s`", key)
        : planted ? "Without the planted mistake"
                  : "In the run beside it",
        1, 0);
    if (!r) {
        say(q, body, "There is no such step.", 2, 8);
        return;
    }
    const char *made = r->how ? r->how : "computed on each rank";
    if (c)
        made = arena_printf(a, "%s over %s %s of %s",
                            coll_word(c->op) ? coll_word(c->op)->name : c->op,
                            words_axis_list(a, u, c->axis), words_members(a, &c->groups, 0),
                            bytes_text(c->bytes_in, a));
    const char *right = r->max > 0 ? arena_printf(a, "right within %s", errors_number(a, r->max))
                                   : "equal bit for bit";
    if (r->worst_state >= ERR_SUSPECT) right = r->step < 0 ? "wrong too" : "and wrong too";
    say(q, body, /* a source is computed by nobody */
        words_capital(a, r->step < 0 ? right : arena_printf(a, "%s, %s", made, right)), 3, 0);
    if (!planted && c && c->line > 0 && q->p->preset != PRESET_SLIDE)
        say(q, small,
            arena_printf(a, "plan line %s:%d", c->file ? words_file(c->file) : u->plan, c->line), 2,
            0);
    q->y += 8;
}
/* On a line of the panel, with its end: that is the number. */
static const char *fit_end(Panel *q, const char *s) {
    const char *end = s;
    while (*end && scene_width(q->p->s, body.size, body.weight, end) > q->w - 12) end++;
    return end == s ? s : arena_printf(q->p->a, "…%s", end);
}
/* " · module layers.0.attention.wo": where the plan and the other pictures have the value, unless
 * its name, `path`, says so. */
static const char *at_module(Panel *q, int step, const char *path) {
    const char *module = errors_module(q->p->map.t, step);
    if (q->p->preset == PRESET_SLIDE && q->p->twin) return "";
    return module && strncmp(path, module, strlen(module)) != 0
               ? arena_printf(q->p->a, " · module %s", module)
               : "";
}
/* What mends the first wrong value; line: a line of the plan asks for it. */
static const char *to_do(Arena *a, const ErrMap *m, const TraceCheck *k, bool line) {
    const Trace *t = m->t;
    const char *planted = m->first ? m->first->planted : NULL, *right = wrong_right_key(planted);
    if (right) return arena_printf(a, "Say `%s`: this step is right with it.", right);
    if (planted) return "Take the planted mistake out: this step is right without it.";
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step == k->step && words_declares(&t->moves[i]))
            return "Declare how the value really lies, or move it before it is declared.";
    if (line) return "Change the line that asks for this step, then run the plan again.";
    return k->cause ? "Change what the cause names, then run the plan again: no line asks for this "
                      "step."
                    : "No line of the plan asks for this step.";
}
/* "gradient of layers.0.norm.weight", in a line or two. */
static void panel_name(Panel *q, const char *before, const char *path) {
    const TextLook red = {ALIGN_LEFT, 15, BOLD, ROLE_FAIL};
    Scene *s = q->p->s;
    const char *all = arena_printf(q->p->a, "%s%s", before, path);
    if (scene_width(s, 15, BOLD, all) > q->w && *before) {
        scene_text(s, q->x, q->y + 15, red, before);
        q->y += 19, all = path;
    }
    scene_text(s, q->x, q->y + 15, red, fit_name(s, all, q->w, 15, BOLD));
    q->y += 22;
}
static void panel_wrong(Panel *q) {
    static const char recipe[] = "recipe "; /* whose line is not of the plan's file */
    const ErrMap *m = &q->p->map;
    const TraceCheck *k = m->check;
    Arena *a = q->p->a;
    const char *line = errors_plan_line(a, m->t, k), *how = NULL;
    for (int i = 0; i < m->n; i++)
        if (&m->row[i] == m->first) how = m->first->how ? m->first->how : m->first->by;
    const char *planted = m->first ? m->first->planted : NULL;
    const TextLook set = {ALIGN_LEFT, 12, planted ? SEMIBOLD : REGULAR,
                          planted ? ROLE_FAIL : ROLE_SECOND};
    const char *what = planted ? arena_printf(a, "First wrong value · %s", wrong_asked(a, planted))
                               : "First wrong value";
    if (planted && scene_width(q->p->s, set.size, set.weight, what) > q->w)
        what = words_capital(a, wrong_asked(a, planted));
    say(q, set, what, 1, 0);
    const char *path, *before = words_value_path(a, m->t, k->value, &path);
    panel_name(q, before, path);
    int64_t n = rankset_count(&k->ranks);
    const char *who = n == 2 && m->t->ranks == 2 ? "both ranks"
                      : n == m->t->ranks         ? arena_printf(a, "all %lld ranks", (long long)n)
                                         : arena_printf(a, "%s %s", n == 1 ? "rank" : "ranks",
                                                        rankset_text(&k->ranks, a));
    say(q, body,
        k->step >= 0 ? arena_printf(a, "%s · step %d%s%s%s", who, k->step, how ? ", " : "",
                                    how ? how : "", at_module(q, k->step, path))
                     : who,
        3, 6);
    scene_segment(q->p->s, (Pt){q->x, q->y}, (Pt){q->x + q->w, q->y}, ROLE_GRID, 1);
    q->y += 10;
    say(q, heading, "Likely cause", 1, 0);
    say(q, body, k->cause ? words_capital(a, k->cause) : "Not known.", 4, 8);
    evidence(q, k);
    if (q->p->twin) repair(q);
    say(q, heading, "What to do", 1, 0);
    if (m->first && m->first->planted_at) line = m->first->planted_at;
    const char *file = line ? strrchr(line, '/') : NULL; /* without its folders */
    file = line ? fit_end(q, file ? file + 1 : line) : NULL;
    const bool slide = q->p->preset == PRESET_SLIDE, brief = slide && q->p->twin;
    if (!brief) say(q, body, to_do(a, m, k, line), 3, 0);
    if (line)
        say(q, body,
            (k->n_terms && slide) || !strncmp(file, recipe, strlen(recipe))
                ? words_capital(a, file)
                : arena_printf(a, "%s %s",
                               !brief || !planted         ? "Plan line"
                               : wrong_right_key(planted) ? "Say it in"
                                                          : "Take it out:",
                               file),
            2, 0);
    else if (planted) say(q, body, arena_printf(a, "The plan says `%s`.", planted), 2, 0);
}

static void panel_right(Panel *q) {
    const ErrMap *m = &q->p->map;
    const Trace *t = m->t;
    Arena *a = q->p->a;
    scene_text(q->p->s, q->x, q->y + 15,
               (TextLook){ALIGN_LEFT, 15, BOLD, m->suspect ? ROLE_WARN : ROLE_PASS},
               m->suspect ? "No value is wrong, some are suspect" : "Every value is right");
    q->y += 28;
    const char *held =
        m->projected ? arena_printf(a, ", %d were held by projections", m->projected) : "";
    say(q, body,
        arena_printf(a,
                     "%d are equal to the unsharded ones bit for bit, %d differ by rounding and "
                     "stay within their bounds%s.",
                     m->equal, m->rounded + m->suspect - m->projected, held),
        4, 8);
    if (t->worst_value && t->worst_used > 0) {
        say(q, heading, "Closest to its bound", 1, 0);
        const char *path, *before = words_value_path(a, t, t->worst_value, &path);
        say(q, body, fit_name(q->p->s, arena_printf(a, "%s%s", before, path), q->w, 12.5, REGULAR),
            1, 0);
        say(q, small, arena_printf(a, "uses %.0f %% of it", 100 * t->worst_used), 1, 0);
    }
}

/* The panel is measured by drawing its contents; its ground is put under them afterwards. */
static double draw_panel(ErrPen *p, double x, double y, double w, double pointer_x,
                         double pointer_y) {
    const double pad = 16;
    Scene *s = p->s;
    int group = scene_begin(s, "panel", "panel", NULL), ground = s->n_marks;
    scene_rect(s, (Area){x, y, w, 10}, 4, (Look){ROLE_EQUAL, ROLE_GRID, 1.25})->ground = true;
    Panel q = {p, x + pad, y + pad - 2, w - 2 * pad};
    if (p->map.check) panel_wrong(&q);
    else panel_right(&q);
    double h = q.y + pad - 4 - y;
    s->marks[ground].h = h;
    scene_frame(s, x, y, w, h);
    scene_end(s);
    if (p->map.first) scene_link(s, group, p->first_row);
    if (pointer_y > 0) {
        double to = fmin(fmax(pointer_y, y + 20), y + h - 20), mid = x - 16;
        Pt pt[4] = {{pointer_x, pointer_y}, {mid, pointer_y}, {mid, to}, {x, to}};
        bool straight = fabs(to - pointer_y) < 14;
        if (straight) pt[1] = (Pt){x, pointer_y};
        scene_begin(s, "edge", "pointer", "about the first wrong value");
        scene_arrow(s, pt, straight ? 2 : 4, (ArrowLook){ROLE_FAIL, 2, false, false}, group);
        scene_end(s);
    }
    return y + h;
}

/* ---- the page ---- */

/* "+4" of the first row that stands for several values; NULL if none does. */
static const char *folded(const ErrMap *m) {
    for (int i = 0; i < m->n; i++)
        if (m->row[i].how && *m->row[i].how == '+') return m->row[i].how;
    return NULL;
}

/* Which states the cells of the picture have; *follow: some say that they follow, *own: some of the
 * same state have a number; *near: some made from wrong values are within their bound end to end.
 */
static void states_used(const ErrPen *p, bool used[ERR_STATES], bool *follow, bool *own,
                        bool *near) {
    for (int i = 0; i < p->map.n; i++) {
        const ErrRow *r = &p->map.row[i], *rows[2] = {r, r->beside};
        for (int k = 0; k < 2 && rows[k]; k++) {
            const ErrState far = errors_far(k ? &p->other : &p->map, rows[k]);
            if (p->far[k] > 0) {
                used[far] = true;
                *near |= far == ERR_AFTER;
            }
            for (int c = 0; c < p->map.n_columns; c++) {
                used[rows[k]->state[c]] = true;
                *follow |= is_beside_wrong(rows[k], c);
                *own |= rows[k]->state[c] == ERR_AFTER && !is_beside_wrong(rows[k], c);
            }
        }
    }
    used[ERR_FIRST] |= used[ERR_ALSO];
    used[ERR_ALSO] = false; /* one ink */
}
/* A cell with what it means, at *at or in the next line. */
static void key_entry(ErrPen *p, ErrState k, const char *sample, const char *words, Pt *at) {
    const double bar = k == ERR_AFTER ? 5 : 0;
    double cell = fmax(42, scene_width(p->s, 12, MEDIUM, sample) + bar + 10),
           w = cell + 8 + scene_width(p->s, 12, REGULAR, words);
    if (at->x > p->x && at->x + w > p->x + p->w) at->x = p->x, at->y += 24;
    scene_rect(p->s, (Area){at->x, at->y - 9, cell, 18}, 0, (Look){look[k].fill, ROLE_FAINT, 1});
    if (bar > 0)
        scene_rect(p->s, (Area){at->x + 1, at->y - 8, 4, 16}, 0,
                   (Look){ROLE_WRONG_LATER, ROLE_NONE, 0});
    scene_text(p->s, at->x + (cell + bar) / 2, at->y + 4.3,
               (TextLook){ALIGN_MIDDLE, 12, MEDIUM, look[k].text}, sample);
    scene_text(p->s, at->x + cell + 8, at->y + 4.3,
               (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, words);
    at->x += w + (p->preset == PRESET_SLIDE ? 12 : 20);
}
/* End to end, of what is made from wrong values: no bar, for no step is judged. */
static void near_entry(ErrPen *p, Pt *at) {
    static const char words[] = "end to end: made from wrong values, within its bound";
    if (at->x > p->x && at->x + 50 + scene_width(p->s, 12, REGULAR, words) > p->x + p->w)
        *at = (Pt){p->x, at->y + 24};
    scene_rect(p->s, (Area){at->x, at->y - 9, 42, 18}, 0,
               (Look){look[ERR_AFTER].fill, ROLE_FAINT, 1});
    scene_text(p->s, at->x + 21, at->y + 4.3,
               (TextLook){ALIGN_MIDDLE, 12, MEDIUM, look[ERR_AFTER].text}, "5e-03");
    scene_text(p->s, at->x + 50, at->y + 4.3, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               words);
    at->x += 70 + scene_width(p->s, 12, REGULAR, words);
}
/* What stands in the place of a number where sizes differ. */
static void size_entry(ErrPen *p, Pt *at) {
    const char *size = NULL;
    bool inf = false;
    for (int i = 0; i < p->map.n; i++) {
        const ErrRow *r = &p->map.row[i];
        const char *none = r->worst ? errors_without_numbers(r->worst) : NULL;
        if (none && r->worst_state >= ERR_FIRST) size = none;
        inf |= p->far[0] > 0 && r->far && isinf(r->far->max_abs);
    }
    if (!size && !inf) return;
    const char *words = arena_printf(p->a, "%s%s%s: blocks of other sizes, no number",
                                     size ? size : "", size && inf ? ", " : "", inf ? "inf" : "");
    const double w = scene_width(p->s, 12, REGULAR, words);
    if (at->x > p->x && at->x + w > p->x + p->w) *at = (Pt){p->x, at->y + 24};
    scene_text(p->s, at->x, at->y + 4.3, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, words);
    at->x += w + 20;
}
static double draw_key(ErrPen *p, double y) {
    static const char *const sample[ERR_STATES] = {"",      "=",   "5e-07", "ok", "4e-7",
                                                   "3e-06", "1.8", "1.8",   "2.1"};
    bool used[ERR_STATES] = {false}, follow = false, own = false, near = false;
    Pt at = {p->x, y};
    states_used(p, used, &follow, &own, &near);
    own &= !follow || p->preset != PRESET_SLIDE; /* which has no room for both */
    scene_begin(p->s, "legend", "legend", NULL);
    for (int k = 1; k < ERR_STATES; k++) {
        if (!used[k]) continue;
        if (k != ERR_AFTER || own) key_entry(p, (ErrState)k, sample[k], look[k].words, &at);
        if (k == ERR_AFTER && follow)
            key_entry(p, ERR_AFTER, follows(p),
                      own ? "the same, beside a wrong rank" : "a right step on wrong inputs", &at);
    }
    if (near && p->preset != PRESET_SLIDE) near_entry(p, &at);
    if (p->preset != PRESET_SLIDE) size_entry(p, &at);
    const char *fold = folded(&p->map), *words = "more values, the worst shown";
    if (fold) {
        double w = scene_width(p->s, 12, REGULAR, fold) + 8;
        bool wide = at.x > p->x && at.x + w + scene_width(p->s, 12, REGULAR, words) > p->x + p->w;
        /* a slide has no second line for it; the tooltips say it */
        if (wide && p->preset == PRESET_SLIDE) words = "";
        else if (wide) at = (Pt){p->x, at.y + 24};
        const TextLook set = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
        if (*words) scene_text(p->s, at.x, at.y + 4.3, set, fold);
        scene_text(p->s, at.x + w, at.y + 4.3, set, words);
    }
    scene_end(p->s);
    return at.y + 18;
}

/* What comes of the first wrong value. */
static const char *aftermath(ErrPen *p) {
    const ErrMap *m = &p->map;
    int n = m->wrong - 1, all = n + m->after;
    if (m->ends) return "the run ends there";
    if (all == 0) return "nothing is computed from it";
    if (m->far && m->also)
        return arena_printf(p->a, "%d more %s wrong as well%s", m->also,
                            m->also == 1 ? "is" : "are",
                            m->off ? arena_printf(p->a, ", %d because of those", m->off) : "");
    if (m->far)
        return m->off ? arena_printf(p->a, "%d later %s wrong because of it", m->off,
                                     m->off == 1 ? "one is" : "ones are")
                      : "no later one is off by more than rounding";
    if (n == 0)
        return arena_printf(p->a, "%d later %s from it", all,
                            all == 1 ? "one follows" : "ones follow");
    if (m->after == 0)
        return arena_printf(p->a, "%d more %s wrong after it", n, n == 1 ? "is" : "are");
    return arena_printf(p->a, "%d later ones are wrong or follow", all);
}
static const char *headline(ErrPen *p) {
    const ErrMap *m = &p->map;
    if (!m->check)
        return arena_printf(p->a,
                            "All right: %d values on %lld rank%s agree with the unsharded model",
                            m->equal + m->rounded + m->suspect, (long long)m->t->ranks,
                            m->t->ranks == 1 ? "" : "s");
    const char *first = words_wrong_value(p->a, m->t, m->check->value, *p->layer);
    int64_t of;
    const char *in = m->far ? made_again(m, &of) : NULL;
    if (in)
        return arena_printf(p->a, "The first wrong value %s, in %d of %lld %s%s", first,
                            m->again + 1, (long long)of, in,
                            m->off ? arena_printf(p->a, ", and %d later %s wrong because of it",
                                                  m->off, m->off == 1 ? "one is" : "ones are")
                                   : "");
    return arena_printf(p->a, "The first wrong value %s, and %s", first, aftermath(p));
}

/* How far the outcome is from the unsharded model, which the checks of single steps do not say. */
static const char *end_to_end(ErrPen *p) {
    const Trace *t = p->c->t;
    if (!t->end_to_end) return "";
    const ValueName k = words_value_name(p->a, t, t->end_to_end);
    const char *what = k.gradient ? "the " : k.after ? "the value " : "";
    return arena_printf(p->a,
                        " End to end: %s%s%s is off by %.2g of its largest number, bound %.2g.",
                        what, k.before, k.path, t->end_to_end_off, t->end_to_end_bound);
}

/* Of what is made from wrong values and pale end to end the one nearest to its bound: by how much
 * it is off, and what is allowed. */
static const char *within(ErrPen *p) {
    const ErrRow *worst = NULL;
    for (int i = 0; i < p->map.n && p->far[0] > 0; i++) {
        const ErrRow *r = &p->map.row[i];
        const TraceDistance *d = r->far;
        if (errors_far(&p->map, r) != ERR_AFTER || !(d->bound > 0)) continue;
        if (!worst || d->max_abs / d->bound > worst->far->max_abs / worst->far->bound) worst = r;
    }
    if (!worst) return "";
    const ValueName k = words_value_name(p->a, p->c->t, worst->name);
    return arena_printf(
        p->a, " Pale there is what its bound allows: %s%s%s is off by %.2g, allowed are %.2g.",
        k.gradient ? "the "
        : k.after  ? "the value "
                   : "",
        k.before, *p->layer && k.after ? k.brief : k.path, worst->far->max_abs, worst->far->bound);
}

static const char *totals(ErrPen *p) {
    const Trace *t = p->c->t;
    const TraceProjected by = trace_projected(t);
    const char *projected = by.notice ? arena_printf(p->a, ", of %s that of their projections",
                                                     trace_projected_text(&by, p->a))
                                      : "";
    Str fold = str_new(p->a);
    if (p->map.per_column > 1)
        str_addf(&fold, " A column shows the worst of %lld ranks.", (long long)p->map.per_column);
    if (!p->map.per_column && p->map.n_columns == 1)
        str_add(&fold, " Every check says the same of all ranks.");
    for (int c = 0; !p->map.per_column && p->map.n_columns > 1 && c < p->map.n_columns && c < 8;
         c++)
        str_addf(&fold, "%s%s", c ? ", " : " Ranks of a column are alike in every check: ",
                 rankset_text(&p->map.members[c], p->a));
    if (!p->map.per_column && p->map.n_columns > 1)
        str_add(&fold, p->map.n_columns > 8 ? ", …" : ".");
    if (p->map.far && p->map.n && p->map.row[p->map.n - 1].round > 0) /* older ones are gone */
        str_addf(&fold, " End to end has the values of the last %s.",
                 p->map.parts > 1 ? "micro-batch" : "training step");
    if (p->left_over)
        str_addf(&fold, " %d more value%s of the other run %s no row here.", p->left_over,
                 p->left_over == 1 ? "" : "s", p->left_over == 1 ? "has" : "have");
    return arena_printf(
        p->a,
        "Every step is compared with the unsharded op on the inputs that the ranks have, so a "
        "right "
        "step says nothing of these. Number of a right value: the largest difference on any "
        "rank%s.%s Checks, which may be several of a step: %lld pass, %lld suspect, %lld "
        "fail.%s%s%s",
        projected, fold.s ? fold.s : "", (long long)t->n_pass, (long long)t->n_suspect,
        (long long)t->n_fail, end_to_end(p), within(p),
        p->map.off ? " Wrong because of it, in the title: values off end to end by more than their "
                     "bound."
                   : "");
}

static void measure(ErrPen *p, double room) {
    bool slide = p->preset == PRESET_SLIDE;
    int n = p->map.n;
    p->row = slide ? 19 : n <= 22 ? 26 : 19;
    p->name_size = 12;
    p->left = 60;
    for (int i = 0; i < n; i++) {
        const ErrRow *r = &p->map.row[i];
        const char *how = r->how || r->by ? joined(p->a, r->how, r)
                          : r->values > 1 ? " · 000 pieces"
                                          : "";
        double w =
            scene_width(p->s, 12, BOLD,
                        arena_printf(p->a, "%s%s%s", row_label(p, r), how, planted_words(p, r))) +
            14;
        const char *round = round_words(p, r);
        if (round) w += 14 + scene_width(p->s, 12, SEMIBOLD, round);
        p->left = fmax(p->left, w);
    }
    int maps = 1 + p->twin, n_col = p->map.n_columns;
    double far = FAR_GAP + scene_width(p->s, 12, SEMIBOLD, far_head) + 4;
    p->far[0] = p->map.far ? far : 0;
    p->far[1] = p->other.wrong && p->other.far ? far : 0; /* of a right run nobody asks */
    far = p->far[0] + p->far[1];
    /* names may take what cells leave that are just wide enough for their numbers */
    double cells =
        fmax(n_col * 45.0, p->twin ? 128 : 0); /* the heads of two maps need their room */
    double usual = room * (n_col > 16 || p->twin ? 0.33 : 0.45),
           left = room - (maps - 1) * twin_gap(p) - maps * cells - far;
    p->left = fmin(p->left, fmax(usual, left));
    p->beside = 0;
    double most = fmax(62, 232.0 / n_col),
           space = (room - p->left - (maps - 1) * twin_gap(p) - far) / maps;
    if (p->twin) most = fmax(62, 150.0 / n_col);
    p->cell = fmin(most, space / n_col);
    if (p->cell >= 40) return;
    p->beside = 52;
    p->cell = fmin(62, (space - p->beside) / n_col);
    for (int i = 0; i < n; i++) {
        const ErrRow *r = &p->map.row[i];
        if (is_silent(p, r) || (r->beside && is_silent(p, r->beside))) return;
    }
    p->beside = 0; /* all cells say what they have to */
    p->cell = fmin(62, space / n_col);
}

static bool prepare(const ViewCall *c, ErrPen *p) {
    *p = (ErrPen){.c = c, .a = c->arena};
    const Trace *u = c->o->beside;
    p->twin = u && errors_pair(c->arena, c->t, u, &p->map, &p->other, &p->left_over);
    if (p->twin || errors_map(c->arena, c->t, &p->map)) {
        p->layer = one_layer(p);
        const char **label = ARENA_ARRAY(p->a, const char *, p->map.n + 1);
        for (int i = 0; i < p->map.n; i++) label[i] = row_label(p, &p->map.row[i]);
        errors_tell_apart(p->a, &p->map, label);
        return true;
    }
    if (c->t->verdict && !strcmp(c->t->verdict, "invalid")) {
        diag_error(c->d, "E0211", diag_nowhere,
                   "`shardproof check PLAN` says which; `trust: declared` executes such a plan",
                   "nothing to draw in view 'errors': the plan breaks a rule and was not executed");
        return false;
    }
    diag_error(
        c->d, "E0211", diag_nowhere,
        "run the plan: `shardproof draw PLAN --view errors` does so, and `shardproof run PLAN` "
        "writes a trace",
        "nothing to draw in view 'errors': the trace has no checks, the plan was not executed");
    return false;
}

/* "layer 0": what the rows do not say. */
static const char *layer_words(const ErrPen *p) {
    return *p->layer ? arena_printf(p->a, "layer %d", atoi(p->layer + strlen("layers."))) : "";
}

/* The page with at most `rows` rows; NULL and a diagnostic if there is nothing to show. */
static Scene *errors_page(const ViewCall *c, int rows, bool brief) {
    ErrPen p;
    if (!prepare(c, &p)) return NULL;
    p.brief = brief;
    furniture_preset(c->o->preset, &p.preset);
    bool slide = p.preset == PRESET_SLIDE, narrow = p.preset == PRESET_COLUMN;
    errors_fold(p.a, &p.map, rows);
    Scene *s = p.s = figure_new(c, "errors", p.preset);
    p.x = presets[p.preset].margin;
    p.w = s->w - 2 * p.x;
    double side = narrow   ? 0
                  : !slide ? 330
                  : p.twin ? 264
                           : 292,
           gap = narrow            ? 0
                 : slide && p.twin ? 22
                                   : 40,
           at;
    measure(&p, p.w - side - gap);
    double used = maps_width(&p) + gap + side;
    /* few ranks need no wide canvas; the scale of a PNG stays the same */
    if (p.preset == PRESET_WIDE && used < p.w) {
        p.w = fmax(used, 780);
        s->w = p.w + 2 * p.x;
        s->px_width = (int)(presets[p.preset].px * s->w / presets[p.preset].w);
    }
    const char *model = words_model(p.a, c->t);
    const char *sub[] = {model ? model : "",
                         words_data(p.a, c->t),
                         pass_words[c->t->pass],
                         layer_words(&p),
                         words_mesh(p.a, c->t),
                         p.map.projected ? "products by projections" : "",
                         !p.map.far ? "cells: largest difference from the unsharded op"
                         : slide    ? "largest differences of each step by itself, and end to end"
                                 : "cells: largest difference from the unsharded op; end to end: "
                                   "from the unsharded model",
                         NULL};
    s->wrong = p.map.check != NULL;
    double y = figure_head(s, p.preset, headline(&p), sub, 0) + (slide ? 0 : 8);
    double panel = p.twin ? y : y + 22;
    if (p.twin) y = draw_heads(&p, y);
    double bottom = draw_map_of_errors(&p, y, &at), start = 0;
    if (at > 0) start = p.twin && !narrow ? draw_across(&p, at) : row_end(&p, 0, p.map.first);
    double right = p.x + maps_width(&p);
    if (narrow) bottom = draw_panel(&p, p.x, bottom + 18, p.w, 0, 0);
    else
        bottom = fmax(bottom,
                      draw_panel(&p, fmin(right + gap, p.x + p.w - side), panel, side, start, at));
    y = draw_key(&p, bottom + (slide ? 18 : 26));
    y = figure_foot(s, c, (Band){p.x, p.w, y + 2}, slide ? NULL : totals(&p), NULL);
    s->desc = arena_printf(p.a, "%s. %s", headline(&p), totals(&p));
    figure_page(s, p.preset, y);
    return s;
}

/* A slide takes as many rows as its title, its panel and its legend leave room for; where the panel
 * itself is too high (a cause of many lines), it says less. */
int view_errors(const ViewCall *c, Scene **page) {
    static const int most[PRESET_COUNT] = {
        [PRESET_WIDE] = 36, [PRESET_COLUMN] = 36, [PRESET_SLIDE] = 17, [PRESET_A4] = 26};
    PresetKind preset;
    furniture_preset(c->o->preset, &preset);
    for (int brief = 0; brief < 2; brief++) {
        int rows = most[preset];
        do page[0] = errors_page(c, rows--, brief);
        while (page[0] && page[0]->scale < 1 && preset == PRESET_SLIDE && rows >= 8);
        if (!page[0] || page[0]->scale >= 1 || preset != PRESET_SLIDE) break;
    }
    return page[0] != NULL;
}

/* ---- text ---- */

/* A map of errors as text: columns of a line, of a row's name, signs of its ranks at most. */
typedef struct {
    int w, name, signs;
} Widths;
static Widths widths(const ErrPen *p) {
    int w = furniture_columns(p->c->o);
    bool narrow = w < 80;
    int signs = p->twin ? (narrow ? 8 : 16) : narrow ? 16 : 24;
    if (p->twin && signs > p->map.n_columns) signs = p->map.n_columns;
    /* behind the name: " 1e-07 " and the signs; of two maps " | ", signs and " 1e-07" more */
    int far = p->map.far ? 6 : 0; /* and "   2.1" */
    return (Widths){w, w - (p->twin ? 2 * signs + 17 + far : signs + 9 + far), signs};
}
static const char *row_states(ErrPen *p, const ErrRow *r, int most) {
    static const char sign[ERR_STATES] = {' ', '=', '.', '.', '~', '?', 'X', 'x', 'x'};
    Str s = str_new(p->a);
    int n = p->map.n_columns > most ? most : p->map.n_columns;
    for (int i = 0; i < n; i++) { /* the worst of the columns that share a sign */
        ErrState worst = ERR_NONE;
        for (int c = i * p->map.n_columns / n; c < (i + 1) * p->map.n_columns / n; c++)
            if (r->state[c] > worst) worst = r->state[c];
        str_addn(&s, &sign[worst], 1);
    }
    return s.s;
}

static const char *text_number(ErrPen *p, double v) {
    return v == 0 ? "=" : errors_number(p->a, v);
}
/* A row: the step's own error, the distance behind it, a sign per rank, and these beside. */
static void text_row(ErrPen *p, const ErrRow *r, Widths k, Str *s) {
    const char *how = r->how || r->by ? joined(p->a, r->how, r)
                      : r->values > 1 ? arena_printf(p->a, ", %d", r->values)
                                      : "";
    if (r->planted) how = arena_printf(p->a, "%s · planted", how);
    const char *label = row_label(p, r);
    if (r->to && words_columns(label) + words_columns(how) > k.name)
        label = part_label(p, r->before, r->name);
    const char *name = words_fit_name(p->a, label, k.name - words_columns(how)),
               *beside = p->twin && r->beside
                             ? arena_printf(p->a, " | %s %s", row_states(p, r->beside, k.signs),
                                            errors_row_number(p->a, r->beside))
                             : "";
    WordsCell cell[4] = {{arena_printf(p->a, "%s%s", name, how), k.name + 1, false},
                         {errors_row_number(p->a, r), 6, true}};
    int n = 2;
    if (p->map.far) cell[n++] = (WordsCell){r->far ? text_number(p, r->far->max_abs) : "", 6, true};
    const char *signs = arena_printf(p->a, "%s%s", row_states(p, r, k.signs), beside);
    cell[n++] = (WordsCell){signs, words_columns(signs) + 1, true};
    words_row(s, "", cell, n);
}
static void text_first(ErrPen *p, Str *s, int w) {
    const TraceCheck *k = p->map.check;
    const char *line = errors_plan_line(p->a, p->c->t, k);
    const char *path, *before = words_value_path(p->a, p->c->t, k->value, &path);
    str_add(s, "\n");
    words_labelled(s, "first wrong  ", arena_printf(p->a, "%s%s", before, path), w);
    if (strcmp(path, k->value)) words_labelled(s, "recorded as  ", k->value, w);
    words_labelled(s, "ranks        ", rankset_text(&k->ranks, p->a), w);
    const char *module = errors_module(p->c->t, k->step);
    if (module && strcmp(module, path)) words_labelled(s, "module       ", module, w);
    if (p->map.first && p->map.first->planted)
        words_labelled(s, "planted      ", p->map.first->planted, w);
    words_labelled(s, "cause        ", k->cause ? k->cause : "not known", w);
    if (errors_has_numbers(k))
        words_labelled(s, "evidence     ",
                       arena_printf(p->a, "%s%s%sgot %s, want %s", k->n_index ? "at " : "",
                                    k->n_index ? words_shape(p->a, k->index, k->n_index) : "",
                                    k->n_index ? ": " : "", errors_digits(p->a, k->got),
                                    errors_digits(p->a, k->want)),
                       w);
    if (k->n_terms) {
        Str sum = str_new(p->a);
        for (int64_t i = 0; i < k->n_terms; i++)
            str_addf(&sum, "%srank %.0f has %s", i ? " + " : "", k->term_ranks[i],
                     errors_digits(p->a, k->terms[i]));
        words_labelled(
            s, "terms        ",
            arena_printf(p->a, "%s = %s, the unsharded value", sum.s, errors_digits(p->a, k->want)),
            w);
    }
    const char *none = errors_without_numbers(k);
    if (none && k->n_shape && k->n_due)
        words_labelled(s, "shape        ",
                       arena_printf(p->a, "%s, and should be %s",
                                    words_shape(p->a, k->shape, k->n_shape),
                                    words_shape(p->a, k->due, k->n_due)),
                       w);
    if (none) words_labelled(s, "error        ", without_numbers, w);
    else str_addf(s, "error        %.3g, bound %.2g\n", k->max_abs, k->bound);
    for (int i = 0; !none && i < k->n_rank_error && i < 8; i++)
        str_addf(s, "             rank %lld: %.2g\n", (long long)k->rank_error[i].rank,
                 k->rank_error[i].error);
    if (!none && k->n_rank_error > 8) str_add(s, "             and more ranks\n");
    if (line) words_labelled(s, "plan line    ", line, w);
    if (p->map.first && p->map.first->planted_at)
        words_labelled(s, "planted in   ", p->map.first->planted_at, w);
}

const char *view_errors_text(const ViewCall *c) {
    ErrPen p;
    Role role;
    if (!prepare(c, &p)) return NULL;
    const Widths k = widths(&p);
    Str s = str_new(p.a);
    words_paragraph(&s, "", headline(&p), k.w);
    str_add(&s, "\n");
    for (int i = 0; i < p.map.n; i++) {
        const char *round = round_words(&p, &p.map.row[i]);
        if (round) str_addf(&s, "%s:\n", round);
        text_row(&p, &p.map.row[i], k, &s);
    }
    str_add(&s, "\n");
    words_paragraph(
        &s, "",
        arena_printf(p.a,
                     "= equal by bits, . within the bound, ? suspect, X first wrong, x wrong "
                     "later, %sone sign per rank%s",
                     p.map.after || p.map.wrong ? "~ a right step on wrong inputs; " : "",
                     c->t->ranks > k.signs ? ", or the worst of several" : ""),
        k.w);
    if (p.map.far)
        words_paragraph(&s, "",
                        "of two numbers the first is the step's own error, the second the distance "
                        "from the unsharded model",
                        k.w);
    if (folded(&p.map)) str_addf(&s, "%s: more values, the worst shown\n", folded(&p.map));
    if (p.twin)
        words_paragraph(
            &s, "",
            arena_printf(p.a, "right of the |: %s%s",
                         c->o->beside_planted ? "without the planted mistake" : "beside it",
                         p.other.wrong ? "" : ", where every value is right"),
            k.w);
    if (p.map.check) text_first(&p, &s, k.w);
    str_add(&s, "\n");
    words_paragraph(&s, "", totals(&p), k.w);
    words_paragraph(&s, "", words_stamp(p.a, c->t, &role), k.w);
    return s.s;
}
