/* What is told of what rounding decides: choices and sides that the unsharded run took over, and
 * values of which it leaves nothing. Refuses to say
 * whether they are right: the check of the step that chose did. */
#include "drive/run.h"
#include <string.h>

static bool first_of(const Trace *t, int i) {
    for (int k = 0; k < i; k++)
        if (!strcmp(t->ties[k].value, t->ties[i].value)) return false;
    return true;
}
/* "token [1, 5] goes to expert 3 instead of 0", or of rows that had no room: "expert 3 keeps token
 * [1, 5] instead of [0, 2]". */
static const char *words(const TraceTie *k, Arena *a) {
    bool token = k->taken[1] == k->left[1] && k->taken[2] == k->left[2];
    if (token)
        return arena_printf(a, "token [%lld, %lld] goes to expert %lld instead of %lld",
                            (long long)k->taken[1], (long long)k->taken[2], (long long)k->taken[0],
                            (long long)k->left[0]);
    return arena_printf(a, "expert %lld keeps token [%lld, %lld] instead of [%lld, %lld]",
                        (long long)k->taken[0], (long long)k->taken[1], (long long)k->taken[2],
                        (long long)k->left[1], (long long)k->left[2]);
}
void sides_note(const Run *r) {
    diag_note(
        r->d, "N0019", diag_nowhere, NULL,
        "rounding decided on which side of a bend %lld number%s lie%s (at most %.2g of what it "
        "can do away from it); the unsharded run took the ranks' sides over, and then the end "
        "of the run agrees",
        (long long)r->taken.n, r->taken.n == 1 ? "" : "s", r->taken.n == 1 ? "s" : "",
        r->taken.farthest);
}
void nothing_left_note(const Run *r) {
    const PipelineReport *rep = r->rep;
    diag_note(r->d, "N0020", diag_nowhere, NULL,
              "the end of the run proves nothing of %s%s: rounding alone moves %s by more than "
              "%s largest number. Every step was held by itself",
              rep->nothing_left_first,
              rep->nothing_left == 1
                  ? ""
                  : arena_printf(r->arena, " and %lld more", (long long)rep->nothing_left - 1),
              rep->nothing_left == 1 ? "it" : "them", rep->nothing_left == 1 ? "its" : "their");
}
void beyond_note(const Run *r) {
    const Check *c = r->check;
    if (!c->beyond.n) return;
    diag_note(r->d, "N0020", diag_nowhere, NULL,
              "%lld number%s, the first in %s, cannot be held against float64: inside of the op "
              "that makes %s are larger ones than %s has",
              (long long)c->beyond.n, c->beyond.n == 1 ? "" : "s", c->beyond.first,
              c->beyond.n == 1 ? "it" : "them",
              c->e->dtype == DT_F32 ? "float32" : "the run's type");
}
void ties_notes(const Run *r) {
    const Trace *t = r->t;
    for (int i = 0; i < t->n_ties; i++) {
        int n = 0;
        if (!first_of(t, i)) continue;
        for (int k = i; k < t->n_ties; k++) n += !strcmp(t->ties[k].value, t->ties[i].value);
        const TraceTie *k = &t->ties[i];
        const char *more = n > 1 ? arena_printf(r->arena, ", and %d more like it", n - 1) : "";
        diag_note(
            r->d, "N0015", r->plan->moe.routing_loc, NULL,
            "%s: %s: %s (scores %.2g apart, rounding may make %.2g)%s; the unsharded run does "
            "the same from there on",
            k->gap <= k->bound ? "near tie" : "replayed", k->value, words(k, r->arena), k->gap,
            k->bound, more);
    }
}
