/* Which version of transformers has which style: see hf_version.h. */
#include "import/hf_version.h"
#include <ctype.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

enum { ALL = HF_GEN_1 | HF_GEN_2 | HF_GEN_3, FROM_2 = HF_GEN_2 | HF_GEN_3 };
static const HfStyle styles[] = {
    {.name = "colwise", .in = ALL},
    {.name = "rowwise", .in = ALL},
    {.name = "colwise_rep", .in = HF_GEN_1 | HF_GEN_3, .instead = "colwise_gather_output"},
    {.name = "rowwise_rep", .in = HF_GEN_1 | HF_GEN_3, .instead = "rowwise_split_input"},
    {.name = "colwise_gather_output", .in = FROM_2, .instead = "colwise_rep"},
    {.name = "rowwise_split_input", .in = FROM_2, .instead = "rowwise_rep"},
    {.name = "local_colwise", .in = HF_GEN_1, .instead = "colwise"},
    {.name = "local_rowwise", .in = HF_GEN_1, .instead = "rowwise"},
    {.name = "local_packed_rowwise", .in = HF_GEN_1, .instead = "packed_rowwise"},
    {.name = "packed_colwise", .in = FROM_2},
    {.name = "packed_rowwise", .in = FROM_2, .instead = "local_packed_rowwise"},
    {.name = "local", .in = HF_GEN_1},
    {.name = "gather", .in = HF_GEN_1, .instead = "all_reduce"},
    {.name = "all_reduce", .in = FROM_2, .instead = "gather"},
    /* a whole tensor is sliced, the module runs on the slice, and its result is gathered */
    {.name = "sequence_parallel",
     .in = ALL,
     .first = "{style: sequence_parallel, input: replicate, desired_input: shard(1), output: "
              "replicate}",
     .second_not = "what sequence_parallel did in these versions is not recorded (its code names "
                   "the last dim, not the sequence)",
     .third_not = "the library's sequence_parallel only relabels a whole tensor, and its "
                  "gradients come out as many times too large as there are ranks: no plan "
                  "says that",
     .do_instead = "leave the line out: the norm is whole"},
    {.name = "replicate", .in = ALL},
    {.name = "embedding_rowwise", .in = FROM_2, .instead = "rowwise"},
    {.name = "embedding_colwise", .in = FROM_2},
    {.name = "grouped_gemm", .in = ALL},
    {.name = "ep_router",
     .in = HF_GEN_1 | HF_GEN_2,
     .instead = "ep_dispatch_experts on the experts"},
    {.name = "ep_dispatch_experts", .in = HF_GEN_3, .instead = "ep_router on the router"},
    {.name = "local_params", .in = HF_GEN_3, .drops_line = true},
    {.name = "moe_tp_experts", .in = FROM_2, .instead = "gather"},
    {.name = "moe_identity_expert", .in = FROM_2},
    {.name = "replicated_with_grad_allreduce", .in = FROM_2},
    /* cuts nothing and sums the gradient of the part that is the key which heads share: here that
     * is where this key is laid beside each head's own */
    {.name = "mla_kv_a_proj",
     .in = FROM_2,
     .at = ".kv_a_proj_with_mqa",
     .style = "replicate",
     .beside = ".k_cat",
     .line = "{style: prepare_module_input, input: [null, replicate], desired_input: [null, "
             "varying_use]}"},
};
const HfStyle *hf_styles(int *n) {
    *n = sizeof styles / sizeof *styles;
    return styles;
}
const HfStyle *hf_style(const char *name) {
    for (size_t i = 0; i < sizeof styles / sizeof *styles; i++)
        if (!strcmp(styles[i].name, name)) return &styles[i];
    return NULL;
}

/* A number of at most three digits at *s, which goes behind it; -1: there is none. */
static int number(const char **s) {
    int n = 0, digits = 0;
    for (; isdigit((unsigned char)**s) && digits < 4; ++*s, digits++) n = 10 * n + (**s - '0');
    return digits && digits < 4 ? n : -1;
}
HfGeneration hf_generation(const char *version) {
    const char *s = version;
    int major = number(&s), minor = *s == '.' ? (s++, number(&s)) : -1;
    if (*s == '.' && (s++, number(&s)) < 0) return HF_NO_VERSION;
    if (*s || major < 0 || minor < 0) return HF_NO_VERSION;
    if (major == 4 && minor >= 50) return HF_GEN_1;
    if (major == 5 && minor <= 19) return HF_GEN_2;
    return major == 5 && minor == 23 ? HF_GEN_3 : HF_NO_VERSION;
}
