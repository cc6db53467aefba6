/* The hunt for NaN and infinity in what steps make. It refuses to judge values: check.c does. */
#include "drive/run.h"
#include "exec/far.h"
#include "kernel/digest.h"
#include "kernel/pool.h"
#include <math.h>
#include <stdatomic.h>

/* The numbers of one block, which workers share. */
typedef struct {
    const char *p;
    Dtype dt;
    _Atomic int64_t first; /* that is not finite */
} Numbers;
static void look(void *arg, int64_t lo, int64_t hi) {
    Numbers *x = arg;
    int64_t width = dtype_size(x->dt);
    for (int64_t i = lo + digest_finite(x->p + lo * width, x->dt, hi - lo); i < hi; i++) {
        double value = x->dt == DT_F32 ? (double)((const float *)(const void *)x->p)[i]
                                       : ((const double *)(const void *)x->p)[i];
        if (isfinite(value)) continue;
        for (int64_t was = x->first; i < was && !atomic_compare_exchange_weak(&x->first, &was, i);)
            ;
        return;
    }
}

/* Has the block numbers that nobody has looked at? */
static bool is_new(const Run *r, const Step *s, const Local *l) {
    return l->buf != NULL && s->kind != ST_CLAIM &&
           !(s->kind == ST_MOVE && move_views(s->move.kind)) && !far_finite(r->exec, &l->t);
}
/* Many small blocks, which workers share: is one of them odd? */
typedef struct {
    const Run *r;
    const Step *s;
    const Store *st;
    _Atomic bool odd;
} Blocks;
static void look_block(void *arg, int64_t k) {
    Blocks *x = arg;
    const Local *l = &x->st->l[k];
    Device *dev = x->r->exec->dev;
    int64_t n = tensor_count(&l->t);
    if (!is_new(x->r, x->s, l)) return;
    Tensor host = dev->get(dev, &l->t, x->r->exec->dtype);
    if (digest_finite(host.p, x->r->exec->dtype, n) != n) x->odd = true;
    dev->done(dev, &host);
}
static bool all_finite(const Run *r, const Step *s, const Store *st) {
    Pool *pool = r->exec->pool;
    Blocks x = {r, s, st, false};
    if (!pool || r->exec->far || st->n < 2 * pool_threads(pool)) return false; /* not known */
    pool_run(pool, st->n, look_block, &x);
    return !x.odd;
}

/* NaN and infinity pass every comparison of a number with itself: the first step that makes one is
 * reported. A pending maximum over an empty shard is minus infinity by right. */
void nonfinite_find(Run *r, const Step *s) {
    const Val *v = &r->program->val[s->out];
    const Store *st = exec_store(r->exec, s->out);
    if (r->nonfinite || exec_is_int(r->exec, s->out)) return;
    for (int a = 0; a < r->mesh->naxes; a++)
        if (v->L.type[a] == TY_M) return;
    if (all_finite(r, s, st)) return;
    for (int k = 0; k < st->n; k++) {
        const Local *l = &st->l[k];
        int64_t n = tensor_count(&l->t);
        if (!is_new(r, s, l)) continue;
        Device *dev = r->exec->dev;
        Tensor host = dev->get(dev, &l->t, r->exec->dtype);
        Numbers x = {host.p, r->exec->dtype, n};
        pool_pieces(r->exec->pool, n, look, &x);
        int64_t bad = x.first;
        bool nan = bad < n && (x.dt == DT_F32 ? isnan(((float *)host.p)[bad])
                                              : isnan(((double *)host.p)[bad]));
        dev->done(dev, &host);
        if (bad == n) continue;
        r->nonfinite = true;
        diag_error(r->d, "E0504", s->loc,
                   "look at the sizes and scales of weights and inputs; in f64 the range is larger",
                   "%s: %s first appears here (step %d, %s, rank %lld, element %lld of its part)",
                   step_name(r->program, s, r->arena), nan ? "NaN" : "infinity", s->id,
                   phase_text(s->pass), (long long)st->l[k].rank, (long long)bad);
        return;
    }
}
