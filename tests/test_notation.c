/* One layout in three notations: by hand, of a plan through the command, and a word that is none.
 */
#include "cli/notation.h"
#include "support/child.h"
#include "support/support.h"
#include <setjmp.h>
#include <string.h>

#include <cmocka.h>

static void hold(Arena *a, const TraceShape *s, const char *torch, const char *jax,
                 const char *ours) {
    const char *const words[] = {"torch", "jax", "ours"}, *const want[] = {torch, jax, ours};
    for (int i = 0; i < 3; i++) {
        const char *got = notation_text(words[i], s, "A", a);
        if (!want[i]) assert_null(got);
        else assert_string_equal(got, want[i]);
    }
    assert_null(notation_text(NULL, s, "A", a));
}
static void test_layouts(void **state) {
    (void)state;
    Arena *a = arena_new();
    TracePlace two[] = {{"dp", "shard(0)"}, {"tp", "partial"}},
               three[] = {{"dp", "varying_use"}, {"cp", "zigzag(1)"}, {"tp", "shard(1)"}},
               one[] = {{"tp", "partial(max)"}};
    hold(a,
         &(TraceShape){.nd = 2,
                       .dim_symbol = {"B/dp", "D"},
                       .symbolic = "[B/dp, D]",
                       .n_places = 2,
                       .place = two,
                       .pending = "tp"},
         "(Shard(0), Partial())", "A[B_dp, D]{U_tp}", "[B/dp, D] Σ tp");
    hold(a,
         &(TraceShape){.nd = 3,
                       .dim_symbol = {"B", "S/(cp*tp)", "H*d/ep"},
                       .symbolic = "[B, S/(cp*tp), H*d/ep]",
                       .n_places = 3,
                       .place = three},
         "(Replicate(), zigzag(1), Shard(1))", "A[B, S_{cp,tp}, (H*d)_ep]",
         "[B, S/(cp*tp), H*d/ep]");
    hold(a,
         &(TraceShape){.nd = 0, .symbolic = "[]", .n_places = 1, .place = one, .pending = "dp*tp"},
         "(Partial(max),)", "A[]{U_{dp,tp}}", "[] Σ dp*tp");
    hold(a, &(TraceShape){.nd = 1}, NULL, NULL, NULL);
    arena_free(a);
}
static void test_commands(void **state) {
    (void)state;
    static const struct {
        const char *command, *word, *says;
    } cases[] = {
        {"params", "torch", "(Shard(0),)"},
        {"params", "jax", "layers.0.attention.wq.weight[(H*d)_tp, D]"},
        {"params", "ours", "[H*d/tp, D]"},
        {"shapes", "torch", "(Shard(0), zigzag(1), Partial())"},
        {"shapes", "jax", "layers.0.o_proj[B_dp, S_cp, D]{U_tp}"},
        {"shapes", "ours", "[B/dp, S/cp, D] Σ tp"},
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Ended e =
            child_run(a, &(Child){.words = WORDS(cases[i].command, "--notation", cases[i].word,
                                                 "plans/09-llama3-8b-dp2-cp2-tp2.yaml")});
        if (e.code || !strstr(e.out, cases[i].says))
            fail_msg("%s --notation %s: no %s\n%s", cases[i].command, cases[i].word, cases[i].says,
                     e.out);
    }
    Ended e = child_run(
        a, &(Child){.words = WORDS("params", "--notation", "numpy", "plans/02-toymodel-2.yaml")});
    assert_int_not_equal(e.code, 0);
    assert_non_null(strstr(e.err, "torch jax ours"));
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_layouts),
                                       cmocka_unit_test(test_commands)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
