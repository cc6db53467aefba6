/* Any bytes as a saved trace. What is accepted is written and read again, and drawn in every view
 * and preset, as text and as a picture: a painter must take whatever the reader lets pass. */
#include "fuzz.h"
#include "render/render.h"
#include <assert.h>

void fuzz_trace(const uint8_t *p, size_t n) {
    static const char *const preset[] = {"wide", "column", "slide", "a4"};
    if (n > 1 << 16) return;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    char *text = arena_strndup(a, (const char *)p, n);
    Trace *t = trace_read(a, d, "fuzz.jsonl", text, n);
    assert(t || diags_errors(d));
    if (t) {
        size_t size;
        char *again = trace_text(t, a, true, &size);
        assert(trace_read(a, d, "again.jsonl", again, size));
        int views;
        const RenderView *v = render_views(&views);
        for (int i = 0; i < views; i++) {
            /* a view that has nothing to show says so */
            RenderOptions o = {.view = v[i].name, .preset = preset[n % 4], .rank = -1, .layer = -1};
            Diags *said = diags_new(a);
            if (!render_text(t, said, &o, FORMAT_SVG, a, &size)) assert(diags_errors(said));
            if (!render_text(t, said, &o, FORMAT_TEXT, a, &size)) assert(diags_errors(said));
        }
    }
    arena_free(a);
}
