/* Near ties: a run whose routers choose by a hair another expert than the unsharded float64 model.
 * The list of the run is held as ever; the reference takes it over where the gap is one that
 * rounding can make, the report says so, and everything behind is compared. A choice that is wrong
 * is not. */
#include "support/child.h"
#include "support/mpi.h"
#include "support/spoil.h"
#include "support/support.h"
#include "support/threads.h"
#include "ops/op.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- weights in which two experts are all but equal ---- */
/* Golden Mixtral with the router's row 1 of each layer a copy of row 0, `off` larger. */
static const char *tied_weights(Arena *a, double off) {
    static const char gate[] = ".gate.weight";
    SafeTensors *st = golden_tensors(a, golden_path(a, "hf/mixtral/model.safetensors"));
    int n = st->n;
    NewTensor *t = ARENA_ARRAY(a, NewTensor, n);
    for (int i = 0; i < n; i++) {
        const StTensor *s = &st->t[i];
        int64_t count;
        double *x = (double *)(uintptr_t)tensor_numbers(a, st, s->name, &count);
        size_t len = strlen(s->name);
        bool router = len > sizeof gate && !strcmp(s->name + len - (sizeof gate - 1), gate);
        for (int64_t k = 0; router && k < s->shape[1]; k++) x[s->shape[1] + k] = x[k] * (1 + off);
        t[i] = (NewTensor){.name = arena_strdup(a, s->name), .nd = s->nd, .x = x};
        memcpy(t[i].shape, s->shape, sizeof *s->shape * (size_t)s->nd);
    }
    const char *path = write_tensors(a, "tied.safetensors", t, n);
    st_close(st);
    return path;
}
static const char *tied_plan(Arena *a, const char *weights, const char *dtype, const char *moe) {
    return arena_printf(
        a,
        "model: {hf_config: %s, weights: %s, layers: all, parts: [embedding, blocks, norm, head, "
        "loss]}\ndata: {dtype: %s, inputs: %s}\nnames: hf\nmesh: {dp: 2, tp: 2}\n"
        "groups: {ep: dp}\npass: backward\n%s\ndata_parallel: {mode: ddp}\n"
        "plan:\n  model.layers.*.self_attn.[qkv]_proj: colwise\n"
        "  model.layers.*.self_attn.o_proj: rowwise\n"
        "  model.layers.*.mlp.experts: expert_parallel\n",
        golden_path(a, "hf/mixtral/config.json"), weights, dtype,
        golden_path(a, "hf/mixtral/values.safetensors"), moe);
}
static bool equivalent(const PlanRun *r) { return run_is(r, "equivalent"); }
/* Both layers, f32: tokens that go to 1 instead of 0 or the other way round, and nothing else. */
static void hold_ties(const Trace *t) {
    assert_true(t->n_ties > 0);
    for (int i = 0; i < t->n_ties; i++) {
        const TraceTie *k = &t->ties[i];
        assert_true(!strncmp(k->value, "layers.", 7) && strstr(k->value, ".moe.list"));
        assert_int_equal(k->n_taken, 3);
        assert_true(k->taken[0] + k->left[0] == 1);
        assert_true(k->taken[1] == k->left[1] && k->taken[2] == k->left[2]);
        assert_true(k->gap >= 0 && k->gap <= k->bound && k->bound < 0.02);
    }
}
static void test_tie(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *text = tied_plan(a, tied_weights(a, 0x1p-24), "f32", "");
    PlanRun r = plan_run(a, "tie.yaml", text, true);
    if (!equivalent(&r)) run_print(&r);
    assert_true(equivalent(&r));
    hold_ties(r.t);
    assert_non_null(run_diag(&r, "N0015", "near tie: layers."));
    assert_null(run_diag(&r, "N0015", "replayed"));
    size_t n; /* and the record says so */
    const char *lines = trace_text(r.t, a, true, &n);
    Trace *back = trace_read(a, r.d, "tie.jsonl", lines, n);
    assert_int_equal(back->n_ties, r.t->n_ties);
    assert_memory_equal(back->ties[0].taken, r.t->ties[0].taken, 3 * sizeof(int64_t));
    assert_true(back->ties[0].gap == r.t->ties[0].gap);
    /* micro-batches, and a few steps of training that go different ways */
    const char *at = strstr(text, "data: {") + 7;
    r = plan_run(a, "tie.yaml",
                 arena_printf(a, "%.*smicrobatches: 2, %s", (int)(at - text), text, at), true);
    if (!equivalent(&r)) run_print(&r);
    assert_true(equivalent(&r));
    hold_ties(r.t);
    /* in f64 the two are told apart */
    r = plan_run(a, "tie.yaml", tied_plan(a, tied_weights(a, 0x1p-24), "f64", ""), true);
    assert_true(equivalent(&r) && !r.t->n_ties && !run_has(&r, "N0015"));
    arena_free(a);
}

/* The same with real ranks: rank 0 hears which rows each has, takes them over into the unsharded
 * run as a virtual run does, and writes the same records, micro-batches or not. */
static void test_real_ranks(void **state) {
    (void)state;
    for (int parts = 1; parts <= 2; parts++) {
        Arena *a = arena_new();
        const char *text = tied_plan(a, tied_weights(a, 0x1p-24), "f32", ""),
                   *at = strstr(text, "data: {") + 7;
        text = arena_printf(a, "%.*smicrobatches: %d, %s", (int)(at - text), text, parts, at);
        PipelineOptions o = {.execute = true, .threads = 1};
        PlanRun v = plan_run_with(a, "random.yaml", text, &o); /* as threads_run calls it */
        Threads x = {.ranks = 4, .flip_rank = -1, .text = text, .o = o};
        ThreadsRun r = threads_run(a, &x);
        assert_true(equivalent(&v) && r.t && !r.rep.exit);
        hold_ties(r.t);
        size_t n, m;
        v.t->backend = r.t->backend = "virtual";
        v.t->n_measured = r.t->n_measured = 0;
        const char *want = trace_text(v.t, a, true, &n), *have = trace_text(r.t, a, true, &m);
        assert_int_equal(n, m);
        assert_memory_equal(want, have, n);
        arena_free(a);
    }
}

/* Two processes say of the tie what two virtual ranks say, word for word: lists come before the
 * numbers that hang on them. */
static void test_two_processes(void **state) {
    (void)state;
    NEEDS_MPI;
    Arena *a = arena_new();
    char *text = arena_strdup(a, tied_plan(a, tied_weights(a, 0x1p-24), "f32", "")),
         *tp = strstr(text, "tp: 2}");
    assert_non_null(tp);
    tp[4] = '1';
    const char *plan = temp_path(a, "tie.yaml"), *o = temp_path(a, "o"), *e = temp_path(a, "e"),
               *one_o = temp_path(a, "one.o"), *one_e = temp_path(a, "one.e");
    child_write(plan, text);
    assert_int_equal(line_code(one_o, one_e, "%s check -v %s", mpi_program(), plan), 0);
    assert_int_equal(MPI_RUN(o, e, "-n 2 %s check -v %s --mpi", mpi_program(), plan), 0);
    size_t n, m;
    const char *said = child_read(a, one_e, &n);
    assert_non_null(strstr(said, "near tie: layers.0.moe.list"));
    assert_non_null(strstr(said, "near tie: layers.1.moe.list"));
    assert_string_equal(child_read(a, e, &m), said);
    said = child_read(a, one_o, &n);
    assert_non_null(strstr(said, "equivalent"));
    assert_string_equal(child_read(a, o, &m), said);
    arena_free(a);
}

/* ---- a wrong choice ---- */
/* The first row of a list becomes that of another expert, on all ranks alike, after its check:
 * nobody but the end of the run can see it. */
typedef struct {
    int64_t to; /* the expert */
    bool done;
} Wrong;
static void choose_wrong(void *arg, Exec *e, const Step *s, bool checked) {
    Wrong *w = arg;
    const Val *v = &e->p->val[s->out];
    if (!checked || w->done || s->kind != ST_OP || v->list != s->out) return;
    w->done = true;
    int64_t tokens = e->p->graph->t[v->tensor].size[1] * e->p->graph->t[v->tensor].size[2];
    Store *store = exec_store(e, s->out);
    for (int k = 0; k < store->n; k++) {
        int64_t *id = store->l[k].t.p, token = id[0] % tokens, n = store->l[k].t.n[0];
        bool had = false;
        for (int64_t i = 0; i < n; i++) had |= id[i] == w->to * tokens + token;
        if (had) continue;
        int64_t at = 1; /* ascending */
        for (; at < n && id[at] < w->to * tokens + token; at++) id[at - 1] = id[at];
        id[at - 1] = w->to * tokens + token;
    }
}
static PlanRun run_wrong(Arena *a, const char *moe, Wrong *w) {
    PipelineOptions o = {.execute = true, .threads = 1, .watch = choose_wrong, .watch_arg = w};
    return plan_run_with(a, "wrong.yaml",
                         tied_plan(a, golden_path(a, "hf/mixtral/model.safetensors"), "f32", moe),
                         &o);
}
static void test_wrong(void **state) {
    (void)state;
    Arena *a = arena_new();
    Wrong w = {.to = 7};
    PlanRun r = run_wrong(a, "", &w);
    assert_true(w.done && r.t);
    run_must_be(&r, "different");
    assert_int_equal(r.t->n_ties, 0);
    assert_true(strstr(r.t->checks[r.t->n_checks - 1].cause, "end to end"));
    /* whoever asks for it gets every choice: told with its gap, which no rounding makes */
    w.done = false;
    r = run_wrong(a, "moe: {routing: replayed}", &w);
    run_must_be(&r, "equivalent");
    assert_true(r.t->n_ties > 0 && r.t->ties[0].gap > r.t->ties[0].bound);
    assert_non_null(run_diag(&r, "N0015", "replayed: layers.0.moe.list"));
    arena_free(a);
}

/* ---- the gap, by hand ---- */
typedef struct {
    Rule rule;
    Attrs at;
    OpCall c;
    int64_t out[16];
    ListTie tie[16];
} Choice;
/* One token of `experts` scores. */
static void choice_open(Choice *x, double *z, int64_t experts, Attrs at) {
    const char *why;
    int col;
    *x = (Choice){.at = at};
    assert_true(rule_parse("bte!->[ebt]", &x->rule, &why, &col));
    x->c = (OpCall){.op = op_find("select"), .rule = &x->rule, .at = &x->at, .dtype = DT_F64};
    for (int i = 0; i < 26; i++) x->c.local[i] = x->c.global[i] = 1;
    x->c.local['e' - 'a'] = x->c.global['e' - 'a'] = experts;
    x->c.in[0] = (Tensor){.nd = 3, .n = {1, 1, experts}, .p = z};
    tensor_pack(&x->c.in[0]);
    x->c.out = (Tensor){.nd = 1, .n = {x->c.op->rows(&x->c)}, .s = {1}, .p = x->out};
    x->c.op->forward(&x->c);
}
static void gap_is(Choice *x, const int64_t *ids, int64_t n, double gap, int pairs) {
    assert_int_equal(x->c.op->ties(&x->c, ids, n, x->tie), pairs);
    for (int i = 0; i < pairs; i++)
        if (!(fabs(x->tie[i].gap - gap) <= 1e-12) && !(isinf(gap) && isinf(x->tie[i].gap)))
            fail_msg("a gap of %g, %g expected", x->tie[i].gap, gap);
}
static void test_gaps(void **state) {
    (void)state;
    Choice x;
    double z[] = {5, 3, 2.5, 1};
    choice_open(&x, z, 4, (Attrs){.top = 2}); /* 0 and 1 */
    gap_is(&x, (int64_t[]){0, 1}, 2, 0, 0);
    gap_is(&x, (int64_t[]){0, 2}, 2, .5, 1);
    assert_true(x.tie[0].taken == 2 && x.tie[0].left == 1);
    gap_is(&x, (int64_t[]){2, 3}, 2, 4, 2); /* 5 was left for 1 */
    double nan[] = {5, NAN, 2, 1};
    choice_open(&x, nan, 4, (Attrs){.top = 2});
    gap_is(&x, (int64_t[]){0, 3}, 2, 1, 1);
    gap_is(&x, (int64_t[]){0, 1}, 2, INFINITY, 1); /* nothing is above NaN */
    /* four groups of two, sums 8, 7, 6.8, 1: the first two stay */
    double g[] = {5, 3, 4, 3, 6, .8, 1, 0};
    choice_open(&x, g, 8, (Attrs){.top = 3, .groups = 4, .top_groups = 2}); /* 0, 1, 2 */
    gap_is(&x, (int64_t[]){0, 2, 3}, 3, 0, 1);   /* 1 and 3 have the same score */
    gap_is(&x, (int64_t[]){0, 1, 4}, 3, .1, 1);  /* the third group for the second: .2 of two */
    gap_is(&x, (int64_t[]){0, 4, 5}, 3, 2.2, 2); /* and there 3 was left for .8 */
    gap_is(&x, (int64_t[]){0, 2, 4}, 3, INFINITY, 1); /* three groups */
}
/* A full expert: tokens of equal weight may change places, others not. */
static void test_places(void **state) {
    (void)state;
    const int64_t id[] = {0, 1, 2, 3, 4};
    double w[] = {.5, .4, .3, .3, .2};
    int64_t out[5];
    ListTie tie[5];
    const char *why;
    int col;
    Rule rule;
    Attrs at = {.top = 1, .factor = .6, .priority = 'w'};
    assert_true(rule_parse("[eb!t!],[eb!t!]->[ebt]", &rule, &why, &col));
    OpCall c = {.op = op_find("capacity"), .rule = &rule, .at = &at, .dtype = DT_F64};
    for (int i = 0; i < 26; i++) c.local[i] = c.global[i] = 1;
    c.local['t' - 'a'] = c.global['t' - 'a'] = 5;
    c.ids = c.in[0] = (Tensor){.nd = 1, .n = {5}, .s = {1}, .p = (void *)(uintptr_t)id};
    c.in[1] = (Tensor){.nd = 1, .n = {5}, .s = {1}, .p = w};
    c.out = (Tensor){.nd = 1, .n = {3}, .s = {1}, .p = out};
    assert_int_equal(c.op->rows(&c), 3);
    c.op->forward(&c); /* 0, 1, 2 */
    assert_int_equal(c.op->ties(&c, (int64_t[]){0, 1, 3}, 3, tie), 1);
    assert_true(tie[0].taken == 3 && tie[0].left == 2 && tie[0].gap == 0);
    assert_int_equal(c.op->ties(&c, (int64_t[]){1, 2, 4}, 3, tie), 1);
    assert_true(tie[0].taken == 4 && tie[0].left == 0 && fabs(tie[0].gap - .3) < 1e-12);
    at.priority = 'o'; /* no scores decide */
    assert_int_equal(c.op->ties(&c, (int64_t[]){0, 1, 3}, 3, tie), 1);
    assert_true(isinf(tie[0].gap));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tie),        cmocka_unit_test(test_wrong),
        cmocka_unit_test(test_gaps),       cmocka_unit_test(test_places),
        cmocka_unit_test(test_real_ranks), cmocka_unit_test(test_two_processes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
