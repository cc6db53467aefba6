/* Moves between processes of blocks that lie in the memory of a GPU which the engine reaches: from
 * where a block lies, or its part put side by side there, to where the other rank puts its block
 * together. Each group of axes has a lane of the GPU: its collectives go on beside the kernels and
 * those of other groups, until somebody needs what they bring. */
#ifndef SP_EXEC_WIRE_LANES_H
#define SP_EXEC_WIRE_LANES_H
#include "engine/engine.h"
#include "exec/took.h"
#include "exec/wire_parts.h"

typedef struct WireLanes WireLanes;
/* NULL where the device has no lanes, or the engine does not reach it. */
WireLanes *wire_lanes_new(Engine *engine, const Program *p, Device *dev, Tooks *tooks);
void wire_lanes_free(WireLanes *l);
/* As of a Wire, over a group of the engine (-1: all); `sums`: the engine adds up, nothing is
 * brought. */
void wire_lanes_bring(WireLanes *l, const WireMove *m, int group, bool sums);
Tensor wire_lanes_piece(WireLanes *l, const WireMove *m, int64_t i, Region *at, Arena *arena);
void wire_lanes_reduce(WireLanes *l, const WireMove *m, const Region *to, Tensor *out);
void wire_lanes_spent(WireLanes *l);
/* Waits for all that was asked for. */
void wire_lanes_settle(WireLanes *l);
#endif
