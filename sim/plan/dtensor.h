/* What PyTorch's DTensor makes of a plan where it is more than layouts: in which systems it stands behind the styles. */
#ifndef SP_PLAN_DTENSOR_H
#define SP_PLAN_DTENSOR_H
#include "plan/plan.h"

/* Are the styles of this plan DTensor's? Those of torchtitan and torchtune are, and so is an mlp, which is nobody's model but
 * PyTorch's own toy. Hugging Face, Megatron and gguf have code of their own. */
bool dtensor_system(const Plan *p);
/* The placements of the bias of a row style in such a system: DTensor turns a whole bias into shares of the sum before the sum is
 * made (semantics.md 2.2). With a whole result that sends the same and rounds twice, so `given` stays; where the result is
 * cut, or stays a sum, it needs no all-reduce of the bias' gradient. */
const RawSpec *dtensor_bias(const Plan *p, const Style *s, const RawSpec *given);
#endif
