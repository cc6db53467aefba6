/* Numbers of the roofline: of each kernel of a rank its FLOPs per byte of memory against what the
 * machine reaches, of each collective the products around it against the time in which it is sent.
 * Knows no lengths and no colours. Refuses to model: FLOPs, bytes and seconds are those of the
 * events. */
#ifndef SP_RENDER_ROOFLINE_H
#define SP_RENDER_ROOFLINE_H
#include "render/furniture/wrong.h"
#include "render/timeline/timeline.h"

/* What takes the most of a kernel's time. */
typedef enum { BOUND_COMPUTE, BOUND_MEMORY, BOUND_LAUNCH, BOUNDS } Bound;
extern const char *const bound_words[BOUNDS]; /* "compute-bound" */

/* FLOPs per byte that a panel shows: a kernel with fewer only moves bytes; a collective with so
 * many times those of its ridge is hidden wherever it stands. */
#define ROOF_FEWEST 0.01
#define ROOF_MOST 1000.0

/* Kernels that are alike but for the layer. */
typedef struct {
    const TimeEvent *x; /* the first */
    const char *name;
    int n;
    double work, moved, took; /* of one: FLOPs, bytes of memory, seconds */
    Bound bound;
} RoofKernel;

/* Collectives that are alike but for the layer. */
typedef struct {
    const TimeEvent *x;
    const char *name; /* "AG x", of a unit of weights "AG layer" */
    int n;
    double sent, took; /* of one: bytes; seconds without waiting for others */
    double work, math; /* FLOPs and seconds of the products around it; 0: there are none */
    int products;
    bool makes;  /* they make what it sends; else they read what it brings */
    bool across; /* its groups span nodes */
} RoofColl;

typedef struct {
    const ViewCall *c;
    const Trace *t;
    const WrongList *wrong; /* what is wrong stands alone */
    Timeline line;          /* of the ranks that are shown */
    int n_kernels, n_colls;
    RoofKernel *kernel; /* those that take most first */
    RoofColl *coll;
    int kernels, of_bound[BOUNDS];      /* how many, each layer's counted */
    double took[BOUNDS], compute;       /* seconds */
    int colls, longer, alone, messages; /* collectives with products, those of them that take longer
                                           than these; without; messages between stages */
    double sent, sent_longer; /* seconds of collectives with products; of those that take longer */
} Roofline;

/* Of the rank that is asked for, or of those that a timeline tells of first. False and a diagnostic
 * if the trace has no times, or not what they are made from. */
bool roofline_read(Roofline *r, const ViewCall *c);
/* FLOPs per byte from which on products take the time of the FLOPs. */
double roofline_ridge(const Trace *t);
/* The most that the machine reaches at so many FLOPs per byte of memory. */
double roofline_roof(const Trace *t, double per_byte);
/* What a page is of: slides have one for each panel. */
typedef enum { ROOF_BOTH, ROOF_KERNELS, ROOF_COLLS } RoofPart;
/* "608 of 1041 kernels are compute-bound and take 93 % of the compute time; 5 of 9 collectives
 * outlast their products" */
const char *roofline_title(const Roofline *r, RoofPart part);
/* What else is counted: sums of both, and what is in no panel. */
const char *roofline_totals(const Roofline *r, RoofPart part);
/* What rank, with `alone` also of which micro-batches, which a figure's subtitle says of its data;
 * where the roofs of memory and FLOPs meet. */
const char *roofline_whose(const Roofline *r, bool alone);
const char *roofline_limits(const Roofline *r);
/* "0.25", "220", "1.2 k" FLOPs per byte; "295 TFLOP/s" */
const char *roofline_amount(Arena *a, double v, const char *unit);

/* What stands around collectives: an index of the steps of one rank. */
typedef struct RoofSteps RoofSteps;
RoofSteps *roof_steps(const Timeline *t, Arena *a);
/* Fills work, math, products and makes. */
void roof_products(RoofSteps *s, RoofColl *k);
#endif
