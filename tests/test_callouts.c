/* Names at leaders (render/timeline/callouts.h): wherever bars stand, no name touches another or
 * another's leader, and each is at its own. */
#include "tests/support/support.h"
#include "render/timeline/callouts.h"
#include <math.h>
#include <setjmp.h>
#include <stdlib.h>

#include <cmocka.h>

static void holds(const Callout *c, int n, double from, double to, int rows) {
    for (int i = 0; i < n; i++) {
        if (c[i].row < 0) continue;
        const double a = c[i].x, b = a + c[i].w;
        assert_in_range(c[i].row, 0, rows - 1);
        assert_true(a >= from - 1e-9 && b <= to + 1e-9);
        assert_true(a <= c[i].at && c[i].at <= b);
        for (int k = 0; k < n; k++) {
            if (k == i || c[k].row < c[i].row) continue;
            const bool passes = c[k].row > c[i].row;
            const double x = passes ? c[k].at : c[k].x, y = passes ? x : x + c[k].w,
                         clear = passes ? CALLOUT_CLEAR : CALLOUT_APART;
            if (x < b + clear - 1e-9 && y > a - clear + 1e-9)
                fail_msg("%d [%g %g] row %d, %d at [%g %g] row %d", i, a, b, c[i].row, k, x, y,
                         c[k].row);
        }
    }
}
/* Bars anywhere, some of them side by side. */
static void names_touch_nothing(void **state) {
    (void)state;
    uint64_t seed = 20261129;
    for (int round = 0; round < 4000; round++) {
        Arena *a = arena_new();
        Callout c[24];
        const int n = 1 + (int)((seed >> 33) % 24), rows = 1 + (int)((seed >> 20) % 5);
        double at = 0;
        for (int i = 0; i < n; i++) {
            seed = seed * 6364136223846793005u + 1442695040888963407u;
            at += (double)(seed >> 40) / (1 << 24) * (i % 5 ? 60 : 4);
            c[i] = (Callout){.at = at, .w = 20 + (double)((seed >> 20) & 127)};
        }
        const int used = callouts_lay(a, c, n, 0, 800, rows);
        int most = 0;
        for (int i = 0; i < n; i++) most = c[i].row + 1 > most ? c[i].row + 1 : most;
        assert_int_equal(used, most);
        assert_true(used <= rows);
        holds(c, n, 0, 800, rows);
        arena_free(a);
    }
}
/* Where one row has room for all there is one, each name at the middle of its leader; bars close to
 * each other at the right edge have steps. */
static void rows_are_few(void **state) {
    (void)state;
    Arena *a = arena_new();
    Callout wide[] = {{.at = 100, .w = 60}, {.at = 200, .w = 60}, {.at = 300, .w = 60}},
            near[] = {{.at = 760, .w = 90}, {.at = 770, .w = 90}, {.at = 780, .w = 90}},
            one[] = {{.at = 100, .w = 900}};
    assert_int_equal(callouts_lay(a, wide, 3, 0, 800, 4), 1);
    for (int i = 0; i < 3; i++) assert_true(fabs(wide[i].x - (wide[i].at - 30)) < 1e-9);
    assert_int_equal(callouts_lay(a, near, 3, 0, 800, 4), 3);
    for (int i = 0; i < 3; i++) assert_true(near[i].row >= 0);
    holds(near, 3, 0, 800, 4);
    assert_int_equal(callouts_lay(a, one, 1, 0, 800, 4), 0); /* wider than the page */
    assert_int_equal(one[0].row, -1);
    assert_int_equal(callouts_lay(a, one, 0, 0, 800, 4), 0);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(names_touch_nothing),
                                       cmocka_unit_test(rows_are_few)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
