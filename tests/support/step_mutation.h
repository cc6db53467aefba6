/* Mistakes in what a step computes, made while a plan runs (PipelineOptions.watch): an op, an
 * adjoint, a sum or a move gives something else than its inputs say. Mistakes of moves that the
 * plan language can plant are in random_run.c. */
#ifndef SP_TESTS_STEP_MUTATION_H
#define SP_TESTS_STEP_MUTATION_H
#include "exec/exec.h"
#include "random_plan.h"

/* operand: an op or adjoint reads another value of the same shape; term: a sum passes on one of its
 * two terms; scale: the result of one rank, or of all, is multiplied; stale: the result is another
 * value of the same shape that was there before. Of values with rows (tokens at experts), on one
 * rank: row: one is zeros, as if it had not been sent; roll: each stands where the next one should
 * (rows, or weights, of other tokens). */
typedef enum { S_OPERAND, S_TERM, S_SCALE, S_STALE, S_ROW, S_ROLL, S_COUNT } StepMutationKind;

/* The steps of a run that make numbers, collected by step_sites_watch. */
typedef struct {
    int n, cap;
    struct StepSite {
        int step;
        StepKind kind;
        bool rows;
    } * site;
    Arena *a;
} StepSites;
void step_sites_watch(void *sites, Exec *e, const Step *s, bool checked);
/* Can the mistake be made there? */
bool step_site_fits(const struct StepSite *s, StepMutationKind kind);

/* Which mistake to make where; step_mutation_watch makes it the first time that the step has run.
 */
typedef struct {
    StepMutationKind kind;
    int step;
    Rng r;
    bool done, changed; /* changed: some bit of what some rank holds */
} StepMutation;
void step_mutation_watch(void *mutation, Exec *e, const Step *s, bool checked);
#endif
