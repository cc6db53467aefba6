/* What stands in and beside the boxes of a block picture: op names, weights with their ghost,
 * collectives with pill, members, map and reason, labels of edges. Everything printed is a field of
 * the trace; cut short only where the tooltip has it all. */
#include "render/furniture/hexagon.h"
#include "render/block/block_draw.h"
#include "base/text.h"
#include "render/graph/grads.h"
#include "render/graph/unlike.h"
#include <math.h>
#include <string.h>

enum {
    GHOST = 28,
    GHOST_MIN = 11,
    SHEETS = 4,
    SHEET = 3,
    FETCH = 22,      /* room for the hexagon of what brings a weight */
    FETCH_HIGH = 17, /* its height */
    FETCH_SIDE = 6,  /* between it and the border of the box */
    FETCH_CODE = 40  /* width of one that says its code only */
};

static const TraceParam *matrix_of(const BlockOp *op) {
    for (int i = 0; i < op->n_param; i++)
        if (op->param[i]->compute.nd >= 2) return op->param[i];
    return NULL;
}

static bool is_plus(const BlockOp *op) { return op->c->glyph && !strcmp(op->c->glyph, "plus"); }

/* Does the step do the backward of an op, and not add up what such steps make? */
static bool is_adjoint(const TraceCompute *c) {
    const bool back = c->pass == PHASE_BACKWARD || c->pass == PHASE_GRADIENTS;
    return back && subject_is_gradient(c->makes) && !trace_adds_uses(c);
}
/* Does another box begin with the same words for the same value? Then neither word says which part
 * of it is whose. */
static bool has_namesake(const BlockGraph *g, const BlockNode *n) {
    for (int i = 0; i < g->n && n->n_in == 1; i++) {
        const BlockNode *o = &g->node[i];
        if (o == n || o->kind != NODE_OP || o->alias != i || o->strip != n->strip || !o->n_in)
            continue;
        if (block_real(g, o->in[0]) == block_real(g, n->in[0]) && o->n_in == n->n_in &&
            text_same(o->op[0].c->label, n->op[0].c->label) &&
            !text_same(o->op[0].c->output, n->op[0].c->output))
            return true;
    }
    return false;
}

/* On the way back a weight is read again: what comes in times it is what goes out. Its own gradient
 * leaves beside the box. */
static const char *via_weight(Arena *a, const BlockOp *op, const char *weight) {
    const bool own = op->c->makes.role == OF_PARAM_GRADIENT;
    return arena_printf(a, "%s via %s", own ? "dw" : "dx", weight);
}

const char *block_op_name(const BlockGraph *g, const BlockNode *n, const BlockOp *op) {
    Arena *a = g->arena;
    const char *label = words_op(a, op->c);
    if (is_adjoint(op->c)) label = words_adjoint(a, label);
    if (matrix_of(op)) {
        const char *leaf = words_weight(a, op->c->module, matrix_of(op));
        if (!*leaf) leaf = label;
        if (is_adjoint(op->c) && !is_plus(op)) leaf = via_weight(a, op, leaf);
        if (n->twin < 0 || op != n->op) return leaf;
        const BlockOp *o = &g->node[n->twin].op[0];
        return arena_printf(a, "%s, %s", leaf, words_leaf(o->c->module ? o->c->module : ""));
    }
    if (is_plus(op) && op->n_param) label = "+ bias";
    if (op->only) return arena_printf(a, "%s on %s", label, op->only);
    if (op == n->op && n->twin < 0 && !op->n_param && op->c->makes.role != OF_GRADIENT &&
        has_namesake(g, n))
        return arena_printf(a, "%s: %s", label, words_leaf(op->c->output));
    /* heads: what an op without weights reads per head */
    const TraceValue *v = n->n_in && !op->n_param ? g->node[n->in[0]].out : NULL;
    if (block_same_shape(g, v, n->out) && op->c->makes.role == OF_GRADIENT)
        return label;                                  /* a sum */
    if (text_same(op->c->glyph, "view")) return label; /* puts together, computes nothing */
    for (int i = 0; v && n->n_in > 1 && op == n->op && i < v->shape.nd; i++) {
        const char *base = words_base(a, v->shape.dim_symbol[i]);
        const TraceLocal *l = words_find_local(&v->shape, g->rank);
        if (strcmp(base, "H") || !l) continue;
        long long have = (long long)l->shape[i], all = (long long)v->shape.global_shape[i];
        return have == all ? arena_printf(a, "%s, %lld heads", label, all)
                           : arena_printf(a, "%s, %lld of %lld heads", label, have, all);
    }
    return label;
}

const TraceValue *block_read(const BlockGraph *g, const BlockNode *n) {
    return n->n_in ? g->node[n->in[0]].out : NULL;
}

/* ---- labels of edges ---- */

/* "[b/dp, t, D]" as runs; `bold`, `under`: bits of the dims that are bold, underlined. Returns the
 * number of runs, at most SHAPE_RUNS - 1. */
static int shape_runs(Arena *a, Run *run, const TraceShape *sh, unsigned bold, unsigned under,
                      int weight) {
    const Role role = ROLE_INK;
    int n = 0;
    if (!sh->nd) {
        run[n++] = (Run){"one number", weight, role, false, false};
        return n;
    }
    run[n++] = (Run){"[", weight, role, false, false};
    for (int i = 0; i < sh->nd; i++) {
        bool b = bold >> i & 1;
        if (i) run[n++] = (Run){", ", weight, role, false, false};
        run[n++] = (Run){words_symbol(a, sh->dim_symbol[i] ? sh->dim_symbol[i] : "?"),
                         b ? BOLD : weight, role, under >> i & 1, false};
    }
    run[n++] = (Run){"]", weight, role, false, false};
    return n;
}

enum { SHAPE_RUNS = 2 * TRACE_MAX_DIMS + 4 };

/* "4 KiB", "2 × 4 KiB" of twins, "4 KiB + 128 B" of rows and the index list that comes with them.
 */
static const char *bytes_words(const BlockGraph *g, const BlockNode *n, int64_t own) {
    const int64_t more = block_bytes(g, n) - own;
    const char *one = bytes_text(own, g->arena);
    if (more == own) return arena_printf(g->arena, "2 × %s", one);
    return more ? arena_printf(g->arena, "%s + %s", one, bytes_text(more, g->arena)) : one;
}
/* "[1, 16, 128, 8]", "[1, 16, 128, 128 | 64]" of twins that differ in a dim. */
static const char *sizes_words(const BlockGraph *g, const BlockNode *n, const TraceLocal *l) {
    const int dim = block_twin_dim(g, n), nd = n->out->shape.nd;
    const TraceLocal *y = dim >= 0 ? words_find_local(&g->node[n->twin].out->shape, g->rank) : NULL;
    if (!y || y->shape[dim] == l->shape[dim]) return words_shape(g->arena, l->shape, nd);
    Str s = str_new(g->arena);
    for (int i = 0; i < nd; i++) {
        str_addf(&s, "%s%lld", i ? ", " : "[", (long long)l->shape[i]);
        if (i == dim) str_addf(&s, " | %lld", (long long)y->shape[i]);
    }
    str_add(&s, "]");
    return s.s;
}
static const char *numbers(const BlockGraph *g, const BlockNode *n) {
    const TraceLocal *l = n->out ? words_find_local(&n->out->shape, g->rank) : NULL;
    if (!l) return "";
    if (!n->out->shape.nd) return bytes_text(l->bytes, g->arena);
    return arena_printf(g->arena, "%s   %s", sizes_words(g, n, l), bytes_words(g, n, l->bytes));
}

static const char *pending_words(const BlockGraph *g, const BlockNode *n) {
    bool max = false;
    const char *p = n->out ? words_pending(&n->out->shape, &max) : NULL;
    return p ? arena_printf(g->arena, "%s %s pending", max ? "max" : "Σ",
                            words_axis_list(g->arena, g->t, p))
             : NULL;
}

/* The symbols of an edge; "[B, S, H, dn | dv]" where twins differ in one dim. */
static int label_runs(const BlockGraph *g, const BlockNode *n, Run *run, unsigned bold) {
    TraceShape sh = n->out->shape;
    const int dim = block_twin_dim(g, n);
    const char *symbol[TRACE_MAX_DIMS];
    for (int i = 0; i < sh.nd; i++) symbol[i] = sh.dim_symbol[i];
    if (dim >= 0)
        symbol[dim] = arena_printf(g->arena, "%s | %s", symbol[dim],
                                   g->node[n->twin].out->shape.dim_symbol[dim]);
    for (int i = 0; i < sh.nd; i++) sh.dim_symbol[i] = symbol[i];
    return shape_runs(g->arena, run, &sh, bold, 0, MEDIUM);
}

static double pending_size(const BlockPen *p) { return p->look->numbers ? 11.5 : 12; }

double block_label_width(BlockPen *p, const BlockNode *n) {
    Run run[SHAPE_RUNS];
    if (!n->out) return 0;
    int k = label_runs(p->g, n, run, ~0u);
    double sym = fonts_width(p->s->fonts, run, k, 12.5);
    if (n->role) sym += scene_width(p->s, 12.5, SEMIBOLD, n->role) + 6;
    const char *pend = pending_words(p->g, n);
    double extra = pend ? 9 + scene_width(p->s, pending_size(p), SEMIBOLD, pend) : 0;
    if (!p->look->numbers) return sym + extra;
    return fmax(sym, scene_width(p->s, 11.5, REGULAR, numbers(p->g, n)) + extra);
}

/* How a value, and its twin, stand to the other plan's. */
static Likeness value_likeness(const BlockPen *p, const BlockNode *n) {
    const TraceValue *twin = n->twin >= 0 ? p->g->node[n->twin].out : NULL;
    const Likeness own = unlike_value(p->c, p->g, n->out);
    return twin ? figure_likeness(own, unlike_value(p->c, p->g, twin)) : own;
}

void block_label(BlockPen *p, const BlockNode *n, const TraceValue *from, double x, double sym,
                 double num) {
    Run run[SHAPE_RUNS];
    if (!n->out) return;
    unsigned bold = block_changed(from, n->out);
    if (bold) p->legend |= 1u << LEGEND_CHANGED;
    int k = label_runs(p->g, n, run, bold);
    double role = n->role
                      ? 6 + scene_text(p->s, x, sym,
                                       (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK}, n->role)
                      : 0;
    double w = role + scene_runs(p->s, (Pt){x + role, sym}, ALIGN_LEFT, 12.5, run, k);
    const char *pend = pending_words(p->g, n);
    double px = x + w;
    if (p->look->numbers)
        px = x + scene_text(p->s, x, num, (TextLook){ALIGN_LEFT, 11.5, REGULAR, ROLE_SECOND},
                            numbers(p->g, n));
    figure_unlike(p->s, (Pt){x, (p->look->numbers ? num : sym) + 3.2}, px - x, value_likeness(p, n),
                  &p->legend);
    if (!pend) return;
    bool max;
    const char *axes = words_pending(&n->out->shape, &max);
    scene_text(
        p->s, px + 9, p->look->numbers ? num : sym,
        (TextLook){ALIGN_LEFT, pending_size(p), SEMIBOLD,
                   ROLE_AXIS_TEXT + theme_axis(words_color_axis(p->g->arena, p->g->t, axes, axes))},
        pend);
    p->legend |= 1u << LEGEND_PARTIAL;
}

/* ---- weights ---- */

static int64_t coordinate(const Trace *t, const char *axis, int64_t rank, int64_t *size) {
    int64_t stride = 1;
    for (int i = t->n_axes - 1; i >= 0; i--) {
        if (!strcmp(t->axes[i].name, axis)) {
            *size = t->axes[i].size;
            return rank / stride % t->axes[i].size;
        }
        stride *= t->axes[i].size;
    }
    *size = 1;
    return 0;
}

/* First element of the rank's block of a dim, as a share of the whole. */
static double block_start(const BlockGraph *g, const TraceShape *sh, int dim, double share) {
    const char *want = arena_printf(g->arena, "shard(%d)", dim);
    int64_t index = 0, size;
    for (int i = 0; i < sh->n_places; i++) {
        if (!sh->place[i].place || strcmp(sh->place[i].place, want)) continue;
        int64_t c = coordinate(g->t, sh->place[i].axis, g->rank, &size);
        index = index * size + c;
    }
    return fmin((double)index * share, 1 - share);
}

/* How the op's weight lies: not as a claim about it says, where it is read from where it rests. */
static const TraceShape *weight_shape(const BlockOp *op, const TraceParam *w) {
    return op->claim >= 0 && !op->fetch && w->rest.nd == w->compute.nd ? &w->rest : &w->compute;
}

/* Behind the matrix of an expert those of the others, seen at their edges: of all sheets so many
 * are filled as the rank has of the experts. */
static void sheets_behind(BlockPen *p, const TraceShape *sh, const TraceLocal *l, Area front) {
    double share = 1;
    for (int i = 0; i < sh->nd - 2; i++) share *= (double)l->shape[i] / (double)sh->global_shape[i];
    if (sh->nd < 3) return;
    int own = share < 1 ? (int)fmin(SHEETS - 1, fmax(1, round(share * SHEETS))) : SHEETS;
    for (int i = SHEETS - 1; i > 0; i--)
        scene_rect(p->s, (Area){front.x + i * SHEET, front.y - i * SHEET, front.w, front.h}, 0,
                   (Look){i < own ? ROLE_WEIGHT_FILL : ROLE_WEIGHT_REST, ROLE_WEIGHT_LINE, 0.75});
    p->legend |= 1u << LEGEND_EXPERTS;
}

/* The whole weight in true aspect (no side under 11), its longer side `size`, with the rank's part
 * filled; of experts' the matrix of one, and the others behind it. */
static void ghost(BlockPen *p, const TraceShape *sh, double right, double mid, double size) {
    const TraceLocal *l = words_find_local(sh, p->g->rank);
    int d0 = sh->nd - 2, d1 = sh->nd - 1;
    double r = (double)sh->global_shape[d0], c = (double)sh->global_shape[d1];
    if (!l || !(r > 0 && c > 0)) return;
    double behind = sh->nd > 2 ? (SHEETS - 1) * SHEET : 0;
    size -= behind, right -= behind, mid += behind / 2;
    double k = size / fmax(r, c), gh = fmax(GHOST_MIN, r * k), gw = fmax(GHOST_MIN, c * k);
    double x = right - (size + gw) / 2, y = mid - gh / 2;
    double fr = fmin(1, (double)l->shape[d0] / r), fc = fmin(1, (double)l->shape[d1] / c);
    sheets_behind(p, sh, l, (Area){x, y, gw, gh});
    scene_rect(p->s, (Area){x, y, gw, gh}, 0, (Look){ROLE_WEIGHT_REST, ROLE_WEIGHT_LINE, 1.25});
    int64_t rows = words_blocks(sh->dim_symbol[d0]),
            cols = words_blocks(sh->dim_symbol[d1]); /* packed blocks */
    if (fr >= 1) rows = 1;
    if (fc >= 1) cols = 1;
    for (int64_t i = 0; i < rows * cols; i++) {
        double bx = x + gw * (double)(i % cols) / (double)cols,
               by = y + gh * (double)(i / cols) / (double)rows;
        scene_rect(p->s,
                   (Area){bx + gw * block_start(p->g, sh, d1, fc) / (double)cols,
                          by + gh * block_start(p->g, sh, d0, fr) / (double)rows,
                          gw * fc / (double)cols, gh * fr / (double)rows},
                   0, (Look){ROLE_WEIGHT_FILL, ROLE_WEIGHT_LINE, 1.25});
    }
    p->legend |= 1u << LEGEND_WEIGHT;
}

/* "[H·d/tp, D]   [2048, 4096]" with the contracted dim underlined. */
static int weight_runs(BlockPen *p, const BlockNode *n, const BlockOp *op, const TraceParam *w,
                       Run *run) {
    const TraceShape *sh = weight_shape(op, w);
    const TraceValue *made = trace_value(p->g->t, op->c->output, op->c->step);
    unsigned summed = is_plus(op) ? 0 : block_contracted(p->g->arena, w, made ? made : n->out);
    int k = shape_runs(p->g->arena, run, sh, 0, summed, REGULAR);
    if (summed) p->legend |= 1u << LEGEND_SUMMED;
    const TraceLocal *l = words_find_local(sh, p->g->rank);
    if (l)
        run[k++] =
            (Run){arena_printf(p->g->arena, "   %s", words_shape(p->g->arena, l->shape, sh->nd)),
                  REGULAR, ROLE_INK, false, false};
    return k;
}

/* A box has a line for the collective that brings its weight, and often those of the whole block
 * with it. */
static bool shows_fetch(const BlockLook *l, const BlockOp *op) { return op->fetch && l->numbers; }

static const char *fetch_words(const BlockGraph *g, const BlockNode *n, const BlockOp *op) {
    const TraceCollective *f = op->fetch;
    const CollWord *w = coll_word(f->op);
    bool two = n->twin >= 0 && !op->only;
    const char *name = w ? w->name : f->op, *over = words_axis_list(g->arena, g->t, f->axis);
    if (wrong_skipped(f)) return arena_printf(g->arena, "%s over %s missing", name, over);
    return arena_printf(g->arena, "%s over %s first, sends %s%s", name, over, two ? "2 × " : "",
                        bytes_text(f->bytes_sent, g->arena));
}

/* What it reads of the forward pass, in w: by name, or how many there are. */
static const char *saved_words(const BlockPen *p, const BlockOp *op, double w) {
    const char *with = arena_printf(p->g->arena, "with saved %s", op->saved);
    if (scene_width(p->s, 11.5, REGULAR, with) <= w) return with;
    if (scene_width(p->s, 11.5, REGULAR, with + strlen("with ")) <= w)
        return with + strlen("with ");
    int n = 1;
    for (const char *q = op->saved; *q; q++) n += *q == ',';
    return arena_printf(p->g->arena, n == 1 ? "with a saved value" : "with %d saved values", n);
}

static double fetch_width(const BlockPen *p, const BlockNode *n, const BlockOp *op) {
    return scene_width(p->s, 11.5, REGULAR, fetch_words(p->g, n, op)) + FETCH_HIGH + 2 * FETCH_SIDE;
}
/* A collective is no compute: it has its own shape in the box of the op that waits for it, above
 * what that reads of the forward pass. Its number stands at the box. */
static void fetch_hexagon(BlockPen *p, const BlockNode *n, const BlockOp *op, Area box) {
    double y = box.y + box.h - FETCH - (op->saved ? 15 : 0) + 1;
    Hexagon h = hexagon_of(op->fetch, box.x + FETCH_SIDE, y, box.w - 2 * FETCH_SIDE, FETCH_HIGH);
    h.wrong = wrong_number(p->g->wrong, op->fetch->step) > 0;
    h.line[0] = (HexagonLine){fetch_words(p->g, n, op), y + FETCH_HIGH / 2.0 + 4.1, 11.5, REGULAR};
    hexagon_draw(p->s, &h, &p->legend);
}
/* On a slide its code, left of x; the subtitle says what that is. */
static void fetch_code(BlockPen *p, const BlockOp *op, double x, double mid) {
    const CollWord *w = coll_word(op->fetch->op);
    Hexagon h =
        hexagon_of(op->fetch, x - FETCH_CODE, mid - FETCH_HIGH / 2.0, FETCH_CODE, FETCH_HIGH);
    h.wrong = wrong_number(p->g->wrong, op->fetch->step) > 0;
    h.line[0] = (HexagonLine){w ? w->code : "", mid + 4.3, 12, REGULAR};
    hexagon_draw(p->s, &h, &p->legend);
}
/* Has a box of a slide room for it beside words of that width? */
static bool has_code(const BlockPen *p, const BlockOp *op, double room) {
    return op->fetch && !p->look->numbers && room >= FETCH_CODE + FETCH_SIDE;
}

static void weight_box(BlockPen *p, const BlockNode *n, const BlockOp *op, Area box) {
    double x = box.x, y = box.y, w = box.w, h = box.h;
    const TraceParam *m = matrix_of(op);
    bool two = p->look->numbers;
    double body = h - (shows_fetch(p->look, op) ? FETCH : 0) - (op->saved && two ? 15 : 0);
    const char *name = block_op_name(p->g, n, op), *style = words_style(m->style);
    double base = two ? y + 17 : y + body / 2 + 4.5;
    Run run[SHAPE_RUNS];
    double tw =
        scene_text(p->s, x + 10, base, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK}, name);
    const bool code = has_code(p, op, w - tw - 17 - GHOST);
    const double room = w - tw - 17 - GHOST - 16 - (code ? FETCH_CODE : 0);
    if (code) fetch_code(p, op, x + w - GHOST - 9, y + body / 2);
    const bool told = two || p->g->pass == PHASE_FORWARD; /* on a slide of all boxes or of none */
    if (style && told && scene_width(p->s, 12, REGULAR, style) <= room)
        scene_text(p->s, x + 10 + tw + 7, base,
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_COMPUTE_NOTE}, style);
    if (two)
        scene_runs(p->s, (Pt){x + 10, y + 34}, ALIGN_LEFT, 11.5, run,
                   weight_runs(p, n, op, m, run));
    if (op->fetch && two) fetch_hexagon(p, n, op, box);
    if (op->saved && two)
        scene_text(p->s, x + 10, y + h - 8,
                   (TextLook){ALIGN_LEFT, 11.5, REGULAR, ROLE_COMPUTE_NOTE},
                   saved_words(p, op, w - 20));
    ghost(p, weight_shape(op, m), x + w - 9, y + body / 2, two ? GHOST : 20);
}

/* ---- boxes ---- */

/* The height of the part of a node's box that op i has. */
static double op_height(const BlockLook *l, const BlockNode *n, int i) {
    const BlockOp *op = &n->op[i];
    double h = matrix_of(op)                            ? l->weight
               : i                                      ? l->abut
               : n->col_last > n->col || n->shared >= 0 ? l->joint
                                                        : l->op;
    return h + (shows_fetch(l, op) ? FETCH : 0) + (op->saved && l->numbers ? 15 : 0);
}

double block_box_height(const BlockLook *l, const BlockNode *n) {
    if (n->kind == NODE_COLL) return l->coll;
    if (n->kind == NODE_MOVE) return l->move;
    if (n->kind == NODE_INPUT) return 22;
    double h = 0;
    for (int i = 0; i < n->n_op; i++) {
        if (!l->numbers && i) break;
        h += op_height(l, n, i);
    }
    return h + (!l->numbers && n->n_op > 1 ? l->abut : 0);
}

/* What the plan calls a norm whose gradient leaves beside its box: "attention_norm"; "" of others.
 */
static const char *norm_note(const BlockGraph *g, const BlockOp *op) {
    const TraceParam *p = op->n_leave ? trace_param(g->t, op->leave[0].made->makes.of) : NULL;
    if (!p || p->compute.nd != 1 || matrix_of(op) || is_plus(op)) return "";
    return grads_note(g->arena, p, op->c->label);
}

const char *block_pill_words(const BlockGraph *g, const BlockNode *n) {
    const char *own = block_value(g, n->name);
    if (n->twin < 0) return own;
    const char *other = block_value(g, g->node[n->twin].name);
    return strcmp(own, other) ? arena_printf(g->arena, "%s, %s", own, other) : own;
}
/* "slice", "slice dispatched, list ×2" */
static const char *move_words(const BlockGraph *g, const BlockNode *n) {
    if (!n->with_move) return words_move(n->move);
    return arena_printf(g->arena, "%s %s, %s ×2", words_move(n->move),
                        words_short(g->arena, g->t, n->move->value),
                        words_short(g->arena, g->t, n->with_move->value));
}
double block_box_width(BlockPen *p, const BlockNode *n) {
    Scene *s = p->s;
    Run run[SHAPE_RUNS];
    double w = 0;
    if (n->kind == NODE_COLL)
        return fmax(scene_width(s, 13, SEMIBOLD, block_coll_name(p->g, n)),
                    scene_width(s, 12, REGULAR, block_coll_line(p, n))) +
               32;
    if (n->kind == NODE_MOVE) return scene_width(s, 12, REGULAR, move_words(p->g, n)) + 24;
    if (n->kind == NODE_INPUT)
        return fmax(24, scene_width(s, 12.5, SEMIBOLD, block_pill_words(p->g, n)) + 20);
    for (int i = 0; i < n->n_op; i++) {
        const TraceParam *m = matrix_of(&n->op[i]);
        double name = scene_width(s, 13, SEMIBOLD, block_op_name(p->g, n, &n->op[i]));
        if (!m) {
            const char *note = p->look->numbers ? norm_note(p->g, &n->op[i]) : "";
            const double more = *note ? 6 + scene_width(s, 12, REGULAR, note) : 0;
            if (n->col_last == n->col) w = fmax(w, name + fmax(20, more + 14));
            if (shows_fetch(p->look, &n->op[i])) w = fmax(w, fetch_width(p, n, &n->op[i]));
            continue;
        }
        /* backward it is said where there is room: the weight was read so before */
        const char *style = p->g->pass == PHASE_FORWARD ? words_style(m->style) : NULL;
        double line = name + (style ? 7 + fmin(90, scene_width(s, 12, REGULAR, style)) : 0);
        if (p->look->numbers)
            line =
                fmax(line, fonts_width(s->fonts, run, weight_runs(p, n, &n->op[i], m, run), 11.5));
        w = fmax(w, line + 10 + 8 + GHOST + 9);
        if (shows_fetch(p->look, &n->op[i])) w = fmax(w, fetch_width(p, n, &n->op[i]));
    }
    return w;
}

static const char *op_tip(const BlockGraph *g, const BlockNode *n, const BlockOp *op) {
    Arena *a = g->arena;
    Str s = str_new(a);
    str_addf(&s, "step %d: %s", op->c->step, op->c->op);
    tip_add(&s, "module", op->c->module);
    tip_add(&s, "output", op->c->output);
    for (int i = 0; i < op->n_param; i++) {
        const TraceParam *p = op->param[i];
        const TraceLocal *l = words_find_local(&p->compute, g->rank);
        str_addf(&s, "\n%s: %s", p->plan_name ? p->plan_name : p->compute.name,
                 words_symbol(a, p->compute.symbolic));
        if (l)
            str_addf(&s, " = %s, %s", words_shape(a, l->shape, p->compute.nd),
                     bytes_text(l->bytes, a));
        if (p->file && p->line > 0) str_addf(&s, " (%s:%d)", words_file(p->file), p->line);
    }
    if (op->n_param) tip_add(&s, "style", op->param[0]->style);
    if (op->saved) tip_add(&s, "with saved", op->saved);
    if (op->fetch) str_addf(&s, "\n%s", fetch_words(g, n, op));
    tip_inferred(&s, op->fetch);
    if (op->c->flops > 0) str_addf(&s, "\n%sFLOP", count_text(op->c->flops, a));
    if (op->c->bytes > 0) str_addf(&s, ", reads and writes %s", bytes_text(op->c->bytes, a));
    return s.s;
}

/* Of a box that makes several gradients, the tips of all its steps. */
static const char *box_tip(const BlockGraph *g, const BlockNode *n, const BlockOp *op) {
    const char *tip = op_tip(g, n, op);
    for (int i = 0; i < g->n && op == n->op; i++) {
        const BlockNode *x = &g->node[i];
        if (x->shared >= 0 && &g->node[x->shared] == n)
            tip = arena_printf(g->arena, "%s\n\n%s", tip, op_tip(g, x, x->op));
    }
    return tip;
}

/* A red border for the box that made the first wrong value, and for a wrong step. */
static bool is_wrong(const BlockPen *p, int step) {
    return step == p->g->wrong_step || wrong_number(p->g->wrong, step);
}
static void mark_wrong(BlockPen *p, Mark *border, int step) {
    if (!is_wrong(p, step)) return;
    wrong_border(border, &p->legend);
}

/* The flag of a wrong step sits on the upper left corner of its box. */
static void flag(BlockPen *p, int step, double x, double y) {
    wrong_flag(p->s, p->g->wrong, step, x, y);
}
/* In the middle its name, under it what brings its weight and what it reads of the forward pass. */
static void plain_box(BlockPen *p, const BlockNode *n, const BlockOp *op, const char *name,
                      Area box) {
    double x = box.x, y = box.y, w = box.w, h = box.h;
    bool saved = op->saved && p->look->numbers, fetch = shows_fetch(p->look, op);
    double mid = y + (h - (saved ? 15 : 0) - (fetch ? FETCH : 0)) / 2;
    const char *note = norm_note(p->g, op);
    const double nw = scene_width(p->s, 13, SEMIBOLD, name),
                 all = nw + 6 + scene_width(p->s, 12, REGULAR, note);
    const bool both = *note && all <= w - 12 && (!op->fetch || p->look->numbers);
    const double left = x + (w - (both ? all : fmin(nw, w - 8))) / 2;
    scene_text(p->s, left, mid + 4.7, (TextLook){ALIGN_LEFT, 13, SEMIBOLD, ROLE_INK},
               scene_fit(p->s, name, w - 8, 13, SEMIBOLD));
    if (both)
        scene_text(p->s, left + nw + 6, mid + 4.7,
                   (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_COMPUTE_NOTE}, note);
    if (fetch) fetch_hexagon(p, n, op, box);
    if (has_code(p, op, (w - scene_width(p->s, 13, SEMIBOLD, name)) / 2))
        fetch_code(p, op, x + w - FETCH_SIDE, mid);
    if (saved)
        scene_text(p->s, x + w / 2, y + h - 8,
                   (TextLook){ALIGN_MIDDLE, 11.5, REGULAR, ROLE_COMPUTE_NOTE},
                   saved_words(p, op, w - 12));
}

enum { IN_BOX = 10 }; /* from its sides to a line along its edge */

/* How the ops [i, until), and those of a twin, stand to the other plan's. */
static Likeness op_likeness(const BlockPen *p, const BlockNode *n, int i, int until) {
    const BlockNode *twin = n->twin >= 0 ? &p->g->node[n->twin] : NULL;
    Likeness all = unlike_compute(p->c, p->g->rank, n->op[i].c);
    for (; i < until; i++) {
        all = figure_likeness(all, unlike_compute(p->c, p->g->rank, n->op[i].c));
        if (twin && i < twin->n_op)
            all = figure_likeness(all, unlike_compute(p->c, p->g->rank, twin->op[i].c));
    }
    return all;
}

static void op_box(BlockPen *p, const BlockNode *n, double x, double y, double w) {
    const BlockLook *l = p->look;
    for (int i = 0; i < n->n_op; i++) {
        const BlockOp *op = &n->op[i];
        bool m = matrix_of(op) != NULL, rest = !l->numbers && i;
        double h = op_height(l, n, i);
        scene_begin(p->s, "compute", arena_printf(p->g->arena, "step-%d", op->c->step),
                    box_tip(p->g, n, op));
        scene_frame(p->s, x, y, w, h);
        bool own = op->c->step == p->g->wrong_step || wrong_number(p->g->wrong, op->c->step) ||
                   op->claim < 0;
        int step = own ? op->c->step : op->claim;
        if (op->fetch && wrong_number(p->g->wrong, op->fetch->step)) step = op->fetch->step;
        mark_wrong(
            p,
            scene_rect(p->s, (Area){x, y, w, h}, 3, (Look){ROLE_COMPUTE, ROLE_COMPUTE_LINE, 1.25}),
            step);
        const char *name = block_op_name(p->g, n, op);
        for (int k = i + 1; rest && k < n->n_op; k++)
            name = arena_printf(p->g->arena, "%s, %s", name, block_op_name(p->g, n, &n->op[k]));
        if (m) weight_box(p, n, op, (Area){x, y, w, h});
        else plain_box(p, n, op, name, (Area){x, y, w, h});
        flag(p, step, x, i ? y + h / 2 : y - 2);
        figure_unlike_box(p->s, (Area){x, y, w, h}, IN_BOX,
                          op_likeness(p, n, i, rest ? n->n_op : i + 1), &p->legend);
        scene_end(p->s);
        y += h;
        if (rest) break;
    }
    p->legend |= 1u << LEGEND_COMPUTE;
}

/* ---- collectives ---- */

/* Does the collective stand in the box of n: itself, or beside it? */
static bool in_box(const BlockGraph *g, const BlockNode *n, int i) {
    return &g->node[i] == n || (g->node[i].joined >= 0 && &g->node[g->node[i].joined] == n);
}
static int box_collectives(const BlockGraph *g, const BlockNode *n) {
    int count = 0;
    for (int i = 0; i < g->n; i++)
        if (in_box(g, n, i)) count += g->node[i].twin >= 0 ? 2 : 1;
    return n->twin >= 0 && count == 2 ? 1 : count; /* twins alone have words of their own */
}
/* What a collective of the box takes: "kv_a_norm", "k, v" of twins, "dk" of a gradient. */
static const char *taken_words(const BlockGraph *g, const BlockNode *x) {
    const Subject of = x->coll->subject;
    const char *own = words_short(g->arena, g->t, of.of);
    if (x->pair) return x->pair;
    return subject_is_gradient(of) ? words_gradient(g->arena, own) : own;
}
/* "Shift kv_a_norm, k ×2", from left to right. */
static const char *joined_words(const BlockGraph *g, const BlockNode *n, const char *name,
                                int count) {
    Str s = str_new(g->arena);
    str_add(&s, name);
    for (int col = n->col, said = 0; col <= n->col_last; col++)
        for (int i = 0; i < g->n; i++)
            if (in_box(g, n, i) && g->node[i].col == col)
                str_addf(&s, "%s%s", said++ ? ", " : " ", taken_words(g, &g->node[i]));
    str_addf(&s, " ×%d", count);
    return s.s;
}

const char *block_coll_name(const BlockGraph *g, const BlockNode *n) {
    const char *name = words_coll_on(n->coll, g->rank);
    if (n->coll->reduce && !strcmp(n->coll->reduce, "max"))
        name = arena_printf(g->arena, "%s max", name);
    if (wrong_skipped(n->coll)) return arena_printf(g->arena, "%s missing", name);
    name = words_done(g->arena, name, n->coll);
    if (n->with)
        return arena_printf(g->arena, "%s %s, %s ×2", name,
                            words_short(g->arena, g->t, n->coll->value),
                            words_short(g->arena, g->t, n->with->value));
    const int box = box_collectives(g, n), hops = n->hops > 1 ? n->hops : 1;
    if (box > 1) return joined_words(g, n, name, box * hops);
    if (n->pair) name = arena_printf(g->arena, "%s %s", name, n->pair);
    /* one that stands for many hops says of what, as its box does not hold what it brings */
    else if (n->twin < 0 && hops > 1)
        name = arena_printf(g->arena, "%s %s", name, taken_words(g, n));
    const int times = (n->twin >= 0 || n->pair ? 2 : 1) * hops;
    return times > 1 ? arena_printf(g->arena, "%s ×%d", name, times) : name;
}

const char *block_coll_line(const BlockPen *p, const BlockNode *n) {
    const BlockGraph *g = p->g;
    int64_t all = n->with ? n->with->bytes_sent : 0;
    for (int i = 0; i < g->n; i++)
        if (in_box(g, n, i)) all += g->node[i].coll->bytes_sent * (g->node[i].twin >= 0 ? 2 : 1);
    if (n->hops > 1) all *= n->hops; /* one stands for all, which send as much */
    const char *sent = bytes_text(all, g->arena);
    const CollWord *w = coll_word(n->coll->op);
    Str s = str_new(g->arena);
    long long size = (long long)groups_size(&n->coll->groups);
    if (wrong_skipped(n->coll)) return "nothing is sent";
    if (p->look->brief) return arena_printf(g->arena, "sends %s", sent);
    if (n->coll->dim_symbol && *n->coll->dim_symbol)
        str_addf(&s, "dim %s, ", words_symbol(g->arena, words_base(g->arena, n->coll->dim_symbol)));
    if (w && *w->effect) str_addf(&s, "%s%lld", w->effect, size);
    else str_addf(&s, "%lld ranks", size);
    if (words_message(n->coll, g->rank) == MESSAGE_FROM)
        str_addf(&s, " · gets %s", bytes_text(collective_on(n->coll, g->rank).bytes_out, g->arena));
    else str_addf(&s, " · sends %s", sent);
    return s.s;
}

const char *block_coll_tip(const BlockGraph *g, const TraceCollective *c) {
    Arena *a = g->arena;
    Str s = str_new(a);
    int64_t group = words_group_of(&c->groups, g->rank);
    str_addf(&s, "step %d: %s of %s over %s", c->step, c->op, c->value, c->axis);
    if (c->axes && strcmp(c->axes, c->axis)) str_addf(&s, " = %s", c->axes);
    str_addf(&s, "\n%lld groups × %lld ranks, this rank in %s", (long long)groups_count(&c->groups),
             (long long)groups_size(&c->groups), words_members(a, &c->groups, group));
    str_addf(&s, "\nin %s, out %s, sends %s per rank", bytes_text(c->bytes_in, a),
             bytes_text(c->bytes_out, a), bytes_text(c->bytes_sent, a));
    if (c->reduce) str_addf(&s, ", %s of %s", c->reduce, c->dtype ? c->dtype : "");
    tip_add(&s, "why", c->why);
    if (c->file && c->line > 0) str_addf(&s, "\nplan line: %s:%d", words_file(c->file), c->line);
    tip_inferred(&s, c);
    return s.s;
}

static void coll_box(BlockPen *p, const BlockNode *n, double x, double y, double w) {
    double mid = y + p->look->coll / 2;
    Hexagon h = hexagon_of(n->coll, x, y, w, p->look->coll);
    h.id = arena_printf(p->g->arena, "step-%d", n->step);
    h.tip = block_coll_tip(p->g, n->coll);
    if (n->with)
        h.tip = arena_printf(p->g->arena, "%s\n\n%s", h.tip, block_coll_tip(p->g, n->with));
    for (int i = 0; i < p->g->n; i++)
        if (in_box(p->g, n, i) && &p->g->node[i] != n)
            h.tip = arena_printf(p->g->arena, "%s\n\n%s", h.tip,
                                 block_coll_tip(p->g, p->g->node[i].coll));
    h.wrong = is_wrong(p, n->step);
    h.line[0] = (HexagonLine){block_coll_name(p->g, n), mid - 3.5, 13, SEMIBOLD};
    h.line[1] =
        (HexagonLine){block_coll_line(p, n), mid + 12.5, p->look->numbers ? 11.5 : 12, REGULAR};
    h.list = p->g->wrong, h.flag_x = x + 11, h.flag_y = y;
    h.like = unlike_collective(p->c, p->g->rank, n->coll);
    for (int i = 0; i < p->g->n; i++)
        if (in_box(p->g, n, i))
            h.like =
                figure_likeness(h.like, unlike_collective(p->c, p->g->rank, p->g->node[i].coll));
    hexagon_draw(p->s, &h, &p->legend);
}

static void move_box(BlockPen *p, const BlockNode *n, double x, double y, double w) {
    static const double dash[2] = {3, 2};
    Str tip = str_new(p->g->arena);
    str_addf(&tip, "step %d: %s of %s", n->step, n->move->op, n->move->value);
    tip_add(&tip, "over", n->move->axes);
    tip_add(&tip, "why", n->move->why);
    scene_begin(p->s, "move", arena_printf(p->g->arena, "step-%d", n->step), tip.s);
    scene_frame(p->s, x, y, w, p->look->move);
    Mark *m = scene_rect(p->s, (Area){x, y, w, p->look->move}, 3, (Look){ROLE_PAPER, ROLE_INK, 1});
    m->dash = dash;
    m->n_dash = 2;
    mark_wrong(p, m, n->step);
    if (n->with_move)
        str_addf(&tip, "\n\nstep %d: %s of %s", n->with_move->step, n->with_move->op,
                 n->with_move->value);
    Run run = {move_words(p->g, n), REGULAR, ROLE_INK, false, true};
    scene_runs(p->s, (Pt){x + w / 2, y + p->look->move / 2 + 4.3}, ALIGN_MIDDLE, 12, &run, 1);
    flag(p, n->step, x, y);
    figure_unlike_box(p->s, (Area){x, y, w, p->look->move}, IN_BOX, unlike_move(p->c, n->move),
                      &p->legend);
    scene_end(p->s);
    p->legend |= 1u << LEGEND_MOVE;
}

static void input_box(BlockPen *p, const BlockNode *n, double x, double y, double w) {
    scene_begin(p->s, "input", arena_printf(p->g->arena, "input-%s", n->name), n->name);
    scene_frame(p->s, x, y, w, 22);
    scene_rect(p->s, (Area){x, y, w, 22}, 11, (Look){ROLE_PAPER, ROLE_INK, 1.5});
    scene_text(p->s, x + w / 2, y + 15.4, (TextLook){ALIGN_MIDDLE, 12.5, SEMIBOLD, ROLE_INK},
               block_pill_words(p->g, n));
    scene_end(p->s);
}

void block_box(BlockPen *p, const BlockNode *n, double x, double y, double w) {
    static void (*const draw[])(BlockPen *, const BlockNode *, double, double,
                                double) = {[NODE_INPUT] = input_box,
                                           [NODE_OP] = op_box,
                                           [NODE_COLL] = coll_box,
                                           [NODE_MOVE] = move_box};
    p->group[n - p->g->node] = p->s->n_groups;
    draw[n->kind](p, n, x, y, w);
}
