/* Hugging Face transformers: a config.json and the tensor parallel plan that its model type ships
 * with, or a table `pattern: style` over it (semantics.md 2.7, transformers 5.23). */
#include "base/file.h"
#include "import/import.h"
#include "import/python.h"
#include "model/model.h"
#include <string.h>

enum { FILE_BYTES = 1 << 20 };

/* base_model_tp_plan of the families that run here, with the head's and the embedding's lines that
 * the library adds. Inputs are plain tensors: each column layer moves its own. */
typedef struct {
    const char *pattern, *style;
    unsigned of; /* MODULES_ that the family must have; 0: all have it */
} Shipped;
#define ALL(pattern, style)                                                                        \
    { pattern, style, 0 }
static const Shipped shipped[] = {
    ALL("model.embed_tokens", "embedding_rowwise"),
    {"model.layers.*.self_attn.q_proj", "colwise", MODULES_QKV},
    {"model.layers.*.self_attn.k_proj", "colwise", MODULES_QKV},
    {"model.layers.*.self_attn.v_proj", "colwise", MODULES_QKV},
    {"model.layers.*.self_attn.qkv_proj", "colwise_gather_output", MODULES_PACKED_QKV},
    {"model.layers.*.self_attn.q_norm", "replicated_with_grad_allreduce", MODULES_QK_NORM},
    {"model.layers.*.self_attn.k_norm", "replicated_with_grad_allreduce", MODULES_QK_NORM},
    {"model.layers.*.self_attn.o_proj", "rowwise", MODULES_QKV},
    {"model.layers.*.self_attn.o_proj", "rowwise_split_input", MODULES_PACKED_QKV},
    {"model.layers.*.mlp.gate_proj", "colwise", MODULES_GATE},
    {"model.layers.*.mlp.up_proj", "colwise", MODULES_UP},
    {"model.layers.*.mlp.gate_up_proj", "colwise_gather_output", MODULES_PACKED_MLP},
    {"model.layers.*.mlp.down_proj", "rowwise", MODULES_UP},
    {"model.layers.*.mlp.down_proj", "rowwise_split_input", MODULES_PACKED_MLP},
    ALL("lm_head", "colwise_gather_output"),
};
enum { N_SHIPPED = sizeof shipped / sizeof *shipped };

/* ---- lines ---- */
/* "layers.*" and "model.layers.*" are the same to the library, where the base model is meant. */
static const char *whole_name(Draft *x, const char *pattern) {
    static const char *const base[] = {"layers.", "embed_tokens", "norm"};
    for (int i = 0; i < 3; i++)
        if (strncmp(pattern, base[i], strlen(base[i])) == 0)
            return arena_printf(x->a, "model.%s", pattern);
    return pattern;
}
/* What a style of the library is in a plan: column layers move their inputs themselves, and of gate
 * and up in one weight the plain ones take rows as they lie. */
static const char *style_text(Draft *x, const char *pattern, const char *style) {
    static const struct {
        const char *style;
        bool flat;
    } moves[] = {{"colwise", true}, {"colwise_rep", true}, {"packed_colwise", false}};
    const char *last = strrchr(pattern, '.');
    bool packed = last && strcmp(last, ".gate_up_proj") == 0;
    for (size_t i = 0; i < sizeof moves / sizeof *moves; i++)
        if (strcmp(moves[i].style, style) == 0)
            return arena_printf(x->a, "{style: %s, boundary: per_module%s}", style,
                                packed && moves[i].flat ? ", weight: contiguous(0)" : "");
    return style;
}
/* A line of the user's replaces the shipped one of the same pattern. */
static void add(Draft *x, const char *pattern, const char *style, Loc loc, Loc style_loc) {
    for (int i = 0; i < x->n_lines; i++)
        if (strcmp(x->line[i].pattern, pattern) == 0) {
            x->line[i] = (DraftLine){pattern, style_text(x, pattern, style), NULL, loc, style_loc};
            return;
        }
    draft_line(x, pattern, loc, style_text(x, pattern, style), style_loc, NULL);
}
static void ship(Draft *x, const char *type) {
    unsigned has = model_family_modules(type);
    for (int i = 0; i < N_SHIPPED; i++)
        if ((shipped[i].of & has) == shipped[i].of)
            add(x, shipped[i].pattern, shipped[i].style, diag_nowhere, diag_nowhere);
    draft_remark(x, "the plan that transformers 5.23 ships for model_type %s", type);
}
static void override(Draft *x, const char *path) {
    size_t n;
    char *text = file_read(x->a, x->d, path, FILE_BYTES, diag_nowhere, &n);
    Value *table = text ? json_values(x->a, x->d, path, text, n) : NULL;
    if (!table) return;
    if (table->kind != V_DICT) {
        diag_error(x->d, "E0301", table->loc, "{\"layers.*.self_attn.q_proj\": \"colwise\", ...}",
                   "a tp_plan is a JSON object, pattern -> style");
        return;
    }
    for (int i = 0; i < table->n_pairs; i++) {
        const ValuePair *p = &table->pair[i];
        const Value *v = p->value;
        if (v->kind != V_STRING)
            diag_error(x->d, "E0301", v->loc, NULL, "a style is text, not %s", value_kind_text(v));
        else if (strcmp(v->s, "sequence_parallel") == 0)
            diag_error(x->d, "E0214", v->loc, "leave the line out: the norm is whole",
                       "the library's sequence_parallel only relabels a whole tensor, and its "
                       "gradients come out as many times too large as there are ranks: no plan "
                       "says that");
        else {
            PlanWriter w = write_start(x->a);
            write_scalar(&w, v->s);
            add(x, whole_name(x, p->key), w.s.s, p->loc, v->loc);
        }
    }
}

/* ---- the config ---- */
/* Says what stops everything else first, and alone. */
static const char *model_type(Draft *x, const char *path) {
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
    if (model_family_modules(type->s)) return type->s;
    diag_error(x->d, "E0214", type->loc,
               "`import hf --names FILE --tp 2` says of any model where its table puts each "
               "parameter; docs/shipped-plans.md has the lines that write FILE, and what runs here",
               "model_type '%s': not supported by this version", type->s);
    return NULL;
}
bool import_hf(Draft *x) {
    const ImportInput *in = x->in;
    const char *path = in->config ? in->config : in->path;
    if (!path) {
        diag_error(x->d, "E0212", diag_nowhere, "import hf --config config.json --tp 8",
                   "`import hf` wants a config.json");
        return false;
    }
    const char *type = model_type(x, path);
    if (!type) return false;
    ImportInput with = *in; /* the file is the config */
    with.config = path;
    x->in = arena_memdup(x->a, &with, sizeof with);
    x->file = path;
    if (in->tp > 0) draft_axis(x, "tp", in->tp, (Loc){path, 1, 1});
    if (in->tp == 0 || in->ep == 0)
        diag_error(x->d, "E0212", diag_nowhere, "1: nothing is cut",
                   "--tp and --ep want at least 1");
    if (in->ep > 1 || in->ep_plan)
        diag_error(x->d, "E0214", diag_nowhere, "models without experts run",
                   "expert parallelism: not supported by this version");
    draft_options(x);
    ship(x, type);
    /* the library cuts k_proj's rows wherever they end; without one head a rank its forward raises
     */
    draft_key(x, "kv_replicate", "never", diag_nowhere, NULL);
    /* what no line asks for the library does not do: sums of gradients of whole parameters */
    draft_key(x, "trust", "declared", diag_nowhere, NULL);
    if (in->tp_plan) override(x, in->tp_plan);
    if (!x->n_axes)
        diag_error(x->d, "E0208", ((Loc){path, 1, 1}), "--tp 8, or --mesh dp=2,tp=4",
                   "how many ranks there are does not stand in a config");
    x->names = NAMES_HF;
    return !diags_errors(x->d);
}
