/* What one plan's block has and the other's has not. See unlike.h. */
#include "render/graph/unlike.h"
#include "base/text.h"
#include <string.h>

/* The rank of the other plan that is drawn beside; a smaller one may not have it. */
static int64_t other_rank(const ViewCall *c, int64_t rank) {
    return rank < c->peer->t->ranks ? rank : 0;
}
/* The other plan's trace; NULL: there is none beside. */
static const Trace *other(const ViewCall *c) { return c->peer ? c->peer->t : NULL; }

static bool same_shape(const TraceShape *x, int64_t rank, const TraceShape *y, int64_t far) {
    const TraceLocal *a = words_find_local(x, rank), *b = words_find_local(y, far);
    if (x->nd != y->nd || !text_same(x->symbolic, y->symbolic) || !a != !b) return false;
    for (int i = 0; a && i < x->nd; i++)
        if (a->shape[i] != b->shape[i]) return false;
    return text_same(x->pending && *x->pending ? x->pending : NULL,
                     y->pending && *y->pending ? y->pending : NULL);
}
/* Do both read their parameters alike? */
static bool same_weights(const ViewCall *c, int64_t rank, const TraceCompute *x) {
    for (int i = 0; i < x->n_inputs; i++) {
        const TraceParam *own = trace_param(c->t, x->inputs[i]),
                         *far = own ? trace_param(other(c), x->inputs[i]) : NULL;
        if (own && !(far && same_shape(&own->compute, rank, &far->compute, other_rank(c, rank))))
            return false;
    }
    return true;
}
/* "attn_merge." of "attn_merge.3": how much of a name stands before the number of a hop; 0: none
 * does. */
static size_t before_number(const char *name) {
    size_t n = strlen(name), k = n;
    while (k > 0 && name[k - 1] >= '0' && name[k - 1] <= '9') k--;
    return k > 0 && k < n && name[k - 1] == '.' ? k : 0;
}
static int64_t number_of(const char *name) {
    int64_t n = 0;
    for (const char *at = name + before_number(name); *at && n < INT32_MAX; at++)
        n = 10 * n + (*at - '0');
    return n;
}
static bool same_step(const TraceCompute *x, const TraceCompute *y) {
    return y->pass == x->pass && text_same(y->op, x->op);
}
/* Does the step make the last of results that are numbered as the hops of a ring are? */
static bool makes_last(const Trace *t, const TraceCompute *x) {
    const size_t n = before_number(x->output);
    for (int i = 0; i < t->n_computes && n; i++) {
        const TraceCompute *y = &t->computes[i];
        if (same_step(x, y) && before_number(y->output) == n && !strncmp(y->output, x->output, n) &&
            number_of(y->output) > number_of(x->output))
            return false;
    }
    return n > 0;
}
/* Has the other plan such a step for this result? */
static bool has_step(const ViewCall *c, const TraceCompute *x) {
    const Trace *t = other(c);
    const size_t n = before_number(x->output);
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *y = &t->computes[i];
        if (same_step(x, y) && text_same(y->output, x->output)) return true;
    }
    /* the last hop is the last, whatever its number: a ring of another size has it all the same */
    for (int i = 0; n && makes_last(c->t, x) && i < t->n_computes; i++) {
        const TraceCompute *y = &t->computes[i];
        if (same_step(x, y) && before_number(y->output) == n && !strncmp(y->output, x->output, n) &&
            makes_last(t, y))
            return true;
    }
    return false;
}
Likeness unlike_compute(const ViewCall *c, int64_t rank, const TraceCompute *x) {
    if (!other(c)) return ALIKE;
    if (!has_step(c, x)) return ONLY_HERE;
    return same_weights(c, rank, x) ? ALIKE : NOT_SO;
}
Likeness unlike_collective(const ViewCall *c, int64_t rank, const TraceCollective *x) {
    const Trace *t = other(c);
    Likeness found = t ? ONLY_HERE : ALIKE;
    for (int i = 0; t && i < t->n_collectives; i++) {
        const TraceCollective *y = &t->collectives[i];
        if (y->pass != x->pass || !text_same(y->op, x->op) || !text_same(y->value, x->value))
            continue;
        found = NOT_SO;
        if (text_same(y->axes, x->axes) && text_same(y->dim_symbol, x->dim_symbol) &&
            text_same(y->reduce, x->reduce) && y->skipped == x->skipped &&
            groups_size(&y->groups) == groups_size(&x->groups) &&
            collective_on(y, other_rank(c, rank)).bytes_sent == collective_on(x, rank).bytes_sent)
            return ALIKE;
    }
    return found;
}
Likeness unlike_move(const ViewCall *c, const TraceLocalMove *x) {
    const Trace *t = other(c);
    Likeness found = t ? ONLY_HERE : ALIKE;
    for (int i = 0; t && i < t->n_moves; i++) {
        const TraceLocalMove *y = &t->moves[i];
        if (y->pass != x->pass || !text_same(y->op, x->op) || !text_same(y->value, x->value))
            continue;
        found = NOT_SO;
        if (text_same(y->axes, x->axes)) return ALIKE;
    }
    return found;
}
static Likeness lies(const ViewCall *c, int64_t rank, const TraceValue *v) {
    const Trace *t = other(c);
    Likeness found = t ? ONLY_HERE : ALIKE;
    for (int i = 0; t && i < t->n_values; i++) {
        if (!text_same(t->values[i].shape.name, v->shape.name)) continue;
        found = NOT_SO;
        if (same_shape(&v->shape, rank, &t->values[i].shape, other_rank(c, rank))) return ALIKE;
    }
    return found;
}
Likeness unlike_value(const ViewCall *c, const BlockGraph *g, const TraceValue *v) {
    return g->unlike ? ALIKE : lies(c, g->rank, v);
}
bool unlike_throughout(const ViewCall *c, const BlockGraph *g) {
    int all = 0, n = 0;
    for (int i = 0; other(c) && i < g->n; i++) {
        const TraceValue *v = g->node[i].strip < 0 ? NULL : g->node[i].out;
        if (!v) continue;
        all++;
        n += lies(c, g->rank, v) != ALIKE;
    }
    return 2 * n > all;
}
const char *unlike_words(const BlockGraph *g) {
    static const char *const words[2][2] = {
        {"", " Most shapes are not as in the other plan and are not marked."},
        {" Its backward pass is not drawn: the other plan has none.",
         " Its backward pass is not drawn: the other plan has none. Most shapes are not as in the "
         "other plan and are not marked."}};
    return words[g->one_pass][g->unlike];
}
void unlike_key(const ViewCall *c, const char **part) {
    int n = 0;
    while (part[n]) n++;
    part[n] = other(c) ? "underlined: not so in the other plan, twice: only in this one" : NULL;
    if (part[n]) part[n + 1] = NULL;
}
