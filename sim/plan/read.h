/* Inside of plan parsing: key tables and the readers of single values. Only files of this room
 * include it, and the test that counts what random plans say. A table row says: this key, read by
 * this function, into this field. A reader that finds something wrong adds a diagnostic and leaves
 * the field's default. */
#ifndef SP_PLAN_READ_H
#define SP_PLAN_READ_H
#include "plan/plan.h"
#include "formats/yaml.h"

typedef struct Key Key;
typedef struct PlanReader {
    Arena *a;
    Diags *d;
    Plan *p;
    const Key *keys;     /* the plan's own */
    bool axes_known;     /* the mesh was read without error: names of axes can be checked */
    const char *section; /* the key in whose mapping it reads; NULL: in the plan's own */
    const Loc *home_at;  /* where `stage_to_rank` says each stage's rank; NULL: it does not */
} PlanReader;

struct Key {
    const char *name; /* NULL ends a table */
    void (*read)(PlanReader *r, const Key *k, void *base, YamlPair *pair);
    const void *arg; /* of the reader: words, a range, a table */
    size_t at;       /* field of `base` */
    size_t loc_at;   /* Loc field: place of the value, of a mapping: of its key; NO_LOC: none */
    const char *doc;
};
enum { NO_LOC = 0 }; /* no Loc is the first field of anything */

/* A word that a key takes, and what it stands for. NULL ends. */
typedef struct {
    const char *word;
    int value;
} Word;

typedef struct {
    double min, max;
    bool open_min, open_max; /* the ends do not belong to it */
} Range;

/* A mapping with a table of its own; `shorthand` is the key that a single value stands for (model:
 * llama3-8b). */
typedef struct {
    const Key *keys;
    const char *shorthand;
} Sub;

/* Reads a mapping by a table: known keys in the table's order, then complains about the others.
 * `where`: "data", NULL for the plan itself. Nothing (null) is an empty mapping. */
void read_table(PlanReader *r, const Key *keys, const char *where, void *base, Yaml *map);

/* "batchSize" and "batch-size" as "batchsize": letters and digits alone, small ones. In `a`. */
const char *read_bare_key(Arena *a, const char *key);

/* foreign.c: what is written here in place of another framework's key, for a help; NULL: it is none
 * of those known. `map`: the mapping in which `pair` stands; `top`: that is the plan itself. */
const char *plan_foreign_key(PlanReader *r, const Yaml *map, const YamlPair *pair, bool top);
/* "mesh: {dp: 2, tp: 4}" by the unread keys of the plan that give sizes of axes; NULL: none does.
 */
const char *plan_foreign_mesh(PlanReader *r, const Yaml *root);

/* Takes out of the errors from number `asked` on those that say that a key is missing or does not
 * go with another (E0208, E0215) in a section of the plan that has an error from `first` to
 * `asked`: a word of it was not understood. See consequence.c. */
void read_drop_consequences(Diags *d, const Yaml *root, int first, int asked);

/* E0301: "'KEY' must be WANTED, not a list". */
void read_wrong_type(PlanReader *r, const char *key, const Yaml *y, const char *wanted,
                     const char *hint);
/* The text of a scalar that is not null, or NULL and E0301. */
const char *read_scalar(PlanReader *r, const char *key, const Yaml *y, const char *wanted);
/* A whole number >= min, as a size is written (E0301, E0302). */
bool read_whole(PlanReader *r, const char *key, const Yaml *y, int64_t min, int64_t *out);
/* A list, or a single value as a list of one, as an array of nodes. False and E0301 for a mapping
 * or nothing. */
bool read_items(PlanReader *r, const char *key, Yaml *y, Yaml ***item, int *n);
/* Whole numbers of 1 or more: a list of them, or one. How many there are, in *out; -1 after a
 * diagnostic. */
int read_wholes(PlanReader *r, const char *key, Yaml *y, int64_t **out);
/* Value of a word, or -1 and E0206 with the nearest. */
int read_word(PlanReader *r, const char *key, const Yaml *y, const Word *words);

/* Is this an axis or group (E0204 if not)? Always true while the mesh is not known. */
bool read_check_axis(PlanReader *r, const char *name, Loc loc);
/* "dp*cp", [dp, cp] or dp as "dp*cp"; NULL after diagnostics. Axes must exist (E0204), none twice
 * (E0407). */
const char *read_axes_text(PlanReader *r, const char *key, Yaml *y);
/* The product of axes that a product of axes and groups stands for: groups are replaced. */
const char *read_expand_axes(const PlanReader *r, const char *text);
/* E0407 if one of the axes behind `name` is in *seen already; else adds it. `key`: what is being
 * written. */
bool read_check_twice(PlanReader *r, const char *key, Str *seen, const char *name, Loc loc);
/* Calls E0405 if the two products share an axis. */
void read_check_disjoint(PlanReader *r, const char *a, const char *b, Loc loc, const char *what);

/* Readers for tables. Type of the field in brackets. */
typedef void ReadFn(PlanReader *r, const Key *k, void *base, YamlPair *pair);
ReadFn read_text;      /* [const char *] */
ReadFn read_path;      /* [const char *] a path from --set is made absolute: it is relative to the
                          working directory */
ReadFn read_size;      /* [int64_t] 1 .. 2^63-1 */
ReadFn read_seed;      /* [uint64_t] */
ReadFn read_signed;    /* [int64_t] */
ReadFn read_real;      /* [double] arg: Range */
ReadFn read_bool;      /* [bool] */
ReadFn read_flag;      /* [int] -1 unset, 0, 1 */
ReadFn read_word_text; /* [const char *] arg: Word[] */
ReadFn plan_read_activation; /* [const char *] words: plan_activations */
ReadFn read_word_int;        /* [int or enum] arg: Word[] */
ReadFn read_word_bool;       /* [bool] arg: Word[] */
ReadFn read_axes;            /* [const char *] "dp*cp" */
ReadFn read_axis;            /* [const char *] one axis or group */
ReadFn read_sub;             /* base itself; arg: Sub */
ReadFn read_spec;            /* [RawSpec] one placement (place.c) */
ReadFn read_later;           /* E0214 */

enum { PLAN_MOST_STYLES = 500 /* of a plan's own: they are looked up one by one */ };

/* The naming schemes. */
extern const Word read_names_words[];
/* plan.c: the keys of a plan. */
extern const Key plan_keys[];

/* place.c: placements and the fields of a style. */
bool read_raw_spec(PlanReader *r, const char *key, Yaml *y, RawSpec *out);
extern const Key plan_style_keys[];
/* Style `name` or mapping of fields at `y` into *out. */
void read_style(PlanReader *r, const char *key, Yaml *y, Style *out);
ReadFn read_styles; /* `styles` */
ReadFn read_lines;  /* `plan` */
ReadFn read_recipe; /* `recipe` */

/* expect.c: planted mistakes and expectations. */
ReadFn read_gradients, read_dims, read_faults;
extern const Key plan_expect_keys[], plan_fault_keys[];

/* experts.c: where `moe:` says that experts are. */
ReadFn read_part_axes; /* [const char *] the group arg, which it makes */
/* Makes a line of the plan of what `moe:` declares. */
void plan_place_experts(PlanReader *r);

/* stages.c: the key `pipeline`, and what must hold of it when all keys are read. */
extern const Sub plan_pipeline_sub;
void plan_check_pipeline(PlanReader *r);

/* sharding.c: words of the modes, forms and units of data parallelism; what must hold of them. */
extern const Word plan_mode_words[], plan_form_words[], plan_unit_words[], plan_reshard_words[],
    plan_grad_sync_words[];
void plan_check_sharding(PlanReader *r);
/* N0018: `grad_sync` where nothing is summed more than once. Wants the number of micro-batches. */
void plan_note_sync(PlanReader *r);
/* experts.c, N0018: keys of `moe` that speak of a capacity, or of fsdp, where there is none. */
void plan_note_experts(PlanReader *r);

/* unread.c, E0215 and N0018: keys of `model` and `data` that are of another kind of model. */
void plan_check_unread(PlanReader *r, Yaml *root);

/* set.c: lays the overrides over the tree. `root` is changed in place. */
void plan_apply_sets(Arena *a, Diags *d, Yaml *root, const PlanSet *sets, int n);

/* styles.c: known, but not runnable by this version. */
bool style_is_later(const char *name);
/* Built in, or the plan's own. */
bool style_is_known(const Plan *p, const char *name);
/* The activations of ops/list.h and "none", as words that end with NULL; in `arena`. */
const Word *plan_activations(Arena *arena);
#endif
