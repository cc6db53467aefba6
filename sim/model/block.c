/* The graph of Llama-type blocks, with embedding, final norm and head around them, as tables of
 * node templates. Features (biases, q/k norm, latent attention, tied tables, the activation) are
 * flags of rows; no model is named here. Letters: b batch, t position, d hidden, k kv group, g
 * query head in its group, x head dim, f feed-forward, u gate or up where the two are one weight, e
 * expert, w an expert's feed-forward, m the shared expert's, v vocabulary. Latent attention: k
 * head, q and c the low ranks of queries and of keys and values, r the rotated part of a head, n
 * the part that is not (x = n and r), o a value, y = c and r, z = n and o. */
#include "model/build.h"
#include <math.h>
#include <string.h>

/* Containers of a layer, before its nodes; one comes before those in it. */
static const struct {
    const char *path, *in[3], *out; /* its inputs and its output, as values of the layer */
    Features need;                  /* without which there is no such container */
    const char *kind;
} containers[] = {
    {"", {"input"}, "output", 0, "container"},
    {"self_attn", {"input_norm|input"}, "o_proj", 0, "container"},
    {"mlp", {"post_attn_norm|resid_attn|input_norm"}, "mlp.down", FEATURE_DENSE, "container"},
    {"moe", {"post_attn_norm|resid_attn|input_norm"}, "moe.output", FEATURE_MOE, "container"},
    /* what is chosen, in the order of experts: what cuts the list cuts whose rows a rank handles */
    {"moe.reorderer",
     {"moe.router_scores_biased|moe.router_logits", "moe.router_scores|moe.router_logits"},
     "moe.list",
     FEATURE_MOE,
     "reorderer"},
    {"moe.experts",
     {"post_attn_norm|resid_attn|input_norm", "moe.kept|moe.list", "moe.kept_weights|moe.weights"},
     "moe.routed",
     FEATURE_MOE,
     "experts"},
    {"moe.shared_experts",
     {"post_attn_norm|resid_attn|input_norm"},
     "moe.shared.down",
     FEATURE_MOE | FEATURE_SHARED,
     "container"},
};
enum { N_CONTAINERS = sizeof containers / sizeof *containers };

/* A norm over the letter d, one row for each kind of it. */
#define NORM_ROW(name, op, from, module, ...)                                                      \
    {                                                                                              \
        name, op, "btd!,d->btd", {from, "@w"}, "b t d", module, "norm", "d", "norm", .at = AT_EPS, \
                                                                                     __VA_ARGS__   \
    }
#define NORM(name, from, module, has)                                                              \
    NORM_ROW(name, "rmsnorm", from, module, .need = (has) | FEATURE_RMS),                          \
        NORM_ROW(name, "rmsnorm_plus", from, module, .need = (has) | FEATURE_RMS_PLUS),            \
        NORM_ROW(name, "layernorm", from, module, .need = (has) | FEATURE_LAYERNORM,               \
                 .bias = FEATURE_NORM_BIAS),                                                       \
        NORM_ROW(name, "layernorm_plus", from, module, .need = (has) | FEATURE_LAYERNORM_PLUS,     \
                 .bias = FEATURE_NORM_BIAS),                                                       \
    {                                                                                              \
        name, "layernorm", "btd!->btd", {from}, "b t d", module, "norm", NULL, "norm",             \
            .at = AT_EPS, .need = (has) | FEATURE_LAYERNORM_BARE                                   \
    }
#define QK_NORM_ROW(name, op, rule, from, shape, module, kind)                                     \
    {                                                                                              \
        name, op, rule, {from, "@w"}, shape, module, "qk_norm", "x", "attention",                  \
            .at = AT_EPS, .need = FEATURE_QK_NORM | (kind), .lack = FEATURE_QK_WIDE                \
    }
#define QK_NORM(name, rule, from, shape, module)                                                   \
    QK_NORM_ROW(name, "rmsnorm", rule, from, shape, module, FEATURE_RMS),                          \
        QK_NORM_ROW(name, "rmsnorm_plus", rule, from, shape, module, FEATURE_RMS_PLUS)
/* Rows fill their lines, which the formatter would not let them. */
/* clang-format off */
static const NodeRow layer_rows[] = {
    NORM("input_norm", "input", "input_layernorm", FEATURE_NORM_BEFORE),
    {"qkv_proj", "einsum", "btd,jd->btj", {"input_norm|input", "@w"}, "b t j",
     "self_attn.qkv_proj", "linear", "j d", "attention", "linear", .bias = FEATURE_Q_BIAS,
     .need = FEATURE_HEADS | FEATURE_PACKED_QKV | FEATURE_UNTURNED},
    {"qkv_proj", "einsum", "btd,dj->btj", {"input_norm|input", "@w"}, "b t j",
     "self_attn.qkv_proj", "conv1d", "d j", "attention", "linear", .bias = FEATURE_Q_BIAS,
     .need = FEATURE_HEADS | FEATURE_PACKED_QKV | FEATURE_TURNED},
    {"q_proj", "split", "btj!->btkgx", {"qkv_proj"}, "b t kgx", "self_attn", NULL, NULL,
     "attention", .need = FEATURE_HEADS | FEATURE_PACKED_QKV},
    {"k_proj", "split", "btj!->btkx", {"qkv_proj"}, "b t kx", "self_attn", NULL, NULL, "attention",
     .after = "kgx", .need = FEATURE_HEADS | FEATURE_PACKED_QKV},
    {"v_proj", "split", "btj!->btkx", {"qkv_proj"}, "b t kx", "self_attn", NULL, NULL, "attention",
     .after = "kgx kx", .need = FEATURE_HEADS | FEATURE_PACKED_QKV},
    {"qkv_proj", "einsum", "btd,kzd->btkz", {"input_norm|input", "@w"}, "b t kz",
     "self_attn.qkv_proj", "linear", "kz d", "attention", "linear", .bias = FEATURE_Q_BIAS,
     .need = FEATURE_HEADS | FEATURE_QKV_BY_HEAD},
    {"q_proj", "split", "btkz!->btkgx", {"qkv_proj"}, "b t kg x", "self_attn", NULL, NULL,
     "attention", .need = FEATURE_HEADS | FEATURE_QKV_BY_HEAD},
    {"k_proj", "split", "btkz!->btkx", {"qkv_proj"}, "b t k x", "self_attn", NULL, NULL,
     "attention", .after = "x", .need = FEATURE_HEADS | FEATURE_QKV_BY_HEAD},
    {"v_proj", "split", "btkz!->btkx", {"qkv_proj"}, "b t k x", "self_attn", NULL, NULL,
     "attention", .after = "x x", .need = FEATURE_HEADS | FEATURE_QKV_BY_HEAD},
    {"q_proj", "einsum", "btd,kgxd->btkgx", {"input_norm|input", "@w"}, "b t kgx", "self_attn.q_proj",
     "linear", "kgx d", "attention", "linear", .bias = FEATURE_Q_BIAS,
     .need = FEATURE_HEADS | FEATURE_APART_QKV, .lack = FEATURE_QK_WIDE},
    {"k_proj", "einsum", "btd,kxd->btkx", {"input_norm|input", "@w"}, "b t kx", "self_attn.k_proj",
     "linear", "kx d", "attention", "linear", .bias = FEATURE_K_BIAS,
     .need = FEATURE_HEADS | FEATURE_APART_QKV, .lack = FEATURE_QK_WIDE},
    {"q_proj", "einsum", "btd,ad->bta", {"input_norm|input", "@w"}, "b t a", "self_attn.q_proj",
     "linear", "a d", "attention", "linear", .bias = FEATURE_Q_BIAS, .need = FEATURE_QK_WIDE},
    {"k_proj", "einsum", "btd,id->bti", {"input_norm|input", "@w"}, "b t i", "self_attn.k_proj",
     "linear", "i d", "attention", "linear", .bias = FEATURE_K_BIAS, .need = FEATURE_QK_WIDE},
    {"v_proj", "einsum", "btd,kxd->btkx", {"input_norm|input", "@w"}, "b t kx", "self_attn.v_proj",
     "linear", "kx d", "attention", "linear", .bias = FEATURE_V_BIAS,
     .need = FEATURE_HEADS | FEATURE_APART_QKV},
    QK_NORM("q_norm", "btkgx!,x->btkgx", "q_proj", "b t kg x", "self_attn.q_norm"),
    QK_NORM("k_norm", "btkx!,x->btkx", "k_proj", "b t k x", "self_attn.k_norm"),
    {"q_norm", "rmsnorm", "bta!,a->bta", {"q_proj", "@w"}, "b t a", "self_attn.q_norm", "qk_norm",
     "a", "attention", .at = AT_EPS, .need = FEATURE_QK_WIDE},
    {"k_norm", "rmsnorm", "bti!,i->bti", {"k_proj", "@w"}, "b t i", "self_attn.k_norm", "qk_norm",
     "i", "attention", .at = AT_EPS, .need = FEATURE_QK_WIDE},
    {"q_heads", "split", "bta!->btkgx", {"q_norm"}, "b t kg x", "self_attn", NULL, NULL,
     "attention", .need = FEATURE_QK_WIDE},
    {"k_heads", "split", "bti!->btkx", {"k_norm"}, "b t k x", "self_attn", NULL, NULL, "attention",
     .need = FEATURE_QK_WIDE},
    {"q_normed", "layernorm", "btkgx!->btkgx", {"q_proj"}, "b t kg x", "self_attn", NULL, NULL,
     "attention", .at = AT_EPS, .need = FEATURE_HEAD_WEIGHTS},
    {"k_normed", "layernorm", "btkx!->btkx", {"k_proj"}, "b t k x", "self_attn", NULL, NULL,
     "attention", .at = AT_EPS, .need = FEATURE_HEAD_WEIGHTS},
    {"q_norm", "einsum", "btkgx,kgx->btkgx", {"q_normed", "@w"}, "b t kg x", "self_attn.q_norm",
     "qk_norm", "kg x", "attention", "norm weights", .need = FEATURE_HEAD_WEIGHTS},
    {"k_norm", "einsum", "btkx,kx->btkx", {"k_normed", "@w"}, "b t k x", "self_attn.k_norm",
     "qk_norm", "k x", "attention", "norm weights", .need = FEATURE_HEAD_WEIGHTS},
    {"q_clip", "clamp", "btkgx->btkgx", {"q_heads|q_norm|q_proj"}, "b t kg x", "self_attn", NULL, NULL,
     "attention", .at = AT_CLIP, .need = FEATURE_HEADS | FEATURE_CLIPPED},
    {"k_clip", "clamp", "btkx->btkx", {"k_heads|k_norm|k_proj"}, "b t k x", "self_attn", NULL, NULL, "attention",
     .at = AT_CLIP, .need = FEATURE_HEADS | FEATURE_CLIPPED},
    {"v_clip", "clamp", "btkx->btkx", {"v_proj"}, "b t k x", "self_attn", NULL, NULL, "attention",
     .at = AT_CLIP, .need = FEATURE_HEADS | FEATURE_CLIPPED},
    {"q_rope", "rope", "btkgx!->btkgx", {"q_clip|q_heads|q_norm|q_proj"}, "b t kg x", "self_attn", NULL,
     NULL, "attention", .at = AT_ROPE, .need = FEATURE_HEADS | FEATURE_ROTATES},
    {"k_rope", "rope", "btkx!->btkx", {"k_clip|k_heads|k_norm|k_proj"}, "b t k x", "self_attn", NULL,
     NULL, "attention", .at = AT_ROPE, .need = FEATURE_HEADS | FEATURE_ROTATES},
    {"q_attn", "rmsnorm", "btkgx!->btkgx", {"q_rope"}, "b t kg x", "self_attn", NULL, NULL,
     "attention", "L2 norm", .at = AT_EPS, .need = FEATURE_QK_L2, .also = "q_norm"},
    {"k_attn", "rmsnorm", "btkx!->btkx", {"k_rope"}, "b t k x", "self_attn", NULL, NULL,
     "attention", "L2 norm", .at = AT_EPS, .need = FEATURE_QK_L2, .also = "k_norm"},
    {"q_attn", "temperature", "btkgx->btkgx", {"q_norm|q_proj"}, "b t kg x", "self_attn", NULL,
     NULL, "attention", .at = AT_TEMPERATURE, .need = FEATURE_TEMPERATURE},
    {"attn_context", "attention", "btkgx!,bs!kx!,bs!kx!->btkgx",
     {"q_attn|q_rope|q_clip|q_heads|q_norm|q_proj",
      "k_attn|k_rope|k_clip|k_heads|k_norm|k_proj", "v_clip|v_proj"},
     "b t kgx", "self_attn.core", "core_attention", NULL, "attention", .at = AT_SCALE,
     .need = FEATURE_HEADS, .lack = FEATURE_SINKS},
    {"attn_part", "attention_part", "btkgx!,bs!kx!,bs!kx!->btkgp",
     {"q_attn|q_rope|q_clip|q_heads|q_norm|q_proj",
      "k_attn|k_rope|k_clip|k_heads|k_norm|k_proj", "v_clip|v_proj"},
     "b t kg p", "self_attn.core", "core_attention", NULL, "attention", "causal attention",
     .at = AT_SCALE, .need = FEATURE_HEADS | FEATURE_SINKS},
    {"attn_context", "attention_sink", "btkgp!,kg->btkgx", {"attn_part", "@w"}, "b t kgx",
     "self_attn.core", NULL, "kg", "attention", .param = "sinks", .ends = true,
     .need = FEATURE_HEADS | FEATURE_SINKS},
    {"o_proj", "einsum", "btkgx,dkgx->btd", {"attn_context", "@w"}, "b t d", "self_attn.o_proj",
     "linear", "d kgx", "attention", "linear", .bias = FEATURE_O_BIAS,
     .need = FEATURE_HEADS | FEATURE_UNTURNED},
    {"o_proj", "einsum", "btkgx,kgxd->btd", {"attn_context", "@w"}, "b t d", "self_attn.o_proj",
     "conv1d", "kgx d", "attention", "linear", .bias = FEATURE_O_BIAS,
     .need = FEATURE_HEADS | FEATURE_TURNED},

    {"q_a_proj", "einsum", "btd,qd->btq", {"input_norm", "@w"}, "b t q", "self_attn.q_a_proj",
     "linear", "q d", "attention", "linear", .bias = FEATURE_Q_BIAS, .need = FEATURE_Q_RANK},
    {"q_a_norm", "rmsnorm", "btq!,q->btq", {"q_a_proj", "@w"}, "b t q", "self_attn.q_a_layernorm",
     "norm", "q", "attention", .at = AT_EPS_LATENT, .need = FEATURE_Q_RANK},
    {"q_b_proj", "einsum", "btq,kxq->btkx", {"q_a_norm", "@w"}, "b t kx", "self_attn.q_b_proj",
     "linear", "kx q", "attention", "linear", .need = FEATURE_Q_RANK},
    {"q_proj", "einsum", "btd,kxd->btkx", {"input_norm|input", "@w"}, "b t kx", "self_attn.q_proj",
     "linear", "kx d", "attention", "linear", .need = FEATURE_LATENT,
     .lack = FEATURE_Q_RANK},
    {"kv_a_proj", "einsum", "btd,yd->bty", {"input_norm", "@w"}, "b t y",
     "self_attn.kv_a_proj_with_mqa", "linear", "y d", "attention", "linear",
     .bias = FEATURE_K_BIAS, .need = FEATURE_LATENT},
    {"kv_c", "split", "bty!->btc", {"kv_a_proj"}, "b t c", "self_attn", NULL, NULL, "attention",
     .need = FEATURE_LATENT},
    {"k_pe", "split", "bty!->btr", {"kv_a_proj"}, "b t r", "self_attn", NULL, NULL, "attention",
     .after = "c", .need = FEATURE_LATENT},
    {"kv_a_norm", "rmsnorm", "btc!,c->btc", {"kv_c", "@w"}, "b t c", "self_attn.kv_a_layernorm",
     "norm", "c", "attention", .at = AT_EPS_LATENT, .need = FEATURE_LATENT},
    {"kv_b_proj", "einsum", "btc,kzc->btkz", {"kv_a_norm", "@w"}, "b t kz", "self_attn.kv_b_proj",
     "linear", "kz c", "attention", "linear", .block = true, .need = FEATURE_LATENT},
    {"q_nope", "split", "btkx!->btkn", {"q_b_proj|q_proj"}, "b t k n", "self_attn", NULL, NULL,
     "attention", .need = FEATURE_LATENT},
    {"q_pe", "split", "btkx!->btkr", {"q_b_proj|q_proj"}, "b t k r", "self_attn", NULL, NULL,
     "attention", .after = "n", .need = FEATURE_LATENT},
    {"q_rope", "rope", "btkr!->btkr", {"q_pe"}, "b t k r", "self_attn", NULL, NULL, "attention",
     .at = AT_ROPE, .need = FEATURE_LATENT},
    {"k_rope", "rope", "btr!->btr", {"k_pe"}, "b t r", "self_attn", NULL, NULL, "attention",
     .at = AT_ROPE, .need = FEATURE_LATENT},
    {"k_nope", "split", "btkz!->btkn", {"kv_b_proj"}, "b t k n", "self_attn", NULL, NULL,
     "attention", .block = true, .need = FEATURE_LATENT},
    {"v_attn", "split", "btkz!->btko", {"kv_b_proj"}, "b t k o", "self_attn", NULL, NULL,
     "attention", .after = "n", .block = true, .need = FEATURE_LATENT},
    {"q_attn", "concat", "btkn!,btkr!->btkx", {"q_nope", "q_rope"}, "b t k x", "self_attn", NULL,
     NULL, "attention", .need = FEATURE_SCORES_JOINT},
    /* a module: the gradient of the key that heads share is a sum, which lines can ask for here */
    {"k_attn", "concat", "btkn!,btr!->btkx", {"k_nope", "k_rope"}, "b t k x", "self_attn.k_cat",
     "concat", NULL, "attention", .block = true, .need = FEATURE_SCORES_JOINT},
    {"attn_context", "attention", "btkx!,bs!kx!,bs!ko!->btko", {"q_attn", "k_attn", "v_attn"},
     "b t ko", "self_attn.core", "core_attention", NULL, "attention", .at = AT_SCALE,
     .need = FEATURE_SCORES_JOINT},
    {"attn_context", "attention_two_parts", "btkn!,btkr!,bs!kn!,bs!r!,bs!ko!->btko",
     {"q_nope", "q_rope", "k_nope", "k_rope", "v_attn"}, "b t ko", "self_attn.core",
     "core_attention", NULL, "attention", .at = AT_SCALE, .need = FEATURE_SCORES_APART},
    {"o_proj", "einsum", "btko,dko->btd", {"attn_context", "@w"}, "b t d", "self_attn.o_proj",
     "linear", "d ko", "attention", "linear", .bias = FEATURE_O_BIAS, .need = FEATURE_LATENT},

    NORM("attn_out_norm", "o_proj", "attn_out_norm", FEATURE_NORM_AFTER),
    {"attn_scaled", "scale", "btd->btd", {"attn_out_norm|o_proj"}, "b t d", "", NULL, NULL,
     .part = "attention", .at = AT_BRANCH_SCALE, .need = FEATURE_SCALED_BRANCH},
    {"resid_attn", "add", "btd,btd->btd", {"input", "attn_scaled|attn_out_norm|o_proj"}, "b t d",
     "", NULL, NULL, .part = "attention", .lack = FEATURE_PARALLEL},
    /* branches side by side read what flows in */
    NORM("post_attn_norm", "resid_attn|input", "post_attention_layernorm", FEATURE_NORM_SECOND),
    {"mlp.gate", "einsum", "btd,fd->btf", {"post_attn_norm|resid_attn|input_norm", "@w"}, "b t f", "mlp.gate_proj",
     "linear", "f d", "mlp", "linear", .bias = FEATURE_GATE_BIAS,
     .need = FEATURE_DENSE | FEATURE_APART | FEATURE_GATED},
    {"mlp.up", "einsum", "btd,fd->btf", {"post_attn_norm|resid_attn|input_norm", "@w"}, "b t f", "mlp.up_proj", "linear",
     "f d", "mlp", "linear", .bias = FEATURE_UP_BIAS, .need = FEATURE_DENSE | FEATURE_APART | FEATURE_UNTURNED},
    {"mlp.up", "einsum", "btd,df->btf", {"post_attn_norm|resid_attn|input_norm", "@w"}, "b t f", "mlp.up_proj", "conv1d",
     "d f", "mlp", "linear", .bias = FEATURE_UP_BIAS, .need = FEATURE_DENSE | FEATURE_APART | FEATURE_TURNED},
    {"mlp.gate_act", NULL, "btf->btf", {"mlp.gate"}, "b t f", "mlp.act_fn", "activation", NULL,
     .part = "mlp", .need = FEATURE_DENSE | FEATURE_APART | FEATURE_GATED},
    {"mlp.act", "einsum", "btf,btf->btf", {"mlp.gate_act", "mlp.up"}, "b t f", "mlp", NULL, NULL,
     .part = "mlp", .label = "multiply", .need = FEATURE_DENSE | FEATURE_APART | FEATURE_GATED},
    {"mlp.act", NULL, "btf->btf", {"mlp.up"}, "b t f", "mlp.act_fn", "activation", NULL,
     .part = "mlp", .need = FEATURE_DENSE | FEATURE_APART | FEATURE_UNGATED | FEATURE_PLAIN_ACT},
    {"mlp.act", "xielu", "btf,h!,h!->btf", {"mlp.up", "@alpha_p", "@alpha_n"}, "b t f",
     "mlp.act_fn", "activation", "h", .part = "mlp",
     .need = FEATURE_DENSE | FEATURE_APART | FEATURE_UNGATED | FEATURE_XIELU},
    {"mlp.gate_up", "einsum", "btd,ufd->btuf", {"post_attn_norm|resid_attn|input_norm", "@w"}, "b t uf",
     "mlp.gate_up_proj", "linear", "uf d", "mlp", "linear", .bias = FEATURE_GATE_BIAS,
     .need = FEATURE_DENSE | FEATURE_PACKED},
    {"mlp.act", "swiglu", "btu!f->btf", {"mlp.gate_up"}, "b t f", "mlp.act_fn", "activation", NULL,
     .part = "mlp", .need = FEATURE_DENSE | FEATURE_PACKED},
    {"mlp.down", "einsum", "btf,df->btd", {"mlp.act", "@w"}, "b t d", "mlp.down_proj", "linear",
     "d f", "mlp", "linear", .bias = FEATURE_DOWN_BIAS, .need = FEATURE_DENSE | FEATURE_UNTURNED},
    {"mlp.down", "einsum", "btf,fd->btd", {"mlp.act", "@w"}, "b t d", "mlp.down_proj", "conv1d",
     "f d", "mlp", "linear", .bias = FEATURE_DOWN_BIAS, .need = FEATURE_DENSE | FEATURE_TURNED},
    {"moe.router_logits", "einsum", "btd,ed->bte", {"post_attn_norm|resid_attn|input_norm", "@w"}, "b t e", "moe.gate",
     "linear", "e d", "moe", "router", .bias = FEATURE_EXPERT_BIASES, .need = FEATURE_MOE},
    {"moe.router_scores", "sigmoid", "bte->bte", {"moe.router_logits"}, "b t e", "moe", NULL, NULL,
     .part = "moe", .need = FEATURE_MOE | FEATURE_SIGMOID},
    {"moe.router_scores_biased", "add", "bte,e->bte", {"moe.router_scores", "@w"}, "b t e",
     "moe", NULL, "e", .part = "moe", .param = "gate.e_score_correction_bias", .buffer = true,
     .label = "selection bias", .need = FEATURE_MOE | FEATURE_ROUTER_BIAS},
    {"moe.list", "select", "bte!->[ebt]", {"moe.router_scores_biased|moe.router_logits"}, "[ebt]",
     "moe.reorderer", NULL, NULL, .part = "moe", .at = AT_ROUTER, .need = FEATURE_MOE,
     .lack = FEATURE_ROUTED},
    {"moe.list", "select_by", "bte!,bte!->[ebt]", {"moe.router_logits", "moe.routing"}, "[ebt]",
     "moe.reorderer", NULL, NULL, .part = "moe", .at = AT_ROUTER,
     .need = FEATURE_MOE | FEATURE_ROUTED},
    {"moe.weights", "gate", "bte!,[ebt]->[ebt]", {"moe.router_logits", "moe.list"}, "[ebt]",
     "moe.reorderer",
     NULL, NULL, .part = "moe", .at = AT_ROUTER, .need = FEATURE_MOE | FEATURE_GATE_CHOSEN},
    {"moe.weights", "gate_all", "bte!,[ebt]->[ebt]", {"moe.router_logits", "moe.list"}, "[ebt]",
     "moe.reorderer", NULL, NULL, .part = "moe", .at = AT_ROUTER,
     .need = FEATURE_MOE | FEATURE_GATE_ALL},
    {"moe.weights", "share", "bte!,[ebt]->[ebt]", {"moe.router_scores", "moe.list"}, "[ebt]",
     "moe.reorderer", NULL, NULL, .part = "moe", .at = AT_ROUTER,
     .need = FEATURE_MOE | FEATURE_SIGMOID},
    {"moe.kept", "capacity", "[eb!t!],[eb!t!]->[ebt]", {"moe.list", "moe.weights"}, "[ebt]", "moe",
     NULL, NULL, .part = "moe", .at = AT_CAPACITY, .need = FEATURE_MOE | FEATURE_CAPPED,
     .lack = FEATURE_CAPPED_LOCALLY},
    {"moe.kept", "capacity", "[ebt],[ebt]->[ebt]", {"moe.list", "moe.weights"}, "[ebt]", "moe",
     NULL, NULL, .part = "moe", .at = AT_CAPACITY,
     .need = FEATURE_MOE | FEATURE_CAPPED | FEATURE_CAPPED_LOCALLY},
    {"moe.all_weights", "einsum", "[ebt]->bte", {"moe.weights"}, "b t e", "moe", NULL, NULL,
     .part = "moe", .label = "weights", .need = FEATURE_MOE | FEATURE_CAPPED},
    {"moe.kept_weights", "einsum", "bte,[ebt]->[ebt]", {"moe.all_weights", "moe.kept"}, "[ebt]",
     "moe", NULL, NULL, .part = "moe", .label = "weights of the kept",
     .need = FEATURE_MOE | FEATURE_CAPPED},
    {"moe.dispatched", "einsum", "btd,[ebt]->[ebt]d", {"post_attn_norm|resid_attn|input_norm", "moe.kept|moe.list"},
     "[ebt] d",
     "moe.experts", NULL, NULL, .part = "moe", .label = "dispatch", .need = FEATURE_MOE},
    {"moe.scored", "einsum", "[ebt]d,[ebt]->[ebt]d",
     {"moe.dispatched", "moe.kept_weights|moe.weights"},
     "[ebt] d",
     "moe.experts", NULL, NULL, .part = "moe", .label = "score",
     .need = FEATURE_MOE | FEATURE_SCORE_FIRST},
    {"moe.gate", "einsum", "[ebt]d,ewd->[ebt]w", {"moe.scored|moe.dispatched", "@w"}, "[ebt] w",
     "moe.experts", NULL, "e w d", "moe", "experts", .param = "gate_proj",
     .need = FEATURE_MOE, .lack = FEATURE_EXPERTS_PACKED | FEATURE_EXPERTS_TURNED},
    {"moe.up", "einsum", "[ebt]d,ewd->[ebt]w", {"moe.scored|moe.dispatched", "@w"}, "[ebt] w",
     "moe.experts", NULL, "e w d", "moe", "experts", .param = "up_proj",
     .need = FEATURE_MOE, .lack = FEATURE_EXPERTS_PACKED | FEATURE_EXPERTS_TURNED},
    {"moe.gate_up", "einsum", "[ebt]d,euwd->[ebt]uw", {"moe.scored|moe.dispatched", "@w"},
     "[ebt] uw", "moe.experts", NULL, "e uw d", "moe", "experts", .param = "gate_up_proj",
     .need = FEATURE_MOE | FEATURE_EXPERTS_PACKED, .lack = FEATURE_EXPERTS_TURNED},
    {"moe.gate", "einsum", "[ebt]d,edw->[ebt]w", {"moe.scored|moe.dispatched", "@w"}, "[ebt] w",
     "moe.experts", NULL, "e d w", "moe", "experts", .param = "gate_proj",
     .need = FEATURE_MOE | FEATURE_EXPERTS_TURNED, .lack = FEATURE_EXPERTS_PACKED},
    {"moe.up", "einsum", "[ebt]d,edw->[ebt]w", {"moe.scored|moe.dispatched", "@w"}, "[ebt] w",
     "moe.experts", NULL, "e d w", "moe", "experts", .param = "up_proj",
     .need = FEATURE_MOE | FEATURE_EXPERTS_TURNED, .lack = FEATURE_EXPERTS_PACKED},
    {"moe.gate_up", "einsum", "[ebt]d,eduw->[ebt]uw", {"moe.scored|moe.dispatched", "@w"},
     "[ebt] uw", "moe.experts", NULL, "e d uw", "moe", "experts", .param = "gate_up_proj",
     .need = FEATURE_MOE | FEATURE_EXPERTS_PACKED | FEATURE_EXPERTS_TURNED,
     .lack = FEATURE_EXPERT_BIASES},
    {"moe.gate_up.product", "einsum", "[ebt]d,edwu->[ebt]wu", {"moe.scored|moe.dispatched", "@w"},
     "[ebt] wu", "moe.experts", NULL, "e d wu", "moe", "experts", .param = "gate_up_proj",
     .need = FEATURE_MOE | FEATURE_EXPERT_BIASES},
    {"moe.gate_up", "add", "[ebt]wu,ewu->[ebt]wu", {"moe.gate_up.product", "@w"}, "[ebt] wu",
     "moe.experts", NULL, "e wu", "moe", "bias", .param = "gate_up_proj_bias",
     .need = FEATURE_MOE | FEATURE_EXPERT_BIASES},
    {"moe.limited", "limit_pairs", "[ebt]wu!->[ebt]wu", {"moe.gate_up"}, "[ebt] wu", "moe.experts",
     NULL, NULL, .part = "moe", .at = AT_SWIGLU, .need = FEATURE_MOE | FEATURE_EXPERT_BIASES},
    {"moe.act", "swiglu_up_plus", "[ebt]wu!->[ebt]w", {"moe.limited"}, "[ebt] w", "moe.experts",
     NULL, NULL, .part = "moe", .at = AT_SWIGLU, .need = FEATURE_MOE | FEATURE_EXPERT_BIASES},
    {"moe.gate_act", NULL, "[ebt]w->[ebt]w", {"moe.gate"}, "[ebt] w", "moe.experts", NULL, NULL,
     .part = "moe", .need = FEATURE_MOE, .lack = FEATURE_EXPERTS_PACKED},
    {"moe.act", "einsum", "[ebt]w,[ebt]w->[ebt]w", {"moe.gate_act", "moe.up"}, "[ebt] w",
     "moe.experts", NULL, NULL, .part = "moe", .label = "multiply",
     .need = FEATURE_MOE, .lack = FEATURE_EXPERTS_PACKED},
    {"moe.act", "swiglu", "[ebt]u!w->[ebt]w", {"moe.gate_up"}, "[ebt] w", "moe.experts", NULL, NULL,
     .part = "moe", .need = FEATURE_MOE | FEATURE_EXPERTS_PACKED,
     .lack = FEATURE_EXPERT_BIASES},
    {"moe.down", "einsum", "[ebt]w,edw->[ebt]d", {"moe.act", "@w"}, "[ebt] d", "moe.experts", NULL,
     "e d w", "moe", "experts", .param = "down_proj", .home = "moe.dispatched",
     .need = FEATURE_MOE, .lack = FEATURE_EXPERTS_TURNED},
    {"moe.down", "einsum", "[ebt]w,ewd->[ebt]d", {"moe.act", "@w"}, "[ebt] d", "moe.experts", NULL,
     "e w d", "moe", "experts", .param = "down_proj", .home = "moe.dispatched",
     .need = FEATURE_MOE | FEATURE_EXPERTS_TURNED,
     .lack = FEATURE_EXPERT_BIASES},
    {"moe.down.product", "einsum", "[ebt]w,ewd->[ebt]d", {"moe.act", "@w"}, "[ebt] d",
     "moe.experts", NULL, "e w d", "moe", "experts", .param = "down_proj",
     .need = FEATURE_MOE | FEATURE_EXPERT_BIASES},
    {"moe.down", "add", "[ebt]d,ed->[ebt]d", {"moe.down.product", "@w"}, "[ebt] d", "moe.experts",
     NULL, "e d", "moe", "bias", .param = "down_proj_bias", .home = "moe.dispatched",
     .need = FEATURE_MOE | FEATURE_EXPERT_BIASES},
    {"moe.routed", "einsum", "[ebt]d,[ebt]->btd", {"moe.down", "moe.kept_weights|moe.weights"},
     "b t d", "moe.experts", NULL, NULL, .part = "moe", .label = "combine", .at = AT_COMBINED,
     .need = FEATURE_MOE,
     .lack = FEATURE_SCORE_FIRST},
    {"moe.routed", "einsum", "[ebt]d->btd", {"moe.down"}, "b t d", "moe.experts", NULL, NULL,
     .part = "moe", .label = "combine", .at = AT_COMBINED,
     .need = FEATURE_MOE | FEATURE_SCORE_FIRST},
    {"moe.shared.gate", "einsum", "btd,md->btm", {"post_attn_norm|resid_attn|input_norm", "@w"}, "b t m",
     "moe.shared_experts.gate_proj", "linear", "m d", "moe", "linear",
     .need = FEATURE_MOE | FEATURE_SHARED},
    {"moe.shared.up", "einsum", "btd,md->btm", {"post_attn_norm|resid_attn|input_norm", "@w"}, "b t m",
     "moe.shared_experts.up_proj", "linear", "m d", "moe", "linear",
     .need = FEATURE_MOE | FEATURE_SHARED},
    {"moe.shared.gate_act", NULL, "btm->btm", {"moe.shared.gate"}, "b t m",
     "moe.shared_experts.act_fn", "activation", NULL, .part = "moe",
     .need = FEATURE_MOE | FEATURE_SHARED},
    {"moe.shared.act", "einsum", "btm,btm->btm", {"moe.shared.gate_act", "moe.shared.up"}, "b t m",
     "moe.shared_experts", NULL, NULL, .part = "moe", .label = "multiply",
     .need = FEATURE_MOE | FEATURE_SHARED},
    {"moe.shared.down", "einsum", "btm,dm->btd", {"moe.shared.act", "@w"}, "b t d",
     "moe.shared_experts.down_proj", "linear", "d m", "moe", "linear",
     .need = FEATURE_MOE | FEATURE_SHARED},
    {"moe.output", "add", "btd,btd->btd", {"moe.routed", "moe.shared.down"}, "b t d", "moe", NULL,
     NULL, .part = "moe", .need = FEATURE_MOE | FEATURE_SHARED},
    NORM("mlp_out_norm", "mlp.down|moe.output|moe.routed", "mlp_out_norm", FEATURE_NORM_AFTER),
    {"mlp_scaled", "scale", "btd->btd", {"mlp_out_norm|mlp.down|moe.output|moe.routed"}, "b t d",
     "", NULL, NULL, .part = "mlp", .at = AT_BRANCH_SCALE, .need = FEATURE_SCALED_BRANCH},
    {"branches", "add", "btd,btd->btd", {"attn_scaled|o_proj", "mlp_scaled|mlp.down|moe.output|moe.routed"}, "b t d", "",
     NULL, NULL, .part = "mlp", .need = FEATURE_PARALLEL},
    {"output", "add", "btd,btd->btd", {"input", "branches"}, "b t d", "", NULL, NULL,
     .part = "mlp", .need = FEATURE_PARALLEL},
    {"output", "add", "btd,btd->btd", {"resid_attn", "mlp_scaled|mlp_out_norm|mlp.down"}, "b t d",
     "", NULL, NULL, .part = "mlp", .need = FEATURE_DENSE, .lack = FEATURE_PARALLEL},
    {"output", "add", "btd,btd->btd",
     {"resid_attn", "mlp_scaled|mlp_out_norm|moe.output|moe.routed"}, "b t d", "", NULL,
     NULL, .part = "moe", .need = FEATURE_MOE, .lack = FEATURE_PARALLEL},
};

static const NodeRow embed_rows[] = {
    {"embed", "embed", "vd,bt->btd", {"@w", "input_ids"}, "b t d", "model.embed_tokens",
     "embedding", "v d", .part = "embedding", .label = "embedding", .vocab = true},
    {"pos_embed", "position", "pd,bt->btd", {"@w", "input_ids"}, "b t d", "model.embed_positions",
     "embedding", "p d", .part = "embedding", .need = FEATURE_LEARNED},
    {"embed_sum", "add", "btd,btd->btd", {"embed", "pos_embed"}, "b t d", "", NULL, NULL,
     .part = "embedding", .need = FEATURE_LEARNED},
    {"embed_scaled", "scale", "btd->btd", {"@x"}, "b t d", "", NULL, NULL, .part = "embedding",
     .at = AT_INPUT_SCALE, .need = FEATURE_SCALED_INPUT},
};
static const NodeRow norm_rows[] = {NORM("final_norm", "@x", "model.norm", 0)};
static const NodeRow head_rows[] = {
    {"logits", "einsum", "btd,vd->btv", {"@x", "@w"}, "b t v", "lm_head", "linear", "v d",
     .part = "head", .label = "linear", .vocab = true, .lack = FEATURE_BENT_LOGITS},
    {"head", "einsum", "btd,vd->btv", {"@x", "@w"}, "b t v", "lm_head", "linear", "v d",
     .part = "head", .label = "linear", .vocab = true, .need = FEATURE_BENT_LOGITS},
    {"logits", "scale", "btv->btv", {"@x"}, "b t v", "", NULL, NULL, .part = "head",
     .at = AT_LOGITS_SCALE, .need = FEATURE_SCALED_LOGITS},
    {"logits", "softcap", "btv->btv", {"@x"}, "b t v", "", NULL, NULL, .part = "head",
     .at = AT_LOGITS_CAP, .need = FEATURE_CAPPED_LOGITS},
};
/* clang-format on */

static bool has_container(const Build *b, int i) {
    return (containers[i].need & build_features(b)) == containers[i].need;
}
/* The innermost container of this layer that a path lies in: "self_attn.q_proj" in self_attn.
 * at[i]: the module of container i, or -1. */
static int parent_of(const char *path, const int *at) {
    for (int i = N_CONTAINERS - 1; i > 0; i--) {
        size_t n = strlen(containers[i].path);
        if (at[i] >= 0 && !strncmp(path, containers[i].path, n) && path[n] == '.') return at[i];
    }
    return at[0];
}
/* Makes the containers of a layer; their inputs and outputs follow when the nodes are there. */
static void open_containers(Build *b, int layer, int *at) {
    for (int i = 0; i < N_CONTAINERS; i++) at[i] = -1;
    for (int i = 0; i < N_CONTAINERS; i++)
        if (has_container(b, i))
            at[i] = build_module(
                b,
                build_module_path(b, arena_printf(b->a, "model.layers.%d%s", layer, i ? "." : ""),
                                  containers[i].path),
                containers[i].kind, i ? parent_of(containers[i].path, at) : -1);
}

static void close_containers(Build *b, const int *at, const char *prefix) {
    for (int i = 0; i < N_CONTAINERS; i++) {
        if (at[i] < 0) continue;
        GModule *m = &b->g->module[at[i]];
        for (m->n_input = 0; m->n_input < 3 && containers[i].in[m->n_input]; m->n_input++)
            m->input[m->n_input] = build_first(b, containers[i].in[m->n_input], prefix);
        m->output = build_value(b, arena_printf(b->a, "%s%s", prefix, containers[i].out));
    }
}

/* Rows that experts have room for, of all: what is left of tokens times experts per token. */
static int64_t expert_room(const Build *b) {
    double each = ceil((double)b->rows * b->p->moe.capacity_factor / (double)b->m->E - 1e-9);
    double all = each * (double)b->m->E;
    return all < (double)b->rows ? (int64_t)all : b->rows;
}
static void build_layer(Build *b, int layer) {
    const char *prefix = arena_printf(b->a, "layers.%d.", layer);
    const char *modules = arena_printf(b->a, "model.layers.%d.", layer);
    const char *input = arena_printf(b->a, "%sinput", prefix);
    if (b->x < 0) /* [B, S, D] */
        b->x = build_tensor(b, input, KIND_INPUT, "b t d", b->p->input_gradient, false);
    else build_alias(b, b->x, input);
    int at[N_CONTAINERS];
    b->moe = b->m->E > 0 && model_has_experts(b->m, layer);
    b->layer = layer;
    b->n_block = 0;
    open_containers(b, layer, at);
    const Features have = build_features(b);
    if (b->moe && b->m->routed)
        build_tensor(b, arena_printf(b->a, "%smoe.routing", prefix), KIND_INPUT, "b t e", false,
                     false);
    for (size_t i = 0; i < sizeof layer_rows / sizeof *layer_rows && !b->failed; i++) {
        if (b->moe && b->m->capped && layer_rows[i].at & AT_CAPACITY) b->kept = expert_room(b);
        if (!build_there(&layer_rows[i], have)) continue;
        int t = build_in_parts(
            b, &layer_rows[i],
            (RowPlace){prefix, modules, layer, parent_of(layer_rows[i].module, at), NULL});
        if (t >= 0) b->x = t;
        if (t >= 0 && layer_rows[i].at & AT_COMBINED) b->kept = 0;
    }
    if (b->moe && !b->failed) build_balance(b, (RowPlace){prefix, modules, layer, at[0], NULL});
    if (b->moe && !b->failed && !b->m->shared)
        build_alias(b, build_value(b, arena_printf(b->a, "%smoe.routed", prefix)),
                    arena_printf(b->a, "%smoe.output", prefix));
    if (!b->failed) close_containers(b, at, prefix);
    b->moe = false;
    b->layer = -1;
}

/* An input of the first part that is built, under the name that this value has in the whole model.
 */
static void need_input(Build *b, const char *name) {
    if (b->x < 0) b->x = build_tensor(b, name, KIND_INPUT, "b t d", b->p->input_gradient, false);
}

/* The rows of what stands around the layers; each takes what the one before has made. */
static void build_around(Build *b, const NodeRow *row, size_t n, const char *weight) {
    for (size_t i = 0; i < n && !b->failed; i++) {
        int t = build_row(b, &row[i], (RowPlace){"", "", -1, -1, weight});
        if (t >= 0) b->x = t;
    }
}
#define AROUND(b, rows, weight) build_around(b, rows, sizeof(rows) / sizeof *(rows), weight)
void build_llama(Build *b, uint32_t parts) {
    const ModelDims *m = b->m;
    b->x = -1;
    if (parts & PART_EMBEDDING) {
        if (build_tensor(b, "input_ids", KIND_INPUT, "b t", false, true) < 0) return;
        AROUND(b, embed_rows, NULL);
    }
    if (parts & PART_BLOCKS)
        for (int i = m->first_layer; i < m->last_layer && !b->failed; i++) build_layer(b, i);
    if (parts & PART_NORM && !b->failed) {
        need_input(b, arena_printf(b->a, "layers.%d.output", (int)m->L - 1));
        AROUND(b, norm_rows, NULL);
    }
    if (parts & PART_HEAD && !b->failed) {
        need_input(b, "final_norm");
        AROUND(b, head_rows,
               m->tied ? build_module_path(b, "", "model.embed_tokens.weight") : NULL);
    }
}
