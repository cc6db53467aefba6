/* torchtitan's models, a row for each of its flavors, and the lines of a plan that its code for one
 * of them is (torchtitan 0.2.2, models/NAME/infra/parallelize.py). Refuses to read degrees or
 * files. */
#ifndef SP_IMPORT_TITAN_MODEL_H
#define SP_IMPORT_TITAN_MODEL_H
#include "import/import.h"

typedef enum { TITAN_HEADS, TITAN_NORMED_HEADS, TITAN_LATENT } TitanAttention;
typedef struct {
    const char *model, *flavor;
    const char *preset; /* or */
    const char *config; /* keys of a config.json, as flow YAML without its braces */
    const char *more;   /* keys of `model:` behind them */
    int layers, hidden, head_dim, heads, kv_heads, ffn; /* of one without a preset */
    int experts;                                        /* 0: none */
    int first_experts;   /* the first layer that has them; layers before it have none */
    bool shared;         /* an expert that all tokens go to */
    bool bias;           /* the bias in its choice of experts is part of the model here */
    int unrotated_every; /* of so many layers the first is not rotated; 0: all are */
    bool
        says_rotations; /* its config must say it of each layer: its family's own default differs */
    double yarn;        /* mscale, where a sequence is longer than YARN_TOKENS; 0: never */
    bool flex;          /* FlexAttention, which context parallelism does not take */
    bool no_pipeline;   /* torchtitan cannot cut it into stages */
    bool ep_alone;      /* its code takes experts over ranks without one of dp_shard or cp */
    TitanAttention attention;
    const char *lacks; /* why it does not run here */
} TitanFlavor;
/* Ranks of each kind, 1 where there is none. */
typedef struct {
    int64_t tp, ep, etp;
    bool loss_parallel;
    Loc ep_loc; /* where the file says that of ep */
} TitanDegrees;

/* PyTorch's name of a schedule, which it compares without regard to case, and a plan's word. */
typedef struct {
    const char *name, *schedule;
    bool single; /* one stage on each rank; else two, where nothing is said of layers */
} TitanSchedule;
/* By PyTorch's name, or NULL and all names in `a`, NULL-terminated; by a plan's word, or NULL. */
const TitanSchedule *titan_schedule(Arena *a, const char *name, const char ***names);
const TitanSchedule *titan_schedule_of(const char *schedule);

/* The row of a flavor, or NULL and E0214, E0206: the model or the flavor is not known. */
const TitanFlavor *titan_flavor(Draft *x, const char *model, Loc model_loc, const char *flavor,
                                Loc flavor_loc);
/* The row that is this preset, or NULL. */
const TitanFlavor *titan_preset(const char *preset);
/* Writes its sizes into the draft; E0214 for one that does not run. `sequence`: tokens of it. */
void titan_write_model(Draft *x, const TitanFlavor *f, int64_t sequence);
/* The lines of tensor and expert parallelism. */
void titan_write_lines(Draft *x, const TitanFlavor *f, const TitanDegrees *d);
#endif
