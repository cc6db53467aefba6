/* Calls of one step that read an operand in common are one product (Op.together): the bits of calls
 * one by one, whatever the ranks have in common, and nothing done where they have nothing. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/arena.h"
#include "kernel/pool.h"
#include "ops/op.h"
#include <string.h>

static uint64_t seed = 1;
static int64_t pick(int64_t n) {
    seed = seed * 6364136223846793005u + 1442695040888963407u;
    return (int64_t)((seed >> 33) % (uint64_t)n);
}
static Tensor filled(Arena *a, int nd, const int64_t *n, bool strided) {
    Tensor t = {.nd = nd};
    for (int d = 0; d < nd; d++) t.n[d] = n[d];
    tensor_pack(&t);
    if (strided) /* a view of something wider */
        for (int d = 0; d < nd - 1; d++) t.s[d] *= 2;
    int64_t count = 2 * tensor_count(&t) + 1;
    float *x = ARENA_ARRAY(a, float, count);
    for (int64_t i = 0; i < count; i++) x[i] = (float)(pick(4001) - 2000) / 1024;
    t.p = x;
    return t;
}
/* Which operands n ranks have in common, and how the output is cut. */
typedef struct {
    const char *rule;
    int operand; /* -1: forward */
    int same;    /* this operand's block (2: the cotangent's) is one for `of` ranks in a row */
    int of;
    bool uneven, strided, joined;
} Case;
static const Case cases[] = {
    {"btd,fd->btf", -1, 0, 5, false, false, true}, /* gathered tokens, a cut of the weight each */
    {"btd,fd->btf", -1, 0, 5, false, true, true},
    {"btd,fd->btf", -1, 0, 2, false, false, true},  /* two groups of two, one left over */
    {"btd,fd->btf", -1, 1, 5, true, false, true},   /* a weight, tokens of each rank */
    {"btd,fd->btf", -1, 0, 5, true, false, false},  /* rows of unequal length in the results */
    {"btd,fd->btf", -1, 0, 1, false, false, false}, /* nothing in common */
    {"btd,hxd->bthx", -1, 0, 5, false, false, true},
    {"bthx,dhx->btd", -1, 1, 3, false, false, true},
    {"btd,fd->btf", 1, 0, 5, false, false, true}, /* the gradient of a weight, tokens in common */
    {"btd,fd->btf", 1, 0, 5, true, false, false}, /* cotangents whose rows differ in length */
    {"btd,fd->btf", 0, 2, 5, false, false, true}, /* one cotangent: a sum's is everybody's */
    {"ebd,efd->ebf", -1, 0, 5, false, false, false}, /* batches */
};
enum { RANKS = 5, CASES = sizeof cases / sizeof *cases };
static int64_t size_of(const Case *x, char letter, int rank) {
    int64_t n = letter == 'b' || letter == 'e' ? 2 : letter == 't' ? 9 : letter == 'd' ? 40 : 6;
    return x->uneven && letter == (x->same == 1 ? 't' : 'f') ? n + rank : n;
}
static Tensor block(Arena *a, const Case *x, const char *letters, int n, int rank) {
    int64_t size[LAYOUT_MAX_DIMS];
    for (int d = 0; d < n; d++) size[d] = size_of(x, letters[d], rank);
    return filled(a, n, size, x->strided);
}
static void hold_case(Arena *a, const Case *x, Pool *pool) {
    Rule r;
    const char *error;
    int at;
    assert_true(rule_parse(x->rule, &r, &error, &at));
    const bool back = x->operand >= 0;
    OpCall call[RANKS] = {{0}}, alone[RANKS];
    for (int i = 0; i < RANKS; i++) {
        OpCall *c = &call[i], *first = &call[i / x->of * x->of];
        *c = (OpCall){.op = op_find("einsum"), .rule = &r, .dtype = DT_F32, .operand = x->operand};
        for (int k = 0; k < 2; k++) c->in[k] = block(a, x, r.in[k], r.nl[k], i);
        if (back) c->cot = block(a, x, r.out, r.nout, i);
        c->out = back ? filled(a, c->in[x->operand].nd, c->in[x->operand].n, false)
                      : block(a, x, r.out, r.nout, i);
        if (back) c->in[x->operand].p = NULL;
        if (x->same == 2) c->cot = first->cot;
        else c->in[x->same] = first->in[x->same];
        alone[i] = *c;
        alone[i].out.p = memcpy(ARENA_ARRAY(a, float, 2 * tensor_count(&c->out) + 1), c->out.p,
                                (size_t)(2 * tensor_count(&c->out) + 1) * sizeof(float));
        (back ? c->op->adjoint : c->op->forward)(&alone[i]);
    }
    if (call->op->together(call, RANKS, back, pool) != x->joined)
        fail_msg("%s, operand %d, in common %d", x->rule, x->operand, x->same);
    for (int i = 0; i < RANKS && x->joined; i++)
        assert_memory_equal(call[i].out.p, alone[i].out.p,
                            (size_t)(2 * tensor_count(&call[i].out) + 1) * sizeof(float));
}
static void test_together(void **s) {
    (void)s;
    Arena *a = arena_new();
    Pool *pool = pool_new(2);
    for (int i = 0; i < CASES; i++)
        for (int threads = 0; threads < 2; threads++)
            hold_case(a, &cases[i], threads ? pool : NULL);
    pool_free(pool);
    arena_free(a);
}
/* Large enough for workers, and for blocks of rows, columns and sums. */
static void test_large(void **s) {
    (void)s;
    enum { M = 300, K = 400, N = 400, N_RANKS = 4 };
    Arena *a = arena_new();
    Pool *pool = pool_new(2);
    Rule r;
    const char *error;
    int at;
    assert_true(rule_parse("td,fd->tf", &r, &error, &at));
    OpCall call[N_RANKS] = {{0}}, alone[N_RANKS];
    Tensor x = filled(a, 2, (const int64_t[]){M, K}, false);
    for (int i = 0; i < N_RANKS; i++) {
        call[i] = (OpCall){.op = op_find("einsum"), .rule = &r, .dtype = DT_F32, .in[0] = x};
        call[i].in[1] = filled(a, 2, (const int64_t[]){N, K}, false);
        call[i].out = filled(a, 2, (const int64_t[]){M, N}, false);
        alone[i] = call[i];
        alone[i].out.p = ARENA_ARRAY(a, float, M *N);
        alone[i].op->forward(&alone[i]);
    }
    assert_true(call->op->together(call, N_RANKS, false, pool));
    for (int i = 0; i < N_RANKS; i++)
        assert_memory_equal(call[i].out.p, alone[i].out.p, M * N * sizeof(float));
    pool_free(pool);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_together),
                                       cmocka_unit_test(test_large)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
