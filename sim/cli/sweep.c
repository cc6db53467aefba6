/* Other settings of a plan. See sweep.h. Each is a run of all passes on the plan's text with more
 * `--set`, as if the command line said it, in an arena of its own: a sweep is of many plans, and a
 * picture keeps but their numbers. */
#include "cli/sweep.h"
#include "cli/progress.h"

typedef struct {
    PlanOthers o;
    const Loaded *l;
    const PlanSet *sets; /* of the command line */
    int n_sets;
    PipelineOptions run;
    Arena *arena; /* of what was asked for last; NULL: nothing was */
    Progress progress;
    ProgressLine *line; /* NULL: nobody looks, or nothing more is asked for */
} Others;

enum { MESH = 500000000 }; /* ns: what one is taken for until some were timed */
static void expect(void *of, int meshes) {
    Others *x = of;
    if (!meshes) {
        progress_line_end(x->line);
        x->line = NULL;
        return;
    }
    progress_total(&x->progress, (double)meshes * MESH);
    progress_phase(&x->progress, "other meshes");
}

/* times: of which the time is asked. */
static const Trace *with_sets(Others *x, const PlanSet *more, int n, bool times) {
    PlanSet sets[2 * CLI_MAX_SETS];
    PipelineReport report = {0};
    PipelineOptions run = x->run;
    if (n > CLI_MAX_SETS) return NULL;
    for (int i = 0; i < x->n_sets; i++) sets[i] = x->sets[i];
    for (int i = 0; i < n; i++) sets[x->n_sets + i] = more[i];
    if (x->arena) arena_free(x->arena);
    x->arena = arena_new();
    run.events = times;
    Diags *d = diags_new(x->arena);
    const Plan *own = x->l->report.plan;
    const Trace *t =
        pipeline_run(x->arena, d, (PlanText){own->file, x->l->text, x->l->n, sets, x->n_sets + n},
                     &run, &report);
    const bool legal = t && !report.exit && !diags_errors(d);
    return legal && (!report.idle || x->l->report.idle) ? t : NULL;
}
static const Trace *with_batch(void *of, int64_t batch) {
    Others *x = of;
    char value[24];
    snprintf(value, sizeof value, "%lld", (long long)batch);
    return with_sets(x, &(PlanSet){x->o.rows ? "data.rows" : "data.batch", value}, 1, false);
}
static const Trace *with_mesh(void *of, const int64_t *size) {
    Others *x = of;
    PlanSet sets[CLI_MAX_SETS];
    char key[CLI_MAX_SETS][80], value[CLI_MAX_SETS][24];
    const int n = x->o.n_axes;
    if (n > CLI_MAX_SETS) return NULL;
    for (int i = 0; i < n; i++) {
        if (snprintf(key[i], sizeof key[i], "mesh.%s", x->o.axis[i]) >= (int)sizeof key[i])
            return NULL;
        snprintf(value[i], sizeof value[i], "%lld", (long long)size[i]);
        sets[i] = (PlanSet){key[i], value[i]};
    }
    const Trace *t = with_sets(x, sets, n, true);
    progress_add(&x->progress, MESH);
    return t;
}
const PlanOthers *sweep_others(Cli *c, const PipelineOptions *o, const Loaded *l) {
    const Plan *p = l->report.plan;
    if (l->is_trace || !p || !l->trace || diags_errors(l->d)) return NULL;
    Others *x = ARENA_NEW(c->arena, Others);
    const char **axis = ARENA_ARRAY(c->arena, const char *, p->n_axes + 1);
    int64_t *size = ARENA_ARRAY(c->arena, int64_t, p->n_axes + 1);
    for (int i = 0; i < p->n_axes; i++) axis[i] = p->axes[i].name, size[i] = p->axes[i].size;
    *x = (Others){.l = l, .sets = c->o.sets, .n_sets = c->o.n_sets, .run = *o};
    x->run.dump = NULL;
    x->o = (PlanOthers){.of = x,
                        .with_batch = with_batch,
                        .with_mesh = with_mesh,
                        .expect = expect,
                        .batch = l->report.batch,
                        .rows = l->report.rows,
                        .n_axes = p->n_axes,
                        .axis = axis,
                        .size = size};
    return &x->o;
}
void sweep_watch(const PlanOthers *others, const Cli *c) {
    Others *x = others ? others->of : NULL;
    if (!x || !cli_wants_progress(c)) return;
    progress_phase(&x->progress, "other batches");
    x->line = progress_line_start(c->arena, &x->progress, fileno(c->err), c->plan_at, c->plan_of);
}
void sweep_end(const PlanOthers *others) {
    Others *x = others ? others->of : NULL;
    if (x) expect(x, 0);
    if (x && x->arena) arena_free(x->arena);
    if (x) x->arena = NULL;
}
