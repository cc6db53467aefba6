#include "cli/suffix.h"
#include "base/text.h"
#include "model/model.h"
#include <string.h>

enum { SHOWN = 4, MOST = 1 << 14 }; /* candidates of a hint; names that are looked through */
typedef struct {
    const char *is;   /* as the trace has it */
    const char *said; /* by another scheme, or the same */
} Known;
typedef struct {
    Arena *a;
    Known *name;
    int n, cap;
} KnownNames;

static void add(KnownNames *k, const char *is, const char *said) {
    if (is && said && k->n < MOST) *ARENA_PUSH(k->a, k->name, k->n, k->cap) = (Known){is, said};
}
/* A path, which may be that of a parameter, in every scheme that has it. */
static void add_schemes(KnownNames *k, const char *is, const char *hf) {
    for (int s = 0; hf && s < NAMES_COUNT; s++) {
        const char *said = names_to_scheme(k->a, (Names)s, hf);
        if (said && strcmp(said, is) != 0) add(k, is, said);
    }
}
static Names scheme_of(const Trace *t) {
    for (int s = 0; t->names && s < NAMES_COUNT; s++)
        if (strcmp(plan_names_text((Names)s), t->names) == 0) return (Names)s;
    return NAMES_TORCHTITAN;
}
/* `others`: by other schemes too. Modules with parameters or steps, and those around them. */
static void add_module(KnownNames *k, const Trace *t, const char *path, bool others) {
    for (const char *end = path; *end;) {
        end += *end == '.';
        end += strcspn(end, ".");
        const char *is = arena_strndup(k->a, path, (size_t)(end - path));
        bool there = false;
        for (int i = k->n; !there && i-- > 0;) there = strcmp(k->name[i].is, is) == 0;
        if (there) continue;
        add(k, is, is);
        if (others) add_schemes(k, is, names_from_scheme(k->a, scheme_of(t), is, 0));
    }
}
static KnownNames all_of(Arena *a, const Trace *t, unsigned kinds, bool others) {
    KnownNames k = {.a = a};
    const char *last = NULL;
    for (int i = 0; kinds & SUFFIX_MODULES && i < t->n_params; i++)
        if (t->params[i].module) add_module(&k, t, t->params[i].module, others);
    for (int i = 0; kinds & SUFFIX_MODULES && i < t->n_computes; i++) {
        const char *m = t->computes[i].module;
        if (m && (!last || strcmp(last, m) != 0)) add_module(&k, t, m, others);
        last = m;
    }
    for (int i = 0; kinds & SUFFIX_PARAMS && i < t->n_params; i++) {
        const TraceParam *p = &t->params[i];
        add(&k, p->plan_name, p->plan_name);
        if (others && p->plan_name)
            add_schemes(&k, p->plan_name, names_from_scheme(a, scheme_of(t), p->plan_name, 0));
    }
    for (int i = 0; kinds & SUFFIX_VALUES && i < t->n_values; i++) {
        const char *v = t->values[i].shape.name;
        if (v && strncmp(v, "grad.", 5) != 0) add(&k, v, v);
    }
    return k;
}
/* Are both of the same place, in whatever layer: "layers.0.attention", "layers.1.attention"? */
static bool same_but_layer(const char *a, const char *b) {
    while (*a && *a == *b && !(*a >= '0' && *a <= '9')) a++, b++;
    size_t n = strspn(a, "0123456789"), m = strspn(b, "0123456789");
    return strcmp(n && m ? a + n : a, n && m ? b + m : b) == 0;
}
static bool ends(const char *path, const char *with) {
    size_t n = text_before(path, with);
    return n && path[n - 1] == '.';
}
/* How many different names end so; the first few to found[SHOWN]. `layers`: those that differ in
 * their layer are one, and *several says that there are such. */
static int matches(const KnownNames *k, const char *name, bool layers, const char **found,
                   bool *several) {
    int n = 0;
    *several = false;
    for (int i = 0; i < k->n; i++) {
        bool there = !ends(k->name[i].said, name) && strcmp(k->name[i].said, name) != 0;
        for (int j = 0; !there && j < n && j < SHOWN; j++) {
            bool same = strcmp(found[j], k->name[i].is) == 0;
            there = same || (layers && same_but_layer(found[j], k->name[i].is));
            *several |= there && !same;
        }
        if (there) continue;
        if (n < SHOWN) found[n] = k->name[i].is;
        n++;
    }
    return n;
}
static const char *candidates(Arena *a, const char *const *found, int n) {
    Str s = str_new(a);
    for (int i = 0; i < n && i < SHOWN; i++) str_addf(&s, "%s%s", i ? ", " : "", found[i]);
    if (n > SHOWN) str_addf(&s, " and %d more", n - SHOWN);
    return arena_printf(a, "%d names end so: %s", n, s.s);
}
/* As many last components of a path as the name has. */
static const char *tail_like(const char *path, const char *name) {
    int dots = 0;
    for (const char *p = name; *p; p++) dots += *p == '.';
    for (const char *p = path + strlen(path); p > path; p--)
        if (p[-1] == '.' && dots-- == 0) return p;
    return path;
}
/* The nearest whole name or ending, of any scheme. */
static const char *nearest(const KnownNames *k, const char *name) {
    const char **said = ARENA_ARRAY(k->a, const char *, 2 * k->n + 1);
    for (int i = 0; i < k->n; i++) {
        said[i] = k->name[i].said;
        said[k->n + i] = tail_like(k->name[i].said, name);
    }
    said[2 * k->n] = NULL;
    const char *near = diag_nearest(name, said);
    for (int i = 0; near && i < k->n; i++)
        if (strcmp(said[i], near) == 0 || strcmp(said[k->n + i], near) == 0)
            return ends(k->name[i].is, near) || strcmp(k->name[i].is, near) == 0
                       ? near
                       : arena_printf(k->a, "%s, which this plan calls %s", near, k->name[i].is);
    return NULL;
}
int suffix_apart(Arena *a, const Trace *t, const char *name, const char **found, bool *several) {
    KnownNames modules = all_of(a, t, SUFFIX_MODULES, false), k = {.a = a};
    for (int i = 0; i < modules.n; i++) {
        const char *is = modules.name[i].is, *hf = names_from_scheme(a, scheme_of(t), is, 0);
        for (int s = 0; hf && s < NAMES_COUNT; s++) add(&k, is, names_together(a, (Names)s, hf));
    }
    size_t of_weight = text_before(name, ".weight");
    if (of_weight) name = arena_strndup(a, name, of_weight);
    int n = 0;
    *several = false;
    const char *of = NULL;
    for (int i = 0; i < k.n; i++) {
        const char *said = k.name[i].said;
        if (!ends(said, name) && strcmp(said, name) != 0) continue;
        if (!of) of = said;
        bool same = strcmp(of, said) == 0;
        *several |= !same;
        if (same && n < SUFFIX_APART) found[n++] = k.name[i].is;
    }
    return n;
}
/* What is one module elsewhere and several here. */
static const char *apart_hint(Arena *a, const Trace *t, const char *name) {
    const char *found[SUFFIX_APART];
    bool several;
    int n = suffix_apart(a, t, name, found, &several);
    Str s = str_new(a);
    for (int i = 0; i < n; i++) str_addf(&s, "%s%s", i ? ", " : "", found[i]);
    return n ? arena_printf(a, "it is apart in this plan: %s%s", s.s,
                            several ? ", and those of other layers" : "")
             : NULL;
}
/* `several`: layers are one place, see matches; NULL: they are not. */
static const char *find(Arena *a, const Trace *t, const char *name, unsigned kinds, bool *several,
                        const char **hint) {
    const char *found[SHOWN];
    bool none;
    *hint = NULL;
    if (!*name) return NULL;
    for (int others = 0; others < 2; others++) {
        KnownNames k = all_of(a, t, kinds, others);
        int n = matches(&k, name, several != NULL, found, several ? several : &none);
        if (n == 1) return found[0];
        if (n) *hint = candidates(a, found, n);
        else if (others && !(*hint = apart_hint(a, t, name))) *hint = nearest(&k, name);
        if (n) return NULL;
    }
    return NULL;
}
const char *suffix_find(Arena *a, const Trace *t, const char *name, unsigned kinds,
                        const char **hint) {
    static const char *const behind[] = {".input", ".output"};
    if (strncmp(name, "grad.", 5) == 0) {
        const char *of = find(a, t, name + 5, kinds & ~(unsigned)SUFFIX_MODULES, NULL, hint);
        return of ? arena_printf(a, "grad.%s", of) : NULL;
    }
    const char *is = find(a, t, name, kinds, NULL, hint), *why = NULL;
    for (int i = 0; !is && !*hint && kinds & SUFFIX_VALUES && i < 2; i++) {
        size_t n = text_before(name, behind[i]);
        if (!n) continue;
        const char *of = find(a, t, arena_strndup(a, name, n), SUFFIX_MODULES, NULL, &why);
        is = of ? arena_printf(a, "%s%s", of, behind[i]) : NULL;
        *hint = why;
    }
    return is;
}
const char *suffix_in_layers(Arena *a, const Trace *t, const char *name, unsigned kinds,
                             bool *several, const char **hint) {
    return find(a, t, name, kinds, several, hint);
}
