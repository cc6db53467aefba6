/* What the steps of exec.c have in common: making the locals of a value, and the buffers they
 * share. For sim/exec only. */
#ifndef SP_EXEC_STORE_H
#define SP_EXEC_STORE_H
#include "exec/exec.h"

struct Buf { /* immutable once written; counted references */
    int refs;
    size_t bytes;
    void *p;
};

/* A buffer with one reference, of the executor's device: its bytes mean nothing. Ends the run (exit
 * 5) if there is no memory. */
Buf *store_buf_new(Exec *e, int64_t bytes);
/* A buffer around p, memory of the device, which it owns from here on. */
Buf *store_buf_adopt(Exec *e, void *p, int64_t bytes);
/* The device holds what is in it in half of the bytes from here on. */
void store_buf_halve(Exec *e, Buf *b);
/* One reference less; the last one gives the buffer back. */
void store_buf_drop(Exec *e, Buf *b);

/* Which block of a value a rank holds under a layout: equal numbers, equal blocks. */
int64_t store_key(const Mesh *m, const Layout *l, int64_t rank);
/* Drops the blocks of a store, which is empty and not alive afterwards. */
void store_drop(Exec *e, Store *s);
/* Drops what the value had and makes room for a number per rank in `which`; nobody holds anything
 * yet. */
Store *store_open(Exec *e, int val);
/* Adds a local and returns its index; the store takes over the caller's reference to the buffer. */
int store_add(Store *s, Local l);

/* Makes a local of that shape, with as many elements, out of its elements in their order: a copy
 * where they do not lie packed. It owns one reference to its buffer, as before. */
void store_shape(Exec *e, Local *l, const Tensor *as, Dtype dt);

/* Frees the sums over micro-batches (accumulate.c). */
void accumulate_free(Exec *e);
#endif
