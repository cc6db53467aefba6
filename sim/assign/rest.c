/* Parameters at rest: which stored dim of each FSDP cuts, and over which axes. Refuses to say who
 * gathers what: lowering does, of these layouts. */
#include "assign/rest.h"
#include "assign/experts.h"
#include "assign/suggest.h"
#include "assign/sums.h"
#include <string.h>

/* ---- which dim ---- */
/* Does this line of `data_parallel: {dims:}` speak of parameter t? "*": of all that no other does.
 */
static bool speaks_of(const Assign *a, const PlanPair *line, int t) {
    return !strcmp(line->key, "*") || sums_names(&a->model->g, &a->model->g.t[t], line->key);
}
/* The line that does: the most exact, of equal ones the last; NULL: none. */
static const PlanPair *dims_line(const Assign *a, int t) {
    const Plan *p = a->plan;
    const PlanPair *best = NULL;
    for (int i = 0; i < p->n_dims; i++) {
        const PlanPair *line = &p->dims[i];
        if (!speaks_of(a, line, t) || (best && !strcmp(line->key, "*"))) continue;
        if (!best || !strcmp(best->key, "*") || plan_pattern_order(line->key, best->key) >= 0)
            best = line;
    }
    return best;
}
/* The stored dim of parameter t that is cut at rest; -1: it stays whole. */
static int rest_dim(const Assign *a, int t) {
    const PlanPair *line = dims_line(a, t);
    if (!line) return experts_rest_dim(a, t);
    return strcmp(line->text, "whole") == 0 ? -1 : line->text[0] - '0';
}
/* Is it a line's pattern too? What is wrong with it is said there. */
static bool is_line(const Plan *p, const char *pattern) {
    for (int i = 0; i < p->n_lines; i++)
        if (strcmp(p->lines[i].pattern, pattern) == 0) return true;
    return false;
}
/* E0205 for a pattern that names no parameter, E0307 for a dim that one of them has not. */
static bool check_dims(const Assign *a) {
    const Graph *g = &a->model->g;
    int before = diags_errors(a->d);
    for (int i = 0; i < a->plan->n_dims; i++) {
        const PlanPair *line = &a->plan->dims[i];
        bool hit = false;
        for (int t = 0; t < g->nt; t++) {
            if (g->t[t].kind != KIND_PARAM || g->t[t].state_of || !speaks_of(a, line, t)) continue;
            int dim = rest_dim(a, t);
            bool has = dims_line(a, t) != line || dim < g->t[t].nstored;
            if (!has && !hit)
                diag_error(a->d, "E0307", line->value_loc,
                           g->t[t].nstored > 1 ? "dim 0 or 1, or whole" : "dim 0, or whole",
                           "%s has no dim %d", graph_name(&g->t[t]), dim);
            hit = true;
        }
        if (hit || !strcmp(line->key, "*") || is_line(a->plan, line->key)) continue;
        const char *near = suggest_nearest(a->arena, g, line->key);
        diag_error(a->d, "E0205", line->loc,
                   near ? arena_printf(a->arena, "did you mean '%s'?", near)
                        : "patterns under `dims` match parameters or modules",
                   "pattern '%s' matches no parameter", line->key);
    }
    return diags_errors(a->d) == before;
}

/* ---- the cut ---- */
/* The axes that cut parameter t at rest alone: those of data parallelism that do not cut it
 * already, as the axes of `ep` cut experts. */
static AxisList rest_axes(const Assign *a, int t) {
    AxisList l = {0};
    for (int i = 0; i < a->shard.n; i++)
        if (layout_where(&a->rest[t], a->shard.a[i]) < 0) l.a[l.n++] = a->shard.a[i];
    return l;
}

/* Cut axis by axis, do the blocks lie as one cut over all of the axes' ranks would lay them? Their
 * largest is the same. */
static bool cut_as_one(const Mesh *m, const AxisList *axes, int64_t rows) {
    int64_t after = mesh_size(m, axes);
    for (int i = 0; i < axes->n; i++) {
        int64_t n = m->axis[axes->a[i]].size;
        rows = (rows + n - 1) / n;
        after /= n;
        if (rows % after) return false;
    }
    return true;
}

/* The rows of parameter t that are cut at rest: of that dim as it lies in compute, all letters. */
static int64_t rest_rows(const Assign *a, int t) {
    const GTensor *x = &a->model->g.t[t];
    int64_t local[LAYOUT_MAX_DIMS], r = 1;
    int dim = rest_dim(a, t), first = graph_stored_first(x, dim);
    layout_local(a->mesh, &a->compute[t], x->size, 0, local);
    for (int k = first; k < first + x->stored[dim]; k++) r *= local[k];
    return r;
}

/* FSDP2 cuts over the ranks of one flat mesh; here every axis cuts by itself, and uneven rows go to
 * other ranks. */
static void note_nested(const Assign *a) {
    int n = 0, first = -1;
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        if (x->kind != KIND_PARAM || !x->diff || a->claimed[t] || !x->nd) continue;
        if (rest_dim(a, t) < 0) continue;
        AxisList axes = rest_axes(a, t);
        if (!cut_as_one(a->mesh, &axes, rest_rows(a, t)) && !n++) first = t;
    }
    if (!n) return;
    AxisList axes = rest_axes(a, first);
    diag_note(
        a->d, "N0006", a->plan->data_parallel.loc, "a size that all of the axes divide together",
        "%s%s: %lld rows are cut axis by axis over %s, PyTorch cuts them over all %lld ranks "
        "at once: the same numbers and bytes, other parts on the last ranks",
        a->model->g.t[first].plan_name, n > 1 ? arena_printf(a->arena, " and %d more", n - 1) : "",
        (long long)rest_rows(a, first), mesh_axes_text(a->mesh, a->arena, &axes, true),
        (long long)mesh_size(a->mesh, &axes));
}

/* FSDP is a layout of parameters at rest: a dim cut by the data axes, inside whatever tensor
 * parallelism cuts (what PyTorch calls a strided shard). A dim of several letters is cut as the
 * flat list that it is in memory. */
void rest_lay(Assign *a) {
    if (!a->shard.n || !check_dims(a)) return;
    note_nested(a);
    for (int t = 0; t < a->model->g.nt; t++) {
        const GTensor *x = &a->model->g.t[t];
        if (x->kind != KIND_PARAM || a->claimed[t] || !x->nd) continue;
        if (!x->diff && !x->state_of) continue; /* a buffer stays whole */
        int dim = rest_dim(a, t), first = graph_stored_first(x, dim);
        if (dim < 0) continue;
        AxisList axes = rest_axes(a, t);
        for (int i = 0; i < axes.n; i++)
            if (x->stored[dim] > 1) layout_cut_list(&a->rest[t], axes.a[i], dim);
            else layout_cut(&a->rest[t], first, axes.a[i], CUT_CHUNK);
    }
}
