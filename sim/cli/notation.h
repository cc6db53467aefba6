/* A layout in the notation of PyTorch, of JAX' books or of this program. */
#ifndef SP_CLI_NOTATION_H
#define SP_CLI_NOTATION_H
#include "base/arena.h"
#include "trace/trace.h"

/* The words of --notation. */
#define NOTATIONS "torch jax ours"
/* How a value lies, as `word`, one of NOTATIONS, writes it: one placement per mesh axis
 * "(Replicate(), Shard(0))", the name with each dim's axes below it and pending sums behind
 * "wo[D, (H*d)_tp]{U_dp}", or symbolic local dims "[D, H*d/tp]". In `a`; NULL where the record has
 * no layout, or `word` is NULL. */
const char *notation_text(const char *word, const TraceShape *s, const char *name, Arena *a);
/* The same of a parameter, whose placements PyTorch's notation takes as recorded, on the mesh of
 * its DTensor; "Parameter": it stays a plain one. */
const char *notation_param(const char *word, const Trace *t, const TraceParam *p, Arena *a);
/* In PyTorch's notation the devices of that mesh, those that `rank` (-1: the first) is on: "[[0,
 * 1], [2, 3]]". NULL: it has none, or `word` is another. */
const char *notation_devices(const char *word, const Trace *t, const TraceParam *p, int64_t rank,
                             Arena *a);
#endif
