/* Why is an op, or a sum of two values, wrong? The kernel is run again on the rank's own inputs, as
 * planned and as one could have got it wrong; hypotheses as a table, in the order of evidence. */
#include "exec/call.h"
#include "exec/cause.h"
#include "exec/story.h"
#include "ops/op.h"
#include <math.h>
#include <string.h>

/* ---- ops: the kernel again, on the rank's own inputs ---- */
static const struct {
    char letter;
    const char *what;
} counted[] = {{'t', "positions are"},
               {'s', "positions are"},
               {'u', "positions are"},
               {'v', "ids of the vocabulary are"}};
static const char *what_is_counted(const OpCall *call) {
    for (size_t i = 0; i < sizeof counted / sizeof *counted; i++)
        if (call->op->asks & RULE_BIT(counted[i].letter)) return counted[i].what;
    return "indices are";
}
/* What the op (or another in its place, `as`) gives on the rank's own inputs, to be read on the
 * host; not there if it cannot run. */
typedef struct {
    StoryBlock block;
    void *made;
} Made;
static Made made_as(const StoryCase *c, const Op *as, Positions how, int64_t rank) {
    OpCall call;
    if (!call_make(c->e, c->s, rank, &call, c->tmp)) return (Made){0};
    if (as) call.op = as;
    call_positions(c->e, c->s, how, rank, &call, c->tmp);
    DeviceKernel what = c->s->kind == ST_ADJOINT ? DEVICE_ADJOINT : DEVICE_FORWARD;
    Device *dev = c->e->dev;
    void *made = call.out.p =
        device_array(dev, tensor_count(&call.out), dtype_size(exec_dtype(c->e, c->out)));
    /* where the run was made: equal bits are equal evidence there */
    if (c->e->kernels) device_lend(c->e->kernels, dev, &call, what);
    else dev->call(dev, &call, 1, what, NULL);
    return (Made){story_open_tensor(c, &call.out, exec_dtype(c->e, c->out)), made};
}
static void made_end(const StoryCase *c, Made *m) {
    story_close(c, &m->block);
    c->e->dev->release(c->e->dev, m->made);
}
static bool computed_as(StoryCase *c, const Op *as, Positions how, double factor, double tol) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        c->tmp = arena_new();
        Made m = made_as(c, as, how, c->look[i]);
        StoryBlock got = story_open(c, c->out, c->look[i]);
        all = m.block.there && got.there && got.n == m.block.n;
        for (int64_t k = 0; k < got.n && all; k++) {
            /* its rounding is what two orders of one sum differ by */
            const double x = story_read(&m.block, k);
            all = story_fits(c, story_read(&got, k), x, fabs(x), (StoryFit){factor, tol});
        }
        story_close(c, &got);
        made_end(c, &m);
        arena_free(c->tmp);
    }
    return all;
}
static bool computed(StoryCase *c, Positions how, double factor, double tol) {
    return computed_as(c, NULL, how, factor, tol);
}
static const char *from_its_inputs(StoryCase *c) {
    return computed(c, AT_GLOBAL, 1, 0) ? "it is what the op gives on the rank's own inputs, but "
                                          "ranks that should hold the same inputs do not"
                                        : NULL;
}
static const char *op_rounding(StoryCase *c) {
    return computed(c, AT_GLOBAL, 1, c->tol * 16)
               ? "it differs by no more than rounding from what the op gives: another kernel, "
                 "precision or order of the sum"
               : NULL;
}
/* The order in which the operands lie; of an adjoint its cotangent. */
static const char *order_of(const StoryCase *c) {
    return layout_order(&c->e->p->val[c->s->in[0]].L);
}
static const char *counted_here(StoryCase *c) {
    const Op *op = c->e->p->graph->node[c->s->node].op;
    OpCall asks = {.op = op};
    if (!op->asks) return NULL;
    if (computed(c, AT_LOCAL, 1, c->tol * 16))
        return arena_printf(c->arena,
                            "%s counted from 0 on each rank: local where global ones are due",
                            what_is_counted(&asks));
    if (computed(c, AT_CONTIGUOUS, 1, c->tol * 16))
        return arena_printf(c->arena,
                            "%s those of contiguous blocks, and the data lie in another order (%s)",
                            what_is_counted(&asks), order_of(c));
    return NULL;
}
static const char *without_weights(StoryCase *c) {
    const Op *op = c->e->p->graph->node[c->s->node].op;
    bool plain = c->s->kind == ST_OP && op->unweighted &&
                 computed_as(c, op->unweighted, AT_GLOBAL, 1, c->tol * 16);
    return plain ? "its terms are added as they are: what each weighs (lse) does not rescale them"
                 : NULL;
}
static bool op_factor(StoryCase *c, double *k) {
    double top = 0;
    *k = NAN;
    c->one = true;
    for (int i = 0; i < c->n_look; i++) {
        c->tmp = arena_new();
        Made m = made_as(c, NULL, AT_GLOBAL, c->look[i]);
        StoryBlock got = story_open(c, c->out, c->look[i]);
        for (int64_t j = 0; m.block.there && got.n == m.block.n && j < got.n; j++) {
            const double x = story_read(&m.block, j);
            if (fabs(x) > top) top = fabs(x), *k = story_read(&got, j) / x;
        }
        c->one &= got.n <= 1;
        story_close(c, &got);
        made_end(c, &m);
        arena_free(c->tmp);
    }
    return isfinite(*k) && computed(c, AT_GLOBAL, *k, *k != 0 ? story_factor_tolerance(c) / 10 : 0);
}
static const char *op_is_scaled(StoryCase *c) {
    double k;
    if (!op_factor(c, &k)) return NULL;
    if (k == 0) return "it is zero everywhere: nothing arrives";
    const char *text = story_size_factor(c, k);
    if (text) return text;
    return story_near(c, k, -1)
               ? "of the wrong sign"
               : arena_printf(
                     c->arena,
                     c->one ? "off by a factor of %.6g" : "off by a constant factor of %.6g", k);
}
static const char *not_applied(StoryCase *c) { /* an operand goes through as it is */
    int r[RULE_MAX_IN + 2], n = step_reads(c->s, r);
    for (int k = 0; k < n; k++) {
        bool all = c->n_look > 0;
        for (int i = 0; i < c->n_look && all; i++) {
            StoryBlock a = story_open(c, r[k], c->look[i]), b = story_open(c, c->out, c->look[i]);
            all = story_same(&a, &b);
            story_close(c, &a);
            story_close(c, &b);
        }
        const char *label = c->e->p->graph->node[c->s->node].label;
        if (all)
            return arena_printf(c->arena,
                                "its input goes through unchanged: the op (%s) is not applied",
                                label ? label : "?");
    }
    return NULL;
}
static const char *(*const of_ops[])(StoryCase *) = {from_its_inputs, op_rounding, counted_here,
                                                     without_weights, not_applied, op_is_scaled};
const char *cause_of_op(Arena *arena, Exec *e, const Step *s, const double *wrong) {
    StoryCase c = story_case(arena, e, s, s->out, wrong);
    c.tol = story_rounding(&c, 0);
    for (size_t i = 0; i < sizeof of_ops / sizeof *of_ops; i++) {
        const char *text = of_ops[i](&c);
        if (text) return text;
    }
    return "a rank's part is not what the op gives on the ranks' own inputs: positions, order or "
           "the kernel";
}

/* ---- a sum of two values ---- */
static bool is_sum(StoryCase *c, double a, double b) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        StoryBlock x = story_open(c, c->s->in[0], c->look[i]),
                   y = story_open(c, c->s->in[1], c->look[i]),
                   got = story_open(c, c->out, c->look[i]);
        all = x.there && y.there && got.there && x.n == y.n && got.n == y.n;
        for (int64_t k = 0; all && k < got.n; k++) {
            const double p = a * story_read(&x, k), q = b * story_read(&y, k);
            all =
                story_fits(c, story_read(&got, k), p + q, fabs(p) + fabs(q), (StoryFit){1, c->tol});
        }
        story_close(c, &x);
        story_close(c, &y);
        story_close(c, &got);
    }
    return all;
}
const char *cause_of_sum(Arena *arena, Exec *e, const Step *s, const double *wrong) {
    static const struct {
        double a, b;
        const char *text;
    } rows[] = {
        {1, 1,
         "it is the sum of the rank's own terms, but ranks that should hold the same terms do not"},
        {1, 0, "the second of its two terms is missing"},
        {0, 1, "the first of its two terms is missing"},
        {2, 1, "the first of its two terms is counted twice"},
        {1, 2, "the second of its two terms is counted twice"},
        {1, -1, "one of its two terms has the wrong sign"},
        {0.5, 0.5, "the mean of its two terms instead of their sum"}};
    StoryCase c = story_case(arena, e, s, s->out, wrong);
    c.tol = story_rounding(&c, 2);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (is_sum(&c, rows[i].a, rows[i].b)) return rows[i].text;
    return "the terms do not add up";
}
