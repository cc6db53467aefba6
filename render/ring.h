/* Ring collectives step by step on numbers: who holds which chunk, which ranks are in a sum, what is sent next. The
 * frames of the storyboard are made from this. Refuses other algorithms than the ring, and more ranks than a page
 * holds. */
#ifndef SP_RENDER_RING_H
#define SP_RENDER_RING_H
#include <stdbool.h>

enum { RING_MAX = 8 };
typedef enum { RING_GATHER, RING_SCATTER, RING_REDUCE } RingKind; /* all-gather, reduce-scatter, all-reduce = both */

typedef struct {
    bool held;  /* there is a number */
    bool stale; /* sent away, and not needed any more */
    bool fresh; /* arrived in the last step */
    bool done;  /* what the collective was asked for */
    bool sends; /* goes to the next rank in the next step */
    double value;
    int first, terms; /* ranks in the sum: first, first + 1, ... (mod n), `terms` of them */
} RingCell;
/* cell[chunk][rank] */
typedef struct {
    int n, step, steps; /* step 0: the start; steps: of the whole */
    RingKind kind;
    bool max; /* the largest instead of the sum */
    RingCell cell[RING_MAX][RING_MAX];
} Ring;

int ring_steps(RingKind kind, int n);
/* The start: rank r holds number[chunk][rank] (all-gather: of chunk r alone). */
void ring_start(Ring *r, RingKind kind, int n, bool max, double number[RING_MAX][RING_MAX]);
/* One step further; false at the end. */
bool ring_next(Ring *r);
#endif
