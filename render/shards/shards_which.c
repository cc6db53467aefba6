/* Weights of the shards picture. See shards_which.h. */
#include "render/shards/shards_which.h"
#include "base/text.h"
#include <string.h>

bool shards_wanted(const ShardPen *p, const TraceParam *q) {
    return p->layer < 0 || q->layer == p->layer;
}
bool shards_of_all_experts(const Trace *t, const TraceParam *q) {
    if (q->rest.nd != 2) return trace_of_experts(&q->rest);
    for (int i = 0; i < t->n_params; i++)
        if (trace_of_experts(&t->params[i].rest) && text_same(t->params[i].module, q->module))
            return true;
    return false;
}
int shards_wrong_of(const ShardPen *p, const TraceParam *q) {
    const Trace *t = p->c->t;
    const char *name = q->rest.name;
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].wrong && !strcmp(t->moves[i].value, name)) return t->moves[i].step;
    for (int i = 0; i < t->n_collectives; i++)
        if (!strcmp(t->collectives[i].value, name) &&
            wrong_number(p->wrong, t->collectives[i].step))
            return t->collectives[i].step;
    for (int i = 0; q->planted && i < t->n_computes; i++)
        for (int k = 0; k < t->computes[i].n_inputs; k++)
            if (!strcmp(t->computes[i].inputs[k], name) &&
                wrong_number(p->wrong, t->computes[i].step))
                return t->computes[i].step;
    return -1;
}
bool shards_as_experts(const ShardPen *p, const TraceParam *q) {
    return q->rest.nd == 3 && !p->peer && shards_wanted(p, q) && shards_wrong_of(p, q) < 0 &&
           words_find_local(&q->rest, p->rank);
}
