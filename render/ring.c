/* Ring collectives step by step. See ring.h. */
#include "render/ring.h"
#include <string.h>

static int wrap(int i, int n) { return (i % n + n) % n; }

/* The chunk that rank r sends in step s (from 1). Reduce-scatter: chunk c starts beside rank c and ends on it. */
static int chunk_sent(const Ring *r, int rank, int s) {
    int half = r->n - 1;
    if (r->kind == RING_GATHER) return wrap(rank - s + 1, r->n);
    return s <= half ? wrap(rank - s, r->n) : wrap(rank - (s - half) + 1, r->n);
}
static bool adds(const Ring *r, int s) { return r->kind == RING_SCATTER || (r->kind == RING_REDUCE && s < r->n); }

static void mark_sends(Ring *r) {
    for (int c = 0; c < r->n; c++)
        for (int k = 0; k < r->n; k++) r->cell[c][k].sends = false;
    for (int k = 0; k < r->n && r->step < r->steps; k++) r->cell[chunk_sent(r, k, r->step + 1)][k].sends = true;
}

int ring_steps(RingKind kind, int n) { return kind == RING_REDUCE ? 2 * (n - 1) : n - 1; }

void ring_start(Ring *r, RingKind kind, int n, bool max, double number[RING_MAX][RING_MAX]) {
    memset(r, 0, sizeof *r);
    *r = (Ring){.n = n, .steps = ring_steps(kind, n), .kind = kind, .max = max};
    for (int c = 0; c < n; c++)
        for (int k = 0; k < n; k++) {
            bool has = kind != RING_GATHER || c == k;
            r->cell[c][k] = (RingCell){.held = has,
                                       .done = has && (kind == RING_GATHER || n == 1),
                                       .value = has ? number[c][k] : 0,
                                       .first = k,
                                       .terms = has};
        }
    mark_sends(r);
}

/* What arrives: added to what is there, or put in its place. */
static void arrive(const Ring *r, RingCell *at, RingCell in) {
    bool sum = adds(r, r->step);
    if (!sum) {
        *at = (RingCell){.held = true, .done = true, .value = in.value, .first = in.first, .terms = in.terms};
    } else {
        at->value = !r->max ? at->value + in.value : in.value > at->value ? in.value : at->value;
        at->first = in.first;
        at->terms = in.terms + 1;
        at->done = at->terms == r->n;
    }
    at->fresh = true;
}

bool ring_next(Ring *r) {
    if (r->step >= r->steps) return false;
    RingCell before[RING_MAX][RING_MAX];
    memcpy(before, r->cell, sizeof before);
    r->step++;
    for (int c = 0; c < r->n; c++)
        for (int k = 0; k < r->n; k++) r->cell[c][k].fresh = false;
    for (int k = 0; k < r->n; k++) {
        int c = chunk_sent(r, k, r->step), to = wrap(k + 1, r->n);
        if (adds(r, r->step)) r->cell[c][k].stale = true;
        arrive(r, &r->cell[c][to], before[c][k]);
    }
    mark_sends(r);
    return true;
}
