/* From a trace to the structure of a block picture. */
#ifndef SP_RENDER_BLOCK_READ_H
#define SP_RENDER_BLOCK_READ_H
#include "render/graph/block_graph.h"

/* Reads the pass of `o` of one layer as the rank of `o` sees it, in `arena`. NULL and a diagnostic
 * (E0211) if there is nothing. */
BlockGraph *block_read_trace(const Trace *t, Diags *d, const RenderOptions *o, Arena *arena);
#endif
