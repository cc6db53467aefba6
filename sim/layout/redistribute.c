/* The planner: which single moves lead from one layout to another. The order of the rules is the
 * planner. It never looks at data. */
#include "layout/redistribute.h"
#include <assert.h>
#include <string.h>

/* All there is to know of a kind; what moves data, counts it and plans asks this table. */
static const struct {
    const char *name;
    MoveSource source;
    bool cuts;
    MoveSends sends;
} kinds[MOVE_KINDS] = {
    [MOVE_ID] = {"identity", FROM_OWN, false, SENDS_NOTHING},
    [MOVE_SLICE] = {"slice", FROM_OWN, true, SENDS_NOTHING},
    [MOVE_KEEP] = {"keep_first", FROM_OWN, false, SENDS_NOTHING},
    [MOVE_PAD] = {"pad", FROM_OWN, false, SENDS_NOTHING},
    [MOVE_ALL_GATHER] = {"all_gather", FROM_BLOCKS, false, SENDS_BLOCK},
    [MOVE_REDUCE_SCATTER] = {"reduce_scatter", FROM_TERMS, true, SENDS_PART},
    [MOVE_ALL_REDUCE] = {"all_reduce", FROM_TERMS, false, SENDS_BOTH},
    [MOVE_ALL_REDUCE_MAX] = {"all_reduce", FROM_TERMS, false, SENDS_BOTH},
    [MOVE_ALL_TO_ALL] = {"all_to_all", FROM_BLOCKS, true, SENDS_PIECES},
    [MOVE_SHIFT] = {"shift", FROM_BLOCKS, true, SENDS_PIECES},
    [MOVE_SEND] = {"send", FROM_PLACE, false, SENDS_ONCE},
    [MOVE_PICK] = {"pick", FROM_OWN, false, SENDS_NOTHING},
    [MOVE_TERM] = {"term", FROM_OWN, false, SENDS_NOTHING},
    [MOVE_BROADCAST] = {"broadcast", FROM_PLACE, false, SENDS_ON},
};
MoveSource move_source(MoveKind k) {
    assert(k < MOVE_KINDS);
    return kinds[k].source;
}
MoveSends move_sends(MoveKind k) {
    assert(k < MOVE_KINDS);
    return kinds[k].sends;
}
bool move_cuts(MoveKind k) {
    assert(k < MOVE_KINDS);
    return kinds[k].cuts;
}
bool move_communicates(MoveKind k) { return move_sends(k) != SENDS_NOTHING; }
bool move_views(MoveKind k) { return k == MOVE_ID || k == MOVE_SLICE || k == MOVE_PICK; }
bool move_shares(MoveKind k) { return k == MOVE_KEEP || k == MOVE_PAD || k == MOVE_TERM; }
bool move_reduces(MoveKind k) { return move_source(k) == FROM_TERMS; }
bool move_relocates(MoveKind k) { return move_source(k) == FROM_PLACE; }
bool move_gathers(MoveKind k) { return move_source(k) == FROM_BLOCKS; }
const char *move_name(MoveKind k) {
    assert(k < MOVE_KINDS);
    return kinds[k].name;
}

/* The entry by which the axis cuts a dim, or NULL. */
static const Entry *cut_by(const Layout *l, int axis) {
    int d = layout_where(l, axis);
    for (int i = 0; d >= 0 && i < l->n[d]; i++)
        if (l->e[d][i].axis == axis && !l->e[d][i].ghost) return &l->e[d][i];
    return NULL;
}
/* Do both cut the same dim the same way, of other ranks' pieces? */
static bool shifted(const Layout *f, const Layout *t, int axis) {
    const Entry *a = cut_by(f, axis), *b = cut_by(t, axis);
    return layout_where(f, axis) == layout_where(t, axis) && a->how == b->how &&
           a->shift != b->shift;
}
/* Of equal copies on all ranks those at two coordinates. */
static bool takes_two(const Layout *f, const Layout *t, int axis) {
    return f->type[axis] == TY_I && t->type[axis] == TY_I && !layout_paired(f, axis) &&
           layout_paired(t, axis);
}
MoveKind move_kind(const Layout *f, const Layout *t, int axis) {
    assert(f->ndim == t->ndim && axis >= 0 && axis < MESH_MAX_AXES);
    static const uint8_t none = MOVE_KINDS;
    /* rows: from V I R P M AT; columns: to V I R P M AT */
    static const uint8_t table[TY_KINDS][TY_KINDS] = {
        {MOVE_ALL_TO_ALL, MOVE_ALL_GATHER, MOVE_ALL_GATHER, MOVE_PAD, MOVE_KINDS, MOVE_KINDS},
        {MOVE_SLICE, MOVE_KINDS, MOVE_ID, MOVE_KEEP, MOVE_KINDS, MOVE_PICK},
        {MOVE_SLICE, MOVE_ID, MOVE_KINDS, MOVE_KEEP, MOVE_KINDS, MOVE_PICK},
        {MOVE_REDUCE_SCATTER, MOVE_ALL_REDUCE, MOVE_ALL_REDUCE, MOVE_KINDS, MOVE_KINDS, MOVE_KINDS},
        {MOVE_KINDS, MOVE_ALL_REDUCE_MAX, MOVE_ALL_REDUCE_MAX, MOVE_KINDS, MOVE_KINDS, MOVE_KINDS},
        {MOVE_KINDS, MOVE_BROADCAST, MOVE_BROADCAST, MOVE_TERM, MOVE_KINDS, MOVE_SEND},
    };
    uint8_t k = table[f->type[axis]][t->type[axis]];
    if (k == MOVE_ALL_TO_ALL && shifted(f, t, axis)) return MOVE_SHIFT;
    if (k == MOVE_SEND && f->at[axis] == t->at[axis]) return MOVE_KINDS;
    if (takes_two(f, t, axis)) return MOVE_PICK;
    bool placed = f->type[axis] == TY_AT || t->type[axis] == TY_AT;
    if (!placed && memcmp(&f->pair[axis], &t->pair[axis], sizeof *f->pair)) return MOVE_KINDS;
    return k == none ? MOVE_KINDS : (MoveKind)k;
}

/* Terms or copies at a pair of coordinates: only those two are the group. */
static void move_pair(Move *m) {
    for (int i = 0; i < m->axes.n; i++) {
        int x = m->axes.a[i];
        const Layout *l = layout_paired(&m->from, x) ? &m->from : &m->to;
        if (!layout_paired(l, x)) continue;
        m->axes.paired = (uint8_t)(x + 1);
        m->axes.pair = l->pair[x];
    }
}
static bool entry_eq(const Entry *a, const Entry *b) { return !memcmp(a, b, sizeof *a); }
/* Length of the common beginning of dim d's entries. */
static int common(const Layout *a, const Layout *b, int d) {
    int k = 0;
    bool list =
        a->list == b->list && a->flat.first == b->flat.first && a->flat.total == b->flat.total;
    while ((list || d < a->ndim) && k < a->n[d] && k < b->n[d] &&
           entry_eq(&a->e[d][k], &b->e[d][k]))
        k++;
    return k;
}
static bool dim_eq(const Layout *a, const Layout *b, int d) {
    return a->n[d] == b->n[d] && common(a, b, d) == a->n[d];
}

typedef struct {
    const Layout *to;
    Layout cur;
    MovePlan *out;
    bool failed;
    bool spare; /* gather no more than it takes until an axis that another dim wants can move there
                 */
} Planner;

/* Sets dim d of `l` to the first n entries of `e`, drops trailing ghosts, marks what is cut as
 * such. */
static void set_dim(Layout *l, int d, const Entry *e, int n) {
    Entry keep[LAYOUT_MAX_ENTRIES];
    if (d == l->ndim && !n) l->flat = (Flat){0}, l->list = 0;
    memcpy(keep, e, sizeof(Entry) * (size_t)n);
    while (n && keep[n - 1].ghost) n--;
    memset(l->e[d], 0, sizeof l->e[d]);
    memcpy(l->e[d], keep, sizeof(Entry) * (size_t)n);
    l->n[d] = (uint8_t)n;
    for (int i = 0; i < n; i++)
        if (!keep[i].ghost) l->type[keep[i].axis] = TY_V;
}
static void emit(Planner *p, const Layout *next, const AxisList *axes) {
    if (p->out->n == MOVES_MAX) {
        p->failed = true;
        return;
    }
    Move *m = &p->out->m[p->out->n++];
    m->from = p->cur;
    m->to = *next;
    m->axes = *axes;
    m->kind = move_kind(&p->cur, next, axes->a[0]);
    move_pair(m);
    if (m->kind == MOVE_KINDS) p->failed = true;
    p->cur = *next;
}
static AxisList one_axis(int a) { return (AxisList){.n = 1, .a = {(uint8_t)a}}; }

/* 0: to the ranks where it is wanted, as it lies: what is to be whole there is gathered there. */
static bool step_place(Planner *p) {
    for (int a = 0; a < MESH_MAX_AXES; a++) {
        if (p->to->type[a] != TY_AT || p->cur.type[a] != TY_AT || p->cur.at[a] == p->to->at[a])
            continue;
        Layout next = p->cur;
        next.at[a] = p->to->at[a];
        AxisList A = one_axis(a);
        emit(p, &next, &A);
        return true;
    }
    return false;
}
/* 0b: equal copies on all ranks of an axis to two of them. Of copies at two one is the term of a
 * sum over all. */
static bool step_pair(Planner *p) {
    for (int a = 0; a < MESH_MAX_AXES; a++) {
        bool two = layout_paired(&p->cur, a), whole = p->cur.type[a] == TY_I;
        bool term = two && p->to->type[a] == TY_P && !layout_paired(p->to, a) &&
                    (whole || p->cur.type[a] == TY_R);
        if (!term && !takes_two(&p->cur, p->to, a)) continue;
        Layout next = p->cur;
        next.pair[a] = p->to->pair[a];
        if (term) layout_place(&next, a, p->cur.pair[a].low);
        AxisList A = one_axis(a);
        emit(p, &next, &A);
        return true;
    }
    return false;
}
/* 0c: equal copies to one of the ranks that have them, or from that one back to all. */
static bool step_owner(Planner *p) {
    bool pick = false;
    for (int a = 0; a < MESH_MAX_AXES; a++)
        pick |= p->to->type[a] == TY_AT && (p->cur.type[a] == TY_I || p->cur.type[a] == TY_R);
    AxisList A = {0};
    Layout next = p->cur;
    for (int a = 0; a < MESH_MAX_AXES; a++) {
        bool equal = p->cur.type[a] == TY_I || p->cur.type[a] == TY_R,
             spread = p->cur.type[a] == TY_AT && (p->to->type[a] == TY_I || p->to->type[a] == TY_R);
        if (pick ? !equal || p->to->type[a] != TY_AT : !spread) continue;
        next.type[a] = p->to->type[a];
        next.at[a] = p->to->at[a];
        next.pair[a] = p->to->pair[a];
        A.a[A.n++] = (uint8_t)a;
    }
    if (A.n) emit(p, &next, &A);
    return A.n;
}
/* 1: all I -> R at once, first, so that the adjoint all-reduce acts on the smallest data. */
static bool step_i_to_r(Planner *p) {
    AxisList A = {0};
    Layout next = p->cur;
    for (int a = 0; a < MESH_MAX_AXES; a++)
        if (p->cur.type[a] == TY_I && p->to->type[a] == TY_R) {
            A.a[A.n++] = (uint8_t)a;
            next.type[a] = TY_R;
        }
    if (A.n) emit(p, &next, &A);
    return A.n;
}
/* 1b: same axis, same place, other cut (chunk <-> zigzag): an all-to-all inside the dim. Round a
 * ring it is one hop at a time, so that the copies on the way are values too. */
static bool step_recut(Planner *p) {
    for (int d = 0; d <= p->cur.ndim; d++) {
        int n = p->cur.n[d];
        if (!n || p->to->n[d] < n || common(&p->cur, p->to, d) < n - 1) continue;
        const Entry *c = &p->cur.e[d][n - 1], *t = &p->to->e[d][n - 1];
        if (entry_eq(c, t) || c->axis != t->axis || c->ghost || t->ghost) continue;
        Layout next = p->cur;
        Entry hop = *c;
        hop.shift = (uint8_t)(c->shift < t->shift ? c->shift + 1 : c->shift - 1);
        if (c->how == t->how) next.e[d][n - 1] = hop;
        else set_dim(&next, d, p->to->e[d], n);
        AxisList A = one_axis(c->axis);
        emit(p, &next, &A);
        return true;
    }
    return false;
}
/* The axis of the next wanted entry cuts another dim j: move its tail here; if it is not the tail
 * there but everything from it on has to go, it leaves a ghost. */
static bool step_exchange(Planner *p, int d, const Entry *e) {
    int j = layout_where(&p->cur, e->axis), q = 0;
    if (j < 0 || j == d || j == p->cur.ndim || d == p->cur.ndim) return false;
    while (p->cur.e[j][q].axis != e->axis || p->cur.e[j][q].ghost) q++;
    int last = p->cur.n[j] - 1;
    bool rest_goes = p->to->n[j] <= q && common(&p->cur, p->to, j) == p->to->n[j];
    if (q != last && !rest_goes) return false;
    Layout next = p->cur;
    Entry old[LAYOUT_MAX_ENTRIES];
    memcpy(old, p->cur.e[j], sizeof old);
    old[q].ghost = 1;
    Entry here[LAYOUT_MAX_ENTRIES];
    memcpy(here, p->cur.e[d], sizeof here);
    int n = p->cur.n[d];
    if (n == LAYOUT_MAX_ENTRIES) return false;
    here[n] = *e;
    set_dim(&next, j, old, last + 1);
    set_dim(&next, d, here, n + 1);
    AxisList A = one_axis(e->axis);
    emit(p, &next, &A);
    return true;
}
/* LIST cuts the flattened rest of a stored dim: it may be extended only when every letter lies as
 * it shall. */
static bool list_ready(const Planner *p) {
    for (int d = 0; d < p->cur.ndim; d++)
        if (!dim_eq(&p->cur, p->to, d)) return false;
    return true;
}
/* 2: slices, reduce-scatters and exchanges that extend a prefix of the target. */
static bool step_extend(Planner *p) {
    for (int d = 0; d <= p->cur.ndim; d++) {
        int n = p->cur.n[d];
        if (p->to->n[d] <= n || common(&p->cur, p->to, d) < n ||
            (d == p->cur.ndim && !list_ready(p)))
            continue;
        const Entry *e = &p->to->e[d][n];
        if (e->ghost) continue;
        Layout next = p->cur;
        if (d == p->cur.ndim) next.flat = p->to->flat, next.list = p->to->list;
        int x = p->cur.type[e->axis];
        if (x == TY_I || x == TY_R) {
            set_dim(&next, d, p->to->e[d], n + 1);
            AxisList A = one_axis(e->axis);
            emit(p, &next, &A);
            return true;
        }
        if (x == TY_P) { /* all consecutive pending axes in one reduce-scatter */
            AxisList A = {0};
            int k = n;
            while (k < p->to->n[d] && !p->to->e[d][k].ghost &&
                   p->cur.type[p->to->e[d][k].axis] == TY_P)
                A.a[A.n++] = p->to->e[d][k++].axis;
            set_dim(&next, d, p->to->e[d], k);
            emit(p, &next, &A);
            return true;
        }
        if (x == TY_V && step_exchange(p, d, e)) return true;
    }
    return false;
}
/* 3: pending sums that end in I or R, merged over axes. */
static bool step_reduce(Planner *p) {
    for (int t = TY_I; t <= TY_R; t++)
        for (int from = TY_P; from <= TY_M; from++) {
            AxisList A = {0};
            Layout next = p->cur;
            for (int a = 0; a < MESH_MAX_AXES; a++)
                if (p->cur.type[a] == from && p->to->type[a] == t) {
                    A.a[A.n++] = (uint8_t)a;
                    next.type[a] = (uint8_t)t;
                }
            if (A.n) {
                emit(p, &next, &A);
                return true;
            }
        }
    return false;
}
static int gather_type(const Layout *to, int axis) {
    int t = to->type[axis];
    return t == TY_I || t == TY_R || t == TY_P ? t : TY_I;
}
static bool wanted_elsewhere(const Planner *p, int d, int axis) {
    int j = layout_where(p->to, axis);
    return j >= 0 && j != d;
}
/* Un-nests dim d down to `keep` entries, as far as one target type goes. */
static bool step_ungather(Planner *p, int d, int keep) {
    const Entry *c = p->cur.e[d];
    int n = p->cur.n[d];
    if (n <= keep) return false;
    if (c[n - 1].ghost) {
        p->failed = true;
        return true;
    }
    int t = gather_type(p->to, c[n - 1].axis), j = n - 1;
    while (j > keep && !c[j - 1].ghost && gather_type(p->to, c[j - 1].axis) == t &&
           !(p->spare && wanted_elsewhere(p, d, c[j - 1].axis)))
        j--;
    AxisList A = {0};
    Layout next = p->cur;
    for (int i = j; i < n; i++) {
        A.a[A.n++] = c[i].axis;
        next.type[c[i].axis] = (uint8_t)t;
    }
    Entry old[LAYOUT_MAX_ENTRIES];
    memcpy(old, c, sizeof old);
    set_dim(&next, d, old, j);
    emit(p, &next, &A);
    return true;
}
/* LIST lies innermost and its places depend on the letters' cuts: before any of them changes it
 * must be whole. */
static bool step_gather_list(Planner *p) {
    int L = p->cur.ndim;
    return p->cur.n[L] && !list_ready(p) && step_ungather(p, L, 0);
}
/* 4: gather the longest tail that is no prefix of the target; LIST first, it lies innermost. */
static bool step_gather(Planner *p) {
    int L = p->cur.ndim;
    if (p->cur.n[L] && (!list_ready(p) || common(&p->cur, p->to, L) < p->cur.n[L]))
        return step_ungather(p, L, list_ready(p) ? common(&p->cur, p->to, L) : 0);
    for (int pass = p->spare ? 0 : 1; pass < 2; pass++)
        for (int d = 0; d < L; d++) {
            int n = p->cur.n[d], keep = common(&p->cur, p->to, d);
            if (pass == 0 && n > keep && wanted_elsewhere(p, d, p->cur.e[d][n - 1].axis)) continue;
            if (step_ungather(p, d, keep)) return true;
        }
    return false;
}
/* 5: I or R -> P (the first rank keeps the value; it stays at its place), R -> I. */
static bool step_types(Planner *p) {
    for (int pass = 0; pass < 2; pass++)
        for (int a = 0; a < MESH_MAX_AXES; a++) {
            int x = p->cur.type[a], y = p->to->type[a];
            bool whole = x == TY_I || x == TY_R || x == TY_AT;
            if (pass == 0 ? !(whole && y == TY_P) : !(x == TY_R && y == TY_I)) continue;
            Layout next = p->cur;
            next.type[a] = (uint8_t)y;
            next.at[a] = 0;
            next.pair[a] = p->to->pair[a];
            AxisList A = one_axis(a);
            emit(p, &next, &A);
            return true;
        }
    return false;
}

/* Neighbouring all-to-alls, and slices from one type, are one move over the product group. */
static void merge(MovePlan *p) {
    int n = 0;
    for (int i = 0; i < p->n; i++) {
        Move *last = n ? &p->m[n - 1] : NULL, *m = &p->m[i];
        bool slices = last && m->kind == MOVE_SLICE &&
                      last->from.type[last->axes.a[0]] == m->from.type[m->axes.a[0]];
        if (last && last->kind == m->kind && (m->kind == MOVE_ALL_TO_ALL || slices) &&
            last->axes.n + m->axes.n <= MESH_MAX_AXES) {
            last->to = m->to;
            for (int k = 0; k < m->axes.n; k++) last->axes.a[last->axes.n++] = m->axes.a[k];
        } else p->m[n++] = *m;
    }
    p->n = n;
}

static bool greedy(const Layout *from, const Layout *to, bool spare, MovePlan *out) {
    assert(from->ndim == to->ndim && "a move changes no dims");
    // cppcheck-suppress ctuuninitvar ; out is only written
    Planner p = {to, *from, out, false, spare};
    out->n = 0;
    while (!layout_eq(&p.cur, to) && !p.failed)
        if (!(step_place(&p) || step_pair(&p) || step_owner(&p) || step_i_to_r(&p) ||
              step_gather_list(&p) || step_recut(&p) || step_extend(&p) || step_reduce(&p) ||
              step_gather(&p) || step_types(&p)))
            return false;
    if (p.failed) return false;
    merge(out);
    return true;
}
bool redistribute_greedy(const Layout *from, const Layout *to, MovePlan *out) {
    return greedy(from, to, false, out);
}

void redistribute_mirror(const MovePlan *p, MovePlan *out) {
    assert(p != out && p->n <= MOVES_MAX);
    out->n = p->n;
    for (int i = 0; i < p->n; i++) {
        const Move *m = &p->m[p->n - 1 - i];
        Move *r = &out->m[i];
        r->from = layout_dual(&m->to);
        r->to = layout_dual(&m->from);
        r->axes = m->axes;
        r->kind = move_kind(&r->from, &r->to, m->axes.a[0]);
    }
}
/* A plan is large: only what is planned is copied. */
static void copy_plan(const MovePlan *p, MovePlan *out) {
    out->n = p->n;
    memcpy(out->m, p->m, (size_t)p->n * sizeof *p->m);
}

static double local_count(const Mesh *m, const Layout *l, const int64_t *N) {
    int64_t n[LAYOUT_MAX_DIMS];
    double c = 1;
    layout_local(m, l, N, 0, n);
    for (int d = 0; d < l->ndim; d++) c *= (double)n[d];
    for (int i = 0; i < l->n[l->ndim]; i++) c /= (double)m->axis[l->e[l->ndim][i].axis].size;
    return c;
}
/* Elements rank 0 sends, unpadded: what plans are compared by. */
static double plan_cost(const Mesh *m, const int64_t *N, const MovePlan *p, int *collectives) {
    double c = 0;
    *collectives = 0;
    for (int i = 0; i < p->n; i++) {
        const Move *v = &p->m[i];
        double n = (double)mesh_size(m, &v->axes), in = local_count(m, &v->from, N),
               out = local_count(m, &v->to, N);
        *collectives += move_communicates(v->kind);
        const double whole[MOVE_SENDS] = {
            [SENDS_BLOCK] = out, [SENDS_PART] = in, [SENDS_BOTH] = 2 * in,
            [SENDS_PIECES] = in, [SENDS_ONCE] = in, [SENDS_ON] = in};
        c += (n - 1) / n * whole[move_sends(v->kind)];
    }
    return c;
}

/* One of the ways that are compared: greedy, its mirror, and both with `spare`. */
static bool candidate(const Layout *from, const Layout *to, int which, MovePlan *out) {
    if (which % 2 == 0) return greedy(from, to, which / 2, out);
    MovePlan back;
    Layout df = layout_dual(from), dt = layout_dual(to);
    if (!greedy(&dt, &df, which / 2, &back)) return false;
    redistribute_mirror(&back, out);
    for (int i = 0; i < out->n; i++)
        if (out->m[i].kind == MOVE_KINDS) return false;
    return true;
}
bool redistribute(const Mesh *m, const int64_t *N, const Layout *from, const Layout *to,
                  MovePlan *out) {
    bool found = false, max = false;
    double best = 0;
    int least = 0;
    for (int a = 0; a < m->naxes; a++) max |= from->type[a] == TY_M || to->type[a] == TY_M;
    for (int which = 0; which < 4; which++) {
        MovePlan next; /* large: only what is planned is written */
        int n;
        /* a max has no mirror */
        if ((max && which % 2) || !candidate(from, to, which, &next)) continue;
        double cost = plan_cost(m, N, &next, &n), eps = 1e-9 * (cost + best);
        bool less = !found || cost < best - eps ||
                    (cost <= best + eps && (n < least || (n == least && next.n < out->n)));
        if (!less) continue;
        copy_plan(&next, out);
        best = cost, least = n;
        found = true;
    }
    return found;
}
