/* What a router's auxiliary losses are made of (Switch Transformers, Fedus et al. 2021, eq. 4 to 6;
 * ST-MoE, Zoph et al. 2022, eq. 5): the probabilities of all experts, by softmax or as a share of
 * all scores, and the logarithm of the softmax's sum. Refuses to count rows or tokens: those sums
 * are contractions like any other. */
#include "ops/util.h"
#include <math.h>

/* One token's E numbers of an operand [b, t, e]. */
typedef struct {
    const Tensor *t;
    Dtype dtype;
    int64_t at, n;
} Scores;
static Scores scores_of(const Tensor *t, Dtype dtype, int64_t b, int64_t k) {
    return (Scores){t, dtype, b * t->s[0] + k * t->s[1], t->n[2]};
}
static double score(const Scores *s, int64_t e) {
    return el_get(s->t, s->dtype, s->at + e * s->t->s[2]);
}
static void put_score(const Scores *s, int64_t e, double x) {
    el_set(s->t, s->dtype, s->at + e * s->t->s[2], x);
}
/* Of the softmax of z: the largest, and the sum of exp(z - top). */
typedef struct {
    double top, sum;
} Exps;
static Exps exps_of(const Scores *z) {
    Exps x = {-INFINITY, 0};
    for (int64_t e = 0; e < z->n; e++) x.top = fmax(x.top, score(z, e));
    for (int64_t e = 0; e < z->n; e++) x.sum += exp(score(z, e) - x.top);
    return x;
}
/* Calls token(c, b, t) for every token of the first operand. */
static void each_token(const OpCall *c, void (*token)(const OpCall *c, int64_t b, int64_t t)) {
    for (int64_t b = 0; b < c->in[0].n[0]; b++)
        for (int64_t t = 0; t < c->in[0].n[1]; t++) token(c, b, t);
}
static double tiny_of(const OpBound *b) { return b->u > 1e-10 ? 0x1p-140 : 0x1p-1060; }
static void put_bound(const OpBound *b, int64_t i, double x) { b->bound[i] = b->prob[i] = x; }

/* ---- softmax "bte!->bte" ---- */
static void softmax_token(const OpCall *c, int64_t b, int64_t t) {
    Scores z = scores_of(&c->in[0], c->dtype, b, t), y = scores_of(&c->out, c->dtype, b, t);
    Exps x = exps_of(&z);
    for (int64_t e = 0; e < z.n; e++) put_score(&y, e, exp(score(&z, e) - x.top) / x.sum);
}
static void softmax_forward(const OpCall *c) { each_token(c, softmax_token); }
/* dz_j = p_j (dp_j - sum_i p_i dp_i) */
static void softmax_adjoint_token(const OpCall *c, int64_t b, int64_t t) {
    Scores p = scores_of(&c->fout, c->dtype, b, t), g = scores_of(&c->cot, c->dtype, b, t),
           y = scores_of(&c->out, c->dtype, b, t);
    double mean = 0;
    for (int64_t e = 0; e < p.n; e++) mean += score(&p, e) * score(&g, e);
    for (int64_t e = 0; e < p.n; e++) put_score(&y, e, score(&p, e) * (score(&g, e) - mean));
}
static void softmax_adjoint(const OpCall *c) { each_token(c, softmax_adjoint_token); }
/* As of `gate_all`: forward a few u of p, and u |z - top| p, which is below u; of the adjoint the
 * magnitudes that the difference of dp and the token's mean is made of. */
static void softmax_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t ne = c->in[0].n[2], nt = c->in[0].n[1], tokens = c->in[0].n[0] * nt;
    double g = gamma_n((double)ne + 8, b->u);
    if (b->operand < 0) op_bound_relative(b, c->out.p, g, g, b->u);
    for (int64_t i = 0; i < tokens && b->operand >= 0; i++) {
        Scores p = scores_of(&c->fout, DT_F64, i / nt, i % nt),
               d = scores_of(&c->cot, DT_F64, i / nt, i % nt);
        double mean = 0;
        for (int64_t e = 0; e < ne; e++) mean += fabs(score(&p, e) * score(&d, e));
        for (int64_t e = 0; e < ne; e++)
            put_bound(b, i * ne + e,
                      g * fabs(score(&p, e)) * (fabs(score(&d, e)) + mean) + tiny_of(b));
    }
}
const Op op_softmax = {
    .name = "softmax",
    .rule = "bte!->bte",
    .lin = LIN_NONE,
    .adj_reads_output = true,
    .forward = softmax_forward,
    .adjoint = softmax_adjoint,
    .bound = softmax_bound,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 3,
    .label = "probabilities",
};

/* ---- normalise "bte!->bte": each score's share of the sum of all (DeepSeek-V3, eq. 19) ---- */
typedef struct {
    double sum, magnitude;
} Total;
static Total total_of(const Scores *x) {
    Total s = {0, 0};
    for (int64_t e = 0; e < x->n; e++) {
        s.sum += score(x, e);
        s.magnitude += fabs(score(x, e));
    }
    return s;
}
static void normalise_token(const OpCall *c, int64_t b, int64_t t) {
    Scores x = scores_of(&c->in[0], c->dtype, b, t), y = scores_of(&c->out, c->dtype, b, t);
    double sum = total_of(&x).sum;
    for (int64_t e = 0; e < x.n; e++) put_score(&y, e, score(&x, e) / sum);
}
static void normalise_forward(const OpCall *c) { each_token(c, normalise_token); }
/* dx_j = (dy_j - sum_i y_i dy_i) / sum */
static void normalise_adjoint_token(const OpCall *c, int64_t b, int64_t t) {
    Scores x = scores_of(&c->in[0], c->dtype, b, t), g = scores_of(&c->cot, c->dtype, b, t),
           y = scores_of(&c->out, c->dtype, b, t);
    double sum = total_of(&x).sum, mean = 0;
    for (int64_t e = 0; e < x.n; e++) mean += score(&x, e) / sum * score(&g, e);
    for (int64_t e = 0; e < x.n; e++) put_score(&y, e, (score(&g, e) - mean) / sum);
}
static void normalise_adjoint(const OpCall *c) { each_token(c, normalise_adjoint_token); }
/* Of the sum: its terms' magnitudes, which are the sum where all scores are positive. */
static void normalise_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t ne = c->in[0].n[2], nt = c->in[0].n[1], tokens = c->in[0].n[0] * nt;
    for (int64_t i = 0; i < tokens; i++) {
        Scores x = scores_of(&c->in[0], DT_F64, i / nt, i % nt);
        Total s = total_of(&x);
        double g = gamma_n((double)ne + 8, b->u) * s.magnitude / fabs(s.sum), mean = 0;
        for (int64_t e = 0; e < ne && b->operand < 0; e++)
            put_bound(b, i * ne + e, g * fabs(score(&x, e) / s.sum) + tiny_of(b));
        if (b->operand < 0) continue;
        Scores d = scores_of(&c->cot, DT_F64, i / nt, i % nt);
        for (int64_t e = 0; e < ne; e++) mean += fabs(score(&x, e) / s.sum * score(&d, e));
        for (int64_t e = 0; e < ne; e++)
            put_bound(b, i * ne + e, g * (fabs(score(&d, e)) + mean) / fabs(s.sum) + tiny_of(b));
    }
}
const Op op_normalise = {
    .name = "normalise",
    .rule = "bte!->bte",
    .lin = LIN_NONE,
    .forward = normalise_forward,
    .adjoint = normalise_adjoint,
    .bound = normalise_bound,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 2,
    .label = "shares of the scores",
};

/* ---- logsumexp "bte!->bt" ---- */
static double logsumexp(const Scores *z) {
    Exps x = exps_of(z);
    return x.top + log(x.sum);
}
static void logsumexp_token(const OpCall *c, int64_t b, int64_t t) {
    Scores z = scores_of(&c->in[0], c->dtype, b, t);
    el_set(&c->out, c->dtype, b * c->out.s[0] + t * c->out.s[1], logsumexp(&z));
}
static void logsumexp_forward(const OpCall *c) { each_token(c, logsumexp_token); }
/* dz_j = p_j dy */
static void logsumexp_adjoint_token(const OpCall *c, int64_t b, int64_t t) {
    Scores z = scores_of(&c->in[0], c->dtype, b, t), y = scores_of(&c->out, c->dtype, b, t);
    Exps x = exps_of(&z);
    double g = el_get(&c->cot, c->dtype, b * c->cot.s[0] + t * c->cot.s[1]);
    for (int64_t e = 0; e < z.n; e++) put_score(&y, e, g * exp(score(&z, e) - x.top) / x.sum);
}
static void logsumexp_adjoint(const OpCall *c) { each_token(c, logsumexp_adjoint_token); }
/* The logarithm turns the sum's relative error into an absolute one; then it and the largest are
 * added. The adjoint is p times one number. */
static void logsumexp_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t ne = c->in[0].n[2], nt = c->in[0].n[1], tokens = c->in[0].n[0] * nt;
    double g = gamma_n((double)ne + 8, b->u);
    for (int64_t i = 0; i < tokens; i++) {
        Scores z = scores_of(&c->in[0], DT_F64, i / nt, i % nt);
        Exps x = exps_of(&z);
        if (b->operand < 0) put_bound(b, i, g + 4 * b->u * (fabs(x.top) + log((double)ne)));
        for (int64_t e = 0; e < ne && b->operand >= 0; e++) {
            double d = fabs(((const double *)c->cot.p)[i]);
            put_bound(b, i * ne + e,
                      g * d * exp(score(&z, e) - x.top) / x.sum + b->u * b->u * d + tiny_of(b));
        }
    }
}
/* On integers: the sum of the logits, modulo. */
static void logsumexp_exact_token(const OpCall *c, int64_t b, int64_t t) {
    Scores z = scores_of(&c->in[0], c->dtype, b, t);
    el_set(&c->out, c->dtype, b * c->out.s[0] + t * c->out.s[1], fmod(total_of(&z).sum, 31));
}
static void logsumexp_exact(const OpCall *c) { each_token(c, logsumexp_exact_token); }
static double logsumexp_flops(const OpCall *c) {
    return 2 * (double)c->local['b' - 'a'] * (double)c->local['t' - 'a'] *
           (double)c->local['e' - 'a'];
}
const Op op_logsumexp = {
    .name = "logsumexp",
    .rule = "bte!->bt",
    .lin = LIN_NONE,
    .forward = logsumexp_forward,
    .adjoint = logsumexp_adjoint,
    .bound = logsumexp_bound,
    .exact = logsumexp_exact,
    .exact_adjoint = op_exact_adjoint,
    .flops = logsumexp_flops,
    .label = "log of the sum",
};
