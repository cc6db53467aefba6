/* Reading the ways of an overview. See ways.h. */
#include "render/overview/ways.h"
#include "base/text.h"
#include <limits.h>
#include <string.h>

/* A step of the pass; the loss belongs to the forward pass of a model that has one. */
bool ways_wants(const Overview *o, const TraceCompute *c) {
    Phase pass = phase_or_forward(c->pass);
    bool loss = pass == PHASE_LOSS && o->pass == PHASE_FORWARD && part_term(c->part)->loss &&
                !subject_is_gradient(c->makes);
    bool head = false; /* without a head the loss is a seed of the test, not of the model */
    for (int i = 0; loss && i < o->c->t->n_computes && !head; i++)
        head = part_term(o->c->t->computes[i].part)->head;
    return (pass == o->pass || (loss && head)) && c->iteration <= 0 && c->microbatch <= 0 &&
           !c->recompute && (c->ranks.n == 0 || rankset_has(&c->ranks, o->rank));
}

static bool is_norm(const TraceCompute *c) { return part_term(c->part)->norm; }

static bool makes(const Overview *o, int k, const TraceCompute *c) {
    return c->step >= o->first_step[k] && c->step <= o->last_step[k] && ways_wants(o, c);
}
/* How many steps of unit k make a value of that name. */
static int made_in(const Overview *o, int k, const char *name) {
    int n = 0;
    for (int i = 0; i < o->c->t->n_computes; i++) {
        const TraceCompute *c = &o->c->t->computes[i];
        n += makes(o, k, c) && !strcmp(c->output, name);
    }
    return n;
}

/* What a step with the sign of an add is to the stream: the add that brings back what unit k makes
 * (one of its operands is made in the unit, the other one before it); in backward the copy of the
 * gradient that goes on beside the unit, which makes as well what comes back to it; or the sum of
 * the gradients of several uses. */
typedef enum { ADD_OWN, ADD_RETURN, ADD_COPY, ADD_USES } AddKind;
static AddKind add_kind(const Overview *o, int k, const TraceCompute *c) {
    int own = 0;
    if (!text_same(c->glyph, "plus")) return ADD_OWN;
    if (c->n_inputs == 1 && subject_is_gradient(c->makes))
        return made_in(o, k, c->output) > 1 ? ADD_RETURN : ADD_COPY;
    if (c->n_inputs != 2) return ADD_OWN;
    if (trace_adds_uses(c)) return ADD_USES;
    for (int i = 0; i < 2; i++) {
        if (trace_param(o->c->t, c->inputs[i])) return ADD_OWN;
        own += made_in(o, k, c->inputs[i]) > 0;
    }
    return own == 1 ? ADD_RETURN : ADD_OWN;
}

/* Its place on the way, by steps; NULL: there is no room. */
static OverviewItem *insert(OverviewWay *w, int step) {
    int i = w->n;
    if (w->n == OVERVIEW_ITEMS) return NULL;
    for (; i > 0 && w->item[i - 1].step > step; i--) w->item[i] = w->item[i - 1];
    w->n++;
    w->item[i] = (OverviewItem){.step = step};
    return &w->item[i];
}

/* First and last step of a unit's own ops; of all where it has no other ones. */
static void own_steps(Overview *o, int k) {
    OverviewUnit *u = &o->unit[k];
    int from = INT_MAX, until = INT_MIN;
    for (int i = 0; i < o->c->t->n_computes; i++) {
        const TraceCompute *c = &o->c->t->computes[i];
        if (!makes(o, k, c)) continue;
        AddKind add = add_kind(o, k, c);
        u->residual |= add == ADD_RETURN;
        if (is_norm(c) || add != ADD_OWN) continue;
        from = from < c->step ? from : c->step;
        until = until > c->step ? until : c->step;
    }
    u->has_own = from <= until;
    u->from = u->has_own ? from : o->first_step[k];
    u->until = u->has_own ? until : o->last_step[k];
}

/* A norm is one, though its product, its bias and the gradients of both are steps of their own. */
static bool is_same_norm(const TraceCompute *a, const TraceCompute *b) {
    return a && a->recompute == b->recompute && text_same(a->module, b->module);
}

void ways_read(Overview *o) {
    for (int k = 0; k < o->n; k++) {
        OverviewUnit *u = &o->unit[k];
        const TraceCompute *last[WAYS] = {NULL};
        own_steps(o, k);
        for (int i = 0; i < o->c->t->n_computes && u->has_own; i++) {
            const TraceCompute *c = &o->c->t->computes[i];
            int way = c->step < u->from ? WAY_IN : WAY_OUT;
            if (!makes(o, k, c) || !is_norm(c) || (c->step >= u->from && c->step <= u->until))
                continue;
            OverviewItem *item = is_same_norm(last[way], c) ? NULL : insert(&u->way[way], c->step);
            if (item) item->part = c->part;
            last[way] = c;
        }
    }
}

void ways_add(Overview *o, int k, const TraceCollective *c) {
    OverviewUnit *u = &o->unit[k];
    OverviewWay *w = &u->way[u->apart || u->message ? WAY_INSIDE
                             : c->step < u->from    ? WAY_IN
                             : c->step > u->until   ? WAY_OUT
                                                    : WAY_INSIDE];
    int i = 0;
    while (i < w->n &&
           !(w->item[i].c && !strcmp(w->item[i].c->op, c->op) &&
             !strcmp(w->item[i].c->axis, c->axis) && w->item[i].c->skipped == c->skipped &&
             w->item[i].c->inferred == c->inferred))
        i++;
    OverviewItem *item = i < w->n ? &w->item[i] : insert(w, c->step);
    if (!item) return;
    if (!item->c) item->c = c;
    words_add(&item->sum, c, o->rank);
}

bool ways_alike(const OverviewUnit *a, const OverviewUnit *b) {
    if (a->residual != b->residual || a->message != b->message) return false;
    for (int k = 0; k < WAYS; k++) {
        if (a->way[k].n != b->way[k].n) return false;
        for (int i = 0; i < a->way[k].n; i++) {
            const OverviewItem *x = &a->way[k].item[i], *y = &b->way[k].item[i];
            if (!x->c != !y->c || !words_same_total(&x->sum, &y->sum) ||
                (x->c && (!text_same(x->c->op, y->c->op) || !text_same(x->c->axis, y->c->axis) ||
                          x->c->inferred != y->c->inferred)))
                return false;
        }
    }
    return true;
}
