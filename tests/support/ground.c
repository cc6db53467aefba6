/* What tests of pictures stand on. See ground.h. */
#include "ground.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h wants these before it */
#include <cmocka.h>

#include "base/file.h"

int ground_new(void **state) {
    Arena *a = arena_new();
    Ground *g = ARENA_NEW(a, Ground);
    *g = (Ground){a, diags_new(a)};
    *state = g;
    return 0;
}
int ground_gone(void **state) {
    Ground *g = *state;
    arena_free(g->a);
    return 0;
}
const Trace *ground_trace(Ground *g, const char *file, const char *more, bool events) {
    size_t n;
    char *text = file_read(g->a, g->d, file, 1 << 20, (Loc){0}, &n);
    assert_non_null(text);
    PlanRun r = plan_run_with(g->a, file, arena_printf(g->a, "%.*s\n%s", (int)n, text, more),
                              &(PipelineOptions){.events = events});
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    return r.t;
}
