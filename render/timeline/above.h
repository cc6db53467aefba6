/* The names of kernels that are too narrow for them: above their lane, each over a line as wide as
 * the kernels that it names; further up at a leader. */
#ifndef SP_RENDER_ABOVE_H
#define SP_RENDER_ABOVE_H
#include "render/timeline/stave.h"

typedef struct {
    const char *text; /* NULL: only a place that stays free, of a leader that passes */
    Span run, at;     /* the kernels, the words */
    double lead;      /* where its leader stands */
    int row;          /* 0 is the nearest */
} AboveName;
typedef struct {
    AboveName *name;
    int n, cap;
    int rows;   /* beyond the nearest */
    bool alone; /* of the only kernel: its name reaches as far as it needs */
} Above;

/* The names of a line; *out lives in the arena of the call. */
void above_lay(const TimePen *p, const Stave *v, Above *out);
void above_draw(const TimePen *p, const Stave *v, const Above *names); /* over the lane at v->y */
#endif
