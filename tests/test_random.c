/* Random legal plans and mutations (the words are defined in docs/architecture.md, "Testing"): every plan must be equivalent
 * without a complaint, in f64 and with every value of every rank compared; one random mutation of its lowered program must be
 * caught and located. SHARDPROOF_SOAK=N runs N plans instead of the fixed sample. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "exec/pipeline.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- counter-based draws ---- */
typedef struct {
    uint64_t s;
} Rng;
static uint64_t next(Rng *r) {
    uint64_t z = (r->s += 0x9e3779b97f4a7c15u);
    z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9u;
    z = (z ^ (z >> 27)) * 0x94d049bb133111ebu;
    return z ^ (z >> 31);
}
static int below(Rng *r, int n) { return (int)(next(r) % (uint64_t)n); }
static int between(Rng *r, int lo, int hi) { return lo + below(r, hi - lo + 1); }
static bool chance(Rng *r, int percent) { return below(r, 100) < percent; }

/* ---- one plan ---- */
typedef struct {
    Rng r;
    Str s;
    int n_axes, size[3], role[3]; /* role: 0 free, 1 batch, 2 sequence */
    bool zigzag, styled, sp, per_module, backward;
    int B, S, D, K, G, d, F, V;
    bool bias, qk_norm, packed, whole, tied;
} Gen;
static const char *const axis_names[] = {"a", "b", "c"};

static void draw_mesh(Gen *g) {
    do {
        g->n_axes = between(&g->r, 1, 3);
        for (int i = 0; i < g->n_axes; i++) g->size[i] = between(&g->r, 1, 4);
    } while ((g->n_axes > 0 ? g->size[0] : 1) * (g->n_axes > 1 ? g->size[1] : 1) * (g->n_axes > 2 ? g->size[2] : 1) > 16);
    int seq = 1;
    for (int i = 0; i < g->n_axes; i++) {
        int x = below(&g->r, 100);
        g->role[i] = x < 25 ? 1 : x < 45 ? 2 : 0;
        if (g->role[i] == 2) seq *= g->size[i];
    }
    g->zigzag = chance(&g->r, 50) && g->S % (2 * seq) == 0;
    int zz = 0;
    for (int i = 0; i < g->n_axes; i++) zz += g->role[i] == 2;
    if (zz > 1) g->zigzag = false; /* nested zigzag is legal only where every level divides; chunk covers nesting */
}
static void axes_with_role(Gen *g, int role, const char *key) {
    int n = 0;
    for (int i = 0; i < g->n_axes; i++)
        if (g->role[i] == role) str_addf(&g->s, "%s%s", n++ ? "*" : key, axis_names[i]);
    if (n) str_add(&g->s, ", ");
}
static void head(Gen *g) {
    g->B = between(&g->r, 2, 4), g->S = between(&g->r, 6, 16), g->D = between(&g->r, 5, 8), g->K = between(&g->r, 1, 3);
    g->G = between(&g->r, 1, 3), g->d = chance(&g->r, 50) ? 4 : 8, g->F = between(&g->r, 5, 8), g->V = between(&g->r, 7, 13);
    if (chance(&g->r, 35)) g->S = g->D = between(&g->r, 6, 8); /* equal dims: a wrong dim is then possible */
    g->bias = chance(&g->r, 50), g->qk_norm = chance(&g->r, 40), g->packed = chance(&g->r, 25);
    g->whole = chance(&g->r, 35), g->tied = chance(&g->r, 40);
    draw_mesh(g);
    str_addf(&g->s, "model:\n  config: {model_type: llama, hidden_size: %d, num_hidden_layers: 2, num_attention_heads: %d, num_key_value_heads: %d, head_dim: %d, "
             "intermediate_size: %d, vocab_size: %d, rms_norm_eps: 0.00001, rope_theta: 10000.0, hidden_act: silu, attention_bias: %s, mlp_bias: %s, qk_norm: %s, packed_mlp: %s, tie_word_embeddings: %s}\n  layers: %d\n  rope: %s\n",
             g->D, g->K * g->G, g->K, g->d, g->F, g->V, g->bias ? "true" : "false", g->bias ? "true" : "false", g->qk_norm ? "true" : "false", g->packed ? "true" : "false", g->tied ? "true" : "false", 1 + chance(&g->r, 25), chance(&g->r, 50) ? "half" : "interleaved");
    if (g->whole) str_add(&g->s, "  parts: [embedding, blocks, norm, head, loss]\n");
    str_addf(&g->s, "data: {batch: %d, sequence: %d, dtype: %s, seed: %d", g->B, g->S, chance(&g->r, 30) ? "f32" : "f64", below(&g->r, 1000));
    str_add(&g->s, ", cut: {");
    axes_with_role(g, 1, "batch: ");
    axes_with_role(g, 2, "sequence: ");
    str_add(&g->s, "}");
}
static void mesh_text(Gen *g) {
    str_add(&g->s, "mesh: {");
    for (int i = 0; i < g->n_axes; i++) str_addf(&g->s, "%s%s: %d", i ? ", " : "", axis_names[i], g->size[i]);
    str_add(&g->s, "}\nnames: torchtitan\n");
    int seq = 0, tp = 0;
    str_add(&g->s, "groups: {");
    for (int i = 0; i < g->n_axes; i++)
        if (g->role[i] == 2) str_addf(&g->s, "%s%s", seq++ ? "*" : "ctx: \"", axis_names[i]);
    if (seq) str_add(&g->s, "\", ");
    for (int i = 0; g->styled && i < g->n_axes; i++)
        if (g->role[i] == 0) str_add(&g->s, tp++ ? "*" : "tp: \""), str_add(&g->s, axis_names[i]);
    str_addf(&g->s, "%s}\n", tp ? "\"" : "");
    if (seq) str_addf(&g->s, "context_parallel: {mode: all_gather, order: %s, axis: ctx}\n", g->zigzag ? "zigzag" : "contiguous");
    if (g->backward) str_add(&g->s, "pass: backward\n");
    if (g->backward && chance(&g->r, 25)) str_add(&g->s, "recompute: block\n");
    if (g->backward && chance(&g->r, 25)) str_add(&g->s, "save_gathered: false\n");
    int rest = 0;
    for (int i = 0; i < g->n_axes; i++)
        if (chance(&g->r, 30)) str_add(&g->s, rest++ ? "*" : "data_parallel: {mode: fsdp, axis: "), str_add(&g->s, axis_names[i]);
    if (rest) str_addf(&g->s, ", reshard: %s}\n", chance(&g->r, 50) ? "true" : "false");
}
static int free_axes(const Gen *g, int *out) {
    int n = 0;
    for (int i = 0; i < g->n_axes; i++)
        if (g->role[i] == 0) out[n++] = i;
    return n;
}
static void styled_plan(Gen *g) {
    int f[3], n = free_axes(g, f);
    str_add(&g->s, "}\n");
    mesh_text(g);
    if (!n) return;
    if (g->per_module) str_add(&g->s, "boundary: per_module\n");
    str_add(&g->s, "plan:\n");
    if (g->sp)
        str_addf(&g->s, "  layers.*.attention_norm: sequence_parallel\n  layers.*.ffn_norm: sequence_parallel\n"
                 "%s  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n  layers.*.feed_forward.w2: {style: rowwise, output: shard(1)}\n",
                 g->per_module ? "" : "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: [replicate]}\n"
                                      "  layers.*.feed_forward: {style: prepare_module_input, input: [shard(1)], desired_input: [replicate]}\n");
    else str_add(&g->s, "  layers.*.attention.wo: rowwise\n  layers.*.feed_forward.w2: rowwise\n");
    const char *col = g->sp && g->per_module ? "{style: colwise, input: shard(1), desired_input: replicate}" : "colwise";
    str_addf(&g->s, "  layers.*.attention.w[qkv]: %s\n  layers.*.feed_forward.%s: %s\n", col, g->packed ? "w13" : "w[13]", col);
    if (g->qk_norm) str_add(&g->s, "  layers.*.attention.[qk]_norm: replicated_with_grad_allreduce\n");
    if (!g->whole) return;
    if (g->sp) str_add(&g->s, "  tok_embeddings: {style: rowwise, output: shard(1)}\n  norm: sequence_parallel\n  output: {style: colwise, input: shard(1)}\n  loss: loss_parallel\n");
    else str_add(&g->s, "  tok_embeddings: rowwise\n  output: colwise\n  loss: loss_parallel\n");
}
/* A mapping axis -> random letter of the parameter, for about half of the free axes. */
static void wild_param(Gen *g, const char *field, const char *letters) {
    int f[3], n = free_axes(g, f), k = 0;
    char used[8] = {0};
    int nu = 0;
    str_addf(&g->s, ", %s: {", field);
    for (int i = 0; i < n; i++) {
        if (!chance(&g->r, 50)) continue;
        char ch = letters[below(&g->r, (int)strlen(letters))];
        used[nu++] = ch;
        str_addf(&g->s, "%s%s: shard(%c)", k++ ? ", " : "", axis_names[f[i]], ch);
    }
    (void)used;
    str_add(&g->s, "}");
}
/* A random declaration of a module boundary over each free axis. */
static void wild_boundary(Gen *g, bool input) {
    static const char *const cuts[] = {"shard(b)", "shard(t)", "shard(d)"};
    int f[3], n = free_axes(g, f), k = 0;
    str_add(&g->s, "{");
    for (int i = 0; i < n; i++) {
        int x = below(&g->r, 100);
        if (x < 40) continue;
        const char *p = x < 70 ? (input && chance(&g->r, 50) ? "varying_use" : "invariant") : cuts[below(&g->r, 3)];
        str_addf(&g->s, "%s%s: %s", k++ ? ", " : "", axis_names[f[i]], p);
    }
    str_add(&g->s, "}");
}
static void wild_linear(Gen *g, const char *path, const char *w, const char *b, bool bias, bool writer) {
    str_addf(&g->s, "  %s: {style: wild", path);
    wild_param(g, "weight", w);
    if (bias) wild_param(g, "bias", b);
    if (writer) {
        str_add(&g->s, ", output: ");
        wild_boundary(g, false);
    }
    str_add(&g->s, "}\n");
}
static void wild_plan(Gen *g) {
    if (!g->whole) {
        str_add(&g->s, ", block_input: ");
        wild_boundary(g, false);
    }
    str_add(&g->s, "}\n");
    mesh_text(g);
    str_addf(&g->s, "styles:\n  wild: {axis: %s}\nplan:\n", axis_names[0]);
    wild_linear(g, "layers.*.attention_norm", "d", "", false, false);
    wild_linear(g, "layers.*.ffn_norm", "d", "", false, false);
    wild_linear(g, "layers.*.attention.wq", "kgxd", "kgx", g->bias, false);
    wild_linear(g, "layers.*.attention.wk", "kxd", "kx", g->bias, false);
    wild_linear(g, "layers.*.attention.wv", "kxd", "kx", g->bias, false);
    wild_linear(g, "layers.*.attention.wo", "dkgx", "d", g->bias, true);
    if (g->packed) wild_linear(g, "layers.*.feed_forward.w13", "ufd", "uf", g->bias, false);
    for (int i = 1; i <= 3 && !g->packed; i += 2) wild_linear(g, i == 1 ? "layers.*.feed_forward.w1" : "layers.*.feed_forward.w3", "fd", "f", g->bias, false);
    wild_linear(g, "layers.*.feed_forward.w2", "df", "d", g->bias, true);
    if (g->qk_norm) wild_linear(g, "layers.*.attention.[qk]_norm", "x", "", false, false);
    if (g->whole) {
        wild_linear(g, "tok_embeddings", "vd", "", false, true);
        wild_linear(g, "norm", "d", "", false, false);
        if (!g->tied) wild_linear(g, "output", "vd", "", false, false);
    }
    str_add(&g->s, "  layers.*.attention: {style: wild, desired_input: [");
    wild_boundary(g, true);
    str_add(&g->s, "]}\n  layers.*.feed_forward: {style: wild, desired_input: [");
    wild_boundary(g, true);
    str_add(&g->s, "]}\n");
}
static const char *generate(Arena *a, uint64_t seed, Gen *g) {
    memset(g, 0, sizeof *g);
    g->r.s = seed * 0x2545f4914f6cdd1du + 77;
    g->s = str_new(a);
    head(g);
    g->styled = chance(&g->r, 50);
    g->sp = chance(&g->r, 50);
    g->per_module = chance(&g->r, 30);
    g->backward = chance(&g->r, 40);
    if (g->styled) styled_plan(g);
    else wild_plan(g);
    return g->s.s;
}

/* ---- running ---- */
typedef struct {
    Trace *t;
    PipelineReport rep;
    Diags *d;
} Result;
static Result run(Arena *a, const char *text, bool execute, bool no_verify) {
    Result r = {.d = diags_new(a)};
    PipelineOptions o = {.execute = execute, .no_verify = no_verify, .threads = 1, .exact = execute && !no_verify && !strstr(text, "pass: backward") ? 2 : 0};
    r.t = pipeline_run(a, r.d, "random.yaml", text, strlen(text), NULL, 0, &o, &r.rep);
    return r;
}
static bool legal_refusal(const Diags *d) { /* parsing and the construction of layouts may refuse; nothing later may */
    static const char *const codes[] = {"E0303", "E0305", "E0304", "E0308", "E0309"};
    for (int i = 0; i < d->n; i++) {
        if (d->item[i].severity != DIAG_ERROR) continue;
        bool ok = false;
        for (size_t k = 0; k < sizeof codes / sizeof codes[0]; k++) ok |= !strcmp(d->item[i].code, codes[k]);
        if (!ok) return false;
    }
    return true;
}
static int first_failed_step(const Trace *t) {
    int best = -2;
    for (int i = 0; i < t->n_checks; i++)
        if (!strcmp(t->checks[i].verdict, "FAIL") && best == -2) best = t->checks[i].step;
    return best;
}

/* ---- mutations ---- */
enum { M_DROP, M_KIND, M_AXIS, M_DIM, M_OFFSET, M_COUNT };
static const char *const mutation_names[M_COUNT] = {"drop", "kind", "axis", "dim", "offset"};
typedef struct {
    int tried[M_COUNT], caught[M_COUNT], located[M_COUNT], stat_due[M_COUNT], stat_caught[M_COUNT];
    int plans, legal, styled, with_collective, alarms, none_possible, no_site, kinds[8];
} Table;

typedef struct {
    int step;
    const char *op;
    int collective; /* index, or -1: a slice */
} Site;
static int sites(const Trace *t, Site *out, int cap) {
    int n = 0;
    for (int i = 0; i < t->n_collectives && n < cap; i++) out[n++] = (Site){t->collectives[i].step, t->collectives[i].op, i};
    for (int i = 0; i < t->n_moves && n < cap; i++)
        if (!strcmp(t->moves[i].op, "slice")) {
            bool wide = false;
            for (int x = 0; x < t->n_axes; x++) {
                const char *at = strstr(t->moves[i].axes, t->axes[x].name);
                wide |= at && t->axes[x].size > 1;
            }
            if (wide) out[n++] = (Site){t->moves[i].step, "slice", -1};
        }
    return n;
}
/* The fault as plan text, or NULL if this mutation does not exist at this site. */
static const char *fault_text(Arena *a, Rng *r, const Trace *t, const Site *s, int m) {
    bool reduction = !strcmp(s->op, "all_reduce") || !strcmp(s->op, "reduce_scatter");
    const char *head = arena_printf(a, "faults: [{at: \"%d\", ", s->step);
    switch (m) {
    case M_DROP: return strcmp(s->op, "slice") ? arena_printf(a, "%sdo: drop}]\n", head) : NULL;
    case M_KIND:
        if (!reduction) return NULL;
        if (!strcmp(s->op, "reduce_scatter") && chance(r, 40)) return arena_printf(a, "%skind: slice}]\n", head);
        return arena_printf(a, "%skind: %s}]\n", head, chance(r, 50) ? "max" : "avg");
    case M_AXIS: {
        if (s->collective < 0) return NULL;
        const char *axes = t->collectives[s->collective].axes;
        int own = -1, cand[3], n = 0;
        for (int x = 0; x < t->n_axes; x++)
            if (!strcmp(t->axes[x].name, axes)) own = x;
        for (int x = 0; own >= 0 && x < t->n_axes; x++)
            if (x != own && t->axes[x].size == t->axes[own].size) cand[n++] = x;
        return n ? arena_printf(a, "%saxis: \"%s\"}]\n", head, t->axes[cand[below(r, n)]].name) : NULL;
    }
    case M_OFFSET:
        if (!strcmp(s->op, "all_reduce")) return NULL;
        return arena_printf(a, "%soffset: 1}]\n", head);
    case M_DIM: {
        if (s->collective < 0 || !strcmp(s->op, "all_reduce") || !strcmp(s->op, "all_to_all")) return NULL;
        for (int i = 0; i < t->n_values; i++) {
            const TraceShape *v = &t->values[i].shape;
            int d = t->collectives[s->collective].dim;
            if (t->values[i].step != s->step || v->nd != 3 || d < 1 || strcmp(v->dim_symbol[2], "D") || v->global_shape[1] != v->global_shape[2]) continue;
            return arena_printf(a, "%sdim: %d}]\n", head, 3 - d);
        }
        return NULL;
    }
    default: return NULL;
    }
}
static bool any_warning(const Diags *d) {
    for (int i = 0; i < d->n; i++)
        if (!strcmp(d->item[i].code, "W0401")) return true;
    return false;
}
static bool mutate(Arena *a, Gen *g, const char *plan, const Trace *t, Table *tab, uint64_t seed) {
    Site site[256];
    int n = sites(t, site, 256);
    if (!n) {
        tab->no_site++;
        return true;
    }
    for (int tries = 0; tries < 20; tries++) {
        const Site *s = &site[below(&g->r, n)];
        int m = below(&g->r, M_COUNT);
        const char *f = fault_text(a, &g->r, t, s, m);
        if (!f) continue;
        const char *text = arena_printf(a, "%s%s", plan, f);
        Result r = run(a, text, true, true);
        if (r.t && !r.rep.fault_acted && first_failed_step(r.t) < 0) continue; /* no bit changed: redraw */
        tab->tried[m]++;
        bool caught = r.t && r.t->n_fail > 0, located = caught && first_failed_step(r.t) == s->step;
        tab->caught[m] += caught;
        tab->located[m] += located;
        if (m == M_DROP || m == M_KIND || m == M_AXIS) {
            Result v = run(a, text, false, false);
            tab->stat_due[m]++;
            tab->stat_caught[m] += any_warning(v.d);
        }
        if (!caught || !located) {
            printf("seed %llu: %s at step %d (%s) %s\n%s\n", (unsigned long long)seed, mutation_names[m], s->step, s->op, caught ? "caught elsewhere" : "NOT CAUGHT", text);
            if (r.d->n) diags_print(r.d, stdout, false);
        }
        return caught && located;
    }
    tab->none_possible++;
    return true;
}
static void one_plan(uint64_t seed, Table *tab, int *bad) {
    Arena *a = arena_new();
    Gen g;
    const char *plan = generate(a, seed, &g);
    Result r = run(a, plan, true, false);
    tab->plans++;
    if (!r.t && legal_refusal(r.d)) {
        arena_free(a);
        return;
    }
    tab->legal++;
    tab->styled += g.styled;
    bool ok = r.t && r.t->verdict && !strcmp(r.t->verdict, "equivalent") && !diags_errors(r.d) && r.t->n_suspect == 0;
    if (!ok) {
        tab->alarms++;
        if (++*bad <= 5) {
            printf("seed %llu: FALSE ALARM\n%s", (unsigned long long)seed, plan);
            diags_print(r.d, stdout, false);
        }
    } else {
        tab->with_collective += r.t->n_collectives > 0;
        if (!mutate(a, &g, plan, r.t, tab, seed)) ++*bad;
    }
    arena_free(a);
}
static void print_table(const Table *t) {
    printf("plans %d, legal %d, styled %d, wild %d, with a collective %d, false alarms %d\n", t->plans, t->legal, t->styled, t->legal - t->styled, t->with_collective, t->alarms);
    printf("no site for a mutation %d, none possible %d\n", t->no_site, t->none_possible);
    printf("%-8s %8s %8s %8s %18s\n", "mutation", "planted", "caught", "located", "caught by verify");
    for (int m = 0; m < M_COUNT; m++)
        printf("%-8s %8d %8d %8d %12d of %d\n", mutation_names[m], t->tried[m], t->caught[m], t->located[m], t->stat_caught[m], t->stat_due[m]);
}
static void test_random_plans(void **state) {
    (void)state;
    const char *soak = getenv("SHARDPROOF_SOAK"), *from = getenv("SHARDPROOF_SEED");
    int want = soak ? atoi(soak) : 1000, bad = 0;
    Table tab = {0};
    for (uint64_t seed = from ? strtoull(from, NULL, 10) : 1; tab.legal < want && tab.plans < 8 * want; seed++) one_plan(seed, &tab, &bad);
    print_table(&tab);
    assert_int_equal(tab.alarms, 0);
    assert_int_equal(bad, 0);
    assert_true(tab.legal >= want);
    for (int m = 0; m < M_COUNT; m++) assert_int_equal(tab.stat_caught[m], tab.stat_due[m]);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_random_plans)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
