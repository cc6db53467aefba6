/* Hops of a ring that do what the first did, with the next block: the rows of all but the first
 * stand as one band (mirror_band.c). A strip whose hops differ, or in which a step is wrong, is
 * drawn hop by hop. Knows no lengths. */
#include "render/mirror/mirror.h"
#include "base/text.h"
#include "render/graph/block_place.h"

static bool is_hop(const MirrorRow *r) { return r->kind == ROW_COLL && block_is_hop(r->coll[0]); }

static bool alike(const MirrorRow *a, const MirrorRow *b) {
    if (a->kind != b->kind || a->n_op != b->n_op || a->n_coll != b->n_coll || a->acts != b->acts)
        return false;
    for (int i = 0; i < a->n_op; i++)
        if (!text_same(a->op[i].f->op, b->op[i].f->op) || a->op[i].rest != b->op[i].rest)
            return false;
    for (int i = 0; i < a->n_coll; i++)
        if (!text_same(a->coll[i]->op, b->coll[i]->op) ||
            a->coll[i]->bytes_sent != b->coll[i]->bytes_sent)
            return false;
    return true;
}

MirrorFold mirror_fold(const BlockGraph *g, const MirrorStrip *s) {
    int at[MIRROR_MAX], n = 0;
    const MirrorFold none = {s->n, s->n, s->n, 0};
    if (g->wrong_step >= 0 || (g->wrong && g->wrong->n)) return none;
    for (int r = 0; r < s->n; r++)
        if (is_hop(&s->row[r])) {
            if (n == MIRROR_MAX) return none;
            at[n++] = r;
        }
    if (n < 3) return none;
    const int high = at[1] - at[0];
    for (int k = 1; k < n; k++)
        for (int i = 0; i < high; i++)
            if (at[k] != at[0] + k * high || at[k] + i >= s->n ||
                !alike(&s->row[at[0] + i], &s->row[at[k] + i]))
                return none;
    return (MirrorFold){at[0], at[1], at[0] + n * high, n};
}
