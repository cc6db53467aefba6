/* Lengths and marks of "backward beside forward". */
#ifndef SP_RENDER_MIRROR_DRAW_H
#define SP_RENDER_MIRROR_DRAW_H
#include "render/furniture.h"
#include "render/mirror.h"

/* Heights of a preset, and what is left out. */
typedef struct {
    double row, sub, edge, line; /* box, lower box, gap between boxes, line of a label */
    double tap, plus, next;      /* dot to first box, last box to plus, plus to the next dot */
    bool narrow;                 /* words in the gutter cut to bytes */
    bool beside, weights;        /* weight gradients at the right; weights at the left */
} MirrorLook;

typedef struct {
    const ViewCall *c;
    const Mirror *m;
    Scene *s;
    MirrorLook look;
    unsigned legend;
    double box, stream, forward, backward, back_stream; /* width of a box; streams and centres */
    double grad, grad_w, right;                         /* column of weight gradients; right edge of all */
    double hex, gap;                                    /* of their reductions */
    double weight;                                      /* column of weights at rest, or -1 */
    double col[4];                                      /* of it: name, at rest, gathered, freed */
} MirrorPen;

/* Fills the x of everything from the widths of the texts of strips [first, first + n). */
void mirror_columns(MirrorPen *p, double x, int first, int n);
double mirror_height(const MirrorPen *p, const MirrorStrip *s);
/* Rows of a strip whose stream starts with a dot at y; returns the y of its plus. */
double mirror_strip(MirrorPen *p, const MirrorStrip *s, double y);
/* Head line of the columns at y. */
void mirror_heads(MirrorPen *p, double y);
/* The two streams of strips [first, first + n) with dots and pluses; dot[i] as given to mirror_strip. */
void mirror_streams(MirrorPen *p, int first, int n, const double *dot, double top, double bottom);
/* Weight gradients (and weights) as a list at y, where there is no room beside; returns the y under it. */
double mirror_lists(MirrorPen *p, const MirrorStrip *s, double x, double y);
/* Words of a row, for descriptions. */
const char *mirror_words(const MirrorPen *p, const MirrorRow *r, bool back, bool rest);

/* ---- words and widths (mirror_words.c) ---- */
enum { MIRROR_LABEL = 12, MIRROR_SIZE = 12 };

/* Shapes of what flows between two rows, one per line; the axis over which a sum is pending, or NULL. */
typedef struct {
    int n;
    const char *line[MIRROR_FLOW], *pending;
} MirrorLabel;
MirrorLabel mirror_label(const MirrorPen *p, const MirrorStrip *s, int r, bool back);
const char *mirror_pending(const MirrorPen *p, const MirrorLabel *l);
const char *mirror_pill(const MirrorPen *p, const TraceCollective *c);
/* "q, k, v  32 MiB": what a row keeps; NULL if nothing. */
const char *mirror_saved_words(const MirrorPen *p, const MirrorRow *r, bool rest, bool brief);
/* Weight gradients of a row that end alike, as one entry. */
typedef struct {
    const MirrorGrad *first;
    const char *names;
    const TraceShape *shape; /* of a single one */
    int64_t bytes;
    int step;
} MirrorEntry;
int mirror_entries(const MirrorPen *p, const MirrorRow *r, MirrorEntry *out);
/* The two lines behind an entry. */
const char *mirror_end_words(const MirrorPen *p, const MirrorEntry *e, int line);
/* Weights of a row that lie at rest in another way; alike ones in one line. Returns their number. */
int mirror_states(const MirrorPen *p, const MirrorRow *r, const TraceParam **out, const char **name);
/* Name, shape at rest, shape in compute, and what becomes of it: 0 to 3. */
const char *mirror_state_words(const MirrorPen *p, const TraceParam *w, int which);
bool mirror_has_rest(const MirrorRow *r);
double mirror_text_width(const MirrorPen *p, const char *text, int weight);
double mirror_row_height(const MirrorPen *p, const MirrorRow *r);
double mirror_edge_height(const MirrorPen *p, const MirrorStrip *s, int r);
#endif
