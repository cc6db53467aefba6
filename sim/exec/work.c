/* A roofline with two numbers: operations and elements touched, at the rates of the kernels and of
 * the loops that copy, widen and compare (measured with 64 to 512 tokens on two cores with AVX-512;
 * elsewhere the ratios are much the same). */
#include "exec/work.h"
#include "exec/opcall.h"

/* Nanoseconds for one operation, and for one element. */
static const struct {
    double flop32, flop64, load32, load64, load_check, out, move, move_check, sum_check, in_check32,
        in_check64, out_check, compare, exact_flop, exact_load;
} ns = {.flop32 = 0.005,
        .flop64 = 0.01,
        .load32 = 4,
        .load64 = 5.5,
        .load_check = 4.5,
        .out = 1,
        .move = 0.5,
        .move_check = 0.5,
        .sum_check = 1.6,
        .in_check32 = 3.5,
        .in_check64 = 1,
        .out_check = 6,
        .compare = 11,
        .exact_flop = 0.27,
        .exact_load = 35};

static double elements(const Program *p, int v) {
    const GTensor *t = &p->graph->t[p->val[v].tensor];
    double n = 1;
    for (int d = 0; d < t->nd; d++) n *= (double)t->size[d];
    return n;
}
static double copies(const Program *p,
                     const Layout *l) { /* pending sums differ on every rank of the axis */
    double n = 1;
    for (int a = 0; a < p->mesh->naxes; a++)
        if (l->type[a] == TY_P || l->type[a] == TY_M) n *= (double)p->mesh->axis[a].size;
    return n;
}
static Tensor whole_sizes(const OpcallSource *f, int val) {
    const GTensor *t = &f->p->graph->t[f->p->val[val].tensor];
    Tensor x = {.nd = t->nd};
    for (int d = 0; d < t->nd; d++) x.n[d] = t->size[d];
    return x;
}
static Layout whole_layout(const OpcallSource *f, int val) {
    return layout_whole(f->p->mesh, f->p->graph->t[f->p->val[val].tensor].nd, TY_I);
}
/* Of all ranks together: what they compute is cut, and done once where they compute the same. */
static double flops(const Program *p, const Step *s) {
    OpcallSource f = {.p = p, .dtype = DT_F32, .value = whole_sizes, .lies = whole_layout};
    OpCall c;
    opcall_build(&f, s, &c, NULL);
    c = opcall_forward(&c);
    return c.op->flops(&c);
}
static bool is_kernel(const Step *s) { return s->kind == ST_OP || s->kind == ST_ADJOINT; }

static double work_step(const Program *p, const Step *s, bool wide) {
    double o = elements(p, s->out);
    if (is_kernel(s))
        return flops(p, s) * (wide ? ns.flop64 : ns.flop32) +
               o * copies(p, &p->val[s->out].L) * ns.out;
    if (s->kind == ST_MOVE && s->move.kind <= MOVE_SLICE) return 0; /* a view */
    if (s->kind == ST_MOVE || s->kind == ST_SUM)
        return o * (1 + copies(p, &p->val[s->in[0]].L)) * ns.move;
    return 0;
}
static double work_check(const Program *p, const Step *s, bool wide) {
    double o = elements(p, s->out), from = s->kind == ST_SEED ? 1 : copies(p, &p->val[s->in[0]].L);
    if (s->kind == ST_SEED) return 0;
    if (!is_kernel(s))
        return o * (from > copies(p, &p->val[s->out].L) ? from * ns.sum_check : ns.move_check);
    int r[RULE_MAX_IN + 2], n = step_reads(s, r);
    double in = 0;
    for (int k = 0; k < n; k++) in += elements(p, r[k]);
    /* again, compared by bits */
    if (wide) return flops(p, s) * ns.flop64 + in * ns.in_check64 + o * ns.out;
    return flops(p, s) * (ns.flop32 + 2 * ns.flop64) + in * ns.in_check32 +
           o * ns.out_check; /* again, in f64, and its bound */
}
double work_flops(const Program *p) {
    double n = 0;
    for (int i = 0; i < p->ns; i++)
        if (is_kernel(&p->step[i])) n += flops(p, &p->step[i]);
    return n;
}
Work work_of(Arena *a, const Exec *e, int64_t iterations, int64_t parts) {
    const Program *p = e->p;
    bool wide = e->dtype == DT_F64;
    Work w = {.compare = ns.compare,
              .load = ARENA_ARRAY(a, double, p->nv + 1),
              .load_check = ARENA_ARRAY(a, double, p->nv + 1),
              .step = ARENA_ARRAY(a, double, p->ns + 1),
              .check = ARENA_ARRAY(a, double, p->ns + 1)};
    for (int v = 0; v < p->nv; v++) {
        if (p->val[v].step >= 0) continue;
        w.load[v] = elements(p, v) * (wide ? ns.load64 : ns.load32);
        w.load_check[v] = elements(p, v) * ns.load_check;
        double loads = p->val[v].kind == KIND_INPUT ? (double)(iterations * parts)
                       : p->graph->nn_model         ? 1
                                                    : (double)parts;
        w.run += loads * (w.load[v] + w.load_check[v]);
        w.plain += loads * w.load[v];
        w.exact += elements(p, v) * ns.exact_load;
        w.reference += elements(p, v) * ns.load64;
    }
    for (int i = 0; i < p->ns; i++) {
        const Step *s = &p->step[i];
        double times = (double)(iterations * (exec_deferred(e, s) ? 1 : parts));
        w.step[i] = work_step(p, s, wide);
        w.check[i] = work_check(p, s, wide);
        w.run += times * (w.step[i] + w.check[i]);
        w.plain += times * w.step[i];
        if (is_kernel(s)) w.exact += flops(p, s) * ns.exact_flop;
        if (s->kind != ST_MOVE) w.reference += times * work_step(p, s, true);
    }
    return w;
}
double work_seconds(const Exec *e, const Work *w, int64_t iterations, int64_t parts, double more) {
    /* small steps cost their bookkeeping: nanoseconds of each, and of each rank in it */
    const double step = 20e3, rank = 500;
    double steps = (double)e->p->ns * (double)iterations * (double)parts;
    double books = steps * (step + rank * (double)e->p->mesh->nranks);
    return 1e-9 * (w->run + w->reference + more + books);
}
