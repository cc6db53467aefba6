/* Latent attention against a computation of its own: written here from DeepSeek-V3's paper (2412.
 * 19437, 2.1.1) and YaRN's (2309.00071), one loop after the other, with nothing of the program but
 * the file of values that a run saved. Its gradients are those of a complex step, exact to the last
 * digits, so neither the program's adjoints nor another framework's are asked. */
#include "support/support.h"
#include <complex.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, S = 6, D = 10, H = 4, N = 3, R = 8, V = 6, C = 5, Q = 7, X = N + R, Z = N + V };
typedef double complex Num;
/* What the attention is made of; q_b stands for q_proj where queries have no low rank. */
enum { IN, Q_A, Q_AB, Q_NORM, Q_B, KV_A, KV_AB, KV_NORM, KV_B, OUT, OUTB, N_PARTS };
static const char *const names[N_PARTS] = {"layers.0.input_norm",
                                           "q_a_proj.weight",
                                           "q_a_proj.bias",
                                           "q_a_layernorm.weight",
                                           "q_b_proj.weight",
                                           "kv_a_proj_with_mqa.weight",
                                           "kv_a_proj_with_mqa.bias",
                                           "kv_a_layernorm.weight",
                                           "kv_b_proj.weight",
                                           "o_proj.weight",
                                           "o_proj.bias"};
static const int64_t count[N_PARTS] = {B * S * D, Q *D, Q,       Q,       H *X *Q, (C + R) * D,
                                       C + R,     C,    H *Z *C, D *H *V, D};
typedef struct {
    const char *what, *keys;
    bool low, yarn, pairs; /* queries of low rank; YaRN; neighbours are rotated, not halves */
} Form;
typedef struct {
    const Form *f;
    Num *part[N_PARTS], *context, *out; /* [B, S, H, V], [B, S, D] */
} Attention;

/* ---- the computation ---- */
#define YARN                                                                                       \
    "rope_scaling: {rope_type: yarn, factor: 4, beta_fast: 4, beta_slow: 1, mscale: 1.0, "         \
    "mscale_all_dim: 0.7, original_max_position_embeddings: 32}"
static const double base = 50, factor = 4, fast = 4, slow = 1, old_length = 32;
static double pair_of(double turns) { /* the pair that turns so often in the old length */
    return R * log(old_length / (turns * 2 * M_PI)) / (2 * log(base));
}
static double frequency(const Form *f, int pair) {
    double plain = pow(base, -2.0 * pair / R);
    if (!f->yarn) return plain;
    double lo = fmax(floor(pair_of(fast)), 0), hi = fmin(ceil(pair_of(slow)), R - 1);
    double ramp = fmin(fmax((pair - lo) / (hi == lo ? 0.001 : hi - lo), 0), 1);
    return plain / factor * ramp + plain * (1 - ramp);
}
static double magnitude(const Form *f, double m) { return f->yarn ? 0.1 * m * log(factor) + 1 : 1; }
/* x[R] of the token at `position`, in place. */
static void rotate(const Form *f, Num *x, int position) {
    double size = magnitude(f, 1.0) / magnitude(f, 0.7);
    for (int p = 0; p < R / 2; p++) {
        int i = f->pairs ? 2 * p : p, j = f->pairs ? 2 * p + 1 : p + R / 2;
        double angle = position * frequency(f, p), c = cos(angle) * size, s = sin(angle) * size;
        Num a = x[i], b = x[j];
        x[i] = a * c - b * s;
        x[j] = b * c + a * s;
    }
}
/* out[n] = w[n, m] x[m] + bias */
static void linear(const Num *w, const Num *bias, const Num *x, int n, int m, Num *out) {
    for (int i = 0; i < n; i++) {
        out[i] = bias ? bias[i] : 0;
        for (int k = 0; k < m; k++) out[i] += w[i * m + k] * x[k];
    }
}
static void norm(const Num *w, Num *x, int n) { /* latents are normed with 1e-6 */
    Num s = 0;
    for (int i = 0; i < n; i++) s += x[i] * x[i];
    s = csqrt(s / n + 1e-6);
    for (int i = 0; i < n; i++) x[i] = x[i] / s * w[i];
}
typedef struct {
    Num q[H * X], kv[H * Z],
        key[R]; /* [nope | rope] of each head, [nope | value], the shared key */
} Token;
static void project(const Attention *a, const Num *x, int position, Token *t) {
    Num low[Q], latent[C + R];
    if (a->f->low) {
        linear(a->part[Q_A], a->part[Q_AB], x, Q, D, low);
        norm(a->part[Q_NORM], low, Q);
    }
    linear(a->part[Q_B], NULL, a->f->low ? low : x, H * X, a->f->low ? Q : D, t->q);
    linear(a->part[KV_A], a->part[KV_AB], x, C + R, D, latent);
    memcpy(t->key, latent + C, sizeof t->key);
    norm(a->part[KV_NORM], latent, C);
    linear(a->part[KV_B], NULL, latent, H * Z, C, t->kv);
    rotate(a->f, t->key, position);
    for (int h = 0; h < H; h++) rotate(a->f, t->q + h * X + N, position);
}
/* One head of one token, over the tokens up to it. */
static void attend(const Attention *a, const Token *t, int at, int h, Num *out) {
    double m = magnitude(a->f, 0.7), scale = m * m / sqrt(X);
    Num p[S], sum = 0;
    for (int s = 0; s <= at; s++) {
        Num score = 0;
        for (int i = 0; i < N; i++) score += t[at].q[h * X + i] * t[s].kv[h * Z + i];
        for (int i = 0; i < R; i++) score += t[at].q[h * X + N + i] * t[s].key[i];
        sum += p[s] = cexp(score * scale);
    }
    for (int i = 0; i < V; i++) {
        out[i] = 0;
        for (int s = 0; s <= at; s++) out[i] += p[s] / sum * t[s].kv[h * Z + N + i];
    }
}
static void compute(const Attention *a) {
    for (int b = 0; b < B; b++) {
        Token t[S];
        for (int s = 0; s < S; s++) project(a, a->part[IN] + (b * S + s) * D, s, &t[s]);
        for (int s = 0; s < S; s++) {
            Num *c = a->context + (b * S + s) * H * V;
            for (int h = 0; h < H; h++) attend(a, t, s, h, c + h * V);
            linear(a->part[OUT], a->part[OUTB], c, D, H * V, a->out + (b * S + s) * D);
        }
    }
}

/* ---- against the program ---- */
static const char *name_of(Arena *a, const Form *f, int part) {
    const char *name = part == Q_B && !f->low ? "q_proj.weight" : names[part];
    return part == IN ? name : arena_printf(a, "model.layers.0.self_attn.%s", name);
}
static int64_t count_of(const Form *f, int part) {
    if (f->low || (part != Q_B && (part < Q_A || part > Q_NORM))) return count[part];
    return part == Q_B ? H * X * D : 0;
}
static void near(double got, double want, double to, double tolerance, const char *what) {
    if (!(fabs(got - want) <= tolerance * to)) fail_msg("%s: %.17g, not %.17g", what, got, want);
}
static double largest(const double *x, int64_t n) {
    double m = 0;
    for (int64_t i = 0; i < n; i++) m = fmax(m, fabs(x[i]));
    return m;
}
static void hold_values(Arena *a, const SafeTensors *st, const Attention *x, const char *what) {
    int64_t n;
    const double *context = tensor_numbers(a, st, "layers.0.attn_context", &n),
                 *out = tensor_numbers(a, st, "layers.0.o_proj", &n);
    for (int i = 0; i < B * S * H * V; i++)
        near(context[i], creal(x->context[i]), largest(context, B * S * H * V), 1e-13, what);
    for (int i = 0; i < B * S * D; i++)
        near(out[i], creal(x->out[i]), largest(out, B * S * D), 1e-13, what);
}
/* The gradient of sum(cotangent * out) by each number of a part: Im f(x + ih) / h. */
static void hold_gradients(Arena *a, const SafeTensors *st, Attention *x, int part,
                           const char *what) {
    const double h = 0x1p-200;
    int64_t n, all = count_of(x->f, part);
    const char *name = name_of(a, x->f, part);
    const double *cot = tensor_numbers(a, st, "grad.layers.0.o_proj", &n),
                 *got = tensor_numbers(
                     a, st, arena_printf(a, part == IN ? "grad.%s" : "grad.param.%s", name), &n);
    assert_int_equal(n, all);
    assert_true(largest(got, n) > 1e-6);
    for (int64_t i = 0; i<n; i += n> 40 ? 3 : 1) { /* of large ones every third */
        double sum = 0;
        Num keep = x->part[part][i];
        x->part[part][i] += I * h;
        compute(x);
        for (int k = 0; k < B * S * D; k++) sum += cot[k] * cimag(x->out[k]) / h;
        x->part[part][i] = keep;
        near(got[i], sum, largest(got, n), 1e-12,
             arena_printf(a, "%s, gradient of %s", what, name));
    }
}
static const struct {
    const char *mesh, *plan;
} plans[] = {
    {"{one: 1}", ""},
    {"{tp: 2}", "plan:\n  model.layers.*.self_attn.*_b_proj: colwise\n%s"
                "  model.layers.*.self_attn.o_proj: rowwise\n"},
    {"{dp: 2, cp: 3}", "context_parallel: {mode: all_gather, order: contiguous}\n"
                       "data_parallel: fsdp\n"},
};
static const char *plan_of(Arena *a, const Form *f, int plan) {
    const char *rest = arena_printf(a, plans[plan].plan,
                                    f->low ? "" : "  model.layers.*.self_attn.q_proj: colwise\n");
    return arena_printf(
        a,
        "model: {parts: [blocks], config: {model_type: deepseek_v3, hidden_size: %d, "
        "intermediate_size: 12, num_hidden_layers: 1, num_attention_heads: %d, "
        "num_key_value_heads: %d, q_lora_rank: %s, kv_lora_rank: %d, qk_nope_head_dim: %d, "
        "qk_rope_head_dim: %d, v_head_dim: %d, vocab_size: 19, first_k_dense_replace: 1, "
        "n_routed_experts: 4, num_experts_per_tok: 2, moe_intermediate_size: 4, n_group: 1, "
        "topk_group: 1, n_shared_experts: 1, rms_norm_eps: 1.0e-5, attention_bias: true, "
        "rope_theta: 50%s%s}}\ndata: {batch: %d, sequence: %d, dtype: f64, seed: 5}\nmesh: %s\n"
        "names: hf\npass: backward\n%s",
        D, H, H, f->low ? "7" : "null", C, N, R, V, *f->keys ? ", " : "", f->keys, B, S,
        plans[plan].mesh, rest);
}
static void load(Arena *a, const SafeTensors *st, const Form *f, Attention *x) {
    *x = (Attention){.f = f};
    for (int p = 0; p < N_PARTS; p++) {
        int64_t n = 0, want = count_of(f, p);
        const double *v = want ? tensor_numbers(a, st, name_of(a, f, p), &n) : NULL;
        assert_int_equal(n, want);
        x->part[p] = arena_alloc(a, sizeof(Num) * (size_t)(n + 1));
        for (int64_t i = 0; i < n; i++) x->part[p][i] = v[i];
    }
    x->context = arena_alloc(a, sizeof(Num) * B * S * H * V);
    x->out = arena_alloc(a, sizeof(Num) * B * S * D);
}
static void test_latent(void **state) {
    (void)state;
    static const Form forms[] = {
        {"q of low rank", "rope_interleave: true", true, false, true},
        {"q of full rank", "rope_interleave: true", false, false, true},
        {"rotated halves", "rope_interleave: false", true, false, false},
        {"YaRN", "rope_interleave: true, " YARN, true, true, true},
        {"YaRN, full rank, halves", "rope_interleave: false, " YARN, false, true, false},
    };
    int n_forms = sizeof forms / sizeof *forms, n_plans = sizeof plans / sizeof *plans;
    for (int i = 0; i < n_forms * n_plans; i++) {
        Arena *a = arena_new();
        const Form *f = &forms[i / n_plans];
        const char *saved = temp_path(a, "latent.safetensors"),
                   *what = arena_printf(a, "%s, %s", f->what, plans[i % n_plans].mesh);
        PlanRun r =
            plan_run_with(a, "latent.yaml", plan_of(a, f, i % n_plans),
                          &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
        if (!r.t || r.rep.exit) run_print(&r);
        assert_true(run_is(&r, "equivalent"));
        SafeTensors *st = golden_tensors(a, saved);
        Attention x;
        load(a, st, f, &x);
        compute(&x);
        hold_values(a, st, &x, what);
        for (int p = 0; p < N_PARTS && i % n_plans == 1; p++) /* those of the ranks are checked */
            if (count_of(f, p)) hold_gradients(a, st, &x, p, what);
        st_close(st);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_latent)};
    return cmocka_run_group_tests_name("oracle", tests, NULL, NULL);
}
