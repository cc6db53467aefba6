/* What went wrong in the library's own loads although the plan is right, and what families have
 * that no row of the table of families says: data, with the version that was run. Refuses what
 * follows from a plan: that is found by executing it. */
#include "import/recorded.h"
#include <string.h>

static const RecordedFault rows[] = {
    {"gpt_oss", "5.23", "kernel",
     "with --ep training is right, inference raises where experts are run one by one: the number "
     "that stands for experts of other ranks is out of range; right with batched_mm"},
    {"hrm_text", "5.23", "loader",
     "the checkpoint has gate, queries, keys and values in one tensor, gate and up in another; a "
     "rank takes its block of the whole first and cuts it into four or two afterwards: wrong "
     "weights on every rank"},
    {"llama4_text", "5.23", "autograd",
     "inference is right, training raises: an addition in place on the view that a row-parallel "
     "output returns"},
    {"youtu", "5.23", "loader",
     "one process zeroes the pad row of the tied embedding, several do not; right without a "
     "pad_token_id or with tie_word_embeddings: false"},
};
/* Read off transformers 5.23's own code, of the families that it was run with here. */
static const struct {
    const char *model_type, *what;
} lacking[] = {
    {"afmoe", "attention's result times the sigmoid of a gate of its own (gate_proj)"},
    {"axk1", "a norm behind the experts (mlp.post_mlp_layernorm)"},
    {"beam", "attention's result times the sigmoid of a gate with a bias for each head "
             "(gate_proj, gate_bias)"},
    {"deepseek_v4", "several residual streams (attn_hc), compressed keys and their indexer"},
    {"doge",
     "a mask that is computed from values (dt_proj, A), residuals times weights of their own"},
    {"dots3_note_text", "an indexer that chooses keys, attention's result times a gate (g_proj)"},
    {"gemma4_text", "an embedding of its own for each layer (per_layer_input_gate)"},
    {"glm_moe_dsa", "an indexer that chooses keys"},
    {"granite_swa", "learned sinks: attention's result is scaled by them; a theta for each layer"},
    {"granitemoe_swa", "learned sinks: attention's result is scaled by them; a theta for each "
                       "layer"},
    {"granitemoehybrid", "layers of a state space model (mamba)"},
    {"hrm_text", "two stacks of layers that are run in cycles, attention's result times a gate"},
    {"hunyuan_v1_moe", "norms of queries and keys behind the rotation (query_layernorm)"},
    {"hy_v4", "several residual streams (attn_hc), an indexer that chooses keys, learned sinks"},
    {"inkling_text", "convolutions of keys, values and residual streams, learned relative "
                     "positions"},
    {"laguna", "attention's result times the softplus of a gate (g_proj), heads by layer"},
    {"minimax_m3_vl_text", "a clamped activation (swiglu_limit), an indexer that chooses blocks of "
                           "keys"},
    {"nemotron_h", "layers of a state space model (mamba)"},
    {"phi4_multimodal", "an encoder of pictures and one of sound beside the text"},
    {"qwen3_5_text", "layers of linear attention (gated delta rule)"},
    {"qwen3_next", "layers of linear attention (gated delta rule)"},
};
const char *import_lacking(const char *model_type) {
    for (size_t i = 0; model_type && i < sizeof lacking / sizeof *lacking; i++)
        if (!strcmp(lacking[i].model_type, model_type)) return lacking[i].what;
    return NULL;
}
const RecordedFault *import_recorded_rows(int *n) {
    *n = sizeof rows / sizeof *rows;
    return rows;
}
const RecordedFault *import_recorded(const char *model_type) {
    for (size_t i = 0; model_type && i < sizeof rows / sizeof *rows; i++)
        if (!strcmp(rows[i].model_type, model_type)) return &rows[i];
    return NULL;
}
