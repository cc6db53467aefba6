/* A table `pattern: style` of Hugging Face's library laid over a model of which nothing is known
 * but the names of its modules and the shapes of its parameters: what any model has, whether it can
 * be built here or not. The rules are the library's (transformers 5.23, `distributed/`). Refuses to
 * judge mathematics: it says where parameters lie. */
#ifndef SP_IMPORT_NAMED_H
#define SP_IMPORT_NAMED_H
#include "base/diag.h"

enum { NAMED_DIMS = 8 };

/* A line of the table. */
typedef struct {
    const char *pattern, *style, *axis; /* "tp" or "ep" */
    Loc loc, style_loc;
    int params, modules; /* that follow it */
    bool unused;         /* no name is like its pattern */
} NamedRule;
typedef struct {
    const char *name, *generic;   /* "layers.0.x.weight", "layers.*.x.weight" */
    const NamedRule *rule;        /* NULL: none, a whole plain tensor */
    const char *placement;        /* "S(0)", "_S(1, 2)" (cut in two blocks), "R"; NULL: plain */
    int nd, ranks;                /* ranks of the rule's axis; 1: no rule */
    int64_t shape[NAMED_DIMS];    /* of the whole */
    int64_t (*local)[NAMED_DIMS]; /* [ranks]; of each */
} NamedParam;
/* A module that a rule stands for: the library hooks it. */
typedef struct {
    const char *name, *generic, *kind; /* kind: its Python class */
    const NamedRule *rule;
} NamedModule;
typedef struct {
    const char *model_class, *model_type; /* NULL: the file does not say */
    bool has_plan;                        /* it has tables */
    int n_rules, cap_rules, n_params, n_modules;
    NamedRule *rule;
    NamedParam *param;   /* in the file's order */
    NamedModule *module; /* that have a rule */
} NamedPlan;

/* Ranks of each table, below 1: it is left out; and files of a table over the file's, or NULL. */
typedef struct {
    int64_t tp, ep;
    const char *tp_plan, *ep_plan;
} NamedTables;
/* Reads a file of names (JSON: `parameters` name -> shape, `modules` name -> class, `tied_keys`,
 * `plan: {tp: {...}, ep: {...}}`) and lays its tables over them; a module of experts and what is in
 * it follow that of ep. Errors: E0203 for a style that the library has not, E0219 for what it
 * refuses; a warning for a pattern without a counterpart. NULL if the file is none. Lives in `a`.
 */
const NamedPlan *import_named(Arena *a, Diags *d, const char *path, NamedTables tables);
#endif
