/* Schedules from files, and what is wrong with one: PyTorch's rows of actions. See schedule.h. */
#include "base/file.h"
#include "schedule/schedule.h"
#include <string.h>

enum { MOST_BYTES = 64 << 20, MOST_NUMBER = 1 << 20, MOST_ROWS = 1 << 12, MOST_TOLD = 8 };

/* ---- reading ---- */
typedef struct {
    Schedule *s;
    Diags *d;
    const char *path;
    int line, rank;
    const char *line_start;
    bool bad;
    int read;    /* actions: a file without any is none of its kind, and nothing of it is shown */
    int unknown; /* cells that are no action */
    Loc untold;  /* the first of those that are only counted */
} Reader;
static Loc here(const Reader *r, const char *at) {
    return (Loc){r->path, r->line, (int)(at - r->line_start) + 1};
}
static const char cell_form[] =
    "STAGE, one of F B I W SEND_F RECV_F SEND_B RECV_B, MICRO-BATCH: `0F3`, or two that run "
    "together, `(0F3;1B2)OVERLAP_F_B`";
/* A file of another kind has thousands of them: the first ones are told, the others counted. */
static bool unknown(Reader *r, const char *cell) {
    r->bad = true;
    if (r->unknown++ < MOST_TOLD)
        diag_error(r->d, "E0310", here(r, cell), cell_form, "here stands no action of a schedule");
    else if (!r->untold.file) r->untold = here(r, cell);
    return false;
}
static void tell_others(const Reader *r) {
    int n = r->unknown - MOST_TOLD;
    if (n > 0)
        diag_error(r->d, "E0310", r->untold, cell_form,
                   "here and in %d other cell%s stands no action of a schedule", n - 1,
                   n == 2 ? "" : "s");
}
static void odd(Reader *r, const char *at, const char *what, const char *hint) {
    r->bad = true;
    diag_error(r->d, "E0310", here(r, at), hint, "%s", what);
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
/* What a real run does beside: FSDP's gathers and reductions, waits for messages. Those for
 * messages follow from the order, so only that each is one, of a stage of this rank, is looked at.
 */
typedef struct {
    const char *word;
    bool of_part; /* a micro-batch's */
    AsideKind kind;
} AsideWord;
static const AsideWord *aside_of(const char *word, size_t n) {
    static const AsideWord aside[] = {
        {"UNSHARD", false, ASIDE_UNSHARD},    {"RESHARD", false, ASIDE_RESHARD},
        {"REDUCE_GRAD", false, ASIDE_REDUCE}, {"WAIT_REDUCE_GRAD", false, ASIDE_WAIT},
        {"WAIT_SEND_F", true, ASIDE_WAIT},    {"WAIT_SEND_B", true, ASIDE_WAIT}};
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
                   "stage %d: there %s %d stage%s, counted from 0", stage,
                   s->stages == 1 ? "is" : "are", s->stages, s->stages == 1 ? "" : "s");
    else
        diag_error(r->d, "E0310", here(r, cell), "one row for each rank, in their order",
                   "this is in the list of rank %d, and stage %d is on rank %d", r->rank, stage,
                   s->home[stage]);
    return true;
}
static void stand_beside(Reader *r, AsideKind k, const Action *a) {
    AsideList *l = &r->s->asides[r->rank];
    *ARENA_PUSH(r->s->arena, l->a, l->n, l->cap) =
        (Aside){k, a->stage, r->s->rank[r->rank].n, a->loc};
}
static bool read_one(Reader *r, const char *cell, size_t n, bool joined) {
    const char *p = cell, *end = cell + n;
    Action a = {.joined = joined, .loc = here(r, cell)};
    if (!number(&p, end, &a.stage)) return unknown(r, cell);
    const char *word = p;
    while (p < end && ((*p >= 'A' && *p <= 'Z') || *p == '_')) p++;
    size_t len = (size_t)(p - word);
    const AsideWord *aside = aside_of(word, len);
    if (aside) {
        if (aside->of_part && !number(&p, end, &a.part)) return unknown(r, cell);
        if (p != end) return unknown(r, cell);
        if (not_here(r, cell, a.stage)) return false;
        if (!aside->of_part) stand_beside(r, aside->kind, &a);
        return true;
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
/* What is between quotes, or all of it. */
static bool read_cell(Reader *r, const char *cell, size_t n) {
    static const char tail[] = ")OVERLAP_F_B";
    while (n && *cell == ' ') cell++, n--;
    while (n && cell[n - 1] == ' ') n--;
    if (n > 1 && *cell == '"' && cell[n - 1] == '"') return read_cell(r, cell + 1, n - 2);
    if (!n || (n == 1 && *cell == '.')) return true;
    if (*cell != '(') return read_one(r, cell, n, false);
    size_t t = sizeof tail - 1;
    const char *mid = memchr(cell, ';', n);
    if (n < t || memcmp(cell + n - t, tail, t) || !mid || mid > cell + n - t)
        return unknown(r, cell);
    return read_one(r, cell + 1, (size_t)(mid - cell - 1), true) &&
           read_one(r, mid + 1, (size_t)(cell + n - t - mid - 1), false);
}
/* Of what is in no text the first is told, and nothing is read behind it: a byte below the space,
 * of which a row may have tabs. */
static bool is_text(Reader *r, const char *row, const char *end) {
    const char *p = row;
    while (p < end && ((unsigned char)*p >= ' ' || *p == '\t')) p++;
    if (p == end) return true;
    bool cr = *p == '\r';
    odd(r, p,
        cr ? "a carriage return within a row"
           : arena_printf(r->s->arena, "a byte that is no text, 0x%02x", (unsigned char)*p),
        cr ? "end each row with a line feed, with or without a carriage return before it"
           : "write the file again as plain text (ASCII or UTF-8)");
    return false;
}
static void read_row(Reader *r, const char *row, const char *end) {
    for (const char *p = row; p <= end; p++) {
        const char *cell = p;
        while (p < end && *p == ' ') p++;
        if (p < end && *p == '"') {
            const char *close = memchr(p + 1, '"', (size_t)(end - p - 1));
            if (!close) {
                odd(r, p, "a quote that is not closed in its row", "take it out, or close it");
                return;
            }
            p = close + 1;
        }
        while (p < end && *p != ',') p++;
        read_cell(r, cell, (size_t)(p - cell));
    }
}
/* The end of a line, without what ends it. */
static const char *row_end(const char *row, const char *end) {
    const char *e = memchr(row, '\n', (size_t)(end - row));
    if (!e) e = end;
    return e > row && e[-1] == '\r' ? e - 1 : e;
}
static bool is_blank(const char *p, const char *end) {
    while (p < end && (*p == ' ' || *p == '\t')) p++;
    return p == end;
}
static const char *next_row(const char *row, const char *end) {
    const char *e = memchr(row, '\n', (size_t)(end - row));
    return e ? e + 1 : end;
}
/* Up to the last row in which anything stands. */
static const char *without_blank_end(const char *text, const char *end) {
    const char *last = text;
    for (const char *p = text; p < end; p = next_row(p, end))
        if (!is_blank(p, row_end(p, end))) last = next_row(p, end);
    return last;
}
/* Nothing stands in the row, and others follow: for a rank without stages that is its list. */
static bool skips_row(Reader *r, const char *row) {
    for (int g = 0; g < r->s->stages; g++)
        if (r->s->home[g] == r->rank) {
            odd(r, row,
                arena_printf(r->s->arena, "an empty row, where that of rank %d is due", r->rank),
                "take the line out: each line is the list of one rank");
            return true;
        }
    return false;
}
static void read_rows(Reader *r, const char *text, const char *end) {
    for (const char *p = text; p < end; p = next_row(p, end), r->line++) {
        const char *e = row_end(p, end);
        r->line_start = p;
        if (!is_text(r, p, e)) break;
        if (is_blank(p, e) && skips_row(r, p)) continue;
        read_row(r, p, e);
        r->rank++;
    }
    tell_others(r);
}
Schedule *schedule_read(Arena *arena, Diags *d, Loc loc, const char *path, const int *home,
                        int stages) {
    size_t n;
    char *text = file_read(arena, d, path, MOST_BYTES, loc, &n);
    if (!text) return NULL;
    const char *from = n >= 3 && !memcmp(text, "\xEF\xBB\xBF", 3) ? text + 3 : text,
               *end = without_blank_end(from, text + n);
    ScheduleAsk ask = {.name = path, .chunks = 1, .parts = 1};
    for (const char *p = from; p < end; p = next_row(p, end)) ask.ranks++;
    if (!ask.ranks || ask.ranks > MOST_ROWS) {
        if (!ask.ranks)
            diag_error(d, "E0310", loc, "one row of actions for each rank: `0F0,0F1,0B0,0B1`",
                       "'%s' is empty", path);
        else
            diag_error(d, "E0310", loc, NULL, "'%s' has %d rows, and at most %d ranks are read",
                       path, ask.ranks, MOST_ROWS);
        return NULL;
    }
    Schedule *s = schedule_new(arena, &ask, false);
    s->stages = stages;
    s->home = home;
    s->asides = ARENA_ARRAY(arena, AsideList, ask.ranks);
    Reader r = {.s = s, .d = d, .path = path, .line = 1};
    read_rows(&r, from, end);
    s->ranks = r.rank;
    if (r.read) diags_source(d, path, text, n);
    for (int k = 0; k < s->ranks; k++)
        for (int i = 0; i < s->rank[k].n; i++)
            if (s->rank[k].a[i].part >= s->parts) s->parts = s->rank[k].a[i].part + 1;
    return r.bad ? NULL : s;
}

/* ---- what is wrong with one ---- */
enum { MOST_FINDINGS = 50 /* more help nobody */ };
typedef struct {
    const Schedule *s;
    Diags *d;
    Loc loc;
    int *times; /* per kind, stage and micro-batch */
    int found;
} Checker;
/* Has something been found that is to be told? */
static bool finds(Checker *c) { return c->found++ < MOST_FINDINGS; }
#define FINDING(c, at, hint, ...)                                                                  \
    do {                                                                                           \
        if (finds(c)) diag_error((c)->d, "E0310", (at).file ? (at) : (c)->loc, hint, __VA_ARGS__); \
    } while (0)
static int *times(const Checker *c, ActionKind k, int stage, int part) {
    return &c->times[((int)k * c->s->stages + stage) * c->s->parts + part];
}
/* A message before the first stage or behind the last one. */
static bool leads_out(Checker *c, const Action *a) {
    bool up = a->kind == DO_SEND_F || a->kind == DO_RECV_B, last = a->stage == c->s->stages - 1;
    if (action_computes(a->kind) || (up ? !last : a->stage > 0)) return false;
    FINDING(c, a->loc, "leave it out: there is nobody at the other end",
            "%d%s%d: stage %d is the %s one", a->stage, action_word(a->kind), a->part, a->stage,
            up ? "last" : "first");
    return true;
}
/* The one before `a` in its rank's list that does some of the same work: a whole backward is both
 * its halves; NULL: there is none. */
static const Action *same_work(const Checker *c, int rank, const Action *a) {
    bool half = a->kind == DO_I || a->kind == DO_W;
    for (const Action *b = c->s->rank[rank].a; b < a; b++)
        if (b->stage == a->stage && b->part == a->part &&
            (half ? b->kind == DO_B : a->kind == DO_B && (b->kind == DO_I || b->kind == DO_W)))
            return b;
    return NULL;
}
static void check_action(Checker *c, int rank, const Action *a) {
    const Schedule *s = c->s;
    const char *word = action_word(a->kind);
    int home = a->stage < s->stages ? schedule_rank_of(s, a->stage, a->part) : -1;
    if (home < 0) {
        FINDING(c, a->loc, "list every stage in `stage_to_rank`",
                "%d%s%d: there %s %d stage%s, counted from 0", a->stage, word, a->part,
                s->stages == 1 ? "is" : "are", s->stages, s->stages == 1 ? "" : "s");
        return;
    }
    if (home != rank) {
        FINDING(c, a->loc, "one row for each rank, in their order",
                "%d%s%d is in the list of rank %d, and stage %d is on rank %d", a->stage, word,
                a->part, rank, a->stage, home);
        return;
    }
    if (leads_out(c, a)) return;
    bool again = (*times(c, a->kind, a->stage, a->part))++ > 0;
    bool both = (a->kind == DO_I || a->kind == DO_W) && *times(c, DO_B, a->stage, a->part);
    both |= a->kind == DO_B &&
            (*times(c, DO_I, a->stage, a->part) || *times(c, DO_W, a->stage, a->part));
    const Action *same = both && c->found < MOST_FINDINGS ? same_work(c, rank, a) : NULL;
    if (same && same->loc.file)
        FINDING(c, a->loc, "B alone, or I and W without it",
                "%d%s%d is done twice: a whole backward (B) is the gradient of the input (I) and "
                "those of the weights (W), and %d%s%d is at %d:%d",
                a->stage, word, a->part, same->stage, action_word(same->kind), same->part,
                same->loc.line, same->loc.col);
    else if (again || both)
        FINDING(c, a->loc,
                action_computes(a->kind) ? "each once: F, and B or both I and W"
                                         : "each message once, at both ends",
                "%d%s%d is done twice", a->stage, word, a->part);
}
/* The first half of the work that a micro-batch lacks on a stage; DO_KINDS: none. */
static ActionKind lacks(const Checker *c, int stage, int part) {
    bool f = *times(c, DO_F, stage, part), b = *times(c, DO_B, stage, part),
         i = *times(c, DO_I, stage, part), w = *times(c, DO_W, stage, part);
    return !f ? DO_F : b || (i && w) ? DO_KINDS : i ? DO_W : w ? DO_I : DO_B;
}
/* Told once for a stage and kind, with the first micro-batch: a file may name micro-batch 1000000.
 */
static void check_complete(Checker *c, int stage, Arena *tmp) {
    static const char *const word[] = {[DO_F] = "forward",
                                       [DO_B] = "backward",
                                       [DO_I] = "gradient of the input",
                                       [DO_W] = "weight gradients"};
    int first[DO_W + 1], count[DO_W + 1] = {0}, rank = schedule_rank_of(c->s, stage, 0);
    for (int part = 0; part < c->s->parts; part++) {
        ActionKind k = lacks(c, stage, part);
        if (k != DO_KINDS && !count[k]++) first[k] = part;
    }
    for (int k = 0; k <= DO_W; k++) {
        if (!count[k]) continue;
        const char *word_k = action_word((ActionKind)k);
        const char *more = count[k] > 1 ? arena_printf(tmp, ", and for %d other%s", count[k] - 1,
                                                       count[k] > 2 ? "s" : "")
                                        : "";
        const ActionList *row = &c->s->rank[rank];
        Loc at = row->n ? row->a[0].loc : c->loc;
        FINDING(
            c, at,
            arena_printf(tmp, "put %d%s%d into the list of rank %d", stage, word_k, first[k], rank),
            "the schedule has no %s of stage %d for micro-batch %d%s", word[k], stage, first[k],
            more);
    }
}
bool schedule_check(const Schedule *s, Diags *d, Loc loc) {
    Arena *tmp = arena_new();
    Checker c = {s, d, loc,
                 ARENA_ARRAY(tmp, int, base_mul((size_t)s->stages * DO_KINDS, (size_t)s->parts)),
                 0};
    for (int g = 0; g < s->stages && !c.found; g++)
        if (s->home[g] < 0 || s->home[g] >= s->ranks)
            FINDING(&c, loc, "one row for each rank",
                    "stage %d is on rank %d, and there %s %d row%s", g, s->home[g],
                    s->ranks == 1 ? "is" : "are", s->ranks, s->ranks == 1 ? "" : "s");
    bool placed = !c.found;
    for (int r = 0; r < s->ranks && placed; r++)
        for (int i = 0; i < s->rank[r].n; i++) check_action(&c, r, &s->rank[r].a[i]);
    for (int g = 0; g < s->stages && placed; g++) check_complete(&c, g, tmp);
    if (c.found > MOST_FINDINGS)
        diag_error(d, "E0310", loc, "mend these first", "%d more findings about the schedule",
                   c.found - MOST_FINDINGS);
    arena_free(tmp);
    return !c.found;
}
