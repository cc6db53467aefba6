/* The list of ops, and finding one in it. */
#include "ops/op.h"
#include <string.h>

#define OP(name) extern const Op op_##name;
#include "ops/list.h"
#undef OP
const Op *const op_list[] = {
#define OP(name) &op_##name,
#include "ops/list.h"
#undef OP
};
const int n_ops = sizeof op_list / sizeof op_list[0];

const Op *op_find(const char *name) {
    for (int i = 0; i < n_ops; i++)
        if (!strcmp(op_list[i]->name, name)) return op_list[i];
    return NULL;
}
const Op *op_of_part(const Op *part) {
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->part == part) return op_list[i];
    return NULL;
}
const Op *op_activation(const char *name) {
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->activation && !strcmp(op_list[i]->activation, name)) return op_list[i];
    return NULL;
}
OpCall op_call_forward(const OpCall *c) {
    OpCall f = *c;
    f.out.nd = c->rule->nout;
    for (int d = 0; d < f.out.nd; d++) {
        bool listed = c->rule->listed[RULE_MAX_IN] & RULE_BIT(c->rule->out[d]);
        f.out.n[d] = !listed ? c->local[c->rule->out[d] - 'a'] : d ? 1 : c->rows;
    }
    tensor_pack(&f.out);
    return f;
}
