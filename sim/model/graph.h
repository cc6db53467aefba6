/* The unsharded program: tensors (values) and nodes (ops), in execution order. Made by model.c from
 * a preset or a config. A tensor's dims are atomic letters; its stored shape groups them: q_proj is
 * stored [B, S, H*d] = b, t, (k g x). */
#ifndef SP_MODEL_GRAPH_H
#define SP_MODEL_GRAPH_H
#include "trace/terms.h"
#include "ops/op.h"

typedef enum { KIND_PARAM, KIND_INPUT, KIND_ACTIVATION } ValueKind;

/* What a dim counts, where placements, reasons or the data's path depend on it. */
typedef enum {
    DIM_PLAIN,
    DIM_BATCH,
    DIM_SEQUENCE,
    DIM_KV_HEADS,
    DIM_QUERY_HEADS, /* of one KV head; behind DIM_KV_HEADS: all heads */
    DIM_HEAD_SIZE
} DimRole;

typedef struct GTensor {
    int id;
    const char *name; /* canonical: "layers.0.q_proj"; a parameter: its Hugging Face name
                         "model.layers.0.self_attn.q_proj.weight" */
    const char
        *alias; /* second name of the same value: "layers.1.input" of "layers.0.output"; or NULL */
    const char *plan_name; /* a parameter: its name in the plan's scheme; else NULL */
    ValueKind kind;
    bool diff;   /* has a gradient */
    bool is_int; /* ids, labels */
    int nd;
    char letter[LAYOUT_MAX_DIMS + 1]; /* names of the atomic dims, for `shard(f)` */
    int64_t size[LAYOUT_MAX_DIMS];
    const char *sym[LAYOUT_MAX_DIMS]; /* symbol per letter: "B" "S" "D" "K" "G" "d" "F" "V";
                                         adjacent K,G print as H */
    DimRole role[LAYOUT_MAX_DIMS];
    int nstored;  /* stored dims */
    int listed;   /* leading letters that are stored as rows, one row per combination that an index
                     list names: stored dim 0; 0: none. With is_int it is such a list itself */
    int64_t rows; /* of all: tokens times experts per token; 0: no rows */
    uint8_t stored[LAYOUT_MAX_DIMS]; /* letters per stored dim, outermost first; they sum to nd */
    int module; /* parameter: index of the module that owns it; activation: of the module that makes
                   it; -1 */
    int producer; /* node that makes it, or -1 */
    int grad_of;  /* 1 + the parameter whose gradient this stands for (an optimizer's operand); 0:
                     none */
    int state_of; /* 1 + the parameter whose optimizer state this is: lies as it does at rest,
                     starts as zeros; 0: none */
    int next_of;  /* 1 + the parameter or state whose value after the step this is; 0: none */
} GTensor;
/* Is it an index list: which rows there are? */
static inline bool graph_is_list(const GTensor *t) { return t->listed && t->is_int; }
/* How many rows a rank that holds so much of each listed letter may expect: its share of all,
 * rounded up. Exact before routing; afterwards only the list knows. */
int64_t graph_rows(const GTensor *t, const int64_t *local);
/* Elements of the whole. */
int64_t graph_elements(const GTensor *t);
/* The first letter of a stored dim. */
int graph_stored_first(const GTensor *t, int dim);
/* What people call it: a parameter by its name in the plan's scheme. */
const char *graph_name(const GTensor *t);
/* The same, or its gradient, for records (`trace/terms.h`). */
Subject graph_subject(const GTensor *t, bool gradient);

typedef struct GNode {
    int id;
    const Op *op;
    Rule rule;
    int nin;
    int in[RULE_MAX_IN];
    int out;
    Attrs at;
    int home; /* 1 + the tensor in rows to whose tokens the rows of its output go back; 0: they stay
               */
    int hop; /* of a rule with a tied letter: how many places behind it lies; with `block`: how many
                places before its own the block lies of which a rank makes keys and values */
    bool block;    /* makes keys or values of the latent that ranks send each other */
    int again;     /* 1 + the tensor that it makes once more, of another block; 0: none */
    int final;     /* 1 + the tensor that its adjoint reads in place of its own output; 0: that */
    int updates;   /* 1 + the parameter whose update the optimizer's op is a part of; 0: of none */
    bool in_place; /* frameworks leave its result where the first operand was */
    int module;    /* innermost module it belongs to, or -1 */
    int layer;     /* -1: outside the layers */
    const char *part; /* "attention", "mlp", "moe", "block" (attention and MLP in parallel), "norm",
                         "embedding", "head", "loss": for figures */
    const char *label; /* "linear", "RMSNorm": for records and figures */
} GNode;

/* The kind of a loss that reads no logits: a sum of outputs, so that blocks alone have gradients.
 */
#define LOSS_STAND_IN "stand-in for a loss"
/* A module of the tree in the plan's naming scheme: what patterns match. */
typedef struct GModule {
    const char *path;    /* in the plan's scheme: "layers.0.attention.wq" */
    const char *hf_path; /* "model.layers.0.self_attn.q_proj" */
    /* "linear", "norm", "embedding", "container", "activation", "loss", "qk_norm", LOSS_STAND_IN */
    const char *kind;
    bool vocab; /* works on the vocabulary: bare placements speak of `vp` where there is one */
    int parent; /* -1 */
    int input[RULE_OPERANDS], n_input; /* tensors: positional inputs at its boundary (boundary
                              nodes' outputs, see lower) */
    int output;                        /* tensor: its output; -1: none */
    int weight, bias;                  /* tensors: parameters named weight / bias, or -1 */
    bool mixes; /* attention itself: its queries read keys of other positions */
} GModule;

typedef struct Graph {
    int nt, cap_t;
    GTensor *t;
    int nn, cap_n;
    GNode *node;
    int nm, cap_m;
    GModule *module;
    int nn_model; /* nodes of the model and its loss; the optimizer's follow. 0: there is no
                     optimizer */
    int loss;     /* tensor: the scalar loss, or -1 */
    int output;   /* tensor: the last value of the forward */
} Graph;
/* Per tensor: the unit in which it is gathered or reduced with others, by the first node that reads
 * it: its layer, of a model without layers its module if that is linear; -1: that of the root. With
 * `one` all are of the root. */
int *graph_units(const Graph *g, bool one, Arena *arena);
/* Is it how many rows there are, per letter that it has: made of index lists alone? */
bool graph_counts_rows(const Graph *g, const GTensor *t);
/* Is it part of the loss, from the logits on? */
bool graph_node_of_loss(const GNode *n);
/* Is it made by such a node? */
bool graph_of_loss(const Graph *g, const GTensor *t);
/* Tensors of state that an optimizer keeps for a parameter: 2 of AdamW. */
int graph_moments(const Graph *g, int tensor);
#endif
