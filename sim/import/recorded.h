/* Faults of frameworks that their own runs showed and that are no property of a plan. */
#ifndef SP_IMPORT_RECORDED_H
#define SP_IMPORT_RECORDED_H
/* With this version of transformers a load of that model type, by the plan that it ships, came out
 * otherwise than one process: why. Recorded, not derived: another version may not have it. */
typedef struct {
    const char *model_type, *version, *where, *what; /* where: loader, autograd */
} RecordedFault;
/* The row of a model type, static; NULL: none was seen, or model_type is NULL. */
const RecordedFault *import_recorded(const char *model_type);
/* All rows, *n of them. */
const RecordedFault *import_recorded_rows(int *n);
/* What layers of that model type have that this version does not compute, or that it has no row
 * for, static; NULL: it runs, or nobody has looked. */
const char *import_lacking(const char *model_type);
#endif
