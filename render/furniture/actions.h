/* What actions of a pipeline's schedule are called and how they are filled: for each kind a look
 * and words of its own, the same in every view. */
#ifndef SP_RENDER_ACTIONS_H
#define SP_RENDER_ACTIONS_H
#include "render/scene/theme.h"
#include "trace/trace.h"

enum { ACTION_KINDS = 4 };
typedef struct {
    char kind; /* as in TraceAction */
    Role fill, text;
    const char *what;
} ActionKind;
extern const ActionKind action_kinds[ACTION_KINDS];
/* The row of an action's kind. */
int action_kind(const TraceAction *a);
/* In flight after an action, given what was in flight before it: pairs of stage and micro-batch
 * between a forward and the end of its backward. */
int action_flight(const TraceAction *a, int before);
#endif
