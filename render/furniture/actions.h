/* What actions of a pipeline's schedule are called and how they are filled: for each kind a look
 * and words of its own, the same in every view. */
#ifndef SP_RENDER_ACTIONS_H
#define SP_RENDER_ACTIONS_H
#include "render/scene/theme.h"
#include "trace/trace.h"

enum { ACTION_LOOKS = 4 };
typedef struct {
    char kind; /* as in TraceAction */
    Role fill, text;
    const char *what;
} ActionLook;
extern const ActionLook action_looks[ACTION_LOOKS];
/* The row of an action's kind. */
int action_look(const TraceAction *a);
/* In flight after an action, given what was in flight before it: pairs of stage and micro-batch
 * between a forward and the end of its backward. */
int action_flight(const TraceAction *a, int before);
#endif
