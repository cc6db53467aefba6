/* The symbol of a collective, as every figure and the legend draw it: an orange hexagon whose
 * border is broken where no line of the plan asks for it, red where it is wrong, and whose inside
 * is empty where nothing is left of it. Refuses to choose words: who draws knows what there is room
 * for. */
#ifndef SP_RENDER_HEXAGON_H
#define SP_RENDER_HEXAGON_H
#include "render/furniture/wrong.h"

enum { HEXAGON_LINES = 3 };

typedef struct HexagonLine {
    const char *text; /* NULL: there is none */
    double y, size;   /* its baseline; centred, as wide as it is: who draws fits it */
    int weight;
} HexagonLine;
typedef struct Hexagon {
    double x, y, w, h;    /* its box */
    const char *id, *tip; /* of its group; id NULL: it belongs to the open one and has no frame */
    bool inferred, skipped, wrong;
    bool message;  /* of two ranks, and so the legend calls it */
    Likeness like; /* to the other plan's, of two */
    HexagonLine line[HEXAGON_LINES];
    const WrongList *list; /* has a flag at flag_x, flag_y if this list speaks of the step */
    int step;
    double flag_x, flag_y;
} Hexagon;

/* The box of a collective in the state that its record tells: inferred, skipped, and its step. */
Hexagon hexagon_of(const TraceCollective *c, double x, double y, double w, double h);
/* Draws it, adds what it shows to *legend (NULL: the figure has none); returns its group, for
 * arrows. */
int hexagon_draw(Scene *s, const Hexagon *h, unsigned *legend);
#endif
