/* Numbers out of a run: of small values, for pictures, and of single elements. */
#include "drive/run.h"
#include "exec/assemble.h"
#include "exec/compare.h"
#include <assert.h>
#include <math.h>

void numbers_keep(Run *r, const Step *s) {
    const Val *v = &r->program->val[s->out];
    const GTensor *t = &r->model->g.t[v->tensor];
    int64_t n = 1;
    for (int d = 0; d < t->nd; d++) n *= t->size[d];
    for (int a = 0; a < r->mesh->naxes; a++)
        if (v->L.type[a] == TY_P || v->L.type[a] == TY_M) return;
    /* rows of a list are as many as were routed, which no shape says */
    if (!r->o->numbers || n > 64 || t->is_int || v->list >= 0) return;
    AxisList none = {0};
    Tensor x = assemble_value(r->exec, s->out, &none, layout_first(r->mesh, &v->L));
    assert(tensor_count(&x) == n);
    for (int i = r->t->n_values - 1; i >= 0; i--)
        if (r->t->values[i].step == s->id) {
            r->t->values[i].numbers = ARENA_ARRAY(r->arena, double, n);
            r->t->values[i].n_numbers = n;
            for (int64_t k = 0; k < n; k++)
                r->t->values[i].numbers[k] =
                    r->exec->dtype == DT_F32 ? (double)((float *)x.p)[k] : ((double *)x.p)[k];
        }
    r->exec->host->release(r->exec->host, x.p);
}
double numbers_first(const Run *r, int val) {
    const Layout *lies = &r->program->val[val].L;
    const Local *l = exec_local(r->exec, val, layout_first(r->mesh, lies));
    Device *dev = r->exec->dev;
    Dtype dt = exec_dtype(r->exec, val);
    Tensor host = dev->get(dev, &l->t, dt);
    double first = tensor_count(&host) ? compare_at(host.p, dt, 0) : NAN;
    dev->done(dev, &host);
    return first;
}
