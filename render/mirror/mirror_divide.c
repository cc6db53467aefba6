/* Strips that are too long for one page of fixed height, as several chains. Refuses to know what a
 * page is: it is told how many rows one may have. */
#include "render/mirror/mirror.h"
#include "base/text.h"

/* What row `r` reads of what the row above it makes; NULL: nothing. */
static const char *handed_down(const MirrorStrip *s, int r) {
    for (int i = 0; i < s->row[r].n_in; i++)
        for (int k = 0; k < s->row[r - 1].n_out; k++)
            if (text_same(s->row[r].in[i], s->row[r - 1].out[k])) return s->row[r].in[i];
    return NULL;
}
/* What a chain begins with whose first row is `r`. */
static const char *begun_with(const MirrorStrip *s, int r) {
    const char *v = handed_down(s, r);
    return v ? v : s->row[r].n_in ? s->row[r].in[0] : s->from;
}
/* What row `r` makes for those below it. */
static const char *left_by(const MirrorStrip *s, int r) {
    for (int i = s->row[r].n_out - 1; i >= 0; i--)
        for (int k = r + 1; k < s->n; k++)
            for (int j = 0; j < s->row[k].n_in; j++)
                if (text_same(s->row[k].in[j], s->row[r].out[i])) return s->row[r].out[i];
    return s->row[r].n_out ? s->row[r].out[0] : s->branch;
}
/* Rows [lo, hi) of a strip as the k-th of n chains, from 1. */
static MirrorStrip piece(const Mirror *m, const MirrorStrip *s, int lo, int hi, int k, int n) {
    Arena *a = m->g->arena;
    BlockStrip *named = arena_memdup(a, s->strip, sizeof *named);
    named->title = arena_printf(a, "%s, %d of %d", s->strip->title, k, n);
    MirrorStrip p = *s;
    p.strip = named;
    p.plain = p.piece = true;
    bool from = s->row[lo].kind == ROW_FROM, last = s->row[hi - 1].kind == ROW_FROM;
    p.n = hi - lo - from - last;
    p.row = s->row + lo + from;
    if (lo) p.from = from ? s->row[lo].out[0] : begun_with(s, lo);
    if (hi < s->n) p.branch = handed_down(s, hi);
    if (hi < s->n && !p.branch) p.branch = left_by(s, hi - 1);
    if (last) p.branch = left_by(s, hi - 2);
    if (hi == s->n) p.added = s->from, p.sum = s->to;
    p.to = p.branch;
    p.up = lo ? true : s->up;
    mirror_pass_piece(m, s, lo + from, &p);
    return p;
}
/* The first row of the k-th of n pieces (from 0) of rows [lo, hi): one that the row above it hands
 * something to, if there is any near. */
static int first_row(const MirrorStrip *s, int lo, int hi, int k, int n) {
    const int at = lo + (hi - lo) * k / n;
    for (int way = 0; way < 5 && k > 0 && k < n; way++) {
        const int r = at + (way % 2 ? -(way + 1) / 2 : way / 2);
        if (r > lo + (hi - lo) * (k - 1) / n + 2 && r < hi && s->row[r].fed[0] != FED_NOT) return r;
    }
    return at;
}
/* Where pieces begin, in order. */
typedef struct {
    int n, *row;
} Cuts;
/* Rows [lo, hi) in pieces of at most `most`. */
static void cut(Cuts *c, const MirrorStrip *s, int lo, int hi, int most) {
    const int n = (hi - lo + most - 1) / most;
    for (int k = 0; k < n; k++) c->row[c->n++] = first_row(s, lo, hi, k, n);
}
/* Where the pieces of a strip begin. A ring whose hops are a band stays whole, with what follows it
 * or comes before it if a page holds both. */
static Cuts cuts_of(Arena *a, const Mirror *m, const MirrorStrip *s, MirrorCut how) {
    const int most = how.most;
    const MirrorFold f = mirror_fold(m->g, s);
    Cuts c = {0, ARENA_ARRAY(a, int, s->n + 2)};
    const int ring = f.from - f.first + 1, after = s->n - f.until;
    if (!f.hops || how.torn) {
        cut(&c, s, 0, s->n, most);
    } else if (f.first + ring + after <= most) {
        c.row[c.n++] = 0;
    } else if (ring + after <= most) {
        cut(&c, s, 0, f.first, most);
        c.row[c.n++] = f.first;
    } else if (f.first + ring <= most) {
        c.row[c.n++] = 0;
        cut(&c, s, f.until, s->n, most);
    } else {
        cut(&c, s, 0, f.first, most);
        c.row[c.n++] = f.first;
        cut(&c, s, f.until, s->n, most);
    }
    return c;
}
const Mirror *mirror_divide(Arena *a, const Mirror *m, const MirrorCut *how) {
    Mirror *d = arena_memdup(a, m, sizeof *d);
    d->n = 0;
    for (int i = 0; i < m->n; i++) {
        const MirrorStrip *s = &m->strip[i];
        Cuts c = cuts_of(a, m, s, how[i]);
        const int left = BLOCK_MAX_STRIPS - d->n - (m->n - i - 1);
        if (c.n > left) c.n = 0, cut(&c, s, 0, s->n, (s->n + left - 1) / left);
        if (c.n < 2 || s->plain) {
            d->strip[d->n] = *s;
            d->strip[d->n++].number = i;
            continue;
        }
        for (int k = 0; k < c.n; k++) {
            d->strip[d->n] = piece(m, s, c.row[k], k + 1 < c.n ? c.row[k + 1] : s->n, k + 1, c.n);
            d->strip[d->n++].number = i;
        }
    }
    return d;
}
