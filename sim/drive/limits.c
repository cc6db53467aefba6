/* Whether a run ends in time and fits into memory, told before anything is allocated or computed.
 */
#include "drive/run.h"
#include "exec/reference.h"
#include <math.h>

enum {
    RUN_MAX_RANKS = 1 << 14
}; /* every rank holds blocks of its own: more take minutes even for the smallest model */
/* A slip of a number that would take years is told at once. */
static bool ends(Run *r) {
    enum { RUN_MAX_HOURS = 100 };
    const Plan *p = r->plan;
    double hours = r->need.all * 1e-9 / 3600;
    if (hours <= RUN_MAX_HOURS) return true;
    bool steps = run_iterations(r) > 1;
    double least = fmax(1, floor((double)run_iterations(r) * RUN_MAX_HOURS / hours));
    const char *fewer = arena_printf(r->arena, "use `optimizer.steps` of at most %.0f", least);
    diag_error(r->d, "E0707", steps ? p->optimizer.steps_loc : p->model_loc,
               steps ? fewer
                     : "use smaller sizes or a larger `shrink`; shapes, params, comms and draw "
                       "compute nothing",
               "executing this plan would take about %.3g hours; the limit is %d", hours,
               RUN_MAX_HOURS);
    return false;
}
static bool refuse_memory(Run *r, const MemoryNeed *need, const MemoryRoom *room) {
    const Plan *p = r->plan;
    bool mlp = r->model->dims.mlp, steps = run_iterations(r) > 1 && need->records > need->peak / 2;
    const char *wider = plan_executes_in(p) != DT_F64 ? ""
                        : p->execute < 0              ? "`dtype: f32`, "
                                                      : "`execute: f32`, ";
    const char *rest = "shapes, params, comms and draw need none of it";
    const char *hint = arena_printf(
        r->arena,
        "use `shrink` (--set model.shrink=%lld), %sfewer layers or a shorter sequence; %s",
        (long long)(p->shrink > 1 ? p->shrink * 2 : 2), wider, rest);
    if (mlp) hint = arena_printf(r->arena, "use smaller sizes or fewer rows; %s", rest);
    if (steps) hint = "use fewer `optimizer.steps`: the checks of every step are kept";
    diag_error(r->d, "E0701", steps ? p->optimizer.steps_loc : p->model_loc, hint,
               "executing this plan needs about %s of memory (%s for the ranks and their check, %s "
               "for the unsharded run), there are %s: %s",
               bytes_text(need->peak, r->arena), bytes_text(need->sharded, r->arena),
               bytes_text(need->unsharded, r->arena), bytes_text(room->bytes, r->arena),
               room->what);
    return false;
}
/* What the run needs, and whether its products are held by projections: where nobody said, by how
 * much the first walk found to compute. */
static void estimate(Run *r) {
    r->quick = r->o->check == CHECK_QUICK;
    r->need = dry_run(r);
    if (r->o->check != CHECK_AUTO || r->work->flops <= CHECK_AUTO_GFLOP * 1e9) return;
    r->quick = true;
    r->need = dry_run(r);
}
bool limits_fit(Run *r) {
    if (r->mesh->nranks > RUN_MAX_RANKS) {
        diag_error(r->d, "E0703", r->plan->mesh_loc,
                   "use smaller axes, or a shape-only command (shapes, params, comms, draw)",
                   "a run of %lld ranks; the limit is %d", (long long)r->mesh->nranks,
                   RUN_MAX_RANKS);
        return false;
    }
    Dtype in = plan_executes_in(r->plan);
    if (in != DT_F32 && in != DT_F64) {
        diag_error(r->d, "E0602", r->plan->dtype_loc,
                   "`data: {execute: f32}` (--set data.execute=f32) computes the numbers in f32; "
                   "shape-only commands need none of it",
                   "the virtual backend computes in f32 and f64 only");
        return false;
    }
    if (in != r->plan->dtype)
        diag_note(r->d, "N0016", r->plan->execute_loc, NULL,
                  "numbers were computed in %s: what %s rounds away was not looked at; shapes, "
                  "bytes, memory and times are those of %s",
                  dtype_text(in), dtype_text(r->plan->dtype), dtype_text(r->plan->dtype));
    r->exec = exec_new(r->arena, r->program, in, NULL);
    if (r->o->ranks && !ranks_first(r->o->ranks)) return true; /* it has its own parts only */
    r->unsharded = reference_program(r->arena, r->plan, r->whole, r->d, run_backward(r));
    estimate(r);
    bool in_time = ends(r);
    MemoryRoom room = memory_room(r->arena);
    if (r->o->memory_limit) room = (MemoryRoom){r->o->memory_limit, "the limit that was set"};
    MemoryNeed *need = &r->need.memory;
    if (r->o->ranks) /* the parts of the processes here, beside what rank 0 is told */
        need->peak += need->sharded / r->mesh->nranks * ranks_beside(r->o->ranks);
    r->rep->predicted_bytes = need->peak;
    if (need->peak <= room.bytes - room.bytes / 16) return in_time;
    return refuse_memory(r, need, &room);
}
