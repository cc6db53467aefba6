/* The words of trace.h's enums. See terms.h. */
#include "trace/terms.h"
#include <stddef.h>
#include <string.h>

const char *const phase_words[N_PHASES] = {
    [PHASE_FORWARD] = "forward",       [PHASE_LOSS] = "loss",
    [PHASE_BACKWARD] = "backward",     [PHASE_GRADIENTS] = "gradients",
    [PHASE_PARAMETERS] = "parameters", [PHASE_OPTIMIZER] = "optimizer"};
const char *const pass_words[N_PASSES] = {
    [PASS_FORWARD] = "forward", [PASS_BACKWARD] = "backward", [PASS_TRAIN] = "train"};
const char *const value_role_words[N_VALUE_ROLES] = {
    [VALUE_INPUT] = "input",       [VALUE_ACTIVATION] = "activation",
    [VALUE_MOVED] = "moved",       [VALUE_COTANGENT] = "cotangent",
    [VALUE_GRADIENT] = "gradient", [VALUE_UPDATED] = "updated"};

int term_of(const char *const *words, int n, const char *word) {
    for (int i = 0; i < n; i++)
        if (word && words[i] && !strcmp(words[i], word)) return i;
    return -1;
}
const char *phase_text(Phase p) { return phase_words[p] ? phase_words[p] : ""; }
Phase phase_or_forward(Phase p) { return p == PHASE_NONE ? PHASE_FORWARD : p; }
