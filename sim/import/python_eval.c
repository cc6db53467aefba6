#include "import/python_eval.h"
#include <string.h>

enum {
    STEPS = 2 * VALUE_PAIRS * VALUE_EACH, /* of one file */
    LONGEST = 4096,                       /* bytes of a text that is put together */
};

/* ---- steps and names ---- */
bool python_step(Python *p, Loc at) {
    if (p->spent || p->steps++ < STEPS) return !p->spent;
    diag_error(p->d, "E0704", at, "write the plan out, with `*` for the layers",
               "more than %d steps to read this file", STEPS);
    p->spent = true;
    return false;
}
static Value *make(Python *p, DatumKind kind, Loc at) {
    Value *v = ARENA_NEW(p->a, Value);
    v->kind = kind;
    v->loc = at;
    return v;
}
Value *python_unknown(Python *p, Loc at, const char *why) {
    Value *v = make(p, V_CODE, at);
    v->s = why;
    return v;
}
static void push(Python *p, Value *list, Value *item) {
    *ARENA_PUSH(p->a, list->item, list->n, list->cap) = item;
}
Value *python_lookup(const Python *p, const char *name) {
    for (int i = p->n - 1; i >= p->base; i--)
        if (strcmp(p->bound[i].name, name) == 0) return p->bound[i].value;
    for (int i = p->base ? p->globals - 1 : -1; i >= 0; i--)
        if (strcmp(p->bound[i].name, name) == 0) return p->bound[i].value;
    return NULL;
}
static void bind_new(Python *p, const char *name, Value *v) {
    if (p->n < VALUE_PAIRS) /* what is not bound is a name that nobody knows */
        *ARENA_PUSH(p->a, p->bound, p->n, p->cap) = (PythonBound){name, v};
}
void python_bind(Python *p, const char *name, Value *v) {
    for (int i = p->base; i < p->n; i++)
        if (strcmp(p->bound[i].name, name) == 0) {
            p->bound[i].value = v;
            return;
        }
    bind_new(p, name, v);
}
static void unpack(Python *p, const Value *target, Value *v,
                   void (*bind)(Python *p, const char *name, Value *v)) {
    if (target->kind == V_NAME) bind(p, target->s, v);
    if (target->kind != V_TUPLE && target->kind != V_LIST) return;
    bool parts = (v->kind == V_TUPLE || v->kind == V_LIST) && v->n == target->n;
    for (int i = 0; i < target->n; i++) {
        const char *why = "which part of a value this is cannot be seen here";
        Value *part =
            parts ? v->item[i] : python_unknown(p, v->loc, v->kind == V_CODE ? v->s : why);
        if (python_step(p, v->loc)) unpack(p, target->item[i], part, bind);
    }
}
void python_unpack(Python *p, const Value *target, Value *v) { unpack(p, target, v, python_bind); }

/* ---- what is decided ---- */
static bool number(const Value *v) {
    return v->kind == V_INT || v->kind == V_REAL || v->kind == V_BOOL;
}
static double real(const Value *v) { return v->kind == V_BOOL ? v->b : v->r; }
static int64_t whole(const Value *v) { return v->kind == V_BOOL ? v->b : v->i; }
int python_truth(const Value *v) {
    switch (v->kind) {
    case V_NONE: return 0;
    case V_BOOL: return v->b;
    case V_INT: return v->i != 0;
    case V_REAL: return v->r != 0;
    case V_STRING: return *v->s != 0;
    case V_LIST:
    case V_TUPLE: return v->n > 0;
    case V_DICT: return v->n_pairs > 0;
    default: return -1;
    }
}
const char *python_why(Arena *a, const Value *v) {
    for (int k = 0; k < VALUE_DEPTH; k++) {
        if (v->kind == V_CODE) return v->s;
        if (v->kind == V_EACH || (v->kind == V_INDEX && v->item[1]->kind == V_EACH))
            return "this may differ from layer to layer";
        const char *name = value_dotted(a, v);
        if (name) return arena_printf(a, "`%s` is not known here", name);
        if (v->kind == V_CALL && value_dotted(a, v->item[0]))
            return arena_printf(a, "what `%s` gives is not known here",
                                value_dotted(a, v->item[0]));
        if (v->kind != V_ATTR && v->kind != V_INDEX && v->kind != V_CALL) break;
        v = v->item[0];
    }
    return arena_printf(a, "%s would have to be executed", value_kind_text(v));
}
static Value *undecided(Python *p, Loc at, const Value *of) {
    return python_unknown(p, of->kind == V_CODE ? of->loc : at, python_why(p->a, of));
}
static Value *boolean(Python *p, Loc at, bool b) {
    Value *v = make(p, V_BOOL, at);
    v->b = b;
    return v;
}
static Value *integer(Python *p, Loc at, int64_t i) {
    Value *v = make(p, V_INT, at);
    v->i = i;
    v->r = (double)i;
    return v;
}
static Value *text(Python *p, Loc at, const char *s) {
    Value *v = make(p, V_STRING, at);
    v->s = s;
    return v;
}
/* 1 equal, 0 not, -1 not decided. */
static int equal(const Value *a, const Value *b) {
    if (number(a) && number(b)) return real(a) == real(b);
    if (a->kind >= V_LIST || b->kind >= V_LIST) {
        bool apart =
            (a->kind < V_NAME && b->kind < V_LIST) || (b->kind < V_NAME && a->kind < V_LIST);
        return apart ? 0 : -1;
    }
    if (a->kind != b->kind) return 0;
    return a->kind == V_STRING ? strcmp(a->s, b->s) == 0 : a->kind == V_NONE;
}
/* Is it None? A part of a mesh, a style and whatever stands here as a value are none. */
static int none(const Value *v) {
    if (v->kind < V_NAME) return v->kind == V_NONE;
    return v->kind == V_INDEX && v->item[1]->kind == V_STRING ? 0 : -1;
}

/* ---- operators ---- */
static Value *no_operator(Python *p, const Value *v, const Value *a, const Value *b) {
    if (a->kind >= V_NAME) return undecided(p, v->loc, a);
    if (b && b->kind >= V_NAME) return undecided(p, v->loc, b);
    return python_unknown(
        p, v->loc, arena_printf(p->a, "an expression with '%s' would have to be executed", v->s));
}
static Value *compare(Python *p, const Value *v, const Value *a, const Value *b) {
    if (!number(a) || !number(b)) return no_operator(p, v, a, b);
    double x = real(a), y = real(b);
    bool or_equal = v->s[1] == '=';
    return boolean(p, v->loc, (v->s[0] == '<' ? x < y : x > y) || (or_equal && x == y));
}
static Value *same(Python *p, const Value *v, const Value *a, const Value *b) {
    bool is = v->s[0] == 'i';
    int yes = is && b->kind == V_NONE ? none(a) : equal(a, b);
    if (yes < 0 && is && b->kind == V_NONE && p->stands && p->stands(p->owner, a)) yes = 0;
    if (yes < 0) return no_operator(p, v, a, b);
    return boolean(p, v->loc, yes == !(v->s[0] == '!' || strcmp(v->s, "is not") == 0));
}
static Value *contains(Python *p, const Value *v, const Value *a, const Value *b) {
    int found = -1;
    if (b->kind == V_DICT && a->kind == V_STRING) found = value_pair(b, a->s) != NULL;
    if (b->kind == V_STRING && a->kind == V_STRING) found = strstr(b->s, a->s) != NULL;
    if (b->kind == V_LIST || b->kind == V_TUPLE) {
        found = 0;
        for (int i = 0; i < b->n && found != 1 && python_step(p, v->loc); i++) {
            int yes = equal(b->item[i], a);
            if (yes) found = yes;
        }
    }
    return found < 0 ? no_operator(p, v, a, b) : boolean(p, v->loc, found == (v->s[0] == 'i'));
}
static bool power(int64_t x, int64_t y, int64_t *r) {
    *r = 1;
    if (x == 0 || x == 1) return *r = y ? x : 1, true;
    for (; y > 0; y--)
        if (__builtin_mul_overflow(*r, x, r)) return false;
    return y == 0;
}
static int64_t floor_div(int64_t x, int64_t y) {
    return x / y - (x % y != 0 && (x < 0) != (y < 0));
}
static Value *arithmetic(Python *p, const Value *v, const Value *a, const Value *b) {
    bool reals = a->kind == V_REAL || b->kind == V_REAL, fits = number(a) && number(b) && !reals;
    int64_t x = fits ? whole(a) : 0, y = fits ? whole(b) : 0, r = 0;
    char c = v->s[0];
    bool two = v->s[1] != 0, divides = c == '%' || (c == '/' && two);
    if (divides) fits &= y != 0 && !(x == INT64_MIN && y == -1);
    if (!fits || (c == '/' && !two)) return no_operator(p, v, a, b);
    switch (c) {
    case '+': fits = !__builtin_add_overflow(x, y, &r); break;
    case '-': fits = !__builtin_sub_overflow(x, y, &r); break;
    case '*': fits = two ? power(x, y, &r) : !__builtin_mul_overflow(x, y, &r); break;
    case '/': r = floor_div(x, y); break;
    default: r = x - floor_div(x, y) * y;
    }
    return fits ? integer(p, v->loc, r) : no_operator(p, v, a, b);
}
static Value *join_texts(Python *p, const Value *v, const char *a, const char *b) {
    if (strlen(a) + strlen(b) > LONGEST)
        return python_unknown(p, v->loc, "a text that grows like this is not read here");
    return text(p, v->loc, arena_printf(p->a, "%s%s", a, b));
}
static Value *add(Python *p, const Value *v, const Value *a, const Value *b) {
    if (a->kind == V_STRING && b->kind == V_STRING) return join_texts(p, v, a->s, b->s);
    if (a->kind != b->kind || (a->kind != V_LIST && a->kind != V_TUPLE))
        return arithmetic(p, v, a, b);
    Value *all = make(p, a->kind, v->loc);
    for (int i = 0; i < a->n + b->n && python_step(p, v->loc); i++)
        push(p, all, i < a->n ? a->item[i] : b->item[i - a->n]);
    return all;
}
static bool merge(Python *p, Value *into, const Value *from) {
    for (int i = 0; i < from->n_pairs; i++) {
        bool room = into->n_pairs < VALUE_PAIRS || value_pair(into, from->pair[i].key);
        if (!room || !python_step(p, from->pair[i].loc)) return false;
        ValuePair pair = from->pair[i];
        pair.used = false;
        value_set(p->a, into, pair);
    }
    return true;
}
static Value *unite(Python *p, const Value *v, const Value *a, const Value *b) {
    Value *all = make(p, V_DICT, v->loc);
    if (a->kind != V_DICT || b->kind != V_DICT) return no_operator(p, v, a, b);
    return merge(p, all, a) && merge(p, all, b) ? all : no_operator(p, v, a, b);
}
static Value *negate(Python *p, const Value *v, const Value *a, const Value *b) {
    int truth = python_truth(a);
    (void)b;
    if (strcmp(v->s, "not") == 0)
        return truth < 0 ? undecided(p, v->loc, a) : boolean(p, v->loc, !truth);
    if (a->kind == V_REAL) {
        Value *r = make(p, V_REAL, v->loc);
        r->r = v->s[0] == 'm' ? -a->r : a->r;
        return r;
    }
    if (!number(a) || whole(a) == INT64_MIN) return no_operator(p, v, a, NULL);
    return integer(p, v->loc, v->s[0] == 'm' ? -whole(a) : whole(a));
}
static const struct {
    const char *s;
    Value *(*of)(Python *p, const Value *v, const Value *a, const Value *b);
} operators[] = {
    {"<", compare},     {">", compare},       {"<=", compare},   {">=", compare},
    {"==", same},       {"!=", same},         {"is", same},      {"is not", same},
    {"in", contains},   {"not in", contains}, {"+", add},        {"-", arithmetic},
    {"*", arithmetic},  {"//", arithmetic},   {"/", arithmetic}, {"%", arithmetic},
    {"**", arithmetic}, {"|", unite},         {"not", negate},   {"minus", negate},
    {"plus", negate},
};

/* ---- what is put together ---- */
/* The text that str() makes; NULL: not decided. */
static const char *shown(Python *p, const Value *v) {
    switch (v->kind) {
    case V_STRING: return v->s;
    case V_EACH: return "*";
    case V_INT: return arena_printf(p->a, "%lld", (long long)v->i);
    case V_BOOL: return v->b ? "True" : "False";
    case V_NONE: return "None";
    default: return NULL;
    }
}
static Value *filled(Python *p, const Value *v) {
    Value *all = text(p, v->loc, "");
    for (int i = 0; i < v->n; i++) {
        const Value *part = python_eval(p, v->item[i]);
        const char *s = shown(p, part);
        if (!s) return undecided(p, v->loc, part);
        all = join_texts(p, v, all->s, s);
        if (all->kind == V_CODE) return all;
    }
    return all;
}
/* One entry more, the later one of equal keys; false: *why says what is not decided. */
static bool set(Python *p, Value *dict, const Value *key, Value *v, Value **why) {
    const char *k = shown(p, key);
    if (!k || (key->kind != V_STRING && key->kind != V_EACH)) {
        *why = key->kind >= V_NAME
                   ? undecided(p, key->loc, key)
                   : python_unknown(p, key->loc,
                                    arena_printf(p->a, "a key of this dict is %s, not text",
                                                 value_kind_text(key)));
        return false;
    }
    if (dict->n_pairs >= VALUE_PAIRS && !value_pair(dict, k)) {
        *why = python_unknown(p, key->loc, "a dict of so many keys is not read here");
        return false;
    }
    value_set(p->a, dict, (ValuePair){.key = k, .loc = key->loc, .value = v});
    return true;
}
/* "{" of key, value, ...; a key without text is `**value`. */
static Value *built(Python *p, const Value *v) {
    Value *all = make(p, V_DICT, v->loc), *why = NULL;
    for (int i = 0; i + 1 < v->n && python_step(p, v->loc); i += 2) {
        Value *x = python_eval(p, v->item[i + 1]);
        if (v->item[i]->kind == V_NONE) {
            if (x->kind != V_DICT) return undecided(p, v->item[i]->loc, x);
            if (!merge(p, all, x)) return python_unknown(p, v->loc, "too many keys in one dict");
        } else if (!set(p, all, python_eval(p, v->item[i]), x, &why)) {
            return why;
        }
    }
    return all;
}
/* Clause `at` of a comprehension, all rounds of it; what is not decided comes back, else NULL. */
static Value *clause(Python *p, const Value *v, int at, Value *all) {
    Value *why = NULL;
    if (at >= v->n) {
        Value *made = python_eval(p, v->item[0]);
        if (all->kind != V_DICT) push(p, all, made);
        else set(p, all, made->item[0], made->item[1], &why);
        return why;
    }
    Value *over = python_eval(p, v->item[at + 1]);
    PythonRounds r = python_rounds(p, over);
    if (!r.decided) return undecided(p, v->item[at + 1]->loc, over);
    for (int i = 0; i < r.n && !why && python_step(p, v->loc); i++) {
        int n = p->n;
        unpack(p, v->item[at], r.round[i], bind_new);
        Value *condition = python_eval(p, v->item[at + 2]);
        int truth = python_truth(condition);
        if (truth < 0) why = undecided(p, v->item[at + 2]->loc, condition);
        else if (truth) why = clause(p, v, at + 3, all);
        p->n = n;
    }
    return why;
}
static Value *comprehended(Python *p, const Value *v) {
    Value *all = make(p, v->s[4] == '{' ? V_DICT : V_LIST, v->loc), *why = clause(p, v, 1, all);
    return why ? why : all;
}
static Value *either(Python *p, const Value *v) {
    Value *condition = python_eval(p, v->item[0]);
    int truth = python_truth(condition);
    if (truth < 0) return undecided(p, v->item[0]->loc, condition);
    return python_eval(p, v->item[truth ? 1 : 2]);
}
/* and, or: the right side only where the left one does not decide. */
static Value *both(Python *p, const Value *v) {
    Value *left = python_eval(p, v->item[0]);
    int truth = python_truth(left);
    if (truth >= 0) return truth == (v->s[0] == 'a') ? python_eval(p, v->item[1]) : left;
    Value *right = python_eval(p, v->item[1]); /* `x and False` is never true */
    int other = python_truth(right);
    bool decides = other >= 0 && other == (v->s[0] == 'o');
    return decides ? boolean(p, v->loc, other) : undecided(p, v->item[0]->loc, left);
}
static Value *operation(Python *p, Value *v) {
    if (strcmp(v->s, "f") == 0) return filled(p, v);
    if (strcmp(v->s, "{") == 0) return built(p, v);
    if (strncmp(v->s, "for ", 4) == 0) return comprehended(p, v);
    if (strcmp(v->s, "if") == 0) return either(p, v);
    if (strcmp(v->s, "and") == 0 || strcmp(v->s, "or") == 0) return both(p, v);
    if (strcmp(v->s, "lambda") == 0) return v; /* its owner looks into it */
    Value *a = python_eval(p, v->item[0]), *b = v->n > 1 ? python_eval(p, v->item[1]) : NULL;
    for (size_t i = 0; i < sizeof operators / sizeof *operators; i++)
        if (strcmp(operators[i].s, v->s) == 0) return operators[i].of(p, v, a, b);
    return no_operator(p, v, a, b);
}

/* ---- calls that only rearrange ---- */
static bool named(const Value *call, const char *name) {
    return call->item[0]->kind == V_NAME && strcmp(call->item[0]->s, name) == 0;
}
static bool is_list(const Value *v) { return v->kind == V_LIST || v->kind == V_TUPLE; }
static Value *pair(Python *p, Value *x, Value *y) {
    Value *v = make(p, V_TUPLE, x->loc);
    push(p, v, x);
    push(p, v, y);
    return v;
}
static Value *call_range(Python *p, Value *c) {
    int64_t part[3] = {0, 0, 1};
    for (int i = 1; i < c->n; i++)
        if (i > 3 || c->item[i]->kind != V_INT) return NULL;
        else part[c->n == 2 ? 1 : i - 1] = c->item[i]->i;
    if (c->n < 2 || !part[2]) return NULL;
    double rounds = ((double)part[1] - (double)part[0]) / (double)part[2];
    if (rounds > VALUE_PAIRS)
        return python_unknown(p, c->loc, "a range of so many numbers is not read here");
    Value *all = make(p, V_LIST, c->loc);
    for (int64_t i = part[0]; part[2] > 0 ? i < part[1] : i > part[1];) {
        if (!python_step(p, c->loc)) break;
        push(p, all, integer(p, c->loc, i));
        if (__builtin_add_overflow(i, part[2], &i)) break;
    }
    return all;
}
static Value *call_enumerate(Python *p, Value *c) {
    Value *all = make(p, V_LIST, c->loc);
    if (c->n != 2 || !is_list(c->item[1])) return NULL;
    for (int i = 0; i < c->item[1]->n && python_step(p, c->loc); i++)
        push(p, all, pair(p, integer(p, c->loc, i), c->item[1]->item[i]));
    return all;
}
static Value *call_zip(Python *p, Value *c) {
    Value *all = make(p, V_LIST, c->loc);
    if (c->n != 3 || !is_list(c->item[1]) || !is_list(c->item[2])) return NULL;
    for (int i = 0; i < c->item[1]->n && i < c->item[2]->n && python_step(p, c->loc); i++)
        push(p, all, pair(p, c->item[1]->item[i], c->item[2]->item[i]));
    return all;
}
static Value *call_len(Python *p, Value *c) {
    const Value *of = c->n == 2 ? c->item[1] : NULL;
    if (!of || (!is_list(of) && of->kind != V_DICT)) return NULL;
    return integer(p, c->loc, of->kind == V_DICT ? of->n_pairs : of->n);
}
static Value *call_list(Python *p, Value *c) {
    if (c->n == 1) return make(p, V_LIST, c->loc);
    PythonRounds r = python_rounds(p, c->item[1]);
    if (c->n != 2 || !r.decided || r.all) return NULL;
    Value *all = make(p, V_LIST, c->loc);
    for (int i = 0; i < r.n && python_step(p, c->loc); i++) push(p, all, r.round[i]);
    return all;
}
static Value *call_dict(Python *p, Value *c) {
    Value *all = make(p, V_DICT, c->loc), *why = NULL;
    if (c->n > 2) return NULL;
    if (c->n == 2 && c->item[1]->kind == V_DICT) {
        if (!merge(p, all, c->item[1])) return NULL;
    } else if (c->n == 2 && is_list(c->item[1])) {
        for (int i = 0; i < c->item[1]->n && python_step(p, c->loc); i++) {
            Value *one = c->item[1]->item[i];
            if (!is_list(one) || one->n != 2) return NULL;
            if (!set(p, all, one->item[0], one->item[1], &why)) return why;
        }
    } else if (c->n == 2) {
        return NULL;
    }
    return merge(p, all, c) ? all : NULL;
}
static Value *call_str(Python *p, Value *c) {
    const char *s = c->n == 2 ? shown(p, c->item[1]) : NULL;
    if (s && c->item[1]->kind == V_EACH) return c->item[1];
    return s ? text(p, c->loc, s) : NULL;
}
static Value *call_int(Python *p, Value *c) {
    return c->n == 2 && number(c->item[1]) && c->item[1]->kind != V_REAL
               ? integer(p, c->loc, whole(c->item[1]))
               : NULL;
}
static Value *call_bool(Python *p, Value *c) {
    int truth = c->n == 2 ? python_truth(c->item[1]) : -1;
    return truth < 0 ? NULL : boolean(p, c->loc, truth);
}
/* items, keys, values, copy and get of a dict that stands in the file. */
static Value *method(Python *p, Value *c) {
    const char *name = c->item[0]->s;
    Value *of = c->item[0]->item[0], *all = make(p, V_LIST, c->loc);
    if (of->kind != V_DICT) return NULL;
    if (strcmp(name, "copy") == 0 && c->n == 1) return unite(p, c, of, make(p, V_DICT, c->loc));
    if (strcmp(name, "get") == 0 && c->n >= 2 && c->item[1]->kind == V_STRING) {
        const ValuePair *there = value_pair(of, c->item[1]->s);
        return there ? there->value : c->n > 2 ? c->item[2] : make(p, V_NONE, c->loc);
    }
    bool keys = strcmp(name, "keys") == 0, values = strcmp(name, "values") == 0;
    if (c->n != 1 || (!keys && !values && strcmp(name, "items") != 0)) return NULL;
    for (int i = 0; i < of->n_pairs && python_step(p, c->loc); i++) {
        Value *k = text(p, of->pair[i].loc, of->pair[i].key), *v = of->pair[i].value;
        push(p, all, keys ? k : values ? v : pair(p, k, v));
    }
    return all;
}
static const struct {
    const char *name;
    Value *(*of)(Python *p, Value *call);
} functions[] = {{"range", call_range}, {"enumerate", call_enumerate},
                 {"zip", call_zip},     {"len", call_len},
                 {"list", call_list},   {"tuple", call_list},
                 {"dict", call_dict},   {"str", call_str},
                 {"int", call_int},     {"bool", call_bool}};
/* The arguments, with the pairs of `**dict` in its place; a V_CODE if one is not decided. */
static Value *arguments(Python *p, const Value *v, Value *c) {
    for (int i = 0; i < v->n_pairs; i++) {
        Value *x = python_eval(p, v->pair[i].value);
        if (strcmp(v->pair[i].key, "**") != 0)
            value_add(p->a, c, (ValuePair){v->pair[i].key, v->pair[i].loc, x, false});
        else if (x->kind != V_DICT) return undecided(p, v->pair[i].loc, x);
        else if (!merge(p, c, x)) return python_unknown(p, v->loc, "too many arguments");
    }
    return NULL;
}
static Value *call(Python *p, const Value *v) {
    Value *c = make(p, V_CALL, v->loc), *made = NULL;
    for (int i = 0; i < v->n; i++) push(p, c, python_eval(p, v->item[i]));
    Value *why = arguments(p, v, c);
    if (why || c->item[0]->kind == V_CODE) return why ? why : c->item[0];
    if (p->call) made = p->call(p->owner, c);
    if (!made && c->item[0]->kind == V_ATTR) made = method(p, c);
    for (size_t i = 0; !made && i < sizeof functions / sizeof *functions; i++)
        if (named(c, functions[i].name)) made = functions[i].of(p, c);
    return made ? made : c;
}

/* ---- evaluation ---- */
static Value *indexed(Python *p, Value *v) {
    Value *of = v->item[0], *i = v->item[1];
    if (of->kind == V_DICT && i->kind == V_STRING) {
        const ValuePair *there = value_pair(of, i->s);
        return there ? there->value
                     : python_unknown(p, v->loc,
                                      arena_printf(p->a, "the dict has no key '%s'", i->s));
    }
    if (is_list(of) && i->kind == V_INT) {
        int64_t at = i->i < 0 ? i->i + of->n : i->i;
        return at >= 0 && at < of->n ? of->item[at]
                                     : python_unknown(p, v->loc, "an index beyond the list's end");
    }
    return v;
}
Value *python_eval(Python *p, Value *v) {
    if (v->kind < V_LIST || v->kind == V_CODE || v->kind == V_EACH) return v;
    if (!python_step(p, v->loc)) return python_unknown(p, v->loc, "the file has too many steps");
    if (v->kind == V_NAME) {
        Value *to = python_lookup(p, v->s);
        if (!to && p->outside) to = p->outside(p->owner, v);
        return to ? to : v;
    }
    if (v->kind == V_OP) return operation(p, v);
    if (v->kind == V_CALL) return call(p, v);
    Value *c = make(p, v->kind, v->loc);
    c->s = v->s;
    for (int i = 0; i < v->n; i++) push(p, c, python_eval(p, v->item[i]));
    for (int i = 0; i < v->n_pairs; i++)
        value_add(
            p->a, c,
            (ValuePair){v->pair[i].key, v->pair[i].loc, python_eval(p, v->pair[i].value), false});
    if ((v->kind == V_ATTR || v->kind == V_INDEX) && c->item[0]->kind == V_CODE) return c->item[0];
    if (v->kind == V_INDEX && c->item[1]->kind == V_CODE) return c->item[1];
    Value *given = v->kind == V_ATTR && p->outside ? p->outside(p->owner, c) : NULL;
    return v->kind == V_INDEX ? indexed(p, c) : given ? given : c;
}
Value *python_value(Arena *a, Diags *d, Value *v) {
    Python p = {.a = a, .d = d};
    return python_eval(&p, v);
}

/* ---- loops ---- */
static const char *method_of(const Value *v) {
    return v->kind == V_CALL && v->item[0]->kind == V_ATTR ? v->item[0]->s : "";
}
static bool one_of(const char *s, const char *const *words) {
    for (int i = 0; words[i]; i++)
        if (strcmp(words[i], s) == 0) return true;
    return false;
}
/* How many layers there are, as files call it: range of it goes over all of them. */
static bool all_layers(const Value *v) {
    static const char *const words[] = {"n_layers", "num_layers", "num_hidden_layers", "n_layer",
                                        NULL};
    const char *name = value_last_name(v);
    if (name && one_of(name, words)) return true;
    return v->kind == V_CALL && named(v, "len") && v->n == 2 && v->item[1]->kind == V_ATTR;
}
/* The layers that a loop goes over, and what it gets of each. */
static Value *each_layer(Python *p, Value *over) {
    static const char *const pairs[] = {"items", "named_children", NULL}, *const plain[] = {
                                                                              "values", "children",
                                                                              NULL};
    Value *each = make(p, V_EACH, over->loc), *layer = make(p, V_INDEX, over->loc);
    const char *m = method_of(over);
    bool counted = over->kind == V_CALL && named(over, "enumerate") && over->n == 2,
         paired = over->kind == V_CALL && over->n == 1 && one_of(m, pairs);
    each->s = "*";
    if (over->kind == V_CALL && named(over, "range") && over->n == 2)
        return all_layers(over->item[1]) ? each : NULL;
    if (counted) {
        Value *inner = each_layer(p, over->item[1]);
        return inner ? pair(p, each, inner) : NULL;
    }
    if (over->kind == V_CALL && over->n == 1 && (paired || one_of(m, plain)))
        over = over->item[0]->item[0];
    if (over->kind != V_ATTR && over->kind != V_INDEX) return NULL;
    push(p, layer, over);
    push(p, layer, each);
    return paired ? pair(p, each, layer) : layer;
}
PythonRounds python_rounds(Python *p, Value *over) {
    PythonRounds r = {.n = 1};
    if (is_list(over)) return (PythonRounds){true, false, over->n, over->item};
    if (over->kind == V_DICT) {
        r = (PythonRounds){true, false, over->n_pairs, NULL};
        if (r.n) r.round = ARENA_ARRAY(p->a, Value *, r.n);
        for (int i = 0; i < r.n; i++) r.round[i] = text(p, over->pair[i].loc, over->pair[i].key);
        return r;
    }
    Value *layer = over->kind >= V_NAME ? each_layer(p, over) : NULL;
    if (!layer) return r;
    r.decided = r.all = true;
    r.round = ARENA_ARRAY(p->a, Value *, 1);
    r.round[0] = layer;
    return r;
}
