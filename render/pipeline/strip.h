/* The schedule of a pipeline as a part of another view's page: the same rows and cells as in the
 * view `pipeline`, lower, and without what is in flight. */
#ifndef SP_RENDER_PIPELINE_STRIP_H
#define SP_RENDER_PIPELINE_STRIP_H
#include "render/pipeline/pipeline.h"

/* Draws rows and their legend from y on, over the width of the page; ranks in the middle of more
 * than a few are left out, and that is said. `room`: all the height there is; 0: as it needs.
 * Returns the y behind it; y where the trace has no schedule (E0211). */
double pipe_strip(const ViewCall *c, Scene *s, double y, double room);
/* Is another plan's schedule beside it, of which one is so much longer that both at one scale would
 * show nothing of the other? Then each has its own. */
bool pipe_strip_apart(const ViewCall *c);
/* A row of letters for each rank of a schedule over `span` seconds, under a heading. */
void pipe_text_rows(Str *s, const Pipe *p, int letters, double span);
#endif
