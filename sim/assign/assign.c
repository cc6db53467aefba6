/* Matching a plan's lines with a model and turning placements into layouts. Refuses to move
 * anything. */
#include "assign/assign.h"
#include "assign/compiled.h"
#include "assign/context.h"
#include "assign/dtensor.h"
#include "assign/experts.h"
#include "assign/heads.h"
#include "assign/rest.h"
#include "assign/spec.h"
#include "assign/stages.h"
#include "assign/suggest.h"
#include "assign/sums.h"
#include "assign/zero.h"
#include "assign/target.h"
#include "assign/uneven.h"
#include <assert.h>
#include <string.h>
#include <strings.h>

/* What a message calls a line's doing: its style, or the line itself if it names none. */
static const char *line_words(const Assign *a, const PlanLine *l) {
    if (l->style.name) return arena_printf(a->arena, "style '%s'", l->style.name);
    return arena_printf(a->arena, "the line '%s'", l->kind ? l->kind : l->pattern);
}
/* What the axis of another framework's name is called here; NULL: it has no such name, or another
 * axis is called so. Two that both hold data are replicas and shards of FSDP. */
static const char *renamed_axis(const Assign *a, int x) {
    const Plan *p = a->plan;
    const char *name = p->axes[x].name, *ours = plan_axis_of_others(name);
    if (!ours) ours = plan_axis_of_size(a->arena, name);
    AxisList l;
    bool two = false;
    for (int k = 0; k < p->n_axes && ours; k++) {
        const char *other = plan_axis_of_others(p->axes[k].name);
        two |= k != x && !strcmp(other ? other : p->axes[k].name, ours);
    }
    if (two && strcmp(ours, "dp")) return NULL;
    if (two)
        ours = strcasecmp(name, "fsdp") && strcasecmp(name, "shard") ? "dp_replicate" : "dp_shard";
    return ours && !mesh_lookup(a->mesh, ours, &l) ? ours : NULL;
}
/* The plan's groups with the axes' new names, as a help says them; "": they stay as they are. */
static const char *renamed_groups(const Assign *a) {
    const Plan *p = a->plan;
    Str s = str_new(a->arena);
    bool changed = false;
    for (int i = 0; i < p->n_groups; i++) {
        str_addf(&s, "%s%s: ", i ? ", " : "", p->groups[i].key);
        char *copy = arena_strdup(a->arena, p->groups[i].text), *save = NULL;
        const char *between = "";
        for (char *w = strtok_r(copy, "* ", &save); w; w = strtok_r(NULL, "* ", &save)) {
            const char *now = NULL;
            for (int x = 0; x < p->n_axes && !now; x++)
                if (!strcmp(p->axes[x].name, w)) now = renamed_axis(a, x);
            changed |= now != NULL;
            str_addf(&s, "%s%s", between, now ? now : w);
            between = "*";
        }
    }
    return changed ? arena_printf(a->arena, " and `groups: {%s}`", s.s) : "";
}
/* The mesh with the names that axes have here, where it has those of another framework, as a help
 * says it; NULL: it has none. */
static const char *renamed_mesh(const Assign *a) {
    const Plan *p = a->plan;
    Str mesh = str_new(a->arena), said = str_new(a->arena);
    for (int x = 0; x < p->n_axes; x++) {
        const char *name = p->axes[x].name, *now = renamed_axis(a, x);
        str_addf(&mesh, "%s%s: %lld", x ? ", " : "", now ? now : name, (long long)p->axes[x].size);
        if (now) str_addf(&said, "%s'%s' is `%s`", said.n ? ", " : "", name, now);
    }
    return said.n ? arena_printf(a->arena, "%s here: `mesh: {%s}`%s", said.s, mesh.s,
                                 renamed_groups(a))
                  : NULL;
}
/* All lines that act on no axis are one finding. */
static void axis_missing(Assign *a) {
    const Plan *p = a->plan;
    const PlanLine *first = NULL;
    int more = -1;
    for (int i = 0; a->no_axis && i < p->n_lines; i++) {
        if (!a->no_axis[i]) continue;
        if (!first) first = &p->lines[i];
        more++;
    }
    if (!first) return;
    const char *mesh = renamed_mesh(a),
               *others =
                   more ? arena_printf(a->arena, " and %d more line%s", more, more == 1 ? "" : "s")
                        : "";
    diag_error(a->d, "E0204", mesh ? p->mesh_loc : first->loc,
               mesh ? arena_printf(a->arena, "%s; or write `axis:` in the line%s", mesh,
                                   p->n_lines == 1 ? "" : "s")
                    : "write `axis:` in the line, or name an axis `tp`",
               "%s%s act%s on no axis: the mesh has no `tp`", line_words(a, first), others,
               more ? "" : "s");
    a->no_axis = NULL;
}

/* ---- lines onto modules ---- */
static const char *last_of(const char *path) {
    const char *dot = path ? strrchr(path, '.') : NULL;
    return dot ? dot + 1 : path ? path : "";
}
/* A path's two spellings, and what ends each: most lines differ in that already. */
typedef struct {
    const char *plan, *hf, *plan_last, *hf_last;
} PathNames;
static bool line_matches(const PlanLine *l, const PathNames *p) {
    const char *last = last_of(l->pattern);
    if (l->kind) return false;
    if (!strpbrk(last, "*?[\\") && strcmp(last, p->plan_last) && strcmp(last, p->hf_last))
        return false;
    if (p->plan && plan_match(l->pattern, p->plan)) return true;
    if (!p->hf) return false;
    if (plan_match(l->pattern, p->hf)) return true;
    return !strncmp(p->hf, "model.", 6) && plan_match(l->pattern, p->hf + 6);
}
/* The line that wins for a path, or -1; every line that matched is marked in `hit`, winners in
 * `won`. */
static int best_line(const Assign *a, const char *plan_path, const char *hf_path, bool *hit) {
    const Plan *p = a->plan;
    const PathNames names = {plan_path, hf_path, last_of(plan_path), last_of(hf_path)};
    int best = -1;
    for (int i = 0; i < p->n_lines; i++) {
        if (!line_matches(&p->lines[i], &names)) continue;
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
/* A line for all modules of a kind beats a recipe's, and gives way to any other. */
static int line_of_kind(const Assign *a, const GModule *mod, int best, bool *hit) {
    const Plan *p = a->plan;
    if (best >= 0 && !p->lines[best].from_recipe) return best;
    for (int i = 0; i < p->n_lines; i++) {
        if (!p->lines[i].kind || strcmp(p->lines[i].kind, mod->kind) != 0) continue;
        hit[i] = true;
        best = i;
    }
    return best;
}
static void match_modules(Assign *a, bool *hit, bool *won) {
    const Graph *g = &a->model->g;
    for (int m = 0; m < g->nm; m++) {
        const GModule *mod = &g->module[m];
        int l = line_of_kind(a, mod, best_line(a, mod->path, mod->hf_path, hit), hit);
        if (l < 0) continue;
        ModuleUse *u = &a->use[m];
        const PlanLine *line = &a->plan->lines[l];
        /* A recipe is written for whole models: its line for the loss speaks of logits. */
        if (line->from_recipe && !strcmp(mod->kind, LOSS_STAND_IN)) continue;
        won[l] = true;
        u->loc = line->loc;
        u->line = l;
        u->name = line->style.name;
        if (line->bad) continue;
        u->style = style_resolve_for(a->plan, a->d, line, mod->kind);
        if (!u->style) continue;
        u->per_module = u->style->per_module >= 0 ? u->style->per_module : a->plan->per_module;
        if (!spec_axes(a, u, mod, line)) u->style = NULL;
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
        if (!assign_target(a, &(Target){module, t, s, USE_PARAM, &base}, l, a->group[t]))
            return false;
        a->rest[t] = *l;
        /* at rest a parameter is cut or whole; shares and differing uses are made of it */
        assert(a->mesh->naxes <= MESH_MAX_AXES);
        for (int k = 0; k < a->mesh->naxes; k++)
            if (l->type[k] != TY_V) a->rest[t].type[k] = TY_I;
        /* contiguous through blocks or heads: holds a flat cut, means a cut of a letter */
        if (l->n[l->ndim] && x->stored[l->list] > 1) {
            const ModuleUse *u = &a->use[module];
            AxisList flat = layout_dim_axes(l, l->ndim);
            if (a->plan->trust != TRUST_DECLARED) {
                diag_error(
                    a->d, "E0406", s->loc,
                    arena_printf(a->arena,
                                 "cut the letter inside the blocks (shard(%d)), or say `trust: "
                                 "declared` to see what this does",
                                 l->list),
                    "%s: a contiguous cut of dim %d over %s goes through its packed blocks or "
                    "heads",
                    x->plan_name, l->list, mesh_axes_text(a->mesh, a->arena, &flat, true));
                return false;
            }
            RawPlace p = {.kind = RP_SHARD, .dim = l->list, .loc = s->loc};
            *l = base;
            a->claimed[t] = true;
            return target_place(&(Placing){.a = a,
                                           .t = x,
                                           .use = u,
                                           .kind = USE_PARAM,
                                           .axes = &u->axes,
                                           .group = u->group,
                                           .out = l,
                                           .names = a->group[t]},
                                &p);
        }
        RawSpec shares;
        /* whole on every rank and taken for one rank's share of a sum */
        if (local_as_partial(a->arena, s, &shares)) {
            if (!assign_target(a, &(Target){module, t, &shares, USE_PARAM, &base}, l, a->group[t]))
                return false;
            if (a->plan->trust != TRUST_DECLARED) {
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
    if (own >= 0 && a->use[module].style && a->plan->lines[a->use[module].line].kind &&
        a->plan->lines[own].from_recipe)
        own = -1; /* the plan says it of the whole module */
    ModuleUse *u = &a->use[module], save = *u;
    if (own < 0) {
        if (u->style) layout_param(a, t, spec_of_param(a, u->style, mod, t), module, u->line);
        return;
    }
    won[own] = true;
    const Style *s = style_resolve_for(a->plan, a->d, &a->plan->lines[own], mod->kind);
    if (s) {
        u->style = s;
        u->loc = a->plan->lines[own].loc;
        u->name = a->plan->lines[own].style.name;
        const RawSpec *spec = spec_of_param(a, s, mod, t);
        if (!spec && s->weight.set) spec = &s->weight; /* the line names the parameter itself */
        if (spec_axes(a, u, mod, &a->plan->lines[own])) layout_param(a, t, spec, module, own);
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
    const MeshGroup *dp = NULL; /* axes with other names that are one to the data */
    for (int g = 0; g < a->mesh->ngroups; g++)
        if (!strcmp(a->mesh->group[g].name, "dp")) dp = &a->mesh->group[g];
    if (!p->cut_batch && dp) *batch = dp->axes;
    else if (p->cut_batch)
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
/* The label that the module gives whose output is t, the outermost that says one. */
static const RawSpec *output_label(const Assign *a, int t, int *module) {
    const Graph *g = &a->model->g;
    for (int m = 0; m < g->nm; m++) { /* containers come before their children */
        if (g->module[m].output != t || !a->use[m].style) continue;
        const Style *s = a->use[m].style;
        const RawList *l = s->desired_output.set ? &s->desired_output : &s->output;
        if (!l->set || !l->n || !l->arg[0].set) continue;
        *module = m;
        return &l->arg[0];
    }
    return NULL;
}
/* What a norm or a factor at the end of a branch is applied to; -1: t is neither. */
static int before_it(const Graph *g, int t) {
    const GNode *x = g->t[t].producer >= 0 ? &g->node[g->t[t].producer] : NULL;
    if (!x || !x->nin || x->op->lin == LIN_BILINEAR || x->op->lin == LIN_ADD) return -1;
    for (int i = 1; i < x->nin; i++)
        if (g->t[x->in[i]].kind != KIND_PARAM) return -1;
    const GTensor *from = &g->t[x->in[0]];
    return from->nd == g->t[t].nd && !strcmp(from->letter, g->t[t].letter) ? x->in[0] : -1;
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
        const RawSpec *label = NULL;
        for (int t = x->in[1]; t >= 0 && !label; t = before_it(g, t))
            label = output_label(a, t, module);
        return label;
    }
    return NULL;
}
/* A norm or head without blocks before it: its input lies as the first module that reads it says,
 * as blocks would leave it. An mlp starts with what a loader gives. */
static const RawSpec *first_label(const Assign *a, int t, int *module) {
    const Graph *g = &a->model->g;
    if (a->plan->kind) return NULL;
    for (int m = 0; m < g->nm; m++) {
        if (!g->module[m].n_input || g->module[m].input[0] != t || !a->use[m].style) continue;
        const RawList *l = &a->use[m].style->input;
        if (!l->set || !l->n || !l->arg[0].set) continue;
        *module = m;
        return &l->arg[0];
    }
    return NULL;
}
/* How the stream that enters lies, and whose line says so; -1: no line. */
static const RawSpec *stream_label(const Assign *a, int t, int *module) {
    *module = -1;
    if (a->plan->block_input.set) return &a->plan->block_input;
    bool blocks = false;
    for (int n = 0; n < a->model->g.nn; n++) blocks |= a->model->g.node[n].layer >= 0;
    return blocks ? last_residual(a, module) : first_label(a, t, module);
}
int assign_stream_module(const Assign *a) {
    int m = -1;
    if (!a->plan->block_input.set) last_residual(a, &m);
    return m;
}
static void cut_input(Assign *a, int t, const AxisList *axes, DimRole role) {
    const GTensor *x = &a->model->g.t[t];
    for (int d = 0; d < x->nd; d++)
        if (x->role[d] == role)
            for (int i = 0; i < axes->n; i++) {
                bool labels = a->plan->order_labels && x->is_int && strstr(x->name, "label");
                CutHow how =
                    target_how(a, x, d, axes->a[i],
                               labels ? a->plan->order_labels : a->plan->context_parallel.order);
                layout_cut(&a->compute[t], d, axes->a[i], how);
            }
}
/* Do all axes of the list cut the weights that modules compute with? */
static bool cut_weights(const Assign *a, const AxisList *axes) {
    int n = 0;
    for (int i = 0; i < axes->n; i++) {
        bool cut = false;
        for (int t = 0; t < a->model->g.nt && !cut; t++)
            cut = a->model->g.t[t].kind == KIND_PARAM &&
                  layout_where(&a->compute[t], axes->a[i]) >= 0;
        n += cut;
    }
    return n && n == axes->n;
}
/* N0018 where the key `axis` of context parallelism names ranks that share the weights, and inputs
 * would lie as they do without it. */
static void note_idle_context(const Assign *a, const AxisList *seq) {
    const Plan *p = a->plan;
    if (!p->context_parallel.axis_loc.file || p->cut_sequence || p->pass != PASS_FORWARD ||
        p->context_parallel.ulysses || p->context_parallel.ring ||
        p->context_parallel.order_loc.file || p->context_parallel.latent ||
        mesh_size(a->mesh, seq) < 2 || !cut_weights(a, seq))
        return;
    diag_note(
        a->d, "N0018", p->context_parallel.axis_loc,
        "leave it out, or name an axis of its own: `mesh: {cp: 2, ...}`",
        "`axis: %s` changes nothing: these ranks share the weights, and the lines of the plan "
        "cut the sequence over them already",
        p->context_parallel.axis);
}
static void layout_inputs(Assign *a) {
    const Graph *g = &a->model->g;
    AxisList batch, seq;
    if (!data_axes(a, &batch, &seq)) return;
    sums_of_data(a, &batch, &seq);
    bool first = true, idle = true;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->kind != KIND_INPUT) continue;
        cut_input(a, t, &batch, DIM_BATCH);
        Layout plain = a->compute[t];
        cut_input(a, t, &seq, DIM_SEQUENCE);
        bool enters =
            g->nn && (g->node[0].in[0] == t || (g->node[0].nin > 1 && g->node[0].in[1] == t));
        if (first && enters && !x->is_int) { /* the stream that enters the first block or layer */
            int m = -1;
            const RawSpec *s = stream_label(a, t, &m);
            Layout base = a->compute[t];
            bool partial =
                s && !s->mapping && (s->bare.kind == RP_PARTIAL || s->bare.kind == RP_LOCAL);
            Layout without = plain;
            if (s && !partial &&
                assign_target(a, &(Target){m, t, s, USE_OUTPUT, &base}, &a->compute[t],
                              a->group[t]) &&
                !layout_eq(&without, &base) &&
                assign_target(a, &(Target){m, t, s, USE_OUTPUT, &plain}, &without, NULL))
                plain = without;
            first = false;
        }
        a->rest[t] = a->compute[t];
        idle = idle && layout_eq(&plain, &a->compute[t]);
    }
    if (idle) note_idle_context(a, &seq);
    AxisList ordered;
    context_ordered(a->mesh, a->plan, &ordered);
    int64_t cp = mesh_size(a->mesh, a->plan->cut_sequence ? &seq : &ordered);
    int64_t S = a->model->dims.S;
    const char *order = a->plan->context_parallel.order, *labels = a->plan->order_labels;
    bool zigzag = (order && !strcmp(order, "zigzag")) || (labels && !strcmp(labels, "zigzag"));
    if (zigzag && cp > 1 && S % (2 * cp))
        diag_error(
            a->d, "E0304", a->plan->context_parallel.order_loc,
            arena_printf(a->arena, "make the sequence a multiple of %lld", (long long)(2 * cp)),
            "zigzag order needs a sequence that 2 x cp divides: %lld is no multiple of %lld",
            (long long)S, (long long)(2 * cp));
}

/* ---- notes ---- */
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
static bool own_line(const PlanLine *l) { return !l->from_recipe && !l->kind; }
/* The scheme of which several lines that match nothing are names, where no line speaks of modules
 * in the plan's own: then `names` is the mistake. -1: it is not. */
static int wrong_names(const Assign *a, const bool *hit) {
    const Plan *p = a->plan;
    int scheme = -1, n = 0;
    bool fits = false; /* GPT-2's names are none of a Llama's, whatever scheme the plan says */
    for (int i = 0; i < p->n_lines; i++) {
        if (!own_line(&p->lines[i])) continue;
        if (hit[i]) return -1;
        int is = suggest_scheme(a, p->lines[i].pattern);
        if (is < 0) continue;
        if (scheme >= 0 && is != scheme) return -1;
        scheme = is, n++;
        fits = fits || suggest_fits(a, is, p->lines[i].pattern);
    }
    return n > 1 && fits ? scheme : -1;
}
/* One finding for all patterns of another scheme. */
static void names_error(Assign *a, int scheme) {
    const Plan *p = a->plan;
    const char *first = NULL;
    Loc loc = p->names_loc;
    int n = 0;
    for (int i = 0; i < p->n_lines; i++) {
        const PlanLine *l = &p->lines[i];
        if (!own_line(l) || suggest_scheme(a, l->pattern) != scheme) continue;
        if (!n++) first = l->pattern;
        if (!loc.file) loc = l->loc;
    }
    const char *theirs = plan_names_text((Names)scheme);
    diag_error(a->d, "E0205", loc, arena_printf(a->arena, "write `names: %s`", theirs),
               "%d patterns ('%s' first) match no module and no parameter: they are names of "
               "`names: %s`, and this plan's are those of `names: %s`",
               n, first, theirs, plan_names_text(p->names));
}
/* Lines that match nothing, and lines that another one beats everywhere. */
static void line_notes(Assign *a, const bool *hit, const bool *won) {
    const Plan *p = a->plan;
    int scheme = wrong_names(a, hit);
    if (scheme >= 0) names_error(a, scheme);
    enum { HINTS = 50 }; /* nobody reads more, and looking for one takes time */
    int hints = 0;
    for (int i = 0; i < p->n_lines; i++) {
        const PlanLine *l = &p->lines[i];
        if (!own_line(l)) continue;
        if (!hit[i]) {
            if (scheme >= 0 && suggest_scheme(a, l->pattern) == scheme) continue;
            diag_error(a->d, "E0205", l->loc, hints++ >= HINTS ? NULL : suggest_for(a, l->pattern),
                       "pattern '%s' matches no module and no parameter", l->pattern);
        } else if (!won[i])
            diag_note(a->d, "N0005", l->loc, NULL,
                      "line '%s' is shadowed by more exact or later lines", l->pattern);
    }
}
/* N0003, where the axis stands; one that --set has made may be a slip of the pen. */
static void axis_note(Assign *a, const char *name, int64_t size) {
    const Plan *p = a->plan;
    Loc loc = p->mesh_loc;
    const char **others = ARENA_ARRAY(a->arena, const char *, p->n_axes + 1), *hint = NULL;
    int n = 0;
    for (int i = 0; i < p->n_axes; i++)
        if (strcmp(p->axes[i].name, name)) others[n++] = p->axes[i].name;
        else if (p->axes[i].loc.file) loc = p->axes[i].loc;
    const char *near = diag_nearest(name, others);
    const bool other = plan_axis_of_others(name) || plan_axis_of_size(a->arena, name);
    const char *mesh = other ? renamed_mesh(a) : NULL;
    if (!p->pipeline.loc.file && !strcmp(name, PLAN_PIPELINE_AXIS))
        hint = "stages on it are asked for by a block of their own: `pipeline: {schedule: 1f1b}`";
    else if (mesh)
        hint = arena_printf(a->arena, "axes have their meaning by their names: %s", mesh);
    else if (plan_from_set(loc) && !plan_from_set(p->mesh_loc))
        hint = near ? near : "--set has made a new axis of the mesh";
    diag_note(a->d, "N0003", loc, hint,
              "axis '%s' of size %lld cuts nothing: its ranks all do the same", name,
              (long long)size);
}
/* N0023: lines that name no axis act on the only one there is, whose name says that it is for
 * something else. */
static void only_axis_note(Assign *a) {
    const Plan *p = a->plan;
    const char *axis = p->n_axes == 1 ? p->axes[0].name : NULL;
    const char *is = !axis ? NULL : plan_is_axis_word(axis) ? axis : plan_axis_of_others(axis);
    if (!is || p->axes[0].size < 2 || !strcmp(is, "tp") || !strcmp(is, "sp")) return;
    bool *counted = ARENA_ARRAY(a->arena, bool, p->n_lines);
    const PlanLine *first = NULL;
    int more = -1;
    for (int m = 0; m < a->model->g.nm; m++) {
        const ModuleUse *u = &a->use[m];
        const bool experts = !strcmp(is, "ep") && !strcmp(a->model->g.module[m].kind, "experts");
        if (!u->style || u->line < 0 || u->style->axis || !u->group || strcmp(u->group, axis) ||
            experts || counted[u->line])
            continue;
        counted[u->line] = true;
        if (!first || &p->lines[u->line] < first) first = &p->lines[u->line];
        more++;
    }
    if (!first) return;
    const char *others =
        more ? arena_printf(a->arena, " and %d more line%s", more, more == 1 ? "" : "s") : "";
    const char *mend = arena_printf(a->arena, "for tensor parallelism `mesh: {tp: %lld}`",
                                    (long long)p->axes[0].size);
    if (own_line(first))
        mend = arena_printf(a->arena, "%s; where '%s' is meant, `axis: %s` in the line%s says so",
                            mend, axis, axis, more ? "s" : "");
    diag_note(a->d, "N0023", p->axes[0].loc.file ? p->axes[0].loc : p->mesh_loc, mend,
              "%s%s name%s no axis and act%s on '%s', the only one of the mesh",
              line_words(a, first), others, more ? "" : "s", more ? "" : "s", axis);
}
/* Axes that cut nothing, parameters that no line names: true only of a plan that was laid out. */
static void layout_notes(Assign *a) {
    const Plan *p = a->plan;
    for (int x = 0; x < a->mesh->naxes; x++) {
        if (a->mesh->axis[x].size < 2 || axis_cuts(a, x) || (a->stages && a->stages->axis == x))
            continue;
        axis_note(a, a->mesh->axis[x].name, a->mesh->axis[x].size);
        a->idle = true;
    }
    a->idle |= uneven_empty(a);
    only_axis_note(a);
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
            a->d, "N0002", plan_place(p), NULL,
            "%d parameter%s no plan line lays out, so every rank holds %s in full (first: %s)",
            unnamed, unnamed == 1 ? "" : "s", unnamed == 1 ? "it" : "them", first);
}

/* Has it been said since that the ranks do not divide the heads? */
static bool heads_told(const Assign *a, int from) {
    for (int i = from; i < a->d->n; i++)
        if (!strcmp(a->d->item[i].code, "E0303") || !strcmp(a->d->item[i].code, "E0305"))
            return true;
    return false;
}
Assign *assign_plan(Arena *arena, Diags *d, const Plan *p, Mesh *mesh, const Model *m,
                    const struct Play **stuck) {
    Assign *a = ARENA_NEW(arena, Assign);
    int nt = m->g.nt, before = diags_errors(d), said = d->n;
    *a = (Assign){.plan = p, .mesh = mesh, .model = m, .d = d, .arena = arena};
    bool *hit, *won;
    do { /* splitting an axis renumbers the axes: match again */
        a->use = ARENA_ARRAY(arena, ModuleUse, m->g.nm + 1);
        hit = ARENA_ARRAY(arena, bool, p->n_lines + 1);
        won = ARENA_ARRAY(arena, bool, p->n_lines + 1);
        match_modules(a, hit, won);
        axis_missing(a);
    } while (diags_errors(d) == before && !p->line_errors &&
             (heads_split(a, mesh) || context_split(a, mesh)));
    /* what follows would only repeat the errors; a pattern that matches nothing is another one */
    if (diags_errors(d) > before || p->line_errors) {
        for (int t = 0; t < nt; t++)
            if (m->g.t[t].kind == KIND_PARAM)
                best_line(a, m->g.t[t].plan_name, m->g.t[t].name, hit);
        if (!heads_told(a, said)) heads_tell(a, hit);
        line_notes(a, hit, hit);
        return NULL;
    }
    a->compute = ARENA_ARRAY(arena, Layout, nt + 1);
    a->rest = ARENA_ARRAY(arena, Layout, nt + 1);
    a->group = arena_alloc(arena, base_mul((size_t)nt + 1, sizeof *a->group));
    a->line = ARENA_ARRAY(arena, int, nt + 1);
    a->claimed = ARENA_ARRAY(arena, bool, nt + 1);
    a->summed = ARENA_ARRAY(arena, uint32_t, nt + 1);
    a->dtensor = ARENA_ARRAY(arena, bool, nt + 1);
    a->dtensor_op = ARENA_ARRAY(arena, bool, m->g.nn + 1);
    layout_params(a, hit, won);
    axis_missing(a);
    layout_inputs(a);
    experts_check(a);
    context_check(a);
    rest_lay(a);
    a->reshard = plan_reshard(a->plan);
    if (diags_errors(d) == before && stages_find(a)) stages_place(a);
    if (stuck) *stuck = a->stuck;
    sums_of_parameters(a);
    zero_lay(a);
    for (int t = 0; t < nt; t++) /* an optimizer's state lies where its parameter is updated */
        if (m->g.t[t].state_of) a->compute[t] = a->rest[t] = a->state[m->g.t[t].state_of - 1];
    line_notes(a, hit, won);
    if (diags_errors(d) > before && !heads_told(a, said)) heads_tell(a, hit);
    if (diags_errors(d) == before) dtensor_follow(a);
    if (diags_errors(d) == before) uneven_sharding(a);
    if (diags_errors(d) == before) layout_notes(a);
    return diags_errors(d) > before ? NULL : a;
}
