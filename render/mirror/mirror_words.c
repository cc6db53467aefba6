/* Words of "backward beside forward", and the widths that follow from them. */
#include "render/graph/block_words.h"
#include "render/graph/unlike.h"
#include "render/mirror/mirror_draw.h"
#include "base/text.h"
#include <ctype.h>
#include <math.h>
#include <string.h>

/* ---- words ---- */

static const char *join(Arena *a, const char *text, const char *sep, const char *word) {
    if (!text || !*text) return word;
    if (text_has_word(text, word)) return text; /* each word once */
    return arena_printf(a, "%s%s%s", text, sep, word);
}

/* Does the step add a bias? */
static bool adds_bias(const Trace *t, const TraceCompute *c) {
    bool param = false;
    for (int i = 0; i < c->n_inputs; i++) param |= trace_param(t, c->inputs[i]) != NULL;
    return param && text_same(c->glyph, "plus");
}
static const TraceParam *matrix_of(const Trace *t, const TraceCompute *c) {
    for (int i = 0; !adds_bias(t, c) && i < c->n_inputs; i++) {
        const TraceParam *p = trace_param(t, c->inputs[i]);
        if (p && p->compute.nd >= 2) return p;
    }
    return NULL;
}

/* *group: of the weight before it in a list, as words_weight_next. */
static const char *op_words(const MirrorPen *p, const TraceCompute *c, const char **group) {
    const Trace *t = p->m->g->t;
    const char *label = words_op(p->c->arena, c);
    const TraceParam *w = matrix_of(t, c);
    const char *leaf = w ? words_weight_next(p->c->arena, c->module, w, group) : "";
    if (w && *leaf) return leaf;
    return adds_bias(t, c) ? "+ bias" : label;
}

static const char *value_words(const BlockGraph *g, const char *value, bool back, bool brief) {
    const char *word = block_kept(g, value, brief);
    if (back && block_state(g, value)) return block_state(g, mirror_grad(g, value));
    /* "d ffn_norm" is the gradient of a weight */
    if (back && words_after_norm(g->t, value)) return arena_printf(g->arena, "gradient %s", word);
    return back ? words_gradient(g->arena, word) : word;
}
const char *mirror_value(const BlockGraph *g, const char *value, bool back) {
    return value_words(g, value, back, false);
}

const char *mirror_told(const MirrorPen *p, const char *value, bool back) {
    return value_words(p->m->g, value, back, p->brief);
}

/* "AllGather k, v": several that move different values; "AllReduce ×3": several of one value. */
static const char *coll_words(const MirrorPen *p, const TraceCollective *const *c, int n) {
    Arena *a = p->c->arena;
    const BlockGraph *g = p->m->g;
    const char *name = words_coll_on(c[0], g->rank), *values = "";
    const char *missing = "";
    bool same = true;
    int skipped = 0;
    for (int i = 0; i < n; i++) {
        const bool grad = subject_is_gradient(c[i]->subject);
        const char *word = mirror_value(g, grad ? c[i]->subject.of : c[i]->value, grad);
        values = join(a, values, ", ", word);
        same &= !strcmp(c[i]->value, c[0]->value);
        if (!wrong_skipped(c[i])) continue;
        missing = join(a, missing, ", ", word);
        skipped++;
    }
    if (n && text_same(c[0]->reduce, "max")) name = arena_printf(a, "%s max", name);
    if (skipped == n && n) return arena_printf(a, n < 2 ? "%s missing" : "%s ×%d missing", name, n);
    if (skipped) return arena_printf(a, "%s, %s missing", name, missing);
    if (n < 2) return words_done(a, name, c[0]);
    return same || p->look.narrow || p->look.terse || strlen(values) > 8
               ? arena_printf(a, "%s ×%d", name, n)
               : arena_printf(a, "%s %s ×%d", name, values, n);
}

/* "slice ×3"; of moves that are no work how many there are says nothing. */
static const char *move_words(Arena *a, const MirrorRow *r) {
    const TraceLocalMove *m = r->move[0];
    const bool works = text_same(m->op, "slice") && !words_declares(m);
    return r->n_move < 2 || !works ? words_move(m)
                                   : arena_printf(a, "%s ×%d", words_move(m), r->n_move);
}

const char *mirror_words(const MirrorPen *p, const MirrorRow *r, bool back, bool rest) {
    Arena *a = p->c->arena;
    const Trace *t = p->m->g->t;
    const char *text = "", *via = "", *group = "", *sep = rest ? ", " : " ";
    if (back && !mirror_has_back(p->m, r)) return "";
    if (r->kind == ROW_FROM) {
        for (int i = 0; i < r->n_out && !rest; i++)
            text = join(a, text, ", ", mirror_value(p->m->g, r->out[i], back));
        return text;
    }
    if (r->kind != ROW_OPS || !back) {
        if (r->kind == ROW_COLL && !back && r->rides == 2 && r->n_coll == 2 && !p->look.narrow &&
            !p->look.terse)
            return arena_printf(a, "%s rows, list ×2", words_coll_on(r->coll[0], p->m->g->rank));
        if (r->kind == ROW_COLL && !back) return coll_words(p, r->coll, r->n_coll);
        if (r->kind == ROW_MOVE && !back) return move_words(a, r);
        const char *moved = back && r->n_back_move ? words_move(r->back_move[0]) : "";
        if (r->kind != ROW_OPS && (!back || !r->n_conj)) return *moved ? moved : "identity";
        if (r->kind != ROW_OPS) {
            text = coll_words(p, r->conj, r->n_conj);
            return *moved ? join(a, text, ", ", moved) : text;
        }
        const TraceParam *before = NULL;
        for (int i = 0; i < r->n_op; i++) {
            if (r->op[i].rest != rest) continue;
            const TraceParam *w = matrix_of(t, r->op[i].f);
            text = join(a, text, w && before ? sep : ", ", op_words(p, r->op[i].f, &group));
            before = w;
        }
        return text;
    }
    bool dx = false;
    for (int i = 0; i < r->n_op; i++) { /* said in the order of forward */
        if (r->op[i].rest != rest || !(r->op[i].dx || r->op[i].dw)) continue;
        if (adds_bias(t, r->op[i].f)) continue;
        const char *word = op_words(p, r->op[i].f, &group);
        if (matrix_of(t, r->op[i].f)) via = join(a, via, " ", word), dx |= r->op[i].dx;
        else text = join(a, text, ", ", words_adjoint(a, word));
    }
    if (*via) return arena_printf(a, "%s via %s", dx ? "dx" : "dw", via);
    return *text || rest ? text : "dx = dy"; /* a bias passes the gradient on */
}

/* The parameter that is a list of numbers, as a norm's weight; NULL: the step has none, or others.
 */
static const TraceParam *list_of(const Trace *t, const TraceCompute *c) {
    const TraceParam *list = NULL;
    if (adds_bias(t, c) || matrix_of(t, c)) return NULL;
    for (int i = 0; i < c->n_inputs && !list; i++) list = trace_param(t, c->inputs[i]);
    return list;
}
const char *mirror_note(const MirrorPen *p, const MirrorRow *r, bool rest) {
    const char *names = "";
    for (int i = 0; i < r->n_op && r->kind == ROW_OPS; i++) {
        if (r->op[i].rest != rest) continue;
        const TraceCompute *c = r->op[i].f;
        const TraceParam *list = list_of(p->m->g->t, c);
        const char *name = list ? grads_note(p->c->arena, list, c->label) : "";
        if (!*name) return "";
        names = join(p->c->arena, names, " ", name);
    }
    return names;
}

bool mirror_has_rest(const MirrorRow *r) {
    for (int i = 0; i < r->n_op; i++)
        if (r->op[i].rest) return true;
    return false;
}

/* "[1, 16, 128]   8 KiB"; beside the symbols the shape alone. */
static const char *number_words(const MirrorPen *p, const TraceValue *v, int count) {
    Arena *a = p->c->arena;
    const TraceLocal *l = words_find_local(&v->shape, p->m->g->rank);
    if (!l) return "";
    const char *shape = words_shape(a, l->shape, v->shape.nd);
    if (!v->shape.nd) return bytes_text(l->bytes, a);
    if (p->look.inlined) return shape;
    return count > 1 ? arena_printf(a, "%s   %d × %s", shape, count, bytes_text(l->bytes, a))
                     : arena_printf(a, "%s   %s", shape, bytes_text(l->bytes, a));
}

/* The name of the value, of the one whose gradient it is. */
static const char *forward_name(const TraceValue *v) {
    return subject_of(v->shape.name).role == OF_GRADIENT ? subject_of(v->shape.name).of
                                                         : v->shape.name;
}

const char *mirror_side_words(const MirrorPen *p, const TraceValue *v, bool back, int line) {
    Arena *a = p->c->arena;
    const TraceLocal *l = words_find_local(&v->shape, p->m->g->rank);
    const char *name = mirror_told(p, forward_name(v), back);
    if (!v->shape.nd) return line ? "one number" : name;
    if (line) return words_symbol(a, v->shape.symbolic);
    return arena_printf(a, "%s  %s", name, l ? words_shape(a, l->shape, v->shape.nd) : "");
}

const char *mirror_side_grad_words(const MirrorPen *p, const MirrorStrip *s,
                                   const TraceValue *const *v, int n, int line) {
    const char *names = "";
    if (n == 1 && s->piece) return mirror_side_words(p, v[0], true, line);
    for (int i = 0; i < n && !line; i++)
        names = join(p->c->arena, names, ", ", mirror_told(p, forward_name(v[i]), true));
    return names;
}

const char *mirror_past_words(const MirrorPen *p, const MirrorStrip *s, int r, bool back) {
    const char *names = "";
    for (int i = 0; i < s->n_past[back]; i++) {
        const MirrorRead *q = &s->past[back][i];
        if (q->to == r && !q->sum)
            names = join(p->c->arena, names, ", ", mirror_told(p, forward_name(q->v), back));
    }
    const bool boxed = !back && s->row[r].kind == ROW_OPS; /* by mirror_sides, with their shapes */
    for (int i = 0; i < s->in[back].n && !boxed; i++) {
        const MirrorRead *q = &s->in[back].read[i];
        if (q->to == r && !q->sum)
            names = join(p->c->arena, names, ", ", mirror_told(p, forward_name(q->v), back));
    }
    return names;
}
const char *mirror_term_words(const MirrorPen *p, const MirrorStrip *s, int r) {
    const char *names = "";
    for (int i = 0; i < s->in[1].n; i++) {
        const MirrorRead *q = &s->in[1].read[i];
        if (q->to == r && q->sum)
            names = join(p->c->arena, names, ", ", mirror_told(p, forward_name(q->v), true));
    }
    return names;
}
const char *mirror_out_words(const MirrorPen *p, const MirrorStrip *s, int r, bool back) {
    const char *names = "";
    for (int i = 0; i < s->out[back].n; i++) {
        const MirrorRead *q = &s->out[back].read[i];
        if (q->from == r)
            names = join(p->c->arena, names, ", ", mirror_told(p, forward_name(q->v), back));
    }
    return names;
}

/* Does what row r makes, or backward the row below it, go on without a line, so that its name must
 * be said here? Of a box backward an arrow at its side says it. */
static bool goes_by_name(const MirrorStrip *s, int r, bool back) {
    const int from = back ? r + 1 : r;
    if (back && (from >= s->n || s->row[from].kind == ROW_OPS)) return false;
    for (int i = 0; i < s->out[back].n; i++)
        if (s->out[back].read[i].from == from) return true;
    return false;
}
double mirror_title_width(const MirrorPen *p, const MirrorStrip *s) {
    return scene_width(p->s, 15, BOLD, s->strip->title);
}

static bool of_letter(char c) { return c == '_' || isalnum((unsigned char)c); }
/* How often the letter at `word` stands among those of a shape. */
static int times_in(const char *shape, const char *word) {
    size_t n = 0, k;
    int times = 0;
    while (of_letter(word[n])) n++;
    for (const char *at = shape; *at; at += k + !k) {
        for (k = 0; of_letter(at[k]); k++) continue;
        times += k == n && !strncmp(at, word, n);
    }
    return times;
}
static bool has_letters_of(const char *shape, const char *other) {
    for (const char *at = other; *at; at++)
        if (of_letter(*at) && (at == other || !of_letter(at[-1])) &&
            times_in(shape, at) != times_in(other, at))
            return false;
    return true;
}
/* Do both lie alike, as [K/tp, d] and the flat [K*d/tp] do? Sizes alone do not say it: another
 * letter may be as large here. */
static bool lies_alike(const BlockGraph *g, const TraceValue *a, const TraceValue *b) {
    const char *x = a->shape.symbolic ? a->shape.symbolic : "",
               *y = b->shape.symbolic ? b->shape.symbolic : "";
    return block_same_shape(g, a, b) && has_letters_of(x, y) && has_letters_of(y, x);
}

/* Shapes of what flows below row r: one line per shape; names only where it is not clear what it
 * is. */
MirrorLabel mirror_label(const MirrorPen *p, const MirrorStrip *s, int r, bool back) {
    const BlockGraph *g = p->m->g;
    const TraceValue *v[MIRROR_FLOW];
    MirrorLabel l = {0};
    bool done[MIRROR_FLOW] = {false};
    int n = mirror_flow(p->m, s, r, back, v, MIRROR_FLOW), groups = 0, partial = 0;
    for (int i = back ? n : 0; i > 0; i--)
        if (mirror_told_aside(s, r + 1, v[i - 1]))
            memmove(v + i - 1, v + i, sizeof *v * (size_t)(n-- - i));
    const char *names[MIRROR_FLOW], *shapes[MIRROR_FLOW];
    l.summed = "";
    for (int i = 0; i < n; i++) {
        const char *axes = words_pending(&v[i]->shape, &l.max);
        if (axes) {
            l.pending = words_axis_list(g->arena, g->t, axes), l.axes = axes, partial++;
            l.summed = join(g->arena, l.summed, ", ", mirror_told(p, forward_name(v[i]), back));
        }
        if (done[i]) continue;
        names[groups] = "";
        shapes[groups] =
            v[i]->shape.nd ? words_symbol(g->arena, v[i]->shape.symbolic) : "one number";
        int alike = 0;
        l.tip[groups] = "";
        for (int k = i; k < n; k++) {
            if (k != i && (done[k] || !lies_alike(g, v[i], v[k]))) continue;
            done[k] = true;
            alike++;
            const Likeness own = unlike_value(p->c, g, v[k]);
            l.like[groups] = k == i ? own : figure_likeness(l.like[groups], own);
            l.tip[groups] = arena_printf(g->arena, "%s%s%s, step %d", l.tip[groups],
                                         *l.tip[groups] ? "\n" : "", v[k]->shape.name, v[k]->step);
            names[groups] =
                join(g->arena, names[groups], ", ", mirror_told(p, forward_name(v[k]), back));
        }
        l.num[groups++] = p->look.bare ? "" : number_words(p, v[i], alike);
    }
    /* names where a row makes several values and a collective takes, or has taken, some of them */
    if (partial == n) l.summed = "";
    bool from_coll = r >= 0 && s->row[r].kind == ROW_COLL,
         to_coll = r >= 0 && r + 1 < s->n && s->row[r + 1].kind == ROW_COLL;
    const TraceValue *below[MIRROR_FLOW];
    bool some = back && r + 1 < s->n && s->row[r + 1].kind != ROW_OPS &&
                mirror_flow(p->m, s, r + 1, true, below, MIRROR_FLOW) > n;
    const bool parts = mirror_breaks(s, r); /* two chains: which goes where */
    bool named = parts || some || goes_by_name(s, r, back) || groups > 1 ||
                 (from_coll && (n > 1 || n < s->row[r].n_out)) || (to_coll && n > 1);
    for (l.n = 0; l.n < groups; l.n++)
        l.line[l.n] =
            named ? arena_printf(g->arena, "%s %s", names[l.n], shapes[l.n]) : shapes[l.n];
    return l;
}

const char *mirror_pending(const MirrorPen *p, const MirrorLabel *l) {
    const char *sum = l->max ? "max" : "Σ", *sep = *l->summed ? ": " : "";
    return arena_printf(p->c->arena, "%s %s pending%s%s", sum, l->pending, sep, l->summed);
}

const char *mirror_pill(const MirrorPen *p, const TraceCollective *c) {
    Arena *a = p->c->arena;
    const char *axis = words_axis_list(a, p->m->g->t, c->axis);
    if (p->look.narrow) return axis;
    return arena_printf(a, "%s %s", axis,
                        words_members(a, &c->groups, words_group_of(&c->groups, p->m->g->rank)));
}

const char *mirror_end_name(const MirrorPen *p, int strip, bool back, bool bottom) {
    const MirrorStrip *s = &p->m->strip[strip];
    return mirror_value(p->m->g, bottom ? s->to : s->from, back);
}

static int64_t local_bytes(const MirrorPen *p, const TraceShape *sh) {
    const TraceLocal *l = words_find_local(sh, p->m->g->rank);
    return l ? l->bytes : 0;
}

/* How what is kept is called: by all names; more than two as "3 values"; two so, too. */
enum { NAMES_FULL, NAMES_BRIEF, NAMES_COUNTED };
static const char *saved_words(const MirrorPen *p, const MirrorRow *r, bool rest, int how) {
    Arena *a = p->c->arena;
    const TraceValue *v[MIRROR_MAX];
    int n = mirror_saved(p->m, r, rest, v, MIRROR_MAX);
    int64_t bytes = 0, again = 0;
    const char *names = "";
    for (int i = 0; i < n; i++) {
        const char *word = block_kept(p->m->g, v[i]->shape.name, p->brief);
        bytes += local_bytes(p, &v[i]->shape);
        again += mirror_again(p->m, v[i]);
        names = join(a, names, ", ", word);
    }
    if (n == 0) return NULL;
    if (p->look.narrow) return bytes_text(bytes, a);
    if ((how == NAMES_BRIEF && n > 2) || (how == NAMES_COUNTED && n > 1))
        names = arena_printf(a, "%d values", n);
    if (again == n) return arena_printf(a, "%s  again", names);
    return arena_printf(a, "%s  %s", names, bytes_text(bytes, a));
}
const char *mirror_saved_words(const MirrorPen *p, const MirrorRow *r, bool rest, double room) {
    const char *text = saved_words(p, r, rest, NAMES_FULL);
    for (int k = NAMES_BRIEF; text && k <= NAMES_COUNTED; k++)
        if (mirror_text_width(p, text, REGULAR) > room) text = saved_words(p, r, rest, k);
    return text;
}

int mirror_entries(const MirrorPen *p, const MirrorRow *r, MirrorEntry *out) {
    Arena *a = p->c->arena;
    int n = 0;
    bool done[MIRROR_MAX] = {false};
    for (int i = 0; i < r->n_grad; i++) {
        if (done[i]) continue;
        MirrorEntry *e = &out[n++];
        *e = (MirrorEntry){.first = &r->grad[i], .step = r->grad[i].made->step};
        const char *names = "", *group = "";
        bool bias = false;
        for (int k = i; k < r->n_grad; k++) {
            if (!grads_same_end(&r->grad[i], &r->grad[k])) continue;
            done[k] = true;
            e->times++;
            const TraceValue *v = grads_end_value(p->m->g->t, &r->grad[k]);
            e->bytes += v ? local_bytes(p, &v->shape) : 0;
            if (k == i) e->shape = v ? &v->shape : NULL;
            if (k != i && (!v || !e->shape || !text_same(v->shape.symbolic, e->shape->symbolic)))
                e->shape = NULL;
            bias |= grads_is_bias(&r->grad[k]);
        }
        for (int k = r->n_grad - 1; k >= i; k--) /* backward is the other way round */
            if (grads_same_end(&r->grad[i], &r->grad[k]))
                names = join(a, names, " ", grads_leaf_next(a, &r->grad[k], &group));
        e->names = grads_words(a, names, bias);
    }
    return n;
}

const char *mirror_entry_words(const MirrorPen *p, const MirrorEntry *e, int i) {
    const TraceCollective *c = e->first->coll[i];
    const char *word = words_coll_done(p->c->arena, c);
    return e->times > 1 && !c->n_with ? arena_printf(p->c->arena, "%s ×%d", word, e->times) : word;
}

const char *mirror_grad_shapes(const MirrorPen *p, int first, int n) {
    Arena *a = p->c->arena;
    Str s = str_new(a);
    const char *last = "", *group = "";
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < p->m->strip[i].n; r++)
            for (int k = p->m->strip[i].row[r].n_grad - 1; k >= 0; k--) {
                const ParamGrad *w = &p->m->strip[i].row[r].grad[k];
                const TraceValue *v = grads_end_value(p->m->g->t, w);
                const char *symbol = v ? words_symbol(a, v->shape.symbolic) : "";
                if (w->term || !v) continue;
                if (s.n) str_add(&s, text_same(symbol, last) ? ", " : "");
                if (s.n && !text_same(symbol, last)) str_addf(&s, " %s, ", last);
                str_add(&s, grads_leaf_next(a, w, &group));
                last = symbol;
            }
    if (s.n) str_addf(&s, " %s", last);
    return s.s;
}

/* ---- widths ---- */

double mirror_text_width(const MirrorPen *p, const char *text, int weight) {
    return text ? scene_width(p->s, weight == REGULAR ? MIRROR_SIZE : 12.5, weight, text) : 0;
}

static void widen(double *w, double to) { *w = fmax(*w, to); }

typedef struct {
    double left, right, box, gutter, grad, hex, chain, end, fetch, state[3];
} Widths;

bool mirror_leaves(const MirrorPen *p, const MirrorStrip *s, int r) {
    const TraceValue *v[MIRROR_FLOW];
    return !p->look.bare && mirror_side_grads(s, r, v, MIRROR_FLOW) > 0;
}
bool mirror_sides_named(const MirrorPen *p, const MirrorStrip *s, int r) {
    const TraceValue *v[MIRROR_FLOW];
    const int n = mirror_sides(p->m, s, r, v, MIRROR_FLOW);
    for (int i = 0; i < s->in[0].n && n && !s->piece; i++) /* shapes stand where they are made */
        if (s->in[0].read[i].to == r) return true;
    return p->look.inlined && n + (n > 1 && *mirror_past_words(p, s, r, false)) > 2;
}
double mirror_row_height(const MirrorPen *p, const MirrorStrip *s, const MirrorRow *r) {
    const TraceValue *v[MIRROR_FLOW];
    if (r->kind == ROW_FROM) return MIRROR_PILL;
    if (r->kind == ROW_MOVE) return r->n_conj ? p->look.row : fmin(p->look.row, 22);
    int n = mirror_sides(p->m, s, (int)(r - s->row), v, MIRROR_FLOW);
    const int k = (int)(r - s->row);
    const bool past = n && *mirror_past_words(p, s, k, false); /* under them a line comes in */
    double side = mirror_sides_named(p, s, k) ? past ? 36 : 0 : 30.0 * (n + past);
    if (r->kind == ROW_OPS && mirror_leaves(p, s, k) && *mirror_past_words(p, s, k, true))
        side = fmax(side, 48);
    return fmax(p->look.row + (mirror_has_rest(r) ? p->look.sub : 0), side);
}

static int earlier(int a, int b) { return a < 0 || (b >= 0 && b < a) ? b : a; }
int mirror_row_step(const MirrorRow *r, bool back) {
    int step = -1;
    for (int i = 0; i < (back ? r->n_back : r->n_op); i++)
        step = earlier(step, (back ? r->back : r->op)[i].f->step);
    for (int i = 0; i < (back ? r->n_conj : r->n_coll); i++)
        step = earlier(step, (back ? r->conj : r->coll)[i]->step);
    for (int i = 0; i < (back ? r->n_back_move : r->n_move); i++)
        step = earlier(step, (back ? r->back_move : r->move)[i]->step);
    for (int i = 0; back && i < r->n_grad; i++) step = earlier(step, r->grad[i].made->step);
    return step + 1;
}

double mirror_pill_width(const MirrorPen *p, const char *value, bool back) {
    return fmax(24, scene_width(p->s, 12.5, SEMIBOLD, mirror_value(p->m->g, value, back)) + 20);
}

/* Of a gap, the room at the row that makes what flows in it (over the label backward, where lines
 * leave what the label tells) and at the row below. */
typedef struct {
    double over, under;
} RailRoom;
static RailRoom rail_room(const MirrorPen *p, const MirrorStrip *s, int r, bool back) {
    const bool chain = mirror_forks(p->m, s, r),
               leaves = mirror_parts(s, back ? r + 1 : r, back) ||
                        mirror_leaves_alone(s, back ? r + 1 : r, back),
               low = chain || (back ? mirror_sums(s, r + 1) : leaves);
    return (RailRoom){back && leaves ? p->look.fork : 0,
                      (mirror_breaks(s, r) ? MIRROR_BREAK : 0) + (low ? p->look.fork : 0)};
}
double mirror_rail_room(const MirrorPen *p, const MirrorStrip *s, int r) {
    const RailRoom f = rail_room(p, s, r, false), b = rail_room(p, s, r, true);
    return fmax(f.over + f.under, b.over + b.under);
}
void mirror_label_gap(const MirrorPen *p, const MirrorStrip *s, int r, bool back, double *y,
                      double *h) {
    const RailRoom room = rail_room(p, s, r, back);
    *y += room.over;
    *h -= room.over + room.under;
}

/* The room that rails of chains beside others take at the left of forward, and at the right of
 * backward. */
static double chain_width(const Mirror *m, int first, int n) {
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < m->strip[i].n; r++)
            if (mirror_breaks(&m->strip[i], r)) return MIRROR_RAILS;
    return 0;
}
/* The same with the lanes of what passes rows. */
static double rail_width(const Mirror *m, int first, int n, bool back) {
    int lanes = 0;
    for (int i = first; i < first + n; i++)
        if (m->strip[i].lanes[back] > lanes) lanes = m->strip[i].lanes[back];
    return chain_width(m, first, n) + MIRROR_LANE * lanes;
}

double mirror_edge_height(const MirrorPen *p, const MirrorStrip *s, int r) {
    MirrorLabel f = mirror_label(p, s, r, false), b = mirror_label(p, s, r, true);
    const int n = f.n > b.n ? f.n : b.n, lines = n * (p->look.inlined ? 1 : 2);
    return p->look.edge + mirror_rail_room(p, s, r) + (lines > 1 ? p->look.line * (lines - 1) : 0) +
           (n > 1 ? p->look.apart * (n - 1) : 0);
}

const char *mirror_end_words(const MirrorPen *p, const MirrorEntry *e, int line) {
    Arena *a = p->c->arena;
    const ParamGrad *w = e->first;
    if (line == 0 && !e->shape) return bytes_text(e->bytes, a);
    const TraceLocal *l = line == 0 ? words_find_local(e->shape, p->m->g->rank) : NULL;
    if (line == 0)
        return arena_printf(a, "%s  %s", words_symbol(a, e->shape->symbolic),
                            l ? words_shape(a, l->shape, e->shape->nd) : "");
    Str s = str_new(a);
    for (int i = 0; i < w->n; i++)
        str_addf(&s, "%s%s", i ? ", " : "", words_axis_list(a, p->m->g->t, w->coll[i]->axis));
    if (w->term) return "a term of the sum above";
    if (!w->n_unit) return w->n ? s.s : "nothing to add";
    const TraceParam *u = trace_param(p->m->g->t, w->unit[0]->subject.of);
    const char *with =
        grads_words(a, grads_weight(a, u ? grads_path(u) : w->unit[0]->value), false);
    str_addf(&s, "%swith %s", w->n ? "; " : "", with);
    for (int i = 0; i < w->n_unit && !p->look.narrow; i++)
        str_addf(&s, ", %s", words_axis_list(a, p->m->g->t, w->unit[i]->axis));
    return s.s;
}

const char *mirror_state_words(const MirrorPen *p, const TraceParam *w, int which) {
    Arena *a = p->c->arena;
    if (which == 1) return words_symbol(a, w->rest.symbolic);
    if (which == 2) return words_symbol(a, w->compute.symbolic);
    return !mirror_fetch(p->m, w, 0) ? "" : mirror_freed(p->m, w) ? "freed" : "kept";
}

static bool rest_alike(const TraceParam *a, const TraceParam *b) {
    return text_same(a->rest.symbolic, b->rest.symbolic) &&
           text_same(a->compute.symbolic, b->compute.symbolic);
}
int mirror_fetches(const MirrorPen *p, const MirrorRow *r, const TraceParam *like) {
    const Trace *t = p->m->g->t;
    int n = 0;
    for (int i = 0; i < r->n_op; i++)
        for (int k = 0; k < r->op[i].f->n_inputs; k++) {
            const TraceParam *w = trace_param(t, r->op[i].f->inputs[k]);
            if (!mirror_moves(w) || !rest_alike(w, like)) continue;
            const TraceCollective *c = mirror_fetch(p->m, w, 0);
            n += c && trace_param(t, c->value) == w;
        }
    return n;
}

const char *mirror_fetch_words(const MirrorPen *p, const MirrorRow *r, const TraceParam *like) {
    const TraceCollective *c = mirror_fetch(p->m, like, 0);
    const CollWord *word = c ? coll_word(c->op) : NULL;
    if (!word || trace_param(p->m->g->t, c->value) != like) return "";
    const int n = mirror_fetches(p, r, like);
    return n > 1 ? arena_printf(p->c->arena, "%s ×%d", word->code, n) : word->code;
}

/* Weights of a row that lie at rest in another way; alike ones in one line. Returns their number.
 */
int mirror_states(const MirrorPen *p, const MirrorRow *r, const TraceParam **out,
                  const char **name) {
    Arena *a = p->c->arena;
    const char *group[MIRROR_FLOW];
    int n = 0;
    for (int i = 0; i < r->n_op; i++)
        for (int k = 0; k < r->op[i].f->n_inputs; k++) {
            const TraceParam *w = trace_param(p->m->g->t, r->op[i].f->inputs[k]);
            if (!mirror_moves(w)) continue;
            int j = 0;
            while (j < n && !rest_alike(out[j], w)) j++;
            if (j == MIRROR_FLOW) continue;
            if (j == n) out[n] = w, group[n] = "", name[n++] = "";
            const char *word = w->module ? words_weight_next(a, w->module, w, &group[j])
                                         : grads_weight(a, grads_path(w));
            name[j] = join(a, name[j], " ", word);
        }
    return n;
}

/* Has the gutter no room for what is kept with the name of the norm that gives it? Then none of
 * the figure is told by its name. */
static bool norms_too_long(MirrorPen *p, int first, int n) {
    bool longer = false;
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < 2 * p->m->strip[i].n; r++) {
            double w[2];
            for (int brief = 0; brief < 2; brief++) {
                p->brief = brief;
                w[brief] = mirror_text_width(
                    p, saved_words(p, &p->m->strip[i].row[r / 2], r % 2, NAMES_BRIEF), REGULAR);
            }
            longer |= w[0] > p->look.saved && w[1] < w[0];
        }
    return longer;
}

static void row_widths(const MirrorPen *p, const MirrorRow *r, Widths *w) {
    for (int back = 0; back < 2; back++)
        for (int rest = 0; rest < 2; rest++)
            widen(&w->box, mirror_text_width(p, mirror_words(p, r, back, rest), SEMIBOLD) +
                               (r->kind == ROW_COLL ? 32
                                : p->look.narrow    ? 14
                                                    : 20));
    for (int rest = 0; rest < 2 && !p->look.narrow && !p->look.inlined; rest++)
        if (*mirror_note(p, r, rest))
            widen(&w->box, mirror_text_width(p, mirror_words(p, r, false, rest), SEMIBOLD) + 6 +
                               mirror_text_width(p, mirror_note(p, r, rest), REGULAR) + 20);
    const TraceCollective *c = r->n_coll ? r->coll[0] : r->n_conj ? r->conj[0] : NULL;
    if (c) widen(&w->gutter, pill_width(p->s, mirror_pill(p, c)) + 30);
    for (int rest = 0; rest < 2; rest++) {
        const char *text = mirror_saved_words(p, r, rest, p->look.saved);
        widen(&w->gutter,
              fmin(210, mirror_text_width(p, text, REGULAR) + (p->look.narrow ? 40 : 48)));
    }
    MirrorEntry e[MIRROR_MAX];
    int n = mirror_entries(p, r, e);
    for (int i = 0; i < n; i++) {
        widen(&w->grad, fmin(260, mirror_text_width(p, e[i].names, SEMIBOLD) + 20));
        for (int k = 0; k < e[i].first->n; k++) {
            const char *word = mirror_entry_words(p, &e[i], k);
            widen(&w->hex, mirror_text_width(p, word, SEMIBOLD) + 28);
        }
        widen(&w->chain, e[i].first->n);
        for (int k = 0; k < 2; k++)
            widen(&w->end, mirror_text_width(p, mirror_end_words(p, &e[i], k), SEMIBOLD) + 8);
    }
    const TraceParam *q[MIRROR_FLOW];
    const char *name[MIRROR_FLOW];
    n = mirror_states(p, r, q, name);
    for (int i = 0; i < n; i++) {
        widen(&w->state[0], mirror_text_width(p, name[i], SEMIBOLD));
        widen(&w->fetch, mirror_text_width(p, mirror_fetch_words(p, r, q[i]), SEMIBOLD) + 14);
        for (int k = 1; k < 3; k++) {
            const TraceShape *sh = k == 1 ? &q[i]->rest : &q[i]->compute;
            const TraceLocal *l = words_find_local(sh, p->m->g->rank);
            widen(&w->state[k], mirror_text_width(p, mirror_state_words(p, q[i], k), REGULAR));
            if (l)
                widen(&w->state[k],
                      mirror_text_width(p, words_shape(p->c->arena, l->shape, sh->nd), REGULAR));
        }
    }
}

static void edge_widths(const MirrorPen *p, const MirrorStrip *s, int r, Widths *w) {
    for (int back = 0; back < 2; back++) {
        MirrorLabel l = mirror_label(p, s, r, back);
        for (int i = 0; i < l.n; i++) {
            double sym = mirror_text_width(p, l.line[i], REGULAR),
                   num = mirror_text_width(p, l.num[i], REGULAR);
            widen(back ? &w->right : &w->left,
                  p->look.inlined && num > 0 ? sym + 10 + num : fmax(sym, num));
        }
        if (l.pending)
            widen(&w->gutter,
                  2 * (mirror_text_width(p, mirror_pending(p, &l), SEMIBOLD) + 16) - w->box);
    }
}

/* Room left of the boxes: values that a row reads from outside, titles of chains. */
static void side_widths(const MirrorPen *p, const MirrorStrip *s, Widths *w) {
    const TraceValue *v[MIRROR_FLOW];
    for (int r = 0; r < s->n; r++) {
        int n = mirror_sides(p->m, s, r, v, MIRROR_FLOW);
        for (int i = 0; i < n && !mirror_sides_named(p, s, r); i++)
            for (int line = 0; line < 2; line++)
                widen(&w->left,
                      mirror_text_width(p, mirror_side_words(p, v[i], false, line), SEMIBOLD) +
                          w->box / 2 + 10);
        n = p->look.bare ? 0 : mirror_side_grads(s, r, v, MIRROR_FLOW);
        for (int line = 0; n && line < 2; line++)
            widen(&w->right,
                  mirror_text_width(p, mirror_side_grad_words(p, s, v, n, line), SEMIBOLD) +
                      w->box / 2 + 14);
        widen(&w->right, mirror_text_width(p, mirror_term_words(p, s, r), SEMIBOLD) + 44);
    }
    for (int r = 0; r < s->n; r++) /* names in the lines of what passes rows, outgoing ones */
        for (int back = 0; back < 2; back++) {
            const char *names = mirror_past_words(p, s, r, back);
            if (*names)
                widen(back ? &w->right : &w->left,
                      mirror_text_width(p, names, SEMIBOLD) + w->box / 2 + 28);
            if (mirror_leaves_alone(s, r, back))
                widen(back ? &w->right : &w->left,
                      mirror_text_width(p, mirror_out_words(p, s, r, back), SEMIBOLD) + 50);
        }
    if (s->plain) widen(&w->left, mirror_title_width(p, s) + w->box / 2 - 26);
}

void mirror_columns(MirrorPen *p, double x, int first, int n) {
    p->brief = p->look.narrow || p->look.inlined || norms_too_long(p, first, n);
    Widths w = {.box = p->look.narrow ? 112 : 150, .gutter = p->look.narrow ? 80 : 130, .grad = 60};
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < p->m->strip[i].n; r++) row_widths(p, &p->m->strip[i].row[r], &w);
    for (int i = first; i < first + n; i++)
        for (int r = -1; r < p->m->strip[i].n; r++) edge_widths(p, &p->m->strip[i], r, &w);
    for (int i = first; i < first + n; i++) side_widths(p, &p->m->strip[i], &w);
    p->weight = -1;
    p->box = w.box;
    p->grad_w = w.grad;
    p->hex = w.hex;
    p->gap = p->look.narrow ? 18 : 24;
    p->col[0] = x;
    p->fetch = fmax(40, w.fetch);
    if (w.state[1] > 0) /* room for the heads */
        widen(&w.state[0], 48), widen(&w.state[1], 40), widen(&w.state[2], 52);
    for (int k = 0; k < 3; k++)
        p->col[k + 1] = p->col[k] + w.state[k] + (k == 1 ? 20 + p->fetch : k ? 26 : 10);
    if (w.state[1] > 0) p->weight = x;
    p->stream = x + (p->weight >= 0 && p->look.weights ? p->col[3] - x + 66 : 0) + 12;
    p->lane = chain_width(p->m, first, n) + 13;
    p->forward = p->stream + 14 + rail_width(p->m, first, n, false) +
                 fmax(w.left + MIRROR_LABEL, w.box / 2 + 12);
    p->backward = p->forward + w.box + w.gutter;
    p->back_stream = p->backward + fmax(w.right + MIRROR_LABEL, w.box / 2 + 8) + 18 +
                     rail_width(p->m, first, n, true);
    p->grad = p->back_stream + (p->look.narrow ? 24 : 40);
    p->right = p->back_stream + 12;
    p->grads = p->look.beside && w.end > 0;
    if (p->grads)
        p->right = p->grad + fmax(w.grad + w.chain * (p->hex + p->gap) + 8 + w.end,
                                  mirror_text_width(p, "weight gradients", SEMIBOLD));
}

void mirror_subtitle(const BlockGraph *g, PresetKind preset, const char **part) {
    block_subtitle(g, "forward and backward", part);
    for (int i = 0; preset == PRESET_SLIDE && i < 7 && part[i]; i++)
        part[i] = i == 3 ? words_mesh(g->arena, g->t) : i > 3 ? "" : part[i];
}
