/* Building the display list: marks, groups, arrows, text broken into lines. Decides shapes (an
 * arrow head is 8 long, 7 wide, notched at 80 %), never colours. Refuses to look at a trace. */
#include "render/scene/scene.h"
#include "base/text.h"
#include <assert.h>
#include <math.h>
#include <string.h>

Scene *scene_new(Arena *arena, Fonts *fonts, Theme theme, double w, double h) {
    assert(w >= 0 && h >= 0);
    Scene *s = ARENA_NEW(arena, Scene);
    s->arena = arena;
    s->fonts = fonts;
    s->theme = theme;
    s->w = s->page_w = w;
    s->h = s->page_h = h;
    s->scale = 1;
    s->min_size = 11.5;
    s->px_width = 1600;
    s->name = "figure";
    s->title = s->desc = "";
    s->open = -1;
    return s;
}

/* The slot of an id in the table of taken ones: its own, or the free one where it would stand. */
static const char **id_slot(const char **slot, int slots, const char *id) {
    unsigned h = 2166136261u; /* FNV-1a */
    for (const char *c = id; *c; c++) h = (h ^ (unsigned char)*c) * 16777619u;
    int i = (int)(h & (unsigned)(slots - 1));
    while (slot[i] && strcmp(slot[i], id)) i = (i + 1) & (slots - 1);
    return &slot[i];
}
/* At most half of the table is used, so that looking up stays short with many thousand groups. */
static void ids_grow(Scene *s) {
    if (2 * s->n_ids < s->id_slots) return;
    int slots = s->id_slots ? 2 * s->id_slots : 64;
    const char **wider = ARENA_ARRAY(s->arena, const char *, slots);
    for (int i = 0; i < s->id_slots; i++)
        if (s->ids[i]) *id_slot(wider, slots, s->ids[i]) = s->ids[i];
    s->ids = wider;
    s->id_slots = slots;
}

char *scene_clean_id(Arena *a, const char *id) {
    char *t = arena_strdup(a, id && *id ? id : "g");
    for (char *c = t; *c; c++)
        if (!((*c >= 'a' && *c <= 'z') || (*c >= 'A' && *c <= 'Z') || (*c >= '0' && *c <= '9') ||
              strchr("._-", *c)))
            *c = '-';
    return t;
}

int scene_begin(Scene *s, const char *what, const char *id, const char *tip) {
    const char *base = scene_clean_id(s->arena, id), *unique = base;
    ids_grow(s);
    const char **slot = id_slot(s->ids, s->id_slots, base);
    for (int i = 2; *slot; i++) {
        unique = arena_printf(s->arena, "%s_%d", base, i);
        slot = id_slot(s->ids, s->id_slots, unique);
    }
    *slot = unique;
    s->n_ids++;
    Group *g = ARENA_PUSH(s->arena, s->groups, s->n_groups, s->cap_groups);
    *g = (Group){.id = unique,
                 .what = what,
                 .tip = tip,
                 .parent = s->open,
                 .first = s->n_marks,
                 .last = s->n_marks};
    s->open = s->n_groups - 1;
    return s->open;
}

void scene_end(Scene *s) {
    assert(s->open >= 0 && "every scene_end has its scene_begin");
    Group *g = &s->groups[s->open];
    g->last = s->n_marks;
    s->open = g->parent;
}

int scene_at(Scene *s, int step) {
    int before = s->step;
    s->step = step > 0 ? step : 0;
    return before;
}

void scene_link(Scene *s, int a, int b) {
    assert(a < s->n_groups && b < s->n_groups);
    if (a < 0 || b < 0 || a == b) return;
    s->groups[a].href = arena_printf(s->arena, "#%s-%s", s->name, s->groups[b].id);
    s->groups[b].href = arena_printf(s->arena, "#%s-%s", s->name, s->groups[a].id);
}

void scene_same(Scene *s, const char *thing) {
    assert(s->open >= 0);
    s->groups[s->open].same = thing && *thing ? thing : NULL;
}

void scene_frame(Scene *s, double x, double y, double w, double h) {
    assert(s->open >= 0 && w >= 0 && h >= 0);
    Group *g = &s->groups[s->open];
    g->framed = true;
    g->x = x;
    g->y = y;
    g->w = w;
    g->h = h;
}

static Mark *add(Scene *s, MarkKind kind, Look look) {
    Mark *m = ARENA_PUSH(s->arena, s->marks, s->n_marks, s->cap_marks);
    *m = (Mark){.kind = kind,
                .group = s->open,
                .step = s->step,
                .fill = look.fill,
                .opacity = 1,
                .stroke = look.line > 0 ? look.stroke : ROLE_NONE,
                .line = look.line};
    return m;
}

static void set_area(Mark *m, Area a) {
    m->x = a.x;
    m->y = a.y;
    m->w = a.w;
    m->h = a.h;
}

Mark *scene_rect(Scene *s, Area a, double r, Look look) {
    Mark *m = add(s, MARK_RECT, look);
    set_area(m, a);
    m->r = fmin(r, fmin(a.w, a.h) / 2);
    return m;
}

Mark *scene_circle(Scene *s, double x, double y, double r, Look look) {
    Mark *m = add(s, MARK_CIRCLE, look);
    m->x = x;
    m->y = y;
    m->r = r;
    return m;
}

static void set_points(Scene *s, Mark *m, const Pt *pt, int n) {
    assert(n >= 2);
    m->pt = arena_memdup(s->arena, pt, (size_t)n * sizeof *pt);
    m->n = n;
}

Mark *scene_poly(Scene *s, const Pt *pt, int n, Look look) {
    Mark *m = add(s, MARK_POLY, look);
    set_points(s, m, pt, n);
    return m;
}

Mark *scene_hexagon(Scene *s, Area a, Look look) {
    double x = a.x, y = a.y, w = a.w, h = a.h, p = fmin(12, h * 0.4);
    Pt pt[6] = {{x, y + h / 2},     {x + p, y},         {x + w - p, y},
                {x + w, y + h / 2}, {x + w - p, y + h}, {x + p, y + h}};
    Mark *m = scene_poly(s, pt, 6, look);
    m->miter = true;
    return m;
}

Mark *scene_line(Scene *s, const Pt *pt, int n, Role stroke, double line) {
    Mark *m = add(s, MARK_LINE, (Look){ROLE_NONE, stroke, line});
    set_points(s, m, pt, n);
    m->bend = 6;
    return m;
}

Mark *scene_segment(Scene *s, Pt from, Pt to, Role stroke, double line) {
    Pt pt[2] = {from, to};
    return scene_line(s, pt, 2, stroke, line);
}

/* Lines x + y = k clipped to the area, as pairs of points. */
Mark *scene_hatch(Scene *s, Area a, Role stroke, double pitch, double line) {
    double x = a.x, y = a.y, w = a.w, h = a.h;
    double step = pitch * sqrt(2.0);
    int max = w > 0 && h > 0 && pitch > 0 ? (int)fmin((w + h) / step + 2, 4000) : 0;
    Pt *pt = ARENA_ARRAY(s->arena, Pt, 2 * max + 2);
    int n = 0;
    for (int i = 0; i < max; i++) {
        double k = step * (i + 0.5);
        if (k >= w + h) break;
        pt[n++] = (Pt){x + fmin(k, w), y + fmax(0, k - w)};
        pt[n++] = (Pt){x + fmax(0, k - h), y + fmin(k, h)};
    }
    Mark *m = add(s, MARK_HATCH, (Look){ROLE_NONE, stroke, line});
    set_area(m, a);
    m->pt = pt;
    m->n = n;
    m->ground = true;
    return m;
}

/* The head with its tip at `tip`, pointing along the unit vector (dx, dy). */
static void arrow_head(Scene *s, Pt tip, double dx, double dy, Role role, bool big) {
    double len = big ? 12 : 8, half = big ? 5.5 : 3.5, notch = 0.8 * len;
    Pt pt[4] = {tip,
                {tip.x - len * dx - half * dy, tip.y - len * dy + half * dx},
                {tip.x - notch * dx, tip.y - notch * dy},
                {tip.x - len * dx + half * dy, tip.y - len * dy - half * dx}};
    scene_poly(s, pt, 4, (Look){role, ROLE_NONE, 0});
}

void scene_arrow(Scene *s, const Pt *pt, int n, ArrowLook look, int to) {
    assert(n >= 2 && to < s->n_groups);
    static const double dash[2] = {4, 3};
    Pt *q = arena_memdup(s->arena, pt, (size_t)n * sizeof *pt);
    Pt tip = q[n - 1];
    double dx = tip.x - q[n - 2].x, dy = tip.y - q[n - 2].y, len = hypot(dx, dy);
    if (len > 0) dx /= len, dy /= len;
    double back = look.big ? 9.6 : 6.4;
    q[n - 1] = (Pt){tip.x - back * dx, tip.y - back * dy};
    scene_line(s, q, n, look.role, look.line);
    int index = s->n_marks - 1;
    if (look.partial && len > 12) {
        double ox = 4.5 * dy, oy = 4.5 * dx;
        Pt p0 = q[n - 2];
        Mark *d =
            scene_segment(s, (Pt){p0.x + ox, p0.y - oy},
                          (Pt){tip.x + ox - 8 * dx, tip.y - oy - 8 * dy}, look.role, look.line);
        d->dash = dash;
        d->n_dash = 2;
    }
    arrow_head(s, tip, dx, dy, look.role, look.big);
    *ARENA_PUSH(s->arena, s->arrows, s->n_arrows, s->cap_arrows) =
        (Arrow){.mark = index, .tip = tip, .to = to};
}

double scene_runs(Scene *s, Pt at, Align align, double size, const Run *run, int n) {
    if (n <= 0) return 0;
    Mark *m = add(s, MARK_TEXT, (Look){ROLE_NONE, ROLE_NONE, 0});
    m->run = arena_memdup(s->arena, run, (size_t)n * sizeof *run);
    for (int i = 0; i < n; i++)
        m->run[i].s = arena_strdup(s->arena, text_visible(s->arena, run[i].s ? run[i].s : ""));
    m->n_run = n;
    m->x = at.x;
    m->y = at.y;
    m->align = align;
    m->size = size;
    m->w = fonts_width(s->fonts, m->run, n, size);
    return m->w;
}

double scene_text(Scene *s, double x, double y, TextLook look, const char *text) {
    Run run = {.s = text, .weight = look.weight, .role = look.role};
    return text && *text ? scene_runs(s, (Pt){x, y}, look.align, look.size, &run, 1) : 0;
}

double scene_textf(Scene *s, double x, double y, TextLook look, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *t = arena_vprintf(s->arena, fmt, ap);
    va_end(ap);
    return scene_text(s, x, y, look, t);
}

double scene_width(Scene *s, double size, int weight, const char *text) {
    if (!text || !*text) return 0;
    Run run = {.s = text_visible(s->arena, text), .weight = weight, .role = ROLE_INK};
    return fonts_width(s->fonts, &run, 1, size);
}

const char *scene_fit(Scene *s, const char *text, double w, double size, int weight) {
    if (scene_width(s, size, weight, text) <= w) return text;
    size_t n = strlen(text);
    while (n > 0) {
        do n--;
        while (n > 0 && ((unsigned char)text[n] & 0xC0) == 0x80);
        while (n > 0 && text[n - 1] == ' ') n--;
        const char *t = arena_printf(s->arena, "%.*s…", (int)n, text);
        if (scene_width(s, size, weight, t) <= w) return t;
    }
    return "…";
}

/* Does a unit stand at p, so that the number before it must stay on its line? */
static bool unit_at(const char *p) {
    static const char *const unit[] = {"%",    "B",    "KiB",     "MiB", "GiB", "TiB",
                                       "s",    "ms",   "µs",      "ns",  "GB",  "TB",
                                       "GB/s", "TB/s", "TFLOP/s", "×",   "→"};
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++) {
        size_t n = strlen(unit[i]);
        if (!strncmp(p, unit[i], n) && (!p[n] || strchr(" .,)", p[n]))) return true;
    }
    return false;
}

/* Next place after p where the text may break: behind a space, or behind `sep`; the end if there is
 * none. */
static const char *break_after(const char *p, const char *sep) {
    for (const char *q = strstr(p, sep); q; q = strstr(q, sep)) {
        q += strlen(sep);
        if (strcmp(sep, " ") || !unit_at(q)) return q;
    }
    return p + strlen(p);
}

int scene_wrap(Scene *s, const char *text, TextColumn c, const char **line) {
    const char *by = c.sep ? c.sep : " ";
    size_t drop = strlen(by); /* the separator at the end of a line is not printed */
    int n = 0;
    while (*text && n < c.max) {
        const char *end = break_after(text, by), *next;
        while (*end) {
            next = break_after(end, by);
            size_t keep = (size_t)(next - text) - (*next ? drop : 0);
            if (scene_width(s, c.size, c.weight, arena_strndup(s->arena, text, keep)) > c.w) break;
            end = next;
        }
        if (n == c.max - 1 && *end) {
            line[n++] = scene_fit(s, text, c.w, c.size, c.weight);
            return n;
        }
        size_t keep = (size_t)(end - text) - (*end ? drop : 0);
        line[n++] = scene_fit(s, arena_strndup(s->arena, text, keep), c.w, c.size, c.weight);
        text = end;
    }
    return n;
}

static Box points_box(const Mark *m) {
    Box b = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < m->n; i++) {
        b.x0 = fmin(b.x0, m->pt[i].x);
        b.x1 = fmax(b.x1, m->pt[i].x);
        b.y0 = fmin(b.y0, m->pt[i].y);
        b.y1 = fmax(b.y1, m->pt[i].y);
    }
    return b;
}

Box scene_box(const Mark *m) {
    static const double shift[] = {[ALIGN_LEFT] = 0, [ALIGN_MIDDLE] = 0.5, [ALIGN_RIGHT] = 1};
    Box b;
    switch (m->kind) {
    case MARK_RECT:
    case MARK_HATCH: b = (Box){m->x, m->y, m->x + m->w, m->y + m->h}; break;
    case MARK_CIRCLE: b = (Box){m->x - m->r, m->y - m->r, m->x + m->r, m->y + m->r}; break;
    case MARK_TEXT: {
        double x = m->x - shift[m->align] * m->w;
        b = (Box){x, m->y - 0.76 * m->size, x + m->w, m->y + 0.22 * m->size};
        break;
    }
    default: b = points_box(m); break;
    }
    double half = m->stroke != ROLE_NONE && m->kind != MARK_HATCH ? m->line / 2 : 0;
    return (Box){b.x0 - half, b.y0 - half, b.x1 + half, b.y1 + half};
}

bool box_crossed(Pt p, Pt q, Box b) {
    if ((p.x < b.x0 && q.x < b.x0) || (p.x > b.x1 && q.x > b.x1) || (p.y < b.y0 && q.y < b.y0) ||
        (p.y > b.y1 && q.y > b.y1))
        return false; /* most are */
    double t0 = 0, t1 = 1, d[2] = {q.x - p.x, q.y - p.y};
    double lo[2] = {b.x0 - p.x, b.y0 - p.y}, hi[2] = {b.x1 - p.x, b.y1 - p.y};
    for (int i = 0; i < 2; i++) {
        if (fabs(d[i]) < 1e-9) {
            if (lo[i] > 0 || hi[i] < 0) return false;
            continue;
        }
        double a = lo[i] / d[i], c = hi[i] / d[i];
        t0 = fmax(t0, fmin(a, c));
        t1 = fmin(t1, fmax(a, c));
    }
    return t0 <= t1;
}
