/* Rows of experts in the log: how many each rank sends to which other, expected, at most and in a
 * run; the law that who sends and who receives say the same; what `comms` and `shapes` print. */
#include "base/file.h"
#include "cli/cli.h"
#include "exec/pieces.h"
#include "support/support.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#define EXPERTS "  layers.*.moe.experts: expert_parallel\n"
#define SP_NORMS                                                                                   \
    "  layers.*.attention_norm: sequence_parallel\n"                                               \
    "  layers.*.attention: {style: prepare_module_input, input: [shard(1)], desired_input: "       \
    "[replicate]}\n"                                                                               \
    "  layers.*.attention.w[qkv]: colwise\n"                                                       \
    "  layers.*.attention.wo: {style: rowwise, output: shard(1)}\n"                                \
    "  layers.*.ffn_norm: sequence_parallel\n  layers.*.moe.router.gate: sequence_parallel\n"
#define BOTH_LETTERS "  layers.*.moe.experts: {axis: ep, weight: {ep: shard(e), tp: shard(w)}}\n"

/* Ways in which rows go to experts. */
static const struct Way {
    const char *mesh, *more, *data, *lines;
} ways[] = {
    {"ep: 4", "groups: {dp: ep}", "batch: 4, sequence: 6", EXPERTS},
    {"edp: 2, ep: 2", "groups: {dp: edp*ep}", "batch: 4, sequence: 5", EXPERTS},
    {"dp: 2, cp: 2", "groups: {ep: dp*cp}\ncontext_parallel: {mode: all_gather, order: zigzag}",
     "batch: 2, sequence: 16", EXPERTS},
    {"dp: 2, cp: 2, tp: 2", "groups: {ep: dp*cp}\ncontext_parallel: {mode: all_gather}",
     "batch: 2, sequence: 16, block_input: shard(1)", SP_NORMS BOTH_LETTERS},
    {"dp: 3", "groups: {ep: dp}", "batch: 3, sequence: 5", EXPERTS}, /* 3 + 3 + 2 experts */
};
static const char *const routings[] = {"computed", "balanced", "hot_expert", "hot_rank",
                                       "ragged",   "burst",    "empty_rank"};
static const char *const capacities[] = {"", ", capacity_factor: 1.0",
                                         ", capacity_factor: 0.75, capacity: local"};
enum {
    N_WAYS = sizeof ways / sizeof *ways,
    N_ROUTINGS = sizeof routings / sizeof *routings,
    N_CAPACITIES = sizeof capacities / sizeof *capacities
};

static const char *plan_of(Arena *a, const struct Way *w, const char *routing, const char *capacity,
                           const char *more) {
    return arena_printf(
        a,
        "model: {preset: mixtral-8x7b, layers: 1, shrink: 64, parts: [blocks]}\n"
        "data: {%s, dtype: f32, seed: 3}\nmesh: {%s}\n%s\nnames: torchtitan\npass: backward\n"
        "data_parallel: {mode: ddp}\nmoe: {routing: %s%s}\n%splan:\n%s",
        w->data, w->mesh, w->more, routing, capacity, more, w->lines);
}

/* ---- who sends what to whom ---- */
/* Rows by pairs, from the pieces that bring the data to their places. */
typedef struct {
    Arena *a;
    double *to[512]; /* per step: [rank][member] */
} Eye;
static void look(void *arg, struct Exec *e, const struct Step *s, bool checked) {
    Eye *eye = arg;
    const GTensor *t = s->out < 0 ? NULL : &e->p->graph->t[e->p->val[s->out].tensor];
    if (checked || s->kind != ST_MOVE || !t->listed || graph_is_list(t) || s->id >= 512) return;
    if (eye->to[s->id]) return; /* of another micro-batch: records show the first */
    Act act = act_of(s);
    Pieces x = pieces_of_run(e, s, &act);
    int64_t n = mesh_size(x.m, &s->move.axes), wide = 1, local[LAYOUT_MAX_DIMS];
    layout_local(x.m, &x.to, t->size, 0, local);
    for (int d = t->listed; d < t->nd; d++) wide *= local[d];
    double *to = eye->to[s->id] = ARENA_ARRAY(eye->a, double, x.m->nranks *n);
    for (int64_t r = 0; r < x.m->nranks; r++)
        for (int64_t i = 0; i < n; i++)
            to[r * n + i] =
                (double)pieces_between(&x, r, mesh_member(x.m, &s->move.axes, r, i)) / (double)wide;
}
static const TraceCollective *collective_at(const Trace *t, int step) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == step) return &t->collectives[i];
    fail_msg("step %d is no collective", step);
    return NULL;
}
/* in[i][j] == out[j][i], sums that are what ranks have, nothing above its bound. */
static void holds(const Trace *t, const TraceExchange *x, const Eye *eye) {
    const TraceCollective *c = collective_at(t, x->step);
    bool gathers = !strcmp(c->op, "all_gather"), adds = !strcmp(c->op, "reduce_scatter");
    for (int64_t g = 0; g < groups_count(&c->groups); g++)
        for (int64_t i = 0; i < x->size; i++) {
            int64_t rank = groups_member(&c->groups, g, i);
            double has = 0, gives = 0, away = 0;
            for (int64_t k = 0; k < x->size; k++) {
                TracePair there = exchange_pair(x, c, g, i, k), back = exchange_pair(x, c, g, k, i);
                assert_true(there.sent == there.received);
                assert_true(there.sent == eye->to[x->step][rank * x->size + k]);
                gives += there.sent, has += back.sent;
                away += k == i ? 0 : there.sent;
            }
            assert_true(x->sent[rank] == away);
            assert_true(adds ? x->out[rank] * (double)x->size == has : x->out[rank] == has);
            assert_true(gathers ? x->in[rank] * (double)x->size == gives : x->in[rank] == gives);
            assert_true(x->in[rank] <= (double)c->most_in && x->out[rank] <= (double)c->most_out);
            assert_true(x->sent[rank] <= (double)c->most_sent);
        }
}
/* The way back has the matrix of the way there, transposed. */
static void transposed(const TraceExchange *there, const TraceExchange *back) {
    if (there->size != back->size || there->n_in != there->size) return; /* several groups */
    for (int64_t i = 0; i < there->size; i++)
        for (int64_t k = 0; k < there->size; k++)
            assert_true(there->to[i * there->size + k] == back->to[k * there->size + i]);
}
static const TraceExchange *exchange_of(const Trace *t, const char *value) {
    for (int i = 0; i < t->n_exchanges; i++)
        if (!strcmp(t->exchanges[i].value, value) &&
            !strcmp(collective_at(t, t->exchanges[i].step)->op, "all_to_all"))
            return &t->exchanges[i];
    fail_msg("no exchange of %s", value);
    return NULL;
}
static PlanRun run_of(Arena *a, const char *text, Eye *eye) {
    *eye = (Eye){.a = a};
    PlanRun r = plan_run_with(
        a, "ragged.yaml", text,
        &(PipelineOptions){
            .execute = true, .numbers = true, .threads = 1, .watch = look, .watch_arg = eye});
    if (!run_is(&r, "equivalent")) printf("%s", text), run_print(&r);
    assert_true(run_is(&r, "equivalent"));
    return r;
}
static void test_law(void **state) {
    (void)state;
    for (int w = 0; w < N_WAYS; w++)
        for (int m = 0; m < N_ROUTINGS; m++) {
            Arena *a = arena_new();
            Eye eye;
            const char *capacity = capacities[(w + m) % N_CAPACITIES];
            PlanRun r = run_of(a, plan_of(a, &ways[w], routings[m], capacity, ""), &eye);
            assert_true(r.t->n_exchanges >= 4);
            for (int i = 0; i < r.t->n_exchanges; i++) holds(r.t, &r.t->exchanges[i], &eye);
            transposed(exchange_of(r.t, "layers.0.moe.dispatched"),
                       exchange_of(r.t, "layers.0.moe.down"));
            size_t n; /* the record comes back from a file */
            const char *saved = trace_text(r.t, a, false, &n);
            Trace *back = trace_read(a, diags_new(a), "ragged.trace.jsonl", saved, n);
            assert_true(back && back->n_exchanges == r.t->n_exchanges);
            const TraceExchange *x = &r.t->exchanges[0], *y = &back->exchanges[0];
            assert_memory_equal(x->to, y->to, sizeof *x->to * (size_t)x->n_to);
            assert_memory_equal(x->from, y->from, sizeof *x->from * (size_t)x->n_from);
            arena_free(a);
        }
}

/* In a pipeline the ranks of other stages have no rows: those of a stage are counted all the same.
 */
static void test_stages(void **state) {
    (void)state;
    static const char *const how[] = {"schedule: 1f1b", "schedule: zb-v, chunks: 2",
                                      "schedule: dualpipe"};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        Eye eye;
        PlanRun r = run_of(
            a,
            arena_printf(a,
                         "model: {preset: mixtral-8x7b, layers: 4, shrink: 64, parts: [blocks]}\n"
                         "data: {batch: 16, sequence: 4, dtype: f32, seed: 3}\nmesh: {pp: 2, dp: "
                         "2}\nmoe: {axis: dp}\npass: forward\npipeline: {%s, microbatches: 4}\n",
                         how[i]),
            &eye);
        int exchanges = 0;
        for (int k = 0; k < r.t->n_collectives; k++) exchanges += r.t->collectives[k].row_bytes > 0;
        assert_true(exchanges >= 8);
        assert_int_equal(r.t->n_exchanges, exchanges);
        for (int k = 0; k < r.t->n_exchanges; k++) holds(r.t, &r.t->exchanges[k], &eye);
        arena_free(a);
    }
}

/* ---- expected, at most, in the run ---- */
/* A bound is no looser than it must be: an even routing has what is expected everywhere, one that
 * sends all to the experts of one rank reaches what is possible there. */
static void test_bounds(void **state) {
    (void)state;
    Arena *a = arena_new();
    Eye eye;
    PlanRun r = run_of(a, plan_of(a, &ways[0], "balanced", "", ""), &eye);
    const TraceExchange *x = exchange_of(r.t, "layers.0.moe.dispatched");
    const TraceCollective *c = collective_at(r.t, x->step);
    assert_int_equal(c->row_bytes, 4 * 64);
    assert_int_equal(c->bytes_out, 12 * c->row_bytes); /* 4 x 6 x 2 rows on 4 ranks */
    assert_int_equal(c->most_out, 48);                 /* 24 tokens, 2 of the rank's 2 experts */
    assert_int_equal(c->most_in, 12);
    assert_int_equal(c->most_sent, 12);
    for (int q = 0; q < 4; q++) assert_true(x->in[q] == 12 && x->out[q] == 12);
    r = run_of(a, plan_of(a, &ways[0], "hot_rank", "", ""), &eye);
    x = exchange_of(r.t, "layers.0.moe.dispatched");
    assert_true(trace_spread(x->out, 4).peak > 24);
    const TraceValue *v = NULL;
    for (int i = 0; i < r.t->n_values; i++)
        if (r.t->values[i].step == x->step) v = &r.t->values[i];
    assert_true(v && v->most == 48 && !v->room);
    assert_true(routed_on(trace_routed(r.t, v->list), trace_spread(x->out, 4).peak_at) ==
                trace_spread(x->out, 4).peak);
    arena_free(a);
}
/* Three experts on two ranks, two for each of three tokens of a rank: from the one with two experts
 * at most one row of a token leaves, from the other both do. */
static void test_few_experts(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_good(
        a,
        "model: {layers: 1, parts: [blocks], config: {model_type: mixtral, hidden_size: 8, "
        "num_attention_heads: 2, num_key_value_heads: 2, intermediate_size: 8, vocab_size: 8, "
        "num_hidden_layers: 1, num_local_experts: 3, num_experts_per_tok: 2}}\n"
        "data: {batch: 2, sequence: 3, dtype: f32}\nmesh: {ep: 2}\ngroups: {dp: ep}\n"
        "names: torchtitan\nplan:\n" EXPERTS,
        false);
    const TraceCollective *c = find_collective(r.t, "all_to_all", "layers.0.moe.dispatched");
    assert_int_equal(c->most_sent, 6);
    c = find_collective(r.t, "all_to_all", "layers.0.moe.down");
    assert_int_equal(c->most_sent, 6); /* of the other's three tokens two rows each */
    const int64_t rank = 0;
    r = plan_good(a,
                  arena_printf(a,
                               "model: {layers: 1, parts: [blocks], config: {model_type: "
                               "mixtral, hidden_size: 8, num_attention_heads: 2, "
                               "num_key_value_heads: 2, intermediate_size: 8, vocab_size: 8, "
                               "num_hidden_layers: 1, num_local_experts: 4, "
                               "num_experts_per_tok: 3}}\n"
                               "data: {batch: 2, sequence: 3, dtype: f32}\nmesh: {ep: 2}\n"
                               "groups: {dp: ep}\nnames: torchtitan\nplan:\n%s",
                               EXPERTS),
                  false);
    c = find_collective(r.t, "all_to_all", "layers.0.moe.dispatched");
    assert_int_equal(c->most_sent, 6); /* three of four experts: two of them are the other's */
    assert_int_equal(collective_on(c, rank).bytes_in / c->row_bytes, 9);
    arena_free(a);
}
/* Rows to expect are whole ones, each rank's own, and never above what it can have; what goes into
 * an exchange comes out of it, but for rounding. Experts and tokens that the ranks do not divide.
 */
static void expect_rows(const TraceCollective *c) {
    bool exchanges = !strcmp(c->op, "all_to_all");
    for (int64_t g = 0; g < groups_count(&c->groups); g++) {
        double in = 0, out = 0, n = (double)groups_size(&c->groups);
        for (int64_t i = 0; i < groups_size(&c->groups); i++) {
            TraceTraffic b = collective_on(c, groups_member(&c->groups, g, i));
            assert_int_equal(b.bytes_in % c->row_bytes, 0);
            assert_int_equal(b.bytes_out % c->row_bytes, 0);
            assert_int_equal(b.bytes_sent % c->row_bytes, 0);
            assert_true(b.bytes_in <= c->most_in * c->row_bytes);
            assert_true(b.bytes_out <= c->most_out * c->row_bytes);
            assert_true(b.bytes_sent <= c->most_sent * c->row_bytes);
            in += (double)(b.bytes_in / c->row_bytes), out += (double)(b.bytes_out / c->row_bytes);
        }
        if (exchanges) assert_true(fabs(in - out) < n);
    }
}
static void test_expected(void **state) {
    (void)state;
    static const struct Way uneven[] = {
        {"dp: 2, cp: 2", "groups: {ep: dp*cp}", "batch: 3, sequence: 7", EXPERTS},
        {"ep: 6", "groups: {dp: ep}", "batch: 7, sequence: 3", EXPERTS},
        {"tp: 3", "groups: {ep: tp}", "batch: 3, sequence: 5", EXPERTS},
    };
    for (int w = 0; w < N_WAYS + (int)(sizeof uneven / sizeof *uneven); w++)
        for (int k = 0; k < N_CAPACITIES; k++) {
            Arena *a = arena_new();
            const struct Way *way = w < N_WAYS ? &ways[w] : &uneven[w - N_WAYS];
            PlanRun r =
                plan_run(a, "expected.yaml", plan_of(a, way, "computed", capacities[k], ""), false);
            int rows = 0;
            assert_non_null(r.t);
            for (int i = 0; i < r.t->n_collectives; i++)
                if (r.t->collectives[i].row_bytes > 0) expect_rows(&r.t->collectives[i]), rows++;
            assert_true(rows >= 2);
            arena_free(a);
        }
}
/* 8 experts on 3 ranks are 3, 3 and 2: of 30 rows 12, 12 and 8 are expected, from each rank 10. */
static void test_uneven(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "uneven.yaml", plan_of(a, &ways[4], "computed", "", ""), false);
    assert_non_null(r.t);
    for (int i = 0; i < r.t->n_collectives; i++) {
        const TraceCollective *c = &r.t->collectives[i];
        if (strcmp(c->value, "layers.0.moe.dispatched")) continue;
        static const int64_t out[] = {12, 12, 8}, sent[] = {7, 7, 8};
        for (int64_t q = 0; q < 3; q++) {
            TraceTraffic b = collective_on(c, q);
            assert_int_equal(b.bytes_in, 10 * c->row_bytes);
            assert_int_equal(b.bytes_out, out[q] * c->row_bytes);
            assert_int_equal(b.bytes_sent, sent[q] * c->row_bytes);
        }
    }
    arena_free(a);
}
/* A third of all tokens asks for the same two experts: what is dropped, by hand. 24 tokens a
 * sequence, 4 sequences on 2 ranks: 192 rows; room for ceil(96 x 2 x 1 / 8) = 24 each of all
 * tokens, 12 each of a rank's. */
static void test_capacity(void **state) {
    (void)state;
    static const struct Way two = {"dp: 2", "groups: {ep: dp}", "batch: 4, sequence: 24", EXPERTS};
    static const struct {
        const char *capacity, *room;
        int64_t out;
    } kinds[] = {{", capacity_factor: 1.0", "[E/ep, C, D]", 96},
                 {", capacity_factor: 1.0, capacity: local", "[E/ep, ep*C, D]", 96},
                 {", capacity_factor: 0.5, capacity: local", "[E/ep, ep*C, D]", 48}};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        Eye eye;
        PlanRun r = run_of(a, plan_of(a, &two, "burst", kinds[i].capacity, ""), &eye);
        const TraceExchange *x = exchange_of(r.t, "layers.0.moe.dispatched");
        assert_int_equal(collective_at(r.t, x->step)->most_out, kinds[i].out);
        for (int k = 0; k < r.t->n_values; k++)
            if (r.t->values[k].step == x->step)
                assert_string_equal(r.t->values[k].room, kinds[i].room);
        int n;
        const TraceDispatch *d = trace_dispatches(r.t, a, &n);
        assert_int_equal(n, 1);
        assert_true(d->asked == 192 && d->kept < 192);
        double room = i == 2 ? 12 : 24, kept = 0;
        for (int64_t e = 0; e < 8; e++) {
            assert_true(d->by_expert[e] <= room);
            kept += d->by_expert[e];
        }
        assert_true(kept == d->kept && kept == x->out[0] + x->out[1]);
        assert_true(d->at_ranks.peak == fmax(x->out[0], x->out[1]));
        arena_free(a);
    }
}

/* ---- what is printed ---- */
static Arena *arena;
static char folder[] = "/tmp/shardproof-ragged-XXXXXX";
static int start(void **state) {
    (void)state;
    arena = arena_new();
    return mkdtemp(folder) && !chdir(folder) ? 0 : -1;
}
static int end(void **state) {
    (void)state;
    arena_free(arena);
    bool gone = !chdir("/") && !system(arena_printf(arena = arena_new(), "rm -r '%s'", folder));
    arena_free(arena);
    return gone ? 0 : -1;
}
static const char *printed(int want, const char *const *words) {
    char *argv[64] = {(char *)(uintptr_t) "shardproof"}, *text = NULL, *said = NULL;
    int argc = 1;
    size_t n, m;
    for (int i = 0; words[i]; i++) argv[argc++] = (char *)(uintptr_t)words[i];
    FILE *out = open_memstream(&text, &n), *err = open_memstream(&said, &m);
    int code = cli_main(argc, argv, out, err);
    fclose(out);
    fclose(err);
    const char *kept = arena_strdup(arena, text);
    if (code != want) fail_msg("exit %d: %s", code, said);
    free(text);
    free(said);
    return kept;
}
#define PRINTED(code, ...) printed(code, (const char *const[]){__VA_ARGS__, NULL})
static void says(const char *text, const char *what) {
    if (!strstr(text, what)) fail_msg("'%s' is not in\n%s", what, text);
}
static void put(const char *name, const char *text) {
    FILE *f = fopen(name, "w");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}

/* The footer's bytes are those of the exchanges that the trace recorded: each rank's by hand. */
static void hold_sent(const char *comms) {
    size_t n;
    Diags *d = diags_new(arena);
    const char *text = file_read(arena, d, "out/moe.trace.jsonl", 1 << 24, (Loc){0}, &n);
    Trace *t = trace_read(arena, d, "moe.jsonl", text, n);
    int64_t least = INT64_MAX, most = 0, due = 0;
    for (int64_t r = 0; r < t->ranks; r++) {
        int64_t sent = 0;
        for (int i = 0; i < t->n_collectives; i++) {
            const TraceCollective *c = &t->collectives[i];
            int64_t one = c->bytes_sent;
            for (int k = 0; k < t->n_exchanges; k++)
                if (t->exchanges[k].step == c->step && c->row_bytes)
                    one = (int64_t)t->exchanges[k].sent[r] * c->row_bytes;
            sent += one;
            due += r ? 0 : c->bytes_sent;
        }
        if (sent < least) least = sent;
        if (sent > most) most = sent;
    }
    assert_true(least < most);
    says(comms, arena_printf(arena, "sent per rank: %s (rank ", bytes_text(least, arena)));
    says(comms, arena_printf(arena, ") to %s (rank ", bytes_text(most, arena)));
    says(comms, arena_printf(arena, ") in the run, %s expected", bytes_text(due, arena)));
}
/* The storyboard of an exchange of rows says what ranks sent in the run, and what was expected;
 * without a run that it is expected. */
static void hold_story(void) {
    size_t n;
    Diags *d = diags_new(arena);
    const char *text = file_read(arena, d, "out/moe.trace.jsonl", 1 << 24, (Loc){0}, &n);
    Trace *t = trace_read(arena, d, "moe.jsonl", text, n);
    const TraceCollective *c = NULL;
    for (int i = 0; i < t->n_collectives && !c; i++)
        if (t->collectives[i].row_bytes && !strcmp(t->collectives[i].op, "all_to_all"))
            c = &t->collectives[i];
    assert_non_null(c);
    int64_t least = INT64_MAX, most = 0;
    for (int k = 0; k < t->n_exchanges; k++)
        for (int64_t i = 0; t->exchanges[k].step == c->step && i < groups_size(&c->groups); i++) {
            int64_t rows = (int64_t)t->exchanges[k].sent[groups_member(&c->groups, 0, i)];
            if (rows * c->row_bytes < least) least = rows * c->row_bytes;
            if (rows * c->row_bytes > most) most = rows * c->row_bytes;
        }
    assert_true(least < most);
    const char *step = arena_printf(arena, "%d", c->step);
    char *said = arena_strdup(arena, PRINTED(0, "draw", "out/moe.trace.jsonl", "--view",
                                             "storyboard", "--part", step, "--format", "text"));
    for (char *p = said; *p; p++)
        if (*p == '\n') *p = ' '; /* lines are broken where they end */
    says(said, arena_printf(arena, "%s to %s sent per rank in the run, %s expected",
                            bytes_text(least, arena), bytes_text(most, arena),
                            bytes_text(c->bytes_sent, arena)));
    assert_null(strstr(said, "expected to be"));
    /* its time is made of neither: of each round of pairs the largest message */
    const TraceExchange *x = trace_exchange(t, c->step);
    const int64_t size = groups_size(&c->groups);
    double sum[8] = {0}, worst = 0;
    for (int64_t g = 0; g < groups_count(&c->groups) && g < 8; g++) {
        for (int64_t round = 1; round < size; round++) {
            double largest = 0;
            for (int64_t i = 0; i < size; i++)
                largest = fmax(largest, exchange_pair(x, c, g, i, i ^ round).sent);
            sum[g] += largest;
        }
        worst = fmax(worst, sum[g]);
    }
    assert_true(size == 2 || size == 4);
    says(said, arena_printf(arena, " + %s / ", bytes_text((int64_t)worst * c->row_bytes, arena)));
    says(said, "; of each step the largest message counts.");
}
/* The memory picture says what the rows that it counts as expected come to in the run and at most.
 */
static void hold_memory(const char *file, bool run) {
    char *text =
             arena_strdup(arena, PRINTED(0, "draw", file, "--view", "memory", "--format", "text")),
         *at;
    while ((at = strchr(text, '\n')) != NULL) *at = ' ';
    double alive, with, most;
    const char *said = strstr(text, "Rows of experts count as expected: ");
    assert_non_null(said);
    said += strlen("Rows of experts count as expected: ");
    if (run)
        assert_int_equal(sscanf(said,
                                "%lf KiB alive on rank 0 at the peak, %lf KiB with the run's, %lf "
                                "KiB if as many come as can.",
                                &alive, &with, &most),
                         3);
    else
        assert_int_equal(sscanf(said,
                                "%lf KiB alive on rank 0 at the peak, %lf KiB if as many come as "
                                "can.",
                                &alive, &most),
                         2);
    assert_true(alive > 0 && most >= alive && (!run || (with > 0 && with <= most)));
}
/* Without a run: expected and at most, and that it is not known. With its trace: what it was. */
static void test_words(void **state) {
    (void)state;
    put("moe.yaml", plan_of(arena, &ways[0], "burst", "", ""));
    const char *text = PRINTED(0, "comms", "moe.yaml");
    says(text, "of 256 B: in 12 expected, 12 at most, out 12 expected, 48 at most, sent 9 "
               "expected, 12 at most");
    says(text, "how many there are, a run's trace says");
    says(PRINTED(0, "shapes", "moe.yaml"), "12 expected, 48 at most");
    says(PRINTED(0, "comms", "moe.yaml", "--pairs"), "only a\nrun knows");
    PRINTED(0, "run", "moe.yaml", "-o", "out", "-q");
    text = PRINTED(0, "comms", "out/moe.trace.jsonl");
    says(text, "of 256 B, in the run: in 12 (expected 12, at most 12), out ");
    says(text, "layers.0.moe.list: 48 rows asked for; experts get ");
    says(PRINTED(0, "shapes", "out/moe.trace.jsonl"), "in the run");
    hold_sent(text);
    hold_memory("moe.yaml", false);
    hold_memory("out/moe.trace.jsonl", true);
    hold_story();
    text = PRINTED(0, "comms", "out/moe.trace.jsonl", "--pairs");
    says(text, "all_to_all over ep of layers.0.moe.dispatched: rows of 256 B\n");
    says(text, "  from 0");
    says(text, "  received");
    says(text, "  as in step ");
    assert_null(strstr(text, "are due"));
    assert_null(strstr(text, "expected"));
    says(PRINTED(0, "comms", "out/moe.trace.jsonl", "--pairs", "--format", "csv"),
         "step,pass,op,axis,value,from,to,rows,received,bytes,known");
}
/* A model without experts has none of these words. */
static void test_dense(void **state) {
    (void)state;
    put("dense.yaml", "model: {kind: mlp, sizes: [4, 8, 4]}\ndata: {rows: 4}\nmesh: {tp: 2}\n"
                      "plan: {net1: colwise, net2: rowwise}\n");
    assert_null(strstr(PRINTED(0, "comms", "dense.yaml"), "expert"));
    says(PRINTED(0, "comms", "dense.yaml", "--pairs"), "no collective here moves rows");
    assert_null(strstr(PRINTED(0, "shapes", "dense.yaml"), "at most"));
}
/* Ranks that take rows meant for others: the two ends do not say the same, and that is told. */
static void test_disagree(void **state) {
    (void)state;
    put("bug.yaml", plan_of(arena, &ways[0], "burst", "",
                            "faults: [{at: layers.0.moe.dispatched, offset: 1}]\n"));
    PRINTED(1, "run", "bug.yaml", "-o", "bug", "-q");
    says(PRINTED(0, "comms", "bug/bug.trace.jsonl", "--pairs"), " are due");
}
/* Rows of a rank's list that its neighbours' floor(E / ep) leave to nobody: what was sent of them
 * is what came. */
static void test_for_nobody(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run(a, "floor.yaml",
                         plan_of(a, &ways[4], "spread", "",
                                 "faults: [{at: all_to_all of layers.0.moe.list, do: floor}]\n"),
                         true);
    run_must_be(&r, "different");
    double due = 0, came = 0, sent = 0;
    for (int i = 0; i < r.t->n_exchanges; i++) {
        const TraceExchange *x = &r.t->exchanges[i];
        if (strcmp(x->value, "layers.0.moe.dispatched")) continue;
        for (int64_t k = 0; k < 3; k++) {
            sent += x->sent[k];
            for (int64_t m = 0; m < 3; m++)
                due += k == m ? 0 : x->to[3 * k + m], came += k == m ? 0 : x->from[3 * k + m];
        }
    }
    assert_true(due > came && came > 0);
    assert_true(sent == came);
    arena_free(a);
}
/* What a room for each expert leaves: in words beside the table and under the pairs, and in JSON.
 */
static void test_drops_told(void **state) {
    (void)state;
    put("room.yaml", plan_of(arena, &ways[0], "burst", ", capacity_factor: 0.75", ""));
    PRINTED(0, "run", "room.yaml", "-o", "room", "-q");
    const char *trace = "room/room.trace.jsonl", *line = "layers.0.moe.kept: 48 rows asked for, ";
    says(PRINTED(0, "comms", trace), line);
    const char *text = PRINTED(0, "comms", trace, "--pairs");
    says(text, line);
    int asked, dropped, kept;
    assert_int_equal(sscanf(strstr(text, line),
                            "layers.0.moe.kept: %d rows asked for, %d dropped, "
                            "%d kept; experts get",
                            &asked, &dropped, &kept),
                     3);
    assert_true(dropped > 0 && kept == asked - dropped);
    says(PRINTED(0, "comms", trace, "--format", "json"),
         arena_printf(arena, "\"asked\":%d,\"kept\":%d,\"dropped\":%d,", asked, kept, dropped));
    says(PRINTED(0, "comms", trace, "--pairs", "--format", "json"), "\"dropped\":");
    says(PRINTED(0, "comms", "room.yaml", "--format", "json"), "\"dispatches\":[]");
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_law),        cmocka_unit_test(test_stages),
        cmocka_unit_test(test_bounds),     cmocka_unit_test(test_expected),
        cmocka_unit_test(test_uneven),     cmocka_unit_test(test_few_experts),
        cmocka_unit_test(test_capacity),   cmocka_unit_test(test_words),
        cmocka_unit_test(test_dense),      cmocka_unit_test(test_disagree),
        cmocka_unit_test(test_for_nobody), cmocka_unit_test(test_drops_told),
    };
    return cmocka_run_group_tests(tests, start, end);
}
