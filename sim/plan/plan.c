/* The keys of a plan, as tables, and the order in which they are read. Values are read in read.c,
 * placements and styles in place.c, expectations in expect.c, overrides in set.c. Refuses to
 * resolve anything against a model: presets, dims and patterns are looked up where the model is. */
#include "plan/read.h"
#include "base/text.h"
#include "ops/op.h"
#include "plan/lists.h"
#include "trace/terms.h"
#include <assert.h>
#include <limits.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define P(f) offsetof(Plan, f)
#define END                                                                                        \
    { NULL, NULL, NULL, 0, NO_LOC, NULL }

/* ---- words ---- */

static const Word kinds[] = {{"mlp", 0}, {"attention", 1}, {NULL, 0}};
static const Word masks[] = {{"causal", 0}, {"none", 1}, {NULL, 0}};
static const Word scores[] = {{"joint", 0}, {"parts", 1}, {NULL, 0}};
static const Word ropes[] = {{"half", 0}, {"interleaved", 1}, {NULL, 0}};
#define DTYPE_WORD(word, name) {#word, DT_##name},
static const Word dtypes[] = {PLAN_DTYPES(DTYPE_WORD){NULL, 0}};
static const Word executes[] = {{"f32", DT_F32}, {"f64", DT_F64}, {NULL, 0}};
static const Word orders[] = {{"contiguous", 0}, {"zigzag", 1}, {"striped", 2}, {NULL, 0}};
#define LOSS_WORD(name) {#name, LOSS_##name},
#define OPTIMIZER_WORD(name) {#name, OPTIMIZER_##name},
static const Word losses[] = {LOSSES(LOSS_WORD){NULL, 0}};
static const Word optimizers[] = {OPTIMIZERS(OPTIMIZER_WORD){NULL, 0}};
static const Word normalises[] = {{"global", 0}, {"local_mean", 1}, {NULL, 0}};
#define PASS_WORD(word, name) {#word, PASS_##name},
static const Word passes[] = {PASSES(PASS_WORD){NULL, 0}};
static const Word reduces[] = {{"sum", 0}, {"avg", 1}, {NULL, 0}};
static const Word grad_orders[] = {{"shard_first", 0}, {"tp_first", 1}, {NULL, 0}};
static const Word cp_modes[] = {
    {"all_gather", 0}, {"ring", 1}, {"ulysses", 2}, {"usp", 3}, {NULL, 0}};
static const Word cp_backwards[] = {{"final", 0}, {"chain", 1}, {NULL, 0}};
static const Word routings[] = {
    {"computed", 0}, {"replayed", 8}, {"balanced", 1},   {"hot_expert", 2}, {"hot_rank", 3},
    {"spread", 4},   {"ragged", 5},   {"empty_rank", 6}, {"burst", 7},      {NULL, 0}};
static const Word capacities[] = {{"global", 0}, {"local", 1}, {NULL, 0}};
static const Word priorities[] = {{"order", 0}, {"slot", 1}, {"score", 2}, {NULL, 0}};
static const Word dispatches[] = {{"all_to_all", 0}, {"all_gather", 1}, {"masked", 2}, {NULL, 0}};
static const Word fsdp_dims[] = {{"0", 0}, {"1", 1}, {"auto", 2}, {NULL, 0}};
static const Word aux_losses[] = {{"none", 0}, {"exact", 1}, {"per_shard", 2}, {NULL, 0}};
static const Word recomputes[] = {{"none", RECOMPUTE_NONE}, {"block", RECOMPUTE_BLOCK}, {NULL, 0}};
static const Word boundaries[] = {{"shared", 0}, {"per_module", 1}, {NULL, 0}};
static const Word kv_modes[] = {{"auto", 0}, {"never", 1}, {NULL, 0}};
static const Word trusts[] = {
    {"rules", TRUST_RULES}, {"declared", TRUST_DECLARED}, {"compiler", TRUST_COMPILER}, {NULL, 0}};
const char *plan_trust_text(Trust t) {
    for (const Word *w = trusts; w->word; w++)
        if (w->value == (int)t) return w->word;
    return NULL;
}
static const Word part_words[] = {{"embedding", PART_EMBEDDING}, {"blocks", PART_BLOCKS},
                                  {"norm", PART_NORM},           {"head", PART_HEAD},
                                  {"loss", PART_LOSS},           {NULL, 0}};
static const char *right_mean(const Plan *p) { return term_right_word("normalise", p->normalise); }
static const char *right_balance(const Plan *p) {
    return term_right_word("aux_loss", p->moe.aux_loss);
}
bool plan_local_means(const Plan *p) { return right_mean(p) != NULL; }
bool plan_asks_wrong(const Plan *p) { return plan_local_means(p) || right_balance(p); }
void plan_ask_right(Plan *p) {
    const char *mean = right_mean(p), *balance = right_balance(p);
    if (mean) p->normalise = mean;
    if (balance) p->moe.aux_loss = balance;
}
const char *plan_parts_text(Arena *a, uint32_t parts) {
    Str s = str_new(a);
    for (const Word *w = part_words; w->word; w++)
        if (parts & (uint32_t)w->value) str_addf(&s, "%s%s", s.n ? ", " : "", w->word);
    return s.s;
}
#define PART_LIST "a list of embedding, blocks, norm, head, loss"

static const Range positive = {0, 1e300, true, false}, not_negative = {0, 1e300, false, false},
                   fraction = {0, 1, false, true},
                   factor = {0, 1e6, false, false}; /* beyond, f32 may overflow */

/* ---- model ---- */

const Word *plan_activations(Arena *arena) {
    Word *w = ARENA_ARRAY(arena, Word, n_ops + 2);
    int n = 0;
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->activation) w[n] = (Word){op_list[i]->activation, n}, n++;
    w[n] = (Word){"none", n};
    return w;
}
void plan_read_activation(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Key words = *k;
    words.arg = plan_activations(r->a);
    read_word_text(r, &words, base, pair);
}
static void read_sizes(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    int64_t *sizes;
    int n = read_wholes(r, k->name, pair->value, &sizes);
    if (n == 0 || n == 1)
        read_wrong_type(r, k->name, pair->value, "a list of at least two sizes: input and output",
                        NULL);
    else if (n > 1) p->sizes = sizes, p->n_sizes = n;
}

static void read_documents(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml *y = pair->value;
    bool by_row = y->kind == YAML_LIST && y->n && y->item[0]->kind == YAML_LIST, ok = true;
    int rows = by_row ? y->n : 1;
    p->documents_by_row = by_row;
    p->documents = ARENA_ARRAY(r->a, struct PlanPacking, rows);
    for (int i = 0; i < rows; i++) {
        struct PlanPacking *row = &p->documents[i];
        Yaml *of = by_row ? y->item[i] : y;
        bool list = !by_row || of->kind == YAML_LIST;
        row->n = list ? read_wholes(r, k->name, of, &row->length) : 0;
        if (!row->n)
            read_wrong_type(r, k->name, of, "the lengths of documents, [5, 7, 12]",
                            by_row ? "a list for each row: [[5, 7, 12], [20, 4]]" : NULL);
        ok = row->n > 0 && ok;
    }
    p->n_documents = ok ? rows : 0;
}

/* A list of texts, or one, into *out and *n. */
static void read_texts(PlanReader *r, const Key *k, YamlPair *pair, const char ***out, int *out_n) {
    Yaml **item;
    int n;
    if (!read_items(r, k->name, pair->value, &item, &n)) return;
    const char **s = ARENA_ARRAY(r->a, const char *, n);
    for (int i = 0; i < n; i++)
        if (!(s[i] = read_scalar(r, k->name, item[i], "text"))) return;
    *out = s;
    *out_n = n;
}
/* Is name the path of a module inside that of outer? Its parameters and values might be one's. */
static bool inside(const char *name, const char *outer) {
    size_t n = strlen(outer);
    return strncmp(name, outer, n) == 0 && (name[n] == '.' || !name[n]);
}
/* Is it, or could it be read as, the name of a value that is there without it? */
static bool value_has_name(const char *name) {
    static const char *const values[] = {"input",       "cotangent",         "loss",
                                         "clip_factor", "grad_norm_squared", "scale",
                                         "scaled"},
                             *const starts[] = {"grad", "param", "optimizer", "grad_norm"};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (strcmp(name, values[i]) == 0) return true;
    for (size_t i = 0; i < sizeof starts / sizeof *starts; i++)
        if (inside(name, starts[i])) return true;
    return !strncmp(name, "act", 3) && name[3] && !name[3 + strspn(name + 3, "0123456789")];
}
/* Names of layers are those of their values: each stands for one thing only. */
static void read_layer_names(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml **item;
    int n;
    read_texts(r, k, pair, &p->layer_names, &p->n_layer_names);
    if (!p->n_layer_names || !read_items(r, k->name, pair->value, &item, &n)) return;
    for (int i = 0; i < n; i++) {
        const char *name = p->layer_names[i], *like = NULL;
        for (int j = 0; j < n && !like; j++)
            if (j != i && inside(name, p->layer_names[j]) &&
                (j < i || strlen(name) > strlen(p->layer_names[j])))
                like = p->layer_names[j];
        if (!*name)
            diag_error(r->d, "E0216", item[i]->loc, "layer_names: [up, down]",
                       "layer %d has no name", i + 1);
        else if (value_has_name(name))
            diag_error(r->d, "E0216", item[i]->loc, "choose another name",
                       "a layer cannot be called '%s': values of the run have such names", name);
        else if (like && strcmp(name, like) == 0)
            diag_error(r->d, "E0216", item[i]->loc, "choose another name",
                       "two layers are called '%s'", name);
        else if (like && *like)
            diag_error(r->d, "E0216", item[i]->loc, "choose another name",
                       "layer '%s' has the name of something inside layer '%s'", name, like);
    }
}
static void read_ignore(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    read_texts(r, k, pair, &((Plan *)base)->ignore_config, &((Plan *)base)->n_ignore_config);
}

/* n | [i, j] | all, as a half-open range. */
static void read_layers(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    const Yaml *y = pair->value;
    int64_t first = 0, last = -1;
    if (y->kind == YAML_LIST && y->n == 2) {
        if (!read_whole(r, k->name, y->item[0], 0, &first) ||
            !read_whole(r, k->name, y->item[1], 1, &last))
            return;
        if (first >= last) {
            diag_error(r->d, "E0309", y->loc, "[i, j] is layers i to j-1",
                       "'layers': [%lld, %lld] is empty", (long long)first, (long long)last);
            return;
        }
    } else if (y->kind != YAML_SCALAR) {
        read_wrong_type(r, k->name, y, "a number, [first, end] or all", NULL);
        return;
    } else if (strcmp(y->s, "all") != 0 && !read_whole(r, k->name, y, 1, &last)) {
        return;
    }
    if (last > INT_MAX) {
        diag_error(r->d, "E0302", y->loc, "`layers: all` is all that the model has",
                   "'layers': %lld layers are too many", (long long)last);
        return;
    }
    p->layers_first = (int)first;
    p->layers_last = (int)last;
    p->layers_set = true;
}

static void read_parts(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml **item;
    int n;
    if (!read_items(r, k->name, pair->value, &item, &n)) return;
    for (int i = 0; i < n; i++) {
        int v = read_word(r, k->name, item[i], part_words);
        if (v > 0) p->parts |= (uint32_t)v;
    }
    if (!n) read_wrong_type(r, k->name, pair->value, PART_LIST, NULL);
}

/* JSON has no other way to write a number; what YAML writes otherwise stays text. */
static bool json_number(const char *s) {
    if (*s == '-') s++;
    size_t n = strspn(s, "0123456789");
    if (!n || (*s == '0' && n > 1)) return false;
    s += n;
    if (*s == '.') {
        n = strspn(++s, "0123456789");
        if (!n) return false;
        s += n;
    }
    if (*s == 'e' || *s == 'E') {
        s++;
        if (*s == '+' || *s == '-') s++;
        n = strspn(s, "0123456789");
        if (!n) return false;
        s += n;
    }
    return *s == 0;
}

static void json_text(Str *out, const char *s) {
    str_add(out, "\"");
    for (; *s; s++) {
        if (*s == '"' || *s == '\\') str_addf(out, "\\%c", *s);
        else if ((unsigned char)*s < 0x20) str_addf(out, "\\u%04x", (unsigned)*s);
        else str_addn(out, s, 1);
    }
    str_add(out, "\"");
}

/* YAML as JSON text; depth is limited by the YAML reader. */
static void json_of(Str *out, const Yaml *y) {
    if (y->kind == YAML_SCALAR) {
        bool literal = !y->quoted && (json_number(y->s) || strcmp(y->s, "true") == 0 ||
                                      strcmp(y->s, "false") == 0);
        if (yaml_is_null(y)) str_add(out, "null");
        else if (literal) str_add(out, y->s);
        else json_text(out, y->s);
        return;
    }
    str_add(out, y->kind == YAML_MAP ? "{" : "[");
    for (int i = 0; i < y->n; i++) {
        if (i) str_add(out, ", ");
        if (y->kind == YAML_MAP) {
            json_text(out, y->pair[i].key);
            str_add(out, ": ");
        }
        json_of(out, y->kind == YAML_MAP ? y->pair[i].value : y->item[i]);
    }
    str_add(out, y->kind == YAML_MAP ? "}" : "]");
}

static void keep_places(PlanReader *r, Plan *p, const Yaml *y) {
    for (int i = 0; i < y->n; i++) {
        if (y->kind == YAML_MAP)
            *ARENA_PUSH(r->a, p->inline_key, p->n_inline_keys, p->cap_inline_keys) =
                (PlanPlace){y->pair[i].key, y->pair[i].loc};
        keep_places(r, p, y->kind == YAML_MAP ? y->pair[i].value : y->item[i]);
    }
}
static void read_config(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    if (pair->value->kind != YAML_MAP) {
        read_wrong_type(r, k->name, pair->value, "a mapping of config keys",
                        "a file is named by `hf_config`");
        return;
    }
    Str s = str_new(r->a);
    json_of(&s, pair->value);
    *(const char **)((char *)base + k->at) = s.s;
    keep_places(r, base, pair->value);
}

static const Key weights_keys[] = {
    {"file", read_path, NULL, P(weights), P(weights_loc), "a safetensors file"},
    {"prefix", read_text, NULL, P(weights_prefix), NO_LOC, "what stands before its names"},
    END,
};
static const Sub weights_sub = {weights_keys, "file"};

static const Key model_keys[] = {
    {"preset", read_text, NULL, P(preset), P(preset_loc), "name of a built-in model"},
    {"hf_config", read_path, NULL, P(hf_config), P(hf_config_loc), "a config.json"},
    {"config", read_config, NULL, P(inline_config), NO_LOC, "keys of a config, written here"},
    {"kind", read_word_text, kinds, P(kind), NO_LOC,
     "mlp: a chain of linear layers; attention: attention by itself, of inputs q, k and v"},
    {"sizes", read_sizes, NULL, 0, NO_LOC, "mlp: [10, 32, 5]"},
    {"bias", read_flag, NULL, P(mlp_bias), NO_LOC, "mlp: layers have biases"},
    {"activation", plan_read_activation, NULL, P(activation), P(activation_loc),
     "mlp: between the layers"},
    {"scale", read_bool, NULL, P(mlp_scale), NO_LOC,
     "mlp: a learned factor for each number of the output, the parameter `scale`"},
    {"layer_names", read_layer_names, NULL, 0, NO_LOC, "mlp: names of the layers"},
    {"heads", read_size, NULL, P(attention.heads), NO_LOC, "attention: query heads"},
    {"kv_heads", read_size, NULL, P(attention.kv_heads), NO_LOC,
     "attention: key and value heads, default as many as query heads"},
    {"head_dim", read_size, NULL, P(attention.head_dim), NO_LOC, "attention: width of a head"},
    {"mask", read_word_text, masks, P(attention.mask), NO_LOC,
     "attention: causal, or none: every query sees every key"},
    {"weights", read_sub, &weights_sub, 0, NO_LOC,
     "a safetensors file; without it weights are random"},
    {"weights_names", read_word_text, read_names_words, P(weights_names), NO_LOC,
     "scheme of the names in the file"},
    {"layers", read_layers, NULL, 0, P(layers_loc), "how many, [first, last], or all"},
    {"shrink", read_size, NULL, P(shrink), P(shrink_loc),
     "divides the widths D, d, F, V; heads, axes and collectives stay"},
    {"parts", read_parts, NULL, 0, P(parts_loc), PART_LIST},
    {"rope", read_word_int, ropes, P(rope_interleaved), NO_LOC,
     "how rotary embeddings pair the numbers of a head"},
    {"scores", read_word_int, scores, P(scores_apart), P(scores_loc),
     "latent attention: of queries and keys whose parts are joined, or the sum of each part's"},
    {"vocab_multiple", read_size, NULL, P(vocab_multiple), NO_LOC,
     "V is padded to a multiple of it"},
    {"ignore_config", read_ignore, NULL, 0, NO_LOC, "config keys that are harmless"},
    END,
};
static const Sub model_sub = {model_keys, "preset"};

/* ---- data ---- */

static const Key order_keys[] = {
    {"labels", read_word_text, orders, P(order_labels), NO_LOC,
     "order of the labels over the sequence axis"},
    END,
};
static const Key cut_keys[] = {
    {"batch", read_axes, NULL, P(cut_batch), P(cut_batch_loc), "axes that cut the batch"},
    {"sequence", read_axes, NULL, P(cut_sequence), P(cut_sequence_loc),
     "axes that cut the sequence"},
    END,
};
static const Sub order_sub = {order_keys, NULL}, cut_sub = {cut_keys, NULL};

static const Key data_keys[] = {
    {"batch", read_size, NULL, P(batch), P(batch_loc), "B: sequences of all ranks together"},
    {"sequence", read_size, NULL, P(sequence), P(sequence_loc), "S: tokens of a sequence"},
    {"rows", read_size, NULL, P(rows), P(batch_loc), "rows of the input of an mlp"},
    {"dtype", read_word_int, dtypes, P(dtype), P(dtype_loc),
     "of values; bf16 is summed in f32 and rounded once per result"},
    {"execute", read_word_int, executes, P(execute), P(execute_loc),
     "in which numbers are computed, where that is another dtype: f32 or f64"},
    {"master", read_word_int, dtypes, P(master), NO_LOC,
     "the optimizer keeps, and steps, a copy of each trained parameter of this dtype"},
    {"moments", read_word_int, dtypes, P(moments), NO_LOC,
     "the dtype of the optimizer's state, if it is not `dtype`"},
    {"gradients", read_word_int, dtypes, P(gradients_in), NO_LOC,
     "the dtype in which gradients of parameters are held and sent, if it is not `dtype`"},
    {"seed", read_seed, NULL, P(seed), NO_LOC, "of random weights and inputs"},
    {"integers", read_bool, NULL, P(integers), NO_LOC,
     "random weights and inputs are whole numbers from 1 to 4, to be followed by hand"},
    {"inputs", read_path, NULL, P(inputs), P(inputs_loc), "a safetensors file with them"},
    {"microbatches", read_size, NULL, P(microbatches), NO_LOC,
     "the batch is run in so many parts; gradients are added up"},
    {"documents", read_documents, NULL, 0, P(documents_loc),
     "lengths of the documents that each row packs, [5, 7, 12], or a list for each row of the "
     "batch: attention and positions keep to a document"},
    {"input_gradient", read_bool, NULL, P(input_gradient), NO_LOC,
     "the input needs a gradient too"},
    {"order", read_sub, &order_sub, 0, NO_LOC, "another order of the labels"},
    {"cut", read_sub, &cut_sub, 0, NO_LOC,
     "axes that cut the data, where they are not called dp and cp"},
    {"block_input", read_spec, NULL, P(block_input), NO_LOC,
     "how the first block's input lies; default: as the last one leaves its output, without blocks "
     "as "
     "the first line says"},
    END,
};
static const Sub data_sub = {data_keys, NULL};

/* ---- mesh and groups ---- */

static bool name_fits(const char *s) {
    size_t n = strspn(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_");
    return n && !s[n] && !(s[0] >= '0' && s[0] <= '9');
}

static bool check_name(PlanReader *r, const char *what, const YamlPair *q) {
    if (name_fits(q->key)) return true;
    diag_error(r->d, "E0216", q->loc, "letters, digits and _, not starting with a digit",
               "'%s' cannot be the name of %s", q->key, what);
    return false;
}

static bool is_mapping(PlanReader *r, const Key *k, const Yaml *y) {
    if (y->kind == YAML_MAP) return true;
    if (!yaml_is_null(y)) read_wrong_type(r, k->name, y, "a mapping", NULL);
    return false;
}

/* What other tools take for "all ranks that are left". */
static bool as_many_as_left(const Yaml *y) {
    return y->kind == YAML_SCALAR && (!strcmp(y->s, "-1") || !strcmp(y->s, "auto"));
}
static void read_mesh(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml *y = pair->value;
    p->mesh_loc = pair->loc;
    if (y->kind != YAML_MAP) {
        read_wrong_type(r, k->name, y, "a mapping such as {dp: 2, tp: 4}",
                        y->kind == YAML_SCALAR && *y->s && !y->s[strspn(y->s, "0123456789")]
                            ? arena_printf(r->a, "an axis has a name: `mesh: {tp: %s}`", y->s)
                        : y->kind == YAML_LIST
                            ? "axes have names, outermost first: `mesh: {dp: 2, tp: 4}`"
                            : NULL);
        return;
    }
    if (y->n > MESH_MAX_AXES) {
        diag_error(r->d, "E0703", y->pair[MESH_MAX_AXES].loc, NULL,
                   "a mesh of %d axes; the limit is %d", y->n, MESH_MAX_AXES);
        return;
    }
    p->axes = ARENA_ARRAY(r->a, struct PlanAxis, y->n);
    int64_t ranks = 1;
    bool ok = true, fits = true;
    for (int i = 0; i < y->n; i++) {
        YamlPair *q = &y->pair[i];
        struct PlanAxis *axis = &p->axes[p->n_axes++];
        axis->name = q->key;
        axis->loc = q->loc;
        axis->size_loc = q->value->loc;
        axis->size = 1;
        ok = check_name(r, "an axis", q) && ok;
        if (q->value->kind == YAML_LIST) {
            read_wrong_type(r, q->key, q->value, "a whole number from 1",
                            "axes have names, outermost first: `mesh: {dp: 2, tp: 4}`");
            continue;
        }
        if (as_many_as_left(q->value)) {
            const bool number = *q->value->s == '-';
            diag_error(r->d, number ? "E0302" : "E0301", q->value->loc,
                       "say how many: there are as many ranks as the sizes multiply to",
                       number ? "'%s': %s is negative; sizes are 1 or more"
                              : "'%s' must be a whole number from 1, not '%s'",
                       q->key, q->value->s);
            continue;
        }
        /* its name is known all the same */
        if (!read_whole(r, q->key, q->value, 1, &axis->size)) continue;
        if (fits && __builtin_mul_overflow(ranks, axis->size, &ranks)) {
            diag_error(
                r->d, "E0306", q->value->loc, NULL,
                "the mesh has more than 2^63-1 ranks: its sizes multiply to too much at '%s'",
                q->key);
            fits = false;
        }
    }
    r->axes_known = ok;
}

static void read_groups(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml *y = pair->value;
    enum { MAX_GROUPS = 32 }; /* of Mesh.group */
    if (!is_mapping(r, k, y)) return;
    if (y->n > MAX_GROUPS) {
        diag_error(r->d, "E0703", y->pair[MAX_GROUPS].loc, NULL, "%d groups; the limit is %d", y->n,
                   MAX_GROUPS);
        r->axes_known = false;
        return;
    }
    p->groups = ARENA_ARRAY(r->a, PlanPair, y->n);
    for (int i = 0; i < y->n; i++) {
        YamlPair *q = &y->pair[i];
        bool ok = check_name(r, "a group", q);
        for (int j = 0; j < p->n_axes; j++)
            if (strcmp(p->axes[j].name, q->key) == 0) {
                diag_error(r->d, "E0216", q->loc,
                           "leave it out, for the axis has that name without it, or choose another",
                           "group '%s' has the name of an axis", q->key);
                ok = false;
            }
        if (!ok) { /* what it is made of is no mistake of its own */
            r->axes_known = false;
            continue;
        }
        const char *axes = read_axes_text(r, q->key, q->value);
        PlanPair g = {q->key, axes ? read_expand_axes(r, axes) : NULL, q->loc, q->value->loc};
        if (ok && axes) p->groups[p->n_groups++] = g;
        else r->axes_known = false; /* what uses this group is not a mistake of its own */
    }
}

/* ---- the rest ---- */

static const Key loss_keys[] = {
    {"kind", read_word_text, losses, P(loss_kind), NO_LOC,
     "cross_entropy of the head's logits, or a stand-in for blocks alone: dot (with given "
     "numbers), sum, var; default: cross_entropy with a head, else dot"},
    {"ignore_index", read_signed, NULL, P(ignore_index), NO_LOC,
     "label that counts nothing (default -100)"},
    {"label_smoothing", read_real, &fraction, P(label_smoothing), NO_LOC,
     "share of the target that is spread over all ids (default 0)"},
    {"normalise", read_word_text, normalises, P(normalise), P(normalise_loc),
     "global: the mean over all tokens of all ranks; local_mean: the mean of the ranks' own means, "
     "as some trainers do"},
    END,
};
static const Sub loss_sub = {loss_keys, "kind"};

static void read_betas(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Plan *p = base;
    Yaml *y = pair->value;
    double *beta[2] = {&p->optimizer.beta1, &p->optimizer.beta2};
    if (y->kind != YAML_LIST || y->n != 2) {
        read_wrong_type(r, k->name, y, "a list of two numbers, [0.9, 0.999]", NULL);
        return;
    }
    for (int i = 0; i < 2; i++) {
        Key one = {k->name, read_real, &fraction, 0, NO_LOC, NULL};
        YamlPair q = {.key = k->name, .loc = pair->loc, .value = y->item[i]};
        read_real(r, &one, beta[i], &q);
    }
}

static const Key optimizer_keys[] = {
    {"name", read_word_text, optimizers, P(optimizer.name), NO_LOC,
     "the rule that updates parameters"},
    {"lr", read_real, &not_negative, P(optimizer.lr), NO_LOC, "learning rate"},
    {"betas", read_betas, NULL, 0, NO_LOC, "adamw: [beta1, beta2], default [0.9, 0.999]"},
    {"eps", read_real, &not_negative, P(optimizer.eps), NO_LOC,
     "adamw: added to the root of the second moment"},
    {"weight_decay", read_real, &not_negative, P(optimizer.weight_decay), NO_LOC,
     "adamw: decoupled, default 0.01; sgd: added to the gradient, default 0"},
    {"momentum", read_real, &not_negative, P(optimizer.momentum), NO_LOC, "sgd"},
    {"clip", read_real, &positive, P(optimizer.clip), NO_LOC,
     "largest norm of all gradients together; longer ones are scaled down"},
    {"steps", read_size, NULL, P(optimizer.steps), P(optimizer.steps_loc), "steps that are run"},
    END,
};
static const Sub optimizer_sub = {optimizer_keys, "name"};

static const Key dp_keys[] = {
    {"mode", read_word_text, plan_mode_words, P(data_parallel.mode), P(data_parallel.mode_loc),
     "ddp: gradients are summed; zero1: each rank updates a part of the model and has its state; "
     "zero2: gradients are cut like it; fsdp: parameters are cut at rest; hsdp: cut within "
     "`shard`, copied over `replicate`"},
    {"form", read_word_text, plan_form_words, P(data_parallel.form), P(data_parallel.form_loc),
     "zero1, zero2: pytorch hands out whole tensors, one broadcast each; deepspeed and megatron "
     "cut a flat buffer of all of a unit: reduce-scatter and all-gather"},
    {"axis", read_axes, NULL, P(data_parallel.axis), P(data_parallel.axis_loc),
     "axes that it works over; default: those that cut the data"},
    {"unit", read_word_text, plan_unit_words, P(data_parallel.unit), P(data_parallel.unit_loc),
     "what is gathered or reduced at once: each parameter, all of a block, or all of the model; "
     "default: parameter, of zero1 model, of zero2 block"},
    {"reshard", read_word_text, plan_reshard_words, P(data_parallel.reshard),
     P(data_parallel.reshard_loc),
     "gathered parameters are dropped after the forward pass and gathered again: true, default "
     "but where a schedule file says UNSHARD: all; blocks: those of the blocks, as PyTorch does by "
     "default; false: none, in a pipeline gathered once a step, as such a file says; step: none, "
     "gathered once a step for all micro-batches"},
    {"reshard_over", read_axes, NULL, P(data_parallel.reshard_over),
     P(data_parallel.reshard_over_loc),
     "of the axes that cut parameters at rest those over which they stay cut from the forward to "
     "the backward pass, and are gathered from there: reshard_after_forward as a number"},
    {"grad_sync", read_word_text, plan_grad_sync_words, P(data_parallel.grad_sync),
     P(data_parallel.grad_sync_loc),
     "with micro-batches: gradients are added up where they are made and summed over ranks once a "
     "step (default), or summed in each micro-batch; scatter: each micro-batch reduce-scatters, "
     "the "
     "sums over copies are made once"},
    {"reduce", read_word_text, reduces, P(data_parallel.reduce), NO_LOC, "sum (avg: later)"},
    {"grad_order", read_word_text, grad_orders, P(data_parallel.grad_order), NO_LOC,
     "which sum of a gradient is made first, that of the shards or that of tp"},
    {"replicate", read_axes, NULL, P(data_parallel.replicate), P(data_parallel.replicate_loc),
     "hsdp: axes of the copies"},
    {"shard", read_axes, NULL, P(data_parallel.shard), P(data_parallel.shard_loc),
     "hsdp: axes of the shards"},
    {"dims", read_dims, NULL, 0, P(data_parallel.dims_loc),
     "fsdp, hsdp: PATTERN: the stored dim of these parameters that is cut at rest (default: 0), or "
     "whole: none, their gradients are summed all the same; '*': all that no other pattern names. "
     "shard_placement_fn of fully_shard"},
    END,
};
static const Key cp_keys[] = {
    {"mode", read_word_text, cp_modes, P(context_parallel.mode), P(context_parallel.mode_loc),
     "all_gather: attention gathers keys and values; ulysses: all-to-alls cut heads in place of "
     "the "
     "sequence; ring: keys and values go round, a block at a time; usp: both"},
    {"order", read_word_text, orders, P(context_parallel.order), P(context_parallel.order_loc),
     "which chunks of the sequence a rank holds"},
    {"axis", read_axes, NULL, P(context_parallel.axis), P(context_parallel.axis_loc),
     "axes that cut the sequence: an axis, a group or a product"},
    {"ulysses", read_axes, NULL, P(context_parallel.ulysses), P(context_parallel.ulysses_loc),
     "usp: axes that cut heads inside attention"},
    {"ring", read_axes, NULL, P(context_parallel.ring), P(context_parallel.ring_loc),
     "usp: axis around which keys and values travel"},
    {"backward", read_word_text, cp_backwards, P(context_parallel.backward),
     P(context_parallel.backward_loc),
     "ring: parts read the final result, as FlashAttention does, or each its own"},
    {"keep_kv", read_bool, NULL, P(context_parallel.keep_kv), P(context_parallel.keep_kv_loc),
     "ring: what came by is kept for the backward pass, or comes by again"},
    {"rfa", read_bool, NULL, P(context_parallel.rfa), P(context_parallel.rfa_loc),
     "ring: the hops of the usual implementation: keys and values come by again in the backward "
     "pass, gradients go on round with them and one hop further home"},
    {"latent", read_bool, NULL, P(context_parallel.latent), P(context_parallel.latent_loc),
     "latent attention: ranks send the latent and the rotated key, of which each makes keys and "
     "values itself; default: keys and values are sent"},
    END,
};
/* A workload by its name, or a file. */
static void read_routing(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    bool text = pair->value->kind == YAML_SCALAR;
    if (text && text_before(pair->value->s, ".safetensors")) read_path(r, k, base, pair);
    else read_word_text(r, k, base, pair);
}
static const Key moe_keys[] = {
    {"routing", read_routing, routings, P(moe.routing), P(moe.routing_loc),
     "which experts tokens choose: as the router computes it; so too, and the unsharded run takes "
     "every choice over, not only near ties (replayed); a made-up workload (balanced, hot_expert, "
     "hot_rank, spread, ragged, empty_rank, burst), or by the logits `layers.N.moe.router_logits` "
     "of FILE.safetensors; their weights stay the router's"},
    {"capacity_factor", read_real, &positive, P(moe.capacity_factor), P(moe.capacity_loc),
     "an expert takes ceil(tokens k factor / E) rows, the others are dropped; left out: all"},
    {"capacity", read_word_text, capacities, P(moe.capacity), P(moe.rule_loc),
     "of all tokens, or of the tokens that a rank holds (another result)"},
    {"priority", read_word_text, priorities, P(moe.priority), P(moe.priority_loc),
     "who is kept: tokens in their order, all first choices (a token's largest weight) before all "
     "second ones, or the largest weights"},
    {"dispatch", read_word_text, dispatches, P(moe.dispatch), P(moe.dispatch_loc),
     "all_to_all: rows are sent to the ranks of their experts; all_gather: each rank of experts "
     "gets the tokens of all; masked: all have the same tokens, each looks at its experts' rows"},
    {"axis", read_part_axes, "ep", P(moe.axis), P(moe.axis_loc),
     "axes whose ranks have different experts: the group `ep`; default: what is called so"},
    {"etp", read_part_axes, "etp", P(moe.etp), P(moe.etp_loc),
     "axes that cut each expert inside: the group `etp`; default: what is called so"},
    {"aux_loss", read_word_text, aux_losses, P(moe.aux_loss), P(moe.aux_loc),
     "a term of the loss that wants experts equally busy: exact is that of all tokens "
     "(of a micro-batch: the loss has the mean of theirs); per_shard the mean of what each rank's "
     "tokens give by themselves, which is another number and fails"},
    {"aux_coef", read_real, &factor, P(moe.aux_coef), P(moe.aux_coef_loc),
     "factor of that term: coef E / (k T^2) sum_e count_e sum_t p_te, of each layer"},
    {"z_coef", read_real, &factor, P(moe.z_coef), P(moe.z_loc),
     "factor of the mean over tokens of logsumexp(logits)^2, of each layer; 0: no such term"},
    {"fsdp_dim", read_word_text, fsdp_dims, P(moe.fsdp_dim), P(moe.fsdp_dim_loc),
     "dim of experts' weights that fsdp cuts; auto: 1 where more ranks than experts would cut dim "
     "0"},
    END,
};
static const Sub dp_sub = {dp_keys, "mode"}, cp_sub = {cp_keys, "mode"}, moe_sub = {moe_keys, NULL};

static void read_expect(PlanReader *r, const Key *k, void *base, YamlPair *pair) {
    Expect *e = &((Plan *)base)->expect;
    e->set = !yaml_is_null(pair->value);
    e->loc = pair->loc;
    read_table(r, plan_expect_keys, k->name, e, pair->value);
}

/* In the order in which they are read: what names axes comes after those who make them. */
const Key plan_keys[] = {
    {"name", read_text, NULL, P(name), NO_LOC, "default: the file's name"},
    {"model", read_sub, &model_sub, 0, P(model_loc), "a preset's name, or a mapping"},
    {"mesh", read_mesh, NULL, 0, NO_LOC, "axes and sizes, outermost first"},
    {"groups", read_groups, NULL, 0, NO_LOC,
     "names for an axis or an ordered product of axes: {sp: tp}"},
    {"moe", read_sub, &moe_sub, 0, P(moe.loc),
     "which rows experts get, and on which ranks experts are"},
    {"data", read_sub, &data_sub, 0, NO_LOC, "sizes, dtype, seed, inputs"},
    {"names", read_word_int, read_names_words, P(names), P(names_loc),
     "whose module names the patterns use"},
    {"styles", read_styles, NULL, 0, NO_LOC, "styles of the plan's own: NAME: {fields}"},
    {"recipe", read_recipe, NULL, 0, P(recipe_loc),
     "a whole table of a known system; see `list recipes`"},
    {"plan", read_lines, NULL, 0, NO_LOC,
     "PATTERN: STYLE or {style: STYLE, fields}; a pattern matches module paths component by "
     "component"},
    {"loss", read_sub, &loss_sub, 0, P(loss_loc), "what is minimised"},
    {"pass", read_word_int, passes, P(pass), P(pass_loc), "how far it goes"},
    {"optimizer", read_sub, &optimizer_sub, 0, P(optimizer.loc), "for `pass: train`"},
    {"data_parallel", read_sub, &dp_sub, 0, P(data_parallel.loc),
     "who sums the gradients of ranks with other tokens"},
    {"context_parallel", read_sub, &cp_sub, 0, P(context_parallel.loc),
     "how attention sees a cut sequence"},
    {"pipeline", read_sub, &plan_pipeline_sub, 0, P(pipeline.loc),
     "stages of layers on the ranks of an axis, and the order in which micro-batches pass them"},
    {"recompute", read_word_int, recomputes, P(recompute), P(recompute_loc),
     "blocks are run again in backward instead of keeping their values"},
    {"save_gathered", read_bool, NULL, P(save_gathered), P(save_gathered_loc),
     "a gathered input is kept for the backward pass"},
    {"boundary", read_word_bool, boundaries, P(per_module), NO_LOC,
     "shared: modules that need the same layout share one collective; per_module: each has its "
     "own, as PyTorch's hooks"},
    {"kv_replicate", read_word_text, kv_modes, P(kv_replicate), NO_LOC,
     "auto: more ranks than KV heads hold copies; never: that is an error"},
    {"hardware", read_text, NULL, P(hardware), P(hardware_loc), "name of a profile"},
    {"trust", read_word_int, trusts, P(trust), NO_LOC,
     "rules: labels are checked, missing sums are made and told; declared: the plan is believed "
     "and the numbers decide; compiler: as rules, and what no line asks for is made by a compiler "
     "(XLA), so nothing is missing"},
    {"gradients", read_gradients, NULL, 0, NO_LOC,
     "PATTERN: sum, mean or none: what is done with a parameter's gradient over all axes on which "
     "it is whole"},
    {"faults", read_faults, NULL, 0, NO_LOC, "mistakes planted in steps: [{at: NAME, do: drop}]"},
    {"expect", read_expect, NULL, 0, NO_LOC, "what the run is held against"},
    END,
};

/* ---- a whole plan ---- */

static const char *base_name(Arena *a, const char *file) {
    if (strcmp(file, "-") == 0 || strcmp(file, "<stdin>") == 0) return "plan";
    const char *slash = strrchr(file, '/'), *name = slash ? slash + 1 : file,
               *dot = strrchr(name, '.');
    return dot && dot != name ? arena_strndup(a, name, (size_t)(dot - name))
                              : arena_strdup(a, name);
}

Plan *plan_new(Arena *a, const char *file) {
    Plan *p = ARENA_NEW(a, Plan);
    p->arena = a;
    p->file = arena_strdup(a, file);
    const char *slash = strrchr(file, '/');
    p->dir = !slash ? "." : slash == file ? "/" : arena_strndup(a, file, (size_t)(slash - file));
    p->mlp_bias = p->rope_interleaved = p->scores_apart = -1;
    p->layers_last = 1;
    p->shrink = p->vocab_multiple = p->microbatches = 1;
    p->batch = p->sequence = p->rows = -1;
    p->dtype = DT_F32;
    p->execute = p->moments = p->master = p->gradients_in = -1;
    p->ignore_index = -100;
    p->normalise = "global";
    p->optimizer.lr = 1e-3;
    p->optimizer.beta1 = 0.9;
    p->optimizer.beta2 = 0.999;
    p->optimizer.eps = 1e-8;
    p->optimizer.weight_decay = NAN; /* the optimizer's own */
    p->optimizer.steps = 1;
    p->attention.mask = "causal";
    p->data_parallel.reduce = "sum";
    p->data_parallel.grad_order = "shard_first";
    p->context_parallel.mode = "all_gather";
    p->context_parallel.backward = "final";
    p->context_parallel.keep_kv = true;
    p->moe.routing = "computed";
    p->moe.capacity = "global";
    p->moe.priority = "order";
    p->moe.fsdp_dim = "0";
    p->moe.aux_loss = "none";
    p->context_parallel.order = "contiguous";
    p->pipeline.p2p_buffers = 2;
    p->save_gathered = true;
    p->kv_replicate = "auto";
    p->expect.equivalent = -1;
    p->expect.memory_per_rank = -1;
    return p;
}

static uint64_t fnv(uint64_t h, const char *s, size_t n) {
    for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 1099511628211u;
    return h;
}

/* Keys that need or exclude one another. */
/* Is there an unknown key for which this one was proposed? Then the plan has it, under another
 * name. */
static bool misspelt(const PlanReader *r, const char *key) {
    const char *blank = arena_printf(r->a, "put a blank behind the colon: %s:", key);
    for (int i = 0; i < r->d->n; i++) {
        const char *hint = strcmp(r->d->item[i].code, "E0201") ? NULL : r->d->item[i].hint;
        if (hint && (!strcmp(hint, key) || !strncmp(hint, blank, strlen(blank)))) return true;
    }
    return false;
}
static void check_model(PlanReader *r, bool has_model) {
    const Plan *p = r->p;
    Loc at = has_model ? p->model_loc : (Loc){p->file, 1, 1};
    bool any = p->preset || p->hf_config || p->kind || p->inline_config;
    if (!has_model && !misspelt(r, "model"))
        diag_error(r->d, "E0208", at,
                   "say which: `model: llama3-8b` (`list models` has more), `model: {hf_config: "
                   "config.json}`, or `model: {kind: mlp, sizes: [8, 32, 8]}`",
                   "the plan has no `model`");
    else if (!any && !diags_errors(r->d))
        diag_error(r->d, "E0208", at, "model: {preset: llama3-8b}",
                   "`model` needs one of preset, hf_config, config, kind");
    if (p->preset && p->hf_config)
        diag_error(r->d, "E0215", p->hf_config_loc, "keep one of them",
                   "`preset` and `hf_config` exclude each other");
    if (!p->kind) return;
    if (p->preset || p->hf_config || p->inline_config)
        diag_error(r->d, "E0215", at, "keep one of them",
                   "`kind: %s` and a preset or config exclude each other", p->kind);
    bool attention = !strcmp(p->kind, "attention");
    if (attention && (!p->attention.heads || !p->attention.head_dim) && !diags_errors(r->d))
        diag_error(r->d, "E0208", at, "model: {kind: attention, heads: 8, head_dim: 64}",
                   "`kind: attention` needs `heads` and `head_dim`");
    if (!attention && !p->n_sizes && !diags_errors(r->d))
        diag_error(r->d, "E0208", at, "sizes: [10, 32, 5]", "`kind: mlp` needs `sizes`");
    if (p->n_sizes && p->n_layer_names && p->n_layer_names != p->n_sizes - 1)
        diag_error(r->d, "E0307", at, NULL, "%d layer name%s for %d layer%s", p->n_layer_names,
                   p->n_layer_names == 1 ? "" : "s", p->n_sizes - 1, p->n_sizes == 2 ? "" : "s");
}

static bool is_axis_or_group(const Plan *p, const char *name) {
    for (int i = 0; i < p->n_axes; i++)
        if (strcmp(p->axes[i].name, name) == 0) return true;
    for (int i = 0; i < p->n_groups; i++)
        if (strcmp(p->groups[i].key, name) == 0) return true;
    return false;
}

/* Does the line name a style that is unknown, or one of the plan's own that starts from none? */
static bool of_none(const Plan *p, const PlanLine *l) {
    if (!l->style.name) return false;
    for (int i = 0; i < p->n_styles; i++)
        if (!strcmp(p->styles[i].name, l->style.name)) return p->styles[i].bad;
    return !style_is_known(p, l->style.name);
}
/* Unknown styles, all at once; also those of the plan's own that no line uses. */
static void check_styles(PlanReader *r) {
    enum { MANY = 50 };
    Plan *p = r->p;
    int bad = 0;
    for (int i = 0; i < p->n_styles && bad < MANY; i++) {
        PlanLine use = {.style = {.name = p->styles[i].name},
                        .loc = p->styles[i].loc,
                        .style_loc = p->styles[i].loc};
        p->styles[i].bad = !style_resolve(p, r->d, &use);
        bad += p->styles[i].bad;
    }
    for (int i = 0; i < p->n_lines; i++) {
        const char *name = p->lines[i].style.name;
        if (!name || style_is_known(p, name)) continue;
        if (bad++ < MANY) style_resolve(p, r->d, &p->lines[i]);
        else r->d->hidden++;
    }
    for (int i = 0; bad && i < p->n_lines; i++) p->lines[i].bad = of_none(p, &p->lines[i]);
}

/* The axes of usp: the sequence is cut by both ways, the ring's outermost. */
static void join_usp(PlanReader *r, const char *ring, const char *ulysses) {
    Plan *p = r->p;
    const char *both = arena_printf(r->a, "%s*%s", ring, ulysses);
    const char *axis = p->context_parallel.axis;
    int errors = diags_errors(r->d);
    read_check_disjoint(r, ring, ulysses, p->context_parallel.ulysses_loc,
                        "the heads, and the ring goes round it");
    if (axis && strcmp(read_expand_axes(r, axis), read_expand_axes(r, both)) != 0)
        diag_error(r->d, "E0215", p->context_parallel.axis_loc, "leave `axis` out",
                   "mode usp cuts the sequence by %s, not by %s", both, axis);
    /* what is wrong with the product has been told at its factors */
    p->context_parallel.axis = diags_errors(r->d) > errors ? ring : both;
}
/* usp has an axis for each of its two ways. */
static void check_context(PlanReader *r) {
    Plan *p = r->p;
    bool usp = !strcmp(p->context_parallel.mode, "usp");
    const char *ulysses = p->context_parallel.ulysses, *ring = p->context_parallel.ring;
    if (usp && ulysses && ring) join_usp(r, ring, ulysses);
    else if (usp && r->axes_known)
        diag_error(r->d, "E0208", p->context_parallel.mode_loc,
                   "{mode: usp, ring: cp, ulysses: up}", "usp needs `ring` and `ulysses`");
    else if (ulysses || ring)
        diag_error(r->d, "E0215",
                   ulysses ? p->context_parallel.ulysses_loc : p->context_parallel.ring_loc,
                   "mode: usp, or `axis` alone", "`%s` is a key of usp, not of mode %s",
                   ulysses ? "ulysses" : "ring", p->context_parallel.mode);
    const struct {
        const char *key;
        Loc loc;
    } own[] = {{"backward", p->context_parallel.backward_loc},
               {"keep_kv", p->context_parallel.keep_kv_loc},
               {"rfa", p->context_parallel.rfa_loc}};
    bool rings = usp || !strcmp(p->context_parallel.mode, "ring");
    for (size_t i = 0; i < sizeof own / sizeof *own && !rings; i++)
        if (own[i].loc.file)
            diag_error(r->d, "E0215", own[i].loc, "mode: ring, or leave it out",
                       "`%s` is a key of a ring, and mode %s has none", own[i].key,
                       p->context_parallel.mode);
    if (p->context_parallel.rfa && p->context_parallel.keep_kv &&
        p->context_parallel.keep_kv_loc.file)
        diag_error(r->d, "E0307", p->context_parallel.keep_kv_loc, "leave one of them out",
                   "`rfa` lets keys and values come by again, `keep_kv` keeps what came by");
    if (!p->context_parallel.axis && is_axis_or_group(p, "cp")) p->context_parallel.axis = "cp";
    if (usp) return;
    /* one way alone goes over the axis: later passes ask for ring and heads, not for the mode */
    p->context_parallel.ring = rings ? p->context_parallel.axis : NULL;
    p->context_parallel.ulysses =
        !strcmp(p->context_parallel.mode, "ulysses") ? p->context_parallel.axis : NULL;
}

static void check_mesh(PlanReader *r, const Yaml *root) {
    if (r->p->mesh_loc.file || misspelt(r, "mesh") || plan_foreign_mesh(r, root)) return;
    diag_error(r->d, "E0208", ((Loc){r->p->file, 1, 1}), "mesh: {tp: 2}", "the plan has no `mesh`");
}
static void check_plan(PlanReader *r) {
    Plan *p = r->p;
    read_check_disjoint(r, p->cut_batch, p->cut_sequence, p->cut_sequence_loc,
                        "both batch and sequence");
    if (p->data_parallel.replicate && p->data_parallel.shard)
        read_check_disjoint(r, p->data_parallel.replicate, p->data_parallel.shard,
                            p->data_parallel.loc, "parameters and holds their copies");
    plan_check_sharding(r);
    check_context(r);
    if (p->context_parallel.loc.file && !p->context_parallel.axis &&
        !p->context_parallel.axis_loc.file && r->axes_known)
        diag_error(r->d, "E0208", p->context_parallel.loc,
                   "mesh: {cp: 2}, or `axis` with the axis that cuts the sequence",
                   "`context_parallel` needs `axis`: the mesh has none called cp");
    plan_check_pipeline(r);
    plan_note_sync(r);
    plan_note_experts(r);
    if (p->optimizer.loc.file && !p->optimizer.name && !diags_errors(r->d))
        diag_error(r->d, "E0208", p->optimizer.loc, "optimizer: {name: adamw}",
                   "`optimizer` needs `name`");
    plan_place_experts(r);
    int before = diags_errors(r->d);
    check_styles(r);
    p->line_errors += diags_errors(r->d) - before;
}

Dtype plan_executes_in(const Plan *p) { return p->execute < 0 ? p->dtype : (Dtype)p->execute; }

PlanText plan_text(const char *file, const char *text) {
    return (PlanText){.file = file, .text = text, .n = strlen(text)};
}

/* Of the text and what is set in it. */
static uint64_t hash_of(const PlanText *g) {
    uint64_t h = fnv(14695981039346656037u, g->text, g->n);
    for (int i = 0; i < g->n_sets; i++) {
        h = fnv(h, g->sets[i].key, strlen(g->sets[i].key));
        if (!g->sets[i].value) continue;
        h = fnv(h, "=", 1);
        h = fnv(h, g->sets[i].value, strlen(g->sets[i].value) + 1);
    }
    return h;
}

/* A file of plans/hardware that was given for a plan: its rates say so. */
static bool is_machine(Yaml *root) {
    return yaml_get(root, "flops") && !yaml_get(root, "model") && !yaml_get(root, "mesh");
}
/* A file of another tool: no key of it is one of a plan's, but for what any file may have, nor
 * nearly one. */
static bool is_foreign(Yaml *root) {
    const char *names[64];
    int n = 0;
    for (const Key *k = plan_keys; k->name && n < 63; k++) names[n++] = k->name;
    names[n] = NULL;
    for (int i = 0; i < root->n; i++) {
        const char *key = root->pair[i].key;
        const bool any = !strcmp(key, "name");
        for (int k = 0; k < n && !any; k++)
            if (!strcmp(key, names[k])) return false;
        if (!any && (diag_nearest(key, names) || strpbrk(key, ".*:"))) return false;
    }
    return root->n > 1;
}
/* A word with quotes that a text program made is unknown because of them. */
static void name_quotes(Diag *g) {
    static const char *const quotes[] = {"\u201c", "\u201d", "\u2018", "\u2019"};
    for (size_t i = 0; i < sizeof quotes / sizeof *quotes; i++)
        if (g->severity == DIAG_ERROR && strstr(g->message, quotes[i]))
            g->hint = "these quotes are typographic, a part of the word; YAML's are \" and '";
}

Plan *plan_parse(Arena *arena, Diags *d, PlanText given) {
    int before = d->n;
    assert(given.file && (given.text || !given.n) && (given.sets || !given.n_sets));
    Plan *p = plan_new(arena, given.file);
    p->hash = hash_of(&given);
    PlanReader r = {.a = arena, .d = d, .p = p, .keys = plan_keys};
    Yaml *root = yaml_parse(arena, d, given.file, given.text, given.n);
    plan_apply_sets(arena, d, root, given.sets, given.n_sets);
    if (root && root->kind != YAML_MAP) {
        read_wrong_type(&r, "the plan", root, "a mapping of keys to values", "model: llama3-8b");
    } else if (root && is_machine(root)) {
        diag_error(
            d, "E0201", root->pair[0].loc,
            "plans name it: `hardware: h100-sxm` or a path; `--hardware` does so for one run",
            "this is a hardware profile, not a plan: it has no `model` and no `mesh`");
    } else if (root && is_foreign(root)) {
        const char *mesh = plan_foreign_mesh(&r, root);
        diag_error(d, "E0201", root->pair[0].loc,
                   arena_printf(arena,
                                "a plan has at least `model` and `mesh`%s; what a framework runs "
                                "is read by `shardproof import` (hf, torch, torchtitan, megatron, "
                                "jax)",
                                mesh ? arena_printf(arena, ", here `%s`", mesh) : ""),
                   "this is no plan: none of its %d keys is one of a plan's", root->n);
    } else if (root) {
        read_table(&r, plan_keys, NULL, p, root);
        check_model(&r, p->model_loc.file != NULL);
        check_mesh(&r, root);
        plan_check_unread(&r, root);
        int asked = d->n;
        check_plan(&r);
        read_drop_consequences(d, root, before, asked);
    }
    for (int i = before; i < d->n; i++) name_quotes(&d->item[i]);
    if (!p->name) p->name = base_name(arena, given.file);
    return p;
}
