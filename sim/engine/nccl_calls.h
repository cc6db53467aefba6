/* Which calls of NCCL a sum over a group is: a pure function, so that it is held without a GPU. */
#ifndef SP_ENGINE_NCCL_CALLS_H
#define SP_ENGINE_NCCL_CALLS_H
#include "engine/engine.h"

typedef enum { NCCL_ALL_REDUCE, NCCL_REDUCE_SCATTER, NCCL_REDUCE } NcclKind;
/* In elements. all_reduce: `count` of them, to all. reduce_scatter: `count` for each member.
 * reduce: `count` from `from` on, to the member `root`, at the beginning of its result. */
typedef struct NcclCall {
    NcclKind kind;
    int64_t root, from, count;
} NcclCall;
/* The calls of one group call, for a group of so many members: at most that many, into `calls`;
 * gives their number. Blocks of one length are one reduce_scatter; of others, a reduce to each
 * member. */
int nccl_calls(const EngineSum *s, int64_t members, NcclCall *calls);
#endif
