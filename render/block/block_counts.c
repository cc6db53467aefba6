/* Counts for titles of block pictures. See block_counts.h. */
#include "render/block/block_counts.h"
#include "base/text.h"
#include "render/block/block_page.h"
#include "render/graph/grads.h"
#include "trace/counts.h"
#include <string.h>

/* What strips show: all of a block (and whatever stands beside it), one part, or several. */
typedef enum { SHOWS_BLOCK, SHOWS_PART, SHOWS_MODEL, SHOWS_SOME } Shows;

/* Collectives of the strips; all that are used if the strips are all. */
int block_used(const BlockGraph *g, int first, int n, const TraceCollective **use) {
    int k = 0;
    for (int i = 0; i < g->n_used; i++)
        for (int j = 0; j < g->n; j++) {
            const BlockNode *x = &g->node[j];
            if (!block_draws(x, g->used[i]) || x->strip < first || x->strip >= first + n ||
                wrong_skipped(g->used[i]))
                continue;
            use[k++] = g->used[i];
            break;
        }
    return k;
}

const char *block_part_words(const char *part) {
    const char *whole = part_term(part)->whole;
    return whole ? whole : part ? part : "what follows";
}

static Shows shows(const BlockGraph *g, int first, int n) {
    bool attention = false, mlp = false, one = n > 0 && g->strip[first].part;
    for (int i = first; i < first + n; i++) {
        one &= text_same(g->strip[i].part, g->strip[first].part);
        attention |= part_term(g->strip[i].part)->attends;
        mlp |= part_term(g->strip[i].part)->feeds;
    }
    if (attention && mlp) return SHOWS_BLOCK;
    if (one) return SHOWS_PART;
    return n == g->n_strips && g->whole ? SHOWS_MODEL : SHOWS_SOME;
}

static const char *subject(const BlockGraph *g, Shows what, int first) {
    switch (what) {
    case SHOWS_BLOCK: return "a Transformer block";
    case SHOWS_PART: return block_part_words(g->strip[first].part);
    case SHOWS_MODEL: return "this model";
    default: return "what this page shows";
    }
}

static bool among(const TraceCollective *const *use, int n, const TraceCollective *c) {
    for (int i = 0; i < n; i++)
        if (use[i] == c) return true;
    return false;
}

/* The layer of a strip's ops; -1: it stands outside the layers. */
static int layer_of(const BlockGraph *g, int strip) {
    for (int i = 0; i < g->n; i++)
        if (g->node[i].strip == strip && g->node[i].n_op) return g->node[i].op[0].c->layer;
    return -1;
}

/* The part of a picture that compute i stands in: the norm outside the layers stands with the head.
 */
static const char *stands_in(const Trace *t, int i) {
    const char *part = trace_unit(t, i);
    int way = t->computes[i].pass == PHASE_BACKWARD ? -1 : 1;
    for (int k = i; part_term(part)->norm && k >= 0 && k < t->n_computes; k += way)
        if (t->computes[k].layer < 0 && t->computes[k].part) part = t->computes[k].part;
    return part;
}
/* The part that a collective which is not drawn works for: a parameter's, or its gradient's, is
 * that of the first step which reads it; a norm's that of the first which reads what is moved; what
 * the input of a module needs is that module's, whoever made it. */
static const char *part_of(const BlockGraph *g, const TraceCollective *c) {
    const Trace *t = g->t;
    bool of_param = c->subject.role == OF_PARAM_GRADIENT || trace_param(t, c->value);
    const char *of = of_param ? c->subject.of : c->value;
    for (int i = 0; !of_param && text_same(c->where, "input") && i < t->n_computes; i++)
        if (c->pass == t->computes[i].pass && text_same(t->computes[i].module, c->module))
            return stands_in(t, i);
    if (c->part && !part_term(c->part)->norm) return c->part;
    for (int i = 0; i < t->n_computes; i++)
        for (int k = 0; k < t->computes[i].n_inputs && (of_param || t->computes[i].step > c->step);
             k++)
            if (text_same(t->computes[i].inputs[k], of)) return stands_in(t, i);
    return c->part;
}

/* Does collective c, which is not drawn, belong to the subject? Of several parts or a page, only
 * what is drawn does. */
static bool belongs(const BlockGraph *g, Shows what, int first, const TraceCollective *c) {
    bool layer = g->layer < 0 ? c->layer >= 0 : c->layer == g->layer;
    if (what == SHOWS_BLOCK) return layer;
    if (what == SHOWS_MODEL) return layer || c->layer < 0;
    return what == SHOWS_PART && c->layer == layer_of(g, first) &&
           text_same(part_of(g, c), g->strip[first].part);
}

/* Is it one of those that a block is counted from? */
static bool of_block(const BlockGraph *g, const TraceCollective *c, bool drawn) {
    bool message = words_message(c, g->rank) != MESSAGE_NONE;
    return (drawn && message) ||
           (belongs(g, SHOWS_BLOCK, 0, c) && words_pass_of(c, words_backward(g->t)) == g->pass);
}
/* Does the gradient of a parameter that is made in the strips travel in c? */
static bool travels_in(const BlockGraph *g, int first, int n, const TraceCollective *c) {
    for (int i = 0; i < g->n; i++) {
        const BlockNode *x = &g->node[i];
        if (x->strip < first || x->strip >= first + n) continue;
        for (int k = 0; k < x->n_op; k++)
            for (int j = 0; j < x->op[k].n_leave; j++)
                for (int u = 0; u < x->op[k].leave[j].n_unit; u++)
                    if (x->op[k].leave[j].unit[u] == c) return true;
    }
    return false;
}
/* What a title speaks of. Of a block alone nothing true can be said where its gradients travel in
 * one collective with those of what stands beside it, or where it needs none and that draws some.
 */
static Shows subject_of_title(const BlockGraph *g, int first, int n) {
    const TraceCollective **use = ARENA_ARRAY(g->arena, const TraceCollective *, g->n_used + 1);
    Shows what = shows(g, first, n);
    int used = block_used(g, first, n, use), own = 0;
    bool shared = false;
    for (int i = 0; i < used; i++)
        for (int k = first; k < first + n && !of_block(g, use[i], true); k++)
            shared |= layer_of(g, k) >= 0 && travels_in(g, k, 1, use[i]);
    for (int i = 0; i < g->t->n_collectives; i++) {
        const TraceCollective *c = &g->t->collectives[i];
        own += !wrong_skipped(c) && words_group_of(&c->groups, g->rank) >= 0 &&
               of_block(g, c, among(use, used, c));
    }
    if (what != SHOWS_BLOCK || !used || (own && !shared)) return what;
    return n == g->n_strips && g->whole ? SHOWS_MODEL : SHOWS_SOME;
}

/* Of a piece of a strip the first of all its pieces; *n: how many there are. Others stay alone. */
static int pieces(const BlockGraph *g, int strip, int *n) {
    const char *whole = g->strip[strip].whole;
    int first = strip, last = strip;
    while (whole && first > 0 && g->strip[first - 1].whole == whole) first--;
    while (whole && last + 1 < g->n_strips && g->strip[last + 1].whole == whole) last++;
    *n = last - first + 1;
    return first;
}
/* Collectives of the subject, each once, drawn ones too; those of a piece's subject are drawn on
 * other pages. Returns their number. */
static int collect(const BlockGraph *g, int first, int n, bool drawn, const TraceCollective **out) {
    const Trace *t = g->t;
    const TraceCollective **use = ARENA_ARRAY(g->arena, const TraceCollective *, g->n_used + 1);
    const TraceCollective **of = ARENA_ARRAY(g->arena, const TraceCollective *, g->n_used + 1);
    int used = block_used(g, first, n, use), k = 0, backward = words_backward(t), siblings = n,
        from = n == 1 ? pieces(g, first, &siblings) : first,
        all = block_used(g, from, siblings, of);
    Shows what = subject_of_title(g, first, n);
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        if (wrong_skipped(c) || words_group_of(&c->groups, g->rank) < 0) continue;
        bool is_drawn = among(use, used, c);
        bool mine = belongs(g, what, first, c) && words_pass_of(c, backward) == g->pass;
        bool message = words_message(c, g->rank) != MESSAGE_NONE;
        if (among(of, all, c) && (what != SHOWS_BLOCK || message)) mine = true;
        if (mine && (drawn || !is_drawn)) out[k++] = c;
    }
    return k;
}

BlockCount block_count(const BlockGraph *g, int first, int n) {
    const TraceCollective **use =
        ARENA_ARRAY(g->arena, const TraceCollective *, g->t->n_collectives + 1);
    BlockCount b = {.subject = subject(g, subject_of_title(g, first, n), first)};
    int k = collect(g, first, n, true, use);
    for (int i = 0; i < k; i++) {
        b.count += collective_times(use[i]);
        if (collective_is_message(use[i])) b.messages += collective_times(use[i]);
        b.sent += collective_on(use[i], g->rank).bytes_sent;
    }
    for (int i = 0; i < g->t->n_collectives; i++)
        b.travels |=
            !among(use, k, &g->t->collectives[i]) && travels_in(g, first, n, &g->t->collectives[i]);
    return b;
}

const char *block_not_drawn(const BlockGraph *g, int first, int n) {
    Arena *a = g->arena;
    const TraceCollective **use = ARENA_ARRAY(a, const TraceCollective *, g->t->n_collectives + 1);
    Total *t;
    Str s = str_new(a);
    int k = words_totals(a, use, collect(g, first, n, false, use), g->rank, &t);
    for (int i = 0; i < k; i++)
        str_addf(&s, "%s%s",
                 i ? ", " : " Not drawn: ", words_sent_over(a, g->t, &t[i], t[i].axis, &t[i]));
    if (k)
        str_add(&s, g->pass == PHASE_BACKWARD ? " (gradients of weights, steps made again)." : ".");
    return k ? s.s : "";
}
