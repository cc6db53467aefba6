/* Pictures from a trace. render/ includes sim/trace and sim/base and nothing else of sim/.
 * Link with: pkg-config --libs pangocairo pangoft2 fontconfig libpng, and -lm. */
#ifndef SP_RENDER_RENDER_H
#define SP_RENDER_RENDER_H
#include "render/furniture/options.h"

typedef enum {
    FORMAT_SVG,
    FORMAT_PNG,
    FORMAT_PDF,
    FORMAT_TEXT,
    FORMAT_CHROME, /* the timeline for Perfetto */
    FORMAT_JSON    /* what a view with VIEW_JSON shows, one object */
} RenderFormat;

typedef struct {
    const char *name, *what;
    unsigned asks;
    bool of_rank; /* may show one rank */
} RenderView;
/* All views; the first is drawn where none is named. */
const RenderView *render_views(int *n);
/* The first view with all these bits (VIEW_...); NULL: there is none. */
const RenderView *render_view_that(unsigned asks);

/* Draws one view into `path` (format by RenderFormat). False and a diagnostic: unknown view, preset
 * or theme (E0212, nearest named), an option that means nothing to the view or names what the trace
 * has not (E0212), a view that the trace has no data for (E0211, says what to run), unwritable
 * output (E0105; an existing file stays untouched). */
bool render_file(const Trace *t, Diags *d, const RenderOptions *o, RenderFormat f,
                 const char *path);
/* The same in memory (in `arena`), for stdout and tests. NULL on failure. */
char *render_text(const Trace *t, Diags *d, const RenderOptions *o, RenderFormat f, Arena *arena,
                  size_t *n);
/* The pages of a view before they are painted, for the lint and the tests; page[] has room for
 * VIEW_MAX_PAGES. 0 and a diagnostic on failure. */
struct Scene;
int render_pages(const Trace *t, Diags *d, const RenderOptions *o, Arena *arena,
                 struct Scene **page);
/* Layout lint of a view (visual.md 1.0.8): number of findings, texts in *report. */
int render_lint(const Trace *t, Diags *d, const RenderOptions *o, Arena *arena,
                const char **report);
/* Format from a file name's extension; false if unknown. */
bool render_format(const char *path, RenderFormat *f);
/* Releases what Cairo, Pango and fontconfig keep (so that leak checkers are quiet). */
void render_cleanup(void);
#endif
