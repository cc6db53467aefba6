/* From a plan that was read to a lowered program: mesh, model, styles, lower, adjoint, optimizer.
 * Also asked with another `shrink` (fit.c). Plants nothing and refuses to judge. */
#include "drive/run.h"
#include "schedule/schedule.h"

/* With micro-batches the program is that of one of them; inputs are read from the whole batch. */
static bool build_model(Run *r) {
    int64_t m = r->plan->microbatches;
    r->model = r->whole = model_build(r->arena, r->d, r->plan, r->mesh);
    if (!r->model || m < 2) return r->model != NULL;
    int64_t B = r->whole->dims.B;
    if (B % m) {
        diag_error(r->d, "E0307", r->plan->batch_loc,
                   arena_printf(r->arena, "make the batch a multiple of %lld", (long long)m),
                   "a batch of %lld cannot be cut in %lld equal micro-batches", (long long)B,
                   (long long)m);
        return false;
    }
    Plan *one = arena_memdup(r->arena, r->plan, sizeof *one);
    one->batch = one->rows = B / m;
    one->whole_batch = B;
    one->inputs = NULL; /* sizes are known */
    if (!r->whole->dims.mlp) one->sequence = r->whole->dims.S;
    r->model = model_build(r->arena, r->d, one, r->mesh);
    const char *order = r->plan->pipeline.schedule;
    const ScheduleKind *kind = order ? schedule_kind(order) : NULL;
    bool both = kind && kind->both_ways;
    if (r->model)
        diag_note(r->d, "N0007", r->plan->batch_loc, NULL,
                  "the records show one micro-batch%s of %lld%s%s", both ? " each way" : "",
                  (long long)m, r->plan->pass == PASS_FORWARD ? "" : "; ",
                  r->plan->pass == PASS_FORWARD ? "" : plan_grad_sync(r->plan)->when);
    return r->model != NULL;
}

bool run_front(Run *r) {
    r->mesh = assign_mesh(r->arena, r->d, r->plan);
    if (!r->mesh) return false;
    if (!build_model(r)) return false;
    const ModelDims *m = &r->model->dims;
    if (r->plan->shrink > 1 && !r->plan->kind)
        r->rep->shrunk = arena_printf(
            r->arena, "D %lld -> %lld, d %lld -> %lld, F %lld -> %lld, V %lld -> %lld",
            (long long)m->full_D, (long long)m->D, (long long)m->full_d, (long long)m->d,
            (long long)m->full_F, (long long)m->F, (long long)m->full_V, (long long)m->V);
    if (!model_add_optimizer(r->arena, r->d, r->plan, r->model)) return false;
    if (r->whole != r->model && !model_add_optimizer(r->arena, r->d, r->plan, r->whole))
        return false;
    r->assign = assign_plan(r->arena, r->d, r->plan, r->mesh, r->model);
    return r->assign != NULL;
}
bool run_lower(Run *r) {
    int before = diags_errors(r->d);
    r->program = lower(r->arena, r->assign);
    program_groups(r->program, &r->model->g);
    program_groups_whole(r->program, &r->whole->g, r->plan->microbatches);
    program_blocks(r->program, &r->model->g);
    if (r->plan->pass != PASS_FORWARD && r->program->loss >= 0) adjoint_program(r->program);
    if (diags_errors(r->d) > before) return false;
    if (plan_data_unit(r->plan) != UNIT_PARAMETER) order_units(r->program);
    cut_gradients(r->program);
    mark_sync(r->program);
    if (r->plan->pass == PASS_TRAIN && r->program->loss >= 0) lower_optimizer(r->program);
    return diags_errors(r->d) == before;
}
