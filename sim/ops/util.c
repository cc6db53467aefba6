/* What follows from an op's entry without its kernel. */
#include "ops/util.h"
#include <assert.h>

bool op_linear_in(const Op *op, int i) {
    assert(i >= 0 && i < RULE_MAX_IN);
    return op->lin == LIN_BILINEAR || op->lin == LIN_ADD ||
           (op->lin == LIN_SET && (op->lin_set >> i & 1));
}

uint32_t op_saved(const Op *op, int nin, int i) {
    assert(nin <= RULE_MAX_IN && i >= 0 && i < nin);
    uint32_t all = (1u << nin) - 1;
    if (op->lin == LIN_ADD) return 0;
    bool in = op->lin == LIN_BILINEAR || (op->lin == LIN_SET && (op->lin_set >> i & 1));
    return in ? all & ~(1u << i) : all;
}

void op_unread_sizes(OpCall *c, int nin) {
    for (int i = 0; i < nin; i++) {
        if (c->in[i].p) continue;
        c->in[i].nd = c->rule->nl[i];
        for (int d = 0; d < c->in[i].nd; d++) {
            int64_t n = c->local[c->rule->in[i][d] - 'a'];
            c->in[i].n[d] = n > 0 ? n : 0;
        }
        tensor_pack(&c->in[i]);
    }
}

double op_flops_zero(const OpCall *c) {
    (void)c;
    return 0;
}

double op_flops_per_output(const OpCall *c) { return (double)tensor_count(&c->out); }
