/* Two figures in one: the marks of the second go behind those of the first, at its right or under
 * it; and room above a figure for what they are called. Refuses to bring them to one scale:
 * views that measure do so themselves, by their peer. */
#include "render/scene/scene.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

static void move(Mark *m, double right, double down) {
    m->x += right;
    m->y += down;
    for (int i = 0; i < m->n; i++) m->pt[i].x += right, m->pt[i].y += down;
}
/* Ids are unique in a scene: those of the second figure get a prefix, and so do its links. */
static Group second_group(Scene *s, const Scene *b, Group g, int first) {
    size_t prefix = strlen(b->name) + 2; /* "#NAME-ID" */
    g.id = arena_printf(s->arena, "second-%s", g.id);
    if (g.href && strlen(g.href) > prefix)
        g.href = arena_printf(s->arena, "#%s-second-%s", s->name, g.href + prefix);
    g.parent += g.parent >= 0 ? first : 0;
    return g;
}
/* Adds what figure b has, moved. */
static void take_in(Scene *s, const Scene *b, double right, double down) {
    int marks = s->n_marks, groups = s->n_groups;
    for (int i = 0; i < b->n_groups; i++) {
        Group g = second_group(s, b, b->groups[i], groups);
        g.first += marks, g.last += marks;
        g.x += right, g.y += down;
        *ARENA_PUSH(s->arena, s->groups, s->n_groups, s->cap_groups) = g;
    }
    for (int i = 0; i < b->n_marks; i++) {
        Mark *m = ARENA_PUSH(s->arena, s->marks, s->n_marks, s->cap_marks);
        *m = b->marks[i];
        m->group += m->group >= 0 ? groups : 0;
        move(m, right, down);
    }
    for (int i = 0; i < b->n_arrows; i++) {
        Arrow a = b->arrows[i];
        a.mark += marks;
        a.tip.x += right, a.tip.y += down;
        a.to += a.to >= 0 ? groups : 0;
        *ARENA_PUSH(s->arena, s->arrows, s->n_arrows, s->cap_arrows) = a;
    }
    s->title = arena_printf(s->arena, "%s | %s", s->title, b->title);
}
/* Of a figure that grew: a page of its own size, and a figure that was scaled onto its page has its
 * own size again. */
static void grow_page(Scene *s, double w, double h) {
    s->px_width = (int)(s->px_width * w / s->w);
    s->scale = 1;
    s->off_x = s->off_y = 0;
    s->w = s->page_w = w;
    s->h = s->page_h = h;
}
void scene_beside(Scene *s, const Scene *b, double gap) {
    const double by = s->w + gap;
    take_in(s, b, by, 0);
    s->desc = arena_printf(s->arena, "Left: %s Right: %s", s->desc, b->desc);
    grow_page(s, by + b->w, fmax(s->h, b->h));
}
void scene_under(Scene *s, const Scene *b, double gap) {
    const double by = s->h + gap;
    take_in(s, b, 0, by);
    s->desc = arena_printf(s->arena, "Above: %s Below: %s", s->desc, b->desc);
    grow_page(s, fmax(s->w, b->w), by + b->h);
}
void scene_row(Scene *s, const char *name, double y) {
    *ARENA_PUSH(s->arena, s->rows, s->n_rows, s->cap_rows) = (SceneRow){name, y};
}
void scene_lower(Scene *s, double by) {
    for (int i = 0; i < s->n_rows; i++) s->rows[i].y += by;
    for (int i = 0; i < s->n_marks; i++) move(&s->marks[i], 0, by);
    for (int i = 0; i < s->n_groups; i++) s->groups[i].y += by;
    for (int i = 0; i < s->n_arrows; i++) s->arrows[i].tip.y += by;
    grow_page(s, s->w, s->h + by);
}
/* The lowest baseline of a head. */
static double head_end(const Scene *s) {
    double y = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind == MARK_TEXT && m->group >= 0 && !strcmp(s->groups[m->group].what, "title"))
            y = fmax(y, m->y);
    }
    return y;
}
static void lower_body(Scene *s, double by) {
    if (by <= 0) return;
    scene_lower(s, by);
    for (int i = 0; i < s->n_marks; i++) {
        Mark *m = &s->marks[i];
        if (m->group >= 0 && !strcmp(s->groups[m->group].what, "title")) move(m, 0, -by);
    }
    for (int i = 0; i < s->n_groups; i++)
        if (!strcmp(s->groups[i].what, "title")) s->groups[i].y -= by;
}
/* Moves what is at y or under it; a line from above to under it becomes longer. */
static void lower_under(Scene *s, double y, double by) {
    if (by <= 0) return;
    for (int i = 0; i < s->n_marks; i++) {
        Mark *m = &s->marks[i];
        if (m->y >= y) m->y += by;
        double low = 0; /* an arrow's head goes with what it points at */
        for (int k = 0; k < m->n; k++) low = fmax(low, m->pt[k].y);
        for (int k = 0; k < m->n; k++)
            m->pt[k].y += (m->fill != ROLE_NONE ? low : m->pt[k].y) >= y ? by : 0;
    }
    for (int i = 0; i < s->n_groups; i++) s->groups[i].y += s->groups[i].y >= y ? by : 0;
    for (int i = 0; i < s->n_arrows; i++) s->arrows[i].tip.y += s->arrows[i].tip.y >= y ? by : 0;
    for (int i = 0; i < s->n_rows; i++) s->rows[i].y += s->rows[i].y >= y ? by : 0;
    grow_page(s, s->w, s->h + by);
}
void scene_level(Scene *a, Scene *b) {
    const double more = head_end(a) - head_end(b);
    lower_body(a, -more);
    lower_body(b, more);
    for (int i = 0, from = 0; i < a->n_rows; i++) {
        int k = from;
        while (k < b->n_rows && strcmp(a->rows[i].name, b->rows[k].name)) k++;
        if (k == b->n_rows) continue;
        const double at[2] = {a->rows[i].y, b->rows[k].y};
        lower_under(a, at[0], at[1] - at[0]);
        lower_under(b, at[1], at[0] - at[1]);
        from = k + 1;
    }
}
