/* A roofline with logarithmic axes: a flat roof, slanted ones that meet it, and marks under them
 * with names where these have room. Knows no kernels and no collectives. */
#ifndef SP_RENDER_ROOF_PLOT_H
#define SP_RENDER_ROOF_PLOT_H
#include "render/furniture/wrong.h"

enum { ROOF_SLOPES = 2 };
typedef struct {
    double x, y;  /* amount per byte; amount per second */
    double share; /* of what all marks stand for, 0 to 1: its size */
    Role fill, line;
    bool hexagon;                                /* a collective; else a circle */
    int step;                                    /* with a flag if that is wrong */
    const char *id, *what, *label, *tip, *thing; /* thing: what others show too, or NULL */
} RoofMark;
/* What a line is called, and what where that has no room. */
typedef struct {
    const char *whole, *brief;
} RoofName;
typedef struct {
    double rate; /* bytes/s */
    RoofName name;
    const char *ridge; /* where it meets the flat one */
} RoofSlope;
typedef struct {
    const ViewCall *c;
    Scene *s;
    Area at; /* with the words at its axes */
    const char *id, *head, *x_name;
    RoofName peak_name, under_name;
    double peak;            /* the flat roof */
    double under;           /* a line at this share of the roof, with its name; 0: none */
    int n_slopes, n, first; /* the first number of a mark without room for its name */
    RoofSlope slope[ROOF_SLOPES];
    RoofMark *mark; /* large ones first */
    const WrongList *wrong;
} RoofPlot;
/* What the words under the page have to say: names of the marks that have a number instead, "1 add;
 * 2 RoPE", and of those that have no room for that, "add, RoPE", or ""; does a name end with how
 * many more there are at its place; have neighbours one number? The last number. */
typedef struct {
    const char *numbered, *without;
    bool more, shared;
    int last;
} RoofSays;
/* Draws it. *legend gets what the legend of the page has to explain of a wrong step. */
RoofSays roof_plot(const RoofPlot *p, unsigned *legend);
#endif
