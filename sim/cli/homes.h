/* Where the layers of a pipeline lie, told of each layer once. Refuses to speak of what is in no
 * layer. */
#ifndef SP_CLI_HOMES_H
#define SP_CLI_HOMES_H
#include "trace/trace.h"

typedef struct {
    const char *axis; /* of the pipeline; NULL: there is none, and no layer has a home */
    int n;            /* layers */
    const char *
        *of; /* of each layer: "at(1)", or all: "at(0), at(3)"; NULL: no parameter says it */
} Homes;
/* The homes of a trace's layers, as their parameters say them; in `a`. */
Homes homes_of(const Trace *t, Arena *a);
/* That of a layer, or NULL; -1 and layers that the trace has not have none. */
const char *homes_at(const Homes *h, int layer);
/* Whose home a place of a value or parameter of the layer is, which may be sent to its neighbours:
 * a set of these, 0: of none of them. */
typedef enum { HOME_BEFORE = 1, HOME_OWN = 2, HOME_BEHIND = 4 } Home;
int homes_which(const Homes *h, int layer, const TracePlace *p);
#endif
