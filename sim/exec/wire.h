/* How the blocks of ranks come about that hold the same, or that are somewhere else. The virtual
 * wire has all ranks of the mesh in this process: ranks that would hold equal blocks of a value
 * hold one. A process of a real run has one rank (wire_own.c); what a move needs of others comes
 * through an engine. The process that checks such a run has all ranks' blocks too, as it is told
 * them (wire_told.c). A wire is the one place that knows who shares, and the order in which ranks
 * come. */
#ifndef SP_EXEC_WIRE_H
#define SP_EXEC_WIRE_H
#include "exec/pieces.h"

enum { WIRE_MAX_KEY = 2 * (RULE_MAX_IN + 2) + 2 };

/* The blocks of one value. Who is equal is told by a key; the first rank of each key makes the
 * block. */
typedef struct WireBlocks {
    int width; /* numbers in a key, at most WIRE_MAX_KEY */
    void (*key)(void *arg, int64_t rank, int64_t *key);
    /* Makes the block of a rank (l->rank is set) with one reference to its buffer. False: it cannot
     * be made, e->stuck says why. */
    bool (*make)(void *arg, int64_t rank, Local *l);
    void (*ready)(void *arg); /* fills the blocks that were made, where that is put off; or NULL */
    void *arg;
} WireBlocks;

/* A move that is being made. */
typedef struct WireMove {
    Exec *e;
    const Step *s;
    Pieces x;
    Dtype dt;
} WireMove;

struct Wire {
    int64_t self; /* the one rank that is here; -1: all are */
    bool told;    /* blocks are not made here, but told: moves bring nothing, acts change nothing */
    /* Makes what the ranks that are here hold of value `out`. False as soon as one block cannot be
     * made. */
    bool (*share)(Wire *w, Exec *e, int out, const WireBlocks *b);
    /* Before the blocks of a move are made: what they need of other processes is here afterwards,
     * until `spent`. NULL: nothing comes from elsewhere. */
    void (*bring)(Wire *w, const WireMove *m);
    void (*spent)(Wire *w);
    /* Piece i of the block of `rank`, from a rank that is not here: its data, and where its
     * elements stand; NULL data: none of it arrives. Lists live in `arena`. */
    Tensor (*piece)(Wire *w, const WireMove *m, int64_t i, Region *at, Arena *arena);
    /* After a step or a load: was it done everywhere? Where it was not, e->stuck says why on all
     * ranks. NULL: what is done here is done. */
    bool (*agree)(Wire *w, Exec *e, bool done);
    /* The sum or maximum that a move asks for, whole, made by the engine in an order of its own,
     * into `out` with the elements `to`. False: it is to be put together from pieces. NULL: never.
     */
    bool (*reduce)(Wire *w, const WireMove *m, const Region *to, Tensor *out);
};

/* All ranks are here. */
Wire *wire_virtual(void);
#endif
