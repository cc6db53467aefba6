/* A Python file around parallelize_module and fully_shard, walked statement by statement as data:
 * names stand for what was assigned to them, branches and loops are those that literals decide, a
 * loop over the layers stands for a pattern with `*`, a function of the file for its body. What it
 * cannot follow it refuses; it never guesses what a call of somebody's own does. */
#include "import/python.h"
#include "base/text.h"
#include "import/python_eval.h"
#include "import/torch_given.h"
#include "model/model.h"
#include <string.h>

typedef struct {
    const Statement *def;
    bool called, open; /* ever; now: its body is being walked */
    bool seen;         /* by the look at what a call may lay out */
} Function;
typedef struct {
    Torch *t;
    Python p;
    TorchGiven given;
    Function *function;
    int n_functions, cap_functions;
    Value *lone; /* a table that is assigned and not applied, so far */
    int n_lone;
    const Value *of_hf; /* the first table that is Hugging Face's; NULL: there is none */
    int n_meshes;       /* init_device_mesh */
    Value *result;      /* of the function that returned last */
    bool known;         /* the last call was ours or the file's */
    int deep;           /* functions that are being walked */
    bool titan;         /* the file imports from torchtitan */
    bool called;        /* the innermost of them is: no function that is read as if it were */
} Walk;
/* How a block ended. */
typedef enum { RAN, CONTINUED, BROKE, RETURNED } Ended;

/* model.layers[0].attention -> "layers.0.attention"; NULL if it is no path from a model: a name, or
 * what a function or class gives. */
static const char *path_of(Walk *w, const Value *v) {
    static const char *const same[] = {"to",       "cuda",           "cpu",   "to_empty",
                                       "train",    "eval",           "half",  "float",
                                       "bfloat16", "requires_grad_", "apply", NULL};
    const char *path = "";
    for (int k = 0; k < VALUE_DEPTH; k++) {
        const char *dot = *path ? "." : "", *part = v->s;
        const Value *callee = v->kind == V_CALL ? v->item[0] : NULL;
        bool method = callee && callee->kind == V_ATTR, given = false;
        for (int i = 0; method && same[i]; i++) given |= strcmp(same[i], callee->s) == 0;
        if (v->kind == V_NAME || (callee && callee->kind == V_NAME)) return path;
        if (method && strncmp(callee->s, "from_", 5) == 0) return path;
        if (given) {
            v = callee->item[0];
            continue;
        }
        if (v->kind == V_INDEX && v->item[1]->kind == V_STRING) part = v->item[1]->s;
        else if (v->kind == V_INDEX && v->item[1]->kind == V_EACH) part = "*";
        else if (v->kind == V_INDEX && v->item[1]->kind == V_INT && v->item[1]->i >= 0)
            part = arena_printf(w->t->x->a, "%lld", (long long)v->item[1]->i);
        else if (method && strcmp(callee->s, "get_submodule") == 0 && v->n == 2 &&
                 v->item[1]->kind == V_STRING)
            part = v->item[1]->s, v = callee;
        else if (v->kind != V_ATTR) return NULL;
        path = arena_printf(w->t->x->a, "%s%s%s", part, dot, path);
        v = v->item[0];
    }
    return NULL;
}
static void refuse(Walk *w, Loc at, const char *hint, const char *what) {
    diag_error(w->t->x->d, "E0217", at, hint, "%s", what);
}
/* Of a file that gets functions from torchtitan: its own models are known by its TOML. */
static const char *or_toml(Walk *w, const char *hint) {
    return w->titan ? arena_printf(w->t->x->a,
                                   "%s; torchtitan's own models are read from the TOML of a run: "
                                   "`shardproof import torchtitan train.toml`",
                                   hint)
                    : hint;
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
    int given = torch_given_mesh(&w->given, v, axis);
    if (given > 0) return given;
    if (v->kind == V_INDEX) {
        const Value *i = v->item[1];
        bool several = i->kind == V_LIST || i->kind == V_TUPLE;
        int n = several ? i->n : 1;
        for (int k = 0; k < n && k < 2; k++) {
            const Value *one = several ? i->item[k] : i;
            if (one->kind != V_STRING) return -1;
            axis[k] = one->s;
            if (!draft_axis_size(x, one->s))
                axis[k] = torch_given_axis(&w->given, one->s, one->loc);
            if (!axis[k]) return -1;
        }
        return n > 2 ? -1 : n;
    }
    if (v->kind == V_CALL && calls(v, "init_device_mesh")) {
        for (int k = 0; k < x->n_axes && k < 2; k++) axis[k] = x->axis[k].name;
        return x->n_axes > 2 ? -1 : x->n_axes;
    }
    if (v->kind != V_NAME && v->kind != V_ATTR) return -1;
    size_t n = text_before(v->s, "_mesh"); /* tp_mesh: the axis of that name, if there is one */
    axis[0] = n ? arena_strndup(x->a, v->s, n) : v->s;
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
    if (!path && !(v && value_is_code(w->t->x->d, v)))
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
            if (!value_is_code(x->d, mesh) && x->n_axes)
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
static Value *run_with(Walk *w, const Value *function, Value *argument);

/* shard_placement_fn=lambda param: Shard(1), or a function of this file that returns it. */
static void shard_dim(Walk *w, Value *fn, FullyShard *f) {
    if (!fn || fn->kind == V_NONE) return;
    const Value *made = run_with(w, fn, NULL);
    if (!made) {
        refuse(w, fn->loc, "lambda param: Shard(1)",
               "which dim of each parameter is cut cannot be seen here");
        return;
    }
    if (value_is_code(w->t->x->d, made)) return;
    if (made->kind == V_NONE) return; /* dim 0, as without a function */
    const Value *dim = calls(made, "Shard") ? argument((Value *)made, 0, "dim") : NULL;
    if (!dim || dim->kind != V_INT || dim->i < 0 || dim->i > 1) {
        diag_error(w->t->x->d, dim && dim->kind == V_INT ? "E0214" : "E0206", made->loc,
                   "Shard(0), Shard(1) or None",
                   dim && dim->kind == V_INT
                       ? "fully_shard on dim %lld: not supported by this version"
                       : "shard_placement_fn gives a Shard",
                   dim ? (long long)dim->i : 0);
        return;
    }
    f->dim = (int)dim->i;
    f->dim_loc = made->loc;
}
/* One call for each module of a list: [model.norm, model.output] is one unit. */
static void shard_modules(Walk *w, Value *call, Value *module, FullyShard *f) {
    bool several = module && (module->kind == V_LIST || module->kind == V_TUPLE);
    for (int i = 0; i < (several ? module->n : 1); i++) {
        f->path = module_of(w, call, several ? module->item[i] : module);
        /* with a fault too: the modules that it takes are taken, and nothing else is said of them
         */
        if (f->path) *ARENA_PUSH(w->t->x->a, w->t->call, w->t->n_calls, w->t->cap_calls) = *f;
    }
}
static void fully_shard(Walk *w, Value *call) {
    static const char *const known[] = {"module",    "mesh",           "reshard_after_forward",
                                        "mp_policy", "offload_policy", "shard_placement_fn",
                                        NULL};
    Draft *x = w->t->x;
    Value *mesh = argument(call, -1, "mesh"), *keep = argument(call, -1, "reshard_after_forward"),
          *module = argument(call, 0, "module");
    FullyShard f = {.loc = call->loc, .reshard = -1, .dim = -1};
    unknown_arguments(w, call, "fully_shard", known);
    if (argument(call, -1, "mp_policy"))
        draft_remark(x, "mp_policy in line %d is not read: data.dtype says what is computed in",
                     call->loc.line);
    if (mesh && mesh->kind != V_NONE) {
        f.n_axes = mesh_axes(w, mesh, f.axis);
        if (!known_axes(w, f.n_axes, f.axis, mesh->loc)) return;
    }
    if (keep && keep->kind == V_BOOL) f.reshard = keep->b;
    else if (keep && keep->kind == V_INT)
        diag_error(x->d, "E0214", keep->loc, "True or False",
                   "reshard_after_forward to a smaller mesh: not supported by this version");
    else if (keep && keep->kind != V_NONE)
        value_is_code(x->d, python_unknown(&w->p, keep->loc, python_why(x->a, keep)));
    shard_dim(w, argument(call, -1, "shard_placement_fn"), &f);
    shard_modules(w, call, module, &f);
}
/* Its flat buffers are of whole modules, as fully_shard's units of one layer are not. */
static void fsdp1(Walk *w, Value *call) {
    diag_error(w->t->x->d, "E0214", call->loc,
               "fully_shard(layer) for each layer, then fully_shard(model)",
               "FullyShardedDataParallel: not supported by this version");
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
    {"FullyShardedDataParallel", fsdp1},
    {"FSDP", fsdp1},
    {"init_device_mesh", read_mesh},
    {"_flatten", flatten},
    {"loss_parallel", loss_parallel},
};
/* Calls that lay out nothing. */
static const char *const harmless[] = {
    "print", "rank_log", "manual_seed", "init_process_group", "set_device", "barrier", "train",
    "eval", "to", "to_empty", "init_weights", "reset_parameters", "backward", "step", "zero_grad",
    "compile", "destroy_process_group", "info", "debug", "warning",
    /* torchtitan's */
    "apply_ac", "apply_compile", "apply_cp_to_attention_module", "maybe_enable_async_tp",
    "register_module", "set_gradient_divide_factor", "disable_fsdp_gradient_division", NULL};

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

/* ---- functions of the file ---- */
static Ended walk(Walk *w, const Statement *block);

static Function *function_named(Walk *w, const char *name) {
    for (int i = w->n_functions - 1; name && i >= 0; i--)
        if (strcmp(w->function[i].def->target->s, name) == 0) return &w->function[i];
    return NULL;
}
/* Its body, with names of its own; what a name of it holds is the argument, or the default. */
static Value *run_function(Walk *w, int which, const Value *call) {
    Python *p = &w->p;
    const Statement *def = w->function[which].def;
    const Value *known = def->value;
    int n = p->n, base = p->base, globals = p->globals;
    Value **argument = ARENA_ARRAY(p->a, Value *, known->n_pairs + 1), *result;
    bool before = w->called;
    w->called = call != NULL;
    w->deep++;
    w->function[which].called = w->function[which].open = true;
    for (int i = 0; i < known->n_pairs; i++) {
        const ValuePair *by_name = call ? value_pair(call, known->pair[i].key) : NULL;
        argument[i] = by_name                   ? by_name->value
                      : call && i + 1 < call->n ? call->item[i + 1]
                      : known->pair[i].value->kind == V_CODE && !call
                          ? NULL /* it is not called: a name that nobody knows */
                          : python_eval(p, known->pair[i].value);
    }
    if (!base) p->globals = n;
    p->base = n;
    for (int i = 0; i < known->n_pairs; i++)
        if (argument[i]) python_bind(p, known->pair[i].key, argument[i]);
    w->result = NULL;
    walk(w, def);
    result = w->result;
    w->result = NULL;
    p->n = n;
    p->base = base;
    p->globals = globals;
    w->function[which].open = false;
    w->called = before;
    w->deep--;
    return result;
}
/* What a lambda, or a function of this file by its name, gives for one argument (NULL: nobody knows
 * it); NULL: it is neither. */
static Value *run_with(Walk *w, const Value *function, Value *given) {
    if (function->kind == V_OP && strcmp(function->s, "lambda") == 0) {
        int n = w->p.n;
        Value *unknown = given ? given : (Value *)function->item[0];
        python_bind(&w->p, function->item[0]->s, unknown);
        Value *made = python_eval(&w->p, function->item[1]);
        w->p.n = n;
        return made;
    }
    Function *f = function->kind == V_NAME ? function_named(w, function->s) : NULL;
    if (!f || f->open) return NULL;
    f->called = true;
    return run_function(w, (int)(f - w->function), NULL);
}
static Value *none(Walk *w, Loc at) {
    Value *v = ARENA_NEW(w->t->x->a, Value);
    v->loc = at;
    return v;
}
/* tp_mesh.size(), where the mesh is known. */
static Value *size_of(Walk *w, Value *call) {
    const char *axis[2];
    Value *mesh = call->n == 1 ? call->item[0]->item[0] : NULL, *size = none(w, call->loc);
    if (!mesh || (mesh->kind == V_CALL && !calls(mesh, "_flatten")) ||
        mesh_axes(w, mesh, axis) != 1 || !draft_axis_size(w->t->x, axis[0]))
        return NULL;
    size->kind = V_INT;
    size->i = draft_axis_size(w->t->x, axis[0]);
    size->r = (double)size->i;
    return size;
}
static bool update(Walk *w, const Value *call);

/* What a call does, and gives, where this file or PyTorch says so; w->known says whether one does.
 */
static Value *called(void *owner, Value *call) {
    Walk *w = owner;
    const Value *callee = call->item[0];
    Function *f = callee->kind == V_NAME ? function_named(w, callee->s) : NULL;
    Value *gives = NULL;
    bool known = true;
    if (f && (f->open || w->deep >= VALUE_DEPTH)) {
        gives = python_unknown(&w->p, call->loc,
                               "functions that call one another so deep are not read here");
    } else if (f) {
        gives = run_function(w, (int)(f - w->function), call);
        if (!gives) gives = none(w, call->loc);
    } else if (calls(call, "size") && callee->kind == V_ATTR) {
        gives = size_of(w, call);
    } else if (calls(call, "update") && update(w, call)) {
        gives = none(w, call->loc);
    } else if ((known = act(w, call)) && call->n > 1 &&
               (calls(call, "parallelize_module") || calls(call, "fully_shard") ||
                calls(call, "DDP") || calls(call, "DistributedDataParallel"))) {
        gives = call->item[1]; /* they give back the module */
    }
    w->known = known;
    return gives;
}

/* ---- statements ---- */
/* An entry of a dict of this file, as an assignment to it does. */
static bool set_entry(Walk *w, Value *table, const char *key, Loc loc, Value *v) {
    bool fits =
        table->kind == V_DICT && key && (table->n_pairs < VALUE_PAIRS || value_pair(table, key));
    if (fits) value_set(w->t->x->a, table, (ValuePair){.key = key, .loc = loc, .value = v});
    return fits;
}
/* plan.update({...}), plan.update(key=value) */
static bool update(Walk *w, const Value *call) {
    Value *to = call->item[0]->kind == V_ATTR ? call->item[0]->item[0] : NULL;
    const Value *more = call->n == 2 ? call->item[1] : call;
    bool fits = to && to->kind == V_DICT && call->n <= 2 && (more == call || !call->n_pairs) &&
                (more == call || more->kind == V_DICT);
    for (int i = 0; fits && i < more->n_pairs; i++)
        fits = set_entry(w, to, more->pair[i].key, more->pair[i].loc, more->pair[i].value);
    return fits;
}
static bool is_harmless(const Value *call) {
    const char *name = callee_of(call);
    for (int i = 0; name && harmless[i]; i++)
        if (strcmp(harmless[i], name) == 0) return true;
    return false;
}
static bool mentions(Walk *w, const Statement *block, const char *name);
static const char *no_alias(Walk *w, const Value *name) {
    const Value *alias = name->kind == V_NAME ? python_lookup(&w->p, name->s) : NULL;
    return alias && alias->kind == V_NAME ? alias->s : name->s;
}
/* Does it speak of what lays out a model, by whatever name, called or not? */
static bool speaks_of_acts(Walk *w, const Value *v) {
    bool any = false;
    const char *name = v->kind == V_NAME || v->kind == V_ATTR ? no_alias(w, v) : NULL;
    for (size_t i = 0; name && i < sizeof acts / sizeof *acts && !any; i++)
        any = strcmp(acts[i].name, name) == 0;
    for (int i = 0; i < v->n && !any && python_step(&w->p, v->loc); i++)
        any = speaks_of_acts(w, v->item[i]);
    for (int i = 0; i < v->n_pairs && !any && python_step(&w->p, v->loc); i++)
        any = speaks_of_acts(w, v->pair[i].value);
    return any;
}
static bool block_speaks_of_acts(Walk *w, const Statement *block) {
    bool any = false;
    for (int i = 0; block && i < block->n && !any; i++) {
        const Statement *s = block->body[i];
        any = (s->value && s->kind != PY_IMPORT && speaks_of_acts(w, s->value)) ||
              block_speaks_of_acts(w, s) || block_speaks_of_acts(w, s->otherwise);
    }
    return any;
}
/* A function of the file, or one that it calls. Each is looked at once. */
static bool acts_below(Walk *w, Function *f) {
    bool any = block_speaks_of_acts(w, f->def);
    f->seen = true;
    for (int i = 0; i < w->n_functions && !any; i++)
        any = !w->function[i].seen && mentions(w, f->def, w->function[i].def->target->s) &&
              acts_below(w, &w->function[i]);
    return any;
}
/* A function of the file, and what it calls, count as called, though nobody walks them. */
static void count_called(Walk *w, Function *f) {
    f->called = true;
    for (int i = 0; i < w->n_functions; i++)
        if (!w->function[i].called && mentions(w, f->def, w->function[i].def->target->s))
            count_called(w, &w->function[i]);
}
/* A call that lays out nothing: by its name, and, where the file has its function, by what stands
 * in that. */
static bool leaves_alone(Walk *w, const Value *call) {
    Function *f = is_harmless(call) && call->item[0]->kind == V_NAME
                      ? function_named(w, call->item[0]->s)
                      : NULL;
    for (int i = 0; i < w->n_functions; i++) w->function[i].seen = false;
    if (f && acts_below(w, f)) return false;
    if (f) count_called(w, f);
    return is_harmless(call);
}
static void expression(Walk *w, Value *written) {
    if (leaves_alone(w, written)) return;
    Value *v = python_eval(&w->p, written);
    if (w->p.spent || value_is_code(w->t->x->d, v) || v->kind <= V_TUPLE) return;
    if (v->kind == V_DICT) {
        torch_table(w->t, "", v, NULL);
        return;
    }
    if (v->kind != V_CALL || (written->kind == V_CALL && w->known)) return;
    const char *name = callee_of(v);
    refuse(w, v->loc,
           or_toml(w, "leave it out if it lays out nothing, or write its function into this file"),
           arena_printf(w->t->x->a, "what `%s` does to the plan cannot be seen here",
                        name ? name : value_kind_text(v)));
}
/* `model = apply_tp(model)`: a call of somebody's own that gets what a table is for. */
static void own_call(Walk *w, const Value *to, const Value *v) {
    if (v->kind != V_CALL || is_harmless(v) || to->kind != V_NAME) return;
    for (int i = 1; i < v->n; i++) {
        bool itself = v->item[i]->kind == V_NAME && strcmp(v->item[i]->s, to->s) == 0;
        const Value *before = python_lookup(&w->p, to->s);
        if (itself || (before && before == v->item[i] && before->kind == V_CALL))
            refuse(
                w, v->loc,
                or_toml(
                    w, "leave it out if it lays out nothing, or write its function into this file"),
                arena_printf(w->t->x->a, "what `%s` does to the plan cannot be seen here",
                             callee_of(v) ? callee_of(v) : value_kind_text(v)));
    }
}
static void assign(Walk *w, const Statement *s) {
    Value *to = s->target, *v = python_eval(&w->p, s->value);
    Draft *x = w->t->x;
    if (w->p.spent) return;
    if (to->kind == V_NAME) {
        own_call(w, to, v);
        python_bind(&w->p, to->s, v);
        if (torch_is_table(v) && w->n_lone >= 0) w->lone = v, w->n_lone++;
        if (!w->of_hf && torch_is_hf_table(v)) w->of_hf = v;
    } else if (to->kind == V_TUPLE || to->kind == V_LIST) {
        python_unpack(&w->p, to, v);
    } else if (to->kind == V_INDEX) {
        Value *table = python_eval(&w->p, to->item[0]), *key = python_eval(&w->p, to->item[1]);
        if (value_is_code(x->d, key)) return;
        const char *name = key->kind == V_STRING ? key->s : key->kind == V_EACH ? "*" : NULL;
        if (!set_entry(w, table, name, to->loc, v))
            refuse(w, to->loc, "write the entry into the dict itself",
                   "an assignment to a part of what is not a dict of this file");
    } else {
        draft_remark(x, "line %d sets an attribute: that is not part of the plan", s->loc.line);
    }
}

/* ---- what lays out nothing need not be decided ---- */
static bool acts_in(Walk *w, const Value *v, bool once) {
    const char *name = callee_of(v);
    const Value *alias = name && v->item[0]->kind == V_NAME ? python_lookup(&w->p, name) : NULL;
    if (alias && alias->kind == V_NAME) name = alias->s;
    for (size_t i = 0; name && i < sizeof acts / sizeof *acts; i++)
        if (strcmp(acts[i].name, name) == 0 && (!once || acts[i].act != loss_parallel)) return true;
    if (name && (strcmp(name, "update") == 0 || function_named(w, name))) return true;
    bool any = false;
    for (int i = 0; i < v->n && !any && python_step(&w->p, v->loc); i++)
        any = acts_in(w, v->item[i], once);
    for (int i = 0; i < v->n_pairs && !any && python_step(&w->p, v->loc); i++)
        any = acts_in(w, v->pair[i].value, once);
    return any;
}
/* Would this block leave the plan as it is, run or not; or (`once`), however often it is run? A
 * jump would not: what follows depends on it. */
static bool inert(Walk *w, const Statement *block, bool once) {
    for (int i = 0; block && i < block->n; i++) {
        const Statement *s = block->body[i];
        bool deep = s->kind == PY_FOR || s->kind == PY_WITH || s->kind == PY_IF;
        if (s->kind == PY_RAISE || s->kind == PY_IMPORT) continue;
        if (s->kind == PY_RETURN || s->kind == PY_CONTINUE || s->kind == PY_BREAK ||
            s->kind == PY_DEF)
            return false;
        if (s->value && acts_in(w, s->value, once)) return false;
        if (s->kind == PY_EXPR && s->value->kind == V_CALL && !is_harmless(s->value)) return false;
        if (s->kind == PY_ASSIGN && s->target->kind == V_INDEX) return false;
        if (deep && (!inert(w, s, once) || !inert(w, s->otherwise, once))) return false;
    }
    return true;
}
/* The names that such a block may have assigned are not known behind it: `what` says of whom. */
static void forget(Walk *w, const Statement *block, Loc at, const char *what) {
    for (int i = 0; block && i < block->n; i++) {
        const Statement *s = block->body[i];
        if (s->kind == PY_ASSIGN || s->kind == PY_FOR)
            python_unpack(
                &w->p, s->target,
                python_unknown(&w->p, at, arena_printf(w->t->x->a, "this depends on %s", what)));
        forget(w, s, at, what);
        forget(w, s->otherwise, at, what);
    }
}

/* ---- branches and loops ---- */
static Ended branch(Walk *w, const Statement *s) {
    Value *condition = s->value ? python_eval(&w->p, s->value) : NULL;
    Draft *x = w->t->x;
    int truth = condition ? python_truth(condition) : 1;
    if (condition && condition->kind == V_CODE && w->p.spent) return RETURNED;
    if (truth >= 0) {
        const Statement *taken = truth ? s : s->otherwise;
        return taken ? walk(w, taken) : RAN;
    }
    if (inert(w, s, false) && inert(w, s->otherwise, false)) {
        const char *what =
            arena_printf(x->a, "the `if` in line %d: %s", s->loc.line, python_why(x->a, condition));
        forget(w, s, s->loc, what);
        forget(w, s->otherwise, s->loc, what);
        return RAN;
    }
    const char *name = value_dotted(x->a, s->value);
    const char *hint = name && !strchr(name, '.')
                           ? arena_printf(x->a,
                                          "`%s = True` (or False) in a line of its own before it, "
                                          "or keep the branch that your run takes",
                                          name)
                           : "keep the branch that your run takes, without its `if`";
    diag_error(x->d, "E0217", condition->kind == V_CODE ? condition->loc : s->value->loc,
               or_toml(w, hint), "which branch is taken cannot be seen here: %s",
               python_why(x->a, condition));
    return RAN;
}
enum { FEW_ROUNDS = 256 }; /* that are gone through even if they lay out nothing: they may count */

static Ended loop(Walk *w, const Statement *s) {
    Python *p = &w->p;
    Value *over = python_eval(p, s->value);
    PythonRounds r = python_rounds(p, over);
    if (r.all) { /* of a module that this file speaks of */
        const Value *layer = r.round[0]->kind == V_TUPLE ? r.round[0]->item[1] : r.round[0];
        const char *path = layer->kind == V_EACH ? "*" : path_of(w, layer->item[0]);
        r.decided = path && *path;
    }
    bool few = r.decided && !r.all && r.n <= FEW_ROUNDS;
    if (!few && !p->spent &&
        inert(w, s, true)) { /* a training loop: what it does, it does in every round */
        forget(w, s, s->loc, arena_printf(w->t->x->a, "the loop in line %d", s->loc.line));
        python_unpack(p, s->target, python_unknown(p, s->loc, "this is another in each round"));
        r = (PythonRounds){true, true, 1, NULL};
    } else if (!r.decided) {
        refuse(w, s->loc, "write 'layers.*.' before the keys, and leave the loop out",
               arena_printf(w->t->x->a,
                            "a loop would have to be executed: %s; only one over literals or over "
                            "the layers of the model (`for layer in model.layers:`) is read",
                            python_why(w->t->x->a, over)));
        return RAN;
    }
    for (int i = 0; i < r.n && python_step(p, s->loc); i++) {
        if (r.round) python_unpack(p, s->target, r.round[i]);
        Ended ended = walk(w, s);
        if (ended == RETURNED && !r.all) return ended;
        if (r.all && (ended == BROKE || ended == RETURNED))
            refuse(w, s->loc, "name the layer: model.layers[0]",
                   "a loop over the layers that is left before its end");
        if (ended == BROKE || ended == RETURNED) break;
    }
    return RAN;
}
static Ended with(Walk *w, const Statement *s) {
    static const char *const inert_ones[] = {"device", "no_grad", "init_empty_weights", NULL};
    Value *v = python_eval(&w->p, s->value);
    const char *name = callee_of(v);
    bool known = calls(v, "loss_parallel");
    for (int i = 0; name && inert_ones[i]; i++) known |= strcmp(inert_ones[i], name) == 0;
    if (!known && !value_is_code(w->t->x->d, v))
        refuse(w, s->loc, "leave the `with` out if it lays out nothing",
               "what this context does to the plan cannot be seen here");
    return walk(w, s);
}
static void define(Walk *w, const Statement *s) {
    Draft *x = w->t->x;
    if (!s->target || !s->value || w->n_functions >= VALUE_PAIRS) return;
    *ARENA_PUSH(x->a, w->function, w->n_functions, w->cap_functions) = (Function){.def = s};
}
static Ended statement(Walk *w, Statement *s) {
    switch (s->kind) {
    case PY_EXPR: expression(w, s->value); break;
    case PY_ASSIGN: assign(w, s); break;
    case PY_IMPORT:
        if (s->target != s->value) python_bind(&w->p, s->target->s, s->value);
        break;
    case PY_FOR: return loop(w, s);
    case PY_WITH: return with(w, s);
    case PY_DEF: define(w, s); break;
    case PY_IF: return branch(w, s);
    case PY_RETURN: w->result = s->value ? python_eval(&w->p, s->value) : NULL; return RETURNED;
    case PY_CONTINUE: return CONTINUED;
    case PY_BREAK: return BROKE;
    case PY_RAISE:
        if (!w->deep || w->called)
            refuse(w, s->loc, "leave it out, or what leads to it",
                   "the file raises an error in this line");
        return RETURNED;
    }
    return RAN;
}
static Ended walk(Walk *w, const Statement *block) {
    for (int i = 0; i < block->n && !w->p.spent; i++) {
        Ended ended = statement(w, block->body[i]);
        if (ended != RAN) return ended;
    }
    return RAN;
}
/* ---- what the file is given ---- */
static Value *outside(void *owner, const Value *v) {
    Walk *w = owner;
    return torch_given_value(&w->given, v);
}
/* A module that models of some scheme have: what stands under its name is no None. */
static bool stands(void *owner, const Value *v) {
    Walk *w = owner;
    const char *path = path_of(w, v), *name = value_dotted(w->t->x->a, v);
    int n;
    const NamesRow *row = names_table(&n);
    for (int i = 0; path && name && i < n; i++)
        for (int s = 0; s < NAMES_COUNT; s++)
            if (strcmp(row[i].name[s], path) == 0) return strncmp(name, "model.", 6) == 0;
    return false;
}
static bool mentions_in(Walk *w, const Value *v, const char *name) {
    bool any = v->kind == V_NAME && strcmp(v->s, name) == 0;
    for (int i = 0; i < v->n && !any && python_step(&w->p, v->loc); i++)
        any = mentions_in(w, v->item[i], name);
    for (int i = 0; i < v->n_pairs && !any && python_step(&w->p, v->loc); i++)
        any = mentions_in(w, v->pair[i].value, name);
    return any;
}
/* Does a block speak of that function? */
static bool mentions(Walk *w, const Statement *block, const char *name) {
    bool any = false;
    for (int i = 0; block && i < block->n && !any; i++) {
        const Statement *s = block->body[i];
        any = (s->value && s->kind != PY_DEF && mentions_in(w, s->value, name)) ||
              mentions(w, s, name) || mentions(w, s->otherwise, name);
    }
    return any;
}
/* Nobody calls the file's functions in it: as if each were called once that no other one calls, or
 * (`all`) that none calls of those that were. */
static void run_uncalled(Walk *w, bool all) {
    for (int i = 0; i < w->n_functions && !w->p.spent; i++) {
        const char *name = w->function[i].def->target->s;
        bool inner = w->function[i].called;
        for (int k = 0; k < w->n_functions && !inner; k++)
            inner =
                k != i && (!all || w->function[k].called) && mentions(w, w->function[k].def, name);
        if (!inner) run_function(w, i, NULL);
    }
}
static void no_plan(const Walk *w) {
    const Loc at = w->of_hf ? w->of_hf->loc : (Loc){w->t->x->file, 1, 1};
    if (w->of_hf)
        diag_error(w->t->x->d, "E0208", at, torch_hf_help,
                   "no plan of PyTorch stands here, but a tp_plan of Hugging Face");
    else
        diag_error(w->t->x->d, "E0208", at,
                   "parallelize_module(model, mesh[\"tp\"], {...}), fully_shard(model), or the "
                   "dict alone",
                   "no plan stands here");
}
void torch_code(Torch *t) {
    Draft *x = t->x;
    Walk w = {.t = t,
              .titan = strstr(x->in->text, "torchtitan.") != NULL,
              .p = {.a = x->a, .d = x->d, .call = called, .outside = outside, .stands = stands}};
    if (!torch_given(&w.given, t)) return;
    Value *main = python_unknown(&w.p, diag_nowhere, NULL);
    w.p.owner = &w;
    *main = (Value){.kind = V_STRING, .s = "__main__"};
    python_bind(&w.p, "__name__", main);
    walk(&w, python_read(x->a, x->d, x->file, x->in->text, x->in->n));
    run_uncalled(&w, false);
    run_uncalled(&w, true);
    if (w.p.spent) return;
    torch_given_end(&w.given);
    if (!t->n_tables && w.n_lone == 1) torch_table(t, "", w.lone, NULL);
    else if (!t->n_tables && w.n_lone > 1)
        refuse(&w, w.lone->loc, "parallelize_module(model, mesh[\"tp\"], plan) says which one",
               "several tables of styles, and no parallelize_module");
    else if (!t->n_tables && !t->n_calls && !t->ddp && !diags_errors(x->d)) no_plan(&w);
}
