/* Random projections of products. See project.h. */
#include "exec/project.h"
#include "kernel/columns.h"
#include "ops/op.h"
#include "ops/util.h"
#include "weights/weights.h"
#include <assert.h>
#include <math.h>
#include <string.h>

enum { SHORT = 16 }; /* a letter below this is projected only if there is no longer one */

/* The two factors of the call as tensors, whichever way it runs: forward the operands, in an
 * adjoint the cotangent and the other operand. */
typedef struct {
    const Tensor *t[2];
    const char *letters[2], *out;
    int n[2], nout;
    uint32_t listed; /* letters that are rows together: none of them is a dim by itself */
} Factors;
bool project_may(const Op *op) { return op->lin == LIN_BILINEAR && !op->asks && !op->rows; }
static bool factors(const Projection *p, Factors *f) {
    const OpCall *c = &p->call;
    const Rule *r = c->rule;
    if (!project_may(c->op) || c->in_int || r->nin != 2) return false;
    int a = p->adjoint ? 1 - c->operand : 0;
    *f = (Factors){.t = {&c->in[a], p->adjoint ? &c->cot : &c->in[1]},
                   .letters = {r->in[a], p->adjoint ? r->out : r->in[1]},
                   .n = {r->nl[a], p->adjoint ? r->nout : r->nl[1]},
                   .out = p->adjoint ? r->in[c->operand] : r->out,
                   .nout = p->adjoint ? r->nl[c->operand] : r->nout,
                   .listed = rule_listed(r)};
    return true;
}
static int find(const char *letters, int n, char ch) {
    for (int i = 0; i < n; i++)
        if (letters[i] == ch) return i;
    return -1;
}
/* Is there a letter that both have and the output lacks? Else each element is one product. */
static bool sums(const Factors *f) {
    for (int i = 0; i < f->n[0]; i++)
        if (find(f->out, f->nout, f->letters[0][i]) < 0 &&
            find(f->letters[1], f->n[1], f->letters[0][i]) >= 0)
            return true;
    return false;
}
/* The dim of the output that is cut, and the factor that has it alone: of the larger factor, so
 * that the smaller one is widened; -1: none. */
static int cut_dim(const Factors *f, int *side) {
    int best = -1;
    for (int pass = 0; pass < 2 && best < 0; pass++)
        for (int d = 0; d < f->nout; d++) {
            int at[2];
            if (f->listed & RULE_BIT(f->out[d])) continue;
            for (int k = 0; k < 2; k++) at[k] = find(f->letters[k], f->n[k], f->out[d]);
            if ((at[0] < 0) == (at[1] < 0)) continue;
            int k = at[0] < 0;
            int64_t n = f->t[k]->n[at[k]];
            if (n < (pass ? 2 : SHORT)) continue;
            bool larger = best < 0 || tensor_count(f->t[k]) > tensor_count(f->t[*side]);
            if (!larger) continue;
            best = d;
            *side = k;
        }
    return best;
}
bool project_can(const Projection *p) {
    Factors f;
    int side;
    return factors(p, &f) && sums(&f) && cut_dim(&f, &side) >= 0;
}
Tensor *project_factor(Projection *p, int k) {
    OpCall *c = &p->call;
    if (p->adjoint) return k ? &c->cot : &c->in[1 - c->operand];
    return &c->in[k];
}
int project_side(const Projection *p) {
    Factors f;
    int side = -1;
    bool can = factors(p, &f) && cut_dim(&f, &side) >= 0;
    assert(can);
    (void)can;
    return side;
}

/* ---- a tensor seen through the random columns ---- */
/* [PROJECT_VECTORS, n] numbers of either sign, their magnitudes among 128 from 0.625 to 1. With
 * signs alone two mistakes alike cancel in half of all columns; these hardly ever do, and a mistake
 * by itself still weighs more than half. Ten bits: times a float32 they are exact in float64. */
static double *columns(const Projection *p, int64_t n) {
    enum { MAGNITUDES = 128 };
    int64_t count = n * PROJECT_VECTORS, *drawn = device_array(p->host, count, sizeof *drawn);
    double *column = device_array(p->host, count, sizeof *column);
    RandomStream stream = {.seed = p->seed, .stream = p->of};
    if (!p->host->sizes_only) {
        random_ints(&stream, 0, count, 2 * MAGNITUDES, drawn);
        for (int64_t i = 0; i < count; i++)
            column[i % PROJECT_VECTORS * n + i / PROJECT_VECTORS] =
                (drawn[i] & 1 ? 1 : -1) * (0.625 + (double)(drawn[i] >> 1) * 0x3p-10);
    }
    p->host->release(p->host, drawn);
    return column;
}
/* [outer, n, inner] in; [outer, blocks * PROJECT_VECTORS, inner] sums and [outer, blocks, inner]
 * sums of squares out, in float64. */
typedef struct {
    Dtype dt;
    int64_t outer, n, blocks, inner;
    const double *column; /* [PROJECT_VECTORS, n] */
    double *sum, *square;
} Through;
/* A part of it, and where its elements stand in the whole (`to`, packed) and in itself. */
typedef struct {
    const Through *j;
    const char *x;
    RegionPairs at;
    int dim;
    int64_t runs, *begin; /* [runs + 1]: positions along dim that stand in one block */
    int64_t each;         /* of these in one task: 1 or all */
    int last;             /* the last dim */
    bool packed;          /* along `last` elements lie side by side, here and there */
} Patch;
/* Offsets of combination i of some dims. */
typedef struct {
    int64_t to, from;
} Place;
static Place place(const RegionPairs *at, int lo, int hi, int64_t i) {
    Place p = {0, 0};
    for (int d = hi - 1; d >= lo; d--) {
        int64_t k = i % at->n[d];
        i /= at->n[d];
        p.to += at->to[d][k];
        p.from += at->from[d][k];
    }
    return p;
}
static int64_t combinations(const RegionPairs *at, int lo, int hi) {
    int64_t n = 1;
    for (int d = lo; d < hi; d++) n *= at->n[d];
    return n;
}
/* n elements side by side, each with sums of its own. */
static void add_row(const Through *j, const char *x, int64_t n, int64_t column, int64_t cell,
                    int64_t i) {
    const double weight[2] = {j->column[column], j->column[j->n + column]};
    double *sum = j->sum + cell * PROJECT_VECTORS * j->inner + i;
    ColumnSums to = {{sum, sum + j->inner}, j->square + cell * j->inner + i};
    if (j->dt == DT_F32) columns_add_f32(n, (const float *)(const void *)x, weight, &to);
    else columns_add_f64(n, (const double *)(const void *)x, weight, &to);
}
/* n elements side by side along the dim that is cut: one sum. */
static void add_dot(const Through *j, const char *x, int64_t n, int64_t column, int64_t cell) {
    const double *const c[2] = {j->column + column, j->column + j->n + column};
    double out[3] = {0};
    if (j->dt == DT_F32) columns_dot_f32(n, (const float *)(const void *)x, c, out);
    else columns_dot_f64(n, (const double *)(const void *)x, c, out);
    j->sum[cell * PROJECT_VECTORS] += out[0];
    j->sum[cell * PROJECT_VECTORS + 1] += out[1];
    j->square[cell] += out[2];
}
_Static_assert(PROJECT_VECTORS == 2, "the functions above have two");
/* The elements of one combination of the dims before, at positions lo..hi, all in one block. */
static void patch_block(const Patch *x, Place o, int64_t lo, int64_t hi) {
    enum { CHUNK = 512 }; /* its sums stay in the nearest cache */
    const Through *j = x->j;
    const RegionPairs *at = &x->at;
    const int64_t *to = at->to[x->dim], *from = at->from[x->dim], es = dtype_size(j->dt);
    int64_t cell = o.to / (j->n * j->inner) * j->blocks + to[lo] / j->inner / PROJECT_BLOCK;
    const char *data = x->x + o.from * es;
    if (x->last == x->dim) {
        int64_t step = x->packed ? hi - lo : 1;
        for (int64_t k = lo; k < hi; k += step) add_dot(j, data + from[k] * es, step, to[k], cell);
        return;
    }
    int64_t rows = combinations(at, x->dim + 1, x->last), n = at->n[x->last];
    int64_t step = x->packed ? CHUNK : 1;
    for (int64_t r = 0; r < rows; r++) {
        Place row = place(at, x->dim + 1, x->last, r);
        for (int64_t c = 0; c < n; c += step)
            for (int64_t k = lo; k < hi; k++)
                add_row(j, data + (from[k] + row.from + at->from[x->last][c]) * es,
                        step < n - c ? step : n - c, to[k] / j->inner, cell,
                        row.to + at->to[x->last][c]);
    }
}
static void patch_task(void *arg, int64_t task) {
    const Patch *x = arg;
    int64_t first = task * x->each % x->runs;
    Place o = place(&x->at, 0, x->dim, task * x->each / x->runs);
    for (int64_t r = first; r < first + x->each; r++)
        patch_block(x, o, x->begin[r], x->begin[r + 1]);
}
static bool side_by_side(const int64_t *at, int64_t n) {
    for (int64_t i = 1; i < n; i++)
        if (at[i] != at[i - 1] + 1) return false;
    return true;
}
static void through_part(const Through *j, Pool *pool, int dim, Block whole, Block part) {
    if (!tensor_count(part.t)) return;
    Arena *tmp = arena_new();
    Patch x = {.j = j, .x = part.t->p, .dim = dim, .last = whole.t->nd - 1};
    bool fits = region_pairs(whole, part, tmp, &x.at);
    assert(fits && x.at.nd == whole.t->nd); /* no outer lists */
    (void)fits;
    int64_t n = x.at.n[dim], outer = combinations(&x.at, 0, dim);
    x.begin = ARENA_ARRAY(tmp, int64_t, n + 1);
    for (int64_t k = 0, block = -1; k < n; k++) { /* ascending: each block is met once */
        int64_t b = x.at.to[dim][k] / j->inner / PROJECT_BLOCK;
        assert(b >= block);
        if (b != block) x.begin[x.runs++] = k;
        block = b;
    }
    x.begin[x.runs] = n;
    x.packed = side_by_side(x.at.to[x.last], x.at.n[x.last]) &&
               side_by_side(x.at.from[x.last], x.at.n[x.last]);
    x.each = outer > x.runs ? x.runs : 1;
    int64_t tasks = x.runs ? outer * x.runs / x.each : 0;
    if (pool) pool_run(pool, tasks, patch_task, &x);
    else
        for (int64_t i = 0; i < tasks; i++) patch_task(&x, i);
    arena_free(tmp);
}
/* A tensor, or its parts, along a dim. */
static Through through(const Projection *p, const Tensor *t, const AssembleParts *parts, int dim,
                       const double *column, Tensor *sum) {
    Through j = {.dt = p->call.dtype, .outer = 1, .n = t->n[dim], .inner = 1, .column = column};
    for (int d = 0; d < dim; d++) j.outer *= t->n[d];
    for (int d = dim + 1; d < t->nd; d++) j.inner *= t->n[d];
    j.blocks = (j.n + PROJECT_BLOCK - 1) / PROJECT_BLOCK;
    int64_t count = j.outer * j.blocks * j.inner;
    j.square = device_array(p->host, count, 8);
    j.sum = device_array(p->host, count * PROJECT_VECTORS, 8);
    Tensor whole = *t;
    tensor_pack(&whole);
    *sum = whole;
    sum->n[dim] = j.blocks * PROJECT_VECTORS;
    tensor_pack(sum);
    sum->p = j.sum;
    if (p->host->sizes_only) return j;
    memset(j.square, 0, (size_t)count * 8);
    memset(j.sum, 0, (size_t)count * PROJECT_VECTORS * 8);
    Region plain = region_plain(t);
    for (int64_t i = 0; parts && i < parts->n; i++)
        through_part(&j, p->call.pool, dim, (Block){&parts->box, &whole},
                     (Block){&parts->part[i].has, &parts->part[i].t});
    if (!parts) through_part(&j, p->call.pool, dim, (Block){&plain, &whole}, (Block){&plain, t});
    return j;
}
static void forget(const Projection *p, Through *j) {
    p->host->release(p->host, j->sum);
    p->host->release(p->host, j->square);
}

/* ---- the smaller product ---- */
/* Which dim of the output is cut, which factor has it, at which dim. */
typedef struct {
    const Projection *p;
    Factors f;
    int dim, side, at;
} Cut;
typedef struct {
    const float *from;
    double *to;
} Widen;
static void widen(void *arg, int64_t lo, int64_t hi) {
    const Widen *w = arg;
    for (int64_t i = lo; i < hi; i++) w->to[i] = (double)w->from[i];
}
static Tensor wide(const Projection *p, const Tensor *t) {
    Tensor w = *t;
    if (p->call.dtype == DT_F64) return w;
    Widen j = {t->p, device_array(p->host, tensor_count(t), 8)};
    p->host->pieces(p->host, p->call.pool, tensor_count(t), widen, &j);
    w.p = j.to;
    return w;
}
/* The call with `kept` and `cut` as its factors, in float64, and room for its result. */
static OpCall smaller(const Cut *x, const Tensor *kept, const Tensor *cut) {
    const Projection *p = x->p;
    OpCall c = p->call;
    c.dtype = DT_F64;
    c.fout = (Tensor){0};
    c.in[p->adjoint ? 1 - c.operand : 0] = x->side == 0 ? *cut : *kept;
    *(p->adjoint ? &c.cot : &c.in[1]) = x->side == 0 ? *kept : *cut;
    int letter = x->f.out[x->dim] - 'a';
    c.out.n[x->dim] = c.local[letter] = c.global[letter] = cut->n[x->at];
    tensor_pack(&c.out);
    if (p->adjoint) { /* towards an operand that is not read: its sizes only */
        c.in[c.operand] = c.out;
        c.in[c.operand].p = NULL;
    }
    c.out.p = device_array(p->host, tensor_count(&c.out), 8);
    return c;
}
/* Bounds of the projections: those of a product with columns as long as the blocks are together,
 * rounding of a block's columns adds up like a sum of random signs, of magnitudes up to 1. */
static double *bounds(const Cut *x, const Tensor *kept, Through *j, const Tensor *cut) {
    const Projection *p = x->p;
    for (int64_t i = 0, n = tensor_count(cut) / PROJECT_VECTORS; i < n && !p->host->sizes_only; i++)
        j->square[i] = sqrt(j->square[i]);
    Tensor length = *cut;
    length.n[x->at] = j->blocks;
    tensor_pack(&length);
    length.p = j->square;
    OpCall c = smaller(x, kept, &length);
    int64_t n = tensor_count(&c.out);
    double *most = device_array(p->host, n, 8), *prob = device_array(p->host, n, 8);
    OpBound b = {
        .call = c, .operand = p->adjoint ? c.operand : -1, .u = p->u, .bound = most, .prob = prob};
    p->host->bound(p->host, &b);
    p->host->release(p->host, most); /* no sum of a block can break it; what may is looked at */
    p->host->release(p->host, c.out.p);
    return prob;
}
/* The projections of the operands against those of what the ranks hold, row by row: *got has the
 * squares of the rows. */
static Projected hold(const Through *got, const double *want, const double *bound) {
    Projected r = {.held = true};
    int64_t in = got->inner, nb = got->blocks;
    for (int64_t o = 0; o < got->outer; o++)
        for (int64_t i = 0; i < in; i++) {
            double square = 0, widest = 0;
            for (int64_t b = 0; b < nb; b++) {
                int64_t at = (o * nb + b) * in + i;
                square += got->square[at];
                widest = fmax(widest, bound[at]);
                for (int v = 0; v < PROJECT_VECTORS; v++) {
                    int64_t k = ((o * nb + b) * PROJECT_VECTORS + v) * in + i;
                    double off = fabs(got->sum[k] - want[k]), used = off == 0 ? 0 : off / bound[at];
                    r.held &= off <= bound[at]; /* a NaN is not */
                    if (!(used > r.used)) continue;
                    r.used = used, r.residual = off, r.bound = bound[at];
                }
            }
            double scale = sqrt(square / (double)got->n);
            if (scale > 0) r.notice = fmax(r.notice, 2 * widest / scale);
        }
    return r;
}
Projected project_hold(const Projection *p) {
    Cut x = {.p = p};
    bool can = factors(p, &x.f);
    assert(can);
    (void)can;
    x.dim = cut_dim(&x.f, &x.side);
    assert(x.dim >= 0);
    x.at = find(x.f.letters[x.side], x.f.n[x.side], x.f.out[x.dim]);
    const Tensor *whole = x.f.t[x.side], *other = x.f.t[1 - x.side];
    double *column = columns(p, p->call.out.n[x.dim]);
    Tensor cut, seen;
    Through factor = through(p, whole, p->cut, x.at, column, &cut);
    Through got = through(p, &p->call.out, p->out, x.dim, column, &seen);
    Tensor kept = wide(p, other);
    OpCall c = smaller(&x, &kept, &cut);
    p->host->call(p->host, &c, 1, p->adjoint ? DEVICE_ADJOINT : DEVICE_FORWARD, NULL);
    double *bound = bounds(&x, &kept, &factor, &cut);
    Projected r = {.held = true};
    if (!p->host->sizes_only) r = hold(&got, c.out.p, bound);
    p->host->release(p->host, bound);
    p->host->release(p->host, c.out.p);
    if (kept.p != other->p) p->host->release(p->host, kept.p);
    forget(p, &got);
    forget(p, &factor);
    p->host->release(p->host, column);
    return r;
}
