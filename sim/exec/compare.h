/* What the ranks hold of one value against what they must hold: by bits, or within a bound per
 * element. Every element of every rank is looked at; workers share the rows, and what comes out
 * does not depend on how many there are. It does not know where the wanted values come from, and
 * records nothing: check.c does. */
#ifndef SP_EXEC_COMPARE_H
#define SP_EXEC_COMPARE_H
#include "exec/exec.h"
#include "kernel/errors.h"
#include "trace/trace.h"

/* One check record in the making. */
typedef struct Compare {
    TraceCheck rec;
    const Exec *e;
    double
        *rank_error; /* per rank: largest error, -1 none; NULL while nothing is wrong. malloc'ed */
    bool failed;
} Compare;

/* The wanted value as a whole: `raw` in the run's dtype (compared by bits) or `want` in float64
 * with its bounds; all packed. */
typedef struct Whole {
    const Region *box;
    int part;   /* 1 + the dim along which `box` is a part of what ranks hold; 0: it is all */
    Tensor raw; /* p NULL: none */
    double *want, *bound, *prob; /* NULL: none, 0, 0 */
    ErrorFactors factors; /* where `row` is there: the bounds, in place of bound and prob; the first
                             `outer` dims of the box, which has no outer list, are its rows */
    int outer;
} Whole;

/* Starts a record of that level for `val` as step s (NULL: a source) leaves it. Strings live in the
 * arena. */
Compare compare_new(const Exec *e, Arena *arena, const Step *s, int val, CheckLevel level);
/* The elements that a rank should have of a whole whose elements are `box`: of rows those that its
 * layout gives it. In `arena`. */
Region compare_due(const Compare *m, int val, const Layout *L, int64_t rank, const Region *box,
                   Arena *arena);
/* What every rank that agrees with `rep` on the axes of `fixed` holds under layout L against its
 * part of the whole. Ranks that share a local are looked at once, unless it is wrong: then all of
 * them are marked. */
void compare_all(Compare *m, int val, const Layout *L, const AxisList *fixed, int64_t rep,
                 const Whole *w);
/* The same part by part (Whole.part), each look at another one: what is noted at the end is what
 * one look at all of it gives. */
typedef struct CompareLooks {
    Compare *m;
    int val;
    const Layout *L;
    const AxisList *fixed;
    int64_t rep;
    int64_t n, *at, *rank; /* locals; per local of the store: its place in the list, -1: not of this
                              group; the first rank that holds each */
    struct CompareLook *look;
} CompareLooks;
CompareLooks compare_begin(Compare *m, int val, const Layout *L, const AxisList *fixed,
                           int64_t rep);
void compare_look(CompareLooks *l, const Whole *w);
void compare_end(CompareLooks *l);
/* Makes room for an error per rank. */
void compare_ranks(Compare *m);
/* Marks a rank that has no numbers to compare: its local has not the shape that its layout claims,
 * or the run stopped before it had one. */
void compare_no_numbers(Compare *m, int64_t rank);

/* One rank's block and what it must be. */
typedef struct CompareBlock {
    Dtype dt;
    Tensor got, want; /* of the same sizes, any strides; want in dt if `bits`, else in float64 */
    const double *bound,
        *prob; /* laid out as want: beyond bound is wrong, beyond prob is odd; NULL: 0 */
    const ErrorFactors *factors; /* of the block, in place of these two; NULL: none */
    bool bits;
} CompareBlock;
typedef struct CompareSeen {
    double max_abs, max_rel, used, bound, worst; /* used: largest share of a bound, `bound`: that
                                                    bound; worst: error of wrong elements */
    double got, want;                            /* of the first wrong element */
    int64_t first;                               /* its row-major index, -1: none */
    bool odd;                                    /* some element lies between prob and bound */
    int nd_shape, nd_due; /* of a block of another shape than is due: both; else 0 */
    int64_t shape[LAYOUT_MAX_DIMS], due[LAYOUT_MAX_DIMS];
} CompareSeen;
/* Looks at every element; the rows are shared by the workers of the pool (NULL: none) and the
 * result does not show how. */
CompareSeen compare_rows(const CompareBlock *b, Pool *pool);

/* Puts what was seen of a rank's block of `count` elements (-1: of another shape than L claims)
 * into the record; true if it was right. */
bool compare_note(Compare *m, int val, const Layout *L, int64_t rank, const CompareSeen *seen,
                  int64_t count);
/* The ranks' blocks under L among each other, by bits (replicas.c); nothing is noted unless some
 * differ. */
void compare_replicas(Compare *m, int val, const Layout *L);

/* Small helpers of the checks. */
bool compare_agrees(const Mesh *m, const AxisList *fixed, int64_t a,
                    int64_t b); /* same coordinates on these axes? */
double compare_at(const void *p, Dtype d, int64_t i);
#endif
