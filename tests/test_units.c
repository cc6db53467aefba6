/* What a unit of FSDP sends in one collective is all there when it is sent: the sums that are due
 * before, over other axes, come first, in the program, in the log and on the timeline. */
#include "exec/exec.h"
#include "support/support.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

typedef struct {
    int members, early; /* of units that travel; whose input is made after the unit has left */
    bool looked;
} Units;
/* The step that makes a value; one that only takes it for another kind of copy makes nothing. */
static int made_at(const Program *p, int val) {
    int by = p->val[val].step;
    while (by >= 0 && p->step[by].kind == ST_MOVE && p->step[by].move.kind == MOVE_ID)
        by = p->val[p->step[by].in[0]].step;
    return by;
}
static void look(void *arg, Exec *e, const Step *step, bool checked) {
    Units *u = arg;
    const Program *p = e->p;
    (void)step, (void)checked;
    for (int i = 0; !u->looked && i < p->ns; i++) {
        const Step *s = &p->step[i];
        if (s->unit < 0) continue;
        u->members++;
        u->early += made_at(p, s->in[0]) >= s->unit;
    }
    u->looked = true;
}
static void test_inputs_come_first(void **state) {
    (void)state;
    static const char *const modes[] = {"mode: fsdp, axis: rep*dp", "mode: fsdp, axis: dp",
                                        "mode: hsdp, replicate: rep, shard: dp"};
    static const char *const orders[] = {"shard_first", "tp_first"};
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        for (int k = 0; k < 4; k++) {
            Arena *a = arena_new();
            Units u = {0};
            PipelineOptions o = {.execute = true, .threads = 1, .watch = look, .watch_arg = &u};
            const char *text = arena_printf(
                a,
                "model: {preset: qwen3-0.6b, layers: 2, shrink: 64, parts: [embedding, blocks, "
                "norm, head, loss]}\nmesh: {rep: 2, dp: 2, tp: 2}\n"
                "data: {batch: 4, sequence: 8, dtype: f32, cut: {batch: rep*dp}}\n"
                "recipe: torchtitan-llama3\npass: backward\n%s"
                "data_parallel: {%s, unit: block, grad_order: %s}\n",
                k > 1 ? "recompute: block\n" : "", modes[i], orders[k % 2]);
            PlanRun r = plan_run_with(a, "units.yaml", text, &o);
            if (!run_is(&r, "equivalent")) run_print(&r);
            run_must_be(&r, "equivalent");
            assert_true(u.members > 40);
            if (u.early) fail_msg("%d of %d leave too early\n%s", u.early, u.members, text);
            arena_free(a);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_inputs_come_first)};
    return cmocka_run_group_tests_name("units", tests, NULL, NULL);
}
