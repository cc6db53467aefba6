/* Orders of dims. A unit is what an implementation may move as a whole: a letter, or the query
 * heads (K and G together). Refuses to guess where more than MAX_UNITS units would have to be
 * tried. */
#include "drive/arrange.h"
#include <assert.h>
#include <math.h>
#include <string.h>

enum { MAX_UNITS = ARRANGE_UNITS };

typedef struct {
    int n;
    int64_t size[MAX_UNITS], stride[MAX_UNITS]; /* elements, in ours */
    const char *sym[MAX_UNITS];
    int dim[MAX_UNITS]; /* the stored dim it is part of */
} Units;

static bool units_of(const ValueShape *s, Units *u) {
    int dim = 0, left = s->nstored ? s->stored[0] : 0;
    *u = (Units){0};
    for (int l = 0; l < s->nd; l++) {
        while (!left) left = s->stored[++dim];
        left--;
        bool heads = u->n && u->dim[u->n - 1] == dim && !strcmp(u->sym[u->n - 1], "K") &&
                     !strcmp(s->sym[l], "G");
        if (!heads && u->n == MAX_UNITS) return false;
        if (!heads) {
            u->size[u->n] = 1;
            u->sym[u->n] = s->sym[l];
            u->dim[u->n++] = dim;
        } else {
            u->sym[u->n - 1] = "H";
        }
        u->size[u->n - 1] *= s->size[l];
    }
    for (int64_t i = u->n - 1, stride = 1; i >= 0; i--) {
        u->stride[i] = stride;
        stride *= u->size[i];
    }
    return true;
}

/* ---- texts ---- */
/* The units in the order `perm`, grouped as the dims of `shape`; false if they do not give it. Dims
 * of size 1 need no unit. */
static bool grouped(Arena *arena, const Units *u, const int *perm, int nd, const int64_t *shape,
                    const char **text) {
    Str s = str_new(arena);
    int i = 0;
    for (int d = 0; d < nd; d++) {
        int64_t n = 1;
        int first = i;
        str_add(&s, d ? ", " : "[");
        bool one = shape[d] == 1 && i < u->n && u->size[perm[i]] == 1;
        for (; i < u->n && (n < shape[d] || (one && i == first)); i++) {
            n *= u->size[perm[i]];
            str_addf(&s, "%s%s", i > first ? "*" : "", u->sym[perm[i]]);
        }
        if (n != shape[d]) return false;
        if (i == first) str_add(&s, "1");
    }
    str_add(&s, nd ? "]" : "[]");
    *text = s.s;
    while (i < u->n && u->size[perm[i]] == 1) i++;
    return i == u->n;
}
const char *arrange_symbols(Arena *arena, const ValueShape *s) {
    Units u;
    if (!units_of(s, &u)) return "";
    Str t = str_new(arena);
    for (int i = 0; i < u.n; i++)
        str_addf(&t, "%s%s", !i ? "[" : u.dim[i] == u.dim[i - 1] ? "*" : ", ", u.sym[i]);
    str_add(&t, u.n ? "]" : "[]");
    return t.s;
}

/* ---- orders ---- */
static bool next_permutation(int *p, int n) {
    int i = n - 2, j = n - 1;
    while (i >= 0 && p[i] > p[i + 1]) i--;
    if (i < 0) return false;
    while (p[j] < p[i]) j--;
    int t = p[i];
    p[i] = p[j];
    p[j] = t;
    for (int a = i + 1, b = n - 1; a < b; a++, b--) {
        t = p[a];
        p[a] = p[b];
        p[b] = t;
    }
    return true;
}
/* Where in ours the next of theirs stands: i[] counts through theirs, the last dim first. */
static int64_t next_place(const Units *u, const int *perm, int64_t *i, int64_t at) {
    for (int d = u->n - 1; d >= 0; d--) {
        at += u->stride[perm[d]];
        if (++i[d] < u->size[perm[d]]) break;
        at -= u->stride[perm[d]] * u->size[perm[d]];
        i[d] = 0;
    }
    return at;
}
static int64_t units_count(const Units *u) {
    int64_t n = 1;
    for (int k = 0; k < u->n; k++) n *= u->size[k];
    return n;
}
static bool agrees(const Units *u, const int *perm, const double *ours, const double *theirs,
                   double allowed) {
    int64_t n = units_count(u), i[MAX_UNITS] = {0}, at = 0;
    for (int64_t k = 0; k < n; k++, at = next_place(u, perm, i, at))
        if (!(fabs(ours[at] - theirs[k]) <= allowed)) return false;
    return true;
}
void arrange_put(const ValueShape *s, const Arrangement *how, const double *theirs, double *out) {
    Units u;
    bool known = units_of(s, &u);
    assert(known && how->equal);
    int64_t n = known ? units_count(&u) : 0, i[MAX_UNITS] = {0}, at = 0;
    for (int64_t k = 0; k < n; k++, at = next_place(&u, how->perm, i, at)) out[at] = theirs[k];
}
static int place(const Units *u, const int *perm, const char *sym) {
    for (int i = 0; i < u->n; i++)
        if (!strcmp(u->sym[perm[i]], sym)) return i;
    return -1;
}
static bool in_order(const int *perm, int first, int n) {
    for (int i = first; i < n; i++)
        if (perm[i] != i) return false;
    return true;
}
/* Where the order is ours, only the grouping differs. */
static const char *regrouped(const Units *u, int nstored, int nd) {
    int heads = -1;
    for (int i = 0; i + 1 < u->n; i++)
        if (!strcmp(u->sym[i], "H") || !strcmp(u->sym[i], "K")) heads = i;
    bool apart = heads >= 0 && u->dim[heads] != u->dim[heads + 1];
    if (heads >= 0 && nd > nstored && !apart) return "heads are a dim of their own there";
    if (heads >= 0 && nd < nstored && apart) return "heads are flattened there";
    return nd < nstored ? "dims are flattened there" : "dims are split there";
}
static const char *called(const Units *u, const int *perm, int nstored, int nd) {
    static const int same[MAX_UNITS] = {0, 1, 2, 3, 4};
    int b = place(u, perm, "B"), s = place(u, perm, "S"), h = place(u, perm, "H");
    if (h < 0) h = place(u, perm, "K");
    if (in_order(perm, 0, u->n)) return regrouped(u, nstored, nd);
    if (perm[0] == 1 && perm[1] == 0 && b == 1 && s == 0 && in_order(perm, 2, u->n))
        return "sequence first";
    if (h >= 0 && s > h && place(u, same, "S") < place(u, same, u->sym[perm[h]]))
        return "heads before the sequence";
    return nstored == 2 && nd == 2 ? "transposed" : "permuted";
}

/* ---- the pairs of rope ---- */
/* Where element i of a head of n elements stands if the halves that rotate together are put side by
 * side, (0, n/2, 1, n/2 + 1, ..), or `back` from there. */
static int64_t paired(int64_t i, int64_t n, bool back) {
    return back ? (i % 2) * (n / 2) + i / 2 : i < n / 2 ? 2 * i : 2 * (i - n / 2) + 1;
}
static bool agrees_paired(const Units *u, int head, bool back, const double *ours,
                          const double *theirs, double allowed) {
    int64_t n = units_count(u), inner = u->stride[head], size = u->size[head];
    for (int64_t k = 0; k < n; k++) {
        int64_t i = k / inner % size, at = k + (paired(i, size, back) - i) * inner;
        if (!(fabs(ours[k] - theirs[at]) <= allowed)) return false;
    }
    return true;
}
/* Weights of queries and keys are written for one of two ways to rotate: element i with i + d/2, or
 * 2i with 2i + 1. Converters permute the rows of each head. */
static Arrangement rope(Arena *arena, const Units *u, const ValueShape *s, const double *ours,
                        const double *theirs, double allowed) {
    static const char *const what[] = {
        "the pairs of rope stand side by side there (interleaved)",
        "the halves of rope stand one behind the other there (rotate_half)"};
    for (int d = 0; d < u->n; d++) {
        if (strcmp(u->sym[d], "d") || u->size[d] % 2 || u->size[d] < 4) continue;
        for (int back = 0; back < 2; back++)
            if (agrees_paired(u, d, back, ours, theirs, allowed))
                return (Arrangement){what[back], arrange_symbols(arena, s), true, true, {0}};
    }
    return (Arrangement){0};
}

Arrangement arrange(Arena *arena, const ValueShape *s, const double *ours, Theirs theirs,
                    double allowed) {
    int nd = theirs.nd;
    int64_t count = 1;
    for (int d = 0; d < nd; d++) count *= theirs.shape[d];
    assert(nd <= LAYOUT_MAX_DIMS && count == value_count(s));
    size_t bytes = sizeof *theirs.shape * (size_t)nd;
    Arrangement best = {.same_shape = nd == s->nstored && !memcmp(theirs.shape, s->shape, bytes)};
    Units u;
    int perm[MAX_UNITS] = {0, 1, 2, 3, 4};
    if (!units_of(s, &u)) return best;
    bool identity = true;
    do {
        const char *symbols;
        bool skip = identity && best.same_shape;
        identity = false;
        if (skip || !grouped(arena, &u, perm, nd, theirs.shape, &symbols)) continue;
        bool equal = agrees(&u, perm, ours, theirs.x, allowed);
        if (!equal && (best.what || best.same_shape)) continue;
        best =
            (Arrangement){called(&u, perm, s->nstored, nd), symbols, best.same_shape, equal, {0}};
        memcpy(best.perm, perm, sizeof perm);
        if (equal) break;
    } while (next_permutation(perm, u.n));
    if (best.equal || !best.same_shape) return best;
    Arrangement by_rope = rope(arena, &u, s, ours, theirs.x, allowed);
    return by_rope.equal ? by_rope : best;
}
