/* Looking things up in a trace by name. Refuses to know a naming scheme: what the trace does not
 * name is not found. */
#include "cli/find.h"
#include "cli/suffix.h"
#include "base/text.h"
#include "trace/counts.h"
#include "trace/rankgrid.h"
#include "trace/trace_parts.h"
#include <stdlib.h>
#include <string.h>

/* ---- steps ---- */
static int steps_of(const Trace *t) {
    int n = 0;
#define SEE(items, count)                                                                          \
    for (int i = 0; i < (count); i++)                                                              \
        if ((items)[i].step >= n) n = (items)[i].step + 1;
    SEE(t->computes, t->n_computes)
    SEE(t->collectives, t->n_collectives)
    SEE(t->moves, t->n_moves)
    SEE(t->values, t->n_values)
#undef SEE
    return n;
}
StepIndex lookup_steps(const Trace *t, Arena *arena) {
    StepIndex x = {steps_of(t), NULL};
    x.step = ARENA_ARRAY(arena, FoundStep, x.n);
    /* backwards, so that the first record of a step stays */
    for (int i = t->n_computes - 1; i >= 0; i--)
        if (t->computes[i].step >= 0) x.step[t->computes[i].step].compute = &t->computes[i];
    for (int i = t->n_collectives - 1; i >= 0; i--)
        if (t->collectives[i].step >= 0)
            x.step[t->collectives[i].step].collective = &t->collectives[i];
    for (int i = t->n_moves - 1; i >= 0; i--)
        if (t->moves[i].step >= 0) x.step[t->moves[i].step].move = &t->moves[i];
    for (int i = t->n_values - 1; i >= 0; i--)
        if (t->values[i].step >= 0) x.step[t->values[i].step].value = &t->values[i];
    return x;
}

/* ---- names ---- */

static const TraceValue *value_named(const Trace *t, const char *name) {
    const TraceValue *moved = NULL;
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (!text_same(v->shape.name, name)) continue;
        if (v->kind != VALUE_MOVED) return v;
        if (!moved) moved = v;
    }
    return moved;
}
const TraceValue *lookup_operand(const Trace *t, const char *name, int step) {
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].step == step && text_same(t->values[i].shape.name, name))
            return &t->values[i];
    return NULL;
}
bool lookup_inside(const char *module, const char *name, size_t n) {
    return module && strncmp(module, name, n) == 0 && (module[n] == 0 || module[n] == '.');
}
/* MODULE.output: what the module's last forward step makes. MODULE.input: what its first one reads
 * first. */
static const TraceValue *boundary(const Trace *t, const char *module, size_t n, bool output) {
    const TraceCompute *first = NULL, *last = NULL;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (!lookup_inside(c->module, module, n) || phase_or_forward(c->pass) != PHASE_FORWARD)
            continue;
        if (!first) first = c;
        last = c;
    }
    if (output) return last ? lookup_operand(t, last->output, last->step) : NULL;
    if (!first || first->n_inputs == 0) return NULL;
    const TraceValue *v =
        first->input_step ? lookup_operand(t, first->inputs[0], first->input_step[0]) : NULL;
    return v ? v : value_named(t, first->inputs[0]);
}
const TraceValue *lookup_value(const Trace *t, const char *name) {
    const TraceValue *v = value_named(t, name);
    if (v) return v;
    char *end;
    if (strncmp(name, "layers.", 7) == 0) {
        long layer = strtol(name + 7, &end, 10);
        if (end != name + 7 && strcmp(end, ".input") == 0 && layer > 0) {
            char before[64];
            snprintf(before, sizeof before, "layers.%ld.output", layer - 1);
            if ((v = value_named(t, before))) return v;
        }
    }
    size_t in = text_before(name, ".input"), out = text_before(name, ".output");
    if (in) return boundary(t, name, in, false);
    if (out) return boundary(t, name, out, true);
    return NULL;
}
static const char *bare(const char *name) {
    return name && strncmp(name, "model.", 6) == 0 ? name + 6 : name;
}
const TraceParam *lookup_param(const Trace *t, const char *name) {
    const TraceParam *p = trace_param(t, name);
    if (p) return p;
    for (int i = 0; i < t->n_params; i++)
        if (text_same(bare(t->params[i].plan_name), bare(name)) ||
            text_same(bare(t->params[i].compute.name), bare(name)))
            return &t->params[i];
    return NULL;
}

static const TraceShape *shape_named(const Trace *t, const char *name) {
    const TraceValue *v = lookup_value(t, name);
    const TraceParam *p = v ? NULL : lookup_param(t, name);
    return v ? &v->shape : p ? &p->compute : NULL;
}
const TraceShape *lookup_shape(Arena *a, const Trace *t, const char *name, const char **hint) {
    const TraceShape *s = shape_named(t, name);
    *hint = NULL;
    if (s) return s;
    const char *whole = suffix_find(a, t, name, SUFFIX_VALUES | SUFFIX_PARAMS, hint);
    return whole ? shape_named(t, whole) : NULL;
}

/* ---- axes ---- */
typedef struct {
    const Trace *t;
    bool drop_ones;
    const char **axes; /* [TRACE_MAX_AXES] */
    int n;
} AxisNames;

/* The axes of one name; of a group those that it names in turn. `depth` ends a circle of groups. */
static void add_axes(AxisNames *found, const char *text, size_t len, int depth) {
    const Trace *t = found->t;
    for (int i = 0; i < t->n_groups && depth < 8; i++)
        if (strlen(t->groups[i].name) == len && strncmp(t->groups[i].name, text, len) == 0) {
            const char *p = t->groups[i].axes;
            while (*p) {
                size_t k = strcspn(p, "*, ");
                if (k) add_axes(found, p, k, depth + 1);
                p += k + (p[k] != 0);
            }
            return;
        }
    const char *name = NULL;
    for (int i = 0; i < t->n_axes; i++)
        if (strlen(t->axes[i].name) == len && strncmp(t->axes[i].name, text, len) == 0) {
            if (found->drop_ones && t->axes[i].size == 1) return;
            name = t->axes[i].name;
        }
    if (found->n < TRACE_MAX_AXES)
        found->axes[found->n++] = name ? name : arena_strndup(t->arena, text, len);
}
void lookup_axes(const Trace *t, const char *text, bool drop_ones, const char *axes[TRACE_MAX_AXES],
                 int *n) {
    AxisNames found = {t, drop_ones, axes, 0};
    while (text && *text) {
        size_t k = strcspn(text, "*, ()");
        if (k) add_axes(&found, text, k, 0);
        text += k + (text[k] != 0);
    }
    *n = found.n;
}
bool lookup_same_axes(const Trace *t, const char *a, const char *b) {
    const char *x[TRACE_MAX_AXES], *y[TRACE_MAX_AXES];
    int nx, ny, found = 0;
    lookup_axes(t, a, true, x, &nx);
    lookup_axes(t, b, true, y, &ny);
    for (int i = 0; i < nx; i++)
        for (int k = 0; k < ny; k++)
            if (strcmp(x[i], y[k]) == 0) {
                found++;
                break;
            }
    return nx == ny && found == nx;
}

/* ---- memory ---- */
typedef struct {
    int64_t rank;
    const char *category;
    int64_t bytes;
} Live;
/* What rank holds: of a category, NULL: of all. */
static int64_t held_by(const Live *live, int n, int64_t rank, const char *category) {
    int64_t sum = 0;
    for (int i = 0; i < n; i++)
        if (live[i].rank == rank && (!category || text_same(live[i].category, category)))
            sum += live[i].bytes;
    return sum;
}
int64_t lookup_peak(const Trace *t, const char *category) {
    Arena *scratch = arena_new();
    Live *live = NULL;
    int n = 0, cap = 0;
    int64_t peak = 0, of = -1, bytes = 0;
    for (int i = 0; i < t->n_memory; i++) {
        const TraceMemory *m = &t->memory[i];
        int64_t rank = rankset_first(&m->ranks);
        int k = 0;
        while (k < n && !(live[k].rank == rank && text_same(live[k].category, m->category))) k++;
        if (k == n) *ARENA_PUSH(scratch, live, n, cap) = (Live){rank, m->category, 0};
        live[k].bytes = m->bytes;
        /* the records of one step belong together: count when the last of them is in */
        if (i + 1 < t->n_memory && t->memory[i + 1].step == m->step) continue;
        for (int a = 0; a < n; a++) {
            int64_t sum = held_by(live, n, live[a].rank, NULL);
            if (sum < peak || (sum == peak && of >= 0 && live[a].rank >= of)) continue;
            peak = sum, of = live[a].rank;
            bytes = held_by(live, n, of, category);
        }
    }
    arena_free(scratch);
    return bytes;
}
const char *const *lookup_categories(const Trace *t, Arena *arena) {
    const char **names = NULL;
    int n = 0, cap = 0;
    for (int i = 0; i < t->n_memory; i++) {
        int k = 0;
        while (k < n && !text_same(names[k], t->memory[i].category)) k++;
        if (k == n) *ARENA_PUSH(arena, names, n, cap) = t->memory[i].category;
    }
    *ARENA_PUSH(arena, names, n, cap) = NULL;
    return names;
}

/* ---- what ranks send ---- */
static const char *amount_text(int64_t v, bool exact, Arena *a) {
    const char *s = bytes_text(v, a);
    return !exact || v < 1024 ? s : arena_printf(a, "%s (%lld bytes)", s, (long long)v);
}
LookupRange lookup_range(int64_t least, int64_t most, bool exact, Arena *a) {
    LookupRange r = {amount_text(least, exact, a), amount_text(most, exact, a)};
    if (least != most && !strcmp(r.least, r.most))
        r = (LookupRange){arena_printf(a, "%lld bytes", (long long)least),
                          arena_printf(a, "%lld bytes", (long long)most)};
    return r;
}
static void mark_cell(void *arg, int64_t cell) { ((bool *)arg)[cell] = true; }
/* All ranks of the parts with that sum. */
static RankSet with_sum(const Trace *t, const RankSet *part, const int64_t *sum, int n, int64_t v,
                        Arena *a) {
    const RankSet **set = ARENA_ARRAY(a, const RankSet *, n);
    RankBox mesh = trace_mesh_box(t);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (sum[i] == v) set[k++] = &part[i];
    if (k == 1) return *set[0];
    const RankGrid *g = grid_new(a, &mesh, t->ranks, set, k);
    int64_t cells = grid_cells(g), n_in = 0;
    bool *in = ARENA_ARRAY(a, bool, cells);
    int64_t *list = ARENA_ARRAY(a, int64_t, cells);
    for (int i = 0; i < k; i++) grid_visit(g, set[i], mark_cell, in);
    for (int64_t c = 0; c < cells; c++)
        if (in[c]) list[n_in++] = c;
    return grid_set(g, a, list, n_in);
}
/* What each part of the ranks sends in all collectives that count; *n parts, in `a`. Where all
 * collectives are the same on all ranks there is one. */
static int64_t *sent_by_part(const Trace *t, LookupCounts counts, const void *arg, RankSet **part,
                             int *n, Arena *a) {
    bool unequal = false;
    for (int k = 0; k < t->n_collectives; k++) {
        const TraceCollective *c = &t->collectives[k]; /* of a stage, only its ranks do it */
        bool all =
            c->n_local == 0 && groups_count(&c->groups) * groups_size(&c->groups) >= t->ranks;
        unequal |= (!counts || counts(c, arg)) && !all;
    }
    *n = unequal ? trace_parts(t, a, part) : 1;
    int64_t *sum = ARENA_ARRAY(a, int64_t, *n);
    for (int k = 0; k < t->n_collectives; k++) {
        const TraceCollective *c = &t->collectives[k];
        int64_t times = counts ? counts(c, arg) : 1;
        for (int i = 0; i < *n && times; i++)
            sum[i] += times * lookup_sent(c, unequal ? rankset_first(&(*part)[i]) : -1);
    }
    return sum;
}
int64_t lookup_most_sent(const Trace *t, LookupCounts counts, const void *arg) {
    Arena *tmp = arena_new();
    RankSet *part;
    int n;
    int64_t *sum = sent_by_part(t, counts, arg, &part, &n, tmp), most = 0;
    for (int i = 0; i < n; i++)
        if (sum[i] > most) most = sum[i];
    arena_free(tmp);
    return most;
}
const char *lookup_sent_text(const Trace *t, LookupCounts counts, const void *arg, bool exact,
                             Arena *a) {
    Arena *tmp = arena_new();
    RankSet *part;
    int n, least = 0, most = 0;
    int64_t *sum = sent_by_part(t, counts, arg, &part, &n, tmp);
    for (int i = 0; i < n; i++) {
        if (sum[i] < sum[least]) least = i;
        if (sum[i] > sum[most]) most = i;
    }
    LookupRange of = lookup_range(sum[least], sum[most], exact, a);
    const char *text = of.most;
    if (sum[least] < sum[most]) {
        RankSet low = with_sum(t, part, sum, n, sum[least], tmp),
                high = with_sum(t, part, sum, n, sum[most], tmp);
        text = arena_printf(a, "%s (%s) to %s (%s)", of.least, rankset_words(&low, tmp), of.most,
                            rankset_words(&high, tmp));
    }
    arena_free(tmp);
    return text;
}
int lookup_of_step(const TraceCollective *k, const void *arg) {
    (void)arg;
    return k->per_step > 1 ? k->per_step : 1;
}
const char *lookup_step_text(const Trace *t, int64_t rank, Arena *a) {
    int64_t n = 0, messages = 0, sent = 0, parts = trace_microbatches(t);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *k = &t->collectives[i];
        if (rank >= 0 && groups_with(&k->groups, rank) < 0) continue;
        n += collective_per_step(k);
        if (collective_is_message(k)) messages += collective_per_step(k);
        sent += lookup_of_step(k, NULL) * lookup_sent(k, rank);
    }
    return arena_printf(a, "in the whole step, %lld micro-batches: %s, %s sent per rank",
                        (long long)parts, counted_text(a, n, messages),
                        rank < 0 ? lookup_sent_text(t, lookup_of_step, NULL, false, a)
                                 : bytes_text(sent, a));
}
