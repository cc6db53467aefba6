/* Pages of "backward beside forward": wide and A4 with weights and their gradients at the sides,
 * column with them as lists underneath, a slide for each strip, messages beside it. */
#include "render/mirror/mirror_draw.h"
#include "render/graph/unlike.h"
#include "render/mirror/mirror_page.h"
#include "render/furniture/views.h"
#include "base/text.h"
#include <ctype.h>
#include <limits.h>
#include <math.h>
#include <string.h>

static const MirrorLook wide = {30, 24,  29,    14,    20,    38,    36,   20,
                                5,  166, false, false, false, false, true, true};
static const MirrorLook column = {28, 22,  27,   14,    20,    36,    36,    20,
                                  5,  160, true, false, false, false, false, false};
static const MirrorLook slide = {25, 20,  27,    14,    18,   31,    18,    13,
                                 0,  160, false, false, true, false, false, false};

static bool is_op(const TraceCollective *c, const char *op) { return c->op && !strcmp(c->op, op); }

/* ---- words ---- */

typedef enum { OF_FORWARD, OF_BACKWARD, OF_GRADIENTS, OF_WEIGHTS, OF_AGAIN, OF_AFTER, OF_COUNT } Of;

/* Does the gradient travel in it, alone or with others? */
static bool finishes(const ParamGrad *w, const TraceCollective *c) {
    bool is = false;
    for (int i = 0; i < w->n; i++) is |= w->coll[i] == c;
    for (int i = 0; i < w->n_unit; i++) is |= w->unit[i] == c;
    return is;
}

/* Does it carry parameters that the optimizer has updated (ZeRO)? A norm is summed instead. Of the
 * whole model: a step of the optimizer belongs to no strip. */
static bool is_update(const TraceCollective *c) { return c->pass == PHASE_OPTIMIZER && !c->reduce; }

/* Collectives of strips [first, first + n), each once. */
static int collect(const Mirror *m, int first, int n, Of of, const TraceCollective **use) {
    const Trace *t = m->g->t;
    int k = 0;
    for (int q = 0; q < t->n_collectives; q++) {
        const TraceCollective *c = &t->collectives[q];
        bool mine = false;
        for (int i = first; i < first + n; i++)
            for (int r = 0; r < m->strip[i].n; r++) {
                const MirrorRow *row = &m->strip[i].row[r];
                for (int j = 0; of == OF_FORWARD && j < row->n_coll; j++) mine |= row->coll[j] == c;
                for (int j = 0; of == OF_BACKWARD && j < row->n_conj; j++)
                    mine |= row->conj[j] == c;
                for (int j = 0; of == OF_GRADIENTS && j < row->n_grad; j++)
                    mine |= finishes(&row->grad[j], c);
                for (int j = 0; of == OF_AGAIN && c->step >= m->first_back && j < row->n_coll; j++)
                    mine |= !strcmp(row->coll[j]->value, c->value);
                for (int j = 0; of == OF_WEIGHTS && j < row->n_op; j++)
                    for (int l = 0; l < row->op[j].f->n_inputs; l++)
                        mine |= !strcmp(row->op[j].f->inputs[l], c->value);
            }
        mine |= of == OF_AFTER && is_update(c);
        if (mine && !wrong_skipped(c) && (of != OF_WEIGHTS || trace_param(t, c->value)))
            use[k++] = c;
    }
    return k;
}

/* Pieces of the residual stream among the strips: where there are any, the title speaks of them. */
static int pieces(const Mirror *m, int first, int n) {
    int k = 0;
    for (int i = first; i < first + n; i++) k += !m->strip[i].plain;
    return k;
}

/* Collectives of a row that move values with gradients: a list of rows has none. */
static int with_gradient(const Mirror *m, const MirrorRow *row) {
    int n = 0;
    for (int k = 0; k < row->n_coll; k++)
        n += trace_value(m->g->t, mirror_grad(m->g, row->coll[k]->value), INT_MAX) != NULL;
    return n;
}

/* Does every collective `op` of forward face `conj` (NULL: nothing), as many of them? False if
 * there is none. */
static bool all_face(const Mirror *m, int first, int n, const char *op, const char *conj) {
    int seen = 0;
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < m->strip[i].n; r++) {
            const MirrorRow *row = &m->strip[i].row[r];
            if (m->strip[i].plain && pieces(m, first, n)) continue;
            if (!row->n_coll || !is_op(row->coll[0], op)) continue;
            seen++;
            if (row->n_conj != (conj ? with_gradient(m, row) : 0)) return false;
            for (int k = 0; k < row->n_conj; k++)
                if (!is_op(row->conj[k], conj)) return false;
        }
    return seen > 0;
}

/* What travels where no pass sends values: nothing, gradients, weights and gradients. */
typedef enum { NOTHING, GRADIENTS, WEIGHTS } Travels;
/* "here ", or "in the layer " where its pieces stand together, if the rank takes part in more than
 * that, beside the optimizer's, which does not stand on the page: "only" and "nothing" are then not
 * of the whole. */
static const char *scope(const Mirror *m, int first, int n, Travels what) {
    const Trace *t = m->g->t;
    const TraceCollective **use =
        ARENA_ARRAY(m->g->arena, const TraceCollective *, t->n_collectives + 1);
    bool *shown = ARENA_ARRAY(m->g->arena, bool, t->n_collectives + 1);
    for (int of = 0; of < OF_COUNT; of++)
        for (int k = collect(m, first, n, (Of)of, use); k > 0; k--)
            shown[use[k - 1] - t->collectives] = true;
    for (int i = 0; i < t->n_collectives; i++) {
        const TraceCollective *c = &t->collectives[i];
        bool said = (what >= GRADIENTS && c->pass == PHASE_GRADIENTS) ||
                    (what == WEIGHTS && trace_param(t, c->value));
        if (!shown[i] && !said && c->pass != PHASE_OPTIMIZER && !wrong_skipped(c) &&
            words_group_of(&c->groups, m->g->rank) >= 0)
            return pieces(m, first, n) ? "in the layer " : "here ";
    }
    return "";
}

/* A message between stages by itself, which says little on a page of its own. */
static bool lone(const Mirror *m, int i) {
    const MirrorStrip *s = &m->strip[i];
    return s->plain && s->n == 1 && s->row[0].n_coll && is_op(s->row[0].coll[0], "send");
}
/* "Attention"; with a message "Attention, from another stage" and "MLP, to another stage". */
static const char *strips_word(const Mirror *m, int first, int n) {
    int message = n == 2 && lone(m, first) ? first : first + n - 1;
    const char *what = m->strip[n == 2 && message == first ? first + 1 : first].strip->title;
    char *with = arena_strdup(m->g->arena, m->strip[message].strip->title);
    *with = (char)tolower((unsigned char)*with);
    return n == 1 ? what : arena_printf(m->g->arena, "%s, %s", what, with);
}

/* What every collective of a kind faces, k of strips [first, first + n); NULL: it is not so. */
static const char *all_faces(const Mirror *m, int first, int n, const TraceCollective *const *use,
                             int k) {
    bool max = false; /* has no gradient, and faces nothing */
    if (all_face(m, first, n, "all_gather", "reduce_scatter"))
        return "AllGather faces a ReduceScatter";
    if (all_face(m, first, n, "shift", "shift")) return "hop of the ring faces a hop back";
    if (all_face(m, first, n, "send", "send")) return "message faces the one of its gradient";
    if (all_face(m, first, n, "all_to_all", "all_to_all"))
        return "AllToAll faces one that brings gradients back";
    if (!all_face(m, first, n, "all_reduce", NULL)) return NULL;
    for (int i = 0; i < k; i++) max |= text_same(use[i]->reduce, "max");
    return max ? "AllReduce that sums faces an identity" : "AllReduce faces an identity";
}
/* Does it draw what ends gradients of parameters? They may travel in a unit that another page has.
 */
static bool draws_gradients(const Mirror *m, int first, int n) {
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < m->strip[i].n; r++)
            for (int j = 0; j < m->strip[i].row[r].n_grad; j++)
                if (m->strip[i].row[r].grad[j].n) return true;
    return false;
}
/* It speaks of what its page shows: where the weights stand on another (`apart`), nothing is told
 * of their gradients. */
static const char *title(const Mirror *m, int first, int n, bool apart) {
    const Trace *t = m->g->t;
    Arena *a = m->g->arena;
    if (words_different(t))
        return arena_printf(a, "Forward and backward: the first wrong value %s",
                            words_wrong_value(a, t, t->first_wrong, false));
    const TraceCollective **use = ARENA_ARRAY(a, const TraceCollective *, t->n_collectives + 1);
    const char *rule = wrong_title(mirror_wrong(m, first, n));
    if (rule) return rule;
    int from = first, count = n;
    if (pieces(m, first, n)) { /* the pieces stand together */
        while (m->strip[from].plain) from++;
        count = pieces(m, first, n);
    }
    int k = collect(m, from, count, OF_BACKWARD, use);
    k += collect(m, from, count, OF_FORWARD, use + k);
    /* a page of some strips speaks of these: on others more may travel */
    bool part = n < m->n;
    const char *head =
        part ? strips_word(m, first, n) : "The backward pass mirrors the forward pass";
    const char *faces = all_faces(m, first, n, use, k);
    if (faces) return arena_printf(a, "%s: every %s", head, faces);
    if (k)
        return part ? arena_printf(a, "%s: the backward pass beside the forward pass", head)
                    : "The backward pass beside the forward pass";
    bool weights = collect(m, from, count, OF_WEIGHTS, use) > 0,
         gradients = collect(m, from, count, OF_GRADIENTS, use) > 0,
         after = gradients && collect(m, first, n, OF_AFTER, use) > 0,
         sent = collect(m, first, n, OF_FORWARD, use) + collect(m, first, n, OF_BACKWARD, use) > 0;
    apart |= !draws_gradients(m, first, n);
    const char *what = apart && (weights || gradients)
                           ? "activations and their gradients stay on the rank"
                       : weights   ? "only weights and their gradients travel"
                       : after     ? "gradients of weights travel"
                       : gradients ? "only gradients of weights travel"
                                   : "nothing is sent",
               *here = scope(m, from, count,
                             weights     ? WEIGHTS
                             : gradients ? GRADIENTS
                                         : NOTHING);
    if (!*here && sent && !weights && !gradients) here = "in the layer ";
    return arena_printf(a, "%s: %s%s", head, n == 1 && part ? "" : here, what);
}

/* Bytes kept for backward, and made again; each value once, a copy that is only a view of another
 * not at all. */
static void saved_bytes(const Mirror *m, int first, int n, int64_t *kept, int64_t *again) {
    const TraceValue *seen[512], *v[MIRROR_MAX];
    int k = 0;
    *kept = *again = 0;
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < 2 * m->strip[i].n; r++) {
            int count = mirror_saved(m, &m->strip[i].row[r / 2], r % 2, v, MIRROR_MAX);
            for (int j = 0; j < count; j++) {
                bool have = false;
                for (int l = 0; l < k; l++) have |= mirror_one_buffer(m, seen[l], v[j]);
                if (have || k == 512) continue;
                seen[k++] = v[j];
                const TraceLocal *l = words_find_local(&v[j]->shape, m->g->rank);
                *(mirror_again(m, v[j]) ? again : kept) += l ? l->bytes : 0;
            }
        }
}

static bool of_loss(const TraceCollective *const *use, int n) {
    for (int i = 0; i < n; i++)
        if (use[i]->pass == PHASE_LOSS) return true;
    return false;
}
/* ", 8 of them again for backward": of what brings weights, over several axes "11 of these 23". */
static const char *again_words(const Mirror *m, const TraceCollective *const *use, int n,
                               bool axes) {
    int again = 0;
    for (int i = 0; i < n; i++) again += use[i]->step >= m->first_back && collective_times(use[i]);
    if (!again || m->first_back < 0) return "";
    return again == n ? ", for backward"
           : axes     ? arena_printf(m->g->arena, ", %d of these %d again for backward", again, n)
                      : arena_printf(m->g->arena, ", %d of them again for backward", again);
}
const char *mirror_totals(const Mirror *m, int first, int n, bool brief) {
    static const char *const word[OF_COUNT] = {"forward",          "backward",
                                               "weight gradients", "weights",
                                               "made again",       "all parameters after the step"};
    Arena *a = m->g->arena;
    const TraceCollective **use =
        ARENA_ARRAY(a, const TraceCollective *, m->g->t->n_collectives + 1);
    Str s = str_new(a);
    const Total *said = NULL;
    bool rows = false;
    for (int of = 0; of < OF_COUNT; of++) {
        Total *t;
        int used = collect(m, first, n, (Of)of, use),
            k = words_totals(a, use, used, m->g->rank, &t);
        Total all = {0};
        rows |= words_expected(use, used);
        for (int i = 0; i < k; i++) words_add_total(&all, &t[i], 1);
        const char *name = of == OF_FORWARD && of_loss(use, used) ? "forward and loss" : word[of];
        if (k && !s.n) str_addf(&s, "%s: %s", words_sent_by(a, m->g->t, m->g->rank), name);
        else if (k) str_addf(&s, "%s%s", brief ? ", " : "; ", name);
        if (k && brief) str_addf(&s, " %s", all.count ? bytes_text(all.bytes, a) : "nothing");
        for (int i = 0; i < k && !brief; i++) {
            str_addf(&s, "%s %s", i ? "," : "",
                     words_sent_over(a, m->g->t, &t[i], t[i].axis, said));
            if (t[i].count) said = &t[i];
        }
        if (of == OF_WEIGHTS && k && !brief) str_add(&s, again_words(m, use, used, k > 1));
    }
    str_add(&s, s.n ? "." : "Nothing is sent.");
    int64_t kept, again;
    saved_bytes(m, first, n, &kept, &again);
    if (brief) return s.s;
    if (kept) str_addf(&s, " Kept for backward: %s in all.", bytes_text(kept, a));
    if (again) str_addf(&s, " Made again in backward: %s.", bytes_text(again, a));
    if (rows) str_add(&s, " Rows of experts: as many as expected.");
    str_add(&s, unlike_words(m->g));
    return words_symbol(a, s.s);
}

static const char *description(const MirrorPen *p, int first, int n) {
    Str s = str_new(p->c->arena);
    str_add(&s, "Forward pass of a block and, mirrored beside it, its backward pass with the "
                "gradients of the weights.");
    for (int i = first; i < first + n; i++) {
        const MirrorStrip *strip = &p->m->strip[i];
        str_addf(&s, " %s:", strip->strip->title);
        for (int r = 0; r < strip->n; r++) {
            const char *back = mirror_words(p, &strip->row[r], true, false);
            str_addf(&s, "%s%s", r ? ", " : " ", mirror_words(p, &strip->row[r], false, false));
            if (*back) str_addf(&s, " (%s)", back);
        }
        str_add(&s, ".");
    }
    return s.s;
}

/* ---- pages ---- */

/* Rows of a strip on a page of fixed height; the fewest of a slide, and of A4. */
enum { MOST_ROWS = 8, LEAST_ROWS = 5, A4_ROWS = 3 };

static MirrorPen pen_new(const ViewCall *c, const Mirror *m, PresetKind preset) {
    MirrorPen p = {.c = c, .m = m, .s = figure_new(c, "block", preset), .look = wide};
    if (preset == PRESET_COLUMN) p.look = column;
    if (preset == PRESET_SLIDE) p.look = slide;
    if (preset == PRESET_A4) p.look.saved = slide.saved; /* what is wider has smaller letters */
    return p;
}

/* Where the weights stand: beside a strip, under it, under it with few words in the gutter. */
typedef enum { WEIGHTS_BESIDE, WEIGHTS_UNDER, WEIGHTS_NARROW } WeightRoom;

/* The right edge of what was drawn from mark `from` on. */
static double right_edge(const Scene *s, int from) {
    double x = 0;
    for (int i = from; i < s->n_marks; i++) x = fmax(x, scene_box(&s->marks[i]).x1);
    return x;
}
/* The weights of strips under them, two lists side by side where the first leaves half of the
 * width.
 */
static double lists_under(MirrorPen *p, int first, int n, Band at) {
    double y = at.y, below = y;
    bool right = false;
    for (int i = first; i < first + n; i++) {
        const int from = p->s->n_marks;
        const double end = mirror_lists(p, &p->m->strip[i], at.x + (right ? at.w / 2 : 0), y);
        if (end <= y) continue; /* it has none */
        below = fmax(below, end);
        right = !right && right_edge(p->s, from) < at.x + at.w / 2 - 12;
        if (!right) y = below;
    }
    return below;
}

/* What stands on a page: strips [first, first + n), and how. */
typedef struct {
    int first, n;
    WeightRoom room;
    double spare; /* so much higher may the page become */
} Sheet;
/* Rows and the gaps between them grow, as far as letters stay with their lines. */
static void spread(MirrorPen *p, const Sheet *sheet) {
    enum { MOST = 22 };
    const double most = mirror_strips_height(p, sheet->first, sheet->n) + sheet->spare;
    for (int i = 0; i < MOST && sheet->spare > 0; i++) {
        const MirrorLook was = p->look;
        p->look.edge += 1, p->look.row += 0.5, p->look.sub += 0.3;
        if (mirror_strips_height(p, sheet->first, sheet->n) <= most) continue;
        p->look = was;
        return;
    }
}

static Scene *page_new(const ViewCall *c, const Mirror *m, PresetKind preset, Sheet sheet) {
    const int first = sheet.first, n = sheet.n;
    const bool beside = sheet.room == WEIGHTS_BESIDE;
    const Preset *pr = &presets[preset];
    MirrorPen p = pen_new(c, m, preset);
    Scene *s = p.s;
    const char *sub[8];
    p.look.beside &= beside;
    p.look.weights &= beside;
    p.look.narrow |= sheet.room == WEIGHTS_NARROW;
    /* the weights stand under the strip: edges give way, more of them where there are several */
    if (preset == PRESET_A4 && !beside) p.look.edge -= n > 1 ? 5 : 2;
    if (preset == PRESET_A4 && !beside && n > 1)
        p.look.row -= 5, p.look.sub -= 3, p.look.tap -= 4, p.look.plus -= 4, p.look.fork -= 4,
            p.look.apart -= 3;
    mirror_columns(&p, pr->margin, first, n);
    s->w = fmax(preset == PRESET_COLUMN ? pr->w : 760, ceil(p.right + pr->margin));
    /* letters of the same size */
    if (preset == PRESET_WIDE && s->w < pr->w) s->px_width = (int)(pr->px * s->w / pr->w);
    s->desc = description(&p, first, n);
    mirror_subtitle(m->g, preset, sub);
    p.wrong = mirror_wrong(m, first, n);
    s->wrong = p.wrong->n || words_different(m->g->t);
    double w = s->w - 2 * pr->margin,
           y = figure_head(s, preset, title(m, first, n, false), sub, 0) + 16;
    y = wrong_notes(s, p.wrong, pr->margin, w, y - 14, 0) + (p.wrong->n ? 22 : 14);
    spread(&p, &sheet);
    mirror_heads(&p, y);
    y = mirror_strips(&p, first, n, y + 10) + 14;
    scene_row(s, "under the strips", y);
    if (!p.look.beside) y = lists_under(&p, first, n, (Band){pr->margin, w, y});
    y = figure_legend(s, (Band){pr->margin, w, y + 4}, p.legend);
    y = figure_foot(s, c, (Band){pr->margin, w, y}, mirror_totals(m, first, n, false), NULL);
    figure_page(s, preset, y);
    return s;
}

static bool a4_legible(const Scene *s) { return s->scale * 12 >= 7; }
/* As many strips from `first` on as a page holds, weights in that room; *n: how many, 0: not even
 * one. Pieces of a divided strip stand alone. */
static Scene *a4_most(const ViewCall *c, const Mirror *m, int first, WeightRoom room, int *n) {
    Scene *s = NULL;
    *n = 0;
    for (int k = 1; first + k <= m->n; k++) {
        const char *report;
        if (k > 1 && (m->strip[first].piece || m->strip[first + k - 1].piece)) break;
        Scene *more = page_new(c, m, PRESET_A4, (Sheet){first, k, room, 0});
        if (!a4_legible(more)) break;
        if (k == 1 || !scene_lint(more, c->arena, &report)) s = more, *n = k;
    }
    return s;
}
/* Strips drawn so high that they fill a sheet of that width and height, in points; NULL: letters
 * are too small so, or something touches. */
static Scene *a4_filled(const ViewCall *c, const Mirror *m, Sheet sheet, Pt page) {
    const char *report;
    const Scene *s = page_new(c, m, PRESET_A4, sheet);
    const double margin = s->off_y, k = (page.x - 2 * margin) / s->w;
    sheet.spare = (page.y - 2 * margin) / fmin(k, s->scale) - s->h;
    if (sheet.spare < 0) return NULL;
    Scene *full = page_new(c, m, PRESET_A4, sheet);
    const bool is = full->page_w == page.x && a4_legible(full);
    return is && !scene_lint(full, c->arena, &report) ? full : NULL;
}
/* The page s of a sheet, filled: as it lies, or upright where it would leave much of its width. */
static Scene *a4_fill(const ViewCall *c, const Mirror *m, Sheet sheet, Scene *s) {
    enum { MUCH = 80 }; /* percent of the width that are enough */
    const bool across = s->page_w > s->page_h,
               enough = 100 * s->w * s->scale >= MUCH * (s->page_w - 2 * s->off_y);
    const WeightRoom room = sheet.room;
    Scene *full = NULL;
    for (int k = room; across && !enough && k <= WEIGHTS_NARROW && !full; k++) {
        sheet.room = (WeightRoom)k;
        full = a4_filled(c, m, sheet, (Pt){s->page_h, s->page_w});
    }
    sheet.room = room;
    if (!full) full = a4_filled(c, m, sheet, (Pt){s->page_w, s->page_h});
    return full ? full : s;
}
/* Strips from `first` on as a sheet holds them: weights beside them; under them where they must
 * stand there, or where more strips fit; at last with few words in the gutter; *n: how many. */
static Scene *a4_page(const ViewCall *c, const Mirror *m, int first, int *n) {
    Sheet sheet = {first, 0, WEIGHTS_BESIDE, 0};
    Scene *s = a4_most(c, m, first, WEIGHTS_BESIDE, n);
    for (WeightRoom room = WEIGHTS_UNDER; room <= WEIGHTS_NARROW && *n < 2; room++) {
        int k;
        Scene *other = a4_most(c, m, first, room, &k);
        if (k > *n) s = other, *n = k, sheet.room = room;
    }
    if (!*n) *n = 1, sheet.room = WEIGHTS_NARROW;
    sheet.n = *n;
    return a4_fill(c, m, sheet, s ? s : page_new(c, m, PRESET_A4, sheet));
}
/* A4: all on one page if letters stay 7 pt high, else as many strips as a page holds. */
static int a4_pages(const ViewCall *c, const Mirror *m, Scene **page) {
    int n = 1;
    page[0] = page_new(c, m, PRESET_A4, (Sheet){0, m->n, WEIGHTS_BESIDE, 0});
    if (a4_legible(page[0])) return 1;
    for (int most = MOST_ROWS; most >= A4_ROWS; most--) {
        MirrorCut cut[BLOCK_MAX_STRIPS];
        for (int i = 0; i < m->n; i++) cut[i] = (MirrorCut){most, most < LEAST_ROWS};
        const Mirror *d = mirror_divide(c->arena, m, cut);
        bool small = false;
        n = 0;
        for (int i = 0, on = 1; i < d->n && n < VIEW_MAX_PAGES - 4; i += on, n++) {
            page[n] = a4_page(c, d, i, &on);
            small |= !a4_legible(page[n]);
        }
        if (!small) break;
    }
    return n;
}

/* The last line of a slide: what is sent, and the stamp. */
static void slide_foot(const ViewCall *c, Scene *s, const char *text, double y) {
    const Preset *pr = &presets[PRESET_SLIDE];
    Role role;
    double w = pr->w - 2 * pr->margin;
    const char *stamp = figure_verdict(s, c, w / 2, &role), *line[1];
    double sw = scene_width(s, 12, REGULAR, stamp);
    scene_begin(s, "footer", "footer", NULL);
    if (scene_wrap(s, text, (TextColumn){w - fmin(sw, w / 2) - 24, 12, REGULAR, 1, NULL}, line))
        scene_text(s, pr->margin, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, line[0]);
    scene_text(s, pr->w - pr->margin, y, (TextLook){ALIGN_RIGHT, 12, REGULAR, role}, stamp);
    scene_end(s);
}

/* The line above it: the gradients of the weights. Returns its height; 0: there is none, or it is
 * too long for a slide. */
static double slide_shapes(const MirrorPen *p, int first, int n, double y) {
    const Preset *pr = &presets[PRESET_SLIDE];
    const char *shapes = mirror_grad_shapes(p, first, n),
               *text = arena_printf(p->c->arena, "Weight gradients: %s.", shapes);
    if (!*shapes || scene_width(p->s, 12, REGULAR, text) > pr->w - 2 * pr->margin) return 0;
    if (y <= 0) return 16;
    scene_begin(p->s, "footer", "gradients", NULL);
    scene_text(p->s, pr->margin, y, (TextLook){ALIGN_LEFT, 12, REGULAR, ROLE_INK}, text);
    scene_end(p->s);
    return 16;
}

/* What a slide leaves out where there is no room for it. */
typedef struct {
    bool bare, shapes; /* numbers; shapes of the weights' gradients */
} Spared;

/* Strips [first, first + n), one or two, on a page of 16:9, numbers behind the symbols. Rows and
 * gaps give way until it fits (those of two strips less: they may have two pages), words of the
 * gutter too, and with `bare` numbers. */
static Scene *slide_new(const ViewCall *c, const Mirror *m, int first, int n, Spared without) {
    const bool bare = without.bare;
    const Preset *pr = &presets[PRESET_SLIDE];
    MirrorPen p = pen_new(c, m, PRESET_SLIDE);
    const char *sub[8];
    Scene *s = p.s;
    s->one_scale = true;
    mirror_columns(&p, pr->margin, first, n);
    for (int give = 0; give < 2 + bare && p.right + pr->margin > pr->w; give++) {
        p.look.terse = true;
        p.look.narrow = give > 0;
        p.look.bare = give > 1;
        mirror_columns(&p, pr->margin, first, n);
    }
    double spare = pr->w - pr->margin - p.right;
    s->w = fmax(s->w, p.right + pr->margin);
    if (spare > 0) mirror_columns(&p, pr->margin + spare / 2, first, n);
    mirror_subtitle(m->g, PRESET_SLIDE, sub);
    unlike_key(c, sub);
    s->desc = description(&p, first, n);
    p.wrong = mirror_wrong(m, first, n);
    s->wrong = p.wrong->n || words_different(m->g->t);
    double y =
        figure_head(s, PRESET_SLIDE, title(m, first, n, true), sub, pr->w - 2 * pr->margin - 40) +
        8;
    y = wrong_notes(s, p.wrong, pr->margin, pr->w - 2 * pr->margin, y - 8, 2) +
        (p.wrong->n ? 14 : 8);
    const double shapes = without.shapes ? 0 : slide_shapes(&p, first, n, 0);
    double room = pr->h - 34 - shapes - (y + 8), less = 0, most = n > 1 ? 9 : 18, rows = 0;
    for (int i = first; i < first + n; i++) rows += m->strip[i].n;
    while (mirror_strips_height(&p, first, n) > room && less++ < most) {
        p.look.edge -= 1;
        p.look.row -= 0.5, p.look.sub -= 0.3;
    }
    while (mirror_strips_height(&p, first, n) + 3 * rows + 6 < room && p.look.edge < 44)
        p.look.edge += 1, p.look.row += 0.5;
    mirror_heads(&p, y);
    double bottom = mirror_strips(&p, first, n, y + 8);
    double foot = fmax(bottom + 18 + shapes, pr->h - 14);
    if (shapes > 0) slide_shapes(&p, first, n, foot - shapes);
    slide_foot(c, s, mirror_totals(m, first, n, true), foot);
    figure_page(s, PRESET_SLIDE, foot + 10);
    return s;
}

static bool slide_holds(const Scene *s, Arena *a) {
    const char *report;
    return s->scale >= 1 && scene_lint(s, a, &report) == 0;
}
/* The same, without the shapes of gradients where it holds no more. */
static Scene *slide_of(const ViewCall *c, const Mirror *m, int first, int n, bool bare) {
    Scene *s = slide_new(c, m, first, n, (Spared){bare, false});
    return slide_holds(s, c->arena) ? s : slide_new(c, m, first, n, (Spared){bare, true});
}

/* The page that begins with strip *i, which is moved behind what is on it: a message and what it
 * comes before, or behind, where both have room. */
static Scene *slide_next(const ViewCall *c, const Mirror *m, int *i, bool bare) {
    Scene *both =
        *i + 1 < m->n && lone(m, *i) != lone(m, *i + 1) ? slide_of(c, m, *i, 2, bare) : NULL;
    bool fits = both && both->scale >= 1;
    Scene *page = fits ? both : slide_of(c, m, *i, 1, bare);
    *i += 1 + fits;
    return page;
}
/* What is tried of a strip, one after the other, until its slides hold it: fewer rows on each, then
 * no numbers, then the same with its ring torn. */
typedef struct {
    MirrorCut cut;
    bool bare, ring; /* no numbers; is there a ring? */
} Trial;
static bool try_next(Trial *t) {
    if (t->cut.most > LEAST_ROWS) t->cut.most--;
    else if (!t->bare) t->bare = true;
    else if (!t->ring || t->cut.torn) return false;
    else t->cut = (MirrorCut){MOST_ROWS, true}, t->bare = false;
    return true;
}

/* Pages of a divided mirror; which strips are on page k: [at[k], at[k + 1]). */
static int draw_slides(const ViewCall *c, const Mirror *d, const Trial *t, Scene **page, int *at) {
    int n = 0;
    for (int i = 0; i < d->n && n < VIEW_MAX_PAGES - 4; n++) {
        at[n] = i;
        page[n] = slide_next(c, d, &i, t[d->strip[i].number].bare);
        at[n + 1] = i;
    }
    return n;
}
/* A page for each strip, with as many rows as fit without getting small or crowded, and where even
 * the fewest do not, without numbers; *m becomes what is drawn. */
static int slides(const ViewCall *c, const Mirror **m, Scene **page) {
    const Mirror *all = *m;
    Trial t[BLOCK_MAX_STRIPS];
    for (int i = 0; i < all->n; i++)
        t[i] = (Trial){{MOST_ROWS, false}, false, mirror_fold(all->g, &all->strip[i]).hops > 0};
    for (;;) {
        MirrorCut cut[BLOCK_MAX_STRIPS];
        int at[VIEW_MAX_PAGES + 1];
        bool small[BLOCK_MAX_STRIPS] = {false}, again = false;
        for (int i = 0; i < all->n; i++) cut[i] = t[i].cut;
        *m = mirror_divide(c->arena, all, cut);
        const int n = draw_slides(c, *m, t, page, at);
        for (int k = 0; k < n; k++)
            for (int i = at[k]; i < at[k + 1] && !slide_holds(page[k], c->arena); i++)
                small[(*m)->strip[i].number] = true;
        for (int i = 0; i < all->n; i++) again |= small[i] && try_next(&t[i]);
        if (!again) return n;
    }
}

int view_mirror(const ViewCall *c, const BlockGraph *g, PresetKind preset, bool weights,
                Scene **page) {
    const Mirror *m = mirror_new(g);
    if (!m) return 0;
    if (weights) return mirror_weights(c, m, preset, page, VIEW_MAX_PAGES);
    if (preset == PRESET_A4) return a4_pages(c, m, page);
    if (preset != PRESET_SLIDE) {
        page[0] = page_new(c, m, preset, (Sheet){0, m->n, WEIGHTS_BESIDE, 0});
        return 1;
    }
    int n = slides(c, &m, page);
    n += mirror_weights(c, m, preset, page + n, VIEW_MAX_PAGES - n);
    return n;
}
