/* Tables of many layers: for people, layers and stages that say the same are one line; what differs
 * stays; programs get every row.
 */
#include "tests/support/child.h"
#include "tests/support/support.h"
#include "base/text.h"
#include "cli/fold.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static const char model[] =
    "model: {preset: llama3-8b, layers: %s, parts: [embedding, blocks, norm, head, loss]}\n"
    "names: %s\nmesh: {dp: 2, tp: 4}\ndata: {batch: 3, sequence: 30}\n"
    "recipe: %s\npass: %s\n%s";
typedef struct {
    Arena *a;
    const char *plan;
} Fold;
static Fold fold_plan(const char *layers, const char *names, const char *recipe, const char *pass,
                      const char *more) {
    Fold f = {.a = arena_new()};
    f.plan = temp_path(f.a, "fold.yaml");
    child_write(f.plan, arena_printf(f.a, model, layers, names, recipe, pass, more));
    return f;
}
static const char *said(const Fold *f, const char *command, const char *word, const char *value) {
    const char *words[] = {command, f->plan, word, value, NULL};
    Ended e = child_run(f->a, &(Child){.words = words});
    if (e.code) print_message("%s\n", e.err);
    assert_int_equal(e.code, 0);
    return e.out;
}
static int lines_with(const char *text, const char *what) {
    int n = 0;
    for (const char *p = text; (p = strstr(p, what)); p++) n++;
    return n;
}
static const char plain[] = "torchtitan-llama3";

/* The steps that are folded are those that are not shown, and -v shows them. */
static void test_steps_are_all_told(void **state) {
    (void)state;
    static const char *const passes[] = {"forward", "backward", "train"};
    static const char *const commands[] = {"shapes", "comms"};
    for (int p = 0; p < 3; p++)
        for (int k = 0; k < 2; k++) {
            Fold f = fold_plan(
                "6", "torchtitan", plain, passes[p],
                p == 2 ? "optimizer: {name: adamw, lr: 0.1}\ndata_parallel: {mode: fsdp}\n" : "");
            const char *few = said(&f, commands[k], NULL, NULL),
                       *all = said(&f, commands[k], "-v", NULL);
            const char *csv = said(&f, commands[k], "--format", "csv");
            assert_null(strstr(all, "the same as"));
            assert_null(strstr(csv, "the same as"));
            bool *told = ARENA_ARRAY(f.a, bool, 4096);
            int folds = 0;
            for (const char *line = few; *line; line += strcspn(line, "\n") + 1) {
                long from, to, first, last, of;
                char *end;
                if (sscanf(line, "  layers %ld-%ld: the same as layer %ld (steps %ld-%ld)", &first,
                           &last, &of, &from, &to) == 5) {
                    assert_true(labs(last - first) + 1 >= 3 && labs(first - of) == 1);
                    for (long s = from; s <= to; s++) told[s] = true;
                    folds++;
                } else if ((from = strtol(line, &end, 10), end != line)) told[from] = true;
            }
            assert_true(folds >= 1 + (p > 0));
            for (const char *line = csv; (line = strstr(line, "\r\n")) && line[2]; line += 2)
                assert_true(atol(line + 2) < 0 || told[atol(line + 2)] ||
                            strstr(line, ",identity("));
            assert_true(lines_with(few, "\n") * 2 < lines_with(all, "\n"));
            assert_true(strstr(few, "layers that are alike are folded; -v shows all\n") != NULL);
            arena_free(f.a);
        }
}
/* A plan of a pipeline; its rows are many times those of one layer. */
static const char piped[] =
    "model: {preset: llama3-8b, layers: %d, shrink: 16}\nnames: torchtitan\n"
    "recipe: torchtitan-llama3\nmesh: {pp: 4, tp: %d}\ndata: {batch: 8, sequence: 32}\n"
    "pass: backward\npipeline: {schedule: %s, microbatches: 8}\n";
static Ended piped_run(Arena *a, const char *command, const char *more, const char *plan,
                       const char *other) {
    Ended e = child_run(
        a, &(Child){.words = WORDS(command, plan, more ? more : other, more ? other : NULL)});
    if (e.code > 1) fail_msg("%s", e.err);
    return e;
}
/* Micro-batches that do the same are one line; the first, which gathers, and the last, which
 * reduces, stay where they are others. */
static void test_micro_batches(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *plan = temp_path(a, "piped.yaml");
    child_write(plan, arena_printf(a, piped, 8, 2, "1f1b"));
    Ended few = piped_run(a, "comms", "--each", plan, NULL),
          all = piped_run(a, "comms", "--each", plan, "-v"),
          one = piped_run(a, "comms", NULL, plan, NULL);
    assert_non_null(strstr(few.out, "  micro-batches 1-6: the same as micro-batch 0 ("));
    assert_non_null(strstr(few.out, "micro-batches that are alike are folded; -v shows all\n"));
    assert_null(strstr(all.out, "the same as"));
    assert_true(lines_with(few.out, "\n") < 3 * lines_with(one.out, "\n"));
    assert_true(lines_with(few.out, "\n") * 3 < lines_with(all.out, "\n"));
    /* one that does otherwise stays: of DualPipe half enter at the other end */
    child_write(plan, arena_printf(a, piped, 8, 1, "dualpipe"));
    few = piped_run(a, "comms", "--each", plan, NULL);
    assert_null(strstr(few.out, "micro-batches 1-6"));
    /* without a pipeline */
    child_write(plan, "model: {preset: llama3-8b, layers: 1, shrink: 64}\nmesh: {tp: 2}\n"
                      "data: {batch: 8, sequence: 8, microbatches: 8}\npass: backward\n"
                      "recipe: torchtitan-llama3\n");
    few = piped_run(a, "comms", "--each", plan, NULL);
    assert_non_null(strstr(few.out, "the same as micro-batch "));
    arena_free(a);
}
/* Of two pipelines layers are told in the order of their numbers, and once. */
static void test_diff_of_pipelines(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *x = temp_path(a, "x.yaml"), *y = temp_path(a, "y.yaml");
    child_write(x, arena_printf(a, piped, 16, 2, "1f1b"));
    child_write(y, arena_printf(a, piped, 16, 4, "1f1b"));
    Ended e = piped_run(a, "diff", NULL, x, y);
    assert_int_equal(e.code, 1);
    assert_int_equal(lines_with(e.out, "  layers 1-15: the same as layer 0 ("), 4);
    Ended all = piped_run(a, "diff", "-v", x, y);
    const char *two = strstr(all.out, "layers.2.attention.wq"),
               *ten = strstr(all.out, "layers.10.attention.wq");
    assert_true(two && ten && two < ten);
    assert_true(lines_with(e.out, "\n") * 2 < lines_with(all.out, "\n"));
    child_write(y, "model: {preset: llama3-8b, layers: 16, shrink: 16}\nnames: torchtitan\n"
                   "recipe: torchtitan-llama3\nmesh: {pp: 4, tp: 2}\n"
                   "data: {batch: 8, sequence: 32}\npass: backward\n"
                   "pipeline: {schedule: 1f1b, microbatches: 8, "
                   "stages: [[0, 1, 2], [3, 4, 5, 6, 7], [8, 9, 10, 11], [12, 13, 14, 15]]}\n");
    e = piped_run(a, "diff", NULL, x, y); /* the stage is the difference */
    const char *row = strstr(e.out, "\nstage");
    assert_true(row && strstr(row, "layers.3 ") && strstr(row, "pp: at(0)"));
    assert_non_null(strstr(row, "pp: at(1)"));
    assert_int_equal(lines_with(e.out, "pp: at("), 2 * lines_with(e.out, "\nstage"));
    assert_non_null(strstr(e.out, "are told once; -v shows all\n"));
    all = piped_run(a, "diff", "-v", x, y);
    assert_null(strstr(all.out, "\nstage"));
    assert_true(lines_with(all.out, "pp: at(") > 100);
    /* of pipelines that have little in common a person reads a few pages, not every copy */
    child_write(y, "model: {preset: mixtral-8x7b, layers: 12, shrink: 16}\nmesh: {pp: 4, ep: 2}\n"
                   "data: {batch: 8, sequence: 32}\npass: backward\n"
                   "pipeline: {schedule: interleaved, microbatches: 8, chunks: 3}\n");
    e = piped_run(a, "diff", NULL, x, y);
    all = piped_run(a, "diff", "-v", x, y);
    assert_true(lines_with(e.out, "\n") < 300 && lines_with(all.out, "\n") > 1000);
    arena_free(a);
}
/* Writes `text`, a trace, to `path` with the first value of that name in another place. */
static void write_moved(Arena *a, const char *path, const char *text, const char *name,
                        const char *from, const char *to) {
    const char *at = strstr(text, arena_printf(a, "\"name\":\"%s\",\"pass\"", name));
    at = at ? strstr(at, from) : NULL;
    assert_non_null(at);
    child_write(path, arena_printf(a, "%.*s%s%s", (int)(at - text), text, to, at + strlen(from)));
}
/* Which number in a name is a layer's is known from the records, whatever their names are like. */
static void test_names_of_records(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *x = temp_path(a, "x.jsonl"), *plan = "plans/03-llama3-8b-tp2.yaml";
    Ended of = child_run(
        a, &(Child){.words = WORDS("shapes", plan, "--set", "model.layers=8", "--trace", x)});
    size_t n;
    const char *text = child_read(a, x, &n), *at;
    Str other = str_new(a);
    for (; (at = strstr(text, "layers.")); text = at + strlen("layers."))
        str_addf(&other, "%.*sh.", (int)(at - text), text);
    str_add(&other, text);
    child_write(x, other.s);
    Ended e = piped_run(a, "shapes", NULL, x, NULL);
    assert_int_equal(of.code, 0);
    assert_int_equal(lines_with(of.out, "  layers 1-7: the same as layer 0 ("), 1);
    assert_int_equal(lines_with(e.out, "  layers 1-7: the same as layer 0 ("), 1);
    assert_int_equal(lines_with(e.out, "\n"), lines_with(of.out, "\n"));
    arena_free(a);
}
/* A value that lies where the layer behind does in one pipeline, and with its own layer in the
 * other, is a difference that no row of a layer tells: all of these lie alike. */
static void test_diff_of_neighbours(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *x = temp_path(a, "x.jsonl"), *y = temp_path(a, "y.jsonl");
    Ended e = child_run(a, &(Child){.words = WORDS("shapes", "plans/45-llama3-8b-pp4-1f1b.yaml",
                                                   "--set", "model.layers=8", "--trace", x)});
    assert_int_equal(e.code, 0);
    size_t n;
    write_moved(a, y, child_read(a, x, &n), "layers.1.resid_attn", "at(0)", "at(1)");
    write_moved(a, y, child_read(a, y, &n), "layers.5.resid_attn", "at(2)", "at(0)");
    Ended few = piped_run(a, "diff", NULL, x, y), all = piped_run(a, "diff", "-v", x, y);
    assert_string_equal(few.out, all.out);
    assert_int_equal(lines_with(few.out, "layers.1.resid_attn"), 1);
    assert_int_equal(lines_with(few.out, "pp: at(0)) "), 1);
    assert_int_equal(lines_with(few.out, "(pp: at(1))\n"), 1);
    assert_int_equal(lines_with(few.out, "layers.5.resid_attn"), 1);
    arena_free(a);
}
/* A name comes before another by its letters, and by the values of the numbers in it. */
static void test_order(void **state) {
    (void)state;
    static const char *const names[] = {"",           "a",           "a.2",        "a.10",
                                        "a.10.b",     "grad.a",      "layers.2.w", "layers.02.w",
                                        "layers.2.x", "layers.10.a", "layerz"};
    int n = (int)(sizeof names / sizeof *names);
    for (int i = 0; i < n; i++)
        for (int k = 0; k < n; k++) {
            int is = text_order(names[i], names[k]);
            bool twins = (i == 6 && k == 7) || (i == 7 && k == 6); /* the same value */
            if (twins ? !is : (is > 0) - (is < 0) != (i > k) - (i < k))
                fail_msg("%s, %s: %d", names[i], names[k], is);
        }
}
/* Every naming scheme; one line for each layer would be the same line. */
static void test_names_of_all_schemes(void **state) {
    (void)state;
    static const char *const row[][3] = {
        {"torchtitan", plain, "layers.0.attention.wq.weight"},
        {"hf", "hf-llama", "layers.0.self_attn.q_proj.weight"},
        {"gguf", "replicated", "blk.0.attn_q.weight"},
        {"megatron", "megatron-sp", "layers.0.self_attention.linear_q.weight"}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        bool none = !strcmp(row[i][1], "replicated");
        Fold f = fold_plan("7", row[i][0], none ? "\"\"" : row[i][1], "forward", "");
        if (none)
            child_write(f.plan,
                        "model: {preset: llama3-8b, layers: 7}\nnames: gguf\nmesh: {tp: 2}\n"
                        "data: {batch: 1, sequence: 8}\nplan: {\"blk.*.attn_q\": {style: colwise, "
                        "output: replicate}}\n");
        const char *text = said(&f, "params", NULL, NULL), *shapes = said(&f, "shapes", NULL, NULL);
        assert_non_null(strstr(text, row[i][2]));
        assert_non_null(strstr(text, "\n  layers 1-6: the same as layer 0 (9 rows each)\n"));
        assert_null(strstr(text, "6.attn"));
        assert_non_null(strstr(shapes, "\n  layers 1-6: the same as layer 0 (steps "));
        assert_int_equal(lines_with(said(&f, "params", "--format", "csv"), "norm.weight"),
                         none ? 14 : 15);
        assert_non_null(strstr(said(&f, "params", "--format", "md"),
                               "| layers 1-6: the same as layer 0 (9 rows each) |  |"));
        arena_free(f.a);
    }
}
/* A layer that is placed in another way stays, and so do three that are alike where folding them
 * would save little: parameters, but not pages of steps. */
static void test_what_differs_stays(void **state) {
    (void)state;
    Fold f =
        fold_plan("12", "torchtitan", plain, "forward",
                  "plan: {\"layers.5.feed_forward.w1\": {style: colwise, output: replicate}}\n");
    const char *text = said(&f, "params", NULL, NULL);
    assert_non_null(strstr(text, "layers 1-4: the same as layer 0 (9 rows each)\n"));
    assert_non_null(strstr(text, "\nlayers.5.feed_forward.w1.weight"));
    assert_non_null(strstr(text, "layers 7-11: the same as layer 6 (9 rows each)\n"));
    arena_free(f.a);
    f = fold_plan("3", "torchtitan", plain, "forward", "");
    assert_null(strstr(said(&f, "params", NULL, NULL), "the same as"));
    assert_non_null(strstr(said(&f, "shapes", NULL, NULL), "layers 1-2: the same as layer 0"));
    arena_free(f.a);
}
/* The differences of two plans, too. */
static void test_diff(void **state) {
    (void)state;
    Fold f = fold_plan("9", "torchtitan", plain, "forward", "");
    const char *other = temp_path(f.a, "other.yaml");
    child_write(other,
                arena_printf(
                    f.a, model, "9", "torchtitan", plain, "forward",
                    "plan: {\"layers.*.feed_forward.w1\": {style: colwise, output: replicate}}\n"));
    for (int v = 0; v < 2; v++) {
        const char *words[] = {"diff", f.plan, other, v ? "-v" : NULL, NULL};
        Ended e = child_run(f.a, &(Child){.words = words});
        assert_int_equal(e.code, 1);
        assert_int_equal(strstr(e.out, "the same as layer") != NULL, !v);
    }
    arena_free(f.a);
}

/* ---- stages ---- */
static const char staged[] =
    "model: {preset: llama3-8b, layers: %d, parts: [embedding, blocks, norm, head, loss]}\n"
    "names: torchtitan\nmesh: {dp: 2, pp: 8, tp: 2}\ndata: {batch: 32, sequence: 32}\n"
    "recipe: torchtitan-llama3\npass: backward\npipeline: {schedule: %s, microbatches: 16}\n%s";
static Fold fold_staged(int layers, const char *schedule, const char *more) {
    Fold f = {.a = arena_new()};
    f.plan = temp_path(f.a, "staged.yaml");
    child_write(f.plan, arena_printf(f.a, staged, layers, schedule, more));
    return f;
}
/* The steps of stages that are not shown. Each sentence has at least three, one after the other. */
static bool *steps_of_folded(const Fold *f, const char *text, int *folds) {
    bool *told = ARENA_ARRAY(f->a, bool, 1 << 14);
    *folds = 0;
    for (const char *line = text; *line; line += strcspn(line, "\n") + 1) {
        long from, to, first, last, of;
        char *end;
        bool stages = sscanf(line, "  stages %ld-%ld: the same as stage %ld (steps %ld-%ld)",
                             &first, &last, &of, &from, &to) == 5;
        bool layers = sscanf(line, "  layers %ld-%ld: the same as layer %ld (steps %ld-%ld)",
                             &first, &last, &of, &from, &to) == 5;
        if (stages || layers) {
            assert_true(labs(last - first) + 1 >= 3 && labs(first - of) == 1);
            for (long s = from; s <= to; s++) told[s] = true;
            *folds += stages;
        } else if ((from = strtol(line, &end, 10), end != line)) told[from] = true;
    }
    return told;
}
static void test_stages_are_all_told(void **state) {
    (void)state;
    static const char *const commands[] = {"shapes", "comms"};
    for (int k = 0; k < 2; k++) {
        Fold f = fold_staged(16, "1f1b", "");
        const char *few = said(&f, commands[k], NULL, NULL),
                   *all = said(&f, commands[k], "-v", NULL),
                   *csv = said(&f, commands[k], "--format", "csv");
        int folds;
        bool *told = steps_of_folded(&f, few, &folds);
        assert_int_equal(folds, 2); /* forward and backward */
        for (const char *line = csv; (line = strstr(line, "\r\n")) && line[2]; line += 2)
            assert_true(atol(line + 2) < 0 || told[atol(line + 2)] || strstr(line, ",identity("));
        assert_null(strstr(all, "the same as"));
        assert_null(strstr(csv, "the same as"));
        assert_true(lines_with(few, "\n") * 3 < lines_with(all, "\n") * 2);
        assert_int_equal(lines_with(few, "\nstages that are alike are folded; -v shows all\n"), 1);
        arena_free(f.a);
    }
    Fold f = fold_staged(16, "1f1b", "");
    assert_non_null(strstr(said(&f, "params", NULL, NULL),
                           "\n  stages 2-6: the same as stage 1 (18 rows each)\n"));
    assert_non_null(strstr(said(&f, "params", "--format", "md"),
                           "| stages 2-6: the same as stage 1 (18 rows each) |  |"));
    arena_free(f.a);
}
/* Layers of the stage that is shown are folded too, and say so before the stages do. */
static void test_layers_within_stages(void **state) {
    (void)state;
    Fold f = fold_staged(32, "1f1b", "");
    assert_non_null(strstr(said(&f, "params", NULL, NULL),
                           "\n  layers 5-7: the same as layer 4 (9 rows each)\n"
                           "  stages 2-6: the same as stage 1 (36 rows each)\n"));
    arena_free(f.a);
}
/* A stage with a layer that is placed in another way stays, and one with other layers. */
static void test_stage_that_differs_stays(void **state) {
    (void)state;
    Fold f = fold_staged(16, "1f1b",
                         "plan: {\"layers.13.feed_forward.w1\": {style: colwise, output: "
                         "replicate}}\n");
    const char *text = said(&f, "params", NULL, NULL);
    assert_non_null(strstr(text, "\n  stages 2-5: the same as stage 1 (18 rows each)\n"));
    assert_non_null(strstr(text, "\nlayers.13.feed_forward.w1.weight"));
    arena_free(f.a);
    f = fold_staged(15, "1f1b", ""); /* the last has one layer */
    assert_non_null(strstr(said(&f, "params", NULL, NULL), "\n  stages 2-6: the same as "));
    arena_free(f.a);
}
/* With several stages on a rank it is the ranks that are alike. */
static void test_ranks_of_several_stages(void **state) {
    (void)state;
    static const char *const schedules[] = {"dualpipe", "interleaved", "zb-v"};
    for (int i = 0; i < 3; i++) {
        Fold f = fold_staged(i ? 32 : 16, schedules[i], "");
        const char *text = said(&f, "comms", NULL, NULL);
        assert_null(strstr(text, "  stages "));
        assert_non_null(strstr(text, "the same as pp="));
        arena_free(f.a);
    }
}

/* Words that a user chose are no layers and stages: a file of such a name in the column of plan
 * lines hides no fold. */
static void test_names_of_files(void **state) {
    (void)state;
    Fold f = fold_staged(16, "1f1b", "");
    size_t n;
    const char *text = child_read(f.a, f.plan, &n), *folder = temp_path(f.a, "stage 1"),
               *named = arena_printf(f.a, "%s/layers.3.yaml", folder);
    assert_int_equal(mkdir(folder, 0777), 0);
    child_write(named, text);
    static const char *const commands[] = {"params", "comms", "shapes"};
    for (int i = 0; i < 3; i++) {
        int lines = lines_with(said(&f, commands[i], NULL, NULL), "\n");
        Fold g = {f.a, named};
        assert_int_equal(lines_with(said(&g, commands[i], NULL, NULL), "\n"), lines);
    }
    unlink(named);
    rmdir(folder);
    arena_free(f.a);
}

/* ---- lines that stand after rows ---- */
/* A row for each of 8 layers, two on each of 4 coordinates, and a line after row `after`. */
static Table small_table(Arena *a, const Trace *t, int after) {
    static const Column col[] = {{"name", "name", false, COL_NAMES},
                                 {"ranks", "", false, COL_PLACE}};
    Table out = table_new(a, "row", col, 2);
    for (int i = 0; i < 8; i++) {
        int64_t rank = i / 2;
        RankSet ranks = rankset_from(a, &rank, 1);
        table_row(&out)[0] = cell_text(arena_printf(a, "layers.%d.w", i));
        table_place(&out, fold_place(t, i, &ranks, a));
    }
    out.after = ARENA_ARRAY(a, const char *, 8);
    if (after >= 0) out.after[after] = "spoken";
    return out;
}
static int lines_after(const Table *t, const char *what) {
    int n = 0;
    for (int r = 0; r < t->n_rows; r++) n += t->after[r] && strstr(t->after[r], what);
    return n;
}
/* What stands after a row that would be folded is not lost: after the last of all it follows the
 * line of the fold, elsewhere nothing is folded. */
static void test_spoken(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace layers = {0}, stages = {.schedule_axis = "pp", .stages = 4, .n_axes = 1, .ranks = 4};
    stages.axes = ARENA_ARRAY(a, struct TraceAxis, 1);
    stages.axes[0].name = "pp";
    stages.axes[0].size = 4;
    for (int after = -1; after < 8; after++) {
        Table t = small_table(a, &layers, after), of = fold_table(&t, &layers);
        bool folds = after < 0 || after == 7;
        assert_int_equal(of.n_rows, folds ? 1 : 7 - after >= FOLD_LAYERS ? after + 2 : 8);
        assert_int_equal(lines_after(&of, "spoken"), after >= 0);
        t = small_table(a, &stages, after);
        of = fold_table(&t, &stages);
        assert_int_equal(lines_after(&of, "stages 1-3: the same as stage 0"), folds);
        assert_int_equal(lines_after(&of, "spoken"), after >= 0);
    }
    arena_free(a);
}

/* What is alive at the peak, as text: a line for each value, and one for what three layers or more
 * hold alike, with the bytes of all of them. */
static void test_memory_as_text(void **state) {
    (void)state;
    static const struct {
        const char *layers, *says;
    } row[] = {
        {"2", "  gradient of layers.1.feed_forward.w2.weight             step 97        56 MiB"},
        {"3", "  gradient of layers.*.feed_forward.w2.weight             3 layers      168 MiB"},
        {"12", "  gradient of layers.*.feed_forward.w2.weight             12 layers     672 MiB"},
    };
    int lines[3];
    for (int i = 0; i < 3; i++) {
        Fold f = fold_plan(row[i].layers, "torchtitan", plain, "backward", "");
        const char *text = said(&f, "draw", "--view", "memory");
        const char *alive = strstr(text, "alive at the peak");
        assert_non_null(alive);
        const char *w2 = strstr(alive, "feed_forward.w2.weight");
        assert_non_null(w2);
        while (w2[-1] != '\n') w2--;
        assert_string_equal(arena_strndup(f.a, w2, strcspn(w2, "\n")), row[i].says);
        lines[i] = lines_with(alive, "\n");
        assert_int_equal(lines_with(alive, "layers.*.") > 0, i > 0);
        arena_free(f.a);
    }
    assert_int_equal(lines[1], lines[2]);
    assert_true(lines[0] > lines[1]);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_all_told),
        cmocka_unit_test(test_micro_batches),
        cmocka_unit_test(test_diff_of_pipelines),
        cmocka_unit_test(test_diff_of_neighbours),
        cmocka_unit_test(test_names_of_records),
        cmocka_unit_test(test_order),
        cmocka_unit_test(test_names_of_all_schemes),
        cmocka_unit_test(test_what_differs_stays),
        cmocka_unit_test(test_diff),
        cmocka_unit_test(test_stages_are_all_told),
        cmocka_unit_test(test_layers_within_stages),
        cmocka_unit_test(test_stage_that_differs_stays),
        cmocka_unit_test(test_ranks_of_several_stages),
        cmocka_unit_test(test_names_of_files),
        cmocka_unit_test(test_spoken),
        cmocka_unit_test(test_memory_as_text),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
