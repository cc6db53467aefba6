/* Blanks in a finished figure. What is a shape, a size in bytes or a collective is read off the
 * texts, because figures have one way to write each: shapes stand in brackets, bytes have a unit,
 * collectives have the names of the table of collectives. So no view knows of quizzes. Refuses to
 * judge answers: the key is a page for the teacher. */
#include "render/furniture/quiz.h"
#include "trace/collectives.h"
#include <ctype.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* ---- what stands in a text ---- */

static bool letter(char c) { return isalnum((unsigned char)c) || c == '_'; }

/* Length of a shape that begins at p, "[B/dp, S, D]"; 0: none. */
static size_t shape_at(const char *all, const char *p) {
    const char *end = *p == '[' ? strchr(p, ']') : NULL;
    return end && (p == all || !letter(p[-1])) ? (size_t)(end - p) + 1 : 0;
}
/* "24.2 KiB"; not the "0 KiB" at which an axis begins: nothing at all is 0 B. */
static size_t bytes_at(const char *all, const char *p) {
    static const char *const unit[] = {"KiB", "MiB", "GiB", "TiB", "PiB", "B"};
    if (!isdigit((unsigned char)*p) || (p > all && (letter(p[-1]) || p[-1] == '.'))) return 0;
    const char *q = p + strspn(p, "0123456789.,");
    if (*q != ' ' || (*p == '0' && q == p + 1 && strncmp(q, " B", 2) != 0)) return 0;
    q++;
    for (size_t i = 0; i < sizeof unit / sizeof *unit; i++)
        if (!strncmp(q, unit[i], strlen(unit[i])) && !letter(q[strlen(unit[i])]))
            return (size_t)(q - p) + strlen(unit[i]);
    return 0;
}
static size_t word_at(const char *all, const char *p, const char *word) {
    size_t n = strlen(word);
    return n && !strncmp(p, word, n) && !letter(p[n]) && (p == all || !letter(p[-1])) ? n : 0;
}
/* "AllGather", or its short form in a narrow box. */
static size_t collective_at(const char *all, const char *p) {
    for (const CollWord *w = coll_table(); w->op; w++) {
        size_t n = word_at(all, p, w->name), k = word_at(all, p, w->code);
        if (n || k) return n > k ? n : k;
    }
    return 0;
}
/* "AG AllGather": a list of what short forms stand for tells nothing of the figure. */
static size_t explained_at(const char *all, const char *p) {
    for (const CollWord *w = coll_table(); w->op; w++) {
        const size_t n = word_at(all, p, w->code);
        const size_t k = n && p[n] == ' ' ? word_at(all, p + n + 1, w->name) : 0;
        if (k) return n + 1 + k;
    }
    return 0;
}
static const struct {
    const char *name, *title;
    size_t (*at)(const char *all, const char *p);
    bool few; /* answers, so that the room of one would tell it from the others */
} kinds[] = {{"shapes", "Key: shapes", shape_at, false},
             {"collectives", "Key: collectives", collective_at, true},
             {"bytes", "Key: bytes", bytes_at, false}};
enum { N_KINDS = sizeof kinds / sizeof *kinds };

const char *const *quiz_names(void) {
    static const char *const names[N_KINDS + 1] = {"shapes", "collectives", "bytes", NULL};
    return names;
}

/* ---- blanks ---- */

typedef struct {
    int page, mark;
    double x, y, w; /* of its letters */
    double room;    /* the width of the blank; what follows moves up to it */
    const char *answer;
    int number; /* 0: outside of the figure proper, which asks nothing */
} Blank;
typedef struct {
    Arena *a;
    size_t (*at)(const char *, const char *);
    Blank *blank;
    int n, cap;
} Quiz;

/* Titles, legends and footers say things about the figure. */
static bool around(const Scene *s, int g) {
    static const char *const what[] = {"title", "legend", "footer", "page", "wrong"};
    for (; g >= 0; g = s->groups[g].parent)
        for (size_t i = 0; i < sizeof what / sizeof *what; i++)
            if (!strcmp(s->groups[g].what, what[i])) return true;
    return false;
}
/* The letters of a mark's runs, as one text. */
static const char *text_of(Arena *a, const Mark *m) {
    Str t = str_new(a);
    for (int i = 0; i < m->n_run; i++) str_add(&t, m->run[i].s);
    return t.s;
}
/* The part [from, to) of a mark's letters in the looks of its runs; returns the number of runs. */
static int part_of(Arena *a, const Mark *m, size_t from, size_t to, Run *out) {
    size_t at = 0;
    int n = 0;
    for (int i = 0; i < m->n_run; i++) {
        size_t k = strlen(m->run[i].s), lo = from > at ? from - at : 0, hi = to > at ? to - at : 0;
        if (hi > k) hi = k;
        if (lo < hi) {
            out[n] = m->run[i];
            out[n++].s = arena_strndup(a, m->run[i].s + lo, hi - lo);
        }
        at += k;
    }
    return n;
}
static double left_of(const Mark *m) {
    static const double shift[] = {[ALIGN_LEFT] = 0, [ALIGN_MIDDLE] = 0.5, [ALIGN_RIGHT] = 1};
    return m->x - shift[m->align] * m->w;
}
static double part_width(const Scene *s, const Mark *m, size_t from, size_t to) {
    Run *run = ARENA_ARRAY(s->arena, Run, m->n_run + 1);
    int n = part_of(s->arena, m, from, to, run);
    return n ? fonts_width(s->fonts, run, n, m->size) : 0;
}
static void find_blanks(Quiz *q, const Scene *s, int page) {
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        if (m->kind != MARK_TEXT) continue;
        const char *all = text_of(q->a, m);
        for (const char *p = all; *p; p++) {
            const size_t list = around(s, m->group) ? explained_at(all, p) : 0;
            size_t n = list ? 0 : q->at(all, p);
            if (list) p += list - 1;
            if (!n) continue;
            size_t from = (size_t)(p - all);
            *ARENA_PUSH(q->a, q->blank, q->n, q->cap) =
                (Blank){.page = page,
                        .mark = i,
                        .x = left_of(m) + part_width(s, m, 0, from),
                        .y = m->y,
                        .w = part_width(s, m, from, from + n),
                        .room = part_width(s, m, from, from + n),
                        .answer = arena_strndup(q->a, p, n),
                        .number = !around(s, m->group)};
            p += n - 1;
        }
    }
}
/* Where answers are few, each blank is as wide for its letters as the narrowest. */
static void even_blanks(Quiz *q, Scene *const *page) {
    double least = INFINITY;
    for (int i = 0; i < q->n; i++)
        least = fmin(least, q->blank[i].w / page[q->blank[i].page]->marks[q->blank[i].mark].size);
    for (int i = 0; i < q->n; i++) {
        Blank *b = &q->blank[i];
        b->room = least * page[b->page]->marks[b->mark].size;
    }
}
/* Lines from above, then from the left; what is apart by less than a line is one. */
static int reading_order(const Blank *a, const Blank *b) {
    double ya = floor(a->y / 8), yb = floor(b->y / 8);
    if (ya < yb || ya > yb) return ya < yb ? -1 : 1;
    if (a->x < b->x || a->x > b->x) return a->x < b->x ? -1 : 1;
    return a->mark - b->mark;
}

/* A mark of a page, or one of its blanks. */
typedef struct {
    Box box;
    Blank *blank; /* NULL: a mark, which keeps what stands around it together */
} Piece;
static int from_above(const void *x, const void *y) {
    const Piece *a = x, *b = y;
    return (a->box.y0 > b->box.y0) - (a->box.y0 < b->box.y0);
}
static int from_left(const void *x, const void *y) {
    const Piece *a = x, *b = y;
    return (a->box.x0 > b->box.x0) - (a->box.x0 < b->box.x0);
}
static int by_line(const void *x, const void *y) {
    const Piece *a = x, *b = y;
    if (!a->blank || !b->blank) return !a->blank - !b->blank;
    return reading_order(a->blank, b->blank);
}
/* Pieces of the first part, above or left of an empty band across all of them; n: there is no band.
 */
static int first_part(Piece *p, int n, bool rows) {
    enum { BAND = 8 };
    if (n) qsort(p, (size_t)n, sizeof *p, rows ? from_above : from_left);
    double end = -INFINITY;
    for (int i = 0; i < n; i++) {
        const Box b = p[i].box;
        if (i && (rows ? b.y0 : b.x0) - end >= BAND) return i;
        end = fmax(end, rows ? b.y1 : b.x1);
    }
    return n;
}
/* Numbers as a reader goes: rows of the figure, in them columns, in these lines. */
static void number_pieces(Piece *p, int n, int *next) {
    for (int rows = 1; rows >= 0; rows--) {
        const int k = first_part(p, n, rows);
        if (k == n) continue;
        number_pieces(p, k, next);
        number_pieces(p + k, n - k, next);
        return;
    }
    if (n) qsort(p, (size_t)n, sizeof *p, by_line);
    for (int i = 0; i < n && p[i].blank; i++) p[i].blank->number = (*next)++;
}
static int by_number(const void *x, const void *y) {
    const Blank *a = x, *b = y;
    return (a->number > b->number) - (a->number < b->number);
}
static void number_blanks(Quiz *q, Scene *const *page, int pages) {
    int next = 1;
    for (int i = 0; i < pages; i++) {
        const Scene *s = page[i];
        Piece *p = ARENA_ARRAY(q->a, Piece, s->n_marks + q->n + 1);
        int n = 0;
        for (int k = 0; k < s->n_marks; k++) {
            const Box b = scene_box(&s->marks[k]);
            if (!around(s, s->marks[k].group) && b.x1 >= b.x0 && b.y1 >= b.y0)
                p[n++] = (Piece){b, NULL};
        }
        for (int k = 0; k < q->n; k++) {
            Blank *b = &q->blank[k];
            if (b->page == i && b->number) p[n++] = (Piece){{b->x, b->y, b->x + b->w, b->y}, b};
        }
        number_pieces(p, n, &next);
    }
    if (q->n) qsort(q->blank, (size_t)q->n, sizeof *q->blank, by_number);
}

/* ---- the figure with blanks ---- */

static void draw_blank(Scene *s, const Mark *m, const Blank *b, double x) {
    Area at = {x, b->y - 0.95 * m->size, b->room, 1.17 * m->size}; /* digits in its middle */
    const char *number = arena_printf(s->arena, "%d", b->number);
    double need = b->number ? scene_width(s, m->size, REGULAR, number) + 4 : 0;
    if (need > at.w) at.x -= (need - at.w) / 2, at.w = need;
    scene_rect(s, at, 2, (Look){ROLE_PAPER, ROLE_SECOND, 1});
    if (b->number)
        scene_text(s, at.x + at.w / 2, b->y,
                   (TextLook){ALIGN_MIDDLE, m->size, REGULAR, ROLE_SECOND}, number);
}
static const Blank *blank_at(const Quiz *q, int page, int mark, double x) {
    for (int b = 0; b < q->n; b++)
        if (q->blank[b].page == page && q->blank[b].mark == mark && fabs(q->blank[b].x - x) < 0.01)
            return &q->blank[b];
    return NULL;
}
/* How far the text of a mark begins right of where it began, as its blanks take less room. */
static double moved(const Quiz *q, const Mark *m, int page, int mark) {
    static const double share[] = {[ALIGN_LEFT] = 0, [ALIGN_MIDDLE] = 0.5, [ALIGN_RIGHT] = 1};
    double less = 0;
    for (int b = 0; b < q->n; b++)
        if (q->blank[b].page == page && q->blank[b].mark == mark)
            less += q->blank[b].w - q->blank[b].room;
    return share[m->align] * less;
}
/* A text mark as the words between its blanks, and the blanks. */
static void draw_parts(Scene *s, const Mark *m, const Quiz *q, int page, int mark) {
    const char *all = text_of(q->a, m);
    size_t end = strlen(all), from = 0;
    Run *run = ARENA_ARRAY(s->arena, Run, m->n_run + 1);
    double move = moved(q, m, page, mark);
    for (size_t i = 0; i <= end; i++) {
        size_t n = i < end ? q->at(all, all + i) : 0;
        if (i < end && !n) continue;
        int k = part_of(s->arena, m, from, i, run);
        double x = left_of(m) + part_width(s, m, 0, from) + move;
        if (k) scene_runs(s, (Pt){x, m->y}, ALIGN_LEFT, m->size, run, k);
        x = left_of(m) + part_width(s, m, 0, i);
        const Blank *b = n ? blank_at(q, page, mark, x) : NULL;
        if (b) draw_blank(s, m, b, x + move), move -= b->w - b->room;
        from = i + n;
        i += n ? n - 1 : 0;
    }
}
static bool has_blank(const Quiz *q, int page, int mark) {
    for (int i = 0; i < q->n; i++)
        if (q->blank[i].page == page && q->blank[i].mark == mark) return true;
    return false;
}
static void blank_out(const Quiz *q, Scene *s, int page) {
    Mark *old = s->marks;
    int n = s->n_marks, *now = ARENA_ARRAY(q->a, int, n + 1); /* where old marks begin */
    s->marks = NULL;
    s->n_marks = s->cap_marks = 0;
    for (int i = 0; i < n; i++) {
        now[i] = s->n_marks;
        s->open = old[i].group;
        int before = scene_at(s, old[i].step);
        if (old[i].kind == MARK_TEXT && has_blank(q, page, i)) draw_parts(s, &old[i], q, page, i);
        else *ARENA_PUSH(s->arena, s->marks, s->n_marks, s->cap_marks) = old[i];
        scene_at(s, before);
    }
    s->open = -1;
    now[n] = s->n_marks;
    for (int i = 0; i < s->n_arrows; i++) s->arrows[i].mark = now[s->arrows[i].mark];
    for (int i = 0; i < s->n_groups; i++) {
        Group *g = &s->groups[i];
        g->tip = NULL;
        g->first = now[g->first], g->last = now[g->last];
    }
    s->title = s->desc = "A figure with numbered blanks to fill in.";
}

/* ---- the key ---- */

enum { LINE = 19, GAP = 26 };

/* "AG AllGather" of what stands abbreviated: the figure's list of these is blank as well. */
static const char *in_full(Arena *a, const char *answer) {
    for (const CollWord *w = coll_table(); w->op; w++)
        if (!strcmp(w->code, answer) && strcmp(w->name, answer))
            return arena_printf(a, "%s %s", answer, w->name);
    return answer;
}
/* Answers from *next on in columns down to the end of the page; moves *next behind them. */
static Scene *key_page(const ViewCall *c, const Quiz *q, const char *title, int *next) {
    PresetKind preset;
    furniture_preset(c->o->preset, &preset);
    const Preset *pr = &presets[preset];
    Scene *s = figure_new(c, "key", preset);
    const char *sub[] = {words_file(c->t->plan ? c->t->plan : "a trace"), NULL};
    double top = figure_head(s, preset, title, sub, 0) + 14, w = 0, x = pr->margin;
    int left = 0, row = 0, col = 0;
    for (int i = *next; i < q->n; i++) {
        if (!q->blank[i].number) continue;
        w = fmax(w, 34 + scene_width(s, 12.5, SEMIBOLD, q->blank[i].answer));
        left++;
    }
    int cols = (int)fmax(1, floor((s->w - 2 * pr->margin + GAP) / (w + GAP)));
    int rows = (left + cols - 1) / cols;
    if (preset == PRESET_SLIDE) rows = (int)fmin(rows, fmax(1, (pr->h - 12 - top) / LINE));
    scene_begin(s, "key", "key", "what belongs into the blanks, by their numbers");
    for (; *next < q->n && col < cols; ++*next) {
        const Blank *b = &q->blank[*next];
        if (!b->number) continue;
        double y = top + LINE * row;
        scene_textf(s, x + 22, y, (TextLook){ALIGN_RIGHT, 12.5, REGULAR, ROLE_SECOND}, "%d",
                    b->number);
        scene_text(s, x + 30, y, (TextLook){ALIGN_LEFT, 12.5, SEMIBOLD, ROLE_INK}, b->answer);
        if (++row == rows) row = 0, col++, x += w + GAP;
    }
    while (*next < q->n && !q->blank[*next].number) ++*next;
    scene_end(s);
    s->desc = "What belongs into the blanks of a figure, by their numbers.";
    figure_page(s, preset, top + LINE * (rows - 1) + 16);
    return s;
}

int quiz_pages(const ViewCall *c, const char *kind, Scene *const *page, int n, Scene **key,
               int max) {
    Quiz q = {.a = c->arena};
    int k = 0, next = 0, pages = 0;
    while (strcmp(kinds[k].name, kind)) k++;
    q.at = kinds[k].at;
    for (int i = 0; i < n; i++) find_blanks(&q, page[i], i);
    if (kinds[k].few) even_blanks(&q, page);
    number_blanks(&q, page, n);
    for (int i = 0; i < q.n && kinds[k].few; i++)
        q.blank[i].answer = in_full(c->arena, q.blank[i].answer);
    const char *title = arena_printf(c->arena, "%s of “%s”", kinds[k].title, page[0]->title);
    for (int i = 0; i < n; i++) blank_out(&q, page[i], i);
    while (next < q.n && !q.blank[next].number) next++;
    while (next < q.n && pages < max) key[pages++] = key_page(c, &q, title, &next);
    return pages;
}
