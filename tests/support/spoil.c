/* Changing what ranks hold, between a step and its check. See spoil.h. */
#include "spoil.h"
#include "exec/store.h"
#include "kernel/bf16.h"
#include <math.h>

static double get(const Tensor *t, Dtype dt, int64_t i) {
    if (dt == DT_I64) return (double)((int64_t *)t->p)[i];
    return dt == DT_F32 ? (double)((float *)t->p)[i] : ((double *)t->p)[i];
}
static void set(Tensor *t, Dtype dt, int64_t i, double x) {
    if (dt == DT_I64) ((int64_t *)t->p)[i] = (int64_t)x;
    else if (dt == DT_F32) ((float *)t->p)[i] = (float)x;
    else ((double *)t->p)[i] = x;
}
/* In bf16 what ranks hold is rounded. */
static double held(const Exec *e, int val, double x) {
    return e->narrow && e->narrow[val] ? bf16_of_double(x) : x;
}
static Local packed_copy(Exec *e, const Local *from, Dtype dt) {
    Local l = *from;
    tensor_pack(&l.t);
    int64_t n = tensor_count(&l.t);
    l.buf = store_buf_new(e, n * dtype_size(dt));
    l.t.p = l.buf->p;
    Region box = region_plain(&l.t);
    region_copy((Block){&box, &l.t}, (Block){&box, &from->t}, dt, COMBINE_COPY);
    return l;
}
Spoil spoil_part(Exec *e, int val, int64_t rank) {
    Store *st = exec_store(e, val);
    Spoil s = {.e = e, .val = val, .rank = rank, .held = st->which[rank]};
    s.own = packed_copy(e, &st->l[s.held], exec_dtype(e, val));
    s.own.rank = rank;
    s.n = tensor_count(&s.own.t);
    st->which[rank] = (uint32_t)store_add(st, s.own);
    return s;
}
void spoil_undo(Spoil *s) {
    Store *st = exec_store(s->e, s->val);
    st->which[s->rank] = s->held;
    st->n--;
    store_buf_drop(s->e, s->own.buf);
}
double spoil_get(const Spoil *s, int64_t i) { return get(&s->own.t, exec_dtype(s->e, s->val), i); }
void spoil_set(Spoil *s, int64_t i, double x) {
    set(&s->own.t, exec_dtype(s->e, s->val), i, held(s->e, s->val, x));
}
double spoil_next(Dtype dt, double x, double to) {
    if (dt == DT_I64) return to > x ? x + 1 : x - 1;
    return dt == DT_F32 ? (double)nextafterf((float)x, to > x ? INFINITY : -INFINITY)
                        : nextafter(x, to);
}
void spoil_all(Exec *e, int val, double factor) {
    Store *st = exec_store(e, val);
    Dtype dt = exec_dtype(e, val);
    for (int k = 0; k < st->n; k++) {
        Local l = packed_copy(e, &st->l[k], dt);
        for (int64_t i = tensor_count(&l.t) - 1; i >= 0; i--)
            if (get(&l.t, dt, i) != 0) set(&l.t, dt, i, held(e, val, factor * get(&l.t, dt, i)));
        store_buf_drop(e, st->l[k].buf);
        st->l[k] = l;
    }
}
uint64_t spoil_hash(Exec *e, int val) {
    uint64_t h = 1469598103934665603u;
    int64_t es = dtype_size(exec_dtype(e, val));
    for (int64_t r = 0; r < e->p->mesh->nranks; r++) {
        if (!exec_local(e, val, r)) continue; /* it lives elsewhere */
        Spoil part = spoil_part(e, val, r);
        const unsigned char *p = part.own.t.p;
        for (int64_t i = 0; i < part.n * es; i++) h = (h ^ p[i]) * 1099511628211u;
        h = (h ^ (uint64_t)r) * 1099511628211u;
        spoil_undo(&part);
    }
    return h;
}
