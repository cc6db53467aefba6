/* Is every value right? Each step's output, on every rank, is held against what the run's own
 * inputs give: level 1 by bits with the unsharded kernel, level 2 in float64 with a bound that no
 * order of summation can break. Inputs and parameters are held against an independent reading of
 * their source. The first wrong value heads the report. */
#ifndef SP_EXEC_CHECK_H
#define SP_EXEC_CHECK_H
#include "exec/compare.h"
#include "trace/trace.h"

/* Large enough that what is packed for all of it pays, small enough to be touched again while it is
 * near. */
enum {
    CHECK_PIECE = 1 << 24,
    CHECK_PIECE_QUICK = 1 << 21 /* where a product is mostly not held by its elements: what is
                                   wrong is looked at closer in the memory that there is */
};
/* Numbers inside of whose op others may be larger than the run's dtype has. */
typedef struct CheckBeyond {
    int64_t n;
    const char *first; /* value that has some */
    int64_t in;        /* the first training step in which there are some, */
    int at;            /* and the first step of the program that makes some in that */
} CheckBeyond;
typedef struct Check {
    Exec *e;
    Trace *t;
    Arena *arena;
    void *(*full)(void *arg, int tensor,
                  Dtype t); /* the source as it is, read independently of the run's data path */
    /* some of its elements; NULL: it is there as a whole only */
    bool (*some)(void *arg, int tensor, Dtype t, const Region *of, void *out);
    void *full_arg;
    double u;                  /* unit roundoff of the run's dtype */
    double slack;              /* 1, or 2 for f64 runs, whose reference is computed in f64 too */
    const char *weights_cause; /* why the loss weights may differ by the plan's own wish, or NULL */
    /* bytes that can still be had; NULL: as many as are wanted */
    int64_t (*room)(Arena *tmp);
    int64_t part, step; /* which micro-batch and training step is run, from 0 */
    bool quick;         /* hold products by projections where that is cheaper (project.h) */
    bool each;      /* in quick too ask all numbers of ops in float64 (levels.h): whoever compares
                       an unsharded run has to know which are beyond the dtype */
    uint64_t seed;  /* of the projections */
    int64_t piece;  /* elements of operands and result that an op is held by at a time, about */
    int first_fail; /* index into t->checks, or -1 */
    CheckBeyond beyond;
    int64_t unobservable;
    const char **unobservable_text;
    int n_unobservable, cap_unobservable;
} Check;

/* Checks of e's steps, written to t; in the arena, as long as both live. */
Check *check_new(Arena *arena, Exec *e, Trace *t);
/* An input or parameter at rest against its source. */
void check_source(Check *c, int val);
/* The output of a step just run; its inputs are still alive. */
void check_step(Check *c, const Step *s);
/* Level 3: a step's output against the whole value of the unsharded program (canonical residues):
 * equal; pending sums modulo `modulus`. */
void check_exact(Check *c, const Step *s, const Whole *want, double modulus);
/* A run that could not go on: the step is the first wrong one. */
void check_stuck(Check *c, const Step *s, const char *why);
/* End to end: a value as it lies against the unsharded float64 reference (whole, packed letters).
 * Returns the largest error, or with `odd` above 0 the largest but for that share of the elements
 * (one at least), and in *top the largest magnitude that is wanted; records nothing
 * (drive/endtoend.c does). */
double check_reference(Check *c, int val, const double *want, double odd, double *top);
/* How far what each rank holds of a value is from the unsharded one: `want`, packed, the elements
 * that `box` names. Shares of a pending sum are added up first, and each rank has the distance of
 * the sum. far: per rank, 0 where it is equal or holds nothing. *top: the largest magnitude that is
 * wanted. A pending maximum is nothing yet: false. */
bool check_distance(Check *c, int val, double *want, const Region *box, double *far, double *top);
#endif
