/* Rotary position embedding over the last letter, by the global positions of letter t: of its first
 * 2 * n_freq elements, what is behind them stays as it is. Linear; the adjoint rotates back. A pair
 * that turns together is (i, i + d/2) or neighbours (2i, 2i+1), and it may be read as the one and
 * written as the other (RopeOrder). */
#include "kernel/pool.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

/* Where the elements of pair k of h stand: k * step and k * step + mate. */
typedef struct {
    int64_t step, mate;
} Pairs;
/* Of what is read or written; the adjoint reads what the operation wrote. */
static Pairs pairs_of(RopeOrder order, int64_t h, bool written) {
    bool neighbours = order == ROPE_NEIGHBOURS || (order == ROPE_NEIGHBOURS_TO_HALVES && !written);
    return neighbours ? (Pairs){2, 1} : (Pairs){1, h};
}

/* Of a row the elements that do not turn. */
static void copy_rest(const OpCall *c, const Tensor *x, int64_t ox, int64_t oy) {
    int64_t s = x->s[x->nd - 1];
    for (int64_t k = 2 * (int64_t)c->at->n_freq; k < x->n[x->nd - 1]; k++)
        el_set(&c->out, c->dtype, oy + k, el_get(x, c->dtype, ox + k * s));
}
/* A rotation of all rows, with the cosines and sines of their positions. */
typedef struct {
    OpCall call;
    const Tensor *x;
    bool back;
    int t_at;
    int64_t rows, T;
    double *table; /* cos, sin: [rows, T, 2, h] */
} Turn;
static void rotate_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Turn *turn = (const Turn *)c;
    const Tensor *x = turn->x;
    int nd = x->nd - 1;
    int64_t h = c->at->n_freq, ox = box_offset(x, nd, i), oy = box_offset(&c->out, nd, i);
    Pairs from = pairs_of(c->at->order, h, turn->back), to = pairs_of(c->at->order, h, !turn->back);
    const double *cs =
                     turn->table + 2 * ((turn->rows > 1 ? i[0] : 0) * turn->T + i[turn->t_at]) * h,
                 *sn = cs + h;
    (void)n;
    for (int64_t k = 0; k < h; k++) {
        int64_t p = k * to.step, q = p + to.mate, from_p = k * from.step,
                from_q = from_p + from.mate;
        if (c->dtype == DT_F32) {
            const float *in = (const float *)x->p + ox;
            float *o = (float *)c->out.p + oy, a = in[from_p * x->s[nd]], b = in[from_q * x->s[nd]],
                  co = (float)cs[k], si = (float)sn[k];
            o[p] = a * co - b * si;
            o[q] = b * co + a * si;
        } else {
            const double *in = (const double *)x->p + ox;
            double *o = (double *)c->out.p + oy, a = in[from_p * x->s[nd]],
                   b = in[from_q * x->s[nd]];
            o[p] = a * cs[k] - b * sn[k];
            o[q] = b * cs[k] + a * sn[k];
        }
    }
    copy_rest(c, x, ox, oy);
}
/* Angles lo to hi of the table. */
static void fill(void *arg, int64_t lo, int64_t hi) {
    const Turn *turn = arg;
    const OpCall *c = &turn->call;
    int64_t h = c->at->n_freq, T = turn->T;
    for (int64_t at = lo; at < hi; at++) {
        int64_t t = at / h, k = at % h;
        double angle = (double)op_position_in(c, t / T, t % T) * c->at->inv_freq[k];
        turn->table[2 * t * h + k] = c->at->turn * cos(angle);
        turn->table[(2 * t + 1) * h + k] = (turn->back ? -c->at->turn : c->at->turn) * sin(angle);
    }
}
static void rotate(const OpCall *c, const Tensor *x, bool back) {
    if (box_empty(x)) return;
    int t_at = rule_find_out(c->rule, 't');
    Turn turn = {.call = *c, .x = x, .back = back, .t_at = t_at, .T = x->n[t_at]};
    turn.rows = op_packings(c, x->n[0]); /* b is the first letter of what is rotated */
    int64_t angles = turn.rows * turn.T * c->at->n_freq;
    turn.table = base_malloc((size_t)(2 * angles + 1) * sizeof *turn.table);
    pool_pieces(c->pool, angles, fill, &turn);
    op_each_row(&turn.call, rotate_row);
    free(turn.table);
}
static void forward(const OpCall *c) { rotate(c, &c->in[0], false); }
static void adjoint(const OpCall *c) { rotate(c, &c->cot, true); }
/* Rows that begin in elements lo to hi. */
static void bound_rows(void *arg, int64_t lo, int64_t hi) {
    const OpBound *b = arg;
    bool back = b->operand >= 0;
    const Tensor *x = back ? &b->call.cot : &b->call.in[0];
    const double *v = x->p;
    int64_t d = x->n[x->nd - 1], h = b->call.at->n_freq;
    double rate = 4 * b->u * fabs(b->call.at->turn);
    Pairs from = pairs_of(b->call.at->order, h, back), to = pairs_of(b->call.at->order, h, !back);
    for (int64_t i = (lo + d - 1) / d * d; i < hi; i += d) {
        for (int64_t k = 2 * h; k < d; k++) b->bound[i + k] = b->prob[i + k] = 0; /* copied */
        for (int64_t k = 0; k < h; k++) {
            int64_t x0 = i + k * from.step, y0 = i + k * to.step, y1 = y0 + to.mate;
            double both = fabs(v[x0]) + fabs(v[x0 + from.mate]);
            b->bound[y0] = b->prob[y0] = b->bound[y1] = b->prob[y1] = rate * both + 0x1p-140;
        }
    }
}
/* Two products and a sum of values rotated by rounded cosines: 4u of the pair's magnitude. */
static void bound(const OpBound *b) {
    const Tensor *x = b->operand >= 0 ? &b->call.cot : &b->call.in[0];
    pool_pieces(b->call.pool, tensor_count(x), bound_rows, (void *)(uintptr_t)b);
}
/* The rotation with integers for cosine and sine: linear, and every position differs. */
static void exact_rotate(const OpCall *c, const Tensor *x, bool back) {
    int nd = c->out.nd - 1, t_at = rule_find_out(c->rule, 't');
    int64_t i[LAYOUT_MAX_DIMS] = {0}, h = c->at->n_freq;
    Pairs from = pairs_of(c->at->order, h, back), to = pairs_of(c->at->order, h, !back);
    if (box_empty(&c->out)) return;
    do {
        int64_t ox = box_offset(x, nd, i), oy = box_offset(&c->out, nd, i),
                pos = op_position_in(c, i[0], i[t_at]);
        for (int64_t k = 0; k < h; k++) {
            int64_t x0 = k * from.step, y0 = k * to.step;
            double a = el_get(x, c->dtype, ox + x0 * x->s[nd]),
                   b = el_get(x, c->dtype, ox + (x0 + from.mate) * x->s[nd]);
            double cs = (double)(pos % 29 + 1), sn = (double)((pos / 29 + k) % 23 + 2);
            if (back) sn = -sn;
            el_set(&c->out, c->dtype, oy + y0, a * cs - b * sn);
            el_set(&c->out, c->dtype, oy + y0 + to.mate, b * cs + a * sn);
        }
        copy_rest(c, x, ox, oy);
    } while (box_next(nd, c->out.n, i));
}
static void exact(const OpCall *c) { exact_rotate(c, &c->in[0], false); }
static void exact_adjoint(const OpCall *c) { exact_rotate(c, &c->cot, true); }
const Op op_rope = {
    .name = "rope",
    .typical = "btkgx!->btkgx",
    .lin = LIN_SET,
    .lin_set = 1,
    .asks = RULE_BIT('t'),
    .forward = forward,
    .adjoint = adjoint,
    .bound = bound,
    .bound_each = BOUND_EACH,
    .exact = exact,
    .exact_adjoint = exact_adjoint,
    .flops_each = 3,
    .table = "cosines and sines",
    .label = "RoPE",
};
