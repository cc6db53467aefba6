/* DDP and ZeRO beside a plan's own memory. See compare.h. */
#include "render/memory/compare.h"
#include "base/text.h"
#include <string.h>

const char *memory_thousands(Arena *a, int64_t n) {
    char b[64], out[96];
    int len = snprintf(b, sizeof b, "%lld", (long long)n), k = 0;
    for (int i = 0; i < len; i++) {
        if (i && (len - i) % 3 == 0) out[k++] = ',';
        out[k++] = b[i];
    }
    out[k] = 0;
    return arena_strdup(a, out);
}

/* The gradient of the parameter as the backward pass makes it. */
static const TraceValue *gradient_of(const Trace *t, const TraceParam *q) {
    const TraceValue *first = NULL;
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (v->subject.role == OF_PARAM_GRADIENT && v->subject.of && v->pass == PHASE_GRADIENTS &&
            trace_param(t, v->subject.of) == q && (!first || v->step < first->step))
            first = v;
    }
    return first;
}

static bool names_axis(const char *axes, const char *name) {
    size_t n = strlen(name);
    for (const char *p = axes; p && *p; p += strcspn(p, "*"), p += *p == '*')
        if (strcspn(p, "*") == n && !strncmp(p, name, n)) return true;
    return false;
}

/* Ranks over which the gradient is added up along the axes of `data`. */
static int64_t degree(const Trace *t, const char *pending, const char *data) {
    int64_t n = 1;
    for (int i = 0; i < t->n_axes; i++)
        if (names_axis(pending, t->axes[i].name) && names_axis(data, t->axes[i].name))
            n *= t->axes[i].size;
    return n;
}

typedef struct {
    const TraceParam *q;
    const TraceValue *grad;
    int64_t numbers, params, grads; /* on the rank, whole but for what is not data parallel */
} Held;

static int64_t count(const TraceLocal *l, int nd) {
    int64_t n = 1;
    for (int i = 0; i < nd; i++) n *= l->shape[i];
    return n;
}

static int read_held(Arena *a, const Trace *t, int64_t rank, Held **out) {
    Held *h = *out = ARENA_ARRAY(a, Held, t->n_params + 1);
    int n = 0;
    for (int i = 0; i < t->n_params; i++) {
        const TraceParam *q = &t->params[i];
        const TraceLocal *l = words_find_local(&q->compute, rank);
        const TraceValue *v = gradient_of(t, q);
        const TraceLocal *g = v ? words_find_local(&v->shape, rank) : NULL;
        if (l && g) h[n++] = (Held){q, v, count(l, q->compute.nd), l->bytes, g->bytes};
    }
    return n;
}

static bool of_experts(const Held *x) { return trace_of_experts(&x->q->compute); }

/* The axes over which most of the gradients' bytes are added up: those of the data. Experts of
 * their own axis have fewer of them, so that only a model of nothing else is asked for theirs. */
static const char *data_axes(const Held *h, int n) {
    const char *best = NULL;
    int64_t most = 0;
    bool dense = false;
    for (int i = 0; i < n; i++) dense |= !of_experts(&h[i]);
    for (int i = 0; i < n; i++) {
        int64_t sum = 0;
        const char *axes = h[i].grad->shape.pending;
        if (dense && of_experts(&h[i])) continue;
        for (int k = 0; axes && *axes && k < n; k++)
            if (!(dense && of_experts(&h[k])) && text_same(h[k].grad->shape.pending, axes))
                sum += h[k].grads;
        if (sum > most) most = sum, best = axes;
    }
    return best;
}
/* "; experts are cut over edp alone, 2 ranks", "; experts are not cut: each is on one rank of dp":
 * where they have fewer of the axes of `data` than others. */
static const char *experts_words(Arena *a, const Trace *t, const Held *h, int n, const char *data) {
    for (int i = 0; i < n; i++) {
        const char *own = h[i].grad->shape.pending;
        if (!of_experts(&h[i])) continue;
        const int64_t d = degree(t, own, data);
        if (d == degree(t, data, data)) return "";
        return d < 2 ? arena_printf(a, "; experts are not cut: each is on one rank of %s",
                                    words_axis_list(a, t, data))
                     : arena_printf(a, "; experts are cut over %s alone, %lld ranks",
                                    words_axis_list(a, t, own), (long long)d);
    }
    return "";
}

/* Gradients are there all the time, as buckets keep them, so that the peak is not the plan's own
 * but the step where the other live values are most, with `copies` those and what the plan has
 * gathered of parameters then. */
typedef struct {
    int step; /* -1: nothing is recorded */
    int64_t live, gathered;
} Beside;
static Beside most_beside_gradients(const MemCourse *c, bool copies) {
    Beside b = {.step = -1};
    for (int i = 0; i < c->n_steps; i++) {
        const int64_t live = c->live[i] - c->grad[i],
                      gathered = copies ? c->all[i] - c->live[i] : 0;
        if (b.step < 0 || live + gathered > b.live + b.gathered) b = (Beside){i, live, gathered};
    }
    return b;
}

static int64_t up(int64_t n, int64_t by) { return (n + by - 1) / by; }

int memory_ways(Arena *a, const Trace *t, const MemClass *m, MemWay out[MEM_WAYS]) {
    static const char *const name[MEM_WAYS] = {"DDP", "ZeRO-1", "ZeRO-2", "ZeRO-3, FSDP"};
    Held *h;
    int n = read_held(a, t, m->rank, &h);
    const char *data = data_axes(h, n);
    int64_t all = 0, per = data ? degree(t, data, data) : 1, width = 0, grad = 0;
    if (per < 2) return 0;
    MemCourse course;
    if (!memory_course(a, t, m->rank, &course)) course.n_steps = 0;
    const Beside beside = most_beside_gradients(&course, false),
                 gathers = most_beside_gradients(&course, true);
    const bool copies = gathers.live + gathers.gathered > beside.live; /* a plan with FSDP */
    const char *experts = experts_words(a, t, h, n, data);
    bool same = true; /* each number has the same bytes, and the same ranks to share it */
    for (int way = 0; way < MEM_WAYS; way++)
        out[way] = (MemWay){.name = name[way], .held = {.rank = m->rank}};
    for (int i = 0; i < n; i++) {
        const Held *x = &h[i];
        const int64_t d = degree(t, x->grad->shape.pending, data),
                      w = x->numbers ? x->params / x->numbers : 4,
                      state = (w < 4 ? 12 : 8) * x->numbers; /* a master copy of 16-bit weights */
        same &= d == per && (!i || w == width);
        width = w, grad = x->numbers ? x->grads / x->numbers : 4, all += x->numbers;
        for (int way = 0; way < MEM_WAYS; way++) {
            int64_t *b = out[way].held.bytes;
            b[MEM_PARAMS] += way > 2 ? up(x->params, d) : x->params;
            b[MEM_GRADS] += way > 1 ? up(x->grads, d) : x->grads;
            b[MEM_OPTIMIZER] += way > 0 ? up(state, d) : state;
        }
    }
    const char *list = words_axis_list(a, t, data);
    const char *over = arena_printf(a, "state over %s, %lld ranks", list, (long long)per);
    const char *cut[MEM_WAYS] = {"everything on every rank", over, "and gradients",
                                 "and parameters, at rest"};
    if (copies) cut[MEM_WAYS - 1] = "and parameters, gathered";
    for (int way = 0; way < MEM_WAYS; way++) {
        MemClass *c = &out[way].held;
        const Beside *b = copies && way == MEM_WAYS - 1 ? &gathers : &beside;
        c->bytes[MEM_ACTS] = b->live, c->bytes[MEM_GATHERED] = b->gathered, c->step = b->step;
        for (int k = 0; k < MEM_KINDS; k++) c->total += c->bytes[k];
        /* sums of norms' gradients alone, over tp, are no data parallelism: four equal bars */
        const int64_t saved = out[0].held.total - c->total;
        if (way == MEM_WAYS - 1 && saved < (out[0].held.total - beside.live) / 100) return 0;
        out[way].cut = cut[way];
        const char *by = arena_printf(a, "/%lld", (long long)per);
        out[way].formula =
            same ? arena_printf(a, "(%lld%s + %lld%s + %d%s) B × %s", (long long)width,
                                way > 2 ? by : "", (long long)grad, way > 1 ? by : "",
                                width < 4 ? 12 : 8, way > 0 ? by : "", memory_thousands(a, all))
                 : arena_printf(a, "of %s parameters", memory_thousands(a, all));
        out[way].experts = experts;
    }
    return MEM_WAYS;
}
