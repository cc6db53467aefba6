/* Which ranks work on wrong values? A check compares a step with the unsharded op on the inputs
 * that the ranks have, and says nothing of these: after a missing sum every later step is right by
 * itself. Here failures are followed through the records: who reads what, and which ranks a
 * collective joins. Refuses to judge numbers: what is computed from a wrong value is called that,
 * not wrong. */
#ifndef SP_RENDER_FOLLOW_H
#define SP_RENDER_FOLLOW_H
#include "trace/trace.h"

typedef struct Follow Follow;
/* Lives in the arena. Of very many steps and ranks it does not tell the ranks apart: then one wrong
 * rank stands for all. */
Follow *follow_new(Arena *a, const Trace *t);
/* Takes the next check of the trace; they come in the order in which the run made them. */
void follow_check(Follow *f, const TraceCheck *k);
/* Has the rank computed, or been sent, what that check looked at from something wrong? */
bool follow_anywhere(const Follow *f); /* on some rank */
bool follow_wrong(const Follow *f, int64_t rank);
#endif
