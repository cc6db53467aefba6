/* The rows of the error picture. See errors.h. */
#include "render/errors/errors.h"
#include "render/errors/follow.h"
#include "render/errors/modules.h"
#include "base/text.h"
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static bool wrong(ErrState s) { return s >= ERR_FIRST; }

static const char *how_made(const Trace *t, int step) {
    const TraceCollective *c = step < 0 ? NULL : trace_collective_of(t, step);
    const CollWord *w = c ? coll_word(c->op) : NULL;
    if (c) return w ? w->name : c->op;
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step == step)
            return text_same(t->moves[i].op, "identity") ? "passed on"
                   : text_same(t->moves[i].op, "claim")  ? "as claimed"
                                                         : t->moves[i].op;
    return NULL;
}

/* What the plan plants at the step, or in the parameter or input of that name, and its line. */
typedef struct {
    const char *what, *at;
} Planted;
#define PLANTED(record) ((Planted){(record)->planted, (record)->planted_at})
static Planted planted_in(const Trace *t, const char *name, int step) {
    const TraceParam *p = step < 0 ? trace_param(t, name) : NULL;
    if (p && p->planted) return PLANTED(p);
    for (int i = 0; step < 0 && i < t->n_values; i++)
        if (t->values[i].planted && text_same(t->values[i].shape.name, name))
            return PLANTED(&t->values[i]);
    for (int i = 0; step >= 0 && i < t->n_collectives; i++)
        if (t->collectives[i].step == step) return PLANTED(&t->collectives[i]);
    for (int i = 0; step >= 0 && i < t->n_moves; i++)
        if (t->moves[i].step == step) return PLANTED(&t->moves[i]);
    for (int i = 0; step >= 0 && i < t->n_computes; i++)
        if (t->computes[i].step == step) return PLANTED(&t->computes[i]);
    return (Planted){0};
}
#undef PLANTED

static double rank_error(const TraceCheck *k, int64_t rank) {
    for (int i = 0; i < k->n_rank_error; i++)
        if (k->rank_error[i].rank == rank) return k->rank_error[i].error;
    return NAN;
}

static void set_state(ErrRow *r, int col, ErrState s) {
    if (s > r->state[col]) r->state[col] = s;
    if (s > r->worst_state) r->worst_state = s;
}

/* A failure says of the others that have the value too: they are within the bound. Of a value that
 * is received, or made, by one stage of a pipeline no other rank has any. */
static void set_right(const ErrMap *m, ErrRow *r, const TraceCheck *k) {
    const TraceValue *v = trace_value(m->t, k->value, k->step);
    const bool known = v && v->step == k->step && v->shape.n_local > 0;
    for (int64_t q = 0; q < m->t->ranks; q++) {
        const int c = m->column[q];
        const bool has = !known || words_find_local(&v->shape, q);
        if (has && r->state[c] < ERR_RIGHT) r->state[c] = ERR_RIGHT;
    }
}
/* What one check says about its ranks, and a failure about the others: they are within the bound.
 * `f` (NULL: nothing is known) has just seen it. */
static void add_check(ErrMap *m, ErrRow *r, const TraceCheck *k, const Follow *f) {
    bool fail = text_same(k->verdict, "FAIL");
    bool first =
        k == m->check || r->worst_state == ERR_FIRST; /* one value, by bits and by its bound */
    bool own =
        r->planted || (f && !follow_anywhere(f)); /* whatever it reads: a mistake made again */
    ErrState s = fail                                     ? (first ? ERR_FIRST
                                                             : own ? ERR_ALSO
                                                                   : ERR_LATER)
                 : text_same(k->verdict, "SUSPECT")       ? ERR_SUSPECT
                 : k->max_abs == 0 && k->projections <= 0 ? ERR_EQUAL
                                                          : ERR_ROUNDED;
    r->projected |= k->projections > 0;
    int64_t rank;
    for (RankWalk w = {0}; rankset_next(&k->ranks, &w, &rank);) {
        if (rank < 0 || rank >= m->t->ranks) continue;
        int col = m->column[rank];
        set_state(r, col, f && s < ERR_AFTER && follow_wrong(f, rank) ? ERR_AFTER : s);
        double e = fail ? rank_error(k, rank) : NAN;
        if (fail && !(r->error[col] >= e)) r->error[col] = isnan(e) ? r->error[col] : e;
    }
    if (fail) set_right(m, r, k);
    for (int64_t q = 0; fail && f && q < m->t->ranks; q++)
        if (r->state[m->column[q]] == ERR_RIGHT && follow_wrong(f, q))
            r->state[m->column[q]] = ERR_AFTER;
    if (k->max_abs > r->max || isnan(k->max_abs) || !r->worst)
        r->max = k->max_abs, r->bound = k->bound, r->worst = k;
}

static ErrRow *new_row(ErrMap *m, const char *name, int step) {
    ErrRow *r = &m->row[m->n++];
    *r = (ErrRow){.name = name, .step = step, .values = 1};
    for (int c = 0; c < ERR_COLUMNS; c++) r->error[c] = NAN;
    return r;
}

static const TraceCheck *first_failure(const Trace *t) {
    const TraceCheck *any = NULL;
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *k = &t->checks[i];
        if (!text_same(k->verdict, "FAIL") || k->level == LEVEL_STRUCTURE) continue;
        if (!any) any = k;
        if (text_same(t->first_wrong, k->value)) return k;
    }
    return any;
}

/* ---- columns ---- */

/* What the checks of a trace say about each rank, as one number per rank, added to what stands
 * there; with the size of its errors to two digits, or without. */
static void sign_ranks(const Trace *t, bool sizes, uint64_t *sign) {
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *k = &t->checks[i];
        bool fail = text_same(k->verdict, "FAIL");
        if (k->level == LEVEL_STRUCTURE) continue; /* says the same of all ranks */
        int64_t rank;
        for (RankWalk w = {0}; rankset_next(&k->ranks, &w, &rank);)
            if (rank >= 0 && rank < t->ranks)
                sign[rank] = (sign[rank] ^ (uint64_t)(i + 1)) * 0x9e3779b97f4a7c15u;
        for (int r = 0; sizes && fail && r < k->n_rank_error; r++) {
            char two[32];
            uint64_t bits = 0;
            snprintf(two, sizeof two, "%.1e", k->rank_error[r].error);
            for (const char *p = two; *p; p++) bits = bits * 31 + (unsigned char)*p;
            rank = k->rank_error[r].rank;
            if (rank >= 0 && rank < t->ranks)
                sign[rank] = (sign[rank] ^ bits) * 0xff51afd7ed558ccdu;
        }
    }
}
static void find_members(Arena *a, ErrMap *m) {
    int64_t *list = ARENA_ARRAY(a, int64_t, m->t->ranks);
    m->members = ARENA_ARRAY(a, RankSet, m->n_columns);
    for (int c = 0; c < m->n_columns; c++) {
        int64_t n = 0;
        for (int64_t r = 0; r < m->t->ranks; r++)
            if (m->column[r] == c) list[n++] = r;
        m->members[c] = rankset_from(a, list, n);
    }
}
/* Columns of t, of which `also` (NULL: nothing) must not tear a class apart. */
static void choose_columns(Arena *a, ErrMap *m, const Trace *also) {
    const Trace *t = m->t;
    m->column = ARENA_ARRAY(a, int, t->ranks);
    m->per_column = (t->ranks + ERR_COLUMNS - 1) / ERR_COLUMNS;
    m->n_columns = (int)((t->ranks + m->per_column - 1) / m->per_column);
    for (int64_t r = 0; r < t->ranks; r++) m->column[r] = (int)(r / m->per_column);
    for (int sizes = 1; sizes >= 0 && m->per_column > 1; sizes--) {
        uint64_t *sign = ARENA_ARRAY(a, uint64_t, t->ranks), seen[ERR_COLUMNS];
        int n = 0, most = sizes ? 16 : ERR_COLUMNS, *class = ARENA_ARRAY(a, int, t->ranks);
        sign_ranks(t, sizes, sign);
        if (also) sign_ranks(also, sizes, sign);
        for (int64_t r = 0; r < t->ranks && n <= most; r++) {
            int c = 0;
            while (c < n && seen[c] != sign[r]) c++;
            if (c == n && n < most) seen[n] = sign[r];
            n += c == n;
            class[r] = c;
        }
        if (n <= most) m->column = class, m->n_columns = n, m->per_column = 0;
    }
    find_members(a, m);
}

/* Is the first wrong value the last that was checked, with steps of the program behind it? */
static bool run_ends(const Trace *t, const TraceCheck *first) {
    for (int i = t->n_checks - 1; i >= 0 && &t->checks[i] != first; i--)
        if (t->checks[i].level != LEVEL_STRUCTURE && t->checks[i].step != first->step) return false;
    for (int i = 0; i < t->n_computes; i++)
        if (t->computes[i].step > first->step) return true;
    return false;
}

/* Values by the step that makes them: the last one of a step, and the one before it. Where
 * all is right, what is done for several micro-batches makes one value; a wrong one is followed
 * from each to the next. */
typedef struct {
    const char *value;
    ErrRow *row;
    int before; /* 1 + entry; 0: none */
} Made;
typedef struct {
    int *last; /* [steps]: 1 + entry */
    int n;
    Made *made;
} ByStep;
static ByStep by_step(Arena *a, const Trace *t) {
    int steps = 1;
    for (int i = 0; i < t->n_checks; i++)
        if (t->checks[i].step + 2 > steps) steps = t->checks[i].step + 2;
    return (ByStep){.last = ARENA_ARRAY(a, int, steps),
                    .made = ARENA_ARRAY(a, Made, t->n_checks + 1)};
}
static ErrRow *find_row(const ByStep *b, const TraceCheck *k, bool sources) {
    for (int i = b->last[k->step < 0 ? 0 : k->step + 1]; i; i = b->made[i - 1].before)
        if (b->made[i - 1].row->sources == sources && !strcmp(b->made[i - 1].value, k->value))
            return b->made[i - 1].row;
    return NULL;
}
static void add_made(ByStep *b, const TraceCheck *k, ErrRow *row) {
    int *last = &b->last[k->step < 0 ? 0 : k->step + 1];
    b->made[b->n++] = (Made){k->value, row, *last};
    *last = b->n;
}

/* How much of what rounding is trusted with the value is off. */
static double share_of(const TraceDistance *d) {
    return d->max_abs == 0 ? 0 : d->bound > 0 ? d->max_abs / d->bound : INFINITY;
}
/* One of the inputs and parameters that share a row: all are equal. */
static const TraceDistance *equal_source(const Trace *t) {
    for (int i = 0; i < t->n_distances; i++)
        if (t->distances[i].step < 0 && t->distances[i].max_abs == 0) return &t->distances[i];
    return NULL;
}
/* The end to end of rows: of the last of those that one value has. */
static void find_distances(Arena *a, ErrMap *m) {
    const Trace *t = m->t;
    int steps = 1;
    for (int i = 0; i < t->n_distances; i++)
        if (t->distances[i].step + 2 > steps) steps = t->distances[i].step + 2;
    int *last = ARENA_ARRAY(a, int, steps), *before = ARENA_ARRAY(a, int, t->n_distances + 1);
    for (int i = 0; i < t->n_distances; i++) {
        int *of = &last[t->distances[i].step < 0 ? 0 : t->distances[i].step + 1];
        before[i] = *of, *of = i + 1;
    }
    for (int r = m->n - 1; r >= 0 && t->n_distances; r--) {
        ErrRow *row = &m->row[r];
        int at = row->step < 0 ? 0 : row->step + 1;
        if (row->sources) row->far = equal_source(t);
        if (row->sources || at >= steps) continue;
        for (int *i = &last[at]; *i; i = &before[*i - 1])
            if (!strcmp(t->distances[*i - 1].value, row->name)) {
                row->far = &t->distances[*i - 1];
                *i = before[*i - 1]; /* rows of earlier micro-batches and steps have none */
                break;
            }
        if (!row->far) continue;
        m->far = true;
        m->off += errors_far(m, row) == ERR_LATER;
    }
}
ErrState errors_far(const ErrMap *m, const ErrRow *r) {
    const TraceDistance *d = r->far;
    if (!d) return ERR_NONE;
    bool near = !m->check || rankset_count(&d->ranks) == 0;
    if (near && d->max_abs > 0) /* what is made from wrong values is not off by rounding alone */
        return r->worst_state == ERR_AFTER ? ERR_AFTER : ERR_ROUNDED;
    if (near) return ERR_EQUAL;
    return r->worst_state == ERR_FIRST || r->worst_state == ERR_ALSO ? r->worst_state : ERR_LATER;
}

/* A check and when it was made. */
typedef struct {
    const TraceCheck *k;
    int at;
} Turn;
static int in_turn(const void *a, const void *b) {
    const Turn *x = a, *y = b;
    const TraceCheck *k = x->k, *l = y->k;
    int by = (k->iteration > l->iteration) - (k->iteration < l->iteration);
    if (!by) by = (k->microbatch > l->microbatch) - (k->microbatch < l->microbatch);
    if (!by) by = (k->step > l->step) - (k->step < l->step);
    return by ? by : x->at - y->at;
}
/* The checks of values, *n. Where micro-batches are under way side by side, as in a pipeline, those
 * of one come before those of the next, each in the order of the program: what follows from what is
 * seen in that order alone. */
static Turn *checks_in_turn(Arena *a, const Trace *t, int *n) {
    Turn *turn = ARENA_ARRAY(a, Turn, t->n_checks + 1);
    bool side_by_side = false;
    *n = 0;
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *k = &t->checks[i], *last = *n ? turn[*n - 1].k : k;
        if (k->level == LEVEL_STRUCTURE) continue; /* of the program: no value of a rank */
        side_by_side |= k->iteration == last->iteration && k->microbatch < last->microbatch;
        turn[(*n)++] = (Turn){k, i};
    }
    if (side_by_side) qsort(turn, (size_t)*n, sizeof *turn, in_turn);
    return turn;
}

/* Is it a source that is off from the unsharded model's, as what is counted in float32 is? Among
 * inputs and parameters that are equal by bits it has a row of its own. */
static bool source_is_off(const Trace *t, const char *value) {
    for (int i = 0; i < t->n_distances && t->distances[i].step < 0; i++)
        if (t->distances[i].max_abs > 0 && !strcmp(t->distances[i].value, value)) return true;
    return false;
}
static bool make_rows(Arena *a, const Trace *t, ErrMap *m) {
    m->row = ARENA_ARRAY(a, ErrRow, t->n_checks + 1);
    ByStep steps = by_step(a, t);
    ErrRow *sources[2] = {NULL}; /* right ones, and those made from something wrong */
    Follow *f = m->check ? follow_new(a, t) : NULL;
    m->ends = m->check && run_ends(t, m->check);
    int n;
    const Turn *turn = checks_in_turn(a, t, &n);
    m->parts = 1;
    for (int i = 0; i < n; i++)
        if (turn[i].k->microbatch >= m->parts) m->parts = turn[i].k->microbatch + 1;
    for (int i = 0; i < n; i++) {
        const TraceCheck *k = turn[i].k;
        const int64_t round = (int64_t)k->iteration * m->parts + k->microbatch;
        bool pass = text_same(k->verdict, "PASS");
        if (f) follow_check(f, k);
        const Planted planted = planted_in(t, k->value, k->step);
        if (k->pass == PHASE_PARAMETERS && pass && k->max_abs == 0 && !planted.what &&
            !source_is_off(t, k->value)) {
            ErrRow **rest = &sources[f && follow_anywhere(f)];
            if (!*rest) {
                *rest = new_row(m, "inputs and parameters", -1);
                (*rest)->sources = true, (*rest)->values = 0;
                (*rest)->round = round;
            }
            if (!find_row(&steps, k, true)) (*rest)->values++, add_made(&steps, k, *rest);
            add_check(m, *rest, k, f);
            continue;
        }
        ErrRow *r = f && m->n ? &m->row[m->n - 1] : find_row(&steps, k, false);
        if (!r || r->sources || r->step != k->step || strcmp(r->name, k->value) ||
            (f && r->round != round)) {
            add_made(&steps, k, r = new_row(m, k->value, k->step));
            r->round = round;
            r->how = how_made(t, k->step);
            r->planted = planted.what, r->planted_at = planted.at;
        }
        add_check(m, r, k, f);
    }
    for (int i = 0; i < m->n; i++) {
        ErrRow *r = &m->row[i];
        m->equal += r->worst_state == ERR_EQUAL ? r->values : 0;
        m->rounded += r->worst_state == ERR_ROUNDED;
        m->projected += r->worst_state == ERR_ROUNDED && r->projected;
        m->suspect += r->worst_state == ERR_SUSPECT;
        m->wrong += wrong(r->worst_state);
        m->after += r->worst_state == ERR_AFTER;
        m->also += r->worst_state == ERR_ALSO;
        if (r->worst_state == ERR_FIRST) m->first = r;
    }
    for (int i = 0; i < m->n && m->first; i++)
        m->again += m->row[i].worst_state == ERR_ALSO && m->row[i].step == m->first->step &&
                    !strcmp(m->row[i].name, m->first->name);
    find_distances(a, m);
    return m->n > 0;
}

bool errors_map(Arena *a, const Trace *t, ErrMap *m) {
    *m = (ErrMap){.t = t, .check = first_failure(t)};
    if (t->n_checks == 0 || t->ranks < 1) return false;
    choose_columns(a, m, NULL);
    return make_rows(a, t, m);
}
bool errors_pair(Arena *a, const Trace *t, const Trace *u, ErrMap *m, ErrMap *other, int *left) {
    *m = (ErrMap){.t = t, .check = first_failure(t)};
    *other = (ErrMap){.t = u, .check = first_failure(u)};
    if (t->n_checks == 0 || u->n_checks == 0 || t->ranks < 1 || t->ranks != u->ranks) return false;
    choose_columns(a, m, u);
    other->column = m->column, other->members = m->members;
    other->n_columns = m->n_columns, other->per_column = m->per_column;
    if (!make_rows(a, t, m) || !make_rows(a, u, other)) return false;
    /* what the other run counts among its equal parameters has no row there: one is made if this
     * run needs it */
    ErrRow *more = ARENA_ARRAY(a, ErrRow, m->n + 1);
    bool *used = ARENA_ARRAY(a, bool, other->n + 1);
    *left = other->n;
    for (int any = 0; any < 2; any++) /* the k-th row of a name beside the k-th */
        for (int i = 0; i < m->n; i++)
            for (int k = 0; k < other->n && !m->row[i].beside; k++) {
                const ErrRow *r = &m->row[i], *o = &other->row[k];
                if (used[k] || strcmp(o->name, r->name)) continue;
                if (!any && !text_same(o->how, r->how) && (o->how || r->how)) continue;
                used[k] = true;
                m->row[i].beside = &other->row[k];
                --*left;
            }
    for (int i = 0; i < m->n; i++) {
        ErrRow *r = &m->row[i], *made = &more[i];
        /* where all is right one row is that of every micro-batch and training step */
        for (int k = 0; k < other->n && !r->beside && !other->check; k++)
            if (other->row[k].step == r->step && !strcmp(other->row[k].name, r->name))
                r->beside = &other->row[k];
        if (r->beside) continue;
        for (int k = 0; k < u->n_checks; k++) {
            const TraceCheck *c = &u->checks[k];
            if (c->step != r->step || c->level == LEVEL_STRUCTURE || strcmp(c->value, r->name))
                continue;
            *made = (ErrRow){
                .name = c->value, .step = c->step, .values = 1, .how = how_made(u, c->step)};
            for (int q = 0; q < ERR_COLUMNS; q++) made->error[q] = NAN;
            add_check(other, made, c, NULL);
            r->beside = made;
            break;
        }
    }
    return true;
}

/* May b be shown in a's row? */
static bool alike(const ErrRow *a, const ErrRow *b) {
    if (a->planted || b->planted || a->sources != b->sources || a->round != b->round) return false;
    if ((a->worst_state == ERR_AFTER) != (b->worst_state == ERR_AFTER)) return false;
    return wrong(a->worst_state) == wrong(b->worst_state) && a->worst_state != ERR_FIRST &&
           b->worst_state != ERR_FIRST;
}
/* Of a row of several values what is to be seen: a wrong step before what is wrong because of it.
 */
static ErrState worse(ErrState a, ErrState b) {
    if (a == ERR_ALSO && b == ERR_LATER) return a;
    if (b == ERR_ALSO && a == ERR_LATER) return b;
    return a > b ? a : b;
}
static void join(Arena *arena, ErrMap *m, ErrRow *a, const ErrRow *b) {
    a->to = b->to ? b->to : b->name, a->to_before = b->to ? b->to_before : b->before;
    if (b->far && (!a->far || share_of(b->far) > share_of(a->far))) a->far = b->far;
    a->values += b->values;
    a->projected |= b->projected;
    a->worst_state = worse(a->worst_state, b->worst_state);
    if (b->max > a->max) a->max = b->max, a->bound = b->bound;
    for (int c = 0; c < m->n_columns; c++) {
        a->state[c] = worse(a->state[c], b->state[c]);
        if (!(a->error[c] >= b->error[c]) && !isnan(b->error[c])) a->error[c] = b->error[c];
    }
    a->worst = NULL, a->by = NULL;
    if (b->beside && a->beside) join(arena, m, a->beside, b->beside);
    if (!b->beside || a->beside) return;
    a->beside = ARENA_NEW(arena, ErrRow);
    *a->beside = *b->beside;
}

/* Where right and wrong rows take turns nothing is alike: what comes after the first wrong value
 * becomes one row. */
static void fold_tail(Arena *a, ErrMap *m, int rows) {
    if (m->n <= rows || rows < 2 || !m->first || m->first - m->row >= rows - 1) return;
    ErrRow *last = &m->row[rows - 1];
    int wrong = last->worst_state > ERR_FIRST, n = last->values;
    for (const ErrRow *r = last + 1; r < m->row + m->n; r++) {
        wrong += r->worst_state > ERR_FIRST;
        n += r->values;
        join(a, m, last, r);
    }
    last->name = "later values", last->before = last->to = NULL;
    last->how = arena_printf(a, "%d more, %d wrong", n, wrong);
    m->n = rows;
}

/* A row of its own for what is beside it: rows that are folded leave those that they were. */
static void own_twin(Arena *a, ErrRow *r) {
    if (!r->beside) return;
    ErrRow *twin = ARENA_NEW(a, ErrRow);
    *twin = *r->beside;
    r->beside = twin;
}
/* One behind the last of the rows that stand in one row with row i. */
static int region_end(const ErrMap *m, const ErrRegion *of, int i, bool right) {
    const bool joins = !right || m->row[i].worst_state < ERR_AFTER;
    int k = i + 1;
    while (joins && k < m->n && errors_same_region(of[i], of[k]) && alike(&m->row[i], &m->row[k]))
        k++;
    return k;
}
/* The row from which on regions are folded for at most `rows` to be left: what comes first is read
 * first, and keeps its values where it can. */
static int fold_from(Arena *a, const ErrMap *m, const ErrRegion *of, bool right, int rows) {
    int *start = ARENA_ARRAY(a, int, m->n + 1), n = 0, left = m->n;
    for (int i = 0; i < m->n; i = region_end(m, of, i, right)) start[n++] = i;
    start[n] = m->n;
    while (n > 0 && left > rows) n--, left -= start[n + 1] - start[n] - 1;
    /* later micro-batches look like each other: none is folded in part */
    while (n > 0 && n < m->n && start[n] < m->n && m->row[start[n]].round > m->row[0].round &&
           m->row[start[n]].round == m->row[start[n - 1]].round)
        n--;
    return start[n];
}
/* Parts of the model become a row each, one for what is done there forward, one for backward, and
 * so on: where wrong and right values take turns several. */
static void fold_regions(Arena *a, ErrMap *m, ErrWidth w, bool right, int rows) {
    const ErrRegion *of = errors_regions(a, m, w);
    const int all = m->n, from = fold_from(a, m, of, right, rows);
    ErrMap was = *m;
    m->row = ARENA_ARRAY(a, ErrRow, all + 1);
    m->n = 0;
    for (int i = 0, k; i < all; i = k) {
        ErrRow *r = &m->row[m->n++];
        *r = was.row[i];
        own_twin(a, r);
        k = i < from ? i + 1 : region_end(&was, of, i, right);
        for (int j = i + 1; j < k; j++) join(a, m, r, &was.row[j]);
        if (i < from) continue;
        bool whole = (i == 0 || !errors_same_region(of[i], of[i - 1])) &&
                     (k == all || !errors_same_region(of[i], of[k]));
        bool own = r->planted || wrong(r->worst_state);
        if (!of[i].name || (k - i == 1 && (own || !whole))) continue;
        r->name = of[i].name, r->before = of[i].before, r->to = r->by = NULL;
        if (r->values > 1) r->how = arena_printf(a, "+%d", r->values - 1);
    }
}
void errors_fold(Arena *a, ErrMap *m, int rows) {
    if (m->n > rows && m->first) fold_regions(a, m, ERR_PARTS, true, rows);
    for (int w = 0; w < ERR_WIDTHS && m->n > rows; w++)
        fold_regions(a, m, (ErrWidth)w, false, rows);
    ErrRow *all = m->row;
    int n = m->n;
    for (int chunk = 2; chunk <= n && m->n > rows; chunk++) {
        m->row = ARENA_ARRAY(a, ErrRow, n);
        m->n = 0;
        for (int i = 0; i < n;) {
            ErrRow *r = &m->row[m->n++];
            *r = all[i];
            own_twin(a, r); /* the next attempt starts from the rows as they were */
            int k = i + 1;
            for (; k < n && k - i < chunk && alike(r, &all[k]); k++) join(a, m, r, &all[k]);
            if (k - i > 1) r->how = arena_printf(a, "+%d", r->values - 1);
            i = k;
        }
    }
    int first = -1, over = m->n - rows;
    for (int i = 0; i < m->n; i++)
        if (m->row[i].worst_state == ERR_FIRST) first = i;
    /* right and wrong take turns: what is far from the first wrong value becomes one row, with the
     * worst of each column */
    bool tail = first < rows - 1;
    int from = tail ? rows - 1 : 0;
    if (over > 0 && (tail || first > over)) {
        ErrRow *r = &m->row[from];
        for (int i = from + 1; i <= from + over; i++) join(a, m, r, &m->row[i]);
        r->how = arena_printf(a, "+%d", r->values - 1);
        memmove(r + 1, r + 1 + over, (size_t)(m->n - from - over - 1) * sizeof *r);
        m->n -= over;
    }
    for (int i = 0; i < m->n; i++)
        if (m->row[i].worst_state == ERR_FIRST) m->first = &m->row[i];
    fold_tail(a, m, rows);
}

const char *errors_number(Arena *a, double v) {
    if (!isfinite(v)) return isnan(v) ? "NaN" : "inf";
    if (v == 0) return "=";
    return arena_printf(a,
                        v >= 99.5 && v < 9999.5   ? "%.0f"
                        : v >= 0.0095 && v < 99.5 ? "%.2g"
                                                  : "%.0e",
                        v);
}

const char *errors_without_numbers(const TraceCheck *k) {
    return k && isinf(k->max_abs) && !errors_has_numbers(k) ? "size" : NULL;
}
const char *errors_row_number(Arena *a, const ErrRow *r) {
    const char *none = wrong(r->worst_state) ? errors_without_numbers(r->worst) : NULL;
    if (none) return none;
    return r->max > 0 || isnan(r->max) ? errors_number(a, r->max) : r->projected ? "0" : "=";
}
bool errors_has_numbers(const TraceCheck *k) {
    return k->n_index > 0 || k->got != 0 || k->want != 0;
}
const char *errors_digits(Arena *a, double v) { return arena_printf(a, "%.6g", v == 0 ? 0 : v); }

const char *errors_module(const Trace *t, int step) {
    const char *module = NULL;
    for (int i = 0; i < t->n_computes && !module; i++)
        if (t->computes[i].step == step) module = t->computes[i].module;
    for (int i = 0; i < t->n_collectives && !module; i++)
        if (t->collectives[i].step == step) module = t->collectives[i].module;
    for (int i = 0; i < t->n_moves && !module; i++) /* a claim is one */
        if (t->moves[i].step == step) module = t->moves[i].module;
    return module && *module ? module : NULL;
}

const char *errors_plan_line(Arena *a, const Trace *t, const TraceCheck *k) {
    const char *file = NULL;
    int line = 0;
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == k->step)
            file = t->collectives[i].file, line = t->collectives[i].line;
    for (int i = 0; line <= 0 && i < t->n_moves; i++)
        if (t->moves[i].step == k->step) file = t->moves[i].file, line = t->moves[i].line;
    for (int i = 0; line <= 0 && i < t->n_computes; i++)
        for (int j = 0; t->computes[i].step == k->step && line <= 0 && j < t->computes[i].n_inputs;
             j++) {
            const TraceParam *p = trace_param(t, t->computes[i].inputs[j]);
            if (p && p->line > 0) file = p->file, line = p->line;
        }
    const TraceParam *own = k->step < 0 ? trace_param(t, k->value) : NULL;
    if (own && own->line > 0) file = own->file, line = own->line;
    /* what no record has a line of: that of the finding, which is of the first wrong value */
    for (int i = 0; line <= 0 && i < t->n_diags && k == first_failure(t); i++)
        if (text_same(t->diags[i].code, "E0501"))
            file = t->diags[i].loc.file, line = t->diags[i].loc.line;
    return line > 0 ? arena_printf(a, "%s:%d", file ? words_file(file) : "plan", line) : NULL;
}
