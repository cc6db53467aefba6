/* The one place that writes plans for others. */
#include "import/write.h"
#include "base/text.h"
#include <ctype.h>
#include <string.h>

PlanWriter write_start(Arena *a) {
    return (PlanWriter){.a = a, .s = str_new(a), .line = 1, .col = 1};
}
static void put(PlanWriter *w, const char *text) {
    str_add(&w->s, text);
    for (; *text; text++) {
        if (*text == '\n') w->line++, w->col = 1;
        else if (((unsigned char)*text & 0xC0) != 0x80) w->col++;
    }
}
void write_text(PlanWriter *w, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    put(w, arena_vprintf(w->a, fmt, ap));
    va_end(ap);
}
/* Names, paths and patterns that YAML reads as they are, in a block or a flow. */
static bool is_plain(const char *s) {
    static const char *const special[] = {"null", "true", "false", "yes",  "no",    "on", "off",
                                          "y",    "n",    "Null",  "True", "False", NULL};
    for (int i = 0; special[i]; i++)
        if (strcmp(s, special[i]) == 0) return false;
    if (!isalpha((unsigned char)*s) && *s != '_') return false;
    for (; *s; s++)
        if (!isalnum((unsigned char)*s) && !strchr("_.*-/", *s)) return false;
    return true;
}
void write_scalar(PlanWriter *w, const char *text) {
    if (is_plain(text)) {
        put(w, text);
        return;
    }
    Str quoted = str_new(w->a);
    text_add_json(&quoted, text);
    put(w, quoted.s);
}
void write_from(PlanWriter *w, Loc from) {
    *ARENA_PUSH(w->a, w->origin, w->n_origin, w->cap_origin) = (DiagOrigin){w->line, w->col, from};
}
void write_end(PlanWriter *w, const char *comment, Loc from) {
    if (comment && from.line) write_text(w, "  # %s, line %d\n", comment, from.line);
    else write_text(w, comment ? "  # %s\n" : "\n", comment);
}
void write_comment(PlanWriter *w, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    Str one = str_new(w->a); /* on one line, whatever it quotes */
    for (const char *p = text_visible(w->a, arena_vprintf(w->a, fmt, ap)); *p; p++)
        str_addn(&one, *p == '\n' ? " " : p, 1);
    va_end(ap);
    write_text(w, "# %s\n", one.s);
}
