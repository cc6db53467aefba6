/* The grid of experts on the same ranks: which experts a rank has, read from how their weights lie
 * in compute. See mesh.h. */
#include "render/mesh/mesh.h"
#include <string.h>

static int64_t stride_of(const Trace *t, int axis) {
    int64_t stride = 1;
    for (int i = t->n_axes - 1; i > axis; i--) stride *= t->axes[i].size > 0 ? t->axes[i].size : 1;
    return stride;
}
static int axis_named(const Trace *t, const char *name, size_t n) {
    for (int i = 0; i < t->n_axes; i++)
        if (strlen(t->axes[i].name) == n && !strncmp(t->axes[i].name, name, n)) return i;
    return -1;
}
/* The dim of a weight that an axis cuts in compute; -1: none. */
static int cut_dim(const TraceShape *s, const char *axis) {
    int dim = -1;
    for (int i = 0; i < s->n_places; i++)
        if (!strcmp(s->place[i].axis, axis) && s->place[i].place &&
            strncmp(s->place[i].place, "at(", 3)) /* that is a stage */
            for (int d = 0; d < s->nd; d++) {
                const char digit[] = {'(', (char)('0' + d), ')', 0};
                if (strstr(s->place[i].place, digit)) dim = d;
            }
    return dim;
}
/* Adds an axis larger than one rank to a list of at most TRACE_MAX_AXES. */
static void add(const Trace *t, MeshSide *s, int axis) {
    if (axis < 0 || t->axes[axis].size <= 1 || s->n == TRACE_MAX_AXES) return;
    for (int i = 0; i < s->n; i++)
        if (s->axis[i] == axis) return;
    s->axis[s->n++] = axis;
    s->size *= t->axes[axis].size;
}
static const char *side_axes(Arena *a, const Trace *t, const MeshSide *s) {
    Str list = str_new(a);
    for (int i = 0; i < s->n; i++) str_addf(&list, "%s%s", i ? "*" : "", t->axes[s->axis[i]].name);
    return words_axis_list(a, t, list.n ? list.s : "");
}
static unsigned side_mask(const MeshSide *s) {
    unsigned mask = 0;
    for (int i = 0; i < s->n; i++) mask |= 1u << s->axis[i];
    return mask;
}
/* Is a dim of the shape "[E/ep, F/etp, D]" cut by what the plan calls so? */
static bool cut_by(const TraceShape *s, const char *name) {
    const size_t n = strlen(name);
    for (const char *p = s->symbolic ? s->symbolic : ""; (p = strstr(p, name)) != NULL; p += n)
        if (p > s->symbolic && strchr("/(*", p[-1]) && strchr(",]*)", p[n])) return true;
    return false;
}
/* The plan's name for exactly these axes; NULL: it has none. One axis may have others' names, as
 * that of the sequence: of these only the one that cuts the experts counts. */
static const char *side_name(const Trace *t, const MeshExperts *m, const MeshSide *s) {
    const unsigned in = side_mask(s);
    for (int g = 0; g < t->n_groups && in; g++) {
        const char *name = t->groups[g].name;
        const bool own = s->n > 1 || cut_by(&m->w->compute, name);
        if (own && mesh_axes(t, t->groups[g].axes) == in) return name;
    }
    return NULL;
}
/* "ep=4 (dp·cp)": the plan's name for these axes, if it has one, and what they are. */
static const char *side_text(Arena *a, const Trace *t, const MeshExperts *m, const MeshSide *s) {
    const char *axes = side_axes(a, t, s), *name = side_name(t, m, s);
    return name ? arena_printf(a, "%s=%lld (%s)", name, (long long)s->size, axes)
                : arena_printf(a, "%s=%lld", axes, (long long)s->size);
}

/* ---- the two meshes ---- */

static int64_t mask_size(const Trace *t, unsigned mask) {
    int64_t size = 1;
    for (int i = 0; i < t->n_axes; i++) size *= mask >> i & 1 ? t->axes[i].size : 1;
    return size;
}
/* A mesh whose axes are one or several of t->axes, each with a name. */
typedef struct {
    int n;
    unsigned mask[TRACE_MAX_AXES];
    Str words; /* "dp 2 · tp 2" */
} MeshView;
static void add_axis(MeshView *v, const Trace *t, const char *name, unsigned mask) {
    if (v->n == TRACE_MAX_AXES || mask_size(t, mask) < 2) return;
    str_addf(&v->words, "%s%s %lld", v->n ? " · " : "", name, (long long)mask_size(t, mask));
    v->mask[v->n++] = mask;
}
/* The axes of a mask by their own names, tp.0 and tp.1 as tp. */
static void add_axes(MeshView *v, Arena *a, const Trace *t, unsigned mask) {
    WordAxis ax[TRACE_MAX_AXES];
    int n = words_axes(a, t, ax, TRACE_MAX_AXES);
    for (int i = 0; i < n; i++) {
        unsigned own = ((1u << ax[i].parts) - 1) << ax[i].first;
        add_axis(v, t, ax[i].name, own & mask);
    }
}
/* Does every dense weight lie on these axes alike? Then they are one to it. */
static bool one_to_dense(const Trace *t, unsigned mask) {
    for (int p = 0; p < t->n_params; p++) {
        const TraceShape *s = &t->params[p].compute;
        int first = -2;
        for (int i = 0; i < t->n_axes && !trace_of_experts(s); i++) {
            if (!(mask >> i & 1) || t->axes[i].size < 2) continue;
            const int dim = cut_dim(s, t->axes[i].name);
            if (first != -2 && dim != first) return false;
            first = dim;
        }
    }
    return true;
}
/* Dense weights know the plan's axes, but for a group of some that only experts tell apart: edp and
 * ep are dp to them. */
static MeshView dense_mesh(Arena *a, const Trace *t, const MeshExperts *m) {
    MeshView v = {.words = str_new(a)};
    const unsigned side[] = {side_mask(&m->ep), side_mask(&m->inside), side_mask(&m->copies)};
    unsigned done = 0;
    for (int i = 0; i < t->n_axes; i++) {
        if (done >> i & 1) continue;
        const char *name = NULL;
        unsigned mask = 0;
        for (int g = 0; g < t->n_groups && !name; g++) {
            mask = mesh_axes(t, t->groups[g].axes);
            bool apart = mask >> i & 1 && !(mask & done) && one_to_dense(t, mask);
            for (int k = 0; k < 3; k++) apart &= (mask & ~side[k]) != 0;
            if (apart) name = t->groups[g].name;
        }
        if (name) add_axis(&v, t, name, mask);
        else add_axes(&v, a, t, mask = 1u << i);
        done |= mask;
    }
    return v;
}
static MeshView expert_mesh(Arena *a, const Trace *t, const MeshExperts *m) {
    MeshView v = {.words = str_new(a)};
    const unsigned ep = side_mask(&m->ep), inside = side_mask(&m->inside),
                   copies = side_mask(&m->copies);
    const char *name = side_name(t, m, &m->ep), *in = side_name(t, m, &m->inside);
    add_axes(&v, a, t, ~(ep | inside | copies)); /* stages */
    add_axes(&v, a, t, copies);
    add_axis(&v, t, name ? name : side_axes(a, t, &m->ep), ep);
    if (in) add_axis(&v, t, in, inside);
    else add_axes(&v, a, t, inside);
    return v;
}
static const char *two_meshes(Arena *a, const Trace *t, const MeshExperts *m) {
    const MeshView dense = dense_mesh(a, t, m), experts = expert_mesh(a, t, m);
    bool other = dense.n != experts.n;
    for (int i = 0; i < dense.n && !other; i++) {
        other = true;
        for (int k = 0; k < experts.n; k++) other &= dense.mask[i] != experts.mask[k];
    }
    return other && dense.n && experts.n ? arena_printf(a, "%s for dense weights, %s for experts",
                                                        dense.words.s, experts.words.s)
                                         : NULL;
}

MeshExperts mesh_experts(Arena *a, const Trace *t) {
    MeshExperts m = {.ep = {.size = 1}, .inside = {.size = 1}, .copies = {.size = 1}};
    for (int i = 0; i < t->n_params && !m.w; i++)
        if (trace_of_experts(&t->params[i].compute)) m.w = &t->params[i];
    if (!m.w) return m;
    for (const char *s = m.w->cuts[0] ? m.w->cuts[0] : ""; *s;) { /* outermost first */
        size_t n = strcspn(s, "/");
        const char *name = memchr(s, ':', n);
        int axis = name ? axis_named(t, name + 1, strcspn(name + 1, ":/")) : -1;
        if (axis >= 0 && cut_dim(&m.w->compute, t->axes[axis].name) == 0) add(t, &m.ep, axis);
        s += n + (s[n] == '/');
    }
    for (int i = 0; i < t->n_axes; i++) {
        if (t->schedule_axis && !strcmp(t->axes[i].name, t->schedule_axis)) continue;
        int dim = cut_dim(&m.w->compute, t->axes[i].name);
        add(t, dim == 0 ? &m.ep : dim > 0 ? &m.inside : &m.copies, i);
    }
    Str s = str_new(a);
    if (m.ep.n) str_add(&s, side_text(a, t, &m, &m.ep));
    if (m.inside.n)
        str_addf(&s, "%s%s inside each expert", s.n ? " · " : "", side_text(a, t, &m, &m.inside));
    if (m.copies.n)
        str_addf(&s, "%s%lld copies of each, over %s", s.n ? " · " : "", (long long)m.copies.size,
                 side_axes(a, t, &m.copies));
    m.title = s.n ? s.s : "every expert whole on the one rank";
    m.two = two_meshes(a, t, &m);
    return m;
}

static int64_t coordinate(const Trace *t, const MeshSide *s, int64_t rank) {
    int64_t c = 0;
    for (int i = 0; i < s->n; i++)
        c = c * t->axes[s->axis[i]].size +
            rank / stride_of(t, s->axis[i]) % t->axes[s->axis[i]].size;
    return c;
}
/* The rank that is at place c of the experts and else where `rank` is. */
static int64_t moved(const Trace *t, const MeshSide *s, int64_t rank, int64_t c) {
    for (int i = s->n - 1; i >= 0; i--) {
        int64_t size = t->axes[s->axis[i]].size, stride = stride_of(t, s->axis[i]);
        rank += (c % size - rank / stride % size) * stride;
        c /= size;
    }
    return rank;
}
/* The experts' weight that a rank has: in a pipeline that of a layer of its own. */
static const TraceShape *weight_on(const Trace *t, const MeshExperts *m, int64_t rank) {
    for (int i = 0; i < t->n_params; i++) {
        const TraceShape *s = &t->params[i].compute;
        const TraceLocal *l = trace_of_experts(s) ? words_find_local(s, rank) : NULL;
        if (l && l->shape[0]) return s;
    }
    return &m->w->compute;
}
const char *mesh_experts_of(Arena *a, const Trace *t, const MeshExperts *m, int64_t rank) {
    int64_t first = 0, own = coordinate(t, &m->ep, rank);
    const TraceShape *w = weight_on(t, m, rank);
    const TraceLocal *l = words_find_local(w, rank);
    for (int64_t i = 0; i < own; i++) {
        const TraceLocal *k = words_find_local(w, moved(t, &m->ep, rank, i));
        first += k ? k->shape[0] : 0;
    }
    int64_t n = l ? l->shape[0] : 0;
    const char *part =
        m->inside.n ? arena_printf(a, ", part %lld", (long long)coordinate(t, &m->inside, rank))
                    : "";
    if (!n) return "no expert";
    if (n == 1) return arena_printf(a, "E%lld%s", (long long)first, part);
    return arena_printf(a, "E%lld-%lld%s", (long long)first, (long long)(first + n - 1), part);
}
