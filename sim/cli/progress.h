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
/* What the line says. */
typedef struct {
    double done; /* 0..1 */
    const char *phase;
    double left; /* seconds; below 0: not known */
    int at, of;  /* plan `at` of `of` */
} ProgressWords;
/* What is seen of a run, in seconds but for the share. */
typedef struct {
    double share;        /* of the work that is done, 0..1 */
    double moved, since; /* from the start until the share last grew, and since then */
    double estimate;     /* of the whole, made before it began */
} ProgressSeen;
/* Seconds until the end; below 0: not known, for nothing is done yet or it takes longer than was
 * thought. Between two changes of the share it counts down. */
double progress_left(ProgressSeen seen);
/* "34 %  ranks and check, 12 s left" (what is not known is left out), cut to `width` columns; 0:
 * any width. At most n - 1 bytes and a NUL go to `out`; returns their number. No allocation. */
int progress_text(char *out, size_t n, ProgressWords say, int width);
#endif
