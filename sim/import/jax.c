/* JAX's PartitionSpecs: parameter path -> for each dim an axis, a list of axes or null. Flax's
 * kernels are [in, out], or with heads apart [in, heads, head_dim] and [heads, head_dim, out];
 * plans, like PyTorch, store [out, in]. Layers may be stacked: the path has no number, the spec one
 * dim more. MaxText's tree is read by its own names. Activations follow by propagation:
 * every move is one that no line asks for, as under XLA's partitioner, which may choose others. */
#include "import/import.h"
#include "import/python.h"
#include <string.h>

/* ---- parameter paths ---- */
typedef struct {
    const char *module, *leaf; /* "layers.0.attention.wq", "kernel" */
    int stacked;               /* the dim of all layers, or -1 */
} Path;
/* MaxText's modules; what begins with `decoder.` there. */
static const char *of_maxtext(Draft *x, const char *module) {
    static const struct {
        const char *theirs, *ours;
    } rows[] = {{".self_attention.query", ".attention.wq"},
                {".self_attention.key", ".attention.wk"},
                {".self_attention.value", ".attention.wv"},
                {".self_attention.out", ".attention.wo"},
                {".mlp.wi_0", ".feed_forward.w1"},
                {".mlp.wi_1", ".feed_forward.w3"},
                {".mlp.wo", ".feed_forward.w2"},
                {".pre_self_attention_layer_norm", ".attention_norm"},
                {".post_self_attention_layer_norm", ".ffn_norm"},
                {"decoder_norm", "norm"},
                {"logits_dense", "output"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        size_t n = strlen(module), k = strlen(rows[i].theirs);
        if (n >= k && strcmp(module + n - k, rows[i].theirs) == 0)
            return arena_printf(x->a, "%.*s%s", (int)(n - k), module, rows[i].ours);
    }
    return module;
}
/* "params/layers_0/attention/wq/kernel" -> "layers.0.attention.wq", and the parameter's name. */
static Path path_of(Draft *x, const char *path) {
    Path found = {.leaf = "", .stacked = -1};
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
        bool all = strcmp(part, "layers") == 0 && !last && !strchr("0123456789*", p[n + 1]);
        if (last) found.leaf = part;
        else if (!container)
            str_addf(&s, "%s%.*s%s%s", s.n ? "." : "", layer ? (int)(low - part) : (int)n, part,
                     layer ? "." : "", layer ? low + 1 : "");
        if (all) found.stacked = 0, str_add(&s, ".*");
        p += n + !last;
    }
    found.module = strcmp(s.s, "token_embedder") == 0 ? "tok_embeddings" : s.s;
    if (strncmp(s.s, "decoder.", 8) == 0 && of_maxtext(x, s.s + 8) != s.s + 8) {
        found.module = of_maxtext(x, s.s + 8);
        if (found.stacked == 0) found.stacked = 1; /* its param_scan_axis */
    }
    return found;
}
/* Attention's kernels with heads apart: the plan's dim of each of theirs, -1: within a head. */
static const int *heads_dims(const char *module, const char *leaf) {
    static const char *const into[] = {"wq", "wk", "wv", "q_proj", "k_proj", "v_proj"},
                             *const out[] = {"wo", "o_proj", "output_proj"};
    static const int in_dims[] = {1, 0, -1}, out_dims[] = {1, -1, 0}, bias_dims[] = {0, -1};
    const char *dot = strrchr(module, '.'), *last = dot ? dot + 1 : module;
    for (int i = 0; i < 6; i++)
        if (strcmp(last, into[i]) == 0)
            return strcmp(leaf, "bias") == 0     ? bias_dims
                   : strcmp(leaf, "kernel") == 0 ? in_dims
                                                 : NULL;
    for (int i = 0; i < 3; i++)
        if (strcmp(last, out[i]) == 0 && strcmp(leaf, "kernel") == 0) return out_dims;
    return NULL;
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
    const char *names[MESH_MAX_AXES + 1] = {NULL};
    for (int i = 0; i < x->n_axes && i < MESH_MAX_AXES; i++) names[i] = x->axis[i].name;
    const char *near = v->kind == V_STRING ? diag_nearest(v->s, names) : NULL;
    if (v->kind == V_STRING)
        diag_error(x->d, "E0204", v->loc, near ? near : "name it in --mesh",
                   "the mesh has no axis %s", v->s);
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
/* The plan's dim of each of the spec's, or -1 (of all layers, within a head); NULL and an error if
 * there are more than the parameter has. */
static const int *dims_of(Jax *j, const Path *path, int row, const Value *v) {
    Draft *x = j->x;
    int n = v->n - (path->stacked >= 0 && v->n > path->stacked), most = leaves[row].most;
    const int *heads = n == most + 1 ? heads_dims(path->module, path->leaf) : NULL;
    if (v->kind != V_LIST || (n > most && !heads)) {
        diag_error(x->d, v->kind == V_LIST ? "E0307" : "E0301", v->loc,
                   "one entry for each dim: an axis, a list of axes or null",
                   "the PartitionSpec of a %s has at most %d dims%s", path->leaf, most,
                   path->stacked >= 0 ? " and that of the layers" : "");
        return NULL;
    }
    int *dim = ARENA_ARRAY(x->a, int, v->n + 1);
    for (int i = 0, k = 0; i < v->n; i++) {
        /* a kernel that is given by its first dim alone is still [in, out] */
        dim[i] = i == path->stacked ? -1 : heads ? heads[k] : leaves[row].turned ? 1 - k : k;
        k += i != path->stacked;
        bool cut = v->item[i]->kind != V_NONE && !(v->item[i]->kind == V_LIST && !v->item[i]->n);
        if (dim[i] < 0 && cut)
            diag_error(x->d, "E0214", v->item[i]->loc,
                       i == path->stacked
                           ? arena_printf(x->a,
                                          "null: dim %d is that of the layers; of one layer "
                                          "each the path is layers_0/..",
                                          i)
                           : "null, and the axis at the dim of the heads",
                       "%s: not supported by this version",
                       i == path->stacked ? "layers that an axis shares out"
                                          : "an axis that cuts within heads");
    }
    return dim;
}
static void parameter(Jax *j, const ValuePair *p, const char *every) {
    Draft *x = j->x;
    Path path = path_of(x, p->key);
    const Value *v = p->value;
    int row = 0;
    while (row < N_LEAVES && strcmp(leaves[row].leaf, path.leaf) != 0) row++;
    if (row == N_LEAVES || !*path.module) {
        diag_error(x->d, "E0209", p->loc,
                   "a path that ends in weight, kernel, embedding, scale or bias",
                   "'%s' is no parameter's path", p->key);
        return;
    }
    const int *dim = dims_of(j, &path, row, v);
    if (!dim) return;
    Spec s = {.j = j};
    Str on = str_new(x->a);
    for (int i = 0; i < v->n; i++) {
        const char *axes = dim[i] < 0 ? NULL : dim_axes(&s, v->item[i], dim[i]);
        for (const char *a = axes; a && *a; a += strcspn(a, "*"), a += *a == '*')
            str_addf(&on, "%s%.*s: shard(%d)", on.n ? ", " : "", (int)strcspn(a, "*"), a, dim[i]);
    }
    for (int k = 0; k < x->n_axes; k++)
        if (!((s.seen & ~s.rest) & (1u << k)))
            str_addf(&on, "%s%s: replicate", on.n ? ", " : "", x->axis[k].name);
    const char *name = arena_printf(x->a, "%s.%s", path.module, leaves[row].field);
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
    for (int i = 0; i < v->n; i++) x->cut_loc[i] = v->item[i]->loc;
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
