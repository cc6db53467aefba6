/* Numbers of the picture of a routing: which rows (one token for one expert) the ranks of one group
 * send to whose experts. Takes the rows that a run recorded and refuses to route anything itself.
 */
#ifndef SP_RENDER_ROUTING_H
#define SP_RENDER_ROUTING_H
#include "render/furniture/furniture.h"

enum { ROUTING_LINES = 5 };
typedef struct {
    const ViewCall *c;
    Arena *a;
    const TraceCollective *coll; /* the exchange of the index list; NULL: there is none */
    int layer;
    int64_t n, experts;    /* ranks of the group; experts of the model */
    const int64_t *rank;   /* [n] */
    const double *made;    /* [n][experts]: rows that a rank's own tokens ask for */
    const double *got;     /* [n][experts]: rows that it has afterwards */
    const int64_t *home;   /* [experts]: member that has the expert's rows; -1: nobody has any */
    double *sent;          /* [n][n]: rows from a member to another */
    double *out, *in;      /* [n]: rows that a member sends, receives; its own among them */
    double rows, moved;    /* of the group; of these to another rank */
    double lost;           /* asked for and not there afterwards */
    double asked, dropped; /* with a capacity: in all groups, before and for want of room */
    const double *full;    /* [experts]: of these each expert's, if there is one group; or NULL */
    int64_t busiest;       /* member that receives most */
    double bytes;          /* of a row; 0: not known */
} Routing;

/* The routing of a layer (--layer; else the first that has one) among the ranks that exchange rows
 * with --rank. False and a diagnostic if the trace has none. */
bool routing_read(Routing *r, const ViewCall *c);
/* "1 row", "128 rows" */
const char *routing_rows(Arena *arena, double n);
/* "MoE dispatch: 128 rows to 8 experts on 4 ranks, rank 2 gets 1.25 × its share"; where other
 * groups exchange rows, too: "MoE dispatch in one of 4 groups of ep: 128 rows to 8 experts, ..." */
const char *routing_title(const Routing *r);
/* Experts by the rows that they get, most first; in the arena. */
const int64_t *routing_hottest(const Routing *r);
double routing_expert(const Routing *r, int64_t expert);
/* "peak 36, mean 32", "1.13: the step waits for rank 2", "93 of 128 rows, 23.3 KiB": what is
 * received, how unevenly, what crosses the network; `name` and `text` have room for ROUTING_LINES.
 * Returns their number. */
int routing_load(const Routing *r, const char **name, const char **text);
/* What one row is, and what comes back. */
const char *routing_foot(const Routing *r);
#endif
