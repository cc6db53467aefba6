/* Plans on processes against the virtual run: the same records, but for the name of the backend and
 * for what each step took. A list of plans of one number of ranks is one launch. */
#ifndef SP_TESTS_SAME_RECORDS_H
#define SP_TESTS_SAME_RECORDS_H
#include "base/arena.h"

/* How they are started: "BEFORE -n 4 PROGRAM check PLANS WORDS". */
typedef struct {
    const char *program, *before;
    bool counts; /* whether `before` wants to be told how many: " -n 4" */
    const char *words, *backend;
    int turn; /* same_folder takes every second plan, from this one on (0, 1): there are two engines
                 that they take turns with; all under SHARDPROOF_SOAK */
} SameRecords;

/* The records of a trace as the virtual run has them. */
const char *records_as_virtual(Arena *a, const char *path, const char *backend);
/* An empty list is none. */
void same_records(const SameRecords *by, const char *plans, int ranks);
/* The plans of a folder whose turn it is and that have 2 to 16 ranks, the others are named (under
 * SHARDPROOF_SAMPLE some of them); how many. */
int same_folder(const SameRecords *by, const char *pattern);
/* What no shipped plan has: support/wire_plans.h. */
void same_other_plans(const SameRecords *by);
/* Random plans, and each with a planted mistake; how many of them are pipelines. */
int same_random_plans(const SameRecords *by, int plans);
#endif
