/* Matching a plan's lines with a model and turning placements into layouts. Refuses to move
 * anything. */
#include "assign/assign.h"
#include "assign/dtensor.h"
#include "assign/sums.h"
#include <string.h>

/* ---- mesh ---- */
static const char *nearest_axis(const Mesh *m, const char *word) {
    const char *names[MESH_MAX_AXES + 33];
    int n = 0;
    for (int a = 0; a < m->naxes; a++) names[n++] = m->axis[a].name;
    for (int g = 0; g < m->ngroups; g++) names[n++] = m->group[g].name;
    names[n] = NULL;
    return diag_nearest(word, names);
}
bool assign_axes(const Mesh *m, Arena *arena, Diags *d, const char *text, Loc loc, AxisList *out) {
    memset(out, 0, sizeof *out);
    bool ok = true;
    char *copy = arena_strdup(arena, text), *save = NULL;
    for (char *w = strtok_r(copy, "* ", &save); w; w = strtok_r(NULL, "* ", &save)) {
        AxisList l;
        if (!mesh_lookup(m, w, &l)) {
            const char *near = nearest_axis(m, w);
            diag_error(d, "E0204", loc,
                       near ? arena_printf(arena, "did you mean '%s'?", near)
                            : "axes are declared under `mesh`, names for them under `groups`",
                       "unknown axis or group '%s'", w);
            ok = false;
            continue;
        }
        for (int i = 0; i < l.n; i++) {
            for (int k = 0; k < out->n; k++)
                if (out->a[k] == l.a[i]) {
                    diag_error(d, "E0407", loc, NULL, "axis '%s' stands twice in '%s'",
                               m->axis[l.a[i]].name, text);
                    return false;
                }
            out->a[out->n++] = l.a[i];
        }
    }
    return ok && out->n > 0;
}
Mesh *assign_mesh(Arena *arena, Diags *d, const Plan *p) {
    Mesh *m = ARENA_NEW(arena, Mesh);
    int before = diags_errors(d);
    if (p->n_axes > MESH_MAX_AXES) {
        diag_error(d, "E0703", p->mesh_loc, NULL, "%d mesh axes; this version handles at most %d",
                   p->n_axes, MESH_MAX_AXES);
        return NULL;
    }
    for (int a = 0; a < p->n_axes; a++)
        m->axis[m->naxes++] =
            (MeshAxis){.name = p->axes[a].name, .size = p->axes[a].size < 1 ? 1 : p->axes[a].size};
    if (!mesh_finish(m)) {
        diag_error(d, "E0306", p->mesh_loc, "the product of the axes is the number of ranks",
                   "the mesh has more than 2^63 ranks");
        return NULL;
    }
    if (m->nranks > MESH_MAX_RANKS) {
        diag_error(d, "E0703", p->mesh_loc, "make its axes smaller",
                   "the mesh has %lld ranks; the limit is %d", (long long)m->nranks,
                   MESH_MAX_RANKS);
        return NULL;
    }
    for (int g = 0; g < p->n_groups && m->ngroups < 32; g++) {
        AxisList l;
        if (!assign_axes(m, arena, d, p->groups[g].text, p->groups[g].value_loc, &l)) continue;
        m->group[m->ngroups].name = p->groups[g].key;
        m->group[m->ngroups++].axes = l;
    }
    return diags_errors(d) > before ? NULL : m;
}

/* ---- which axes a line speaks of ---- */
static const char *default_axis(const Assign *a, bool vocab) {
    AxisList l;
    if (vocab && mesh_lookup(a->mesh, "vp", &l)) return "vp";
    if (mesh_lookup(a->mesh, "tp", &l)) return "tp";
    return a->plan->n_axes == 1 ? a->plan->axes[0].name : NULL;
}
static bool use_axes(Assign *a, ModuleUse *u, const GModule *m) {
    AxisList l;
    const char *axis = u->style->axis ? u->style->axis : default_axis(a, m->vocab);
    if (!axis) {
        diag_error(a->d, "E0204", u->loc, "write `axis:` in the line, or name an axis `tp`",
                   "style '%s' acts on no axis: the mesh has no `tp`", u->name);
        return false;
    }
    if (!assign_axes(a->mesh, a->arena, a->d, axis, u->style->loc.file ? u->style->loc : u->loc,
                     &u->axes))
        return false;
    u->group = u->seq_group = axis;
    u->seq_axes = u->axes;
    if (!u->style->axis && mesh_lookup(a->mesh, "sp", &l)) {
        u->seq_axes = l;
        u->seq_group = "sp";
    }
    return true;
}

/* ---- placements onto layouts ---- */
/* First letter of stored dim `dim`, and how many letters it has. */
static int stored_first(const GTensor *t, int dim) {
    int f = 0;
    for (int i = 0; i < dim; i++) f += t->stored[i];
    return f;
}
static CutHow how_ordered(const Assign *a, const GTensor *t, int letter, int axis, const char *o) {
    const Plan *p = a->plan;
    AxisList cp;
    if (t->kind == KIND_PARAM || strcmp(t->sym[letter], "S")) return CUT_CHUNK;
    const char *name = p->context_parallel.axis ? p->context_parallel.axis : "cp";
    if (!mesh_lookup(a->mesh, name, &cp)) return CUT_CHUNK;
    for (int i = 0; i < cp.n; i++)
        if (cp.a[i] == axis) {
            if (o && !strcmp(o, "zigzag")) return CUT_ZIGZAG;
            if (o && !strcmp(o, "striped")) return CUT_STRIPED;
        }
    return CUT_CHUNK;
}
static CutHow how_for(const Assign *a, const GTensor *t, int letter, int axis) {
    return how_ordered(a, t, letter, axis, a->plan->context_parallel.order);
}
static void cut_letter(const Assign *a, const GTensor *t, Layout *l, int letter, int axis,
                       const char *group, const char **names) {
    if (layout_where(l, axis) != letter) {
        layout_set_type(l, axis, TY_I);
        layout_cut(l, letter, axis, how_for(a, t, letter, axis));
    }
    if (names) names[axis] = group;
}
/* Does this stored dim count heads: K, K*G, or either times d? */
static bool counts_heads(const GTensor *t, int dim) {
    return !strcmp(t->sym[stored_first(t, dim)], "K");
}
/* Cuts a stored dim that counts heads or is made of several letters: each axis takes the first
 * letter whose rest it divides. What is left over of the axes on a tensor without a query-head
 * letter (k, v) stays whole: KV heads are replicated over it. */
static bool cut_composite(const Assign *a, const GTensor *t, Layout *l, int dim,
                          const AxisList *axes, Loc loc, const char *group, const char **names) {
    int first = stored_first(t, dim), at = first, end = first + t->stored[dim],
        last = end; /* last: after the letters that count heads */
    while (last > first && !strcmp(t->sym[last - 1], "d")) last--;
    /* packed (u f): the cut goes to the last letter, whole blocks stay together */
    if (!counts_heads(t, dim)) {
        for (int i = 0; i < axes->n; i++) cut_letter(a, t, l, end - 1, axes->a[i], group, names);
        return true;
    }
    int64_t rest = t->size[at];
    for (int i = 0; i < axes->n; i++) {
        int64_t n = a->mesh->axis[axes->a[i]].size;
        while (at < last && rest % n) {
            at++;
            rest = at < last ? t->size[at] : 0;
        }
        if (at >= last) {
            bool has_g = last - first > 1;
            /* k or v: replicated over the rest of the axes; a result whose uses differ there stays
             * so */
            if (!has_g && i > 0) {
                if (t->kind == KIND_PARAM || l->type[axes->a[i]] != TY_R)
                    layout_set_type(l, axes->a[i], TY_I);
                continue;
            }
            diag_error(a->d, has_g ? "E0303" : "E0305", loc,
                       "choose a number of ranks that divides the heads, or is a multiple of the "
                       "KV heads and divides the heads",
                       "%s: %lld heads cannot be cut over %s of size %lld", graph_name(t),
                       (long long)(has_g ? t->size[first] * t->size[first + 1] : t->size[first]),
                       mesh_axes_text(a->mesh, a->arena, axes, true),
                       (long long)mesh_size(a->mesh, axes));
            return false;
        }
        cut_letter(a, t, l, at, axes->a[i], group, names);
        rest /= n;
    }
    return true;
}
static bool place_shard(const Assign *a, const GTensor *t, Layout *l, const RawPlace *p, Loc loc,
                        const AxisList *axes, const char *group, const char **names) {
    if (p->letter) {
        const char *at = memchr(t->letter, p->letter, (size_t)t->nd);
        if (!at) {
            diag_error(a->d, "E0401", loc,
                       arena_printf(a->arena, "its dims are %.*s", t->nd, t->letter),
                       "%s has no dim '%c'", graph_name(t), p->letter);
            return false;
        }
        for (int i = 0; i < axes->n; i++)
            cut_letter(a, t, l, (int)(at - t->letter), axes->a[i], group, names);
        return true;
    }
    int dim = p->dim < 0 ? p->dim + t->nstored : p->dim;
    if (dim < 0 || dim >= t->nstored) {
        diag_error(a->d, "E0401", loc, NULL, "dim %d is out of range: %s has %d dims", p->dim,
                   graph_name(t), t->nstored);
        return false;
    }
    if (t->stored[dim] > 1 || counts_heads(t, dim))
        return cut_composite(a, t, l, dim, axes, loc, group, names);
    for (int i = 0; i < axes->n; i++)
        cut_letter(a, t, l, stored_first(t, dim), axes->a[i], group, names);
    return true;
}
/* Is this placement shard of the sequence dim of an activation? Then the group `sp` is meant. */
static bool is_sequence(const GTensor *t, const RawPlace *p) {
    if (p->kind != RP_SHARD || t->kind == KIND_PARAM) return false;
    if (p->letter) return p->letter == 't';
    int dim = p->dim < 0 ? p->dim + t->nstored : p->dim;
    return dim >= 0 && dim < t->nstored && t->stored[dim] == 1 &&
           !strcmp(t->sym[stored_first(t, dim)], "S");
}
static bool place_on(const Assign *a, int module, const GTensor *t, UseKind kind, const RawPlace *p,
                     const AxisList *axes, const char *group, Layout *l, const char **names) {
    const ModuleUse *u = module >= 0 ? &a->use[module] : NULL;
    AxisType ty;
    switch (p->kind) {
    case RP_SHARD:
        return place_shard(a, t, l, p, p->loc.file || !u ? p->loc : u->loc, axes, group,
                           names); /* a style's own placement stands nowhere */
    case RP_REPLICATE:
        ty = u && t->diff &&
                     ((kind == USE_INPUT && u->cuts_param && !u->local_inside) ||
                      (kind == USE_OUTPUT && u->out_varies))
                 ? TY_R
                 : TY_I;
        break;
    case RP_INVARIANT: ty = TY_I; break;
    case RP_VARYING: ty = t->diff ? TY_R : TY_I; break;
    case RP_PARTIAL: ty = TY_P; break;
    case RP_CONTIGUOUS: {
        int dim = p->dim < 0 ? p->dim + t->nstored : p->dim;
        if (dim < 0 || dim >= t->nstored) {
            diag_error(a->d, "E0401", p->loc, NULL, "dim %d is out of range: %s has %d dims",
                       p->dim, t->name, t->nstored);
            return false;
        }
        if (t->stored[dim] > 1 && dim != 0) {
            diag_error(
                a->d, "E0214", p->loc, NULL,
                "contiguous(%d) on a packed dim other than 0 is not supported by this version",
                p->dim);
            return false;
        }
        for (int i = 0; i < axes->n; i++)
            cut_letter(a, t, l, t->stored[dim] > 1 ? t->nd : stored_first(t, dim), axes->a[i],
                       group, names);
        return true;
    }
    default: return true; /* null, local */
    }
    for (int i = 0; i < axes->n; i++) layout_set_type(l, axes->a[i], ty);
    return true;
}
bool assign_target(const Assign *a, int module, int tensor, const RawSpec *s, UseKind kind,
                   const Layout *cur, Layout *out, const char **names) {
    const GTensor *t = &a->model->g.t[tensor];
    const ModuleUse *u = module >= 0 ? &a->use[module] : NULL;
    *out = *cur;
    if (!s->set) return true;
    if (!s->mapping) {
        AxisList axes = {0};
        const char *group = NULL;
        if (u && u->style) {
            bool seq = is_sequence(t, &s->bare);
            axes = seq ? u->seq_axes : u->axes;
            group = seq ? u->seq_group : u->group;
        } else { /* block_input */
            AxisList l;
            group = is_sequence(t, &s->bare) && mesh_lookup(a->mesh, "sp", &l)
                        ? "sp"
                        : default_axis(a, false);
            if (!group || !mesh_lookup(a->mesh, group, &axes)) return true;
        }
        return place_on(a, module, t, kind, &s->bare, &axes, group, out, names);
    }
    bool ok = true;
    for (int i = 0; i < s->n; i++) {
        AxisList axes;
        if (!assign_axes(a->mesh, a->arena, a->d, s->on[i].axis, s->on[i].loc, &axes)) {
            ok = false;
            continue;
        }
        ok &= place_on(a, module, t, kind, &s->on[i].place, &axes, s->on[i].axis, out, names);
    }
    return ok;
}
bool assign_label_holds(const Assign *a, const Layout *cur, const Layout *label) {
    for (int x = 0; x < a->mesh->naxes; x++) {
        if (a->mesh->axis[x].size == 1) continue;
        int wc = layout_where(cur, x), wl = layout_where(label, x);
        bool eq_c = cur->type[x] == TY_I || cur->type[x] == TY_R,
             eq_l = label->type[x] == TY_I || label->type[x] == TY_R;
        if (wc != wl || (wc < 0 && !(eq_c && eq_l) && cur->type[x] != label->type[x])) return false;
    }
    return true;
}

/* ---- lines onto modules ---- */
static bool line_matches(const Assign *a, const PlanLine *l, const char *plan_path,
                         const char *hf_path) {
    (void)a;
    if (plan_path && plan_match(l->pattern, plan_path)) return true;
    if (!hf_path) return false;
    if (plan_match(l->pattern, hf_path)) return true;
    return !strncmp(hf_path, "model.", 6) && plan_match(l->pattern, hf_path + 6);
}
/* The line that wins for a path, or -1; every line that matched is marked in `hit`, winners in
 * `won`. */
static int best_line(const Assign *a, const char *plan_path, const char *hf_path, bool *hit) {
    const Plan *p = a->plan;
    int best = -1;
    for (int i = 0; i < p->n_lines; i++) {
        if (!line_matches(a, &p->lines[i], plan_path, hf_path)) continue;
        hit[i] = true;
        if (best < 0) {
            best = i;
            continue;
        }
        bool recipe = p->lines[best].from_recipe && !p->lines[i].from_recipe;
        if (recipe || plan_pattern_order(p->lines[i].pattern, p->lines[best].pattern) >= 0)
            best = i;
    }
    return best;
}
static const RawSpec *param_spec(const Assign *a, const Style *s, const GModule *mod, int t) {
    if (t == mod->weight) return &s->weight;
    if (t == mod->bias) return dtensor_bias(a->plan, s, &s->bias);
    const char *dot = strrchr(a->model->g.t[t].name, '.');
    for (int i = 0; i < s->n_params; i++)
        if (dot && !strcmp(s->params[i].name, dot + 1)) return &s->params[i].spec;
    return NULL;
}
/* Splits axes for KV heads: `colwise` on k, v (and q) over more ranks than there are KV heads. */
static bool split_for_kv(Assign *a, Mesh *mesh) {
    const Graph *g = &a->model->g;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->kind != KIND_PARAM || x->module < 0 || strcmp(x->sym[0], "K") || x->stored[0] < 2)
            continue;
        const ModuleUse *u = &a->use[x->module];
        if (!u->style) continue;
        const RawSpec *s = param_spec(a, u->style, &g->module[x->module], t);
        if (!s || !s->set || s->mapping || s->bare.kind != RP_SHARD || s->bare.letter ||
            s->bare.dim != 0)
            continue;
        int64_t n = mesh_size(mesh, &u->axes), K = x->size[0], H = a->model->dims.H;
        if (u->axes.n != 1 || K % n == 0) continue;
        const char *name = mesh->axis[u->axes.a[0]].name;
        bool never = !strcmp(a->plan->kv_replicate, "never");
        if (n % K || H % n || never) {
            diag_error(
                a->d, H % n ? "E0303" : "E0305", u->loc,
                H % n ? "choose a number of ranks that divides the heads"
                : n % K
                    ? "choose a number of ranks that divides the KV heads, or is a multiple of them"
                    : "remove `kv_replicate: never`, or use fewer ranks",
                H % n ? "%lld heads cannot be cut over %s of size %lld"
                      : "%lld KV heads cannot be cut over %s of size %lld",
                (long long)(H % n ? H : K), name, (long long)n);
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
static void match_modules(Assign *a, bool *hit, bool *won) {
    const Graph *g = &a->model->g;
    for (int m = 0; m < g->nm; m++) {
        const GModule *mod = &g->module[m];
        int l = best_line(a, mod->path, mod->hf_path, hit);
        if (l < 0) continue;
        ModuleUse *u = &a->use[m];
        const PlanLine *line = &a->plan->lines[l];
        /* A recipe is written for whole models: its line for the loss speaks of logits. */
        if (line->from_recipe && !strcmp(mod->kind, LOSS_STAND_IN)) continue;
        won[l] = true;
        u->loc = line->loc;
        u->line = l;
        u->name = line->style.name;
        u->style = style_resolve_for(a->plan, a->d, line, mod->kind);
        if (!u->style) continue;
        u->per_module = u->style->per_module >= 0 ? u->style->per_module : a->plan->per_module;
        if (!use_axes(a, u, mod)) u->style = NULL;
    }
}
/* `bias: local` with every `local` read as `partial`; false if there is none. */
static bool local_as_partial(Arena *arena, const RawSpec *s, RawSpec *out) {
    bool any = !s->mapping && s->bare.kind == RP_LOCAL;
    *out = *s;
    if (any) out->bare.kind = RP_PARTIAL;
    if (s->mapping) out->on = ARENA_ARRAY(arena, struct RawOn, s->n);
    for (int i = 0; s->mapping && i < s->n; i++) {
        out->on[i] = s->on[i];
        if (s->on[i].place.kind == RP_LOCAL) any = true, out->on[i].place.kind = RP_PARTIAL;
    }
    return any;
}
/* The bias would be added on every rank of the axes over which it is taken for a share. */
static void local_bias(const Assign *a, int t, Loc loc) {
    AxisList over = {0};
    for (int x = 0; x < a->mesh->naxes; x++)
        if (a->compute[t].type[x] == TY_P) over.a[over.n++] = (uint8_t)x;
    const char *axes = mesh_axes_text(a->mesh, a->arena, &over, true);
    diag_error(a->d, "E0403", loc,
               "`bias: replicate` is added once; `trust: declared` shows what this does",
               "%s would be added in full on every rank of %s, before the sum over %s, and count "
               "%lld times",
               a->model->g.t[t].plan_name, axes, axes, (long long)mesh_size(a->mesh, &over));
}
static bool layout_param(Assign *a, int t, const RawSpec *s, int module, int line) {
    const GTensor *x = &a->model->g.t[t];
    Layout *l = &a->compute[t], base = *l;
    if (s && s->set) {
        a->line[t] = line;
        sums_of_style(a, t, &a->use[module], s);
        if (!assign_target(a, module, t, s, USE_PARAM, &base, l, a->group[t])) return false;
        a->rest[t] = *l;
        /* at rest a parameter is cut or whole; shares and differing uses are made of it */
        for (int k = 0; k < a->mesh->naxes; k++)
            if (l->type[k] != TY_V) a->rest[t].type[k] = TY_I;
        /* contiguous through blocks or heads: holds a flat cut, means a cut of a letter */
        if (l->n[l->ndim] && x->stored[0] > 1) {
            const ModuleUse *u = &a->use[module];
            AxisList flat = layout_dim_axes(l, l->ndim);
            if (!a->plan->trust_declared) {
                diag_error(
                    a->d, "E0406", s->loc,
                    "cut the letter inside the blocks (shard(0)), or say `trust: declared` to see "
                    "what this does",
                    "%s: a contiguous cut of dim 0 over %s goes through its packed blocks or heads",
                    x->plan_name, mesh_axes_text(a->mesh, a->arena, &flat, true));
                return false;
            }
            RawPlace p = {.kind = RP_SHARD, .dim = 0, .loc = s->loc};
            *l = base;
            a->claimed[t] = true;
            return place_on(a, module, x, USE_PARAM, &p, &u->axes, u->group, l, a->group[t]);
        }
        RawSpec shares;
        /* whole on every rank and taken for one rank's share of a sum */
        if (local_as_partial(a->arena, s, &shares)) {
            if (!assign_target(a, module, t, &shares, USE_PARAM, &base, l, a->group[t]))
                return false;
            if (!a->plan->trust_declared) {
                local_bias(a, t, s->loc.file ? s->loc : a->use[module].loc);
                return false;
            }
            a->claimed[t] = true;
            return true;
        }
    }
    return true;
}
/* Lays out parameter t as the plan says it of a module that works with it: by a line for the
 * parameter itself (its style says how, the module's axes where), else by the module's. a->line[t]
 * stays below 0 where no line speaks of it. */
static void layout_in_module(Assign *a, int t, int module, bool *hit, bool *won) {
    const GModule *mod = &a->model->g.module[module];
    const GTensor *x = &a->model->g.t[t];
    const char *path = x->plan_name, *hf_path = x->name, *dot = strrchr(x->name, '.');
    /* the second module of a tied table knows it by a name of its own */
    if (x->module != module && dot) {
        path = arena_printf(a->arena, "%s%s", mod->path, dot);
        hf_path = arena_printf(a->arena, "%s%s", mod->hf_path, dot);
    }
    int own = best_line(a, path, hf_path, hit);
    ModuleUse *u = &a->use[module], save = *u;
    if (own < 0) {
        if (u->style) layout_param(a, t, param_spec(a, u->style, mod, t), module, u->line);
        return;
    }
    won[own] = true;
    const Style *s = style_resolve_for(a->plan, a->d, &a->plan->lines[own], mod->kind);
    if (s) {
        u->style = s;
        u->loc = a->plan->lines[own].loc;
        u->name = a->plan->lines[own].style.name;
        if (use_axes(a, u, mod)) layout_param(a, t, param_spec(a, s, mod, t), module, own);
    }
    *u = save;
}

/* ---- tied parameters ---- */
/* What the lines made of one parameter. */
typedef struct {
    Layout compute, rest;
    const char *group[MESH_MAX_AXES];
    int line;
    bool claimed;
} Laid;
static Laid laid_get(const Assign *a, int t) {
    Laid l = {
        .compute = a->compute[t], .rest = a->rest[t], .line = a->line[t], .claimed = a->claimed[t]};
    memcpy(l.group, a->group[t], sizeof l.group);
    return l;
}
static void laid_set(Assign *a, int t, const Laid *l) {
    a->compute[t] = l->compute;
    a->rest[t] = l->rest;
    a->line[t] = l->line;
    a->claimed[t] = l->claimed;
    memcpy(a->group[t], l->group, sizeof l->group);
}
static Laid laid_nowhere(const Assign *a, int t) {
    Laid l = {.line = -1};
    l.compute = l.rest = layout_whole(a->mesh, a->model->g.t[t].nd, TY_I);
    return l;
}
/* The cuts alone: types, and axes of size 1, tell nothing about which elements a rank holds. */
static Layout only_cuts(const Mesh *m, const Layout *l) {
    Layout c = *l;
    for (int x = 0; x < m->naxes; x++)
        if (c.type[x] != TY_V || m->axis[x].size == 1) layout_set_type(&c, x, TY_I);
    return c;
}
/* "[V/tp, D]" */
static const char *laid_words(const Assign *a, const GTensor *t, const Layout *l) {
    Str s = str_new(a->arena);
    for (int d = 0, letter = 0; d < t->nstored; d++) {
        str_addf(&s, "%s%s", d ? ", " : "[", graph_stored_symbol(t, d, a->arena));
        for (int k = 0; k < t->stored[d]; k++, letter++) {
            AxisList by = layout_dim_axes(l, letter);
            const char *axes = mesh_axes_text(a->mesh, a->arena, &by, false);
            if (by.n) str_addf(&s, strchr(axes, '*') ? "/(%s)" : "/%s", axes);
        }
    }
    str_add(&s, "]");
    return s.s;
}
static void tied_twice(const Assign *a, int t, const Laid *one, const Laid *two) {
    const PlanLine *l1 = &a->plan->lines[one->line], *l2 = &a->plan->lines[two->line];
    const GTensor *x = &a->model->g.t[t];
    diag_error(a->d, "E0210", l2->from_recipe ? l1->loc : l2->loc,
               "give both the same layout (rowwise on the embedding and colwise on the head both "
               "cut V), or name only one",
               "%s is one table of two modules: line '%s' lays it out as %s, line '%s' as %s",
               x->plan_name, l1->pattern, laid_words(a, x, &one->rest), l2->pattern,
               laid_words(a, x, &two->rest));
}
/* A table that a second module works with too: a line on either of the two lays it out, two lines
 * must agree. */
static void layout_tied(Assign *a, bool *hit, bool *won) {
    const Graph *g = &a->model->g;
    for (int m = 0; m < g->nm; m++) {
        int t = g->module[m].weight;
        if (t < 0 || g->t[t].module == m) continue;
        Laid first = laid_get(a, t), none = laid_nowhere(a, t);
        laid_set(a, t, &none);
        layout_in_module(a, t, m, hit, won);
        Laid second = laid_get(a, t);
        if (first.line < 0) continue;
        laid_set(a, t, &first);
        if (second.line < 0) continue;
        Layout c1 = only_cuts(a->mesh, &first.rest), c2 = only_cuts(a->mesh, &second.rest);
        if (!layout_eq(&c1, &c2)) tied_twice(a, t, &first, &second);
    }
}
static void layout_params(Assign *a, bool *hit, bool *won) {
    const Graph *g = &a->model->g;
    for (int t = 0; t < g->nt; t++) {
        Laid none = laid_nowhere(a, t);
        laid_set(a, t, &none);
        if (g->t[t].kind == KIND_PARAM && g->t[t].module >= 0)
            layout_in_module(a, t, g->t[t].module, hit, won);
    }
    layout_tied(a, hit, won);
    /* does a parameter that the module works with lie cut over its axes? A tied table belongs to
     * two modules. */
    for (int n = 0; n < g->nn; n++)
        for (int i = 0; i < g->node[n].nin; i++) {
            int t = g->node[n].in[i];
            if (g->t[t].kind != KIND_PARAM) continue;
            for (int m = g->node[n].module; m >= 0; m = g->module[m].parent)
                for (int k = 0; a->use[m].style && k < a->use[m].axes.n; k++)
                    a->use[m].cuts_param |= layout_where(&a->compute[t], a->use[m].axes.a[k]) >= 0;
        }
}

/* ---- inputs ---- */
static bool default_batch(const char *name) {
    return !strcmp(name, "dp") || !strncmp(name, "dp_", 3);
}
static bool data_axes(Assign *a, AxisList *batch, AxisList *seq) {
    const Plan *p = a->plan;
    bool ok = true;
    memset(batch, 0, sizeof *batch);
    memset(seq, 0, sizeof *seq);
    if (p->cut_batch)
        ok &= assign_axes(a->mesh, a->arena, a->d, p->cut_batch, p->cut_batch_loc, batch);
    else
        for (int x = 0; x < a->mesh->naxes; x++)
            if (default_batch(a->mesh->axis[x].name)) batch->a[batch->n++] = (uint8_t)x;
    if (p->cut_sequence)
        ok &= assign_axes(a->mesh, a->arena, a->d, p->cut_sequence, p->cut_sequence_loc, seq);
    else if (p->context_parallel.axis)
        ok &= assign_axes(a->mesh, a->arena, a->d, p->context_parallel.axis,
                          p->context_parallel.axis_loc, seq);
    else mesh_lookup(a->mesh, "cp", seq);
    for (int i = 0; ok && i < batch->n; i++)
        for (int k = 0; k < seq->n; k++)
            if (batch->a[i] == seq->a[k]) {
                diag_error(a->d, "E0405", p->mesh_loc, NULL,
                           "axis '%s' would cut both the batch and the sequence",
                           a->mesh->axis[seq->a[k]].name);
                ok = false;
            }
    return ok;
}
/* The branch that the last residual sum adds: module whose declared output is the default for a
 * block's input. */
static const RawSpec *last_residual(const Assign *a, int *module) {
    const Graph *g = &a->model->g;
    for (int n = g->nn - 1; n >= 0; n--) {
        const GNode *x = &g->node[n];
        if (x->layer < 0 || x->op->lin != LIN_ADD || x->nin != 2 ||
            g->t[x->in[0]].kind == KIND_PARAM || g->t[x->in[1]].kind == KIND_PARAM)
            continue;
        /* outermost first: containers come before their children */
        for (int m = 0; m < g->nm; m++) {
            if (g->module[m].output != x->in[1] || !a->use[m].style) continue;
            const Style *s = a->use[m].style;
            const RawList *l = s->desired_output.set ? &s->desired_output : &s->output;
            if (l->set && l->n && l->arg[0].set) {
                *module = m;
                return &l->arg[0];
            }
        }
        return NULL;
    }
    return NULL;
}
static void cut_input(Assign *a, int t, const AxisList *axes, const char *sym) {
    const GTensor *x = &a->model->g.t[t];
    for (int d = 0; d < x->nd; d++)
        if (!strcmp(x->sym[d], sym))
            for (int i = 0; i < axes->n; i++) {
                bool labels = a->plan->order_labels && x->is_int && strstr(x->name, "label");
                CutHow how =
                    how_ordered(a, x, d, axes->a[i],
                                labels ? a->plan->order_labels : a->plan->context_parallel.order);
                layout_cut(&a->compute[t], d, axes->a[i], how);
            }
}
static void layout_inputs(Assign *a) {
    const Graph *g = &a->model->g;
    AxisList batch, seq;
    if (!data_axes(a, &batch, &seq)) return;
    sums_of_data(a, &batch, &seq);
    bool first = true;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->kind != KIND_INPUT) continue;
        cut_input(a, t, &batch, "B");
        cut_input(a, t, &seq, "S");
        bool enters =
            g->nn && (g->node[0].in[0] == t || (g->node[0].nin > 1 && g->node[0].in[1] == t));
        if (first && enters && !x->is_int) { /* the stream that enters the first block or layer */
            int m = -1;
            const RawSpec *s =
                a->plan->block_input.set ? &a->plan->block_input : last_residual(a, &m);
            Layout base = a->compute[t];
            bool partial =
                s && !s->mapping && (s->bare.kind == RP_PARTIAL || s->bare.kind == RP_LOCAL);
            if (s && !partial)
                assign_target(a, m, t, s, USE_OUTPUT, &base, &a->compute[t], a->group[t]);
            first = false;
        }
        a->rest[t] = a->compute[t];
    }
    int64_t cp = mesh_size(a->mesh, &seq), S = a->model->dims.S;
    const char *order = a->plan->context_parallel.order, *labels = a->plan->order_labels;
    bool zigzag = (order && !strcmp(order, "zigzag")) || (labels && !strcmp(labels, "zigzag"));
    if (zigzag && cp > 1 && S % (2 * cp))
        diag_error(
            a->d, "E0304", a->plan->context_parallel.order_loc,
            arena_printf(a->arena, "make the sequence a multiple of %lld", (long long)(2 * cp)),
            "zigzag order needs a sequence that 2 x cp divides: %lld is no multiple of %lld",
            (long long)S, (long long)(2 * cp));
}

/* ---- parameters at rest ---- */
/* FSDP is a layout of parameters at rest: dim 0 cut by the data axes, inside whatever tensor
 * parallelism cuts (what PyTorch calls a strided shard). A dim 0 of several letters is cut as the
 * flat list that it is in memory. */
/* Cut axis by axis, do the blocks lie as one cut over all of the axes' ranks would lay them? Their
 * largest is the same. */
static bool cut_as_one(const Assign *a, int64_t rows) {
    int64_t after = mesh_size(a->mesh, &a->shard);
    for (int i = 0; i < a->shard.n; i++) {
        int64_t n = a->mesh->axis[a->shard.a[i]].size;
        rows = (rows + n - 1) / n;
        after /= n;
        if (rows % after) return false;
    }
    return true;
}
/* FSDP2 cuts over the ranks of one flat mesh; here every axis cuts by itself, and uneven rows go to
 * other ranks. */
static void note_nested(const Assign *a) {
    int n = 0, first = -1;
    int64_t rows = 0;
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        if (x->kind != KIND_PARAM || x->state_of || a->claimed[t] || !x->nd) continue;
        int64_t local[LAYOUT_MAX_DIMS], r = 1;
        layout_local(a->mesh, &a->compute[t], x->size, 0, local);
        for (int k = 0; k < x->stored[0]; k++) r *= local[k];
        if (cut_as_one(a, r)) continue;
        if (!n++) first = t, rows = r;
    }
    if (n)
        diag_note(a->d, "N0006", a->plan->data_parallel.loc,
                  "a size that all of the axes divide together",
                  "%s%s: %lld rows are cut axis by axis over %s, PyTorch cuts them over all %lld "
                  "ranks at once: the same numbers and bytes, other parts on the last ranks",
                  a->model->g.t[first].plan_name,
                  n > 1 ? arena_printf(a->arena, " and %d more", n - 1) : "", (long long)rows,
                  mesh_axes_text(a->mesh, a->arena, &a->shard, true),
                  (long long)mesh_size(a->mesh, &a->shard));
}
static void shard_at_rest(Assign *a) {
    if (a->shard.n > 1) note_nested(a);
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        if (x->kind != KIND_PARAM || a->claimed[t] || !x->nd) continue;
        int dim = x->stored[0] > 1 ? x->nd : 0;
        for (int i = 0; i < a->shard.n; i++)
            if (layout_where(&a->rest[t], a->shard.a[i]) < 0)
                layout_cut(&a->rest[t], dim, a->shard.a[i], CUT_CHUNK);
    }
}

/* ---- notes ---- */
static const char *nearest_path(const Assign *a, const char *pattern) {
    const Graph *g = &a->model->g;
    const char **names = ARENA_ARRAY(a->arena, const char *, g->nm + 1);
    bool many = strchr(pattern, '*') != NULL; /* all layers' line stays that of all layers */
    for (int m = 0; m < g->nm; m++)
        names[m] = many && g->module[m].path ? plan_pattern_of(a->arena, g->module[m].path)
                                             : g->module[m].path;
    return diag_nearest(pattern, names);
}
static bool axis_cuts(const Assign *a, int x) {
    for (int t = 0; t < a->model->g.nt; t++)
        if (layout_where(&a->compute[t], x) >= 0 || layout_where(&a->rest[t], x) >= 0) return true;
    for (int m = 0; m < a->model->g.nm; m++) {
        const ModuleUse *u = &a->use[m];
        for (int i = 0; u->style && i < u->seq_axes.n; i++)
            if (u->seq_axes.a[i] == x && u->style->output.n &&
                u->style->output.arg[0].bare.kind == RP_SHARD)
                return true; /* its result is cut */
    }
    return a->mesh->axis[x].parent != NULL;
}
/* Lines that match nothing, and lines that another one beats everywhere. */
static void line_notes(Assign *a, const bool *hit, const bool *won) {
    const Plan *p = a->plan;
    for (int i = 0; i < p->n_lines; i++) {
        if (p->lines[i].from_recipe) continue;
        const PlanLine *l = &p->lines[i];
        if (!hit[i]) {
            const char *near = nearest_path(a, l->pattern);
            diag_error(a->d, "E0205", l->loc,
                       near ? arena_printf(a->arena, "did you mean '%s'?", near)
                            : arena_printf(a->arena, "names are those of `names: %s`",
                                           plan_names_text(p->names)),
                       "pattern '%s' matches no module and no parameter", l->pattern);
        } else if (!won[i])
            diag_note(a->d, "N0005", l->loc, NULL,
                      "line '%s' is shadowed by more exact or later lines", l->pattern);
    }
}
/* Axes that cut nothing, parameters that no line names: true only of a plan that was laid out. */
static void layout_notes(Assign *a) {
    const Plan *p = a->plan;
    for (int x = 0; x < a->mesh->naxes; x++)
        if (a->mesh->axis[x].size > 1 && !axis_cuts(a, x))
            diag_note(a->d, "N0003", p->mesh_loc, NULL,
                      "axis '%s' of size %lld cuts nothing: its ranks all do the same",
                      a->mesh->axis[x].name, (long long)a->mesh->axis[x].size);
    const Graph *g = &a->model->g;
    int unnamed = 0;
    const char *first = NULL;
    for (int t = 0; t < g->nt; t++)
        if (g->t[t].kind == KIND_PARAM && !g->t[t].state_of && a->line[t] < 0) {
            unnamed++;
            if (!first) first = g->t[t].plan_name;
        }
    if (unnamed && p->n_lines)
        diag_note(
            a->d, "N0002", p->mesh_loc, NULL,
            "%d parameter%s no plan line lays out, so every rank holds %s in full (first: %s)",
            unnamed, unnamed == 1 ? "" : "s", unnamed == 1 ? "it" : "them", first);
}

Assign *assign_plan(Arena *arena, Diags *d, const Plan *p, Mesh *mesh, const Model *m) {
    Assign *a = ARENA_NEW(arena, Assign);
    int nt = m->g.nt, before = diags_errors(d);
    *a = (Assign){.plan = p, .mesh = mesh, .model = m, .d = d, .arena = arena};
    bool *hit, *won;
    do { /* splitting an axis renumbers the axes: match again */
        a->use = ARENA_ARRAY(arena, ModuleUse, m->g.nm + 1);
        hit = ARENA_ARRAY(arena, bool, p->n_lines + 1);
        won = ARENA_ARRAY(arena, bool, p->n_lines + 1);
        match_modules(a, hit, won);
    } while (diags_errors(d) == before && split_for_kv(a, mesh));
    /* what follows would only repeat the errors; a pattern that matches nothing is another one */
    if (diags_errors(d) > before) {
        for (int t = 0; t < nt; t++)
            if (m->g.t[t].kind == KIND_PARAM)
                best_line(a, m->g.t[t].plan_name, m->g.t[t].name, hit);
        line_notes(a, hit, hit);
        return NULL;
    }
    a->compute = ARENA_ARRAY(arena, Layout, nt + 1);
    a->rest = ARENA_ARRAY(arena, Layout, nt + 1);
    a->group = arena_alloc(arena, base_mul((size_t)nt + 1, sizeof *a->group));
    a->line = ARENA_ARRAY(arena, int, nt + 1);
    a->claimed = ARENA_ARRAY(arena, bool, nt + 1);
    a->summed = ARENA_ARRAY(arena, uint32_t, nt + 1);
    layout_params(a, hit, won);
    layout_inputs(a);
    shard_at_rest(a);
    sums_of_parameters(a);
    for (int t = 0; t < nt; t++) /* an optimizer's state lies as its parameter does at rest */
        if (m->g.t[t].state_of) a->compute[t] = a->rest[t] = a->rest[m->g.t[t].state_of - 1];
    line_notes(a, hit, won);
    if (diags_errors(d) == before) dtensor_follow(a);
    if (diags_errors(d) == before) layout_notes(a);
    return diags_errors(d) > before ? NULL : a;
}
