/* What is wrong in a config, and where in its text the key stands. */
#include "model/config.h"
#include <string.h>

Loc config_key_loc(const Config *c, const char *key) {
    for (int i = 0; (!c->file || c->all_read) && i < c->p->n_inline_keys; i++)
        if (!strcmp(c->p->inline_key[i].key, key)) return c->p->inline_key[i].loc;
    if (!c->file) return c->p->model_loc;
    Loc loc = {c->file, 0, 0};
    size_t n = strlen(key);
    int line = 1;
    const char *start = c->text;
    for (const char *s = c->text; *s; s++) {
        if (*s == '\n') {
            line++;
            start = s + 1;
        } else if (*s == '"' && !strncmp(s + 1, key, n) && s[n + 1] == '"' &&
                   s[n + 2 + strspn(s + n + 2, " \t\r\n")] == ':') {
            return (Loc){c->file, line, (int)(s - start) + 1};
        }
    }
    return loc;
}

/* Keys that files of the hub have and that no line of transformers 5.23 reads for their model_type:
 * they say what its code does anyway, or were another program's. */
static const struct {
    const char *model_type, *key;
} unread[] = {
    {"apertus", "qk_norm"},
    {"cohere2", "layer_switch"},
    {"cohere2", "order_of_interleaved_layers"},
    {"cohere2", "position_embedding_type"},
    {"cohere2", "rotary_pct"},
    {"cohere2", "use_embedding_sharing"},
    {"cohere2", "use_gated_activation"},
    {"cohere2", "use_parallel_block"},
    {"cohere2", "use_parallel_embedding"},
    {"phi3", "full_attn_mod"},
    {"phi3", "interpolate_factor"},
};
static bool nobody_reads(const Config *c, const char *key) {
    const char *type = c->raw->model_type;
    for (size_t i = 0; c->file && type && i < sizeof unread / sizeof *unread; i++)
        if (!strcmp(unread[i].model_type, type) && !strcmp(unread[i].key, key)) return true;
    return false;
}

void config_changes_maths(Config *c, const char *key, const char *what) {
    if (nobody_reads(c, key)) return;
    diag_error(
        c->d, "E0207", config_key_loc(c, key),
        arena_printf(c->a,
                     "if it does not matter here, take it out of the config, or say so in the "
                     "plan: model: {ignore_config: [%s]}, which check and others take as --set "
                     "'model.ignore_config=[%s]'",
                     key, key),
        "config key '%s'%s is not understood by this version, and may change the values", key,
        what);
}

bool config_all_given(Config *c, const Required *x, int n) {
    Loc loc = c->file ? (Loc){c->file, 0, 0} : c->p->model_loc;
    bool all = true;
    for (int i = 0; i < n; i++) {
        if (x[i].value != UNSET) continue;
        diag_error(c->d, "E0208", loc, NULL, "the config has no '%s'", x[i].key);
        all = false;
    }
    return all;
}
