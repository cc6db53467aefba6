/* --against: another implementation's values, held against the unsharded ones, and what it says
 * that ranks hold against what the ranks hold. */
#ifndef SP_DRIVE_AGAINST_H
#define SP_DRIVE_AGAINST_H
#include "drive/pipeline.h"
#include "drive/values.h"

typedef struct Against Against;

/* What the command line gives. */
typedef struct {
    const char *file, *map; /* map: NULL or names of theirs and ours */
    int64_t rank;           /* 1 + the rank whose values its names are; 0: its names say it */
    double tolerance;       /* of the largest magnitude of a tensor; 0: by dtype */
} AgainstFile;
/* Opens the file and the map and finds what its names mean in the program of the ranks; `steps` of
 * training, or 0. What it returns ends with against_close; its memory is the arena's. NULL and
 * diagnostics if one of them cannot be read or understood, or if nothing in the file is a value of
 * the model (E0209). */
Against *against_open(Arena *arena, Diags *d, const Program *p, int64_t steps, AgainstFile of);
/* Closes the file; NULL is allowed. */
void against_close(Against *a);
/* Does the file say what ranks hold? Then the run has to keep its values. */
bool against_wants_ranks(const Against *a);
/* Has it values in bf16 of a plan in bf16? Then the set wants the unsharded model's (`narrow`). */
bool against_wants_narrow(const Against *a);
/* Compares what the file has of what is true after one training step; the other values when all is
 * done (`after` of the set is the last step, or -1). E0506 where they differ, E0504 where the file
 * has NaN or infinity. */
void against_step(Against *a, const ValueSet *s);
void against_rest(Against *a, const ValueSet *s);
/* The rows, and the same as records: all tensors of the file in its order, then what the file
 * lacks. After against_rest. */
void against_report(Against *a, const ValueSet *s, PipelineReport *rep, Trace *t);
#endif
