/* Private to the room: what the files that build a graph share. Nobody outside sim/model includes
 * this. A shape is written as text: "b t kgx" has three stored dims, the last of them made of the
 * letters k, g, x. */
#ifndef SP_MODEL_BUILD_H
#define SP_MODEL_BUILD_H
#include "model/model.h"
#include "model/spelling.h"

enum { MODEL_MAX_BUILT_LAYERS = 10000, MODEL_MAX_RING = 255 };

/* What a letter stands for in this model. */
typedef struct {
    const char *sym; /* "D"; NULL: the letter is not used */
    int64_t size;
    DimRole role;
} LetterSize;

struct NodeRow;
/* A graph under construction. */
typedef struct {
    Arena *a;
    Diags *d;
    const Plan *p;
    const ModelDims *m;
    Graph *g;
    Attrs at; /* constants of the model; a node takes those that its row asks for */
    const double *windowed_freq; /* inv_freq of layers with a window; NULL: that of the others */
    bool moe;                    /* the layer that is built has experts */
    int layer;                   /* that is built; -1: none */
    int x;                       /* the tensor that flows on: what a row calls "@x" */
    LetterSize letter[26];
    int64_t rows; /* of what experts get: tokens times experts per token */
    int64_t kept; /* of these, as many as experts have room for */
    int64_t ring; /* blocks of keys that attention meets one after the other; 1: all at once */
    const struct NodeRow *block[8]; /* of this layer: what makes keys and values of a block */
    int n_block;
    int64_t bytes;          /* of all tensors so far, in the widest element type */
    int n_terms, cap_terms; /* scalars that are added to the loss */
    int *term;
    bool failed;             /* an error was reported: what follows may be -1 */
    struct NameIndex *index; /* of tensors by name, for build_value */
    Spelling *spelling;      /* of names in the plan's scheme */
} Build;

/* Which constants of the model a node reads. */
enum {
    AT_EPS = 1,
    AT_SCALE = 2,
    AT_ROPE = 4,
    AT_IGNORE = 8,
    AT_VOCAB = 16,
    AT_ROUTER = 32,
    AT_EPS_LATENT = 64, /* of the norms inside latent attention */
    AT_TEMPERATURE = 128,
    AT_CAPACITY = 256,
    AT_INPUT_SCALE = 1024,
    AT_BRANCH_SCALE = 2048,
    AT_LOGITS_SCALE = 4096,
    AT_LOGITS_CAP = 8192,
    AT_CLIP = 16384,
    AT_SWIGLU = 32768,
    AT_COMBINED = 512 /* no attribute: from here on rows are tokens again */
};

/* What a model and the layer that is built have: a set of FEATURE_*. */
typedef uint64_t Features;
/* A node of a template. Names are relative: in a layer "q_proj" means "layers.3.q_proj", module
 * "self_attn" means "model.layers.3.self_attn". */
typedef struct NodeRow {
    const char *out; /* the value it makes */
    const char *op;  /* name in the list of ops; NULL: the model's activation */
    const char *rule;
    const char
        *in[RULE_OPERANDS]; /* operands: values ("a|b": the first that exists), "@w": the weight,
                   "@x": what flows in, "@NAME": a parameter of that name, shaped as the weight */
    const char *shape;      /* of the output */
    const char *module;     /* module it belongs to, by its Hugging Face path */
    const char *kind; /* the module is made by this row, of this kind; NULL: it is a container that
                         exists */
    const char *weight; /* shape of the weight; NULL: none */
    const char *part;
    const char *label; /* NULL: the op's */
    unsigned at;
    Features need;     /* FEATURE_* without which there is no such node */
    Features lack;     /* and with which */
    const char *param; /* the weight's own name, where the module is a container of several */
    bool buffer;       /* the weight has no gradient */
    const char *home;  /* rows: the value to whose tokens they go back */
    Features bias;     /* feature that adds a bias; 0: never one */
    bool vocab;        /* its module works on the vocabulary */
    const char *also;  /* second name of the value, or NULL */
    bool block; /* makes keys or values of the latent of a block, anew for each that comes by */
    bool ends;  /* what its module puts out is the result of this row */
    const char *after; /* split: the letters of the blocks before its own, "kgx kx"; NULL: none */
} NodeRow;

enum {
    FEATURE_QK_NORM = 1,
    FEATURE_Q_BIAS = 2,
    FEATURE_K_BIAS = 4,
    FEATURE_V_BIAS = 8,
    FEATURE_O_BIAS = 16,
    FEATURE_GATE_BIAS = 32,
    FEATURE_UP_BIAS = 64,
    FEATURE_DOWN_BIAS = 128,
    FEATURE_MLP_BIAS = 256,
    FEATURE_APART = 512,            /* gate and up are two weights */
    FEATURE_PACKED = 1024,          /* or one of shape [2*F, D] */
    FEATURE_DENSE = 2048,           /* the layer's feed-forward part is one for all tokens */
    FEATURE_MOE = 4096,             /* or experts behind a router */
    FEATURE_CAPPED_LOCALLY = 8192,  /* each rank's tokens by themselves */
    FEATURE_EXPERTS_PACKED = 16384, /* experts' gate and up are one weight of [E, 2*Fe, D] */
    FEATURE_GATE_CHOSEN = 32768,    /* weights: softmax over the chosen experts */
    FEATURE_GATE_ALL = 65536,       /* or over all */
    FEATURE_HEADS = 1 << 17,        /* keys and values of their own */
    FEATURE_LATENT = 1 << 18, /* or made of one low-rank value, with a rotated key for all heads */
    FEATURE_Q_RANK = 1 << 19, /* latent: q is of low rank too */
    FEATURE_ROUTED = 1 << 20, /* another input says who goes where */
    FEATURE_ROTATES = 1 << 21,
    FEATURE_QK_L2 = 1 << 22,          /* q and k normalised after the rotation, without weights */
    FEATURE_TEMPERATURE = 1 << 23,    /* q scaled by its position */
    FEATURE_CHUNKED = 1 << 24,        /* attention within chunks */
    FEATURE_SIGMOID = 1 << 25,        /* a router's scores are sigmoids */
    FEATURE_ROUTER_BIAS = 1 << 26,    /* selection adds a buffer to them */
    FEATURE_SCORE_FIRST = 1 << 27,    /* weights multiply what experts get */
    FEATURE_SHARED = 1 << 28,         /* an expert that all tokens go to */
    FEATURE_EXPERTS_TURNED = 1 << 29, /* experts' weights are stored input dim first */
    FEATURE_CAPPED = 1 << 30,         /* experts take so many rows, the others are dropped */
};
/* The shape of a layer. */
#define FEATURE_GATED ((Features)1 << 31) /* the feed-forward part has a gate */
#define FEATURE_UNGATED ((Features)1 << 32)
#define FEATURE_WINDOWED ((Features)1 << 33)      /* attention within a window */
#define FEATURE_SCALED_INPUT ((Features)1 << 34)  /* the embedding times a number */
#define FEATURE_SCALED_BRANCH ((Features)1 << 35) /* what a branch adds times a number */
#define FEATURE_SCALED_LOGITS ((Features)1 << 36)
#define FEATURE_RMS_PLUS ((Features)1 << 37) /* the kinds of norms, one of them */
#define FEATURE_RMS ((Features)1 << 38)
#define FEATURE_NORM_BEFORE ((Features)1 << 39) /* a norm before each branch */
#define FEATURE_NORM_AFTER ((Features)1 << 40)  /* and one of what it adds */
#define FEATURE_LAYERNORM ((Features)1 << 41)
#define FEATURE_LAYERNORM_PLUS ((Features)1 << 42)
#define FEATURE_LAYERNORM_BARE ((Features)1 << 43)
#define FEATURE_NORM_BIAS ((Features)1 << 44)
#define FEATURE_CLIPPED ((Features)1 << 45)     /* queries, keys and values */
#define FEATURE_BENT_LOGITS ((Features)1 << 46) /* scaled or capped: the head makes them not */
#define FEATURE_CAPPED_LOGITS ((Features)1 << 47)
#define FEATURE_XIELU ((Features)1 << 48)      /* the activation has weights of its own */
#define FEATURE_PACKED_QKV ((Features)1 << 50) /* queries, keys, values are one weight */
#define FEATURE_APART_QKV ((Features)1 << 51)
#define FEATURE_SCORES_JOINT ((Features)1 << 52) /* latent: parts of q and k stand side by side */
#define FEATURE_SCORES_APART ((Features)1 << 53) /* or each part has scores of its own */
#define FEATURE_PLAIN_ACT ((Features)1 << 49)    /* or none */
#define FEATURE_PARALLEL                                                                           \
    ((Features)1 << 55) /* both branches read what flows in, not one after the other */
#define FEATURE_NORM_SECOND ((Features)1 << 56) /* each branch has a norm of its own before it */
#define FEATURE_HEAD_WEIGHTS                                                                       \
    ((Features)1 << 57) /* q/k norms have weights of their own for each head */
#define FEATURE_QKV_BY_HEAD                                                                        \
    ((Features)1 << 58)                     /* queries, keys, values are one weight, head by head */
#define FEATURE_LEARNED ((Features)1 << 59) /* a table of positions is added to the embedding */
#define FEATURE_TURNED ((Features)1 << 60)  /* linear layers are stored input dim first */
#define FEATURE_UNTURNED ((Features)1 << 61)
#define FEATURE_SINKS ((Features)1 << 62) /* attention's softmax has one more logit a head */
#define FEATURE_EXPERT_BIASES ((Features)1 << 63) /* router and experts have, gates are limited */
#define FEATURE_QK_WIDE ((Features)1 << 54)       /* q/k norms over all heads at once */

/* graph.c: adding to a graph. Each returns the index; on an error (reported, b->failed) it may be
 * -1. */
int build_tensor(Build *b, const char *name, ValueKind kind, const char *shape, bool diff,
                 bool is_int);
/* A module without weights yet; `parent` -1: the root. */
int build_module(Build *b, const char *hf_path, const char *kind, int parent);
/* The parameter of that checkpoint name, made if need be; `module` owns it if it is new. */
int build_param(Build *b, const char *name, const char *shape, int module);
/* A node with as many operands as its rule has; makes its output. `op` NULL: the plan's activation.
 */
int build_node(Build *b, const char *op, const char *rule, const int *in, const char *out,
               const char *shape);
/* Where a row stands. */
typedef struct {
    const char *values, *modules; /* prefixes of names; each ends in '.' or is empty */
    int layer, parent;            /* -1: none */
    const char *weight;           /* instead of the weight's own name (tied tables); or NULL */
} RowPlace;
/* A whole row: module, weight, node, and the bias if there is one. Returns the tensor that it
 * makes, -1 where the model has not what the row needs, or on an error. */
int build_row(Build *b, const NodeRow *row, RowPlace at);
/* An empty index of names, which build_value and build_param look in. */
struct NameIndex *build_index(Arena *a);
/* Gives a tensor its second name. */
void build_alias(Build *b, int tensor, const char *name);
/* Newest tensor of that name or alias, or -1. */
int build_value(const Build *b, const char *name);
/* The first of the alternatives "q_norm|q_proj" that exists, with the prefix before each; "@x":
 * what flows in; -1: none. */
int build_first(const Build *b, const char *text, const char *prefix);
/* The module of that Hugging Face path, or -1. */
int build_find_module(const Build *b, const char *hf_path);
/* balance.c: the auxiliary losses of a layer's router that the plan asks for, terms of the loss. */
void build_balance(Build *b, RowPlace at);
/* The loss with its terms: the tensor of their sum, or `loss` where there are none; -1 on an error.
 */
int build_terms(Build *b, int loss);
/* The features of the dims and of the layer that is built, as FEATURE_ bits. */
Features build_features(const Build *b);
/* Does a model with these features have the row? */
bool build_there(const struct NodeRow *row, Features have);
/* A module of a row as Hugging Face calls it in this model, after the prefix: its "mlp" may be
 * "feed_forward". In the arena of the graph, does not fail. */
const char *build_module_path(const Build *b, const char *prefix, const char *module);

/* As build_row; on a ring a row whose op can be cut in parts becomes as many as there are ranks. */
int build_in_parts(Build *b, const NodeRow *row, RowPlace at);
/* Ranks of the ring that the plan lets keys and values go round, to *n; 1: there is none. False:
 * E0214, E0701. */
bool model_ring(Diags *d, const Plan *p, const Mesh *mesh, int64_t *n);
/* block.c, mlp.c, core.c, loss.c: the parts of a graph. `x` is the tensor that flows in; the result
 * flows out. */
void build_llama(Build *b, uint32_t parts);
void build_mlp(Build *b);
void build_attention(Build *b);
void build_loss(Build *b, int output, bool has_head);

/* config.c: the dims of `p` before shrink. False if there were errors. */
bool config_dims(Arena *a, Diags *d, const Plan *p, ModelDims *out);
/* preset.c: the row of a name, or NULL after a diagnostic. */
const Preset *preset_find(Arena *a, Diags *d, const Plan *p);
/* data.c: sizes that the inputs file fixes (B, S where the plan leaves them open), and whether the
 * weights' names ask for interleaved rotation. */
bool data_sizes(Arena *a, Diags *d, const Plan *p, ModelDims *m);
/* documents.c: the documents that each row packs, and S where nothing else says it. False and E0307
 * if they do not fill a row. */
bool documents_lay(Arena *a, Diags *d, const Plan *p, ModelDims *m);
bool data_interleaved(Arena *a, Diags *d, const Plan *p);
#endif
