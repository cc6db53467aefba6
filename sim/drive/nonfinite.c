/* The hunt for NaN and infinity in what steps make. It refuses to judge values: check.c does. */
#include "drive/run.h"
#include "exec/far.h"
#include "kernel/digest.h"
#include <math.h>

/* NaN and infinity pass every comparison of a number with itself: the first step that makes one is
 * reported. A pending maximum over an empty shard is minus infinity by right. */
void nonfinite_find(Run *r, const Step *s) {
    const Val *v = &r->program->val[s->out];
    const Store *st = exec_store(r->exec, s->out);
    if (r->nonfinite || exec_is_int(r->exec, s->out)) return;
    for (int a = 0; a < r->mesh->naxes; a++)
        if (v->L.type[a] == TY_M) return;
    for (int k = 0; k < st->n; k++) {
        const Local *l = &st->l[k];
        int64_t n = tensor_count(&l->t), bad = -1;
        double value = 0;
        /* nothing new */
        if (l->buf == NULL || s->kind == ST_CLAIM ||
            (s->kind == ST_MOVE && move_views(s->move.kind)) || far_finite(r->exec, &l->t))
            continue;
        Device *dev = r->exec->dev;
        Tensor host = dev->get(dev, &l->t, r->exec->dtype);
        for (int64_t i = digest_finite(host.p, r->exec->dtype, n); i < n && bad < 0; i++) {
            value = r->exec->dtype == DT_F32 ? (double)((float *)host.p)[i] : ((double *)host.p)[i];
            if (!isfinite(value)) bad = i;
        }
        dev->done(dev, &host);
        if (bad < 0) continue;
        r->nonfinite = true;
        diag_error(r->d, "E0504", s->loc,
                   "look at the sizes and scales of weights and inputs; in f64 the range is larger",
                   "%s: %s first appears here (step %d, %s, rank %lld, element %lld of its part)",
                   step_name(r->program, s, r->arena), isnan(value) ? "NaN" : "infinity", s->id,
                   phase_text(s->pass), (long long)st->l[k].rank, (long long)bad);
        return;
    }
}
