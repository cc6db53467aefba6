/* Groups of a collective, and texts for people: the small change of a trace. Refuses to know how a
 * trace is written (trace_write.c) or read (trace_read.c), and what a set of ranks is (rankset.c).
 */
#include "trace/trace.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

Trace *trace_new(Arena *arena) {
    Trace *t = ARENA_NEW(arena, Trace);
    t->arena = arena;
    t->ranks = 1;
    return t;
}

/* ---- parameters by name: open addressing, a power of two of slots, at most half of them taken
 * ---- */
static uint64_t name_hash(const char *s) { /* FNV-1a */
    uint64_t h = 1469598103934665603u;
    for (; *s; s++) h = (h ^ (unsigned char)*s) * 1099511628211u;
    return h;
}
static bool named(const TraceParam *p, const char *name) {
    return (p->compute.name && !strcmp(p->compute.name, name)) ||
           (p->plan_name && !strcmp(p->plan_name, name));
}
static int *slot_of(const Trace *t, const char *name) {
    uint64_t i = name_hash(name);
    for (;; i++) {
        int *s = &t->param_slot[i & (uint64_t)(t->n_param_slots - 1)];
        if (!*s || named(&t->params[*s - 1], name)) return s;
    }
}
static void index_name(Trace *t, int param, const char *name) {
    int *s = name ? slot_of(t, name) : NULL;
    if (s && !*s) *s = param + 1;
}
void trace_index(Trace *t) {
    t->n_param_slots = 16;
    while (t->n_param_slots < 4 * t->n_params) t->n_param_slots *= 2;
    t->param_slot = ARENA_ARRAY(t->arena, int, t->n_param_slots);
    for (int i = 0; i < t->n_params; i++) {
        index_name(t, i, t->params[i].compute.name);
        index_name(t, i, t->params[i].plan_name);
    }
}
const TraceParam *trace_param(const Trace *t, const char *name) {
    if (!name) return NULL;
    if (t->param_slot) {
        int i = *slot_of(t, name);
        return i ? &t->params[i - 1] : NULL;
    }
    for (int i = 0; i < t->n_params; i++)
        if (named(&t->params[i], name)) return &t->params[i];
    return NULL;
}
/* ---- values by name, likewise; those of one name are a list in their order ---- */
static int *value_slot_of(const Trace *t, const char *name) {
    uint64_t i = name_hash(name);
    for (;; i++) {
        int *s = &t->value_slot[i & (uint64_t)(t->n_value_slots - 1)];
        if (!*s || !strcmp(t->values[*s - 1].shape.name, name)) return s;
    }
}
void trace_index_values(Trace *t) {
    t->n_value_slots = 16;
    while (t->n_value_slots < 2 * t->n_values) t->n_value_slots *= 2;
    t->value_slot = ARENA_ARRAY(t->arena, int, t->n_value_slots);
    t->value_next = ARENA_ARRAY(t->arena, int, t->n_values + 1);
    t->n_valued = t->n_values;
    for (int i = t->n_values - 1; i >= 0; i--) {
        if (!t->values[i].shape.name) continue;
        int *s = value_slot_of(t, t->values[i].shape.name);
        t->value_next[i] = *s;
        *s = i + 1;
    }
}
const TraceValue *trace_value(const Trace *t, const char *name, int step) {
    const TraceValue *best = NULL;
    const bool quick = t->n_valued == t->n_values;
    int i = !name || !t->n_values ? 0 : quick ? *value_slot_of(t, name) : 1;
    for (; i; i = quick ? t->value_next[i - 1] : i < t->n_values ? i + 1 : 0) {
        const TraceValue *v = &t->values[i - 1];
        if (!quick && (!v->shape.name || strcmp(v->shape.name, name) != 0)) continue;
        if (v->step == step) return v;
        if (v->step < step && (!best || v->step > best->step)) best = v;
    }
    return best;
}
bool trace_adds_uses(const TraceCompute *c) {
    for (int k = 0; k < c->n_inputs; k++)
        if (strcmp(c->inputs[k], c->output) != 0) return false;
    return c->n_inputs > 1 && subject_is_gradient(c->makes);
}
const TraceCollective *trace_collective_of(const Trace *t, int step) {
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->step == step) return c;
        for (int k = 0; k < c->n_with; k++)
            if (c->with[k] == step) return c;
    }
    return NULL;
}
const char *trace_unit(const Trace *t, int i) {
    const TraceCompute *c = &t->computes[i];
    int way = c->pass == PHASE_BACKWARD || c->pass == PHASE_GRADIENTS ? -1 : 1;
    if (!part_term(c->part)->norm || c->layer < 0) return c->part;
    for (int k = i + way; k >= 0 && k < t->n_computes && t->computes[k].layer == c->layer; k += way)
        if (t->computes[k].part && !part_term(t->computes[k].part)->norm)
            return t->computes[k].part;
    return c->part;
}

/* ---- groups ---- */
static int64_t product(const int64_t *size, int n) {
    int64_t p = 1;
    for (int i = 0; i < n; i++) p *= size[i];
    return p;
}
int64_t groups_count(const RankGroups *g) { return product(g->out_size, g->n_out); }
int64_t groups_size(const RankGroups *g) { return product(g->in_size, g->n_in); }

/* Row-major index i over `size`, as the sum of digit times stride. */
static int64_t spread(int64_t i, const int64_t *size, const int64_t *stride, int n) {
    int64_t r = 0;
    for (int k = n - 1; k >= 0; k--) {
        r += i % size[k] * stride[k];
        i /= size[k];
    }
    return r;
}
int64_t groups_member(const RankGroups *g, int64_t group, int64_t i) {
    return g->first + spread(group, g->out_size, g->out_stride, g->n_out) +
           spread(i, g->in_size, g->in_stride, g->n_in);
}

void trace_compute_subjects(Arena *arena, TraceCompute *c) {
    c->makes = subject_of(c->output);
    c->reads = ARENA_ARRAY(arena, Subject, c->n_inputs + 1);
    for (int i = 0; i < c->n_inputs; i++) c->reads[i] = subject_of(c->inputs[i]);
}

int64_t groups_with(const RankGroups *g, int64_t rank) {
    /* the offset of a rank inside the groups is the sum of digits; peel the strides, largest first
     */
    int64_t stride[2 * TRACE_MAX_AXES], size[2 * TRACE_MAX_AXES], weight[2 * TRACE_MAX_AXES],
        index = 0;
    int n = 0;
    int64_t w = 1;
    rank -= g->first;
    if (rank < 0) return -1;
    for (int i = g->n_out - 1; i >= 0; i--) {
        stride[n] = g->out_stride[i], size[n] = g->out_size[i], weight[n++] = w;
        w *= g->out_size[i];
    }
    for (int i = 0; i < g->n_in; i++)
        stride[n] = g->in_stride[i], size[n] = g->in_size[i], weight[n++] = 0;
    for (int k = 0; k < n; k++) {
        int best = -1;
        for (int i = 0; i < n; i++)
            /* an axis of one rank has the stride of its neighbour and no digit */
            if (size[i] > 1 && (best < 0 || stride[i] > stride[best])) best = i;
        if (best < 0) break;
        int64_t digit = stride[best] > 0 ? rank / stride[best] : 0;
        if (digit >= size[best]) return -1;
        index += digit * weight[best];
        rank -= digit * stride[best];
        size[best] = 0;
    }
    return rank == 0 ? index : -1;
}

TraceTraffic collective_on(const TraceCollective *c, int64_t rank) {
    for (int i = 0; i < c->n_local; i++)
        if (rankset_has(&c->local[i].ranks, rank)) return c->local[i];
    bool takes_part = rank < 0 || (!c->n_local && groups_with(&c->groups, rank) >= 0);
    if (!takes_part) return (TraceTraffic){{0}, 0, 0, 0};
    return (TraceTraffic){{0}, c->bytes_in, c->bytes_out, c->bytes_sent};
}
int collective_times(const TraceCollective *c) {
    return c->skipped ? 0 : c->times > 1 ? c->times : 1;
}
int collective_per_step(const TraceCollective *c) {
    return collective_times(c) * (c->per_step > 1 ? c->per_step : 1);
}
bool collective_in(const TraceCollective *c, int64_t parts, int way, int64_t part) {
    bool brings = c->pass == PHASE_PARAMETERS && c->subject.role == OF_ITSELF;
    if (!c->per_step) return part == (brings ? 0 : parts - 1);
    if (c->per_step == parts) return true;
    return way == (part >= parts / 2); /* those that enter the pipeline at that end */
}

/* ---- numbers for people ---- */
/* Three digits; without trailing zeros if that is the exact value. */
static const char *three_digits(double v, const char *unit, Arena *arena) {
    double a = fabs(v);
    int decimals = a < 9.995 ? 2 : a < 99.95 ? 1 : 0;
    char *s = arena_printf(arena, "%.*f", decimals, v);
    if (strtod(s, NULL) == v && strchr(s, '.')) {
        size_t n = strlen(s);
        while (s[n - 1] == '0') s[--n] = 0;
        if (s[n - 1] == '.') s[n - 1] = 0;
    }
    return *unit ? arena_printf(arena, "%s %s", s, unit) : s;
}
const char *bytes_text(int64_t bytes, Arena *arena) {
    static const char *const unit[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double v = (double)bytes;
    int u = 0;
    while (fabs(v) >= 1023.5 && u < 6 && !(u == 0 && fabs(v) < 1024)) {
        v /= 1024;
        u++;
    }
    return three_digits(v, unit[u], arena);
}
const char *count_text(double n, Arena *arena) {
    static const char *const unit[] = {"", "k", "M", "G", "T", "P", "E"};
    if (!isfinite(n)) return arena_printf(arena, "%g", n);
    int u = 0;
    while (fabs(n) >= 999.5 && u < 6) {
        n /= 1000;
        u++;
    }
    return three_digits(n, unit[u], arena);
}
const char *time_text(double seconds, Arena *arena) {
    static const char *const unit[] = {"s", "ms", "µs", "ns"};
    if (!isfinite(seconds)) return arena_printf(arena, "%g s", seconds);
    int u = 0;
    double v = seconds;
    while (v != 0 && fabs(v) < 0.9995 && u < 3) {
        v *= 1000;
        u++;
    }
    /* products with 1000 are not exact: round to 12 digits, so that 5e-6 s is "5 µs" */
    char digits[32];
    snprintf(digits, sizeof digits, "%.12g", v);
    return three_digits(strtod(digits, NULL), unit[u], arena);
}
/* A sum of n times in a unit of which `per_second` make a second. */
typedef struct {
    const double *part;
    int n;
    double sum, per_second;
} TimeSum;
enum { MOST_DECIMALS = 6 };
/* Seconds as whole numbers of 10^-decimals of the unit. */
static int64_t time_ticks(const TimeSum *s, double seconds, int decimals) {
    return llround(seconds * s->per_second * pow(10, decimals));
}
static const char *ticks_text(int64_t ticks, int decimals, const char *unit, Arena *arena) {
    return arena_printf(arena, "%.*f %s", decimals, (double)ticks / pow(10, decimals), unit);
}
/* Decimals with which a number above 0 shows three digits, as it does where it stands alone. */
static int decimals_alone(double v) {
    int n = 2;
    for (; v < 0.9995 && n < MOST_DECIMALS; v *= 10) n++;
    for (; v >= 9.995 && n > 0; v /= 10) n--;
    return n;
}
static bool is_told(const TimeSum *s, int i) { return s->part[i] > 1e-9 * s->sum; }
/* As many as each part needs to show the digits that it has alone, as long as the sum has five at
 * most, and one that is not 0 in any case. */
static int sum_decimals(const TimeSum *s) {
    const int own = s->sum > 0 ? decimals_alone(s->sum * s->per_second) : 0, most = own + 2;
    int decimals = own;
    for (int i = 0; i < s->n; i++) {
        if (!is_told(s, i)) continue;
        const int alone = decimals_alone(s->part[i] * s->per_second);
        if (alone > decimals) decimals = alone < most ? alone : most;
        while (decimals < MOST_DECIMALS && !time_ticks(s, s->part[i], decimals)) decimals++;
    }
    return decimals;
}
/* Each part and the sum rounded by itself. Do they add up as they are read, and is no part lost? */
static bool sum_ticks(const TimeSum *s, int decimals, int64_t *ticks) {
    int64_t rest = time_ticks(s, s->sum, decimals);
    bool told = true;
    for (int i = 0; i < s->n; i++) {
        rest -= ticks[i] = time_ticks(s, s->part[i], decimals);
        told &= (ticks[i] > 0) == is_told(s, i);
    }
    return !rest && told;
}
/* As many decimals as it takes, one more, one less, two less; then more, though the sum has more
 * than five digits. At last as it takes: what is read is off by one in the last digit. */
static int ticks_that_add_up(const TimeSum *s, int64_t *ticks) {
    enum { LONG = 100000 };
    static const struct {
        int more;
        bool any;
    } way[] = {{0, true}, {1, false}, {-1, true}, {-2, true}, {1, true}, {2, true}, {3, true}};
    const int own = sum_decimals(s);
    for (size_t k = 0; k < sizeof way / sizeof *way; k++) {
        const int decimals = own + way[k].more;
        if (decimals >= 0 && sum_ticks(s, decimals, ticks) &&
            (way[k].any || time_ticks(s, s->sum, decimals) < LONG))
            return decimals;
    }
    sum_ticks(s, own, ticks);
    return own;
}
const char *time_sum_text(const double *part, int n, const char **out, Arena *arena) {
    static const struct {
        const char *name;
        double per_second;
    } unit[] = {{"s", 1}, {"ms", 1e3}, {"µs", 1e6}, {"ns", 1e9}};
    TimeSum s = {part, n, 0, 1};
    int u = 0;
    for (int i = 0; i < n; i++) s.sum += part[i];
    while (u < 3 && s.sum != 0 && s.sum * unit[u].per_second < 0.9995) u++;
    s.per_second = unit[u].per_second;
    int64_t *ticks = ARENA_ARRAY(arena, int64_t, n + 1);
    const int decimals = ticks_that_add_up(&s, ticks);
    for (int i = 0; i < n; i++) out[i] = ticks_text(ticks[i], decimals, unit[u].name, arena);
    return ticks_text(time_ticks(&s, s.sum, decimals), decimals, unit[u].name, arena);
}
static bool is_collective(const Trace *t, int step) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == step) return true;
    return false;
}
TraceProjected trace_projected(const Trace *t) {
    TraceProjected p = {0};
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *c = &t->checks[i], *bits = i ? c - 1 : c;
        if (c->level == LEVEL_BOUND && bits->level == LEVEL_BITS && bits->step == c->step &&
            c->count > 0 && c->count < bits->count)
            p.partly++, p.asked += c->count, p.numbers += bits->count;
        if (c->projections <= 0 || !(c->notice > 0)) continue; /* its bits are held beside them */
        if (is_collective(t, c->step)) p.sums++;
        else p.products++;
        p.projections = c->projections;
        if (!p.notice || c->notice > p.notice->notice) p.notice = c;
    }
    return p;
}
const char *trace_projected_text(const TraceProjected *p, Arena *a) {
    return arena_printf(a, "%lld product%s and %lld sum%s over ranks", (long long)p->products,
                        p->products == 1 ? "" : "s", (long long)p->sums, p->sums == 1 ? "" : "s");
}
bool trace_both_ways(const Trace *t) {
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].way) return true;
    return false;
}
bool trace_has_backward(const Trace *t) {
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].pass == PHASE_BACKWARD) return true;
    return false;
}
bool trace_of_experts(const TraceShape *weight) { return weight->nd > 2; }
int trace_pipe_coord(const Trace *t, int64_t rank) {
    int64_t stride = 1;
    for (int i = t->n_axes - 1; i >= 0; i--) {
        if (t->schedule_axis && !strcmp(t->axes[i].name, t->schedule_axis))
            return (int)(rank / stride % t->axes[i].size);
        stride *= t->axes[i].size;
    }
    return -1;
}
int64_t trace_microbatches(const Trace *t) {
    for (int i = 0; i < t->n_model; i++)
        if (!strcmp(t->model[i].name, "microbatches") && t->model[i].value > 1)
            return (int64_t)t->model[i].value;
    return 1;
}
