/* Ops over the vocabulary: embedding lookup and the steps of a vocabulary-parallel cross entropy. A
 * rank holds some rows v of the table; ids of other ranks give zeros, so the sum over ranks is the
 * lookup. */
#include "ops/util.h"
#include <math.h>

static int64_t int_at(const Tensor *t, int nd, const int64_t *i) {
    return ((const int64_t *)t->p)[box_offset(t, nd, i)];
}

/* ---- embed "vd,bt->btd", and position "pd,bt->btd": the row of a token's position in its
 * document, whatever its id (GPT-2's learned positions) ---- */
extern const Op op_position;
/* The local row of the table for token i = (b, t); -1: another rank has it. */
static int64_t table_row(const OpCall *c, const int64_t *i) {
    int64_t id = c->op == &op_position ? op_position_in(c, i[0], i[1]) : int_at(&c->in[1], 2, i);
    return op_local_position(c, c->rule->in[0][0], id);
}
static void embed_forward(const OpCall *c) {
    int64_t i[3] = {0};
    if (box_empty(&c->out)) return;
    do {
        int64_t v = table_row(c, i);
        double x =
            v < 0 ? 0 : el_get(&c->in[0], c->dtype, v * c->in[0].s[0] + i[2] * c->in[0].s[1]);
        el_set(&c->out, c->dtype, box_offset(&c->out, 3, i), x);
    } while (box_next(3, c->out.n, i));
}
static void
embed_adjoint(const OpCall *c) { /* scatter-add of the cotangent's rows, tokens in order */
    int64_t i[3] = {0}, j[2] = {0};
    if (!box_empty(&c->out)) do
            el_set(&c->out, c->dtype, box_offset(&c->out, 2, j), 0);
        while (box_next(2, c->out.n, j));
    if (box_empty(&c->cot) || box_empty(&c->out)) return;
    do {
        int64_t v = table_row(c, i);
        if (v < 0) continue;
        int64_t o = v * c->out.s[0] + i[2] * c->out.s[1];
        el_set(&c->out, c->dtype, o,
               el_get(&c->out, c->dtype, o) + el_get(&c->cot, c->dtype, box_offset(&c->cot, 3, i)));
    } while (box_next(3, c->cot.n, i));
}
static void embed_bound(const OpBound *b) {
    int64_t n = tensor_count(&b->call.out);
    double g = 0;
    if (b->operand == 0)
        for (int64_t i = 0; i < tensor_count(&b->call.cot); i++)
            g += fabs(((const double *)b->call.cot.p)[i]);
    for (int64_t i = 0; i < n; i++)
        b->bound[i] = b->prob[i] =
            b->operand < 0 ? 0 : gamma_n((double)(b->call.cot.n[0] * b->call.cot.n[1]), b->u) * g;
}
const Op op_embed = {
    .name = "embed",
    .rule = "vd,bt->btd",
    .lin = LIN_SET,
    .lin_set = 1,
    .nodiff = 2,
    .picks = RULE_BIT('v'),
    .asks = RULE_BIT('v'),
    .forward = embed_forward,
    .adjoint = embed_adjoint,
    .bound = embed_bound,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .label = "embedding",
};

const Op op_position = {
    .name = "position",
    .rule = "pd,bt->btd",
    .lin = LIN_SET,
    .lin_set = 1,
    .nodiff = 2,
    .picks = RULE_BIT('p'),
    .asks = RULE_BIT('p') | RULE_BIT('t'),
    .forward = embed_forward,
    .adjoint = embed_adjoint,
    .bound = embed_bound,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .label = "positions",
};

/* ---- rows of logits: "btv->bt" and friends. at->factor: ids from there on are padding and count
 * nowhere; 0: none are ---- */
#define FOR_TOKENS(c)                                                                              \
    for (int64_t b_ = 0; b_ < (c)->in[0].n[0]; b_++)                                               \
        for (int64_t t_ = 0; t_ < (c)->in[0].n[1]; t_++)
static double logit(const OpCall *c, int64_t b, int64_t t, int64_t v) {
    const Tensor *z = &c->in[0];
    return el_get(z, c->dtype, b * z->s[0] + t * z->s[1] + v * z->s[2]);
}
static double token(const Tensor *x, Dtype d, int64_t b, int64_t t) {
    return el_get(x, d, b * x->s[0] + t * x->s[1]);
}
static void put(const OpCall *c, int64_t b, int64_t t, double v) {
    el_set(&c->out, c->dtype, b * c->out.s[0] + t * c->out.s[1], v);
}

/* How many of the rank's entries of a row are no padding (index lists ascend), at least 0. */
static int64_t unpadded(const OpCall *c, int64_t n) {
    while (c->at->factor > 0 && n > 0 && (double)global_index(c, 'v', n - 1) >= c->at->factor) n--;
    return n;
}

static void max_forward(const OpCall *c) {
    int64_t n = unpadded(c, c->in[0].n[2]);
    FOR_TOKENS(c) {
        double m = -INFINITY; /* an empty shard of the vocabulary */
        for (int64_t v = 0; v < n; v++) m = fmax(m, logit(c, b_, t_, v));
        put(c, b_, t_, m);
    }
}
const Op op_rowmax = {
    .name = "rowmax",
    .rule = "btv->bt",
    .lin = LIN_NONE,
    .nodiff = 1,
    .max = true,
    .asks = RULE_BIT('v'),
    .forward = max_forward,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .flops_each = 1,
    .label = "max over V",
    .glyph = "loss",
};

static void sumexp_forward(const OpCall *c) {
    int64_t n = unpadded(c, c->in[0].n[2]);
    FOR_TOKENS(c) {
        double s = 0, m = token(&c->in[1], c->dtype, b_, t_);
        for (int64_t v = 0; v < n; v++) s += exp(logit(c, b_, t_, v) - m);
        put(c, b_, t_, s);
    }
}
static void put_logit(const OpCall *c, int64_t b, int64_t t, int64_t v, double x) {
    el_set(&c->out, c->dtype, b * c->out.s[0] + t * c->out.s[1] + v * c->out.s[2], x);
}
static void sumexp_adjoint(const OpCall *c) {
    int64_t n = unpadded(c, c->in[0].n[2]);
    FOR_TOKENS(c) {
        double m = token(&c->in[1], c->dtype, b_, t_), g = token(&c->cot, c->dtype, b_, t_);
        for (int64_t v = 0; v < c->in[0].n[2]; v++)
            put_logit(c, b_, t_, v, v < n ? g * exp(logit(c, b_, t_, v) - m) : 0);
    }
}
static void sumexp_bound(const OpBound *b) {
    int64_t n = tensor_count(&b->call.out), V = b->call.in[0].n[2];
    const double *y = b->call.out.p, *z = b->call.in[0].p;
    double zm = 0;
    for (int64_t i = 0; i < tensor_count(&b->call.in[0]); i++) zm = fmax(zm, fabs(z[i]));
    for (int64_t i = 0; i < n; i++)
        b->bound[i] = b->prob[i] =
            fabs(y[i]) * (gamma_n((double)V + 8, b->u) + 4 * b->u * zm) + 0x1p-140;
}
static void
sumexp_exact(const OpCall *c) { /* a sum over v of an integer map of logit and maximum */
    int64_t n = unpadded(c, c->in[0].n[2]);
    FOR_TOKENS(c) {
        double s = 0, m = token(&c->in[1], c->dtype, b_, t_);
        for (int64_t v = 0; v < n; v++) s += fmod(7 * logit(c, b_, t_, v) + 3 * m + 1, 31);
        put(c, b_, t_, s);
    }
}
static double sumexp_flops(const OpCall *c) { return 3 * (double)tensor_count(&c->in[0]); }
const Op op_sumexp = {
    .name = "sumexp",
    .rule = "btv,bt->bt",
    .lin = LIN_NONE,
    .nodiff = 2,
    .asks = RULE_BIT('v'),
    .forward = sumexp_forward,
    .adjoint = sumexp_adjoint,
    .bound = sumexp_bound,
    .exact = sumexp_exact,
    .exact_adjoint = op_exact_adjoint,
    .flops = sumexp_flops,
    .label = "sum of exp over V",
    .glyph = "loss",
};

/* the sum of the logits themselves, for label smoothing */
static void rowsum_forward(const OpCall *c) {
    int64_t n = unpadded(c, c->in[0].n[2]);
    FOR_TOKENS(c) {
        double s = 0;
        for (int64_t v = 0; v < n; v++) s += logit(c, b_, t_, v);
        put(c, b_, t_, s);
    }
}
static void rowsum_adjoint(const OpCall *c) {
    int64_t n = unpadded(c, c->out.n[2]);
    FOR_TOKENS(c)
    for (int64_t v = 0; v < c->out.n[2]; v++)
        put_logit(c, b_, t_, v, v < n ? token(&c->cot, c->dtype, b_, t_) : 0);
}
static void rowsum_bound(const OpBound *b) {
    int64_t n = tensor_count(&b->call.out), V = b->call.in[0].n[2];
    const double *z = b->call.in[0].p;
    for (int64_t i = 0; i < n; i++) {
        double s = 0;
        /* the adjoint copies */
        for (int64_t v = 0; b->operand < 0 && v < V; v++) s += fabs(z[i * V + v]);
        b->bound[i] = b->prob[i] = gamma_n((double)V + 1, b->u) * s;
    }
}
const Op op_rowsum = {
    .name = "rowsum",
    .rule = "btv->bt",
    .lin = LIN_SET,
    .lin_set = 1,
    .asks = RULE_BIT('v'),
    .forward = rowsum_forward,
    .adjoint = rowsum_adjoint,
    .bound = rowsum_bound,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .flops_each = 1,
    .label = "sum over V",
    .glyph = "loss",
};

static void pick_forward(const OpCall *c) {
    FOR_TOKENS(c) {
        int64_t i[2] = {b_, t_}, v = op_local_position(c, 'v', int_at(&c->in[1], 2, i));
        put(c, b_, t_, v < 0 ? 0 : logit(c, b_, t_, v));
    }
}
static void pick_adjoint(const OpCall *c) {
    FOR_TOKENS(c) {
        int64_t i[2] = {b_, t_}, at = op_local_position(c, 'v', int_at(&c->in[1], 2, i));
        for (int64_t v = 0; v < c->out.n[2]; v++)
            put_logit(c, b_, t_, v, v == at ? token(&c->cot, c->dtype, b_, t_) : 0);
    }
}
const Op op_pick = {
    .name = "pick",
    .rule = "btv,bt->bt",
    .lin = LIN_SET,
    .lin_set = 1,
    .nodiff = 2,
    .picks = RULE_BIT('v'),
    .asks = RULE_BIT('v'),
    .forward = pick_forward,
    .adjoint = pick_adjoint,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .label = "target logit",
    .glyph = "loss",
};

/* ---- nll "bt,bt,bt,bt->bt": log(sum) + max - target, 0 where the label is the ignored one ---- */
static bool counts(const OpCall *c, int64_t b, int64_t t) {
    int64_t i[2] = {b, t};
    return (double)int_at(&c->in[3], 2, i) != c->at->ignore;
}
static void nll_forward(const OpCall *c) {
    FOR_TOKENS(c) {
        double y = log(token(&c->in[0], c->dtype, b_, t_)) + token(&c->in[1], c->dtype, b_, t_) -
                   token(&c->in[2], c->dtype, b_, t_);
        put(c, b_, t_, counts(c, b_, t_) ? y : 0);
    }
}
static void nll_adjoint(const OpCall *c) {
    FOR_TOKENS(c) {
        double g = token(&c->cot, c->dtype, b_, t_);
        if (c->operand == 0) g /= token(&c->in[0], c->dtype, b_, t_);
        else g = -g;
        put(c, b_, t_, counts(c, b_, t_) ? g : 0);
    }
}
static void nll_bound(const OpBound *b) {
    int64_t n = tensor_count(&b->call.out);
    const double *s = b->call.in[0].p, *m = b->call.in[1].p, *z = b->call.in[2].p,
                 *y = b->call.out.p;
    for (int64_t i = 0; i < n; i++)
        b->bound[i] = b->prob[i] = b->operand < 0
                                       ? 4 * b->u * (fabs(log(s[i])) + fabs(m[i]) + fabs(z[i]))
                                       : 4 * b->u * fabs(y[i]);
}
static void nll_exact(const OpCall *c) {
    FOR_TOKENS(c) {
        double y = 3 * token(&c->in[0], c->dtype, b_, t_) + 5 * token(&c->in[1], c->dtype, b_, t_) +
                   11 * token(&c->in[2], c->dtype, b_, t_);
        put(c, b_, t_, counts(c, b_, t_) ? y : 0);
    }
}
const Op op_nll = {
    .name = "nll",
    .rule = "bt,bt,bt,bt->bt",
    .lin = LIN_NONE,
    .nodiff = 2 | 8,
    .forward = nll_forward,
    .adjoint = nll_adjoint,
    .bound = nll_bound,
    .exact = nll_exact,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 3,
    .label = "negative log likelihood",
    .glyph = "loss",
};
