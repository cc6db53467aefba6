/* Where the elements of experts' weights lie in files of another scheme. See view.h. */
#include "weights/view.h"
#include <string.h>

typedef enum { NONE, GATE, UP, DOWN } Which;
static Which which_of(const char *name) {
    const char *dot = strrchr(name, '.');
    if (!dot || !strstr(name, ".experts.")) return NONE;
    return !strcmp(dot, ".gate_proj")   ? GATE
           : !strcmp(dot, ".up_proj")   ? UP
           : !strcmp(dot, ".down_proj") ? DOWN
                                        : NONE;
}
bool view_of_file(const GTensor *t, bool own_turned, bool turned, bool packed, View *out) {
    Which which = which_of(t->name);
    if (which == NONE || (packed && which == DOWN) || t->nd != 3) return false;
    int64_t rows = t->size[1], cols = t->size[2];
    bool rows_first = own_turned == turned;      /* the file's rows are the model's */
    bool width_rows = (which != DOWN) != turned; /* the dim with two halves is the file's first */
    int64_t a = rows_first ? rows : cols, b = rows_first ? cols : rows; /* the file's [E, a, b] */
    int64_t half = packed && which == UP ? width_rows ? a * b : b : 0;
    if (packed && width_rows) a *= 2;
    if (packed && !width_rows) b *= 2;
    *out = (View){.experts = t->size[0],
                  .rows = rows,
                  .cols = cols,
                  .matrix = a * b,
                  .from = half,
                  .row = rows_first ? b : 1,
                  .col = rows_first ? 1 : b,
                  .shape = {t->size[0], a, b}};
    return true;
}
const char *view_packed_name(Arena *arena, const char *name) {
    Which which = which_of(name);
    if (which != GATE && which != UP) return NULL;
    return arena_printf(arena, "%.*s.gate_up_proj", (int)(strrchr(name, '.') - name), name);
}

/* How many rows from r on are taken at once: whole ones, that lie side by side in the file. */
static int64_t rows_at_once(const View *v, int64_t r, int64_t c, int64_t left, int64_t most) {
    int64_t k = left / v->cols;
    if (c || k < 1) return 0;
    k = k < v->rows - r ? k : v->rows - r;
    return k < most ? k : most;
}
bool view_runs(const View *v, int64_t first, int64_t n, int64_t most,
               bool (*fn)(void *arg, ViewRun run), void *arg) {
    for (int64_t at = 0; at < n;) {
        int64_t i = first + at, e = i / (v->rows * v->cols), r = i / v->cols % v->rows,
                c = i % v->cols, from = e * v->matrix + v->from + r * v->row + c * v->col;
        int64_t row = n - at < v->cols - c ? n - at : v->cols - c; /* what is left of this one */
        int64_t whole = v->col == 1 ? 0 : rows_at_once(v, r, c, n - at, most);
        if (v->col == 1) {
            row = row < most ? row : most;
            if (!fn(arg, (ViewRun){from, row, at, 1})) return false;
        } else {
            int64_t each = whole ? whole : 1;
            for (int64_t k = 0; k < row; k++)
                if (!fn(arg, (ViewRun){from + k * v->col, each, at + k, v->cols})) return false;
        }
        at += whole ? whole * v->cols : row;
    }
    return true;
}
