/* What records say that a rank holds is what it holds: the memory of a trace against the buffers
 * that are there after each step of the run that follows. And when sources are loaded. */
#include "exec/lives.h"
#include "exec/store.h"
#include "assign/assign.h"
#include "schedule/schedule.h"
#include "support/child.h"
#include "support/support.h"
#include <glob.h>
#include <setjmp.h>
#include <stdlib.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

/* Bytes on each rank just after each step: gathered copies of parameters, and all that is neither
 * that nor at rest. */
typedef struct {
    int ns;
    int64_t nranks, parts;
    int64_t *live, *copies; /* [step][rank]; -1: not run */
    int **reads;            /* of a pipeline, per micro-batch and value: steps that have read it */
    int *all;               /* per value: steps of a micro-batch that do */
} Seen;
typedef struct {
    const void *buf;
    int64_t bytes;
    bool copy;
} Buffer;
/* A buffer counts once, whoever has a view of it. */
static int add(Buffer *b, int n, Buffer x) {
    for (int i = 0; i < n; i++)
        if (b[i].buf == x.buf) return n;
    b[n] = x;
    return n + 1;
}
/* The value whose buffer another is a view of, by the program. */
static const Val *owner(const Program *p, const Val *x) {
    while (x->step >= 0 && step_renames(p, &p->step[x->step])) x = &p->val[p->step[x->step].in[0]];
    return x;
}
/* The coordinate of the pipeline at which what the step makes a term of lies; -1: it makes none. */
static int term_at(const Exec *e, int step) {
    const Step *s = step < 0 ? NULL : &e->p->step[step];
    if (!s || s->kind != ST_MOVE || s->move.kind != MOVE_TERM) return -1;
    return e->p->val[s->in[0]].L.at[e->p->assign->stages->axis];
}
/* Is the step the sum of two terms of different ranks, or of such a sum and one more? */
static bool joins(const Exec *e, const Step *s, bool *more) {
    int at[2];
    bool again;
    *more = false;
    if (!s || s->kind != ST_SUM) return false;
    for (int k = 0; k < 2; k++) at[k] = term_at(e, e->p->val[s->in[k]].step);
    if (at[0] >= 0 && at[1] >= 0) return at[0] != at[1];
    int before = e->p->val[s->in[0]].step;
    *more = at[1] >= 0 && before >= 0 && joins(e, &e->p->step[before], &again);
    return *more;
}
/* The sum of terms of different ranks for which the step makes one of them; or NULL. */
static const Step *joined_by(const Exec *e, int step) {
    if (term_at(e, step) < 0) return NULL;
    int last = e->lives.last[e->p->step[step].out];
    const Step *sum = last < 0 ? NULL : &e->p->step[last];
    bool more;
    return joins(e, sum, &more) ? sum : NULL;
}
/* The last step at which a gradient's sum is still there by itself: a term becomes the sum of both
 * ranks where it lies, before anything is reduced. */
static int sum_until(const Exec *e, int v) {
    const Step *sum = joined_by(e, e->lives.last[v]);
    bool more = false; /* then it is added to the sum that is there */
    if (!sum || !joins(e, sum, &more)) return e->lives.last[v];
    return more ? sum->id : sum->id - 1;
}
/* Not what lies at rest. Results wait for the end of the run, and the optimizer's for the next
 * step: no rank of a machine holds them twice. */
static bool counted(const Exec *e, const Step *s, int v) {
    const Val *x = owner(e->p, &e->p->val[v]);
    if (!exec_store(e, v)->alive || e->p->graph->t[x->tensor].next_of) return false;
    if (x->kind == KIND_PARAM && x->step < 0) return false;
    if (lives_once(e->p, x) || e->p->assign->stages)
        return true; /* what has been read is told apart by read_by_all */
    if (e->lives.last[v] < 0) return x->kind != KIND_PARAM; /* goes with its unit */
    return e->lives.last[v] >= s->id;
}
/* By the layout. */
static int64_t block_bytes_of(const Exec *e, int v, int64_t rank) {
    const Val *x = &e->p->val[v];
    int64_t shape[LAYOUT_MAX_DIMS], es = dtype_size(exec_dtype(e, v));
    return es * region_stored(e->p->mesh, &e->p->graph->t[x->tensor], &x->L, rank, shape);
}
/* A block of an input is a view of the whole batch, which no machine has: it is as large as what
 * the rank was given of it. How many rows a router sends is known to the run alone: records count
 * the rank's share of all (graph_rows). */
static int64_t block_bytes(const Exec *e, int v, int64_t rank) {
    const Val *x = owner(e->p, &e->p->val[v]);
    bool view = x != &e->p->val[v]; /* of zigzag order: virtual ranks have a copy of their part */
    if (view || x->step < 0 || x->list >= 0) return block_bytes_of(e, (int)(x - e->p->val), rank);
    const Local *l = exec_local(e, v, rank);
    return l->buf->bytes > 1 ? (int64_t)l->buf->bytes : 0; /* an empty one has a byte */
}
/* A sum over the group, a clipped gradient, and a term more of ranks that have some already may be
 * written where its input is, if that is read
 * by nothing else. */
static int64_t reused(const Exec *e, const Step *s, int64_t rank) {
    bool sums = s->kind == ST_MOVE &&
                (s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_ALL_REDUCE_MAX);
    bool clips = s->kind == ST_OP && !strcmp(e->p->graph->node[s->node].label, "clip");
    bool adds = e->p->assign->plan->microbatches > 1 && lives_adds_up(e->p, s), more = false;
    if (e->p->assign->stages) joins(e, s, &more);
    if (!(sums || clips || more) || adds || e->lives.last[s->in[0]] != s->id) return 0;
    if (!layout_holds(e->p->mesh, &e->p->val[s->out].L, rank)) return 0;
    const Local *in = exec_local(e, s->in[0], rank);
    return in->buf == exec_local(e, s->out, rank)->buf ? 0 : block_bytes(e, s->in[0], rank);
}
/* Gradients of the micro-batches before that wait to be added to. */
static int64_t sums(const Exec *e, const Step *s, int64_t rank) {
    int64_t bytes = 0;
    for (int v = 0; e->acc && v < e->p->nv; v++)
        if (e->acc[v].x && e->p->val[v].step > s->id) bytes += block_bytes_of(e, v, rank);
    return bytes;
}
/* A slice of blocks that lie in zigzag order is a view on a machine, where they lie side by side;
 * virtual ranks copy it, for its indices are no range. */
static const void *buffer_of(const Exec *e, int v, int64_t rank) {
    const Val *x = owner(e->p, &e->p->val[v]);
    int of = (int)(x - e->p->val);
    return exec_local(e, exec_store(e, of)->alive ? of : v, rank)->buf;
}
/* ---- one micro-batch after the other ---- */
static void open_seen(Seen *w, const Program *p) {
    w->ns = p->ns;
    w->nranks = p->mesh->nranks;
    size_t n = (size_t)(w->ns * w->nranks);
    w->live = malloc(n * sizeof *w->live);
    w->copies = malloc(n * sizeof *w->copies);
    for (size_t i = 0; i < n; i++) w->live[i] = w->copies[i] = -1;
}
/* What another rank has picked of a value goes on all ranks when it goes there. */
static int add_for_others(const Exec *e, int v, int64_t rank, Buffer *b, int n) {
    const Program *p = e->p;
    const Val *x = owner(p, &p->val[v]);
    int of = (int)(x - p->val);
    if (of == v || exec_store(e, of)->alive || !layout_holds(p->mesh, &x->L, rank)) return n;
    return add(b, n, (Buffer){x, block_bytes_of(e, of, rank), x->kind == KIND_PARAM && !x->cot});
}
static void look_at(Seen *w, Exec *e, const Step *s) {
    const Program *p = e->p;
    if (p->assign->plan->microbatches > 1 && lives_once(p, &p->val[s->out]))
        return; /* of the first alone, where no gradients are added up yet */
    Buffer *b = malloc(sizeof *b * (size_t)(p->nv + 1));
    for (int64_t r = 0; r < w->nranks; r++) {
        int n = 0;
        int64_t *live = &w->live[s->id * w->nranks + r], *copies = live - w->live + w->copies;
        *live = *copies = 0;
        for (int v = 0; v < p->nv; v++) {
            if (!counted(e, s, v)) continue;
            if (!layout_holds(p->mesh, &p->val[v].L, r)) {
                n = add_for_others(e, v, r, b, n);
                continue;
            }
            n = add(
                b, n,
                (Buffer){buffer_of(e, v, r), block_bytes(e, v, r), p->val[v].kind == KIND_PARAM});
        }
        for (int i = 0; i < n; i++) *(b[i].copy ? copies : live) += b[i].bytes;
        *live += sums(e, s, r) - reused(e, s, r);
    }
    free(b);
}

/* ---- several micro-batches at once ---- */
/* Kept for the report alone, or for its views that are counted themselves. */
static bool read_by_all(const Seen *w, int64_t part, int v) {
    return w->all[v] && w->reads[part][v] >= w->all[v];
}
/* Gradients count as sums, from the beginning on, until what reduces them is there. */
static int64_t gradients(const Exec *e, const Step *s, int64_t rank) {
    int64_t bytes = 0;
    for (int i = 0; i < e->p->ns; i++) {
        int v = e->p->step[i].out;
        if (!layout_holds(e->p->mesh, &e->p->val[v].L, rank)) continue;
        int last = sum_until(e, v);
        bool gone = lives_deferred(e->p, s) && last >= 0 && last < s->id;
        if (lives_adds_up(e->p, &e->p->step[i]) && !gone) bytes += block_bytes_of(e, v, rank);
    }
    return bytes;
}
/* Is the value a sum of gradients, or a view of one that is counted among them still? */
static bool among_gradients(const Exec *e, const Step *s, const Val *x) {
    const Val *sum = owner(e->p, x);
    if (sum->step < 0 || !lives_adds_up(e->p, &e->p->step[sum->step])) return false;
    return sum == x || e->lives.last[sum - e->p->val] >= s->id;
}
/* Is the value a term whose buffer is counted as something else: as what it is a term of, or as the
 * sum that is just made there? Or does another rank have what is not zero? */
static bool no_term(const Exec *e, const Step *s, const Val *x, int64_t rank) {
    const Step *sum = joined_by(e, x->step);
    if (!sum) return false;
    int in = e->p->step[x->step].in[0];
    const Val *of = &e->p->val[in];
    bool more;
    joins(e, sum, &more); /* then it is there until it is added */
    return (sum == s && !more) || !layout_holds(e->p->mesh, &of->L, rank) ||
           among_gradients(e, s, of) || counted(e, s, in);
}
static void look_at_rank(Seen *w, Exec *e, const Step *s, int64_t rank, Buffer *b) {
    const Program *p = e->p;
    int64_t now = e->now, live = gradients(e, s, rank), copies = 0;
    int n = 0;
    bool here = false;
    for (e->now = 0; e->now < e->n_each; e->now++)
        for (int v = 0; e->each[e->now] && v < p->nv; v++) {
            const Val *x = &p->val[v];
            if (!counted(e, s, v) || (e->shared[v] && e->now != now)) continue;
            if (among_gradients(e, s, x)) continue;
            if (!e->shared[v] && read_by_all(w, e->now, v)) continue;
            if (e->shared[v] && e->lives.last[v] >= 0 && e->lives.last[v] < s->id &&
                lives_deferred(p, s))
                continue;
            if (!layout_holds(p->mesh, &x->L, rank) || no_term(e, s, x, rank)) continue;
            n = add(b, n,
                    (Buffer){buffer_of(e, v, rank), block_bytes(e, v, rank),
                             x->kind == KIND_PARAM && !x->cot});
        }
    e->now = now;
    here = layout_holds(p->mesh, &p->val[s->out].L, rank);
    const Stages *st = p->assign->stages;
    int64_t at = mesh_coord(p->mesh, rank, st->axis);
    bool view = s->kind == ST_MOVE && move_views(s->move.kind) && !lives_deferred(p, s);
    if (view) /* nothing is done where another copy is */
        here = at == st->home[s->stage] || (lives_both(p, s) && at == st->home[s->stage + st->n]);
    for (int k = 0; k < s->nin && !view; k++)
        here |= s->in[k] >= 0 && layout_holds(p->mesh, &p->val[s->in[k]].L, rank);
    if (!here) return;
    for (int i = 0; i < n; i++) *(b[i].copy ? &copies : &live) += b[i].bytes;
    live -= reused(e, s, rank);
    int64_t *most = &w->live[s->id * w->nranks + rank], *of = most - w->live + w->copies;
    if (live > *most) *most = live;
    if (copies > *of) *of = copies;
}
static void look_at_all(Seen *w, Exec *e, const Step *s) {
    const Program *p = e->p;
    int64_t parts = w->parts = p->assign->plan->microbatches;
    Buffer *b = malloc(sizeof *b * (size_t)(p->nv * parts + 1));
    if (!w->reads) {
        w->reads = calloc((size_t)parts, sizeof *w->reads);
        for (int64_t k = 0; k < parts; k++) w->reads[k] = calloc((size_t)p->nv + 1, sizeof(int));
        w->all = calloc((size_t)p->nv + 1, sizeof(int));
        for (int i = 0; i < p->ns; i++) {
            int r[RULE_MAX_IN + 2], n = step_reads(&p->step[i], r);
            for (int k = 0; k < n; k++) w->all[r[k]]++;
        }
    }
    for (int64_t r = 0; r < w->nranks; r++) look_at_rank(w, e, s, r, b);
    int v[RULE_MAX_IN + 2], n = step_reads(s, v);
    for (int k = 0; k < n; k++) w->reads[e->now][v[k]]++;
    free(b);
}
static void look(void *arg, Exec *e, const Step *s, bool checked) {
    Seen *w = arg;
    if (checked) return;
    if (!w->live) open_seen(w, e->p);
    if (e->p->assign->stages) look_at_all(w, e, s);
    else look_at(w, e, s);
}
static int64_t said(const Trace *t, int step, int64_t rank, const char *category) {
    int64_t bytes = 0;
    for (int i = 0; i < t->n_memory; i++)
        if (t->memory[i].step <= step && !strcmp(t->memory[i].category, category) &&
            rankset_has(&t->memory[i].ranks, rank))
            bytes = t->memory[i].bytes;
    return bytes;
}
/* All beside what lies at rest and copies of parameters. */
static int64_t said_live(const Trace *t, int step, int64_t rank) {
    return said(t, step, rank, "activations") + said(t, step, rank, "gradients");
}
/* Gathers that are held ahead of the step that asks for them are more than virtual ranks hold. */
static bool gathers_ahead(const Trace *t) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].held) return true;
    return false;
}
static void compare(const char *plan, const Trace *t, const Seen *w) {
    bool ahead = gathers_ahead(t);
    for (int i = 0; i < w->ns; i++)
        for (int64_t r = 0; r < w->nranks; r++) {
            int64_t live = w->live[i * w->nranks + r], copies = w->copies[i * w->nranks + r];
            if (live < 0) continue;
            int64_t want = said_live(t, i, r), gathered = said(t, i, r, "gathered");
            if (live != want || (ahead ? copies > gathered : copies != gathered))
                print_error("%s: step %d, rank %lld: %lld and %lld bytes are held, %lld and %lld "
                            "are said\n",
                            plan, i, (long long)r, (long long)live, (long long)copies,
                            (long long)want, (long long)gathered);
            assert_true(live == want);
            assert_true(ahead ? copies <= gathered : copies == gathered);
        }
}
static void hold_text(Arena *a, const char *plan, const char *text, size_t n, const char *pass) {
    Seen w = {0};
    PlanSet sets[] = {{"pass", pass}, {"optimizer.name", "adamw"}, {"optimizer.steps", "1"}};
    PipelineOptions o = {.execute = true, .threads = 1, .watch = look, .watch_arg = &w};
    PipelineReport rep;
    bool train = pass && !strcmp(pass, "train");
    Trace *t = pipeline_run(a, diags_new(a),
                            (PlanText){plan, text, n, sets,
                                       train  ? 3
                                       : pass ? 1
                                              : 0},
                            &o, &rep);
    assert_true(t && t->n_memory && w.ns);
    compare(plan, t, &w);
    for (int64_t k = 0; w.reads && k < w.parts; k++) free(w.reads[k]);
    free(w.reads);
    free(w.all);
    free(w.live);
    free(w.copies);
}
static void hold(const char *plan, const char *pass) {
    Arena *a = arena_new();
    size_t n;
    const char *text = child_read(a, plan, &n);
    hold_text(a, plan, text, n, pass);
    arena_free(a);
}
/* Blocks of several sizes, one of them empty, and a sum in place. */
static void test_uneven(void **state) {
    (void)state;
    static const char text[] =
        "model: {kind: mlp, sizes: [5, 11, 7], layer_names: [up, down]}\ndata: {rows: 9}\n"
        "mesh: {dp: 4, tp: 3}\nplan: {up: colwise, down: rowwise}\npass: backward\n";
    Arena *a = arena_new();
    hold_text(a, "uneven", text, sizeof text - 1, NULL);
    hold_text(a, "uneven", text, sizeof text - 1, "train");
    static const char clipped[] =
        "model: {kind: mlp, sizes: [5, 11, 7], layer_names: [up, down]}\ndata: {rows: 9}\n"
        "mesh: {dp: 4, tp: 3}\nplan: {up: colwise, down: rowwise}\npass: train\n"
        "optimizer: {name: sgd, lr: 0.1, clip: 0.01, steps: 1}\n";
    hold_text(a, "clipped", clipped, sizeof clipped - 1, NULL);
    arena_free(a);
}

/* In the last micro-batch every rank holds the gradients of those before it, as its adjoints made
 * them: whole parameters where they are cut at rest, since the reductions are put off. */
static void test_sums_over_microbatches(void **state) {
    (void)state;
    static const char
        ddp[] = "model: {kind: mlp, sizes: [5, 11, 7], layer_names: [up, down]}\n"
                "data: {rows: 18, microbatches: 2, dtype: f32}\n"
                "mesh: {dp: 4, tp: 3}\nplan: {up: colwise, down: rowwise}\npass: backward\n",
        hybrid[] =
            "model: {preset: llama3-8b, layers: 1, shrink: 64}\nmesh: {rep: 2, dp: 2}\n"
            "data: {batch: 8, sequence: 8, dtype: f32, cut: {batch: rep*dp}, microbatches: 2}\n"
            "pass: backward\nrecompute: block\n"
            "data_parallel: {mode: hsdp, replicate: rep, shard: dp}\n";
    Arena *a = arena_new();
    hold_text(a, "sums", ddp, sizeof ddp - 1, NULL);
    hold_text(a, "sums", ddp, sizeof ddp - 1, "train");
    hold_text(a, "sums, hybrid", hybrid, sizeof hybrid - 1, NULL);
    arena_free(a);
}

/* Modes of data parallelism, units, recomputation, with and without micro-batches, in every
 * combination. */
static void test_every_mode(void **state) {
    (void)state;
    static const char *const modes[] = {
        "mode: hsdp, replicate: rep, shard: dp",
        "mode: hsdp, replicate: rep, shard: dp, unit: block",
        "mode: fsdp, axis: rep*dp, unit: block",
        "mode: ddp, axis: rep*dp",
        "mode: hsdp, replicate: rep, shard: dp, unit: block, reshard: false",
        "mode: hsdp, replicate: rep, shard: dp, unit: block, reshard: blocks, grad_sync: scatter",
        "mode: fsdp, axis: rep*dp, unit: block, reshard: step, grad_sync: microbatch",
        "mode: ddp, axis: rep*dp, unit: block, grad_sync: microbatch",
        "mode: fsdp, axis: rep*dp, unit: block, reshard_over: dp",
    };
    static const char *const rest[] = {"", "recompute: block\n"};
    static const char *const parts[] = {"", ", microbatches: 2"};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof modes / sizeof *modes; i++)
        for (int k = 0; k < 2; k++)
            for (int m = 0; m < 2; m++) {
                const char *text = arena_printf(
                    a,
                    "model: {preset: llama3-8b, layers: 2, shrink: 64, parts: [embedding, blocks, "
                    "norm, head, loss]}\nmesh: {rep: 2, dp: 2, tp: 2}\n"
                    "data: {batch: 8, sequence: 8, dtype: f32, cut: {batch: rep*dp}%s}\n"
                    "recipe: torchtitan-llama3\npass: backward\n%sdata_parallel: {%s}\n",
                    parts[m], rest[k], modes[i]);
                const char *name = arena_printf(a, "%s%s %s", modes[i], parts[m], rest[k]);
                hold_text(a, name, text, strlen(text), NULL);
                hold_text(a, name, text, strlen(text), "train");
            }
    arena_free(a);
}

/* Pipelines: what several micro-batches hold at once, whatever the order; weights that are gathered
 * for each of them or once, activations that are made again, a table on two stages. */
static void test_pipelines(void **state) {
    (void)state;
    static const char *const orders[] = {"gpipe",      "1f1b",           "interleaved",
                                         "looped-bfs", "interleaved-zb", "zb-h1",
                                         "zb-v",       "dualpipe-v",     "dualpipe"};
#define TIED                                                                                       \
    "preset: llama3.2-1b, layers: 5|mesh: {pp: 2, tp: 2}\nnames: torchtitan\n"                     \
    "recipe: torchtitan-llama3\nrecompute: block"
#define KEPT                                                                                       \
    "preset: llama3.2-1b, layers: 4|mesh: {dp: 2, pp: 2}\n"                                        \
    "data_parallel: {mode: fsdp, unit: block, reshard: false}"
    static const char *const rest[] = {
        "preset: llama3-8b, layers: 4|mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp}",
        TIED,
        "preset: llama3-8b, layers: 4|mesh: {pp: 2, dp: 2}\n"
        "data_parallel: {mode: fsdp, grad_sync: microbatch}",
        "preset: llama3-8b, layers: 4|mesh: {dp: 2, pp: 2}\n"
        "data_parallel: {mode: ddp, unit: block, grad_sync: microbatch}",
        KEPT,
        "preset: llama3-8b, layers: 4|mesh: {pp: 2, dp: 2}\n"
        "data_parallel: {mode: fsdp, unit: block}",
        "preset: llama3-8b, layers: 4|mesh: {r: 2, pp: 2, dp: 2}\n"
        "data_parallel: {mode: fsdp, axis: r*dp, unit: block, reshard_over: dp}",
        "preset: llama3-8b, layers: 4|mesh: {pp: 2, cp: 2}\ncontext_parallel: {mode: ring}",
        "preset: qwen3-30b-a3b, layers: 4|mesh: {pp: 2, dp: 2}\nmoe: {axis: dp}"};
#undef TIED
#undef KEPT
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++)
        for (size_t k = i % 2; k < 9; k += 2) {
            const char *mesh = strchr(rest[i], '|') + 1;
            const char *text = arena_printf(
                a,
                "model: {%.*s, shrink: 64, parts: [embedding, blocks, norm, head, loss]}\n"
                "%s\ndata: {batch: 16, sequence: 8, dtype: f32%s}\n"
                "pass: backward\npipeline: {schedule: %s, microbatches: 4}\n",
                (int)(mesh - rest[i] - 1), rest[i], mesh,
                strstr(mesh, "r*dp") ? ", cut: {batch: r*dp}" : "", orders[k]);
            hold_text(a, arena_printf(a, "%s %s", orders[k], mesh), text, strlen(text),
                      i == 2 ? "train" : NULL);
        }
    /* two copies of each stage; a table on two stages */
    static const char *const two[] = {
        "preset: llama3-8b, layers: 4|schedule: dualpipe, microbatches: 8",
        "preset: llama3.2-1b, layers: 4|schedule: dualpipe, microbatches: 8",
        "preset: llama3.2-1b, layers: 4|schedule: 1f1b, microbatches: 8, tied: pair"};
    for (size_t i = 0; i < sizeof two / sizeof *two; i++) {
        const char *how = strchr(two[i], '|') + 1;
        const char *text = arena_printf(
            a,
            "model: {%.*s, shrink: 64, parts: [embedding, blocks, norm, head, loss]}\n"
            "mesh: {pp: 4, dp: 2}\ndata_parallel: {mode: fsdp}\n"
            "data: {batch: 16, sequence: 8, dtype: f32}\npass: backward\npipeline: {%s}\n",
            (int)(how - two[i] - 1), two[i], how);
        hold_text(a, how, text, strlen(text), NULL);
    }
    arena_free(a);
}

/* The most that a rank holds at once beside what lies at rest, by what memory says and by what the
 * actions of the schedule say: what comes behind them, sums of gradients of two ranks too, adds
 * nothing to a gradient of each parameter and the activations. */
static void test_most_of_each_schedule(void **state) {
    (void)state;
    int n;
    const ScheduleKind *kind = schedule_kinds(&n);
    static const char *const tied[] = {"1f1b, microbatches: 4, tied: pair", /* a table on two */
                                       "dualpipe, microbatches: 4"};
    for (int i = 0; i < n + 2; i++) {
        Arena *a = arena_new();
        const char *how =
            i < n ? arena_printf(a, "%s, microbatches: 4", kind[i].name) : tied[i - n];
        PlanRun r = plan_run(
            a, "most.yaml",
            arena_printf(a,
                         "model: {preset: %s, layers: 4, shrink: 64, parts: [embedding, blocks, "
                         "norm, head, loss]}\nmesh: {pp: 2}\ndata: {batch: 16, sequence: 8, dtype: "
                         "f32}\npass: backward\npipeline: {schedule: %s}\n",
                         i < n ? "llama3-8b" : "llama3.2-1b", how),
            false);
        assert_non_null(r.t);
        int64_t gradients = 0;
        for (int rank = 0; rank < 2; rank++) {
            int64_t table = 0, memory = 0;
            for (int k = 0; k < r.t->n_actions; k++)
                if (r.t->actions[k].rank == rank && r.t->actions[k].held > table)
                    table = r.t->actions[k].held;
            for (int k = 0; k < r.t->n_memory; k++) {
                int64_t step = r.t->memory[k].step, now = said_live(r.t, (int)step, rank) +
                                                          said(r.t, (int)step, rank, "gathered");
                if (now > memory) memory = now;
            }
            if (memory != table)
                fail_msg("%s, rank %d: memory says %lld bytes, the schedule's actions %lld", how,
                         rank, (long long)memory, (long long)table);
            gradients = said(r.t, -1, rank, "parameters");
            assert_true(table > gradients); /* one of each parameter, and activations */
        }
        arena_free(a);
    }
}

/* Units in every order, on stages that share a rank; axes over which parameters are cut and tokens
 * are not. */
static void test_units_in_pipelines(void **state) {
    (void)state;
    static const char *const rest[] = {
        "mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block}|",
        "mesh: {r: 2, pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, axis: r*dp, unit: block}|",
        "mesh: {r: 2, pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, axis: r*dp}|, cut: {batch: r*dp}",
        ("mesh: {r: 2, pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, axis: r*dp, unit: block, "
         "reshard: false}|")};
    Arena *a = arena_new();
    int n;
    const ScheduleKind *kind = schedule_kinds(&n);
    for (int i = 0; i < 4 * n; i += i < 2 * n ? 1 : 2) {
        const char *bar = strchr(rest[i / n], '|');
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 4, shrink: 64, parts: [embedding, blocks, norm, "
            "head, loss]}\n%.*s\ndata: {batch: 16, sequence: 8, dtype: f32%s}\npass: backward\n"
            "pipeline: {schedule: %s, microbatches: 4}\n",
            (int)(bar - rest[i / n]), rest[i / n], bar + 1, kind[i % n].name);
        hold_text(a, text, text, strlen(text), NULL);
    }
    arena_free(a);
}

/* What stages compute again, all of them or each another amount, where a rank has several stages
 * and where both ways have copies. */
static void test_recompute(void **state) {
    (void)state;
    static const char *const rest[] = {
        "mesh: {pp: 2, dp: 2}\ndata_parallel: {mode: fsdp, unit: block}",
        "mesh: {tp: 2, pp: 2}\nnames: torchtitan\nrecipe: torchtitan-llama3",
        "mesh: {pp: 2, cp: 2}\ncontext_parallel: {mode: ring, order: zigzag}"};
    static const char *const words[] = {"stage", "[stage, none]", "[block, stage]",
                                        "[none, stage]"};
    Arena *a = arena_new();
    int n;
    const ScheduleKind *kind = schedule_kinds(&n);
    for (int i = 0; i < 3 * n; i++) {
        const ScheduleKind *k = &kind[i % n];
        const char *again = words[i % 4];
        if (k->most_chunks != 1) again = i % 2 ? "stage" : "[none, stage, block, stage]";
        const char *text = arena_printf(
            a,
            "model: {preset: llama3-8b, layers: 5, shrink: 64, parts: [embedding, blocks, norm, "
            "head, loss]}\n%s\ndata: {batch: 8, sequence: 8, dtype: f32}\npass: backward\n"
            "pipeline: {schedule: %s, microbatches: 4, recompute: %s}\n",
            rest[i / n], k->name, again);
        hold_text(a, text, text, strlen(text), NULL);
    }
    arena_free(a);
}

/* ---- axes of one rank ---- */
static int64_t most_on_rank_0(Arena *a, const char *mesh, const char *rest) {
    const char *text = arena_printf(a,
                                    "%s\nmodel: {preset: llama3-8b, layers: 2, shrink: 32, "
                                    "parts: [embedding, blocks, norm, head, loss]}\n"
                                    "names: torchtitan\nrecipe: torchtitan-llama3\n%s",
                                    mesh, rest);
    PipelineOptions o = {.execute = false};
    PipelineReport rep;
    Trace *t =
        pipeline_run(a, diags_new(a), (PlanText){"ones", text, strlen(text), NULL, 0}, &o, &rep);
    assert_true(t && t->n_memory);
    int64_t most = 0;
    for (int i = 0; i < t->n_memory; i++) {
        int step = t->memory[i].step;
        int64_t all = said_live(t, step, 0) + said(t, step, 0, "gathered");
        if (all > most) most = all;
    }
    return most;
}
/* What the optimizer keeps is a category of its own: two moments for each trained parameter, in
 * their own dtype, and a copy of the parameters where the plan says so; on each rank of what lies
 * there. */
static void test_what_the_optimizer_keeps(void **state) {
    (void)state;
    static const struct {
        const char *data, *pass;
        int64_t params, kept; /* bytes per parameter */
    } row[] = {{"dtype: f32", "forward", 4, 0},
               {"dtype: f32", "train", 4, 8},
               {"dtype: bf16", "train", 2, 4},
               {"dtype: bf16, moments: f32", "train", 2, 8},
               {"dtype: bf16, moments: f32, master: f32", "train", 2, 12},
               {"dtype: bf16, master: f32", "train", 2, 8},
               {"dtype: bf16, master: f32", "backward", 2, 4}};
    int64_t rest[2] = {0};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        const char *text = arena_printf(
            a,
            "mesh: {dp: 3, tp: 2}\nmodel: {preset: llama3-8b, layers: 1, shrink: 32, parts: "
            "[blocks, norm, head, loss]}\ndata: {batch: 3, sequence: 8, %s}\nrecipe: "
            "torchtitan-llama3\nnames: torchtitan\ndata_parallel: {mode: fsdp, axis: dp}\npass: "
            "%s\noptimizer: {name: adamw, steps: 1}\n",
            row[i].data, row[i].pass);
        PipelineReport rep;
        Trace *t = pipeline_run(a, diags_new(a), (PlanText){"kept", text, strlen(text), NULL, 0},
                                &(PipelineOptions){.execute = false}, &rep);
        assert_non_null(t);
        for (int r = 0; r < 6; r += 5) {
            int64_t n = said(t, -1, r, "parameters") / row[i].params;
            assert_true(n > 0);
            if (!rest[r > 0]) rest[r > 0] = n;
            assert_int_equal(n, rest[r > 0]);
            assert_int_equal(said(t, -1, r, "optimizer"), n * row[i].kept);
        }
        arena_free(a);
    }
}
/* A gather, a sum or a cut over an axis of one rank moves nothing and makes no copy: what lies at
 * rest is what is used, whatever is said of data parallelism, and a sum in place stays in place. */
/* Gradients of parameters in a dtype of their own: each is held and sent so, in records, in what a
 * rank holds and in what it sends; nothing else changes. */
static void test_gradients_of_their_own_dtype(void **state) {
    (void)state;
    static const char *const dtypes[] = {"", ", gradients: f32"};
    static const char *const modes[] = {"ddp", "fsdp"};
    for (size_t m = 0; m < 2; m++) {
        int64_t sent[2][2] = {{0}}, shapes[2][2] = {{0}}, rest[2];
        Arena *a = arena_new();
        for (size_t k = 0; k < 2; k++) {
            const char *text = arena_printf(
                a,
                "mesh: {dp: 2, tp: 2}\nmodel: {preset: llama3-8b, layers: 1, shrink: 32, parts: "
                "[embedding, blocks, norm, head, loss]}\ndata: {batch: 4, sequence: 8, dtype: "
                "bf16%s}\nrecipe: torchtitan-llama3\nnames: torchtitan\ndata_parallel: {mode: "
                "%s, axis: dp}\npass: train\noptimizer: {name: adamw, steps: 1}\n",
                dtypes[k], modes[m]);
            PipelineReport rep;
            Trace *t = pipeline_run(a, diags_new(a), plan_text("grads", text),
                                    &(PipelineOptions){.execute = false}, &rep);
            assert_non_null(t);
            for (int i = 0; i < t->n_collectives; i++) {
                const TraceCollective *c = &t->collectives[i];
                bool own = c->subject.role == OF_PARAM_GRADIENT;
                sent[k][own] += collective_on(c, 0).bytes_sent;
                if (own) assert_string_equal(c->dtype, k ? "f32" : "bf16");
            }
            for (int i = 0; i < t->n_values; i++)
                shapes[k][t->values[i].kind == VALUE_GRADIENT] += t->values[i].shape.local[0].bytes;
            rest[k] = said(t, -1, 0, "parameters") + said(t, -1, 0, "optimizer");
        }
        assert_int_equal(rest[0], rest[1]);
        for (int own = 0; own < 2; own++) {
            assert_true(sent[0][own] > 0 && shapes[0][own] > 0);
            assert_int_equal(sent[1][own], (own + 1) * sent[0][own]);
            assert_int_equal(shapes[1][own], (own + 1) * shapes[0][own]);
        }
        arena_free(a);
    }
}
static void test_an_axis_of_one_rank_holds_no_copy(void **state) {
    (void)state;
    static const char *const rest[] = {
        "pass: forward\n",
        "pass: backward\n",
        "pass: backward\nrecompute: block\nsave_gathered: false\n",
        "pass: backward\ndata: {batch: 6, sequence: 8, microbatches: 3}\n",
        "pass: train\noptimizer: {name: adamw, lr: 0.1, clip: 0.1, steps: 1}\n",
    };
    static const char *const modes[] = {
        "data_parallel: {mode: ddp}\n",
        "data_parallel: {mode: fsdp}\n",
        "data_parallel: {mode: fsdp, unit: block, reshard: false}\n",
        "data_parallel: {mode: hsdp, replicate: dp, shard: cp}\n",
    };
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof rest / sizeof *rest; i++) {
        int64_t alone = most_on_rank_0(a, "mesh: {tp: 2}", rest[i]);
        assert_true(alone > 0);
        for (size_t k = 0; k < sizeof modes / sizeof *modes; k++)
            assert_int_equal(most_on_rank_0(a, "mesh: {dp: 1, cp: 1, tp: 2}",
                                            arena_printf(a, "%s%s", rest[i], modes[k])),
                             alone);
    }
    arena_free(a);
}

/* ---- late sources ---- */
static Lives lives_of(Arena *a, const char *model, const char *rest, const Program **program) {
    const char *text = arena_printf(a, "%s%s", model, rest);
    Diags *d = diags_new(a);
    Plan *p = plan_parse(a, d, plan_text("late", text));
    Mesh *mesh = assign_mesh(a, d, p);
    Model *m = model_build(a, d, p, mesh);
    assert_non_null(m);
    if (p->pass == PASS_TRAIN) assert_true(model_add_optimizer(a, d, p, m));
    Program *q = lower(a, assign_plan(a, d, p, mesh, m, NULL));
    assert_int_equal(diags_errors(d), 0);
    *program = q;
    return lives_find(q, p->dtype, a);
}
static int64_t bytes_of(const Program *p, int val, int64_t es) {
    const GTensor *t = &p->graph->t[p->val[val].tensor];
    int64_t n = t->is_int ? 8 : es;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    return n;
}
/* Parameters wait that stand behind so many bytes of sources, and what is before does not; how many
 * wait. */
static int wait_behind(const Program *p, const Lives *l, int64_t es) {
    int64_t loaded = 0;
    int late = 0, sources = 0;
    for (int v = 0; v < p->nv; v++) {
        if (p->val[v].step >= 0) continue;
        sources++;
        assert_true(l->late[v] == (loaded > LIVES_FIRST));
        late += l->late[v];
        if (!l->late[v]) loaded += bytes_of(p, v, es);
    }
    assert_in_range(late, 1, sources - 1);
    return late;
}
/* Who waits is the same on any mesh, and follows from the dtype. Of a small model, and in training,
 * nobody does. */
static void test_late_follows_from_the_program(void **state) {
    (void)state;
    Arena *a = arena_new();
    const Program *one, *many;
    const char *model = "model: {preset: llama3-8b, layers: 4}\n",
               *small = "model: {preset: llama3-8b, layers: 4, shrink: 8}\n";
    Lives x = lives_of(a, model, "data: {batch: 8, sequence: 16, dtype: f32}\nmesh: {tp: 1}\n",
                       &one),
          y = lives_of(a, model,
                       "data: {batch: 8, sequence: 16, dtype: f32}\nmesh: {dp: 2, tp: 4}\n"
                       "recipe: torchtitan-llama3\nnames: torchtitan\n",
                       &many);
    int late = wait_behind(one, &x, 4);
    for (int v = 0; v < one->nv; v++)
        if (one->val[v].step < 0) assert_true(x.late[v] == y.late[many->first[one->val[v].tensor]]);
    x = lives_of(a, model, "data: {batch: 8, sequence: 16, dtype: bf16}\nmesh: {tp: 1}\n", &one);
    assert_true(wait_behind(one, &x, 2) < late);
    x = lives_of(a, small, "data: {batch: 8, sequence: 16, dtype: f32}\nmesh: {tp: 1}\n", &one);
    for (int v = 0; v < one->nv; v++) assert_false(x.late[v]);
    x = lives_of(a, model,
                 "data: {batch: 8, sequence: 16, dtype: f32}\nmesh: {tp: 1}\npass: train\n"
                 "optimizer: {name: adamw, steps: 1}\n",
                 &one);
    for (int v = 0; v < one->nv; v++) assert_false(x.late[v]);
    arena_free(a);
}
static void test_records_say_what_is_held(void **state) {
    (void)state;
    glob_t found;
    assert_int_equal(glob("plans/*.yaml", 0, NULL, &found), 0);
    assert_true(found.gl_pathc > 20);
    for (size_t i = 0; i < found.gl_pathc; i++) hold(found.gl_pathv[i], NULL);
    hold("plans/20-llama3-8b-fsdp-tp.yaml", "train");
    hold("plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml", "train");
    globfree(&found);
}
/* The table of an embedding is gathered with its unit in the backward pass too, where no kernel
 * reads it: it does not outlive the head's weight, which is of the same unit. */
static void test_units_are_given_up_whole(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *plan = "plans/20-llama3-8b-fsdp-tp.yaml";
    size_t n;
    const char *text = child_read(a, plan, &n);
    PipelineOptions o = {.execute = false};
    PipelineReport rep;
    Trace *t = pipeline_run(a, diags_new(a), (PlanText){plan, text, n, NULL, 0}, &o, &rep);
    assert_true(t && t->n_memory);
    int64_t most = 0;
    for (int i = 0; i < t->n_memory; i++)
        if (!strcmp(t->memory[i].category, "gathered") && t->memory[i].bytes > most)
            most = t->memory[i].bytes;
    assert_true(most > 0);
    for (int64_t r = 0; r < t->ranks; r++)
        assert_int_equal(said(t, t->memory[t->n_memory - 1].step, r, "gathered"), 0);
    arena_free(a);
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_records_say_what_is_held),
                                       cmocka_unit_test(test_units_are_given_up_whole),
                                       cmocka_unit_test(test_uneven),
                                       cmocka_unit_test(test_every_mode),
                                       cmocka_unit_test(test_sums_over_microbatches),
                                       cmocka_unit_test(test_pipelines),
                                       cmocka_unit_test(test_units_in_pipelines),
                                       cmocka_unit_test(test_most_of_each_schedule),
                                       cmocka_unit_test(test_recompute),
                                       cmocka_unit_test(test_what_the_optimizer_keeps),
                                       cmocka_unit_test(test_gradients_of_their_own_dtype),
                                       cmocka_unit_test(test_an_axis_of_one_rank_holds_no_copy),
                                       cmocka_unit_test(test_late_follows_from_the_program)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
