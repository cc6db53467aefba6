/* JAX's PartitionSpecs: parameter path -> for each dim an axis, a list of axes or null. Flax's
 * kernels are [in, out]; plans, like PyTorch, store [out, in]. Activations follow by propagation:
 * every move is one that no line asks for, as under XLA's partitioner, which may choose others. */
#include "import/import.h"
#include "import/python.h"
#include <string.h>

/* ---- parameter paths ---- */
/* "params/layers_0/attention/wq/kernel" -> "layers.0.attention.wq", and the parameter's name. */
static const char *module_path(Draft *x, const char *path, const char **leaf) {
    Str s = str_new(x->a);
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, "/.");
        const char *part = arena_strndup(x->a, p, n), *low = strrchr(part, '_');
        bool last = !p[n], container = strcmp(part, "params") == 0 && !s.n;
        bool number =
            low && low[1] &&
            (strspn(low + 1, "0123456789") == strlen(low + 1) || strcmp(low + 1, "*") == 0);
        bool layer = number && low > part &&
                     (strncmp(part, "layers_", 7) == 0 || strncmp(part, "h_", 2) == 0);
        if (last) *leaf = part;
        else if (!container)
            str_addf(&s, "%s%.*s%s%s", s.n ? "." : "", layer ? (int)(low - part) : (int)n, part,
                     layer ? "." : "", layer ? low + 1 : "");
        p += n + !last;
    }
    return s.s;
}
/* A kernel's dims stand the other way round. */
static const struct {
    const char *leaf, *field;
    bool turned;
    int most; /* dims */
} leaves[] = {
    {"weight", "weight", false, 2},    {"kernel", "weight", true, 2},
    {"embedding", "weight", false, 2}, {"scale", "weight", false, 1},
    {"bias", "bias", false, 1},
};
enum { N_LEAVES = sizeof leaves / sizeof *leaves };

/* ---- one spec ---- */
typedef struct {
    Draft *x;
    uint32_t batch; /* axes that cut the tokens' batch */
    uint32_t rest;  /* those of them that cut parameters: nobody computes with such a part */
    bool mixed;     /* said: not all parameters are cut by the same of them */
    int n_dims, cap_dims;
    DraftLine *dim; /* of `data_parallel`: which dim of each they cut */
} Jax;
typedef struct {
    Jax *j;
    uint32_t seen; /* axes of this spec */
    uint32_t rest; /* of those that cut the batch */
    int rest_dim;
} Spec;
static int axis_of(Draft *x, const Value *v) {
    for (int i = 0; v->kind == V_STRING && i < x->n_axes; i++)
        if (strcmp(x->axis[i].name, v->s) == 0) return i;
    if (v->kind == V_STRING)
        diag_error(x->d, "E0204", v->loc, "name it in --mesh", "the mesh has no axis %s", v->s);
    else
        diag_error(x->d, "E0301", v->loc, "an axis, a list of axes or null",
                   "a dim of a PartitionSpec is %s", value_kind_text(v));
    return -1;
}
/* The axis cuts the batch of what the parameter is multiplied with, so the parameter is gathered
 * over it where it is used: what XLA's partitioner does of jax.jit. Gathered by itself alone where
 * it cuts inside what others cut. */
static void at_rest(Spec *s, int k, int dim, const Value *at) {
    Draft *x = s->j->x;
    if (s->rest && s->rest_dim != dim)
        diag_error(x->d, "E0214", at->loc, "one dim for the axes of the batch",
                   "axes that cut the batch cut two dims of a parameter: not supported by this "
                   "version");
    s->rest |= 1u << k;
    s->rest_dim = dim;
}
/* Axes of one dim, outermost first, as an ordered product of the mesh; NULL for none or an error.
 * Without those that cut the batch, which go to s->rest. */
static const char *dim_axes(Spec *s, const Value *v, int dim) {
    Draft *x = s->j->x;
    Str product = str_new(x->a);
    int n = v->kind == V_LIST ? v->n : v->kind == V_NONE ? 0 : 1, before[2] = {-1, -1};
    for (int i = 0; i < n; i++) {
        const Value *one = v->kind == V_LIST ? v->item[i] : v;
        int k = axis_of(x, one);
        if (k < 0) return NULL;
        bool data = s->j->batch >> k & 1;
        if (s->seen & (1u << k))
            diag_error(x->d, "E0407", one->loc, NULL, "axis %s cuts two dims", one->s);
        if (k < before[data])
            diag_error(x->d, "E0214", one->loc, "the order of the mesh, outermost first",
                       "axes of one dim in another order than the mesh's: not supported by this "
                       "version");
        if (!data && before[1] >= 0)
            diag_error(x->d, "E0214", one->loc, "axes that cut the batch behind the others",
                       "%s cuts the batch, and outside of %s: to gather it, parts change places "
                       "first: not supported by this version",
                       x->axis[before[1]].name, one->s);
        s->seen |= 1u << k;
        before[data] = k;
        if (data) at_rest(s, k, dim, one);
        else str_addf(&product, "%s%s", product.n ? "*" : "", one->s);
    }
    return product.n ? product.s : NULL;
}
/* What is cut at rest alone is said of the data, for all parameters. */
static void add_dim(Jax *j, const Spec *s, const char *name, Loc at, Loc value) {
    Draft *x = j->x;
    *ARENA_PUSH(x->a, j->dim, j->n_dims, j->cap_dims) = (DraftLine){
        .pattern = name,
        .style = s->rest ? arena_printf(x->a, "%d", s->rest_dim) : "whole",
        .loc = at,
        .style_loc = value,
    };
    if (s->rest && j->rest && s->rest != j->rest && !j->mixed) {
        j->mixed = true;
        diag_error(x->d, "E0214", value, "the same of them for every parameter that they cut",
                   "parameters cut by different axes of the batch: not supported by this version");
    }
    j->rest |= s->rest;
}
static void parameter(Jax *j, const ValuePair *p, const char *every) {
    Draft *x = j->x;
    const char *leaf = "", *module = module_path(x, p->key, &leaf);
    const Value *v = p->value;
    int row = 0;
    while (row < N_LEAVES && strcmp(leaves[row].leaf, leaf) != 0) row++;
    if (row == N_LEAVES || !*module) {
        diag_error(x->d, "E0209", p->loc,
                   "a path that ends in weight, kernel, embedding, scale or bias",
                   "'%s' is no parameter's path", p->key);
        return;
    }
    if (v->kind != V_LIST || v->n > leaves[row].most) {
        diag_error(x->d, v->kind == V_LIST ? "E0307" : "E0301", v->loc,
                   "one entry for each dim: an axis, a list of axes or null",
                   "the PartitionSpec of a %s has at most %d dims", leaf, leaves[row].most);
        return;
    }
    Spec s = {.j = j};
    Str on = str_new(x->a);
    for (int i = 0; i < v->n; i++) {
        /* a kernel that is given by its first dim alone is still [in, out] */
        int dim = leaves[row].turned ? 1 - i : i;
        const char *axes = dim_axes(&s, v->item[i], dim);
        for (const char *a = axes; a && *a; a += strcspn(a, "*"), a += *a == '*')
            str_addf(&on, "%s%.*s: shard(%d)", on.n ? ", " : "", (int)strcspn(a, "*"), a, dim);
    }
    for (int k = 0; k < x->n_axes; k++)
        if (!((s.seen & ~s.rest) & (1u << k)))
            str_addf(&on, "%s%s: replicate", on.n ? ", " : "", x->axis[k].name);
    const char *name = arena_printf(x->a, "%s.%s", module, leaves[row].field);
    add_dim(j, &s, name, p->loc, v->loc);
    draft_line(x, name, p->loc,
               arena_printf(x->a, "{%s: {%s}, axis: %s}", leaves[row].field, on.s, every), v->loc,
               NULL);
}

/* ---- the file ---- */
/* "tokens": the spec of the batch, [batch, sequence]. */
static bool is_tokens(const char *key) {
    static const char *const names[] = {"tokens", "input_ids", "inputs", "batch", NULL};
    for (int i = 0; names[i]; i++)
        if (strcmp(key, names[i]) == 0) return true;
    return false;
}
static void tokens(Jax *j, const ValuePair *p) {
    Draft *x = j->x;
    Spec s = {.j = j};
    const Value *v = p->value;
    if (v->kind != V_LIST || v->n > 2) {
        diag_error(x->d, "E0301", v->loc, "[batch, sequence]", "the spec of '%s' has two dims",
                   p->key);
        return;
    }
    x->cut_batch = v->n ? dim_axes(&s, v->item[0], 0) : NULL;
    x->cut_sequence = v->n > 1 ? dim_axes(&s, v->item[1], 1) : NULL;
}
/* All axes by one name, for styles that speak of all. */
static const char *every_axis(Draft *x) {
    Str product = str_new(x->a);
    for (int i = 0; i < x->n_axes; i++) str_addf(&product, "%s%s", i ? "*" : "", x->axis[i].name);
    if (x->n_axes == 1) return x->axis[0].name;
    draft_group(x, "every", product.s, (Loc){x->file, 1, 1});
    return "every";
}
/* Their product, outermost first. */
static const char *axes_text(const Jax *j, uint32_t set) {
    Str s = str_new(j->x->a);
    for (int k = 0; k < j->x->n_axes; k++)
        if (set >> k & 1) str_addf(&s, "%s%s", s.n ? "*" : "", j->x->axis[k].name);
    return s.s;
}
static void write_rest(const Jax *j) {
    const Loc at = {0};
    Draft *x = j->x;
    if (!j->rest) return;
    const char *over = axes_text(j, j->rest), *copies = axes_text(j, j->batch & ~j->rest);
    draft_key(x, "data_parallel", NULL, at, NULL);
    draft_below(x, 1, "mode", at, *copies ? "hsdp" : "fsdp", at);
    if (*copies) draft_below(x, 1, "replicate", at, copies, at);
    draft_below(x, 1, *copies ? "shard" : "axis", at, over, at);
    draft_below(x, 1, "unit", at, "parameter", at);
    draft_below(x, 1, "reshard", at, "false", at);
    draft_below(x, 1, "dims", at, NULL, at);
    draft_below(x, 2, "*", at, "whole", at); /* of those that have no spec */
    for (int i = 0; i < j->n_dims; i++) {
        const DraftLine *l = &j->dim[i];
        draft_below(x, 2, l->pattern, l->loc, l->style, l->style_loc);
    }
    draft_remark(x,
                 "%s cuts the batch and parameters: each is gathered where it is used and kept for "
                 "backward, as XLA does without remat; its gradient is summed and cut again",
                 over);
}
bool import_jax(Draft *x) {
    draft_options(x);
    Value *top = json_values(x->a, x->d, x->file, x->in->text, x->in->n);
    if (!top) return false;
    if (top->kind != V_DICT) {
        diag_error(x->d, "E0301", top->loc,
                   "{\"layers.0.attention.wq.weight\": [\"tp\", null], ...}",
                   "a JSON object, parameter path -> PartitionSpec, is wanted here");
        return false;
    }
    draft_complete(x);
    if (!x->n_axes) return false;
    const char *every = every_axis(x);
    Jax j = {.x = x};
    for (int i = 0; i < top->n_pairs; i++)
        if (is_tokens(top->pair[i].key)) tokens(&j, &top->pair[i]);
    for (int k = 0; k < x->n_axes; k++)
        if (draft_cuts_batch(x, x->axis[k].name)) j.batch |= 1u << k;
    for (int i = 0; i < top->n_pairs; i++)
        if (!is_tokens(top->pair[i].key)) parameter(&j, &top->pair[i], every);
    write_rest(&j);
    x->names = draft_names(x);
    /* XLA's partitioner inserts every collective that the layouts need, sums of gradients too */
    draft_key(x, "trust", "compiler", (Loc){0}, NULL);
    draft_remark(
        x, "activations follow from the parameters: moves that no line asks for, each with the "
           "fewest bytes; XLA's partitioner may choose others");
    return !diags_errors(x->d);
}
