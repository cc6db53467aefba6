/* The tables of modes, forms and units of data parallelism, and what must hold between them. No
 * other file knows one by its name. */
#include "plan/sharding.h"
#include "plan/read.h"
#include <string.h>

static const DataMode modes[] = {
    {"ddp", .buckets = true},
    {"zero1", .cuts_state = true, .buckets = true, .unit = UNIT_MODEL},
    {"zero2", .cuts_state = true, .cuts_grads = true, .buckets = true, .unit = UNIT_BLOCK},
    {"fsdp", .cuts_params = true, .cuts_state = true, .cuts_grads = true},
    {"hsdp", .cuts_params = true, .cuts_state = true, .cuts_grads = true, .copies = true},
};
/* PyTorch: ZeroRedundancyOptimizer. DeepSpeed: flatten_dense_tensors_aligned of stage_1_and_2.py,
 * two elements per rank. Megatron-LM: param_and_grad_buffer.py of the distributed optimizer: from
 * the last parameter on, each at a multiple of 64 elements, the end one of lcm(ranks, 128). */
static const DataForm forms[] = {
    {"pytorch", .whole = true, .align = 1, .each = 1, .whole_of = 1},
    {"deepspeed", .align = 1, .each = 2, .whole_of = 1},
    {"megatron", .last_first = true, .align = 64, .each = 1, .whole_of = 128},
};
const Word plan_mode_words[] = {{"ddp", 0},  {"zero1", 1}, {"zero2", 2},
                                {"fsdp", 3}, {"hsdp", 4},  {NULL, 0}};
const Word plan_form_words[] = {{"pytorch", 0}, {"deepspeed", 1}, {"megatron", 2}, {NULL, 0}};
const Word plan_unit_words[] = {
    {"parameter", UNIT_PARAMETER}, {"block", UNIT_BLOCK}, {"model", UNIT_MODEL}, {NULL, 0}};

/* fully_shard: reshard_after_forward of every unit (true, false), or True for the layers and the
 * default for the root (blocks); `step`: set_reshard_after_backward(False) until the last. */
static const Reshard reshards[] = {
    {"true", .blocks = true, .rest = true},
    {"blocks", .blocks = true},
    {"false", .blocks = false},
    {"step", .once = true},
};
/* step: no_sync, set_requires_gradient_sync(False) until the last micro-batch; scatter:
 * set_requires_all_reduce(False) until then. */
static const GradSync grad_syncs[] = {
    {"step", .when = "gradients are added up and reduced once, after the last"},
    {"microbatch", .scatters = true, .sums = true,
     .when = "gradients are reduced in each and added up"},
    {"scatter", .scatters = true,
     .when =
         "gradients are reduce-scattered in each and added up, all-reduced once, after the last"},
};
const Word plan_reshard_words[] = {
    {"true", 0}, {"blocks", 1}, {"false", 2}, {"step", 3}, {NULL, 0}};
const Word plan_grad_sync_words[] = {{"step", 0}, {"microbatch", 1}, {"scatter", 2}, {NULL, 0}};

/* What `given` stands for among `words`; `otherwise` if the plan does not say. The reader has
 * refused any other word. */
static int value_of(const Word *words, const char *given, int otherwise) {
    for (; given && words->word; words++)
        if (!strcmp(words->word, given)) return words->value;
    return otherwise;
}
const Reshard *plan_reshard_of(const char *word) {
    return &reshards[value_of(plan_reshard_words, word, 0)];
}
const Reshard *plan_reshard(const Plan *p) { return plan_reshard_of(p->data_parallel.reshard); }
const GradSync *plan_grad_sync(const Plan *p) {
    return &grad_syncs[value_of(plan_grad_sync_words, p->data_parallel.grad_sync, 0)];
}
const DataMode *plan_data_mode(const Plan *p) {
    return &modes[value_of(plan_mode_words, p->data_parallel.mode, 0)];
}
const DataForm *plan_data_form(const Plan *p) {
    return &forms[value_of(plan_form_words, p->data_parallel.form, 0)];
}
DataUnit plan_data_unit(const Plan *p) {
    return (DataUnit)value_of(plan_unit_words, p->data_parallel.unit, (int)plan_data_mode(p)->unit);
}
const char *plan_data_unit_word(const Plan *p) {
    const Word *w = plan_unit_words;
    while (w->value != (int)plan_data_unit(p)) w++;
    return w->word;
}
/* E0215 at each key that is of another mode: it would change nothing. */
static void refuse_unread(PlanReader *r, const DataMode *mode, bool divides) {
    const Plan *p = r->p;
    const struct {
        const char *key, *says, *of; /* of: a mode that reads it */
        bool given, read;
        Loc loc;
    } rows[] = {
        {"form", "how the optimizer's work is divided", "zero1", p->data_parallel.form != NULL,
         divides, p->data_parallel.form_loc},
        {"reshard", "how long gathered parameters are kept", "fsdp",
         p->data_parallel.reshard != NULL, mode->cuts_params, p->data_parallel.reshard_loc},
        {"reshard_over", "how gathered parameters lie between the passes", "fsdp",
         p->data_parallel.reshard_over != NULL, mode->cuts_params,
         p->data_parallel.reshard_over_loc},
        {"replicate", "which ranks have copies of shards", "hsdp",
         p->data_parallel.replicate != NULL, mode->copies, p->data_parallel.replicate_loc},
        {"shard", "within which ranks copies are cut", "hsdp", p->data_parallel.shard != NULL,
         mode->copies, p->data_parallel.shard_loc},
        {"dims", "which dim of a parameter is cut at rest", "fsdp", p->n_dims > 0,
         mode->cuts_params, p->data_parallel.dims_loc},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        if (rows[i].given && !rows[i].read)
            diag_error(r->d, "E0215", rows[i].loc,
                       arena_printf(r->a, "mode: %s, or leave `%s` out", rows[i].of, rows[i].key),
                       "`%s` says %s, and mode %s does not ask", rows[i].key, rows[i].says,
                       mode->name);
}
/* Which axes of the mesh hold copies, and which shards: the two that are data's. */
static const char *copies_hint(const PlanReader *r, const char *mode) {
    const Plan *p = r->p;
    const char *data[2];
    int n = 0;
    for (int i = 0; i < p->n_axes; i++) {
        const char *name = p->axes[i].name, *ours = plan_axis_of_others(name);
        if (strncmp(name, "dp", 2) && (!ours || strcmp(ours, "dp"))) continue;
        if (n < 2) data[n] = name;
        n++;
    }
    if (n != 2)
        return arena_printf(r->a,
                            "{mode: %s, replicate: dp_replicate, shard: dp_shard}, two axes of the "
                            "mesh: `mesh: {dp_replicate: 2, dp_shard: 2}`",
                            mode);
    const bool shards_first = strstr(data[0], "shard") || !strcmp(data[0], "fsdp");
    return arena_printf(r->a, "{mode: %s, replicate: %s, shard: %s}", mode, data[shards_first],
                        data[!shards_first]);
}
void plan_check_sharding(PlanReader *r) {
    const Plan *p = r->p;
    const DataMode *mode = plan_data_mode(p);
    const DataForm *form = plan_data_form(p);
    bool divides = mode->cuts_state && !mode->cuts_params;
    if (mode->copies && !(p->data_parallel.replicate && p->data_parallel.shard) && r->axes_known)
        diag_error(r->d, "E0208", p->data_parallel.loc, copies_hint(r, mode->name),
                   "%s needs `replicate` and `shard`", mode->name);
    refuse_unread(r, mode, divides);
    const Reshard *again = plan_reshard(p);
    if (mode->cuts_params && p->data_parallel.reshard_over && !(again->blocks && again->rest))
        diag_error(r->d, "E0215", p->data_parallel.reshard_over_loc,
                   "`reshard: true`, or leave `reshard_over` out",
                   "`reshard_over` cuts every gathered parameter between the passes, and with "
                   "`reshard: %s` some stay whole",
                   again->name);
    if (divides && mode->cuts_grads && form->whole)
        diag_error(r->d, "E0215",
                   p->data_parallel.form ? p->data_parallel.form_loc : p->data_parallel.mode_loc,
                   "form: deepspeed, form: megatron, or mode: zero1",
                   "%s cuts gradients, and the form %s sums them whole on every rank", mode->name,
                   form->name);
    if (divides && !form->whole && plan_data_unit(p) == UNIT_PARAMETER)
        diag_error(r->d, "E0215", p->data_parallel.unit_loc, "unit: block, or unit: model",
                   "the form %s lays the parameters of a bucket one behind the other: a unit is no "
                   "single parameter",
                   form->name);
}
/* Where gradients are summed is a question of several micro-batches. */
void plan_note_sync(PlanReader *r) {
    const Plan *p = r->p;
    const GradSync *g = plan_grad_sync(p);
    const DataMode *mode = plan_data_mode(p);
    if (!g->scatters) return;
    const char *why = NULL, *fix = "leave `grad_sync` out";
    if (p->pass == PASS_FORWARD)
        why = "`pass: forward` has no gradients", fix = "set `pass: backward`, or leave it out";
    else if (p->microbatches < 2)
        why = "the batch is one micro-batch", fix = "set `data.microbatches`, or leave it out";
    else if (!g->sums && !mode->cuts_grads)
        why = arena_printf(r->a, "mode %s reduce-scatters no gradient", mode->name);
    if (why)
        diag_note(r->d, "N0018", p->data_parallel.grad_sync_loc, fix,
                  "`grad_sync: %s` changes nothing: %s", g->name, why);
}
