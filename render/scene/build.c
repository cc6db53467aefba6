/* Figures that build up. See build.h. Nothing moves: what appears later has its room from the
 * start. */
#include "render/scene/build.h"
#include <stdlib.h>

static int ascending(const void *a, const void *b) {
    int x = *(const int *)a, y = *(const int *)b;
    return (x > y) - (x < y);
}
int build_steps(const Scene *s, const int **step) {
    int *all = ARENA_ARRAY(s->arena, int, s->n_marks + 1), n = 0, kept = 0;
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i].step > 0) all[n++] = s->marks[i].step;
    qsort(all, (size_t)n, sizeof *all, ascending);
    for (int i = 0; i < n; i++)
        if (!kept || all[kept - 1] != all[i]) all[kept++] = all[i];
    *step = all;
    return kept;
}

Scene *build_until(const Scene *s, int step) {
    Scene *page = arena_memdup(s->arena, s, sizeof *s);
    page->marks = ARENA_ARRAY(s->arena, Mark, s->n_marks + 1);
    page->n_marks = 0;
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i].step <= step) page->marks[page->n_marks++] = s->marks[i];
    return page;
}
