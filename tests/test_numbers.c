/* Numbers that stand for all ranks: bytes by padded rows, unequal groups, what a planted mistake
 * does to the log. What is right is worked out here from sizes, not taken from the program. */
#include "support/support.h"
#include "trace/trace_parts.h"
#include "trace/trace_times.h"
#include "exec/traffic.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>
#include "exec/volume.h"

#define BLOCK(mesh, more)                                                                          \
    "model: {preset: llama3-8b, layers: 1, shrink: 32}\n"                                          \
    "data: {batch: 3, sequence: 8, dtype: f32, seed: 0}\nmesh: " mesh "\nnames: torchtitan\n" more
#define TP                                                                                         \
    "plan:\n  layers.*.attention.w[qkv]: colwise\n  layers.*.attention.wo: rowwise\n"              \
    "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n"

static int64_t ceil_div(int64_t a, int64_t b) { return (a + b - 1) / b; }

/* ---- FSDP moves whole rows, padded to the largest block ---- */
static void check_rows(const TraceCollective *c, int64_t rows, int64_t row_bytes, int64_t n) {
    int64_t block = ceil_div(rows, n) * row_bytes;
    bool gather = !strcmp(c->op, "all_gather");
    assert_int_equal(c->bytes_in, gather ? block : n * block);
    assert_int_equal(c->bytes_out, gather ? n * block : block);
    assert_int_equal(c->bytes_sent, (n - 1) * block);
}
static void test_fsdp_rows(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t n, tp;
    } cases[] = {
        {BLOCK("{dp: 3}", "pass: backward\ndata_parallel: {mode: fsdp}\n"), 3, 1},
        {BLOCK("{dp: 3, tp: 2}", "pass: backward\ndata_parallel: {mode: fsdp}\n" TP), 3, 2},
        {BLOCK("{dp: 7}", "pass: backward\ndata_parallel: {mode: fsdp}\n"), 7, 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a, cases[i].text, true);
        int seen = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            const char *name = !strncmp(c->value, "grad.param.", 11) ? c->value + 11 : c->value;
            const TraceParam *p = trace_param(r.t, name);
            if (!p || strcmp(c->axes, "dp") || !strcmp(c->op, "all_reduce")) continue;
            /* the rows of the tensor-parallel block, of which each data rank holds ceil(rows / n)
             * at most */
            const int64_t *local = p->compute.local[0].shape;
            check_rows(c, local[0], 4 * (p->compute.nd > 1 ? local[1] : 1), cases[i].n);
            /* what ranks hold at rest are whole rows that add up to those of the tensor-parallel
             * block */
            int64_t rows = 0;
            for (int64_t q = 0; q < cases[i].n; q++)
                for (int l = 0; l < p->rest.n_local; l++)
                    if (rankset_has(&p->rest.local[l].ranks, q * cases[i].tp))
                        rows += p->rest.local[l].shape[0];
            assert_int_equal(rows, local[0]);
            assert_int_equal(p->bytes, c->op[0] == 'a' ? c->bytes_in : c->bytes_out);
            seen++;
        }
        assert_int_equal(
            seen,
            26); /* 9 parameters gathered, 8 again for the backward pass, 9 gradients scattered */
        /* the shape that a review named: 256 rows of 128 on 3 ranks are 86 rows each */
        if (i == 0) {
            const TraceCollective *c =
                find_collective(r.t, "all_gather", "layers.0.attention.wq.weight");
            assert_true(c->bytes_in == 44032 && c->bytes_sent == 88064);
        }
        arena_free(a);
    }
}
/* Packed gate and up with an uneven F: ranks of tp hold 6, 6, 6 and 2 rows; 6 divides by 3 and 2
 * does not. */
static void test_rows_of_short_ranks(void **state) {
    (void)state;
    Arena *a = arena_new();
    Mesh m = {.naxes = 2, .axis = {{.name = "dp", .size = 3}, {.name = "tp", .size = 4}}};
    assert_true(mesh_finish(&m));
    GTensor t = {.nd = 3, .size = {2, 10, 8}, .letter = "2fd", .nstored = 2, .stored = {2, 1}};
    Layout l = layout_whole(&m, 3, TY_I);
    layout_cut(&l, 1, 1, CUT_CHUNK);
    layout_cut(&l, 3, 0, CUT_CHUNK);
    AxisList uneven = {0};
    classes_uneven(&m, &t, &l, &uneven);
    assert_int_equal(uneven.n, 2);
    AxisParts p = classes_of_value(a, &m, &t, &l);
    bool has[3] = {false};
    /* the rows of every class's first rank, 2 f cut by dp */
    for (int64_t i = 0; i < classes_count(&p); i++) {
        int64_t rank = classes_rank(&m, &p, i), f = layout_dim_size(&m, &l, 1, 10, rank);
        has[layout_dim_size(&m, &l, 3, 2 * f, rank)] = true;
    }
    assert_true(has[0] && has[1] && has[2]); /* 6 rows are 2, 2, 2; 2 rows are 1, 1, 0 */
    arena_free(a);
}

/* ---- groups of unequal size: one record, bytes per class of ranks ---- */
static void test_unequal_groups(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(a, BLOCK("{dp: 2, tp: 2}", "pass: backward\n" TP), true);
    int unequal = 0;
    for (int i = 0; i < r.t->n_collectives; i++) {
        const TraceCollective *c = &r.t->collectives[i];
        if (strcmp(c->axes, "tp")) {
            assert_int_equal(c->n_local, 0);
            continue;
        }
        unequal++;
        /* 3 rows of the batch: 2 on dp 0, 1 on dp 1; 8 tokens of 128 f32 */
        for (int64_t rank = 0; rank < 4; rank++) {
            int64_t bytes = (rank < 2 ? 2 : 1) * 8 * 128 * 4;
            TraceTraffic b = collective_on(c, rank);
            assert_true(b.bytes_in == bytes && b.bytes_out == bytes && b.bytes_sent == bytes);
        }
        assert_int_equal(c->bytes_sent, 2 * 8 * 128 * 4); /* the record's own: the largest */
    }
    assert_int_equal(unequal, 4);
    /* the same after the file */
    size_t n;
    Diags *d = diags_new(a);
    const char *text = trace_text(r.t, a, true, &n);
    const Trace *again = trace_read(a, d, "t.jsonl", text, n);
    assert_non_null(again);
    assert_string_equal(trace_text(again, a, true, &n), text);
    RankSet *part;
    assert_int_equal(trace_parts(again, a, &part), 2);
    assert_string_equal(rankset_text(&part[1], a), "2,3");
    arena_free(a);
}
/* An all-to-all whose pieces differ: contiguous to zigzag, each rank keeps another share of what it
 * has. */
static void test_unequal_pieces(void **state) {
    (void)state;
    Mesh m = {.naxes = 1, .axis = {{.name = "cp", .size = 4}}};
    assert_true(mesh_finish(&m));
    Layout f = layout_whole(&m, 1, TY_I), t = f;
    layout_cut(&f, 0, 0, CUT_CHUNK);
    layout_cut(&t, 0, 0, CUT_ZIGZAG);
    Move v = {.from = f, .to = t, .kind = MOVE_ALL_TO_ALL, .axes = {.n = 1, .a = {0}}};
    GTensor z = {.nd = 1, .size = {16}, .nstored = 1, .stored = {1}};
    Act act = act_declared(&v);
    Pieces x = pieces_of_move(&m, &z, &v, &act);
    assert_false(volume_even(&x));
    /* rank r holds the eighths 2r and 2r + 1, two elements each, and wants r and 7 - r */
    for (int64_t q = 0; q < 4; q++) {
        int64_t keeps = 0;
        for (int64_t e = 2 * q; e < 2 * q + 2; e++) keeps += e == q || e == 7 - q;
        assert_int_equal(volume_of(&x, q).sent, 4 - 2 * keeps);
    }
}

/* ---- what a planted mistake does stands in the log ---- */
static const TraceCollective *planted(Arena *a, const char *fault, PlanRun *r) {
    const char *text = arena_printf(
        a,
        BLOCK("{dp: 2, tp: 3}",
              "pass: backward\nplan:\n"
              "  layers.*.feed_forward.w[13]: colwise\n  layers.*.feed_forward.w2: rowwise\n"
              "faults: [{at: layers.0.mlp.down, %s}]\n"),
        fault);
    *r = plan_run(a, "plan.yaml", text, false);
    if (!r->t) run_print(r);
    assert_non_null(r->t);
    for (int i = 0; i < r->t->n_collectives; i++)
        if (r->t->collectives[i].planted) return &r->t->collectives[i];
    fail_msg("nothing is planted: %s", fault);
    return NULL;
}
static void test_planted(void **state) {
    (void)state;
    static const struct {
        const char *fault, *reduce, *axes;
        int times;
        bool skipped;
    } cases[] = {
        {"kind: max", "max", "tp", 0, false},  {"kind: avg", "avg", "tp", 0, false},
        {"do: double", "sum", "tp", 2, false}, {"do: drop", "sum", "tp", 0, true},
        {"axis: dp", "sum", "dp", 0, false},   {"kind: slice", "sum", "tp", 0, true},
        {"scale: 2", "sum", "tp", 0, false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        Arena *a = arena_new();
        PlanRun r;
        const TraceCollective *c = planted(a, cases[i].fault, &r);
        assert_string_equal(c->reduce, cases[i].reduce);
        assert_string_equal(c->axes, cases[i].axes);
        assert_int_equal(c->times, cases[i].times);
        assert_int_equal(c->skipped, cases[i].skipped);
        assert_string_equal(c->declared, "all_reduce(tp), sum");
        bool dp = !strcmp(cases[i].axes, "dp");
        assert_int_equal(groups_size(&c->groups), dp ? 2 : 3);
        assert_int_equal(groups_member(&c->groups, 0, 1), dp ? 3 : 1);
        int64_t all = 2 * 8 * 128, n = dp ? 2 : 3,
                once = 2 * (n - 1) * ceil_div(all, n) * 4; /* elements of dp 0 */
        assert_int_equal(c->bytes_sent, cases[i].skipped ? 0 : (cases[i].times ? 2 : 1) * once);
        arena_free(a);
    }
}

/* ---- units of FSDP and HSDP ---- */
#define MODEL2                                                                                     \
    "model: {preset: llama3-8b, layers: 2, shrink: 32, parts: [embedding, blocks, norm, head, "    \
    "loss]}\nnames: torchtitan\npass: backward\n"
#define HSDP(order)                                                                                \
    "data: {batch: 8, sequence: 8, dtype: f32, cut: {batch: rep*sh}}\ndata_parallel: {mode: "      \
    "hsdp, replicate: rep, shard: sh, unit: block" order "}\n"
#define TP_FIRST ", grad_order: tp_first"
/* PyTorch's records 04_hsdp2x2 and 04_hsdp2x2_tp2_sp_loss_parallel: 3 reduce-scatters and 3
 * all-reduces of what they leave, one for each block and one for the root; the 5 norms' sums over
 * tp stand by themselves, before or after (test_torch compares the bytes of both records). */
static void test_hsdp_units(void **state) {
    (void)state;
    static const char *const plans[] = {
        MODEL2 "mesh: {rep: 2, sh: 3}\n" HSDP(""),
        MODEL2 "mesh: {rep: 2, sh: 2, tp: 2}\n" HSDP("") "recipe: torchtitan-llama3\n",
        MODEL2 "mesh: {rep: 2, sh: 3}\n" HSDP(TP_FIRST),
        MODEL2 "mesh: {rep: 2, sh: 2, tp: 2}\n" HSDP(TP_FIRST) "recipe: torchtitan-llama3\n"};
    for (int k = 0; k < 4; k++) {
        int i = k % 2;
        Arena *a = arena_new();
        PlanRun r =
            plan_good(a, arena_printf(a, plans[i], k < 2 ? "" : ", grad_order: tp_first"), true);
        assert_int_equal(count_collectives(r.t, "gradients", "reduce_scatter", NULL), 3);
        assert_int_equal(count_collectives(r.t, "gradients", "all_reduce", "rep"), 3);
        assert_int_equal(count_collectives(r.t, "gradients", "all_reduce", NULL), i ? 8 : 3);
        const TraceCollective *scatter = NULL;
        for (int n = 0; n < r.t->n_collectives; n++) {
            const TraceCollective *c = &r.t->collectives[n];
            if (!strcmp(c->op, "reduce_scatter") && c->pass == PHASE_GRADIENTS) scatter = c;
            if (strcmp(c->axes, "rep") || strcmp(c->op, "all_reduce") || c->pass != PHASE_GRADIENTS)
                continue;
            assert_true(scatter && c->bytes_in == scatter->bytes_out &&
                        c->n_with == scatter->n_with);
        }
        arena_free(a);
    }
}
/* A unit's gradients are reduced after its last one: nothing is sent that is not yet there. */
static void test_units_wait(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(a,
                          MODEL2 "mesh: {dp: 2}\ndata: {batch: 3, sequence: 8, dtype: "
                                 "f32}\ndata_parallel: {mode: fsdp, unit: block}\n",
                          true);
    int seen = 0;
    for (int k = 0; k < r.t->n_collectives; k++) {
        const TraceCollective *c = &r.t->collectives[k];
        if (strcmp(c->op, "reduce_scatter")) continue;
        seen++;
        for (int i = 0; i < r.t->n_computes; i++) {
            const TraceCompute *x = &r.t->computes[i];
            bool own = !strncmp(x->output, "grad.param.", 11) && trace_param(r.t, x->output + 11);
            if (own && c->layer >= 0) own = trace_param(r.t, x->output + 11)->layer == c->layer;
            if (own) assert_true(c->layer < 0 || x->step < c->step);
        }
    }
    assert_int_equal(seen, 3);
    arena_free(a);
}
/* fully_shard gathers a unit in one collective, in the backward pass too: with the biases and the
 * embedding that no gradient reads. Seen in PyTorch 2.15 on 3 and 4 ranks with
 * reshard_after_forward=True for layers and root: the same numbers of elements both times. */
static void test_units_gather_all_again(void **state) {
    (void)state;
    static const char *const plans[] = {
        "model: {config: {model_type: llama, hidden_size: 16, num_attention_heads: 4, "
        "num_key_value_heads: 2, head_dim: 4, intermediate_size: 14, vocab_size: 10, "
        "num_hidden_layers: 2, attention_bias: true, mlp_bias: true}, layers: 2, parts: "
        "[embedding, "
        "blocks, norm, head, loss]}\nnames: torchtitan\npass: backward\nmesh: {dp: 4}\n"
        "data: {batch: 4, sequence: 6, dtype: f64}\ndata_parallel: {mode: fsdp, unit: block}\n",
        MODEL2 "mesh: {rep: 2, sh: 2, tp: 2}\n" HSDP("") "recipe: torchtitan-llama3\n"};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a, plans[i], true);
        int64_t in[2][3] = {0}; /* forward, backward: root, layers */
        int with[2][3] = {0}, n = 0;
        for (int k = 0; k < r.t->n_collectives; k++) {
            const TraceCollective *c = &r.t->collectives[k];
            if (c->pass != PHASE_PARAMETERS || strcmp(c->op, "all_gather")) continue;
            in[n / 3][c->layer + 1] = c->bytes_in, with[n / 3][c->layer + 1] = c->n_with;
            /* Backward the whole unit is gathered where its first parameter is asked for. */
            for (int j = 0; n > 2 && j < c->n_with; j++)
                assert_int_equal(c->with[j], c->step + 1 + j);
            n++;
        }
        assert_int_equal(n, 6);
        for (int u = 0; u < 3; u++) {
            assert_true(in[0][u] == in[1][u] && with[0][u] == with[1][u]);
            assert_int_equal(with[0][u], u ? i ? 8 : 15 : 2);
        }
        if (!i) { /* rows of 3, 3, 3 and 1 of 10, padded: (3*16 + 3*16 + 4) numbers of 8 bytes */
            assert_int_equal(in[0][0], 800);
            assert_int_equal(in[0][1], 3264);
        }
        arena_free(a);
    }
}
static int64_t gathered_peak(const Trace *t) {
    int64_t most = 0;
    for (int i = 0; i < t->n_memory; i++)
        if (!strcmp(t->memory[i].category, "gathered") && t->memory[i].bytes > most)
            most = t->memory[i].bytes;
    return most;
}
static const TraceEvent *event_of(const Trace *t, int step) {
    for (int i = 0; i < t->n_events; i++)
        if (t->events[i].step == step) return &t->events[i];
    return NULL;
}
/* No unit's sum begins before the last of its gradients is there. Returns how many gradients were
 * looked at. */
static int units_begin_late(const Trace *t) {
    int looked = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        for (int k = 0; k < c->n_with_from; k++) {
            const TraceEvent *made = event_of(t, c->with_from[k]);
            if (made) assert_true(event_of(t, c->step)->start >= made->end);
            looked += made != NULL;
        }
    }
    return looked;
}
/* Memory and time hold at most the unit in use and TRACE_PREFETCH more. */
static void test_prefetch(void **state) {
    (void)state;
    static const char *const units[] = {"block", "parameter"};
    int64_t block = 0, largest = 0;
    for (int u = 0; u < 2; u++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 5, shrink: 32}\nnames: torchtitan\npass: "
            "backward\nmesh: {dp: 2}\n"
            "data: {batch: 2, sequence: 8, dtype: f32}\ndata_parallel: {mode: fsdp, unit: %s}\n",
            units[u]);
        PlanRun r = plan_run_with(a, "plan.yaml", text, &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        for (int i = 0; i < r.t->n_params; i++) {
            int64_t bytes = r.t->params[i].compute.local[0].bytes;
            if (r.t->params[i].layer == 0) block += u == 0 ? bytes : 0;
            largest = bytes > largest ? bytes : largest;
        }
        if (u == 0) assert_int_equal(gathered_peak(r.t), (1 + TRACE_PREFETCH) * block);
        else assert_true(gathered_peak(r.t) <= (1 + TRACE_PREFETCH) * largest);
        size_t length; /* the same after the file */
        const char *file = trace_text(r.t, a, true, &length);
        const Trace *again = trace_read(a, diags_new(a), "t.jsonl", file, length);
        assert_non_null(again);
        assert_string_equal(trace_text(again, a, true, &length), file);
        assert_non_null(strstr(file, "\"held\":["));
        assert_true(u || strstr(file, "\"with\":["));
        assert_int_equal(units_begin_late(r.t),
                         u ? 0 : 5 * 8); /* 9 gradients per layer, one of them leads */
        /* no gather begins before the unit TRACE_PREFETCH places earlier is in use */
        double use[256] = {0};
        int n = 0, checked = 0;
        for (int i = 0; i < r.t->n_collectives; i++) {
            const TraceCollective *c = &r.t->collectives[i];
            if (!c->held) continue;
            double start = -1, first = -1;
            for (int e = 0; e < r.t->n_events; e++) {
                const TraceEvent *x = &r.t->events[e];
                if (x->step == c->step) start = x->start;
                if (x->step > c->step && !strcmp(x->kind, "compute") && first < 0) first = x->start;
            }
            assert_true(start >= 0 && first >= start);
            bool wait = n >= TRACE_PREFETCH;
            if (wait) assert_true(start >= use[n - TRACE_PREFETCH] - 1e-12);
            checked += wait;
            use[n++] = first;
        }
        assert_true(checked > (u ? 80 : 8));
        arena_free(a);
    }
}
/* The report, the records and the timeline count the same time. */
static void test_one_definition(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text =
        MODEL2 "mesh: {dp: 2, tp: 2}\ndata: {batch: 3, sequence: 8, dtype: f32}\ndata_parallel: "
               "{mode: fsdp, unit: block}\nrecipe: torchtitan-llama3\n";
    PlanRun r = plan_run_with(a, "plan.yaml", text, &(PipelineOptions){.events = true});
    assert_non_null(r.t);
    RankSet *part;
    int n = trace_parts(r.t, a, &part);
    assert_int_equal(n, 2);
    for (int i = 0; i < n; i++) {
        TraceTimes s = trace_times_of(r.t, part[i].run[0].first);
        double exposed = 0, waiting = 0, one = 1e-9 * s.span;
        for (int e = 0; e < r.t->n_events; e++)
            if (rankset_has(&r.t->events[e].ranks, part[i].run[0].first))
                exposed += r.t->events[e].exposed, waiting += r.t->events[e].wait_exposed;
        assert_true(fabs(exposed - s.exposed) < one && fabs(waiting - s.waiting) < one);
        assert_true(fabs(s.span - s.compute - s.exposed - s.waiting) < one);
        assert_true(fabs(s.comm - s.hidden - s.exposed) < one);
        assert_true(s.hidden > 0);
    }
    arena_free(a);
}

/* ---- causal attention: the work of a rank is that of its tokens ---- */
static double visible_pairs(const char *order, int64_t S, int64_t cp, int64_t rank) {
    double pairs = 0;
    int64_t c = S / (2 * cp);
    for (int64_t t = 0; t < S; t++) {
        int64_t half = t / c, owner = !strcmp(order, "contiguous") ? half / 2
                                      : half < cp                  ? half
                                                                   : 2 * cp - 1 - half;
        if (owner == rank) pairs += (double)(t + 1);
    }
    return pairs;
}
static void test_causal_load(void **state) {
    (void)state;
    static const char *const orders[] = {"contiguous", "zigzag"};
    enum { S = 24576, CP = 3, B = 2, HEADS = 32, HEAD_SIZE = 8 };
    for (int z = 0; z < 2; z++) {
        Arena *a = arena_new();
        const char *text =
            arena_printf(a,
                         "model: {preset: llama3-8b, layers: 1, shrink: 32}\nnames: "
                         "torchtitan\npass: backward\nmesh: {cp: 3, tp: 2}\n"
                         "data: {batch: 2, sequence: 24576, dtype: f32}\ncontext_parallel: {mode: "
                         "all_gather, order: %s}\n" TP,
                         orders[z]);
        PlanRun r = plan_run_with(a, "plan.yaml", text, &(PipelineOptions){.events = true});
        assert_non_null(r.t);
        double all = 0, end[CP] = {0};
        int seen = 0;
        for (int64_t rank = 0; rank < 2 * CP; rank++)
            for (int i = 0; i < r.t->n_computes; i++) {
                const TraceCompute *c = &r.t->computes[i];
                bool attention =
                    !strcmp(c->op, "attention") || !strcmp(c->op, "causal attention_backward");
                if (!attention || !rankset_has(&c->ranks, rank)) continue;
                double want =
                    4.0 * B * HEADS / 2 * HEAD_SIZE * visible_pairs(orders[z], S, CP, rank / 2);
                assert_true(c->flops == want);
                if (!strcmp(c->op, "attention")) all += c->flops;
                seen++;
            }
        assert_int_equal(seen, 2 * CP * 4); /* forward, and the adjoints of three operands */
        assert_true(all == 4.0 * B * HEADS * HEAD_SIZE * S * (S + 1) /
                               2); /* no pair twice, none left out */
        RankSet *part;
        assert_int_equal(trace_parts(r.t, a, &part), z ? 1 : CP);
        for (int i = 0; i < r.t->n_events; i++) {
            const TraceEvent *e = &r.t->events[i];
            if (strcmp(e->kind, "compute") || strcmp(e->name, "attn_context")) continue;
            for (int q = 0; q < CP; q++)
                if (rankset_has(&e->ranks, 2 * q)) end[q] = e->end - e->start;
        }
        assert_true(z ? end[0] == end[CP - 1] : end[0] < end[1] && end[1] < end[2]);
        arena_free(a);
    }
}

/* Where rows do not divide, PyTorch's one cut over the ranks of all axes lays the last parts
 * elsewhere: said, not passed over. */
static void test_fsdp_over_two_axes(void **state) {
    (void)state;
    static const struct {
        int rows;
        bool said;
    } sizes[] = {{10, true}, {9, true}, {7, false}, {12, false}, {8, false}};
    for (size_t i = 0; i < sizeof sizes / sizeof *sizes; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {kind: mlp, sizes: [6, %d, 8]}\ndata: {rows: 8}\nmesh: {dp: 2, cp: 2}\n"
            "data_parallel: {mode: fsdp, axis: dp*cp}\npass: backward\n",
            sizes[i].rows);
        PlanRun r = plan_run(a, "two.yaml", text, true);
        run_must_be(&r, "equivalent");
        if (run_has(&r, "N0006") != sizes[i].said) fail_msg("%d rows", sizes[i].rows);
        arena_free(a);
    }
}
/* ---- what a kernel reads and writes ---- */
static const TraceValue *made_at(const Trace *t, int step) {
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].step == step) return &t->values[i];
    return NULL;
}
static bool ends_in(const char *s, const char *end) {
    size_t n = strlen(s), m = strlen(end);
    return n >= m && !strcmp(s + n - m, end);
}
/* Bytes of a kernel of the optimizer, of n elements: the gradient and the state of the dtypes that
 * the plan gives them, the parameter as the master is held. */
static int64_t optimizer_bytes(const char *label, int64_t n, int64_t grad, int64_t state,
                               int64_t master) {
    if (ends_in(label, " moment")) return n * (grad + 2 * state);
    return n * (2 * master + 2 * state);
}
/* A sum of cotangents reads every term and writes one; an optimizer's kernel reads and writes what
 * `data: {master, moments, gradients}` says, not the plan's dtype. */
static void test_kernel_bytes(void **state) {
    (void)state;
    static const struct {
        const char *text;
        int64_t grad, state, master;
    } rows[] = {{"", 2, 2, 2},
                {", gradients: f32", 4, 2, 2},
                {", moments: f32", 2, 4, 2},
                {", master: f32", 2, 2, 4},
                {", master: f32, moments: f32, gradients: f32", 4, 4, 4}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, "
            "head, loss]}\ndata: {sequence: 8, dtype: bf16%s}\nmesh: {tp: 2}\n"
            "names: torchtitan\nrecipe: torchtitan-llama3\npass: train\n"
            "optimizer: {name: adamw, lr: 0.001}\n",
            rows[i].text);
        PlanRun r = plan_good(a, text, false);
        int sums = 0, kernels = 0;
        for (int k = 0; k < r.t->n_computes; k++) {
            const TraceCompute *c = &r.t->computes[k];
            const TraceValue *y = made_at(r.t, c->step);
            if (!strcmp(c->label, "sum of uses")) {
                int64_t width = !strcmp(c->output, "grad.param.output.weight") ? rows[i].grad : 2;
                assert_non_null(y);
                assert_int_equal(c->bytes, (c->n_inputs + 1) * y->shape.local[0].bytes);
                assert_int_equal((int64_t)c->flops,
                                 (c->n_inputs - 1) * (y->shape.local[0].bytes / width));
                sums++;
            }
            if (c->pass != PHASE_OPTIMIZER || !ends_in(c->output, ".next")) continue;
            assert_non_null(y);
            int64_t n = 1;
            for (int d = 0; d < y->shape.nd; d++) n *= y->shape.local[0].shape[d];
            assert_int_equal(c->bytes, optimizer_bytes(c->label, n, rows[i].grad, rows[i].state,
                                                       rows[i].master));
            kernels++;
        }
        assert_true(sums > 3 && kernels == 36);
        arena_free(a);
    }
}

/* Bytes of an operand: of a value that a step made, of an input, or of a parameter. */
static int64_t operand_bytes(const Trace *t, const TraceCompute *c, int i) {
    const TraceParam *p = trace_param(t, c->inputs[i]);
    if (c->input_step[i] < 0 && p) return p->compute.local[0].bytes;
    for (int k = 0; k < t->n_values; k++) {
        const TraceValue *v = &t->values[k];
        bool own = c->input_step[i] >= 0 ? v->step == c->input_step[i]
                                         : v->step < 0 && !strcmp(v->subject.of, c->inputs[i]);
        if (own) return v->shape.local[0].bytes;
    }
    fail_msg("%s reads %s, which nobody makes", c->output, c->inputs[i]);
    return 0;
}
/* A kernel reads its operands and writes what it makes, backward too, where a gradient of a table
 * is whole; but of a table from which ids pick rows, and of experts of which few have tokens, it
 * reads what is picked. */
static void test_kernel_traffic(void **state) {
    (void)state;
    static const struct {
        const char *model;
        struct {
            const char *of,
                *label; /* a kernel that picks from the operand; NULL: all that read it */
            int64_t bytes;
        } picks[3];
    } rows[] = {
        {"{preset: llama3-8b, layers: 1, shrink: 64, parts: [embedding, blocks, norm, head, loss]}",
         {{"tok_embeddings.weight", "embedding", 8 * 64 * 4}, {"logits", "target logit", 8 * 4}}},
        {"{preset: mixtral-8x7b, layers: 1, shrink: 64, config: {num_local_experts: 64}}",
         {{"layers.0.moe.experts.w1", NULL, 16 * 64 * 224 * 4},
          {"layers.0.moe.experts.w2", NULL, 16 * 64 * 224 * 4},
          {"layers.0.moe.experts.w3", NULL, 16 * 64 * 224 * 4}}}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_good(a,
                              arena_printf(a,
                                           "model: %s\ndata: {batch: 1, sequence: 8, dtype: f32}\n"
                                           "mesh: {tp: 1}\nnames: torchtitan\npass: backward\n",
                                           rows[i].model),
                              false);
        int picked = 0, back = 0;
        for (int k = 0; k < r.t->n_computes; k++) {
            const TraceCompute *c = &r.t->computes[k];
            const TraceValue *y = made_at(r.t, c->step);
            assert_non_null(y);
            int64_t sum = y->shape.local[0].bytes;
            for (int j = 0; j < c->n_inputs; j++) {
                int64_t bytes = operand_bytes(r.t, c, j);
                for (int n = 0; n < 3 && rows[i].picks[n].of; n++)
                    if (!strcmp(rows[i].picks[n].of, c->inputs[j]) &&
                        (!rows[i].picks[n].label || !strcmp(rows[i].picks[n].label, c->label)))
                        bytes = rows[i].picks[n].bytes, picked++;
                sum += bytes;
            }
            back += c->pass == PHASE_BACKWARD;
            if (c->bytes != sum)
                fail_msg("%s (%s): %lld bytes, %lld are read and written", c->output, c->label,
                         (long long)c->bytes, (long long)sum);
        }
        assert_true(picked > 1 && back > 20);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_fsdp_rows),
        cmocka_unit_test(test_rows_of_short_ranks),
        cmocka_unit_test(test_unequal_groups),
        cmocka_unit_test(test_unequal_pieces),
        cmocka_unit_test(test_planted),
        cmocka_unit_test(test_hsdp_units),
        cmocka_unit_test(test_units_gather_all_again),
        cmocka_unit_test(test_units_wait),
        cmocka_unit_test(test_prefetch),
        cmocka_unit_test(test_one_definition),
        cmocka_unit_test(test_causal_load),
        cmocka_unit_test(test_kernel_bytes),
        cmocka_unit_test(test_kernel_traffic),
        cmocka_unit_test(test_fsdp_over_two_axes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
