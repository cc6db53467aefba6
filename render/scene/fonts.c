/* Fonts and measured text. The fonts are loaded from their files into a private fontconfig, so that
 * no configuration of the machine or its user changes a pixel (visual.md 2.2); only if neither
 * Inter nor DejaVu Sans is found where Debian and others put them, the machine's own fonts answer.
 * Hinting, rounding and subpixel rendering are off: a text has the same width at every scale. */
#include "render/scene/fonts_layout.h"
#include "base/arena.h"
#include <fontconfig/fontconfig.h>
#include <malloc.h>
#include <pango/pangofc-fontmap.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Measuring is most of the work of drawing, and a view measures the same words again and again. */
typedef struct {
    char *key; /* NULL: free; size, looks and letters */
    size_t n;
    double width;
    int unknown;
} Measured;
enum { MEASURED = 1 << 14 }; /* slots; emptied when three quarters are taken */

struct Fonts {
    Measured *seen;
    int n_seen;
    FcConfig *config;
    PangoFontMap *map;
    PangoContext *context;
    PangoLayout *layout;
    PangoFontDescription *desc;
    bool own;     /* the fonts are the ones we looked for */
    double probe; /* width of a known text when they were loaded */
};

static const char *const folders[] = {"/usr/share/fonts/opentype/inter",
                                      "/usr/share/fonts/truetype/inter",
                                      "/usr/share/fonts/inter",
                                      "/usr/share/fonts/OTF",
                                      "/usr/share/fonts/truetype/dejavu",
                                      "/usr/share/fonts/dejavu",
                                      "/usr/share/fonts/dejavu-sans-fonts",
                                      "/usr/share/fonts/TTF",
                                      "/usr/local/share/fonts",
                                      NULL};
static const char *const files[] = {
    "Inter-Regular.otf",   "Inter-Medium.otf",       "Inter-SemiBold.otf",
    "Inter-Bold.otf",      "Inter-Italic.otf",       "Inter-SemiBoldItalic.otf",
    "Inter-Regular.ttf",   "Inter-Medium.ttf",       "Inter-SemiBold.ttf",
    "Inter-Bold.ttf",      "Inter-Italic.ttf",       "DejaVuSans.ttf",
    "DejaVuSans-Bold.ttf", "DejaVuSans-Oblique.ttf", NULL};

/* Adds each file from the first folder that has it; returns how many were found. */
static int load_files(FcConfig *config) {
    int found = 0;
    for (int i = 0; files[i]; i++)
        for (int k = 0; folders[k]; k++) {
            char path[256];
            snprintf(path, sizeof path, "%s/%s", folders[k], files[i]);
            if (access(path, R_OK) || !FcConfigAppFontAddFile(config, (const FcChar8 *)path))
                continue;
            found++;
            break;
        }
    return found;
}

/* The only process-wide state of render/: the fonts, loaded once. Loading takes longer than drawing
 * a figure, and Pango 1.50 keeps a reference to every private fontconfig for ever, so a new one per
 * figure would leak. */
static Fonts shared;

/* GLib ends the program when it gets no memory or no thread (Pango looks for fonts in threads of
 * its own); it shall end the way that ours does. */
static void glib_gives_up(const gchar *domain, GLogLevelFlags level, const gchar *text,
                          gpointer unused) {
    (void)level, (void)unused;
    if (strstr(text, "thread"))
        base_die(5,
                 "no thread could be started to draw a picture (ulimit -u, ulimit -v): %s [E0706]",
                 text);
    bool memory = strstr(text, "allocate") != NULL;
    base_die(memory ? 5 : 70, "%s: %s%s", domain, text, memory ? " [E0701]" : " [E0901]");
}

static void load(Fonts *f) {
    g_log_set_handler("GLib", G_LOG_LEVEL_ERROR | G_LOG_FLAG_FATAL | G_LOG_FLAG_RECURSION,
                      glib_gives_up, NULL);
    /* an arena of glibc's for each of Pango's threads takes 64 MiB of address space, and none needs
     * one */
    mallopt(M_ARENA_MAX, 1);
    if (!f->config) f->config = FcConfigCreate();
    f->own = f->config && load_files(f->config) > 0;
    /* or Pango has a thread read the machine's configuration and list its fonts, for nothing */
    if (f->own) FcConfigSetCurrent(f->config);
    f->map = pango_cairo_font_map_new_for_font_type(CAIRO_FONT_TYPE_FT);
    if (f->own) pango_fc_font_map_set_config(PANGO_FC_FONT_MAP(f->map), f->config);
    f->context = pango_font_map_create_context(f->map);
    cairo_font_options_t *o = cairo_font_options_create();
    cairo_font_options_set_hint_style(o, CAIRO_HINT_STYLE_NONE);
    cairo_font_options_set_hint_metrics(o, CAIRO_HINT_METRICS_OFF);
    cairo_font_options_set_antialias(o, CAIRO_ANTIALIAS_GRAY);
    pango_cairo_context_set_font_options(f->context, o);
    cairo_font_options_destroy(o);
    pango_context_set_round_glyph_positions(f->context, FALSE);
    pango_context_set_language(f->context, pango_language_from_string("en"));
    pango_context_set_base_dir(f->context, PANGO_DIRECTION_LTR);
    f->layout = pango_layout_new(f->context);
    pango_layout_set_auto_dir(f->layout, FALSE);
    f->desc = pango_font_description_new();
    pango_font_description_set_family_static(f->desc, "Inter, DejaVu Sans");
}

static void attr(PangoAttrList *list, PangoAttribute *a, guint from, guint to) {
    a->start_index = from;
    a->end_index = to;
    pango_attr_list_insert(list, a);
}

/* Runs as one text, which the caller frees, and its attributes; colors only in a theme. */
static char *text_of(const Run *run, int n, int theme, PangoAttrList **attributes) {
    size_t len = 0;
    for (int i = 0; i < n; i++) len += strlen(run[i].s);
    char *text = base_malloc(len + 1);
    text[len] = 0;
    PangoAttrList *list = *attributes = pango_attr_list_new();
    guint at = 0;
    for (int i = 0; i < n; i++) {
        guint k = (guint)strlen(run[i].s);
        memcpy(text + at, run[i].s, k);
        attr(list, pango_attr_weight_new((PangoWeight)run[i].weight), at, at + k);
        if (run[i].italic) attr(list, pango_attr_style_new(PANGO_STYLE_ITALIC), at, at + k);
        if (run[i].underline)
            attr(list, pango_attr_underline_new(PANGO_UNDERLINE_SINGLE), at, at + k);
        if (theme >= 0) {
            uint32_t c = theme_color((Theme)theme, run[i].role);
            attr(list,
                 pango_attr_foreground_new((guint16)((c >> 16 & 255) * 257),
                                           (guint16)((c >> 8 & 255) * 257),
                                           (guint16)((c & 255) * 257)),
                 at, at + k);
        }
        at += k;
    }
    attr(list, pango_attr_font_features_new("tnum"), 0, at);
    const char *bad; /* bytes that are no UTF-8 become question marks, so that the attributes keep
                        their places */
    for (char *p = text; !g_utf8_validate(p, (gssize)(text + len - p), &bad);
         p = text + (bad - text) + 1)
        text[bad - text] = '?';
    return text;
}
PangoLayout *fonts_layout(Fonts *f, const Run *run, int n, double size, int theme) {
    PangoAttrList *list;
    char *text = text_of(run, n, theme, &list);
    pango_font_description_set_absolute_size(f->desc, size * PANGO_SCALE);
    pango_layout_set_font_description(f->layout, f->desc);
    pango_layout_set_attributes(f->layout, list);
    pango_layout_set_text(f->layout, text, -1);
    pango_attr_list_unref(list);
    free(text);
    return f->layout;
}

/* Size, looks and letters of a text as bytes, malloc'ed; a weight is at most 1000, so no byte of it
 * is taken twice. */
static char *measure_key(const Run *run, int n, double size, size_t *len) {
    *len = sizeof size;
    for (int i = 0; i < n; i++) *len += strlen(run[i].s) + 4;
    char *key = base_malloc(*len), *p = key;
    memcpy(p, &size, sizeof size);
    p += sizeof size;
    for (int i = 0; i < n; i++) {
        size_t k = strlen(run[i].s) + 1;
        *p++ = (char)(run[i].weight & 255);
        *p++ = (char)(run[i].weight >> 8);
        *p++ = (char)(run[i].italic | run[i].underline << 1);
        memcpy(p, run[i].s, k);
        p += k;
    }
    return key;
}

static void forget(Fonts *f) {
    for (int i = 0; f->seen && i < MEASURED; i++) free(f->seen[i].key);
    free(f->seen);
    f->seen = NULL;
    f->n_seen = 0;
}

GList *fonts_pieces(Fonts *f, const Run *run, int n, double size, char **text) {
    PangoAttrList *list;
    *text = text_of(run, n, -1, &list);
    pango_font_description_set_absolute_size(f->desc, size * PANGO_SCALE);
    pango_context_set_font_description(f->context, f->desc);
    GList *pieces = pango_itemize_with_base_dir(f->context, PANGO_DIRECTION_LTR, *text, 0,
                                                (int)strlen(*text), list, NULL);
    pango_attr_list_unref(list);
    return pieces;
}
/* The width of a text and its letters that no font has. The pieces that a layout would make of it,
 * each shaped: a layout would also look for places to break lines, and for heights. */
static void shape(Fonts *f, const Run *run, int n, double size, Measured *m) {
    char *text;
    GList *pieces = fonts_pieces(f, run, n, size, &text);
    PangoGlyphString *glyphs = pango_glyph_string_new();
    int width = 0, length = (int)strlen(text);
    for (GList *l = pieces; l; l = l->next) {
        PangoItem *item = l->data;
        pango_shape_full(text + item->offset, item->length, text, length, &item->analysis, glyphs);
        width += pango_glyph_string_get_width(glyphs);
        for (int k = 0; k < glyphs->num_glyphs; k++)
            m->unknown += (glyphs->glyphs[k].glyph & PANGO_GLYPH_UNKNOWN_FLAG) != 0;
        pango_item_free(item);
    }
    m->width = (double)width / PANGO_SCALE;
    g_list_free(pieces);
    pango_glyph_string_free(glyphs);
    free(text);
}
static const Measured *measure(Fonts *f, const Run *run, int n, double size) {
    size_t len;
    char *key = measure_key(run, n, size, &len);
    uint64_t h = 1469598103934665603u; /* FNV-1a */
    for (size_t i = 0; i < len; i++) h = (h ^ (unsigned char)key[i]) * 1099511628211u;
    if (f->n_seen >= MEASURED / 4 * 3) forget(f);
    if (!f->seen) {
        f->seen = base_malloc(MEASURED * sizeof *f->seen);
        memset(f->seen, 0, MEASURED * sizeof *f->seen);
    }
    Measured *m = &f->seen[h % MEASURED];
    while (m->key && (m->n != len || memcmp(m->key, key, len)))
        if (++m == f->seen + MEASURED) m = f->seen;
    if (m->key) {
        free(key);
        return m;
    }
    *m = (Measured){.key = key, .n = len};
    shape(f, run, n, size, m);
    f->n_seen++;
    return m;
}

double fonts_width(Fonts *f, const Run *run, int n, double size) {
    return measure(f, run, n, size)->width;
}
int fonts_unknown(Fonts *f, const Run *run, int n, double size) {
    return measure(f, run, n, size)->unknown;
}

/* Fontconfig, FreeType and HarfBuzz that get no memory leave fonts and letters out and say nothing:
 * a text whose width is known is measured when the fonts are there, and after every picture. */
static double probe_width(Fonts *f) {
    static const Run word = {.s = "Each rank holds 1/8 of it", .weight = 400};
    return fonts_unknown(f, &word, 1, 20) ? 0 : fonts_width(f, &word, 1, 20);
}
Fonts *fonts_shared(void) {
    if (shared.layout) return &shared;
    load(&shared);
    shared.probe = probe_width(&shared);
    if (shared.own && !(shared.probe > 0))
        base_die(5, "the fonts could not be used, most likely for lack of memory [E0701]");
    return &shared;
}
void fonts_intact(Fonts *f) {
    if (f->probe > 0 && probe_width(f) != f->probe)
        base_die(5, "out of memory while a picture was drawn: letters are missing [E0701]");
}

bool fonts_own(const Fonts *f) { return f->own; }

/* cairo_debug_reset_static_data() and FcFini() stay uncalled: Pango loads fonts in threads of its
 * own, and when one of them still holds a font at that moment they end the program. The fontconfig
 * is kept (see above) and used again. */
void fonts_cleanup(void) {
    Fonts *f = &shared;
    if (!f->layout) return;
    pango_font_description_free(f->desc);
    g_object_unref(f->layout);
    g_object_unref(f->context);
    g_object_unref(f->map);
    FcConfig *config = f->config;
    forget(f);
    memset(f, 0, sizeof *f);
    f->config = config;
}

/* Asked for by LeakSanitizer: fontconfig stores pointers as offsets, which no leak checker can
 * follow. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void) { return "leak:libfontconfig.so\n"; }
