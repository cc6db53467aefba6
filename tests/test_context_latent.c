/* `context_parallel: {latent: true}`: what ranks send each other of keys and values is the latent
 * and the rotated key, gathered or round a ring, and each makes keys and values itself. Held to the
 * gradients of one rank that has all tokens, in every mode and order and with other axes inside and
 * around; what is sent is counted; what has no latent is refused. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, S = 24, LATENT = 5, ROTATED = 2 };
static const char model[] =
    "model: {config: {model_type: deepseek_v3, hidden_size: 12, num_attention_heads: 4, "
    "num_key_value_heads: 4, q_lora_rank: 6, kv_lora_rank: 5, qk_nope_head_dim: 4, "
    "qk_rope_head_dim: 2, v_head_dim: 3, intermediate_size: 10, vocab_size: 11, "
    "num_hidden_layers: 2, first_k_dense_replace: 2, rope_interleave: true}, layers: all, "
    "parts: [embedding, blocks, norm, head, loss]}\n"
    "data: {batch: 2, sequence: 24, dtype: f64}\npass: backward\nnames: hf\n";
static const char *const orders[] = {"contiguous", "zigzag", "striped"};

/* Runs it, and holds the gradients of all parameters, and of a key's projection, to those of
 * `want`. */
static PlanRun hold(Arena *a, const char *rest, const SafeTensors *want) {
    const char *saved = temp_path(a, "latent.out.safetensors");
    const char *text = arena_printf(a, "%s%s", model, rest);
    PlanRun r = plan_run_with(
        a, "latent.yaml", text,
        &(PipelineOptions){.execute = true, .threads = 1, .numbers = true, .save_values = saved});
    if (!r.t || !r.t->verdict || strcmp(r.t->verdict, "equivalent") || r.t->n_unasked) {
        fputs(text, stderr);
        run_print(&r);
        fail_msg("not equivalent, or moves that nobody asks for");
    }
    static const char *const names[] = {
        "layers.1.output",
        "grad.layers.0.kv_a_proj",
        "grad.param.model.layers.0.self_attn.kv_b_proj.weight",
        "grad.param.model.layers.0.self_attn.kv_a_layernorm.weight",
        "grad.param.model.layers.1.self_attn.kv_a_proj_with_mqa.weight",
        "grad.param.model.layers.1.self_attn.kv_b_proj.weight",
        "grad.param.model.layers.1.self_attn.q_b_proj.weight"};
    SafeTensors *st = golden_tensors(a, saved);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        int64_t n, m;
        const double *x = tensor_numbers(a, st, names[i], &n),
                     *y = tensor_numbers(a, want, names[i], &m);
        assert_int_equal(n, m);
        for (int64_t k = 0; k < n; k++)
            if (!(fabs(x[k] - y[k]) < 1e-12 * (1 + fabs(y[k]))))
                fail_msg("%s[%d] is %.17g, on one rank %.17g\n%s", names[i], (int)k, x[k], y[k],
                         text);
    }
    st_close(st);
    return r;
}
static SafeTensors *one_rank(Arena *a) {
    const char *saved = temp_path(a, "latent.one.safetensors");
    PlanRun r = plan_run_with(
        a, "one.yaml", arena_printf(a, "%smesh: {one: 1}\n", model),
        &(PipelineOptions){.execute = true, .threads = 1, .numbers = true, .save_values = saved});
    assert_string_equal(r.t->verdict, "equivalent");
    return golden_tensors(a, saved);
}
static void test_against_one_rank(void **state) {
    (void)state;
    static const char tp_lines[] =
        "plan:\n  'layers.*.self_attn.q_b_proj': colwise\n  'layers.*.self_attn.kv_b_proj': "
        "colwise\n"
        "  'layers.*.self_attn.o_proj': rowwise\n  'layers.*.mlp.gate_proj': colwise\n"
        "  'layers.*.mlp.up_proj': colwise\n  'layers.*.mlp.down_proj': rowwise\n"
        "  'layers.*.self_attn.k_cat': {style: prepare_module_input, input: [null, replicate], "
        "desired_input: [null, varying_use]}\n";
    static const char *const modes[] = {"mode: all_gather",
                                        "mode: ulysses",
                                        "mode: ring",
                                        "mode: ring, backward: chain",
                                        "mode: ring, keep_kv: false",
                                        "mode: ring, rfa: true",
                                        "mode: ring, rfa: true, keep_kv: false"};
    static const char *const more[] = {
        "mesh: {cp: 1}\ncontext_parallel: {mode: ring, latent: true}\n",
        "mesh: {r: 2, u: 2}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, latent: true, "
        "order: zigzag}\n",
        "mesh: {u: 2, r: 3}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, latent: true, "
        "keep_kv: false}\n",
        "mesh: {dp: 2, cp: 3}\ncontext_parallel: {mode: ring, latent: true, order: zigzag}\n"
        "data_parallel: fsdp\nrecompute: block\n",
        "mesh: {pp: 2, cp: 2}\npipeline: {schedule: 1f1b, microbatches: 2}\n"
        "context_parallel: {mode: ring, latent: true, order: striped, keep_kv: false}\n"};
    Arena *a = arena_new();
    SafeTensors *want = one_rank(a);
    for (int i = 0; i < 7 * 3; i++) {
        Arena *tmp = arena_new();
        hold(tmp,
             arena_printf(tmp, "mesh: {cp: %d}\ncontext_parallel: {%s, order: %s, latent: true}\n",
                          i % 2 ? 2 : 4, modes[i / 3], orders[i % 3]),
             want);
        arena_free(tmp);
    }
    for (size_t i = 0; i < sizeof more / sizeof *more; i++) {
        Arena *tmp = arena_new();
        hold(tmp, more[i], want);
        arena_free(tmp);
    }
    for (int i = 0; i < 7; i++) {
        Arena *tmp = arena_new();
        hold(tmp,
             arena_printf(tmp, "mesh: {cp: 2, tp: 2}\ncontext_parallel: {%s, latent: true}\n%s",
                          modes[i], tp_lines),
             want);
        arena_free(tmp);
    }
    st_close(want);
    arena_free(a);
}

/* Hops of the latent and of the rotated key on four ranks, per layer and pass, as those of keys and
 * values of a ring; nothing else of attention is sent, and what is made of the latent is as wide as
 * it would be: a layer's hops are (5 + 2) numbers a token instead of 4 (6 + 3). */
static void test_counts(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int forward, again, grad;
    } rows[] = {{"mode: ring", 3, 0, 3},
                {"mode: ring, backward: chain", 3, 0, 3},
                {"mode: ring, keep_kv: false", 3, 2, 3},
                {"mode: ring, rfa: true", 3, 3, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r =
            plan_good(a,
                      arena_printf(a, "%smesh: {cp: 4}\ncontext_parallel: {%s, latent: true}\n",
                                   model, rows[i].mode),
                      false);
        int64_t sent[2] = {0}, count[2] = {0};
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            bool back = c->pass != PHASE_FORWARD;
            if (strcmp(c->op, "shift")) continue;
            assert_true(strstr(c->value, "kv_a_norm") || strstr(c->value, "k_rope"));
            sent[back] += c->bytes_sent;
            count[back]++;
        }
        const int64_t hop = B * (S / 4) * (LATENT + ROTATED) * 8;
        int back = rows[i].again + rows[i].grad;
        assert_int_equal(count[0], 2 * 2 * rows[i].forward);
        assert_int_equal(count[1], 2 * 2 * back);
        assert_int_equal(sent[0], 2 * rows[i].forward * hop);
        assert_int_equal(sent[1], 2 * back * hop);
        assert_int_equal(r.t->n_unasked, 0);
        arena_free(a);
    }
}
static void test_refused(void **state) {
    (void)state;
    static const char *const models[] = {
        "model: {kind: attention, heads: 4, kv_heads: 2, head_dim: 3}\n",
        "model: {config: {hidden_size: 16, num_attention_heads: 4, intermediate_size: 10, "
        "vocab_size: 11, num_hidden_layers: 1}}\n"};
    for (int i = 0; i < 4; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run(a, "latent.yaml",
                             arena_printf(a,
                                          "%sdata: {sequence: 8}\nmesh: {cp: 2}\n"
                                          "context_parallel: {mode: %s, latent: true}\n",
                                          models[i % 2], i / 2 ? "ring" : "all_gather"),
                             false);
        if (!run_has(&r, "E0215")) run_print(&r), fail();
        assert_false(run_has(&r, "E0401"));
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_against_one_rank),
                                       cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
