/* Names that stand in rows above or below what they name, each at a leader: which row and place a
 * name has, so that no name touches another's leader. Knows lengths only, nothing of scenes. */
#ifndef SP_RENDER_CALLOUTS_H
#define SP_RENDER_CALLOUTS_H
#include "base/arena.h"

enum { CALLOUT_APART = 12, CALLOUT_CLEAR = 4 }; /* px from a name to the next, to a leader */

typedef struct {
    double at, w; /* where the leader stands, and the width of the name */
    int row;      /* 0 is the nearest; -1: no room, it has no leader either */
    double x;     /* left end of the name: the leader ends over it */
} Callout;

/* Gives n callouts in the order of their leaders a row of at most `rows` and a place from `from` to
 * `to`, in as few rows as have most of them: in each row as many as have room between the leaders
 * of those further out. Returns the number of rows. */
int callouts_lay(Arena *a, Callout *c, int n, double from, double to, int rows);
#endif
