/* Columns of matrices: the cheapest for each number of columns, found from the left. See
 * shards_tiles.h. */
#include "render/shards/shards_tiles.h"
#include <assert.h>
#include <math.h>

enum {
    GAP = 20,
    WIDEST_GAP = 64,
    UNDER = 8,
    BESIDE = 12,
    APART = 18,
    WIDEST_APART = 40,
    UNLIKE = 60
};

typedef struct {
    double left, w, h; /* of the whole column; w without `left` */
    bool beside;       /* words stand at the right of the matrices */
} Column;

static double tile_height(const ShardTile *t, bool beside) {
    return TILE_NAME + (beside ? fmax(t->h, t->words_h) : t->h + UNDER + t->words_h);
}
static double tile_width(const ShardTile *t, bool beside) {
    return fmax(t->name_w, beside ? t->w + BESIDE + t->words_w : fmax(t->w, t->words_w));
}
/* The column of tiles [from, to): words under them, or at their right where that is too high. */
static Column column_of(const ShardTile *t, int from, int to, double h) {
    Column c = {0};
    for (int beside = 0; beside < 2; beside++) {
        c = (Column){.h = -APART, .beside = beside};
        for (int i = from; i < to; i++) {
            c.left = fmax(c.left, t[i].left), c.w = fmax(c.w, tile_width(&t[i], beside));
            c.h += tile_height(&t[i], beside) + APART;
        }
        if (c.h <= h) break;
    }
    return c;
}

/* What a column costs beside its width: unlike matrices under each other are not looked for. */
static double mixed(const ShardTile *t, int from, int to, double price) {
    double sum = 0;
    for (int i = from + 1; i < to; i++)
        if (fabs(t[i].w - t[i - 1].w) > 1 || fabs(t[i].h - t[i - 1].h) > 1) sum += price;
    return sum;
}
typedef struct {
    Arena *a;
    const ShardTile *tile;
    int n;
    double w, h; /* the area */
} Job;
/* The cheapest columns of the tiles, as many as the width has room for, where each begins in
 * first[]; returns their number, *wide what they take. */
static int columns_of(const Job *job, double price, int *first, double *wide) {
    const int n = job->n;
    /* cost[c][i]: of the first i tiles in c columns; last[c][i]: where the last begins */
    const int row = n + 1;
    const int size = row * row;
    double *cost = ARENA_ARRAY(job->a, double, size), *width = ARENA_ARRAY(job->a, double, size);
    int *last = ARENA_ARRAY(job->a, int, size);
    for (int i = 0; i < size; i++) cost[i] = width[i] = INFINITY;
    cost[0] = 0, width[0] = -GAP;
    for (int c = 1; c <= n; c++)
        for (int i = c; i <= n; i++)
            for (int j = i - 1; j >= c - 1; j--) {
                const Column k = column_of(job->tile, j, i, job->h);
                const int from = (c - 1) * row + j, to = c * row + i;
                const double own = GAP + k.left + k.w,
                             all = cost[from] + own + mixed(job->tile, j, i, price);
                if ((k.h > job->h && i - j > 1) || all >= cost[to]) continue;
                cost[to] = all, width[to] = width[from] + own, last[to] = j;
            }
    int c = n;
    while (c > 1 && width[c * row + n] > job->w) c--;
    while (isinf(width[c * row + n])) c++; /* none fits: as few as are not too high */
    first[c] = n;
    for (int k = c, i = n; k > 0; k--) first[k - 1] = i = last[k * row + i];
    *wide = width[c * row + n];
    return c;
}

bool shards_tiles(Arena *a, ShardTile *tile, int n, double w, double h, double *high) {
    assert(n > 0);
    int *first = ARENA_ARRAY(a, int, n + 1);
    double wide;
    const Job job = {a, tile, n, w, h};
    int columns = columns_of(&job, UNLIKE, first, &wide);
    if (wide > w) columns = columns_of(&job, 0, first, &wide);
    const double spare = w - wide,
                 gap = columns > 1 ? fmin(GAP + fmax(spare, 0) / (columns - 1), WIDEST_GAP) : GAP;
    bool fits = spare >= 0;
    *high = 0;
    for (int c = 0; c < columns; c++) {
        const Column k = column_of(tile, first[c], first[c + 1], h);
        *high = fmax(*high, k.h);
        fits &= k.h <= h;
    }
    double x = 0;
    for (int c = 0; c < columns; c++) {
        const Column k = column_of(tile, first[c], first[c + 1], h);
        const int under = first[c + 1] - first[c] - 1;
        const double apart = under ? fmin(APART + (*high - k.h) / under, WIDEST_APART) : 0;
        double y = 0;
        x += k.left;
        for (int i = first[c]; i < first[c + 1]; i++) {
            ShardTile *t = &tile[i];
            t->at = (Pt){x, y};
            t->words = k.beside ? (Pt){x + t->w + BESIDE, y + TILE_NAME}
                                : (Pt){x, y + TILE_NAME + t->h + UNDER};
            y += tile_height(t, k.beside) + apart;
        }
        x += k.w + gap;
    }
    return fits;
}
