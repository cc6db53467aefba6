/* Why is an input or a parameter wrong as it lies at rest? Which part of the source is it then?
 * Hypotheses as a table, in the order of evidence. */
#include "exec/cause.h"
#include "exec/source.h"
#include "exec/story.h"
#include <string.h>

/* ---- inputs and parameters at rest ---- */
/* The part of the source that another layout, or another way of reading, would give. */
static bool is_part(StoryCase *c, const Layout *L, ReadAct act) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        Region wb = region_whole(c->t);
        int64_t rank = c->look[i];
        Region lb = source_region(c->m, c->t, L, &act, rank, c->tmp);
        Tensor src = region_packed(&wb), x = story_filled(c, &lb, 0),
               got = story_held(c, c->out, rank, false);
        src.p = (void *)(uintptr_t)c->full;
        src = story_wide(c, &src, c->dt, false);
        region_copy((Block){&lb, &x}, (Block){&wb, &src}, DT_F64, COMBINE_COPY);
        all = tensor_count(&x) == tensor_count(&got) &&
              !memcmp(x.p, got.p, (size_t)tensor_count(&x) * 8);
        arena_free(c->tmp);
    }
    return all;
}
static AxisList cutting_axes(const Mesh *m, const Layout *l) {
    AxisList r = {0};
    for (int a = 0; a < m->naxes; a++)
        if (layout_where(l, a) >= 0 && m->axis[a].size > 1) r.a[r.n++] = (uint8_t)a;
    return r;
}
/* Ranks whose layout says that they hold one block, and who hold different ones: over which axes?
 */
static const char *copies_differ(StoryCase *c) {
    AxisList over = {0};
    const Layout *L = &c->e->p->val[c->out].L;
    for (int a = 0; a < c->m->naxes; a++) {
        bool differ = false;
        if (layout_where(L, a) >= 0 || c->m->axis[a].size == 1) continue;
        for (int i = 0; i < c->n_look && !differ; i++) {
            AxisList one = {.n = 1, .a = {(uint8_t)a}};
            c->tmp = arena_new();
            for (int64_t k = 0; k < c->m->axis[a].size && k < STORY_GROUP && !differ; k++) {
                Tensor x = story_held(c, c->out, c->look[i], false),
                       y = story_held(c, c->out, mesh_member(c->m, &one, c->look[i], k), false);
                if (!y.p) continue; /* of another stage */
                differ = tensor_count(&x) != tensor_count(&y) ||
                         memcmp(x.p, y.p, (size_t)tensor_count(&x) * 8) != 0;
            }
            arena_free(c->tmp);
        }
        if (differ) over.a[over.n++] = (uint8_t)a;
    }
    return over.n ? arena_printf(c->arena,
                                 "the ranks of %s should hold the same and hold different data",
                                 story_axes(c, &over))
                  : NULL;
}
static const char *other_rank(StoryCase *c) {
    for (int k = 1; k < c->n && k < STORY_GROUP; k++)
        if (is_part(c, &c->from, (ReadAct){.shift = k}))
            return arena_printf(c->arena,
                                k == 1 ? "each rank holds the block of the next rank of %s"
                                       : "each rank holds the block of another rank of %s",
                                c->name);
    return NULL;
}
static const char *
other_nesting(StoryCase *c) { /* a dim cut by several axes, cut by them in another order */
    const char *axes = NULL;
    for (int d = 0; d <= c->from.ndim; d++) {
        AxisList l = layout_dim_axes(&c->from, d);
        if (c->from.n[d] > 1) axes = story_axes(c, &l);
    }
    return axes && is_part(c, &c->from, (ReadAct){.nest = true})
               ? arena_printf(c->arena,
                              "its rows are those of another order of the "
                              "axes than %s: cut by the inner one first",
                              axes)
               : NULL;
}
static const char *other_order(StoryCase *c) {
    Layout L = story_plain(c->from);
    return is_part(c, &L, (ReadAct){0})
               ? arena_printf(
                     c->arena,
                     "it is cut into contiguous blocks where the layout has another order (%s)",
                     layout_order(&c->from))
               : NULL;
}
static const char *other_dim(StoryCase *c) {
    int right = c->axes.n == 1 ? layout_where(&c->from, c->axes.a[0]) : -1;
    for (int d = 0; right >= 0 && right < c->t->nd && d < c->t->nd; d++) {
        Layout L = c->from;
        layout_recut(&L, c->axes.a[0], d);
        if (d != right && is_part(c, &L, (ReadAct){0}))
            return arena_printf(c->arena, "%s is cut over %s, not %s: the block of another dim",
                                story_dim_name(c, d), c->name, story_dim_name(c, right));
    }
    return NULL;
}
static const char *(*const of_sources[])(StoryCase *) = {other_nesting, other_rank, other_order,
                                                         other_dim, copies_differ};
const char *cause_of_source(Arena *arena, Exec *e, int val, const void *full, const double *wrong) {
    StoryCase c = story_case(arena, e, NULL, val, wrong);
    c.from = c.to = e->p->val[val].L;
    c.axes = cutting_axes(c.m, &c.from);
    c.n = mesh_size(c.m, &c.axes);
    c.name = mesh_axes_text(c.m, arena, &c.axes, true);
    c.full = full;
    for (size_t i = 0; i < sizeof of_sources / sizeof *of_sources; i++) {
        const char *text = of_sources[i](&c);
        if (text) return text;
    }
    return "the shard is not the part of the source that its layout claims";
}
