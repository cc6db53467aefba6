/* Placements onto layouts, for the files of this room. */
#ifndef SP_ASSIGN_TARGET_H
#define SP_ASSIGN_TARGET_H
#include "assign/assign.h"

/* What a placement is laid on. */
typedef struct Placing {
    const Assign *a;
    const GTensor *t;
    const ModuleUse *use; /* of the module whose line speaks; NULL: none */
    UseKind kind;
    const AxisList *axes; /* over which */
    const char *group;    /* their name as the plan writes it */
    Layout *out;          /* changed for these axes only */
    const char **names; /* per axis of the mesh: set to `group` where a cut was written; or NULL */
} Placing;

/* Lays one placement on p->out. False and a diagnostic (E0214, E0303, E0305, E0401) if it cannot be
 * there. */
bool target_place(const Placing *p, const RawPlace *place);
/* The axis that a line without `axis:` speaks of: "vp" for a vocabulary, else "tp", else the only
 * one; NULL if there is none. */
const char *target_default_axis(const Assign *a, bool vocab);
/* How the axis cuts letter number `letter` of t: zigzag or striped (`order`) for the sequence over
 * the axes of context parallelism, else chunks. */
CutHow target_how(const Assign *a, const GTensor *t, int letter, int axis, const char *order);
#endif
