/* The grid of who holds which part. See shards_grid.h. */
#include "render/shards/shards_grid.h"
#include <string.h>

/* Up to ALL parts each way are shown, of more a FEW; cells are at most WIDEST columns, so that FEW
 * fit a terminal of 60. */
enum { ALL = 8, FEW = 4, WIDEST = 10, ASKED_RANKS = 1 << 16 };

typedef struct {
    int dim; /* -1: none, one part */
    DimCut cut;
} GridDim;
typedef struct {
    GridDim dim[2]; /* rows, columns */
    int deeper;     /* further dims that are cut */
    bool home;      /* of one stage's ranks only */
} Grid;

static Grid grid_of(Arena *a, const Trace *t, const TraceParam *p, int64_t rank) {
    Grid g = {.dim = {{.dim = -1, .cut = {.n = 1}}, {.dim = -1, .cut = {.n = 1}}}};
    int n = 0;
    for (int d = 0; d < p->rest.nd; d++) {
        DimCut c = shards_param_cut(a, t, p, d, rank);
        g.home = c.home != NULL;
        for (int k = 0; k < 2; k++)
            if (g.dim[k].dim < 0) g.dim[k].cut.home = c.home;
        if (c.n < 2) continue;
        if (n == 2) g.deeper++;
        else g.dim[n++] = (GridDim){d, c};
    }
    /* a single cut of a last dim goes across, as the matrix lies on paper */
    if (n == 1 && p->rest.nd > 1 && g.dim[0].dim == p->rest.nd - 1) {
        GridDim rows = g.dim[0];
        g.dim[0] = g.dim[1];
        g.dim[1] = rows;
    }
    return g;
}
/* The parts of a cut that are shown: all up to `most`, or the first three and the last. */
typedef struct {
    int n, gap; /* gap: before which some are left out; -1: nowhere */
    int64_t at[ALL];
} Shown;
static Shown shown(const DimCut *c, int most) {
    Shown s = {.n = c->n <= most ? (int)c->n : FEW, .gap = c->n <= most ? -1 : FEW - 1};
    for (int i = 0; i < s.n; i++) s.at[i] = i;
    if (s.n) s.at[s.n - 1] = c->n - 1;
    return s;
}
static const char *cell(Arena *a, const Trace *t, const Grid *g, int64_t i, int64_t j) {
    int64_t n = 0;
    const char *s = shards_owners(a, t, &g->dim[0].cut, i, &g->dim[1].cut, j);
    if (strlen(s) <= WIDEST) return s;
    for (int64_t r = 0; r < t->ranks; r++)
        n += shards_holds(&g->dim[0].cut, r) && shards_part_of(t, &g->dim[0].cut, r) == i &&
             shards_part_of(t, &g->dim[1].cut, r) == j;
    return arena_printf(a, "%lld ranks", (long long)n);
}
typedef struct {
    int n, gap,
        width; /* cells of a row, where parts are left out (-1: nowhere), columns of a cell */
} Row;
/* A line between rows, or with text in its cells. `corner`: left, between cells, right. */
static void line(Str *s, const Row *r, const char *const *corner, const char *const *text) {
    str_add(s, "  ");
    for (int j = 0; j < r->n; j++) {
        str_add(s, corner[j ? 1 : 0]);
        if (j && j == r->gap) str_addf(s, "%s%s", text ? " … " : "───", corner[1]);
        for (int k = 0; !text && k < r->width + 2; k++) str_add(s, "─");
        if (!text) continue;
        int room = r->width - (int)strlen(text[j]);
        str_addf(s, " %*s%s%*s ", room / 2, "", text[j], room - room / 2, "");
    }
    str_addf(s, "%s\n", corner[2]);
}
/* In at most w columns; of parts across at most `most`. */
static const char *draw(Arena *a, const Trace *t, const Grid *g, int w, int most) {
    static const char *const top[] = {"┌", "┬", "┐"}, *const between[] = {"├", "┼", "┤"},
                             *const inside[] = {"│", "│", "│"}, *const bottom[] = {"└", "┴", "┘"};
    const Shown down = shown(&g->dim[0].cut, ALL), across = shown(&g->dim[1].cut, most);
    Row r = {across.n, across.gap, 1};
    const char *text[ALL][ALL];
    for (int i = 0; i < down.n; i++)
        for (int j = 0; j < r.n; j++) {
            text[i][j] = cell(a, t, g, down.at[i], across.at[j]);
            if ((int)strlen(text[i][j]) > r.width) r.width = (int)strlen(text[i][j]);
        }
    if (most > FEW && 3 + r.n * (r.width + 3) > w) return draw(a, t, g, w, FEW);
    Str s = str_new(a);
    line(&s, &r, top, NULL);
    for (int i = 0; i < down.n; i++) {
        if (i) line(&s, &r, between, NULL);
        if (i == down.gap) str_add(&s, "  ⋮\n");
        if (i == down.gap) line(&s, &r, between, NULL);
        line(&s, &r, inside, text[i]);
    }
    line(&s, &r, bottom, NULL);
    return s.s;
}
/* "down dim 0 in 2 parts by tp, across dim 1 in 4 parts by dp". */
static const char *words_of(Arena *a, const Trace *t, const Grid *g) {
    Str s = str_new(a);
    for (int k = 0; k < 2; k++)
        if (g->dim[k].dim >= 0)
            str_addf(&s, "%s%s dim %d in %lld parts by %s", s.n ? ", " : "", k ? "across" : "down",
                     g->dim[k].dim, (long long)g->dim[k].cut.n, shards_axes(a, t, &g->dim[k].cut));
    const char *all = g->home ? shards_owners(a, t, &g->dim[0].cut, 0, NULL, 0) : NULL;
    if (!s.n && all) str_addf(&s, "whole on rank%s %s", strpbrk(all, ",-") ? "s" : "", all);
    if (!s.n) str_add(&s, "whole on every rank");
    if (g->deeper) str_addf(&s, ", and %d more dim%s cut", g->deeper, g->deeper > 1 ? "s" : "");
    return s.s;
}
/* The name of parameter i, with its parameter's own where its module has several: "experts.w1". */
static const char *name_of(Arena *a, const TraceParam *const *p, int n, int i) {
    const char *name = words_param(a, p[i]);
    for (int k = 0; k < n; k++)
        if (k != i && !strcmp(words_param(a, p[k]), name))
            return arena_printf(a, "%s.%s", name, words_leaf(p[i]->plan_name));
    return name;
}
typedef struct {
    const char *words, *grid;
    Str names;
} Alike;
const char *shards_grid_text(Arena *a, const Trace *t, const TraceParam *const *p, int n,
                             int64_t rank, int w) {
    Alike *group = ARENA_ARRAY(a, Alike, n);
    int groups = 0;
    Str s = str_new(a);
    if (t->ranks > ASKED_RANKS || t->ranks < 2) return "";
    for (int i = 0; i < n; i++) {
        Grid g = grid_of(a, t, p[i], rank);
        const char *words = words_of(a, t, &g),
                   *grid = g.dim[0].dim < 0 && g.dim[1].dim < 0 ? "" : draw(a, t, &g, w, ALL);
        int k = 0;
        while (k < groups && (strcmp(group[k].words, words) || strcmp(group[k].grid, grid))) k++;
        if (k == groups) group[groups++] = (Alike){words, grid, str_new(a)};
        str_addf(&group[k].names, "%s%s", group[k].names.n ? ", " : "", name_of(a, p, n, i));
    }
    str_add(&s, "\nwhich ranks hold which part\n");
    for (int k = 0; k < groups; k++) {
        words_paragraph(&s, "", arena_printf(a, "%s: %s", group[k].names.s, group[k].words), w);
        str_add(&s, group[k].grid);
    }
    return s.s;
}
