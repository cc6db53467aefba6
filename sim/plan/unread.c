/* Keys of `model` and `data` that another kind of model reads, and an optimizer that nothing steps:
 * whoever writes them would believe in them. Refuses to ask a model: what a preset has is known
 * where it is built. */
#include "plan/read.h"
#include <string.h>

/* Who reads a key. */
enum { OF_TOKENS = 1, OF_MLP = 2, OF_ATTENTION = 4 };

static const struct {
    const char *section, *key;
    unsigned read_by;
    bool shapes; /* it would be another model: an error, not a note */
} rows[] = {
    {"model", "sizes", OF_MLP, true},
    {"model", "bias", OF_MLP, true},
    {"model", "activation", OF_MLP, true},
    {"model", "scale", OF_MLP, true},
    {"model", "layer_names", OF_MLP, true},
    {"model", "heads", OF_ATTENTION, true},
    {"model", "kv_heads", OF_ATTENTION, true},
    {"model", "head_dim", OF_ATTENTION, true},
    {"model", "mask", OF_ATTENTION, true},
    {"model", "layers", OF_TOKENS, false},
    {"model", "shrink", OF_TOKENS, false},
    {"model", "parts", OF_TOKENS, false},
    {"model", "vocab_multiple", OF_TOKENS, false},
    {"data", "rows", OF_MLP, false},
    {"data", "batch", OF_MLP | OF_TOKENS | OF_ATTENTION, false},
    {"data", "sequence", OF_TOKENS | OF_ATTENTION, false},
};
static const struct {
    unsigned bit;
    const char *kind, *is;
} kinds[] = {{OF_MLP, "mlp", "`kind: mlp`"}, {OF_ATTENTION, "attention", "`kind: attention`"}};

/* The pair of `section`'s mapping (NULL: the plan's) with that key; NULL: it is not there. */
static const YamlPair *pair_of(Yaml *root, const char *section, const char *key) {
    Yaml *map = section ? yaml_get(root, section) : root;
    for (int i = 0; map && map->kind == YAML_MAP && i < map->n; i++)
        if (!strcmp(map->pair[i].key, key)) return &map->pair[i];
    return NULL;
}
static const char *readers(unsigned by) {
    for (size_t i = 0; i < sizeof kinds / sizeof *kinds && !(by & OF_TOKENS); i++)
        if (by & kinds[i].bit) return kinds[i].is;
    return "a preset or a config";
}
/* A plan for training may be looked at by another pass, with --set: that is no slip. */
static void check_optimizer(PlanReader *r, Yaml *root) {
    const YamlPair *at = pair_of(root, NULL, "optimizer");
    bool named = r->p->optimizer.name; /* without, that is the finding */
    if (!at || !named || r->p->pass == PASS_TRAIN || plan_from_set(r->p->pass_loc)) return;
    diag_note(
        r->d, "N0018", at->loc, "write `pass: train`, or leave it out",
        "`optimizer` changes nothing: only `pass: train` makes a step, and this is `pass: %s`",
        pass_words[r->p->pass]);
}
void plan_check_unread(PlanReader *r, Yaml *root) {
    unsigned kind = OF_TOKENS;
    const char *is = "a preset or a config";
    for (size_t i = 0; r->p->kind && i < sizeof kinds / sizeof *kinds; i++)
        if (!strcmp(r->p->kind, kinds[i].kind)) kind = kinds[i].bit, is = kinds[i].is;
    if (diags_errors(r->d)) return; /* what the model is may be one of them */
    check_optimizer(r, root);
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        const YamlPair *at = pair_of(root, rows[i].section, rows[i].key);
        if (!at || rows[i].read_by & kind) continue;
        if (rows[i].shapes)
            diag_error(r->d, "E0215", at->loc, "leave it out; keys of a config stand in `config`",
                       "`%s` is a key of %s, and the model is %s", rows[i].key,
                       readers(rows[i].read_by), is);
        else
            diag_note(r->d, "N0018", at->loc, "leave it out",
                      "`%s` changes nothing: it is a key of %s, and the model is %s", rows[i].key,
                      readers(rows[i].read_by), is);
    }
}
