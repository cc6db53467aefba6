/* Which `shrink` a plan would fit with: tried with sizes only, for a number that is offered must
 * do. Refuses to guess: what was not lowered and walked is not named. */
#include "drive/run.h"

bool fit_shrinks(const Run *r) {
    return !r->plan->kind && !r->plan->weights && !r->plan->inputs && r->o->against == NULL;
}
/* What the plan needs with its widths divided by n; INT64_MAX if it cannot be lowered so. */
static int64_t need_with(const Run *run, int64_t n) {
    Arena *tmp = arena_new();
    Plan *plan = arena_memdup(tmp, run->plan, sizeof *plan);
    PipelineReport rep = {0};
    plan->shrink = n;
    Run r = {.arena = tmp, .d = diags_new(tmp), .o = run->o, .rep = &rep, .plan = plan};
    int64_t bytes = INT64_MAX;
    if (run_front(&r) && run_lower(&r)) {
        dry_estimate(&r);
        if (!r.need.memory.more) bytes = r.need.memory.peak;
        exec_free(r.exec);
    }
    arena_free(tmp);
    return bytes;
}
int64_t fit_shrink(const Run *r, int64_t room, int64_t *bytes) {
    int64_t from = r->plan->shrink, n = 0;
    int low = 1, high = 1; /* doublings: less than `low` do not do */
    if (!fit_shrinks(r) || from >= r->model->dims.full_D) return 0;
    while (from << (high + 1) < r->model->dims.full_D) high++;
    while (low <= high) {
        int half = (low + high) / 2;
        int64_t need = need_with(r, from << half);
        bool fits = need < INT64_MAX && dry_within(need, room);
        if (fits) n = from << half, *bytes = need;
        if (fits) high = half - 1;
        else low = half + 1;
    }
    return n;
}
