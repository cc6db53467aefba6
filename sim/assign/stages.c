/* The stages of a pipeline: which layers each has, on which ranks of the axis it is, and in which
 * order micro-batches pass. What comes before the first layer belongs to the first stage, what
 * comes behind the last one to the last. A parameter or input is at the stage that reads it first.
 * Refuses to insert a send: a value that is wanted elsewhere moves like any other. */
#include "assign/stages.h"
#include "plan/sharding.h"
#include "schedule/play.h"
#include <string.h>

typedef struct {
    Assign *a;
    Stages *s;
    int first, layers; /* of the model that is built */
} Making;

/* ---- layers ---- */
/* The layer that a node is in; of an mlp the linear layer, counted by weights; -1: none. */
static int *layers_of_nodes(const Making *x, int *layers) {
    const Graph *g = &x->a->model->g;
    int *of = ARENA_ARRAY(x->a->arena, int, g->nn + 1), seen = -1, module = -1;
    int nn = g->nn_model ? g->nn_model : g->nn;
    bool mlp = x->a->model->dims.mlp;
    *layers = 0;
    for (int n = 0; n < nn; n++) {
        const GNode *q = &g->node[n];
        bool loss = graph_node_of_loss(q), weight = false;
        for (int i = 0; i < q->nin; i++) weight |= g->t[q->in[i]].kind == KIND_PARAM;
        if (mlp && weight && q->module != module) seen++, module = q->module;
        of[n] = !mlp ? q->layer : loss ? -1 : seen;
        if (of[n] >= *layers) *layers = of[n] + 1;
    }
    return of;
}
/* What says how many stages there are. */
static Loc count_loc(const Plan *p) {
    if (p->pipeline.file) return p->pipeline.homes_loc;
    return p->pipeline.chunks ? p->pipeline.chunks_loc : p->pipeline.schedule_loc;
}
/* As even as they go, the first stages larger; or as the plan says. Per layer its stage; NULL and
 * E0310. */
static int *stages_of_layers(const Making *x) {
    const Plan *p = x->a->plan;
    int n = x->s->n, L = x->layers, *of = ARENA_ARRAY(x->a->arena, int, L + 1);
    Loc loc = p->pipeline.stages_loc.file ? p->pipeline.stages_loc : count_loc(p);
    if (n > L) {
        diag_error(x->a->d, "E0310", loc,
                   "fewer ranks or chunks, or more layers (`model: {layers: all}`)",
                   "%d stages for %d layer%s", n, L, L == 1 ? "" : "s");
        return NULL;
    }
    if (!p->pipeline.stages_loc.file) { /* `[]` has no stage: told below */
        for (int i = 0, at = 0; i < n; i++)
            for (int k = 0; k < L / n + (i < L % n); k++) of[at++] = i;
        return of;
    }
    if (p->pipeline.n_stages != n) {
        diag_error(x->a->d, "E0310", loc, "one list of layers for each stage",
                   "%d list%s of layers for %d stage%s", p->pipeline.n_stages,
                   p->pipeline.n_stages == 1 ? "" : "s", n, n == 1 ? "" : "s");
        return NULL;
    }
    int next = 0;
    for (int i = 0; i < n; i++) {
        const PlanStage *s = &p->pipeline.stages[i];
        for (int k = 0; k < s->n; k++, next++) {
            if (s->layer[k] == x->first + next && next < L) of[next] = i;
            else {
                diag_error(x->a->d, "E0310", s->loc, "all layers in their order, none twice",
                           "stage %d: layer %d stands where layer %d is due", i, s->layer[k],
                           x->first + next);
                return NULL;
            }
        }
        if (s->n) continue;
        diag_error(x->a->d, "E0310", s->loc, "at least one layer", "stage %d has no layer", i);
        return NULL;
    }
    if (next == L) return of;
    diag_error(x->a->d, "E0310", loc, "all layers in their order, none twice",
               "layers from %d on are in no stage", x->first + next);
    return NULL;
}
static bool place_nodes(const Making *x, const int *layer) {
    const Graph *g = &x->a->model->g;
    int nn = g->nn_model ? g->nn_model : g->nn, *of = ARENA_ARRAY(x->a->arena, int, nn + 1);
    const int *stage = stages_of_layers(x);
    bool begun = false;
    for (int n = 0; stage && n < nn; n++) {
        int at = layer[n] - (layer[n] < 0 ? 0 : x->first);
        begun |= layer[n] >= 0;
        of[n] = layer[n] >= 0 ? stage[at] : begun ? x->s->n - 1 : 0;
    }
    x->s->of_node = of;
    return stage != NULL;
}

/* What each stage computes again in its backward. */
static bool find_again(const Making *x) {
    const Plan *p = x->a->plan;
    int n = x->s->n, said = p->pipeline.n_again;
    bool each = p->pipeline.again_each, own = p->pipeline.again_loc.file;
    Recompute *again = ARENA_ARRAY(x->a->arena, Recompute, n);
    x->s->again = again;
    if (each && said != n) {
        diag_error(x->a->d, "E0310", p->pipeline.again_loc,
                   "one word for all stages, or a list with one for each",
                   "`recompute` has %d word%s for %d stage%s", said, said == 1 ? "" : "s", n,
                   n == 1 ? "" : "s");
        return false;
    }
    for (int i = 0; i < n; i++) again[i] = own ? p->pipeline.again[each ? i : 0] : p->recompute;
    return true;
}

/* ---- the schedule ---- */
/* What a file says of gathers and of reductions is held against its order. That parameters are
 * gathered once a step follows from it, if the plan does not say `reshard`; where the plan does
 * otherwise, or the file gathers a stage anew, that is told. False and E0310 where it contradicts
 * its order, or the plan. */
static bool holds_asides(const Making *x) {
    const Plan *p = x->a->plan;
    const Schedule *s = x->s->schedule;
    const GradSync *sync = plan_grad_sync(p);
    bool cut = p->data_parallel.loc.file && plan_data_mode(p)->cuts_params,
         ok = schedule_check_asides(s, x->a->d, cut);
    const Aside *reduced = schedule_aside(s, ASIDE_REDUCE, false),
                *gathered = schedule_aside(s, ASIDE_UNSHARD, false),
                *twice = schedule_aside(s, ASIDE_UNSHARD, true);
    bool said = p->data_parallel.reshard || p->data_parallel.reshard_over;
    if (gathered && cut && !said) x->a->reshard = plan_reshard_of("false");
    const Reshard *again = x->a->reshard;
    bool kept = again->once || (!again->blocks && !again->rest);
    if (reduced && sync->scatters && p->microbatches > 1) {
        diag_error(x->a->d, "E0310", reduced->loc,
                   "leave `grad_sync` out of the plan, or REDUCE_GRAD out of the file",
                   "here the file reduces the gradients of stage %d once a step, and with "
                   "`grad_sync: %s` the plan does so in each micro-batch",
                   reduced->stage, sync->name);
        ok = false;
    }
    if (gathered && !cut)
        diag_note(x->a->d, "N0018", gathered->loc,
                  "`data_parallel: fsdp` over another axis, or leave UNSHARD and RESHARD out",
                  "UNSHARD and RESHARD change nothing: no `data_parallel` cuts parameters");
    else if (gathered && !kept)
        diag_note(x->a->d, "N0018", gathered->loc,
                  twice ? "leave UNSHARD and RESHARD out"
                        : "leave `reshard` out: then parameters are gathered once a step, as the "
                          "file says",
                  "UNSHARD and RESHARD change nothing: with `reshard: %s` parameters are gathered "
                  "anew in each micro-batch",
                  again->name);
    else if (twice && cut)
        diag_note(x->a->d, "N0018", twice->loc, "leave it out, and the RESHARD before it",
                  "stage %d is gathered anew here in the file, and %sit stays gathered from its "
                  "first use on",
                  twice->stage,
                  said ? arena_printf(x->a->arena, "with `reshard: %s` ", again->name) : "");
    return ok;
}
/* A file that names a micro-batch which the plan has not: the first place where it does. */
static bool tell_too_many(const Making *x, const Schedule *s) {
    const Plan *p = x->a->plan;
    for (int r = 0; r < s->ranks; r++)
        for (int i = 0; i < s->rank[r].n; i++) {
            const Action *a = &s->rank[r].a[i];
            if (a->part < p->microbatches) continue;
            diag_error(x->a->d, "E0310", a->loc,
                       arena_printf(x->a->arena, "a number below %lld, or `microbatches: %d`",
                                    (long long)p->microbatches, s->parts),
                       "%d%s%d: the plan has %lld micro-batch%s, counted from 0", a->stage,
                       action_word(a->kind), a->part, (long long)p->microbatches,
                       p->microbatches == 1 ? "" : "es");
            return false;
        }
    return false;
}
static bool from_file(const Making *x) {
    const Plan *p = x->a->plan;
    Stages *s = x->s;
    const char *path = p->pipeline.file[0] == '/'
                           ? p->pipeline.file
                           : arena_printf(x->a->arena, "%s/%s", p->dir, p->pipeline.file);
    s->schedule = schedule_read(x->a->arena, x->a->d, p->pipeline.file_loc, path, p->pipeline.homes,
                                p->pipeline.n_homes);
    if (!s->schedule) return false;
    int64_t ranks = x->a->mesh->axis[s->axis].size;
    if (s->schedule->ranks == ranks && s->schedule->parts == p->microbatches) {
        bool whole = schedule_check(s->schedule, x->a->d, p->pipeline.file_loc);
        return holds_asides(x) && whole; /* both are told */
    }
    if (s->schedule->ranks == ranks && s->schedule->parts > p->microbatches)
        return tell_too_many(x, s->schedule);
    /* told first: what else is missing is counted for ranks and micro-batches that are not there */
    int rows = s->schedule->ranks, parts = s->schedule->parts;
    diag_error(x->a->d, "E0310", p->pipeline.file_loc, "change the mesh or `microbatches`",
               "the file has %d rank%s and %d micro-batch%s, the plan %lld and %lld", rows,
               rows == 1 ? "" : "s", parts, parts == 1 ? "" : "es", (long long)ranks,
               (long long)p->microbatches);
    return false;
}
/* What the plan asks of a schedule by name; false if that has no such. `of`: of its plan, mesh,
 * arena and diagnostics only. */
static bool ask_by_name(const Assign *of, int axis, ScheduleAsk *ask) {
    const Plan *p = of->plan;
    const ScheduleKind *k = schedule_kind(p->pipeline.schedule);
    int64_t ranks = of->mesh->axis[axis].size, chunks = p->pipeline.chunks;
    if (!chunks && p->pipeline.n_stages && !(p->pipeline.n_stages % ranks))
        chunks = p->pipeline.n_stages / ranks;
    if (!chunks) chunks = k->most_chunks ? k->least_chunks : 2;
    const char *fix = NULL, *why = NULL;
    Loc loc = p->pipeline.schedule_loc;
    if (chunks > 4096 || p->microbatches > 1 << 20) {
        diag_error(of->d, "E0310", loc, NULL,
                   "a schedule of %lld stages per rank and %lld "
                   "micro-batches is too large",
                   (long long)chunks, (long long)p->microbatches);
        return false;
    }
    *ask = (ScheduleAsk){k->name, (int)ranks, (int)chunks, (int)p->microbatches};
    why = schedule_refused(ask, of->arena, &fix);
    if (why) diag_error(of->d, "E0310", loc, fix, "%s: %s", k->name, why);
    if (!why && k->torch_full && ask->parts < ask->ranks)
        diag_note(of->d, "N0021", loc,
                  arena_printf(of->arena,
                               "at least %d micro-batches, or `schedule: gpipe`, which "
                               "PyTorch takes with any number",
                               ask->ranks),
                  "PyTorch refuses %s of %d micro-batch%s on %d ranks (ValueError: it wants one "
                  "for each stage); here each rank has min(p-1-r, m) forwards first, as the rule "
                  "has it",
                  k->name, ask->parts, ask->parts == 1 ? "" : "es", ask->ranks);
    return !why;
}
static bool by_name(const Making *x) {
    ScheduleAsk ask;
    bool ok = ask_by_name(x->a, x->s->axis, &ask);
    if (ok) x->s->schedule = schedule_make(&ask, x->a->arena);
    return ok;
}
void assign_schedule(Arena *arena, Diags *d, const Plan *p, const Mesh *mesh) {
    Assign of = {.arena = arena, .d = d, .plan = p, .mesh = mesh};
    int axis = p->pipeline.schedule ? mesh_axis(mesh, p->pipeline.axis) : -1;
    ScheduleAsk ask;
    if (axis >= 0 && mesh->axis[axis].size <= UINT8_MAX) ask_by_name(&of, axis, &ask);
}
/* Does it come to an end? */
static bool plays(const Making *x) {
    const Plan *p = x->a->plan;
    Schedule *s = x->s->schedule;
    bool messages = false;
    if (p->pass == PASS_FORWARD) schedule_keep_forward(s);
    for (int r = 0; r < s->ranks; r++)
        for (int i = 0; i < s->rank[r].n; i++) messages |= !action_computes(s->rank[r].a[i].kind);
    if (!messages) schedule_add_p2p(s);
    Arena *tmp = arena_new();
    PlayTimes t = play_even(s, 1, 1, 1, tmp);
    t.buffers = p->pipeline.p2p_buffers;
    Play *play = play_schedule(s, &t, tmp);
    play_report(play, x->a->d, p->pipeline.file ? p->pipeline.file_loc : p->pipeline.schedule_loc);
    bool ok = !play->n_blocked;
    if (!ok) { /* once more, to be kept */
        t = play_even(s, 1, 1, 1, x->a->arena);
        t.buffers = p->pipeline.p2p_buffers;
        x->a->stuck = play_schedule(s, &t, x->a->arena);
    }
    arena_free(tmp);
    return ok;
}

/* ---- places ---- */
static bool cuts(const Assign *a, int axis, int t) {
    return layout_where(&a->rest[t], axis) >= 0 || layout_where(&a->compute[t], axis) >= 0;
}
/* The other coordinate that has a parameter of its own: that of the stage's second copy where
 * micro-batches go both ways, or under `tied: pair` that of the last stage that reads it; -1: there
 * is none. */
static int64_t second_home(const Assign *a, int t) {
    const Stages *s = a->stages;
    const Graph *g = &a->model->g;
    int first = s->of_source[t], last = first, nn = g->nn_model ? g->nn_model : g->nn;
    if (s->ways == 2) return s->home[s->n + first];
    for (int n = 0; n < nn; n++)
        for (int i = 0; i < g->node[n].nin; i++)
            if (g->node[n].in[i] == t) last = s->of_node[n];
    bool pair = a->plan->pipeline.tied && !strcmp(a->plan->pipeline.tied, "pair");
    return pair && s->home[last] != s->home[first] ? s->home[last] : -1;
}
/* At one coordinate, or with copies at two; of an axis of two ranks those are all. */
static void place(const Assign *a, Layout *l, int64_t at, int64_t other) {
    int axis = a->stages->axis;
    if (other < 0) layout_place(l, axis, at);
    else if (a->mesh->axis[axis].size == 2) layout_set_type(l, axis, TY_I);
    else layout_pair(l, axis, at, other, TY_I);
}
void stages_place(Assign *a) {
    Stages *s = a->stages;
    const Graph *g = &a->model->g;
    if (!s) return;
    int nn = g->nn_model ? g->nn_model : g->nn, *stage = ARENA_ARRAY(a->arena, int, g->nt + 1);
    for (int t = 0; t < g->nt; t++) stage[t] = -1;
    for (int n = nn - 1; n >= 0; n--) /* the first that reads it comes last */
        for (int i = 0; i < g->node[n].nin; i++) stage[g->node[n].in[i]] = s->of_node[n];
    for (int t = 0; t < g->nt; t++) stage[t] = stage[t] < 0 ? 0 : stage[t];
    s->of_source = stage;
    for (int t = 0; t < g->nt; t++) {
        const GTensor *x = &g->t[t];
        if (x->kind == KIND_ACTIVATION || x->state_of) continue;
        if (cuts(a, s->axis, t)) {
            diag_error(a->d, "E0310", a->plan->pipeline.loc, "leave that axis to the stages",
                       "%s is cut by %s, whose ranks are stages of the pipeline", graph_name(x),
                       a->mesh->axis[s->axis].name);
            return;
        }
        int64_t at = s->home[stage[t]], other = x->kind == KIND_PARAM ? second_home(a, t) : -1;
        place(a, &a->rest[t], at, other);
        place(a, &a->compute[t], at, other);
    }
}
bool stages_find(Assign *a) {
    const Plan *p = a->plan;
    if (!p->pipeline.loc.file) return true;
    Stages *s = ARENA_NEW(a->arena, Stages);
    Making x = {.a = a, .s = s};
    s->axis = mesh_axis(a->mesh, p->pipeline.axis);
    if (s->axis < 0 || a->mesh->axis[s->axis].size > UINT8_MAX) {
        diag_error(a->d, "E0310",
                   p->pipeline.axis_loc.file ? p->pipeline.axis_loc : p->pipeline.loc,
                   "an axis of at most 255 ranks that is not cut in parts",
                   "the ranks of '%s' cannot be stages", p->pipeline.axis);
        return false;
    }
    if (!(p->pipeline.file ? from_file(&x) : by_name(&x))) return false;
    s->n = s->schedule->stages;
    s->ways = s->schedule->both_ways ? 2 : 1;
    int *home = ARENA_ARRAY(a->arena, int, s->ways * s->n + 1);
    for (int i = 0; i < s->ways * s->n; i++)
        home[i] = schedule_rank_of(s->schedule, i % s->n, i < s->n ? 0 : s->schedule->parts - 1);
    s->home = home;
    const int *layer = layers_of_nodes(&x, &x.layers);
    x.first = a->model->dims.mlp ? 0 : a->model->dims.first_layer;
    if (!a->model->dims.mlp) x.layers = a->model->dims.last_layer - x.first;
    if (!place_nodes(&x, layer) || !find_again(&x) || !plays(&x)) return false;
    a->stages = s;
    return true;
}
