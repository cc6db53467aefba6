/* Presets: the sizes of published models, one row each.
 */
#include "model/build.h"
#include <string.h>

#define LLAMA31_ROPE(f)                                                                            \
    .rope_type = "llama3", .rope_factor = (f), .rope_low = 1, .rope_high = 4, .rope_old_ctx = 8192
/* Llama 4: three layers of four turn queries and keys and attend within chunks of 8,192. */
#define LLAMA4 .family = "llama4_text", .chunk = 8192, .unrotated_every = 4

/* gpt-oss: attention sinks, experts with biases, the dims of rope that turn slowly are not cut off.
 */
#define GPT_OSS                                                                                    \
    .family = "gpt_oss", .window = 128, .qkv_bias = true, .rope_type = "yarn", .rope_factor = 32,  \
    .rope_old_ctx = 4096, .yarn = {.fast = 32, .slow = 1, .truncate = false}

/* name, what, D, L, H, K, d, F, V, eps, rope base */
static const Preset presets[] = {
    {"llama2-7b", "Llama 2 7B", 4096, 32, 32, 32, 128, 11008, 32000, 1e-5, 1e4,
     .max_positions = 4096},
    {"llama3-8b", "Llama 3 8B", 4096, 32, 32, 8, 128, 14336, 128256, 1e-5, 5e5,
     .max_positions = 8192},
    {"llama3-70b", "Llama 3 70B", 8192, 80, 64, 8, 128, 28672, 128256, 1e-5, 5e5,
     .max_positions = 8192},
    {"llama3.1-8b", "Llama 3.1 8B", 4096, 32, 32, 8, 128, 14336, 128256, 1e-5, 5e5,
     .max_positions = 131072, LLAMA31_ROPE(8)},
    {"llama3.1-70b", "Llama 3.1 70B", 8192, 80, 64, 8, 128, 28672, 128256, 1e-5, 5e5,
     .max_positions = 131072, LLAMA31_ROPE(8)},
    {"llama3.1-405b", "Llama 3.1 405B", 16384, 126, 128, 8, 128, 53248, 128256, 1e-5, 5e5,
     .max_positions = 131072, LLAMA31_ROPE(8)},
    {"llama3.2-1b", "Llama 3.2 1B", 2048, 16, 32, 8, 64, 8192, 128256, 1e-5, 5e5, .tied = true,
     .max_positions = 131072, LLAMA31_ROPE(32)},
    {"llama3.2-3b", "Llama 3.2 3B", 3072, 28, 24, 8, 128, 8192, 128256, 1e-5, 5e5, .tied = true,
     .max_positions = 131072, LLAMA31_ROPE(32)},
    {"mistral-7b-v0.3", "Mistral 7B v0.3", 4096, 32, 32, 8, 128, 14336, 32768, 1e-5, 1e6,
     .max_positions = 32768},
    {"qwen2-0.5b", "Qwen2 0.5B", 896, 24, 14, 2, 64, 4864, 151936, 1e-6, 1e6, .qkv_bias = true,
     .tied = true, .max_positions = 131072},
    {"qwen2-1.5b", "Qwen2 1.5B", 1536, 28, 12, 2, 128, 8960, 151936, 1e-6, 1e6, .qkv_bias = true,
     .tied = true, .max_positions = 131072},
    {"qwen2-7b", "Qwen2 7B", 3584, 28, 28, 4, 128, 18944, 152064, 1e-6, 1e6, .qkv_bias = true,
     .max_positions = 131072},
    {"qwen3-0.6b", "Qwen3 0.6B", 1024, 28, 16, 8, 128, 3072, 151936, 1e-6, 1e6, .qk_norm = true,
     .tied = true, .max_positions = 40960},
    {"qwen3-1.7b", "Qwen3 1.7B", 2048, 28, 16, 8, 128, 6144, 151936, 1e-6, 1e6, .qk_norm = true,
     .tied = true, .max_positions = 40960},
    {"qwen3-4b", "Qwen3 4B", 2560, 36, 32, 8, 128, 9728, 151936, 1e-6, 1e6, .qk_norm = true,
     .tied = true, .max_positions = 40960},
    {"qwen3-8b", "Qwen3 8B", 4096, 36, 32, 8, 128, 12288, 151936, 1e-6, 1e6, .qk_norm = true,
     .max_positions = 40960},
    {"qwen3-14b", "Qwen3 14B", 5120, 40, 40, 8, 128, 17408, 151936, 1e-6, 1e6, .qk_norm = true,
     .max_positions = 40960},
    {"qwen3-32b", "Qwen3 32B", 5120, 64, 64, 8, 128, 25600, 151936, 1e-6, 1e6, .qk_norm = true,
     .max_positions = 40960},
    {"llama4-scout",
     "Llama 4 Scout (16 experts)",
     5120,
     48,
     40,
     8,
     128,
     16384,
     202048,
     1e-5,
     5e5,
     .max_positions = 10485760,
     LLAMA4,
     .E = 16,
     .top_k = 1,
     .Fe = 8192,
     .experts_every = 1,
     .rope_type = "llama3",
     .rope_factor = 16,
     .rope_low = 1,
     .rope_high = 1,
     .rope_old_ctx = 8192},
    {"llama4-maverick", "Llama 4 Maverick (128 experts in layers 1, 3, ..)", 5120, 48, 40, 8, 128,
     16384, 202048, 1e-5, 5e5, .max_positions = 1048576, LLAMA4, .no_qk_l2 = true, .E = 128,
     .top_k = 1, .Fe = 8192, .experts_from = 1, .experts_every = 2},
    {"mixtral-8x7b", "Mixtral 8x7B", 4096, 32, 32, 8, 128, 14336, 32000, 1e-5, 1e6,
     .max_positions = 32768, .E = 8, .top_k = 2, .Fe = 14336, .family = "mixtral"},
    {"deepseek-v3",
     "DeepSeek-V3 (256 experts in layers 3 to 60)",
     7168,
     61,
     128,
     128,
     192,
     18432,
     129280,
     1e-6,
     1e4,
     .max_positions = 163840,
     .family = "deepseek_v3",
     .E = 256,
     .top_k = 8,
     .Fe = 2048,
     .q_rank = 1536,
     .kv_rank = 512,
     .nope = 128,
     .rope = 64,
     .v_dim = 128,
     .experts_from = 3,
     .experts_every = 1,
     .rope_type = "yarn",
     .rope_factor = 40,
     .rope_old_ctx = 4096,
     .yarn = {.fast = 32, .slow = 1, .mscale = 1, .mscale_all = 1, .truncate = true}},
    {"qwen3-30b-a3b", "Qwen3 30B-A3B (128 experts)", 2048, 48, 32, 4, 128, 768, 151936, 1e-6, 1e6,
     .qk_norm = true, .max_positions = 40960, .E = 128, .top_k = 8, .Fe = 768,
     .family = "qwen3_moe"},
    {"qwen3-235b-a22b", "Qwen3 235B-A22B (128 experts)", 4096, 94, 64, 4, 128, 1536, 151936, 1e-6,
     5e6, .qk_norm = true, .max_positions = 40960, .E = 128, .top_k = 8, .Fe = 1536,
     .family = "qwen3_moe"},
    {"gpt-oss-20b", "gpt-oss 20B (32 experts)", 2880, 24, 64, 8, 64, 2880, 201088, 1e-5, 150000,
     .max_positions = 131072, .E = 32, .top_k = 4, .Fe = 2880, GPT_OSS},
    {"gpt-oss-120b", "gpt-oss 120B (128 experts)", 2880, 36, 64, 8, 64, 2880, 201088, 1e-5, 150000,
     .max_positions = 131072, .E = 128, .top_k = 4, .Fe = 2880, GPT_OSS},
};
enum { N_PRESETS = sizeof presets / sizeof *presets };

const Preset *model_presets(int *n) {
    *n = N_PRESETS;
    return presets;
}

/* ---- names of model hubs ---- */
typedef struct {
    const char *s;
    size_t n;
} Piece;
static bool is_letter(char c) { return (c | 32) >= 'a' && (c | 32) <= 'z'; }
/* The words of a name, between dashes and where a number follows a word: "Llama-3.1-8B" and
 * "llama3.1-8b" are llama, 3.1, 8b. At most `most` of them. */
static int pieces(const char *s, Piece *out, int most) {
    int n = 0;
    while (*s && n < most) {
        size_t k = strcspn(s, "-_ "), letters = 0;
        while (letters < k && is_letter(s[letters])) letters++;
        if (letters > 1 && letters < k && s[letters] >= '0' && s[letters] <= '9') k = letters;
        if (k) out[n++] = (Piece){s, k};
        s += k;
        s += strspn(s, "-_ ");
    }
    return n;
}
static bool same_piece(Piece a, Piece b) {
    for (size_t i = 0; i < a.n && a.n == b.n; i++)
        if ((is_letter(a.s[i]) ? a.s[i] | 32 : a.s[i]) !=
            (is_letter(b.s[i]) ? b.s[i] | 32 : b.s[i]))
            return false;
    return a.n == b.n;
}
/* The preset all of whose words stand in a name like "meta-llama/Llama-3.1-8B-Instruct", in their
 * order; the one with most of them, or NULL. */
static const char *preset_of_hub(const char *name) {
    enum { MOST = 16 };
    Piece has[MOST], wants[MOST];
    const char *slash = strrchr(name, '/'), *best = NULL;
    int n = pieces(slash ? slash + 1 : name, has, MOST), longest = 0;
    for (int i = 0; i < N_PRESETS; i++) {
        int m = pieces(presets[i].name, wants, MOST), at = 0;
        for (int k = 0; k < n && at < m; k++) at += same_piece(has[k], wants[at]);
        if (at == m && m > longest) best = presets[i].name, longest = m;
    }
    return best;
}
const char *model_preset_hint(Arena *a, const char *name) {
    const char *names[N_PRESETS + 1] = {0}, *near = preset_of_hub(name);
    for (int i = 0; i < N_PRESETS; i++) names[i] = presets[i].name;
    if (!near) near = diag_nearest(name, names);
    return near ? arena_printf(a, "did you mean '%s'? `list models` shows all", near)
                : "`list models` shows all; of another model its config.json is understood";
}
const char *model_activation_hint(Arena *a, const char *name) {
    const char **names = ARENA_ARRAY(a, const char *, n_ops + 1);
    int n = 0;
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->activation) names[n++] = op_list[i]->activation;
    const char *near = diag_nearest(name, names);
    return near ? near : "`list ops` shows the activations";
}
const Preset *preset_find(Arena *a, Diags *d, const Plan *p) {
    for (int i = 0; i < N_PRESETS; i++)
        if (!strcmp(presets[i].name, p->preset)) return &presets[i];
    diag_error(d, "E0202", p->preset_loc, model_preset_hint(a, p->preset), "unknown preset '%s'",
               p->preset);
    return NULL;
}

void model_check_preset(Arena *a, Diags *d, const Plan *p) {
    if (p->preset) preset_find(a, d, p);
}
