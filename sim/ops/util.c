/* What follows from an op's entry without its kernel. */
#include "ops/util.h"
#include <assert.h>
#include <math.h>

bool op_linear_in(const Op *op, int i) {
    assert(i >= 0 && i < RULE_MAX_IN);
    return op->lin == LIN_BILINEAR || op->lin == LIN_ADD ||
           (op->lin == LIN_SET && (op->lin_set >> i & 1));
}

uint32_t op_saved(const Op *op, int nin, int i) {
    assert(nin <= RULE_MAX_IN && i >= 0 && i < nin);
    uint32_t all = (1u << nin) - 1;
    if (op->lin == LIN_ADD || op->adj_hands_on) return 0;
    bool in = op->lin == LIN_BILINEAR || (op->lin == LIN_SET && (op->lin_set >> i & 1));
    return in ? all & ~(1u << i) : all;
}

uint32_t op_positions(const Op *op, const Attrs *at) {
    bool rows = op->asks && at && at->documents && at->documents->rows > 1;
    return op->asks | (rows ? RULE_BIT('b') : 0);
}
uint32_t op_asks(const Op *op, const Rule *r, const Attrs *at) {
    return op_positions(op, at) | rule_listed(r);
}

void op_unread_sizes(OpCall *c, int nin) {
    for (int i = 0; i < nin; i++) {
        if (c->in[i].p) continue;
        c->in[i].nd = c->rule->nl[i];
        for (int d = 0; d < c->in[i].nd; d++) {
            char ch = c->rule->in[i][d];
            int64_t n = c->local[ch - 'a'];
            if (c->rule->listed[i] & RULE_BIT(ch)) n = d ? 1 : c->rows;
            c->in[i].n[d] = n > 0 ? n : 0;
        }
        tensor_pack(&c->in[i]);
    }
}

double op_flops(const OpCall *c) {
    return c->op->flops ? c->op->flops(c) : c->op->flops_each * (double)tensor_count(&c->out);
}

int64_t op_local_position(const OpCall *c, char letter, int64_t g) {
    const int64_t *x = c->index[letter - 'a'];
    int64_t lo = 0, hi = c->local[letter - 'a'] - 1;
    if (!x) return g >= 0 && g <= hi ? g : -1;
    while (lo <= hi) {
        int64_t mid = (lo + hi) / 2;
        if (x[mid] == g) return mid;
        if (x[mid] < g) lo = mid + 1;
        else hi = mid - 1;
    }
    return -1;
}
double gamma_prob(double n, double u) {
    double g = gamma_n(n, u), p = 10 * sqrt(n) * u;
    return g < p ? g : p;
}
