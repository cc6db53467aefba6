/* From a plan that was read to a lowered program: mesh, model, styles, lower, adjoint, optimizer.
 * Also asked with another `shrink` (fit.c). Plants nothing and refuses to judge. */
#include "drive/run.h"
#include "schedule/schedule.h"
#include "trace/trace_way.h"

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
        assign_schedule(r->arena, r->d, r->plan, r->mesh); /* what m must be besides, at once */
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
        diag_note(r->d, "N0007", r->plan->batch_loc, NULL, "the records show %s of %lld%s%s",
                  trace_way_one(both), (long long)m, r->plan->pass == PASS_FORWARD ? "" : "; ",
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
    r->rep->batch = r->whole->dims.B, r->rep->rows = r->whole->dims.mlp;
    r->assign = assign_plan(r->arena, r->d, r->plan, r->mesh, r->model, &r->stuck);
    r->rep->idle = r->assign && r->assign->idle;
    return r->assign != NULL;
}
enum { MAX_LISTED = 1 << 26 }; /* positions in a list: half a GiB */
/* The first letter of an operand that is cut, whose positions the step's op asks for, and that is
 * too long to be listed; 0: none. */
static int64_t listed_beyond(const Program *p, const Step *s) {
    const GNode *n = &p->graph->node[s->node];
    for (int i = 0; i < n->nin; i++) {
        const Val *v = &p->val[s->in[i]];
        const GTensor *t = &p->graph->t[v->tensor];
        for (int d = 0; d < n->rule.nl[i]; d++)
            if (op_asks(n->op, &n->rule, &n->at) & RULE_BIT(n->rule.in[i][d]) && v->L.n[d] &&
                t->size[d] > MAX_LISTED)
                return t->size[d];
    }
    return 0;
}
/* Positions of a cut dim are held as lists, those of a whole one are not: false, with a diagnostic,
 * if the lowered program would need lists that are too long. */
static bool listable(Run *r) {
    const Program *p = r->program;
    const Plan *plan = r->plan;
    for (int i = 0; i < p->n_forward; i++) {
        int64_t size = p->step[i].kind == ST_OP ? listed_beyond(p, &p->step[i]) : 0;
        if (!size) continue;
        diag_error(r->d, "E0701", plan->sequence_loc.file ? plan->sequence_loc : plan->model_loc,
                   "use a shorter sequence, or do not cut it",
                   "a sequence of %lld tokens is too long to be cut; the limit is %d",
                   (long long)size, MAX_LISTED);
        return false;
    }
    return true;
}
bool run_lower(Run *r) {
    int before = diags_errors(r->d);
    r->program = lower(r->arena, r->assign);
    if (!listable(r)) { /* nothing can be recorded of it */
        r->program = NULL;
        return false;
    }
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
