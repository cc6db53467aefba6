/* Heads and the ranks they are cut over: more ranks than KV heads split the axis, numbers that do
 * not divide are an error, which is told beside the plan's other mistakes. */
#include "assign/heads.h"
#include "assign/compiled.h"
#include "assign/spec.h"
#include "assign/suggest.h"
#include <string.h>

static bool never_copied(const Assign *a) { return !strcmp(a->plan->kv_replicate, "never"); }
/* Can heads be cut over n ranks: KV heads as well, or each kept whole by as many of them? */
static bool heads_fit(const Assign *a, int64_t n) {
    const int64_t H = a->model->dims.H, K = a->model->dims.K;
    return K % n == 0 ? H % n == 0 : !never_copied(a) && n % K == 0 && H % n == 0;
}
static void heads_error(const Assign *a, const ModuleUse *u, int64_t n) {
    const int64_t H = a->model->dims.H, K = a->model->dims.K;
    const bool never = never_copied(a), only = H % n == 0 && n % K == 0;
    diag_error(a->d, H % n ? "E0303" : "E0305", u->loc,
               arena_printf(a->arena, "choose a number of ranks that divides the %sheads%s: %s%s",
                            only ? "KV " : "",
                            never ? "" : ", and the KV heads or is a multiple of them",
                            suggest_head_ranks(a->arena, never ? K : H, K),
                            only ? ", or remove `kv_replicate: never`" : ""),
               H % n ? "%lld heads cannot be cut over %s of size %lld"
                     : "%lld KV heads cannot be cut over %s of size %lld",
               (long long)(H % n ? H : K), mesh_axes_text(a->mesh, a->arena, &u->axes, true),
               (long long)n);
}
/* The stored dim of parameter t that counts heads and that the style cuts over the axes of the
 * line; -1: it cuts none. */
static int cut_dim(const Assign *a, const Style *s, const GModule *mod, int t) {
    const GTensor *x = &a->model->g.t[t];
    const RawSpec *spec = spec_of_param(a, s, mod, t);
    if (!spec || !spec->set || spec->mapping || spec->bare.kind != RP_SHARD || spec->bare.letter)
        return -1;
    const int dim = spec->bare.dim < 0 ? spec->bare.dim + x->nstored : spec->bare.dim;
    if (dim < 0 || dim >= x->nstored || x->stored[dim] < 2) return -1;
    return x->role[graph_stored_first(x, dim)] == DIM_KV_HEADS ? dim : -1;
}
bool heads_split(Assign *a, Mesh *mesh) {
    const Graph *g = &a->model->g;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->kind != KIND_PARAM || x->module < 0) continue;
        const ModuleUse *u = &a->use[x->module];
        if (!u->style || cut_dim(a, u->style, &g->module[x->module], t) != 0) continue;
        int64_t n = mesh_size(mesh, &u->axes), K = x->size[0], H = a->model->dims.H;
        if (u->axes.n != 1 || K % n == 0) continue;
        const char *name = mesh->axis[u->axes.a[0]].name;
        if (!heads_fit(a, n)) {
            if (!((n % K || H % n) && compiled_heads(a, u->loc, x, 0, &u->axes)))
                heads_error(a, u, n);
            return false;
        }
        diag_note(a->d, "N0004", u->loc, NULL,
                  "%lld KV heads on %s of %lld: the axis is split into %s.0 of %lld, which cuts "
                  "the KV heads, and %s.1 of %lld, over which each KV head is replicated",
                  (long long)K, name, (long long)n, name, (long long)K, name, (long long)(n / K));
        if (!mesh_split(mesh, a->arena, name, K)) {
            diag_error(a->d, "E0703", u->loc, NULL, "axis '%s' cannot be split: too many axes",
                       name);
            return false;
        }
        return true; /* axes are renumbered: start over */
    }
    return false;
}

/* ---- beside other mistakes ---- */
/* Tells it, if the module cannot be cut as the line says. */
static bool tell_module(Assign *a, int module, const PlanLine *line, const char *style) {
    const Graph *g = &a->model->g;
    const GModule *mod = &g->module[module];
    Assign quiet = *a; /* the line's other mistakes are told already */
    PlanLine meant = *line;
    ModuleUse u = {.loc = line->loc};
    quiet.d = diags_new(a->arena);
    if (style) meant.style.name = style;
    u.style = style_resolve_for(a->plan, quiet.d, &meant, mod->kind);
    quiet.no_axis = ARENA_ARRAY(a->arena, bool, a->plan->n_lines);
    if (!u.style || u.style->misread || !spec_axes(&quiet, &u, mod, line)) return false;
    const int64_t n = mesh_size(a->mesh, &u.axes);
    for (int t = 0; t < g->nt && !heads_fit(a, n); t++)
        if (g->t[t].kind == KIND_PARAM && g->t[t].module == module &&
            cut_dim(a, u.style, mod, t) >= 0) {
            heads_error(a, &u, n);
            return true;
        }
    return false;
}
bool heads_tell(Assign *a, const bool *hit) {
    const Plan *p = a->plan;
    const Graph *g = &a->model->g;
    enum { TRIES = 50 }; /* looking for what was meant takes time */
    int tries = 0;
    if (p->trust == TRUST_COMPILER || !a->model->dims.K) return false;
    for (int m = 0; m < g->nm; m++) {
        const ModuleUse *u = &a->use[m];
        const PlanLine *line = u->loc.file ? &p->lines[u->line] : NULL;
        if (line && tell_module(a, m, line, line->bad ? style_nearest(p, line->style.name) : NULL))
            return true;
    }
    for (int i = 0; i < p->n_lines; i++) {
        const PlanLine *l = &p->lines[i];
        if (hit[i] || l->from_recipe || l->kind || tries++ >= TRIES) continue;
        const char *meant = suggest_module(a, l->pattern);
        for (int m = 0; meant && m < g->nm; m++)
            if (g->module[m].path && plan_match(meant, g->module[m].path) &&
                tell_module(a, m, l, l->bad ? style_nearest(p, l->style.name) : NULL))
                return true;
    }
    return false;
}
