/* Heads and the ranks they are cut over. */
#ifndef SP_ASSIGN_HEADS_H
#define SP_ASSIGN_HEADS_H
#include "assign/assign.h"

/* Splits an axis for KV heads (`colwise` on k, v and q over more ranks than there are KV heads) and
 * notes it (N0004). True: axes are renumbered, and lines must be matched anew. False with E0303 or
 * E0305 where heads cannot be cut so. */
bool heads_split(Assign *a, Mesh *mesh);
/* Of a plan with other mistakes: tells (E0303, E0305) the first line whose ranks do not divide the
 * heads, with a style or a module that is misspelt as it was meant. `hit`: the lines that matched.
 * False: nothing to tell. */
bool heads_tell(Assign *a, const bool *hit);
#endif
