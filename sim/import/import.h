/* Plans of other frameworks as ours. Each framework has a file of its own that reads what its users
 * write and gives a Draft: the table of modules and styles, mesh, model and data, with places. One
 * writer (draft.c) makes the plan's text of it. What a plan cannot say is an error at its place in
 * the framework's file. Refuses to judge: the ordinary passes do, on the text that is made here. */
#ifndef SP_IMPORT_IMPORT_H
#define SP_IMPORT_IMPORT_H
#include "import/value.h"
#include "import/write.h"
#include "plan/plan.h"

/* What the command line says beside the file. */
typedef struct {
    const char *framework; /* "torch"; NULL: by the file's name and content */
    const char *path;      /* of the file; "-": standard input; NULL: there is none */
    const char *text;      /* its content */
    size_t n;
    int n_args; /* arguments instead of a file: megatron -- ... */
    const char *const *arg;
    const char *model, *config, *mesh, *tp_plan, *ep_plan; /* options; NULL: not given */
    const char *tp_plan_text; /* what --tp-plan names, where it is no file; NULL: read it */
    const char *hf_version;   /* of transformers; NULL: the newest that is known */
    int64_t tp, ep;           /* -1: not given */
    bool loss_parallel;
    const char *args; /* of a script or a Python file: what the caller knows; NULL: nothing */
    bool full;        /* sizes as they are */
    int64_t layers;   /* of the model, which a pipeline is cut of; 0: as many as it has */
    const char *dir;  /* folder of the plan that is made: paths in it start there */
} ImportInput;

/* A plan as text, and where its pieces come from. */
typedef struct {
    const char *text; /* NULL: errors are in the diagnostics */
    size_t n;
    const DiagOrigin *origin;
    int n_origin;
} ImportedPlan;

/* The names of the frameworks, NULL-terminated; in `a`. */
const char *const *import_names(Arena *a);
/* The framework of a file ("torch", "torchtitan", "megatron", "jax", "hf"), by the ending of its
 * name and what stands in it; NULL: none of them, perhaps a plan. Looks at the beginning only. */
const char *import_recognise(const char *path, const char *text, size_t n);
/* An option of `in` that files of none of these n frameworks read is an error in `d`, E0212: it
 * would do nothing. Is there one? `path`: the file's, or one of theirs. */
bool import_idle(Arena *a, Diags *d, const ImportInput *in, const char *const *framework, int n,
                 const char *path);
/* Makes the plan. All errors at once in `d`. The text lives in `a`. */
ImportedPlan import_plan(Arena *a, Diags *d, const ImportInput *in);

/* A help of the passes in the words of the framework's own file ("write `\"w3\":
 * ColwiseParallel()`"), for diags_words. In `a`. */
const char *import_words(Arena *a, const char *framework, const char *hint);

/* Is there a module of that pattern ("model.layers.*.mlp.up_proj") which the plan that Hugging
 * Face's library ships cuts, in some model? */
bool import_hf_ships(const char *pattern);

/* ---- between the frameworks and the writer ---- */
typedef struct {
    const char *pattern;
    const char *style;   /* flow YAML: "colwise", "{style: rowwise, output: shard(1)}" */
    const char *comment; /* what stood there: "ColwiseParallel" */
    Loc loc;             /* of the pattern; no file: a line that only the framework's code has */
    Loc style_loc;
    int depth; /* of a key of the plan: below how many others it stands */
} DraftLine;
typedef struct {
    const char *name;
    int64_t size;
    Loc loc;
} DraftAxis;
/* A name for a product of axes, outermost first: "dp*cp". */
typedef struct {
    const char *name, *axes;
} DraftGroup;
typedef struct {
    Arena *a;
    Diags *d;
    const ImportInput *in;
    const char *file; /* for diagnostics */
    /* model: a preset, a config's path, or keys of `model:` as flow YAML ("kind: mlp, ...") */
    const char *preset, *config, *model_keys;
    Loc model_loc;
    const char *family; /* model_type of a preset or config, NULL: llama's, or unknown */
    bool mlp;           /* of layers without a block: sizes are taken as they are */
    int64_t hidden, head_dim, n_layers; /* widths, to shrink by; 0: unknown */
    int64_t heads, kv_heads, ffn;       /* that tp cuts; 0: unknown */
    bool small;     /* the model's sizes were made to be run: nothing is shrunk */
    int64_t layers; /* how many of them; 0: all; -1: one, or as many as the patterns name */
    int64_t batch, sequence, rows; /* 0: as the mesh asks */
    int64_t least_batch;           /* that a batch is made small to; 0: two for each rank of dp */
    int64_t microbatches;          /* that the batch is cut into by a pipeline; 0: there is none */
    Loc data_loc;
    const char *cut_sequence; /* axes that cut the sequence, or NULL */
    const char *cut_batch;    /* axes beside those named dp, or NULL */
    Loc cut_loc[2];          /* of what cuts the batch, the sequence; none: where the data stands */
    const char *block_input; /* layout of a first layer's input, or NULL */
    const char *dtype;       /* NULL: f32 */
    int n_axes;
    DraftAxis axis[16];
    int n_groups;
    DraftGroup group[8];
    Names names;
    int n_lines, cap_lines;
    DraftLine *line;
    int n_extra, cap_extra; /* whole top-level lines: "boundary: per_module" */
    DraftLine *extra;       /* pattern: the key, style: its value; NULL: it stands below */
    int n_remarks, cap_remarks;
    const char **remark; /* comments at the head of the plan */
} Draft;

/* Adds to the draft: a line of the table, a key of the plan, a remark on top of it. Texts are
 * kept, not copied. */
void draft_line(Draft *x, const char *pattern, Loc loc, const char *style, Loc style_loc,
                const char *comment);
void draft_key(Draft *x, const char *key, const char *value, Loc loc, const char *comment);
/* A key of the plan below the one that was added last; value NULL: others stand below it. */
void draft_below(Draft *x, int depth, const char *key, Loc loc, const char *value, Loc value_loc);
void draft_remark(Draft *x, const char *fmt, ...) __attribute__((format(printf, 2, 3)));
/* Adds an axis; false and an error if it is there with another size. */
bool draft_axis(Draft *x, const char *name, int64_t size, Loc loc);
/* Ranks that are counted in two ways, each from the axis whose ranks are next to each other: dense
 * layers by their axes, experts by others (what is left of the ranks needs no row). The mesh gets
 * what both are products of, an axis that is cut in two a group of its name, and each of the
 * experts' a group. E0307 where one way does not divide the other. */
bool draft_fold(Draft *x, const DraftAxis *dense, int n, const DraftAxis *experts, int m);
/* Adds a name for axes; false and an error if it stands for other ones, or there are too many. */
bool draft_group(Draft *x, const char *name, const char *axes, Loc loc);
/* The axes that a group stands for, or NULL. */
const char *draft_group_axes(const Draft *x, const char *name);
/* Is the axis one of the product "a*b"? */
bool draft_in_product(const char *product, const char *axis);
/* Size of an axis or group, or 0. */
int64_t draft_axis_size(const Draft *x, const char *name);
/* Does this axis cut the batch? By x->cut_batch; where that says nothing, by its name (dp, dp_..),
 * as in a plan. */
bool draft_cuts_batch(const Draft *x, const char *axis);
/* A model by its preset, at x->model_loc; E0202 or E0214 if it does not run. */
void draft_preset(Draft *x, const char *name);
/* --mesh, --model and --config. What the file has said already must agree. */
void draft_options(Draft *x);
/* Errors (E0208) for what is still missing, with the option that gives it. */
void draft_complete(Draft *x);
/* The naming scheme that most patterns belong to. */
Names draft_names(const Draft *x);
/* The whole plan; empty if there were errors. */
ImportedPlan draft_write(Draft *x);

/* Does this text begin like a JSON object, not like a dict of Python? Both may begin with {"a":. */
bool draft_is_json(const char *text, size_t n);

/* Each reads x->in into the draft; false if there were errors. */
bool import_torch(Draft *x);
bool import_torchtitan(Draft *x);
bool import_megatron(Draft *x);
bool import_jax(Draft *x);
bool import_hf(Draft *x);
#endif
