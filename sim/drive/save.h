/* --save-values: the values of a run as a safetensors file. */
#ifndef SP_DRIVE_SAVE_H
#define SP_DRIVE_SAVE_H
#include "drive/values.h"

enum { SAVE_MAX_RANKS = 64 };
/* Writes all that the run holds: the unsharded values in float64, the first SAVE_MAX_RANKS ranks'
 * under rankR/ in the run's dtype (N0007 if there are more), whole numbers as I64. Nothing and a
 * diagnostic if it cannot be written. */
void save_values(const ValueSet *s, Diags *d, const char *file);
#endif
