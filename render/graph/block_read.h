/* From a trace to the structure of a block picture. */
#ifndef SP_RENDER_BLOCK_READ_H
#define SP_RENDER_BLOCK_READ_H
#include "render/graph/block_graph.h"

/* Reads the pass that is asked for (all: forward) of one layer as the rank that is asked for sees
 * it, in the call's arena. NULL and a diagnostic (E0211) if there is nothing. */
BlockGraph *block_read_trace(const ViewCall *c);
#endif
