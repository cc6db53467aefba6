/* The pieces of a move. See pieces.h. */
#include "exec/pieces.h"
#include <string.h>

Pieces pieces_of_move(const Mesh *m, const GTensor *t, const Move *v, const Act *act) {
    Move done = act_move(v, act);
    return (Pieces){.m = m,
                    .t = t,
                    .act = *act,
                    .from = done.from,
                    .to = done.to,
                    .axes = v->axes,
                    .n = mesh_size(m, &v->axes)};
}
Pieces pieces_of(const Program *p, const Step *s) {
    Act act = act_of(s);
    return pieces_of_move(p->mesh, &p->graph->t[p->val[s->out].tensor], &s->move, &act);
}
/* Blocks of the whole group are put side by side. */
static bool gathers(const Pieces *x) {
    return x->act.kind == MOVE_ALL_GATHER || x->act.kind == MOVE_ALL_TO_ALL;
}
/* The result is cut over the axes: which part a rank gets is a question. */
static bool cuts(const Pieces *x) {
    return x->act.kind == MOVE_SLICE || x->act.kind == MOVE_REDUCE_SCATTER ||
           x->act.kind == MOVE_ALL_TO_ALL;
}
static int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }
/* The place of a rank by which it takes its part of what it has itself: that in the group that the
 * act names. */
static int64_t place_of(const Pieces *x, int64_t rank) {
    bool own = !gathers(x) && !act_reduces(x->act.kind);
    return mesh_index_in(x->m, own ? &x->act.axes : &x->axes, rank);
}

bool pieces_pass(const Pieces *x, int64_t rank) {
    if (x->act.kind == MOVE_KEEP && !place_of(x, rank)) return true;
    return !x->act.times && !gathers(x) && x->act.kind != MOVE_PAD &&
           x->act.kind != MOVE_REDUCE_SCATTER;
}
int64_t pieces_count(const Pieces *x, int64_t rank) {
    if (pieces_pass(x, rank) || !x->act.times) return 1;
    if (x->act.kind == MOVE_KEEP) return 0;
    if (act_reduces(x->act.kind)) return mesh_size(x->m, &x->act.axes);
    return gathers(x) ? x->n : 1;
}
Piece pieces_at(const Pieces *x, int64_t rank, int64_t i) {
    if (x->act.times && act_reduces(x->act.kind))
        return (Piece){mesh_member(x->m, &x->act.axes, rank, i), rank};
    if (!x->act.times || !gathers(x)) return (Piece){rank, rank};
    int64_t there = mesh_size(x->m, &x->act.axes),
            from = cuts(x) ? i : modulo(i - x->act.shift, x->n);
    /* with fewer ranks than blocks they come again */
    return (Piece){mesh_member(x->m, &x->act.axes, rank, from % there),
                   mesh_member(x->m, &x->axes, rank, i)};
}
Region pieces_from(const Pieces *x, const Piece *one, Arena *arena) {
    return region_at(x->m, x->t, &x->from, one->owner, arena);
}
Region pieces_to(const Pieces *x, int64_t rank, Arena *arena) {
    int64_t place = modulo(place_of(x, rank) + (cuts(x) ? x->act.shift : 0), x->n);
    return region_at(x->m, x->t, &x->to, mesh_member(x->m, &x->axes, rank, place), arena);
}
int64_t pieces_between(const Pieces *x, int64_t from, int64_t to) {
    Arena *tmp = arena_new();
    Region block = pieces_to(x, to, tmp);
    int64_t n = pieces_count(x, to), all = 0;
    for (int64_t i = 0; i < n; i++) {
        Piece one = pieces_at(x, to, i);
        if (one.rank != from) continue;
        Region at = pieces_from(x, &one, tmp);
        all += region_common(&block, &at);
    }
    arena_free(tmp);
    return all;
}
