/* Helps speak of a plan's lines ("write `layers.*.feed_forward.w3: colwise`"). Who has pasted a
 * file of a framework has no such lines: what stands between backticks is put as that file writes
 * it. Refuses to know what a help means. */
#include "import/import.h"
#include "import/torch_args.h"
#include <ctype.h>
#include <string.h>

enum { MOST_FIELDS = 8 };
typedef struct {
    const char *key, *value; /* key NULL: a word by itself */
} Field;

static const char *trimmed(Arena *a, const char *s, size_t n) {
    while (n && *s == ' ') s++, n--;
    while (n && s[n - 1] == ' ') n--;
    return arena_strndup(a, s, n);
}
/* "a: x, b: [y, z]" as fields; their number, or 0 if it is no such text. */
static int fields_of(Arena *a, const char *text, Field *f) {
    int n = 0, depth = 0;
    const char *start = text, *colon = NULL;
    for (const char *p = text;; p++) {
        depth += *p == '{' || *p == '[' || *p == '(';
        depth -= *p == '}' || *p == ']' || *p == ')';
        if (*p == ':' && p[1] == ' ' && !depth && !colon) colon = p;
        if (*p && (*p != ',' || depth)) continue;
        if (!colon || n == MOST_FIELDS) return 0;
        f[n++] = (Field){trimmed(a, start, (size_t)(colon - start)),
                         trimmed(a, colon + 1, (size_t)(p - colon - 1))};
        if (!*p) return n;
        start = p + 1, colon = NULL;
    }
}
/* The style of a line: "colwise", or "{style: colwise, output: replicate}"; its other fields. */
static const char *style_of(Arena *a, const char *value, Field *f, int *n) {
    size_t len = strlen(value);
    *n = 0;
    if (*value != '{') return strpbrk(value, " [:") ? NULL : value;
    if (len < 2 || value[len - 1] != '}') return NULL;
    *n = fields_of(a, arena_strndup(a, value + 1, len - 2), f);
    if (!*n || strcmp(f[0].key, "style") != 0) return NULL;
    (*n)--;
    const char *style = f[0].value;
    memmove(f, f + 1, (size_t)*n * sizeof *f);
    return style;
}
static bool is_pattern(const char *s) {
    return strchr(s, '.') && !strpbrk(s, " ()[]{}:=") && isalpha((unsigned char)*s);
}

/* ---- PyTorch ---- */
static const char *torch_value(Arena *a, const char *v) {
    static const char *const words[][2] = {{"replicate", "Replicate()"},
                                           {"partial", "Partial()"},
                                           {"null", "None"},
                                           {"true", "True"},
                                           {"false", "False"},
                                           {NULL, NULL}};
    for (int i = 0; words[i][0]; i++)
        if (strcmp(v, words[i][0]) == 0) return words[i][1];
    if (strncmp(v, "shard(", 6) == 0 && (isdigit((unsigned char)v[6]) || v[6] == '-'))
        return arena_printf(a, "S%s", v + 1);
    if (*v != '[') return NULL;
    Str s = str_new(a);
    int n = 0;
    for (const char *p = v + 1; *p && *p != ']'; n++) {
        size_t k = strcspn(p, ",]");
        const char *one = torch_value(a, trimmed(a, p, k));
        if (!one) return NULL;
        str_addf(&s, "%s%s", n ? ", " : "(", one);
        p += k + (p[k] == ',');
    }
    return arena_printf(a, "%s%s)", s.s, n == 1 ? "," : "");
}
/* PyTorch's name for a field of a style, or of styles in general. */
static const char *torch_argument(const TorchStyle *row, const char *field) {
    for (int i = 0; i < TORCH_ARGS && row && row->arg[i].name; i++)
        if (row->arg[i].field && strcmp(row->arg[i].field, field) == 0) return row->arg[i].name;
    return NULL;
}
static const char *torch_fields(Arena *a, const TorchStyle *row, const Field *f, int n) {
    Str s = str_new(a);
    for (int i = 0; i < n; i++) {
        const char *name = torch_argument(row, f[i].key), *value = torch_value(a, f[i].value);
        if (!name || !value) return NULL;
        str_addf(&s, "%s%s=%s", i ? ", " : "", name, value);
    }
    return s.n ? s.s : "";
}
/* Norms of the heads' queries and keys: the dim that is cut is that of the heads. */
static bool norm_of_heads(const char *pattern) {
    const char *dot = strrchr(pattern, '.');
    return dot && (strcmp(dot, ".q_norm") == 0 || strcmp(dot, ".k_norm") == 0);
}
/* What stands between two backticks; NULL: PyTorch has no word for it. */
static const char *torch_piece(Arena *a, const char *text) {
    Field f[MOST_FIELDS], of[MOST_FIELDS];
    const TorchStyle *any = torch_style_row("PrepareModuleInputOutput"), *row;
    const char *as = torch_value(a, text), *name = torch_argument(any, text);
    int n = fields_of(a, text, f), m;
    if (as || name) return as ? as : name;
    if (is_pattern(text)) return arena_printf(a, "\"%s\"", text);
    if (!n) return text;
    as = torch_fields(a, any, f, n);
    if (as) return as;
    const char *style = n == 1 ? style_of(a, f[0].value, of, &m) : NULL;
    if (style && !strcmp(style, "replicated_with_grad_allreduce") && norm_of_heads(f[0].key))
        return arena_printf(a, "\"%s\": SequenceParallel(sequence_dim=2, use_local_output=True)",
                            f[0].key);
    row = style ? torch_style_of(style) : NULL;
    const char *args = row ? torch_fields(a, row, of, m) : NULL;
    return args ? arena_printf(a, "\"%s\": %s(%s)", f[0].key, row->name, args) : NULL;
}

/* ---- Hugging Face ---- */
static const char *hf_piece(Arena *a, const char *text) {
    Field f[MOST_FIELDS], of[MOST_FIELDS];
    int m;
    if (is_pattern(text)) return arena_printf(a, "\"%s\"", text);
    if (fields_of(a, text, f) != 1) return text;
    const char *style = style_of(a, f[0].value, of, &m);
    return style && !m ? arena_printf(a, "\"%s\": \"%s\"", f[0].key, style) : text;
}

static const struct {
    const char *framework;
    const char *(*piece)(Arena *a, const char *text);
    const char *none; /* what is said where it has no word */
} rows[] = {
    {"torch", torch_piece,
     "no style of PyTorch does this: sum or move it in your own code, and say so in a plan "
     "(`shardproof import torch`)"},
    {"hf", hf_piece, NULL},
};
const char *import_words(Arena *a, const char *framework, const char *hint) {
    static const char *const of_plans[] = {"; `trust: declared` shows what the mistake does",
                                           ", or remove `kv_replicate: never`"};
    size_t i = 0, n = sizeof rows / sizeof *rows;
    while (i < n && strcmp(rows[i].framework, framework) != 0) i++;
    if (i == n) return hint;
    for (size_t w = 0; w < sizeof of_plans / sizeof *of_plans; w++) {
        const char *at = strstr(hint, of_plans[w]);
        if (at) hint = arena_printf(a, "%.*s%s", (int)(at - hint), hint, at + strlen(of_plans[w]));
    }
    Str s = str_new(a);
    for (const char *p = hint; *p;) {
        size_t k = strcspn(p, "`");
        const char *end = p[k] ? strchr(p + k + 1, '`') : NULL;
        str_addn(&s, p, k);
        p += k;
        if (!end) {
            if (*p == '`') str_addn(&s, p++, 1);
            continue;
        }
        const char *piece = rows[i].piece(a, arena_strndup(a, p + 1, (size_t)(end - p) - 1));
        if (!piece) return rows[i].none;
        str_addf(&s, "`%s`", piece);
        p = end + 1;
    }
    return s.n ? s.s : hint;
}
