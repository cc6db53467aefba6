/* A plan as torchtitan's TOML. It names degrees, and torchtitan's own code for the model does the
 * rest: what lines of a plan do otherwise than that code is refused, by comparing the programs. */
#include "export/export.h"
#include "import/titan_model.h"
#include "plan/sharding.h"
#include <string.h>

/* What the file can say in several ways, of which one may be the plan's. */
typedef struct {
    const char *model, *flavor; /* flavor NULL: yours to add */
    const char *reshard;
    bool loss;       /* loss_parallel */
    int64_t etp;     /* experts cut inside, or whole */
    int first, last; /* layers that the ends of a pipeline have less */
} Choice;

static const char *text_of(const Export *e, const Roles *r, const ExportStages *st,
                           const Choice *c) {
    const Plan *p = e->p;
    Str s = export_head(e, "torchtitan's degrees", "torchtitan",
                        st->parts > 1 ? "Model and optimizer stay in the plan: their sections are "
                                        "yours to add."
                                      : "Model, data and optimizer stay in the plan: their "
                                        "sections are yours to add.");
    if (c->flavor) str_addf(&s, "[model]\nname = \"%s\"\nflavor = \"%s\"\n\n", c->model, c->flavor);
    else if (strcmp(c->model, "llama3") != 0) str_addf(&s, "[model]\nname = \"%s\"\n\n", c->model);
    str_addf(&s,
             "[parallelism]\ndata_parallel_replicate_degree = %lld\n"
             "data_parallel_shard_degree = %lld\nfsdp_reshard_after_forward = \"%s\"\n"
             "context_parallel_degree = %lld\ntensor_parallel_degree = %lld\n"
             "disable_loss_parallel = %s\n",
             (long long)r->replicate, (long long)r->shard, c->reshard, (long long)r->cp,
             (long long)r->tp, c->loss ? "false" : "true");
    if (r->ep > 1)
        str_addf(&s, "expert_parallel_degree = %lld\nexpert_tensor_parallel_degree = %lld\n",
                 (long long)r->ep, (long long)c->etp);
    if (r->pp > 1) {
        const TitanSchedule *row = titan_schedule_of(p->pipeline.schedule);
        int64_t stages = r->pp * st->chunks, n = st->layers + c->first + c->last;
        str_addf(&s,
                 "pipeline_parallel_degree = %lld\npipeline_parallel_schedule = \"%s\"\n"
                 "pipeline_parallel_microbatch_size = %lld\n"
                 "pipeline_parallel_first_stage_less_layers = %d\n"
                 "pipeline_parallel_last_stage_less_layers = %d\n",
                 (long long)r->pp, row->name, (long long)st->size, c->first, c->last);
        if (st->chunks > 2)
            str_addf(&s, "pipeline_parallel_layers_per_stage = %lld\n",
                     (long long)((n + stages - 1) / stages));
        str_addf(&s, "\n[training]\nlocal_batch_size = %lld\n", (long long)st->local);
    }
    str_addf(&s, "\n[activation_checkpoint]\nmode = \"%s\"\n", p->recompute ? "full" : "none");
    return s.s;
}
/* Whose code it is: by the preset, else by what the model has. */
static void choose_model(const Export *e, Choice *c) {
    const ModelDims *m = &e->as->model->dims;
    const TitanFlavor *f = e->p->preset ? titan_preset(e->p->preset) : NULL;
    c->model = f            ? f->model
               : m->kv_rank ? "deepseek_v3"
               : m->turns   ? "llama4"
               : m->qk_norm ? "qwen3"
                            : "llama3";
    c->flavor = f ? f->flavor : NULL;
}
static bool can_say_stages(const Export *e, const Roles *r, ExportStages *st) {
    const Plan *p = e->p;
    if (!export_stages(e, r, "torchtitan", st)) return false;
    if (r->pp == 1) return true;
    if (!titan_schedule_of(p->pipeline.schedule))
        export_refuse(e, p->pipeline.schedule_loc,
                      "1f1b, gpipe, interleaved, looped-bfs, "
                      "interleaved-zb, zb-v, dualpipe-v",
                      "PyTorch has no schedule '%s'", p->pipeline.schedule);
    else if (e->as->model->dims.tied)
        export_refuse(e, p->pipeline.loc, "a model whose head has a table of its own",
                      "torchtitan ties no table of two stages");
    else return true;
    return false;
}
const char *export_torchtitan(const Export *e) {
    static const char *const reshard[] = {"default", "always", "never"};
    static const int less[][2] = {{1, 1}, {0, 0}, {1, 0}, {0, 1}};
    enum { MOST = 3 * 2 * 2 * 4 };
    Roles r;
    ExportStages st;
    int before = diags_errors(e->d), n = 0;
    const char *text[MOST];
    export_refuse_keys(e, "torchtitan", true, true);
    if (diags_errors(e->d) > before || !export_roles(e, &r) || !can_say_stages(e, &r, &st))
        return NULL;
    for (int k = 0; k < (plan_data_mode(e->p)->cuts_params ? 3 : 1); k++)
        for (int loss = 1; loss >= (r.tp > 1 ? 0 : 1); loss--)
            for (int whole = 0; whole < (r.ep > 1 && r.tp > 1 && !r.etp ? 2 : 1); whole++)
                for (int i = 0; i < (r.pp > 1 ? 4 : 1); i++) {
                    Choice c = {.reshard = reshard[k],
                                .loss = loss,
                                .etp = r.etp   ? r.etp
                                       : whole ? 1
                                               : r.tp,
                                .first = less[i][0],
                                .last = less[i][1]};
                    choose_model(e, &c);
                    text[n++] = text_of(e, &r, &st, &c);
                }
    return export_first_same(
        e, "torchtitan", text, n,
        "recipe: torchtitan-llama3; axes in the order pp, dp_replicate, dp_shard, cp, tp; "
        "context_parallel: {mode: all_gather, order: zigzag}; with cp fsdp over it too");
}
