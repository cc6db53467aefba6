/* How large the things of an overview are and where they stand, and their drawing. */
#ifndef SP_RENDER_OVERVIEW_PEN_H
#define SP_RENDER_OVERVIEW_PEN_H
#include "render/overview/overview.h"

enum { LINE = 23, SIDE = 16, HEADS = 12, NORM = 46, JOIN = 18 };

typedef struct {
    double from, to;
} Span;

typedef struct {
    Overview o;
    Scene *s;
    double box, gap, width; /* heights: of a box at least, of a written layout; width of boxes */
    double lowest;          /* a box at least, where there is little room */
    double hex, shortest;   /* of a hexagon, of a gap without text */
    double stream, box_x;   /* where the stream runs, and the left border of the boxes */
    bool norms, bytes;      /* norms have boxes; hexagons say bytes */
    bool bare;              /* layouts only where the stream begins and ends */
    bool brief;             /* layers and kinds in few words */
    bool stacked;           /* kinds of collectives under a unit instead of in columns */
    bool kinds;             /* columns say kinds of collectives, as hexagons do */
    bool codes;             /* in columns by their codes, "AG" */
    bool codes_too;         /* and in hexagons */
    bool dense;             /* with little air */
    bool merged;            /* gathers of weights for both passes in one: the footer tells them */
    bool flat;              /* axes side by side instead of as lines */
    double col[SEND_KINDS]; /* x of the columns, relative to the right border of the boxes */
    bool heads;             /* the columns have headings */
    bool roomy;             /* boxes have room for all words in one line */
    bool one_line;          /* boxes say what they are and hold in one line, */
    bool of_weights;        /* and there that it is weights */
    int plus;               /* the group of the last add to the stream */
    unsigned legend;
} OverviewPen;

/* Words: "9 ops"; "321 KiB of weights"; in a hexagon and in a column "AllGather ×2,
 * 8 KiB", by its code "AG ×2, 8 KiB", in a column without kinds "8 KiB in 2", "receives"; of
 * messages between stages; of a layout "[B/dp, S, D]" and "[1, 64, 256]   64 KiB"; at a bracket
 * "layers 0 to 1"; over a column. All in the arena. */
const char *overview_ops(Arena *a, const OverviewUnit *u);
const char *overview_weights(Arena *a, const OverviewUnit *u);
/* The same where boxes have one line. */
const char *overview_note(const OverviewPen *p, const OverviewUnit *u);
const char *overview_total(const OverviewPen *p, const OverviewItem *t);
const char *overview_item(const OverviewPen *p, const OverviewItem *i);
/* "AG AllGather, AR AllReduce": the codes that stand in the figure; "": none. */
const char *overview_codes(const OverviewPen *p);
const char *overview_message(const OverviewPen *p, const OverviewUnit *u);
const char *overview_symbols(const OverviewPen *p, const TraceValue *v);
const char *overview_numbers(const OverviewPen *p, const TraceValue *v);
const char *overview_bracket(const OverviewPen *p, const OverviewUnit *u);
const char *overview_head(const OverviewPen *p, SendKind k);

/* The lines of a column for what a unit sends of kind k; returns their number, *out in the arena.
 */
int overview_lines(const OverviewPen *p, const OverviewUnit *u, SendKind k, OverviewItem **out);
/* Between a pill and its words in a column, and their size; width of both. */
double overview_line_gap(const OverviewPen *p);
double overview_line_size(const OverviewPen *p);
double overview_line_width(const OverviewPen *p, const OverviewItem *t);

/* Widths of what stands on a way, and of a hexagon of messages with its pill. */
double overview_item_width(const OverviewPen *p, const OverviewItem *i);
double overview_message_width(const OverviewPen *p, const OverviewUnit *u);
/* Does it have a place on the way? Norms have none where there is little room. */
bool overview_shown(const OverviewPen *p, const OverviewItem *i);
/* Heights: of a unit's box, of that with the lines below it, of the gap above unit i, of the end of
 * a stream above that, under the last unit. */
double overview_box(const OverviewPen *p, const OverviewUnit *u);
double overview_height(const OverviewPen *p, const OverviewUnit *u);
double overview_gap(const OverviewPen *p, int i);
double overview_end(const OverviewPen *p, int i);
double overview_tail(const OverviewPen *p);
/* Where the way in or out meets a unit's box, under its top. */
double overview_lane(const OverviewPen *p, const OverviewUnit *u, bool out);
/* Does what leaves unit i - 1 not flow into unit i? */
bool overview_breaks(const Overview *o, int i);
/* The value that enters unit i (n: that leaves the last one), `last` the one that enters the unit
 * before: is its layout written, `inside`: in the gap above unit i? */
const TraceValue *overview_enters(const Overview *o, int i);
bool overview_labelled(const OverviewPen *p, int i, const TraceValue *v, const TraceValue *last,
                       bool inside);
/* Is what the optimizer sends beside its own box only? Then it needs no column and no heading. */
bool overview_apart_only(const Overview *o, SendKind k);
/* Chooses the size of everything, where the page is narrow in fewer words; returns the right
 * border. */
double overview_layout(OverviewPen *p, const Preset *pr, PresetKind preset);
/* All boxes have two lines, or all one: what a box is and what it holds. When sizes are known. */
void overview_set_lines(OverviewPen *p);
/* Lets the figure fill the height of a slide, or shortens it to that. */
void overview_fit(OverviewPen *p, const Preset *pr, double room);

/* All units, from y down; returns the y under them. */
double overview_draw(OverviewPen *p, double y);
#endif
