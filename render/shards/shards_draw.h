/* How a tensor's parts look, for weights, rulers and products alike: tones by part, owners in the
 * parts, lines where an axis cuts, a stack for copies. */
#ifndef SP_RENDER_SHARDS_DRAW_H
#define SP_RENDER_SHARDS_DRAW_H
#include "render/furniture/wrong.h"
#include "render/graph/block_graph.h"
#include "render/shards/shards.h"

enum { SHARDS_MAX_LABELS = 16, SHARDS_MAX_LINES = 64, SHARDS_ALL = 1000 };
/* What may stand on a page beside weights and values: the ring of attention's blocks, the mask of
 * its work, the experts. */
enum { SHARDS_RING = 1, SHARDS_MASK = 2, SHARDS_EXPERTS = 4 };

typedef struct ShardPen {
    const ViewCall *c;
    const struct ShardPen *peer; /* what it would draw of the other plan; NULL: there is none */
    Scene *s;
    PresetKind preset;
    int64_t rank;
    int layer;
    const BlockGraph *names;  /* the layer as view block has it; NULL: it has none */
    const WrongList *wrong;   /* all wrong steps of the trace */
    int product;              /* on this page: its number; -1: none, SHARDS_ALL: all */
    unsigned load;            /* of SHARDS_RING, ... what is on this page */
    bool throughout;          /* most matrices lie otherwise than the peer's */
    unsigned *legend;         /* what hexagons between values show */
    double beside;            /* width of the weights, whose products stand beside them; 0: below */
    double under;             /* room of a slide's footer under experts */
    double ruler;             /* height of the rulers of values */
    double x, w, scale, most; /* scale: px per element; most: px of the longest side */
} ShardPen;

/* What a value is called: a state of the residual stream as in view block. */
const char *shards_name(const ShardPen *p, const TraceValue *v);
/* Tone of part i of n, to be added to ROLE_SHARD: from dark to light; above four, neighbours share
 * one. */
int shards_shade(int64_t i, int64_t n);
/* Left edge of band i of a dim that is px long; a dim of packed blocks has as many bands as blocks
 * times parts. */
double shards_band_at(const DimCut *c, int64_t i, double px);
/* What several ranks hold alike lies in a stack behind the matrix. */
void shards_draw_copies(ShardPen *p, const DimCut *r, const DimCut *k, Area at);
/* How far it stands out at the right. */
double shards_stack(const Trace *t, const DimCut *r, const DimCut *k);
/* Width of the widest text of owners in a part of these cuts; 0 if there are too many parts for
 * any. */
double shards_label_width(ShardPen *p, const DimCut *r, const DimCut *k);
/* The parts of rows cut by r and columns cut by k, with their owners; the pen's rank has a black
 * outline. */
void shards_draw_parts(ShardPen *p, const DimCut *r, const DimCut *k, Area at);
/* Lines where an axis cuts the rows (or columns), and the index of the first cut. */
void shards_draw_cuts(ShardPen *p, const DimCut *c, bool rows, Area at);
/* Number of products that are drawn: 0 if there are none, or more than a page explains. --part
 * names a module's. */
int shards_products(ShardPen *p);
/* Products y = x·W transposed of the layer: operands with their owners, the pending sum, the
 * collective. Draws them from the top and returns the y under them. */
double shards_draw_products(ShardPen *p, double top);
/* What the heading of the pen's product says: "up: Column parallel". */
const char *shards_product_title(ShardPen *p);
/* The same as text; "" if there are none. */
const char *shards_products_text(ShardPen *p);
#endif
