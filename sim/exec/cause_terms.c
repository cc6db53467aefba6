/* The evidence of a wrong sum: what each rank handed in, at the element that is wrong first. Kept
 * only where these terms add up to the right value, within rounding: then it is the sum that is
 * wrong, and not what was added. */
#include "exec/cause.h"
#include "exec/story.h"
#include <math.h>

enum { MOST_TERMS = 8 };

/* An index of the stored dims as one of the letters. */
static void letters_at(const GTensor *t, const int64_t *stored, int64_t *letter) {
    int end = 0;
    for (int d = 0; d < t->nstored; d++) {
        int64_t rest = stored[d];
        end += t->stored[d];
        for (int l = end - 1; l >= end - t->stored[d]; l--) {
            letter[l] = t->size[l] > 0 ? rest % t->size[l] : 0;
            rest = t->size[l] > 0 ? rest / t->size[l] : 0;
        }
    }
}
static int64_t place_of(const DimIndex *d, int64_t g) {
    if (d->range) return g >= d->lo && g < d->lo + d->n ? g - d->lo : -1;
    for (int64_t i = 0; i < d->n; i++)
        if (d->list[i] == g) return i;
    return -1;
}
/* The rank's number with that index; NaN: its block has none. */
static double number_at(StoryCase *c, int val, int64_t rank, const int64_t *letter) {
    double x = NAN;
    c->tmp = arena_new();
    const Region at = region_at(c->m, c->t, &c->e->p->val[val].L, rank, c->tmp);
    StoryBlock held = story_open(c, val, rank);
    int64_t o = 0;
    bool has = held.there && !at.outer && held.t.nd == at.nd;
    for (int d = 0; d < at.nd && has; d++) {
        int64_t i = place_of(&at.d[d], letter[d]);
        has = i >= 0 && i < held.t.n[d];
        o = o * held.t.n[d] + i;
    }
    if (has) x = story_read(&held, o);
    story_close(c, &held);
    arena_free(c->tmp);
    return x;
}
/* The wrong rank whose number the check tells; -1: not among those looked at. */
static int64_t told_rank(StoryCase *c, const TraceCheck *k, const int64_t *letter) {
    for (int i = 0; i < c->n_look; i++) {
        const double x = number_at(c, c->out, c->look[i], letter);
        if (x >= k->got && x <= k->got) return c->look[i];
    }
    return -1;
}

void cause_terms(Arena *arena, Exec *e, const Step *s, const double *wrong, TraceCheck *k) {
    StoryCase c = story_case(arena, e, s, s->out, wrong);
    const int64_t n = mesh_size(c.m, &s->move.axes);
    int64_t letter[LAYOUT_MAX_DIMS] = {0};
    double sum = 0, size = 0;
    if (n < 2 || n > MOST_TERMS || !k->n_index || k->n_index != c.t->nstored || c.t->listed) return;
    letters_at(c.t, k->index, letter);
    const int64_t rank = told_rank(&c, k, letter);
    if (rank < 0) return;
    double *term = ARENA_ARRAY(arena, double, n), *of = ARENA_ARRAY(arena, double, n);
    for (int64_t i = 0; i < n; i++) {
        const int64_t member = mesh_member(c.m, &s->move.axes, rank, i);
        of[i] = (double)member;
        term[i] = number_at(&c, s->in[0], member, letter);
        sum += term[i], size += fabs(term[i]);
    }
    if (!(fabs(sum - k->want) <= story_rounding(&c, n) * size)) return;
    k->n_terms = k->n_term_ranks = n;
    k->terms = term, k->term_ranks = of;
}
