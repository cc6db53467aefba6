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
static double *columns(Device *host, uint64_t seed, uint64_t of, int64_t n) {
    enum { MAGNITUDES = 128 };
    int64_t count = n * PROJECT_VECTORS, *drawn = device_array(host, count, sizeof *drawn);
    double *column = device_array(host, count, sizeof *column);
    RandomStream stream = {.seed = seed, .stream = of};
    if (!host->sizes_only) {
        random_ints(&stream, 0, count, 2 * MAGNITUDES, drawn);
        for (int64_t i = 0; i < count; i++)
            column[i % PROJECT_VECTORS * n + i / PROJECT_VECTORS] =
                (drawn[i] & 1 ? 1 : -1) * (0.625 + (double)(drawn[i] >> 1) * 0x3p-10);
    }
    host->release(host, drawn);
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
/* Rows of n elements side by side, each element with sums of its own, and which column each row is
 * of. */
typedef struct {
    const char *x[COLUMN_ROWS];
    int64_t column[COLUMN_ROWS];
    int n;
} Rows;
static void add_rows(const Through *j, const Rows *r, int64_t n, int64_t cell, int64_t i) {
    double weight[2 * COLUMN_ROWS], *sum = j->sum + cell * PROJECT_VECTORS * j->inner + i;
    const float *f[COLUMN_ROWS];
    const double *d[COLUMN_ROWS];
    ColumnSums to = {{sum, sum + j->inner}, j->square + cell * j->inner + i};
    for (int k = 0; k < r->n; k++) {
        weight[2 * k] = j->column[r->column[k]];
        weight[2 * k + 1] = j->column[j->n + r->column[k]];
        f[k] = (const float *)(const void *)r->x[k], d[k] = (const double *)(const void *)r->x[k];
    }
    if (j->dt == DT_F32) columns_add_f32(n, r->n, f, weight, &to);
    else columns_add_f64(n, r->n, d, weight, &to);
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
            for (int64_t k = lo; k < hi; k += COLUMN_ROWS) {
                Rows some = {.n = (int)(hi - k < COLUMN_ROWS ? hi - k : COLUMN_ROWS)};
                for (int m = 0; m < some.n; m++) {
                    some.x[m] = data + (from[k + m] + row.from + at->from[x->last][c]) * es;
                    some.column[m] = to[k + m] / j->inner;
                }
                add_rows(j, &some, step < n - c ? step : n - c, cell, row.to + at->to[x->last][c]);
            }
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
static Tensor with_dim(Tensor t, int dim, int64_t n, double *p) {
    t.n[dim] = n;
    t.p = p;
    tensor_pack(&t);
    return t;
}
static void zero_piece(void *arg, int64_t lo, int64_t hi) {
    memset((double *)arg + lo, 0, (size_t)(hi - lo) * sizeof(double));
}
/* By all workers: most of it is touched for the first time. */
static double *zeros(Device *host, Pool *pool, int64_t n) {
    double *p = device_array(host, n, sizeof(double));
    host->pieces(host, pool, n, zero_piece, p);
    return p;
}
static Through through_of(Dtype dt, const Tensor *t, int dim, const double *column) {
    Through j = {.dt = dt, .outer = 1, .n = t->n[dim], .inner = 1, .column = column};
    for (int d = 0; d < dim; d++) j.outer *= t->n[d];
    for (int d = dim + 1; d < t->nd; d++) j.inner *= t->n[d];
    j.blocks = (j.n + PROJECT_BLOCK - 1) / PROJECT_BLOCK;
    return j;
}
ProjectSums project_part(const ProjectPart *q, Arena *arena) {
    int64_t mine = q->t.n[q->dim], lo = q->place[0] / PROJECT_BLOCK * PROJECT_BLOCK,
            end = (q->place[mine - 1] / PROJECT_BLOCK + 1) * PROJECT_BLOCK,
            n = (end < q->n ? end : q->n) - lo, *place = ARENA_ARRAY(arena, int64_t, mine);
    double *drawn = q->column ? NULL : columns(q->host, q->seed, q->of, q->n),
           *column = ARENA_ARRAY(arena, double, n *PROJECT_VECTORS);
    for (int v = 0; v < PROJECT_VECTORS; v++) /* those of these blocks */
        memcpy(column + v * n, (drawn ? drawn : q->column) + v * q->n + lo,
               (size_t)n * sizeof *column);
    q->host->release(q->host, drawn);
    for (int64_t i = 0; i < mine; i++) place[i] = q->place[i] - lo;
    Tensor whole = with_dim(q->t, q->dim, n, NULL);
    Through j = through_of(q->dt, &whole, q->dim, column);
    ProjectSums s = {.first = lo / PROJECT_BLOCK, .blocks = j.blocks};
    s.sum = with_dim(whole, q->dim, j.blocks * PROJECT_VECTORS, NULL);
    s.square = with_dim(whole, q->dim, j.blocks, NULL);
    s.sum.p = j.sum = zeros(q->host, q->pool, tensor_count(&s.sum));
    s.square.p = j.square = zeros(q->host, q->pool, tensor_count(&s.square));
    Region box = region_plain(&whole), has = region_plain(&q->t);
    has.d[q->dim] = (DimIndex){false, 0, mine, place};
    through_part(&j, q->pool, q->dim, (Block){&box, &whole}, (Block){&has, &q->t});
    return s;
}
void project_part_end(Device *host, ProjectSums *s) {
    host->release(host, s->sum.p);
    host->release(host, s->square.p);
}
/* Adds what a part gives along a dim to what there is of the whole. */
static void add_blocks(const Region *box, const Tensor *to, const Region *has, const Tensor *from,
                       int dim, int64_t first) {
    Region whole = *box, part = *has;
    whole.n[dim] = to->n[dim], part.n[dim] = from->n[dim];
    whole.d[dim] = (DimIndex){.range = true, .n = to->n[dim]};
    part.d[dim] = (DimIndex){.range = true, .lo = first, .n = from->n[dim]};
    region_copy((Block){&whole, to}, (Block){&part, from}, DT_F64, COMBINE_SUM);
}
static void add_part(const Projection *p, Through *j, int dim, const Tensor *whole,
                     const Region *box, const struct AssemblePart *part) {
    if (!tensor_count(&part->t)) return;
    Arena *tmp = arena_new();
    RegionPairs at;
    bool fits = region_pairs((Block){box, whole}, (Block){&part->has, &part->t}, tmp, &at);
    assert(fits && at.nd == whole->nd && at.n[dim] == part->t.n[dim]); /* no outer lists */
    (void)fits;
    for (int64_t i = 0; i < at.n[dim]; i++) at.to[dim][i] /= j->inner;
    ProjectPart q = {.host = p->host,
                     .pool = p->call.pool,
                     .dt = j->dt,
                     .seed = p->seed,
                     .of = p->of,
                     .column = j->column,
                     .t = part->t,
                     .dim = dim,
                     .n = j->n,
                     .place = at.to[dim]};
    ProjectSums s;
    bool own = !p->away || !p->away->sums(p->away->arg, &q, &s, tmp);
    if (own) s = project_part(&q, tmp);
    Tensor sum = with_dim(*whole, dim, j->blocks * PROJECT_VECTORS, j->sum),
           square = with_dim(*whole, dim, j->blocks, j->square);
    add_blocks(box, &sum, &part->has, &s.sum, dim, s.first * PROJECT_VECTORS);
    add_blocks(box, &square, &part->has, &s.square, dim, s.first);
    if (own) project_part_end(p->host, &s);
    arena_free(tmp);
}
/* On the dry device: takes what the sums of a part take. */
static void estimate_part(const Projection *p, const Tensor *t, int dim) {
    if (!tensor_count(t)) return;
    int64_t n = t->n[dim], cells = tensor_count(t) / n * ((n - 1) / PROJECT_BLOCK + 1);
    ProjectSums s = {.sum.p = device_array(p->host, cells * PROJECT_VECTORS, 8),
                     .square.p = device_array(p->host, cells, 8)};
    project_part_end(p->host, &s);
}
/* A tensor, or its parts, along a dim. */
static Through through(const Projection *p, const Tensor *t, const AssembleParts *parts, int dim,
                       const double *column, Tensor *sum) {
    Through j = through_of(p->call.dtype, t, dim, column);
    int64_t count = j.outer * j.blocks * j.inner;
    j.square = zeros(p->host, p->call.pool, count);
    j.sum = zeros(p->host, p->call.pool, count * PROJECT_VECTORS);
    Tensor whole = with_dim(*t, dim, j.n, NULL);
    *sum = with_dim(whole, dim, j.blocks * PROJECT_VECTORS, j.sum);
    for (int64_t i = 0; parts && i < parts->n && p->host->sizes_only; i++)
        estimate_part(p, &parts->part[i].t, dim);
    if (p->host->sizes_only) return j;
    Region plain = region_plain(t);
    for (int64_t i = 0; parts && i < parts->n; i++)
        add_part(p, &j, dim, &whole, &parts->box, &parts->part[i]);
    if (!parts) through_part(&j, p->call.pool, dim, (Block){&plain, &whole}, (Block){&plain, t});
    return j;
}
static void forget(const Projection *p, Through *j) {
    p->host->release(p->host, j->sum);
    p->host->release(p->host, j->square);
}

/* ---- the smaller product ---- */
typedef struct {
    const float *from;
    double *to;
} Widen;
static void widen(void *arg, int64_t lo, int64_t hi) {
    const Widen *w = arg;
    for (int64_t i = lo; i < hi; i++) w->to[i] = (double)w->from[i];
}
/* A packed tensor in float64, in memory of the host. */
static Tensor wide(Device *host, struct Pool *pool, const Tensor *t) {
    Tensor w = *t;
    w.p = device_array(host, tensor_count(t), 8);
    Widen j = {t->p, w.p};
    host->pieces(host, pool, tensor_count(t), widen, &j);
    return w;
}
/* The bit (OpCall.floats) of the kept factor, where the product reads it in float32; 0: it must be
 * widened. */
static uint32_t reads_floats(const ProjectKept *q) {
    const OpCall *c = &q->like;
    int operand = q->adjoint ? c->operand : -1;
    if (c->dtype != DT_F32 || !c->op->widens || !c->op->widens(c, operand)) return 0;
    if (q->side == 0) return 1u << (q->adjoint ? c->rule->nin : 1);
    return 1u << (q->adjoint ? 1 - operand : 0);
}
/* The kept factor packed, in float64 or as it is read; itself if it lies so, else in memory of the
 * host. */
static Tensor readable(Device *host, const ProjectKept *q) {
    const Tensor *t = &q->kept;
    const Dtype dt = q->like.dtype;
    Tensor w = *t, packed = *t;
    Region box = region_plain(t);
    tensor_pack(&w);
    bool lies = !memcmp(w.s, t->s, sizeof *t->s * (size_t)t->nd);
    if (!lies) {
        packed = w;
        packed.p = device_array(host, tensor_count(t), dtype_size(dt));
        host->copy(host, (Block){&box, &packed}, (Block){&box, t}, dt, COMBINE_COPY);
    }
    if (dt == DT_F64 || reads_floats(q)) return packed;
    w = wide(host, q->like.pool, &packed);
    if (!lies) host->release(host, packed.p);
    return w;
}
/* The call with `kept` and `cut` as its factors, for a result in float64, and room for that. */
static OpCall smaller(Device *host, const ProjectKept *q, const Tensor *kept, const Tensor *cut) {
    OpCall c = q->like;
    c.dtype = DT_F64;
    c.floats = reads_floats(q);
    c.fout = (Tensor){0};
    c.in[q->adjoint ? 1 - c.operand : 0] = q->side == 0 ? *cut : *kept;
    *(q->adjoint ? &c.cot : &c.in[1]) = q->side == 0 ? *kept : *cut;
    const Rule *r = c.rule;
    int letter = (q->adjoint ? r->in[c.operand] : r->out)[q->dim] - 'a';
    c.out.n[q->dim] = c.local[letter] = c.global[letter] = cut->n[q->at];
    tensor_pack(&c.out);
    if (q->adjoint) { /* towards an operand that is not read: its sizes only */
        c.in[c.operand] = c.out;
        c.in[c.operand].p = NULL;
    }
    c.out.p = device_array(host, tensor_count(&c.out), 8);
    return c;
}
/* Bounds of the projections: those of a product with columns as long as the blocks are together,
 * rounding of a block's columns adds up like a sum of random signs, of magnitudes up to 1. */
static Tensor bounds(Device *host, const ProjectKept *q, const Tensor *kept) {
    OpCall c = smaller(host, q, kept, &q->length);
    int64_t n = tensor_count(&c.out);
    double *most = device_array(host, n, 8), *prob = device_array(host, n, 8);
    OpBound b = {
        .call = c, .operand = q->adjoint ? c.operand : -1, .u = q->u, .bound = most, .prob = prob};
    host->bound(host, &b);
    host->release(host, most); /* no sum of a block can break it; what may is looked at */
    host->release(host, c.out.p);
    c.out.p = prob;
    return c.out;
}
ProjectMade project_kept(Device *host, const ProjectKept *q) {
    Tensor kept = readable(host, q);
    OpCall c = smaller(host, q, &kept, &q->cut);
    host->call(host, &c, 1, q->adjoint ? DEVICE_ADJOINT : DEVICE_FORWARD, NULL);
    ProjectMade made = {.out = c.out, .bound = bounds(host, q, &kept)};
    if (kept.p != q->kept.p) host->release(host, kept.p);
    return made;
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
                    r.held &= isfinite(bound[at]);
                    r.held &= off <= bound[at]; /* a NaN is not */
                    r.residual = fmax(r.residual, off);
                    if (used > r.used) r.used = used, r.bound = bound[at];
                }
            }
            double scale = sqrt(square / (double)got->n);
            if (scale > 0) r.notice = fmax(r.notice, 2 * widest / scale);
        }
    return r;
}
/* The dim of an operand, or of the output, that has the letter of the kept factor's dim d. */
static int letter_of(const Factors *f, int kept, int d, const char *letters, int n) {
    return find(letters, n, f->letters[kept][d]);
}
bool project_apart(const Projection *p, const AssembleParts *kept) {
    Factors f;
    int side = -1;
    if (!factors(p, &f) || cut_dim(&f, &side) < 0) return false;
    for (int64_t i = 0; i < kept->n; i++)
        for (int d = 0; d < f.n[1 - side]; d++) {
            if (kept->part[i].has.n[d] == kept->box.n[d]) continue;
            if (letter_of(&f, 1 - side, d, f.out, f.nout) < 0) return false;
            if (letter_of(&f, 1 - side, d, f.letters[side], f.n[side]) >= 0) return false;
        }
    return true;
}
/* The smaller product with one part of the kept factor, put where it belongs. */
static void add_kept(const Projection *p, const Factors *f, ProjectKept q,
                     const struct AssemblePart *part, const ProjectMade *to) {
    if (!tensor_count(&part->t)) return;
    Region whole = region_plain(&to->out), some = whole;
    q.kept = part->t;
    for (int d = 0; d < f->n[1 - q.side]; d++) {
        int at = letter_of(f, 1 - q.side, d, f->out, f->nout);
        int letter = f->letters[1 - q.side][d] - 'a';
        if (at < 0) continue;
        whole.d[at] = p->kept->box.d[d];
        some.d[at] = part->has.d[d];
        some.n[at] = q.like.out.n[at] = q.like.local[letter] = part->has.n[d];
    }
    ProjectMade made;
    if (!p->away || !p->away->kept(p->away->arg, &q, &made)) made = project_kept(p->host, &q);
    add_blocks(&whole, &to->out, &some, &made.out, q.dim, 0);
    add_blocks(&whole, &to->bound, &some, &made.bound, q.dim, 0);
    p->host->release(p->host, made.out.p);
    p->host->release(p->host, made.bound.p);
}
static ProjectMade made_of(const Projection *p, const Factors *f, const ProjectKept *q) {
    if (!p->kept || p->host->sizes_only) return project_kept(p->host, q);
    ProjectMade all;
    all.out = with_dim(p->call.out, q->dim, q->cut.n[q->at], NULL);
    all.bound = with_dim(p->call.out, q->dim, q->length.n[q->at], NULL);
    Tensor *t[2] = {&all.out, &all.bound};
    for (int k = 0; k < 2; k++) t[k]->p = zeros(p->host, p->call.pool, tensor_count(t[k]));
    for (int64_t i = 0; i < p->kept->n; i++) add_kept(p, f, *q, &p->kept->part[i], &all);
    return all;
}
Projected project_hold(const Projection *p) {
    Factors f;
    ProjectKept q = {.like = p->call, .step = p->step, .adjoint = p->adjoint, .u = p->u};
    bool can = factors(p, &f);
    assert(can);
    (void)can;
    q.dim = cut_dim(&f, &q.side);
    assert(q.dim >= 0);
    q.at = find(f.letters[q.side], f.n[q.side], f.out[q.dim]);
    double *column = columns(p->host, p->seed, p->of, p->call.out.n[q.dim]);
    Tensor seen;
    Through factor = through(p, f.t[q.side], p->cut, q.at, column, &q.cut);
    Through got = through(p, &p->call.out, p->out, q.dim, column, &seen);
    int64_t n = tensor_count(&q.cut) / PROJECT_VECTORS;
    for (int64_t i = 0; i < n && !p->host->sizes_only; i++)
        factor.square[i] = sqrt(factor.square[i]);
    q.length = with_dim(q.cut, q.at, factor.blocks, factor.square);
    q.kept = *f.t[1 - q.side];
    ProjectMade made = made_of(p, &f, &q);
    Projected r = {.held = true};
    if (!p->host->sizes_only) r = hold(&got, made.out.p, made.bound.p);
    p->host->release(p->host, made.bound.p);
    p->host->release(p->host, made.out.p);
    forget(p, &got);
    forget(p, &factor);
    p->host->release(p->host, column);
    return r;
}

/* ---- what is linear in one of its operands ---- */
Projected project_mixed(const Projection *p) {
    const OpCall *call = &p->call;
    Device *host = p->host;
    int mixed = call->op->mixed - 1, dim = call->out.nd - 1, at = call->in[mixed].nd - 1;
    assert(!p->adjoint && call->dtype == DT_F32 && !call->in_int);
    double *column = columns(host, p->seed, p->of, call->out.n[dim]);
    OpCall c = *call;
    c.dtype = DT_F64;
    for (int k = 0; k < call->rule->nin; k++)
        if (k != mixed) c.in[k] = wide(host, call->pool, &call->in[k]);
    Through factor = through(p, &call->in[mixed], NULL, at, column, &c.in[mixed]),
            got = through(p, &call->out, NULL, dim, column, &c.out);
    c.out.p = device_array(host, tensor_count(&c.out), 8);
    host->call(host, &c, 1, DEVICE_FORWARD, NULL);
    const Tensor made = c.out;
    /* of values as long as the blocks are, as of the products above */
    int64_t n = factor.outer * factor.blocks;
    for (int64_t i = 0; i < n && !host->sizes_only; i++) factor.square[i] = sqrt(factor.square[i]);
    c.in[mixed] = with_dim(call->in[mixed], at, factor.blocks, factor.square);
    c.out = with_dim(call->out, dim, got.blocks, NULL);
    n = tensor_count(&c.out);
    double *most = device_array(host, n, 8), *prob = device_array(host, n, 8);
    host->bound(host, &(OpBound){.call = c, .operand = -1, .u = p->u, .bound = most, .prob = prob});
    Projected r = {.held = true};
    if (!host->sizes_only) r = hold(&got, made.p, prob);
    host->release(host, prob);
    host->release(host, most);
    host->release(host, made.p);
    forget(p, &got);
    forget(p, &factor);
    for (int k = 0; k < call->rule->nin; k++)
        if (k != mixed) host->release(host, c.in[k].p);
    host->release(host, column);
    return r;
}

/* ---- sums of shares ---- */
/* The dim whose elements are a row: the last that is long, or the longest. */
static int row_dim(const Tensor *t) {
    int best = -1;
    for (int d = t->nd - 1; d >= 0 && (best < 0 || t->n[best] < SHORT); d--)
        if (best < 0 || t->n[d] > t->n[best]) best = d;
    return best;
}
static bool same_sizes(const Region *a, const Region *b) {
    return a->nd == b->nd && !memcmp(a->n, b->n, sizeof *a->n * (size_t)a->nd);
}
/* What the rounding of n shares' sum may be of a block's numbers, times the share's lengths: any
 * order breaks no more than gamma_n of the sum of magnitudes, whose largest is the root of the
 * block times their length; and what the two projections lose themselves, in float64. */
static double total_gamma(const ProjectTotal *p) {
    double own = gamma_n(PROJECT_BLOCK + (double)p->n, 0x1p-53);
    return sqrt(PROJECT_BLOCK) * (gamma_n((double)p->n, p->u) + 2 * own);
}
Projected project_total(const ProjectTotal *p, bool *seen) {
    Projection q = {.host = p->host,
                    .call = {.dtype = p->dt, .pool = p->pool},
                    .seed = p->seed,
                    .of = p->of,
                    .away = p->away};
    Tensor whole = region_packed(&p->out->box), sum;
    int dim = row_dim(&whole);
    for (int64_t i = 0; i < p->n; i++)
        if (dim < 0 || !same_sizes(&p->out->box, &p->share[i].box)) return (Projected){0};
    double *column = columns(p->host, p->seed, p->of, whole.n[dim]);
    Through got = through(&q, &whole, p->out, dim, column, &sum), all = got;
    int64_t n = got.outer * got.blocks * got.inner;
    all.sum = device_array(p->host, n * PROJECT_VECTORS, 8);
    all.square = device_array(p->host, n, 8);
    for (int64_t k = 0; k < n && !p->host->sizes_only; k++) /* a sum below all normal numbers */
        all.square[k] = PROJECT_BLOCK * least_of(p->u);
    for (int64_t k = 0; k < n * PROJECT_VECTORS && !p->host->sizes_only; k++) all.sum[k] = 0;
    double gamma = total_gamma(p);
    for (int64_t i = 0; i < p->n; i++) {
        Through one = through(&q, &whole, &p->share[i], dim, column, &sum);
        seen[i] = p->host->sizes_only;
        for (int64_t k = 0; k < n && !p->host->sizes_only; k++) {
            seen[i] |= one.square[k] != 0; /* a NaN is something */
            all.square[k] += gamma * sqrt(one.square[k]);
        }
        for (int64_t k = 0; k < n * PROJECT_VECTORS && !p->host->sizes_only; k++)
            all.sum[k] += one.sum[k];
        forget(&q, &one);
    }
    Projected r = {.held = true};
    if (!p->host->sizes_only) r = hold(&got, all.sum, all.square);
    forget(&q, &all);
    forget(&q, &got);
    p->host->release(p->host, column);
    return r;
}
