/* The rows of the error picture: every checked value in step order, its state on every rank. Takes
 * verdicts as recorded and refuses to judge: a rank whose own error is not recorded gets no number
 * of its own. */
#ifndef SP_RENDER_ERRORS_H
#define SP_RENDER_ERRORS_H
#include "render/furniture/words.h"

enum { ERR_COLUMNS = 64 };
typedef enum {
    ERR_NONE,    /* nothing was compared there */
    ERR_EQUAL,   /* equal by bits */
    ERR_ROUNDED, /* differs by rounding, or its projections do, within its bound */
    ERR_RIGHT,   /* within its bound, while another rank is wrong */
    ERR_AFTER,   /* a right step whose inputs are wrong */
    ERR_SUSPECT, /* within the bound, above what is likely */
    ERR_FIRST,   /* the first wrong value */
    ERR_ALSO,    /* wrong, and not the first: nothing wrong was read, or planted as well */
    ERR_LATER,   /* wrong, and something wrong was read */
    ERR_STATES
} ErrState;

typedef struct ErrRow {
    const char *name;   /* "layers.0.o_proj"; of values of one part that, "layers.0.attention" */
    const char *before; /* of a part: what is done there, "backward: "; NULL: a value */
    const char *how;    /* "AllReduce", "claim"; NULL: computed */
    const char *by;     /* what tells it from rows that read alike: "via w1"; NULL: none does */
    const char *to, *to_before; /* name and before of the last that it stands for, where they are
                                   not of one part; NULL: it is of one */
    const char *planted;        /* the mistake that the plan plants here: "scale: 4"; NULL: none */
    const char *planted_at;     /* "plan.yaml:14", which plants it, where that is not the step's own
                                   line; NULL: it is, or is not known */
    const TraceCheck *worst;    /* the check that decided; NULL: of many */
    bool projected;             /* held by projections: max and bound are of these */
    bool sources;               /* stands for inputs and parameters */
    int step, values;           /* values: how many are folded into the row */
    int64_t round; /* in which micro-batch of which training step of a wrong run: counted through */
    double max, bound;
    ErrState worst_state;
    ErrState state[ERR_COLUMNS];
    double error[ERR_COLUMNS]; /* of wrong columns; NaN: not recorded */
    const TraceDistance *far;  /* from the unsharded model; of several values the one farthest for
                                  its bound; NULL: not known */
    struct ErrRow *beside;     /* the same value in another run; NULL: it has none */
} ErrRow;

typedef struct {
    const Trace *t;
    int n_columns, n;
    int equal, rounded, suspect, wrong, after; /* rows of values by their worst state */
    int projected;                             /* of those that are rounded */
    bool far;                                  /* some row has its distance */
    int off;            /* rows that are off end to end because of something wrong that was read */
    int also;           /* rows that are wrong and read nothing wrong, but for the first */
    bool ends;          /* the run: nothing was computed after the first wrong value */
    int again;          /* of `also`: the first wrong value, in other rounds of the program */
    int parts;          /* micro-batches of a training step */
    int64_t per_column; /* ranks in a column; 0: a column is a class of ranks */
    int *column;        /* per rank */
    RankSet *members;   /* per column */
    ErrRow *row;
    const ErrRow *first;     /* first wrong; NULL: none */
    const TraceCheck *check; /* that found it */
} ErrMap;
/* Up to 64 ranks have a column each; of more, those that every check says the same of (to two
 * digits, or right and wrong alone) are a class and share one; where that gives more than 64,
 * neighbours share one. A column shows the worst. False if the trace has no checks. */
bool errors_map(Arena *a, const Trace *t, ErrMap *out);
/* The same for two runs of one model on the same ranks, with the same columns; a row of `m` knows
 * that of `other`: the k-th of a name and of a way to make it the k-th, then the k-th of those of
 * a name that are left. *left: rows of `other` that have no place. False if
 * one has no checks, or other ranks. */
bool errors_pair(Arena *a, const Trace *t, const Trace *u, ErrMap *m, ErrMap *other, int *left);
/* What the distance of a row says of the value: equal, rounded, first wrong, wrong itself, or wrong
 * because of something wrong that was read, or (ERR_AFTER) made from that and still near; ERR_NONE:
 * there is none. A run in which no check fails has no wrong value. */
ErrState errors_far(const ErrMap *m, const ErrRow *r);
/* Folds where there are more than `rows`: the values of a part of the model into one row, then
 * those of a layer, then neighbours, until at most `rows` are left (or nothing can be folded). What
 * is first wrong, or planted, keeps its row. */
void errors_fold(Arena *a, ErrMap *m, int rows);
/* "2.5", "5e-07" */
const char *errors_number(Arena *a, double v);
/* "size": what a check says that had no number to compare, since the ranks' blocks, or the operands
 * of a step that cannot be made, have other sizes; NULL: it had. */
const char *errors_without_numbers(const TraceCheck *k);
/* The number of a row, "=" where all bits are equal, or what stands for it where there was none to
 * compare. */
const char *errors_row_number(Arena *a, const ErrRow *r);
/* Does the failure say what was found and what was due? A single number has no index. */
bool errors_has_numbers(const TraceCheck *k);
/* "-0.105482"; there is one zero. */
const char *errors_digits(Arena *a, double v);
/* "layers.0.attention.wo" of the step that made it; NULL: of no module. */
const char *errors_module(const Trace *t, int step);
/* "plan.yaml:12" of the step that made the first wrong value; NULL: no line. */
const char *errors_plan_line(Arena *a, const Trace *t, const TraceCheck *k);
#endif
