/* What readers of other frameworks' files make of them: one tree of values with places, whether the
 * text was Python, JSON or TOML. Names, calls and paths are kept as they were written and never
 * evaluated. Refuses to know what any of it means: the files of the frameworks do. */
#ifndef SP_IMPORT_VALUE_H
#define SP_IMPORT_VALUE_H
#include "base/diag.h"

typedef enum {
    V_NONE, /* None, null */
    V_BOOL,
    V_INT,
    V_REAL,
    V_STRING,
    V_LIST,
    V_TUPLE,
    V_DICT,
    V_NAME,  /* s */
    V_ATTR,  /* item[0].s */
    V_INDEX, /* item[0][item[1]] */
    V_CALL,  /* item[0](item[1], ..., pair...) */
    V_EACH,  /* the index of each layer, in a loop over all of them */
    V_OP,    /* s of items: what python_eval replaces by its value, or by V_CODE */
    V_CODE,  /* would have to be executed; s says why. An error only where the plan needs it */
} DatumKind;
typedef struct Value Value;
typedef struct {
    const char *key; /* of a dict or table; name of a keyword argument */
    Loc loc;
    Value *value;
    bool used; /* set by value_get: what stays false is an unknown key */
} ValuePair;
struct Value {
    DatumKind kind;
    Loc loc;
    bool b;
    int64_t i;     /* V_INT */
    double r;      /* V_REAL, and V_INT as double */
    const char *s; /* V_STRING; the name of V_NAME, V_ATTR */
    int n, cap;
    Value **item;
    int n_pairs, cap_pairs;
    ValuePair *pair;
    int *slot, n_slots,
        n_indexed; /* keys to 1 + index, of the first n_indexed; NULL: few of them */
};
enum {
    VALUE_DEPTH = 64,    /* nesting of brackets and blocks */
    VALUE_PAIRS = 4000,  /* keys of one dict: lines of a plan, words of a command */
    VALUE_NAMES = 50000, /* the same of a file of names, which may have each expert's */
    VALUE_EACH = 25,     /* values of one file, for each of those */
    VALUE_NAMED = 6,  /* values of such a file for each: a module's class, a rule's style, a shape
                         and three dims */
    VALUE_ITEMS = 64, /* of one list of such a file */
};

/* Appends a pair, whether or not its key is there already. */
void value_add(Arena *a, Value *map, ValuePair pair);
/* The pair in the place of the one with its key, or behind the last: `map[key] = value`. */
void value_set(Arena *a, Value *map, ValuePair pair);
/* The first pair of a key, or NULL. */
ValuePair *value_pair(const Value *map, const char *key);
/* The value of a key (marks it used), or NULL; also of the keywords of a call. */
Value *value_get(Value *map, const char *key);
/* "a dict", "text", "a call": for messages. */
const char *value_kind_text(const Value *v);
/* "torch.distributed.Shard" of a chain of at most 16 names, or NULL if it is something else. */
const char *value_dotted(Arena *a, const Value *v);
/* Its last name: "Shard"; NULL as above. */
const char *value_last_name(const Value *v);
/* Reports (E0217) a value that would have to be executed; true if it is one. */
bool value_is_code(Diags *d, const Value *v);
/* Keys that nobody asked for are errors (E0201) with the nearest of `known`. */
void value_unknown(Diags *d, const Value *map, const char *what, const char *const *known);
#endif
