/* PyTorch's parallel styles by name, with the names of their arguments and what those hold: one
 * table for what reads them and what writes them. */
#ifndef SP_IMPORT_TORCH_ARGS_H
#define SP_IMPORT_TORCH_ARGS_H
#include <stdbool.h>

/* What an argument holds. */
typedef enum {
    A_LAYOUT,  /* one placement, or a tuple of one */
    A_LAYOUTS, /* a placement, or one for each positional argument */
    A_KWARGS,  /* a dict of placements by argument name */
    A_BOOL,
    A_SEQUENCE, /* the dim of the sequence */
    A_SHARDING, /* the same as PyTorch keeps it: (Shard(1),) */
    A_IGNORED,  /* says nothing of its own */
    A_FALSE,    /* only False can be said */
} TorchArgKind;
typedef struct {
    const char *name, *field; /* theirs, ours ("output"; NULL: none) */
    TorchArgKind kind;
} TorchArg;
/* What a style does to experts. */
typedef enum {
    X_NONE,   /* it is not about them */
    X_WHOLE,  /* gives whole ones to different ranks: the mesh is theirs */
    X_INSIDE, /* cuts each */
    X_BOTH,   /* over a mesh of two axes both, in this order */
} TorchExperts;
enum { TORCH_ARGS = 9 };
typedef struct {
    const char *name, *ours;  /* "ColwiseParallel", "colwise" */
    TorchArg arg[TORCH_ARGS]; /* up to one without a name */
    bool hands_in;            /* its module gets DTensors, unless they are asked for as local */
    TorchExperts experts;
} TorchStyle;
/* All of them. */
const TorchStyle *torch_styles(int *n);
/* The row of PyTorch's name, or NULL. */
const TorchStyle *torch_style_row(const char *name);
/* The row of a style of ours by its built-in name, or NULL: PyTorch has none. */
const TorchStyle *torch_style_of(const char *ours);
#endif
