/* The command line: options, help, exit codes, formats, expectations, --update-expect, through
 * cli_main as users call it. */
#define _GNU_SOURCE /* posix_openpt */
#include "base/file.h"
#include "base/text.h"
#include "cli/cli.h"
#include "cli/expect.h"
#include "cli/find.h"
#include "formats/json.h"
#include "lower/program.h"
#include "ops/op.h"
#include "render/render.h"
#include "support/sandbox.h"
#include "support/support.h"
#include <errno.h>
#include <fcntl.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* after the others: it needs some of them */
#include <cmocka.h>
#undef expect_check /* cmocka has a macro of this name */

static const Loc nowhere = {NULL, 0, 0};

/* ---- running a command line ---- */
typedef struct {
    int code;
    char *out, *err;
} Ran;
static Ran run_words(const char *const *words) {
    char *argv[32] = {(char *)(uintptr_t) "shardproof"};
    int argc = 1;
    for (; *words; words++) argv[argc++] = (char *)(uintptr_t)*words;
    Ran r = {0};
    size_t n, m;
    FILE *out = open_memstream(&r.out, &n), *err = open_memstream(&r.err, &m);
    r.code = cli_main(argc, argv, out, err);
    fclose(out);
    fclose(err);
    return r;
}
#define RUN(...) run_words((const char *const[]){__VA_ARGS__, NULL})
static void done(Ran r) {
    free(r.out);
    free(r.err);
}
static void expect_code(Ran r, int code, const char *in_out, const char *in_err) {
    if (r.code != code || (in_out && !strstr(r.out, in_out)) || (in_err && !strstr(r.err, in_err)))
        print_error("exit %d, wanted %d\n%s\n%s\nwanted: %s | %s\n", r.code, code, r.out, r.err,
                    in_out ? in_out : "", in_err ? in_err : "");
    assert_int_equal(r.code, code);
    if (in_out) assert_non_null(strstr(r.out, in_out));
    if (in_err) assert_non_null(strstr(r.err, in_err));
    done(r);
}
static const char *get(const char *path) {
    size_t n;
    const char *s = file_read(arena, diags_new(arena), path, 1 << 24, nowhere, &n);
    return s ? s : "(no file)";
}
/* Column, row, column on two ranks: small, uneven, with a reduction. */
static const char mlp[] = "# a comment that stays\n" SMALL_PLAN;
/* The last row line is left out: a move is made that nobody asks for. */
static const char mlp_left_out[] = "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\n"
                                   "data: {rows: 5}\n"
                                   "mesh: {tp: 2}\n"
                                   "plan: {net1: colwise}\n";

/* ---- options ---- */
static void test_usage(void **state) {
    (void)state;
    expect_code(RUN("--help"), 0, "Usage: shardproof COMMAND", NULL);
    expect_code(RUN("-h"), 0, "Commands:", NULL);
    expect_code(RUN("help", "check"), 0, "Usage: shardproof check [OPTION]... PLAN|FOLDER...",
                NULL);
    expect_code(RUN("check", "--help", "--nonsense"), 0, "--against FILE", NULL);
    expect_code(RUN("--version"), 0, "shardproof " CLI_VERSION "\nLicence MIT;", NULL);
    expect_code(RUN("chek"), 2, NULL, "did you mean 'check'?");
    expect_code(RUN("check", "--frmat", "json", "x"), 2, NULL, "did you mean '--format'?");
    expect_code(RUN("check", "--form", "json", "x"), 2, NULL,
                "unknown option '--form'"); /* no abbreviations */
    expect_code(RUN("check", "--format", "jsn", "x"), 2, NULL, "did you mean 'json'?");
    expect_code(RUN("shapes", "--format", "sarif", "x"), 2, NULL,
                "`shapes` writes text json jsonl csv md");
    expect_code(RUN("shapes", "--against", "y", "x"), 2, NULL, "`shapes` has no option --against");
    expect_code(RUN("shapes"), 2, NULL, "`shapes` wants PLAN|TRACE");
    expect_code(RUN("shapes", "a", "b"), 2, NULL, "and no more");
    expect_code(RUN("check", "x", "--threads"), 2, NULL, "--threads wants N");
    expect_code(RUN("check", "x", "--threads=-1"), 2, NULL, "wants a whole number, not '-1'");
    expect_code(RUN("check", "x", "--threads", "99999999999999999999"), 2, NULL,
                "--threads: 99999999999999999999 is larger than 2^63-1");
    expect_code(RUN("draw", "x", "--page", "99999999999999999999"), 2, NULL,
                "--page: 99999999999999999999 is larger than 2^63-1");
    expect_code(RUN("check", "x", "--tolerance", "1"), 2, NULL, "--tolerance is for --against");
    expect_code(RUN("run", "x", "-o", "y", "--map", "m"), 2, NULL, "--map is for --against");
    expect_code(RUN("check", "x", "--tolerance", "0"), 2, NULL, "positive number");
    expect_code(RUN("check", "x", "--tolerance", "1e-3x"), 2, NULL, "positive number");
    expect_code(RUN("check", "x", "--strict=yes"), 2, NULL, "takes no value");
    expect_code(RUN("check", "x", "--check", "fast"), 2, NULL, "quick");
    expect_code(RUN("check", "x", "--fail-on", ""), 2, NULL, "--fail-on");
    expect_code(RUN("shapes", "x", "--format="), 2, NULL, "writes");
    expect_code(RUN("check", "x", "--static", "--check=quick"), 2, NULL, "executes nothing");
    expect_code(RUN("check", "x", "--set", "novalue"), 2, NULL, "KEY=VALUE");
    expect_code(RUN("check", "x", "--color", "alway"), 2, NULL, "did you mean 'always'?");
    expect_code(RUN("check", "x", "--dump", "nonsense"), 2, NULL,
                "--dump is one of lower, not 'nonsense'");
    expect_code(RUN("check", "x", "-z"), 2, NULL, "unknown option '-z'");
    expect_code(RUN("check", "x", "-o", ""), 2, NULL, "--output is empty");
    expect_code(RUN("check", "x", "--args", " \t"), 2, NULL, "--args is empty");
    expect_code(RUN("list", "styles", "--format", "csv"), 0, "\nall_reduce,gather,", NULL);
    expect_code(RUN("list", "colours"), 2, NULL, "`list` knows");
    expect_code(RUN("list", "style"), 2, NULL, "did you mean 'styles'?");
    expect_code(RUN("explain", "layers.0"), 3, NULL, "or a plan and a name in it");
    expect_code(RUN("report", "x"), 2, NULL, "E0214");
    expect_code(RUN("run", "plans/01-column-row-mlp.yaml", "--cuda=virtual", "-o", in("no-gpu")), 5,
                NULL, "E0601");
    expect_code(RUN("explain", "E0601"), 0, "make CUDA=1", NULL);
    Ran r = run_words((const char *const[]){NULL});
    expect_code(r, 2, "", "Usage: shardproof COMMAND");
    Ran lines = RUN("run", "--help"); /* 80 columns at most */
    for (const char *l = lines.out; *l; l = strchr(l, '\n') + 1) {
        size_t n = strcspn(l, "\n");
        assert_true(table_text_width(arena_strndup(arena, l, n)) <= 80);
    }
    done(lines);
}
/* Plans that the help names are there to be run. */
static void test_help_plans(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    for (int i = -1; i < n_cli_commands; i++) {
        Ran r = i < 0 ? RUN("--help") : RUN(cli_commands[i].name, "--help");
        for (const char *p = r.out; (p = strstr(p, "plans/")); p++) {
            const char *path = arena_strndup(arena, p, strcspn(p, " \n"));
            if (!strchr(path, '*') && access(path, F_OK) != 0)
                print_error("the help names %s\n", path);
            assert_true(strchr(path, '*') || access(path, F_OK) == 0);
        }
        done(r);
    }
}
/* The parser itself: what ends up in CliOptions. */
static void test_parser(void **state) {
    (void)state;
    const char *words[] = {"shardproof",
                           "-q",
                           "check",
                           "--set=a=b=c",
                           "a.yaml",
                           "-vo",
                           "out",
                           "--seed",
                           "7",
                           "--tolerance=2e-3",
                           "--set",
                           "plan[w[qkv]]=colwise",
                           "--format=csv",
                           "--against=v",
                           "--",
                           "-x"};
    char *argv[17];
    for (int i = 0; i < 16; i++) argv[i] = (char *)(uintptr_t)words[i];
    Cli c = {.arena = arena, .d = diags_new(arena)};
    c.commands = cli_commands, c.n_commands = n_cli_commands;
    options_parse(&c, 16, argv);
    assert_int_equal(diags_errors(c.d), 0);
    assert_string_equal(c.command->name, "check");
    assert_true(c.o.quiet && c.o.verbose && !c.o.strict);
    assert_int_equal(c.o.n_operands, 2);
    assert_string_equal(c.o.operands[0], "a.yaml");
    assert_string_equal(c.o.operands[1], "-x");
    assert_string_equal(c.o.output, "out");
    assert_int_equal(c.o.n_sets, 3);
    assert_string_equal(c.o.sets[0].key, "a");
    assert_string_equal(c.o.sets[0].value, "b=c");
    assert_string_equal(c.o.sets[1].key, "plan[w[qkv]]");
    assert_string_equal(c.o.sets[2].key, "data.seed");
    assert_string_equal(c.o.sets[2].value, "7");
    assert_true(c.o.tolerance == 2e-3);
    assert_string_equal(c.format, "csv");
    assert_int_equal(c.o.rank, -1);
}
/* Every command and every option of the tables is in the manual. */
static void test_manual(void **state) {
    (void)state;
    if (access("docs/shardproof.1", F_OK) != 0) skip();
    const char *man = get("docs/shardproof.1");
    for (int i = 0; i < n_cli_commands; i++) assert_non_null(strstr(man, cli_commands[i].name));
    for (const char *const *n = options_names(arena); *n; n++) {
        Str dashes = str_new(arena); /* roff writes - as \- */
        for (const char *p = *n; *p; p++) str_addf(&dashes, *p == '-' ? "\\-" : "%c", *p);
        const char *text = arena_printf(arena, "\\-\\-%s", dashes.s);
        if (!strstr(man, text)) print_error("not in the manual: %s\n", text);
        assert_non_null(strstr(man, text));
    }
}

/* ---- tables ---- */
static const Column columns[] = {{"name", "name", false, 0},
                                 {"n", "count", true, 0},
                                 {"same", "same", false, COL_OPTIONAL},
                                 {"what", "what", false, 0}};
static Table sample(void) {
    Table t = table_new(arena, "thing", columns, 4);
    Cell *r = table_row(&t);
    r[0] = cell_text("a,\"b\"");
    r[1] = cell_bytes(arena, 1536);
    r[2] = cell_text("x");
    r[3] = cell_shape(arena, (const int64_t[]){1, 20}, 2);
    r = table_row(&t);
    r[0] = cell_text("größe|\n");
    r[1] = cell_int(arena, -7);
    r[2] = cell_text("x");
    r = table_row(&t);
    r[2] = cell_text("x");
    r[3] = cell_texts(arena, (const char *const[]){"p", NULL}, 2);
    str_add(&t.notes, "three things\n");
    return t;
}
static void test_tables(void **state) {
    (void)state;
    Table t = sample();
    TableLook plain = {0, false};
    assert_string_equal(table_render(&t, "text", plain, arena), "name          count  what\n"
                                                                "a,\"b\"       1.5 KiB  [1, 20]\n"
                                                                "größe|\\x0a       -7\n"
                                                                "                     p, -\n"
                                                                "three things\n");
    assert_string_equal(table_render(&t, "csv", plain, arena),
                        "name,n,same,what\r\n"
                        "\"a,\"\"b\"\"\",1536,x,\"[1, 20]\"\r\n"
                        "\"größe|\n\",-7,x,\r\n"
                        ",,x,\"p, -\"\r\n");
    assert_string_equal(table_render(&t, "md", plain, arena), "| name | count | what |\n"
                                                              "| --- | ---: | --- |\n"
                                                              "| a,\"b\" | 1.5 KiB | [1, 20] |\n"
                                                              "| größe\\|  | -7 |  |\n"
                                                              "|  |  | p, - |\n"
                                                              "\nthree things\n");
    assert_string_equal(
        table_render(&t, "jsonl", plain, arena),
        "{\"schema\":\"shardproof/"
        "1\",\"type\":\"thing\",\"name\":\"a,\\\"b\\\"\",\"n\":1536,\"same\":\"x\",\"what\":[1, "
        "20]}\n"
        "{\"schema\":\"shardproof/"
        "1\",\"type\":\"thing\",\"name\":\"größe|\\n\",\"n\":-7,\"same\":\"x\",\"what\":null}\n"
        "{\"schema\":\"shardproof/"
        "1\",\"type\":\"thing\",\"name\":null,\"n\":null,\"same\":\"x\",\"what\":[\"p\",null]}\n");
}
static int widest_line(const char *s) {
    int most = 0;
    for (const char *l = s; *l; l += strcspn(l, "\n") + 1) {
        int w = table_text_width(arena_strndup(arena, l, strcspn(l, "\n")));
        if (w > most) most = w;
    }
    return most;
}
/* What a column does where there is no room. */
static void test_narrow(void **state) {
    (void)state;
    static const Column cols[] = {{"op", "op", false, COL_SHORT},
                                  {"value", "value", false, COL_PREFIX},
                                  {"bytes", "bytes", true, COL_DROP},
                                  {"why", "why", false, COL_BELOW}};
    Table t = table_new(arena, "thing", cols, 4);
    for (int i = 0; i < 2; i++) {
        Cell *r = table_row(&t);
        r[0] = cell_text(i ? "reduce_scatter(tp)" : "linear");
        r[1] = cell_text(i ? "layers.0.o_proj" : "layers.0.attn");
        r[2] = cell_int(arena, 123456);
        r[3] = cell_text("a sum is pending");
    }
    assert_string_equal(table_render(&t, "text", (TableLook){58, false}, arena),
                        "op                  value    bytes  why\n"
                        "linear              attn    123456  a sum is pending\n"
                        "reduce_scatter(tp)  o_proj  123456  a sum is pending\n"
                        "value: without layers.0.\n");
    assert_string_equal(table_render(&t, "text", (TableLook){40, false}, arena),
                        "op              value   why\n"
                        "linear          attn    a sum is pending\n"
                        "reduce_sc…(tp)  o_proj  a sum is pending\n"
                        "value: without layers.0.\n"
                        "left out, as the terminal is narrow:\n"
                        "bytes (--format csv has all)\n");
    assert_string_equal(table_render(&t, "text", (TableLook){26, false}, arena),
                        "op                  value\n"
                        "linear              attn\n"
                        "      a sum is pending\n"
                        "reduce_scatter(tp)  o_proj\n"
                        "      a sum is pending\n"
                        "value: without layers.0.\n"
                        "left out, as the terminal\n"
                        "is narrow: bytes (--format\n"
                        "csv has all)\n");
    t.row[1][1] =
        cell_text("grad.layers.12.o_proj"); /* nothing in common: a number begins no other name */
    const char *s = table_render(&t, "text", (TableLook){62, false}, arena);
    if (!strstr(s, "  0.attn          123456")) print_error("%s", s);
    assert_non_null(strstr(s, "  0.attn          123456"));
    assert_non_null(strstr(s, "  grad.12.o_proj "));
    assert_string_equal(table_wrap("one two  threefour", 8, 2, arena),
                        "  one\n  two\n  threef\n  our");
}
/* What people look at most, in a terminal of 80 columns: no shape and no name is cut. */
static void test_80_columns(void **state) {
    (void)state;
    static const char *const plans[] = {"plans/05-llama3-8b-tp4-sp.yaml",
                                        "plans/09-llama3-8b-dp2-cp2-tp2.yaml"};
    static const struct {
        Table (*make)(const Cli *c, const Trace *t);
        int rows;
        const char *has[4];
    } tables[] = {
        {table_shapes, 21, {"  [B", ", H/tp, d]", "post_attn_norm", NULL}},
        {table_comms, 4, {"reduce_scat", "post_attn_norm; the matmul needs every token", NULL}},
        {table_params, 9, {"feed_forward.w1.weight ", "[F/tp, D]", "Shard(0)", NULL}}};
    if (access("plans", F_OK) != 0) skip();
    for (int p = 0; p < 2; p++) {
        Cli c = {.arena = arena,
                 .d = diags_new(arena),
                 .command = &cli_commands[2],
                 .format = "text",
                 .o = {.rank = -1}};
        PipelineOptions o = cli_pipeline(&c);
        Loaded l;
        assert_true(cli_load(&c, plans[p], &o, false, &l));
        for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
            Table t = tables[i].make(&c, l.trace);
            const char *s = table_render(&t, "text", (TableLook){80, false}, arena);
            if (widest_line(s) > 80) print_error("%s", s);
            assert_true(widest_line(s) <= 80);
            assert_true(t.n_rows >= tables[i].rows);
            for (const char *const *h = tables[i].has; *h; h++) {
                if (!strstr(s, *h)) print_error("%s\nwanted: %s\n", s, *h);
                assert_non_null(strstr(s, *h));
            }
            /* only ops are cut; they stand left */
            for (const char *e = s, *start = s; (e = strstr(e, "…")); e++) {
                while (strchr(start, '\n') < e) start = strchr(start, '\n') + 1;
                assert_true(e - start < 24);
            }
        }
    }
}
static void test_table_width(void **state) {
    (void)state;
    Table t = table_new(arena, "thing", columns, 4);
    Cell *r = table_row(&t);
    r[0] = cell_text("layers.0.attention.wq.weight");
    r[1] = cell_int(arena, 123456789);
    r[3] = cell_text("the sum over H*d is pending, each rank keeps its part");
    const char *s = table_render(&t, "text", (TableLook){40, true}, arena);
    for (const char *l = strchr(s, '\n') + 1; *l; l = strchr(l, '\n') + 1)
        assert_true(table_text_width(arena_strndup(arena, l, strcspn(l, "\n"))) <= 40);
    assert_non_null(strstr(s, "…"));
    assert_non_null(strstr(s, "123456789")); /* numbers are never cut */
    assert_int_equal(strncmp(s, "\033[1;4m", 6), 0);
    assert_int_equal(table_text_width("µ×…"), 3);
    assert_int_equal(table_text_width("表e\xCC\x81"), 3);
    assert_string_equal(table_clean("a\033[31mb\x7f\xff", 0, arena), "a\\x1b[31mb\\x7f\\xff");
}

/* ---- looking up, expectations ---- */
static Trace *small_trace(void) {
    Trace *t = trace_new(arena);
    t->ranks = 8;
    t->verdict = "equivalent";
    t->n_axes = 4;
    t->axes = arena_memdup(arena, (struct TraceAxis[]){{"dp", 2}, {"cp", 1}, {"tp", 4}, {"ep", 1}},
                           4 * sizeof *t->axes);
    t->n_groups = 3;
    t->groups = arena_memdup(
        arena, (struct TraceGroup[]){{"sp", "tp"}, {"seq", "cp*sp"}, {"all", "dp*cp*tp"}},
        3 * sizeof *t->groups);
    TraceValue *v = ARENA_PUSH(arena, t->values, t->n_values, t->cap_values);
    *v = (TraceValue){.step = 1,
                      .kind = VALUE_MOVED,
                      .shape = {.name = "layers.0.output", .symbolic = "[B, S, D]"}};
    v = ARENA_PUSH(arena, t->values, t->n_values, t->cap_values);
    *v = (TraceValue){.step = 0,
                      .kind = VALUE_ACTIVATION,
                      .shape = {.name = "layers.0.output", .symbolic = "[B/dp, S/(cp*sp), H*d]"}};
    TraceCompute *c = ARENA_PUSH(arena, t->computes, t->n_computes, t->cap_computes);
    *c = (TraceCompute){.step = 0,
                        .module = "net1",
                        .output = "layers.0.output",
                        .n_inputs = 1,
                        .pass = PHASE_FORWARD,
                        .inputs = arena_memdup(arena, (const char *[]){"layers.0.output"}, 8),
                        .input_step = arena_memdup(arena, (int[]){1}, 4)};
    for (int i = 0; i < 3; i++) {
        TraceCollective *k =
            ARENA_PUSH(arena, t->collectives, t->n_collectives, t->cap_collectives);
        *k = (TraceCollective){.step = i,
                               .op = "all_gather",
                               .axis = i ? "sp" : "tp",
                               .axes = i == 2 ? "tp*dp" : "tp",
                               .pass = PHASE_FORWARD};
    }
    TraceParam *p = ARENA_PUSH(arena, t->params, t->n_params, t->cap_params);
    *p = (TraceParam){.plan_name = "blk.0.attn_q.weight",
                      .compute = {.name = "model.layers.0.q.weight", .symbolic = "[H*d/tp, D]"}};
    RankSet a = rankset_range(arena, 0, 4, 1), b = rankset_range(arena, 4, 4, 1);
    static const struct {
        int step, cls;
        const char *category;
        int64_t bytes;
    } rows[] = {{-1, 0, "parameters", 100}, {-1, 1, "parameters", 90}, {0, 0, "activations", 5},
                {0, 1, "activations", 30},  {1, 0, "activations", 0},  {1, 1, "activations", 1}};
    for (int i = 0; i < 6; i++)
        *ARENA_PUSH(arena, t->memory, t->n_memory, t->cap_memory) =
            (TraceMemory){rows[i].step, rows[i].cls ? b : a, rows[i].category, rows[i].bytes};
    return t;
}
static void test_lookup(void **state) {
    (void)state;
    Trace *t = small_trace();
    assert_int_equal(lookup_value(t, "layers.0.output")->step, 0); /* not the moved copy */
    assert_int_equal(lookup_value(t, "layers.1.input")->step, 0);
    assert_int_equal(lookup_value(t, "net1.output")->step, 0);
    assert_int_equal(lookup_value(t, "net1.input")->step, 1); /* as the module reads it */
    assert_null(lookup_value(t, "layers.0.input"));
    assert_null(lookup_value(t, "layers.x.input"));
    assert_null(lookup_value(t, "net.output"));
    assert_non_null(lookup_param(t, "blk.0.attn_q.weight"));
    assert_non_null(lookup_param(t, "layers.0.q.weight"));
    assert_non_null(lookup_param(t, "model.layers.0.q.weight"));
    assert_null(lookup_param(t, "q.weight"));
    assert_true(lookup_same_axes(t, "sp", "tp"));
    assert_true(lookup_same_axes(t, "seq", "tp*cp"));
    assert_true(lookup_same_axes(t, "all", "tp*dp"));
    assert_false(lookup_same_axes(t, "all", "tp"));
    assert_false(lookup_same_axes(t, "dp", "tp"));
    assert_int_equal(lookup_peak(t, NULL), 120);        /* class 1 in step 0: 90 + 30 */
    assert_int_equal(lookup_peak(t, "parameters"), 90); /* parts of that peak */
    assert_int_equal(lookup_peak(t, "activations"), 30);
    assert_string_equal(lookup_categories(t, arena)[1], "activations");
    assert_null(lookup_categories(t, arena)[2]);
}
static int held(const char *expect, Trace *t, int exit_before, const char *code, int *failures) {
    Diags *d = diags_new(arena);
    const char *text = arena_printf(arena,
                                    "model: llama3-8b\nmesh: {dp: 2, cp: 1, tp: 4}\n"
                                    "groups: {sp: tp, seq: cp*tp, all: dp*cp*tp}\nexpect: %s\n",
                                    expect);
    Plan *p = plan_parse(arena, d, plan_text("p.yaml", text));
    if (diags_errors(d)) diags_print(d, stderr, false);
    assert_int_equal(diags_errors(d), 0);
    d = diags_new(arena);
    if (code && *code == 'N') diag_note(d, code, nowhere, NULL, "planted");
    else if (code && *code == 'W') diag_warn(d, code, nowhere, NULL, "planted");
    else if (code) diag_error(d, code, nowhere, NULL, "planted");
    int before = d->n, result = expect_check(p, t, d, exit_before);
    *failures = d->n - before;
    for (int i = before; i < d->n; i++) assert_string_equal(d->item[i].code, "E0505");
    return result;
}
/* What a run was, for the expectations below. */
enum { EQUAL, WRONG, INVALID, UNRUN, UNCHECKED, NONE };
static const struct {
    const char *expect;
    int run; /* EQUAL ... */
    int before;
    const char *code;
    int result, failures;
} expectations[] = {
    {"{equivalent: true}", EQUAL, 0, NULL, 0, 0},
    {"{equivalent: true}", WRONG, 1, "E0501", 1, 1},
    {"{equivalent: true}", INVALID, 1, "E0402", 1, 0}, /* why has been said */
    {"{equivalent: false}", WRONG, 1, "E0501", 0, 0},
    {"{equivalent: false}", EQUAL, 0, NULL, 1, 1},
    {"{equivalent: false}", INVALID, 1, "E0402", 1, 1},
    {"{first_wrong: layers.0.output}", WRONG, 1, "E0501", 0, 0},
    {"{first_wrong: layers.1.input}", WRONG, 1, "E0501", 0, 0},
    {"{first_wrong: x}", WRONG, 1, "E0501", 1, 1},
    {"{first_wrong: x}", EQUAL, 0, NULL, 1, 1},
    {"{diagnostics: [E0402]}", INVALID, 1, "E0402", 0, 0},
    {"{diagnostics: [E0402]}", EQUAL, 0, NULL, 1, 1},
    {"{diagnostics: [E0402]}", INVALID, 1, "E0403", 1, 2},
    {"{diagnostics: [E0203]}", NONE, 3, "E0203", 0, 0},
    {"{diagnostics: []}", NONE, 3, "E0203", 1, 1},
    {"{diagnostics: [E0402], equivalent: false}", WRONG, 1, "E0402", 0, 0},
    {"{diagnostics: [W0401]}", WRONG, 1, "E0501", 1, 2}, /* values differ and nothing said so */
    {"{diagnostics: [E0501]}", WRONG, 1, "E0501", 0, 0},
    {"{diagnostics: []}", EQUAL, 0, NULL, 0, 0},
    {"{diagnostics: [N0002]}", EQUAL, 0, "N0002", 0, 0},
    {"{diagnostics: [N0002]}", EQUAL, 1, "N0002", 1, 0}, /* --strict: no note explains a SUSPECT */
    {"{diagnostics: [W0402]}", EQUAL, 0, "W0402", 0, 0},
    {"{diagnostics: [W0402]}", EQUAL, 1, "W0402", 1, 0}, /* and no warning does */
    {"{equivalent: true}", NONE, 3, "E0203", 3, 0},      /* not understood: nothing more is said */
    {"{first_wrong: x}", NONE, 3, "E0203", 3, 0},
    {"{equivalent: true, collectives: {forward: {all_gather: 9}}, memory_per_rank: 1}", UNRUN, 5,
     "E0701", 5, 0},
    {"{equivalent: true, diagnostics: []}", UNRUN, 5, "E0701", 5, 1}, /* asked for */
    {"{diagnostics: [E0701]}", UNRUN, 5, "E0701", 0, 0},
    {"{equivalent: true}", UNRUN, 3, "E0109", 3, 0}, /* its weights could not be read */
    {"{equivalent: true}", UNRUN, 0, NULL, 1, 1},
    {"{equivalent: false}", WRONG, 5, "E0701", 5, 0}, /* the machine, not the plan */
    {"{equivalent: true}", EQUAL, 1, "E0506", 1,
     0}, /* --against failed: no expectation speaks of it */
    {"{equivalent: false}", WRONG, 1, "E0506", 1, 0}, /* wrong, and the file is otherwise */
    {"{first_wrong: layers.0.output}", WRONG, 3, "E0209", 3, 0}, /* no name of the file matches */
    {"{equivalent: false}", WRONG, 3, "E0504", 0, 0},     /* what is wrong grows without bounds */
    {"{equivalent: false}", UNCHECKED, 3, "E0101", 3, 0}, /* its weights could not be read */
    {"{equivalent: false, diagnostics: [E0101]}", UNCHECKED, 3, "E0101", 0, 0},
    {"{equivalent: false}", UNCHECKED, 0, NULL, 0, 0}, /* check --static */
    {"{local_shapes: {layers.0.output: \"[ B/dp , S/(cp*tp), H*d ]\"}}", EQUAL, 0, NULL, 0, 0},
    {"{local_shapes: {layers.0.output: \"[B/dp, S/seq, H·d]\"}}", EQUAL, 0, NULL, 0, 0},
    {"{local_shapes: {layers.0.output: \"[B/dp, S/(sp*cp), H*d]\"}}", EQUAL, 0, NULL, 1,
     1}, /* another order */
    {"{local_shapes: {layers.0.output: \"[B/dp, S/sp, H*d]\"}}", EQUAL, 0, NULL, 1, 1},
    {"{local_shapes: {layers.0.output: \"[B/dp, S/(cp*sp)]\"}}", EQUAL, 0, NULL, 1, 1},
    {"{local_shapes: {layers.0.output: \"B\", layers.9.output: \"[B]\"}}", EQUAL, 0, NULL, 1, 2},
    {"{local_shapes: {blk.0.attn_q.weight: \"[H*d/sp, D]\"}}", EQUAL, 0, NULL, 0, 0},
    {"{collectives: {forward: {all_gather(tp): 2, all_gather: 3, \"all_gather(all)\": 1, "
     "all_reduce: 0}}}",
     EQUAL, 0, NULL, 0, 0},
    {"{collectives: {forward: {all_gather(sp): 1}, backward: {all_gather: 1}}}", EQUAL, 0, NULL, 1,
     2},
    {"{memory_per_rank: 120}", EQUAL, 0, NULL, 0, 0},
    {"{memory_per_rank: 119}", EQUAL, 0, NULL, 1, 1},
};
static void test_expect(void **state) {
    (void)state;
    Trace *equal = small_trace(), *wrong = small_trace(), *invalid = small_trace(),
          *unrun = small_trace(), *unchecked = small_trace();
    unrun->verdict = unchecked->verdict = NULL;
    unchecked->n_checks = 1; /* of the structure */
    wrong->verdict = "different";
    wrong->first_wrong = "layers.0.output";
    invalid->verdict = "invalid";
    Trace *run[] = {[EQUAL] = equal, [WRONG] = wrong,         [INVALID] = invalid,
                    [UNRUN] = unrun, [UNCHECKED] = unchecked, [NONE] = NULL};
    for (size_t i = 0; i < sizeof expectations / sizeof *expectations; i++) {
        int failures, result = held(expectations[i].expect, run[expectations[i].run],
                                    expectations[i].before, expectations[i].code, &failures);
        if (result != expectations[i].result || failures != expectations[i].failures)
            print_error("%s: %d with %d failures\n", expectations[i].expect, result, failures);
        assert_int_equal(result, expectations[i].result);
        assert_int_equal(failures, expectations[i].failures);
    }
}
static void test_exit_codes(void **state) {
    (void)state;
    static const int order[] = {0, 1, 3, 4, 5, 70, 2};
    for (int i = 0; i < 7; i++)
        for (int k = 0; k < 7; k++)
            assert_int_equal(cli_worse(order[i], order[k]), order[i > k ? i : k]);
}
/* ---- commands on real plans ---- */
static void test_check(void **state) {
    (void)state;
    const char *good = put("good.yaml", mlp),
               *bad = put("bad.yaml", arena_printf(arena, "%smesh: {tp: 3}\n", mlp));
    const char *wrong =
        put("wrong.yaml", arena_printf(arena, "%sfaults: [{at: net2, do: drop}]\n", mlp));
    const char *taught = put(
        "taught.yaml",
        arena_printf(
            arena,
            "%sfaults: [{at: net2, do: drop}]\nexpect: {equivalent: false, first_wrong: net2}\n",
            mlp));
    expect_code(RUN("check", good), 0, "equivalent", "");
    expect_code(RUN("check", good, taught), 0, "2 plans hold", "");
    expect_code(RUN("check", bad), 3, "E0107", "bad.yaml:9:1: error");
    Ran once = RUN("check", good, "--set", "expect={equivalent: true}", "--set", "mesh.tp=x");
    assert_int_equal(once.code, 3);
    assert_non_null(strstr(once.err, "E0301"));
    assert_null(strstr(once.err, "E0505"));
    done(once);
    once = RUN("check", good, "--set", "expect={equivalent: true}", "--set",
               "data.rows=1000000000000");
    assert_int_equal(once.code, 5);
    assert_non_null(strstr(once.err, "E0701"));
    assert_null(strstr(once.err, "E0505"));
    done(once);
    expect_code(RUN("check", wrong), 1, "likely cause", "E0501");
    expect_code(RUN("check", wrong, good, "--format", "csv"), 1, "FAIL,different,1,", NULL);
    expect_code(RUN("check", wrong, bad), 3, "2 of 2 plans failed", NULL);
    expect_code(RUN("check", good, "-q"), 0, "", "");
    expect_code(RUN("check", in("none.yaml")), 3, "E0101", "no file");
    expect_code(RUN("shapes", dir), 3, NULL, "E0102");
    expect_code(RUN("check", good, "--set", "modl=3"), 2, NULL, "did you mean 'model'?");
    expect_code(RUN("check", good, "--set", "mesh.tp=x"), 3, NULL, "E0301");
    expect_code(RUN("check", good, taught, "--trace", in("t")), 2, NULL, "one plan, not 2");
    expect_code(RUN("check", good, "--save-values", good), 2, NULL, "also an input");
    expect_code(RUN("check", good, "--trace", good), 2, NULL, "also an input");
    assert_string_equal(get(good), mlp);
    Ran quiet = RUN("check", good, "-q");
    assert_string_equal(quiet.out, "");
    assert_string_equal(quiet.err, "");
    done(quiet);
}
/* Notes are counted where they are not shown. */
static void test_check_notes(void **state) {
    (void)state;
    const char *plan = put("n.yaml", arena_printf(arena, "%sgroups: {g: xx}\n", mlp));
    const char *set = "mesh={tp: 2, xx: 2}"; /* xx cuts nothing: N0003 */
    expect_code(RUN("check", plan, "--set", set), 0, " (1 note, -v shows it)\n", "");
    Ran r = RUN("check", plan, "--set", set, "-v");
    assert_null(strstr(r.out, "-v shows"));
    assert_non_null(strstr(r.err, "[N0003]"));
    done(r);
    r = RUN("check", plan, "--set", set, "--fault", "drop-reduction", "-q");
    assert_null(strstr(r.out, "-v shows"));
    assert_int_equal(r.code, 1);
    done(r);
}
/* An unknown machine is found before the work. */
static void test_hardware_first(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp), *out = in("h/out");
    expect_code(RUN("check", plan, "--set", "hardware=h1000"), 3, "E0213",
                "--set:1:10: error: unknown hardware 'h1000'");
    expect_code(RUN("check", plan, "--hardware", "h10-sxm"), 3, NULL, "did you mean 'h100-sxm'?");
    expect_code(RUN("run", plan, "-o", out, "--set", "hardware=h1000"), 3, "", "E0213");
    assert_int_equal(access(in("h"), F_OK), -1); /* and nothing was written */
    expect_code(
        RUN("check", plan, "--set", "hardware=h1000", "--set", "expect={diagnostics: [E0213]}"), 0,
        "as expected", NULL);
    expect_code(RUN("check", plan, "--hardware", "cpu"), 0, "equivalent", "");
}
/* What is wrong with a claim is shown at the line that claims it. */
static void test_claim_line(void **state) {
    (void)state;
    const char *plan =
        put("claim.yaml", "name: small\n"
                          "model: {kind: mlp, sizes: [6, 10, 3], bias: false, activation: relu}\n"
                          "data: {rows: 5, dtype: f32, seed: 1}\n"
                          "mesh: {tp: 2}\n"
                          "trust: declared\n"
                          "plan:\n"
                          "  net1: colwise\n"
                          "  net2: {style: rowwise, output: local}\n");
    expect_code(RUN("check", plan), 1, "claim.yaml:8  net2: {style: rowwise, output: local}", NULL);
    expect_code(RUN("explain", plan, "net2"), 0, "claim.yaml:8", NULL);
}
/* A gather that no line of `plan` asks for names the key that does, or the axis. */
static void test_cp_line(void **state) {
    (void)state;
    static const char cp[] = "model: {preset: llama3-8b, layers: 1, shrink: 16}\n"
                             "data: {batch: 1, sequence: 64, dtype: f32, seed: 0}\n"
                             "mesh:\n"
                             "  cp: 2\n";
    expect_code(RUN("comms", put("cp.yaml", cp), "--format", "csv"), 0, "cp.yaml:4,false", NULL);
    expect_code(
        RUN("comms",
            put("cq.yaml", arena_printf(arena, "%scontext_parallel: {mode: all_gather}\n", cp)),
            "--format", "csv"),
        0, "cq.yaml:5,false", NULL);
}
static void test_faults(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp);
    expect_code(RUN("check", plan, "--fault", "nope"), 2, NULL, "see `shardproof list faults`");
    expect_code(RUN("check", plan, "--fault", "drop-reductoin"), 2, NULL,
                "did you mean 'drop-reduction'?");
    expect_code(RUN("check", plan, "--fault", "drop-gather"), 3, NULL, "`list faults` says");
    const char *const *what, *const *names = fault_names(arena, &what);
    Ran r = RUN("list", "faults");
    int n = 0;
    for (; names[n]; n++) {
        assert_non_null(strstr(r.out, names[n]));
        assert_non_null(strstr(r.out, what[n]));
    }
    assert_true(n >= 7 && !what[n]);
    done(r);
}
/* Ranks that could be missing: three at most, from a list that ends with NULL. */
static void test_unobservable(void **state) {
    (void)state;
    Cli c = {.arena = arena,
             .d = diags_new(arena),
             .format = "text",
             .text = str_new(arena),
             .o = {.rank = -1}};
    const char *four[] = {"net2: this run could not notice rank 0 missing",
                          "net2: this run could not notice rank 1 missing",
                          "net2: this run could not notice rank 2 missing",
                          "net2: this run could not notice rank 3 missing", NULL};
    const char *one[] = {"net2: this run could not notice rank 5 missing", NULL};
    Loaded l = {.d = diags_new(arena),
                .trace = small_trace(),
                .report = {.unobservable = 20, .unobservable_text = four}};
    summary_report(&c, &l, NULL, 0);
    assert_non_null(strstr(c.text.s, "  20 ranks of reductions could be missing unnoticed:\n"));
    assert_non_null(strstr(c.text.s, "could not notice rank 2 missing\n    and 17 more\n"));
    assert_null(strstr(c.text.s, "rank 3 missing"));
    c.text = str_new(arena);
    c.tamed = 0;
    l.report.unobservable = 1;
    l.report.unobservable_text = one;
    summary_report(&c, &l, NULL, 0);
    assert_non_null(strstr(c.text.s, "  1 rank of reductions could be missing unnoticed:\n    "
                                     "net2: this run could not notice rank 5 missing\n"));
    assert_null(strstr(c.text.s, " more\n"));
    c.text = str_new(arena);
    c.tamed = 0;
    l.report.unobservable = 0;
    summary_report(&c, &l, NULL, 0);
    assert_null(strstr(c.text.s, "unnoticed"));
}
static void test_findings(void **state) {
    (void)state;
    const char *good = put("good.yaml", mlp),
               *wrong =
                   put("w,r.yaml", arena_printf(arena, "%sfaults: [{at: net2, do: drop}]\n", mlp));
    expect_code(RUN("check", good, wrong, "--format", "junit"), 1,
                "<testsuites name=\"shardproof\" tests=\"2\" failures=\"1\" errors=\"0\">", NULL);
    expect_code(RUN("check", wrong, "--format", "junit"), 1,
                "<failure type=\"E0501\" message=\"net2 is wrong", NULL);
    expect_code(RUN("check", wrong, "--format", "github"), 1,
                "w%2Cr.yaml,line=9,col=15,title=E0501::net2 is wrong", NULL);
    Ran r = RUN("check", good, wrong, "--format", "sarif");
    const char *why;
    int line, col;
    Json *j = json_parse(arena, r.out, strlen(r.out), &why, &line, &col);
    assert_non_null(j);
    const Json *run = json_get(j, "runs")->item[0], *results = json_get(run, "results");
    bool found = false;
    for (int i = 0; i < results->n; i++)
        found = found || strcmp(json_get(results->item[i], "ruleId")->s, "E0501") == 0;
    assert_true(found);
    done(r);
    /* GitLab: every finding of every plan, each with a fingerprint of its own that does not change
     */
    Ran again = RUN("check", good, wrong, wrong, "--format", "gitlab");
    r = RUN("check", good, wrong, wrong, "--format", "gitlab");
    assert_string_equal(r.out, again.out);
    j = json_parse(arena, r.out, strlen(r.out), &why, &line, &col);
    assert_true(j && j->n >= 2);
    for (int i = 0; i < j->n; i++) {
        assert_int_equal(strlen(json_get(j->item[i], "fingerprint")->s), 16);
        const Json *lines = json_get(json_get(j->item[i], "location"), "lines");
        assert_true(json_get(lines, "begin")->i >= 1);
        if (!strcmp(json_get(j->item[i], "check_name")->s, "E0501"))
            assert_string_equal(json_get(j->item[i], "severity")->s, "major");
    }
    done(again);
    done(r);
    /* services know files from the root of the repository, in which this runs */
    char here[4096];
    assert_non_null(getcwd(here, sizeof here));
    const char *whole = arena_printf(arena, "%s/plans/bugs/01-output-left-partial.yaml", here);
    const char *const names[] = {"./plans/bugs/01-output-left-partial.yaml", whole},
                      *const formats[][2] = {
                          {"github", "::notice file=plans/bugs/01-output-left-partial.yaml,"},
                          {"gitlab", "\"path\":\"plans/bugs/01-output-left-partial.yaml\""},
                          {"sarif", "\"uri\":\"plans/bugs/01-output-left-partial.yaml\""}};
    for (int i = 0; i < 6; i++)
        expect_code(RUN("check", names[i % 2], "--format", formats[i / 2][0]), 0, formats[i / 2][1],
                    NULL);
    /* a note fails nothing and is said in junit, too */
    const char *noted = put("noted.yaml", mlp_left_out);
    expect_code(RUN("check", noted, "--format", "junit"), 0, "[N0001]", NULL);
    r = RUN("check", put("broken.yaml", "mesh: {tp: 2}\nmodel: nope\n"), "--format", "jsonl");
    assert_int_equal(r.code, 3);
    assert_non_null(
        strstr(r.out, "\"type\":\"diagnostic\",\"code\":\"E0202\",\"severity\":\"error\""));
    assert_non_null(strstr(r.out, "\"type\":\"verdict\",\"verdict\":\"invalid\""));
    done(r);
}
static void test_show(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp), *trace = in("t.jsonl");
    expect_code(RUN("shapes", plan), 0, "[B, F/tp]", NULL);
    expect_code(RUN("shapes", plan, "--rank", "2"), 2, NULL, "the mesh has 2 ranks");
    expect_code(RUN("params", plan, "--format", "json"), 0, "\"placements\":[\"Shard(0)\"]", NULL);
    expect_code(RUN("comms", plan, "--format", "csv"), 0, "all_reduce,tp,tp,1,2,", NULL);
    expect_code(RUN("comms", plan, "--format", "jsonl"), 0,
                "{\"schema\":\"shardproof/1\",\"type\":\"collective\",", NULL);
    expect_code(RUN("params", plan, "--trace", trace), 0, "net1.weight", NULL);
    /* a trace says what its plan says */
    static const char *const commands[] = {"shapes", "params", "comms", "times"};
    for (int i = 0; i < 4; i++) {
        Ran a = RUN(commands[i], plan, "--format", "csv"),
            b = RUN(commands[i], trace, "--format", "csv");
        assert_string_equal(a.out, b.out);
        assert_int_equal(b.code, 0);
        done(a);
        done(b);
    }
    expect_code(RUN("shapes", plan, "-o", in("s.md"), "--format", "md"), 0, "", NULL);
    assert_int_equal(strncmp(get(in("s.md")), "| step |", 8), 0);
    expect_code(RUN("check", trace), 3, NULL, "this is a trace");
    expect_code(RUN("shapes", put("cut.jsonl", arena_strndup(arena, get(trace), 2000))), 3, NULL,
                "E0109");
    expect_code(RUN("shapes", plan, "-o", "/nowhere/x"), 4, NULL, "E0105");
}
/* Over the time that it takes, a collective's algorithm bandwidth makes the size that nccl-tests
 * say it has: the whole result of an all-gather, the whole operand of a reduce-scatter, a rank's
 * block of an all-reduce; for any number of ranks. */
static void test_algorithm_bandwidth(void **state) {
    (void)state;
    static const struct {
        const char *plan, *op;
        double size;
        int ranks;
    } of[] = {{"plans/05-llama3-8b-tp4-sp.yaml", ",all_gather,", 131072, 4},
              {"plans/05-llama3-8b-tp4-sp.yaml", ",reduce_scatter,", 131072, 4},
              {"plans/04-llama3-8b-tp4.yaml", ",all_reduce,", 131072, 4},
              {"plans/03-llama3-8b-tp2.yaml", ",all_reduce,", 65536, 2}};
    for (size_t i = 0; i < sizeof of / sizeof *of; i++) {
        Ran all = RUN("times", of[i].plan, "-v", "--format", "csv");
        const char *row = strstr(all.out, of[i].op), *f = row;
        double cell[12]; /* from `op` on: 5 modelled, 10 bytes/s, 11 algbw */
        assert_non_null(row);
        for (int k = 0; k < 12; k++, f += strcspn(f, ",\n")) cell[k] = strtod(++f, NULL);
        double sent = (of[i].op[5] == 'r' ? 2.0 : 1.0) * (of[i].ranks - 1) / of[i].ranks;
        assert_true(fabs(cell[11] * cell[5] / of[i].size - 1) < 1e-6);
        assert_true(fabs(cell[10] / cell[11] / sent - 1) < 1e-6);
        done(all);
    }
}
/* Modelled times by kind, of a step by itself, of a rank, for a machine; nothing was measured. */
static void test_times(void **state) {
    (void)state;
    static const char four[] = "model: {preset: llama3-8b, layers: 4, shrink: 64}\nmesh: {tp: 2}\n"
                               "data: {batch: 2, sequence: 8}\n";
    const char *plan = put("four.yaml", four);
    expect_code(RUN("times", plan), 0, "layers.*.mlp.down", NULL);
    expect_code(RUN("times", plan), 0, "nothing was measured", NULL);
    expect_code(RUN("times", plan, "-v"), 0, "layers.3.mlp.down", NULL);
    expect_code(RUN("times", plan, "--hardware", "a100-80g"), 0, "modelled for a100-80g", NULL);
    expect_code(RUN("times", plan, "--hardware", "b52"), 3, NULL, "E0213");
    expect_code(RUN("times", plan, "--rank", "2"), 2, NULL, "the mesh has 2 ranks");
    Ran all = RUN("times", plan, "--format", "csv"),
        each = RUN("times", plan, "-v", "--format", "csv");
    double sum[2] = {0};
    int rows[2] = {0};
    for (int k = 0; k < 2; k++)
        for (const char *s = (k ? each : all).out; (s = strchr(s, '\n')) && s[1]; s++) {
            const char *at = s; /* the eighth cell: no cell of this table has a comma */
            for (int cell = 0; cell < 7; cell++) at = strchr(at + 1, ',');
            sum[k] += atof(at + 1);
            rows[k]++;
        }
    assert_true(rows[1] == 4 * rows[0] && sum[0] > 0);
    assert_true(fabs(sum[0] - sum[1]) < 1e-9 * sum[0]);
    done(all);
    done(each);
}
/* The format follows the name of -o; a name that says another one than the command writes is
 * refused, and so is a second -o. An explicit --format wins. */
static void test_format_by_name(void **state) {
    (void)state;
    static const struct {
        const char *command, *name, *begins; /* begins NULL: refused */
    } rows[] = {
        {"comms", "c.json", "{"},         {"comms", "c.csv", "step,"}, {"shapes", "s.md", "| step"},
        {"params", "p.jsonl", "{"},       {"comms", "c.txt", "step "}, {"comms", "name", "step "},
        {"check", "r.xml", "<?xml"},      {"check", "r.sarif", "{"},   {"check", "r.json", "{"},
        {"comms", ".hidden", "step "},    {"comms", "c.html", NULL},   {"comms", "c.xml", NULL},
        {"comms", "c.v2", NULL},          {"explain", "e.csv", NULL},  {"explain", "e.json", "{"},
        {"shapes", "dir.csv/s", "step "}, {"shapes", "s.JSON", NULL}};
    const char *plan = put("names.yaml", get("plans/02-toymodel-2.yaml"));
    mkdir(in("dir.csv"), 0777);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *to = in(rows[i].name), *value = "net1";
        bool explains = !strcmp(rows[i].command, "explain");
        Ran r =
            explains ? RUN("explain", plan, value, "-o", to) : RUN(rows[i].command, plan, "-o", to);
        if (rows[i].begins) {
            expect_code(r, 0, "", NULL);
            assert_int_equal(strncmp(get(to), rows[i].begins, strlen(rows[i].begins)), 0);
            unlink(to);
        } else {
            expect_code(r, 2, "", "say --format");
            assert_int_not_equal(access(to, F_OK), 0);
        }
    }
    rmdir(in("dir.csv"));
    expect_code(RUN("comms", plan, "-o", in("x.html"), "--format", "csv"), 0, "", NULL);
    expect_code(RUN("comms", plan, "-o", in("x"), "-o", in("y")), 2, "", "twice");
}
/* Nothing is executed: rules, labels, what verify finds, shapes and counts that are expected. */
static void test_static(void **state) {
    (void)state;
    const char *good = put("good.yaml", mlp);
    const char *drop =
        put("drop.yaml", arena_printf(arena, "%sfaults: [{at: net2, do: drop}]\n", mlp));
    expect_code(RUN("check", good, "--static"), 0, "rules and structure hold", NULL);
    expect_code(RUN("check", good, "--static"), 0, "1 collective in one order on all ranks", NULL);
    expect_code(RUN("check", drop, "--static"), 1, "the structure is wrong at 1 step", "W0401");
    const char *meant = put("meant.yaml", arena_printf(arena,
                                                       "%sfaults: [{at: net2, do: drop}]\n"
                                                       "expect: {equivalent: false}\n",
                                                       mlp));
    expect_code(RUN("check", meant, "--static"), 0, "as expected", NULL);
    const char *counts =
        put("counts.yaml", arena_printf(arena,
                                        "%sexpect: {equivalent: true, collectives: "
                                        "{forward: {all_reduce: 2}}}\n",
                                        mlp));
    expect_code(RUN("check", counts, "--static"), 1, NULL, "forward: 1 all_reduce, not 2");
    expect_code(RUN("check", "plans/bugs/04-wrong-block.yaml", "--static"), 0, "is not held", NULL);
    expect_code(RUN("check", "plans/shape-only/llama3.1-405b-8192.yaml", "--static"), 0,
                "756 collectives in one order", NULL);
    expect_code(RUN("check", "plans/bugs/07-sequence-not-cut.yaml", "--static"), 0, "invalid",
                NULL);
    expect_code(RUN("check", good, "--static", "--exact"), 2, "", "--exact wants a run");
    expect_code(RUN("run", good, "--static"), 2, "", "`run` has no option --static");
    Ran r = RUN("check", drop, "--static", "--format", "json");
    assert_int_equal(r.code, 1);
    assert_non_null(strstr(r.out, "\"structure\":1"));
    done(r);
}
/* Folders stand for the plans in them; YAML files without a mesh are something else. */
static void test_folders(void **state) {
    (void)state;
    const char *toy = get("plans/02-toymodel-2.yaml");
    mkdir(in("folder"), 0777);
    mkdir(in("folder/below"), 0777);
    expect_code(RUN("check", in("folder")), 3, NULL, "no plan in folder");
    put("folder/b.yaml", toy);
    put("folder/a.yml", toy);
    put("folder/below/c.yaml", toy);
    put("folder/profile.yaml", "name: x\n");
    put("folder/notes.txt", "mesh: none\n");
    Ran r = RUN("check", in("folder"));
    const char *a = strstr(r.out, "folder/a.yml"), *b = strstr(r.out, "folder/b.yaml");
    assert_true(a && b && a < b && b < strstr(r.out, "folder/below/c.yaml"));
    expect_code(r, 0, "3 plans hold", NULL);
    expect_code(RUN("check", in("folder"), "plans/02-toymodel-2.yaml"), 0, "4 plans hold", NULL);
    put("folder/below/broken.yaml", "mesh: {tp: 2}\n");
    expect_code(RUN("check", in("folder")), 3, "1 of 4 plans failed", "E0208");
    /* folders that tools fill are left out, unless one is named */
    mkdir(in("folder/build"), 0777);
    put("folder/build/broken.yaml", "mesh: {tp: 2}\n");
    expect_code(RUN("check", in("folder")), 3, "1 of 4 plans failed", "left out: ");
    expect_code(RUN("check", in("folder/**/*.yaml")), 3, "1 of 3 plans failed", "folder/build");
    expect_code(RUN("check", in("folder/build")), 3, NULL, "E0208");
    unlink(in("folder/build/broken.yaml"));
    rmdir(in("folder/build"));
    static const char *const left[] = {"folder/b.yaml",       "folder/a.yml",
                                       "folder/below/c.yaml", "folder/below/broken.yaml",
                                       "folder/profile.yaml", "folder/notes.txt"};
    for (size_t i = 0; i < sizeof left / sizeof *left; i++) unlink(in(left[i]));
    rmdir(in("folder/below"));
    rmdir(in("folder"));
}
/* Totals of one micro-batch say so wherever they stand: a file of them has no note beside it. */
static void test_totals_of_a_part(void **state) {
    (void)state;
    const char *plan = "plans/20-llama3-8b-fsdp-tp.yaml";
    Ran r = RUN("comms", plan, "--set", "data.microbatches=2");
    assert_non_null(strstr(r.out, "sent per rank\nof one micro-batch of 2, and what is done once"));
    done(r);
    r = RUN("comms", plan);
    assert_null(strstr(r.out, "micro-batch"));
    done(r);
}
/* --each: as many rows as the note says that the step has collectives and messages, or messages
 * alone, and each micro-batch its own, those of DualPipe's two ways too. */
static void test_each_microbatch(void **state) {
    (void)state;
    const char *plans[] = {"plans/45-llama3-8b-pp4-1f1b.yaml",
                           "plans/47-llama3-8b-pp2-dp2-tp2.yaml",
                           "plans/52-llama3-8b-pp4-dualpipe.yaml"};
    for (int i = 0; i < 3; i++)
        for (int rank = -1; rank < 2; rank++) {
            const char *of = rank == 1 ? "1" : "0";
            Ran r = rank < 0 ? RUN("comms", plans[i], "--each")
                             : RUN("comms", plans[i], "--each", "--rank", of);
            int rows = -1, said = 0, messages = 0, seen[8] = {0};
            const char *note = strstr(r.out, " micro-batches: ");
            assert_non_null(note);
            if (sscanf(note, " micro-batches: %d collectives and %d messages,", &said, &messages))
                said += messages;
            done(r);
            r = rank < 0 ? RUN("comms", plans[i], "--each", "--format", "csv")
                         : RUN("comms", plans[i], "--each", "--rank", of, "--format", "csv");
            for (const char *p = r.out, *end; (end = strstr(p, "\r\n")); p = end + 2, rows++)
                if (end[-1] != ',' && rows >= 0) seen[(end[-1] - '0') & 7]++;
            assert_int_equal(rows, said);
            int parts = strstr(plans[i], "/47") ? 4 : 8;
            for (int k = 0; k < 8; k++)
                assert_true(k < parts ? seen[k] > 0 && seen[k] == seen[0] : !seen[k]);
            done(r);
        }
    /* a record is of all micro-batches: who asks for a row of each is not given something else */
    expect_code(RUN("comms", plans[0], "--each", "--format", "jsonl"), 2, NULL, "`per_step`");
    expect_code(RUN("comms", plans[0], "--each", "-o", in("x.jsonl")), 2, NULL, "`per_step`");
    expect_code(RUN("params", plans[0], "--notation", "torch", "--format", "jsonl"), 2, NULL,
                "--notation");
}
/* The foot of `params`: what the fullest rank holds, which in a pipeline has its stages only, as
 * the view memory has it. */
static void test_params_of_a_rank(void **state) {
    (void)state;
    static const char *const rows[][2] = {
        {"plans/45-llama3-8b-pp4-1f1b.yaml", "39 parameters, at most 2.93 MiB per rank at rest"},
        {"plans/52-llama3-8b-pp4-dualpipe.yaml",
         "39 parameters, at most 5.85 MiB per rank at rest"},
        {"plans/18-llama3-8b-backward.yaml", " MiB per rank at rest"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ran r = RUN("params", rows[i][0]);
        if (!strstr(r.out, rows[i][1])) fail_msg("%s: '%s' is not said", rows[i][0], rows[i][1]);
        assert_true(i < 2 || !strstr(r.out, "at most"));
        done(r);
    }
}
/* A collective that a planted mistake skips: named, sends nothing, counts nowhere; in every form.
 */
static void test_skipped(void **state) {
    (void)state;
    const char *bug =
        put("bug.yaml", arena_printf(arena, "%sfaults: [{at: net2, do: drop}]\n", mlp));
    const char *good = put("good.yaml", mlp);
    Ran r = RUN("comms", bug);
    assert_non_null(strstr(r.out, "planted: drop"));
    assert_non_null(strstr(r.out, "   0 B  "));
    assert_non_null(strstr(r.out, "\n0 collectives, 0 B sent per rank\nnot counted: 1 that"));
    done(r);
    r = RUN("comms", good);
    assert_null(strstr(r.out, "planted"));
    assert_null(strstr(r.out, "not counted"));
    assert_non_null(strstr(r.out, "\n1 collective, 64 B sent"));
    done(r);
    expect_code(RUN("comms", bug, "--format", "md"), 0, "| 0 B |", NULL);
    expect_code(RUN("comms", bug, "--format", "md"), 0,
                "| planted: drop, where all\\_reduce(tp), sum is due |", NULL);
    expect_code(RUN("comms", bug, "--format", "csv"), 0,
                ",planted,skipped,times,local,declared,rows,per_step,microbatch\r\n", NULL);
    expect_code(RUN("comms", bug, "--format", "csv"), 0,
                ",drop,true,,,\"all_reduce(tp), sum\",,,\r\n", NULL);
    expect_code(RUN("comms", bug, "--format", "json"), 0, "\"planted\":\"drop\",\"skipped\":true",
                NULL);
    expect_code(RUN("comms", bug, "--format", "json"), 0, "\"bytes_sent\":0,", NULL);
    expect_code(RUN("comms", good, "--format", "json"), 0, "\"planted\":null,\"skipped\":false",
                NULL);
    expect_code(RUN("comms", bug, "--format", "jsonl"), 0, "\"planted\":\"drop\",\"skipped\":true",
                NULL);
    expect_code(RUN("explain", bug, "3"), 0,
                "drop: the step does nothing; due: all_reduce(tp), sum", NULL);
    expect_code(RUN("diff", good, bug), 1, "0, sending 0 B", NULL);
    expect_code(RUN("run", bug, "-o", in("o")), 1, "1 skipped by a planted mistake", NULL);
}
static void test_explain(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp);
    expect_code(RUN("explain", "E0403"), 0, "Exit code 1.", NULL);
    expect_code(RUN("explain", "n0001"), 0, "N0001: ", NULL);
    expect_code(RUN("explain", "E9999"), 3, NULL, "no diagnostic has the code");
    expect_code(RUN("explain", plan, "net2"), 0, "all_reduce(tp)", NULL);
    expect_code(RUN("explain", plan, "net1.weight"), 0, "good.yaml:7", NULL);
    /* what is there once for each way of a pipeline is read by the steps of its own way */
    Ran both = RUN("explain", "plans/52-llama3-8b-pp4-dualpipe.yaml", "loss_weights");
    const char *second = strstr(both.out, "of micro-batches that enter at the last rank");
    assert_non_null(second);
    int readers[2] = {0};
    for (const char *p = both.out; (p = strstr(p, "read by")); p++) readers[p > second]++;
    assert_true(readers[0] > 0 && readers[0] == readers[1]);
    expect_code(RUN("explain", plan, "0"), 0, "step 0", NULL);
    expect_code(RUN("explain", plan, "999"), 3, NULL, "E0209");
    expect_code(RUN("explain", plan, "net3"), 3, NULL, "did you mean 'net");
    /* a plan alone; what is no name in it, but a word, a code, or the end of a name */
    expect_code(RUN("explain", plan), 2, NULL, "wants a name in it too");
    expect_code(RUN("explain", plan, "colwise"), 3, NULL, "`shardproof explain colwise`, without");
    expect_code(RUN("explain", plan, "E0403"), 3, NULL, "`shardproof explain E0403`, without");
    expect_code(RUN("explain", plan, "nothing-like-it"), 3, NULL, "`shapes` lists the values");
    expect_code(RUN("explain", "E9999"), 3, NULL, "list codes");
    /* words of every `list`, and placements as PyTorch writes them */
    expect_code(RUN("explain", "llama3-8b"), 0, "a model", NULL);
    expect_code(RUN("explain", "torchtitan"), 0, "layers.*.attention.wq", NULL);
    expect_code(RUN("explain", "h100-sxm"), 0, "a hardware profile", NULL);
    expect_code(RUN("explain", "adamw"), 0, "a word for optimizer.name", NULL);
    expect_code(RUN("explain", "Shard(0)"), 0, "a placement", NULL);
    expect_code(RUN("explain", "SUSPECT"), 0, "--strict", NULL);
    /* a unit's collective carries many parameters: the key asked for it, no line of one of them */
    expect_code(RUN("explain", "plans/20-llama3-8b-fsdp-tp.yaml",
                    "grad.param.layers.0.attention.wq.weight"),
                0, "plan line    plans/20-llama3-8b-fsdp-tp.yaml:11", NULL);
}
/* The end of a name is a name, in any scheme, where one thing ends so. */
static void test_suffixes(void **state) {
    (void)state;
    static const char *const rows[][4] = {
        /* plan, what is asked, out, err */
        {"06-llama3-8b-dp2-tp2-sp", "wo", "layers.0.attention.wo  (module)", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "attention.wo", "layers.0.attention.wo  (module)", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "wo.weight", "layers.0.attention.wo.weight", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "mlp.act", "layers.0.mlp.act  (", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "attention.wo.output", "layers.0.o_proj  (", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "self_attn.o_proj", "layers.0.attention.wo  (module)", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "blk.0.attn_q", "layers.0.attention.wq  (module)", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "model.layers.0.self_attn.o_proj.weight",
         "layers.0.attention.wo.weight  (parameter)", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "linear_proj.weight",
         "layers.0.attention.wo.weight  (parameter)", NULL},
        {"15-megatron-tp-sp", "layers.0.attention.wo",
         "decoder.layers.0.self_attention.linear_proj  (module)", NULL},
        {"18-llama3-8b-backward", "grad.o_proj", "grad.layers.0.o_proj", NULL},
        {"20-llama3-8b-fsdp-tp", "attention.wo", NULL,
         "2 names end so: layers.0.attention.wo, layers.1.attention.wo"},
        {"20-llama3-8b-fsdp-tp", "1.attention.wo", "layers.1.attention.wo  (module)", NULL},
        /* one module elsewhere, several here */
        {"15-megatron-tp-sp", "decoder.layers.0.mlp.linear_fc1",
         "decoder.layers.0.mlp.linear_fc1_up  (module)", NULL},
        {"15-megatron-tp-sp", "linear_qkv.weight",
         "decoder.layers.0.self_attention.linear_v.weight  (parameter)", NULL},
        {"06-llama3-8b-dp2-tp2-sp", "gate_up_proj", "layers.0.feed_forward.w3  (module)", NULL},
        {"20-llama3-8b-fsdp-tp", "mlp.linear_fc1", NULL,
         "layers.0.feed_forward.w1, layers.0.feed_forward.w3, and those of other layers"},
        {"06-llama3-8b-dp2-tp2-sp", "attnetion.wo", NULL, "did you mean 'attention.wo'?"},
        {"06-llama3-8b-dp2-tp2-sp", "self_attn.o_prj", NULL,
         "self_attn.o_proj, which this plan calls layers.0.attention.wo"},
        {"06-llama3-8b-dp2-tp2-sp", "ttention.wo", NULL, "did you mean 'attention.wo'?"},
        {"06-llama3-8b-dp2-tp2-sp", "nonsense-of-no-kind", NULL, "`list names` the modules"},
    };
    if (access("plans", F_OK) != 0) skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        expect_code(RUN("explain", arena_printf(arena, "plans/%s.yaml", rows[i][0]), rows[i][1]),
                    rows[i][3] ? 3 : 0, rows[i][2], rows[i][3]);
    /* a short name in `expect` is held, and written again as it stands */
    const char *text = get("plans/06-llama3-8b-dp2-tp2-sp.yaml"),
               *at = strstr(text, "layers.0.mlp.act");
    assert_non_null(at);
    const char *plan =
                   put("short.yaml", arena_printf(arena, "%.*s%s", (int)(at - text), text, at + 9)),
               *wrong = put("wrong.yaml", arena_printf(arena, "%.*s%.*sx%s", (int)(at - text), text,
                                                       6, at + 9, at + 16));
    const char *other = put("other.yaml", arena_printf(arena, "%.*smlp.act: \"[F]\"%s",
                                                       (int)(at - text), text, strchr(at, '\n')));
    expect_code(RUN("check", plan), 0, NULL, NULL);
    expect_code(RUN("check", other), 1, NULL, "mlp.act is [B/dp, S/cp, F/tp], not [F]");
    expect_code(RUN("check", wrong), 1, NULL, "did you mean 'mlp.act'?");
    expect_code(RUN("check", plan, "--update-expect"), 0, NULL, NULL);
    assert_non_null(strstr(get(plan), "    mlp.act: \"[B/dp, S/cp, F/tp]\""));
    /* a part of a picture */
    expect_code(RUN("draw", plan, "--view", "shards", "--part", "attention.wo", "-o", in("p.svg")),
                0, NULL, NULL);
    expect_code(RUN("draw", plan, "--view", "shards", "--part", "ttention.wo", "-o", in("p.svg")),
                2, NULL, "did you mean 'attention.wo'?");
}
/* A part of a picture by any name that people use for it: every view draws the same for all. */
static void test_part_names(void **state) {
    (void)state;
    static const struct {
        const char *plan, *view, *part[6]; /* all draw the same */
    } x[] = {
        {"05-llama3-8b-tp4-sp", "block", {"attention.wo", "o_proj", "wq.weight"}},
        {"05-llama3-8b-tp4-sp", "block", {"feed_forward", "ffn_norm", "gate_proj"}},
        {"05-llama3-8b-tp4-sp",
         "shards",
         {"layers.0.attention.wo", "wo", "o_proj", "self_attn.o_proj", "attention.wo.weight"}},
        {"05-llama3-8b-tp4-sp", "shards", {"feed_forward", "mlp"}},
        {"05-llama3-8b-tp4-sp",
         "storyboard",
         {"layers.0.o_proj", "wo", "attention.wo", "self_attn.o_proj",
          "model.layers.0.self_attn.o_proj"}},
        {"16-hf-llama-tp4", "block", {"self_attn.o_proj", "attention.wo", "wo"}},
        {"16-hf-llama-tp4",
         "shards",
         {"model.layers.0.self_attn.o_proj", "attention.wo", "o_proj"}},
        /* of two layers: a name that says none is of both, and one that says it is of that one */
        {"20-llama3-8b-fsdp-tp", "block", {"attention", "attention.wo", "self_attn"}},
        {"20-llama3-8b-fsdp-tp", "shards", {"attention.wo", "o_proj", "wo.weight"}},
        {"20-llama3-8b-fsdp-tp",
         "shards",
         {"layers.1.attention.wo", "model.layers.1.self_attn.o_proj"}},
    };
    for (size_t i = 0; i < sizeof x / sizeof *x; i++) {
        const char *plan = arena_printf(arena, "plans/%s.yaml", x[i].plan), *first = NULL;
        Ran whole = RUN("draw", plan, "--view", x[i].view, "--format", "svg");
        for (int k = 0; k < 6 && x[i].part[k]; k++) {
            Ran r =
                RUN("draw", plan, "--view", x[i].view, "--part", x[i].part[k], "--format", "svg");
            const char *drawn = arena_strdup(arena, r.out);
            expect_code(r, 0, NULL, NULL);
            if (!first) first = drawn;
            if (strcmp(drawn, whole.out) == 0 || strcmp(drawn, first) != 0)
                fail_msg("%s --view %s --part %s", x[i].plan, x[i].view, x[i].part[k]);
        }
        done(whole);
    }
    const char *two = "plans/20-llama3-8b-fsdp-tp.yaml";
    expect_code(RUN("draw", two, "--part", "layers.1.attention.wo", "--layer", "0"), 2, NULL,
                "it is of layer 1");
    expect_code(RUN("draw", two, "--part", "layers.1"), 2, NULL, "layers.1 has several parts");
    expect_code(RUN("draw", two, "--part", "self_attn.o_prj"), 2, NULL,
                "self_attn.o_proj, which this plan calls layers.0.attention.wo");
    expect_code(
        RUN("draw", "plans/05-llama3-8b-tp4-sp.yaml", "--view", "storyboard", "--part", "wq"), 2,
        NULL, "nothing is moved in layers.0.attention.wq");
    expect_code(RUN("diff", two, two, "--view", "block", "--part", "self_attn.o_proj"), 0, NULL,
                NULL);
}
/* How far the results are from the unsharded model stands in JSON as in the report: a step that is
 * right on wrong inputs does not show it. */
/* What left the unsharded run out is said once, and the option that was given is what is named. */
static void test_end_to_end_left_out(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    Ran r = RUN("run", "plans/01-column-row-mlp.yaml", "--check", "quick", "--no-end-to-end", "-o",
                in("left"));
    const char *at = strstr(r.out, "  end to end ");
    assert_non_null(at);
    assert_non_null(strstr(at, "as --no-end-to-end asks"));
    assert_null(strstr(at + 1, "  end to end "));
    done(r);
}
static void test_end_to_end_json(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    const char *plan = "plans/bugs/04-wrong-block.yaml", *folder = in("ends");
    Ran r = RUN("run", plan, "-o", folder, "--format", "json");
    const char *at = strstr(r.out, "\"end_to_end\":{\"value\":\"layers.0.output\",\"off\":");
    assert_non_null(at);
    double off = strtod(strstr(at, "off\":") + strlen("off\":"), NULL);
    double bound = strtod(strstr(at, "bound\":") + strlen("bound\":"), NULL);
    assert_true(off > bound && bound > 0);
    done(r);
    char words[64];
    snprintf(words, sizeof words, "is off by %.2g of its largest number, bound %.2g", off, bound);
    expect_code(RUN("run", plan, "-o", folder), 0, words, NULL);
}
/* What cuts a wrong input says nothing of why it is wrong: the report names no axis beside a cause
 * that names another. */
static void test_axis_of_an_input(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    const char *out = in("axis");
    Ran r = RUN("run", "plans/bugs/44-ranks-fed-different-data.yaml", "-o", out);
    assert_non_null(strstr(r.out, "the ranks of tp should hold the same"));
    assert_null(strstr(r.out, "    axis "));
    done(r);
    r = RUN("run", "plans/bugs/18-fsdp-wrong-shard.yaml", "-o", out);
    assert_non_null(strstr(r.out, "    axis          dp\n"));
    done(r);
}
/* How a gradient comes about: its steps, the sums with their reason, what would be wrong otherwise,
 * the axes without one. */
static void test_explain_gradient(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    static const struct {
        const char *plan, *name, *says;
    } rows[] = {
        /* a norm weight under sequence parallelism */
        {"18-llama3-8b-backward", "grad.param.layers.0.attention_norm.weight",
         "summed over  tp, by step"},
        {"18-llama3-8b-backward", "grad.param.layers.0.attention_norm.weight",
         "its uses differ over tp: the gradient is the sum over them"},
        {"18-llama3-8b-backward", "grad.param.layers.0.attention_norm.weight",
         "only what its own tokens give; a second sum would make it 4 times"},
        /* a column weight, what it multiplies, what a row layer starts from */
        {"18-llama3-8b-backward", "grad.param.layers.0.attention.wq.weight",
         "no sum       over tp: every rank holds the whole gradient of its own block"},
        {"18-llama3-8b-backward", "grad.layers.0.input_norm", "only what its own heads give"},
        {"18-llama3-8b-backward", "grad.layers.0.input_norm", "added up     step"},
        {"18-llama3-8b-backward", "grad.layers.0.mlp.down",
         "without this gather every rank would know the gradient of its own tokens only"},
        /* copies of a KV head serve other query heads */
        {"bugs/16-kv-copies-not-summed", "grad.param.layers.0.attention.wv.weight",
         "should sum   over tp.1, by step"},
        {"bugs/16-kv-copies-not-summed", "grad.param.layers.0.attention.wv.weight",
         "'gradients: none': the step does nothing"},
        {"bugs/16-kv-copies-not-summed", "grad.param.layers.0.attention.wv.weight",
         "as it is every rank holds only what its own heads give; a second sum would make it 2 "
         "times"},
        /* a norm without sequence parallelism, and a sum that is not due */
        {"bugs/10-gradient-summed-where-not-due", "grad.param.layers.0.ffn_norm.weight",
         "every rank has computed all of it; a sum would make it 4 times too large"},
        {"bugs/10-gradient-summed-where-not-due", "grad.param.layers.0.attention_norm.weight",
         "every rank had all of it before: this sum makes it 4 times too large"},
        /* FSDP, alone and a unit at a time */
        {"19-llama3-8b-fsdp4", "grad.param.layers.0.attention.wq.weight",
         "FSDP: the ranks' gradients add up, each keeps the part that it has at rest"},
        {"19-llama3-8b-fsdp4", "grad.param.layers.0.attention.wq.weight",
         "only what its own sequences give"},
        {"20-llama3-8b-fsdp-tp", "grad.param.layers.0.attention.wq.weight",
         "in the reduce_scatter(dp*cp) of step"},
        {"20-llama3-8b-fsdp-tp", "grad.param.layers.0.attention.wq.weight",
         "each rank keeps the part that it has at rest"},
        {"20-llama3-8b-fsdp-tp", "grad.param.layers.0.attention.wq.weight",
         "its own sequences and tokens give"},
        /* a style that cuts tokens for its experts and joins them again */
        {"39-mixtral-8x7b-hf-ep", "layers.0.moe.routed", "what follows needs all of B"},
        {"39-mixtral-8x7b-hf-ep", "grad.layers.0.moe.weights",
         "adjoint of slice: the parts of the gradient are joined"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ran r = RUN("explain", arena_printf(arena, "plans/%s.yaml", rows[i].plan), rows[i].name);
        if (!strstr(r.out, rows[i].says))
            print_error("%s of %s does not say '%s'\n%s", rows[i].name, rows[i].plan, rows[i].says,
                        r.out);
        assert_int_equal(r.code, 0);
        assert_non_null(strstr(r.out, rows[i].says));
        done(r);
    }
}
/* Two schedules that send and hold the same are two schedules: they take other times. */
static void test_diff_schedules(void **state) {
    (void)state;
    static const char rest[] =
        "model: {kind: mlp, sizes: [4, 6, 4]}\nmesh: {pp: 2}\ndata: {rows: 4}\npass: backward\n";
    const char *a = put("gpipe.yaml", arena_printf(arena,
                                                   "%spipeline: {schedule: gpipe, "
                                                   "microbatches: 2}\n",
                                                   rest)),
               *b = put("zb.yaml", arena_printf(arena,
                                                "%spipeline: {schedule: zb-h1, "
                                                "microbatches: 2}\n",
                                                rest));
    expect_code(RUN("diff", a, a), 0, "no difference\n", NULL);
    expect_code(RUN("diff", a, b), 1, "gpipe over pp", NULL);
    /* a file is not its path but its order */
    static const char *const orders[] = {"0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",
                                         "0F0,0F1,0B0,0B1\n1F0,1B0,1F1,1B1\n",
                                         "0F0,0F1,0B0,0B1\n1F0,1F1,1B0,1B1\n"};
    const char *plan[3];
    for (int i = 0; i < 3; i++) {
        const char *csv = arena_printf(arena, "order%d.csv", i);
        put(csv, orders[i]);
        plan[i] = put(arena_printf(arena, "file%d.yaml", i),
                      arena_printf(arena,
                                   "name: of-a-file\nmodel: {kind: mlp, sizes: [4, 6, 4]}\n"
                                   "data: {rows: 4}\nmesh: {pp: 2}\npass: backward\npipeline: "
                                   "{file: %s, stage_to_rank: [0, 1], microbatches: 2}\n",
                                   csv));
    }
    expect_code(RUN("diff", plan[0], plan[1]), 0, "no difference\n", NULL);
    expect_code(RUN("diff", plan[0], plan[2]), 1, "a file over pp, order ", NULL);
}
static void test_diff(void **state) {
    (void)state;
    const char *a = put("a.yaml", mlp),
               *b = put("b.yaml", arena_printf(arena, "%s%s", mlp, "groups: {g: tp}\n"));
    expect_code(RUN("diff", a, a), 0, "no difference\n", NULL);
    expect_code(RUN("diff", a, a, "--format", "json"), 0, "\"rows\":[]}\n", NULL);
    expect_code(RUN("diff", a, b), 1, "group g", NULL);
    expect_code(RUN("diff", a, in("none.yaml")), 3, NULL, "E0101");
    expect_code(RUN("diff", a, a, "--set", "mesh.tp=4"), 0, "no difference", NULL);
    /* over two timelines what a step of each takes, too */
    size_t size;
    const char *svg = in("two.svg"), *own = "plans/18-llama3-8b-backward.yaml";
    expect_code(RUN("diff", own, "plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "--view",
                    "timeline", "-o", svg),
                1, NULL, NULL);
    assert_non_null(strstr(file_read(arena, diags_new(arena), svg, 1 << 24, (Loc){0}, &size),
                           " differences. B's step takes 450 µs, A's 549 µs. B against A, of a "
                           "rank: "));
    /* as exactly as both differ; of a pipeline by its schedule, which is not the whole step */
    static const char *const pair[][3] = {
        {"plans/04-llama3-8b-tp4.yaml", "plans/05-llama3-8b-tp4-sp.yaml",
         "B's step takes 110.51 µs, A's 110.84 µs. B"},
        {"plans/45-llama3-8b-pp4-1f1b.yaml", "plans/52-llama3-8b-pp4-dualpipe.yaml",
         "B's schedule takes 1.56 ms, A's 2.17 ms; what is done once a step is extra. B"},
        {"plans/18-llama3-8b-backward.yaml", "plans/45-llama3-8b-pp4-1f1b.yaml",
         "B's schedule takes 2.17 ms, what is done once a step is extra, A's step 549 µs. B"},
        {"plans/45-llama3-8b-pp4-1f1b.yaml", "plans/18-llama3-8b-backward.yaml",
         "B's step takes 549 µs, A's schedule 2.17 ms, what is done once a step is extra. B"}};
    for (size_t i = 0; i < sizeof pair / sizeof *pair; i++) {
        expect_code(RUN("diff", pair[i][0], pair[i][1], "--view", "timeline", "-o", svg), 1, NULL,
                    NULL);
        const char *text = file_read(arena, diags_new(arena), svg, 1 << 24, (Loc){0}, &size);
        if (!strstr(text, pair[i][2])) fail_msg("%s: no '%s'", pair[i][0], pair[i][2]);
    }
    /* mistakes that are planted in an op, an input and a parameter */
    static const char *const faults[] = {"at: act1, scale: 2", "at: input, do: reseed",
                                         "at: net1.weight, offset: 1"};
    static const char *const says[] = {"of act1", "input  ", "net1.weight  "};
    for (int i = 0; i < 3; i++) {
        const char *bug = put("op.yaml", arena_printf(arena, "%sfaults: [{%s}]\n", mlp, faults[i]));
        expect_code(RUN("diff", a, bug), 1, says[i], NULL);
        expect_code(RUN("diff", a, bug), 1,
                    "1 difference. B against A, of a rank: the same bytes sent, the same memory at "
                    "the peak\n",
                    NULL);
    }
}
typedef struct {
    const char *a, *b, *says;
} Differing;
static void settings_differ(const char *plan, const Differing *row, size_t n) {
    for (size_t i = 0; i < n; i++) {
        const char *a = put("a.yaml", arena_printf(arena, "%s%s", plan, row[i].a)),
                   *b = put("b.yaml", arena_printf(arena, "%s%s", plan, row[i].b));
        expect_code(RUN("diff", a, a), 0, "no difference\n", NULL);
        expect_code(RUN("diff", a, b), 1, row[i].says, NULL);
        expect_code(RUN("run", b, "--trace", in("settings.jsonl")), 0, NULL, NULL);
        expect_code(RUN("diff", b, in("settings.jsonl")), 0, "no difference\n", NULL);
    }
}
/* Two plans that compute other numbers differ, whatever decides them. */
static void test_diff_settings(void **state) {
    (void)state;
    static const Differing rows[] = {
        {"optimizer: {name: sgd, lr: 0.1}\n", "optimizer: {name: sgd, lr: 0.2}\n", "lr  "},
        {"optimizer: {name: sgd, lr: 0.1}\n", "optimizer: {name: sgd, lr: 0.1, steps: 2}\n",
         "steps  "},
        {"optimizer: {name: sgd, lr: 0.1, momentum: 0.5}\n",
         "optimizer: {name: sgd, lr: 0.1, momentum: 0.25}\n", "momentum  "},
        {"optimizer: {name: adamw, lr: 0.1}\n", "optimizer: {name: adamw, lr: 0.1, eps: 0.01}\n",
         "optimizer eps  "},
        {"optimizer: {name: adamw, lr: 0.1}\n",
         "optimizer: {name: adamw, lr: 0.1, weight_decay: 0.3}\n", "weight_decay  "},
        {"optimizer: {name: adamw, lr: 0.1}\n",
         "optimizer: {name: adamw, lr: 0.1, betas: [0.9, 0.95]}\n", "beta2  "},
        {"optimizer: {name: sgd, lr: 0.1, clip: 1}\n", "optimizer: {name: sgd, lr: 0.1, clip: 2}\n",
         "clip  "},
        {"optimizer: {name: sgd, lr: 0.1}\n", "optimizer: {name: sgd, lr: 0.1}\nloss: sum\n",
         "loss  "},
        {"optimizer: {name: sgd, lr: 0.1}\n", "optimizer: {name: sgd, lr: 0.1}\ndata: {seed: 9}\n",
         "seed  "},
    };
    settings_differ("model: {kind: mlp, sizes: [4, 4, 4]}\nmesh: {tp: 2}\npass: train\n", rows,
                    sizeof rows / sizeof *rows);
}
#define CONFIG(more)                                                                               \
    "model: {layers: 1, parts: [embedding, blocks, norm, head, loss], config: {hidden_size: 8, "   \
    "num_attention_heads: 2, num_key_value_heads: 2, head_dim: 4, intermediate_size: 8, "          \
    "vocab_size: 12, num_hidden_layers: 1" more "}}\n"
#define YARN(more)                                                                                 \
    CONFIG(", rope_scaling: {rope_type: yarn, factor: 4, original_max_position_embeddings: 8" more \
           "}")                                                                                    \
    DATA("")
#define LATENT(interleave)                                                                         \
    "model: {layers: 1, parts: [blocks], config: {model_type: deepseek_v3, hidden_size: 8, "       \
    "num_attention_heads: 2, num_key_value_heads: 2, intermediate_size: 8, vocab_size: 12, "       \
    "num_hidden_layers: 1, q_lora_rank: null, kv_lora_rank: 4, qk_nope_head_dim: 4, "              \
    "qk_rope_head_dim: 4, v_head_dim: 4, rope_interleave: " interleave "}}\n" DATA("")
#define CHUNKS(chunk, floor, scale, kind)                                                          \
    "model: {layers: 2, parts: [blocks], config: {model_type: llama4_text, hidden_size: 8, "       \
    "num_attention_heads: 2, num_key_value_heads: 2, head_dim: 4, intermediate_size_mlp: 8, "      \
    "intermediate_size: 8, vocab_size: 12, num_hidden_layers: 2, moe_layers: [], "                 \
    "no_rope_layers: [1, 0], attention_chunk_size: " chunk ", attn_temperature_tuning: true, "     \
    "floor_scale: " floor ", attn_scale: " scale ", layer_types: [" kind                           \
    "_attention, full_attention]}}\n" DATA("")
#define EXPERTS(router, moe)                                                                       \
    "model: {layers: 1, parts: [blocks], config: {model_type: mixtral, hidden_size: 8, "           \
    "num_attention_heads: 2, num_key_value_heads: 2, intermediate_size: 8, vocab_size: 12, "       \
    "num_hidden_layers: 1, num_local_experts: 8, num_experts_per_tok: 2" router                    \
    "}}\n" moe DATA("")
#define GROUPS(keys)                                                                               \
    "model: {layers: 1, parts: [blocks], config: {model_type: deepseek_v3, hidden_size: 8, "       \
    "num_attention_heads: 2, num_key_value_heads: 2, intermediate_size: 8, vocab_size: 12, "       \
    "num_hidden_layers: 1, q_lora_rank: null, kv_lora_rank: 4, qk_nope_head_dim: 4, "              \
    "qk_rope_head_dim: 4, v_head_dim: 4, first_k_dense_replace: 0, n_routed_experts: 8, "          \
    "moe_intermediate_size: 4, num_experts_per_tok: 2, " keys "}}\n" DATA("")
#define DATA(more) "data: {batch: 4, sequence: 4" more "}\n"
static void test_diff_settings_of_models(void **state) {
    (void)state;
    static const Differing rows[] = {
        {CONFIG("") DATA(""), CONFIG(", \"rope_theta\": 500") DATA(""), "rope_theta  "},
        {CONFIG("") DATA(""), CONFIG(", \"rms_norm_eps\": 0.01") DATA(""), "eps  "},
        {CONFIG("") DATA(""), CONFIG(", \"hidden_act\": \"gelu\"") DATA(""), "activation  "},
        {CONFIG("") DATA(""), CONFIG("") DATA(", microbatches: 2"), "microbatches  "},
        {CONFIG("") DATA(""), CONFIG("") DATA(", documents: [1, 3]"), "documents  "},
        {CONFIG("") DATA(""), CONFIG("") DATA("") "loss: {label_smoothing: 0.1}\n",
         "label_smoothing  "},
        {CONFIG("") DATA(""), CONFIG("") DATA("") "loss: {normalise: local_mean}\n", "normalise  "},
        {YARN(""), YARN(", beta_fast: 8"), "beta_fast  "},
        {YARN(""), YARN(", beta_slow: 2"), "beta_slow  "},
        {YARN(""), YARN(", mscale: 0.5, mscale_all_dim: 0.7"), "mscale_all_dim  "},
        {YARN(""), YARN(", truncate: false"), "truncate  "},
        {LATENT("true"), LATENT("false"), "rope_pairs  "},
        {CHUNKS("4", "8", "0.1", "chunked"), CHUNKS("2", "8", "0.1", "chunked"),
         "attention_chunk_size  "},
        {CHUNKS("4", "8", "0.1", "chunked"), CHUNKS("4", "8", "0.1", "full"), "chunked layers  "},
        {CHUNKS("4", "8", "0.1", "chunked"), CHUNKS("4", "4", "0.1", "chunked"), "floor_scale  "},
        {CHUNKS("4", "8", "0.1", "chunked"), CHUNKS("4", "8", "0.2", "chunked"), "attn_scale  "},
        {EXPERTS("", ""), EXPERTS(", router: switch", ""), "router  "},
        {EXPERTS("", "moe: {capacity_factor: 1}\n"), EXPERTS("", "moe: {capacity_factor: 2}\n"),
         "capacity_factor  "},
        {EXPERTS("", "moe: {capacity_factor: 1}\n"),
         EXPERTS("", "moe: {capacity_factor: 1, capacity: local}\n"), "capacity  "},
        {EXPERTS("", "moe: {capacity_factor: 1}\n"),
         EXPERTS("", "moe: {capacity_factor: 1, priority: score}\n"), "priority  "},
        {EXPERTS("", "moe: {routing: burst}\n"), EXPERTS("", "moe: {routing: ragged}\n"),
         "routing  "},
        {EXPERTS("", ""), EXPERTS("", "moe: {routing: replayed}\n"), "routing  "},
        {EXPERTS("", "moe: {aux_loss: exact, aux_coef: 1}\n"),
         EXPERTS("", "moe: {aux_loss: exact, aux_coef: 2}\n"), "aux_coef  "},
        {EXPERTS("", "moe: {aux_loss: exact, aux_coef: 1}\n"),
         EXPERTS("", "moe: {aux_loss: per_shard, aux_coef: 1}\n"), "aux_loss  "},
        {EXPERTS("", "moe: {z_coef: 1}\n"), EXPERTS("", "moe: {z_coef: 2}\n"), "z_coef  "},
        {GROUPS("n_group: 4, topk_group: 2"), GROUPS("n_group: 2, topk_group: 2"), "n_group  "},
        {GROUPS("n_group: 4, topk_group: 2"), GROUPS("n_group: 4, topk_group: 3"), "topk_group  "},
        {GROUPS("n_group: 1, topk_group: 1"),
         GROUPS("n_group: 1, topk_group: 1, routed_scaling_factor: 3"), "routed_scaling_factor  "},
        {GROUPS("n_group: 1, topk_group: 1"),
         GROUPS("n_group: 1, topk_group: 1, norm_topk_prob: false"), "norm_topk_prob  "},
    };
    settings_differ("mesh: {tp: 2}\npass: backward\n", rows, sizeof rows / sizeof *rows);
}
#undef DATA
#undef GROUPS
#undef EXPERTS
#undef CHUNKS
#undef LATENT
#undef YARN
#undef CONFIG
/* Over an axis of one rank nothing is gathered: tables for people leave it out, as `comms` does. */
static void test_one_rank(void **state) {
    (void)state;
    const char *plan =
        put("one.yaml", "model: {kind: mlp, sizes: [4, 4, 4]}\nmesh: {dp: 1, tp: 2}\n"
                        "pass: backward\ndata_parallel: {mode: fsdp, axis: dp}\n"
                        "plan: {net1: colwise, net2: rowwise}\n");
    Ran r = RUN("shapes", plan);
    assert_null(strstr(r.out, "all_gather(dp)"));
    expect_code(r, 0, "all_reduce(tp)", NULL);
    expect_code(RUN("shapes", plan, "-v"), 0, "all_gather(dp)", NULL);
}
#define NO_WINDOW "\"sliding_window\": null, "
/* A key that a config.json leaves out means what its family's class in transformers has. */
static void test_config_defaults(void **state) {
    (void)state;
    static const char *const rows[][3] = {
        /* model_type, further keys, shape of k_proj on one rank */
        {"llama", "", "[256, 512]"},          /* all 16 heads of 32 */
        {"mistral", NO_WINDOW, "[128, 512]"}, /* 8 heads */
        {"mistral", NO_WINDOW "\"num_key_value_heads\": null,", "[256, 512]"},
        {"mistral", NO_WINDOW "\"num_key_value_heads\": 4,", "[64, 512]"},
        {"qwen3", "\"num_key_value_heads\": 4,", "[256, 512]"}, /* heads of 128 */
        {"qwen3", "\"num_key_value_heads\": 4, \"head_dim\": 64,", "[128, 512]"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const char *config = put(
            "config.json", arena_printf(arena,
                                        "{\"model_type\": \"%s\", %s \"hidden_size\": 512, "
                                        "\"intermediate_size\": 96, \"num_attention_heads\": 16, "
                                        "\"num_hidden_layers\": 1, \"vocab_size\": 128}",
                                        rows[i][0], rows[i][1]));
        Ran r = RUN("params", config, "--tp", "2", "--full", "--format", "csv");
        const char *at = strstr(r.out, "k_proj.weight"), *end = at ? strchr(at, '\n') : NULL;
        assert_non_null(end);
        const char *line = arena_strndup(arena, at, (size_t)(end - at));
        if (!strstr(line, rows[i][2])) print_error("row %zu: %s\n", i, line);
        assert_non_null(strstr(line, rows[i][2]));
        done(r);
    }
}
/* --full undoes a plan's shrink, as it does in a framework's file; who says another one gets it. */
static void test_full(void **state) {
    (void)state;
    static const char *const rows[][3] = {{"shapes", "--format", "csv"},
                                          {"params", "--format", "csv"},
                                          {"comms", "--format", "csv"},
                                          {"draw", "--view", "block"},
                                          {"draw", "--view", "memory"}};
    const char *const plans[] = {"plans/05-llama3-8b-tp4-sp.yaml", "plans/01-column-row-mlp.yaml",
                                 put("bare.yaml", "model: llama3-8b\nmesh: {tp: 2}\n")};
    expect_code(RUN("check", plans[1], "--full", "--fail-on", "note"), 0, "ok", "");
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        for (size_t k = 0; k < sizeof plans / sizeof *plans; k++) {
            const char *const *w = rows[i], *plan = plans[k];
            Ran own = RUN(w[0], plan, w[1], w[2]), full = RUN(w[0], plan, w[1], w[2], "--full"),
                whole = RUN(w[0], plan, w[1], w[2], "--set", "model.shrink=1"),
                said = RUN(w[0], plan, w[1], w[2], "--set", "model.shrink=8", "--full"),
                eight = RUN(w[0], plan, w[1], w[2], "--set", "model.shrink=8");
            assert_int_equal(full.code, 0);
            assert_string_equal(full.err, own.err);
            assert_string_equal(full.out, whole.out);
            assert_string_equal(said.out, eight.out);
            assert_int_equal(strcmp(full.out, own.out) != 0, k == 0);
            assert_null(strstr(full.err, "--set"));
            done(own), done(full), done(whole), done(said), done(eight);
        }
}
/* The verdict of diff is English: what is counted in KiB is less, and no "less bytes". */
static void test_diff_words(void **state) {
    (void)state;
    const char *four = "plans/04-llama3-8b-tp4.yaml", *two = "plans/03-llama3-8b-tp2.yaml";
    Ran less = RUN("diff", four, two);
    assert_null(strstr(less.out, "bytes sent"));
    expect_code(less, 1, "B less sent, ", "");
    expect_code(RUN("diff", two, four), 1, "B more sent, ", "");
    /* pictures beside a plan without a backward pass have the forward one only */
    expect_code(RUN("diff", "plans/07-llama3-8b-cp4.yaml", "plans/41-llama3-8b-ring4-zigzag.yaml"),
                1, " more sent in the whole step, ", "");
    /* what micro-batches send is counted of all: half as many, twice as large, send as much */
    size_t size;
    const char *eight = "plans/45-llama3-8b-pp4-1f1b.yaml", *key = "microbatches: 8";
    char *text = file_read(arena, diags_new(arena), eight, 1 << 20, (Loc){0}, &size),
         *at = strstr(text, key);
    assert_non_null(at);
    at[strlen(key) - 1] = '4';
    expect_code(RUN("diff", eight, put("four.yaml", text)), 1,
                "of a rank: the same bytes sent in the whole step, ", "");
}
/* What says how a plan is run changes nothing in a trace: it is refused, not dropped in silence. */
static void test_idle_options(void **state) {
    (void)state;
    const char *plan = put("idle.yaml", "model: llama3-8b\nmesh: {tp: 2}\n"), *t = in("idle.jsonl"),
               *out = in("idle.svg");
    expect_code(RUN("params", plan, "--trace", t), 0, NULL, "");
    static const char *const options[][2] = {
        {"--set", "mesh.tp=4"},  {"--fault", "no_such"}, {"--model", "gpt2"},  {"--mesh", "tp=4"},
        {"--args", "TP=4"},      {"--tp", "4"},          {"--config", "none"}, {"--ep", "2"},
        {"--hf-version", "5.0"}, {"--tp-plan", "none"},  {"--full", "-v"}};
    for (size_t i = 0; i < sizeof options / sizeof *options; i++) {
        const char *o = options[i][0], *v = options[i][1],
                   *said = arena_printf(arena, "%s says", o);
        const char *way = arena_printf(arena, "give the plan, or leave %s out", o);
        Ran rows[] = {RUN("shapes", t, o, v, "--format", "json"),
                      RUN("params", t, o, v, "--format", "jsonl"),
                      RUN("comms", t, o, v),
                      RUN("comms", t, o, v, "--pairs"),
                      RUN("explain", t, "layers.0.attention.wo", o, v),
                      RUN("draw", t, "--view", "block", "-o", out, o, v),
                      RUN("draw", t, "--view", "timeline", "--format", "json", o, v),
                      RUN("diff", t, t, o, v)};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            assert_string_equal(rows[k].out, "");
            if (!strstr(rows[k].err, way)) fail_msg("%zu %s: %s", k, o, rows[k].err);
            expect_code(rows[k], 2, NULL, said);
        }
        expect_code(RUN("times", t, o, v), 2, NULL, said);
    }
    assert_int_not_equal(access(out, F_OK), 0);
    /* a trace is modelled anew where its times are the question, and nowhere else */
    expect_code(RUN("times", t, "--hardware", "h200-sxm"), 0, NULL, "");
    expect_code(RUN("draw", t, "--view", "timeline", "-o", out, "--hardware", "h200-sxm"), 2, NULL,
                "--hardware says");
    expect_code(RUN("draw", t, "--view", "errors", "-o", out, "--seed", "7"), 2, NULL,
                "--seed says");
    expect_code(RUN("comms", t, "--dump", "lower"), 2, NULL, "--dump says");
    /* beside a trace they are for the plan */
    expect_code(RUN("diff", t, plan, "--set", "mesh.tp=4"), 1, "mesh", "");
    expect_code(RUN("diff", plan, t, "--set", "mesh.tp=2"), 0, "no difference", "");
}
/* What fills in a framework's own file changes nothing in a plan, whatever the command: each option
 * that says so in its help is refused beside plans, and taken where one of the files is another's.
 */
static void test_idle_beside_plans(void **state) {
    (void)state;
    const char *plan = put("idle.yaml", "model: llama3-8b\nmesh: {tp: 2}\n"), *out = in("idle.svg"),
               *t = in("idle.jsonl"), *mesh = "tp=2";
    const char *py =
        put("plan.py", "parallelize_module(model, tp_mesh, {\"output\": ColwiseParallel()})\n");
    expect_code(RUN("params", plan, "--trace", t), 0, NULL, "");
    int n, seen = 0;
    const OptionRow *o = options_rows(arena, &n);
    for (int i = 0; i < n; i++) {
        if (strncmp(o[i].what, "of a ", 5) || !(o[i].commands & C_EXPORT)) continue;
        const char *value = !o[i].arg                    ? ""
                            : !strcmp(o[i].arg, "N")     ? "=4"
                            : !strcmp(o[i].name, "mesh") ? "=tp=4"
                                                         : "=none";
        const char *word = arena_printf(arena, "--%s%s", o[i].name, value),
                   *said = arena_printf(arena, "--%s is for a framework's own file", o[i].name);
        Ran rows[] = {RUN("run", plan, "-o", in("out"), word),
                      RUN("check", plan, plan, word),
                      RUN("check", dir, "--static", word),
                      RUN("shapes", plan, word),
                      RUN("params", plan, word),
                      RUN("comms", plan, word),
                      RUN("times", plan, word),
                      RUN("explain", plan, "wo", word),
                      RUN("draw", plan, "-o", out, word),
                      RUN("diff", plan, t, word),
                      RUN("export", plan, "--to", "torch", word)};
        for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
            assert_string_equal(rows[k].out, "");
            expect_code(rows[k], 2, NULL, said);
        }
        seen++;
    }
    assert_int_equal(seen, 10);
    assert_int_not_equal(access(out, F_OK), 0);
    Ran r = RUN("diff", plan, py, "--model", "llama3-8b", "--mesh", mesh);
    assert_null(strstr(r.err, "framework's own"));
    done(r);
}
/* An option that files of this framework do not read is refused beside them, by `check` and by
 * `import`, and does nothing nowhere; beside one that reads it it stays. */
static void test_idle_beside_frameworks(void **state) {
    (void)state;
    static const char *const files[][4] = {
        {"torch", "idle.py",
         "parallelize_module(model, tp_mesh, {\"output\": ColwiseParallel()})\n",
         " args loss-parallel "},
        {"torch", "idle_torch.json",
         "{\"mesh\": {\"shape\": [2], \"dim_names\": [\"tp\"]}, \"plan\": {}}", " loss-parallel "},
        {"torchtitan", "idle.toml",
         "[model]\nflavor = \"8B\"\n[parallelism]\ntensor_parallel_degree = 2\n", ""},
        {"megatron", "idle.sh", "torchrun p.py --tensor-model-parallel-size 2\n", " args "},
        {"jax", "idle_jax.json", "{\"layers.*.attention.wo.weight\": [\"tp\", null]}", ""},
        {"hf", "idle_hf.json", "{\"model_type\": \"llama\"}",
         " tp ep tp-plan ep-plan hf-version "}};
    static const char *const options[] = {"args=a=1",     "loss-parallel", "tp=2",           "ep=2",
                                          "tp-plan=none", "ep-plan=none",  "hf-version=4.57"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        for (size_t k = 0; k < sizeof options / sizeof *options; k++) {
            const char *path = put(files[i][1], files[i][2]), *other = put("o.py", files[0][2]),
                       *name = arena_strndup(arena, options[k], strcspn(options[k], "=")),
                       *word = arena_printf(arena, "--%s", options[k]),
                       *said = arena_printf(arena, "--%s is for ", name);
            bool read = strstr(files[i][3], arena_printf(arena, " %s ", name));
            Ran r[] = {RUN("check", path, word), RUN("import", files[i][0], path, word),
                       RUN("check", path, other, word)};
            for (int c = 0; c < 3; c++) {
                bool stays = read || (c == 2 && k < 2);
                if (!stays && r[c].code != 2)
                    fail_msg("%s beside %s: %d %s", word, path, r[c].code, r[c].out);
                bool told = strstr(r[c].err, said) && strstr(r[c].err, ", and '");
                if (told == stays && (c < 2 || i != 1))
                    fail_msg("%s beside %s: %s", word, path, r[c].err);
                done(r[c]);
            }
        }
}
/* What shows that an option does something, by command: the words beside it, the first of them the
 * plan ("uneven": mlp on 2x2 ranks that nothing divides, "training": two layers of a block that
 * trains), and the option's value. */
enum { MOST_WORDS = 8 }; /* the last is NULL */
typedef struct {
    const char *option, *value;
    int commands;
    const char *words[MOST_WORDS];
} Proof;
static const Proof proofs[] = {
    {"view", "memory", C_DRAW, {"training", "--format", "svg"}},
    {"view", "memory", C_DIFF, {"training"}},
    {"theme", "dark", C_DRAW | C_DIFF, {"training", "--view", "block", "--format", "svg"}},
    {"preset", "slide", C_DRAW | C_DIFF, {"training", "--view", "block", "--format", "svg"}},
    {"layer", "1", C_DRAW | C_DIFF, {"training", "--view", "block", "--format", "svg"}},
    {"part", "mlp", C_DRAW | C_DIFF, {"training", "--view", "block", "--format", "svg"}},
    {"pass", "forward", C_DRAW | C_DIFF, {"training", "--view", "block", "--format", "svg"}},
    {"beside", "uneven", C_DRAW, {"uneven", "--view", "errors", "--format", "svg"}},
    {"width", "300", C_DRAW | C_DIFF, {"training", "--view", "block", "-o", "@x.png"}},
    {"page", "2", C_DRAW, {"training", "--view", "shards", "--preset", "slide", "--format", "svg"}},
    {"page", "2", C_DIFF, {"training", "--view", "block", "--preset", "slide", "--format", "svg"}},
    {"build", NULL, C_DRAW, {"training", "--format", "svg"}},
    {"quiz", "shapes", C_DRAW, {"training", "--format", "svg"}},
    {"rank", "3", C_RUN, {"uneven", "--format", "text"}},
    {"rank", "3", C_SHAPES | C_PARAMS | C_COMMS | C_TIMES | C_EXPLAIN | C_DRAW, {"uneven"}},
    {"notation", "jax", C_SHAPES | C_PARAMS, {"training"}},
    {"hooks", NULL, C_EXPLAIN, {"training"}},
    {"pairs", NULL, C_COMMS, {"plans/30-mixtral-8x7b-ep-dp-cp.yaml"}},
    {"each", NULL, C_COMMS, {"plans/45-llama3-8b-pp4-1f1b.yaml"}},
    {"set", "mesh.tp=1", ~C_EXPORT, {"uneven"}},
    {"set", "expect={equivalent: maybe}", C_EXPORT, {"training"}},
    {"seed", "5", C_RUN | C_CHECK, {"uneven", "--format", "json"}},
    {"seed", "5", C_DRAW, {"uneven", "--view", "errors"}},
    {"fault", "drop-reduction", ~0, {"uneven"}},
    {"hardware", "cpu", C_RUN | C_CHECK | C_TIMES, {"uneven", "--format", "json"}},
    {"hardware", "cpu", C_DRAW | C_DIFF, {"uneven", "--view", "timeline", "--format", "svg"}},
    {"trace", "@t.trace.jsonl", ~0, {"uneven"}},
    {"save-values", "@v.safetensors", ~0, {"uneven"}},
    {"dump", "lower", ~0, {"uneven"}},
    {"sensitivity", NULL, ~0, {"uneven", "--format", "json"}},
    {"check", "quick", ~0, {"uneven", "--format", "json"}},
    {"end-to-end", NULL, ~0, {"uneven", "--check", "quick", "--format", "json"}},
    {"no-end-to-end", NULL, ~0, {"uneven", "--format", "json"}},
    {"fail-on", "note", ~0, {"uneven", "--set", "mesh.idle=2"}},
    {"exact", NULL, ~0, {"uneven"}},
    {"static", NULL, ~0, {"uneven"}},
    {"to", "hf", ~0, {"plans/16-hf-llama-tp4.yaml"}},
};
/* What cannot be shown by one plan and one process. */
static const char *const not_here[][2] = {
    {"threads", "how fast it goes; that nothing else changes: test_same_bytes"},
    {"strict", "a value between its two bounds"},
    {"update-expect", "it writes the plan: test_update_expect"},
    {"full", "test_full"},
    {"against", "another implementation's values"},
    {"against-rank", "the same"},
    {"map", "the same"},
    {"tolerance", "the same"},
    {"measured", "a run on processes"},
    {"mpi", "the same"},
    {"cuda", "the same"},
    {"sum", "the same"},
    {"deadline", "the same"},
};
static const char *operand(const char *word) {
    static const char uneven[] =
        "model: {kind: mlp, sizes: [4, 5, 3], bias: false}\nmesh: {dp: 2, tp: 2}\ndata: {rows: 3}\n"
        "plan: {net1: colwise, net2: rowwise}\n",
                      training[] =
                          "model: {preset: llama3-8b, shrink: 64, layers: 2}\nmesh: {tp: 2}\n"
                          "data: {sequence: 8}\npass: backward\nrecipe: hf-llama\n";
    if (!strcmp(word, "uneven")) return put("uneven.yaml", uneven);
    if (!strcmp(word, "training")) return put("training.yaml", training);
    return *word == '@' ? in(word + 1) : word;
}
/* Everything that the command says and writes, with the option (NULL: without it). */
static const char *effect(const Command *k, const Proof *p, const char *option, bool *refused) {
    static const char *const files[] = {"x.png", "t.trace.jsonl", "v.safetensors",
                                        "every/uneven.block.svg"};
    const char *words[24] = {k->name};
    int n = 1, at = 0;
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) unlink(in(files[i]));
    words[n++] = operand(p->words[at++]);
    const char *const *more = p->words + at;
    if (k->bit & C_DIFF)
        words[n++] = put("one.yaml", "model: {kind: mlp, sizes: [4, 5, 3]}\n"
                                     "mesh: {tp: 1}\n");
    if (k->bit & C_EXPLAIN) words[n++] = !strcmp(p->words[0], "training") ? "wo" : "net1";
    if (k->bit & C_EXPORT) words[n++] = "--to", words[n++] = "torch";
    if (k->bit & C_RUN) words[n++] = "-o", words[n++] = in("every");
    if (k->bit & C_DRAW && !p->words[1]) words[n++] = "--format", words[n++] = "svg";
    for (; *more; more++) words[n++] = operand(*more);
    if (option) words[n++] = arena_printf(arena, "--%s", option);
    if (option && p->value) words[n++] = operand(p->value);
    Ran r = run_words(words);
    if (r.code == 2) print_error("%s --%s: %s", k->name, p->option, r.err);
    *refused |= r.code == 2;
    Str s = str_new(arena);
    str_addf(&s, "%d\n%s\n%s\n", r.code, r.out, r.err);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        struct stat st;
        if (stat(in(files[i]), &st)) continue;
        str_addf(&s, "%s %lld %s\n", files[i], (long long)st.st_size,
                 text_before(files[i], ".svg") ? get(in(files[i])) : "");
    }
    done(r);
    return s.s;
}
static bool is_not_here(const char *name) {
    for (size_t i = 0; i < sizeof not_here / sizeof *not_here; i++)
        if (!strcmp(not_here[i][0], name)) return true;
    return false;
}
/* Each option that a command takes does something there: what does nothing is refused. Those that
 * all commands take and those for a framework's own file (test_idle_beside_plans) apart. */
static void test_every_option(void **state) {
    (void)state;
    int n, shown = 0, idle = 0;
    const OptionRow *o = options_rows(arena, &n);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n_cli_commands; k++) {
            const Command *c = &cli_commands[k];
            if (!(o[i].commands & c->bit) || c->bit & (C_CALIBRATE | C_IMPORT) ||
                o[i].commands & C_LIST || !strncmp(o[i].what, "of a ", 5) || is_not_here(o[i].name))
                continue;
            const Proof *p = NULL;
            for (size_t x = 0; x < sizeof proofs / sizeof *proofs; x++)
                if (!strcmp(proofs[x].option, o[i].name) && proofs[x].commands & c->bit)
                    p = &proofs[x];
            if (!p) fail_msg("--%s of `%s`: nothing shows what it does", o[i].name, c->name);
            bool refused = false;
            const char *without = effect(c, p, NULL, &refused);
            if (strcmp(without, effect(c, p, p->option, &refused)) && !refused) shown++;
            else print_error("--%s of `%s` does nothing\n", o[i].name, c->name), idle++;
        }
    assert_int_equal(idle, 0);
    assert_true(shown > 70);
}
/* Those that do nothing are refused, with what they are for. */
/* How products were held is said by every form of the report. */
static void test_how_held(void **state) {
    (void)state;
    static const char quick[] = "\"check\":\"quick\"", full[] = "\"check\":\"full\"",
                      bf16[] = "data.dtype=bf16";
    const char *plan = operand("uneven"), *out = in("how-held");
    expect_code(RUN("check", plan, "--check", "quick"), 0, "products by projections, worst", NULL);
    expect_code(RUN("check", plan, "--check", "quick", "--format", "json"), 0, quick, NULL);
    expect_code(RUN("check", plan, "--check", "auto", "--format", "json"), 0, full, NULL);
    expect_code(RUN("run", plan, "--check", "quick", "--set", bf16, "-o", out), 0,
                "nothing, the check is full", NULL);
}
/* What a projection was off by is called no difference of a number, and where it was off by nothing
 * nobody has seen that all bits are right. */
static void test_projected_differences(void **state) {
    (void)state;
    const char *plan = operand("uneven"), *out = in("projected"), *svg = in("projected.svg"),
               *integers = "data.integers=true", *trace = in("projected/uneven.trace.jsonl");
    expect_code(RUN("run", plan, "--check", "quick", "--set", integers, "-o", out), 0,
                "2 products and 1 sum over", NULL);
    expect_code(RUN("explain", trace, "net1"), 0, "off by 0 in 2 projections, bound ", NULL);
    expect_code(RUN("draw", trace, "--view", "errors", "-o", svg), 0, NULL, NULL);
    const char *text = get(svg);
    assert_non_null(strstr(text, "ones bit for bit, 0"));
    assert_non_null(strstr(text, "of 2 products and 1 sum over ranks that of their projections"));
    assert_non_null(strstr(text, "held by projections."));
    expect_code(RUN("draw", trace, "--view", "errors", "--format", "text"), 0,
                "\nnet1                                                 0 ....", NULL);
    expect_code(RUN("run", plan, "--set", integers, "-o", out), 0, NULL, NULL);
    expect_code(RUN("explain", trace, "net1"), 0, "error 0, bound 0", NULL);
    expect_code(RUN("draw", trace, "--view", "errors", "-o", svg), 0, NULL, NULL);
    assert_null(strstr(get(svg), "projection"));
}
static void test_no_use(void **state) {
    (void)state;
    const char *plan = operand("uneven"), *out = in("no-use.svg"), *word;
    static const char *const shape_only[] = {"shapes", "params", "comms", "explain", "export"};
    for (size_t i = 0; i < sizeof shape_only / sizeof *shape_only; i++) {
        expect_code(RUN(shape_only[i], plan, "--threads", "2"), 2, "", "has no option --threads");
        expect_code(RUN(shape_only[i], plan, "--seed", "2"), 2, "", "has no option --seed");
        expect_code(RUN(shape_only[i], plan, "--hardware", "cpu"), 2, "", "no option --hardware");
    }
    int n;
    const RenderView *v = render_views(&n);
    for (int i = 0; i < n; i++) {
        bool run = v[i].asks & (VIEW_RUN | VIEW_SAMPLES), timed = v[i].asks & VIEW_TIMES;
        static const char *const rows[][2] = {
            {"--threads", "1"}, {"--seed", "5"}, {"--hardware", "cpu"}};
        for (int k = 0; k < 3; k++) {
            if (k < 2 ? run : timed) continue;
            word = arena_printf(arena, "%s belongs to the view ", rows[k][0]);
            expect_code(RUN("draw", plan, "--view", v[i].name, "-o", out, rows[k][0], rows[k][1]),
                        2, "", word);
        }
    }
    expect_code(RUN("diff", plan, plan, "--hardware", "cpu"), 2, "", "only with --view");
    expect_code(RUN("diff", plan, plan, "--view", "block", "-o", out, "--hardware", "cpu"), 2, "",
                "--hardware belongs to the view timeline");
    expect_code(RUN("diff", plan, plan, "--view", "sweep", "-o", out), 2, "", "is of one plan");
    assert_int_not_equal(access(out, F_OK), 0);
    expect_code(RUN("check", plan, "--static", "--threads", "2"), 2, "", "executes nothing");
    expect_code(RUN("check", plan, "--static", "--seed", "2"), 2, "", "executes nothing");
    expect_code(RUN("check", plan, "--end-to-end"), 2, "", "--end-to-end is for --check quick");
    static const char *const unsharded[][2] = {
        {"--against", "x"}, {"--save-values", "x"}, {"--sensitivity", NULL}};
    for (size_t i = 0; i < sizeof unsharded / sizeof *unsharded; i++)
        expect_code(RUN("check", plan, "--no-end-to-end", unsharded[i][0], unsharded[i][1]), 2, "",
                    "wants the unsharded run, --no-end-to-end leaves it out");
    static const char *const words[] = {"colwise", "E0402", "B"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        expect_code(RUN("explain", words[i], "--rank", "1"), 2, "", "--rank is for a plan");
        expect_code(RUN("explain", words[i], "--trace", out), 2, "", "--trace is for a plan");
        expect_code(RUN("explain", words[i], "--set", "mesh.tp=2"), 2, "", "--set is for a plan");
    }
}
/* Where groups are unequal, each class of ranks says what it sends itself. */
static void test_unequal_times(void **state) {
    (void)state;
    const char *plan =
        put("unequal.yaml", "model: {kind: mlp, sizes: [4, 8, 4]}\nmesh: {dp: 2, tp: 2}\n"
                            "data: {rows: 3}\nplan: {net1: colwise, net2: rowwise}\n");
    Ran r = RUN("draw", plan, "--view", "timeline", "--format", "chrome");
    assert_non_null(strstr(r.out, "\"bytes_sent\":32,")); /* 2 rows of 4 numbers, and 1 */
    expect_code(r, 0, "\"bytes_sent\":16,", NULL);
    r = RUN("draw", plan, "--view", "timeline", "--format", "svg");
    assert_non_null(strstr(r.out, "sends 32 B")); /* of ranks 0 and 1; 2 and 3 take as long */
    assert_null(strstr(r.out, "sends 16 B"));
    expect_code(r, 0, "ranks 0,1, as long on 2,3", NULL);
}
/* A structure that is wrong where no number shows it: every format says so, none calls it a wrong
 * value, and --fail-on decides. */
static void test_structure(void **state) {
    (void)state;
    double zero[32] = {0}, one[32];
    for (int i = 0; i < 32; i++) one[i] = i < 16 ? i + 1 : 0;
    NewTensor t[] = {{.name = "net1.weight", .nd = 2, .shape = {4, 4}, .x = one},
                     {.name = "net2.weight", .nd = 2, .shape = {4, 4}, .x = zero}};
    const char *text =
        arena_printf(arena,
                     "model: {kind: mlp, sizes: [4, 4, 4], bias: false, weights: {file: %s}}\n"
                     "data: {rows: 2, dtype: f64}\nmesh: {tp: 2}\nplan: {net1: colwise, net2: "
                     "rowwise}\nfaults: [{at: all_reduce of net2, do: drop}]\n",
                     write_tensors(arena, "structure.safetensors", t, 2));
    const char *plan = put("structure.yaml", text);
    /* an expectation that does not speak of a warning does not hide it, one that lists it does */
    Ran r =
        RUN("check", put("says.yaml", arena_printf(arena, "%sexpect: {equivalent: true}\n", text)));
    expect_code(r, 0, "equivalent, but", "[W0401]");
    r = RUN("check", put("lists.yaml", arena_printf(arena,
                                                    "%sexpect: {equivalent: true, diagnostics: "
                                                    "[W0401]}\n",
                                                    text)));
    assert_null(strstr(r.err, "W0401"));
    expect_code(r, 0, "equivalent, but", NULL);
    expect_code(RUN("check", plan), 0, "equivalent, but the structure is wrong at 1 step, ", NULL);
    expect_code(RUN("check", plan, "--fail-on", "warning"), 1, "the structure is wrong", NULL);
    expect_code(RUN("check", plan, "--format", "json"), 0, "\"structure\":1", NULL);
    expect_code(RUN("check", plan, "--format", "json"), 0, "\"fail\":0,", NULL);
    expect_code(RUN("check", plan, "--format", "csv"), 0, ",0,,,,,1", NULL);
    expect_code(RUN("check", plan, "--format", "github"), 0, "::warning file=", NULL);
    expect_code(RUN("check", plan, "--format", "sarif"), 0, "\"level\":\"warning\"", NULL);
    expect_code(RUN("run", plan, "-o", in("s")), 0,
                "structure       wrong at 1 step, and no number of this run shows it\n", NULL);
    expect_code(RUN("run", plan, "-o", in("s"), "--format", "json"), 0, "\"structure\":1", NULL);
    /* moves that nobody asks for are counted where sums are */
    const char *silent =
        put("silent.yaml", "model: {kind: mlp, sizes: [4, 4, 4], bias: true}\n"
                           "data: {rows: 2}\nmesh: {tp: 2}\nplan: {net1: colwise}\n");
    expect_code(RUN("check", silent, "--format", "json"), 0, "\"unasked\":[\"", NULL);
}
static void test_run(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp), *out = in("out/deep");
    Ran r = RUN("run", plan, "-o", out, "--color", "never");
    assert_non_null(strstr(r.out, "small: equivalent to the unsharded model\n"));
    assert_non_null(strstr(r.out, "1 × all_reduce(tp)"));
    assert_non_null(strstr(r.out, "out/deep/small.trace.jsonl"));
    assert_null(strchr(r.out, '\033'));
    done(r);
    Trace *t = trace_read(arena, diags_new(arena), "t", get(in("out/deep/small.trace.jsonl")),
                          strlen(get(in("out/deep/small.trace.jsonl"))));
    assert_non_null(t);
    assert_true(t->executed && t->n_events > 0);
    assert_string_equal(t->verdict, "equivalent");
    r = RUN("run", plan, "-o", out, "--color=always");
    assert_non_null(strstr(r.out, "\033[1;32mequivalent\033[0m"));
    done(r);
    r = RUN("run", plan, "-o", out, "--format", "json");
    const char *why;
    int line, col;
    Json *j = json_parse(arena, r.out, strlen(r.out), &why, &line, &col);
    assert_string_equal(json_get(j, "verdict")->s, "equivalent");
    assert_int_equal(json_get(j, "exit")->i, 0);
    done(r);
    expect_code(RUN("run", plan, "-o", plan), 2, "", "is the name of a file [E0212]");
    expect_code(RUN("run", plan, "-o", arena_printf(arena, "%s/x", plan)), 4, "",
                "name another folder with -o; nothing was run");
    if (access("/proc", F_OK) == 0)
        expect_code(RUN("run", plan, "-o", "/proc/x"), 4, "", "'/proc/x' cannot be made");
    expect_code(RUN("run", in("none.yaml"), "-o", in("new/a/b")), 3, "", "E0101");
    assert_int_equal(access(in("new"), F_OK), -1); /* no empty folders stay */
    assert_int_equal(mkdir(in("kept"), 0777), 0);
    expect_code(RUN("run", in("none.yaml"), "-o", in("kept/a")), 3, "", "E0101");
    assert_int_equal(access(in("kept/a"), F_OK), -1);
    assert_int_equal(access(in("kept"), F_OK), 0);
    expect_code(RUN("run", plan, "-q", "-o", out), 0, "", NULL);
    setenv("NO_COLOR", "1", 1);
    setenv("FORCE_COLOR", "1", 1);
    r = RUN("run", plan, "-o", out);
    assert_null(strchr(r.out, '\033'));
    done(r);
    unsetenv("NO_COLOR");
    r = RUN("run", plan, "-o", out);
    assert_non_null(strchr(r.out, '\033'));
    done(r);
    unsetenv("FORCE_COLOR");
}
/* Same plan, same seed: same bytes, whatever the threads; another seed: others. */
static void test_same_bytes(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp);
    Ran a = RUN("run", plan, "-o", in("out"), "--trace", in("same.jsonl"), "--format", "jsonl",
                "--threads", "1");
    Ran b = RUN("run", plan, "-o", in("out"), "--format", "jsonl", "--threads", "2");
    Ran c = RUN("run", plan, "-o", in("out"), "--format", "jsonl", "--seed", "9");
    assert_string_equal(a.out, b.out);
    assert_string_equal(a.out, get(in("same.jsonl"))); /* every record of the trace */
    assert_string_not_equal(a.out, c.out);
    done(a);
    done(b);
    done(c);
}
static void test_update_expect(void **state) {
    (void)state;
    const char *plan = put("u.yaml", mlp);
    expect_code(RUN("check", plan, "--update-expect"), 0, "ok", NULL);
    const char *text = get(plan);
    assert_int_equal(strncmp(text, mlp, strlen(mlp)), 0); /* all else stays */
    assert_non_null(strstr(text, "expect:\n  equivalent: true\n"));
    assert_non_null(strstr(text, "forward: {all_reduce(tp): 1}"));
    expect_code(RUN("check", plan, "--update-expect"), 0, "ok", NULL);
    assert_string_equal(text, get(plan));
    expect_code(RUN("check", plan, "--fault", "nonsense"), 2, NULL, "E0212");
    plan = put("v.yaml", arena_printf(arena,
                                      "expect:\n  equivalent: true\n  collectives: {forward: "
                                      "{all_gather: 0}}\n%sfaults: [{at: net2, do: drop}]\n",
                                      mlp));
    expect_code(RUN("check", plan), 1, NULL, "E0505");
    expect_code(RUN("check", plan, "--update-expect"), 0, "as expected", NULL);
    assert_non_null(strstr(get(plan), "equivalent: false\n  first_wrong: net2\n"));
    assert_non_null(strstr(get(plan), "all_gather: 0"));
    const char *flow =
        put("f.yaml", "{model: {kind: mlp, sizes: [2, 2]}, mesh: {tp: 2}, data: {rows: 2}}\n");
    expect_code(RUN("check", flow, "--update-expect"), 3, NULL, "cannot be rewritten");
    assert_non_null(strstr(get(flow), "{model: {kind: mlp, sizes: [2, 2]}, mesh"));
}
/* A file that is not the plan somebody meant says what it is, or what was meant. */
static void test_what_was_meant(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    expect_code(RUN("shapes", "plans"), 3, "", "`check` takes folders");
    Ran r = RUN("check", "plans/hardware/h100-sxm.yaml");
    assert_int_equal(r.code, 3);
    assert_non_null(strstr(r.err, "this is a hardware profile, not a plan"));
    assert_null(strstr(r.err, "unknown key"));
    done(r);
    const char *quotes = put("quotes.yaml", "model: {kind: mlp, sizes: [4, 8, 2]}\nmesh: {tp: 2}\n"
                                            "plan: {net1: \xe2\x80\x98"
                                            "colwise\xe2\x80\x99}\n");
    expect_code(RUN("check", quotes), 3, "FAIL", "these quotes are typographic");
    const char *gpt =
        put("gpt.yaml", "model: {config: {model_type: bert, n_embd: 768, n_layer: 12}}\n"
                        "mesh: {tp: 2}\n");
    r = RUN("check", gpt);
    assert_int_equal(r.code, 3);
    assert_non_null(strstr(r.err, "'model_type' says 'bert'"));
    assert_null(strstr(r.err, "'n_embd'"));
    done(r);
}
/* What cannot be executed here is held by rules and structure and says so, unless a run was asked
 * for: by an option, or by what the plan expects. */
static void test_static_by_itself(void **state) {
    (void)state;
    static const char bare[] = "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\nmesh: {tp: 2}\n"
                               "plan: {net1: colwise, net2: rowwise}\n";
    const char *const plans[] = {
        put("big.yaml", arena_printf(arena, "%sdata: {rows: 1000000000000}\n", bare)),
        put("half.yaml",
            arena_printf(arena, "%sdata: {dtype: bf16, rows: 1000000000000}\n", bare))};
    static const char *const codes[] = {"E0701", "E0701"};
    for (int i = 0; i < 2; i++) {
        expect_code(RUN("check", plans[i]), 0, "not executed (1 note", "");
        expect_code(RUN("check", plans[i], "-v"), 0, "rules and structure hold", "[N0014]");
        expect_code(RUN("check", plans[i], "--fail-on", "note"), 1, "FAIL", "[N0014]");
        expect_code(RUN("check", plans[i], "--strict"), 5, "FAIL", codes[i]);
        expect_code(RUN("check", plans[i], "--set", "expect={equivalent: true}"), 5, "FAIL",
                    codes[i]);
    }
}
/* What an SVG leaves out is said on stderr, with the way to it. */
static void test_pages_left_out(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
#define SLIDES(...)                                                                                \
    RUN("draw", "plans/09-llama3-8b-dp2-cp2-tp2.yaml", "--view", "shards", "--preset", "slide",    \
        "--format", __VA_ARGS__)
    expect_code(SLIDES("svg"), 0, "page 1 of 4", "this is page 1 of 4; --page 2 to 4 draw");
    Ran quiet[] = {SLIDES("svg", "-q"), SLIDES("svg", "--page", "2"), SLIDES("pdf"),
                   RUN("draw", "plans/01-column-row-mlp.yaml", "--format", "svg")};
    for (size_t i = 0; i < sizeof quiet / sizeof *quiet; i++) {
        assert_int_equal(quiet[i].code, 0);
        assert_string_equal(quiet[i].err, "");
        done(quiet[i]);
    }
#undef SLIDES
}
/* Pages one by one, and two plans in one figure with ids of their own. */
static void test_pages_and_pairs(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    const char *plan = "plans/09-llama3-8b-dp2-cp2-tp2.yaml",
               *other = "plans/05-llama3-8b-tp4-sp.yaml";
    Ran one = RUN("draw", plan, "--view", "shards", "--preset", "slide", "--format", "svg"),
        two = RUN("draw", plan, "--view", "shards", "--preset", "slide", "--format", "svg",
                  "--page", "2");
    assert_non_null(strstr(one.out, "page 1 of 4"));
    assert_non_null(strstr(two.out, "page 2 of 4"));
    assert_null(strstr(one.out, "a PDF has them all"));
    done(one);
    done(two);
    expect_code(RUN("draw", plan, "--view", "shards", "--preset", "slide", "--format", "svg",
                    "--page", "5"),
                2, "", "has 4 pages here, no page 5");
    expect_code(RUN("draw", plan, "--page", "1"), 2, "", "--page is for pictures");
    expect_code(RUN("draw", plan, "--format", "svg", "--page", "0"), 2, "", "wants 1 or more");
    Ran both = RUN("diff", plan, other, "--view", "block", "--format", "svg");
    assert_int_equal(both.code, 1);
    assert_non_null(strstr(both.out, "plan llama3-8b-dp2-cp2-tp2"));
    assert_non_null(strstr(both.out, "plan llama3-8b-tp4-sp"));
    assert_non_null(strstr(both.out, "-second-"));
    done(both);
    expect_code(RUN("diff", plan, other, "--view", "block"), 1, "llama3-8b-tp4-sp", "");
    expect_code(RUN("diff", plan, other, "--format", "svg"), 2, "", "wants --view");
    expect_code(RUN("diff", plan, other, "--view", "block", "--format", "json"), 2, "",
                "a picture");
    expect_code(RUN("diff", plan, other, "--theme", "dark"), 2, "", "only with --view");
    expect_code(RUN("diff", plan, other, "--view", "errors"), 2, "", "is of one plan");
    /* pages of both, side by side; where one figure has more, they stand alone */
#define BOTH(...) RUN("diff", other, plan, "--view", "shards", "--format", "svg", __VA_ARGS__)
    both = BOTH("--preset", "slide", "--page", "2");
    assert_int_equal(both.code, 1);
    assert_non_null(strstr(both.out, "page 2 of 5")); /* the key of what differs takes a line */
    assert_non_null(strstr(both.out, "plan llama3-8b-dp2-cp2-tp2"));
    assert_non_null(strstr(both.out, "plan llama3-8b-tp4-sp"));
    assert_non_null(strstr(both.out, "Inputs and activations"));
    done(both);
    both = RUN("diff", "plans/01-column-row-mlp.yaml", plan, "--view", "block", "--format", "svg",
               "--preset", "slide", "--page", "2");
    assert_int_equal(both.code, 1);
    assert_non_null(strstr(both.out, "plan llama3-8b-dp2-cp2-tp2"));
    assert_null(strstr(both.out, "plan column-row-mlp"));
    done(both);
    expect_code(BOTH("--preset", "slide", "--page", "6"), 2, "", "has 5 pages here, no page 6");
    expect_code(BOTH("--page", "2"), 2, "", "has 1 page here, no page 2");
    both = BOTH("--preset", "a4", "--page", "2"); /* a sheet for each, in turn */
    assert_non_null(strstr(both.out, "width=\"841.89"));
    assert_null(strstr(both.out, "-second-"));
    assert_non_null(strstr(both.out, "B: plan llama3-8b-dp2-cp2-tp2"));
    done(both);
    expect_code(RUN("diff", plan, other, "--page", "1"), 2, "", "only with --view");
#undef BOTH
}
/* Bytes of rows that only a run knows are said to be expected, in the report as in `comms`. */
static void test_rows_are_expected(void **state) {
    (void)state;
    if (access("plans", F_OK) != 0) skip();
    const char *note = "rows of experts: as if all were asked for as often";
    expect_code(RUN("run", "plans/36-mixtral-8x7b-capacity.yaml", "-o", in("rows")), 0, note, "");
    Ran dense = RUN("run", "plans/01-column-row-mlp.yaml", "-o", in("dense"));
    assert_null(strstr(dense.out, "rows of experts"));
    done(dense);
}
static void test_list(void **state) {
    (void)state;
    static const struct {
        const char *what, *has;
    } lists[] = {{"models", "llama3-8b"}, {"styles", "colwise"},       {"ops", "rmsnorm"},
                 {"views", "block"},      {"names", "megatron"},       {"hardware", "h100-sxm"},
                 {"codes", "E0403"},      {"faults", "drop-reduction"}};
    for (size_t i = 0; i < sizeof lists / sizeof *lists; i++) {
        expect_code(RUN("list", lists[i].what), 0, lists[i].has, "");
        expect_code(RUN("list", lists[i].what, "--format", "jsonl"), 0,
                    "{\"schema\":\"shardproof/1\",\"type\":\"", "");
    }
}
/* Rules of ops that have none of their own are shown as they typically are, and can be read. */
static void test_list_ops(void **state) {
    (void)state;
    expect_code(RUN("list", "ops"), 0, "x head size", NULL);
    Ran r = RUN("list", "ops", "--format", "json");
    const char *why;
    int line, col;
    const Json *all = json_get(json_parse(arena, r.out, strlen(r.out), &why, &line, &col), "rows");
    assert_int_equal(all->n, n_ops);
    for (int i = 0; i < all->n; i++) {
        const char *name = json_get(all->item[i], "name")->s;
        const Json *rule = json_get(all->item[i], "rule");
        bool own = op_find(name)->rule != NULL;
        assert_string_equal(json_get(all->item[i], "by")->s, own ? "op" : "node");
        Rule parsed;
        if (rule->kind != JSON_STRING || !rule_parse(rule->s, &parsed, &why, &col))
            fail_msg("%s: no rule", name);
    }
    done(r);
}
static void test_draw(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp), *svg = in("b.svg");
    expect_code(RUN("draw", plan, "--view", "blok"), 2, NULL, "did you mean 'block'?");
    expect_code(RUN("draw", plan, "--view", "xyzzy"), 2, NULL, "list views");
    expect_code(RUN("draw", plan, "-o", in("b.jpg")), 2, NULL, "does not say a format");
    expect_code(RUN("draw", plan, "-o", svg), 0, "", NULL);
    assert_non_null(strstr(get(svg), "<svg"));
    expect_code(RUN("draw", plan, "--format", "svg"), 0, "<svg", NULL);
    expect_code(RUN("draw", plan, "-o", plan, "--format", "svg"), 2, NULL, "also an input");
    /* a picture of a trace is the picture of its plan */
    const char *trace = in("d.jsonl");
    expect_code(RUN("params", plan, "--trace", trace), 0, NULL, NULL);
    Ran a = RUN("draw", plan, "--format", "svg"), b = RUN("draw", trace, "--format", "svg");
    assert_string_equal(a.out, b.out);
    done(a);
    done(b);
}
/* The extension chooses the format. */
static void test_draw_formats(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp);
    static const struct {
        const char *name, *head;
    } f[] = {{"f.svg", "<?xml"},
             {"f.png", "\x89PNG"},
             {"f.pdf", "%PDF-1"},
             {"f.txt", "shapes checked"},
             {"f.json", "{\"schema\":\"shardproof/1\",\"command\":\"draw\""}};
    for (size_t i = 0; i < sizeof f / sizeof *f; i++) {
        const char *path = in(f[i].name);
        expect_code(RUN("draw", plan, "--hardware", "h100-sxm", "--view", "timeline", "-o", path),
                    0, "", NULL);
        if (i == 3) assert_non_null(strstr(get(path), f[i].head));
        else assert_memory_equal(get(path), f[i].head, strlen(f[i].head));
    }
    /* --format wins over the name */
    expect_code(RUN("draw", plan, "--format", "svg", "-o", in("odd.name")), 0, "", NULL);
    /* chrome is of one view: another that was named is not written as it */
    expect_code(RUN("draw", plan, "--view", "memory", "--format", "chrome", "-o", in("m.json")), 2,
                "", "view 'memory' has no Chrome trace, these have: timeline");
    expect_code(RUN("draw", plan, "-o", in("m.json")), 2, "",
                "view 'block' has no JSON, these have: timeline, memory, pipeline, sweep");
    expect_code(RUN("draw", plan, "--view", "memory", "--format", "json", "--theme", "dark"), 2, "",
                "--theme is for pictures, and this is json");
    assert_int_equal(access(in("m.json"), F_OK), -1);
    expect_code(RUN("draw", plan, "--view", "timeline", "-o", in("t.json")), 0, "", NULL);
    assert_memory_equal(get(in("odd.name")), "<?xml", 5);
}
/* Other schedules of the same plan beside its own; another plan must have one. */
static void test_schedules_beside(void **state) {
    (void)state;
    const char *staged = "plans/45-llama3-8b-pp4-1f1b.yaml";
    expect_code(RUN("draw", staged, "--view", "pipeline", "--beside", "gpipe,zb-h1"), 0,
                "= (p-1)(F+B) ", NULL);
    expect_code(RUN("draw", staged, "--view", "pipeline", "--beside", "gpip"), 2, NULL, "E0206");
    expect_code(RUN("draw", staged, "--view", "pipeline", "--beside", "gpipe,interleaved"), 2, NULL,
                "--beside:1:1: error: 8 stages for 4 layers [E0310]\n  interleaved\n  ^");
    expect_code(
        RUN("draw", staged, "--view", "pipeline", "--beside", "plans/03-llama3-8b-tp2.yaml"), 3,
        NULL, "E0211");
    /* one that comes to no end is told, and drawn beside the others */
    put("stuck.csv", "0F0,0F1,0B0,0B1\n1B0,1F0,1F1,1B1\n");
    const char *stuck =
        put("stuck.yaml", "model: {preset: llama3-8b, shrink: 64, layers: 2}\nmesh: {pp: 2}\n"
                          "data: {batch: 2, sequence: 8}\npass: backward\npipeline: {file: "
                          "stuck.csv, stage_to_rank: [0, 1], microbatches: 2}\n");
    expect_code(RUN("draw", staged, "--view", "pipeline", "--beside", stuck), 3,
                "stuck.csv comes to no end: 2 of 2 ranks stand still", "E0311");
    expect_code(RUN("draw", staged, "--view", "pipeline", "--beside", stuck, "--format", "json"), 3,
                "{\"rank\":1,\"action\":\"1B0\",\"waits\":\"1F0 on rank 1", "E0311");
    expect_code(RUN("draw", stuck, "--view", "pipeline", "--format", "json"), 3,
                "\"idle\":null,\"idle_time\":null", NULL);
}
/* Options are taken where they mean something, and refused with a reason where they do not. */
static void test_draw_options(void **state) {
    (void)state;
    static const char experts[] =
        "model: {preset: mixtral-8x7b, layers: 1, shrink: 64, parts: [blocks]}\n"
        "data: {batch: 2, sequence: 4}\nmesh: {ep: 2}\ngroups: {dp: ep}\nnames: torchtitan\n"
        "plan:\n  layers.*.moe.experts: expert_parallel\n";
    const char *good = put("good.yaml", mlp), *moe = put("moe.yaml", experts), *svg = in("o.svg");
    static const char *const option[] = {"--rank", "--layer", "--part", "--pass"};
    static const char *const value[] = {"1", "0", "mlp", "forward"};
    static const struct {
        const char *view, *takes; /* r: --rank, l: --layer, a: --part, p: --pass */
    } v[] = {{"block", "rlap"}, {"timeline", "r"}, {"overview", "rp"},   {"shards", "rla"},
             {"memory", "r"},   {"errors", ""},    {"storyboard", "ra"}, {"mesh", "r"},
             {"routing", "rl"}, {"pipeline", ""},  {"roofline", "r"},    {"sweep", ""}};
    int n;
    render_views(&n);
    assert_int_equal(n, sizeof v / sizeof *v);
    for (size_t i = 0; i < sizeof v / sizeof *v; i++)
        for (int k = 0; k < 4; k++) {
            bool takes = strchr(v[i].takes, "rlap"[k]) != NULL;
            const char *arg = k != 2                             ? value[k]
                              : !strcmp(v[i].view, "storyboard") ? "all-reduce"
                              : !strcmp(v[i].view, "shards")     ? "net1"
                                                                 : value[k];
            const char *plan = strcmp(v[i].view, "routing") ? good : moe;
            Ran r = RUN("draw", plan, "--view", v[i].view, option[k], arg, "-o", svg);
            if (r.code != (takes ? 0 : 2)) print_error("%s %s\n", v[i].view, option[k]);
            const char *why =
                arena_printf(arena, "view '%s' has no use for %s: it shows", v[i].view, option[k]);
            expect_code(r, takes ? 0 : 2, "", takes ? NULL : why);
        }
    /* what an optimizer makes has the names of the plan's scheme, as gradients have */
    expect_code(RUN("explain", "plans/18-llama3-8b-backward.yaml", "output.weight.next", "--set",
                    "pass=train", "--set", "optimizer.name=sgd"),
                0, "SGD of output.weight.next", NULL);
    const char *plan = good;
    expect_code(RUN("draw", plan, "--rank", "2"), 2, NULL, "--rank 2: the mesh has 2 ranks");
    expect_code(RUN("draw", plan, "--view", "mesh", "--rank", "-1"), 2, NULL, "whole number");
    expect_code(RUN("draw", plan, "--layer", "7"), 2, NULL, "no layer 7");
    expect_code(RUN("draw", plan, "--view", "shards", "--layer", "7"), 2, NULL, "layer 7");
    expect_code(RUN("draw", plan, "--part", "moe"), 2, NULL, "no part 'moe'");
    expect_code(RUN("draw", plan, "--view", "storyboard", "--part", "x"), 2, NULL, "all_reduce");
    expect_code(RUN("draw", plan, "--view", "shards", "--part", "mlp"), 2, NULL, "net1, net2");
    expect_code(RUN("draw", plan, "--view", "mesh", "--beside", plan), 2, NULL,
                "--view errors, pipeline");
    expect_code(RUN("draw", plan, "--pass", "backwrad"), 2, NULL, "did you mean 'backward'?");
    expect_code(RUN("draw", plan, "--pass", "backward"), 3, NULL, "--set pass=backward");
    expect_code(RUN("draw", plan, "--preset", "slyde", "-o", svg), 2, NULL,
                "did you mean 'slide'?");
    expect_code(RUN("draw", plan, "--theme", "drak", "-o", svg), 2, NULL, "did you mean 'dark'?");
    expect_code(RUN("draw", plan, "--preset", "slide"), 2, NULL, "--preset is for pictures");
    expect_code(RUN("draw", plan, "--theme", "dark", "--format", "chrome"), 2, NULL,
                "this is a Chrome trace");
    expect_code(RUN("draw", plan, "--width", "400", "-o", svg), 2, NULL, "--width is for a PNG");
    expect_code(RUN("draw", plan, "--width", "40000", "-o", in("w.png")), 2, NULL, "32767");
    assert_int_not_equal(access(in("w.png"), F_OK), 0);
}
/* What cannot be read is said with line and reason; what cannot be written leaves what was there.
 */
static void test_draw_failures(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp), *trace = in("t.jsonl"), *old = put("old.svg", "mine");
    expect_code(RUN("params", plan, "--trace", trace), 0, NULL, NULL);
    const char *text = get(trace);
    size_t n = strlen(text), first = strcspn(text, "\n");
    const char *cut = put("cut.jsonl", arena_strndup(arena, text, n - 20));
    expect_code(RUN("draw", cut, "-o", old), 3, NULL, "error: not JSON");
    const char *line = arena_printf(arena, "%s:", cut);
    expect_code(RUN("draw", cut, "-o", old), 3, NULL, line);
    const char *last = text + n - 1;
    while (last > text && last[-1] != '\n') last--;
    expect_code(
        RUN("draw", put("end.jsonl", arena_strndup(arena, text, (size_t)(last - text))), "-o", old),
        3, NULL, "the trace is cut off");
    expect_code(RUN("draw", put("one.jsonl", arena_strndup(arena, text, first)), "-o", old), 3,
                NULL, "cut off");
    expect_code(
        RUN("draw", put("foreign.jsonl", "{\"schema\":\"other/3\",\"type\":\"run\"}\n"), "-o", old),
        3, NULL, "foreign.jsonl:1: error: schema \"other/3\"");
    expect_code(RUN("draw", in("none.yaml"), "-o", old), 3, NULL, "E0101");
    /* no data for a view: what to run */
    expect_code(RUN("draw", trace, "--view", "timeline", "-o", old), 3, NULL,
                "draw the plan itself");
    expect_code(RUN("draw", trace, "--view", "errors", "-o", old), 3, NULL, "run the plan");
    expect_code(RUN("draw", trace, "--format", "chrome", "-o", old), 3, NULL, "E0211");
    assert_string_equal(get(old), "mine");
    /* outputs */
    expect_code(RUN("draw", plan, "-o", dir), 4, NULL, "is a folder");
    assert_int_equal(mkdir(in("d.svg"), 0777), 0);
    expect_code(RUN("draw", plan, "-o", in("d.svg")), 4, NULL, "is a folder");
    expect_code(RUN("draw", plan, "-o", in("no/where.svg")), 4, NULL, "the folder does not exist");
    if (access("/dev/full", W_OK) == 0)
        expect_code(RUN("draw", plan, "--format", "svg", "-o", "/dev/full"), 4, NULL, "E0105");
    if (geteuid() != 0) {
        assert_int_equal(chmod(old, 0444), 0);
        expect_code(RUN("draw", plan, "-o", old), 4, NULL, "E0105");
    } else {
        print_message("left to test_outputs, which runs as nobody: a file that may not be written "
                      "(root writes everything)\n");
    }
    assert_string_equal(get(old), "mine");
    assert_int_equal(chmod(old, 0644), 0);
}
/* A PNG is not for a terminal; text is. */
static void test_draw_terminal(void **state) {
    (void)state;
    const char *plan = put("good.yaml", mlp);
    int fd = posix_openpt(O_RDWR | O_NOCTTY);
    if (fd < 0 || grantpt(fd) || unlockpt(fd)) skip();
    static const char *const format[] = {"png", "pdf", "text"};
    for (int i = 0; i < 3; i++) {
        FILE *tty = fopen(ptsname(fd), "w"), *err = tmpfile();
        assert_non_null(tty);
        assert_true(isatty(fileno(tty)));
        char *argv[] = {(char *)(uintptr_t) "shardproof", (char *)(uintptr_t) "draw",
                        (char *)(uintptr_t)plan,          (char *)(uintptr_t) "--format",
                        (char *)(uintptr_t)format[i],     (char *)(uintptr_t) "-o",
                        (char *)(uintptr_t) "-"};
        assert_int_equal(cli_main(7, argv, tty, err), i < 2 ? 2 : 0);
        assert_true(i == 2 || ftell(err) > 0);
        fclose(tty);
        fclose(err);
    }
    close(fd);
}
/* A reader that goes away ends the program quietly; a full disk does not. */
static void test_lost_output(void **state) {
    (void)state;
    char *argv[] = {(char *)(uintptr_t) "shardproof", (char *)(uintptr_t) "list",
                    (char *)(uintptr_t) "codes"};
    FILE *full = fopen("/dev/full", "w"), *err = tmpfile();
    if (full) {
        assert_int_equal(cli_main(3, argv, full, err), 4);
        fclose(full);
    }
    int fd[2];
    assert_int_equal(pipe(fd), 0);
    close(fd[0]);
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);
    FILE *gone = fdopen(fd[1], "w");
    long before = ftell(err);
    assert_int_equal(cli_main(3, argv, gone, err), 0);
    assert_int_equal(ftell(err), before);
    signal(SIGPIPE, old);
    fclose(gone);
    fclose(err);
}

static int before_all(void **state) {
    (void)state;
    unsetenv("NO_COLOR");
    unsetenv("FORCE_COLOR");
    unsetenv("CLICOLOR_FORCE");
    return 0;
}
static int after_all(void **state) {
    (void)state;
    render_cleanup();
    return 0;
}
#define TEST(f) cmocka_unit_test_setup_teardown(f, sandbox_new, sandbox_gone)
static const struct CMUnitTest tests[] = {
    TEST(test_usage),
    TEST(test_parser),
    TEST(test_manual),
    TEST(test_tables),
    TEST(test_table_width),
    TEST(test_lookup),
    TEST(test_expect),
    TEST(test_exit_codes),
    TEST(test_check),
    TEST(test_findings),
    TEST(test_show),
    TEST(test_skipped),
    TEST(test_totals_of_a_part),
    TEST(test_each_microbatch),
    TEST(test_params_of_a_rank),
    TEST(test_explain),
    TEST(test_suffixes),
    TEST(test_part_names),
    TEST(test_diff),
    TEST(test_diff_schedules),
    TEST(test_diff_settings),
    TEST(test_diff_settings_of_models),
    TEST(test_one_rank),
    TEST(test_config_defaults),
    TEST(test_full),
    TEST(test_diff_words),
    TEST(test_idle_options),
    TEST(test_idle_beside_plans),
    TEST(test_idle_beside_frameworks),
    TEST(test_every_option),
    TEST(test_how_held),
    TEST(test_projected_differences),
    TEST(test_no_use),
    TEST(test_unequal_times),
    TEST(test_structure),
    TEST(test_run),
    TEST(test_same_bytes),
    TEST(test_update_expect),
    TEST(test_what_was_meant),
    TEST(test_static_by_itself),
    TEST(test_pages_and_pairs),
    TEST(test_pages_left_out),
    TEST(test_rows_are_expected),
    TEST(test_list),
    TEST(test_draw),
    TEST(test_draw_formats),
    TEST(test_draw_options),
    TEST(test_schedules_beside),
    TEST(test_draw_failures),
    TEST(test_draw_terminal),
    TEST(test_lost_output),
    TEST(test_help_plans),
    TEST(test_narrow),
    TEST(test_80_columns),
    TEST(test_check_notes),
    TEST(test_hardware_first),
    TEST(test_claim_line),
    TEST(test_cp_line),
    TEST(test_faults),
    TEST(test_unobservable),
    TEST(test_list_ops),
    TEST(test_explain_gradient),
    TEST(test_axis_of_an_input),
    TEST(test_end_to_end_json),
    TEST(test_end_to_end_left_out),
    TEST(test_times),
    TEST(test_algorithm_bandwidth),
    TEST(test_format_by_name),
    TEST(test_folders),
    TEST(test_static),
};
int main(void) { return cmocka_run_group_tests_name("cli", tests, before_all, after_all); }
