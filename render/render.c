/* The door of render/: the table of views and formats, and the way from a request to bytes in a file. Writes only what
 * is complete: the picture is made in memory first. */
#include "render/render.h"
#include "base/file.h"
#include "render/paint.h"
#include "render/views.h"
#include <string.h>

/* name, what, scenes, text */
#define VIEWS(V)                                                                                                       \
    V("block", "one GPU's view of a block: compute, collectives, local shapes", view_block, view_block_text)           \
    V("timeline", "compute and communication streams per rank class, modelled time", view_timeline,                    \
      view_timeline_text)                                                                                              \
    V("overview", "the whole model with repeated layers folded", view_overview, view_overview_text)                    \
    V("shards", "which part of every weight and activation a rank holds", view_shards, view_shards_text)               \
    V("memory", "bytes per rank by category, and what is alive at the peak", view_memory, view_memory_text)            \
    V("errors", "where an executed run first differs, value by value on every rank", view_errors, view_errors_text)    \
    V("storyboard", "one collective step by step, on numbers of the run", view_storyboard, view_storyboard_text)  \
    V("mesh", "ranks, axes and groups, for 1 to thousands of ranks", view_mesh, view_mesh_text)

#define ROW(name, what, build, text) {name, what},
static const RenderView rows[] = {VIEWS(ROW)};
#undef ROW

/* Runs parallel to `rows`. */
static const struct View {
    int (*build)(const ViewCall *, Scene **);
    const char *(*text)(const ViewCall *);
} views[] = {
#define ROW(name, what, build, text) {build, text},
    VIEWS(ROW)
#undef ROW
};
/* What fonts and text of a picture may need. HarfBuzz and FreeType that get no memory leave letters out and say nothing. */
enum { DRAWING_BYTES = 64 << 20 };
enum { N_VIEWS = sizeof views / sizeof *views };

static const struct {
    const char *extension;
    RenderFormat format;
} formats[] = {{"svg", FORMAT_SVG},  {"png", FORMAT_PNG},   {"pdf", FORMAT_PDF},
               {"txt", FORMAT_TEXT}, {"text", FORMAT_TEXT}, {"json", FORMAT_CHROME}};

const RenderView *render_views(int *n) {
    *n = N_VIEWS;
    return rows;
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

/* A diagnostic for a name that is not in a NULL-terminated list, with the nearest that is. */
static bool unknown(Diags *d, Arena *a, const char *kind, const char *name, const char *const *list) {
    const char *near = diag_nearest(name, list);
    Str all = str_new(a);
    for (int i = 0; list[i]; i++) str_addf(&all, "%s%s", i ? ", " : "", list[i]);
    diag_error(d, "E0211", (Loc){0},
               near ? arena_printf(a, "did you mean '%s'?", near) : arena_printf(a, "known: %s", all.s),
               "unknown %s '%s'", kind, name);
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

/* Checks the options that are names, and fills the call. */
static const struct View *prepare(ViewCall *c) {
    PresetKind p;
    const char *list[PRESET_COUNT + 1];
    const char *view = c->o->view ? c->o->view : "block";
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
    return find_view(c->d, c->arena, view);
}

static bool paint_failed(ViewCall *c, const char *what) {
    diag_error(c->d, "E0105", (Loc){0}, NULL, "the picture could not be painted: %s", what);
    return false;
}

static bool to_text(ViewCall *c, const char *(*text)(const ViewCall *), Sink *out) {
    if (!text) {
        diag_error(c->d, "E0211", (Loc){0}, "use svg, png or pdf", "view '%s' has no text form", c->o->view);
        return false;
    }
    const char *t = text(c);
    if (t) sink_add(out, t, strlen(t));
    return t != NULL;
}

/* The whole picture as bytes. */
static bool make(ViewCall *c, RenderFormat f, Sink *out) {
    const struct View *v = prepare(c);
    if (!v) return false;
    if (f == FORMAT_TEXT) return to_text(c, v->text, out);
    if (f == FORMAT_CHROME) return to_text(c, chrome_text, out);
    Scene *page[VIEW_MAX_PAGES];
    const char *error = NULL;
    base_reserve(DRAWING_BYTES, "to draw a picture");
    c->fonts = fonts_shared();
    int n = v->build(c, page);
    if (n > 0 && f == FORMAT_SVG) paint_svg(page[0], out);
    if (n > 0 && f == FORMAT_PNG) error = paint_png(page[0], c->o->width_px, out);
    if (n > 0 && f == FORMAT_PDF) error = paint_pdf(page, n, out);
    fonts_intact(c->fonts);
    return n > 0 && (!error || paint_failed(c, error));
}

char *render_text(const Trace *t, Diags *d, const RenderOptions *o, RenderFormat f, Arena *arena, size_t *n) {
    ViewCall c = {.t = t, .d = d, .o = o, .arena = arena};
    Sink out = {.arena = arena};
    sink_add(&out, "", 0);
    if (!make(&c, f, &out)) return NULL;
    *n = out.n;
    return (char *)out.p;
}

bool render_file(const Trace *t, Diags *d, const RenderOptions *o, RenderFormat f, const char *path) {
    Arena *arena = arena_new();
    size_t n = 0;
    char *p = render_text(t, d, o, f, arena, &n);
    /* the diagnostic outlives this arena: diag_add copies its texts */
    bool ok = p && file_write(d, path, p, n);
    arena_free(arena);
    return ok;
}

int render_lint(const Trace *t, Diags *d, const RenderOptions *o, Arena *arena, const char **report) {
    ViewCall c = {.t = t, .d = d, .o = o, .arena = arena};
    Str all = str_new(arena);
    int found = 0;
    *report = "";
    const struct View *v = prepare(&c);
    if (!v) return 0;
    Scene *page[VIEW_MAX_PAGES];
    c.fonts = fonts_shared();
    int n = v->build(&c, page);
    for (int i = 0; i < n; i++) {
        const char *one = "";
        found += scene_lint(page[i], arena, &one);
        str_add(&all, one);
    }
    *report = all.s;
    return found;
}

void render_cleanup(void) { paint_cleanup(); }
