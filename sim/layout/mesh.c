/* Ranks as points of a grid of named axes; groups of axes; splitting an axis. */
#include "layout/mesh.h"
#include <assert.h>
#include <string.h>

bool mesh_finish(Mesh *m) {
    assert(m->naxes >= 0 && m->naxes <= MESH_MAX_AXES);
    int64_t s = 1;
    for (int a = m->naxes - 1; a >= 0; a--) {
        assert(m->axis[a].size >= 1 && "an axis has a rank");
        m->axis[a].stride = s;
        if (__builtin_mul_overflow(s, m->axis[a].size, &s)) return false;
    }
    m->nranks = s;
    return true;
}

int mesh_axis(const Mesh *m, const char *name) {
    for (int a = 0; a < m->naxes; a++)
        if (!strcmp(m->axis[a].name, name)) return a;
    return -1;
}

bool mesh_lookup(const Mesh *m, const char *name, AxisList *out) {
    memset(out, 0, sizeof *out);
    for (int g = 0; g < m->ngroups; g++)
        if (!strcmp(m->group[g].name, name)) {
            *out = m->group[g].axes;
            return true;
        }
    for (int a = 0; a < m->naxes; a++)
        if (!strcmp(m->axis[a].name, name) ||
            (m->axis[a].parent && !strcmp(m->axis[a].parent, name)))
            out->a[out->n++] = (uint8_t)a;
    return out->n > 0;
}

bool mesh_product(const Mesh *m, const char *text, AxisList *out) {
    Arena *tmp = arena_new();
    char *save = NULL;
    memset(out, 0, sizeof *out);
    for (char *w = strtok_r(arena_strdup(tmp, text), "* ", &save); w;
         w = strtok_r(NULL, "* ", &save)) {
        AxisList one;
        if (!mesh_lookup(m, w, &one)) continue;
        for (int i = 0; i < one.n && out->n < MESH_MAX_AXES; i++) out->a[out->n++] = one.a[i];
    }
    arena_free(tmp);
    return out->n > 0;
}

/* In every list, axis `a` becomes a, a+1 and later axes move up by one. */
static void renumber(AxisList *l, int a) {
    AxisList r = {0};
    for (int i = 0; i < l->n; i++) {
        r.a[r.n++] = (uint8_t)(l->a[i] > a ? l->a[i] + 1 : l->a[i]);
        if (l->a[i] == a && r.n < MESH_MAX_AXES) r.a[r.n++] = (uint8_t)(a + 1);
    }
    *l = r;
}

bool mesh_split(Mesh *m, Arena *arena, const char *name, int64_t outer) {
    int a = mesh_axis(m, name);
    if (a < 0 || m->naxes == MESH_MAX_AXES || outer < 1 || m->axis[a].size % outer ||
        m->axis[a].parent)
        return false;
    memmove(&m->axis[a + 2], &m->axis[a + 1], (size_t)(m->naxes - a - 1) * sizeof m->axis[0]);
    MeshAxis whole = m->axis[a];
    m->axis[a] = (MeshAxis){arena_printf(arena, "%s.0", name), outer, 0, whole.name};
    m->axis[a + 1] =
        (MeshAxis){arena_printf(arena, "%s.1", name), whole.size / outer, 0, whole.name};
    m->naxes++;
    for (int g = 0; g < m->ngroups; g++) renumber(&m->group[g].axes, a);
    return mesh_finish(m);
}

uint32_t mesh_axes_set(const AxisList *l) {
    assert(l->n <= MESH_MAX_AXES);
    uint32_t set = 0;
    for (int i = 0; i < l->n; i++) set |= 1u << l->a[i];
    return set;
}
AxisList mesh_set_axes(const Mesh *m, uint32_t set) {
    AxisList l = {0};
    for (int x = 0; x < m->naxes; x++)
        if (set >> x & 1) l.a[l.n++] = (uint8_t)x;
    return l;
}
static bool is_paired(const AxisList *l, int k) { return l->paired == l->a[k] + 1; }
/* Members of a group along one of its axes. */
static int64_t along(const Mesh *m, const AxisList *l, int k) {
    return is_paired(l, k) ? 2 : m->axis[l->a[k]].size;
}
int64_t mesh_size(const Mesh *m, const AxisList *l) {
    int64_t s = 1;
    for (int i = 0; i < l->n; i++) s *= along(m, l, i);
    return s;
}
bool mesh_takes_part(const Mesh *m, const AxisList *l, int64_t rank) {
    if (!l->paired) return true;
    int64_t c = mesh_coord(m, rank, l->paired - 1);
    return c == l->pair.low || c == l->pair.high;
}
bool mesh_same_axes(const AxisList *a, const AxisList *b) {
    return a->n == b->n && !memcmp(a->a, b->a, (size_t)a->n) && a->paired == b->paired &&
           a->pair.low == b->pair.low && a->pair.high == b->pair.high;
}

int64_t mesh_index_in(const Mesh *m, const AxisList *l, int64_t rank) {
    assert(rank >= 0 && rank < m->nranks);
    int64_t i = 0;
    for (int k = 0; k < l->n; k++) {
        int64_t c = mesh_coord(m, rank, l->a[k]);
        i = i * along(m, l, k) + (is_paired(l, k) ? c == l->pair.high : c);
    }
    return i;
}

int64_t mesh_member(const Mesh *m, const AxisList *l, int64_t rank, int64_t i) {
    assert(rank >= 0 && rank < m->nranks && i >= 0 && i < mesh_size(m, l));
    for (int k = l->n - 1; k >= 0; k--) {
        const MeshAxis *x = &m->axis[l->a[k]];
        int64_t n = along(m, l, k), c = i % n;
        if (is_paired(l, k)) c = c ? l->pair.high : l->pair.low;
        rank += (c - rank / x->stride % x->size) * x->stride;
        i /= n;
    }
    return rank;
}

const char *mesh_axes_text(const Mesh *m, Arena *arena, const AxisList *l, bool keep_ones) {
    assert(l->n <= m->naxes && "an axis stands once in a list");
    Str s = str_new(arena);
    for (int i = 0; i < l->n; i++) {
        const MeshAxis *x = &m->axis[l->a[i]];
        const char *name = x->name;
        /* tp.0 followed by tp.1 is all of tp */
        if (x->parent && i + 1 < l->n && m->axis[l->a[i + 1]].parent &&
            !strcmp(m->axis[l->a[i + 1]].parent, x->parent) && l->a[i + 1] == l->a[i] + 1) {
            name = x->parent;
            i++;
        } else if (x->size == 1 && !keep_ones) continue;
        if (s.n) str_add(&s, "*");
        str_add(&s, name);
    }
    return s.s;
}
