/* `explain WORD` knows each word that the program itself uses as a term: what steps do, kinds of
 * values, places, passes, categories of memory, styles, faults, codes, and what reports say. */
#include "support/child.h"
#include "support/sandbox.h"
#include "support/support.h"
#include "base/text.h"
#include "cli/find.h"
#include "cli/words.h"
#include "lower/program.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

/* Words, each once. */
typedef struct {
    Arena *a;
    const char **word;
    int n, cap;
} Seen;
/* What stands before a bracket; "linear_backward" is said of linear. */
static void see(Seen *s, const char *word) {
    if (!word || !*word) return;
    size_t n = strcspn(word, "("), back = text_before(word, "_backward");
    if (n > 1 && word[n - 1] == ' ') n--; /* "RMSNorm (1 + w)" */
    const char *bare = arena_strndup(s->a, word, back ? back : n);
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->word[i], bare)) return;
    *ARENA_PUSH(s->a, s->word, s->n, s->cap) = bare;
}
static void see_shape(Seen *s, const TraceShape *x) {
    for (int i = 0; i < x->n_places; i++) /* "partial at(0,3)" */
        see(s, arena_strndup(s->a, x->place[i].place, strcspn(x->place[i].place, " ")));
}
static void see_trace(Seen *s, const Trace *t, Arena *a) {
    for (int i = 0; i < t->n_computes; i++) {
        see(s, t->computes[i].label);
        see(s, phase_text(t->computes[i].pass));
    }
    for (int i = 0; i < t->n_moves; i++) see(s, t->moves[i].op);
    for (int i = 0; i < t->n_collectives; i++) see(s, t->collectives[i].op);
    for (int i = 0; i < t->n_values; i++) {
        see(s, value_role_words[t->values[i].kind]);
        see_shape(s, &t->values[i].shape);
    }
    for (int i = 0; i < t->n_params; i++) see_shape(s, &t->params[i].rest);
    for (const char *const *c = lookup_categories(t, a); *c; c++) see(s, *c);
    see(s, t->backend);
    see(s, t->schedule && !strpbrk(t->schedule, "./") ? t->schedule : NULL);
}
static void see_tables(Seen *s) {
    static const char *const others[] = {
        "equivalent",    "different", "invalid",     "PASS",        "SUSPECT",    "FAIL",
        "checks",        "worst",     "end to end",  "used",        "cause",      "structure",
        "sent",          "message",   "collective",  "exposed",     "hidden",     "waiting",
        "idle",          "peak",      "at rest",     "undeclared",  "unasked",    "inferred",
        "planted",       "modelled",  "algbw",       "measured",    "projected",  "shrunk",
        "a step",        "in flight", "span",        "level",       "bound",      "rank",
        "bus bandwidth", "virtual",   "partial sum", "closed form", "micro-batch"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) see(s, others[i]);
    static const char *const figures[] = {"token",
                                          "residual stream",
                                          "logits",
                                          "node",
                                          "link",
                                          "chunk",
                                          "stale",
                                          "freed",
                                          "follows",
                                          "rounding",
                                          "compute waits",
                                          "ZeRO-1",
                                          "ZeRO-3",
                                          "ridge",
                                          "compute-bound",
                                          "padding",
                                          "dropped",
                                          "peak over mean",
                                          "warm-up",
                                          "conjugate",
                                          "bit for bit equal"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) see(s, figures[i]);
    for (int i = 0; i < N_SEVERITIES; i++) see(s, severity_words[i]);
    for (int i = 0; i < n_diag_codes; i++) see(s, diag_codes[i].code);
    for (int i = 0; i < n_ops; i++) see(s, op_list[i]->name), see(s, op_list[i]->label);
    const char *const *what, *const *fault = fault_names(s->a, &what);
    for (int i = 0; fault[i]; i++) see(s, fault[i]);
    int n;
    const StyleRow *style = style_rows(&n);
    for (int i = 0; i < n; i++) see(s, style[i].style.name);
}
static void test_each_is_known(void **state) {
    (void)state;
    Seen s = {.a = arena};
    see_tables(&s);
    int tables = s.n, unknown = 0;
    for (PlanFiles f = plan_files("plans/{[0-9]*,models/*,bugs/*}.yaml", "plans");
         plan_files_next(&f);) {
        PlanRun r = plan_run(f.a, f.path, f.text, false);
        if (r.t) see_trace(&s, r.t, f.a);
    }
    assert_true(s.n > tables + 5);
    for (int i = 0; i < s.n; i++) {
        Ended e = {0};
        bool code = strlen(s.word[i]) == 5 && strchr("ENW", *s.word[i]) && s.word[i][1] <= '9';
        Cli c = {.arena = arena, .d = diags_new(arena)};
        if (code) e = child_run(arena, &(Child){.words = WORDS("explain", s.word[i])});
        if (code ? !e.code : words_know(&c, s.word[i])) continue;
        print_error("explain '%s' knows nothing\n", s.word[i]);
        unknown++;
    }
    printf("%d words\n", s.n);
    assert_int_equal(unknown, 0);
}
/* What several ops of the optimizer are is said of each of them. */
static void test_optimizer(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"weighted sum", "momentum"},
                                          {"clip factor", "at most 1"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("explain", rows[i][0])});
        assert_int_equal(e.code, 0);
        assert_non_null(strstr(e.out, rows[i][1]));
        assert_null(strstr(e.out, "square"));
    }
}
/* A phrase of a figure or a report is explained by its words. */
static void test_phrases(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"Σ tp pending", "sigma"},
                                          {"matmul, attention", "softmax"},
                                          {"saved / conjugate", "ReduceScatter"},
                                          {"communication behind other communication", "exchange"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("explain", rows[i][0])});
        assert_int_equal(e.code, 0);
        assert_non_null(strstr(e.out, rows[i][1]));
    }
}
/* A slip of the pen in a name, and in another word for it. */
static void test_near(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"colwsie", "colwise"},
                                          {"cotangnet", "cotangent"},
                                          {"reduce_scater", "reduce_scatter"},
                                          {"rmsnrom", "rmsnorm"},
                                          {"equivalnet", "equivalent"},
                                          {"algwb", "algbw"},
                                          {"partial summ", "partial sum"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("explain", rows[i][0])});
        child_expect(&e, 3, arena_printf(arena, "did you mean '%s'?", rows[i][1]));
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_is_known, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_optimizer, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_phrases, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_near, sandbox_new, sandbox_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
