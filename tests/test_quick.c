/* Products held by random projections (`--check quick`): a right one is held, a number that is off
 * by what the record promises is noticed, and on every shipped plan, every bug and random plans
 * with their mutations the verdict, the first wrong value and its cause are those of the full
 * check. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/file.h"
#include "exec/check.h"
#include "exec/project.h"
#include "lower/program.h"
#include "support/random_run.h"
#include "support/spoil.h"
#include "support/support.h"
#include <glob.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

static uint64_t state = 1;
static uint64_t bits(void) { /* splitmix64 */
    uint64_t z = state += 0x9E3779B97F4A7C15u;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
    z = (z ^ z >> 27) * 0x94D049BB133111EBu;
    return z ^ z >> 31;
}
/* Heavy-tailed: some rows a hundred times others. */
static double number(void) {
    double x = (double)(bits() >> 11) * 0x1p-53 - 0.45;
    return bits() % 37 ? x : 100 * x;
}

/* ---- one product ---- */
typedef struct {
    const char *rule;
    int64_t size[26];
    int operand; /* -1: forward */
} Case;
static Rule rule_of(const char *text) {
    Rule r;
    const char *error;
    int at;
    assert_true(rule_parse(text, &r, &error, &at));
    return r;
}
/* Rows: expert by expert, some of whose tokens; the one before the last has none. */
static int64_t rows_of(const Case *c, int64_t *id) {
    int64_t experts = c->size['e' - 'a'], tokens = c->size['b' - 'a'] * c->size['t' - 'a'], n = 0;
    for (int64_t e = 0; e < experts; e++)
        for (int64_t k = 0; k < tokens; k++)
            if (e != experts - 2 && (k * 7 + e * 5) % (2 + e) == 0) {
                if (id) id[n] = e * tokens + k;
                n++;
            }
    return n;
}
/* Of a factor or a result; letters in `listed` are rows together. */
static Tensor filled(Arena *a, const Case *c, const char *letters, uint32_t listed, Dtype dt,
                     bool zero) {
    Tensor t = {.nd = (int)strlen(letters)};
    for (int d = 0; d < t.nd; d++) {
        bool row = listed & RULE_BIT(letters[d]);
        t.n[d] = !row ? c->size[letters[d] - 'a'] : d ? 1 : rows_of(c, NULL);
    }
    tensor_pack(&t);
    int64_t count = tensor_count(&t);
    t.p = arena_alloc(a, (size_t)(count ? count : 1) * 8);
    for (int64_t i = 0; i < count && !zero; i++)
        if (dt == DT_F32) ((float *)t.p)[i] = (float)number();
        else ((double *)t.p)[i] = number();
    return t;
}
/* A right product. */
static Projection product(Arena *a, const Case *c, Rule *r, Dtype dt) {
    *r = rule_of(c->rule);
    OpCall call = {.op = op_find("einsum"), .rule = r, .dtype = dt};
    for (int k = 0; k < 26; k++) call.local[k] = call.global[k] = c->size[k];
    bool adjoint = c->operand >= 0;
    for (int i = 0; i < 2; i++) {
        call.in[i] = filled(a, c, r->in[i], r->listed[i], dt, false);
        if (i == c->operand) call.in[i].p = NULL; /* a bilinear op does not read it */
    }
    uint32_t of_out = r->listed[RULE_MAX_IN];
    if (adjoint) call.operand = c->operand, call.cot = filled(a, c, r->out, of_out, dt, false);
    call.out = adjoint ? filled(a, c, r->in[c->operand], r->listed[c->operand], dt, true)
                       : filled(a, c, r->out, of_out, dt, true);
    if (rule_listed(r)) {
        call.rows = rows_of(c, NULL);
        call.ids = (Tensor){.nd = 1, .n = {call.rows}, .s = {1}};
        rows_of(c, call.ids.p = ARENA_ARRAY(a, int64_t, call.rows));
    }
    (adjoint ? call.op->adjoint : call.op->forward)(&call);
    return (Projection){.host = device_plain(),
                        .call = call,
                        .adjoint = adjoint,
                        .u = dt == DT_F32 ? 0x1p-24 : 0x1p-52,
                        .seed = 7,
                        .of = 3};
}
static double get(const Projection *p, int64_t i) {
    return p->call.dtype == DT_F32 ? (double)((float *)p->call.out.p)[i]
                                   : ((double *)p->call.out.p)[i];
}
static void set(const Projection *p, int64_t i, double x) {
    if (p->call.dtype == DT_F32) ((float *)p->call.out.p)[i] = (float)x;
    else ((double *)p->call.out.p)[i] = x;
}
#define SIZES(...)                                                                                 \
    { __VA_ARGS__ }
#define L(ch, n) [(ch) - 'a'] = (n)
#define EXPERTS SIZES(L('e', 5), L('b', 2), L('t', 13), L('d', 40), L('f', 70))
static const Case cases[] = {
    {"btd,fd->btf", SIZES(L('b', 2), L('t', 7), L('d', 50), L('f', 150)), -1},
    {"btd,fd->btf", SIZES(L('b', 2), L('t', 7), L('d', 50), L('f', 150)), 0},
    {"btd,fd->btf", SIZES(L('b', 2), L('t', 70), L('d', 50), L('f', 150)), 1},
    {"btd,hxd->bthx", SIZES(L('b', 1), L('t', 9), L('d', 64), L('h', 3), L('x', 33)), -1},
    {"btd,hxd->bthx", SIZES(L('b', 1), L('t', 9), L('d', 64), L('h', 3), L('x', 33)), 1},
    {"bthx,dhx->btd", SIZES(L('b', 3), L('t', 5), L('d', 65), L('h', 4), L('x', 8)), 0},
    {"ebd,efd->ebf", SIZES(L('e', 5), L('b', 6), L('d', 20), L('f', 129)), -1}, /* batches */
    {"ebd,efd->ebf", SIZES(L('e', 5), L('b', 6), L('d', 20), L('f', 129)), 1},
    {"[ebt]d,efd->[ebt]f", EXPERTS, -1}, /* rows of experts */
    {"[ebt]d,efd->[ebt]f", EXPERTS, 0},
    {"[ebt]d,efd->[ebt]f", EXPERTS, 1},
    {"bd,fd->bf", SIZES(L('b', 3), L('d', 11), L('f', 5)), -1}, /* nothing is as long as a block */
    {"bd,fd->bf", SIZES(L('b', 1), L('d', 300), L('f', 64)), -1},
};
enum { CASES = sizeof cases / sizeof *cases };
static void test_right_products_are_held(void **s) {
    (void)s;
    for (int k = 0; k < 2 * CASES; k++) {
        Arena *a = arena_new();
        Rule r;
        Projection p = product(a, &cases[k / 2], &r, k % 2 ? DT_F64 : DT_F32);
        assert_true(project_can(&p));
        Projected seen = project_hold(&p), again = project_hold(&p);
        if (!seen.held || !(seen.used < 0.5) || !(seen.notice > 0))
            fail_msg("%s, operand %d: used %g, notice %g", cases[k / 2].rule, cases[k / 2].operand,
                     seen.used, seen.notice);
        assert_memory_equal(&seen.residual, &again.residual, sizeof seen.residual);
        arena_free(a);
    }
}
/* What is no sum, no product of two, or asks for positions is not for projections. */
static void test_what_cannot_be(void **s) {
    (void)s;
    static const Case no[] = {
        {"btd,d->btd", SIZES(L('b', 2), L('t', 7), L('d', 50)), -1},
        {"bd,bd->b", SIZES(L('b', 9), L('d', 50)), -1}, /* no letter that one has alone */
        {"bd,d->b", SIZES(L('b', 1), L('d', 50)), -1},
        {"[ebt]d,[ebt]->btd", EXPERTS, 1}, /* only rows by themselves, which are no dim */
    };
    for (size_t k = 0; k < sizeof no / sizeof *no; k++) {
        Arena *a = arena_new();
        Rule r;
        Projection p = product(a, &no[k], &r, DT_F32);
        assert_false(project_can(&p));
        arena_free(a);
    }
    Projection p = {.call = {.op = op_find("rmsnorm")}};
    assert_false(project_can(&p));
}
/* The root mean square of the elements of element i's row: along the letter that is cut, which for
 * these cases is found by trying all dims and taking the smallest promise. */
static double row_scale(const Projection *p, int64_t i) {
    const Tensor *t = &p->call.out;
    double most = 0;
    for (int d = 0; d < t->nd; d++) {
        int64_t at = i / t->s[d] % t->n[d], base = i - at * t->s[d];
        double square = 0;
        for (int64_t k = 0; k < t->n[d]; k++)
            square += get(p, base + k * t->s[d]) * get(p, base + k * t->s[d]);
        most = fmax(most, sqrt(square / (double)t->n[d]));
    }
    return most;
}
static void test_what_is_promised_is_noticed(void **s) {
    (void)s;
    for (int k = 0; k < 2 * CASES; k++) {
        Arena *a = arena_new();
        Rule r;
        Projection p = product(a, &cases[k / 2], &r, k % 2 ? DT_F64 : DT_F32);
        double notice = project_hold(&p).notice;
        int64_t n = tensor_count(&p.call.out);
        for (int64_t i = 0; i < n; i += 1 + n / 40) { /* alone in its row it is always noticed */
            double right = get(&p, i), scale = row_scale(&p, i);
            if (!(scale > 0)) continue;
            set(&p, i, right + (i % 2 ? 1 : -1) * 1.01 * notice * scale);
            if (project_hold(&p).held)
                fail_msg("%s: element %lld is off by %g and held", cases[k / 2].rule, (long long)i,
                         notice * scale);
            set(&p, i, NAN);
            assert_false(project_hold(&p).held);
            set(&p, i, INFINITY);
            assert_false(project_hold(&p).held);
            set(&p, i, right);
        }
        assert_true(project_hold(&p).held);
        arena_free(a);
    }
}
/* Where a bound is no number nothing is held: of an infinite operand, and of numbers whose squares
 * float64 has not. */
static void test_bounds_without_end(void **s) {
    (void)s;
    for (int k = 0; k < 4 * CASES; k++) {
        Arena *a = arena_new();
        Rule r;
        const Case *c = &cases[k / 4];
        Projection p = product(a, c, &r, k % 2 ? DT_F64 : DT_F32);
        const Tensor *factor = project_factor(&p, k / 2 % 2);
        Projection of = {.call = {.out = *factor, .dtype = p.call.dtype}};
        double x = get(&of, 0);
        set(&of, 0, INFINITY); /* the result is still finite */
        if (project_hold(&p).held)
            fail_msg("%s, operand %d: what has an infinite factor is held", c->rule, c->operand);
        set(&of, 0, x);
        for (int64_t i = 0; i < tensor_count(factor) && k % 2; i++)
            set(&of, i, get(&of, i) * 1e200);
        if (project_hold(&p).held != !(k % 2))
            fail_msg("%s, operand %d: what is too small by 1e-200 is held", c->rule, c->operand);
        arena_free(a);
    }
}
/* ---- attention: rows of values, mixed ---- */
static Projection mixing(Arena *a, const char *name, const Case *c, const Attrs *at, Rule *r) {
    *r = rule_of(c->rule);
    OpCall call = {.op = op_find(name), .rule = r, .dtype = DT_F32, .at = at};
    for (int k = 0; k < 26; k++) call.local[k] = call.global[k] = c->size[k];
    for (int i = 0; i < r->nin; i++) call.in[i] = filled(a, c, r->in[i], 0, DT_F32, false);
    call.out = filled(a, c, r->out, 0, DT_F32, true);
    call.op->forward(&call);
    return (Projection){.host = device_plain(), .call = call, .u = 0x1p-24, .seed = 7, .of = 3};
}
/* A right one is held, whatever mask it has; another mask's, and a number that is off by what is
 * promised, are not. */
static void test_mixed_values(void **s) {
    (void)s;
    static const struct {
        const char *op;
        Case c;
    } of[] = {
        {"attention",
         {"btkgx!,bs!kx!,bs!kx!->btkgx",
          SIZES(L('b', 2), L('t', 70), L('s', 70), L('k', 2), L('g', 3), L('x', 72)), -1}},
        {"attention",
         {"btkx!,bs!kx!,bs!kw!->btkw",
          SIZES(L('b', 2), L('t', 31), L('s', 31), L('k', 3), L('x', 9), L('w', 33)), -1}},
        {"attention_two_parts",
         {"btkn!,btkr!,bs!kn!,bs!r!,bs!ko!->btko",
          SIZES(L('b', 1), L('t', 40), L('s', 40), L('k', 3), L('n', 12), L('r', 7), L('o', 130)),
          -1}},
    };
    static const Attrs masks[] = {{.scale = 0.1},
                                  {.scale = 0.1, .full = true},
                                  {.scale = 0.1, .window = 5},
                                  {.scale = 0.1, .chunk = 16},
                                  {.scale = 0.02, .cap = 3}};
    enum { MASKS = sizeof masks / sizeof *masks };
    for (size_t k = 0; k < MASKS * (sizeof of / sizeof *of); k++) {
        Arena *a = arena_new();
        Rule r;
        const Attrs *at = &masks[k % MASKS], *other = &masks[(k + 1) % MASKS];
        Projection p = mixing(a, of[k / MASKS].op, &of[k / MASKS].c, at, &r);
        assert_true(p.call.op->mixed);
        Projected seen = project_mixed(&p);
        if (!seen.held || !(seen.used < 0.5))
            fail_msg("%s: used %g", of[k / MASKS].c.rule, seen.used);
        p.call.at = other;
        assert_false(project_mixed(&p).held);
        p.call.at = at;
        int64_t n = tensor_count(&p.call.out), w = p.call.out.n[p.call.out.nd - 1];
        for (int64_t i = 0; i < n; i += 1 + n / 20) {
            double right = get(&p, i), square = 0;
            for (int64_t j = i / w * w; j < i / w * w + w; j++) square += get(&p, j) * get(&p, j);
            set(&p, i, right + 1.01 * seen.notice * sqrt(square / (double)w));
            assert_false(square > 0 && project_mixed(&p).held);
            set(&p, i, NAN);
            assert_false(project_mixed(&p).held);
            set(&p, i, right);
        }
        Projection key = {.call = {.out = p.call.in[1], .dtype = DT_F32}};
        double first = get(&key, 0);
        set(&key, 0, INFINITY);
        assert_false(project_mixed(&p).held);
        set(&key, 0, first);
        assert_true(project_mixed(&p).held);
        arena_free(a);
    }
}
/* Of n indices what one of so many ranks may hold: a range, or one of each half. */
static DimIndex some_of(Arena *a, int64_t n, int64_t at, int64_t parts, bool zigzag) {
    int64_t lo = n * at / parts, hi = n * (at + 1) / parts;
    if (!zigzag) return (DimIndex){.range = true, .lo = lo, .n = hi - lo};
    int64_t half = n / 2, *list = ARENA_ARRAY(a, int64_t, n + 1), k = 0;
    lo = half * at / parts, hi = half * (at + 1) / parts;
    for (int64_t i = lo; i < hi; i++) list[k++] = i;
    for (int64_t i = n - hi; i < n - lo; i++) list[k++] = i;
    if (at == parts - 1 && n % 2) { /* the middle one */
        memmove(list + (hi - lo) + 1, list + (hi - lo), (size_t)(hi - lo) * sizeof *list);
        list[hi - lo] = half;
        k++;
    }
    return (DimIndex){.list = list, .n = k};
}
/* The tensor as three uneven parts along one dim, each a copy of its own. */
static AssembleParts parted(Arena *a, const Tensor *t, Dtype dt, int dim, bool zigzag) {
    enum { PARTS = 3 };
    AssembleParts p = {.box = region_plain(t), .n = PARTS};
    p.part = ARENA_ARRAY(a, struct AssemblePart, PARTS);
    for (int64_t i = 0; i < PARTS; i++) {
        Region has = p.box;
        has.d[dim] = some_of(a, t->n[dim], i, PARTS, zigzag);
        has.n[dim] = has.d[dim].n;
        Tensor part = region_packed(&has);
        part.p = arena_alloc(a, (size_t)tensor_count(&part) * 8 + 8);
        region_copy((Block){&has, &part}, (Block){&p.box, t}, dt, COMBINE_COPY);
        p.part[i] = (struct AssemblePart){has, part};
    }
    return p;
}
/* Values that are nowhere whole are projected in parts: the same is seen, but for the order of
 * sums. */
static void test_in_parts(void **s) {
    (void)s;
    int tried = 0;
    for (int k = 0; k < 4 * CASES; k++) {
        Arena *a = arena_new();
        Rule r;
        Projection p = product(a, &cases[k / 4], &r, k % 2 ? DT_F64 : DT_F32);
        Projected whole = project_hold(&p);
        Tensor *factor = project_factor(&p, project_side(&p)), kept = *factor, out = p.call.out;
        bool rows = rule_listed(&r) != 0;
        for (int dim = 0; dim < kept.nd || dim < out.nd; dim++) {
            AssembleParts f = parted(a, &kept, p.call.dtype, dim % kept.nd, k & 2),
                          o = parted(a, &out, p.call.dtype, dim % out.nd, k & 2);
            if (!rows) p.cut = &f, factor->p = NULL;
            if (!rows) p.out = &o, p.call.out.p = NULL;
            Projected seen = project_hold(&p);
            assert_true(seen.held && seen.used < 0.5);
            assert_true(fabs(seen.notice - whole.notice) <= 1e-9 * whole.notice);
            for (int64_t i = 0; i < o.n && !rows; i++) { /* one wrong number in one part */
                Tensor *t = &o.part[i].t;
                int64_t at = tensor_count(t) / 2;
                if (!tensor_count(t)) continue;
                Projection part = {.call = {.out = *t, .dtype = p.call.dtype}};
                double right = get(&part, at);
                set(&part, at, right + 1e3);
                assert_false(project_hold(&p).held);
                set(&part, at, right);
                tried++;
            }
            p.cut = p.out = NULL;
            factor->p = kept.p, p.call.out.p = out.p;
        }
        arena_free(a);
    }
    assert_true(tried > 4 * CASES);
}
/* Errors that would cancel in a plain sum of the row. */
static void test_errors_that_cancel(void **s) {
    (void)s;
    Arena *a = arena_new();
    Rule r;
    Projection p = product(a, &cases[0], &r, DT_F32);
    int64_t f = p.call.out.n[2], rows = tensor_count(&p.call.out) / f, noticed = 0, tried = 0;
    for (int64_t row = 0; row < rows; row++)
        for (int64_t k = 0; k < 60; k += 7) {
            int64_t i = row * f + k, j = i + 1 + (int64_t)(bits() % (uint64_t)(63 - k));
            double x = get(&p, i), y = get(&p, j), off = row_scale(&p, i);
            p.of = bits();
            set(&p, i, x + off);
            set(&p, j, y - off);
            noticed += !project_hold(&p).held;
            tried++;
            set(&p, i, x);
            set(&p, j, y);
        }
    print_message("two errors that cancel: %lld of %lld noticed\n", (long long)noticed,
                  (long long)tried);
    assert_true(noticed * 100 >= tried * 97); /* with signs alone 3 of 4 */
    arena_free(a);
}
/* ---- sums of shares ---- */
enum { SHARES = 5 };
static AssembleParts one_part(Arena *a, const Tensor *t) {
    AssembleParts p = {.box = region_plain(t), .n = 1};
    p.part = ARENA_ARRAY(a, struct AssemblePart, 1);
    p.part[0] = (struct AssemblePart){p.box, *t};
    return p;
}
static void test_sums(void **s) {
    (void)s;
    static const Case sizes = {"btd->btd", SIZES(L('b', 2), L('t', 3), L('d', 150)), -1};
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        const Dtype dt = k ? DT_F64 : DT_F32;
        bool seen[SHARES];
        Tensor share[SHARES], out = filled(a, &sizes, "btd", 0, dt, true);
        AssembleParts shares[SHARES], whole = one_part(a, &out);
        Projection sum = {.call = {.out = out, .dtype = dt}};
        int64_t n = tensor_count(&out);
        for (int i = 0; i < SHARES; i++) { /* of which one has nothing to add */
            share[i] = filled(a, &sizes, "btd", 0, dt, i == 2);
            shares[i] = parted(a, &share[i], dt, i % 3, i & 1);
            Projection term = {.call = {.out = share[i], .dtype = dt}};
            for (int64_t j = 0; j < n; j++) set(&sum, j, get(&sum, j) + get(&term, j));
        }
        ProjectTotal p = {.host = device_plain(),
                          .dt = dt,
                          .u = dt == DT_F32 ? 0x1p-24 : 0x1p-52,
                          .seed = 7,
                          .of = 3,
                          .share = shares,
                          .out = &whole,
                          .n = SHARES};
        Projected right = project_total(&p, seen);
        assert_true(right.held && right.used < 0.5 && right.notice > 0);
        assert_true(right.notice < (k ? 1e-10 : 1e-3));
        for (int i = 0; i < SHARES; i++) assert_int_equal(seen[i], i != 2);
        for (int64_t i = 0; i < n; i += 7) {
            double x = get(&sum, i), scale = row_scale(&sum, i);
            set(&sum, i, x + 1.01 * right.notice * scale);
            assert_false(project_total(&p, seen).held);
            set(&sum, i, NAN);
            assert_false(project_total(&p, seen).held);
            set(&sum, i, x);
        }
        p.n--; /* a term is missing */
        assert_false(project_total(&p, seen).held);
        arena_free(a);
    }
}
/* A sum of float64 numbers below all of float32's is held no less: what rounding may break there is
 * float64's smallest number, in both checks. */
static void test_tiny_sums(void **s) {
    (void)s;
    static const char *const tiny[] = {"1", "1e-60", "1e-150", "1e-200", "1e-290"},
                             *const mistake[] = {"kind: avg", "do: drop", "scale: 1.001"};
    for (size_t k = 0; k < 2 * 5 * 3; k++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {kind: mlp, sizes: [8, 32, 8], bias: false}\n"
            "data: {rows: 6, dtype: f64}\nmesh: {tp: 2}\nplan: {net1: colwise, net2: rowwise}\n"
            "faults: [{at: net1, scale: %s}, {at: all_reduce of net2, %s}]\n",
            tiny[k / 2 % 5], mistake[k / 10]);
        PipelineOptions o = {.execute = true, .check = k % 2 ? CHECK_QUICK : CHECK_FULL};
        PlanRun r = plan_run_with(a, "plan.yaml", text, &o);
        int found = 0;
        for (int i = 0; i < r.t->n_checks; i++) {
            const TraceCheck *c = &r.t->checks[i];
            found +=
                !strcmp(c->value, "net2") && c->level == LEVEL_BOUND && !strcmp(c->verdict, "FAIL");
        }
        if (found != 1)
            fail_msg("times %s, %s, %s check: not found", tiny[k / 2 % 5], mistake[k / 10],
                     k % 2 ? "quick" : "full");
        arena_free(a);
    }
}
/* The table of docs/proof.md: an element off by a share of itself, and how often it is noticed. */
static void test_share_noticed(void **s) {
    (void)s;
    static const struct {
        double off;
        const char *said;
    } rows[] = {{0x1p-23, "one ulp"}, {1e-3, "0.1 %"}, {1e-2, "1 %"}, {0.05, "5 %"},
                {0.1, "10 %"},        {0.5, "50 %"},   {1, "100 %"}};
    state = 1; /* whatever ran before */
    static const Case c = {"td,fd->tf", SIZES(L('t', 64), L('d', 1024), L('f', 192)), -1};
    Arena *a = arena_new();
    size_t bytes;
    bool missing = false;
    const char *page = file_read(a, diags_new(a), "docs/proof.md", 1 << 20, (Loc){0}, &bytes);
    assert_non_null(page);
    Rule r;
    Projection p = product(a, &c, &r, DT_F32);
    int64_t n = tensor_count(&p.call.out);
    OpBound b = {.call = p.call, .operand = -1, .u = p.u};
    b.call.dtype = DT_F64;
    for (int k = 0; k < 2; k++) {
        Tensor *t = &b.call.in[k];
        double *x = arena_alloc(a, (size_t)tensor_count(t) * 8);
        for (int64_t i = 0; i < tensor_count(t); i++) x[i] = (double)((float *)t->p)[i];
        t->p = x;
    }
    b.call.out.p = arena_alloc(a, (size_t)n * 8);
    b.call.op->forward(&b.call);
    b.bound = arena_alloc(a, (size_t)n * 8);
    b.prob = arena_alloc(a, (size_t)n * 8);
    b.call.op->bound(&b);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int quick = 0, bound = 0, same = 0, tried = 0;
        for (int64_t i = 5; i < n; i += n / 200) {
            double right = get(&p, i), want = ((double *)b.call.out.p)[i];
            set(&p, i, right * (1 + rows[k].off));
            same += get(&p, i) != right;
            bound += fabs(get(&p, i) - want) > b.bound[i];
            quick += !project_hold(&p).held;
            tried++;
            set(&p, i, right);
        }
        const char *row =
            arena_printf(a, "| %s | %d %% | %d %% | %d %% |\n", rows[k].said, 100 * same / tried,
                         100 * bound / tried, 100 * quick / tried);
        if (strstr(page, row)) continue;
        print_message("docs/proof.md lacks: %s", row);
        missing = true;
    }
    assert_false(missing);
    arena_free(a);
}

/* ---- plans ---- */
static const TraceCheck *first_failure(const Trace *t) {
    for (int i = 0; t && i < t->n_checks; i++)
        if (t->checks[i].level && t->checks[i].verdict[0] == 'F') return &t->checks[i];
    return NULL;
}
static const char *outcome(Arena *a, const PlanRun *r) {
    const TraceCheck *c = first_failure(r->t);
    return arena_printf(a, "exit %d, %s, first wrong %s: %s", r->rep.exit,
                        r->t && r->t->verdict ? r->t->verdict : "no verdict", c ? c->value : "none",
                        c ? c->cause : "");
}
static void folder(const char *pattern, int *products, int *runs) {
    glob_t g;
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    int n = sample_of((int)g.gl_pathc, pattern), bad = 0;
    for (int k = 0; k < n; k++) {
        const char *path = g.gl_pathv[sample_at(k, n, (int)g.gl_pathc)];
        Arena *a = arena_new();
        size_t len;
        char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &len);
        assert_non_null(text);
        PipelineOptions o = {.execute = true, .threads = 1};
        PlanRun full = plan_run_with(a, path, text, &o);
        o.check = CHECK_QUICK;
        PlanRun quick = plan_run_with(a, path, text, &o);
        const char *f = outcome(a, &full), *q = outcome(a, &quick);
        if (strcmp(f, q)) print_error("%s\n  full  %s\n  quick %s\n", path, f, q), bad++;
        if (quick.t) *products += (int)trace_projected(quick.t).products;
        *runs += quick.t != NULL;
        arena_free(a);
    }
    globfree(&g);
    assert_int_equal(bad, 0);
}
static void test_shipped_plans(void **s) {
    (void)s;
    int products = 0, runs = 0;
    folder("plans/*.yaml", &products, &runs);
    folder("plans/bugs/*.yaml", &products, &runs);
    print_message("%d runs, %d products projected\n", runs, products);
    assert_true(products > 5 * runs);
}
/* Each expert's product, forward and towards rows and weights, is held so in a plan too. */
static void test_experts(void **s) {
    (void)s;
    static const struct {
        const char *value;
        int products; /* over all passes */
    } rows[] = {
        {"layers.0.moe.gate", 1},
        {"layers.0.moe.up", 1},
        {"layers.0.moe.down", 1},
        {"grad.layers.0.moe.act", 1},
        {"grad.layers.0.moe.dispatched", 2},
        {"grad.param.layers.0.moe.experts.w1", 1},
        {"grad.param.layers.0.moe.experts.w2", 1},
        {"grad.param.layers.0.moe.experts.w3", 1},
    };
    const char *path = "plans/30-mixtral-8x7b-ep-dp-cp.yaml";
    Arena *a = arena_new();
    size_t len;
    char *text = file_read(a, diags_new(a), path, 1 << 20, (Loc){0}, &len);
    assert_non_null(text);
    PipelineOptions o = {.execute = true, .threads = 1, .check = CHECK_QUICK};
    PlanRun r = plan_run_with(a, path, text, &o);
    assert_int_equal(r.rep.exit, 0);
    for (size_t k = 0; k < sizeof rows / sizeof *rows; k++) {
        int n = 0;
        for (int i = 0; i < r.t->n_checks; i++)
            n += r.t->checks[i].projections && !strcmp(r.t->checks[i].value, rows[k].value);
        if (n != rows[k].products) fail_msg("%s: %d projected", rows[k].value, n);
    }
    arena_free(a);
}
/* A value that all ranks compute for themselves, of which one has another number. */
typedef struct {
    const char *of;
    int64_t rank;
    bool acted;
} OneRank;
static void spoil_one_rank(void *arg, Exec *e, const Step *s, bool checked) {
    OneRank *x = arg;
    const char *name = program_value_name(e->p, &e->p->val[s->out], e->arena);
    if (checked || strcmp(name, x->of) != 0) return;
    Spoil part = spoil_part(e, s->out, x->rank);
    for (int64_t i = 0; i < part.n; i += 3) spoil_set(&part, i, 2 * spoil_get(&part, i) + 1);
    x->acted = true;
}
/* Copies of a product are looked at on each rank, of the last value too, also where kernels have
 * orders of their own and copies need not have the same bits. */
static void test_copies(void **s) {
    (void)s;
    static const char text[] = "model: {kind: mlp, sizes: [8, 32, 8], bias: false}\n"
                               "data: {rows: 6, dtype: f32}\nmesh: {tp: 3}\n";
    static const char *const of[] = {"net1", "net2"};
    for (int k = 0; k < 24; k++) {
        Arena *a = arena_new();
        OneRank x = {.of = of[k / 12], .rank = k % 3};
        Device *own = device_host((size_t)1 << 26);
        own->own_order = true;
        PipelineOptions o = {.execute = true,
                             .threads = 1,
                             .watch = spoil_one_rank,
                             .watch_arg = &x,
                             .check = k / 6 % 2 ? CHECK_QUICK : CHECK_FULL,
                             .device = k / 3 % 2 ? own : NULL};
        PlanRun r = plan_run_with(a, "plan.yaml", text, &o);
        assert_true(x.acted);
        if (!r.t->first_wrong || strcmp(r.t->first_wrong, x.of) != 0)
            fail_msg("%s of rank %lld, %s check%s: %s is the first wrong value", x.of,
                     (long long)x.rank, o.check == CHECK_QUICK ? "quick" : "full",
                     o.device ? ", own order" : "", r.t->first_wrong);
        device_free(own);
        arena_free(a);
    }
}
/* What is wrong with a sum on one rank only is told as the full check tells it. */
static void spoil_one_sum(void *arg, Exec *e, const Step *s, bool checked) {
    OneRank *x = arg;
    if (checked || s->kind != ST_MOVE) return;
    Spoil part = spoil_part(e, s->out, x->rank);
    for (int64_t i = 0; i < part.n; i += 3) spoil_set(&part, i, 2 * spoil_get(&part, i) + 1);
    x->acted = true;
}
static void test_copies_of_sums(void **s) {
    (void)s;
    static const char text[] = "model: {kind: mlp, sizes: [8, 32, 8], bias: false}\n"
                               "data: {rows: 6, dtype: f32}\nmesh: {tp: 3}\n"
                               "plan: {net1: colwise, net2: rowwise}\n";
    for (int64_t rank = 0; rank < 3; rank++) {
        Arena *a = arena_new();
        const TraceCheck *wrong[2] = {NULL, NULL};
        for (int quick = 0; quick < 2; quick++) {
            OneRank x = {.rank = rank};
            PipelineOptions o = {.execute = true,
                                 .threads = 1,
                                 .watch = spoil_one_sum,
                                 .watch_arg = &x,
                                 .check = quick ? CHECK_QUICK : CHECK_FULL};
            PlanRun r = plan_run_with(a, "plan.yaml", text, &o);
            assert_true(x.acted && r.t->n_fail == 1);
            for (int i = 0; i < r.t->n_checks; i++)
                if (r.t->checks[i].verdict[0] == 'F') wrong[quick] = &r.t->checks[i];
        }
        assert_string_equal(wrong[0]->value, wrong[1]->value);
        assert_string_equal(wrong[0]->cause, wrong[1]->cause);
        assert_int_equal(rankset_count(&wrong[0]->ranks), 1);
        assert_int_equal(rankset_count(&wrong[1]->ranks), 1);
        assert_true(wrong[0]->max_abs == wrong[1]->max_abs);
        arena_free(a);
    }
}
/* The residual of a right product depends on its columns. */
static double residual(Exec *e, const Step *s, int64_t part, int64_t step) {
    Arena *tmp = arena_new();
    Trace *t = trace_new(tmp);
    Check *c = check_new(tmp, e, t);
    c->quick = true, c->part = part, c->step = step;
    check_step(c, s);
    double off = t->checks[0].projections ? t->checks[0].max_abs : 0;
    arena_free(tmp);
    return off;
}
static void watch_columns(void *arg, Exec *e, const Step *s, bool checked) {
    int *products = arg;
    double first = checked || s->kind != ST_OP ? 0 : residual(e, s, 0, 0);
    if (first == 0) return;
    assert_true(residual(e, s, 0, 0) == first);
    assert_true(residual(e, s, 1, 0) != first && residual(e, s, 0, 1) != first);
    ++*products;
}
static void test_columns_of_each_turn(void **s) {
    (void)s;
    int products = 0;
    Arena *a = arena_new();
    PipelineOptions o = {
        .execute = true, .threads = 1, .watch = watch_columns, .watch_arg = &products};
    plan_run_with(a, "plan.yaml", example_plan, &o);
    assert_true(products > 3);
    arena_free(a);
}
static void test_random_plans(void **s) {
    (void)s;
    enum { SAMPLE = 300 };
    const char *plans = getenv("SHARDPROOF_PLANS");
    int want = plans && atoi(plans) > 0 && atoi(plans) < SAMPLE ? atoi(plans) : SAMPLE;
    RandomTable tab = {0};
    setenv("SHARDPROOF_CHECK", "quick", 1);
    for (uint64_t seed = 6000000; tab.legal < want && tab.plans < 8 * want; seed++)
        random_run(seed, &tab, NULL);
    unsetenv("SHARDPROOF_CHECK");
    random_table_print(&tab, stdout);
    assert_int_equal(random_table_bad(&tab), 0);
    assert_true(tab.legal >= want);
}
/* The unsharded run is left out, made where it is asked for, and `auto` goes by size. */
static void test_end_to_end(void **s) {
    (void)s;
    Arena *a = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1};
    PlanRun full = plan_run_with(a, "plan.yaml", example_plan, &o);
    assert_true(full.rep.end_to_end && full.rep.end_to_end_worst && !full.rep.quick);
    o.check = CHECK_AUTO;
    assert_false(plan_run_with(a, "plan.yaml", example_plan, &o).rep.quick);
    o.check = CHECK_QUICK;
    PlanRun quick = plan_run_with(a, "plan.yaml", example_plan, &o);
    assert_true(quick.rep.quick && !quick.rep.end_to_end && !quick.rep.end_to_end_worst);
    run_must_be(&quick, "equivalent");
    o.end_to_end = true;
    PlanRun both = plan_run_with(a, "plan.yaml", example_plan, &o);
    assert_true(both.rep.quick && both.rep.end_to_end);
    assert_true(both.rep.end_to_end_rel == full.rep.end_to_end_rel);
    o = (PipelineOptions){.execute = true, .threads = 1, .no_end_to_end = true};
    PlanRun every = plan_run_with(a, "plan.yaml", example_plan, &o);
    assert_true(!every.rep.quick && !every.rep.end_to_end && !every.rep.end_to_end_worst);
    run_must_be(&every, "equivalent");
    assert_int_equal(every.t->n_pass, full.t->n_pass); /* no step less */
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_right_products_are_held),
        cmocka_unit_test(test_what_cannot_be),
        cmocka_unit_test(test_what_is_promised_is_noticed),
        cmocka_unit_test(test_bounds_without_end),
        cmocka_unit_test(test_mixed_values),
        cmocka_unit_test(test_in_parts),
        cmocka_unit_test(test_errors_that_cancel),
        cmocka_unit_test(test_sums),
        cmocka_unit_test(test_tiny_sums),
        cmocka_unit_test(test_share_noticed),
        cmocka_unit_test(test_shipped_plans),
        cmocka_unit_test(test_experts),
        cmocka_unit_test(test_copies),
        cmocka_unit_test(test_copies_of_sums),
        cmocka_unit_test(test_columns_of_each_turn),
        cmocka_unit_test(test_random_plans),
        cmocka_unit_test(test_end_to_end),
    };
    return cmocka_run_group_tests_name("quick", tests, NULL, NULL);
}
