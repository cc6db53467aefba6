/* Which part of a long schedule is not drawn: periods that repeat on all rows that are. */
#ifndef SP_RENDER_PIPELINE_FOLD_H
#define SP_RENDER_PIPELINE_FOLD_H
#include "render/pipeline/pipeline.h"

/* Seconds from..to: `periods` of them, each like the one before and the one behind. */
typedef struct PipeCut {
    double from, to;
    int periods;
} PipeCut;
typedef struct PipeFold {
    int n;
    PipeCut *cut;  /* [n], in order, apart from each other */
    double hidden; /* seconds in all of them */
} PipeFold;
/* Finds what repeats on n rows, in their order of time: each with the same kinds of actions on the
 * same stages after the same time. The first and the last of the periods stay. In `a`. */
PipeFold pipe_fold(Arena *a, const PipeRow *const *row, int n);
/* The cut in which t lies, its ends included; NULL: it is drawn. */
const PipeCut *pipe_cut_at(const PipeFold *f, double t);
/* Is the action between its cuts, in part or whole? */
bool pipe_in_sight(const PipeFold *f, const TraceAction *x);
#endif
