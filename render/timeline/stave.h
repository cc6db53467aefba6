/* One line of a timeline on its page: where its lanes and times stand, and which words stand inside
 * its bars. Draws nothing. */
#ifndef SP_RENDER_STAVE_H
#define SP_RENDER_STAVE_H
#include "render/timeline/timeline.h"
#include "render/furniture/wrong.h"

enum { STAVE_LANES = 64, STAVE_STEP = 15 }; /* px from a row of names to the next */

/* Lengths of a preset. */
typedef struct {
    double label_w;    /* lane names */
    double axis_w;     /* the longest line; 0: what is left */
    double margin_w;   /* numbers at the right; 0: under the line */
    double head, over; /* title of a line; room for labels above compute */
    double compute, comm, gap, ticks, below;
    int kernels; /* on a line, if the program can be cut */
} TimeLook;

typedef struct {
    const ViewCall *c;
    Scene *s;
    const TimeLook *look;
    double x0, width, scale; /* of the axis: left edge, longest line, px per second */
    int times;               /* how many times as wide as the longest line this one is drawn, 0: no
                              * line is */
    double right;            /* labels end here */
    const WrongList *wrong;
    unsigned legend;
} TimePen;

typedef struct {
    double a, b; /* px */
} Span;

/* One line on its way onto the page. */
typedef struct {
    const Timeline *t;
    const TimeLine *l;
    double y;                  /* top of the compute lane */
    double bottom;             /* lower edge of the last lane, and of the names under it */
    bool has[STAVE_LANES];     /* events of the lane in this line */
    double under[STAVE_LANES]; /* px that names take under a lane */
    const int
        *number; /* per event: its number in the list below, in its cell; 0: none stands there */
} Stave;

/* Top and height of a lane. */
double stave_top(const TimePen *p, const Stave *v, int lane);
double stave_height(const TimePen *p, int lane);
/* Where a time stands, at one of the line's ends if it is outside. */
double stave_x(const TimePen *p, const Stave *v, double t);
/* Is any of the event in the line? */
bool stave_in(const Stave *v, const TimeEvent *x);
/* Finds out which lanes have events. */
void stave_find_lanes(Stave *v);
/* When an event sends or computes, after it has waited for others; for how long. */
double stave_works_from(const TimeEvent *x);
double stave_works_for(const TimeEvent *x);
/* The words that fit inside an event, or NULL; the flag of a wrong one stands beside them, or above
 * where stave_flag_fits says that it does not. */
const char *stave_text(const TimePen *p, const Stave *v, const TimeEvent *x);
bool stave_flag_fits(const TimePen *p, const Stave *v, const TimeEvent *x);
/* "Shift k waits 82.3 ms" where it fits into that stretch, else NULL. */
const char *stave_waiting(const TimePen *p, const Stave *v, const TimeEvent *x);
/* Size of the names at bars. */
double stave_size(const TimePen *p);
#endif
