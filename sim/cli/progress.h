/* The progress line on a terminal: percent, phase, time left, in one line that is rewritten and
 * taken away at the end. Refuses to appear where nobody looks at it (no terminal, TERM=dumb, CI,
 * -q) and in the first second. */
#ifndef SP_CLI_PROGRESS_H
#define SP_CLI_PROGRESS_H
#include "base/arena.h"
#include "base/progress.h"
#include <stdbool.h>

typedef struct ProgressLine ProgressLine;
/* Shows `p` on the terminal `fd` until progress_line_end; plan `at` of `of` is named where there
 * are several. A signal or base_die takes the line away first. NULL (which progress_line_end takes)
 * if no thread can be had: then nothing is shown. */
ProgressLine *progress_line_start(Arena *a, const Progress *p, int fd, int at, int of);
void progress_line_end(ProgressLine *l);
/* The words: "34 %  ranks and check, 12 s left" (what is not known is left out), cut to `width`
 * columns. `done` in 0..1; `left` in seconds, below 0: not known. At most n - 1 bytes go to `out`;
 * no allocation. */
int progress_text(char *out, size_t n, double done, const char *phase, double left, int at, int of,
                  int width);
#endif
