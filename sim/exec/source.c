/* Inputs and parameters: each rank's block of a source. Where all ranks are here the source is read
 * once and cut, as views where that is possible; a process of a real run reads the part of its own
 * rank. What a planted mistake does to reading (ReadAct) is done here. It refuses to know where
 * numbers come from: the executor's `full` and `part` do. */
#include "exec/narrow.h"
#include "exec/source.h"
#include "exec/store.h"
#include "exec/wire.h"
#include <stdlib.h>
#include <string.h>

/* The layout by which a rank cuts its block out of the source, and whose block that is. */
static Layout source_layout(const Layout *l, const ReadAct *act) {
    Layout L = *l;
    for (int d = 0; act->nest && d <= L.ndim; d++)
        for (int k = 0; k < L.n[d]; k++) L.e[d][k] = l->e[d][L.n[d] - 1 - k];
    return L;
}
static int64_t source_rank(const Mesh *m, const Layout *l, const ReadAct *act, int64_t rank) {
    AxisList cut = {0};
    if (!act->shift) return rank;
    for (int a = 0; a < m->naxes; a++)
        if (layout_where(l, a) >= 0) cut.a[cut.n++] = (uint8_t)a;
    int64_t n = mesh_size(m, &cut), i = mesh_index_in(m, &cut, rank) + act->shift;
    return mesh_member(m, &cut, rank, (i % n + n) % n);
}
Region source_region(const Mesh *m, const GTensor *t, const Layout *l, const ReadAct *act,
                     int64_t rank, Arena *arena) {
    Layout lies = source_layout(l, act);
    return region_at(m, t, &lies, source_rank(m, l, act, rank), arena);
}
/* Data of its own for each rank that should hold the same as others: the block turned round by the
 * rank's place among them. */
static void turn(const Exec *e, const Val *x, int64_t rank, const Tensor *t, Dtype dt) {
    const Mesh *m = e->p->mesh;
    AxisList same = {0};
    for (int a = 0; a < m->naxes; a++)
        if (layout_where(&x->L, a) < 0) same.a[same.n++] = (uint8_t)a;
    int64_t n = tensor_count(t), by = n ? mesh_index_in(m, &same, rank) % n : 0,
            es = dtype_size(dt);
    Tensor host = e->dev->get(e->dev, t, dt);
    char *old = base_malloc(base_mul((size_t)(n ? n : 1), (size_t)es)), *p = host.p;
    memcpy(old, p, (size_t)(n * es));
    memcpy(p, old + by * es, (size_t)((n - by) * es));
    memcpy(p + (n - by) * es, old, (size_t)(by * es));
    free(old);
    e->dev->put(e->dev, t, &host, dt);
    e->dev->done(e->dev, &host);
}
/* A whole source and the blocks that are cut from it. */
typedef struct {
    Exec *e;
    const Val *v;
    Dtype dt;
    Region box; /* of the whole */
    Tensor whole;
    Buf *buf;
    ReadAct act;
} Source;
static void source_key(void *arg, int64_t rank, int64_t *key) {
    const Source *x = arg;
    *key = x->act.apart ? rank : store_key(x->e->p->mesh, &x->v->L, rank);
}
/* What was loaded is rounded already; a device may hold it in less. */
static void held_narrow(const Source *x, Buf *b, const Tensor *t) {
    if (x->e->dev->halves) narrow_block(x->e, (int)(x->v - x->e->p->val), b, t);
}
/* A view where its indices are ranges of the whole, else a copy. */
static bool source_block(void *arg, int64_t rank, Local *l) {
    Source *x = arg;
    Exec *e = x->e;
    const Mesh *m = e->p->mesh;
    Arena *tmp = arena_new(); /* lists of positions may be as long as the value */
    Region b = source_region(m, &e->p->graph->t[x->v->tensor], &x->v->L, &x->act, rank, tmp);
    l->key = store_key(m, &x->v->L, rank);
    if (!x->act.apart && region_view(&b, &x->box, &x->whole, x->dt, &l->t)) {
        l->buf = x->buf;
        l->buf->refs++;
    } else {
        l->t = region_packed(&b);
        l->buf = store_buf_new(e, tensor_count(&l->t) * dtype_size(x->dt));
        l->t.p = l->buf->p;
        e->dev->copy(e->dev, (Block){&b, &l->t}, (Block){&x->box, &x->whole}, x->dt, COMBINE_COPY);
        if (x->act.apart && !e->dev->sizes_only) turn(e, x->v, rank, &l->t, x->dt);
        held_narrow(x, l->buf, &l->t);
    }
    arena_free(tmp);
    return true;
}
/* What was loaded becomes a buffer of the ranks' device. */
static Buf *source_buffer(Exec *e, Tensor *whole, Dtype dt) {
    int64_t bytes = tensor_count(whole) * dtype_size(dt);
    if (e->dev == e->host) return store_buf_adopt(e, whole->p, bytes);
    Tensor host = *whole;
    Buf *b = store_buf_new(e, bytes);
    whole->p = b->p;
    e->dev->put(e->dev, whole, &host, dt);
    e->host->release(e->host, host.p);
    return b;
}
/* The one rank that is here has its part read, and nothing else. */
static bool source_part(void *arg, int64_t rank, Local *l) {
    Source *x = arg;
    Exec *e = x->e;
    const Mesh *m = e->p->mesh;
    Arena *tmp = arena_new();
    Region b = source_region(m, &e->p->graph->t[x->v->tensor], &x->v->L, &x->act, rank, tmp);
    l->key = store_key(m, &x->v->L, rank);
    l->t = region_packed(&b);
    Tensor host = l->t;
    host.p = device_array(e->host, tensor_count(&l->t), dtype_size(x->dt));
    bool ok = e->part(e->full_arg, x->v->tensor, x->dt, &b, host.p);
    if (ok) {
        l->buf = source_buffer(e, &host, x->dt);
        l->t.p = host.p;
    } else e->host->release(e->host, host.p);
    if (ok && x->act.apart) turn(e, x->v, rank, &l->t, x->dt);
    if (ok) held_narrow(x, l->buf, &l->t);
    arena_free(tmp);
    return ok;
}
bool source_load(Exec *e, int v) {
    const Program *p = e->p;
    const Val *val = &p->val[v];
    const GTensor *t = &p->graph->t[val->tensor];
    Source x = {
        .e = e, .v = val, .dt = exec_dtype(e, v), .act = val->act ? *val->act : (ReadAct){0}};
    WireBlocks w = {.width = 1, .key = source_key, .make = source_part, .arg = &x};
    if (e->wire->told || e->wire->self >= 0) return e->wire->share(e->wire, e, v, &w);
    w.make = source_block;
    void *whole = e->full(e->full_arg, val->tensor, x.dt);
    if (!whole) return false;
    x.box = region_whole(t);
    x.whole = region_packed(&x.box);
    x.whole.p = whole;
    x.buf = source_buffer(e, &x.whole, x.dt);
    held_narrow(&x, x.buf, &x.whole);
    e->wire->share(e->wire, e, v, &w);
    store_buf_drop(e, x.buf);
    return true;
}
