/* What the overview shows: the units of a model (a part of a layer), what each computes, holds and
 * sends, with equal layers folded. Every number is a sum over records; nothing is known about
 * models. */
#ifndef SP_RENDER_OVERVIEW_H
#define SP_RENDER_OVERVIEW_H
#include "render/furniture/furniture.h"
#include "render/furniture/wrong.h"

enum { OVERVIEW_UNITS = 1024, OVERVIEW_TOTALS = 8 };

/* What collectives are for. */
typedef enum { SEND_FORWARD, SEND_BACKWARD, SEND_GRADIENTS, SEND_WEIGHTS, SEND_KINDS } SendKind;

/* Steps of one layer and part in a row. */
typedef struct {
    const char *part, *title;
    int layer, layers; /* first layer, and how many like it are folded into it */
    int64_t weights;   /* bytes of parameters on the rank, at rest */
    double flops;
    int ops;
    int n_total[SEND_KINDS];
    Total total[SEND_KINDS][OVERVIEW_TOTALS];
    const TraceValue *out; /* what leaves it */
    int wrong;             /* a step of it that is wrong; -1: none */
    bool open, close;      /* first and last of a folded group of layers */
} OverviewUnit;

typedef struct {
    const ViewCall *c;
    int64_t rank;
    Phase pass; /* whose steps are the units */
    bool all;   /* forward and backward, gradients and weights; else the collectives of `pass` only,
                   as SEND_FORWARD */
    const WrongList *wrong;
    int n;
    OverviewUnit *unit;
    int *first_step, *last_step; /* of each unit before folding */
} Overview;

/* False and a diagnostic (E0211) if there is nothing. */
bool overview_read(Overview *o, const ViewCall *c);
/* Does any unit send something of that kind? */
bool overview_sends(const Overview *o, SendKind k);
/* Sums over all layers: weights, bytes sent, collectives. */
void overview_totals(const Overview *o, int64_t *weights, int64_t *sent, int64_t *count);
/* "forward", "backward", "weight gradients", "weights". */
const char *overview_kind(const Overview *o, SendKind k);
/* "Sent per rank: forward tp 24 KiB in 6 collectives, ..." */
const char *overview_sent(const Overview *o);
#endif
