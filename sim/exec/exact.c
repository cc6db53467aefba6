/* Level 3: both programs on integer data. See exact.h. */
#include "exec/exact.h"
#include "exec/walk.h"
#include "ops/op.h"
#include <assert.h>
#include <string.h>

typedef struct {
    Check *c;
    const Program *ref;
    Exec **one;    /* per micro-batch: the unsharded program, run */
    int64_t parts; /* micro-batches */
    int64_t part;  /* the one that is run */
    bool ranks;    /* it is the ranks that run: look at what they make */
    FullSource *src;
    double work, left; /* of a step; of all that is to come */
} Exact;

/* ---- the program without its optimizer ---- */
/* A copy that ends with the gradients: no optimizer, and nothing that reads what it makes. */
static const Program *to_gradients(Arena *arena, const Program *p) {
    if (!p->graph->nn_model) return p;
    Program *q = arena_memdup(arena, p, sizeof *p);
    Graph *g = arena_memdup(arena, p->graph, sizeof *g);
    g->nn_model = 0;
    q->graph = g;
    q->val = arena_memdup(arena, p->val, base_mul((size_t)p->nv, sizeof *p->val));
    q->step = ARENA_ARRAY(arena, Step, p->ns + 1);
    q->ns = q->n_forward = 0;
    bool *gone = ARENA_ARRAY(arena, bool, p->nv + 1);
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        int r[RULE_MAX_IN + 2], n = step_reads(s, r);
        bool out = s->pass == PHASE_OPTIMIZER;
        for (int k = 0; k < n; k++) out |= gone[r[k]];
        gone[s->out] = out;
        q->val[s->out].step = out ? -1 : q->ns;
        if (out) continue;
        q->step[q->ns] = *s;
        q->step[q->ns].id = q->ns;
        q->ns++;
        if (i < p->n_forward) q->n_forward = q->ns;
    }
    return q;
}

/* ---- what must be there ---- */
/* Does the micro-batch take the way that the use is of? */
static bool takes(const Exact *x, int64_t part, const Part *use) {
    return stages_way(x->c->e->p->assign->stages, part) == use->way;
}
static void add(double *sum, const Exec *e, const Tensor *t) {
    for (int64_t i = 0, n = tensor_count(t); i < n && !e->dev->sizes_only; i++)
        sum[i] += compare_at(t->p, e->dtype, i);
}
/* The sum of the uses that a cotangent lists, over micro-batches [from, lim), modulo. The caller
 * gives it back. */
static double *cotangent(const Exact *x, const Val *v, int64_t from, int64_t lim) {
    Device *host = x->c->e->host;
    const Tensor *like = NULL;
    double *sum = NULL;
    for (int64_t i = from; i < lim; i++)
        for (int k = 0; k < v->n_parts; k++) {
            if (!takes(x, i, &v->parts[k])) continue;
            int use = reference_use(x->ref, &v->parts[k]);
            assert(use >= 0);
            const Tensor *t = &exec_local(x->one[i], use, 0)->t;
            int64_t n = tensor_count(t);
            assert(!like || tensor_count(like) == n);
            if (!like) sum = device_array(host, n, sizeof *sum);
            if (!like && !host->sizes_only) memset(sum, 0, (size_t)n * sizeof *sum);
            like = t;
            add(sum, x->one[i], t);
        }
    if (!like) return NULL;
    Tensor all = {.nd = 1, .n = {tensor_count(like)}, .s = {1}, .p = sum};
    device_residues(host, &all, DT_F64, x->src->modulus);
    return sum;
}
/* The elements of a value of the unsharded program. */
static Region elements(const Exact *x, int64_t part, int val, Arena *tmp) {
    const GTensor *t = &x->ref->graph->t[x->ref->val[val].tensor];
    return t->listed ? region_of(x->one[part], val, 0, tmp) : region_whole(t);
}
static void look_forward(const Exact *x, const Step *s) {
    const Exec *one = x->one[x->part];
    int whole = x->ref->first[x->c->e->p->val[s->out].tensor];
    if (!exec_store(one, whole)->alive) return;
    Arena *tmp = arena_new();
    Region box = elements(x, x->part, whole, tmp);
    Whole w = {.box = &box, .raw = region_packed(&box)};
    w.raw.p = exec_local(one, whole, 0)->t.p;
    check_exact(x->c, s, &w, x->src->modulus);
    arena_free(tmp);
}
static void look_backward(const Exact *x, const Step *s, int64_t from, int64_t lim) {
    const Val *v = &x->c->e->p->val[s->out];
    double *sum = cotangent(x, v, from, lim);
    assert(sum && v->n_parts);
    Arena *tmp = arena_new();
    Region box = elements(x, from, reference_use(x->ref, &v->parts[0]), tmp);
    Whole w = {.box = &box, .want = sum};
    check_exact(x->c, s, &w, x->src->modulus);
    x->c->e->host->release(x->c->e->host, sum);
    arena_free(tmp);
}

/* ---- the walks ---- */
static void begun(void *arg, WalkInstance at) {
    Exact *x = arg;
    x->part = x->src->part = x->c->part = at.part;
    x->c->step = at.iteration;
}
static void stepped(void *arg, const Step *s) {
    Exact *x = arg;
    progress_add(x->src->progress, x->work < x->left ? x->work : x->left);
    x->left -= x->work < x->left ? x->work : x->left;
    if (!x->ranks) return;
    const Program *p = x->c->e->p;
    if (!p->val[s->out].cot) look_forward(x, s);
    else if (lives_deferred(p, s)) look_backward(x, s, 0, x->parts);
    else look_backward(x, s, x->part, x->part + 1);
}
/* A gradient has been added up; the sum is in the last micro-batch that takes the step's way. */
static void summed(void *arg, const Step *s) {
    const Exact *x = arg;
    if (!x->ranks) return;
    Exec *e = x->c->e;
    const Stages *stages = e->p->assign->stages;
    int64_t now = e->now, last = x->parts - 1;
    while (stages_way(stages, last) != stages_way_of(stages, s->stage)) last--;
    exec_turn(e, last);
    look_backward(x, s, 0, x->parts);
    exec_turn(e, now);
}
/* Runs a program on integer data; false if it cannot be run to its end. */
static bool walk(Exec *e, Exact *x, int64_t from, int64_t parts) {
    e->full = reference_full;
    e->full_arg = x->src;
    e->modulus = x->src->modulus;
    const Observer look = {.arg = x, .begun = begun, .stepped = stepped, .summed = summed};
    const Observer *const all[] = {&look};
    Walk w = {.e = e,
              .iterations = 1,
              .from = from,
              .parts = parts,
              .observers = all,
              .n = 1,
              .tasks = x->ranks ? tasks_new(e->p, x->c->arena) : NULL};
    return walk_run(&w) == WALK_DONE;
}
static bool once(Exact *x, Dtype dtype) {
    Check *c = x->c;
    Exec *keep = c->e,
         *all = exec_new(c->arena, to_gradients(c->arena, keep->p), dtype, keep->pool);
    bool ok = true;
    x->one = ARENA_ARRAY(c->arena, Exec *, x->parts);
    x->work = x->left / (double)(x->parts * (x->ref->ns + all->p->ns));
    x->ranks = false;
    for (int64_t i = 0; i < x->parts; i++) {
        Exec *e = x->one[i] = exec_new(c->arena, x->ref, dtype, keep->pool);
        e->dev = e->host = keep->host; /* what it makes is read as it lies */
        e->keep_all = true;
        ok = ok && walk(e, x, i, i + 1);
    }
    all->host = keep->host;
    all->dev = keep->dev;
    c->e = all;
    x->ranks = true;
    ok = ok && walk(all, x, 0, x->parts);
    c->e = keep;
    progress_add(x->src->progress, x->left);
    for (int64_t i = 0; i < x->parts; i++) exec_free(x->one[i]);
    exec_free(all);
    return ok;
}

/* ---- the numbers ---- */
static double size_of(const Graph *g, const GNode *n, char letter) {
    for (int i = 0; i < n->nin; i++) {
        int d = rule_find(&n->rule, i, letter);
        if (d >= 0) return (double)g->t[n->in[i]].size[d];
    }
    return 1;
}
/* The most products that a contraction adds up, of the forward pass and with `backward` towards its
 * operands. */
static double longest_sum(const Graph *g, bool backward) {
    double most = 1;
    for (int n = 0; n < (g->nn_model ? g->nn_model : g->nn); n++) {
        const GNode *node = &g->node[n];
        if (node->op->lin != LIN_BILINEAR) continue;
        for (int to = backward ? 0 : node->nin; to <= node->nin; to++) {
            double k = 1;
            for (char ch = 'a'; ch <= 'z'; ch++) {
                bool has = to < node->nin ? rule_find(&node->rule, to, ch) >= 0
                                          : rule_find_out(&node->rule, ch) >= 0;
                if (!has) k *= size_of(g, node, ch);
            }
            if (k > most) most = k;
        }
    }
    return most;
}
void exact_check(Check *c, const Plan *p, const Model *m, const FullSource *like, int seeds) {
    bool backward = c->e->p->ns > c->e->p->n_forward;
    const Program *ref =
        to_gradients(c->arena, reference_program(c->arena, p, m, like->d, backward));
    /* sums of up to K products of residues must stay exact: K p^2 < 2^24 in f32, else in f64 */
    double k = longest_sum(&m->g, backward), most = 0x1p24;
    double modulus = c->e->dtype == DT_F32 && k * 31 * 31 >= most && k * 13 * 13 < most ? 13 : 31;
    Dtype dtype = k * modulus * modulus < most ? c->e->dtype : DT_F64;
    FullSource src = {.w = like->w,
                      .d = like->d,
                      .g = &m->g,
                      .whole = like->whole,
                      .parts = like->parts,
                      .dev = like->dev,
                      .pool = like->pool,
                      .modulus = modulus,
                      .progress = like->progress,
                      .exact_work = like->exact_work / seeds};
    progress_phase(like->progress, "integer data");
    for (int i = 0; i < seeds; i++) {
        src.seed = p->seed * 1000003 + (uint64_t)i + 1;
        Exact x = {.c = c, .ref = ref, .parts = like->parts, .src = &src, .left = src.exact_work};
        if (!once(&x, dtype)) return;
    }
}
