/* Contractions where some operands or the output are rows: "btd,[ebt]->[ebt]d" (dispatch),
 * "[ebt]d,efd->[ebt]f" (each expert's product), "[ebt]d,[ebt]->btd" (combine), and the adjoints of
 * these, which are of the same kind. Rows become one letter; a dense operand is gathered at the
 * rows, or taken per expert where e is all that it shares with them; an output that lacks a listed
 * letter is the sum over rows, in their order. What is left is
 * the dense kernel's: there is one,
 * and all tokens without a list are the case without letters in brackets. An index list among the
 * operands counts as ones. */
#include "ops/einsum_rows.h"
#include "kernel/pool.h"
#include "ops/router.h"
#include "ops/util.h"
#include <math.h>
#include <stdlib.h>

/* ---- where rows stand ---- */
RowAt row_at(const OpCall *c, int64_t row) {
    int64_t id = ((const int64_t *)c->ids.p)[row], nb = c->global['b' - 'a'],
            nt = c->global['t' - 'a'];
    return (RowAt){op_local_position(c, 'e', id / (nb * nt)),
                   op_local_position(c, 'b', id / nt % nb), op_local_position(c, 't', id % nt)};
}
static int64_t place_of(const RowAt *at, char letter) {
    return letter == 'e' ? at->e : letter == 'b' ? at->b : at->t;
}

/* ---- operands as the sub-call sees them ---- */
typedef enum { WHOLE, ROWS, PER_EXPERT } Part;
typedef struct {
    Part part;
    char letter[LAYOUT_MAX_DIMS + 1]; /* with the letter of rows first, or without e */
    int nl;
    Tensor t;   /* of all rows, or of all experts */
    void *made; /* what was gathered for it, or NULL */
} View;
typedef struct {
    const OpCall *c;
    const RowHands *by;
    uint32_t listed;
    char row; /* a letter that the rule has not */
    int n;
    View in[RULE_MAX_IN], out;
    bool apart; /* expert by expert */
} RowCall;

static char free_letter(const Rule *r) {
    uint32_t used = 0;
    for (int i = 0; i < r->nin; i++)
        for (int d = 0; d < r->nl[i]; d++) used |= RULE_BIT(r->in[i][d]);
    for (int d = 0; d < r->nout; d++) used |= RULE_BIT(r->out[d]);
    char ch = 'a';
    while (used & RULE_BIT(ch)) ch++;
    return ch;
}
/* The dims of t behind the listed ones of its letters, after one for `n` rows. */
static View with_rows(const RowCall *x, const char *letters, int nl, const Tensor *t, int64_t n,
                      int64_t stride) {
    View v = {.part = ROWS, .letter = {x->row}, .nl = 1};
    v.t = (Tensor){.nd = 1, .n = {n}, .s = {stride}, .p = t->p};
    for (int d = 0; d < nl; d++) {
        if (x->listed & RULE_BIT(letters[d])) continue;
        v.letter[v.nl++] = letters[d];
        v.t.n[v.t.nd] = t->n[d];
        v.t.s[v.t.nd++] = t->s[d];
    }
    return v;
}
static View per_expert(const char *letters, int nl, const Tensor *t) {
    View v = {.part = PER_EXPERT, .nl = nl - 1, .t = *t};
    memcpy(v.letter, letters + 1, (size_t)nl - 1);
    return v;
}
static uint32_t letters_of(const char *letters, int nl) {
    uint32_t all = 0;
    for (int d = 0; d < nl; d++) all |= RULE_BIT(letters[d]);
    return all;
}
/* An array of rows like v, packed. */
static void make_rows(const RowCall *x, View *v) {
    tensor_pack(&v->t);
    v->t.p = v->made = x->by->take(x->by->arg, (tensor_count(&v->t) + 1) * dtype_size(x->c->dtype));
}

/* ---- between rows and what is dense ---- */
int64_t row_move_offset(const RowMove *m, int64_t row) {
    RowAt at = row_at(m->c, row);
    uint32_t listed = rule_listed(m->c->rule);
    int64_t o = 0;
    for (int d = 0; d < m->nl; d++) {
        if (!(listed & RULE_BIT(m->letters[d]))) continue;
        int64_t k = place_of(&at, m->letters[d]);
        if (k < 0) return -1;
        o += k * m->dense->s[d];
    }
    return o;
}
int row_move_strides(const RowMove *m, int64_t *s) {
    uint32_t listed = rule_listed(m->c->rule);
    int n = 0;
    for (int d = 0; d < m->nl; d++)
        if (!(listed & RULE_BIT(m->letters[d]))) s[n++] = m->dense->s[d];
    return n;
}

/* ---- the sub-calls ---- */
static View operand_view(RowCall *x, int i) {
    const OpCall *c = x->c;
    const char *letters = c->rule->in[i];
    int nl = c->rule->nl[i];
    uint32_t with = letters_of(letters, nl) & x->listed;
    if (c->rule->listed[i]) return with_rows(x, letters, nl, &c->in[i], c->rows, c->in[i].s[0]);
    if (with == RULE_BIT('e') && letters[0] == 'e') return per_expert(letters, nl, &c->in[i]);
    if (with) {
        View v = with_rows(x, letters, nl, &c->in[i], c->rows, 0);
        make_rows(x, &v);
        x->by->gather(x->by->arg, &(RowMove){c, letters, nl, &c->in[i], &v.t});
        return v;
    }
    View v = {.part = WHOLE, .nl = nl, .t = c->in[i]};
    memcpy(v.letter, letters, (size_t)nl);
    return v;
}
/* Where rows are only counted: a one for each. */
static View ones(const RowCall *x) {
    Tensor none = {0};
    View v = with_rows(x, "", 0, &none, x->c->rows, 1);
    make_rows(x, &v);
    x->by->fill(x->by->arg, &v.t, x->c->dtype, 1);
    return v;
}
static View output_view(const RowCall *x) {
    const OpCall *c = x->c;
    const char *letters = c->rule->out;
    int nl = c->rule->nout;
    uint32_t with = letters_of(letters, nl) & x->listed;
    if (c->rule->listed[RULE_MAX_IN])
        return with_rows(x, letters, nl, &c->out, c->rows, c->out.s[0]);
    if (with == RULE_BIT('e') && letters[0] == 'e') return per_expert(letters, nl, &c->out);
    View v = with_rows(x, letters, nl, &c->out, c->rows, 0);
    make_rows(x, &v);
    return v;
}
/* The part of a view that an expert's rows [lo, hi) are, or what is its own. */
static Tensor part_of(const View *v, Dtype dt, int64_t expert, int64_t lo, int64_t hi) {
    Tensor t = v->t;
    if (v->part == WHOLE) return t;
    int64_t first = v->part == ROWS ? lo : expert;
    t.p = (char *)t.p + first * t.s[0] * dtype_size(dt);
    if (v->part == ROWS) {
        t.n[0] = hi - lo;
        return t;
    }
    for (int d = 1; d < t.nd; d++) t.n[d - 1] = t.n[d], t.s[d - 1] = t.s[d];
    t.nd--;
    return t;
}
static void run_part(const RowCall *x, int64_t expert, int64_t lo, int64_t hi) {
    Rule r = {.nin = x->n, .nout = x->out.nl, .text = "rows"};
    OpCall s = {.op = x->c->op, .rule = &r, .dtype = x->c->dtype, .pool = x->c->pool};
    for (int i = 0; i < x->n; i++) {
        memcpy(r.in[i], x->in[i].letter, (size_t)x->in[i].nl);
        r.nl[i] = x->in[i].nl;
        s.in[i] = part_of(&x->in[i], s.dtype, expert, lo, hi);
    }
    memcpy(r.out, x->out.letter, (size_t)x->out.nl);
    s.out = part_of(&x->out, s.dtype, expert, lo, hi);
    x->by->dense(x->by->arg, &s);
}
/* Rows of experts that are not here, which only a wrong list names: nothing is computed for them.
 */
static void no_rows(const RowCall *x, int64_t lo, int64_t hi) {
    if (x->out.part != ROWS || lo == hi) return;
    Tensor t = part_of(&x->out, x->c->dtype, 0, lo, hi);
    x->by->fill(x->by->arg, &t, x->c->dtype, 0);
}
/* Expert by expert: the rows of one stand side by side. */
static void run_experts(const RowCall *x) {
    const OpCall *c = x->c;
    const int64_t *id = c->ids.p;
    int64_t tokens = c->global['b' - 'a'] * c->global['t' - 'a'], lo = 0;
    for (int64_t e = 0; e < c->local['e' - 'a']; e++) {
        int64_t g = global_index(c, 'e', e), hi;
        int64_t from = lo;
        while (lo < c->rows && id[lo] / tokens < g) lo++;
        no_rows(x, from, lo);
        for (hi = lo; hi < c->rows && id[hi] / tokens == g;) hi++;
        run_part(x, e, lo, hi);
        lo = hi;
    }
    no_rows(x, lo, c->rows);
}
void einsum_rows_by(const OpCall *c, const RowHands *by) {
    RowCall x = {.c = c, .by = by, .listed = rule_listed(c->rule), .row = free_letter(c->rule)};
    for (int i = 0; i < c->rule->nin; i++) {
        if (c->in_int >> i & 1) continue;
        x.in[x.n] = operand_view(&x, i);
        x.apart |= x.in[x.n++].part == PER_EXPERT;
    }
    if (!x.n) x.in[x.n++] = ones(&x);
    x.out = output_view(&x);
    x.apart |= x.out.part == PER_EXPERT;
    if (x.apart) run_experts(&x);
    else run_part(&x, 0, 0, c->rows);
    if (x.out.made)
        by->scatter(by->arg, &(RowMove){c, c->rule->out, c->rule->nout, &c->out, &x.out.t});
    by->give(by->arg, x.out.made);
    for (int i = 0; i < x.n; i++) by->give(by->arg, x.in[i].made);
}

/* ---- the host's hands; their argument is the dense kernel ---- */
typedef struct {
    void (*kernel)(const OpCall *c);
} OnHost;
static void host_dense(void *arg, const OpCall *c) { ((const OnHost *)arg)->kernel(c); }
static void *host_take(void *arg, int64_t n) {
    (void)arg;
    return base_malloc((size_t)n);
}
static void host_give(void *arg, void *p) {
    (void)arg;
    free(p);
}
static void host_fill(void *arg, const Tensor *t, Dtype dt, double v) {
    (void)arg;
    for (int64_t k = 0, n = tensor_count(t); k < n; k++) el_set(t, dt, k, v);
}
static void gather_rows(void *arg, int64_t lo, int64_t hi) {
    const RowMove *m = arg;
    const Tensor *v = m->rows;
    Dtype dt = m->c->dtype;
    int64_t s[LAYOUT_MAX_DIMS], size = v->s[0];
    int nd = row_move_strides(m, s);
    int64_t el = dtype_size(dt);
    bool straight = nd == 1 && s[0] == 1;
    for (int64_t r = lo; r < hi; r++) {
        int64_t from = row_move_offset(m, r), i[LAYOUT_MAX_DIMS] = {0};
        if (straight && from >= 0) {
            memcpy((char *)v->p + r * size * el, (const char *)m->dense->p + from * el,
                   (size_t)(size * el));
            continue;
        }
        for (int64_t k = 0; k < size; k++) {
            int64_t o = from;
            for (int d = 0; d < nd; d++) o += i[d] * s[d];
            el_set(v, dt, r * size + k, from < 0 ? 0 : el_get(m->dense, dt, o));
            box_next(nd, v->n + 1, i);
        }
    }
}
static void host_gather(void *arg, const RowMove *m) {
    (void)arg;
    RowMove move = *m;
    pool_pieces(m->c->pool, m->rows->n[0], gather_rows, &move);
}
/* to += from, n elements side by side. */
static void add_row(Dtype dt, int64_t n, void *to, const void *from) {
    float *f = to;
    double *d = to;
    if (dt == DT_F32)
        for (int64_t k = 0; k < n; k++) f[k] += ((const float *)from)[k];
    else
        for (int64_t k = 0; k < n; k++) d[k] += ((const double *)from)[k];
}
static void host_scatter(void *arg, const RowMove *m) {
    const Tensor *v = m->rows;
    Dtype dt = m->c->dtype;
    int64_t s[LAYOUT_MAX_DIMS], size = v->s[0], n = tensor_count(m->dense);
    int nd = row_move_strides(m, s);
    int64_t el = dtype_size(dt);
    (void)arg;
    memset(m->dense->p, 0, (size_t)(n * el)); /* outputs are packed */
    for (int64_t r = 0; r < m->c->rows; r++) {
        int64_t to = row_move_offset(m, r), i[LAYOUT_MAX_DIMS] = {0};
        if (nd == 1 && s[0] == 1 && to >= 0) {
            add_row(dt, size, (char *)m->dense->p + to * el, (const char *)v->p + r * size * el);
            continue;
        }
        for (int64_t k = 0; k < size && to >= 0; k++) {
            int64_t o = to;
            for (int d = 0; d < nd; d++) o += i[d] * s[d];
            el_set(m->dense, dt, o, el_get(m->dense, dt, o) + el_get(v, dt, r * size + k));
            box_next(nd, v->n + 1, i);
        }
    }
}
void einsum_rows(const OpCall *c, void (*dense)(const OpCall *c)) {
    OnHost host = {dense};
    einsum_rows_by(c, &(RowHands){host_dense, host_take, host_give, host_fill, host_gather,
                                  host_scatter, &host});
}

/* ---- hands that only count what is taken ---- */
static void *count_take(void *arg, int64_t n) {
    *(int64_t *)arg += n;
    return NULL;
}
static void no_move(void *arg, const RowMove *m) { (void)arg, (void)m; }
static void no_fill(void *arg, const Tensor *t, Dtype dt, double v) {
    (void)arg, (void)t, (void)dt, (void)v;
}
int64_t einsum_rows_room(const OpCall *c) {
    int64_t bytes = 0;
    const RowHands by = {.take = count_take, .gather = no_move, .fill = no_fill, .arg = &bytes};
    RowCall x = {.c = c, .by = &by, .listed = rule_listed(c->rule), .row = free_letter(c->rule)};
    for (int i = 0; i < c->rule->nin; i++)
        if (!(c->in_int >> i & 1)) operand_view(&x, i), x.n++;
    if (!x.n) ones(&x);
    output_view(&x);
    return bytes;
}

double einsum_rows_flops(const OpCall *c) {
    uint32_t met = rule_listed(c->rule), out = letters_of(c->rule->out, c->rule->nout);
    uint32_t in = 0;
    double n = (double)c->rows;
    int real = 0;
    for (int i = 0; i < c->rule->nin; i++) {
        real += !(c->in_int >> i & 1);
        in |= letters_of(c->rule->in[i], c->rule->nl[i]);
        for (int d = 0; d < c->rule->nl[i]; d++) {
            uint32_t bit = RULE_BIT(c->rule->in[i][d]);
            if (!(met & bit)) n *= (double)c->in[i].n[d];
            met |= bit;
        }
    }
    bool sums = (in & ~out) != 0;
    return real == 2 ? (sums ? 2 : 1) * n : sums ? n : 0;
}

/* ---- bounds ---- */
/* The most rows that one element of the output sums. */
static int64_t most_rows(const OpCall *c) {
    int64_t nb = c->local['b' - 'a'], nt = c->local['t' - 'a'], ne = c->local['e' - 'a'], most = 1;
    bool e = rule_find_out(c->rule, 'e') >= 0, b = rule_find_out(c->rule, 'b') >= 0;
    if (c->rule->listed[RULE_MAX_IN] || (e && b)) return 1;
    int64_t n = e ? ne : nb * nt, *count = base_malloc(base_mul((size_t)n + 1, sizeof *count));
    for (int64_t k = 0; k < n; k++) count[k] = 0;
    for (int64_t r = 0; r < c->rows; r++) {
        RowAt at = row_at(c, r);
        int64_t k = e ? at.e : at.b < 0 || at.t < 0 ? -1 : at.b * nt + at.t;
        if (k >= 0 && ++count[k] > most) most = count[k];
    }
    free(count);
    return most;
}
double einsum_rows_terms(const OpCall *c) {
    uint32_t out = letters_of(c->rule->out, c->rule->nout), met = rule_listed(c->rule);
    double k = (double)most_rows(c);
    for (int i = 0; i < c->rule->nin; i++) {
        for (int d = 0; d < c->rule->nl[i]; d++) {
            uint32_t bit = RULE_BIT(c->rule->in[i][d]);
            if (!((met | out) & bit)) k *= (double)c->in[i].n[d];
            met |= bit;
        }
    }
    return k;
}
