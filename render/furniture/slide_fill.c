/* A slide with little on it: the footer goes to the bottom, what is between title and footer is
 * enlarged by at most 1.5 and centred there. Letters never grow over those of the title. Refuses to
 * make anything smaller (figure_page does) and to move the title, which stands at the same place on
 * every slide. */
#include "render/furniture/furniture.h"
#include <math.h>
#include <string.h>

typedef enum { PART_HEAD, PART_BODY, PART_FOOT, PART_LEGEND } Part;
static const double most = 1.5, title_size = 18, apart = 14;

/* The part that a group belongs to, by the outermost group that has a name. Sentences on mistakes
 * stay with the title. */
static Part part_of(const Scene *s, int g) {
    Part p = PART_BODY;
    for (; g >= 0; g = s->groups[g].parent) {
        const char *what = s->groups[g].what;
        if (!strcmp(what, "title") || !strcmp(what, "page") ||
            !strcmp(s->groups[g].id, "wrong-notes"))
            p = PART_HEAD;
        if (!strcmp(what, "footer")) p = PART_FOOT;
        if (!strcmp(what, "legend")) p = PART_LEGEND;
    }
    return p;
}

static Box bounds(const Scene *s, const Part *part, Part want) {
    Box all = {INFINITY, INFINITY, -INFINITY, -INFINITY};
    for (int i = 0; i < s->n_marks; i++) {
        Box b = scene_box(&s->marks[i]);
        if (part[i] == want)
            all = (Box){fmin(all.x0, b.x0), fmin(all.y0, b.y0), fmax(all.x1, b.x1),
                        fmax(all.y1, b.y1)};
    }
    return all;
}

/* Point p goes to (x, y) + k p. */
typedef struct {
    double k, x, y;
} Way;

static Pt go(Way t, double x, double y) { return (Pt){t.x + t.k * x, t.y + t.k * y}; }

static void move_mark(Scene *s, Mark *m, Way t) {
    Pt p = go(t, m->x, m->y);
    m->x = p.x, m->y = p.y;
    m->w *= t.k, m->h *= t.k, m->r *= t.k, m->bend *= t.k, m->line *= t.k, m->size *= t.k;
    for (int i = 0; i < m->n; i++) m->pt[i] = go(t, m->pt[i].x, m->pt[i].y);
    double *dash = m->n_dash ? ARENA_ARRAY(s->arena, double, m->n_dash) : NULL;
    for (int i = 0; i < m->n_dash; i++) dash[i] = t.k * m->dash[i];
    m->dash = dash;
    if (m->kind == MARK_TEXT) m->w = fonts_width(s->fonts, m->run, m->n_run, m->size);
}

static void move_part(Scene *s, const Part *mark, const Part *group, Part part, Way t) {
    for (int i = 0; i < s->n_arrows; i++)
        if (mark[s->arrows[i].mark] == part)
            s->arrows[i].tip = go(t, s->arrows[i].tip.x, s->arrows[i].tip.y);
    for (int i = 0; i < s->n_marks; i++)
        if (mark[i] == part) move_mark(s, &s->marks[i], t);
    for (int i = 0; i < s->n_groups; i++) {
        Group *g = &s->groups[i];
        if (group[i] != part || !g->framed) continue;
        Pt p = go(t, g->x, g->y);
        g->x = p.x, g->y = p.y, g->w *= t.k, g->h *= t.k;
    }
}

void slide_fill(Scene *s, double margin, double h) {
    Part *mark = ARENA_ARRAY(s->arena, Part, s->n_marks + 1),
         *group = ARENA_ARRAY(s->arena, Part, s->n_groups + 1);
    for (int i = 0; i < s->n_marks; i++) mark[i] = part_of(s, s->marks[i].group);
    for (int i = 0; i < s->n_groups; i++) group[i] = part_of(s, i);
    /* a legend under the body belongs to the footer */
    Part legend = bounds(s, mark, PART_LEGEND).y0 >= bounds(s, mark, PART_BODY).y1 - 6 ? PART_FOOT
                                                                                       : PART_BODY;
    for (int i = 0; i < s->n_marks; i++) mark[i] = mark[i] == PART_LEGEND ? legend : mark[i];
    for (int i = 0; i < s->n_groups; i++) group[i] = group[i] == PART_LEGEND ? legend : group[i];
    Box head = bounds(s, mark, PART_HEAD), body = bounds(s, mark, PART_BODY),
        foot = bounds(s, mark, PART_FOOT);
    if (!(body.y1 > body.y0) || !(head.y1 > 0) || !(foot.y1 > 0)) return;
    double drop = fmax(0, h - 10 - foot.y1), top = fmin(body.y0, head.y1 + apart),
           bottom = foot.y0 + drop - apart;
    double wide = body.x1 - body.x0, high = body.y1 - body.y0, letters = 12;
    /* numbers that are the subject of a picture are larger and do not count */
    for (int i = 0; i < s->n_marks; i++)
        if (s->marks[i].kind == MARK_TEXT && mark[i] == PART_BODY && s->marks[i].size <= 16)
            letters = fmax(letters, s->marks[i].size);
    double k = fmin(fmin(most, title_size / letters),
                    fmin((bottom - top) / high, (s->w - 2 * margin) / wide));
    if (k < 1.04 || s->one_scale) k = 1;
    double spare = fmax(0, bottom - top - k * high);
    /* what is as wide as the page stays on its margin */
    double x = s->one_scale || (k == 1 && wide > 0.8 * (s->w - 2 * margin)) ? body.x0
                                                                            : (s->w - k * wide) / 2;
    double y = k == 1 && spare < 30 ? body.y0 : top + 0.4 * spare;
    move_part(s, mark, group, PART_FOOT, (Way){1, 0, drop});
    move_part(s, mark, group, PART_BODY, (Way){k, x - k * body.x0, y - k * body.y0});
}
