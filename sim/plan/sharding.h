/* What the modes of data parallelism cut over its axes beside the data, and how the forms of ZeRO
 * hand it out: one row each. */
#ifndef SP_PLAN_SHARDING_H
#define SP_PLAN_SHARDING_H
#include "plan/plan.h"

/* What is gathered, or reduced, in one collective: its word under `unit`. */
typedef enum { UNIT_PARAMETER, UNIT_BLOCK, UNIT_MODEL } DataUnit;

typedef struct DataMode {
    const char *name;
    bool cuts_params; /* at rest each rank has a part of every parameter */
    bool cuts_state;  /* each rank updates a part of the model, and has its optimizer state */
    bool cuts_grads;  /* what is reduced of a gradient is no more than that part */
    bool copies;      /* over `replicate` all of it is there again */
    bool buckets;     /* sums of whole gradients travel in units too */
    DataUnit unit;    /* where the plan says none */
} DataMode;

/* How the optimizer's work is divided where parameters themselves are not. */
typedef struct DataForm {
    const char *name;
    bool whole;      /* whole tensors are handed out; else each rank has a range of a buffer in
                        which all lie one behind the other */
    bool last_first; /* of the buffer: the last parameter comes first */
    int64_t align;   /* each parameter begins at a multiple of so many elements */
    int64_t each, whole_of; /* the buffer ends at a multiple of `each` times the ranks, and of
                               `whole_of` */
} DataForm;

/* Which gathered parameters are dropped after the forward pass, to be gathered again. */
typedef struct Reshard {
    const char *name;
    bool blocks, rest; /* those of blocks; what is outside of them, the root's unit */
    bool once;         /* none, and what is gathered stays for all micro-batches of a step */
} Reshard;

/* What is done of a gradient's sums over ranks in every micro-batch, before it is added up; the
 * rest is done once a step. */
typedef struct GradSync {
    const char *name;
    bool scatters, sums; /* reduce-scatters; all-reduces */
    const char *when;    /* what is said of it beside one micro-batch's records */
} GradSync;

/* The plan's rows of these two; the first where it says none. */
const Reshard *plan_reshard(const Plan *p);
/* The row of a word of `reshard`; the first of NULL. */
const Reshard *plan_reshard_of(const char *word);
const GradSync *plan_grad_sync(const Plan *p);
/* The mode of the plan; ddp where it says none. */
const DataMode *plan_data_mode(const Plan *p);
/* The form of the plan; pytorch where it says none. */
const DataForm *plan_data_form(const Plan *p);
/* The unit of the plan, or its mode's. */
DataUnit plan_data_unit(const Plan *p);
/* Its word. */
const char *plan_data_unit_word(const Plan *p);
#endif
