/* A few real numbers of every collective, for the storyboard: one element per chunk, as each member
 * of one group holds it before, and as the result has it; of small chunks all elements. Reads what
 * the step just run read and wrote, through the index maps; changes nothing. Refuses steps that do
 * something else than is declared (their blocks are not what their layouts say) and large groups.
 */
#include "exec/sample.h"
#include "exec/compare.h"
#include "exec/pieces.h"
#include <math.h>

enum { ALL_CHUNKS = 8, MOST_RANKS = 64 };

typedef struct {
    const Exec *e;
    const Step *s;
    const GTensor *t;
    int64_t n; /* ranks in the group */
    int64_t rank[MOST_RANKS];
    Region from[MOST_RANKS], to[MOST_RANKS];
    Arena *tmp;
} Sample;
typedef struct {
    int64_t g[LAYOUT_MAX_DIMS];
} Index;

static int64_t index_of(const DimIndex *d, int64_t i) { return d->range ? d->lo + i : d->list[i]; }
static int64_t place_of(const DimIndex *d, int64_t g) {
    if (d->range) return g >= d->lo && g < d->lo + d->n ? g - d->lo : -1;
    for (int64_t i = 0; i < d->n; i++)
        if (d->list[i] == g) return i;
    return -1;
}
/* The element with that index in a rank's block; NaN if the block lacks it. A flattened first dim
 * is spread over the letters that the tensor has in its place. */
static double number_at(const Sample *x, int val, int64_t rank, const Region *b, const Index *at) {
    const Tensor *t = &exec_local(x->e, val, rank)->t;
    int64_t p[LAYOUT_MAX_DIMS] = {0}, o = 0;
    int extra = t->nd - b->nd;
    if (extra < 0) return NAN;
    for (int d = 0; d < b->nd; d++) {
        p[d + extra] = place_of(&b->d[d], at->g[d]);
        if (p[d + extra] < 0) return NAN;
    }
    for (int64_t d = extra, rest = p[extra]; extra && d >= 0; d--) {
        p[d] = t->n[d] ? rest % t->n[d] : 0;
        rest = t->n[d] ? rest / t->n[d] : 0;
    }
    for (int d = 0; d < t->nd; d++) {
        if (p[d] >= t->n[d]) return NAN;
        o += p[d] * t->s[d];
    }
    Device *dev = x->e->dev;
    Dtype dt = exec_dtype(x->e, val);
    Tensor one = {.p = (char *)t->p + o * dtype_size(dt)}, host = dev->get(dev, &one, dt);
    double found = compare_at(host.p, dt, 0);
    dev->done(dev, &host);
    return found;
}

/* Element i of a block in row-major order; false if it has none. */
static bool element(const Region *b, int64_t i, Index *at) {
    for (int d = b->nd - 1; d >= 0; d--) {
        if (b->n[d] <= 0) return false;
        at->g[d] = index_of(&b->d[d], i % b->n[d]);
        i /= b->n[d];
    }
    return i == 0;
}
/* The first element that both blocks have. */
static bool common(const Region *a, const Region *b, Index *at) {
    for (int d = 0; d < a->nd; d++) {
        int64_t i = 0;
        while (i < a->n[d] && place_of(&b->d[d], index_of(&a->d[d], i)) < 0) i++;
        if (i == a->n[d]) return false;
        at->g[d] = index_of(&a->d[d], i);
    }
    return true;
}
/* The element that stands for chunk c where member r has it. */
static bool chosen(const Sample *x, int64_t c, int64_t r, Index *at) {
    MoveKind k = x->s->move.kind;
    if (move_gathers(k))
        return move_cuts(k) ? common(&x->to[c], &x->from[r], at) : element(&x->from[c], 0, at);
    if (move_cuts(k)) return element(&x->to[c], 0, at);
    int64_t all = 1; /* an all-reduce cuts what a rank holds into n pieces, in memory order */
    for (int d = 0; d < x->from[0].nd; d++) all *= x->from[0].n[d];
    int64_t i = c * ((all + x->n - 1) / x->n);
    return i < all && element(&x->from[0], i, at);
}
/* Who has chunk c in the end, and did not bring it: so the number comes out of the collective. */
static int64_t receiver(const Sample *x, int64_t c) {
    return move_cuts(x->s->move.kind) ? c : (c + 1) % x->n;
}

/* Global index in the stored dims: letters of one dim taken together. */
static const char *index_text(const Sample *x, const Index *at, Arena *a) {
    Str s = str_new(a);
    const GTensor *t = x->t;
    for (int d = 0, l = 0, k = 0; d < t->nstored; d++) {
        int64_t i = 0;
        if (d == 0 && x->from[0].outer) i = at->g[k++], l += x->from[0].outer;
        else if (l == t->nd) break; /* all is one list */
        else
            for (int j = 0; j < t->stored[d]; j++) i = i * t->size[l++] + at->g[k++];
        str_addf(&s, "%s%lld", d ? ", " : "[", (long long)i);
    }
    str_add(&s, t->nstored ? "]" : "[]");
    return s.s;
}

static bool prepare(Sample *x, const Exec *e, const Step *s, int64_t rank, Arena *tmp) {
    const Program *p = e->p;
    bool moves = s->kind == ST_MOVE && !s->act &&
                 (move_cuts(s->move.kind) || move_communicates(s->move.kind));
    if (!moves || move_relocates(s->move.kind)) return false; /* a send changes no number */
    if (graph_is_list(&p->graph->t[p->val[s->out].tensor])) return false; /* names of rows */
    if (!layout_holds(p->mesh, &s->move.from, rank)) rank = layout_first(p->mesh, &s->move.from);
    *x = (Sample){.e = e,
                  .s = s,
                  .t = &p->graph->t[p->val[s->out].tensor],
                  .n = mesh_size(p->mesh, &s->move.axes)};
    if (x->n < 2 || x->n > MOST_RANKS || x->t->nd == 0) return false;
    x->tmp = tmp;
    Pieces moved = pieces_of(p, s);
    for (int64_t i = 0; i < x->n; i++) {
        x->rank[i] = mesh_member(p->mesh, &s->move.axes, rank, i);
        x->from[i] = pieces_from(&moved, &(Piece){x->rank[i], x->rank[i]}, tmp);
        x->to[i] = pieces_to(&moved, x->rank[i], tmp);
        int outer = x->from[i].outer ? x->from[i].outer : x->to[i].outer;
        x->from[i] = region_listed(&x->from[i], outer, tmp);
        x->to[i] = region_listed(&x->to[i], outer, tmp);
    }
    return true;
}

static void fill(Sample *x, TraceSample *k, Arena *a) {
    bool gather = move_gathers(x->s->move.kind) && !move_cuts(x->s->move.kind);
    int64_t few = x->n > ALL_CHUNKS ? 4 : x->n;
    k->chunks = ARENA_ARRAY(a, double, few);
    k->before = ARENA_ARRAY(a, double, gather ? few : few * x->n);
    k->after = ARENA_ARRAY(a, double, few);
    k->at = ARENA_ARRAY(a, const char *, few);
    for (int64_t i = 0; i < few; i++) {
        int64_t c = x->n > ALL_CHUNKS && i == few - 1 ? x->n - 1 : i, to = receiver(x, c);
        Index at = {0};
        k->chunks[k->n_chunks++] = (double)c;
        for (int64_t r = gather ? c : 0; r < (gather ? c + 1 : x->n); r++) {
            double *v = &k->before[k->n_before++];
            *v = chosen(x, c, r, &at) ? number_at(x, x->s->in[0], x->rank[r], &x->from[r], &at)
                                      : NAN;
        }
        /* an exchange: of all that member c receives, what comes from its right neighbour */
        bool has = chosen(x, c, (c + 1) % x->n, &at);
        k->after[k->n_after++] = has ? number_at(x, x->s->out, x->rank[to], &x->to[to], &at) : NAN;
        k->at[k->n_at++] = has ? index_text(x, &at, a) : "";
    }
}

/* ---- whole chunks ---- */

/* The elements of chunk c, as a matrix of the last dim: of a block all, of an all-reduce its part
 * of the list of them. */
typedef struct {
    const Region *of;
    int64_t first, n, columns;
} Chunk;
static Chunk chunk_of(const Sample *x, int64_t c) {
    MoveKind k = x->s->move.kind;
    const Region *of = move_cuts(k) ? &x->to[c] : move_gathers(k) ? &x->from[c] : &x->from[0];
    int64_t all = 1, last = of->nd ? of->n[of->nd - 1] : 1;
    for (int d = 0; d < of->nd; d++) all *= of->n[d];
    if (move_cuts(k) || move_gathers(k)) return (Chunk){of, 0, all, last};
    int64_t each = (all + x->n - 1) / x->n, first = c * each < all ? c * each : all;
    int64_t n = first + each < all ? each : all - first;
    return (Chunk){of, first, n, last && first % last == 0 && n % last == 0 ? last : n};
}
/* Only where a chunk is the same part of what each member holds: not of an all-to-all. */
static bool small(const Sample *x) {
    MoveKind k = x->s->move.kind;
    bool same = move_gathers(k) ? !move_cuts(k) : move_reduces(k) || k == MOVE_SLICE;
    if (!same || x->n > ALL_CHUNKS) return false;
    for (int64_t c = 0; c < x->n; c++) {
        Chunk at = chunk_of(x, c);
        if (at.n < 1 || at.n > SAMPLE_ROWS * SAMPLE_COLUMNS || at.columns > SAMPLE_COLUMNS ||
            at.n / at.columns > SAMPLE_ROWS)
            return false;
    }
    return true;
}
typedef struct {
    int64_t rank;
    const Region *block;
} Holder;
/* Element i of a chunk as a rank has it in its block of a value. */
static double number_of(const Sample *x, int val, Holder by, const Chunk *of, int64_t i) {
    Index at = {0};
    return element(of->of, of->first + i, &at) ? number_at(x, val, by.rank, by.block, &at) : NAN;
}
static void fill_whole(Sample *x, TraceSample *k, Arena *a) {
    bool gather = move_gathers(x->s->move.kind);
    if (!small(x)) return;
    k->rows = ARENA_ARRAY(a, double, x->n);
    k->columns = ARENA_ARRAY(a, double, x->n);
    k->made = ARENA_ARRAY(a, double, x->n *SAMPLE_ROWS *SAMPLE_COLUMNS);
    k->whole = ARENA_ARRAY(a, double, x->n *(gather ? 1 : x->n) * SAMPLE_ROWS * SAMPLE_COLUMNS);
    for (int64_t c = 0; c < x->n; c++) {
        Chunk of = chunk_of(x, c);
        k->rows[k->n_rows++] = (double)(of.n / of.columns);
        k->columns[k->n_columns++] = (double)of.columns;
        for (int64_t r = gather ? c : 0; r < (gather ? c + 1 : x->n); r++)
            for (int64_t i = 0; i < of.n; i++)
                k->whole[k->n_whole++] =
                    number_of(x, x->s->in[0], (Holder){x->rank[r], &x->from[r]}, &of, i);
        for (int64_t i = 0, to = receiver(x, c); i < of.n; i++)
            k->made[k->n_made++] =
                number_of(x, x->s->out, (Holder){x->rank[to], &x->to[to]}, &of, i);
    }
}

void sample_step(Trace *t, const Exec *e, const Step *s, int64_t rank) {
    for (int i = t->n_samples - 1; i >= 0; i--)
        if (t->samples[i].step == s->id) return; /* of an earlier iteration */
    Arena *tmp = arena_new();
    Sample *x = ARENA_NEW(tmp, Sample);
    if (prepare(x, e, s, rank, tmp)) {
        TraceSample *k = ARENA_PUSH(t->arena, t->samples, t->n_samples, t->cap_samples);
        *k = (TraceSample){.step = s->id, .size = x->n, .first = x->rank[0]};
        for (int i = t->n_values - 1; i >= 0 && !k->value; i--)
            if (t->values[i].step == s->id) k->value = t->values[i].shape.name;
        fill(x, k, t->arena);
        fill_whole(x, k, t->arena);
    }
    arena_free(tmp);
}
