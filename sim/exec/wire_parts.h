/* Which elements go from rank to rank in a move of a real run, and as what: both sides compute it.
 * Refuses to know where blocks lie. */
#ifndef SP_EXEC_WIRE_PARTS_H
#define SP_EXEC_WIRE_PARTS_H
#include "exec/wire.h"

/* Before the elements of a piece: how many follow, and the sizes of the block that they are from,
 * which after a planted mistake are not those of its layout. */
typedef struct PieceHead {
    int64_t count, n[LAYOUT_MAX_DIMS];
} PieceHead;
/* Do blocks of other ranks take part? */
bool wire_joins(const WireMove *m);
/* Does anything of the piece go to `rank`? */
bool wire_hands_in(const WireMove *m, int64_t rank, const Piece *one);
/* Of which group are those who hand in pieces? A send has its place whatever group is asked for. */
const AxisList *wire_peers(const WireMove *m);
/* The most elements of a piece that a rank can get of it: both sides leave room for so many. */
Region wire_most(const WireMove *m, const Piece *one, int64_t rank, Arena *tmp);
int64_t wire_count(const Region *r);
/* Numbers of bf16 travel as the two bytes that they are, and those that will be when they arrive.
 */
bool wire_narrow(const WireMove *m);
int64_t wire_element(const WireMove *m); /* bytes */
#endif
