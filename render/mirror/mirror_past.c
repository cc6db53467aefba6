/* Which row of "backward beside forward" reads what which other row made, version by version: what
 * the row next to it does not hand on passes the rows between, and is drawn round them
 * (mirror_rails.c). Knows no lengths. See mirror.h. */
#include "render/mirror/mirror.h"
#include <limits.h>
#include <stdlib.h>
#include <string.h>

enum { MAX_READS = MIRROR_MAX * 4, MAX_PAST = 128, MAX_ALL = 512, NOWHERE = -3 };
enum { MOST_LANES = 2 }; /* of lines that stand beside a column; more are no more followed */

static bool has(const char *const *list, int n, const char *name) {
    for (int i = 0; i < n; i++)
        if (!strcmp(list[i], name)) return true;
    return false;
}

/* ---- who makes a version ---- */

/* Does forward of the row make the value at that step? */
static bool makes_forward(const MirrorRow *r, const char *name, int step) {
    for (int k = 0; k < r->n_op; k++)
        if (r->op[k].f->step == step && !strcmp(r->op[k].f->output, name)) return true;
    for (int k = 0; k < r->n_coll; k++)
        if (r->coll[k]->step == step && !strcmp(r->coll[k]->value, name)) return true;
    for (int k = 0; k < r->n_move; k++)
        if (r->move[k]->step == step && !strcmp(r->move[k]->value, name)) return true;
    return false;
}
bool mirror_makes_grad(const MirrorRow *r, const char *name, int step) {
    for (int k = 0; k < r->n_back; k++)
        if (r->back[k].f->step == step && !strcmp(r->back[k].f->output, name)) return true;
    for (int k = 0; k < r->n_conj; k++)
        if (r->conj[k]->step == step && !strcmp(r->conj[k]->value, name)) return true;
    for (int k = 0; k < r->n_back_move; k++)
        if (r->back_move[k]->step == step && !strcmp(r->back_move[k]->value, name)) return true;
    for (int k = 0; k < r->n_silent; k++)
        if (r->silent[k]->step == step && !strcmp(r->silent[k]->value, name)) return true;
    return false;
}
/* Does the row hand the gradient on as it is: an identity, the end of a chain? */
static bool hands_on(const MirrorRow *r, const char *value, const char *grad) {
    if (r->kind == ROW_OPS || !has(r->out, r->n_out, value) || !r->acts) return false;
    for (int k = 0; k < r->n_conj; k++)
        if (!strcmp(r->conj[k]->value, grad)) return false;
    for (int k = 0; k < r->n_back_move; k++)
        if (!strcmp(r->back_move[k]->value, grad)) return false;
    return true;
}

/* The row from which forward row `to` has that version: that which makes it, or further down one
 * that hands it on; -1: it is the strip's input. */
static int source(const Mirror *m, const MirrorStrip *s, int to, const char *name, int step) {
    int from = NOWHERE;
    for (int hop = 0; step >= 0 && from == NOWHERE && hop < MIRROR_MAX; hop++) {
        for (int r = 0; r < to && from == NOWHERE; r++)
            if (makes_forward(&s->row[r], name, step)) from = r;
        const TraceLocalMove *move = NULL; /* one that no row shows */
        for (int i = 0; i < m->g->t->n_moves; i++)
            if (m->g->t->moves[i].step == step && !strcmp(m->g->t->moves[i].value, name))
                move = &m->g->t->moves[i];
        step = move ? move->value_step : -1;
    }
    if (from == NOWHERE && s->from && !strcmp(name, s->from)) from = -1;
    for (int r = to - 1; from != NOWHERE && r > from; r--) {
        const MirrorRow *row = &s->row[r];
        const bool on = row->kind == ROW_BACK || (row->kind == ROW_FROM && s->row[to].beside);
        if (on && has(row->out, row->n_out, name)) return r;
    }
    return from;
}
/* The same upwards: from where row `to` has the gradient of the value, as that step made it. */
static int source_back(const Mirror *m, const MirrorStrip *s, int to, const char *value, int step) {
    const char *grad = subject_name(m->g->arena, (Subject){OF_GRADIENT, value});
    int from = to + 1;
    while (from < s->n && !mirror_makes_grad(&s->row[from], grad, step)) from++;
    for (int r = to + 1; r < from && from < s->n; r++)
        if (hands_on(&s->row[r], value, grad)) return r;
    return from < s->n ? from : NOWHERE;
}

/* ---- what a row reads ---- */

typedef struct {
    const Mirror *m;
    const MirrorStrip *s;
    int to, n;
    MirrorRead *out;
} Reads;

static void add(Reads *q, const char *name, int step, int from, bool sum) {
    if (from == NOWHERE || from == q->to || q->n == MAX_READS) return;
    const TraceValue *v = trace_value(q->m->g->t, name, step < 0 ? INT_MAX : step);
    for (int i = 0; i < q->n; i++)
        if (q->out[i].from == from && q->out[i].v == v) return;
    if (v) q->out[q->n++] = (MirrorRead){v, from, q->to, sum, 0};
}
static void read_forward(Reads *q, const char *name, int step) {
    add(q, name, step, source(q->m, q->s, q->to, name, step), false);
}
/* The step of row r that makes the value; -1: it hands it on. */
static int made_at(const MirrorRow *r, const char *name) {
    int step = -1;
    for (int k = 0; k < r->n_op; k++)
        if (!strcmp(r->op[k].f->output, name)) step = r->op[k].f->step;
    for (int k = 0; k < r->n_coll; k++)
        if (!strcmp(r->coll[k]->value, name)) step = r->coll[k]->step;
    for (int k = 0; k < r->n_move; k++)
        if (!strcmp(r->move[k]->value, name)) step = r->move[k]->step;
    return step;
}
/* Where forward does nothing: what the row hands on, as the last row above it that has it left it.
 */
static void read_handed(Reads *q, const char *name) {
    const MirrorStrip *s = q->s;
    int from = q->to - 1;
    for (; from >= 0; from--) {
        const MirrorRow *r = &s->row[from];
        const bool other = r->kind == ROW_FROM && !s->row[q->to].beside;
        if (!other && has(r->out, r->n_out, name)) break;
    }
    if (from < 0 && !(s->from && !strcmp(name, s->from))) return;
    add(q, name, from < 0 ? -1 : made_at(&s->row[from], name), from, false);
}
static void reads_forward(Reads *q) {
    const MirrorRow *r = &q->s->row[q->to];
    for (int i = 0; i < r->n_in && r->kind == ROW_BACK; i++) read_handed(q, r->in[i]);
    for (int i = 0; i < r->n_op; i++)
        for (int k = 0; r->op[i].f->input_step && k < r->op[i].f->n_inputs; k++)
            read_forward(q, r->op[i].f->inputs[k], r->op[i].f->input_step[k]);
    for (int i = 0; i < r->n_coll; i++)
        if (!(r->rides >> i & 1)) read_forward(q, r->coll[i]->value, r->coll[i]->value_step);
    for (int i = 0; i < r->n_move; i++)
        if (!(r->move_rides >> i & 1)) read_forward(q, r->move[i]->value, r->move[i]->value_step);
}

static void read_back(Reads *q, const char *grad, int step, bool sum) {
    const Subject of = subject_of(grad);
    if (of.role != OF_GRADIENT || mirror_makes_grad(&q->s->row[q->to], grad, step)) return;
    add(q, grad, step, source_back(q->m, q->s, q->to, of.of, step), sum);
}
static void compute_reads(Reads *q, const TraceCompute *c) {
    bool sum = c->n_inputs > 0;
    for (int k = 0; k < c->n_inputs; k++) sum &= !strcmp(c->inputs[k], c->output);
    for (int k = 0; c->input_step && k < c->n_inputs; k++)
        read_back(q, c->inputs[k], c->input_step[k], sum);
}
static void reads_backward(Reads *q) {
    const MirrorRow *r = &q->s->row[q->to];
    for (int i = 0; i < r->n_back; i++) compute_reads(q, r->back[i].f);
    for (int i = 0; i < r->n_grad; i++) compute_reads(q, r->grad[i].made);
    for (int i = 0; i < r->n_conj; i++)
        read_back(q, r->conj[i]->value, r->conj[i]->value_step, false);
    for (int i = 0; i < r->n_back_move; i++)
        read_back(q, r->back_move[i]->value, r->back_move[i]->value_step, false);
}

/* ---- what passes ---- */

/* The row from which a straight line comes: forward the one above, backward the next below that
 * does anything. */
static int neighbour(const MirrorStrip *s, int r, bool back) {
    if (!back) return r - 1;
    for (r++; r < s->n && !s->row[r].acts;) r++;
    return r;
}
/* Do the lines of a chain beside others (draw_read, draw_past) bring it? */
static bool by_chain(const MirrorStrip *s, const MirrorRead *q, bool back) {
    const int above = back ? q->to : q->from, below = back ? q->from : q->to;
    if (back && s->row[q->from].kind == ROW_FROM) return true;
    for (int r = above + 1; r < below; r++) {
        if (s->row[r].kind != ROW_FROM || r != above + 1) continue;
        while (r < s->n && s->row[r].beside) r++;
        return r == below;
    }
    return false;
}

/* A term of a sum is added behind the box of its row, to what that makes: a straight line would
 * lead it into the box, which does not read it. What makes no step joins the terms as they come. */
static bool added_behind(const MirrorRow *r, const MirrorRead *q) {
    return q->sum && r->kind == ROW_OPS;
}

static void pass_row(const Mirror *m, MirrorStrip *s, int to, bool back) {
    MirrorRow *r = &s->row[to];
    MirrorRead read[MAX_READS];
    Reads q = {m, s, to, 0, read};
    const int next = neighbour(s, to, back);
    bool direct = false, partial = false, max;
    if (r->kind == ROW_FROM) return;
    if (back) reads_backward(&q);
    else reads_forward(&q);
    for (int i = 0; i < q.n; i++) {
        if (s->n_read[back] < MAX_ALL) s->read[back][s->n_read[back]++] = read[i];
        if (read[i].from == next && !added_behind(r, &read[i])) {
            direct = true;
            partial |= words_pending(&read[i].v->shape, &max) != NULL;
        } else if (!by_chain(s, &read[i], back) && s->n_past[back] < MAX_PAST) {
            s->past[back][s->n_past[back]++] = read[i];
        }
    }
    if (q.n) r->fed[back] = !direct ? FED_NOT : partial ? FED_PARTIAL : FED_WHOLE;
}

/* Reads between rows as they are drawn: a band is one, and within it is no line. */
typedef struct {
    MirrorRead *read;
    int from, to;
} Line;
static int drawn(const MirrorFold *f, int r) { return r >= f->from && r < f->until ? f->from : r; }
static int lines_of(MirrorStrip *s, const MirrorFold *f, bool back, Line *out) {
    int n = 0;
    for (int i = 0; i < s->n_past[back]; i++) {
        MirrorRead *q = &s->past[back][i];
        const Line l = {q, drawn(f, q->from), drawn(f, q->to)};
        if (l.from != l.to) out[n++] = l;
    }
    return n;
}
/* The rows that what row `from` makes passes, to the last that reads it. */
static void ends_of(const Line *line, int n, int from, int end[2]) {
    end[0] = end[1] = from;
    for (int k = 0; k < n; k++) {
        if (line[k].from != from) continue;
        if (line[k].to < end[0]) end[0] = line[k].to;
        if (line[k].to > end[1]) end[1] = line[k].to;
    }
}
static void set_lanes(MirrorStrip *s, const MirrorFold *f, bool back) {
    Line line[MAX_PAST];
    const int n = lines_of(s, f, back, line);
    s->lanes[back] = 0;
    for (int i = 0; i < n; i++) line[i].read->lane = -1;
    for (int turn = 0; turn < n; turn++) { /* the shortest stand innermost */
        int from = NOWHERE, least = INT_MAX, end[2], other[2], lane = 0;
        for (int i = 0; i < n; i++) {
            ends_of(line, n, line[i].from, other);
            if (line[i].read->lane >= 0 || other[1] - other[0] >= least) continue;
            from = line[i].from, least = other[1] - other[0];
        }
        if (from == NOWHERE) return;
        ends_of(line, n, from, end);
        for (bool free = false; !free; lane += !free) {
            free = true;
            for (int i = 0; i < n; i++) {
                ends_of(&line[i], 1, line[i].from, other);
                /* one ends at a row, above where another of that row begins */
                free &= line[i].read->lane != lane || other[1] <= end[0] || other[0] >= end[1];
            }
        }
        for (int i = 0; i < n; i++)
            if (line[i].from == from) line[i].read->lane = lane;
        if (lane + 1 > s->lanes[back]) s->lanes[back] = lane + 1;
    }
}

static void keep(Arena *a, MirrorCrossing *c, const MirrorRead *q) {
    if (!c->read) c->read = ARENA_ARRAY(a, MirrorRead, MAX_PAST);
    for (int i = 0; i < c->n; i++)
        if (c->read[i].v == q->v && c->read[i].from == q->from && c->read[i].to == q->to) return;
    if (c->n < MAX_PAST) c->read[c->n++] = *q;
}

/* Which of all reads past rows have lines. */
typedef struct {
    MirrorStrip *s;
    MirrorFold fold;
    bool back;
    const MirrorRead *all;
    int n;
    bool *is;
} Choice;

/* Do both come to a row that has one place for them? Of a box forward names stand apart from a
 * line. */
static bool at_one_place(const Choice *c, const MirrorRead *a, const MirrorRead *b) {
    const bool apart = (!c->back && c->s->row[a->to].kind == ROW_OPS) ||
                       (a->to >= c->fold.from && a->to < c->fold.until);
    return a->to == b->to && a->sum == b->sum && (!apart || a->from == b->from);
}
/* How far the farthest goes of those that come to one place with it, in rows as drawn. */
static int reach(const Choice *c, const MirrorRead *q) {
    int most = 0;
    for (int k = 0; k < c->n; k++) {
        const MirrorRead *o = &c->all[k];
        const int far = abs(drawn(&c->fold, o->to) - drawn(&c->fold, o->from));
        if (far > most && at_one_place(c, q, o)) most = far;
    }
    return most;
}
static void set_lines(const Choice *c, const MirrorRead *q, bool on) {
    int live = 0;
    for (int k = 0; k < c->n; k++) {
        if (at_one_place(c, q, &c->all[k])) c->is[k] = on;
        if (c->is[k]) c->s->past[c->back][live++] = c->all[k];
    }
    c->s->n_past[c->back] = live;
    set_lanes(c->s, &c->fold, c->back);
}
/* Where more lines would stand beside a column than an eye follows, those that go farthest are not
 * drawn: what they carry is named where it is made and where it is read. */
static void name_far(const Mirror *m, MirrorStrip *s, bool back) {
    const int n = s->n_past[back];
    Arena *a = m->g->arena;
    Choice c = {s, mirror_fold(m->g, s), back, NULL, n, ARENA_ARRAY(a, bool, n + 1)};
    set_lanes(s, &c.fold, back);
    if (s->lanes[back] <= MOST_LANES) return;
    c.all = arena_memdup(a, s->past[back], sizeof *c.all * (size_t)n);
    for (int far = 0; far <= s->n; far++) /* the shortest first */
        for (int i = 0; i < n; i++) {
            if (c.is[i] || reach(&c, &c.all[i]) != far) continue;
            set_lines(&c, &c.all[i], true);
            if (s->lanes[back] > MOST_LANES) set_lines(&c, &c.all[i], false);
        }
    for (int i = 0; i < n; i++) {
        if (c.is[i]) continue;
        keep(a, &s->far[back], &c.all[i]);
        keep(a, &s->in[back], &c.all[i]);
        keep(a, &s->out[back], &c.all[i]);
    }
}

void mirror_pass(const Mirror *m, MirrorStrip *s) {
    if (s->plain) return;
    for (int back = 0; back < 2; back++) {
        s->past[back] = ARENA_ARRAY(m->g->arena, MirrorRead, MAX_PAST);
        s->read[back] = ARENA_ARRAY(m->g->arena, MirrorRead, MAX_ALL);
        for (int r = 0; r < s->n; r++)
            if (!back || s->row[r].acts) pass_row(m, s, r, back);
        name_far(m, s, back);
    }
}

/* Does it come by the pill at an end of a piece: the value that this bears, or its gradient? */
static bool by_pill(const MirrorStrip *p, const MirrorRead *q, bool back, bool top) {
    const Subject of = subject_of(q->v->shape.name);
    const char *name = back ? of.of : q->v->shape.name, *end = top ? p->from : p->branch;
    return end && !strcmp(name, end);
}
void mirror_pass_piece(const Mirror *m, const MirrorStrip *whole, int lo, MirrorStrip *p) {
    Arena *a = m->g->arena;
    for (int back = 0; back < 2; back++) {
        p->past[back] = ARENA_ARRAY(a, MirrorRead, MAX_PAST);
        p->n_past[back] = 0;
        p->in[back] = p->out[back] = p->far[back] = (MirrorCrossing){0, NULL};
        p->read[back] = ARENA_ARRAY(a, MirrorRead, whole->n_read[back] + 1);
        for (int i = 0; i < whole->n_past[back] + whole->far[back].n; i++) {
            const int far = i - whole->n_past[back];
            MirrorRead q = far < 0 ? whole->past[back][i] : whole->far[back].read[far];
            q.from -= lo, q.to -= lo;
            const bool in = q.from >= 0 && q.from < p->n && q.to >= 0 && q.to < p->n;
            if (in && p->n_past[back] < MAX_PAST) p->past[back][p->n_past[back]++] = q;
        }
        for (int i = 0; i < whole->n_read[back]; i++) {
            MirrorRead q = whole->read[back][i];
            q.from -= lo, q.to -= lo;
            p->read[back][i] = q;
            const bool made = q.from >= 0 && q.from < p->n, read = q.to >= 0 && q.to < p->n;
            const bool pill = by_pill(p, &q, back, !back);
            if (read && !made && !pill) keep(a, &p->in[back], &q);
            if (read && !back && q.from < 0 && pill && q.to > 0 && p->n_past[0] < MAX_PAST) {
                q.from = -1; /* past rows from the pill */
                p->past[0][p->n_past[0]++] = q;
            }
            if (made && !read && !by_pill(p, &q, back, back)) keep(a, &p->out[back], &q);
        }
        name_far(m, p, back);
    }
}

bool mirror_told_aside(const MirrorStrip *s, int r, const TraceValue *v) {
    bool out = false;
    for (int i = 0; i < s->out[1].n && r < s->n && s->row[r].kind == ROW_OPS; i++)
        out |= s->out[1].read[i].from == r && s->out[1].read[i].v == v;
    for (int i = 0; i < s->n_past[1] && out; i++)
        out = s->past[1][i].from != r || s->past[1][i].v != v;
    for (int i = 0; i < s->n_read[1] && out; i++) { /* the row above takes it up */
        const MirrorRead *q = &s->read[1][i];
        out = q->from != r || q->v != v || q->to < 0 || q->to >= r ||
              neighbour(s, q->to, true) != r || added_behind(&s->row[q->to], q);
    }
    return out;
}
bool mirror_parts(const MirrorStrip *s, int r, bool back) {
    for (int i = 0; i < s->n_past[back]; i++)
        if (s->past[back][i].from == r) return true;
    return false;
}
bool mirror_sums(const MirrorStrip *s, int r) {
    for (int i = 0; i < s->n_past[1]; i++)
        if (s->past[1][i].to == r && s->past[1][i].sum) return true;
    for (int i = 0; i < s->in[1].n; i++)
        if (s->in[1].read[i].to == r && s->in[1].read[i].sum) return true;
    return false;
}
bool mirror_comes(const MirrorStrip *s, int r, bool back) {
    for (int i = 0; i < s->in[back].n && (back || s->row[r].kind != ROW_OPS); i++)
        if (s->in[back].read[i].to == r && !s->in[back].read[i].sum) return true;
    return false;
}
bool mirror_leaves_alone(const MirrorStrip *s, int r, bool back) {
    int next = back ? r - 1 : r + 1;
    while (back && next >= 0 && !s->row[next].acts) next--;
    if (r < 0 || r >= s->n || s->row[r].kind == ROW_FROM || (back && s->row[r].kind == ROW_OPS) ||
        next < 0 || next >= s->n || s->row[next].fed[back] != FED_NOT || mirror_parts(s, r, back))
        return false;
    for (int i = 0; i < s->out[back].n; i++)
        if (s->out[back].read[i].from == r) return true;
    return false;
}
