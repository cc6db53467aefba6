/* A plan as JAX's PartitionSpecs: where each parameter lies at rest, and the batch of tokens. XLA's
 * partitioner finds the moves: a plan whose lines want others is refused, by comparing the
 * programs. */
#include "export/export.h"
#include <string.h>

/* "layers.*.attention.wq" -> "params/layers_*" "/attention/wq". */
static const char *flax_path(const Export *e, const char *path) {
    Str s = str_new(e->a);
    str_add(&s, "params");
    for (const char *p = path; *p;) {
        size_t n = strcspn(p, ".");
        bool number = n && (strspn(p, "0123456789") >= n || (n == 1 && *p == '*'));
        str_addf(&s, "%s%.*s", number ? "_" : "/", (int)n, p);
        p += n + (p[n] == '.');
    }
    return s.s;
}
/* What the last component is: a kernel is stored the other way round. */
static const char *leaf_of(const Export *e, const GTensor *t, bool *turned) {
    const GModule *m = &e->as->model->g.module[t->module];
    *turned = false;
    if (m->bias == t->id) return "bias";
    if (m->weight != t->id) return NULL;
    if (strcmp(m->kind, "embedding") == 0) return "embedding";
    if (t->nstored == 1) return "scale";
    *turned = t->nstored == 2;
    return *turned ? "kernel" : NULL;
}
/* The axes that cut a stored dim, as JSON; NULL and an error: they cut it in a way that no
 * PartitionSpec has. */
static const char *entry_text(const Export *e, const GTensor *t, const Layout *l, int dim) {
    const Mesh *m = e->as->mesh;
    Str s = str_new(e->a);
    int n = 0, inner = 0; /* cut letters behind the first */
    const int first = graph_stored_first(t, dim);
    for (int k = 0; k < t->stored[dim]; k++) {
        AxisList one = layout_dim_axes(l, first + k);
        for (int i = 0; i < one.n; i++) {
            if (m->axis[one.a[i]].size == 1) continue;
            inner |= k > 0;
            str_addf(&s, "%s%s", n++ ? ", " : "", export_python_text(e->a, m->axis[one.a[i]].name));
        }
    }
    AxisList list = {0};
    if (l->n[l->ndim] && l->list == dim) list = layout_dim_axes(l, l->ndim);
    for (int i = 0; i < list.n; i++)
        if (m->axis[list.a[i]].size > 1)
            str_addf(&s, "%s%s", n++ ? ", " : "",
                     export_python_text(e->a, m->axis[list.a[i]].name));
    if (inner || l->flat.total) {
        int line = e->as->line[t->id];
        export_refuse(e, line >= 0 ? e->p->lines[line].style_loc : e->p->mesh_loc,
                      "cut whole dims: heads, rows, columns",
                      "a PartitionSpec cuts a dim as one list: '%s' is cut inside", graph_name(t));
        return NULL;
    }
    return n > 1 ? arena_printf(e->a, "[%s]", s.s) : n ? s.s : "null";
}
static const char *spec_text(const Export *e, const GTensor *t, bool turned) {
    const Layout *l = &e->as->rest[t->id];
    Str s = str_new(e->a);
    for (int i = 0; i < t->nstored; i++) {
        const char *one = entry_text(e, t, l, turned ? t->nstored - 1 - i : i);
        if (!one) return NULL;
        str_addf(&s, "%s%s", i ? ", " : "", one);
    }
    return arena_printf(e->a, "[%s]", s.s);
}
typedef struct {
    const char *path, *star, *spec; /* exact, with any layer's number, and its value */
} Spec;
/* Layers alike become one line. */
static void write_specs(const Export *e, Str *out, const Spec *x, int n) {
    for (int i = 0; i < n; i++) {
        bool same = true, there = false;
        for (int k = 0; k < n; k++) {
            bool like = strcmp(x[k].star, x[i].star) == 0;
            same = same && (!like || strcmp(x[k].spec, x[i].spec) == 0);
            there = there || (like && k < i);
        }
        if (same && there) continue;
        str_addf(out, ",\n  %s: %s", export_python_text(e->a, same ? x[i].star : x[i].path),
                 x[i].spec);
    }
}
/* [batch, sequence] of the tokens. */
static const char *tokens_text(const Export *e) {
    const Graph *g = &e->as->model->g;
    for (int t = 0; t < g->nt; t++)
        if (g->t[t].producer < 0 && g->t[t].kind != KIND_PARAM && !g->t[t].state_of &&
            g->t[t].nstored >= 2) {
            const char *batch = entry_text(e, &g->t[t], &e->as->rest[t], 0),
                       *sequence = entry_text(e, &g->t[t], &e->as->rest[t], 1);
            return batch && sequence ? arena_printf(e->a, "[%s, %s]", batch, sequence) : NULL;
        }
    return "[null, null]";
}
const char *export_jax(const Export *e) {
    const Graph *g = &e->as->model->g;
    int before = diags_errors(e->d), n = 0;
    export_refuse_keys(e, "jax", true, false);
    if (e->as->mesh->naxes != e->p->n_axes)
        export_refuse(e, e->p->mesh_loc, "at most as many ranks as KV heads",
                      "a PartitionSpec has no copies of KV heads");
    if (diags_errors(e->d) > before) return NULL;
    Spec *x = ARENA_ARRAY(e->a, Spec, g->nt);
    for (int t = 0; t < g->nt; t++) {
        const GTensor *v = &g->t[t];
        if (v->kind != KIND_PARAM) continue;
        bool turned;
        const char *path = export_path(e, &g->module[v->module]), *leaf = leaf_of(e, v, &turned),
                   *spec = leaf ? spec_text(e, v, turned) : NULL;
        int line = e->as->line[t];
        if (!leaf)
            export_refuse(e, line >= 0 ? e->p->lines[line].loc : e->p->model_loc,
                          "models whose parameters are kernels, embeddings, scales and biases",
                          "no PartitionSpec is read here of '%s'", graph_name(v));
        if (!spec) continue;
        path = arena_printf(e->a, "%s.%s", path, leaf);
        x[n++] = (Spec){flax_path(e, path), flax_path(e, plan_pattern_of(e->a, path)), spec};
    }
    const char *tokens = tokens_text(e);
    if (diags_errors(e->d) > before || !tokens) return NULL;
    Str out = str_new(e->a);
    str_addf(&out, "{\n  \"tokens\": %s", tokens);
    write_specs(e, &out, x, n);
    str_add(&out, "\n}\n");
    ImportInput in = export_input(e, "jax", out.s);
    Str mesh = str_new(e->a);
    for (int i = 0; i < e->p->n_axes; i++)
        str_addf(&mesh, "%s%s=%lld", i ? "," : "", e->p->axes[i].name,
                 (long long)e->p->axes[i].size);
    in.mesh = mesh.n ? mesh.s : "dp=1"; /* a mesh has an axis */
    ExportDifference d = export_difference(e, &in);
    if (d.same) return out.s;
    export_refuse_difference(e, "jax",
                             "where parameters lie is all that is said: each move with the fewest "
                             "bytes follows",
                             &d);
    return NULL;
}
