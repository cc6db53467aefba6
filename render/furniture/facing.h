/* Two texts of one view as one: a line that both say stands once; of what both say of one thing the
 * second's line stands under the first's, each behind the letter of its plan. Refuses texts of more
 * lines than can be compared with all others. */
#ifndef SP_RENDER_FACING_H
#define SP_RENDER_FACING_H
#include "base/arena.h"

enum { FACING_EDGE = 2 }; /* columns that the letter takes */

/* NULL: they are too long. */
const char *facing_text(Arena *arena, const char *a, const char *b);
#endif
