/* The names of collectives whose bars are too narrow for them: beside the bar, in rows under its
 * lane at a leader, and what has no place there by a number in a list under the line. */
#ifndef SP_RENDER_BELOW_H
#define SP_RENDER_BELOW_H
#include "render/timeline/stave.h"

typedef struct BelowLane BelowLane;
typedef struct {
    const BelowLane *lane[STAVE_LANES]; /* NULL: no names */
    const int *number;                  /* Stave.number */
    const char *list;                   /* "tp: 1 RS after wo, 2 AG k × 2"; "": all have a place */
} Below;

/* The names of all lanes; says in v->under what room they take. */
void below_lay(const TimePen *p, Stave *v, Below *out);
void below_draw(const TimePen *p, const Stave *v, const Below *names); /* all but the list */
#endif
