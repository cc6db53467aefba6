/* What the actions of a pipeline's schedule are in terms of the program: for each stage the steps
 * of its forward, of its backward, and of the two halves of that. Every micro-batch goes through
 * the same steps, so an action is (steps, instance). Steps that are done once, after the last
 * micro-batch, are in none of them. */
#ifndef SP_EXEC_TASKS_H
#define SP_EXEC_TASKS_H
#include "exec/lives.h"
#include "schedule/play.h"

typedef struct TaskSteps {
    int n, cap;
    const Step **step; /* in the order of the program */
} TaskSteps;
typedef struct Tasks {
    const Program *p;
    Arena *arena;
    const Schedule *schedule;
    const Play *play; /* the order in which all ranks come to their actions, all stages alike */
    TaskSteps *of;    /* [stage][DO_F, DO_B, DO_I, DO_W] */
    int *reads;       /* per value: how often those steps read it */
    bool *later;      /* per value: a step that is done once reads it */
    int **left;       /* per instance: of `reads`, what is still to come; NULL: not begun */
} Tasks;

/* The tasks of a program with stages, in `arena`, as what they count later; NULL: it has none. */
Tasks *tasks_new(const Program *p, Arena *arena);
/* Of which computation a step is that every micro-batch does: of the halves of a backward the
 * gradient of a parameter is of the second, all else of the first, what is computed again too. */
ActionKind tasks_kind(const Program *p, const Step *s);
/* The steps of a computation of the schedule. */
const TaskSteps *tasks_of(const Tasks *t, const Action *a);
/* All is to be read again (a training step). */
void tasks_begin(Tasks *t);
/* A copy of a parameter that travels with its unit and that nobody reads, of the value and how
 * often it is read: nothing is left of it after its own step. */
bool tasks_unread(const Program *p, const Val *v, int reads);
/* After a step of an instance: which of the values that it read or made nobody will read any more;
 * fills out[] (at most RULE_MAX_IN + 3) and returns how many. */
int tasks_read(Tasks *t, const Step *s, int64_t instance, int *out);
#endif
