/* Made-up routings: logits that send tokens where a workload wants them, whatever the router says.
 * After the workloads of Megatron's dispatcher tests (PR 7488). */
#ifndef SP_WEIGHTS_ROUTING_H
#define SP_WEIGHTS_ROUTING_H
#include "weights/weights.h"

typedef struct Routing {
    const char *name;    /* a word of `moe: {routing: ..}` */
    int64_t E, k, S;     /* experts, experts per token, positions of a sequence */
    int64_t ranks;       /* of expert parallelism: experts of one rank stand together */
    RandomStream random; /* of what is drawn */
} Routing;
/* Logits [B, S, E] of linear indices first..first+n-1 into out[n], as f32 or f64 (the same real
 * numbers). balanced: every expert gets as many rows as any other. hot_expert: all tokens choose
 * expert 0, the rest is balanced. hot_rank: as many choices as it has experts go to the first rank.
 * spread: at random. ragged: at random, expert e less often than e - 1. empty_rank: at random, the
 * last rank's experts by nobody. burst: the middle third of a sequence chooses the first k experts.
 */
void routing_fill(const Routing *r, int64_t first, int64_t n, Dtype dtype, void *out);
#endif
