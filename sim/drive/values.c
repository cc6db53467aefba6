/* Names of values, and what a run holds under them. Under `pass: train` a parameter's plain name is
 * what it was before the first step, "after.T.NAME" what it is after step T; everything else is
 * that of the last step. Refuses to keep anything: what the stores have dropped is not a value of
 * the run, except inputs and parameters, which are loaded again. */
#include "drive/values.h"
#include <assert.h>
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- names ---- */
/* A whole number and what follows it; NULL if there is none. */
static const char *read_number(const char *s, int64_t *out) {
    if (!isdigit((unsigned char)*s)) return NULL;
    char *end;
    *out = strtoll(s, &end, 10);
    return end;
}
/* Of a library that scales the embedding inside its module the module's output is what ours is
 * behind it. Whoever means what was looked up says so by the value's own name, "embed". */
static int scaled_inside(const Program *p, const char *name, int t) {
    const Graph *g = p->graph;
    const size_t n = strlen(name), out = sizeof ".output" - 1;
    if (!p->assign->model->dims.input_sqrt || t != graph_find(g, "embed") || n < out ||
        strcmp(name + n - out, ".output"))
        return t;
    return graph_find(g, "embed_scaled");
}
static int find_tensor(Arena *arena, const Program *p, const char *name) {
    const Graph *g = p->graph;
    int t = graph_find(g, name);
    /* a checkpoint of another scheme than the plan's */
    for (int s = 0; t < 0 && s < NAMES_COUNT; s++) {
        const char *hf = name;
        for (int k = 0; hf && t < 0; k++) {
            hf = names_from_scheme(arena, (Names)s, name, k);
            if (hf) t = graph_find(g, hf);
        }
    }
    if (t < 0) t = graph_find(g, checkpoint_own(arena, name));
    return scaled_inside(p, name, t);
}
/* A weight of one expert, as files name it: the parameter of all, and which part of it. */
static int find_part(Arena *arena, const Graph *g, const char *name, int *part) {
    const char *own = checkpoint_own(arena, name), *experts = strstr(own, ".experts.");
    for (int t = 0; experts && t < g->nt; t++)
        for (int way = 0; way < 2; way++) {
            const char **names;
            if (strncmp(g->t[t].name, own, (size_t)(experts - own) + 9)) continue;
            int n = checkpoint_parts(arena, &g->t[t], way, &names);
            for (*part = 1; *part <= n; ++*part)
                if (!strcmp(names[*part - 1], own)) return t;
        }
    *part = 0;
    return -1;
}
/* The newest cotangent of a tensor: its total, once the copies' have been added. With `e`: that has
 * numbers. -1: none. */
static int total_cotangent(const Program *p, const Exec *e, int tensor) {
    if (p->grad[tensor] >= 0) return p->grad[tensor];
    for (int v = p->nv - 1; v >= 0; v--)
        if (p->val[v].cot && p->val[v].tensor == tensor && (!e || exec_store(e, v)->alive))
            return v;
    return -1;
}
static bool is_trained(const GTensor *t) {
    return t->kind == KIND_PARAM && (t->diff || t->state_of);
}

bool value_key(Arena *arena, const Program *p, int64_t steps, const char *name, ValueKey *out) {
    *out = (ValueKey){.tensor = -1, .after = -1, .rank = -1};
    if (!strncmp(name, "rank", 4)) {
        const char *rest = read_number(name + 4, &out->rank);
        if (rest && *rest == '/') name = rest + 1;
        else out->rank = -1;
    }
    if (out->rank >= p->mesh->nranks) return false; /* nobody of this mesh holds it */
    if (steps && out->rank < 0 && !strcmp(name, "losses")) return true;
    if (!strncmp(name, "after.", 6)) {
        const char *rest = read_number(name + 6, &out->after);
        if (!rest || *rest != '.' || out->after >= steps) return false;
        name = rest + 1;
    }
    Subject s = subject_of(name);
    out->grad = subject_is_gradient(s);
    out->tensor = find_tensor(arena, p, s.of);
    if (out->tensor < 0 && out->rank < 0)
        out->tensor = find_part(arena, p->graph, s.of, &out->part);
    if (out->tensor < 0) return false;
    if (out->after >= 0) return !out->grad && is_trained(&p->graph->t[out->tensor]);
    return !out->grad || total_cotangent(p, NULL, out->tensor) >= 0;
}
const char *value_name(Arena *arena, const Graph *g, const ValueKey *k) {
    Str s = str_new(arena);
    if (k->rank >= 0) str_addf(&s, "rank%lld/", (long long)k->rank);
    if (k->tensor < 0) {
        str_add(&s, "losses");
        return s.s;
    }
    const GTensor *t = &g->t[k->tensor];
    if (k->after >= 0) str_addf(&s, "after.%lld.", (long long)k->after);
    str_add(&s, subject_name(arena, graph_subject(t, k->grad)));
    return s.s;
}

/* ---- what is there ---- */
static const Exec *exec_of(const ValueSet *s, const ValueKey *k) {
    return k->rank >= 0 ? s->ranks : s->ref ? s->ref->exec : NULL;
}
/* Inputs are dropped between steps, and a parameter's store holds what the last step made of it:
 * their plain names mean what the source says. */
static bool is_source(const ValueSet *s, const Graph *g, const ValueKey *k) {
    return s->steps && k->after < 0 && !k->grad && g->t[k->tensor].kind != KIND_ACTIVATION;
}
static int val_of(const ValueSet *s, const Exec *e, const ValueKey *k) {
    const Program *p = e->p;
    if (k->grad) return total_cotangent(p, e, k->tensor);
    if (k->after >= 0) return k->after == s->after ? p->first[k->tensor] : -1;
    bool rest = p->graph->t[k->tensor].kind == KIND_PARAM; /* what a rank keeps between steps */
    return rest || k->rank < 0 ? p->first[k->tensor] : p->env[k->tensor];
}
/* The source of an exec's inputs and parameters, at the step and micro-batch that the other values
 * are of. */
static FullSource source_of(const ValueSet *s, const Exec *e, const ValueKey *k) {
    FullSource f = *(const FullSource *)e->full_arg;
    f.dev = device_plain(); /* the caller frees it */
    bool param = e->p->graph->t[k->tensor].kind == KIND_PARAM;
    f.step = param ? 0 : s->steps - 1;
    f.part = f.parts > 1 ? f.parts - 1 : 0;
    return f;
}
static void whole_shape(const GTensor *t, ValueShape *o) {
    o->nd = t->nd;
    memcpy(o->size, t->size, sizeof o->size);
    memcpy(o->sym, t->sym, sizeof o->sym);
    memcpy(o->stored, t->stored, sizeof o->stored);
}
/* A rank's part, of these sizes; with a cut of a flattened stored dim its letters are one dim, and
 * those before it are told apart again. */
static void local_shape(const Program *p, const Val *v, int64_t rank, const Tensor *n,
                        ValueShape *o) {
    const GTensor *t = &p->graph->t[v->tensor];
    bool flat = v->L.n[v->L.ndim] > 0;
    int first = 0, list = layout_list_letters(&v->L, t->stored, &first), skip = flat ? list - 1 : 0;
    o->nd = t->nd - skip;
    layout_local(p->mesh, &v->L, t->size, rank, o->size);
    for (int d = 0; d < o->nd; d++) {
        if (d >= first || !flat) o->size[d] = n->n[flat ? d - first : d];
        o->sym[d] = t->sym[flat && d > first ? d + skip : d];
    }
    if (flat && first) { /* n[0] counts each of the letters before too */
        int64_t N = 1;
        for (int d = first; d < first + list; d++)
            N *= layout_dim_size(p->mesh, &v->L, d, t->size[d], rank);
        o->size[first] = layout_dim_size(p->mesh, &v->L, v->L.ndim, N, rank);
    }
    memcpy(o->stored, t->stored, sizeof o->stored);
    if (flat) o->stored[v->L.list] = 1;
    if (v->L.flat.total) o->nstored = 1;
}
bool value_is_share(const ValueSet *s, const ValueKey *k) {
    if (k->rank < 0 || k->tensor < 0) return false;
    const Exec *e = exec_of(s, k);
    int v = e ? val_of(s, e, k) : -1;
    bool share = v < 0 || e->p->assign->plan->microbatches > 1;
    for (int x = 0; !share && x < e->p->mesh->naxes; x++) share = e->p->val[v].L.type[x] == TY_P;
    return share;
}
/* Rows are as many as there are; the letters behind them are a dim each. */
static void rows_shape(const GTensor *t, const Tensor *l, ValueShape *o) {
    o->nd = l->nd;
    memcpy(o->size, l->n, sizeof o->size);
    for (int d = 0; d < l->nd; d++) o->sym[d] = d ? t->sym[d + t->listed - 1] : "rows";
    memcpy(o->stored, t->stored, sizeof o->stored);
    o->stored[0] = 1;
}
/* The last two letters: a matrix of one expert. */
static void part_shape(const GTensor *t, ValueShape *o) {
    o->nd = o->nstored = 2;
    for (int d = 0; d < 2; d++) {
        o->size[d] = t->size[t->nd - 2 + d];
        o->sym[d] = t->sym[t->nd - 2 + d];
        o->stored[d] = 1;
    }
}
bool value_shape(const ValueSet *s, const ValueKey *k, ValueShape *o) {
    *o = (ValueShape){.dtype = DT_F64};
    if (k->tensor < 0) {
        if (!s->ref || !s->ref->losses || !s->steps) return false;
        o->nd = o->nstored = o->stored[0] = 1;
        o->size[0] = o->shape[0] = s->steps;
        o->sym[0] = "steps";
        return true;
    }
    const Exec *e = exec_of(s, k);
    if (!e || k->rank >= e->p->mesh->nranks) return false;
    const GTensor *t = &e->p->graph->t[k->tensor];
    bool source = is_source(s, e->p->graph, k);
    int v = val_of(s, e, k);
    if (v < 0 || (!source && !exec_store(e, v)->alive)) return false;
    if (k->rank >= 0 && !layout_holds(e->p->mesh, &e->p->val[v].L, k->rank)) return false;
    o->nstored = t->nstored;
    if (k->part) part_shape(t, o);
    else if (t->listed) rows_shape(t, &exec_local(e, v, k->rank < 0 ? 0 : k->rank)->t, o);
    else if (k->rank < 0) whole_shape(t, o);
    else if (source) {
        Arena *tmp = arena_new();
        v = e->p->first[k->tensor];
        Region b = region_of(e, v, k->rank, tmp);
        Tensor part = region_packed(&b);
        local_shape(e->p, &e->p->val[v], k->rank, &part, o);
        arena_free(tmp);
    } else {
        local_shape(e->p, &e->p->val[v], k->rank, &exec_local(e, v, k->rank)->t, o);
    }
    for (int d = 0, at = 0; d < o->nstored; d++) {
        o->shape[d] = 1;
        for (int i = 0; i < o->stored[d]; i++) o->shape[d] *= o->size[at++];
    }
    o->dtype = t->is_int ? DT_I64 : k->rank < 0 ? DT_F64 : e->dtype;
    return true;
}
int64_t value_count(const ValueShape *s) {
    int64_t n = 1;
    for (int d = 0; d < s->nd; d++) n *= s->size[d];
    return n;
}

/* ---- numbers ---- */
static void *packed(Device *dev, const Tensor *of, Dtype dtype) {
    Tensor host = dev->get(dev, of, dtype), *t = &host;
    int64_t n = tensor_count(t), i[LAYOUT_MAX_DIMS] = {0}, es = dtype_size(dtype);
    char *out = base_malloc(base_mul((size_t)(n ? n : 1), (size_t)es));
    for (int64_t k = 0; k < n; k++) {
        int64_t at = 0;
        for (int d = 0; d < t->nd; d++) at += i[d] * t->s[d];
        memcpy(out + k * es, (const char *)t->p + at * es, (size_t)es);
        for (int d = t->nd - 1; d >= 0; d--) {
            if (++i[d] < t->n[d]) break;
            i[d] = 0;
        }
    }
    dev->done(dev, &host);
    return out;
}
/* An input or parameter, from its source: whole, or what a rank is given of it. */
static void *read_source(const ValueSet *s, const Exec *e, const ValueKey *k, Dtype dtype) {
    FullSource f = source_of(s, e, k);
    // cppcheck-suppress returnDanglingLifetime ; what it returns is its own, not the source
    if (k->rank < 0) return e->full(&f, k->tensor, dtype);
    Exec *again = exec_new(s->arena, e->p, e->numbers, NULL);
    again->full = e->full;
    again->full_arg = &f;
    int v = e->p->first[k->tensor];
    void *out =
        exec_load(again, v) ? packed(again->dev, &exec_local(again, v, k->rank)->t, dtype) : NULL;
    exec_free(again);
    return out;
}
/* The part of a whole value that the key names, in place. */
static void *part_of(void *whole, const ValueKey *k, const ValueShape *shape) {
    int64_t n = value_count(shape) * dtype_size(shape->dtype);
    if (whole && k->part) memmove(whole, (char *)whole + (k->part - 1) * n, (size_t)n);
    return whole;
}
/* float32 as float64; takes what it is given. */
static double *widened(float *x, int64_t n) {
    double *wide = base_malloc(base_mul((size_t)(n ? n : 1), sizeof *wide));
    for (int64_t i = 0; i < n; i++) wide[i] = (double)x[i];
    free(x);
    return wide;
}
static void *read_all(const ValueSet *s, const ValueKey *k, const ValueShape *shape) {
    if (k->tensor < 0) {
        double *x = base_malloc((size_t)s->steps * 8);
        memcpy(x, s->ref->losses, (size_t)s->steps * 8);
        return x;
    }
    const Exec *e = exec_of(s, k);
    if (is_source(s, e->p->graph, k)) return read_source(s, e, k, shape->dtype);
    const Tensor *t = &exec_local(e, val_of(s, e, k), k->rank < 0 ? 0 : k->rank)->t;
    if (shape->dtype != DT_F64 || e->dtype != DT_F32) return packed(e->dev, t, shape->dtype);
    return widened(packed(e->dev, t, DT_F32), tensor_count(t));
}

void *value_read(const ValueSet *s, const ValueKey *k, const ValueShape *shape) {
    assert(k->rank < 0 || (s->ranks && k->rank < s->ranks->p->mesh->nranks));
    return part_of(read_all(s, k, shape), k, shape);
}

/* ---- all of them ---- */
typedef struct {
    const ValueSet *s;
    ValueKey *key;
    int n, cap;
} List;
static void add(List *l, ValueKey k) {
    ValueShape shape;
    if (value_shape(l->s, &k, &shape)) *ARENA_PUSH(l->s->arena, l->key, l->n, l->cap) = k;
}
ValueKey *value_list(const ValueSet *s, int64_t rank, int *n) {
    List l = {.s = s};
    const Graph *g = rank < 0 ? s->ref->graph : s->ranks->p->graph;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->next_of || x->grad_of) continue; /* "after.T.NAME" and "grad.param.NAME" */
        if (!x->state_of) add(&l, (ValueKey){.tensor = t, .after = -1, .rank = rank});
        if (x->diff) add(&l, (ValueKey){.tensor = t, .grad = true, .after = -1, .rank = rank});
        if (s->after >= 0 && is_trained(x))
            add(&l, (ValueKey){.tensor = t, .after = s->after, .rank = rank});
    }
    if (rank < 0) add(&l, (ValueKey){.tensor = -1, .after = -1, .rank = -1});
    *n = l.n;
    return l.key;
}
