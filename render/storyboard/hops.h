/* What the storyboard of a ring tells: who attends to whose keys in which step. Read from the
 * records of the parts of attention: their work on each rank, their mask, and how the sequence is
 * cut. Refuses to believe in a mask: where the work is not that of the one that the records name,
 * within the documents that the trace names, it says how much it is. */
#ifndef SP_RENDER_HOPS_H
#define SP_RENDER_HOPS_H
#include "render/furniture/furniture.h"

enum { HOPS_MAX = 16 };

/* Positions of a document. */
typedef struct {
    int64_t from, lim;
} HopsDocument;
/* A row of the batch that the ranks of a ring hold: what no document of it shares. */
typedef struct {
    int n_documents; /* 1: it is one */
    const HopsDocument *document;
    int n_blocks; /* documents, cut in chunks where the mask has them: none sees another */
    const HopsDocument *block;
    int times;                        /* so many rows are like this one */
    double share[HOPS_MAX][HOPS_MAX]; /* [step][place]: of the work of all rows; sum 1 */
} HopsRow;
typedef struct {
    const ViewCall *c;
    Arena *a;
    int layer;
    const char *axis;
    int n; /* places of the ring, and its steps */
    PlaceCut order;
    int64_t S;
    int64_t rank[HOPS_MAX];          /* of each place */
    double work[HOPS_MAX][HOPS_MAX]; /* [step][place]: FLOP */
    double total, most;              /* of all; of the largest tile */
    int64_t window, chunk;           /* positions that a query sees, that share a block; 0: all */
    bool full;                       /* a query sees the keys after it too */
    bool known; /* the work is that of this mask within the documents of `row` */
    int n_rows; /* that differ; where it is not causal one, which stands for all */
    HopsRow *row;
    int64_t sent;       /* bytes of what travels that a rank sends, forward */
    bool latent;        /* that is what each rank makes keys and values of */
    const char *others; /* which of several rings this is, and what the others do; NULL: there is
                           one */
} Hops;
/* In a tile's piece query row y sees key columns from y + low to y + high, of those there are. */
typedef struct {
    int64_t low, high;
} HopsBand;

/* Has the trace a forward ring attention? */
bool hops_there(const Trace *t);
/* Can the ring be drawn: has it 2 to HOPS_MAX ranks in one cut of the sequence? */
bool hops_drawn(const ViewCall *c);
/* False and a diagnostic where there is none of 2 to HOPS_MAX ranks in one cut of the sequence. */
bool hops_prepare(const ViewCall *c, Hops *h);
/* The place whose keys place k holds in step j. */
int hops_keys(const Hops *h, int j, int k);
/* Positions that piece i of a place (zigzag: 0 or 1, else 0) has of [from, lim): as a range of its
 * own rows, from 0. */
HopsDocument hops_rows(const Hops *h, int place, int i, int64_t from, int64_t lim);
/* Of query piece i and key piece m of a tile (zigzag: 0 or 1, else 0): what the mask leaves. */
HopsBand hops_band(const Hops *h, int queries, int i, int keys, int m);
/* The tokens of a place: "0-7, 56-63", striped "1, 5, 9, … 61". */
const char *hops_tokens(const Hops *h, int place);
/* The ranks with the most work of such rows in step j, and one of their places. */
const char *hops_most(const Hops *h, const HopsRow *row, int j, int *place);
/* The place with the most work in step j. */
int hops_busiest(const Hops *h, int j);
/* How many times as long as with even shares the steps last, each as long as its busiest rank. */
double hops_slowdown(const Hops *h);
/* As 0 or more pages, and as text; see view_storyboard. */
int view_hops(const ViewCall *c, Scene **page);
const char *view_hops_text(const ViewCall *c);
#endif
