/* A plan as Megatron-LM's arguments. They name degrees, and Megatron's own code does the rest: what
 * lines of a plan do otherwise than that code is refused, by comparing the programs. */
#include "export/export.h"
#include "plan/sharding.h"
#include <string.h>

/* How attention's keys and values travel, as --cp-comm-type has it. */
static const char *const comm[][2] = {
    {"all_gather", "all_gather"}, {"ring", "p2p"}, {"ulysses", "a2a"}};

static const char *text_of(const Export *e, const Roles *r, bool sequence) {
    const Plan *p = e->p;
    Str s = export_head(e, "Megatron-LM's arguments", "megatron",
                        "Model, data and optimizer stay in the plan: their arguments are yours to "
                        "add.");
    int64_t ranks = r->replicate * r->shard * r->cp * r->tp, node = ranks % 8 == 0 ? 8
                                                                    : ranks < 8    ? ranks
                                                                                   : 1;
    str_addf(&s, "torchrun --nnodes %lld --nproc-per-node %lld pretrain_gpt.py",
             (long long)(ranks / node), (long long)node);
    str_addf(&s, " \\\n    --tensor-model-parallel-size %lld", (long long)r->tp);
    if (sequence) str_add(&s, " \\\n    --sequence-parallel");
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
const char *export_megatron(const Export *e) {
    Roles r;
    int before = diags_errors(e->d);
    export_refuse_keys(e, "megatron", true, true);
    if (diags_errors(e->d) > before || !export_roles(e, &r)) return NULL;
    const char *text[] = {text_of(e, &r, false), text_of(e, &r, true)};
    return export_first_same(e, "megatron", text, r.tp > 1 ? 2 : 1,
                             "recipe: megatron, or megatron-sp; a sequence that cp cuts in zigzag; "
                             "data_parallel: {mode: ddp} or {mode: zero1}");
}
