/* Shared by the files of partial attention: which queries and keys belong together, and their rows
 * side by side. For sim/ops only. */
#ifndef SP_OPS_RING_H
#define SP_OPS_RING_H
#include "kernel/attention.h"
#include "ops/util.h"

/* One head: batch, KV head, query head of it. */
typedef struct {
    int64_t b, k, g;
} RingHead;
/* The queries of one block and the keys that they are held against. */
typedef struct {
    int64_t nt, ns;
    int64_t *t, *s;               /* their local rows: [nt], [ns] */
    int64_t *query_pos, *key_pos; /* and positions */
    AttentionMask mask;
    int64_t b; /* the row of the batch that the mask is of */
    int next;  /* block */
} RingPart;
/* Rows of one head side by side, in the call's element type. */
typedef struct {
    int64_t d, dv, p; /* widths of a key, of a value, of a result with its lse */
    int64_t *at;
    void *q, *dq, *o, *cot, *fout, *k, *dk, *v, *dv_;
} RingRows;

/* `for (ring_open(c, b, &r); ring_next(c, &r);)` goes through the blocks of a call's queries in
 * local row b, and frees what it took at the end. */
void ring_open(const OpCall *c, int64_t b, RingPart *r);
bool ring_next(const OpCall *c, RingPart *r);
/* Where row t of q, of the result or of the cotangent begins; row s of k or v. */
int64_t ring_query_row(const OpCall *c, const Tensor *x, const RingHead *h, int64_t t);
int64_t ring_key_row(const Tensor *x, const RingHead *h, int64_t s);
/* Query heads of a KV head; pairs of batch and KV head. */
int64_t ring_groups(const OpCall *c);
int64_t ring_heads(const OpCall *c);
/* The most queries and keys of a block, and the most pairs of them, in local row 0; asks for
 * positions only where the call is of all ranks together, so that it has blocks of each. */
typedef struct {
    int64_t nt, ns, pairs;
} RingMost;
RingMost ring_most(const OpCall *c);
/* Bytes of the room below. */
int64_t ring_room_bytes(const OpCall *c);
/* Room for the rows of one head, of which the calling thread has one at a time: fresh pages for
 * each head cost as much as a tenth of its products. The caller gives it back. */
void ring_room(const OpCall *c, RingRows *m);
void ring_room_free(RingRows *m);
/* Copies rows of keys and values, of queries (of an adjoint: cotangent and result too); and rows of
 * n elements back to the call's output, to those of the queries or of the keys. */
void ring_take_keys(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m);
void ring_take_queries(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m);
void ring_put_queries(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m,
                      const void *from, int64_t n);
void ring_put_keys(const OpCall *c, const RingHead *h, const RingPart *r, RingRows *m,
                   const void *from, int64_t n);
/* The bound of attention_part (ring_bound.c), and what it takes. */
void ring_part_bound(const OpBound *b);
void ring_part_bound_scratch(const OpBound *b, OpScratch *s);
#endif
