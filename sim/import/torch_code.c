/* A Python file around parallelize_module and fully_shard, walked statement by statement as data:
 * names stand for what was assigned to them, a loop over the layers for a pattern with `*`. What
 * it cannot follow it refuses; it never guesses what a call of somebody's own does. */
#include "import/python.h"
#include "import/torch.h"
#include <string.h>

typedef struct {
    const char *name;
    Value *value;
} Bound;
typedef struct {
    Torch *t;
    Bound *bound;
    int n, cap;
    Value *lone; /* a table that is assigned and not applied, so far */
    int n_lone;
    int n_meshes; /* init_device_mesh */
} Walk;

/* ---- names ---- */
static Value *lookup(const Walk *w, const char *name) {
    for (int i = w->n - 1; i >= 0; i--)
        if (strcmp(w->bound[i].name, name) == 0) return w->bound[i].value;
    return NULL;
}
static void bind(Walk *w, const char *name, Value *v) {
    for (int i = 0; i < w->n; i++)
        if (strcmp(w->bound[i].name, name) == 0) {
            w->bound[i].value = v;
            return;
        }
    if (w->n == VALUE_PAIRS) return; /* what is not bound is a name that nobody knows */
    *ARENA_PUSH(w->t->x->a, w->bound, w->n, w->cap) = (Bound){name, v};
}
/* Names replaced by what they stand for; what is put in has been through this already. */
static Value *substitute(Walk *w, Value *v) {
    if (v->kind == V_NAME) {
        Value *to = lookup(w, v->s);
        return to ? to : v;
    }
    for (int i = 0; i < v->n; i++) v->item[i] = substitute(w, v->item[i]);
    for (int i = 0; i < v->n_pairs; i++) v->pair[i].value = substitute(w, v->pair[i].value);
    return v;
}
/* model.layers[0].attention -> "layers.0.attention"; NULL if it is no path from a name. */
static const char *path_of(Walk *w, const Value *v) {
    const char *path = "";
    for (int k = 0; k < VALUE_DEPTH; k++) {
        const char *dot = *path ? "." : "", *part = v->s;
        if (v->kind == V_NAME) return path;
        if (v->kind == V_INDEX && v->item[1]->kind == V_STRING) part = v->item[1]->s;
        else if (v->kind == V_INDEX && v->item[1]->kind == V_INT && v->item[1]->i >= 0)
            part = arena_printf(w->t->x->a, "%lld", (long long)v->item[1]->i);
        else if (v->kind != V_ATTR) return NULL;
        path = arena_printf(w->t->x->a, "%s%s%s", part, dot, path);
        v = v->item[0];
    }
    return NULL;
}
static void refuse(Walk *w, Loc at, const char *hint, const char *what) {
    diag_error(w->t->x->d, "E0217", at, hint, "%s", what);
}

/* ---- meshes ---- */
static const char *callee_of(const Value *v) {
    return v && v->kind == V_CALL ? value_last_name(v->item[0]) : NULL;
}
static bool calls(const Value *v, const char *name) {
    const char *callee = callee_of(v);
    return callee && strcmp(callee, name) == 0;
}
static Value *argument(Value *call, int at, const char *name) {
    Value *v = name ? value_get(call, name) : NULL;
    return v ? v : at >= 0 && call->n > at + 1 ? call->item[at + 1] : NULL;
}
/* init_device_mesh("cuda", (2, 4), mesh_dim_names=("dp", "tp")) */
static void read_mesh(Walk *w, Value *call) {
    Value *shape = argument(call, 1, "mesh_shape"), *names = argument(call, 2, "mesh_dim_names");
    Draft *x = w->t->x;
    if (!shape || (shape->kind != V_TUPLE && shape->kind != V_LIST)) {
        if (!x->in->mesh)
            refuse(w, call->loc,
                   "init_device_mesh(\"cuda\", (2, 4), mesh_dim_names=(\"dp\", \"tp\"))",
                   "the shape of the mesh is not written as numbers");
        return;
    }
    int n = shape->n, m = names && names->kind >= V_LIST ? names->n : 0;
    if (n != m && x->in->mesh) return;
    if (n != m) {
        diag_error(x->d, "E0307", call->loc, "mesh_dim_names=(\"dp\", \"tp\"), one for each dim",
                   "a mesh of %d dims with %d names", n, m);
        return;
    }
    w->n_meshes++;
    for (int i = 0; i < n; i++) {
        const Value *size = shape->item[i], *name = names->item[i];
        if (size->kind >= V_NAME && x->in->mesh) continue; /* --mesh says it */
        if (size->kind != V_INT || size->i < 1 || name->kind != V_STRING)
            diag_error(x->d, "E0301", size->loc,
                       "write the number that your run has, or give the mesh by --mesh",
                       "a mesh has whole sizes and names of text");
        else if (w->n_meshes > 1 && !draft_axis_size(x, name->s))
            diag_error(x->d, "E0307", name->loc,
                       "one mesh with all axes, and mesh[\"dp\", \"tp\"]._flatten(\"ep\")",
                       "axis %s of a second mesh: how it lies on the first one's ranks is not said",
                       name->s);
        else draft_axis(x, name->s, size->i, name->loc);
    }
}
/* mesh["dp", "cp"]._flatten("ep"): one axis of that name; by default "dp_cp". */
static const char *flatten_mesh(Walk *w, Value *call) {
    Draft *x = w->t->x;
    Value *name = argument(call, 0, "mesh_dim_name"), *callee = call->item[0],
          *mesh = callee->kind == V_ATTR ? callee->item[0] : NULL,
          *list = mesh && mesh->kind == V_INDEX ? mesh->item[1] : NULL;
    Str axes = str_new(x->a), joined = str_new(x->a);
    bool several = list && (list->kind == V_LIST || list->kind == V_TUPLE);
    int n = several ? list->n : list != NULL;
    for (int i = 0; i < n; i++) {
        const Value *one = several ? list->item[i] : list;
        if (one->kind != V_STRING) n = 0;
        else if (!draft_axis_size(x, one->s) || draft_group_axes(x, one->s)) {
            diag_error(x->d, "E0204", one->loc, "name it in --mesh or mesh_dim_names",
                       "the mesh has no axis %s", one->s);
            return NULL;
        } else {
            str_addf(&axes, "%s%s", i ? "*" : "", one->s);
            str_addf(&joined, "%s%s", i ? "_" : "", one->s);
        }
    }
    if (!n || (name && name->kind != V_STRING)) {
        refuse(w, call->loc, "mesh[\"dp\", \"cp\"]._flatten(\"ep\")",
               "which axes this joins cannot be seen here");
        return NULL;
    }
    const char *group = name ? name->s : joined.s;
    if (n == 1 && strcmp(group, axes.s) == 0) return group;
    return draft_group(x, group, axes.s, call->loc) ? group : NULL;
}
static void flatten(Walk *w, Value *call) { flatten_mesh(w, call); }
/* The axes that a mesh argument speaks of: mesh["tp"], mesh["a", "b"]; -1 if it is no mesh. */
static int mesh_axes(Walk *w, Value *v, const char *axis[2]) {
    Draft *x = w->t->x;
    if (calls(v, "_flatten")) return (axis[0] = flatten_mesh(w, v)) ? 1 : -1;
    if (v->kind == V_INDEX) {
        const Value *i = v->item[1];
        bool several = i->kind == V_LIST || i->kind == V_TUPLE;
        int n = several ? i->n : 1;
        for (int k = 0; k < n && k < 2; k++) {
            const Value *one = several ? i->item[k] : i;
            if (one->kind != V_STRING) return -1;
            axis[k] = one->s;
        }
        return n > 2 ? -1 : n;
    }
    if (v->kind == V_CALL && calls(v, "init_device_mesh")) {
        for (int k = 0; k < x->n_axes && k < 2; k++) axis[k] = x->axis[k].name;
        return x->n_axes > 2 ? -1 : x->n_axes;
    }
    if (v->kind != V_NAME && v->kind != V_ATTR) return -1;
    size_t n = strlen(v->s); /* tp_mesh: the axis of that name, if there is one */
    if (n > 5 && strcmp(v->s + n - 5, "_mesh") == 0) n -= 5;
    axis[0] = arena_strndup(x->a, v->s, n);
    if (draft_axis_size(x, axis[0])) return 1;
    for (int k = 0; k < x->n_axes && k < 2; k++) axis[k] = x->axis[k].name;
    return x->n_axes > 2 ? -1 : x->n_axes;
}
static bool known_axes(Walk *w, int n, const char *const *axis, Loc at) {
    for (int i = 0; i < n; i++)
        if (!draft_axis_size(w->t->x, axis[i])) {
            diag_error(w->t->x->d, "E0204", at, "name it in --mesh or mesh_dim_names",
                       "the mesh has no axis %s", axis[i]);
            return false;
        }
    return n >= 0;
}

/* ---- what lays out a model ---- */
static void unknown_arguments(Walk *w, Value *call, const char *what, const char *const *known) {
    for (int i = 0; known[i]; i++) value_get(call, known[i]);
    value_unknown(w->t->x->d, call, arena_printf(w->t->x->a, "argument of %s", what), known);
}
static const char *module_of(Walk *w, Value *call, Value *v) {
    const char *path = v ? path_of(w, v) : NULL;
    if (!path)
        refuse(w, v ? v->loc : call->loc, "model, model.layers[0], or a loop over model.layers",
               "which module this speaks of cannot be seen here");
    return path;
}
static void parallelize(Walk *w, Value *call) {
    static const char *const known[] = {"module", "device_mesh", "parallelize_plan",
                                        "src_data_rank", NULL};
    Draft *x = w->t->x;
    Value *mesh = argument(call, 1, "device_mesh"), *plan = argument(call, 2, "parallelize_plan");
    const char *prefix = module_of(w, call, argument(call, 0, "module"));
    TorchMesh on = {.loc = mesh ? mesh->loc : call->loc};
    unknown_arguments(w, call, "parallelize_module", known);
    w->lone = NULL; /* tables that nobody applies are told apart from those that somebody does */
    w->n_lone = -1;
    if (mesh && mesh->kind != V_NONE) {
        on.n = mesh_axes(w, mesh, on.axis);
        if (on.n < 1) {
            if (x->n_axes)
                diag_error(x->d, "E0204", mesh->loc, "mesh[\"tp\"]",
                           "parallelize_module takes a mesh of one axis");
            return;
        }
        if (!known_axes(w, on.n, on.axis, mesh->loc)) return;
    }
    if (on.n == 1 && strcmp(on.axis[0], "tp") != 0 && x->n_axes > 1) on.own = on.axis[0];
    if (!prefix || !plan) {
        if (!plan) refuse(w, call->loc, "the third argument", "a table of styles is wanted here");
        return;
    }
    if (value_is_code(x->d, plan)) return;
    if (plan->kind == V_DICT) torch_table(w->t, prefix, plan, &on);
    else if (plan->kind == V_CALL && *prefix) torch_style(w->t, prefix, plan->loc, plan, &on);
    else
        refuse(w, plan->loc, "write the dict itself, or assign it in this file",
               "the table of styles does not stand here");
}
static void fully_shard(Walk *w, Value *call) {
    static const char *const known[] = {"module",    "mesh",           "reshard_after_forward",
                                        "mp_policy", "offload_policy", NULL};
    Draft *x = w->t->x;
    Value *mesh = argument(call, -1, "mesh"), *keep = argument(call, -1, "reshard_after_forward"),
          *module = argument(call, 0, "module");
    FullyShard f = {.loc = call->loc, .reshard = -1};
    unknown_arguments(w, call, "fully_shard", known);
    if (argument(call, -1, "mp_policy"))
        draft_remark(x, "mp_policy in line %d is not read: data.dtype says what is computed in",
                     call->loc.line);
    f.path = module_of(w, call, module);
    if (mesh && mesh->kind != V_NONE) {
        f.n_axes = mesh_axes(w, mesh, f.axis);
        if (!known_axes(w, f.n_axes, f.axis, mesh->loc)) return;
    }
    if (keep && value_is_code(x->d, keep)) return;
    if (keep && keep->kind == V_BOOL) f.reshard = keep->b;
    else if (keep && keep->kind != V_NONE)
        diag_error(x->d, "E0214", keep->loc, "True or False",
                   "reshard_after_forward to a smaller mesh: not supported by this version");
    if (f.path) *ARENA_PUSH(x->a, w->t->call, w->t->n_calls, w->t->cap_calls) = f;
}
static void ddp(Walk *w, Value *call) {
    Value *mesh = argument(call, 1, "device_mesh");
    const char *axis[2] = {0};
    if (!mesh) mesh = argument(call, -1, "mesh");
    if (mesh && (mesh_axes(w, mesh, axis) != 1 || !known_axes(w, 1, axis, mesh->loc))) return;
    w->t->ddp = axis[0] ? axis[0] : "";
    w->t->ddp_loc = call->loc;
}
static void loss_parallel(Walk *w, Value *call) {
    w->t->loss_parallel = true;
    w->t->loss_loc = call->loc;
}
static const struct {
    const char *name;
    void (*act)(Walk *w, Value *call);
} acts[] = {
    {"parallelize_module", parallelize},
    {"fully_shard", fully_shard},
    {"DistributedDataParallel", ddp},
    {"DDP", ddp},
    {"replicate", ddp},
    {"init_device_mesh", read_mesh},
    {"_flatten", flatten},
    {"loss_parallel", loss_parallel},
};
/* Calls that lay out nothing. */
static const char *const harmless[] = {"print",
                                       "manual_seed",
                                       "init_process_group",
                                       "set_device",
                                       "barrier",
                                       "train",
                                       "eval",
                                       "to",
                                       "to_empty",
                                       "init_weights",
                                       "reset_parameters",
                                       "backward",
                                       "step",
                                       "zero_grad",
                                       "compile",
                                       "destroy_process_group",
                                       "info",
                                       "debug",
                                       "warning",
                                       NULL};

/* A call that stands for something, wherever it stands; true if it is one of ours. */
static bool act(Walk *w, Value *v) {
    const char *name = callee_of(v);
    for (size_t i = 0; name && i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, name) == 0) {
            acts[i].act(w, v);
            return true;
        }
    return false;
}

/* ---- statements ---- */
static void walk(Walk *w, const Statement *block);

/* An entry of a dict of this file, as an assignment to it does. */
static bool set_entry(Walk *w, Value *table, const char *key, Loc loc, Value *v) {
    bool fits =
        table->kind == V_DICT && key && (table->n_pairs < VALUE_PAIRS || value_pair(table, key));
    if (fits) value_set(w->t->x->a, table, (ValuePair){.key = key, .loc = loc, .value = v});
    return fits;
}
/* plan.update({...}) */
static bool update(Walk *w, const Value *call) {
    Value *to = call->item[0]->kind == V_ATTR ? call->item[0]->item[0] : NULL;
    const Value *more = call->n == 2 ? call->item[1] : NULL;
    bool fits = to && to->kind == V_DICT && more && more->kind == V_DICT && !call->n_pairs;
    for (int i = 0; fits && i < more->n_pairs; i++)
        fits = set_entry(w, to, more->pair[i].key, more->pair[i].loc, more->pair[i].value);
    return fits;
}
static void expression(Walk *w, Value *v) {
    if (value_is_code(w->t->x->d, v)) return;
    if (v->kind == V_STRING || v->kind == V_NAME || v->kind == V_ATTR || v->kind == V_NONE) return;
    if (v->kind == V_DICT) {
        torch_table(w->t, "", v, NULL);
        return;
    }
    if (act(w, v) || (calls(v, "update") && update(w, v))) return;
    const char *name = callee_of(v);
    for (int i = 0; name && harmless[i]; i++)
        if (strcmp(harmless[i], name) == 0) return;
    refuse(w, v->loc, "leave it out if it lays out nothing",
           arena_printf(w->t->x->a, "what `%s` does to the plan cannot be seen here",
                        name ? name : value_kind_text(v)));
}
static void assign(Walk *w, const Statement *s) {
    Value *to = s->target, *v = s->value;
    Draft *x = w->t->x;
    act(w, v);
    if (calls(v, "parallelize_module") || calls(v, "DDP") || calls(v, "fully_shard") ||
        calls(v, "DistributedDataParallel"))
        v = v->n > 1 ? v->item[1] : v; /* they give back the module */
    if (to->kind == V_NAME) {
        bind(w, to->s, v);
        if (torch_is_table(v) && w->n_lone >= 0) w->lone = v, w->n_lone++;
    } else if (to->kind == V_INDEX) {
        Value *table = substitute(w, to->item[0]);
        const char *name = to->item[1]->kind == V_STRING ? to->item[1]->s : NULL;
        if (!set_entry(w, table, name, to->loc, v))
            refuse(w, to->loc, "write the entry into the dict itself",
                   "an assignment to a part of what is not a dict of this file");
    } else {
        draft_remark(x, "line %d sets an attribute: that is not part of the plan", s->loc.line);
    }
}
/* The container that a loop runs over: x.layers, .values(), .items(), enumerate(...). */
static const Value *container(const Value *v) {
    static const char *const through[] = {"values", "items", "children", "named_children", NULL};
    for (int k = 0; k < 4 && v->kind == V_CALL; k++) {
        const char *name = callee_of(v);
        if (!name) return NULL;
        bool method = false;
        for (int i = 0; through[i]; i++) method |= strcmp(through[i], name) == 0;
        if (strcmp(name, "enumerate") == 0 && v->n == 2) v = v->item[1];
        else if (method && v->n == 1 && v->item[0]->kind == V_ATTR) v = v->item[0]->item[0];
        else return NULL;
    }
    return v->kind == V_ATTR || v->kind == V_INDEX ? v : NULL;
}
static void loop(Walk *w, const Statement *s) {
    const Value *over = container(substitute(w, s->value));
    const char *path = over ? path_of(w, over) : NULL;
    if (!path || !*path || s->target->kind != V_NAME) {
        refuse(w, s->loc, "write 'layers.*.' before the keys, and leave the loop out",
               "a loop would have to be executed; only one over the layers of the model "
               "(`for layer in model.layers:`) is read");
        return;
    }
    Arena *a = w->t->x->a;
    Value *each = ARENA_NEW(a, Value), *star = ARENA_NEW(a, Value);
    *star = (Value){.kind = V_STRING, .loc = s->loc, .s = "*"};
    *each = (Value){.kind = V_INDEX, .loc = s->loc, .n = 2, .item = ARENA_ARRAY(a, Value *, 2)};
    each->item[0] = (Value *)over;
    each->item[1] = star;
    bind(w, s->target->s, each);
    walk(w, s);
}
static void with(Walk *w, const Statement *s) {
    static const char *const inert[] = {"device", "no_grad", "init_empty_weights", NULL};
    Value *v = substitute(w, s->value);
    const char *name = callee_of(v);
    bool known = calls(v, "loss_parallel") && act(w, v);
    for (int i = 0; name && inert[i]; i++) known |= strcmp(inert[i], name) == 0;
    if (!known)
        refuse(w, s->loc, "leave the `with` out if it lays out nothing",
               "what this context does to the plan cannot be seen here");
    walk(w, s);
}
static void walk(Walk *w, const Statement *block) {
    for (int i = 0; i < block->n; i++) {
        Statement *s = block->body[i];
        if (s->kind == PY_EXPR || s->kind == PY_ASSIGN) s->value = substitute(w, s->value);
        switch (s->kind) {
        case PY_EXPR: expression(w, s->value); break;
        case PY_ASSIGN: assign(w, s); break;
        case PY_IMPORT:
            if (s->target != s->value) bind(w, s->target->s, s->value);
            break;
        case PY_FOR: loop(w, s); break;
        case PY_WITH: with(w, s); break;
        case PY_DEF: walk(w, s); break;
        }
    }
}
void torch_code(Torch *t) {
    Draft *x = t->x;
    Walk w = {.t = t};
    walk(&w, python_read(x->a, x->d, x->file, x->in->text, x->in->n));
    if (!t->n_tables && w.n_lone == 1) torch_table(t, "", w.lone, NULL);
    else if (!t->n_tables && w.n_lone > 1)
        refuse(&w, w.lone->loc, "parallelize_module(model, mesh[\"tp\"], plan) says which one",
               "several tables of styles, and no parallelize_module");
    else if (!t->n_tables && !t->n_calls && !t->ddp && !diags_errors(x->d))
        diag_error(x->d, "E0208", ((Loc){x->file, 1, 1}),
                   "parallelize_module(model, mesh[\"tp\"], {...}), fully_shard(model), or the "
                   "dict alone",
                   "no plan stands here");
}
