/* Sides of bends, kept and taken over. See sides.h. */
#include "exec/sides.h"
#include "exec/assemble.h"
#include "exec/call.h"
#include "exec/opcall.h"
#include "exec/routes.h"
#include "ops/op.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What one adjoint of a training step reads, over the whole batch: rows of `inner` numbers. A value
 * that no list cuts is one row for each micro-batch. */
typedef struct {
    int tensor;
    int64_t iteration, inner, n, cap;
    int64_t *id; /* per row: of the batch */
    int8_t *side;
} Side;
struct Sides {
    Arena *arena;
    Device *dev;
    int64_t parts;
    int n, cap;
    Side *of;
};

Sides *sides_new(Arena *arena, Device *dev, int64_t parts) {
    Sides *s = ARENA_NEW(arena, Sides);
    *s = (Sides){.arena = arena, .dev = dev, .parts = parts};
    return s;
}
void sides_free(Sides *s) {
    for (int i = 0; s && i < s->n; i++) s->dev->release(s->dev, s->of[i].side);
    for (int i = 0; s && i < s->n; i++) s->dev->release(s->dev, s->of[i].id);
    if (s) s->n = 0;
}

/* ---- bends ---- */
typedef struct {
    OpBend at[OP_MOST_BENDS];
    int n;
} Bends;
/* None, if the step is not the adjoint of an op that has any. */
static Bends bends_of(const Program *p, const Step *s) {
    Bends b = {.n = 0};
    if (s->kind != ST_ADJOINT) return b;
    const GNode *node = &p->graph->node[s->node];
    if (node->op->bends) b.n = node->op->bends(&node->at, b.at);
    return b;
}
static bool beyond(const OpBend *b, double x) { return b->above ? x >= b->at : x > b->at; }
static int side_of(const Bends *b, double x) {
    int side = 0;
    while (side < b->n && beyond(&b->at[side], x)) side++;
    return side;
}
/* The number nearest to x that lies on that side. */
static double onto(const Bends *b, double x, int side) {
    if (side > 0 && !beyond(&b->at[side - 1], x)) {
        const OpBend *low = &b->at[side - 1];
        return low->above ? low->at : nextafter(low->at, INFINITY);
    }
    if (side < b->n && beyond(&b->at[side], x)) {
        const OpBend *high = &b->at[side];
        return high->above ? nextafter(high->at, -INFINITY) : high->at;
    }
    return x;
}

/* ---- kept ---- */
static const Side *find(const Sides *s, int tensor, int64_t iteration) {
    for (int i = s->n - 1; i >= 0; i--)
        if (s->of[i].tensor == tensor && s->of[i].iteration == iteration) return &s->of[i];
    return NULL;
}
/* Room for so many rows more. */
static void grow(const Sides *s, Side *x, int64_t rows) {
    if (x->n + rows <= x->cap) return;
    Side old = *x;
    bool numbers = !s->dev->sizes_only && old.n;
    x->cap = old.cap ? 2 * (old.n + rows) : rows * s->parts;
    x->id = device_array(s->dev, x->cap, sizeof *x->id);
    x->side = device_array(s->dev, base_mul((size_t)x->cap, (size_t)x->inner), 1);
    if (numbers) memcpy(x->id, old.id, (size_t)old.n * sizeof *x->id);
    if (numbers) memcpy(x->side, old.side, (size_t)(old.n * x->inner));
    s->dev->release(s->dev, old.id);
    s->dev->release(s->dev, old.side);
}
void sides_keep(Sides *s, const Exec *e, const Step *step, WalkInstance at) {
    Bends b = bends_of(e->p, step);
    if (!b.n) return;
    int val = opcall_operands(step)[0];
    const GTensor *t = &e->p->graph->t[e->p->val[val].tensor];
    const AxisList none = {0};
    int64_t rank = layout_first(e->p->mesh, &e->p->val[val].L);
    Arena *tmp = arena_new();
    Region box = assemble_region(e, val, &none, rank, tmp);
    Tensor all = assemble_value(e, val, &none, rank);
    int64_t count = tensor_count(&all), rows = t->listed ? all.n[0] : 1;
    Side *x = (Side *)(uintptr_t)find(s, t->id, at.iteration);
    if (!x) {
        x = ARENA_PUSH(s->arena, s->of, s->n, s->cap);
        *x = (Side){.tensor = t->id, .iteration = at.iteration};
    }
    if (!x->n && rows) x->inner = count / rows;
    grow(s, x, rows);
    for (int64_t i = 0; i < rows && !s->dev->sizes_only; i++) {
        const DimIndex *id = &box.d[0];
        int64_t row = !t->listed ? 0 : id->range ? id->lo + i : id->list[i];
        x->id[x->n + i] = t->listed ? routes_row(t, row, at.part, s->parts) : at.part;
    }
    bool fits = count == rows * x->inner; /* a false label may say anything */
    for (int64_t i = 0; fits && i < count && !s->dev->sizes_only; i++)
        x->side[x->n * x->inner + i] =
            (int8_t)side_of(&b, e->dtype == DT_F64 ? ((double *)all.p)[i] : ((float *)all.p)[i]);
    if (fits) x->n += rows;
    e->host->release(e->host, all.p);
    arena_free(tmp);
}

/* ---- taken over ---- */
typedef struct {
    int64_t id, at;
} Row;
static int by_id(const void *p, const void *q) {
    const Row *a = p, *b = q;
    return (a->id > b->id) - (a->id < b->id);
}
static const Row *rows_by_id(const Side *x, Arena *tmp) {
    Row *row = ARENA_ARRAY(tmp, Row, x->n + 1);
    for (int64_t i = 0; i < x->n; i++) row[i] = (Row){x->id[i], i};
    qsort(row, (size_t)x->n, sizeof *row, by_id);
    return row;
}
static double largest(const double *x, int64_t n) {
    double top = 0;
    for (int64_t i = 0; i < n; i++) top = fmax(top, fabs(x[i]));
    return top;
}
/* The unsharded numbers of a value: n rows of the batch, with these ids, NULL: 0, 1, ... */
typedef struct {
    const DimIndex *ids;
    int64_t n;
    double *x;
} Rows;
/* Puts numbers that are within `bound` of a bend on the sides that were kept; how many. */
static int64_t move(const Side *of, const Bends *b, const Rows *r, double bound,
                    SidesTaken *taken) {
    const DimIndex *ids = r->ids;
    Arena *tmp = arena_new();
    const Row *kept = rows_by_id(of, tmp);
    int64_t moved = 0;
    for (int64_t i = 0; i < r->n; i++) {
        Row key = {ids ? ids->range ? ids->lo + i : ids->list[i] : i, 0};
        const Row *row = bsearch(&key, kept, (size_t)of->n, sizeof *kept, by_id);
        for (int64_t k = 0; row && k < of->inner; k++) {
            double *one = &r->x[i * of->inner + k],
                   to = onto(b, *one, of->side[row->at * of->inner + k]), far = fabs(to - *one);
            if (to == *one || !(far <= bound)) continue;
            taken->farthest = fmax(taken->farthest, far / bound);
            *one = to;
            moved++;
        }
    }
    arena_free(tmp);
    return moved;
}
void sides_replay(const Sides *s, Exec *one, const Step *step, int64_t iteration, double share,
                  SidesTaken *taken) {
    Bends b = bends_of(one->p, step);
    if (!b.n || one->dev->sizes_only || one->dtype != DT_F64) return;
    int val = opcall_operands(step)[0];
    const GTensor *t = &one->p->graph->t[one->p->val[val].tensor];
    const Side *of = find(s, t->id, iteration);
    OpCall c;
    Arena *tmp = arena_new();
    if (of && of->n && call_make(one, step, 0, &c, tmp)) {
        Tensor x = c.in[0];
        int64_t n = tensor_count(&x), rows = t->listed ? x.n[0] : s->parts;
        tensor_pack(&x);
        x.p = device_array(one->host, n, sizeof(double));
        Region box = region_plain(&x), ids = region_of(one, val, 0, tmp);
        one->dev->copy(one->dev, (Block){&box, &x}, (Block){&box, &c.in[0]}, DT_F64, COMBINE_COPY);
        const GNode *node = &one->p->graph->node[step->node];
        double depth = node->layer > 0 ? node->layer + 1 : 1,
               bound = 2 * share * depth * largest(x.p, n);
        Rows all = {t->listed ? &ids.d[0] : NULL, rows, x.p};
        int64_t moved = n == rows * of->inner ? move(of, &b, &all, bound, taken) : 0;
        c.in[0] = x;
        c.out = exec_local(one, step->out, 0)->t;
        if (t->listed) c.out = call_letters(&c.out, t);
        if (moved) c.op->adjoint(&c);
        taken->n += moved;
        one->host->release(one->host, x.p);
    }
    arena_free(tmp);
}
