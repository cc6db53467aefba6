/* A parsed plan: what the YAML says, typed, with the place of everything, and nothing resolved
 * against a model yet. plan.c turns located YAML nodes into this through key tables; unknown keys
 * get a suggestion. It refuses to know what a style means (styles.c) or what a model looks like
 * (model.c). All strings live in the plan's arena. */
#ifndef SP_PLAN_PLAN_H
#define SP_PLAN_PLAN_H
#include "base/diag.h"
#include "kernel/tensor.h"
#include "layout/layout.h"
#include "trace/terms.h"

/* ---- placements as written ---- */
typedef enum {
    RP_NONE, /* null: leave alone */
    RP_REPLICATE,
    RP_SHARD, /* shard(d) or shard(letter) */
    RP_PARTIAL,
    RP_INVARIANT,
    RP_VARYING,    /* varying_use */
    RP_CONTIGUOUS, /* contiguous(d): the stored dim as it lies in memory */
    RP_LOCAL,
    RP_TOKENS, /* the flat list of tokens, batch times sequence, in parts */
    RP_HOME,   /* as what entered the module lies */
} RawKind;
typedef struct {
    RawKind kind;
    int dim;     /* stored dim as written, may be negative; unused if letter */
    char letter; /* shard(f): an atomic dim; 0: none */
    Loc loc;
} RawPlace;
/* One argument's placement: bare (on the style's axis) or a mapping of axis or group names. */
typedef struct {
    bool set; /* written at all (null counts as set with bare.kind RP_NONE) */
    bool mapping;
    RawPlace bare;
    int n;
    struct RawOn {
        const char *axis; /* of rows: NULL: the style's */
        RawPlace place;
        Loc loc;     /* of the axis name */
        bool if_any; /* of rows: says nothing where no axis or group has that name */
    } * on;
    Loc loc;
} RawSpec;
typedef struct {
    bool set;
    int n;
    RawSpec *arg; /* one per positional argument */
    Loc loc;
} RawList;
typedef struct {
    const char *name;
    RawSpec input, desired;
    Loc loc;
} RawKwarg;
typedef struct {
    const char *name;
    RawSpec spec;
    Loc loc;
} RawParam;

/* A style with its fields: a row of the table of styles, a user's style, or one line of `plan`. */
typedef struct Style {
    const char *name;    /* built-in or user style that it starts from */
    const char *axis;    /* NULL: default */
    const char *prefers; /* of rows: the axis or group it acts on without `axis`, if there is one */
    RawList input, desired_input, output, desired_output; /* output: as a list of one */
    RawSpec weight, bias;
    int n_params;
    RawParam *params;
    int n_kwargs;
    RawKwarg *kwargs;
    int use_local_output; /* -1 unset, 0, 1; what it changes: dtensor.h */
    int use_local_input;  /* the same, of the inputs of a style that prepares both */
    int per_module;       /* boundary: -1 unset, 0 shared, 1 per_module */
    bool bias_in_shares;  /* a row style whose bias no line places: see dtensor_bias */
    bool sums; /* the gradients of the parameters that it places are summed over its axes (a row of
                  the table says so; a style of the user's own that starts from no row: yes) */
    bool sums_blindly; /* by a hook that adds up what the ranks hold, due or not */
    bool bias_local;   /* bias: local */
    Loc loc;           /* of the style's name */
    const char *base;  /* a user's own style under `styles`: the style that it starts from (its
                          `style:`), or NULL */
    Loc base_loc;
    bool bad;     /* it starts from no style that there is: a diagnostic says so */
    bool misread; /* what it says could not all be read, here or where it starts: a diagnostic says
                     so */
} Style;

typedef struct {
    const char *pattern;
    const char *kind; /* for modules of that kind that no other line of the plan names, whatever
                         they are called; NULL: by pattern */
    Style style;
    Loc loc;       /* of the pattern */
    Loc style_loc; /* of the style's name */
    bool from_recipe;
    bool bad; /* its style is none: a diagnostic says why */
} PlanLine;

typedef struct {
    const char *step; /* name of a value or step */
    Loc loc;
    const char *doing; /* "drop" "double" "kind" "axis" "dim" "offset" "scale" */
    const char *kind, *axis;
    int64_t rank; /* -1: all ranks */
    Loc rank_loc;
    int64_t dim, offset;
    double scale;
} PlanFault;

typedef struct {
    const char *key, *text; /* name -> value as text */
    Loc loc, value_loc;
} PlanPair;

typedef struct {
    const char *key;
    Loc loc;
} PlanPlace;

typedef struct {
    Phase phase;
    const char *op;   /* "all_gather" */
    const char *axis; /* NULL: any */
    int64_t count;
    Loc loc;
} ExpectCollective;

typedef struct {
    bool set;
    int equivalent; /* -1 unset */
    Loc equivalent_loc, diagnostics_loc;
    const char *first_wrong;
    Loc first_wrong_loc;
    bool has_diagnostics;
    int n_diagnostics;
    const char **diagnostics;
    int n_shapes;
    PlanPair *shapes; /* local_shapes */
    int n_collectives;
    ExpectCollective *collectives;
    int64_t memory_per_rank; /* bytes; -1 unset */
    Loc loc, memory_loc;
} Expect;

typedef enum {
    NAMES_TORCHTITAN,
    NAMES_TORCHTUNE,
    NAMES_HF,
    NAMES_MEGATRON,
    NAMES_GGUF,
    NAMES_COUNT
} Names;

/* Whose word counts about moves and sums of gradients that no line asks for. */
typedef enum {
    TRUST_RULES,    /* they are made, and told: nobody may make them */
    TRUST_DECLARED, /* not made: the framework makes none, labels are believed */
    TRUST_COMPILER  /* made: a compiler inserts what layouts need, and needs nobody to ask */
} Trust;

/* What the forward pass keeps for the backward pass, and what that computes again. */
typedef enum {
    RECOMPUTE_NONE,
    RECOMPUTE_BLOCK, /* what leaves a block is kept, what is in it is computed again */
    RECOMPUTE_STAGE, /* of a pipeline: what enters a stage is kept, all it makes is computed again
                      */
} Recompute;

/* The layers of a pipeline's stage. */
typedef struct PlanStage {
    int n;
    const int *layer;
    Loc loc;
} PlanStage;

typedef struct Plan {
    Arena *arena;
    const char *file, *name;
    const char *dir; /* folder that relative paths start from */
    uint64_t hash;   /* of the text */

    /* model */
    const char *preset;
    Loc model_loc, preset_loc;
    const char *hf_config;
    Loc hf_config_loc;
    const char *kind; /* "mlp", "attention" or NULL */
    struct {
        int64_t heads, kv_heads, head_dim;
        const char *mask; /* "causal" */
    } attention;
    int n_sizes;
    int64_t *sizes;
    int mlp_bias; /* -1 unset, 0, 1 */
    bool mlp_scale;
    const char *activation;
    Loc activation_loc;
    int n_layer_names;
    const char **layer_names;
    const char *weights, *weights_prefix, *weights_names;
    Loc weights_loc;
    int layers_first, layers_last; /* half-open; last -1: all. Default [0,1) */
    bool layers_set;
    Loc layers_loc;
    int64_t shrink; /* 1: none */
    Loc shrink_loc;
    uint32_t parts; /* bits PART_*; 0 unset: blocks */
    Loc parts_loc;
    int rope_interleaved; /* -1 unset */
    int scores_apart;     /* -1 unset, 0 joint, 1 parts */
    Loc scores_loc;
    int64_t vocab_multiple;
    int n_ignore_config;
    const char **ignore_config;
    /* overrides for tests and examples: keys of a config given directly in `model` (hidden_size,
     * ...), as a JSON object text or NULL */
    const char *inline_config;
    PlanPlace *inline_key; /* where each of these keys stands, those inside others too */
    int n_inline_keys, cap_inline_keys;

    /* data */
    int64_t batch, sequence, rows; /* -1 unset */
    int64_t whole_batch;           /* of which `batch` is one micro-batch; 0: it is the whole */
    Loc batch_loc, sequence_loc;
    Dtype dtype;
    Loc dtype_loc;
    int execute; /* the Dtype in which numbers are computed; -1: that of the values */
    Loc execute_loc;
    int gradients_in; /* the Dtype in which gradients of parameters are held and sent; -1: dtype */
    int moments, master; /* the Dtype of the optimizer's state, and of the copy of the parameters
                            that it keeps beside them; -1: dtype, none */
    uint64_t seed;
    bool integers; /* random numbers are small and whole */
    const char *inputs;
    Loc inputs_loc;
    int64_t microbatches;
    struct PlanPacking {
        int n;
        int64_t *length;
    } * documents;   /* those that a row of tokens packs: of every row the same, or row by row */
    int n_documents; /* rows; 0: a row is one */
    bool documents_by_row;
    Loc documents_loc;
    bool input_gradient;
    const char *order_labels;             /* data.order.labels */
    const char *cut_batch, *cut_sequence; /* axis lists as written "dp*cp", or NULL */
    Loc cut_batch_loc, cut_sequence_loc;
    RawSpec block_input;

    /* mesh: axes in order, with places */
    int n_axes;
    struct PlanAxis {
        const char *name;
        int64_t size;
        Loc loc, size_loc;
    } * axes;
    Loc mesh_loc;
    int n_groups;
    PlanPair *groups; /* name -> axis or ordered product "dp*cp" (a YAML list becomes a product) */

    Names names;
    Loc names_loc;
    int n_lines;
    int line_errors; /* errors in `plan` and `styles`, which keep nothing else from being read */
    PlanLine *lines; /* recipe lines first */
    int n_styles;
    Style *styles; /* users' own: name + fields */
    const char *recipe;
    Loc recipe_loc;

    const char *loss_kind; /* NULL: default */
    Loc loss_loc;
    int64_t ignore_index;
    double label_smoothing;
    const char *normalise; /* "global" */
    Loc normalise_loc;

    PassKind pass;
    Loc pass_loc;
    struct {
        const char *name;
        double lr, beta1, beta2, eps, weight_decay, momentum, clip;
        int64_t steps;
        Loc steps_loc;
        Loc loc;
    } optimizer;
    struct {
        const char *mode, *form, *axis, *unit, *reduce, *grad_order, *replicate, *shard;
        const char *reshard, *grad_sync; /* words of sharding.c; NULL: not said */
        const char *reshard_over;        /* axes; NULL: those that cut parameters at rest */
        Loc loc, mode_loc, form_loc, axis_loc, unit_loc, reshard_loc, grad_sync_loc, replicate_loc,
            shard_loc, reshard_over_loc, dims_loc;
    } data_parallel;
    int n_dims;
    PlanPair *dims; /* of data_parallel: pattern, "0", "1", "2" or "whole" */
    struct {
        const char *mode, *order, *axis; /* "all_gather", "contiguous", "cp" */
        const char *backward;            /* ring: "final" or "chain" */
        bool keep_kv, rfa, latent;
        const char *ulysses, *ring; /* the axes that cut heads, and the ring's: NULL for none */
        Loc loc, mode_loc, order_loc, axis_loc, ulysses_loc, ring_loc, backward_loc, keep_kv_loc,
            rfa_loc, latent_loc;
    } context_parallel;
    struct {
        const char *schedule, *axis, *file; /* a name or a file of actions */
        const char *tied; /* a parameter of two stages: "send", "pair"; NULL: not said */
        int n_again;     /* what is computed again: one for all stages, or a list with one for each;
                            without again_loc as `recompute` says */
        bool again_each; /* it is a list */
        const Recompute *again;
        int64_t microbatches, chunks; /* 0: not given */
        int p2p_buffers;
        int n_stages, n_homes;
        const struct PlanStage *stages;
        const int *homes; /* of a file: the rank of each stage */
        Loc loc, schedule_loc, axis_loc, microbatches_loc, chunks_loc, stages_loc, file_loc,
            homes_loc, again_loc;
    } pipeline; /* loc.file NULL: there is none */
    struct {
        const char *routing;             /* "computed", a workload of routing.h, or a file */
        double capacity_factor;          /* 0: every row is kept */
        const char *capacity, *priority; /* "global", "order" */
        const char *dispatch;            /* how rows reach experts; NULL: not said */
        const char *axis, *etp; /* what cuts experts, and each inside: groups `ep` and `etp` then */
        const char *fsdp_dim;   /* "0" */
        const char *aux_loss;   /* "none" */
        double aux_coef, z_coef;
        Loc loc, routing_loc, capacity_loc, rule_loc, priority_loc, dispatch_loc, axis_loc, etp_loc,
            fsdp_dim_loc, aux_loc, aux_coef_loc, z_loc;
    } moe;
    Recompute recompute;
    bool save_gathered;
    Loc recompute_loc, save_gathered_loc;
    bool per_module;          /* boundary */
    const char *kv_replicate; /* "auto" */
    const char *hardware;
    Loc hardware_loc;
    Trust trust;
    int n_gradients;
    PlanPair *gradients;
    int n_faults;
    PlanFault *faults;
    Expect expect;
} Plan;

enum { PART_EMBEDDING = 1, PART_BLOCKS = 2, PART_NORM = 4, PART_HEAD = 8, PART_LOSS = 16 };

/* One `--set key=value` of the command line. */
typedef struct {
    const char *key, *value; /* no value: the key is as if the plan did not say it */
} PlanSet;

/* A plan as it is given: n bytes of YAML, the name of the file for diagnostics, and what the
 * command line sets in it. */
typedef struct {
    const char *file, *text;
    size_t n;
    const PlanSet *sets;
    int n_sets;
} PlanText;
/* A terminated text, in which nothing is set. */
PlanText plan_text(const char *file, const char *text);
/* A plan as it is when nothing is written: every key at its default, no mesh, no model. */
Plan *plan_new(Arena *arena, const char *file);
/* Parses a plan into `arena`. Always returns a Plan (with defaults where something was wrong);
 * errors are in `d`. What is set is applied to the YAML tree before it is read; an unknown key in
 * it is reported with the file name "--set". */
Plan *plan_parse(Arena *arena, Diags *d, PlanText given);
/* Parses one placement like `shard(1)` into *out; false and a diagnostic at `loc` if it is none. */
bool plan_parse_place(Arena *arena, Diags *d, const char *text, Loc loc, RawPlace *out);
/* "shard(1)" of "Shard(dim=1)", "S(1)" or "shard1": a placement as it is written here; NULL: the
 * text is none. */
const char *plan_place_meant(Arena *a, const char *text);
/* Is it one of the names that axes have everywhere (dp, tp, ep, ..)? None of them is a slip of
 * another, however near they are by letters. */
bool plan_is_axis_word(const char *name);
/* What an axis of that name in other frameworks is called here ("model": "tp"); NULL: nothing
 * known.
 */
const char *plan_axis_of_others(const char *name);
/* The axis of which a setting of another framework gives the size: "tp" of
 * tensor_model_parallel_size, tensor_parallel_degree and tp_size. NULL: it is none. */
const char *plan_axis_of_size(Arena *a, const char *name);
/* The one of `names` (which end with NULL) that was meant by an axis `name`: what another framework
 * calls it, or nearly it. NULL: none. */
const char *plan_axis_nearest(const char *name, const char *const *names);
/* "embedding, blocks" of PART_*, in `a`. */
const char *plan_parts_text(Arena *a, uint32_t parts);
/* `loss: {normalise: local_mean}`. */
bool plan_local_means(const Plan *p);
/* Does a key of the plan ask for what is not the unsharded model: `normalise: local_mean`,
 * `aux_loss: per_shard`? */
bool plan_asks_wrong(const Plan *p);
/* Such keys say what is right: `global`, `exact`. */
void plan_ask_right(Plan *p);
/* The scheme's name: "torchtitan". */
const char *plan_names_text(Names n);
const char *plan_trust_text(Trust t);
/* Where a plan speaks of all ranks: its mesh; its first line, where the mesh is an option. */
Loc plan_place(const Plan *p);
/* The dtype in which a run computes: that of the values, or the one of `data: {execute}`. */
Dtype plan_executes_in(const Plan *p);

/* ---- styles (styles.c) ---- */
/* What of a module is DTensors in a style of PyTorch's; outside of it, without `use_local_output:
 * false`, tensors are plain. */
typedef enum {
    TORCH_NOT,    /* no style of PyTorch's */
    TORCH_LAYER,  /* parameters, inputs and result */
    TORCH_INPUT,  /* the inputs that it moves; use_local_output speaks of them, by default it is
                     false */
    TORCH_OUTPUT, /* the result that it moves */
    TORCH_BOTH,
    TORCH_LOSS, /* the logits must come as DTensors */
} TorchKind;
/* What Hugging Face's library (transformers 5.23) makes of a tensor under one of its styles: by the
 * tensor's own dims, whatever module it is of. */
typedef enum {
    HF_NOT,      /* no style of that version */
    HF_PLAIN,    /* a whole plain tensor */
    HF_DISPATCH, /* the same, of a module whose tokens go to the ranks of their experts */
    HF_COLUMN,   /* the dim before the last is cut; of one dim, that */
    HF_ROW,      /* the last dim; a bias is a whole DTensor */
    HF_FIRST,    /* dim 0 */
    HF_SECOND,   /* dim 1 */
} HfCut;
/* Built-in styles, as rows: name, what they do, default fields. NULL-name terminated. */
typedef struct {
    Style style;
    const char *what;
    /* labels that the style makes by default */
    const char *module_kind; /* a variant for modules of this kind ("embedding": GModule.kind), or
                                NULL: for all others */
    TorchKind torch;
    HfCut hf;
    const char *hf_also; /* its older name in that library; may be NULL */
    int hf_blocks;       /* parts of the dim, each cut by itself (gate and up); 0: it is one */
    bool hf_linear; /* its hook asks the module for its features: that of another kind is refused */
    bool relays;    /* of a DTensor PyTorch asks where it lies, and moves it: the label is for plain
                       ones */
    const char *before,
        *after; /* the file of PyTorch that hangs a hook on the module, which runs before and after
                   its forward: api (distribute_module), style; NULL: none does */
    const char *aliases; /* other names, with a blank between: "ColwiseParallel column_parallel";
                            may be NULL */
} StyleRow;
const StyleRow *style_rows(int *n); /* *n of them, constant */
/* The built-in row of a name (aliases included: "ColwiseParallel", "colwise_rep"), or NULL. */
const StyleRow *style_builtin(const char *name);
/* The same for a module of that kind: its own variant if there is one. */
const StyleRow *style_builtin_for(const char *name, const char *module_kind);
/* What Hugging Face's library makes of parameters under a style of that name; HF_NOT: it has none
 * such. *blocks and *linear as in its row. */
HfCut style_hf(const char *name, int *blocks, bool *linear);
/* A line's style laid over the row it names (built-in or the plan's own): fields of the line win.
 * NULL and a diagnostic with the nearest name if it does not exist. The result's `name` is that of
 * the built-in style underneath ("colwise", also for "ColwiseParallel" and for a style of the
 * user's own that starts from it), else the user's; a line that gives fields without `style:` has
 * the name "custom". It lives in the plan's arena. */
const Style *style_resolve(const Plan *p, Diags *d, const PlanLine *line);
/* The same for a module of that kind (rowwise on an embedding cuts the vocabulary). NULL: any. */
const Style *style_resolve_for(const Plan *p, Diags *d, const PlanLine *line,
                               const char *module_kind);

/* The style, built-in or the plan's own, that was meant by a name that is none; NULL: none is near.
 * In the plan's arena. */
const char *style_nearest(const Plan *p, const char *name);
/* The style that does what is written in its place: "rowwise" of "Shard(1)", "replicate" of
 * "Replicate()"; NULL: nothing known. */
const char *style_instead(const Plan *p, const char *name);
/* " (of an embedding `rowwise`)" of "colwise": there the other style cuts that dim of the weight;
 * "" of a style that cuts none. */
const char *style_of_embedding(Arena *a, const char *style);

/* ---- what a plan can say (keys.c, place.c) ---- */
typedef struct {
    const char *path;  /* "data.batch", "plan.PATTERN.output" */
    const char *takes; /* "a whole number from 1"; words; may be empty */
    bool choices;      /* takes is a list of words, "rules, declared" */
    const char *what;  /* may be empty */
} KeyRow;
/* All keys in the order of the tables, those below a key behind it; in the arena. */
const KeyRow *plan_key_rows(Arena *a, int *n);
/* A placement as plans write it, and what it means. */
typedef struct {
    const char *word, *theirs, *what; /* theirs: PyTorch's way, or NULL */
} PlaceWord;
const PlaceWord *plan_place_words(Arena *a, int *n); /* *n of them, in the arena */

/* ---- recipes (recipes.c) ---- */
/* A whole table of a known system: `pattern: style` lines as YAML, in that system's names. */
typedef struct {
    const char *name, *what;
    Names names;
    const char *lines; /* NULL: known, but not runnable by this version (MoE) */
} RecipeRow;
const RecipeRow *plan_recipes(int *n); /* *n of them, constant */
/* The help where a recipe's name stands among the lines of a plan; NULL: it is no recipe's. */
const char *recipe_instead(Arena *a, const char *name);
/* ---- patterns ---- */
/* Does the pattern match the whole path? One component per path component, as fnmatch(3): no
 * wildcard crosses a dot. */
bool plan_match(const char *pattern, const char *path);
/* Does pattern a beat b? 1: yes, -1: b beats a, 0: the later line wins. Exact beats wildcard, then
 * fewer wildcards. */
int plan_pattern_order(const char *a, const char *b);
/* A path with its layer's number as `*`, as a plan's line says it; in the arena. */
const char *plan_pattern_of(Arena *a, const char *path);
/* The axis of a pipeline that names none. */
#define PLAN_PIPELINE_AXIS "pp"
/* The file of a Loc that is in an override, and whether one is (set.c). */
#define PLAN_SET_FILE "--set"
bool plan_from_set(Loc l);
#endif
