/* The pieces of a move. See pieces.h. */
#include "exec/pieces.h"
#include <assert.h>
#include <string.h>

Pieces pieces_of_move(const Mesh *m, const GTensor *t, const Move *v, const Act *act) {
    assert(v->from.ndim == t->nd && v->to.ndim == t->nd);
    assert(act->dim < t->nd && act->times >= 0);
    Move done = act_move(v, act);
    return (Pieces){.m = m,
                    .t = t,
                    .act = *act,
                    .declared = act_declared(v),
                    .from = done.from,
                    .to = done.to,
                    .axes = v->axes,
                    .n = mesh_size(m, &v->axes)};
}
Pieces pieces_of(const Program *p, const Step *s) {
    Act act = act_of(s);
    return pieces_of_move(p->mesh, &p->graph->t[p->val[s->out].tensor], &s->move, &act);
}
Pieces pieces_of_run(const Exec *e, const Step *s, const Act *done) {
    const Program *p = e->p;
    Pieces x = pieces_of_move(p->mesh, &p->graph->t[p->val[s->out].tensor], &s->move, done);
    if (!x.t->listed) return x;
    x.e = e;
    x.in = s->in[0];
    x.out = s->out;
    return x;
}
static int64_t modulo(int64_t a, int64_t n) { return (a % n + n) % n; }
/* The place of a rank by which it takes its part of what it has itself: that in the group that the
 * act names. */
static int64_t place_of(const Pieces *x, int64_t rank) {
    bool own = move_source(x->act.kind) == FROM_OWN;
    return mesh_index_in(x->m, own ? &x->act.axes : &x->axes, rank);
}

const Act *pieces_act(const Pieces *x, int64_t rank) {
    return x->act.alone && x->act.alone != rank + 1 ? &x->declared : &x->act;
}
bool pieces_absent(const Pieces *x, int64_t rank, const Piece *one) {
    return x->act.absent && one->rank + 1 == x->act.alone && one->rank != rank;
}
Combine pieces_combine(const Pieces *x, int64_t rank) {
    const Act *act = pieces_act(x, rank);
    if (!act->times || !move_reduces(act->kind)) return COMBINE_COPY;
    return act->combine == COMBINE_MAX ? COMBINE_MAX : COMBINE_SUM;
}
int pieces_tail(const Pieces *x, int64_t *n, int64_t *whole) {
    const Layout *cut = layout_where(&x->to, x->axes.a[0]) >= 0 ? &x->to : &x->from;
    int d = layout_where(cut, x->axes.a[0]);
    if (d < 0 || d >= x->t->nd) return -1;
    AxisList cutters = layout_dim_axes(cut, d);
    *n = mesh_size(x->m, &cutters);
    *whole = x->t->size[d] / *n * *n;
    return d;
}
/* The member of the rank's group that has the value. */
static int64_t place_rank(const Pieces *x, int64_t rank) {
    for (int i = 0; i < x->axes.n; i++) {
        const MeshAxis *a = &x->m->axis[x->axes.a[i]];
        int64_t at = modulo(x->from.at[x->axes.a[i]] + x->act.shift, a->size);
        rank += (at - mesh_coord(x->m, rank, x->axes.a[i])) * a->stride;
    }
    return rank;
}
bool pieces_pass(const Pieces *x, int64_t rank) {
    if (move_relocates(x->act.kind)) return false;
    if (x->act.kind == MOVE_PICK || x->act.kind == MOVE_TERM) return true;
    if (x->act.kind == MOVE_KEEP && !place_of(x, rank)) return true;
    return !pieces_act(x, rank)->times && !move_gathers(x->act.kind) && x->act.kind != MOVE_PAD &&
           !(move_reduces(x->act.kind) && move_cuts(x->act.kind));
}
int64_t pieces_count(const Pieces *x, int64_t rank) {
    bool here = layout_holds(x->m, &x->from, rank);
    if (!layout_holds(x->m, &x->to, rank)) return 0;
    if (move_relocates(x->act.kind))
        return pieces_act(x, rank)->times && layout_holds(x->m, &x->from, place_rank(x, rank));
    if (move_source(x->act.kind) == FROM_OWN && !here) return 0;
    if (pieces_pass(x, rank) || !pieces_act(x, rank)->times) return 1;
    if (x->act.kind == MOVE_KEEP) return 0;
    if (move_reduces(x->act.kind)) return mesh_size(x->m, &x->act.axes);
    return move_gathers(x->act.kind) ? x->n : 1;
}
Piece pieces_at(const Pieces *x, int64_t rank, int64_t i) {
    assert(i >= 0 && rank >= 0 && rank < x->m->nranks);
    const Act *act = pieces_act(x, rank);
    if (move_relocates(x->act.kind)) {
        int64_t from = place_rank(x, rank);
        return (Piece){from, from};
    }
    if (act->times && move_reduces(x->act.kind))
        return (Piece){mesh_member(x->m, &x->act.axes, rank, i), rank};
    if (!act->times || !move_gathers(x->act.kind)) return (Piece){rank, rank};
    int64_t there = mesh_size(x->m, &x->act.axes),
            from = move_cuts(x->act.kind) ? i : modulo(i - act->shift, x->n);
    /* with fewer ranks than blocks they come again */
    return (Piece){mesh_member(x->m, &x->act.axes, rank, from % there),
                   mesh_member(x->m, &x->axes, rank, i)};
}
/* The rows of an index list after its move: those of the pieces that the rank is to hold. */
static DimIndex rows_after(const Pieces *x, int64_t rank, int64_t member, Arena *arena) {
    int64_t n = pieces_count(x, rank), local[LAYOUT_MAX_DIMS];
    if (x->e->dev->sizes_only) {
        layout_local(x->m, &x->to, x->t->size, member, local);
        return (DimIndex){.range = true, .n = graph_rows(x->t, local)};
    }
    DimIndex *lists = ARENA_ARRAY(arena, DimIndex, n);
    for (int64_t i = 0; i < n; i++)
        lists[i] = exec_rows(x->e, x->in, pieces_at(x, rank, i).rank, arena);
    DimIndex all = region_joined(lists, n, arena),
             rows = region_inside(x->m, x->t, &x->to, member, &all, arena);
    int64_t blocks, whole;
    int d = pieces_act(x, rank)->floor ? pieces_tail(x, &blocks, &whole) : -1;
    return d >= 0 && d < x->t->listed ? region_below(x->t, &rows, d, whole, arena) : rows;
}
Region pieces_from(const Pieces *x, const Piece *one, Arena *arena) {
    if (x->e)
        return region_rows(x->m, x->t, &x->from, one->owner,
                           exec_rows(x->e, x->in, one->owner, arena), arena);
    return region_at(x->m, x->t, &x->from, one->owner, arena);
}
Region pieces_to(const Pieces *x, int64_t rank, Arena *arena) {
    int64_t shift = move_cuts(x->act.kind) ? pieces_act(x, rank)->shift : 0;
    int64_t place = modulo(place_of(x, rank) + shift, x->n);
    int64_t member = mesh_member(x->m, &x->axes, rank, place);
    if (!x->e) return region_at(x->m, x->t, &x->to, member, arena);
    DimIndex rows = graph_is_list(x->t) ? rows_after(x, rank, member, arena)
                                        : exec_rows(x->e, x->out, member, arena);
    return region_rows(x->m, x->t, &x->to, member, rows, arena);
}
int64_t pieces_between(const Pieces *x, int64_t from, int64_t to) {
    if (!layout_holds(x->m, &x->from, from) || !layout_holds(x->m, &x->to, to)) return 0;
    Arena *tmp = arena_new();
    Region block = pieces_to(x, to, tmp);
    int64_t n = pieces_count(x, to), all = 0;
    for (int64_t i = 0; i < n; i++) {
        Piece one = pieces_at(x, to, i);
        if (one.rank != from || pieces_absent(x, to, &one)) continue;
        Region at = pieces_from(x, &one, tmp);
        all += region_common(&block, &at);
    }
    arena_free(tmp);
    return all;
}
