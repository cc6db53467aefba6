/* The tensors of a run: each parameter and input of the graph is bound to a tensor of a file, to a
 * random stream, or, as the weights of the loss, to what follows from the labels. Everything that
 * is missing or misshaped is told when the files are opened; NaN, infinity and ids out of range
 * when the numbers are loaded. Refuses to know about ranks. */
#include "weights/weights.h"
#include "weights/routing.h"
#include "weights/view.h"
#include "base/file.h"
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

typedef enum {
    FROM_RANDOM,
    FROM_FILE,
    FROM_RANDOM_IDS,
    FROM_RANDOM_LABELS,
    FROM_LABELS,
    FROM_ROUTING
} From;

typedef struct {
    From from;
    const StTensor *st;
    const StTensor **part; /* n_parts of equal size, one after the other; st is the first of them */
    int n_parts;           /* 0: st is all */
    View view;             /* how it lies in st; rows 0: as it is */
    RandomStream random;
    const char *source;
    int64_t n;     /* elements that the source has; zeros follow (rows that pad the vocabulary) */
    int64_t steps; /* length of a leading dim of the file's tensor that the graph's has not got; 0:
                      none */
} Binding;

struct Weights {
    Arena *a;
    const Plan *p;
    const Model *m;
    SafeTensors *params, *inputs, *routing;
    Binding *b;                    /* one per tensor of the graph */
    int labels;                    /* tensors, or -1 */
    int64_t V;                     /* ids that exist */
    bool failed;                   /* something could not be loaded */
    int64_t counted, counted_step; /* labels that count in that training step; 0: not known */
};

enum { LOAD_CHUNK = 1 << 20 };

/* ---- shapes ---- */

static int64_t count_of(const GTensor *t) {
    int64_t n = 1;
    for (int i = 0; i < t->nd; i++) n *= t->size[i];
    return n;
}

/* Has the tensor rows that only pad the vocabulary? */
static bool is_padded(const Weights *w, const GTensor *t) {
    const ModelDims *m = &w->m->dims;
    return t->kind == KIND_PARAM && m->vocab < m->V && t->nd && t->letter[0] == 'v';
}

/* Elements that a source without padding has. */
static int64_t unpadded_count(const Weights *w, const GTensor *t) {
    return is_padded(w, t) ? count_of(t) / t->size[0] * w->V : count_of(t);
}

/* Does the file's tensor fit? Rows that pad the vocabulary may be missing, and inputs may have one
 * entry per training step: says into `b` what there is. */
static bool fits(const Weights *w, const GTensor *t, const StTensor *st, Binding *b) {
    int n;
    int64_t shape[LAYOUT_MAX_DIMS];
    graph_stored_shape(t, &n, shape);
    int lead = t->kind == KIND_INPUT && st->nd == n + 1 && st->shape[0] > 0;
    if (n + lead != st->nd) return false;
    bool padding = is_padded(w, t) && st->shape[0] == w->V;
    for (int i = 0; i < n; i++)
        if (st->shape[i + lead] != shape[i] && !(padding && i == 0)) return false;
    b->steps = lead ? st->shape[0] : 0;
    b->n = padding ? unpadded_count(w, t) : count_of(t);
    return true;
}

static const char what_routing[] = "logits of all experts for every token of the batch";
/* Why a tensor of a file may have another shape: how many tokens and experts there are is no matter
 * of widths. */
static const char *shape_hint(const Weights *w, const GTensor *t) {
    if (strstr(t->name, ".moe.routing")) return what_routing;
    return w->p->shrink > 1 ? "weights of a file have the full size: leave shrink out" : NULL;
}
/* Binds tensor i to a tensor of a file, if shape and kind of number agree. */
static void bind_file(Weights *w, Diags *d, int i, const StTensor *st, Loc loc) {
    const GTensor *t = &w->m->g.t[i];
    int n;
    int64_t shape[LAYOUT_MAX_DIMS];
    graph_stored_shape(t, &n, shape);
    if (!fits(w, t, st, &w->b[i]))
        diag_error(d, "E0503", loc, shape_hint(w, t), "'%s' in %s is %s, the model needs %s",
                   st->name, st->file, st_shape_text(w->a, st->nd, st->shape),
                   st_shape_text(w->a, n, shape));
    else if (t->is_int != (st->dtype == DT_I64))
        diag_error(d, "E0503", loc, NULL, "'%s' in %s holds %s, the model needs %s", st->name,
                   st->file, st_dtype_name(st), t->is_int ? "whole numbers" : "real numbers");
    const char *slash = strrchr(st->file, '/');
    w->b[i].from = FROM_FILE;
    w->b[i].st = st;
    w->b[i].source = arena_printf(w->a, "%s:%s", slash ? slash + 1 : st->file, st->name);
}

/* ---- parameters ---- */

static const StTensor *find_with(const Weights *w, const char *name) {
    return st_find(w->params, arena_printf(w->a, "%s%s",
                                           w->p->weights_prefix ? w->p->weights_prefix : "", name));
}

/* One checkpoint name of a parameter (a tied one has two) in the file's scheme. */
static const StTensor *find_as(const Weights *w, Names scheme, const char *hf) {
    const char *name = names_to_scheme(w->a, scheme, hf);
    const StTensor *st =
        find_with(w, name ? name : hf); /* names of the user's own are the same in every scheme */
    if (!st && scheme == NAMES_HF && !strncmp(hf, "model.", 6)) st = find_with(w, hf + 6);
    for (int i = 0; !st && scheme == NAMES_HF && (name = checkpoint_alias(w->a, hf, i)); i++)
        st = find_with(w, name);
    return st;
}

static const StTensor *find_param(const Weights *w, Names scheme, int i) {
    const Graph *g = &w->m->g;
    const StTensor *st = find_as(w, scheme, g->t[i].name);
    for (int k = 0; k < g->nm && !st; k++) {
        if (g->module[k].weight == i)
            st = find_as(w, scheme, arena_printf(w->a, "%s.weight", g->module[k].hf_path));
        if (g->module[k].bias == i && !st)
            st = find_as(w, scheme, arena_printf(w->a, "%s.bias", g->module[k].hf_path));
    }
    return st;
}

/* The scheme in which the file explains most parameters; Hugging Face's if none does. */
static Names file_scheme(const Weights *w) {
    static const Names order[] = {NAMES_HF, NAMES_TORCHTITAN, NAMES_TORCHTUNE, NAMES_MEGATRON,
                                  NAMES_GGUF};
    Names best = NAMES_HF;
    int most = 0;
    for (int n = 0; w->p->weights_names && n < NAMES_COUNT; n++)
        if (!strcmp(w->p->weights_names, plan_names_text((Names)n))) return (Names)n;
    for (int s = 0; s < NAMES_COUNT; s++) {
        int found = 0;
        for (int i = 0; i < w->m->g.nt; i++)
            if (w->m->g.t[i].kind == KIND_PARAM && find_param(w, order[s], i)) found++;
        if (found > most) {
            most = found;
            best = order[s];
        }
    }
    return best;
}

/* The first tensor of those in which the file has a weight of experts in parts, one by one or all
 * experts in one, as either family of files calls them; or NULL. */
static const StTensor *find_part(const Weights *w, const GTensor *t, Names scheme) {
    const StTensor *has = NULL;
    for (int way = 0; way < 2 && !has; way++) {
        const char **name = NULL;
        if (!checkpoint_parts(w->a, t, way, &name)) continue;
        const char *end = strrchr(name[0], '.'), *dot = strrchr(t->name, '.') + 1;
        const char *part = strstr(name[0], ".experts.0.") + strlen(".experts.0.");
        has = find_as(
            w, scheme,
            arena_printf(w->a, "%.*s%.*s", (int)(dot - t->name), t->name, (int)(end - part), part));
        if (!has) has = find_as(w, NAMES_HF, name[0]);
    }
    return has;
}
/* Is it a weight of experts that lies input dim first in the model, and that the file has in parts
 * that lie output dim first or, of gate and up in one tensor, each as a tensor? Told: a cut of what
 * is one tensor here is another cut there, and where D is F no shape would tell. */
static bool told_apart(const Weights *w, Diags *d, int i, Names scheme) {
    const GTensor *t = &w->m->g.t[i];
    const StTensor *has = w->m->dims.experts_turned ? find_part(w, t, scheme) : NULL;
    if (!has) return false;
    diag_error(
        d, "E0502", w->p->weights_loc,
        "say `names: torchtitan`, which has each as a tensor (lines of the plan in its names, see "
        "`list names`), or store what is missing as one tensor",
        "%s has no tensor '%s', it has parts of it ('%s', ..)", w->p->weights, t->name, has->name);
    return true;
}
/* Is it a weight of experts that the file has one by one? Then it is bound to all of them. */
static bool bind_parts(Weights *w, Diags *d, int i) {
    const GTensor *t = &w->m->g.t[i];
    for (int way = 0; way < 2; way++) {
        const char **name;
        int n = checkpoint_parts(w->a, t, way, &name), found = 0;
        const StTensor **part = ARENA_ARRAY(w->a, const StTensor *, n + 1);
        for (int k = 0; k < n; k++) found += (part[k] = find_as(w, NAMES_HF, name[k])) != NULL;
        if (!found) continue;
        int64_t rows = t->size[t->nd - 2], cols = t->size[t->nd - 1];
        for (int k = 0; k < n; k++) {
            if (!part[k]) {
                diag_error(d, "E0502", w->p->weights_loc, NULL, "%s has no tensor '%s'",
                           w->p->weights, name[k]);
                return true;
            }
            const StTensor *st = part[k];
            if (st->nd == 2 && st->shape[0] == rows && st->shape[1] == cols && st->dtype != DT_I64)
                continue;
            diag_error(d, "E0503", w->p->weights_loc, NULL,
                       "'%s' in %s is %s, the model needs [%lld, %lld] of real numbers", st->name,
                       st->file, st_shape_text(w->a, st->nd, st->shape), (long long)rows,
                       (long long)cols);
            return true;
        }
        const char *slash = strrchr(part[0]->file, '/');
        w->b[i] = (Binding){
            .from = FROM_FILE, .st = part[0], .part = part, .n_parts = n, .n = count_of(t)};
        w->b[i].source =
            arena_printf(w->a, "%s:%s ..", slash ? slash + 1 : part[0]->file, part[0]->name);
        return true;
    }
    return false;
}

/* Is it a weight of experts that the file stores otherwise: input dim first, where the names of the
 * plan's scheme have it last, or gate and up in one tensor? `st` is what has its name, or NULL. */
static bool bind_view(Weights *w, Diags *d, int i, const StTensor *st, Names scheme) {
    const GTensor *t = &w->m->g.t[i];
    bool turned = w->m->dims.turns && names_turn_experts(scheme), own = w->m->dims.experts_turned;
    const char *both = st ? NULL : view_packed_name(w->a, t->name);
    Binding b = {.from = FROM_FILE, .st = st, .n = count_of(t)};
    if (st && turned == own) return false;
    if (both) b.st = find_as(w, scheme, both);
    if (!b.st || !view_of_file(t, own, turned, both != NULL, &b.view)) return false;
    const char *slash = strrchr(b.st->file, '/');
    if (b.st->nd != 3 || memcmp(b.st->shape, b.view.shape, sizeof b.view.shape) != 0 ||
        b.st->dtype == DT_I64)
        diag_error(d, "E0503", w->p->weights_loc, NULL,
                   "'%s' in %s is %s, the model needs %s of real numbers", b.st->name, b.st->file,
                   st_shape_text(w->a, b.st->nd, b.st->shape),
                   st_shape_text(w->a, 3, b.view.shape));
    b.source = arena_printf(w->a, "%s:%s", slash ? slash + 1 : b.st->file, b.st->name);
    w->b[i] = b;
    return true;
}
RandomStream weights_random(const Weights *w, int t) {
    RandomStream r = random_stream(&w->m->g, t, w->p->seed);
    r.integers = w->p->integers;
    return r;
}
static void bind_params(Weights *w, Diags *d) {
    const Graph *g = &w->m->g;
    Names scheme = w->params ? file_scheme(w) : NAMES_HF;
    for (int i = 0; i < g->nt; i++) {
        if (g->t[i].kind != KIND_PARAM) continue;
        if (g->t[i].state_of) { /* starts as zeros, from no file */
            w->b[i] = (Binding){
                .random = weights_random(w, i), .source = "zeros", .n = count_of(&g->t[i])};
            continue;
        }
        if (!w->params) {
            w->b[i] = (Binding){.random = weights_random(w, i), .source = "random"};
            w->b[i].n = unpadded_count(w, &g->t[i]);
            if (is_padded(w, &g->t[i]))
                w->b[i].source =
                    arena_printf(w->a, "random, zero from row %lld on", (long long)w->V);
            continue;
        }
        const StTensor *st = find_param(w, scheme, i);
        if (bind_view(w, d, i, st, scheme)) continue;
        if (st) {
            bind_file(w, d, i, st, w->p->weights_loc);
            continue;
        }
        if (told_apart(w, d, i, scheme) || bind_parts(w, d, i)) continue;
        const char *name = names_to_scheme(w->a, scheme, g->t[i].name);
        diag_error(
            d, "E0502", w->p->weights_loc,
            arena_printf(
                w->a,
                "names were taken to be those of %s; `weights_names` and `prefix` say otherwise",
                plan_names_text(scheme)),
            "%s has no tensor '%s%s'", w->p->weights,
            w->p->weights_prefix ? w->p->weights_prefix : "", name ? name : g->t[i].name);
    }
}

/* ---- inputs ---- */

/* Is it the value that flows in: without it an inputs file is none of this model. */
static bool is_main_input(const GTensor *t) {
    static const char *const made[] = {"labels", "loss_weights", "cotangent", "target"};
    for (size_t i = 0; i < sizeof made / sizeof *made; i++)
        if (!strcmp(t->name, made[i])) return false;
    return true;
}

/* The tensor of the inputs file for an input of the graph: its own name, or what files of other
 * origin call it. */
static const StTensor *find_input(const Weights *w, int i) {
    const Graph *g = &w->m->g;
    const GTensor *t = &g->t[i];
    const StTensor *st = st_find(w->inputs, t->name);
    if (!st && t->alias) st = st_find(w->inputs, t->alias);
    if (!st && is_main_input(t) && !t->is_int) st = st_find(w->inputs, "input");
    /* others in every training step */
    if (!st && is_main_input(t) && !t->is_int) st = st_find(w->inputs, "inputs");
    /* The cotangent of a block is the gradient of what it puts out. */
    if (!st && !strcmp(t->name, "cotangent"))
        st = st_find(w->inputs, subject_name(w->a, graph_subject(&g->t[g->output], true)));
    return st;
}

/* Who goes to which expert in place of what the router says: a file's logits, or a workload. */
static bool bind_routing(Weights *w, Diags *d, int i) {
    const char *name = w->m->g.t[i].name, *end = strstr(name, ".moe.routing");
    if (!end) return false;
    w->b[i] =
        (Binding){.from = FROM_ROUTING,
                  .random = {.seed = w->p->seed, .stream = (uint64_t)i, .scale = .5, .mean = .5},
                  .source = w->p->moe.routing,
                  .n = count_of(&w->m->g.t[i])};
    if (!w->routing) return true;
    name = arena_printf(w->a, "%.*s.moe.router_logits", (int)(end - name), name);
    const StTensor *st = st_find(w->routing, name);
    if (st) bind_file(w, d, i, st, w->p->moe.routing_loc);
    else
        diag_error(d, "E0502", w->p->moe.routing_loc, what_routing, "%s has no tensor '%s'",
                   w->p->moe.routing, name);
    return true;
}
/* "a file of inputs has tensors of these names: `input_ids`, `labels`; .." */
static const char *input_names(const Weights *w) {
    const Graph *g = &w->m->g;
    Str s = str_new(w->a);
    str_add(&s, "a file of inputs may have");
    for (int i = 0, n = 0; i < g->nt; i++)
        if (g->t[i].kind == KIND_INPUT) str_addf(&s, "%s `%s`", n++ ? "," : "", g->t[i].name);
    str_add(&s, "; all but the first may be left out");
    return s.s;
}
static void bind_input(Weights *w, Diags *d, int i) {
    const Graph *g = &w->m->g;
    const GTensor *t = &g->t[i];
    if (bind_routing(w, d, i)) return;
    const StTensor *st = w->inputs ? find_input(w, i) : NULL;
    bool labels = !strcmp(t->name, "labels");
    if (labels) w->labels = i;
    w->b[i] = (Binding){.random = weights_random(w, i), .source = "random", .n = count_of(t)};
    if (st) {
        bind_file(w, d, i, st, w->p->inputs_loc);
    } else if (w->inputs && is_main_input(t)) {
        diag_error(d, "E0502", w->p->inputs_loc, input_names(w), "%s has no tensor '%s'",
                   w->p->inputs, t->name);
    } else if (labels) {
        w->b[i].from = FROM_RANDOM_LABELS;
    } else if (t->is_int) {
        w->b[i].from = FROM_RANDOM_IDS;
    } else if (!strcmp(t->name, "loss_weights")) {
        w->b[i].from = FROM_LABELS;
        w->b[i].source = "1 / number of labels";
    }
}

static SafeTensors *open_beside(Arena *a, Diags *d, const Plan *p, const char *file, Loc loc) {
    return file ? st_open(a, d, file_join(a, p->dir, file), loc) : NULL;
}

Weights *weights_open(Arena *arena, Diags *d, const Plan *p, const Model *m) {
    Weights *w = ARENA_NEW(arena, Weights);
    int errors = diags_errors(d);
    *w = (Weights){.a = arena, .p = p, .m = m, .labels = -1, .V = m->dims.vocab};
    w->b = ARENA_ARRAY(arena, Binding, m->g.nt);
    w->params = open_beside(arena, d, p, p->weights, p->weights_loc);
    w->inputs = open_beside(arena, d, p, p->inputs, p->inputs_loc);
    if (p->moe.routing && strchr(p->moe.routing, '.'))
        w->routing = open_beside(arena, d, p, p->moe.routing, p->moe.routing_loc);
    if (diags_errors(d) == errors) {
        bind_params(w, d);
        for (int i = 0; i < m->g.nt; i++)
            if (m->g.t[i].kind == KIND_INPUT) bind_input(w, d, i);
    }
    if (diags_errors(d) == errors) return w;
    weights_close(w);
    return NULL;
}

void weights_close(Weights *w) {
    if (!w) return;
    st_close(w->params);
    st_close(w->inputs);
    st_close(w->routing);
}

const char *weights_source(const Weights *w, int t) { return w->b[t].source; }

/* ---- loading ---- */

static Loc place_of(const Weights *w, int t) {
    if (strstr(w->m->g.t[t].name, ".moe.routing")) return w->p->moe.routing_loc;
    return w->m->g.t[t].kind == KIND_PARAM ? w->p->weights_loc : w->p->inputs_loc;
}

/* The first of n numbers that is not finite, or -1. Sums of x - x are NaN where any is not: no
 * branch in the loop. */
static int64_t find_bad(const void *p, int64_t n, Dtype dtype) {
#define FIND(T)                                                                                    \
    {                                                                                              \
        const T *x = p;                                                                            \
        T sum = 0;                                                                                 \
        for (int64_t i = 0; i < n; i++) sum += x[i] - x[i];                                        \
        for (int64_t i = 0; sum != 0 && i < n; i++)                                                \
            if (!isfinite(x[i])) return i;                                                         \
    }
    if (dtype == DT_F32) FIND(float)
    else FIND(double)
#undef FIND
    return -1;
}

/* Numbers of a tensor of a file: n of them, from element `first` on. */
typedef struct {
    const StTensor *st;
    int64_t first, n;
} Span;
static bool load_span(Weights *w, Diags *d, int t, const Span *s, Dtype dtype, void *out) {
    const StTensor *st = s->st;
    for (int64_t at = 0; at < s->n; at += LOAD_CHUNK) {
        int64_t k = s->n - at < LOAD_CHUNK ? s->n - at : LOAD_CHUNK;
        void *to = (char *)out + at * dtype_size(dtype);
        if (!st_read(st, s->first + at, k, dtype, to)) {
            diag_error(d, "E0102", place_of(w, t), NULL,
                       "'%s' changed or failed while '%s' was read", st->file, st->name);
            return false;
        }
        int64_t bad = find_bad(to, k, dtype);
        if (bad < 0) continue;
        double x = dtype == DT_F32 ? (double)((float *)to)[bad] : ((double *)to)[bad];
        bool narrow = dtype == DT_F32 && st->dtype == DT_F64; /* finite in the file, perhaps */
        diag_error(d, "E0504", place_of(w, t), narrow ? "it may be too large for float32" : NULL,
                   "'%s' in %s is %g at %s", st->name, st->file, x,
                   st_index_text(w->a, st, s->first + at + bad));
        return false;
    }
    return true;
}
/* Of a tensor that lies otherwise in the file. */
typedef struct {
    Weights *w;
    Diags *d;
    const WeightsPart *p;
    char *out, *room; /* of LOAD_CHUNK elements */
} ViewLoad;
static bool load_run(void *arg, ViewRun run) {
    const ViewLoad *x = arg;
    Span span = {x->w->b[x->p->t].st, run.first, run.n};
    size_t es = (size_t)dtype_size(x->p->dtype);
    if (run.step == 1)
        return load_span(x->w, x->d, x->p->t, &span, x->p->dtype, x->out + (size_t)run.at * es);
    if (!load_span(x->w, x->d, x->p->t, &span, x->p->dtype, x->room)) return false;
    for (int64_t k = 0; k < run.n; k++)
        memcpy(x->out + (size_t)(run.at + k * run.step) * es, x->room + (size_t)k * es, es);
    return true;
}
static bool load_view(Weights *w, Diags *d, const WeightsPart *p, void *out) {
    ViewLoad x = {w, d, p, out, base_malloc(LOAD_CHUNK * 8)};
    bool ok = view_runs(&w->b[p->t].view, p->first, p->n, LOAD_CHUNK, load_run, &x);
    free(x.room);
    return ok;
}
/* Of a tensor that lies in several of a file, one after the other: what each has of the part. */
static bool load_reals(Weights *w, Diags *d, const WeightsPart *p, int64_t first, void *out) {
    const Binding *b = &w->b[p->t];
    Span all = {b->st, first, p->n};
    if (b->view.rows) return load_view(w, d, p, out);
    if (!b->n_parts) return load_span(w, d, p->t, &all, p->dtype, out);
    int64_t each = b->n / b->n_parts;
    for (int64_t at = 0; at < p->n;) {
        int64_t k = (first + at) / each, from = (first + at) % each;
        Span one = {b->part[k], from, p->n - at < each - from ? p->n - at : each - from};
        void *to = (char *)out + at * dtype_size(p->dtype);
        if (!load_span(w, d, p->t, &one, p->dtype, to)) return false;
        at += one.n;
    }
    return true;
}

/* Ids are 0 .. V-1; labels also ignore_index. */
static bool load_ids(Weights *w, Diags *d, const WeightsPart *p, int64_t first, int64_t *out) {
    const StTensor *st = w->b[p->t].st;
    if (!st_read(st, first, p->n, DT_I64, out)) {
        diag_error(d, "E0102", place_of(w, p->t), NULL,
                   "'%s' changed or failed while '%s' was read", st->file, st->name);
        return false;
    }
    for (int64_t i = 0; i < p->n; i++) {
        if (out[i] >= 0 && out[i] < w->V) continue;
        if (p->t == w->labels && out[i] == w->p->ignore_index) continue;
        diag_error(d, "E0507", place_of(w, p->t), NULL,
                   "'%s' in %s is %lld at %s; the vocabulary has %lld", st->name, st->file,
                   (long long)out[i], st_index_text(w->a, st, first + i), (long long)w->V);
        return false;
    }
    return true;
}

/* Uniform labels, of which every sequence ignores another number at its end: equal counts would
 * hide a mean of means. */
static void random_labels(Weights *w, const WeightsPart *p, int64_t *out) {
    int64_t S = w->m->g.t[p->t].size[1];
    const RandomStream *r = &w->b[p->t].random;
    RandomStream lengths = *r;
    lengths.stream = ~r->stream;
    random_ints(r, p->first, p->n, w->V, out);
    for (int64_t i = 0; i < p->n;) {
        int64_t b = (p->first + i) / S, ignored, last = (b + 1) * S - p->first;
        random_ints(&lengths, b, 1, S / 3 + 1, &ignored);
        for (; i < p->n && i < last; i++)
            if (i >= last - ignored) out[i] = w->p->ignore_index;
    }
}

/* mask / N: weights that make the sum of the losses their mean over the labels that count. [B, S]
 * N is that of all labels, whichever part is asked for. */
static bool count_labels(Weights *w, Diags *d, int64_t step) {
    int64_t n = w->b[w->labels].n, room = n < LOAD_CHUNK ? n : LOAD_CHUNK, valid = 0;
    if (w->counted && w->counted_step == step) return true;
    int64_t *labels = base_malloc(base_mul((size_t)room + 1, sizeof *labels));
    bool ok = true;
    for (int64_t at = 0; at < n && ok; at += room) {
        WeightsPart p = {w->labels, DT_I64, step, at, n - at < room ? n - at : room};
        ok = weights_part(w, d, &p, labels);
        for (int64_t i = 0; ok && i < p.n; i++) valid += labels[i] != w->p->ignore_index;
    }
    free(labels);
    if (ok && !valid) {
        diag_error(d, "E0507", w->p->inputs ? w->p->inputs_loc : w->p->loss_loc, NULL,
                   "every label in %s is %lld, which is ignored: the loss has no token",
                   w->b[w->labels].source, (long long)w->p->ignore_index);
        ok = false;
    }
    w->counted = ok ? valid : 0;
    w->counted_step = step;
    return ok;
}
static bool loss_weights(Weights *w, Diags *d, const WeightsPart *p, void *out) {
    if (!count_labels(w, d, p->step)) return false;
    int64_t *labels = base_malloc(base_mul((size_t)p->n + 1, sizeof *labels));
    WeightsPart of = {w->labels, DT_I64, p->step, p->first, p->n};
    bool ok = weights_part(w, d, &of, labels);
    for (int64_t i = 0; ok && i < p->n; i++) {
        double x = labels[i] != w->p->ignore_index ? 1 / (double)w->counted : 0;
        if (p->dtype == DT_F32) ((float *)out)[i] = (float)x;
        else ((double *)out)[i] = x;
    }
    free(labels);
    return ok;
}

/* The first element of a step in the source of a tensor; -1 after a diagnostic if there is no such
 * step. */
static int64_t first_of_step(const Weights *w, Diags *d, int t, int64_t step) {
    const Binding *b = &w->b[t];
    if (!b->steps) return 0; /* the same in every step */
    if (step < b->steps) return step * b->n;
    diag_error(d, "E0503", place_of(w, t), "take no more steps than there are inputs",
               "'%s' in %s has the inputs of %lld steps, not of %lld", b->st->name, b->st->file,
               (long long)b->steps, (long long)step + 1);
    return -1;
}

/* A part that lies within what the source has. */
static bool load_part(Weights *w, Diags *d, const WeightsPart *p, void *out) {
    const Binding *b = &w->b[p->t];
    switch (b->from) {
    case FROM_RANDOM: random_fill(&b->random, p->first, p->n, p->dtype, out); return true;
    case FROM_RANDOM_IDS: random_ints(&b->random, p->first, p->n, w->V, out); return true;
    case FROM_RANDOM_LABELS: random_labels(w, p, out); return true;
    case FROM_LABELS: return loss_weights(w, d, p, out);
    case FROM_ROUTING: {
        const ModelDims *m = &w->m->dims;
        Routing r = {w->p->moe.routing, m->E, m->top_k, m->S, m->ranks_of_experts, b->random};
        routing_fill(&r, p->first, p->n, p->dtype, out);
        return true;
    }
    case FROM_FILE: {
        int64_t first = first_of_step(w, d, p->t, p->step);
        if (first < 0) return false;
        return p->dtype == DT_I64 ? load_ids(w, d, p, first + p->first, out)
                                  : load_reals(w, d, p, first + p->first, out);
    }
    }
    return false;
}
bool weights_part(Weights *w, Diags *d, const WeightsPart *p, void *out) {
    assert(p->t >= 0 && p->step >= 0 && p->first >= 0 && p->n >= 0);
    assert(p->dtype == DT_F32 || p->dtype == DT_F64 || p->dtype == DT_I64);
    const Binding *b = &w->b[p->t];
    WeightsPart there = *p;
    int64_t es = dtype_size(p->dtype), have = b->n - p->first;
    there.n = have < 0 ? 0 : have < p->n ? have : p->n;
    memset((char *)out + there.n * es, 0, (size_t)((p->n - there.n) * es));
    bool ok = load_part(w, d, &there, out);
    w->failed |= !ok;
    return ok;
}
bool weights_load_step(Weights *w, Diags *d, int t, Dtype dtype, int64_t step, void *out) {
    WeightsPart all = {t, dtype, step, 0, count_of(&w->m->g.t[t])};
    return weights_part(w, d, &all, out);
}
uint64_t weights_fingerprint(const Weights *w) {
    const SafeTensors *file[] = {w->params, w->inputs, w->routing};
    uint64_t h = 0;
    for (int i = 0; i < 3; i++)
        if (file[i]) h = h * 31 + st_fingerprint(file[i]);
    return h;
}
bool weights_failed(const Weights *w) { return w->failed; }

bool weights_load(Weights *w, Diags *d, int t, Dtype dtype, void *out) {
    return weights_load_step(w, d, t, dtype, 0, out);
}
