/* Helpers of the tests against the outside. They only read what the program says; nothing here
 * computes what is right.
 */
#include "support.h"
#include "base/file.h"
#include "formats/yaml.h"
#include <limits.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char *const roots[] = {"../shared/golden", "tests/golden"};

bool golden_complete(void) { return access(roots[0], R_OK) == 0; }

const char *golden_path(Arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *name = arena_vprintf(a, fmt, ap);
    va_end(ap);
    char full[PATH_MAX];
    for (int i = 0; i < 2; i++)
        if (realpath(arena_printf(a, "%s/%s", roots[i], name), full)) return arena_strdup(a, full);
    fail_msg("golden file %s is missing (run the tests from the repository root)", name);
    return NULL;
}

bool golden_has(Arena *a, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    const char *name = arena_vprintf(a, fmt, ap);
    va_end(ap);
    return access(arena_printf(a, "%s/%s", roots[0], name), R_OK) == 0 ||
           access(arena_printf(a, "%s/%s", roots[1], name), R_OK) == 0;
}

SafeTensors *golden_tensors(Arena *a, const char *path) {
    Diags *d = diags_new(a);
    SafeTensors *st = st_open(a, d, path, (Loc){0});
    if (!st) diags_print(d, stderr, false);
    assert_non_null(st);
    return st;
}

Json *golden_json(Arena *a, const char *path) {
    size_t n;
    const char *error = NULL;
    int line, col;
    char *text = file_read(a, diags_new(a), path, 16 << 20, (Loc){0}, &n);
    assert_non_null(text);
    for (char *c = text; (c = strstr(c, "Infinity")) != NULL; c++) /* as Python writes it */
        memcpy(c, "0       ", 8);
    Json *j = json_parse(a, text, n, &error, &line, &col);
    if (!j) fail_msg("%s:%d:%d: %s", path, line, col, error);
    return j;
}

const double *tensor_numbers(Arena *a, const SafeTensors *st, const char *name, int64_t *n) {
    const StTensor *t = st_find(st, name);
    if (!t) fail_msg("there is no tensor '%s'", name);
    *n = 1;
    for (int d = 0; d < t->nd; d++) *n *= t->shape[d];
    double *x = ARENA_ARRAY(a, double, *n + 1);
    if (*n) assert_true(st_read(t, 0, *n, DT_F64, x));
    return x;
}

int slow_machine(void) {
    const char *s = getenv("SHARDPROOF_SLOW");
    return s && atoi(s) > 1 ? atoi(s) : 1;
}
/* Milliseconds of processor time for 20,000 lines of YAML; ORDINARY_MS where the limits were set.
 */
enum { ORDINARY_MS = 6 };
static double ordinary_ms(void) {
    Arena *a = arena_new();
    Str s = str_new(a);
    for (int i = 0; i < 20000; i++) str_addf(&s, "key%d: value\n", i);
    clock_t start = clock();
    assert_non_null(yaml_parse(a, diags_new(a), "ordinary.yaml", s.s, s.n));
    double ms = 1e3 * (double)(clock() - start) / CLOCKS_PER_SEC;
    arena_free(a);
    return ms;
}
static bool in_time(const Timed *t) {
    double took = 1e3 * (double)(clock() - t->start) / CLOCKS_PER_SEC,
           limit = t->ms * slow_machine();
    if (took <= limit) return true;
    double slower = ordinary_ms() / ORDINARY_MS;
    if (slower > slow_machine()) limit = t->ms * slower;
    print_message("%.0f ms of processor time, the limit is %.0f ms\n", took, limit);
    return took <= limit;
}
Timed within(double ms) { return (Timed){.ms = ms}; }
bool timed(Timed *t) {
    enum { TRIES = 10 };
    if (t->tries && in_time(t)) return false;
    if (t->tries++ == TRIES) fail_msg("never in time");
    t->start = clock();
    return true;
}
int sample_of(int all, const char *what) {
    const char *s = getenv("SHARDPROOF_SAMPLE");
    int n = s && atoi(s) > 0 && atoi(s) < all ? atoi(s) : all;
    if (n < all) printf("a sample of %d of %d %s\n", n, all, what);
    return n;
}
int trials_of(int ordinary, const char *what) {
    const char *soak = getenv("SHARDPROOF_SOAK");
    return soak && atoi(soak) > 0 ? atoi(soak) : sample_of(ordinary, what);
}
int sample_at(int k, int n, int all) { return (int)((int64_t)k * all / n); }
PlanFiles plan_files(const char *pattern, const char *what) {
    PlanFiles f = {0};
    if (glob(pattern, GLOB_BRACE, NULL, &f.found)) fail_msg("nothing is called %s", pattern);
    f.all = (int)f.found.gl_pathc;
    f.take = what ? sample_of(f.all, what) : f.all;
    return f;
}
bool plan_files_next(PlanFiles *f) {
    if (f->a) arena_free(f->a);
    f->a = NULL;
    if (f->at == f->take) {
        globfree(&f->found);
        return false;
    }
    f->a = arena_new();
    f->path = f->found.gl_pathv[sample_at(f->at++, f->take, f->all)];
    size_t n;
    f->text = file_read(f->a, diags_new(f->a), f->path, (size_t)1 << 20, diag_nowhere, &n);
    if (!f->text) fail_msg("%s cannot be read", f->path);
    return true;
}

/* ---- runs ---- */
const char *recipe_plan(Arena *a, const char *preset, const char *recipe, const char *names,
                        const char *pass) {
    return arena_printf(
        a,
        "model: {preset: %s, layers: 2, shrink: 32, parts: [embedding, blocks, norm, head, "
        "loss]}\nnames: %s\nrecipe: %s\nmesh: {dp: 2, tp: 2}\ngroups: {sp: tp, ep: "
        "dp}\npass: %s\ndata: {batch: 4, sequence: 8}\n",
        preset, names, recipe, pass);
}
PlanRun plan_run_with(Arena *a, const char *file, const char *text, const PipelineOptions *o) {
    PlanRun r = {.d = diags_new(a)};
    diags_source(r.d, file, text, strlen(text));
    r.t = pipeline_run(a, r.d, plan_text(file, text), o, &r.rep);
    return r;
}
SafeTensors *plan_values(Arena *a, const char *text, const char *file) {
    const char *saved = temp_path(a, file);
    PlanRun r = plan_run_with(
        a, "plan.yaml", text,
        &(PipelineOptions){.execute = true, .threads = 1, .numbers = true, .save_values = saved});
    if (!run_is(&r, "equivalent")) {
        fputs(text, stderr);
        run_print(&r);
        fail_msg("not equivalent");
    }
    return golden_tensors(a, saved);
}
PlanRun plan_run(Arena *a, const char *file, const char *text, bool execute) {
    return plan_run_with(a, file, text, &(PipelineOptions){.execute = execute, .threads = 1});
}
const Diag *run_diag(const PlanRun *r, const char *code, const char *says) {
    for (int i = 0; i < r->d->n; i++) {
        const Diag *d = &r->d->item[i];
        if (!strcmp(d->code, code) &&
            (strstr(d->message, says) || (d->hint && strstr(d->hint, says))))
            return d;
    }
    return NULL;
}
const char *diags_text(Arena *a, const Diags *d) {
    char *text = NULL;
    size_t n = 0;
    FILE *f = open_memstream(&text, &n);
    diags_print(d, f, false);
    fclose(f);
    const char *copy = arena_strdup(a, text);
    free(text);
    return copy;
}
void run_print(const PlanRun *r) {
    diags_print(r->d, stderr, false);
    if (r->t) fprintf(stderr, "verdict %s, first wrong %s\n", r->t->verdict, r->t->first_wrong);
}
PlanRun plan_good(Arena *a, const char *text, bool execute) {
    PlanRun r = plan_run(a, "plan.yaml", text, execute);
    bool good = r.t && !diags_errors(r.d) && (!execute || run_is(&r, "equivalent"));
    if (!good) {
        fprintf(stderr, "%s\n", text);
        run_print(&r);
    }
    assert_true(good);
    return r;
}
PlanRun golden_model(Arena *a, const char *name, const char *config, const char *mesh,
                     const char *more) {
    const char *values = golden_path(a, "hf/%s/values.safetensors", name);
    const char *text = arena_printf(
        a,
        "model: {hf_config: %s, weights: %s, layers: all, parts: [embedding, blocks, norm, "
        "head, loss]}\ndata: {dtype: f64, inputs: %s}\nnames: hf\nmesh: %s\npass: backward\n%s",
        golden_path(a, "hf/%s/%s", name, config), golden_path(a, "hf/%s/model.safetensors", name),
        values, mesh, more);
    PipelineOptions o = {.execute = true, .threads = 1, .against = values};
    PlanRun r = plan_run_with(a, "golden.yaml", text, &o);
    if (!r.t || r.rep.exit) run_print(&r);
    assert_non_null(r.t);
    run_must_be(&r, "equivalent");
    return r;
}
bool run_is(const PlanRun *r, const char *verdict) {
    return r->t && r->t->verdict && !strcmp(r->t->verdict, verdict);
}
void run_must_be_at(const PlanRun *r, const char *verdict, const char *file, int line) {
    if (run_is(r, verdict)) return;
    run_print(r);
    print_error("not %s\n", verdict);
    _fail(file, line);
}
bool run_has(const PlanRun *r, const char *code) {
    for (int i = 0; i < r->d->n; i++)
        if (!strcmp(r->d->item[i].code, code)) return true;
    return false;
}

/* ---- what a trace says ---- */
static bool is(const char *want, const char *have) {
    return !want || (have && !strcmp(want, have));
}

int64_t count_collectives(const Trace *t, const char *pass, const char *op, const char *axis) {
    int64_t n = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        n += is(pass, phase_words[c->pass]) && is(op, c->op) &&
             (is(axis, c->axis) || is(axis, c->axes));
    }
    return n;
}
const TraceCollective *find_collective(const Trace *t, const char *op, const char *value) {
    for (int i = 0; i < t->n_collectives; i++)
        if (is(op, t->collectives[i].op) && is(value, t->collectives[i].value))
            return &t->collectives[i];
    fail_msg("no %s of %s", op, value);
    return NULL;
}
const TraceShape *find_value(const Trace *t, const char *name, bool last) {
    const TraceShape *s = NULL;
    for (int i = 0; i < t->n_values; i++)
        if (is(name, t->values[i].shape.name) && (last || !s)) s = &t->values[i].shape;
    if (!s) fail_msg("no value %s", name);
    return s;
}
const TraceParam *find_param(const Trace *t, const char *name) {
    for (int i = 0; i < t->n_params; i++)
        if (is(name, t->params[i].compute.name)) return &t->params[i];
    fail_msg("no parameter %s", name);
    return NULL;
}
const char *local_text(Arena *a, const TraceShape *s, int64_t rank) {
    for (int i = 0; i < s->n_local; i++) {
        if (!rankset_has(&s->local[i].ranks, rank)) continue;
        Str o = str_new(a);
        for (int d = 0; d < s->nd; d++)
            str_addf(&o, "%s%lld", d ? ", " : "", (long long)s->local[i].shape[d]);
        return arena_printf(a, "[%s]", o.s ? o.s : "");
    }
    return "none";
}

/* ---- files of this run ---- */
static char folder[] = "/tmp/shardproof-test-XXXXXX";
static bool made;
static void remove_folder(void) {
    char command[sizeof folder + 16];
    snprintf(command, sizeof command, "rm -rf %s", folder);
    if (made && system(command)) fprintf(stderr, "%s is left\n", folder);
}
double bytes_behind(const char *text, const char *words) {
    static const char units[] = "BKMG";
    const char *at = text ? strstr(text, words) : NULL, *unit;
    char *end = NULL;
    double size = at ? strtod(at + strlen(words), &end) : 0;
    if (!at || *end != ' ' || !(unit = strchr(units, end[1])))
        fail_msg("no bytes behind \"%s\" in: %s", words, text ? text : "nothing");
    else size *= pow(1024, (double)(unit - units));
    return size;
}
const char *temp_path(Arena *a, const char *name) {
    if (!made) {
        assert_non_null(mkdtemp(folder));
        made = true;
        atexit(remove_folder);
    }
    return arena_printf(a, "%s/%s", folder, name);
}
const char *write_tensors(Arena *a, const char *name, const NewTensor *t, int n) {
    const char *path = temp_path(a, name);
    StWriter *w = st_writer(a, diags_new(a), path);
    assert_non_null(w);
    for (int i = 0; i < n; i++)
        st_declare(w, t[i].name, t[i].ids ? DT_I64 : DT_F64, t[i].nd, t[i].shape);
    for (int i = 0; i < n; i++) {
        size_t c = sizeof(double);
        for (int d = 0; d < t[i].nd; d++) c *= (size_t)t[i].shape[d];
        st_data(w, t[i].ids ? (const void *)t[i].ids : t[i].x, c);
    }
    assert_true(st_commit(w));
    return path;
}

const char example_plan[] =
    "name: llama3-8b-tp2-sp            # default: the file's name\n"
    "model: {preset: llama3-8b, layers: 1, shrink: 16, parts: [blocks]}   # or just: model: "
    "llama3-8b\n"
    "data: {batch: 2, sequence: 64, dtype: f32, seed: 0}\n"
    "mesh: {dp: 2, cp: 1, tp: 2}       # axes outermost first; the product is the number of ranks\n"
    "groups: {sp: tp}                  # names for an axis or an ordered product of axes\n"
    "names: torchtitan                 # whose module names the patterns use: torchtitan torchtune "
    "hf megatron gguf\n"
    "plan:                             # pattern -> style\n"
    "  layers.*.attention_norm: sequence_parallel\n"
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.attention.w[qkv]: colwise\n"
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"
    "  layers.*.ffn_norm: sequence_parallel\n"
    "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: "
    "[replicate]}\n"
    "  layers.*.feed_forward.w[13]: colwise\n"
    "  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n"
    "expect:\n"
    "  equivalent: true\n"
    "  local_shapes: {layers.0.input: \"[B/dp, S/(cp*sp), D]\"}\n"
    "  collectives: {forward: {all_gather(tp): 2, reduce_scatter(tp): 2}}\n";
