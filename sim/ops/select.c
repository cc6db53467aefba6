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
const Op op_select = {
    .name = "select",
    .rule = "bte!->[ebt]",
    .lin = LIN_NONE,
    .nodiff = 1,
    .rows = select_rows,
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
    .forward = select_forward,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .label = "top-k, given",
    .glyph = "box",
};
