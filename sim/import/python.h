/* Python as people paste it around a plan, read as data: literals, names, calls with literal
 * arguments, assignments, imports, and loops over layers. Nothing is executed or imported; an
 * expression that would have to be computed is an error that says so. */
#ifndef SP_IMPORT_PYTHON_H
#define SP_IMPORT_PYTHON_H
#include "import/value.h"

typedef enum {
    PY_EXPR,   /* value */
    PY_ASSIGN, /* target = value */
    PY_IMPORT, /* target: the name here, value: the name there (both V_NAME) */
    PY_FOR,    /* for target in value: body */
    PY_WITH,   /* with value: body */
    PY_DEF,    /* def target(...): body */
} StatementKind;
typedef struct Statement Statement;
struct Statement {
    StatementKind kind;
    Loc loc;
    Value *target, *value;
    int n, cap;
    Statement **body;
};
/* The statements of a file, as the body of one without a kind. What is not understood is reported
 * (E0110: no Python; E0217: code where data is wanted) and left out, up to the next statement. */
Statement *python_read(Arena *a, Diags *d, const char *file, const char *text, size_t n);
/* One expression ("Shard(1)") that begins at `at`; NULL and an error. */
Value *python_expression(Arena *a, Diags *d, Loc at, const char *text);
/* JSON with places: checked by the JSON library first (E0109). NULL and an error. */
Value *json_values(Arena *a, Diags *d, const char *file, const char *text, size_t n);
/* The same of a file of names, which may have 50,000 of them. */
Value *json_names(Arena *a, Diags *d, const char *file, const char *text, size_t n);
#endif
