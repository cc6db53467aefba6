/* Where the gradients of an op's parameters leave the strip of a backward pass: an arrow to the
 * right, and one under the other what finishes them. Of gradients that travel with another only
 * the words say so: the collective is drawn where the record has it. */
#include "render/block/block_draw.h"
#include "render/furniture/hexagon.h"
#include "render/graph/grads.h"
#include "render/graph/unlike.h"
#include <math.h>
#include <string.h>

enum { LEAVE_MAX = 8, HIGH = 34, BETWEEN = 6, ARROW = 20 };

/* Gradients of one box that end alike. */
typedef struct {
    const ParamGrad *first;
    const char *names;
    int64_t sent[GRADS_CHAIN]; /* by collective, of all of them */
    int times[GRADS_CHAIN];    /* how many collectives these are */
    const char *tip[GRADS_CHAIN];
    const TraceCollective *coll[GRADS_CHAIN]; /* the first, or one of them that is wrong */
} Leave;

static bool told(const Leave *out, int count, const ParamGrad *w) {
    for (int i = 0; i < count; i++)
        if (grads_same_end(out[i].first, w)) return true;
    return false;
}

/* Collective j of one more gradient. */
static void add_end(const BlockGraph *g, Leave *e, const ParamGrad *w, int j) {
    const char *tip = block_coll_tip(g, w->coll[j]);
    if (!e->times[j] || wrong_number(g->wrong, w->coll[j]->step)) e->coll[j] = w->coll[j];
    e->sent[j] += collective_on(w->coll[j], g->rank).bytes_sent;
    e->tip[j] = e->times[j]++ ? arena_printf(g->arena, "%s\n%s", e->tip[j], tip) : tip;
}
static Leave leave_of(const BlockGraph *g, const BlockNode *n, const ParamGrad *first) {
    Arena *a = g->arena;
    Leave e = {.first = first, .names = ""};
    const char *biases = "";
    for (int i = 0; i < n->n_op; i++)
        for (int k = 0; k < n->op[i].n_leave; k++) {
            const ParamGrad *w = &n->op[i].leave[k];
            if (!grads_same_end(first, w)) continue;
            const char *leaf = grads_leaf(a, w);
            const char **list = grads_is_bias(w) ? &biases : &e.names;
            *list = arena_printf(a, "%s%s%s", *list, **list ? " " : "", leaf);
            for (int j = 0; j < w->n; j++) add_end(g, &e, w, j);
        }
    e.names = *e.names ? grads_words(a, e.names, *biases) : arena_printf(a, "d %s bias", biases);
    return e;
}

static int leaves(const BlockGraph *g, const BlockNode *n, Leave *out) {
    int count = 0;
    for (int i = 0; i < n->n_op; i++)
        for (int k = 0; k < n->op[i].n_leave && count < LEAVE_MAX; k++) {
            const ParamGrad *w = &n->op[i].leave[k];
            if (!told(out, count, w)) out[count++] = leave_of(g, n, w);
        }
    return count;
}

static int rows(const Leave *e) { return e->first->n > 0 ? e->first->n : 1; }

/* The two lines of row k. */
static void lines(const BlockGraph *g, bool words, const Leave *e, int k, const char *line[2]) {
    Arena *a = g->arena;
    const ParamGrad *w = e->first;
    if (w->n) {
        const TraceCollective *c = e->coll[k];
        const char *name = words_coll_done(a, c), *axis = words_axis_list(a, g->t, c->axis);
        const char *sent = bytes_text(e->sent[k], a);
        const char *times = e->times[k] > 1 ? arena_printf(a, " ×%d", e->times[k]) : "";
        const char *more = c->n_with ? arena_printf(a, " and %d more", c->n_with) : "";
        line[0] = k ? arena_printf(a, "%s%s", name, times)
                    : arena_printf(a, "%s %s%s%s", name, e->names, times, more);
        line[1] = wrong_skipped(c) ? "nothing is sent"
                  : words          ? arena_printf(a, "%s · sends %s", axis, sent)
                                   : arena_printf(a, "%s · %s", axis, sent);
        return;
    }
    line[0] = e->names;
    const TraceParam *u = w->n_unit ? trace_param(g->t, w->unit[0]->subject.of) : NULL;
    line[1] =
        w->term ? "a term of the sum"
        : w->n_unit
            ? arena_printf(
                  a, "travels with %s",
                  grads_words(a, u ? grads_weight(a, grads_path(u)) : words_leaf(w->unit[0]->value),
                              false))
            : "nothing to add";
}

static double row_width(BlockPen *p, const Leave *e, int k) {
    const char *line[2];
    lines(p->g, p->look->numbers, e, k, line);
    double w =
        fmax(scene_width(p->s, 12.5, SEMIBOLD, line[0]), scene_width(p->s, 12, REGULAR, line[1]));
    const bool flag = e->first->n && wrong_number(p->g->wrong, e->coll[k]->step);
    return w + (e->first->n ? 30 : 4) + (flag ? 10 : 0);
}

double block_leave_width(BlockPen *p, const BlockNode *n) {
    Leave e[LEAVE_MAX];
    double w = 0;
    int count = leaves(p->g, n, e);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < rows(&e[i]); k++) w = fmax(w, row_width(p, &e[i], k));
    return count ? ARROW + w : 0;
}

double block_leave_height(const BlockPen *p, const BlockNode *n) {
    Leave e[LEAVE_MAX];
    double h = 0;
    int count = leaves(p->g, n, e);
    for (int i = 0; i < count; i++) h += (HIGH + BETWEEN) * rows(&e[i]);
    return count ? h - BETWEEN : 0;
}

static const char *made_words(const BlockPen *p, const Leave *e) {
    Arena *a = p->g->arena;
    const TraceCompute *c = e->first->made;
    const TraceValue *v = trace_value(p->g->t, c->output, c->step);
    Str s = str_new(a);
    str_addf(&s, "step %d: %s", c->step, c->output);
    if (!v) return s.s;
    const TraceLocal *l = words_find_local(&v->shape, p->g->rank);
    str_addf(&s, "\n%s", words_symbol(a, v->shape.symbolic));
    if (l)
        str_addf(&s, " = %s, %s", words_shape(a, l->shape, v->shape.nd), bytes_text(l->bytes, a));
    if (v->shape.pending && *v->shape.pending)
        str_addf(&s, "\nΣ %s pending", words_axis_list(a, p->g->t, v->shape.pending));
    return s.s;
}

/* One row: a hexagon, or words where no collective is its own. */
static void draw_row(BlockPen *p, const Leave *e, int k, double x, double y) {
    const char *line[2];
    lines(p->g, p->look->numbers, e, k, line);
    if (!e->first->n) {
        scene_text(p->s, x + 4, y + 14, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK}, line[0]);
        scene_text(p->s, x + 4, y + 29, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, line[1]);
        return;
    }
    const TraceCollective *c = e->coll[k];
    Hexagon h = hexagon_of(c, x, y, row_width(p, e, k), HIGH);
    h.id = arena_printf(p->g->arena, "step-%d", c->step);
    h.tip = e->tip[k];
    h.wrong = wrong_number(p->g->wrong, c->step);
    h.line[0] = (HexagonLine){line[0], y + 14, 12.5, SEMIBOLD};
    h.line[1] = (HexagonLine){line[1], y + 28.5, 12, REGULAR};
    h.like = unlike_collective(p->c, p->g->rank, c);
    h.list = p->g->wrong, h.flag_x = x + h.w - 9, h.flag_y = y + 2; /* left stands a label */
    int group = hexagon_draw(p->s, &h, &p->legend);
    if (k) {
        double mid = x + 24;
        Pt down[2] = {{mid, y - BETWEEN}, {mid, y}};
        scene_begin(p->s, "edge",
                    arena_printf(p->g->arena, "gradient-%d-%d", e->first->made->step, k),
                    made_words(p, e));
        scene_arrow(p->s, down, 2, (ArrowLook){ROLE_COMPUTE_LINE, 1.5, false, false}, group);
        scene_end(p->s);
    }
}

void block_leave(BlockPen *p, const BlockNode *n, double x, double y, double h) {
    Leave e[LEAVE_MAX];
    int count = leaves(p->g, n, e);
    double mid = y + fmin(h, HIGH) / 2, top = mid - HIGH / 2.0;
    for (int i = 0; i < count; i++) {
        const ParamGrad *w = e[i].first;
        scene_at(p->s, w->made->step + 1);
        scene_begin(p->s, "edge", arena_printf(p->g->arena, "gradient-%d", w->made->step),
                    made_words(p, &e[i]));
        double from = i ? top + HIGH / 2.0 : mid;
        Pt pt[4] = {{x, mid}, {x + 7, mid}, {x + 7, from}, {x + ARROW, from}};
        Pt straight[2] = {pt[0], pt[3]};
        scene_arrow(p->s, i ? pt : straight, i ? 4 : 2,
                    (ArrowLook){ROLE_COMPUTE_LINE, 1.5, false, false}, -1);
        scene_end(p->s);
        for (int k = 0; k < rows(&e[i]); k++, top += HIGH + BETWEEN)
            draw_row(p, &e[i], k, x + ARROW, top);
    }
}

const char *block_leave_text(const BlockGraph *g, const BlockNode *n) {
    Leave e[LEAVE_MAX];
    Str s = str_new(g->arena);
    int count = leaves(g, n, e);
    for (int i = 0; i < count; i++)
        for (int k = 0; k < rows(&e[i]); k++) {
            const char *line[2];
            lines(g, true, &e[i], k, line);
            str_addf(&s, "%s%s: %s", s.n ? "; " : "", line[0], line[1]);
        }
    return s.s;
}
