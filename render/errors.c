/* The rows of the error picture. See errors.h. */
#include "render/errors.h"
#include <math.h>
#include <string.h>

static bool is(const char *a, const char *b) { return a && !strcmp(a, b); }
static bool wrong(ErrState s) { return s == ERR_FIRST || s == ERR_LATER; }

static const char *how_made(const Trace *t, int step) {
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == step) {
            const CollWord *w = words_coll(t->collectives[i].op);
            return w ? w->name : t->collectives[i].op;
        }
    for (int i = 0; i < t->n_moves; i++)
        if (t->moves[i].step == step)
            return is(t->moves[i].op, "identity") ? "passed on"
                   : is(t->moves[i].op, "claim")  ? "as claimed"
                                                  : t->moves[i].op;
    return NULL;
}

static double rank_error(const TraceCheck *k, int64_t rank) {
    for (int i = 0; i < k->n_rank_error; i++)
        if (k->rank_error[i].rank == rank) return k->rank_error[i].error;
    return NAN;
}

static void set_state(ErrRow *r, int col, ErrState s) {
    if (s > r->state[col]) r->state[col] = s;
    if (s > r->worst_state) r->worst_state = s;
}

/* What one check says about its ranks, and a failure about the others: they are within the bound. */
static void add_check(ErrMap *m, ErrRow *r, const TraceCheck *k) {
    bool fail = is(k->verdict, "FAIL");
    ErrState s = fail                        ? (k == m->check ? ERR_FIRST : ERR_LATER)
                 : is(k->verdict, "SUSPECT") ? ERR_SUSPECT
                 : k->max_abs == 0           ? ERR_EQUAL
                                             : ERR_ROUNDED;
    for (int i = 0; i < k->ranks.n; i++)
        for (int64_t j = 0; j < k->ranks.run[i].count; j++) {
            int64_t rank = k->ranks.run[i].first + j * k->ranks.run[i].stride;
            int col = (int)(rank / m->per_column);
            if (col < 0 || col >= m->n_columns) continue;
            set_state(r, col, s);
            double e = fail ? rank_error(k, rank) : NAN;
            if (fail && !(r->error[col] >= e)) r->error[col] = isnan(e) ? r->error[col] : e;
        }
    for (int c = 0; fail && c < m->n_columns; c++)
        if (r->state[c] < ERR_RIGHT) r->state[c] = ERR_RIGHT;
    if (k->max_abs > r->max || isnan(k->max_abs) || !r->worst) r->max = k->max_abs, r->bound = k->bound, r->worst = k;
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
        if (!is(k->verdict, "FAIL")) continue;
        if (!any) any = k;
        if (is(t->first_wrong, k->value)) return k;
    }
    return any;
}

bool errors_map(Arena *a, const Trace *t, ErrMap *m) {
    *m = (ErrMap){.t = t, .check = first_failure(t)};
    if (t->n_checks == 0 || t->ranks < 1) return false;
    m->per_column = (t->ranks + ERR_COLUMNS - 1) / ERR_COLUMNS;
    m->n_columns = (int)((t->ranks + m->per_column - 1) / m->per_column);
    m->row = ARENA_ARRAY(a, ErrRow, t->n_checks + 1);
    ErrRow *rest = NULL;
    for (int i = 0; i < t->n_checks; i++) {
        const TraceCheck *k = &t->checks[i];
        bool pass = is(k->verdict, "PASS");
        if (k->level == 0 && pass) continue; /* of the whole program */
        if (is(k->pass, "parameters") && pass && k->max_abs == 0) {
            if (rest) rest->values++;
            if (!rest) rest = new_row(m, "inputs and parameters", -1);
            add_check(m, rest, k);
            continue;
        }
        ErrRow *r = m->n ? &m->row[m->n - 1] : NULL;
        if (!r || r == rest || r->step != k->step || strcmp(r->name, k->value)) {
            r = new_row(m, k->value, k->step);
            r->how = how_made(t, k->step);
        }
        add_check(m, r, k);
    }
    for (int i = 0; i < m->n; i++) {
        ErrRow *r = &m->row[i];
        m->equal += r->worst_state == ERR_EQUAL ? r->values : 0;
        m->rounded += r->worst_state == ERR_ROUNDED;
        m->suspect += r->worst_state == ERR_SUSPECT;
        m->wrong += wrong(r->worst_state);
        if (r->worst_state == ERR_FIRST) m->first = r;
    }
    return m->n > 0;
}

/* May b be shown in a's row? */
static bool alike(const ErrRow *a, const ErrRow *b) {
    return wrong(a->worst_state) == wrong(b->worst_state) && a->worst_state != ERR_FIRST && b->worst_state != ERR_FIRST;
}
static void join(ErrMap *m, ErrRow *a, const ErrRow *b) {
    a->values += b->values;
    if (b->worst_state > a->worst_state) a->worst_state = b->worst_state;
    if (b->max > a->max) a->max = b->max, a->bound = b->bound;
    for (int c = 0; c < m->n_columns; c++) {
        if (b->state[c] > a->state[c]) a->state[c] = b->state[c];
        if (!(a->error[c] >= b->error[c]) && !isnan(b->error[c])) a->error[c] = b->error[c];
    }
    a->worst = NULL;
}

void errors_fold(Arena *a, ErrMap *m, int rows) {
    if (m->n <= rows) return;
    ErrRow *all = m->row;
    int n = m->n;
    for (int chunk = 2; chunk <= n && m->n > rows; chunk++) {
        m->row = ARENA_ARRAY(a, ErrRow, n);
        m->n = 0;
        for (int i = 0; i < n;) {
            ErrRow *r = &m->row[m->n++];
            *r = all[i];
            int k = i + 1;
            for (; k < n && k - i < chunk && alike(r, &all[k]); k++) join(m, r, &all[k]);
            if (k - i > 1) r->how = arena_printf(a, "and %d more", k - i - 1);
            i = k;
        }
    }
    for (int i = 0; i < m->n; i++)
        if (m->row[i].worst_state == ERR_FIRST) m->first = &m->row[i];
}

const char *errors_number(Arena *a, double v) {
    if (!isfinite(v)) return isnan(v) ? "NaN" : "inf";
    if (v == 0) return "=";
    return arena_printf(a, v >= 0.0095 && v < 999 ? "%.2g" : "%.0e", v);
}

const char *errors_plan_line(Arena *a, const Trace *t, const TraceCheck *k) {
    const char *file = NULL;
    int line = 0;
    for (int i = 0; i < t->n_collectives; i++)
        if (t->collectives[i].step == k->step) file = t->collectives[i].file, line = t->collectives[i].line;
    for (int i = 0; line <= 0 && i < t->n_moves; i++)
        if (t->moves[i].step == k->step) file = t->moves[i].file, line = t->moves[i].line;
    for (int i = 0; line <= 0 && i < t->n_computes; i++)
        for (int j = 0; t->computes[i].step == k->step && line <= 0 && j < t->computes[i].n_inputs; j++) {
            const TraceParam *p = words_find_param(t, t->computes[i].inputs[j]);
            if (p && p->line > 0) file = p->file, line = p->line;
        }
    return line > 0 ? arena_printf(a, "%s:%d", file ? file : "plan", line) : NULL;
}
