/* What a run on processes says it took: records `measured`, with threads as ranks. What the wire
 * counted for each pair of ranks is what the pieces of the step say (exec/pieces.h), in all shipped
 * plans; times are ordered and leave nothing out; pictures and texts show them beside the model. It
 * holds no time to any number. */
#include "cost/cost.h"
#include "drive/calibrate.h"
#include "trace/trace_took.h"
#include "exec/narrow.h"
#include "exec/pieces.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/child.h"
#include "support/support.h"
#include "support/threads.h"
#include "support/wire_plans.h"
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* Bytes from each rank to each other, as the pieces of every step say. */
typedef struct {
    Arena *a;
    int64_t ranks;
    int n, cap;
    double **sent; /* per step: [from][to]; NULL: it moves nothing between ranks */
} Matrices;
static void list_pairs(void *arg, Exec *e, const Step *s, bool checked) {
    Matrices *m = arg;
    if (checked) return;
    while (m->n <= s->id) *ARENA_PUSH(m->a, m->sent, m->n, m->cap) = NULL;
    if (s->kind != ST_MOVE) return;
    Act act = act_of(s);
    Pieces x = pieces_of_run(e, s, &act);
    bool narrow =
        e->narrow && (e->narrow[s->in[0]] || narrow_rounds(e, s)); /* held as f32, sent as bf16 */
    int64_t size = dtype_size(narrow ? DT_BF16 : exec_dtype(e, s->out));
    double *of = m->sent[s->id] = ARENA_ARRAY(m->a, double, m->ranks * m->ranks);
    for (int64_t from = 0; from < m->ranks; from++)
        for (int64_t to = 0; to < m->ranks; to++)
            if (from != to)
                of[from * m->ranks + to] = (double)(pieces_between(&x, from, to) * size);
}
typedef struct {
    int plans, piped, moves, uneven, records, exact, units;
    double bytes;
} Counts;
static void compare(const Trace *t, const Matrices *m, Counts *c) {
    for (int i = 0; i < t->n_measured; i++) {
        const TraceMeasured *x = &t->measured[i];
        const double *want = m->sent[x->step];
        double all = 0, most = 0;
        for (int64_t to = 0; to < t->ranks; to++) {
            double due = want ? want[x->rank * t->ranks + to] : 0,
                   did = x->n_sent ? x->sent[to] : 0;
            if (due != did)
                fail_msg(
                    "%s, step %d: rank %d sent %g bytes to rank %d, the record's pieces say %g",
                    t->plan, x->step, (int)x->rank, did, (int)to, due);
            c->uneven += most > 0 && due > 0 && due != most;
            all += due;
            most = due > 0 ? due : most;
        }
        assert_true((double)x->wire_bytes == all);
        c->moves += all > 0;
        c->bytes += all;
    }
}
/* What ranks sent of a record's steps: of all that travel together. */
static double wire_of(const Trace *t, const TraceCollective *c, int64_t rank) {
    double all = 0;
    for (int i = 0; i < t->n_measured; i++) {
        const TraceMeasured *x = &t->measured[i];
        bool of = x->step == c->step;
        for (int k = 0; k < c->n_with; k++) of |= x->step == c->with[k];
        if (of && x->rank == rank) all += (double)x->wire_bytes;
    }
    return all;
}
/* True: each rank of a group has sent what the record says. Where parts are unequal (the record has
 * the largest, or pads) some have sent less. */
static bool compare_group(const Trace *t, const TraceCollective *c, int64_t g) {
    int exact = 0, equal = 0, n = (int)groups_size(&c->groups);
    double first = 0;
    for (int i = 0; i < n; i++) {
        int64_t rank = groups_member(&c->groups, g, i);
        double did = wire_of(t, c, rank), due = (double)collective_on(c, rank).bytes_sent;
        if (!i) first = did;
        exact += did == due;
        equal += did == first;
        if (did > due || (i == n - 1 && equal == n && exact < n))
            fail_msg("%s, %s at step %d: rank %d sent %g bytes, the record says %g", t->plan, c->op,
                     c->step, (int)rank, did, due);
    }
    return exact == n;
}
/* For copies: be the record of one value or of a unit of parameters. */
static void compare_records(const Trace *t, Counts *c) {
    static const char *const copies[] = {"all_gather", "all_to_all", "shift", "send"};
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        bool copy = false, equal = true;
        for (size_t k = 0; k < sizeof copies / sizeof *copies; k++)
            copy |= !strcmp(x->op, copies[k]);
        /* of rows the record says what to expect, of lists of them what frameworks exchange */
        bool rows = x->row_bytes || !strcmp(x->dtype, "i64");
        if (!copy || rows || x->planted || x->skipped) continue;
        for (int64_t g = 0; g < groups_count(&x->groups); g++) equal &= compare_group(t, x, g);
        c->records++;
        c->exact += equal;
        c->units += equal && x->n_with > 0;
    }
}
static void one_plan(const char *file, const char *text, Counts *c) {
    Arena *a = arena_new();
    Matrices m = {.a = a};
    PlanRun shape = plan_run(a, file, text, false);
    assert_non_null(shape.t);
    m.ranks = shape.t->ranks;
    c->piped += shape.t->schedule != NULL;
    PipelineOptions o = {.execute = true, .threads = 1, .watch = list_pairs, .watch_arg = &m};
    plan_run_with(a, file, text, &o);
    o.watch = NULL;
    Threads x = {.ranks = m.ranks, .flip_rank = -1, .text = text, .o = o};
    ThreadsRun r = threads_run(a, &x);
    assert_non_null(r.t);
    if (r.t->verdict) assert_true(r.t->n_measured > 0);
    compare(r.t, &m, c);
    if (r.t->n_measured) compare_records(r.t, c);
    c->plans += r.t->n_measured > 0;
    arena_free(a);
}
static void test_wire_bytes(void **state) {
    (void)state;
    Counts c = {0};
    PlanFiles f = plan_files("plans/[0-9]*.yaml", "shipped plans");
    while (plan_files_next(&f)) one_plan(f.path, f.text, &c);
    for (size_t i = 0; i < sizeof wire_plans / sizeof *wire_plans; i++)
        one_plan("support/wire_plans.h", wire_plans[i].text, &c);
    print_message("%d plans (%d pipelines), %d sends, %.0f MiB, %d of other sizes than the one "
                  "before; of %d records of copies %d exact, %d of them units of parameters\n",
                  c.plans, c.piped, c.moves, c.bytes / 1048576, c.uneven, c.records, c.exact,
                  c.units);
    assert_true(f.take < 20 || (c.plans >= 20 && c.piped && c.moves > 1000));
    assert_true(f.take < 20 || c.units >= 20);
}

/* ---- times ---- */
static const char toy[] =
    "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, blocks, norm, head, "
    "loss]}\nnames: torchtitan\nrecipe: torchtitan-llama3\n"
    "data: {batch: 6, sequence: 16, microbatches: 2}\nmesh: {dp: 3, tp: 2}\n"
    "data_parallel: {mode: fsdp, axis: dp, unit: block}\n"
    "pass: train\noptimizer: {name: adamw, steps: 2}\n";
static ThreadsRun run_toy(Arena *a, bool engine_sums) {
    Threads x = {.ranks = 6,
                 .flip_rank = -1,
                 .engine_sums = engine_sums,
                 .text = toy,
                 .o = {.execute = true, .threads = 1, .events = true}};
    ThreadsRun r = threads_run(a, &x);
    threads_must_be(&r, "equivalent");
    return r;
}
static void test_times(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = run_toy(a, false).t;
    double begin = 0, end = 0;
    assert_int_equal(t->n_measured % 6, 0);
    for (int i = 0; i < t->n_measured; i++) {
        const TraceMeasured *m = &t->measured[i];
        assert_int_equal(m->rank, i % 6);
        if (m->rank == 0) {
            assert_true(!i || m->step > m[-1].step);
            assert_true(m->start == end); /* when the slowest has ended the step before */
            begin = m->start;
        }
        assert_true(m->start == begin && m->end >= m->start);
        assert_true(m->wait >= 0 && m->wait <= m->end - m->start);
        end = m->end > end ? m->end : end;
    }
    /* every step that has a record was measured */
    for (int i = 0; i < t->n_collectives; i++) {
        bool found = false;
        for (int k = 0; k < t->n_measured; k++)
            found |= t->measured[k].step == t->collectives[i].step && t->measured[k].wire_bytes > 0;
        assert_true(found);
    }
    arena_free(a);
}
/* Is it a step of that record, or one whose data travel with it? */
static bool travels_with(const Trace *t, int record, int step) {
    for (int i = 0; i < t->n_collectives; i++)
        for (int w = 0; w < t->collectives[i].n_with && t->collectives[i].step == record; w++)
            if (t->collectives[i].with[w] == step) return true;
    return record == step;
}
/* Model beside measurement: of a rank the sum of its records, of all the slowest of each step. */
static void test_took(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = run_toy(a, false).t;
    int n, of_all, moves = 0;
    const TraceTook *all = trace_took(t, -1, a, &of_all);
    double *most = ARENA_ARRAY(a, double, of_all + 1);
    for (int64_t rank = 0; rank < t->ranks; rank++) {
        const TraceTook *k = trace_took(t, rank, a, &n);
        assert_int_equal(n, of_all);
        for (int i = 0; i < n; i++) {
            double sum = 0, model = 0;
            for (int m = 0; m < t->n_measured; m++)
                if (travels_with(t, k[i].step, t->measured[m].step) && t->measured[m].rank == rank)
                    sum += t->measured[m].end - t->measured[m].start;
            for (int m = 0; m < t->n_events; m++)
                if (t->events[m].step == k[i].step && rankset_has(&t->events[m].ranks, rank))
                    model = t->events[m].end - t->events[m].start - t->events[m].wait;
            assert_true(fabs(k[i].measured - sum) < 1e-12 && k[i].modelled == model);
            assert_true(sum > 0 && model > 0);
            assert_true(k[i].step == all[i].step && (!i || k[i].step > k[i - 1].step));
            most[i] = sum > most[i] ? sum : most[i];
            moves += k[i].moves;
        }
    }
    for (int i = 0; i < of_all; i++) assert_true(all[i].measured >= most[i] - 1e-12);
    assert_int_equal(moves, t->n_collectives * t->ranks);
    assert_false(trace_took_in_memory(t));
    t->n_measured = t->n_events = 0;
    for (int i = 0; i < of_all; i++) {
        const TraceTook *k = trace_took(t, -1, a, &n);
        assert_true(k[i].measured < 0 && k[i].modelled < 0);
    }
    arena_free(a);
}
/* Sums of an engine: what was given to it; who gets what is not known. */
static void test_engine_sums(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Trace *t = run_toy(a, true).t;
    int sums = 0, copies = 0;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        for (int k = 0; k < t->n_measured; k++) {
            const TraceMeasured *m = &t->measured[k];
            if (m->step != c->step) continue;
            assert_true(m->wire_bytes > 0);
            assert_int_equal(m->n_sent, c->reduce ? 0 : t->ranks);
            sums += c->reduce != NULL;
            copies += c->reduce == NULL;
        }
    }
    assert_true(sums > 20 && copies > 20);
    arena_free(a);
}
/* Read back, the records are the same; what makes no sense is no trace. */
static void test_file(void **state) {
    (void)state;
    Arena *a = arena_new();
    Trace *t = run_toy(a, false).t;
    size_t n, m;
    char *text = trace_text(t, a, true, &n);
    Trace *again = trace_read(a, diags_new(a), "t.jsonl", text, n);
    assert_non_null(again);
    assert_int_equal(again->n_measured, t->n_measured);
    assert_string_equal(trace_text(again, a, true, &m), text);
    assert_null(strstr(trace_text(t, a, false, &m), "\"measured\""));
    static const char *const bad[][2] = {
        {"\"type\":\"measured\",\"rank\":0,", "\"type\":\"measured\",\"rank\":6,"},
        {"\"wait\":", "\"wait\":-"},
        {"\"sent\":[0,", "\"sent\":["}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        char *at = strstr(text, "\"type\":\"measured\""), *hit = at ? strstr(at, bad[i][0]) : NULL;
        assert_non_null(hit);
        const char *worse = arena_printf(a, "%.*s%s%s", (int)(hit - text), text, bad[i][1],
                                         hit + strlen(bad[i][0]));
        Diags *d = diags_new(a);
        assert_null(trace_read(a, d, "t.jsonl", worse, strlen(worse)));
        assert_string_equal(d->item[0].code, "E0109");
    }
    arena_free(a);
}
/* The sentence of the picture is the sum of the rank's records, where nothing travels together. */
static void test_sentence(void **state) {
    (void)state;
    Arena *a = arena_new();
    PipelineOptions po = {.execute = true, .events = true, .threads = 1};
    Threads x = {.ranks = 2,
                 .flip_rank = -1,
                 .text = "model: {kind: mlp, sizes: [16, 32, 16]}\ndata: {rows: 12}\n"
                         "mesh: {tp: 2}\nplan: {net1: colwise, net2: rowwise}\n",
                 .o = po};
    const Trace *t = threads_run(a, &x).t;
    double span = 0, comm = 0, compute = 0;
    for (int i = 0; i < t->n_measured; i++) {
        const TraceMeasured *m = &t->measured[i];
        bool moves = false;
        if (m->rank != 1) continue;
        for (int k = 0; k < t->n_collectives; k++) moves |= t->collectives[k].step == m->step;
        *(moves ? &comm : &compute) += m->end - m->start;
        span = m->end;
    }
    RenderOptions o = {.view = "timeline", .rank = 1, .layer = -1, .measured = true};
    size_t n;
    double rest = span - compute - comm; /* as printed the parts add up */
    const char *part[3],
        *whole =
            time_sum_text((double[]){compute, comm, rest > 1e-3 * span ? rest : 0}, 3, part, a);
    const char *svg = render_text(t, diags_new(a), &o, FORMAT_SVG, a, &n),
               *how = arena_printf(a, "rank 1: step %s = compute %s + communication %s", whole,
                                   part[0], part[1]);
    assert_non_null(svg);
    if (!strstr(svg, how)) print_error("not said: %s in %.300s\n", how, strstr(svg, "Measured, "));
    assert_non_null(strstr(svg, how));
    assert_true(comm > 0 && compute > 0);
    /* half of it, or of the step before, at the same time: that much is hidden */
    Trace *both = (Trace *)(uintptr_t)t;
    TraceMeasured *before = NULL, *move = NULL;
    for (int i = 0; i < t->n_measured && !move; i++) {
        TraceMeasured *m = &both->measured[i];
        if (m->rank != 1) continue;
        for (int k = 0; k < t->n_collectives; k++)
            if (t->collectives[k].step == m->step) move = m;
        if (!move) before = m;
    }
    assert_true(move && before);
    double half = fmin(move->end - move->start, before->end - before->start) / 2;
    move->end += before->end - half - move->start;
    move->start = before->end - half;
    svg = render_text(t, diags_new(a), &o, FORMAT_SVG, a, &n);
    span = 0;
    for (int i = 0; i < t->n_measured; i++)
        if (t->measured[i].rank == 1) span = fmax(span, t->measured[i].end);
    rest = span - compute - (comm - half);
    time_sum_text((double[]){compute, comm - half, rest > 1e-3 * span ? rest : 0}, 3, part, a);
    assert_non_null(strstr(svg, arena_printf(a, " + exposed communication %s", part[1])));
    assert_non_null(
        strstr(svg, arena_printf(a, " Communication %s (overlaps counted once), of which ",
                                 time_text(comm, a))));
    arena_free(a);
}
/* The picture, the table and Chrome's events: the model's timeline and the rank's own. */
static void test_shown(void **state) {
    (void)state;
    Arena *a = arena_new();
    ThreadsRun r = run_toy(a, false);
    static const RenderFormat formats[] = {FORMAT_SVG, FORMAT_TEXT, FORMAT_CHROME};
    for (int i = 0; i < 3; i++)
        for (int rank = -1; rank < 6; rank += 6) {
            RenderOptions o = {.view = "timeline", .rank = rank, .layer = -1, .measured = true};
            size_t n;
            Diags *d = diags_new(a);
            const char *text = render_text(r.t, d, &o, formats[i], a, &n);
            if (!text) run_print(&(PlanRun){.d = d});
            assert_non_null(text);
            assert_non_null(strstr(text, rank < 0 ? "measured, rank 0" : "measured, rank 5"));
            assert_non_null(strstr(text, rank < 0 ? "modelled, rank" : "modelled, rank"));
            if (i == 1) assert_non_null(strstr(text, "where the model says"));
        }
    /* without the model, and without what was measured */
    RenderOptions o = {.view = "timeline", .rank = -1, .layer = -1, .measured = true};
    size_t n;
    r.t->n_events = 0;
    const char *text = render_text(r.t, diags_new(a), &o, FORMAT_TEXT, a, &n);
    assert_non_null(strstr(text, "measured, rank 0"));
    assert_null(strstr(text, "modelled"));
    r.t->n_measured = 0;
    Diags *d = diags_new(a);
    assert_null(render_text(r.t, d, &o, FORMAT_TEXT, a, &n));
    assert_string_equal(d->item[0].code, "E0211");
    o.view = "mesh";
    assert_null(render_text(r.t, d, &o, FORMAT_TEXT, a, &n));
    assert_string_equal(d->item[1].code, "E0212");
    arena_free(a);
}
/* The page after the timelines: bars of each kind, at every size; its title is the kind furthest
 * from the model, of all steps of the rank added up. */
static void test_kinds(void **state) {
    (void)state;
    Arena *a = arena_new();
    ThreadsRun r = run_toy(a, false);
    static const char *const presets_of[] = {"wide", "column", "slide", "a4"};
    for (int i = 0; i < 12; i++) {
        int n, kinds = 0, far = -1, rank = i / 4 == 1 ? 5 : 0;
        if (i == 8) r.t->n_events = 0;
        const TraceTook *k = trace_took(r.t, rank, a, &n);
        double *want = ARENA_ARRAY(a, double, n), *had = ARENA_ARRAY(a, double, n);
        for (int j = 0; j < n; j++) {
            int first = 0; /* of its kind */
            while (strcmp(k[first].op, k[j].op) != 0 || k[first].size != k[j].size ||
                   strcmp(k[first].axis ? k[first].axis : "", k[j].axis ? k[j].axis : "") != 0)
                first++;
            want[first] += k[j].modelled, had[first] += k[j].measured;
        }
        for (int j = 0; j < n; j++) {
            kinds += had[j] > 0;
            if (had[j] > 0 &&
                (far < 0 || fabs(log(had[j] / want[j])) > fabs(log(had[far] / want[far]))))
                far = j;
        }
        const char *report,
            *of = arena_printf(a, "took %.3g times what is modelled, the furthest of %d kinds",
                               had[far] / want[far], kinds);
        Scene *page[VIEW_MAX_PAGES];
        RenderOptions o = {.view = "timeline",
                           .rank = rank,
                           .layer = -1,
                           .measured = true,
                           .preset = presets_of[i % 4]};
        int pages = render_pages(r.t, diags_new(a), &o, a, page);
        assert_true(pages > 1);
        if (i >= 8) of = "no model to compare with";
        if (!strstr(page[pages - 1]->title, of))
            fail_msg("%s, not: %s", page[pages - 1]->title, of);
        bool modelled = false; /* in the key, where there are such bars */
        for (int m = 0; m < page[pages - 1]->n_marks; m++) {
            const Mark *x = &page[pages - 1]->marks[m];
            modelled |= x->kind == MARK_TEXT && !strcmp(x->run[0].s, "modelled");
        }
        assert_int_equal(modelled, i < 8);
        if (scene_lint(page[pages - 1], a, &report)) fail_msg("%s: %s", o.preset, report);
    }
    arena_free(a);
}
/* ---- calibrate ---- */
typedef struct {
    const char *text; /* rank 0's */
    int ranks, silent;
} Calibrated;
static void calibrate_rank(void *arg, Arena *a, Diags *d, struct Ranks *ranks) {
    Calibrated *x = arg;
    const char *text = calibrate(a, d, ranks, NULL);
    if (text && *text) x->text = text;
    else if (text) __atomic_fetch_add(&x->silent, 1, __ATOMIC_RELAXED);
    if (!text) run_print(&(PlanRun){.d = d});
}
/* On machines of 4, 2 and 1 processes each; the profile is one that the model of time reads. */
static void test_calibrate(void **state) {
    (void)state;
    for (int beside = 4; beside; beside /= 2) {
        Arena *a = arena_new();
        Calibrated c = {0};
        Threads x = {.ranks = 4, .flip_rank = -1, .work = calibrate_rank, .arg = &c};
        setenv("PMI_RANK", "0", 1);
        setenv("MPI_LOCALNRANKS", arena_printf(a, "%d", beside), 1);
        ThreadsRun r = threads_run(a, &x);
        unsetenv("PMI_RANK");
        unsetenv("MPI_LOCALNRANKS");
        if (!c.text) run_print(&(PlanRun){.d = r.d});
        assert_non_null(c.text);
        assert_int_equal(c.silent, 3);
        const char *file = temp_path(a, "machine.yaml");
        child_write(file, c.text);
        Diags *d = diags_new(a);
        const Hardware *h = hardware_find(a, d, file, NULL, (Loc){0});
        if (!h) run_print(&(PlanRun){.d = d});
        assert_non_null(h);
        assert_int_equal(h->gpus_per_node, beside);
        assert_true(h->intra_bandwidth > 0 && h->flops_f32 > 0 && h->kernel_overhead > 0);
        assert_int_equal(strstr(c.text, "not measured") != NULL, beside == 4);
        assert_true(h->memory > 0 && h->memory % (1 << 20) == 0); /* MiB: no raw bytes in words */
        arena_free(a);
    }
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    Calibrated c = {0};
    Threads x = {.ranks = 1, .flip_rank = -1, .work = calibrate_rank, .arg = &c};
    d = threads_run(a, &x).d;
    assert_string_equal(d->item[0].code, "E0603");
    assert_null(c.text);
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_wire_bytes), cmocka_unit_test(test_times),
        cmocka_unit_test(test_took),       cmocka_unit_test(test_engine_sums),
        cmocka_unit_test(test_file),       cmocka_unit_test(test_shown),
        cmocka_unit_test(test_sentence),   cmocka_unit_test(test_kinds),
        cmocka_unit_test(test_calibrate),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
