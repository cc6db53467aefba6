/* Holding every value of every rank against what it must be. */
#include "exec/apart.h"
#include "exec/cause.h"
#include "exec/narrow.h"
#include "exec/projected.h"
#include "exec/slices.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

Check *check_new(Arena *arena, Exec *e, Trace *t) {
    Check *c = ARENA_NEW(arena, Check);
    *c = (Check){.e = e, .t = t, .arena = arena, .piece = CHECK_PIECE, .first_fail = -1};
    c->full = e->full;
    c->some = e->part;
    c->full_arg = e->full_arg;
    c->u = e->dtype == DT_F32 ? 0x1p-24 : 0x1p-53;
    c->slack = e->dtype == DT_F32 ? 1 : 2;
    return c;
}

/* ---- recording ---- */
static void record(Check *c, Compare *m, const RankSet *ranks, const char *cause) {
    Trace *t = c->t;
    const Mesh *mesh = c->e->p->mesh;
    m->rec.ranks = *ranks;
    m->rec.iteration = (int)c->step, m->rec.microbatch = (int)c->part;
    if (m->failed) {
        t->n_fail++;
        m->rec.cause = joint_when(c, cause);
        int64_t bad = 0;
        for (int64_t r = 0; r < mesh->nranks; r++) bad += m->rank_error[r] >= 0;
        int64_t *list = ARENA_ARRAY(c->arena, int64_t, bad);
        m->rec.rank_error = arena_alloc(
            c->arena, base_mul((size_t)(bad < 64 ? bad : 64), sizeof *m->rec.rank_error));
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
    } else if (m->rec.verdict[0] == 'S') t->n_suspect++;
    else t->n_pass++;
    if (m->rec.level == LEVEL_BOUND && (m->rec.used > t->worst_used || !t->worst_value)) {
        t->worst_used = m->rec.used;
        t->worst_value = m->rec.value;
    }
    free(m->rank_error);
    m->rank_error = NULL;
    *ARENA_PUSH(t->arena, t->checks, t->n_checks, t->cap_checks) = m->rec;
}
/* The ranks that should hold a value. */
static RankSet ranks_of(const Check *c, int val) {
    const Mesh *m = c->e->p->mesh;
    const Layout *l = &c->e->p->val[val].L;
    int64_t n = 0, *list = base_malloc(base_mul((size_t)m->nranks, sizeof *list));
    for (int64_t r = 0; r < m->nranks; r++)
        if (layout_holds(m, l, r)) list[n++] = r;
    RankSet all =
        n == m->nranks ? rankset_range(c->arena, 0, n, 1) : rankset_from(c->arena, list, n);
    free(list);
    return all;
}

/* ---- sources ---- */
/* How many elements of its first dim are read at a time: what is read next is written where it was,
 * and looked at while it is near. All of them: it is small, not a parameter, or elsewhere. */
static int64_t source_rows(const Check *c, int val) {
    enum { SHARE = 8 }; /* of what an op's operands and result may have together */
    const Val *v = &c->e->p->val[val];
    const GTensor *t = &c->e->p->graph->t[v->tensor];
    Region box = region_whole(t);
    Tensor all = region_packed(&box);
    int64_t n = tensor_count(&all), most = c->piece / SHARE;
    bool some = c->some && v->kind == KIND_PARAM && !c->e->far && t->nd && n > most;
    if (!some || !slices_ranges(c->e, val, 0)) return t->nd ? t->size[0] : 1;
    int64_t each = most / (n / t->size[0]);
    return each > 1 ? each : 1;
}
/* What all ranks hold against the source, in slices. False: it cannot be read again. */
static bool source_slices(Check *c, int val, int64_t rows, Compare *m) {
    const Val *v = &c->e->p->val[val];
    Dtype dt = exec_dtype(c->e, val);
    AxisList nothing = {0};
    Region box = region_whole(&c->e->p->graph->t[v->tensor]);
    int64_t n = box.n[0], lo = 0;
    CompareLooks looks = compare_begin(m, val, &v->L, &nothing, 0);
    box.d[0].n = box.n[0] = rows;
    Whole w = {.box = &box, .part = 1, .raw = region_packed(&box)};
    w.raw.p = joint_take(c, tensor_count(&w.raw), dtype_size(dt));
    for (; lo < n && joint_numbers(c); lo += rows) {
        box.d[0].lo = lo;
        box.d[0].n = box.n[0] = w.raw.n[0] = n - lo < rows ? n - lo : rows;
        if (!c->some(c->full_arg, v->tensor, dt, &box, w.raw.p)) break;
        compare_look(&looks, &w);
    }
    joint_give(c, w.raw.p);
    compare_end(&looks);
    return lo >= n || !joint_numbers(c);
}
/* A run that was said to fit must not end for want of memory because it is wrong: NULL where there
 * is enough to look for the cause, else what is said in its place. */
static const char *not_looked_for(Check *c, const Step *s, int out) {
    if (!c->room || c->e->dev->sizes_only) return NULL;
    Arena *tmp = arena_new();
    const int64_t need = cause_need(c->e, s, out), room = c->room(tmp);
    const char *text =
        need <= room ? NULL
                     : arena_printf(c->arena,
                                    "the cause was not looked for: that takes about %s more of "
                                    "memory, and there are %s",
                                    bytes_text(need, c->arena), bytes_text(room, c->arena));
    arena_free(tmp);
    return text;
}
static const char *step_cause(Check *c, const Step *s, const Compare *m,
                              const char *(*of)(Arena *, Exec *, const Step *, const double *)) {
    const char *none = m->failed ? not_looked_for(c, s, s->out) : NULL;
    return none || !m->failed ? none : of(c->arena, c->e, s, m->rank_error);
}
static const char *source_cause(Check *c, int val, const void *whole, const Compare *m) {
    const Program *p = c->e->p;
    const char *name = p->graph->t[p->val[val].tensor].name, *none;
    if (!m->failed) return NULL;
    if (c->weights_cause && !strcmp(name, "loss_weights")) return c->weights_cause;
    none = not_looked_for(c, NULL, val);
    const CauseSource source = {whole, c->some, c->full_arg};
    return none ? none : cause_of_source(c->arena, c->e, val, &source, m->rank_error);
}
void check_source(Check *c, int val) {
    const Val *v = &c->e->p->val[val];
    Compare m = compare_new(c->e, c->arena, NULL, val, LEVEL_BITS);
    Region wb = region_whole(&c->e->p->graph->t[v->tensor]);
    int64_t rows = source_rows(c, val);
    bool sliced = wb.nd && rows < wb.n[0], read = !sliced || source_slices(c, val, rows, &m);
    void *whole = NULL;
    if (!sliced) {
        whole = c->full(c->full_arg, v->tensor, exec_dtype(c->e, val));
        read = whole != NULL;
    }
    if (!read) {
        free(m.rank_error);
        return;
    }
    if (!sliced) {
        Whole w = {.box = &wb, .raw = region_packed(&wb)};
        w.raw.p = whole;
        AxisList nothing = {0};
        compare_all(&m, val, &v->L, &nothing, 0, &w);
    }
    RankSet ranks = ranks_of(c, val);
    record(c, &m, &ranks, source_cause(c, val, whole, &m));
    joint_give(c, whole);
}

#define REPLICAS_DIFFER                                                                            \
    "ranks that hold the same part of the value hold different bits: the sum was not the same "    \
    "for all"
#define OP_ITSELF                                                                                  \
    "every rank has, bit for bit, what the op gives on the ranks' inputs, but in float64 the op "  \
    "gives another number: more than rounding lies between the two"
static Levels levels_all(Check *c, const Step *s, const AxisList *X, bool each) {
    Levels seen = levels_new(c, s, each);
    bool apart = apart_held(c, s, X, &seen);
    for (int64_t i = 0; i < mesh_size(c->e->p->mesh, X) && !apart; i++)
        levels_op(c, s, &(Joint){.c = c, .X = X, .rank = joint_rank(c, s->out, X, i)}, &seen);
    return seen;
}
/* Where only some slices were asked in float64 and something is odd, all are: what is said of it is
 * what a full check says. */
static Levels kernel_levels(Check *c, const Step *s, const AxisList *X) {
    const CheckBeyond before = c->beyond;
    Levels seen = levels_all(c, s, X, c->each);
    bool plain = seen.bits.rec.verdict[0] == 'P' && seen.local.rec.verdict[0] == 'P' &&
                 c->beyond.n == before.n;
    if (!seen.some || plain) return seen;
    c->beyond = before;
    free(seen.bits.rank_error);
    free(seen.local.rank_error);
    return levels_all(c, s, X, true);
}
static void check_kernel(Check *c, const Step *s) {
    const Program *p = c->e->p;
    RankSet ranks = ranks_of(c, s->out);
    Compare quick;
    /* in bf16 a projection adds up as many roundings as there are elements: it would notice little
     */
    if (c->quick && !c->e->narrow && projected_product(c, s, &quick)) {
        record(c, &quick, &ranks, NULL);
        return;
    }
    AxisList X = joint_pending(c, s);
    bool by_bound = levels_of(c, s) == LEVEL_BOUND;
    Levels seen = kernel_levels(c, s, &X);
    Compare bits = seen.bits, local = seen.local;
    const char *cause = NULL;
    if (by_bound && !bits.failed) { /* level 2 says what it must be; copies of a share must agree */
        bits.rec.count = local.rec.count;
        if (!c->e->dev->own_order) compare_replicas(&bits, s->out, &p->val[s->out].L);
        if (bits.failed) cause = REPLICAS_DIFFER;
    }
    if (!by_bound && !bits.failed && local.failed) cause = OP_ITSELF;
    const Compare *bad = bits.failed ? &bits : local.failed ? &local : NULL;
    if (bad && !cause) cause = step_cause(c, s, bad, cause_of_op);
    record(c, &bits, &ranks, cause);
    bool second = !bits.failed || local.failed || local.rec.count;
    if (second && !exec_is_int(c->e, s->out)) record(c, &local, &ranks, cause);
    else free(local.rank_error);
}

/* ---- moves ---- */
typedef struct {
    const void *x;
    Dtype dt;
    bool max, first;   /* first: there is nothing in sum and abs yet */
    double *sum, *abs; /* abs NULL: not wanted */
} AddJob;
static void add_piece(void *arg, int64_t lo, int64_t hi) {
    const AddJob *j = arg;
    for (int64_t i = lo; i < hi && j->first; i++) j->sum[i] = j->max ? -INFINITY : 0;
    for (int64_t i = lo; i < hi && j->first && j->abs; i++) j->abs[i] = 0;
    if (!j->max && j->dt == DT_F32 && j->abs) { /* what most plans reduce, as vector code */
        const float *x = j->x;
        for (int64_t i = lo; i < hi; i++) {
            j->sum[i] += (double)x[i];
            j->abs[i] += fabs((double)x[i]);
        }
        return;
    }
    for (int64_t i = lo; i < hi; i++) {
        double x = compare_at(j->x, j->dt, i);
        j->sum[i] = j->max ? fmax(j->sum[i], x) : j->sum[i] + x;
    }
    for (int64_t i = lo; i < hi && j->abs; i++) j->abs[i] += fabs(compare_at(j->x, j->dt, i));
}
static bool any_nonzero(const void *x, Dtype dt, int64_t n) {
    for (int64_t i = 0; i < n; i++)
        if (fabs(compare_at(x, dt, i)) > 0) return true;
    return false;
}
/* What a value denotes at one coordinate of some axes, packed. */
typedef struct {
    Tensor shape;    /* p NULL */
    double *x, *abs; /* the value; the sums of magnitudes, where asked for */
} Denoted;
typedef struct {
    bool max;   /* the largest of the shares, not their sum */
    bool *seen; /* [shares], set where it holds anything but zeros. Asks for magnitudes too; or NULL
                 */
    const Region *part; /* the elements that are asked for; NULL: all */
} Shares;

static AxisList with_axes(const AxisList *X, const AxisList *A) {
    AxisList both = *X;
    for (int i = 0; i < A->n; i++)
        if (!joint_has_axis(&both, A->a[i])) mesh_add_axis(&both, A, i);
    return both;
}
/* `val` at the coordinate of X that `rank` has: shares over A added in f64. x and abs are to be
 * given back. */
static Denoted denoted(const Check *c, int val, const AxisList *X, const AxisList *A, int64_t rank,
                       Shares how) {
    const bool max = how.max;
    const Mesh *m = c->e->p->mesh;
    const AxisList both = with_axes(X, A);
    int64_t n = mesh_size(m, A);
    Denoted d = {0};
    for (int64_t i = 0; i < n; i++) {
        int64_t q = mesh_member(m, A, rank, i);
        Tensor t = how.part ? assemble_box(c->e, val, &both, q, how.part)
                            : assemble_value(c->e, val, &both, q);
        int64_t k = tensor_count(&t);
        if (!d.x) {
            d.shape = t;
            d.x = joint_take(c, k, 8);
            if (how.seen) d.abs = joint_take(c, k, 8);
        }
        if (k != tensor_count(&d.shape)) k = 0; /* other rows: not what is added up here */
        AddJob j = {t.p, exec_dtype(c->e, val), max, !i, d.x, d.abs};
        c->e->host->pieces(c->e->host, c->e->pool, k, add_piece, &j);
        if (how.seen) how.seen[i] |= !joint_numbers(c) || any_nonzero(t.p, j.dt, k);
        joint_give(c, t.p);
    }
    d.shape.p = NULL;
    return d;
}
static void observe(Check *c, const Step *s, const bool *seen, int64_t rank, int64_t n) {
    for (int64_t i = 0; i < n; i++) {
        if (seen[i]) continue;
        c->unobservable++;
        if (c->n_unobservable < 16)
            *ARENA_PUSH(c->arena, c->unobservable_text, c->n_unobservable, c->cap_unobservable) =
                arena_printf(c->arena, "%s: this run could not notice rank %lld missing",
                             step_name(c->e->p, s, c->arena),
                             (long long)mesh_member(c->e->p->mesh, &s->move.axes, rank, i));
    }
}
/* The longest dim along which what is added up and what comes of it can be looked at a part at a
 * time, *each elements; -1: all at once, it is small or no range of whole values. */
static int reduction_dim(const Check *c, const Step *s, const Region *box, int64_t *each) {
    int64_t all = *each;
    int dim = -1;
    if (all <= c->piece / 8 || c->e->far || box->outer || c->e->p->val[s->out].list >= 0) return -1;
    for (int d = 0; d < box->nd; d++)
        if (box->d[d].range && (dim < 0 || box->n[d] > box->n[dim])) dim = d;
    if (dim < 0 || !slices_ranges(c->e, s->in[0], dim) || !slices_ranges(c->e, s->out, dim))
        return -1;
    *each = c->piece / 8 / (all / box->n[dim]);
    if (*each < 1) *each = 1;
    return dim;
}
/* The shares of the elements of `box` added up in float64, with their bounds, against what the
 * ranks hold; part: as Whole's. */
static void reduction_part(Check *c, const Step *s, CompareLooks *looks, const Region *box,
                           int part, bool *seen) {
    const bool max = s->move.from.type[s->move.axes.a[0]] == TY_M;
    Denoted all = denoted(c, s->in[0], looks->fixed, &s->move.axes, looks->rep,
                          (Shares){max, seen, part ? box : NULL});
    Whole w = {.box = box, .part = part, .want = all.x, .bound = all.abs, .prob = all.abs};
    double *abs = all.abs;
    int64_t k = tensor_count(&all.shape), n = mesh_size(c->e->p->mesh, &s->move.axes);
    bool exact = max || n == 1;
    double u = c->u * c->slack, g = exact ? 0 : gamma_n((double)n, u),
           least = exact ? 0 : least_of(u);
    for (int64_t j = 0; j < k && joint_numbers(c); j++) abs[j] = abs[j] * g + least;
    levels_round(c, s->out, k, all.x, abs, NULL);
    compare_look(looks, &w);
    joint_give(c, all.x);
    joint_give(c, abs);
}
/* closer: element by element, of what was projected before. */
static void check_reduction(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank,
                            bool closer) {
    const Program *p = c->e->p;
    bool max = s->move.from.type[s->move.axes.a[0]] == TY_M;
    int64_t n = mesh_size(p->mesh, &s->move.axes);
    Arena *tmp = arena_new();
    bool *seen = ARENA_ARRAY(tmp, bool, n);
    const Joint at = {.c = c, .X = X, .rank = rank};
    /* in bf16 their roundings are all that there is */
    bool may = c->quick && !closer && !c->e->narrow && !max,
         held = may && projected_total(c, s, m, &at, seen);
    const AxisList XA = with_axes(X, &s->move.axes);
    Region box = assemble_region(c->e, s->in[0], &XA, rank, tmp);
    Tensor whole = region_packed(&box);
    if (held) {
        if (s->kind == ST_MOVE && tensor_count(&whole)) observe(c, s, seen, rank, n);
        arena_free(tmp);
        return;
    }
    int64_t k = tensor_count(&whole), each = k;
    int dim = reduction_dim(c, s, &box, &each);
    CompareLooks looks = compare_begin(m, s->out, &s->move.to, X, rank);
    Region part = box;
    for (int64_t lo = 0; dim >= 0 && lo < box.n[dim]; lo += each) {
        part.d[dim].lo = box.d[dim].lo + lo;
        part.d[dim].n = part.n[dim] = box.n[dim] - lo < each ? box.n[dim] - lo : each;
        reduction_part(c, s, &looks, &part, 1 + dim, seen);
    }
    if (dim < 0) reduction_part(c, s, &looks, &box, 0, seen);
    compare_end(&looks);
    if (!max && s->kind == ST_MOVE && k && !closer) observe(c, s, seen, rank, n);
    arena_free(tmp);
}
/* Moves that only copy: by bits, of what they copy, or of what is kept from the step before. */
static void check_copy(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    if (apart_copied(c, s, m, X, rank)) return;
    Arena *tmp = arena_new();
    const Store *part = narrow_part(c->e, s);
    int from = part ? s->out : s->in[0];
    Store now = *exec_store(c->e, from);
    if (part) *exec_store(c->e, from) = *part, rank = joint_rank(c, from, X, 0);
    Region box = assemble_region(c->e, from, X, rank, tmp);
    Whole w = {.box = &box, .raw = assemble_value(c->e, from, X, rank)};
    *exec_store(c->e, from) = now;
    narrow_round(c->e, c->e->host, s->out, &w.raw);
    compare_all(m, s->out, &s->move.to, X, rank, &w);
    joint_give(c, w.raw.p);
    arena_free(tmp);
}
/* A move into a pending sum: what the ranks hold must add up to the source. */
static void check_spread(Check *c, const Step *s, Compare *m, const AxisList *X, int64_t rank) {
    const Program *p = c->e->p;
    Tensor src = assemble_value(c->e, s->in[0], X, rank);
    Denoted all = denoted(c, s->out, X, &s->move.axes, rank, (Shares){0});
    double *sum = all.x;
    int64_t n = tensor_count(&src);
    m->rec.count += n;
    Dtype dt = exec_dtype(c->e, s->out);
    for (int64_t i = 0; i < n && tensor_count(&all.shape) == n && joint_numbers(c); i++) {
        double want = compare_at(src.p, dt, i);
        if (sum[i] == want) continue;
        if (!m->failed) m->rec.got = sum[i], m->rec.want = want;
        m->rec.max_abs = fmax(m->rec.max_abs, fabs(sum[i] - want));
        m->rec.max_rel = fmax(m->rec.max_rel, fabs(sum[i] - want) / fmax(fabs(want), 0x1p-126));
        m->rec.used = INFINITY; /* the shares of a value are exact */
        for (int64_t r = 0; r < p->mesh->nranks; r++)
            if (compare_agrees(p->mesh, X, r, rank)) {
                compare_ranks(m);
                m->rank_error[r] = m->rec.max_abs;
            }
        m->failed = true;
        m->rec.verdict = "FAIL";
    }
    joint_give(c, sum);
    joint_give(c, src.p);
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
            if ((s->move.from.type[a] == TY_P || s->move.from.type[a] == TY_M) &&
                s->move.to.type[a] != s->move.from.type[a])
                claim.move.axes.a[claim.move.axes.n++] = (uint8_t)a, tf = TY_P;
        /* whole values taken for shares of a sum */
        for (int a = 0; a < p->mesh->naxes && tf == TY_V; a++)
            if (s->move.to.type[a] == TY_P && s->move.from.type[a] != TY_P)
                claim.move.axes.a[claim.move.axes.n++] = (uint8_t)a, tt = TY_P;
        s = &claim;
    }
    AxisList X = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool pf = s->move.from.type[a] == TY_P || s->move.from.type[a] == TY_M;
        if (pf && !joint_has_axis(&s->move.axes, a)) layout_add_axis(&s->move.from, a, &X);
    }
    CheckLevel level = levels_of(c, s);
    bool reduces = level == LEVEL_BOUND, spreads = !reduces && tt == TY_P;
    Compare m = compare_new(c->e, c->arena, s, s->out, level);
    int64_t coords = mesh_size(p->mesh, &X);
    for (int64_t i = 0; i < coords; i++) {
        int64_t rank = joint_rank(c, s->in[0], &X, i);
        if (reduces) check_reduction(c, s, &m, &X, rank, false);
        else if (spreads) check_spread(c, s, &m, &X, rank);
        else check_copy(c, s, &m, &X, rank);
    }
    RankSet ranks = ranks_of(c, s->out);
    Compare same = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    if ((reduces || spreads) && !m.failed) compare_replicas(&same, s->out, &s->move.to);
    if (same.failed && m.rec.projections) { /* of copies one was projected: which is wrong? */
        free(m.rank_error);
        m = compare_new(c->e, c->arena, s, s->out, level);
        for (int64_t i = 0; i < coords; i++)
            check_reduction(c, s, &m, &X, joint_rank(c, s->in[0], &X, i), true);
        if (m.failed) free(same.rank_error), same.failed = false;
    }
    if (m.failed && reduces && tf == TY_P) cause_terms(c->arena, c->e, s, m.rank_error, &m.rec);
    record(c, &m, &ranks, step_cause(c, s, &m, cause_of_move));
    if (same.failed) record(c, &same, &ranks, REPLICAS_DIFFER);
}
static void check_sum(Check *c, const Step *s) {
    AxisList X = joint_pending(c, s);
    Levels seen = levels_new(c, s, true);
    bool apart = apart_held(c, s, &X, &seen);
    for (int64_t i = 0; i < mesh_size(c->e->p->mesh, &X) && !apart; i++)
        levels_sum(c, s, &(Joint){.c = c, .X = &X, .rank = joint_rank(c, s->out, &X, i)}, &seen);
    Compare m = seen.bits;
    RankSet ranks = ranks_of(c, s->out);
    record(c, &m, &ranks, step_cause(c, s, &m, cause_of_sum));
}
/* Where the backward pass begins: 1 on every rank. It is no number that was computed, so it has a
 * record only where it is wrong. */
static void check_seed(Check *c, const Step *s) {
    const Val *v = &c->e->p->val[s->out];
    Compare m = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    Region box = region_whole(&c->e->p->graph->t[v->tensor]);
    Whole w = {.box = &box, .raw = region_packed(&box)};
    AxisList nothing = {0};
    bool wide = exec_dtype(c->e, s->out) == DT_F64;
    w.raw.p = joint_take(c, 1, wide ? 8 : 4);
    if (joint_numbers(c) && wide) *(double *)w.raw.p = 1;
    else if (joint_numbers(c)) *(float *)w.raw.p = 1;
    compare_all(&m, s->out, &v->L, &nothing, 0, &w);
    RankSet ranks = ranks_of(c, s->out);
    if (m.failed) record(c, &m, &ranks, "the gradient of the loss with respect to itself is not 1");
    free(m.rank_error);
    joint_give(c, w.raw.p);
}
void check_step(Check *c, const Step *s) {
    switch (s->kind) {
    case ST_OP:
    case ST_ADJOINT: check_kernel(c, s); break;
    case ST_MOVE:
    case ST_CLAIM: check_move(c, s); break;
    case ST_SUM: check_sum(c, s); break;
    case ST_SEED: check_seed(c, s); break;
    }
}
void check_exact(Check *c, const Step *s, const Whole *want, double modulus) {
    const Program *p = c->e->p;
    const Val *v = &p->val[s->out];
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        /* a pending maximum: its reduction is looked at */
        if (v->L.type[a] == TY_M && p->mesh->axis[a].size > 1) return;
        if (v->L.type[a] == TY_P) layout_add_axis(&v->L, a, &P); /* of a pair: its two ranks */
    }
    Compare m = compare_new(c->e, c->arena, s, s->out, LEVEL_EXACT);
    if (!P.n) compare_all(&m, s->out, &v->L, &none, 0, want);
    else {
        /* the shares must add up to the value, modulo */
        Denoted all = denoted(c, s->out, &none, &P, joint_rank(c, s->out, &none, 0), (Shares){0});
        double *sum = all.x;
        int64_t n = tensor_count(&all.shape);
        for (int64_t i = 0; i < n && joint_numbers(c); i++) {
            double x = sum[i] - modulus * floor(sum[i] / modulus),
                   y = want->raw.p ? compare_at(want->raw.p, c->e->dtype, i) : want->want[i];
            m.rec.count++;
            if (x == y || m.failed) continue;
            m.failed = true;
            m.rec.verdict = "FAIL";
            m.rec.got = x, m.rec.want = y, m.rec.max_abs = fabs(x - y);
            compare_ranks(&m);
            for (int64_t r = 0; r < p->mesh->nranks; r++) m.rank_error[r] = m.rec.max_abs;
        }
        joint_give(c, sum);
        if (!m.failed) compare_replicas(&m, s->out, &v->L); /* only first holders were summed */
    }
    RankSet ranks = ranks_of(c, s->out);
    record(c, &m, &ranks, "integer data show another value than the unsharded program");
}
void check_stuck(Check *c, const Step *s, const char *why) {
    Compare m = compare_new(c->e, c->arena, s, s->out, LEVEL_BITS);
    for (int64_t r = 0; r < c->e->p->mesh->nranks; r++) compare_no_numbers(&m, r);
    RankSet ranks = ranks_of(c, s->out);
    record(c, &m, &ranks, why);
}
static int larger_first(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x < y) - (x > y);
}
double check_reference(Check *c, int val, const double *want, double odd, double *top) {
    const Program *p = c->e->p;
    const Val *v = &p->val[val];
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++)
        if (v->L.type[a] == TY_P) P.a[P.n++] = (uint8_t)a;
    Denoted all = denoted(c, val, &none, &P, joint_rank(c, val, &none, 0), (Shares){0});
    double *got = all.x, err = 0;
    int64_t n = tensor_count(&all.shape), out = odd > 0 ? (int64_t)ceil(odd * (double)n) : 0;
    *top = 0;
    for (int64_t i = 0; i < n && joint_numbers(c); i++) {
        *top = fmax(*top, fabs(want[i]));
        double d = fabs(got[i] - want[i]);
        got[i] = isnan(d) ? INFINITY : d;
        err = fmax(err, got[i]);
    }
    if (out && isfinite(err) && joint_numbers(c)) {
        qsort(got, (size_t)n, sizeof *got, larger_first);
        err = out < n ? got[out] : 0;
    }
    joint_give(c, got);
    return err;
}
/* The sum of the shares at each coordinate of X, the axes on which ranks hold copies. */
static void distance_of_sum(Check *c, int val, const AxisList *P, const double *want, double *far) {
    const Program *p = c->e->p;
    AxisList X = {0};
    for (int a = 0; a < p->mesh->naxes; a++)
        if (p->val[val].L.type[a] == TY_R || p->val[val].L.type[a] == TY_I) X.a[X.n++] = (uint8_t)a;
    for (int64_t i = 0; i < mesh_size(p->mesh, &X); i++) {
        int64_t rank = joint_rank(c, val, &X, i);
        Denoted all = denoted(c, val, &X, P, rank, (Shares){0});
        double err = 0;
        for (int64_t k = 0; k < tensor_count(&all.shape) && joint_numbers(c); k++) {
            double d = fabs(all.x[k] - want[k]);
            err = fmax(err, isnan(d) ? INFINITY : d);
        }
        for (int64_t r = 0; r < p->mesh->nranks; r++)
            if (exec_store(c->e, val)->which[r] != EXEC_NOTHING &&
                compare_agrees(p->mesh, &X, r, rank))
                far[r] = fmax(far[r], err);
        joint_give(c, all.x);
    }
}
bool check_distance(Check *c, int val, double *want, const Region *box, double *far, double *top) {
    const Program *p = c->e->p;
    const Val *v = &p->val[val];
    const Tensor whole = region_packed(box);
    AxisList P = {0}, none = {0};
    for (int a = 0; a < p->mesh->naxes; a++) {
        bool many = p->mesh->axis[a].size > 1;
        if (v->L.type[a] == TY_M && many) return false;
        if (v->L.type[a] == TY_P && many) P.a[P.n++] = (uint8_t)a;
    }
    for (int64_t r = 0; r < p->mesh->nranks; r++) far[r] = 0;
    *top = 0;
    for (int64_t i = 0; i < tensor_count(&whole) && joint_numbers(c); i++)
        *top = fmax(*top, fabs(want[i]));
    if (P.n) {
        distance_of_sum(c, val, &P, want, far);
        return true;
    }
    Compare m = compare_new(c->e, c->arena, NULL, val, LEVEL_BOUND);
    compare_all(&m, val, &v->L, &none, 0, &(Whole){.box = box, .want = want});
    for (int64_t r = 0; m.rank_error && r < p->mesh->nranks; r++) far[r] = fmax(m.rank_error[r], 0);
    free(m.rank_error);
    return true;
}
