/* What a storyboard tells: one collective (or slice) of a trace, the ranks of one of its groups,
 * and their numbers from the run. Takes numbers from the trace's samples alone and refuses to
 * invent any. */
#ifndef SP_RENDER_STORY_H
#define SP_RENDER_STORY_H
#include "render/furniture/furniture.h"
#include "render/furniture/ring.h"
#include "render/furniture/wrong.h"

enum { STORY_FRAMES = 2 * RING_MAX };

typedef struct {
    const ViewCall *c;
    Arena *a;
    RingStory ring;
    const TraceSample *sample;   /* NULL: no numbers */
    bool rows;                   /* the numbers are rows from rank to rank, counted by the run */
    const TraceCollective *coll; /* NULL: a slice */
    const char *op, *value, *axis;
    int step;               /* of the program */
    int64_t ranks;          /* in a group */
    int64_t rank[RING_MAX]; /* ids of the shown ranks */
    int64_t bytes, sent;    /* M, and what a rank sends of it */
    bool whole;             /* all numbers are whole */
    int decimals, power;    /* how numbers are printed: in units of 10^power */
    Ring frame[STORY_FRAMES];
    int frames;
    int elements;           /* the most that a chunk has, where cells show whole chunks; else 0 */
    Ring *element;          /* [element][frame] */
    bool is_wrong;          /* something is wrong with this step */
    const WrongList *wrong; /* what is wrong with this step; if nothing is, with others */
} Story;

/* --part names an op ("all-gather" or "all_gather"), a value or a step; without it the one
 * that a mistake changed or that makes the first wrong value, else the first. False and a
 * diagnostic if the trace has nothing like it. */
bool story_prepare(const ViewCall *c, Story *s);
/* Does a planted mistake leave the collective out? Then nothing moves. */
bool story_skipped(const Story *s);
/* Is there a planted mistake that the frames do not show? Then they end as it should. */
bool story_undrawn(const Story *s);
/* Rows and columns of a chunk that is shown whole. */
int story_rows(const Story *s, int chunk);
int story_columns(const Story *s, int chunk);
/* The number of an element of a chunk, on a rank, in a frame; as text. */
const char *story_element(const Story *s, int frame, int chunk, int rank, int element);
/* Go back to one element of each chunk: there is no room for all. */
void story_no_whole(Story *s);
/* "0.123" */
const char *story_number(const Story *s, double v);
/* "1+2+3" of a sum, "1→0" of an exchange, or "1→3" for a longer sum if `shorter`. */
const char *story_terms(const Story *s, const RingCell *c, bool shorter);
/* What the collective does, as a title; in some sentences. */
const char *story_headline(const Story *s);
const char *story_text(const Story *s);
/* "After step 2: sums", "sent 1/4 of M = 32 KiB per rank" */
const char *story_frame(const Story *s, const Ring *f);
const char *story_sent(const Story *s, const Ring *f);
/* What a cell's tooltip says: its number in full, what it is made of, where it goes; of rows their
 * tokens (story_cell.c). */
const char *story_cell(const Story *s, const RingCell *c, int chunk);
/* The rank that is the k-th of the group. */
int64_t story_rank(const Story *s, int k);
/* Is a collective with steps to tell one that a mistake changed, or the first that is wrong? */
bool story_mistake(const Trace *t);
/* What it is in this plan: M, steps, bytes, time with its formula, where the numbers are from. */
const char *story_plan(const Story *s);
#endif
