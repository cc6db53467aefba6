/* See hops.h. */
#include "render/storyboard/hops.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

bool hops_asked(const ViewCall *c) { return c->o->part && !strcmp(c->o->part, "ring"); }

/* The step of a ring whose part the record is; -1: it is none. */
static int part_of(const TraceCompute *c) {
    static const char part[] = "attn_part.";
    const char *at = c->makes.of ? strstr(c->makes.of, part) : NULL;
    bool forward = phase_or_forward(c->pass) == PHASE_FORWARD && c->makes.role == OF_ITSELF;
    return at && forward ? atoi(at + sizeof part - 1) : -1;
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
static void find_work(Hops *h) {
    const Trace *t = h->c->t;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        int j = part_of(c);
        if (j < 0 || j >= h->n || c->layer != h->layer) continue;
        for (int k = 0; k < h->n; k++)
            if (!c->ranks.n || rankset_has(&c->ranks, h->rank[k])) h->work[j][k] = c->flops;
    }
    for (int j = 0; j < h->n; j++)
        for (int k = 0; k < h->n; k++) {
            h->total += h->work[j][k];
            h->most = fmax(h->most, h->work[j][k]);
        }
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *x = &t->collectives[i];
        bool hop = !strcmp(x->op, "shift") && phase_or_forward(x->pass) == PHASE_FORWARD;
        if (hop && x->layer == h->layer) h->sent += x->bytes_sent;
    }
}
int hops_keys(const Hops *h, int j, int k) { return ((k - j) % h->n + h->n) % h->n; }

/* ---- the mask ---- */
/* Piece i of a place, counted along the sequence. */
static int piece_at(const Hops *h, int place, int i) { return i ? 2 * h->n - 1 - place : place; }
int hops_piece(const Hops *h, int queries, int i, int keys, int m) {
    if (h->order == PLACE_STRIPED) return 1;
    int q = piece_at(h, queries, i), k = piece_at(h, keys, m);
    return q > k ? 2 : q == k;
}
/* Pairs of query and earlier key (or the own) of two places. */
static double causal_pairs(const Hops *h, int queries, int keys) {
    int pieces = h->order == PLACE_ZIGZAG ? 2 : 1;
    int64_t parts = (int64_t)h->n * pieces, len = (h->S + parts - 1) / parts;
    double pairs = 0;
    if (h->order == PLACE_STRIPED) {
        for (int64_t q = queries; q < h->S; q += h->n)
            pairs += q >= keys ? (double)((q - keys) / h->n + 1) : 0;
        return pairs;
    }
    for (int i = 0; i < pieces; i++)
        for (int m = 0; m < pieces; m++) {
            int64_t q0 = piece_at(h, queries, i) * len, q1 = q0 + len < h->S ? q0 + len : h->S,
                    k0 = piece_at(h, keys, m) * len, k1 = k0 + len < h->S ? k0 + len : h->S;
            for (int64_t q = q0; q < q1; q++)
                pairs += q < k0 ? 0 : (double)((q + 1 < k1 ? q + 1 : k1) - k0);
        }
    return pairs;
}
static bool is_causal(const Hops *h) {
    double all = (double)h->S * (double)(h->S + 1) / 2;
    if (!(h->total > 0)) return false;
    for (int j = 0; j < h->n; j++)
        for (int k = 0; k < h->n; k++) {
            double due = causal_pairs(h, k, hops_keys(h, j, k)) / all;
            if (fabs(h->work[j][k] / h->total - due) > 1e-9) return false;
        }
    return true;
}

bool hops_prepare(const ViewCall *c, Hops *h) {
    const Trace *t = c->t;
    *h = (Hops){.c = c, .a = c->arena};
    const TraceCompute *first = first_part(t, c->o->layer);
    const TraceShape *s = first ? made_by(t, first->step) : NULL;
    int axis = ring_axis(t, s, &h->order);
    if (axis < 0 || t->axes[axis].size > HOPS_MAX) {
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
    int64_t stride = 1, base = c->o->rank >= 0 ? c->o->rank : 0;
    for (int x = axis + 1; x < t->n_axes; x++) stride *= t->axes[x].size;
    if (first->ranks.n && !words_find_local(s, base)) base = rankset_first(&first->ranks);
    for (int k = 0; k < h->n; k++) h->rank[k] = base + (k - base / stride % h->n) * stride;
    find_work(h);
    h->causal = is_causal(h);
    return true;
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
