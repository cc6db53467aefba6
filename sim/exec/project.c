/* Random projections of products. See project.h. */
#include "exec/project.h"
#include "ops/op.h"
#include "ops/util.h"
#include "weights/weights.h"
#include <assert.h>
#include <math.h>

enum { SHORT = 16 }; /* a letter below this is projected only if there is no longer one */

/* The two factors of the call as tensors, whichever way it runs: forward the operands, in an
 * adjoint the cotangent and the other operand. */
typedef struct {
    const Tensor *t[2];
    const char *letters[2], *out;
    int n[2], nout;
    uint32_t listed; /* letters that are rows together: none of them is a dim by itself */
} Factors;
static bool factors(const Projection *p, Factors *f) {
    const OpCall *c = &p->call;
    const Rule *r = c->rule;
    if (c->op->lin != LIN_BILINEAR || c->op->asks || c->in_int || r->nin != 2) return false;
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

/* ---- a tensor seen through the random columns ---- */
/* [n, PROJECT_VECTORS] numbers of either sign, their magnitudes among 128 from 0.625 to 1. With
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
            column[i] = (drawn[i] & 1 ? 1 : -1) * (0.625 + (double)(drawn[i] >> 1) * 0x3p-10);
    }
    p->host->release(p->host, drawn);
    return column;
}
/* [outer, n, inner] in; [outer, blocks * PROJECT_VECTORS, inner] sums and [outer, blocks, inner]
 * sums of squares out, in float64. */
typedef struct {
    const void *x;
    Dtype dt;
    int64_t n, blocks, inner;
    const double *column; /* [n, PROJECT_VECTORS] */
    double *sum, *square;
} Through;
#define THROUGH(T)                                                                                 \
    static void through_##T(const Through *j, int64_t o, int64_t b) {                              \
        int64_t lo = b * PROJECT_BLOCK,                                                            \
                hi = lo + PROJECT_BLOCK < j->n ? lo + PROJECT_BLOCK : j->n;                        \
        double *sq = j->square + (o * j->blocks + b) * j->inner;                                   \
        double *sum = j->sum + (o * j->blocks + b) * PROJECT_VECTORS * j->inner;                   \
        for (int64_t i = 0; i < j->inner; i++) sq[i] = 0;                                          \
        for (int64_t i = 0; i < PROJECT_VECTORS * j->inner; i++) sum[i] = 0;                       \
        for (int64_t k = lo; k < hi; k++) {                                                        \
            const T *x = (const T *)j->x + (o * j->n + k) * j->inner;                              \
            double s0 = j->column[k * PROJECT_VECTORS], s1 = j->column[k * PROJECT_VECTORS + 1];   \
            for (int64_t i = 0; i < j->inner; i++) {                                               \
                double v = (double)x[i];                                                           \
                sum[i] += s0 * v;                                                                  \
                sum[j->inner + i] += s1 * v;                                                       \
                sq[i] += v * v;                                                                    \
            }                                                                                      \
        }                                                                                          \
    }
THROUGH(float)
THROUGH(double)
_Static_assert(PROJECT_VECTORS == 2, "the loop above has two");
static void through_task(void *arg, int64_t task) {
    const Through *j = arg;
    (j->dt == DT_F32 ? through_float : through_double)(j, task / j->blocks, task % j->blocks);
}
static Through through(const Projection *p, const Tensor *t, int dim, const double *column,
                       Tensor *sum) {
    int64_t outer = 1, inner = 1, n = t->n[dim];
    for (int d = 0; d < dim; d++) outer *= t->n[d];
    for (int d = dim + 1; d < t->nd; d++) inner *= t->n[d];
    Through j = {.x = t->p, .dt = p->call.dtype, .n = n, .inner = inner, .column = column};
    j.blocks = (n + PROJECT_BLOCK - 1) / PROJECT_BLOCK;
    j.square = device_array(p->host, outer * j.blocks * inner, 8);
    j.sum = device_array(p->host, outer * j.blocks * inner * PROJECT_VECTORS, 8);
    *sum = *t;
    sum->n[dim] = j.blocks * PROJECT_VECTORS;
    tensor_pack(sum);
    sum->p = j.sum;
    if (p->host->sizes_only) return j;
    if (p->call.pool) pool_run(p->call.pool, outer * j.blocks, through_task, &j);
    else
        for (int64_t i = 0; i < outer * j.blocks; i++) through_task(&j, i);
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
static Projected hold(const Through *got, int64_t outer, const double *want, const double *bound) {
    Projected r = {.held = true};
    int64_t in = got->inner, nb = got->blocks;
    for (int64_t o = 0; o < outer; o++)
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
    int64_t n = p->call.out.n[x.dim], outer = 1;
    for (int d = 0; d < x.dim; d++) outer *= p->call.out.n[d];
    double *column = columns(p, n);
    Tensor cut, seen;
    Through factor = through(p, whole, x.at, column, &cut);
    Through got = through(p, &p->call.out, x.dim, column, &seen);
    Tensor kept = wide(p, other);
    OpCall c = smaller(&x, &kept, &cut);
    p->host->call(p->host, &c, 1, p->adjoint ? DEVICE_ADJOINT : DEVICE_FORWARD, NULL);
    double *bound = bounds(&x, &kept, &factor, &cut);
    Projected r = {.held = true};
    if (!p->host->sizes_only) r = hold(&got, outer, c.out.p, bound);
    p->host->release(p->host, bound);
    p->host->release(p->host, c.out.p);
    if (kept.p != other->p) p->host->release(p->host, kept.p);
    forget(p, &got);
    forget(p, &factor);
    p->host->release(p->host, column);
    return r;
}
