/* The record of a run: values with their layouts, steps, collectives, checks, memory, events.
 * A trace lives in memory or in a JSON Lines file and both give the same picture: render/ includes
 * this and base, nothing else of sim/. All texts and arrays live in the trace's arena. */
#ifndef SP_TRACE_TRACE_H
#define SP_TRACE_TRACE_H
#include "base/diag.h"
#include "trace/terms.h"

enum { TRACE_MAX_DIMS = 8, TRACE_MAX_AXES = 12 };
/* FSDP: how many units are gathered ahead of the one in use. The one place that says so; memory and
 * modelled time count with it. */
enum { TRACE_PREFETCH = 1 };

/* A set of ranks: runs of first, first+stride, ... ; ascending, disjoint. Where that would be a
 * long list, boxes of the mesh instead: a range of coordinates on each of its axes, "dp=0:4094
 * cp=15". */
typedef struct {
    int64_t first, count, stride;
} RankRun;
typedef struct {
    const char *axis;
    int64_t size, stride; /* of the axis: its length, and from one coordinate to the next */
    int64_t first, count; /* the coordinates */
} RankSide;
typedef struct {
    int n; /* all axes of the mesh, outermost first */
    RankSide side[TRACE_MAX_AXES];
} RankBox;
typedef struct {
    int n;        /* runs, or boxes; 0: the empty set */
    RankRun *run; /* NULL: there are boxes */
    RankBox *box; /* disjoint; NULL: there are runs */
} RankSet;

/* Groups of one collective: group g, member i = base(g) + offset(i), both products of (size,
 * stride), outermost first. */
typedef struct {
    int n_in, n_out;
    int64_t in_size[TRACE_MAX_AXES], in_stride[TRACE_MAX_AXES];
    int64_t out_size[TRACE_MAX_AXES], out_stride[TRACE_MAX_AXES];
    int64_t first; /* member 0 of group 0: not 0 where a value is on some ranks only */
} RankGroups;
int64_t groups_count(const RankGroups *g);
int64_t groups_size(const RankGroups *g); /* ranks in each */
/* The rank that is member i of a group, both from 0. */
int64_t groups_member(const RankGroups *g, int64_t group, int64_t i);
/* The group that a rank is in, from 0; -1: it is in none. */
int64_t groups_with(const RankGroups *g, int64_t rank);

typedef struct {
    const char *axis;  /* "tp" */
    const char *place; /* "shard(0)" | "replicate" (I) | "varying_use" (R) | "partial" |
                          "partial(max)" | "zigzag(1)" */
} TracePlace;

typedef struct {
    RankSet ranks;
    int64_t shape[TRACE_MAX_DIMS];
    int64_t bytes;
} TraceLocal;

/* A value's layout as records show it: shared by param and value records. */
typedef struct {
    const char *name;
    int nd; /* stored dims */
    int64_t global_shape[TRACE_MAX_DIMS];
    const char *dim_symbol[TRACE_MAX_DIMS]; /* "B/dp", "S/(cp*sp)", "D": the symbolic local shape,
                                               one text per dim */
    const char *symbolic;                   /* "[B/dp, S/(cp*sp), D]" */
    int n_places;
    TracePlace *place;
    int n_local;
    TraceLocal *local;   /* per rank class of this value */
    const char *pending; /* "tp": a sum over these axes is pending; NULL if none */
} TraceShape;

typedef struct {
    TraceShape compute, rest; /* layouts: in compute, at rest */
    const char *plan_name;    /* name in the plan's scheme */
    int n_placements;
    const char **placements; /* PyTorch's notation, one per mesh axis that the parameter lives on:
                                "Shard(0)" */
    const char *style;       /* "colwise"; NULL: no line names it */
    const char *module;
    int64_t bytes;    /* per rank, largest */
    const char *file; /* matched_by; NULL */
    int line;
    int layer;
    /* cuts of each stored dim in order, for shard pictures: text such as "tp:chunk" joined by "/"
     * per dim, with packed blocks */
    const char *cuts[TRACE_MAX_DIMS];
    const char *on; /* axes of the mesh of PyTorch's DTensor that it is: "dp_shard*tp"; "": it
                       stays a plain Parameter. NULL: the plan's styles are not PyTorch's */
    const char *
        summed; /* axes over which the plan declares the sum of its gradient: "dp*tp"; NULL: none */
    const char
        *planted; /* the mistake that the plan plants in it at rest: "offset: 1"; NULL: none */
    const char *planted_at; /* with it, "plan.yaml:14": what plants it; NULL: `line` */
} TraceParam;

/* A module that a line of the plan speaks of, or a unit of fully_shard: who hangs a hook on it. */
typedef struct {
    const char *module; /* TRACE_ROOT: the model itself */
    const char *style;
    const char *before, *after; /* "api", "style", "fsdp", "transformers"; NULL: no hook there */
    const char *file;
    int line;
} TraceModule;
#define TRACE_ROOT "(root)"

/* The first and the last step during which something is held: a gathered unit of parameters (it may
 * be gathered once step `from` has begun, and is given up after step `until`), a value's buffer. */
typedef struct {
    int from, until;
} TraceHeld;

typedef struct {
    int step; /* the step that makes it; -1 for inputs */
    Phase pass;
    TraceShape shape;
    ValueRole kind;
    Subject subject; /* of its name */
    int layer;
    int way;   /* 1: of a micro-batch that enters a pipeline at its other end (DualPipe) */
    bool once; /* in a pipeline: made once a step, after the last micro-batch */
    const char *planted; /* input: the mistake that the plan plants in it: "reseed"; NULL: none */
    const char *planted_at; /* with it, "plan.yaml:14": what plants it; NULL: not known */
    int list; /* in rows: the step that made the index list which says which; -1: it has no rows.
                 Local shapes have the rows to expect where all experts are asked for as often */
    int64_t most;     /* rows that any rank can have of it, whatever the router says */
    const char *room; /* with a capacity, that many as frameworks write them: "[E/ep, ep*C, D]" */
    const TraceHeld *alive; /* while a rank holds its buffer; NULL: it is a view, or in another's */
    int64_t n_numbers;      /* small values: numbers of the unsharded value, row-major; else 0 */
    double *numbers;
} TraceValue;

typedef struct {
    int step;
    const char *op, *label, *glyph, *module, *part,
        *style; /* part: attention mlp moe norm embedding head loss */
    int layer;
    RankSet ranks; /* rank class */
    int n_inputs;
    const char **inputs; /* values read: activations and parameters, in operand order */
    int *input_step; /* step that made each input as read (a moved copy has its own), -1: input or
                        parameter at rest */
    const char *output;
    Subject makes, *reads; /* of output and inputs */
    double flops;
    int64_t bytes; /* read and written, per rank */
    Phase pass;
    const char *iteration_text;
    int iteration, microbatch;
    bool recompute;
    bool attends;        /* attention, a part of it, or the adjoint of either */
    bool product;        /* a product with a matrix of weights, or the adjoint of one */
    const char *mask;    /* of a part of attention, beside the causal one: "window 6", "chunk 8", or
                            in its place "none"; NULL: it is the causal one */
    const char *wrong;   /* what the static check found at this step; NULL: nothing */
    const char *planted; /* the mistake that the plan plants here: "local"; NULL: none */
    const char *planted_at; /* with it, "plan.yaml:14": what plants it; NULL: not known */
} TraceCompute;

/* Bytes of one collective on a class of ranks. */
typedef struct {
    RankSet ranks;
    int64_t bytes_in, bytes_out, bytes_sent;
} TraceTraffic;

/* What one coordinate of a pipeline's axis does, in its order: the forward (F) of a micro-batch on
 * a stage, its backward (B), or a half of that (I: gradient of the input, W: of the weights). */
typedef struct {
    int rank, stage, microbatch; /* rank: the coordinate */
    const char *kind;
    bool joined;       /* runs together with the next one of its rank */
    double start, end; /* modelled seconds; both 0: none were modelled */
    /* bytes beside what lies at rest, of the rank there that has most: at most meanwhile, and from
     * its end to the next one's begin; part of each: copies of parameters, gathered for use */
    int64_t held, held_gathered, kept, kept_gathered;
} TraceAction;

/* Where a coordinate of a pipeline's axis stands for ever in a schedule that comes to no end. */
typedef struct {
    int rank, stage;            /* rank: the coordinate */
    const char *action, *waits; /* "1B0"; what it waits for, in words */
} TraceStuck;

typedef struct {
    int step;
    const char *op;   /* "all_gather" ... */
    const char *axis; /* group or axis name as the plan says: "sp" */
    const char *axes; /* the mesh axes: "tp", "dp*cp" */
    RankGroups groups;
    const char *dtype, *reduce; /* "sum", "max", "avg": as it is done; NULL */
    int64_t bytes_in, bytes_out,
        bytes_sent; /* per rank; where groups are unequal each is the largest of any rank */
    int n_local;    /* unequal groups: bytes per class of ranks; 0: all ranks have those above */
    TraceTraffic *local;
    int64_t row_bytes; /* of values in rows: of one; bytes above are then those to expect, where all
                          experts are asked for as often. 0: no rows, or an index list */
    int64_t most_in, most_out, most_sent; /* rows at most, whatever the router says, of any rank */
    int times; /* done more than once (a planted mistake): how often; bytes_sent is of all; else 0
                */
    int shift; /* blocks are those of the member so many places after (a planted mistake); else 0 */
    int64_t alone; /* 1 + the only rank that a planted mistake changes; 0: all, or none */
    int per_step; /* with micro-batches: how many of them do it, for bytes are of one; 0: it is done
                     once in a training step */
    const TraceHeld *held; /* gathers of parameters; NULL: of nothing else */
    int n_with, *with; /* steps whose data travel with this one (FSDP units); they have no record of
                          their own */
    int n_with_from, *with_from; /* steps that make what those read; parameters at rest have none */
    const char *value;
    Subject subject;        /* of value */
    int value_step;         /* step that made what it reads */
    int dim;                /* stored dim that is gathered or scattered, -1 */
    const char *dim_symbol; /* "S" */
    Phase pass;
    const char *why, *file;
    int line; /* 0: none */
    bool inferred;
    const char *module, *part;
    const char *where; /* in the module's call: "input", "body" or "output"; NULL: in none's */
    int layer;
    const char *wrong; /* what the static check found at this step; NULL: nothing */
    const char
        *planted; /* name of the mistake that the plan plants here: "gradients: none"; NULL: none */
    const char *planted_at; /* with it, "plan.yaml:14": what plants it; NULL: `line` */
    const char *declared;   /* with it, what the layouts ask for: "all_reduce(dp), sum"; the record
                               says what is done */
    bool skipped;           /* of which nothing is left: no rank sends */
} TraceCollective;
/* Fills makes and reads from output and inputs: for records that come as text. */
void trace_compute_subjects(Arena *arena, TraceCompute *c);
/* Bytes of a collective on one rank: of its class, or the record's. */
TraceTraffic collective_on(const TraceCollective *c, int64_t rank);
/* How often it is done: 0 where a planted mistake skips it. */
int collective_times(const TraceCollective *c);
/* How often a training step does it, all micro-batches together. */
int collective_per_step(const TraceCollective *c);
/* Is it done in micro-batch `part`, 0 to parts - 1? `way` is that of the value that it makes. What
 * is done once a step counts to the first one if it brings parameters, else to the last. */
bool collective_in(const TraceCollective *c, int64_t parts, int way, int64_t part);

/* A local move without communication (slice, pad, I -> R) that pictures may show as a thin box. */
typedef struct {
    int step;
    const char *op, *value, *axes, *why, *file;
    const char *module, *where; /* as of a collective */
    Phase pass;
    Subject subject; /* of value */
    int value_step;
    int layer;
    int line;               /* of the plan; 0: none */
    const char *wrong;      /* what the static check found at this step; NULL: nothing */
    const char *left_by;    /* with it, the module that leaves the value as it is; NULL: none */
    const char *planted;    /* name of the mistake that the plan plants here; NULL: none */
    const char *planted_at; /* with it, "plan.yaml:14": what plants it; NULL: `line` */
} TraceLocalMove;

typedef struct {
    int step; /* -1: inputs and parameters */
    const char *value;
    Phase pass;
    CheckLevel level;
    RankSet ranks;
    double max_abs, max_rel, bound, used;
    const char *verdict;       /* "PASS" "SUSPECT" "FAIL" */
    int iteration, microbatch; /* in which training step and micro-batch of it, from 0 */
    int64_t count;             /* elements compared */
    int projections; /* above 0: not element by element, but by so many random projections of
                        each block of a row; max_abs and bound are of a projection */
    double notice;   /* with projections: an element off by more than this share of its row's
                        root mean square is noticed with probability 1 - 2^-projections */
    /* for a failure */
    int n_index;
    int64_t index[TRACE_MAX_DIMS]; /* first wrong global index (stored) */
    double got, want;
    int n_shape, n_due; /* where sizes differ: of the first wrong rank's block, and what is due */
    int64_t shape[TRACE_MAX_DIMS], due[TRACE_MAX_DIMS];
    /* of a sum over ranks: what each of a group handed in there, which adds up to `want`; else 0 */
    int64_t n_terms, n_term_ranks;
    double *terms, *term_ranks; /* the number, and whose it is */
    const char *cause;
    int n_rank_error;
    struct {
        int64_t rank;
        double error;
    } * rank_error;
} TraceCheck;

typedef struct {
    int step;
    RankSet ranks;
    const char *category; /* at rest "parameters" "optimizer"; "gradients" of parameters, "gathered"
                             copies of parameters, "activations": all else */
    int64_t bytes;
} TraceMemory;

/* How far a value is from the unsharded float64 model's, at the end of all that was computed before
 * it: of the last micro-batch and training step of a small run. */
typedef struct TraceDistance {
    int step; /* that made it; -1: an input or parameter */
    const char *value;
    double max_abs; /* the largest difference on any rank */
    double top;     /* the largest magnitude of the unsharded value */
    double bound;   /* what rounding is trusted to stay below: a share of `top` */
    RankSet ranks;  /* whose difference is larger */
} TraceDistance;

/* A few real numbers of one collective (or slice) of an executed run, for the storyboard: one
 * element per chunk and member of one group, before and after. Chunk c is what member c sends or
 * ends with. */
typedef struct {
    int step;
    const char *value;
    int64_t size, first; /* ranks in the group; its first rank */
    int64_t n_chunks, n_before, n_after;
    double *chunks; /* numbers of the chunks shown: all, or some of a large group */
    double *before; /* [chunk][member]; all_gather: [chunk], of its owner */
    double *after;  /* [chunk], from the result of the run */
    int n_at;
    const char **at; /* [chunk]: global index of its element, "[0, 16, 0]" */
    /* of small chunks all elements, row by row; else 0 and NULL */
    int64_t n_rows, n_columns, n_whole, n_made;
    double *rows, *columns; /* [chunk]: its elements as a matrix */
    double *whole;          /* [chunk][member, of a gather its owner alone][element], before */
    double *made;           /* [chunk][element], from the result of the run */
} TraceSample;

/* How many rows (one token for one expert) each rank has in an index list that a step of an
 * executed run made or moved, by expert: of the first micro-batch of the first step. */
typedef struct {
    int step;
    const char *value; /* of the list */
    int64_t experts, n_rows;
    double *rows; /* [rank][expert] */
    /* of small runs, else 0 and NULL */
    int64_t n_tokens, n_weights, n_scores;
    double *tokens;  /* of each row, in the order of `rows`: sequence * length + position */
    double *weights; /* of each row: what its expert's result is multiplied by */
    double *scores;  /* [token][expert]: by which a list was chosen; of other lists none */
    int weight_step; /* that made the weights */
    int64_t room; /* rows that an expert takes of the tokens that its rank has, at most; 0: all */
} TraceRouted;

/* A choice of a router that rounding alone may make: the unsharded run took the run's over. */
typedef struct {
    const char *value; /* the index list */
    int n_taken, n_left;
    int64_t taken[TRACE_MAX_DIMS], left[TRACE_MAX_DIMS]; /* expert, sequence, position: of the row
                                                            that the run has, and of the one that
                                                            the unsharded run had in its place */
    double gap, bound;                                   /* of the two scores */
    int64_t iteration;                                   /* training step, from 0 */
} TraceTie;
/* Rows that a collective of an executed run moved: of the first micro-batch of the first step. */
typedef struct TraceExchange {
    int step;
    const char *value;
    int64_t size;                /* ranks of a group */
    int64_t n_in, n_out, n_sent; /* ranks each */
    double *in, *out, *sent;     /* rows of a rank before and after; that it sends to others */
    int64_t n_to, n_from; /* ranks x size each; 0 for an all-reduce, and where that is very many */
    double *to;   /* [rank][member of its group]: rows that by the rank's own list go to it */
    double *from; /* [rank][member]: rows that came from it */
} TraceExchange;

typedef struct {
    RankSet ranks; /* events of one rank class; the first member stands for all */
    int step;
    const char *stream; /* "compute", or the axis */
    const char *name;   /* for people: "AG input_norm" */
    const char *kind;   /* "compute" "collective" */
    double start, end;  /* seconds */
    double wait;        /* from its start on it waits for the last of its group: nothing is sent */
    double exposed, wait_exposed; /* compute stands still: while it sends; while it waits */
    double work, moved; /* what its time is made from: FLOPs; bytes of memory, of a collective sent
                         */
    const char *formula;
} TraceEvent;

/* One step on one rank of a run whose ranks were processes, as it was measured: in seconds since
 * the first step of the last micro-batch and training step, the time of checks left out. Each
 * begins when all ranks have ended the one before; or, by the clocks of GPUs that send from where
 * blocks lie, when the rank came to it in a walk that nobody checked: there steps of several
 * streams overlap. */
typedef struct TraceMeasured {
    int step;
    int64_t rank;
    double start, end, wait; /* wait: of this time, for other ranks */
    int64_t wire_bytes;      /* bytes of values that it sent, or gave the engine for a sum */
    int64_t n_sent;
    double *sent; /* to each rank, where it sent any itself; else NULL */
} TraceMeasured;

/* A tensor of the file given with --against, or a value that the file lacks. */
typedef struct TraceAgainst {
    const char *name;   /* in the file; a missing one: ours */
    const char *result; /* "equal" "different" "only in the file" "only in the model" "not read" */
    int64_t count;      /* numbers compared */
    double max_abs, max_rel, tolerance; /* max_rel, tolerance: of the file's largest magnitude */
    const char *why; /* what is wrong with its shape, order or numbers; or NULL */
} TraceAgainst;

typedef struct Trace {
    Arena *arena;
    /* run */
    const char *plan, *title, *hash, *version, *backend, *dtype;
    const char *executed_in; /* the dtype of the numbers, where it is another; NULL */
    PassKind pass;
    int n_axes;
    struct TraceAxis {
        const char *name;
        int64_t size;
    } * axes;
    int n_groups;
    struct TraceGroup {
        const char *name, *axes;
    } * groups;
    int64_t ranks;
    int n_model;
    struct TraceDim {
        const char *name;
        double value;
    } * model; /* B S D H K d F V L eps ...; B: of one micro-batch; shrink, microbatches: if > 1 */
    const char *schedule, *schedule_axis; /* of a pipeline; NULL: there is none */
    int stages;
    /* The mean idle time of a rank, taken apart: by the closed form, as if all stages took the same
     * and messages nothing; what is added as stages differ, and by messages. */
    const char *bubble_form;  /* "(p-1)(F+B)"; NULL: there is none of these times */
    const char *bubble_unfit; /* then: that of the schedule, and what it is of instead, or NULL */
    double bubble, bubble_stages, bubble_messages; /* seconds; what is added may be below 0 */
    const char *slow_stages; /* those that take longest for a micro-batch, "0, 3" */
    double slow_times;       /* how many times the mean of all stages */
    /* for the model of time, not written: the schedule with its messages, and of each step its
     * stage and computation (ActionKind); -1: not of a first copy, or not done for every
     * micro-batch */
    const struct Schedule *order;
    int n_order_steps, *step_stage, *step_action, schedule_buffers;
    int n_settings;
    struct TraceSetting {
        const char *name, *text;
    } * settings; /* what decides the numbers besides: seed, loss, optimizer, ... */
    const char *model_name;
    const char *model_kind; /* "mlp": of a model that plans give by its parts and nobody has named;
                               NULL: it has a name of its own */
    const char *names;      /* naming scheme */
    bool executed;
    int n_classes; /* rank classes: same local shapes and same steps in the whole program */
    RankSet *classes;
    const char *hardware; /* profile and its constants, one line, if there are events */
    int64_t node_ranks;   /* neighbours that share a node of that machine; 0: not known */
    const char *links[2]; /* what a rank sends inside a node, and across: "370 GB/s" */
    /* the same as numbers: FLOP/s of the run's dtype, bytes/s of memory, seconds per kernel,
     * bytes/s of both links; 0: not known */
    double flop_rate, memory_rate, launch, link_rate[2];
    int *param_slot, n_param_slots; /* trace_index: names to 1 + index; NULL: not made */
    /* trace_index_values: names to 1 + the first value of that name, and from there to the next; of
     * the first n_valued */
    int *value_slot, n_value_slots, *value_next, n_valued;
    int n_params, cap_params;
    TraceParam *params;
    int n_modules, cap_modules;
    TraceModule *modules;
    int n_values, cap_values;
    TraceValue *values;
    int n_computes, cap_computes;
    TraceCompute *computes;
    int n_collectives, cap_collectives;
    TraceCollective *collectives;
    int n_moves, cap_moves;
    TraceLocalMove *moves;
    int n_checks, cap_checks;
    TraceCheck *checks;
    int n_distances, cap_distances;
    TraceDistance *distances;
    int n_memory, cap_memory;
    TraceMemory *memory;
    int n_samples, cap_samples;
    TraceSample *samples;
    int n_routed, cap_routed;
    TraceRouted *routed;
    int n_exchanges, cap_exchanges;
    TraceExchange *exchanges;
    int n_actions, cap_actions;
    TraceAction *actions; /* by rank, then in the order of its list */
    /* of a schedule that comes to no end, not written: actions are those that are done, in units of
     * a forward's time; by rank */
    int n_stuck;
    TraceStuck *stuck;
    int n_events, cap_events;
    TraceEvent *events;
    int n_measured, cap_measured;
    TraceMeasured *measured;
    int n_ties, cap_ties;
    TraceTie *ties;
    int n_against, cap_against;
    TraceAgainst *against;
    int n_diags;
    Diag *diags;
    /* verdict */
    const char *verdict; /* "equivalent" "different" "invalid"; NULL: not run */
    const char *worst_value;
    double worst_used;
    int64_t n_pass, n_suspect, n_fail;
    const char *first_wrong;
    int n_undeclared;
    const char **undeclared; /* gradients whose sum over some axes no line of the plan declares:
                                made, and `inferred` */
    int n_unasked;
    const char **unasked; /* moves of the forward pass that no line of the plan asks for, "slice of
                             layers.0.mlp.down": made */
    /* the comparison with the unsharded float64 model, where it used most of its bound */
    const char *end_to_end; /* value; NULL: not compared */
    double end_to_end_off;  /* of its largest magnitude, as is its bound */
    double end_to_end_bound;
} Trace;

/* An empty trace in the arena, which its records share. */
Trace *trace_new(Arena *arena);
/* What a quick check left to chance. What random projections alone held, of all checks: how many
 * products and sums over ranks, by how many projections of each block, and the one of which they
 * would notice the least (`notice`, NULL if there is none). */
typedef struct TraceProjected {
    int64_t products, sums;
    int projections;
    const TraceCheck *notice;
    /* ops that bits hold, and float64 was asked of some of their numbers only: how many, of which
     */
    int64_t partly, asked, numbers;
} TraceProjected;
TraceProjected trace_projected(const Trace *t);
/* "7 products and 1 sum over ranks" */
const char *trace_projected_text(const TraceProjected *p, Arena *a);
/* Micro-batches of a step, of which the records show one; 1: there is but one. */
int64_t trace_microbatches(const Trace *t);
/* Do micro-batches enter a pipeline at both ends? Then the records show one of each way. */
bool trace_both_ways(const Trace *t);
/* Does anything that it computes belong to the backward pass? */
bool trace_has_backward(const Trace *t);
/* The rank's coordinate on the axis of the pipeline; -1: there is none. */
int trace_pipe_coord(const Trace *t, int64_t rank);
/* Makes trace_param quick; once, when all parameters are there. */
void trace_index(Trace *t);
/* Makes trace_value quick; once, when all values are there. */
void trace_index_values(Trace *t);
/* The value of that name made by that step; failing that, the last one of that name at or before
 * it; NULL: there is none (or name is NULL). */
const TraceValue *trace_value(const Trace *t, const char *name, int step);
/* The first parameter with this name, in the checkpoint or in the plan's scheme; NULL: none (or
 * name is NULL). */
const TraceParam *trace_param(const Trace *t, const char *name);
/* Is it the shape of a weight of experts, one matrix behind another? */
bool trace_of_experts(const TraceShape *weight);
/* The collective that does what step `step` does, with others or alone; NULL: none does. */
const TraceCollective *trace_collective_of(const Trace *t, int step);
/* Does the step add up gradients of one value or parameter, one for each of its uses? */
bool trace_adds_uses(const TraceCompute *c);
/* The part of compute record i. A norm inside a layer belongs to what follows it, in backward to
 * what came before. NULL: the step has none, as a sum of gradients. */
const char *trace_unit(const Trace *t, int i);
/* Writes all records in step order, one JSON object per line: run, params, then by step, then
 * verdict. False and E0105 (the file is then what it was). */
bool trace_write(const Trace *t, Diags *d, const char *path);
/* A set of ranks as records write it: a JSON array of ranks, above 64 of "first:stop:stride" or of
 * products of axes. In `arena`. */
const char *trace_ranks_json(const RankSet *r, Arena *arena);
/* The same as text in an arena (for stdout and tests). `with_events` false leaves out times,
 * modelled and measured. */
char *trace_text(const Trace *t, Arena *arena, bool with_events, size_t *n);
/* Reads a trace. NULL and a diagnostic with the line (E0109) if it is truncated, foreign or of
 * another schema. */
Trace *trace_read(Arena *arena, Diags *d, const char *file, const char *text, size_t n);

/* Texts for people. */
const char *rankset_text(const RankSet *r, Arena *arena); /* "0-7", "0,2", "0:1024:8" */
/* The same in a sentence: "rank 0", "ranks 0-7". */
const char *rankset_words(const RankSet *r, Arena *arena);
/* "rank 3", "ranks 0 to 7". */
const char *ranks_span(int64_t first, int64_t last, Arena *arena);
int64_t rankset_count(const RankSet *r); /* ranks in it */
bool rankset_has(const RankSet *r, int64_t rank);
/* first, first + stride, ..., `count` of them; none for a count of 0 or less. */
RankSet rankset_range(Arena *arena, int64_t first, int64_t count, int64_t stride);
/* From an ascending list of ranks, compressed into runs. */
RankSet rankset_from(Arena *arena, const int64_t *ranks, int64_t n);
/* The same as boxes of the mesh whose n_axes whole axes stand in `mesh` (first 0, count = size),
 * where the runs would be many. */
RankSet rankset_on_mesh(Arena *arena, const RankBox *mesh, const int64_t *ranks, int64_t n);
/* An ascending list of ranks as disjoint boxes of that mesh: *n_boxes of them, in `arena`. */
RankBox *rankset_cut(Arena *arena, const RankBox *mesh, const int64_t *ranks, int64_t n,
                     int *n_boxes);
/* From disjoint boxes of one mesh: as runs, if few say the same. */
RankSet rankset_boxes(Arena *arena, const RankBox *box, int n);
/* The mesh of a trace as a box. */
RankBox trace_mesh_box(const Trace *t);
/* One rank of it, the smallest; 0 if it is empty. */
int64_t rankset_first(const RankSet *r);
/* Each rank once, in no order that is promised: `RankWalk w = {0}; while (rankset_next(r, &w,
 * &rank)) ...`. */
typedef struct {
    int i;
    int64_t k;
} RankWalk;
bool rankset_next(const RankSet *r, RankWalk *w, int64_t *rank);
/* The same runs, or boxes: two spellings of one set are two. */
bool rankset_same(const RankSet *a, const RankSet *b);
/* "dp=0:4094 cp=15": the axes that a box cuts. */
const char *rankbox_text(const RankBox *b, Arena *arena);
const char *bytes_text(int64_t bytes, Arena *arena); /* "16 MiB", "1.51 GiB" */
const char *count_text(double n, Arena *arena);      /* "1.07 G" */
const char *time_text(double seconds, Arena *arena); /* "42.1 µs" */
/* A sum of n times and its parts, in one unit and with as many digits that each part above 0 shows.
 * Each is rounded by itself, so that it reads as it does elsewhere; where what is read would not
 * add up all have another digit, or fewer. Parts into out[]; returns the sum. */
const char *time_sum_text(const double *part, int n, const char **out, Arena *arena);
#endif
