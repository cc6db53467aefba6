/* The SVG painter: writes the display list as SVG 1.1 by hand, because Cairo turns text into
 * outlines and knows neither titles nor links. Text stays text (search, copy, screen readers) and
 * brings the letters it shows along, every group has an id and its tooltip as <title>. Numbers have
 * at most two decimals, so that two runs give the same bytes. */
#include "render/paint/paint.h"
#include "render/paint/svg_play.h"
#include "render/paint/svg_same.h"
#include "render/paint/svg_style.h"
#include "base/text.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

static void put(Sink *o, const char *t) { sink_add(o, t, strlen(t)); }

/* A length with at most two decimals and no trailing zeros; what is no number becomes 0 (the lint
 * reports it). */
static void num(Sink *o, double v) {
    char b[40];
    if (!isfinite(v) || fabs(v) > 1e9) v = 0;
    long long k = llround(v * 100);
    unsigned long long a = k < 0 ? (unsigned long long)-k : (unsigned long long)k;
    int n = snprintf(b, sizeof b, "%s%llu", k < 0 ? "-" : "", a / 100);
    if (a % 100) {
        n += snprintf(b + n, sizeof b - (size_t)n, ".%02llu", a % 100);
        if (b[n - 1] == '0') b[n - 1] = 0;
    }
    put(o, b);
}
static void attr_num(Sink *o, const char *name, double v) {
    put(o, " ");
    put(o, name);
    put(o, "=\"");
    num(o, v);
    put(o, "\"");
}
static void attr_text(Sink *o, const char *name, const char *v) {
    put(o, " ");
    put(o, name);
    put(o, "=\"");
    put(o, v);
    put(o, "\"");
}

/* Text of XML; line feeds stay. Most texts are plain. */
static void escape(Sink *o, const char *t) {
    Str s = {0};
    for (const char *end; *t; t = end) {
        for (end = t; (*end >= 0x20 && *end < 0x7F && !strchr("&<>\"", *end)) || *end == '\n';
             end++)
            continue;
        sink_add(o, t, (size_t)(end - t));
        for (t = end;
             *end && *end != '\n' && (*end < 0x20 || *end >= 0x7F || strchr("&<>\"", *end)); end++)
            continue;
        if (end == t) continue;
        if (!s.a) s = str_new(o->arena);
        text_add_xml(&s, arena_strndup(o->arena, t, (size_t)(end - t)));
        sink_add(o, s.s, s.n);
        s.n = 0;
    }
}

static void color(Sink *o, const Scene *s, const char *name, Role r) {
    if (r == ROLE_NONE) {
        attr_text(o, name, "none");
        return;
    }
    char b[16];
    snprintf(b, sizeof b, "#%06X", theme_color(s->theme, r));
    attr_text(o, name, b);
}

static void look(Sink *o, const Scene *s, const Mark *m) {
    color(o, s, "fill", m->fill);
    if (m->fill != ROLE_NONE && m->opacity < 1) attr_num(o, "fill-opacity", m->opacity);
    if (m->stroke == ROLE_NONE) return;
    color(o, s, "stroke", m->stroke);
    attr_num(o, "stroke-width", m->line);
    if (!m->n_dash) return;
    put(o, " stroke-dasharray=\"");
    for (int i = 0; i < m->n_dash; i++) {
        if (i) put(o, " ");
        num(o, m->dash[i]);
    }
    put(o, "\"");
}

static void point(Sink *o, const char *command, Pt p) {
    put(o, command);
    num(o, p.x);
    put(o, " ");
    num(o, p.y);
}

/* A corner of radius r: a quadratic curve from r before it to r behind it. */
static void corner(Sink *o, Pt a, Pt b, Pt c, double r) {
    double la = hypot(a.x - b.x, a.y - b.y), lc = hypot(c.x - b.x, c.y - b.y);
    double k = fmin(r, fmin(la, lc) / 2);
    if (k <= 0 || la <= 0 || lc <= 0) {
        point(o, "L", b);
        return;
    }
    point(o, "L", (Pt){b.x + (a.x - b.x) * k / la, b.y + (a.y - b.y) * k / la});
    point(o, "Q", b);
    point(o, " ", (Pt){b.x + (c.x - b.x) * k / lc, b.y + (c.y - b.y) * k / lc});
}

static void paint_path(Sink *o, const Scene *s, const Mark *m) {
    put(o, "<path d=\"");
    for (int i = 0; i < m->n; i++) {
        bool start = i == 0 || (m->kind == MARK_HATCH && i % 2 == 0);
        if (start) point(o, "M", m->pt[i]);
        else if (m->kind == MARK_LINE && i + 1 < m->n)
            corner(o, m->pt[i - 1], m->pt[i], m->pt[i + 1], m->bend);
        else point(o, "L", m->pt[i]);
    }
    put(o, m->kind == MARK_POLY ? "Z\"" : "\"");
    look(o, s, m);
    if (m->kind != MARK_HATCH && m->stroke != ROLE_NONE && !m->miter)
        attr_text(o, "stroke-linejoin", "round");
    put(o, "/>\n");
}

static void paint_rect(Sink *o, const Scene *s, const Mark *m) {
    put(o, "<rect");
    attr_num(o, "x", m->x);
    attr_num(o, "y", m->y);
    attr_num(o, "width", fmax(0, m->w));
    attr_num(o, "height", fmax(0, m->h));
    if (m->r > 0) attr_num(o, "rx", m->r);
    look(o, s, m);
    put(o, "/>\n");
}

static void paint_circle(Sink *o, const Scene *s, const Mark *m) {
    put(o, "<circle");
    attr_num(o, "cx", m->x);
    attr_num(o, "cy", m->y);
    attr_num(o, "r", fmax(0, m->r));
    look(o, s, m);
    put(o, "/>\n");
}

static void run_look(Sink *o, const Scene *s, const Run *r) {
    color(o, s, "fill", r->role);
    if (r->weight != REGULAR) attr_num(o, "font-weight", r->weight);
    if (r->italic) attr_text(o, "font-style", "italic");
    if (r->underline) attr_text(o, "text-decoration", "underline");
}

/* Does it have spaces that XML would drop? Browsers are told by the style sheet, others here. */
static bool spaced(const Mark *m) {
    char before = ' ';
    for (int i = 0; i < m->n_run; i++)
        for (const char *p = m->run[i].s; *p; before = *p++)
            if (*p == ' ' && before == ' ') return true;
    return before == ' ';
}

static void paint_words(Sink *o, const Scene *s, const Mark *m) {
    static const char *const anchor[] = {NULL, "middle", "end"};
    put(o, "<text");
    if (spaced(m)) attr_text(o, "xml:space", "preserve");
    attr_num(o, "x", m->x);
    attr_num(o, "y", m->y);
    attr_num(o, "font-size", m->size);
    if (anchor[m->align]) attr_text(o, "text-anchor", anchor[m->align]);
    if (m->n_run == 1) {
        run_look(o, s, m->run);
        put(o, ">");
        escape(o, m->run[0].s);
    } else {
        put(o, ">");
        for (int i = 0; i < m->n_run; i++) {
            put(o, "<tspan");
            run_look(o, s, &m->run[i]);
            put(o, ">");
            escape(o, m->run[i].s);
            put(o, "</tspan>");
        }
    }
    put(o, "</text>\n");
}

static void paint_mark(Sink *o, const Scene *s, const Mark *m) {
    static void (*const painter[])(Sink *, const Scene *, const Mark *) = {
        [MARK_RECT] = paint_rect,     [MARK_POLY] = paint_path,  [MARK_LINE] = paint_path,
        [MARK_CIRCLE] = paint_circle, [MARK_HATCH] = paint_path, [MARK_TEXT] = paint_words};
    painter[m->kind](o, s, m);
}

static void open_group(Sink *o, const Scene *s, const Group *g, int same) {
    if (g->href) {
        put(o, "<a xlink:href=\"");
        escape(o, g->href);
        put(o, "\">\n");
    }
    put(o, "<g id=\"");
    put(o, s->name);
    put(o, "-");
    put(o, g->id);
    put(o, "\" class=\"");
    escape(o, g->what);
    put(o, "\"");
    svg_same_mark(o, same);
    put(o, ">");
    if (g->tip) {
        put(o, "<title>");
        escape(o, g->tip);
        put(o, "</title>");
    }
    put(o, "\n");
}
static void close_group(Sink *o, const Group *g) { put(o, g->href ? "</g></a>\n" : "</g>\n"); }

/* Closes and opens groups until `to` is the innermost open one. */
static int move_to(Sink *o, const Scene *s, const int *same, int at, int to) {
    int path[64], n = 0;
    for (int g = to; g >= 0 && n < 64; g = s->groups[g].parent) path[n++] = g;
    for (;;) {
        int i = 0;
        while (i < n && path[i] != at) i++;
        if (at < 0 || i < n) {
            for (int k = (at < 0 ? n : i) - 1; k >= 0; k--)
                open_group(o, s, &s->groups[path[k]], same[path[k]]);
            return to;
        }
        close_group(o, &s->groups[at]);
        at = s->groups[at].parent;
    }
}

static void head(Sink *o, const Scene *s) {
    char b[64];
    put(o, "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<svg xmlns=\"http://www.w3.org/2000/svg\" "
           "xmlns:xlink=\"http://www.w3.org/1999/xlink\" version=\"1.1\"");
    attr_text(o, "id", s->name);
    attr_num(o, "width", s->page_w);
    if (s->points) o->n--, put(o, "pt\"");
    attr_num(o, "height", s->page_h);
    if (s->points) o->n--, put(o, "pt\"");
    put(o, " viewBox=\"0 0 ");
    num(o, s->page_w);
    put(o, " ");
    num(o, s->page_h);
    snprintf(b, sizeof b, "\" role=\"img\" aria-labelledby=\"");
    put(o, b);
    put(o, s->name);
    put(o, "-t ");
    put(o, s->name);
    put(o, "-d\">\n<title id=\"");
    put(o, s->name);
    put(o, "-t\">");
    escape(o, s->title);
    put(o, s->builds ? ". A click plays it" : "");
    put(o, "</title>\n<desc id=\"");
    put(o, s->name);
    put(o, "-d\">");
    escape(o, s->desc);
    put(o, "</desc>\n");
}

static void paint_marks(Sink *o, const Scene *s) {
    int at = -1, step = 0, things;
    SvgPlay play = svg_play(s);
    const int *same = svg_same(s, o->arena, &things);
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        int to = s->builds ? m->step : 0;
        bool moves = m->group != at;
        if (step && (moves || to != step)) put(o, "</g>\n");
        if (moves) at = move_to(o, s, same, at, m->group);
        if (to && (moves || to != step)) svg_play_open(&play, o, to);
        step = to;
        paint_mark(o, s, m);
    }
    if (step) put(o, "</g>\n");
    move_to(o, s, same, at, -1);
}

void paint_svg(const Scene *s, Sink *o) {
    assert(s->open < 0 && "a finished scene: every group is closed");
    head(o, s);
    const char *families = svg_style(s, o);
    if (s->builds) svg_play_begin(s, o);
    put(o, "<rect");
    attr_num(o, "width", s->page_w);
    attr_num(o, "height", s->page_h);
    color(o, s, "fill", ROLE_PAPER);
    put(o, "/>\n<g");
    attr_text(o, "font-family", families);
    put(o, " style=\"font-feature-settings:'tnum'\"");
    if (s->scale != 1 || s->off_x != 0 || s->off_y != 0) {
        char b[96];
        snprintf(b, sizeof b, " transform=\"translate(%.3f %.3f) scale(%.5f)\"", s->off_x, s->off_y,
                 s->scale);
        put(o, b);
    }
    put(o, ">\n");
    paint_marks(o, s);
    put(o, s->builds ? "</g>\n</g>\n</svg>\n" : "</g>\n</svg>\n");
}
