/* Holding every value of every rank against what it must be. */
#include "exec/check.h"
#include "ops/op.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

Check *check_new(Arena *arena, Exec *e, Trace *t) {
    Check *c = ARENA_NEW(arena, Check);
    *c = (Check){.e = e, .t = t, .arena = arena, .first_fail = -1};
    c->full = e->full;
    c->full_arg = e->full_arg;
    c->u = e->dtype == DT_F32 ? 0x1p-24 : 0x1p-53;
    c->slack = e->dtype == DT_F32 ? 1 : 2;
    return c;
}

/* ---- elements ---- */
static double at(const void *p, Dtype d, int64_t i) {
    return d == DT_F32 ? (double)((const float *)p)[i] : d == DT_F64 ? ((const double *)p)[i] : (double)((const int64_t *)p)[i];
}
static void *alloc_count(int64_t n, int64_t size) { return base_malloc(base_mul((size_t)(n > 0 ? n : 1), (size_t)size)); }
static double *to_f64(const Tensor *t, Dtype d) { /* packed in, packed out */
    int64_t n = tensor_count(t);
    double *o = alloc_count(n, 8);
    for (int64_t i = 0; i < n; i++) o[i] = at(t->p, d, i);
    return o;
}
static Tensor box_tensor(const Box *b) {
    Tensor t = {.nd = b->nd};
    for (int d = 0; d < b->nd; d++) t.n[d] = b->n[d];
    tensor_pack(&t);
    return t;
}
static Dtype dtype_of(const Check *c, int v) { return exec_is_int(c->e, v) ? DT_I64 : c->e->dtype; }

/* ---- one comparison in the making ---- */
typedef struct {
    TraceCheck rec;
    double *rank_error; /* per rank: largest error, -1 none */
    const int *unused;
    bool failed;
    int64_t n_err_ranks;
    double ratio_lo, ratio_hi; /* got / want over elements of some size: a constant factor is a clue */
    bool own_part;
} Cmp;
static Cmp cmp_new(const Check *c, const Step *s, int val, int level) {
    const Program *p = c->e->p;
    Cmp m;
    memset(&m, 0, sizeof m);
    const Val *v = &p->val[val];
    const GTensor *t = &p->graph->t[v->tensor];
    m.rec.step = s ? s->id : -1;
    m.rec.pass = s ? s->pass : "parameters";
    m.rec.value = v->cot ? arena_printf(c->arena, t->kind == KIND_PARAM ? "grad.param.%s" : "grad.%s", t->kind == KIND_PARAM && t->plan_name ? t->plan_name : t->name) : t->kind == KIND_PARAM && t->plan_name ? t->plan_name : t->name;
    m.rec.level = level;
    m.rec.verdict = "PASS";
    m.ratio_lo = INFINITY;
    m.ratio_hi = -INFINITY;
    return m;
}
static void ensure_ranks(const Check *c, Cmp *m) {
    if (m->rank_error) return;
    int64_t n = c->e->p->mesh->nranks;
    m->rank_error = alloc_count(n, 8);
    for (int64_t r = 0; r < n; r++) m->rank_error[r] = -1;
}
/* The stored global index of element i of a local block. */
static void stored_index(const GTensor *t, const Box *b, int64_t i, bool flat, TraceCheck *rec) {
    int64_t letter[LAYOUT_MAX_DIMS];
    for (int d = b->nd - 1; d >= 0; d--) {
        int64_t k = b->n[d] ? i % b->n[d] : 0;
        if (b->n[d]) i /= b->n[d];
        letter[d] = b->d[d].range ? b->d[d].lo + k : b->d[d].list[k];
    }
    rec->n_index = t->nstored;
    int at_letter = 0;
    for (int d = 0; d < t->nstored; d++) {
        int64_t x = 0;
        if (flat && d == 0) x = letter[at_letter++];
        else
            for (int k = 0; k < t->stored[d]; k++, at_letter++) {
                int lt = flat ? at_letter + t->stored[0] - 1 : at_letter;
                x = x * t->size[lt] + letter[at_letter];
            }
        rec->index[d] = x;
    }
}
/* One rank's block against the wanted one. bound NULL: bit equality. */
typedef struct {
    const Tensor *got; /* may be a strided view */
    Dtype dt;
    const double *want;  /* packed; or NULL with want_raw */
    const void *want_raw; /* packed, same dtype: compared by bits */
    const double *bound, *prob;
    int64_t rank;
    const Box *box;
    const GTensor *t;
    bool flat;
} Block;
static double factor_tolerance(const Check *c) { return c->e->dtype == DT_F32 ? 1e-3 : 1e-9; }
static void element(const Check *c, Cmp *m, const Block *b, int64_t i, double g, double w, double bound, double prob, bool equal) {
    double err = equal ? 0 : fabs(g - w);
    bool bad = !equal && !(err <= bound), odd = !equal && !bad && !(err <= prob);
    if (!equal && (isnan(g) != isnan(w) || isnan(err))) err = INFINITY, bad = true;
    if (err > m->rec.max_abs) m->rec.max_abs = err;
    if (w != 0 && err / fabs(w) > m->rec.max_rel) m->rec.max_rel = err / fabs(w);
    double used = err == 0 ? 0 : bound > 0 ? err / bound : INFINITY;
    if (used > m->rec.used || (used == m->rec.used && bound > m->rec.bound)) m->rec.used = used, m->rec.bound = bound;
    if (!bad && !odd) return;
    if (bad) {
        ensure_ranks(c, m);
        if (err > m->rank_error[b->rank]) m->rank_error[b->rank] = err;
        double k = w != 0 ? g / w : g == 0 ? NAN : INFINITY;
        if (w == 0 || fabs(w) * factor_tolerance(c) >= 4 * bound) { /* rounding cannot hide a factor in these */
            if (k < m->ratio_lo) m->ratio_lo = k;
            if (k > m->ratio_hi) m->ratio_hi = k;
        }
        if (!m->failed) {
            stored_index(b->t, b->box, i, b->flat, &m->rec);
            m->rec.got = g;
            m->rec.want = w;
        }
        m->failed = true;
        m->rec.verdict = "FAIL";
    } else if (!m->failed)
        m->rec.verdict = "SUSPECT";
}
static void compare(const Check *c, Cmp *m, const Block *b) {
    int64_t n = tensor_count(b->got), es = dtype_size(b->dt), i[LAYOUT_MAX_DIMS] = {0};
    int nd = b->got->nd;
    int64_t inner = nd ? b->got->n[nd - 1] : 1, rows = n ? n / inner : 0, step = nd ? b->got->s[nd - 1] : 1;
    m->rec.count += n;
    for (int64_t r = 0; r < rows; r++) {
        int64_t o = nd ? box_offset(b->got, nd - 1, i) : 0;
        const char *g = (const char *)b->got->p + o * es;
        if (b->want_raw && step == 1 && !memcmp(g, (const char *)b->want_raw + r * inner * es, (size_t)(inner * es))) {
            if (nd) box_next(nd - 1, b->got->n, i);
            continue; /* equal by bits */
        }
        for (int64_t k = 0; k < inner; k++) {
            int64_t e = r * inner + k;
            bool equal = b->want_raw && !memcmp(g + k * step * es, (const char *)b->want_raw + e * es, (size_t)es);
            double x = at(g, b->dt, k * step), w = b->want_raw ? at(b->want_raw, b->dt, e) : b->want[e];
            element(c, m, b, e, x, w, b->bound ? b->bound[e] : 0, b->prob ? b->prob[e] : 0, equal || (b->want && x == w));
        }
        if (nd) box_next(nd - 1, b->got->n, i);
    }
}

/* ---- recording ---- */
static const char *factor_cause(const Check *c, const Cmp *m, const char *axes, int64_t n) {
    double lo = m->ratio_lo, hi = m->ratio_hi, tol = factor_tolerance(c);
    if (!(fabs(hi - lo) <= tol * fabs(hi)) || !isfinite(hi)) return NULL;
    if (fabs(hi - (double)n) < tol * (double)n) return arena_printf(c->arena, "exactly %lld times too large: the sum over %s is counted on every rank", (long long)n, axes);
    if (fabs(hi * (double)n - 1) < tol) return arena_printf(c->arena, "exactly 1/%lld of the right value: averaged over %s instead of summed", (long long)n, axes);
    return arena_printf(c->arena, "off by a constant factor of %.6g", hi);
}
static void record(Check *c, Cmp *m, const RankSet *ranks, const char *cause) {
    Trace *t = c->t;
    const Mesh *mesh = c->e->p->mesh;
    m->rec.ranks = *ranks;
    if (m->failed) {
        t->n_fail++;
        m->rec.cause = cause;
        int64_t bad = 0;
        for (int64_t r = 0; r < mesh->nranks; r++) bad += m->rank_error[r] >= 0;
        int64_t *list = ARENA_ARRAY(c->arena, int64_t, bad);
        m->rec.rank_error = arena_alloc(c->arena, base_mul((size_t)(bad < 64 ? bad : 64), sizeof *m->rec.rank_error));
        bad = 0;
        for (int64_t r = 0; r < mesh->nranks; r++) {
            if (m->rank_error[r] < 0) continue;
            if (bad < 64) {
                m->rec.rank_error[bad].rank = r;
                m->rec.rank_error[bad].error = m->rank_error[r];
                m->rec.n_rank_error = (int)bad + 1;
            }
            list[bad++] = r;
        }
        m->rec.ranks = rankset_from(c->arena, list, bad);
        if (c->first_fail < 0) {
            c->first_fail = t->n_checks;
            t->first_wrong = m->rec.value;
        }
    } else if (m->rec.verdict[0] == 'S')
        t->n_suspect++;
    else
        t->n_pass++;
    if (m->rec.level == 2 && (m->rec.used > t->worst_used || !t->worst_value)) {
        t->worst_used = m->rec.used;
        t->worst_value = m->rec.value;
    }
    free(m->rank_error);
    m->rank_error = NULL;
    *ARENA_PUSH(t->arena, t->checks, t->n_checks, t->cap_checks) = m->rec;
}
static RankSet all_ranks(const Check *c) { return rankset_range(c->arena, 0, c->e->p->mesh->nranks, 1); }

/* Compares every distinct local of `val` whose rank agrees with `rank` on `fixed` with its part of a whole. */
typedef struct {
    const Box *box; /* of the whole */
    bool flat;
    Tensor raw;          /* whole in the run's dtype, p NULL: none */
    double *want, *bound, *prob; /* whole in f64, or NULL */
} Whole;
static double *part(const Whole *w, const double *from, const Box *lb) {
    if (!from) return NULL;
    Tensor src = box_tensor(w->box), dst = box_tensor(lb);
    src.p = (void *)(uintptr_t)from;
    dst.p = alloc_count(tensor_count(&dst), 8);
    region_copy(lb, &dst, w->box, &src, DT_F64, 0);
    return dst.p;
}
static bool same_box(const Box *a, const Box *b) {
    for (int d = 0; d < a->nd; d++)
        if (!a->d[d].range || !b->d[d].range || a->d[d].lo != b->d[d].lo || a->d[d].n != b->d[d].n) return false;
    return true;
}
static bool shape_is(const Tensor *t, const Box *b) {
    if (t->nd != b->nd) return false;
    for (int d = 0; d < b->nd; d++)
        if (t->n[d] != b->n[d]) return false;
    return true;
}
static void wrong_shape(const Check *c, Cmp *m, int64_t rank) {
    ensure_ranks(c, m);
    m->rank_error[rank] = INFINITY;
    m->failed = true;
    m->rec.verdict = "FAIL";
    m->rec.max_abs = m->rec.used = INFINITY;
}
static void compare_local(const Check *c, Cmp *m, int val, const Layout *L, const Local *l, int64_t rank, const Whole *w) {
    const Program *p = c->e->p;
    const GTensor *t = &p->graph->t[p->val[val].tensor];
    Arena *tmp = arena_new();
    Box lb = region_box(p->mesh, t, L, rank, w->flat, tmp);
    Tensor wanted = box_tensor(&lb);
    bool fits = shape_is(&l->t, &lb) || (w->flat && tensor_count(&wanted) == tensor_count(&l->t));
    if (!fits) wrong_shape(c, m, rank);
    else {
        Tensor got = l->t, dst = box_tensor(&lb);
        if (!shape_is(&got, &lb)) { /* letters against a flattened dim: same elements, packed */
            dst.p = got.p;
            got = dst;
        }
        Dtype dt = dtype_of(c, val);
        Block b = {.got = &got, .dt = dt, .rank = rank, .box = &lb, .t = t, .flat = w->flat};
        bool whole = same_box(&lb, w->box);
        void *raw = NULL;
        double *x[3] = {0};
        if (w->raw.p) {
            if (whole) b.want_raw = w->raw.p;
            else {
                dst.p = raw = alloc_count(tensor_count(&dst), dtype_size(dt));
                region_copy(&lb, &dst, w->box, &w->raw, dt, 0);
                b.want_raw = raw;
            }
        }
        if (whole) b.want = w->want, b.bound = w->bound, b.prob = w->prob;
        else {
            b.want = x[0] = part(w, w->want, &lb);
            b.bound = x[1] = part(w, w->bound, &lb);
            b.prob = x[2] = part(w, w->prob, &lb);
        }
        compare(c, m, &b);
        free(raw);
        for (int k = 0; k < 3; k++) free(x[k]);
    }
    arena_free(tmp);
}
static bool agrees(const Mesh *m, const AxisList *fixed, int64_t a, int64_t b) {
    for (int i = 0; i < fixed->n; i++)
        if (mesh_coord(m, a, fixed->a[i]) != mesh_coord(m, b, fixed->a[i])) return false;
    return true;
}
/* All ranks; ranks that share a local and a place are looked at once, unless it is wrong: then all of them are marked. */
static void compare_all(const Check *c, Cmp *m, int val, const Layout *L, const AxisList *fixed, int64_t rep, const Whole *w) {
    const Mesh *mesh = c->e->p->mesh;
    const Store *s = &c->e->store[val];
    unsigned char *state = alloc_count(s->n, 1); /* 0 unseen, 1 right, 2 wrong */
    memset(state, 0, (size_t)s->n);
    for (int64_t r = 0; r < mesh->nranks; r++) {
        uint32_t k = s->which[r];
        if (!agrees(mesh, fixed, r, rep)) continue;
        if (state[k]) {
            if (state[k] == 2) {
                double err = m->rank_error[s->l[k].rank];
                m->rank_error[r] = err < 0 ? m->rec.max_abs : err;
            }
            continue;
        }
        bool before = m->failed;
        m->failed = false;
        compare_local(c, m, val, L, &s->l[k], r, w);
        state[k] = m->failed ? 2 : 1;
        m->failed |= before;
    }
    free(state);
}

/* ---- sources ---- */
void check_source(Check *c, int val) {
    const Program *p = c->e->p;
    const Val *v = &p->val[val];
    const GTensor *t = &p->graph->t[v->tensor];
    Cmp m = cmp_new(c, NULL, val, 1);
    Dtype dt = dtype_of(c, val);
    void *whole = c->full(c->full_arg, v->tensor, dt);
    if (!whole) return;
    Arena *tmp = arena_new();
    bool flat = region_is_flat(&v->L, NULL);
    Layout none = layout_whole(p->mesh, t->nd, TY_I);
    Box wb = region_box(p->mesh, t, &none, 0, flat, tmp);
    if (flat) wb.d[0] = (DimIndex){true, 0, wb.n[0], NULL};
    Whole w = {.box = &wb, .flat = flat, .raw = box_tensor(&wb)};
    w.raw.p = whole;
    AxisList nothing = {0};
    compare_all(c, &m, val, &v->L, &nothing, 0, &w);
    RankSet ranks = all_ranks(c);
    record(c, &m, &ranks, "the shard is not the part of the source that its layout claims");
    free(whole);
    arena_free(tmp);
}

/* ---- kernels ---- */
static bool in_list(const AxisList *l, int a) {
    for (int i = 0; i < l->n; i++)
        if (l->a[i] == a) return true;
    return false;
}
/* Axes over which the step's values are pending sums: they are looked at one coordinate at a time. */
static AxisList pending_axes(const Check *c, const Step *s) {
    const Program *p = c->e->p;
    AxisList X = {0};
    int r[RULE_MAX_IN + 3], n = step_reads(s, r);
    r[n++] = s->out;
    for (int a = 0; a < p->mesh->naxes; a++)
        for (int k = 0; k < n; k++) {
            int ty = p->val[r[k]].L.type[a];
            if ((ty == TY_P || ty == TY_M) && !in_list(&X, a)) X.a[X.n++] = (uint8_t)a;
        }
    return X;
}
static void index_from(const Check *c, OpCall *call, const char *letters, int nl, int val, const AxisList *X, int64_t rank, Arena *tmp) {
    const Program *p = c->e->p;
    if (val < 0) return;
    Layout joint = exec_joint_layout(c->e, &p->val[val].L, X);
    for (int d = 0; d < nl; d++) {
        char ch = letters[d];
        if (!(call->op->asks & RULE_BIT(ch)) || call->index[ch - 'a'] || !joint.n[d]) continue;
        int64_t k;
        const int64_t *x = layout_index(p->mesh, &joint, d, p->graph->t[p->val[val].tensor].size[d], rank, &k, tmp);
        if (k == call->local[ch - 'a']) call->index[ch - 'a'] = x;
    }
}
static void whole_index(const Check *c, OpCall *call, const Step *s, const GNode *n, const int *in, const AxisList *X, int64_t rank, Arena *tmp) {
    for (int i = 0; i < n->nin; i++) index_from(c, call, n->rule.in[i], n->rule.nl[i], in[i], X, rank, tmp);
    if (s->kind != ST_ADJOINT) return;
    index_from(c, call, n->rule.out, n->rule.nout, s->in[0], X, rank, tmp);
    index_from(c, call, n->rule.in[s->operand], n->rule.nl[s->operand], s->out, X, rank, tmp);
}
/* The same op on the ranks' inputs put together, at one coordinate of the pending axes. */
static bool whole_call(const Check *c, const Step *s, const AxisList *X, int64_t rank, OpCall *call, Box *ob, Arena *tmp) {
    const Program *p = c->e->p;
    const GNode *n = &p->graph->node[s->node];
    bool adj = s->kind == ST_ADJOINT;
    const int *in = adj ? s->in + 1 : s->in;
    *call = (OpCall){.op = n->op, .rule = &n->rule, .at = &n->at, .dtype = c->e->dtype, .operand = s->operand, .pool = c->e->pool};
    for (int i = 0; i < 26; i++) call->local[i] = call->global[i] = -1;
    for (int i = 0; i < n->nin; i++) {
        const GTensor *t = &p->graph->t[n->in[i]];
        for (int d = 0; d < n->rule.nl[i]; d++) call->global[n->rule.in[i][d] - 'a'] = t->size[d];
        if (in[i] < 0) continue;
        call->in[i] = exec_assemble(c->e, in[i], X, rank);
        if (region_is_flat(&p->val[in[i]].L, NULL)) call->in[i] = exec_letters(&call->in[i], t);
        call->in_int |= (uint32_t)exec_is_int(c->e, in[i]) << i;
        for (int d = 0; d < n->rule.nl[i]; d++) call->local[n->rule.in[i][d] - 'a'] = call->in[i].n[d];
    }
    if (adj) {
        call->cot = exec_assemble(c->e, s->in[0], X, rank);
        for (int d = 0; d < n->rule.nout; d++) call->local[n->rule.out[d] - 'a'] = call->cot.n[d];
        if (s->in[1 + n->nin] >= 0) call->fout = exec_assemble(c->e, s->in[1 + n->nin], X, rank);
    }
    const Val *o = &p->val[s->out];
    Layout joint = exec_joint_layout(c->e, &o->L, X);
    bool flat = region_is_flat(&o->L, NULL);
    *ob = region_box(p->mesh, &p->graph->t[o->tensor], &joint, rank, false, tmp);
    const char *letters = adj ? n->rule.in[s->operand] : n->rule.out;
    for (int d = 0; d < ob->nd; d++) {
        int64_t have = call->local[letters[d] - 'a'];
        if (have >= 0 && have != ob->n[d] && !flat) return false;
        call->local[letters[d] - 'a'] = ob->n[d];
    }
    call->out = box_tensor(ob);
    if (flat) { /* the same elements with stored dim 0 as one list */
        *ob = region_box(p->mesh, &p->graph->t[o->tensor], &joint, rank, true, tmp);
        Tensor list = box_tensor(ob);
        call->out = exec_letters(&list, &p->graph->t[o->tensor]);
    }
    op_unread_sizes(call, n->nin);
    whole_index(c, call, s, n, in, X, rank, tmp);
    return true;
}
static void free_call(OpCall *c, int nin) {
    for (int i = 0; i < nin; i++) free(c->in[i].p);
    free(c->cot.p);
    free(c->fout.p);
    free(c->out.p);
}
static void run_kernel(const Step *s, const OpCall *c) {
    if (s->kind == ST_ADJOINT) c->op->adjoint(c);
    else c->op->forward(c);
}
/* The call in float64 with its bounds; replaces the inputs by f64 copies. */
static void level2(Check *c, const Step *s, OpCall *call, int nin, Whole *w) {
    Dtype from = call->dtype;
    if (from == DT_F32) {
        for (int i = 0; i < nin; i++)
            if (call->in[i].p && !(call->in_int >> i & 1)) {
                double *x = to_f64(&call->in[i], from);
                free(call->in[i].p);
                call->in[i].p = x;
            }
        Tensor *more[2] = {&call->cot, &call->fout};
        for (int k = 0; k < 2; k++)
            if (more[k]->p) {
                double *x = to_f64(more[k], from);
                free(more[k]->p);
                more[k]->p = x;
            }
        call->dtype = DT_F64;
        free(call->out.p);
        call->out.p = alloc_count(tensor_count(&call->out), 8);
        run_kernel(s, call);
    }
    int64_t n = tensor_count(&call->out);
    OpBound b = {.call = *call, .operand = s->kind == ST_ADJOINT ? s->operand : -1, .u = c->u * c->slack};
    b.bound = w->bound = alloc_count(n, 8);
    b.prob = w->prob = alloc_count(n, 8);
    call->op->bound(&b);
    w->want = call->out.p;
    w->raw.p = NULL;
}
static int64_t first_rank_of(const Mesh *m, const AxisList *X, int64_t i) { return mesh_member(m, X, 0, i); }

static void check_kernel(Check *c, const Step *s) {
    const Program *p = c->e->p;
    const GNode *n = &p->graph->node[s->node];
    AxisList X = pending_axes(c, s);
    int64_t coords = mesh_size(p->mesh, &X);
    Cmp bits = cmp_new(c, s, s->out, 1), local = cmp_new(c, s, s->out, 2);
    for (int64_t i = 0; i < coords; i++) {
        int64_t rank = first_rank_of(p->mesh, &X, i);
        Arena *tmp = arena_new();
        OpCall call;
        Box ob;
        bool ok = whole_call(c, s, &X, rank, &call, &ob, tmp);
        if (!ok) {
            for (int64_t r = 0; r < p->mesh->nranks; r++)
                if (agrees(p->mesh, &X, r, rank)) wrong_shape(c, &bits, r);
        } else {
            call.out.p = alloc_count(tensor_count(&call.out), dtype_size(call.dtype));
            run_kernel(s, &call);
            Tensor raw = box_tensor(&ob);
            raw.p = call.out.p;
            Whole w = {.box = &ob, .flat = region_is_flat(&p->val[s->out].L, NULL), .raw = raw};
            compare_all(c, &bits, s->out, &p->val[s->out].L, &X, rank, &w);
            if (c->e->dtype == DT_F32 || bits.failed) {
                level2(c, s, &call, n->nin, &w);
                compare_all(c, &local, s->out, &p->val[s->out].L, &X, rank, &w);
                free(w.bound);
                free(w.prob);
            } else
                local.rec.count = bits.rec.count;
        }
        free_call(&call, n->nin);
        arena_free(tmp);
    }
    RankSet ranks = all_ranks(c);
    const char *axes = mesh_axes_text(p->mesh, c->arena, &X, true), *cause = NULL;
    if (bits.failed) {
        cause = factor_cause(c, &bits, X.n ? axes : "the ranks", coords);
        if (!cause) cause = "a rank's part is not what the op gives on the ranks' own inputs: positions, order or the kernel";
    }
    record(c, &bits, &ranks, cause);
    if (!bits.failed || local.failed || local.rec.count) record(c, &local, &ranks, cause);
}

/* ---- moves ---- */
/* The value that a source denotes at one coordinate of X: pending sums over A added in f64; *abs: sums of magnitudes. */
static double *denoted(const Check *c, int val, const AxisList *X, const AxisList *A, int64_t rank, Tensor *shape, double **abs, bool max, bool *seen) {
    const Mesh *m = c->e->p->mesh;
    AxisList both = *X;
    for (int i = 0; i < A->n; i++)
        if (!in_list(&both, A->a[i])) both.a[both.n++] = A->a[i];
    int64_t n = mesh_size(m, A);
    double *sum = NULL;
    *shape = (Tensor){0};
    if (abs) *abs = NULL;
    for (int64_t i = 0; i < n; i++) {
        int64_t q = mesh_member(m, A, rank, i);
        Tensor t = exec_assemble(c->e, val, &both, q);
        int64_t k = tensor_count(&t);
        if (!sum) {
            *shape = t;
            sum = alloc_count(k, 8);
            for (int64_t j = 0; j < k; j++) sum[j] = max ? -INFINITY : 0;
            if (abs) {
                *abs = alloc_count(k, 8);
                memset(*abs, 0, (size_t)k * 8);
            }
        }
        Dtype dt = dtype_of(c, val);
        double top = 0;
        for (int64_t j = 0; j < k; j++) {
            double x = at(t.p, dt, j);
            sum[j] = max ? fmax(sum[j], x) : sum[j] + x;
            if (abs) (*abs)[j] += fabs(x);
            if (fabs(x) > top) top = fabs(x);
        }
        if (seen) seen[i] = top > 0;
        free(t.p);
    }
    shape->p = NULL;
    return sum;
}
static const char *move_cause(const Check *c, const Step *s, const Cmp *m) {
    const char *axes = program_axes_name(c->e->p, s, c->arena), *f;
    int64_t n = mesh_size(c->e->p->mesh, &s->move.axes);
    bool reduces = s->move.from.type[s->move.axes.a[0]] == TY_P;
    if (s->kind == ST_CLAIM) {
        if (s->move.from.type[s->move.axes.a[0]] == TY_M) return arena_printf(c->arena, "the maximum over %s is missing: each rank holds only that of its own part", axes);
        if (reduces) return arena_printf(c->arena, "the sum over %s is missing: each rank holds only its own part", axes);
        if (s->move.axes.n && s->move.to.type[s->move.axes.a[0]] == TY_P) return arena_printf(c->arena, "it is whole on every rank and taken for a share: the sum over %s counts it %lld times", axes, (long long)n);
        return "the label is false: the data lie otherwise";
    }
    if ((reduces || s->edit == EDIT_SCALE) && (f = factor_cause(c, m, axes, n))) return f;
    if (reduces && m->own_part) return arena_printf(c->arena, "the sum over %s is missing: each rank passes on its own part, and the parts add up to the right value", axes);
    if (reduces) return arena_printf(c->arena, "the parts of %s add up to the right value, what arrives is another", axes);
    return arena_printf(c->arena, "what arrives is not the block that the layout claims: another rank's block, or another dim, over %s", axes);
}
/* Does the first rank that is wrong hold its own part, unreduced? */
static bool holds_own_part(const Check *c, const Step *s) {
    const Local *a = exec_local(c->e, s->in[0], 0), *b = exec_local(c->e, s->out, 0);
    return a->buf == b->buf;
}
static void observe(Check *c, const Step *s, const bool *seen, int64_t rank, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (seen[i]) continue;
        c->unobservable++;
        if (c->n_unobservable < 16)
            *ARENA_PUSH(c->arena, c->unobservable_text, c->n_unobservable, c->cap_unobservable) =
                arena_printf(c->arena, "%s: this run could not notice rank %lld missing", step_name(c->e->p, s, c->arena), (long long)mesh_member(c->e->p->mesh, &s->move.axes, rank, i));
    }
}
static void check_reduction(Check *c, const Step *s, Cmp *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    bool max = s->move.from.type[s->move.axes.a[0]] == TY_M;
    int64_t n = mesh_size(p->mesh, &s->move.axes);
    Arena *tmp = arena_new();
    AxisList XA = *X;
    for (int i = 0; i < s->move.axes.n; i++)
        if (!in_list(&XA, s->move.axes.a[i])) XA.a[XA.n++] = s->move.axes.a[i];
    Layout joint = exec_joint_layout(c->e, &s->move.from, &XA);
    bool flat = region_is_flat(&s->move.from, &s->move.to);
    Box box = region_box(p->mesh, t, &joint, rank, flat, tmp);
    Tensor shape;
    double *abs;
    bool *seen = ARENA_ARRAY(tmp, bool, n);
    Whole w = {.box = &box, .flat = flat};
    w.want = denoted(c, s->in[0], X, &s->move.axes, rank, &shape, &abs, max, seen);
    int64_t k = tensor_count(&shape);
    double g = max || n == 1 ? 0 : gamma_n((double)n, c->u * c->slack);
    for (int64_t j = 0; j < k; j++) abs[j] = abs[j] * g + (max ? 0 : n > 1 ? 0x1p-149 : 0);
    w.bound = w.prob = abs;
    compare_all(c, m, s->out, &s->move.to, X, rank, &w);
    if (!max && s->kind == ST_MOVE && k) observe(c, s, seen, rank, n);
    free(w.want);
    free(abs);
    arena_free(tmp);
}
/* Moves that only copy: by bits. */
static void check_copy(Check *c, const Step *s, Cmp *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    const GTensor *t = &p->graph->t[p->val[s->out].tensor];
    Arena *tmp = arena_new();
    Layout joint = exec_joint_layout(c->e, &s->move.from, X);
    bool flat = region_is_flat(&s->move.from, &s->move.to);
    Box box = region_box(p->mesh, t, &joint, rank, flat, tmp);
    Whole w = {.box = &box, .flat = flat, .raw = exec_assemble(c->e, s->in[0], X, rank)};
    Tensor as = box_tensor(&box);
    as.p = w.raw.p;
    if (tensor_count(&as) == tensor_count(&w.raw)) w.raw = as;
    compare_all(c, m, s->out, &s->move.to, X, rank, &w);
    free(as.p);
    arena_free(tmp);
}
/* A move into a pending sum: what the ranks hold must add up to the source. */
static void check_spread(Check *c, const Step *s, Cmp *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    Tensor shape, src = exec_assemble(c->e, s->in[0], X, rank);
    double *sum = denoted(c, s->out, X, &s->move.axes, rank, &shape, NULL, false, NULL);
    int64_t n = tensor_count(&src);
    m->rec.count += n;
    Dtype dt = dtype_of(c, s->out);
    for (int64_t i = 0; i < n && tensor_count(&shape) == n; i++) {
        double want = at(src.p, dt, i);
        if (sum[i] == want) continue;
        if (!m->failed) m->rec.got = sum[i], m->rec.want = want;
        m->rec.max_abs = fmax(m->rec.max_abs, fabs(sum[i] - want));
        m->rec.max_rel = fmax(m->rec.max_rel, fabs(sum[i] - want) / fmax(fabs(want), 0x1p-126));
        m->rec.used = INFINITY; /* the shares of a value are exact */
        for (int64_t r = 0; r < p->mesh->nranks; r++)
            if (agrees(p->mesh, X, r, rank)) {
                ensure_ranks(c, m);
                m->rank_error[r] = m->rec.max_abs;
            }
        m->failed = true;
        m->rec.verdict = "FAIL";
    }
    free(sum);
    free(src.p);
}
static void check_move(Check *c, const Step *s) {
    const Program *p = c->e->p;
    int a0 = s->move.axes.n ? s->move.axes.a[0] : 0;
    int tf = s->move.from.type[a0], tt = s->move.to.type[a0];
    Step claim = *s;
    if (s->kind == ST_CLAIM) { /* axes on which the label differs */
        claim.move.axes.n = 0;
        tf = tt = TY_V;
        for (int a = 0; a < p->mesh->naxes; a++)
            if ((s->move.from.type[a] == TY_P || s->move.from.type[a] == TY_M) && s->move.to.type[a] != s->move.from.type[a])
                claim.move.axes.a[claim.move.axes.n++] = (uint8_t)a, tf = TY_P;
        for (int a = 0; a < p->mesh->naxes && tf == TY_V; a++) /* whole values taken for shares of a sum */
            if (s->move.to.type[a] == TY_P && s->move.from.type[a] != TY_P) claim.move.axes.a[claim.move.axes.n++] = (uint8_t)a, tt = TY_P;
        s = &claim;
    }
    AxisList X = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool pf = s->move.from.type[a] == TY_P || s->move.from.type[a] == TY_M;
        if (pf && !in_list(&s->move.axes, a)) X.a[X.n++] = (uint8_t)a;
    }
    bool reduces = tf == TY_P || tf == TY_M, spreads = !reduces && tt == TY_P;
    Cmp m = cmp_new(c, s, s->out, reduces ? 2 : 1);
    int64_t coords = mesh_size(p->mesh, &X);
    for (int64_t i = 0; i < coords; i++) {
        int64_t rank = first_rank_of(p->mesh, &X, i);
        if (reduces) check_reduction(c, s, &m, &X, rank);
        else if (spreads) check_spread(c, s, &m, &X, rank);
        else check_copy(c, s, &m, &X, rank);
    }
    RankSet ranks = all_ranks(c);
    if (m.failed && s->kind == ST_MOVE) m.own_part = holds_own_part(c, s);
    record(c, &m, &ranks, m.failed ? move_cause(c, s, &m) : NULL);
}
static void check_sum(Check *c, const Step *s) {
    const Program *p = c->e->p;
    AxisList X = pending_axes(c, s);
    Cmp m = cmp_new(c, s, s->out, 1);
    int64_t coords = mesh_size(p->mesh, &X);
    for (int64_t i = 0; i < coords; i++) {
        int64_t rank = first_rank_of(p->mesh, &X, i);
        Arena *tmp = arena_new();
        Layout joint = exec_joint_layout(c->e, &p->val[s->out].L, &X);
        bool flat = region_is_flat(&p->val[s->out].L, NULL);
        Box box = region_box(p->mesh, &p->graph->t[p->val[s->out].tensor], &joint, rank, flat, tmp);
        Tensor a = exec_assemble(c->e, s->in[0], &X, rank), b = exec_assemble(c->e, s->in[1], &X, rank);
        int64_t n = tensor_count(&a);
        for (int64_t k = 0; k < n; k++) {
            if (c->e->dtype == DT_F32) ((float *)a.p)[k] += ((float *)b.p)[k];
            else ((double *)a.p)[k] += ((double *)b.p)[k];
        }
        Whole w = {.box = &box, .flat = flat, .raw = a};
        compare_all(c, &m, s->out, &p->val[s->out].L, &X, rank, &w);
        free(a.p);
        free(b.p);
        arena_free(tmp);
    }
    RankSet ranks = all_ranks(c);
    record(c, &m, &ranks, "the terms do not add up");
}
void check_step(Check *c, const Step *s) {
    switch (s->kind) {
    case ST_OP:
    case ST_ADJOINT: check_kernel(c, s); break;
    case ST_MOVE:
    case ST_CLAIM: check_move(c, s); break;
    case ST_SUM: check_sum(c, s); break;
    case ST_SEED: break;
    }
}
void check_exact(Check *c, const Step *s, const void *want, double modulus) {
    const Program *p = c->e->p;
    const Val *v = &p->val[s->out];
    const GTensor *t = &p->graph->t[v->tensor];
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        if (v->L.type[a] == TY_M && p->mesh->axis[a].size > 1) return; /* a pending maximum: its reduction is looked at */
        if (v->L.type[a] == TY_P) P.a[P.n++] = (uint8_t)a;
    }
    Cmp m = cmp_new(c, s, s->out, 3);
    Arena *tmp = arena_new();
    Layout whole = layout_whole(p->mesh, t->nd, TY_I);
    bool flat = region_is_flat(&v->L, NULL);
    Box box = region_box(p->mesh, t, &whole, 0, flat, tmp);
    Whole w = {.box = &box, .flat = flat, .raw = box_tensor(&box)};
    w.raw.p = (void *)(uintptr_t)want;
    if (!P.n) compare_all(c, &m, s->out, &v->L, &none, 0, &w);
    else { /* the shares must add up to the value, modulo */
        Tensor shape;
        double *sum = denoted(c, s->out, &none, &P, 0, &shape, NULL, false, NULL);
        int64_t n = tensor_count(&shape);
        for (int64_t i = 0; i < n; i++) {
            double x = sum[i] - modulus * floor(sum[i] / modulus), y = at(want, c->e->dtype, i);
            m.rec.count++;
            if (x == y || m.failed) continue;
            m.failed = true;
            m.rec.verdict = "FAIL";
            m.rec.got = x, m.rec.want = y, m.rec.max_abs = fabs(x - y);
            ensure_ranks(c, &m);
            for (int64_t r = 0; r < p->mesh->nranks; r++) m.rank_error[r] = m.rec.max_abs;
        }
        free(sum);
    }
    RankSet ranks = all_ranks(c);
    record(c, &m, &ranks, "integer data show another value than the unsharded program");
    arena_free(tmp);
}
void check_stuck(Check *c, const Step *s, const char *why) {
    Cmp m = cmp_new(c, s, s->out, 1);
    ensure_ranks(c, &m);
    for (int64_t r = 0; r < c->e->p->mesh->nranks; r++) m.rank_error[r] = INFINITY;
    m.failed = true;
    m.rec.verdict = "FAIL";
    m.rec.max_abs = m.rec.used = INFINITY;
    RankSet ranks = all_ranks(c);
    record(c, &m, &ranks, why);
}
double check_reference(Check *c, int val, const double *want) {
    const Program *p = c->e->p;
    const Val *v = &p->val[val];
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++)
        if (v->L.type[a] == TY_P) P.a[P.n++] = (uint8_t)a;
    Tensor shape;
    double *got = denoted(c, val, &none, &P, 0, &shape, NULL, false, NULL), top = 0, err = 0;
    int64_t n = tensor_count(&shape);
    for (int64_t i = 0; i < n; i++) {
        top = fmax(top, fabs(want[i]));
        double d = fabs(got[i] - want[i]);
        if (isnan(d)) d = INFINITY;
        err = fmax(err, d);
    }
    free(got);
    return top > 0 ? err / top : err;
}
