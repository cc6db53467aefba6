/* A plan as the tp_plan of Hugging Face's transformers: pattern -> style, which the library lays
 * over the plan that it ships with a model type. A module of that plan that is whole here gets a
 * line that says so. */
#include "base/file.h"
#include "export/export.h"
#include <string.h>

typedef struct {
    const char *pattern, *style;
    Loc at;
} HfLine;
typedef struct {
    const Export *e;
    HfLine *line;
    int n, cap;
} HfWriter;

/* The library's name of a style; NULL and an error. */
static const char *style_text(const Export *e, const Style *s, const char *said, Loc at,
                              const char *kind) {
    int blocks;
    bool linear, embedding = strcmp(kind, "embedding") == 0;
    const char *const experts[] = {"ep_dispatch_experts", "grouped_gemm"};
    for (int i = 0; i < 2; i++)
        if (strcmp(experts[i], s->name) == 0) {
            export_refuse(e, s->loc.file ? s->loc : at,
                          "take the lines of experts out, and write `import hf --ep N` or "
                          "DistributedConfig(ep_size=N): the library ships the table",
                          "'%s' stands in the ep_plan of transformers, not in a tp_plan", s->name);
            return NULL;
        }
    const char *name = embedding && strcmp(s->name, "rowwise") == 0   ? "embedding_rowwise"
                       : embedding && strcmp(s->name, "colwise") == 0 ? "embedding_colwise"
                                                                      : s->name;
    if (style_builtin(name) && style_hf(name, &blocks, &linear) != HF_NOT) return name;
    export_refuse(e, s->loc.file ? s->loc : at,
                  "the styles that the library has: colwise, rowwise, colwise_gather_output, "
                  "rowwise_split_input, packed_*, embedding_*, replicated_with_grad_allreduce, "
                  "moe_tp_experts, ep_dispatch_experts, grouped_gemm",
                  "no style of transformers does what '%s' does", said ? said : name);
    return NULL;
}
/* The library looks for keys among names without numbers: a line is of all layers, or it raises
 * (transformers 5.23, distributed/mixin.py, _resolve_parallel_plans). */
static void add(HfWriter *w, const char *exact, const char *style, Loc at) {
    const char *pattern = plan_pattern_of(w->e->a, exact);
    if (!style) return;
    for (int i = 0; i < w->n; i++) {
        if (strcmp(w->line[i].pattern, pattern) != 0) continue;
        if (strcmp(w->line[i].style, style) != 0)
            export_refuse(w->e, at.file ? at : w->line[i].at, "the same style in every layer",
                          "a tp_plan speaks of all layers at once, and '%s' is %s here and %s in "
                          "another",
                          exact, style, w->line[i].style);
        return;
    }
    *ARENA_PUSH(w->e->a, w->line, w->n, w->cap) = (HfLine){pattern, style, at};
}
static void modules(HfWriter *w) {
    const Export *e = w->e;
    const Graph *g = &e->as->model->g;
    for (int m = 0; m < g->nm; m++) {
        const GModule *mod = &g->module[m];
        const ModuleUse *u = &e->as->use[m];
        int before = diags_errors(e->d);
        if (u->style && !mod->hf_path)
            export_refuse(e, u->loc, "take the line out", "transformers has no module '%s'",
                          mod->path);
        else if (u->style && (u->axes.n != 1 || u->axes.a[0] != u->seq_axes.a[0]))
            export_refuse(e, u->style->loc.file ? u->style->loc : u->loc,
                          "one axis for all modules",
                          "a tp_plan is for one axis, and %s lies over several", mod->path);
        else if (u->style)
            add(w, mod->hf_path, style_text(e, u->style, u->name, u->loc, mod->kind), u->loc);
        else if (mod->hf_path && import_hf_ships(plan_pattern_of(e->a, mod->hf_path)))
            add(w, mod->hf_path, "replicate", diag_nowhere);
        if (diags_errors(e->d) > before && u->line >= 0) /* the line's other modules: the same */
            while (m + 1 < g->nm && e->as->use[m + 1].style && e->as->use[m + 1].line == u->line)
                m++;
    }
}
/* Weights of experts have lines of their own. */
static void parameters(HfWriter *w) {
    const Export *e = w->e;
    const Graph *g = &e->as->model->g;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *v = &g->t[t];
        int line = v->kind == KIND_PARAM ? e->as->line[t] : -1;
        if (line < 0 || (e->as->use[v->module].style && e->as->use[v->module].line == line))
            continue;
        const PlanLine *l = &e->p->lines[line];
        Diags *again = diags_new(e->a);
        const Style *s = style_resolve_for(e->p, again, l, g->module[v->module].kind);
        if (s) add(w, v->name, style_text(e, s, NULL, l->loc, g->module[v->module].kind), l->loc);
    }
}
static const char *json_text(const HfWriter *w) {
    Str s = str_new(w->e->a);
    str_add(&s, "{");
    for (int i = 0; i < w->n; i++)
        str_addf(&s, "%s\n  %s: \"%s\"", i ? "," : "",
                 export_python_text(w->e->a, w->line[i].pattern), w->line[i].style);
    str_add(&s, "\n}\n");
    return w->n ? s.s : NULL;
}
static const char *checked(const Export *e, const char *text, int64_t tp) {
    const Plan *p = e->p;
    ImportInput in = export_input(e, "hf", text);
    in.path = NULL, in.text = "", in.n = 0;
    in.tp_plan_text = text, in.tp = tp;
    if (p->hf_config) in.model = NULL, in.config = file_join(e->a, p->dir, p->hf_config);
    Str mesh = str_new(e->a); /* axes of data parallelism beside it */
    for (int i = 0; i < p->n_axes; i++)
        if (e->as->mesh->naxes == p->n_axes && p->axes[i].size > 1)
            str_addf(&mesh, "%s%s=%lld", mesh.n ? "," : "",
                     (e->as->tokens >> i & 1) ? p->axes[i].name : "tp", (long long)p->axes[i].size);
    if (mesh.n) in.mesh = mesh.s, in.tp = -1;
    ExportDifference d = export_difference(e, &in);
    if (d.same) return text;
    export_refuse_difference(e, "hf",
                             "boundary: per_module, since each of the library's layers moves its "
                             "own input; one axis; no line for the sequence",
                             &d);
    return NULL;
}
const char *export_hf(const Export *e) {
    HfWriter w = {.e = e};
    Roles r;
    int before = diags_errors(e->d);
    export_refuse_keys(e, "hf", false, false);
    if (e->p->data_parallel.loc.file)
        export_refuse(e, e->p->data_parallel.loc, "take `data_parallel` out",
                      "a tp_plan says nothing about data parallelism");
    if (diags_errors(e->d) > before || !export_roles(e, &r)) return NULL;
    modules(&w);
    parameters(&w);
    if (diags_errors(e->d) > before) return NULL;
    const char *text = json_text(&w);
    if (!text)
        export_refuse(e, e->p->mesh_loc, "a `plan` with styles",
                      "nothing of this plan is a tp_plan");
    return text ? checked(e, text, r.tp) : NULL;
}
