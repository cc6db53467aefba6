/* Which of a layer's weights the shards picture draws, and as what. */
#ifndef SP_RENDER_SHARDS_WHICH_H
#define SP_RENDER_SHARDS_WHICH_H
#include "render/shards/shards_draw.h"

/* Is it of the pen's layer (or of any, if it has none)? */
bool shards_wanted(const ShardPen *p, const TraceParam *q);
/* One of all experts in one tensor, their biases [E, F] too: no matrix shows them. */
bool shards_of_all_experts(const Trace *t, const TraceParam *q);
/* The wrong step that speaks of the weight as it lies: where its planted shard, or what claims
 * something of it, is read first. -1: it is right. */
int shards_wrong_of(const ShardPen *p, const TraceParam *q);
/* Is it drawn as the experts that it is of? Not where a mistake is told at its row, and
 * not beside another plan, where rows face each other. */
bool shards_as_experts(const ShardPen *p, const TraceParam *q);
#endif
