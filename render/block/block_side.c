/* What stands beside a collective in a block picture: pill, members, map of its group and the
 * reason. Cuts no sentence inside a clause: what does not fit is left to the tooltip. */
#include "render/furniture/hexagon.h"
#include "render/block/block_draw.h"
#include <math.h>
#include <string.h>

enum { REASON_WORDS = 16 }; /* lines of a reason that has all the room it wants */
static const char CUT[] = "…";

/* a map of at most two rows fits on a line; so far it may stand over the room of the words */
enum { MAP_FLAT = 18, MAP_OVER = 4 };

/* Pill, members and map on one line (or the map under them); returns the width. A high map is left
 * to the caller. */
static double group_line(BlockPen *p, const TraceCollective *c, double x, double y, double room,
                         bool narrow) {
    bool stacked = room <= 0;
    double top = y - 9;
    Scene *s = p->s;
    const Trace *t = p->g->t;
    const char *color = words_color_axis(p->g->arena, t, c->axis, c->axes);
    double pw = draw_pill(s, x, y, words_axis_list(p->g->arena, t, c->axis), color), h = 0;
    const char *members =
        words_members(p->g->arena, &c->groups, words_group_of(&c->groups, p->g->rank));
    double w = pw + 7 +
               scene_text(s, x + pw + 7, y + 4.5, (TextLook){ALIGN_LEFT, 12.5, REGULAR, ROLE_INK},
                          members);
    RankMap map = {t, &c->groups, p->g->rank, color};
    double mw = map_size(s, &map, &h);
    if (mw > 0 && h <= MAP_FLAT && !(narrow && w + 10 + mw > room + MAP_OVER)) {
        p->legend |= 1u << LEGEND_MAP;
        if (stacked && y + 12 + h <= top + p->look->coll + 2) draw_map(s, &map, x, y + 12);
        else draw_map(s, &map, x + w + 10, y - h / 2);
        return w + 10 + mw;
    }
    const char *all =
        arena_printf(p->g->arena, "%lld groups × %lld", (long long)groups_count(&c->groups),
                     (long long)groups_size(&c->groups));
    bool fits = w + 10 + scene_width(s, 12, REGULAR, all) <= room; /* else the tooltip has it */
    if (stacked || groups_count(&c->groups) == 1 || !fits) return w;
    return w + 10 +
           scene_text(s, x + w + 10, y + 4.5, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                      all);
}

/* A map of three rows or more stands right of both lines of words. */
static void high_map(BlockPen *p, const TraceCollective *c, double x, double mid) {
    const char *color = words_color_axis(p->g->arena, p->g->t, c->axis, c->axes);
    RankMap map = {p->g->t, &c->groups, p->g->rank, color};
    double h, w = map_size(p->s, &map, &h);
    if (!(w > 0 && h > MAP_FLAT && h <= p->look->coll)) return;
    p->legend |= 1u << LEGEND_MAP;
    draw_map(p->s, &map, x, mid - h / 2);
}

/* The text in `lines` lines of width w, if all of it fits there; 0: it does not. */
static int whole_lines(Scene *s, const char *text, double w, int lines, const char **line) {
    const char *all[REASON_WORDS];
    int k = scene_wrap(s, text, (TextColumn){w, 12, REGULAR, REASON_WORDS, NULL}, all);
    bool whole = k <= lines;
    for (int i = 0; i < k; i++) whole &= !strstr(all[i], CUT);
    if (!whole) return 0;
    memcpy(line, all, sizeof *all * (size_t)k);
    return k;
}
/* The reason as far as it fits into `lines` lines of width w: what it says itself before whose
 * adjoint the step is, then clause by clause from its end: the clause that matters stands first,
 * the tooltip has the whole. Of a module's path the last name stays where the whole does not fit.
 * Returns the number of lines; 0: not even a clause fits. */
static int clauses(Scene *s, const char *why, double w, int lines, const char **line) {
    Arena *a = s->arena;
    const char *own = words_own_why(why);
    int k = whole_lines(s, why, w, lines, line);
    if (!k && *own) k = whole_lines(s, own, w, lines, line);
    while (!k) {
        const char *last = strrchr(why, ' '), *end = NULL, *leaf = words_leaf(last ? last : "");
        if (last && leaf > last + 1 && *leaf) {
            why = arena_printf(a, "%.*s %s", (int)(last - why), why, leaf);
            k = whole_lines(s, why, w, lines, line);
            continue;
        }
        for (const char *q = why; *q; q++)
            if ((*q == ',' || *q == ':') && q[1] == ' ') end = q;
        if (!end) return 0;
        why = arena_strndup(a, why, (size_t)(end - why));
        k = whole_lines(s, why, w, lines, line);
    }
    return k;
}

/* The reason in at most `max` lines; on a slide in one less where a clause of it fits that says
 * more than whose adjoint the step is. */
static int reason(BlockPen *p, const BlockNode *n, double w, int max, const char **line) {
    const TraceCollective *c = n->coll;
    const char *why = words_why(p->g->arena, c->why);
    if (n->hops) /* one stands for all */
        why = arena_printf(p->g->arena, "ring: hop 1 of %d, the others %s", n->hops,
                           p->g->pass == PHASE_FORWARD ? "do the same" : "add theirs");
    const char *own = words_own_why(why);
    const bool slide = !p->look->numbers && max > 1;
    int k = slide && *own ? whole_lines(p->s, own, w, max - 1, line) : 0;
    if (!k && slide && *own) k = whole_lines(p->s, own, w, max, line);
    if (!k && slide) k = clauses(p->s, why, w, max - 1, line);
    return k ? k : clauses(p->s, why, w, max, line);
}

double block_group_width(BlockPen *p, const BlockNode *n) {
    const TraceCollective *c = n->coll;
    RankMap map = {p->g->t, &c->groups, p->g->rank,
                   words_color_axis(p->g->arena, p->g->t, c->axis, c->axes)};
    double h, pill = pill_width(p->s, words_axis_list(p->g->arena, p->g->t, c->axis));
    const char *members =
        words_members(p->g->arena, &c->groups, words_group_of(&c->groups, p->g->rank));
    return fmax(pill + 7 + scene_width(p->s, 12.5, REGULAR, members), map_size(p->s, &map, &h));
}

double block_side_width(BlockPen *p, const BlockNode *n, double room) {
    const TraceCollective *c = n->coll;
    const char *line[3],
        *members = words_members(p->g->arena, &c->groups, words_group_of(&c->groups, p->g->rank));
    RankMap map = {p->g->t, &c->groups, p->g->rank, ""};
    const double pill = pill_width(p->s, words_axis_list(p->g->arena, p->g->t, c->axis));
    double h, w = pill + 7 + scene_width(p->s, 12.5, REGULAR, members),
              with = w + 10 + map_size(p->s, &map, &h);
    if (groups_count(&c->groups) > 1) return room; /* group_line may say how many there are */
    if (h <= MAP_FLAT && with <= room + MAP_OVER) w = with;
    for (int k = reason(p, n, room, 2, line); k > 0; k--)
        w = fmax(w, scene_width(p->s, 12, REGULAR, line[k - 1]));
    return w;
}

bool block_reason_fits(BlockPen *p, const BlockNode *n, double w) {
    const char *line[3];
    return reason(p, n, w, 3, line) > 0;
}

void block_side(BlockPen *p, const BlockNode *n, SideRoom at) {
    const BlockSide side = at.side;
    const double x = at.x, y = at.y;
    const TraceCollective *c = n->coll;
    const char *line[3];
    double h = p->look->coll;
    scene_begin(p->s, "why", arena_printf(p->g->arena, "why-%d", n->step), block_coll_tip(p->g, c));
    if (side == SIDE_BOTH) {
        group_line(p, c, x, y + 9, 0, false);
        int k = reason(p, n, at.room, 3, line);
        double top = y + h / 2 + 4.2 - 7.5 * (k - 1);
        for (int i = 0; i < k; i++)
            scene_text(p->s, at.left, top + 15 * i,
                       (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, line[i]);
    } else {
        double room = side == SIDE_NARROW || p->look->numbers ? at.room : at.room + 45;
        int k = reason(p, n, room, 2, line);
        double pill = k > 1 ? y + h / 2 - 14.5 : fmax(y + h / 2 - 9, y + 10),
               pitch = h < 34 ? 22 : 25;
        double wide = group_line(p, c, x, pill, room, side == SIDE_NARROW);
        for (int i = 0; i < k; i++)
            wide =
                fmax(wide, scene_text(p->s, x, pill + (k > 1 ? 21.5 : pitch) + 14 * i,
                                      (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[i]));
        if (side == SIDE_RIGHT) high_map(p, c, x + wide + 12, y + h / 2);
    }
    scene_end(p->s);
}
