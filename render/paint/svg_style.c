/* What an SVG carries with it beside its marks: the letters it shows (so that it looks the same on
 * a machine without these fonts), and the few rules that attributes cannot say. All rules speak of
 * this figure only, because several may stand on one page. */
#include "render/paint/svg_style.h"
#include "render/paint/svg_play.h"
#include "render/paint/svg_same.h"
#include "base/text.h"
#include "render/scene/faces.h"
#include <string.h>

/* RFC 4648. */
static void base64(Sink *o, const unsigned char *p, size_t n) {
    static const char digit[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    for (size_t i = 0; i < n; i += 3) {
        size_t left = n - i < 3 ? n - i : 3;
        unsigned v = (unsigned)p[i] << 16 | (left > 1 ? (unsigned)p[i + 1] << 8 : 0) |
                     (left > 2 ? p[i + 2] : 0);
        char four[4] = {digit[v >> 18], digit[v >> 12 & 63], left > 1 ? digit[v >> 6 & 63] : '=',
                        left > 2 ? digit[v & 63] : '='};
        sink_add(o, four, 4);
    }
}
static void put(Sink *o, const char *t) { sink_add(o, t, strlen(t)); }

/* The figure's name for a family, so that the letters of one figure are not those of the next. */
static const char *own_name(const Scene *s, Sink *o, const Face *face, int at) {
    int k = 0;
    for (int i = 0; i < at; i++) {
        bool first = true;
        for (int j = 0; j < i; j++) first &= strcmp(face[j].family, face[i].family) != 0;
        if (!strcmp(face[i].family, face[at].family)) break;
        k += first;
    }
    return arena_printf(o->arena, "%s-f%d", s->name, k);
}

const char *svg_style(const Scene *s, Sink *o) {
    Face *face;
    int n = scene_faces(s, &face);
    Str families = str_new(o->arena);
    put(o, "<style>\n");
    for (int i = 0; i < n; i++) {
        const char *name = own_name(s, o, face, i);
        if (!strstr(families.s, name)) str_addf(&families, "'%s', ", name);
        put(o, arena_printf(o->arena,
                            "@font-face{font-family:'%s';font-weight:%d;font-style:%s;"
                            "src:url(data:font/otf;base64,",
                            name, face[i].weight, face[i].italic ? "italic" : "normal"));
        base64(o, face[i].bytes, face[i].n);
        put(o, ")}\n");
    }
    /* browsers heed this where they ignore xml:space; a click on a link shows where it led */
    put(o, arena_printf(o->arena,
                        "#%s text{white-space:pre}\n"
                        "#%s g:target{outline:3px solid #%06X;outline-offset:3px}\n",
                        s->name, s->name, theme_color(s->theme, ROLE_TARGET)));
    svg_same_rules(s, o);
    if (s->builds) svg_play_rules(s, o);
    put(o, "</style>\n");
    str_add(&families, "Inter, 'DejaVu Sans', Arial, sans-serif");
    return families.s;
}
