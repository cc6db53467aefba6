/* Schedules from files, and what is wrong with one: PyTorch's rows of actions. See schedule.h. */
#include "base/file.h"
#include "schedule/schedule.h"
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_NUMBER = 1 << 20 };

/* ---- reading ---- */
typedef struct {
    Schedule *s;
    Diags *d;
    const char *path, *at;
    int line, rank;
    const char *line_start;
    bool bad;
    int read; /* actions: a file without any is none of its kind, and nothing of it is shown */
} Reader;
static Loc here(const Reader *r, const char *at) {
    return (Loc){r->path, r->line, (int)(at - r->line_start) + 1};
}
static bool unknown(Reader *r, const char *cell) {
    r->bad = true;
    diag_error(r->d, "E0310", here(r, cell),
               "STAGE, one of F B I W SEND_F RECV_F SEND_B RECV_B, MICRO-BATCH: `0F3`, or two that "
               "run together, `(0F3;1B2)OVERLAP_F_B`",
               "here stands no action of a schedule");
    return false;
}
static bool number(const char **p, const char *end, int *out) {
    const char *q = *p;
    long v = 0;
    while (q < end && *q >= '0' && *q <= '9' && v < MOST_NUMBER) v = v * 10 + (*q++ - '0');
    if (q == *p || v >= MOST_NUMBER) return false;
    *p = q;
    *out = (int)v;
    return true;
}
/* What a real run does beside: FSDP's gathers and reductions, waits for messages. They follow from
 * the order, so only that each is one, of a stage of this rank, is looked at. */
typedef struct {
    const char *word;
    bool of_part; /* a micro-batch's */
} Aside;
static const Aside *aside_of(const char *word, size_t n) {
    static const Aside aside[] = {{"UNSHARD", false},     {"RESHARD", false},
                                  {"REDUCE_GRAD", false}, {"WAIT_REDUCE_GRAD", false},
                                  {"WAIT_SEND_F", true},  {"WAIT_SEND_B", true}};
    for (size_t i = 0; i < sizeof aside / sizeof *aside; i++)
        if (strlen(aside[i].word) == n && !memcmp(aside[i].word, word, n)) return &aside[i];
    return NULL;
}
static bool not_here(Reader *r, const char *cell, int stage) {
    const Schedule *s = r->s;
    if (stage < s->stages && s->home[stage] == r->rank) return false;
    r->bad = true;
    if (stage >= s->stages)
        diag_error(r->d, "E0310", here(r, cell), "list every stage in `stage_to_rank`",
                   "stage %d: there are %d stages, counted from 0", stage, s->stages);
    else
        diag_error(r->d, "E0310", here(r, cell), "one row for each rank, in their order",
                   "this is in the list of rank %d, and stage %d is on rank %d", r->rank, stage,
                   s->home[stage]);
    return true;
}
static bool read_one(Reader *r, const char *cell, size_t n, bool joined) {
    const char *p = cell, *end = cell + n;
    Action a = {.joined = joined, .loc = here(r, cell)};
    if (!number(&p, end, &a.stage)) return unknown(r, cell);
    const char *word = p;
    while (p < end && ((*p >= 'A' && *p <= 'Z') || *p == '_')) p++;
    size_t len = (size_t)(p - word);
    const Aside *aside = aside_of(word, len);
    if (aside) {
        if (aside->of_part && !number(&p, end, &a.part)) return unknown(r, cell);
        return p == end ? !not_here(r, cell, a.stage) : unknown(r, cell);
    }
    int k = 0;
    while (k < DO_KINDS && (strlen(action_word((ActionKind)k)) != len ||
                            memcmp(action_word((ActionKind)k), word, len)))
        k++;
    if (k == DO_KINDS || !number(&p, end, &a.part) || p != end) return unknown(r, cell);
    a.kind = (ActionKind)k;
    schedule_add(r->s, r->rank, a);
    r->read++;
    return true;
}
static bool read_cell(Reader *r, const char *cell, size_t n) {
    static const char tail[] = ")OVERLAP_F_B";
    while (n && (*cell == ' ' || *cell == '"')) cell++, n--;
    while (n && (cell[n - 1] == ' ' || cell[n - 1] == '"' || cell[n - 1] == '\r')) n--;
    if (!n || (n == 1 && *cell == '.')) return true;
    if (*cell != '(') return read_one(r, cell, n, false);
    size_t t = sizeof tail - 1;
    const char *mid = memchr(cell, ';', n);
    if (n < t || memcmp(cell + n - t, tail, t) || !mid || mid > cell + n - t)
        return unknown(r, cell);
    return read_one(r, cell + 1, (size_t)(mid - cell - 1), true) &&
           read_one(r, mid + 1, (size_t)(cell + n - t - mid - 1), false);
}
static void read_row(Reader *r, const char *row, const char *end) {
    const char *cell = row;
    for (const char *p = row; p <= end; p++) {
        if (p < end && *p != ',') continue;
        read_cell(r, cell, (size_t)(p - cell));
        cell = p + 1;
    }
}
static int count_rows(const char *text, const char *end) {
    int n = 0;
    for (const char *p = text; p < end;) {
        const char *e = memchr(p, '\n', (size_t)(end - p));
        if (!e) e = end;
        n++;
        p = e + 1;
    }
    return n;
}
Schedule *schedule_read(Arena *arena, Diags *d, Loc loc, const char *path, const int *home,
                        int stages) {
    size_t n;
    char *text = file_read(arena, d, path, MOST_BYTES, loc, &n);
    if (!text) return NULL;
    ScheduleAsk ask = {.name = path, .ranks = count_rows(text, text + n), .chunks = 1, .parts = 1};
    if (ask.ranks < 1) ask.ranks = 1;
    Schedule *s = schedule_new(arena, &ask, false);
    s->stages = stages;
    s->home = home;
    Reader r = {.s = s, .d = d, .path = path, .line = 1};
    for (const char *p = text; p < text + n; r.line++, r.rank++) {
        const char *e = memchr(p, '\n', (size_t)(text + n - p));
        if (!e) e = text + n;
        r.line_start = p;
        read_row(&r, p, e);
        p = e + 1;
    }
    if (r.read) diags_source(d, path, text, n);
    for (int k = 0; k < s->ranks; k++)
        for (int i = 0; i < s->rank[k].n; i++)
            if (s->rank[k].a[i].part >= s->parts) s->parts = s->rank[k].a[i].part + 1;
    return r.bad ? NULL : s;
}

/* ---- what is wrong with one ---- */
typedef struct {
    const Schedule *s;
    Diags *d;
    Loc loc;
    int *times; /* per kind, stage and micro-batch */
    bool bad;
} Checker;
static void finding(Checker *c, Loc loc, const char *hint, const char *text) {
    c->bad = true;
    diag_error(c->d, "E0310", loc.file ? loc : c->loc, hint, "%s", text);
}
static int *times(const Checker *c, ActionKind k, int stage, int part) {
    return &c->times[((int)k * c->s->stages + stage) * c->s->parts + part];
}
/* A message before the first stage or behind the last one. */
static bool leads_out(Checker *c, const Action *a, const char *text, Arena *tmp) {
    bool up = a->kind == DO_SEND_F || a->kind == DO_RECV_B, last = a->stage == c->s->stages - 1;
    if (action_computes(a->kind) || (up ? !last : a->stage > 0)) return false;
    finding(c, a->loc, "leave it out: there is nobody at the other end",
            arena_printf(tmp, "%s: stage %d is the %s one", text, a->stage, up ? "last" : "first"));
    return true;
}
static void check_action(Checker *c, int rank, const Action *a, Arena *tmp) {
    const Schedule *s = c->s;
    const char *text = action_text(a, tmp);
    if (a->stage >= s->stages) {
        finding(c, a->loc, "list every stage in `stage_to_rank`",
                arena_printf(tmp, "%s: there are %d stages, counted from 0", text, s->stages));
        return;
    }
    if (schedule_rank_of(s, a->stage, a->part) != rank) {
        finding(c, a->loc, "one row for each rank, in their order",
                arena_printf(tmp, "%s is in the list of rank %d, and stage %d is on rank %d", text,
                             rank, a->stage, schedule_rank_of(s, a->stage, a->part)));
        return;
    }
    if (leads_out(c, a, text, tmp)) return;
    bool again = (*times(c, a->kind, a->stage, a->part))++ > 0;
    bool both = (a->kind == DO_I || a->kind == DO_W) && *times(c, DO_B, a->stage, a->part);
    both |= a->kind == DO_B &&
            (*times(c, DO_I, a->stage, a->part) || *times(c, DO_W, a->stage, a->part));
    if (again || both)
        finding(c, a->loc,
                action_computes(a->kind) ? "each once: F, and B or both I and W"
                                         : "each message once, at both ends",
                arena_printf(tmp, "%s is done twice", text));
}
/* The first half of the work that a micro-batch lacks on a stage; DO_KINDS: none. */
static ActionKind lacks(const Checker *c, int stage, int part) {
    bool f = *times(c, DO_F, stage, part), b = *times(c, DO_B, stage, part),
         i = *times(c, DO_I, stage, part), w = *times(c, DO_W, stage, part);
    return !f ? DO_F : b || (i && w) ? DO_KINDS : i ? DO_W : DO_B;
}
/* Told once for a stage and kind, with the first micro-batch: a file may name micro-batch 1000000.
 */
static void check_complete(Checker *c, int stage, Arena *tmp) {
    static const char *const word[] = {
        [DO_F] = "forward", [DO_B] = "backward", [DO_W] = "weight gradients"};
    int first[DO_W + 1], count[DO_W + 1] = {0}, rank = schedule_rank_of(c->s, stage, 0);
    for (int part = 0; part < c->s->parts; part++) {
        ActionKind k = lacks(c, stage, part);
        if (k != DO_KINDS && !count[k]++) first[k] = part;
    }
    for (int k = 0; k <= DO_W; k++) {
        if (!count[k]) continue;
        Action want = {.kind = (ActionKind)k, .stage = stage, .part = first[k]};
        const char *more =
            count[k] > 1 ? arena_printf(tmp, ", and for %d others", count[k] - 1) : "";
        const ActionList *row = &c->s->rank[rank];
        finding(c, row->n ? row->a[0].loc : (Loc){0},
                arena_printf(tmp, "put %s into the list of rank %d", action_text(&want, tmp), rank),
                arena_printf(tmp, "the schedule has no %s of stage %d for micro-batch %d%s",
                             word[k], stage, first[k], more));
    }
}
bool schedule_check(const Schedule *s, Diags *d, Loc loc) {
    Arena *tmp = arena_new();
    Checker c = {s, d, loc,
                 ARENA_ARRAY(tmp, int, base_mul((size_t)s->stages * DO_KINDS, (size_t)s->parts)),
                 false};
    for (int g = 0; g < s->stages; g++)
        if (s->home[g] < 0 || s->home[g] >= s->ranks) {
            finding(&c, loc, "one row for each rank",
                    arena_printf(tmp, "stage %d is on rank %d, and there are %d rows", g,
                                 s->home[g], s->ranks));
            arena_free(tmp);
            return false;
        }
    for (int r = 0; r < s->ranks; r++)
        for (int i = 0; i < s->rank[r].n; i++) check_action(&c, r, &s->rank[r].a[i], tmp);
    for (int g = 0; g < s->stages; g++) check_complete(&c, g, tmp);
    arena_free(tmp);
    return !c.bad;
}
