/* Bytes that ranks hold, step by step. See footprint.h. */
#include "exec/footprint.h"
#include "exec/lives.h"
#include "exec/region.h"

/* What is held by a rank of one class, and what was last said of it. */
typedef struct {
    int64_t live, copies; /* bytes: of gathered parameters; of all else that is not at rest */
    int64_t said_live, said_copies;
} Held;

static int64_t bytes_of(const Footprint *f, int val, int klass) {
    const Val *v = &f->p->val[val];
    const GTensor *t = &f->p->graph->t[v->tensor];
    int64_t shape[LAYOUT_MAX_DIMS];
    return region_stored(f->p->mesh, t, &v->L, f->rep[klass], shape) *
           dtype_size(t->is_int ? DT_I64 : f->dtype);
}
static void row(const Footprint *f, int step, int klass, const char *category, int64_t bytes) {
    Trace *t = f->t;
    TraceMemory *x = ARENA_PUSH_LARGE(t->arena, t->memory, t->n_memory, t->cap_memory);
    *x = (TraceMemory){
        .step = step, .ranks = t->classes[klass], .category = category, .bytes = bytes};
}
/* Does the value share the buffer of what it was made from? The optimizer updates parameters and
 * its state in place. */
static bool shares_buffer(const Program *p, const Val *v) {
    return p->graph->t[v->tensor].next_of || (v->step >= 0 && step_renames(&p->step[v->step]));
}
/* An all-reduce of what nobody reads afterwards leaves its result where that was, unless it travels
 * in another's bucket. */
static bool in_place(const Program *p, const Step *s, const int *last) {
    bool reduces = s->kind == ST_MOVE &&
                   (s->move.kind == MOVE_ALL_REDUCE || s->move.kind == MOVE_ALL_REDUCE_MAX);
    const Val *in = &p->val[s->in[0]];
    return reduces && (s->unit < 0 || s->unit == s->id) && last[s->in[0]] == s->id &&
           in->step >= 0 && !shares_buffer(p, in);
}
/* A value that comes (sign 1) or goes (-1). */
static void change(const Footprint *f, Held *h, int val, int klass, int sign) {
    const Val *v = &f->p->val[val];
    bool param = v->kind == KIND_PARAM;
    if ((param && v->step < 0) || shares_buffer(f->p, v)) return; /* at rest; in another's buffer */
    /* a parameter that a step makes is a copy for use, gathered from where it lies at rest */
    *(param ? &h->copies : &h->live) += sign * bytes_of(f, val, klass);
}
/* What is there before the first step. */
static void sources(const Footprint *f, Held *h) {
    const Program *p = f->p;
    for (int k = 0; k < f->t->n_classes; k++) {
        int64_t params = 0;
        for (int v = 0; v < p->nv; v++)
            if (p->val[v].step < 0)
                *(p->val[v].kind == KIND_PARAM ? &params : &h[k].live) += bytes_of(f, v, k);
        row(f, -1, k, "parameters", params);
    }
}
void footprint_record(const Footprint *f) {
    const Program *p = f->p;
    Arena *tmp = arena_new();
    Lives l = lives_find(p, f->dtype, f->held, tmp);
    int n = f->t->n_classes;
    Held *held = ARENA_ARRAY(tmp, Held, n + 1);
    sources(f, held);
    for (int i = 0; i < p->ns; i++) {
        int reused = in_place(p, &p->step[i], l.last) ? p->step[i].in[0] : -1;
        for (int k = 0; k < n; k++) {
            Held *h = &held[k];
            if (reused >= 0) change(f, h, reused, k, -1);
            for (int v = l.come[i]; v >= 0; v = l.next_come[v]) change(f, h, v, k, 1);
            if (h->live != h->said_live || i == 0)
                row(f, i, k, "activations", h->said_live = h->live);
            if (h->copies != h->said_copies) row(f, i, k, "gathered", h->said_copies = h->copies);
            for (int v = l.go[i]; v >= 0; v = l.next_go[v])
                if (v != reused) change(f, h, v, k, -1);
        }
    }
    arena_free(tmp);
}
