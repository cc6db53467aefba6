/* Launches of attention with scores in two parts: both parts of queries and of keys are laid side
 * by side in scratch memory, and attention is asked for; see ops/attention_two_parts.c. */
#include "launch/launch.h"
#include <string.h>

enum { QN, QR, KN, KR, V }; /* operands */

static Tensor in_scratch(const LaunchCall *x, const Tensor *like, int64_t width) {
    Tensor t = {.nd = 4, .n = {like->n[0], like->n[1], like->n[2], width}};
    tensor_pack(&t);
    t.p = x->to->scratch(x->to->arg, (tensor_count(&t) + 1) * dtype_size(x->c->dtype));
    return t;
}
/* n columns of the last of four dims. */
static Tensor columns(const LaunchCall *x, const Tensor *t, int64_t from, int64_t n) {
    Tensor v = *t;
    v.p = (char *)t->p + from * t->s[3] * dtype_size(x->c->dtype);
    v.n[3] = n;
    return v;
}
static void copy(const LaunchCall *x, const Tensor *to, const Tensor *from, const char *letters) {
    GpuLaunch l = launch_over(x, GPU_copy, to, to);
    launch_operand(&l, 0, from, letters, "bskr");
    launch_map(x, &l);
}
/* Columns n of each head's own and behind them the other's, which heads may share. */
static Tensor beside(const LaunchCall *x, int own, int other) {
    const Tensor *a = &x->c->in[own], *b = &x->c->in[other];
    int64_t n = a->n[3], r = b->n[b->nd - 1];
    Tensor all = in_scratch(x, a, n + r), first = columns(x, &all, 0, n),
           second = columns(x, &all, n, r);
    copy(x, &first, a, "bskr");
    copy(x, &second, b, b->nd == 4 ? "bskr" : "bsr");
    return all;
}
/* Of the shared key's gradient at each head [b, s, k, r] the sum over k. */
static bool add_heads(const LaunchCall *x, const Tensor *part) {
    const char *why, *letters = "bskr";
    int at;
    Rule r;
    OpCall sum = *x->c;
    if (!rule_parse("bskr->bsr", &r, &why, &at)) return false;
    sum.rule = &r;
    sum.in[0] = *part;
    for (int d = 0; d < 4; d++) {
        sum.local[letters[d] - 'a'] = part->n[d];
        sum.index[letters[d] - 'a'] = NULL;
    }
    return launch_einsum(x, &sum);
}
/* `attention`: what is asked for with both parts side by side. */
static bool two_parts(const LaunchCall *x, LaunchFn *attention) {
    const OpCall *c = x->c;
    OpCall joint = *c;
    LaunchCall whole = {&joint, x->adjoint, x->to};
    joint.in[0] = beside(x, QN, QR);
    joint.in[1] = beside(x, KN, KR);
    joint.in[2] = c->in[V];
    if (!x->adjoint) return attention(&whole);
    joint.operand = c->operand == V ? 2 : c->operand >= KN;
    if (c->operand == V) return attention(&whole);
    const Tensor *like = &joint.in[joint.operand];
    joint.out = in_scratch(x, like, like->n[3]);
    if (!attention(&whole)) return false;
    bool second = c->operand == QR || c->operand == KR;
    int64_t n = c->out.n[c->out.nd - 1];
    Tensor part = columns(x, &joint.out, second ? like->n[3] - n : 0, n);
    if (c->operand == KR) return add_heads(x, &part);
    copy(x, &c->out, &part, "bskr");
    return true;
}
LaunchFn launch_attention, launch_attention_part, launch_attention_two_parts,
    launch_attention_two_parts_part;
bool launch_attention_two_parts(const LaunchCall *x) { return two_parts(x, launch_attention); }
bool launch_attention_two_parts_part(const LaunchCall *x) {
    return two_parts(x, launch_attention_part);
}
