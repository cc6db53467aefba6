/* Which framework a file is of, and the way from it to a plan. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* memmem */
#endif
#include "import/import.h"
#include "base/text.h"
#include "formats/json.h"
#include <string.h>

static const struct {
    const char *name;
    bool (*read)(Draft *x);
    bool no_file; /* its options may be all there is */
} frameworks[] = {
    {"torch", import_torch, false},
    {"torchtitan", import_torchtitan, false},
    {"megatron", import_megatron, true},
    {"jax", import_jax, false},
    {"hf", import_hf, true},
};
enum { N_FRAMEWORKS = sizeof frameworks / sizeof *frameworks };

const char *const *import_names(Arena *a) {
    const char **names = ARENA_ARRAY(a, const char *, N_FRAMEWORKS + 1);
    for (int i = 0; i < N_FRAMEWORKS; i++) names[i] = frameworks[i].name;
    names[N_FRAMEWORKS] = NULL;
    return names;
}
/* ---- by name and content ---- */
/* Is this text somewhere in the first n bytes, at the beginning of a line? */
static bool line_begins(const char *text, size_t n, const char *with) {
    size_t k = strlen(with);
    for (const char *p = text, *end = text + n; p && (size_t)(end - p) >= k;) {
        if (memcmp(p, with, k) == 0) return true;
        p = memchr(p, '\n', (size_t)(end - p));
        if (p) p++;
    }
    return false;
}
static const char *of_json(const Json *j) {
    const Json *mesh = json_get(j, "mesh"), *v = j->n ? j->value[0] : NULL;
    if (json_get(j, "model_type") || json_get(j, "architectures")) return "hf";
    if (mesh) return json_get(mesh, "shape") ? "torch" : NULL;
    if (!v || json_get(j, "model")) return NULL;
    if (v->kind == JSON_ARRAY) return "jax";
    bool style = v->kind == JSON_OBJECT   ? json_get(v, "style") != NULL
                 : v->kind == JSON_STRING ? strstr(v->s, "Parallel") || !strncmp(v->s, "Prepare", 7)
                                          : false;
    return style ? "torch" : NULL;
}
/* The same of what begins like an object and is no JSON, a comma or a key too many: whose it is, so
 * that its reader says what is wrong. NULL: perhaps a plan. */
static const char *of_broken(const char *text, size_t n) {
    static const struct {
        const char *word, *framework;
    } rows[] = {{"\"model_type\"", "hf"},     {"\"architectures\"", "hf"}, {"Parallel", "torch"},
                {"\"PrepareModule", "torch"}, {"\"mesh\"", NULL},          {"\"model\"", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (memmem(text, n, rows[i].word, strlen(rows[i].word))) return rows[i].framework;
    const char *colon = memchr(text, ':', n);
    for (size_t k = colon ? (size_t)(colon + 1 - text) : n; k < n; k++)
        if (!strchr(" \t\r\n", text[k])) return text[k] == '[' ? "jax" : NULL;
    return NULL;
}
static const char *recognise(const char *path, const char *text, size_t n) {
    if (text_before(path, ".py")) return "torch";
    if (text_before(path, ".toml")) return "torchtitan";
    if (text_before(path, ".yaml") || text_before(path, ".yml")) return NULL;
    if (n >= 3 && memcmp(text, "\xEF\xBB\xBF", 3) == 0) text += 3, n -= 3;
    while (n && strchr(" \t\r\n", *text)) text++, n--;
    if (n && *text == '{') {
        Arena *a = arena_new();
        const char *error, *found = NULL;
        int line, col;
        const Json *j = json_parse(a, text, n, &error, &line, &col);
        if (j && j->kind == JSON_OBJECT) found = of_json(j);
        else if (!j) found = of_broken(text, n);
        arena_free(a);
        return found;
    }
    if (text_before(path, ".sh") || memmem(text, n, "--tensor-model-parallel-size", 28) ||
        line_begins(text, n, "torchrun"))
        return "megatron";
    while (n && *text == '#') { /* comments of a shell */
        const char *end = memchr(text, '\n', n);
        n = end ? n - (size_t)(end + 1 - text) : 0;
        text = end ? end + 1 : text;
    }
    if (n > 2 && memcmp(text, "--", 2) == 0 && text[2] >= 'a' && text[2] <= 'z') return "megatron";
    if (line_begins(text, n, "[parallelism]")) return "torchtitan";
    if (line_begins(text, n, "from torch") || line_begins(text, n, "import torch") ||
        line_begins(text, n, "parallelize_module("))
        return "torch";
    return NULL;
}
const char *import_recognise(const char *path, const char *text, size_t n) {
    const char *found = recognise(path, text, n);
    for (int i = 0; found && i < N_FRAMEWORKS; i++)
        if (strcmp(frameworks[i].name, found) == 0) return frameworks[i].name;
    return NULL;
}

/* ---- options of some frameworks only ---- */
bool import_idle(Arena *a, Diags *d, const ImportInput *in, const char *const *framework, int n,
                 const char *path) {
    const struct {
        bool given;
        const char *option, *of, *or_of, *read; /* whose files; that in words */
    } rows[] = {
        {in->args, "args", "megatron", "torch", "a script of Megatron's or a Python file"},
        {in->loss_parallel, "loss-parallel", "torch", "torch", "a file of PyTorch"},
        {in->tp != -1, "tp", "hf", "hf", "a config.json"},
        {in->ep != -1, "ep", "hf", "hf", "a config.json"},
        {in->tp_plan, "tp-plan", "hf", "hf", "a config.json"},
        {in->ep_plan, "ep-plan", "hf", "hf", "a config.json"},
        {in->hf_version, "hf-version", "hf", "hf", "a config.json"},
    };
    bool known = false; /* import_plan tells who is not */
    for (int i = 0; i < N_FRAMEWORKS; i++) known |= !strcmp(frameworks[i].name, framework[0]);
    for (size_t i = 0; known && i < sizeof rows / sizeof *rows; i++) {
        bool read = !rows[i].given;
        for (int k = 0; k < n; k++)
            read |= !strcmp(rows[i].of, framework[k]) || !strcmp(rows[i].or_of, framework[k]);
        if (read) continue;
        diag_error(
            d, "E0212", diag_nowhere,
            arena_printf(
                a, "leave --%s out: what the file does not say is of --model, --config and --mesh",
                rows[i].option),
            "--%s is for %s, and '%s' is %s's", rows[i].option, rows[i].read, path, framework[0]);
        return true;
    }
    return false;
}

ImportedPlan import_plan(Arena *a, Diags *d, const ImportInput *in) {
    Draft x = {.a = a,
               .d = d,
               .in = in,
               .file = !in->path                    ? "the arguments"
                       : strcmp(in->path, "-") == 0 ? "<stdin>"
                                                    : in->path,
               .layers = -1};
    for (int i = 0; i < N_FRAMEWORKS; i++) {
        if (strcmp(frameworks[i].name, in->framework) != 0) continue;
        if (!in->path && !frameworks[i].no_file)
            diag_error(d, "E0212", diag_nowhere, "the file that your framework runs or writes",
                       "`import %s` wants a file", in->framework);
        else if (frameworks[i].read(&x)) return draft_write(&x);
        return (ImportedPlan){0};
    }
    const char *names[N_FRAMEWORKS + 1] = {0};
    for (int i = 0; i < N_FRAMEWORKS; i++) names[i] = frameworks[i].name;
    const char *near = diag_nearest(in->framework, names);
    diag_error(d, "E0212", diag_nowhere, near ? near : "torch, torchtitan, megatron, jax or hf",
               "unknown framework '%s'", in->framework);
    return (ImportedPlan){0};
}
