/* The messages between the stages of a pipeline, as the log has them: those that are alike are one
 * row. Lines leave them out, for what a stage waits for is between its micro-batches. */
#ifndef SP_RENDER_MESSAGES_H
#define SP_RENDER_MESSAGES_H
#include "render/timeline/stave.h"

typedef struct {
    Phase pass;
    int times; /* how often a step sends one of them, of each pair of ranks */
    int64_t bytes;
    double took;             /* seconds, less waiting */
    const char *way, *brief; /* "pp 0 → 1, 1 → 2"; "pp 0 → 1 and 5 more ways" */
    const char *value;       /* all, for the tooltip: "layers.0.output, layers.1.output" */
    const TraceEvent *e;
} MessageRow;

/* Rows in the order of the program, in the arena of the call; returns how many. */
int messages_read(const ViewCall *c, MessageRow **out);
/* "48 in the step; a stage that waits for one is idle". */
const char *messages_count(const MessageRow *row, int n, Arena *a);
/* "5.02 µs, 8 KiB each, 16 in the step: pp 0 → 1, 1 → 0", by the brief name of the ways. */
const char *messages_text(const MessageRow *row, bool brief, Arena *a);
/* The height of n rows, 0 where there are none, and the section itself at its upper left corner: a
 * bar for each row, as long as one message takes at the pen's scale, at most half of the axis; it
 * says so where no line shares that scale (the pen's times are 0). Returns the y behind it. */
double messages_height(int n);
double messages_draw(const MessageRow *row, int n, TimePen *p, Pt at);
#endif
