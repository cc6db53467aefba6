/* Lengths and marks of "backward beside forward". */
#ifndef SP_RENDER_MIRROR_DRAW_H
#define SP_RENDER_MIRROR_DRAW_H
#include "render/furniture/furniture.h"
#include "render/mirror/mirror.h"

/* Heights of a preset, and what is left out. */
typedef struct {
    double row, sub, edge, line; /* box, lower box, gap between boxes, line of a label */
    double tap, plus, next;      /* dot to first box, last box to plus, plus to the next dot */
    double fork;                 /* room for a line that leaves sideways */
    double apart;                /* between what a label says of values that lie unlike */
    double saved;                /* the most that the words of what is kept take in the gutter */
    bool narrow;                 /* words in the gutter cut to bytes */
    bool terse;                  /* collectives do not say which values they move */
    bool inlined;                /* numbers on the line of the symbols */
    bool bare;                   /* labels are symbols alone, gradients for other pages untold */
    bool beside,
        weights; /* weight gradients at the right (if there are any); weights at the left */
} MirrorLook;

typedef struct {
    const ViewCall *c;
    const Mirror *m;
    Scene *s;
    MirrorLook look;
    unsigned legend;
    const WrongList *wrong;
    double box, stream, forward, backward, back_stream; /* width of a box; streams and centres */
    bool grads;                                         /* are there any to stand beside? */
    bool brief; /* what norms give is told without their names, everywhere: "after the norm" */
    double grad, grad_w, right; /* column of weight gradients; right edge of all */
    double hex, gap;            /* of their reductions */
    double lane;                /* from a stream to the outermost lane of what passes rows */
    double weight;              /* column of weights at rest, or -1 */
    double col[4];              /* of it: name, at rest, gathered, freed */
    double fetch;               /* of what brings them */
} MirrorPen;

/* Fills the x of everything from the widths of the texts of strips [first, first + n). */
void mirror_columns(MirrorPen *p, double x, int first, int n);
/* Height of a strip beside the stream: its tap, its rows with the gaps between them, its plus. */
double mirror_height(const MirrorPen *p, const MirrorStrip *s);
/* The ends of the rows of a strip: what arrows from outside end on, or start from. */
typedef struct {
    int top, bottom; /* groups on which arrows end */
    double y0, y1;   /* borders */
} MirrorSide;
typedef struct {
    MirrorSide f0, f1, b0, b1; /* first and last of forward; uppermost and lowest of backward */
    bool back;                 /* is there any of backward? */
} MirrorEnds;
/* Where a row stands, and its boxes. */
typedef struct {
    double y;
    MirrorSide f, b;
    bool folded; /* in a band with others */
} MirrorPlace;

/* The height of all rows and the gaps between them. */
double mirror_rows_height(const MirrorPen *p, const MirrorStrip *s);
/* Draws the band at y; returns the place of each of its rows. */
MirrorPlace mirror_band(MirrorPen *p, const MirrorStrip *s, double y);
/* Does the row above the band hand anything to a row in it? Then a straight line brings it. */
bool mirror_into(const MirrorStrip *s, const MirrorFold *f);
/* The strip as its rails see it: what passes rows, with those of the band as one. */
MirrorStrip mirror_folded(const MirrorPen *p, const MirrorStrip *s);
/* The lines that lead past rows and chains beside others (mirror_rails.c); at[r]: row r. */
void mirror_rails(MirrorPen *p, const MirrorStrip *s, const MirrorPlace *at);
/* Rows of a strip from y; returns the y under them. */
double mirror_rows(MirrorPen *p, const MirrorStrip *s, double y, MirrorEnds *e);
/* An arrow of the picture, ending on group `to` (-1: on none). */
void mirror_arrow(MirrorPen *p, const Pt *pt, int n, bool partial, int to);
/* The same with the values of a label as its tooltip. */
struct MirrorLabel;
void mirror_flow_arrow(MirrorPen *p, const Pt *pt, int n, const struct MirrorLabel *l, int to);
/* When a row appears in a figure that builds up (scene_at): with the first of its steps. */
int mirror_row_step(const MirrorRow *r, bool back);
/* The label of what flows under row r, in the gap [y, y + h] between two rows. */
void mirror_draw_label(MirrorPen *p, const MirrorStrip *s, int r, bool back, double y, double h);

/* Draws strips [first, first + n) from y: pieces of the stream with their circles, chains with
 * their ends; returns the y under them. */
double mirror_strips(MirrorPen *p, int first, int n, double y);
/* Their height. */
double mirror_strips_height(const MirrorPen *p, int first, int n);
/* Head line of the columns at y. */
void mirror_heads(MirrorPen *p, double y);
/* "x", "h", "y" of the upper or lower end of a piece of the stream; backward "dx". */
const char *mirror_end_name(const MirrorPen *p, int strip, bool back, bool bottom);
/* The two streams of strips [first, first + n) with dots (at dot[i]) and pluses, from circle to
 * circle. */
void mirror_streams(MirrorPen *p, int first, int n, const double *dot, double top, double bottom);
/* Weight gradients (and weights) as a list at y, where there is no room beside; returns the y under
 * it. */
double mirror_lists(MirrorPen *p, const MirrorStrip *s, double x, double y);
/* Words of a row, for descriptions. */
const char *mirror_words(const MirrorPen *p, const MirrorRow *r, bool back, bool rest);

/* "Sent per rank: forward tp 16 KiB in 4 collectives ..." of strips [first, first + n). */
const char *mirror_totals(const Mirror *m, int first, int n, bool brief);
/* Pages about the weights and their gradients (mirror_weights.c); returns their number, at most
 * `max`. */
int mirror_weights(const ViewCall *c, const Mirror *m, PresetKind preset, Scene **page, int max);

/* ---- words and widths (mirror_words.c) ---- */
enum { MIRROR_LABEL = 12, MIRROR_SIZE = 12 };

/* Shapes of what flows between two rows, one per line; the axis over which a sum (a maximum) is
 * pending, or NULL. */
typedef struct MirrorLabel {
    int n;
    const char *line[MIRROR_FLOW], *num[MIRROR_FLOW], *tip[MIRROR_FLOW],
        *pending;       /* tip: "NAME, step N" per value */
    const char *summed; /* which values, where others flow there that are whole; else "" */
    bool max;
    const char *axes;           /* the same axes as the trace writes them */
    Likeness like[MIRROR_FLOW]; /* of its values to the other plan's, of two */
} MirrorLabel;
/* A value in the words of the figure, "q", "h", "after ffn_norm"; `back`: its gradient, "dq", "dh",
 * "gradient after ffn_norm". */
const char *mirror_value(const BlockGraph *g, const char *value, bool back);
/* The same beside lines, where the figure's norms are told without their names "after the norm";
 * pills have the whole name. */
const char *mirror_told(const MirrorPen *p, const char *value, bool back);
/* Of what flows under row r of a strip (-1: into it), forward or `back`. */
MirrorLabel mirror_label(const MirrorPen *p, const MirrorStrip *s, int r, bool back);
/* "Σ tp pending" of a label with such a sum; the words in the pill of a collective, "tp {0,1}". */
const char *mirror_pending(const MirrorPen *p, const MirrorLabel *l);
const char *mirror_pill(const MirrorPen *p, const TraceCollective *c);
/* "q, k, v  32 MiB": what a row keeps, in as many names as `room` has width for (INFINITY: all);
 * NULL if nothing. */
const char *mirror_saved_words(const MirrorPen *p, const MirrorRow *r, bool rest, double room);
/* Weight gradients of a row that end alike, as one entry. */
typedef struct {
    const ParamGrad *first;
    const char *names;
    const TraceShape *shape; /* of a single one */
    int times;               /* how many there are */
    int64_t bytes;
    int step;
} MirrorEntry;
/* Fills out[] (of as many as the row has gradients) and returns their number. */
int mirror_entries(const MirrorPen *p, const MirrorRow *r, MirrorEntry *out);
/* "d ffn_norm [D], dw1, dw3 [F/tp, D]": the gradients of the weights of strips [first, first + n)
 * as they lie in the end; "" if they have none. */
const char *mirror_grad_shapes(const MirrorPen *p, int first, int n);
/* Collective i of an entry, "AllReduce ×2" where each of two gradients has its own. */
const char *mirror_entry_words(const MirrorPen *p, const MirrorEntry *e, int i);
/* The two lines behind an entry. */
const char *mirror_end_words(const MirrorPen *p, const MirrorEntry *e, int line);
/* How many of the row's weights that stand in one line with `like` are brought by a collective of
 * their own; what stands in its hexagon: "AG ×2", "" where they travel with another. */
int mirror_fetches(const MirrorPen *p, const MirrorRow *r, const TraceParam *like);
const char *mirror_fetch_words(const MirrorPen *p, const MirrorRow *r, const TraceParam *like);
/* Weights of a row that lie at rest in another way; alike ones in one line. Returns their number.
 */
int mirror_states(const MirrorPen *p, const MirrorRow *r, const TraceParam **out,
                  const char **name);
/* Shape at rest, shape in compute, and what becomes of it: 1 to 3. */
const char *mirror_state_words(const MirrorPen *p, const TraceParam *w, int which);
/* Beside it in the box of forward: what the plan calls the norms that it says, "attention_norm";
 * "": it says something else, too. */
const char *mirror_note(const MirrorPen *p, const MirrorRow *r, bool rest);
/* Do the ops of the row make two boxes? */
bool mirror_has_rest(const MirrorRow *r);
/* Widths and heights in units of the canvas: of a text of MIRROR_SIZE, of a row, of the gap under
 * row r (-1: above the first). */
double mirror_text_width(const MirrorPen *p, const char *text, int weight);
double mirror_row_height(const MirrorPen *p, const MirrorStrip *s, const MirrorRow *r);
/* Has a slide no room for so many values from outside of the strip beside row r? Then one arrow has
 * their names. */
bool mirror_sides_named(const MirrorPen *p, const MirrorStrip *s, int r);
/* Lines of a value that a row reads from outside: "labels  [1, 16]" and "[B/dp, S/cp]". */
/* The same of its gradient, where `back`. */
const char *mirror_side_words(const MirrorPen *p, const TraceValue *v, bool back, int line);
/* Of n gradients that leave a row without a line: of one for another page its two lines, of others
 * their names. */
const char *mirror_side_grad_words(const MirrorPen *p, const MirrorStrip *s,
                                   const TraceValue *const *v, int n, int line);
/* "q, list": what comes to row r past others, but for what is added there; backward also what comes
 * without a line. */
const char *mirror_past_words(const MirrorPen *p, const MirrorStrip *s, int r, bool back);
/* "dq": what is added above row r, backward, and comes there without a line. */
const char *mirror_term_words(const MirrorPen *p, const MirrorStrip *s, int r);
/* The same of what row r makes for other pages. */
const char *mirror_out_words(const MirrorPen *p, const MirrorStrip *s, int r, bool back);
/* Do gradients of values of other pages leave at the right of row r? A line that comes in there
 * does so under them. */
bool mirror_leaves(const MirrorPen *p, const MirrorStrip *s, int r);
/* "Attention" */
double mirror_title_width(const MirrorPen *p, const MirrorStrip *s);
double mirror_edge_height(const MirrorPen *p, const MirrorStrip *s, int r);
/* Of it, room for what joins and leaves: where a chain beside others begins below, and for the fork
 * to one, or to what passes rows; where backward a term is added, and others leave, for both. */
double mirror_rail_room(const MirrorPen *p, const MirrorStrip *s, int r);
/* From the gap under row r at *y, *h high, to where its label stands: between the row that makes
 * what it tells (backward the sum above that) and the fork from which not all of it goes on. */
void mirror_label_gap(const MirrorPen *p, const MirrorStrip *s, int r, bool back, double *y,
                      double *h);
enum {
    MIRROR_BREAK = 14,
    MIRROR_FORK = 20,
    MIRROR_RAILS = 28,
    MIRROR_LANE = 12
}; /* its parts; widths */
enum { MIRROR_PILL = 22 };
/* The value as a pill at the end of a chain; its top is y. Returns its group, on which arrows end.
 */
int mirror_pill_of(MirrorPen *p, double x, double y, Subject s);
double mirror_pill_width(const MirrorPen *p, const char *value, bool back);
/* Parts of the subtitle of both passes, NULL-terminated; `part` has room for 8. A slide has room
 * for the first four. */
void mirror_subtitle(const BlockGraph *g, PresetKind preset, const char **part);
#endif
