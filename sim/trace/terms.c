/* The words of enums, and names of values. See terms.h. */
#include "trace/terms.h"
#include <assert.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

const char *const phase_words[N_PHASES] = {
    [PHASE_FORWARD] = "forward",       [PHASE_LOSS] = "loss",
    [PHASE_BACKWARD] = "backward",     [PHASE_GRADIENTS] = "gradients",
    [PHASE_PARAMETERS] = "parameters", [PHASE_OPTIMIZER] = "optimizer"};
#define PASS_WORD(word, name) [PASS_##name] = #word,
const char *const pass_words[N_PASSES] = {PASSES(PASS_WORD)};
const char *const value_role_words[N_VALUE_ROLES] = {
    [VALUE_INPUT] = "input",       [VALUE_ACTIVATION] = "activation",
    [VALUE_MOVED] = "moved",       [VALUE_COTANGENT] = "cotangent",
    [VALUE_GRADIENT] = "gradient", [VALUE_UPDATED] = "updated"};

const char *const place_cut_words[N_PLACE_CUTS] = {
    [PLACE_SHARD] = "shard", [PLACE_ZIGZAG] = "zigzag", [PLACE_STRIPED] = "striped"};
PlaceCut place_cut(const char *place, int *dim) {
    const char *open = place ? strchr(place, '(') : NULL;
    for (int k = PLACE_SHARD; open && k < N_PLACE_CUTS; k++) {
        size_t n = strlen(place_cut_words[k]);
        if ((size_t)(open - place) != n || strncmp(place, place_cut_words[k], n) != 0) continue;
        if (dim) *dim = atoi(open + 1);
        return (PlaceCut)k;
    }
    return PLACE_WHOLE;
}

const char *const place_pending_words[N_PENDINGS] = {
    [PENDING_SUM] = "partial", [PENDING_MAX] = "partial(max)"};
PlacePending place_pending(const char *place) {
    const size_t n = place ? strcspn(place, " ") : 0;
    for (int k = PENDING_SUM; place && k < N_PENDINGS; k++)
        if (strlen(place_pending_words[k]) == n && !strncmp(place, place_pending_words[k], n))
            return (PlacePending)k;
    return PENDING_NONE;
}

int term_of(const char *const *words, int n, const char *word) {
    for (int i = 0; i < n; i++)
        if (word && words[i] && !strcmp(words[i], word)) return i;
    return -1;
}
const char *phase_text(Phase p) { return phase_words[p] ? phase_words[p] : ""; }
Phase phase_or_forward(Phase p) { return p == PHASE_NONE ? PHASE_FORWARD : p; }

static const char *const subject_starts[] = {
    [OF_ITSELF] = "", [OF_GRADIENT] = "grad.", [OF_PARAM_GRADIENT] = "grad.param."};
enum { N_STARTS = sizeof subject_starts / sizeof *subject_starts };

const char *subject_name(Arena *arena, Subject s) {
    assert(s.of || s.role == OF_ITSELF);
    return s.role == OF_ITSELF ? s.of : arena_printf(arena, "%s%s", subject_starts[s.role], s.of);
}
Subject subject_of(const char *name) {
    for (int k = N_STARTS - 1; name && k >= 0; k--) { /* the longest first */
        size_t n = strlen(subject_starts[k]);
        if (!strncmp(name, subject_starts[k], n)) return (Subject){(SubjectRole)k, name + n};
    }
    return (Subject){OF_ITSELF, NULL};
}
bool subject_is_gradient(Subject s) { return s.role != OF_ITSELF; }
bool subject_is_gradient_of(Subject s, const char *value) {
    return s.role == OF_GRADIENT && !strcmp(s.of, value);
}

const PartTerm *part_term(const char *part) {
    static const PartTerm
        unknown = {0},
        row[] = {{.name = "attention", .attends = true},
                 {.name = "mlp", .word = "MLP", .whole = "the MLP", .feeds = true},
                 {.name = "moe", .word = "MoE", .whole = "the MoE layer", .feeds = true},
                 {.name = "block",
                  .word = "attention and MLP",
                  .whole = "attention and the MLP",
                  .attends = true,
                  .feeds = true},
                 {.name = "norm", .whole = "the norm", .norm = true},
                 {.name = "embedding", .whole = "the embedding", .embedding = true},
                 {.name = "head", .whole = "the head", .head = true},
                 {.name = "loss", .whole = "the loss", .loss = true}};
    for (size_t i = 0; part && i < sizeof row / sizeof *row; i++)
        if (!strcmp(row[i].name, part)) return &row[i];
    return &unknown;
}
#define OWN(key, wrong, right)                                                                     \
    { #key, #wrong, #right, #key ": " #wrong, #key ": " #right }
static const struct {
    const char *key, *wrong, *right, *line, *right_line;
} own_keys[] = {OWN(normalise, local_mean, global), OWN(aux_loss, per_shard, exact)};
enum { N_OWN_KEYS = sizeof own_keys / sizeof *own_keys };
const char *term_right_word(const char *key, const char *word) {
    for (int i = 0; word && i < N_OWN_KEYS; i++)
        if (!strcmp(own_keys[i].key, key) && !strcmp(own_keys[i].wrong, word))
            return own_keys[i].right;
    return NULL;
}
const char *term_right_line(const char *line) {
    for (int i = 0; line && i < N_OWN_KEYS; i++)
        if (!strcmp(own_keys[i].line, line)) return own_keys[i].right_line;
    return NULL;
}
const char *part_term_word(const char *part) {
    const char *word = part_term(part)->word;
    return word ? word : part;
}
