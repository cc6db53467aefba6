/* What ranks hold, stepped deterministically: all of them in this process, or one (wire.h). A local
 * buffer is immutable once written and shared: ranks whose inputs are the same buffers compute
 * once, a shard of a weight is a view, an all-gather's result is one buffer for the whole group. */
#ifndef SP_EXEC_EXEC_H
#define SP_EXEC_EXEC_H
#include "exec/device.h"
#include "exec/lives.h"
#include "lower/program.h"
#include <assert.h>

typedef struct Buf Buf;
typedef struct Wire Wire;
typedef struct Far Far;

/* One distinct local tensor of a value: what one or more ranks hold. */
typedef struct Local {
    Buf *buf;
    Tensor t; /* dims: letters of the value (with a LIST cut: the flattened stored dim 0, then the
                 other letters) */
    int64_t key;    /* place of the block: which coordinates of the cutting axes */
    int64_t rank;   /* the first rank that holds it */
    double seconds; /* that the device took to make it, by its own clock; 0: it has none */
} Local;
/* A rank holds nothing: what it holds is in another process, or the value is at another place. */
#define EXEC_NOTHING UINT32_MAX
typedef struct Store {
    int n, cap;
    Local *l;
    uint32_t *which; /* per rank: index into l, or EXEC_NOTHING */
    bool alive;
} Store;

/* Sums over micro-batches of one value (accumulate.c). */
struct Accumulated {
    double *x;    /* of all distinct blocks in a row; NULL: nothing yet */
    int64_t *at;  /* per rank: where its block begins */
    int64_t next; /* the micro-batch that is due */
    bool *ready;  /* per micro-batch: its gradient is there and waits for those before it */
};

typedef struct Exec {
    const Program *p;
    Dtype numbers; /* what real numbers are */
    Dtype dtype;   /* how they are held: bf16 as float32 */
    Pool *pool;
    Device *dev;     /* of what the ranks hold; a new executor is on the host */
    Device *host;    /* of what is loaded for them and put together from them */
    Device *kernels; /* by which ranks computed, where it is not `dev`; NULL: it is */
    Wire *wire;      /* whose ranks are here, and how others are reached (wire.h) */
    Far *far;        /* blocks of a real run stay with their ranks (far.h); NULL: they do not */
    Arena *arena;    /* of the run */
    /* Values by (value, instance). An instance is one micro-batch; what all of them share
     * (parameters, what is made after the last) is there once. */
    bool *shared;        /* per Val */
    Store *once;         /* per Val: of those that are shared */
    Store **each;        /* per instance: per Val of the others; NULL: not begun, or over */
    int64_t n_each, now; /* instances with room; the one that is run */
    Lives lives;         /* when they go, and which are loaded late */
    const bool *narrow;  /* per Val: held in bf16 (narrow.h); NULL: no value is */
    Store *master;       /* per Val: float32 of the optimizer's parameters; NULL: none yet */
    int *handed;         /* per Val, see narrow_handed; NULL: the run is not in bf16 */
    bool at_master;      /* these are in place, and what forward reads is in `master` */
    bool keep_all;
    int64_t live_bytes, peak_bytes, largest_bytes; /* of buffers: now, at most, of one */
    double flops;                                  /* of distinct kernel calls so far */
    const char *stuck;       /* why the run could not go on (trust: declared), or NULL */
    struct Accumulated *acc; /* per Val: sums over micro-batches (accumulate.c); NULL: none */
    double modulus;          /* level 3: all values are integers modulo this; 0: the ordinary run */
    bool edited;             /* a planted mistake changed some bit of its step's output */
    /* loads the whole of an input or parameter, in memory of `host` (or of malloc),
     * which exec releases */
    void *(*full)(void *arg, int tensor, Dtype t);
    /* the same of those elements, packed, into `out`; false: it could not be loaded */
    bool (*part)(void *arg, int tensor, Dtype t, const Region *of, void *out);
    void *full_arg;
} Exec;

/* Room for the values of all ranks of p, none alive; real numbers are `dtype`: f32, f64 or bf16.
 * The tables lie in the arena, the buffers are freed by exec_free. */
Exec *exec_new(Arena *arena, const Program *p, Dtype dtype, Pool *pool);
/* Frees all buffers. */
void exec_free(Exec *e);
/* Makes the locals of an input or parameter from its whole. False if it could not be loaded. */
bool exec_load(Exec *e, int val);
/* Runs one step; loads what it reads if it is not there yet. False if the step cannot be run (see
 * e->stuck). */
bool exec_step(Exec *e, const Step *s);
/* Goes on with an instance (micro-batch); the values of the one before are dropped. A new executor
 * is in instance 0. */
void exec_begin(Exec *e, int64_t instance);
/* The same without dropping anything: instances of a pipeline are under way side by side. */
void exec_turn(Exec *e, int64_t instance);
/* Drops what there is of an instance that is over. */
void exec_end(Exec *e, int64_t instance);
/* Is what the step makes shared by all micro-batches, and there? */
bool exec_once(const Exec *e, const Step *s);
/* After a step of micro-batch `part` of `parts`: gradients of parameters as the adjoints make them
 * are added up, before any of them is moved, in the order of micro-batches, whatever the order in
 * which they come; when all are there the sum takes the value's place in the last one: then true.
 * An executor that is told its blocks is told their sums too, and only keeps count. */
bool exec_accumulate(Exec *e, const Step *s, int64_t part, int64_t parts);
/* Sums of gradients over the micro-batches of one way of a pipeline (stages_way) are in its last
 * micro-batch: they go on from there to the last of all. */
void exec_carry(Exec *e, int64_t from, int64_t to);
/* After a training step: parameters and optimizer state at rest become what the optimizer made of
 * them; each rank keeps its own. */
void exec_next_iteration(Exec *e);
/* Drops values that no later step reads, but for results: the end of the run compares those. */
void exec_release(Exec *e, const Step *s);
/* Drops a value of this instance that no later step reads, but for results and what is shared. */
void exec_release_value(Exec *e, int val);
/* Drops one value. */
void exec_drop(Exec *e, int val);
/* What there is of a value in the instance that is run. */
static inline Store *exec_store(const Exec *e, int val) {
    return e->shared[val] ? &e->once[val] : &e->each[e->now][val];
}
/* What a rank holds of it; NULL: nothing, the rank is another process, or the value is at another
 * place (layout_holds). */
static inline const Local *exec_local(const Exec *e, int val, int64_t rank) {
    const Store *s = exec_store(e, val);
    assert(s->alive && rank >= 0 && rank < e->p->mesh->nranks);
    return s->which[rank] == EXEC_NOTHING ? NULL : &s->l[s->which[rank]];
}
/* Is there anything of the value at that rank, wherever the rank is (layout_holds)? */
static inline bool exec_holds(const Exec *e, int val, int64_t rank) {
    return layout_holds(e->p->mesh, &e->p->val[val].L, rank);
}
/* Is the tensor integer data? */
bool exec_is_int(const Exec *e, int val);
/* The dtype that the run holds a value in. */
Dtype exec_dtype(const Exec *e, int val);

/* The elements of a value that a rank holds; lists live in `arena`. Of rows those that the rank's
 * index list names. */
Region region_of(const Exec *e, int val, int64_t rank, Arena *arena);
/* The rows of a value in rows that a rank holds; of the dry device only how many. */
DimIndex exec_rows(const Exec *e, int val, int64_t rank, Arena *arena);
#endif
