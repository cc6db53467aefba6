/* The lowered program: plain data, a list of steps over values with layouts. A step is one op, one
 * single move, one adjoint or one sum; it lists what it reads and writes and why it is there.
 * Planted bugs and mutations are edits of it. */
#ifndef SP_LOWER_PROGRAM_H
#define SP_LOWER_PROGRAM_H
#include "lower/act.h"
#include "assign/assign.h"

typedef struct Part { /* one use of a value: which operand of which node; node -1: the seed */
    int node, operand;
    int way; /* of a pipeline whose micro-batches go both ways: which of them (stages_way) */
} Part;

typedef struct Val {
    int id;
    int root;   /* the first of its copies: same value, other layouts */
    int tensor; /* of the graph */
    bool cot;   /* the cotangent of the tensor */
    bool diff;
    ValueKind kind;
    Layout L;
    const char *group[MESH_MAX_AXES]; /* name under which an axis was written; NULL: its own */
    int list;  /* in rows: the value that says which rows there are, an index list that lies as this
                  does; a list follows itself; -1: dense */
    int stage; /* of the pipeline, where it lives; 0 without one */
    int step;  /* that makes it; -1: input or parameter at rest */
    int n_parts;
    const Part *parts;  /* cotangents: the uses they sum */
    const ReadAct *act; /* what is done to an input or parameter; NULL: it is read as it lies */
    const char *fault;  /* as `faults` says it: "offset: 1"; NULL: none */
    Loc planted_at;     /* the entry of `faults` that says so */
} Val;

typedef enum { ST_OP, ST_MOVE, ST_CLAIM, ST_ADJOINT, ST_SUM, ST_SEED } StepKind;

typedef struct Step {
    int id;
    StepKind kind;
    int node, operand; /* op, adjoint */
    int nin;
    int in[RULE_MAX_IN + 2]; /* op: operands. adjoint: cotangent, then the operands (-1: not read),
                                then the forward output or -1. move, claim, sum: sources */
    int out;
    Move move; /* ST_MOVE: from, to, kind, axes: as declared */
    Phase pass;
    const char *why;
    const char *back;  /* of a move: what its adjoint is for; NULL: the adjoint's kind says it */
    Loc loc;           /* plan line that asked for it */
    const char *group; /* name of the axes as the plan says */
    bool unasked;      /* no line of the plan asks for it */
    bool inferred;     /* the same, and it communicates: a collective that nobody asked for */
    int module;        /* module on whose behalf, -1 */
    bool by_op;        /* of a move: PyTorch's op makes it of a DTensor, for itself */
    bool recompute;
    bool packs;     /* of a slice: a block of its own, which outlives what it was cut from */
    int stage;      /* of the pipeline, that does it: a send is its source's */
    bool each;      /* of a gradient: done in every micro-batch (grad_sync) */
    bool goes_on;   /* what it makes of a gradient goes into such a step, and is not added up */
    int unit;       /* collectives of one FSDP unit: id of its first step; -1: none */
    const Act *act; /* what is done; NULL: what is declared */
    const char
        *fault;     /* who wanted it otherwise: "drop", "scale: 4", as the plan says it; or NULL */
    Loc planted_at; /* the entry of the plan that says so; with `--fault`, the step's own line */
    const char *wrong;   /* what verify found here, for the record; NULL: nothing */
    const char *left_by; /* with it, the module whose line leaves the value as it is: where it is to
                            be mended; NULL: the step's own */
} Step;

typedef struct Program {
    Arena *arena;
    const Mesh *mesh;
    const Graph *graph;
    const Assign *assign;
    int nv, cap_v;
    Val *val;
    int ns, cap_s;
    Step *step;
    int n_forward; /* steps before the backward program */
    int *env;      /* per tensor: the Val that carries it after its declared output */
    int *first;    /* per tensor: the Val as first made (params and inputs: at rest) */
    int *grad;     /* per tensor: the Val of its total cotangent, or -1 */
    int loss;      /* Val of the loss (type I), or -1 */
    struct {       /* of way 1 (stages_way), where there is one: the same of what it has itself */
        int *env, *first, *grad, loss;
    } other; /* env NULL: there is none */
} Program;
/* What carries a tensor after its declared output, what it was first made as, and the loss, of one
 * way. */
int program_env(const Program *p, int tensor, int way);
int program_first(const Program *p, int tensor, int way);
int program_loss(const Program *p, int way);

/* Lowers the graph under the assignment. Errors (labels that lie, pending sums where they must not
 * be) go to a->d. */
Program *lower(Arena *arena, const Assign *a);
/* A sum of a gradient (not the adjoint of a collective of the forward pass) that no line of the
 * plan declares: a step of the backward program, marked `inferred`. */
bool undeclared_sum(const Program *p, const Step *s);
/* N0008 for each line that would declare some of them, with the line in the words of the plan's
 * naming scheme. Returns the names of the gradients in *names (in order, none twice; in the
 * program's arena) and their number. */
int undeclared_notes(const Program *p, Diags *d, const char ***names);
/* N0001 for each kind of move of the forward pass that no line of the plan asks for, with the line
 * that would. Returns them in *names ("slice of layers.0.mlp.down"; in the program's arena) and
 * their number. */
int unasked_notes(const Program *p, Diags *d, const char ***names);
/* Of a step of the forward pass that takes a value for what it is not, because no line asks for the
 * move that would make it so: the line that would, "write `...`". NULL: it is no such step. */
const char *unasked_line(const Program *p, const Step *s);
/* Of a gradient's sum that is due and not made (trust: declared): the line that would declare it.
 * NULL: it is no such step. */
const char *undeclared_line(const Program *p, const Step *s);
/* Where the plan speaks of a step: the line that it comes of, else that of the module which stands
 * nearest by its path, else the mesh. */
Loc program_place(const Program *p, const Step *s);
/* Are the plan's styles those of PyTorch's DTensor? */
bool program_of_torch(const Program *p);
/* N0012 for each axis of `data_parallel` that cuts no tokens and over which a gradient is not a
 * sum: frameworks would add it up all the same. */
void not_due_notes(const Program *p, Diags *d);
/* Appends the optimizer's nodes: element-wise on gradients, parameters and state as they lie at
 * rest. After adjoint_program. */
void lower_optimizer(Program *p);
/* Appends the backward program, derived from rules and layouts alone. Needs a loss. */
void adjoint_program(Program *p);
/* The names of `--fault`, in the order of their table; NULL-terminated. `what` (may be NULL) gets
 * what each does. */
const char *const *fault_names(Arena *arena, const char *const **what);
/* The words of `faults: do:` and its other keys, as they are written; NULL-terminated. `what` gets
 * what each does. */
const char *const *fault_edits(Arena *arena, const char *const **what);
/* Why what is planted in a step changes nothing, whatever the numbers are; NULL: it may. */
const char *fault_idle(const Program *p, const Step *s);
/* Applies `faults:` of the plan and `--fault NAME`. False and diagnostics for steps that do not
 * exist. */
bool apply_faults(Program *p, const Plan *plan, Diags *d, const char *fault);
/* Applies `gradients:` of the plan: what happens to a parameter's gradient instead of what is
 * derived. False and E0205 for patterns that match no parameter. */
bool apply_gradients(Program *p, const Plan *plan, Diags *d);
/* Appends a value like `as`, with an id of its own, no step yet, and itself as root where `as` has
 * none (-1). Only here are values made; pointers to others may move. */
Val *program_add_val(Program *p, const Val *as);
/* A step of no module, node or unit that makes nothing yet. */
Step step_blank(StepKind kind, Phase pass);
/* Appends a step like `as` that makes value `out` (-1: its maker will say). Only here are steps
 * made; pointers to others may move. */
Step *program_add_step(Program *p, const Step *as, int out);
/* What a step does: its act, or what is declared of it. */
Act act_of(const Step *s);
/* The act of a step, to be rewritten by the caller, in the program's arena; `text` says by whom,
 * `loc` the entry of the plan that wants it. */
Act *act_rewrite(Program *p, Step *s, const char *text, Loc loc);
/* Per tensor of the graph: the layer whose nodes read it, in the arena; -1: it is outside of the
 * layers, in the root's unit. */
int *unit_layers(const Program *p);
/* ZeRO on flat buffers: of a gradient that would be summed whole over ranks that each update a
 * range of it, each keeps that range of the sum. After order_units, before lower_optimizer. */
void cut_gradients(Program *p);
/* `data_parallel: unit: block`: gradients of a unit are reduced after its last one is made, and
 * HSDP's sums over copies stand alone. Steps get new ids: before faults are applied. */
void order_units(Program *p);
/* Gathers of parameters and reductions of gradients that one layer's unit does together get the
 * same `unit`; the first of them leads. Those that do something else than declared travel alone. */
void mark_units(Program *p);
/* Marks the moves of gradients that are done in every micro-batch, as the plan's `grad_sync` says.
 * After order_units and cut_gradients: what a step reads is made before it. */
void mark_sync(Program *p);
/* Static check: propagates cut / partial / equal through the explicit program, independently of
 * lower and adjoint_program. Findings go to `d` as E0404 (or W0401 with `warn`) and to the step
 * (`wrong`); returns how many. First finding's step in *first_step (may be NULL). */
int verify(Program *p, Diags *d, bool warn, int *first_step);
/* The index list that the rows of an op or adjoint follow: one for all; -1: it has none. */
int program_list(const Program *p, const Step *s);
/* Tells each op that counts the tokens of a rank by themselves which those are, after `lower`: in
 * `g`, the graph that p was lowered from, as the unsharded run counts them the same way. */
void program_groups(Program *p, Graph *g);
/* Micro-batches: each has a capacity of its own, so the unsharded run of the whole batch, which is
 * in `whole`, counts each by itself too. After program_groups. */
void program_groups_whole(const Program *p, Graph *whole, int64_t parts);
/* `moe: aux_loss: per_shard`: no rank learns what others have counted, each takes its own counts,
 * times the number of ranks, for those of all. False and E0307 where ranks have unequally many
 * tokens, which then are no shares of a mean. */
bool program_own_counts(Program *p, Diags *d);
/* Tells each op that works on one block of keys which positions each block has, after `lower`, in
 * the same way: as the ranks of the ring hold them at its beginning. */
void program_blocks(Program *p, Graph *g);
/* How an index list lies whose rows lie so: cut as their listed letters are, else the same on all
 * ranks. */
Layout program_list_layout(const Program *p, int list, const Layout *rows);
/* Reads of a step, for liveness: fills r[] (at most RULE_MAX_IN + 2) and returns how many. */
int step_reads(const Step *s, int *r);
/* Does the step hand on what it reads, under another layout and no other numbers? Its output is a
 * view of its input: a claim, an identity, a slice, and any move over axes of one rank (there
 * PyTorch's redistribute takes the tensor as it is). Not rows that follow a list, which a move may
 * put in another order. */
bool step_renames(const Program *p, const Step *s);
/* Per value the first and the last step that reads it, p->ns and -1 where none does. With
 * `through`, who reads a view of a value reads that value. */
void program_reads(const Program *p, bool through, int *first, int *last);
/* How many places before its own the block lies that a hop brings. */
int step_places_behind(const Step *s);
/* A name for a step in messages: "layers.0.o_proj", "all_gather of layers.0.input_norm"; of a hop
 * with how many places behind the block lies that it brings: "shift 2 of layers.0.k_rope". */
const char *step_name(const Program *p, const Step *s, Arena *arena);
/* The name of what a step makes: "grad.param.norm.weight". In the program's arena. */
const char *step_value(const Program *p, const Step *s);
/* What a value is called by: the tensor, and whether it is its gradient. */
Subject program_subject(const Program *p, const Val *v);
/* The name of a value in records: "layers.0.q_proj", "grad.layers.0.q_proj",
 * "grad.param.layers.0.attention.wq.weight". */
const char *program_value_name(const Program *p, const Val *v, Arena *arena);
/* Symbolic local shape of a value, one text per stored dim: "B/dp", "S/(cp*sp)", "H*d/tp"; of a
 * range of a buffer one for the list: "flat/dp". Returns how many. */
int program_symbols(const Program *p, const Val *v, Arena *arena, const char **dims);
/* The same as one text, "[B/dp, S/(cp*sp)]". */
const char *program_symbolic(const Program *p, const Val *v, Arena *arena);
/* The stored dim that a letter of a tensor is part of; of LIST the one that the layout cuts. */
int program_stored_dim(const GTensor *t, const Layout *l, int letter);
/* Of one letter of it: "S/(cp*sp)". */
const char *program_letter_symbol(const Program *p, const Val *v, int letter, Arena *arena);
/* Axes by the names under which the plan cut this value: "ep" for dp and cp; "" for none. */
const char *program_axes_called(const Program *p, const Val *v, const AxisList *axes, Arena *arena);
/* The name under which people know the axes of a move: the plan's group or the axes' own names. */
const char *program_axes_name(const Program *p, const Step *s, Arena *arena);
/* Prints the program, one step a line (for --dump lower). */
void program_dump(const Program *p, FILE *f);
#endif
