/* Three ways to write one layout. Refuses to compute any: all of it stands in the record. What
 * PyTorch has no placement for (an order like zigzag) keeps this program's word, in small letters.
 */
#include "cli/notation.h"
#include <string.h>

static const char *torch_place(const char *place, Arena *a) {
    static const struct {
        const char *ours, *theirs;
    } words[] = {
        {"replicate", "Replicate()"}, {"varying_use", "Replicate()"}, {"partial", "Partial()"}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (!strcmp(place, words[i].ours)) return words[i].theirs;
    if (!strncmp(place, "shard(", 6)) return arena_printf(a, "Shard%s", place + 5);
    if (!strncmp(place, "partial(", 8)) return arena_printf(a, "Partial%s", place + 7);
    return place;
}
static const char *torch_text(const TraceShape *s, const char *name, Arena *a) {
    (void)name;
    Str t = str_new(a);
    if (!s->n_places) return NULL;
    for (int i = 0; i < s->n_places; i++)
        str_addf(&t, "%s%s", i ? ", " : "(", torch_place(s->place[i].place, a));
    str_addf(&t, "%s)", s->n_places == 1 ? "," : "");
    return t.s;
}
/* Axes "(cp*sp)" or "tp" as an index: "{cp,sp}", "tp". */
static void add_axes(Str *t, const char *axes) {
    size_t n = strcspn(axes, "*"), open = strspn(axes, "(");
    bool several = axes[n] == '*';
    if (several) str_add(t, "{");
    for (const char *c = axes + open; *c && *c != ')'; c++) str_addf(t, "%c", *c == '*' ? ',' : *c);
    if (several) str_add(t, "}");
}
static const char *jax_text(const TraceShape *s, const char *name, Arena *a) {
    Str t = str_new(a);
    if (!s->symbolic) return NULL;
    str_addf(&t, "%s[", name ? name : "");
    for (int d = 0; d < s->nd; d++) {
        const char *dim = s->dim_symbol[d] ? s->dim_symbol[d] : "", *cut = strchr(dim, '/');
        int n = cut ? (int)(cut - dim) : (int)strlen(dim);
        bool product = cut && memchr(dim, '*', (size_t)n) && *dim != '(';
        str_addf(&t, product ? "%s(%.*s)" : "%s%.*s", d ? ", " : "", n, dim);
        if (!cut) continue;
        str_add(&t, "_");
        add_axes(&t, cut + 1);
    }
    str_add(&t, "]");
    if (s->pending) {
        str_add(&t, "{U_");
        add_axes(&t, s->pending);
        str_add(&t, "}");
    }
    return t.s;
}
static const char *ours_text(const TraceShape *s, const char *name, Arena *a) {
    (void)name;
    if (!s->symbolic) return NULL;
    return s->pending ? arena_printf(a, "%s Σ %s", s->symbolic, s->pending) : s->symbolic;
}
static const struct {
    const char *word;
    const char *(*text)(const TraceShape *s, const char *name, Arena *a);
} rows[] = {{"torch", torch_text}, {"jax", jax_text}, {"ours", ours_text}};

const char *notation_text(const char *word, const TraceShape *s, const char *name, Arena *a) {
    for (size_t i = 0; word && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].word, word)) return rows[i].text(s, name, a);
    return NULL;
}
const char *notation_param(const char *word, const TraceParam *p, Arena *a) {
    Str t = str_new(a);
    if (!word || strcmp(word, rows[0].word) || !p->n_placements)
        return notation_text(word, &p->compute, p->plan_name ? p->plan_name : p->compute.name, a);
    for (int i = 0; i < p->n_placements; i++)
        str_addf(&t, "%s%s", i ? ", " : "(", p->placements[i]);
    str_addf(&t, "%s)", p->n_placements == 1 ? "," : "");
    return t.s;
}
