/* Reading a trace back: every line is one record, checked field by field against the tables of
 * trace_fields.c. Unknown keys and unknown types of records are passed over; everything else that
 * is not as it should be ends the reading with the line and the reason. Refuses half a trace:
 * without its last line, the verdict, it was cut off. */
#include "trace/trace_fields.h"
#include "formats/json.h"
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_STEP = 1 << 24 };
/* As many ranks as a plan may have; sizes and sums of sizes that fit with room for those who add
 * and double them. */
static const int64_t MAX_RANKS = 1 << 20, MAX_SIZE = (int64_t)1 << 60, MAX_TOTAL = (int64_t)1 << 61;

typedef struct {
    Arena *arena;    /* of the trace */
    const char *why; /* first thing that is wrong in this line, or NULL */
    Trace *t;
    int64_t total; /* bytes of all records */
    int cap[N_RECORD_TYPES];
} Reader;

static void bad(Reader *r, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
static void bad(Reader *r, const char *fmt, ...) {
    if (r->why) return;
    va_list ap;
    va_start(ap, fmt);
    r->why = arena_vprintf(r->arena, fmt, ap);
    va_end(ap);
}

/* ---- pieces of JSON, with their types checked; NULL values are null or absent ---- */
static const Json *expect_kind(Reader *r, const Json *j, const char *key, JsonKind kind,
                               const char *what) {
    if (j && j->kind == kind) return j;
    if (j && j->kind != JSON_NULL) bad(r, "\"%s\" is not %s", key, what);
    return NULL;
}
static const Json *as_array(Reader *r, const Json *j, const char *key) {
    return expect_kind(r, j, key, JSON_ARRAY, "a list");
}
static const Json *as_object(Reader *r, const Json *j, const char *key) {
    return expect_kind(r, j, key, JSON_OBJECT, "an object");
}
static const char *as_text(Reader *r, const Json *j, const char *key) {
    const Json *s = expect_kind(r, j, key, JSON_STRING, "a text");
    return s ? arena_strdup(r->arena, s->s) : NULL;
}
static int64_t as_int(Reader *r, const Json *j, const char *key, int64_t low, int64_t high,
                      int64_t normal) {
    const Json *i = expect_kind(r, j, key, JSON_INT, "a whole number");
    if (!i) return normal;
    if (i->i >= low && i->i <= high) return i->i;
    bad(r, "\"%s\" is %lld, outside %lld .. %lld", key, (long long)i->i, (long long)low,
        (long long)high);
    return normal;
}
static double as_real(Reader *r, const Json *j, const char *key) {
    if (!j || j->kind == JSON_NULL) return 0;
    if (j->kind == JSON_INT || j->kind == JSON_REAL) return j->r;
    if (j->kind == JSON_STRING && strcmp(j->s, "nan") == 0) return NAN;
    if (j->kind == JSON_STRING && strcmp(j->s, "inf") == 0) return INFINITY;
    if (j->kind == JSON_STRING && strcmp(j->s, "-inf") == 0) return -INFINITY;
    bad(r, "\"%s\" is not a number", key);
    return 0;
}
/* A list of at most `max` whole numbers 0 .. MAX_SIZE. */
static int as_sizes(Reader *r, const Json *j, const char *key, int64_t *out, int max) {
    const Json *a = as_array(r, j, key);
    if (!a) return 0;
    if (a->n > max) {
        bad(r, "\"%s\" has %d entries, more than %d", key, a->n, max);
        return 0;
    }
    for (int i = 0; i < a->n; i++) out[i] = as_int(r, a->item[i], key, 0, MAX_SIZE, 0);
    return a->n;
}
/* Bytes, as as_int; what all records add up to stays in range too. */
static int64_t as_bytes(Reader *r, const Json *j, const char *key) {
    int64_t n = as_int(r, j, key, 0, MAX_SIZE, 0);
    r->total += n;
    if (r->total > MAX_TOTAL) bad(r, "the sizes of the records add up to more than 2^61 bytes");
    return n;
}
/* A shape whose elements can be counted. */
static int as_shape(Reader *r, const Json *j, const char *key, int64_t *out) {
    int n = as_sizes(r, j, key, out, TRACE_MAX_DIMS);
    int64_t count = 1;
    for (int i = 0; i < n; i++)
        if (__builtin_mul_overflow(count, out[i] ? out[i] : 1, &count) || count > MAX_SIZE) {
            bad(r, "\"%s\" has more than 2^60 elements", key);
            return 0;
        }
    return n;
}
static const char **as_texts(Reader *r, const Json *j, const char *key, int *n) {
    const Json *a = as_array(r, j, key);
    *n = a ? a->n : 0;
    const char **s = a ? ARENA_ARRAY(r->arena, const char *, a->n) : NULL;
    for (int i = 0; i < *n; i++) s[i] = as_text(r, a->item[i], key);
    return s;
}

/* ---- ranks ---- */
/* "first:stop:stride" */
static bool parse_run(const char *s, RankRun *out) {
    long long v[3];
    for (int i = 0; i < 3; i++) {
        char *end;
        if (*s < '0' || *s > '9') return false;
        v[i] = strtoll(s, &end, 10);
        if (*end != (i < 2 ? ':' : 0) || v[i] > MAX_RANKS) return false;
        s = end + 1;
    }
    if (v[2] < 1 || v[1] <= v[0]) return false;
    *out = (RankRun){v[0], (v[1] - v[0] + v[2] - 1) / v[2], v[2]};
    return true;
}
static int64_t run_last(const RankRun *u) { return u->first + (u->count - 1) * u->stride; }

/* "dp=0:4094 cp=15": ranges of coordinates on axes of the mesh, which stand in the order of the
 * mesh. */
static bool parse_box(const Reader *r, const char *s, RankBox *b) {
    *b = trace_mesh_box(r->t);
    for (int k = 0; k < b->n && *s; k++) {
        RankSide *x = &b->side[k];
        size_t n = strlen(x->axis);
        if (strncmp(s, x->axis, n) || s[n] != '=') continue;
        char *end;
        s += n + 1;
        if (*s < '0' || *s > '9') return false;
        long long first = strtoll(s, &end, 10), stop;
        if (first > MAX_RANKS) return false;
        stop = first + 1;
        if (*end == ':' && end[1] >= '0' && end[1] <= '9') stop = strtoll(end + 1, &end, 10);
        if (first >= stop || stop > x->size || (*end && *end != ' ')) return false;
        x->first = first;
        x->count = stop - first;
        s = *end ? end + 1 : end;
    }
    return b->n && !*s;
}
/* A list of boxes, whose first is known to be one. */
static RankSet as_boxes(Reader *r, const Json *a, const char *key) {
    RankSet set = {.n = a->n, .box = ARENA_ARRAY(r->arena, RankBox, a->n)};
    for (int i = 0; i < a->n; i++) {
        const Json *s = expect_kind(r, a->item[i], key, JSON_STRING, "a list of ranks");
        if (s && parse_box(r, s->s, &set.box[i])) continue;
        bad(r, "\"%s\" has an entry that is no range of coordinates of the mesh", key);
        return (RankSet){0};
    }
    return set;
}
/* A list of whole numbers, of runs or of boxes as texts, or one run as a text. */
static RankSet as_ranks(Reader *r, const Json *j, const char *key) {
    RankSet set = {0};
    RankRun one;
    if (j && j->kind == JSON_STRING) {
        if (parse_run(j->s, &one)) return rankset_range(r->arena, one.first, one.count, one.stride);
        bad(r, "\"%s\": '%.40s' is not first:stop:stride", key, j->s);
        return set;
    }
    const Json *a = as_array(r, j, key);
    if (!a || a->n == 0) return set;
    if (a->item[0]->kind == JSON_INT) {
        int64_t *list = ARENA_ARRAY(r->arena, int64_t, a->n);
        for (int i = 0; i < a->n; i++) {
            list[i] = as_int(r, a->item[i], key, 0, MAX_RANKS, 0);
            if (i && list[i] <= list[i - 1]) bad(r, "\"%s\": the ranks do not ascend", key);
        }
        return r->why ? set : rankset_from(r->arena, list, a->n);
    }
    if (a->item[0]->kind == JSON_STRING && strchr(a->item[0]->s, '=')) return as_boxes(r, a, key);
    int cap = 0;
    for (int i = 0; i < a->n && !r->why; i++) {
        const Json *s = expect_kind(r, a->item[i], key, JSON_STRING, "a list of ranks");
        if (!s || !parse_run(s->s, &one))
            bad(r, "\"%s\" has an entry that is not first:stop:stride", key);
        else *ARENA_PUSH(r->arena, set.run, set.n, cap) = one;
    }
    return set;
}

/* ---- groups of a collective ---- */
/* [[size, stride], ...]; their product stays in range. */
static int as_strides(Reader *r, const Json *j, int64_t *size, int64_t *stride) {
    const Json *a = as_array(r, j, "grouping");
    if (!a) return 0;
    if (a->n > TRACE_MAX_AXES) bad(r, "\"grouping\" has more than %d axes", TRACE_MAX_AXES);
    for (int i = 0; i < a->n && !r->why; i++) {
        int64_t pair[2] = {0, 0};
        if (as_sizes(r, a->item[i], "grouping", pair, 2) != 2 || pair[0] < 1)
            bad(r, "\"grouping\" is not [size, stride]");
        size[i] = pair[0];
        stride[i] = pair[1];
    }
    return r->why ? 0 : a->n;
}
/* The largest rank of all groups, and how many there are, must be possible. */
static void check_groups(Reader *r, const RankGroups *g) {
    int64_t members = 1, last = g->first;
    for (int k = 0; k < g->n_in + g->n_out; k++) {
        int64_t size = k < g->n_in ? g->in_size[k] : g->out_size[k - g->n_in];
        int64_t stride = k < g->n_in ? g->in_stride[k] : g->out_stride[k - g->n_in], reach;
        if (__builtin_mul_overflow(size - 1, stride, &reach) ||
            __builtin_add_overflow(last, reach, &last) ||
            __builtin_mul_overflow(members, size, &members) || last >= r->t->ranks ||
            members > r->t->ranks) {
            bad(r, "the groups have ranks that the mesh has not");
            return;
        }
    }
}
/* Splits a list of offsets into nested runs, outermost first: 0 1 4 5 is (2, 4) (2, 1). False if it
 * is irregular. */
static bool nested_runs(const int64_t *v, int64_t n, int64_t *size, int64_t *stride, int *n_runs) {
    int64_t sizes[TRACE_MAX_AXES], strides[TRACE_MAX_AXES], block = 1;
    int k = 0;
    while (block < n) {
        if (k == TRACE_MAX_AXES) return false;
        int64_t step = v[block] - v[0], m = 1;
        while ((m + 1) * block <= n && v[m * block] - v[(m - 1) * block] == step) m++;
        for (int64_t i = 0; i < m * block; i++)
            if (v[i] - v[0] != i / block * step + (v[i % block] - v[0])) return false;
        if (m < 2 || step < 1) return false;
        sizes[k] = m;
        strides[k++] = step;
        block *= m;
    }
    for (int i = 0; i < k; i++) {
        size[i] = sizes[k - 1 - i];
        stride[i] = strides[k - 1 - i];
    }
    *n_runs = k;
    return block == n;
}
/* The members of one listed group; NULL and a reason if they are none. */
static const int64_t *listed_group(Reader *r, const Json *j, int64_t *n) {
    RankSet s = as_ranks(r, j, "groups");
    *n = rankset_count(&s);
    if (r->why || *n < 1 || *n > TRACE_GROUP_RANKS * 64) {
        bad(r, "\"groups\" has a group that is not a list of ranks");
        return NULL;
    }
    int64_t *list = ARENA_ARRAY(r->arena, int64_t, *n), k = 0;
    for (RankWalk w = {0}; rankset_next(&s, &w, &list[k]);) k++;
    return list;
}
/* A foreign trace has lists only: find the strides behind them. */
static void groups_from_lists(Reader *r, const Json *lists, RankGroups *g) {
    int64_t n0, n;
    int64_t *base = ARENA_ARRAY(r->arena, int64_t, lists->n);
    const int64_t *first = lists->n ? listed_group(r, lists->item[0], &n0) : NULL;
    if (!first) {
        bad(r, "\"groups\" is empty");
        return;
    }
    for (int i = 0; i < lists->n && !r->why; i++) {
        const int64_t *list = listed_group(r, lists->item[i], &n);
        if (!list) return;
        bool same = n == n0;
        for (int64_t k = 0; same && k < n; k++) same = list[k] - list[0] == first[k] - first[0];
        if (!same) bad(r, "\"groups\" are not all alike");
        base[i] = list[0];
    }
    if (r->why) return;
    if (!nested_runs(first, n0, g->in_size, g->in_stride, &g->n_in) ||
        !nested_runs(base, lists->n, g->out_size, g->out_stride, &g->n_out))
        bad(r, "\"groups\" do not follow the axes of a mesh");
    g->first = base[0];
}

/* ---- one reader per kind: the value of the field's key (NULL if absent), the whole object, the
 * record ---- */
typedef void (*FieldReader)(Reader *r, const Field *f, const Json *j, const Json *object,
                            char *record);
#define FIELD(T) (*(T *)(void *)(record + f->at))
#define COUNT(T) (*(T *)(void *)(record + f->count_at))
#define RECORD(T) ((T *)(void *)record)
#define READER(name)                                                                               \
    static void name(Reader *r, const Field *f, const Json *j,                                     \
                     __attribute__((unused)) const Json *object, char *record)

READER(r_text) { FIELD(const char *) = as_text(r, j, f->key); }
READER(r_int) { FIELD(int) = (int)as_int(r, j, f->key, -1, MAX_STEP, f->normal); }
READER(r_i64) {
    bool bytes = strncmp(f->key, "bytes", 5) == 0;
    FIELD(int64_t) = bytes ? as_bytes(r, j, f->key) : as_int(r, j, f->key, 0, MAX_SIZE, f->normal);
}
READER(r_real) { FIELD(double) = as_real(r, j, f->key); }
READER(r_bool) {
    const Json *b = expect_kind(r, j, f->key, JSON_BOOL, "true or false");
    FIELD(bool) = b && b->b;
}
READER(r_ranks) {
    if (!j) return; /* the rank of an event may stand alone */
    RankSet s = as_ranks(r, j, f->key);
    int64_t count = 0;
    if (s.box && rankset_count(&s) > r->t->ranks)
        bad(r, "\"%s\" has ranks that the mesh has not", f->key);
    for (int i = 0; i < s.n && s.run && !r->why; i++) {
        bool order = i == 0 || run_last(&s.run[i - 1]) < run_last(&s.run[i]);
        count += s.run[i].count; /* more than there are: some occur twice */
        if (run_last(&s.run[i]) >= r->t->ranks || count > r->t->ranks || !order)
            bad(r, "\"%s\" has ranks that the mesh has not", f->key);
    }
    FIELD(RankSet) = s;
}
READER(r_texts) {
    int n;
    FIELD(const char **) = as_texts(r, j, f->key, &n);
    COUNT(int) = n;
    for (int i = 0; i < n; i++)
        if (!FIELD(const char **)[i]) bad(r, "\"%s\" has an entry that is no text", f->key);
}
READER(r_cuts) {
    int n;
    const char **s = as_texts(r, j, f->key, &n);
    if (n > TRACE_MAX_DIMS) bad(r, "\"%s\" has more than %d entries", f->key, TRACE_MAX_DIMS);
    else if (n) memcpy(record + f->at, s, (size_t)n * sizeof *s);
}
READER(r_steps) {
    const Json *a = as_array(r, j, f->key);
    if (!a) return;
    if (a->n != COUNT(int)) bad(r, "\"%s\" has %d entries for %d inputs", f->key, a->n, COUNT(int));
    int *s = ARENA_ARRAY(r->arena, int, a->n);
    for (int i = 0; i < a->n; i++) s[i] = (int)as_int(r, a->item[i], f->key, -1, MAX_STEP, -1);
    FIELD(int *) = s;
}
READER(r_numbers) {
    const Json *a = as_array(r, j, f->key);
    if (!a) return;
    double *v = ARENA_ARRAY(r->arena, double, a->n);
    for (int i = 0; i < a->n; i++) v[i] = as_real(r, a->item[i], f->key);
    FIELD(double *) = v;
    COUNT(int64_t) = a->n;
}
READER(r_index) {
    COUNT(int) = as_sizes(r, j, f->key, (int64_t *)(void *)(record + f->at), TRACE_MAX_DIMS);
}
READER(r_global) {
    TraceShape *s = &FIELD(TraceShape);
    s->nd = as_shape(r, j, f->key, s->global_shape);
}
READER(r_places) {
    TraceShape *s = &FIELD(TraceShape);
    const Json *o = as_object(r, j, f->key);
    s->n_places = o ? o->n : 0;
    s->place = ARENA_ARRAY(r->arena, TracePlace, s->n_places);
    for (int i = 0; i < s->n_places; i++) {
        s->place[i].axis = arena_strdup(r->arena, o->key[i]);
        s->place[i].place = as_text(r, o->value[i], f->key);
        if (!s->place[i].place) bad(r, "\"%s\" has an axis without a placement", f->key);
    }
}
READER(r_dims) {
    TraceShape *s = &FIELD(TraceShape);
    int n;
    const char **text = as_texts(r, j, f->key, &n);
    if (n && n != s->nd) bad(r, "\"%s\" has %d entries for %d dims", f->key, n, s->nd);
    else if (n) memcpy(s->dim_symbol, text, (size_t)n * sizeof *text);
}
READER(r_locals) {
    TraceShape *s = &FIELD(TraceShape);
    const Json *a = as_array(r, j, f->key);
    s->n_local = a ? a->n : 0;
    s->local = ARENA_ARRAY(r->arena, TraceLocal, s->n_local);
    static const Field set = {"ranks", F_RANKS, ALWAYS, offsetof(TraceLocal, ranks), 0, 0};
    for (int i = 0; i < s->n_local; i++) {
        const Json *o = as_object(r, a->item[i], f->key);
        if (!o) bad(r, "\"%s\" is not a list of objects", f->key);
        TraceLocal *l = &s->local[i];
        r_ranks(r, &set, json_get(o, "ranks"), o, (char *)l);
        if (as_shape(r, json_get(o, "shape"), "shape", l->shape) != s->nd)
            bad(r, "\"%s\" has a shape without %d dims", f->key, s->nd);
        l->bytes = as_bytes(r, json_get(o, "bytes"), "bytes");
    }
}
READER(r_traffic) {
    const Json *a = j ? as_array(r, j, f->key) : NULL;
    if (!a) return;
    TraceTraffic *l = ARENA_ARRAY(r->arena, TraceTraffic, a->n);
    static const Field set = {"ranks", F_RANKS, ALWAYS, offsetof(TraceTraffic, ranks), 0, 0};
    for (int i = 0; i < a->n; i++) {
        const Json *o = as_object(r, a->item[i], f->key);
        if (!o) bad(r, "\"%s\" is not a list of objects", f->key);
        r_ranks(r, &set, json_get(o, "ranks"), o, (char *)&l[i]);
        l[i].bytes_in = as_bytes(r, json_get(o, "bytes_in"), "bytes_in");
        l[i].bytes_out = as_bytes(r, json_get(o, "bytes_out"), "bytes_out");
        l[i].bytes_sent = as_bytes(r, json_get(o, "bytes_sent"), "bytes_sent");
    }
    FIELD(TraceTraffic *) = l;
    COUNT(int) = a->n;
}
READER(r_with) {
    const Json *a = j ? as_array(r, j, f->key) : NULL;
    if (!a) return;
    int *s = ARENA_ARRAY(r->arena, int, a->n);
    for (int i = 0; i < a->n; i++) s[i] = (int)as_int(r, a->item[i], f->key, 0, MAX_STEP, 0);
    FIELD(int *) = s;
    COUNT(int) = a->n;
}
READER(r_held) {
    const Json *a = j ? as_array(r, j, f->key) : NULL;
    if (!a) return;
    TraceHeld *h = ARENA_NEW(r->arena, TraceHeld);
    if (a->n != 2) {
        bad(r, "\"%s\" is not a first and a last step", f->key);
        return;
    }
    h->from = (int)as_int(r, a->item[0], f->key, 0, MAX_STEP, 0);
    h->until = (int)as_int(r, a->item[1], f->key, 0, MAX_STEP, 0);
    FIELD(const TraceHeld *) = h;
}
READER(r_groups) {
    RankGroups *g = &FIELD(RankGroups);
    const Json *k = as_object(r, json_get(object, "grouping"), "grouping");
    if (!k && j->kind == JSON_OBJECT) k = j;
    const Json *lists = k ? NULL : as_array(r, j, f->key);
    if (k) {
        g->n_in = as_strides(r, json_get(k, "in"), g->in_size, g->in_stride);
        g->n_out = as_strides(r, json_get(k, "out"), g->out_size, g->out_stride);
        g->first = as_int(r, json_get(k, "first"), "first", 0, MAX_SIZE, 0);
    } else if (lists) {
        groups_from_lists(r, lists, g);
    }
    if (!r->why) check_groups(r, g);
}
READER(r_errors) {
    TraceCheck *c = RECORD(TraceCheck);
    const Json *a = as_array(r, j, f->key);
    c->n_rank_error = a ? a->n : 0;
    size_t one = sizeof *c->rank_error;
    c->rank_error = arena_alloc(r->arena, base_mul((size_t)c->n_rank_error, one));
    for (int i = 0; i < c->n_rank_error; i++) {
        c->rank_error[i].rank =
            as_int(r, json_get(a->item[i], "rank"), "rank", 0, r->t->ranks - 1, 0);
        c->rank_error[i].error = as_real(r, json_get(a->item[i], "error"), "error");
    }
}
READER(r_param_name) {
    TraceParam *p = RECORD(TraceParam);
    const char *name = as_text(r, j, f->key);
    const Json *only = json_get(object, "canonical_only");
    p->compute.name = as_text(r, json_get(object, "canonical"), "canonical");
    if (!p->compute.name && !only) p->compute.name = name; /* foreign: one name for both */
    p->plan_name = only ? NULL : name;
}
READER(r_matched) {
    TraceParam *p = RECORD(TraceParam);
    const Json *o = as_object(r, j, f->key);
    p->file = as_text(r, json_get(o, "file"), "file");
    p->line = (int)as_int(r, json_get(o, "line"), "line", 0, MAX_STEP, 0);
}
READER(r_mesh) {
    Trace *t = RECORD(Trace);
    const Json *o = as_object(r, j, f->key);
    int64_t ranks = 1;
    if (!o) return;
    if (o->n > TRACE_MAX_AXES) bad(r, "\"mesh\" has more than %d axes", TRACE_MAX_AXES);
    t->n_axes = o->n;
    t->axes = ARENA_ARRAY(r->arena, struct TraceAxis, o->n);
    for (int i = 0; i < o->n && !r->why; i++) {
        t->axes[i].name = arena_strdup(r->arena, o->key[i]);
        t->axes[i].size = as_int(r, o->value[i], "mesh", 1, MAX_RANKS, 1);
        if (__builtin_mul_overflow(ranks, t->axes[i].size, &ranks) || ranks > MAX_RANKS)
            bad(r, "\"mesh\" is too large");
    }
    const Json *n = json_get(object, "ranks");
    if (n && n->kind == JSON_INT && n->i != ranks)
        bad(r, "\"ranks\" is %lld, the mesh has %lld", (long long)n->i, (long long)ranks);
}
READER(r_named_groups) {
    Trace *t = RECORD(Trace);
    const Json *o = as_object(r, j, f->key);
    t->n_groups = o ? o->n : 0;
    t->groups = ARENA_ARRAY(r->arena, struct TraceGroup, t->n_groups);
    for (int i = 0; i < t->n_groups; i++) {
        t->groups[i].name = arena_strdup(r->arena, o->key[i]);
        t->groups[i].axes = as_text(r, o->value[i], f->key);
        if (!t->groups[i].axes) bad(r, "\"groups\" has a group without axes");
    }
}
READER(r_settings) {
    Trace *t = RECORD(Trace);
    const Json *o = as_object(r, j, f->key);
    t->n_settings = o ? o->n : 0;
    t->settings = ARENA_ARRAY(r->arena, struct TraceSetting, t->n_settings);
    for (int i = 0; i < t->n_settings; i++) {
        t->settings[i].name = arena_strdup(r->arena, o->key[i]);
        t->settings[i].text = as_text(r, o->value[i], f->key);
        if (!t->settings[i].text) bad(r, "\"settings\" has one without a value");
    }
}
READER(r_model) {
    Trace *t = RECORD(Trace);
    const Json *o = as_object(r, j, f->key);
    t->n_model = o ? o->n : 0;
    t->model = ARENA_ARRAY(r->arena, struct TraceDim, t->n_model);
    for (int i = 0; i < t->n_model; i++) {
        t->model[i].name = arena_strdup(r->arena, o->key[i]);
        t->model[i].value = as_real(r, o->value[i], f->key);
    }
}
READER(r_classes) {
    Trace *t = RECORD(Trace);
    const Json *a = as_array(r, j, f->key);
    t->n_classes = a ? a->n : 0;
    t->classes = ARENA_ARRAY(r->arena, RankSet, t->n_classes);
    static const Field one = {"classes", F_RANKS, ALWAYS, 0, 0, 0};
    for (int i = 0; i < t->n_classes; i++) {
        r_ranks(r, &one, a->item[i], NULL, (char *)&t->classes[i]);
        if (!t->classes[i].n) bad(r, "\"classes\" has a class without ranks");
    }
}
READER(r_worst) {
    Trace *t = RECORD(Trace);
    const Json *o = as_object(r, j, f->key);
    t->worst_value = as_text(r, json_get(o, "value"), "value");
    t->worst_used = as_real(r, json_get(o, "used"), "used");
}
READER(r_ends) {
    Trace *t = RECORD(Trace);
    if (!j) return; /* traces of before have none */
    const Json *o = as_object(r, j, f->key);
    t->end_to_end = as_text(r, json_get(o, "value"), "value");
    t->end_to_end_off = as_real(r, json_get(o, "off"), "off");
    t->end_to_end_bound = as_real(r, json_get(o, "bound"), "bound");
}
READER(r_word) {
    const WordList *l = &word_lists[f->normal];
    const char *s = as_text(r, j, f->key);
    int k = s ? term_of(l->word, l->n, s) : 0;
    if (k < 0) bad(r, "\"%s\": no trace says '%.40s' there", f->key, s);
    FIELD(int) = k < 0 ? 0 : k;
}
READER(r_severity) {
    const char *s = as_text(r, j, f->key);
    for (int i = 0; s && i < N_SEVERITIES; i++)
        if (strcmp(s, severity_words[i]) == 0) {
            FIELD(Severity) = (Severity)i;
            return;
        }
    bad(r, "\"severity\" is not error, warning or note");
}
READER(r_event_rank) {
    TraceEvent *e = RECORD(TraceEvent);
    if (j) e->ranks = rankset_range(r->arena, as_int(r, j, f->key, 0, r->t->ranks - 1, 0), 1, 1);
}

static const FieldReader readers[F_KINDS] = {
    [F_TEXT] = r_text,
    [F_WORD] = r_word,
    [F_INT] = r_int,
    [F_I64] = r_i64,
    [F_REAL] = r_real,
    [F_NUMBER] = r_real,
    [F_BOOL] = r_bool,
    [F_RANKS] = r_ranks,
    [F_TEXTS] = r_texts,
    [F_CUTS] = r_cuts,
    [F_STEPS] = r_steps,
    [F_NUMBERS] = r_numbers,
    [F_INDEX] = r_index,
    [F_GLOBAL] = r_global,
    [F_PLACES] = r_places,
    [F_DIMS] = r_dims,
    [F_LOCALS] = r_locals,
    [F_GROUPS] = r_groups,
    [F_TRAFFIC] = r_traffic,
    [F_WITH] = r_with,
    [F_HELD] = r_held,
    [F_ERRORS] = r_errors,
    [F_PARAM_NAME] = r_param_name,
    [F_MATCHED] = r_matched,
    [F_MESH] = r_mesh,
    [F_NAMED_GROUPS] = r_named_groups,
    [F_MODEL] = r_model,
    [F_SETTINGS] = r_settings,
    [F_CLASSES] = r_classes,
    [F_WORST] = r_worst,
    [F_ENDS] = r_ends,
    [F_SEVERITY] = r_severity,
    [F_EVENT_RANK] = r_event_rank,
};

/* ---- records ---- */
static void read_record(Reader *r, const RecordType *type, const Json *object, char *record) {
    for (int i = 0; i < type->n && !r->why; i++) {
        const Field *f = &type->field[i];
        const Json *j = json_get(object, f->key);
        if (f->rule == REQUIRED && (!j || j->kind == JSON_NULL))
            bad(r, "a %s record without \"%s\"", type->type, f->key);
        else readers[f->kind](r, f, j, object, record);
    }
}
static void fill(const char **text, const char *normal) {
    if (!*text) *text = normal ? normal : "";
}
/* Names that a foreign trace may leave out and that everyone who reads one compares: there is
 * always a text. What names speak of is read here, once. */
static void fill_texts(Reader *r, int kind, char *record) {
    TraceParam *p = RECORD(TraceParam);
    TraceValue *v = RECORD(TraceValue);
    TraceCompute *c = RECORD(TraceCompute);
    TraceCollective *m = RECORD(TraceCollective);
    TraceLocalMove *l = RECORD(TraceLocalMove);
    switch (kind) {
    case RECORD_PARAM:
        fill(&p->compute.symbolic, NULL);
        fill(&p->rest.symbolic, p->compute.symbolic);
        break;
    case RECORD_VALUE:
        fill(&v->shape.symbolic, NULL);
        v->subject = subject_of(v->shape.name);
        break;
    case RECORD_COMPUTE:
        fill(&c->output, NULL);
        trace_compute_subjects(r->arena, c);
        break;
    case RECORD_COLLECTIVE:
        fill(&m->axis, NULL);
        fill(&m->value, NULL);
        m->subject = subject_of(m->value);
        break;
    case RECORD_MOVE:
        fill(&l->value, NULL);
        l->subject = subject_of(l->value);
        break;
    default: break;
    }
}
/* What a foreign trace may leave out of a parameter, and what no time may be. */
static void finish_record(Reader *r, int kind, const Json *o, char *record) {
    fill_texts(r, kind, record);
    if (kind == RECORD_PARAM && !json_get(o, "rest_shape")) {
        TraceParam *p = RECORD(TraceParam);
        int n = p->rest.n_places;
        TracePlace *place = p->rest.place;
        p->rest = p->compute;
        p->rest.n_places = n;
        p->rest.place = place;
    }
    if (kind == RECORD_EVENT) {
        const TraceEvent *e = RECORD(TraceEvent);
        bool ok = isfinite(e->start) && isfinite(e->end) && isfinite(e->exposed) && e->start >= 0;
        ok = ok && isfinite(e->wait) && e->wait_exposed >= 0 && e->wait_exposed <= e->wait;
        if (!ok || e->end < e->start || e->exposed < 0 || e->wait > e->end - e->start)
            bad(r, "an event whose times make no sense");
    }
    if (kind == RECORD_CHECK) {
        const TraceCheck *k = RECORD(TraceCheck);
        if (k->n_terms != k->n_term_ranks) bad(r, "\"term_ranks\" is not a rank per term");
    }
    if (kind == RECORD_MEASURED) {
        const TraceMeasured *m = RECORD(TraceMeasured);
        bool ok = isfinite(m->start) && isfinite(m->end) && isfinite(m->wait) && m->start >= 0;
        if (!ok || m->end < m->start || m->wait < 0 || m->rank < 0 || m->rank >= r->t->ranks)
            bad(r, "a measured step whose times or rank make no sense");
        if (m->n_sent && m->n_sent != r->t->ranks) bad(r, "\"sent\" is not a number per rank");
    }
}
/* A new record at the end of the array of its kind. */
static char *push_record(Reader *r, int kind) {
    const RecordType *type = &record_types[kind];
    char *items, *at = (char *)r->t + type->items_at;
    int *n = (int *)(void *)((char *)r->t + type->count_at);
    memcpy(&items, at, sizeof items);
    if (*n == r->cap[kind]) {
        items = arena_grow(r->arena, items, type->size, (size_t)*n, &r->cap[kind]);
        memcpy(at, &items, sizeof items);
    }
    return items + (size_t)(*n)++ * type->size;
}
typedef enum { SEEN_NOTHING, SEEN_RUN, SEEN_VERDICT } Seen;

static Seen read_object(Reader *r, const Json *o, Seen seen) {
    const char *schema = as_text(r, json_get(o, "schema"), "schema"),
               *type = as_text(r, json_get(o, "type"), "type");
    if (!schema) bad(r, "no \"schema\": this is not a trace of shardproof");
    else if (strcmp(schema, TRACE_SCHEMA) != 0)
        bad(r, "schema \"%.40s\": this version reads %s", schema, TRACE_SCHEMA);
    if (!type) bad(r, "a record without \"type\"");
    if (r->why) return seen;
    int kind = 0;
    while (kind < N_RECORD_TYPES && strcmp(record_types[kind].type, type) != 0) kind++;
    if (kind == N_RECORD_TYPES) return seen; /* of a later version */
    if ((kind == RECORD_RUN) != (seen == SEEN_NOTHING))
        bad(r,
            seen == SEEN_NOTHING ? "the first record is a %s record, not \"run\""
                                 : "a second %s record",
            type);
    else if (kind == RECORD_RUN || kind == RECORD_VERDICT)
        read_record(r, &record_types[kind], o, (char *)r->t);
    else {
        char *record = push_record(r, kind);
        read_record(r, &record_types[kind], o, record);
        if (!r->why) finish_record(r, kind, o, record);
    }
    return kind == RECORD_RUN ? SEEN_RUN : kind == RECORD_VERDICT ? SEEN_VERDICT : seen;
}
static Seen read_line(Reader *r, const char *line, size_t n, Seen seen, int *col) {
    Arena *scratch = arena_new();
    const char *why;
    int l;
    Json *o = json_parse(scratch, line, n, &why, &l, col);
    if (!o) bad(r, "not JSON: %s", why);
    else if (o->kind != JSON_OBJECT) bad(r, "not a record: a trace has one JSON object per line");
    else if (seen == SEEN_VERDICT)
        bad(r, "a record after the verdict, which is the last line of a trace");
    else seen = read_object(r, o, seen);
    arena_free(scratch);
    return seen;
}
static bool blank(const char *s, size_t n) {
    while (n && (*s == ' ' || *s == '\t' || *s == '\r')) s++, n--;
    return n == 0;
}
Trace *trace_read(Arena *arena, Diags *d, const char *file, const char *text, size_t n) {
    Reader r = {.arena = arena, .t = trace_new(arena)};
    Seen seen = SEEN_NOTHING;
    int line = 0, col = 0;
    for (size_t at = 0; at < n && !r.why;) {
        const char *end = memchr(text + at, '\n', n - at);
        size_t len = end ? (size_t)(end - (text + at)) : n - at;
        line++;
        col = 0;
        if (!blank(text + at, len)) seen = read_line(&r, text + at, len, seen, &col);
        at += len + 1;
    }
    if (!r.why && seen == SEEN_NOTHING) bad(&r, "no record: the trace is empty");
    if (!r.why && seen == SEEN_RUN)
        bad(&r, "the trace is cut off: its last line, the verdict, is missing");
    if (!r.why) {
        trace_index(r.t);
        trace_index_values(r.t);
        return r.t;
    }
    diag_error(d, "E0109", ((Loc){arena_strdup(arena, file), line, col}), NULL, "%s", r.why);
    return NULL;
}
