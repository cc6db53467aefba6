/* From a plan to a model: dims (config.c), shrink, the range of layers and the parts, then the
 * graph (block.c, mlp.c). */
#include "model/build.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* ---- sizes ---- */

/* Does an axis cut tokens only? Those do not constrain the sizes of weights. */
static bool is_token_axis(const char *name) {
    return !strncmp(name, "dp", 2) || !strcmp(name, "cp");
}

/* Product of the axes that may cut D, F or V. */
static int64_t cutting_axes(const Mesh *mesh) {
    int64_t n = 1;
    for (int i = 0; mesh && i < mesh->naxes; i++)
        if (!is_token_axis(mesh->axis[i].name) && __builtin_mul_overflow(n, mesh->axis[i].size, &n))
            return 1;
    return n;
}

static int64_t common_divisor(int64_t a, int64_t b) { return b ? common_divisor(b, a % b) : a; }
/* ceil(full / by) or a little more, at least `least`, never above the full size: an axis divides it
 * if and only if it divides the full size, for what is uneven there must be so here. `unit`: the
 * product of the axes. */
static int64_t shrink(int64_t full, int64_t by, int64_t unit, int64_t least) {
    int64_t n = full / by + (full % by != 0), even = common_divisor(full, unit);
    if (n < least) n = least;
    if (n > full - even) return full;
    n = (n + even - 1) / even * even;
    while (n < full && common_divisor(n, unit) != even) n += even;
    return n;
}

/* V from the ids that exist: padded to a multiple. */
static bool pad_vocab(Diags *d, const Plan *p, ModelDims *m) {
    int64_t by = p->vocab_multiple > 1 ? p->vocab_multiple : 1, rest = m->vocab % by;
    if (!__builtin_add_overflow(m->vocab, rest ? by - rest : 0, &m->V)) return true;
    diag_error(d, "E0701", p->model_loc, NULL, "vocab_multiple %lld is too large", (long long)by);
    return false;
}

/* Dims of a head that rotate. */
static int64_t turned(const ModelDims *m) {
    int64_t whole = m->learned ? 0 : m->kv_rank ? m->rope : m->d;
    return m->partial > 0 ? (int64_t)((double)whole * m->partial) : whole;
}

static void set_shrink(const Plan *p, const Mesh *mesh, ModelDims *m) {
    m->full_D = m->D;
    m->full_d = m->d;
    m->full_F = m->F;
    m->full_V = m->V;
    if (p->shrink <= 1) return;
    int64_t unit = cutting_axes(mesh);
    m->D = shrink(m->D, p->shrink, unit, 1);
    m->F = shrink(m->F, p->shrink, unit, 1);
    if (m->E) m->Fe = shrink(m->Fe, p->shrink, unit, 1);
    if (m->shared) m->shared = shrink(m->shared, p->shrink, unit, 1);
    m->vocab = shrink(m->vocab, p->shrink, unit, 1);
    if (!m->kv_rank) {
        m->d = shrink(m->d, p->shrink, 2, 8);
        while (m->partial > 0 && turned(m) % 2 && m->d < m->full_d) m->d++;
        return;
    }
    m->q_rank = m->q_rank ? shrink(m->q_rank, p->shrink, unit, 1) : 0;
    m->kv_rank = shrink(m->kv_rank, p->shrink, unit, 1);
    m->nope = shrink(m->nope, p->shrink, 2, 8);
    m->rope = shrink(m->rope, p->shrink, 2, 8);
    m->v_dim = shrink(m->v_dim, p->shrink, 2, 8);
    m->d = m->nope + m->rope;
}

static bool set_layers(Diags *d, const Plan *p, ModelDims *m) {
    int64_t last = p->layers_last < 0 ? m->L : p->layers_last;
    m->first_layer = p->layers_first;
    m->last_layer = (int)(last > m->L ? m->L : last);
    if (last > m->L || p->layers_first < 0 || p->layers_first >= last) {
        diag_error(d, "E0309", p->layers_loc,
                   "layers: n, [i, j] or all, with j <= the model's layers",
                   "layers %d to %lld of a model with %lld", p->layers_first, (long long)last - 1,
                   (long long)m->L);
        return false;
    }
    if (last - p->layers_first > MODEL_MAX_BUILT_LAYERS || m->L > INT32_MAX) {
        diag_error(d, "E0701", p->layers_loc, NULL, "more than %d layers", MODEL_MAX_BUILT_LAYERS);
        return false;
    }
    return true;
}

static bool check_heads(Diags *d, const Plan *p, const ModelDims *m) {
    int errors = diags_errors(d);
    int64_t rows;
    if (m->H % m->K)
        diag_error(d, "E0307", p->model_loc, NULL,
                   "%lld query heads cannot be shared out to %lld key/value heads", (long long)m->H,
                   (long long)m->K);
    if (m->turned % 2)
        diag_error(d, "E0309", p->model_loc, NULL, "%s %lld is odd: it cannot be rotated in pairs",
                   m->kv_rank       ? "qk_rope_head_dim"
                   : m->partial > 0 ? "the part of head_dim that turns,"
                                    : "head_dim",
                   (long long)m->turned);
    if (m->kv_rank && m->K != m->H)
        diag_error(d, "E0307", p->model_loc, "num_key_value_heads as num_attention_heads",
                   "latent attention has a key of its own for each of %lld heads, not %lld keys",
                   (long long)m->H, (long long)m->K);
    if (__builtin_mul_overflow(m->H, m->d, &rows))
        diag_error(d, "E0701", p->model_loc, NULL, "heads times head_dim is too large");
    return diags_errors(d) == errors;
}

/* A plan that no reader made says nothing of `moe`: what is NULL is the default. */
static bool says(const char *word, const char *what) { return word && !strcmp(word, what); }
/* The auxiliary losses of `moe`. */
static bool set_balance(Diags *d, const Plan *p, ModelDims *m) {
    int errors = diags_errors(d);
    m->balanced = p->moe.aux_loss && !says(p->moe.aux_loss, "none");
    m->balanced_apart = says(p->moe.aux_loss, "per_shard");
    if (m->balanced && !(p->moe.aux_coef > 0))
        diag_error(d, "E0208", p->moe.aux_loc, "aux_coef: 0.01",
                   "`aux_loss: %s` needs `aux_coef`, its factor in the loss", p->moe.aux_loss);
    if (!m->balanced && p->moe.aux_coef > 0)
        diag_error(d, "E0208", p->moe.aux_coef_loc, "aux_loss: exact",
                   "`aux_coef` is the factor of `aux_loss`, and there is none");
    return diags_errors(d) == errors;
}
/* What the plan's `moe` says. */
static bool set_moe(Diags *d, const Plan *p, const Mesh *mesh, ModelDims *m) {
    bool routed = p->moe.routing && !says(p->moe.routing, "computed") &&
                  !says(p->moe.routing, "replayed"),
         capped = p->moe.capacity_factor > 0, balance = set_balance(d, p, m);
    AxisList ep = {0};
    bool placed = p->moe.dispatch || p->moe.axis || p->moe.etp || p->moe.fsdp_dim_loc.file,
         adds = m->balanced || p->moe.z_coef > 0;
    if (!routed && !capped && !((placed || adds) && !m->E)) return balance;
    if (!m->E)
        diag_error(d, "E0208", p->moe.loc, "a model with experts, or no `moe`",
                   "`moe` speaks of experts, and %s has none", m->name);
    m->routed = routed;
    m->capped = capped;
    m->capped_locally = !strcmp(p->moe.capacity, "local");
    m->ranks_of_experts = mesh && mesh_lookup(mesh, "ep", &ep) ? mesh_size(mesh, &ep) : 1;
    return balance && m->E;
}
/* The key means nothing to this family's code. A window that reaches over the whole sequence
 * changes nothing. */
static bool window_reaches(Arena *a, Diags *d, const ModelDims *m) {
    if (!m->window_unread || !m->window || m->S <= m->window) return true;
    diag_error(
        d, "E0207", m->window_loc,
        arena_printf(a,
                     "data: {sequence: %lld} or less, where a window changes nothing; or "
                     "sliding_window: null, use_sliding_window: false",
                     (long long)m->window),
        "config key 'sliding_window': each of %lld tokens sees %lld, and this model_type has "
        "no attention within a window",
        (long long)m->S, (long long)m->window);
    return false;
}
/* Is there a row for each position? */
static bool positions_reach(Diags *d, const Plan *p, const ModelDims *m) {
    if (!m->learned || m->S <= m->max_positions) return true;
    diag_error(d, "E0307", p->sequence_loc.file ? p->sequence_loc : p->model_loc, NULL,
               "%lld positions, and the model's table of positions has %lld rows", (long long)m->S,
               (long long)m->max_positions);
    return false;
}
static bool llama_dims(Arena *a, Diags *d, const Plan *p, const Mesh *mesh, ModelDims *m) {
    if (!config_dims(a, d, p, m)) return false;
    m->vocab = m->V;
    if (!pad_vocab(d, p, m)) return false;
    set_shrink(p, mesh, m);
    m->turned = turned(m);
    if (!pad_vocab(d, p, m)) return false;
    /* Not `&&`: all that is wrong is told at once. */
    bool heads = check_heads(d, p, m);
    bool layers = set_layers(d, p, m);
    return set_moe(d, p, mesh, m) && heads && layers && data_sizes(a, d, p, m) &&
           window_reaches(a, d, m) && positions_reach(d, p, m);
}

static bool mlp_dims(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    m->name = "mlp";
    m->mlp = true;
    m->n_sizes = p->n_sizes;
    m->sizes = p->sizes;
    m->mlp_bias = p->mlp_bias != 0; /* as torch.nn.Linear, unless it says no */
    m->activation = p->activation ? p->activation : "relu";
    m->last_layer = p->n_sizes - 1;
    m->L = p->n_sizes - 1;
    if (!strcmp(m->activation, "none")) m->activation = NULL;
    int errors = diags_errors(d);
    if (p->n_sizes < 2)
        diag_error(d, "E0208", p->model_loc, "sizes: [10, 32, 5]",
                   "an mlp needs at least two sizes");
    for (int i = 0; i < p->n_sizes; i++)
        if (p->sizes[i] < 1)
            diag_error(d, "E0302", p->model_loc, NULL, "sizes must be whole numbers of 1 and more");
    if (p->n_layer_names && p->n_layer_names != p->n_sizes - 1)
        diag_error(d, "E0307", p->model_loc, NULL, "%d layer_names for %d layer%s",
                   p->n_layer_names, p->n_sizes - 1, p->n_sizes == 2 ? "" : "s");
    if (m->activation && !op_activation(m->activation)) {
        diag_error(d, "E0206", p->activation_loc, model_activation_hint(a, m->activation),
                   "unknown activation '%s'", m->activation);
    }
    return diags_errors(d) == errors && data_sizes(a, d, p, m);
}

/* The sizes of attention by itself. */
static bool core_dims(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    m->name = "attention";
    m->core = true;
    m->unmasked = !strcmp(p->attention.mask, "none");
    m->H = p->attention.heads;
    m->K = p->attention.kv_heads ? p->attention.kv_heads : m->H;
    m->d = m->full_d = p->attention.head_dim;
    m->L = m->last_layer = 1;
    return check_heads(d, p, m) && data_sizes(a, d, p, m);
}

/* ---- the whole ---- */

static void set_latent_letters(Build *b, const ModelDims *m) {
    const struct {
        char c;
        LetterSize l;
    } all[] = {{'k', {"H", m->H, DIM_KV_HEADS}},
               {'q', {"ql", m->q_rank, DIM_PLAIN}},
               {'c', {"kl", m->kv_rank, DIM_PLAIN}},
               {'n', {"dn", m->nope, DIM_HEAD_SIZE}},
               {'r', {"dr", m->rope, DIM_HEAD_SIZE}},
               {'o', {"dv", m->v_dim, DIM_HEAD_SIZE}},
               {'y', {"(kl+dr)", m->kv_rank + m->rope, DIM_PLAIN}},
               {'z', {"(dn+dv)", m->nope + m->v_dim, DIM_HEAD_SIZE}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) b->letter[all[i].c - 'a'] = all[i].l;
}
static void set_letters(Build *b, const ModelDims *m) {
    const struct {
        char c;
        LetterSize l;
    } all[] = {
        {'b', {"B", m->B, DIM_BATCH}},
        {'t', {"S", m->S, DIM_SEQUENCE}},
        {'d', {"D", m->D, DIM_PLAIN}},
        {'k', {"K", m->K, DIM_KV_HEADS}},
        {'g', {"G", m->H / m->K, DIM_QUERY_HEADS}},
        {'x', {"d", m->d, DIM_HEAD_SIZE}},
        {'u', {"2", 2, DIM_PLAIN}},
        {'h', {"1", 1, DIM_PLAIN}},
        {'j', {"(H+2K)*d", (m->H + 2 * m->K) * m->d, DIM_PLAIN}},
        {'a', {"H*d", m->H * m->d, DIM_PLAIN}},
        {'z', {"3*d", 3 * m->d, DIM_HEAD_SIZE}},
        {'p', m->sinks ? (LetterSize){"(d+1)", m->d + 1, DIM_HEAD_SIZE}
                       : (LetterSize){"P", m->max_positions, DIM_PLAIN}},
        {'i', {"K*d", m->K * m->d, DIM_PLAIN}},
        {'f', {"F", m->F, DIM_PLAIN}},
        {'e', {"E", m->E, DIM_PLAIN}},
        {'w', {m->F == m->Fe ? "F" : "Fe", m->Fe, DIM_PLAIN}},
        {'m', {m->shared == m->Fe ? m->F == m->Fe ? "F" : "Fe" : "Fs", m->shared, DIM_PLAIN}},
        {'v', {"V", m->V, DIM_PLAIN}}};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) b->letter[all[i].c - 'a'] = all[i].l;
    if (m->kv_rank) set_latent_letters(b, m);
}

/* Tokens times experts per token. */
static bool expert_rows(Build *b, const ModelDims *m) {
    if (!m->E || (!__builtin_mul_overflow(m->B, m->S, &b->rows) &&
                  !__builtin_mul_overflow(b->rows, m->top_k, &b->rows)))
        return true;
    Loc data = m->B > m->S ? b->p->batch_loc : b->p->sequence_loc;
    diag_error(b->d, "E0701", data.file ? data : b->p->model_loc, "make the sizes smaller",
               "the experts would get more than 2^63 rows");
    return false;
}
static void build_graph(Arena *a, Diags *d, const Plan *p, Model *m, int64_t ring) {
    ModelDims *s = &m->dims;
    Build b = {.a = a,
               .d = d,
               .p = p,
               .m = s,
               .g = &m->g,
               .index = build_index(a),
               .spelling = spelling_new(a),
               .layer = -1,
               .ring = ring};
    m->g.loss = m->g.output = -1;
    if (s->mlp) {
        m->parts = PART_BLOCKS;
        b.letter['b' - 'a'] = (LetterSize){"B", s->B, DIM_BATCH};
        build_mlp(&b);
    } else if (s->core) {
        m->parts = PART_BLOCKS;
        set_letters(&b, s);
        b.at = (Attrs){.scale = model_softmax_scale(s), .full = s->unmasked};
        build_attention(&b);
    } else {
        m->parts = p->parts ? p->parts : PART_BLOCKS;
        set_letters(&b, s);
        if (!expert_rows(&b, s)) return;
        b.at = (Attrs){.eps = s->eps,
                       .scale = model_softmax_scale(s),
                       .order = s->order,
                       .turn = model_turn(s),
                       .n_freq = (int)(s->turned / 2),
                       .inv_freq = model_inv_freq(a, s),
                       .ignore = (double)p->ignore_index,
                       .top = (int)s->top_k,
                       .factor = s->vocab < s->V ? (double)s->vocab : 0};
        if (s->windowed_base > 0) {
            ModelDims own = *s;
            own.rope_base = s->windowed_base, own.rope_type = "default";
            b.windowed_freq = model_inv_freq(a, &own);
        }
        build_llama(&b, m->parts);
    }
    if (b.failed) return;
    m->g.output = b.x;
    bool loss = (m->parts & PART_LOSS) || p->pass != PASS_FORWARD || p->loss_kind || b.n_terms > 0;
    if (loss) build_loss(&b, b.x, (m->parts & PART_HEAD) != 0);
}

/* The pairs that turn: as the plan says, as the family has them, or as the weights' names say. */
static void set_order(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    if (p->rope_interleaved >= 0 || m->order == ROPE_HALVES)
        m->order = data_interleaved(a, d, p) ? ROPE_NEIGHBOURS : ROPE_HALVES;
    m->rope_interleaved = m->order == ROPE_NEIGHBOURS;
}

/* How the scores of latent attention are made, where there is such attention. */
static void set_scores(Diags *d, const Plan *p, ModelDims *m) {
    m->scores_apart = p->scores_apart > 0;
    if (p->scores_apart >= 0 && !m->kv_rank)
        diag_error(
            d, "E0215", p->scores_loc, "leave `scores` out",
            "`scores` says how latent attention adds up its two parts, and this model has no "
            "latent attention");
}
Model *model_build(Arena *arena, Diags *d, const Plan *p, const Mesh *mesh) {
    assert(!mesh || mesh->nranks >= 1);
    Model *m = ARENA_NEW(arena, Model);
    int errors = diags_errors(d);
    bool core = p->kind && !strcmp(p->kind, "attention");
    if (p->kind && !core && strcmp(p->kind, "mlp")) {
        diag_error(d, "E0206", p->model_loc,
                   "`kind: mlp` or `kind: attention`; a Transformer is a `preset` or a `hf_config`",
                   "unknown kind of model '%s'", p->kind);
        return NULL;
    }
    if (!(core      ? core_dims(arena, d, p, &m->dims)
          : p->kind ? mlp_dims(arena, d, p, &m->dims)
                    : llama_dims(arena, d, p, mesh, &m->dims)))
        return NULL;
    if (!p->kind) set_order(arena, d, p, &m->dims);
    set_scores(d, p, &m->dims);
    if (diags_errors(d) > errors) return NULL;
    int64_t ring;
    if (model_ring(d, p, mesh, &ring)) build_graph(arena, d, p, m, ring);
    return diags_errors(d) == errors ? m : NULL;
}
