/* Expert-parallel runs of other processes (golden/moe: PyTorch on gloo, an implementation of its
 * own): what each rank routes, sends, receives, computes and gets back, values and gradients,
 * counts and collectives. A record is of a MoE block alone, of the tokens that each rank has: here
 * the block stands behind an attention that adds nothing and a norm that changes nothing (one more
 * column makes all tokens of one length). What tokens' numbers per rank a batch cannot have is
 * compared as one device, and listed; nothing is left out in silence. */
#include "support/moe_block.h"
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { D = 10, D1 = 11, FE = 8, E = 8, MOST_RANKS = 4 };
static const double eps = 1e-5;

/* ---- a record ---- */
typedef enum { EACH_RANK, AS_ONE, NOT_AT_ALL } How;
typedef struct {
    Arena *a;
    const char *name;
    Json *json;
    SafeTensors *st;
    int edp, ep, etp, ranks, k;
    int64_t tokens[MOST_RANKS], all;
    int64_t B, S; /* as a batch */
    bool llama4, capped;
    How how;
    const char *why; /* it is not compared rank by rank */
} Record;
static int whole(const Json *j, const char *key) {
    const Json *x = json_get(j, key);
    assert_non_null(x);
    return (int)x->i;
}
static const char *text_of(const Json *j, const char *key) {
    const Json *x = json_get(j, key);
    assert_non_null(x);
    return x->s;
}
/* Which batch lies so: rows of one length, one to a rank; or one row, which the first rank gets. */
static void find_batch(Record *r) {
    bool even = true, first = true;
    for (int i = 1; i < r->ranks; i++) {
        even &= r->tokens[i] == r->tokens[0];
        first &= !r->tokens[i];
    }
    r->B = even ? r->ranks : 1;
    r->S = even || first ? r->tokens[0] : r->all;
    r->how = even || first ? EACH_RANK : r->capped ? NOT_AT_ALL : AS_ONE;
    r->why = even || first ? NULL
             : r->capped
                 ? "tokens of unlike number on its ranks, and each rank's capacity is of its own"
                 : "tokens of unlike number on its ranks, which no cut of a batch gives: compared "
                   "as one device";
}
static Record open_record(Arena *a, const char *path) {
    Record r = {.a = a, .json = golden_json(a, path)};
    const Json *tokens = json_get(r.json, "tokens");
    r.name = text_of(r.json, "name");
    r.st = golden_tensors(a, arena_printf(a, "%.*s.safetensors", (int)strlen(path) - 5, path));
    r.edp = whole(r.json, "edp"), r.ep = whole(r.json, "ep"), r.etp = whole(r.json, "etp");
    r.ranks = r.edp * r.ep * r.etp;
    r.k = whole(r.json, "k");
    assert_true(whole(r.json, "D") == D && whole(r.json, "Fe") == FE && whole(r.json, "E") == E);
    for (int i = 0; i < r.ranks; i++) r.all += r.tokens[i] = tokens->item[i]->i;
    r.llama4 = !strcmp(text_of(r.json, "model"), "llama4");
    r.capped = json_get(r.json, "capacity") != NULL;
    find_batch(&r);
    return r;
}
static const double *of_rank(const Record *r, int rank, const char *name, int64_t *n) {
    return tensor_numbers(r->a, r->st, arena_printf(r->a, "rank%d.%s", rank, name), n);
}
/* [tokens, width] of all ranks, one after the other. */
static double *all_ranks(const Record *r, const char *name, int width) {
    double *x = ARENA_ARRAY(r->a, double, r->all *width + 1);
    int64_t at = 0, n;
    for (int i = 0; i < r->ranks; i++) {
        const double *one = of_rank(r, i, name, &n);
        assert_int_equal(n, r->tokens[i] * width);
        memcpy(x + at, one, (size_t)n * sizeof *x);
        at += n;
    }
    return x;
}

/* ---- its plan ---- */
static const struct {
    const char *model, *config;
} configs[] = {
    {"mixtral", "model_type: mixtral, num_local_experts: 8, num_experts_per_tok: 2"},
    {"qwen3", "model_type: qwen3_moe, num_experts: 8, num_experts_per_tok: 3, "
              "moe_intermediate_size: 8, norm_topk_prob: false"},
    {"llama4", "model_type: llama4_text, num_local_experts: 8, num_experts_per_tok: 1, "
               "moe_layers: [0]"},
    {"deepseek3", "model_type: deepseek_v3, n_routed_experts: 8, num_experts_per_tok: 3, n_group: "
                  "4, topk_group: 2, routed_scaling_factor: 2.5, n_shared_experts: 1, "
                  "moe_intermediate_size: 8, first_k_dense_replace: 0, q_lora_rank: null, "
                  "kv_lora_rank: 2, qk_nope_head_dim: 2, qk_rope_head_dim: 2, v_head_dim: 2"},
};
static const char *config_of(const Record *r) {
    for (size_t i = 0; i < sizeof configs / sizeof *configs; i++)
        if (!strcmp(configs[i].model, text_of(r->json, "model"))) return configs[i].config;
    fail_msg("%s: an unknown model", r->name);
    return NULL;
}
static const char *plan_of(const Record *r, const char *weights, const char *inputs) {
    Arena *a = r->a;
    bool one = r->how == AS_ONE, latent = strstr(config_of(r), "deepseek") != NULL;
    const char *moe = "";
    if (r->capped)
        moe = arena_printf(a, "moe: {capacity_factor: %g, capacity: local, priority: %s}\n",
                           json_get(r->json, "capacity")->r,
                           strcmp(text_of(r->json, "priority"), "slot") ? "order" : "slot");
    const char *files = weights ? arena_printf(a, ", weights: %s", weights) : "",
               *data = inputs ? arena_printf(a, ", inputs: %s", inputs) : "";
    Str mesh = str_new(a), dp = str_new(a); /* axes of one rank are left out */
    const struct {
        const char *name;
        int size;
    } axes[] = {{"edp", one ? 1 : r->edp}, {"ep", one ? 1 : r->ep}, {"etp", one ? 1 : r->etp}};
    for (int i = 0; i < 3; i++) {
        if (axes[i].size == 1 && i != 1) continue;
        str_addf(&mesh, "%s%s: %d", mesh.n ? ", " : "", axes[i].name, axes[i].size);
        str_addf(&dp, "%s%s", dp.n ? "*" : "", axes[i].name);
    }
    return arena_printf(
        a,
        "model: {config: {%s, hidden_size: %d, intermediate_size: %d, num_hidden_layers: 1, "
        "num_attention_heads: 1, num_key_value_heads: 1, vocab_size: 16, rms_norm_eps: %g%s}%s}\n"
        "data: {batch: %lld, sequence: %lld, dtype: f64%s}\n"
        "mesh: {%s}\ngroups: {dp: %s}\nnames: torchtitan\n"
        "pass: backward\ndata_parallel: {mode: ddp}\n%splan:\n"
        "  layers.*.moe.experts: {axis: ep, weight: {ep: shard(e)%s}}\n",
        config_of(r), D1, FE, eps, latent ? "" : ", head_dim: 4", files, (long long)r->B,
        (long long)r->S, data, mesh.s, dp.s, moe, axes[2].size > 1 ? ", etp: shard(w)" : "");
}

/* ---- its files ---- */
/* What a parameter is in the record. */
static const struct {
    const char *ours, *theirs;
    Pad pad;
} weights[] = {
    {"layers.0.moe.router.gate.weight", "router", {1, E, D, E, D1}},
    {"layers.0.moe.experts.w1", "gate", {E, FE, D, FE, D1}},
    {"layers.0.moe.experts.w3", "up", {E, FE, D, FE, D1}},
    {"layers.0.moe.experts.w2", "down", {E, D, FE, D1, FE}},
    {"layers.0.moe.shared_experts.w1.weight", "shared_gate", {1, FE, D, FE, D1}},
    {"layers.0.moe.shared_experts.w3.weight", "shared_up", {1, FE, D, FE, D1}},
    {"layers.0.moe.shared_experts.w2.weight", "shared_down", {1, D, FE, D1, FE}},
    {"layers.0.moe.expert_bias", "bias", {1, 1, E, 1, E}},
};
enum { N_WEIGHTS = sizeof weights / sizeof *weights };
static MoeBlock block_of(const Record *r) {
    MoeBlock b = {.a = r->a, .B = r->B, .S = r->S, .D = D, .eps = eps};
    BlockWeight *w = ARENA_ARRAY(r->a, BlockWeight, N_WEIGHTS);
    b.x = all_ranks(r, "x", D);
    b.dy = all_ranks(r, "dy", D);
    b.norm = "layers.0.ffn_norm.weight";
    b.weight = w;
    for (int i = 0; i < N_WEIGHTS; i++) {
        const char *theirs = arena_printf(r->a, "weight.%s", weights[i].theirs);
        int64_t n;
        if (st_find(r->st, theirs))
            w[b.n++] = (BlockWeight){weights[i].ours, tensor_numbers(r->a, r->st, theirs, &n),
                                     weights[i].pad};
    }
    return b;
}

/* ---- comparing ---- */
static void same(const Record *r, const char *what, const double *have, const double *want,
                 int64_t n, double tolerance) {
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(want[i]));
    for (int64_t i = 0; i < n; i++)
        if (!(fabs(have[i] - want[i]) <= tolerance * fmax(top, 1e-3)))
            fail_msg("%s: %s [%lld] is %.17g, recorded %.17g", r->name, what, (long long)i, have[i],
                     want[i]);
}
static void hold_tokens(const Record *r, const SafeTensors *st) {
    static const struct {
        const char *ours, *theirs;
        int width;
        double tolerance;
    } rows[] = {{"layers.0.moe.router_logits", "router_logits", E, 1e-11},
                {"layers.0.moe.output", "y", D, 1e-11},
                {"layers.0.moe.routed", "y", D, 1e-11},
                {"grad.layers.0.post_attn_norm", "grad.x", D, 1e-10}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        int64_t n;
        bool shared = st_find(st, "layers.0.moe.output") != NULL;
        if (!strcmp(rows[i].theirs, "y") && shared == !strcmp(rows[i].ours, "layers.0.moe.routed"))
            continue; /* without a shared expert the block ends with its routed ones */
        const double *x = tensor_numbers(r->a, st, rows[i].ours, &n);
        if (rows[i].width == D) x = first_columns(r->a, x, r->all, D1, D);
        same(r, rows[i].ours, x, all_ranks(r, rows[i].theirs, rows[i].width),
             r->all * rows[i].width, rows[i].tolerance);
    }
}
static void hold_gradients(const Record *r, const SafeTensors *st) {
    for (int i = 0; i < N_WEIGHTS; i++) {
        const char *theirs = arena_printf(r->a, "total.grad.%s", weights[i].theirs);
        Pad p = weights[i].pad;
        int64_t n, m;
        if (!st_find(r->st, theirs)) continue;
        const double *want = tensor_numbers(r->a, r->st, theirs, &n),
                     *have = tensor_numbers(
                         r->a, st, arena_printf(r->a, "grad.param.%s", weights[i].ours), &m);
        for (int64_t b = 0; b < p.blocks; b++)
            for (int64_t k = 0; k < p.rows; k++)
                same(r, weights[i].ours, have + (b * p.rows1 + k) * p.cols1,
                     want + (b * p.rows + k) * p.cols, p.cols, 1e-10);
    }
}
/* The rows of the list: the experts that tokens were recorded to go to, with their weights. */
static void hold_choices(const Record *r, const SafeTensors *st) {
    int64_t n, m, pairs = r->all * r->k;
    const double *id = tensor_numbers(r->a, st, "layers.0.moe.list", &n),
                 *weight = tensor_numbers(r->a, st, "layers.0.moe.weights", &m),
                 *index = all_ranks(r, "topk_index", r->k),
                 *score = all_ranks(r, "topk_weight", r->k);
    assert_true(n == pairs && m == pairs);
    for (int64_t i = 0; i < n; i++) {
        int64_t e = (int64_t)id[i] / r->all, t = (int64_t)id[i] % r->all, j = 0;
        while (j < r->k && (int64_t)index[t * r->k + j] != e) j++;
        if (j == r->k)
            fail_msg("%s: token %lld does not go to expert %lld", r->name, (long long)t,
                     (long long)e);
        same(r, "a weight", &weight[i], &score[t * r->k + j], 1, 1e-11);
    }
    if (!r->capped) return;
    const double *kept = tensor_numbers(r->a, st, "layers.0.moe.kept", &m),
                 *keep = all_ranks(r, "kept", r->k);
    for (int64_t i = 0, k = 0; i < n; i++) {
        int64_t e = (int64_t)id[i] / r->all, t = (int64_t)id[i] % r->all, j = 0;
        while ((int64_t)index[t * r->k + j] != e) j++;
        bool is = k < m && (int64_t)kept[k] == (int64_t)id[i];
        if (is != (keep[t * r->k + j] > 0))
            fail_msg("%s: pair %lld, %lld", r->name, (long long)t, (long long)j);
        k += is;
    }
}
/* ---- what ranks send and get ---- */
/* By slot a sender orders an expert's rows by places, all first choices before all second ones:
 * here they stand by token. Each row of an expert and sender with its token, sorted. */
typedef struct {
    int64_t expert, sender, token, row;
} Sent;
static int by_row(const void *p, const void *q) {
    const Sent *a = p, *b = q;
    const int64_t x[3] = {a->expert, a->sender, a->token}, y[3] = {b->expert, b->sender, b->token};
    for (int i = 0; i < 3; i++)
        if (x[i] != y[i]) return x[i] < y[i] ? -1 : 1;
    return 0;
}
static void by_token(const Record *r, int rank, double *x, int64_t rows, int width) {
    int64_t n, taken[MOST_RANKS] = {0}, local = E / r->ep, me = rank / r->etp % r->ep;
    const double *expert = of_rank(r, rank, "expert_input_local_expert", &n),
                 *sender = of_rank(r, rank, "expert_input_source_rank", &n);
    Sent *sent = ARENA_ARRAY(r->a, Sent, rows + 1);
    for (int64_t i = 0; i < rows;
         i++) { /* the sender's next pair that goes to this rank's experts */
        int from = (int)sender[i];
        const double *order = of_rank(r, from, "order", &n),
                     *index = of_rank(r, from, "topk_index", &n);
        int64_t *k = &taken[from];
        while ((int64_t)index[(int64_t)order[*k]] / local != me) ++*k;
        sent[i] = (Sent){(int64_t)expert[i], from, (int64_t)order[*k] / r->k, i};
        assert_int_equal((int64_t)index[(int64_t)order[(*k)++]] % local, sent[i].expert);
    }
    double *was = arena_memdup(r->a, x, (size_t)(rows * width) * sizeof *x);
    qsort(sent, (size_t)rows, sizeof *sent, by_row);
    for (int64_t i = 0; i < rows; i++)
        memcpy(x + i * width, was + sent[i].row * width, (size_t)width * sizeof *x);
}
/* Rows of the record's own order, times the rank's part of the experts' gates: what its experts
 * made, row for row. */
static void hold_experts(const Record *r, const SafeTensors *st, int rank) {
    int64_t n, m, rows;
    const double *in = of_rank(r, rank, "expert_input", &n),
                 *local = of_rank(r, rank, "expert_input_local_expert", &rows),
                 *w = tensor_numbers(r->a, r->st, "weight.gate", &m),
                 *have = tensor_numbers(r->a, st,
                                        arena_printf(r->a, "rank%d/layers.0.moe.gate", rank), &m);
    int width = FE / r->etp, cut = rank % r->etp * width,
        first = rank / r->etp % r->ep * (E / r->ep);
    assert_true(n == rows * D && m == rows * width);
    double *want = ARENA_ARRAY(r->a, double, m + 1);
    for (int64_t i = 0; i < rows; i++)
        for (int f = 0; f < width; f++)
            for (int d = 0; d < D; d++)
                want[i * width + f] +=
                    in[i * D + d] * w[((first + (int64_t)local[i]) * FE + cut + f) * D + d];
    if (r->capped && !strcmp(text_of(r->json, "priority"), "slot"))
        by_token(r, rank, want, rows, width);
    same(r, "the experts' gate", have, want, m, 1e-11);
}
static const TraceRouted *routed_of(const Record *r, const PlanRun *run, bool last) {
    const TraceRouted *found = NULL;
    for (int i = 0; i < run->t->n_routed; i++) {
        const TraceRouted *k = &run->t->routed[i];
        bool list = strstr(k->value, r->capped ? ".moe.kept" : ".moe.list") != NULL;
        if (list && (!found || last)) found = k;
    }
    assert_non_null(found);
    return found;
}
/* Rows from rank to rank as the counts say that both exchange. */
static void hold_counts(const Record *r, const PlanRun *run) {
    const double *sent = routed_of(r, run, false)->rows;
    const Json *send = json_get(r->json, "send_rows"), *got = json_get(r->json, "received_rows"),
               *all = json_get(r->json, "tokens_per_expert");
    int local = E / r->ep;
    for (int q = 0; q < r->ranks; q++)
        for (int p = 0; p < r->ep; p++) {
            int peer = (q / (r->ep * r->etp) * r->ep + p) * r->etp + q % r->etp,
                me = q / r->etp % r->ep;
            double to = 0, from = 0;
            for (int e = 0; e < local; e++) {
                to += sent[q * E + p * local + e];
                from += sent[peer * E + me * local + e];
            }
            const char *key = arena_printf(r->a, "%d", q);
            assert_true(to == json_get(send, key)->item[p]->r);
            assert_true(from == json_get(got, key)->item[p]->r);
        }
    for (int e = 0; e < E; e++) {
        double n = 0;
        for (int q = 0; q < r->ranks; q++) n += sent[q * E + e];
        assert_true(n == all->item[e]->r);
    }
}
/* The kinds in their order; counts and rows are two of ours too, a list and what follows it. */
static void hold_collectives(const Record *r, const PlanRun *run, const char *key, Phase pass) {
    const Json *want = json_get(json_get(r->json, key), "0");
    int k = 0;
    for (int i = 0; i < run->t->n_collectives; i++) {
        const TraceCollective *c = &run->t->collectives[i];
        if (c->pass != pass || !strstr(c->value, ".moe.") || strstr(c->value, "grad.param"))
            continue;
        if (k >= want->n) fail_msg("%s: %s of %s is not recorded", r->name, c->op, c->value);
        const char *kind = want->item[k++]->item[0]->s, *counts = strstr(kind, " counts");
        bool list = strstr(c->value, ".moe.list") || strstr(c->value, ".moe.kept");
        size_t n = counts ? (size_t)(counts - kind) : strlen(kind);
        if (strlen(c->op) != n || strncmp(c->op, kind, n) || list != (counts != NULL))
            fail_msg("%s: %s of %s, recorded %s", r->name, c->op, c->value, kind);
        assert_string_equal(c->axis, strncmp(kind, "all_to_all", 10) ? "etp" : "ep");
    }
    if (k != want->n) fail_msg("%s: %d of %d collectives %s", r->name, k, want->n, key);
}
static void hold_record(const Record *r) {
    const char *saved = temp_path(r->a, "records.safetensors");
    PipelineOptions o = {.execute = true, .threads = 1, .save_values = saved, .numbers = true};
    MoeBlock b = block_of(r);
    const char *weight = moe_block_weights(&b, plan_of(r, NULL, NULL)),
               *text = plan_of(r, weight, moe_block_inputs(&b));
    PlanRun run = plan_run_with(r->a, "records.yaml", text, &o);
    bool good = run_is(&run, "equivalent");
    if (!good) printf("%s: %s", r->name, text), run_print(&run);
    assert_true(good);
    SafeTensors *st = golden_tensors(r->a, saved);
    hold_tokens(r, st);
    hold_gradients(r, st);
    hold_choices(r, st);
    if (r->how == EACH_RANK) {
        for (int q = 0; q < r->ranks; q++) hold_experts(r, st, q);
        hold_counts(r, &run);
        hold_collectives(r, &run, "collectives_forward", PHASE_FORWARD);
        hold_collectives(r, &run, "collectives_backward", PHASE_BACKWARD);
    }
    st_close(st);
}
/* Holds each record that the pattern finds, and counts how; returns how many there are. */
static int hold_folder(const char *pattern, int n[3]) {
    glob_t g;
    assert_int_equal(glob(pattern, 0, NULL, &g), 0);
    int all = (int)g.gl_pathc;
    for (int i = 0; i < all; i++) {
        Arena *a = arena_new();
        Record r = open_record(a, g.gl_pathv[i]);
        n[r.how]++;
        if (r.why) printf("%s: %s\n", r.name, r.why);
        if (r.how != NOT_AT_ALL) hold_record(&r);
        st_close(r.st);
        arena_free(a);
    }
    printf("%d of %d records rank by rank, %d as one device, %d not\n", n[EACH_RANK], all,
           n[AS_ONE], n[NOT_AT_ALL]);
    globfree(&g);
    return all;
}
/* The two that lie in tests/golden: rows over two axes with dropped ones; groups of experts, a
 * shared one, a rank without a token. */
static void test_carried(void **state) {
    (void)state;
    int n[3] = {0};
    assert_int_equal(hold_folder("tests/golden/moe/*.json", n), 2);
    assert_int_equal(n[EACH_RANK], 2);
}
static void test_records(void **state) {
    (void)state;
    enum { ALL = 52, EACH = 19, ONE = 24 };
    Arena *a = arena_new();
    if (!golden_has(a, "moe/README.md")) {
        printf("golden/moe is not there: only the two records that are carried were compared\n");
        skip();
    }
    int n[3] = {0};
    const char *beside = golden_path(a, "moe/README.md"); /* tests/golden has no README of moe */
    beside = arena_printf(a, "%.*s/*.json", (int)(strrchr(beside, '/') - beside), beside);
    assert_int_equal(hold_folder(beside, n), ALL);
    assert_int_equal(n[EACH_RANK], EACH);
    assert_int_equal(n[AS_ONE], ONE);
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_carried),
                                       cmocka_unit_test(test_records)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
