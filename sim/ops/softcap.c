/* softcap: y = c tanh(x / c), element by element, with the node's factor c: logits that stay within
 * -c .. c (Gemma 2, arXiv 2408.00118). Scores of attention have it inside their kernel. */
#include "ops/util.h"
#include <math.h>

static double capped(double x, const void *of) {
    double c = *(const double *)of;
    return c * tanh(x / c);
}
static void forward(const OpCall *c) { op_unary(c, capped, &c->at->factor); }
/* 1 - tanh(x / c)^2 */
static double slope(double x, const void *of) {
    double t = tanh(x / *(const double *)of);
    return 1 - t * t;
}
static void adjoint(const OpCall *c) { op_unary_adjoint(c, slope, &c->at->factor); }
const Op op_softcap = {
    .name = "softcap",
    .typical = "btv->btv",
    .lin = LIN_NONE,
    .forward = forward,
    .adjoint = adjoint,
    .bound = op_bound_activation,
    .bound_each = BOUND_EACH,
    .exact = op_exact_activation,
    .exact_adjoint = op_exact_adjoint,
    .flops_each = 5,
    .label = "soft cap",
};
