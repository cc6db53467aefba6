/* What the files of the torch importer share. */
#ifndef SP_IMPORT_TORCH_H
#define SP_IMPORT_TORCH_H
#include "import/import.h"

/* One call of fully_shard. */
typedef struct {
    const char *path; /* "": the model, "layers.*" */
    int n_axes;
    const char *axis[2]; /* of the mesh that it is given, none: the whole mesh */
    int reshard;         /* -1: by default */
    int dim;             /* of shard_placement_fn; -1: there is none */
    Loc loc, dim_loc;
} FullyShard;
typedef struct {
    Draft *x;
    int n_calls, cap_calls;
    FullyShard *call;
    const char *ddp; /* axis of DistributedDataParallel, or NULL */
    Loc ddp_loc;
    bool loss_parallel;
    Loc loss_loc;
    int n_tables; /* tables of styles that were applied */
    /* lines whose inputs are prepared as DTensors for the modules inside */
    int n_inside, cap_inside;
    const char **inside;
    /* the axes over which ranks have different experts: "dp*tp"; NULL: all have the same */
    const char *experts;
} Torch;

/* The mesh that a style is given: ExpertTensorParallel takes one of two axes. */
typedef struct {
    int n;
    const char *axis[2];
    const char *own; /* what its line says of it; NULL: the default axis */
    Loc loc;
} TorchMesh;

/* A style of parallelize_module, `ColwiseParallel(output_layouts=Shard(1))` as a call or as text,
 * or
 * {"style": ..., "output_layouts": ...}, as a line of the plan. `on` NULL: no mesh is given. */
void torch_style(Torch *t, const char *pattern, Loc loc, Value *style, const TorchMesh *on);
/* A table of them; `prefix` "" or "layers.*". */
void torch_table(Torch *t, const char *prefix, Value *dict, const TorchMesh *on);
/* Does this dict hold styles? */
bool torch_is_table(const Value *v);
/* Is it a table of Hugging Face's, names of its styles as strings? What to do with one. */
bool torch_is_hf_table(const Value *v);
extern const char torch_hf_help[];
/* Once all lines are there: modules that move their inputs themselves share nothing. */
void torch_boundaries(Torch *t);
/* A Python file. */
void torch_code(Torch *t);
#endif
