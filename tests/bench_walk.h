/* A plan's ranks without their check, for rows of `make bench`. */
#ifndef SP_TESTS_BENCH_WALK_H
#define SP_TESTS_BENCH_WALK_H
#include <stdbool.h>
#include <stdint.h>
/* Seconds by the clock, and of processors: of the program and of the system for it, which is mostly
 * the first touch of memory. */
typedef struct {
    double wall, user, sys;
} BenchTime;
/* Since the process began. */
BenchTime bench_time(void);
/* *sum += now - *last, and *last = now. */
void bench_time_add(BenchTime *sum, BenchTime *last);
/* What the ranks took without anybody looking on, weights and inputs apart from steps; the bytes of
 * the former, the distinct FLOPs of the latter. */
typedef struct {
    BenchTime loaded, steps;
    BenchTime steady; /* the steps once more, in memory that was touched before */
    double bytes, flops;
} BenchWalk;
/* Runs a plan's text, f32; `again`: twice, the second time for `steady`, which else stays zero.
 * False after a diagnostic on stderr. */
bool bench_walk(const char *text, bool again, BenchWalk *out);
#endif
