/* Causal attention of one head on one thread, forward and backward. It refuses to let tiles matter:
 * a row's sums run over the keys in absolute order (see attention.inc). Keys that a query may not
 * see enter its sums as exact zeros, so their values must be finite: a NaN or Inf in v (or,
 * backward, k) may reach rows of the same tile that do not see it. */
#include "kernel/attention.h"
#include "kernel/gemm.h"
#include "kernel/isa.h"
#include <string.h>

/* Rows of scores per product. ROWS_BWD is part of the order of summation over queries; the others
 * decide no bit. */
enum { ROWS_FWD = 144, ROWS_BWD = GEMM_KB, ROWS_SUB = 144 };

/* How many keys (a prefix: keys ascend) query t may see. */
static int64_t visible(int64_t t, int64_t ns, const int64_t *query_pos, const int64_t *key_pos) {
    int64_t pos = query_pos ? query_pos[t] : t;
    if (!key_pos) return pos < 0 ? 0 : pos < ns ? pos + 1 : ns;
    int64_t lo = 0, hi = ns;
    while (lo < hi) {
        int64_t mid = lo + (hi - lo) / 2;
        if (key_pos[mid] <= pos) lo = mid + 1;
        else hi = mid;
    }
    return lo;
}

/* The largest prefix that rows t0..t0+n-1 see; each row's own in lim. */
static int64_t visible_rows(int64_t t0, int64_t n, int64_t ns, const int64_t *query_pos,
                            const int64_t *key_pos, int64_t *lim) {
    int64_t most = 0;
    for (int64_t i = 0; i < n; i++) {
        lim[i] = visible(t0 + i, ns, query_pos, key_pos);
        if (lim[i] > most) most = lim[i];
    }
    return most;
}

static int64_t min64(int64_t a, int64_t b) { return a < b ? a : b; }

static GemmView view(const void *p, int64_t rs, int64_t cs) {
    return (GemmView){p, NULL, NULL, rs, cs};
}

#define T float
#define R f32
#include "kernel/attention.inc"
#undef T
#undef R
#define T double
#define R f64
#include "kernel/attention.inc"
