/* A schedule that is broken into lines, as music is: where each begins, so that few cells are cut
 * in two. Knows nothing of how wide a line is drawn. */
#ifndef SP_RENDER_PIPE_LINES_H
#define SP_RENDER_PIPE_LINES_H
#include "render/pipeline/pipeline.h"

enum { PIPE_LINES = 6 };
/* From at[k] to at[k + 1] goes line k. */
typedef struct {
    int n;
    double at[PIPE_LINES + 1], longest;
} PipeLines;

/* Everything up to `span` in one line. */
PipeLines pipe_one_line(double span);
/* n lines (at most PIPE_LINES) of about one length. */
PipeLines pipe_lines(const Pipe *p, int n);
/* Does the action lie in a line, but for what is too short to be seen? *whole: all of it. */
bool pipe_on_line(const PipeLines *l, int line, const TraceAction *a, bool *whole);
#endif
