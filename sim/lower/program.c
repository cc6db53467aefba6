/* Questions about a lowered program: what a step reads, how people call it, symbolic shapes, a
 * printed form. */
#include "lower/program.h"
#include <assert.h>
#include <string.h>

Val *program_add_val(Program *p, const Val *as) {
    Val copy = *as; /* the push may move the array */
    Val *v = ARENA_PUSH_LARGE(p->arena, p->val, p->nv, p->cap_v);
    *v = copy;
    v->id = p->nv - 1;
    if (v->root < 0) v->root = v->id;
    v->step = -1;
    return v;
}
Step step_blank(StepKind kind, Phase pass) {
    return (Step){.kind = kind, .pass = pass, .module = -1, .node = -1, .out = -1, .unit = -1};
}
Step *program_add_step(Program *p, const Step *as, int out) {
    Step copy = *as;
    Step *s = ARENA_PUSH_LARGE(p->arena, p->step, p->ns, p->cap_s);
    *s = copy;
    s->id = p->ns - 1;
    s->out = out;
    if (out >= 0) p->val[out].step = s->id;
    return s;
}
Act act_of(const Step *s) { return s->act ? *s->act : act_declared(&s->move); }
int step_reads(const Step *s, int *r) {
    assert(s->nin >= 0 && s->nin <= RULE_MAX_IN + 2);
    int n = 0;
    for (int i = 0; i < s->nin; i++)
        if (s->in[i] >= 0) r[n++] = s->in[i];
    return n;
}
bool step_renames(const Program *p, const Step *s) {
    if (s->kind != ST_MOVE) return s->kind == ST_CLAIM;
    if (move_views(s->move.kind)) return !s->packs;
    return mesh_size(p->mesh, &s->move.axes) == 1 && !s->act && p->val[s->out].list < 0;
}
int program_env(const Program *p, int tensor, int way) {
    return way ? p->other.env[tensor] : p->env[tensor];
}
int program_first(const Program *p, int tensor, int way) {
    return way ? p->other.first[tensor] : p->first[tensor];
}
int program_loss(const Program *p, int way) { return way ? p->other.loss : p->loss; }
void program_reads(const Program *p, bool through, int *first, int *last) {
    for (int v = 0; v < p->nv; v++) first[v] = p->ns, last[v] = -1;
    for (int i = p->ns - 1; i >= 0; i--) {
        const Step *s = &p->step[i];
        int r[RULE_MAX_IN + 2], n = step_reads(s, r);
        bool view = through && step_renames(p, s);
        int begin = view ? first[s->out] : i, end = view && last[s->out] > i ? last[s->out] : i;
        for (int k = 0; k < n; k++) {
            if (begin < first[r[k]]) first[r[k]] = begin;
            if (end > last[r[k]]) last[r[k]] = end;
        }
    }
}
int program_list(const Program *p, const Step *s) {
    for (int i = 0; i < s->nin; i++)
        if (s->in[i] >= 0 && p->val[s->in[i]].list >= 0) return p->val[s->in[i]].list;
    return p->val[s->out].list;
}
Layout program_list_layout(const Program *p, int list, const Layout *rows) {
    const GTensor *t = &p->graph->t[p->val[list].tensor];
    Layout L = layout_whole(p->mesh, t->nd, TY_I);
    for (int a = 0; a < p->mesh->naxes; a++)
        if (rows->type[a] == TY_AT) layout_place(&L, a, rows->at[a]);
    for (int d = 0; d < t->nd; d++) {
        L.n[d] = rows->n[d];
        memcpy(L.e[d], rows->e[d], sizeof L.e[d]);
        for (int k = 0; k < L.n[d]; k++)
            if (!L.e[d][k].ghost) L.type[L.e[d][k].axis] = TY_V;
    }
    return L;
}
Subject program_subject(const Program *p, const Val *v) {
    return graph_subject(&p->graph->t[v->tensor], v->cot);
}
const char *program_value_name(const Program *p, const Val *v, Arena *arena) {
    return subject_name(arena, program_subject(p, v));
}
int step_places_behind(const Step *s) {
    const Layout *l = &s->move.to;
    int d = s->move.axes.n ? layout_where(l, s->move.axes.a[0]) : -1;
    for (int k = 0; d >= 0 && k < l->n[d]; k++)
        if (l->e[d][k].axis == s->move.axes.a[0]) return l->e[d][k].shift;
    return 0;
}
const char *step_name(const Program *p, const Step *s, Arena *arena) {
    const char *v = program_value_name(p, &p->val[s->out], arena);
    if (s->kind == ST_MOVE && s->move.kind == MOVE_SHIFT)
        return arena_printf(arena, "%s %d of %s", move_name(s->move.kind), step_places_behind(s),
                            v);
    if (s->kind == ST_MOVE) return arena_printf(arena, "%s of %s", move_name(s->move.kind), v);
    if (s->kind == ST_CLAIM) return arena_printf(arena, "claim about %s", v);
    return v;
}

const char *step_value(const Program *p, const Step *s) {
    return program_value_name(p, &p->val[s->out], p->arena);
}

/* ---- symbolic shapes ---- */
int program_stored_dim(const GTensor *t, const Layout *l, int letter) {
    int at = 0;
    for (int d = 0; d < t->nstored; d++) {
        at += t->stored[d];
        if (letter < at) return d;
    }
    return l->list;
}
/* The axes of a cut as text, "cp*sp": names that the plan used where they stand for exactly these
 * axes. */
static void axes_text(const Program *p, const Val *v, const AxisList *l, Str *s) {
    const Mesh *m = p->mesh;
    for (int i = 0; i < l->n;) {
        const char *g = v->group[l->a[i]];
        AxisList named;
        int take = 1;
        const char *text = m->axis[l->a[i]].name;
        if (g && mesh_lookup(m, g, &named) && named.n <= l->n - i &&
            !memcmp(named.a, l->a + i, (size_t)named.n)) {
            take = named.n;
            text = g;
        } else if (m->axis[l->a[i]].parent && i + 1 < l->n && l->a[i + 1] == l->a[i] + 1 &&
                   m->axis[l->a[i + 1]].parent == m->axis[l->a[i]].parent) {
            take = 2;
            text = m->axis[l->a[i]].parent;
        }
        str_addf(s, "%s%s", s->n ? "*" : "", text);
        i += take;
    }
}
const char *program_axes_called(const Program *p, const Val *v, const AxisList *l, Arena *arena) {
    Str s = str_new(arena);
    axes_text(p, v, l, &s);
    return s.n ? s.s : "";
}
const char *program_letter_symbol(const Program *p, const Val *v, int d, Arena *arena) {
    AxisList l = layout_dim_axes(&v->L, d);
    const char *cut = program_axes_called(p, v, &l, arena), *sym = p->graph->t[v->tensor].sym[d];
    if (!*cut) return sym;
    return arena_printf(arena, strchr(cut, '*') ? "%s/(%s)" : "%s/%s", sym, cut);
}
/* "rows(B/dp, S/cp, E/ep)" */
static const char *rows_symbol(const Program *p, const Val *v, Arena *arena) {
    const GTensor *t = &p->graph->t[v->tensor];
    Str s = str_new(arena);
    str_add(&s, "rows(");
    for (int i = 0; i < t->listed; i++) /* tokens first, as people say it */
        str_addf(&s, "%s%s", i ? ", " : "",
                 program_letter_symbol(p, v, (i + 1) % t->listed, arena));
    str_add(&s, ")");
    return s.s;
}
/* Ranges of the list that the tensor is in memory, or each of the parts that other axes cut. */
static const char *flat_symbol(const Program *p, const Val *v, Arena *arena) {
    AxisList l = {0};
    for (int k = 0; k <= v->L.ndim; k++) {
        AxisList one = layout_dim_axes(&v->L, k);
        for (int i = 0; i < one.n; i++) l.a[l.n++] = one.a[i];
    }
    const char *cut = program_axes_called(p, v, &l, arena);
    return arena_printf(arena, strchr(cut, '*') ? "flat/(%s)" : "flat/%s", cut);
}
int program_symbols(const Program *p, const Val *v, Arena *arena, const char **dims) {
    const GTensor *t = &p->graph->t[v->tensor];
    int at = 0;
    if (v->L.flat.total) {
        dims[0] = flat_symbol(p, v, arena);
        return 1;
    }
    for (int d = 0; d < t->nstored; d++) {
        AxisList l = {0};
        bool packed = t->stored[d] > 1 && t->sym[at][0] >= '0' && t->sym[at][0] <= '9',
             through = false;
        for (int k = at; k < at + t->stored[d]; k++) {
            AxisList one = layout_dim_axes(&v->L, k);
            for (int i = 0; i < one.n; i++) l.a[l.n++] = one.a[i];
        }
        at += t->stored[d];
        if (d == 0 && t->listed) {
            dims[d] = rows_symbol(p, v, arena);
            continue;
        }
        if (d == v->L.list) { /* the flattened cut of a stored dim */
            AxisList one = layout_dim_axes(&v->L, v->L.ndim);
            through = packed && one.n &&
                      !l.n; /* (2*F)/tp: cut as one list, not 2*F/tp, each block by itself */
            for (int i = 0; i < one.n; i++) l.a[l.n++] = one.a[i];
        }
        Str s = str_new(arena);
        axes_text(p, v, &l, &s);
        const char *sym = graph_stored_symbol(t, d, arena);
        if (through) sym = arena_printf(arena, "(%s)", sym);
        dims[d] = !s.n               ? sym
                  : strchr(s.s, '*') ? arena_printf(arena, "%s/(%s)", sym, s.s)
                                     : arena_printf(arena, "%s/%s", sym, s.s);
    }
    return t->nstored;
}
const char *program_symbolic(const Program *p, const Val *v, Arena *arena) {
    const char *dims[LAYOUT_MAX_DIMS];
    int n = program_symbols(p, v, arena, dims);
    Str s = str_new(arena);
    str_add(&s, "[");
    for (int d = 0; d < n; d++) str_addf(&s, "%s%s", d ? ", " : "", dims[d]);
    str_add(&s, "]");
    return s.s;
}
const char *program_axes_name(const Program *p, const Step *s, Arena *arena) {
    if (s->group) return s->group;
    const char *t = mesh_axes_text(p->mesh, arena, &s->move.axes, false);
    return *t ? t : mesh_axes_text(p->mesh, arena, &s->move.axes, true);
}

void program_dump(const Program *p, FILE *f) {
    Arena *tmp = arena_new();
    static const char *kinds[] = {"op", "move", "claim", "adjoint", "sum", "seed"};
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        const Val *o = &p->val[s->out];
        fprintf(f, "%4d %-10s %-8s %-42s %s", s->id, phase_text(s->pass), kinds[s->kind],
                step_name(p, s, tmp),
                layout_text(p->mesh, &o->L, p->graph->t[o->tensor].letter, tmp));
        if (s->kind == ST_MOVE)
            fprintf(f, "  over %s%s", program_axes_name(p, s, tmp),
                    s->inferred ? " (inferred)" : "");
        fprintf(f, "  reads");
        int r[RULE_MAX_IN + 2], n = step_reads(s, r);
        for (int k = 0; k < n; k++)
            fprintf(f, " %d:%s", p->val[r[k]].step, program_value_name(p, &p->val[r[k]], tmp));
        fprintf(f, "\n");
    }
    arena_free(tmp);
}
