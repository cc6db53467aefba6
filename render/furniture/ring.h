/* Collectives step by step on numbers: who holds which chunk, which ranks are in a sum, what is
 * sent next. The frames of the storyboard are made from this. Gather, scatter and reduce go round a
 * ring; an exchange (all-to-all) goes pair by pair; a slice is one step that sends nothing. Refuses
 * other algorithms, and more chunks and ranks than a page holds. */
#ifndef SP_RENDER_RING_H
#define SP_RENDER_RING_H
#include <stdbool.h>
#include <stdint.h>

enum { RING_MAX = 8 };
/* all-gather, reduce-scatter, all-reduce = both, all-to-all, local slice, a hop round a ring */
typedef enum {
    RING_GATHER,
    RING_SCATTER,
    RING_REDUCE,
    RING_EXCHANGE,
    RING_SLICE,
    RING_SHIFT, /* every rank's whole block goes to the next: one hop */
    RING_KINDS
} RingKind;

typedef struct {
    bool held;        /* there is something */
    bool stale;       /* sent away or dropped, and not needed any more */
    bool fresh;       /* arrived in the last step */
    bool done;        /* what the collective was asked for */
    bool sends;       /* goes away in the next step */
    double value;     /* NaN: not known */
    int first, terms; /* ranks in the sum: first, first + 1, ... (mod n), `terms` of them */
    int to;           /* exchange: the rank it is meant for; it comes from `first` */
    bool astray;      /* at its end, and not what is due there */
} RingCell;
/* What the numbers are: the collective of n ranks, of which `shown` (and the chunks of the same
 * numbers) stand on the page. before: [shown chunk][n ranks], of a gather [shown chunk]; NULL: not
 * known. */
typedef struct {
    RingKind kind;
    int n, n_shown, shown[RING_MAX];
    bool max;  /* the largest instead of the sum */
    bool back; /* a hop to the rank before, instead of the next */
    int shift; /* of a mistake: where the collective gives each rank or place its block, it is that
                  of the one so many after; of gathers, scatters and exchanges */
    const double *before;
} RingStory;
/* cell[shown chunk][shown rank]; of an exchange, cell[place][rank]: place j holds what is meant for
 * rank j, afterwards what came from rank j. */
typedef struct {
    int step, steps; /* step 0: the start; steps: of the whole */
    RingCell cell[RING_MAX][RING_MAX];
} Ring;

/* Steps of the whole: n-1, of an all-reduce 2(n-1), of a slice or a hop 1. */
int ring_steps(RingKind kind, int n);
/* What the ranks hold after so many steps. */
void ring_frame(Ring *r, const RingStory *s, int step);
#endif
