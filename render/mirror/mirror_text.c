/* The backward program as text, 80 columns or fewer: the steps of each part in the order in which
 * they run, the last part first. block_text_cells has the columns. */
#include "render/graph/block_words.h"
#include "base/text.h"
#include "render/mirror/mirror_draw.h"
#include "render/mirror/mirror_page.h"
#include <stdlib.h>
#include <string.h>

/* One step of the backward program. */
typedef struct {
    int step;
    const TraceCompute *c;
    const TraceCollective *coll;
} Item;

typedef struct {
    const Mirror *m;
    Arena *a;
    int w; /* columns */
    Str out;
    int n, cap;
    Item *item;
} Text;

static int by_step(const void *a, const void *b) {
    const Item *x = a, *y = b;
    return (x->step > y->step) - (x->step < y->step);
}

static void add(Text *t, int step, const TraceCompute *c, const TraceCollective *coll) {
    for (int i = 0; i < t->n; i++)
        if (t->item[i].step == step) return;
    *ARENA_PUSH(t->a, t->item, t->n, t->cap) = (Item){step, c, coll};
}

static void read_strip(Text *t, const MirrorStrip *s) {
    t->n = 0;
    for (int r = 0; r < s->n; r++) {
        const MirrorRow *row = &s->row[r];
        for (int i = 0; i < row->n_back; i++) add(t, row->back[i].f->step, row->back[i].f, NULL);
        for (int i = 0; i < row->n_conj; i++) add(t, row->conj[i]->step, NULL, row->conj[i]);
        for (int i = 0; i < row->n_grad; i++) {
            add(t, row->grad[i].made->step, row->grad[i].made, NULL);
            for (int k = 0; k < row->grad[i].n; k++)
                add(t, row->grad[i].coll[k]->step, NULL, row->grad[i].coll[k]);
        }
    }
    if (t->n) qsort(t->item, (size_t)t->n, sizeof *t->item, by_step);
}

/* "dw2" of "grad.param.layers.0.feed_forward.w2.weight", "d shared w2" of that beside experts, "d
 * o_proj" of "grad.layers.0.o_proj". */
static const char *grad_name(Text *t, Subject s) {
    Arena *a = t->a;
    const TraceParam *p = grads_param(t->m->g->t, s);
    if (s.role == OF_GRADIENT) return mirror_value(t->m->g, s.of, true);
    size_t n = text_before(s.of, ".weight");
    const char *leaf = p && p->module ? words_weight(a, p->module, p)
                                      : words_leaf(n ? arena_strndup(a, s.of, n) : s.of);
    return arena_printf(a, "d%s%s", strlen(leaf) > 3 ? " " : "", leaf);
}

static bool is_sum(const TraceCompute *c) { return c && trace_adds_uses(c); }

static const char *step_words(Text *t, const TraceCompute *c) {
    const char *label = c->label && *c->label ? c->label : c->op;
    bool weight = c->makes.role == OF_PARAM_GRADIENT;
    if (weight) return grad_name(t, c->makes);
    if (is_sum(c)) return arena_printf(t->a, "sum of uses: %s", grad_name(t, c->makes));
    for (int i = 0; i < c->n_inputs; i++) {
        const TraceParam *p = trace_param(t->m->g->t, c->inputs[i]);
        if (p && p->compute.nd > 1)
            return arena_printf(t->a, "%s via %s", grad_name(t, c->makes),
                                words_weight(t->a, c->module, p));
    }
    return words_adjoint(t->a, label);
}

static void wrong_row(Text *t, const char *edge, int step) {
    const WrongList *l = mirror_all_wrong(t->m->g);
    int number = wrong_number(l, step);
    if (step == t->m->g->wrong_step) str_addf(&t->out, "%s✗    the first wrong value\n", edge);
    if (number && l->n > 1) str_addf(&t->out, "%s✗    wrong, see %d above\n", edge, number);
    else if (number) str_addf(&t->out, "%s✗    wrong, see above\n", edge);
}

static void pending_row(Text *t, const char *edge, const TraceValue *v) {
    bool max;
    const char *axes = v ? words_pending(&v->shape, &max) : NULL;
    if (axes)
        str_addf(&t->out, "%s║    partial: %s %s pending\n", edge, max ? "max" : "Σ",
                 words_axis_list(t->a, t->m->g->t, axes));
}

static void coll_rows(Text *t, const char *edge, const TraceCollective *c) {
    const BlockGraph *g = t->m->g;
    const char *rail = arena_printf(t->a, "%s│    ", edge);
    const TraceValue *v = trace_value(g->t, c->value, c->step);
    Str s = str_new(t->a);
    str_addf(&s, "%s◆  %s %s", edge, words_done(t->a, words_coll_on(c, g->rank), c),
             c->subject.role == OF_PARAM_GRADIENT ? grad_name(t, c->subject) : "");
    str_addf(&s, "%s%s %s", s.s[s.n - 1] == ' ' ? "" : " ", words_axis_list(t->a, g->t, c->axis),
             words_members(t->a, &c->groups, words_group_of(&c->groups, g->rank)));
    block_text_row(&t->out, g, t->w, rail, s.s, v);
    words_paragraph(&t->out, rail,
                    wrong_skipped(c)
                        ? "missing: nothing is sent"
                        : arena_printf(t->a, "sends %s%s%s", bytes_text(c->bytes_sent, t->a),
                                       c->why ? ": " : "", words_why(t->a, c->why)),
                    t->w);
    pending_row(t, edge, v);
    wrong_row(t, edge, c->step);
}

static void strip_rows(Text *t, const MirrorStrip *s) {
    const BlockGraph *g = t->m->g;
    const char *edge = s->plain ? "  " : "┃ ", *rail = arena_printf(t->a, "%s│    ", edge);
    read_strip(t, s);
    if (!t->n) return;
    str_addf(&t->out, "%s%s, backward\n", s->plain ? "" : "┣━┓  ", s->strip->title);
    for (int i = 0; i < t->n; i++) {
        const Item *x = &t->item[i];
        bool more = i + 1 < t->n && is_sum(x->c) && is_sum(t->item[i + 1].c) &&
                    !strcmp(x->c->output, t->item[i + 1].c->output);
        if (more) continue; /* the sum of three uses is two steps */
        if (x->coll) {
            coll_rows(t, edge, x->coll);
            continue;
        }
        const TraceValue *v = trace_value(g->t, x->c->output, x->step);
        bool max, partial = v && words_pending(&v->shape, &max);
        block_text_row(
            &t->out, g, t->w, rail,
            arena_printf(t->a, "%s%s %s", edge, partial ? "╞═" : "├─", step_words(t, x->c)), v);
        pending_row(t, edge, v);
        wrong_row(t, edge, x->step);
    }
    if (!s->plain && s->up) str_add(&t->out, "⊕━┛  the gradient of the stream is added\n");
}

const WrongList *mirror_all_wrong(const BlockGraph *g) {
    const Mirror *m = mirror_new(g);
    return m ? mirror_wrong(m, 0, m->n) : g->wrong;
}

const char *mirror_text(const BlockGraph *g, int w, const char **totals) {
    Text t = {.m = mirror_new(g), .a = g->arena, .w = w, .out = str_new(g->arena)};
    if (!t.m) return NULL;
    for (int i = t.m->n - 1; i >= 0; i--) strip_rows(&t, &t.m->strip[i]);
    *totals = mirror_totals(t.m, 0, t.m->n, false);
    return t.out.s;
}
