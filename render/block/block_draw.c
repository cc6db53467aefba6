/* One strip of a block picture: rows, columns, boxes, wires, the residual stream. Wires are
 * vertical in their column and change column only in the gap under the box that makes the value,
 * below its label; so a label never meets a wire.
 */
#include "render/block/block_draw.h"
#include "render/graph/grads.h"
#include <math.h>
#include <string.h>

enum {
    COL_0 = 208,
    COL_N = 186,
    COL_GAP = 47,
    LANE = 24,
    STREAM_ROOM = 32,
    SIDE_ROOM = 150,
    TIGHT_COL = 110,
    TIGHT_SIDE = 130
};

static const BlockNode *node(const BlockPen *p, int i) { return &p->g->node[i]; }

/* ---- rows ---- */

/* What the main column shows at a level, as one letter: strips are aligned by it. */
static char level_kind(const BlockPen *p, const BlockStrip *s, int level) {
    for (int k = 0; k < s->n; k++) {
        const BlockNode *n = node(p, s->node[k]);
        if (n->level != level || n->col != 0) continue;
        if (n->kind != NODE_OP) return n->kind == NODE_COLL ? 'c' : 'm';
        if (n->col_last > 0) return 'j';
        for (int i = 0; i < n->op[0].n_param; i++)
            if (n->op[0].param[i]->compute.nd >= 2) return 'w';
        return 'o';
    }
    return '-';
}

/* Where a strip with fewer levels than `like` is stretched, so that most rows show the same kind;
 * late if it is equal.
 */
static int stretch_level(const BlockPen *p, const BlockStrip *s, const BlockStrip *like) {
    int extra = like->levels - s->levels, best = s->levels, score = -1;
    for (int at = 0; at <= s->levels && extra > 0; at++) {
        int same = 0;
        for (int l = 0; l < s->levels; l++)
            same += level_kind(p, s, l) == level_kind(p, like, l + (l >= at ? extra : 0));
        if (same >= score) score = same, best = at;
    }
    return best;
}

/* Does the output of n change column below it? */
static bool forks(const BlockPen *p, const BlockStrip *s, int i) {
    int col = i == s->from ? 0 : node(p, i)->col;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *q = node(p, s->node[k]);
        for (int j = 0; j < q->n_in; j++)
            if (q->shared < 0 && q->in[j] == i && q->in_col[j] != col) return true;
    }
    return false;
}

enum { BRANCH = 10, ENTRY = 9, ENTRY_RISE = 12, PENDING = 5 };

/* The level under which the output of node i branches: its own; -1 for what stands at the head. */
static int fork_level(const BlockPen *p, const BlockStrip *s, int i) {
    return i == s->from ? -1 : node(p, i)->level;
}

/* How many values branch under a level before node i (-1: all): each has a line of its own to turn
 * on. */
static int branches(const BlockPen *p, const BlockStrip *s, int level, int i) {
    int n = s->from >= 0 && level < 0 && i != s->from && forks(p, s, s->from);
    for (int k = 0; k < s->n && s->node[k] != i; k++)
        n += fork_level(p, s, s->node[k]) == level && node(p, s->node[k])->level == level &&
             forks(p, s, s->node[k]);
    return n;
}

/* Does input j of the node come into it from beside, and not from just above? */
static bool is_beside(const BlockNode *q, int j) {
    return q->in_col[j] < q->col || q->in_col[j] > q->col_last;
}
/* Does a wire come into a box of the next level from beside it? */
static bool enters_beside(const BlockPen *p, const BlockStrip *s, int level) {
    for (int k = 0; k < s->n; k++) {
        const BlockNode *q = node(p, s->node[k]);
        for (int j = 0; q->shared < 0 && q->level == level + 1 && j < q->n_in; j++)
            if (is_beside(q, j)) return true;
    }
    return false;
}

/* How many wires come into one box of the next level from beside it, past its level. */
static int entries(const BlockPen *p, const BlockStrip *s, int level) {
    int most = 0;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *q = node(p, s->node[k]);
        int n = 0;
        for (int j = 0; q->shared < 0 && q->level == level + 1 && j < q->n_in; j++)
            n += is_beside(q, j);
        if (n > most) most = n;
    }
    return most;
}

/* What the gap under a level needs beyond that of a single branch. */
static double extra_room(const BlockPen *p, const BlockStrip *s, int level) {
    int n = branches(p, s, level, -1);
    return (n > 1 ? BRANCH * (n - 1) : 0) + (n > 0 && enters_beside(p, s, level) ? ENTRY : 0);
}

/* Wires that come from beside run over the next row's boxes: below the labels of the gap. */
static void entry_rows(const BlockPen *p, BlockGrid *grid, const BlockFrame *f) {
    double low = p->look->numbers ? p->look->num : p->look->sym;
    for (int l = 0; l + 1 < f->strip->levels; l++)
        if (enters_beside(p, f->strip, l))
            grid->gap[f->row[l]] =
                fmax(grid->gap[f->row[l]],
                     low + 5 + ENTRY_RISE + BRANCH * (entries(p, f->strip, l) - 1));
}

static void strip_rows(BlockPen *p, BlockGrid *grid, BlockFrame *f, const BlockStrip *longest) {
    const BlockStrip *s = f->strip;
    /* chains begin where the others begin; pieces of the stream are stretched to show alike rows at
     * one height */
    int extra = grid->n - s->levels, at = s->to >= 0 ? stretch_level(p, s, longest) : s->levels;
    f->row = ARENA_ARRAY(p->g->arena, int, s->levels + 1);
    f->grid = grid;
    for (int l = 0; l < s->levels; l++) f->row[l] = l + (l >= at ? extra : 0);
    for (int k = 0; k < s->n; k++) {
        const BlockNode *n = node(p, s->node[k]);
        if (n->level < 0) continue;
        int r = f->row[n->level];
        grid->h[r] = fmax(grid->h[r], block_box_height(p->look, n));
        grid->h[r] = fmax(grid->h[r], block_leave_height(p, n));
        if (forks(p, s, s->node[k]))
            grid->gap[r] = fmax(grid->gap[r], p->look->fork + extra_room(p, s, n->level));
        bool max; /* words of a sum stand over the pill of what adds it up */
        if (p->look->numbers && n->out && words_pending(&n->out->shape, &max))
            grid->gap[r] = fmax(grid->gap[r], p->look->gap + PENDING);
    }
    entry_rows(p, grid, f);
    bool head_forks = false;
    for (int k = 0; k < s->n; k++)
        head_forks |= node(p, s->node[k])->level < 0 && forks(p, s, s->node[k]);
    grid->head_gap =
        fmax(grid->head_gap, head_forks ? p->look->fork + extra_room(p, s, -1) : p->look->gap);
    grid->head =
        fmax(grid->head,
             s->from >= 0 ? p->look->head : p->look->plain_head - p->look->gap + grid->head_gap);
}

void block_rows(BlockPen *p, BlockGrid *grid, BlockFrame *frame, int n) {
    Arena *a = p->g->arena;
    const BlockStrip *longest = frame[0].strip;
    *grid = (BlockGrid){0};
    for (int i = 1; i < n; i++)
        if (frame[i].strip->levels > longest->levels) longest = frame[i].strip;
    grid->n = longest->levels;
    grid->h = ARENA_ARRAY(a, double, grid->n + 1);
    grid->gap = ARENA_ARRAY(a, double, grid->n + 1);
    grid->top = ARENA_ARRAY(a, double, grid->n + 1);
    for (int r = 0; r < grid->n; r++) grid->gap[r] = p->look->gap;
    for (int i = 0; i < n; i++) strip_rows(p, grid, &frame[i], longest);
    double y = grid->head;
    for (int r = 0; r < grid->n; r++) {
        grid->top[r] = y;
        y += grid->h[r] + (r + 1 < grid->n ? grid->gap[r] : 0);
    }
    grid->top[grid->n] = y; /* bottom of the last row */
}

/* Bottom of the row of a level: where the gap with its label begins. */
static double row_bottom(const BlockFrame *f, int level) {
    if (level < 0) return f->y + f->grid->head - f->grid->head_gap;
    return f->y + f->grid->top[f->row[level]] + f->grid->h[f->row[level]];
}
double block_gap_top(const BlockFrame *f, int level) { return row_bottom(f, level); }

bool block_ends_here(const BlockNode *n) {
    return n->kind == NODE_OP && n->op[0].n_leave && n->op[0].leave[0].made == n->op[0].c;
}

enum { OPEN_NOTE = 22, OPEN_FOOT = 18 };
/* Of a strip whose end has left to the right: what becomes of the stream stands under it. */
static bool open_note(const BlockPen *p, const BlockFrame *f) {
    return p->look->numbers && block_is_open(f->strip) && f->strip->last >= 0 &&
           block_ends_here(node(p, f->strip->last));
}

/* Under the boxes of a chain: the pill in which it ends, or what its end has left for words. */
static double chain_tail(const BlockPen *p, const BlockFrame *f) {
    const BlockStrip *s = f->strip;
    if (s->last < 0 || !block_ends_here(node(p, s->last))) return p->look->gap + 24;
    return !p->look->numbers ? OPEN_FOOT : open_note(p, f) ? OPEN_NOTE : 0;
}

double block_height(const BlockPen *p, const BlockFrame *f) {
    if (f->strip->to < 0 && f->strip->levels > 0)
        return row_bottom(f, f->strip->levels - 1) - f->y + chain_tail(p, f);
    return f->grid->top[f->grid->n] + p->look->tail;
}

/* ---- columns ---- */

/* Does something stand or pass right of column c between the tops of level l and l+1? `gap`: under
 * the boxes of l only.
 */
static bool busy_right(const BlockPen *p, const BlockStrip *s, int c, int l, bool gap, int but) {
    for (int k = 0; k < s->n; k++) {
        const BlockNode *q = node(p, s->node[k]);
        if (!gap && q->level == l && q->col_last > c) return true;
        for (int j = 0; q->shared < 0 && j < q->n_in; j++) {
            int from = q->in[j] == s->from ? -1 : node(p, q->in[j])->level;
            bool under = gap && from == l && q->in[j] != but;
            if (q->in_col[j] == c + 1 && ((from < l && q->level > l) || under)) return true;
        }
    }
    return false;
}

static double side_room(const BlockFrame *f) { return f->tight ? TIGHT_SIDE : SIDE_ROOM; }

/* Room for a reason left of a collective's box, up to the wire of the column before; 0: a box
 * stands there, or it is too little for words. */
static double left_room(const BlockPen *p, const BlockFrame *f, const BlockNode *n) {
    if (n->col == 0) return 0;
    for (int k = 0; k < f->strip->n; k++) {
        const BlockNode *q = node(p, f->strip->node[k]);
        if (q->level == n->level && q->col_last == n->col - 1) return 0;
    }
    const BlockStrip *s = f->strip; /* the pill of a chain's last value stands under its box */
    const BlockNode *last = s->last >= 0 && s->to < 0 ? node(p, s->last) : NULL;
    if (last && last->col < n->col && last->level == n->level - 1) return 0;
    const double room = f->centre[n->col] - f->width[n->col] / 2 - 10 - f->centre[n->col - 1] - 14;
    return room < 90 ? 0 : room;
}
/* How wide what stands right of a collective may become where something stands there, too. */
static double beside_room(BlockPen *p, const BlockFrame *f, const BlockNode *n) {
    const double left = left_room(p, f, n);
    return left > 0 && block_reason_fits(p, n, left) ? block_group_width(p, n)
                                                     : block_side_width(p, n, side_room(f));
}

/* Does a value leave a box in the next column beside that of n? */
static bool stands_beside(const BlockPen *p, const BlockStrip *s, const BlockNode *n) {
    for (int k = 0; k < s->n; k++) {
        const BlockNode *q = node(p, s->node[k]);
        if (q->level == n->level && q->col == n->col + 1) return true;
    }
    return false;
}

static double need_between(BlockPen *p, const BlockFrame *f, int c) {
    const BlockStrip *s = f->strip;
    double need = (f->width[c] + f->width[c + 1]) / 2 + (f->tight ? COL_GAP / 2 : COL_GAP);
    for (int k = 0; k < s->n; k++) {
        const BlockNode *n = node(p, s->node[k]);
        double leave = n->kind == NODE_OP && n->col_last == c ? block_leave_width(p, n) : 0;
        if (leave > 0 && busy_right(p, s, c, n->level, false, -1))
            need = fmax(need, f->width[c] / 2 + leave + 14 + f->width[c + 1] / 2);
        if (n->col != c) continue;
        bool narrow =
            n->kind == NODE_COLL && n->col_last == c && busy_right(p, s, c, n->level, false, -1);
        if (narrow)
            need =
                fmax(need, f->width[c] / 2 + 14 + beside_room(p, f, n) + 12 + f->width[c + 1] / 2);
        if (busy_right(p, s, c, n->level, true, s->node[k]) || stands_beside(p, s, n))
            need = fmax(need, 14 + block_label_width(p, n) + 10);
    }
    return need;
}

/* Does a box stand, or a wire pass, in a column right of the node's and up to c? Then that keeps
 * its label from getting further. */
static bool crossed(const BlockPen *p, const BlockStrip *s, const BlockNode *n, int c) {
    for (int k = 0; k < s->n; k++) {
        const BlockNode *q = node(p, s->node[k]);
        if (q != n && q->level == n->level && q->col > n->col && q->col <= c) return true;
    }
    for (int i = n->col; i < c; i++)
        if (busy_right(p, s, i, n->level, true, -1)) return true;
    return false;
}

/* Where the centre of column c stands at the least, so that collectives in one box with others fit
 * where the box ends in it. */
static double wide_boxes(BlockPen *p, const BlockFrame *f, int c) {
    double least = 0;
    for (int k = 0; k < f->strip->n; k++) {
        const BlockNode *n = node(p, f->strip->node[k]);
        if (n->kind == NODE_COLL && n->joined < 0 && n->col < c && n->col_last == c)
            least = fmax(least, f->centre[n->col] + block_box_width(p, n) -
                                    (f->width[n->col] + f->width[c]) / 2);
    }
    return least;
}

void block_columns(BlockPen *p, BlockFrame *f) {
    const BlockStrip *s = f->strip;
    const int cols = s->cols;
    f->centre = ARENA_ARRAY(p->g->arena, double, cols);
    f->width = ARENA_ARRAY(p->g->arena, double, cols);
    for (int c = 0; c < cols; c++) f->width[c] = c ? LANE : f->tight ? TIGHT_COL : COL_0;
    for (int k = 0; k < s->n; k++) {
        const BlockNode *n = node(p, s->node[k]);
        if (n->kind == NODE_INPUT) f->width[n->col] = fmax(f->width[n->col], block_box_width(p, n));
        if (n->kind == NODE_INPUT || n->col_last > n->col) continue;
        if (n->shared >= 0 || n->joined >= 0) continue; /* it has no box of its own */
        f->width[n->col] =
            fmax(f->width[n->col], fmax(f->tight ? TIGHT_COL : COL_N, block_box_width(p, n)));
    }
    f->stream = 14;
    f->centre[0] = (s->from >= 0 ? STREAM_ROOM : 0) + f->width[0] / 2;
    for (int c = 0; c + 1 < cols; c++) {
        f->centre[c + 1] = f->centre[c] + need_between(p, f, c);
        f->centre[c + 1] = fmax(f->centre[c + 1], wide_boxes(p, f, c + 1));
        for (int k = 0; k < s->n; k++) { /* a wire keeps right of labels two columns away, too */
            const BlockNode *n = node(p, s->node[k]);
            if (n->col < c && n->level >= 0 && busy_right(p, s, c, n->level, true, s->node[k]) &&
                !crossed(p, s, n, c))
                f->centre[c + 1] =
                    fmax(f->centre[c + 1], f->centre[n->col] + 14 + block_label_width(p, n) + 10);
        }
    }
}

/* ---- drawing ---- */

static double col_x(const BlockFrame *f, int c) { return f->x + f->centre[c]; }
static double row_top(const BlockFrame *f, int level) {
    return f->y +
           (level < f->strip->levels ? f->grid->top[f->row[level]] : f->grid->top[f->grid->n]);
}
/* Where the wires of node i turn into other columns under its level. */
static double turn_y(const BlockPen *p, const BlockFrame *f, int level, int i) {
    if (level < 0 && f->strip->from >= 0)
        return f->y + f->grid->head - (p->look->numbers ? 22 : 16);
    double bottom =
        level < 0 ? f->y + f->grid->head : row_bottom(f, level) + f->grid->gap[f->row[level]];
    double beside = enters_beside(p, f->strip, level) ? ENTRY : 0;
    return bottom - (p->look->numbers ? 14 : 10) - beside -
           BRANCH * branches(p, f->strip, level, i);
}

static void box_extent(const BlockFrame *f, const BlockNode *n, double *x, double *w) {
    double x0 = col_x(f, n->col) - f->width[n->col] / 2;
    double x1 = col_x(f, n->col_last) + f->width[n->col_last] / 2;
    *x = x0;
    *w = x1 - x0;
}

/* When a node's box and the value that it makes appear in a figure that builds up: steps of the
 * trace begin at 0, and inputs are there from the start. */
static int appears(const BlockNode *n) { return n->kind == NODE_INPUT ? 0 : n->step + 1; }

static void draw_box(BlockPen *p, const BlockFrame *f, int i) {
    const BlockNode *n = node(p, i);
    if (n->shared >= 0 || n->joined >= 0) return;
    scene_at(p->s, appears(n));
    double x, w, y = n->level < 0 ? f->y : row_top(f, n->level);
    box_extent(f, n, &x, &w);
    if (n->kind == NODE_INPUT) {
        double own = block_box_width(p, n);
        x = col_x(f, n->col) - own / 2;
        w = own;
        y = n->level < 0 ? f->y + f->grid->head - f->grid->head_gap - 22
                         : row_bottom(f, n->level) - 22;
    }
    block_box(p, n, x, y, w);
    if (n->kind == NODE_OP) block_leave(p, n, x + w, y, block_box_height(p->look, n));
    if (n->kind != NODE_COLL) return;
    const bool right = busy_right(p, f->strip, n->col_last, n->level, false, -1);
    const double sx = x + w + 14, left = left_room(p, f, n);
    if (left > 0 && (!right || block_reason_fits(p, n, left)))
        block_side(p, n, (SideRoom){SIDE_BOTH, sx, y, x - 10, left});
    else if (right || n->col) block_side(p, n, (SideRoom){SIDE_NARROW, sx, y, 0, side_room(f)});
    else block_side(p, n, (SideRoom){SIDE_RIGHT, sx, y, 0, 235});
}

static const char *value_tip(const BlockGraph *g, const BlockNode *n) {
    Arena *a = g->arena;
    if (!n->out) return n->name;
    const TraceShape *sh = &n->out->shape;
    const TraceLocal *l = words_find_local(sh, g->rank);
    Str s = str_new(a);
    str_addf(&s, "%s, whole %s", sh->name, words_shape(a, sh->global_shape, sh->nd));
    if (l) str_addf(&s, "\nhere %s, %s", words_shape(a, l->shape, sh->nd), bytes_text(l->bytes, a));
    for (int i = 0; i < sh->n_places; i++)
        str_addf(&s, "%s%s: %s", i ? ", " : "\n", sh->place[i].axis, sh->place[i].place);
    return s.s;
}

/* How many inputs before j come into the box from beside it. */
static int before(const BlockNode *q, int j) {
    int n = 0;
    for (int k = 0; k < j; k++) n += is_beside(q, k);
    return n;
}
/* Does the wire from node i to input j of node q go on to a box further down? */
static bool goes_on(const BlockPen *p, const BlockStrip *s, int i, int q, int j) {
    for (int k = 0; k < s->n; k++) {
        const BlockNode *r = node(p, s->node[k]);
        for (int m = 0; r->shared < 0 && r->level > node(p, q)->level && m < r->n_in; m++)
            if (r->in[m] == i && r->in_col[m] == node(p, q)->in_col[j]) return true;
    }
    return false;
}

/* How far to the right the boxes of column c between two levels reach, with their labels; negative:
 * something else stands beside them. */
static double reach_right(BlockPen *p, const BlockFrame *f, int c, int above, int below) {
    double x = 0;
    for (int k = 0; k < f->strip->n; k++) {
        const BlockNode *n = node(p, f->strip->node[k]);
        if (n->level <= above || n->level >= below || n->col > c || n->col_last < c) continue;
        if (n->kind != NODE_OP || n->op[0].n_leave || n->col != c || n->col_last != c) return -1;
        x = fmax(x, col_x(f, c) + fmax(f->width[c] / 2, 14 + block_label_width(p, n)));
    }
    return x;
}
/* A wire round boxes of one column keeps close to them where nothing stands between, though its
 * column is further off; negative: it does not. */
static double close_by(BlockPen *p, const BlockFrame *f, int i, int qi, int j) {
    enum { NEAR = 12 };
    const BlockNode *src = node(p, i), *q = node(p, qi);
    const int c = q->col, col = q->in_col[j];
    double left = col_x(f, c + 1);
    int lines = 0;
    if (i == f->strip->from || src->col != c || col <= c + 1 || q->level < src->level + 2)
        return -1;
    for (int k = 0; k < f->strip->n; k++) {
        const BlockNode *n = node(p, f->strip->node[k]);
        for (int m = 0; m < n->n_in; m++) lines += n->in[m] == i && n->in_col[m] == col;
        if (n->level > src->level && n->level <= q->level && n->col == c + 1)
            left = col_x(f, c + 1) - f->width[c + 1] / 2;
    }
    const double right = reach_right(p, f, c, src->level, q->level);
    return lines == 1 && right > 0 && left - right > 2 * NEAR ? right + NEAR : -1;
}

/* The wire from the output of node i (the tap of the stream if it is the strip's source) to input j
 * of node q. */
static void draw_wire(BlockPen *p, const BlockFrame *f, int i, int qi, int j) {
    const BlockNode *q = node(p, qi), *src = node(p, i);
    bool tap = i == f->strip->from;
    int level = tap ? -1 : src->level, from_col = tap ? -1 : src->col, col = q->in_col[j];
    double y1 = row_top(f, q->level), x1 = col_x(f, col);
    bool max, partial = src->out && words_pending(&src->out->shape, &max);
    Pt pt[6];
    int n = 0;
    double sx = tap ? f->x + f->stream : col_x(f, from_col), ty = turn_y(p, f, level, i);
    double sy = tap                       ? ty
                : src->kind == NODE_INPUT ? p->s->groups[p->group[i]].y + 22
                                          : row_top(f, level) + block_box_height(p->look, src);
    bool straight = !tap && col == from_col, inside = col >= q->col && col <= q->col_last;
    if (!straight && !inside && q->level == level + 1) { /* just below: no need to go round */
        x1 = col_x(f, q->col) + 24 + 12 * j;
        inside = true;
    }
    const double near = inside ? -1 : close_by(p, f, i, qi, j);
    if (near > 0) x1 = near;
    if (straight && partial) sx -= 2.25, x1 -= 2.25;
    pt[n++] = (Pt){sx, straight ? sy : ty};
    if (!straight) pt[n++] = (Pt){x1, ty};
    if (!inside) {
        double tx = col_x(f, q->col) + 24 + 12 * j,
               beside = y1 - ENTRY_RISE - BRANCH * before(q, j);
        pt[n++] = (Pt){x1, beside};
        pt[n++] = (Pt){tx, beside};
        if (straight && goes_on(p, f->strip, i, qi, j))
            scene_circle(p->s, x1, beside, 2.6, (Look){ROLE_INK, ROLE_NONE, 0});
        x1 = tx;
    }
    pt[n++] = (Pt){x1, y1};
    if (!straight && !tap) {
        bool has_straight =
            false; /* then the branch starts on that wire, with a dot; else it starts at the box */
        for (int k = 0; k < f->strip->n; k++) {
            const BlockNode *r = node(p, f->strip->node[k]);
            for (int m = 0; m < r->n_in; m++)
                has_straight |= r->in[m] == i && r->in_col[m] == from_col;
        }
        if (!has_straight) scene_segment(p->s, (Pt){sx, sy}, (Pt){sx, ty}, ROLE_INK, 1.5);
        else scene_circle(p->s, sx, ty, 2.6, (Look){ROLE_INK, ROLE_NONE, 0});
    }
    scene_arrow(p->s, pt, n, (ArrowLook){ROLE_INK, 1.5, false, partial && straight}, p->group[qi]);
    if (tap) scene_circle(p->s, sx, ty, 4, (Look){ROLE_INK, ROLE_NONE, 0});
}

static void draw_output(BlockPen *p, const BlockFrame *f, int i) {
    const BlockNode *n = node(p, i);
    double top = n->kind == NODE_INPUT ? p->s->groups[p->group[i]].y + 22 : row_bottom(f, n->level);
    scene_at(p->s, appears(n));
    scene_begin(p->s, "edge", arena_printf(p->g->arena, "value-%s-%d", n->name, n->step),
                value_tip(p->g, n));
    bool read = false;
    for (int k = 0; k < f->strip->n; k++) {
        const BlockNode *q = node(p, f->strip->node[k]);
        for (int j = 0; j < q->n_in; j++)
            if (q->in[j] == i && q->shared < 0)
                draw_wire(p, f, i, f->strip->node[k], j), read = true;
    }
    if (block_ends_here(n)) { /* it has left to the right */
        scene_end(p->s);
        return;
    }
    if (!read && i != f->strip->last) { /* read by nothing that is drawn: an open end */
        double x = col_x(f, n->col), y = row_top(f, n->level) + block_box_height(p->look, n);
        Pt pt[2] = {{x, y}, {x, top + p->look->gap - 6}};
        scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, false}, -1);
    }
    block_label(p, n, n->kind == NODE_INPUT ? NULL : block_read(p->g, n),
                col_x(f, n->col) + (n->col ? 12 : 14), top + p->look->sym, top + p->look->num);
    scene_end(p->s);
}

/* A line of a value, from point k of its mark on: upright, or level. */
static bool runs(const Mark *m, int k, bool upright) {
    if (m->kind != MARK_LINE || m->stroke != ROLE_INK || m->line != 1.5 || m->n_dash) return false;
    const Pt a = m->pt[k], b = m->pt[k + 1];
    return upright ? a.x == b.x && a.y != b.y : a.y == b.y && a.x != b.x;
}
/* Do they cross, away from the ends of both? */
static bool cross(const Pt *up, const Pt *level) {
    enum { AWAY = 6 }; /* room for the bridge above an arrow head and beside a corner */
    return up->x > fmin(level[0].x, level[1].x) + AWAY &&
           up->x < fmax(level[0].x, level[1].x) - AWAY &&
           level->y > fmin(up[0].y, up[1].y) + AWAY && level->y < fmax(up[0].y, up[1].y) - AWAY;
}
/* The line of mark m at a point runs over what it crosses there. */
static void bridge(Scene *s, int m, Pt at, int step) {
    const Pt a = {at.x, at.y - 4}, b = {at.x, at.y + 4};
    scene_at(s, step);
    scene_begin(s, "edge", "bridge", s->groups[s->marks[m].group].tip);
    scene_segment(s, a, b, ROLE_PAPER, 7)->ground = true;
    scene_segment(s, a, b, ROLE_INK, 1.5);
    scene_end(s);
}
/* From point k of mark m on its line is upright: over the level lines of other values, of marks
 * [first, end). */
static void bridges_of(Scene *s, int m, int k, int first, int end) {
    for (int j = first; j < end; j++)
        for (int l = 0; l + 1 < s->marks[j].n && s->marks[j].group != s->marks[m].group; l++) {
            const Pt *up = s->marks[m].pt + k, *level = s->marks[j].pt + l;
            const int a = s->marks[m].step, b = s->marks[j].step;
            if (runs(&s->marks[j], l, false) && cross(up, level))
                bridge(s, m, (Pt){up->x, level->y}, a > b ? a : b);
        }
}
static void bridges(Scene *s, int first) {
    const int end = s->n_marks;
    for (int m = first; m < end; m++)
        for (int k = 0; k + 1 < s->marks[m].n; k++)
            if (runs(&s->marks[m], k, true)) bridges_of(s, m, k, first, end);
    scene_at(s, 0);
}

static void stream_head(BlockPen *p, const BlockFrame *f) {
    const BlockNode *src = node(p, f->strip->from);
    double x = f->x + f->stream, y = f->y + 12, lx = f->x + 36.5;
    bool small = !p->look->numbers;
    scene_at(p->s, appears(src));
    furniture_state(p->s, p->g->arena, (Pt){x, y}, 12, f->in_name, value_tip(p->g, src));
    scene_begin(p->s, "edge", arena_printf(p->g->arena, "stream-%d", f->strip->to),
                value_tip(p->g, src));
    if (!small)
        scene_text(p->s, lx, y + 5, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, f->strip->title);
    block_label(p, src, src->out, lx, small ? y + 4.5 : y + 27, y + 42);
    if (block_is_open(f->strip)) /* of another, its tail draws the stream */
        scene_segment(p->s, (Pt){x, f->y + 24}, (Pt){x, turn_y(p, f, -1, f->strip->from)}, ROLE_INK,
                      3);
    scene_end(p->s);
}

static void plus_mark(BlockPen *p, double x, double y, const BlockNode *n) {
    Str tip = str_new(p->g->arena);
    str_addf(&tip, "step %d: residual add", n->step);
    tip_add(&tip, "output", n->op[0].c->output);
    scene_begin(p->s, "compute", arena_printf(p->g->arena, "step-%d", n->step), tip.s);
    p->group[n - p->g->node] = p->s->open;
    scene_frame(p->s, x - 10, y - 10, 20, 20);
    scene_circle(p->s, x, y, 9, (Look){ROLE_PAPER, ROLE_INK, 1.5});
    scene_segment(p->s, (Pt){x - 5.4, y}, (Pt){x + 5.4, y}, ROLE_INK, 1.5);
    scene_segment(p->s, (Pt){x, y - 5.4}, (Pt){x, y + 5.4}, ROLE_INK, 1.5);
    scene_end(p->s);
}

/* The residual stream from circle to circle, and the way of the last value back into it. */
static void stream_tail(BlockPen *p, const BlockFrame *f) {
    const BlockStrip *s = f->strip;
    const BlockNode *to = node(p, s->to), *last = node(p, s->last);
    double x = f->x + f->stream, bottom = f->y + f->grid->top[f->grid->n],
           py = bottom + (p->look->numbers ? 32 : 28);
    double end = f->y + block_height(p, f) - (p->look->numbers ? 12 : 0);
    int target = -1;
    scene_at(p->s, appears(to));
    plus_mark(p, x, py, to);
    scene_at(p->s, appears(node(p, s->from))); /* the stream is there from end to end */
    if (p->look->numbers) {
        target = p->s->n_groups;
        furniture_state(p->s, p->g->arena, (Pt){x, end}, 12, f->out_name, value_tip(p->g, to));
        end -= 12.9;
    }
    scene_begin(p->s, "stream", arena_printf(p->g->arena, "residual-%d", s->to), "residual stream");
    scene_segment(p->s, (Pt){x, f->y + 24}, (Pt){x, py - 9}, ROLE_INK, 3);
    Pt out[2] = {{x, py + 9}, {x, end}};
    scene_arrow(p->s, out, 2, (ArrowLook){ROLE_INK, 3, true, false}, target);
    scene_at(p->s, appears(last));
    bool max, partial = last->out && words_pending(&last->out->shape, &max);
    double lx = col_x(f, last->col), by = row_top(f, last->level) + block_box_height(p->look, last);
    Pt back[3] = {{lx, by}, {lx, py}, {x + 10, py}};
    scene_arrow(p->s, back, 3, (ArrowLook){ROLE_INK, 1.5, false, partial}, p->group[s->to]);
    scene_end(p->s);
    if (f->note && target >= 0)
        scene_text(p->s, x + 20, end + 17.2, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   f->note);
}

/* The title of the strip whose stream begins with the last value, where a pill at the top of this
 * strip has its name already; NULL: none, and the value has a pill of its own. */
static const char *goes_into(const BlockGraph *g, const BlockStrip *s) {
    const char *name = block_value(g, g->node[s->last].name);
    bool said = false;
    for (int k = 0; k < s->n; k++)
        said |= g->node[s->node[k]].kind == NODE_INPUT &&
                !strcmp(block_value(g, g->node[s->node[k]].name), name);
    for (int i = 0; said && i < g->n_strips; i++)
        if (g->strip[i].from == s->last) return g->strip[i].title;
    return NULL;
}

/* A plain chain ends in a pill with the name of its last value, or says where it goes on. */
static void plain_tail(BlockPen *p, const BlockFrame *f) {
    const BlockNode *last = node(p, f->strip->last);
    double x = col_x(f, last->col), y = row_bottom(f, last->level) + p->look->gap;
    const char *into = goes_into(p->g, f->strip);
    const char *name =
        into ? arena_printf(p->g->arena, "into %s", into) : block_pill_words(p->g, last);
    const TextLook look = {ALIGN_MIDDLE, 12.5, into ? REGULAR : SEMIBOLD,
                           into ? ROLE_SECOND : ROLE_INK};
    double w = fmax(24, scene_width(p->s, 12.5, SEMIBOLD, name) + 20);
    scene_at(p->s, appears(last));
    scene_begin(p->s, "output", arena_printf(p->g->arena, "output-%s", last->name),
                value_tip(p->g, last));
    scene_frame(p->s, x - w / 2, y, w, 22);
    if (!into) scene_rect(p->s, (Area){x - w / 2, y, w, 22}, 11, (Look){ROLE_PAPER, ROLE_INK, 1.5});
    scene_text(p->s, x, y + 15.4, look, name);
    int group = p->s->open;
    bool max, partial = last->out && words_pending(&last->out->shape, &max);
    double px = partial ? x - 2.25 : x;
    Pt pt[2] = {{px, row_top(f, last->level) + block_box_height(p->look, last)}, {px, y}};
    scene_arrow(p->s, pt, 2, (ArrowLook){ROLE_INK, 1.5, false, partial}, group);
    scene_end(p->s);
    if (f->note)
        scene_text(p->s, x + w / 2 + 10, y + 15.2, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND},
                   f->note);
}

void block_strip(BlockPen *p, BlockFrame *f) {
    const BlockStrip *s = f->strip;
    if (s->from >= 0) stream_head(p, f);
    else if (p->look->numbers)
        scene_text(p->s, f->x, f->y + 17, (TextLook){ALIGN_LEFT, 15, BOLD, ROLE_INK}, s->title);
    for (int k = 0; k < s->n; k++) draw_box(p, f, s->node[k]);
    for (int k = 0; k < s->n; k++) {
        const BlockNode *n = node(p, s->node[k]);
        if (n->shared >= 0) p->group[s->node[k]] = p->group[n->shared];
        if (n->joined >= 0) p->group[s->node[k]] = p->group[n->joined];
    }
    const int lines = p->s->n_marks;
    if (s->from >= 0) {
        scene_at(p->s, appears(node(p, s->from)));
        scene_begin(p->s, "edge", "tap", value_tip(p->g, node(p, s->from)));
        for (int k = 0; k < s->n; k++)
            for (int j = 0; j < node(p, s->node[k])->n_in; j++)
                if (node(p, s->node[k])->in[j] == s->from && node(p, s->node[k])->shared < 0)
                    draw_wire(p, f, s->from, s->node[k], j);
        scene_end(p->s);
    }
    for (int k = 0; k < s->n; k++) draw_output(p, f, s->node[k]);
    bridges(p->s, lines);
    if (s->last >= 0 && s->to >= 0) stream_tail(p, f);
    else if (s->last >= 0 && !block_ends_here(node(p, s->last))) plain_tail(p, f);
    const int end = s->last >= 0 ? node(p, s->last)->col : 0;
    if (open_note(p, f))
        scene_text(p->s, col_x(f, end) - f->width[end] / 2, row_bottom(f, s->levels - 1) + 18,
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_SECOND}, f->note);
    scene_at(p->s, 0);
}
