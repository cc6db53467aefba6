/* What the parts of the driver ask about a run. */
#include "drive/run.h"

int64_t run_iterations(const Run *r) {
    int64_t n = r->model->g.nn_model ? r->plan->optimizer.steps : 1;
    return r->dry && n > DRY_TURNS ? DRY_TURNS : n;
}

bool run_keeps_all(const Run *r) {
    return r->o->save_values || (r->against && against_wants_ranks(r->against));
}

bool run_backward(const Run *r) { return r->program->ns > r->program->n_forward; }

bool run_keeps_whole(const Run *r) { return r->o->against || r->o->save_values || run_backward(r); }

bool run_has_reference(const Run *r) {
    const PipelineOptions *o = r->o;
    return !r->quick || o->end_to_end || o->sensitivity || o->against || o->save_values;
}

/* What --exact and the comparison add to the work of the run. */
double run_exact_work(const Run *r) {
    return r->o->exact && !run_backward(r) ? 2 * r->o->exact * r->work.exact
                                           : 0; /* on the ranks and on one */
}
double run_compare_work(const Run *r) {
    double n = 0;
    for (int v = 0; v < r->program->nv && run_has_reference(r); v++) {
        bool grad;
        if (!endtoend_result(r->program, v, &grad)) continue;
        const GTensor *t = &r->model->g.t[r->program->val[v].tensor];
        double one = 1;
        for (int d = 0; d < t->nd; d++) one *= (double)t->size[d];
        n += one;
    }
    return n * r->work.compare;
}
