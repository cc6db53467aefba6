/* Python as people paste it around a plan, read as a tree: literals, names, calls, operators,
 * comprehensions, assignments, branches and loops. Nothing is executed or imported. What a tree's
 * literals decide is python_eval's to say. */
#ifndef SP_IMPORT_PYTHON_H
#define SP_IMPORT_PYTHON_H
#include "import/value.h"

typedef enum {
    PY_EXPR,   /* value */
    PY_ASSIGN, /* target = value */
    PY_IMPORT, /* target: the name here, value: the name there (both V_NAME) */
    PY_RETURN, /* return value, or NULL */
    PY_CONTINUE,
    PY_BREAK,
    PY_RAISE,
    PY_FOR,  /* for target in value: body */
    PY_WITH, /* with value: body */
    PY_DEF,  /* def target(...): body; value: a call of the defaults, by name, V_CODE without one */
    PY_IF,   /* if value: body, otherwise */
} StatementKind;
typedef struct Statement Statement;
struct Statement {
    StatementKind kind;
    Loc loc;
    Value *target, *value;
    int n, cap;
    Statement **body;
    Statement *otherwise; /* the body of `else`, or NULL */
};
/* The statements of a file, as the body of one without a kind. What is not understood is reported
 * (E0110: no Python; E0217: code where data is wanted) and left out, up to the next statement. */
Statement *python_read(Arena *a, Diags *d, const char *file, const char *text, size_t n);
/* One expression ("Shard(1)") that begins at `at`, evaluated; NULL and an error. */
Value *python_expression(Arena *a, Diags *d, Loc at, const char *text);
/* JSON with places: checked by the JSON library first (E0109). NULL and an error. */
Value *json_values(Arena *a, Diags *d, const char *file, const char *text, size_t n);
/* The same of a file of names, which may have 50,000 of them. */
Value *json_names(Arena *a, Diags *d, const char *file, const char *text, size_t n);
#endif
