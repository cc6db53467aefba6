/* Layers that say the same as the one before them, as one line of a table for people. Refuses to
 * fold what differs in any cell but the layer's number and the count of steps. */
#ifndef SP_CLI_FOLD_H
#define SP_CLI_FOLD_H
#include "cli/table.h"

/* The table without the rows of layers that repeat those of the layer before, from FOLD_LAYERS
 * equal layers on; a line after the last row that stays says which layers are left out
 * (Table.after) and the notes say how to see them. Rows belong to the layer whose number stands in
 * the column `name`; the column "step", if there is one, is counted from each layer's first. Rows
 * and cells are shared with `t`; the result lives in the arena of `t`. */
enum { FOLD_LAYERS = 4 };
Table fold_layers(const Table *t, int name);
/* A name in which a star stands for the number of each layer: "layers.*.q_proj". In `a`. */
const char *fold_name(const char *name, Arena *a);
#endif
