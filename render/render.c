/* The door of render/: the table of views and formats, and the way from a request to bytes in a
 * file. Writes only what is complete: the picture is made in memory first. */
#include "render/render.h"
#include "base/file.h"
#include "base/text.h"
#include "render/paint/paint.h"
#include "render/furniture/quiz.h"
#include "render/furniture/facing.h"
#include "render/furniture/views.h"
#include "render/furniture/wrong.h"
#include "render/scene/build.h"
#include <limits.h>
#include <math.h>
#include <pthread.h>
#include <string.h>

#define ROW(name, what, options, asks, json) {#name, what, asks, ((options)&BY_RANK) != 0},
static const RenderView rows[] = {VIEWS(ROW)};
#undef ROW

/* Runs parallel to `rows`. */
static const struct View {
    unsigned takes;
    int (*build)(const ViewCall *, Scene **);
    const char *(*text)(const ViewCall *), *(*json)(const ViewCall *);
} views[] = {
#define ROW(name, what, options, asks, json) {options, view_##name, view_##name##_text, json},
    VIEWS(ROW)
#undef ROW
};
/* What fonts and text of a picture may need besides the stacks of Pango's threads, of which six at
 * once were seen. HarfBuzz and FreeType that get no memory leave letters out and say nothing,
 * fontconfig crashes. */
enum { DRAWING_BYTES = 64 << 20, DRAWING_STACKS = 8 };
enum { N_VIEWS = sizeof views / sizeof *views };

static const struct {
    const char *extension;
    RenderFormat format;
} formats[] = {{"svg", FORMAT_SVG},  {"png", FORMAT_PNG},   {"pdf", FORMAT_PDF},
               {"txt", FORMAT_TEXT}, {"text", FORMAT_TEXT}, {"json", FORMAT_JSON}};

const RenderView *render_views(int *n) {
    *n = N_VIEWS;
    return rows;
}
const RenderView *render_view_that(unsigned asks) {
    for (int i = 0; i < N_VIEWS; i++)
        if ((rows[i].asks & asks) == asks) return &rows[i];
    return NULL;
}

bool render_format(const char *path, RenderFormat *f) {
    const char *dot = path ? strrchr(path, '.') : NULL;
    if (!dot || strchr(dot, '/')) return false;
    for (size_t i = 0; i < sizeof formats / sizeof *formats; i++)
        if (!strcmp(dot + 1, formats[i].extension)) {
            *f = formats[i].format;
            return true;
        }
    return false;
}

static const struct {
    const char *option, *why;
    unsigned bit;
} narrowing[] = {{"rank", "it shows all ranks", BY_RANK},
                 {"layer", "it shows the whole program", BY_LAYER},
                 {"part", "it shows the whole program", BY_PART},
                 {"pass", "it shows all passes", BY_PASS},
                 {"measured", "it shows no times of steps", BY_MEASURED},
                 {"build", "it has no steps", BY_BUILD}};

/* Refuses options that the view would leave aside. */
static bool takes(ViewCall *c, const struct View *v) {
    const RenderOptions *o = c->o;
    unsigned given = (o->rank >= 0 ? BY_RANK : 0) | (o->layer >= 0 ? BY_LAYER : 0) |
                     (o->part ? BY_PART : 0) | (o->pass ? BY_PASS : 0) |
                     (o->measured ? BY_MEASURED : 0) | (o->build ? BY_BUILD : 0);
    for (size_t i = 0; i < sizeof narrowing / sizeof *narrowing; i++) {
        if (!(given & narrowing[i].bit & ~v->takes)) continue;
        Str who = str_new(c->arena);
        for (int k = 0; k < N_VIEWS; k++)
            if (views[k].takes & narrowing[i].bit)
                str_addf(&who, "%s%s", who.n ? ", " : "", rows[k].name);
        diag_error(c->d, "E0212", diag_nowhere,
                   arena_printf(c->arena, "views with --%s: %s", narrowing[i].option, who.s),
                   "view '%s' has no use for --%s: %s", rows[v - views].name, narrowing[i].option,
                   narrowing[i].why);
        return false;
    }
    return true;
}

/* A diagnostic for a name that is not in a NULL-terminated list, with the nearest that is. */
static bool unknown(Diags *d, Arena *a, const char *kind, const char *name,
                    const char *const *list) {
    const char *near = diag_nearest(name, list);
    Str all = str_new(a);
    for (int i = 0; list[i]; i++) str_addf(&all, "%s%s", i ? ", " : "", list[i]);
    diag_error(d, "E0212", diag_nowhere,
               near ? arena_printf(a, "did you mean '%s'?", near)
                    : arena_printf(a, "known: %s", all.s),
               "unknown %s '%s'", kind, name);
    return false;
}

/* A pass is one that the trace has, or the names that everybody knows; of a plan that computes no
 * gradients nobody can see the backward pass, and it is said what makes it compute them. */
static bool known_pass(ViewCall *c) {
    const char *list[N_PHASES + 2] = {phase_words[PHASE_FORWARD], phase_words[PHASE_BACKWARD],
                                      "both"};
    bool any = false; /* steps of another pass than forward */
    bool listed[N_PHASES] = {[PHASE_FORWARD] = true, [PHASE_BACKWARD] = true, [PHASE_NONE] = true};
    int n = 3;
    for (int i = 0; i < c->t->n_computes; i++) {
        Phase p = c->t->computes[i].pass;
        any |= p != PHASE_NONE && p != PHASE_FORWARD;
        if (!listed[p]) list[n++] = phase_words[p];
        listed[p] = true;
    }
    for (int i = 0; i < n; i++) {
        if (strcmp(c->o->pass, list[i]) != 0) continue;
        if (c->pass == PHASE_NONE || c->pass == PHASE_FORWARD || any) return true;
        diag_error(c->d, "E0211", diag_nowhere,
                   "give the plan `pass: backward`, or this picture `--set pass=backward`",
                   "nothing to draw of pass '%s': the plan computes the forward pass only",
                   c->o->pass);
        return false;
    }
    return unknown(c->d, c->arena, "pass", c->o->pass, list);
}

/* A layer is one that the trace has. */
static bool known_layer(ViewCall *c) {
    int lo = INT_MAX, hi = -1;
    for (int i = 0; i < c->t->n_computes + c->t->n_params; i++) {
        int layer = i < c->t->n_computes ? c->t->computes[i].layer
                                         : c->t->params[i - c->t->n_computes].layer;
        if (layer >= 0 && layer < lo) lo = layer;
        if (layer > hi) hi = layer;
    }
    if (lo <= c->o->layer && c->o->layer <= hi) return true;
    diag_error(c->d, "E0212", diag_nowhere,
               hi < 0 ? NULL : arena_printf(c->arena, "the trace has layers %d to %d", lo, hi),
               "the trace has no layer %lld", (long long)c->o->layer);
    return false;
}

static const struct View *find_view(Diags *d, Arena *a, const char *name) {
    const char *list[N_VIEWS + 1];
    for (int i = 0; i < N_VIEWS; i++) {
        list[i] = rows[i].name;
        if (!strcmp(name, list[i])) return &views[i];
    }
    list[N_VIEWS] = NULL;
    unknown(d, a, "view", name, list);
    return NULL;
}

/* "both" and nothing: PHASE_NONE. */
static Phase asked_pass(const RenderOptions *o) {
    int k = term_of(phase_words, N_PHASES, o->pass);
    return k < 0 ? PHASE_NONE : (Phase)k;
}

/* Checks the options that are names, and fills the call. */
static const struct View *prepare(ViewCall *c) {
    PresetKind p;
    const char *list[PRESET_COUNT + 1];
    const char *view = c->o->view ? c->o->view : rows[0].name;
    for (int i = 0; i < PRESET_COUNT; i++) list[i] = presets[i].name;
    list[PRESET_COUNT] = NULL;
    if (!furniture_preset(c->o->preset, &p)) {
        unknown(c->d, c->arena, "preset", c->o->preset, list);
        return NULL;
    }
    if (!theme_find(c->o->theme, &c->theme)) {
        unknown(c->d, c->arena, "theme", c->o->theme, theme_names());
        return NULL;
    }
    bool known = !c->o->quiz;
    for (int i = 0; !known && quiz_names()[i]; i++) known = !strcmp(quiz_names()[i], c->o->quiz);
    if (!known) {
        unknown(c->d, c->arena, "quiz", c->o->quiz, quiz_names());
        return NULL;
    }
    c->pass = asked_pass(c->o);
    const struct View *v = find_view(c->d, c->arena, view);
    if (!v || !takes(c, v) || (c->o->pass && !known_pass(c))) return NULL;
    return c->o->layer < 0 || known_layer(c) ? v : NULL;
}

static bool paint_failed(ViewCall *c, const char *what) {
    diag_error(c->d, "E0105", diag_nowhere, NULL, "the picture could not be painted: %s", what);
    return false;
}

static const Trace *seen_by(const Trace *t, const RenderOptions *o, Arena *arena);

static bool to_text(ViewCall *c, const char *(*text)(const ViewCall *), Sink *out) {
    const char *t = text(c);
    if (t) t = text_visible_lines(c->arena, t, strlen(t));
    if (t) sink_add(out, t, strlen(t));
    return t != NULL;
}

static bool to_json(ViewCall *c, const struct View *v, Sink *out) {
    if (v->json) return to_text(c, v->json, out);
    diag_error(c->d, "E0212", diag_nowhere, NULL, "view '%s' has no JSON", rows[v - views].name);
    return false;
}

/* Leaves blanks in n pages, and puts their key behind them; returns how many there are then, 0 and
 * a diagnostic where nothing could be asked. */
static int leave_blanks(ViewCall *c, Scene **page, int n) {
    int keys = quiz_pages(c, c->o->quiz, page, n, page + n, VIEW_MAX_PAGES - n);
    if (keys) return n + keys;
    diag_error(c->d, "E0212", diag_nowhere, "another view, layer or part may show them",
               "this figure shows no %s to leave blank", c->o->quiz);
    return 0;
}
/* Over one of two figures which plan it is of: "A" and "B" are what `diff A B` says of them. */
static void name_half(const ViewCall *c, Scene *s, PresetKind preset, bool second) {
    const Trace *t = c->t, *other = c->peer->t;
    double m = presets[preset].margin, size = fmax(14, s->min_size);
    scene_lower(s, 2 * size);
    const char *hash = text_same(t->plan, other->plan) && t->hash ? t->hash : NULL;
    const char *word = arena_printf(s->arena, "%s: plan %s%s%.8s", second ? "B" : "A",
                                    t->plan ? t->plan : "", hash ? " · " : "", hash ? hash : "");
    scene_begin(s, "title", "half", NULL);
    scene_text(s, m, 2 * size, (TextLook){ALIGN_LEFT, size, SEMIBOLD, ROLE_SECOND},
               scene_fit(s, word, s->w - 2 * m, size, SEMIBOLD));
    scene_end(s);
}
/* Over both what tells them apart. */
static void tell_difference(const ViewCall *c, Scene *s, PresetKind preset) {
    enum { LINES = 3 };
    const double m = presets[preset].margin, size = fmax(16, s->min_size);
    const char *line[LINES];
    if (!c->o->difference) return;
    const int n =
        scene_wrap(s, c->o->difference, (TextColumn){s->w - 2 * m, size, BOLD, LINES, NULL}, line);
    scene_lower(s, (n + 0.4) * 1.3 * size);
    scene_begin(s, "title", "difference", NULL);
    for (int i = 0; i < n; i++)
        scene_text(s, m, (1.4 + 1.3 * i) * size, (TextLook){ALIGN_LEFT, size, BOLD, ROLE_INK},
                   line[i]);
    scene_end(s);
    s->title = arena_printf(s->arena, "%s: %s", c->o->difference, s->title);
}
/* Paper: a sheet for each, one after the other, so that they face each other in a handout; both on
 * one would have letters of half the size. Returns the number of pages. */
static int sheets_of_both(const ViewCall *c, Scene **page, int n, Scene **second, int m) {
    Scene *own[VIEW_MAX_PAGES];
    int all = 0;
    memcpy(own, page, sizeof *own * (size_t)n);
    for (int i = 0; i < n || i < m; i++)
        for (int k = 0; k < 2 && all < VIEW_MAX_PAGES; k++) {
            Scene *s = i < (k ? m : n) ? (k ? second : own)[i] : NULL;
            if (!s) continue;
            const int px = s->px_width;
            name_half(k ? c->peer : c, s, PRESET_A4, k);
            if (!all) tell_difference(c, s, PRESET_A4); /* the others have no line to spare */
            figure_a4(s);
            s->px_width = px;
            page[all++] = s;
        }
    return all;
}
/* Of two plans of which one computes no gradients both show what can be held against each other,
 * if nobody asks for a pass. */
static void show_one_pass(const struct View *v, ViewCall *a, ViewCall *b) {
    if (!(v->takes & ONE_PASS) || a->o->pass) return;
    if (trace_has_backward(a->t) == trace_has_backward(b->t)) return;
    a->pass = b->pass = PHASE_FORWARD;
}
/* Puts each page of the other plan's figure at the right of ours, which is n pages, slides under
 * each other: two beside would have letters of half the size; where one has more, those stand
 * alone. Returns how many there are then, 0 and a diagnostic for an empty figure. */
static int pages_beside(const ViewCall *c, const struct View *v, Scene **page, int n) {
    enum { GAP = 20 };
    Scene *second[VIEW_MAX_PAGES];
    int m = v->build(c->peer, second);
    PresetKind preset = PRESET_WIDE;
    furniture_preset(c->o->preset, &preset);
    if (preset == PRESET_A4 && m) return sheets_of_both(c, page, n, second, m);
    for (int i = 0; i < m; i++) {
        if (i < n) {
            if (preset != PRESET_SLIDE) scene_level(page[i], second[i]);
            name_half(c, page[i], preset, false);
            name_half(c->peer, second[i], preset, true);
            if (preset == PRESET_SLIDE) scene_under(page[i], second[i], GAP);
            else scene_beside(page[i], second[i], GAP);
            tell_difference(c, page[i], preset);
        } else page[i] = second[i];
    }
    return m == 0 ? 0 : n > m ? n : m;
}
/* The pages of view v, each with its number if there are several. */
static int build(const struct View *v, ViewCall *c, Scene **page) {
    c->fonts = fonts_shared();
    ViewCall other = *c;
    if (c->o->with) {
        other.all = c->o->with;
        other.t = seen_by(other.all, c->o, c->arena);
        other.peer = c, c->peer = &other; /* each knows how long the other's bars are */
        show_one_pass(v, c, &other);
    }
    int n = v->build(c, page), own = n;
    const char *const *says = n > 0 && !c->o->with ? wrong_elsewhere(c, page, n) : NULL;
    if (n > 0 && c->o->quiz) n = leave_blanks(c, page, n);
    if (n > 0 && c->o->with) n = pages_beside(c, v, page, n);
    c->peer = NULL;
    figure_number(page, &(PageWords){.n = n, .n_says = own, .says = says});
    return n;
}
/* Pages of a PDF: those of the figure, or each of them once per step. */
static const char *to_pdf(ViewCall *c, Scene *const *page, int n, Sink *out) {
    Scene **all = NULL;
    int n_all = 0, cap = 0;
    for (int i = 0; i < n; i++) {
        const int *step;
        int steps = c->o->build ? build_steps(page[i], &step) : 0;
        for (int k = -1; k + 1 < steps; k++)
            *ARENA_PUSH(c->arena, all, n_all, cap) = build_until(page[i], k < 0 ? 0 : step[k]);
        *ARENA_PUSH(c->arena, all, n_all, cap) = page[i];
    }
    return all ? paint_pdf(all, n_all, out) : "there is no page";
}
/* A PNG stands still. */
static bool format_builds(ViewCall *c, RenderFormat f) {
    if (!c->o->build || f == FORMAT_SVG || f == FORMAT_PDF) return true;
    diag_error(c->d, "E0212", diag_nowhere, "say -o FILE.pdf (a page per step) or FILE.svg",
               "--build is for a PDF or an SVG");
    return false;
}

/* Address space for a picture: a thread's stack is as large as `ulimit -s` says. */
static size_t drawing_bytes(void) {
    pthread_attr_t a;
    size_t stack = 8 << 20;
    if (pthread_attr_init(&a) == 0) {
        pthread_attr_getstacksize(&a, &stack);
        pthread_attr_destroy(&a);
    }
    return DRAWING_BYTES + base_mul(DRAWING_STACKS, stack);
}
static void say(ViewCall *c, Sink *out, const char *text) {
    text = text_visible_lines(c->arena, text, strlen(text));
    sink_add(out, text, strlen(text));
}
/* Which plan a letter or a text that follows is of. */
static const char *plan_words(const ViewCall *c, const char *letter) {
    return arena_printf(c->arena, "%s: %s\n", letter,
                        words_file(c->t->plan ? c->t->plan : "a trace"));
}
/* Both plans as text, line by line. */
static bool both_texts(ViewCall *c, const struct View *v, Sink *out) {
    RenderOptions narrow = *c->o;
    if (narrow.columns > FACING_EDGE) narrow.columns -= FACING_EDGE; /* of a file all that it has */
    ViewCall one = *c, other = *c;
    other.all = c->o->with;
    other.t = seen_by(other.all, c->o, c->arena);
    one.o = other.o = &narrow;
    show_one_pass(v, &one, &other);
    const char *a = v->text(&one), *b = a ? v->text(&other) : NULL;
    if (!b) return false;
    say(c, out, plan_words(&one, "A"));
    const char *all = facing_text(c->arena, a, b);
    if (!all) say(c, out, a), say(c, out, "\n");
    say(c, out, plan_words(&other, "B"));
    say(c, out, all ? "\n" : "");
    say(c, out, all ? all : b);
    return true;
}

/* Refuses a page that the figure has not. */
static bool has_page(ViewCall *c, const struct View *v, int n) {
    if (c->o->page <= n) return true;
    diag_error(c->d, "E0212", diag_nowhere, n == 1 ? "leave --page out" : NULL,
               "view '%s' has %d page%s here, no page %lld", rows[v - views].name, n,
               n == 1 ? "" : "s", (long long)c->o->page);
    return false;
}

/* The whole picture as bytes. */
static bool make(ViewCall *c, RenderFormat f, Sink *out) {
    const struct View *v = prepare(c);
    if (!v) return false;
    if (!format_builds(c, f)) return false;
    if (f == FORMAT_TEXT && c->o->with) return both_texts(c, v, out);
    if (f == FORMAT_TEXT) return to_text(c, v->text, out);
    if (f == FORMAT_CHROME) return to_text(c, chrome_text, out);
    if (f == FORMAT_JSON) return to_json(c, v, out);
    Scene *page[VIEW_MAX_PAGES];
    const char *error = NULL;
    base_reserve(drawing_bytes(), "to draw a picture");
    int n = build(v, c, page);
    if (n > 0 && !has_page(c, v, n)) return false;
    if (c->o->pages) *c->o->pages = n;
    int one = c->o->page ? (int)c->o->page - 1 : 0;
    if (n > 0) page[one]->builds = c->o->build;
    if (n > 0 && f == FORMAT_SVG) paint_svg(page[one], out);
    if (n > 0 && f == FORMAT_PNG) error = paint_png(page[one], c->o->width_px, out);
    if (n > 0 && f == FORMAT_PDF) error = to_pdf(c, page + one, c->o->page ? 1 : n, out);
    fonts_intact(c->fonts);
    return n > 0 && (!error || paint_failed(c, error));
}

/* Pictures are of one rank, the first if none is named: of collectives with unequal groups they
 * show its bytes. */
static const Trace *seen_by(const Trace *t, const RenderOptions *o, Arena *arena) {
    bool unequal = false;
    for (int i = 0; i < t->n_collectives; i++) unequal |= t->collectives[i].n_local > 0;
    if (!unequal) return t;
    Trace *own = arena_memdup(arena, t, sizeof *t);
    own->collectives =
        arena_memdup(arena, t->collectives, (size_t)t->n_collectives * sizeof *t->collectives);
    for (int i = 0; i < own->n_collectives; i++) {
        TraceCollective *c = &own->collectives[i];
        TraceTraffic b = collective_on(c, o->rank > 0 ? o->rank : 0);
        c->bytes_in = b.bytes_in;
        c->bytes_out = b.bytes_out;
        c->bytes_sent = b.bytes_sent;
    }
    return own;
}

char *render_text(const Trace *t, Diags *d, const RenderOptions *o, RenderFormat f, Arena *arena,
                  size_t *n) {
    ViewCall c = {.t = seen_by(t, o, arena), .all = t, .d = d, .o = o, .arena = arena};
    Sink out = {.arena = arena};
    sink_add(&out, "", 0);
    if (!make(&c, f, &out)) return NULL;
    *n = out.n;
    return (char *)out.p;
}

bool render_file(const Trace *t, Diags *d, const RenderOptions *o, RenderFormat f,
                 const char *path) {
    Arena *arena = arena_new();
    size_t n = 0;
    char *p = render_text(t, d, o, f, arena, &n);
    /* the diagnostic outlives this arena: diag_add copies its texts */
    bool ok = p && file_write(d, path, p, n);
    arena_free(arena);
    return ok;
}

int render_pages(const Trace *t, Diags *d, const RenderOptions *o, Arena *arena, Scene **page) {
    ViewCall c = {.t = seen_by(t, o, arena), .all = t, .d = d, .o = o, .arena = arena};
    const struct View *v = prepare(&c);
    return v ? build(v, &c, page) : 0;
}

int render_lint(const Trace *t, Diags *d, const RenderOptions *o, Arena *arena,
                const char **report) {
    Str text = str_new(arena);
    Scene *page[VIEW_MAX_PAGES];
    int found = 0, n = render_pages(t, d, o, arena, page);
    for (int i = 0; i < n; i++) {
        const char *one = "";
        found += scene_lint(page[i], arena, &one);
        str_add(&text, one);
    }
    *report = text.s;
    return found;
}

void render_cleanup(void) { fonts_cleanup(); }
