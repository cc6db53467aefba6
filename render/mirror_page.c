/* Pages of "backward beside forward": wide and A4 with weights and their gradients at the sides, column with them as
 * lists underneath, one slide per strip. */
#include "render/block_page.h"
#include "render/mirror_draw.h"
#include "render/views.h"
#include <math.h>
#include <string.h>

static const MirrorLook wide = {30, 24, 29, 14, 20, 38, 20, false, true, true};
static const MirrorLook column = {28, 22, 27, 14, 20, 36, 20, true, false, false};
static const MirrorLook slide = {25, 20, 27, 14, 18, 31, 18, true, true, true};

static bool is_op(const TraceCollective *c, const char *op) { return c->op && !strcmp(c->op, op); }

/* ---- words ---- */

typedef enum { OF_FORWARD, OF_BACKWARD, OF_GRADIENTS, OF_WEIGHTS, OF_COUNT } Of;

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
                for (int j = 0; of == OF_BACKWARD && j < row->n_conj; j++) mine |= row->conj[j] == c;
                for (int j = 0; of == OF_GRADIENTS && j < row->n_grad; j++)
                    for (int l = 0; l < row->grad[j].n; l++) mine |= row->grad[j].coll[l] == c;
                for (int j = 0; of == OF_WEIGHTS && j < row->n_op; j++)
                    for (int l = 0; l < row->op[j].f->n_inputs; l++) mine |= !strcmp(row->op[j].f->inputs[l], c->value);
            }
        if (mine && (of != OF_WEIGHTS || words_find_param(t, c->value))) use[k++] = c;
    }
    return k;
}

/* Does every collective `op` of forward face `conj` (NULL: nothing), as many of them? False if there is none. */
static bool all_face(const Mirror *m, int first, int n, const char *op, const char *conj) {
    int seen = 0;
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < m->strip[i].n; r++) {
            const MirrorRow *row = &m->strip[i].row[r];
            if (!row->n_coll || !is_op(row->coll[0], op)) continue;
            seen++;
            if (row->n_conj != (conj ? row->n_coll : 0)) return false;
            for (int k = 0; k < row->n_conj; k++)
                if (!is_op(row->conj[k], conj)) return false;
        }
    return seen > 0;
}

static const char *title(const Mirror *m, int first, int n) {
    const Trace *t = m->g->t;
    Arena *a = m->g->arena;
    if (t->first_wrong && t->verdict && !strcmp(t->verdict, "different"))
        return arena_printf(a, "Forward and backward: %s is the first value that comes out wrong", t->first_wrong);
    const TraceCollective **use = ARENA_ARRAY(a, const TraceCollective *, t->n_collectives + 1);
    int k = collect(m, first, n, OF_FORWARD, use) + collect(m, first, n, OF_BACKWARD, use);
    if (all_face(m, first, n, "all_gather", "reduce_scatter"))
        return "The backward pass mirrors the forward pass: every AllGather faces a ReduceScatter";
    if (all_face(m, first, n, "all_reduce", NULL))
        return "The backward pass mirrors the forward pass: every AllReduce faces an identity";
    if (k) return "The backward pass beside the forward pass";
    if (collect(m, first, n, OF_WEIGHTS, use))
        return "The backward pass mirrors the forward pass: only weights and their gradients travel";
    if (collect(m, first, n, OF_GRADIENTS, use))
        return "The backward pass mirrors the forward pass: only gradients of weights travel";
    return "The backward pass mirrors the forward pass: nothing is sent";
}

/* Bytes kept for backward, and made again; each value once. */
static void saved_bytes(const Mirror *m, int first, int n, int64_t *kept, int64_t *again) {
    const TraceValue *seen[512], *v[MIRROR_MAX];
    int k = 0;
    *kept = *again = 0;
    for (int i = first; i < first + n; i++)
        for (int r = 0; r < 2 * m->strip[i].n; r++) {
            int count = mirror_saved(m, &m->strip[i].row[r / 2], r % 2, v, MIRROR_MAX);
            for (int j = 0; j < count; j++) {
                bool have = false;
                for (int l = 0; l < k; l++) have |= seen[l] == v[j];
                if (have || k == 512) continue;
                seen[k++] = v[j];
                const TraceLocal *l = words_find_local(&v[j]->shape, m->g->rank);
                *(mirror_again(m, v[j]) ? again : kept) += l ? l->bytes : 0;
            }
        }
}

static const char *totals(const Mirror *m, int first, int n, bool brief) {
    static const char *const word[OF_COUNT] = {"forward", "backward", "weight gradients", "weights"};
    Arena *a = m->g->arena;
    const TraceCollective **use = ARENA_ARRAY(a, const TraceCollective *, m->g->t->n_collectives + 1);
    Str s = str_new(a);
    int units = 0;
    for (int of = 0; of < OF_COUNT; of++) {
        Total *t;
        int k = words_totals(a, use, collect(m, first, n, (Of)of, use), &t);
        int64_t bytes = 0;
        for (int i = 0; i < k; i++) bytes += t[i].bytes;
        if (k) str_addf(&s, "%s%s", s.n ? (brief ? ", " : "; ") : "Sent per rank: ", word[of]);
        if (k && brief) str_addf(&s, " %s", bytes_text(bytes, a));
        for (int i = 0; i < k && !brief; i++) {
            const char *what = t[i].count == 1 ? " collective" : " collectives";
            str_addf(&s, "%s %s %s in %lld%s", i ? "," : "", words_axis_list(a, m->g->t, t[i].axis),
                     bytes_text(t[i].bytes, a), (long long)t[i].count, units++ ? "" : what);
        }
    }
    str_add(&s, s.n ? "." : "Nothing is sent.");
    int64_t kept, again;
    saved_bytes(m, first, n, &kept, &again);
    if (brief) return s.s;
    if (kept) str_addf(&s, " Kept for backward: %s in all.", bytes_text(kept, a));
    if (again) str_addf(&s, " Made again in backward: %s.", bytes_text(again, a));
    return words_symbol(a, s.s);
}

static const char *description(const MirrorPen *p, int first, int n) {
    Str s = str_new(p->c->arena);
    str_add(&s,
            "Forward pass of a block and, mirrored beside it, its backward pass with the gradients of the weights.");
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

static void subtitle(const ViewCall *c, const BlockGraph *g, PresetKind preset, const char **part) {
    RenderOptions o = *c->o;
    o.pass = "forward and backward";
    block_subtitle(g, &o, part);
    for (int i = 0; preset == PRESET_SLIDE && i < 7 && part[i]; i++)
        if (i >= 4) part[i] = "";
}

/* ---- pages ---- */

static MirrorPen pen_new(const ViewCall *c, const Mirror *m, PresetKind preset) {
    MirrorPen p = {.c = c, .m = m, .s = figure_new(c, "block", preset), .look = wide};
    if (preset == PRESET_COLUMN) p.look = column;
    if (preset == PRESET_SLIDE) p.look = slide;
    return p;
}

/* Strips [first, first + n) on one page. */
static Scene *page_new(const ViewCall *c, const Mirror *m, PresetKind preset, int first, int n, bool beside) {
    const Preset *pr = &presets[preset];
    MirrorPen p = pen_new(c, m, preset);
    Scene *s = p.s;
    const char *sub[8];
    double dot[BLOCK_MAX_STRIPS];
    p.look.beside &= beside;
    p.look.weights &= beside;
    mirror_columns(&p, pr->margin, first, n);
    s->w = fmax(preset == PRESET_COLUMN ? pr->w : 760, ceil(p.right + pr->margin));
    if (preset != PRESET_COLUMN && p.look.beside) s->w = fmax(s->w, pr->w);
    s->desc = description(&p, first, n);
    subtitle(c, m->g, preset, sub);
    double y = figure_head(s, preset, title(m, first, n), sub, 0) + 16, top = y + 21;
    mirror_heads(&p, y);
    double at = top + 30, plus = at;
    for (int i = 0; i < n; i++) {
        dot[i] = at;
        plus = mirror_strip(&p, &m->strip[first + i], at);
        at = plus + p.look.next;
    }
    double bottom = plus + 52, w = s->w - 2 * pr->margin;
    mirror_streams(&p, first, n, dot, top, bottom);
    y = bottom + 26;
    for (int i = 0; i < n && !p.look.beside; i++) y = mirror_lists(&p, &m->strip[first + i], pr->margin, y);
    y = figure_legend(s, pr->margin, w, y + 4, p.legend);
    y = figure_foot(s, c, pr->margin, w, y, totals(m, first, n, false), NULL);
    figure_page(s, preset, y);
    return s;
}

/* A4: all on one page if letters stay 7 pt high, else a page per strip, weights under it if they must. */
static int a4_pages(const ViewCall *c, const Mirror *m, int n, Scene **page) {
    page[0] = page_new(c, m, PRESET_A4, 0, m->n, true);
    if (page[0]->scale * 12 >= 7) return 1;
    for (int i = 0; i < n; i++) {
        page[i] = page_new(c, m, PRESET_A4, i, 1, true);
        if (page[i]->scale * 12 < 7) page[i] = page_new(c, m, PRESET_A4, i, 1, false);
    }
    return n;
}

/* One strip on a page of 16:9. Rows and gaps give way until it fits; NULL if it does not. */
static Scene *slide_new(const ViewCall *c, const Mirror *m, int index) {
    const Preset *pr = &presets[PRESET_SLIDE];
    MirrorPen p = pen_new(c, m, PRESET_SLIDE);
    const MirrorStrip *strip = &m->strip[index];
    const char *sub[8];
    Scene *s = p.s;
    mirror_columns(&p, pr->margin, index, 1);
    for (int less = 0; less < 2 && p.right + pr->margin > pr->w; less++) {
        p.look.weights = false;
        p.look.beside = !less;
        mirror_columns(&p, pr->margin, index, 1);
    }
    if (p.right + pr->margin > pr->w) return NULL;
    subtitle(c, m->g, PRESET_SLIDE, sub);
    s->desc = description(&p, index, 1);
    double y = figure_head(s, PRESET_SLIDE, title(m, index, 1), sub, 0) + 10, top = y + 17;
    double room = pr->h - 18 - 36 - (top + 30), less = 0;
    while (mirror_height(&p, strip) > room && less++ < 10) {
        p.look.edge -= 1;
        if (less > 3) p.look.row -= 0.5, p.look.sub -= 0.5;
    }
    while (mirror_height(&p, strip) + strip->n < room && p.look.edge < 40) p.look.edge += 1;
    if (mirror_height(&p, strip) > room) return NULL;
    mirror_heads(&p, y);
    double dot = top + 30, plus = mirror_strip(&p, strip, dot), bottom = plus + 36;
    mirror_streams(&p, index, 1, &dot, top, bottom);
    scene_begin(s, "footer", "footer", NULL);
    double x = p.stream + 24, w = p.back_stream - 24 - x;
    const char *line[2], *all = totals(m, index, 1, true);
    int n = scene_wrap(s, all, NULL, w, 12, REGULAR, 2, line);
    for (int i = 0; i < n; i++)
        scene_text(s, x, bottom + 12 - 16 * (n - 1 - i), ALIGN_LEFT, 12, REGULAR, ROLE_INK, line[i]);
    Role role;
    const char *stamp = words_stamp(c->arena, c->t, &role);
    double sx = p.back_stream + 24;
    if (pr->w - pr->margin - sx > 120)
        scene_text(s, sx, bottom + 12, ALIGN_LEFT, 12, REGULAR, role,
                   scene_fit(s, stamp, pr->w - pr->margin - sx, 12, REGULAR));
    scene_end(s);
    figure_page(s, PRESET_SLIDE, bottom + 18);
    return s;
}

int view_mirror(const ViewCall *c, const BlockGraph *g, PresetKind preset, Scene **page) {
    const Mirror *m = mirror_new(g);
    if (!m) return 0;
    int n = m->n < VIEW_MAX_PAGES ? m->n : VIEW_MAX_PAGES;
    if (preset == PRESET_A4) return a4_pages(c, m, n, page);
    if (preset != PRESET_SLIDE) {
        page[0] = page_new(c, m, preset, 0, m->n, true);
        return 1;
    }
    for (int i = 0; i < n; i++)
        if (!(page[i] = slide_new(c, m, i))) return 0;
    return n;
}
