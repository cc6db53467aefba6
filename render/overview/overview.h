/* What the overview shows: the units of a model (a part of a layer), what each computes, holds and
 * sends, with equal layers folded. Every number is a sum over records; nothing is known about
 * models. */
#ifndef SP_RENDER_OVERVIEW_H
#define SP_RENDER_OVERVIEW_H
#include "render/furniture/furniture.h"
#include "render/furniture/wrong.h"

enum { OVERVIEW_UNITS = 1024, OVERVIEW_TOTALS = 16, OVERVIEW_ITEMS = 8 };

/* What collectives are for. */
typedef enum {
    SEND_FORWARD,
    SEND_BACKWARD,
    SEND_GRADIENTS,
    SEND_WEIGHTS,
    SEND_OPTIMIZER,
    SEND_KINDS
} SendKind;

/* What stands on the stream's way through a unit: before its own ops, among them, behind them. */
typedef enum { WAY_IN, WAY_INSIDE, WAY_OUT, WAYS } WayPlace;
typedef struct {
    const TraceCollective *c; /* the first of a kind over one axis; NULL: a norm */
    const char *part;         /* of a norm */
    Total sum;                /* of all of them; without an axis, which `c` has */
    int step;
} OverviewItem;
typedef struct {
    int n;
    OverviewItem item[OVERVIEW_ITEMS]; /* in the order of their steps */
} OverviewWay;

/* What a unit has to do with other stages of a pipeline. */

/* Steps of one layer and part in a row; or messages of a pipeline's stage. */
typedef struct {
    const char *part, *title;
    int layer, layers; /* first layer, and how many like it are folded into it */
    int64_t weights;   /* bytes of parameters on the rank, at rest; those of several units have but
                          the first */
    bool reads;        /* forward steps of it read parameters, its own or not */
    double flops;
    int ops;
    int n_total[SEND_KINDS];
    OverviewItem total[SEND_KINDS][OVERVIEW_TOTALS]; /* by axis and kind of collective */
    OverviewWay way[WAYS];                           /* of the kind `Overview.flow` */
    int from, until; /* first and last step of its own ops: no norm, no add to the stream */
    bool has_own;
    bool residual; /* adds to what enters it; else it makes something new of that */
    Message message;
    int beside;            /* messages: the unit that they come from or go to, before folding */
    const TraceValue *out; /* what leaves it */
    const TraceValue
        *in;     /* what comes from other ranks in place of the unit before; NULL: nothing */
    bool second; /* of a pipeline that is entered at both ends: the other way's */
    int *wrong;  /* steps of it that are wrong, one for each mistake */
    int n_wrong, cap_wrong;
    bool apart;       /* no step of the pass: nothing flows into it from the unit before */
    Phase pass;       /* whose steps it has, if it is no unit of the pass */
    bool open, close; /* first and last of a folded group of layers */
} OverviewUnit;

typedef struct {
    const ViewCall *c;
    int64_t rank;
    Phase pass; /* whose steps are the units */
    bool whole; /* the collectives of all passes; else of `pass` only, with what it does to weights
                   and their gradients */
    bool all;   /* several kinds are told apart; else all stand as SEND_FORWARD */
    bool both_ways;
    SendKind flow; /* the kind that stands on the ways of the units */
    const WrongList *wrong;
    int n, n_own; /* units; those before folding that steps of the pass make, which come first */
    OverviewUnit *unit;
    const TraceValue *in;        /* what enters the pass; NULL: nothing known */
    int *first_step, *last_step; /* of each of n_own */
    int *unit_of_param;          /* which of them holds it; -1: none of the picture */
    int backward;                /* the first step of the backward pass */
} Overview;

/* False and a diagnostic (E0211) if there is nothing. */
bool overview_read(Overview *o, const ViewCall *c);
/* Does any unit send something of that kind? */
bool overview_sends(const Overview *o, SendKind k);
/* Bytes that the rank sent in the run beyond those expected of experts' rows, which the units have.
 */
int64_t overview_beyond(const Overview *o);
/* Of the whole picture: weights at rest on the rank, and (without an axis) what its collectives
 * send, as `comms` says of that rank. */
Total overview_totals(const Overview *o, int64_t *weights);
/* Weights that are gathered in backward: again, where forward has thrown them away. */
bool overview_again(const Overview *o, const TraceCollective *c);
/* Of n, the sums by axis alone, as many as it returns. */
int overview_by_axis(const OverviewItem *of, int n, OverviewItem *out);
/* "forward", "backward", "weight gradients", "weights", "optimizer". */
const char *overview_kind(const Overview *o, SendKind k);
/* "Sent per rank: forward tp 24 KiB in 6 collectives, ..." */
const char *overview_sent(const Overview *o);
#endif
