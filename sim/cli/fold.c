/* Layers that say the same, folded. See fold.h. */
#include "cli/fold.h"
#include <ctype.h>
#include <stdlib.h>
#include <string.h>

/* ---- numbers of layers in names ---- */
/* Length of "layers." or "blk." (GGUF) before a layer's number, where a component of a name begins
 * at s; else 0. */
static size_t before_number(const char *all, const char *s) {
    static const char *const words[] = {"layers.", "blk."};
    if (s > all && (isalnum((unsigned char)s[-1]) || s[-1] == '_')) return 0;
    for (int i = 0; i < 2; i++) {
        size_t n = strlen(words[i]);
        if (!strncmp(s, words[i], n) && isdigit((unsigned char)s[n])) return n;
    }
    return 0;
}
/* The number of the first layer that a text names; -1: none. */
static long layer_in(const char *s) {
    for (const char *p = s; p && *p; p++) {
        size_t n = before_number(s, p);
        if (n) return strtol(p + n, NULL, 10);
    }
    return -1;
}
const char *fold_name(const char *name, Arena *a) {
    Str s = str_new(a);
    for (const char *p = name; *p;) {
        size_t n = before_number(name, p);
        if (!n) {
            str_addn(&s, p++, 1);
            continue;
        }
        str_addf(&s, "%.*s*", (int)n, p);
        for (p += n; isdigit((unsigned char)*p);) p++;
    }
    return s.s;
}
/* Is b what a says, with every layer's number larger by `by`? */
static bool shifted(const char *a, const char *b, long by) {
    const char *x = a ? a : "", *y = b ? b : "";
    for (const char *from = x; *x;) {
        size_t n = before_number(from, x);
        if (!n) {
            if (*x++ != *y++) return false;
            continue;
        }
        if (strncmp(x, y, n) || !isdigit((unsigned char)y[n])) return false;
        char *end_x, *end_y;
        if (strtol(x + n, &end_x, 10) + by != strtol(y + n, &end_y, 10)) return false;
        x = end_x;
        y = end_y;
    }
    return !*y;
}

/* ---- blocks of rows ---- */
typedef struct {
    const Table *t;
    int name, step; /* columns; step -1: none */
    long *layer;    /* per row: that its name says; -1: none */
    bool lone;      /* the row before has no like in the next layer: `layers.0.input` */
} Folding;
static bool same_step(const Folding *f, int base, int r, int other_base, int other) {
    const char *s[4];
    int row[4] = {base, r, other_base, other};
    for (int i = 0; i < 4; i++) s[i] = f->t->row[row[i]][f->step].text;
    if (!s[1] || !s[3]) return !s[1] && !s[3];
    if (!s[0] || !s[2]) return false;
    return atol(s[1]) - atol(s[0]) == atol(s[3]) - atol(s[2]);
}
static bool same_rows(const Folding *f, int a, int b, int n, long by) {
    for (int r = 0; r < n; r++) {
        if (f->step >= 0 && !same_step(f, a, a + r, b, b + r)) return false;
        for (int c = 0; c < f->t->n_cols; c++)
            if (c != f->step && !shifted(f->t->row[a + r][c].text, f->t->row[b + r][c].text, by))
                return false;
    }
    return true;
}
/* The layer that most of the rows from r on name: backward steps of one layer make the gradient of
 * another's output. */
static bool mostly_of_first(const Folding *f, int r, int n) {
    int own = 0, other = 0;
    for (int i = 0; i < n; i++) {
        own += f->layer[r + i] == f->layer[r];
        other += f->layer[r + i] >= 0 && f->layer[r + i] != f->layer[r];
    }
    return own > other;
}
/* The rows from r on that are repeated for the layers layer, layer + *by, ...: their number, and
 * how often they stand there in *times (at least FOLD_LAYERS); 0: none are. A block begins where
 * the layer changes, or after lone rows. */
static int block_at(Folding *f, int r, int *times, long *by) {
    long layer = f->layer[r];
    bool begins = layer >= 0 && (!r || f->layer[r - 1] != layer || f->lone);
    f->lone = false;
    if (!begins) return 0;
    int n_rows = f->t->n_rows, n = 0, most = (n_rows - r) / FOLD_LAYERS;
    for (int k = 1; k <= most && !n; k++) {
        *by = f->layer[r + k] - layer;
        if ((*by == 1 || *by == -1) && f->layer[r + k] >= 0 && same_rows(f, r, r + k, 1, *by))
            n = k;
    }
    f->lone = !n;
    if (!n || !mostly_of_first(f, r, n)) return 0;
    *times = 1;
    while (r + (*times + 1) * n <= n_rows && same_rows(f, r, r + *times * n, n, *times * *by))
        ++*times;
    return *times >= FOLD_LAYERS ? n : 0;
}
/* "layers 1-125: the same as layer 0 (steps 35-3909)" */
static const char *sentence(const Folding *f, int r, int n, int times, long by) {
    Arena *a = f->t->arena;
    long layer = f->layer[r];
    Str s = str_new(a);
    str_addf(&s, "layers %ld-%ld: the same as layer %ld", layer + by, layer + (times - 1) * by,
             layer);
    const char *from = f->step < 0 ? NULL : f->t->row[r + n][f->step].text;
    const char *to = f->step < 0 ? NULL : f->t->row[r + times * n - 1][f->step].text;
    if (from && to) str_addf(&s, " (steps %s-%s)", from, to);
    else str_addf(&s, " (%d row%s each)", n, n == 1 ? "" : "s");
    return s.s;
}
Table fold_layers(const Table *t, int name) {
    Arena *a = t->arena;
    Folding f = {.t = t, .name = name, .step = -1, .layer = ARENA_ARRAY(a, long, t->n_rows + 1)};
    Table out = *t;
    bool folded = false;
    for (int c = 0; c < t->n_cols; c++)
        if (!strcmp(t->col[c].key, "step")) f.step = c;
    for (int r = 0; r < t->n_rows; r++) f.layer[r] = layer_in(t->row[r][name].text);
    out.row = ARENA_ARRAY(a, Cell *, t->n_rows + 1);
    out.after = ARENA_ARRAY(a, const char *, t->n_rows + 1);
    out.n_rows = 0;
    for (int r = 0; r < t->n_rows;) {
        int times = 1;
        long by = 0;
        int n = block_at(&f, r, &times, &by);
        for (int k = 0; k < (n ? n : 1); k++) out.row[out.n_rows++] = t->row[r + k];
        if (n) out.after[out.n_rows - 1] = sentence(&f, r, n, times, by);
        folded |= n > 0;
        r += n ? n * times : 1;
    }
    out.cap_rows = out.n_rows;
    if (folded) str_add(&out.notes, "layers that are alike are folded; -v shows all\n");
    return out;
}
