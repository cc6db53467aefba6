/* split and concat: a block of the last letter, and two values side by side along one.
 * split "bty!->btc" takes the elements from the node's offset on, as many as its letter c has;
 * linear, its adjoint puts zeros around the block. A block may have several letters, "btj!->btkgx",
 * whose elements follow one another. concat "btkn!,btkr!->btkx" is the sum of its
 * operands, each padded with zeros to the whole; an operand may lack leading letters
 * ("btkn!,btr!->btkx": one row for all k), and the adjoint takes the operand's block and contracts
 * the letters that it lacks. Both refuse cuts of what is split or joined: a cut of the whole is no
 * cut of the blocks. */
#include "ops/util.h"

/* Offset of the row of x, an operand of these letters, for the row i of the rule's output. */
static int64_t row_offset(const OpCall *c, const Tensor *x, int operand, const int64_t *i) {
    int64_t o = 0;
    for (int d = 0; d + 1 < c->rule->nl[operand]; d++)
        o += i[rule_find_out(c->rule, c->rule->in[operand][d])] * x->s[d];
    return o;
}
/* Copies n elements; strides of the last dims. */
static void copy_row(Dtype t, const Tensor *x, int64_t ox, const Tensor *y, int64_t oy, int64_t n) {
    int64_t sx = x->s[x->nd - 1], sy = y->s[y->nd - 1], size = dtype_size(t);
    if (sx == 1 && sy == 1) {
        memcpy((char *)y->p + oy * size, (const char *)x->p + ox * size, (size_t)(n * size));
        return;
    }
    for (int64_t k = 0; k < n; k++) el_set(y, t, oy + k * sy, el_get(x, t, ox + k * sx));
}

/* ---- split ---- */
/* Of row i of the output, the place of its first element in the whole that was split. */
static int64_t split_place(const OpCall *c, const int64_t *i) {
    int64_t place = 0;
    for (int d = 0; d < c->rule->nout; d++) { /* letters that are no row's make the block */
        bool leads = memchr(c->rule->in[0], c->rule->out[d], (size_t)c->rule->nl[0]);
        if (!leads)
            place = place * c->local[c->rule->out[d] - 'a'] + (d + 1 < c->rule->nout ? i[d] : 0);
    }
    return c->at->offset + place;
}
static void split_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Tensor *x = &c->in[0], *y = &c->out;
    int64_t ox = row_offset(c, x, 0, i) + split_place(c, i) * x->s[x->nd - 1];
    copy_row(c->dtype, x, ox, y, box_offset(y, y->nd - 1, i), n);
}
static void split_forward(const OpCall *c) { op_each_row(c, split_row); }
static void split_adjoint(const OpCall *c) {
    const Tensor *g = &c->cot, *y = &c->out;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, n = g->n[g->nd - 1];
    if (box_empty(y)) return;
    memset(y->p, 0, (size_t)(tensor_count(y) * dtype_size(c->dtype)));
    if (box_empty(g)) return;
    do {
        int64_t oy = row_offset(c, y, 0, i) + split_place(c, i);
        copy_row(c->dtype, g, box_offset(g, g->nd - 1, i), y, oy, n);
    } while (box_next(g->nd - 1, g->n, i));
}
const Op op_split = {
    .name = "split",
    .typical = "bty!->btc",
    .lin = LIN_SET,
    .lin_set = 1,
    .forward = split_forward,
    .adjoint = split_adjoint,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .label = "split",
    .glyph = "view",
};

/* ---- concat ---- */
/* Where operand k begins in the whole: behind those before it, whose last letters are whole. */
static int64_t begin_of(const OpCall *c, int k) {
    int64_t at = 0;
    for (int i = 0; i < k; i++) at += c->global[c->rule->in[i][c->rule->nl[i] - 1] - 'a'];
    return at;
}
static void concat_row(const OpCall *c, const int64_t *i, int64_t n) {
    const Tensor *y = &c->out;
    int64_t oy = box_offset(y, y->nd - 1, i), at = 0;
    for (int k = 0; k < c->rule->nin && at < n; k++) {
        const Tensor *x = &c->in[k];
        copy_row(c->dtype, x, row_offset(c, x, k, i), y, oy + at, x->n[x->nd - 1]);
        at += x->n[x->nd - 1];
    }
}
static void concat_forward(const OpCall *c) { op_each_row(c, concat_row); }
/* The operand's block of the cotangent, and the sum over the letters that the operand lacks, as an
 * einsum in which the block has the operand's last letter. */
static Tensor block_of(const OpCall *c, Rule *r) {
    Tensor g = c->cot;
    int last = g.nd - 1;
    *r = rule_adjoint(c->rule, c->operand, 0);
    r->in[0][last] = r->out[r->nout - 1];
    g.p = (char *)g.p + begin_of(c, c->operand) * g.s[last] * dtype_size(c->dtype);
    g.n[last] = c->out.n[c->out.nd - 1];
    return g;
}
static void concat_adjoint(const OpCall *c) {
    Rule r;
    OpCall a = *c;
    a.in[0] = block_of(c, &r);
    a.rule = &r;
    op_einsum(&a);
}
static void concat_bound(const OpBound *b) {
    if (b->operand < 0 || b->call.rule->nl[b->operand] == b->call.rule->nout) {
        op_bound_copy(b);
        return;
    }
    Rule r;
    OpBound sum = *b;
    sum.call.in[0] = block_of(&b->call, &r);
    sum.call.rule = &r;
    sum.operand = -1;
    op_bound_contraction(&sum);
}
const Op op_concat = {
    .name = "concat",
    .typical = "btkn!,btr!->btkx",
    .lin = LIN_ADD,
    .forward = concat_forward,
    .adjoint = concat_adjoint,
    .bound = concat_bound,
    .exact = op_exact_same,
    .exact_adjoint = op_exact_adjoint_same,
    .label = "concatenate",
    .glyph = "view",
};
