/* The table of named parallel styles (PyTorch, Hugging Face, Megatron) and how a plan line is laid
 * over its row. A row assigns placements to parameters and module boundaries and nothing else; what
 * moves follow is lowering's business. */
#include "base/text.h"
#include "plan/read.h"
#include <string.h>
#include <strings.h>

#define PLACE(...)                                                                                 \
    {                                                                                              \
        .set = true, .bare = { __VA_ARGS__ }                                                       \
    }
#define REPLICATE PLACE(.kind = RP_REPLICATE)
#define PARTIAL PLACE(.kind = RP_PARTIAL)
#define LOCAL PLACE(.kind = RP_LOCAL)
#define SHARD(d) PLACE(.kind = RP_SHARD, .dim = (d))
#define TOKENS PLACE(.kind = RP_TOKENS)
#define LETTER(c) PLACE(.kind = RP_SHARD, .letter = (c))
/* Experts over `ep`, if there is one, and their width over the style's axes. */
#define BOTH                                                                                       \
    {                                                                                              \
        .set = true, .mapping = true, .n = 2, .on = (struct RawOn[]) {                             \
            {.axis = "ep", .place = {.kind = RP_SHARD, .letter = 'e'}, .if_any = true}, {          \
                .place = {.kind = RP_SHARD, .letter = 'w' }                                        \
            }                                                                                      \
        }                                                                                          \
    }
#define ONE(...)                                                                                   \
    {                                                                                              \
        .set = true, .n = 1, .arg = (RawSpec[]) { __VA_ARGS__ }                                    \
    }

#define ROW(n, local)                                                                              \
    .name = (n), .use_local_output = (local), .use_local_input = -1, .per_module = -1
#define NAME(n) ROW(n, -1)
/* Its system sums the gradients of the parameters that it places over its axes. Plain tensors,
 * which whoever replicates them or cuts them by hand has, are summed by nobody. */
#define SUMS .sums = true
#define IN(label, need) .input = ONE(label), .desired_input = ONE(need)
/* Of all that experts take: tokens, list, weights. */
#define IN_EXPERTS(need)                                                                           \
    .desired_input = {.set = true, .n = 3, .arg = (RawSpec[]){need, need, need}}
#define OUT(place) .output = ONE(place)
#define MOVE_OUT(place) .desired_output = ONE(place)
#define WEIGHT(place) .weight = place
#define BIAS(place) .bias = place
/* distribute_module hangs both hooks on the module, whether or not they move anything (torch 2.15,
 * distributed/tensor/_api.py); its inputs' or its result's alone are hung on by the style itself
 * (distributed/tensor/parallel/style.py). */
#define BY_API .before = "api", .after = "api"

/* A style's variants for a kind of module stand behind the row for all others. */
static const StyleRow rows[] = {
    {.style = {NAME("colwise"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(0)), BIAS(SHARD(0)),
               OUT(SHARD(-1))},
     .torch = TORCH_LAYER,
     .hf = HF_COLUMN,
     .hf_linear = true,
     BY_API,
     .what = "linear: output features cut; y stays cut on its last dim",
     .aliases = "ColwiseParallel column_parallel ColumnParallelLinear"},
    {.style = {NAME("colwise"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(1)), OUT(SHARD(-1))},
     .torch = TORCH_LAYER,
     BY_API,
     .what = "embedding: hidden dim cut",
     .module_kind = "embedding"},
    {.style = {NAME("rowwise"), SUMS, IN(SHARD(-1), SHARD(-1)), WEIGHT(SHARD(1)), BIAS(REPLICATE),
               OUT(REPLICATE), .bias_in_shares = true},
     .torch = TORCH_LAYER,
     .hf = HF_ROW,
     .hf_linear = true,
     BY_API,
     .what = "linear: input features cut; partial sums are reduced, the bias is added once",
     .aliases = "RowwiseParallel row_parallel RowParallelLinear"},
    {.style = {NAME("rowwise"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(0)), OUT(REPLICATE)},
     .torch = TORCH_LAYER,
     BY_API,
     .what = "embedding: vocabulary cut; partial lookups are reduced",
     .module_kind = "embedding"},
    {.style = {ROW("sequence_parallel", 0), SUMS, IN(SHARD(1), SHARD(1)), WEIGHT(REPLICATE),
               BIAS(REPLICATE), OUT(SHARD(1))},
     .torch = TORCH_LAYER,
     .relays = true,
     .hf = HF_PLAIN,
     BY_API,
     .what = "norm on a part of the sequence; its weight's gradient is a sum over the axis",
     .aliases = "SequenceParallel"},
    {.style = {NAME("prepare_module_input")},
     .torch = TORCH_INPUT,
     .before = "style",
     .what = "moves the inputs of a module: input (label) -> desired_input",
     .aliases = "PrepareModuleInput"},
    {.style = {NAME("prepare_module_output")},
     .torch = TORCH_OUTPUT,
     .after = "style",
     .what = "moves the result of a module: output (label) -> desired_output",
     .aliases = "PrepareModuleOutput"},
    {.style = {NAME("prepare_module_input_output")},
     .torch = TORCH_BOTH,
     .before = "style",
     .after = "style",
     .what = "moves inputs and result: input -> desired_input, output (label) -> desired_output",
     .aliases = "PrepareModuleInputOutput"},
    {.style = {NAME("replicate"), IN(REPLICATE, REPLICATE), WEIGHT(REPLICATE), BIAS(REPLICATE),
               OUT(REPLICATE)},
     .torch = TORCH_LAYER,
     .hf = HF_PLAIN,
     BY_API,
     .what = "everything whole on every rank",
     .aliases = "no_parallel NoParallel"},
    {.style = {NAME("colwise_gather_output"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(0)),
               BIAS(SHARD(0)), OUT(REPLICATE)},
     .torch = TORCH_LAYER,
     .hf = HF_COLUMN,
     .hf_linear = true,
     .hf_also = "colwise_rep",
     BY_API,
     .what = "colwise, then the result is gathered",
     .aliases = "colwise_rep"},
    {.style = {NAME("colwise_gather_output"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(1)),
               BIAS(SHARD(0)), OUT(REPLICATE)},
     .what = "weights stored input dim first (GPT-2): the same features cut",
     .module_kind = "conv1d"},
    {.style = {NAME("rowwise_split_input"), SUMS, IN(REPLICATE, SHARD(-1)), WEIGHT(SHARD(1)),
               BIAS(REPLICATE), OUT(REPLICATE), .bias_in_shares = true},
     .torch = TORCH_LAYER,
     .hf = HF_ROW,
     .hf_linear = true,
     .hf_also = "rowwise_rep",
     BY_API,
     .what = "rowwise whose whole input is sliced first",
     .aliases = "rowwise_rep"},
    {.style = {NAME("rowwise_split_input"), SUMS, IN(REPLICATE, SHARD(-1)), WEIGHT(SHARD(0)),
               BIAS(REPLICATE), OUT(REPLICATE), .bias_in_shares = true},
     .what = "weights stored input dim first (GPT-2): the same features cut",
     .module_kind = "conv1d"},
    {.style = {NAME("packed_colwise"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(LETTER('f')),
               BIAS(LETTER('f')), OUT(LETTER('f'))},
     .hf = HF_COLUMN,
     .hf_blocks = 2,
     .what = "colwise of packed blocks (gate and up): each block is cut by itself"},
    {.style = {NAME("packed_rowwise"), SUMS, IN(LETTER('f'), LETTER('f')), WEIGHT(LETTER('f')),
               BIAS(REPLICATE), OUT(REPLICATE), .bias_in_shares = true},
     .hf = HF_ROW,
     .hf_blocks = 2,
     .what = "rowwise of packed blocks: each block is cut by itself"},
    {.style = {NAME("all_reduce"), OUT(PARTIAL), MOVE_OUT(REPLICATE)},
     .hf = HF_PLAIN,
     .after = "style",
     .what = "the partial result of a module is summed",
     .aliases = "gather"},
    {.style = {NAME("replicated_with_grad_allreduce"), SUMS, WEIGHT(REPLICATE), BIAS(REPLICATE),
               .sums_blindly = true},
     .hf = HF_PLAIN,
     .what = "whole weight on cut activations (q/k norm): its gradient is a sum over the axis"},
    {.style = {NAME("embedding_rowwise"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(0)),
               OUT(REPLICATE)},
     .hf = HF_FIRST,
     BY_API,
     .what = "embedding: vocabulary cut; partial lookups are reduced",
     .aliases = "vocab_parallel VocabParallelEmbedding"},
    {.style = {NAME("embedding_colwise"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(1)),
               OUT(REPLICATE)},
     .hf = HF_SECOND,
     BY_API,
     .what = "embedding: hidden dim cut; the result is gathered"},
    {.style = {NAME("loss_parallel"), SUMS, IN(SHARD(-1), SHARD(-1)), OUT(REPLICATE)},
     .torch = TORCH_LOSS,
     .what = "loss on logits that are cut over the vocabulary: one max and two sums of a number "
             "per token"},
    {.style = {NAME("local_colwise"), WEIGHT(SHARD(0)), BIAS(SHARD(0)), OUT(LOCAL)},
     .what = "plain shards without hooks: the result is left as it is"},
    {.style = {NAME("local_rowwise"), WEIGHT(SHARD(1)), BIAS(LOCAL), OUT(LOCAL),
               .bias_local = true},
     .what = "plain shards without hooks: the partial result is left unreduced"},
    {.style = {NAME("local_packed_rowwise"), WEIGHT(LETTER('f')), BIAS(LOCAL), OUT(LOCAL),
               .bias_local = true},
     .what = "packed plain shards without hooks: the partial result is left unreduced"},
    {.style = {NAME("colwise"), SUMS, WEIGHT(SHARD(-2))},
     .what = "experts: the dim before the last of a weight cut",
     .module_kind = "experts"},
    {.style = {NAME("colwise"), SUMS, IN(REPLICATE, REPLICATE), WEIGHT(SHARD(1)), BIAS(SHARD(0)),
               OUT(SHARD(-1))},
     .what = "weights stored input dim first (GPT-2): the same features cut",
     .module_kind = "conv1d"},
    {.style = {NAME("rowwise"), SUMS, WEIGHT(SHARD(-1))},
     .what = "experts: the last dim of a weight cut",
     .module_kind = "experts"},
    {.style = {NAME("rowwise"), SUMS, IN(SHARD(-1), SHARD(-1)), WEIGHT(SHARD(0)), BIAS(REPLICATE),
               OUT(REPLICATE), .bias_in_shares = true},
     .what = "weights stored input dim first (GPT-2): the same features cut",
     .module_kind = "conv1d"},
    {.style = {NAME("packed_colwise"), SUMS, WEIGHT(LETTER('w'))},
     .what = "experts: gate and up of a weight are cut each by itself",
     .module_kind = "experts"},
    {.style = {NAME("packed_rowwise"), SUMS, WEIGHT(LETTER('w'))},
     .what = "experts: the same where they lie in the last dim (Llama 4)",
     .module_kind = "experts"},
    {.style = {NAME("local_colwise"), WEIGHT(SHARD(-2)), OUT(LOCAL)},
     .what = "experts: plain shards of the dim before the last",
     .module_kind = "experts"},
    {.style = {NAME("local_rowwise"), WEIGHT(SHARD(-1)), OUT(LOCAL)},
     .what = "experts: plain shards of the last dim",
     .module_kind = "experts"},
    {.style = {NAME("local_packed_rowwise"), WEIGHT(LETTER('w')), OUT(LOCAL)},
     .what = "experts: plain shards of gate and up, each cut by itself",
     .module_kind = "experts"},
    {.style = {NAME("expert_parallel"), SUMS, .axis = "ep", WEIGHT(SHARD(0))},
     BY_API,
     .what = "experts on different ranks: tokens go to the ranks of theirs, results come back",
     .aliases = "ExpertParallel"},
    {.style = {NAME("tensor_parallel"), SUMS, .prefers = "etp", WEIGHT(LETTER('w'))},
     .before = "api",
     .what = "experts cut inside, over their width: column and row parallel",
     .aliases = "TensorParallel"},
    {.style = {NAME("expert_tensor_parallel"), SUMS, .prefers = "etp", WEIGHT(BOTH)},
     BY_API,
     .what = "experts on the ranks of ep, each cut inside over etp; without an ep inside alone",
     .aliases = "ExpertTensorParallel"},
    {.style = {NAME("reorderer_sequence_parallel"), OUT(TOKENS)},
     BY_API,
     .what = "a router's list: of tokens that all ranks hold each handles a part of the rows",
     .aliases = "ReordererSequenceParallel"},
    {.style = {NAME("grouped_gemm"), SUMS, WEIGHT(SHARD(0))},
     .hf = HF_FIRST,
     .what = "a weight of experts: each rank has some of them"},
    {.style = {NAME("moe_tp_experts"), IN_EXPERTS(REPLICATE), OUT(REPLICATE)},
     .hf = HF_PLAIN,
     .what = "experts whose weights are cut by lines of their own: their results are summed, and "
             "backward the gradients of tokens and of routing weights"},
    {.style = {NAME("ep_dispatch_experts"), IN_EXPERTS(TOKENS), OUT(REPLICATE)},
     .hf = HF_DISPATCH,
     .what = "experts on different ranks that hold the same tokens: each sends a part of them, and "
             "the results are gathered"},
    {.style = {NAME("ep_router"), WEIGHT(REPLICATE), BIAS(REPLICATE)},
     .what = "a whole router: each rank looks at the rows of its own experts"},
    {.style = {NAME("local")},
     .what =
         "plain tensors go in and out as they are: a block whose parts have lines of their own"},
};
enum { N_ROWS = sizeof rows / sizeof rows[0], MOST_CHAIN = 16 };

/* Known from their systems, and what no line of a plan can say: why, and what to write. */
static const struct {
    const char *name, *why, *instead;
    HfCut hf;
} later[] = {
    {"moe_identity_expert",
     "it is for experts that hand their tokens on unchanged, and no model of this version has such",
     "models whose experts all compute", HF_PLAIN},
    {"mla_kv_a_proj",
     "it sums a part of the gradient of its result, and a placement speaks of the whole",
     "replicate, and for the key that heads share `self_attn.k_cat: {style: prepare_module_input, "
     "input: [null, replicate], desired_input: [null, varying_use]}`",
     HF_PLAIN},
    {"local_params", "it says which tensors a kernel reads, not where they lie",
     "leave the line out: it moves nothing and cuts nothing", HF_PLAIN},
};
static int later_style(const char *name) {
    int n = (int)(sizeof later / sizeof *later);
    while (--n >= 0 && strcmp(later[n].name, name) != 0) {
    }
    return n;
}
bool style_is_later(const char *name) { return later_style(name) >= 0; }

const StyleRow *style_rows(int *n) {
    *n = N_ROWS;
    return rows;
}

static bool in_words(const char *words, const char *name) {
    size_t n = strlen(name);
    for (const char *w = words; w && *w;) {
        size_t k = strcspn(w, " ");
        if (k == n && strncmp(w, name, n) == 0) return true;
        w += k + (w[k] == ' ');
    }
    return false;
}

const StyleRow *style_builtin_for(const char *name, const char *module_kind) {
    const StyleRow *found = NULL;
    for (int i = 0; i < N_ROWS && !found; i++)
        if (!rows[i].module_kind &&
            (strcmp(rows[i].style.name, name) == 0 || in_words(rows[i].aliases, name)))
            found = &rows[i];
    for (int i = 0; found && module_kind && i < N_ROWS; i++)
        if (rows[i].module_kind && strcmp(rows[i].module_kind, module_kind) == 0 &&
            strcmp(rows[i].style.name, found->style.name) == 0)
            return &rows[i];
    return found;
}
const StyleRow *style_builtin(const char *name) { return style_builtin_for(name, NULL); }

HfCut style_hf(const char *name, int *blocks, bool *linear) {
    const StyleRow *r = style_builtin(name);
    if (r && strcmp(r->style.name, name) != 0 && !(r->hf_also && strcmp(r->hf_also, name) == 0))
        r = NULL; /* other systems' name for it */
    int row = later_style(name);
    *blocks = r ? r->hf_blocks : 0;
    *linear = r && r->hf_linear;
    return r ? r->hf : row >= 0 ? later[row].hf : HF_NOT;
}

/* ---- a line over its row ---- */

/* Parameters and keyword arguments are laid over by name. */
static void overlay_params(Arena *a, Style *out, const Style *over) {
    RawParam *all = ARENA_ARRAY(a, RawParam, out->n_params + over->n_params);
    int n = 0;
    for (int i = 0; i < out->n_params; i++) {
        bool beaten = false;
        for (int j = 0; j < over->n_params; j++)
            beaten |= strcmp(out->params[i].name, over->params[j].name) == 0;
        if (!beaten) all[n++] = out->params[i];
    }
    for (int j = 0; j < over->n_params; j++) all[n++] = over->params[j];
    out->params = all;
    out->n_params = n;
}
static void overlay_kwargs(Arena *a, Style *out, const Style *over) {
    RawKwarg *all = ARENA_ARRAY(a, RawKwarg, out->n_kwargs + over->n_kwargs);
    int n = 0;
    for (int i = 0; i < out->n_kwargs; i++) {
        bool beaten = false;
        for (int j = 0; j < over->n_kwargs; j++)
            beaten |= strcmp(out->kwargs[i].name, over->kwargs[j].name) == 0;
        if (!beaten) all[n++] = out->kwargs[i];
    }
    for (int j = 0; j < over->n_kwargs; j++) all[n++] = over->kwargs[j];
    out->kwargs = all;
    out->n_kwargs = n;
}

/* Fields that `over` has replace those of `out`. */
static void overlay(Arena *a, Style *out, const Style *over) {
    out->misread |= over->misread;
    if (over->axis) out->axis = over->axis;
    if (over->input.set) out->input = over->input;
    if (over->desired_input.set) out->desired_input = over->desired_input;
    if (over->output.set) out->output = over->output;
    if (over->desired_output.set) out->desired_output = over->desired_output;
    if (over->weight.set) out->weight = over->weight;
    if (over->bias.set) {
        out->bias = over->bias;
        out->bias_local = over->bias_local;
        out->bias_in_shares = false;
    }
    if (over->use_local_output >= 0) out->use_local_output = over->use_local_output;
    if (over->use_local_input >= 0) out->use_local_input = over->use_local_input;
    if (over->per_module >= 0) out->per_module = over->per_module;
    if (over->n_params) overlay_params(a, out, over);
    if (over->n_kwargs) overlay_kwargs(a, out, over);
}

static const Style *find_own(const Plan *p, const char *name) {
    for (int i = 0; i < p->n_styles; i++)
        if (strcmp(p->styles[i].name, name) == 0) return &p->styles[i];
    return NULL;
}

const char *style_nearest(const Plan *p, const char *name) {
    const char **names = ARENA_ARRAY(p->arena, const char *, p->n_styles + 4 * N_ROWS + 1);
    int n = 0;
    if (!name) return NULL;
    for (int i = 0; i < p->n_styles; i++) names[n++] = p->styles[i].name;
    for (int i = 0; i < N_ROWS; i++) {
        names[n++] = rows[i].style.name;
        for (const char *w = rows[i].aliases; w && *w;) {
            size_t k = strcspn(w, " ");
            names[n++] = arena_strndup(p->arena, w, k);
            w += k + (w[k] == ' ');
        }
    }
    return diag_nearest(arena_strndup(p->arena, name, strcspn(name, "(")), names);
}
/* The dim of a matrix that a placement cuts; -1: it cuts none. */
static int matrix_dim(const RawPlace *p) {
    const int dim = p->dim < 0 ? p->dim + 2 : p->dim;
    return p->kind == RP_SHARD && !p->letter && (dim == 0 || dim == 1) ? dim : -1;
}
static int weight_dim(const StyleRow *row) {
    const RawSpec *w = &row->style.weight;
    return w->set && !w->mapping ? matrix_dim(&w->bare) : -1;
}
/* The first style of modules of this kind that cuts this dim of their weight; NULL: none does. */
static const char *style_cutting(int dim, const char *module_kind) {
    for (int i = 0; i < N_ROWS && dim >= 0; i++)
        if (text_same(rows[i].module_kind, module_kind) && weight_dim(&rows[i]) == dim)
            return rows[i].style.name;
    return NULL;
}
/* The style whose weight lies so, of a placement that cuts it; NULL: it is none. */
static const char *placed_style(Arena *a, const char *name) {
    RawPlace p;
    const char *place = plan_place_meant(a, name);
    if (!place || !plan_parse_place(a, diags_new(a), place, (Loc){0}, &p)) return NULL;
    return style_cutting(matrix_dim(&p), NULL);
}
const char *style_instead(const Plan *p, const char *name) {
    const char *lies = placed_style(p->arena, name);
    return lies ? lies : style_nearest(p, name);
}
const char *style_of_embedding(Arena *a, const char *style) {
    const StyleRow *row = style_builtin_for(style, NULL);
    const char *other = row ? style_cutting(weight_dim(row), "embedding") : NULL;
    return other ? arena_printf(a, " (of an embedding `%s`)", other) : "";
}
/* What is no style, but says what one does: a placement of a weight, another framework's word for
 * one; where no name is near, the beginning of one. NULL: it is nothing known. */
static const char *style_meant(Arena *a, const char *name, const char *near) {
    static const struct {
        const char *begins, *hint;
    } row[] = {
        {"QKVParallelLinear", "colwise"},
        {"MergedColumnParallelLinear", "colwise"},
        {"ParallelLMHead", "colwise"},
        {"P(", NULL},
        {"PS(", NULL},
        {"PartitionSpec(", NULL},
        {"jax.sharding.PartitionSpec(", NULL},
    };
    const char *lies = placed_style(a, name);
    if (lies)
        return arena_printf(a, "a placement; the style whose weight lies so is `%s`%s", lies,
                            style_of_embedding(a, lies));
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        if (strncmp(name, row[i].begins, strlen(row[i].begins))) continue;
        if (!row[i].hint)
            return "a table of PartitionSpecs is read as it is: `shardproof import jax FILE`";
        return arena_printf(a, "what does that here is `%s`", row[i].hint);
    }
    return near                           ? NULL
           : !strncasecmp(name, "col", 3) ? "colwise"
           : !strncasecmp(name, "row", 3) ? "rowwise"
                                          : NULL;
}
static void unknown_style(const Plan *p, Diags *d, const char *name, Loc loc) {
    int row = later_style(name);
    if (row >= 0) {
        diag_error(d, "E0214", loc, later[row].instead,
                   "style '%s' is not supported by this version: %s", name, later[row].why);
        return;
    }
    size_t bare = strcspn(name, "(");
    const char *near = style_nearest(p, name);
    bool empty = near && !strcmp(name + bare, "()");
    const char *call = arena_printf(
        p->arena,
        empty ? "write `%s`, without brackets"
              : "fields are written {style: %s, input: ..., output: ...}; a file with calls of "
                "PyTorch is read by `shardproof import torch FILE`",
        near ? near : "NAME");
    const char *recipe = recipe_instead(p->arena, name), *meant = style_meant(p->arena, name, near);
    diag_error(d, "E0203", loc,
               meant        ? meant
               : name[bare] ? call
               : recipe     ? recipe
               : near       ? near
                            : "`shardproof list styles` prints the known ones",
               "unknown style '%s'", name);
}

/* Several lines may run into one circle: it is reported once, at the style of it that stands first.
 */
static void circle(const Plan *p, Diags *d, const Style *own) {
    const Style *first = own, *s = own;
    do {
        s = find_own(p, s->base);
        if (s < first) first = s;
    } while (s != own);
    diag_error(d, "E0203", first->base_loc,
               "one of the styles that it starts from must be built in",
               "style '%s' starts from itself", first->name);
}

bool style_is_known(const Plan *p, const char *name) {
    return find_own(p, name) || style_builtin(name);
}

/* Is this style in the chain already, or is the chain too long? */
static bool bad_chain(const Plan *p, Diags *d, const Style *const *chain, int n, const Style *own) {
    for (int i = 0; i < n; i++)
        if (chain[i] == own) {
            circle(p, d, own);
            return true;
        }
    if (n == MOST_CHAIN)
        diag_error(d, "E0203", own->loc, NULL,
                   "more than %d styles start from one another, up to '%s'", MOST_CHAIN, own->name);
    return n == MOST_CHAIN;
}

/* Lays the style `name` and everything it starts from into *out, the innermost first. A style of
 * the user's that has the name of a built-in one may start from it. */
static bool lay_named(const Plan *p, Diags *d, const char *name, Loc loc, const char *kind,
                      Style *out) {
    const Style *chain[MOST_CHAIN];
    int n = 0;
    const Style *own = find_own(p, name);
    while (own) {
        if (bad_chain(p, d, chain, n, own)) return false;
        chain[n++] = own;
        if (!own->base) break;
        bool itself = strcmp(own->base, own->name) == 0;
        const Style *next = itself && style_builtin(own->base) ? NULL : find_own(p, own->base);
        name = own->base;
        loc = own->base_loc;
        own = next;
    }
    if (!n || chain[n - 1]->base) {
        const StyleRow *row = style_builtin_for(name, kind);
        if (!row) {
            unknown_style(p, d, name, loc);
            return false;
        }
        *out = row->style;
    } else {
        out->name = chain[n - 1]->name;
    }
    while (n > 0) overlay(p->arena, out, chain[--n]);
    return true;
}

const Style *style_resolve_for(const Plan *p, Diags *d, const PlanLine *line,
                               const char *module_kind) {
    Style s = {.name = "custom",
               .use_local_output = -1,
               .use_local_input = -1,
               .per_module = -1,
               .sums = true};
    if (line->style.name && !lay_named(p, d, line->style.name, line->style_loc, module_kind, &s))
        return NULL;
    overlay(p->arena, &s, &line->style);
    s.loc = line->style_loc;
    s.base = NULL;
    return arena_memdup(p->arena, &s, sizeof s);
}
const Style *style_resolve(const Plan *p, Diags *d, const PlanLine *line) {
    return style_resolve_for(p, d, line, NULL);
}
