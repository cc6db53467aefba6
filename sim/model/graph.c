/* Graphs: adding tensors, nodes and modules, and finding them again by any of their names.
 * Refuses to know what a model looks like (block.c, mlp.c) or how a value is cut (layout). */
#include "model/build.h"
#include <assert.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- shapes ---- */

/* Where the size of a tensor that is too large stands: under `data` if one row and one position
 * would fit. */
static Loc large_loc(const Build *b, const GTensor *t) {
    const Plan *p = b->p;
    int64_t rest = 8;
    bool model = false, data = false;
    for (int d = 0; d < t->nd; d++) {
        bool token = t->role[d] == DIM_BATCH || t->role[d] == DIM_SEQUENCE;
        data |= token && t->size[d] > 1;
        if (!token) model |= __builtin_mul_overflow(rest, t->size[d], &rest);
    }
    if (!data || model || rest > (int64_t)1 << 58) return p->model_loc;
    bool rows = b->letter['b' - 'a'].size >= b->letter['t' - 'a'].size;
    Loc first = rows ? p->batch_loc : p->sequence_loc,
        second = rows ? p->sequence_loc : p->batch_loc;
    return first.file           ? first
           : second.file        ? second
           : p->inputs_loc.file ? p->inputs_loc
                                : p->model_loc;
}
/* Fills the dims of a tensor from text like "b t kgx": three stored dims, five letters; "[ebt] d":
 * rows. */
static bool shape_fill(Build *b, GTensor *t, const char *shape) {
    int64_t count = 8; /* bytes of the widest element type: the whole tensor must be addressable */
    bool listed = *shape == '[';
    t->rows = listed ? b->kept ? b->kept : b->rows : 0;
    if (listed) count *= t->rows;
    for (const char *c = shape; *c; c++) {
        if (*c == ']') listed = false;
        if (*c == ' ' || *c == '[' || *c == ']') continue;
        const LetterSize *l = &b->letter[*c - 'a'];
        assert(l->sym && t->nd < LAYOUT_MAX_DIMS);
        if (c == shape || c[-1] == ' ' || c[-1] == '[') t->nstored++;
        t->listed += listed;
        t->stored[t->nstored - 1]++;
        t->letter[t->nd] = *c;
        t->sym[t->nd] = l->sym;
        t->role[t->nd] = l->role;
        t->size[t->nd++] = l->size;
        if (!listed && __builtin_mul_overflow(count, l->size, &count)) {
            diag_error(b->d, "E0701", large_loc(b, t), "make the sizes smaller",
                       "'%s' has more than 2^60 elements", t->name);
            return false;
        }
    }
    /* every sum of sizes that is made later has to fit too: forward, backward, copies, bytes in and
     * out */
    if (__builtin_add_overflow(b->bytes, count, &b->bytes) || b->bytes > (int64_t)1 << 58) {
        diag_error(b->d, "E0701", large_loc(b, t), "make the sizes smaller",
                   "with '%s' the model's values have more than 2^58 bytes", t->name);
        return false;
    }
    return true;
}

void graph_stored_shape(const GTensor *t, int *n, int64_t *shape) {
    *n = t->nstored;
    for (int i = 0, l = 0; i < t->nstored; i++) {
        shape[i] = 1;
        for (int k = 0; k < t->stored[i]; k++) shape[i] *= t->size[l++];
    }
    if (t->listed) shape[0] = t->rows;
}

int graph_stored_first(const GTensor *t, int dim) {
    int first = 0;
    for (int i = 0; i < dim; i++) first += t->stored[i];
    return first;
}
const char *graph_stored_symbol(const GTensor *t, int dim, Arena *arena) {
    int first = graph_stored_first(t, dim);
    Str s = str_new(arena);
    if (t->listed && !dim) return "rows";
    for (int l = first; l < first + t->stored[dim]; l++) {
        const char *sym = t->sym[l];
        /* The query heads: kv groups times heads in a group. */
        bool heads = l + 1 < first + t->stored[dim] && t->role[l] == DIM_KV_HEADS &&
                     t->role[l + 1] == DIM_QUERY_HEADS;
        if (heads) l++;
        if (s.n) str_add(&s, "*");
        str_add(&s, heads ? "H" : sym);
    }
    return s.s;
}

/* ---- adding ---- */

int build_tensor(Build *b, const char *name, ValueKind kind, const char *shape, bool diff,
                 bool is_int) {
    GTensor t = {
        .name = name, .kind = kind, .diff = diff, .is_int = is_int, .module = -1, .producer = -1};
    if (!shape_fill(b, &t, shape)) {
        b->failed = true;
        return -1;
    }
    Graph *g = b->g;
    t.id = g->nt;
    *ARENA_PUSH(b->a, g->t, g->nt, g->cap_t) = t;
    return t.id;
}

/* Open addressing; a name that comes again stands for its newest tensor. */
struct NameIndex {
    Arena *a;
    int n, cap, met; /* names, slots, tensors that are in it */
    struct {
        const char *name; /* NULL: free */
        int tensor;
    } * slot;
};
struct NameIndex *build_index(Arena *a) {
    struct NameIndex *x = ARENA_NEW(a, struct NameIndex);
    x->a = a;
    return x;
}
static int *index_slot(struct NameIndex *x, const char *name, bool make) {
    if (make && 2 * (x->n + 1) > x->cap) {
        struct NameIndex old = *x;
        x->cap = old.cap ? 2 * old.cap : 64;
        x->n = 0;
        x->slot = arena_alloc(x->a, base_mul((size_t)x->cap, sizeof *x->slot));
        for (int i = 0; i < old.cap; i++)
            if (old.slot[i].name) *index_slot(x, old.slot[i].name, true) = old.slot[i].tensor;
    }
    uint64_t h = 1469598103934665603u;
    for (const char *c = name; *c; c++) h = (h ^ (unsigned char)*c) * 1099511628211u;
    for (uint64_t i = h ^ h >> 32; x->cap; i++) {
        int at = (int)(i & (uint64_t)(x->cap - 1));
        if (x->slot[at].name && strcmp(x->slot[at].name, name)) continue;
        if (!x->slot[at].name && !make) break;
        if (!x->slot[at].name) {
            x->n++;
            x->slot[at].name = name;
        }
        return &x->slot[at].tensor;
    }
    return NULL;
}
void build_alias(Build *b, int tensor, const char *name) {
    build_value(b, name); /* tensors before it are in the index */
    b->g->t[tensor].alias = name;
    *index_slot(b->index, name, true) = tensor;
}
int build_value(const Build *b, const char *name) {
    struct NameIndex *x = b->index;
    for (; x->met < b->g->nt; x->met++) *index_slot(x, b->g->t[x->met].name, true) = x->met;
    const int *at = index_slot(x, name, false);
    return at ? *at : -1;
}

int build_find_module(const Build *b, const char *own_path) {
    const char *hf_path = spelling_of(b->spelling, NAMES_HF, own_path);
    if (!hf_path) hf_path = own_path;
    for (int i = b->g->nm - 1; i >= 0; i--)
        if (!strcmp(b->g->module[i].hf_path, hf_path)) return i;
    return -1;
}

int build_module(Build *b, const char *own_path, const char *kind, int parent) {
    const char *path = spelling_of(b->spelling, b->p->names, own_path),
               *hf_path = spelling_of(b->spelling, NAMES_HF, own_path);
    if (!hf_path) hf_path = own_path;
    Graph *g = b->g;
    GModule m = {
        .path =
            path ? path
                 : hf_path, /* names of the user's own, as of `kind: mlp`, are their own scheme */
        .hf_path = hf_path,
        .kind = kind,
        .parent = parent,
        .output = -1,
        .weight = -1,
        .bias = -1};
    *ARENA_PUSH(b->a, g->module, g->nm, g->cap_m) = m;
    return g->nm - 1;
}

int build_param(Build *b, const char *own_name, const char *shape, int module) {
    const char *name = spelling_of(b->spelling, NAMES_HF, own_name);
    if (!name) name = own_name;
    int t = build_value(b, name);
    if (t >= 0) return t; /* tied: the second use of one table */
    t = build_tensor(b, name, KIND_PARAM, shape, true, false);
    if (t < 0) return -1;
    const char *plan_name = spelling_of(b->spelling, b->p->names, own_name);
    b->g->t[t].plan_name = plan_name ? plan_name : name;
    b->g->t[t].module = module;
    return t;
}

/* Has the output a gradient: some operand has one, and the op passes it on. */
static bool passes_gradient(const Graph *g, const GNode *n) {
    /* the max of a cross entropy is a constant: its gradient cancels */
    if (n->op->max) return false;
    for (int i = 0; i < n->nin; i++)
        if (g->t[n->in[i]].diff && !(n->op->nodiff >> i & 1)) return true;
    return false;
}

int build_node(Build *b, const char *op, const char *rule, const int *in, const char *out,
               const char *shape) {
    GNode n = {.id = b->g->nn,
               .op = op ? op_find(op) : op_activation(b->m->activation),
               .module = -1,
               .layer = -1};
    if (!n.op) {
        diag_error(b->d, "E0214", b->p->model_loc, NULL,
                   "this version has no op '%s' (needed for '%s')", op ? op : b->m->activation,
                   out);
        b->failed = true;
        return -1;
    }
    const char *why = NULL;
    int at = 0;
    bool parsed = rule_parse(rule, &n.rule, &why, &at);
    assert(parsed && "the rules of rows are ours");
    (void)parsed;
    n.nin = n.rule.nin;
    for (int i = 0; i < n.nin; i++) {
        if (in[i] < 0) {
            assert(b->failed); /* only after an error, which has been told */
            return -1;
        }
        assert(n.rule.nl[i] == b->g->t[in[i]].nd);
        n.in[i] = in[i];
    }
    n.label = n.op->label ? n.op->label : n.op->name;
    bool list = n.op->rows != NULL;
    n.out = build_tensor(b, out, KIND_ACTIVATION, shape, !list && passes_gradient(b->g, &n), list);
    if (n.out < 0) return -1;
    assert(n.rule.nout == b->g->t[n.out].nd);
    b->g->t[n.out].producer = n.id;
    *ARENA_PUSH(b->a, b->g->node, b->g->nn, b->g->cap_n) = n;
    return n.id;
}

/* ---- rows ---- */

static Attrs attrs_of(const Build *b, unsigned at, Features have) {
    Attrs r = {0};
    if (at & AT_EPS) r.eps = b->at.eps;
    if (at & AT_EPS_LATENT) r.eps = 1e-6; /* whatever rms_norm_eps says */
    if (at & AT_SCALE) r.scale = b->at.scale, r.full = b->at.full, r.cap = b->m->cap_scores;
    if (at & (AT_SCALE | AT_ROPE | AT_TEMPERATURE)) r.documents = b->m->documents;
    if (at & AT_SCALE && have & FEATURE_CHUNKED) r.chunk = b->m->chunk;
    if (at & AT_SCALE && have & FEATURE_WINDOWED) r.window = b->m->window;
    if (at & AT_INPUT_SCALE)
        r.factor = b->m->input_sqrt ? sqrt((double)b->m->D) : b->m->input_scale;
    if (at & AT_BRANCH_SCALE) r.factor = b->m->branch_scale;
    if (at & AT_LOGITS_SCALE) r.factor = b->m->logits_scale;
    if (at & AT_LOGITS_CAP) r.factor = b->m->cap_logits;
    if (at & AT_CLIP) r.factor = b->m->clip_qkv;
    if (at & AT_SWIGLU) r.factor = b->m->swiglu_limit, r.a = b->m->swiglu_alpha;
    if (at & AT_TEMPERATURE) {
        r.chunk = b->m->temperature_floor;
        r.b = b->m->temperature_scale;
    }
    if (at & AT_IGNORE) r.ignore = b->at.ignore;
    if (at & AT_VOCAB) r.factor = b->at.factor;
    if (at & AT_ROUTER) {
        r.top = b->at.top;
        r.groups = b->m->routed ? 0 : b->m->router.groups; /* what is given is taken as it is */
        r.top_groups = b->m->router.top_groups;
        r.factor = b->m->router.factor;
        r.a = b->m->router.share;
    }
    if (at & AT_CAPACITY) {
        r.top = b->at.top;
        r.factor = b->p->moe.capacity_factor;
        r.priority = !strcmp(b->p->moe.priority, "score") ? 'w' : b->p->moe.priority[0];
    }
    if (at & AT_ROPE) {
        r.order = b->at.order;
        r.turn = b->at.turn;
        r.n_freq = b->at.n_freq;
        r.inv_freq =
            b->windowed_freq && have & FEATURE_WINDOWED ? b->windowed_freq : b->at.inv_freq;
    }
    return r;
}

/* The operand "q_norm|q_proj" of a row: the first of the alternatives that exists; "@x": what flows
 * in. */
int build_first(const Build *b, const char *text, const char *prefix) {
    if (!strcmp(text, "@x")) return b->x;
    for (;;) {
        const char *bar = strchr(text, '|');
        int n = bar ? (int)(bar - text) : (int)strlen(text);
        char name[128];
        snprintf(name, sizeof name, "%s%.*s", prefix, n, text);
        int t = build_value(b, name);
        if (t >= 0 || !bar) return t;
        text = bar + 1;
    }
}

/* The bias after a product: "btkgx,kgx->btkgx". Every letter that only the weight has, and no token
 * letter, is its own. */
static int row_bias(Build *b, const NodeRow *row, int product, const char *out, int module,
                    const char *module_path) {
    const GTensor *y = &b->g->t[product];
    const GTensor *w = &b->g->t[b->g->module[module].weight];
    char letters[LAYOUT_MAX_DIMS + 1] = "", rule[4 * LAYOUT_MAX_DIMS];
    for (int i = 0, n = 0; i < y->nd; i++)
        if (strchr(w->letter, y->letter[i])) letters[n++] = y->letter[i];
    snprintf(rule, sizeof rule, "%s,%s->%s", y->letter, letters, y->letter);
    int bias = build_param(b, arena_printf(b->a, "%s.bias", module_path), letters, module);
    b->g->module[module].bias = bias;
    return build_node(b, "add", rule, (int[]){product, bias}, out, row->shape);
}

static void row_finish(Build *b, int node, const NodeRow *row, int module, int layer) {
    GNode *n = &b->g->node[node];
    n->module = module;
    n->layer = layer;
    if (module >= 0) b->g->module[module].mixes |= n->op->mixes;
    /* side by side, neither branch comes before the other: together they are one part */
    bool one = b->m->parallel && layer >= 0 && !part_term(row->part)->norm;
    n->part = one ? "block" : row->part;
    b->g->t[n->out].module = module;
}

/* Makes the module of a row, with its weight, or finds the container it belongs to. */
static int row_module(Build *b, const NodeRow *row, const char *path, int parent,
                      const char *weight_name) {
    if (!row->kind) return build_find_module(b, path);
    int module = build_module(b, path, row->kind, parent);
    b->g->module[module].vocab = row->vocab;
    bool own = false; /* weights by other names are made where they are read */
    for (int i = 0; i < RULE_OPERANDS && row->in[i]; i++) own |= !strcmp(row->in[i], "@w");
    if (row->weight && own) {
        const char *name = weight_name ? weight_name : arena_printf(b->a, "%s.weight", path);
        b->g->module[module].weight = build_param(b, name, row->weight, module);
    }
    return module;
}

static Features attention_features(const ModelDims *m, int layer) {
    if (m->kv_rank)
        return FEATURE_LATENT | FEATURE_ROTATES | (m->q_rank ? FEATURE_Q_RANK : 0u) |
               (m->scores_apart ? FEATURE_SCORES_APART : FEATURE_SCORES_JOINT);
    Features f = FEATURE_HEADS;
    if (model_chunked(m, layer)) f |= FEATURE_CHUNKED;
    if (model_windowed(m, layer)) f |= FEATURE_WINDOWED;
    if (!model_rotates(m, layer)) return f | (m->temperature_floor ? FEATURE_TEMPERATURE : 0u);
    return f | FEATURE_ROTATES | (m->qk_l2 ? FEATURE_QK_L2 : 0u);
}
static unsigned router_features(const ModelDims *m) {
    const Router *r = &m->router;
    return (r->sigmoid ? FEATURE_SIGMOID
            : r->all   ? FEATURE_GATE_ALL
                       : FEATURE_GATE_CHOSEN) |
           (m->routed ? FEATURE_ROUTED : 0u) | (m->capped ? FEATURE_CAPPED : 0u) |
           (m->capped_locally ? FEATURE_CAPPED_LOCALLY : 0u) |
           (r->bias ? FEATURE_ROUTER_BIAS : 0u) | (r->first ? FEATURE_SCORE_FIRST : 0u);
}
/* The shape of a layer, and what is scaled. */
static Features shape_features(const ModelDims *m) {
    static const Features norms[] = {[NORM_RMS] = FEATURE_RMS,
                                     [NORM_RMS_PLUS] = FEATURE_RMS_PLUS,
                                     [NORM_LAYER] = FEATURE_LAYERNORM,
                                     [NORM_LAYER_PLUS] = FEATURE_LAYERNORM_PLUS,
                                     [NORM_LAYER_BARE] = FEATURE_LAYERNORM_BARE};
    bool scaled = m->logits_scale > 0, capped = m->cap_logits > 0;
    return (m->ungated ? FEATURE_UNGATED : FEATURE_GATED) | norms[m->norm] |
           (m->norm_bias ? FEATURE_NORM_BIAS : 0u) |
           (m->xielu ? FEATURE_XIELU : FEATURE_PLAIN_ACT) |
           (m->clip_qkv > 0 ? FEATURE_CLIPPED : 0u) | (capped ? FEATURE_CAPPED_LOGITS : 0u) |
           (scaled || capped ? FEATURE_BENT_LOGITS : 0u) |
           (m->norms & NORMS_BEFORE ? FEATURE_NORM_BEFORE : 0u) |
           (m->norms & NORMS_AFTER ? FEATURE_NORM_AFTER : 0u) |
           (m->input_sqrt || m->input_scale > 0 ? FEATURE_SCALED_INPUT : 0u) |
           (m->branch_scale > 0 ? FEATURE_SCALED_BRANCH : 0u) |
           (scaled ? FEATURE_SCALED_LOGITS : 0u);
}
Features build_features(const Build *b) {
    const ModelDims *m = b->m;
    Features f = b->layer < 0 || m->mlp ? 0 : attention_features(m, b->layer);
    return f | shape_features(m) | (b->moe ? FEATURE_MOE : FEATURE_DENSE) | router_features(m) |
           (m->shared ? FEATURE_SHARED : 0u) | (m->experts_turned ? FEATURE_EXPERTS_TURNED : 0u) |
           (m->experts_packed ? FEATURE_EXPERTS_PACKED : 0u) | (m->qk_norm ? FEATURE_QK_NORM : 0u) |
           (m->parallel ? FEATURE_PARALLEL : 0u) |
           (m->norms & NORMS_BEFORE && !m->norm_shared ? FEATURE_NORM_SECOND : 0u) |
           (m->head_weights ? FEATURE_HEAD_WEIGHTS : 0u) | (m->learned ? FEATURE_LEARNED : 0u) |
           (m->turned_linear ? FEATURE_TURNED : FEATURE_UNTURNED) |
           (m->sinks ? FEATURE_SINKS : 0u) | (m->expert_biases ? FEATURE_EXPERT_BIASES : 0u) |
           (m->qk_wide ? FEATURE_QK_WIDE : 0u) | (m->q_bias ? FEATURE_Q_BIAS : 0u) |
           (m->k_bias ? FEATURE_K_BIAS : 0u) | (m->v_bias ? FEATURE_V_BIAS : 0u) |
           (m->o_bias ? FEATURE_O_BIAS : 0u) | (m->gate_bias ? FEATURE_GATE_BIAS : 0u) |
           (m->up_bias ? FEATURE_UP_BIAS : 0u) | (m->down_bias ? FEATURE_DOWN_BIAS : 0u) |
           (m->mlp_bias ? FEATURE_MLP_BIAS : 0u) |
           (m->qkv_by_head  ? FEATURE_QKV_BY_HEAD
            : m->packed_qkv ? FEATURE_PACKED_QKV
                            : FEATURE_APART_QKV) |
           (m->packed_mlp ? FEATURE_PACKED : FEATURE_APART);
}

/* What is called `model.layers` elsewhere is `gpt_neox.layers` or `transformer.h` there. */
static const char *with_root(const Build *b, const char *path) {
    static const struct {
        Naming of;
        const char *own, *theirs;
    } roots[] = {{NAMING_NEOX, "model.", "gpt_neox."},
                 {NAMING_GPT2, "model.layers.", "transformer.h."},
                 {NAMING_GPT2, "model.", "transformer."}};
    for (size_t i = 0; i < sizeof roots / sizeof *roots; i++) {
        size_t n = strlen(roots[i].own);
        if (roots[i].of == b->m->naming && !strncmp(path, roots[i].own, n))
            return arena_printf(b->a, "%s%s", roots[i].theirs, path + n);
    }
    return path;
}
const char *build_module_path(const Build *b, const char *prefix, const char *module) {
    /* of a family the first that fits */
    static const struct {
        Naming of;
        const char *own, *theirs;
    } names[] = {{NAMING_LLAMA4, "mlp", "feed_forward"},
                 {NAMING_LLAMA4, "moe.gate", "moe_ff.router"},
                 {NAMING_LLAMA4, "moe.shared_experts", "moe_ff.shared_expert"},
                 {NAMING_LLAMA4, "moe", "moe_ff"},
                 {NAMING_ROUTER, "moe.gate", "moe.router"},
                 {NAMING_GPT_OSS, "moe.gate", "moe.router"},
                 {NAMING_GPT_OSS, "self_attn.core.sinks", "self_attn.sinks"},
                 {NAMING_FLINT, "self_attn.core.sinks", "self_attn.sinks"},
                 {NAMING_FLINT, "moe.shared_experts", "moe.shared_expert"},
                 {NAMING_HY3, "moe.gate.e_score_correction_bias", "moe.e_score_correction_bias"},
                 {NAMING_GLM4, "attn_out_norm", "post_self_attn_layernorm"},
                 {NAMING_GLM4, "mlp_out_norm", "post_mlp_layernorm"},
                 {NAMING_GEMMA, "post_attention_layernorm", "pre_feedforward_layernorm"},
                 {NAMING_APERTUS, "input_layernorm", "attention_layernorm"},
                 {NAMING_APERTUS, "post_attention_layernorm", "feedforward_layernorm"},
                 {NAMING_NEOX, "self_attn.qkv_proj", "attention.query_key_value"},
                 {NAMING_NEOX, "self_attn.o_proj", "attention.dense"},
                 {NAMING_NEOX, "self_attn", "attention"},
                 {NAMING_NEOX, "mlp.up_proj", "mlp.dense_h_to_4h"},
                 {NAMING_NEOX, "mlp.down_proj", "mlp.dense_4h_to_h"},
                 {NAMING_NEOX, "model.embed_tokens", "model.embed_in"},
                 {NAMING_NEOX, "model.norm", "model.final_layer_norm"},
                 {NAMING_GPT2, "input_layernorm", "ln_1"},
                 {NAMING_GPT2, "post_attention_layernorm", "ln_2"},
                 {NAMING_GPT2, "self_attn.qkv_proj", "attn.c_attn"},
                 {NAMING_GPT2, "self_attn.o_proj", "attn.c_proj"},
                 {NAMING_GPT2, "self_attn", "attn"},
                 {NAMING_GPT2, "mlp.up_proj", "mlp.c_fc"},
                 {NAMING_GPT2, "mlp.down_proj", "mlp.c_proj"},
                 {NAMING_GPT2, "model.embed_tokens", "model.wte"},
                 {NAMING_GPT2, "model.embed_positions", "model.wpe"},
                 {NAMING_GPT2, "model.norm", "model.ln_f"}};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        size_t n = strlen(names[i].own);
        if (names[i].of == b->m->naming && !strncmp(module, names[i].own, n) &&
            (!module[n] || module[n] == '.'))
            return with_root(b, arena_printf(b->a, "%s%s%s", prefix, names[i].theirs, module + n));
    }
    return with_root(b, arena_printf(b->a, "%s%s", prefix, module));
}

/* Elements of blocks side by side, "kgx kx": the sum of the products of their letters. */
static int64_t elements_of(const Build *b, const char *blocks) {
    int64_t sum = 0, block = 1;
    for (const char *c = blocks; *c; c++) {
        if (*c != ' ') block *= b->letter[*c - 'a'].size;
        if (*c == ' ' || !c[1]) sum += block, block = 1;
    }
    return sum;
}
bool build_there(const NodeRow *row, Features have) {
    return (row->need & have) == row->need && !(row->lack & have);
}
int build_row(Build *b, const NodeRow *row, RowPlace at) {
    const Features have = build_features(b);
    if (!build_there(row, have)) return -1;
    const char *path = build_module_path(b, at.modules, row->module);
    if (!*row->module && *at.modules)
        path = arena_strndup(b->a, at.modules, strlen(at.modules) - 1);
    int module = row_module(b, row, path, at.parent, at.weight);
    int own = module >= 0 ? b->g->module[module].weight : -1;
    if (row->param)
        own = build_param(
            b,
            build_module_path(b, at.modules, arena_printf(b->a, "%s.%s", row->module, row->param)),
            row->weight, module);
    if (row->buffer && own >= 0) b->g->t[own].diff = false;
    int in[RULE_MAX_IN] = {-1, -1, -1, -1, -1, -1}, nin = 0, nact = 0, act[RULE_OPERANDS];
    for (; nin < RULE_OPERANDS && row->in[nin]; nin++) {
        const char *text = row->in[nin];
        bool value = *text != '@' || !strcmp(text, "@x");
        in[nin] =
            value ? build_first(b, text, at.values)
            : !strcmp(text, "@w")
                ? own
                : build_param(b, arena_printf(b->a, "%s.%s", path, text + 1), row->weight, module);
        if (value) act[nact++] = in[nin];
    }
    const char *out = arena_printf(b->a, "%s%s", at.values, row->out);
    bool biased = (row->bias & have) != 0;
    int node = build_node(b, row->op, row->rule, in,
                          biased ? arena_printf(b->a, "%s.product", out) : out, row->shape);
    if (node < 0) return -1;
    assert(b->g->node[node].nin == nin && "a row has the operands of its rule");
    row_finish(b, node, row, module, at.layer);
    b->g->node[node].at = attrs_of(b, row->at, have);
    if (row->after) b->g->node[node].at.offset = elements_of(b, row->after);
    if (row->label) b->g->node[node].label = row->label;
    if (row->home) b->g->node[node].home = 1 + build_first(b, row->home, at.values);
    int result = b->g->node[node].out;
    if (biased) {
        node = row_bias(b, row, result, out, module, path);
        if (node < 0) return -1;
        row_finish(b, node, row, module, at.layer);
        b->g->node[node].label = "bias";
        result = b->g->node[node].out;
    }
    if (row->also) build_alias(b, result, arena_printf(b->a, "%s%s", at.values, row->also));
    if (row->kind) {
        GModule *m = &b->g->module[module];
        for (m->n_input = 0; m->n_input < nact; m->n_input++)
            m->input[m->n_input] = act[m->n_input];
        m->output = result;
    }
    if (row->ends) b->g->module[module].output = result;
    return result;
}

/* ---- finding ---- */

/* Is `name` the path followed by the suffix? */
static bool is_path(const char *name, const char *path, const char *suffix) {
    size_t n = strlen(path);
    return !strncmp(name, path, n) && !strcmp(name + n, suffix);
}

/* "MODULE.input", ".output", ".weight", ".bias" under one path of a module. */
static int module_tensor(const GModule *m, const char *path, const char *name) {
    if (is_path(name, path, ".output")) return m->output;
    if (is_path(name, path, ".input")) return m->n_input ? m->input[0] : -1;
    if (is_path(name, path, ".weight")) return m->weight;
    if (is_path(name, path, ".bias")) return m->bias;
    return -1;
}

int graph_find(const Graph *g, const char *name) {
    static const char root[] = "model.";
    const size_t nroot = sizeof root - 1;
    for (int i = 0; i < g->nt; i++) {
        const GTensor *t = &g->t[i];
        if (!strcmp(t->name, name) || (t->alias && !strcmp(t->alias, name))) return i;
    }
    for (int i = 0; i < g->nt; i++) {
        const GTensor *t = &g->t[i];
        if (t->kind != KIND_PARAM) continue;
        if (!strcmp(t->plan_name, name)) return i;
        if (!strncmp(t->name, root, nroot) && !strcmp(t->name + nroot, name)) return i;
        if (!strncmp(name, root, nroot) && !strcmp(t->name, name + nroot)) return i;
    }
    for (int i = 0; i < g->nm; i++) {
        const GModule *m = &g->module[i];
        int t = module_tensor(m, m->path, name);
        if (t < 0) t = module_tensor(m, m->hf_path, name);
        if (t < 0 && !strncmp(m->hf_path, root, nroot))
            t = module_tensor(m, m->hf_path + nroot, name);
        if (t >= 0) return t;
    }
    return -1;
}

int64_t graph_rows(const GTensor *t, const int64_t *local) {
    double all = 1, mine = 1;
    for (int d = 0; d < t->listed; d++) all *= (double)t->size[d], mine *= (double)local[d];
    return all > 0 ? (int64_t)ceil(mine / all * (double)t->rows - 1e-6) : 0;
}
bool graph_counts_rows(const Graph *g, const GTensor *t) {
    const GNode *n = t->producer >= 0 ? &g->node[t->producer] : NULL;
    bool lists = n && n->nin && !t->listed;
    for (int i = 0; lists && i < n->nin; i++) lists = graph_is_list(&g->t[n->in[i]]);
    return lists;
}
bool graph_node_of_loss(const GNode *n) { return part_term(n->part)->loss; }
bool graph_of_loss(const Graph *g, const GTensor *t) {
    return t->producer >= 0 && graph_node_of_loss(&g->node[t->producer]);
}
int graph_moments(const Graph *g, int tensor) {
    int n = 0;
    for (int t = 0; t < g->nt; t++) n += g->t[t].state_of == tensor + 1;
    return n;
}
int64_t graph_elements(const GTensor *t) {
    int64_t n = t->listed ? t->rows : 1;
    for (int d = t->listed; d < t->nd; d++) n *= t->size[d];
    return n;
}

int *graph_units(const Graph *g, bool one, Arena *arena) {
    int *unit = ARENA_ARRAY(arena, int, g->nt + 1);
    bool layers = false;
    for (int t = 0; t < g->nt; t++) unit[t] = -1;
    for (int n = 0; n < g->nn; n++) layers |= g->node[n].layer >= 0;
    for (int n = g->nn - 1; n >= 0 && !one; n--) /* the first that reads it comes last */
        for (int i = 0; i < g->node[n].nin; i++) {
            int m = g->node[n].module;
            bool own = m >= 0 && !strcmp(g->module[m].kind, "linear");
            unit[g->node[n].in[i]] = layers ? g->node[n].layer : own ? m : -1;
        }
    return unit;
}

const char *graph_name(const GTensor *t) { return t->plan_name ? t->plan_name : t->name; }
Subject graph_subject(const GTensor *t, bool gradient) {
    SubjectRole role = t->kind == KIND_PARAM ? OF_PARAM_GRADIENT : OF_GRADIENT;
    return (Subject){gradient ? role : OF_ITSELF, graph_name(t)};
}
