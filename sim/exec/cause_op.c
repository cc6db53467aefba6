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
/* What the op (or another in its place, `as`) gives on the rank's own inputs; x.p NULL if it cannot
 * run. Its rounding is what two orders of one sum differ by. */
static StoryTold computes(const StoryCase *c, const Op *as, Positions how, int64_t rank,
                          OpCall *call) {
    StoryTold told = {0};
    if (!call_make(c->e, c->s, rank, call, c->tmp)) return told;
    if (as) call->op = as;
    call_positions(c->e, c->s, how, rank, call, c->tmp);
    DeviceKernel what = c->s->kind == ST_ADJOINT ? DEVICE_ADJOINT : DEVICE_FORWARD;
    Device *dev = c->e->dev;
    void *made = call->out.p = device_array(dev, tensor_count(&call->out), 8);
    /* where the run was made: equal bits are equal evidence there */
    if (c->e->kernels) device_lend(c->e->kernels, dev, call, what);
    else dev->call(dev, call, 1, what, NULL);
    Tensor host = dev->get(dev, &call->out, c->e->dtype);
    told.x = story_wide(c, &host, c->e->dtype, false);
    told.mag = story_wide(c, &host, c->e->dtype, true);
    dev->done(dev, &host);
    dev->release(dev, made);
    return told;
}
static bool computed_as(StoryCase *c, const Op *as, Positions how, double factor, double tol) {
    bool all = c->n_look > 0;
    for (int i = 0; i < c->n_look && all; i++) {
        OpCall call;
        c->tmp = arena_new();
        StoryTold told = computes(c, as, how, c->look[i], &call);
        Tensor got = story_held(c, c->out, c->look[i], false);
        all = told.x.p && tensor_count(&got) == tensor_count(&told.x) &&
              story_fits(c, &got, &told, factor, tol);
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
    int64_t most = 0;
    *k = NAN;
    for (int i = 0; i < c->n_look; i++) {
        OpCall call;
        c->tmp = arena_new();
        StoryTold told = computes(c, NULL, AT_GLOBAL, c->look[i], &call);
        Tensor got = story_held(c, c->out, c->look[i], false);
        const double *w = told.x.p, *g = got.p;
        for (int64_t j = 0;
             w && j < tensor_count(&got) && tensor_count(&got) == tensor_count(&told.x); j++)
            if (fabs(w[j]) > top) top = fabs(w[j]), *k = g[j] / w[j];
        if (tensor_count(&got) > most) most = tensor_count(&got);
        arena_free(c->tmp);
    }
    c->one = most <= 1;
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
            c->tmp = arena_new();
            Tensor a = story_held(c, r[k], c->look[i], false),
                   b = story_held(c, c->out, c->look[i], false);
            all = tensor_count(&a) == tensor_count(&b) &&
                  !memcmp(a.p, b.p, (size_t)tensor_count(&a) * 8);
            arena_free(c->tmp);
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
        c->tmp = arena_new();
        StoryTold told = {story_held(c, c->s->in[0], c->look[i], false),
                          story_held(c, c->s->in[0], c->look[i], true)};
        Tensor y = story_held(c, c->s->in[1], c->look[i], false),
               got = story_held(c, c->out, c->look[i], false);
        double *x = told.x.p, *mag = told.mag.p;
        all = tensor_count(&told.x) == tensor_count(&y) && tensor_count(&got) == tensor_count(&y);
        for (int64_t k = 0; all && k < tensor_count(&y); k++) {
            mag[k] = fabs(a) * mag[k] + fabs(b * ((double *)y.p)[k]);
            x[k] = a * x[k] + b * ((double *)y.p)[k];
        }
        all = all && story_fits(c, &got, &told, 1, c->tol);
        arena_free(c->tmp);
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
