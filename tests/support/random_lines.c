/* Random legal plans, second part: the lines. Four forms: *styled* (tensor parallel, with or
 * without sequence parallel, each module in one of the ways that known systems write it), *recipe*
 * (a built-in table), *wild* (any letter of any parameter cut by any axis, boundaries declared at
 * random), and the same for a chain of linear layers. */
#include "random_plan.h"
#include "model/model.h"
#include <string.h>

#define CHANCE(percent) rng_chance(&g->r, percent)
#define ONE_OF(list) (list)[rng_below(&g->r, (int)(sizeof(list) / sizeof(list)[0]))]
#define ADD(...) str_addf(&g->s, __VA_ARGS__)
#define TEXT(...) arena_printf(g->s.a, __VA_ARGS__)

/* ---- paths ---- */
static const char *path_of(const RandomPlan *g, const char *what) {
    int n;
    const NamesRow *row = names_table(&n);
    for (int i = 0; i < n; i++)
        if (!strcmp(row[i].what, what)) return row[i].name[g->scheme];
    base_die(70, "no module is called '%s'", what);
}
static const char *path(const RandomPlan *g, const char *what) {
    static const char *const after[][2] = {{"attention norm", "norm after attention"},
                                           {"feed-forward norm", "norm after feed-forward"}};
    for (int i = 0; i < 2 && g->norms_after; i++)
        if (!strcmp(what, after[i][0])) what = after[i][1];
    const char *own = TEXT("%s (Llama 4)", what);
    int n;
    const NamesRow *row = names_table(&n);
    for (int i = 0; i < n && g->attention == RANDOM_LLAMA4; i++)
        if (!strcmp(row[i].what, own)) return path_of(g, own);
    return path_of(g, what);
}
/* Is the module of that path a norm, whatever its path says? */
static bool is_norm(const RandomPlan *g, const char *at) {
    int n;
    const NamesRow *row = names_table(&n);
    for (int i = 0; i < n; i++)
        if (strstr(row[i].what, "norm") && row[i].name[g->scheme] &&
            !strcmp(row[i].name[g->scheme], at))
            return true;
    return false;
}
static void line(RandomPlan *g, const char *what, const char *style) {
    ADD("  %s: %s\n", path(g, what), style);
}
/* One line for q, k and v (or gate and up) where the scheme's names allow it, else one each. */
static void lines(RandomPlan *g, const char *const *what, const char *together, const char *style) {
    if (together && CHANCE(50)) {
        ADD("  %s: %s\n", together, style);
        return;
    }
    for (int i = 0; what[i]; i++) line(g, what[i], style);
}
static const char *const qkv[] = {"query", "key", "value", NULL},
                         *const latent_qkv[] = {"query", "key and value up", NULL},
                         *const low_rank_qkv[] = {"query up", "key and value up", NULL},
                         *const gate_up[] = {"gate", "up", NULL};
static const char *const qkv_together[NAMES_COUNT] = {
    "layers.*.attention.w[qkv]", "layers.*.attn.[qkv]_proj", "model.layers.*.self_attn.[qkv]_proj",
    "decoder.layers.*.self_attention.linear_[qkv]", "blk.*.attn_[qkv]"};
static const char *const gate_up_together[NAMES_COUNT] = {
    "layers.*.feed_forward.w[13]", "layers.*.mlp.w[13]", NULL, "decoder.layers.*.mlp.linear_fc1_*",
    "blk.*.ffn_[gu]*"};

/* ---- styles by name ---- */
/* The style's own name, one of its aliases, or a style of the plan's own that starts from it. */
static const char *word(RandomPlan *g, const char *name) {
    const StyleRow *row = style_builtin(name);
    if (g->own_styles && !strcmp(name, "colwise") && CHANCE(50)) return "ours";
    if (g->own_styles && !strcmp(name, "rowwise") && CHANCE(50)) return "theirs";
    if (!row->aliases || CHANCE(40)) return name;
    int n = 1;
    for (const char *c = row->aliases; *c; c++) n += *c == ' ';
    const char *w = row->aliases;
    for (int i = rng_below(&g->r, n); i > 0; i--) w = strchr(w, ' ') + 1;
    return TEXT("%.*s", (int)strcspn(w, " "), w);
}
/* A style with fields ("output: shard(1)"; may be ""), sometimes with what changes nothing. */
static const char *style(RandomPlan *g, const char *name, const char *fields) {
    const char *more = fields;
    if (CHANCE(12)) more = TEXT("%s%saxis: tp", more, *more ? ", " : "");
    if (CHANCE(8) && !strstr(fields, "use_local_output"))
        more = TEXT("%s%suse_local_output: %s", more, *more ? ", " : "",
                    CHANCE(50) ? "true" : "false");
    if (!strcmp(name, "prepare_module_input_output") && CHANCE(50))
        more =
            TEXT("%s%suse_local_input: %s", more, *more ? ", " : "", CHANCE(70) ? "true" : "false");
    if (CHANCE(8))
        more =
            TEXT("%s%sboundary: %s", more, *more ? ", " : "", CHANCE(50) ? "per_module" : "shared");
    const char *w = word(g, name);
    if (!*more) return CHANCE(90) ? w : TEXT("{style: %s}", w);
    return TEXT("{style: %s, %s}", w, more);
}

/* ---- styled ---- */
enum { WAY_PLAIN, WAY_CONTAINER, WAY_LOCAL, WAY_GATHERED, WAY_WHOLE };
/* One half of the block: `in` cut by columns, `out` by rows, the container around them. */
typedef struct {
    const char *container, *const *in, *together, *out;
    bool mlp;
    bool biased, entered; /* the container gathers the sequence once for all */
    const char *done, *enter, *own, *col, *row;
} Half;
static void whole_half(RandomPlan *g, const Half *h) {
    lines(g, h->in, h->together, style(g, "replicate", h->own));
    line(g, h->out, style(g, "replicate", TEXT("output: %s", h->done)));
    if (h->entered) line(g, h->container, style(g, "prepare_module_input", h->enter));
}
static void local_half(RandomPlan *g, const Half *h) {
    lines(g, h->in, h->together, style(g, "local_colwise", h->own));
    line(g, h->out,
         style(g, h->mlp && CHANCE(50) ? "local_packed_rowwise" : "local_rowwise",
               CHANCE(20) ? "output: local" : ""));
    line(g, h->container,
         style(g, "all_reduce",
               TEXT("%s%sdesired_output: %s", h->enter, *h->enter ? ", " : "", h->done)));
}
/* The container sums what the rows leave pending. */
static void container_half(RandomPlan *g, const Half *h) {
    static const char *const ways[] = {"prepare_module_output", "prepare_module_input_output",
                                       "all_reduce"};
    const char *w = ONE_OF(ways);
    line(g, h->out,
         style(g, h->row,
               h->biased && CHANCE(60) ? "output: partial, bias: partial" : "output: partial"));
    const char *label = !strcmp(w, "all_reduce") && CHANCE(50) ? "" : "output: partial, ";
    line(g, h->container,
         style(g, w,
               TEXT("%s%s%sdesired_output: %s", h->enter, *h->enter ? ", " : "", label, h->done)));
}
static void rows_of_half(RandomPlan *g, const Half *h, int way) {
    if (g->sp || CHANCE(30))
        line(
            g, h->out,
            style(g, h->row,
                  TEXT("output: %s%s", h->done, h->biased && CHANCE(30) ? ", bias: partial" : "")));
    else line(g, h->out, style(g, h->row, ""));
    if (h->entered) line(g, h->container, style(g, "prepare_module_input", h->enter));
    else if (!h->mlp && !g->sp && way == WAY_PLAIN && CHANCE(15))
        line(g, "core attention",
             style(g, "prepare_module_input", "input: [shard(2), shard(2), shard(2)]"));
    else if (!g->sp && CHANCE(15))
        line(g, h->container,
             style(g, "prepare_module_input", "input: [replicate], desired_input: [replicate]"));
}
/* Draws its fields beyond those that are given; the order of draws is part of a seed's meaning. */
static void half(RandomPlan *g, Half h) {
    int x = rng_below(&g->r, 100);
    h.biased = g->bias || g->plain;
    int way = x < 50                                ? WAY_PLAIN
              : x < 68                              ? WAY_CONTAINER
              : x < 80 && !h.biased && !g->declared ? WAY_LOCAL
              : x < 92                              ? WAY_GATHERED
                                                    : WAY_WHOLE;
    h.done = g->sp ? "shard(1)" : "replicate";
    h.entered = g->sp && !g->per_module;
    h.enter = h.entered ? "input: [shard(1)], desired_input: [replicate]" : "";
    h.own = g->sp && !h.entered ? "input: shard(1), desired_input: replicate"
            : CHANCE(20)        ? "input: null"
                                : "";
    h.col = way == WAY_GATHERED   ? "colwise_gather_output"
            : h.mlp && CHANCE(30) ? "packed_colwise"
                                  : "colwise";
    h.row = way == WAY_GATHERED   ? "rowwise_split_input"
            : h.mlp && CHANCE(30) ? "packed_rowwise"
                                  : "rowwise";
    if (way == WAY_WHOLE) whole_half(g, &h);
    else if (way == WAY_LOCAL) local_half(g, &h);
    if (way == WAY_WHOLE || way == WAY_LOCAL) return;
    if (way == WAY_PLAIN && h.mlp && !strcmp(h.col, "colwise") && CHANCE(15) && !g->packed)
        lines(g, h.in, h.together,
              style(g, "colwise",
                    TEXT("%s%s%s", h.own, *h.own ? ", " : "",
                         CHANCE(50) ? "weight: contiguous(0)"
                                    : "params: {weight: shard(0), bias: shard(0)}")));
    else lines(g, h.in, h.together, style(g, h.col, h.own));
    if (way == WAY_CONTAINER) container_half(g, &h);
    else rows_of_half(g, &h, way);
}
static void ends(RandomPlan *g) {
    g->own_styles = false; /* what they say of a weight is meant for linear layers */
    const char *done = g->sp ? "shard(1)" : "replicate";
    bool by_hidden = CHANCE(30),
         loss = (g->parts & RANDOM_LOSS) || g->pass; /* tied: both ends cut the one table alike */
    if (g->parts & RANDOM_EMBEDDING) {
        static const char *const rows[] = {"rowwise", "embedding_rowwise"},
                                 *const cols[] = {"colwise", "embedding_colwise"};
        const char *name = by_hidden ? ONE_OF(cols) : ONE_OF(rows);
        line(g, "embedding",
             style(g, name, by_hidden || g->sp || CHANCE(40) ? TEXT("output: %s", done) : ""));
    }
    if ((g->parts & RANDOM_NORM) && (g->sp || CHANCE(30)))
        line(g, "final norm", style(g, g->sp ? "sequence_parallel" : "replicate", ""));
    if (!(g->parts & RANDOM_HEAD)) return;
    const char *in = g->sp ? "input: shard(1), desired_input: replicate" : "";
    if (by_hidden) {
        line(g, "head",
             style(g, "rowwise_split_input",
                   g->sp ? "input: shard(1), desired_input: shard(-1)" : ""));
    } else if (CHANCE(60)) {
        /* PyTorch's loss_parallel takes no plain part of the logits */
        const char *parts = TEXT("%s%suse_local_output: false", in, *in ? ", " : "");
        line(g, "head", style(g, "colwise", loss && CHANCE(85) ? parts : in));
        if (loss) line(g, "loss", style(g, "loss_parallel", ""));
    } else line(g, "head", style(g, "colwise_gather_output", in));
}
static void styled(RandomPlan *g) {
    g->own_styles = CHANCE(15);
    if (g->scheme != NAMES_TORCHTITAN || CHANCE(60))
        ADD("names: %s\n", plan_names_text((Names)g->scheme));
    if (g->per_module || CHANCE(10)) ADD("boundary: %s\n", g->per_module ? "per_module" : "shared");
    if (g->declared || CHANCE(10))
        ADD("trust: %s\n", g->declared ? "declared" : CHANCE(30) ? "compiler" : "rules");
    if (g->own_styles)
        ADD("styles:\n  mine: {style: colwise, input: replicate, desired_input: replicate, "
            "use_local_output: false, boundary: shared}\n  ours: mine\n  theirs: {style: rowwise, "
            "weight: shard(1), bias: replicate}\n");
    ADD("plan:\n");
    if (g->parts & RANDOM_BLOCKS) {
        if (g->sp)
            line(g, "attention norm", style(g, "sequence_parallel", "")),
                line(g, "feed-forward norm", style(g, "sequence_parallel", ""));
        else if (CHANCE(30))
            line(g, "attention norm", style(g, "replicate", CHANCE(50) ? "" : "weight: invariant"));
        bool heads = g->attention != RANDOM_LATENT;
        half(g, (Half){.container = "attention",
                       .in = heads       ? qkv
                             : g->q_rank ? low_rank_qkv
                                         : latent_qkv,
                       .together = heads ? qkv_together[g->scheme] : NULL,
                       .out = "attention output",
                       .mlp = false});
        static const char *const packed[] = {"gate and up", NULL};
        half(g, (Half){.container = "feed-forward",
                       .in = g->packed && !g->plain ? packed : gate_up,
                       .together = g->packed ? NULL : gate_up_together[g->scheme],
                       .out = "down",
                       .mlp = true});
        if (g->qk_norm && !g->plain && CHANCE(80)) {
            line(g, "query norm", style(g, "replicated_with_grad_allreduce", ""));
            line(g, "key norm", style(g, "replicated_with_grad_allreduce", ""));
        }
    }
    ends(g);
}

/* ---- recipes ---- */
static void recipe(RandomPlan *g) {
    int n,
        at = rng_below(&g->r, 9973) + 3 * g->S + 7 * g->V; /* in turn: few plans are of this form */
    const RecipeRow *rows = plan_recipes(&n), *row;
    do row = &rows[at++ % n];
    /* the others have no line for a packed gate and up; torchtune's Llama 4, which has no tied
     * table, has none for a lookup whose table the head's line cuts */
    while (!row->lines || (g->packed && row->names != NAMES_MEGATRON) ||
           (g->tied && !strcmp(row->name, "torchtune-llama4")));
    g->scheme = (int)row->names;
    ADD("recipe: %s\n", row->name);
    if (CHANCE(30)) ADD("names: %s\n", plan_names_text(row->names));
    if (g->qk_norm && !g->plain && g->parts & RANDOM_BLOCKS && CHANCE(50)) {
        ADD("plan:\n");
        line(g, "query norm", "replicated_with_grad_allreduce");
    }
}

/* ---- wild ---- */
/* A mapping axis -> placement of the parameter, for about half of the free axes; single: the letter
 * of a dim alone. */
static const char *wild_param(RandomPlan *g, const char *dims, bool partial) {
    int f[RANDOM_MAX_AXES], n = random_free_axes(g, f), k = 0, nd = 1;
    char letters[16];
    size_t nl = 0;
    for (const char *c = dims; *c; c++)
        if (*c == ' ') nd++;
        else letters[nl++] = *c;
    Str s = str_new(g->s.a);
    str_add(&s, "{");
    for (int i = 0; i < n; i++) {
        if (!CHANCE(55)) continue;
        static const char *const whole[] = {"varying_use", "replicate", "invariant", "null"};
        const char *p;
        if (CHANCE(12)) p = ONE_OF(whole);
        else if (partial && CHANCE(15)) p = "partial";
        else if (nl == (size_t)nd && CHANCE(20)) { /* by number, where a stored dim is one letter */
            int d = rng_below(&g->r, nd);
            p = TEXT("%s(%d)", CHANCE(40) ? "contiguous" : "shard", CHANCE(50) ? d : d - nd);
        } else p = TEXT("shard(%c)", letters[rng_below(&g->r, (int)nl)]);
        str_addf(&s, "%s%s: %s", k++ ? ", " : "", g->axis[f[i]], p);
    }
    str_add(&s, "}");
    return s.s;
}
/* A random declaration of a boundary over each free axis; `letters`: what may be cut. */
static const char *wild_boundary(RandomPlan *g, bool input, const char *letters) {
    int f[RANDOM_MAX_AXES], n = random_free_axes(g, f), k = 0;
    Str s = str_new(g->s.a);
    str_add(&s, "{");
    for (int i = 0; i < n; i++) {
        int x = rng_below(&g->r, 100);
        if (x < 40) continue;
        const char *p = x < 44   ? "null"
                        : x < 52 ? "replicate"
                        : x < 70
                            ? (input && CHANCE(50) ? "varying_use" : "invariant")
                            : TEXT("shard(%c)", letters[rng_below(&g->r, (int)strlen(letters))]);
        str_addf(&s, "%s%s: %s", k++ ? ", " : "", g->axis[f[i]], p);
    }
    str_add(&s, "}");
    return s.s;
}
static void wild_linear(RandomPlan *g, const char *at, const char *w, const char *b, bool writer,
                        const char *out) {
    /* the parameter itself; a tied one is the embedding's */
    if (CHANCE(10) && !(g->tied && !strcmp(at, path(g, "head")))) {
        bool scale = g->scheme == NAMES_TORCHTUNE && is_norm(g, at);
        ADD("  %s.%s: {style: wild, weight: %s}\n", at, scale ? "scale" : "weight",
            wild_param(g, w, false));
        return;
    }
    bool bias = *b && g->bias;
    if (CHANCE(20)) {
        ADD("  %s: {style: wild, params: {weight: %s", at, wild_param(g, w, false));
        if (bias) ADD(", bias: %s", wild_param(g, b, writer));
        ADD("}");
    } else {
        ADD("  %s: {style: wild, weight: %s", at, wild_param(g, w, false));
        if (bias) ADD(", bias: %s", wild_param(g, b, writer));
    }
    if (writer || CHANCE(15)) ADD(", output: %s", wild_boundary(g, false, out));
    if (CHANCE(10)) ADD(", boundary: %s", CHANCE(60) ? "per_module" : "shared");
    ADD("}\n");
}
static void wild_container(RandomPlan *g, const char *what) {
    ADD("  %s: {style: wild, desired_input: [%s]", path(g, what),
        CHANCE(90) ? wild_boundary(g, true, "btd") : "null");
    if (CHANCE(20)) ADD(", desired_output: %s", wild_boundary(g, false, "btd"));
    ADD("}\n");
}
static const char *any_axis(RandomPlan *g) { return g->axis[rng_below(&g->r, g->n_axes)]; }
/* Experts on any ranks, cut in any way: by a style, or each weight as it comes. */
static void wild_experts(RandomPlan *g) {
    static const char *const styles[] = {"expert_parallel",     "ExpertParallel",
                                         "tensor_parallel",     "TensorParallel",
                                         "expert_parallel",     "tensor_parallel",
                                         "grouped_gemm",        "expert_tensor_parallel",
                                         "moe_tp_experts",      "ExpertTensorParallel",
                                         "ep_dispatch_experts", "local"},
                             *const reorderers[] = {"reorderer_sequence_parallel",
                                                    "ReordererSequenceParallel"};
    static const struct {
        const char *what, *dims;
    } apart[] = {{"experts' gates", "e w d"},
                 {"experts' ups", "e w d"},
                 {"experts' downs", "e d w"}},
      packed[] = {{"experts' gates and ups", "e uw d"}, {"experts' downs", "e d w"}},
      turned[] = {{"experts' gates", "e d w"},
                  {"experts' ups", "e d w"},
                  {"experts' downs", "e w d"}},
      turned_packed[] = {{"experts' gates and ups", "e d uw"}, {"experts' downs", "e w d"}};
    if (CHANCE(10)) line(g, "router", TEXT("{style: ep_router, axis: %s}", any_axis(g)));
    else wild_linear(g, path(g, "router"), "e d", "", false, "bt");
    if (CHANCE(12))
        line(g, "router's list", TEXT("{style: %s, axis: %s}", ONE_OF(reorderers), any_axis(g)));
    if (CHANCE(70))
        ADD("  %s: {style: %s, axis: %s", path(g, "experts"), ONE_OF(styles), any_axis(g));
    else ADD("  %s: {style: wild", path(g, "experts"));
    if (CHANCE(60)) ADD(", output: %s", wild_boundary(g, false, "btd"));
    if (CHANCE(30)) ADD(", desired_input: [%s]", wild_boundary(g, true, "btd"));
    ADD("}\n");
    bool one = g->scheme == NAMES_HF,
         turn = g->attention == RANDOM_LLAMA4 && (one || g->scheme == NAMES_TORCHTUNE);
    for (int i = 0; i < (one ? 2 : 3); i++)
        if (CHANCE(25))
            ADD("  %s: {style: wild, weight: %s}\n", path(g, one ? packed[i].what : apart[i].what),
                wild_param(g,
                           one    ? turn ? turned_packed[i].dims : packed[i].dims
                           : turn ? turned[i].dims
                                  : apart[i].dims,
                           false));
    if (!g->shared) return;
    wild_linear(g, path(g, "shared expert's gate"), "m d", "", false, "btm");
    wild_linear(g, path(g, "shared expert's up"), "m d", "", false, "btm");
    wild_linear(g, path(g, "shared expert's down"), "d m", "", true, "btd");
}
static void wild_latent(RandomPlan *g) {
    if (g->q_rank) {
        wild_linear(g, path(g, "query down"), "q d", "q", false, "btq");
        wild_linear(g, path(g, "query latent norm"), "q", "", false, "bt");
        wild_linear(g, path(g, "query up"), "kx q", "", false, "btk");
    } else wild_linear(g, path(g, "query"), "kx d", "", false, "btk");
    wild_linear(g, path(g, "key and value down"), "y d", "y", false, "bty");
    wild_linear(g, path(g, "key and value latent norm"), "c", "", false, "bt");
    wild_linear(g, path(g, "key and value up"), "kz c", "", false, "btk");
    wild_linear(g, path(g, "attention output"), "d ko", "d", true, "btd");
}
static void wild_heads(RandomPlan *g) {
    wild_linear(g, path(g, "query"), "kgx d", "kgx", false, "btkg");
    wild_linear(g, path(g, "key"), "kx d", "kx", false, "btk");
    wild_linear(g, path(g, "value"), "kx d", "kx", false, "btk");
    wild_linear(g, path(g, "attention output"), "d kgx", "d", true, "btd");
}
static void wild_block(RandomPlan *g) {
    bool mlp_bias = g->attention == RANDOM_HEADS, bias = g->bias;
    wild_linear(g, path(g, "attention norm"), "d", "", false, "btd");
    wild_linear(g, path(g, "feed-forward norm"), "d", "", false, "btd");
    if (g->attention == RANDOM_LATENT) wild_latent(g);
    else wild_heads(g);
    g->bias = bias && mlp_bias;
    if (g->E) wild_experts(g);
    else if (g->packed) wild_linear(g, path(g, "gate and up"), "uf d", "uf", false, "btf");
    else
        wild_linear(g, path(g, "gate"), "f d", "f", false, "btf"),
            wild_linear(g, path(g, "up"), "f d", "f", false, "btf");
    if (!g->E) wild_linear(g, path(g, "down"), "d f", "d", true, "btd");
    g->bias = bias;
    if (g->qk_norm)
        wild_linear(g, path(g, "query norm"), "x", "", false, "btkg"),
            wild_linear(g, path(g, "key norm"), "x", "", false, "btk");
    wild_container(g, "attention");
    wild_container(g, g->E ? "experts and router" : "feed-forward");
    if (CHANCE(20))
        ADD("  %s: {style: wild, desired_input: [%s, %s, %s]}\n", path(g, "core attention"),
            wild_boundary(g, true, g->attention == RANDOM_LATENT ? "btk" : "btkg"),
            wild_boundary(g, true, "bk"), wild_boundary(g, true, "bk"));
    if (CHANCE(20)) wild_container(g, "layer");
    if (!g->E && CHANCE(15))
        ADD("  %s: {style: wild, output: %s}\n", path(g, "activation"),
            wild_boundary(g, false, "btf"));
}
static void wild(RandomPlan *g) {
    if (g->scheme != NAMES_TORCHTITAN || CHANCE(60))
        ADD("names: %s\n", plan_names_text((Names)g->scheme));
    ADD("styles:\n  wild: {axis: %s}\n", g->axis[0]);
    if (g->plain) return;
    if (!g->parts || g->parts & RANDOM_BLOCKS || g->parts & ~(unsigned)RANDOM_LOSS) ADD("plan:\n");
    if (g->parts & RANDOM_BLOCKS) wild_block(g);
    if (g->parts & RANDOM_EMBEDDING) wild_linear(g, path(g, "embedding"), "v d", "", true, "btd");
    if (g->parts & RANDOM_NORM) wild_linear(g, path(g, "final norm"), "d", "", false, "btd");
    if ((g->parts & RANDOM_HEAD) && !(g->tied && g->parts & RANDOM_EMBEDDING))
        wild_linear(g, path(g, "head"), "v d", "", false, "btv");
}

/* ---- a chain of linear layers ---- */
static const char width_letters[] = "acdef"; /* as the model names them */
static void chain(RandomPlan *g) {
    bool by_style = g->tp && CHANCE(40);
    if (!by_style) ADD("styles:\n  wild: {axis: %s}\n", g->axis[0]);
    ADD("plan:\n");
    for (int i = 0; i + 1 < g->n_sizes; i++) {
        const char *name = g->named_layers ? TEXT("l%d", i) : TEXT("net%d", i + 1);
        bool last = i + 2 == g->n_sizes;
        if (by_style) {
            ADD("  %s: %s\n", name,
                style(g,
                      i % 2  ? "rowwise"
                      : last ? "colwise_gather_output"
                             : "colwise",
                      ""));
            continue;
        }
        char w[4] = {width_letters[i + 1], ' ', width_letters[i], 0},
             b[2] = {width_letters[i + 1], 0}, out[3] = {'b', width_letters[i + 1], 0};
        wild_linear(g, name, w, b, CHANCE(50), out);
    }
}

void random_block_input(RandomPlan *g) {
    bool first = !(g->parts & RANDOM_EMBEDDING) && g->parts & RANDOM_BLOCKS;
    if (g->form == RANDOM_WILD && first && CHANCE(80))
        ADD(", block_input: %s", wild_boundary(g, false, "btd"));
}
void random_lines(RandomPlan *g) {
    switch (g->form) {
    case RANDOM_MLP: chain(g); return;
    case RANDOM_WILD: wild(g); return;
    case RANDOM_FORMS:
    case RANDOM_CORE: return; /* context_parallel says all that there is */
    case RANDOM_RECIPE:
        if (g->tp) recipe(g);
        return;
    case RANDOM_STYLED:
        if (g->tp) styled(g);
        return;
    }
}
