/* Latent attention over ranks that each have a part of the sequence. `context_parallel: {latent:
 * true}`: what ranks send each other of keys and values is the latent and the rotated key, gathered
 * or round a ring, and each makes keys and values itself; else they send keys and values, and with
 * scores in two parts the rotated key once for all heads. Held to the gradients of one rank that
 * has all tokens and scores of one part, in every mode and order and with other axes inside and
 * around; what is sent is counted; what has no latent is refused. */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <string.h>

#include <cmocka.h>

enum { B = 2, S = 24, HEADS = 4, LATENT = 5, OWN = 4, ROTATED = 2, VALUE = 3 };
static const char model[] =
    ", config: {model_type: deepseek_v3, hidden_size: 12, num_attention_heads: 4, "
    "num_key_value_heads: 4, q_lora_rank: 6, kv_lora_rank: 5, qk_nope_head_dim: 4, "
    "qk_rope_head_dim: 2, v_head_dim: 3, intermediate_size: 10, vocab_size: 11, "
    "num_hidden_layers: 2, first_k_dense_replace: 2, rope_interleave: true}, layers: all, "
    "parts: [embedding, blocks, norm, head, loss]}\n"
    "data: {batch: 2, sequence: 24, dtype: f64}\npass: backward\nnames: hf\n";
static const char *const scores[] = {"joint", "parts"};
static const char *const orders[] = {"contiguous", "zigzag", "striped"};

static const char *plan_of(Arena *a, int apart, const char *rest) {
    return arena_printf(a, "model: {scores: %s%s%s", scores[apart], model, rest);
}
/* Runs it, and holds the gradients of parameters, and of a key's projection, to those of `want`. */
static void hold(int apart, const char *rest, const SafeTensors *want) {
    Arena *a = arena_new();
    const char *saved = temp_path(a, "latent.out.safetensors");
    const char *text = plan_of(a, apart, rest);
    PlanRun r = plan_run_with(
        a, "latent.yaml", text,
        &(PipelineOptions){.execute = true, .threads = 1, .numbers = true, .save_values = saved});
    if (!run_is(&r, "equivalent") || r.t->n_unasked) {
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
    arena_free(a);
}
static SafeTensors *one_rank(Arena *a) {
    const char *saved = temp_path(a, "latent.one.safetensors");
    PlanRun r = plan_run_with(
        a, "one.yaml", plan_of(a, false, "mesh: {one: 1}\n"),
        &(PipelineOptions){.execute = true, .threads = 1, .numbers = true, .save_values = saved});
    run_must_be(&r, "equivalent");
    return golden_tensors(a, saved);
}
static const char *const modes[] = {"mode: all_gather",
                                    "mode: ulysses",
                                    "mode: ring",
                                    "mode: ring, backward: chain",
                                    "mode: ring, keep_kv: false",
                                    "mode: ring, rfa: true",
                                    "mode: ring, rfa: true, keep_kv: false"};
enum { MODES = sizeof modes / sizeof *modes };
static const char *const sent[] = {"", ", latent: true"};
/* Every mode and order, scores of one and of two parts, keys and values or their latent sent. */
static void test_against_one_rank(void **state) {
    (void)state;
    Arena *a = arena_new();
    SafeTensors *want = one_rank(a);
    for (int i = 0; i < 4 * MODES * 3; i++)
        hold(i & 1,
             arena_printf(a, "mesh: {cp: %d}\ncontext_parallel: {%s, order: %s%s}\n",
                          i / 4 % 2 ? 2 : 4, modes[i / 12], orders[i / 4 % 3], sent[i >> 1 & 1]),
             want);
    st_close(want);
    arena_free(a);
}
/* The shared key's gradient is a sum over heads, which a line asks for where heads read it. */
#define TP_LINES(module, before)                                                                   \
    "plan:\n  'layers.*.self_attn.q_b_proj': colwise\n  'layers.*.self_attn.kv_b_proj': colwise\n" \
    "  'layers.*.self_attn.o_proj': rowwise\n  'layers.*.mlp.gate_proj': colwise\n"                \
    "  'layers.*.mlp.up_proj': colwise\n  'layers.*.mlp.down_proj': rowwise\n"                     \
    "  'layers.*.self_attn." module "': {style: prepare_module_input, input: [" before             \
    "replicate], desired_input: [" before "varying_use]}\n"
static void test_among_other_axes(void **state) {
    (void)state;
    static const char *const tp_lines[] = {TP_LINES("k_cat", "null, "),
                                           TP_LINES("core", "null, null, null, ")};
    static const char *const more[] = {
        "mesh: {cp: 1}\ncontext_parallel: {mode: ring%s}\n",
        "mesh: {r: 2, u: 2}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, order: zigzag%s}\n",
        "mesh: {u: 2, r: 3}\ncontext_parallel: {mode: usp, ring: r, ulysses: u, keep_kv: "
        "false%s}\n",
        "mesh: {dp: 2, cp: 3}\ncontext_parallel: {mode: ring, order: striped%s}\n"
        "data_parallel: fsdp\nrecompute: block\n",
        "mesh: {pp: 2, cp: 2}\npipeline: {schedule: 1f1b, microbatches: 2}\n"
        "context_parallel: {mode: ring, order: striped, keep_kv: false%s}\n"};
    Arena *a = arena_new();
    SafeTensors *want = one_rank(a);
    for (int i = 0; i < 4 * (int)(sizeof more / sizeof *more); i++)
        hold(i & 1, arena_printf(a, more[i / 4], sent[i >> 1 & 1]), want);
    for (int i = 0; i < 4 * MODES; i++)
        hold(i & 1,
             arena_printf(a, "mesh: {cp: 2, tp: 2}\ncontext_parallel: {%s%s}\n%s", modes[i / 4],
                          sent[i >> 1 & 1], tp_lines[i & 1]),
             want);
    st_close(want);
    arena_free(a);
}

/* What a line says of the keys that attention reads, or of its values or queries, holds of those of
 * every block that comes by: all parts lie alike. (The backward of one read a result that was cut
 * in another way than it, behind its end.) */
static void test_declared_for_every_block(void **state) {
    (void)state;
    static const char *const lines[] = {"{tp: shard(k)}", "{}, {tp: shard(k)}",
                                        "{}, {}, {tp: shard(k)}", "{}, {tp: shard(b)}"};
    for (int i = 0; i < 4 * MODES; i++) {
        if (!strstr(modes[i / 4], "ring")) continue;
        Arena *a = arena_new();
        PlanRun r = plan_good(
            a,
            plan_of(a, false,
                    arena_printf(a,
                                 "mesh: {cp: 3, tp: 2}\ncontext_parallel: {%s, latent: true}\n"
                                 "plan:\n  'layers.*.self_attn.core': {desired_input: [%s]}\n",
                                 modes[i / 4], lines[i % 4])),
            true);
        int64_t bytes = 0;
        int parts = 0;
        for (int k = 0; k < r.t->n_values; k++) {
            const TraceShape *v = &r.t->values[k].shape;
            if (strncmp(v->name, "layers.0.attn_part.", 19) != 0 || !v->n_local) continue;
            if (!bytes) bytes = v->local[0].bytes;
            if (v->local[0].bytes != bytes)
                fail_msg("%s, %s: %s holds %lld bytes, another part %lld", modes[i / 4],
                         lines[i % 4], v->name, (long long)v->local[0].bytes, (long long)bytes);
            parts++;
        }
        assert_true(parts >= 3);
        arena_free(a);
    }
}

/* Hops on four ranks, per layer and pass: of the latent and of the rotated key (5 + 2 numbers a
 * token); else of what heads have of keys and of values, the rotated key in each head (4 (6 + 3))
 * or, where scores have two parts, once for all (4 (4 + 3) + 2). Nothing else of attention is sent.
 */
static const struct {
    const char *travels[3];
    int64_t width;
} travel[2][2] = {{{{".k_attn", ".v_attn", "-"}, HEADS *(OWN + ROTATED + VALUE)},
                   {{".k_nope", ".v_attn", ".k_rope"}, HEADS *(OWN + VALUE) + ROTATED}},
                  {{{".kv_a_norm", ".k_rope", "-"}, LATENT + ROTATED},
                   {{".kv_a_norm", ".k_rope", "-"}, LATENT + ROTATED}}};
static void hold_hops(const char *mode, int forward, int back, int which) {
    Arena *a = arena_new();
    int latent = which >> 1, apart = which & 1,
        n = 2 + !strcmp(travel[latent][apart].travels[2], ".k_rope");
    PlanRun r = plan_good(
        a,
        plan_of(a, apart,
                arena_printf(a, "mesh: {cp: 4}\ncontext_parallel: {%s%s}\n", mode, sent[latent])),
        false);
    int64_t bytes[2] = {0}, count[2] = {0}, hop = B * (S / 4) * travel[latent][apart].width * 8;
    for (int k = 0; k < r.t->n_collectives; k++) {
        const TraceCollective *c = &r.t->collectives[k];
        bool known = false, is_back = c->pass != PHASE_FORWARD;
        if (strcmp(c->op, "shift")) continue;
        for (int i = 0; i < n; i++)
            known |= strstr(c->value, travel[latent][apart].travels[i]) != NULL;
        if (!known) fail_msg("%s goes round", c->value);
        bytes[is_back] += c->bytes_sent;
        count[is_back]++;
    }
    assert_int_equal(count[0], 2 * n * forward);
    assert_int_equal(count[1], 2 * n * back);
    assert_int_equal(bytes[0], 2 * forward * hop);
    assert_int_equal(bytes[1], 2 * back * hop);
    assert_int_equal(r.t->n_unasked, 0);
    arena_free(a);
}
static void test_counts(void **state) {
    (void)state;
    static const struct {
        const char *mode;
        int forward, back; /* keys and values again, and their gradients */
    } rows[] = {{"mode: ring", 3, 3},
                {"mode: ring, backward: chain", 3, 3},
                {"mode: ring, keep_kv: false", 3, 2 + 3},
                {"mode: ring, rfa: true", 3, 3 + 4}};
    for (size_t i = 0; i < 4 * sizeof rows / sizeof *rows; i++)
        hold_hops(rows[i / 4].mode, rows[i / 4].forward, rows[i / 4].back, i & 3);
}
/* The mistakes of rings, where the latent or two parts of keys go round: each is found where it is,
 * with its cause. */
static void test_located(void **state) {
    (void)state;
    static const struct {
        const char *fault, *first, *cause;
        int latent; /* 1: only where it is sent, 0: only where not, 2: either way */
    } rows[] = {
        {"at: shift 2 of layers.0.k_rope, do: drop", "layers.0.k_rope", "is left out", 2},
        {"at: shift 1 of layers.0.kv_a_norm, do: drop", "layers.0.kv_a_norm", "is left out", 1},
        {"at: shift 1 of layers.0.k_nope, do: drop", "layers.0.k_nope", "is left out", 0},
        {"at: shift 0 of grad.layers.0.k_rope, scale: 0", "grad.layers.0.k_rope", "nothing arrives",
         2},
        {"at: shift 0 of grad.layers.0.v_attn, scale: 0", "grad.layers.0.v_attn", "nothing arrives",
         0},
        {"at: layers.0.attn_part.1, do: contiguous", "layers.0.attn_part.1",
         "positions are those of contiguous blocks", 2},
        {"at: layers.0.attn_part.1, do: local", "layers.0.attn_part.1",
         "positions are counted from 0", 2},
        {"at: layers.0.attn_merge.2, do: unweighted", "layers.0.attn_merge.2", "does not rescale",
         2}};
    for (size_t i = 0; i < 2 * sizeof rows / sizeof *rows; i++) {
        int latent = i & 1;
        if (rows[i / 2].latent != 2 && rows[i / 2].latent != latent) continue;
        Arena *a = arena_new();
        PlanRun r = plan_run(
            a, "located.yaml",
            plan_of(a, true,
                    arena_printf(a,
                                 "mesh: {cp: 4}\ncontext_parallel: {mode: ring, order: zigzag%s}\n"
                                 "faults: [{%s}]\n",
                                 sent[latent], rows[i / 2].fault)),
            true);
        const char *cause = NULL;
        for (int k = 0; r.t && k < r.t->n_checks && !cause; k++)
            if (r.t->checks[k].level && r.t->checks[k].verdict[0] == 'F')
                cause = r.t->checks[k].cause;
        if (!cause || !strstr(cause, rows[i / 2].cause) ||
            strcmp(r.t->first_wrong, rows[i / 2].first)) {
            run_print(&r);
            fail_msg("%s: first wrong %s, cause %s", rows[i / 2].fault,
                     r.t ? r.t->first_wrong : "?", cause ? cause : "none");
        }
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
                                       cmocka_unit_test(test_among_other_axes),
                                       cmocka_unit_test(test_declared_for_every_block),
                                       cmocka_unit_test(test_counts),
                                       cmocka_unit_test(test_located),
                                       cmocka_unit_test(test_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
