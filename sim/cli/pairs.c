/* `comms --pairs`: who sends how many rows to whom. See rows.h. Without a run nobody knows; then
 * each pair has its share of the rows to expect, and that is said. */
#include "cli/rows.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

static const Column pair_columns[] = {
    {"step", "step", true, 0},
    {"pass", "pass", false, COL_OPTIONAL},
    {"op", "op", false, 0},
    {"axis", "group", false, 0},
    {"value", "value", false, 0},
    {"from", "from", true, 0},
    {"to", "to", true, 0},
    {"rows", "rows", true, 0},
    {"received", "received", true, 0},
    {"bytes", "bytes", true, 0},
    {"known", "known", false, 0},
};
/* One collective that moves rows, in one of its groups. */
typedef struct {
    Arena *a;
    const TraceCollective *c;
    const TraceExchange *x; /* with pairs; NULL: rows to expect */
    int64_t group, n;
    double out; /* expected: bytes that all members take out */
} Pairs;

static Pairs pairs_of(Arena *a, const Trace *t, const TraceCollective *c, int64_t group) {
    const TraceExchange *x = trace_exchange(t, c->step);
    bool pairs = x && x->n_to && x->n_from && x->size == groups_size(&c->groups);
    Pairs p = {a, c, pairs ? x : NULL, group, groups_size(&c->groups), 0};
    for (int64_t i = 0; i < p.n && !pairs; i++)
        p.out += (double)collective_on(c, groups_member(&c->groups, group, i)).bytes_out;
    return p;
}
static int64_t member(const Pairs *p, int64_t i) {
    return groups_member(&p->c->groups, p->group, i);
}
/* Expected: what leaves a rank goes to the others by what they take out, the rest stays. A block
 * that is gathered stays as well, and all get it. */
static TracePair pair_at(const Pairs *p, int64_t from, int64_t to) {
    if (p->x) return exchange_pair(p->x, p->c, p->group, from, to);
    TraceTraffic b = collective_on(p->c, member(p, from));
    bool gathers = b.bytes_sent >= b.bytes_in && b.bytes_out > b.bytes_in;
    double sent = (double)b.bytes_sent, others = p->out - (double)b.bytes_out,
           takes = (double)collective_on(p->c, member(p, to)).bytes_out, bytes;
    if (from == to) bytes = gathers ? (double)b.bytes_in : (double)b.bytes_in - sent;
    else if (gathers) bytes = sent / (double)(p->n - 1);
    else bytes = others > 0 ? sent * takes / others : 0;
    double rows = fmax(bytes, 0) / (double)p->c->row_bytes;
    return (TracePair){rows, rows};
}
static bool has_rank(const Pairs *p, int64_t rank) {
    bool in = rank < 0;
    for (int64_t i = 0; i < p->n && !in; i++) in = member(p, i) == rank;
    return in;
}
/* Each collective with rows and group to show, in turn; false after the last. */
static bool next_pairs(Arena *a, const Trace *t, int64_t rank, int *i, int64_t *group, Pairs *out) {
    for (; *i < t->n_collectives; ++*i, *group = 0) {
        const TraceCollective *c = &t->collectives[*i];
        if (c->row_bytes <= 0) continue;
        while (*group < groups_count(&c->groups)) {
            *out = pairs_of(a, t, c, (*group)++);
            if (has_rank(out, rank)) return true;
        }
    }
    return false;
}

static void pair_row(Table *out, const Pairs *p, int64_t i, int64_t k) {
    TracePair n = pair_at(p, i, k);
    Cell *r = table_row(out);
    Arena *a = p->a;
    r[0] = cell_int(a, p->c->step);
    r[1] = cell_text(phase_words[p->c->pass]);
    r[2] = cell_text(p->c->op);
    r[3] = cell_text(p->c->axis ? p->c->axis : p->c->axes);
    r[4] = cell_text(p->c->value);
    r[5] = cell_int(a, member(p, i));
    r[6] = cell_int(a, member(p, k));
    r[7] = cell_real(a, n.sent);
    r[8] = cell_real(a, n.received);
    r[9] = cell_int(a, (int64_t)llround(n.sent * (double)p->c->row_bytes));
    r[10] = cell_text(p->x ? "run" : "expected");
}
/* or, where nothing is known, from rank to rank: one speaks for its group. */
static bool sends_for_all(const Pairs *p, int64_t k, int64_t rank) {
    return rank < 0 ? k == 0 || p->c->n_local : member(p, k) == rank;
}
Table pairs_table(Arena *a, const Trace *t, int64_t rank) {
    Table out = table_new(a, "pair", pair_columns, sizeof pair_columns / sizeof *pair_columns);
    Pairs p;
    int i = 0, before = -1;
    int64_t group = 0;
    while (next_pairs(a, t, rank, &i, &group, &p)) {
        if (!p.x && i == before) continue; /* nothing is known that differs from group to group, */
        before = i;
        for (int64_t k = 0; k < p.n; k++)
            for (int64_t m = 0; m < p.n && (p.x || sends_for_all(&p, k, rank)); m++)
                pair_row(&out, &p, k, m);
    }
    return out;
}

/* ---- for people ---- */
enum { MOST_COLUMNS = 16, BUSIEST = 10 };
static const char *rows_text(const Pairs *p, double rows) {
    return arena_printf(p->a, rows == floor(rows) ? "%.0f" : "%.1f", rows);
}
static void line(Str *out, const char *head, int wide, const char *const *cell, int n, int width) {
    str_addf(out, "  %-*s", wide, head);
    for (int i = 0; i < n; i++) str_addf(out, " %*s", width, cell[i]);
    str_add(out, "\n");
}
/* Columns [lo, hi) of the matrix, the rows that arrive; after the last ones what each rank sends to
 * others: rows that leave for nobody are in neither. */
static void matrix_part(Str *out, const Pairs *p, int64_t lo, int64_t hi, int wide) {
    const char *cell[MOST_COLUMNS + 1];
    bool last = hi == p->n;
    int n = (int)(hi - lo);
    for (int64_t k = lo; k < hi; k++)
        cell[k - lo] = arena_printf(p->a, "to %lld", (long long)member(p, k));
    cell[n] = "sent";
    line(out, "", 12, cell, n + last, wide);
    for (int64_t i = 0; i < p->n; i++) {
        double sent = 0;
        for (int64_t k = 0; k < p->n; k++) sent += k == i ? 0 : pair_at(p, i, k).received;
        for (int64_t k = lo; k < hi; k++) cell[k - lo] = rows_text(p, pair_at(p, i, k).received);
        cell[n] = rows_text(p, sent);
        line(out, arena_printf(p->a, "from %lld", (long long)member(p, i)), 12, cell, n + last,
             wide);
    }
    for (int64_t k = lo; k < hi; k++) {
        double got = 0;
        for (int64_t i = 0; i < p->n; i++) got += pair_at(p, i, k).received;
        cell[k - lo] = rows_text(p, got);
    }
    line(out, "received", 12, cell, n, wide);
}
static void matrix(Str *out, const Pairs *p, int width) {
    double most = 0;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->n; k++)
            most = fmax(most, (double)p->n * pair_at(p, i, k).received);
    int wide = (int)strlen(arena_printf(p->a, "to %lld", (long long)member(p, p->n - 1))),
        digits = (int)strlen(rows_text(p, most)), fit = MOST_COLUMNS;
    wide = digits > wide ? digits : wide;
    if (width > 0) fit = (width - 14) / (wide + 1) - 1;
    fit = fit < 1 ? 1 : fit > MOST_COLUMNS ? MOST_COLUMNS : fit;
    for (int64_t lo = 0; lo < p->n; lo += fit)
        matrix_part(out, p, lo, lo + fit < p->n ? lo + fit : p->n, wide);
}
typedef struct {
    double rows;
    int64_t from, to;
} Busy;
static int by_rows(const void *x, const void *y) {
    const Busy *a = x, *b = y;
    if (a->rows != b->rows) return a->rows > b->rows ? -1 : 1;
    if (a->from != b->from) return a->from < b->from ? -1 : 1;
    return a->to < b->to ? -1 : a->to > b->to;
}
static void busiest(Str *out, const Pairs *p) {
    Busy *b = ARENA_ARRAY(p->a, Busy, p->n * p->n + 1);
    int64_t n = 0;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->n; k++)
            if (i != k) b[n++] = (Busy){pair_at(p, i, k).received, member(p, i), member(p, k)};
    qsort(b, (size_t)n, sizeof *b, by_rows);
    str_addf(out, "  the %d busiest of %lld pairs (all of them: --format csv)\n", BUSIEST,
             (long long)n);
    for (int i = 0; i < BUSIEST && i < n; i++)
        str_addf(out, "  from %-6lld to %-6lld %8s\n", (long long)b[i].from, (long long)b[i].to,
                 rows_text(p, b[i].rows));
}
/* The first collective before this one whose group moves the same rows between the same ranks: the
 * way back of the way back. -1: none. */
static int same_before(const Trace *t, const Pairs *p) {
    for (int i = 0; p->x && t->collectives + i < p->c; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (c->row_bytes != p->c->row_bytes || groups_size(&c->groups) != p->n) continue;
        Pairs q = pairs_of(p->a, t, c, p->group);
        bool same = q.x != NULL && groups_count(&c->groups) == groups_count(&p->c->groups);
        for (int64_t k = 0; same && k < p->n; k++) same = member(&q, k) == member(p, k);
        size_t n = sizeof(double) * (size_t)p->x->n_to;
        same = same && q.x->n_to == p->x->n_to && !memcmp(q.x->to, p->x->to, n) &&
               !memcmp(q.x->from, p->x->from, n);
        if (same) return c->step;
    }
    return -1;
}
/* Where a sender and its receiver do not agree, rows are lost or made on the way. */
static void disagreements(Str *out, const Pairs *p) {
    int told = 0, all = 0;
    for (int64_t i = 0; i < p->n; i++)
        for (int64_t k = 0; k < p->n; k++) {
            TracePair n = pair_at(p, i, k);
            if (n.sent == n.received || all++ >= 4) continue;
            str_addf(out, "  to rank %lld came %.0f rows from rank %lld, %.0f are due\n",
                     (long long)member(p, k), n.received, (long long)member(p, i), n.sent);
            told++;
        }
    if (all > told) str_addf(out, "  and %d more pairs that do not agree\n", all - told);
}
static void sums(Str *out, const Pairs *p) {
    double moved = 0, all = 0, peak = 0;
    int64_t at = 0;
    for (int64_t k = 0; k < p->n; k++) {
        double got = 0;
        for (int64_t i = 0; i < p->n; i++) {
            double rows = pair_at(p, i, k).received;
            got += rows;
            moved += i == k ? 0 : rows;
        }
        all += got;
        if (got > peak) peak = got, at = k;
    }
    double mean = all / (double)p->n;
    str_addf(out, "  %s of %s rows go to another rank, %s", rows_text(p, moved), rows_text(p, all),
             bytes_text((int64_t)llround(moved * (double)p->c->row_bytes), p->a));
    if (mean > 0 && peak > mean)
        str_addf(out, "; received: peak over mean %.2f, rank %lld gets %s", peak / mean,
                 (long long)member(p, at), rows_text(p, peak));
    str_add(out, "\n");
}
/* Of one collective and group all that people read. */
static void one_text(Str *out, const Trace *t, const Pairs *p, int width) {
    enum { ALL = 1 << 12 };
    int same = same_before(t, p);
    str_addf(out, "step %d, %s over %s of %s: rows of %s%s\n", p->c->step, p->c->op,
             p->c->axis ? p->c->axis : p->c->axes, p->c->value, bytes_text(p->c->row_bytes, p->a),
             p->x             ? ""
             : t->n_exchanges ? ", expected (the run did not count them)"
                              : ", expected");
    if (same >= 0) {
        str_addf(out, "  as in step %d\n", same);
        return;
    }
    if (p->n <= MOST_COLUMNS) matrix(out, p, width);
    else if (!p->x && !p->c->n_local)
        str_addf(out, "  each rank sends %s rows to each other one and keeps %s\n",
                 rows_text(p, pair_at(p, 0, 1).sent), rows_text(p, pair_at(p, 0, 0).sent));
    else if (p->n <= ALL) busiest(out, p);
    if (p->x) disagreements(out, p);
    if (p->n <= ALL) sums(out, p);
}
void pairs_text(Str *out, Arena *a, const Trace *t, int64_t rank, int width) {
    Pairs p;
    int any = 0, guessed = 0, i = 0, before = -1;
    int64_t group = 0;
    while (next_pairs(a, t, rank, &i, &group, &p)) {
        if (i == before) continue; /* the first group stands for the others */
        before = i;
        int64_t others = groups_count(&p.c->groups) - 1;
        if (any++) str_add(out, "\n");
        one_text(out, t, &p, width);
        if (others > 0 && rank < 0)
            str_addf(out, "  %lld more group%s of %lld ranks: --rank\n", (long long)others,
                     others == 1 ? "" : "s", (long long)p.n);
        guessed += !p.x;
    }
    Str rows = str_new(a);
    rows_dispatched(&rows, a, t);
    if (*rows.s) str_addf(out, "\n%s", rows.s);
    if (!any) str_add(out, "no collective here moves rows of experts\n");
    if (guessed)
        str_add(out,
                "\nexpected: all experts are asked for as often. Which rows there are, only a\n"
                "run knows: `shardproof run`, then `comms --pairs` of its trace.\n");
}
