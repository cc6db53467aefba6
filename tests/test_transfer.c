/* A sum over ranks adds their parts in the order of the group, one rounding after the other: what
 * the documentation declares, and what makes a run the same bits wherever its ranks are. Worked out
 * here from what the ranks hold. */
#include "exec/exec.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    long sums, wrong, odd; /* elements that were summed; with other bits; where the order shows */
} Order;

/* The parts of the group of `rank` at element i, first to last or last to first. */
static float added(const Exec *e, const Step *s, int64_t rank, int64_t i, bool back) {
    const Mesh *m = e->p->mesh;
    int64_t n = mesh_size(m, &s->move.axes);
    float sum = 0;
    for (int64_t k = 0; k < n; k++) {
        int64_t from = mesh_member(m, &s->move.axes, rank, back ? n - 1 - k : k);
        const Tensor *t = &exec_local(e, s->in[0], from)->t;
        float x = ((const float *)t->p)[i];
        sum = k ? sum + x : x;
    }
    return sum;
}
static void look(void *arg, Exec *e, const Step *s, bool checked) {
    Order *o = arg;
    if (checked || s->kind != ST_MOVE || s->move.kind != MOVE_ALL_REDUCE) return;
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        const Tensor *t = &exec_local(e, s->out, r)->t;
        for (int64_t i = 0; i < tensor_count(t); i++) {
            float forth = added(e, s, r, i, false), back = added(e, s, r, i, true);
            o->wrong += memcmp(&forth, (const float *)t->p + i, sizeof forth) != 0;
            o->odd += memcmp(&forth, &back, sizeof forth) != 0;
            o->sums++;
        }
    }
}
static void test_order_of_sums(void **state) {
    (void)state;
    Order o = {0};
    Arena *a = arena_new();
    PipelineOptions options = {.execute = true, .threads = 1, .watch = look, .watch_arg = &o};
    PlanRun r = plan_run_with(a, "order.yaml",
                              "model: {kind: mlp, sizes: [7, 18, 5], bias: true}\n"
                              "data: {rows: 13, dtype: f32, seed: 3}\nmesh: {dp: 2, tp: 3}\n"
                              "pass: backward\nloss: sum\nplan:\n  net1: colwise\n"
                              "  net2: rowwise\n",
                              &options);
    run_must_be(&r, "equivalent");
    assert_true(o.sums > 100 && o.odd > 10);
    assert_int_equal(o.wrong, 0);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_order_of_sums)};
    return cmocka_run_group_tests_name("transfer", tests, NULL, NULL);
}
