/* select: which experts each token goes to, as an index list: rows ordered by expert, sequence,
 * position (the row-major index over (e, b, t)), whatever the plan. The k of the highest scores;
 * with groups first the groups whose two best scores add up to most, then the k best among those
 * (DeepSeek-V3). No gradient; the weights of the chosen are made elsewhere (router.c). */
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

static int64_t chosen_per_token(const OpCall *c) {
    int64_t e = c->local['e' - 'a'];
    return c->at->top < e ? c->at->top : e;
}
static int64_t select_rows(const OpCall *c) {
    return c->local['b' - 'a'] * c->local['t' - 'a'] * chosen_per_token(c);
}
/* The scores are the last operand: what the router made, or what another input says. */
static double logit(const OpCall *c, int64_t b, int64_t t, int64_t e) {
    const Tensor *z = &c->in[c->rule->nin - 1];
    return el_get(z, c->dtype, b * z->s[0] + t * z->s[1] + e * z->s[2]);
}
static bool above(double x, double y) { return x > y || (isnan(y) && !isnan(x)); }
/* Of a token's scores: the sum of the two best of a group of n experts. */
static double group_score(const OpCall *c, int64_t b, int64_t t, int64_t first, int64_t n) {
    double best = NAN, second = NAN;
    for (int64_t e = first; e < first + n; e++) {
        double x = logit(c, b, t, e);
        if (above(x, best)) second = best, best = x;
        else if (above(x, second)) second = x;
    }
    return n > 1 ? best + second : best;
}
/* Marks the k largest of n; of equal ones those of the lowest number. NaN is below all. */
static void mark_top(const double *x, int64_t n, int64_t k, bool *taken) {
    for (int64_t j = 0; j < k; j++) {
        int64_t best = -1;
        for (int64_t i = 0; i < n; i++)
            if (!taken[i] && (best < 0 || above(x[i], x[best]))) best = i;
        if (best >= 0) taken[best] = true;
    }
}
/* What one token's selection works in, [E] each. */
typedef struct {
    double *score, *group;
    bool *open; /* groups that are left */
} Work;
/* Experts of groups that are not among the best have no score. */
static void bar_groups(const OpCall *c, int64_t b, int64_t t, const Work *w) {
    int64_t ne = c->local['e' - 'a'], groups = c->at->groups, n = groups ? ne / groups : 0;
    if (groups < 2) return;
    for (int64_t g = 0; g < groups; g++) {
        w->open[g] = false;
        w->group[g] = group_score(c, b, t, g * n, n);
    }
    mark_top(w->group, groups, c->at->top_groups, w->open);
    for (int64_t e = 0; e < ne; e++)
        if (!w->open[e / n]) w->score[e] = -INFINITY;
}
static void mark_token(const OpCall *c, int64_t b, int64_t t, const Work *w, bool *taken) {
    int64_t ne = c->local['e' - 'a'];
    for (int64_t e = 0; e < ne; e++) {
        taken[e] = false;
        w->score[e] = logit(c, b, t, e);
    }
    bar_groups(c, b, t, w);
    mark_top(w->score, ne, chosen_per_token(c), taken);
}
static void select_forward(const OpCall *c) {
    int64_t nb = c->in[0].n[0], nt = c->in[0].n[1], ne = c->in[0].n[2], at = 0;
    bool *taken = base_malloc(base_mul((size_t)(nb * nt * ne) + 1, sizeof *taken));
    double *score = base_malloc(base_mul((size_t)(2 * ne) + 1, sizeof *score));
    bool *open = base_malloc((size_t)ne + 1);
    Work w = {score, score + ne, open};
    int64_t *ids = c->out.p;
    for (int64_t b = 0; b < nb; b++)
        for (int64_t t = 0; t < nt; t++) mark_token(c, b, t, &w, taken + (b * nt + t) * ne);
    for (int64_t e = 0; e < ne; e++)
        for (int64_t b = 0; b < nb; b++)
            for (int64_t t = 0; t < nt; t++)
                if (taken[(b * nt + t) * ne + e])
                    ids[at++] =
                        (global_index(c, 'e', e) * c->global['b' - 'a'] + global_index(c, 'b', b)) *
                            c->global['t' - 'a'] +
                        global_index(c, 't', t);
    free(taken);
    free(open);
    free(score);
}

/* ---- near ties ---- */
/* Which group of a token's experts, by the scores, stay open for another choice than the own: those
 * that it took from, and the best of the own up to as many. How far the scores of groups are from
 * that, per expert's score (a group's is the sum of two); INFINITY: it took from too many. */
static double reopen_groups(const OpCall *c, const Work *w, const bool *taken) {
    int64_t ne = c->local['e' - 'a'], groups = c->at->groups, n = groups > 1 ? ne / groups : ne;
    double worst = -INFINITY, least = INFINITY;
    int64_t more = 0;
    for (int64_t g = 0; groups > 1 && g < groups; g++) {
        bool used = false;
        for (int64_t e = g * n; e < (g + 1) * n; e++) used |= taken[e];
        if (w->open[g]) least = fmin(least, w->group[g]);
        if (!used || w->open[g]) continue;
        w->open[g] = true;
        more++;
        worst = fmax(worst, -w->group[g]);
    }
    if (!more) return 0;
    for (; more; more--) { /* the lowest of those that it took nothing from */
        int64_t out = -1;
        for (int64_t g = 0; g < groups; g++) {
            bool used = false;
            for (int64_t e = g * n; e < (g + 1) * n; e++) used |= taken[e];
            if (w->open[g] && !used && (out < 0 || above(w->group[out], w->group[g]))) out = g;
        }
        if (out < 0) return INFINITY;
        w->open[out] = false;
    }
    return (least + worst) / 2;
}
/* How far a token's scores are from the choice `taken`: the best that it left against the least
 * that it took. */
static double gap_of(const OpCall *c, int64_t b, int64_t t, const Work *w, const bool *taken) {
    int64_t ne = c->local['e' - 'a'], groups = c->at->groups, n = groups > 1 ? ne / groups : ne;
    double gap = reopen_groups(c, w, taken), best = -INFINITY, least = INFINITY;
    for (int64_t e = 0; e < ne; e++) {
        double x = logit(c, b, t, e);
        if (taken[e]) least = above(least, x) ? x : least;
        else if (groups < 2 || w->open[e / n]) best = above(x, best) ? x : best;
    }
    return isnan(best - least) ? INFINITY : fmax(gap, best - least);
}
/* Of one token: pairs in the order of experts. `own` and `taken` mark as many. */
static int64_t token_ties(const OpCall *c, int64_t token, const bool *own, const bool *taken,
                          ListTie *tie) {
    int64_t ne = c->local['e' - 'a'], tokens = c->local['b' - 'a'] * c->local['t' - 'a'], n = 0,
            l = 0;
    for (int64_t e = 0; e < ne; e++) {
        if (!taken[e] || own[e]) continue;
        while (l < ne && (!own[l] || taken[l])) l++;
        tie[n++] = (ListTie){e * tokens + token, l < ne ? l++ * tokens + token : -1, INFINITY};
    }
    while (l < ne && (!own[l] || taken[l])) l++;
    return l < ne ? -n : n; /* negative: not as many */
}
static int64_t select_ties(const OpCall *c, const int64_t *ids, int64_t n, ListTie *tie) {
    int64_t nt = c->local['t' - 'a'], ne = c->local['e' - 'a'], tokens = c->local['b' - 'a'] * nt,
            at = 0;
    bool *marks = base_malloc(base_mul((size_t)(3 * ne) + 1, sizeof *marks)),
         *all = base_malloc(base_mul((size_t)(tokens * ne) + 1, sizeof *all));
    double *score = base_malloc(base_mul((size_t)(2 * ne) + 1, sizeof *score));
    Work w = {score, score + ne, marks};
    bool *own = marks + ne;
    memset(all, 0, (size_t)(tokens * ne));
    for (int64_t i = 0; i < n; i++) all[ids[i] % tokens * ne + ids[i] / tokens] = true;
    for (int64_t k = 0; k < tokens; k++) {
        const bool *taken = all + k * ne;
        mark_token(c, k / nt, k % nt, &w, own);
        if (!memcmp(own, taken, (size_t)ne * sizeof *own)) continue;
        int64_t pairs = token_ties(c, k, own, taken, tie + at);
        double gap = pairs > 0 ? gap_of(c, k / nt, k % nt, &w, taken) : INFINITY;
        for (int64_t i = 0; i < llabs(pairs); i++) tie[at++].gap = gap;
    }
    free(marks);
    free(all);
    free(score);
    return at;
}
const Op op_select = {
    .name = "select",
    .rule = "bte!->[ebt]",
    .lin = LIN_NONE,
    .nodiff = 1,
    .rows = select_rows,
    .ties = select_ties,
    .forward = select_forward,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .label = "top-k",
};
const Op op_select_by = {
    .name = "select_by",
    .rule = "bte!,bte!->[ebt]",
    .lin = LIN_NONE,
    .nodiff = 3,
    .rows = select_rows,
    .ties = select_ties,
    .forward = select_forward,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .label = "top-k, given",
    .glyph = "box",
};
