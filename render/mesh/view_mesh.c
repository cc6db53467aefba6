/* View `mesh`: ranks, axes and groups. Up to 16 ranks: every rank with its address, and one small
 * mesh per axis with the links of all groups. Above: each axis is a bar, slowest first; the focus
 * rank's cell opens into the bar below, and a table lists its groups. Never one number alone:
 * always groups × ranks. */
#include "render/mesh/mesh.h"
#include "render/mesh/stack.h"
#include "render/furniture/views.h"
#include "render/furniture/wrong.h"
#include <math.h>
#include <string.h>

enum { FEW_RANKS = 16, MAX_COLS = 8 };

typedef struct {
    const ViewCall *c;
    Scene *s;
    PresetKind preset;
    double x, w; /* left edge and width of what is drawn */
    int64_t rank;
    int64_t cols; /* of the grid of ranks */
    int n;
    MeshComm comm[MESH_MAX_COMMS];
    MeshExperts experts;
    bool inside; /* what a rank has of them stands in its box */
    bool placed; /* the ranks are on a page before this one */
    bool alone;  /* and fill it */
} MeshPen;

static const char *group_count(Arena *a, const RankGroups *g) {
    long long n = (long long)groups_count(g), m = (long long)groups_size(g);
    return arena_printf(a, "%lld group%s × %lld rank%s", n, n == 1 ? "" : "s", m,
                        m == 1 ? "" : "s");
}

/* ---- few ranks ---- */

/* Columns: all axes but the slowest, at most 8. */
static int64_t grid_columns(Arena *a, const Trace *t) {
    WordAxis ax[TRACE_MAX_AXES];
    int64_t cols = 1;
    int used = 0, n = words_axes(a, t, ax, TRACE_MAX_AXES);
    for (int i = 0; i < n; i++) {
        if (ax[i].size <= 1) continue;
        if (used++) cols *= ax[i].size;
    }
    if (used == 1) cols = t->ranks;
    while (cols > MAX_COLS && cols % 2 == 0) cols /= 2;
    return cols < 1 ? 1 : cols > MAX_COLS ? MAX_COLS : cols;
}

static int class_of(const Trace *t, int64_t rank) {
    for (int i = 0; i < t->n_classes; i++)
        if (rankset_has(&t->classes[i], rank)) return i;
    return -1;
}

/* "0,0,1,0": coordinates where the names of the axes do not fit beside them, outermost first. */
static const char *bare_coords(Arena *a, const Trace *t, int64_t rank) {
    Str s = str_new(a);
    int64_t stride = t->ranks;
    for (int i = 0; i < t->n_axes; i++) {
        stride /= t->axes[i].size;
        str_addf(&s, "%s%lld", i ? "," : "", (long long)(rank / stride % t->axes[i].size));
    }
    return s.s ? s.s : "";
}
/* Is there a rank whose coordinates are wider than w with the names of their axes? */
static bool long_coords(MeshPen *p, double w, double size, int weight) {
    const Trace *t = p->c->t;
    return scene_width(p->s, size, weight, words_coords(p->c->arena, t, t->ranks - 1)) > w + 8;
}
static double box_width(const MeshPen *p) {
    return fmin(170, (p->w - 2 * 16 + 12) / (double)p->cols - 12);
}
/* Do the boxes of ranks show coordinates alone? */
static bool bare_boxes(MeshPen *p) {
    double w = box_width(p);
    bool beside = w >= 128 && !long_coords(p, w - 56, 12.5, MEDIUM);
    return !beside && long_coords(p, w - 16, 12, REGULAR);
}
/* What stands in the box of a rank: its coordinates, or the experts that it has. */
static const char *box_text(MeshPen *p, int64_t r, bool experts, bool bare) {
    Arena *a = p->c->arena;
    const char *coords = words_coords(a, p->c->t, r);
    if (experts) return mesh_experts_of(a, p->c->t, &p->experts, r);
    if (bare) return bare_coords(a, p->c->t, r);
    return *coords ? arena_strndup(a, coords + 1, strlen(coords) - 2) : "";
}
/* From the border of a box to the words in it; what is left for them. */
static double box_inset(const MeshPen *p) { return box_width(p) < 80 ? 6 : 12; }
static double box_room(const MeshPen *p) { return box_width(p) - box_inset(p) - 4; }
/* Have all boxes room for the experts that the rank has, below its place? Else these have a panel
 * of their own. */
static bool experts_inside(MeshPen *p) {
    if (!p->experts.w || p->c->t->ranks < 2) return false;
    for (int64_t r = 0; r < p->c->t->ranks; r++)
        if (scene_width(p->s, 12, REGULAR, box_text(p, r, true, false)) > box_room(p)) return false;
    return true;
}
/* What a rank of a pipeline has of the model, in lines as wide as a box, and below its experts:
 * their number. */
enum { PART_LINES = 2, PART_STEP = 15 };
static int part_lines(MeshPen *p, int64_t r, const char *line[PART_LINES + 1]) {
    const Trace *t = p->c->t;
    double w = box_room(p);
    int n = 0;
    char *rest = arena_strdup(p->c->arena, t->schedule_axis ? stack_parts(p->c->arena, t, r) : "");
    while (*rest && n < PART_LINES - 1 && scene_width(p->s, 12, REGULAR, rest) > w) {
        char *cut = NULL; /* behind the last comma that has room */
        for (char *at = strstr(rest, ", "); at; at = strstr(at + 1, ", "))
            if (scene_width(p->s, 12, REGULAR,
                            arena_strndup(p->c->arena, rest, (size_t)(at - rest) + 1)) <= w)
                cut = at;
        if (!cut) break;
        line[n++] = arena_strndup(p->c->arena, rest, (size_t)(cut - rest) + 1);
        rest = cut + 2;
    }
    if (*rest) line[n++] = scene_fit(p->s, rest, w, 12, REGULAR);
    if (p->inside) line[n++] = box_text(p, r, true, false);
    return n;
}
/* The most lines of any box. */
static int most_part_lines(MeshPen *p) {
    const char *line[PART_LINES + 1];
    int most = 0;
    for (int64_t r = 0; r < p->c->t->ranks; r++) {
        int n = part_lines(p, r, line);
        most = n > most ? n : most;
    }
    return most;
}
static void draw_box(MeshPen *p, int64_t r, Area at, const char *text, bool beside) {
    const Trace *t = p->c->t;
    const char *line[PART_LINES + 1];
    double in = box_inset(p);
    scene_frame(p->s, at.x, at.y, at.w, at.h);
    scene_rect(p->s, at, 3, (Look){ROLE_PAPER, ROLE_INK, r == p->rank ? 2.5 : 1.25});
    double num = scene_textf(p->s, at.x + in, at.y + 28, (TextLook){ALIGN_LEFT, 20, BOLD, ROLE_INK},
                             "%lld", (long long)r);
    if (beside)
        scene_text(p->s, at.x + in + fmax(num, 24) + 12, at.y + 26,
                   (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK}, text);
    else
        scene_text(p->s, at.x + in, at.y + 48, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   scene_fit(p->s, text, at.w - in - 4, 12, REGULAR));
    int parts = part_lines(p, r, line), lines = most_part_lines(p);
    for (int i = 0; i < parts; i++) {
        bool experts = p->inside && i + 1 == parts; /* on the last line of all boxes */
        int at_line = experts ? lines - 1 : i;
        scene_text(p->s, at.x + in, at.y + at.h - 12 - PART_STEP * (lines - 1 - at_line),
                   (TextLook){ALIGN_LEFT, 12, experts ? MEDIUM : REGULAR,
                              experts ? ROLE_AXIS_TEXT + theme_axis("ep") : ROLE_INK},
                   line[i]);
    }
    if (t->n_classes > 1)
        scene_textf(p->s, at.x + in, at.y + at.h - 12 - PART_STEP * lines,
                    (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, "class %d", class_of(t, r));
}
/* The width of the frame around all ranks. */
static double ranks_width(MeshPen *p) {
    return 2 * 16 + (double)p->cols * (box_width(p) + 12) - 12;
}
/* Rows of the grid that share a node; 0: all ranks stand in one frame without a name. */
static int64_t node_rows(const MeshPen *p) {
    const Trace *t = p->c->t;
    int64_t node = t->node_ranks < t->ranks ? t->node_ranks : t->ranks;
    if (t->node_ranks < 1) return 0;
    if (node == t->ranks) return (t->ranks + p->cols - 1) / p->cols;
    return node % p->cols ? 0 : node / p->cols;
}
/* A frame around each node, with its name and its ranks. */
enum { NODE_HEAD = 14, NODE_GAP = 10 };
/* Between a frame and what is in it, above and below. */
static double frame_pad(const MeshPen *p) { return p->preset == PRESET_SLIDE ? 8 : 14; }
static void draw_nodes(MeshPen *p, double y, double w, double row, bool experts) {
    const Trace *t = p->c->t;
    Arena *a = p->c->arena;
    int64_t per = node_rows(p), rows = (t->ranks + p->cols - 1) / p->cols, n = 0;
    for (int64_t i = 0; i < rows; i += per, n++) {
        double h = 2 * frame_pad(p) + NODE_HEAD + (double)per * row - 12;
        int64_t lo = i * p->cols, hi = lo + per * p->cols - 1;
        if (hi >= t->ranks) hi = t->ranks - 1;
        scene_begin(p->s, "node",
                    arena_printf(a, experts ? "expert-node-%lld" : "node-%lld", (long long)n),
                    arena_printf(a, "node %lld: %s, %s inside it", (long long)n,
                                 ranks_span(lo, hi, a), t->links[0]));
        scene_rect(p->s, (Area){p->x, y, w, h}, 6, (Look){ROLE_NONE, ROLE_FAINT, 1.25});
        scene_textf(p->s, p->x + 16, y + frame_pad(p) + 6,
                    (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_SECOND},
                    rows > per ? "node %lld" : "one node", (long long)n);
        scene_end(p->s);
        y += h + NODE_GAP;
    }
}
static double draw_ranks(MeshPen *p, double y, bool experts) {
    const Trace *t = p->c->t;
    Arena *a = p->c->arena;
    double gap = 12, w = box_width(p), h = t->n_classes > 1 ? 60 : 42;
    int lines = most_part_lines(p);
    h += PART_STEP * lines;
    int64_t rows = (t->ranks + p->cols - 1) / p->cols;
    double fw = ranks_width(p), pad = frame_pad(p), fh = 2 * pad + (double)rows * (h + gap) - gap;
    bool beside = w >= 128 && !long_coords(p, w - 56, 12.5, MEDIUM), bare = bare_boxes(p);
    for (int64_t r = 0; experts && r < t->ranks; r++)
        beside &= scene_width(p->s, 12.5, MEDIUM, box_text(p, r, true, false)) <= w - 52;
    const double below = beside ? 0 : lines ? 20 : 16; /* the number, and apart from other lines */
    fh += (double)rows * below, h += below;
    int64_t per = node_rows(p), nodes = per ? (rows + per - 1) / per : 0;
    double head = per ? NODE_HEAD : 0, apart = 2 * pad + head - gap + NODE_GAP;
    if (per) draw_nodes(p, y, fw, h + gap, experts);
    else scene_rect(p->s, (Area){p->x, y, fw, fh}, 6, (Look){ROLE_NONE, ROLE_FAINT, 1.25});
    if (per) fh += head + (double)(nodes - 1) * apart;
    for (int64_t r = 0; r < t->ranks; r++) {
        double down = per ? head + (double)(r / p->cols / per) * apart : 0;
        Area at = {p->x + 16 + (double)(r % p->cols) * (w + gap),
                   y + pad + down + (double)(r / p->cols) * (h + gap), w, h};
        const char *text = box_text(p, r, experts, bare);
        scene_begin(
            p->s, "rank", arena_printf(a, experts ? "experts-%lld" : "rank-%lld", (long long)r),
            experts ? arena_printf(a, "rank %lld has of the experts: %s", (long long)r, text)
                    : arena_printf(a, "rank %lld %s%s%s", (long long)r, words_coords(a, t, r),
                                   p->inside ? "\nexperts: " : "",
                                   p->inside ? box_text(p, r, true, false) : ""));
        draw_box(p, r, at, text, beside);
        scene_end(p->s);
    }
    return y + fh;
}
static double draw_heading(MeshPen *p, double y, double w, const char *words) {
    const char *line[3];
    int n = scene_wrap(p->s, words, (TextColumn){w, 13, SEMIBOLD, 3, NULL}, line);
    for (int i = 0; i < n; i++, y += 18)
        scene_text(p->s, p->x, y + 14, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, line[i]);
    return y + 8;
}
/* How to read a rank, at the right of the ranks where the page has room for it: what stands in the
 * box of the one that is shown, and what the small meshes below show of it. Returns the y under it;
 * y where there is no room. */
static double draw_reading(MeshPen *p, double x, double y) {
    enum { LEAST = 240, LINE = 19, ROWS = 3 };
    Arena *a = p->c->arena;
    const double w = p->x + p->w - x;
    const char *line[4], *part = p->c->t->schedule_axis ? stack_parts(a, p->c->t, p->rank) : "";
    const struct {
        const char *word, *means;
    } row[ROWS] = {{box_text(p, p->rank, false, bare_boxes(p)), "its place on each axis"},
                   {part, "what it has of the model"},
                   {p->inside ? box_text(p, p->rank, true, false) : "", "the experts that it has"}};
    double word = 0, means = 0;
    for (int i = 0; i < ROWS; i++) {
        if (!*row[i].word) continue;
        word = fmax(word, scene_width(p->s, 12.5, MEDIUM, row[i].word));
        means = fmax(means, scene_width(p->s, 12.5, REGULAR, row[i].means));
    }
    if (w < fmax(LEAST, word + 14 + means) || p->c->t->ranks < 2) return y;
    scene_begin(p->s, "legend", "reading", NULL);
    scene_textf(p->s, x, y + 14, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
                "How to read rank %lld", (long long)p->rank);
    y += 38;
    for (int i = 0; i < ROWS; i++) {
        if (!*row[i].word) continue;
        scene_text(p->s, x, y, (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK}, row[i].word);
        scene_text(p->s, x + word + 14, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_SECOND},
                   row[i].means);
        y += LINE;
    }
    const int n = scene_wrap(p->s,
                             "Below, lines join ranks that talk to each other over an axis; this "
                             "rank's group is filled.",
                             (TextColumn){w, 12.5, REGULAR, 4, NULL}, line);
    y += 8;
    for (int i = 0; i < n; i++, y += LINE)
        scene_text(p->s, x, y, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_SECOND}, line[i]);
    scene_end(p->s);
    return y - 8;
}
/* The ranks by their coordinates and, in a model of experts, what they have of these: in the same
 * box; where that has no room for it once more by the experts, beside each other where the page is
 * wide enough for both. */
static double draw_both(MeshPen *p, double y) {
    enum { APART = 36 };
    const bool experts = p->experts.w && p->c->t->ranks > 1;
    if (!experts || p->inside) {
        const char *what = arena_printf(
            p->c->arena, "In each rank its place and, below, its experts: %s", p->experts.title);
        if (experts) y = draw_heading(p, y, p->w, what);
        const double end = draw_ranks(p, y, false);
        return fmax(end, draw_reading(p, p->x + ranks_width(p) + APART, y));
    }
    const char *words =
        arena_printf(p->c->arena, "Experts on the same ranks: %s", p->experts.title);
    double left = p->x, w = ranks_width(p), other = left + w + APART, room = left + p->w - other;
    if (room < w)
        return draw_ranks(p, draw_heading(p, draw_ranks(p, y, false) + 18, p->w, words), true);
    p->x = other;
    double top = draw_heading(p, y, room, words), end = draw_ranks(p, top, true);
    p->x = left;
    draw_heading(p, y, w, "The ranks");
    return fmax(end, draw_ranks(p, top, false));
}

typedef struct {
    double x, y, cell, dx, dy; /* of a small mesh */
    int64_t cols;
} Small;
static Pt cell_at(const Small *m, int64_t r) {
    return (Pt){m->x + (double)(r % m->cols) * m->dx, m->y + (double)(r / m->cols) * m->dy};
}

/* A group among the cells of a small mesh; `focus`: that of the rank shown. */
typedef struct {
    const MeshComm *c;
    const Small *m;
    int64_t group;
    bool focus;
} Links;

static void link_line(MeshPen *p, const Links *l, const Pt *pt, int n) {
    AxisKind kind = theme_axis(l->c->axes);
    int nd;
    const double *dash = theme_axis_dash(kind, &nd);
    Mark *m = scene_line(p->s, pt, n, ROLE_AXIS + kind, l->focus ? 3 : 1.25);
    m->bend = 2;
    if (!l->focus) m->dash = dash, m->n_dash = nd;
}

/* Joins two members: straight if they are neighbours, else by a bracket above (even groups) or
 * below the row. */
static void link_pair(MeshPen *p, const Links *l, int64_t a, int64_t b) {
    const Small *m = l->m;
    const int64_t group = l->group;
    Pt u = cell_at(m, a), v = cell_at(m, b);
    double half = m->cell / 2, side = group % 2 ? 1 : -1, lift = 5 + 3.5 * (double)(group / 2 % 2);
    if (u.y == v.y && v.x - u.x <= m->dx + 0.1) {
        Pt pt[2] = {{u.x + m->cell, u.y + half}, {v.x, v.y + half}};
        link_line(p, l, pt, 2);
    } else if (u.y == v.y) {
        double edge = side < 0 ? u.y : u.y + m->cell, y = edge + side * lift;
        Pt pt[4] = {{u.x + half, edge}, {u.x + half, y}, {v.x + half, y}, {v.x + half, edge}};
        link_line(p, l, pt, 4);
    } else {
        double mid = u.y + m->cell + (m->dy - m->cell) / 2 + (side < 0 ? -3 : 3);
        Pt pt[4] = {
            {u.x + half, u.y + m->cell}, {u.x + half, mid}, {v.x + half, mid}, {v.x + half, v.y}};
        if (u.x == v.x) pt[1] = pt[3];
        link_line(p, l, pt, u.x == v.x ? 2 : 4);
    }
}

/* Links of a group, in the order in which a ring passes its members; where these are not side by
 * side rows are joined at their first, since there are brackets at the others. */
static void link_group(MeshPen *p, const Links *l) {
    const RankGroups *g = &l->c->groups;
    int64_t n = groups_size(g), head = groups_member(g, l->group, 0), cols = l->m->cols;
    for (int64_t i = 1, before = head; i < n; i++) {
        int64_t r = groups_member(g, l->group, i), from = before;
        if (r / cols != before / cols) {
            if (groups_member(g, l->group, 1) != groups_member(g, l->group, 0) + 1) from = head;
            head = r;
        }
        link_pair(p, l, from, r);
        before = r;
    }
}

/* The pill of a small mesh, and how many groups it has. */
static double head_width(const MeshPen *p, const MeshComm *c) {
    return pill_width(p->s, c->name) + 8 +
           scene_width(p->s, 12.5, SEMIBOLD, group_count(p->c->arena, &c->groups));
}
static double draw_small(MeshPen *p, const MeshComm *c, double x, double y, double w) {
    const Trace *t = p->c->t;
    Arena *a = p->c->arena;
    AxisKind kind = theme_axis(c->axes);
    int64_t rows = (t->ranks + p->cols - 1) / p->cols, own = words_group_of(&c->groups, p->rank);
    Small m = {x, y + 36, 26, 0, 46, p->cols};
    m.dx = fmin(38, (w - m.cell - 20) / fmax(1, (double)(p->cols - 1)));
    scene_begin(p->s, "groups", arena_printf(a, "axis-%s", c->name),
                arena_printf(a, "%s: %s", c->name, group_count(a, &c->groups)));
    double pw = draw_pill(p->s, x, y + 9, c->name, c->axes);
    const char *count = group_count(a, &c->groups);
    bool fits = head_width(p, c) <= w - 6;
    TextLook look = {ALIGN_LEFT, fits ? 12.5 : 12, fits ? SEMIBOLD : REGULAR, ROLE_INK};
    scene_text(p->s, x + pw + 8, y + 13.5, look, count);
    for (int64_t g = 0; g < groups_count(&c->groups); g++)
        link_group(p, &(Links){c, &m, g, g == own});
    for (int64_t r = 0; r < t->ranks; r++) {
        Pt q = cell_at(&m, r);
        bool in = words_group_of(&c->groups, r) == own;
        scene_rect(p->s, (Area){q.x, q.y, m.cell, m.cell}, 3,
                   (Look){in ? ROLE_AXIS + kind : ROLE_PAPER, ROLE_AXIS + kind, 1.25});
        scene_textf(p->s, q.x + m.cell / 2, q.y + 17.5,
                    (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, in ? ROLE_AXIS_PILL + kind : ROLE_INK},
                    "%lld", (long long)r);
    }
    /* brackets of odd groups hang under the last row */
    double ty = m.y + (double)rows * m.dy + 7;
    Str list = str_new(a);
    for (int64_t g = 0; g < groups_count(&c->groups) && g < 16; g++)
        str_addf(&list, "%s%s", g ? " " : "", mesh_spelled(a, &c->groups, g, 8));
    const char *line[4];
    int n = scene_wrap(p->s, list.s, (TextColumn){w - 12, 12.5, REGULAR, 3, NULL}, line);
    for (int i = 0; i < n; i++, ty += 17)
        scene_text(p->s, x, ty, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK}, line[i]);
    /* each on a line of its own, a number with what it counts */
    const struct {
        const char *text, *sep;
    } about[] = {{c->cuts, NULL}, {c->link, ", "}, {c->carries, ", "}};
    for (int k = 0; k < 3; k++) {
        n = *about[k].text ? scene_wrap(p->s, about[k].text,
                                        (TextColumn){w - 12, 12, REGULAR, 3, about[k].sep}, line)
                           : 0;
        for (int i = 0; i < n; i++, ty += 16)
            scene_text(p->s, x, ty + 2, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]);
    }
    scene_end(p->s);
    return ty;
}

/* What a small mesh needs with its heading. */
static double small_width(const MeshPen *p, const MeshComm *c) {
    return fmax((double)p->cols * 38, head_width(p, c)) + 14;
}
/* How much wider each of n small meshes is than that, for all to fill a line of width w: less than
 * 0 where they have no room, and not too far apart. */
static double share(const MeshPen *p, int first, int n, double w) {
    enum { WIDE = 260 };
    double need = 0;
    for (int k = 0; k < n; k++) need += small_width(p, &p->comm[first + k]);
    return fmin((w - need) / n, fmax(0, WIDE - need / n));
}
/* Ranks (on the first page), then the groups from *next on; a slide takes as many as fit below. */
static double few_ranks(MeshPen *p, double y, int *next) {
    if (!p->placed) y = draw_both(p, y + 4);
    if (!p->placed) y += p->alone ? 4 : 30;
    if (!p->placed && p->alone) return y;
    double need = fmax(190, (double)p->cols * 38 + 20);
    int per_line = (int)fmax(1, floor((p->w + 1) / need));
    if (per_line > p->n) per_line = p->n;
    double line = 0;
    while (*next < p->n) {
        double bottom = y, x = p->x;
        const int n = per_line < p->n - *next ? per_line : p->n - *next;
        const double more = share(p, *next, n, p->w);
        for (int k = 0; k < n; k++, ++*next) {
            const double w = small_width(p, &p->comm[*next]) + more;
            bottom = fmax(bottom, draw_small(p, &p->comm[*next], x, y, w));
            x += w;
        }
        line = fmax(line, bottom + 18 - y);
        y = bottom + 18;
        if (p->preset == PRESET_SLIDE && y + line + 50 > presets[PRESET_SLIDE].h) break;
    }
    return y;
}

/* ---- many ranks ---- */

enum { BAR_HEIGHT = 44 };

/* "rank 7", "96–103": the ranks of the cell that begins with rank lo. */
static const char *range_text(Arena *a, const WordAxis *ax, int64_t lo) {
    if (ax->stride == 1) return arena_printf(a, "rank %lld", (long long)lo);
    return arena_printf(a, "%lld–%lld", (long long)lo, (long long)(lo + ax->stride - 1));
}
static const char *widest_range(Arena *a, const WordAxis *ax, int64_t base) {
    return range_text(a, ax, base + (ax->size - 1) * ax->stride);
}
/* Cell i of an axis, in an area of the bar; its first rank is base + i * stride. */
static void bar_cell(MeshPen *p, const WordAxis *ax, int64_t base, int64_t i, Area cell) {
    double x = cell.x, y = cell.y, w = cell.w;
    bool own = i == p->rank / ax->stride % ax->size;
    Arena *a = p->c->arena;
    AxisKind kind = theme_axis(ax->name);
    Role ink = own ? ROLE_AXIS_PILL + kind : ROLE_INK;
    const char *name = arena_printf(a, "%s%lld", ax->name, (long long)i);
    int64_t lo = base + i * ax->stride, hi = lo + ax->stride - 1;
    const char *range = range_text(a, ax, lo);
    if (w > 3 || own) {
        scene_begin(p->s, "cell", arena_printf(a, "cell-%s", name),
                    arena_printf(a, "%s: %s", name, ranks_span(lo, hi, a)));
        scene_rect(p->s, cell, 0,
                   (Look){own ? ROLE_AXIS + kind : ROLE_PAPER, w > 5 ? ROLE_FAINT : ROLE_NONE,
                          w > 5 ? 1 : 0});
        /* all cells of a bar say the same of themselves */
        const char *index = arena_printf(a, "%lld", (long long)i),
                   *widest = arena_printf(a, "%lld", (long long)ax->size - 1),
                   *widest_name = arena_printf(a, "%s%s", ax->name, widest);
        bool named = scene_width(p->s, 13, SEMIBOLD, widest_name) <= w - 6,
             two = named && scene_width(p->s, 12, REGULAR, widest_range(a, ax, base)) <= w - 6;
        if (two) {
            scene_text(p->s, x + w / 2, y + 19, (TextLook){ALIGN_MIDDLE, 13, SEMIBOLD, ink}, name);
            scene_text(p->s, x + w / 2, y + 36,
                       (TextLook){ALIGN_MIDDLE, 12, REGULAR, own ? ink : ROLE_SECOND}, range);
        } else if (named) {
            scene_text(p->s, x + w / 2, y + 27,
                       (TextLook){ALIGN_MIDDLE, 13, own ? SEMIBOLD : REGULAR, ink}, name);
        } else if (scene_width(p->s, 12, SEMIBOLD, widest) <= w - 3) {
            scene_text(
                p->s, x + w / 2, y + 27,
                (TextLook){ALIGN_MIDDLE, 12, own ? SEMIBOLD : REGULAR, own ? ink : ROLE_SECOND},
                index);
        }
        scene_end(p->s);
    }
}

/* One axis as a bar; returns the cell of the rank shown. */
static Area draw_bar(MeshPen *p, const WordAxis *ax, int64_t base, Area bar) {
    double x = bar.x, y = bar.y, w = bar.w;
    int64_t own = p->rank / ax->stride % ax->size;
    double cell = w / (double)ax->size;
    for (int64_t i = 0; i < ax->size; i++)
        if (i != own) bar_cell(p, ax, base, i, (Area){x + (double)i * cell, y, cell, BAR_HEIGHT});
    double c0 = x + (double)own * cell, c1 = c0 + fmax(cell, 2);
    Area focus = {c0, y, c1 - c0, BAR_HEIGHT};
    bar_cell(p, ax, base, own, focus);
    if (scene_width(p->s, 12, SEMIBOLD,
                    arena_printf(p->c->arena, "%lld", (long long)ax->size - 1)) >
        cell - 3) { /* too narrow for an index: say which one it is above the bar */
        double mid = fmin(fmax((c0 + c1) / 2, x + 20), x + w - 20);
        scene_textf(p->s, p->w < 700 ? x + w : mid, p->w < 700 ? y - 11.5 : y - 5,
                    (TextLook){p->w < 700 ? ALIGN_RIGHT : ALIGN_MIDDLE, 12, SEMIBOLD,
                               ROLE_AXIS_TEXT + theme_axis(ax->name)},
                    "%s%lld", ax->name, (long long)own);
    }
    scene_rect(p->s, bar, 0, (Look){ROLE_NONE, ROLE_INK, 1.5});
    return focus;
}

static double draw_bars(MeshPen *p, double y) {
    WordAxis ax[TRACE_MAX_AXES];
    Arena *a = p->c->arena;
    const Trace *t = p->c->t;
    int n = words_axes(a, t, ax, TRACE_MAX_AXES);
    bool narrow = p->w < 700;
    double left = narrow ? p->x : p->x + 240, w = p->x + p->w - left;
    double gap = narrow ? 30 : p->alone ? 22 : 32;
    Area focus = {0};
    int64_t base = 0;
    bool first = true;
    for (int i = 0; i < n; i++) {
        if (ax[i].size <= 1) continue;
        double head = narrow ? 26 : 0;
        if (!first) {
            Pt pt[4] = {{focus.x, y - gap},
                        {focus.x + focus.w, y - gap},
                        {left + w, narrow ? y - 4 : y},
                        {left, narrow ? y - 4 : y}};
            Mark *m = scene_poly(p->s, pt, 4, (Look){ROLE_AXIS_TINT + AXIS_PP, ROLE_NONE, 0});
            m->ground = true;
        }
        scene_begin(p->s, "axis", arena_printf(a, "axis-%s", ax[i].name),
                    arena_printf(a, "axis %s: %lld parts", ax[i].name, (long long)ax[i].size));
        double pw = draw_pill(p->s, p->x, y + (narrow ? 10 : 13), ax[i].name, ax[i].name);
        double tx = p->x + pw + 8;
        const char *what = arena_printf(a, "%lld parts%s", (long long)ax[i].size,
                                        first ? "" : " of the cell above");
        double tw = scene_text(p->s, tx, y + (narrow ? 14.5 : 17.5),
                               (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, what);
        const char *each = ax[i].stride == 1
                               ? "1 rank in each"
                               : arena_printf(a, "%lld ranks in each", (long long)ax[i].stride);
        scene_text(p->s, narrow ? tx + tw + 10 : p->x, y + (narrow ? 14.5 : 37),
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, each);
        focus = draw_bar(p, &ax[i], base, (Area){left, y + head, w, BAR_HEIGHT});
        scene_end(p->s);
        base += p->rank / ax[i].stride % ax[i].size * ax[i].stride;
        y += head + BAR_HEIGHT + gap;
        first = false;
    }
    return y;
}

/* The members of the focus rank's group, as many as fit into width w; all that are left out stand
 * for an ellipsis. */
static const char *spelled_within(MeshPen *p, const RankGroups *g, double w) {
    const char *t = "";
    for (int64_t most = 8; most >= 2; most--) {
        t = mesh_spelled(p->c->arena, g, words_group_of(g, p->rank), most);
        if (scene_width(p->s, 12.5, REGULAR, t) <= w) break;
    }
    return scene_fit(p->s, t, w, 12.5, REGULAR);
}

/* What an axis cuts and what its groups carry: on two lines if one is too short for both. */
static double about_lines(MeshPen *p, const MeshComm *c, double x, double y, double w) {
    const char *whole = arena_printf(p->c->arena, "%s%s%s%s%s", c->cuts, *c->cuts ? "; " : "",
                                     c->carries, *c->link ? "; " : "", c->link),
               *line[3];
    int n = scene_wrap(p->s, whole, (TextColumn){w, 12, REGULAR, 3, "; "}, line);
    for (int i = 0; i < n; i++)
        scene_text(p->s, x, y + 16 * i, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]);
    return 16 * (n > 0 ? n - 1 : 0);
}

static double draw_table(MeshPen *p, double y) {
    Arena *a = p->c->arena;
    bool narrow = p->w < 700;
    double col[4] = {p->x + (narrow ? 120 : 430), p->x + (narrow ? 220 : 540),
                     p->x + (narrow ? 340 : 680), 0};
    scene_begin(p->s, "table", "groups", "the groups of this rank, axis by axis");
    scene_segment(p->s, (Pt){p->x, y - 8}, (Pt){p->x + p->w, y - 8}, ROLE_GRID, 1);
    scene_textf(p->s, p->x, y + 13, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
                "Groups of rank %lld", (long long)p->rank);
    scene_text(p->s, col[0] + (narrow ? 20 : 0), y + 13,
               (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               narrow ? "groups × ranks" : "groups × ranks");
    scene_text(p->s, col[1] + (narrow ? 20 : 0), y + 13,
               (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, "as a slice");
    if (!narrow)
        scene_text(p->s, col[2], y + 13, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   "spelled out");
    y += 24;
    for (int i = 0; i < p->n; i++, y += narrow ? 38 : 23) {
        const MeshComm *c = &p->comm[i];
        double pw = draw_pill(p->s, p->x, y + 8, c->name, c->axes);
        double room = narrow ? p->w : col[0] - p->x - pw - 20;
        double more =
            about_lines(p, c, narrow ? p->x : p->x + pw + 10, y + (narrow ? 30 : 12.5), room);
        scene_textf(p->s, col[0] + (narrow ? 20 : 0), y + 12.5,
                    (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK}, "%lld × %lld",
                    (long long)groups_count(&c->groups), (long long)groups_size(&c->groups));
        scene_text(p->s, col[1] + (narrow ? 20 : 0), y + 12.5,
                   (TextLook){ALIGN_LEFT, 12.5, MEDIUM, ROLE_INK},
                   mesh_slice(a, &c->groups, p->rank));
        if (!narrow)
            scene_text(p->s, col[2], y + 12.5, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
                       spelled_within(p, &c->groups, p->x + p->w - col[2]));
        y += more;
    }
    scene_end(p->s);
    return y + 4;
}

/* The first few classes of ranks: as many as a page has room for. */
static const char *classes_text(const ViewCall *c, int most) {
    Arena *a = c->arena;
    const Trace *t = c->t;
    if (t->ranks == 1) return "It holds everything and sends nothing.";
    if (t->n_classes <= 1)
        return arena_printf(a, "All %lld ranks have the same local shapes and steps.",
                            (long long)t->ranks);
    Str s = str_new(a);
    str_addf(&s, "%d rank classes (same local shapes and steps): ", t->n_classes);
    for (int i = 0; i < t->n_classes && i < most; i++)
        str_addf(&s, "%sclass %d %s ×%lld%s", i ? " · " : "", i, rankset_words(&t->classes[i], a),
                 (long long)rankset_count(&t->classes[i]),
                 !t->schedule_axis
                     ? ""
                     : arena_printf(a, " (%s)", stack_parts(a, t, rankset_first(&t->classes[i]))));
    if (t->n_classes > most) str_addf(&s, " · %d more", t->n_classes - most);
    str_add(&s, ".");
    return s.s;
}

/* Many ranks have no second grid: in words. */
static const char *foot_text(const MeshPen *p) {
    const char *classes = classes_text(p->c, p->preset == PRESET_SLIDE ? 2 : 6);
    if (!p->experts.w || p->c->t->ranks <= FEW_RANKS) return classes;
    return arena_printf(p->c->arena, "%s Experts on the same ranks: %s; rank %lld has %s.", classes,
                        p->experts.title, (long long)p->rank,
                        mesh_experts_of(p->c->arena, p->c->t, &p->experts, p->rank));
}

static const char *mesh_title(const MeshPen *p) {
    Arena *a = p->c->arena;
    long long ranks = (long long)p->c->t->ranks, rank = (long long)p->rank;
    int axes = 0;
    for (int i = 0; i < p->n; i++) axes += p->comm[i].axis;
    if (ranks == 1) return "One rank: nobody to talk to";
    if (p->experts.two) return arena_printf(a, "%lld ranks, two meshes: %s", ranks, p->experts.two);
    if (ranks > FEW_RANKS)
        return arena_printf(a, "%lld ranks in %d bar%s: where rank %lld sits and whom it talks to",
                            ranks, axes, axes == 1 ? "" : "s", rank);
    if (p->n == 1) return arena_printf(a, "%lld ranks, all in one group", ranks);
    return arena_printf(a, "%lld ranks: rank %lld is in %d groups%s", ranks, rank, p->n,
                        axes == p->n ? ", one per axis" : "");
}

/* Of what the bytes are that a group sends, where a step has several micro-batches. */
static const char *sends_of(const MeshPen *p) {
    double parts = words_find_dim(p->c->t, "microbatches");
    if (!(parts > 1)) return "";
    return arena_printf(p->c->arena,
                        "sent: for one of %.0f micro-batches, and what is done once a step", parts);
}
/* One page; *next counts the groups that are drawn. */
static Scene *mesh_page(MeshPen *p, int *next) {
    const ViewCall *c = p->c;
    const Preset *pr = &presets[p->preset];
    Arena *a = c->arena;
    Scene *s = p->s = figure_new(c, "mesh", p->preset);
    bool few = c->t->ranks <= FEW_RANKS;
    p->x = pr->margin;
    /* a small mesh needs no wide canvas; the scale of a PNG stays the same */
    if (few && p->preset == PRESET_WIDE) {
        double both = p->experts.w ? 2 * ((double)p->cols * 182 + 20) + 36 + 2 * pr->margin : 0,
               groups = (double)p->n * fmax(250, (double)p->cols * 38 + 20) + 2 * pr->margin;
        s->w = fmin(s->w, fmax(760, fmax(both, groups)));
        s->px_width = (int)(pr->px * s->w / pr->w);
    }
    p->w = s->w - 2 * pr->margin;
    p->inside = few && experts_inside(p);
    const char *order = words_order(a, c->t), *model = words_model(a, c->t);
    const char *sub[] = {
        model ? model : "",
        words_layers(a, c->t),
        words_mesh(a, c->t),
        order ? order : "",
        mesh_formula(a, c->t),
        words_shrink(a, c->t),
        sends_of(p),
        few && p->n
            ? arena_printf(a, "rank %lld is outlined, its groups are filled", (long long)p->rank)
        : few || p->n < 2 ? ""
                          : "each bar is one cell of the bar above, enlarged",
        few && bare_boxes(p) ? "under a rank: its coordinates, in the order of the mesh" : "",
        NULL};
    double y =
        figure_head(s, p->preset, mesh_title(p), sub, 0) + (p->preset == PRESET_SLIDE ? 6 : 14);
    y = wrong_banner(s, c, (Band){p->x, p->w, y});
    if (few) y = few_ranks(p, y, next);
    else y = draw_table(p, draw_bars(p, y + 8)), *next = p->n;
    y = figure_foot(s, c, (Band){p->x, p->w, y + 2}, foot_text(p), NULL);
    s->desc = arena_printf(a, "The mesh of ranks: %s. %s", words_mesh(a, c->t), classes_text(c, 6));
    figure_page(s, p->preset, y);
    return s;
}

int view_mesh(const ViewCall *c, Scene **page) {
    MeshPen p = {.c = c, .rank = c->o->rank >= 0 ? c->o->rank : 0};
    int next = 0, pages = 0;
    if (p.rank >= c->t->ranks) {
        diag_error(c->d, "E0212", diag_nowhere, ranks_span(0, c->t->ranks - 1, c->arena),
                   "the trace has no rank %lld", (long long)p.rank);
        return 0;
    }
    furniture_preset(c->o->preset, &p.preset);
    p.n = mesh_comms(c->arena, c->t, p.rank, p.comm);
    p.experts = mesh_experts(c->arena, c->t);
    p.cols = grid_columns(c->arena, c->t);
    do {
        page[pages] = mesh_page(&p, &next);
        /* ranks that leave no room for groups have a slide of their own; bars come closer */
        p.alone = pages == 0 && p.n && page[0]->scale < 1;
        if (p.alone) next = 0, page[0] = mesh_page(&p, &next);
        p.placed = true;
        pages++;
    } while (next < p.n && pages < VIEW_MAX_PAGES);
    if (stack_of(c->t, c->arena) && pages < VIEW_MAX_PAGES) page[pages++] = stack_page(c, p.preset);
    return pages;
}

const char *view_mesh_text(const ViewCall *c) {
    MeshComm comm[MESH_MAX_COMMS];
    Arena *a = c->arena;
    int64_t rank = c->o->rank >= 0 && c->o->rank < c->t->ranks ? c->o->rank : 0;
    int n = mesh_comms(a, c->t, rank, comm);
    Role role;
    int w = furniture_columns(c->o);
    Str s = str_new(a);
    words_paragraph(&s, "", arena_printf(a, "%s · %s", words_mesh(a, c->t), mesh_formula(a, c->t)),
                    w);
    wrong_text(&s, wrong_find(a, c->t, NULL, NULL), w);
    str_addf(&s, "\nGroups of rank %lld %s\n", (long long)rank, words_coords(a, c->t, rank));
    words_pad(&s, "group", 14, false);
    words_pad(&s, "groups × ranks", 20, false);
    words_pad(&s, "as a slice", 22, false);
    str_add(&s, "what\n");
    for (int i = 0; i < n; i++) {
        words_pad(&s, comm[i].name, 14, false);
        words_pad(&s,
                  arena_printf(a, "%lld × %lld", (long long)groups_count(&comm[i].groups),
                               (long long)groups_size(&comm[i].groups)),
                  20, false);
        words_pad(&s, mesh_slice(a, &comm[i].groups, rank), 22, false);
        words_end_line(&s);
        words_paragraph(&s, "    ",
                        arena_printf(a, "%s%s%s%s%s", comm[i].cuts, *comm[i].cuts ? "; " : "",
                                     comm[i].carries, *comm[i].link ? "; " : "", comm[i].link),
                        w);
    }
    if (stack_of(c->t, a)) stack_text(c, &s, w);
    else str_add(&s, "\n");
    MeshExperts experts = mesh_experts(a, c->t);
    if (experts.w)
        words_paragraph(&s, "",
                        arena_printf(a, "Experts on the same ranks: %s; rank %lld has %s.",
                                     experts.title, (long long)rank,
                                     mesh_experts_of(a, c->t, &experts, rank)),
                        w);
    words_paragraph(&s, "", classes_text(c, 6), w);
    words_paragraph(&s, "", words_stamp(a, c->t, &role), w);
    return s.s;
}
