/* Three ways to write one layout. Refuses to compute any: all of it stands in the record. What
 * PyTorch has no placement for (an order like zigzag) keeps this program's word, in small letters.
 */
#include "cli/notation.h"
#include "cli/find.h"
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
/* ---- PyTorch's meshes ---- */
static bool is_torch(const char *word) { return word && !strcmp(word, rows[0].word); }
/* Is the axis one of the DTensor's mesh? Of other systems' parameters all are shown. */
static bool is_on(const Trace *t, const TraceParam *p, const char *axis) {
    const char *on[TRACE_MAX_AXES];
    int n;
    if (!p->on) return true;
    lookup_axes(t, p->on, false, on, &n);
    for (int i = 0; i < n; i++)
        if (!strcmp(on[i], axis)) return true;
    return false;
}
const char *notation_param(const char *word, const Trace *t, const TraceParam *p, Arena *a) {
    Str s = str_new(a);
    int n = 0;
    if (!is_torch(word) || !p->n_placements)
        return notation_text(word, &p->compute, p->plan_name ? p->plan_name : p->compute.name, a);
    if (p->on && !*p->on) return "Parameter";
    for (int i = 0; i < p->n_placements; i++)
        if (i >= t->n_axes || is_on(t, p, t->axes[i].name))
            str_addf(&s, "%s%s", n++ ? ", " : "(", p->placements[i]);
    str_addf(&s, "%s)", n == 1 ? "," : "");
    return s.s;
}
/* The devices from `first` on over the axes from `i` on, as nested lists. */
static void add_devices(Str *s, const RankBox *mesh, const bool *on, int i, int64_t first) {
    while (i < mesh->n && !on[i]) i++;
    if (i == mesh->n) {
        str_addf(s, "%lld", (long long)first);
        return;
    }
    str_add(s, "[");
    for (int64_t k = 0; k < mesh->side[i].size; k++) {
        if (k) str_add(s, ", ");
        add_devices(s, mesh, on, i + 1, first + k * mesh->side[i].stride);
    }
    str_add(s, "]");
}
const char *notation_devices(const char *word, const Trace *t, const TraceParam *p, int64_t rank,
                             Arena *a) {
    enum { MANY = 64 }; /* more are only counted */
    RankBox mesh = trace_mesh_box(t);
    bool on[TRACE_MAX_AXES] = {false};
    int64_t first = rank < 0 ? 0 : rank, n = 1;
    if (!is_torch(word) || !p->on || !*p->on) return NULL;
    for (int i = 0; i < mesh.n; i++) {
        on[i] = is_on(t, p, mesh.side[i].axis);
        if (!on[i]) continue;
        n *= mesh.side[i].size;
        first -= first / mesh.side[i].stride % mesh.side[i].size * mesh.side[i].stride;
    }
    if (n > MANY) return arena_printf(a, "%lld devices", (long long)n);
    Str s = str_new(a);
    add_devices(&s, &mesh, on, 0, first);
    return s.s;
}
