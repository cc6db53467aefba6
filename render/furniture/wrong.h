/* Illegal, planted and missing steps in pictures: which steps of a trace are wrong, a sentence for
 * each kind, the flag at the box and the sentences under the title. A mistake is shown where it
 * happens, never left out. Refuses to judge: what is wrong is what the trace's records say
 * (`wrong`, `planted`, `skipped`). */
#ifndef SP_RENDER_WRONG_H
#define SP_RENDER_WRONG_H
#include "render/furniture/furniture.h"

/* Steps about which the same can be said. */
typedef struct {
    int n;
    const int *step;
    const char *text;  /* the sentence */
    const char *head;  /* what is wrong, without what comes of it: for a title */
    const char *where; /* beside a head that says all else: "Slice of input, step 0, line 10 of
                          plan.yaml"; NULL: the sentence says more */
} WrongNote;

typedef struct {
    int n;
    const WrongNote *note;
    const char *title; /* the first mistake, and how many more there are; NULL: none */
} WrongList;

/* What is wrong with the steps of a trace of which shows(of, step) is true (NULL: all), by its
 * records `wrong`, `planted` and `skipped`: a note per kind of mistake, collectives first, then
 * local moves, ops and sources. An empty list if nothing is. It lives in `a`, its sentences too. */
const WrongList *wrong_find(Arena *a, const Trace *t, bool (*shows)(const void *of, int step),
                            const void *of);
/* What a key of the plan says where all is right, "normalise: global", of a mistake that such a key
 * asks for in so many words, "normalise: local_mean": nobody plants it. NULL: it is planted. */
const char *wrong_right_key(const char *planted);
/* What a key of the plan says where all is right, "normalise: global", of a mistake that this key
 * asks for by itself, "normalise: local_mean": nobody plants that. NULL: it is planted. */
const char *wrong_right_key(const char *planted);
/* Who asks for it: "planted: offset: 1", "the plan's normalise: local_mean". */
const char *wrong_asked(Arena *a, const char *planted);
/* Title of a picture in which something is wrong: the rule that is broken, of several the first,
 * and how many more there are. NULL: nothing is wrong. */
const char *wrong_title(const WrongList *l);
/* Number of the note that speaks of the step, from 1; 0: nothing is wrong with it. */
int wrong_number(const WrongList *l, int step);
/* The border of a wrong step's box: red and thick; the legend says so. */
void wrong_border(Mark *border, unsigned *legend);
/* A collective of which nothing is left? */
bool wrong_skipped(const TraceCollective *c);
/* The red sentences at y, wrapped to width w, at most `max` lines (0: all, of the first 24);
 * returns the y under them, y itself if there are none. */
double wrong_notes(Scene *s, const WrongList *l, double x, double w, double y, int max);
/* The sentences about all steps of the trace, for a picture that has no place of its own for a
 * step: what it shows is of a plan that is wrong. Two lines at most. Returns the y below them; at.y
 * itself if nothing is. */
double wrong_banner(Scene *s, const ViewCall *c, Band at);
/* Of a plan with mistakes, for each of the n pages of a figure (n > 0) that shows none of them at
 * its place: "the mistake is on page 2", "mistakes are on pages 1 and 3", "the mistake, step 14, is
 * not drawn here"; NULL for a page that shows one. NULL: nothing is wrong. */
const char **wrong_elsewhere(const ViewCall *c, Scene *const *page, int n);
/* Height that wrong_notes takes. */
double wrong_height(Scene *s, const WrongList *l, double w, int max);
/* The red flag centred at (x, y): "!" or the number of the note. */
void wrong_flag(Scene *s, const WrongList *l, int step, double x, double y);
/* The same sentences for text, w columns, and how many more there are. */
void wrong_text(Str *out, const WrongList *l, int w);
#endif
