/* Labels that lie, collected while lowering and told at its end. */
#ifndef SP_LOWER_MISLABEL_H
#define SP_LOWER_MISLABEL_H
#include "lower/program.h"

typedef struct {
    int module, tensor;  /* whose boundary; the value there */
    bool input, own;     /* at its input, else output; the label is written, not the style's */
    const char *instead; /* a DTensor, which knows how it lies: what is done; NULL: none */
    int by;              /* the module that leaves the value so, found when it is told; -1: none */
    const char *feeders; /* what to write where lines of modules that it reads are missing; found
                            when it is told; NULL: none are */
    const PlanLine *odd; /* the line whose `axis:` is not that of the lines it works with, found
                            when it is told; NULL: none is */
    int step; /* where it shows: the first after an input, the one that makes an output; -1: none */
    Loc loc;  /* of the label, or of the line */
    Layout want, have;
    const char *want_text, *have_text; /* "[B/dp, S/tp, D]" */
} Mislabel;
typedef struct {
    Mislabel *m;
    int n, cap;
} Mislabels;

/* Remembers one; the list grows in `a`. */
void mislabel_add(Mislabels *all, Arena *a, Mislabel m);
/* Says each finding once into `d`, as an error, and marks the steps where it shows (Step.wrong); as
 * a note of a DTensor. */
void mislabels_report(Program *p, const Mislabels *all, Diags *d);
/* "shard(1)", "partial" or "replicate": how a value lies over one axis, as plans say it. */
const char *place_word(const Program *p, int tensor, const Layout *L, int axis);
/* May a help write the line anew as a whole: does it say a style and at most its output? */
bool mislabel_short_line(const PlanLine *line);
#endif
