/* Numbers of the memory picture. See memory.h. */
#include "render/memory/memory.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static bool is_grad(const TraceValue *v) {
    return v->subject.role == OF_PARAM_GRADIENT || v->kind == VALUE_GRADIENT;
}
static int count_steps(const Trace *t) {
    int n = 0;
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].step >= n) n = t->values[i].step + 1;
    for (int i = 0; i < t->n_memory; i++)
        if (t->memory[i].step >= n) n = t->memory[i].step + 1;
    return n;
}

/* The values that the records count, with their lifetimes on one rank. */
static void find_lives(Arena *a, const Trace *t, MemCourse *c) {
    c->life = ARENA_ARRAY(a, MemLife, t->n_values + 1);
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        const TraceLocal *l = words_find_local(&v->shape, c->rank);
        bool copy = trace_param(t, v->shape.name) != NULL;
        if (!l || !v->alive) continue;
        MemLife life = {v, l->bytes, v->alive->from, v->alive->until, is_grad(v), copy, false};
        life.shared = life.grad || v->once || (copy && life.from <= 0);
        c->life[c->n_life++] = life;
    }
}

/* Of a pipeline: who does each step. */
static void find_turns(Arena *a, const Trace *t, MemCourse *c) {
    c->turn = ARENA_ARRAY(a, MemTurn, c->n_steps + 1);
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (v->step >= 0) c->turn[v->step] = v->once ? MEM_AFTER : v->way ? MEM_OTHER : MEM_OWN;
    }
}
/* A micro-batch has the values of its own way, and what all of them share; of that, the copies of
 * parameters are gone when all micro-batches are. */
static bool goes_along(const MemLife *l, MemTurn turn) {
    if (turn == MEM_AFTER) return l->shared && !l->copy;
    return l->shared || (l->v->way > 0) == (turn == MEM_OTHER);
}
static bool alive_at(const MemCourse *c, const MemLife *l, int step) {
    return l->from <= step && l->last >= step && goes_along(l, c->turn[step]);
}

/* Bytes of the lives by step: of all, of gradients. */
typedef struct {
    int64_t *all, *grads;
} Sums;
static void add_life(const MemCourse *c, const MemLife *l, int64_t *sum) {
    int from = l->from < c->n_steps ? l->from : c->n_steps,
        end = l->last < c->n_steps ? l->last + 1 : c->n_steps;
    sum[from] += l->bytes, sum[end < from ? from : end] -= l->bytes;
}
static Sums sums_of(Arena *a, const MemCourse *c, MemTurn turn) {
    Sums s = {ARENA_ARRAY(a, int64_t, c->n_steps + 2), ARENA_ARRAY(a, int64_t, c->n_steps + 2)};
    for (int i = 0; i < c->n_life; i++) {
        if (!goes_along(&c->life[i], turn)) continue;
        add_life(c, &c->life[i], s.all);
        if (c->life[i].grad) add_life(c, &c->life[i], s.grads);
    }
    for (int i = 1; i < c->n_steps; i++) s.all[i] += s.all[i - 1], s.grads[i] += s.grads[i - 1];
    return s;
}
/* The lives against what was recorded. They are of one micro-batch: in a pipeline the records have
 * more, what the others hold meanwhile. */
static void add_up(Arena *a, MemCourse *c, const bool *known, bool pipeline) {
    Sums s = sums_of(a, c, MEM_OWN), of[] = {s, sums_of(a, c, MEM_OTHER), sums_of(a, c, MEM_AFTER)};
    for (int i = 0; i < c->n_steps; i++)
        s.all[i] = of[c->turn[i]].all[i], s.grads[i] = of[c->turn[i]].grads[i];
    c->exact = true;
    if (pipeline && c->peak >= 0) {
        c->flight = c->at_peak - s.all[c->peak];
        c->exact = c->flight >= 0;
    }
    for (int i = 0; i < c->n_steps && !pipeline; i++)
        c->exact &= !known[i] || (s.all[i] == c->all[i] && s.grads[i] == c->grad[i]);
    if (!c->exact) c->flight = 0;
}

/* What a category's records say about the rank, by step; where there is none it has what it had.
 * Marks the steps of records. False if there is none at all. */
static bool recorded(const Trace *t, int64_t rank, const char *category, int n_steps, bool *known,
                     int64_t *out) {
    bool any = false;
    for (int i = 0; i < n_steps; i++) out[i] = -1;
    for (int i = 0; i < t->n_memory; i++) {
        const TraceMemory *m = &t->memory[i];
        if (!m->category || strcmp(m->category, category) || m->step < 0 ||
            !rankset_has(&m->ranks, rank))
            continue;
        out[m->step] = m->bytes;
        any = known[m->step] = true;
    }
    for (int i = 0; i < n_steps; i++)
        if (out[i] < 0) out[i] = i ? out[i - 1] : 0;
    return any;
}

int64_t memory_rank(int64_t asked, const MemClass *cls, int n) {
    return asked >= 0 ? asked : n ? cls[0].rank : 0;
}
bool memory_course(Arena *a, const Trace *t, int64_t rank, MemCourse *c) {
    *c = (MemCourse){.rank = rank, .n_steps = count_steps(t), .peak = -1};
    c->live = ARENA_ARRAY(a, int64_t, c->n_steps + 1);
    c->grad = ARENA_ARRAY(a, int64_t, c->n_steps + 1);
    c->all = ARENA_ARRAY(a, int64_t, c->n_steps + 1);
    bool *known = ARENA_ARRAY(a, bool, c->n_steps + 1);
    if (!recorded(t, rank, "activations", c->n_steps, known, c->live)) return false;
    recorded(t, rank, "gradients", c->n_steps, known, c->grad);
    recorded(t, rank, "gathered", c->n_steps, known, c->all);
    for (int i = 0; i < c->n_steps; i++) {
        c->live[i] += c->grad[i];
        c->all[i] += c->live[i];
        if (c->peak < 0 || c->all[i] > c->at_peak) c->peak = i, c->at_peak = c->all[i];
    }
    find_lives(a, t, c);
    find_turns(a, t, c);
    add_up(a, c, known, t->schedule != NULL);
    return true;
}

/* Rows of a value that lives on the rank: expected, and in the run (-1: nobody counted). */
static void rows_of(const Trace *t, const MemLife *l, int64_t rank, int64_t *due, double *run) {
    const TraceLocal *at = words_find_local(&l->v->shape, rank);
    const TraceRouted *k = trace_routed(t, l->v->list);
    *due = at && l->v->most > 0 ? at->shape[0] : 0;
    *run = k ? routed_on(k, rank) : -1;
}
bool memory_rows(Arena *a, const Trace *t, const MemCourse *c, int64_t *run, int64_t *most) {
    int64_t *with_run = arena_memdup(a, c->all, sizeof *c->all * (size_t)(c->n_steps + 1)),
            *with_most = arena_memdup(a, c->all, sizeof *c->all * (size_t)(c->n_steps + 1));
    bool any = false, known = true;
    for (int i = 0; i < c->n_life && c->exact; i++) {
        const MemLife *l = &c->life[i];
        int64_t due;
        double rows;
        rows_of(t, l, c->rank, &due, &rows);
        if (due <= 0) continue;
        any = true;
        known &= rows >= 0;
        double one = (double)l->bytes / (double)due;
        for (int s = l->from; s <= l->last && s < c->n_steps; s++) {
            if (!alive_at(c, l, s)) continue;
            with_run[s] += llround(one * rows) - l->bytes;
            with_most[s] += llround(one * (double)l->v->most) - l->bytes;
        }
    }
    *run = *most = 0;
    for (int s = 0; s < c->n_steps; s++) {
        if (with_run[s] > *run) *run = with_run[s];
        if (with_most[s] > *most) *most = with_most[s];
    }
    if (!known) *run = -1;
    return any;
}

static int by_bytes(const void *a, const void *b) {
    const MemLife *x = *(const MemLife *const *)a, *y = *(const MemLife *const *)b;
    if (x->bytes != y->bytes) return x->bytes > y->bytes ? -1 : 1;
    if (x->from != y->from) return x->from < y->from ? -1 : 1;
    return x < y ? -1 : x > y;
}
int memory_alive(Arena *a, const MemCourse *c, int step, const MemLife ***out) {
    const MemLife **l = ARENA_ARRAY(a, const MemLife *, c->n_life + 1);
    int n = 0;
    for (int i = 0; i < c->n_life; i++)
        if (alive_at(c, &c->life[i], step)) l[n++] = &c->life[i];
    if (n) qsort(l, (size_t)n, sizeof *l, by_bytes);
    *out = l;
    return n;
}

/* ---- classes ---- */

static int64_t width_of(const char *dtype) {
    static const struct {
        const char *name;
        int64_t bytes;
    } row[] = {{"f32", 4}, {"f64", 8}, {"bf16", 2}, {"f16", 2}};
    for (size_t i = 0; dtype && i < sizeof row / sizeof *row; i++)
        if (!strcmp(dtype, row[i].name)) return row[i].bytes;
    return 0;
}

/* Weights as the parameter records say; what else lies at rest in training is the optimizer's. */
static void split_rest(const Trace *t, MemClass *m, int64_t rest) {
    int64_t weights = 0, es = width_of(t->dtype);
    for (int i = 0; i < t->n_params; i++) {
        const TraceLocal *l = words_find_local(&t->params[i].rest, m->rank);
        weights += l ? l->bytes : 0;
    }
    bool train = t->pass == PASS_TRAIN;
    m->bytes[MEM_PARAMS] = rest;
    for (int i = 0; i < t->n_memory; i++) /* older traces have it among the parameters */
        if (t->memory[i].category && !strcmp(t->memory[i].category, "optimizer") &&
            rankset_has(&t->memory[i].ranks, m->rank))
            m->bytes[MEM_OPTIMIZER] = t->memory[i].bytes;
    if (!m->bytes[MEM_OPTIMIZER] && train && weights > 0 && rest > weights) {
        m->bytes[MEM_PARAMS] = weights;
        m->bytes[MEM_OPTIMIZER] = rest - weights;
    }
    if (es > 0 && m->bytes[MEM_PARAMS] % es == 0) m->numbers = m->bytes[MEM_PARAMS] / es;
}

static int by_total(const void *a, const void *b) {
    const MemClass *x = a, *y = b;
    if (x->total != y->total) return x->total > y->total ? -1 : 1;
    return x->rank < y->rank ? -1 : x->rank > y->rank;
}

int memory_classes(Arena *a, const Trace *t, MemClass **out) {
    MemClass *m = ARENA_ARRAY(a, MemClass, t->n_memory + 1);
    int n = 0;
    for (int i = 0; i < t->n_memory; i++) {
        const TraceMemory *r = &t->memory[i];
        if (!r->category || strcmp(r->category, "parameters") || r->ranks.n < 1) continue;
        MemCourse c;
        MemClass *x = &m[n++];
        *x = (MemClass){.ranks = r->ranks, .rank = rankset_first(&r->ranks), .step = -1};
        split_rest(t, x, r->bytes);
        if (memory_course(a, t, x->rank, &c)) {
            x->step = c.peak;
            x->bytes[MEM_GRADS] = c.grad[c.peak];
            x->bytes[MEM_ACTS] = c.live[c.peak] - c.grad[c.peak];
            x->bytes[MEM_GATHERED] = c.at_peak - c.live[c.peak];
        }
        for (int k = 0; k < MEM_KINDS; k++) x->total += x->bytes[k];
    }
    if (n) qsort(m, (size_t)n, sizeof *m, by_total);
    *out = m;
    return n;
}

int64_t memory_capacity(const Trace *t) {
    static const struct {
        const char *unit;
        double bytes;
    } row[] = {{"GiB", 1073741824.0}, {"GB", 1e9},  {"MiB", 1048576.0},
               {"MB", 1e6},           {"TB", 1e12}, {"B", 1}};
    const char *word = t->hardware ? strstr(t->hardware, " memory") : NULL;
    if (!word) return 0;
    const char *p = word;
    while (p > t->hardware && p[-1] != ',' && p[-1] != ';' && p[-1] != ':') p--;
    char *end;
    double v = strtod(p, &end);
    if (end == p || !(v > 0) || v > 1e15) return 0;
    end += *end == ' ';
    for (size_t i = 0; i < sizeof row / sizeof *row; i++)
        if (!strncmp(end, row[i].unit, strlen(row[i].unit)) && end + strlen(row[i].unit) == word)
            return (int64_t)(v * row[i].bytes);
    return 0;
}
MemScale memory_scale(int64_t most, int ticks) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB"};
    int k = 0;
    double bytes = 1;
    while (k < 5 && (double)most >= 1024 * bytes) k++, bytes *= 1024;
    double v = fmax((double)most / bytes, 1e-9), tick = pow(10, floor(log10(v / ticks)));
    while (v / tick > ticks) tick *= v / (2 * tick) <= ticks ? 2 : v / (5 * tick) <= ticks ? 5 : 10;
    if (k == 0 && tick < 1) tick = 1;
    return (MemScale){unit[k], bytes, tick, v};
}
