/* Tables of many layers: for people, layers that say the same are one line; what differs stays;
 * programs get every row.
 */
#include "tests/support/child.h"
#include "tests/support/support.h"
#include <setjmp.h>
#include <stdlib.h>
#include <string.h>

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
/* A layer that is placed in another way stays, and so do three that are alike: folding them would
 * save little. */
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
    assert_null(strstr(said(&f, "shapes", NULL, NULL), "the same as"));
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

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_steps_are_all_told),
        cmocka_unit_test(test_names_of_all_schemes),
        cmocka_unit_test(test_what_differs_stays),
        cmocka_unit_test(test_diff),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
