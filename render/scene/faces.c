/* Which letters of which font a scene shows, and the part of each font that has them. Which font
 * has a letter is asked of Pango, so that a browser takes the glyphs that the Cairo painter takes;
 * the parts are cut out by HarfBuzz. Hinting goes (nobody hints here, see fonts.c), and so do all
 * features but those that stand for what Pango does with a text unasked, and equally wide digits.
 */
#include "render/scene/faces.h"
#include "render/scene/fonts_layout.h"
#include <hb-subset.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* The looks by which faces differ, and the letters of each. */
typedef struct {
    int weight;
    bool italic;
    hb_set_t *letters;
} LookLetters;
typedef struct {
    Face face;
    hb_face_t *font; /* owned by Pango, referenced here */
    hb_set_t *letters;
    hb_blob_t *file; /* what was cut out; NULL: HarfBuzz got no memory, or cannot cut this font */
} Part;
/* Weights times slants, and fonts that a look's letters may come from: those of fonts.c. */
enum { MAX_LOOKS = 16, MAX_PARTS = 48 };

static void add_letters(hb_set_t *to, const char *text) {
    for (const char *p = text; *p; p = g_utf8_next_char(p)) {
        gunichar c = g_utf8_get_char_validated(p, -1);
        if (c >= ' ' && c < 0x110000) hb_set_add(to, c);
    }
}
static int letters_by_look(const Scene *s, LookLetters *look) {
    int n = 0;
    for (int i = 0; i < s->n_marks; i++)
        for (int k = 0; k < s->marks[i].n_run; k++) {
            const Run *r = &s->marks[i].run[k];
            int at = 0;
            while (at < n && (look[at].weight != r->weight || look[at].italic != r->italic)) at++;
            if (at == MAX_LOOKS) continue;
            if (at == n) look[n++] = (LookLetters){r->weight, r->italic, hb_set_create()};
            add_letters(look[at].letters, r->s);
        }
    return n;
}

/* All letters of a set as one text. */
static char *text_of(Arena *a, const hb_set_t *letters) {
    char *text = arena_alloc(a, (size_t)hb_set_get_population(letters) * 6 + 1), *p = text;
    for (hb_codepoint_t c = HB_SET_VALUE_INVALID; hb_set_next(letters, &c);)
        p += g_unichar_to_utf8(c, p);
    *p = 0;
    return text;
}
static Part *part_for(Part *part, int *n, const LookLetters *look, hb_face_t *font,
                      const char *family) {
    for (int i = 0; i < *n; i++)
        if (part[i].font == font && part[i].face.weight == look->weight &&
            part[i].face.italic == look->italic)
            return &part[i];
    if (*n == MAX_PARTS) return NULL;
    part[*n] = (Part){{family, look->weight, look->italic, NULL, 0},
                      hb_face_reference(font),
                      hb_set_create(),
                      NULL};
    return &part[(*n)++];
}
/* Which font has which of a look's letters: a text of them all, in the pieces that Pango makes of
 * it. */
static void letters_by_font(const Scene *s, const LookLetters *look, Part *part, int *n) {
    Run run = {
        .s = text_of(s->arena, look->letters), .weight = look->weight, .italic = look->italic};
    char *text;
    GList *pieces = fonts_pieces(s->fonts, &run, 1, 20, &text);
    for (GList *at = pieces; at; at = at->next) {
        PangoItem *item = at->data;
        PangoFont *font = item->analysis.font;
        PangoFontDescription *d = pango_font_describe(font);
        const char *family = arena_strdup(s->arena, pango_font_description_get_family(d));
        pango_font_description_free(d);
        hb_face_t *face = hb_font_get_face(pango_font_get_hb_font(font));
        Part *p = part_for(part, n, look, face, family);
        if (p)
            add_letters(p->letters,
                        arena_strndup(s->arena, text + item->offset, (size_t)item->length));
        pango_item_free(item);
    }
    g_list_free(pieces);
    free(text);
}

/* What is kept of the rules for placing and replacing glyphs. */
static void keep_features(hb_subset_input_t *input) {
    static const char *const kept[] = {"ccmp", "locl", "rlig", "calt", "clig", "liga",
                                       "rclt", "kern", "mark", "mkmk", "tnum"};
    hb_set_t *f = hb_subset_input_set(input, HB_SUBSET_SETS_LAYOUT_FEATURE_TAG);
    hb_set_clear(f);
    for (size_t i = 0; i < sizeof kept / sizeof *kept; i++)
        hb_set_add(f, hb_tag_from_string(kept[i], 4));
}
/* Are the letters in the file? HarfBuzz that gets no memory leaves some out and says nothing. */
static bool has_letters(hb_blob_t *file, const hb_set_t *letters) {
    hb_face_t *face = hb_face_create(file, 0);
    hb_set_t *there = hb_set_create();
    hb_face_collect_unicodes(face, there);
    bool all = hb_set_is_subset(letters, there);
    hb_set_destroy(there);
    hb_face_destroy(face);
    return all;
}
/* Cuts the letters out into p->file. */
static void cut_out(Part *p) {
    hb_subset_input_t *input = hb_subset_input_create_or_fail();
    if (!input || !hb_set_allocation_successful(p->letters)) return;
    hb_set_t *known = hb_set_create();
    hb_face_collect_unicodes(p->font, known);
    hb_set_intersect(p->letters, known); /* what no font has is given to any */
    hb_set_destroy(known);
    hb_set_set(hb_subset_input_unicode_set(input), p->letters);
    hb_subset_input_set_flags(input, HB_SUBSET_FLAGS_NO_HINTING);
    keep_features(input);
    hb_face_t *small = hb_subset_or_fail(p->font, input);
    hb_subset_input_destroy(input);
    if (!small) return;
    p->file = hb_face_reference_blob(small);
    hb_face_destroy(small);
}
/* Parts are cut out by whoever is free. Each has a font's letters to itself; the font is only read,
 * which HarfBuzz allows to several at once. */
typedef struct {
    Part *part;
    int n;
    atomic_int next;
} Cutting;
static void *cut_parts(void *arg) {
    Cutting *c = arg;
    for (int i; (i = atomic_fetch_add(&c->next, 1)) < c->n;) cut_out(&c->part[i]);
    return NULL;
}
static void cut_all(Part *part, int n) {
    Cutting c = {.part = part, .n = n};
    pthread_t other;
    const bool two =
        n > 1 && sysconf(_SC_NPROCESSORS_ONLN) > 1 && !pthread_create(&other, NULL, cut_parts, &c);
    cut_parts(&c);
    if (two) pthread_join(other, NULL);
}
/* Takes the file of a part over; false: it is not whole. */
static bool take(Arena *a, Part *p) {
    unsigned n = 0;
    const char *bytes = p->file ? hb_blob_get_data(p->file, &n) : NULL;
    p->face.bytes = n ? arena_memdup(a, bytes, n) : NULL;
    p->face.n = n;
    bool whole = n > 0 && has_letters(p->file, p->letters);
    hb_blob_destroy(p->file);
    return whole;
}

int scene_faces(const Scene *s, Face **face) {
    LookLetters look[MAX_LOOKS];
    Part part[MAX_PARTS];
    int n = 0, n_looks = fonts_own(s->fonts) ? letters_by_look(s, look) : 0;
    for (int i = 0; i < n_looks; i++) {
        letters_by_font(s, &look[i], part, &n);
        hb_set_destroy(look[i].letters);
    }
    *face = ARENA_ARRAY(s->arena, Face, n);
    cut_all(part, n);
    for (int i = 0; i < n; i++) {
        if (!take(s->arena, &part[i]))
            base_die(5, "out of memory while a picture's fonts were cut out [E0701]");
        (*face)[i] = part[i].face;
        hb_set_destroy(part[i].letters);
        hb_face_destroy(part[i].font);
    }
    return n;
}
