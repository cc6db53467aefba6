/* Plans as other frameworks write them: the opposite direction of sim/import. What a framework
 * cannot say is an error at its place in the plan, all of them at once; nothing is left out. The
 * sizes of the model, data, optimizer and expectations are not part of such a table and stay in the
 * plan. */
#ifndef SP_EXPORT_EXPORT_H
#define SP_EXPORT_EXPORT_H
#include "assign/assign.h"
#include "import/import.h"

/* A plan that passed, as text of the framework `to` ("torch", "hf", ...), in the arena; NULL and
 * errors in `d`: E0212 for a framework that is not known, E0218 for what it cannot say. The plan is
 * laid over its model once more, without numbers. */
const char *export_plan(Arena *arena, Diags *d, const Plan *p, const char *to);
/* The format of the framework's text, as file names end: "py", "json"; NULL: it is not known. */
const char *export_format(const char *to);
/* The frameworks, with a blank between. */
extern const char export_words[];

/* ---- between the door and the frameworks ---- */
typedef struct {
    Arena *a;
    Diags *d;
    const Plan *p;
    const Assign *as;
} Export;
/* Each framework's text; NULL if there were errors. */
const char *export_torch(const Export *e);      /* parallelize_module, fully_shard and the mesh */
const char *export_hf(const Export *e);         /* a tp_plan, as JSON */
const char *export_jax(const Export *e);        /* PartitionSpecs, as JSON */
const char *export_megatron(const Export *e);   /* the command with its arguments */
const char *export_torchtitan(const Export *e); /* TOML */

/* What each axis of a plan is for, where a framework knows some roles of axes and no others. */
typedef struct {
    int64_t replicate, shard, cp, tp, pp; /* ranks; 1: there is no such axis */
    int tp_axis;                          /* -1: none */
    int64_t ep, etp; /* of the experts, on some of these ranks; etp 0: not said by a group */
} Roles;
/* False and an error where two axes of more than one rank have one role. */
bool export_roles(const Export *e, Roles *r);
/* Errors for keys of a plan that are code to all frameworks but PyTorch, or no plan at all. With
 * `context` that key is said, with `stages` pipelines and what is computed again. */
void export_refuse_keys(const Export *e, const char *framework, bool context, bool stages);
/* Of a pipeline: stages of each rank, micro-batches, sequences of a rank of data parallelism in a
 * step and in one of them. Without one: one stage, one micro-batch. False and E0218: its schedule
 * is one of a file or has no name there, or ranks do not share the batch evenly. */
typedef struct {
    int64_t chunks, parts, local, size, layers;
} ExportStages;
bool export_stages(const Export *e, const Roles *r, const char *framework, ExportStages *s);
/* The path of a module as frameworks write it: in the plan's names, or torchtitan's where those are
 * no module tree. */
const char *export_path(const Export *e, const GModule *m);

/* What the framework makes of a text that was written of a plan, beside the plan. */
typedef struct {
    bool same;
    int steps;                 /* of the program, up to which they agree */
    Loc at;                    /* the plan's line of what differs */
    const char *ours, *theirs; /* what the plan does there, and what the framework does; ours NULL:
                                  theirs is an error */
} ExportDifference;
/* Imports in->text, lays its keys over the plan's model and data, lowers both and compares. */
ExportDifference export_difference(const Export *e, const ImportInput *in);
/* E0218 for a difference. */
void export_refuse_difference(const Export *e, const char *framework, const char *hint,
                              const ExportDifference *x);
/* What `import` gets beside a text of the framework that was written of the plan. */
ImportInput export_input(const Export *e, const char *framework, const char *text);
/* The first of n texts that means what the plan does. NULL and E0218 if none does, at the place up
 * to which the nearest agrees; `hint` says what the framework can do. */
const char *export_first_same(const Export *e, const char *framework, const char *const *text,
                              int n, const char *hint);

/* One module's style as a call of PyTorch's, "ColwiseParallel(input_layouts=Shard(1))"; NULL and
 * errors. `axis`: the one that it acts on. */
const char *export_torch_style(const Export *e, int module, const char *axis);
/* The comment that begins a text: of which plan it is, as `what`, and what it leaves to others. */
Str export_head(const Export *e, const char *what, const char *framework, const char *rest);
/* "x\"y" as a string of Python, JSON and TOML. */
const char *export_python_text(Arena *a, const char *s);
/* Refuses the plan for what the passes before have said of it: that it does not hold; and, with
 * `asked`, moves and sums that no line asks for and shards that DTensor raises for or gathers. */
void export_refuse_noted(const Export *e, bool asked);
/* E0218 at a place of the plan. */
void export_refuse(const Export *e, Loc at, const char *hint, const char *fmt, ...)
    __attribute__((format(printf, 4, 5)));
#endif
