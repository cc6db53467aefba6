/* Cuts of dims. See shards.h. Sizes are read from the local shapes, never computed by a rule:
 * uneven and empty shards show as they are. */
#include "render/shards/shards.h"
#include <stdlib.h>
#include <string.h>

static int64_t axis_stride(const Trace *t, int axis) {
    int64_t stride = 1;
    for (int i = t->n_axes - 1; i > axis; i--) stride *= t->axes[i].size;
    return stride;
}

static int axis_index(const Trace *t, const char *name, size_t n) {
    for (int i = 0; i < t->n_axes; i++)
        if (strlen(t->axes[i].name) == n && !strncmp(t->axes[i].name, name, n)) return i;
    return -1;
}

int64_t shards_part_of(const Trace *t, const DimCut *c, int64_t rank) {
    int64_t part = 0;
    for (int i = 0; i < c->n_axis; i++) {
        int a = c->axis[i];
        part = part * t->axes[a].size + rank / axis_stride(t, a) % t->axes[a].size;
    }
    return c->shift ? ((part + c->shift) % c->n + c->n) % c->n : part;
}

/* The rank that differs from `rank` only in owning part i of the cut. */
static int64_t rank_of_part(const Trace *t, const DimCut *c, int64_t rank, int64_t i) {
    for (int k = c->n_axis - 1; k >= 0; k--) {
        int a = c->axis[k];
        int64_t size = t->axes[a].size, stride = axis_stride(t, a);
        rank += (i % size - rank / stride % size) * stride;
        i /= size;
    }
    return rank;
}

bool shards_holds(const DimCut *c, int64_t rank) {
    return !c->home || words_find_local(c->home, rank);
}
/* The shape, where ranks have none of it: those of other stages. */
static const TraceShape *home_of(const Trace *t, const TraceShape *s) {
    int64_t held = 0;
    for (int i = 0; i < s->n_local; i++) held += rankset_count(&s->local[i].ranks);
    return held < t->ranks ? s : NULL;
}

/* Sizes of all parts, from the shapes of their owners. */
static void measure(Arena *a, const Trace *t, DimCut *c, const TraceShape *s, int dim,
                    int64_t rank) {
    c->size = s->global_shape[dim];
    c->blocks = words_blocks(s->dim_symbol[dim]);
    c->n = 1;
    c->home = home_of(t, s);
    if (!shards_holds(c, rank) && s->n_local) rank = rankset_first(&s->local[0].ranks);
    for (int i = 0; i < c->n_axis; i++) c->n *= t->axes[c->axis[i]].size;
    if (c->n > SHARDS_MAX_PARTS) return;
    int64_t *part = ARENA_ARRAY(a, int64_t, c->n), sum = 0;
    for (int64_t i = 0; i < c->n; i++) {
        const TraceLocal *l = words_find_local(s, rank_of_part(t, c, rank, i));
        part[i] = l ? l->shape[dim] : 0;
        c->uneven |= part[i] != part[0];
        sum += part[i];
    }
    if (sum == c->size) c->part = part;
}

static void add_axis(const Trace *t, DimCut *c, int axis) {
    if (axis >= 0 && t->axes[axis].size > 1 && c->n_axis < SHARDS_MAX_CUT)
        c->axis[c->n_axis++] = axis;
}

DimCut shards_param_cut(Arena *a, const Trace *t, const TraceParam *p, int dim, int64_t rank) {
    DimCut c = {0};
    for (const char *s = p->cuts[dim] ? p->cuts[dim] : ""; *s;) {
        size_t n = strcspn(s, "/");
        const char *axis = memchr(s, ':', n);
        if (axis) add_axis(t, &c, axis_index(t, axis + 1, strcspn(axis + 1, ":/")));
        s += n + (s[n] == '/');
    }
    DimCut by_symbol = shards_value_cut(a, t, &p->rest, dim, rank);
    if (by_symbol.n_axis > c.n_axis) return by_symbol;
    measure(a, t, &c, &p->rest, dim, rank);
    static const char offset[] = "offset: ";
    if (p->planted && c.n > 1 && !strncmp(p->planted, offset, sizeof offset - 1))
        c.shift = strtoll(p->planted + sizeof offset - 1, NULL, 10);
    return c;
}

/* Adds the axes of one name of a symbol: an axis, a group, or the parts of a split axis. */
static void add_name(const Trace *t, DimCut *c, const char *name, size_t n) {
    int axis = axis_index(t, name, n);
    if (axis >= 0) {
        add_axis(t, c, axis);
        return;
    }
    for (int i = 0; i < t->n_axes; i++)
        if (!strncmp(t->axes[i].name, name, n) && t->axes[i].name[n] == '.') add_axis(t, c, i);
    for (int k = 0; k < t->n_groups; k++) {
        const char *list = t->groups[k].axes;
        if (strlen(t->groups[k].name) != n || strncmp(t->groups[k].name, name, n) ||
            !strncmp(list, name, n))
            continue;
        for (const char *p = list; *p;) {
            size_t m = strcspn(p, "*");
            add_name(t, c, p, m);
            p += m + (p[m] == '*');
        }
    }
}

DimCut shards_value_cut(Arena *a, const Trace *t, const TraceShape *s, int dim, int64_t rank) {
    DimCut c = {0};
    const char *symbol = s->dim_symbol[dim], *slash = symbol ? strchr(symbol, '/') : NULL;
    c.rows = symbol && !strncmp(symbol, "rows(", 5);
    for (const char *p = slash ? slash + 1 : ""; *p;) {
        size_t n = strcspn(p, c.rows ? "()*/, " : "()*");
        if (n) add_name(t, &c, p, n);
        p += n + (p[n] != 0);
    }
    /* rows have no positions of their own that an order could be of: parts stand by their numbers
     */
    for (int i = 0; i < s->n_places && !c.rows; i++) {
        int at = -1;
        PlaceCut how = place_cut(s->place[i].place, &at);
        if (at == dim && (how == PLACE_ZIGZAG || how == PLACE_STRIPED)) c.order = how;
    }
    measure(a, t, &c, s, dim, rank);
    return c;
}

int64_t shards_copies(const Trace *t, const DimCut *r, const DimCut *k) {
    int64_t parts = r->n * k->n, held = 0;
    for (int64_t i = 0; r->home && i < t->ranks; i++) held += shards_holds(r, i);
    return parts > 0 ? (r->home ? held : t->ranks) / parts : 1;
}
/* "tp 3", "dp 1 tp 3": the coordinates that make part i; parts of a split axis (tp.0, tp.1) are
 * one.
 */
static void add_place(Str *s, const Trace *t, const DimCut *c, int64_t i) {
    int64_t at[SHARDS_MAX_CUT];
    for (int k = c->n_axis - 1; k >= 0; i /= t->axes[c->axis[k--]].size)
        at[k] = i % t->axes[c->axis[k]].size;
    for (int k = 0; k < c->n_axis; k++) {
        const char *name = t->axes[c->axis[k]].name;
        const size_t n = strcspn(name, ".");
        // cppcheck-suppress uninitvar ; the loop before has filled one for each axis
        int64_t own = at[k];
        for (; k + 1 < c->n_axis && !strncmp(t->axes[c->axis[k + 1]].name, name, n) &&
               t->axes[c->axis[k + 1]].name[n] == '.';
             k++)
            own = own * t->axes[c->axis[k + 1]].size + at[k + 1];
        str_addf(s, "%s%.*s %lld", s->n ? " " : "", (int)n, name, (long long)own);
    }
}
const char *shards_owners(Arena *a, const Trace *t, const DimCut *c, int64_t i, const DimCut *d,
                          int64_t j) {
    int64_t *list = ARENA_ARRAY(a, int64_t, t->ranks), n = 0;
    for (int64_t r = 0; r < t->ranks; r++)
        if (shards_holds(c, r) && shards_part_of(t, c, r) == i &&
            (!d || shards_part_of(t, d, r) == j))
            list[n++] = r;
    RankSet s = rankset_from(a, list, n);
    const char *ranks = rankset_text(&s, a);
    /* slices ("1:8193:8") are for programs; who is handed another part has no place that says it */
    if (!strchr(ranks, ':') || c->shift || (d && d->shift) || c->home) return ranks;
    Str place = str_new(a);
    add_place(&place, t, c, i);
    if (d) add_place(&place, t, d, j);
    return place.n ? place.s : ranks;
}

/* [from, to) of the list that the pieces make when they are put behind each other, as slices. */
static void add_slices(Str *s, int64_t (*piece)[2], int n, int64_t from, int64_t to) {
    for (int i = 0; i < n; i++) {
        int64_t len = piece[i][1] - piece[i][0], a = from > 0 ? from : 0, b = to < len ? to : len;
        if (a < b)
            str_addf(s, "%s%lld:%lld", s->n ? "," : "", (long long)(piece[i][0] + a),
                     (long long)(piece[i][0] + b));
        from -= len, to -= len;
    }
}
/* Of part `own`, whose first axis has `outer` ranks; axes further in cut its list in turn. */
static const char *zigzag_range(Arena *a, const DimCut *c, int64_t own, int64_t outer) {
    Str s = str_new(a);
    int64_t inner = c->n / outer, r = own / inner, len = c->size / (2 * outer),
            chunk = (2 * len + inner - 1) / inner;
    if (c->size % (2 * outer)) return NULL;
    int64_t piece[2][2] = {{r * len, (r + 1) * len},
                           {(2 * outer - 1 - r) * len, (2 * outer - r) * len}};
    add_slices(&s, piece, 2, own % inner * chunk, (own % inner + 1) * chunk);
    return s.n ? s.s : "none";
}
static const char *striped_range(Arena *a, const DimCut *c, int64_t own, int64_t outer) {
    int64_t inner = c->n / outer, r = own / inner,
            len = r < c->size ? (c->size - r + outer - 1) / outer : 0,
            chunk = (len + inner - 1) / inner, from = own % inner * chunk, to = from + chunk;
    if (to > len) to = len;
    if (from >= to) return "none";
    return arena_printf(a, "%lld:%lld:%lld", (long long)(r + from * outer),
                        (long long)(r + (to - 1) * outer + 1), (long long)outer);
}
const char *shards_range(Arena *a, const Trace *t, const DimCut *c, int64_t rank) {
    if (!shards_holds(c, rank)) return NULL;
    if (c->n < 2) return ":";
    if (c->rows) return NULL;
    int64_t own = shards_part_of(t, c, rank), outer = c->n_axis ? t->axes[c->axis[0]].size : c->n;
    if (c->order == PLACE_ZIGZAG) return zigzag_range(a, c, own, outer);
    if (c->order == PLACE_STRIPED) return striped_range(a, c, own, outer);
    Str s = str_new(a);
    if (!c->part || c->blocks > 8) return NULL;
    int64_t start = 0;
    for (int64_t i = 0; i < own; i++) start += c->part[i] / c->blocks;
    for (int64_t b = 0; b < c->blocks && c->part[own]; b++) {
        int64_t at = b * (c->size / c->blocks) + start;
        str_addf(&s, "%s%lld:%lld", s.n ? "," : "", (long long)at,
                 (long long)(at + c->part[own] / c->blocks));
    }
    return s.n ? s.s : "none";
}

const char *shards_axes(Arena *a, const Trace *t, const DimCut *c) {
    Str s = str_new(a);
    for (int i = 0; i < c->n_axis; i++)
        str_addf(&s, "%s%s", i ? "*" : "", t->axes[c->axis[i]].name);
    return words_axis_list(a, t, s.s);
}
AxisKind shards_axis_kind(Arena *a, const Trace *t, const DimCut *c) {
    Str s = str_new(a);
    for (int i = 0; i < c->n_axis; i++)
        str_addf(&s, "%s%s", i ? "*" : "", t->axes[c->axis[i]].name);
    return theme_axis(words_color_axis(a, t, NULL, s.s));
}

const char *shards_sizes(Arena *a, const DimCut *c) {
    Str s = str_new(a);
    for (int64_t i = 0; c->part && i < c->n; i++) {
        int64_t run = 1;
        while (i + run < c->n && c->part[i + run] == c->part[i]) run++;
        if (run > 3) {
            str_addf(&s, "%s%lld ×%lld", s.n ? ", " : "", (long long)c->part[i], (long long)run);
            i += run - 1;
        } else str_addf(&s, "%s%lld", s.n ? ", " : "", (long long)c->part[i]);
    }
    return s.s;
}
