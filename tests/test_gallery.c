/* The proof of the pictures: every view of every plan that is shipped (the planted bugs too), on
 * every page preset, held against the layout lint, an XML parser, the trace that it was made from,
 * and itself, drawn elsewhere. `test_gallery --draw DIR PLAN...` draws all views of some plans and
 * is what the test of determinism starts. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"
#include "render/paint/paint.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "render/furniture/words.h"
#include "support/records.h"
#include "support/support.h"
#include <expat.h>
#include <glob.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { MARK_BUDGET = 20000, BYTE_BUDGET = 2 << 20 };
static const char *const presets[] = {"wide", "column", "slide", "a4"};
static const char *const themes[] = {"light", "dark", "print"};
static const char *const folders[] = {"plans/*.yaml", "plans/bugs/*.yaml", "plans/models/*.yaml",
                                      "plans/shape-only/*.yaml"};

/* ---- reading an SVG ---- */

typedef struct {
    const char **item;
    int n, cap;
} Words;
static void names_add(Arena *a, Words *l, const char *s) {
    *ARENA_PUSH(a, l->item, l->n, l->cap) = s;
}
static bool names_have(const Words *l, const char *s) {
    for (int i = 0; i < l->n; i++)
        if (!strcmp(l->item[i], s)) return true;
    return false;
}

typedef struct {
    Arena *a;
    XML_Parser parser;
    Words ids, texts, tips, open, links;
    const char *title, *desc, *role, *labels, *problem;
    const char *tip_of[64]; /* by depth: id of the group whose tooltip is read */
    Str text;               /* of the element that is read */
    int depth, marks;
    int group[64]; /* depth of the groups that are open */
} Svg;

static const char *attribute(const char **attr, const char *name) {
    for (int i = 0; attr[i]; i += 2)
        if (!strcmp(attr[i], name)) return attr[i + 1];
    return NULL;
}

/* Numbers must be numbers, colours colours. */
static bool good_value(const char *name, const char *v) {
    static const char *const lengths[] = {"x",  "y",     "cx",     "cy",           "r",
                                          "rx", "width", "height", "stroke-width", "font-size"};
    for (size_t i = 0; i < sizeof lengths / sizeof *lengths; i++)
        if (!strcmp(name, lengths[i])) {
            char *end;
            double d = strtod(v, &end);
            return end != v && isfinite(d) && (!*end || !strcmp(end, "pt"));
        }
    if (!strcmp(name, "fill") || !strcmp(name, "stroke"))
        return !strcmp(v, "none") ||
               (*v == '#' && strlen(v) == 7 && strspn(v + 1, "0123456789ABCDEF") == 6);
    if (!strcmp(name, "d")) return !strpbrk(v, "naif") && *v == 'M';
    return true;
}

static void start(void *data, const char *name, const char **attr) {
    static const char *const known[] = {"svg",    "title", "desc", "g",     "a",     "rect",
                                        "circle", "path",  "text", "tspan", "style", NULL};
    Svg *s = data;
    int i = 0;
    while (known[i] && strcmp(known[i], name)) i++;
    if (!known[i]) s->problem = arena_printf(s->a, "element <%s>", name);
    for (int k = 0; attr[k]; k += 2)
        if (!good_value(attr[k], attr[k + 1]))
            s->problem = arena_printf(s->a, "%s=\"%s\"", attr[k], attr[k + 1]);
    const char *id = attribute(attr, "id"), *link = attribute(attr, "xlink:href");
    id = id ? arena_strdup(s->a, id) : NULL;
    if (id && names_have(&s->ids, id))
        s->problem = arena_printf(s->a, "two elements with the id %s", id);
    if (id) names_add(s->a, &s->ids, id);
    if (link) names_add(s->a, &s->links, arena_strdup(s->a, link));
    if (s->depth == 0 || !strcmp(name, "svg")) {
        s->role = arena_strdup(s->a, attribute(attr, "role") ? attribute(attr, "role") : "");
        s->labels = arena_strdup(
            s->a, attribute(attr, "aria-labelledby") ? attribute(attr, "aria-labelledby") : "");
    }
    s->marks += i >= 5 && i <= 8;
    names_add(s->a, &s->open, arena_strdup(s->a, name));
    if (s->depth < 64) s->tip_of[s->depth] = id;
    s->depth++;
    if (strcmp(name, "tspan")) s->text = str_new(s->a);
}
static void letters(void *data, const char *t, int n) {
    str_addn(&((Svg *)data)->text, t, (size_t)n);
}
static void end(void *data, const char *name) {
    Svg *s = data;
    s->depth--;
    s->open.n--;
    const char *t = arena_strdup(s->a, s->text.s);
    if (!strcmp(name, "text")) names_add(s->a, &s->texts, t);
    if (!strcmp(name, "desc")) s->desc = t;
    if (!strcmp(name, "title") && s->depth == 1) s->title = t;
    if (!strcmp(name, "title") && s->depth > 1) { /* "id|tooltip" */
        const char *id = s->depth <= 64 ? s->tip_of[s->depth - 1] : NULL;
        names_add(s->a, &s->tips, arena_printf(s->a, "%s|%s", id ? id : "", t));
    }
}

/* Parses; a problem fails the test. */
static Svg read_svg(Arena *a, const char *text, size_t n, const char *what) {
    Svg s = {.a = a, .text = str_new(a)};
    s.parser = XML_ParserCreate("UTF-8");
    XML_SetUserData(s.parser, &s);
    XML_SetElementHandler(s.parser, start, end);
    XML_SetCharacterDataHandler(s.parser, letters);
    if (XML_Parse(s.parser, text, (int)n, 1) != XML_STATUS_OK)
        fail_msg("%s: line %lu: %s", what, XML_GetCurrentLineNumber(s.parser),
                 XML_ErrorString(XML_GetErrorCode(s.parser)));
    if (s.problem) fail_msg("%s: %s", what, s.problem);
    for (int i = 0; i < s.links.n; i++) /* a click leads to a mark of the same figure */
        if (s.links.item[i][0] == '#' && !names_have(&s.ids, s.links.item[i] + 1))
            fail_msg("%s: link to %s, which is not there", what, s.links.item[i]);
    XML_ParserFree(s.parser);
    return s;
}

/* All words, as one line: a sentence that was wrapped is one again. */
static const char *words_of(const Svg *s) {
    Str t = str_new(s->a);
    for (int i = 0; i < s->texts.n; i++) str_addf(&t, "%s%s", i ? " " : "", s->texts.item[i]);
    return t.s;
}
static void says(const char *words, const char *what, const char *fact) {
    if (!strstr(words, fact)) fail_msg("%s does not say '%s':\n%s", what, fact, words);
}
/* The tooltip of the element whose id ends in `end`; NULL: there is none. */
static const char *tip_of(const Svg *s, const char *end_of_id) {
    for (int i = 0; i < s->tips.n; i++) {
        const char *bar = strchr(s->tips.item[i], '|');
        size_t n = (size_t)(bar - s->tips.item[i]), k = strlen(end_of_id);
        if (n >= k && !strncmp(bar - k, end_of_id, k)) return bar + 1;
    }
    return NULL;
}

/* ---- plans ---- */

typedef struct {
    const char *path;
    Arena *a;
    Trace *t,
        *saved; /* as run, and as read from its own text; NULL: refused before there is a program */
} Plan1;

static Plan1 load(const char *path) {
    Plan1 p = {path, arena_new(), NULL, NULL};
    size_t n;
    Diags *d = diags_new(p.a);
    const char *text = file_read(p.a, d, path, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    bool execute = !strstr(path, "shape-only");
    PlanRun r = plan_run_with(
        p.a, path, text,
        &(PipelineOptions){.execute = execute, .events = true, .numbers = true, .threads = 1});
    if (!r.t && strstr(text, "\n  diagnostics: [")) return p; /* there to be refused */
    assert_non_null(r.t);
    p.t = r.t;
    text = trace_text(p.t, p.a, true, &n);
    p.saved = trace_read(p.a, d, "saved", text, n);
    if (!p.saved) diags_print(d, stderr, false);
    assert_non_null(p.saved);
    return p;
}

static RenderOptions options(const char *view, const char *preset, const char *theme) {
    return (RenderOptions){.view = view, .preset = preset, .theme = theme, .rank = -1, .layer = -1};
}
static const char *draw(Arena *a, const Trace *t, const RenderOptions *o, RenderFormat f,
                        size_t *n) {
    Diags *d = diags_new(a);
    const char *s = render_text(t, d, o, f, a, n);
    if (!s) diags_print(d, stderr, false);
    assert_non_null(s);
    return s;
}

static Svg svg_of(Arena *a, const Trace *t, const RenderOptions *o, const char *what) {
    size_t n;
    const char *text = draw(a, t, o, FORMAT_SVG, &n);
    return read_svg(a, text, n, what);
}
/* The figure as a part of a page: without the XML declaration. */
static const char *part_of_page(Arena *a, const Trace *t, const RenderOptions *o) {
    size_t n;
    const char *text = strstr(draw(a, t, o, FORMAT_SVG, &n), "<svg");
    assert_non_null(text);
    return text;
}

/* Why a view has nothing for a plan; these, and no others. */
/* Does an all-to-all bring rows to experts, in a run that counted them? */
static bool exchanges_rows(const Trace *t) {
    for (int i = 0; i < t->n_collectives; i++)
        for (int k = 0; k < t->n_routed; k++)
            if (t->routed[k].step == t->collectives[i].step &&
                !strcmp(t->collectives[i].op, "all_to_all"))
                return true;
    return false;
}
static bool nothing_to_draw(const Trace *t, const char *view) {
    if (!strcmp(view, "errors")) return t->n_checks == 0;
    if (!strcmp(view, "timeline") || !strcmp(view, "roofline")) return t->n_events == 0;
    if (!strcmp(view, "sweep")) return true; /* of a plan: tests/test_sweep.c */
    if (!strcmp(view, "routing")) return !exchanges_rows(t);
    bool ring = false; /* a send goes from one to one: no steps to tell */
    for (int i = 0; i < t->n_collectives; i++) ring |= strcmp(t->collectives[i].op, "send") != 0;
    if (!strcmp(view, "storyboard")) return !ring && t->n_collectives;
    if (!strcmp(view, "pipeline")) return t->n_actions == 0 || t->n_events == 0;
    if (!strcmp(view, "shards")) return t->n_params == 0;
    return false;
}

/* ---- every figure ---- */

static void check_page(Arena *a, const Scene *s, const char *what) {
    Sink out = {.arena = a};
    paint_svg(s, &out);
    Svg x = read_svg(a, (const char *)out.p, out.n, what);
    assert_true(s->n_marks <= MARK_BUDGET);
    assert_true(out.n <= BYTE_BUDGET);
    assert_int_equal(x.marks, s->n_marks + 1); /* and the paper */
    assert_string_equal(x.role, "img");
    assert_string_equal(x.labels, arena_printf(a, "%s-t %s-d", s->name, s->name));
    assert_true(x.title && *x.title && x.desc && *x.desc);
    assert_string_equal(x.title, s->title);
    size_t prefix = strlen(s->name);
    for (int i = 0; i < x.ids.n; i++)
        if (strncmp(x.ids.item[i], s->name, prefix)) fail_msg("%s: id %s", what, x.ids.item[i]);
    /* text is text, word for word; tooltips are titles */
    int texts = 0, tips = 0;
    for (int i = 0; i < s->n_marks; i++) {
        if (s->marks[i].kind != MARK_TEXT) continue;
        Str t = str_new(a);
        for (int k = 0; k < s->marks[i].n_run; k++) str_add(&t, s->marks[i].run[k].s);
        assert_string_equal(x.texts.item[texts++], t.s);
    }
    assert_int_equal(texts, x.texts.n);
    for (int i = 0; i < s->n_groups; i++)
        tips += s->groups[i].tip && s->groups[i].last > s->groups[i].first;
    assert_true(x.tips.n == tips);
}

/* A slide is filled: its footer stands at the bottom, and no band without marks is higher than a
 * third of it. */
static int slide_filled(const Scene *s, const char *what) {
    enum { H = 540 };
    bool full[H] = {false};
    int empty = 0, widest = 0, last = 0;
    if (s->page_h != H) {
        print_error("%s: a slide is 540 high, this page %.1f\n", what, s->page_h);
        return 1;
    }
    for (int i = 0; i < s->n_marks; i++) {
        Box b = scene_box(&s->marks[i]);
        double y0 = s->off_y + s->scale * b.y0, y1 = s->off_y + s->scale * b.y1;
        for (int y = (int)fmax(0, y0); y < H && y <= y1; y++) full[y] = true;
    }
    for (int y = 0; y < H; y++) {
        empty = full[y] ? 0 : empty + 1;
        widest = empty > widest ? empty : widest;
        last = full[y] ? y : last;
    }
    if (s->scale < 1 || (widest <= H / 3 && last >= H - 24)) return 0;
    print_error("%s: a band of %d is empty, the last mark ends at %d\n", what, widest, last);
    return 1;
}

/* Lint, markup, budgets and names of every page. */
static int check_figure(const Plan1 *p, const char *view, const char *preset, Words *names,
                        int *figures) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    Scene *page[VIEW_MAX_PAGES];
    RenderOptions o = options(view, preset, NULL);
    const char *what = arena_printf(a, "%s %s %s", p->path, view, preset);
    int n = render_pages(p->t, d, &o, a, page), found = 0;
    if (nothing_to_draw(p->t, view)) {
        assert_int_equal(n, 0);
        assert_int_equal(diags_exit(d), 3);
        assert_non_null(d->item[0].hint);
        arena_free(a);
        return 0;
    }
    if (n < 1) fail_msg("%s: %s", what, d->n ? d->item[0].message : "nothing");
    for (int i = 0; i < n; i++) {
        const char *report;
        int k = scene_lint(page[i], a, &report);
        if (k) print_error("%s, page %d:\n%s", what, i + 1, report);
        found += k;
        if (!strcmp(preset, "slide")) found += slide_filled(page[i], what);
        check_page(a, page[i], what);
    }
    assert_false(names_have(names, page[0]->name));
    names_add(p->a, names, arena_strdup(p->a, page[0]->name));
    ++*figures;
    arena_free(a);
    return found;
}

/* The same bytes from the run and from its trace; the themes differ in colours only. */
static void check_trace_and_themes(const Plan1 *p, const char *view) {
    Arena *a = arena_new();
    static const RenderFormat formats[] = {FORMAT_SVG, FORMAT_TEXT, FORMAT_PNG};
    size_t n, m;
    Svg light = {0};
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++) {
        RenderOptions o = options(view, i == 2 ? "slide" : NULL, NULL);
        if (i == 2) o.width_px = 480;
        const char *x = draw(a, p->t, &o, formats[i], &n),
                   *y = draw(a, p->saved, &o, formats[i], &m);
        assert_int_equal(n, m);
        assert_memory_equal(x, y, n);
        if (formats[i] == FORMAT_SVG) light = read_svg(a, x, n, view);
        for (const char *line = x, *end; formats[i] == FORMAT_TEXT && *line;
             line = *end ? end + 1 : end) {
            end = line + strcspn(line, "\n");
            const char *one = arena_strndup(a, line, (size_t)(end - line));
            if (words_columns(one) > 80)
                fail_msg("%s %s: a line of %d columns: %s", p->path, view, words_columns(one), one);
        }
    }
    RenderOptions o = options(view, NULL, NULL);
    for (int th = 1; th < 3; th++) {
        o.theme = themes[th];
        Svg s = svg_of(a, p->t, &o, view);
        assert_string_equal(words_of(&s), words_of(&light));
        assert_int_equal(s.tips.n, light.tips.n);
        assert_string_not_equal(s.labels, light.labels); /* so both may stand on one page */
    }
    arena_free(a);
}

static void every_figure(void **state) {
    (void)state;
    int n_views, found = 0, figures = 0;
    const RenderView *v = render_views(&n_views);
    glob_t g = {0};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        assert_int_equal(glob(folders[i], i ? GLOB_APPEND : 0, NULL, &g), 0);
    int all = (int)g.gl_pathc, n = sample_of(all, "plans");
    for (int i = 0; i < n; i++) {
        Plan1 p = load(g.gl_pathv[sample_at(i, n, all)]);
        Words names = {0};
        for (int k = 0; k < n_views && p.t; k++) {
            for (int q = 0; q < (n < all ? 1 : 4); q++) /* of a sample the default page */
                found += check_figure(&p, v[k].name, presets[q], &names, &figures);
            if (!nothing_to_draw(p.t, v[k].name)) check_trace_and_themes(&p, v[k].name);
        }
        arena_free(p.a);
    }
    print_message("%d figures of %d plans\n", figures, n);
    assert_int_equal(found, 0);
    assert_true(n < all ? figures >= n : figures > 1000);
    globfree(&g);
}

/* ---- what figures say ---- */

/* The groups of an axis by what a group is: ranks that share all other coordinates. */
static const char *members(Arena *a, const Trace *t, const char *axis, int64_t rank) {
    Str s = str_new(a);
    for (int64_t r = 0; r < t->ranks; r++) {
        int64_t x = r, y = rank;
        bool same = true;
        for (int i = t->n_axes - 1; i >= 0; i--) {
            if (strcmp(t->axes[i].name, axis)) same &= x % t->axes[i].size == y % t->axes[i].size;
            x /= t->axes[i].size, y /= t->axes[i].size;
        }
        if (same) str_addf(&s, "%s%lld", s.n ? "," : "{", (long long)r);
    }
    str_add(&s, "}");
    return s.s;
}

/* The group of a rank as a slice: first:end:step, the step left out if it is 1. */
static const char *slice(Arena *a, const Trace *t, int axis, int64_t rank) {
    int64_t step = 1, size = t->axes[axis].size;
    for (int i = axis + 1; i < t->n_axes; i++) step *= t->axes[i].size;
    int64_t first = rank - rank / step % size * step, end = first + size * step;
    if (end > t->ranks) end = t->ranks;
    return step == 1 ? arena_printf(a, "%lld:%lld", (long long)first, (long long)end)
                     : arena_printf(a, "%lld:%lld:%lld", (long long)first, (long long)end,
                                    (long long)step);
}

/* Among the small meshes, the one of this axis: exactly the members of the rank's group are filled.
 */
static void check_filled(Arena *a, const Trace *t, const RenderOptions *o, const char *axis) {
    Scene *page[VIEW_MAX_PAGES];
    int n = render_pages(t, diags_new(a), o, a, page), cells = 0;
    const char *own = members(a, t, axis, o->rank);
    size_t k = strlen(axis);
    assert_true(n > 0);
    for (int i = 0; i + 1 < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i], *text = m + 1;
        const char *tip = m->group >= 0 ? page[0]->groups[m->group].tip
                                        : NULL; /* "tp: 4 groups", "tp = sp: ..." */
        if (!tip || strncmp(tip, axis, k) ||
            (strncmp(tip + k, ": ", 2) && strncmp(tip + k, " = ", 3)))
            continue;
        if (m->kind != MARK_RECT || m->w != m->h || text->kind != MARK_TEXT) continue;
        const char *rank = arena_printf(a, ",%s,", text->run[0].s),
                   *list = arena_printf(a, ",%s", own + 1);
        bool in = strstr(arena_printf(a, "%.*s,", (int)strlen(list) - 1, list), rank) != NULL;
        if (in != (m->fill != ROLE_PAPER))
            fail_msg("axis %s of rank %lld: cell %s", axis, (long long)o->rank, rank);
        cells++;
    }
    assert_int_equal(cells, t->ranks);
}

static void check_mesh(Arena *a, const Trace *t, int64_t rank, const char *preset) {
    RenderOptions o = options("mesh", preset, NULL);
    o.rank = rank;
    const char *report;
    Diags *d = diags_new(a);
    if (render_lint(t, d, &o, a, &report))
        fail_msg("%lld ranks, %s:\n%s", (long long)t->ranks, preset, report);
    Svg s = svg_of(a, t, &o, "mesh");
    assert_true(s.marks < 5000);
    /* not all groups are on the first page */
    if (!strcmp(preset, "slide") || !strcmp(preset, "a4")) return;
    const char *words = words_of(&s);
    says(words, "mesh",
         arena_printf(a, t->ranks == 1 ? "One rank" : "%lld rank", (long long)t->ranks));
    for (int i = 0; i < t->n_axes; i++) {
        long long size = t->axes[i].size, groups = t->ranks / size;
        /* the pieces of an axis are drawn as the axis */
        if (size == 1 || strchr(t->axes[i].name, '.')) continue;
        says(words, "mesh",
             t->ranks > 16 ? arena_printf(a, "%lld × %lld", groups, size)
                           : arena_printf(a, "%lld group%s × %lld rank%s", groups,
                                          groups == 1 ? "" : "s", size, size == 1 ? "" : "s"));
        const char *own = members(a, t, t->axes[i].name, rank);
        if (size <= 8 && (t->ranks <= 16 || !strcmp(preset, "wide"))) says(words, "mesh", own);
        for (int64_t r = 0; r < t->ranks && t->ranks <= 16 && size <= 8; r++)
            says(words, "mesh", members(a, t, t->axes[i].name, r));
        if (t->ranks > 16) says(words, "mesh", slice(a, t, i, rank));
        if (t->ranks <= 16) check_filled(a, t, &o, t->axes[i].name);
        /* what it carries, added up here: groups of two ranks of the axis by themselves */
        int64_t sent[2] = {0};
        int count[2] = {0};
        for (int k = 0; k < t->n_collectives; k++) {
            const TraceCollective *c = &t->collectives[k];
            if (strcmp(c->axes, t->axes[i].name) != 0) continue;
            bool two = strcmp(c->op, "send") != 0 && groups_size(&c->groups) < size;
            count[two]++, sent[two] += collective_on(c, rank).bytes_sent;
        }
        for (int two = 0; two < 2; two++)
            if (count[two] && (!two || sent[1]))
                says(words, "mesh", arena_printf(a, "sends %s", bytes_text(sent[two], a)));
    }
}

static void mesh_says_the_groups(void **state) {
    (void)state;
    static const char *const meshes[] = {"tp: 1",
                                         "tp: 2",
                                         "dp: 2, cp: 1, tp: 4",
                                         "dp: 2, cp: 2, tp: 2",
                                         "dp: 2, cp: 1, tp: 8",
                                         "dp: 4, cp: 2, tp: 8",
                                         "dp: 1024",
                                         "dp: 32, cp: 1, tp: 32",
                                         "dp: 64, cp: 16, tp: 8",
                                         "dp: 8192"};
    int all = sizeof meshes / sizeof *meshes, n = sample_of(all, "meshes");
    for (int k = 0; k < n; k++) {
        int i = sample_at(k, n, all);
        Arena *a = arena_new();
        const char *text = arena_printf(a,
                                        "model: {preset: llama3-8b, layers: 1}\n"
                                        "data: {batch: 8192, sequence: 4096, dtype: bf16}\n"
                                        "mesh: {%s}\n%s",
                                        meshes[i],
                                        strstr(meshes[i], "tp: 32") || !strstr(meshes[i], "tp")
                                            ? ""
                                            : "plan:\n  layers.*.attention.w[qkv]: colwise\n"
                                              "  layers.*.attention.wo: rowwise\n"
                                              "  layers.*.feed_forward.w[13]: colwise\n"
                                              "  layers.*.feed_forward.w2: rowwise\n");
        PlanRun r = plan_good(a, text, false);
        for (int q = 0; q < 4; q++) {
            check_mesh(a, r.t, 0, presets[q]);
            check_mesh(a, r.t, r.t->ranks - 1, presets[q]);
            check_mesh(a, r.t, r.t->ranks / 2, presets[q]);
        }
        arena_free(a);
    }
}

typedef struct {
    double a, b;
} Span;
static int by_start(const void *x, const void *y) {
    double d = ((const Span *)x)->a - ((const Span *)y)->a;
    return (d > 0) - (d < 0);
}
/* Length of the union of the events of a kind on a rank; `last`: when the last of any kind ends. */
static double busy(Arena *a, const Trace *t, int64_t rank, bool compute, double *last) {
    Span *s = ARENA_ARRAY(a, Span, t->n_events + 1);
    int n = 0;
    double sum = 0, at = 0;
    *last = 0;
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = &t->events[i];
        if (!rankset_has(&e->ranks, rank)) continue;
        *last = fmax(*last, e->end);
        if (!strcmp(e->kind, "compute") == compute) s[n++] = (Span){e->start, e->end};
    }
    qsort(s, (size_t)n, sizeof *s, by_start);
    for (int i = 0; i < n; i++) {
        if (s[i].b > at) sum += s[i].b - fmax(at, s[i].a);
        at = fmax(at, s[i].b);
    }
    return sum;
}

/* "48 µs = compute 40 µs + exposed 6 µs + waiting for other ranks 2 µs", as parts that add up; of
 * what communicates nothing no time is told, nor of waits that are rounding. `idle` below 0: none
 * is told. */
static const char *sum_words(Arena *a, double compute, double comm, double exposed, double waiting,
                             double idle) {
    const double part[] = {compute, exposed, waiting, fmax(idle, 0)};
    const char *text[4], *whole = time_sum_text(part, 4, text, a);
    Str r = str_new(a);
    str_addf(&r, "%s = compute %s", whole, text[0]);
    if (comm > 0) str_addf(&r, " + exposed %s", text[1]);
    if (waiting > 0) str_addf(&r, " + waiting for other ranks %s", text[2]);
    if (idle >= 0) str_addf(&r, " + idle %s", text[3]);
    str_add(&r, ".");
    return r.s;
}
static double unless_rounding(double part, double of) { return part <= 1e-9 * of ? 0 : part; }
/* Of a pipeline the sums are of the whole step; what its lines never name is not in the key. */
static void check_step(Arena *a, const Trace *t, const char *words, const char *what) {
    RecordStep x = records_step(a, t, 0);
    says(words, what,
         sum_words(a, x.compute, x.comm, x.exposed, unless_rounding(x.waiting, x.span),
                   unless_rounding(x.idle, x.span)));
    says(words, what, "The whole step,");
}
static void check_timeline(Arena *a, const Trace *t, const char *what, const char *preset) {
    RenderOptions o = options("timeline", preset, NULL);
    o.rank = 0; /* where ranks do different things it speaks of the one that others wait for */
    Svg s = svg_of(a, t, &o, what);
    const char *words = words_of(&s);
    const bool staged = t->n_actions > 0;
    double last, compute = busy(a, t, 0, true, &last), exposed = 0, waiting = 0;
    for (int i = 0; i < t->n_events; i++)
        if (rankset_has(&t->events[i].ranks, 0)) {
            exposed += t->events[i].exposed;
            waiting += t->events[i].wait_exposed;
        }
    if (staged) check_step(a, t, words, what);
    else
        says(words, what,
             arena_printf(a, "%s %s", records_span(a, t) + 1,
                          sum_words(a, compute, records_time(a, t, 0).comm, exposed,
                                    unless_rounding(waiting, last), -1)));
    /* what the events themselves call exposed, and waiting, makes up the time without compute */
    assert_true(fabs(exposed + waiting - (last - compute)) <= 1e-6 * last + 1e-9);
    says(words, what, t->hardware);
    bool folded = staged || strstr(words, "are folded") || strstr(words, "is folded") ||
                  strstr(words, " as long on ");
    int shown = 0;
    for (int i = 0; i < t->n_events; i++) {
        const TraceEvent *e = &t->events[i];
        if (!rankset_has(&e->ranks, 0)) continue;
        const char *tip = tip_of(&s, arena_printf(a, "-event-%d", e->step));
        if (!tip && folded) continue;
        if (!tip) fail_msg("%s: step %d has no event", what, e->step);
        says(tip, what, arena_printf(a, "step %d: ", e->step));
        says(tip, what,
             arena_printf(a, "%s to %s, %s", time_text(e->start, a), time_text(e->end, a),
                          time_text(e->end - e->start, a)));
        if (e->formula) says(tip, what, e->formula);
        shown++;
    }
    assert_true(shown > 0);
}

/* "12.345" µs of a Chrome trace in seconds. */
static double micros(const Json *x) {
    assert_non_null(x);
    return x->r * 1e-6;
}

/* The Chrome trace has the events of the picture: the same names, starts and durations, in rows
 * that have names. */
static void check_chrome(Arena *a, const Trace *t, const char *what) {
    RenderOptions o = options("timeline", NULL, NULL);
    o.rank = 0;
    size_t n;
    Svg s = svg_of(a, t, &o, what);
    const char *text = draw(a, t, &o, FORMAT_CHROME, &n), *error;
    int line, col, events = 0, named = 0, own = 0, waits = 0;
    Json *j = json_parse(a, text, n, &error, &line, &col);
    if (!j) fail_msg("%s: %d:%d: %s", what, line, col, error);
    const Json *list = json_get(j, "traceEvents");
    assert_string_equal(json_get(j, "displayTimeUnit")->s, "ms");
    bool process[64] = {false}, thread[64][16] = {{false}};
    for (int i = 0; i < list->n; i++) {
        const Json *e = list->item[i], *name = json_get(e, "name");
        int64_t pid = json_get(e, "pid")->i, tid = json_get(e, "tid")->i;
        assert_in_range(pid, 0, 63);
        assert_in_range(tid, 0, 15);
        if (!strcmp(json_get(e, "ph")->s, "M")) {
            if (!strcmp(name->s, "process_name")) process[pid] = true;
            if (!strcmp(name->s, "thread_name")) thread[pid][tid] = true;
            const Json *order = json_get(json_get(e, "args"), "sort_index");
            if (!strcmp(name->s, "process_sort_index")) assert_int_equal(order->i, pid);
            if (!strcmp(name->s, "thread_sort_index")) assert_int_equal(order->i, tid);
            named++;
            continue;
        }
        assert_string_equal(json_get(e, "ph")->s, "X");
        assert_true(process[pid] && thread[pid][tid]);
        events++;
        bool wait = !strcmp(json_get(e, "cat")->s, "wait"); /* a slice of its own, before */
        if (pid != 0) continue;
        int step = (int)json_get(json_get(e, "args"), "step")->i;
        const TraceEvent *x = NULL;
        for (int k = 0; k < t->n_events && !x; k++)
            if (t->events[k].step == step && rankset_has(&t->events[k].ranks, 0)) x = &t->events[k];
        assert_non_null(x);
        double sends = x->start + x->wait, from = wait ? x->start : sends;
        assert_true(fabs(micros(json_get(e, "ts")) - from) < 6e-10);
        assert_true(fabs(micros(json_get(e, "dur")) - ((wait ? sends : x->end) - from)) < 6e-10);
        waits += wait;
        if (wait) continue;
        const char *tip = tip_of(&s, arena_printf(a, "-event-%d", step));
        if (tip) says(tip, what, arena_printf(a, "step %d: %s, ", step, name->s));
        own++;
    }
    int want = 0;
    for (int k = 0; k < t->n_events; k++) {
        const TraceEvent *x = &t->events[k];
        want += rankset_has(&x->ranks, 0);
        waits -= rankset_has(&x->ranks, 0) && x->wait > 0;
    }
    assert_int_equal(own, want);
    assert_int_equal(waits, 0);
    assert_true(named >= 4 && events >= own);
}

/* Groups, bytes and reasons in the tooltips of a block are those of the log. */
static void check_block(Arena *a, const Trace *t, const char *what) {
    RenderOptions o = options("block", NULL, NULL);
    o.pass = "forward";
    Svg s = svg_of(a, t, &o, what);
    const char *words = words_of(&s);
    int shown = 0, all = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->pass != PHASE_FORWARD || c->layer != 0) continue;
        all++;
        const char *tip = tip_of(&s, arena_printf(a, "-step-%d", c->step));
        if (!tip) { /* k and v travel as one, and the first hop of a ring stands for all */
            all -= !strcmp(c->op, "shift");
            continue;
        }
        shown++;
        says(tip, what,
             arena_printf(a, "step %d: %s of %s over %s", c->step, c->op, c->value, c->axis));
        says(tip, what,
             arena_printf(a, "%lld groups × %lld ranks", (long long)groups_count(&c->groups),
                          (long long)groups_size(&c->groups)));
        bool one_way = !strcmp(c->op, "send"), from = one_way && !strstr(tip, "in 0 B, ");
        says(tip, what,
             arena_printf(a, "in %s, out %s, sends %s per rank",
                          bytes_text(one_way && !from ? 0 : c->bytes_in, a),
                          bytes_text(from ? 0 : c->bytes_out, a),
                          bytes_text(one_way && !from ? 0 : c->bytes_sent, a)));
        if (c->why) says(tip, what, c->why);
    }
    assert_true(all == 0 || shown * 2 >= all);
    for (int i = 0; i < t->n_values; i++) { /* local shapes and bytes of what is drawn */
        const TraceValue *v = &t->values[i];
        const char *tip = tip_of(&s, arena_printf(a, "-value-%s-%d", v->shape.name, v->step));
        if (!tip || v->shape.n_local < 1) continue;
        if (!rankset_has(&v->shape.local->ranks, 0)) continue; /* another stage's, not rank 0's */
        says(tip, what, bytes_text(v->shape.local->bytes, a));
    }
    says(words, what, t->plan);
}

static void figures_say_what_the_log_says(void **state) {
    (void)state;
    glob_t g = {0};
    assert_int_equal(glob(folders[0], 0, NULL, &g), 0);
    assert_int_equal(glob(folders[2], GLOB_APPEND, NULL, &g), 0);
    int all = (int)g.gl_pathc, n = sample_of(all, "plans");
    for (int i = 0; i < n; i++) {
        Plan1 p = load(g.gl_pathv[sample_at(i, n, all)]);
        check_timeline(p.a, p.t, p.path, "wide");
        check_timeline(p.a, p.t, p.path, "column");
        check_chrome(p.a, p.t, p.path);
        check_block(p.a, p.t, p.path);
        if (p.t->ranks <= 16) check_mesh(p.a, p.t, p.t->ranks - 1, "wide");
        arena_free(p.a);
    }
    globfree(&g);
}

/* Any two figures may stand in one HTML page: no id is in both. */
static void figures_share_a_page(void **state) {
    (void)state;
    Plan1 p = load("plans/09-llama3-8b-dp2-cp2-tp2.yaml"),
          q = load("plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml");
    Str page = str_new(p.a);
    int n_views;
    const RenderView *v = render_views(&n_views);
    str_add(&page, "<svg xmlns:xlink=\"http://www.w3.org/1999/xlink\">");
    int pages = sample_of(12, "themes and presets on one page");
    for (int k = 0; k < 2; k++)
        for (int i = 0; i < n_views; i++)
            for (int j = 0; j < pages; j++) {
                RenderOptions o = options(v[i].name, presets[j % 4], themes[j / 4]);
                if (nothing_to_draw(k ? q.t : p.t, v[i].name)) continue;
                str_add(&page, part_of_page(p.a, k ? q.t : p.t, &o));
            }
    RenderOptions o = options("block", NULL, NULL);
    const char *parts[] = {"attention", "mlp"};
    for (int i = 0; i < 4; i++) {
        o.part = i < 2 ? parts[i] : NULL;
        o.rank = i == 2 ? 5 : -1;
        o.layer = i == 3 ? 0 : -1;
        str_add(&page, part_of_page(p.a, p.t, &o));
    }
    str_add(&page, "</svg>");
    Svg s = read_svg(p.a, page.s, page.n, "page"); /* two elements with one id are a problem */
    assert_true(s.ids.n > (pages < 12 ? 400 : 5000));
    arena_free(p.a);
    arena_free(q.a);
}

/* ---- the same bytes everywhere ---- */

static const RenderFormat all_formats[] = {FORMAT_SVG, FORMAT_PNG, FORMAT_PDF, FORMAT_TEXT};
static const char *const extensions[] = {"svg", "png", "pdf", "txt"};

/* What the child does: all views of some plans, into a folder. */
static int draw_into(const char *dir, char **plans) {
    int n_views, rc = 0;
    const RenderView *v = render_views(&n_views);
    for (int i = 0; plans[i]; i++) {
        Arena *a = arena_new();
        Diags *d = diags_new(a);
        size_t n;
        const char *text = file_read(a, d, plans[i], 1 << 20, (Loc){0}, &n);
        PipelineReport rep = {0};
        Trace *t = pipeline_run(
            a, d, (PlanText){"plan.yaml", text, n, NULL, 0},
            &(PipelineOptions){.execute = true, .events = true, .numbers = true, .threads = 1},
            &rep);
        for (int k = 0; k < n_views; k++)
            for (size_t f = 0; f < 4 && !nothing_to_draw(t, v[k].name); f++) {
                RenderOptions o =
                    options(v[k].name, f == 1 ? "slide" : NULL, f == 2 ? "print" : NULL);
                rc |=
                    !render_file(t, d, &o, all_formats[f],
                                 arena_printf(a, "%s/%d-%s.%s", dir, i, v[k].name, extensions[f]));
            }
        arena_free(a);
    }
    render_cleanup();
    return rc;
}

static void start_elsewhere(const char *self, const char *out, const char *cwd,
                            const char *const *env, char **plans) {
    pid_t pid = fork();
    if (pid == 0) {
        for (int i = 0; env[i]; i += 2) setenv(env[i], env[i + 1], 1);
        char *argv[8] = {(char *)(uintptr_t)self, (char *)(uintptr_t) "--draw",
                         (char *)(uintptr_t)out};
        for (int i = 0; plans[i]; i++) argv[3 + i] = plans[i];
        if (chdir(cwd) == 0) execv(self, argv);
        _exit(99);
    }
    int status = 0;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

static char self_path[PATH_MAX];

/* ---- the page that shows them all ---- */

typedef struct {
    Arena *a;
    const char *dir;
    int images, anchors;
    Words ids, inner; /* "#name" */
} Page;
static bool is_file(const Page *p, const char *name) {
    return !strchr(name, ':') && access(file_join(p->a, p->dir, name), R_OK) == 0;
}
static void page_start(void *data, const char *name, const char **attr) {
    Page *p = data;
    const char *src = attribute(attr, "src"), *alt = attribute(attr, "alt"),
               *href = attribute(attr, "href"), *id = attribute(attr, "id");
    if (!strcmp(name, "img")) {
        if (!src || !is_file(p, src) || !alt || strlen(alt) < 20)
            fail_msg("image %s: %s", src, alt);
        p->images++;
    }
    if (!strcmp(name, "a") && href && *href == '#')
        names_add(p->a, &p->inner, arena_strdup(p->a, href + 1));
    if (!strcmp(name, "a") && href && *href != '#') {
        if (!is_file(p, href)) fail_msg("link to %s", href);
        p->anchors++;
    }
    if (id) names_add(p->a, &p->ids, arena_strdup(p->a, id));
    if (!strcmp(name, "script") || !strcmp(name, "link"))
        fail_msg("the page loads something: %s", name);
}

static void gallery_page(void **state) {
    (void)state;
    if (access("shardproof", X_OK)) {
        print_message("./shardproof is not built: the page is not drawn\n");
        skip();
    }
    Page p = {.a = arena_new()};
    p.dir = temp_path(p.a, "gallery");
    static const char *const plans = "plans/02-toymodel-2.yaml plans/bugs/07-sequence-not-cut.yaml "
                                     "plans/shape-only/llama3.1-405b-8192.yaml";
    assert_int_equal(
        system(arena_printf(p.a, "sh tests/gallery.sh '%s' %s >/dev/null", p.dir, plans)), 0);
    size_t n;
    const char *text =
        file_read(p.a, diags_new(p.a), file_join(p.a, p.dir, "index.html"), 1 << 22, (Loc){0}, &n);
    assert_non_null(text);
    XML_Parser x = XML_ParserCreate("UTF-8");
    XML_SetUserData(x, &p);
    XML_SetElementHandler(x, page_start, NULL);
    if (XML_Parse(x, text, (int)n, 1) != XML_STATUS_OK)
        fail_msg("line %lu: %s", XML_GetCurrentLineNumber(x), XML_ErrorString(XML_GetErrorCode(x)));
    XML_ParserFree(x);
    int views;
    render_views(&views);
    /* no times and no checks for what breaks a rule, no checks for what is never run, no rows of
     * experts where there are none */
    assert_int_equal(p.images, 3 * views - 11);
    assert_int_equal(p.anchors, p.images);
    assert_int_equal(p.inner.n, 3);
    for (int i = 0; i < 3; i++) assert_true(names_have(&p.ids, p.inner.item[i]));
    assert_non_null(
        strstr(text, "Nothing to draw in: timeline errors routing pipeline roofline sweep."));
    arena_free(p.a);
}

/* The plans have no experts and no stages; a sweep is of no trace. */
static bool has_files(const char *view) {
    return strcmp(view, "routing") && strcmp(view, "pipeline") && strcmp(view, "sweep");
}
static void same_bytes_everywhere(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    static const char hostile[] =
        "<?xml version=\"1.0\"?><!DOCTYPE fontconfig SYSTEM "
        "\"fonts.dtd\"><fontconfig><dir>/nowhere</dir><match target=\"pattern\"><edit "
        "name=\"family\" mode=\"assign\" binding=\"strong\"><string>Comic Sans "
        "MS</string></edit><edit name=\"size\" "
        "mode=\"assign\"><double>40</double></edit></match><match target=\"font\"><edit "
        "name=\"hinting\" mode=\"assign\"><bool>true</bool></edit><edit name=\"hintstyle\" "
        "mode=\"assign\"><const>hintfull</const></edit><edit name=\"embolden\" "
        "mode=\"assign\"><bool>true</bool></edit></match></fontconfig>";
    const char *conf = temp_path(a, "fonts.conf");
    assert_true(file_write(d, conf, hostile, sizeof hostile - 1));
    const char *const plain[] = {NULL};
    const char *const place[] = {"TZ",     "Asia/Tokyo",  "LANG", "tr_TR.UTF-8",
                                 "LC_ALL", "de_DE.UTF-8", NULL};
    const char *const gone[] = {"FONTCONFIG_FILE",  "/dev/null", "HOME", "/nowhere", "TZ",
                                "America/St_Johns", NULL};
    const char *const bad[] = {
        "FONTCONFIG_FILE", conf, "SOURCE_DATE_EPOCH", "1", "LC_ALL", "C", NULL};
    const struct {
        const char *name, *cwd;
        const char *const *env;
    } at[] = {
        {"here", ".", plain}, {"place", "/", place}, {"gone", "/tmp", gone}, {"bad", "/", bad}};
    char path[2][PATH_MAX];
    char *plans[] = {realpath("plans/09-llama3-8b-dp2-cp2-tp2.yaml", path[0]),
                     realpath("plans/bugs/06-reduced-twice.yaml", path[1]), NULL};
    if (sample_of(100, "per cent of the plans, drawn elsewhere") < 100) plans[1] = NULL;
    const char *dir[4];
    for (int i = 0; i < 4; i++) {
        dir[i] = temp_path(a, at[i].name);
        assert_int_equal(mkdir(dir[i], 0777), 0);
        start_elsewhere(self_path, dir[i], at[i].cwd, at[i].env, plans);
    }
    int n_views, files = 0;
    const RenderView *v = render_views(&n_views);
    for (int p = 0; plans[p]; p++)
        for (int k = 0; k < n_views; k++)
            for (int f = has_files(v[k].name) ? 0 : 4; f < 4; f++, files++) {
                const char *name = arena_printf(a, "%d-%s.%s", p, v[k].name, extensions[f]);
                size_t n, m;
                const char *x = file_read(a, d, file_join(a, dir[0], name), 1 << 24, (Loc){0}, &n);
                assert_non_null(x);
                for (int i = 1; i < 4; i++) {
                    const char *y =
                        file_read(a, d, file_join(a, dir[i], name), 1 << 24, (Loc){0}, &m);
                    if (!y || n != m || memcmp(x, y, n))
                        fail_msg("%s differs with %s", name, at[i].name);
                }
            }
    assert_int_equal(files, (plans[1] ? 2 : 1) * (n_views - 3) * 4);
    arena_free(a);
}

int main(int argc, char **argv) {
    if (argc > 3 && !strcmp(argv[1], "--draw")) return draw_into(argv[2], argv + 3);
    if (!realpath(argv[0], self_path)) return 99;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_figure),          cmocka_unit_test(mesh_says_the_groups),
        cmocka_unit_test(figures_share_a_page),  cmocka_unit_test(figures_say_what_the_log_says),
        cmocka_unit_test(same_bytes_everywhere), cmocka_unit_test(gallery_page)};
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
