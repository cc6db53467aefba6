/* What the parts of the driver ask about a run. */
#include "drive/run.h"

int64_t run_iterations(const Run *r) { return r->model->g.nn_model ? r->plan->optimizer.steps : 1; }

bool run_keeps_all(const Run *r) {
    return r->o->save_values || (r->against && against_wants_ranks(r->against));
}

bool run_backward(const Run *r) { return r->program->ns > r->program->n_forward; }
