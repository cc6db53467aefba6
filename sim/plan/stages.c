/* The key `pipeline`: which schedule, over which axis, which layers are a stage. What the numbers
 * mean for a model is asked where stages are assigned; here it is only whether they are numbers. */
#include "plan/read.h"
#include "schedule/schedule.h"
#include <limits.h>
#include <stddef.h>
#include <string.h>

#define P(field) offsetof(Plan, field)
#define END                                                                                        \
    { NULL, NULL, NULL, 0, NO_LOC, NULL }

static bool read_numbers(PlanReader *r, const char *key, Yaml *y, const int **out, int *out_n) {
    Yaml **item;
    int n;
    if (!read_items(r, key, y, &item, &n)) return false;
    int *list = ARENA_ARRAY(r->a, int, n);
    for (int i = 0; i < n; i++) {
        int64_t v;
        if (!read_whole(r, key, item[i], 0, &v)) return false;
        if (v > INT_MAX) {
            diag_error(r->d, "E0309", item[i]->loc, NULL, "'%s': %lld is too large; at most %d",
                       key, (long long)v, INT_MAX);
            return false;
        }
        list[i] = (int)v;
    }
    *out = list;
    *out_n = n;
    return true;
}
/* [[0, 1], [2]]: the layers of each stage. */
static void read_stages(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml **item;
    int n;
    if (!read_items(r, k->name, pair->value, &item, &n)) return;
    PlanStage *s = ARENA_ARRAY(r->a, PlanStage, n);
    for (int i = 0; i < n; i++) {
        s[i].loc = item[i]->loc;
        if (!read_numbers(r, k->name, item[i], &s[i].layer, &s[i].n)) return;
    }
    p->pipeline.stages = s;
    p->pipeline.n_stages = n;
}
static void read_homes(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml **item;
    int n;
    if (!read_numbers(r, k->name, pair->value, &p->pipeline.homes, &p->pipeline.n_homes)) return;
    read_items(r, k->name, pair->value, &item, &n);
    Loc *at = ARENA_ARRAY(r->a, Loc, n);
    for (int i = 0; i < n; i++) at[i] = item[i]->loc;
    r->home_at = at;
}
/* The names of the schedules, from their own table. */
static void read_schedule(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    int n;
    const ScheduleKind *kinds = schedule_kinds(&n);
    Word *words = ARENA_ARRAY(r->a, Word, n + 1);
    for (int i = 0; i < n; i++) words[i] = (Word){kinds[i].name, i};
    int i = read_word(r, k->name, pair->value, words);
    if (i >= 0) p->pipeline.schedule = kinds[i].name;
}

static void read_tied(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    static const Word words[] = {{"send", 0}, {"pair", 1}, {NULL, 0}};
    Plan *p = base;
    int i = read_word(r, k->name, pair->value, words);
    if (i >= 0) p->pipeline.tied = words[i].word;
}

/* One word for all stages, or a list with one for each. */
static void read_recompute(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    static const Word words[] = {{"none", RECOMPUTE_NONE},
                                 {"block", RECOMPUTE_BLOCK},
                                 {"stage", RECOMPUTE_STAGE},
                                 {NULL, 0}};
    Plan *p = base;
    Yaml **item;
    int n;
    if (!read_items(r, k->name, pair->value, &item, &n)) return;
    Recompute *again = ARENA_ARRAY(r->a, Recompute, n);
    for (int i = 0; i < n; i++) {
        int word = read_word(r, k->name, item[i], words);
        if (word < 0) return;
        again[i] = (Recompute)word;
    }
    p->pipeline.again = again;
    p->pipeline.n_again = n;
    p->pipeline.again_each = pair->value->kind == YAML_LIST;
}

enum { MOST_BUFFERS = 1 << 20 /* as many as a schedule may have micro-batches */ };
static void read_buffers(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    int64_t n;
    if (!read_whole(r, k->name, pair->value, 1, &n)) return;
    if (n <= MOST_BUFFERS) p->pipeline.p2p_buffers = (int)n;
    else
        diag_error(r->d, "E0309", pair->value->loc, "leave it out: it is 2, as a rank needs",
                   "'%s': %lld is too large; at most %d", k->name, (long long)n, MOST_BUFFERS);
}

static const Key pipeline_keys[] = {
    {"schedule", read_schedule, NULL, 0, P(pipeline.schedule_loc),
     "the order of forwards and backwards: gpipe, 1f1b, interleaved, looped-bfs, interleaved-zb, "
     "zb-h1, zb-v, dualpipe, dualpipe-v"},
    {"axis", read_axis, NULL, P(pipeline.axis), P(pipeline.axis_loc),
     "axis whose ranks have the stages; default pp"},
    {"microbatches", read_size, NULL, P(pipeline.microbatches), P(pipeline.microbatches_loc),
     "the batch goes through in so many parts; the same as in `data`"},
    {"chunks", read_size, NULL, P(pipeline.chunks), P(pipeline.chunks_loc),
     "stages on each rank; default: what the schedule needs"},
    {"stages", read_stages, NULL, 0, P(pipeline.stages_loc),
     "layers of each stage, [[0, 1], [2]]; default: as even as they go, the first ones larger"},
    {"p2p_buffers", read_buffers, NULL, 0, NO_LOC,
     "messages to one rank that it has not begun to receive, at most 1048576; default 2"},
    {"file", read_path, NULL, P(pipeline.file), P(pipeline.file_loc),
     "a schedule as rows of actions in PyTorch's format, one row for each rank; UNSHARD and "
     "RESHARD "
     "(of fsdp, hsdp) and REDUCE_GRAD are held against its order; without `reshard` parameters are "
     "then gathered once a step, gradients are reduced as `data_parallel` says"},
    {"tied", read_tied, NULL, 0, NO_LOC,
     "a parameter that two stages read (a tied table): send, it has one home and is sent once a "
     "step, or pair, each has a copy and their gradients are summed; default send"},
    {"recompute", read_recompute, NULL, 0, P(pipeline.again_loc),
     "what the backward pass computes again, for all stages or [none, block, ..] for each: none, "
     "block (what is in a block), stage (all that a stage makes of what enters it)"},
    {"stage_to_rank", read_homes, NULL, 0, P(pipeline.homes_loc),
     "of a file: the rank of each stage"},
    END,
};
const Sub plan_pipeline_sub = {pipeline_keys, "schedule"};

/* Each stage is on a rank that the axis has. */
static void check_homes(PlanReader *r) {
    const Plan *p = r->p;
    for (int i = 0; i < p->n_axes; i++) {
        const struct PlanAxis *axis = &p->axes[i];
        if (strcmp(axis->name, p->pipeline.axis) != 0) continue;
        for (int g = 0; r->home_at && g < p->pipeline.n_homes; g++)
            if (p->pipeline.homes[g] >= axis->size)
                diag_error(r->d, "E0310", r->home_at[g],
                           axis->size == 1 ? "0"
                                           : arena_printf(r->a, "a rank from 0 to %lld",
                                                          (long long)axis->size - 1),
                           "`stage_to_rank`: stage %d is on rank %d, and %s has %lld rank%s", g,
                           p->pipeline.homes[g], axis->name, (long long)axis->size,
                           axis->size == 1 ? "" : "s");
    }
}
void plan_check_pipeline(PlanReader *r) {
    Plan *p = r->p;
    Loc loc = p->pipeline.loc;
    if (!loc.file) return;
    if (!p->pipeline.schedule && !p->pipeline.file && !p->pipeline.schedule_loc.file)
        diag_error(r->d, "E0208", loc, "pipeline: {schedule: 1f1b, microbatches: 8}",
                   "`pipeline` needs `schedule`, or a `file` with one");
    if (p->pipeline.schedule && p->pipeline.file)
        diag_error(r->d, "E0307", p->pipeline.file_loc, "leave one of them out",
                   "a schedule by name and a file with one");
    if (p->pipeline.file && !p->pipeline.n_homes)
        diag_error(r->d, "E0208", p->pipeline.file_loc,
                   "give `stage_to_rank` the rank of each stage: with four of them [0, 1, 2, 3]",
                   "a file of actions does not say on which rank a stage is");
    if (p->pipeline.n_homes && !p->pipeline.file)
        diag_error(r->d, "E0215", p->pipeline.homes_loc, "leave `stage_to_rank` out",
                   "`stage_to_rank` is of a `file`; a schedule by name knows where its stages are");
    if (p->pipeline.chunks && p->pipeline.file)
        diag_error(r->d, "E0215", p->pipeline.chunks_loc, "leave `chunks` out",
                   "`chunks` is of a schedule by name; of a `file` it follows from "
                   "`stage_to_rank`");
    if (!p->pipeline.axis) p->pipeline.axis = PLAN_PIPELINE_AXIS;
    bool known = false;
    for (int i = 0; i < p->n_axes; i++) known |= !strcmp(p->axes[i].name, p->pipeline.axis);
    if (!known && r->axes_known)
        diag_error(r->d, "E0208", p->pipeline.axis_loc.file ? p->pipeline.axis_loc : loc,
                   "mesh: {pp: 4}", "`pipeline` needs an axis of the mesh: there is no axis '%s'",
                   p->pipeline.axis);
    if (r->axes_known && p->pipeline.file) check_homes(r);
    if (p->pipeline.again_loc.file && p->recompute_loc.file)
        diag_error(r->d, "E0307", p->pipeline.again_loc, "leave one of them out",
                   "`recompute` here for the stages, and for the whole plan");
    if (!p->pipeline.microbatches) return;
    if (p->microbatches > 1 && p->microbatches != p->pipeline.microbatches)
        diag_error(r->d, "E0307", p->pipeline.microbatches_loc, "leave one of them out",
                   "%lld micro-batches here, and %lld in `data`",
                   (long long)p->pipeline.microbatches, (long long)p->microbatches);
    p->microbatches = p->pipeline.microbatches;
}
