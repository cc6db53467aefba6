/* The graph of Llama-type blocks, with embedding, final norm and head around them, as tables of
 * node templates. Features (biases, q/k norm, tied tables, the activation) are flags of rows; no
 * model is named here. Letters: b batch, t position, d hidden, k kv group, g query head in its
 * group, x head dim, f feed-forward, u gate or up where the two are one weight, v vocabulary. */
#include "model/build.h"
#include <string.h>

/* Containers of a layer, before its nodes. */
static const struct {
    const char *path, *in, *out; /* its first input and its output, as values of the layer */
} containers[] = {
    {"", "input", "output"},
    {"self_attn", "input_norm", "o_proj"},
    {"mlp", "post_attn_norm", "mlp.down"},
};
enum { N_CONTAINERS = sizeof containers / sizeof *containers };

/* Rows fill their lines, which the formatter would not let them. */
/* clang-format off */
static const NodeRow layer_rows[] = {
    {"input_norm", "rmsnorm", "btd!,d->btd", {"input", "@w"}, "b t d", "input_layernorm", "norm",
     "d", "norm", .at = AT_EPS},
    {"q_proj", "einsum", "btd,kgxd->btkgx", {"input_norm", "@w"}, "b t kgx", "self_attn.q_proj",
     "linear", "kgx d", "attention", "linear", .bias = FEATURE_Q_BIAS},
    {"k_proj", "einsum", "btd,kxd->btkx", {"input_norm", "@w"}, "b t kx", "self_attn.k_proj",
     "linear", "kx d", "attention", "linear", .bias = FEATURE_K_BIAS},
    {"v_proj", "einsum", "btd,kxd->btkx", {"input_norm", "@w"}, "b t kx", "self_attn.v_proj",
     "linear", "kx d", "attention", "linear", .bias = FEATURE_V_BIAS},
    {"q_norm", "rmsnorm", "btkgx!,x->btkgx", {"q_proj", "@w"}, "b t kg x", "self_attn.q_norm",
     "qk_norm", "x", "attention", .at = AT_EPS, .need = FEATURE_QK_NORM},
    {"k_norm", "rmsnorm", "btkx!,x->btkx", {"k_proj", "@w"}, "b t k x", "self_attn.k_norm",
     "qk_norm", "x", "attention", .at = AT_EPS, .need = FEATURE_QK_NORM},
    {"q_rope", "rope", "btkgx!->btkgx", {"q_norm|q_proj"}, "b t kg x", "self_attn", NULL, NULL,
     "attention", .at = AT_ROPE},
    {"k_rope", "rope", "btkx!->btkx", {"k_norm|k_proj"}, "b t k x", "self_attn", NULL, NULL,
     "attention", .at = AT_ROPE},
    {"attn_context", "attention", "btkgx!,bs!kx!,bs!kx!->btkgx", {"q_rope", "k_rope", "v_proj"},
     "b t kgx", "self_attn.core", "core_attention", NULL, "attention", .at = AT_SCALE},
    {"o_proj", "einsum", "btkgx,dkgx->btd", {"attn_context", "@w"}, "b t d", "self_attn.o_proj",
     "linear", "d kgx", "attention", "linear", .bias = FEATURE_O_BIAS},
    {"resid_attn", "add", "btd,btd->btd", {"input", "o_proj"}, "b t d", "", NULL, NULL,
     .part = "attention"},
    {"post_attn_norm", "rmsnorm", "btd!,d->btd", {"resid_attn", "@w"}, "b t d",
     "post_attention_layernorm", "norm", "d", "norm", .at = AT_EPS},
    {"mlp.gate", "einsum", "btd,fd->btf", {"post_attn_norm", "@w"}, "b t f", "mlp.gate_proj",
     "linear", "f d", "mlp", "linear", .bias = FEATURE_GATE_BIAS, .need = FEATURE_APART},
    {"mlp.up", "einsum", "btd,fd->btf", {"post_attn_norm", "@w"}, "b t f", "mlp.up_proj", "linear",
     "f d", "mlp", "linear", .bias = FEATURE_UP_BIAS, .need = FEATURE_APART},
    {"mlp.gate_act", NULL, "btf->btf", {"mlp.gate"}, "b t f", "mlp.act_fn", "activation", NULL,
     .part = "mlp", .need = FEATURE_APART},
    {"mlp.act", "einsum", "btf,btf->btf", {"mlp.gate_act", "mlp.up"}, "b t f", "mlp", NULL, NULL,
     .part = "mlp", .label = "multiply", .need = FEATURE_APART},
    {"mlp.gate_up", "einsum", "btd,ufd->btuf", {"post_attn_norm", "@w"}, "b t uf",
     "mlp.gate_up_proj", "linear", "uf d", "mlp", "linear", .bias = FEATURE_GATE_BIAS,
     .need = FEATURE_PACKED},
    {"mlp.act", "swiglu", "btu!f->btf", {"mlp.gate_up"}, "b t f", "mlp.act_fn", "activation", NULL,
     .part = "mlp", .need = FEATURE_PACKED},
    {"mlp.down", "einsum", "btf,df->btd", {"mlp.act", "@w"}, "b t d", "mlp.down_proj", "linear",
     "d f", "mlp", "linear", .bias = FEATURE_DOWN_BIAS},
    {"output", "add", "btd,btd->btd", {"resid_attn", "mlp.down"}, "b t d", "", NULL, NULL,
     .part = "mlp"},
};

static const NodeRow embed_row =
    {"embed", "embed", "vd,bt->btd", {"@w", "input_ids"}, "b t d", "model.embed_tokens",
     "embedding", "v d", .part = "embedding", .label = "embedding", .vocab = true};
static const NodeRow norm_row =
    {"final_norm", "rmsnorm", "btd!,d->btd", {"@x", "@w"}, "b t d", "model.norm", "norm", "d",
     "norm", .at = AT_EPS};
static const NodeRow head_row =
    {"logits", "einsum", "btd,vd->btv", {"@x", "@w"}, "b t v", "lm_head", "linear", "v d",
     .part = "head", .label = "linear", .vocab = true};
/* clang-format on */

/* Makes the containers of a layer; their inputs and outputs follow when the nodes are there.
 * Returns the first. */
static int open_containers(Build *b, int layer) {
    int first = b->g->nm;
    for (int i = 0; i < N_CONTAINERS; i++)
        build_module(
            b, arena_printf(b->a, "model.layers.%d%s%s", layer, i ? "." : "", containers[i].path),
            "container", i ? first : -1);
    return first;
}

static void close_containers(Build *b, int first, const char *prefix) {
    for (int i = 0; i < N_CONTAINERS; i++) {
        GModule *m = &b->g->module[first + i];
        m->input[0] = build_value(b, arena_printf(b->a, "%s%s", prefix, containers[i].in));
        m->n_input = 1;
        m->output = build_value(b, arena_printf(b->a, "%s%s", prefix, containers[i].out));
    }
}

/* The container that a row's module lies in: "self_attn.q_proj" in self_attn. */
static int row_parent(const NodeRow *row, int first) {
    for (int i = N_CONTAINERS - 1; i > 0; i--) {
        size_t n = strlen(containers[i].path);
        if (!strncmp(row->module, containers[i].path, n) && row->module[n] == '.') return first + i;
    }
    return first;
}

static void build_layer(Build *b, int layer) {
    const char *prefix = arena_printf(b->a, "layers.%d.", layer);
    const char *modules = arena_printf(b->a, "model.layers.%d.", layer);
    const char *input = arena_printf(b->a, "%sinput", prefix);
    if (b->x < 0) /* [B, S, D] */
        b->x = build_tensor(b, input, KIND_INPUT, "b t d", b->p->input_gradient, false);
    else build_alias(b, b->x, input);
    int first = open_containers(b, layer);
    for (size_t i = 0; i < sizeof layer_rows / sizeof *layer_rows && !b->failed; i++) {
        int t =
            build_row(b, &layer_rows[i],
                      (RowPlace){prefix, modules, layer, row_parent(&layer_rows[i], first), NULL});
        if (t >= 0) b->x = t;
    }
    if (!b->failed) close_containers(b, first, prefix);
}

/* An input of the first part that is built, under the name that this value has in the whole model.
 */
static void need_input(Build *b, const char *name) {
    if (b->x < 0) b->x = build_tensor(b, name, KIND_INPUT, "b t d", b->p->input_gradient, false);
}

void build_llama(Build *b, uint32_t parts) {
    const ModelDims *m = b->m;
    b->x = -1;
    if (parts & PART_EMBEDDING) {
        if (build_tensor(b, "input_ids", KIND_INPUT, "b t", false, true) < 0) return;
        b->x = build_row(b, &embed_row, (RowPlace){"", "", -1, -1, NULL});
    }
    if (parts & PART_BLOCKS)
        for (int i = m->first_layer; i < m->last_layer && !b->failed; i++) build_layer(b, i);
    if (parts & PART_NORM && !b->failed) {
        need_input(b, arena_printf(b->a, "layers.%d.output", (int)m->L - 1));
        b->x = build_row(b, &norm_row, (RowPlace){"", "", -1, -1, NULL});
    }
    if (parts & PART_HEAD && !b->failed) {
        need_input(b, "final_norm");
        b->x = build_row(b, &head_row,
                         (RowPlace){"", "", -1, -1, m->tied ? "model.embed_tokens.weight" : NULL});
    }
}
