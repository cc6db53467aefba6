/* capacity: an index list without the rows for which an expert has no room. An expert takes
 * ceil(tokens k factor / E) rows of each group of tokens (Switch Transformers, Fedus et al. 2021,
 * eq. 3; GShard); who comes first is a matter of priority: tokens in their order, all first choices
 * before all second ones, or the largest weights. Operands: the list, and the weights of its rows.
 * Refuses to know whose tokens a group is. No gradient. */
#include "ops/capacity.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

/* A row that wants a place. */
typedef struct {
    int64_t row, token; /* token: b * S + t in the whole */
    int32_t group;
    double first; /* smaller goes first; then the row */
} Wish;
typedef struct {
    const OpCall *c;
    int64_t rows, tokens; /* tokens of the whole */
    int64_t *room;        /* of an expert, for each group */
    Wish *wish;
    bool *kept;
} Capacity;

static int64_t id_of(const Capacity *x, int64_t row) { return ((const int64_t *)x->c->ids.p)[row]; }
static double weight(const OpCall *c, int64_t row) {
    return el_get(&c->in[1], c->dtype, row * c->in[1].s[0]);
}
int64_t op_places(const Attrs *at, int64_t tokens, int64_t experts) {
    double n = (double)tokens * at->top * at->factor / (double)experts;
    return n < 0x1p62 ? (int64_t)ceil(n - 1e-9) : INT64_MAX;
}
static int64_t places(const OpCall *c, int64_t tokens) {
    return op_places(c->at, tokens, c->global['e' - 'a']);
}
int64_t *capacity_rooms(const OpCall *c, int64_t *groups) {
    const int32_t *group = c->at->group;
    int64_t tokens = c->global['b' - 'a'] * c->global['t' - 'a'];
    int32_t last = 0;
    for (int64_t i = 0; group && i < tokens; i++) last = group[i] > last ? group[i] : last;
    int64_t *room = base_malloc(base_mul((size_t)last + 1, sizeof *room));
    for (int32_t g = 0; g <= last; g++) room[g] = 0;
    for (int64_t i = 0; i < tokens; i++) room[group ? group[i] : 0]++;
    for (int32_t g = 0; g <= last; g++) room[g] = places(c, room[g]);
    *groups = last + 1;
    return room;
}

/* ---- priority ---- */
static int by_token(const void *p, const void *q) {
    const Wish *a = p, *b = q;
    if (a->token != b->token) return a->token < b->token ? -1 : 1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}
static int by_row(const void *p, const void *q) {
    const Wish *a = p, *b = q;
    return a->row < b->row ? -1 : a->row > b->row;
}
static int by_priority(const void *p, const void *q) {
    const Wish *a = p, *b = q;
    if (a->group != b->group) return a->group < b->group ? -1 : 1;
    if (a->first != b->first) return a->first < b->first ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}
/* A row's slot: how many of its token's have a larger weight, or the same and a lower expert. */
static void make_slots(const Capacity *x) {
    qsort(x->wish, (size_t)x->rows, sizeof *x->wish, by_token);
    for (int64_t i = 0, slot = 0; i < x->rows; i++) {
        slot = i && x->wish[i].token == x->wish[i - 1].token ? slot + 1 : 0;
        x->wish[i].first = (double)slot;
    }
    qsort(x->wish, (size_t)x->rows, sizeof *x->wish, by_row);
}
static void make_wishes(const Capacity *x) {
    const OpCall *c = x->c;
    for (int64_t r = 0; r < x->rows; r++) {
        int64_t token = id_of(x, r) % x->tokens;
        double first = c->at->priority == 'o' ? 0 : -weight(c, r);
        x->wish[r] = (Wish){r, token, c->at->group ? c->at->group[token] : 0, first};
    }
    if (c->at->priority == 's') make_slots(x);
}

/* ---- places ---- */
/* The rows [lo, hi) are one expert's. */
static void keep_expert(const Capacity *x, int64_t lo, int64_t hi) {
    int64_t taken = 0, room = 0;
    qsort(x->wish + lo, (size_t)(hi - lo), sizeof *x->wish, by_priority);
    for (int64_t i = lo; i < hi; i++) {
        if (i == lo || x->wish[i].group != x->wish[i - 1].group) {
            taken = 0;
            room = x->room[x->wish[i].group];
        }
        x->kept[x->wish[i].row] = taken++ < room;
    }
}
static Capacity capacity_of(const OpCall *c) {
    Capacity x = {
        .c = c, .rows = c->ids.n[0], .tokens = c->global['b' - 'a'] * c->global['t' - 'a']};
    x.wish = base_malloc(base_mul((size_t)x.rows + 1, sizeof *x.wish));
    x.kept = base_malloc((size_t)x.rows + 1);
    int64_t groups;
    x.room = capacity_rooms(c, &groups);
    make_wishes(&x);
    for (int64_t lo = 0, hi; lo < x.rows; lo = hi) {
        int64_t e = id_of(&x, lo) / x.tokens;
        for (hi = lo; hi < x.rows && id_of(&x, hi) / x.tokens == e;) hi++;
        keep_expert(&x, lo, hi);
    }
    return x;
}
static void capacity_free(Capacity *x) {
    free(x->wish);
    free(x->room);
    free(x->kept);
}
/* Without numbers: as many as there is room for. */
static int64_t capacity_rows(const OpCall *c) {
    int64_t n = 0, tokens = c->local['b' - 'a'] * c->local['t' - 'a'], room;
    if (!c->ids.p) {
        bool large = __builtin_mul_overflow(places(c, tokens), c->local['e' - 'a'], &room);
        return !large && room < c->ids.n[0] ? room : c->ids.n[0];
    }
    Capacity x = capacity_of(c);
    for (int64_t r = 0; r < x.rows; r++) n += x.kept[r];
    capacity_free(&x);
    return n;
}
static void capacity_forward(const OpCall *c) {
    Capacity x = capacity_of(c);
    const int64_t *ids = c->ids.p;
    int64_t *out = c->out.p;
    for (int64_t r = 0, at = 0; r < x.rows; r++)
        if (x.kept[r]) out[at++] = ids[r];
    capacity_free(&x);
}

/* ---- near ties ---- */
/* How far a row's weight is from its token's next one, which may come before it instead. */
static double slot_gap(const Capacity *x, int64_t row) {
    double gap = INFINITY;
    for (int64_t r = 0; r < x->rows; r++)
        if (r != row && id_of(x, r) % x->tokens == id_of(x, row) % x->tokens)
            gap = fmin(gap, fabs(weight(x->c, r) - weight(x->c, row)));
    return gap;
}
static double place_gap(const Capacity *x, int64_t taken, int64_t left) {
    if (x->c->at->priority == 'w') return fabs(weight(x->c, taken) - weight(x->c, left));
    return x->c->at->priority == 's' ? fmin(slot_gap(x, taken), slot_gap(x, left)) : INFINITY;
}
/* Row `taken` stands for the next of the own rows, of the same expert and group, that the other
 * list has not. */
static ListTie place_tie(const Capacity *x, int64_t taken, const bool *theirs, bool *used) {
    ListTie tie = {id_of(x, taken), -1, INFINITY};
    for (int64_t r = 0; r < x->rows && tie.left < 0; r++) {
        bool alike = id_of(x, r) / x->tokens == id_of(x, taken) / x->tokens &&
                     x->wish[r].group == x->wish[taken].group;
        if (!alike || !x->kept[r] || theirs[r] || used[r]) continue;
        used[r] = true;
        tie.left = id_of(x, r);
        tie.gap = place_gap(x, taken, r);
    }
    return tie;
}
static int64_t capacity_ties(const OpCall *c, const int64_t *ids, int64_t n, ListTie *tie) {
    Capacity x = capacity_of(c);
    bool *theirs = base_malloc(base_mul((size_t)(2 * x.rows) + 1, sizeof *theirs)),
         *used = theirs + x.rows;
    int64_t at = 0, k = 0;
    memset(theirs, 0, (size_t)(2 * x.rows));
    for (int64_t r = 0; r < x.rows; r++) {
        while (k < n && ids[k] < id_of(&x, r)) k++;
        theirs[r] = k < n && ids[k] == id_of(&x, r);
    }
    /* wishes stand in the order of places: by row again, for their groups */
    qsort(x.wish, (size_t)x.rows, sizeof *x.wish, by_row);
    for (int64_t r = 0; r < x.rows; r++)
        if (theirs[r] && !x.kept[r]) tie[at++] = place_tie(&x, r, theirs, used);
    free(theirs);
    capacity_free(&x);
    return at;
}
const Op op_capacity = {
    .name = "capacity",
    .rule = "[eb!t!],[eb!t!]->[ebt]",
    .lin = LIN_NONE,
    .nodiff = 3,
    .rows = capacity_rows,
    .ties = capacity_ties,
    .forward = capacity_forward,
    .bound = op_bound_copy,
    .exact = op_exact_same,
    .label = "capacity",
    .glyph = "box",
};
