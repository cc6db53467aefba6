/* Names above the lane of kernels. See above.h. Products and attention come first: each run of
 * narrow ones has its name over it, or further up at a leader, or is named in parts; the other
 * kernels have what room is left. */
#include "render/timeline/above.h"
#include "render/timeline/callouts.h"
#include <math.h>
#include <string.h>

/* Narrow kernels that touch each other. */
typedef struct {
    const TimeEvent *x;
    Span at;
} Narrow;
typedef struct {
    Narrow *k;
    int n, cap;
    bool apart; /* its name has no place over it */
} Narrows;
typedef struct {
    Narrows *run;
    int n, cap;
} Runs;

enum {
    REACH = 28,       /* px that words over a run reach over its neighbours at most */
    APART = 8,        /* px between words */
    FURTHER = 3,      /* rows beyond the nearest */
    SMALL_NAMED = 24, /* px from which on a small kernel is named too */
};

/* The only kernel of a line has its name, however narrow it is: behind it nothing stands. */
static bool is_alone(const Stave *v) {
    int n = 0;
    for (int i = 0; i < v->t->n_events && n < 2; i++)
        n += !timeline_lane(v->t, v->t->event[i].e) && stave_in(v, &v->t->event[i]);
    return n == 1;
}
static void add_name(const TimePen *p, Above *to, AboveName name) {
    *ARENA_PUSH(p->c->arena, to->name, to->n, to->cap) = name;
}
/* A place in the nearest row that stays free. */
static void add_leader(const TimePen *p, Above *to, double x) {
    add_name(p, to, (AboveName){NULL, {x, x}, {x, x}, x, 0});
}
/* Words over a run of narrow kernels. Moved aside by the words beside them; false: they would not
 * stand above the middle of what they name, or reach too far over what they do not. */
static bool put_over(const TimePen *p, const char *text, Span run, Above *to) {
    const double w = scene_width(p->s, stave_size(p), REGULAR, text), mid = (run.a + run.b) / 2;
    Span room = {p->x0, p->right};
    for (int i = 0; i < to->n; i++) {
        const AboveName *k = &to->name[i];
        const double apart = k->text ? APART : CALLOUT_CLEAR;
        if (k->row) continue;
        if ((k->at.a + k->at.b) / 2 < mid) room.a = fmax(room.a, k->at.b + apart);
        else room.b = fmin(room.b, k->at.a - apart);
    }
    const double x = fmax(fmin(mid - w / 2, room.b - w), room.a);
    if (!*text || x > mid || x + w < mid || x + w > room.b ||
        (!to->alone && fmax(run.a - x, x + w - run.b) > REACH))
        return false;
    add_name(p, to, (AboveName){text, run, {x, x + w}, mid, 0});
    return true;
}

/* What of a name its neighbour has not said: `part 2 dk` behind `part 2 dq` is dk. */
static const char *unsaid(const char *name, const char *before) {
    size_t k = 0;
    for (size_t i = 0; before && before[i] && before[i] == name[i]; i++)
        if (name[i] == ' ') k = i + 1;
    return name + k;
}
/* Both gradients of one matrix after another, of several matrices, or of one with a long name? */
static bool in_pairs(const Narrow *k, int n) {
    bool pairs = n > 0 && n % 2 == 0 && (n > 2 || strlen(k->x->name) > strlen("dx wkv"));
    for (int i = 0; pairs && i < n; i += 2)
        pairs = k[i].x->product && k[i + 1].x->product && !k[i].x->gradient &&
                k[i + 1].x->gradient && !strcmp(k[i].x->product, k[i + 1].x->product);
    return pairs;
}
/* "wq, wk, wv" (above a rule "wk wv" reads as one word), "dx w2, dw2", of several matrices "dx, dw:
 * wv, wk, wq"; what stands three times "add × 3"; brief: by what each is called where room is
 * short. */
static const char *run_text(Arena *a, const Narrow *k, int n, bool brief) {
    const bool pairs = in_pairs(k, n);
    Str s = str_new(a);
    if (pairs) str_add(&s, "dx, dw:");
    for (int i = 0, same = 1; i < n; i += same, same = 1) {
        const TimeEvent *x = k[i].x, *before = i ? k[i - 1].x : NULL;
        if (pairs) {
            same = 2;
            str_addf(&s, "%s %s", i ? "," : "",
                     unsaid(x->product, before ? before->product : NULL));
            continue;
        }
        while (i + same < n && !strcmp(x->name, k[i + same].x->name)) same++;
        const bool cut = brief && strcmp(x->brief, x->name) != 0;
        /* a word for two things says neither: "moment" of the first and the second */
        if (cut && before && !strcmp(before->brief, x->brief)) return "";
        str_addf(&s, "%s%s", i ? ", " : "",
                 cut ? x->brief : unsaid(x->name, before ? before->name : NULL));
        if (same > 1) str_addf(&s, " × %d", same);
    }
    return s.s;
}
static Span run_span(const Narrow *k, int n) { return (Span){k[0].at.a, k[n - 1].at.b}; }
/* One name for n kernels in the nearest row. */
static bool name_over(const TimePen *p, const Narrow *k, int n, Above *to) {
    for (int brief = 0; brief < 2; brief++)
        if (put_over(p, run_text(p->c->arena, k, n, brief), run_span(k, n), to)) return true;
    return false;
}
/* One name for all of a run; else as many from the left as have one. */
static void name_parts(const TimePen *p, const Narrows *run, Above *to) {
    for (int i = 0, used = 0; i < run->n; i += used ? used : 1, used = 0)
        for (int n = run->n - i; n > 0 && !used; n--)
            if (name_over(p, run->k + i, n, to)) used = n;
}
/* Runs of narrow kernels that have no words inside. */
static void find_runs(const TimePen *p, const Stave *v, bool small, Runs *out) {
    Narrows *run = NULL;
    const double least = is_alone(v) ? 0 : SMALL_NAMED;
    for (int i = 0; i < v->t->n_events; i++) {
        const TimeEvent *x = &v->t->event[i];
        if (timeline_lane(v->t, x->e) > 0 || !stave_in(v, x)) continue;
        const Span at = {stave_x(p, v, x->e->start), stave_x(p, v, x->e->end)};
        const bool own = x->small == small && !stave_text(p, v, x);
        if (run && (!own || at.a - run->k[run->n - 1].at.b > 3)) run = NULL;
        if (!own || (small && at.b - at.a < least)) continue;
        if (!run) {
            run = ARENA_PUSH(p->c->arena, out->run, out->n, out->cap);
            *run = (Narrows){0};
        }
        *ARENA_PUSH(p->c->arena, run->k, run->n, run->cap) = (Narrow){x, at};
    }
}
static double run_middle(const Narrows *run) {
    const Span at = run_span(run->k, run->n);
    return (at.a + at.b) / 2;
}
/* Names over their runs; what has no place there is apart, and its leader takes place from others:
 * until nothing more is. */
static void lay_nearest(const TimePen *p, Runs *runs, Above *to) {
    bool again = true;
    while (again) {
        again = false;
        to->n = 0;
        for (int i = 0; i < runs->n; i++)
            if (runs->run[i].apart) add_leader(p, to, run_middle(&runs->run[i]));
        for (int i = 0; i < runs->n && !again; i++) {
            Narrows *run = &runs->run[i];
            again = !run->apart && !name_over(p, run->k, run->n, to);
            run->apart |= again;
        }
    }
}
/* Places in the rows further up for n runs by their names, whole or brief; returns how many rows.
 */
static int lay_rows(const TimePen *p, const Narrows *const *run, int n, bool brief, Callout *c) {
    for (int i = 0; i < n; i++) {
        const char *text = run_text(p->c->arena, run[i]->k, run[i]->n, brief);
        if (!*text) return 0;
        c[i] = (Callout){.at = run_middle(run[i]),
                         .w = scene_width(p->s, stave_size(p), REGULAR, text)};
    }
    return callouts_lay(p->c->arena, c, n, p->x0 - 2, p->right, FURTHER);
}
static int placed(const Callout *c, int n) {
    int k = 0;
    for (int i = 0; i < n; i++) k += c[i].w > 0 && c[i].row >= 0;
    return k;
}
/* Names of what is apart, in the rows further up; named in parts where they have no room. */
static void lay_further(const TimePen *p, const Runs *runs, Above *to) {
    Callout *whole = ARENA_ARRAY(p->c->arena, Callout, runs->n + 1),
            *brief = ARENA_ARRAY(p->c->arena, Callout, runs->n + 1), *c = whole;
    const Narrows **of = ARENA_ARRAY(p->c->arena, const Narrows *, runs->n + 1);
    int n = 0, kept = 0;
    for (int i = 0; i < runs->n; i++)
        if (runs->run[i].apart) of[n++] = &runs->run[i];
    to->rows = lay_rows(p, of, n, false, whole);
    const int rows = placed(whole, n) < n ? lay_rows(p, of, n, true, brief) : 0;
    if (rows && placed(brief, n) > placed(whole, n)) c = brief, to->rows = rows;
    for (int i = 0; i < to->n; i++) /* the leaders of what has no room */
        if (to->name[i].text) to->name[kept++] = to->name[i];
    to->n = kept;
    for (int i = 0; i < n; i++) {
        if (c[i].row < 0) continue;
        const char *text = run_text(p->c->arena, of[i]->k, of[i]->n, c == brief);
        const Span at = {c[i].x, c[i].x + c[i].w};
        add_leader(p, to, c[i].at);
        add_name(p, to, (AboveName){text, run_span(of[i]->k, of[i]->n), at, c[i].at, c[i].row + 1});
    }
    for (int i = 0; i < n; i++)
        if (c[i].row < 0) name_parts(p, of[i], to);
}
void above_lay(const TimePen *p, const Stave *v, Above *out) {
    Runs products = {0}, others = {0};
    *out = (Above){.alone = is_alone(v)};
    find_runs(p, v, false, &products);
    find_runs(p, v, true, &others);
    lay_nearest(p, &products, out);
    lay_further(p, &products, out);
    for (int i = 0; i < others.n; i++) name_parts(p, &others.run[i], out);
}
void above_draw(const TimePen *p, const Stave *v, const Above *names) {
    const double size = stave_size(p), rule = v->y - 3, foot = v->y - 0.5;
    for (int i = 0; i < names->n; i++) {
        const AboveName *k = &names->name[i];
        const double y = v->y - 7 - STAVE_STEP * k->row;
        if (!k->text) continue;
        const char *what = k->row ? "callout" : names->alone ? "alone" : "leader";
        scene_begin(p->s, what, what, k->text);
        scene_text(p->s, k->at.a, y, (TextLook){ALIGN_LEFT, size, REGULAR, ROLE_INK}, k->text);
        /* a bracket over the kernels: a bare rule reads as a line under the words */
        Pt pt[4] = {{k->run.a, foot}, {k->run.a, rule}, {k->run.b, rule}, {k->run.b, foot}};
        Mark *m = scene_line(p->s, pt, 4, ROLE_SECOND, 1);
        m->bend = 0, m->ground = true;
        if (k->row) scene_segment(p->s, (Pt){k->lead, rule}, (Pt){k->lead, y + 4}, ROLE_SECOND, 1);
        scene_end(p->s);
    }
}
