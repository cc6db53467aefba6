/* A name that matches nothing is most often right in another scheme, or half of it is
 * ("attention.o_proj": the module of torchtitan, the projection of Hugging Face). So every module
 * of the model is asked under all of its names. Refuses to guess between two: then it says what
 * there is. */
#include "assign/suggest.h"
#include "base/text.h"
#include <stdlib.h>
#include <string.h>

/* One module under one of its names, both as the pattern is written: with a star for a number. */
typedef struct {
    const char *name, *ours;
    Names scheme;
} Candidate;
typedef struct {
    const Assign *a;
    const char *pattern; /* without what follows the module's name */
    const char *rest;    /* ".weight", ".bias" or "" */
    Candidate *of;
    int n, cap;
    const char **meant; /* the module that the hint names, as a pattern */
} Search;

/* "layers.*.attention.w[qkv]" as a name of one module: layer 0, the first of the letters. */
static const char *one_of_pattern(Arena *a, const char *pattern) {
    Str s = str_new(a);
    for (const char *p = pattern; *p; p++) {
        const char *end = *p == '[' && p[1] ? strchr(p, ']') : NULL;
        str_addf(&s, "%c", *p == '*' ? '0' : end ? p[1] : *p);
        if (end) p = end;
    }
    return s.n ? s.s : "";
}
/* A pattern over all layers stays one. */
static const char *as_written(const Search *s, const char *name) {
    return strchr(s->pattern, '*') ? plan_pattern_of(s->a->arena, name) : name;
}
static bool known(const Search *s, const char *ours) {
    for (int m = 0; m < s->a->model->g.nm; m++) {
        const char *path = s->a->model->g.module[m].path;
        if (path && !strcmp(as_written(s, path), ours)) return true;
    }
    return false;
}

static bool seen(const Search *s, const char *ours) {
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->of[i].ours, ours)) return true;
    return false;
}
/* Without what follows the module's name. */
static Search search_of(const Assign *a, const char *pattern) {
    static const char *const owned[] = {".weight", ".bias"};
    Search s = {.a = a, .pattern = pattern, .rest = ""};
    for (int i = 0; i < 2; i++) {
        size_t n = text_before(pattern, owned[i]);
        if (!n) continue;
        s.pattern = arena_strndup(a->arena, pattern, n);
        s.rest = owned[i];
    }
    return s;
}
static Search search_for(const Assign *a, const char *pattern) {
    Search s = search_of(a, pattern);
    for (int m = 0; m < a->model->g.nm; m++) {
        const GModule *x = &a->model->g.module[m];
        if (!x->path) continue;
        const char *ours = as_written(&s, x->path);
        if (ours != x->path && seen(&s, ours)) continue; /* the same in another layer */
        *ARENA_PUSH(a->arena, s.of, s.n, s.cap) = (Candidate){ours, ours, a->plan->names};
        for (int k = 0; k < NAMES_COUNT && x->hf_path; k++) {
            const char *name = names_of_own(a->arena, (Names)k, x->hf_path);
            if (name)
                *ARENA_PUSH(a->arena, s.of, s.n, s.cap) =
                    (Candidate){as_written(&s, name), ours, (Names)k};
            if (name && !strncmp(name, "model.", 6)) /* plans may leave it out */
                *ARENA_PUSH(a->arena, s.of, s.n, s.cap) =
                    (Candidate){as_written(&s, name + 6), ours, (Names)k};
        }
    }
    return s;
}

const char *suggest_nearest(Arena *arena, const Graph *g, const char *pattern) {
    const char **names = ARENA_ARRAY(arena, const char *, g->nm + g->nt + 1);
    bool many = strchr(pattern, '*') != NULL; /* all layers' line stays that of all layers */
    int n = 0;
    for (int m = 0; m < g->nm; m++)
        if (g->module[m].path) names[n++] = g->module[m].path;
    for (int t = 0; t < g->nt; t++)
        if (g->t[t].kind == KIND_PARAM && g->t[t].plan_name) names[n++] = g->t[t].plan_name;
    for (int i = 0; i < n && many; i++) names[i] = plan_pattern_of(arena, names[i]);
    const char *near = diag_nearest(pattern, names);
    /* A layer called 'a[x]' is no match of the pattern 'a[x]'. */
    return near && strcmp(near, pattern) == 0 ? NULL : near;
}
/* ---- the ways to find it ---- */

/* It is a pattern of another kind. */
static const char *of_other_syntax(const char *pattern) {
    const char *open = strrchr(pattern, '[');
    if (open && !strchr(open, ']')) return "a ] is missing behind the letters in [...]";
    if (strstr(pattern, "**") || strpbrk(pattern, "\\()|^$+"))
        return "a pattern is no regular expression: `*` is any one component of a path, `w[qkv]` "
               "one of several letters, as in `layers.*.attention.w[qkv]`";
    return strchr(pattern, '{')
               ? "one of several letters is `w[123]`; for longer names write a line each"
               : NULL;
}
static const char *hf_name_of(const Assign *a, int scheme, const char *pattern) {
    return names_from_scheme(a->arena, (Names)scheme, one_of_pattern(a->arena, pattern), 0);
}
static int scheme_of(const Assign *a, const char *pattern) {
    int ours = (int)a->plan->names;
    if (hf_name_of(a, ours, pattern)) return -1;
    for (int k = 0; k < NAMES_COUNT; k++)
        if (k != ours && hf_name_of(a, k, pattern)) return k;
    return -1;
}
bool suggest_fits(const Assign *a, int scheme, const char *pattern) {
    const Search s = search_of(a, pattern);
    for (int m = 0; m < a->model->g.nm; m++) {
        const char *hf = a->model->g.module[m].hf_path,
                   *name = hf ? names_of_own(a->arena, (Names)scheme, hf) : NULL;
        if (name && (plan_match(s.pattern, name) ||
                     (!strncmp(name, "model.", 6) && plan_match(s.pattern, name + 6))))
            return true;
    }
    return false;
}
int suggest_scheme(const Assign *a, const char *pattern) {
    return scheme_of(a, search_of(a, pattern).pattern);
}
/* It is the name of another scheme, letter by letter. */
static const char *of_other_scheme(const Search *s) {
    Arena *a = s->a->arena;
    Names ours = s->a->plan->names;
    int scheme = scheme_of(s->a, s->pattern);
    if (scheme < 0) return NULL;
    const char *hf = hf_name_of(s->a, scheme, s->pattern), *end = "; `list names` shows both";
    const char *here = names_to_scheme(a, ours, hf);
    const bool one = here && !strchr(s->pattern, '[') && known(s, as_written(s, here));
    if (!one && !suggest_fits(s->a, scheme, s->pattern)) return NULL; /* of another family */
    if (one) *s->meant = as_written(s, here);
    if (one) end = arena_printf(a, ": here it is '%s%s'", as_written(s, here), s->rest);
    return arena_printf(a,
                        "that is a name of `names: %s`, and this plan's are those of "
                        "`names: %s`%s",
                        plan_names_text((Names)scheme), plan_names_text(ours), end);
}
static const char *leaf_of(const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? dot + 1 : name;
}
/* The module's name as patterns write it, by its name in Hugging Face's tree; NULL: there is none.
 */
static const char *here_of(const Search *s, const char *hf) {
    const Graph *g = &s->a->model->g;
    for (int m = 0; m < g->nm; m++)
        if (g->module[m].path && g->module[m].hf_path && !strcmp(g->module[m].hf_path, hf))
            return as_written(s, g->module[m].path);
    return NULL;
}
/* It is the name of one weight, in some scheme, where this model has several. */
static const char *of_packed(const Search *s) {
    static const char *const rows[][4] = {{"qkv_proj", "q_proj", "k_proj", "v_proj"},
                                          {"gate_up_proj", "gate_proj", "up_proj", NULL}};
    Arena *a = s->a->arena;
    const int other = scheme_of(s->a, s->pattern);
    const char *hf = hf_name_of(s->a, other < 0 ? (int)s->a->plan->names : other, s->pattern);
    for (size_t i = 0; hf && i < sizeof rows / sizeof *rows; i++) {
        const size_t n = text_before(hf, rows[i][0]);
        Str all = str_new(a);
        for (int k = 1; n && hf[n - 1] == '.' && k < 4 && rows[i][k]; k++) {
            const char *part = here_of(s, arena_printf(a, "%.*s%s", (int)n, hf, rows[i][k]));
            if (part) str_addf(&all, "%s'%s'", all.n ? ", " : "", part);
        }
        if (all.n)
            return arena_printf(a, "what '%s' packs into one weight is apart in this model: %s",
                                leaf_of(s->pattern), all.s);
    }
    return NULL;
}
/* Names of families that this model is not of, by what torchtitan calls the modules that do the
 * same, and the part of a layer that those are in. */
static const struct {
    const char *theirs, *whose, *part, *leaf[4];
    bool both; /* the other part has one of that name too: what stands before it tells */
} of_families[] = {
    {"c_attn", "GPT-2", "attention", {"wq", "wk", "wv", "wqkv"}, false},
    {"c_proj", "GPT-2", "attention", {"wo"}, true},
    {"c_proj", "GPT-2", "feed_forward", {"w2"}, true},
    {"c_fc", "GPT-2", "feed_forward", {"w1", "w3", "w13"}, false},
    {"query_key_value", "GPT-NeoX", "attention", {"wq", "wk", "wv", "wqkv"}, false},
    {"dense", "GPT-NeoX", "attention", {"wo"}, false},
    {"dense_h_to_4h", "GPT-NeoX", "feed_forward", {"w1", "w3", "w13"}, false},
    {"dense_4h_to_h", "GPT-NeoX", "feed_forward", {"w2"}, false},
    {"Wqkv", "MPT", "attention", {"wq", "wk", "wv", "wqkv"}, false},
    {"in_proj", "nn.MultiheadAttention", "attention", {"wq", "wk", "wv", "wqkv"}, false},
    {"out_proj", "nn.MultiheadAttention", "attention", {"wo"}, false},
    {"linear1", "nn.TransformerEncoderLayer", "feed_forward", {"w1", "w3", "w13"}, false},
    {"linear2", "nn.TransformerEncoderLayer", "feed_forward", {"w2"}, false},
    {"qkv_proj", "vLLM and Phi-3", "attention", {"wq", "wk", "wv", "wqkv"}, false},
    {"gate_up_proj", "vLLM and Phi-3", "feed_forward", {"w1", "w3", "w13"}, false},
    {"fc1", "OPT", "feed_forward", {"w1", "w3", "w13"}, false},
    {"fc2", "OPT", "feed_forward", {"w2"}, false},
};
/* Does the pattern say that it is in the other one of attention and the feed-forward part? */
static bool is_elsewhere(const char *pattern, const char *part) {
    const bool att = strstr(pattern, "att"), mlp = strstr(pattern, "mlp") ||
                                                   strstr(pattern, "feed_forward") ||
                                                   strstr(pattern, "ffn");
    return att != mlp && !strcmp(part, "attention") != att;
}
/* The modules that torchtitan calls so, in layers, as a list. */
static void add_modules(const Search *s, const char *leaf, const char *in, Str *all) {
    const Graph *g = &s->a->model->g;
    for (int m = 0; m < g->nm; m++) {
        const char *hf = g->module[m].hf_path, *path = g->module[m].path;
        const char *name = hf && path ? names_of_own(s->a->arena, NAMES_TORCHTITAN, hf) : NULL;
        if (!name || strcmp(leaf_of(name), leaf) != 0 || !strstr(name, in)) continue;
        const char *ours = plan_pattern_of(s->a->arena, path);
        str_addf(all, "%s'%s%s'", all->n ? ", " : "", ours, s->rest);
        *s->meant = strchr(all->s, ',') ? NULL : ours;
        return;
    }
}
/* It is the name of a module of another family, and of none here. */
static const char *of_other_family(const Search *s) {
    const char *leaf = leaf_of(s->pattern), *whose = NULL;
    Str all = str_new(s->a->arena);
    for (size_t i = 0; i < sizeof of_families / sizeof *of_families; i++) {
        const char *part = of_families[i].part;
        if (strcmp(of_families[i].theirs, leaf)) continue;
        if (of_families[i].both && is_elsewhere(s->pattern, part)) continue;
        whose = of_families[i].whose;
        for (int k = 0; k < 4 && of_families[i].leaf[k]; k++)
            add_modules(s, of_families[i].leaf[k], part, &all);
    }
    if (!all.n) return NULL;
    return arena_printf(s->a->arena,
                        "'%s' is a name of %s; what does that here is %s (`names: %s`)", leaf,
                        whose, all.s, plan_names_text(s->a->plan->names));
}
/* It is, or nearly, a name of a part that the plan leaves out. */
static const char *of_part_left_out(const Search *s) {
    Arena *a = s->a->arena;
    const Model *m = s->a->model;
    int n, k = 0;
    const NamesRow *rows = names_table(&n);
    const char **names = ARENA_ARRAY(a, const char *, n + 1);
    const NamesRow **of = ARENA_ARRAY(a, const NamesRow *, n + 1);
    for (int i = 0; i < n && !m->dims.mlp; i++)
        if (names_part(&rows[i]) && !(names_part(&rows[i]) & m->parts))
            of[k] = &rows[i], names[k++] = rows[i].name[s->a->plan->names];
    const char *near = diag_nearest(s->pattern, names);
    uint32_t parts = m->parts; /* with those of all lines: one help mends them all */
    for (int i = 0; near && i < k; i++)
        if (names[i] == near) parts |= (uint32_t)names_part(of[i]);
    for (int l = 0; near && l < s->a->plan->n_lines; l++) {
        const char *pattern = s->a->plan->lines[l].pattern;
        const char *other = pattern ? diag_nearest(pattern, names) : NULL;
        for (int i = 0; other && i < k; i++)
            if (names[i] == other) parts |= (uint32_t)names_part(of[i]);
    }
    return near ? arena_printf(a, "'%s' is left out of this model: `model: {parts: [%s]}` has it",
                               near, plan_parts_text(a, parts))
                : NULL;
}
static int components(const char *name) {
    int n = 1;
    for (; *name; name++) n += *name == '.';
    return n;
}
/* How many components two names share, wherever they stand. */
static int shared(const char *x, const char *y) {
    int n = 0;
    for (const char *p = x; *p; p += *p == '.') {
        size_t k = strcspn(p, ".");
        for (const char *q = y; *q; q += *q == '.') {
            size_t j = strcspn(q, ".");
            n += k == j && !strncmp(p, q, k);
            q += j;
        }
        p += k;
    }
    return n;
}
static const char *did_you_mean(const Search *s, const Candidate *c) {
    Arena *a = s->a->arena;
    *s->meant = c->ours;
    if (!strcmp(c->name, c->ours)) return arena_printf(a, "did you mean '%s%s'?", c->ours, s->rest);
    return arena_printf(a, "did you mean '%s%s'? ('%s' in `names: %s`)", c->ours, s->rest, c->name,
                        plan_names_text(c->scheme));
}
/* Its last component is that of a module in some scheme; of several, the one that shares most; NULL
 * where two modules do so alike. */
static const char *of_leaf(const Search *s) {
    const Candidate *best = NULL;
    int most = -1;
    bool two = false;
    const char *leaf = leaf_of(s->pattern);
    for (int i = 0; i < s->n; i++) {
        const Candidate *c = &s->of[i];
        int score = 2 * shared(s->pattern, c->name) + shared(s->pattern, c->ours);
        if (strcmp(leaf_of(c->name), leaf) || !strcmp(c->ours, s->pattern) ||
            abs(components(c->name) - components(s->pattern)) > 1 || score < most)
            continue;
        if (score > most) best = c, two = false;
        else two |= strcmp(best->ours, c->ours) != 0;
        most = score;
    }
    return best && !two ? did_you_mean(s, best) : NULL;
}
/* Is it a misspelling: not another component of the same module, nor the module that it is in? */
static bool misspelt(const char *pattern, const char *near) {
    const char *leaf[2] = {near ? leaf_of(near) : "", NULL};
    size_t n = near ? strlen(near) : 0;
    if (!near || !strcmp(near, pattern)) return false;
    return (strncmp(near, pattern, n) || pattern[n] != '.') && diag_nearest(leaf_of(pattern), leaf);
}
/* It is nearly a name, of this scheme first. */
static const char *of_near(const Search *s) {
    const char **names = ARENA_ARRAY(s->a->arena, const char *, s->n + 1),
               *near = suggest_nearest(s->a->arena, &s->a->model->g, s->pattern);
    if (misspelt(s->pattern, near)) {
        *s->meant = near;
        return arena_printf(s->a->arena, "did you mean '%s%s'?", near, s->rest);
    }
    for (int i = 0; i < s->n; i++) names[i] = s->of[i].name;
    near = diag_nearest(s->pattern, names);
    for (int i = 0; misspelt(s->pattern, near) && i < s->n; i++)
        if (s->of[i].name == near) return did_you_mean(s, &s->of[i]);
    return NULL;
}

/* The last n components of a name with more of them; NULL: it has not. */
static const char *end_of(const char *name, int n) {
    int more = components(name) - n;
    for (; more > 0 && *name; name++) more -= *name == '.';
    return more || !*name || components(name) != n ? NULL : name;
}
/* It is the end of a path, or nearly so: a line names the whole one. */
static const char *of_end(const Search *s) {
    Arena *a = s->a->arena;
    const char **ends = ARENA_ARRAY(a, const char *, s->n + 1);
    const Candidate **of = ARENA_ARRAY(a, const Candidate *, s->n + 1), *found = NULL;
    int n = 0, want = components(s->pattern);
    for (int i = 0; i < s->n; i++) {
        const char *end = components(s->of[i].name) > want ? end_of(s->of[i].name, want) : NULL;
        if (end) ends[n] = end, of[n++] = &s->of[i];
    }
    const char *near = diag_nearest(s->pattern, ends);
    for (int i = 0; near && i < n; i++)
        if (!strcmp(ends[i], s->pattern)) near = ends[i];
    if (!near || (strcmp(near, s->pattern) != 0 && !misspelt(s->pattern, near))) return NULL;
    for (int i = 0; i < n; i++) {
        if (strcmp(ends[i], near) != 0) continue;
        const char *ours = plan_pattern_of(a, of[i]->ours);
        if (found && strcmp(plan_pattern_of(a, found->ours), ours) != 0) return NULL;
        if (!found) found = of[i];
    }
    *s->meant = plan_pattern_of(a, found->ours);
    return arena_printf(a, "did you mean '%s%s'? A line names the whole path",
                        plan_pattern_of(a, found->ours), s->rest);
}

/* What stands directly under `path` ("": at the top), as a list; "" where that is nothing, or too
 * much to read. */
static const char *children(const Search *s, const char *path) {
    enum { MOST = 12 };
    Arena *a = s->a->arena;
    const char *child[MOST];
    Str all = str_new(a);
    size_t n = strlen(path);
    int found = 0;
    for (int m = 0; m < s->a->model->g.nm; m++) {
        const char *name = s->a->model->g.module[m].path;
        if (!name) continue;
        name = as_written(s, name);
        if (n && (strncmp(name, path, n) || name[n] != '.')) continue;
        name += n ? n + 1 : 0;
        const char *one = arena_strndup(a, name, strcspn(name, "."));
        int k = 0;
        while (k < found && strcmp(child[k], one)) k++;
        if (k < found) continue;
        if (found == MOST) return "";
        child[found++] = one;
        str_addf(&all, "%s%s", all.n ? ", " : "", one);
    }
    return all.n ? all.s : "";
}
/* The parameters of the module `path`, as a list; NULL: it has none, or is no module. */
static const char *parameters(const Search *s, const char *path) {
    const Graph *g = &s->a->model->g;
    Str all = str_new(s->a->arena);
    for (int m = 0; m < g->nm; m++) {
        if (!g->module[m].path || strcmp(as_written(s, g->module[m].path), path) != 0) continue;
        const int own[] = {g->module[m].weight, g->module[m].bias};
        for (int k = 0; k < 2; k++) {
            const char *name = own[k] < 0 ? NULL : g->t[own[k]].plan_name;
            const char *dot = name ? strrchr(name, '.') : NULL;
            if (dot) str_addf(&all, "%s%s", all.n ? ", " : "", dot + 1);
        }
        break;
    }
    return all.n ? all.s : NULL;
}
/* It is right, and only holds other modules: those are the ones to name. */
static const char *of_what_it_holds(const Search *s) {
    const char *in = children(s, s->pattern);
    return *in ? arena_printf(s->a->arena, "a line names one of those in it: %s", in) : NULL;
}
/* A key of the plan that stands among its lines. */
static const char *of_key(const Search *s) {
    Arena *a = s->a->arena;
    int n;
    const KeyRow *k = plan_key_rows(a, &n);
    const char *under = NULL;
    for (int i = 0; i < n; i++) {
        const char *dot = strrchr(k[i].path, '.'), *name = dot ? dot + 1 : k[i].path;
        if (strcmp(name, s->pattern)) continue;
        if (!dot) return arena_printf(a, "`%s` is a key of its own, beside `plan`", name);
        if (!under && strchr(k[i].path, '.') == dot && strncmp(k[i].path, "plan.", 5))
            under = arena_strndup(a, k[i].path, (size_t)(dot - k[i].path));
    }
    return under
               ? arena_printf(a, "`%s` is a key of `%s`, which stands beside `plan`: %s: {%s: ...}",
                              s->pattern, under, under, s->pattern)
               : NULL;
}
/* What there is where the pattern stops being right. */
static const char *of_what_is_there(const Search *s) {
    Arena *a = s->a->arena;
    const Graph *g = &s->a->model->g;
    const char *such = NULL; /* a module with a weight */
    for (int m = 0; m < g->nm && !such; m++)
        if (g->module[m].path && g->module[m].weight >= 0 && !strcmp(g->module[m].kind, "linear"))
            such = plan_pattern_of(a, g->module[m].path);
    const char *path = s->pattern, *there = "", *names = plan_names_text(s->a->plan->names);
    const char *last = *s->rest ? path + strlen(path) : strrchr(path, '.');
    const char *module = last ? arena_strndup(a, path, (size_t)(last - path)) : "";
    const char *own = parameters(s, module);
    if (own) return arena_printf(a, "'%s' has %s (`names: %s`)", module, own, names);
    while (*path && !*there) {
        const char *dot = strrchr(path, '.');
        path = dot ? arena_strndup(a, path, (size_t)(dot - path)) : "";
        there = children(s, path);
    }
    if (s->a->model->dims.mlp && *there) return arena_printf(a, "the modules are %s", there);
    if (*there && *path && !strchr(there, ','))
        return arena_printf(a, "in '%s' there is only '%s' (`names: %s`)", path, there, names);
    if (*there && *path)
        return arena_printf(a, "in '%s' there are %s (`names: %s`)", path, there, names);
    return arena_printf(a, "names are those of `names: %s`%s%s%s: see `list names`", names,
                        such ? ", as '" : "", such ? such : "", such ? "'" : "");
}

/* The hint; *meant: the module that it names, as a pattern, or NULL. */
static const char *hint_for(const Assign *a, const char *pattern, const char **meant) {
    Search s = search_for(a, pattern);
    *meant = NULL;
    s.meant = meant;
    const char *hint = of_other_syntax(pattern);
    if (!hint) hint = of_packed(&s);
    if (!hint) hint = of_other_family(&s);
    if (!hint) hint = of_other_scheme(&s);
    if (!hint) hint = of_part_left_out(&s);
    if (!hint) hint = of_what_it_holds(&s);
    if (!hint) hint = of_leaf(&s);
    if (!hint) hint = of_key(&s);
    if (!hint) hint = of_near(&s);
    if (!hint) hint = of_end(&s);
    return hint ? hint : of_what_is_there(&s);
}
const char *suggest_for(const Assign *a, const char *pattern) {
    const char *meant;
    return hint_for(a, pattern, &meant);
}
const char *suggest_module(const Assign *a, const char *pattern) {
    const char *meant;
    hint_for(a, pattern, &meant);
    return meant;
}
/* The pattern with a star for each component that is a number, or one of several digits. */
static const char *without_numbers(Arena *a, const char *pattern) {
    Str s = str_new(a);
    while (*pattern) {
        const size_t n = strcspn(pattern, ".");
        const bool number = n && strspn(pattern, "0123456789[]-") >= n;
        str_addf(&s, "%.*s%s", number ? 1 : (int)n, number ? "*" : pattern, pattern[n] ? "." : "");
        pattern += n + (pattern[n] == '.');
    }
    return s.n ? s.s : "";
}
const char *suggest_all_layers(const Assign *a, int module) {
    const GModule *m = &a->model->g.module[module];
    if (!m->path || a->use[module].style) return NULL;
    for (int i = 0; i < a->plan->n_lines; i++) {
        const PlanLine *l = &a->plan->lines[i];
        if (l->kind || l->from_recipe || !strpbrk(l->pattern, "0123456789")) continue;
        const char *all = without_numbers(a->arena, l->pattern);
        if (!strcmp(all, l->pattern)) continue;
        if (plan_match(all, m->path) || (m->hf_path && plan_match(all, m->hf_path)))
            return arena_printf(a->arena, "let the line `%s` be for all layers: `%s`", l->pattern,
                                all);
    }
    return NULL;
}
const char *suggest_head_ranks(Arena *a, int64_t heads, int64_t kv_heads) {
    enum { MOST = 4096 }; /* ranks that a plan may cut heads over */
    Str s = str_new(a);
    int64_t last = 0; /* one behind, so that the last one is known */
    for (int64_t n = 1; n <= heads && n <= MOST; n++) {
        if (heads % n || (kv_heads % n && n % kv_heads)) continue;
        if (last) text_add_choice(&s, last, false);
        last = n;
    }
    text_add_choice(&s, last, true);
    return s.s;
}
