/* An SVG is whole by itself: it brings the letters it shows along, keeps its spaces, says in a
 * tooltip what each mark is, and shows where a link led. Fonts are read back from the bytes and
 * asked for every letter and its width by HarfBuzz. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "render/furniture/views.h"
#include "render/paint/paint.h"
#include "render/render.h"
#include "render/scene/fonts_layout.h"
#include "support/support.h"
#include <hb.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char plan[] =
    "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, blocks, norm, head, "
    "loss]}\n"
    "data: {batch: 4, sequence: 16, dtype: f64}\nmesh: {dp: 2, cp: 2, tp: 2}\ngroups: {sp: tp}\n"
    "names: torchtitan\nrecipe: torchtitan-llama3\n"
    "data_parallel: {mode: fsdp, axis: dp*cp}\npass: backward\n"
    "faults: [{at: layers.0.mlp.down, do: drop}]\n";

static Trace *planned(Arena *a) {
    PlanRun r = plan_run_with(
        a, "p.yaml", plan,
        &(PipelineOptions){.execute = true, .numbers = true, .events = true, .threads = 1});
    if (!r.t) diags_print(r.d, stderr, false);
    assert_non_null(r.t);
    return r.t;
}

/* ---- the fonts of an SVG ---- */
typedef struct {
    int family, weight;
    bool italic;
    hb_font_t *font;
} Embedded;
enum { MAX_FACES = 32 };

static unsigned char *from_base64(Arena *a, const char *p, size_t *n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    unsigned char *out = arena_alloc(a, strlen(p) + 3);
    unsigned v = 0;
    int bits = 0;
    for (*n = 0; *p && strchr(digit, *p); p++) {
        v = v << 6 | (unsigned)(strchr(digit, *p) - digit);
        bits += 6;
        if (bits >= 8) out[(*n)++] = (unsigned char)(v >> (bits -= 8));
    }
    return out;
}
static int faces_of(Arena *a, const char *svg, Embedded *e) {
    static const char open[] = "@font-face{font-family:'", data[] = "base64,";
    int n = 0;
    for (const char *p = strstr(svg, open); p; p = strstr(p + 1, open)) {
        const char *family = strstr(p, "-f"), *name = p + strlen(open);
        family = strchr(name, '\'') - 1;
        assert_true(n < MAX_FACES);
        e[n].family = atoi(family);
        e[n].weight = atoi(strstr(p, "font-weight:") + 12);
        e[n].italic = strncmp(strstr(p, "font-style:") + 11, "italic", 6) == 0;
        size_t k, len = strcspn(strstr(p, data) + strlen(data), ")");
        unsigned char *bytes =
            from_base64(a, arena_strndup(a, strstr(p, data) + strlen(data), len), &k);
        hb_blob_t *blob =
            hb_blob_create((char *)bytes, (unsigned)k, HB_MEMORY_MODE_READONLY, NULL, NULL);
        hb_face_t *face = hb_face_create(blob, 0);
        e[n++].font = hb_font_create(face);
        hb_face_destroy(face);
        hb_blob_destroy(blob);
    }
    return n;
}
static void free_faces(Embedded *e, int n) {
    for (int i = 0; i < n; i++) hb_font_destroy(e[i].font);
}
/* The face in which a browser finds the letter: the first family of that look that has it. */
static hb_font_t *face_with(const Embedded *e, int n, const Run *r, hb_codepoint_t c) {
    hb_codepoint_t glyph;
    for (int family = 0; family < n; family++)
        for (int i = 0; i < n; i++)
            if (e[i].family == family && e[i].weight == r->weight && e[i].italic == r->italic &&
                hb_font_get_nominal_glyph(e[i].font, c, &glyph))
                return e[i].font;
    return NULL;
}
static double shaped(hb_font_t *font, const char *p, size_t n, double size) {
    hb_buffer_t *b = hb_buffer_create();
    hb_feature_t digits = {HB_TAG('t', 'n', 'u', 'm'), 1, 0, (unsigned)-1};
    int upem = (int)hb_face_get_upem(hb_font_get_face(font));
    double sum = 0;
    unsigned glyphs;
    hb_font_set_scale(font, upem, upem);
    hb_buffer_add_utf8(b, p, (int)n, 0, (int)n);
    hb_buffer_guess_segment_properties(b);
    hb_shape(font, b, &digits, 1);
    const hb_glyph_position_t *at = hb_buffer_get_glyph_positions(b, &glyphs);
    for (unsigned i = 0; i < glyphs; i++) sum += at[i].x_advance;
    hb_buffer_destroy(b);
    return sum / upem * size;
}
static size_t letter(const char *p, hb_codepoint_t *c) {
    unsigned char lead = (unsigned char)*p;
    size_t n = lead < 0x80 ? 1 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : 4;
    *c = n == 1 ? lead : lead & (0x7Fu >> n);
    for (size_t i = 1; i < n; i++) *c = *c << 6 | ((unsigned char)p[i] & 0x3Fu);
    return n;
}
/* The width of a text in the embedded faces; fails where a letter is in none. */
static double width_in(const Embedded *e, int n, const Mark *m) {
    double sum = 0;
    for (int k = 0; k < m->n_run; k++)
        for (const char *p = m->run[k].s, *end; *p; p = end) {
            hb_codepoint_t c;
            end = p + letter(p, &c);
            hb_font_t *font = face_with(e, n, &m->run[k], c);
            if (!font) fail_msg("U+%04X of '%s' is in no font of the picture", c, m->run[k].s);
            while (*end) {
                size_t more = letter(end, &c);
                if (face_with(e, n, &m->run[k], c) != font) break;
                end += more;
            }
            sum += shaped(font, p, (size_t)(end - p), m->size);
        }
    return sum;
}
static void check_fonts(Arena *a, const Scene *s, const char *what) {
    Sink out = {.arena = a};
    Embedded e[MAX_FACES];
    paint_svg(s, &out);
    int n = faces_of(a, (const char *)out.p, e);
    assert_true(n > 0);
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT) continue;
        double w = width_in(e, n, m);
        if (fabs(w - m->w) > 0.05 + 0.002 * m->w)
            fail_msg("%s: '%s' is %.2f wide, in the picture's own fonts %.2f", what, m->run[0].s,
                     m->w, w);
    }
    free_faces(e, n);
}

/* Every letter of every view is in the fonts that the picture brings along, as wide as it was
 * measured; and they are parts of fonts, not fonts. */
static void pictures_bring_their_letters(void **state) {
    (void)state;
    int n_views;
    const RenderView *v = render_views(&n_views);
    Arena *a = arena_new();
    Trace *t = planned(a);
    for (int i = 0; i < n_views; i++) {
        Scene *page[VIEW_MAX_PAGES];
        Diags *d = diags_new(a);
        RenderOptions o = {.view = v[i].name, .rank = -1, .layer = -1};
        int n = render_pages(t, d, &o, a, page);
        if (n > 0) check_fonts(a, page[0], v[i].name);
    }
    Scene *s = scene_new(a, fonts_shared(), THEME_LIGHT, 200, 100);
    scene_text(s, 10, 20, (TextLook){.size = 12, .weight = REGULAR, .role = ROLE_INK}, "Σ ⊕ 1,024");
    scene_text(s, 10, 40, (TextLook){.size = 12, .weight = BOLD, .role = ROLE_INK}, "AllGather");
    check_fonts(a, s, "two lines");
    Sink out = {.arena = a};
    paint_svg(s, &out);
    assert_true(out.n > 2000 && out.n < 20000);
    arena_free(a);
}

/* Two spaces between a shape and its bytes stay two, for those that read XML and for browsers. */
static void spaces_stay(void **state) {
    (void)state;
    Arena *a = arena_new();
    Scene *s = scene_new(a, fonts_shared(), THEME_LIGHT, 200, 100);
    TextLook look = {.size = 12, .weight = REGULAR, .role = ROLE_INK};
    s->name = "mine";
    scene_text(s, 10, 20, look, "[1, 16]  8 KiB");
    scene_text(s, 10, 40, look, "one space");
    Sink out = {.arena = a};
    paint_svg(s, &out);
    const char *t = (const char *)out.p, *two = strstr(t, "[1, 16]  8 KiB"),
               *one = strstr(t, "one space");
    assert_non_null(strstr(t, "#mine text{white-space:pre}"));
    assert_non_null(strstr(t, " id=\"mine\""));
    const char *kept = strstr(t, "<text xml:space=\"preserve\"");
    assert_true(kept && kept < two && two < one);
    assert_null(strstr(two, "xml:space"));
    arena_free(a);
}

/* What is measured without a layout is as wide as the layout that is painted, and lacks the same
 * letters: words of several weights and fonts, from right to left, joined, and none. */
static void measured_as_painted(void **state) {
    (void)state;
    static const char *const word[] = {"",
                                       "AllGather",
                                       "[B/dp, S/(cp*sp), D]",
                                       "Σ ⊕ 1,024 → é",
                                       "To AV fi ffi",
                                       "שלום 12 abc",
                                       "\xff\xfe",
                                       "e\u0301 \u4e2d\u6587",
                                       "a  b"};
    enum { N = sizeof word / sizeof *word };
    Fonts *f = fonts_shared();
    int unknown = 0;
    for (int k = 0; k < 2 * N * N; k++) { /* each pair of words in two looks, one after the other */
        int i = k / 2, first = k % 2 ? BOLD : REGULAR;
        Run run[2] = {{.s = word[i % N], .weight = first},
                      {.s = word[i / N], .weight = BOLD, .italic = i % 2, .underline = i % 3 == 0}};
        double size = 7.5 + i % 9, width = fonts_width(f, run, 2, size);
        PangoLayout *l = fonts_layout(f, run, 2, size, THEME_LIGHT);
        PangoRectangle r;
        pango_layout_line_get_extents(pango_layout_get_line_readonly(l, 0), NULL, &r);
        if (width != (double)r.width / PANGO_SCALE)
            fail_msg("'%s%s': %g, painted %g", run[0].s, run[1].s, width,
                     (double)r.width / PANGO_SCALE);
        assert_int_equal(fonts_unknown(f, run, 2, size), pango_layout_get_unknown_glyphs_count(l));
        unknown += fonts_unknown(f, run, 2, size);
    }
    assert_true(unknown || !fonts_own(f));
}

/* A click on one of two marks that belong together leads to the other, which is framed then. */
static void links_show_where_they_led(void **state) {
    (void)state;
    Arena *a = arena_new();
    RenderOptions o = {.view = "block", .rank = -1, .layer = -1};
    size_t n;
    char *svg = render_text(planned(a), diags_new(a), &o, FORMAT_SVG, a, &n);
    assert_non_null(svg);
    const char *link = strstr(svg, "<a xlink:href=\"#"), *rule = strstr(svg, " g:target{outline:");
    assert_true(link && rule && rule < link);
    /* the rule is of this figure, and the link leads to a group of it */
    size_t len = strcspn(link + 16, "\"");
    const char *to = arena_printf(a, "<g id=\"%.*s\"", (int)len, link + 16);
    assert_non_null(strstr(svg, to));
    assert_non_null(strstr(svg, arena_printf(a, "#%.*s g:target{", 14, link + 16)));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(pictures_bring_their_letters), cmocka_unit_test(spaces_stay),
        cmocka_unit_test(measured_as_painted), cmocka_unit_test(links_show_where_they_led)};
    int rc = cmocka_run_group_tests_name("svg", tests, NULL, NULL);
    render_cleanup();
    return rc;
}
