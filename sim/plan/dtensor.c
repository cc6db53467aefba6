/* What PyTorch's DTensor does with a style that the style's layouts alone do not say. Refuses to move anything. */
#include "plan/dtensor.h"

bool dtensor_system(const Plan *p) { return p->kind || p->names == NAMES_TORCHTITAN || p->names == NAMES_TORCHTUNE; }

static bool is_whole(const RawPlace *p) { return p->kind == RP_REPLICATE || p->kind == RP_INVARIANT || p->kind == RP_VARYING; }
/* Is the result whole over every axis that the style speaks of? */
static bool whole_output(const Style *s) {
    const RawList *o = s->desired_output.set ? &s->desired_output : &s->output;
    if (!o->set || !o->n) return false;
    if (!o->arg[0].mapping) return is_whole(&o->arg[0].bare);
    for (int i = 0; i < o->arg[0].n; i++)
        if (!is_whole(&o->arg[0].on[i].place)) return false;
    return true;
}
const RawSpec *dtensor_bias(const Plan *p, const Style *s, const RawSpec *given) {
    static const RawSpec shares = {.set = true, .bare = {.kind = RP_PARTIAL}};
    return s->bias_in_shares && dtensor_system(p) && !whole_output(s) ? &shares : given;
}
