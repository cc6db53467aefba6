/* A plan as Megatron-LM's arguments. They name degrees, and Megatron's own code does the rest: what
 * lines of a plan do otherwise than that code is refused, by comparing the programs. */
#include "export/export.h"
#include "plan/sharding.h"
#include <string.h>

/* How attention's keys and values travel, as --cp-comm-type has it. */
static const char *const comm[][2] = {
    {"all_gather", "all_gather"}, {"ring", "p2p"}, {"ulysses", "a2a"}};

/* What the arguments can say in several ways; first, last: whether the embedding and the loss count
 * for layers where arguments.py splits them over stages. */
typedef struct {
    bool sequence, first, last;
    int64_t etp; /* how many ranks cut an expert inside */
} Choice;
static void add_stages(Str *s, const Roles *r, const ExportStages *st, const Choice *c) {
    if (r->pp == 1) return;
    str_addf(s, " \\\n    --pipeline-model-parallel-size %lld \\\n    --num-layers %lld",
             (long long)r->pp, (long long)st->layers);
    if (st->chunks > 1)
        str_addf(s, " \\\n    --num-virtual-stages-per-pipeline-rank %lld", (long long)st->chunks);
    if (c->first) str_add(s, " \\\n    --account-for-embedding-in-pipeline-split");
    if (c->last) str_add(s, " \\\n    --account-for-loss-in-pipeline-split");
    str_addf(s, " \\\n    --micro-batch-size %lld \\\n    --global-batch-size %lld",
             (long long)st->size, (long long)(st->local * r->replicate * r->shard));
}
static void add_experts(Str *s, const Export *e, const Roles *r, const Choice *c) {
    const char *dispatch = e->p->moe.dispatch;
    if (!e->as->model->dims.E) return;
    str_addf(s, " \\\n    --num-experts %lld \\\n    --expert-model-parallel-size %lld",
             (long long)e->as->model->dims.E, (long long)r->ep);
    if (c->etp != r->tp)
        str_addf(s, " \\\n    --expert-tensor-parallel-size %lld", (long long)c->etp);
    str_addf(s, " \\\n    --moe-token-dispatcher-type %s",
             dispatch && !strcmp(dispatch, "all_gather") ? "allgather" : "alltoall");
}
static const char *text_of(const Export *e, const Roles *r, const ExportStages *st,
                           const Choice *c) {
    const Plan *p = e->p;
    Str s = export_head(e, "Megatron-LM's arguments", "megatron",
                        st->parts > 1 ? "Model and optimizer stay in the plan: their arguments are "
                                        "yours to add."
                                      : "Model, data and optimizer stay in the plan: their "
                                        "arguments are yours to add.");
    int64_t ranks = r->replicate * r->shard * r->cp * r->tp * r->pp, node = ranks % 8 == 0 ? 8
                                                                            : ranks < 8    ? ranks
                                                                                           : 1;
    str_addf(&s, "torchrun --nnodes %lld --nproc-per-node %lld pretrain_gpt.py",
             (long long)(ranks / node), (long long)node);
    str_addf(&s, " \\\n    --tensor-model-parallel-size %lld", (long long)r->tp);
    if (c->sequence) str_add(&s, " \\\n    --sequence-parallel");
    add_stages(&s, r, st, c);
    add_experts(&s, e, r, c);
    if (r->cp > 1) str_addf(&s, " \\\n    --context-parallel-size %lld", (long long)r->cp);
    for (size_t i = 0; r->cp > 1 && i < sizeof comm / sizeof *comm; i++)
        if (p->context_parallel.mode && strcmp(comm[i][0], p->context_parallel.mode) == 0)
            str_addf(&s, " \\\n    --cp-comm-type %s", comm[i][1]);
    const DataMode *mode = plan_data_mode(p);
    if (mode->cuts_state && !mode->cuts_params) str_add(&s, " \\\n    --use-distributed-optimizer");
    if (p->recompute)
        str_add(&s, " \\\n    --recompute-granularity full \\\n    --recompute-method uniform \\\n"
                    "    --recompute-num-layers 1");
    str_add(&s, "\n");
    return s.s;
}
static bool can_say_stages(const Export *e, const Roles *r, ExportStages *st) {
    const Plan *p = e->p;
    if (!export_stages(e, r, "megatron", st)) return false;
    const char *has = st->chunks > 1 ? "interleaved" : "1f1b";
    if (r->pp == 1 || strcmp(p->pipeline.schedule, has) == 0) return true;
    export_refuse(e, p->pipeline.schedule_loc, arena_printf(e->a, "schedule: %s", has),
                  "Megatron runs %lld stages a rank as %s, not %s", (long long)st->chunks, has,
                  p->pipeline.schedule);
    return false;
}
const char *export_megatron(const Export *e) {
    Roles r;
    ExportStages st;
    int before = diags_errors(e->d), n = 0;
    const char *text[2 * 2 * 4];
    export_refuse_keys(e, "megatron", true, true);
    if (diags_errors(e->d) > before || !export_roles(e, &r) || !can_say_stages(e, &r, &st))
        return NULL;
    for (int sequence = 0; sequence < (r.tp > 1 ? 2 : 1); sequence++)
        for (int whole = 0; whole < (r.tp > 1 && !r.etp ? 2 : 1); whole++)
            for (int i = 0; i < (r.pp > 1 ? 4 : 1); i++)
                text[n++] = text_of(e, &r, &st,
                                    &(Choice){sequence, i & 1, i & 2,
                                              r.etp   ? r.etp
                                              : whole ? 1
                                                      : r.tp});
    return export_first_same(
        e, "megatron", text, n,
        "recipe: megatron, megatron-sp or megatron-moe; a sequence that cp "
        "cuts in zigzag; data_parallel: {mode: ddp} or {mode: zero1, form: megatron}");
}
