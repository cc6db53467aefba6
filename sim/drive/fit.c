/* Which `shrink` a plan would fit with: tried with sizes only, for a number that is offered must
 * do. Refuses to guess: what was not lowered and walked is not named. */
#include "drive/run.h"

bool fit_shrinks(const Run *r) {
    return !r->plan->kind && !r->plan->weights && !r->plan->inputs && r->o->against == NULL;
}
/* What the plan needs with its widths divided by n. False if it cannot be lowered so, or needs more
 * than `room` bytes. */
static bool need_with(const Run *run, int64_t n, int64_t room, RunNeed *need) {
    Arena *tmp = arena_new();
    Plan *plan = arena_memdup(tmp, run->plan, sizeof *plan);
    PipelineReport rep = {0};
    plan->shrink = n;
    Run r = {
        .arena = tmp, .d = diags_new(tmp), .o = run->o, .rep = &rep, .plan = plan, .follow = room};
    bool known = run_front(&r) && run_lower(&r);
    if (known) {
        dry_estimate(&r);
        known = !r.need.memory.more;
        *need = r.need;
        exec_free(r.exec);
    }
    arena_free(tmp);
    return known;
}
int64_t fit_shrink(const Run *r, int64_t room, RunNeed *need) {
    int64_t from = r->plan->shrink, n = 0;
    int low = 1, high = 1; /* doublings: less than `low` do not do */
    if (!fit_shrinks(r) || from >= r->model->dims.full_D) return 0;
    while (from << (high + 1) < r->model->dims.full_D) high++;
    while (low <= high) {
        int half = (low + high) / 2;
        RunNeed tried;
        bool fits = need_with(r, from << half, room, &tried) &&
                    dry_within(tried.memory.peak, room) && dry_hours(&tried) <= RUN_MAX_HOURS;
        if (fits) n = from << half, *need = tried;
        if (fits) high = half - 1;
        else low = half + 1;
    }
    return n;
}
