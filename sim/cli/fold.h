/* Layers, stages of a pipeline and micro-batches that say the same as the one before them, as one
 * line of a table for people. Refuses to fold what differs in any cell but the numbers of layers,
 * stages and micro-batches, where stages lie, and the count of steps. */
#ifndef SP_CLI_FOLD_H
#define SP_CLI_FOLD_H
#include "cli/table.h"
#include "trace/trace.h"

/* The table without the rows of layers that repeat those of the layer before, from FOLD_LAYERS
 * equal layers on, or where that saves FOLD_PAGE rows; a line after the last row that stays says
 * which layers are left out (Table.after) and the notes say how to see them. Rows have places
 * (Table.place) which say their layer; the column "step", if there is one, is counted from each
 * layer's first. Rows and cells are shared with `t`; the result lives in the arena of `t`. */
enum { FOLD_LAYERS = 4, FOLD_PAGE = 60 };
Table fold_layers(const Table *t);
/* The same with micro-batches and with the stages of a pipeline: neighbours that do the same, each
 * stage on ranks of its own. Layers are folded in what is left. `t`: the trace that the rows are
 * of. */
Table fold_table(const Table *table, const Trace *t);
/* The place of a row of this layer (-1: of none) that speaks of these ranks (NULL: of none). */
RowPlace fold_place(const Trace *t, int layer, const RankSet *ranks, Arena *a);
/* The words that stand before a layer's number in names, "layers." or "blk.": learned from names
 * of which a record says the layer. */
typedef struct FoldWords {
    Arena *arena;
    int n, cap;
    const char **word;
} FoldWords;
/* From one such name (-1: it is of no layer), whose first number that is a component of it is the
 * layer's; from those of a trace's records. */
void fold_learn(FoldWords *w, const char *name, int layer);
FoldWords fold_words(const Trace *t, Arena *a);
/* The place of a row that no record says the layer of: of the first that its name has, -1 if none.
 */
RowPlace fold_place_named(const FoldWords *w, const char *name);
/* That of a name of which nothing at all says the layer, in another's file: of the first number. */
RowPlace fold_place_first(const char *name);
/* The ranks of a set as if each stood at coordinate 0 of the pipeline's axis. In `a`. */
const char *fold_ranks(const Trace *t, const RankSet *ranks, Arena *a);
/* A name in which a star stands for the number of each layer: "layers.*.q_proj". In `a`. */
const char *fold_name(const FoldWords *w, const char *name, Arena *a);
#endif
