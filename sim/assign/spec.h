/* What a line of the plan says of a module and its parameters. */
#ifndef SP_ASSIGN_SPEC_H
#define SP_ASSIGN_SPEC_H
#include "assign/assign.h"

/* The axes that the line acts on, to `u`, whose style is set. False if there are none: where the
 * line names none and the mesh has none for it, it is marked in a->no_axis; a name that is unknown
 * is told (E0204). */
bool spec_axes(Assign *a, ModuleUse *u, const GModule *m, const PlanLine *line);
/* How the style places parameter t (a tensor) of the module; NULL: it says nothing of it. */
const RawSpec *spec_of_param(const Assign *a, const Style *s, const GModule *mod, int t);
#endif
