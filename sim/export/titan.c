/* A plan as torchtitan's TOML. It names degrees, and torchtitan's own code for Llama 3 does the
 * rest: what lines of a plan do otherwise than that code is refused, by comparing the programs. */
#include "export/export.h"
#include "plan/sharding.h"
#include <string.h>

/* Its flavors of Llama 3. */
static const char *const flavors[][2] = {
    {"llama3.1-8b", "8B"}, {"llama3.1-70b", "70B"}, {"llama3.1-405b", "405B"}};

static const char *text_of(const Export *e, const Roles *r, const char *reshard, bool loss) {
    const Plan *p = e->p;
    Str s = export_head(e, "torchtitan's degrees", "torchtitan",
                        "Model, data and optimizer stay in the plan: their sections are yours to "
                        "add.");
    for (size_t i = 0; i < sizeof flavors / sizeof *flavors; i++)
        if (p->preset && strcmp(flavors[i][0], p->preset) == 0)
            str_addf(&s, "[model]\nname = \"llama3\"\nflavor = \"%s\"\n\n", flavors[i][1]);
    str_addf(&s,
             "[parallelism]\ndata_parallel_replicate_degree = %lld\n"
             "data_parallel_shard_degree = %lld\nfsdp_reshard_after_forward = \"%s\"\n"
             "context_parallel_degree = %lld\ntensor_parallel_degree = %lld\n"
             "disable_loss_parallel = %s\n\n[activation_checkpoint]\nmode = \"%s\"\n",
             (long long)r->replicate, (long long)r->shard, reshard, (long long)r->cp,
             (long long)r->tp, loss ? "false" : "true", p->recompute ? "full" : "none");
    return s.s;
}
const char *export_torchtitan(const Export *e) {
    Roles r;
    int before = diags_errors(e->d), n = 0;
    const char *text[6];
    export_refuse_keys(e, "torchtitan", true, true);
    if (diags_errors(e->d) > before || !export_roles(e, &r)) return NULL;
    static const char *const reshard[] = {"default", "always", "never"};
    for (int k = 0; k < (plan_data_mode(e->p)->cuts_params ? 3 : 1); k++)
        for (int loss = 1; loss >= (r.tp > 1 ? 0 : 1); loss--)
            text[n++] = text_of(e, &r, reshard[k], loss);
    return export_first_same(
        e, "torchtitan", text, n,
        "recipe: torchtitan-llama3; axes in the order dp_replicate, dp_shard, cp, tp; "
        "context_parallel: {mode: all_gather, order: zigzag}; with cp fsdp over it too");
}
