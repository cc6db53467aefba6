/* Layers and stages that say the same, folded. See fold.h. */
#include "cli/fold.h"
#include "base/text.h"
#include <ctype.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers of layers in names ---- */
static bool in_word(char c) { return isalnum((unsigned char)c) || c == '_'; }
/* Where the first component begins that is a number, behind another; NULL: none is. */
static const char *first_number(const char *name) {
    for (const char *p = name; p && *p; p++)
        if (p > name + 1 && p[-1] == '.' && in_word(p[-2]) && isdigit((unsigned char)*p)) {
            const char *end = p + strspn(p, "0123456789");
            if (!in_word(*end)) return p;
        }
    return NULL;
}
void fold_learn(FoldWords *w, const char *name, int layer) {
    const char *number = layer < 0 ? NULL : first_number(name);
    if (!number || strtol(number, NULL, 10) != layer) return;
    const char *from = number - 1;
    while (from > name && in_word(from[-1])) from--;
    for (int i = 0; i < w->n; i++)
        if (!strncmp(w->word[i], from, (size_t)(number - from)) && !w->word[i][number - from])
            return;
    *ARENA_PUSH(w->arena, w->word, w->n, w->cap) =
        arena_strndup(w->arena, from, (size_t)(number - from));
}
FoldWords fold_words(const Trace *t, Arena *a) {
    FoldWords w = {.arena = a};
    for (int i = 0; i < t->n_params; i++) {
        fold_learn(&w, t->params[i].compute.name, t->params[i].layer);
        fold_learn(&w, t->params[i].plan_name, t->params[i].layer);
    }
    for (int i = 0; i < t->n_values; i++)
        fold_learn(&w, t->values[i].shape.name, t->values[i].layer);
    return w;
}
/* Of a table those of the layers that its rows are of. */
static FoldWords words_of(const Table *t) {
    FoldWords w = {.arena = t->arena};
    for (int r = 0; t->place && r < t->n_rows; r++)
        for (int c = 0; c < t->n_cols; c++)
            if (t->col[c].how & COL_NAMES) fold_learn(&w, t->row[r][c].text, t->place[r].layer);
    return w;
}
/* Length of a learned word ("layers.", "blk.") before a layer's number, where a component of a name
 * begins at s; else 0. */
static size_t before_number(const FoldWords *w, const char *all, const char *s) {
    if (s > all && in_word(s[-1])) return 0;
    for (int i = 0; i < w->n; i++) {
        size_t n = strlen(w->word[i]);
        if (!strncmp(s, w->word[i], n) && isdigit((unsigned char)s[n])) return n;
    }
    return 0;
}
RowPlace fold_place_named(const FoldWords *w, const char *name) {
    RowPlace at = {.layer = -1, .at = -1, .part = -1};
    for (const char *p = name; p && *p && at.layer < 0; p++) {
        size_t n = before_number(w, name, p);
        long layer = n ? strtol(p + n, NULL, 10) : -1;
        if (layer >= 0 && layer < INT_MAX) at.layer = (int)layer;
    }
    return at;
}
RowPlace fold_place_first(const char *name) {
    const char *number = first_number(name);
    const long layer = number ? strtol(number, NULL, 10) : -1;
    return (RowPlace){.layer = layer < INT_MAX ? (int)layer : -1, .at = -1, .part = -1};
}
const char *fold_name(const FoldWords *w, const char *name, Arena *a) {
    Str s = str_new(a);
    for (const char *p = name; *p;) {
        size_t n = before_number(w, name, p);
        if (!n) {
            str_addn(&s, p++, 1);
            continue;
        }
        str_addf(&s, "%.*s*", (int)n, p);
        for (p += n; isdigit((unsigned char)*p);) p++;
    }
    return s.s;
}
/* By how much numbers are larger: of layers, and of stages one of several numbers. */
typedef struct {
    const FoldWords *words;
    long layer;
    int n_stages;
    const int *stages; /* 0 if there are none: stages are the same */
} Shift;
/* Length of "stage " before a stage's number in a reason; else 0. */
static size_t before_stage(const char *all, const char *s) {
    static const char word[] = "stage ";
    enum { LENGTH = sizeof word - 1 };
    if (s > all && isalnum((unsigned char)s[-1])) return 0;
    return !strncmp(s, word, LENGTH) && isdigit((unsigned char)s[LENGTH]) ? LENGTH : 0;
}
/* Is b what a says, with every number of a layer and of a stage larger by so much? */
static bool shifted_by(const FoldWords *w, const char *x, const char *y, long by_layer,
                       long by_stage) {
    for (const char *from = x; *x;) {
        size_t layer = before_number(w, from, x), n = layer ? layer : before_stage(from, x);
        if (!n) {
            if (*x++ != *y++) return false;
            continue;
        }
        if (strncmp(x, y, n) || !isdigit((unsigned char)y[n])) return false;
        char *end_x, *end_y;
        long more = layer ? by_layer : by_stage;
        if (strtol(x + n, &end_x, 10) + more != strtol(y + n, &end_y, 10)) return false;
        x = end_x;
        y = end_y;
    }
    return !*y;
}
static bool shifted(const char *a, const char *b, Shift by) {
    const char *x = a ? a : "", *y = b ? b : "";
    bool same = !by.n_stages && shifted_by(by.words, x, y, by.layer, 0);
    for (int i = 0; i < by.n_stages && !same; i++)
        same = shifted_by(by.words, x, y, by.layer, by.stages[i]);
    return same;
}

/* ---- when, and how it is said ---- */
/* Are so many blocks of n rows, the first included, worth a line instead? */
static bool is_worth(int times, int n) {
    return times >= FOLD_LAYERS || (times - 1) * n >= FOLD_PAGE;
}
/* "layers 1-125", "layer 1", "micro-batches 1-30". */
static const char *span_text(Arena *a, const char *word, long from, long to) {
    const char *many = text_before(word, "ch") ? "es" : "s";
    return from == to ? arena_printf(a, "%s %ld", word, from)
                      : arena_printf(a, "%s%s %ld-%ld", word, many, from, to);
}
static const char *each_text(Arena *a, int n) {
    return arena_printf(a, " (%d row%s each)", n, n == 1 ? "" : "s");
}
/* Stands a line after one of n rows, the last not asked? It would go with what is folded. */
static bool is_spoken(const Table *t, int from, int n) {
    for (int r = from; t->after && r < from + n - 1; r++)
        if (t->after[r]) return true;
    return false;
}
/* The line after the last row that stays, and under it the one that stood after the last of all. */
static const char *lines(Arena *a, const char *line, const char *next) {
    return line && next ? arena_printf(a, "%s\n%s", line, next) : line ? line : next;
}

/* ---- blocks of rows ---- */
typedef struct {
    const Table *t;
    FoldWords words;
    int step;  /* the column; -1: none */
    bool lone; /* the row before has no like in the next layer: `layers.0.input` */
} Folding;
static bool same_step(const Folding *f, int base, int r, int other_base, int other) {
    const char *s[4];
    int row[4] = {base, r, other_base, other};
    for (int i = 0; i < 4; i++) s[i] = f->t->row[row[i]][f->step].text;
    if (!s[1] || !s[3]) return !s[1] && !s[3];
    if (!s[0] || !s[2]) return false;
    return atol(s[1]) - atol(s[0]) == atol(s[3]) - atol(s[2]);
}
/* Do the cells of two rows say the same? `skip`: columns with this mark are not asked. */
static bool same_cells(const Folding *f, int a, int b, Shift by, int skip) {
    for (int c = 0; c < f->t->n_cols; c++) {
        const char *x = f->t->row[a][c].text, *y = f->t->row[b][c].text;
        int how = f->t->col[c].how;
        bool same = c == f->step || how & skip ||
                    (how & COL_NAMES ? shifted(x, y, by) : text_same(x ? x : "", y ? y : ""));
        if (!same) return false;
    }
    return true;
}
static int layer_at(const Folding *f, int r) { return f->t->place[r].layer; }
static bool same_rows(const Folding *f, int a, int b, int n, long by) {
    for (int r = 0; r < n; r++) {
        if (f->step >= 0 && !same_step(f, a, a + r, b, b + r)) return false;
        if (!same_cells(f, a + r, b + r, (Shift){.words = &f->words, .layer = by}, 0)) return false;
    }
    return true;
}
/* Are most of the n rows of the first one's layer? Backward steps of one layer make the gradient of
 * another's output. */
static bool mostly_of_first(const Folding *f, int r, int n) {
    int own = 0, other = 0;
    for (int i = 0; i < n; i++) {
        own += layer_at(f, r + i) == layer_at(f, r);
        other += layer_at(f, r + i) >= 0 && layer_at(f, r + i) != layer_at(f, r);
    }
    return own > other;
}
/* The rows from r on that are repeated for the layers layer, layer + *by, ...: their number, and
 * how often they stand there in *times (as often as is worth it); 0: none are. A block begins where
 * the layer changes, or after lone rows. */
static int block_at(Folding *f, int r, int *times, long *by) {
    int layer = layer_at(f, r);
    bool begins = layer >= 0 && (!r || layer_at(f, r - 1) != layer || f->lone);
    f->lone = false;
    if (!begins) return 0;
    int n_rows = f->t->n_rows, n = 0, most = (n_rows - r) / 2;
    for (int k = 1; k <= most && !n; k++) {
        *by = layer_at(f, r + k) - layer;
        if ((*by == 1 || *by == -1) && layer_at(f, r + k) >= 0 && same_rows(f, r, r + k, 1, *by))
            n = k;
    }
    f->lone = !n;
    if (!n || !mostly_of_first(f, r, n)) return 0;
    *times = 1;
    while (r + (*times + 1) * n <= n_rows && same_rows(f, r, r + *times * n, n, *times * *by))
        ++*times;
    return is_worth(*times, n) && !is_spoken(f->t, r, *times * n) ? n : 0;
}
/* "layers 1-125: the same as layer 0 (steps 35-3909)" */
static const char *sentence(const Folding *f, int r, int n, int times, long by) {
    Arena *a = f->t->arena;
    long layer = layer_at(f, r);
    Str s = str_new(a);
    str_addf(&s, "%s: the same as layer %ld",
             span_text(a, "layer", layer + by, layer + (times - 1) * by), layer);
    const char *from = f->step < 0 ? NULL : f->t->row[r + n][f->step].text;
    const char *to = f->step < 0 ? NULL : f->t->row[r + times * n - 1][f->step].text;
    if (from && to) str_addf(&s, " (steps %s-%s)", from, to);
    else str_add(&s, each_text(a, n));
    return s.s;
}
static Folding folding(const Table *t) {
    Folding f = {.t = t, .words = words_of(t), .step = -1};
    for (int c = 0; c < t->n_cols; c++)
        if (!strcmp(t->col[c].key, "step")) f.step = c;
    return f;
}
/* A table without rows that takes them, and lines after them, from `t`. */
static Table emptied(const Table *t) {
    Table out = *t;
    out.row = ARENA_ARRAY(t->arena, Cell *, t->n_rows + 1);
    out.after = ARENA_ARRAY(t->arena, const char *, t->n_rows + 1);
    out.place = ARENA_ARRAY(t->arena, RowPlace, t->n_rows + 1);
    out.n_rows = out.n_places = out.cap_places = 0;
    return out;
}
/* Row r of `t` stays. */
static void keep(Table *out, const Table *t, int r) {
    out->place[out->n_rows] = t->place[r];
    out->row[out->n_rows++] = t->row[r];
}
Table fold_layers(const Table *t) {
    if (!t->place || !t->n_rows) return *t;
    Folding f = folding(t);
    Table out = emptied(t);
    bool folded = false;
    for (int r = 0; r < t->n_rows;) {
        int times = 1;
        long by = 0;
        int n = block_at(&f, r, &times, &by), all = n ? n * times : 1;
        for (int k = 0; k < (n ? n : 1); k++) keep(&out, t, r + k);
        const char *line = n ? sentence(&f, r, n, times, by) : NULL,
                   *next = t->after ? t->after[r + all - 1] : NULL;
        out.after[out.n_rows - 1] = lines(t->arena, line, next);
        folded |= n > 0;
        r += all;
    }
    out.cap_rows = out.n_rows;
    if (folded) str_add(&out.notes, "layers that are alike are folded; -v shows all\n");
    return out;
}

/* ---- stages of a pipeline ---- */
/* Rows one after the other whose ranks begin at one coordinate of the pipeline's axis. */
typedef struct {
    int from, n, at;
} Stay;
static Stay *find_stays(const Table *t, int *n_stays) {
    int n = 0, cap = 0;
    Stay *stay = NULL;
    for (int r = 0; r < t->n_rows; r++) {
        const RowPlace *p = &t->place[r];
        if (!n || (p->ranks && stay[n - 1].at != p->at) || p->part != t->place[r - 1].part)
            *ARENA_PUSH_LARGE(t->arena, stay, n, cap) = (Stay){r, 0, p->ranks ? p->at : -1};
        stay[n - 1].n++;
    }
    *n_stays = n;
    return stay;
}
/* The stages of the ranks that stand at coordinate `at`, each once: those of what they do. */
static int stages_at(const Trace *t, int at, int *stage) {
    int n = 0;
    for (int i = 0; i < t->n_actions; i++) {
        int k = 0;
        while (k < n && stage[k] != t->actions[i].stage) k++;
        if (t->actions[i].rank == at && k == n) stage[n++] = t->actions[i].stage;
    }
    return n;
}
/* By how much the second of two stays is further: in layers as its first row with one says, in
 * stages from any of those that ranks have here to any that they have there. */
static Shift shift_of(const Folding *f, const Trace *t, const Stay *x, const Stay *y) {
    Arena *a = f->t->arena;
    Shift by = {.words = &f->words};
    int *here = ARENA_ARRAY(a, int, t->n_actions + 1),
        *there = ARENA_ARRAY(a, int, t->n_actions + 1);
    for (int r = 0; r < x->n && !by.layer; r++)
        if (layer_at(f, x->from + r) >= 0)
            by.layer = layer_at(f, y->from + r) - layer_at(f, x->from + r);
    int n = stages_at(t, x->at, here), m = stages_at(t, y->at, there);
    int *stages = ARENA_ARRAY(a, int, n *m + 1);
    for (int i = 0; i < n * m; i++) stages[by.n_stages++] = there[i % m] - here[i / m];
    by.stages = stages;
    return by;
}
static bool same_stays(const Folding *f, const Trace *t, const Stay *x, const Stay *y) {
    if (x->n != y->n) return false;
    Shift by = shift_of(f, t, x, y);
    for (int r = 0; r < x->n; r++) {
        int a = x->from + r, b = y->from + r;
        const char *here = f->t->place[a].ranks, *there = f->t->place[b].ranks;
        if (f->step >= 0 && !same_step(f, x->from, a, y->from, b)) return false;
        if (!here != !there || (here && strcmp(here, there))) return false;
        if (!same_cells(f, a, b, by, COL_PLACE)) return false;
    }
    return true;
}
/* "stages 2-13: the same as stage 1 (steps 532-3711)"; of schedules that give a rank several stages
 * "ranks pp=2 to pp=13: the same as pp=1 (..)". */
static const char *stays_sentence(const Folding *f, const Trace *t, const Stay *s, int times) {
    Str out = str_new(f->t->arena);
    const Stay *last = &s[times - 1];
    const char *axis = t->schedule_axis, *from = NULL, *to = NULL;
    bool one_each = !trace_both_ways(t);
    for (int i = 0; i < t->n_axes; i++)
        one_each &= strcmp(t->axes[i].name, axis) || t->axes[i].size == t->stages;
    if (one_each)
        str_addf(&out, "%s: the same as stage %d",
                 span_text(f->t->arena, "stage", s[1].at, last->at), s->at);
    else if (times == 2)
        str_addf(&out, "ranks %s=%d: the same as %s=%d", axis, last->at, axis, s->at);
    else
        str_addf(&out, "ranks %s=%d to %s=%d: the same as %s=%d", axis, s[1].at, axis, last->at,
                 axis, s->at);
    for (int r = s[1].from; f->step >= 0 && r < last->from + last->n; r++) {
        const char *step = f->t->row[r][f->step].text;
        if (step && !from) from = step;
        if (step) to = step;
    }
    if (from && to) str_addf(&out, " (steps %s-%s)", from, to);
    else str_add(&out, each_text(f->t->arena, s->n));
    return out.s;
}
static Table fold_stages(const Table *table, const Trace *t) {
    Folding f = folding(table);
    Table out = emptied(table);
    int n;
    bool folded = false;
    const Stay *s = find_stays(table, &n);
    for (int i = 0; i < n;) {
        int times = 1, by = i + 1 < n ? s[i + 1].at - s[i].at : 0;
        while ((by == 1 || by == -1) && i + times < n && s[i + times].at == s[i].at + times * by &&
               same_stays(&f, t, &s[i], &s[i + times]))
            times++;
        const Stay *last = &s[i + times - 1];
        bool folds = is_worth(times, s[i].n) &&
                     !is_spoken(table, s[i].from, last->from + last->n - s[i].from);
        if (!folds) times = 1, last = &s[i];
        for (int r = s[i].from; r < s[i].from + s[i].n; r++) {
            out.after[out.n_rows] = table->after && !folds ? table->after[r] : NULL;
            keep(&out, table, r);
        }
        if (folds)
            out.after[out.n_rows - 1] =
                lines(table->arena, stays_sentence(&f, t, &s[i], times),
                      table->after ? table->after[last->from + last->n - 1] : NULL);
        folded |= folds;
        i += times;
    }
    out.cap_rows = out.n_rows;
    if (folded) str_add(&out.notes, "stages that are alike are folded; -v shows all\n");
    return out;
}
/* ---- micro-batches ---- */
/* Do n rows say the same in another micro-batch? */
static bool same_part(const Folding *f, int a, int b, int n) {
    if (b + n > f->t->n_rows) return false;
    for (int r = 0; r < n; r++) {
        const Cell *x = f->t->row[a + r], *y = f->t->row[b + r];
        if (f->t->place[b + r].part != f->t->place[b].part) return false;
        if (f->step >= 0 && !text_same(x[f->step].text, y[f->step].text)) return false;
        if (!same_cells(f, a + r, b + r, (Shift){.words = &f->words}, COL_PART)) return false;
    }
    return b + n == f->t->n_rows || f->t->place[b + n].part != f->t->place[b].part;
}
static Table fold_parts(const Table *t) {
    Folding f = folding(t);
    Table out = emptied(t);
    bool folded = false;
    for (int r = 0; r < t->n_rows;) {
        int part = t->place[r].part, n = 1, times = 1;
        while (r + n < t->n_rows && t->place[r + n].part == part) n++;
        while (same_part(&f, r, r + times * n, n)) times++;
        bool folds = is_worth(times, n);
        for (int k = r; k < r + n; k++) keep(&out, t, k);
        if (folds)
            out.after[out.n_rows - 1] =
                arena_printf(t->arena, "%s: the same as micro-batch %d%s",
                             span_text(t->arena, "micro-batch", part + 1, part + times - 1), part,
                             each_text(t->arena, n));
        folded |= folds;
        r += folds ? times * n : n;
    }
    out.cap_rows = out.n_rows;
    if (folded) str_add(&out.notes, "micro-batches that are alike are folded; -v shows all\n");
    return out;
}
Table fold_table(const Table *table, const Trace *t) {
    if (!table->place || !table->n_rows) return *table;
    Table parts = table->place[0].part < 0 ? *table : fold_parts(table);
    Table stages = t->schedule_axis ? fold_stages(&parts, t) : parts;
    return fold_layers(&stages);
}
RowPlace fold_place(const Trace *t, int layer, const RankSet *ranks, Arena *a) {
    bool any = t->schedule_axis && ranks && ranks->n;
    return (RowPlace){layer, any ? trace_pipe_coord(t, rankset_first(ranks)) : -1,
                      any ? fold_ranks(t, ranks, a) : NULL, -1};
}
const char *fold_ranks(const Trace *t, const RankSet *ranks, Arena *a) {
    RankSet there = *ranks;
    int64_t stride = 1;
    int axis = t->n_axes - 1;
    for (; axis >= 0 && strcmp(t->axes[axis].name, t->schedule_axis); axis--)
        stride *= t->axes[axis].size;
    if (there.run) {
        there.run = ARENA_ARRAY(a, RankRun, ranks->n);
        for (int i = 0; i < ranks->n; i++) {
            there.run[i] = ranks->run[i];
            there.run[i].first -= trace_pipe_coord(t, ranks->run[i].first) * stride;
        }
    } else {
        there.box = ARENA_ARRAY(a, RankBox, ranks->n);
        for (int i = 0; i < ranks->n; i++) {
            there.box[i] = ranks->box[i];
            if (axis >= 0) there.box[i].side[axis].first = 0;
        }
    }
    return rankset_text(&there, a);
}
