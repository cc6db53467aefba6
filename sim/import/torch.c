/* Plans of PyTorch: the Python around parallelize_module and fully_shard, or the same table as
 * JSON, with or without model, mesh and data beside it. */
#include "import/torch.h"
#include "base/text.h"
#include "import/python.h"
#include <stdlib.h>
#include <string.h>

/* ---- model, mesh and data of a JSON record ---- */
static int64_t number(Value *map, const char *key) {
    const Value *v = value_get(map, key);
    return v && v->kind == V_INT && v->i > 0 ? v->i : 0;
}
static const char *text(Value *map, const char *key) {
    const Value *v = value_get(map, key);
    return v && v->kind == V_STRING ? v->s : "";
}
static void wrong(Torch *t, Loc at, const char *what, const char *hint) {
    diag_error(t->x->d, "E0301", at, hint, "%s", what);
}
static void record_mesh(Torch *t, Value *mesh) {
    Value *shape = value_get(mesh, "shape"), *names = value_get(mesh, "names");
    if (!shape || !names || shape->kind != V_LIST || names->kind != V_LIST ||
        shape->n != names->n) {
        wrong(t, mesh->loc, "a mesh has a shape and as many names",
              "{\"shape\": [2, 4], \"names\": [\"dp\", \"tp\"]}");
        return;
    }
    for (int i = 0; i < shape->n; i++) {
        const Value *size = shape->item[i], *name = names->item[i];
        if (size->kind != V_INT || size->i < 1 || name->kind != V_STRING)
            wrong(t, size->loc, "a mesh has whole sizes and names of text", NULL);
        else draft_axis(t->x, name->s, size->i, name->loc);
    }
}
/* Layers one behind the other: sizes, and names in the order of the plan. */
static void record_layers(Torch *t, const char *sizes, const char *names, bool bias,
                          const char *activation) {
    t->x->mlp = true;
    t->x->model_keys =
        arena_printf(t->x->a, "kind: mlp, sizes: [%s], layer_names: [%s], bias: %s, activation: %s",
                     sizes, names, bias ? "true" : "false", activation);
}
static const char *plan_names(Torch *t, const Value *plan, int want, Loc at) {
    Str s = str_new(t->x->a);
    for (int i = 0; i < plan->n_pairs; i++) {
        PlanWriter w = write_start(t->x->a);
        write_scalar(&w, plan->pair[i].key);
        str_addf(&s, "%s%s", i ? ", " : "", w.s.s);
    }
    if (plan->n_pairs != want)
        diag_error(t->x->d, "E0307", at, "name each layer in the plan",
                   "a model of %d layers, and a plan of %d", want, plan->n_pairs);
    return s.s;
}
static void record_mlp(Torch *t, Value *model, const Value *plan) {
    Value *sizes = value_get(model, "sizes");
    const Value *bias = value_get(model, "bias");
    const char *activation = text(model, "activation");
    Str s = str_new(t->x->a);
    for (int i = 0; sizes && i < sizes->n; i++)
        str_addf(&s, "%s%lld", i ? ", " : "", (long long)sizes->item[i]->i);
    if (!sizes || sizes->n < 2)
        wrong(t, model->loc, "a model of kind mlp has sizes", "[10, 32, 5]");
    else
        record_layers(t, s.s, plan_names(t, plan, sizes->n - 1, model->loc), bias && bias->b,
                      *activation ? activation : "none");
}
static void record_linear(Torch *t, Value *model, const Value *plan) {
    const Value *bias = value_get(model, "bias");
    const char *sizes = arena_printf(t->x->a, "%lld, %lld", (long long)number(model, "in"),
                                     (long long)number(model, "out"));
    record_layers(t, sizes, plan_names(t, plan, 1, model->loc), bias && bias->b, "none");
}
/* Weights by name and shape [out, in], each reading what the one before makes. */
static void record_weights(Torch *t, Value *weights, const Value *plan) {
    Str s = str_new(t->x->a);
    int64_t before = 0;
    for (int i = 0; i < weights->n_pairs; i++) {
        const Value *shape = weights->pair[i].value;
        if (shape->kind != V_LIST || shape->n != 2 || shape->item[0]->kind != V_INT ||
            shape->item[1]->kind != V_INT || (i && shape->item[1]->i != before)) {
            wrong(t, shape->loc, "a weight [out, in] that reads what the one before makes", NULL);
            return;
        }
        before = shape->item[0]->i;
        if (!i) str_addf(&s, "%lld", (long long)shape->item[1]->i);
        str_addf(&s, ", %lld", (long long)before);
    }
    record_layers(t, s.s, plan_names(t, plan, weights->n_pairs, weights->loc), false, "none");
}
static void record_llama(Torch *t, Value *model) {
    static const char *const keys[][2] = {
        {"dim", "hidden_size"},           {"ffn", "intermediate_size"},
        {"heads", "num_attention_heads"}, {"kv_heads", "num_key_value_heads"},
        {"vocab", "vocab_size"},          {"layers", "num_hidden_layers"}};
    Str s = str_new(t->x->a);
    for (int i = 0; i < 6; i++) {
        int64_t n = number(model, keys[i][0]);
        if (!n)
            wrong(t, model->loc, arena_printf(t->x->a, "the model has no %s", keys[i][0]), NULL);
        str_addf(&s, "%s: %lld, ", keys[i][1], (long long)n);
    }
    const Value *eps = value_get(model, "eps"), *theta = value_get(model, "rope_theta");
    t->x->model_keys = arena_printf(
        t->x->a, "config: {%srms_norm_eps: %.17g, rope_theta: %.17g}, rope: interleaved", s.s,
        eps ? eps->r : 1e-5, theta ? theta->r : 1e4);
    t->x->layers = 0;
    t->x->sequence = number(model, "seq");
    t->x->batch = number(model, "batch");
}
static void record_model(Torch *t, Value *model, const Value *plan) {
    const char *kind = text(model, "kind");
    Value *weights = value_get(model, "used_here");
    Draft *x = t->x;
    if (x->in->model || x->in->config) return; /* the command line says it */
    x->model_loc = model->loc;
    x->small = true;
    if (strcmp(kind, "mlp") == 0) record_mlp(t, model, plan);
    else if (strcmp(kind, "linear") == 0) record_linear(t, model, plan);
    else if (strcmp(kind, "llama3") == 0) record_llama(t, model);
    else if (weights && weights->kind == V_DICT) record_weights(t, weights, plan);
    else
        diag_error(x->d, "E0214", model->loc,
                   "kinds mlp, linear and llama3, or --model PRESET, --config FILE",
                   "a model of kind '%s': not supported by this version", kind);
}
static void record_data(Torch *t, Value *data) {
    const Value *ids = value_get(data, "ids"), *rows = value_get(data, "x");
    const char *loss = text(data, "loss");
    Draft *x = t->x;
    x->data_loc = data->loc;
    if (ids && ids->kind == V_LIST && ids->n == 2)
        x->batch = ids->item[0]->i, x->sequence = ids->item[1]->i;
    if (rows && rows->kind == V_LIST && rows->n) x->rows = rows->item[0]->i;
    for (int i = 0; i < data->n_pairs; i++) /* "x [10,512]": a formula */
        if (strncmp(data->pair[i].key, "x [", 3) == 0) x->rows = atoll(data->pair[i].key + 3);
    if (strstr(loss, "loss_parallel()")) t->loss_parallel = true, t->loss_loc = data->loc;
    if (strncmp(loss, "var", 3) == 0) draft_key(x, "loss", "{kind: var}", data->loc, NULL);
}
static void record_sharding(Torch *t, Value *dp) {
    static const char *const modes[] = {"fsdp", "hsdp", NULL};
    Value *mesh = value_get(dp, "mesh");
    FullyShard f = {.path = "", .reshard = -1, .dim = -1, .loc = dp->loc};
    const char *mode = text(dp, "mode");
    if (strcmp(mode, modes[0]) && strcmp(mode, modes[1])) {
        diag_error(t->x->d, "E0206", dp->loc, "fsdp or hsdp", "a data_parallel mode '%s'", mode);
        return;
    }
    for (int i = 0; mesh && i < mesh->n && i < 2; i++)
        if (mesh->item[i]->kind == V_STRING) f.axis[f.n_axes++] = mesh->item[i]->s;
    for (int i = 0; i < 2; i++) {
        *ARENA_PUSH(t->x->a, t->call, t->n_calls, t->cap_calls) = f;
        f.path = "layers.*";
    }
}
static void json_file(Torch *t) {
    static const char *const known[] = {"case", "world", "source",        "model", "mesh",
                                        "data", "plan",  "data_parallel", NULL};
    Draft *x = t->x;
    Value *top = json_values(x->a, x->d, x->file, x->in->text, x->in->n);
    if (!top) return;
    Value *plan = top->kind == V_DICT ? value_get(top, "plan") : NULL;
    if (top->kind != V_DICT || (plan && plan->kind != V_DICT)) {
        wrong(t, (plan ? plan : top)->loc, "a JSON object, pattern -> style, is wanted here", NULL);
        return;
    }
    if (!plan) {
        torch_table(t, "", top, NULL);
        return;
    }
    static const struct {
        const char *key;
        void (*read)(Torch *t, Value *v);
    } parts[] = {{"mesh", record_mesh}, {"data", record_data}, {"data_parallel", record_sharding}};
    Value *model = value_get(top, "model");
    for (int i = 0; known[i]; i++) value_get(top, known[i]);
    value_unknown(x->d, top, "key", known);
    if (model && model->kind == V_DICT) record_model(t, model, plan);
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        Value *v = value_get(top, parts[i].key);
        if (v && v->kind == V_DICT) parts[i].read(t, v);
    }
    x->dtype = "f64"; /* of such records */
    torch_table(t, "", plan, NULL);
}

/* ---- data parallelism ---- */
static void cannot(Torch *t, const FullyShard *f, const char *what, const char *hint) {
    diag_error(t->x->d, "E0214", f->loc, hint, "%s: not supported by this version", what);
}
/* dp, dp_shard: what a plan takes for an axis of that kind by its name. */
static bool named_as(const char *axis, const char *kind) {
    size_t n = strlen(kind);
    return strncmp(axis, kind, n) == 0 && (!axis[n] || axis[n] == '_');
}
/* The axes that data parallelism is over cut the batch, all but that of context parallelism, which
 * cuts the sequence. Those called dp do so by themselves, unless others must be named. */
static void data_axes(Torch *t, int n, const char *const *axis) {
    Draft *x = t->x;
    Str all = str_new(x->a), over = str_new(x->a);
    bool named = true;
    for (int i = 0; i < n; i++) {
        const char *group = draft_group_axes(x, axis[i]);
        for (const char *p = group ? group : axis[i]; *p;) {
            size_t len = strcspn(p, "*");
            const char *one = arena_strndup(x->a, p, len);
            p += len + (p[len] == '*');
            if (named_as(one, "cp") || (over.n && draft_in_product(over.s, one))) continue;
            str_addf(&over, "%s%s", over.n ? "*" : "", one);
            named &= named_as(one, "dp");
        }
    }
    if (named) return;
    for (int i = 0; i < x->n_axes; i++) /* replicas that the file speaks of elsewhere */
        if (named_as(x->axis[i].name, "dp") && !draft_in_product(over.s, x->axis[i].name))
            str_addf(&all, "%s*", x->axis[i].name);
    str_add(&all, over.s);
    x->cut_batch = all.s;
}
static bool same_mesh(const FullyShard *a, const FullyShard *b) {
    bool same = a->n_axes == b->n_axes;
    for (int i = 0; same && i < a->n_axes; i++) same = strcmp(a->axis[i], b->axis[i]) == 0;
    return same;
}
static bool is_experts(const FullyShard *f) { return text_before(f->path, ".experts"); }
/* Does one of these names speak of the axis? */
static bool speaks_of(const Torch *t, int n, const char *const *names, const char *axis) {
    for (int i = 0; i < n; i++) {
        const char *axes = draft_group_axes(t->x, names[i]);
        if (draft_in_product(axes ? axes : names[i], axis)) return true;
    }
    return false;
}
/* Experts of different ranks are no copies: PyTorch must be told to shard them over what is left of
 * the data axes alone, as torchtitan does, before it shards the layer. */
static void experts_apart(Torch *t, int n, const char *const *data, const char *what, Loc loc) {
    const FullyShard *own = NULL;
    bool overlaps = false, right = true;
    Str left = str_new(t->x->a);
    for (int i = 0; i < t->n_calls; i++)
        if (is_experts(&t->call[i])) own = &t->call[i];
    for (int i = 0; i < t->x->n_axes; i++) {
        const char *axis = t->x->axis[i].name;
        bool cuts = speaks_of(t, n, data, axis),
             lies = t->experts && draft_in_product(t->experts, axis);
        overlaps |= cuts && lies;
        if (cuts && !lies) str_addf(&left, "%s\"%s\"", left.n ? ", " : "", axis);
        if (own && t->x->axis[i].size > 1)
            right &= speaks_of(t, own->n_axes, own->axis, axis) == (cuts && !lies);
    }
    if (own && !right)
        diag_error(t->x->d, "E0214", own->loc,
                   left.n ? arena_printf(t->x->a, "mesh[%s]", left.s) : "leave it out",
                   "fully_shard of experts over other axes than those of %s that have the same "
                   "experts: not supported by this version",
                   what);
    else if (overlaps && !own)
        diag_error(t->x->d, "E0307", loc,
                   left.n ? arena_printf(t->x->a,
                                         "fully_shard(block.moe.experts, mesh=mesh[%s]) "
                                         "before it",
                                         left.s)
                          : "fully_shard of block.moe.experts before it, over an axis of one rank",
                   "%s takes the experts of different ranks for copies", what);
}
/* The embedding, or norm and head, as a unit of its own: the same parts, gathered at another moment
 * than those of the root, which takes what is left. */
static bool is_aside(const Torch *t, const FullyShard *f) {
    const FullyShard *root = NULL;
    for (int i = 0; i < t->n_calls; i++)
        if (!*t->call[i].path) root = &t->call[i];
    return root && *f->path && !strchr(f->path, '.') && same_mesh(root, f) && f->dim == root->dim;
}
static void tell_asides(Torch *t) {
    Str names = str_new(t->x->a);
    for (int i = 0; i < t->n_calls; i++)
        if (is_aside(t, &t->call[i]))
            str_addf(&names, "%s%s", names.n ? ", " : "", t->call[i].path);
    if (names.n)
        draft_remark(t->x,
                     "units of their own there, of the model here: %s; cut alike, gathered "
                     "at another moment",
                     names.s);
}
/* The root and its layers, as units: what a plan can say of fully_shard. */
static bool units(Torch *t, const FullyShard **root, const FullyShard **layers) {
    for (int i = 0; i < t->n_calls; i++) {
        const FullyShard *f = &t->call[i];
        const char *dot = strrchr(f->path, '.');
        if (is_experts(f) || is_aside(t, f)) continue;
        const FullyShard **at = !*f->path ? root : dot && strcmp(dot, ".*") == 0 ? layers : NULL;
        if (!at || *at) {
            cannot(t, f, arena_printf(t->x->a, "fully_shard of '%s' by itself", f->path),
                   "each layer (`for layer in model.layers: fully_shard(layer)`) and the model");
            return false;
        }
        *at = f;
    }
    if (!*root || !*layers) {
        cannot(t, *root ? *root : *layers,
               *root ? "fully_shard of the whole model as one unit"
                     : "fully_shard of the layers without the model",
               "each layer (`for layer in model.layers: fully_shard(layer)`) and the model");
        return false;
    }
    return true;
}
/* shard_placement_fn of the units, as `dims`: the experts' are the most exact. */
static const char *dims_text(Torch *t, const FullyShard *root, const FullyShard *layers) {
    Str s = str_new(t->x->a);
    const char *all = "'*'";
    if (root->dim >= 0) str_addf(&s, "%s: %d", all, root->dim);
    if (layers->dim >= 0 && layers->dim != root->dim)
        str_addf(&s, "%s%s: %d", s.n ? ", " : "", layers->path, layers->dim);
    else if (layers->dim < 0 && root->dim > 0) str_addf(&s, ", %s: 0", layers->path);
    for (int i = 0; i < t->n_calls; i++)
        if (is_experts(&t->call[i]) && t->call[i].dim >= 0)
            str_addf(&s, "%s%s: %d", s.n ? ", " : "", t->call[i].path, t->call[i].dim);
    return s.n ? arena_printf(t->x->a, ", dims: {%s}", s.s) : "";
}
static void sharding(Torch *t) {
    const FullyShard *root = NULL, *layers = NULL;
    Draft *x = t->x;
    if (!t->n_calls || !units(t, &root, &layers)) return;
    FullyShard f = *layers;
    if (!f.n_axes && x->n_axes <= 2)
        for (int i = 0; i < x->n_axes; i++) f.axis[f.n_axes++] = x->axis[i].name;
    if (!same_mesh(root, layers)) cannot(t, root, "units on different meshes", "one mesh for all");
    else if (f.n_axes < 1) cannot(t, layers, "fully_shard over this mesh", "mesh=mesh[\"dp\"]");
    else if (layers->reshard == 0 && root->reshard == 1)
        cannot(t, root, "resharding the root only", "one reshard_after_forward for all");
    if (f.n_axes < 1) return;
    data_axes(t, f.n_axes, f.axis);
    experts_apart(t, f.n_axes, f.axis, "fully_shard", layers->loc);
    tell_asides(t);
    const char *where = f.n_axes == 1 ? arena_printf(x->a, "mode: fsdp, axis: %s", f.axis[0])
                                      : arena_printf(x->a, "mode: hsdp, replicate: %s, shard: %s",
                                                     f.axis[0], f.axis[1]);
    draft_key(x, "data_parallel",
              arena_printf(x->a, "{%s, unit: block, reshard: %s, grad_order: tp_first%s}", where,
                           layers->reshard == 0 ? "false"
                           : root->reshard == 1 ? "true"
                                                : "blocks",
                           dims_text(t, root, layers)),
              layers->loc, "fully_shard");
}
static void plain_replicas(Torch *t) {
    const char *axis = t->ddp;
    if (!axis) return;
    if (!*axis && t->x->n_axes == 1) axis = t->x->axis[0].name;
    if (*axis) data_axes(t, 1, &axis);
    if (*axis) experts_apart(t, 1, &axis, "DistributedDataParallel", t->ddp_loc);
    draft_key(t->x, "data_parallel",
              *axis ? arena_printf(t->x->a, "{mode: ddp, axis: %s}", axis) : "{mode: ddp}",
              t->ddp_loc, "DistributedDataParallel");
}

/* An axis called cp is that of PyTorch's context_parallel, which a file of torchtitan's enters in
 * its training loop: by default chunks from both ends balance the causal mask, and attention
 * gathers keys and values. */
static void context(Torch *t) {
    Draft *x = t->x;
    if (x->mlp || draft_axis_size(x, "cp") < 2) return;
    for (int i = 0; i < x->n_axes; i++)
        if (strcmp(x->axis[i].name, "cp") == 0)
            draft_key(x, "context_parallel", "{mode: all_gather, order: zigzag, axis: cp}",
                      x->axis[i].loc, NULL);
    draft_remark(x, "cp cuts the sequence as PyTorch's context_parallel does unless it is told "
                    "otherwise: head-tail chunks (zigzag), keys and values gathered");
}
/* What the caller hands to the first layer is what its style says. */
static void first_input(Torch *t) {
    Draft *x = t->x;
    if (!x->mlp || !x->n_lines) return;
    const char *style = x->line[0].style, *label = strstr(style, " input: ");
    if (label) {
        label += strlen(" input: ");
        x->block_input = arena_strndup(x->a, label, strcspn(label, ",}"));
    } else if (strcmp(x->line[0].comment, "RowwiseParallel") == 0) {
        x->block_input = "shard(-1)";
    }
}
bool import_torch(Draft *x) {
    Torch t = {.x = x};
    size_t skip = 0;
    const char *s = x->in->text;
    if (x->in->n >= 3 && memcmp(s, "\xEF\xBB\xBF", 3) == 0) skip = 3;
    while (skip < x->in->n && s[skip] && strchr(" \t\r\n", s[skip])) skip++;
    bool python = text_before(x->in->path, ".py");
    draft_options(x);
    if (python || skip >= x->in->n || s[skip] != '{' || !draft_is_json(s + skip, x->in->n - skip)) {
        torch_code(&t);
    } else {
        json_file(&t);
        if (x->in->args)
            diag_error(x->d, "E0212", diag_nowhere, "say it in the file, or leave --args out",
                       "--args is for a Python file, and '%s' is JSON", x->file);
    }
    if (x->in->loss_parallel) t.loss_parallel = true, t.loss_loc = (Loc){x->file, 1, 1};
    torch_boundaries(&t);
    sharding(&t);
    plain_replicas(&t);
    context(&t);
    first_input(&t);
    if (t.loss_parallel)
        draft_line(x, "loss", t.loss_loc, "loss_parallel", t.loss_loc, "loss_parallel()");
    x->names = draft_names(x);
    /* what no line asks for PyTorch does not do: no move of a plain tensor, no sum of the gradient
     * of a plain parameter */
    draft_key(x, "trust", "declared", (Loc){0}, NULL);
    draft_complete(x);
    return !diags_errors(x->d);
}
