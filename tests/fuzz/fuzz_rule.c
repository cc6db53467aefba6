/* Any text as the rule of an op: parsed, turned into the rules of its adjoints, and computed on
 * small operands. */
#include "fuzz.h"
#include "ops/op.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

static int64_t letter_size(char c) { return 1 + (c - 'a') % 3; }

/* Strides and numbers for the letters of an operand. */
static void fill(Tensor *t, const char *letters, int n) {
    t->nd = n;
    for (int i = 0; i < n; i++) t->n[i] = letter_size(letters[i]);
    tensor_pack(t);
    int64_t count = tensor_count(t);
    double *x = malloc((size_t)count * sizeof *x);
    for (int64_t i = 0; i < count; i++) x[i] = (double)(i % 7) - 3;
    t->p = x;
}

static bool small(const Rule *r) {
    int64_t all = 1;
    uint32_t seen = 0;
    for (int op = 0; op <= r->nin; op++) {
        const char *s = op < r->nin ? r->in[op] : r->out;
        for (; *s; s++) {
            if (!(seen & RULE_BIT(*s))) all *= letter_size(*s);
            seen |= RULE_BIT(*s);
        }
    }
    return all <= 1 << 16;
}

void fuzz_rule(const uint8_t *p, size_t n) {
    if (n > 256) return;
    char text[257];
    memcpy(text, p, n);
    text[n] = 0;
    Rule r;
    const char *error = NULL;
    int at = -1;
    if (!rule_parse(text, &r, &error, &at)) {
        assert(error && at >= 0 && at <= (int)strlen(text));
        return;
    }
    for (int i = 0; i < r.nin; i++) {
        Rule a = rule_adjoint(&r, i, ((1u << r.nin) - 1) & ~(1u << i));
        assert(a.nout == r.nl[i] && a.nin <= RULE_MAX_IN);
    }
    if (r.nin > 2 || !small(&r)) return;
    const Op *op = op_find("einsum");
    OpCall c = {.op = op, .rule = &r, .dtype = DT_F64};
    for (int i = 0; i < r.nin; i++) fill(&c.in[i], r.in[i], r.nl[i]);
    fill(&c.out, r.out, r.nout);
    op->forward(&c);
    assert(op->flops(&c) >= 0);
    for (int i = 0; i < r.nin; i++) free(c.in[i].p);
    free(c.out.p);
}
