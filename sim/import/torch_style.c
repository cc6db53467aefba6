/* PyTorch's parallel styles, argument by argument, as lines of a plan (semantics.md 2.2). The names
 * of the arguments and what they may hold are those of torch.distributed.tensor.parallel. */
#include "import/python.h"
#include "base/text.h"
#include "import/hf_version.h"
#include "import/torch.h"
#include "import/torch_args.h"
#include "model/model.h"
#include <string.h>

/* What sends rows by other means than collectives. */
static const char later[] = "DeepEPExpertParallel";

const char torch_hf_help[] =
    "a table of Hugging Face is read with its model: `import hf --config config.json --tp 8 "
    "--tp-plan FILE`, the table alone as JSON";
bool torch_is_hf_table(const Value *v) {
    bool all = v->kind == V_DICT && v->n_pairs;
    for (int i = 0; all && i < v->n_pairs; i++)
        all = v->pair[i].value->kind == V_STRING && hf_style(v->pair[i].value->s);
    return all;
}
static void unknown_style(Torch *t, const char *name, Loc loc) {
    int n;
    const TorchStyle *row = torch_styles(&n);
    const char **names = ARENA_ARRAY(t->x->a, const char *, n + 1);
    for (int i = 0; i < n; i++) names[i] = row[i].name;
    const char *near = diag_nearest(name, names);
    if (strcmp(later, name) == 0)
        diag_error(t->x->d, "E0214", loc, "ExpertParallel() has the same layouts",
                   "style %s sends rows by kernels of its own: not supported by this version",
                   name);
    else
        diag_error(t->x->d, "E0203", loc,
                   hf_style(name) ? torch_hf_help
                   : near
                       ? arena_printf(t->x->a, "did you mean %s?", near)
                       : "a style of your own: write the plan, with its placements under `styles:`",
                   "unknown style %s", name);
}

/* ---- placements ---- */
typedef struct {
    const char *name; /* "Shard" */
    Value *first;     /* its argument, or NULL */
    Loc loc;
} Placement;
static void bad_placement(Torch *t, const Value *v, const char *what) {
    static const char *const names[] = {"Shard", "Replicate", "Partial", NULL};
    static const char all[] = "Shard(dim), Replicate(), Partial() or None";
    const char *near = diag_nearest(what, names);
    diag_error(t->x->d, "E0206", v->loc,
               near ? arena_printf(t->x->a, "did you mean %s? There are %s", near, all) : all,
               "%s is no placement", what);
}
static bool placement_of(Torch *t, Value *v, Placement *p) {
    static const char *const argument[] = {"dim", "reduce_op", NULL};
    Value *call = v;
    if (v->kind == V_STRING && !(call = python_expression(t->x->a, t->x->d, v->loc, v->s)))
        return false;
    Value *callee = call->kind == V_CALL ? call->item[0] : call;
    const char *name = value_last_name(callee);
    if (!name) {
        bad_placement(t, v, value_kind_text(v));
        return false;
    }
    *p = (Placement){name, call->kind == V_CALL && call->n > 1 ? call->item[1] : NULL, v->loc};
    for (int i = 0; call->kind == V_CALL && argument[i]; i++) {
        Value *by_name = value_get(call, argument[i]);
        if (by_name) p->first = by_name;
    }
    return !p->first || !value_is_code(t->x->d, p->first);
}
/* As a plan writes it ("shard(1)"); NULL and an error. */
static const char *placement_text(Torch *t, Value *v) {
    Placement p;
    if (v->kind == V_NONE) return "null";
    if (value_is_code(t->x->d, v)) return NULL;
    if (!placement_of(t, v, &p)) return NULL;
    if (strcmp(p.name, "Replicate") == 0) return "replicate";
    if (strcmp(p.name, "Partial") == 0 || strcmp(p.name, "_Partial") == 0) {
        const char *op = !p.first                    ? "sum"
                         : p.first->kind == V_STRING ? p.first->s
                         : value_last_name(p.first)  ? value_last_name(p.first)
                                                     : "";
        if (strcmp(op, "sum") == 0 || strcmp(op, "SUM") == 0) return "partial";
        diag_error(t->x->d, "E0214", p.loc, "Partial(), a sum",
                   "a pending '%s': not supported by this version", op);
        return NULL;
    }
    if (strcmp(p.name, "Shard") == 0 && p.first && p.first->kind == V_INT && p.first->i > -9 &&
        p.first->i < 9)
        return arena_printf(t->x->a, "shard(%lld)", (long long)p.first->i);
    if (strcmp(p.name, "_StridedShard") == 0)
        diag_error(t->x->d, "E0214", p.loc,
                   "Shard(dim); fully_shard over tensor parallelism makes strided shards of "
                   "parameters by itself",
                   "_StridedShard at a module's boundary: not supported by this version");
    else bad_placement(t, v, strcmp(p.name, "Shard") == 0 ? "Shard without a small dim" : p.name);
    return NULL;
}
/* A list of them, "[shard(1), null]"; a single one stays single. */
static const char *placements_text(Torch *t, Value *v, bool one) {
    if (v->kind != V_LIST && v->kind != V_TUPLE) return placement_text(t, v);
    if (one && v->n == 1) return placement_text(t, v->item[0]);
    if (one || !v->n) {
        diag_error(t->x->d, "E0301", v->loc, NULL, "one placement is wanted here, not %s of %d",
                   value_kind_text(v), v->n);
        return NULL;
    }
    Str s = str_new(t->x->a);
    for (int i = 0; i < v->n; i++) {
        const char *one_text = placement_text(t, v->item[i]);
        if (!one_text) return NULL;
        str_addf(&s, "%s%s", i ? ", " : "[", one_text);
    }
    str_add(&s, "]");
    return s.s;
}

/* ---- one style ---- */
typedef struct {
    Torch *t;
    const TorchStyle *row;
    Value *args; /* whose pairs are the arguments */
    Str out;     /* fields after the style's name */
    const char *pattern;
    bool local_inputs; /* of a prepare style: plain tensors inside */
    bool by_position; /* of a prepare style: its keyword is none in the call, nothing is prepared */
} StyleReader;

static void field(StyleReader *r, const char *name, const char *text) {
    if (text) str_addf(&r->out, ", %s: %s", name, text);
}
/* Names under which the one tensor that a module of a block reads is passed. */
static bool first_argument(const char *name) {
    static const char *const first[] = {"x",      "input",     "inputs", "hidden_states",
                                        "tokens", "input_ids", "h",      NULL};
    for (int i = 0; first[i]; i++)
        if (strcmp(first[i], name) == 0) return true;
    return false;
}
/* transformers calls its attention by keyword, everybody else's modules are called by position, and
 * PyTorch lays out a keyword only where the call has it. */
static bool called_by_keyword(const char *pattern) { return text_before(pattern, ".self_attn"); }
/* The modules of a block read one tensor: a keyword for it is the first positional argument. */
static void keyword_layouts(StyleReader *r, const TorchArg *arg, Value *v) {
    if (v->kind != V_DICT) {
        if (v->kind != V_NONE)
            diag_error(r->t->x->d, "E0301", v->loc, NULL, "%s wants a dict, not %s", arg->name,
                       value_kind_text(v));
        return;
    }
    for (int i = 0; i < v->n_pairs; i++) {
        const ValuePair *p = &v->pair[i];
        if (p->value->kind == V_NONE) continue;
        const char *place = first_argument(p->key) ? placement_text(r->t, p->value) : NULL;
        if (place && called_by_keyword(r->pattern)) field(r, arg->field, place);
        else if (place) {
            r->by_position = !value_get(r->args, "input_layouts");
            diag_warn(
                r->t->x->d, "W0001", p->loc, "give it as the first of input_layouts",
                "%s gets '%s' by position: PyTorch looks at %s for keywords of the call only, "
                "and lays out nothing",
                r->pattern, p->key, arg->name);
        } else if (!first_argument(p->key))
            diag_error(r->t->x->d, "E0214", p->loc,
                       "the tensors that modules of a block move are their first arguments",
                       "a layout for the keyword '%s': not supported by this version", p->key);
    }
}
static void sequence_dim(StyleReader *r, Value *v, const char *text) {
    if (!text) return;
    if (strcmp(text, "shard(1)") == 0) return; /* the default */
    if (strncmp(text, "shard(", 6) != 0) {
        bad_placement(r->t, v, text);
        return;
    }
    field(r, "input", text);
    field(r, "desired_input", text);
    field(r, "output", text);
}
static void read_bool(StyleReader *r, const TorchArg *arg, Value *v) {
    if (v->kind != V_BOOL) {
        diag_error(r->t->x->d, "E0301", v->loc, NULL, "%s wants True or False, not %s", arg->name,
                   value_kind_text(v));
        return;
    }
    if (arg->kind == A_FALSE && v->b)
        diag_error(r->t->x->d, "E0214", v->loc, "leave it out",
                   "%s=True: not supported by this version", arg->name);
    if (arg->kind == A_BOOL) {
        field(r, arg->field, v->b ? "true" : "false");
        r->local_inputs = v->b;
    }
}
static void read_arg(StyleReader *r, const TorchArg *arg, Value *v) {
    Draft *x = r->t->x;
    if (value_is_code(x->d, v)) return;
    switch (arg->kind) {
    case A_LAYOUT:
    case A_LAYOUTS:
        if (v->kind != V_NONE) /* None: the default */
            field(r, arg->field, placements_text(r->t, v, arg->kind == A_LAYOUT));
        break;
    case A_KWARGS: keyword_layouts(r, arg, v); break;
    case A_FALSE:
    case A_BOOL: read_bool(r, arg, v); break;
    case A_SEQUENCE:
        if (v->kind == V_INT && v->i > -4 && v->i < 4)
            sequence_dim(r, v, arena_printf(x->a, "shard(%lld)", (long long)v->i));
        else diag_error(x->d, "E0301", v->loc, NULL, "sequence_dim is a dim such as 1");
        break;
    case A_SHARDING: sequence_dim(r, v, placements_text(r->t, v, true)); break;
    case A_IGNORED: break;
    }
}
static int count_of(const Value *v) {
    return !v || v->kind == V_NONE ? -1 : v->kind == V_LIST || v->kind == V_TUPLE ? v->n : 1;
}
/* PyTorch asserts that label and wish speak of the same arguments. */
static void check_pairs(StyleReader *r) {
    static const char *const rows[][2] = {{"input_layouts", "desired_input_layouts"},
                                          {"output_layouts", "desired_output_layouts"},
                                          {"input_kwarg_layouts", "desired_input_kwarg_layouts"}};
    if (strncmp(r->row->ours, "prepare", 7) != 0) return;
    for (int i = 0; i < 3; i++) {
        Value *from = value_get(r->args, rows[i][0]), *to = value_get(r->args, rows[i][1]);
        bool dicts = i == 2;
        int n = dicts && from ? from->n_pairs : count_of(from),
            m = dicts && to ? to->n_pairs : count_of(to);
        if (n != m)
            diag_error(r->t->x->d, "E0307", (to ? to : from)->loc, "one entry for each argument",
                       "%s and %s must have as many entries as one another", rows[i][0],
                       rows[i][1]);
    }
}
/* The label that RowwiseParallel gives its input when the file gives none, Shard(-1), is for a
 * linear layer; our `rowwise` of an embedding reads whole ids, PyTorch's does not. */
static void embedding_ids(StyleReader *r) {
    int n;
    const NamesRow *row = names_table(&n);
    Value *given = value_get(r->args, "input_layouts");
    if (strcmp(r->row->name, "RowwiseParallel") != 0 || (given && given->kind != V_NONE)) return;
    for (int i = 0; i < n; i++)
        for (int s = 0; strcmp(row[i].what, "embedding") == 0 && s < NAMES_COUNT; s++) {
            const char *path = row[i].name[s], *bare = strncmp(path, "model.", 6) ? path : path + 6;
            if (!plan_match(r->pattern, path) && !plan_match(r->pattern, bare)) continue;
            field(r, "input", "shard(-1)");
            return;
        }
}
static void read_args(StyleReader *r) {
    const char *names[TORCH_ARGS + 1] = {0};
    for (int i = 0; i < TORCH_ARGS && r->row->arg[i].name; i++) {
        const TorchArg *arg = &r->row->arg[i];
        Value *v = value_get(r->args, arg->name);
        names[i] = arg->name;
        if (v) read_arg(r, arg, v);
    }
    embedding_ids(r);
    value_get(r->args, "style");
    check_pairs(r);
    value_unknown(r->t->x->d, r->args, arena_printf(r->t->x->a, "argument of %s", r->row->name),
                  names);
}

/* Is the module inside one whose inputs are DTensors already, so that it moves nothing itself? */
static bool prepared(const Torch *t, const char *pattern) {
    for (int i = 0; i < t->n_inside; i++) {
        const char *p = pattern, *inside = t->inside[i];
        int dots = 0;
        for (const char *c = inside; *c; c++) dots += *c == '.';
        for (; (p = strchr(p, '.')) && dots; p++) dots--;
        if (p && plan_match(inside, arena_strndup(t->x->a, pattern, (size_t)(p - pattern))))
            return true;
    }
    return false;
}
/* Which ranks have which experts is the mesh that the style is given. */
static void place_experts(StyleReader *r, const TorchMesh *on) {
    Arena *a = r->t->x->a;
    TorchExperts x = r->row->experts;
    if (on && ((x == X_WHOLE && on->n == 1) || (x == X_BOTH && on->n == 2))) {
        const char *axes = draft_group_axes(r->t->x, on->axis[0]);
        r->t->experts = axes ? axes : on->axis[0];
    }
    if (on && on->n == 2 && x != X_BOTH) {
        diag_error(r->t->x->d, "E0204", on->loc, "mesh[\"tp\"]", "%s takes a mesh of one axis",
                   r->row->name);
    } else if (on && on->n == 2) {
        field(r, "weight",
              arena_printf(a, "{%s: shard(e), %s: shard(w)}", on->axis[0], on->axis[1]));
    } else if (on && on->n == 1 && (on->own || x == X_WHOLE)) {
        field(r, "axis", on->axis[0]);
    }
    /* torchtitan adds the rows up where their tokens are, with a reorderer on a rank of tp each */
    if (x == X_WHOLE) field(r, "output", "home");
}
/* Does a prepare style leave its module's inputs cut? Then the modules inside move them. */
static bool leaves_cut(const StyleReader *r) {
    const Value *to = value_get(r->args, "desired_input_layouts");
    if (!to) to = value_get(r->args, "desired_input_kwarg_layouts");
    bool list = to && (to->kind == V_LIST || to->kind == V_TUPLE), dict = to && to->kind == V_DICT;
    for (int i = 0, n = !to ? 0 : dict ? to->n_pairs : list ? to->n : 1; i < n; i++) {
        const Value *one = dict ? to->pair[i].value : list ? to->item[i] : to;
        const char *name = one->kind == V_CALL ? value_last_name(one->item[0]) : NULL;
        if (name && strcmp(name, "Replicate") != 0) return true;
    }
    return false;
}
static void add_line(StyleReader *r, Loc loc, Loc style_loc) {
    Torch *t = r->t;
    const char *ours = r->row->ours;
    if (r->by_position && strcmp(ours, "prepare_module_input") == 0) r->out = str_new(t->x->a);
    if (r->row->hands_in && !r->by_position && !r->local_inputs && !leaves_cut(r))
        *ARENA_PUSH(t->x->a, t->inside, t->n_inside, t->cap_inside) = r->pattern;
    const char *style = r->out.n ? arena_printf(t->x->a, "{style: %s%s}", ours, r->out.s) : ours;
    draft_line(t->x, r->pattern, loc, style, style_loc, r->row->name);
}
void torch_style(Torch *t, const char *pattern, Loc loc, Value *v, const TorchMesh *on) {
    Value *style = v;
    if (value_is_code(t->x->d, v)) return;
    if (v->kind == V_STRING && !(style = python_expression(t->x->a, t->x->d, v->loc, v->s))) return;
    Value *named = style->kind == V_DICT ? value_get(style, "style") : NULL,
          *callee = style->kind == V_CALL ? style->item[0] : style;
    const char *name = named && named->kind == V_STRING ? named->s : value_last_name(callee);
    Loc at = named ? named->loc : v->loc;
    if (!name) {
        diag_error(t->x->d, "E0301", at, "for example ColwiseParallel()",
                   "a style is wanted here, not %s", value_kind_text(v));
        return;
    }
    StyleReader r = {.t = t,
                     .row = torch_style_row(name),
                     .args = style,
                     .out = str_new(t->x->a),
                     .pattern = pattern};
    if (!r.row) {
        unknown_style(t, name, at);
        return;
    }
    if (style->kind == V_CALL && style->n > 1)
        diag_error(t->x->d, "E0301", style->item[1]->loc,
                   arena_printf(t->x->a, "write %s=...", r.row->arg[0].name),
                   "%s takes its arguments by name only", name);
    read_args(&r);
    place_experts(&r, on);
    add_line(&r, loc, at);
}
bool torch_is_table(const Value *v) {
    if (v->kind != V_DICT || !v->n_pairs) return false;
    for (int i = 0; i < v->n_pairs; i++) {
        const Value *x = v->pair[i].value;
        const char *name = x->kind == V_CALL ? value_last_name(x->item[0]) : NULL;
        if (x->kind != V_CODE && (!name || (!torch_style_row(name) && !strstr(name, "Paral"))))
            return false;
    }
    return true;
}
void torch_table(Torch *t, const char *prefix, Value *dict, const TorchMesh *on) {
    t->n_tables++;
    for (int i = 0; i < dict->n_pairs; i++) {
        const ValuePair *p = &dict->pair[i];
        const char *dot = *prefix && *p->key ? "." : "",
                   *pattern = arena_printf(t->x->a, "%s%s%s", prefix, dot, p->key);
        if (!*pattern)
            diag_error(t->x->d, "E0214", p->loc, "name a module of it",
                       "a style of the whole model: not supported by this version");
        else torch_style(t, pattern, p->loc, p->value, on);
    }
}
/* Where a module moves its input itself, it does so alone: PyTorch shares nothing between modules
 * (semantics.md 2.2). Known once all lines are. */
void torch_boundaries(Torch *t) {
    for (int i = 0; i < t->x->n_lines && !t->x->mlp; i++) {
        DraftLine *l = &t->x->line[i];
        if (strcmp(l->comment, "ColwiseParallel") != 0 || prepared(t, l->pattern)) continue;
        size_t n = strlen(l->style);
        l->style = l->style[n - 1] == '}'
                       ? arena_printf(t->x->a, "%.*s, boundary: per_module}", (int)n - 1, l->style)
                       : arena_printf(t->x->a, "{style: %s, boundary: per_module}", l->style);
    }
}
