/* Attention whose scores are added up in two parts: "btkn!,btkr!,bs!kn!,bs!r!,bs!ko!->btko", a part
 * of each head's own and one whose key r all heads share, as latent attention writes them
 * (DeepSeek-V2, arXiv:2405.04434, equations 16 and 17: q_n k_n + q_r k_r). It is attention of
 * queries and keys whose parts stand side by side; this file lays them so for a call and leaves all
 * arithmetic to the op attention, or round a ring to attention_part, "bs~t!kn!,bs~t!r!,bs~t!ko!":
 * there the shared key travels once for all heads. Its gradient is the sum over the heads. Refuses
 * to know masks and blocks. */
#include "kernel/attention.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

enum { QN, QR, KN, KR, V }; /* operands */
enum { B_, T_, K_, X_ };    /* dims of a query; of a key the second is s */
enum { JOINT_Q, JOINT_K, JOINT_V };
extern const Op op_attention, op_attention_part, op_attention_merge, op_attention_join; /* ring.c */
extern const Op op_attention_two_parts_part;

/* A value [b, t, k, x] of these sizes, packed, without data. */
static Tensor sized(const Tensor *like, int64_t heads, int64_t width) {
    Tensor t = {.nd = 4, .n = {like->n[B_], like->n[T_], heads, width}};
    tensor_pack(&t);
    return t;
}
/* The shared key as if each head had it: [b, s, r] with a dim k of stride 0. */
static Tensor of_heads(const Tensor *t, int64_t heads) {
    if (t->nd == 4) return *t;
    Tensor x = *t;
    x.nd = 4;
    x.n[X_] = t->n[2], x.s[X_] = t->s[2];
    x.n[K_] = heads, x.s[K_] = 0;
    return x;
}
/* Columns [from, from + n) of the last dim. */
static Tensor columns(const Tensor *t, int64_t from, int64_t n, Dtype dt) {
    Tensor x = *t;
    if (x.p) x.p = (char *)x.p + from * x.s[X_] * dtype_size(dt);
    x.n[X_] = n;
    return x;
}
static void copy_all(const Tensor *from, const Tensor *to, Dtype dt) {
    int64_t i[4] = {0};
    if (box_empty(to)) return;
    do el_set(to, dt, box_offset(to, 4, i), el_get(from, dt, box_offset(from, 4, i)));
    while (box_next(4, to->n, i));
}
/* One operand of attention from its two parts; a call without data gets its sizes alone. */
static Tensor beside(const OpCall *c, int own, int other, double **room) {
    int64_t heads = c->in[QN].n[K_], n = c->in[own].n[X_];
    Tensor shared = of_heads(&c->in[other], heads);
    Tensor all = sized(&c->in[own], heads, n + shared.n[X_]);
    if (!c->in[own].p || !shared.p) return all;
    all.p = *room = base_malloc(base_mul((size_t)tensor_count(&all) + 1, sizeof **room));
    Tensor first = columns(&all, 0, n, c->dtype), second = columns(&all, n, shared.n[X_], c->dtype);
    copy_all(&c->in[own], &first, c->dtype);
    copy_all(&shared, &second, c->dtype);
    return all;
}
typedef struct {
    OpCall call;
    double *room[2]; /* of q and k */
} Joined;
static Joined joined(const OpCall *c) {
    Joined j = {.call = *c};
    j.call.op = c->op == &op_attention_two_parts_part ? &op_attention_part : &op_attention;
    j.call.in[JOINT_Q] = beside(c, QN, QR, &j.room[0]);
    j.call.in[JOINT_K] = beside(c, KN, KR, &j.room[1]);
    j.call.in[JOINT_V] = c->in[V];
    return j;
}
static void leave(Joined *j) {
    free(j->room[0]);
    free(j->room[1]);
}
static void forward(const OpCall *c) {
    Joined j = joined(c);
    j.call.op->forward(&j.call);
    leave(&j);
}

/* ---- towards an operand: its columns of the joint operand's gradient ---- */
static int joint_operand(int operand) {
    return operand == V ? JOINT_V : operand >= KN ? JOINT_K : JOINT_Q;
}
/* The operand's columns of a packed value like the joint operand. */
static Tensor own_columns(const OpCall *c, const Tensor *joint) {
    bool second = c->operand == QR || c->operand == KR;
    int64_t n = c->out.n[c->out.nd - 1];
    return columns(joint, second ? joint->n[X_] - n : 0, n, c->dtype);
}
/* Adds over heads, in their order, in double and rounded once. */
static void add_heads(const Tensor *from, const Tensor *to, Dtype dt) {
    int64_t i[4] = {0}, outer[4] = {to->n[0], to->n[1], to->n[2], 0};
    if (box_empty(to)) return;
    do {
        double sum = 0;
        int64_t at[4] = {i[0], i[1], 0, i[2]};
        for (; at[K_] < from->n[K_]; at[K_]++) sum += el_get(from, dt, box_offset(from, 4, at));
        el_set(to, dt, box_offset(to, 3, i), sum);
    } while (box_next(3, outer, i));
}
static void adjoint(const OpCall *c) {
    Joined j = joined(c);
    j.call.operand = joint_operand(c->operand);
    if (c->operand != V) {
        j.call.out =
            sized(&j.call.in[j.call.operand], c->in[QN].n[K_], j.call.in[j.call.operand].n[X_]);
        j.call.out.p = base_malloc(base_mul((size_t)tensor_count(&j.call.out) + 1, 8));
    }
    j.call.op->adjoint(&j.call);
    Tensor part = own_columns(c, &j.call.out);
    if (c->operand == KR) add_heads(&part, &c->out, c->dtype);
    else if (c->operand != V) copy_all(&part, &c->out, c->dtype);
    if (c->operand != V) free(j.call.out.p);
    leave(&j);
}

/* ---- bounds ---- */
/* Of a sum over heads: what its terms are off by, and its own roundings. */
static void bound_heads(const OpBound *b, const OpBound *of, const Tensor *grad) {
    const Tensor *out = &b->call.out;
    Tensor terms = own_columns(&b->call, grad), hi = *grad, lo = *grad;
    int64_t i[4] = {0}, heads = grad->n[K_];
    hi.p = of->bound, lo.p = of->prob;
    hi = own_columns(&b->call, &hi), lo = own_columns(&b->call, &lo);
    double up = gamma_n((double)heads, b->u), low = gamma_prob((double)heads, b->u);
    int64_t outer[3] = {out->n[0], out->n[1], out->n[2]};
    for (int64_t to = 0; !box_empty(out); to++) {
        double all = 0, far = 0, near = 0;
        for (int64_t k = 0; k < heads; k++) {
            int64_t at[4] = {i[0], i[1], k, i[2]};
            all += fabs(el_get(&terms, DT_F64, box_offset(&terms, 4, at)));
            far += el_get(&hi, DT_F64, box_offset(&hi, 4, at));
            near += el_get(&lo, DT_F64, box_offset(&lo, 4, at));
        }
        b->bound[to] = far + up * (all + far);
        b->prob[to] = near + low * (all + near);
        if (!box_next(3, outer, i)) return;
    }
}
static void bound_columns(const OpBound *b, const OpBound *of, const Tensor *grad) {
    Tensor hi = *grad, lo = *grad, to = b->call.out;
    hi.p = of->bound, lo.p = of->prob;
    hi = own_columns(&b->call, &hi), lo = own_columns(&b->call, &lo);
    tensor_pack(&to);
    to.p = b->bound;
    copy_all(&hi, &to, DT_F64);
    to.p = b->prob;
    copy_all(&lo, &to, DT_F64);
}
static void bound(const OpBound *b) {
    Joined j = joined(&b->call);
    OpBound of = *b;
    of.call = j.call;
    if (b->operand < 0 || b->operand == V) {
        of.operand = b->operand < 0 ? -1 : JOINT_V;
        of.call.operand = of.operand;
        of.call.op->bound(&of);
        leave(&j);
        return;
    }
    of.operand = of.call.operand = joint_operand(b->operand);
    Tensor grad = of.call.in[of.operand]; /* [b, t, k, n + r] */
    size_t n = (size_t)tensor_count(&grad);
    double *room = base_malloc(base_mul(base_mul(3, n) + 1, 8));
    tensor_pack(&grad);
    grad.p = room;
    of.bound = room + n, of.prob = room + 2 * n;
    of.call.out = grad;
    of.call.op->adjoint(&of.call);
    of.call.op->bound(&of);
    if (b->operand == KR) bound_heads(b, &of, &grad);
    else bound_columns(b, &of, &grad);
    free(room);
    leave(&j);
}

static void exact(const OpCall *c) {
    Joined j = joined(c);
    j.call.op->exact(&j.call);
    leave(&j);
}
/* The joint call with sizes only: it takes nothing, and is not left. */
static OpCall joint_sizes(const OpCall *c) {
    OpCall sizes = *c;
    for (int i = 0; i < c->rule->nin; i++) sizes.in[i].p = NULL;
    return joined(&sizes).call;
}
static double flops(const OpCall *c) {
    OpCall j = joint_sizes(c);
    return j.op->flops(&j);
}
/* Queries and keys side by side, and `more` times the one that the gradient is of. */
static int64_t beside_bytes(const OpCall *j, int operand, int more) {
    int64_t n = tensor_count(&j->in[JOINT_Q]) + tensor_count(&j->in[JOINT_K]);
    if (operand >= 0 && operand != V) n += more * tensor_count(&j->in[joint_operand(operand)]);
    return 8 * n;
}
static void scratch(const OpCall *c, int64_t n, bool backward, OpScratch *s) {
    OpCall j = joint_sizes(c);
    j.op->scratch(&j, n, backward, s);
    s->call = beside_bytes(&j, backward ? c->operand : -1, 1);
}
static void bound_scratch(const OpBound *b, OpScratch *s) {
    OpBound of = *b;
    of.call = joint_sizes(&b->call);
    if (b->operand >= 0) of.operand = joint_operand(b->operand);
    of.call.op->bound_scratch(&of, s);
    s->call = beside_bytes(&of.call, b->operand, 3);
    if (b->operand < 0 || b->operand == V) return;
    OpScratch again = {0}; /* the gradient is made once more */
    of.call.op->scratch(&of.call, 1, true, &again);
    s->attention = again.attention;
}
static double *probabilities(const OpCall *c, int64_t *n) {
    Joined j = joined(c);
    double *p = j.call.op->probe_run(&j.call, n);
    leave(&j);
    // cppcheck-suppress returnDanglingLifetime ; what it returns is its own, not the call
    return p;
}
const Op op_attention_two_parts = {
    .name = "attention_two_parts",
    .rule = "btkn!,btkr!,bs!kn!,bs!r!,bs!ko!->btko",
    .lin = LIN_NONE,
    .mixed = 1 + V,
    .asks = RULE_BIT('t') | RULE_BIT('s'),
    .forward = forward,
    .adjoint = adjoint,
    .scratch = scratch,
    .bound = bound,
    .bound_scratch = bound_scratch,
    .bound_each = BOUND_EACH,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint_same,
    .flops = flops,
    .probe = "attn_probs",
    .probe_run = probabilities,
    .mixes = true,
    .part = &op_attention_two_parts_part,
    .merge = &op_attention_merge,
    .join = &op_attention_join,
    .label = "causal attention",
};
const Op op_attention_two_parts_part = {
    .name = "attention_two_parts_part",
    .rule = "btkn!,btkr!,bs~t!kn!,bs~t!r!,bs~t!ko!->btkp",
    .lin = LIN_NONE,
    .asks = RULE_BIT('t') | RULE_BIT('s'),
    .adj_reads_output = true,
    .forward = forward,
    .adjoint = adjoint,
    .scratch = scratch,
    .bound = bound,
    .bound_scratch = bound_scratch,
    .exact = exact,
    .exact_adjoint = op_exact_adjoint_same,
    .flops = flops,
    .mixes = true,
    .label = "partial attention",
};
