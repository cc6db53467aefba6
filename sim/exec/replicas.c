/* Ranks that hold the same block of a value, and the same share of its pending sums, must hold the
 * same bits, in whatever order the sum was taken: later steps take them for one value. Of several
 * the few are wrong; of two nobody can say which is, and both are named. It knows nothing of what
 * the value should be: check.c does. */
#include "exec/compare.h"
#include "exec/far.h"
#include "exec/store.h"
#include "exec/tuplemap.h"
#include <math.h>
#include <stdlib.h>

/* One number per rank for the block and the share that it holds; *n of them, 0 .. *n - 1, in the
 * order of ranks. */
static int *blocks_of(const Mesh *m, const Layout *L, int *n) {
    int *block = base_malloc(base_mul((size_t)m->nranks, sizeof *block));
    TupleMap map;
    tuplemap_open(&map, 2);
    *n = 0;
    for (int64_t r = 0; r < m->nranks; r++) {
        int64_t key[2] = {store_key(m, L, r), 0};
        for (int a = 0; a < m->naxes; a++)
            if (L->type[a] == TY_P || L->type[a] == TY_M)
                key[1] += mesh_coord(m, r, a) * m->axis[a].stride;
        bool fresh;
        int *at = tuplemap_find(&map, key, &fresh);
        if (fresh) *at = (*n)++;
        block[r] = *at;
    }
    tuplemap_close(&map);
    return block;
}
static CompareSeen differences(const Compare *m, int val, const Local *got, const Local *want) {
    Device *dev = m->e->dev;
    Dtype dt = exec_dtype(m->e, val);
    CompareBlock b = {.dt = dt,
                      .got = dev->get(dev, &got->t, dt),
                      .want = dev->get(dev, &want->t, dt),
                      .bits = true};
    CompareSeen seen = compare_rows(&b, m->e->pool);
    dev->done(dev, &b.got);
    dev->done(dev, &b.want);
    return seen;
}
static bool same_bits(const Compare *m, int val, const Local *a, const Local *b) {
    if (a == b || (a->t.p == b->t.p && a->buf == b->buf)) return true;
    if (tensor_count(&a->t) != tensor_count(&b->t)) return false;
    return far_alike(m->e, &a->t, &b->t, exec_dtype(m->e, val)) ||
           differences(m, val, a, b).first < 0;
}

/* The ranks of one block that is not the same everywhere: who agrees with whom. */
typedef struct {
    int n, cap;
    struct Camp {
        int64_t first; /* rank */
        int ranks;
    } * camp;
    int64_t *camp_of; /* per rank; -1: another block */
} Camps;
static void find_camps(Camps *c, const Compare *m, int val, const int *block, int which,
                       Arena *tmp) {
    int64_t nranks = m->e->p->mesh->nranks;
    c->camp_of = ARENA_ARRAY(tmp, int64_t, nranks);
    for (int64_t r = 0; r < nranks; r++) {
        c->camp_of[r] = -1;
        if (block[r] != which || !exec_local(m->e, val, r)) continue;
        int k = 0;
        while (k < c->n && !same_bits(m, val, exec_local(m->e, val, r),
                                      exec_local(m->e, val, c->camp[k].first)))
            k++;
        if (k == c->n) *ARENA_PUSH(tmp, c->camp, c->n, c->cap) = (struct Camp){r, 0};
        c->camp[k].ranks++;
        c->camp_of[r] = k;
    }
}
static void judge(Compare *m, int val, const Layout *L, const int *block, int which) {
    Arena *tmp = arena_new();
    Camps c = {0};
    find_camps(&c, m, val, block, which, tmp);
    int most = 0, ties = 0;
    for (int k = 1; k < c.n; k++)
        if (c.camp[k].ranks > c.camp[most].ranks) most = k;
    for (int k = 0; k < c.n; k++) ties += c.camp[k].ranks == c.camp[most].ranks;
    for (int64_t r = 0; c.n > 1 && r < m->e->p->mesh->nranks; r++) {
        if (c.camp_of[r] < 0 || (ties == 1 && c.camp_of[r] == most)) continue;
        int other = c.camp_of[r] != most ? most : most ? 0 : 1;
        const Local *got = exec_local(m->e, val, r),
                    *want = exec_local(m->e, val, c.camp[other].first);
        bool comparable = tensor_count(&got->t) == tensor_count(&want->t);
        CompareSeen seen = {.first = -1};
        if (comparable) seen = differences(m, val, got, want);
        compare_note(m, val, L, r, &seen, comparable ? tensor_count(&got->t) : -1);
    }
    arena_free(tmp);
}

void compare_replicas(Compare *m, int val, const Layout *L) {
    const Mesh *mesh = m->e->p->mesh;
    const Store *st = exec_store(m->e, val);
    if (m->e->dev->sizes_only) return;
    int n, *block = blocks_of(mesh, L, &n),
           *first = base_malloc(base_mul((size_t)n, sizeof *first));
    bool *apart = base_malloc(base_mul((size_t)n, sizeof *apart));
    for (int k = 0; k < n; k++) first[k] = -1, apart[k] = false;
    for (int64_t r = 0; r < mesh->nranks; r++) {
        int b = block[r], have = (int)st->which[r];
        if (st->which[r] == EXEC_NOTHING) continue;
        if (first[b] < 0) first[b] = have;
        if (have != first[b] && !apart[b])
            apart[b] = !same_bits(m, val, &st->l[have], &st->l[first[b]]);
    }
    for (int k = 0; k < n; k++)
        if (apart[k]) judge(m, val, L, block, k);
    free(first);
    free(apart);
    free(block);
}
