/* Rows that are told apart by another rank's counts. See counts.h. Refuses to know who planted it.
 */
#include "exec/counts.h"
#include <stdlib.h>
#include <string.h>

/* Where a row stands in ascending rows; -1: not there. */
static int64_t find_row(const DimIndex *in, int64_t row) {
    int64_t lo = 0, hi = in->n - 1;
    if (in->range) return row >= in->lo && row < in->lo + in->n ? row - in->lo : -1;
    while (lo <= hi) {
        int64_t mid = (lo + hi) / 2;
        if (in->list[mid] == row) return mid;
        if (in->list[mid] < row) lo = mid + 1;
        else hi = mid - 1;
    }
    return -1;
}
static int64_t row_at(const DimIndex *d, int64_t i) { return d->range ? d->lo + i : d->list[i]; }

/* Which sender each row of a rank comes from (-1: none of them), and how many each sends it. */
static void senders(const Pieces *x, int64_t rank, const Region *to, int64_t *of, int64_t *count,
                    Arena *tmp) {
    int64_t n = pieces_count(x, rank);
    for (int64_t k = 0; of && k < to->d[0].n; k++) of[k] = -1;
    for (int64_t i = 0; i < n; i++) {
        Piece one = pieces_at(x, rank, i);
        Region at = pieces_from(x, &one, tmp);
        count[i] = 0;
        for (int64_t k = 0; k < to->d[0].n; k++) {
            if (find_row(&at.d[0], row_at(&to->d[0], k)) < 0) continue;
            count[i]++;
            if (of) of[k] = i;
        }
    }
}
/* For each row of the rank the row that stands where it reads, -1: nothing arrived there. */
static int64_t *misread(const int64_t *of, int64_t rows, const int64_t *mine, const int64_t *read,
                        int64_t n, Arena *tmp) {
    int64_t total = 0, *from = ARENA_ARRAY(tmp, int64_t, rows + 1);
    for (int64_t i = 0; i < n; i++) total += read[i];
    int64_t *buffer = ARENA_ARRAY(tmp, int64_t, total + 1), at = 0, place = 0;
    for (int64_t i = 0; i < n; i++) { /* as it arrives */
        int64_t k = 0;
        for (int64_t j = 0; j < read[i]; j++, k++) {
            while (k < rows && of[k] != i) k++;
            buffer[at++] = k < rows && j < mine[i] ? k : -1;
        }
    }
    for (int64_t i = 0; i < n; i++) /* as it is read */
        for (int64_t k = 0; k < rows; k++)
            if (of[k] == i) from[k] = place < total ? buffer[place] : -1, place++;
    return from;
}
void counts_misread(Device *dev, const Pieces *x, int64_t rank, const Region *to, Tensor *t,
                    Dtype dt) {
    int64_t n = pieces_count(x, rank), rows = to->d[0].n, all = tensor_count(t);
    if (!x->e || dev->sizes_only || !to->outer || !all) return;
    Arena *tmp = arena_new();
    int64_t *of = ARENA_ARRAY(tmp, int64_t, rows + 1), *mine = ARENA_ARRAY(tmp, int64_t, n + 1),
            *read = ARENA_ARRAY(tmp, int64_t, n + 1), place = mesh_index_in(x->m, &x->axes, rank);
    int64_t next = mesh_member(x->m, &x->axes, rank, (place + 1) % x->n);
    Region there = pieces_to(x, next, tmp);
    senders(x, rank, to, of, mine, tmp);
    senders(x, next, &there, NULL, read, tmp);
    int64_t *from = misread(of, rows, mine, read, n, tmp);
    size_t width = (size_t)(all / rows) * (size_t)dtype_size(dt);
    Tensor host = dev->get(dev, t, dt);
    char *p = host.p, *was = arena_alloc(tmp, base_mul((size_t)rows, width));
    memcpy(was, p, (size_t)rows * width);
    for (int64_t k = 0; k < rows; k++)
        if (of[k] < 0) continue;
        else if (from[k] < 0) memset(p + (size_t)k * width, 0, width);
        else memcpy(p + (size_t)k * width, was + (size_t)from[k] * width, width);
    dev->put(dev, t, &host, dt);
    dev->done(dev, &host);
    arena_free(tmp);
}
