/* An engine whose other ranks are nowhere: for a walk with sizes only, of one rank of many. What is
 * sent is gone, nothing comes, all agree with who asks. */
#ifndef SP_ENGINE_NOBODY_H
#define SP_ENGINE_NOBODY_H
#include "engine/engine.h"

/* Rank `rank` of so many; it has groups for whoever asks. */
Engine engine_nobody(int64_t rank, int64_t ranks);
#endif
