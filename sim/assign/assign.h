/* Styles assign layouts (room: styles). A plan's lines are matched against the modules of a model;
 * the result says how each parameter lies at rest and in compute, how inputs lie, and what each
 * module's boundary declares. Nothing moves here and no collective is named: that is lower's
 * business. */
#ifndef SP_ASSIGN_ASSIGN_H
#define SP_ASSIGN_ASSIGN_H
#include "layout/mesh.h"
#include "model/model.h"
#include "plan/plan.h"
#include "plan/sharding.h"
#include "schedule/schedule.h"

/* What the plan says about one module. */
typedef struct ModuleUse {
    const Style *style; /* merged; NULL: no line names it */
    const char *name;   /* style's name as written */
    AxisList
        axes; /* the axes that bare placements speak of, for parameters and hidden activations */
    const char *group; /* the name the plan used: "tp" */
    AxisList seq_axes; /* the axes that shard(1) of activations speaks of ("sp" if defined) */
    const char *seq_group;
    bool cuts_param; /* a parameter of the module is cut over its axes */
    bool per_module;
    bool local_inside; /* inputs that were prepared are plain tensors inside: whole means equal uses
                        */
    bool out_varies;   /* a whole result stays a DTensor whose uses differ */
    uint8_t
        dtensor_in; /* bit per input: it comes as a DTensor of PyTorch's, which no label changes */
    bool dtensor_out; /* so does the result to which its `output` is a label */
    bool prepares;    /* moves a DTensor only where its label and what is wanted differ */
    bool hands_in;    /* its style moves inputs and hands them to it as DTensors */
    bool idle_in,
        idle_out;      /* what it labels it hands on plain: of no effect where it moves nothing */
    bool relays;       /* moves a DTensor from wherever it lies: its label is of plain tensors */
    bool label_raises; /* computes nothing of a DTensor that lies otherwise than its label says */
    int line;          /* index of the plan's line */
    Loc loc;
} ModuleUse;

/* A pipeline: the stage of each node, and where stages are. */
typedef struct Stages {
    int axis, n;        /* of the mesh; stages */
    int ways;           /* 2: micro-batches enter at both ends. Each stage is there twice, and what
                           way 1 does with stage s counts as stage n + s */
    const int *of_node; /* per node of the model */
    const int *home;    /* per stage, of each way: its coordinate on the axis */
    const int *of_source;   /* per tensor: the stage of a parameter or input */
    const Recompute *again; /* per stage */
    Schedule *schedule;     /* one list for each coordinate, with messages */
} Stages;
/* The way that a micro-batch goes: 0, or 1 for those that enter at the other end. */
static inline int stages_way(const Stages *s, int64_t part) {
    return s && s->ways == 2 && part >= s->schedule->parts / 2;
}
/* The way of what a stage does or has. */
static inline int stages_way_of(const Stages *s, int stage) { return s && stage >= s->n; }

typedef struct Assign {
    const Plan *plan;
    const Mesh *mesh;
    const Model *model;
    Diags *d;
    Arena *arena;
    Layout *compute; /* per tensor: parameters and inputs as the module works with them (means) */
    Layout *rest;    /* per tensor: as stored (holds) */
    Layout *state;   /* per tensor (parameters): as the optimizer updates them; NULL: as at rest */
    const char *(*group)[MESH_MAX_AXES]; /* per tensor and axis: the group name its cut was written
                                            with; NULL: the axis */
    int *line;      /* per tensor (parameters): index of the plan line that lays it out, -1 */
    bool *claimed;  /* per tensor: rest is taken for compute without a move (contiguous under trust:
                       declared) */
    ModuleUse *use; /* per module */
    bool *dtensor;  /* per tensor: it leaves its last module as a DTensor of PyTorch's */
    bool *dtensor_op; /* per node: an op of PyTorch's on DTensors, which brings them together; NULL:
                         none */
    uint32_t *summed; /* per tensor (parameters): bit per axis over which the plan declares the sum
                         of its gradient */
    AxisList data, shard; /* axes of data parallelism; those of them that cut parameters at rest */
    AxisList keep;        /* of `shard`: over which a parameter stays cut between the passes */
    bool data_default;    /* `data_parallel` names no axes: those that cut the data */
    Stages *stages;       /* NULL: all ranks have all layers */
    const struct Reshard *reshard; /* as the plan says; where it does not, as its schedule file */
    const struct Play *stuck; /* a schedule that comes to no end, as far as it goes; else NULL */
    uint32_t tokens;          /* bit per axis that cuts the data's batch or sequence */
    bool *no_axis;            /* per line of the plan: it acts on no axis of the mesh; NULL: none */
    bool idle; /* some ranks have nothing of the data or of a parameter, or do what others do */
} Assign;

/* Builds the mesh of a plan with its groups. NULL and diagnostics on unknown axes, too many, or an
 * overflow. */
Mesh *assign_mesh(Arena *arena, Diags *d, const Plan *p);
/* Matches lines, splits axes for replicated KV heads (in `mesh`), assigns layouts. NULL if there
 * were errors; if one is a schedule that comes to no end, *stuck (which may be NULL) is how far it
 * goes, in `arena`. */
Assign *assign_plan(Arena *arena, Diags *d, const Plan *p, Mesh *mesh, const Model *m,
                    const struct Play **stuck);

typedef enum { USE_INPUT, USE_OUTPUT, USE_PARAM } UseKind;
/* A value that a line of the plan, or a style, wants to lie in some way. */
typedef struct Target {
    int module; /* whose line speaks; -1: none (block_input) */
    int tensor;
    const RawSpec *spec;
    UseKind kind;
    const Layout *from; /* as it lies: axes that the spec does not speak of stay */
} Target;
/* The module after whose declared output the stream that enters the first layer is laid, where the
 * plan does not say it (`block_input`); -1: none. */
int assign_stream_module(const Assign *a);
/* The layout that the spec asks for, to *out. `names[axis]` (NULL: not wanted) gets the group name
 * where a cut was written. False and a diagnostic if it cannot be. */
bool assign_target(const Assign *a, const Target *t, Layout *out, const char **names);
/* Does `cur` lie as the label says? Axes of size 1 always do; I and R both are `replicate`. */
bool assign_label_holds(const Assign *a, const Layout *cur, const Layout *label);
/* Diagnostics (E0310) if the schedule that the plan names cannot be made of its micro-batches on
 * this mesh: for a plan that is refused before its stages are found. */
void assign_schedule(Arena *arena, Diags *d, const Plan *p, const Mesh *mesh);
/* The axis or group of the mesh that was meant by `word`; NULL: none. */
const char *assign_axis_nearest(const Mesh *m, const char *word);
/* The axes a list such as "dp*cp" names; false and E0204 if unknown. */
bool assign_axes(const Mesh *m, Arena *arena, Diags *d, const char *text, Loc loc, AxisList *out);
#endif
