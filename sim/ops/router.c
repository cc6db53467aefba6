/* The weights that a router gives a token's experts, one per row. Rows are ordered by expert,
 * sequence, position: the row-major index over (e, b, t), whatever the plan. Which experts those
 * are is decided before (select.c). */
#include "ops/router.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

static double logit(const OpCall *c, int64_t b, int64_t t, int64_t e) {
    const Tensor *z = &c->in[0];
    return el_get(z, c->dtype, b * z->s[0] + t * z->s[1] + e * z->s[2]);
}
/* ---- gate "bte!,[ebt]->[ebt]": softmax over a token's selected experts ---- */
RowChains row_chains(const OpCall *c) {
    int64_t nt = c->local['t' - 'a'];
    RowChains x = {.n = c->local['b' - 'a'] * nt};
    size_t rows = (size_t)c->rows + 1;
    x.first = base_malloc(base_mul((size_t)x.n + 1, sizeof *x.first));
    x.next = base_malloc(base_mul(rows, sizeof *x.next));
    x.e = base_malloc(base_mul(rows, sizeof *x.e));
    for (int64_t i = 0; i < x.n; i++) x.first[i] = -1;
    for (int64_t r = c->rows - 1; r >= 0; r--) {
        RowAt at = row_at(c, r);
        x.e[r] = at.b < 0 || at.t < 0 ? -1 : at.e;
        x.next[r] = -1;
        if (x.e[r] < 0) continue;
        x.next[r] = x.first[at.b * nt + at.t];
        x.first[at.b * nt + at.t] = r;
    }
    return x;
}
void row_chains_free(RowChains *x) {
    free(x->first);
    free(x->next);
    free(x->e);
}
static double row_get(const Tensor *t, Dtype d, int64_t r) { return el_get(t, d, r * t->s[0]); }
static void row_set(const Tensor *t, Dtype d, int64_t r, double v) { el_set(t, d, r * t->s[0], v); }
static void gate_forward(const OpCall *c) {
    RowChains x = row_chains(c);
    int64_t nt = c->local['t' - 'a'];
    for (int64_t r = 0; r < c->rows; r++) row_set(&c->out, c->dtype, r, 0);
    for (int64_t i = 0; i < x.n; i++) {
        double top = -INFINITY, sum = 0;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            top = fmax(top, logit(c, i / nt, i % nt, x.e[r]));
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            sum += exp(logit(c, i / nt, i % nt, x.e[r]) - top);
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            row_set(&c->out, c->dtype, r, exp(logit(c, i / nt, i % nt, x.e[r]) - top) / sum);
    }
    row_chains_free(&x);
}
/* dz_j = p_j (dp_j - sum_i p_i dp_i) over the selected, 0 elsewhere. */
static void gate_adjoint(const OpCall *c) {
    RowChains x = row_chains(c);
    int64_t ne = c->local['e' - 'a'];
    for (int64_t i = 0; i < x.n * ne; i++) el_set(&c->out, c->dtype, i, 0);
    for (int64_t i = 0; i < x.n; i++) {
        double mean = 0;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            mean += row_get(&c->fout, c->dtype, r) * row_get(&c->cot, c->dtype, r);
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            el_set(&c->out, c->dtype, i * ne + x.e[r],
                   row_get(&c->fout, c->dtype, r) * (row_get(&c->cot, c->dtype, r) - mean));
    }
    row_chains_free(&x);
}
/* Of p = exp(z - top) / sum: a few u of p, and u |z - top| p, which is below u. Of the adjoint: of
 * the magnitudes that the difference of dp and the token's mean is made of. */
static void gate_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    double g = gamma_n((double)c->at->top + 8, b->u);
    int64_t ne = c->local['e' - 'a'], n = tensor_count(&c->out);
    for (int64_t i = 0; i < n; i++)
        b->bound[i] = b->operand < 0 ? g * fabs(((const double *)c->out.p)[i]) + b->u : 0x1p-1000;
    RowChains x = row_chains(c);
    for (int64_t i = 0; i < x.n && b->operand >= 0; i++) {
        double mean = 0;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            mean += fabs(row_get(&c->fout, DT_F64, r) * row_get(&c->cot, DT_F64, r));
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            b->bound[i * ne + x.e[r]] = g * fabs(row_get(&c->fout, DT_F64, r)) *
                                            (fabs(row_get(&c->cot, DT_F64, r)) + mean) +
                                        0x1p-140;
    }
    row_chains_free(&x);
    memcpy(b->prob, b->bound, (size_t)n * sizeof *b->prob);
}
/* On integers: the selected logits themselves. */
static void gate_exact(const OpCall *c) {
    for (int64_t r = 0; r < c->rows; r++) {
        RowAt at = row_at(c, r);
        bool here = at.e >= 0 && at.b >= 0 && at.t >= 0;
        row_set(&c->out, c->dtype, r, here ? logit(c, at.b, at.t, at.e) : 0);
    }
}
/* Of all three: what a row's weight hands to its own expert's score, and to all scores of its token
 * the sum over the token's rows. */
static void gate_exact_adjoint(const OpCall *c) {
    RowChains x = row_chains(c);
    int64_t ne = c->local['e' - 'a'], nt = c->local['t' - 'a'];
    for (int64_t i = 0; i < x.n; i++) {
        double sum = 0;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            sum += (1 + logit(c, i / nt, i % nt, x.e[r])) * row_get(&c->cot, c->dtype, r);
        sum = fmod(sum, c->modulus);
        int64_t r = x.first[i]; /* in ascending order of experts */
        for (int64_t e = 0; e < ne; e++) {
            double z = logit(c, i / nt, i % nt, e), d = (2 + z) * sum;
            for (; r >= 0 && x.e[r] == e; r = x.next[r])
                d += (1 + 3 * z) * row_get(&c->cot, c->dtype, r);
            el_set(&c->out, c->dtype, i * ne + e, fmod(d, c->modulus));
        }
    }
    row_chains_free(&x);
}
const Op op_gate = {
    .name = "gate",
    .rule = "bte!,[ebt]->[ebt]",
    .lin = LIN_NONE,
    .nodiff = 2,
    .adj_reads_output = true,
    .forward = gate_forward,
    .adjoint = gate_adjoint,
    .bound = gate_bound,
    .exact = gate_exact,
    .exact_adjoint = gate_exact_adjoint,
    .flops_each = 1,
    .label = "gate weights",
};

/* ---- gate_all "bte!,[ebt]->[ebt]": softmax over all experts, the selected as they are ---- */
/* What a token's softmax is made of. */
typedef struct {
    double top, sum;
} Softmax;
static Softmax softmax_of(const OpCall *c, int64_t token) {
    int64_t nt = c->local['t' - 'a'], ne = c->local['e' - 'a'];
    Softmax s = {-INFINITY, 0};
    for (int64_t e = 0; e < ne; e++) s.top = fmax(s.top, logit(c, token / nt, token % nt, e));
    for (int64_t e = 0; e < ne; e++) s.sum += exp(logit(c, token / nt, token % nt, e) - s.top);
    return s;
}
static double share_of(const OpCall *c, const Softmax *s, int64_t token, int64_t e) {
    int64_t nt = c->local['t' - 'a'];
    return exp(logit(c, token / nt, token % nt, e) - s->top) / s->sum;
}
static void gate_all_forward(const OpCall *c) {
    RowChains x = row_chains(c);
    for (int64_t r = 0; r < c->rows; r++) row_set(&c->out, c->dtype, r, 0);
    for (int64_t i = 0; i < x.n; i++) {
        if (x.first[i] < 0) continue;
        Softmax s = softmax_of(c, i);
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            row_set(&c->out, c->dtype, r, share_of(c, &s, i, x.e[r]));
    }
    row_chains_free(&x);
}
/* dz_i = s_i ([i selected] dp_i - sum over the selected of s_j dp_j), for all experts. */
static void gate_all_adjoint(const OpCall *c) {
    RowChains x = row_chains(c);
    int64_t ne = c->local['e' - 'a'];
    for (int64_t i = 0; i < x.n; i++) {
        Softmax s = softmax_of(c, i);
        double mean = 0;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            mean += share_of(c, &s, i, x.e[r]) * row_get(&c->cot, c->dtype, r);
        int64_t r = x.first[i]; /* in ascending order of experts */
        for (int64_t e = 0; e < ne; e++) {
            double d = -mean;
            for (; r >= 0 && x.e[r] == e; r = x.next[r]) d += row_get(&c->cot, c->dtype, r);
            el_set(&c->out, c->dtype, i * ne + e, share_of(c, &s, i, e) * d);
        }
    }
    row_chains_free(&x);
}
/* As `gate`, with as many terms as there are experts. */
static void gate_all_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    int64_t ne = c->local['e' - 'a'], n = tensor_count(&c->out);
    double g = gamma_n((double)ne + 8, b->u);
    if (b->operand < 0) op_bound_relative(b, c->out.p, g, g, b->u);
    if (b->operand < 0) return;
    RowChains x = row_chains(c);
    for (int64_t i = 0; i < n / (ne ? ne : 1); i++) {
        Softmax s = softmax_of(c, i);
        double most = 0, mean = 0;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r]) {
            double d = fabs(row_get(&c->cot, DT_F64, r));
            most = fmax(most, d);
            mean += share_of(c, &s, i, x.e[r]) * d;
        }
        for (int64_t e = 0; e < ne; e++)
            b->bound[i * ne + e] = b->prob[i * ne + e] =
                g * share_of(c, &s, i, e) * (most + mean) + 4 * b->u * b->u * most + 0x1p-140;
    }
    row_chains_free(&x);
}
const Op op_gate_all = {
    .name = "gate_all",
    .rule = "bte!,[ebt]->[ebt]",
    .lin = LIN_NONE,
    .nodiff = 2,
    .forward = gate_all_forward,
    .adjoint = gate_all_adjoint,
    .bound = gate_all_bound,
    .exact = gate_exact,
    .exact_adjoint = gate_exact_adjoint,
    .flops_each = 1,
    .label = "gate weights",
};

/* ---- share "bte!,[ebt]->[ebt]": a chosen score times a factor, with at->a divided by the sum of
 * all that are chosen (DeepSeek-V3: sum + 1e-20) ---- */
/* What a token's scores are divided by, and that of magnitudes. */
typedef struct {
    double sum, magnitude;
} ChosenSum;
static ChosenSum chosen_sum(const OpCall *c, const RowChains *x, int64_t token) {
    int64_t nt = c->local['t' - 'a'];
    ChosenSum s = {1, 1};
    if (c->at->a == 0) return s;
    s.sum = s.magnitude = 1e-20;
    for (int64_t r = x->first[token]; r >= 0; r = x->next[r]) {
        double one = logit(c, token / nt, token % nt, x->e[r]);
        s.sum += one;
        s.magnitude += fabs(one);
    }
    return s;
}
static void share_forward(const OpCall *c) {
    RowChains x = row_chains(c);
    int64_t nt = c->local['t' - 'a'];
    for (int64_t r = 0; r < c->rows; r++) row_set(&c->out, c->dtype, r, 0);
    for (int64_t i = 0; i < x.n; i++) {
        double sum = chosen_sum(c, &x, i).sum;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            row_set(&c->out, c->dtype, r, c->at->factor * logit(c, i / nt, i % nt, x.e[r]) / sum);
    }
    row_chains_free(&x);
}
/* ds_j = factor / sum (dw_j - sum_i s_i / sum dw_i) over the selected, 0 elsewhere. */
static void share_adjoint(const OpCall *c) {
    RowChains x = row_chains(c);
    int64_t ne = c->local['e' - 'a'], nt = c->local['t' - 'a'];
    for (int64_t i = 0; i < x.n * ne; i++) el_set(&c->out, c->dtype, i, 0);
    for (int64_t i = 0; i < x.n; i++) {
        double sum = chosen_sum(c, &x, i).sum, mean = 0;
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            mean +=
                c->at->a * logit(c, i / nt, i % nt, x.e[r]) / sum * row_get(&c->cot, c->dtype, r);
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r])
            el_set(&c->out, c->dtype, i * ne + x.e[r],
                   c->at->factor / sum * (row_get(&c->cot, c->dtype, r) - mean));
    }
    row_chains_free(&x);
}
/* Of the sum: its terms' magnitudes; of the adjoint: those that the difference of dw and the
 * token's mean is made of. */
static void share_bound(const OpBound *b) {
    const OpCall *c = &b->call;
    double g = gamma_n((double)c->at->top + 8, b->u), tiny = b->u > 1e-10 ? 0x1p-140 : 0x1p-1060;
    int64_t ne = c->local['e' - 'a'], nt = c->local['t' - 'a'], n = tensor_count(&c->out);
    for (int64_t i = 0; i < n; i++) b->bound[i] = tiny;
    RowChains x = row_chains(c);
    for (int64_t i = 0; i < x.n; i++) {
        ChosenSum s = chosen_sum(c, &x, i);
        double lost = s.magnitude / fabs(s.sum), mean = 0;
        for (int64_t r = x.first[i]; r >= 0 && b->operand >= 0; r = x.next[r])
            mean += fabs(c->at->a * logit(c, i / nt, i % nt, x.e[r]) / s.sum *
                         row_get(&c->cot, DT_F64, r));
        for (int64_t r = x.first[i]; r >= 0; r = x.next[r]) {
            bool forward = b->operand < 0;
            double size =
                forward ? fabs(((const double *)c->out.p)[r])
                        : fabs(c->at->factor / s.sum) * (fabs(row_get(&c->cot, DT_F64, r)) + mean);
            b->bound[forward ? r : i * ne + x.e[r]] = g * lost * size + tiny;
        }
    }
    row_chains_free(&x);
    memcpy(b->prob, b->bound, (size_t)n * sizeof *b->prob);
}
const Op op_share = {
    .name = "share",
    .rule = "bte!,[ebt]->[ebt]",
    .lin = LIN_NONE,
    .nodiff = 2,
    .forward = share_forward,
    .adjoint = share_adjoint,
    .bound = share_bound,
    .exact = gate_exact,
    .exact_adjoint = gate_exact_adjoint,
    .flops_each = 1,
    .label = "share of the chosen",
};
