/* Words and numbers of pictures. See words.h. */
#include "render/furniture/words.h"
#include "base/text.h"
#include "trace/counts.h"
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

const char *words_file(const char *path) {
    const char *slash = strrchr(path, '/');
    return slash && slash[1] ? slash + 1 : path;
}
const char *words_symbol(Arena *a, const char *s) {
    if (!s) return "";
    Str t = str_new(a);
    for (; *s; s++) *s == '*' ? str_add(&t, "·") : str_addn(&t, s, 1);
    return t.s;
}

const char *words_shape(Arena *a, const int64_t *shape, int nd) {
    Str t = str_new(a);
    str_add(&t, "[");
    for (int i = 0; i < nd; i++) str_addf(&t, "%s%lld", i ? ", " : "", (long long)shape[i]);
    str_add(&t, "]");
    return t.s;
}

int words_axes(Arena *a, const Trace *t, WordAxis *out, int max) {
    int n = 0;
    int64_t stride = 1;
    for (int i = 0; i < t->n_axes; i++) stride *= t->axes[i].size > 0 ? t->axes[i].size : 1;
    for (int i = 0; i < t->n_axes; i++) {
        int64_t size = t->axes[i].size > 0 ? t->axes[i].size : 1;
        const char *name = arena_strndup(a, t->axes[i].name, strcspn(t->axes[i].name, "."));
        bool part = strchr(t->axes[i].name, '.') != NULL;
        stride /= size;
        if (n && part && !strcmp(out[n - 1].name, name)) {
            out[n - 1].size *= size;
            out[n - 1].stride = stride;
            out[n - 1].parts++;
        } else if (n < max) {
            out[n++] = (WordAxis){name, size, stride, i, 1};
        }
    }
    return n;
}

const char *words_axis_list(Arena *a, const Trace *t, const char *axes) {
    WordAxis ax[TRACE_MAX_AXES];
    int n = words_axes(a, t, ax, TRACE_MAX_AXES);
    if (!axes) return "";
    for (int i = 0; i < n; i++) {
        if (ax[i].parts < 2) continue;
        Str all = str_new(a);
        for (int k = 0; k < ax[i].parts; k++)
            str_addf(&all, "%s%s", k ? "*" : "", t->axes[ax[i].first + k].name);
        const char *at = strstr(axes, all.s);
        if (at) axes = arena_printf(a, "%.*s%s%s", (int)(at - axes), axes, ax[i].name, at + all.n);
    }
    return words_symbol(a, axes);
}

const char *words_color_axis(Arena *a, const Trace *t, const char *axis, const char *axes) {
    if (axis && !strchr(axis, '*') && theme_axis(axis) != AXIS_USER) return axis;
    Str large = str_new(a);
    for (const char *p = axes ? axes : ""; *p;) {
        size_t n = strcspn(p, "*");
        for (int i = 0; i < t->n_axes; i++)
            if (strlen(t->axes[i].name) == n && !strncmp(t->axes[i].name, p, n) &&
                t->axes[i].size > 1)
                str_addf(&large, "%s%.*s", large.n ? "*" : "", (int)n, p);
        p += n + (p[n] == '*');
    }
    return large.n ? large.s : axes ? axes : "";
}

const char *words_coords(Arena *a, const Trace *t, int64_t rank) {
    WordAxis ax[TRACE_MAX_AXES];
    int n = words_axes(a, t, ax, TRACE_MAX_AXES);
    Str s = str_new(a);
    for (int i = 0; i < n; i++)
        str_addf(&s, "%s%s%lld", i ? " " : "(", ax[i].name,
                 (long long)(rank / ax[i].stride % ax[i].size));
    if (n) str_add(&s, ")");
    return s.s;
}

const char *words_mesh(Arena *a, const Trace *t) {
    WordAxis ax[TRACE_MAX_AXES];
    int n = words_axes(a, t, ax, TRACE_MAX_AXES);
    if (n == 0) return "1 rank";
    Str s = str_new(a);
    for (int i = 0; i < n; i++) {
        str_addf(&s, "%s%s", i ? " " : "", ax[i].name);
        for (int k = 0; k < t->n_groups; k++)
            if (!strcmp(words_axis_list(a, t, t->groups[k].axes), ax[i].name))
                str_addf(&s, "=%s", t->groups[k].name);
        str_addf(&s, "=%lld", (long long)ax[i].size);
        for (int k = 0; ax[i].parts > 1 && k < ax[i].parts; k++)
            str_addf(&s, "%s%s=%lld%s", k ? " " : " (", t->axes[ax[i].first + k].name,
                     (long long)t->axes[ax[i].first + k].size, k + 1 == ax[i].parts ? ")" : "");
    }
    for (int k = 0; k < t->n_groups; k++) {
        const char *list = words_axis_list(a, t, t->groups[k].axes);
        if (strstr(list, "·")) str_addf(&s, " %s=%s", t->groups[k].name, list);
    }
    return s.s;
}

const char *words_order(Arena *a, const Trace *t) {
    WordAxis ax[TRACE_MAX_AXES];
    int n = words_axes(a, t, ax, TRACE_MAX_AXES), used = 0;
    Str s = str_new(a);
    str_add(&s, "order ");
    for (int i = n - 1; i >= 0; i--)
        if (ax[i].size > 1) str_addf(&s, "%s%s", used++ ? "→" : "", ax[i].name);
    str_add(&s, " (fastest→slowest)");
    return used > 1 ? s.s : NULL;
}

double words_find_dim(const Trace *t, const char *name) {
    for (int i = 0; i < t->n_model; i++)
        if (!strcmp(t->model[i].name, name)) return t->model[i].value;
    return NAN;
}

const char *words_shrink(Arena *a, const Trace *t) {
    double by = words_find_dim(t, "shrink");
    return by > 1 ? arena_printf(a, "widths ÷%.0f", by) : "";
}

const char *words_data(Arena *a, const Trace *t) {
    static const char *const want[] = {"B", "S", "rows", NULL};
    double parts = words_find_dim(t, "microbatches");
    const char *shrink = words_shrink(a, t);
    Str s = str_new(a);
    for (int i = 0; want[i]; i++) {
        double v = words_find_dim(t, want[i]);
        if (!(isfinite(v) && v >= 0)) continue;
        str_addf(&s, "%s%s=%.0f", s.n ? " " : "", want[i], v);
        if (i == 0 && parts > 1)
            str_addf(&s, " of %.0f, %s of %.0f micro-batches%s,", v * parts,
                     trace_both_ways(t) ? "two" : "one", parts,
                     trace_both_ways(t) ? ", one each way" : "");
    }
    if (t->dtype) str_addf(&s, "%s%s", s.n ? " " : "", t->dtype);
    if (*shrink) str_addf(&s, "%s%s", s.n ? " · " : "", shrink);
    return s.s;
}

const char *words_sent_by(Arena *a, const Trace *t, int64_t rank) {
    return t->n_classes > 1 ? arena_printf(a, "Sent by rank %lld", (long long)rank)
                            : "Sent per rank";
}
const char *words_class(Arena *a, const Trace *t, int64_t rank) {
    for (int i = 0; i < t->n_classes; i++) {
        if (!rankset_has(&t->classes[i], rank)) continue;
        int64_t n = rankset_count(&t->classes[i]);
        if (n == t->ranks && n == 1) return "a single rank";
        if (n == 1 && t->ranks == 2) return "the other rank differs";
        if (n == 1) return arena_printf(a, "the other %lld ranks differ", (long long)t->ranks - 1);
        return arena_printf(a, "identical on %lld of %lld ranks", (long long)n,
                            (long long)t->ranks);
    }
    return arena_printf(a, "%lld ranks", (long long)t->ranks);
}

/* How the makers of a family write its models: "llama3-8b" is their "Llama-3-8B". */
static const struct {
    const char *plan, *people;
} family[] = {{"llama", "Llama-"},         {"qwen", "Qwen"},   {"mistral", "Mistral"},
              {"mixtral", "Mixtral"},      {"gemma", "Gemma"}, {"phi", "Phi"},
              {"deepseek-v", "DeepSeek-V"}};
/* A part between dashes: "8B", "8x7B", "A3B"; "Scout"; "v0.3" as it is. */
static void model_part(Str *s, const char *part, size_t n) {
    const bool digit = n > 1 && part[n - 2] >= '0' && part[n - 2] <= '9',
               size = digit && part[n - 1] == 'b', word = n > 1 && strcspn(part, "0123456789") >= n;
    char *own = arena_strndup(s->a, part, n);
    if (size) own[n - 1] = 'B';
    if (word || (size && *own == 'a')) *own = (char)toupper((unsigned char)*own);
    str_add(s, own);
}
const char *words_model(Arena *a, const Trace *t) {
    const char *m = t->model_name;
    if (!m || !*m) return NULL;
    for (size_t i = 0; i < sizeof family / sizeof *family; i++) {
        const size_t n = strlen(family[i].plan);
        if (strncmp(m, family[i].plan, n)) continue;
        Str s = str_new(a);
        str_add(&s, family[i].people);
        for (const char *p = m + n;; p++) {
            const size_t k = strcspn(p, "-");
            model_part(&s, p, k);
            if (!*(p += k)) return s.s;
            str_add(&s, "-");
        }
    }
    return m;
}

const char *words_layers(Arena *a, const Trace *t) {
    double here = words_find_dim(t, "layers"), all = words_find_dim(t, "L");
    return here > 0 && here < all ? arena_printf(a, "%.0f of %.0f layers", here, all) : "";
}

/* ", if somebody sums 3 gradients and makes 1 move (no line of the plan does)": what "equivalent"
 * rests on; "". */
static const char *stamp_if(Arena *a, const Trace *t) {
    Str s = str_new(a);
    if (t->n_undeclared)
        str_addf(&s, "sums %d gradient%s", t->n_undeclared, t->n_undeclared == 1 ? "" : "s");
    if (t->n_unasked)
        str_addf(&s, "%smakes %d move%s", s.n ? " and " : "", t->n_unasked,
                 t->n_unasked == 1 ? "" : "s");
    return s.n ? arena_printf(a, ", if somebody %s (no line of the plan does)", s.s) : "";
}

/* What executed the ranks of a run. */
typedef struct {
    const char *backend, *one, *many, *on;
} Where;
static const Where *where_of(const Trace *t) {
    static const Where of[] = {{"virtual", "virtual rank", "s", ""},
                               {"cuda", "virtual rank", "s", " of one GPU"},
                               {"mpi", "process", "es", ""},
                               {"nccl", "process", "es", ", a GPU for each"},
                               {"nccl-share", "process", "es", " that share a GPU"}};
    for (size_t i = 0; t->backend && i < sizeof of / sizeof *of; i++)
        if (!strcmp(of[i].backend, t->backend)) return &of[i];
    return &of[0];
}
bool words_different(const Trace *t) {
    return t->first_wrong && t->verdict && !strcmp(t->verdict, "different");
}
const char *words_stamp(Arena *a, const Trace *t, Role *role) {
    const char *v = t->verdict ? t->verdict : "";
    *role = ROLE_SECOND;
    if (!strcmp(v, "equivalent") && t->executed) {
        *role = ROLE_PASS;
        const Where *w = where_of(t);
        return arena_printf(
            a, "✓ executed %s%son %lld %s%s%s: equivalent%s", t->executed_in ? "in " : "",
            t->executed_in ? arena_printf(a, "%s ", t->executed_in) : "", (long long)t->ranks,
            w->one, t->ranks == 1 ? "" : w->many, w->on, stamp_if(a, t));
    }
    if (!strcmp(v, "different")) {
        *role = ROLE_FAIL;
        return t->first_wrong ? arena_printf(a, "✗ different: the first wrong value %s",
                                             words_wrong_value(a, t, t->first_wrong, false))
                              : "✗ different";
    }
    if (!strcmp(v, "invalid")) {
        *role = ROLE_FAIL;
        for (int i = 0; i < t->n_diags; i++)
            if (t->diags[i].severity == DIAG_ERROR)
                return arena_printf(a, "✗ the plan breaks a rule: %s", t->diags[i].code);
        return "✗ the plan breaks a rule";
    }
    return "shapes checked, not executed";
}

int64_t words_group_of(const RankGroups *g, int64_t rank) { return groups_with(g, rank); }

const char *words_members(Arena *a, const RankGroups *g, int64_t group) {
    int64_t n = groups_size(g);
    if (group < 0 || n <= 0) return "{}";
    int64_t first = groups_member(g, group, 0), last = groups_member(g, group, n - 1);
    Str s = str_new(a);
    bool run = n > 3 && last - first == n - 1;
    if (n <= 4 && !run) {
        for (int64_t i = 0; i < n; i++)
            str_addf(&s, "%s%lld", i ? "," : "{", (long long)groups_member(g, group, i));
        str_add(&s, "}");
        return s.s;
    }
    int64_t step = groups_member(g, group, 1) - first;
    bool even = step > 0;
    for (int64_t i = 1; i < n && i < 65536 && even; i++)
        even = groups_member(g, group, i) == first + i * step;
    if (even && step == 1) str_addf(&s, "{%lld-%lld}", (long long)first, (long long)last);
    else if (even)
        str_addf(&s, "{%lld:%lld:%lld}", (long long)first, (long long)(last + step),
                 (long long)step);
    else
        str_addf(&s, "{%lld,%lld,…,%lld}", (long long)first, (long long)groups_member(g, group, 1),
                 (long long)last);
    return s.s;
}

const char *words_leaf(const char *path) {
    const char *p = path ? strrchr(path, '.') : NULL;
    if (!p) return path ? path : "";
    if (p[1] && !p[1 + strspn(p + 1, "0123456789")]) /* a number alone says nothing */
        while (p > path && p[-1] != '.') p--;
    else p++;
    return p;
}
int words_attention_part(const char *of) {
    static const char part[] = "attn_part.";
    const char *at = of ? strstr(of, part) : NULL;
    return at ? atoi(at + sizeof part - 1) : -1;
}
int words_part_of(const TraceCompute *c) {
    const int makes = words_attention_part(c->makes.of),
              takes = c->n_inputs ? words_attention_part(c->inputs[0]) : -1;
    if (makes >= 0) return c->makes.role == OF_ITSELF ? makes : -1;
    return c->makes.role == OF_GRADIENT ? takes : -1;
}
const char *words_op(Arena *a, const TraceCompute *c) {
    const char *label = c->label && *c->label ? c->label : c->op ? c->op : "";
    const int part = words_part_of(c);
    if (part < 0 || !text_same(label, "partial attention")) return label;
    return arena_printf(a, "part %d of attention", part);
}
const char *words_part_help(Arena *a, const RenderOptions *o, const char *there) {
    const char *near = o->part_hint;
    if (!near) return there;
    const char *said = strchr(near, ' ') ? near : arena_printf(a, "did you mean '%s'?", near);
    return there && *there ? arena_printf(a, "%s (%s)", said, there) : said;
}

const char *words_updated(Arena *a, const char *name) {
    size_t n = text_before(name, ".next");
    return n ? arena_strndup(a, name, n) : name;
}

/* "k_nope" of "layers.0.k_nope.2": which part of a query or key it is, where attention takes them
 * in two; NULL: it takes them whole. */
static const char *part_of_two(Arena *a, const Trace *t, const char *name) {
    const char *leaf = words_leaf(name);
    if (!*leaf || leaf[1] != '_') return NULL;
    const size_t n = 2 + strcspn(leaf + 2, ".");
    const char *word = arena_strndup(a, leaf, n);
    if (!text_same(word + 1, "_nope") && !text_same(word + 1, "_rope") &&
        !text_same(word + 1, "_pe"))
        return NULL;
    const char *other = arena_printf(a, "%.*s%c_nope", (int)(leaf - name), name, *leaf);
    return trace_value(t, other, INT_MAX) ? word : NULL;
}
const char *words_short(Arena *a, const Trace *t, const char *name) {
    const char *leaf = words_leaf(name);
    if (strcspn(leaf, "_") != 1 || !strchr("qkv", *leaf)) return leaf;
    const char *part = part_of_two(a, t, name);
    return part ? part : arena_strndup(a, leaf, 1);
}
const char *words_gradient(Arena *a, const char *word) {
    return arena_printf(a, strlen(word) > 1 ? "d %s" : "d%s", word);
}
/* The step whose module has the weight *p that makes the value; NULL: none reads a weight. */
static const TraceCompute *weighted(const Trace *t, const char *value, const TraceParam **p) {
    *p = NULL;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (c->makes.role != OF_ITSELF || !text_same(c->makes.of, value)) continue;
        for (int k = 0; k < c->n_inputs && !*p; k++) *p = trace_param(t, c->inputs[k]);
        return *p && c->module && *words_leaf(c->module) ? c : NULL;
    }
    return NULL;
}
/* The norm that makes the value; NULL: none does. */
static const TraceCompute *norm_before(const Trace *t, const char *value) {
    const TraceParam *p;
    const TraceCompute *c = weighted(t, value, &p);
    return c && p->compute.nd == 1 && part_term(c->part)->norm ? c : NULL;
}
bool words_after_norm(const Trace *t, const char *value) { return norm_before(t, value) != NULL; }
const char *words_kept(Arena *a, const Trace *t, const char *value, bool brief) {
    const TraceCompute *c = norm_before(t, value);
    if (c) return arena_printf(a, "after %s", brief ? "the norm" : words_leaf(c->module));
    return words_short(a, t, value);
}

const char *words_adjoint(Arena *a, const char *op) { return arena_printf(a, "%s′", op); }

bool words_of_label(const char *rule) {
    static const char begins[] = "the plan says ";
    return rule && !strncmp(rule, begins, sizeof begins - 1);
}
bool words_declares(const TraceLocalMove *m) {
    return text_same(m->op, "claim") || (!m->planted && words_of_label(m->wrong));
}
const char *words_move(const TraceLocalMove *m) {
    return words_declares(m) ? "declared, not done" : m->op;
}

/* Does the weight make a score for each expert: [E, D]? */
static bool is_router(const TraceParam *p) {
    return p->compute.nd == 2 && p->compute.dim_symbol[0][0] == 'E' &&
           strchr("/", p->compute.dim_symbol[0][1]) != NULL;
}

/* Of a path, the part that stands before its leaf, if weights beside it are called the same. */
static const char *group_of(const char *path) {
    static const char shared[] = "shared";
    const char *dot = strrchr(path, '.'), *up = dot;
    while (up && up > path && up[-1] != '.') up--;
    return up && !strncmp(up, shared, sizeof shared - 1) ? shared : "";
}
/* The name that tells a weight from others of its module: experts' own, their biases [E, F] too,
 * and what is no matrix; NULL: the module's is its name. */
static const char *own_name(const TraceParam *p) {
    const char *own = words_leaf(p->plan_name);
    /* "scale": what torchtune calls the weight of a norm */
    bool only = !*own || !strcmp(own, "weight") || !strcmp(own, "bias") || !strcmp(own, "scale");
    return !only && (p->compute.nd != 2 || is_router(p)) ? own : NULL;
}
const char *words_weight(Arena *a, const char *module, const TraceParam *p) {
    const char *group = "";
    return words_weight_next(a, module, p, &group);
}
const char *words_weight_next(Arena *a, const char *module, const TraceParam *p,
                              const char **group) {
    const char *before = *group, *own = own_name(p);
    *group = "";
    if (own) return own;
    const char *path = module && *module ? module : p->plan_name, *leaf = words_leaf(path);
    if (is_router(p) && strcmp(leaf, "router")) return arena_printf(a, "router %s", leaf);
    /* its matrices are called as those of the experts beside it */
    *group = group_of(path);
    return **group && strcmp(*group, before) ? arena_printf(a, "%s %s", *group, leaf) : leaf;
}

const char *words_param(Arena *a, const TraceParam *p) {
    const char *name = words_weight(a, p->module, p);
    return strcmp(words_leaf(p->plan_name), "bias") ? name : arena_printf(a, "%s bias", name);
}

ValueName words_value_name(Arena *a, const Trace *t, const char *name) {
    const Subject s = subject_of(name);
    const bool grad = subject_is_gradient(s);
    const TraceParam *p;
    const TraceCompute *c = weighted(t, grad ? s.of : name, &p);
    if (c) {
        const bool matrix = p->compute.nd > 1;
        const char *own = matrix ? own_name(p) : NULL;
        return (ValueName){grad, true, grad ? "gradient after " : "after ",
                           own ? arena_printf(a, "%s.%s", c->module, own) : c->module,
                           matrix ? words_weight(a, c->module, p) : words_leaf(c->module)};
    }
    const TraceParam *of = s.role == OF_PARAM_GRADIENT ? trace_param(t, s.of) : NULL;
    return (ValueName){grad, false, grad ? "gradient of " : "", grad ? s.of : name,
                       of ? words_param(a, of) : words_leaf(name)}; /* not "weight" */
}
const char *words_value(Arena *a, const Trace *t, const char *name) {
    const ValueName k = words_value_name(a, t, name);
    return *k.before ? arena_printf(a, "%s%s", k.before, k.brief) : k.brief;
}
const char *words_value_path(Arena *a, const Trace *t, const char *name, const char **path) {
    const ValueName k = words_value_name(a, t, name);
    *path = k.path;
    return k.before;
}

const char *words_in_layer(const char *path, int *layer) {
    static const char layers[] = "layers.";
    if (strncmp(path, layers, sizeof layers - 1)) return NULL;
    const char *number = path + sizeof layers - 1, *dot = number + strspn(number, "0123456789");
    if (dot == number || *dot != '.') return NULL;
    *layer = atoi(number);
    return dot + 1;
}
/* "moe.list" of "layers.0.moe.list": its leaf alone says little. */
static const char *without_layer(const char *path) {
    int layer;
    const char *in = words_in_layer(path, &layer);
    return in ? in : path;
}
const char *words_wrong_value(Arena *a, const Trace *t, const char *name, bool brief) {
    const bool param = trace_param(t, name) != NULL; /* "weight" alone would be its leaf */
    const ValueName k = words_value_name(a, t, name);
    const char *verb = k.gradient ? "is the " : k.after ? "comes " : "is ";
    const bool module = k.after || trace_param(t, subject_of(name).of); /* which says it in brief */
    const char *own = module ? k.brief : without_layer(k.path);
    return arena_printf(a, "%s%s%s", verb, k.before, brief && !param ? own : k.path);
}

const char *words_style(const char *style) {
    static const struct {
        const char *plan, *people;
    } row[] = {{"colwise", "column"},
               {"rowwise", "row"},
               {"sequence_parallel", "sequence"},
               {"replicated_with_grad_allreduce", "replicated"}};
    for (size_t i = 0; style && i < sizeof row / sizeof *row; i++)
        if (!strcmp(style, row[i].plan)) return row[i].people;
    return style;
}

const char *words_base(Arena *a, const char *dim) {
    if (!dim) return "";
    if (!strncmp(dim, "rows(", 5)) return "rows"; /* of experts, by several letters at once */
    const char *slash = strchr(dim, '/');
    return slash ? arena_strndup(a, dim, (size_t)(slash - dim)) : dim;
}

Phase words_phase(const TraceCompute *c) {
    static const Phase drawn_as[N_PHASES] = {
        [PHASE_NONE] = PHASE_FORWARD,       [PHASE_FORWARD] = PHASE_FORWARD,
        [PHASE_LOSS] = PHASE_FORWARD,       [PHASE_BACKWARD] = PHASE_BACKWARD,
        [PHASE_GRADIENTS] = PHASE_BACKWARD, [PHASE_PARAMETERS] = PHASE_FORWARD,
        [PHASE_OPTIMIZER] = PHASE_OPTIMIZER};
    if (c && c->pass == PHASE_LOSS && subject_is_gradient(c->makes)) return PHASE_BACKWARD;
    return drawn_as[c ? c->pass : PHASE_NONE];
}
const char *words_capital(Arena *a, const char *s) {
    char *t = arena_strdup(a, s ? s : "");
    if (*t >= 'a' && *t <= 'z') *t = (char)(*t - 'a' + 'A');
    return t;
}

int words_columns(const char *s) {
    int n = 0;
    for (; *s; s++) n += ((unsigned char)*s & 0xC0) != 0x80;
    return n;
}

void words_pad(Str *s, const char *text, int w, bool right) {
    int fill = w - words_columns(text);
    for (int i = 0; right && i < fill; i++) str_add(s, " ");
    str_add(s, text);
    for (int i = 0; !right && i < fill; i++) str_add(s, " ");
}

void words_end_line(Str *s) {
    while (s->n > 0 && s->s[s->n - 1] == ' ') s->s[--s->n] = 0;
    str_add(s, "\n");
}

void words_row(Str *s, const char *rail, const WordsCell *cell, int n) {
    int total = 0, at = 0, used = 0, left = words_columns(rail); /* used: columns of this line */
    for (int i = 0; i < n; i++) total += cell[i].w;
    for (int i = 0; i < n; at += cell[i++].w) {
        int w = words_columns(cell[i].text), start = cell[i].right ? at + cell[i].w - w : at;
        if (!w) continue;
        if (start + w > total) start = total - w;
        if (used && start <= used) { /* no room beside the one before it */
            words_end_line(s);
            str_add(s, rail);
            used = left;
        }
        if (start < used) start = used;
        words_pad(s, "", start - used, false);
        str_add(s, cell[i].text);
        used = start + w;
    }
    words_end_line(s);
}

const char *words_fit_name(Arena *a, const char *name, int w) {
    static const char grad[] = "grad.";
    bool gradient = !strncmp(name, grad, sizeof grad - 1);
    const char *rest = gradient ? name + sizeof grad - 1 : name, *s = name;
    while (words_columns(s) > w && strchr(rest, '.')) {
        rest = strchr(rest, '.') + 1;
        s = arena_printf(a, "%s…%s", gradient ? grad : "", rest);
    }
    return s;
}

/* The first line has one rail, the others another of the same width. */
static void paragraph(Str *s, const char *first, const char *rail, const char *text, int w) {
    int room = w - words_columns(rail);
    while (*text) {
        size_t end = 0, best = 0;
        int n = 0;
        for (; text[end]; end++) {
            n += ((unsigned char)text[end] & 0xC0) != 0x80;
            if (n > room) break;
            if (text[end] == ' ') best = end;
        }
        if (!text[end] || best == 0) best = end;
        str_addf(s, "%s%.*s", first, (int)best, text);
        words_end_line(s);
        first = rail;
        text += best;
        while (*text == ' ') text++;
    }
}
void words_paragraph(Str *s, const char *rail, const char *text, int w) {
    paragraph(s, rail, rail, text, w);
}
void words_labelled(Str *s, const char *label, const char *text, int w) {
    Str blank = str_new(s->a);
    words_pad(&blank, "", words_columns(label), false);
    paragraph(s, label, blank.s ? blank.s : "", text, w);
}

Message words_message(const TraceCollective *c, int64_t rank) {
    if (words_group_of(&c->groups, rank) < 0) return MESSAGE_NONE;
    TraceTraffic x = collective_on(c, rank);
    return (x.bytes_in == 0) == (x.bytes_out == 0) ? MESSAGE_NONE
           : x.bytes_out == 0                      ? MESSAGE_TO
                                                   : MESSAGE_FROM;
}
const char *words_message_way(Message m) {
    return m == MESSAGE_TO ? "To another stage" : "From another stage";
}
const char *words_message_title(Arena *a, const TraceCollective *c, int64_t rank, Message way) {
    const int64_t g = words_group_of(&c->groups, rank);
    if (g < 0 || groups_size(&c->groups) != 2) return words_message_way(way);
    const int64_t first = groups_member(&c->groups, g, 0);
    return arena_printf(a, "%s rank %lld", way == MESSAGE_TO ? "To" : "From",
                        (long long)(first == rank ? groups_member(&c->groups, g, 1) : first));
}
static const char adjoint_of[] = "adjoint of ";
const char *words_own_why(const char *why) {
    const char *own = strncmp(why, adjoint_of, sizeof adjoint_of - 1) ? NULL : strstr(why, ": ");
    return own ? own + 2 : "";
}
const char *words_why(Arena *a, const char *why) {
    if (!why || strncmp(why, adjoint_of, sizeof adjoint_of - 1))
        return why ? words_symbol(a, why) : "";
    const char *op = why + sizeof adjoint_of - 1, *rest = op + strcspn(op, ":");
    const CollWord *w = coll_word(arena_strndup(a, op, (size_t)(rest - op)));
    return words_symbol(a, w ? arena_printf(a, "%s%s%s", adjoint_of, w->name, rest) : why);
}

const char *words_coll_on(const TraceCollective *c, int64_t rank) {
    const CollWord *w = coll_word(c->op);
    if (w && w->there && words_message(c, rank) == MESSAGE_FROM) w = coll_word(w->there);
    return w ? w->name : c->op;
}

const char *words_done(Arena *a, const char *name, const TraceCollective *c) {
    int n = collective_times(c);
    return n < 2    ? name
           : n == 2 ? arena_printf(a, "%s, twice", name)
                    : arena_printf(a, "%s, %d times", name, n);
}

bool words_expected(const TraceCollective *const *c, int n) {
    bool rows = false;
    for (int i = 0; i < n; i++) rows |= c[i]->row_bytes > 0;
    return rows;
}

const char *words_coll_done(Arena *a, const TraceCollective *c) {
    const CollWord *w = coll_word(c->op);
    const char *name = w ? w->name : c->op;
    return c->skipped ? arena_printf(a, "no %s", name) : words_done(a, name, c);
}

/* Is anything of a layer among what travels with another's value? */
static bool with_layers(const Trace *t, const TraceCollective *c) {
    for (int i = 0; i < t->n_values; i++) {
        bool with = false;
        for (int k = 0; k < c->n_with; k++) with |= c->with[k] == t->values[i].step;
        const TraceParam *p = with ? trace_param(t, t->values[i].subject.of) : NULL;
        if (p && p->layer >= 0) return true;
    }
    return false;
}
const char *words_unit(const Trace *t, const TraceCollective *c) {
    if (!c->n_with) return NULL;
    return c->layer >= 0 ? "layer" : with_layers(t, c) ? "model" : "root";
}

int words_backward(const Trace *t) {
    int first = INT_MAX;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].pass == PHASE_BACKWARD && t->computes[i].step < first)
            first = t->computes[i].step;
    return first;
}
Phase words_pass_of(const TraceCollective *c, int backward) {
    switch (c->pass) {
    case PHASE_LOSS: return subject_is_gradient(c->subject) ? PHASE_BACKWARD : PHASE_FORWARD;
    case PHASE_GRADIENTS: return PHASE_BACKWARD;
    case PHASE_PARAMETERS: return c->step < backward ? PHASE_FORWARD : PHASE_BACKWARD;
    default: return phase_or_forward(c->pass);
    }
}

void words_add(Total *t, const TraceCollective *c, int64_t rank) {
    int n = collective_times(c);
    t->bytes += collective_on(c, rank).bytes_sent;
    if (words_message(c, rank) == MESSAGE_FROM) t->received += n;
    else t->count += n, t->messages += collective_is_message(c) ? n : 0;
}
void words_add_total(Total *t, const Total *more, int64_t times) {
    t->bytes += more->bytes * times;
    t->count += more->count * times;
    t->messages += more->messages * times;
    t->received += more->received * times;
}
bool words_same_total(const Total *a, const Total *b) {
    return a->bytes == b->bytes && a->count == b->count && a->messages == b->messages &&
           a->received == b->received;
}
const char *words_sent(Arena *a, const Total *t, const Total *said) {
    if (!t->count) return "nothing";
    bool same = said && !said->messages == !t->messages &&
                (said->messages == said->count) == (t->messages == t->count);
    bool mixed = t->messages && t->messages < t->count;
    return arena_printf(a, "%s in %s", bytes_text(t->bytes, a),
                        same && !mixed ? arena_printf(a, "%lld", (long long)t->count)
                                       : counted_text(a, t->count, t->messages));
}
const char *words_sent_over(Arena *a, const Trace *t, const Total *sum, const char *axis,
                            const Total *said) {
    const char *list = words_axis_list(a, t, axis), *sent = words_sent(a, sum, said);
    return sum->count ? arena_printf(a, "%s %s", list, sent)
                      : arena_printf(a, "%s over %s", sent, list);
}
int words_totals(Arena *a, const TraceCollective *const *use, int n, int64_t rank, Total **out) {
    Total *t = ARENA_ARRAY(a, Total, n);
    int k = 0;
    for (int i = 0; i < n; i++) {
        int j = 0;
        while (j < k && strcmp(t[j].axis, use[i]->axis)) j++;
        if (j == k) t[k++] = (Total){.axis = use[i]->axis, .axes = use[i]->axes};
        words_add(&t[j], use[i], rank);
    }
    *out = t;
    return k;
}

const TraceLocal *words_find_local(const TraceShape *s, int64_t rank) {
    for (int i = 0; i < s->n_local; i++)
        if (rankset_has(&s->local[i].ranks, rank)) return &s->local[i];
    return NULL;
}

const char *words_pending(const TraceShape *s, bool *max) {
    *max = false;
    if (s->pending && *s->pending) return s->pending;
    for (int i = 0; i < s->n_places; i++)
        if (place_pending(s->place[i].place) == PENDING_MAX) {
            *max = true;
            return s->place[i].axis;
        }
    return NULL;
}

int64_t words_blocks(const char *symbol) {
    char *end;
    long long n = symbol && *symbol >= '0' && *symbol <= '9' ? strtoll(symbol, &end, 10) : 1;
    return n > 1 && *end == '*' ? n : 1;
}
