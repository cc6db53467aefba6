/* Inputs and outputs of a command. Two paths are one file if they lead to the same one: through
 * links, through another spelling of the folder, or through the redirection of standard input. */
#include "cli/files.h"
#include "base/file.h"
#include "base/text.h"
#include "cost/cost.h"
#include "drive/dump.h"
#include <limits.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- lists ---- */
typedef struct {
    Arena *a;
    const char **path;
    int n, cap;
} Paths;
static void add(Paths *l, const char *path) {
    if (path) *ARENA_PUSH(l->a, l->path, l->n, l->cap) = path;
}
/* A safetensors file, an index with its shards, or a folder with one of them or with one for each
 * rank: every file that is read. */
static void add_tensors(Paths *l, const char *path) {
    Diags *d = diags_new(l->a); /* what is wrong with it will be said when it is read */
    if (!path) return;
    add(l, path);
    add(l, file_join(l->a, path, "model.safetensors.index.json"));
    Dump *x = dump_open(l->a, d, path, -1);
    for (int i = 0; x && i < x->all.n; i++) {
        bool known = false;
        for (int k = l->n - 1; k >= 0 && !known; k--)
            known = strcmp(l->path[k], x->all.t[i].file) == 0;
        if (!known) add(l, x->all.t[i].file);
    }
    dump_close(x);
}
static void add_words(Paths *l, const Cli *c) {
    int bit = c->command->bit, n = bit == C_LIST      ? 0
                                   : bit == C_EXPLAIN ? 1
                                                      : c->o.n_operands; /* files, not names */
    for (int i = 0; i < n && i < c->o.n_operands; i++) add(l, c->o.operands[i]);
    add_tensors(l, c->o.against);
    add(l, c->o.map);
    add(l, c->o.beside);
    add(l, c->o.config);
    add(l, c->o.tp_plan);
    add(l, c->o.ep_plan);
    if (c->o.hardware) add(l, hardware_file(l->a, c->o.hardware, NULL, NULL));
}
static void add_named(Paths *l, const Cli *c, const Plan *p) {
    const char *dir = p->dir ? p->dir : ".";
    if (p->weights) add_tensors(l, file_join(l->a, dir, p->weights));
    if (p->inputs) add_tensors(l, file_join(l->a, dir, p->inputs));
    if (p->hf_config) add(l, file_join(l->a, dir, p->hf_config));
    add(l, hardware_file(l->a, c->o.hardware, p->hardware, dir));
}

/* ---- one file or two ---- */
/* Where a new file of this path would lie: its folder and its name there. */
typedef struct {
    dev_t dev;
    ino_t ino;
    const char *name;
} Place;
static bool place_of(Arena *a, const char *path, Place *p) {
    struct stat st;
    const char *to = file_target(a, path), *slash = strrchr(to, '/');
    if (stat(file_dir(a, to), &st) != 0) return false;
    *p = (Place){st.st_dev, st.st_ino, slash ? slash + 1 : to};
    return true;
}
static bool file_of(const char *path, struct stat *st) {
    return strcmp(path, "-") == 0 ? fstat(STDIN_FILENO, st) == 0 : stat(path, st) == 0;
}
/* The same existing regular file, or the same place where there is none yet. `b` may be "-",
 * standard input. */
static bool same_file(Arena *a, const char *out, const char *b) {
    struct stat x, y;
    Place p, q;
    bool is = file_of(out, &x), bs = file_of(b, &y);
    if (is && bs) return S_ISREG(x.st_mode) && x.st_dev == y.st_dev && x.st_ino == y.st_ino;
    if (is || bs || !place_of(a, out, &p) || !place_of(a, b, &q))
        return !is && !bs && strcmp(out, b) == 0;
    return p.dev == q.dev && p.ino == q.ino && strcmp(p.name, q.name) == 0;
}
static bool all_apart(Cli *c, const Paths *out, const Paths *in) {
    int before = diags_errors(c->d);
    for (int i = 0; i < out->n; i++) {
        if (strcmp(out->path[i], "-") == 0) continue;
        for (int k = 0; k < in->n; k++)
            if (same_file(c->arena, out->path[i], in->path[k])) {
                diag_error(c->d, "E0212", diag_nowhere, "name another file with -o",
                           "the output '%s' is also an input", out->path[i]);
                break;
            }
        for (int k = 0; k < i; k++)
            if (strcmp(out->path[k], "-") != 0 && same_file(c->arena, out->path[i], out->path[k]))
                diag_error(c->d, "E0212", diag_nowhere, "give each a name of its own",
                           "two outputs go to '%s'", out->path[i]);
    }
    return diags_errors(c->d) == before;
}
static Paths outputs_of(Cli *c) {
    Paths l = {.a = c->arena};
    if (c->command->bit != C_RUN) add(&l, c->o.output); /* of run: a folder */
    add(&l, c->o.trace);
    add(&l, c->o.save_values);
    return l;
}
/* What one operand takes from the standard input, another would find empty. */
static bool reads_once(Cli *c) {
    int n = 0;
    for (int i = 0; i < c->o.n_operands; i++) n += !strcmp(c->o.operands[i], "-");
    if (n > 1)
        diag_error(c->d, "E0212", diag_nowhere, "name files for the others",
                   "%d operands are `-`: the standard input is read once", n);
    return n <= 1;
}
bool files_check_words(Cli *c) {
    if (!reads_once(c)) return false;
    Paths out = outputs_of(c), in = {.a = c->arena};
    if (out.n) add_words(&in, c);
    return all_apart(c, &out, &in);
}
bool files_check(Cli *c, const Loaded *l) {
    Paths out = outputs_of(c), in = {.a = c->arena};
    int asked = out.n;
    if (!asked && c->command->bit != C_RUN) return true;
    add(&in, l->path);
    if (!l->is_trace) { /* what is wrong with the plan will be said when it is run */
        Diags *d = diags_new(c->arena);
        Plan *p =
            plan_parse(c->arena, d, (PlanText){l->path, l->text, l->n, c->o.sets, c->o.n_sets});
        int n = 0;
        bool run = c->command->bit == C_RUN;
        const char *dir = c->o.output ? c->o.output : "out";
        const RunFile *f = run ? files_of_run(c, dir, p->name, &n) : NULL;
        for (int i = 0; i < n; i++) add(&out, f[i].path);
        add_named(&in, c, p);
    }
    if (!all_apart(c, &out, &in)) return false;
    int before = diags_errors(c->d);
    /* said now, not after an hour's work */
    for (int i = 0; i < asked && !c->silent; i++) file_writable(c->d, out.path[i]);
    return diags_errors(c->d) == before;
}

/* ---- what run writes ---- */
/* A plan's name as a part of a file's name: no separators, nothing hidden or hostile, and short
 * enough to have something behind it (folders hold names of 255 bytes). What is cut off is told
 * apart by its hash. */
static const char *file_name(const char *name, Arena *a) {
    enum { LONGEST = 200 };
    if (!name || !*name) name = "plan";
    Str s = str_new(a);
    uint32_t h = 2166136261u; /* FNV-1a */
    size_t n = strlen(name), cut = 0;
    for (size_t i = 0, k; i < n; i += k) {
        int32_t code;
        k = utf8_char(name + i, n - i, &code);
        bool first = i == 0 && (code == '.' || code == '-');
        if (code == '/' || code == ' ' || first || utf8_is_hostile(code)) str_add(&s, "_");
        else str_addn(&s, name + i, k);
        if (s.n <= LONGEST) cut = s.n;
        for (size_t j = 0; j < k; j++) h = (h ^ (unsigned char)name[i + j]) * 16777619u;
    }
    return s.n <= LONGEST ? s.s : arena_printf(a, "%.*s~%08x", (int)cut, s.s, (unsigned)h);
}
/* Every view of what was run as SVG; those that people look at first also as PNG. */
const RunFile *files_of_run(Cli *c, const char *dir, const char *name, int *n) {
    int n_views;
    const RenderView *view = render_views(&n_views);
    RunFile *f = ARENA_ARRAY(c->arena, RunFile, 2 * n_views + 1);
    const char *base = file_join(c->arena, dir, file_name(name, c->arena));
    *n = 0;
    f[(*n)++] = (RunFile){arena_printf(c->arena, "%s.trace.jsonl", base), NULL, FORMAT_TEXT};
    for (int i = 0; i < n_views; i++) {
        const RenderView *v = &view[i];
        if (v->asks & VIEW_OTHERS) continue;
        f[(*n)++] = (RunFile){arena_printf(c->arena, "%s.%s.svg", base, v->name), v, FORMAT_SVG};
        if (view[i].asks & VIEW_FIRST)
            f[(*n)++] =
                (RunFile){arena_printf(c->arena, "%s.%s.png", base, v->name), v, FORMAT_PNG};
    }
    return f;
}
