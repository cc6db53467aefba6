/* Kinds of actions. See actions.h. */
#include "render/furniture/actions.h"

const ActionLook action_looks[ACTION_LOOKS] = {
    {'F', ROLE_COMPUTE, ROLE_INK, "forward"},
    {'B', ROLE_LIVE, ROLE_LIVE_TEXT, "backward"},
    {'I', ROLE_LIVE_PALE, ROLE_INK, "gradient of the input"},
    {'W', ROLE_SHARD_2, ROLE_SHARD_TEXT_2, "gradients of the weights"}};

int action_look(const TraceAction *a) {
    int k = 0;
    while (k + 1 < ACTION_LOOKS && action_looks[k].kind != *a->kind) k++;
    return k;
}
int action_flight(const TraceAction *a, int before) {
    return before + (*a->kind == 'F' ? 1 : *a->kind == 'I' ? 0 : -1);
}
