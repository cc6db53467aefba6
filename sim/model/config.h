/* Private to the room: a config while it is being read. config.c has the keys and what all models
 * share, config_family.c what families have of their own. */
#ifndef SP_MODEL_CONFIG_H
#define SP_MODEL_CONFIG_H
#include "formats/json.h"
#include "model/build.h"

enum { UNSET = -1 };
/* A key that only some families have, as it was met. */
typedef struct {
    const char *name;
    unsigned has;
    bool off;
} MetKey;
enum { MAX_MET = 64 };
/* What the keys say, before defaults. Whole numbers: UNSET; reals: below 0. */
typedef struct {
    int64_t D, F, L, H, K, d, V, max_positions, E, top_k, Fe, sparse_step;
    int norm_topk;     /* UNSET, 0, 1 */
    const Json *dense; /* a list of layers */
    double eps, theta, theta_inside, partial, windowed_theta, windowed_theta_inside;
    double layer_eps, logit_scale, rotary_pct, rotary_base;
    int parallel, scale_scores; /* use_parallel_residual, scale_attn_weights */
    double norm_eps, query_scalar, cap_scores, cap_logits, clip_qkv; /* caps: UNSET; null: 0 */
    bool rope_given,
        by_layer_type; /* there is an object of rope keys; it has one per kind of layers */
    int tied;          /* UNSET, 0, 1 */
    int attention_bias, mlp_bias, use_window; /* UNSET, 0, 1 */
    int qk_norm, q_bias, k_bias, v_bias, o_bias, gate_bias, up_bias, down_bias, packed_mlp;
    const char *activation, *model_type, *rope_type, *hidden_activation, *windowed_type;
    double rope_factor, rope_low, rope_high, rope_old_ctx;
    double beta_fast, beta_slow, mscale, mscale_all, attention_factor;
    int truncate;
    int64_t q_rank, kv_rank, nope, rope, v_dim, qk_dim; /* latent attention */
    int rope_interleave;
    int64_t n_shared, shared_width, groups, top_groups;
    double scaling;
    const char *topk_method, *scoring, *selection, *combination, *router;
    int64_t F_dense, chunk, unrotated_every, floor_scale, experts_every, experts_from;
    double attn_scale, swiglu_limit, swiglu_alpha;
    int tuning, use_qk_norm;
    const Json *rotates, *experts, *layer_types, *mlp_types; /* lists of a file */
    int out_bias, all_bias;                                  /* attention_out_bias, use_bias */
    double embedding_multiplier, attention_multiplier, residual_multiplier, logits_scaling;
    int64_t window_from; /* max_window_layers */
    MetKey met[MAX_MET];
    int n_met;
    const Json *stretch_short, *stretch_long; /* lists of numbers */
    double old_ctx;      /* original_max_position_embeddings beside the rope keys */
    const Json *pattern; /* sliding_window_pattern: a number, or text that layer_types repeats */
    bool no_kv_heads;    /* num_key_value_heads is null */
    bool windowed, no_window; /* sliding_window has a value, or is written and off */
    int64_t window;           /* its value */
    Loc windowed_loc;
} Raw;

/* Model families, by what tells them apart here: who has biases and a q/k norm, which keys are
 * theirs, and Hugging Face's defaults. */
enum { NEVER, BY_CONFIG, ALWAYS, ALWAYS_UNLESS }; /* UNLESS: the config says no */
/* Attention within a window: never, though the key may be there (it is refused, where it would
 * matter); at once, 4096 without the key; where the key has a value; the same in the layers that
 * layer_types names; where use_sliding_window says so, in layers from max_window_layers on; so in
 * layers without rotation; in the layers that layer_types names, or all but each so many-th, and
 * then only these rotate, or without a window all; or all rotate; or only these, and without a
 * window none; or all rotate, and the first of so many has no window; or only these, and the first
 * two, each fourth from the second on and the last have no window. */
enum {
    WINDOW_KEY,
    WINDOW_ALWAYS,
    WINDOW_GIVEN,
    WINDOW_TYPES,
    WINDOW_SWITCHED,
    WINDOW_UNROTATED,
    WINDOW_ROTATED,
    WINDOW_PATTERN,
    WINDOW_ONLY_ROTATED,
    WINDOW_BUT_FIRST,
    WINDOW_AFTER_TWO,
};
/* Keys that families have: HAS_SPARSE which layers have experts (decoder_sparse_step,
 * mlp_only_layers), HAS_NOPE which do not rotate, HAS_OUT_BIAS attention_out_bias, HAS_ONE_BIAS
 * use_bias for all, HAS_MULTIPLIERS Granite's four numbers, HAS_PATTERN sliding_window_pattern,
 * HAS_CAPS Gemma's keys of soft caps, softmax scale and activation, HAS_TWO_THETAS the rotation of
 * layers with a window apart, HAS_LOCAL_FREQ Gemma's key for its base, HAS_LAYER_EPS
 * layer_norm_eps, HAS_LOGIT_SCALE Cohere's, HAS_GPT2 GPT-2's keys, HAS_QK_SWITCH its use_qk_norm,
 * HAS_ROTARY_PCT GPT-NeoX's keys, HAS_NORM_EPS norm_eps, HAS_CLIP clip_qkv, HAS_LONGROPE two lists
 * of divisors and the old context, HAS_DEEPSEEK_EXPERTS DeepSeek's counts of experts, HAS_MLP_TYPES
 * a list of which layers have experts, HAS_ARIA, HAS_HY3 and HAS_GPT_OSS their names of these
 * counts and more, HAS_SHARED_WIDTH how wide the expert of all tokens is, HAS_COHERE_EXPERTS
 * Cohere's words of its router and dense layers. */
enum {
    HAS_LATENT = 1,
    HAS_CHUNKS = 2,
    HAS_EXPERTS = 4,
    HAS_SPARSE = 8,
    HAS_NOPE = 16,
    HAS_OUT_BIAS = 32,
    HAS_ONE_BIAS = 64,
    HAS_MULTIPLIERS = 128,
    HAS_PATTERN = 256,
    HAS_CAPS = 512,
    HAS_TWO_THETAS = 1024,
    HAS_NORM_EPS = 2048,
    HAS_CLIP = 4096,
    HAS_LONGROPE = 8192,
    HAS_LOCAL_FREQ = 16384,
    HAS_LAYER_EPS = 32768,
    HAS_LOGIT_SCALE = 65536,
    HAS_QK_SWITCH = 131072,
    HAS_ROTARY_PCT = 262144,
    HAS_GPT2 = 524288,
    HAS_DEEPSEEK_EXPERTS = 1 << 20,
    HAS_MLP_TYPES = 1 << 21,
    HAS_ARIA = 1 << 22,
    HAS_HY3 = 1 << 23,
    HAS_GPT_OSS = 1 << 24,
    HAS_SHARED_WIDTH = 1 << 25,
    HAS_COHERE_EXPERTS = 1 << 26,
};
/* What its layers are like, beside the usual: norms before, a gate, weights of norms as they are.
 */
enum {
    SHAPE_UNGATED = 1,
    SHAPE_NORM_PLUS = 2,           /* norms multiply by 1 + w */
    SHAPE_INPUT_SQRT = 4,          /* the embedding times sqrt(D) */
    SHAPE_TANH_GELU = 8,           /* a config that says gelu means its approximation */
    SHAPE_NORMS_AFTER = 16,        /* norms of what branches add, none before them */
    SHAPE_LAYERNORM = 256,         /* mean and variance; with NORM_PLUS 1 + w and a bias, */
    SHAPE_NORM_BARE = 512,         /* or without weights */
    SHAPE_XIELU = 1024,            /* xIELU is an activation that its configs may name */
    SHAPE_NORMS_AROUND = 32,       /* norms before branches and of what they add */
    SHAPE_PACKED_QKV = 128,        /* queries, keys and values are one weight */
    SHAPE_PACKED_MLP = 64,         /* gate and up are one weight */
    SHAPE_PARALLEL = 4096,         /* both branches read the input, each through a norm, */
    SHAPE_NORM_SHARED = 8192,      /* or through one */
    SHAPE_NORM_PLAIN = 16384,      /* LayerNorms without a bias */
    SHAPE_QKV_BY_HEAD = 32768,     /* queries, keys and values are one weight, head by head */
    SHAPE_LEARNED = 65536,         /* positions have a table, and nothing turns */
    SHAPE_TURNED = 131072,         /* linear layers are stored input dim first */
    SHAPE_QK_WIDE = 2048,          /* the q/k norm is over all heads at once */
    SHAPE_SINKS = 524288,          /* attention sinks */
    SHAPE_EXPERT_BIASES = 1 << 20, /* router and experts have biases; pairs of gate and up */
    SHAPE_EXPERTS_TURNED = 262144, /* experts are stored input dim first */
};
/* The stretched rotation that a family's files mean when they say nothing. */
typedef struct {
    const char *type;
    double factor, low, high, old_ctx;
    int truncate; /* UNSET, 0, 1 */
} OwnRope;
typedef struct {
    const char *type;
    uint8_t qkv, o, mlp; /* biases */
    bool qk_norm;
    unsigned has;
    RopeOrder order;
    double eps, theta;
    Naming naming;
    /* what a file that has no such key means; 0: num_attention_heads, hidden_size by heads */
    int64_t kv_heads, head_dim;
    uint8_t window;         /* WINDOW_ of the above */
    unsigned shape;         /* SHAPE_ of the above */
    const char *activation; /* without the key; NULL: "silu" */
    bool tied;              /* without the key */
    int64_t pattern;        /* without layer_types each so many-th layer has no window; 0: 4 */
    /* without the keys */
    double cap_scores, cap_logits, query_scalar, windowed_theta, logit_scale;
    const OwnRope *rope; /* without an object of rope keys; NULL: the default rotation */
    int64_t window_size; /* without the key; 0: 4096 */
    int64_t dense;       /* without mlp_only_layers so many layers at the start have no experts */
    unsigned whole;      /* MODULES_ that it has, and its shipped plan leaves whole */
    /* the part of a head that turns, without the key; 0: all, and there is no key */
    double partial;
} Family;

/* One config being read. */
typedef struct {
    Arena *a;
    Diags *d;
    const Plan *p;
    const char *file, *text; /* file NULL: keys written in the plan */
    Raw *raw;
    bool all_read; /* what counts is what the keys of all say: those written in the plan win */
} Config;

/* A key that a family cannot do without. */
typedef struct {
    const char *key;
    int64_t value;
} Required;

/* ---- config_error.c ---- */
/* Where a key stands: the first place where it is written as a key, in the plan or the file. */
Loc config_key_loc(const Config *c, const char *key);
/* E0207: the key, followed by `what`, is not understood. */
void config_changes_maths(Config *c, const char *key, const char *what);
/* Are all given? Each that is not is an error. */
bool config_all_given(Config *c, const Required *x, int n);

/* ---- config_family.c ---- */
/* The family that model_type names; llama's without one. An unknown one is an error. */
const Family *config_family(Config *c, const Raw *r);
/* What a preset says that only its family has. */
void config_family_preset(const Preset *s, Raw *r);
/* Which layers are of which kind; chunks, temperature and the L2 norm of q and k. Reads m->L. */
void config_layer_kinds(Config *c, const Family *f, const Raw *r, ModelDims *m);
/* The sizes of latent attention. */
void config_latent(Config *c, const Raw *r, ModelDims *m);

/* ---- config_experts.c ---- */
/* The width of experts where all layers of the family have them, and intermediate_size is nobody's;
 * 0: it is somebody's. */
int64_t config_only_experts(const Family *f, const Raw *r);
/* Experts, their router and the shared expert. Reads m->F, m->L and which layers have experts. */
void config_experts(Config *c, const Family *f, const Raw *r, ModelDims *m);
#endif
