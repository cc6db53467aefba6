/* What NCCL expects a collective to take: the model by which its tuner chooses an algorithm and a
 * protocol (src/graph/tuning.cc of 2.28 to 2.30). A hardware profile with a group `nccl:` has its
 * collectives timed by it. Refuses sends, receives and all-to-alls, of which NCCL has no model:
 * those are the profile's links. */
#ifndef SP_COST_NCCL_H
#define SP_COST_NCCL_H
#include "cost/cost.h"

typedef enum {
    NCCL_TREE,
    NCCL_RING,
    NCCL_NVLS,
    NCCL_NVLS_TREE,
    NCCL_PAT,
    NCCL_ALGORITHMS
} NcclAlgo;
typedef enum { NCCL_LL, NCCL_LL128, NCCL_SIMPLE, NCCL_PROTOCOLS } NcclProto;

/* A collective of `ranks` over `nodes` machines; bytes: the size S of nccl-tests, a rank's buffer
 * of an all-reduce, all ranks' parts together of a gather or a reduce-scatter. */
typedef struct {
    const char *op;
    int64_t ranks, nodes;
    double bytes;
} NcclAsk;
/* One way to do it: seconds before the first byte, and bytes of S per second after it. */
typedef struct {
    NcclAlgo algo;
    NcclProto proto;
    double latency, bandwidth, time;
} NcclWay;
/* Has the profile such a group, and NCCL a model of that op? */
bool nccl_models(const Hardware *h, const char *op);
/* What NCCL's tuner has for one algorithm and protocol; false: it would not use that here. */
bool nccl_way(const Hardware *h, const NcclAsk *ask, NcclAlgo algo, NcclProto proto, NcclWay *out);
/* The fastest of all ways, which is the one that NCCL takes. Of an op that it models. */
NcclWay nccl_choose(const Hardware *h, const NcclAsk *ask);
/* The size S of which a rank of `ranks` sends so many bytes. */
double nccl_size(const char *op, int64_t ranks, double sent);
/* "Ring/LL128" */
const char *nccl_way_text(const NcclWay *way, Arena *arena);
#endif
