/* The locals of a value and the buffers that they share. */
#include "exec/store.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

Buf *store_buf_adopt(Exec *e, void *p, int64_t bytes) {
    Buf *b = base_malloc(sizeof *b);
    *b = (Buf){1, bytes > 0 ? (size_t)bytes : 1, p};
    e->live_bytes += (int64_t)b->bytes;
    if (e->live_bytes > e->peak_bytes) e->peak_bytes = e->live_bytes;
    if (bytes > e->largest_bytes) e->largest_bytes = bytes;
    return b;
}
Buf *store_buf_new(Exec *e, int64_t bytes) {
    assert(bytes >= 0);
    return store_buf_adopt(e, device_array(e->dev, bytes, 1), bytes);
}
void store_buf_halve(Exec *e, Buf *b) {
    e->live_bytes -= (int64_t)(b->bytes - b->bytes / 2);
    b->bytes /= 2;
}
void store_buf_drop(Exec *e, Buf *b) {
    assert(b->refs > 0);
    if (--b->refs) return;
    e->live_bytes -= (int64_t)b->bytes;
    e->dev->release(e->dev, b->p);
    free(b);
}

int64_t store_key(const Mesh *m, const Layout *l, int64_t rank) {
    int64_t k = 0;
    for (int a = 0; a < m->naxes; a++)
        if (l->type[a] == TY_V) k += mesh_coord(m, rank, a) * m->axis[a].stride;
    return k;
}
void store_drop(Exec *e, Store *s) {
    if (!s->alive) return;
    for (int i = 0; i < s->n; i++) store_buf_drop(e, s->l[i].buf);
    free(s->l);
    free(s->which);
    *s = (Store){0};
}
void exec_drop(Exec *e, int v) { store_drop(e, exec_store(e, v)); }
Store *store_open(Exec *e, int v) {
    Store *s = exec_store(e, v);
    exec_drop(e, v);
    size_t bytes = base_mul((size_t)e->p->mesh->nranks, sizeof *s->which);
    s->which = memset(base_malloc(bytes), 0xff, bytes); /* EXEC_NOTHING */
    s->alive = true;
    return s;
}
int store_add(Store *s, Local l) {
    assert(s->alive && l.buf && l.buf->refs > 0 && l.t.nd >= 0 && l.t.nd <= LAYOUT_MAX_DIMS);
    if (s->n == s->cap) {
        s->cap = s->cap ? 2 * s->cap : 4;
        s->l = base_realloc(s->l, base_mul((size_t)s->cap, sizeof *s->l));
    }
    s->l[s->n] = l;
    return s->n++;
}
void store_shape(Exec *e, Local *l, const Tensor *as, Dtype dt) {
    assert(tensor_count(as) == tensor_count(&l->t));
    if (as->nd == l->t.nd && !memcmp(as->n, l->t.n, sizeof *as->n * (size_t)as->nd)) return;
    if (!tensor_is_packed(&l->t)) {
        Tensor packed = l->t;
        Buf *b = store_buf_new(e, tensor_count(as) * dtype_size(dt));
        Region r = region_plain(&l->t);
        tensor_pack(&packed);
        packed.p = b->p;
        e->dev->copy(e->dev, (Block){&r, &packed}, (Block){&r, &l->t}, dt, COMBINE_COPY);
        store_buf_drop(e, l->buf);
        l->buf = b;
        l->t = packed;
    }
    void *p = l->t.p;
    l->t = *as;
    l->t.p = p;
}
Region region_of(const Exec *e, int v, int64_t rank, Arena *arena) {
    const Val *x = &e->p->val[v];
    const GTensor *t = &e->p->graph->t[x->tensor];
    if (t->listed)
        return region_rows(e->p->mesh, t, &x->L, rank, exec_rows(e, v, rank, arena), arena);
    return region_at(e->p->mesh, t, &x->L, rank, arena);
}
DimIndex exec_rows(const Exec *e, int v, int64_t rank, Arena *arena) {
    const Local *l = exec_local(e, e->p->val[v].list, rank);
    /* a planted group may reach over stages: who has no list has no rows */
    DimIndex x = {.range = true, .n = l ? l->t.n[0] : 0};
    if (e->dev->sizes_only || !x.n) return x;
    Tensor host = e->dev->get(e->dev, &l->t, DT_I64);
    int64_t *list = arena_alloc(arena, base_mul((size_t)x.n, sizeof *list));
    for (int64_t i = 0; i < x.n; i++) list[i] = ((const int64_t *)host.p)[i * host.s[0]];
    e->dev->done(e->dev, &host);
    return (DimIndex){false, 0, x.n, list};
}

bool exec_is_int(const Exec *e, int v) { return e->p->graph->t[e->p->val[v].tensor].is_int; }
Dtype exec_dtype(const Exec *e, int v) {
    return region_dtype(&e->p->graph->t[e->p->val[v].tensor], e->dtype);
}
