/* Blocks that stay with the ranks that made them. In a quick check of a real run the process that
 * checks is told of a block its sizes, a digest of its bits and whether they are finite; whatever
 * else it wants to know it asks, and the rank that has the block answers from where it lies: with
 * sums, digests, the outcome of a comparison, or, where something needs a closer look, with the
 * block. It knows no check and no projection: who answers what is a table (far_answers). Between
 * two meetings only rank 0 asks, one question at a time, from one thread. */
#ifndef SP_EXEC_FAR_H
#define SP_EXEC_FAR_H
#include "engine/engine.h"
#include "exec/exec.h"
#include "kernel/digest.h"

typedef struct FarBytes {
    int64_t n;
    void *p;
} FarBytes;
typedef enum {
    FAR_BLOCK,   /* a block, packed */
    FAR_DIGEST,  /* the digest of some of its elements (FarPlaces) */
    FAR_HOLD,    /* what a rank's own check of a step on its own blocks saw */
    FAR_PROJECT, /* a block seen through random columns */
    FAR_PRODUCT, /* a product with a block as one factor */
    FAR_QUESTIONS
} FarQuestion;
/* The answer to a question about a block that the rank keeps (NULL: about none), in `arena`. */
typedef FarBytes FarAnswer(void *arg, const Local *of, FarBytes question, Arena *arena);

/* Of a process whose executor is `own`: on rank 0 the others' blocks, elsewhere its own that rank 0
 * was told of. Given back by far_free, after all executors. */
Far *far_new(Engine *engine, Exec *own);
void far_free(Far *f);
/* Who answers a question here, but for blocks and digests, which are answered. */
void far_answers(Far *f, FarQuestion what, FarAnswer *by, void *arg);

/* What is told of a block. id: the rank's own number for it; -1: it was sent */
typedef struct FarHead {
    int64_t id;
    Digest digest;
    bool finite;
} FarHead;
/* Is a block of so many bytes told in place of sent? Small ones say less than a question would. */
bool far_stays(const Exec *own, int val, int64_t bytes);
/* Another rank keeps the block for questions; `packed`: its numbers, for the host to read. What is
 * told of it. */
FarHead far_keep(Far *f, const Local *l, const Tensor *packed, Dtype dt);
/* Rank 0: the address of such a block of `rank`, of far_device; to be released there. */
void *far_block(Far *f, int64_t rank, const FarHead *h, int64_t bytes);

/* Rank 0: the memory that its blocks are in: here, or with their ranks, from where `get` brings
 * them until the next meeting. It computes what the host computes. */
Device *far_device(Far *f);
/* All ranks call both. In between rank 0 may ask; in far_close it lets the others go, which answer
 * there until it does. */
void far_open(Far *f);
void far_close(Far *f);

/* ---- what rank 0 asks, of an executor with a far device; of others the answer is no ---- */
/* The rank that keeps the block that a tensor is, or a view of; -1: it is here. */
int64_t far_rank(const Exec *e, const Tensor *t);
/* Is it a block elsewhere whose numbers are known to be finite? */
bool far_finite(const Exec *e, const Tensor *t);
/* Have a block elsewhere and these packed numbers the same bits, as far as their digests tell? */
bool far_same(const Exec *e, const Tensor *t, const Tensor *packed, Dtype dt);
/* The same of two blocks of equal sizes, each anywhere. */
bool far_alike(const Exec *e, const Tensor *a, const Tensor *b, Dtype dt);
/* The digest of some elements of a packed block, here or elsewhere: element (i, j, ..) of them
 * stands at[0][i] + at[1][j] + .. behind the first. */
typedef struct FarPlaces {
    int nd;
    int64_t n[LAYOUT_MAX_DIMS], *at[LAYOUT_MAX_DIMS];
} FarPlaces;
Digest far_digest(const Exec *e, const Tensor *t, Dtype dt, const FarPlaces *some);
/* Asks the rank that keeps the block of t (NULL: rank `rank`). The answer is in `arena`. */
FarBytes far_ask(const Exec *e, FarQuestion what, const Tensor *t, int64_t rank, FarBytes question,
                 Arena *arena);
#endif
