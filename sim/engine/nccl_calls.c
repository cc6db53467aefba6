/* Sums as calls of NCCL. See nccl_calls.h. */
#include "engine/nccl_calls.h"

int nccl_calls(const EngineSum *s, int64_t members, NcclCall *calls) {
    int n = 0;
    bool even = true;
    if (!s->n) return 0;
    if (!s->each) {
        calls[0] = (NcclCall){.kind = NCCL_ALL_REDUCE, .count = s->n};
        return 1;
    }
    for (int64_t k = 1; k < members; k++) even &= s->each[k] == s->each[0];
    if (even) {
        calls[0] = (NcclCall){.kind = NCCL_REDUCE_SCATTER, .count = s->each[0]};
        return 1;
    }
    for (int64_t k = 0, at = 0; k < members; at += s->each[k++])
        if (s->each[k]) calls[n++] = (NcclCall){NCCL_REDUCE, k, at, s->each[k]};
    return n;
}
