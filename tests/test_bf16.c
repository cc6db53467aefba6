/* Runs in bf16, against own loops: rounding pattern by pattern, products and sums over ranks with
 * one rounding each, what stays in float32, and masters. What is expected is computed here, from
 * the definition of rounding to nearest (the nearer neighbour, of two the even one), and not with
 * the program's own functions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/file.h"
#include "exec/exec.h"
#include "exec/narrow.h"
#include "kernel/bf16.h"
#include "support/random_plan.h"
#include "support/support.h"
#include "support/threads.h"
#include <float.h>
#include <math.h>
#include <string.h>

static uint32_t bits_of(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return b;
}
static float of_bits(uint32_t b) {
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}
/* By the size of a unit: 8 digits, and none below 2^-133. */
static double own_round(double x) {
    if (!isfinite(x) || x == 0) return x;
    int e;
    frexp(x, &e);
    int unit = e - 8 < -133 ? -133 : e - 8;
    double r = ldexp(nearbyint(ldexp(x, -unit)), unit);
    return fabs(r) > 0x1.fep127 ? copysign(INFINITY, x) : r;
}
static bool is_bf16(float x) { return !(bits_of(x) & 0xffff); }

/* ---- rounding ---- */
static void test_patterns(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 1 << 16; h++) {
        float x = of_bits(h << 16);
        assert_int_equal(bf16_bits(x), h);
        assert_true(bits_of(bf16_value((uint16_t)h)) == h << 16);
        if (isnan(x)) {
            assert_true(isnan(bf16_round(x)) && isnan(bf16_of_double((double)x)));
            /* a NaN whose digits are all in the lower half must not become an infinity */
            assert_true(isnan(bf16_round(of_bits((h & 0x8000) << 16 | 0x7f800001))));
            continue;
        }
        assert_true(bits_of(bf16_round(x)) == bits_of(x));
        assert_true(bits_of((float)bf16_of_double((double)x)) == bits_of(x));
    }
}
/* Between each two neighbours: the middle goes to the even one, what is nearer to one goes there,
 * of floats and of doubles. */
static void test_between_neighbours(void **state) {
    (void)state;
    for (uint32_t h = 0; h < 0x7f80; h++)
        for (uint32_t sign = 0; sign < 2; sign++) {
            uint32_t lo = (sign << 15 | h) << 16, hi = lo + (1u << 16);
            float a = of_bits(lo), b = of_bits(hi), middle = of_bits(lo | 0x8000);
            float even = h & 1 ? b : a;
            assert_true(bits_of(bf16_round(middle)) == bits_of(even));
            assert_true(bits_of(bf16_round(of_bits(lo | 0x7fff))) == lo);
            assert_true(bits_of(bf16_round(of_bits(lo | 0x8001))) == hi);
            assert_true((float)bf16_of_double((double)middle) == even);
            double up = nextafter((double)middle, (double)b),
                   down = nextafter((double)middle, (double)a);
            if (h ==
                0x7f7f) /* beyond the largest: an infinity takes the place of the next number */
                up = nextafter((double)middle, sign ? -HUGE_VAL : HUGE_VAL);
            assert_true(bits_of((float)bf16_of_double(up)) == hi);
            assert_true(bits_of((float)bf16_of_double(down)) == lo);
        }
}
static void test_doubles(void **state) {
    (void)state;
    Rng r = {17};
    for (int i = 0; i < 400000; i++) {
        uint64_t b = rng_next(&r);
        int e = rng_between(&r, -160, 135); /* subnormals of both, overflow */
        double x = ldexp((double)(b >> 11) * 0x1p-53 + 0.5, e) * (b & 1 ? -1 : 1);
        if (b & 2) x = own_round(x) * (1 + ((b & 4) ? 0x1p-8 : -0x1p-9)); /* at and about middles */
        double got = bf16_of_double(x), want = own_round(x);
        if (got != want) fail_msg("%a is rounded to %a, not %a", x, got, want);
        float f = (float)x;
        assert_true((double)bf16_round(f) == own_round((double)f));
    }
}
/* Of all numbers within a bound of x the roundings, and no other bf16 number. */
static void test_bounds_of_roundings(void **state) {
    (void)state;
    Rng r = {4};
    int open = 0;
    for (int i = 0; i < 100000; i++) {
        double x = ((double)(rng_next(&r) >> 11) * 0x1p-53 - 0.5) * 4;
        double b = fabs(x) * ldexp(1, -rng_between(&r, 4, 40));
        double want = x, bound = b, prob = b / 8, lo = own_round(x - b), hi = own_round(x + b);
        narrow_bounds(1, &want, &bound, &prob);
        assert_true(fabs(lo - want) <= bound && fabs(hi - want) <= bound && prob <= bound);
        assert_true(fabs(own_round(x + b / 8) - want) <= prob);
        /* the numbers next to them are not among them: what is rounded twice is seen */
        float under = of_bits(bits_of((float)lo) + (lo > 0 ? -0x10000u : 0x10000u)),
              over = of_bits(bits_of((float)hi) + (hi > 0 ? 0x10000u : -0x10000u));
        if (fabs(x) > 0x1p-20 && (x - b) * (x + b) > 0) {
            assert_false(fabs((double)under - want) <= bound);
            assert_false(fabs((double)over - want) <= bound);
        }
        open += bound > 0;
    }
    assert_true(open > 1000 && open < 60000);
    double want[3] = {1e39, 0x1.ffp127, NAN}, bound[3] = {1e30, 1e20, 1};
    narrow_bounds(3, want, bound, NULL);
    assert_true(isinf(want[0]) && bound[0] == 0 && isinf(bound[1]) && isnan(want[2]));
}

/* ---- a run, step by step ---- */
typedef struct {
    int products, reductions, sums, decided, open;
} Seen;
static float number(const Exec *e, int val, int64_t rank, int64_t i) {
    const Tensor *t = &exec_local(e, val, rank)->t;
    int64_t at = 0;
    for (int d = t->nd - 1; d >= 0; i /= t->n[d--]) at += i % t->n[d] * t->s[d];
    return ((const float *)t->p)[at];
}
/* A float32 sum within `off` of x, rounded once. */
static void expect_once(Seen *s, float got, double x, double off) {
    double lo = own_round(x - off), hi = own_round(x + off);
    assert_true(is_bf16(got));
    if (!((double)got >= lo && (double)got <= hi))
        fail_msg("%a, and float32 gives %a, rounded %a", (double)got, x, own_round(x));
    if (lo == hi) s->decided++;
    else s->open++;
}
/* out[r, o] = sum over k of in[r, k] weight[o, k]. */
static void see_product(Seen *seen, const Exec *e, const Step *s, int64_t rank) {
    const Tensor *x = &exec_local(e, s->in[0], rank)->t, *w = &exec_local(e, s->in[1], rank)->t;
    for (int64_t r = 0; r < x->n[0]; r++)
        for (int64_t o = 0; o < w->n[0]; o++) {
            double sum = 0, size = 0;
            for (int64_t k = 0; k < x->n[1]; k++) {
                double p = (double)number(e, s->in[0], rank, r * x->n[1] + k) *
                           (double)number(e, s->in[1], rank, o * x->n[1] + k);
                sum += p;
                size += fabs(p);
            }
            expect_once(seen, number(e, s->out, rank, r * w->n[0] + o), sum,
                        (double)x->n[1] * 0x1p-24 * size);
        }
    seen->products++;
}
/* All ranks hold the sum of what all hold, element by element. */
static void see_all_reduce(Seen *seen, const Exec *e, const Step *s) {
    int64_t nranks = e->p->mesh->nranks, n = tensor_count(&exec_local(e, s->in[0], 0)->t);
    for (int64_t rank = 0; rank < nranks; rank++)
        for (int64_t i = 0; i < n; i++) {
            double sum = 0, size = 0;
            for (int64_t q = 0; q < nranks; q++) {
                double part = (double)number(e, s->in[0], q, i);
                assert_true(is_bf16((float)part)); /* what is sent is bf16 too */
                sum += part;
                size += fabs(part);
            }
            expect_once(seen, number(e, s->out, rank, i), sum, (double)nranks * 0x1p-24 * size);
        }
    seen->reductions++;
}
static void see_sum(Seen *seen, const Exec *e, const Step *s) {
    for (int64_t rank = 0; rank < e->p->mesh->nranks; rank++)
        for (int64_t i = 0; i < tensor_count(&exec_local(e, s->out, rank)->t); i++) {
            double a = (double)number(e, s->in[0], rank, i),
                   b = (double)number(e, s->in[1], rank, i);
            expect_once(seen, number(e, s->out, rank, i), a + b, (fabs(a + b)) * 0x1p-24);
        }
    seen->sums++;
}
static void see_step(void *arg, Exec *e, const Step *s, bool checked) {
    Seen *seen = arg;
    if (checked) return;
    const Val *v = &e->p->val[s->out];
    const GTensor *t = &e->p->graph->t[v->tensor];
    const char *rule = s->kind == ST_OP ? e->p->graph->node[s->node].op->name : "";
    bool matrix = t->nd == 2 && s->nin == 2 && !strcmp(rule, "einsum") && s->pass == PHASE_FORWARD;
    for (int64_t rank = 0; rank < e->p->mesh->nranks && matrix; rank++)
        see_product(seen, e, s, rank);
    if (s->kind == ST_MOVE && s->move.kind == MOVE_ALL_REDUCE && t->nd) see_all_reduce(seen, e, s);
    if (s->kind == ST_SUM) see_sum(seen, e, s);
}
/* 3 ranks that divide nothing, biases that are not zero; the net's output is a sum over ranks. */
static const char two_products[] =
    "model: {kind: mlp, sizes: [37, 50, 23], bias: false}\nmesh: {tp: 3}\n"
    "data: {rows: 31, dtype: bf16, seed: 5}\nplan: {net1: colwise, net2: rowwise}\n%s";
static const char a_block[] =
    "model: {preset: llama3-8b, layers: 1, shrink: 64}\nmesh: {tp: 2}\nrecipe: hf-llama\n"
    "data: {batch: 2, sequence: 6, dtype: bf16, seed: 3%s}\n%s";
static PlanRun watched(Arena *a, const char *text,
                       void (*watch)(void *, Exec *, const Step *, bool), void *arg) {
    PipelineOptions o = {.execute = true, .threads = 1, .watch = watch, .watch_arg = arg};
    PlanRun r = plan_run_with(a, "bf16.yaml", text, &o);
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    return r;
}
static void test_one_rounding(void **state) {
    (void)state;
    Arena *a = arena_new();
    Seen seen = {0};
    PlanRun r = watched(a, arena_printf(a, two_products, ""), see_step, &seen);
    run_must_be(&r, "equivalent");
    assert_int_equal(seen.products, 6);
    assert_int_equal(seen.reductions, 1);
    /* own loops leave no doubt about nearly all of them */
    assert_true(seen.decided > 2000 && seen.open * 10 < seen.decided);
    r = watched(a, arena_printf(a, a_block, "", "pass: backward\n"), see_step, &seen);
    run_must_be(&r, "equivalent");
    assert_true(seen.reductions > 3 && seen.sums > 2);
    arena_free(a);
}

/* ---- what is not rounded ---- */
/* By name: the loss from the logits on, scalars, and what the plan keeps for the optimizer. */
typedef struct {
    const char *wide[6];
    bool master, moments;
    int rounded, kept, odd;
} Wide;
static bool has_prefix(const char *name, const char *prefix) {
    return !strncmp(name, prefix, strlen(prefix));
}
static void see_wide(void *arg, Exec *e, const Step *s, bool checked) {
    Wide *w = arg;
    const Val *v = &e->p->val[s->out];
    const GTensor *t = &e->p->graph->t[v->tensor];
    if (checked || t->is_int) return;
    bool wide = !t->nd || has_prefix(t->name, "loss"), inside = s->pass == PHASE_LOSS && v->cot;
    if (inside) return; /* the next test */
    if (s->pass == PHASE_OPTIMIZER) {
        bool state = strstr(t->name, ".exp_avg") != NULL;
        wide |= state ? w->moments : w->master;
    }
    bool all = true;
    for (int64_t rank = 0; rank < e->p->mesh->nranks; rank++)
        for (int64_t i = 0; i < tensor_count(&exec_local(e, s->out, rank)->t); i++)
            all &= is_bf16(number(e, s->out, rank, i));
    if (!wide && !all) fail_msg("%s is not rounded", t->name);
    w->rounded += all && !wide;
    w->kept += wide && !all;
    w->odd += wide && all;
}
enum { STEPS = 1000 };
/* Per step, of a move: 1, or 2 where what it makes is held in bf16. */
static void see_narrow(void *arg, Exec *e, const Step *s, bool checked) {
    char *held = arg;
    if (!checked && s->kind == ST_MOVE && s->id < STEPS) held[s->id] = e->narrow[s->out] ? 2 : 1;
}
/* What comms says of a collective's dtype is what the ranks hold of it: the sums of the loss and of
 * the norm of all gradients are float32 in a plan of bf16, with four bytes a number. */
static void test_records_say_what_is_held(void **state) {
    (void)state;
    static const char *const more[] = {"", ", gradients: f32"};
    for (size_t k = 0; k < sizeof more / sizeof *more; k++) {
        Arena *a = arena_new();
        char held[STEPS] = {0};
        int wide = 0, seen = 0;
        PlanRun r = watched(
            a,
            arena_printf(a,
                         "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, "
                         "blocks, norm, head, loss]}\nmesh: {dp: 2, tp: 2}\nnames: torchtitan\n"
                         "recipe: torchtitan-llama3\ndata: {batch: 2, sequence: 6, dtype: bf16, "
                         "seed: 3%s}\npass: train\noptimizer: {name: sgd, lr: 0.1, clip: 0.5}\n",
                         more[k]),
            see_narrow, held);
        run_must_be(&r, "equivalent");
        for (int i = 0; i < r.t->n_collectives; i++) {
            const TraceCollective *c = &r.t->collectives[i];
            if (!strcmp(c->dtype, "i64")) continue;
            assert_true(c->step < STEPS && held[c->step]);
            const char *want = held[c->step] == 2 ? "bf16" : "f32";
            if (strcmp(c->dtype, want) != 0)
                fail_msg("%s is held in %s, recorded as %s", c->value, want, c->dtype);
            bool scalar = !strcmp(c->value, "loss_mean") || strstr(c->value, ".sumsq");
            if (scalar) assert_int_equal(collective_on(c, 0).bytes_in, 4);
            wide += scalar || c->pass == PHASE_LOSS;
            seen++;
        }
        assert_true(wide > 3 && seen > 2 * wide);
        arena_free(a);
    }
}
static void test_what_stays_wide(void **state) {
    (void)state;
    static const char *const more[] = {"", ", master: f32", ", moments: f32",
                                       ", master: f32, moments: f32", ", master: bf16"};
    Arena *a = arena_new();
    int kept[5];
    for (int i = 0; i < 5; i++) {
        Wide w = {.master = i == 1 || i == 3, .moments = i == 2 || i == 3};
        PlanRun r = watched(a,
                            arena_printf(a, a_block, more[i],
                                         "pass: train\noptimizer: {name: adamw, lr: 0.01, clip: "
                                         "1, steps: 2}\n"),
                            see_wide, &w);
        run_must_be(&r, "equivalent");
        assert_true(w.rounded > 40);
        kept[i] = w.kept;
    }
    assert_true(kept[0] > 4 && kept[1] > kept[0] && kept[2] > kept[0]);
    assert_true(kept[3] > kept[1] && kept[3] > kept[2] && kept[4] == kept[0]);
    arena_free(a);
}

/* ---- masters ---- */
typedef struct {
    double *made; /* what the optimizer made of the first weight last, rank 0 */
    int64_t n;
    bool master;
    int read, used, moved;
} Master;
static bool first_weight(const Exec *e, int val) {
    const Val *v = &e->p->val[val];
    return val >= 0 && !v->cot && v->step < 0 &&
           !strcmp(e->p->graph->t[v->tensor].name, "net1.weight");
}
static void see_master(void *arg, Exec *e, const Step *s, bool checked) {
    Master *m = arg;
    if (checked) return;
    for (int k = 0; k < s->nin; k++) {
        if (!first_weight(e, s->in[k]) || !m->made) continue;
        for (int64_t i = 0; i < m->n; i++) {
            double x = (double)number(e, s->in[k], 0, i), last = m->made[i];
            bool exact = s->pass == PHASE_OPTIMIZER && m->master;
            assert_true(x == (exact ? last : own_round(last)));
        }
        if (s->pass == PHASE_OPTIMIZER) m->used++;
        else m->read++;
    }
    const GTensor *t = &e->p->graph->t[e->p->val[s->out].tensor];
    if (!t->next_of || strcmp(e->p->graph->t[t->next_of - 1].name, "net1.weight") != 0) return;
    m->n = tensor_count(&exec_local(e, s->out, 0)->t);
    if (!m->made) m->made = ARENA_ARRAY(e->arena, double, m->n);
    for (int64_t i = 0; i < m->n; i++) {
        double now = (double)number(e, s->out, 0, i), held = own_round(now);
        if (m->used && held != own_round(m->made[i])) m->moved++;
        m->made[i] = now;
    }
}
/* Steps far below a unit of bf16: without masters no weight ever moves, with them they add up. */
static void test_masters(void **state) {
    (void)state;
    static const char plan[] = "model: {kind: mlp, sizes: [6, 10, 3], bias: false}\nmesh: {tp: 2}\n"
                               "data: {rows: 4, dtype: bf16, seed: 5%s}\npass: train\nloss: sum\n"
                               "plan: {net1: colwise, net2: rowwise}\n"
                               "optimizer: {name: sgd, lr: 2.0e-5, steps: 30}\n";
    Arena *a = arena_new();
    for (int i = 0; i < 2; i++) {
        Master m = {.master = i};
        PlanRun r = watched(a, arena_printf(a, plan, i ? ", master: f32" : ""), see_master, &m);
        run_must_be(&r, "equivalent");
        assert_true(m.read >= 29 && m.used >= 29);
        if (i) assert_true(m.moved > 5);
        else assert_int_equal(m.moved, 0);
    }
    arena_free(a);
}

/* ---- mistakes ---- */
/* Rank 1 holds another result of one step: rounded after each addition, or the next number. */
typedef struct {
    StepKind kind;
    bool twice; /* rounded after each addition; else the bf16 number next to it */
    int at, changed;
} Spoiled;
static void spoil_step(void *arg, Exec *e, const Step *s, bool checked) {
    Spoiled *x = arg;
    if (checked || s->kind != x->kind || x->changed) return;
    if (s->kind == ST_MOVE && s->move.kind != MOVE_ALL_REDUCE) return;
    Tensor *t = &((Local *)(uintptr_t)exec_local(e, s->out, 1))->t;
    float *p = t->p;
    int64_t n = tensor_count(t);
    for (int64_t i = 0; i < n; i++) {
        float sum = 0, was = p[i];
        for (int64_t q = 0; q < e->p->mesh->nranks && x->twice; q++)
            sum = (float)own_round((double)sum + (double)number(e, s->in[0], q, i));
        if (!x->twice) sum = i == n / 2 ? of_bits(bits_of(was) + 0x10000) : was;
        x->changed += sum != was;
        p[i] = sum;
    }
}
static void test_mistakes_are_seen(void **state) {
    (void)state;
    static const Spoiled all[] = {
        {ST_MOVE, true, 0, 0}, {ST_MOVE, false, 0, 0}, {ST_OP, false, 0, 0}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        Spoiled x = all[i];
        PlanRun r = watched(a, arena_printf(a, two_products, ""), spoil_step, &x);
        assert_true(x.changed > 0);
        run_must_be(&r, "different");
    }
    PlanRun r = plan_run(
        a, "bf16.yaml",
        arena_printf(a, two_products, "faults: [{at: all_reduce of net2, do: double}]\n"), true);
    run_must_be(&r, "different");
    assert_string_equal(r.t->first_wrong, "net2");
    arena_free(a);
}

/* ---- processes ---- */
static double wire_bytes(const Trace *t) {
    double all = 0;
    for (int i = 0; i < t->n_measured; i++) all += (double)t->measured[i].wire_bytes;
    return all;
}
/* ZeRO: the rank that updates a part keeps it in float32 and sends it rounded. So losses are those
 * of whole masters, bit by bit, over steps far below a unit of bf16, and ranks that are apart send
 * two bytes a number. */
static void test_parts_of_masters(void **state) {
    (void)state;
    static const char train[] =
        "model: {kind: mlp, sizes: [9, 14, 5], bias: true}\nmesh: {dp: 3%s}\n"
        "data: {rows: 6, dtype: %s, seed: 5, master: f32}\npass: train\nloss: sum\n"
        "optimizer: {name: %s, lr: 2.0e-4, steps: 12}\n%s"
        "data_parallel: {axis: dp, mode: %s}\n";
    static const char *const modes[] = {"ddp", "zero1", "zero1, form: deepspeed",
                                        "zero2, form: megatron"};
    static const char *const optimizers[] = {"sgd", "sgd, weight_decay: 0.1", "adamw"};
    for (int o = 0; o < 3; o++) {
        double loss[4] = {0}, wide[4];
        for (int k = 0; k < 4; k++) {
            Arena *a = arena_new();
            const char *text[2], *dtype[] = {"bf16", "f32"};
            double bytes[2];
            for (int i = 0; i < 2; i++) {
                text[i] = arena_printf(a, train, o ? "" : ", tp: 2", dtype[i], optimizers[o],
                                       o ? "" : "plan: {net1: colwise, net2: rowwise}\n", modes[k]);
                Threads x = {.ranks = o ? 3 : 6,
                             .flip_message = -1,
                             .text = text[i],
                             .o = {.execute = true, .threads = 1}};
                ThreadsRun r = threads_run(a, &x);
                threads_must_be(&r, "equivalent");
                bytes[i] = wire_bytes(r.t);
                if (i) continue;
                PlanRun v = plan_run(a, "bf16.yaml", text[i], true);
                run_must_be(&v, "equivalent");
                assert_true(v.rep.loss == r.rep.loss);
                assert_true(v.rep.losses[0] != v.rep.losses[11]);
                loss[k] = v.rep.loss;
            }
            wide[k] = 2 * bytes[0] - bytes[1]; /* the loss is of float32 in both */
            assert_true(bytes[0] > 0 && wide[k] == wide[0] && wide[k] < 100);
            assert_true(loss[k] == loss[0]);
            arena_free(a);
        }
    }
}
/* ZeRO: what the rank that updates a parameter takes is the gradient, as wide as gradients are. */
static void test_picked_gradients(void **state) {
    (void)state;
    static const char train[] =
        "model: {kind: mlp, sizes: [10, 7, 10, 8], bias: true}\nmesh: {dp: 3}\n"
        "data: {rows: 6, dtype: bf16, seed: 5, gradients: f32}\npass: train\nloss: sum\n"
        "optimizer: {name: sgd, lr: 0.01, steps: 6}\ndata_parallel: {mode: %s}\n";
    Arena *a = arena_new();
    PlanRun whole = plan_run(a, "bf16.yaml", arena_printf(a, train, "ddp"), true);
    PlanRun r = plan_run(a, "bf16.yaml", arena_printf(a, train, "zero1"), true);
    run_must_be(&r, "equivalent");
    for (int i = 0; i < 6; i++) assert_true(r.rep.losses[i] == whole.rep.losses[i]);
    int picked = 0;
    for (int i = 0; i < r.t->n_values; i++) {
        const TraceValue *x = &r.t->values[i];
        if (x->pass != PHASE_OPTIMIZER || x->kind != VALUE_GRADIENT) continue;
        assert_true(strncmp(x->shape.name, "grad.param.", 11) == 0);
        picked++;
    }
    assert_int_equal(picked, 6);
    arena_free(a);
}
/* Ranks that are apart hold what virtual ones hold, and send two bytes a number. */
static void test_processes(void **state) {
    (void)state;
    static const char train[] = "model: {kind: mlp, sizes: [9, 14, 5], bias: true}\nmesh: {tp: 3}\n"
                                "data: {rows: 7, dtype: %s, seed: 5, master: f32}\npass: train\n"
                                "loss: sum\nplan: {net1: colwise, net2: rowwise}\n"
                                "optimizer: {name: sgd, lr: 0.01, steps: 3}\n";
    Arena *a = arena_new();
    double bytes[2];
    for (int k = 0; k < 3; k++) {
        const char *text = arena_printf(a, train, k == 1 ? "f32" : "bf16");
        Threads x = {.ranks = 3,
                     .flip_message = -1,
                     .engine_sums = k == 2,
                     .text = text,
                     .o = {.execute = true, .threads = 1}};
        ThreadsRun r = threads_run(a, &x);
        threads_must_be(&r, "equivalent");
        if (k < 2) bytes[k] = wire_bytes(r.t);
        PlanRun v = plan_run(a, "bf16.yaml", text, true);
        assert_int_equal(v.t->n_checks, r.t->n_checks);
        for (int i = 0; i < v.t->n_checks && k < 2; i++)
            assert_memory_equal(&v.t->checks[i].max_abs, &r.t->checks[i].max_abs, sizeof(double));
    }
    assert_true(bytes[0] > 0 && 2 * bytes[0] == bytes[1]);
    arena_free(a);
}

/* ---- shipped plans ---- */
static const char *in_bf16(Arena *a, const char *text) {
    const char *at = strstr(text, "dtype: f");
    if (!at) return NULL; /* shape-only plans are of bf16 */
    return arena_printf(a, "%.*sdtype: bf16%s", (int)(at - text), text, at + strlen("dtype: f32"));
}
/* Every shipped plan is equivalent in bf16 too, and every mistake is found at the same value. */
static void test_shipped_plans(void **state) {
    (void)state;
    static const char *const of[] = {"plans/[0-9]*.yaml", "plans/bugs/*.yaml"};
    for (int k = 0; k < 2; k++)
        for (PlanFiles f = plan_files(of[k], of[k]); plan_files_next(&f);) {
            const char *file = f.path, *text = in_bf16(f.a, f.text);
            assert_non_null(text);
            PlanRun r = plan_run(f.a, file, text, true);
            const Expect *e = r.rep.plan ? &r.rep.plan->expect : NULL;
            if (!k && !run_is(&r, "equivalent")) fail_msg("%s: %s", file, diags_text(f.a, r.d));
            if (k && e && e->set && e->equivalent == 0) {
                assert_non_null(r.t);
                if (!run_is(&r, "different")) fail_msg("%s is not found", file);
                if (e->first_wrong &&
                    strcmp(e->first_wrong, r.t->first_wrong ? r.t->first_wrong : "") != 0)
                    fail_msg("%s: %s is found first", file, r.t->first_wrong);
            }
        }
}

/* ---- slopes that rounding decides ---- */
/* net1 [3, 4] of rows of ones, or of `x1` in place of the second one; its first sum is 2^-9 and on
 * the ranks 1 + 2^-9 - 1 with the first sum rounded: 0, where a ReLU has another slope. */
static const char *bent_plan(Arena *a, double x1, int rows, const char *more) {
    double w1[12] = {1, 0x1p-9, -1, 0, 0.5, 0.25, 0.125, 1, -0.5, 1, 0.75, 0.25},
           w2[6] = {1, 0.5, -0.75, 0.5, 1, 0.25}, x[8], b1[3] = {0}, b2[2] = {0.5, -1};
    const NewTensor w[] = {{.name = "net1.weight", .nd = 2, .shape = {3, 4}, .x = w1},
                           {.name = "net1.bias", .nd = 1, .shape = {3}, .x = b1},
                           {.name = "net2.weight", .nd = 2, .shape = {2, 3}, .x = w2},
                           {.name = "net2.bias", .nd = 1, .shape = {2}, .x = b2}};
    for (int i = 0; i < 8; i++) x[i] = i == 1 ? x1 : 1;
    const NewTensor in = {.name = "input", .nd = 2, .shape = {rows, 4}, .x = x};
    return arena_printf(
        a,
        "model: {kind: mlp, sizes: [4, 3, 2], activation: relu, weights: {file: "
        "%s}}\ndata: {inputs: %s, dtype: bf16%s}\nmesh: {tp: 2}\npass: backward\n"
        "plan: {net1: {style: rowwise, input: replicate, desired_input: shard(1)}}\n",
        write_tensors(a, "bent.safetensors", w, 4), write_tensors(a, "ones.safetensors", &in, 1),
        more);
}
/* Training through a norm of one number, which is all but zero here: of a parameter's steps
 * rounding leaves not even the size. That is said, and is no mistake; one that is planted is. */
static void test_nothing_left(void **state) {
    (void)state;
    static const char plan[] =
        "model: {config: {model_type: deepseek_v3, hidden_size: 1, intermediate_size: 1, "
        "num_hidden_layers: 2, num_attention_heads: 1, vocab_size: 1, first_k_dense_replace: 0, "
        "n_routed_experts: 4, num_experts_per_tok: 1, moe_intermediate_size: 4, norm_topk_prob: "
        "false, n_group: 2, topk_group: 1, q_lora_rank: 2, kv_lora_rank: 2, qk_nope_head_dim: 2, "
        "qk_rope_head_dim: 2, v_head_dim: 1}, layers: 2}\ndata: {seed: 4, dtype: %s}\nmesh: {}\n"
        "pass: train\noptimizer: {name: sgd, steps: 2}\n%s";
    Arena *a = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1};
    PlanRun r = plan_run_with(a, "left.yaml", arena_printf(a, plan, "bf16", ""), &o);
    run_must_be(&r, "equivalent");
    assert_true(r.rep.nothing_left > 0 && r.rep.end_to_end_rel <= r.rep.end_to_end_bound);
    assert_non_null(run_diag(&r, "N0020", "proves nothing of loss and "));
    r = plan_run_with(a, "left.yaml", arena_printf(a, plan, "f64", ""), &o);
    assert_true(run_is(&r, "equivalent") && !run_has(&r, "N0020"));
    static const char fault[] = "faults: [{at: layers.0.q_a_proj, scale: 1.05}]\n";
    r = plan_run_with(a, "left.yaml", arena_printf(a, plan, "bf16", fault), &o);
    run_must_be(&r, "different");
    assert_string_equal(r.t->first_wrong, "layers.0.q_a_proj");
    /* one position sees itself alone, so that q and k have gradients of zeros: these are held */
    static const char zeros[] =
        "model: {kind: attention, heads: 1, kv_heads: 1, head_dim: 4, mask: causal}\n"
        "data: {batch: 3, sequence: 1, dtype: %s}\nmesh: {dp: 3}\npass: backward\nloss: sum\n";
    static const char *const dtype[] = {"bf16", "f32", "f64"};
    for (int i = 0; i < 3; i++) {
        r = plan_run_with(a, "zeros.yaml", arena_printf(a, zeros, dtype[i]), &o);
        run_must_be(&r, "equivalent");
        assert_false(run_has(&r, "N0020"));
    }
    arena_free(a);
}
static bool took_sides(const PlanRun *r) {
    return run_is(r, "equivalent") && !r->t->n_fail && run_has(r, "N0019");
}
static void test_slopes(void **state) {
    (void)state;
    Arena *a = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1};
    PlanRun r = plan_run_with(a, "bent.yaml", bent_plan(a, 1, 1, ""), &o);
    assert_true(took_sides(&r));
    assert_non_null(run_diag(&r, "N0019", "1 number lies"));
    /* of two micro-batches the second one's, whose sides are its own */
    r = plan_run_with(a, "bent.yaml", bent_plan(a, 8, 2, ", microbatches: 2"), &o);
    assert_true(took_sides(&r));
    /* far from a bend nothing is taken over, and a wrong step is wrong */
    r = plan_run_with(a, "bent.yaml", bent_plan(a, 8, 1, ""), &o);
    assert_true(!took_sides(&r) && run_is(&r, "equivalent"));
    const char *dropped =
        arena_printf(a, "%sfaults: [{at: net1, scale: 2}]\n", bent_plan(a, 1, 1, ""));
    r = plan_run_with(a, "bent.yaml", dropped, &o);
    assert_true(run_is(&r, "different") && strstr(r.t->first_wrong, "net1"));
    /* such numbers as they come: with four layers and nine, five, ... letters on four ranks */
    for (int micro = 0; micro < 2; micro++) {
        r = plan_run_with(
            a, "bent.yaml",
            arena_printf(a,
                         "mesh: {tp: 4}\nmodel: {kind: mlp, sizes: [7, 9, 5, 8, 6, 4], activation: "
                         "relu, bias: false}\ndata: {rows: %d, dtype: bf16, seed: 53%s}\nplan: "
                         "{net1: colwise, net2: rowwise, net3: colwise, net4: rowwise}\n"
                         "pass: backward\n",
                         micro + 1, micro ? ", microbatches: 2" : ""),
            &o);
        assert_true(took_sides(&r));
    }
    arena_free(a);
}
static const char *config_file(Arena *a, const char *name, const char *text) {
    const char *path = temp_path(a, name);
    assert_true(file_write(diags_new(a), path, text, strlen(text)));
    return path;
}
/* A clamp whose end cuts off every number but one that rounding puts within: without it the
 * gradient is zero, so what it may be off by is a share of what it is with that number. */
static const char *clamped_plan(Arena *a, int seed, const char *more) {
    static const char config[] =
        "{\"model_type\": \"olmo\", \"architectures\": [\"OlmoForCausalLM\"], \"hidden_size\": 8,\n"
        "\"intermediate_size\": 12, \"num_hidden_layers\": 2, \"num_attention_heads\": 4,\n"
        "\"num_key_value_heads\": 4, \"vocab_size\": 14, \"max_position_embeddings\": 32,\n"
        "\"clip_qkv\": 0.001, \"tie_word_embeddings\": false, \"hidden_act\": \"silu\"}\n";
    const char *path = config_file(a, "olmo.json", config);
    return arena_printf(
        a,
        "model: {hf_config: %s, layers: 2}\ndata: {batch: 2, sequence: 3, dtype: bf16, seed: %d}\n"
        "mesh: {tp: 2}\nnames: hf\npass: backward\nplan:\n"
        "  model.layers.*.self_attn.[qkv]_proj: colwise\n"
        "  model.layers.*.self_attn.o_proj: rowwise\n  model.layers.*.mlp.gate_proj: colwise\n"
        "  model.layers.*.mlp.up_proj: colwise\n  model.layers.*.mlp.down_proj: rowwise\n%s",
        path, seed, more);
}
static void test_clamped(void **state) {
    (void)state;
    Arena *a = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1};
    PlanRun r = plan_run_with(a, "clamped.yaml", clamped_plan(a, 7, ""), &o);
    assert_true(took_sides(&r));
    r = plan_run_with(a, "clamped.yaml", clamped_plan(a, 8, ""), &o);
    assert_true(!took_sides(&r) && run_is(&r, "equivalent"));
    /* a number on the other side makes no wrong gradient right */
    r = plan_run_with(a, "clamped.yaml",
                      clamped_plan(a, 7, "faults: [{at: grad.layers.1.v_proj, scale: 2}]\n"), &o);
    assert_true(run_is(&r, "different"));
    arena_free(a);
}
/* Rows at experts, whose first product is cut by the hidden dim: its sum over ranks is rounded
 * before the ReLU. Of these seeds each has a row on the other side. */
static void test_bent_rows(void **state) {
    (void)state;
    static const char config[] =
        "{\"model_type\": \"mixtral\", \"architectures\": [\"MixtralForCausalLM\"],\n"
        "\"hidden_size\": 4, \"intermediate_size\": 4, \"num_hidden_layers\": 1, \"head_dim\": 4,\n"
        "\"num_attention_heads\": 2, \"num_key_value_heads\": 2, \"vocab_size\": 14,\n"
        "\"max_position_embeddings\": 32, \"rms_norm_eps\": 1e-6, \"num_local_experts\": 4,\n"
        "\"num_experts_per_tok\": 2, \"hidden_act\": \"relu\"}\n";
    static const struct {
        const char *data;
        int seed;
    } row[] = {{"batch: 2", 580},
               {"batch: 2", 746},
               {"batch: 2", 970},
               {"batch: 2", 1146},
               {"batch: 4, microbatches: 2", 340}}; /* the second one's */
    Arena *a = arena_new();
    PipelineOptions o = {.execute = true, .threads = 1};
    const char *path = config_file(a, "mixtral.json", config);
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        for (int wrong = 0; wrong < 2; wrong++) {
            const char *text = arena_printf(
                a,
                "model: {hf_config: %s, layers: 1}\ndata: {%s, sequence: 1, dtype: bf16, "
                "seed: %d}\nmesh: {ep: 2, tp: 2}\nnames: torchtitan\npass: backward\n"
                "data_parallel: {mode: ddp}\nplan:\n  layers.*.moe.experts: {axis: ep, weight: "
                "{ep: shard(e), tp: shard(d)}}\n%s",
                path, row[i].data, row[i].seed,
                wrong ? "faults: [{at: grad.layers.0.moe.gate, scale: 2}]\n" : "");
            PlanRun r = plan_run_with(a, "rows.yaml", text, &o);
            if (took_sides(&r) == wrong) fail_msg("seed %d: %s", row[i].seed, r.t->verdict);
        }
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_patterns),
        cmocka_unit_test(test_between_neighbours),
        cmocka_unit_test(test_doubles),
        cmocka_unit_test(test_bounds_of_roundings),
        cmocka_unit_test(test_one_rounding),
        cmocka_unit_test(test_what_stays_wide),
        cmocka_unit_test(test_records_say_what_is_held),
        cmocka_unit_test(test_masters),
        cmocka_unit_test(test_parts_of_masters),
        cmocka_unit_test(test_picked_gradients),
        cmocka_unit_test(test_mistakes_are_seen),
        cmocka_unit_test(test_nothing_left),
        cmocka_unit_test(test_slopes),
        cmocka_unit_test(test_clamped),
        cmocka_unit_test(test_bent_rows),
        cmocka_unit_test(test_processes),
        cmocka_unit_test(test_shipped_plans),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
