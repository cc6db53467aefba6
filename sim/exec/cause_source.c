/* Why is an input or a parameter wrong as it lies at rest? Which part of the source is it then?
 * Hypotheses as a table, in the order of evidence. */
#include "exec/cause.h"
#include "exec/compare.h"
#include "exec/source.h"
#include "exec/story.h"

/* ---- inputs and parameters at rest ---- */
/* The part of the source that another layout, or another way of reading, would give. */
/* Elements of the source, into x. */
static bool read_source(const StoryCase *c, const Region *part, Tensor *x) {
    const CauseSource *from = c->source;
    if (!from->full) return from->some(from->arg, c->e->p->val[c->out].tensor, c->dt, part, x->p);
    const Region all = region_whole(c->t);
    Tensor whole = region_packed(&all);
    whole.p = (void *)(uintptr_t)from->full;
    region_copy((Block){part, x}, (Block){&all, &whole}, c->dt, COMBINE_COPY);
    return true;
}
static bool is_part_at(StoryCase *c, const Layout *L, ReadAct act, int64_t rank) {
    const Region lb = source_region(c->m, c->t, L, &act, rank, c->tmp);
    const Tensor due = region_packed(&lb);
    StoryBlock got = story_open(c, c->out, rank);
    bool same = got.there && got.n == tensor_count(&due);
    for (int64_t from = 0, n; same && from < got.n; from += n) {
        Arena *tmp = arena_new();
        const Region part = story_slice(&lb, from);
        Tensor x = region_packed(&part);
        n = tensor_count(&x);
        x.p = arena_alloc(tmp, base_mul((size_t)n, (size_t)dtype_size(c->dt)));
        same = read_source(c, &part, &x);
        for (int64_t i = 0; i < n && same; i++)
            same = story_same_number(compare_at(x.p, c->dt, i), story_read(&got, from + i));
        arena_free(tmp);
    }
    story_close(c, &got);
    return same;
}
static bool is_part(StoryCase *c, const Layout *L, ReadAct act) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        all = is_part_at(c, L, act, c->look[i]);
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
            for (int64_t k = 0; k < c->m->axis[a].size && k < STORY_GROUP && !differ; k++) {
                StoryBlock x = story_open(c, c->out, c->look[i]),
                           y = story_open(c, c->out, mesh_member(c->m, &one, c->look[i], k));
                differ = y.there && !story_same(&x, &y); /* not there: of another stage */
                story_close(c, &x);
                story_close(c, &y);
            }
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
const char *cause_of_source(Arena *arena, Exec *e, int val, const CauseSource *source,
                            const double *wrong) {
    StoryCase c = story_case(arena, e, NULL, val, wrong);
    c.from = c.to = e->p->val[val].L;
    c.axes = cutting_axes(c.m, &c.from);
    c.n = mesh_size(c.m, &c.axes);
    c.name = mesh_axes_text(c.m, arena, &c.axes, true);
    c.source = source;
    for (size_t i = 0; i < sizeof of_sources / sizeof *of_sources; i++) {
        const char *text = of_sources[i](&c);
        if (text) return text;
    }
    return "the shard is not the part of the source that its layout claims";
}
