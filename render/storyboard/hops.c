/* See hops.h. */
#include "render/storyboard/hops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* The step of a ring whose part the record is; -1: it is none. */
static int part_of(const TraceCompute *c) {
    bool forward = phase_or_forward(c->pass) == PHASE_FORWARD && c->makes.role == OF_ITSELF;
    return forward ? words_attention_part(c->makes.of) : -1;
}
static const TraceCompute *first_part(const Trace *t, int layer) {
    for (int i = 0; i < t->n_computes; i++)
        if (part_of(&t->computes[i]) == 0 && (layer < 0 || t->computes[i].layer == layer))
            return &t->computes[i];
    return NULL;
}
bool hops_there(const Trace *t) { return first_part(t, -1) != NULL; }

static const TraceShape *made_by(const Trace *t, int step) {
    for (int i = 0; i < t->n_values; i++)
        if (t->values[i].step == step) return &t->values[i].shape;
    return NULL;
}
/* The one axis that cuts the sequence of a part's queries; -1: none, or several. */
static int ring_axis(const Trace *t, const TraceShape *s, PlaceCut *order) {
    int found = -1;
    for (int i = 0; s && i < s->n_places; i++) {
        int dim = -1;
        PlaceCut how = place_cut(s->place[i].place, &dim);
        for (int x = 0; how != PLACE_WHOLE && dim == 1 && x < t->n_axes; x++) {
            if (strcmp(t->axes[x].name, s->place[i].axis) != 0 || t->axes[x].size < 2) continue;
            if (found >= 0) return -1;
            found = x;
            *order = how;
        }
    }
    return found;
}
/* Does a part read what the hop brings: keys or values themselves? */
static bool read_by_part(const Trace *t, int hop) {
    for (int i = 0; i < t->n_computes; i++)
        for (int k = 0; part_of(&t->computes[i]) >= 0 && k < t->computes[i].n_inputs; k++)
            if (t->computes[i].input_step[k] == hop) return true;
    return false;
}
/* The work of the ring whose place k is rank[k]. */
static void work_of(const Hops *h, const int64_t *rank, double work[HOPS_MAX][HOPS_MAX]) {
    const Trace *t = h->c->t;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        int j = part_of(c);
        if (j < 0 || j >= h->n || c->layer != h->layer) continue;
        for (int k = 0; k < h->n; k++)
            if (!c->ranks.n || rankset_has(&c->ranks, rank[k])) work[j][k] = c->flops;
    }
}
static void find_work(Hops *h) {
    const Trace *t = h->c->t;
    work_of(h, h->rank, h->work);
    for (int j = 0; j < h->n; j++)
        for (int k = 0; k < h->n; k++) {
            h->total += h->work[j][k];
            h->most = fmax(h->most, h->work[j][k]);
        }
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        const CollWord *w = coll_word(x->op);
        bool hop = w && w->ahead && phase_or_forward(x->pass) == PHASE_FORWARD;
        if (!hop || x->layer != h->layer) continue;
        h->sent += x->bytes_sent;
        h->latent |= !read_by_part(t, x->step);
    }
}
int hops_keys(const Hops *h, int j, int k) { return ((k - j) % h->n + h->n) % h->n; }

/* ---- the mask ---- */
/* Piece i of a place, counted along the sequence. */
static int piece_at(const Hops *h, int place, int i) { return i ? 2 * h->n - 1 - place : place; }
/* Rows of a piece. */
static int64_t rows_of_piece(const Hops *h) {
    int64_t parts = (int64_t)h->n * (h->order == PLACE_ZIGZAG ? 2 : 1);
    return (h->S + parts - 1) / parts;
}
/* The largest whole number that is at most a / b. */
static int64_t floor_of(int64_t a, int64_t b) { return a / b - (a % b < 0); }
HopsBand hops_band(const Hops *h, int queries, int i, int keys, int m) {
    int64_t step = h->order == PLACE_STRIPED ? h->n : 1, len = rows_of_piece(h),
            apart = step > 1 ? queries - keys
                             : (piece_at(h, queries, i) - (int64_t)piece_at(h, keys, m)) * len;
    return (HopsBand){h->window ? -floor_of(h->window - 1 - apart, step) : -h->S,
                      h->full ? h->S : floor_of(apart, step)};
}
static int64_t between(int64_t x, int64_t low, int64_t high) {
    return x < low ? low : x > high ? high : x;
}
HopsDocument hops_rows(const Hops *h, int place, int i, int64_t from, int64_t lim) {
    int64_t len = rows_of_piece(h), first = piece_at(h, place, i) * len;
    if (h->order == PLACE_STRIPED) { /* row x is position x n + place */
        int64_t a = from - place + h->n - 1, b = lim - place + h->n - 1;
        return (HopsDocument){a > 0 ? a / h->n : 0, b > 0 ? b / h->n : 0};
    }
    return (HopsDocument){between(from - first, 0, len),
                          between((lim < h->S ? lim : h->S) - first, 0, len)};
}
static int pieces_of(const Hops *h) { return h->order == PLACE_ZIGZAG ? 2 : 1; }
/* Keys of a place in [from, lim). */
static double keys_in(const Hops *h, int place, int64_t from, int64_t lim) {
    double n = 0;
    for (int m = 0; m < pieces_of(h); m++) {
        HopsDocument rows = hops_rows(h, place, m, from, lim);
        n += (double)(rows.lim - rows.from);
    }
    return n;
}
/* Pairs of query and key that the mask leaves in a row, of two places. */
static double pairs_of(const Hops *h, const HopsRow *row, int queries, int keys) {
    double pairs = 0;
    for (int d = 0; d < row->n_blocks; d++)
        for (int i = 0; i < pieces_of(h); i++) {
            HopsDocument doc = row->block[d], rows = hops_rows(h, queries, i, doc.from, doc.lim);
            for (int64_t x = rows.from; x < rows.lim; x++) {
                int64_t q = h->order == PLACE_STRIPED
                                ? x * h->n + queries
                                : piece_at(h, queries, i) * rows_of_piece(h) + x;
                int64_t from = h->window ? q - h->window + 1 : doc.from;
                pairs +=
                    keys_in(h, keys, from > doc.from ? from : doc.from, h->full ? doc.lim : q + 1);
            }
        }
    return pairs;
}
static double all_pairs(const Hops *h, const HopsRow *row) {
    double all = 0;
    for (int d = 0; d < row->n_blocks; d++) {
        double n = (double)(row->block[d].lim - row->block[d].from),
               w = h->window ? fmin(n, (double)h->window) : n;
        all += h->full ? n * n : w * (w + 1) / 2 + (n - w) * w;
    }
    return all;
}
/* What none sees of another: documents, and chunks counted from where each begins. */
static void find_blocks(const Hops *h, HopsRow *row) {
    HopsDocument *b = NULL;
    int n = 0, cap = 0;
    for (int d = 0; d < row->n_documents; d++) {
        HopsDocument doc = row->document[d];
        int64_t each = h->chunk ? h->chunk : doc.lim - doc.from;
        for (int64_t at = doc.from; at < doc.lim; at += each)
            *ARENA_PUSH(h->a, b, n, cap) =
                (HopsDocument){at, at + each < doc.lim ? at + each : doc.lim};
    }
    row->block = b, row->n_blocks = n;
}
/* Is the work that of the mask within the documents of these n rows? Fills their shares. */
static bool is_masked(const Hops *h, HopsRow *row, int n) {
    double all = 0;
    for (int r = 0; r < n; r++)
        find_blocks(h, &row[r]), all += row[r].times * all_pairs(h, &row[r]);
    if (!(h->total > 0)) return false;
    for (int j = 0; j < h->n; j++)
        for (int k = 0; k < h->n; k++) {
            double due = 0;
            for (int r = 0; r < n; r++)
                due += row[r].share[j][k] =
                    row[r].times * pairs_of(h, &row[r], k, hops_keys(h, j, k)) / all;
            if (fabs(h->work[j][k] / h->total - due) > 1e-9) return false;
        }
    return true;
}
/* The documents of the next row of "5 7 12 | 24"; NULL: there are no more. */
static const char *next_row(Hops *h, const char *text, HopsRow *row) {
    HopsDocument *d = NULL;
    int n = 0, cap = 0;
    int64_t at = 0;
    while (*text == ' ' || *text == '|') text++;
    for (char *end; *text && *text != '|'; text = end) {
        long long tokens = strtoll(text, &end, 10);
        if (end == text || tokens < 1) return NULL;
        *ARENA_PUSH(h->a, d, n, cap) = (HopsDocument){at, at + tokens};
        at += tokens;
        while (*end == ' ') end++;
    }
    if (!n || at != h->S) return NULL;
    *row = (HopsRow){.n_documents = n, .document = d, .times = 1};
    return text;
}
static bool same_documents(const HopsRow *x, const HopsRow *y) {
    return x->n_documents == y->n_documents &&
           !memcmp(x->document, y->document, (size_t)x->n_documents * sizeof *x->document);
}
/* Those of rows [from, lim) that differ, into `to`; how many. */
static int distinct(const HopsRow *row, int from, int lim, HopsRow *to) {
    int n = 0;
    for (int r = from; r < lim; r++) {
        int k = 0;
        while (k < n && !same_documents(&to[k], &row[r])) k++;
        if (k < n) to[k].times++;
        else to[n++] = row[r];
    }
    return n;
}
/* The mask that the work is that of: one document, or those of the rows that the trace names which
 * the ranks of a ring hold, as the batch is cut: so many in a row. */
static void find_mask(Hops *h) {
    enum { MOST = 64 };
    const Trace *t = h->c->t;
    HopsDocument *one = ARENA_NEW(h->a, HopsDocument);
    HopsRow *row = h->row = ARENA_ARRAY(h->a, HopsRow, MOST + 1), named[MOST];
    *one = (HopsDocument){0, h->S};
    *row = (HopsRow){.n_documents = 1, .document = one, .times = 1};
    h->n_rows = 1;
    h->known = is_masked(h, row, 1);
    const char *text = NULL;
    for (int i = 0; i < t->n_settings; i++)
        if (!strcmp(t->settings[i].name, "documents")) text = t->settings[i].text;
    int n = 0;
    while (text && n < MOST && (text = next_row(h, text, &named[n]))) n++;
    for (int each = 1; each <= n && !h->known; each++)
        for (int from = 0; from < n && !h->known; from += each) {
            h->n_rows = distinct(named, from, from + each < n ? from + each : n, row);
            h->known = is_masked(h, row, h->n_rows);
        }
    if (h->known) return;
    *row = (HopsRow){.n_documents = 1, .document = one, .times = 1};
    h->n_rows = 1;
    for (int j = 0; j < h->n; j++)
        for (int k = 0; k < h->n && h->total > 0; k++) row->share[j][k] = h->work[j][k] / h->total;
}

/* ---- other rings ---- */
static int64_t stride_of(const Trace *t, int axis) {
    int64_t stride = 1;
    for (int x = axis + 1; x < t->n_axes; x++) stride *= t->axes[x].size;
    return stride;
}
/* What the ranks along an axis have of a part: another coordinate has other ones of these. */
static const char *along(const TraceShape *s, const char *axis) {
    for (int i = 0; i < s->n_places; i++) {
        int dim = -1;
        if (strcmp(s->place[i].axis, axis) != 0) continue;
        if (place_cut(s->place[i].place, &dim) != PLACE_WHOLE)
            return dim == 0 ? "other rows of the batch" : "other heads";
    }
    return "the same once more";
}
/* Is the tensor's heads' cut by this axis made by an all-to-all, before and after the ring? */
static bool is_swapped(const Hops *h, const char *axis) {
    const Trace *t = h->c->t;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        const CollWord *w = coll_word(x->op);
        if (w && w->pairs && x->layer == h->layer && x->axes && !strcmp(x->axes, axis)) return true;
    }
    return false;
}
/* How many rings there are, and whether all have the same work. */
static int64_t count_rings(const Hops *h, const TraceShape *s, int64_t stride, bool *alike) {
    enum { MOST = 1024 }; /* rings that are compared */
    const Trace *t = h->c->t;
    int64_t n = 0, rank[HOPS_MAX];
    *alike = true;
    for (int64_t r = 0; r < t->ranks; r++) {
        if (r / stride % h->n || !words_find_local(s, r)) continue;
        if (++n > MOST) *alike = false;
        if (!*alike) continue;
        double work[HOPS_MAX][HOPS_MAX] = {{0}};
        for (int k = 0; k < h->n; k++) rank[k] = r + k * stride;
        work_of(h, rank, work);
        for (int j = 0; j < h->n; j++)
            for (int k = 0; k < h->n; k++) *alike &= work[j][k] == h->work[j][k];
    }
    return n;
}
/* "This is the ring of ranks 0,2, one of 2 with the same work; along up other heads". */
static void find_others(Hops *h, const TraceShape *s, int axis) {
    const Trace *t = h->c->t;
    bool alike;
    int64_t n = count_rings(h, s, stride_of(t, axis), &alike);
    if (n < 2) return;
    RankSet own = rankset_from(h->a, h->rank, h->n);
    Str text = str_new(h->a);
    str_addf(&text, "This is the ring of ranks %s, one of %lld%s", rankset_text(&own, h->a),
             (long long)n, alike ? " with the same work" : "; --rank shows the others");
    for (int x = 0; x < t->n_axes; x++) {
        const char *name = t->axes[x].name;
        int64_t next = h->rank[0] / stride_of(t, x) % t->axes[x].size ? -1 : 1;
        if (x == axis || t->axes[x].size < 2 ||
            !words_find_local(s, h->rank[0] + next * stride_of(t, x)))
            continue;
        str_addf(&text, "; along %s %s%s", name, along(s, name),
                 is_swapped(h, name) ? ", brought by all-to-alls before and after the ring" : "");
    }
    h->others = text.s;
}
/* What the mask is beside the causal one, or in its place. */
static void read_mask(Hops *h, const char *mask) {
    if (!mask) return;
    const char *window = strstr(mask, "window "), *chunk = strstr(mask, "chunk ");
    if (window) h->window = strtoll(window + 7, NULL, 10);
    if (chunk) h->chunk = strtoll(chunk + 6, NULL, 10);
    h->full = !strcmp(mask, "none");
}

/* The axis of a ring that can be drawn, its first part and what that makes; -1: there is none. */
static int drawn_axis(const ViewCall *c, const TraceCompute **first, const TraceShape **s,
                      PlaceCut *order) {
    *first = first_part(c->t, c->o->layer);
    *s = *first ? made_by(c->t, (*first)->step) : NULL;
    int axis = ring_axis(c->t, *s, order);
    return axis >= 0 && c->t->axes[axis].size <= HOPS_MAX ? axis : -1;
}
bool hops_drawn(const ViewCall *c) {
    const TraceCompute *first;
    const TraceShape *s;
    PlaceCut order;
    return drawn_axis(c, &first, &s, &order) >= 0;
}
bool hops_prepare(const ViewCall *c, Hops *h) {
    const Trace *t = c->t;
    *h = (Hops){.c = c, .a = c->arena};
    const TraceCompute *first;
    const TraceShape *s;
    int axis = drawn_axis(c, &first, &s, &h->order);
    if (axis < 0) {
        diag_error(c->d, "E0211", diag_nowhere,
                   first ? "a ring of 2 to 16 ranks" : "context_parallel: {mode: ring}",
                   first ? "this ring cannot be drawn step by step"
                         : "nothing to draw in view 'storyboard': the trace has no ring attention");
        return false;
    }
    h->layer = first->layer;
    h->axis = t->axes[axis].name;
    h->n = (int)t->axes[axis].size;
    h->S = s->global_shape[1];
    int64_t stride = stride_of(t, axis), base = c->o->rank >= 0 ? c->o->rank : 0;
    if (first->ranks.n && !words_find_local(s, base)) base = rankset_first(&first->ranks);
    for (int k = 0; k < h->n; k++) h->rank[k] = base + (k - base / stride % h->n) * stride;
    find_work(h);
    read_mask(h, first->mask);
    find_mask(h);
    find_others(h, s, axis);
    return true;
}
const char *hops_tokens(const Hops *h, int place) {
    int64_t len = rows_of_piece(h);
    Str s = str_new(h->a);
    if (h->order == PLACE_STRIPED) {
        int64_t n = hops_rows(h, place, 0, 0, h->S).lim;
        for (int64_t x = 0; x < n; x++) {
            if (n > 5 && x == 3) str_add(&s, ", …");
            bool shown = n <= 5 || x < 3 || x == n - 1;
            if (shown)
                str_addf(&s, "%s%lld", x ? (n > 5 && x > 3 ? " " : ", ") : "",
                         (long long)(x * h->n + place));
        }
        return s.s ? s.s : "none";
    }
    for (int i = 0; i < pieces_of(h); i++) {
        int64_t first = piece_at(h, place, i) * len,
                last = first + hops_rows(h, place, i, 0, h->S).lim - 1;
        if (last < first) continue; /* fewer tokens than pieces */
        /* the two pieces in the middle are one range */
        bool joins = i + 1 < pieces_of(h) && piece_at(h, place, i + 1) * len == last + 1;
        if (joins) last += hops_rows(h, place, ++i, 0, h->S).lim;
        str_addf(&s, "%s%lld", s.n ? ", " : "", (long long)first);
        if (last > first) str_addf(&s, "-%lld", (long long)last);
    }
    return s.n ? s.s : "none";
}
const char *hops_most(const Hops *h, const HopsRow *row, int j, int *place) {
    int64_t ranks[HOPS_MAX] = {0}, n = 0;
    *place = 0;
    for (int k = 1; k < h->n; k++)
        if (row->share[j][k] > row->share[j][*place]) *place = k;
    for (int k = 0; k < h->n; k++)
        if (row->share[j][k] >= row->share[j][*place] * (1 - 1e-9)) ranks[n++] = h->rank[k];
    RankSet set = rankset_from(h->a, ranks, n);
    return rankset_words(&set, h->a);
}
int hops_busiest(const Hops *h, int j) {
    int best = 0;
    for (int k = 1; k < h->n; k++)
        if (h->work[j][k] > h->work[j][best]) best = k;
    return best;
}
double hops_slowdown(const Hops *h) {
    double sum = 0;
    for (int j = 0; j < h->n; j++) sum += h->work[j][hops_busiest(h, j)];
    return h->total > 0 ? sum * h->n / h->total : 1;
}
