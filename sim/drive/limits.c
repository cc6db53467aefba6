/* Whether a run ends in time and fits into memory, told before anything is allocated or computed.
 */
#include "drive/run.h"
#include "engine/engine.h"
#include "kernel/pool.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    RUN_MAX_RANKS = 1 << 14
}; /* every rank holds blocks of its own: more take minutes even for the smallest model */
/* The widths are those of the model because nobody said `shrink`, and nothing else (ranks that are
 * processes, a GPU, weights of a file, many steps) shows that a long run is wanted. */
static bool unasked(const Run *r) {
    return !r->plan->shrink_loc.file && !r->o->full && !r->o->ranks && !r->o->device &&
           run_iterations(r) == 1 && fit_shrinks(r);
}
static double most_hours(const Run *r) { return unasked(r) ? RUN_UNASKED_HOURS : RUN_MAX_HOURS; }
/* Does the name speak of a layer that is left out: "layers.40.output" of the first 3? */
static bool of_other_layer(const char *name, int from, int layers) {
    for (const char *c = name; *c; c += strcspn(c, "."), c += *c == '.') {
        const size_t n = strspn(c, "0123456789");
        if (n && (!c[n] || c[n] == '.')) return strtol(c, NULL, 10) >= from + layers;
    }
    return false;
}
/* What `expect` says of layers that are left out does not hold of the others: how it is left out
 * too. "": it says nothing of them. */
static const char *expect_text(const Run *r, int layers) {
    const Expect *e = &r->plan->expect;
    bool counts = false, shapes = false;
    for (int i = 0; i < e->n_collectives; i++) counts |= e->collectives[i].count > 0;
    for (int i = 0; i < e->n_shapes; i++)
        shapes |= of_other_layer(e->shapes[i].key, r->model->dims.first_layer, layers);
    if (!layers || (!counts && !shapes)) return "";
    return arena_printf(r->arena, "; what `expect` says of the other layers is left out by%s%s",
                        counts ? " --set expect.collectives={}" : "",
                        shapes ? " --set expect.local_shapes={}" : "");
}
/* The keys that make the model smaller, with numbers that were tried: they do for memory and time.
 */
static const char *shrink_text(const Run *r, Fit fit) {
    if (fit.shrink) {
        Arena *a = r->arena;
        const double hours = dry_hours(&fit.need);
        const bool shrink = fit.shrink > r->plan->shrink;
        const char *layers = fit.layers ? arena_printf(a, "--set model.layers=%d", fit.layers) : "",
                   *widths = shrink
                                 ? arena_printf(a, "--set model.shrink=%lld", (long long)fit.shrink)
                                 : "";
        return arena_printf(a, "use %s%s%s (%s%s%s needs about %s%s%s), ",
                            fit.layers ? "fewer `layers`" : "", fit.layers && shrink ? " and " : "",
                            shrink ? "`shrink`" : "", layers, fit.layers && shrink ? " " : "",
                            widths, bytes_text(fit.need.memory.peak, a),
                            hours >= 1 ? arena_printf(a, " and %.2g hours", hours) : "",
                            expect_text(r, fit.layers));
    }
    if (fit.layers)
        return arena_printf(r->arena, "%d layer%s of the narrowest widths are too much too: use ",
                            fit.layers, fit.layers == 1 ? "" : "s");
    return fit_shrinks(r) ? "no `shrink` alone is enough: use " : "use ";
}
/* That, and what else makes a run smaller. */
static const char *smaller_text(const Run *r, int64_t room, const char *wider) {
    const Fit fit = fit_shrink(r, room, most_hours(r));
    const bool ranks = fit.layers && !fit.shrink; /* that is all that is left */
    return arena_printf(r->arena, "%s%s%sa shorter sequence%s smaller batch%s", shrink_text(r, fit),
                        wider, fit.layers ? "" : "fewer layers, ", ranks ? ", a" : " or a",
                        ranks ? " or fewer ranks" : "");
}
/* The walk ends where enough is known. */
static const char *about(const Run *r) { return r->need.memory.more ? "more than" : "about"; }
static bool refuse_unasked(Run *r, double hours, int64_t room) {
    const Fit fit = fit_shrink(r, room, most_hours(r));
    diag_error(r->d, "E0707", r->plan->model_loc,
               arena_printf(r->arena,
                            "%sask for the full widths by --full or `shrink: 1`; shapes, params, "
                            "comms and draw compute nothing",
                            fit.shrink ? arena_printf(r->arena, "%sor ", shrink_text(r, fit)) : ""),
               "executing this plan would take %s %.2g hours; for more than %d its full widths "
               "must be asked for",
               about(r), hours, RUN_UNASKED_HOURS);
    return false;
}
/* A slip of a number that would take years is told at once. */
static bool ends(Run *r, int64_t room) {
    const Plan *p = r->plan;
    double hours = dry_hours(&r->need);
    if (hours <= most_hours(r)) return true;
    if (hours <= RUN_MAX_HOURS) return refuse_unasked(r, hours, room);
    bool steps = run_iterations(r) > 1;
    double least = fmax(1, floor((double)run_iterations(r) * RUN_MAX_HOURS / hours));
    const char *rest = "shapes, params, comms and draw compute nothing", *hint;
    if (steps) hint = arena_printf(r->arena, "use `optimizer.steps` of at most %.0f", least);
    else if (r->model->dims.mlp)
        hint = arena_printf(r->arena, "use smaller sizes or fewer rows; %s", rest);
    else hint = arena_printf(r->arena, "%s; %s", smaller_text(r, room, ""), rest);
    diag_error(r->d, "E0707", steps ? p->optimizer.steps_loc : fit_cause(r, true), hint,
               "executing this plan would take %s %.3g hours; the limit is %d", about(r), hours,
               RUN_MAX_HOURS);
    return false;
}
/* What was found, in parts that add up. */
static const char *need_text(const MemoryNeed *need, Arena *a) {
    const char *peak = bytes_text(need->peak, a);
    int64_t rest = need->peak - need->beside - need->unsharded;
    if (need->more) return arena_printf(a, "more than %s of memory", peak);
    if (!need->beside && !need->unsharded)
        return arena_printf(a, "about %s of memory, while the ranks run and are checked", peak);
    const char *ranks = arena_printf(a, "%s for the ranks and their check", bytes_text(rest, a)),
               *beside = need->beside ? arena_printf(a, ", %s for the other processes here",
                                                     bytes_text(need->beside, a))
                                      : "";
    if (!need->unsharded) return arena_printf(a, "about %s of memory (%s%s)", peak, ranks, beside);
    return arena_printf(a,
                        "about %s of memory (%s for the unsharded run, %s that the ranks leave "
                        "for the comparison%s)",
                        peak, bytes_text(need->unsharded, a), bytes_text(rest, a), beside);
}
/* What threads hold beside the values is theirs: with fewer of them the same plan may fit. NULL: it
 * does not. `room`: also with the stacks of the others. */
static const char *threads_text(const Run *r, const MemoryRoom *room) {
    RunNeed need;
    const int n = fit_threads(r, room->bytes, room->stacks, &need);
    return n ? arena_printf(r->arena, "use fewer threads (--threads %d needs about %s)", n,
                            bytes_text(need.memory.peak, r->arena))
             : NULL;
}
/* `whole`: the room before anything of it goes to the stacks of threads. */
static bool refuse_memory(Run *r, const MemoryNeed *need, const MemoryRoom *room,
                          const MemoryRoom *whole) {
    const Plan *p = r->plan;
    bool mlp = r->model->dims.mlp, steps = run_iterations(r) > 1 && need->records > need->peak / 2;
    const char *wider = plan_executes_in(p) != DT_F64 ? ""
                        : p->execute < 0              ? "`dtype: f32`, "
                                                      : "`execute: f32`, ";
    const char *rest = "shapes, params, comms and draw need none of it";
    const char *hint = threads_text(r, whole);
    if (hint) hint = arena_printf(r->arena, "%s, or a smaller plan; %s", hint, rest);
    else if (steps) hint = "use fewer `optimizer.steps`: the checks of every step are kept";
    else if (mlp) hint = arena_printf(r->arena, "use smaller sizes or fewer rows; %s", rest);
    else hint = arena_printf(r->arena, "%s; %s", smaller_text(r, room->bytes, wider), rest);
    diag_error(r->d, "E0701", steps ? p->optimizer.steps_loc : fit_cause(r, false), hint,
               "executing this plan needs %s, there are %s%s: %s", need_text(need, r->arena),
               bytes_text(room->bytes, r->arena),
               need->peak <= room->bytes ? ", a sixteenth of which is left alone" : "", room->what);
    return false;
}
/* A device with memory of its own holds ranks' values; all else is the host's. */
typedef struct {
    int64_t need, room;
} OnDevice;
static bool refuse_device(Run *r, const char *whose, const OnDevice *x) {
    diag_error(r->d, "E0608", r->plan->model_loc,
               r->model->dims.mlp
                   ? "use smaller sizes or fewer rows, f32 instead of f64, or leave --cuda out"
                   : "use a larger `shrink`, fewer layers, a shorter sequence, f32 instead of f64, "
                     "or leave --cuda out",
               "the values of %s take about %s on the GPU; %s has %s free", whose,
               bytes_text(x->need, r->arena), r->o->device->name, bytes_text(x->room, r->arena));
    return false;
}
static bool fits_on_device(Run *r) {
    const OnDevice x = {r->need.memory.device, r->o->device ? r->o->device->room : 0};
    if (r->o->ranks || !x.room || dry_within(x.need, x.room)) return true;
    return refuse_device(r,
                         arena_printf(r->arena, "%lld rank%s", (long long)r->mesh->nranks,
                                      r->mesh->nranks == 1 ? "" : "s"),
                         &x);
}
/* What each rank needs and has, to rank 0. */
static void gather(Engine *e, OnDevice *all) {
    EngineItem to = {0, sizeof *all, &all[e->rank]};
    EngineItem *from = base_malloc(base_mul((size_t)e->ranks, sizeof *from));
    for (int64_t k = 1; k < e->ranks; k++) from[k - 1] = (EngineItem){k, sizeof *all, &all[k]};
    if (e->rank) e->tell(e, &to, 1, NULL, 0);
    else e->tell(e, NULL, 0, from, (int)e->ranks - 1);
    free(from);
}
bool limits_fit_gpus(Run *r) {
    Engine *e = ranks_engine(r->o->ranks);
    OnDevice *all = ARENA_ARRAY(r->arena, OnDevice, e->ranks);
    all[e->rank] = (OnDevice){dry_on_gpu(r), r->o->device->room};
    r->rep->predicted_device = all[e->rank].need;
    gather(e, all);
    if (e->rank) return true;
    const OnDevice *most = NULL; /* of those that do not fit */
    for (int64_t k = 0; k < e->ranks; k++)
        if (!dry_within(all[k].need, all[k].room) && (!most || all[k].need > most->need))
            most = &all[k];
    if (!most) return true;
    return refuse_device(r, arena_printf(r->arena, "rank %lld", (long long)(most - all)), most);
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
    if (in != r->plan->dtype)
        diag_note(r->d, "N0016", r->plan->execute_loc, NULL,
                  "numbers were computed in %s: what %s rounds away was not looked at; shapes, "
                  "bytes, memory and times are those of %s",
                  dtype_text(in), dtype_text(r->plan->dtype), dtype_text(r->plan->dtype));
    dry_estimate(r);
    if (r->o->ranks && !ranks_first(r->o->ranks)) return true;
    MemoryRoom whole = memory_room(r->arena);
    if (r->o->memory_limit) whole = (MemoryRoom){r->o->memory_limit, "the limit that was set", 0};
    const MemoryRoom room =
        r->o->memory_limit ? whole : memory_room_of(r->arena, pool_would(r->o->threads));
    bool in_time = ends(r, room.bytes);
    r->rep->predicted_bytes = r->need.memory.peak;
    r->rep->predicted_device = r->need.memory.device;
    bool on_device = fits_on_device(r);
    if (dry_within(r->need.memory.peak, room.bytes)) return in_time && on_device;
    return refuse_memory(r, &r->need.memory, &room, &whole);
}
