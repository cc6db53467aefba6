/* The seven frames of a routing: scores, top-k, permute, exchange, experts, exchange back, weighted
 * sum; each a page with the tokens of every rank at the same place. */
#ifndef SP_RENDER_FRAMES_H
#define SP_RENDER_FRAMES_H
#include "render/routing/tokens.h"

/* Fills page[] with at most `max` frames; returns their number, 0 where not even one rank's tokens
 * fit on a page of that preset. */
int routing_frames(const Routing *r, const Tokens *k, PresetKind preset, Scene **page, int max);
enum { TILE_W = 22, TILE_H = 17, TILE_PITCH = 24, TILE_LINE = 20 };
/* Tiles of one size, and from one to the next beside and below it; text: size of the number, base:
 * of its baseline below the tile's upper edge. */
typedef struct {
    double w, h, pitch, line, text, base;
} TileSize;
/* A tile of that height, all else in proportion in whole units; text: of the number at TILE_H. */
TileSize tile_size(double h, double text);
/* A tile: a token's number on the colour of the rank that it comes from. In a group of its own with
 * its tooltip. */
typedef struct {
    const Routing *r;
    const Tokens *k;
    Scene *s;
    TileSize size;
} TilePen;
void tile_draw(const TilePen *p, Pt at, int64_t token, int64_t from, const char *tip);
#define RIBBON_OPACITY 0.62 /* where two ribbons cross, both are seen */
/* Which of the four colours a member of the group has. */
static inline Role routing_hue(int64_t member) { return ROLE_SHARD + (int)(member % 4); }
#endif
