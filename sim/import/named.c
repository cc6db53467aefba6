/* Recorded names and shapes: see named.h. How a name finds its rule, and where the styles put a
 * tensor's dims, is what transformers 5.23 does (parallel_utils.py, tensor_parallel.py). */
#include "import/named.h"
#include "base/file.h"
#include "import/python.h"
#include "plan/plan.h"
#include <ctype.h>
#include <string.h>

enum { FILE_BYTES = 1 << 24, MOST_RANKS = 1 << 12 };

/* Everything while a file is laid out. */
typedef struct {
    Arena *a;
    Diags *d;
    NamedPlan *out;
    Value *modules, *parameters, *tied;
    int64_t tp, ep;
    Value rules[2]; /* of tp and of ep: patterns to their numbers in out->rule */
    Value generic;  /* the names that patterns are looked for among */
    bool idle;      /* a load leaves the table of ep out: it dispatches nobody's tokens */
} Named;

/* ---- the file ---- */
/* Python writes Infinity and NaN, which are no JSON: blank them, where they stand outside of text,
 * by a null of the same length. */
static void blank_numbers(char *text) {
    static const char *const word[] = {"Infinity", "NaN"};
    bool quoted = false;
    for (char *c = text; *c; c++) {
        if (*c == '\\' && quoted && c[1]) c++;
        else if (*c == '"') quoted = !quoted;
        for (int i = 0; i < 2 && !quoted; i++) {
            size_t n = strlen(word[i]);
            if (strncmp(c, word[i], n) != 0) continue;
            if (c > text && c[-1] == '-') c[-1] = ' ';
            memset(c, ' ', n);
            memcpy(c, n > 4 ? "null" : "0", n > 4 ? 4 : 1);
        }
    }
}
static Value *read_dict(Named *x, const char *path) {
    size_t n;
    char *text = file_read(x->a, x->d, path, FILE_BYTES, diag_nowhere, &n);
    if (!text) return NULL;
    blank_numbers(text);
    Value *v = json_names(x->a, x->d, path, text, n);
    if (v && v->kind != V_DICT)
        diag_error(x->d, "E0301", v->loc, NULL, "a JSON object is wanted, not %s",
                   value_kind_text(v));
    return v && v->kind == V_DICT ? v : NULL;
}
static Value *dict_of(Named *x, Value *top, const char *key, bool required) {
    Value *v = value_get(top, key);
    if (v && v->kind == V_NONE) v = NULL;
    if (!v && required)
        diag_error(x->d, "E0208", top->loc, "docs/shipped-plans.md has the ten lines that write it",
                   "a file of names has '%s'", key);
    if (v && v->kind != V_DICT)
        diag_error(x->d, "E0301", v->loc, NULL, "'%s' is an object, not %s", key,
                   value_kind_text(v));
    return v && v->kind == V_DICT ? v : NULL;
}
static const char *text_of(Value *top, const char *key) {
    Value *v = value_get(top, key);
    return v && v->kind == V_STRING ? v->s : NULL;
}

/* ---- rules ---- */
static NamedRule *rule_at(Named *x, const char *axis, const char *pattern) {
    const ValuePair *p = value_pair(&x->rules[*axis == 'e'], pattern);
    return p ? &x->out->rule[p->value->i] : NULL;
}
static NamedRule *new_rule(Named *x, const char *axis, const char *pattern) {
    Value *number = ARENA_NEW(x->a, Value);
    number->i = x->out->n_rules;
    value_add(x->a, &x->rules[*axis == 'e'], (ValuePair){.key = pattern, .value = number});
    return ARENA_PUSH(x->a, x->out->rule, x->out->n_rules, x->out->cap_rules);
}
static void add_rules(Named *x, const char *axis, const Value *table) {
    for (int i = 0; table && i < table->n_pairs; i++) {
        const ValuePair *p = &table->pair[i];
        if (p->value->kind != V_STRING) {
            diag_error(x->d, "E0301", p->value->loc, NULL, "a style is text, not %s",
                       value_kind_text(p->value));
            continue;
        }
        NamedRule *r = rule_at(x, axis, p->key);
        if (!r) r = new_rule(x, axis, p->key);
        *r = (NamedRule){p->key, p->value->s, axis, p->loc, p->value->loc, 0, 0, false};
    }
}
static void add_table(Named *x, const char *axis, Value *plan, const char *path) {
    if (plan) add_rules(x, axis, dict_of(x, plan, axis, false));
    if (path) add_rules(x, axis, read_dict(x, path));
}
static void check_styles(Named *x) {
    for (int i = 0; i < x->out->n_rules; i++) {
        const NamedRule *r = &x->out->rule[i];
        int blocks;
        bool linear;
        if (style_hf(r->style, &blocks, &linear) != HF_NOT) continue;
        const char *names[64] = {0};
        int n, k = 0;
        const StyleRow *rows = style_rows(&n);
        for (int j = 0; j < n && k < 63; j++)
            if (rows[j].hf && !rows[j].module_kind) names[k++] = rows[j].style.name;
        const char *near = diag_nearest(r->style, names);
        diag_error(x->d, "E0203", r->style_loc,
                   near ? arena_printf(x->a, "did you mean '%s'?", near) : NULL,
                   "transformers 5.23 knows no style '%s'", r->style);
    }
}

/* ---- names ---- */
/* re.sub(r"\.\d+(\.|$)", ".*\1"): the dot after a number is taken, so of two numbers in a row the
 * second stays. */
static const char *generic_name(Arena *a, const char *name) {
    Str s = str_new(a);
    while (*name) {
        const char *end = name + 1;
        if (*name == '.')
            while (isdigit((unsigned char)*end)) end++;
        if (*name != '.' || end == name + 1 || (*end && *end != '.')) {
            str_addn(&s, name++, 1);
            continue;
        }
        str_add(&s, *end ? ".*." : ".*");
        name = *end ? end + 1 : end;
    }
    return s.s ? s.s : "";
}
/* The module that a parameter is of: "" for the root. */
static const char *owner_of(Arena *a, const char *name) {
    const char *dot = strrchr(name, '.');
    return dot ? arena_strndup(a, name, (size_t)(dot - name)) : "";
}
/* The rule of a name by the table of an axis; a parameter may have that of its module. */
static NamedRule *rule_of(Named *x, const char *axis, const char *generic, bool param) {
    NamedRule *r = rule_at(x, axis, generic);
    return r || !param || !strchr(generic, '.') ? r : rule_at(x, axis, owner_of(x->a, generic));
}
/* Has this module, or one around it, a rule of ep? Then those of tp are not for it. */
static bool of_experts(Named *x, const char *module) {
    for (const char *m = module; x->ep > 0 && *m; m = owner_of(x->a, m))
        if (rule_at(x, "ep", generic_name(x->a, m))) return true;
    return false;
}
static NamedRule *find_rule(Named *x, const char *name, const char *generic, bool param) {
    NamedRule *r = x->ep > 0 ? rule_of(x, "ep", generic, param) : NULL;
    if (r || x->tp < 1 || of_experts(x, param ? owner_of(x->a, name) : name)) return r;
    return rule_of(x, "tp", generic, param);
}

/* ---- placements ---- */
/* torch.chunk: as long as possible from the first rank on. */
static int64_t chunk(int64_t size, int64_t n, int64_t rank) {
    int64_t each = (size + n - 1) / n, first = rank * each;
    return first >= size ? 0 : size - first < each ? size - first : each;
}
static int cut_dim(const NamedParam *p, HfCut cut, bool bias) {
    switch (cut) {
    case HF_COLUMN: return p->nd > 1 ? p->nd - 2 : 0;
    case HF_ROW: return bias ? -1 : p->nd - 1;
    case HF_FIRST: return 0;
    case HF_SECOND: return p->nd > 1 ? 1 : -2;
    default: return -1;
    }
}
/* Cuts a parameter as its rule says. */
static void place(Named *x, NamedParam *p) {
    const NamedRule *r = p->rule;
    int blocks;
    bool linear;
    HfCut cut = style_hf(r->style, &blocks, &linear);
    const char *last = strrchr(p->name, '.');
    bool bias = !strcmp(last ? last + 1 : p->name, "bias") || (blocks && p->nd == 1);
    if (cut <= HF_DISPATCH || !p->nd || (x->idle && *r->axis == 'e')) return;
    int dim = cut_dim(p, cut, bias);
    if (dim == -2) {
        diag_error(x->d, "E0219", r->style_loc, NULL, "'%s' cuts dim 1, and '%s' has one dim",
                   r->style, p->name);
        return;
    }
    if (dim < 0) {
        p->placement = "R";
        return;
    }
    if (p->nd == 1) blocks = 0;
    p->placement =
        blocks ? arena_printf(x->a, "_S(%d, %d)", dim, blocks) : arena_printf(x->a, "S(%d)", dim);
    if (blocks < 1) blocks = 1;
    for (int k = 0; k < p->ranks; k++) {
        p->local[k][dim] = 0;
        for (int b = 0; b < blocks; b++)
            p->local[k][dim] += chunk(chunk(p->shape[dim], blocks, b), p->ranks, k);
    }
}
static bool read_shape(Named *x, const ValuePair *v, NamedParam *p) {
    bool fits = v->value->kind == V_LIST && v->value->n <= NAMED_DIMS;
    for (int i = 0; fits && i < v->value->n; i++) {
        const Value *size = v->value->item[i];
        fits = size->kind == V_INT && size->i >= 0 && size->i < (int64_t)1 << 40;
        if (fits) p->shape[i] = size->i;
    }
    if (!fits)
        diag_error(x->d, "E0301", v->value->loc, NULL,
                   "a shape is a list of at most %d whole numbers", NAMED_DIMS);
    p->nd = fits ? v->value->n : 0;
    return fits;
}
/* transformers applies the table of ep only where it dispatches tokens to some module's experts;
 * the rules of tp that it beats are left out all the same. */
static void check_dispatch(Named *x) {
    bool any = false, dispatches = false;
    for (int i = 0; x->tp > 0 && x->ep > 0 && i < x->modules->n_pairs; i++) {
        const char *name = x->modules->pair[i].key;
        const NamedRule *r = rule_at(x, "ep", generic_name(x->a, name));
        int blocks;
        bool linear;
        any |= r != NULL;
        dispatches |= r && style_hf(r->style, &blocks, &linear) == HF_DISPATCH;
    }
    x->idle = any && !dispatches;
    if (x->idle)
        diag_warn(
            x->d, "W0001", diag_nowhere, NULL,
            "no module's tokens are dispatched to experts: the library applies no rule of ep, "
            "and leaves out the rules of tp that they beat");
}
static bool is_tied(const Named *x, const char *name) {
    return x->tied && value_pair(x->tied, name);
}
static void lay_params(Named *x) {
    const Value *all = x->parameters;
    x->out->param = ARENA_ARRAY(x->a, NamedParam, all->n_pairs + 1);
    for (int i = 0; i < all->n_pairs; i++) {
        NamedParam *p = &x->out->param[x->out->n_params++];
        *p = (NamedParam){.name = all->pair[i].key, .ranks = 1};
        p->generic = generic_name(x->a, p->name);
        if (!read_shape(x, &all->pair[i], p)) continue;
        NamedRule *r = find_rule(x, p->name, p->generic, true);
        p->rule = r;
        if (r) r->params++, p->ranks = (int)(*r->axis == 'e' ? x->ep : x->tp);
        p->local = arena_alloc(x->a, base_mul((size_t)p->ranks, sizeof *p->local));
        for (int k = 0; k < p->ranks; k++) memcpy(p->local[k], p->shape, sizeof p->shape);
        if (r) place(x, p);
    }
}

/* ---- what the library refuses ---- */
/* A module is linear to it where it has a weight of two dims; an embedding has one, and is none. */
static bool is_linear(const Named *x, const char *name, const char *kind) {
    const char *weight = arena_printf(x->a, "%s.weight", name);
    const Value *shape = value_get(x->parameters, weight);
    if (!strcmp(kind, "Embedding")) return false;
    return is_tied(x, weight) || (shape && shape->kind == V_LIST && shape->n == 2);
}
static void lay_modules(Named *x) {
    const Value *all = x->modules;
    x->out->module = ARENA_ARRAY(x->a, NamedModule, all->n_pairs + 1);
    for (int i = 0; i < all->n_pairs; i++) {
        const char *name = all->pair[i].key, *generic = generic_name(x->a, name);
        const Value *v = all->pair[i].value;
        const char *kind = v->kind == V_STRING ? v->s : "";
        NamedRule *r = find_rule(x, name, generic, false);
        if (!r) continue;
        x->out->module[x->out->n_modules++] = (NamedModule){name, generic, kind, r};
        int blocks;
        bool linear;
        style_hf(r->style, &blocks, &linear);
        if (linear && !is_linear(x, name, kind) && !r->modules)
            diag_error(x->d, "E0219", r->loc, "a rule for the layers in it, or none",
                       "'%s' is for linear layers, and '%s' is a %s: the library refuses it",
                       r->style, name, *kind ? kind : "module without a weight");
        r->modules++;
    }
}
/* Experts stand whole on a rank: the library refuses a number that ranks do not divide. */
static void check_experts(Named *x) {
    for (int i = 0; i < x->out->n_params; i++) {
        const NamedParam *p = &x->out->param[i];
        if (!p->rule || *p->rule->axis != 'e' || !p->placement || strcmp(p->placement, "S(0)"))
            continue;
        if (p->shape[0] % x->ep == 0 || p->nd < 2) continue;
        diag_error(x->d, "E0219", p->rule->loc, "an --ep that divides them",
                   "'%s': %lld experts cannot be shared out evenly to %lld ranks: the library "
                   "refuses it",
                   p->name, (long long)p->shape[0], (long long)x->ep);
        return;
    }
}
static void add_generic(Named *x, const Value *names) {
    for (int i = 0; i < names->n_pairs; i++)
        value_set(x->a, &x->generic, (ValuePair){.key = generic_name(x->a, names->pair[i].key)});
}
static void check_unused(Named *x) {
    add_generic(x, x->parameters);
    add_generic(x, x->modules);
    for (int i = 0; i < x->out->n_rules; i++) {
        NamedRule *r = &x->out->rule[i];
        bool asked = *r->axis == 'e' ? x->ep > 0 : x->tp > 0,
             met = r->params || r->modules || value_pair(&x->generic, r->pattern);
        r->unused = asked && !met;
        if (r->unused)
            diag_warn(x->d, "W0001", r->loc, NULL,
                      "pattern '%s' matches no module and no parameter: nothing is '%s' by it",
                      r->pattern, r->style);
    }
}

static bool enough(Named *x, const char *path) {
    Loc top = {path, 1, 1};
    if (x->tp < 1 && x->ep < 1)
        diag_error(x->d, "E0208", top, "--tp 2, or --ep 2 for the table of experts",
                   "how many ranks there are does not stand in a file of names");
    if (x->tp > MOST_RANKS || x->ep > MOST_RANKS)
        diag_error(x->d, "E0701", top, NULL, "more than %d ranks", MOST_RANKS);
    return !diags_errors(x->d);
}
const NamedPlan *import_named(Arena *a, Diags *d, const char *path, NamedTables t) {
    Named x = {.a = a, .d = d, .out = ARENA_NEW(a, NamedPlan), .tp = t.tp, .ep = t.ep};
    if (!enough(&x, path)) return NULL;
    Value *top = read_dict(&x, path);
    if (!top) return NULL;
    x.out->model_class = text_of(top, "model_class");
    x.out->model_type = text_of(top, "model_type");
    Value *plan = dict_of(&x, top, "plan", false);
    x.out->has_plan = plan || t.tp_plan || t.ep_plan;
    x.modules = dict_of(&x, top, "modules", true);
    x.parameters = dict_of(&x, top, "parameters", true);
    x.tied = dict_of(&x, top, "tied_keys", false);
    if (!x.modules || !x.parameters) return NULL;
    if (!x.out->has_plan)
        diag_error(d, "E0208", top->loc, "--tp-plan FILE",
                   "the file has no table: it has no 'plan'");
    if (t.tp > 0) add_table(&x, "tp", plan, t.tp_plan);
    if (t.ep > 0) add_table(&x, "ep", plan, t.ep_plan);
    check_styles(&x);
    check_dispatch(&x);
    lay_params(&x);
    lay_modules(&x);
    check_experts(&x);
    check_unused(&x);
    return x.out;
}
