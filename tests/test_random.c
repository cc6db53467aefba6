/* Random legal plans and mutations (the words are defined in docs/architecture.md, "Testing"):
 * every plan must be equivalent without a complaint, with every value of every rank compared; one
 * random mutation of its lowered program must be caught and located. A fixed sample, smaller under
 * sanitizers (SHARDPROOF_PLANS). `make soak` runs many more. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "support/random_run.h"
#include "support/support.h"
#include <stdlib.h>
#include <string.h>

enum { SAMPLE = 1000 };
static void test_random_plans(void **state) {
    (void)state;
    const char *from = getenv("SHARDPROOF_SEED"), *brief = getenv("SHARDPROOF_BRIEF");
    const char *plans = getenv("SHARDPROOF_PLANS");
    int want = plans && atoi(plans) > 0 && atoi(plans) < SAMPLE ? atoi(plans) : SAMPLE;
    if (want < SAMPLE) printf("a sample of %d of %d random plans\n", want, SAMPLE);
    Arena *a = arena_new();
    Coverage *c = coverage_new(a);
    RandomTable tab = {0};
    for (uint64_t seed = from ? strtoull(from, NULL, 10) : 1;
         tab.legal < want && tab.plans < 8 * want; seed++)
        random_run(seed, &tab, c);
    int never = coverage_print(c, stdout, !brief);
    random_table_print(&tab, stdout);
    assert_int_equal(random_table_bad(&tab), 0);
    assert_true(tab.legal >= want);
    assert_int_equal(c->unknown, 0);
    if (want >= SAMPLE) assert_int_equal(never, 0);
    for (int m = 0; m < M_COUNT && want >= SAMPLE; m++) assert_true(tab.by_values[m] > 0);
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
