/* Values of a file that are compared with the run, and values of the run that are written to one.
 */
#include "drive/run.h"
#include "drive/save.h"

static int64_t training_steps(const Run *r) {
    return r->model->g.nn_model ? r->plan->optimizer.steps : 0;
}
static ValueSet values_of(Run *r, const Reference *ref, Exec *ranks, int64_t after) {
    return (ValueSet){r->arena, ref, NULL, ranks, training_steps(r), after};
}
/* A file that cannot be compared is refused before the work. */
bool outside_open(Run *r) {
    const PipelineOptions *o = r->o;
    if (!o->against) return true;
    r->against = against_open(r->arena, r->d, r->program, training_steps(r),
                              (AgainstFile){o->against, o->map, o->against_of, o->tolerance});
    return r->against != NULL;
}
/* After a training step of the unsharded run: parameters and state as they are now. */
void outside_reference_stepped(void *arg, Exec *e, int64_t step) {
    Run *r = arg;
    Reference ref = {.program = (Program *)(uintptr_t)e->p, .exec = e, .graph = e->p->graph};
    ValueSet s = values_of(r, &ref, NULL, step);
    against_step(r->against, &s);
}
void outside_ranks_stepped(Run *r, int64_t step) {
    ValueSet s = values_of(r, NULL, r->exec, step);
    if (r->against && against_wants_ranks(r->against)) against_step(r->against, &s);
}
bool outside_wants_narrow(const Run *r) { return r->against && against_wants_narrow(r->against); }
void outside_finish(Run *r, const Reference *ref, const Reference *narrow) {
    ValueSet s = values_of(r, ref, r->exec, training_steps(r) - 1);
    s.narrow = narrow;
    if (r->o->save_values) save_values(&s, r->d, r->o->save_values);
    if (!r->against) return;
    against_rest(r->against, &s);
    against_report(r->against, &s, r->rep, r->t);
}
