/* Test vectors worked out outside of this program: the chunk rule, cuts of one dim by two
 * axes in FSDP's order, packed blocks, zigzag and striped ownership with the work it gives each
 * step of a ring, the shapes of Llama-3-8B on two devices, and the column/row figures. (Rope bands,
 * parameter totals: test_model.) */
#include "support/support.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What rank `rank` holds of a dim of N, as text "0,1,5". */
static const char *owned(Arena *a, const Mesh *m, const Layout *l, int64_t N, int64_t rank) {
    IndexList i = layout_index(m, l, 0, N, rank, a);
    assert_int_equal(i.n, layout_dim_size(m, l, 0, N, rank));
    Str s = str_new(a);
    for (int64_t k = 0; k < i.n; k++) str_addf(&s, "%s%lld", k ? "," : "", (long long)i.at[k]);
    return s.n ? s.s : "-";
}
static Mesh mesh_of(int n, int64_t x, int64_t y) {
    Mesh m = {.naxes = n, .axis = {{.name = "x", .size = x}, {.name = "y", .size = y}}};
    assert_true(mesh_finish(&m));
    return m;
}

/* ---- 1.2: torch.chunk ---- */
static void test_chunks(void **state) {
    (void)state;
    static const struct {
        int64_t N, n, size[8];
    } cases[] = {
        {5, 4, {2, 2, 1, 0}},  {9, 4, {3, 3, 3, 0}},
        {6, 4, {2, 2, 2, 0}},  {3, 8, {1, 1, 1, 0, 0, 0, 0, 0}},
        {10, 4, {3, 3, 3, 1}}, {0, 2, {0, 0}},
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Mesh m = mesh_of(1, cases[i].n, 1);
        Layout l = layout_whole(&m, 1, TY_I);
        layout_cut(&l, 0, 0, CUT_CHUNK);
        int64_t at = 0;
        for (int64_t r = 0; r < cases[i].n; r++) {
            IndexList own = layout_index(&m, &l, 0, cases[i].N, r, a);
            assert_int_equal(own.n, cases[i].size[r]);
            for (int64_t k = 0; k < own.n; k++) assert_int_equal(own.at[k], at++);
        }
        assert_int_equal(at, cases[i].N);
    }
    arena_free(a);
}
/* ---- 1.3: strided pieces, and FSDP on top of TP ---- */
static void test_strided(void **state) {
    (void)state;
    static const struct {
        int64_t N, f, n;
        const char *own[4];
    } pieces[] = {
        {9, 2, 4, {"0,1,5", "2,3,6", "4,7", "8"}},
        {8, 2, 2, {"0,1,4,5", "2,3,6,7"}},      /* [G0..3|U0..3] packed */
        {10, 2, 2, {"0,1,2,5,6,7", "3,4,8,9"}}, /* F = 5: uneven */
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof pieces / sizeof *pieces; i++) {
        Mesh m = mesh_of(2, pieces[i].f, pieces[i].n);
        Layout l = layout_whole(&m, 1, TY_I);
        l.e[0][0] =
            (Entry){.axis = 0, .ghost = 1}; /* cut into f, of which everybody holds all: a ghost */
        l.n[0] = 1;
        layout_cut(&l, 0, 1, CUT_CHUNK);
        for (int64_t r = 0; r < pieces[i].n; r++)
            assert_string_equal(owned(a, &m, &l, pieces[i].N, r), pieces[i].own[r]);
    }
    Mesh m = mesh_of(2, 2, 2); /* dp, tp; ranks (0,0) (0,1) (1,0) (1,1) */
    static const char *const plain[] = {"0,1", "2,3", "4,5", "6,7"}, *const fsdp[] = {"0,1", "4,5",
                                                                                      "2,3", "6,7"};
    Layout p = layout_whole(&m, 1, TY_I), f = p;
    layout_cut(&p, 0, 0, CUT_CHUNK), layout_cut(&p, 0, 1, CUT_CHUNK);
    layout_cut(&f, 0, 1, CUT_CHUNK), layout_cut(&f, 0, 0, CUT_CHUNK);
    for (int64_t r = 0; r < 4; r++) {
        assert_string_equal(owned(a, &m, &p, 8, r), plain[r]);
        assert_string_equal(owned(a, &m, &f, 8, r), fsdp[r]);
    }
    arena_free(a);
}
/* ---- 2.9: D=1, F=4, G=1..4, U=10..40, down = ones, x=1 on two ranks: what the wrong index map
 * does to the number ----
 */
static double packed_sum(Arena *a, const Mesh *m, const Layout *l) {
    static const double W[] = {1, 2, 3, 4, 10, 20, 30, 40};
    double sum = 0;
    for (int64_t r = 0; r < 2; r++) {
        IndexList own = layout_index(m, l, 0, 8, r, a);
        const int64_t *i = own.at, n = own.n;
        for (int64_t k = 0; k < n / 2; k++)
            sum += W[i[k]] / (1 + exp(-W[i[k]])) * W[i[n / 2 + k]]; /* the local halves */
    }
    return sum;
}
static void test_packed(void **state) {
    (void)state;
    Arena *a = arena_new();
    Mesh m = mesh_of(2, 2, 2);
    Layout plain = layout_whole(&m, 1, TY_I), packed = plain;
    layout_cut(&plain, 0, 1, CUT_CHUNK);
    packed.e[0][0] = (Entry){.axis = 0, .ghost = 1};
    packed.n[0] = 1;
    layout_cut(&packed, 0, 1, CUT_CHUNK);
    assert_true(fabs(packed_sum(a, &m, &packed) - 285.3963467254997) < 1e-12 * 285);
    assert_true(fabs(packed_sum(a, &m, &plain) - 1109.2259313501793) < 1e-12 * 1109);
    arena_free(a);
}

/* ---- 6.3: who has which tokens, and the causal work of each ring step (key-query pairs) ---- */
static void test_orders(void **state) {
    (void)state;
    static const struct {
        CutHow how;
        const char *own[4];
        int work[4][4]; /* [rank][step]; step j: keys of rank (r - j) mod n */
    } orders[] = {
        {CUT_ZIGZAG,
         {"0,1,14,15", "2,3,12,13", "4,5,10,11", "6,7,8,9"},
         {{10, 8, 8, 8}, {10, 8, 8, 8}, {10, 8, 8, 8}, {10, 8, 8, 8}}},
        {CUT_STRIPED,
         {"0,4,8,12", "1,5,9,13", "2,6,10,14", "3,7,11,15"},
         {{10, 6, 6, 6}, {10, 10, 6, 6}, {10, 10, 10, 6}, {10, 10, 10, 10}}},
        {CUT_CHUNK,
         {"0,1,2,3", "4,5,6,7", "8,9,10,11", "12,13,14,15"},
         {{10, 0, 0, 0}, {10, 16, 0, 0}, {10, 16, 16, 0}, {10, 16, 16, 16}}},
    };
    Arena *a = arena_new();
    Mesh m = mesh_of(1, 4, 1);
    for (size_t i = 0; i < sizeof orders / sizeof *orders; i++) {
        Layout l = layout_whole(&m, 1, TY_I);
        layout_cut(&l, 0, 0, orders[i].how);
        for (int64_t r = 0; r < 4; r++) {
            assert_string_equal(owned(a, &m, &l, 16, r), orders[i].own[r]);
            for (int64_t j = 0; j < 4; j++) {
                int work = 0;
                IndexList q = layout_index(&m, &l, 0, 16, r, a),
                          k = layout_index(&m, &l, 0, 16, (r - j + 4) % 4, a);
                for (int64_t x = 0; x < q.n; x++)
                    for (int64_t y = 0; y < k.n; y++) work += k.at[y] <= q.at[x];
                assert_int_equal(work, orders[i].work[r][j]);
            }
        }
    }
    arena_free(a);
}
/* The same ownership through a plan: what the ranks of a run hold of the input, element by element.
 */
static void test_zigzag_run(void **state) {
    (void)state;
    Arena *a = arena_new();
    double x[2 * 16 * 8];
    for (int i = 0; i < 2 * 16 * 8; i++)
        x[i] = i % 8 == 3 ? i / 8 % 16 : sin(i + 1.0); /* dim 3 of a token is its position */
    NewTensor in = {.name = "layers.0.input", .nd = 3, .shape = {2, 16, 8}, .x = x};
    const char *saved = temp_path(a, "zigzag.safetensors");
    const char *text = arena_printf(
        a,
        "model: {config: {hidden_size: 8, num_attention_heads: 2, num_key_value_heads: 1, "
        "intermediate_size: 6, vocab_size: 9, num_hidden_layers: 1}}\n"
        "data: {dtype: f64, inputs: %s}\nmesh: {cp: 4}\ncontext_parallel: {order: zigzag}\n",
        write_tensors(a, "zigzag.in.safetensors", &in, 1));
    PlanRun r =
        plan_run_with(a, "vectors.yaml", text,
                      &(PipelineOptions){.execute = true, .threads = 1, .save_values = saved});
    if (!r.t || diags_errors(r.d)) run_print(&r);
    run_must_be(&r, "equivalent");
    static const int own[4][4] = {{0, 1, 14, 15}, {2, 3, 12, 13}, {4, 5, 10, 11}, {6, 7, 8, 9}};
    SafeTensors *st = golden_tensors(a, saved);
    for (int q = 0; q < 4; q++) {
        int64_t n;
        const double *y = tensor_numbers(a, st, arena_printf(a, "rank%d/layers.0.input", q), &n);
        assert_int_equal(n, 2 * 4 * 8);
        for (int b = 0; b < 2; b++)
            for (int t = 0; t < 4; t++) {
                assert_true(y[(b * 4 + t) * 8 + 3] == own[q][t]);
                assert_memory_equal(&y[(b * 4 + t) * 8], &x[(b * 16 + own[q][t]) * 8],
                                    8 * sizeof(double));
            }
    }
    st_close(st);
    arena_free(a);
}

/* ---- 3.1 and seed 3: Llama-3-8B on two devices, at full size, without tensor data ---- */
static const char *read_plan(Arena *a, const char *path) {
    FILE *f = fopen(path, "r");
    if (!f) fail_msg("%s is missing (run the tests from the repository root)", path);
    char *text = arena_alloc(a, 1 << 16);
    size_t n = fread(text, 1, (1 << 16) - 1, f);
    assert_true(n > 0);
    fclose(f);
    return text;
}
typedef struct {
    const char *name, *local, *symbolic;
} Want;
static void hold(Arena *a, const Trace *t, const Want *w, int n) {
    for (int i = 0; i < n; i++) {
        size_t len = strlen(w[i].name);
        bool param = len > 7 && !strcmp(w[i].name + len - 7, ".weight");
        const TraceShape *s =
            param ? &find_param(t, w[i].name)->compute : find_value(t, w[i].name, false);
        if (w[i].symbolic && strcmp(s->symbolic, w[i].symbolic))
            fail_msg("%s is %s", w[i].name, s->symbolic);
        for (int64_t q = 0; q < t->ranks; q++)
            if (strcmp(local_text(a, s, q), w[i].local))
                fail_msg("%s on rank %lld is %s, not %s", w[i].name, (long long)q,
                         local_text(a, s, q), w[i].local);
    }
}
static void test_llama_tp2(void **state) {
    (void)state;
    static const Want want[] = {
        {"blk.0.attn_q.weight", "[2048, 4096]", "[H*d/tp, D]"},
        {"blk.0.attn_k.weight", "[512, 4096]", "[K*d/tp, D]"},
        {"blk.0.attn_v.weight", "[512, 4096]", "[K*d/tp, D]"},
        {"blk.0.attn_output.weight", "[4096, 2048]", "[D, H*d/tp]"},
        {"blk.0.ffn_gate.weight", "[7168, 4096]", "[F/tp, D]"},
        {"blk.0.ffn_up.weight", "[7168, 4096]", "[F/tp, D]"},
        {"blk.0.ffn_down.weight", "[4096, 7168]", "[D, F/tp]"},
        {"layers.0.q_rope", "[1, 64, 16, 128]", "[B, S, H/tp, d]"},
        {"layers.0.k_rope", "[1, 64, 4, 128]", "[B, S, K/tp, d]"},
        {"layers.0.mlp.act", "[1, 64, 7168]", "[B, S, F/tp]"},
        {"layers.0.output", "[1, 64, 4096]", "[B, S, D]"},
    };
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    PipelineReport rep;
    const char *text = read_plan(a, "plans/03-llama3-8b-tp2.yaml");
    PlanSet set = {"model.shrink", "1"};
    Trace *t =
        pipeline_run(a, d, (PlanText){"plans/03-llama3-8b-tp2.yaml", text, strlen(text), &set, 1},
                     &(PipelineOptions){.threads = 1}, &rep);
    if (!t) diags_print(d, stderr, false);
    assert_non_null(t);
    hold(a, t, want, sizeof want / sizeof *want);
    assert_int_equal(count_collectives(t, "forward", "all_reduce", "tp"), 2);
    assert_int_equal(t->n_collectives, 2);
    /* each all-reduce of [1, 64, 4096] in f32 sends 2 (n-1)/n of 1 MiB */
    for (int i = 0; i < 2; i++)
        assert_true(t->collectives[i].bytes_in == 1 << 20 &&
                    t->collectives[i].bytes_sent == 1 << 20);
    assert_int_equal(find_param(t, "blk.0.ffn_down.weight")->bytes, (int64_t)4096 * 7168 * 4);
    arena_free(a);
}
/* ---- seed 1, Fig. 4 and 5 ---- */
static void test_figures(void **state) {
    (void)state;
    static const Want want[] = {
        {"input", "[10, 512]", "[B, I]"}, {"up.weight", "[512, 512]", "[F/tp, I]"},
        {"up", "[10, 512]", "[B, F/tp]"}, {"down.weight", "[2048, 512]", "[O, F/tp]"},
        {"down", "[10, 2048]", "[B, O]"},
    };
    Arena *a = arena_new();
    const char *text = read_plan(a, "plans/01-column-row-mlp.yaml");
    PlanRun r = plan_run(a, "plans/01-column-row-mlp.yaml", text, false);
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    hold(a, r.t, want, sizeof want / sizeof *want);
    assert_string_equal(find_value(r.t, "down", false)->pending,
                        "tp"); /* y [10, 2048] P, before the all-reduce */
    assert_null(find_value(r.t, "down", true)->pending);
    assert_string_equal(local_text(a, find_value(r.t, "down", true), 3), "[10, 2048]");
    assert_int_equal(r.t->n_collectives, 1);
    const TraceCollective *c = find_collective(r.t, "all_reduce", "down");
    assert_true(c->bytes_in == 10 * 2048 * 4 &&
                c->bytes_sent == 2 * 3 * 10 * 512 * 4); /* 2 (n-1)/n */
    arena_free(a);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_chunks),     cmocka_unit_test(test_strided),
        cmocka_unit_test(test_packed),     cmocka_unit_test(test_orders),
        cmocka_unit_test(test_zigzag_run), cmocka_unit_test(test_llama_tp2),
        cmocka_unit_test(test_figures),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
