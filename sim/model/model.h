/* From a preset, a Hugging Face config or `kind: mlp` to a graph. */
#ifndef SP_MODEL_MODEL_H
#define SP_MODEL_MODEL_H
#include "layout/mesh.h"
#include "model/graph.h"
#include "plan/plan.h"

/* What tells the layers of a model apart. A list has L entries, or is NULL: then the numbers say
 * it.
 */
typedef struct {
    const bool *rotates, *chunked, *experts, *windowed;
    int64_t unrotated_every;             /* each so many-th layer has no rotation; 0: all rotate */
    int64_t experts_from, experts_every; /* layers with experts: this one, and each so many-th after
                                            it; every 0: none */
} LayerKinds;
/* YaRN's numbers. Magnitudes of 0 are not given. */
typedef struct {
    double fast, slow, mscale, mscale_all, attention_factor;
    bool truncate;
} Yarn;

/* How a layer with experts chooses, and what a choice weighs. */
typedef struct {
    bool sigmoid; /* scores are sigmoids of the logits, not a softmax */
    bool all;     /* softmax: over all experts, not over the chosen */
    bool share;   /* sigmoid: divided by the sum of the chosen */
    bool bias;    /* a buffer is added to the scores that selection looks at */
    bool first;   /* the weight multiplies what an expert gets, not what it puts out */
    int64_t groups, top_groups; /* experts stand in groups, of which so many stay; 0: none */
    double factor;              /* on the weights of sigmoids */
} Router;

enum { NORMS_BEFORE = 1, NORMS_AFTER = 2 };
/* What norms are: of the root mean square, or of mean and variance; PLUS: weights are stored less
 * 1; BARE: there are no weights. */
typedef enum { NORM_RMS, NORM_RMS_PLUS, NORM_LAYER, NORM_LAYER_PLUS, NORM_LAYER_BARE } NormKind;
/* Whose names parts of a layer have in Hugging Face (graph.c has the table). */
typedef enum {
    NAMING_LLAMA,
    NAMING_LLAMA4,
    NAMING_GLM4,
    NAMING_GEMMA,
    NAMING_APERTUS,
    NAMING_NEOX,
    NAMING_GPT2,
    NAMING_ROUTER, /* the router's module is called that */
    NAMING_HY3,
    NAMING_GPT_OSS,
    NAMING_FLINT
} Naming;
/* What a preset or config says; sizes after `shrink`. */
typedef struct ModelDims {
    const char *name;
    bool mlp;      /* kind: mlp: only n_sizes, sizes, mlp_bias, activation count */
    bool core;     /* kind: attention: only B, S, H, K, d count */
    bool unmasked; /* every query sees every key */
    int n_sizes;
    int64_t *sizes;
    int64_t B, S, D, L, H, K, d, F, V;
    int64_t vocab; /* ids that exist; V is this padded to `vocab_multiple` */
    int64_t full_D, full_d, full_F, full_V; /* before shrink */
    int first_layer, last_layer;            /* half-open range that is built */
    bool qk_norm, q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias, mlp_bias, tied;
    bool parallel;        /* both branches of a layer read its input */
    bool norm_shared;     /* through one norm */
    bool head_weights;    /* q/k norms are LayerNorms with weights [H, d] and [K, d] */
    bool qkv_by_head;     /* queries, keys and values are one weight, [H*3*d, D], head by head */
    bool learned;         /* positions have a table of their own, [max_positions, D] */
    bool turned_linear;   /* linear layers of the blocks are stored input dim first */
    bool qk_wide;         /* the q/k norm is one over all heads, [H*d] and [K*d] */
    bool packed_qkv;      /* queries, keys and values are one weight of [(H + 2*K)*d, D] */
    bool packed_mlp;      /* gate and up are one weight of [2*F, D] */
    int64_t E, top_k, Fe; /* experts (0: none), experts per token, an expert's width; F is that of
                             the dense layers */
    Router router;
    bool routed;         /* another input than the router's own logits says who goes where */
    bool balanced;       /* a term of the loss wants experts equally busy */
    bool balanced_apart; /* which each rank makes of its own tokens */
    bool capped, capped_locally; /* an expert takes so many rows: of all tokens, of a rank's */
    int64_t ranks_of_experts;    /* size of `ep`, or 1 */
    int64_t shared;              /* width of the expert that all tokens go to; 0: there is none */
    int64_t sparse_step;         /* every how many layers experts stand */
    const int64_t *dense;        /* n_dense layers that have none */
    int n_dense;
    bool experts_packed;    /* their gate and up are one weight [E, 2*Fe, D] */
    bool turns;             /* some schemes' files have them input dim first (names_turn_experts) */
    bool experts_turned;    /* stored input dim first: [E, D, 2*Fe], [E, Fe, D] */
    const char *activation; /* "silu" */
    double eps, rope_base;
    bool rope_interleaved;
    bool scores_apart;     /* of latent attention: a score is the sum of two products */
    RopeOrder order;       /* of the pairs that turn together */
    const char *rope_type; /* "default", "linear", "llama3", "yarn" */
    double rope_factor, rope_low, rope_high, rope_old_ctx;
    Yarn yarn;
    /* LongRoPE: what frequencies are divided by, up to rope_old_ctx positions and beyond; n_stretch
     * of each, or NULL */
    const double *stretch_short, *stretch_long;
    int n_stretch;
    int64_t max_positions;
    /* Latent attention: kv_rank > 0. Then d = nope + rope. q_rank 0: q straight from the input. */
    int64_t q_rank, kv_rank, nope, rope, v_dim;
    int64_t turned; /* how many elements of a head turn, the first: d, a part of it, or rope */
    double partial; /* that part; 0: all */
    bool qk_l2;     /* q and k are normalised after the rotation, without weights */
    int64_t chunk;  /* positions per chunk of layers that attend within chunks; 0: none do */
    int64_t window; /* positions that a query of a windowed layer sees, itself included; 0: all */
    bool window_unread; /* the family's code has no window: more positions than that are refused */
    Loc window_loc;
    const AttentionPacking *documents; /* that each row packs; NULL: it is one */
    int64_t temperature_floor;         /* of layers without rotation, positions per step; 0: none */
    double temperature_scale;
    Naming naming;  /* where Hugging Face's names are not Llama's */
    unsigned norms; /* NORMS_ of each branch; 0 in models without blocks */
    bool xielu;     /* the activation is that one, which has weights of its own */
    bool ungated;   /* the feed-forward part is two weights: no gate */
    NormKind norm;
    bool input_sqrt;                                /* the embedding is multiplied by sqrt(D) */
    double input_scale, branch_scale, logits_scale; /* 0: 1 */
    double softmax_scale;                           /* 0: 1/sqrt(d) */
    double cap_scores, cap_logits;                  /* they are cap tanh(x / cap); 0: as they are */
    bool sinks; /* attention's softmax has one more logit for each head, a parameter */
    bool
        expert_biases; /* router and experts have biases; gate and up stand pair by pair, limited */
    double swiglu_limit, swiglu_alpha; /* of these */
    double clip_qkv; /* queries, keys and values stay within -clip .. clip; 0: no */
    bool norm_bias;
    double windowed_base; /* rope_base of layers with a window, unscaled; 0: that of the others */
    LayerKinds layers;
} ModelDims;
/* Of layer i of the whole model. */
bool model_rotates(const ModelDims *m, int64_t i);
bool model_chunked(const ModelDims *m, int64_t i);
bool model_windowed(const ModelDims *m, int64_t i);
bool model_has_experts(const ModelDims *m, int64_t i);

typedef struct Model {
    ModelDims dims;
    Graph g;
    uint32_t parts;
} Model;

/* Adds the error of a preset that does not exist or cannot be run: a plan stopped by other mistakes
 * is told of it in the same go. */
void model_check_preset(Arena *a, Diags *d, const Plan *p);
/* A preset's row, for `list models`. */
typedef struct {
    const char *name, *what;
    int64_t D, L, H, K, d, F, V;
    double eps, rope_base;
    bool qk_norm, qkv_bias, tied;
    const char *rope_type;
    double rope_factor, rope_low, rope_high, rope_old_ctx;
    int64_t max_positions;
    int64_t window;       /* positions that a query sees in layers that have a window; 0: all */
    int64_t E, top_k, Fe; /* experts, experts per token, their width; 0: none */
    const char *family;   /* model_type, where it is not llama's mathematics */
    int64_t q_rank, kv_rank, nope, rope, v_dim;
    Yarn yarn;
    int64_t chunk, unrotated_every, experts_from, experts_every;
    bool no_qk_l2;
} Preset;
const Preset *model_presets(int *n);
/* What to write in place of a name that is no preset: the one that a hub's name means
 * ("meta-llama/Llama-3.1-8B-Instruct"), or that is nearly it, or where they are listed. In `a`, or
 * static. */
const char *model_preset_hint(Arena *a, const char *name);
/* The same for a name that is no activation: the one that is nearest to it, or where they are
 * listed. */
const char *model_activation_hint(Arena *a, const char *name);
/* Is this `model_type` of a config one that can be built (config_family.c)? */
bool model_family_runs(const char *type);
/* Modules that its blocks have, as MODULES_; 0: it cannot be built. */
enum {
    MODULES_ANY = 1,
    MODULES_QK_NORM = 2,
    MODULES_GATE = 4,
    MODULES_UP = 8,          /* in a weight of its own, */
    MODULES_PACKED_MLP = 16, /* or in one with the gate */
    MODULES_QKV = 32,        /* each in a weight of its own, */
    MODULES_PACKED_QKV = 64, /* or all in one */
    MODULES_LATENT = 2048,   /* of low rank, or made of one such value */
    MODULES_SHARED = 4096,   /* an expert that all tokens go to, if there is one */
    MODULES_EMBEDDING = 16384,
    MODULES_SHARED_ONE = 65536,     /* that expert, where its module is called shared_expert */
    MODULES_EXPERTS_BIASED = 32768, /* experts that have biases */
    MODULES_EXPERTS_TURNED = 8192,  /* as MODULES_EXPERTS, stored input dim first */
    MODULES_UNSHIPPED = 1024,       /* the library ships no plan */
    MODULES_NEOX = 512,             /* none of the above: those of GPT-NeoX, by its own names */
    MODULES_QKV_WHOLE = 256,        /* each in its own, and all heads are needed at once */
    MODULES_EXPERTS = 128, /* in some layers or all: which modules there are, the config says */
};
unsigned model_family_modules(const char *type);
/* What to do with a config.json that does not run itself: a model of several kinds of input has the
 * config of its language model inside, `text_config`. NULL: there is none that runs. In `a`. */
const char *model_config_inside(Arena *a, const char *text, size_t n);

/* Builds the model of a plan. Errors (unknown preset, config keys that change the mathematics,
 * heads, sizes) go to `d`; NULL if there were any. `mesh` is needed for shrink (sizes stay
 * multiples of the axes that may cut them), finished and before splits; without shrink it may be
 * NULL. Lives in `arena`. */
Model *model_build(Arena *arena, Diags *d, const Plan *p, const Mesh *mesh);

/* Appends the optimizer of the plan to the graph: for each parameter its state, the update and,
 * with `clip`, the global gradient norm; their nodes follow those of the model (g.nn_model).
 * Nothing if the plan does not train. False and diagnostics for an optimizer that does not exist.
 */
bool model_add_optimizer(Arena *arena, Diags *d, const Plan *p, Model *m);

/* ---- rotation.c ---- */
/* Rotary frequencies base^(-2i/d) after scaling by the type of the plan ("linear", "llama3",
 * "yarn": the formulas of Hugging Face's modeling_rope_utils.py), radians per position, one for
 * each pair of the d elements that turn, in `arena`. */
const double *model_inv_freq(Arena *arena, const ModelDims *m);
/* What cos and sin are multiplied by: 1, but with YaRN and LongRoPE. */
double model_turn(const ModelDims *m);
/* What scores are multiplied by: 1/sqrt(d), but in latent attention with YaRN. */
double model_softmax_scale(const ModelDims *m);

/* ---- names (names.c): module trees of the five schemes ---- */
/* Rewrites a canonical module or parameter path of Hugging Face ("model.layers.0.self_attn.q_proj")
 * into the scheme. Containers that the scheme has not got give NULL. */
const char *names_to_scheme(Arena *arena, Names n, const char *hf_path);
/* Do files of the scheme have Llama 4's experts with the input dim first, [E, D, F]? */
bool names_turn_experts(Names n);
/* The same of a graph's own name ("model.layers.0.moe.gate"): Hugging Face's but where that would
 * stand for two things. */
const char *names_of_own(Arena *arena, Names n, const char *path);
/* The way back: a path of the scheme as Hugging Face's, or NULL. A name may stand for modules of
 * different models ("layers.*.attention.q_norm"): `reading` 0 is the first meaning, NULL ends. */
const char *names_from_scheme(Arena *arena, Names n, const char *path, int reading);
/* The module that is this one (Hugging Face's path) and those beside it in one, where a model has
 * it so: "decoder.layers.0.mlp.linear_fc1" of gate_proj or up_proj. NULL: there is none. */
const char *names_together(Arena *arena, Names n, const char *hf_path);
/* The scheme that the names of a checkpoint's tensors follow ("layers.0.attention.wq.weight";
 * without a prefix), by most matches over the modules of the layers; -1 if none matches. */
int names_recognise(const char *const *names, int n);
/* The table for `list names`: rows of (what, five names). */
typedef struct {
    const char *what;
    const char *name[NAMES_COUNT];
} NamesRow;
const NamesRow *names_table(int *n);
/* The part of a model that has the row's module outside its layers: PART_EMBEDDING, PART_NORM or
 * PART_HEAD; 0: a layer has it. */
uint32_t names_part(const NamesRow *row);

/* ---- checkpoints (checkpoint.c) ---- */
/* The i-th other name, from 0, that published files have for a Hugging Face name of a layer with
 * experts ("..block_sparse_moe.gate.weight"); NULL: there is no more. */
const char *checkpoint_alias(Arena *arena, const char *name, int i);
/* The way back: the library's own name. */
const char *checkpoint_own(Arena *arena, const char *name);
/* The tensors of a file that a parameter of experts is made of, one after the other as they lie, by
 * the first or second way (0, 1) to name them: how many, 0: it is no such parameter. */
int checkpoint_parts(Arena *arena, const GTensor *t, int way, const char ***names);

/* Index of the tensor called `name` (name, alias, plan name, checkpoint name, "MODULE.input" /
 * "MODULE.output" in the plan's scheme or Hugging Face's; with or without "model."), or -1. */
int graph_find(const Graph *g, const char *name);
/* Stored shape of a tensor: *n dims, into shape[LAYOUT_MAX_DIMS]; each is the product of its
 * letters. */
void graph_stored_shape(const GTensor *t, int *n, int64_t *shape);
/* Plain symbol text of one stored dim (0 to nstored - 1), "H*d"; in `arena`. */
const char *graph_stored_symbol(const GTensor *t, int dim, Arena *arena);
#endif
