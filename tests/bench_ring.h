/* A row of `make bench`: attention round a ring by itself. */
#ifndef SP_TESTS_BENCH_RING_H
#define SP_TESTS_BENCH_RING_H
#include <stdbool.h>
#include <stdint.h>
/* What the ranks took without anybody looking on: wall and processor seconds of their steps, and
 * the distinct FLOPs that they did. */
typedef struct {
    double wall, cpu, flops;
} BenchRing;
/* Attention alone, D = 512 (4 heads of 128), f32, causal, a ring of 8 in zigzag order over so many
 * tokens, forward. False after a diagnostic on stderr. */
bool bench_ring(int64_t tokens, BenchRing *out);
#endif
