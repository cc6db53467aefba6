/* What the parts of the driver ask about a run. */
#include "drive/run.h"
#include <assert.h>

int64_t run_iterations(const Run *r) {
    assert(!r->model->g.nn_model || r->plan->optimizer.steps >= 1);
    int64_t n = r->model->g.nn_model ? r->plan->optimizer.steps : 1;
    return r->dry ? work_turns(n) : n;
}

bool run_keeps_all(const Run *r) {
    return r->distances || r->o->save_values || (r->against && against_wants_ranks(r->against));
}

bool run_backward(const Run *r) { return r->program->ns > r->program->n_forward; }

bool run_keeps_whole(const Run *r) {
    return r->distances || r->o->against || r->o->save_values || run_backward(r);
}

bool run_has_reference(const Run *r) {
    const PipelineOptions *o = r->o;
    return (!r->quick && !o->no_end_to_end) || o->end_to_end || o->sensitivity || o->against ||
           o->save_values;
}
