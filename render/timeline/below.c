/* Names of collectives. See below.h. Neighbours of one kind share a name. A name stands beside its
 * bars where that has room, else in a row under the lane; what has no room there either gets a
 * number, whose name the list has. */
#include "render/timeline/below.h"
#include "render/timeline/callouts.h"
#include <math.h>
#include <string.h>

enum { MAX_CLUSTERS = 64, ROWS = 4 /* under a lane */ };

enum { NAMED = 4 }; /* names that a label has at most */
typedef struct {
    double a, b;                    /* px */
    const char *name[NAMED], *code; /* names that differ, the first of them */
    const TimeEvent *first;
    double cell; /* px of the first event's right end */
    double seconds;
    int n, names;
    bool equal, goes_on; /* equal durations; continues in the next line */
    bool inside;         /* has its words inside */
} Cluster;

/* What stands at a cluster: name and time, the name; or the number before its name in the list
 * under the line, with what it does or alone. */
typedef enum { WORDS_TIME, WORDS_NAME, WORDS_NUMBER_CODE, WORDS_NUMBER, WORDS_FORMS } WordsForm;
/* Where the words of a cluster stand: at its right, at its left, in a row under the lane, there
 * behind those of the one before it, a number in its first cell. */
typedef enum { AT_NONE, AT_RIGHT, AT_LEFT, AT_ROW, AT_BEHIND, AT_CELL } WordsPlace;
typedef struct {
    WordsForm form;
    WordsPlace at;
    int number;     /* in the list; 0: it is not there */
    double w, x;    /* of words in a row their left end */
    int row, share; /* clusters at its leader */
} Place;
struct BelowLane {
    int n, rows; /* clusters; rows under the lane */
    Cluster k[MAX_CLUSTERS];
    Place b[MAX_CLUSTERS];
};

static const char *cluster_text(Arena *a, const Cluster *k, WordsForm form, int number) {
    Str s = str_new(a);
    if (form == WORDS_NUMBER) return arena_printf(a, "%d", number);
    if (form == WORDS_NUMBER_CODE)
        return arena_printf(a, "%d %s", number, k->code && *k->code ? k->code : k->name[0]);
    str_add(&s, k->name[0]);
    size_t skip = k->code ? strlen(k->code) : 0;
    for (int i = 1; i < k->names && i < NAMED; i++) str_addf(&s, ",%s", k->name[i] + skip);
    if (form == WORDS_TIME) {
        if (k->n > 1 && k->equal) str_addf(&s, "  %d × %s", k->n, time_text(k->seconds, a));
        if (k->n == 1) str_addf(&s, "  %s", time_text(k->seconds, a));
    }
    if (k->goes_on) str_add(&s, " →");
    return s.s;
}

static bool has_name(const Cluster *k, const char *name) {
    bool has = false;
    for (int i = 0; i < k->names && i < NAMED; i++) has |= !strcmp(k->name[i], name);
    return has;
}
/* Does an event of a name from a to b belong to what stands before it? As wide as a label, or one
 * whose name the label has: the hops of a ring. */
static bool joins(const Cluster *k, const TimeEvent *x, double a, double b) {
    const bool known = has_name(k, x->name), narrow = b - a < 60 && k->b - k->a < 60;
    return a - k->b < 16 && !strcmp(k->code, x->code) && (known || (narrow && k->names < NAMED));
}
/* The events of a lane in this line; close ones with the same code are one cluster. */
static void clusters(const TimePen *p, const Stave *v, int lane, BelowLane *out) {
    Cluster *k = out->k;
    int n = 0;
    for (int i = 0; i < v->t->n_events; i++) {
        const TimeEvent *x = &v->t->event[i];
        if (timeline_lane(v->t, x->e) != lane || !stave_in(v, x)) continue;
        double a = stave_x(p, v, x->e->start), b = stave_x(p, v, x->e->end), d = stave_works_for(x);
        Cluster *last = n && !k[n - 1].inside ? &k[n - 1] : NULL;
        bool inside = stave_text(p, v, x) || stave_waiting(p, v, x);
        if (last && !inside && joins(last, x, a, b)) {
            if (!has_name(last, x->name)) last->name[last->names++] = x->name;
            last->n++;
            last->equal &= fabs(d - last->seconds) < 0.02 * d;
            last->b = b;
            continue;
        }
        if (n >= MAX_CLUSTERS) break;
        k[n] = (Cluster){.a = a,
                         .b = b,
                         .name = {x->name},
                         .code = x->code,
                         .first = x,
                         .cell = b,
                         .seconds = d,
                         .n = 1,
                         .names = 1,
                         .equal = true,
                         .goes_on = x->e->end > v->l->end * (1 + 1e-12),
                         .inside = inside};
        n++;
    }
    out->n = n;
}

static double beside_from(const Cluster *k, const Place *b) {
    return b->at == AT_LEFT ? k->a - 6 - b->w : k->a;
}
static double beside_to(const Cluster *k, const Place *b) {
    return b->at == AT_RIGHT ? k->b + 6 + b->w : k->b;
}
static double words_wide(const TimePen *p, const BelowLane *in, int i, WordsForm form) {
    return scene_width(p->s, stave_size(p), REGULAR,
                       cluster_text(p->c->arena, &in->k[i], form, in->b[i].number));
}
/* Gives cluster i words of that form, beside what its neighbours have, or a number in its own cell;
 * false: no room. */
static bool put_beside(const TimePen *p, BelowLane *in, int i, WordsForm form) {
    const Cluster *k = in->k;
    Place *b = in->b;
    const double w = words_wide(p, in, i, form);
    /* nearer to its own cell than to another's */
    const double from = i ? beside_to(&k[i - 1], &b[i - 1]) + 14 : p->x0 + 2,
                 to = i + 1 < in->n ? beside_from(&k[i + 1], &b[i + 1]) - 10 : p->right;
    const bool cell = form == WORDS_NUMBER && k[i].first->e->wait <= 0 &&
                      w + 6 <= k[i].cell - k[i].a && !wrong_number(p->wrong, k[i].first->e->step);
    WordsPlace at = cell                     ? AT_CELL
                    : k[i].b + 6 + w <= to   ? AT_RIGHT
                    : k[i].a - 6 - w >= from ? AT_LEFT
                                             : AT_NONE;
    if (at) b[i] = (Place){.form = form, .at = at, .number = b[i].number, .w = w};
    return at != AT_NONE;
}
static double middle(const BelowLane *in, int from, int to) {
    return (in->k[from].a + in->k[to - 1].b) / 2;
}
static bool nameless(const BelowLane *in, int i) { return !in->k[i].inside && !in->b[i].at; }
/* Clusters from i on that have no words and stand too near for a leader each share one: how many.
 */
static int sharing(const BelowLane *in, int i) {
    int n = 1;
    while (i + n < in->n && nameless(in, i + n) &&
           middle(in, i + n, i + n + 1) - middle(in, i, i + n) < CALLOUT_CLEAR + 2)
        n++;
    return n;
}
/* What a leader says that names n clusters from i on: "RS after wo, AG after ffn_norm". */
static const char *shared_text(Arena *a, const BelowLane *in, int i, int n, WordsForm form) {
    Str s = str_new(a);
    for (int k = i; k < i + n; k++)
        str_addf(&s, "%s%s", k > i ? ", " : "", cluster_text(a, &in->k[k], form, 0));
    return s.s;
}
/* Words of that form in rows under the lane for clusters that have none; returns how many. */
static int put_rows(const TimePen *p, BelowLane *in, WordsForm form) {
    Callout *c = ARENA_ARRAY(p->c->arena, Callout, in->n + 1);
    int *of = ARENA_ARRAY(p->c->arena, int, in->n + 1), n = 0, named = 0;
    for (int i = 0, share; i < in->n; i += share) {
        share = nameless(in, i) ? sharing(in, i) : 1;
        if (!nameless(in, i)) continue;
        of[n] = i;
        c[n++] = (Callout){.at = middle(in, i, i + share),
                           .w = scene_width(p->s, stave_size(p), REGULAR,
                                            shared_text(p->c->arena, in, i, share, form))};
    }
    in->rows = callouts_lay(p->c->arena, c, n, p->x0 - 2, p->right, ROWS);
    for (int k = 0; k < n; k++) {
        const int i = of[k], share = sharing(in, i);
        if (c[k].row < 0) continue;
        for (int m = i; m < i + share; m++)
            in->b[m] = (Place){.form = form, .at = m > i ? AT_BEHIND : AT_ROW};
        in->b[i].w = c[k].w, in->b[i].x = c[k].x, in->b[i].row = c[k].row, in->b[i].share = share;
        named += share;
    }
    return named;
}
/* The same with times where all names have them in as few rows. */
static void lay_rows(const TimePen *p, BelowLane *in) {
    BelowLane *timed = ARENA_ARRAY(p->c->arena, BelowLane, 1);
    *timed = *in;
    const int all = put_rows(p, in, WORDS_NAME);
    if (all && put_rows(p, timed, WORDS_TIME) == all && timed->rows <= in->rows) *in = *timed;
}
/* Where the words of a lane's clusters stand: names, then the numbers of what has none; *number:
 * how many have one in this line so far. Beside bars names say the time too where room is left. */
static void lay_words(const TimePen *p, BelowLane *in, int *number) {
    const int n = in->n;
    for (int i = 0; i < n; i++)
        if (!in->k[i].inside) put_beside(p, in, i, WORDS_NAME);
    lay_rows(p, in);
    for (int i = 0; i < n; i++)
        if (!in->k[i].inside && !in->b[i].at) in->b[i].number = ++*number;
    for (WordsForm form = WORDS_NUMBER_CODE; form < WORDS_FORMS; form++)
        for (int i = 0; i < n; i++)
            if (in->b[i].number && !in->b[i].at) put_beside(p, in, i, form);
    for (int i = 0; i < n; i++) {
        const Place named = in->b[i];
        if (named.form != WORDS_NAME || (named.at != AT_RIGHT && named.at != AT_LEFT)) continue;
        in->b[i].at = AT_NONE;
        if (!put_beside(p, in, i, WORDS_TIME)) in->b[i] = named;
    }
}

/* The names of a lane's events from px a to b, each behind `before`: "AR dwv, AR dwk × 2". */
static void list_events(const TimePen *p, const Stave *v, int lane, double a, double b, Str *s) {
    const char *before = NULL;
    int same = 0;
    for (int i = 0; i < v->t->n_events; i++) {
        const TimeEvent *x = &v->t->event[i];
        if (timeline_lane(v->t, x->e) != lane || !stave_in(v, x)) continue;
        const double at = stave_x(p, v, x->e->start);
        if (at < a - 1e-9 || (at > a + 1e-9 && at >= b - 1e-9)) continue;
        if (before && !strcmp(before, x->name)) {
            same++;
            continue;
        }
        if (same) str_addf(s, " × %d", same + 1);
        str_addf(s, "%s%s", before ? ", " : "", x->name);
        before = x->name;
        same = 0;
    }
    if (same) str_addf(s, " × %d", same + 1);
}
/* "tp: 1 RS after wo, 2 AG k × 2": what has a number in a lane, and what comes behind as much as
 * can have words; added to what is there of other lanes. */
static void list_lane(const TimePen *p, const Stave *v, int lane, const BelowLane *in, Str *s) {
    bool any = false;
    for (int i = 0; i <= in->n; i++) {
        const bool rest = i == in->n && in->n == MAX_CLUSTERS;
        const Cluster *k = &in->k[rest ? i - 1 : i];
        if (!rest && (i == in->n || !in->b[i].number)) continue;
        if (!any)
            str_addf(s, "%s%s:", s->n ? "; " : "",
                     words_axis_list(p->c->arena, v->t->trace, v->t->lane[lane].axis));
        if (rest) str_addf(s, "%s then ", any ? "," : "");
        else str_addf(s, "%s %d ", any ? "," : "", in->b[i].number);
        any = true;
        list_events(p, v, lane, rest ? k->b : k->a, rest ? p->right : k->b, s);
    }
}
enum { LEAD = 5 }; /* px of a leader from its bar to the nearest row */
void below_lay(const TimePen *p, Stave *v, Below *out) {
    int *cell = ARENA_ARRAY(p->c->arena, int, v->t->n_events + 1), number = 0;
    Str list = str_new(p->c->arena);
    *out = (Below){.number = cell};
    for (int lane = 1; lane < v->t->n_lanes && lane < STAVE_LANES; lane++) {
        if (!v->has[lane]) continue;
        BelowLane *in = ARENA_ARRAY(p->c->arena, BelowLane, 1);
        clusters(p, v, lane, in);
        lay_words(p, in, &number);
        for (int i = 0; i < in->n; i++)
            if (in->b[i].at == AT_CELL) cell[in->k[i].first - v->t->event] = in->b[i].number;
        list_lane(p, v, lane, in, &list);
        v->under[lane] = in->rows ? LEAD + in->rows * STAVE_STEP : 0;
        out->lane[lane] = in;
    }
    out->list = list.n ? list.s : "";
}

/* Words in a row under the lane, whose lower edge is at y, at a leader from the middle of what they
 * name: clusters from i on. */
static void draw_row_words(const TimePen *p, const BelowLane *in, int i, double y) {
    const Place *b = &in->b[i];
    const Cluster *k = &in->k[i], *last = &in->k[i + b->share - 1];
    const bool several = k->n > 1 || last > k;
    const char *text = shared_text(p->c->arena, in, i, b->share, b->form);
    const double mid = middle(in, i, i + b->share), size = stave_size(p),
                 base = y + LEAD + STAVE_STEP * b->row + 0.9 * size, from = several ? y + 3 : y;
    scene_begin(p->s, "callout", arena_printf(p->c->arena, "name-%d", k->first->e->step), text);
    if (several)
        scene_segment(p->s, (Pt){k->a, from}, (Pt){last->b, from}, ROLE_SECOND, 1)->ground = true;
    scene_segment(p->s, (Pt){mid, from}, (Pt){mid, base - 0.8 * size - 1}, ROLE_SECOND, 1);
    scene_text(p->s, b->x, base, (TextLook){ALIGN_LEFT, size, REGULAR, ROLE_INK}, text);
    scene_end(p->s);
}
static void draw_lane(const TimePen *p, const Stave *v, int lane, const BelowLane *in) {
    const double top = stave_top(p, v, lane), y = top + p->look->comm / 2 + 4.2;
    for (int i = 0; i < in->n; i++) {
        const Cluster *k = &in->k[i];
        const Place *b = &in->b[i];
        if (k->inside || !b->at || b->at == AT_CELL || b->at == AT_BEHIND) continue;
        const char *text = cluster_text(p->c->arena, k, b->form, b->number);
        const bool right = b->at == AT_RIGHT;
        if (b->at == AT_ROW) draw_row_words(p, in, i, top + p->look->comm);
        else
            scene_text(
                p->s, right ? k->b + 6 : k->a - 6, y,
                (TextLook){right ? ALIGN_LEFT : ALIGN_RIGHT, stave_size(p), REGULAR, ROLE_INK},
                text);
    }
}
void below_draw(const TimePen *p, const Stave *v, const Below *names) {
    for (int i = 1; i < v->t->n_lanes && i < STAVE_LANES; i++)
        if (names->lane[i]) draw_lane(p, v, i, names->lane[i]);
}
