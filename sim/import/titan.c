/* torchtitan's TOML: the degrees of [parallelism], and the plan that its code for the model applies
 * for them (semantics.md 3.1, 3.2, 7.1; torchtitan 0.2.2). */
#include "import/import.h"
#include "import/pipeline.h"
#include "import/titan_model.h"
#include "import/toml.h"
#include <string.h>

typedef struct {
    Draft *x;
    Value *root;
    const TitanFlavor *flavor; /* NULL: it is not known, and an error */
    int64_t replicate, shard, cp, tp, pp, ep, etp;
    bool loss_parallel;
    const char *reshard;
} Titan;

/* ---- sections and keys ---- */
/* Sections that say how a run is driven and nothing about who holds what. */
static const char *const apart[] = {
    "job",        "profiling", "metrics",      "checkpoint", "comm",  "fault_tolerance",
    "validation", "optimizer", "lr_scheduler", "compile",    "debug", "memory_estimation",
    "float8",     "quantize",  "experimental", "dataloader", "mx",    NULL};
static const char *const sections[] = {"model", "training",  "parallelism", "activation_checkpoint",
                                       "job",   "optimizer", NULL};
static Value *section(Titan *t, const char *name) {
    Value *v = value_get(t->root, name);
    if (v && v->kind != V_DICT) {
        diag_error(t->x->d, "E0301", v->loc, NULL, "[%s] is a table", name);
        return NULL;
    }
    return v;
}
static Value *key(Value *table, const char *name) { return table ? value_get(table, name) : NULL; }
static int64_t number(Titan *t, Value *table, const char *name, int64_t otherwise) {
    Value *v = key(table, name);
    if (!v) return otherwise;
    if (v->kind == V_INT && (v->i > 0 || v->i == -1) && v->i <= (int64_t)1 << 20) return v->i;
    diag_error(t->x->d, "E0302", v->loc, NULL, "%s is a whole number of 1 .. 2^20, or -1", name);
    return otherwise;
}
static const char *text(Titan *t, Value *table, const char *name, const char *otherwise) {
    Value *v = key(table, name);
    if (v && v->kind == V_STRING) return v->s;
    if (v) diag_error(t->x->d, "E0301", v->loc, NULL, "%s is text", name);
    return otherwise;
}
static bool flag(Titan *t, Value *table, const char *name, bool otherwise) {
    Value *v = key(table, name);
    if (v && v->kind == V_BOOL) return v->b;
    if (v) diag_error(t->x->d, "E0301", v->loc, NULL, "%s is true or false", name);
    return otherwise;
}
static Loc loc_of(Titan *t, Value *table, const char *name) {
    for (int i = 0; table && i < table->n_pairs; i++)
        if (strcmp(table->pair[i].key, name) == 0) return table->pair[i].loc;
    return table ? table->loc : (Loc){t->x->file, 1, 1};
}
static void later(Titan *t, Value *table, const char *name, const char *hint) {
    diag_error(t->x->d, "E0214", loc_of(t, table, name), hint, "%s: not supported by this version",
               name);
}

/* ---- [model] ---- */
static void read_model(Titan *t) {
    static const char *const known[] = {
        "name",       "flavor",    "tokenizer_path",         "hf_assets_path",
        "converters", "norm_type", "print_after_conversion", NULL};
    Value *model = section(t, "model"), *converters = key(model, "converters");
    Draft *x = t->x;
    const char *name = text(t, model, "name", "llama3"),
               *flavor = text(t, model, "flavor", "debugmodel");
    for (int i = 0; model && known[i]; i++) value_get(model, known[i]);
    if (model) value_unknown(x->d, model, "key of [model]", known);
    if (converters && (converters->kind == V_STRING ? *converters->s != 0 : converters->n > 0))
        diag_warn(x->d, "E0214", loc_of(t, model, "converters"), NULL,
                  "converters change what layers compute with: the plan has them as they were");
    t->flavor = titan_flavor(x, name, loc_of(t, model, "name"), flavor, loc_of(t, model, "flavor"));
    if (!model || x->in->model || x->in->config) return;
    x->model_loc = loc_of(t, model, "flavor");
    if (t->flavor)
        titan_write_model(x, t->flavor, number(t, section(t, "training"), "seq_len", 2048));
}

/* ---- [parallelism] ---- */
static const char *const degrees[] = {"pp", "dp_replicate", "dp_shard", "cp", "tp"};
/* Experts are on ranks of dp_shard, cp and tp, counted as efsdp x ep x etp with the last next to
 * each other; etp is 1 or tp. */
static void check_experts(Titan *t, Value *par) {
    Draft *x = t->x;
    Loc at = loc_of(t, par, "expert_parallel_degree");
    int64_t each = t->shard * t->cp * t->tp, ranks = t->ep * t->etp;
    if (t->flavor && !t->flavor->experts)
        diag_error(x->d, "E0307", at, "a model with experts: name = \"deepseek_v3\"",
                   "expert_parallel_degree of %lld: %s %s has no experts", (long long)t->ep,
                   t->flavor->model, t->flavor->flavor);
    else if (t->etp != 1 && t->etp != t->tp)
        diag_error(x->d, "E0307", loc_of(t, par, "expert_tensor_parallel_degree"),
                   arena_printf(x->a, t->tp > 1 ? "1, or %lld" : "1", (long long)t->tp),
                   "experts cut over %lld ranks, other layers over %lld: torchtitan raises",
                   (long long)t->etp, (long long)t->tp);
    else if (each % ranks)
        diag_error(x->d, "E0307", at, NULL,
                   "experts over %lld ranks of %lld (dp_shard, cp and tp): torchtitan raises",
                   (long long)ranks, (long long)each);
    else if (t->etp == 1 && t->tp > 1 && t->ep % t->tp)
        diag_error(x->d, "E0214", at, "a multiple of tensor_parallel_degree",
                   "experts on a part of the ranks of tp: not supported by this version");
    else if (t->shard * t->cp == 1 && t->flavor && !t->flavor->ep_alone)
        diag_error(x->d, "E0307", at, "data_parallel_shard_degree = 2, or more",
                   "expert_parallel_degree without a rank of dp_shard or cp: torchtitan asks for a "
                   "mesh that it has not, and raises");
}
/* The axes, outermost first; each dense one in two where experts take a part of it. */
static void fold(Titan *t, Value *par, const DraftAxis *dense) {
    Draft *x = t->x;
    const DraftAxis inner[] = {dense[4], dense[3], dense[2]},
                    experts[] = {{"etp", t->etp, loc_of(t, par, "expert_tensor_parallel_degree")},
                                 {"ep", t->ep, loc_of(t, par, "expert_parallel_degree")}};
    if (t->ep > 1) check_experts(t, par);
    if (diags_errors(x->d)) return;
    for (int i = 0; i < 2; i++)
        if (dense[i].size > 1) draft_axis(x, dense[i].name, dense[i].size, dense[i].loc);
    draft_fold(x, inner, 3, experts, t->ep > 1 ? 2 : 0);
}
/* What the file leaves open (-1: as many ranks as there are) comes from --mesh. */
static void set_axes(Titan *t, Value *par) {
    static const char *const keys[] = {"pipeline_parallel_degree", "data_parallel_replicate_degree",
                                       "data_parallel_shard_degree", "context_parallel_degree",
                                       "tensor_parallel_degree"};
    int64_t *degree[] = {&t->pp, &t->replicate, &t->shard, &t->cp, &t->tp};
    Draft *x = t->x;
    DraftAxis given[16], dense[5];
    int n = x->n_axes, used = 0;
    memcpy(given, x->axis, sizeof given);
    x->n_axes = 0;
    for (int i = 0; i < 5; i++) {
        const DraftAxis *by = NULL;
        for (int k = 0; k < n; k++)
            if (strcmp(given[k].name, degrees[i]) == 0) by = &given[k];
        used += by != NULL;
        if (*degree[i] == -1 && by) *degree[i] = by->size;
        if (*degree[i] == -1) {
            diag_error(x->d, "E0208", loc_of(t, par, keys[i]), "for example --mesh dp_shard=4",
                       "%s is -1, what is left of the ranks: their number does not stand here",
                       keys[i]);
            *degree[i] = 1;
        }
        if (by && by->size != *degree[i])
            diag_error(x->d, "E0307", by->loc, "leave it out of --mesh",
                       "axis %s of %lld ranks has %lld in the file", degrees[i],
                       (long long)by->size, (long long)*degree[i]);
        dense[i] = (DraftAxis){degrees[i], *degree[i], loc_of(t, par, keys[i])};
    }
    if (used < n)
        diag_error(x->d, "E0204", given[0].loc, "pp, dp_replicate, dp_shard, cp, tp",
                   "--mesh names an axis that torchtitan has not");
    fold(t, par, dense);
    if (!x->n_axes) draft_axis(x, "dp_shard", 1, loc_of(t, par, keys[2]));
}
static void read_parallelism(Titan *t) {
    static const char *const known[] = {"data_parallel_replicate_degree",
                                        "data_parallel_shard_degree",
                                        "tensor_parallel_degree",
                                        "context_parallel_degree",
                                        "context_parallel_rotate_method",
                                        "pipeline_parallel_degree",
                                        "expert_parallel_degree",
                                        "expert_tensor_parallel_degree",
                                        "enable_loss_parallel",
                                        "disable_loss_parallel",
                                        "fsdp_reshard_after_forward",
                                        "enable_async_tensor_parallel",
                                        "enable_compiled_autograd",
                                        "pipeline_parallel_schedule",
                                        "pipeline_parallel_microbatch_size",
                                        "pipeline_parallel_layers_per_stage",
                                        "pipeline_parallel_split_points",
                                        "pipeline_parallel_schedule_csv",
                                        "pipeline_parallel_first_stage_less_layers",
                                        "pipeline_parallel_last_stage_less_layers",
                                        "pipeline_parallel_expert_parallel_overlap",
                                        "expert_parallel_comm_backend",
                                        "module_fqns_per_model_part",
                                        NULL};
    Value *par = section(t, "parallelism");
    t->replicate = number(t, par, "data_parallel_replicate_degree", 1);
    t->shard = number(t, par, "data_parallel_shard_degree", -1);
    t->cp = number(t, par, "context_parallel_degree", 1);
    t->tp = number(t, par, "tensor_parallel_degree", 1);
    t->loss_parallel =
        flag(t, par, "enable_loss_parallel", true) && !flag(t, par, "disable_loss_parallel", false);
    t->reshard = text(t, par, "fsdp_reshard_after_forward", "default");
    t->pp = number(t, par, "pipeline_parallel_degree", 1);
    t->ep = number(t, par, "expert_parallel_degree", 1);
    t->etp = number(t, par, "expert_tensor_parallel_degree", 1);
    if (strcmp(text(t, par, "expert_parallel_comm_backend", "standard"), "standard") != 0)
        later(t, par, "expert_parallel_comm_backend", "leave it at \"standard\"");
    if (strcmp(text(t, par, "context_parallel_rotate_method", "allgather"), "allgather") != 0)
        later(t, par, "context_parallel_rotate_method", "leave it at \"allgather\"");
    if (strcmp(t->reshard, "default") && strcmp(t->reshard, "always") &&
        strcmp(t->reshard, "never"))
        diag_error(t->x->d, "E0206", loc_of(t, par, "fsdp_reshard_after_forward"), NULL,
                   "fsdp_reshard_after_forward is default, always or never");
    if (flag(t, par, "enable_async_tensor_parallel", false))
        diag_warn(t->x->d, "E0214", loc_of(t, par, "enable_async_tensor_parallel"), NULL,
                  "asynchronous tensor parallelism cuts collectives into pieces: here they are "
                  "whole, with the same bytes");
    for (int i = 0; par && known[i]; i++) value_get(par, known[i]);
    if (par) value_unknown(t->x->d, par, "key of [parallelism]", known);
    set_axes(t, par);
}

/* ---- [training], [activation_checkpoint] ---- */
static void check_sequence(Titan *t) {
    int64_t by = 2 * t->cp * t->tp;
    if (t->x->sequence % by)
        diag_error(t->x->d, "E0307", t->x->data_loc, NULL,
                   "seq_len: %lld is no multiple of tp times twice cp, %lld: torchtitan stops",
                   (long long)t->x->sequence, (long long)by);
}
static void read_training(Titan *t) {
    static const char *const known[] = {"local_batch_size",
                                        "batch_size",
                                        "global_batch_size",
                                        "seq_len",
                                        "steps",
                                        "max_norm",
                                        "dataset",
                                        "dataset_path",
                                        "mixed_precision_param",
                                        "mixed_precision_reduce",
                                        "dtype",
                                        "compile",
                                        "gc_freq",
                                        "gc_debug",
                                        "seed",
                                        "deterministic",
                                        "warmup_steps",
                                        "enable_cpu_offload",
                                        "data_parallel_replicate_degree",
                                        NULL};
    Value *training = section(t, "training");
    Draft *x = t->x;
    int64_t local = number(t, training, "local_batch_size", number(t, training, "batch_size", 8));
    x->data_loc = loc_of(t, training, "seq_len");
    x->sequence = number(t, training, "seq_len", 2048);
    if (x->data_loc.file && key(training, "seq_len")) check_sequence(t);
    x->batch = local * t->replicate * t->shard;
    /* the ranks of tp take parts of a rank's list of tokens: a batch that is made small keeps them
     */
    if (t->ep > 1 && t->etp == 1 && t->tp > 1 && local % t->tp == 0)
        x->least_batch = t->tp * t->replicate * t->shard;
    const char *dtype = text(t, training, "mixed_precision_param", "bfloat16");
    if (strcmp(dtype, "bfloat16") && strcmp(dtype, "float32"))
        diag_error(x->d, "E0206", loc_of(t, training, "mixed_precision_param"), NULL,
                   "mixed_precision_param is bfloat16 or float32");
    if (strcmp(dtype, "bfloat16") == 0 && x->in->full) x->dtype = "bf16";
    else if (strcmp(dtype, "bfloat16") == 0)
        draft_remark(x, "dtype: f32 instead of bfloat16, whose rounding would hide small mistakes; "
                        "--full keeps it");
    if (number(t, training, "global_batch_size", -1) > x->batch)
        draft_remark(x,
                     "global_batch_size: gradients are accumulated; the plan is one micro-batch");
    for (int i = 0; training && known[i]; i++) value_get(training, known[i]);
    if (training) value_unknown(x->d, training, "key of [training]", known);
}
static void read_checkpointing(Titan *t) {
    Value *ac = section(t, "activation_checkpoint");
    const char *mode = text(t, ac, "mode", "selective");
    Loc at = loc_of(t, ac, "mode");
    if (strcmp(mode, "full") == 0) draft_key(t->x, "recompute", "block", at, "mode = full");
    else if (strcmp(mode, "selective") == 0 && ac)
        diag_warn(t->x->d, "E0214", at, "mode = \"full\" or \"none\"",
                  "selective activation checkpointing: the plan recomputes nothing; memory and the "
                  "gathers that are made again are those of mode = \"none\"");
    else if (strcmp(mode, "none") != 0 && ac)
        diag_error(t->x->d, "E0206", at, NULL, "mode is none, selective or full");
}

/* ---- the plan ---- */
/* Are parameters given up after the forward pass? By default not in a pipeline, where the next
 * micro-batch asks for them again. */
static bool drops_weights(const Titan *t) {
    if (strcmp(t->reshard, "default") == 0) return t->pp == 1;
    return strcmp(t->reshard, "always") == 0;
}
static void data_parallel(Titan *t, Value *par) {
    Draft *x = t->x;
    const char *shard = t->shard > 1 && t->cp > 1 ? "dp_shard*cp" : t->cp > 1 ? "cp" : "dp_shard";
    Loc at = loc_of(t, par, "data_parallel_shard_degree");
    bool sharded = t->shard > 1 || t->cp > 1;
    bool whole = t->flavor && t->flavor->attention == TITAN_HEADS; /* llama3, llama4 */
    if (!sharded && t->replicate > 1 && whole && (t->tp > 1 || t->pp > 1))
        diag_error(x->d, "E0307", loc_of(t, par, "data_parallel_replicate_degree"),
                   "data_parallel_shard_degree = 2, or more",
                   "copies of the model beside other degrees, and no shards: torchtitan raises");
    if (!sharded && t->replicate > 1)
        draft_key(x, "data_parallel", "{mode: ddp, axis: dp_replicate}",
                  loc_of(t, par, "data_parallel_replicate_degree"), NULL);
    if (!sharded) return;
    const char *where =
        t->replicate > 1
            ? arena_printf(x->a, "mode: hsdp, replicate: dp_replicate, shard: \"%s\"", shard)
            : arena_printf(x->a, "mode: fsdp, axis: \"%s\"", shard);
    draft_key(x, "data_parallel",
              arena_printf(x->a, "{%s, unit: block, reshard: %s, grad_order: tp_first}", where,
                           drops_weights(t) ? "true" : "false"),
              at, "fully_shard");
    draft_remark(x, "torchtitan shards the embedding, each layer, and norm and output together; "
                    "unless fsdp_reshard_after_forward is \"always\" it keeps the last of these");
    if (t->ep > 1)
        draft_key(x, "moe", "{fsdp_dim: auto}", loc_of(t, par, "expert_parallel_degree"),
                  "shard_placement_fn: dim 1 where there are more ranks than experts");
}
static const TitanSchedule *schedule_of(Titan *t, Value *par) {
    const char *s = text(t, par, "pipeline_parallel_schedule", "1F1B"), **names;
    const TitanSchedule *row = titan_schedule(t->x->a, s, &names);
    if (row) return row;
    const char *near = diag_nearest(s, names);
    diag_error(t->x->d, "E0206", loc_of(t, par, "pipeline_parallel_schedule"),
               near ? near : "1F1B, GPipe, Interleaved1F1B, LoopedBFS, ZBVZeroBubble, ..",
               "schedule '%s' is not known here", s);
    return titan_schedule(t->x->a, "1F1B", &names);
}
/* Stages on each rank; 0 and an error: what the file says of layers does not fit. */
static int64_t chunks_of(Titan *t, Value *par, const DraftPipeline *p, bool single) {
    int64_t each = number(t, par, "pipeline_parallel_layers_per_stage", -1), n = draft_layers(t->x);
    if (each < 1) return single ? 1 : 2;
    int64_t stages = (n + p->first_less + p->last_less + each - 1) / each;
    if (stages % t->pp == 0 && (stages / t->pp == 1) == single) return stages / t->pp;
    diag_error(t->x->d, "E0307", loc_of(t, par, "pipeline_parallel_layers_per_stage"),
               single ? "one stage on each rank" : "two stages or more on each rank",
               "%lld layers, %lld a stage, are %lld stages for %lld ranks: torchtitan raises",
               (long long)n, (long long)each, (long long)stages, (long long)t->pp);
    return 0;
}
/* Layers that an end of the pipeline has less; none is said by 0, which is no degree. */
static int64_t less(Titan *t, Value *par, const char *name) {
    Value *v = key(par, name);
    return v && v->kind == V_INT && v->i == 0 ? 0 : number(t, par, name, 1);
}
static void pipeline(Titan *t, Value *par) {
    static const char *const elsewhere[] = {"pipeline_parallel_schedule_csv",
                                            "pipeline_parallel_split_points",
                                            "module_fqns_per_model_part"};
    Draft *x = t->x;
    if (t->pp == 1) return;
    if (t->flavor && t->flavor->no_pipeline)
        diag_error(x->d, "E0307", loc_of(t, par, "pipeline_parallel_degree"), NULL,
                   "torchtitan cannot cut %s into stages: it raises", t->flavor->model);
    for (int i = 0; i < 3; i++) {
        Value *v = key(par, elsewhere[i]);
        if (v && (v->kind == V_LIST ? v->n > 0 : v->kind != V_STRING || *v->s))
            later(t, par, elsewhere[i], "pipeline_parallel_schedule, with layers_per_stage");
    }
    const TitanSchedule *row = schedule_of(t, par);
    Value *training = section(t, "training");
    int64_t local = number(t, training, "local_batch_size", number(t, training, "batch_size", 8)),
            size = number(t, par, "pipeline_parallel_microbatch_size", 1);
    if (size < 1 || local % size) {
        diag_error(x->d, "E0307", loc_of(t, par, "pipeline_parallel_microbatch_size"),
                   "a number that divides local_batch_size",
                   "micro-batches of %lld of a batch of %lld: torchtitan raises", (long long)size,
                   (long long)local);
        return;
    }
    DraftPipeline p = {
        .schedule = row->schedule,
        .ranks = t->pp,
        .microbatches = local / size,
        .first_less = less(t, par, "pipeline_parallel_first_stage_less_layers"),
        .last_less = less(t, par, "pipeline_parallel_last_stage_less_layers"),
        .at = loc_of(t, par, "pipeline_parallel_degree"),
        .schedule_loc = loc_of(t, par, "pipeline_parallel_schedule"),
        .split_loc = loc_of(t, par, "pipeline_parallel_layers_per_stage"),
    };
    p.chunks = chunks_of(t, par, &p, row->single);
    if (p.chunks) draft_pipeline(x, &p);
}
/* Sections that are there and are not read, once. */
static void tell_apart(Titan *t) {
    Str s = str_new(t->x->a);
    for (int i = 0; apart[i]; i++)
        if (value_get(t->root, apart[i])) str_addf(&s, "%s[%s]", s.n ? ", " : "", apart[i]);
    if (s.n) draft_remark(t->x, "not read, for they say nothing about who holds what: %s", s.s);
}
bool import_torchtitan(Draft *x) {
    Titan t = {.x = x};
    draft_options(x);
    if (!(t.root = toml_read(x->a, x->d, x->file, x->in->text, x->in->n))) return false;
    tell_apart(&t);
    for (int i = 0; sections[i]; i++) value_get(t.root, sections[i]);
    value_unknown(x->d, t.root, "section", sections);
    Value *par = section(&t, "parallelism");
    read_model(&t);
    read_parallelism(&t);
    read_training(&t);
    read_checkpointing(&t);
    if (t.flavor)
        titan_write_lines(x, t.flavor,
                          &(TitanDegrees){t.tp, t.ep, t.etp, t.loss_parallel,
                                          loc_of(&t, par, "expert_parallel_degree")});
    data_parallel(&t, par);
    draft_complete(x);
    if (!diags_errors(x->d)) pipeline(&t, par);
    if (t.cp > 1 && t.flavor && t.flavor->flex)
        diag_error(x->d, "E0307", loc_of(&t, par, "context_parallel_degree"), NULL,
                   "flavor %s attends by FlexAttention, which torchtitan cannot cut by context "
                   "parallelism: it raises",
                   t.flavor->flavor);
    if (t.cp > 1)
        draft_key(x, "context_parallel", "{mode: all_gather, order: zigzag, axis: cp}",
                  loc_of(&t, par, "context_parallel_degree"), NULL);
    x->names = NAMES_TORCHTITAN;
    return !diags_errors(x->d);
}
