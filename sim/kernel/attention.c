/* Causal attention of one head on one thread, forward and backward. It refuses to let tiles matter:
 * a row's sums run over the keys in absolute order (see attention.inc). Keys that a query may not
 * see enter its sums as exact zeros, so their values must be finite: a NaN or Inf in v (or,
 * backward, k) may reach rows of the same tile that do not see it. */
#include "kernel/attention.h"
#include "kernel/gemm.h"
#include "kernel/isa.h"
#include <math.h>
#include <string.h>

/* Rows of scores per product, backward. ROWS_BWD is part of the order of summation over queries,
 * ROWS_SUB decides no bit. */
enum { ROWS_BWD = GEMM_KB, ROWS_SUB = 144 };
/* Forward: at most this many panels of queries go over the keys together, if their probabilities
 * fit in half of a processor's own cache of 1 MiB. Neither decides a bit. */
enum { PANELS_TOGETHER = 4, PANELS_BYTES = 1 << 19 };

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }
static int64_t max64(int64_t a, int64_t b) { return a > b ? a : b; }

/* How many keys lie at positions of at most `pos`. */
static int64_t keys_up_to(const AttentionMask *m, int64_t pos, int64_t ns) {
    if (!m->key_pos) return pos < 0 ? 0 : pos < ns ? pos + 1 : ns;
    int64_t lo = 0, hi = ns;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (m->key_pos[mid] <= pos) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}
AttentionRun attention_document(const AttentionDocuments *d, int64_t pos) {
    int lo = 0, hi = d->n - 1;
    while (lo < hi) {
        int mid = lo + (hi - lo) / 2;
        if (d->run[mid].lim <= pos) lo = mid + 1;
        else hi = mid;
    }
    return d->run[lo];
}
AttentionRun attention_run(const AttentionMask *m, int64_t t, int64_t ns) {
    int64_t pos = m->query_pos ? m->query_pos[t] : t;
    if (m->full && !m->documents) return (AttentionRun){0, ns};
    AttentionRun document = {0, INT64_MAX};
    if (m->documents) document = attention_document(m->documents, pos);
    int64_t first = document.from, last = m->full ? document.lim - 1 : pos;
    if (m->chunk > 0) first += (pos - first) / m->chunk * m->chunk;
    if (m->window > 0 && pos - m->window + 1 > first) first = pos - m->window + 1;
    return (AttentionRun){keys_up_to(m, first - 1, ns), keys_up_to(m, last, ns)};
}

/* What queries 0..n-1 of a chunk see if each sees at most `most` keys: 1, 2, .. most, most, .. */
static double pairs_of_chunk(int64_t n, int64_t most) {
    double rising = (double)(n < most ? n : most);
    return rising * (rising + 1) / 2 + (double)most * ((double)n - rising);
}
/* The same of T queries, each of which sees all of S keys up to its own position. */
static double pairs_before(int64_t T, const int64_t *pos, int64_t S) {
    int64_t pairs = 0;
    for (int64_t t = 0; t < T; t++) {
        int64_t n = pos[t] < S ? pos[t] + 1 : S;
        pairs += n > 0 ? n : 0;
    }
    return (double)pairs;
}
double attention_pairs(const AttentionMask *m, int64_t T, int64_t S) {
    if (m->full && !m->documents) return (double)T * (double)S;
    bool first = !m->query_pos && !m->key_pos && !m->documents; /* both stand at 0, 1, .. */
    if (first && !m->chunk && !m->window) return (double)T * ((double)S + 1) / 2;
    double pairs = 0;
    if (first && T <= S) {
        int64_t chunk = m->chunk > 0 && m->chunk < T ? m->chunk : T,
                most = m->window > 0 ? m->window : T;
        if (!T) return 0;
        return (double)(T / chunk) * pairs_of_chunk(chunk, most) + pairs_of_chunk(T % chunk, most);
    }
    if (m->query_pos && !m->key_pos && !m->chunk && !m->window && !m->documents)
        return pairs_before(T, m->query_pos, S);
    for (int64_t t = 0; t < T; t++) {
        AttentionRun run = attention_run(m, t, S);
        pairs += (double)(run.lim - run.from);
    }
    return pairs;
}

/* What rows t0..t0+n-1 see: each row's run, and in *base and the result the keys between which all
 * of them lie. The base is a multiple of a block of keys, so that blocks begin where they do
 * without chunks. */
static int64_t runs_of_rows(int64_t t0, int64_t n, int64_t ns, const AttentionMask *m,
                            AttentionRun *run, int64_t *base) {
    int64_t most = 0, least = ns;
    for (int64_t i = 0; i < n; i++) {
        run[i] = attention_run(m, t0 + i, ns);
        if (run[i].lim > most) most = run[i].lim;
        least = min64(least, run[i].from);
    }
    *base = least / GEMM_KB * GEMM_KB;
    return most;
}

/* See forward_room and backward; as much on every machine: the widest tile has 128 bytes. */
int64_t attention_scratch(int64_t nt, int64_t ns, int64_t wide, bool backward, int64_t size) {
    const double keys = (double)ns, w = (double)wide, rows = (double)min64(nt, ROWS_BWD),
                 panels = (double)PANELS_TOGETHER * 128 / (double)size;
    const double forward = 2 * keys * w + panels * (keys + 2 * w),
                 back = 3 * rows * keys + 3 * keys * w;
    return (int64_t)kernel_scratch_size(
        (size_t)(size * (int64_t)(backward ? fmax(forward, back) : forward)));
}

#define BOTH "kernel/attention.inc"
#include "kernel/both.inc"
