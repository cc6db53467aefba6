/* The life of the weights beside the mirrored block: at rest, gathered, used and freed, and their
 * gradients with every reduction, a row per weight, or for several where it would be the same. A
 * collective that serves several weights (an FSDP unit) is one box across their rows. The page
 * exists because a slide of the block has no room for them. */
#include "render/furniture/hexagon.h"
#include "render/mirror/mirror_draw.h"
#include "base/text.h"
#include "render/furniture/views.h"
#include <math.h>
#include <string.h>

/* Columns: name, at rest, what gathers it, in compute, what gathers it again, its gradient, its
 * reductions in the order in which they run (over tp, over the data, over copies, what nobody
 * declared), where it ends; where not all ranks update it, who does, what sends it, and how it lies
 * then. */
enum {
    C_NAME,
    C_REST,
    C_FETCH,
    C_USE,
    C_AGAIN,
    C_GRAD,
    C_SUM,
    MAX_SUM = 5,
    C_END = C_SUM + MAX_SUM,
    C_STEP,
    C_SEND,
    C_LAST
};
enum { MAX_ROWS = 256, COLS = C_LAST + 1, HEX = 92, LONG_NAME = 16, LEAN_NAME = 12, LINES = 3 };

typedef struct {
    const TraceParam *w;
    const ParamGrad *grad;     /* NULL: has none */
    const char *names, *group; /* group: of the last of them, as words_weight_next has it */
    int times;                 /* how many weights they are */
    const TraceCollective *fetch, *again, /* forward, backward */
        *sum[MAX_SUM];                    /* by column; NULL: it has none there */
    int n;
    const TraceCollective
        *chain[MAX_SUM];           /* the same without gaps: its own, and those that it shares */
    const TraceCollective *send;   /* what brings to all ranks what some have updated; NULL: none */
    const TraceValue *made, *last; /* with it: as the step makes it, as it is sent */
    bool freed;
} WeightRow;

typedef struct {
    const ViewCall *c;
    const Mirror *m;
    PresetKind preset;
    Scene *s;
    const WrongList *wrong;
    int n;
    WeightRow *row;
    double x[COLS], w[COLS], pitch, gap;
    bool tight; /* bytes are left out that stand elsewhere in the row (`said`): at rest and of the
                   gradient those with the gradient at rest and in compute */
    bool once;  /* the gathers for backward are left out */
    bool lean;  /* a row of several weights has no counts: it shows what each of them has */
    unsigned legend;
} WeightPen;

/* ---- reading ---- */

/* Do two reductions stand in one column? */
static bool same_kind(const TraceCollective *x, const TraceCollective *y) {
    return text_same(x->op, y->op) && text_same(x->axis, y->axis) && x->inferred == y->inferred;
}

/* Do two weights have such a collective each, or one together? What one has alone is told apart by
 * what it does, what they share by with whom. */
static bool same_coll(const WeightPen *p, const TraceCollective *x, const TraceCollective *y) {
    if (x == y) return true;
    return x && y && !x->n_with && !y->n_with && same_kind(x, y) &&
           x->bytes_sent == y->bytes_sent && x->per_step == y->per_step &&
           text_same(x->dtype, y->dtype) && text_same(x->reduce, y->reduce) &&
           text_same(x->wrong, y->wrong) && text_same(x->planted, y->planted) &&
           wrong_number(p->wrong, x->step) == wrong_number(p->wrong, y->step);
}

/* Do two values lie the same way on each rank? */
static bool same_layout(const TraceShape *x, const TraceShape *y) {
    if (!x || !y) return x == y;
    bool same = text_same(x->symbolic, y->symbolic) && text_same(x->pending, y->pending) &&
                x->nd == y->nd && x->n_local == y->n_local;
    for (int i = 0; same && i < x->n_local; i++) {
        const TraceLocal *a = &x->local[i], *b = &y->local[i];
        same = rankset_same(&a->ranks, &b->ranks) && a->bytes == b->bytes;
        for (int d = 0; d < x->nd; d++) same &= a->shape[d] == b->shape[d];
    }
    return same;
}

/* Its gradient as it is made, or as it is in the end; NULL: it has none. */
static const TraceShape *grad_shape(const WeightPen *p, const WeightRow *r, bool end) {
    const Trace *t = p->m->g->t;
    if (!r->grad) return NULL;
    const TraceValue *v = end ? grads_end_value(t, r->grad)
                              : trace_value(t, r->grad->made->output, r->grad->made->step);
    return v ? &v->shape : NULL;
}

/* Do the same ranks update both, as much of each? */
static bool updated_alike(const WeightPen *p, const WeightRow *a, const WeightRow *b) {
    if (!a->send || !b->send) return a->send == b->send;
    return same_coll(p, a->send, b->send) && same_layout(&a->made->shape, &b->made->shape) &&
           same_layout(&a->last->shape, &b->last->shape);
}

/* Would the rows of two weights say the same? */
static bool alike(const WeightPen *p, const WeightRow *a, const WeightRow *b) {
    bool same = text_same(a->group, b->group) && text_same(a->w->style, b->w->style) &&
                same_layout(&a->w->rest, &b->w->rest) &&
                same_layout(&a->w->compute, &b->w->compute) &&
                same_layout(grad_shape(p, a, false), grad_shape(p, b, false)) &&
                same_layout(grad_shape(p, a, true), grad_shape(p, b, true)) && a->n == b->n &&
                a->freed == b->freed && same_coll(p, a->fetch, b->fetch) &&
                same_coll(p, a->again, b->again) && updated_alike(p, a, b);
    for (int i = 0; same && i < a->n; i++) same = same_coll(p, a->chain[i], b->chain[i]);
    return same;
}

/* Into the chain, by steps. */
static void chain_add(WeightRow *r, const TraceCollective *c) {
    int at = r->n;
    if (r->n == MAX_SUM) return;
    for (; at > 0 && r->chain[at - 1]->step > c->step; at--) r->chain[at] = r->chain[at - 1];
    r->chain[at] = c;
    r->n++;
}

/* As the block calls it, after others of the same line: "shared w1", "w3"; "wq bias". */
static const char *weight_name(const WeightPen *p, const TraceParam *w, const char **group) {
    Arena *a = p->c->arena;
    const bool bias = text_before(grads_path(w), ".bias") > 0;
    if (w->module && !bias) return words_weight_next(a, w->module, w, group);
    const char *leaf = grads_weight(a, grads_path(w));
    return bias ? arena_printf(a, "%s bias", leaf) : leaf;
}

/* What the optimizer makes of it and, if ranks have to send it to each other, what does. */
static void read_step(const WeightPen *p, WeightRow *r) {
    const Trace *t = p->m->g->t;
    for (int i = 0; i < t->n_values; i++) {
        const TraceValue *v = &t->values[i];
        if (v->kind != VALUE_UPDATED ||
            trace_param(t, words_updated(p->c->arena, v->shape.name)) != r->w)
            continue;
        if (!r->made || v->step < r->made->step) r->made = v;
        if (!r->last || v->step > r->last->step) r->last = v;
    }
    for (int i = 0; r->last && i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool brings = c->step == r->last->step;
        for (int k = 0; k < c->n_with; k++) brings |= c->with[k] == r->last->step;
        if (brings && words_group_of(&c->groups, p->m->g->rank) >= 0) r->send = c;
    }
}
static void read_row(WeightPen *p, const MirrorRow *r, const TraceParam *w, WeightRow *out) {
    *out =
        (WeightRow){.w = w, .fetch = mirror_fetch(p->m, w, 0), .again = mirror_fetch(p->m, w, 1)};
    out->freed = out->fetch && mirror_freed(p->m, w);
    out->group = "";
    out->names = weight_name(p, w, &out->group);
    for (int i = 0; i < r->n_grad && !out->grad; i++)
        if (r->grad[i].param == w) out->grad = &r->grad[i];
    for (int i = 0; out->grad && i < out->grad->n; i++) chain_add(out, out->grad->coll[i]);
    for (int i = 0; out->grad && i < out->grad->n_unit; i++) chain_add(out, out->grad->unit[i]);
    read_step(p, out);
}

/* Gives each reduction of each row its column: reductions of one kind share one, and each stands
 * right of what runs before it. Where rows disagree about an order, a row's own order holds. */
static void place_sums(WeightPen *p) {
    const TraceCollective *kind[MAX_SUM];
    int n = 0, col[MAX_SUM] = {0};
    for (int i = 0; i < p->n; i++)
        for (int k = 0; k < p->row[i].n; k++) {
            int q = 0;
            while (q < n && !same_kind(kind[q], p->row[i].chain[k])) q++;
            if (q == n && n < MAX_SUM) kind[n++] = p->row[i].chain[k];
        }
    for (int turn = 0; turn < MAX_SUM; turn++)
        for (int i = 0; i < p->n; i++) {
            WeightRow *r = &p->row[i];
            int least = 0;
            memset(r->sum, 0, sizeof r->sum);
            for (int k = 0; k < r->n; k++) {
                int q = 0, most = MAX_SUM - r->n + k;
                while (q < n - 1 && !same_kind(kind[q], r->chain[k])) q++;
                if (col[q] < least) col[q] = least;
                int at = col[q] > most ? most : col[q];
                r->sum[at] = r->chain[k];
                least = at + 1;
            }
        }
}

/* Rows that one collective brings stand together, where the first of them does: the root unit has
 * weights at both ends of the model. */
static void join_units(WeightPen *p) {
    for (int i = 0; i < p->n; i++)
        for (int k = i + 1, to = i + 1; k < p->n && p->row[i].fetch; k++) {
            const WeightRow r = p->row[k];
            if (r.fetch != p->row[i].fetch) continue;
            for (int q = k; q > to; q--) p->row[q] = p->row[q - 1];
            p->row[to++] = r;
        }
}

/* A row per weight; weights of which a row would say the same share the one of the first. */
static void read_rows(WeightPen *p) {
    const Trace *t = p->m->g->t;
    p->row = ARENA_ARRAY(p->c->arena, WeightRow, MAX_ROWS);
    bool *had = ARENA_ARRAY(p->c->arena, bool, t->n_params);
    for (int i = 0; i < p->m->n; i++)
        for (int r = 0; r < p->m->strip[i].n; r++) {
            const MirrorRow *row = &p->m->strip[i].row[r];
            for (int k = 0; k < row->n_op; k++)
                for (int j = 0; j < row->op[k].f->n_inputs && p->n < MAX_ROWS; j++) {
                    const TraceParam *w = trace_param(t, row->op[k].f->inputs[j]);
                    WeightRow next;
                    if (!w || had[w - t->params]) continue;
                    had[w - t->params] = true;
                    read_row(p, row, w, &next);
                    int q = 0;
                    while (q < p->n && !alike(p, &p->row[q], &next)) q++;
                    if (q == p->n) p->row[p->n++] = next;
                    else
                        p->row[q].names = arena_printf(p->c->arena, "%s, %s", p->row[q].names,
                                                       weight_name(p, w, &p->row[q].group));
                    p->row[q].times++;
                }
        }
}

/* ---- words ---- */

/* "[64, 128]   32 KiB"; in a row of two weights "[64, 128]   2 × 32 KiB". */
static const char *numbers(const WeightPen *p, const WeightRow *r, const TraceShape *sh,
                           bool bytes) {
    Arena *a = p->c->arena;
    const TraceLocal *l = words_find_local(sh, p->m->g->rank);
    if (!l) return "";
    const char *shape = words_shape(a, l->shape, sh->nd), *size = bytes_text(l->bytes, a);
    if (!bytes) return shape;
    return r->times > 1 && !p->lean && l->bytes > 0
               ? arena_printf(a, "%s   %d × %s", shape, r->times, size)
               : arena_printf(a, "%s   %s", shape, size);
}

/* Is every weight that is gathered also freed? Then the head of the column says so. */
static bool all_freed(const WeightPen *p) {
    bool all = false;
    for (int i = 0; i < p->n; i++) {
        if (p->row[i].fetch && !p->row[i].freed) return false;
        all |= p->row[i].fetch != NULL;
    }
    return all;
}

static bool gathered_again(const WeightPen *p) {
    bool again = false;
    for (int i = 0; i < p->n; i++) again |= p->row[i].again != NULL;
    return again;
}

static bool is_sent(const WeightPen *p) {
    bool sent = false;
    for (int i = 0; i < p->n; i++) sent |= p->row[i].send != NULL;
    return sent;
}

/* Does this rank update it, or a part of it? */
static bool updates(const WeightPen *p, const WeightRow *r) {
    const TraceLocal *l = words_find_local(&r->made->shape, p->m->g->rank);
    return l && l->bytes > 0;
}

/* Is the reduction left out after which the gradient would be whole? */
static bool left_out(const WeightRow *r) {
    for (int i = 0; i < r->n; i++)
        if (wrong_skipped(r->chain[i])) return true;
    return false;
}

/* Where a long name breaks into two lines: after the comma between two weights or, where room is
 * short and there is no style under it, after an underscore. 0: it does not. */
static size_t name_break(const WeightPen *p, const WeightRow *r) {
    size_t n = strlen(r->names), at = 0;
    const char *after = p->tight && !words_style(r->w->style) ? " _" : r->times > 1 ? " " : "";
    if (n < (size_t)(p->lean ? LEAN_NAME : LONG_NAME)) return 0;
    for (; *after && !at; after++)
        for (size_t i = 1; i < n && i <= n * 2 / 3; i++)
            if (r->names[i - 1] == *after) at = i;
    return at;
}

/* Does the row say how much it is elsewhere? Where room is short, what ranks update for each other
 * has its bytes once: with the weight and, if it is less, with what this rank updates of it. */
static bool said(const WeightPen *p, const WeightRow *r, int col, const TraceShape *sh) {
    if (!p->tight) return false;
    if (col == C_REST || col == C_GRAD) return true;
    const TraceShape *with = col == C_STEP ? grad_shape(p, r, true) : &r->w->compute;
    return r->send && col >= C_END && with && with != sh &&
           text_same(numbers(p, r, sh, true), numbers(p, r, with, true));
}

/* "on rank 3"; "on this rank", "[57344]   224 KiB": who updates it, and this rank's part. */
static const char *step_cell(const WeightPen *p, const WeightRow *r, int line) {
    const TraceShape *sh = &r->made->shape;
    if (updates(p, r) && line) return said(p, r, C_STEP, sh) ? "" : numbers(p, r, sh, true);
    if (updates(p, r)) return "on this rank";
    const TraceLocal *own = NULL;
    int n = 0;
    for (int i = 0; i < sh->n_local; i++)
        if (sh->local[i].bytes > 0) own = &sh->local[i], n++;
    if (line) return "";
    return n == 1 && rankset_count(&own->ranks) == 1
               ? arena_printf(p->c->arena, "on rank %lld", (long long)rankset_first(&own->ranks))
               : "on other ranks";
}

/* The lines of a cell, three of a long name with a style; NULL: empty. */
static const char *cell(const WeightPen *p, const WeightRow *r, int col, int line) {
    Arena *a = p->c->arena;
    const TraceShape *sh = col == C_REST ? &r->w->rest : &r->w->compute;
    if (col == C_NAME) {
        const char *style = words_style(r->w->style);
        const size_t at = name_break(p, r);
        if (!line)
            return at ? arena_strndup(a, r->names, at - (r->names[at - 1] == ' ')) : r->names;
        return at && line == 1 ? r->names + at : line == 1 || at ? style : NULL;
    }
    if (line > 1) return NULL;
    if (col == C_REST && !r->fetch) return NULL;
    if (col >= C_STEP && !r->send) return NULL;
    if (col == C_STEP) return step_cell(p, r, line);
    if (col == C_LAST) sh = &r->last->shape;
    if (col == C_USE && line == 0 && r->fetch && !all_freed(p))
        return arena_printf(a, "%s, %s", words_symbol(a, sh->symbolic),
                            !r->freed  ? "kept"
                            : p->tight ? "freed"
                                       : "then freed");
    if (col == C_GRAD || col == C_END) {
        sh = grad_shape(p, r, col == C_END);
        if (!sh) return col == C_GRAD && line == 0 ? "no gradient" : NULL;
        if (col == C_END && !r->n) return line ? "" : "nothing to add";
        if (col == C_END && line == 0 && left_out(r))
            return arena_printf(a, "%s, a part of the sum", words_symbol(a, sh->symbolic));
        if (line == 0 && sh->pending && *sh->pending)
            return arena_printf(a, "%s  Σ %s", words_symbol(a, sh->symbolic),
                                words_axis_list(a, p->m->g->t, sh->pending));
    }
    return line ? numbers(p, r, sh, !said(p, r, col, sh)) : words_symbol(a, sh->symbolic);
}

static const TraceCollective *coll_of(const WeightPen *p, const WeightRow *r, int col) {
    if (col == C_AGAIN) return p->once ? NULL : r->again;
    if (col == C_SEND) return r->send;
    return col == C_FETCH ? r->fetch : col >= C_SUM && col < C_END ? r->sum[col - C_SUM] : NULL;
}

/* How many such collectives a row has: one for each of its weights, or one that they share. */
static int coll_times(const WeightPen *p, const WeightRow *r, const TraceCollective *c) {
    const TraceParam *w = trace_param(p->m->g->t, c->value);
    const bool own =
        !c->n_with && (c == r->send || (w ? w : grads_param(p->m->g->t, c->subject)) == r->w);
    return own ? r->times : 1;
}

/* "AllReduce ×2" in a row of two weights, each with its own. */
static const char *coll_name(const WeightPen *p, const WeightRow *r, const TraceCollective *c) {
    const char *name = words_coll_done(p->c->arena, c);
    const int times = coll_times(p, r, c);
    return times > 1 && !p->lean ? arena_printf(p->c->arena, "%s ×%d", name, times) : name;
}

/* ---- drawing ---- */

static bool is_collective(int col) {
    return col == C_FETCH || col == C_AGAIN || col == C_SEND || (col >= C_SUM && col < C_END);
}

/* Head of a column; "" if it has none. */
static const char *head(const WeightPen *p, int col, bool moves) {
    static const char *const word[COLS] = {"weight",
                                           "at rest",
                                           "",
                                           "in compute",
                                           "for backward",
                                           "its gradient",
                                           [C_END] = "gradient at rest",
                                           [C_STEP] = "updated",
                                           [C_LAST] = "weight after it"};
    if (col == C_USE && !moves) return "on this rank";
    if (col == C_END && !moves) return is_sent(p) ? "for the step" : "in the end";
    return col == C_USE && all_freed(p) ? "in compute, then freed" : word[col] ? word[col] : "";
}

static void measure(WeightPen *p, double x) {
    for (int col = 0; col < COLS; col++) {
        p->w[col] = 0;
        for (int i = 0; i < p->n; i++) {
            const TraceCollective *c = coll_of(p, &p->row[i], col);
            if (c)
                p->w[col] =
                    fmax(p->w[col],
                         fmax(p->tight ? 80 : HEX,
                              (p->tight ? 20 : 28) + (wrong_skipped(c) ? 20 : 0) +
                                  scene_width(p->s, 12.5, SEMIBOLD, coll_name(p, &p->row[i], c))));
            else if (!is_collective(col))
                for (int line = 0; line < LINES; line++) {
                    const char *text = cell(p, &p->row[i], col, line);
                    if (text)
                        p->w[col] =
                            fmax(p->w[col],
                                 scene_width(p->s, 12, line && col ? REGULAR : SEMIBOLD, text));
                }
        }
        if (p->w[col] > 0)
            p->w[col] =
                fmax(p->w[col], scene_width(p->s, 12, SEMIBOLD, head(p, col, p->w[C_REST] > 0)));
        p->x[col] = x;
        if (p->w[col] > 0) x += p->w[col] + p->gap;
    }
}

static double right_of(const WeightPen *p) { return p->x[C_LAST] + p->w[C_LAST]; }

/* One collective across rows, the middle of the first at ya, of the last at yb. */
static void draw_coll(WeightPen *p, const WeightRow *r, int col, double ya, double yb) {
    const TraceCollective *c = coll_of(p, r, col);
    Arena *a = p->c->arena;
    Scene *s = p->s;
    double h = yb - ya + fmin(34, p->pitch - 6), y = ya - fmin(34, p->pitch - 6) / 2,
           mid = (ya + yb) / 2;
    Str tip = str_new(a);
    const int times = coll_times(p, r, c);
    const char *sends = bytes_text(c->bytes_sent, a);
    str_addf(&tip, "step %d: %s over %s", c->step, c->op, c->axis);
    tip_add(&tip, "sends", times > 1 ? arena_printf(a, "%d × %s", times, sends) : sends);
    tip_add(&tip, "why", c->why);
    tip_inferred(&tip, c);
    Hexagon x = hexagon_of(c, p->x[col], y, p->w[col], h);
    x.id = arena_printf(a, "step-%d-%d", c->step, (int)ya);
    x.tip = tip.s;
    x.wrong = wrong_number(p->wrong, c->step);
    const char *axis = words_axis_list(a, p->m->g->t, c->axis),
               *over = arena_printf(a, "over %s", axis);
    if (p->tight || scene_width(s, 12, REGULAR, over) > x.w - 22) over = axis;
    x.line[0] = (HexagonLine){coll_name(p, r, c), mid - 3, 12.5, SEMIBOLD};
    x.line[1] = (HexagonLine){scene_fit(s, over, x.w - 22, 12, REGULAR), mid + 11, 12, REGULAR};
    if (yb - ya >= 30 && !x.skipped)
        x.line[2] = (HexagonLine){scene_fit(s, bytes_text(c->bytes_sent, a), x.w - 22, 12, REGULAR),
                                  mid + 26, 12, REGULAR};
    x.list = p->wrong, x.flag_x = x.x, x.flag_y = y + 3;
    hexagon_draw(s, &x, &p->legend);
}

static void draw_texts(WeightPen *p, const WeightRow *r, double y) {
    for (int col = 0; col < COLS; col++) {
        if (coll_of(p, r, col) || is_collective(col)) continue;
        const bool broken = col == C_NAME && name_break(p, r);
        const double up = broken && cell(p, r, col, 2) ? 7.5 : 0;
        for (int line = 0; line < LINES; line++) {
            const char *text = cell(p, r, col, line);
            const bool small = line > (broken ? 1 : 0);
            if (text && *text)
                scene_text(p->s, p->x[col], y - 3 - up + 15 * line,
                           (TextLook){ALIGN_LEFT, 12,
                                      small ? REGULAR
                                      : col ? MEDIUM
                                            : SEMIBOLD,
                                      small                         ? ROLE_SECOND
                                      : col == C_END && left_out(r) ? ROLE_FAIL
                                                                    : ROLE_INK},
                           text);
        }
    }
}

/* The way of a weight from left to right: an arrow into each collective and out of it, and one from
 * use to gradient. */
static void draw_way(WeightPen *p, const WeightRow *r, double y) {
    int from = -1;
    for (int col = C_REST; col < COLS; col++) {
        bool box = coll_of(p, r, col) != NULL;
        if (!box && (is_collective(col) || !cell(p, r, col, 0))) continue;
        const bool elsewhere = col == C_STEP && !updates(p, r);
        if (from >= 0 && (col != C_GRAD || from == C_AGAIN) && !elsewhere) {
            bool was_box = coll_of(p, r, from) != NULL;
            double wide[2] = {0, 0};
            for (int line = 0; !was_box && line < 2; line++) {
                const char *text = cell(p, r, from, line);
                if (text && *text)
                    wide[line] = scene_width(p->s, 12, line ? REGULAR : MEDIUM, text) + 4;
            }
            double x0 = p->x[from] + (was_box ? p->w[from] : fmax(wide[0], wide[1])),
                   x1 = p->x[col] - (box ? 0 : 3), at = y;
            if (x1 - x0 <= 9 && wide[1] > 0) { /* no room beside the layout: beside the numbers */
                x0 = p->x[from] + wide[1];
                at = y + 8;
            }
            Pt pt[2] = {{x0, at}, {x1, at}};
            if (x1 - x0 > 9)
                scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_COMPUTE_LINE, 1.5, false, false}, -1);
        }
        from = col;
    }
}

static void heads(WeightPen *p, double y) {
    scene_begin(p->s, "heads", "heads", NULL);
    for (int col = 0; col < COLS; col++)
        if (p->w[col] > 0)
            scene_text(p->s, p->x[col], y, (TextLook){ALIGN_LEFT, 12, SEMIBOLD, ROLE_INK},
                       head(p, col, p->w[C_REST] > 0));
    scene_end(p->s);
}

/* Is a collective of rows [first, first + n) that of several of them? */
static bool spans_rows(const WeightPen *p, int first, int n) {
    for (int col = 0; col < COLS; col++)
        for (int i = first; i + 1 < first + n; i++) {
            const TraceCollective *c = coll_of(p, &p->row[i], col);
            if (c && c == coll_of(p, &p->row[i + 1], col)) return true;
        }
    return false;
}

/* Rows [first, first + n) from y; returns the y under them. */
static double draw_rows(WeightPen *p, int first, int n, double y) {
    double top = y + p->pitch / 2;
    scene_begin(p->s, "weight", "weights",
                "how each weight lies, and what becomes of its gradient");
    for (int i = 0; i < n; i++) {
        draw_texts(p, &p->row[first + i], top + p->pitch * i);
        draw_way(p, &p->row[first + i], top + p->pitch * i);
    }
    scene_end(p->s);
    for (int col = 0; col < COLS; col++)
        for (int i = 0; i < n;) {
            const TraceCollective *c = coll_of(p, &p->row[first + i], col);
            int k = i + 1;
            while (c && k < n && coll_of(p, &p->row[first + k], col) == c) k++;
            if (c)
                draw_coll(p, &p->row[first + i], col, top + p->pitch * i, top + p->pitch * (k - 1));
            i = k;
        }
    return y + p->pitch * n;
}

/* Of rows [first, first + n), those of a page: it speaks of what stands there. */
static const char *title(const WeightPen *p, int first, int n) {
    Arena *a = p->c->arena;
    int fetched = 0, summed = 0, sent = 0;
    for (int i = first; i < first + n; i++)
        fetched += p->row[i].fetch != NULL, summed += p->row[i].n > 0,
            sent += p->row[i].send != NULL;
    if (p->wrong->n) return wrong_title(p->wrong);
    if (fetched)
        return "The weights: cut at rest, gathered before use, freed after it; gradients end where "
               "the weights rest";
    if (sent)
        return "The weights: gradients are summed, a rank updates the weights whose state it "
               "keeps, "
               "then all have them";
    if (summed && summed < n)
        return arena_printf(a, "The weights: %d of %d lines have a gradient that ranks add up",
                            summed, n);
    if (summed) return "The weights: every gradient is summed over the ranks that saw other tokens";
    return "The weights: every gradient is whole where it is made";
}

/* Places the columns. On a slide gaps give way, then bytes that are said twice, then gaps again. */
static void set_columns(WeightPen *p, double margin, bool slide) {
    p->gap = 20;
    measure(p, margin);
    while (slide && right_of(p) + margin > p->s->w && !(p->gap <= 6 && p->tight)) {
        p->gap = p->gap <= 15 && !p->tight ? 20 : p->gap - 1;
        p->tight |= p->gap == 20;
        measure(p, margin);
    }
    if (!slide || right_of(p) + margin <= p->s->w || (p->once && p->lean)) return;
    p->lean |= p->once; /* what is left out then is said in words */
    p->once = !p->once;
    p->tight = false;
    set_columns(p, margin, slide);
}

/* What a slide of rows [first, first + n) has no room to draw, in words. */
static const char *left_words(const WeightPen *p, int first, int n) {
    Str s = str_new(p->c->arena);
    bool several = false;
    for (int i = first; i < first + n; i++) several |= p->row[i].times > 1;
    if (p->once && gathered_again(p))
        str_addf(&s, "Freed weights that backward reads are gathered once more.");
    if (p->lean && several)
        str_addf(&s, "%sA row of several weights says what each has.", s.n ? " " : "");
    return s.n ? s.s : NULL;
}

/* What stands above rows [first, first + n) on scene s; returns the y under it. */
static double weights_head(WeightPen *p, Scene *s, int first, int n) {
    const bool slide = p->preset == PRESET_SLIDE;
    const double margin = presets[p->preset].margin, w = p->s->w - 2 * margin;
    const char *sub[8];
    Scene *own = p->s;
    mirror_subtitle(p->m->g, p->preset, sub);
    s->w = own->w, s->wrong = own->wrong;
    p->s = s;
    double y = figure_head(s, p->preset, title(p, first, n), sub, slide ? w - 40 : 0) + 4;
    y = wrong_notes(s, p->wrong, margin, w, y - 6, slide ? 3 : 0) + (p->wrong->n ? 14 : 6);
    heads(p, y + 8);
    p->s = own;
    return y + 18;
}
/* How many rows from `first` on stand on its page, and how far apart: of several pages each has as
 * many. */
static int rows_on(WeightPen *p, int first, double y) {
    const bool slide = p->preset == PRESET_SLIDE;
    const int all = p->n - first;
    const double room = slide ? presets[p->preset].h - 30 - y : 1e9;
    double least = 37;
    for (int i = first; i < p->n; i++)
        if (cell(p, &p->row[i], C_NAME, LINES - 1)) least = 46;
    p->pitch = fmin(slide ? 58 : 46, fmax(least, room / all));
    const int most = (int)fmax(1, fmin(all, floor(room / p->pitch))),
              pages = (all + most - 1) / most, n = (all + pages - 1) / pages;
    if (pages > 1 && slide) p->pitch = fmin(58, room / n);
    return n;
}

int mirror_weights(const ViewCall *c, const Mirror *m, PresetKind preset, Scene **page, int max) {
    const Preset *pr = &presets[preset];
    int pages = 0;
    WeightPen probe = {.c = c, .m = m, .preset = preset};
    probe.wrong = mirror_wrong(m, 0, m->n);
    read_rows(&probe);
    join_units(&probe);
    place_sums(&probe);
    if (!probe.n) return 0;
    for (int first = 0; first < probe.n && pages < max;) {
        WeightPen p = probe;
        Scene *s = p.s = figure_new(c, "block", preset);
        set_columns(&p, pr->margin, preset == PRESET_SLIDE);
        s->w = fmax(preset == PRESET_WIDE ? 760 : s->w, ceil(right_of(&p) + pr->margin));
        if (preset == PRESET_WIDE) s->px_width = (int)(pr->px * fmin(1, s->w / pr->w));
        s->wrong = p.wrong->n > 0;
        double w = s->w - 2 * pr->margin;
        const double top = weights_head(&p, figure_new(c, "block", preset), first, probe.n - first);
        const int n = rows_on(&p, first, top);
        double y = weights_head(&p, s, first, n);
        y = draw_rows(&p, first, n, y);
        s->desc = "The weights of a block, one per row: how they lie at rest, what gathers them, "
                  "how they lie in compute, what is done to their gradients, and what is sent of "
                  "them after the step.";
        if (preset == PRESET_SLIDE) {
            Role role;
            scene_begin(s, "footer", "footer", NULL);
            const char *left = left_words(&p, first, n);
            if (left)
                scene_text(s, pr->margin, pr->h - 14, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK},
                           left);
            const double room = left ? w - scene_width(s, 12, REGULAR, left) - 16 : w;
            const char *stamp = figure_verdict(s, c, room, &role);
            scene_text(s, s->w - pr->margin, pr->h - 14,
                       (TextLook){ALIGN_RIGHT, 12, role == ROLE_SECOND ? REGULAR : SEMIBOLD, role},
                       stamp);
            scene_end(s);
        } else {
            y = figure_legend(s, (Band){pr->margin, w, y + 10}, p.legend);
            y = figure_foot(s, c, (Band){pr->margin, w, y},
                            spans_rows(&p, first, n) ? "A box across several rows is one "
                                                       "collective that carries them all."
                                                     : NULL,
                            NULL);
        }
        figure_page(s, preset, preset == PRESET_SLIDE ? pr->h - 4 : y);
        page[pages++] = s;
        first += n;
    }
    return pages;
}
