/* The JSON documents of the commands: each is what docs/shardproof.schema.json says, for plans of
 * every kind, good, planted and refused; and it says what reports and records say. */
#include "base/file.h"
#include "cli/cli.h"
#include "support/schema.h"
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

static Arena *arena;
static Json *schema;

static int start(void **state) {
    (void)state;
    arena = arena_new();
    size_t n;
    const char *text =
        file_read(arena, diags_new(arena), "docs/shardproof.schema.json", 1 << 20, (Loc){0}, &n);
    const char *why = NULL;
    int line = 0, col = 0;
    schema = text ? json_parse(arena, text, n, &why, &line, &col) : NULL;
    return schema ? 0 : -1;
}
static int end(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}
/* What a command writes in JSON, held against the schema of its name. */
static const Json *document(int *code, const char *const *words) {
    char *argv[64] = {(char *)(uintptr_t) "shardproof"}, *text = NULL, *said = NULL;
    int argc = 1, line, col;
    size_t n, m;
    for (int i = 0; words[i]; i++) argv[argc++] = (char *)(uintptr_t)words[i];
    argv[argc++] = (char *)(uintptr_t) "--format=json";
    FILE *out = open_memstream(&text, &n), *err = open_memstream(&said, &m);
    *code = cli_main(argc, argv, out, err);
    fclose(out);
    fclose(err);
    const char *why = NULL, *kept = arena_strdup(arena, text);
    const Json *j = json_parse(arena, kept, strlen(kept), &why, &line, &col);
    if (!j)
        fail_msg("%s %s: %s at %d:%d\n%.300s\n%s", words[0], words[1], why, line, col, kept, said);
    const char *wrong = schema_wrong(arena, schema, words[0], j);
    if (wrong) fail_msg("%s %s: %s\n%.1000s", words[0], words[1], wrong, kept);
    free(text);
    free(said);
    return j;
}
#define DOCUMENT(code, ...) document(code, (const char *const[]){__VA_ARGS__, NULL})

/* Shipped plans and lessons: tables of each, and of neighbours their difference. */
static void test_every_plan(void **state) {
    (void)state;
    static const char *const folders[] = {"plans", "plans/bugs", "plans/shape-only"};
    static const char *const tables[] = {"shapes", "params", "comms", "times"};
    const char *last = NULL;
    int code, plans = 0;
    for (int f = 0; f < 3; f++) {
        const Json *rows = json_get(DOCUMENT(&code, "check", "--static", folders[f]), "plans");
        for (int i = 0; i < rows->n; i++) {
            const char *file = json_get(rows->item[i], "file")->s;
            for (int k = 0; k < 4; k++) DOCUMENT(&code, tables[k], file);
            if (!f) DOCUMENT(&code, "comms", file, "--pairs");
            if (last) DOCUMENT(&code, "diff", last, file);
            last = file;
            plans++;
        }
    }
    assert_true(plans > 60);
}
static void test_lists(void **state) {
    (void)state;
    static const char *const lists[] = {"models", "styles",     "recipes",  "ops",
                                        "views",  "names",      "hardware", "codes",
                                        "keys",   "placements", "terms"};
    int code;
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        const Json *rows = json_get(DOCUMENT(&code, "list", lists[i]), "rows");
        assert_int_equal(code, 0);
        assert_true(rows->n > 2);
    }
}
static int64_t number(const Json *j, const char *key) { return json_get(j, key)->i; }
static double real(const Json *j, const char *key) { return json_get(j, key)->r; }
/* What the pictures of memory and time show: parts add up, and say what the run's document says. */
static void test_figures(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/05-llama3-8b-tp4-sp.yaml", "plans/20-llama3-8b-fsdp-tp.yaml",
        "plans/30-mixtral-8x7b-ep-dp-cp.yaml", "plans/45-llama3-8b-pp4-1f1b.yaml",
        "plans/01-column-row-mlp.yaml"};
    int code;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const Json *plan =
            json_get(DOCUMENT(&code, "check", "--static", plans[i]), "plans")->item[0];
        const Json *m = json_get(DOCUMENT(&code, "draw", plans[i], "--view", "memory"), "figure"),
                   *classes = json_get(m, "classes"), *course = json_get(m, "course");
        assert_int_equal(code, 0);
        assert_int_equal(number(classes->item[0], "bytes"),
                         number(json_get(plan, "memory"), "peak"));
        for (int k = 0; k < classes->n; k++) {
            const Json *parts = json_get(classes->item[k], "parts");
            int64_t sum = 0;
            for (int p = 0; p < parts->n; p++) sum += parts->value[p]->i;
            assert_int_equal(sum, number(classes->item[k], "bytes"));
        }
        const Json *steps = json_get(course, "steps");
        int64_t most = 0, at = number(course, "peak");
        for (int k = 0; k < steps->n; k++) {
            int64_t all = number(steps->item[k], "live") + number(steps->item[k], "gathered");
            if (all > most) most = all;
        }
        assert_int_equal(most,
                         number(steps->item[at], "live") + number(steps->item[at], "gathered"));
        const Json *t = json_get(DOCUMENT(&code, "draw", plans[i], "--view", "timeline"), "figure"),
                   *time = json_get(plan, "time");
        assert_int_equal(code, 0);
        double span = 0;
        for (int k = 0; k < json_get(t, "classes")->n; k++) {
            const Json *c = json_get(t, "classes")->item[k], *events = json_get(c, "events");
            double end = 0;
            for (int e = 0; e < events->n; e++) end = fmax(end, real(events->item[e], "end"));
            assert_float_equal(end, real(c, "span"), 1e-8);
            assert_float_equal(real(c, "compute") + real(c, "exposed") + real(c, "waiting"), end,
                               1e-8);
            span = fmax(span, end);
        }
        assert_float_equal(span, real(time, "span"), 1e-8);
    }
    const Json *none = DOCUMENT(&code, "draw", "plans/no-such.yaml", "--view", "memory");
    assert_int_equal(code, 3);
    assert_int_equal(json_get(none, "figure")->kind, JSON_NULL);
    assert_string_equal(json_get(json_get(none, "diagnostics")->item[0], "code")->s, "E0101");
}
/* A sweep: its parts add up, the plan's own batch and mesh are there once, with what the document
 * of `check` says of memory and time. */
static void check_sweep(const Json *s, const Json *plan) {
    const Json *all = json_get(s, "batches"), *ways = json_get(s, "ways"),
               *legal = json_get(ways, "legal"), *count = json_get(ways, "count");
    int own = 0;
    for (int i = 0; i < all->n; i++) {
        const Json *b = all->item[i], *parts = json_get(b, "parts");
        int64_t sum = 0;
        for (int p = 0; p < parts->n; p++) sum += parts->value[p]->i;
        assert_int_equal(sum, number(b, "bytes"));
        if (i) assert_true(number(b, "batch") > number(all->item[i - 1], "batch"));
        assert_int_equal(json_get(b, "fits")->b, number(b, "bytes") <= number(s, "capacity"));
        if (!json_get(b, "own")->b) continue;
        own++;
        assert_int_equal(number(b, "bytes"), number(json_get(plan, "memory"), "peak"));
    }
    assert_int_equal(own, 1);
    if (count->kind == JSON_NULL) assert_int_equal(legal->n, 0);
    else assert_int_equal(count->i, legal->n + number(ways, "refused"));
    for (int i = own = 0; i < legal->n; i++) {
        const Json *w = legal->item[i];
        assert_float_equal(real(w, "compute") + real(w, "exposed") + real(w, "waiting") +
                               real(w, "idle"),
                           real(w, "span"), 1e-8);
        if (i) assert_true(real(w, "span") >= real(legal->item[i - 1], "span"));
        if (!json_get(w, "own")->b) continue;
        own++;
        assert_int_equal(number(w, "bytes"), number(json_get(plan, "memory"), "peak"));
        assert_float_equal(real(w, "span"), real(json_get(plan, "time"), "span"), 1e-8);
    }
    assert_int_equal(own, legal->n > 0);
}
static void test_sweep(void **state) {
    (void)state;
    static const char *const plans[] = {"plans/20-llama3-8b-fsdp-tp.yaml",
                                        "plans/01-column-row-mlp.yaml",
                                        "plans/05-llama3-8b-tp4-sp.yaml"};
    int code;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const Json *plan =
                       json_get(DOCUMENT(&code, "check", "--static", plans[i]), "plans")->item[0],
                   *s = json_get(DOCUMENT(&code, "draw", plans[i], "--view", "sweep"), "figure");
        assert_int_equal(code, 0);
        check_sweep(s, plan);
        assert_int_equal(json_get(s, "rows")->b, i == 1);
    }
}
/* The idle time of a rank is the closed form of even stages, and what is added to it. Actions of
 * all schedules stand in the document, as long as they take, and make its sums. */
static void check_schedule(const Json *s, int64_t parts) {
    const Json *ranks = json_get(s, "ranks"), *form = json_get(s, "closed_form");
    double span = real(s, "span"), idle = 0, end = 0;
    for (int r = 0; r < ranks->n; r++) {
        const Json *all = json_get(ranks->item[r], "actions");
        double busy = 0;
        int64_t forwards = 0;
        for (int i = 0; i < all->n; i++) {
            const Json *x = all->item[i];
            bool joined = i && json_get(all->item[i - 1], "with_next")->b;
            if (!joined) busy += real(x, "end") - real(x, "start");
            end = fmax(end, real(x, "end"));
            forwards += *json_get(x, "kind")->s == 'F';
        }
        assert_int_equal(forwards, parts * json_get(ranks->item[r], "stages")->n /
                                       (strcmp(json_get(s, "schedule")->s, "dualpipe") ? 1 : 2));
        assert_float_equal(1 - busy / span, real(ranks->item[r], "idle"), 1e-6);
        idle += (span - busy) / ranks->n;
    }
    assert_float_equal(end, span, 1e-6 * span);
    assert_float_equal(idle, real(s, "idle_time"), 1e-6 * span);
    assert_float_equal(idle / span, real(s, "idle"), 1e-6);
    if (form->kind == JSON_NULL) return;
    double sum = real(form, "idle_time") + real(form, "stages_add") + real(form, "messages_add");
    assert_float_equal(sum, idle, 1e-6 * span);
}
static void test_pipeline(void **state) {
    (void)state;
    int code;
    const Json *all =
        json_get(json_get(DOCUMENT(&code, "draw", "plans/45-llama3-8b-pp4-1f1b.yaml", "--view",
                                   "pipeline", "--beside", "gpipe,zb-h1,dualpipe"),
                          "figure"),
                 "schedules");
    assert_int_equal(code, 0);
    assert_int_equal(all->n, 4);
    for (int i = 0; i < all->n; i++) check_schedule(all->item[i], 8);
    assert_string_equal(json_get(json_get(all->item[0], "closed_form"), "form")->s, "(p-1)(F+B)");
    /* F, I and W differ here: no form of DualPipe beside what it is not of */
    const Json *dual = all->item[3];
    assert_int_equal(json_get(dual, "closed_form")->kind, JSON_NULL);
    assert_non_null(strstr(json_get(dual, "no_closed_form")->s, "is of F = I = W"));
    const Json *none =
        DOCUMENT(&code, "draw", "plans/05-llama3-8b-tp4-sp.yaml", "--view", "pipeline");
    assert_int_equal(json_get(none, "figure")->kind, JSON_NULL);
}
static const char *plan_file(const char *name, const char *text) {
    const char *path = temp_path(arena, name);
    assert_true(file_write(diags_new(arena), path, text, strlen(text)));
    return path;
}
/* One that comes to no end, by itself and beside another: what is done, and where each rank stands;
 * of the other all that it has alone. */
static void test_no_end(void **state) {
    (void)state;
    int code;
    const char *rows = plan_file("stuck.csv", "0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n"),
               *stuck = plan_file(
                   "stuck.yaml",
                   arena_printf(arena,
                                "model: {preset: llama3-8b, shrink: 64, layers: 2}\nmesh: {pp: 2}\n"
                                "data: {batch: 2, sequence: 8}\npass: backward\npipeline: {file: "
                                "%s, stage_to_rank: [0, 1], microbatches: 2}\n",
                                rows)),
               *ends = "plans/45-llama3-8b-pp4-1f1b.yaml";
    for (int beside = 0; beside < 2; beside++) {
        const Json *j = beside
                            ? DOCUMENT(&code, "draw", ends, "--view", "pipeline", "--beside", stuck)
                            : DOCUMENT(&code, "draw", stuck, "--view", "pipeline");
        const Json *all = json_get(json_get(j, "figure"), "schedules"), *s = all->item[beside];
        assert_int_equal(code, 3);
        assert_int_equal(all->n, beside + 1);
        if (beside) check_schedule(all->item[0], 8);
        if (beside) assert_int_equal(json_get(all->item[0], "stuck")->n, 0);
        assert_int_equal(json_get(s, "span")->kind, JSON_NULL);
        assert_int_equal(json_get(s, "stuck")->n, 2);
        const Json *at = json_get(s, "stuck")->item[1];
        assert_string_equal(json_get(at, "action")->s, "1B0");
        assert_non_null(strstr(json_get(at, "waits")->s, "1F0 on rank 1"));
        const Json *ranks = json_get(s, "ranks");
        assert_int_equal(json_get(ranks->item[0], "actions")->n, 2);
        assert_int_equal(json_get(ranks->item[1], "actions")->n, 0);
    }
}
/* Of a run: what the records say, and what another command says in its own document. */
static void test_run(void **state) {
    (void)state;
    static const char *const plans[] = {
        "plans/03-llama3-8b-tp2.yaml", "plans/19-llama3-8b-fsdp4.yaml",
        "plans/bugs/13-gradient-not-summed-over-dp.yaml", "plans/32-mixtral-8x7b-ep-masked.yaml"};
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        int code;
        const char *out = temp_path(arena, "out");
        const Json *run = DOCUMENT(&code, "run", plans[i], "-o", out);
        assert_int_equal(number(run, "exit"), code);
        assert_true(number(run, "pass") > 0);
        assert_true(json_get(json_get(run, "time"), "span")->r > 0);
        assert_true(number(json_get(run, "memory"), "peak") > 0);
        const Json *files = json_get(run, "files");
        for (int k = 0; k < files->n; k++) assert_int_equal(access(files->item[k]->s, R_OK), 0);
        const Json *comms = json_get(DOCUMENT(&code, "comms", plans[i]), "rows"),
                   *own = json_get(run, "collectives");
        assert_int_equal(own->n, comms->n);
        for (int k = 0; k < own->n; k++)
            assert_int_equal(number(own->item[k], "bytes_sent"),
                             number(comms->item[k], "bytes_sent"));
        assert_int_equal(json_get(run, "shapes")->n,
                         json_get(DOCUMENT(&code, "shapes", plans[i]), "rows")->n);
        const Json *check = json_get(DOCUMENT(&code, "check", plans[i]), "plans")->item[0];
        assert_string_equal(json_get(check, "verdict")->s, json_get(run, "verdict")->s);
        assert_int_equal(number(check, "pass"), number(run, "pass"));
        assert_true(json_get(json_get(check, "time"), "span")->r ==
                    json_get(json_get(run, "time"), "span")->r);
    }
}
/* ---- explain and import ---- */
static const Json *field_of(const Json *section, const char *name) {
    const Json *fields = json_get(section, "fields");
    for (int i = 0; i < fields->n; i++)
        if (!strcmp(json_get(fields->item[i], "name")->s, name))
            return json_get(fields->item[i], "text");
    fail_msg("%s: no field '%s'", json_get(section, "title")->s, name);
    return NULL;
}
/* Beside what people read stand the records of what is explained, as other commands give them. */
static void test_explain(void **state) {
    (void)state;
    const char *plan = "plans/05-llama3-8b-tp4-sp.yaml";
    int code;
    const Json *j = DOCUMENT(&code, "explain", plan, "layers.0.attention.wo"),
               *s = json_get(j, "sections"), *k = json_get(j, "collectives");
    assert_int_equal(code, 0);
    assert_int_equal(s->n, 2);
    assert_string_equal(json_get(s->item[0], "kind")->s, "module");
    assert_string_equal(json_get(s->item[1], "kind")->s, "parameter");
    assert_string_equal(field_of(s->item[1], "style")->s, "rowwise");
    assert_int_equal(json_get(j, "shapes")->n, 2);
    assert_int_equal(json_get(j, "parameters")->n, 1);
    assert_int_equal(k->n, 1);
    const Json *all = json_get(DOCUMENT(&code, "comms", plan), "rows");
    for (int i = 0; i < all->n; i++)
        if (number(all->item[i], "step") == number(k->item[0], "step"))
            assert_int_equal(number(all->item[i], "bytes_sent"), number(k->item[0], "bytes_sent"));
    j = DOCUMENT(&code, "explain", plan, "layers.0.mlp.down"); /* made twice: partial, then cut */
    assert_int_equal(json_get(j, "sections")->n, 2);
    assert_int_equal(json_get(j, "shapes")->n, 2);
    assert_int_equal(json_get(j, "parameters")->n, 0);
    j = DOCUMENT(&code, "explain", plan, "10");
    assert_string_equal(json_get(json_get(j, "sections")->item[0], "kind")->s, "step");
    j = DOCUMENT(&code, "explain", "plans/18-llama3-8b-backward.yaml", "grad.param.norm.weight");
    assert_string_equal(json_get(json_get(j, "sections")->item[0], "kind")->s, "gradient");
    j = DOCUMENT(&code, "explain", "plans/18-llama3-8b-backward.yaml", "--hooks");
    assert_true(json_get(j, "rows")->n > 2);
    j = DOCUMENT(&code, "explain", plan, "layers.0.nothing");
    assert_int_equal(code, 3);
    assert_int_equal(json_get(j, "sections")->n, 0);
    assert_string_equal(json_get(json_get(j, "diagnostics")->item[0], "code")->s, "E0209");
}
static void test_explain_words(void **state) {
    (void)state;
    int code;
    const Json *s = json_get(DOCUMENT(&code, "explain", "rowwise"), "sections");
    assert_true(!code && s->n >= 1);
    assert_string_equal(json_get(s->item[0], "kind")->s, "style");
    assert_non_null(strstr(field_of(s->item[0], "also")->s, "RowwiseParallel"));
    s = json_get(DOCUMENT(&code, "explain", "E0701"), "sections");
    assert_string_equal(json_get(s->item[0], "kind")->s, "code");
    assert_string_equal(field_of(s->item[0], "exit code")->s, "5");
    const Json *j = DOCUMENT(&code, "explain", "nonsens");
    assert_int_equal(code, 3);
    assert_string_equal(json_get(json_get(j, "diagnostics")->item[0], "code")->s, "E0209");
}
/* The plan of a document is the plan that is written, and its lines know where they come from. */
static void test_import(void **state) {
    (void)state;
    int code;
    const char *file = "examples/import/plan.py", *out = temp_path(arena, "plan.yaml");
    const Json *j = DOCUMENT(&code, "import", "torch", file, "--model", "llama3-8b");
    assert_int_equal(code, 0);
    assert_string_equal(json_get(j, "framework")->s, "torch");
    char *argv[] = {"shardproof", "import",    "torch", (char *)(uintptr_t)file,
                    "--model",    "llama3-8b", "-o",    (char *)(uintptr_t)out};
    assert_int_equal(cli_main(8, argv, stdout, stderr), 0);
    size_t n;
    assert_string_equal(json_get(j, "plan")->s,
                        file_read(arena, diags_new(arena), out, 1 << 20, (Loc){0}, &n));
    const Json *o = json_get(j, "origins");
    int from = 0;
    for (int i = 0; i < o->n; i++)
        if (json_get(o->item[i], "file")->kind == JSON_STRING)
            from += !strcmp(json_get(o->item[i], "file")->s, file) && number(o->item[i], "line");
    assert_true(from > 5);
    j = DOCUMENT(&code, "import", "torch", "plans/03-llama3-8b-tp2.yaml");
    assert_true(code && json_get(j, "plan")->kind == JSON_NULL);
    assert_true(json_get(j, "diagnostics")->n > 0);
    j = DOCUMENT(&code, "import", "hf", "--names", "examples/import/names.json", "--tp", "2");
    assert_true(!code && json_get(j, "rows")->n > 5);
    j = DOCUMENT(&code, "import", "hf", "--names", "examples/import", "--tp", "2");
    assert_true(!code && json_get(j, "rows")->n > 0);
}
/* What cannot be understood is a document too, with every diagnostic and its place. */
static void test_refused(void **state) {
    (void)state;
    const char *bad = plan_file("bad.yaml", "model: llama3-8b\nmesh: {tp: 2}\n"
                                            "plan:\n  layers.*.attention.wq: colwsie\n"
                                            "  layers.*.attention.wo: rowise\n");
    static const char *const commands[] = {"run", "shapes", "params", "comms"};
    int code;
    assert_int_equal(json_get(DOCUMENT(&code, "explain", bad, "x"), "diagnostics")->n, 2);
    for (int i = 0; i < 4; i++) {
        const Json *d = json_get(DOCUMENT(&code, commands[i], bad), "diagnostics");
        assert_int_equal(code, 3);
        assert_int_equal(d->n, 2);
        assert_string_equal(json_get(d->item[0], "code")->s, "E0203");
        assert_int_equal(number(d->item[0], "line"), 4);
        assert_string_equal(json_get(d->item[0], "file")->s, bad);
        assert_string_equal(json_get(d->item[1], "code")->s, "E0203");
    }
    const Json *check =
        DOCUMENT(&code, "check", bad, "plans/03-llama3-8b-tp2.yaml", "/nowhere.yaml");
    assert_int_equal(number(check, "failed"), 2);
    const Json *plans = json_get(check, "plans");
    assert_int_equal(plans->n, 3);
    assert_int_equal(json_get(plans->item[0], "diagnostics")->n, 2);
    assert_string_equal(json_get(plans->item[1], "result")->s, "ok");
    assert_string_equal(json_get(json_get(plans->item[2], "diagnostics")->item[0], "code")->s,
                        "E0101");
    const Json *diff = DOCUMENT(&code, "diff", bad, "plans/03-llama3-8b-tp2.yaml");
    assert_int_equal(json_get(diff, "rows")->n, 0);
    assert_int_equal(json_get(diff, "diagnostics")->n, 2);
}
/* Sets of ranks have one form everywhere: numbers, and above 64 of them runs. */
static void test_ranks(void **state) {
    (void)state;
    int code;
    const Json *rows = json_get(DOCUMENT(&code, "comms", "plans/03-llama3-8b-tp2.yaml", "--set",
                                         "mesh.tp=1", "--set", "mesh.dp=128", "--set",
                                         "data.batch=128", "--set", "pass=backward"),
                                "rows");
    const Json *ranks = json_get(rows->item[rows->n - 1], "ranks");
    assert_int_equal(ranks->n, 1);
    assert_string_equal(ranks->item[0]->s, "0:128:1");
    rows = json_get(DOCUMENT(&code, "shapes", "plans/03-llama3-8b-tp2.yaml"), "rows");
    assert_int_equal(json_get(rows->item[0], "ranks")->n, 2);
    assert_int_equal(json_get(rows->item[0], "ranks")->item[1]->i, 1);
}
/* `diff` gives numbers where a script wants them, and people a sentence. */
static void test_diff(void **state) {
    (void)state;
    int code;
    const Json *rows = json_get(
        DOCUMENT(&code, "diff", "plans/04-llama3-8b-tp4.yaml", "plans/05-llama3-8b-tp4-sp.yaml"),
        "rows");
    assert_int_equal(code, 1);
    bool peak = false, reduce = false;
    for (int i = 0; i < rows->n; i++) {
        const Json *r = rows->item[i], *a = json_get(r, "a"), *b = json_get(r, "b");
        const char *name = json_get(r, "name")->s;
        if (!strcmp(name, "peak")) peak = a->i > b->i && b->i > 0;
        if (!strcmp(name, "forward all_reduce(tp)"))
            reduce = number(a, "count") == 2 && number(a, "bytes_sent") == 393216 &&
                     b->kind == JSON_NULL;
    }
    assert_true(peak && reduce);
}
/* The test's own eyes: what the schema does not say is noticed. */
static void test_schema_notices(void **state) {
    (void)state;
    static const struct {
        const char *name, *text, *why;
    } row[] = {
        {"traffic", "{\"ranks\":[0],\"bytes_in\":1,\"bytes_out\":1}", "no 'bytes_sent'"},
        {"traffic", "{\"ranks\":\"0-3\",\"bytes_in\":1,\"bytes_out\":1,\"bytes_sent\":0}", "type"},
        {"traffic", "{\"ranks\":[0.5],\"bytes_in\":1,\"bytes_out\":1,\"bytes_sent\":0}",
         "ranks[0]: another type"},
        {"traffic", "{\"ranks\":[],\"bytes_in\":1,\"bytes_out\":1,\"bytes_sent\":0,\"x\":1}",
         "traffic.x: a key too many"},
        {"number", "\"NaN\"", "none of those"},
        {"nothing", "1", "the schema has no"},
    };
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *why;
        int line, col;
        const Json *j = json_parse(arena, row[i].text, strlen(row[i].text), &why, &line, &col);
        const char *wrong = schema_wrong(arena, schema, row[i].name, j);
        if (!wrong || !strstr(wrong, row[i].why))
            fail_msg("row %zu: %s", i, wrong ? wrong : "is right");
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_schema_notices), cmocka_unit_test(test_every_plan),
        cmocka_unit_test(test_lists),          cmocka_unit_test(test_figures),
        cmocka_unit_test(test_sweep),          cmocka_unit_test(test_no_end),
        cmocka_unit_test(test_pipeline),       cmocka_unit_test(test_run),
        cmocka_unit_test(test_refused),        cmocka_unit_test(test_ranks),
        cmocka_unit_test(test_diff),           cmocka_unit_test(test_explain),
        cmocka_unit_test(test_explain_words),  cmocka_unit_test(test_import),
    };
    return cmocka_run_group_tests(tests, start, end);
}
