/* Lanes of a GPU (exec/gpu_lanes.h): whatever lanes do to blocks, in any order, is ordered by marks
 * as far as it must be, and no further. What is ordered is told by clocks (support/order.h), not by
 * who happens to be first. */
#include "exec/gpu_lanes.h"
#include "support/order.h"
#include "support/random_plan.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

enum { BLOCKS = 12, LANES = 5 };
/* A GPU of streams without numbers; `deaf` ones wait for no mark. */
typedef struct {
    Gpu g; /* first */
    int stream[GPU_LANES], lane, marks, waits;
    bool deaf;
    OrderClock made[GPU_MARKS * LANES]; /* they are used again: no more */
} Streams;
static void choose(Gpu *g, int lane) {
    Streams *x = (Streams *)g;
    if (!x->stream[lane]) x->stream[lane] = order_stream();
    x->lane = lane;
}
static void *mark(Gpu *g, void *old) {
    Streams *x = (Streams *)g;
    assert_true(old || x->marks < (int)(sizeof x->made / sizeof *x->made));
    OrderClock *c = old ? old : &x->made[x->marks++];
    *c = order_now(x->stream[x->lane]);
    return c;
}
static void after(Gpu *g, void *m) {
    Streams *x = (Streams *)g;
    x->waits++;
    if (!x->deaf) order_behind(x->stream[x->lane], m);
}
static Streams streams_new(bool deaf) {
    Streams x = {.g = {.lane = choose, .mark = mark, .after = after}, .deaf = deaf};
    choose(&x.g, 0);
    return x;
}
typedef struct {
    GpuLanes lanes;
    Streams *gpu;
    GpuUse use[BLOCKS];
    char at[BLOCKS][8];
} World;
static void touch(World *w, int block, bool writes) {
    gpu_lanes_touch(&w->lanes, &w->use[block], writes);
    order_touch(w->gpu->stream[w->gpu->lane], w->at[block], writes, "a step");
}
/* Kernels on lane 0 and moves on others, at random. */
static void play(unsigned seed, int steps, bool deaf) {
    Streams gpu = streams_new(deaf);
    World *w = calloc(1, sizeof *w);
    Rng r = {seed};
    w->gpu = &gpu;
    w->lanes.gpu = &gpu.g;
    for (int i = 0; i < BLOCKS; i++) order_take(w->at[i], sizeof w->at[i] - 1);
    for (int i = 0; i < steps; i++) {
        int lane = rng_below(&r, LANES), n = 1 + rng_below(&r, 4);
        if (lane) gpu_lanes_begin(&w->lanes, lane);
        for (int k = 0; k < n; k++) touch(w, rng_below(&r, BLOCKS), rng_below(&r, 3) == 0);
        if (lane) gpu_lanes_end(&w->lanes);
        else if (i % 3) gpu_lanes_pause(&w->lanes);
    }
}
/* Ends with that signal, or 0. */
static int ends_by(unsigned seed, int steps, bool deaf) {
    fflush(NULL);
    pid_t child = fork();
    if (child == 0) {
        if (!freopen("/dev/null", "w", stderr)) _exit(9);
        play(seed, steps, deaf);
        _exit(0);
    }
    int status;
    waitpid(child, &status, 0);
    return WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status);
}
static void test_ordered(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 50; seed++) assert_int_equal(ends_by(seed, 400, false), 0);
}
/* Whoever forgets to wait is seen, each time. */
static void test_forgotten_marks(void **state) {
    (void)state;
    for (unsigned seed = 1; seed <= 20; seed++) assert_int_equal(ends_by(seed, 400, true), SIGABRT);
}
/* A kernel that needs nothing of a move does not wait for it, nor a move of another group; one that
 * reads what the first of two moves brought waits for that one alone. */
static void test_beside(void **state) {
    (void)state;
    Streams gpu = streams_new(false);
    GpuLanes l = {.gpu = &gpu.g};
    GpuUse first = {0}, second = {0}, other = {0}, own = {0};
    static char at;
    order_take(&at, sizeof at);
    for (int k = 0; k < 2; k++) {
        gpu_lanes_begin(&l, 1);
        gpu_lanes_touch(&l, k ? &second : &first, true);
        order_touch(gpu.stream[1], &at, false, "NCCL"); /* its clock goes on */
        gpu_lanes_end(&l);
    }
    int waits = gpu.waits;
    gpu_lanes_touch(&l, &own, true);
    gpu_lanes_begin(&l, 2);
    gpu_lanes_touch(&l, &other, true);
    gpu_lanes_end(&l);
    assert_int_equal(gpu.waits, waits);
    gpu_lanes_touch(&l, &first, false);
    assert_int_equal(gpu.waits, waits + 1);
    OrderClock now = order_now(gpu.stream[0]), one = *(OrderClock *)l.lane[1].mark[0],
               two = *(OrderClock *)l.lane[1].mark[1];
    assert_int_equal(now.at[gpu.stream[1]], one.at[gpu.stream[1]]);
    assert_int_equal(now.at[gpu.stream[2]], 0);
    assert_true(one.at[gpu.stream[1]] > 0 && one.at[gpu.stream[1]] < two.at[gpu.stream[1]]);
}
/* A hop of a ring reads what a kernel has made, and so does the kernel between the two: the hop
 * waits for the first alone, and once; for what was made long ago no more than for the oldest mark.
 */
static void test_hop_beside_part(void **state) {
    (void)state;
    Streams gpu = streams_new(false);
    GpuLanes l = {.gpu = &gpu.g};
    GpuUse key = {0}, other = {0}, part = {0};
    static char at[2];
    order_take(at, sizeof at);
    const int own = gpu.stream[0];
    for (int k = 0; k < 2; k++) { /* a kernel that makes the block, one that reads it */
        gpu_lanes_touch(&l, k ? &part : &key, true);
        if (k) gpu_lanes_touch(&l, &key, false);
        order_touch(own, at, true, "a kernel");
        gpu_lanes_pause(&l);
    }
    const OrderClock made = *(OrderClock *)l.lane[0].mark[0], now = order_now(own);
    gpu_lanes_begin(&l, 1);
    gpu_lanes_touch(&l, &key, false);
    const OrderClock hop = order_now(gpu.stream[1]);
    assert_true(made.at[own] < now.at[own]);
    assert_int_equal(hop.at[own], made.at[own]);
    int waits = gpu.waits;
    gpu_lanes_touch(&l, &key, false);
    assert_int_equal(gpu.waits, waits);
    assert_true(gpu_lanes_free(&l, &other)); /* nobody was there */
    assert_false(gpu_lanes_free(&l, &part)); /* the second kernel's */
    assert_false(gpu_lanes_free(&l, &key));  /* which it reads */
    gpu_lanes_end(&l);
    for (int k = 0; k < 3 * GPU_MARKS; k++) gpu_lanes_pause(&l);
    gpu_lanes_begin(&l, 2);
    gpu_lanes_touch(&l, &key, false);
    assert_int_equal(l.lane[2].behind, l.lane[0].ends - GPU_MARKS + 1);
    gpu_lanes_end(&l);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_ordered),
        cmocka_unit_test(test_forgotten_marks),
        cmocka_unit_test(test_beside),
        cmocka_unit_test(test_hop_beside_part),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
