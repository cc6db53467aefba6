/* Groups of ranks from a trace. See mesh.h. */
#include "base/text.h"
#include "render/mesh/mesh.h"
#include <string.h>

/* Groups over a set of axes, given as a bit mask of t->axes. */
static RankGroups groups_over(const Trace *t, unsigned mask) {
    RankGroups g = {0};
    int64_t stride = 1;
    for (int i = 0; i < t->n_axes; i++) stride *= t->axes[i].size > 0 ? t->axes[i].size : 1;
    for (int i = 0; i < t->n_axes; i++) {
        int64_t size = t->axes[i].size > 0 ? t->axes[i].size : 1;
        stride /= size;
        bool in = mask >> i & 1;
        int k = in ? g.n_in++ : g.n_out++;
        (in ? g.in_size : g.out_size)[k] = size;
        (in ? g.in_stride : g.out_stride)[k] = stride;
    }
    return g;
}

/* Bit mask of the axes in "dp*cp"; a group's name stands for its axes, "tp" for "tp.0" and "tp.1".
 */
static unsigned axes_mask(const Trace *t, const char *list) {
    unsigned mask = 0;
    for (const char *p = list ? list : ""; *p;) {
        size_t n = strcspn(p, "*");
        for (int i = 0; i < t->n_axes; i++) {
            const char *name = t->axes[i].name;
            bool part = !strncmp(name, p, n) && (name[n] == 0 || name[n] == '.');
            /* an axis of one rank makes no group */
            if (part && t->axes[i].size > 1) mask |= 1u << i;
        }
        for (int k = 0; k < t->n_groups; k++)
            if (strlen(t->groups[k].name) == n && !strncmp(t->groups[k].name, p, n) &&
                t->groups[k].axes != list)
                mask |= axes_mask(t, t->groups[k].axes);
        p += n + (p[n] == '*');
    }
    return mask;
}

unsigned mesh_axes(const Trace *t, const char *list) { return axes_mask(t, list); }

/* "ep = dp·cp": the plan's names for a set of axes, and what they are. */
static const char *product_name(Arena *a, const Trace *t, const char *axes, unsigned mask) {
    Str s = str_new(a);
    for (int k = 0; k < t->n_groups; k++)
        if (axes_mask(t, t->groups[k].axes) == mask) str_addf(&s, "%s = ", t->groups[k].name);
    str_add(&s, words_axis_list(a, t, axes));
    return s.s;
}

static void add_word(Str *s, const char *word) {
    /* whole words only: "S" is not in "S·x" */
    if (text_has_word(s->s, word)) return;
    str_addf(s, "%s%s", s->n ? ", " : "", word);
}

/* Does a dim's symbol "S/(cp*sp)" name one of the axes of the mask? */
static bool cut_by(Arena *a, const Trace *t, const char *symbol, unsigned mask) {
    const char *slash = symbol ? strchr(symbol, '/') : NULL;
    if (!slash) return false;
    char *list = arena_strdup(a, slash + 1);
    size_t n = strlen(list);
    if (n > 1 && list[0] == '(') list[n - 1] = 0, list++;
    return (axes_mask(t, list) & mask) != 0;
}

static void cuts_of(Arena *a, const Trace *t, const TraceShape *s, unsigned mask, Str *out) {
    for (int i = 0; i < s->nd; i++)
        if (cut_by(a, t, s->dim_symbol[i], mask)) { /* of H*d the heads are cut: H */
            const char *base = words_base(a, s->dim_symbol[i]);
            add_word(out, arena_strndup(a, base, strcspn(base, "*")));
        }
}

/* Over which links a group's ranks send; a group has some of both where one of them spans nodes. */
static const char *link_of(Arena *a, const Trace *t, const RankGroups *g) {
    int64_t node = t->node_ranks, m = groups_size(g);
    if (node < 1 || m < 2) return "";
    bool across = false;
    for (int64_t i = 0; i < groups_count(g) && !across; i++)
        across = groups_member(g, i, 0) / node != groups_member(g, i, m - 1) / node;
    return arena_printf(a, across ? "across nodes, %s" : "inside a node, %s", t->links[across]);
}
/* Is it done by two ranks of the axes and not by all that they have? What is sent goes along an
 * axis from one rank to the next and is the axis' own. */
static bool of_part(const Trace *t, const TraceCollective *k) {
    unsigned mask = axes_mask(t, k->axes);
    RankGroups all = groups_over(t, mask);
    return mask && strcmp(k->op, "send") != 0 && groups_size(&k->groups) < groups_size(&all);
}
/* Two collectives of which each is over all of some axes are over the same groups if the axes are
 * the same; of a part of them the rank's own group must be. */
static bool same_group(const Trace *t, const TraceCollective *k, const MeshComm *c, unsigned mask,
                       int64_t rank) {
    if (axes_mask(t, k->axes) != mask || of_part(t, k) != c->part) return false;
    int64_t x = words_group_of(&k->groups, rank), y = words_group_of(&c->groups, rank), m;
    if (!c->part) return x >= 0;
    m = groups_size(&k->groups);
    return x >= 0 && y >= 0 && m == groups_size(&c->groups) &&
           groups_member(&k->groups, x, 0) == groups_member(&c->groups, y, 0) &&
           groups_member(&k->groups, x, m - 1) == groups_member(&c->groups, y, m - 1);
}
/* What the rank does over these axes: in a pipeline a send is two ranks' own. */
static void describe(Arena *a, const Trace *t, int64_t rank, MeshComm *c, unsigned mask,
                     bool axis) {
    Str cuts = str_new(a), ops = str_new(a);
    int64_t sent = 0;
    int n = 0, count[32] = {0};
    const char *op[32];
    for (int i = 0; axis && i < t->n_params && i < 256; i++)
        cuts_of(a, t, &t->params[i].compute, mask, &cuts);
    for (int i = 0; axis && i < t->n_values && i < 256; i++)
        cuts_of(a, t, &t->values[i].shape, mask, &cuts);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *k = &t->collectives[i];
        if (!same_group(t, k, c, mask, rank)) continue;
        const char *name = words_coll_on(k, rank); /* one's send is the other's receive */
        int j = 0;
        while (j < n && strcmp(op[j], name)) j++;
        if (j == n && n < 32) op[n++] = name;
        if (j < 32) count[j]++;
        sent += collective_on(k, rank).bytes_sent;
    }
    for (int j = 0; j < n; j++) str_addf(&ops, "%s%d %s", j ? ", " : "", count[j], op[j]);
    bool stages = axis && t->schedule_axis && !strcmp(c->name, t->schedule_axis);
    c->cuts = cuts.n   ? arena_printf(a, "cuts %s", cuts.s)
              : stages ? "cuts the layers"
              : axis   ? "cuts nothing"
                       : "";
    c->link = link_of(a, t, &c->groups);
    c->carries = n ? arena_printf(a, "%s, sends %s", ops.s, bytes_text(sent, a)) : "no collective";
}

int mesh_comms(Arena *a, const Trace *t, int64_t rank, MeshComm *comm) {
    WordAxis ax[TRACE_MAX_AXES];
    unsigned have[MESH_MAX_COMMS];
    int n = 0, axes = words_axes(a, t, ax, TRACE_MAX_AXES);
    for (int i = 0; i < axes && n < MESH_MAX_COMMS; i++) {
        if (ax[i].size <= 1) continue;
        Str name = str_new(a);
        str_add(&name, ax[i].name);
        have[n] = axes_mask(t, ax[i].name);
        for (int k = 0; k < t->n_groups; k++)
            if (axes_mask(t, t->groups[k].axes) == have[n])
                str_addf(&name, " = %s", t->groups[k].name);
        comm[n] = (MeshComm){
            .name = name.s, .axes = ax[i].name, .groups = groups_over(t, have[n]), .axis = true};
        describe(a, t, rank, &comm[n], have[n], true);
        n++;
    }
    for (int i = 0; i < t->n_collectives && n < MESH_MAX_COMMS; i++) {
        unsigned mask = axes_mask(t, t->collectives[i].axes);
        const TraceCollective *c = &t->collectives[i];
        bool part = of_part(t, c), known = mask == 0;
        if (part && words_group_of(&c->groups, rank) < 0) continue;
        for (int k = 0; k < n; k++)
            known |=
                part ? same_group(t, c, &comm[k], have[k], rank) : have[k] == mask && !comm[k].part;
        if (known) continue;
        have[n] = mask;
        comm[n] = (MeshComm){
            .name = part ? arena_printf(a, "part of %s", product_name(a, t, c->axes, mask))
                         : product_name(a, t, c->axes, mask),
            .axes = words_color_axis(a, t, c->axis, c->axes),
            .groups = part ? c->groups : groups_over(t, mask),
            .part = part};
        describe(a, t, rank, &comm[n], mask, false);
        n++;
    }
    return n;
}

const char *mesh_formula(Arena *a, const Trace *t) {
    WordAxis ax[TRACE_MAX_AXES];
    int n = words_axes(a, t, ax, TRACE_MAX_AXES);
    const char *s = NULL;
    for (int i = 0; i < n; i++) {
        if (ax[i].size <= 1) continue;
        bool nested = s && strchr(s, ' ');
        s = !s ? ax[i].name
               : arena_printf(a, "%s + %lld·%s%s%s", ax[i].name, (long long)ax[i].size,
                              nested ? "(" : "", s, nested ? ")" : "");
    }
    return s ? arena_printf(a, "rank = %s", s) : "one rank";
}

const char *mesh_slice(Arena *a, const RankGroups *g, int64_t rank) {
    int64_t group = words_group_of(g, rank), n = groups_size(g);
    if (group < 0) return "";
    int64_t first = groups_member(g, group, 0),
            step = n > 1 ? groups_member(g, group, 1) - first : 1;
    for (int64_t i = 2; i < n; i++)
        if (groups_member(g, group, i) != first + i * step) return mesh_spelled(a, g, group, 4);
    int64_t last = first + n * step, ranks = n * groups_count(g),
            end = groups_member(g, group, n - 1) + 1;
    if (last > ranks) last = ranks > end ? ranks : end; /* not beyond the ranks that there are */
    return step == 1 ? arena_printf(a, "%lld:%lld", (long long)first, (long long)last)
                     : arena_printf(a, "%lld:%lld:%lld", (long long)first, (long long)last,
                                    (long long)step);
}

const char *mesh_spelled(Arena *a, const RankGroups *g, int64_t group, int64_t most) {
    int64_t n = groups_size(g);
    Str s = str_new(a);
    str_add(&s, "{");
    for (int64_t i = 0; i < n; i++) {
        bool skip = n > most && i >= most - 1 && i < n - 1;
        if (skip && i == most - 1) str_add(&s, ",…");
        if (!skip) str_addf(&s, "%s%lld", i ? "," : "", (long long)groups_member(g, group, i));
    }
    str_add(&s, "}");
    return s.s;
}
