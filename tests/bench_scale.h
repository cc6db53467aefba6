/* Rows of `make bench` about many ranks, start-up and commands that only look. */
#ifndef SP_TESTS_BENCH_SCALE_H
#define SP_TESTS_BENCH_SCALE_H
#include "formats/json.h"
#include <stdbool.h>
/* Runs ./shardproof, prints the tables, adds an object "scale". False if a run failed. */
bool bench_scale(JsonWriter *w);
#endif
