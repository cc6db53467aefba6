/* Names at leaders, row by row. See callouts.h. A row takes the most names that it can: what it
 * leaves goes further out, and its leader passes. Refuses to bend a leader, or to move it. */
#include "render/timeline/callouts.h"
#include <math.h>

enum { HOLD = 1 }; /* a name reaches at least so far to both sides of its leader */

typedef struct {
    Callout *c;
    int n;
    double from, to;
    bool outermost; /* what it leaves has no leader */
} Row;
/* Of a row up to some callout: from where on the next name may stand, and the next leader pass;
 * INFINITY: it is not to be had. */
typedef struct {
    double name, leader;
} Filled;
static const Filled nothing = {-INFINITY, -INFINITY}, never = {INFINITY, INFINITY};

static Filled with_name(const Row *r, const Callout *c, Filled f) {
    const double x = fmax(fmax(f.name, r->from), c->at - c->w + HOLD), end = x + c->w;
    const bool room = x <= c->at - HOLD && end <= r->to;
    return room ? (Filled){end + CALLOUT_APART, end + CALLOUT_CLEAR} : never;
}
static Filled without(const Row *r, const Callout *c, Filled f) {
    if (r->outermost) return f;
    if (f.leader > c->at) return never;
    return (Filled){fmax(f.name, c->at + CALLOUT_CLEAR), f.leader};
}

/* What stands in the row at i: its name or its leader, from a to b; false: nothing. */
static bool stands(const Row *r, int i, int row, double *a, double *b) {
    const Callout *c = &r->c[i];
    if (c->row >= 0 && c->row < row) return false;
    if (c->row < 0 && r->outermost) return false;
    *a = c->row == row ? c->x : c->at;
    *b = c->row == row ? c->x + c->w : c->at;
    return true;
}
/* Names moved to the middle of their leaders, as far as what stands beside them lets them. */
static void centre(const Row *r, int row) {
    enum { SWEEPS = 4 };
    for (int i = 0; i < SWEEPS * r->n; i++) {
        Callout *c = &r->c[i % r->n];
        if (c->row != row) continue;
        double lo = fmax(r->from, c->at - c->w + HOLD), hi = fmin(r->to - c->w, c->at - HOLD), a, b;
        for (int k = 0; k < r->n; k++) {
            if (k == i % r->n || !stands(r, k, row, &a, &b)) continue;
            const double gap = b > a ? CALLOUT_APART : CALLOUT_CLEAR;
            if (k < i % r->n) lo = fmax(lo, b + gap);
            else hi = fmin(hi, a - gap - c->w);
        }
        c->x = fmax(lo, fmin(hi, c->at - c->w / 2));
    }
}

/* Fills a row with the most names of those that have none; returns how many. */
static int fill_row(Arena *a, const Row *r, int row) {
    const int n = r->n, wide = n + 1;
    /* far[i * wide + k]: the least that is taken by the first i callouts with k names */
    Filled *far = ARENA_ARRAY(a, Filled, (size_t)wide * (size_t)wide);
    int most = 0;
    for (int i = 0; i < wide * wide; i++) far[i] = i ? never : nothing;
    for (int i = 0; i < n; i++)
        for (int k = 0; k <= i; k++) {
            const Filled f = far[i * wide + k];
            Filled *next = &far[(i + 1) * wide + k];
            if (f.name == INFINITY) continue;
            const bool placed = r->c[i].row >= 0;
            const Filled pass = placed ? f : without(r, &r->c[i], f);
            if (pass.name < next->name) *next = pass;
            const Filled named = placed ? never : with_name(r, &r->c[i], f);
            if (named.name < next[1].name) next[1] = named;
        }
    for (int k = 1; k <= n; k++)
        if (far[n * wide + k].name < INFINITY) most = k;
    for (int i = n, k = most; i > 0; i--) { /* the way back */
        const Filled got = far[i * wide + k], f = far[(i - 1) * wide + k];
        const bool placed = r->c[i - 1].row >= 0;
        const Filled pass = f.name == INFINITY || placed ? f : without(r, &r->c[i - 1], f);
        if (pass.name == got.name && pass.leader == got.leader) continue;
        r->c[i - 1].row = row;
        r->c[i - 1].x = got.name - CALLOUT_APART - r->c[i - 1].w;
        k--;
    }
    centre(r, row);
    return most;
}

/* Lays them in so many rows; returns how many have a place. */
static int lay_in(Arena *a, Row r, int rows) {
    int named = 0;
    for (int i = 0; i < r.n; i++) r.c[i].row = -1;
    for (int row = 0; row < rows && named < r.n; row++) {
        r.outermost = row + 1 == rows;
        named += fill_row(a, &r, row);
    }
    return named;
}
int callouts_lay(Arena *a, Callout *c, int n, double from, double to, int rows) {
    const Row r = {c, n, from, to, false};
    int best = 0, most = 0;
    for (int i = 1; i <= rows && most < n; i++) {
        const int named = lay_in(a, r, i);
        if (named > most) best = i, most = named;
    }
    return lay_in(a, r, best) ? best : 0;
}
