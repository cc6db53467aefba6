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
    uint32_t seen; /* axes of this spec */
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
/* Axes of one dim, outermost first, as an ordered product of the mesh; NULL for none or an error.
 */
static const char *dim_axes(Spec *s, const Value *v) {
    Str product = str_new(s->x->a);
    int n = v->kind == V_LIST ? v->n : v->kind == V_NONE ? 0 : 1, before = -1;
    for (int i = 0; i < n; i++) {
        const Value *one = v->kind == V_LIST ? v->item[i] : v;
        int k = axis_of(s->x, one);
        if (k < 0) return NULL;
        if (s->seen & (1u << k))
            diag_error(s->x->d, "E0407", one->loc, NULL, "axis %s cuts two dims", one->s);
        if (k < before)
            diag_error(s->x->d, "E0214", one->loc, "the order of the mesh, outermost first",
                       "axes of one dim in another order than the mesh's: not supported by this "
                       "version");
        s->seen |= 1u << k;
        before = k;
        str_addf(&product, "%s%s", i ? "*" : "", one->s);
    }
    return product.n ? product.s : NULL;
}
static void parameter(Draft *x, const ValuePair *p, const char *every) {
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
    Spec s = {.x = x};
    Str on = str_new(x->a);
    for (int i = 0; i < v->n; i++) {
        /* a kernel that is given by its first dim alone is still [in, out] */
        int dim = leaves[row].turned ? 1 - i : i;
        const char *axes = dim_axes(&s, v->item[i]);
        for (const char *a = axes; a && *a; a += strcspn(a, "*"), a += *a == '*')
            str_addf(&on, "%s%.*s: shard(%d)", on.n ? ", " : "", (int)strcspn(a, "*"), a, dim);
    }
    for (int k = 0; k < x->n_axes; k++)
        if (!(s.seen & (1u << k)))
            str_addf(&on, "%s%s: replicate", on.n ? ", " : "", x->axis[k].name);
    draft_line(x, arena_printf(x->a, "%s.%s", module, leaves[row].field), p->loc,
               arena_printf(x->a, "{%s: {%s}, axis: %s}", leaves[row].field, on.s, every), v->loc,
               NULL);
}

/* ---- the file ---- */
/* "tokens": the spec of the batch, [batch, sequence]. */
static bool tokens(Draft *x, const ValuePair *p) {
    static const char *const names[] = {"tokens", "input_ids", "inputs", "batch", NULL};
    bool is = false;
    for (int i = 0; names[i]; i++) is |= strcmp(p->key, names[i]) == 0;
    if (!is) return false;
    Spec s = {.x = x};
    const Value *v = p->value;
    if (v->kind != V_LIST || v->n > 2) {
        diag_error(x->d, "E0301", v->loc, "[batch, sequence]", "the spec of '%s' has two dims",
                   p->key);
        return true;
    }
    x->cut_batch = v->n ? dim_axes(&s, v->item[0]) : NULL;
    x->cut_sequence = v->n > 1 ? dim_axes(&s, v->item[1]) : NULL;
    return true;
}
/* All axes by one name, for styles that speak of all. */
static const char *every_axis(Draft *x) {
    Str product = str_new(x->a);
    for (int i = 0; i < x->n_axes; i++) str_addf(&product, "%s%s", i ? "*" : "", x->axis[i].name);
    if (x->n_axes == 1) return x->axis[0].name;
    x->groups = arena_printf(x->a, "{every: %s}", product.s);
    return "every";
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
    for (int i = 0; i < top->n_pairs; i++)
        if (!tokens(x, &top->pair[i])) parameter(x, &top->pair[i], every);
    x->names = draft_names(x);
    draft_remark(
        x, "activations follow from the parameters: moves that no line asks for, each with the "
           "fewest bytes; XLA's partitioner may choose others");
    return !diags_errors(x->d);
}
