/* Hugging Face transformers: a config.json and the tensor parallel plan that its model type ships
 * with, or a table `pattern: style` over it (semantics.md 2.7, transformers 5.23). */
#include "base/file.h"
#include "base/text.h"
#include "import/hf_version.h"
#include "import/import.h"
#include "import/modules.h"
#include "import/python.h"
#include "import/recorded.h"
#include "model/model.h"
#include <string.h>

enum {
    FILE_BYTES = 1 << 20,
    WITH_EXPERTS = MODULES_EXPERTS | MODULES_EXPERTS_TURNED | MODULES_EXPERTS_BIASED
};

/* base_model_tp_plan of the families that run here, with the head's and the embedding's lines that
 * the library adds. Inputs are plain tensors: each column layer moves its own. With --ep
 * base_model_ep_plan goes over it. */
typedef struct {
    const char *pattern, *style; /* style NULL: there is such a line with --ep only */
    unsigned of;                 /* MODULES_ that the family must have; 0: all have it */
    const char *ep;              /* the style with --ep; NULL: the same */
} Shipped;
#define ALL(pattern, style)                                                                        \
    { pattern, style, 0, NULL }
static const Shipped shipped[] = {
    {"model.embed_tokens", "embedding_rowwise", MODULES_EMBEDDING, NULL},
    {"model.layers.*.self_attn.q_proj", "colwise", MODULES_QKV, NULL},
    {"model.layers.*.self_attn.k_proj", "colwise", MODULES_QKV, NULL},
    {"model.layers.*.self_attn.v_proj", "colwise", MODULES_QKV, NULL},
    {"model.layers.*.self_attn.q_proj", "colwise_gather_output", MODULES_QKV_WHOLE, NULL},
    {"model.layers.*.self_attn.k_proj", "colwise_gather_output", MODULES_QKV_WHOLE, NULL},
    {"model.layers.*.self_attn.v_proj", "colwise_gather_output", MODULES_QKV_WHOLE, NULL},
    {"model.layers.*.self_attn.o_proj", "rowwise_split_input", MODULES_QKV_WHOLE, NULL},
    {"model.layers.*.self_attn.q_b_proj", "colwise", MODULES_LATENT, NULL},
    {"model.layers.*.self_attn.kv_a_proj_with_mqa", "mla_kv_a_proj", MODULES_LATENT, NULL},
    {"model.layers.*.self_attn.kv_b_proj", "colwise", MODULES_LATENT, NULL},
    {"model.layers.*.self_attn.o_proj", "rowwise", MODULES_LATENT, NULL},
    {"gpt_neox.layers.*.attention.query_key_value", "colwise", MODULES_NEOX, NULL},
    {"gpt_neox.layers.*.attention.dense", "rowwise", MODULES_NEOX, NULL},
    {"gpt_neox.layers.*.mlp.dense_h_to_4h", "colwise", MODULES_NEOX, NULL},
    {"gpt_neox.layers.*.mlp.dense_4h_to_h", "rowwise", MODULES_NEOX, NULL},
    {"model.layers.*.self_attn.qkv_proj", "colwise_gather_output", MODULES_PACKED_QKV, NULL},
    {"model.layers.*.self_attn.q_norm", "replicated_with_grad_allreduce", MODULES_QK_NORM, NULL},
    {"model.layers.*.self_attn.k_norm", "replicated_with_grad_allreduce", MODULES_QK_NORM, NULL},
    {"model.layers.*.self_attn.o_proj", "rowwise", MODULES_QKV, NULL},
    {"model.layers.*.self_attn.o_proj", "rowwise_split_input", MODULES_PACKED_QKV, NULL},
    {"model.layers.*.mlp.gate_proj", "colwise", MODULES_GATE, NULL},
    {"model.layers.*.mlp.up_proj", "colwise", MODULES_UP, NULL},
    {"model.layers.*.mlp.gate_up_proj", "colwise_gather_output", MODULES_PACKED_MLP, NULL},
    {"model.layers.*.mlp.down_proj", "rowwise", MODULES_UP, NULL},
    {"model.layers.*.mlp.down_proj", "rowwise_split_input", MODULES_PACKED_MLP, NULL},
    {"model.layers.*.mlp.shared_experts.gate_proj", "colwise", MODULES_SHARED, NULL},
    {"model.layers.*.mlp.shared_experts.up_proj", "colwise", MODULES_SHARED, NULL},
    {"model.layers.*.mlp.shared_experts.down_proj", "rowwise", MODULES_SHARED, NULL},
    {"model.layers.*.mlp.shared_expert.gate_proj", "colwise", MODULES_SHARED_ONE, NULL},
    {"model.layers.*.mlp.shared_expert.up_proj", "colwise", MODULES_SHARED_ONE, NULL},
    {"model.layers.*.mlp.shared_expert.down_proj", "rowwise", MODULES_SHARED_ONE, NULL},
    {"model.layers.*.mlp.experts.gate_up_proj", "packed_colwise", MODULES_EXPERTS, "grouped_gemm"},
    {"model.layers.*.mlp.experts.down_proj", "rowwise", MODULES_EXPERTS, "grouped_gemm"},
    {"model.layers.*.mlp.experts", "moe_tp_experts", MODULES_EXPERTS, "ep_dispatch_experts"},
    {"model.layers.*.mlp.experts.gate_up_proj", "packed_rowwise", MODULES_EXPERTS_TURNED,
     "grouped_gemm"},
    {"model.layers.*.mlp.experts.down_proj", "colwise", MODULES_EXPERTS_TURNED, "grouped_gemm"},
    {"model.layers.*.mlp.experts", "moe_tp_experts", MODULES_EXPERTS_TURNED, "ep_dispatch_experts"},
    {"model.layers.*.feed_forward.shared_expert.gate_proj", "colwise", MODULES_EXPERTS_TURNED,
     NULL},
    {"model.layers.*.feed_forward.shared_expert.up_proj", "colwise", MODULES_EXPERTS_TURNED, NULL},
    {"model.layers.*.feed_forward.shared_expert.down_proj", "rowwise", MODULES_EXPERTS_TURNED,
     NULL},
    {"model.layers.*.feed_forward.experts.gate_up_proj", "packed_rowwise", MODULES_EXPERTS_TURNED,
     NULL},
    {"model.layers.*.feed_forward.experts.down_proj", "colwise", MODULES_EXPERTS_TURNED, NULL},
    {"model.layers.*.feed_forward.experts", "moe_tp_experts", MODULES_EXPERTS_TURNED, NULL},
    {"model.layers.*.feed_forward.gate_proj", "colwise", MODULES_EXPERTS_TURNED, NULL},
    {"model.layers.*.feed_forward.up_proj", "colwise", MODULES_EXPERTS_TURNED, NULL},
    {"model.layers.*.feed_forward.down_proj", "rowwise", MODULES_EXPERTS_TURNED, NULL},
    {"model.layers.*.mlp.experts.gate_up_proj", NULL, MODULES_EXPERTS_BIASED, "grouped_gemm"},
    {"model.layers.*.mlp.experts.gate_up_proj_bias", NULL, MODULES_EXPERTS_BIASED, "grouped_gemm"},
    {"model.layers.*.mlp.experts.down_proj", NULL, MODULES_EXPERTS_BIASED, "grouped_gemm"},
    {"model.layers.*.mlp.experts.down_proj_bias", NULL, MODULES_EXPERTS_BIASED, "grouped_gemm"},
    {"model.layers.*.mlp.experts", NULL, MODULES_EXPERTS_BIASED, "ep_dispatch_experts"},
    ALL("lm_head", "colwise_gather_output"),
};
enum { N_SHIPPED = sizeof shipped / sizeof *shipped };

bool import_hf_ships(const char *pattern) {
    for (int i = 0; i < N_SHIPPED; i++)
        if (strcmp(shipped[i].pattern, pattern) == 0) return true;
    return false;
}

/* ---- lines ---- */
/* "layers.*" is of the base model: the one with a head has `model.` before it, and raises for a key
 * that it has not (transformers 5.23, distributed/mixin.py, _resolve_parallel_plans). */
static bool of_base(const char *pattern) {
    static const char *const base[] = {"layers", "embed_tokens", "norm"};
    size_t n = strcspn(pattern, ".");
    for (int i = 0; i < 3; i++)
        if (strlen(base[i]) == n && strncmp(pattern, base[i], n) == 0) return true;
    return false;
}
/* What a style of the library is in a plan: column layers move their inputs themselves, and of gate
 * and up in one weight the plain ones take rows as they lie. */
static const char *style_text(Draft *x, const char *pattern, const char *style) {
    static const struct {
        const char *style;
        bool flat;
    } moves[] = {{"colwise", true},
                 {"colwise_rep", false},
                 {"colwise_gather_output", false},
                 {"packed_colwise", false}};
    const char *last = strrchr(pattern, '.');
    if (!last) return style; /* the head: nobody else reads its input */
    bool packed = strcmp(last, ".gate_up_proj") == 0;
    bool experts = strstr(pattern, ".experts.") != NULL; /* their module moves, not a weight */
    /* dim 0, or of experts [E, 2F, D] the one before the last, which in Llama 4 is D */
    if (experts && packed && !strstr(pattern, ".mlp.")) packed = false;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++) {
        if (strcmp(moves[i].style, style) != 0) continue;
        const char *rows =
            packed && moves[i].flat ? arena_printf(x->a, ", weight: contiguous(%d)", experts) : "";
        if (experts) return *rows ? arena_printf(x->a, "{style: %s%s}", style, rows) : style;
        return arena_printf(x->a, "{style: %s, boundary: per_module%s}", style, rows);
    }
    return style;
}
static void add_text(Draft *x, const char *pattern, const char *text, Loc loc, Loc style_loc) {
    for (int i = 0; i < x->n_lines; i++)
        if (strcmp(x->line[i].pattern, pattern) == 0) {
            x->line[i] = (DraftLine){pattern, text, NULL, loc, style_loc, 0};
            return;
        }
    draft_line(x, pattern, loc, text, style_loc, NULL);
}
/* A line of the user's replaces the shipped one of the same pattern. */
static void add(Draft *x, const char *pattern, const char *style, Loc loc, Loc style_loc) {
    const HfStyle *row = hf_style(style);
    size_t two = row && row->at ? text_before(pattern, row->at) : 0;
    add_text(x, pattern, two ? row->style : style_text(x, pattern, style), loc, style_loc);
    if (two)
        add_text(x, arena_printf(x->a, "%.*s%s", (int)two, pattern, row->beside), row->line, loc,
                 style_loc);
}
/* A style that only says which tensors a kernel reads (local_params) moves nothing: in place of a
 * shipped one it takes that one's moves away. */
static void leave_out(Draft *x, const char *pattern, const char *style) {
    int kept = 0;
    for (int i = 0; i < x->n_lines; i++)
        if (strcmp(x->line[i].pattern, pattern)) x->line[kept++] = x->line[i];
    x->n_lines = kept;
    draft_remark(x, "%s: %s, which moves nothing, in place of its line", pattern, style);
}
/* ---- what is shipped ---- */
/* False and an error for a family whose weights the styles would cut the wrong way. */
static bool can_ship(Draft *x, const char *type) {
    if (!(model_family_modules(type) & MODULES_UNSHIPPED)) return true;
    diag_error(x->d, "E0214", ((Loc){x->file, 1, 1}),
               "a plan of your own: `model: {hf_config: FILE}`, names: hf, and lines as "
               "`transformer.h.*.mlp.c_fc: colwise`",
               "model_type %s: the library ships no plan for it, and its styles would cut the "
               "wrong dim of weights that are stored input dim first",
               type);
    return false;
}
/* `heads_at`: where a config says for how many ranks heads may be cut. */
static void ship(Draft *x, const char *type, Loc heads_at) {
    unsigned has = model_family_modules(type);
    const Graph *g = has & WITH_EXPERTS ? draft_modules(x, NAMES_HF) : NULL;
    bool dispatched = false;
    int64_t sequences = 1;
    for (int i = 0; i < N_SHIPPED; i++) {
        const Shipped *s = &shipped[i];
        if ((s->of & has) != s->of || (g && !draft_has(g, s->pattern))) continue;
        bool ep = x->in->ep > 1 && s->ep;
        if (!ep && !s->style) continue;
        dispatched |= ep;
        const char *last = strrchr(s->pattern, '.');
        bool heads = last && text_has_word(" q_proj k_proj v_proj ", last + 1);
        add(x, s->pattern, ep ? s->ep : s->style, heads ? heads_at : diag_nowhere, diag_nowhere);
    }
    /* a rank's sequences must be a part of the batch each, or one that is cut */
    for (int i = 0; dispatched && i < x->n_axes; i++)
        if (!strncmp(x->axis[i].name, "dp", 2)) sequences *= x->axis[i].size;
    if (dispatched) x->batch = sequences;
    draft_remark(x, "the plan that transformers 5.23 ships for model_type %s%s", type,
                 dispatched ? ", its table for experts over it" : "");
    bool bare = g && !draft_has(g, "model.layers.*.*.experts"); /* it could have, and has none */
    if (x->in->ep > 1 && !dispatched && !bare && !x->in->ep_plan)
        diag_error(x->d, "E0214", ((Loc){x->file, 1, 1}), "--ep-plan FILE, or leave --ep out",
                   "model_type %s: the library ships no table for experts with it", type);
}
/* The library shares experts out to the ranks of tensor parallelism. */
static void check_ep(Draft *x, const char *path) {
    const ImportInput *in = x->in;
    if (in->ep_plan && in->ep < 2)
        diag_error(x->d, "E0212", diag_nowhere, "--ep 8", "--ep-plan is for --ep above 1");
    if (in->ep > 1 && in->tp > 0 && in->tp != in->ep)
        diag_error(x->d, "E0214", ((Loc){path, 1, 1}), "as many as --tp",
                   "--ep %lld: experts are shared out to the ranks of --tp, which are %lld",
                   (long long)in->ep, (long long)in->tp);
}
/* A key that finds no name: of 5.23 the library raises, before it warned and went on. */
static void no_match(Draft *x, HfGeneration g, const ValuePair *p, const char *instead,
                     const char *what) {
    if (g == HF_GEN_3)
        diag_error(x->d, "E0205", p->loc, instead,
                   "the library matches keys with %s: '%s' matches nothing, and it raises", what,
                   p->key);
    else
        diag_warn(x->d, "W0001", p->loc, instead,
                  "the library matches keys with %s: '%s' matches nothing, and cuts nothing", what,
                  p->key);
}
/* The style of a line as a plan says it; NULL and an error where none does. */
static const char *style_then(Draft *x, HfGeneration g, const Value *v) {
    const HfStyle *row = hf_style(v->s);
    if (row && !(row->in & g)) {
        diag_error(x->d, "E0203", v->loc, row->instead, "transformers %s knows no style '%s'",
                   x->in->hf_version ? x->in->hf_version : "5.23", v->s);
        return NULL;
    }
    if (g == HF_GEN_1 && row && row->first) return row->first;
    const char *cannot = !row ? NULL : g == HF_GEN_2 ? row->second_not : row->third_not;
    if (cannot) {
        diag_error(x->d, "E0214", v->loc, row->do_instead, "%s", cannot);
        return NULL;
    }
    PlanWriter w = write_start(x->a);
    write_scalar(&w, v->s);
    return w.s.s;
}
static void override_line(Draft *x, HfGeneration g, const ValuePair *p) {
    const Value *v = p->value;
    const char *style;
    if (v->kind != V_STRING)
        diag_error(x->d, "E0301", v->loc, NULL, "a style is text, not %s", value_kind_text(v));
    else if (strcmp(plan_pattern_of(x->a, p->key), p->key) != 0)
        no_match(x, g, p, plan_pattern_of(x->a, p->key), "names without numbers");
    else if (of_base(p->key))
        no_match(x, g, p, arena_printf(x->a, "model.%s", p->key),
                 "names of the model with its head");
    else if (g == HF_GEN_3 && hf_style(v->s) && hf_style(v->s)->drops_line)
        leave_out(x, p->key, v->s);
    else if ((style = style_then(x, g, v))) add(x, p->key, style, p->loc, v->loc);
}
static void override(Draft *x, HfGeneration g, const char *path, const char *text, bool tp) {
    size_t n = text ? strlen(text) : 0;
    if (!text) text = file_read(x->a, x->d, path, FILE_BYTES, diag_nowhere, &n);
    Value *table = text ? json_values(x->a, x->d, path, text, n) : NULL;
    if (!table) return;
    if (table->kind != V_DICT) {
        diag_error(x->d, "E0301", table->loc, "{\"layers.*.self_attn.q_proj\": \"colwise\", ...}",
                   "a tp_plan is a JSON object, pattern -> style");
        return;
    }
    if (tp && !table->n_pairs && g == HF_GEN_3)
        diag_error(x->d, "E0219", table->loc, "leave --tp-plan out: the shipped plan is taken",
                   "a tp_plan without a line: the library refuses to load the model");
    for (int i = 0; i < table->n_pairs; i++) override_line(x, g, &table->pair[i]);
}
/* What the older versions shipped is not recorded: their tables are the user's. */
static HfGeneration generation(Draft *x, const char *path) {
    const char *v = x->in->hf_version;
    HfGeneration g = v ? hf_generation(v) : HF_GEN_3;
    if (g == HF_NO_VERSION)
        diag_error(x->d, "E0212", diag_nowhere, "4.50 to 4.57, 5.0 to 5.19, or 5.23",
                   "--hf-version %s: what styles transformers had then is not known here", v);
    else if (g != HF_GEN_3 && !x->in->tp_plan && !x->in->tp_plan_text)
        diag_error(x->d, "E0208", ((Loc){path, 1, 1}),
                   "--tp-plan FILE: its base_model_tp_plan, with `model.` before each key",
                   "which plan transformers %s ships for it is not recorded", v);
    return g;
}

/* ---- the config ---- */
/* What to do with a config that cannot be built. */
static const char *instead(Draft *x, const char *text, size_t n) {
    const char *inside = model_config_inside(x->a, text, n);
    return inside ? inside
                  : "`import hf --names FILE --tp 2` says of any model where its table puts each "
                    "parameter; docs/shipped-plans.md has the lines that write FILE, and what runs "
                    "here";
}
/* Without --tp the ranks are those that --ep names. */
static void whole_heads(Draft *x, const Value *heads) {
    const ImportInput *in = x->in;
    if (in->tp < 0 && in->ep > 1 && !in->tp_plan && !in->tp_plan_text && heads &&
        heads->kind == V_INT && heads->i > 0 && heads->i % in->ep)
        diag_error(x->d, "E0303", heads->loc,
                   "as many ranks as divide the heads, or a --tp-plan that leaves them whole",
                   "--ep %lld: the ranks that share out experts are those of tensor parallelism, "
                   "and the shipped plan cuts %lld heads over them",
                   (long long)in->ep, (long long)heads->i);
}
/* Says what stops everything else first, and alone. */
static const char *model_type(Draft *x, const char *path, Loc *heads_at) {
    size_t n = x->in->n;
    const char *text =
        x->in->config ? file_read(x->a, x->d, path, FILE_BYTES, diag_nowhere, &n) : x->in->text;
    Value *top = text ? json_values(x->a, x->d, path, text, n) : NULL,
          *type = top && top->kind == V_DICT ? value_get(top, "model_type") : NULL;
    if (!top) return NULL;
    if (!type || type->kind != V_STRING) {
        diag_error(x->d, "E0208", type ? type->loc : top->loc, "\"model_type\": \"llama\"",
                   "a config.json has a model_type");
        return NULL;
    }
    const Value *heads = value_get(top, "num_attention_heads"),
                *kv_heads = value_get(top, "num_key_value_heads");
    bool divides = heads && heads->kind == V_INT && x->in->tp > 0 && heads->i % x->in->tp == 0;
    if (divides && kv_heads) heads = kv_heads; /* of what the ranks do not divide */
    if (heads) *heads_at = heads->loc;
    whole_heads(x, value_get(top, "num_attention_heads"));
    if (model_family_modules(type->s)) return type->s;
    const char *lacks = import_lacking(type->s);
    diag_error(x->d, "E0214", type->loc, instead(x, text, n),
               "model_type '%s': not supported by this version%s%s", type->s, lacks ? ": " : "",
               lacks ? lacks : "");
    return NULL;
}
/* The model_type of a preset; NULL and an error where there is none of that name. */
static const char *preset_type(Draft *x) {
    draft_options(x);
    int n;
    const Preset *row = model_presets(&n);
    for (int i = 0; i < n; i++)
        if (strcmp(row[i].name, x->in->model) == 0)
            return row[i].family ? row[i].family : row[i].qk_norm ? "qwen3" : "llama";
    return NULL;
}
/* The shipped plan; of another version than the newest none, as generation() has said. */
static void base_plan(Draft *x, HfGeneration g, const char *type, Loc heads_at) {
    if (g == HF_GEN_3) {
        ship(x, type, heads_at);
        return;
    }
    if (model_family_modules(type) & WITH_EXPERTS) draft_modules(x, NAMES_HF);
    draft_remark(x, "styles as transformers %s had them", x->in->hf_version);
}
bool import_hf(Draft *x) {
    const ImportInput *in = x->in;
    bool preset = in->model && !in->config && !in->path;
    const char *path = in->config ? in->config : preset ? "--model" : in->path;
    if (!path) {
        diag_error(x->d, "E0212", diag_nowhere,
                   "import hf --config config.json --tp 8, or --model llama3-8b",
                   "`import hf` wants a config.json");
        return false;
    }
    Loc heads_at = diag_nowhere;
    const char *type = preset ? preset_type(x) : model_type(x, path, &heads_at);
    if (!type) return false;
    if (!preset) { /* the file is the config */
        ImportInput with = *in;
        with.config = path;
        x->in = arena_memdup(x->a, &with, sizeof with);
    }
    x->file = preset ? "the options" : path;
    int64_t ranks = in->tp > 0 ? in->tp : in->ep;
    if (ranks > 0) draft_axis(x, "tp", ranks, (Loc){path, 1, 1});
    if (in->tp == 0 || in->ep == 0)
        diag_error(x->d, "E0212", diag_nowhere, "1: nothing is cut",
                   "--tp and --ep want at least 1");
    check_ep(x, path);
    if (!preset) draft_options(x);
    HfGeneration g = generation(x, path);
    if (can_ship(x, type)) base_plan(x, g, type, heads_at);
    /* the library cuts k_proj's rows wherever they end; without one head a rank its forward raises
     */
    draft_key(x, "kv_replicate", "never", diag_nowhere, NULL);
    /* what no line asks for the library does not do: sums of gradients of whole parameters */
    draft_key(x, "trust", "declared", diag_nowhere, NULL);
    if (g != HF_NO_VERSION && (in->tp_plan || in->tp_plan_text))
        override(x, g, in->tp_plan ? in->tp_plan : "--tp-plan", in->tp_plan_text, true);
    if (g != HF_NO_VERSION && in->ep_plan) override(x, g, in->ep_plan, NULL, false);
    if (!x->n_axes)
        diag_error(x->d, "E0208", ((Loc){path, 1, 1}), "--tp 8, or --mesh dp=2,tp=4",
                   "how many ranks there are does not stand in a config");
    x->names = NAMES_HF;
    return !diags_errors(x->d);
}
