/* Where the matrices of a slide stand, so that they fill it: columns from left to right, in each
 * one matrix or several under each other, with their words under them or at their right. */
#ifndef SP_RENDER_SHARDS_TILES_H
#define SP_RENDER_SHARDS_TILES_H
#include "render/furniture/furniture.h"

/* A matrix with its words, in units of the scene. */
typedef struct {
    double left;             /* room for an index at its left */
    double w, h;             /* with copies behind it and an index under it, without its name */
    double name_w;           /* width of the name over it */
    double words_w, words_h; /* of the words that explain it */
    Pt at, words;            /* found: upper left corners of the name, and of the words */
} ShardTile;

enum { TILE_NAME = 30 }; /* height of the name over a matrix */

/* Places n tiles in their order on an area of w by h from (0, 0): in as many columns as its width
 * has room for, words under the matrices where its height has. Returns whether all have room; if
 * not, they stand in as many columns of that height as they need, however wide. *high: the height
 * that they take. Scratch in `a`. */
bool shards_tiles(Arena *a, ShardTile *tile, int n, double w, double h, double *high);
#endif
