/* Adjoints of level 3 (--exact): integers modulo a prime in place of what ops compute with real
 * numbers, so that no order of summation changes a bit, and what a cut adds up wrongly shows in
 * every bit. Refuses to know ops: which numbers a result depends on, and what is summed over, is
 * what the op's rule says. */
#include "ops/exact.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

/* fmod of whole numbers that a double holds, at the speed of a division. */
static double residue(double x, double p) { return x - p * (double)(int64_t)(x / p); }

void op_exact_same(const OpCall *c) { c->op->forward(c); }
void op_exact_adjoint_same(const OpCall *c) { c->op->adjoint(c); }

/* ---- by the rule ---- */
/* An array with a step per letter: 0 for those that it has not. */
typedef struct {
    const Tensor *t;
    const char *letters;
    int64_t step[26];
    double *sums; /* over its whole letters, with steps of its own; NULL: it has none */
    int64_t of[26];
} Named;
enum { SAVED = RULE_MAX_IN + 1 }; /* operands, and the forward output */
typedef struct {
    const OpCall *c;
    int n; /* letters of all arrays */
    char letter[26];
    int64_t size[26];
    Named cot, out, saved[SAVED];
    int n_saved;
    bool linear[SAVED];
    double factor[SAVED];
} ByRule;

static Named named(const Tensor *t, const char *letters) {
    Named x = {.t = t, .letters = letters};
    for (int d = 0; d < t->nd; d++) x.step[letters[d] - 'a'] = t->s[d];
    return x;
}
static void add_letters(ByRule *r, const Named *x) {
    for (int d = 0; d < x->t->nd; d++) {
        int at = 0;
        while (at < r->n && r->letter[at] != x->letters[d]) at++;
        if (at < r->n) continue;
        r->letter[r->n] = x->letters[d];
        r->size[r->n++] = x->t->n[d];
    }
}
static int64_t offset(const ByRule *r, const int64_t *step, const int64_t *i) {
    int64_t o = 0;
    for (int k = 0; k < r->n; k++) o += i[k] * step[r->letter[k] - 'a'];
    return o;
}
/* The sums of x over its whole letters, of each index of the others; of numbers in `from`, packed
 * (NULL: those of the tensor). */
static void sum_whole(Named *x, const OpCall *c, const double *from) {
    int64_t n = 1, i[LAYOUT_MAX_DIMS] = {0}, step[LAYOUT_MAX_DIMS];
    bool any = false;
    for (int d = x->t->nd - 1; d >= 0; d--) {
        bool whole = c->rule->whole & RULE_BIT(x->letters[d]);
        step[d] = x->of[x->letters[d] - 'a'] = whole ? 0 : n;
        if (!whole) n *= x->t->n[d];
        any |= whole;
    }
    if (!any) return;
    x->sums = base_malloc(base_mul((size_t)n + 1, sizeof *x->sums));
    for (int64_t k = 0; k < n; k++) x->sums[k] = 0;
    if (box_empty(x->t)) return;
    int64_t at = 0;
    do {
        int64_t to = 0;
        for (int d = 0; d < x->t->nd; d++) to += i[d] * step[d];
        double v = from ? from[at++] : el_get(x->t, c->dtype, box_offset(x->t, x->t->nd, i));
        x->sums[to] = residue(x->sums[to] + v, c->modulus);
    } while (box_next(x->t->nd, x->t->n, i));
}
static void add_saved(ByRule *r, const Tensor *t, const char *letters, bool linear) {
    int k = r->n_saved++;
    r->saved[k] = named(t, letters);
    r->linear[k] = linear;
    r->factor[k] = 2 + k; /* below every modulus */
    add_letters(r, &r->saved[k]);
    if (!linear) sum_whole(&r->saved[k], r->c, NULL);
}
/* What a place of all letters adds to its place of the result: the cotangent, times what the op is
 * linear in, times 1 + a sum of all that is saved. */
static double term(const ByRule *r, const int64_t *i) {
    const OpCall *c = r->c;
    double x = el_get(&c->cot, c->dtype, offset(r, r->cot.step, i)), by = 1;
    for (int k = 0; k < r->n_saved; k++) {
        const Named *s = &r->saved[k];
        double v = el_get(s->t, c->dtype, offset(r, s->step, i));
        if (r->linear[k]) x = residue(x * v, c->modulus);
        else by += r->factor[k] * (v + (s->sums ? 3 * s->sums[offset(r, s->of, i)] : 0));
    }
    return residue(x * residue(by, c->modulus), c->modulus);
}
/* Writes what is in `sum`; where the op is not linear in the operand, what stands in its whole
 * letters depends on all of them. */
static void write_out(ByRule *r, const double *sum) {
    const OpCall *c = r->c;
    Named *o = &r->out;
    int64_t i[LAYOUT_MAX_DIMS] = {0}, at = 0;
    if (!op_linear_in(c->op, c->operand)) sum_whole(o, c, sum);
    do {
        double x = sum[at++];
        int64_t of = 0;
        for (int d = 0; d < c->out.nd; d++) of += i[d] * o->of[o->letters[d] - 'a'];
        if (o->sums) x += 5 * o->sums[of];
        el_set(&c->out, c->dtype, box_offset(&c->out, c->out.nd, i), residue(x, c->modulus));
    } while (box_next(c->out.nd, c->out.n, i));
}
/* For out = f(operands) by any rule, towards one of them: the sum over the letters that this one
 * has not. */
void op_exact_adjoint(const OpCall *c) {
    const Rule *rule = c->rule;
    ByRule r = {
        .c = c, .cot = named(&c->cot, rule->out), .out = named(&c->out, rule->in[c->operand])};
    int64_t i[26] = {0}, n = tensor_count(&c->out), all = 1;
    if (!n) return;
    add_letters(&r, &r.cot);
    add_letters(&r, &r.out);
    for (int k = 0; k < rule->nin; k++)
        if (c->in[k].p && !(c->in_int >> k & 1) && !(k == c->operand && op_linear_in(c->op, k)))
            add_saved(&r, &c->in[k], rule->in[k], k != c->operand && op_linear_in(c->op, k));
    if (c->fout.p) add_saved(&r, &c->fout, rule->out, false);
    double *sum = base_malloc(base_mul((size_t)n, sizeof *sum));
    for (int64_t k = 0; k < n; k++) sum[k] = 0;
    for (int k = 0; k < r.n; k++) all *= r.size[k];
    if (all) do {
            int64_t at = offset(&r, r.out.step, i); /* it is packed */
            sum[at] = residue(sum[at] + term(&r, i), c->modulus);
        } while (box_next(r.n, r.size, i));
    write_out(&r, sum);
    free(sum);
    free(r.out.sums);
    for (int k = 0; k < r.n_saved; k++) free(r.saved[k].sums);
}

/* ---- attention ---- */
static double at(const ExactAttention *a, const ExactRows *x, int64_t row, int64_t k) {
    Tensor t = {.p = x->p};
    return el_get(&t, a->dtype, row * x->step + k);
}
static double dot(const ExactAttention *a, const ExactRows *x, int64_t i, const ExactRows *y,
                  int64_t j, int64_t n) {
    double sum = 0;
    for (int64_t k = 0; k < n; k++) sum += at(a, x, i, k) * at(a, y, j, k);
    return sum;
}
/* What stands in place of the probability of key s, and of its cotangent. */
static double weight(const ExactAttention *a, int64_t t, int64_t s) {
    return residue(1 + dot(a, &a->q, t, &a->k, s, a->d), a->modulus);
}
static double towards_weight(const ExactAttention *a, int64_t t, int64_t s) {
    double lse = a->fout.p ? at(a, &a->cot, t, a->dv) : 0;
    return residue(dot(a, &a->cot, t, &a->v, s, a->dv) + lse, a->modulus);
}
/* What all keys of a query have in common: the sum over them, in parts the result's own. */
static double of_query(const ExactAttention *a, int64_t t, AttentionRun run) {
    double sum = a->fout.p ? dot(a, &a->cot, t, &a->fout, t, a->dv + 1) : 0;
    for (int64_t s = run.from; s < run.lim && !a->fout.p; s++)
        sum += weight(a, t, s) * towards_weight(a, t, s);
    return residue(sum, a->modulus);
}
static void add_row(double *to, double by, const ExactAttention *a, const ExactRows *x, int64_t row,
                    int64_t n) {
    for (int64_t k = 0; k < n; k++) to[k] += by * at(a, x, row, k);
}
static void add_pairs(const ExactAttention *a, int64_t t, double *to) {
    AttentionRun run = attention_run(a->mask, t, a->ns);
    double common = a->operand == 2 ? 0 : of_query(a, t, run);
    for (int64_t s = run.from; s < run.lim; s++) {
        double w = weight(a, t, s);
        double score =
            a->operand == 2 ? 0 : residue(w * (towards_weight(a, t, s) + common), a->modulus);
        if (a->operand == 0) add_row(to + t * a->d, score, a, &a->k, s, a->d);
        if (a->operand == 1) add_row(to + s * a->d, score, a, &a->q, t, a->d);
        if (a->operand == 2) add_row(to + s * a->dv, w, a, &a->cot, t, a->dv);
    }
}
void exact_attention_adjoint(const ExactAttention *a) {
    int64_t rows = a->operand == 0 ? a->nt : a->ns, n = a->operand == 2 ? a->dv : a->d;
    double *to = base_malloc(base_mul((size_t)(rows * n) + 1, sizeof *to));
    for (int64_t k = 0; k < rows * n; k++) to[k] = 0;
    for (int64_t t = 0; t < a->nt; t++) add_pairs(a, t, to);
    Tensor out = {.p = a->out.p};
    for (int64_t i = 0; i < rows; i++)
        for (int64_t k = 0; k < n; k++) {
            double had = a->more ? at(a, &a->out, i, k) : 0;
            el_set(&out, a->dtype, i * a->out.step + k, residue(had + to[i * n + k], a->modulus));
        }
    free(to);
}
