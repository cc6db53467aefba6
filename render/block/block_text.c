/* The block view as text, 80 columns or fewer: one line per step with its output, the residual
 * stream at the left. block_text_cells has the columns. Needs only box drawing and a few signs. */
#include "render/block/block_page.h"
#include "render/graph/block_read.h"
#include "render/graph/block_words.h"
#include "render/mirror/mirror_page.h"
#include "render/furniture/views.h"
#include <string.h>

typedef struct {
    const BlockGraph *g;
    int w; /* columns */
    Str out;
} Page;

static void row(Page *p, const char *rail, const char *step, const TraceValue *v) {
    block_text_row(&p->out, p->g, p->w, rail, step, v);
}

static void paragraph(Page *p, const char *rail, const char *text) {
    words_paragraph(&p->out, rail, text, p->w);
}

static void rule(Page *p) {
    for (int i = 0; i < p->w; i++) str_add(&p->out, "─");
    str_add(&p->out, "\n");
}

/* "wq  [2048, 4096]", "RoPE q", "+ bias". Ops that abut another say whose. */
static const char *step_words(const BlockGraph *g, const BlockNode *n) {
    BlockNode one = *n;
    Arena *a = g->arena;
    one.n_op = 1;
    one.twin = -1;
    one.op[0].only = NULL;
    const char *name = block_op_name(g, &one, &one.op[0]);
    for (int i = 0; i < one.op[0].n_param; i++) {
        const TraceShape *w = &one.op[0].param[i]->compute;
        const TraceLocal *l = words_find_local(w, g->rank);
        if (w->nd >= 2 && l)
            return arena_printf(a, "%s  %s", name, words_shape(a, l->shape, w->nd));
    }
    const bool abuts = n->alias != (int)(n - g->node);
    const bool told = strchr(name, ':') != NULL; /* it says what it makes */
    return abuts && !told ? arena_printf(a, "%s %s", name, words_short(a, g->t, n->op[0].c->output))
                          : name;
}

static const char *coll_words(const BlockGraph *g, const BlockNode *n) {
    Arena *a = g->arena;
    bool side = n->col > 0 || n->twin >= 0 || n->alias != (int)(n - g->node);
    const char *name = arena_printf(a, "%s%s%s", words_coll_on(n->coll, g->rank), side ? " " : "",
                                    side ? words_short(a, g->t, n->name) : "");
    Str s = str_new(a);
    words_pad(&s, name, 15, false);
    str_addf(&s, "%s%s %s", words_columns(name) >= 15 ? " " : "", n->coll->axis,
             words_members(a, &n->coll->groups, words_group_of(&n->coll->groups, g->rank)));
    return s.s;
}

static bool same_why(const TraceCollective *a, const TraceCollective *b) {
    return a->bytes_sent == b->bytes_sent && !strcmp(a->why ? a->why : "", b->why ? b->why : "") &&
           !strcmp(a->op, b->op) && !strcmp(a->axis, b->axis);
}

static bool visible(const BlockGraph *g, int i, int strip) {
    const BlockNode *n = &g->node[i];
    return n->strip == strip && !n->hidden && n->kind != NODE_INPUT && i != g->strip[strip].to;
}

static int next_visible(const BlockGraph *g, int i, int strip) {
    for (i++; i < g->n; i++)
        if (visible(g, i, strip)) return i;
    return -1;
}

static void pending_row(Page *p, const char *edge, const TraceValue *v) {
    bool max;
    const char *axes = v ? words_pending(&v->shape, &max) : NULL;
    if (axes)
        str_addf(&p->out, "%s║    partial: %s %s pending\n", edge, max ? "max" : "Σ",
                 words_symbol(p->g->arena, axes));
}

static void wrong_row(Page *p, const char *edge, const BlockNode *n) {
    if (n->step == p->g->wrong_step) str_addf(&p->out, "%s✗    the first wrong value\n", edge);
    int number = wrong_number(p->g->wrong, n->step);
    for (int i = 0; i < n->n_op && !number; i++)
        number = n->op[i].claim >= 0 ? wrong_number(p->g->wrong, n->op[i].claim) : 0;
    if (number && p->g->wrong->n > 1)
        str_addf(&p->out, "%s✗    wrong, see %d above\n", edge, number);
    else if (number) str_addf(&p->out, "%s✗    wrong, see above\n", edge);
}

/* Collectives in a row with the same reason share one line of reason. */
static void coll_rows(Page *p, const char *edge, int i, int strip, bool *each) {
    const BlockGraph *g = p->g;
    const BlockNode *n = &g->node[i];
    Arena *a = g->arena;
    const char *rail = arena_printf(a, "%s│    ", edge);
    row(p, rail, arena_printf(a, "%s◆  %s", edge, coll_words(g, n)),
        trace_value(g->t, n->name, n->step));
    int k = next_visible(g, i, strip);
    bool again = k >= 0 && g->node[k].kind == NODE_COLL && same_why(n->coll, g->node[k].coll);
    if (again) {
        *each = true;
        return;
    }
    paragraph(p, rail,
              arena_printf(a, "sends %s%s%s%s%s", bytes_text(n->coll->bytes_sent, a),
                           *each ? " each" : "", n->coll->why ? ": " : "",
                           words_why(a, n->coll->why), n->coll->inferred ? " (inferred)" : ""));
    *each = false;
}

static void strip_rows(Page *p, int strip) {
    const BlockGraph *g = p->g;
    Arena *a = g->arena;
    const char *edge = g->strip[strip].to >= 0 ? "┃ " : "  ",
               *rail = arena_printf(a, "%s│    ", edge);
    bool each = false;
    for (int i = 0; i < g->n; i++) {
        if (!visible(g, i, strip)) continue;
        const BlockNode *n = &g->node[i];
        if (n->kind == NODE_COLL) {
            coll_rows(p, edge, i, strip, &each);
            pending_row(p, edge, trace_value(g->t, n->name, n->step));
            wrong_row(p, edge, n);
            continue;
        }
        const TraceValue *v =
            trace_value(g->t, n->kind == NODE_OP ? n->op[0].c->output : n->name, n->step);
        bool max, partial = v && words_pending(&v->shape, &max);
        if (n->kind == NODE_MOVE)
            row(p, rail, arena_printf(a, "%s·  %s", edge, words_move(n->move)), v);
        else
            row(p, rail, arena_printf(a, "%s%s %s", edge, partial ? "╞═" : "├─", step_words(g, n)),
                v);
        if (n->kind == NODE_OP && n->op[0].fetch)
            paragraph(p, rail,
                      arena_printf(a, "weight gathered over %s: sends %s",
                                   words_axis_list(a, g->t, n->op[0].fetch->axis),
                                   bytes_text(n->op[0].fetch->bytes_sent, a)));
        BlockNode one = *n; /* what abuts it has a row of its own */
        one.n_op = n->kind == NODE_OP;
        if (n->twin >= 0) one.op[0].n_leave -= g->node[n->twin].op[0].n_leave; /* has one, too */
        const char *leaves = block_leave_text(g, &one);
        if (*leaves) paragraph(p, rail, leaves);
        pending_row(p, edge, v);
        wrong_row(p, edge, n);
    }
}

static const char *upper(Arena *a, const char *s) {
    char *t = arena_strdup(a, s);
    for (char *c = t; *c; c++)
        if (*c >= 'a' && *c <= 'z') *c = (char)(*c - 'a' + 'A');
    return t;
}

/* The state that enters a strip, its steps, and what leaves it. */
static void strip_text(Page *p, int i, const BlockFrame *f) {
    const BlockGraph *g = p->g;
    const BlockStrip *s = &g->strip[i];
    Arena *a = g->arena;
    if (s->from >= 0) {
        bool joined = i > 0 && g->strip[i - 1].to == s->from;
        if (!joined) row(p, "┃ ", f->in_name, g->node[s->from].out);
        str_addf(&p->out, "%s  %s\n", s->to >= 0 ? "┣━┓" : "┗━┓", upper(a, s->title));
        strip_rows(p, i);
        if (s->to < 0) {
            words_labelled(&p->out, "      ", f->note, p->w);
            return;
        }
        row(p, "┃ ", "⊕━┛", g->node[s->to].out);
        bool last = i + 1 >= g->n_strips || g->strip[i + 1].from != s->to;
        if (last && f->note)
            words_labelled(&p->out, arena_printf(a, "%s    ", f->out_name), f->note, p->w);
        return;
    }
    str_addf(&p->out, "%s\n", upper(a, s->title));
    for (int k = 0; k < s->n; k++) {
        const BlockNode *n = &g->node[s->node[k]];
        if (n->kind == NODE_INPUT)
            row(p, "  ", arena_printf(a, "  %s", block_value(g, n->name)), n->out);
    }
    strip_rows(p, i);
}

static void head(Page *p) {
    const char *sub[8];
    Arena *a = p->g->arena;
    paragraph(p, "", block_title(p->g, 0, p->g->n_strips));
    block_subtitle(p->g, phase_text(p->g->pass), sub);
    Str line = str_new(a);
    for (int i = 0; sub[i]; i++) {
        if (!*sub[i]) continue;
        if (line.n && words_columns(line.s) + 3 + words_columns(sub[i]) > p->w) {
            str_addf(&p->out, "%s\n", line.s);
            line = str_new(a);
        }
        str_addf(&line, "%s%s", line.n ? " · " : "", sub[i]);
    }
    str_addf(&p->out, "%s\n\n", line.s);
    wrong_text(&p->out, p->g->wrong, p->w);
    if (p->g->wrong->n) str_add(&p->out, "\n");
    const char *rank = arena_printf(a, "on rank %lld", (long long)p->g->rank);
    block_text_cells(&p->out, p->w, "", (const char *const[]){"step", "output", rank, "bytes"});
    rule(p);
}

const char *view_block_text(const ViewCall *c) {
    BlockGraph *g = block_read_trace(c);
    if (!g) return NULL;
    int w = furniture_columns(c->o);
    const char *totals = NULL, *back = c->pass ? NULL : mirror_text(g, w, &totals);
    Page p = {g, w, str_new(c->arena)};
    Role role;
    if (back) g->wrong = mirror_all_wrong(g);
    head(&p);
    BlockFrame *frame = block_frames(g);
    for (int i = 0; i < g->n_strips; i++) strip_text(&p, i, &frame[i]);
    if (back) rule(&p), str_add(&p.out, back);
    rule(&p);
    paragraph(&p, "", "┃ residual stream   │ tensor   ║ partial sum   ├─ compute   ◆ collective");
    paragraph(&p, "", totals ? totals : block_totals(g, 0, g->n_strips));
    paragraph(&p, "",
              arena_printf(c->arena, "weights show their local part · %s",
                           words_stamp(c->arena, c->t, &role)));
    return p.out.s;
}
