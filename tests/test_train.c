/* Training steps: the golden toy runs (losses, parameters and optimizer state of ten steps,
 * unsharded and under the column and row plan on 2 and 4 ranks), and a small Llama under
 * torchtitan's plan with everything combined. Run from the project's root. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "drive/pipeline.h"
#include "formats/safetensors.h"
#include "support/support.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *golden(Arena *a, const char *name) {
    const char *path = arena_printf(a, "../shared/golden/toy/%s/values.safetensors", name);
    if (access(path, R_OK)) path = arena_printf(a, "tests/golden/toy/%s/values.safetensors", name);
    if (access(path, R_OK)) fail_msg("golden toy run %s is missing", name);
    return path;
}
static PlanRun run(Arena *a, const char *text, const char *save) {
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = save};
    return plan_run_with(a, "train.yaml", text, &o);
}
static const struct {
    const char *name, *loss, *optimizer;
} runs[] = {
    {"adamw-sum", "sum", "name: adamw, lr: 0.25, weight_decay: 0.01"},
    {"adamw-sum-clip", "sum", "name: adamw, lr: 0.25, weight_decay: 0.01, clip: 1.0"},
    {"adamw-var", "var", "name: adamw, lr: 0.05"} /* the default weight decay is PyTorch's */,
    {"adamw-var-clip", "var", "name: adamw, lr: 0.05, weight_decay: 0.01, clip: 0.35"},
    {"sgd-sum", "sum", "name: sgd, lr: 0.001, momentum: 0.9"},
    {"sgd-sum-clip", "sum", "name: sgd, lr: 0.25, momentum: 0.9, clip: 1.0"},
    {"sgd-var", "var", "name: sgd, lr: 0.05, momentum: 0.9"},
    {"sgd-var-clip", "var", "name: sgd, lr: 0.05, momentum: 0.9, clip: 0.35"},
};
static double *numbers(const SafeTensors *st, const char *name, int64_t *n) {
    const StTensor *t = st_find(st, name);
    if (!t) return NULL;
    *n = 1;
    for (int d = 0; d < t->nd; d++) *n *= t->shape[d];
    double *x = base_malloc((size_t)(*n ? *n : 1) * 8);
    st_read(t, 0, *n, DT_F64, x);
    return x;
}
/* Largest difference of two tensors relative to the golden one's largest magnitude; both files must
 * have it. */
static double difference(const SafeTensors *ours, const SafeTensors *gold, const char *name) {
    int64_t n = 0, m = 0;
    double *a = numbers(ours, name, &n), *b = numbers(gold, name, &m), top = 0, err = 0;
    if (!a || !b) fail_msg("%s is missing in %s", name, a ? "the golden file" : "what we saved");
    assert_int_equal(n, m);
    for (int64_t i = 0; i < n; i++) {
        top = fmax(top, fabs(b[i]));
        err = fmax(err, fabs(a[i] - b[i]));
    }
    free(a);
    free(b);
    return err / top;
}
static void test_toy_runs(void **state) {
    (void)state;
    int n_runs = sample_of(sizeof runs / sizeof runs[0], "toy runs");
    for (int i = 0; i < n_runs; i++) {
        double worst = 0;
        for (int tp = 1; tp <= 4; tp *= 2) {
            Arena *a = arena_new();
            const char *file = golden(a, runs[i].name),
                       *save = arena_printf(a, "build/toy-%d.safetensors", (int)getpid());
            int steps =
                tp == 4 ? 4 : 10; /* also a shorter run: what it leaves is another golden value */
            const char *text =
                arena_printf(a,
                             "model: {kind: mlp, sizes: [10, 32, 5], bias: true, activation: relu, "
                             "weights: {file: %s, prefix: \"initial.\"}}\n"
                             "data: {dtype: f64, inputs: %s}\nmesh: {tp: %d}\npass: train\nloss: "
                             "%s\noptimizer: {%s, steps: %d}\n"
                             "plan: {net1: colwise, net2: rowwise}\n",
                             file, file, tp, runs[i].loss, runs[i].optimizer, steps);
            PlanRun r = run(a, text, save);
            run_must_be(&r, "equivalent");
            assert_int_equal(r.rep.n_losses, steps);
            SafeTensors *ours = st_open(a, r.d, save, (Loc){0}),
                        *gold = st_open(a, r.d, file, (Loc){0});
            int64_t n = 0;
            double *losses = numbers(gold, "losses", &n);
            assert_int_equal(n, 10);
            for (int k = 0; k < steps; k++)
                assert_true(fabs(r.rep.losses[k] - losses[k]) <= 1e-10 * fabs(losses[k]));
            free(losses);
            static const char *const names[] = {"net1.weight", "net1.bias", "net2.weight",
                                                "net2.bias"};
            for (int k = 0; k < 4; k++) {
                bool adam = !strncmp(runs[i].name, "adamw", 5);
                const char *const parts[] = {"", adam ? ".exp_avg" : ".momentum_buffer",
                                             ".exp_avg_sq"};
                for (int q = 0; q < (adam ? 3 : 2); q++)
                    worst = fmax(worst, difference(ours, gold,
                                                   arena_printf(a, "after.%d.%s%s", steps - 1,
                                                                names[k], parts[q])));
            }
            st_close(ours);
            st_close(gold);
            unlink(save);
            arena_free(a);
        }
        print_message("%-16s losses, parameters and state on 1, 2 and 4 ranks: worst %.1e\n",
                      runs[i].name, worst);
        assert_true(worst <= 1e-10);
    }
}
/* Five AdamW steps with clipping: torchtitan's whole plan on dp 2 x cp 2 x tp 2 with FSDP, f64;
 * equal to the unsharded self (parameters end to end below 1e-9 are part of the verdict), and the
 * loss goes down. */
static void test_small_llama(void **state) {
    (void)state;
    static const char *const variants[] = {"data_parallel: {mode: fsdp, axis: dp*cp}\n",
                                           "data_parallel: {mode: ddp}\n",
                                           ("data_parallel: {mode: fsdp, axis: dp*cp, unit: block, "
                                            "grad_order: tp_first}\nrecompute: block\n")};
    double first[3][5];
    int n = sample_of(3, "kinds of data parallelism");
    for (int v = 0; v < n; v++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, "
                         "blocks, norm, head, loss]}\n"
                         "data: {batch: 4, sequence: 16, dtype: f64}\nmesh: {dp: 2, cp: 2, tp: "
                         "2}\ngroups: {sp: tp}\nnames: torchtitan\nrecipe: torchtitan-llama3\n"
                         "pass: train\noptimizer: {name: adamw, lr: 0.01, weight_decay: 0.1, clip: "
                         "0.5, steps: 5}\n%s",
                         variants[v]);
        PlanRun r = run(a, text, NULL);
        run_must_be(&r, "equivalent");
        assert_true(r.rep.losses[4] < r.rep.losses[0]);
        assert_true(r.rep.end_to_end_rel < 1e-9);
        memcpy(first[v], r.rep.losses, sizeof first[v]);
        for (int k = 0; k < 5; k++)
            assert_true(fabs(first[v][k] - first[0][k]) <= 1e-9 * fabs(first[0][k]));
        arena_free(a);
    }
}
/* Micro-batches: gradients added up and reduced once give the step of the whole batch, whatever
 * their number, also under FSDP; the count of labels is that of the whole batch. */
static void test_micro_batches(void **state) {
    (void)state;
    double losses[3][3] = {{0}}, first[3] = {0};
    for (int k = 0; k < 3; k++) {
        Arena *a = arena_new();
        const char *save = arena_printf(a, "build/micro-%d.safetensors", (int)getpid());
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, "
            "head, loss]}\n"
            "data: {batch: 8, sequence: 16, dtype: f64, microbatches: %d}\nmesh: {dp: 2, tp: "
            "2}\ngroups: {sp: tp}\nnames: torchtitan\nrecipe: torchtitan-llama3\n"
            "pass: train\noptimizer: {name: sgd, lr: 0.1, momentum: 0.9, steps: 3}\ndata_parallel: "
            "{mode: %s}\n",
            1 << k, k == 2 ? "fsdp" : "ddp");
        PlanRun r = run(a, text, save);
        run_must_be(&r, "equivalent");
        memcpy(losses[k], r.rep.losses, sizeof losses[k]);
        SafeTensors *st = st_open(a, r.d, save, (Loc){0});
        int64_t n = 0;
        double *w = numbers(st, "after.2.layers.0.feed_forward.w2.weight", &n);
        assert_non_null(w);
        for (int64_t i = 0; i < n; i++) first[k] += w[i] * (double)(i % 7 + 1);
        free(w);
        st_close(st);
        unlink(save);
        arena_free(a);
        for (int s = 0; s < 3; s++)
            assert_true(fabs(losses[k][s] - losses[0][s]) <= 1e-10 * fabs(losses[0][s]));
        assert_true(fabs(first[k] - first[0]) <= 1e-9 * fabs(first[0]));
    }
}
/* Mean of means is exact only if all ranks have as many labels. */
static void test_local_mean(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, "
                       "blocks, norm, head, loss]}\n"
                       "data: {batch: 4, sequence: 16, dtype: f64}\nmesh: {dp: 2}\nnames: "
                       "torchtitan\npass: backward\n"
                       "loss: {kind: cross_entropy, normalise: local_mean}\n";
    PlanRun r = run(a, text, NULL);
    run_must_be(&r, "different");
    assert_string_equal(r.t->first_wrong, "loss_weights");
    for (int i = 0; i < r.d->n; i++) /* both name the line */
        if (r.d->item[i].severity == DIAG_ERROR || !strcmp(r.d->item[i].code, "W0402"))
            assert_true(r.d->item[i].loc.line == 6 && r.d->item[i].loc.col > 1);
    arena_free(a);
}
/* It is said before any number is seen, with how many means are averaged; one block has none. */
static void test_means_are_told(void **state) {
    (void)state;
    static const struct {
        const char *mesh, *data, *told;
    } rows[] = {
        {"dp: 2", "", "each of 2 blocks of tokens (dp) is divided by its own count"},
        {"dp: 2, cp: 2", "", "each of 4 blocks of tokens (dp*cp) is divided"},
        {"dp: 2, tp: 2", ", microbatches: 2", "each of 2 blocks of tokens (dp) in each of 2 micro"},
        {"tp: 2", ", microbatches: 2", "each of 2 micro-batches is divided by its own count"},
        {"tp: 2", "", NULL}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "means.yaml",
            arena_printf(a,
                         "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, "
                         "blocks, norm, head, loss]}\n"
                         "data: {batch: 4, sequence: 16%s}\nmesh: {%s}\npass: backward\n"
                         "loss: {normalise: local_mean}\n",
                         rows[i].data, rows[i].mesh),
            false);
        const char *told = NULL;
        for (int k = 0; k < r.d->n; k++)
            if (!strcmp(r.d->item[k].code, "W0402")) told = r.d->item[k].message;
        assert_int_equal(told != NULL, rows[i].told != NULL);
        if (told) assert_non_null(strstr(told, rows[i].told));
        arena_free(a);
    }
}
static void test_refusals(void **state) {
    (void)state;
    static const struct {
        const char *line, *code;
    } rows[] = {{"optimizer: {name: adamax, lr: 0.1, steps: 2}\n", "E0206"},
                {"", "E0208"},
                {"optimizer: {name: sgd, lr: 0.1, steps: 0}\n", "E0302"}};
    for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a, "model: {kind: mlp, sizes: [10, 32, 5]}\nmesh: {tp: 2}\npass: train\nloss: sum\n%s",
            rows[i].line);
        PlanRun r = run(a, text, NULL);
        if (!run_has(&r, rows[i].code)) run_print(&r);
        assert_true(run_has(&r, rows[i].code));
        assert_int_not_equal(r.rep.exit, 0);
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_toy_runs),       cmocka_unit_test(test_small_llama),
        cmocka_unit_test(test_micro_batches),  cmocka_unit_test(test_local_mean),
        cmocka_unit_test(test_means_are_told), cmocka_unit_test(test_refusals)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
