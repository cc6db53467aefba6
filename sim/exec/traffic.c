/* Bytes and groups of collectives. See traffic.h. */
#include "exec/traffic.h"
#include "exec/rows.h"
#include "exec/volume.h"
#include "exec/widths.h"
#include <string.h>

enum {
    MAX_APART = 4096
}; /* coordinates that are looked at one by one where pieces of an all-to-all differ */

static int64_t elem_bytes(const Traffic *c, const Step *s) {
    return dtype_size(widths_of(c->p, &c->p->val[s->out], c->dtype));
}
/* ---- groups ---- */
/* Of a value that is at one place only the groups there; from one place to another pairs; from one
 * to all whole groups. */
static void fill_groups(const Mesh *m, const Step *s, const AxisList *axes, RankGroups *g) {
    uint32_t in = 0, spread = 0;
    for (int x = 0; x < m->naxes; x++) {
        bool left = s->move.from.type[x] == TY_AT && s->move.to.type[x] != TY_AT;
        spread |= (uint32_t)left << x;
    }
    const Layout *from = &s->move.from, *to = &s->move.to;
    for (int x = 0; x < m->naxes; x++) {
        if (from->type[x] != TY_AT || (spread >> x & 1)) continue;
        int64_t a = from->at[x], b = to->type[x] == TY_AT ? to->at[x] : a, low = a < b ? a : b;
        g->first += low * m->axis[x].stride;
        in |= 1u << x;
        if (a == b) continue;
        g->in_size[g->n_in] = 2;
        g->in_stride[g->n_in++] = (a + b - 2 * low) * m->axis[x].stride;
    }
    for (int i = 0; i < axes->n; i++) {
        bool all = from->type[axes->a[i]] != TY_AT || (spread >> axes->a[i] & 1);
        if (!all) continue;
        const MeshAxis *a = &m->axis[axes->a[i]];
        bool two = axes->paired == axes->a[i] + 1;
        in |= 1u << axes->a[i];
        if (two) g->first += axes->pair.low * a->stride;
        g->in_size[g->n_in] = two ? 2 : a->size;
        g->in_stride[g->n_in++] = two ? (axes->pair.high - axes->pair.low) * a->stride : a->stride;
    }
    for (int x = 0; x < m->naxes; x++) {
        if ((in >> x & 1) || m->axis[x].size == 1) continue;
        if (layout_paired(from, x)) { /* the same at each of the two */
            g->first += from->pair[x].low * m->axis[x].stride;
            g->out_size[g->n_out] = 2;
            g->out_stride[g->n_out++] =
                (from->pair[x].high - from->pair[x].low) * m->axis[x].stride;
            continue;
        }
        g->out_size[g->n_out] = m->axis[x].size;
        g->out_stride[g->n_out++] = m->axis[x].stride;
    }
}

/* ---- classes of ranks with the same bytes ---- */
/* The steps of one record: those of its unit in their order, or the step alone. */
typedef struct {
    int n, cap;
    const Step **s;
} Members;
static Members members_of(const Traffic *c, const Step *lead) {
    Members m = {0};
    if (lead->unit < 0) *ARENA_PUSH(c->tmp, m.s, m.n, m.cap) = lead;
    for (int i = lead->id; lead->unit >= 0 && i < c->p->ns; i++)
        if (c->p->step[i].unit == lead->unit) *ARENA_PUSH(c->tmp, m.s, m.n, m.cap) = &c->p->step[i];
    return m;
}
/* A buffer of several values travels whole, with what fills it up to a multiple of the ranks: each
 * gives or gets its range. False: it is no buffer that is scattered or gathered as declared. */
static bool of_buffer(const Traffic *c, const Step *s, Volume *out) {
    const Layout *cut = s->move.from.flat.total ? &s->move.from : &s->move.to;
    MoveSends how = move_sends(s->move.kind);
    if (!cut->flat.total || s->act || (how != SENDS_PART && how != SENDS_BLOCK)) return false;
    int64_t es = elem_bytes(c, s), n = mesh_size(c->p->mesh, &s->move.axes),
            whole = es * cut->flat.total, part = whole / n;
    bool gathers = how == SENDS_BLOCK;
    *out = (Volume){gathers ? part : whole, gathers ? whole : part, (n - 1) * part};
    return true;
}
/* In bytes, of all members together. */
static Volume sum_of(const Traffic *c, const Members *m, int64_t rank) {
    Volume all = {0};
    if (of_buffer(c, m->s[0], &all)) return all;
    for (int i = 0; i < m->n; i++) {
        Pieces x = pieces_of(c->p, m->s[i]);
        Volume v = volume_of(&x, rank);
        int64_t es = elem_bytes(c, m->s[i]);
        all = (Volume){all.in + es * v.in, all.out + es * v.out, all.sent + es * v.sent};
    }
    return all;
}
static void add_axes(AxisList *out, const AxisList *more) {
    for (int i = 0; i < more->n; i++) {
        bool have = false;
        for (int k = 0; k < out->n; k++) have |= out->a[k] == more->a[i];
        if (!have) out->a[out->n++] = more->a[i];
    }
}
/* Where the pieces of an all-to-all differ, what a rank sends depends on its own coordinate. */
static bool depends_on_rank(const Pieces *x) {
    return mesh_size(x->m, &x->act.axes) <= MAX_APART && !volume_even(x);
}
static void uneven_axes(const Traffic *c, const Members *m, AxisList *axes) {
    for (int i = 0; i < m->n; i++) {
        Pieces x = pieces_of(c->p, m->s[i]);
        classes_uneven(x.m, x.t, &x.from, axes);
        classes_uneven(x.m, x.t, &x.to, axes);
        if (depends_on_rank(&x)) add_axes(axes, &x.act.axes);
    }
}
static AxisParts parts_of(const Traffic *c, const Members *m) {
    AxisList axes = {0};
    uneven_axes(c, m, &axes);
    AxisParts all = classes_even(c->tmp, &axes);
    for (int i = 0; i < m->n && axes.n; i++) {
        Pieces x = pieces_of(c->p, m->s[i]);
        classes_refine(c->tmp, &all, classes_parts(c->sets, classes_alike(c->sets, x.t, &x.from)));
        classes_refine(c->tmp, &all, classes_parts(c->sets, classes_alike(c->sets, x.t, &x.to)));
        if (!depends_on_rank(&x)) continue;
        AxisParts each = classes_apart(c->tmp, x.m, &x.act.axes);
        classes_refine(c->tmp, &all, &each);
    }
    return all;
}
static int64_t larger(int64_t a, int64_t b) { return a > b ? a : b; }
static bool takes_part(const Traffic *c, const Members *m, int64_t rank) {
    const Move *v = &m->s[0]->move;
    return layout_holds(c->p->mesh, &v->from, rank) || layout_holds(c->p->mesh, &v->to, rank);
}
static void fill_bytes(const Traffic *c, const Members *m, TraceCollective *x) {
    AxisParts u = parts_of(c, m);
    int64_t n = classes_count(&u);
    int *member = ARENA_ARRAY(c->tmp, int, n), cap = 0;
    bool *in = ARENA_ARRAY(c->tmp, bool, n);
    TraceTraffic *one = NULL;
    for (int64_t i = 0; i < n; i++) {
        int64_t rank = classes_rank(c->p->mesh, &u, i);
        member[i] = -1;
        if (!takes_part(c, m, rank)) continue;
        Volume b = sum_of(c, m, rank);
        int k = 0;
        while (k < x->n_local && (one[k].bytes_in != b.in || one[k].bytes_out != b.out ||
                                  one[k].bytes_sent != b.sent))
            k++;
        if (k == x->n_local)
            *ARENA_PUSH(c->arena, one, x->n_local, cap) = (TraceTraffic){{0}, b.in, b.out, b.sent};
        member[i] = k;
        x->bytes_in = larger(x->bytes_in, b.in);
        x->bytes_out = larger(x->bytes_out, b.out);
        x->bytes_sent = larger(x->bytes_sent, b.sent);
    }
    if (x->n_local == 1) x->n_local = 0; /* all ranks that take part alike */
    for (int k = 0; k < x->n_local; k++) {
        for (int64_t i = 0; i < n; i++) in[i] = member[i] == k;
        one[k].ranks = classes_ranks(c->sets, &u, in);
    }
    x->local = x->n_local ? one : NULL;
}

/* ---- moves that are alike ---- */
typedef struct {
    Move move;
    int nd, nstored;
    int64_t size[LAYOUT_MAX_DIMS];
    uint8_t stored[LAYOUT_MAX_DIMS];
    int64_t element; /* bytes */
    int64_t in, out, sent;
    int n_local;
    TraceTraffic *local;
} Alike;
static bool same_axes(const AxisList *a, const AxisList *b) {
    return a->n == b->n && !memcmp(a->a, b->a, (size_t)a->n) && a->paired == b->paired &&
           a->pair.low == b->pair.low && a->pair.high == b->pair.high;
}
static bool is_alike(const void *row, const void *want) {
    const Alike *a = row, *b = want;
    return layout_eq(&a->move.from, &b->move.from) && layout_eq(&a->move.to, &b->move.to) &&
           a->move.kind == b->move.kind && same_axes(&a->move.axes, &b->move.axes) &&
           a->element == b->element && a->nd == b->nd && a->nstored == b->nstored &&
           !memcmp(a->size, b->size, sizeof a->size) &&
           !memcmp(a->stored, b->stored, sizeof a->stored);
}
Recent traffic_alike(Arena *arena) {
    enum { MOST = 64 };
    return recent_new(arena, MOST, sizeof(Alike));
}
/* Of a dense value, moved by itself as declared: its sizes and layouts say all. */
static void fill_bytes_once(const Traffic *c, const Members *m, TraceCollective *x) {
    const Step *s = m->s[0];
    const GTensor *t = &c->p->graph->t[c->p->val[s->out].tensor];
    if (m->n > 1 || s->act || t->listed || t->rows) {
        fill_bytes(c, m, x);
        return;
    }
    Alike want = {.move = s->move, .nd = t->nd, .nstored = t->nstored, .element = elem_bytes(c, s)};
    memcpy(want.size, t->size, sizeof want.size);
    memcpy(want.stored, t->stored, sizeof want.stored);
    const Alike *known = recent_find(c->alike, is_alike, &want);
    if (known) {
        x->bytes_in = known->in, x->bytes_out = known->out, x->bytes_sent = known->sent;
        x->n_local = known->n_local, x->local = known->local;
        return;
    }
    fill_bytes(c, m, x);
    want.in = x->bytes_in, want.out = x->bytes_out, want.sent = x->bytes_sent;
    want.n_local = x->n_local, want.local = x->local;
    recent_add(c->alike, &want);
}

/* ---- rows ---- */
/* What one rank sends at most: of an exchange what may leave it, else as many blocks as its kind of
 * move sends. */
static int64_t most_sent(const Traffic *c, const Val *v, const Pieces *x, int64_t rank) {
    int64_t n = mesh_size(x->m, &x->act.axes), in = rows_most(c->p, v, &x->from, rank),
            out = rows_most(c->p, v, &x->to, rank);
    switch (move_sends(x->act.kind)) {
    case SENDS_PIECES: return rows_most_leaving(c->p, v, &x->from, &x->to, rank);
    case SENDS_BLOCK: return (n - 1) * in;
    case SENDS_ONCE: return in;
    case SENDS_ON: return out;
    case SENDS_PART: return (n - 1) * out;
    case SENDS_BOTH: return 2 * (n - 1) * ((in + n - 1) / n);
    case SENDS_NOTHING:
    case MOVE_SENDS: break;
    }
    return 0;
}
static int64_t row_bytes(const Traffic *c, const Step *s, const Pieces *x) {
    int64_t local[LAYOUT_MAX_DIMS], n = elem_bytes(c, s);
    layout_local(x->m, &x->from, x->t->size, 0, local);
    for (int d = x->t->listed; d < x->t->nd; d++) n *= local[d];
    return n;
}
static void fill_rows(const Traffic *c, const Step *s, const Members *m, TraceCollective *x) {
    Pieces p = pieces_of(c->p, s);
    if (!p.t->listed || graph_is_list(p.t)) return;
    const Val *v = &c->p->val[s->out];
    AxisParts u = parts_of(c, m);
    x->row_bytes = row_bytes(c, s, &p);
    for (int64_t i = 0; i < classes_count(&u); i++) {
        int64_t rank = classes_rank(c->p->mesh, &u, i);
        x->most_in = larger(x->most_in, rows_most(c->p, v, &p.from, rank));
        x->most_out = larger(x->most_out, rows_most(c->p, v, &p.to, rank));
        x->most_sent = larger(x->most_sent, most_sent(c, v, &p, rank));
    }
}

/* ---- the record ---- */
static const char *reduce_text(const Act *a) {
    static const char *const text[] = {NULL, "sum", "max", "avg"};
    if (a->kind == MOVE_ALL_REDUCE_MAX) return "max";
    return move_reduces(a->kind) ? text[a->combine] : NULL;
}
const char *traffic_planted_at(Arena *a, Loc planted, Loc own) {
    if (!planted.file || planted.line < 1) return NULL;
    if (own.file && planted.line == own.line && !strcmp(planted.file, own.file)) return NULL;
    return arena_printf(a, "%s:%d", planted.file, planted.line);
}
/* "all_reduce(dp), sum": what the layouts ask for where something else is planted. */
static const char *declared_text(const Traffic *c, const Step *s) {
    Act a = act_declared(&s->move);
    if (layout_eq(&s->move.from, &s->move.to)) return "nothing";
    const char *reduce = reduce_text(&a);
    return arena_printf(c->arena, "%s(%s)%s%s", move_name(a.kind),
                        mesh_axes_text(c->p->mesh, c->arena, &a.axes, true), reduce ? ", " : "",
                        reduce ? reduce : "");
}
void traffic_record(const Traffic *c, const Step *s, TraceCollective *x) {
    const Program *p = c->p;
    Act act = act_of(s);
    x->axes = mesh_axes_text(p->mesh, c->arena, &act.axes, true);
    x->axis = act_elsewhere(&s->move, &act) ? x->axes : program_axes_name(p, s, c->arena);
    fill_groups(p->mesh, s, &act.axes, &x->groups);
    x->reduce = reduce_text(&act);
    x->times = act.times > 1 ? act.times : 0;
    Members m = members_of(c, s);
    int cap = 0, cap_from = 0;
    for (int i = 1; i < m.n; i++) {
        int from = p->val[m.s[i]->in[0]].step;
        *ARENA_PUSH(c->arena, x->with, x->n_with, cap) = m.s[i]->id;
        if (from >= 0) *ARENA_PUSH(c->arena, x->with_from, x->n_with_from, cap_from) = from;
    }
    fill_bytes_once(c, &m, x);
    fill_rows(c, s, &m, x);
    x->skipped = !act.times && !act.alone;
    if (!s->act) return;
    x->planted = s->fault;
    x->planted_at = traffic_planted_at(c->arena, s->planted_at, s->loc);
    x->shift = act.shift;
    x->alone = act.alone;
    x->declared = declared_text(c, s);
}
