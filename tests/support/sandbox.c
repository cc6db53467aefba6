/* The folder lies in /tmp; what a test leaves in it goes with it. */
#include "sandbox.h"
#include "child.h"
#include <stdlib.h>
#include <string.h>

Arena *arena;
char dir[32];
const char *in(const char *name) { return arena_printf(arena, "%s/%s", dir, name); }
const char *put(const char *name, const char *text) {
    const char *path = in(name);
    child_write(path, text);
    return path;
}
int sandbox_new(void **state) {
    (void)state;
    arena = arena_new();
    strcpy(dir, "/tmp/sp_test_XXXXXX");
    return mkdtemp(dir) ? 0 : -1;
}
int sandbox_plan(void **state) {
    if (sandbox_new(state) != 0) return -1;
    put("plan.yaml", SMALL_PLAN);
    return 0;
}
int sandbox_gone(void **state) {
    (void)state;
    int r = system(arena_printf(arena, "rm -rf '%s'", dir));
    arena_free(arena);
    return r;
}
