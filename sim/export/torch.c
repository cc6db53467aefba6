/* A plan as the Python around parallelize_module and fully_shard. Styles are written module by
 * module, since PyTorch applies every pattern that matches and a plan only the more exact one. */
#include "export/export.h"
#include "base/text.h"
#include "import/write.h"
#include <ctype.h>
#include <string.h>

typedef struct {
    const char *pattern; /* "layers.*.attention.wq" */
    const char *axis, *call;
} TorchLine;
typedef struct {
    const Export *e;
    int n, cap;
    TorchLine *entry;
    bool loss_parallel;
    const char *data; /* lines of data parallelism */
} TorchWriter;

const char *export_python_text(Arena *a, const char *s) {
    Str out = str_new(a);
    text_add_json(&out, s);
    return out.s;
}

/* ---- what no table of styles says ---- */
static bool cuts_sequence(const Export *e, int axis) {
    return e->as->mesh->axis[axis].size > 1 && (e->as->tokens >> axis & 1) &&
           strncmp(e->as->mesh->axis[axis].name, "cp", 2) == 0;
}
static void refuse_keys(const Export *e) {
    const Plan *p = e->p;
    for (int i = 0; i < p->n_axes && e->as->mesh->naxes == p->n_axes; i++)
        if (cuts_sequence(e, i))
            export_refuse(e,
                          p->context_parallel.mode_loc.file ? p->context_parallel.mode_loc
                                                            : p->axes[i].loc,
                          "context parallelism is code around attention: take the axis out",
                          "no table of styles cuts the sequence over '%s'", p->axes[i].name);
    if (p->cut_sequence && e->as->mesh->naxes == p->n_axes && !p->context_parallel.mode)
        export_refuse(e, p->cut_sequence_loc, "leave `data.cut` out",
                      "no table of styles cuts the sequence of the data");
    if (p->pipeline.loc.file)
        export_refuse(
            e, p->pipeline.loc,
            "take `pipeline` and its axis out, its stages and schedule are code around "
            "the model (torch.distributed.pipelining); or --to torchtitan, --to megatron: "
            "those have arguments for them",
            "no table of styles cuts the layers into stages");
    if (p->recompute)
        export_refuse(e, p->recompute_loc,
                      "recompute: none, and checkpoint_wrapper in your own code",
                      "`recompute: block` is code of the model, no style");
    if (!p->save_gathered)
        export_refuse(e, p->save_gathered_loc, "save_gathered: true",
                      "what PyTorch's styles gather is kept for the backward pass");
    for (int i = 0; i < p->n_faults; i++)
        export_refuse(e, p->faults[i].loc, "leave `faults` out", "a planted fault is no plan");
    for (int i = 0; i < p->n_gradients; i++)
        export_refuse(e, p->gradients[i].loc, "leave `gradients` out",
                      "how a gradient is reduced follows from the style");
}
/* More ranks than KV heads: the pass that lays out has split an axis for their copies. */
static bool kv_copies(const Export *e) {
    const Graph *g = &e->as->model->g;
    if (e->as->mesh->naxes == e->p->n_axes) return false;
    Loc at = e->p->mesh_loc;
    for (int m = 0; m < g->nm; m++)
        if (strstr(g->module[m].hf_path ? g->module[m].hf_path : "", "k_proj") &&
            e->as->use[m].style)
            at = e->as->use[m].loc;
    export_refuse(e, at, "at most as many ranks as KV heads",
                  "DTensor cuts the rows of a weight evenly, in the midst of a head: it has no "
                  "copies of KV heads");
    return true;
}

/* ---- modules ---- */
const char *export_path(const Export *e, const GModule *m) {
    bool foreign = e->p->names == NAMES_GGUF || e->p->names == NAMES_MEGATRON;
    const char *other =
        foreign && m->hf_path ? names_to_scheme(e->a, NAMES_TORCHTITAN, m->hf_path) : NULL;
    return other ? other : m->path;
}
static bool has_number(const char *pattern) {
    for (const char *p = pattern; *p; p++)
        if (isdigit((unsigned char)*p) && (p == pattern || p[-1] == '.') &&
            (p[1 + strspn(p + 1, "0123456789")] == '.' || !p[1 + strspn(p + 1, "0123456789")]))
            return true;
    return false;
}
static const char *axis_of(const Export *e, const ModuleUse *u, const char *path) {
    const Mesh *mesh = e->as->mesh;
    bool same = u->axes.n == u->seq_axes.n && u->axes.n == 1 && u->axes.a[0] == u->seq_axes.a[0];
    if (same) return mesh->axis[u->axes.a[0]].name;
    export_refuse(e, u->style->loc.file ? u->style->loc : u->loc, "one axis for each module",
                  "parallelize_module takes a mesh of one axis, and %s lies over several", path);
    return NULL;
}
/* Inside of a module whose inputs are DTensors already? PyTorch then moves nothing at this one. */
static bool prepared(const Export *e, int module) {
    for (int m = e->as->model->g.module[module].parent; m >= 0;
         m = e->as->model->g.module[m].parent)
        if (e->as->use[m].hands_in) return true;
    return false;
}
/* In a backward pass it matters whether modules that read one value share its move. */
static void check_boundary(const Export *e, int module) {
    const Graph *g = &e->as->model->g;
    const ModuleUse *u = &e->as->use[module];
    const GModule *m = &g->module[module];
    bool column = strncmp(u->style->name, "colwise", 7) == 0, inside = prepared(e, module);
    if (e->p->pass == PASS_FORWARD || !column || u->per_module == !inside) return;
    for (int k = 0; k < g->nm; k++) {
        bool reads = m->n_input && g->module[k].n_input && g->module[k].input[0] == m->input[0];
        if (k == module || !reads || !e->as->use[k].style ||
            strncmp(e->as->use[k].style->name, "colwise", 7) != 0)
            continue;
        export_refuse(
            e, u->style->loc.file ? u->style->loc : u->loc,
            inside ? "boundary: shared"
                   : "boundary: per_module, or prepare_module_input at the module around it",
            inside ? "inside of prepare_module_input PyTorch sums the gradient of a shared "
                     "input once, not at each module"
                   : "PyTorch sums the gradient of a shared input at each ColwiseParallel");
        return;
    }
}
/* Does every layer say the same of this place, so that `*` can stand for the number? */
static bool same_in_all(const TorchWriter *w, const char *star, const TorchLine *like, int skip) {
    for (int i = 0; i < w->n; i++) {
        const TorchLine *x = &w->entry[i];
        if (i != skip && strcmp(plan_pattern_of(w->e->a, x->pattern), star) == 0 &&
            (strcmp(x->call, like->call) != 0 || strcmp(x->axis, like->axis) != 0))
            return false;
    }
    return true;
}
/* Layers that no line speaks of: a pattern would reach them. */
static bool speaks_of_all(const Export *e, const char *star) {
    const Graph *g = &e->as->model->g;
    for (int m = 0; m < g->nm; m++) {
        const ModuleUse *u = &e->as->use[m];
        if (strcmp(plan_pattern_of(e->a, export_path(e, &g->module[m])), star) != 0) continue;
        if (!u->style || has_number(e->p->lines[u->line].pattern)) return false;
    }
    return true;
}
/* Layers alike become one pattern. */
static void fold(TorchWriter *w) {
    int kept = 0;
    for (int i = 0; i < w->n; i++) {
        const char *star = plan_pattern_of(w->e->a, w->entry[i].pattern);
        if (speaks_of_all(w->e, star) && same_in_all(w, star, &w->entry[i], i))
            w->entry[i].pattern = star;
    }
    for (int i = 0; i < w->n; i++) {
        bool there = false;
        for (int k = 0; k < kept; k++)
            there |= strcmp(w->entry[k].pattern, w->entry[i].pattern) == 0;
        if (!there) w->entry[kept++] = w->entry[i];
    }
    w->n = kept;
}
static void module_line(TorchWriter *w, int m) {
    const Export *e = w->e;
    const GModule *mod = &e->as->model->g.module[m];
    const ModuleUse *u = &e->as->use[m];
    if (strcmp(u->style->name, "loss_parallel") == 0 && strcmp(mod->kind, "loss") == 0) {
        w->loss_parallel = true;
        return;
    }
    const char *path = export_path(e, mod), *axis = axis_of(e, u, path),
               *call = axis ? export_torch_style(e, m, axis) : NULL;
    check_boundary(e, m);
    if (call) *ARENA_PUSH(e->a, w->entry, w->n, w->cap) = (TorchLine){path, axis, call};
}
/* In the order of the plan's lines. A line that gives no module a style must not be lost. */
static void modules(TorchWriter *w) {
    const Export *e = w->e;
    const Graph *g = &e->as->model->g;
    for (int l = 0; l < e->p->n_lines; l++) {
        const PlanLine *line = &e->p->lines[l];
        int found = 0, before = diags_errors(e->d);
        for (int m = 0; m < g->nm; m++) {
            if (!e->as->use[m].style || e->as->use[m].line != l) continue;
            found++;
            if (diags_errors(e->d) == before) module_line(w, m);
        }
        bool parameter = false;
        for (int t = 0; t < g->nt; t++)
            parameter |=
                g->t[t].kind == KIND_PARAM && e->as->line[t] == l &&
                (!e->as->use[g->t[t].module].style || e->as->use[g->t[t].module].line != l);
        if (parameter)
            export_refuse(e, line->loc, "a line for its module",
                          "PyTorch's styles speak of modules, not of one parameter");
        else if (!found && !line->from_recipe)
            export_refuse(e, line->loc, "leave it out", "this line gives no module a style");
    }
    fold(w);
}

/* ---- data parallelism ---- */
static const char *mesh_of(const Export *e, const char *axes) {
    AxisList l;
    Str s = str_new(e->a);
    if (!mesh_lookup(e->as->mesh, axes, &l) || l.n != 1) return NULL;
    str_addf(&s, "mesh[%s]", export_python_text(e->a, e->as->mesh->axis[l.a[0]].name));
    return s.s;
}
/* The one axis of more than one rank over which data is split; NULL and an error for several. */
static const char *data_axis(const Export *e, bool *none) {
    const Mesh *mesh = e->as->mesh;
    const char *name = NULL;
    int n = 0;
    for (int i = 0; i < mesh->naxes; i++) {
        bool data = false;
        for (int k = 0; k < e->as->data.n; k++) data |= e->as->data.a[k] == i;
        data |= !e->as->data.n && (e->as->tokens >> i & 1);
        if (data && mesh->axis[i].size > 1 && !cuts_sequence(e, i)) name = mesh->axis[i].name, n++;
    }
    *none = !n;
    if (n > 1)
        export_refuse(e, e->p->data_parallel.loc.file ? e->p->data_parallel.loc : e->p->mesh_loc,
                      "one axis; two of hsdp are `replicate` and `shard`",
                      "a mesh of one axis is wanted for data parallelism, not of %d", n);
    return n == 1 ? name : NULL;
}
static const char *layers_path(const Export *e) {
    const char *blocks = e->p->names == NAMES_HF ? "model.model.layers" : "model.layers";
    return e->as->model->dims.mlp ? NULL : blocks;
}
static void sharding(TorchWriter *w, const char *mesh) {
    const Export *e = w->e;
    const Plan *p = e->p;
    Loc at = p->data_parallel.loc;
    const Reshard *again = e->as->reshard;
    const char *layers = layers_path(e);
    if (again->once)
        export_refuse(e, at, "reshard: false",
                      "that parameters stay gathered is set in the training loop, with "
                      "set_reshard_after_backward(False)");
    if (e->as->keep.n)
        export_refuse(e, at, "leave `reshard_over` out",
                      "fully_shard takes a number of neighbouring ranks there, not axes");
    if (p->n_dims)
        export_refuse(e, p->data_parallel.dims_loc, "leave `dims` out",
                      "fully_shard takes a function there, shard_placement_fn: not written");
    if (!layers)
        export_refuse(e, at, "leave `data_parallel` out", "fully_shard wants a model of layers");
    if (plan_data_unit(p) != UNIT_BLOCK)
        export_refuse(e, at, "unit: block",
                      "fully_shard is written for each layer: a layer is gathered at a time");
    if (w->n && strcmp(p->data_parallel.grad_order, "tp_first") != 0)
        export_refuse(e, at, "grad_order: tp_first",
                      "PyTorch sums the gradients of tensor parallelism before fully_shard's");
    w->data = arena_printf(e->a,
                           "for layer in %s:\n"
                           "    fully_shard(layer, mesh=%s, reshard_after_forward=%s)\n"
                           "fully_shard(model, mesh=%s, reshard_after_forward=%s)\n",
                           layers ? layers : "", mesh, again->blocks ? "True" : "False", mesh,
                           again->rest ? "True" : "False");
}
static void data_parallel(TorchWriter *w) {
    const Export *e = w->e;
    const DataMode *mode = plan_data_mode(e->p);
    bool none;
    if (mode->cuts_state && !mode->cuts_params)
        export_refuse(e, e->p->data_parallel.mode_loc, "mode: ddp",
                      "%s is the optimizer's, which is not exported: as DistributedDataParallel "
                      "alone it would be another plan",
                      mode->name);
    if (mode->copies) {
        const char *copies = mesh_of(e, e->p->data_parallel.replicate),
                   *shards = mesh_of(e, e->p->data_parallel.shard);
        if (copies && shards) /* mesh["a"], mesh["b"] -> mesh["a", "b"] */
            sharding(w,
                     arena_printf(e->a, "%.*s, %s", (int)strlen(copies) - 1, copies, shards + 5));
        else
            export_refuse(e, e->p->data_parallel.loc, "one axis for `replicate`, one for `shard`",
                          "fully_shard takes a mesh of two axes");
        return;
    }
    const char *axis = data_axis(e, &none);
    if (!axis) return;
    const char *mesh = arena_printf(e->a, "mesh[%s]", export_python_text(e->a, axis));
    if (mode->cuts_params) sharding(w, mesh);
    else
        w->data =
            arena_printf(e->a, "model = DistributedDataParallel(model, device_mesh=%s)\n", mesh);
}

/* ---- the text ---- */
static void tables(const TorchWriter *w, PlanWriter *out) {
    const Mesh *mesh = w->e->as->mesh;
    for (int a = 0; a < mesh->naxes; a++) {
        int n = 0;
        for (int i = 0; i < w->n; i++) {
            if (strcmp(w->entry[i].axis, mesh->axis[a].name) != 0) continue;
            if (!n++)
                write_text(out, "model = parallelize_module(\n    model,\n    mesh[%s],\n    {\n",
                           export_python_text(w->e->a, mesh->axis[a].name));
            write_text(out, "        %s: %s,\n", export_python_text(w->e->a, w->entry[i].pattern),
                       w->entry[i].call);
        }
        if (n) write_text(out, "    },\n)\n");
    }
}
static void mesh_line(const Export *e, PlanWriter *out) {
    Str size = str_new(e->a), name = str_new(e->a);
    int n = e->p->n_axes;
    for (int i = 0; i < n; i++) {
        str_addf(&size, "%s%lld", i ? ", " : "", (long long)e->p->axes[i].size);
        str_addf(&name, "%s%s", i ? ", " : "", export_python_text(e->a, e->p->axes[i].name));
    }
    const char *comma = n == 1 ? "," : "";
    write_text(out, "mesh = init_device_mesh(\"cuda\", (%s%s), mesh_dim_names=(%s%s))\n", size.s,
               comma, name.s, comma);
}
/* PyTorch averages gradients over the ranks of data parallelism, a plan adds them up: the same only
 * for the right loss. */
static void data_lines(const TorchWriter *w, PlanWriter *out) {
    const Plan *p = w->e->p;
    if (!w->data) return;
    if (p->pass != PASS_FORWARD && strcmp(p->normalise, "global") == 0) {
        write_comment(out, "PyTorch averages these gradients. The plan's loss is the mean over the "
                           "tokens of all ranks:");
        write_comment(out,
                      "a rank's is its sum / all tokens * ranks, its own mean where all have as "
                      "many tokens.");
    }
    write_text(out, "%s", w->data);
}
/* Is it called there, as a name of its own? Before it stand a blank, "=", "(", ... */
static bool called(const char *body, const char *name) {
    size_t n = strlen(name);
    for (const char *p = strstr(body, name); p; p = strstr(p + 1, name)) {
        bool inside = p > body && (isalnum((unsigned char)p[-1]) || p[-1] == '_');
        if (!inside && p[n] == '(') return true;
    }
    return false;
}
/* What the body calls, from where it comes: "from MODULE import A, B". */
static void import_lines(const char *body, PlanWriter *out) {
    static const struct {
        const char *module;
        const char *name[9];
    } rows[] = {
        {"torch.distributed.device_mesh", {"init_device_mesh"}},
        {"torch.distributed.fsdp", {"fully_shard"}},
        {"torch.distributed.tensor", {"Partial", "Replicate", "Shard"}},
        {"torch.distributed.tensor.parallel",
         {"ColwiseParallel", "PrepareModuleInput", "PrepareModuleInputOutput",
          "PrepareModuleOutput", "RowwiseParallel", "SequenceParallel", "loss_parallel",
          "parallelize_module"}},
        {"torch.nn.parallel", {"DistributedDataParallel"}},
        {"torchtitan.distributed", {"NoParallel"}},
        {"torchtitan.distributed.expert_parallel",
         {"ExpertParallel", "ReordererSequenceParallel", "TensorParallel"}},
    };
    for (size_t r = 0; r < sizeof rows / sizeof *rows; r++) {
        int n = 0;
        for (int i = 0; rows[r].name[i]; i++) {
            if (!called(body, rows[r].name[i])) continue;
            if (!n++) write_text(out, "from %s import (\n", rows[r].module);
            write_text(out, "    %s,\n", rows[r].name[i]);
        }
        if (n) write_text(out, ")\n");
    }
}
const char *export_torch(const Export *e) {
    TorchWriter w = {.e = e};
    int before = diags_errors(e->d);
    refuse_keys(e);
    if (!kv_copies(e)) {
        modules(&w);
        data_parallel(&w);
    }
    if (!w.n && !w.data && diags_errors(e->d) == before)
        export_refuse(e, e->p->mesh_loc, "a `plan` with styles, or `data_parallel`",
                      "nothing of this plan is a table of styles");
    if (diags_errors(e->d) > before) return NULL;
    PlanWriter body = write_start(e->a), out = write_start(e->a);
    out.s = export_head(e, "PyTorch's calls", "torch",
                        "Model, data, optimizer and expectations stay in the plan.");
    mesh_line(e, &body);
    tables(&w, &body);
    data_lines(&w, &body);
    if (w.loss_parallel)
        write_text(&body, "with loss_parallel():\n    loss = loss_fn(model(inputs), labels)\n    "
                          "loss.backward()\n");
    import_lines(body.s.s, &out);
    write_text(&out, "\n%s", body.s.s);
    return out.s.s;
}
