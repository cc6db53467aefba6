/* What random plans cover of the plan language and of the engine, counted. The list of what there
 * is to cover comes from the program's own tables (keys and their words, styles and their aliases,
 * recipes, naming schemes, ops, moves), so that a new row that no plan draws is noticed. */
#ifndef SP_TESTS_COVERAGE_H
#define SP_TESTS_COVERAGE_H
#include "trace/trace.h"
#include <stdio.h>

typedef struct {
    const char *group, *name;
    const char *excused;   /* why no legal plan can show it, or NULL */
    long axes[4], pass[3]; /* plans by number of axes (1 .. 3) and by pass */
    bool now;              /* seen in the plan that is being counted */
} Feature;
typedef struct {
    Arena *keep, *a; /* of the table; for names in the making */
    int n, cap;
    Feature *f;
    int unknown; /* something was seen that is in no table */
} Coverage;

Coverage *coverage_new(Arena *a);
/* Counts one legal plan: its text and, if not NULL, what the run recorded. pass: 0 forward, 1
 * backward, 2 train. */
void coverage_plan(Coverage *c, const char *text, const Trace *t, int n_axes, int pass);
/* Adds the counts of `from` (as coverage_save wrote them) to `c`; false if the text is no such
 * thing. */
void coverage_save(const Coverage *c, FILE *f);
bool coverage_load(Coverage *c, FILE *f);
/* Prints the table; returns how many rows that are not excused were never drawn. */
int coverage_print(const Coverage *c, FILE *f, bool all);
#endif
