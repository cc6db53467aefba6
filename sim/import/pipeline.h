/* Pipelines of other frameworks: degrees, layers and micro-batches as a plan's `pipeline`. */
#ifndef SP_IMPORT_PIPELINE_H
#define SP_IMPORT_PIPELINE_H
#include "import/import.h"

typedef struct {
    const char *schedule;            /* a plan's word */
    int64_t ranks, chunks;           /* chunks: stages of each rank */
    int64_t microbatches;            /* of one step */
    int64_t first_less, last_less;   /* layers that the ends have less, for embedding and head */
    bool pair;                       /* a tied table is on both ends */
    Loc at, schedule_loc, split_loc; /* of degree, schedule, and what says how layers are split */
} DraftPipeline;

/* Layers that the stages are made of. */
int64_t draft_layers(const Draft *x);
/* Adds `pipeline` and its axis is expected to be there; how many layers and micro-batches the plan
 * has, unless it is --full: the fewest that keep the shape of each stage and of the schedule. E0307
 * if the model has fewer layers than stages. After the model. */
void draft_pipeline(Draft *x, const DraftPipeline *p);
#endif
