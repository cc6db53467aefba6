/* Places and words of a timeline's line. See stave.h. */
#include "render/timeline/stave.h"
#include <math.h>

double stave_height(const TimePen *p, int lane) { return lane ? p->look->comm : p->look->compute; }
double stave_top(const TimePen *p, const Stave *v, int lane) {
    double y = v->y;
    for (int i = 0; i < lane; i++)
        if (v->has[i]) y += stave_height(p, i) + v->under[i] + p->look->gap;
    return y;
}
double stave_x(const TimePen *p, const Stave *v, double t) {
    return p->x0 + p->scale * (fmin(fmax(t, v->l->start), v->l->end) - v->l->start);
}
bool stave_in(const Stave *v, const TimeEvent *x) {
    const TraceEvent *e = x->e;
    double eps = 1e-9 * (v->l->end - v->l->start);
    return !x->aside && e->end > v->l->start + eps && e->start < v->l->end - eps;
}
void stave_find_lanes(Stave *v) {
    const Timeline *t = v->t;
    for (int i = 0; i < STAVE_LANES; i++) v->has[i] = i == 0;
    for (int lane = 1; lane < t->n_lanes && lane < STAVE_LANES; lane++)
        for (int i = 0; i < t->n_events && !v->has[lane]; i++)
            v->has[lane] = timeline_lane(t, t->event[i].e) == lane && stave_in(v, &t->event[i]);
}

double stave_works_from(const TimeEvent *x) { return x->e->start + x->e->wait; }
double stave_works_for(const TimeEvent *x) { return x->e->end - stave_works_from(x); }
double stave_size(const TimePen *p) { return fmax(11.5, p->s->min_size); }

enum { FLAG_ROOM = 22 };
/* The words that fit inside an event with 3 px at each side, or NULL: the whole, the name, what it
 * is called where room is short. */
static const char *text_in(const TimePen *p, const Stave *v, const TimeEvent *x, double flag) {
    double room = stave_x(p, v, x->e->end) - stave_x(p, v, stave_works_from(x)) - 6 - 2 * flag;
    bool coll = timeline_lane(v->t, x->e) > 0;
    const char *try[3] = {coll ? arena_printf(p->c->arena, "%s  %s", x->name,
                                              time_text(stave_works_for(x), p->c->arena))
                               : x->name,
                          x->name, x->brief};
    for (int i = 0; i < 3; i++)
        if (*try[i] && scene_width(p->s, 12, coll ? REGULAR : MEDIUM, try[i]) <= room)
            return try[i];
    return NULL;
}
bool stave_flag_fits(const TimePen *p, const Stave *v, const TimeEvent *x) {
    return wrong_number(p->wrong, x->e->step) && text_in(p, v, x, FLAG_ROOM);
}
const char *stave_text(const TimePen *p, const Stave *v, const TimeEvent *x) {
    const bool wrong = wrong_number(p->wrong, x->e->step), coll = timeline_lane(v->t, x->e) > 0;
    const char *text = text_in(p, v, x, wrong ? FLAG_ROOM : 0);
    return text || !wrong || !coll ? text : text_in(p, v, x, 0); /* the flag stands above */
}
const char *stave_waiting(const TimePen *p, const Stave *v, const TimeEvent *x) {
    const char *took = time_text(x->e->wait, p->c->arena),
               *try[] = {arena_printf(p->c->arena, "%s waits %s", x->name, took),
                         arena_printf(p->c->arena, "%s waits", x->name)};
    double room = stave_x(p, v, stave_works_from(x)) - stave_x(p, v, x->e->start) - 6;
    for (int i = 0; i < 2 && x->e->wait > 0; i++)
        if (scene_width(p->s, 12, REGULAR, try[i]) <= room) return try[i];
    return NULL;
}
