/* The fields of a style, placements of an argument by axis, and the lists of styles and plan lines.
 * Refuses to know how a placement is spelt (placement.c), what a style does (styles.c) and whether
 * a dim exists (the model decides). */
#include "plan/read.h"
#include <stdlib.h>
#include <string.h>

enum { MOST_NAMES = MESH_MAX_AXES + 32 /* axes and groups that a mesh can have */ };

/* ---- one argument ---- */

/* The placement that a word means; NULL: it is no word, or means none. */
static const char *place_of_word(PlanReader *r, const Yaml *y) {
    return y->kind == YAML_SCALAR && !yaml_is_null(y) ? plan_place_meant(r->a, y->s) : NULL;
}
/* The same of a list of one; NULL also of a longer one. */
static const char *place_in_list(PlanReader *r, const Yaml *y) {
    return y->kind == YAML_LIST && y->n == 1 ? place_of_word(r, y->item[0]) : NULL;
}
/* "write `weight: shard(0)`" of a list of one placement; NULL: it is none. */
static const char *place_alone(PlanReader *r, const char *key, const Yaml *y) {
    const char *meant = place_in_list(r, y);
    return meant ? arena_printf(r->a, "write `%s: %s`", key, meant) : NULL;
}
bool read_raw_spec(PlanReader *r, const char *key, Yaml *y, RawSpec *out) {
    RawSpec s = {.set = true, .loc = y->loc};
    if (y->kind == YAML_LIST) {
        const char *one = place_alone(r, key, y);
        read_wrong_type(r, key, y, "one placement",
                        one ? one
                            : "a list has one entry per argument; of several axes speaks {dp: "
                              "shard(0), tp: shard(1)}");
        return false;
    }
    bool ok = true;
    if (y->kind == YAML_MAP && y->n > MOST_NAMES) {
        diag_error(r->d, "E0703", y->pair[MOST_NAMES].loc, NULL, "'%s' names %d axes", key, y->n);
        return false;
    }
    if (y->kind == YAML_MAP) {
        s.mapping = true;
        s.on = ARENA_ARRAY(r->a, struct RawOn, y->n);
        Str seen = str_new(r->a);
        for (int i = 0; i < y->n; i++) {
            struct RawOn *on = &s.on[s.n++];
            on->axis = y->pair[i].key;
            on->loc = y->pair[i].loc;
            Yaml *v = y->pair[i].value;
            bool known = read_check_axis(r, on->axis, on->loc);
            if (known) read_check_twice(r, key, &seen, on->axis, on->loc);
            if (yaml_is_null(v)) on->place.loc = v->loc;
            else if (v->kind != YAML_SCALAR)
                read_wrong_type(r, on->axis, v, "one placement", place_alone(r, on->axis, v)),
                    known = false;
            else known = plan_parse_place(r->a, r->d, v->s, v->loc, &on->place) && known;
            ok = ok && known;
        }
    } else if (yaml_is_null(y)) {
        s.bare.loc = y->loc; /* RP_NONE: leave alone */
    } else {
        ok = plan_parse_place(r->a, r->d, y->s, y->loc, &s.bare);
    }
    if (ok) *out = s;
    return ok;
}

void read_spec(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    read_raw_spec(r, pair->key, pair->value, (RawSpec *)((char *)base + k->at));
}

/* Some kinds make no sense for a parameter. */
static bool spec_has(const RawSpec *s, RawKind kind) {
    if (!s->mapping) return s->bare.kind == kind;
    for (int i = 0; i < s->n; i++)
        if (s->on[i].place.kind == kind) return true;
    return false;
}

static bool param_spec(PlanReader *r, const char *key, Yaml *y, bool is_bias, RawSpec *out) {
    RawSpec s = {0};
    if (!read_raw_spec(r, key, y, &s)) return false;
    if (!is_bias && (spec_has(&s, RP_PARTIAL) || spec_has(&s, RP_LOCAL))) {
        diag_error(r->d, "E0206", y->loc,
                   "a parameter is shard(d), replicate, invariant, varying_use or contiguous(d)",
                   "'%s' cannot be %s", key, spec_has(&s, RP_PARTIAL) ? "partial" : "local");
        return false;
    }
    *out = s;
    return true;
}

/* ---- the fields of a style ---- */

/* A list is one entry per positional argument; anything else is a list of one. arg: non-NULL if at
 * most one is allowed.
 */
static void read_raw_list(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Yaml *y = pair->value, *one[1] = {y}, **item = y->kind == YAML_LIST ? y->item : one;
    RawList l = {.set = true, .n = y->kind == YAML_LIST ? y->n : 1, .loc = y->loc};
    if (k->arg && l.n != 1) {
        read_wrong_type(r, pair->key, y, "one placement", "a module has one result");
        return;
    }
    l.arg = ARENA_ARRAY(r->a, RawSpec, l.n);
    bool ok = true;
    for (int i = 0; i < l.n; i++) ok = read_raw_spec(r, pair->key, item[i], &l.arg[i]) && ok;
    if (ok) *(RawList *)((char *)base + k->at) = l;
}

static void set_bias(Style *s, const RawSpec *spec) {
    s->bias = *spec;
    s->bias_local = spec_has(spec, RP_LOCAL);
}

static void read_weight(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    (void)k;
    param_spec(r, pair->key, pair->value, false, &((Style *)base)->weight);
}
static void read_bias(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    RawSpec spec;
    (void)k;
    if (param_spec(r, pair->key, pair->value, true, &spec)) set_bias(base, &spec);
}

static bool is_mapping(PlanReader *r, const YamlPair *pair) {
    if (pair->value->kind == YAML_MAP) return true;
    if (!yaml_is_null(pair->value)) read_wrong_type(r, pair->key, pair->value, "a mapping", NULL);
    return false;
}

static void read_params(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Style *s = base;
    (void)k;
    if (!is_mapping(r, pair)) return;
    s->params = ARENA_ARRAY(r->a, RawParam, pair->value->n);
    for (int i = 0; i < pair->value->n; i++) {
        YamlPair *q = &pair->value->pair[i];
        bool is_bias = strcmp(q->key, "bias") == 0;
        RawParam param = {.name = q->key, .loc = q->loc};
        if (!param_spec(r, q->key, q->value, is_bias, &param.spec)) continue;
        /* the two that have fields of their own */
        if (is_bias) set_bias(s, &param.spec);
        else if (strcmp(q->key, "weight") == 0) s->weight = param.spec;
        else s->params[s->n_params++] = param;
    }
}

static const Key kwarg_keys[] = {
    {"input", read_spec, NULL, offsetof(RawKwarg, input), NO_LOC, "how this argument lies"},
    {"desired_input", read_spec, NULL, offsetof(RawKwarg, desired), NO_LOC,
     "how the module needs it"},
    {NULL, NULL, NULL, 0, NO_LOC, NULL},
};

static void read_kwargs(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Style *s = base;
    (void)k;
    if (!is_mapping(r, pair)) return;
    s->kwargs = ARENA_ARRAY(r->a, RawKwarg, pair->value->n);
    for (int i = 0; i < pair->value->n; i++) {
        YamlPair *q = &pair->value->pair[i];
        RawKwarg *kw = &s->kwargs[s->n_kwargs++];
        kw->name = q->key;
        kw->loc = q->loc;
        read_table(r, kwarg_keys, q->key, kw, q->value);
    }
}

static void read_style_name(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Style *s = base;
    (void)k;
    const char *name = read_scalar(r, "style", pair->value, "the name of a style");
    if (!name) return;
    s->name = name;
    s->loc = pair->value->loc;
}

static const Word boundaries[] = {{"shared", 0}, {"per_module", 1}, {NULL, 0}};

#define S(f) offsetof(Style, f)
const Key plan_style_keys[] = {
    {"style", read_style_name, NULL, 0, NO_LOC, "name of the style that it starts from"},
    {"axis", read_axis, NULL, S(axis), NO_LOC, "axis or group that bare placements speak of"},
    {"input", read_raw_list, NULL, S(input), NO_LOC, "label: how each positional argument lies"},
    {"desired_input", read_raw_list, NULL, S(desired_input), NO_LOC,
     "move: how the module needs it"},
    {"output", read_raw_list, "one", S(output), NO_LOC, "how the result shall lie"},
    {"desired_output", read_raw_list, "one", S(desired_output), NO_LOC,
     "move from the label `output`"},
    {"weight", read_weight, NULL, 0, NO_LOC, "placement of the weight"},
    {"bias", read_bias, NULL, 0, NO_LOC, "placement of the bias; also partial and local"},
    {"params", read_params, NULL, 0, NO_LOC, "placements of parameters by name"},
    {"kwargs", read_kwargs, NULL, 0, NO_LOC, "keyword arguments: {x: {input:, desired_input:}}"},
    {"use_local_input", read_flag, NULL, S(use_local_input), NO_LOC,
     "of prepare_module_input_output: true: inside the module its inputs are plain tensors"},
    {"use_local_output", read_flag, NULL, S(use_local_output), NO_LOC,
     "as PyTorch writes it: false keeps a result a DTensor; of prepare_module_input, true makes "
     "its inputs plain"},
    {"boundary", read_word_int, boundaries, S(per_module), NO_LOC, "shared or per_module"},
    {NULL, NULL, NULL, 0, NO_LOC, NULL},
};

/* "write `KEY: {style: rowwise, axis: tp}`" of {tp: shard(1)}, placements by axis in place of a
 * style; NULL: the mapping is none. */
static const char *placed_by_axis(PlanReader *r, const char *key, const Yaml *y) {
    const YamlPair *one = y->n == 1 ? y->pair : NULL;
    for (const Key *k = plan_style_keys; one && k->name; k++)
        if (!strcmp(k->name, one->key)) return NULL;
    const char *word = one ? place_of_word(r, one->value) : NULL,
               *meant = word || !one ? word : place_in_list(r, one->value),
               *style = meant ? style_instead(r->p, meant) : NULL;
    return style ? arena_printf(r->a, "write `%s: {style: %s, axis: %s}`%s", key, style, one->key,
                                style_of_embedding(r->a, style))
                 : NULL;
}
/* The same of a list, [shard(1)] or, as PyTorch has it, a placement for each axis of the mesh. */
static const char *placed_in_list(PlanReader *r, const char *key, const Yaml *y) {
    const char *name = NULL;
    const bool by_axis = r->axes_known && y->n > 1 && y->n == r->p->n_axes;
    int cut = 0, at = -1;
    Str all = str_new(r->a);
    for (int i = 0; i < y->n; i++) {
        const bool word = y->item[i]->kind == YAML_SCALAR && !yaml_is_null(y->item[i]);
        const char *place = place_of_word(r, y->item[i]),
                   *own = word ? style_instead(r->p, y->item[i]->s) : NULL;
        if (place && !strncmp(place, "shard(", 6)) {
            if (by_axis) str_addf(&all, "%s%s: %s", cut ? ", " : "", r->p->axes[i].name, place);
            cut++;
        }
        if (own && (!name || !strcmp(name, "replicate"))) name = own, at = i;
    }
    if (by_axis && cut > 1) return arena_printf(r->a, "write `%s: {weight: {%s}}`", key, all.s);
    const char *axis = by_axis && cut ? r->p->axes[at].name : NULL;
    if (!name) name = "colwise";
    return arena_printf(r->a, "write `%s: %s%s%s%s%s`%s; `list styles` has all of them", key,
                        axis ? "{style: " : "", name, axis ? ", axis: " : "", axis ? axis : "",
                        axis ? "}" : "", cut ? style_of_embedding(r->a, name) : "");
}
void read_style(PlanReader *r, const char *key, Yaml *y, Style *out) {
    memset(out, 0, sizeof *out);
    out->use_local_output = out->use_local_input = out->per_module = -1;
    out->loc = y->loc;
    if (y->kind == YAML_MAP) {
        const int before = diags_errors(r->d);
        const char *named = placed_by_axis(r, key, y);
        if (named) read_wrong_type(r, key, y, "a style or a mapping with `style:`", named);
        else read_table(r, plan_style_keys, key, out, y);
        out->misread = diags_errors(r->d) > before;
        return;
    }
    YamlPair pair = {.key = "style", .loc = y->loc, .value = y};
    if (y->kind == YAML_SCALAR && !yaml_is_null(y)) read_style_name(r, NULL, out, &pair);
    else
        read_wrong_type(
            r, key, y, "a style or a mapping with `style:`",
            y->kind == YAML_LIST
                ? placed_in_list(r, key, y)
                : arena_printf(r->a, "write `%s: colwise`; `list styles` has all of them", key));
}

/* ---- `styles`, `plan`, `recipe` ---- */

void read_styles(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = r->p;
    (void)k, (void)base;
    if (!is_mapping(r, pair)) return;
    if (pair->value->n > PLAN_MOST_STYLES) {
        diag_error(r->d, "E0703", pair->value->pair[PLAN_MOST_STYLES].loc, NULL,
                   "%d styles; the limit is %d", pair->value->n, PLAN_MOST_STYLES);
        return;
    }
    p->styles = ARENA_ARRAY(r->a, Style, pair->value->n);
    for (int i = 0; i < pair->value->n; i++) {
        YamlPair *q = &pair->value->pair[i];
        Style *s = &p->styles[p->n_styles++];
        read_style(r, q->key, q->value, s);
        s->base = s->name;
        s->base_loc = s->loc;
        s->name = q->key;
        s->loc = q->loc;
        if (style_builtin(s->name))
            diag_note(r->d, "N0009", q->loc, NULL, "this style replaces the built-in '%s'",
                      s->name);
    }
}

static void add_lines(PlanReader *r, Yaml *map, bool from_recipe) {
    Plan *p = r->p;
    PlanLine *all = ARENA_ARRAY(r->a, PlanLine, p->n_lines + map->n);
    if (p->n_lines) memcpy(all, p->lines, (size_t)p->n_lines * sizeof *all);
    p->lines = all;
    for (int i = 0; i < map->n; i++) {
        PlanLine *line = &p->lines[p->n_lines++];
        line->pattern = map->pair[i].key;
        line->loc = map->pair[i].loc;
        line->from_recipe = from_recipe;
        read_style(r, line->pattern, map->pair[i].value, &line->style);
        line->style_loc = line->style.loc;
    }
}

static const char line_example[] =
    "a line below it for each module: `layers.*.attention.wq: colwise`";
void read_lines(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int before = diags_errors(r->d);
    (void)k, (void)base;
    const Yaml *y = pair->value;
    const bool word = y->kind == YAML_SCALAR && !yaml_is_null(y);
    const char *recipe = word ? recipe_instead(r->a, y->s) : NULL;
    if (word) read_wrong_type(r, pair->key, y, "a mapping", recipe ? recipe : line_example);
    else if (is_mapping(r, pair)) add_lines(r, pair->value, false);
    r->p->line_errors += diags_errors(r->d) - before;
}

void read_recipe(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    int n;
    (void)base;
    const RecipeRow *row = plan_recipes(&n), *found = NULL;
    const char *s = read_scalar(r, k->name, pair->value, "the name of a recipe");
    if (!s) return;
    const char **names = ARENA_ARRAY(r->a, const char *, n + 1);
    for (int i = 0; i < n; i++) {
        names[i] = row[i].name;
        if (strcmp(row[i].name, s) == 0) found = &row[i];
    }
    Loc l = pair->value->loc;
    Plan *p = r->p;
    if (!found) {
        Str all = str_new(r->a);
        str_add(&all, "one of:");
        for (int i = 0; i < n; i++) str_addf(&all, " %s", names[i]);
        const char *near = diag_nearest(s, names);
        diag_error(r->d, "E0206", l, near ? near : all.s, "unknown recipe '%s'", s);
    } else if (!found->lines) {
        diag_error(r->d, "E0214", l, NULL, "recipe '%s' is not supported by this version: %s", s,
                   found->what);
    } else if (p->names_loc.file && p->names != found->names) {
        diag_error(r->d, "E0215", l, "leave `names` out",
                   "recipe '%s' is written in the names of %s, the plan in those of %s", s,
                   plan_names_text(found->names), plan_names_text(p->names));
    } else {
        p->recipe = s;
        p->names = found->names;
        const char *file = arena_printf(r->a, "recipe %s", s);
        Yaml *y = yaml_parse(r->a, r->d, file, found->lines, strlen(found->lines));
        /* a recipe's axes are the default ones */
        if (y) add_lines(r, y, true);
    }
}
