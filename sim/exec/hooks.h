/* What frameworks hang on modules: which module has a hook before or after its forward, whose it
 * is, and where in a module's call a step of the program stands. Refuses to run or move anything:
 * what a hook does is a step of the program, which says so itself. */
#ifndef SP_EXEC_HOOKS_H
#define SP_EXEC_HOOKS_H
#include "lower/program.h"
#include "trace/trace.h"

/* Adds a record for each module that a line of the plan speaks of, in the order of the model, and
 * one for each unit of fully_shard. PyTorch's hooks are those of the table of styles; Hugging
 * Face's library has its own; modules of Megatron move within their own forward. In the trace's
 * arena. */
void hooks_record(Trace *t, const Program *p, const Plan *plan);
/* The axes of the mesh of the DTensor that PyTorch makes of a parameter: those of its module's
 * style, and those over which fully_shard cuts it or keeps copies, "dp_shard*tp"; "": it stays a
 * plain Parameter. NULL: the plan's styles are not PyTorch's. In the arena. */
const char *hooks_mesh(Arena *arena, const Program *p, int tensor);
/* Where in the call of its module a step of the forward pass stands, by what it moves: "input",
 * "body" or "output"; NULL: in none's, or it is of another pass or of a parameter. */
const char *hooks_where(const Program *p, const Step *s);
#endif
