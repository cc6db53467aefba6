/* `gradients`, `dims` of data_parallel, `faults` and `expect`: planted mistakes and what a run is
 * held against. Refuses to look for the steps and values that are named: the lowered program knows
 * them. */
#include "plan/read.h"
#include "trace/collectives.h"
#include <stdlib.h>
#include <string.h>

static bool is_mapping(PlanReader *r, const char *key, const Yaml *y) {
    if (y->kind == YAML_MAP) return true;
    if (!yaml_is_null(y)) read_wrong_type(r, key, y, "a mapping", NULL);
    return false;
}

/* ---- what patterns of parameters say ---- */

static const Word reductions[] = {{"sum", 0}, {"mean", 1}, {"none", 2}, {NULL, 0}};
static const Word dims[] = {{"0", 0}, {"1", 1}, {"2", 2}, {"whole", 3}, {NULL, 0}};

/* A mapping of patterns to one of `words` each. */
static void read_patterns(PlanReader *r, const Key *k, const YamlPair *pair, const Word *words,
                          PlanPair **to, int *n) {
    if (!is_mapping(r, k->name, pair->value)) return;
    *to = ARENA_ARRAY(r->a, PlanPair, pair->value->n);
    for (int i = 0; i < pair->value->n; i++) {
        const YamlPair *q = &pair->value->pair[i];
        int v = read_word(r, q->key, q->value, words);
        if (v >= 0) (*to)[(*n)++] = (PlanPair){q->key, words[v].word, q->loc, q->value->loc};
    }
}
void read_gradients(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    read_patterns(r, k, pair, reductions, &p->gradients, &p->n_gradients);
}
void read_dims(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    if (yaml_is_null(pair->value)) /* a section may be empty, a key of one says something */
        read_wrong_type(r, k->name, pair->value, "a mapping such as {\"*.w2.weight\": 1}", NULL);
    read_patterns(r, k, pair, dims, &p->dims, &p->n_dims);
}

/* ---- faults ---- */

static const Word doings[] = {{"drop", 0},       {"double", 1},     {"floor", 2},  {"local", 3},
                              {"contiguous", 4}, {"nest", 5},       {"reseed", 6}, {"skip", 7},
                              {"counts", 8},     {"unweighted", 9}, {NULL, 0}};
static const Word kinds[] = {{"avg", 0}, {"average", 3}, {"max", 1}, {"slice", 2}, {NULL, 0}};
static const Range any_number = {-1e300, 1e300, false, false};
#define F(f) offsetof(PlanFault, f)
const Key plan_fault_keys[] = {
    {"at", read_text, NULL, F(step), F(loc),
     "the step, or the value it makes; the end of a name is enough"},
    {"do", read_word_text, doings, F(doing), NO_LOC,
     "drop, double, floor, local, contiguous, nest, reseed, skip, counts or unweighted: see `list "
     "faults`"},
    {"rank", read_signed, NULL, F(rank), F(rank_loc), "the only rank of a move that does so"},
    {"kind", read_word_text, kinds, F(kind), NO_LOC,
     "avg, max or slice: another kind of reduction"},
    {"axis", read_axis, NULL, F(axis), NO_LOC, "another axis"},
    {"dim", read_signed, NULL, F(dim), NO_LOC, "another dim"},
    {"offset", read_signed, NULL, F(offset), NO_LOC, "the block of rank r + offset"},
    {"scale", read_real, &any_number, F(scale), NO_LOC, "a factor"},
    {NULL, NULL, NULL, 0, NO_LOC, NULL},
};

static void read_fault(PlanReader *r, Yaml *y) {
    static const char *const edits[] = {"do", "kind", "axis", "dim", "offset", "scale"};
    Plan *p = r->p;
    PlanFault *f = &p->faults[p->n_faults]; /* one with mistakes is overwritten by the next */
    memset(f, 0, sizeof *f);
    f->loc = y->loc;
    f->scale = 1;
    f->rank = -1;
    if (y->kind != YAML_MAP) {
        read_wrong_type(r, "faults", y, "a mapping such as {at: STEP, do: drop}", NULL);
        return;
    }
    int errors = diags_errors(r->d);
    read_table(r, plan_fault_keys, "faults", f, y);
    int n = 0;
    const char *doing = NULL;
    for (int i = 0; i < 6; i++)
        if (yaml_get(y, edits[i])) doing = edits[i], n++;
    if (diags_errors(r->d) != errors) return;
    if (!f->step) diag_error(r->d, "E0208", y->loc, "{at: STEP, do: drop}", "a fault needs `at`");
    else if (n == 0)
        diag_error(r->d, "E0208", y->loc, "{at: STEP, do: drop}",
                   "a fault needs one of do, kind, axis, dim, offset, scale");
    else if (n > 1)
        diag_error(r->d, "E0215", y->loc, "write one fault for each",
                   "a fault makes one edit, here are %d", n);
    else {
        if (!f->doing) f->doing = doing;
        p->n_faults++;
    }
}

void read_faults(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Yaml *y = pair->value, *one[1] = {y}, **item = y->kind == YAML_LIST ? y->item : one;
    int n = y->kind == YAML_LIST ? y->n : 1;
    (void)k;
    if (yaml_is_null(y)) return;
    ((Plan *)base)->faults = ARENA_ARRAY(r->a, PlanFault, n);
    for (int i = 0; i < n; i++) read_fault(r, item[i]);
}

/* ---- expect ---- */

static void read_diagnostics(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Expect *e = base;
    Yaml **item;
    int n;
    if (!read_items(r, k->name, pair->value, &item, &n)) return;
    e->has_diagnostics = true;
    e->diagnostics = ARENA_ARRAY(r->a, const char *, n);
    const char **codes = ARENA_ARRAY(r->a, const char *, n_diag_codes + 1);
    for (int i = 0; i < n_diag_codes; i++) codes[i] = diag_codes[i].code;
    for (int i = 0; i < n; i++) {
        const char *s = read_scalar(r, k->name, item[i], "a code such as E0402");
        if (s && diag_code(s)) e->diagnostics[e->n_diagnostics++] = diag_code(s)->code;
        else if (s)
            diag_error(r->d, "E0206", item[i]->loc, diag_nearest(s, codes),
                       "unknown diagnostic code '%s'", s);
    }
}

/* A shape is text, "[B/dp, S, D]"; without quotes YAML makes it a list, which is as good. */
static const char *shape_text(PlanReader *r, const char *key, const Yaml *y) {
    if (y->kind != YAML_LIST) return read_scalar(r, key, y, "a shape such as \"[B/dp, S, D]\"");
    Str s = str_new(r->a);
    str_add(&s, "[");
    for (int i = 0; i < y->n; i++) {
        const char *t = read_scalar(r, key, y->item[i], "a shape such as \"[B/dp, S, D]\"");
        if (!t) return NULL;
        str_addf(&s, "%s%s", i ? ", " : "", t);
    }
    str_add(&s, "]");
    return s.s;
}

static void read_shapes(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Expect *e = base;
    if (!is_mapping(r, k->name, pair->value)) return;
    e->shapes = ARENA_ARRAY(r->a, PlanPair, pair->value->n);
    for (int i = 0; i < pair->value->n; i++) {
        const YamlPair *q = &pair->value->pair[i];
        PlanPair s = {q->key, shape_text(r, q->key, q->value), q->loc, q->value->loc};
        if (s.text) e->shapes[e->n_shapes++] = s;
    }
}

/* The nearest of the collectives, or all of them. */
static const char *near_collective(PlanReader *r, const char *op) {
    const char **ops = NULL;
    int n = 0, cap = 0;
    Str all = str_new(r->a);
    str_add(&all, "known here:");
    for (const CollWord *w = coll_table(); w->op; w++) {
        *ARENA_PUSH(r->a, ops, n, cap) = w->op;
        str_addf(&all, " %s", w->op);
    }
    *ARENA_PUSH(r->a, ops, n, cap) = NULL;
    const char *near = diag_nearest(op, ops);
    return near ? near : all.s;
}
/* "all_gather(tp)" -> op and axis; false and a diagnostic if it is none. */
static bool collective_key(PlanReader *r, const YamlPair *q, ExpectCollective *c) {
    const char *open = strchr(q->key, '('), *close = open ? strchr(open, ')') : NULL;
    const char *op = open ? arena_strndup(r->a, q->key, (size_t)(open - q->key)) : q->key;
    const CollWord *known = coll_word(op);
    if (!known) {
        diag_error(r->d, plan_from_set(q->loc) ? "E0212" : "E0201", q->loc, near_collective(r, op),
                   "unknown collective '%s'", op);
        return false;
    }
    c->op = known->op;
    if (!open) return true;
    if (!close || close[1] || close == open + 1) {
        diag_error(r->d, "E0201", q->loc, "all_gather(tp): 2, or all_gather: 2 for any axis",
                   "'%s' is not OP(AXIS)", q->key);
        return false;
    }
    Yaml axis = {.kind = YAML_SCALAR,
                 .loc = q->loc,
                 .s = arena_strndup(r->a, open + 1, (size_t)(close - open - 1))};
    c->axis = read_axes_text(r, q->key, &axis);
    return c->axis != NULL;
}

/* One phase: {all_gather(tp): 2, reduce_scatter: 1}. The key's name is the phase. */
static void read_phase(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Expect *e = base;
    if (!is_mapping(r, k->name, pair->value)) return;
    ExpectCollective *all = ARENA_ARRAY(r->a, ExpectCollective, e->n_collectives + pair->value->n);
    if (e->n_collectives) memcpy(all, e->collectives, (size_t)e->n_collectives * sizeof *all);
    e->collectives = all;
    for (int i = 0; i < pair->value->n; i++) {
        const YamlPair *q = &pair->value->pair[i];
        ExpectCollective c = {.phase = (Phase)term_of(phase_words, N_PHASES, k->name),
                              .loc = q->loc};
        bool ok = collective_key(r, q, &c);
        if (read_whole(r, q->key, q->value, 0, &c.count) && ok)
            e->collectives[e->n_collectives++] = c;
    }
}

static const Key phase_keys[] = {
    {"forward", read_phase, NULL, 0, NO_LOC, NULL},
    {"loss", read_phase, NULL, 0, NO_LOC, NULL},
    {"backward", read_phase, NULL, 0, NO_LOC, NULL},
    {"gradients", read_phase, NULL, 0, NO_LOC, NULL},
    {"parameters", read_phase, NULL, 0, NO_LOC, NULL},
    {"optimizer", read_phase, NULL, 0, NO_LOC, NULL},
    {NULL, NULL, NULL, 0, NO_LOC, NULL},
};

/* "2 GiB", "1.5 GB", "4096". */
static void read_bytes(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    static const struct {
        const char *unit;
        double bytes;
    } units[] = {{"", 1},         {"B", 1},        {"KiB", 0x1p10}, {"MiB", 0x1p20},
                 {"GiB", 0x1p30}, {"TiB", 0x1p40}, {"kB", 1e3},     {"KB", 1e3},
                 {"MB", 1e6},     {"GB", 1e9},     {"TB", 1e12}};
    const char *s = read_scalar(r, k->name, pair->value, "a size in bytes such as 2 GiB");
    if (!s) return;
    size_t n = strspn(s, "0123456789.");
    char *end;
    double v = n && s[0] != '.' ? strtod(s, &end) : -1;
    const char *unit = s + n + strspn(s + n, " ");
    for (size_t i = 0; v >= 0 && end == s + n && i < sizeof units / sizeof units[0]; i++) {
        double bytes = v * units[i].bytes;
        if (strcmp(unit, units[i].unit) != 0 || bytes >= 0x1p63) continue;
        *(int64_t *)((char *)base + k->at) = (int64_t)bytes;
        return;
    }
    diag_error(r->d, "E0302", pair->value->loc, "write 2 GiB, 512 MiB, 1.5 GB or a number of bytes",
               "'%s': '%s' is not a size in bytes", k->name, s);
}

static const Sub phases = {phase_keys, NULL};
#define E(f) offsetof(Expect, f)
const Key plan_expect_keys[] = {
    {"equivalent", read_flag, NULL, E(equivalent), E(equivalent_loc), "what the verdict must be"},
    {"first_wrong", read_text, NULL, E(first_wrong), E(first_wrong_loc),
     "name of the first wrong value"},
    {"diagnostics", read_diagnostics, NULL, 0, E(diagnostics_loc),
     "codes that must be reported, and no other error"},
    {"local_shapes", read_shapes, NULL, 0, NO_LOC,
     "name, or the end of one: \"[B/dp, S, D]\"; a number stands for itself, on every rank"},
    {"collectives", read_sub, &phases, 0, NO_LOC,
     "counts by phase: {forward: {all_gather(tp): 2}}"},
    {"memory_per_rank", read_bytes, NULL, E(memory_per_rank), E(memory_loc),
     "the peak stays at or under this"},
    {NULL, NULL, NULL, 0, NO_LOC, NULL},
};
