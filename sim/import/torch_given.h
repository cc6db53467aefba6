/* What a Python file of PyTorch's is given from outside: names that nothing in it is assigned to.
 * The command line says some (--args NAME=VALUE), the mesh decides the switches of torchtitan's
 * parallel_dims, and what its job_config is where nobody changed it. Refuses to know anything else:
 * a name stays unknown. */
#ifndef SP_IMPORT_TORCH_GIVEN_H
#define SP_IMPORT_TORCH_GIVEN_H
#include "import/torch.h"

typedef struct {
    Torch *t;
    Value *said;  /* of --args: a dict by dotted names; NULL: nothing */
    Str defaults; /* of job_config, as they were asked for */
} TorchGiven;

/* Reads --args; false and diagnostics if it is not understood. */
bool torch_given(TorchGiven *g, Torch *t);
/* The value of a name or an attribute of one, `loss_parallel`, `parallel_dims.tp_enabled`; NULL:
 * nobody knows. */
Value *torch_given_value(TorchGiven *g, const Value *v);
/* parallel_dims.get_mesh("tp"), get_mesh(["dp_replicate", "fsdp"]): how many axes; -1: it is no
 * such call, or too many. */
int torch_given_mesh(TorchGiven *g, const Value *call, const char *axis[2]);
/* world_mesh["dp_shard_cp"]: the axis or group of the mesh that a name of ParallelDims stands for;
 * another name is itself. NULL and a diagnostic if it cannot be made. */
const char *torch_given_axis(TorchGiven *g, const char *name, Loc at);
/* Once the file was read: remarks, and what of --args nothing asked for. */
void torch_given_end(TorchGiven *g);
#endif
