/* Bytes that ranks hold, step by step. See footprint.h. */
#include "exec/footprint.h"
#include "exec/widths.h"

/* What a rank of one class holds beside its parameters at rest, and what was last said of it. */
typedef struct {
    Holding now, said;
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
static void add_row(const Footprint *f, int step, int klass, const char *category, int64_t bytes) {
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
void footprint_add(const Program *p, Holding *h, int val, int64_t bytes) {
    const Val *v = &p->val[val];
    bool of_param = p->graph->t[v->tensor].kind == KIND_PARAM;
    h->bytes[v->cot                  ? of_param ? HOLDS_GRADIENTS : HOLDS_ACTIVATIONS
             : v->kind == KIND_PARAM ? HOLDS_GATHERED
                                     : HOLDS_ACTIVATIONS] += bytes;
}
int64_t footprint_sum(const Holding *h) {
    int64_t sum = 0;
    for (int k = 0; k < HOLDS_KINDS; k++) sum += h->bytes[k];
    return sum;
}
void footprint_tell(const Footprint *f, int step, int klass, const Holding *now, Holding *said) {
    static const char *const category[HOLDS_KINDS] = {[HOLDS_ACTIVATIONS] = "activations",
                                                      [HOLDS_GRADIENTS] = "gradients",
                                                      [HOLDS_GATHERED] = "gathered"};
    for (int k = 0; k < HOLDS_KINDS; k++) {
        bool first = k == HOLDS_ACTIVATIONS && step == 0;
        if (now->bytes[k] != said->bytes[k] || first)
            add_row(f, step, klass, category[k], now->bytes[k]);
    }
    *said = *now;
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
    add_row(f, -1, klass, "parameters", params);
    if (kept) add_row(f, -1, klass, "optimizer", kept);
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
            for (int v = l.come[i]; v >= 0; v = l.next_come[v])
                footprint_add(f->p, &h->now, v, footprint_bytes(f, v, k));
            footprint_tell(f, i, k, &h->now, &h->said);
            for (int v = l.go[i]; v >= 0; v = l.next_go[v])
                footprint_add(f->p, &h->now, v, -footprint_bytes(f, v, k));
        }
    arena_free(tmp);
}
