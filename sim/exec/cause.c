/* Why is a move wrong? Hypotheses as a table: each row tells a story (exec/story.h) and says so in
 * one sentence if it comes true on every wrong rank that is looked at. Rows stand in the order of
 * evidence: a row that explains more with less comes first. What no row explains gets a sentence
 * that claims nothing. */
#include "exec/cause.h"
#include "exec/story.h"
#include "exec/transfer.h"
#include <math.h>
#include <string.h>

/* ---- hypotheses about moves ---- */
static const char *rounding(StoryCase *c) {
    Story y = story_truth(c);
    double tol = c->tol;
    c->tol *= 16;
    bool fit = story_tells(c, &y);
    c->tol = 0;
    bool exact = fit && !c->sums && story_tells(c, &y);
    c->tol = tol;
    if (!fit) return NULL;
    if (exact)
        return "it is what the move gives of what the ranks hold, and they do not hold what they "
               "should";
    return c->sums ? "it differs by no more than another rounding or another order of the sum "
                     "gives, and beyond its bound"
                   : "it differs in the last bits only: what only copies has changed the numbers";
}
static const char *nothing_sent(StoryCase *c) {
    Story y = story_truth(c);
    y.act.times = 0;
    if (!move_relocates(c->s->move.kind) || !story_tells(c, &y)) return NULL;
    return arena_printf(c->arena, "nothing arrives over %s: the buffer for it holds zeros",
                        c->name);
}
/* A parameter after the step as it was before it. */
static const char *not_updated(StoryCase *c) {
    const Program *p = c->e->p;
    int old = c->t->next_of ? p->first[c->t->next_of - 1] : -1;
    bool all = old >= 0 && c->n_look > 0 && exec_store(c->e, old)->alive;
    for (int i = 0; i < c->n_look && all; i++) {
        StoryBlock got = story_open(c, c->out, c->look[i]), had = story_open(c, old, c->look[i]);
        all = got.there && had.there && story_same_shape(&got.t, &had.t);
        for (int64_t k = 0; k < got.n && all; k++) {
            const double x = story_read(&had, k);
            all = story_fits(c, story_read(&got, k), x, fabs(x), (StoryFit){1, 0});
        }
        story_close(c, &got);
        story_close(c, &had);
    }
    if (!all) return NULL;
    return arena_printf(c->arena,
                        "the update does not arrive over %s: the parameter is what it was before "
                        "the step",
                        c->name);
}
static const char *nothing_summed(StoryCase *c) {
    Story y = story_truth(c);
    y.act.times = 0;
    if (!c->sums || !story_tells(c, &y)) return NULL;
    if (c->max)
        return arena_printf(
            c->arena, "the maximum over %s is missing: each rank holds only that of its own part",
            c->name);
    if (c->to_cut)
        return arena_printf(c->arena,
                            "the sum over %s is missing: each rank keeps its slice of its own part "
                            "(a slice instead of a reduce-scatter)",
                            c->name);
    return arena_printf(c->arena,
                        "the sum over %s is missing: each rank passes on its own part, and the "
                        "parts add up to the right value",
                        c->name);
}
/* Its own tokens, shares of a mean, stand for all: n times what each rank has itself. */
static const char *own_part_for_all(StoryCase *c) {
    Story y = story_truth(c);
    y.act.kind = MOVE_ID;
    y.act.combine = COMBINE_COPY;
    y.act.scale = (double)c->n;
    if (!c->sums || c->max || c->to_cut || c->n < 2 || !story_tells(c, &y)) return NULL;
    return arena_printf(c->arena,
                        "the sum over %s is missing: each rank takes %lld times its own part for "
                        "the parts of all",
                        c->name, (long long)c->n);
}
/* What the rank holds over what it should, where that is largest so far. False: another shape. */
static bool largest_ratio(StoryCase *c, const Story *y, int64_t rank, double *top, double *k) {
    c->tmp = arena_new();
    StoryTelling w = story_begin(c, y, rank);
    StoryBlock got = story_open(c, c->out, rank);
    bool same = true;
    while (same && story_next(c, &w)) {
        same = got.there && story_same_shape(&got.t, &w.shape);
        for (int64_t i = 0; i < w.told.n && same; i++) {
            const double x = w.told.x[i];
            if (!(fabs(x) > *top) || !isfinite(x)) continue;
            *top = fabs(x), *k = story_read(&got, w.told.from + i) / x;
        }
    }
    c->one &= got.n <= 1;
    story_close(c, &got);
    story_end(&w);
    arena_free(c->tmp);
    return same;
}
/* got = factor * right value, on all elements of all ranks that are looked at. */
static bool constant_factor(StoryCase *c, double *factor) {
    Story y = story_truth(c);
    double k = NAN, top = 0;
    bool all = c->n_look > 0;
    c->one = true;
    for (int i = 0; i < c->n_look && all; i++) all = largest_ratio(c, &y, c->look[i], &top, &k);
    const StoryFit how = {k, story_factor_tolerance(c) / 10}, zero = {0};
    all &= isfinite(k);
    for (int i = 0; i < c->n_look && all; i++)
        all = story_tells_at(c, &y, c->look[i], k != 0 ? how : zero);
    *factor = k;
    return all;
}
static const char *a_factor(StoryCase *c) {
    double k;
    if (!constant_factor(c, &k)) return NULL;
    if (k == 0) return c->one ? "it is zero" : "it is zero everywhere: nothing arrives";
    if (story_near(c, k, (double)c->n) && c->n > 1 && c->sums && !c->max)
        return arena_printf(
            c->arena, "exactly %lld times too large: the sum over %s is counted on every rank",
            (long long)c->n, c->name);
    if (story_near(c, k, 1 / (double)c->n) && c->n > 1 && c->sums && !c->max)
        return arena_printf(c->arena,
                            "exactly 1/%lld of the right value: averaged over %s instead of summed",
                            (long long)c->n, c->name);
    const char *text = story_size_factor(c, k);
    if (text) return text;
    if (story_near(c, k, -1)) return "of the wrong sign";
    return c->one ? NULL : arena_printf(c->arena, "off by a constant factor of %.6g", k);
}
static const char *one_number(
    StoryCase *c) { /* the last resort for a scalar: a ratio of two numbers is little evidence */
    double k;
    return constant_factor(c, &k) && c->one ? arena_printf(c->arena, "off by a factor of %.6g", k)
                                            : NULL;
}
/* Sums over other axes than the declared ones: all that the numbers cannot tell apart. */
static const char *other_sum(StoryCase *c, const StorySets *sets) {
    StorySets lacks = {0}, more = {0};
    for (int i = 0; i < sets->n && i < STORY_SETS; i++) {
        AxisList less = story_minus(&c->axes, &sets->a[i]),
                 extra = story_minus(&sets->a[i], &c->axes);
        if (less.n) story_sets_add(&lacks, &less);
        if (extra.n) story_sets_add(&more, &extra);
    }
    const char *over = story_sets_text(c, sets, " or "),
               *done = c->max ? "the maximum is taken" : "summed";
    if (!more.n)
        return arena_printf(c->arena, "%s over %s only: that over %s is missing", done, over,
                            story_sets_text(c, &lacks, " or "));
    if (!lacks.n)
        return arena_printf(c->arena,
                            "%s over %s, where only %s is due: the values of %s are added too",
                            done, over, c->name, story_sets_text(c, &more, " or "));
    return arena_printf(c->arena, "%s over %s instead of %s", done, over, c->name);
}
/* Another group: first a part of the right one, then groups of other axes. */
static const char *another_group(StoryCase *c) {
    for (int pass = 0; c->sums && pass < 2; pass++) {
        AxisList l;
        StorySets sets = {0};
        for (int i = 0; story_axis_set(c->m, i, &l); i++) {
            AxisList lacks = story_minus(&c->axes, &l), more = story_minus(&l, &c->axes);
            if ((!lacks.n && !more.n) || (more.n > 0) != pass || mesh_size(c->m, &l) > STORY_GROUP)
                continue;
            Story y = story_truth(c);
            y.act.axes = l;
            if (story_tells(c, &y)) story_sets_add(&sets, &l);
        }
        if (sets.n) return other_sum(c, &sets);
    }
    return NULL;
}
static const char *largest_term(StoryCase *c) {
    Story y = story_truth(c);
    y.act.combine = COMBINE_MAX;
    return c->sums && !c->max && story_tells(c, &y)
               ? arena_printf(c->arena,
                              "the largest of the parts of %s instead of their sum: a maximum",
                              c->name)
               : NULL;
}
static const char *added_for_max(StoryCase *c) {
    Story y = story_truth(c);
    if (!c->max) return NULL;
    y.act.combine = COMBINE_SUM;
    c->tol = story_rounding(c, c->n);
    const char *text =
        story_tells(c, &y) ? "the parts of %s are added where their maximum is due" : NULL;
    y.act.combine = COMBINE_AVG;
    if (!text && story_tells(c, &y))
        text = "the mean of the parts of %s is taken where their maximum is due";
    c->tol = 0;
    return text ? arena_printf(c->arena, text, c->name) : NULL;
}
static const char *own_part_twice(StoryCase *c) {
    Story y = story_truth(c);
    y.own_too = true;
    return c->sums && !c->max && story_tells(c, &y)
               ? arena_printf(c->arena, "each rank's own part is counted twice in the sum over %s",
                              c->name)
               : NULL;
}
static const char *a_part_missing(StoryCase *c) {
    Story y = story_truth(c);
    for (y.without = 0; c->sums && y.without < c->n && y.without < STORY_GROUP; y.without++)
        if (story_tells(c, &y))
            return arena_printf(c->arena,
                                "the part of one rank, number %d of %s, is not in the sum",
                                y.without, c->name);
    return NULL;
}
static const char *shifted_text(const StoryCase *c, int by, bool out) {
    if (!out)
        return arena_printf(c->arena,
                            "the blocks of %s stand in the wrong order: each where that of the "
                            "rank %d after belongs",
                            c->name, by);
    if (by == 1)
        return arena_printf(c->arena, "it is the block of the next rank of %s, not the own",
                            c->name);
    return arena_printf(c->arena, "it is the block of the rank %d after in %s, not the own", by,
                        c->name);
}
static const char *neighbours_block(StoryCase *c) {
    for (int k = 1; k < c->n && k <= STORY_SHIFT; k++)
        for (int out = c->from_cut ? 0 : 1, last = c->to_cut ? 1 : 0; out <= last; out++) {
            Story y = story_truth(c);
            y.act.shift = out ? k : 0;
            y.turn = out ? 0 : k;
            if (story_tells(c, &y)) return shifted_text(c, k, out);
            y.turn = k; /* both: an exchange that reads and delivers one place off */
            if (out && c->from_cut && story_tells(c, &y)) return shifted_text(c, k, true);
        }
    return NULL;
}
/* Is stored dim 0 a list of what lies at rest, before or after the move? */
static bool listed(const StoryCase *c) {
    return c->from.n[c->from.ndim] > 0 || c->to.n[c->to.ndim] > 0;
}
static const char *gathers_elsewhere(StoryCase *c) {
    AxisList l;
    StorySets sets = {0};
    for (int i = 0; c->from_cut && story_axis_set(c->m, i, &l); i++) {
        Story y = story_truth(c);
        y.act.axes = l;
        if (mesh_size(c->m, &l) <= STORY_GROUP && story_minus(&l, &c->axes).n && story_tells(c, &y))
            story_sets_add(&sets, &l);
    }
    return sets.n ? arena_printf(c->arena, "the blocks come from the ranks of %s instead of %s",
                                 story_sets_text(c, &sets, " or "), c->name)
                  : NULL;
}
static const char *cut_by_another(StoryCase *c) {
    AxisList l;
    StorySets sets = {0};
    for (int i = 0; c->to_cut && !c->from_cut && story_axis_set(c->m, i, &l); i++) {
        Story y = story_truth(c);
        y.act.axes = l;
        if (story_minus(&l, &c->axes).n && story_tells(c, &y)) story_sets_add(&sets, &l);
    }
    return sets.n
               ? arena_printf(c->arena,
                              "each rank takes the part that its place in %s says, not that in %s",
                              story_sets_text(c, &sets, " or "), c->name)
               : NULL;
}
static const char *another_dim(StoryCase *c) {
    const Layout *cut = c->to_cut ? &c->to : &c->from;
    int right = c->axes.n ? layout_where(cut, c->axes.a[0]) : -1;
    for (int d = 0; !listed(c) && right >= 0 && right < c->t->nd && d < c->t->nd; d++) {
        Story y = story_truth(c);
        y.act.dim = d;
        if (d == right || !story_tells(c, &y)) continue;
        if (c->to_cut)
            return arena_printf(c->arena, "%s is cut over %s, not %s: the block of another dim",
                                story_dim_name(c, d), c->name, story_dim_name(c, right));
        return arena_printf(c->arena, "the blocks are put together along %s, not %s",
                            story_dim_name(c, d), story_dim_name(c, right));
    }
    return NULL;
}
static const char *plain_order(StoryCase *c) {
    Story y = story_truth(c);
    y.plain = true;
    return story_tells(c, &y)
               ? arena_printf(c->arena,
                              "its blocks lie in contiguous order where the layout has another "
                              "(%s)",
                              layout_order(c->from_cut ? &c->from : &c->to))
               : NULL;
}
/* Is element i of `got` that of the block `own`, repeated in every dim? */
static bool is_tile(const StoryBlock *got, const StoryBlock *own, int64_t i) {
    int64_t o = 0;
    for (int d = 0; d < got->t.nd; d++)
        o += i / got->packed.s[d] % got->t.n[d] % own->t.n[d] * own->packed.s[d];
    return story_read(got, i) == story_read(own, o);
}
static bool holds_tiles(StoryCase *c,
                        int64_t rank) { /* the own block repeated until the shape is full */
    StoryBlock own = story_open(c, c->in, rank), got = story_open(c, c->out, rank);
    bool same = own.there && got.there && own.t.nd == got.t.nd && own.n > 0;
    if (graph_is_list(c->t)) { /* of a list repeated each row stands once */
        same &= got.n <= own.n;
        for (int64_t i = 0; i < got.n && same; i++)
            same = story_same_number(story_read(&own, i), story_read(&got, i));
    } else
        for (int64_t i = 0; i < got.n && same; i++) same = is_tile(&got, &own, i);
    story_close(c, &own);
    story_close(c, &got);
    return same;
}
static const char *nothing_gathered(StoryCase *c) {
    bool all = c->from_cut;
    for (int i = 0; i < c->n_look && all; i++) all = holds_tiles(c, c->look[i]);
    bool hop = c->s->kind == ST_MOVE && c->s->move.kind == MOVE_SHIFT;
    if (all && hop)
        return arena_printf(c->arena,
                            "the hop over %s is left out: each rank keeps the block that it had",
                            c->name);
    return all ? arena_printf(
                     c->arena,
                     "nothing is gathered over %s: each rank goes on with its own block, repeated",
                     c->name)
               : NULL;
}
static const char *nothing_cut(StoryCase *c) { /* still all of what it was to be a part of */
    bool all = c->to_cut && !c->sums;
    for (int i = 0; i < c->n_look && all; i++) {
        StoryBlock a = story_open(c, c->in, c->look[i]), b = story_open(c, c->out, c->look[i]);
        all = story_same(&a, &b);
        story_close(c, &a);
        story_close(c, &b);
    }
    return all ? arena_printf(c->arena,
                              "nothing is cut over %s: each rank goes on with all that it had",
                              c->name)
               : NULL;
}
/* Sizes divided with the remainder thrown away: what lies behind n equal blocks is missing, and all
 * else is right. */
static const char *tail_dropped(StoryCase *c) {
    Story y = story_truth(c);
    Pieces x = story_pieces(c, &y);
    int64_t whole, n;
    int d = listed(c) || !c->axes.n ? -1 : pieces_tail(&x, &n, &whole);
    y.act.floor = true;
    if (d < 0 || whole == c->t->size[d] || !story_tells(c, &y)) return NULL;
    return arena_printf(c->arena,
                        "the last %lld of %lld are missing: %lld does not divide them, and the "
                        "rest was dropped",
                        (long long)(c->t->size[d] - whole), (long long)c->t->size[d], (long long)n);
}
/* ---- one rank alone ---- */
static bool goes_on_alone(StoryCase *c, int64_t rank) {
    StoryCase one = *c;
    Story y = story_truth(c);
    y.act.times = 0;
    one.look[0] = rank;
    one.n_look = 1;
    return c->from_cut ? holds_tiles(&one, rank) : story_tells(&one, &y);
}
/* Are the wrong ranks all of one group? */
static bool one_group(const StoryCase *c) {
    bool same = c->n_look > 0 && c->n <= STORY_LOOK && c->n_look <= c->n;
    for (int i = 1; i < c->n_look && same; i++)
        same = mesh_member(c->m, &c->axes, c->look[i], 0) ==
               mesh_member(c->m, &c->axes, c->look[0], 0);
    return same;
}
static const char *one_alone(StoryCase *c) {
    if (c->n_look != 1 || c->n < 2 || !(c->sums || c->from_cut) || !goes_on_alone(c, c->look[0]))
        return NULL;
    return arena_printf(c->arena,
                        "rank %lld alone goes on with its own part: the others have what %s makes "
                        "of all",
                        (long long)c->look[0], c->name);
}
/* Would the wrong ranks, but for that one, hold what they do if it had handed nothing in? */
static bool lack_its_part(const StoryCase *c, int64_t rank, bool *wrong) {
    StoryCase others = *c;
    Story y = story_truth(c);
    y.act.alone = rank + 1;
    y.act.absent = true;
    y.act.times = 0;
    *wrong = false;
    for (int i = others.n_look - 1; i >= 0; i--)
        if (others.look[i] == rank) others.look[i] = others.look[--others.n_look], *wrong = true;
    return story_tells(&others, &y);
}
/* A rank that hands nothing in, and goes on with what it has: that may be all that it was to get.
 */
static const char *takes_no_part(StoryCase *c) {
    bool wrong;
    for (int64_t i = 0; c->n > 1 && (c->sums || c->from_cut) && one_group(c) && i < c->n; i++) {
        int64_t rank = mesh_member(c->m, &c->axes, c->look[0], i);
        if (!lack_its_part(c, rank, &wrong) || (wrong && !goes_on_alone(c, rank))) continue;
        if (!wrong)
            return arena_printf(c->arena,
                                "rank %lld takes no part over %s: the others lack its part",
                                (long long)rank, c->name);
        return arena_printf(c->arena,
                            "rank %lld takes no part over %s: it goes on with its own part, which "
                            "the others lack",
                            (long long)rank, c->name);
    }
    return NULL;
}
static const char *neighbours_counts(StoryCase *c) {
    Story y = story_truth(c);
    y.act.counts = true;
    bool rows = c->from_cut && c->t->listed && !graph_is_list(c->t);
    return rows && story_tells(c, &y)
               ? arena_printf(c->arena,
                              "its rows are told apart by the counts of the next rank of %s",
                              c->name)
               : NULL;
}
static const char *unknown(const StoryCase *c) {
    if (c->max)
        return arena_printf(
            c->arena, "the parts of %s have the right maximum, what arrives is another", c->name);
    if (c->sums)
        return arena_printf(c->arena,
                            "the parts of %s add up to the right value, what arrives is another",
                            c->name);
    return arena_printf(c->arena, "what arrives is not the block that the layout claims over %s",
                        c->name);
}

/* In the order of evidence. */
static const char *(*const of_moves[])(StoryCase *) = {
    rounding,         one_alone,        not_updated,      nothing_sent,      nothing_summed,
    own_part_for_all, nothing_gathered, nothing_cut,      a_factor,          another_group,
    largest_term,     added_for_max,    neighbours_block, takes_no_part,     neighbours_counts,
    tail_dropped,     plain_order,      another_dim,      gathers_elsewhere, cut_by_another,
    own_part_twice,   a_part_missing,   one_number,
};

static const char *cause_of_claim(Arena *arena, const Program *p, const Step *s, const char *axes,
                                  int64_t n) {
    int tf = s->move.axes.n ? s->move.from.type[s->move.axes.a[0]] : TY_I;
    if (tf == TY_M)
        return arena_printf(
            arena, "the maximum over %s is missing: each rank holds only that of its own part",
            axes);
    if (tf == TY_P)
        return arena_printf(arena, "the sum over %s is missing: each rank holds only its own part",
                            axes);
    if (s->move.axes.n && s->move.to.type[s->move.axes.a[0]] == TY_P)
        return arena_printf(
            arena,
            "it is whole on every rank and taken for a share: the sum over %s counts it %lld times",
            axes, (long long)n);
    const char *lies = program_symbolic(p, &p->val[s->in[0]], arena),
               *said = program_symbolic(p, &p->val[s->out], arena);
    if (strcmp(lies, said))
        return arena_printf(arena, "the label is false: it lies as %s and is taken for %s", lies,
                            said);
    return arena_printf(arena, "the label is false: blocks in %s order are taken for %s ones",
                        layout_order(&p->val[s->in[0]].L), layout_order(&p->val[s->out].L));
}
/* Into a pending sum: the shares must add up to the value. */
static const char *cause_of_spread(StoryCase *c) {
    Story y = story_truth(c);
    y.act.times = 0;
    if (story_tells(c, &y))
        return arena_printf(
            c->arena,
            "it is whole on every rank instead of on one: the sum over %s counts it %lld times",
            c->name, (long long)c->n);
    return arena_printf(c->arena, "the shares of %s do not add up to the value", c->name);
}
const char *cause_of_move(Arena *arena, Exec *e, const Step *s, const double *wrong) {
    StoryCase c = story_case(arena, e, s, s->out, wrong);
    int a0 = s->move.axes.n ? s->move.axes.a[0] : 0, tf = s->move.from.type[a0],
        tt = s->move.to.type[a0];
    c.in = s->in[0];
    c.axes = s->move.axes;
    c.n = mesh_size(c.m, &c.axes);
    c.name = program_axes_name(e->p, s, arena);
    if (s->kind == ST_CLAIM) return cause_of_claim(arena, e->p, s, c.name, c.n);
    c.from = s->move.from, c.to = s->move.to;
    c.sums = tf == TY_P || tf == TY_M, c.max = tf == TY_M;
    c.from_cut = tf == TY_V, c.to_cut = tt == TY_V;
    c.tol = c.sums && !c.max ? story_rounding(&c, c.n) : 0;
    if (tt == TY_P) return cause_of_spread(&c);
    for (size_t i = 0; i < sizeof of_moves / sizeof *of_moves; i++) {
        const char *text = of_moves[i](&c);
        if (text) return text;
    }
    return unknown(&c);
}
