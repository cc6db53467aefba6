/* Axes of the mesh by their names in a plan. */
#include "assign/assign.h"
#include <string.h>

const char *assign_axis_nearest(const Mesh *m, const char *word) {
    const char *names[MESH_MAX_AXES + 33];
    int n = 0;
    for (int a = 0; a < m->naxes; a++) names[n++] = m->axis[a].name;
    for (int g = 0; g < m->ngroups; g++) names[n++] = m->group[g].name;
    names[n] = NULL;
    return plan_axis_nearest(word, names);
}

bool assign_axes(const Mesh *m, Arena *arena, Diags *d, const char *text, Loc loc, AxisList *out) {
    memset(out, 0, sizeof *out);
    bool ok = true;
    char *copy = arena_strdup(arena, text), *save = NULL;
    for (char *w = strtok_r(copy, "* ", &save); w; w = strtok_r(NULL, "* ", &save)) {
        AxisList l;
        if (!mesh_lookup(m, w, &l)) {
            const char *near = assign_axis_nearest(m, w);
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
        int most = 0; /* it may come from elsewhere than the others: --set */
        for (int a = 1; a < p->n_axes; a++)
            if (p->axes[a].size > p->axes[most].size) most = a;
        diag_error(d, "E0703", p->axes[most].size_loc, "make its axes smaller",
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
