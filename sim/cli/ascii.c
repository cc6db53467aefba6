/* What the C locale can write. See ascii.h. */
#include "cli/ascii.h"
#include "base/utf8.h"
#include "cli/table.h"
#include <string.h>

/* Each as wide as what it stands for, so that tables and boxes keep their columns. */
static const struct {
    const char *characters, *ascii;
} rows[] = {
    {"─━═", "-"},    {"│┃║", "|"}, {"┌┐└┘├┤┬┴┼┣┛┓╞", "+"},
    {"·⊕", "*"},     {"×", "x"},   {"→", ">"},
    {"…", "~"},      {"✗✘", "x"},  {"✓✔", "v"},
    {"Σ", "+"},      {"÷", "/"},   {"µ", "u"},
    {"−–—‑", "-"},   {"◆●■", "#"}, {"∞", "i"},
    {"′’‘", "'"},    {"⋮", ":"},   {"↓", "v"},
    {"↑", "^"},      {"₀", "0"},   {"₁", "1"},
    {"₂", "2"},      {"₃", "3"},   {"₄", "4"},
    {"₅", "5"},      {"₆", "6"},   {"₇", "7"},
    {"₈", "8"},      {"₉", "9"},   {"≤", "<"},
    {"≥", ">"},      {"≈", "~"},   {"“”", "\""},
    {"\u00A0", " "},
};
enum { N_ROWS = sizeof rows / sizeof *rows };

static const char *instead(const char *s, size_t n) {
    for (int i = 0; i < N_ROWS; i++)
        for (const char *p = rows[i].characters; *p; p++)
            if (!strncmp(p, s, n)) return rows[i].ascii;
    return NULL;
}
const char *ascii_text(const char *s, Arena *arena) {
    const char *p = s;
    while (*p && (unsigned char)*p < 0x80) p++;
    if (!*p) return s;
    Str out = str_new(arena);
    while (*s) {
        int32_t code;
        size_t n = utf8_char(s, strnlen(s, 4), &code);
        const char *known = n > 1 ? instead(s, n) : NULL, *one = arena_strndup(arena, s, n);
        if ((unsigned char)*s < 0x80) str_addn(&out, s, 1);
        else if (known) str_add(&out, known);
        else
            for (int w = table_text_width(one); w > 0; w--) str_add(&out, "?");
        s += n;
    }
    return out.s;
}
