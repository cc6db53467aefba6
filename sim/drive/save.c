/* Writing values to a file, under the names that --against finds again. Refuses to choose: what is
 * listed is written. */
#include "drive/save.h"
#include <stdlib.h>

typedef struct {
    ValueKey *key;
    int n;
} SavedOf;

/* Numbers of eight bytes come first, then those of four: so each lies at a multiple of its size,
 * which readers that map the file ask for. */
static const int64_t sizes[] = {8, 4};
enum { N_SIZES = 2 };

static void declare_part(const ValueSet *s, StWriter *w, const SavedOf *p, int64_t size) {
    for (int i = 0; i < p->n; i++) {
        ValueShape shape;
        value_shape(s, &p->key[i], &shape);
        if (dtype_size(shape.dtype) == size)
            st_declare(w, value_name(s->arena, s->ref->graph, &p->key[i]), shape.dtype,
                       shape.nstored, shape.shape);
    }
}
/* False if a value could not be loaded again. */
static bool write_part(const ValueSet *s, StWriter *w, const SavedOf *p, int64_t size) {
    for (int i = 0; i < p->n; i++) {
        ValueShape shape;
        value_shape(s, &p->key[i], &shape);
        if (dtype_size(shape.dtype) != size) continue;
        void *x = value_read(s, &p->key[i], &shape);
        if (!x) return false;
        st_data(w, x, (size_t)(value_count(&shape) * size));
        free(x);
    }
    return true;
}
void save_values(const ValueSet *s, Diags *d, const char *file) {
    int64_t all = s->ranks->p->mesh->nranks, ranks = all < SAVE_MAX_RANKS ? all : SAVE_MAX_RANKS;
    StWriter *w = st_writer(s->arena, d, file);
    if (!w) return;
    if (ranks < all)
        diag_note(d, "N0007", diag_nowhere, NULL, "'%s' has what %s hold, not the other %lld", file,
                  ranks_span(0, ranks - 1, s->arena), (long long)(all - ranks));
    SavedOf *part = ARENA_ARRAY(s->arena, SavedOf, ranks + 1);
    for (int64_t q = 0; q <= ranks; q++) part[q].key = value_list(s, q - 1, &part[q].n);
    /* a stream: first all names and shapes, then the data in the same order */
    for (int k = 0; k < N_SIZES; k++)
        for (int64_t q = 0; q <= ranks; q++) declare_part(s, w, &part[q], sizes[k]);
    bool ok = true;
    for (int k = 0; k < N_SIZES; k++)
        for (int64_t q = 0; q <= ranks && ok; q++) ok = write_part(s, w, &part[q], sizes[k]);
    if (ok) st_commit(w);
    else st_abandon(w);
}
