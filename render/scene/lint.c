/* Layout lint: what a careful reader would complain about, found in the display list
 * (visual.md 1.0.8 and figures/README.md 1): text outside the canvas or its box, texts too close,
 * text on a mark that is not its own, a line through a text, marks outside the canvas, arrows that
 * end nowhere, too small or too pale text (in every theme: a scene does not depend on it), colours
 * with a meaning that no legend explains, marks without a tooltip, and numbers that are none.
 * Refuses to judge what it cannot know: whether the words are true is a matter of the tests. */
#include "render/scene/scene.h"
#include <math.h>
#include <string.h>

typedef struct {
    const Scene *s;
    Str out;
    int n;
} Lint;

/* First words of a text mark, to name it. */
static const char *words(Lint *l, const Mark *m) {
    Str t = str_new(l->out.a);
    for (int i = 0; i < m->n_run && t.n < 40; i++) str_add(&t, m->run[i].s);
    return t.s;
}

static void found(Lint *l, const Mark *m, const char *what, const char *more) {
    const char *id = m->group >= 0 ? l->s->groups[m->group].id : "figure";
    l->n++;
    if (l->n > 200) return;
    str_addf(&l->out, "%s: %s: %s%s%s\n", l->s->name, id, what, *more ? " " : "", more);
}

static bool finite_box(Box b) {
    return isfinite(b.x0) && isfinite(b.x1) && isfinite(b.y0) && isfinite(b.y1);
}

/* Is group g the group a, or inside it? */
static bool within(const Scene *s, int g, int a) {
    for (; g >= 0; g = s->groups[g].parent)
        if (g == a) return true;
    return a < 0;
}

static bool finite_mark(const Mark *m, Box b) {
    return finite_box(b) && isfinite(m->line) && isfinite(m->r) && isfinite(m->bend) &&
           isfinite(m->size);
}

static void canvas(Lint *l, const Mark *m, Box b) {
    if (!finite_mark(m, b)) {
        found(l, m, "a coordinate is not a number", "");
        return;
    }
    bool out = b.x0 < -0.01 || b.y0 < -0.01 || b.x1 > l->s->w + 0.01 || b.y1 > l->s->h + 0.01;
    if (out)
        found(l, m, m->kind == MARK_TEXT ? "text outside the canvas:" : "a mark outside the canvas",
              m->kind == MARK_TEXT ? words(l, m) : "");
}

/* Does a filled mark of group g, painted after mark `after` and before mark `before`, lie under all
 * of the box? A text on ground of its own hides what is below it. */
static bool own_ground(const Scene *s, int g, int after, int before, Box b) {
    for (int i = after + 1; g >= 0 && i < before; i++) {
        const Mark *m = &s->marks[i];
        if (m->group != g || m->fill == ROLE_NONE || m->kind == MARK_TEXT ||
            m->kind == MARK_HATCH || m->opacity < 1)
            continue;
        Box o = scene_box(m);
        if (o.x0 <= b.x0 && o.x1 >= b.x1 && o.y0 <= b.y0 + 1 && o.y1 >= b.y1 - 1) return true;
    }
    return false;
}

static void inside_frame(Lint *l, const Mark *m, Box b) {
    int of = m->group, at = (int)(m - l->s->marks); /* the innermost box that the text is in; a flag
                                                       is none of its words */
    for (; of >= 0 && !l->s->groups[of].framed; of = l->s->groups[of].parent)
        if (own_ground(l->s, of, -1, at, b)) return;
    if (of < 0) return;
    const Group *g = &l->s->groups[of];
    if (b.x0 < g->x + 1 || b.x1 > g->x + g->w - 1 || b.y0 < g->y - 1 || b.y1 > g->y + g->h + 1)
        found(l, m, "text wider than its box:", words(l, m));
}

static bool line_hits(const Mark *m, Box b) {
    Box in = {b.x0 + 0.5, b.y0 + 0.5, b.x1 - 0.5, b.y1 - 0.5};
    for (int i = 0; i + 1 < m->n; i++) {
        if (m->kind == MARK_HATCH && i % 2) continue;
        if (box_crossed(m->pt[i], m->pt[i + 1], in)) return true;
    }
    return false;
}

/* Text against every mark that is not a text. */
static void on_marks(Lint *l, int ti, Box b) {
    const Mark *t = &l->s->marks[ti];
    for (int i = 0; i < l->s->n_marks; i++) {
        const Mark *m = &l->s->marks[i];
        if (m->kind == MARK_TEXT || m->ground) continue;
        Box mb = scene_box(m);
        if (!finite_box(mb) || !box_overlap(b, mb, 0.5)) continue;
        if (m->kind == MARK_LINE || m->kind == MARK_HATCH) {
            if (line_hits(m, b)) found(l, t, "a line through a text:", words(l, t));
        } else if (m->fill != ROLE_NONE && !within(l->s, t->group, m->group) &&
                   !(i < ti && own_ground(l->s, t->group, i, ti, b))) {
            found(l, t, "text on a mark that is not its own:", words(l, t));
        }
    }
}

static void near_texts(Lint *l, int ti, Box b) {
    for (int i = ti + 1; i < l->s->n_marks; i++) {
        const Mark *m = &l->s->marks[i];
        if (m->kind != MARK_TEXT) continue;
        Box o = scene_box(m);
        if (!box_overlap(b, o, -1.5)) continue;
        found(l, &l->s->marks[ti], "two texts closer than 1.5 px:",
              arena_printf(l->out.a, "'%s' and '%s'", words(l, &l->s->marks[ti]), words(l, m)));
    }
}

/* A leader's words stand above or below its middle, and reach little beyond its ends: else they
 * seem to name the neighbours. */
static void leads(Lint *l, const Mark *m, Box b) {
    enum { REACH = 29 };
    const Group *g = m->group >= 0 ? &l->s->groups[m->group] : NULL;
    if (!g || strcmp(g->what, "leader")) return;
    for (int i = g->first; i < g->last; i++) {
        if (l->s->marks[i].kind == MARK_TEXT) continue;
        Box o = scene_box(&l->s->marks[i]);
        double mid = (o.x0 + o.x1) / 2;
        if (mid < b.x0 || mid > b.x1 || fmax(o.x0 - b.x0, b.x1 - o.x1) > REACH)
            found(l, m, "words that are not at their leader:", words(l, m));
    }
}

/* The words of a callout stand at the end of its line, which ends over or under them. */
static void called_out(Lint *l, const Mark *m, Box b) {
    enum { NEAR = 5 };
    const Group *g = m->group >= 0 ? &l->s->groups[m->group] : NULL;
    bool at = !g || strcmp(g->what, "callout") != 0;
    for (int i = g ? g->first : 0; g && i < g->last && !at; i++) {
        const Mark *line = &l->s->marks[i];
        for (int k = 0; line->kind == MARK_LINE && !line->ground && k < line->n; k++)
            at |= line->pt[k].x >= b.x0 && line->pt[k].x <= b.x1 && line->pt[k].y > b.y0 - NEAR &&
                  line->pt[k].y < b.y1 + NEAR;
    }
    if (!at) found(l, m, "words that are not at their line:", words(l, m));
}

/* Is the point in the mark: of a polygon within its sides, of another within its box? */
static bool covers(const Mark *m, Pt at) {
    const Box b = scene_box(m);
    bool in = m->kind != MARK_POLY;
    if (at.x < b.x0 || at.x > b.x1 || at.y < b.y0 || at.y > b.y1) return false;
    for (int i = 0, k = m->n - 1; m->kind == MARK_POLY && i < m->n; k = i++) {
        const Pt p = m->pt[i], q = m->pt[k];
        if ((p.y > at.y) != (q.y > at.y) && at.x < p.x + (q.x - p.x) * (at.y - p.y) / (q.y - p.y))
            in = !in;
    }
    return in;
}
/* What is seen under a point of a text, in every theme: of the filled marks painted before it that
 * cover the point the last, and through it those below. */
static void under(const Scene *s, int ti, Pt at, uint32_t seen[THEME_COUNT]) {
    for (int th = 0; th < THEME_COUNT; th++) seen[th] = theme_color((Theme)th, ROLE_PAPER);
    for (int i = 0; i < ti; i++) {
        const Mark *m = &s->marks[i];
        if (m->fill == ROLE_NONE || m->kind == MARK_TEXT) continue;
        if (!covers(m, at)) continue;
        for (int th = 0; th < THEME_COUNT; th++)
            seen[th] = theme_blend(theme_color((Theme)th, m->fill), seen[th], m->opacity);
    }
}

/* Contrast of every run with what lies under the text's ends and middle, in every theme. */
static void contrast(Lint *l, int ti, Box b) {
    static const double part[3] = {0.02, 0.5, 0.98};
    const Mark *m = &l->s->marks[ti];
    uint32_t last[THEME_COUNT] = {0}, seen[THEME_COUNT];
    for (int k = 0; k < 3; k++) {
        under(l->s, ti, (Pt){b.x0 + part[k] * (b.x1 - b.x0), (b.y0 + b.y1) / 2}, seen);
        if (k && !memcmp(seen, last, sizeof seen)) continue;
        memcpy(last, seen, sizeof seen);
        for (int i = 0; i < m->n_run; i++)
            for (int th = 0; th < THEME_COUNT; th++) {
                double c = theme_contrast(theme_color((Theme)th, m->run[i].role), seen[th]);
                if (c < 4.5)
                    found(
                        l, m, "contrast under 4.5:",
                        arena_printf(l->out.a, "%.2f %s (%s)", c, m->run[i].s, theme_names()[th]));
            }
    }
}

static void legible(Lint *l, int ti, Box b) {
    const Mark *m = &l->s->marks[ti];
    /* a slide that had to be scaled shows smaller letters; an A4 page has its own measure (7 pt) */
    double size = l->s->points ? m->size : m->size * l->s->scale;
    if (l->s->points && m->size * l->s->scale < 7 - 1e-6)
        found(l, m, "text smaller than 7 pt:", words(l, m));
    if (size < l->s->min_size - 1e-6)
        found(l, m, "text smaller than the preset allows:",
              arena_printf(l->out.a, "%.1f %s", m->size, words(l, m)));
    contrast(l, ti, b);
    if (fonts_unknown(l->s->fonts, m->run, m->n_run, m->size))
        found(l, m, "no font has a character of", words(l, m));
}

/* ---- meaning ---- */

static bool in_legend(const Scene *s, int g) {
    for (; g >= 0; g = s->groups[g].parent)
        if (!strcmp(s->groups[g].what, "legend")) return true;
    return false;
}

/* Fills that mean something by themselves. Axes are not among them: their pills carry the name. */
static const Role categories[] = {
    ROLE_COMPUTE, ROLE_COMPUTE_DARK, ROLE_COMPUTE_PALE, ROLE_COLL,        ROLE_COLL_PALE,
    ROLE_BAND,    ROLE_WEIGHT_FILL,  ROLE_BYTES,        ROLE_BYTES_2,     ROLE_SHARD,
    ROLE_SHARD_1, ROLE_SHARD_2,      ROLE_SHARD_3,      ROLE_LIVE,        ROLE_EQUAL,
    ROLE_ROUNDED, ROLE_SUSPECT,      ROLE_WRONG,        ROLE_WRONG_LATER, ROLE_WRONG_AFTER,
    ROLE_PART_SUM};

static bool has_tip(const Scene *s, int g) {
    for (; g >= 0; g = s->groups[g].parent)
        if (s->groups[g].tip && *s->groups[g].tip) return true;
    return false;
}

/* Do words stand in the mark's own group, so that its colour is not the only thing that says what
 * it is? */
static bool has_words(const Scene *s, const Mark *m) {
    if (m->group < 0) return false;
    const Group *g = &s->groups[m->group];
    for (int i = g->first; i < g->last; i++)
        if (s->marks[i].kind == MARK_TEXT) return true;
    return false;
}

/* Every fill with a meaning is in the legend or beside words of its own. */
static void meanings(Lint *l) {
    const Scene *s = l->s;
    for (size_t k = 0; k < sizeof categories / sizeof *categories; k++) {
        const Mark *used = NULL;
        bool explained = false;
        for (int i = 0; i < s->n_marks; i++) {
            const Mark *m = &s->marks[i];
            if (m->fill != categories[k] || m->kind == MARK_TEXT) continue;
            if (in_legend(s, m->group)) explained = true;
            else if (!used && !has_words(s, m)) used = m;
        }
        if (used && !explained)
            found(l, used, "a colour that the legend does not explain:",
                  arena_printf(l->out.a, "#%06X", theme_color(THEME_LIGHT, categories[k])));
    }
}

/* Marks that a reader may ask about: all but the ground, rulings, and what stands around the
 * figure. */
static bool asks_for_words(const Scene *s, const Mark *m) {
    static const Role ruling[] = {ROLE_GRID, ROLE_FAINT, ROLE_TICK, ROLE_PAPER};
    Role r = m->fill != ROLE_NONE ? m->fill : m->stroke;
    for (size_t i = 0; i < sizeof ruling / sizeof *ruling; i++)
        if (r == ruling[i]) return false;
    return m->kind != MARK_TEXT && !m->ground && r != ROLE_NONE && !in_legend(s, m->group);
}
static void tooltips(Lint *l) {
    for (int i = 0; i < l->s->n_marks; i++) {
        const Mark *m = &l->s->marks[i];
        if (asks_for_words(l->s, m) && !has_tip(l->s, m->group))
            found(l, m, "a mark without a tooltip",
                  m->group >= 0 ? l->s->groups[m->group].what : "");
    }
}

static void arrow_end(Lint *l, const Arrow *a) {
    const Mark *m = &l->s->marks[a->mark];
    if (!isfinite(a->tip.x) || !isfinite(a->tip.y)) {
        found(l, m, "an arrow ends nowhere", "");
        return;
    }
    if (a->to < 0) return;
    if (a->to >= l->s->n_groups || !l->s->groups[a->to].framed) {
        found(l, m, "an arrow ends on something without a border", "");
        return;
    }
    const Group *g = &l->s->groups[a->to];
    double dx = fmax(fmax(g->x - a->tip.x, a->tip.x - g->x - g->w), 0);
    double dy = fmax(fmax(g->y - a->tip.y, a->tip.y - g->y - g->h), 0);
    double edge = fmin(fmin(fabs(a->tip.x - g->x), fabs(a->tip.x - g->x - g->w)),
                       fmin(fabs(a->tip.y - g->y), fabs(a->tip.y - g->y - g->h)));
    if (hypot(dx, dy) > 1.5 || edge > 1.5)
        found(l, m, "an arrow does not end on the border of", g->id);
}

int scene_lint(const Scene *s, Arena *arena, const char **report) {
    Lint l = {s, str_new(arena), 0};
    if (!*s->title) str_addf(&l.out, "%s: no title\n", s->name), l.n++;
    if (!*s->desc) str_addf(&l.out, "%s: no description\n", s->name), l.n++;
    if (!(s->w > 0 && s->h > 0 && isfinite(s->w) && isfinite(s->h)))
        str_addf(&l.out, "%s: no canvas\n", s->name), l.n++;
    if (!(s->off_x >= -0.01 && s->off_x + s->scale * s->w <= s->page_w + 0.01 &&
          s->off_y >= -0.01 && s->off_y + s->scale * s->h <= s->page_h + 0.01))
        str_addf(&l.out, "%s: the page is too small\n", s->name), l.n++;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        Box b = scene_box(m);
        canvas(&l, m, b);
        if (m->kind != MARK_TEXT || !finite_box(b)) continue;
        inside_frame(&l, m, b);
        leads(&l, m, b);
        called_out(&l, m, b);
        near_texts(&l, i, b);
        on_marks(&l, i, b);
        legible(&l, i, b);
    }
    for (int i = 0; i < s->n_arrows; i++) arrow_end(&l, &s->arrows[i]);
    meanings(&l);
    tooltips(&l);
    *report = l.out.s;
    return l.n;
}
