/* Which launches an op asks for: a row for each of ops/list.h. See table.h. */
#include "launch/table.h"

#define OP(name)                                                                                   \
    extern LaunchFn launch_##name;                                                                 \
    extern const Op op_##name;
#include "ops/list.h"
#undef OP
static const struct {
    const Op *op;
    LaunchFn *fn;
} launches[] = {
#define OP(name) {&op_##name, launch_##name},
#include "ops/list.h"
#undef OP
};
bool table_launch(const OpCall *c, bool adjoint, const LaunchTo *to) {
    LaunchCall x = {c, adjoint, to};
    if (tensor_count(&c->out) == 0) return true;
    for (size_t i = 0; i < sizeof launches / sizeof *launches; i++)
        if (launches[i].op == c->op) return launches[i].fn(&x);
    return false;
}
