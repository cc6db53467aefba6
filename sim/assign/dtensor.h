/* What PyTorch's DTensor makes of a plan where it is more than layouts: in which systems it stands
 * behind the styles, where tensors are DTensors and where plain, and what follows from that for
 * what is sent, or raised. */
#ifndef SP_ASSIGN_DTENSOR_H
#define SP_ASSIGN_DTENSOR_H
#include "assign/assign.h"

/* Are the styles of this plan DTensor's? Those of torchtitan and torchtune are, and so is an mlp,
 * which is nobody's model but PyTorch's own toy. Hugging Face, Megatron and gguf have code of their
 * own. */
bool dtensor_system(const Plan *p);
/* The placements of the bias of a row style in such a system: DTensor turns a whole bias into
 * shares of the sum before the sum is made (semantics.md 2.2). With a whole result that sends the
 * same and rounds twice, so `given` stays; where the result is cut, or stays a sum, it needs no
 * all-reduce of the bias' gradient. */
const RawSpec *dtensor_bias(const Plan *p, const Style *s, const RawSpec *given);
/* Follows DTensors and plain tensors through the modules (semantics.md 1.2, 1.5, 2.1). Sets what
 * `use_local_output` changes (ModuleUse.local_inside, out_varies, out_dtensor; per_module of
 * modules inside), refuses what PyTorch raises for because of it (E0408) or what this program
 * cannot do alike (E0214), and notes where a dim that does not divide makes DTensor raise or gather
 * instead (N0006). */
void dtensor_follow(Assign *a);
#endif
