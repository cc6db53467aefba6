/* What the pages of the block view share: words about the whole figure, names of the states that
 * join the strips, and measuring a strip. */
#include "render/block/block_page.h"
#include "render/block/block_counts.h"
#include "render/graph/unlike.h"
#include "trace/counts.h"
#include <math.h>
#include <string.h>

/* ---- words ---- */

static bool is_op(const TraceCollective *c, const char *op) { return c->op && !strcmp(c->op, op); }

/* What one strip teaches, if its collectives make a known figure; NULL if not. */
static const char *lesson(const BlockGraph *g, const TraceCollective *const *use, int n,
                          const BlockStrip *s) {
    if (n < 1) return NULL;
    const TraceCollective *a = use[0], *b = use[n - 1];
    if (n > 1 && is_op(a, "all_gather") && is_op(b, "reduce_scatter") && a->dim_symbol &&
        b->dim_symbol && !strcmp(a->dim_symbol, b->dim_symbol) && !strncmp(a->dim_symbol, "S", 1))
        return arena_printf(
            g->arena, "%s inside one GPU: tokens are gathered for the matmuls, then scattered",
            s->title);
    if (n == 1 && is_op(a, "all_reduce"))
        return arena_printf(g->arena, "%s inside one GPU: one AllReduce adds the partial sums",
                            s->title);
    return NULL;
}

/* How many hops of a ring the collective stands for where it is drawn. */
static int hops_of(const BlockGraph *g, const TraceCollective *c) {
    for (int i = 0; i < g->n; i++) {
        const BlockNode *x = &g->node[i];
        if (x->hops && (block_draws(x, c) || (x->twin >= 0 && block_draws(&g->node[x->twin], c))))
            return x->hops;
    }
    return 1;
}
/* Of a piece of a strip, how many of what its pass needs this page draws; NULL: it is no piece, or
 * needs none, or messages too. */
static const char *piece_title(const BlockGraph *g, const TraceCollective *const *use, int n,
                               const BlockStrip *s, const BlockCount *all) {
    int64_t here = 0;
    if (!s->whole || !all->count || all->messages) return NULL;
    for (int i = 0; i < n; i++) here += collective_times(use[i]) * hops_of(g, use[i]);
    const char *some = here ? arena_printf(g->arena, "%lld", (long long)here) : "none";
    return arena_printf(g->arena, "%s: %s of the %s of its %s pass", s->title, some,
                        counted_text(g->arena, all->count, 0), phase_text(g->pass));
}

const char *block_title(const BlockGraph *g, int first, int n) {
    Arena *a = g->arena;
    const TraceCollective **use = ARENA_ARRAY(a, const TraceCollective *, g->n_used + 1);
    int k = block_used(g, first, n, use);
    BlockCount b = block_count(g, first, n);
    if (words_different(g->t))
        return arena_printf(a, "Inside one GPU: the first wrong value %s",
                            words_wrong_value(a, g->t, g->t->first_wrong, false));
    const char *rule = wrong_title(block_wrong(g, first, n));
    if (rule) return rule;
    bool forward = g->pass == PHASE_FORWARD;
    const char *one =
        forward && n == 1 && g->n_strips > 1 ? lesson(g, use, k, &g->strip[first]) : NULL;
    if (!one && n == 1) one = piece_title(g, use, k, &g->strip[first], &b);
    if (one) return one;
    const char *pass = forward ? "" : arena_printf(a, "the %s pass of ", phase_text(g->pass));
    const char *who = arena_printf(a, "%s%s", pass, b.subject),
               *in = g->t->ranks == 1 ? "Inside a single GPU" : "Inside one GPU";
    if (b.count == 0)
        return arena_printf(a, "%s, %s needs no communication%s", in, who,
                            b.travels ? " of its own" : "");
    if (!b.sent && b.count == b.messages)
        return arena_printf(a, "%s, %s receives %s and sends nothing", in, who,
                            counted_text(a, b.count, b.messages));
    return arena_printf(a, "%s, %s needs %s and sends %s", in, who,
                        counted_text(a, b.count, b.messages), bytes_text(b.sent, a));
}

/* What the check says about the first wrong value; NULL if there is none. */
static const char *cause(const BlockGraph *g) {
    for (int i = 0; g->wrong_step > -2 && i < g->t->n_checks; i++) {
        const TraceCheck *c = &g->t->checks[i];
        if (c->step == g->wrong_step && c->cause && *c->cause &&
            !strcmp(c->value, g->t->first_wrong))
            return c->cause;
    }
    return NULL;
}

const char *block_totals(const BlockGraph *g, int first, int strips) {
    Total *t;
    Arena *a = g->arena;
    const TraceCollective **use = ARENA_ARRAY(a, const TraceCollective *, g->n_used + 1);
    int used = block_used(g, first, strips, use), n = words_totals(a, use, used, g->rank, &t);
    const char *more = block_not_drawn(g, first, strips);
    int64_t drawn = 0;
    for (int i = 0; i < n; i++) drawn += t[i].count + t[i].received;
    BlockCount count = block_count(g, first, strips);
    if (n == 0 && !*more)
        return count.travels ? "Only gradients travel, in another part's collective."
                             : "Nothing is sent.";
    Str s = str_new(a);
    const char *why = cause(g);
    if (why) str_addf(&s, "Likely cause: %s. ", words_symbol(a, why));
    if (n == 0) str_add(&s, "Nothing of what is drawn is sent.");
    else
        str_addf(&s, "%s in one %s%s: ", words_sent_by(a, g->t, g->rank), phase_text(g->pass),
                 drawn == count.count ? "" : ", all that is drawn");
    for (int i = 0; i < n; i++)
        str_addf(&s, "%s%s", i ? ", " : "",
                 words_sent_over(a, g->t, &t[i], t[i].axis, i ? &t[i - 1] : NULL));
    if (n) str_add(&s, " (bytes leaving the GPU).");
    if (words_expected(use, used)) str_add(&s, " Rows of experts: as many as expected.");
    str_add(&s, more);
    str_add(&s, unlike_words(g));
    return s.s;
}

/* What a screen reader is told: every box in order. */
const char *block_description(const BlockGraph *g, int first, int count) {
    Str s = str_new(g->arena);
    str_add(&s, "Block diagram of what one GPU computes and communicates, every edge with its "
                "local shape.");
    for (int i = first; i < first + count; i++) {
        str_addf(&s, " %s:", g->strip[i].title);
        for (int k = 0; k < g->strip[i].n; k++) {
            const BlockNode *n = &g->node[g->strip[i].node[k]];
            if (n->kind == NODE_INPUT || n->joined >= 0) continue;
            str_add(&s, k ? ", " : " ");
            if (n->kind == NODE_COLL)
                str_addf(&s, "%s over %s", block_coll_name(g, n), n->coll->axis);
            else if (n->kind == NODE_MOVE) str_add(&s, words_move(n->move));
            else
                for (int j = 0; j < n->n_op; j++)
                    str_addf(&s, "%s%s", j ? ", " : "", block_op_name(g, n, &n->op[j]));
        }
        str_add(&s, ".");
    }
    return s.s;
}

/* ---- names of the states that join the strips ---- */

static int count_residual(const BlockGraph *g, int before) {
    int n = 0;
    for (int i = 0; i < before; i++) n += g->strip[i].to >= 0;
    return n;
}

/* Of the value that a node makes: the states of a foreign trace may have none. */
static const char *state_name(const BlockGraph *g, int node) {
    const char *name = block_state(g, g->node[node].name);
    return name ? name : words_short(g->arena, g->t, g->node[node].name);
}

/* The value of a node as it is: what a label says of it that is not so does not count. */
static const TraceValue *as_it_lies(const BlockGraph *g, int i) {
    const TraceValue *v = g->node[i].out;
    for (int k = 0; v && k < g->t->n_moves; k++) {
        const TraceLocalMove *m = &g->t->moves[k];
        if (m->step == v->step && m->wrong && words_declares(m))
            return trace_value(g->t, m->value, m->value_step);
    }
    return v;
}
static bool same_layout(const BlockGraph *g, int i, int j) {
    const TraceValue *a = as_it_lies(g, i), *b = as_it_lies(g, j);
    return a && b && a->shape.symbolic && b->shape.symbolic &&
           !strcmp(a->shape.symbolic, b->shape.symbolic) && block_same_shape(g, a, b);
}

/* What becomes of the gradient that leaves strip i. */
static const char *gradient_note(const BlockGraph *g, const BlockFrame *f, int i) {
    for (int k = i + 1; k < g->n_strips; k++)
        if (g->strip[k].from == g->strip[i].to && block_part_words(g->strip[k].part))
            return arena_printf(g->arena, "gradient of the hidden state, also what comes to %s",
                                block_part_words(g->strip[k].part));
    return strcmp(f->out_name, "dx") ? "gradient of the hidden state"
                                     : "gradient of the block's input";
}

static const char *state_note(const BlockGraph *g, const BlockFrame *f, int i) {
    int total = count_residual(g, g->n_strips), k = count_residual(g, i), from = 0;
    if (k + 1 < total)
        return arena_printf(g->arena, "hidden state, also the input of %s",
                            block_part_words(g->strip[i + 1].part));
    if (strcmp(f->out_name, "y")) return "hidden state, the input of what follows";
    if (total < 2) return "output of the block";
    while (g->strip[from].to < 0) from++;
    const int x = g->strip[from].from;
    if (as_it_lies(g, x) != g->node[x].out && !same_layout(g, x, g->strip[i].to))
        return "output of the block: not laid out as x really is";
    return same_layout(g, x, g->strip[i].to)
               ? "output of the block: same layout as x, so blocks stack without a reshard"
               : "output of the block: not laid out like x";
}

static void name_states(const BlockGraph *g, BlockFrame *f, int i) {
    const BlockStrip *s = &g->strip[i];
    if (s->from >= 0) f->in_name = state_name(g, s->from);
    if (block_is_open(s)) f->note = "what comes in has no gradient: the stream ends here";
    if (s->to < 0) return;
    f->out_name = state_name(g, s->to);
    f->note = g->pass == PHASE_BACKWARD ? gradient_note(g, f, i) : state_note(g, f, i);
}

BlockFrame *block_frames(BlockGraph *g) {
    BlockFrame *frame = ARENA_ARRAY(g->arena, BlockFrame, g->n_strips + 1);
    for (int i = 0; i < g->n_strips; i++) {
        frame[i].strip = &g->strip[i];
        name_states(g, &frame[i], i);
    }
    return frame;
}

/* ---- drawing ---- */

BlockPen block_pen(const ViewCall *c, BlockGraph *g, Scene *s, const BlockLook *look) {
    BlockPen p = {
        .c = c, .g = g, .s = s, .look = look, .group = ARENA_ARRAY(c->arena, int, g->n + 1)};
    for (int i = 0; i < g->n; i++) p.group[i] = -1;
    return p;
}

double block_measure(const ViewCall *c, BlockGraph *g, const BlockLook *look,
                     const BlockFrame *frame, double *height) {
    Scene *s = scene_new(c->arena, c->fonts, c->theme, 1, 1);
    BlockPen p = block_pen(c, g, s, look);
    BlockFrame f = *frame;
    BlockGrid grid;
    f.x = f.y = 0;
    block_columns(&p, &f);
    block_rows(&p, &grid, &f, 1);
    block_strip(&p, &f);
    double right = 0;
    for (int i = 0; i < s->n_marks; i++) right = fmax(right, scene_box(&s->marks[i]).x1);
    if (height) *height = block_height(&p, &f);
    return right;
}
