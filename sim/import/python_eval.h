/* What the literals of a pasted Python file decide: operators, comprehensions, f-strings and the
 * few functions that only rearrange (range, enumerate, zip, len, dict, ...) over values that stand
 * in the file. A name that nothing was assigned to stays a name, a call that nobody knows stays a
 * call; what depends on them is V_CODE with the reason. Nothing of the user's machine is looked at,
 * every step is counted, so a file ends in E0704 and never in an endless loop. */
#ifndef SP_IMPORT_PYTHON_EVAL_H
#define SP_IMPORT_PYTHON_EVAL_H
#include "import/value.h"

typedef struct {
    const char *name;
    Value *value;
} PythonBound;
typedef struct {
    Arena *a;
    Diags *d;
    PythonBound *bound; /* of the file, then of the function that is walked */
    int n, cap;
    int globals, base; /* bound outside functions; where this function's names begin, or 0 */
    int steps;
    bool spent; /* a limit was reached and told: nothing more is evaluated */
    /* What the owner makes of a call whose arguments are evaluated; NULL: it stays a call. */
    Value *(*call)(void *owner, Value *call);
    /* A name, or an attribute of one, that nothing in the file was assigned to; NULL: unknown. */
    Value *(*outside)(void *owner, const Value *v);
    bool (*stands)(void *owner, const Value *v); /* is it surely something, and not None? */
    void *owner;
} Python;

/* The value; a V_CODE where it is not decided. Never NULL; the tree itself is not changed. */
Value *python_eval(Python *p, Value *v);
/* An expression by itself, without names; never NULL. */
Value *python_value(Arena *a, Diags *d, Value *v);
/* One step more; false and E0704 (once) beyond the most. */
bool python_step(Python *p, Loc at);
/* 1 true, 0 false, -1 not decided here. */
int python_truth(const Value *v);
/* What the condition depends on, for a message: "`x` is not known here". */
const char *python_why(Arena *a, const Value *v);
/* A V_CODE. */
Value *python_unknown(Python *p, Loc at, const char *why);

/* What a name holds, in the function that is walked or in the file; NULL: nothing was assigned. */
Value *python_lookup(const Python *p, const char *name);
/* An assignment, in the function that is walked or in the file. */
void python_bind(Python *p, const char *name, Value *v);
/* Binds the names of a loop's or an assignment's target, each with its part of the value; what has
 * no part becomes unknown. Targets that are no names are left alone. */
void python_unpack(Python *p, const Value *target, Value *v);

/* What a loop goes over: the rounds of a literal one, or of all layers (`all`), of which the one
 * round has V_EACH for the index and `model.layers[V_EACH]` for the layer. */
typedef struct {
    bool decided, all;
    int n;
    Value **round;
} PythonRounds;
PythonRounds python_rounds(Python *p, Value *over);
#endif
