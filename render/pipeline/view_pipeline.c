/* View `pipeline`: a row for each rank of the pipeline's axis, a cell for each action, as wide as
 * the time it takes; idle time is hatched, under each row stands how much is in flight. The life of
 * one micro-batch is a line through its cells. Where cells would be too small, periods that repeat
 * are left out behind a break mark, and ranks in the middle of many. Refuses more cells than an eye
 * can tell apart: then neighbours of one kind are one. */
#include "render/furniture/page_room.h"
#include "render/furniture/views.h"
#include "render/furniture/wrong.h"
#include "render/pipeline/fold.h"
#include "render/pipeline/lines.h"
#include "render/pipeline/pipeline.h"
#include "render/pipeline/strip.h"
#include <math.h>
#include <stdio.h>
#include <string.h>

enum {
    MOST_CELLS = 3000,
    CELL = 26,
    CELL_OF_TWO = 34,
    STEP = 14,
    GAP = 10,
    LEFT = 118,
    RIGHT = 104,
    OTHERS = 210, /* of a page's height: all but the rows */
    HEADING = 22, /* of one schedule of several */
    LINE = 18,    /* of their table */
    NUMBER = 12,  /* size of a cell's number */
    LIFE = 0,
    NARROW_CELL = 8, /* width of the shortest cell from which on all have dark outlines */
    BARE_CELL = 2,   /* in less left cannot be told from right */
    LEAST_IDLE = 4,  /* width from which on idle time is hatched: in less no hatch is one */
    LEGIBLE = 6,     /* width of the shortest cell, else something is left out */
    BREAK = 16,      /* width of a break */
    BREAK_TEXT = 20, /* above the rows */
    MANY = 12,       /* ranks, of which some may be left out; rows of a schedule in lines */
    LINE_TEXT = 20,  /* above a line that is not the first */
    TWO_LINES = 31,  /* height of a row with room for two lines of words */
    BUILD = 64,      /* steps of a figure that builds up, about */
    LEAST = 19,      /* height of a row on a page of a fixed height */
    AXIS = 20,       /* height of the axis of time */
    TOO_UNLIKE = 6,  /* how many times as long a schedule is that shares no scale */
    TICK_ROOM = 64   /* width between two of its ticks, at least */
};
#define LIFE_LINE 1.75
#define WORTH 1.5 /* so much wider are cells where ranks are left out, else they are not */

/* Of the schedules of a figure [from, to): their rows, their lines of the table. */
typedef struct {
    int from, to;
    bool rows, table;
} PipePage;
typedef struct {
    const ViewCall *c;
    PipePage g;
    Pipe p; /* the one that is drawn */
    int n_all;
    Pipe all[VIEW_MAX_BESIDE + 1]; /* one below the other, on one axis of time */
    const char *tag;               /* what the ids of its marks begin with */
    double span;                   /* seconds over the width, all of them */
    PipeFold fold;                 /* what of them is left out */
    PipeLines lines;               /* all of it in one, or one schedule in several */
    int line;                      /* that is drawn */
    int ends;                      /* of the ranks only so many at both ends are drawn; 0: all */
    Scene *s;
    PresetKind preset;
    double x, w;            /* of the rows: their left end and width */
    double cell, step, gap; /* heights: of a cell, of the line under it, between rows */
    bool each;              /* every action has its cell */
    bool fine;              /* cells are so narrow that their lines are pale, */
    bool bare;              /* and some that no bar at an edge says a stage */
    bool *numbered;         /* per kind and stage of the one that is drawn: all its cells are */
    bool one_line;          /* what is said of a row stands in one line */
    bool strip;             /* part of another view's page: nothing of what is in flight */
    bool apart;             /* another plan's schedule is beside it, at a scale of its own */
    bool no_axis;           /* the page has no room for the axis of time */
    int most;               /* in flight on any rank */
    double tick;            /* seconds of a step of a figure that builds up */
} PipePen;

/* ---- what appears when ---- */
/* In a figure that builds up time goes on by the shortest of all cells, in no more than BUILD
 * steps; what is counted of all of it comes with the last. */
static int appears(const PipePen *q, double t) {
    return q->strip ? 0 : 1 + (int)fmin(t / q->tick + 1e-6, q->span / q->tick);
}
/* Seconds of the shortest cell of all. */
static double shortest(const PipePen *q) {
    double least = q->span;
    for (int k = 0; k < q->n_all; k++)
        for (int i = 0; i < q->all[k].t->n_actions; i++) {
            const TraceAction *a = &q->all[k].t->actions[i];
            if (a->end > a->start) least = fmin(least, a->end - a->start);
        }
    return least;
}

/* ---- cells ---- */
/* Of a time that is left out: where its break ends, or with `end` where it begins. */
static double at_side(const PipePen *q, double t, bool end) {
    const PipeFold *f = &q->fold;
    const double scale = (q->w - f->n * BREAK) / (q->lines.longest - f->hidden),
                 begin = q->lines.at[q->line];
    double x = q->x - begin * scale;
    t = fmin(fmax(t, begin), q->lines.at[q->line + 1]);
    for (int i = 0; i < f->n; i++) {
        const PipeCut *c = &f->cut[i];
        if (t < c->from || (end && t <= c->from)) break;
        x += BREAK - fmin(t - c->from, c->to - c->from) * scale;
        if (t < c->to) return x + t * scale - (end ? BREAK : 0);
    }
    return x + t * scale;
}
static double at(const PipePen *q, double t) { return at_side(q, t, true); }
static double at_start(const PipePen *q, double t) { return at_side(q, t, false); }
/* Is the whole of it drawn, in the line that is? */
static bool is_whole(const PipePen *q, const TraceAction *a) {
    bool whole;
    if (!pipe_on_line(&q->lines, q->line, a, &whole) || !whole) return false;
    double slack = 1e-3 * (a->end - a->start);
    if (q->ends && a->rank >= q->ends && a->rank < q->p.n - q->ends) return false;
    for (int i = 0; i < q->fold.n; i++)
        if (a->start < q->fold.cut[i].to - slack && a->end > q->fold.cut[i].from + slack)
            return false;
    return true;
}

static int commas(const char *s) {
    int n = 0;
    for (; *s; s++) n += *s == ',';
    return n;
}
static bool on_stage(const PipePen *q, const TraceAction *a) {
    return a->stage >= 0 && a->stage < q->p.t->stages;
}
/* The height of an action's cell: two that run together share it. */
static double height_of(const PipePen *q, const PipeRow *r, int i) {
    return r->a[i].joined || (i && r->a[i - 1].joined) ? q->cell / 2 : q->cell;
}
/* The cell of an action of a row whose top is at y. */
static Area cell_of(const PipePen *q, const PipeRow *r, int i, double y) {
    double x = at_start(q, r->a[i].start), h = height_of(q, r, i);
    return (Area){x, i && r->a[i - 1].joined ? y + h : y, at(q, r->a[i].end) - x, h};
}
/* Has the cell of an action room for its number? */
static bool number_fits(const PipePen *q, const TraceAction *a, Area box) {
    const char *word = arena_printf(q->p.a, "%d", a->microbatch);
    return q->each && box.h >= (box.h < q->cell ? NUMBER + 4 : NUMBER) &&
           scene_width(q->s, NUMBER, BOLD, word) + 2 < box.w;
}
/* Which cells have numbers: those of a kind on a stage all, or none where one of them is too small.
 * Returns how many of those that there are have none. */
static int find_numbered(PipePen *q) {
    int n = q->p.t->stages * ACTION_LOOKS + 1, without = 0;
    bool *none = ARENA_ARRAY(q->p.a, bool, n);
    for (q->line = 0; q->line < q->lines.n; q->line++)
        for (int k = 0; k < q->p.n; k++)
            for (int i = 0; i < q->p.row[k].n; i++) {
                const TraceAction *a = &q->p.row[k].a[i];
                if (is_whole(q, a) && on_stage(q, a))
                    none[a->stage * ACTION_LOOKS + action_look(a)] |=
                        !number_fits(q, a, cell_of(q, &q->p.row[k], i, 0));
            }
    q->line = 0;
    q->numbered = ARENA_ARRAY(q->p.a, bool, n);
    for (int i = 0; i < n; i++) q->numbered[i] = !none[i], without += none[i];
    return without;
}
/* Which of the rank's stages a cell is of: a bar at its edge, for the first one at the left. Of two
 * that run together the lower one has it below. In narrow cells left cannot be told from right. */
static void draw_chunk(PipePen *q, const PipeRow *r, int i, Area box) {
    const TraceAction *a = &r->a[i];
    const bool below = i && r->a[i - 1].joined;
    int before = 0, n = 1 + commas(r->stages);
    const char *at = r->stages;
    for (int g; sscanf(at, "%d", &g) == 1 && g != a->stage; before++) {
        at = strchr(at, ',');
        if (!at++) return;
    }
    double edge = fmin(2, box.w / 10), w = (box.w - 2 * edge) / n,
           line = q->fine              ? 1.5
                  : box.h < 2 * NUMBER ? 2
                                       : 3;
    if (n > 1 && !q->bare) /* clear of the next cell's */
        scene_rect(q->s,
                   (Area){box.x + edge + w * before, below ? box.y + box.h - line : box.y, w, line},
                   0, (Look){ROLE_INK, ROLE_NONE, 0})
            ->ground = true;
}
static void draw_cell(PipePen *q, const PipeRow *r, int i, Area box) {
    const TraceAction *a = &r->a[i];
    int k = action_look(a);
    const char *word = arena_printf(q->p.a, "%d", a->microbatch);
    scene_begin(q->s, "compute", arena_printf(q->p.a, "%saction-%d-%d", q->tag, a->rank, i),
                arena_printf(q->p.a, "%s of micro-batch %d on stage %d, rank %d: %s",
                             action_looks[k].what, a->microbatch, a->stage, a->rank,
                             q->p.stuck ? "done"
                                        : arena_printf(q->p.a, "%s from %s on",
                                                       time_text(a->end - a->start, q->p.a),
                                                       time_text(a->start, q->p.a))));
    scene_same(q->s, arena_printf(q->p.a, "micro-batch %d", a->microbatch));
    /* of narrow cells dark lines would be most of what is seen, of narrower ones any; print has
     * white cells, so that there is some line */
    Role line = box.w < 2 ? ROLE_NONE : q->fine ? ROLE_GRID : ROLE_COMPUTE_LINE;
    scene_rect(q->s, box, 0, (Look){action_looks[k].fill, line, 0.75});
    draw_chunk(q, r, i, box);
    const double size = NUMBER;
    bool own = is_whole(q, a) || (q->lines.n > 1 && number_fits(q, a, box)); /* or of a piece */
    if (on_stage(q, a) && own && q->numbered[a->stage * ACTION_LOOKS + k])
        scene_text(q->s, box.x + box.w / 2, box.y + box.h / 2 + size * 0.36,
                   (TextLook){ALIGN_MIDDLE, size, BOLD, action_looks[k].text}, word);
    scene_end(q->s);
}
/* Narrow cells have pale lines or none: one frame around those that touch says where a rank is
 * busy, where fills alone do not (print: a forward is white). */
static void draw_busy(PipePen *q, const PipeRow *r, double y) {
    double from = 0, to = -1;
    for (int i = 0; i <= r->n; i++) {
        const Area box = i < r->n ? cell_of(q, r, i, y) : (Area){0};
        if (i < r->n && (box.w <= 0 || !pipe_in_sight(&q->fold, &r->a[i]))) continue;
        if (i < r->n && to >= from && box.x <= to + 0.5) {
            to = fmax(to, box.x + box.w);
            continue;
        }
        if (to > from)
            scene_rect(q->s, (Area){from, y, to - from, q->cell}, 0,
                       (Look){ROLE_NONE, ROLE_COMPUTE_LINE, 0.75});
        from = box.x, to = box.x + box.w;
    }
}
static void draw_actions(PipePen *q, const PipeRow *r, double y) {
    for (int i = 0; i < r->n; i++) {
        Area box = cell_of(q, r, i, y);
        scene_at(q->s, appears(q, r->a[i].start));
        if (box.w > (is_whole(q, &r->a[i]) ? 0 : 1.5) && pipe_in_sight(&q->fold, &r->a[i]))
            draw_cell(q, r, i, box);
    }
    scene_at(q->s, appears(q, q->span));
    if (!q->fine) return;
    const int rank = (int)(r - q->p.row);
    scene_begin(q->s, "busy", arena_printf(q->p.a, "%sbusy-%d", q->tag, rank),
                arena_printf(q->p.a, "rank %d computes", rank));
    draw_busy(q, r, y);
    scene_end(q->s);
}
/* Too many to be told apart: neighbours of one kind are one, with how many there are. */
static void draw_runs(PipePen *q, const PipeRow *r, double y) {
    for (int i = 0; i < r->n;) {
        int n = 1, k = action_look(&r->a[i]);
        while (i + n < r->n && action_look(&r->a[i + n]) == k) n++;
        double x = at(q, r->a[i].start), w = at(q, r->a[i + n - 1].end) - x;
        scene_at(q->s, appears(q, r->a[i].start));
        scene_begin(q->s, "compute", arena_printf(q->p.a, "%srun-%d-%d", q->tag, r->a[i].rank, i),
                    arena_printf(q->p.a, "rank %d: %d times %s, from micro-batch %d on",
                                 r->a[i].rank, n, action_looks[k].what, r->a[i].microbatch));
        if (w > 0)
            scene_rect(q->s, (Area){x, y, w, q->cell}, 0,
                       (Look){action_looks[k].fill, ROLE_NONE, 0});
        scene_end(q->s);
        i += n;
    }
}
/* The first action that a rank cannot begin, behind what it has done. */
static void draw_stuck(PipePen *q, const PipeRow *r, double y) {
    const TraceStuck *b = r->stuck;
    double from = r->n ? r->a[r->n - 1].end : 0, x = at(q, from), w = at(q, from + q->p.unit) - x;
    for (int i = 0; i < r->n; i++) /* of two that run together the later end */
        if (r->a[i].end > from)
            from = r->a[i].end, x = at(q, from), w = at(q, from + q->p.unit) - x;
    const char *word = b->action ? b->action : "crossed";
    scene_begin(q->s, "stuck", arena_printf(q->p.a, "%sstuck-%d", q->tag, b->rank),
                b->action ? arena_printf(q->p.a, "rank %d stands before %s and waits for %s",
                                         b->rank, b->action, b->waits)
                          : b->waits);
    scene_rect(q->s, (Area){x + 1, y + 1, w - 2, q->cell - 2}, 0,
               (Look){ROLE_PAPER, ROLE_FAIL, q->cell < 2 * NUMBER ? 1 : 2});
    if (scene_width(q->s, NUMBER, BOLD, word) + 4 < w)
        scene_text(q->s, x + w / 2, y + q->cell / 2 + NUMBER * 0.36,
                   (TextLook){ALIGN_MIDDLE, NUMBER, BOLD, ROLE_FAIL}, word);
    scene_end(q->s);
}
/* The row's ground: idle where no cell lies over it. */
static void draw_idle(PipePen *q, const PipeRow *r, int row, double y) {
    double from = 0;
    scene_begin(q->s, "idle", arena_printf(q->p.a, "%sidle-%d", q->tag, row),
                q->p.stuck ? arena_printf(q->p.a, "rank %d computes nothing here", row)
                           : arena_printf(q->p.a, "rank %d is idle for %s of %s", row,
                                          time_text(q->p.end - r->busy, q->p.a),
                                          time_text(q->p.end, q->p.a)));
    for (int i = 0; i <= r->n; i++) {
        double to = i < r->n ? r->a[i].start : q->p.end;
        for (int k = 0; k <= q->fold.n; k++) { /* what lies between breaks */
            double begin = fmax(from, k ? q->fold.cut[k - 1].to : 0),
                   end = fmin(to, k < q->fold.n ? q->fold.cut[k].from : to), x = at_start(q, begin),
                   w = at(q, end) - x;
            scene_at(q->s, appears(q, end));
            if (end > begin && w > LEAST_IDLE)
                scene_hatch(q->s, (Area){x, y, w, q->cell}, ROLE_FAINT, 6, 0.75)->ground = true;
        }
        if (i < r->n && r->a[i].end > from) from = r->a[i].end;
    }
    scene_end(q->s);
}
/* A step line: how many pairs are in flight, scaled to the most of any rank. */
static void draw_flight(PipePen *q, const PipeRow *r, int row, double y) {
    Pt *pt = ARENA_ARRAY(q->p.a, Pt, 2 * r->n + 4);
    int n = 0, live = 0;
    const double unit = (q->step - 3) / (double)(q->most ? q->most : 1), base = y + q->step,
                 from = q->lines.at[q->line], to = q->lines.at[q->line + 1];
    pt[n++] = (Pt){q->x, base};
    for (int i = 0; i < r->n; i++) {
        const TraceAction *a = &r->a[i];
        int next = action_flight(a, live);
        double then = *a->kind == 'F' ? a->start : a->end, when = at(q, then);
        const PipeCut *cut = pipe_cut_at(&q->fold, then);
        if (next == live) continue;
        if (then < from) { /* on a line before */
            live = next, pt[0].y = base - live * unit;
            continue;
        }
        if (then > to) break;
        if (cut) { /* a slope over the break */
            double x = at(q, cut->from), y1 = base - next * unit;
            if (pt[n - 1].x < x) pt[n++] = (Pt){x, base - live * unit};
            if (pt[n - 1].x > x + 1) pt[n - 1].y = y1;
            else pt[n++] = (Pt){x + BREAK, y1};
            live = next;
            continue;
        }
        if (fabs(pt[n - 1].x - when) > 0.5) pt[n++] = (Pt){when, base - live * unit};
        else n--; /* one ends as another begins: no step */
        pt[n++] = (Pt){when, base - next * unit};
        live = next;
    }
    pt[n++] = (Pt){at(q, q->p.end), base - live * unit};
    scene_begin(q->s, "flight", arena_printf(q->p.a, "%sflight-%d", q->tag, row),
                arena_printf(q->p.a,
                             "in flight on rank %d: at most %d pairs of stage and "
                             "micro-batch",
                             row, r->flight));
    scene_line(q->s, pt, n, ROLE_SECOND, 1);
    scene_end(q->s);
}

/* ---- rows ---- */
static double row_height(const PipePen *q) { return q->cell + q->step + q->gap; }
/* Rows that have a place on a line: ranks, and one for those that are left out. */
static int places(const PipePen *q, const Pipe *p) { return q->ends ? 2 * q->ends + 1 : p->n; }
/* The place of a rank; of one that is left out that of all of them. */
static int place_of(const PipePen *q, int rank) {
    if (!q->ends || rank < q->ends) return rank;
    return rank < q->p.n - q->ends ? q->ends : rank - (q->p.n - 2 * q->ends - 1);
}
static bool has_row(const PipePen *q, int rank) { return !q->ends || place_of(q, rank) != q->ends; }
/* At both ends of row k, whose cells have their middle at `mid`: who it is, and what it has. */
static void draw_words(PipePen *q, const PipeRow *r, int k, double mid) {
    const char *axis = q->p.t->schedule_axis ? q->p.t->schedule_axis : "rank";
    const char *who = arena_printf(q->p.a, "%s %d", axis, k),
               *has =
                   arena_printf(q->p.a, "stage%s %s", strchr(r->stages, ',') ? "s" : "", r->stages),
               *idle = q->p.stuck ? !r->stuck ? "ends"
                                    : r->stuck->action
                                        ? arena_printf(q->p.a, "before %s", r->stuck->action)
                                        : "crossed"
                                  : arena_printf(q->p.a, "idle %s", pipe_idle(&q->p, r)),
               *most = r->flight ? arena_printf(q->p.a, "in flight %d", r->flight) : NULL;
    const TextLook left = {ALIGN_RIGHT, 12.5, SEMIBOLD, ROLE_INK},
                   below = {ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
                   right = {ALIGN_LEFT, 12, SEMIBOLD, r->stuck ? ROLE_FAIL : ROLE_INK},
                   beside = {ALIGN_LEFT, 12, REGULAR, ROLE_SECOND};
    const int last = appears(q, q->span);
    double x0 = q->x - 10, x1 = (q->lines.n > 1 ? at(q, q->p.end) : q->x + q->w) + 10;
    if (q->one_line) { /* the subtitle says what the second numbers are */
        bool word = q->strip && !strchr(r->stages, ','); /* there no subtitle says what they are */
        scene_at(q->s, 0);
        scene_text(q->s, x0, mid + 4, left,
                   arena_printf(q->p.a, "%s: %s%s", who, word ? "stage " : "", r->stages));
        scene_at(q->s, last);
        scene_text(q->s, x1, mid + 4, right,
                   r->flight && !q->strip ? arena_printf(q->p.a, "%s, %d", idle, r->flight) : idle);
        return;
    }
    scene_at(q->s, 0);
    scene_text(q->s, x0, mid + 1, left, who);
    scene_text(q->s, x0, mid + 16, below, has);
    scene_at(q->s, last);
    if (q->line + 1 < q->lines.n) return; /* what is of all lines stands behind the last */
    scene_text(q->s, x1, mid + 1, right, idle);
    if (most) scene_text(q->s, x1, mid + 16, beside, most);
}
static void draw_row(PipePen *q, int k, double y) {
    const PipeRow *r = &q->p.row[k];
    const char *axis = q->p.t->schedule_axis ? q->p.t->schedule_axis : "rank";
    draw_idle(q, r, k, y);
    if (q->each) draw_actions(q, r, y);
    else draw_runs(q, r, y);
    scene_at(q->s, appears(q, q->span));
    if (r->stuck) draw_stuck(q, r, y);
    if (q->p.t->pass != PASS_FORWARD && !q->strip) draw_flight(q, r, k, y + q->cell);
    scene_begin(q->s, "rank", arena_printf(q->p.a, "%srow-%d", q->tag, k),
                arena_printf(q->p.a, "%s %d has stage%s %s; %s", axis, k,
                             strchr(r->stages, ',') ? "s" : "", r->stages,
                             q->p.stuck ? r->stuck ? "stands still" : "comes to its end"
                                        : arena_printf(q->p.a, "idle %s", pipe_idle(&q->p, r))));
    draw_words(q, r, k, y + q->cell / 2);
    scene_end(q->s);
    scene_at(q->s, 0);
}
/* Is `x` clear of the numbers of all cells of a row? */
static bool clear_of(const PipePen *q, const PipeRow *r, double x) {
    for (int i = 0; i < r->n; i++) {
        double mid = (at(q, r->a[i].start) + at(q, r->a[i].end)) / 2;
        if (fabs(x - mid) < 12 && x > at(q, r->a[i].start) + 1 && x < at(q, r->a[i].end) - 1)
            return false;
    }
    return true;
}
/* Where between x0 and x1 a line goes through the rows between `from` and `to`: beside numbers. */
static double through(const PipePen *q, int from, int to, double x0, double x1) {
    enum { TRIES = 64 };
    int top = (from < to ? from : to) + 1, end = from < to ? to : from;
    for (int k = 0; k <= TRIES; k++) {
        double x = x0 + (x1 - x0) * k / TRIES;
        bool clear = true;
        for (int r = top; r < end; r++) clear &= !has_row(q, r) || clear_of(q, &q->p.row[r], x);
        if (clear) return x;
    }
    return x0;
}
/* The forward and input-gradient actions of micro-batch LIFE, in the order of time. */
static const TraceAction **life_of(const PipePen *q, int *n) {
    const TraceAction **a = ARENA_ARRAY(q->p.a, const TraceAction *, q->p.t->n_actions + 1);
    *n = 0;
    for (int i = 0; i < q->p.t->n_actions; i++) {
        const TraceAction *x = &q->p.t->actions[i];
        if (x->microbatch != LIFE || *x->kind == 'W') continue;
        int k = (*n)++;
        for (; k > 0 && a[k - 1]->start > x->start; k--) a[k] = a[k - 1];
        a[k] = x;
    }
    return a;
}
static Area life_cell(const PipePen *q, const TraceAction *a, double y) {
    const PipeRow *r = &q->p.row[a->rank];
    return cell_of(q, r, (int)(a - r->a), y + place_of(q, a->rank) * row_height(q));
}
/* From the cell of one action to that of the next: along the gaps between rows, beside numbers. */
static void draw_hop(PipePen *q, const TraceAction *from, const TraceAction *to, double y) {
    Area one = life_cell(q, from, y), two = life_cell(q, to, y);
    bool down = to->rank > from->rank;
    double row = y + place_of(q, from->rank) * row_height(q),
           next = y + place_of(q, to->rank) * row_height(q), gap = q->gap / 2, x1 = one.x + one.w,
           x2 = two.x, lane = down ? row + row_height(q) - gap : row - gap,
           last = down ? next - gap : next + row_height(q) - gap;
    if (to->rank == from->rank) {
        double under = one.y + one.h + 1; /* the numbers of a low row */
        Pt pt[] = {{x1, under}, {x2, under}};
        if (x2 > x1 + 1) scene_line(q->s, pt, 2, ROLE_COLL_LINE, LIFE_LINE);
        return;
    }
    double x = through(q, from->rank, to->rank, x1, x2);
    Pt pt[6] = {{x1, down ? one.y + one.h : one.y}, {x1, lane}};
    int n = 2;
    if (fabs(lane - last) > 1) pt[n++] = (Pt){x, lane}, pt[n++] = (Pt){x, last};
    pt[n++] = (Pt){x2, last};
    pt[n++] = (Pt){x2, down ? two.y : two.y + two.h};
    scene_line(q->s, pt, n, ROLE_COLL_LINE, LIFE_LINE)->bend = 3;
}
/* The same where the two stand on different lines: out of one at its end, into the other at its
 * beginning. */
static void draw_hop_over(PipePen *q, const TraceAction *from, const TraceAction *to, double y,
                          bool leaves) {
    Area box = life_cell(q, leaves ? from : to, y);
    const bool stays = to->rank == from->rank, above = leaves != (to->rank > from->rank);
    const double edge = leaves ? at(q, q->lines.at[q->line + 1]) : q->x,
                 x = leaves ? box.x + box.w : box.x, side = above ? box.y : box.y + box.h,
                 row = y + place_of(q, (leaves ? from : to)->rank) * row_height(q),
                 lane = stays   ? box.y + box.h + 1
                        : above ? row - q->gap / 2
                                : row + row_height(q) - q->gap / 2;
    Pt pt[] = {{x, stays ? lane : side}, {x, lane}, {edge, lane}};
    if (fabs(edge - x) > 1)
        scene_line(q->s, stays ? pt + 1 : pt, stays ? 2 : 3, ROLE_COLL_LINE, LIFE_LINE)->bend = 3;
}
/* Draws what of the way from one action to the next is on the line. */
static void draw_step(PipePen *q, const TraceAction *from, const TraceAction *to, double y) {
    bool whole,
        leaves =
            from->end <= q->lines.at[q->line + 1] && pipe_on_line(&q->lines, q->line, from, &whole),
        enters = to->start >= q->lines.at[q->line] && pipe_on_line(&q->lines, q->line, to, &whole);
    if (q->lines.n == 1 || (leaves && enters)) draw_hop(q, from, to, y);
    else if (leaves || enters) draw_hop_over(q, from, to, y, leaves);
}
/* Its cells are framed, and joined by lines. */
static void draw_life(PipePen *q, double y) {
    int n;
    bool whole;
    const TraceAction **a = life_of(q, &n);
    scene_begin(
        q->s, "life", arena_printf(q->p.a, "%slife", q->tag),
        arena_printf(q->p.a, "the way of micro-batch %d through the stages and back", LIFE));
    for (int i = 0; i < n; i++) {
        Area box = life_cell(q, a[i], y);
        bool here =
            q->lines.n == 1 ? is_whole(q, a[i]) : pipe_on_line(&q->lines, q->line, a[i], &whole);
        scene_at(q->s, appears(q, a[i]->start));
        if (here) scene_rect(q->s, box, 0, (Look){ROLE_NONE, ROLE_COLL_LINE, 2});
        if (i + 1 < n) scene_at(q->s, appears(q, a[i + 1]->start));
        if (i + 1 < n && (q->lines.n > 1 || (here && is_whole(q, a[i + 1]))))
            draw_step(q, a[i], a[i + 1], y);
    }
    scene_end(q->s);
    scene_at(q->s, 0);
}
/* Has any rank several stages? */
static bool chunks(const PipePen *q) {
    for (int k = q->g.from; k < q->g.to; k++)
        for (int i = 0; i < q->all[k].n; i++)
            if (strchr(q->all[k].row[i].stages, ',')) return true;
    return false;
}
static void draw_chunk_key(PipePen *q, double x, double y) {
    scene_rect(q->s, (Area){x, y, 16, 12}, 0, (Look){ROLE_NONE, ROLE_COMPUTE_LINE, 0.75});
    scene_rect(q->s, (Area){x, y, 8, 3}, 0, (Look){ROLE_INK, ROLE_NONE, 0})->ground = true;
}
static void draw_break_key(PipePen *q, double x, double y) {
    for (int side = 0; side < 2; side++) {
        double left = x + 3 + 7 * side;
        Pt pt[] = {{left, y}, {left + 3, y + 4}, {left, y + 8}, {left + 3, y + 12}};
        scene_line(q->s, pt, 4, ROLE_SECOND, 1.25);
    }
}
/* Schedules of the page that come to no end; *first: one of them. */
static int stuck_of(const PipePen *q, const Pipe **first) {
    int n = 0;
    for (int k = q->g.from; k < q->g.to; k++)
        if (q->all[k].stuck && !n++ && first) *first = &q->all[k];
    return n;
}
static const char *idle_word(const PipePen *q) {
    return stuck_of(q, NULL) ? "idle; red: where a rank stands still" : "idle";
}
static double draw_legend(PipePen *q, double y) {
    double x = presets[q->preset].margin, end = x + presets[q->preset].w - 2 * x;
    bool used[ACTION_LOOKS] = {0};
    for (int k = q->g.from; k < q->g.to; k++)
        for (int i = 0; i < q->all[k].t->n_actions; i++)
            used[action_look(&q->all[k].t->actions[i])] = true;
    scene_begin(q->s, "legend", "pipe-legend", NULL);
    for (int k = 0; k <= ACTION_LOOKS + 3; k++) {
        const char *word =
            k < ACTION_LOOKS
                ? arena_printf(q->p.a, "%c %s", action_looks[k].kind, action_looks[k].what)
            : k == ACTION_LOOKS     ? idle_word(q)
            : k == ACTION_LOOKS + 1 ? arena_printf(q->p.a, "the way of micro-batch %d", LIFE)
            : k == ACTION_LOOKS + 2
                ? "bar at an edge: which of the rank's stages, the first at the left"
                : "\u00d7 n: so many periods like those at both sides are not drawn";
        if (k < ACTION_LOOKS && !used[k]) continue;
        if (k > ACTION_LOOKS && !q->each) break;
        if (k == ACTION_LOOKS + 2 && (q->bare || !chunks(q))) continue;
        if (k == ACTION_LOOKS + 3 && !q->fold.n) break;
        double w = 24 + scene_width(q->s, 12, REGULAR, word) + 22;
        if (x + w > end) x = presets[q->preset].margin, y += 20;
        if (k < ACTION_LOOKS)
            scene_rect(q->s, (Area){x, y, 16, 12}, 0,
                       (Look){action_looks[k].fill, ROLE_COMPUTE_LINE, 0.75});
        else if (k == ACTION_LOOKS) scene_hatch(q->s, (Area){x, y, 16, 12}, ROLE_FAINT, 6, 0.75);
        else if (k == ACTION_LOOKS + 1)
            scene_rect(q->s, (Area){x, y, 16, 12}, 0, (Look){ROLE_NONE, ROLE_COLL_LINE, 2});
        else if (k == ACTION_LOOKS + 2) draw_chunk_key(q, x, y);
        else draw_break_key(q, x, y);
        scene_text(q->s, x + 22, y + 10.5, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, word);
        x += w;
    }
    scene_end(q->s);
    return y + 24;
}

/* ---- what is left out ---- */
/* In place of the ranks in the middle: how many, and between which bounds their numbers are. */
static void draw_others(PipePen *q, double y) {
    int last = q->p.n - q->ends - 1, least = q->p.row[q->ends].flight, most = least;
    double low = 1, high = 0;
    for (int k = q->ends; k <= last; k++) {
        const PipeRow *r = &q->p.row[k];
        double idle = 1 - r->busy / q->p.end;
        low = fmin(low, idle), high = fmax(high, idle);
        least = r->flight < least ? r->flight : least, most = r->flight > most ? r->flight : most;
    }
    const char *axis = q->p.t->schedule_axis ? q->p.t->schedule_axis : "rank",
               *who = arena_printf(q->p.a, "%s %d to %d", axis, q->ends, last),
               *idle = high - low < 0.0005
                           ? arena_printf(q->p.a, "%.1f %%", 100 * low)
                           : arena_printf(q->p.a, "%.1f\u2013%.1f %%", 100 * low, 100 * high),
               *words = q->one_line ? "" : "in flight ",
               *flight = q->strip        ? ""
                         : least == most ? arena_printf(q->p.a, "%s%d", words, most)
                                         : arena_printf(q->p.a, "%s%d\u2013%d", words, least, most);
    double mid = y + q->cell / 2 + 4, x1 = q->x + q->w + 10;
    scene_begin(q->s, "rank", arena_printf(q->p.a, "%srows", q->tag),
                arena_printf(q->p.a,
                             "%s are not drawn: %d ranks, idle %s, at most %d to %d pairs of stage "
                             "and micro-batch in flight",
                             who, last - q->ends + 1, idle, least, most));
    scene_text(q->s, q->x - 10, mid - (q->one_line ? 0 : 4),
               (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND}, who);
    if (!q->one_line)
        scene_text(q->s, q->x - 10, mid + 11, (TextLook){ALIGN_RIGHT, 12, REGULAR, ROLE_SECOND},
                   "not drawn");
    scene_text(q->s, x1, mid - (q->one_line ? 0 : 4),
               (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
               q->one_line && !q->strip ? arena_printf(q->p.a, "%s, %s", idle, flight)
                                        : arena_printf(q->p.a, "idle %s", idle));
    if (!q->one_line)
        scene_text(q->s, x1, mid + 11, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, flight);
    scene_end(q->s);
}
/* Two jagged lines from y0 to y1, and above them how many periods are missing between. */
static void draw_break(PipePen *q, int i, double y0, double y1) {
    enum { TOOTH = 8, MOST = 1024 };
    const PipeCut *c = &q->fold.cut[i];
    double x = at(q, c->from), mid = x + BREAK / 2.0;
    const char *each = time_text((c->to - c->from) / c->periods, q->p.a);
    scene_begin(q->s, "break", arena_printf(q->p.a, "%sbreak-%d", q->tag, i),
                arena_printf(q->p.a,
                             "from %s to %s: %d periods of %s, each like the one before and the "
                             "one behind, are not drawn",
                             time_text(c->from, q->p.a), time_text(c->to, q->p.a), c->periods,
                             each));
    for (int side = -1; side <= 1; side += 2) {
        Pt pt[MOST];
        int n = 0;
        for (double y = y0; n < MOST && y < y1 + TOOTH; y += TOOTH, n++)
            pt[n] = (Pt){mid + side * 4 + (n % 2 ? 2 : -2), fmin(y, y1)};
        scene_line(q->s, pt, n, ROLE_SECOND, 1.25);
    }
    scene_text(q->s, mid, y0 - 5, (TextLook){ALIGN_MIDDLE, 12, SEMIBOLD, ROLE_INK},
               arena_printf(q->p.a, "\u00d7 %d", c->periods));
    scene_end(q->s);
}
static void draw_breaks(PipePen *q, double y0, double y1) {
    for (int i = 0; i < q->fold.n; i++) draw_break(q, i, y0, y1);
}

/* ---- the page ---- */
/* 1, 2 or 5 times a power of ten, at least `least`. */
static double round_step(double least) {
    static const double k[] = {1, 2, 5};
    const double base = pow(10, floor(log10(least)));
    for (int i = 0; i < 3; i++)
        if (base * k[i] >= least * (1 - 1e-9)) return base * k[i];
    return 10 * base;
}
/* Is the time drawn, and not inside a break? */
static bool in_sight(const PipeFold *f, double t) {
    for (int i = 0; i < f->n; i++)
        if (t > f->cut[i].from && t < f->cut[i].to) return false;
    return true;
}
/* Times under the rows of a line. What comes to no end has none. */
static double draw_axis(PipePen *q, double y) {
    static const struct {
        const char *name;
        double seconds;
    } unit[] = {{"s", 1}, {"ms", 1e-3}, {"µs", 1e-6}};
    const double begin = q->lines.at[q->line], end = fmin(q->lines.at[q->line + 1], q->span),
                 scale = (q->w - q->fold.n * BREAK) / (q->lines.longest - q->fold.hidden),
                 step = round_step(TICK_ROOM / scale);
    int u = 0;
    while (u < 2 && q->span < unit[u].seconds) u++;
    double free = -1e9; /* from where on there is room for a word */
    scene_begin(q->s, "axis", arena_printf(q->p.a, "%saxis-%d", q->tag, q->line), NULL);
    for (double i = ceil(begin / step - 1e-9); i * step <= end + 1e-9 * step; i++) {
        const double t = i * step, x = at(q, t);
        const char *word =
            i == 0 ? "0" : arena_printf(q->p.a, "%.6g %s", t / unit[u].seconds, unit[u].name);
        const double half = scene_width(q->s, 12, REGULAR, word) / 2;
        if (!in_sight(&q->fold, t) || x - half < free) continue;
        scene_segment(q->s, (Pt){x, y}, (Pt){x, y + 4}, ROLE_TICK, 1);
        scene_text(q->s, x, y + 16, (TextLook){ALIGN_MIDDLE, 12, REGULAR, ROLE_TICK}, word);
        free = x + half + 12;
    }
    scene_end(q->s);
    return y + AXIS;
}
/* The rows of a line; above one that is not the first from when on. */
static double draw_line(PipePen *q, double y) {
    if (q->line) {
        scene_begin(q->s, "line", arena_printf(q->p.a, "%sline-%d", q->tag, q->line), NULL);
        scene_textf(q->s, q->x, y + 12, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                    "from %s on", time_text(q->lines.at[q->line], q->p.a));
        scene_end(q->s);
        y += LINE_TEXT;
    }
    double end = y + places(q, &q->p) * row_height(q);
    for (int k = 0; k < q->p.n; k++)
        if (has_row(q, k)) draw_row(q, k, y + place_of(q, k) * row_height(q));
    if (q->ends) draw_others(q, y + q->ends * row_height(q));
    draw_breaks(q, y, end - q->gap);
    if (q->each) draw_life(q, y);
    return end;
}
/* All schedules of a page are on one axis, under the last of them. */
static bool has_axis(const PipePen *q, int which) {
    return !q->strip && !q->no_axis && which == q->g.to - 1 && !q->p.stuck;
}
/* How wide the shortest cell is. */
static double narrowest(const PipePen *q) {
    return shortest(q) / (q->lines.longest - q->fold.hidden) * (q->w - q->fold.n * BREAK);
}
/* One schedule: among others it has its name above its rows. */
static double draw_pipe(PipePen *q, int which, double y) {
    q->p = q->all[which];
    q->tag = which ? arena_printf(q->p.a, "s%d-", which) : "";
    q->fine = narrowest(q) < NARROW_CELL, q->bare = narrowest(q) < BARE_CELL;
    q->tick = fmax(shortest(q), q->span / BUILD);
    find_numbered(q);
    if (q->n_all > 1) {
        const TextLook look = {ALIGN_LEFT, 13, SEMIBOLD, q->p.stuck ? ROLE_FAIL : ROLE_INK};
        const double w = scene_text(q->s, q->x, y + 12, look,
                                    q->p.stuck ? pipe_title(&q->p) : pipe_cell(&q->p, 0));
        scene_at(q->s, appears(q, q->span));
        if (!q->p.stuck)
            scene_text(
                q->s, q->x + w + 12, y + 12, look,
                arena_printf(q->p.a, "%s, %s idle", pipe_cell(&q->p, 1), pipe_cell(&q->p, 2)));
        scene_at(q->s, 0);
        y += HEADING;
    }
    if (q->fold.n) y += BREAK_TEXT;
    for (q->line = 0; q->line < q->lines.n; q->line++) {
        y = draw_line(q, y);
        if (has_axis(q, which))
            y = draw_axis(q, y - q->gap + 2) + (q->line + 1 < q->lines.n ? 10 : 4);
    }
    q->line = 0;
    return y;
}
static double column_width(const PipePen *q, int col) {
    double wide = scene_width(q->s, 12, SEMIBOLD, pipe_columns[col]);
    for (int k = 0; k < q->n_all; k++)
        wide = fmax(wide, scene_width(q->s, 12, REGULAR, pipe_cell(&q->all[k], col)));
    return wide;
}
/* Returns the x behind it. */
static double draw_column(PipePen *q, int col, double x, double y) {
    double wide = column_width(q, col);
    bool left = col == 0 || col == 3; /* words, and a form */
    Align align = left ? ALIGN_LEFT : ALIGN_RIGHT;
    double at = left ? x : x + wide;
    scene_text(q->s, at, y + 12, (TextLook){align, 12, SEMIBOLD, ROLE_INK}, pipe_columns[col]);
    for (int k = q->g.from; k < q->g.to; k++)
        scene_text(q->s, at, y + 12 + LINE * (k - q->g.from + 1),
                   (TextLook){align, 12, REGULAR, ROLE_INK}, pipe_cell(&q->all[k], col));
    return x + wide + 18;
}
/* All in numbers: a row for each. What has no room at the right stands below, with the names again.
 */
static double draw_table(PipePen *q, double y) {
    double m = presets[q->preset].margin, end = presets[q->preset].w - m,
           high = LINE * (q->g.to - q->g.from + 1) + 10;
    double x = draw_column(q, 0, m, y);
    for (int col = 1; col < PIPE_COLUMNS; col++) {
        if (x + column_width(q, col) > end) {
            y += high;
            x = draw_column(q, 0, m, y);
        }
        x = draw_column(q, col, x, y);
    }
    return y + high;
}
/* "gpipe and zb-h1": those that come to an end at `at`, as it is told; with NULL those that do not.
 */
static const char *names_of(const PipePen *q, const char *at, int *found) {
    Str names = str_new(q->p.a);
    int n = 0, left = 0;
    for (int pass = 0; pass < 2; pass++)
        for (int k = 0; k < q->n_all; k++) {
            const Pipe *p = &q->all[k];
            if (at ? p->stuck || strcmp(pipe_cell(p, 1), at) != 0 : !p->stuck) continue;
            if (!pass) left++;
            else str_addf(&names, "%s%s", n++ ? n == left ? " and " : ", " : "", pipe_cell(p, 0));
        }
    *found = left;
    return names.s;
}
/* Who ends when. */
static const char *ends_of(const PipePen *q) {
    const Pipe *best = NULL;
    for (int k = 0; k < q->n_all; k++)
        if (!q->all[k].stuck && (!best || q->all[k].end < best->end)) best = &q->all[k];
    if (!best) return "none comes to an end";
    int first, never; /* two may end together, as it is told */
    const char *names = names_of(q, pipe_cell(best, 1), &first), *stuck = names_of(q, NULL, &never),
               *ends = first == q->n_all ? "all end together"
                       : first + never == q->n_all
                           ? arena_printf(q->p.a, "%s end%s%s", names, first > 1 ? "" : "s",
                                          first > 1 ? " together" : "")
                           : arena_printf(q->p.a, "%s end%s first", names, first > 1 ? "" : "s");
    return never
               ? arena_printf(q->p.a, "%s, %s come%s to no end", ends, stuck, never > 1 ? "" : "s")
               : ends;
}
static const char *title_of(const PipePen *q) {
    if (q->n_all == 1) return pipe_title(&q->all[0]);
    int least = q->all[0].parts, most = least;
    for (int k = 1; k < q->n_all; k++) {
        least = q->all[k].parts < least ? q->all[k].parts : least;
        most = q->all[k].parts > most ? q->all[k].parts : most;
    }
    const char *parts = least == most ? arena_printf(q->p.a, "%d", most)
                                      : arena_printf(q->p.a, "%d to %d", least, most);
    return arena_printf(q->p.a, "%d schedules of %s micro-batch%s on one axis of time; %s",
                        q->n_all, parts, most == 1 ? "" : "es", ends_of(q));
}
static const char *foot_of(const PipePen *q) {
    if (q->n_all == 1) return arena_printf(q->c->arena, "%s.", pipe_foot(&q->all[0]));
    Str s = str_new(q->c->arena);
    for (int k = q->g.from; q->g.rows && k < q->g.to; k++)
        if (q->all[k].stuck)
            str_addf(&s, "%s%s: %s", s.n ? ". " : "", pipe_cell(&q->all[k], 0),
                     pipe_foot(&q->all[k]));
    if (q->g.table)
        str_addf(
            &s,
            "%sA rank idles: the mean; by the closed form, with times of one stage, of even stages "
            "and free messages, and what stages that differ and messages add. In flight: "
            "pairs of stage and micro-batch, on the rank that has most. Held at most: beside "
            "what lies at rest. Messages: of a whole step. Weights: parameters at rest, of "
            "the rank that has most",
            s.n ? ". " : "");
    if (s.n) str_add(&s, ".");
    return s.s;
}
/* How long actions are drawn of what has no times. */
static const char *length_words(const PipePen *q) {
    const Pipe *p = NULL;
    int n = stuck_of(q, &p);
    if (!q->g.rows || !n) return "";
    if (p->unit == 1) return "a forward and each half of a backward drawn as long";
    return arena_printf(q->c->arena, "of %s a forward and each half of a backward drawn as long",
                        n > 1 ? "what comes to no end" : pipe_cell(p, 0));
}
/* Whose work is not that of the first: their times are no race. */
static const char *work_words(const PipePen *q) {
    Str s = str_new(q->c->arena);
    for (int k = 1; k < q->n_all; k++) {
        const char *other = pipe_other_work(&q->all[0], &q->all[k]);
        if (*other)
            str_addf(&s, "%s%s is of other work: %s", s.n ? " · " : "", q->all[k].name, other);
    }
    return s.s;
}
/* What the numbers are, and which cells have none. */
static const char *number_words(PipePen *q) {
    int without = 0, all = 0;
    if (!q->g.rows) return "";
    for (int k = q->g.from; k < q->g.to; k++) {
        q->p = q->all[k];
        without += find_numbered(q);
        bool *seen = ARENA_ARRAY(q->p.a, bool, q->p.t->stages *ACTION_LOOKS + 1);
        for (int i = 0; i < q->p.t->n_actions; i++) {
            const TraceAction *a = &q->p.t->actions[i];
            bool *here = on_stage(q, a) && (q->lines.n > 1 || is_whole(q, a))
                             ? &seen[a->stage * ACTION_LOOKS + action_look(a)]
                             : NULL;
            if (here && !*here) *here = true, all++;
        }
    }
    if (!q->each) return "neighbours of one kind are one cell: there are too many to tell apart";
    if (without == all) return "cells are too small for the numbers of micro-batches";
    if (!without) return "number in a cell = micro-batch";
    return "number in a cell = micro-batch, for a stage and kind all or none";
}
/* Ranks of the other axes do what the one of the row does. */
static const char *row_words(const PipePen *q) {
    long long each = (long long)q->c->t->ranks / q->all[0].n;
    return each > 1 ? arena_printf(q->c->arena, "a row = the %lld ranks at one place of %s", each,
                                   q->c->t->schedule_axis)
                    : "";
}
static Scene *draw_page(PipePen *q, double *end) {
    const ViewCall *c = q->c;
    Arena *a = c->arena;
    Scene *s = q->s = figure_new(c, "pipeline", q->preset);
    const char *model = words_model(a, c->t);
    const char *sub[] = {
        model ? model : "",
        words_data(a, c->t),
        words_mesh(a, c->t),
        work_words(q),
        length_words(q),
        q->g.rows ? row_words(q) : "",
        q->g.rows && q->lines.n > 1 ? "time goes on in lines of one scale" : "",
        q->apart ? "at a scale of its own" : "",
        number_words(q),
        !q->g.rows ? ""
        : q->one_line
            ? "after a rank its stages, after its idle time what is in flight: the line below"
            : "line under a row = in flight",
        NULL};
    double m = presets[q->preset].margin, y = figure_head(s, q->preset, title_of(q), sub, 0) + 14;
    y = wrong_banner(s, c, (Band){m, presets[q->preset].w - 2 * m, y});
    for (int k = q->g.from; q->g.rows && k < q->g.to; k++) y = draw_pipe(q, k, y);
    if (q->g.rows) y = draw_legend(q, y + 4);
    scene_at(s, q->g.rows ? appears(q, q->span) : 0);
    if (q->g.table) y = draw_table(q, y);
    *end = figure_foot(s, c, (Band){m, presets[q->preset].w - 2 * m, y}, foot_of(q), NULL);
    scene_at(s, 0);
    s->desc = arena_printf(a, "%s. %s", title_of(q), foot_of(q));
    s->one_scale = q->g.rows && q->g.to - q->g.from < q->n_all;
    figure_page(s, q->preset, *end);
    return s;
}
static int rows_of(const PipePen *q) {
    int n = 0;
    for (int k = q->g.from; q->g.rows && k < q->g.to; k++) n += places(q, &q->all[k]);
    return n * q->lines.n;
}
/* Rows of `room` each. */
static void set_rows(PipePen *q, double room) {
    double k = room / row_height(q);
    q->one_line = room < TWO_LINES;
    q->cell *= k, q->step *= k, q->gap *= k;
    if (q->one_line && q->cell < NUMBER + 0.5) { /* numbers before lines */
        double rest = room - (NUMBER + 0.5);
        q->cell = NUMBER + 0.5, q->step = rest * 0.65, q->gap = rest * 0.35;
    }
}
/* Of a page's height: all but the rows, as it is with rows of the least height. */
static double others_of(const PipePen *q) {
    PipePen least = *q;
    double end;
    if (q->g.rows) set_rows(&least, LEAST);
    draw_page(&least, &end);
    return end - LEAST * rows_of(q);
}
/* On a page of a fixed height few rows are higher, and many lower while their two lines of words
 * have room. */
static void fill_page(PipePen *q, double height) {
    enum { MOST = 150 };
    if (q->g.rows) set_rows(q, fmax(LEAST, fmin(MOST, (height - others_of(q)) / rows_of(q))));
}
static double room_of(const PipePen *q) { return page_room(q->preset); }
static bool fits(PipePen *q, PipePage g) {
    q->g = g;
    return others_of(q) + LEAST * rows_of(q) <= room_of(q);
}
/* So many schedules have room on a page, each: at least one. */
static int most_each(PipePen *q, bool rows, bool table) {
    for (int each = q->n_all; each > 1; each--) {
        bool all = true;
        for (int k = 0; k < q->n_all && all; k += each)
            all = fits(q, (PipePage){k, k + each < q->n_all ? k + each : q->n_all, rows, table});
        if (all) return each;
    }
    return 1;
}
/* Fewest pages, and about as many schedules on each. Returns how many pages it is then. */
static int add_pages(PipePen *q, PipePage g, PipePage *page, int n) {
    int each = most_each(q, g.rows, g.table), pages = (q->n_all + each - 1) / each;
    each = (q->n_all + pages - 1) / pages;
    for (int k = 0; k < q->n_all; k += each, n++) {
        page[n] = g;
        page[n].from = k, page[n].to = k + each < q->n_all ? k + each : q->n_all;
    }
    return n;
}
/* One page, or where that has no room for all rows first those and then the table. */
static int divide(PipePen *q, PipePage *page) {
    const PipePage all = {0, q->n_all, true, q->n_all > 1};
    page[0] = all;
    if (!room_of(q) || q->n_all == 1 || fits(q, all)) return 1;
    int n = add_pages(q, (PipePage){.rows = true}, page, 0);
    return add_pages(q, (PipePage){.table = true}, page, n);
}
/* ---- what has room ---- */
/* The rows that are drawn, of all schedules. */
static PipeFold find_fold(PipePen *q) {
    int n = 0, cap = 0;
    const PipeRow **row = NULL;
    for (int k = 0; k < q->n_all; k++) {
        q->p = q->all[k];
        for (int r = 0; r < q->p.n; r++)
            if (has_row(q, r)) *ARENA_PUSH(q->p.a, row, n, cap) = &q->all[k].row[r];
    }
    return pipe_fold(q->p.a, row, n);
}
static int cells_of(PipePen *q) {
    int n = 0;
    for (int k = 0; k < q->n_all; k++) {
        q->p = q->all[k];
        for (int r = 0; r < q->p.n; r++)
            for (int i = 0; has_row(q, r) && i < q->p.row[r].n; i++)
                n += pipe_in_sight(&q->fold, &q->p.row[r].a[i]);
    }
    return n;
}
/* Leaves out what repeats, then the ranks in the middle of many, where cells are too small to be
 * read. */
static void fold_all(PipePen *q) {
    if (narrowest(q) < LEGIBLE) q->fold = find_fold(q);
    const double all = narrowest(q);
    const PipeFold whole = q->fold;
    bool one = q->n_all == 1 && q->all[0].n > MANY,
         high = one && room_of(q) && q->all[0].n * LEAST + OTHERS > room_of(q);
    for (int ends = 4; one && ends >= 2 && (high || narrowest(q) < LEGIBLE); ends -= 2) {
        q->ends = ends;
        q->fold = (PipeFold){0};
        if (narrowest(q) < LEGIBLE) q->fold = find_fold(q);
        if (high) break;
    }
    if (q->ends && !high && narrowest(q) < WORTH * all) q->ends = 0, q->fold = whole;
    if (q->w < 2 * q->fold.n * BREAK) q->fold = (PipeFold){0};
    q->each = cells_of(q) <= MOST_CELLS;
    if (!q->each) q->fold = (PipeFold){0}, q->ends = 0;
}
/* What is drawn of all schedules of a request, and in which width; false: E0211. */
static bool begin(PipePen *q, const ViewCall *c) {
    q->c = c;
    furniture_preset(c->o->preset, &q->preset);
    if (!(q->n_all = pipe_read_all(c, q->all, &q->span))) return false;
    q->p = q->all[0];
    q->lines = pipe_one_line(q->span);
    double m = presets[q->preset].margin;
    q->x = m + LEFT, q->w = presets[q->preset].w - 2 * m - LEFT - RIGHT;
    for (int i = 0; i < q->n_all; i++) {
        const Pipe *p = &q->all[i];
        for (int k = 0; k < p->n; k++)
            q->most = p->row[k].flight > q->most ? p->row[k].flight : q->most;
        for (int k = 0; k < p->t->n_actions; k++)
            if (p->t->actions[k].joined) q->cell = CELL_OF_TWO; /* two share the height */
    }
    fold_all(q);
    return true;
}
/* Of more ranks than a few those at both ends: the same as where cells are too small. */
static void leave_out(PipePen *q) {
    enum { FEW = 8, ENDS = 3 };
    if (q->p.n <= FEW) return;
    q->ends = ENDS;
    q->fold = (PipeFold){0};
    if (narrowest(q) < LEGIBLE) q->fold = find_fold(q);
    if (q->w < 2 * q->fold.n * BREAK) q->fold = (PipeFold){0};
    q->each = cells_of(q) <= MOST_CELLS;
}
/* What is said at the right of rows stands behind the last line alone: the others go on to the
 * edge of the page, as far as the last leaves room for it. */
static double lines_width(const PipePen *q, double w) {
    const PipeLines *l = &q->lines;
    const double last = l->at[l->n] - l->at[l->n - 1];
    return fmin(w + RIGHT - 10, w * l->longest / last);
}
/* Seconds of all of it. */
static double span_of(const Trace *t) {
    double most = 0;
    for (int i = 0; i < t->n_actions; i++)
        if (isfinite(t->actions[i].end)) most = fmax(most, t->actions[i].end);
    return most;
}
bool pipe_strip_apart(const ViewCall *c) {
    const double own = span_of(c->t), far = c->peer ? span_of(c->peer->t) : 0;
    return own > 0 && far > 0 && fmax(own, far) > TOO_UNLIKE * fmin(own, far);
}
/* The same schedule in n lines, if its page has room for them. */
static bool in_lines(const PipePen *q, int n, PipePen *out) {
    *out = *q;
    if (n == 1) return true;
    if (q->n_all > 1 || q->p.stuck || q->fold.n || q->ends || !q->each) return false;
    if (n * q->p.n > MANY) return false;
    out->lines = pipe_lines(&q->p, n);
    out->w = lines_width(out, q->w);
    out->s = figure_new(q->c, "pipeline", q->preset);
    return !room_of(q) || others_of(out) + TWO_LINES * rows_of(out) <= room_of(q);
}
/* One schedule of few ranks goes on in more lines, where all of its cells have numbers then:
 * returns in how many. */
static int lines_needed(const PipePen *q) {
    PipePen x;
    for (int n = 1; n <= PIPE_LINES && in_lines(q, n, &x); n++) {
        x.s = figure_new(q->c, "pipeline", q->preset);
        if (!find_numbered(&x)) return n;
    }
    return 1;
}
static double px_per_second(const PipePen *q) {
    return (q->w - q->fold.n * BREAK) / (q->lines.longest - q->fold.hidden);
}
/* In as many lines as it needs. Beside another plan's schedule both have as many, if they have the
 * room, and one scale. */
static void break_lines(PipePen *q) {
    PipePen own,
        far = {.preset = PRESET_WIDE, .cell = CELL, .step = STEP, .gap = GAP, .each = true};
    int n = lines_needed(q);
    ViewCall other = q->c->peer ? *q->c->peer : *q->c;
    other.d = diags_new(q->c->arena); /* what it lacks is told where it is drawn */
    other.peer = NULL;
    q->apart = pipe_strip_apart(q->c);
    if (!q->c->peer || q->apart || !begin(&far, &other) || q->p.stuck || far.p.stuck) {
        if (in_lines(q, n, &own)) *q = own;
        return;
    }
    far.g = (PipePage){0, far.n_all, true, far.n_all > 1};
    const int peer = lines_needed(&far), both = n > peer ? n : peer;
    PipePen right;
    if (in_lines(q, both, &own) && in_lines(&far, both, &right)) *q = own, far = right;
    else {
        if (in_lines(q, n, &own)) *q = own;
        if (in_lines(&far, peer, &right)) far = right;
    }
    const double wider = px_per_second(q) / px_per_second(&far);
    if (wider > 1) q->w = (q->w - q->fold.n * BREAK) / wider + q->fold.n * BREAK;
}
/* Beside another plan's schedule the shorter one is as much narrower. */
static void at_one_scale(PipePen *q) {
    const double most = q->c->peer ? fmax(q->span, span_of(q->c->peer->t)) : q->span;
    if (most > 0 && !pipe_strip_apart(q->c)) q->w *= q->span / most;
}
double pipe_strip(const ViewCall *c, Scene *s, double y, double room) {
    enum { LOW = 21, HIGH = 110, LEGEND = 64 };
    PipePen q = {.s = s, .cell = CELL, .step = STEP, .gap = GAP, .each = true, .strip = true};
    if (!begin(&q, c)) return y;
    at_one_scale(&q);
    leave_out(&q);
    q.g = (PipePage){0, 1, true, false};
    bool two = q.cell > CELL;
    double rows = room > 0 ? (room - LEGEND - (q.fold.n ? BREAK_TEXT : 0)) / rows_of(&q)
                  : two    ? CELL_OF_TWO + GAP / 2.0
                           : LOW;
    q.cell = fmin(rows, HIGH) - GAP / 2.0, q.step = 0, q.gap = GAP / 2.0;
    q.one_line = true;
    return draw_legend(&q, draw_pipe(&q, 0, y) + 4);
}
int view_pipeline(const ViewCall *c, Scene **page) {
    PipePen q = {.preset = PRESET_WIDE, .cell = CELL, .step = STEP, .gap = GAP, .each = true};
    if (!begin(&q, c)) return 0;
    PipePage part[2 * VIEW_MAX_BESIDE + 2];
    q.g = (PipePage){0, q.n_all, true, q.n_all > 1};
    break_lines(&q);
    int pages = divide(&q, part);
    for (int k = 0; k < pages; k++) {
        PipePen one = q;
        double room = room_of(&q), end;
        one.g = part[k];
        one.no_axis = room && !fits(&one, part[k]);
        bool high = rows_of(&one) * row_height(&one) + OTHERS > room;
        if (room && (high || q.preset == PRESET_SLIDE)) fill_page(&one, room);
        page[k] = draw_page(&one, &end);
    }
    return pages;
}

/* ---- text ---- */
/* n letters, one for each 1/n of the span: what the rank does in its middle. */
static const char *letters_of(const Pipe *p, const PipeRow *r, int n, double span) {
    char *out = arena_alloc(p->a, (size_t)n + 1);
    for (int k = 0; k < n; k++) {
        double when = span * (k + 0.5) / n;
        out[k] = when < p->end ? '.' : ' ';
        for (int i = 0; i < r->n; i++)
            if (r->a[i].start <= when && when < r->a[i].end)
                out[k] = r->a[i].joined || (i && r->a[i - 1].joined) ? '*' : *r->a[i].kind;
    }
    return out;
}
void pipe_text_rows(Str *s, const Pipe *p, int letters, double span) {
    words_pad(s, p->t->schedule_axis ? p->t->schedule_axis : "rank", 5, false);
    words_pad(s, "F B I W, * F and B, . idle", letters + 2, false);
    words_pad(s, p->stuck ? "before" : "idle", 8, true);
    words_pad(s, "in flight", 12, true);
    words_end_line(s);
    for (int k = 0; k < p->n; k++) {
        const TraceStuck *stuck = p->row[k].stuck;
        words_pad(s, arena_printf(p->a, "%d", k), 5, false);
        words_pad(s, letters_of(p, &p->row[k], letters, span), letters + 2, false);
        words_pad(s, stuck && stuck->action ? stuck->action : pipe_idle(p, &p->row[k]), 8, true);
        words_pad(s, arena_printf(p->a, "%d", p->row[k].flight), 12, true);
        words_end_line(s);
    }
    str_add(s, "\n");
}
const char *view_pipeline_text(const ViewCall *c) {
    Pipe all[VIEW_MAX_BESIDE + 1];
    Role role;
    double span;
    int w = furniture_columns(c->o), n = pipe_read_all(c, all, &span);
    if (!n) return NULL;
    Str s = str_new(c->arena);
    for (int k = 0; k < n; k++) {
        words_paragraph(&s, "", pipe_title(&all[k]), w);
        if (!k) wrong_text(&s, wrong_find(c->arena, c->t, NULL, NULL), w);
        str_add(&s, "\n");
        pipe_text_rows(&s, &all[k], w - 30, span);
        words_paragraph(&s, "", arena_printf(c->arena, "%s.", pipe_foot(&all[k])), w);
        if (k + 1 < n) str_add(&s, "\n");
    }
    for (int col = 1; n > 1 && col < PIPE_COLUMNS; col++) {
        words_pad(&s, pipe_columns[col], 14, false);
        for (int k = 0; k < n; k++)
            str_addf(&s, "%s%s %s", k ? "; " : "", pipe_cell(&all[k], 0), pipe_cell(&all[k], col));
        words_end_line(&s);
    }
    for (int k = 1; k < n; k++) {
        const char *other = pipe_other_work(&all[0], &all[k]);
        if (*other)
            words_paragraph(
                &s, "", arena_printf(c->arena, "%s is of other work: %s", all[k].name, other), w);
    }
    words_paragraph(&s, "", words_stamp(c->arena, c->t, &role), w);
    return s.s;
}
