/* Which token each row of an index list is, with which weight, and by which scores it was chosen:
 * small runs only, for pictures that show single tokens. Counting rows is routed.h. */
#ifndef SP_EXEC_CHOSEN_H
#define SP_EXEC_CHOSEN_H
#include "exec/exec.h"
#include "trace/trace.h"
/* At most so many rows on all ranks together, and so many scores: a picture of tokens shows no
 * more. */
enum { CHOSEN_MOST = 1 << 12, SCORES_MOST = 1 << 13 };
/* After a step that made or moved the list of record `k`, whose `rows` are counted: the token of
 * each row, the room of an expert and, where the step chose from scores, those. Nothing where they
 * are too many. */
void chosen_rows(Trace *t, const Exec *e, const Step *s, TraceRouted *k);
/* After a step of the forward pass that made a number per row, [rows]: that is the rows' weight,
 * the last of them the one that counts. Nothing of any other step. */
void chosen_weights(Trace *t, const Exec *e, const Step *s);
#endif
