/* Bytes that ranks hold, step by step. See footprint.h. */
#include "exec/footprint.h"
#include "exec/widths.h"

/* What a rank of one class holds beside its parameters at rest, and what was last said of it. */
typedef struct {
    int64_t live, copies; /* bytes: of gathered parameters; of all else */
    int64_t said_live, said_copies;
} Held;
/* Values by the step at which they come, and by the one after which they go. */
typedef struct {
    int *come, *go, *next_come, *next_go; /* -1 ends a list */
} Lists;

static int64_t elements_in(const Footprint *f, const GTensor *t, const Layout *l, int klass) {
    int64_t shape[LAYOUT_MAX_DIMS];
    if (!layout_holds(f->p->mesh, l, f->rep[klass])) return 0;
    return region_stored(f->p->mesh, t, l, f->rep[klass], shape);
}
int64_t footprint_bytes(const Footprint *f, int val, int klass) {
    const Val *v = &f->p->val[val];
    return elements_in(f, &f->p->graph->t[v->tensor], &v->L, klass) *
           dtype_size(widths_of(f->p, v, f->dtype));
}
void footprint_row(const Footprint *f, int step, int klass, const char *category, int64_t bytes) {
    Trace *t = f->t;
    TraceMemory *x = ARENA_PUSH_LARGE(t->arena, t->memory, t->n_memory, t->cap_memory);
    *x = (TraceMemory){
        .step = step, .ranks = t->classes[klass], .category = category, .bytes = bytes};
}
static void put(int *head, int *next, int step, int v) {
    next[v] = head[step];
    head[step] = v;
}
static Lists lists_of(const Footprint *f, Arena *arena) {
    const Program *p = f->p;
    Lists l = {ARENA_ARRAY(arena, int, p->ns + 1), ARENA_ARRAY(arena, int, p->ns + 1),
               ARENA_ARRAY(arena, int, p->nv + 1), ARENA_ARRAY(arena, int, p->nv + 1)};
    for (int i = 0; i <= p->ns; i++) l.come[i] = l.go[i] = -1;
    for (int v = 0; v < p->nv; v++) {
        if (!f->buffers[v]) continue;
        put(l.come, l.next_come, f->buffers[v]->from, v);
        put(l.go, l.next_go, f->buffers[v]->until, v);
    }
    return l;
}
/* A parameter that a step makes is a copy for use, gathered from where it lies at rest. */
static void change(const Footprint *f, Held *h, int val, int klass, int sign) {
    bool copy = f->p->val[val].kind == KIND_PARAM;
    *(copy ? &h->copies : &h->live) += sign * footprint_bytes(f, val, klass);
}
static int64_t in_dtype(const Footprint *f, int64_t bytes, int dtype) {
    return dtype < 0 ? bytes : bytes / dtype_size(f->dtype) * dtype_size((Dtype)dtype);
}
void footprint_at_rest(const Footprint *f, int klass) {
    int64_t params = 0, kept = 0;
    for (int v = 0; v < f->p->nv; v++) {
        const GTensor *t = &f->p->graph->t[f->p->val[v].tensor];
        if (f->p->val[v].step >= 0 || f->p->val[v].kind != KIND_PARAM) continue;
        int64_t bytes = footprint_bytes(f, v, klass);
        if (t->state_of) kept += in_dtype(f, bytes, f->moments);
        else params += bytes;
        if (t->state_of || !t->diff || f->master < 0) continue;
        /* the copy that is updated is where it is updated */
        const Layout *state = f->p->assign->state ? &f->p->assign->state[t->id] : &f->p->val[v].L;
        kept += elements_in(f, t, state, klass) * dtype_size((Dtype)f->master);
    }
    footprint_row(f, -1, klass, "parameters", params);
    if (kept) footprint_row(f, -1, klass, "optimizer", kept);
}
void footprint_record(const Footprint *f) {
    Arena *tmp = arena_new();
    Lists l = lists_of(f, tmp);
    int n = f->t->n_classes;
    Held *held = ARENA_ARRAY(tmp, Held, n + 1);
    for (int k = 0; k < n; k++) footprint_at_rest(f, k);
    for (int i = 0; i < f->p->ns; i++)
        for (int k = 0; k < n; k++) {
            Held *h = &held[k];
            for (int v = l.come[i]; v >= 0; v = l.next_come[v]) change(f, h, v, k, 1);
            if (h->live != h->said_live || i == 0)
                footprint_row(f, i, k, "activations", h->said_live = h->live);
            if (h->copies != h->said_copies)
                footprint_row(f, i, k, "gathered", h->said_copies = h->copies);
            for (int v = l.go[i]; v >= 0; v = l.next_go[v]) change(f, h, v, k, -1);
        }
    arena_free(tmp);
}
