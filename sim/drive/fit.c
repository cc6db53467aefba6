/* Which `shrink` a plan would fit with: tried with sizes only, for a number that is offered must
 * do. Refuses to guess: what was not lowered and walked is not named. */
#include "drive/run.h"
#include "kernel/pool.h"

static int64_t built_layers(const Run *r) {
    return r->model->dims.last_layer - r->model->dims.first_layer;
}
/* A try walks every step with every rank: where these are more than so many nothing is tried, for
 * what cannot run here is told at once. Steps are counted as those of so many of the layers. */
static bool worth_trying_with(const Run *r, int64_t layers, int64_t most) {
    const int64_t all = built_layers(r);
    return (int64_t)r->program->ns * (layers < all ? layers : all) / (all ? all : 1) *
               r->mesh->nranks <=
           most;
}
static bool worth_trying(const Run *r) {
    return worth_trying_with(r, built_layers(r), (int64_t)1 << 20);
}
/* Thousands of ranks that come in only because layers are left out take seconds a try. */
static bool worth_trying_few(const Run *r, int64_t layers) {
    return worth_trying_with(r, layers, (int64_t)1 << 17);
}
/* Are the widths a preset's or a config's, and are there no numbers of that size? */
static bool has_widths(const Run *r) {
    return !r->plan->kind && !r->plan->weights && !r->plan->inputs && r->o->against == NULL;
}
bool fit_shrinks(const Run *r) { return has_widths(r) && worth_trying(r); }
/* The fewest layers that the plan can have, with one of each kind: lines for experts name nothing
 * where only dense layers are left. 0: it has no more. */
static int64_t few_layers(const Run *r) {
    const Stages *s = r->assign->stages;
    const int from = r->model->dims.first_layer;
    int64_t least = s ? s->n : 1;
    for (int l = from + 1; l < r->model->dims.last_layer; l++) {
        int k = from;
        while (k < l && !dry_same_layer(r->program->graph, k, l)) k++;
        if (k == l && l + 1 - from > least) least = l + 1 - from;
    }
    return least < built_layers(r) ? least : 0;
}
/* What another plan needs. False if it cannot be lowered, or needs more than `room` bytes. */
static bool need_under(const PipelineOptions *o, Plan *plan, int64_t room, RunNeed *need) {
    Arena *tmp = arena_new();
    PipelineReport rep = {0};
    Run r = {.arena = tmp, .d = diags_new(tmp), .o = o, .rep = &rep, .plan = plan, .follow = room};
    *need = (RunNeed){0};
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
static bool need_of(const Run *run, Plan *plan, int64_t room, RunNeed *need) {
    return need_under(run->o, plan, room, need);
}
/* The same with the plan's widths divided by n, and with so many of its layers (0: all). */
static bool need_with(const Run *run, int64_t n, int64_t layers, int64_t room, RunNeed *need) {
    Plan plan = *run->plan;
    plan.shrink = n;
    if (layers) plan.layers_last = plan.layers_first + (int)layers;
    return need_of(run, &plan, room, need);
}
static bool fits_with(const Run *r, int threads, int64_t room, RunNeed *need) {
    PipelineOptions o = *r->o;
    Plan plan = *r->plan;
    o.threads = threads;
    return need_under(&o, &plan, room, need) && dry_within(need->memory.peak, room);
}
int fit_threads(const Run *r, int64_t room, int64_t stack, RunNeed *need) {
    const int all = pool_would(r->o->threads);
    /* one first: where that does not fit nothing does */
    if (all < 2 || r->o->ranks || !worth_trying(r) || !fits_with(r, 1, room, need)) return 0;
    for (int n = all / 2; n > 1; n /= 2)
        if (fits_with(r, n, room - stack * (n - 1), need)) return n;
    return fits_with(r, 1, room, need);
}
Loc fit_cause(const Run *r, bool time) {
    const Plan *p = r->plan;
    const struct {
        int64_t size;
        Loc loc;
        ptrdiff_t at;
    } data[] = {{p->sequence, p->sequence_loc, offsetof(Plan, sequence)},
                {p->batch, p->batch_loc, offsetof(Plan, batch)},
                {p->rows, p->batch_loc, offsetof(Plan, rows)}};
    int64_t most = 0;
    Loc cause = p->model_loc;
    for (size_t i = 0; worth_trying(r) && i < sizeof data / sizeof *data; i++) {
        Plan plan = *p;
        RunNeed need;
        int64_t *size = (int64_t *)((char *)&plan + data[i].at);
        bool known = false;
        /* by eighths, for the divisors that cuts ask for stay, until it is not beyond all counting
         */
        while (data[i].size > most && data[i].loc.file && *size > 1 && !known) {
            *size /= *size % 8 == 0 ? 8 : *size % 2 == 0 ? 2 : *size;
            known = need_of(r, &plan, 0, &need);
        }
        if (!known) continue;
        double now = time ? dry_hours(&r->need) : (double)r->need.memory.peak,
               then = time ? dry_hours(&need) : (double)need.memory.peak;
        if (then > now / 2) continue;
        most = data[i].size;
        cause = data[i].loc;
    }
    return cause;
}
/* With so many layers (0: all); `low`: the plan's widths are divided by 2 at least so often. */
static Fit fit_with(const Run *r, int64_t layers, int low, int64_t room, double hours) {
    const int64_t from = r->plan->shrink;
    Fit fit = {.layers = (int)layers};
    int high = 1; /* doublings: less than `low` do not do */
    if (from >= r->model->dims.full_D) return fit;
    while (from << (high + 1) < r->model->dims.full_D) high++;
    /* the narrowest first: where it does not fit nothing does, which many ranks take seconds to see
     */
    for (int half = high; low <= high; half = (low + high) / 2) {
        RunNeed tried;
        bool fits = need_with(r, from << half, layers, room, &tried) &&
                    dry_within(tried.memory.peak, room) && dry_hours(&tried) <= hours;
        if (!fits && !fit.shrink && !tried.memory.peak) fit.layers = 0; /* it cannot be lowered */
        if (!fits && !fit.shrink) return fit;
        if (fits) fit.shrink = from << half, fit.need = tried;
        if (fits) high = half - 1;
        else low = half + 1;
    }
    return fit;
}
Fit fit_shrink(const Run *r, int64_t room, double hours) {
    Fit fit = {0};
    const int64_t few = few_layers(r);
    if (fit_shrinks(r)) fit = fit_with(r, 0, 1, room, hours);
    if (!fit.shrink && few && has_widths(r) && worth_trying_few(r, few))
        fit = fit_with(r, few, 0, room, hours);
    return fit;
}
