/* A trace as JSON Lines: one record per line, run first, verdict last, between them all records in
 * the order of their steps. The tables of trace_fields.c say what is written; here is how each kind
 * of field looks. Refuses to decide anything. */
#include "base/file.h"
#include "trace/trace_fields.h"
#include "formats/json.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- pieces ---- */
/* 4096, not 4096.0. */
static void number(JsonWriter *w, const char *key, double v) {
    if (fabs(v) < 9007199254740992.0 && v == floor(v) && !(v == 0 && signbit(v)))
        json_int(w, key, (int64_t)v);
    else json_real(w, key, v);
}
static void run_str(JsonWriter *w, int64_t first, int64_t count, int64_t stride) {
    char s[80];
    snprintf(s, sizeof s, "%lld:%lld:%lld", (long long)first, (long long)(first + count * stride),
             (long long)stride);
    json_str(w, NULL, s);
}
static void put_ranks(JsonWriter *w, const char *key, const RankSet *r) {
    json_open(w, key, '[');
    bool spelled = rankset_count(r) <= TRACE_SPELLED && r->run;
    Arena *scratch = r->box ? arena_new() : NULL;
    for (int i = 0; i < r->n && r->box; i++) json_str(w, NULL, rankbox_text(&r->box[i], scratch));
    if (scratch) {
        arena_free(scratch);
        json_close(w, ']');
        return;
    }
    for (int i = 0; i < r->n; i++) {
        const RankRun *u = &r->run[i];
        if (!spelled) run_str(w, u->first, u->count, u->stride);
        for (int64_t j = 0; spelled && j < u->count; j++)
            json_int(w, NULL, u->first + j * u->stride);
    }
    json_close(w, ']');
}
const char *trace_ranks_json(const RankSet *r, Arena *arena) {
    JsonWriter w = json_writer(arena);
    put_ranks(&w, NULL, r);
    return w.s.s;
}
static void put_sizes(JsonWriter *w, const char *key, const int64_t *v, int n) {
    json_open(w, key, '[');
    for (int i = 0; i < n; i++) json_int(w, NULL, v[i]);
    json_close(w, ']');
}
static void put_texts(JsonWriter *w, const char *key, const char *const *s, int n) {
    json_open(w, key, '[');
    for (int i = 0; i < n; i++) json_str(w, NULL, s[i]);
    json_close(w, ']');
}
/* [[size, stride], ...] */
static void put_strides(JsonWriter *w, const char *key, const int64_t *size, const int64_t *stride,
                        int n) {
    json_open(w, key, '[');
    for (int i = 0; i < n; i++) put_sizes(w, NULL, (const int64_t[]){size[i], stride[i]}, 2);
    json_close(w, ']');
}

/* ---- one writer per kind: the field's key, the record, the field ---- */
typedef void (*Writer)(JsonWriter *w, const Field *f, const char *record);
#define FIELD(T) (*(T const *)(const void *)(record + f->at))
#define COUNT(T) (*(T const *)(const void *)(record + f->count_at))
#define RECORD(T) ((T const *)(const void *)record)

static void w_text(JsonWriter *w, const Field *f, const char *record) {
    const char *s = FIELD(const char *);
    if ((s && *s) || f->rule != OPTIONAL) json_str(w, f->key, s);
}
static void w_int(JsonWriter *w, const Field *f, const char *record) {
    int v = FIELD(int);
    if (v != f->normal || f->rule != OPTIONAL) json_int(w, f->key, v);
}
static void w_i64(JsonWriter *w, const Field *f, const char *record) {
    int64_t v = FIELD(int64_t);
    if (v || f->rule != OPTIONAL) json_int(w, f->key, v);
}
static void w_real(JsonWriter *w, const Field *f, const char *record) {
    double v = FIELD(double);
    if (v != 0 || signbit(v) || f->rule != OPTIONAL) json_real(w, f->key, v);
}
static void w_number(JsonWriter *w, const Field *f, const char *record) {
    number(w, f->key, FIELD(double));
}
static void w_bool(JsonWriter *w, const Field *f, const char *record) {
    bool b = FIELD(bool);
    if (b || f->rule != OPTIONAL) json_bool(w, f->key, b);
}
static void w_ranks(JsonWriter *w, const Field *f, const char *record) {
    put_ranks(w, f->key, &FIELD(RankSet));
}
static void w_texts(JsonWriter *w, const Field *f, const char *record) {
    put_texts(w, f->key, FIELD(const char **), COUNT(int));
}
static void w_cuts(JsonWriter *w, const Field *f, const char *record) {
    const char *const *cuts = (const char *const *)(const void *)(record + f->at);
    bool any = false;
    for (int i = 0; i < TRACE_MAX_DIMS; i++) any = any || cuts[i];
    if (any) put_texts(w, f->key, cuts, TRACE_MAX_DIMS);
}
static void w_steps(JsonWriter *w, const Field *f, const char *record) {
    const int *step = FIELD(int *);
    if (!step) return;
    json_open(w, f->key, '[');
    for (int i = 0; i < COUNT(int); i++) json_int(w, NULL, step[i]);
    json_close(w, ']');
}
static void w_numbers(JsonWriter *w, const Field *f, const char *record) {
    const double *v = FIELD(double *);
    int64_t n = COUNT(int64_t);
    if (!n) return;
    json_open(w, f->key, '[');
    for (int64_t i = 0; i < n; i++) number(w, NULL, v[i]);
    json_close(w, ']');
}
static void w_index(JsonWriter *w, const Field *f, const char *record) {
    if (COUNT(int))
        put_sizes(w, f->key, (const int64_t *)(const void *)(record + f->at), COUNT(int));
}
static void w_global(JsonWriter *w, const Field *f, const char *record) {
    const TraceShape *s = &FIELD(TraceShape);
    put_sizes(w, f->key, s->global_shape, s->nd);
}
static void w_places(JsonWriter *w, const Field *f, const char *record) {
    const TraceShape *s = &FIELD(TraceShape);
    json_open(w, f->key, '{');
    for (int i = 0; i < s->n_places; i++) json_str(w, s->place[i].axis, s->place[i].place);
    json_close(w, '}');
}
static void w_dims(JsonWriter *w, const Field *f, const char *record) {
    const TraceShape *s = &FIELD(TraceShape);
    put_texts(w, f->key, s->dim_symbol, s->nd);
}
static void w_locals(JsonWriter *w, const Field *f, const char *record) {
    const TraceShape *s = &FIELD(TraceShape);
    json_open(w, f->key, '[');
    for (int i = 0; i < s->n_local; i++) {
        json_open(w, NULL, '{');
        put_ranks(w, "ranks", &s->local[i].ranks);
        put_sizes(w, "shape", s->local[i].shape, s->nd);
        json_int(w, "bytes", s->local[i].bytes);
        json_close(w, '}');
    }
    json_close(w, ']');
}
static void w_traffic(JsonWriter *w, const Field *f, const char *record) {
    const TraceTraffic *l = FIELD(TraceTraffic *);
    if (!COUNT(int)) return;
    json_open(w, f->key, '[');
    for (int i = 0; i < COUNT(int); i++) {
        json_open(w, NULL, '{');
        put_ranks(w, "ranks", &l[i].ranks);
        json_int(w, "bytes_in", l[i].bytes_in);
        json_int(w, "bytes_out", l[i].bytes_out);
        json_int(w, "bytes_sent", l[i].bytes_sent);
        json_close(w, '}');
    }
    json_close(w, ']');
}
static void w_with(JsonWriter *w, const Field *f, const char *record) {
    if (COUNT(int)) w_steps(w, f, record);
}
static void w_held(JsonWriter *w, const Field *f, const char *record) {
    const TraceHeld *h = FIELD(const TraceHeld *);
    if (h) put_sizes(w, f->key, (const int64_t[]){h->from, h->until}, 2);
}
static void one_group(JsonWriter *w, const RankGroups *g, int64_t group) {
    int64_t n = groups_size(g), list[TRACE_GROUP_RANKS];
    for (int64_t i = 0; i < n; i++) list[i] = groups_member(g, group, i);
    if (n > TRACE_SPELLED) {
        Arena *scratch = arena_new();
        RankSet s = rankset_from(scratch, list, n);
        if (s.n != 1) json_open(w, NULL, '[');
        for (int i = 0; i < s.n; i++) run_str(w, s.run[i].first, s.run[i].count, s.run[i].stride);
        if (s.n != 1) json_close(w, ']');
        arena_free(scratch);
    } else {
        put_sizes(w, NULL, list, (int)n);
    }
}
static void w_groups(JsonWriter *w, const Field *f, const char *record) {
    const RankGroups *g = &FIELD(RankGroups);
    int64_t n = groups_count(g), size = groups_size(g), all;
    bool listed = !__builtin_mul_overflow(n, size, &all) && all <= TRACE_GROUP_RANKS;
    json_open(w, f->key, listed ? '[' : '{');
    for (int64_t i = 0; listed && i < n; i++) one_group(w, g, i);
    if (!listed) {
        json_int(w, "count", n);
        json_int(w, "size", size);
        put_strides(w, "in", g->in_size, g->in_stride, g->n_in);
        put_strides(w, "out", g->out_size, g->out_stride, g->n_out);
        if (g->first) json_int(w, "first", g->first);
    }
    json_close(w, listed ? ']' : '}');
    json_open(w, "grouping", '{');
    put_strides(w, "in", g->in_size, g->in_stride, g->n_in);
    put_strides(w, "out", g->out_size, g->out_stride, g->n_out);
    if (g->first) json_int(w, "first", g->first);
    json_close(w, '}');
}
static void w_errors(JsonWriter *w, const Field *f, const char *record) {
    const TraceCheck *c = RECORD(TraceCheck);
    if (!c->n_rank_error) return;
    json_open(w, f->key, '[');
    for (int i = 0; i < c->n_rank_error; i++) {
        json_open(w, NULL, '{');
        json_int(w, "rank", c->rank_error[i].rank);
        json_real(w, "error", c->rank_error[i].error);
        json_close(w, '}');
    }
    json_close(w, ']');
}
/* A parameter is known by its name in the plan's scheme; the checkpoint's name stands beside it. */
static void w_param_name(JsonWriter *w, const Field *f, const char *record) {
    const TraceParam *p = RECORD(TraceParam);
    json_str(w, f->key, p->plan_name ? p->plan_name : p->compute.name);
    if (p->compute.name) json_str(w, "canonical", p->compute.name);
    if (!p->plan_name) json_bool(w, "canonical_only", true);
}
static void w_matched(JsonWriter *w, const Field *f, const char *record) {
    const TraceParam *p = RECORD(TraceParam);
    if (!p->file && !p->line) return;
    json_open(w, f->key, '{');
    json_str(w, "file", p->file);
    json_int(w, "line", p->line);
    json_close(w, '}');
}
static void w_mesh(JsonWriter *w, const Field *f, const char *record) {
    const Trace *t = RECORD(Trace);
    json_open(w, f->key, '{');
    for (int i = 0; i < t->n_axes; i++) json_int(w, t->axes[i].name, t->axes[i].size);
    json_close(w, '}');
}
static void w_named_groups(JsonWriter *w, const Field *f, const char *record) {
    const Trace *t = RECORD(Trace);
    json_open(w, f->key, '{');
    for (int i = 0; i < t->n_groups; i++) json_str(w, t->groups[i].name, t->groups[i].axes);
    json_close(w, '}');
}
static void w_model(JsonWriter *w, const Field *f, const char *record) {
    const Trace *t = RECORD(Trace);
    json_open(w, f->key, '{');
    for (int i = 0; i < t->n_model; i++) number(w, t->model[i].name, t->model[i].value);
    json_close(w, '}');
}
static void w_settings(JsonWriter *w, const Field *f, const char *record) {
    const Trace *t = RECORD(Trace);
    if (!t->n_settings) return;
    json_open(w, f->key, '{');
    for (int i = 0; i < t->n_settings; i++) json_str(w, t->settings[i].name, t->settings[i].text);
    json_close(w, '}');
}
static void w_classes(JsonWriter *w, const Field *f, const char *record) {
    const Trace *t = RECORD(Trace);
    if (!t->n_classes) return;
    json_open(w, f->key, '[');
    for (int i = 0; i < t->n_classes; i++) put_ranks(w, NULL, &t->classes[i]);
    json_close(w, ']');
}
static void w_worst(JsonWriter *w, const Field *f, const char *record) {
    const Trace *t = RECORD(Trace);
    if (!t->worst_value && t->worst_used == 0) return;
    json_open(w, f->key, '{');
    json_str(w, "value", t->worst_value);
    json_real(w, "used", t->worst_used);
    json_close(w, '}');
}
static void w_ends(JsonWriter *w, const Field *f, const char *record) {
    const Trace *t = RECORD(Trace);
    if (!t->end_to_end) return;
    json_open(w, f->key, '{');
    json_str(w, "value", t->end_to_end);
    json_real(w, "off", t->end_to_end_off);
    json_real(w, "bound", t->end_to_end_bound);
    json_close(w, '}');
}
static void w_word(JsonWriter *w, const Field *f, const char *record) {
    const char *word = word_lists[f->normal].word[FIELD(int)];
    if (word) json_str(w, f->key, word);
}
static void w_severity(JsonWriter *w, const Field *f, const char *record) {
    json_str(w, f->key, severity_words[FIELD(Severity)]);
}
static void w_event_rank(JsonWriter *w, const Field *f, const char *record) {
    const TraceEvent *e = RECORD(TraceEvent);
    json_int(w, f->key, rankset_first(&e->ranks));
}

static const Writer writers[F_KINDS] = {
    [F_TEXT] = w_text,
    [F_WORD] = w_word,
    [F_INT] = w_int,
    [F_I64] = w_i64,
    [F_REAL] = w_real,
    [F_NUMBER] = w_number,
    [F_BOOL] = w_bool,
    [F_RANKS] = w_ranks,
    [F_TEXTS] = w_texts,
    [F_CUTS] = w_cuts,
    [F_STEPS] = w_steps,
    [F_NUMBERS] = w_numbers,
    [F_INDEX] = w_index,
    [F_GLOBAL] = w_global,
    [F_PLACES] = w_places,
    [F_DIMS] = w_dims,
    [F_LOCALS] = w_locals,
    [F_GROUPS] = w_groups,
    [F_TRAFFIC] = w_traffic,
    [F_WITH] = w_with,
    [F_HELD] = w_held,
    [F_ERRORS] = w_errors,
    [F_PARAM_NAME] = w_param_name,
    [F_MATCHED] = w_matched,
    [F_MESH] = w_mesh,
    [F_NAMED_GROUPS] = w_named_groups,
    [F_MODEL] = w_model,
    [F_SETTINGS] = w_settings,
    [F_CLASSES] = w_classes,
    [F_WORST] = w_worst,
    [F_ENDS] = w_ends,
    [F_SEVERITY] = w_severity,
    [F_EVENT_RANK] = w_event_rank,
};

/* ---- the whole ---- */
static void write_record(JsonWriter *w, const RecordType *r, const void *record) {
    json_open(w, NULL, '{');
    json_str(w, "schema", TRACE_SCHEMA);
    json_str(w, "type", r->type);
    for (int i = 0; i < r->n; i++) writers[r->field[i].kind](w, &r->field[i], record);
    json_close(w, '}');
    json_newline(w);
}
static int record_count(const Trace *t, const RecordType *r) {
    return *(const int *)(const void *)((const char *)t + r->count_at);
}
static const char *record_at(const Trace *t, const RecordType *r, int i) {
    const char *items;
    memcpy(&items, (const char *)t + r->items_at, sizeof items);
    return items + (size_t)i * r->size;
}
static void write_all(JsonWriter *w, const Trace *t, const RecordType *r) {
    for (int i = 0; i < record_count(t, r); i++) write_record(w, r, record_at(t, r, i));
}
/* The arrays that have steps, merged: always the one whose next record has the smallest step, ties
 * in the order of the table. So every array keeps its own order in the file, whatever its steps
 * are. */
static void write_steps(JsonWriter *w, const Trace *t) {
    int at[N_RECORD_TYPES] = {0};
    for (;;) {
        int best = -1, best_step = 0;
        for (int k = RECORD_FIRST_STEPPED; k < RECORD_TIE; k++) {
            const RecordType *r = &record_types[k];
            if (at[k] >= record_count(t, r)) continue;
            int step = *(const int *)(const void *)(record_at(t, r, at[k]) + r->step_at);
            if (best >= 0 && step >= best_step) continue;
            best = k;
            best_step = step;
        }
        if (best < 0) return;
        write_record(w, &record_types[best], record_at(t, &record_types[best], at[best]++));
    }
}
char *trace_text(const Trace *t, Arena *arena, bool with_events, size_t *n) {
    Trace shown = *t;
    if (!with_events) {
        shown.n_events = shown.n_measured = shown.n_actions = 0;
        shown.hardware = shown.links[0] = shown.links[1] = NULL;
        shown.node_ranks = 0;
        shown.flop_rate = shown.memory_rate = shown.launch = 0;
        shown.link_rate[0] = shown.link_rate[1] = 0;
    }
    JsonWriter w = json_writer(arena);
    write_record(&w, &record_types[RECORD_RUN], &shown);
    write_all(&w, &shown, &record_types[RECORD_PARAM]);
    write_all(&w, &shown, &record_types[RECORD_MODULE]);
    write_steps(&w, &shown);
    for (int k = RECORD_TIE; k <= RECORD_DIAG; k++) write_all(&w, &shown, &record_types[k]);
    write_record(&w, &record_types[RECORD_VERDICT], &shown);
    if (n) *n = w.s.n;
    return w.s.s;
}
bool trace_write(const Trace *t, Diags *d, const char *path) {
    Arena *arena = arena_new();
    size_t n;
    const char *text = trace_text(t, arena, true, &n);
    bool ok = file_write(d, path, text, n);
    arena_free(arena);
    return ok;
}
