/* What a block of numbers is, in a few words: a digest of its bits, and whether they are finite. */
#ifndef SP_KERNEL_DIGEST_H
#define SP_KERNEL_DIGEST_H
#include "kernel/tensor.h"

/* 128 bits. Bytes that differ in one 64-bit word never have equal ones; others have with a
 * probability of about 2^-128. Of n bytes in their order, whatever they mean; no secret, so it
 * refuses to hold against somebody who looks for two that are alike. */
typedef struct Digest {
    uint64_t a, b;
} Digest;
Digest digest_bytes(const void *p, size_t n);
static inline bool digest_same(Digest x, Digest y) { return x.a == y.a && x.b == y.b; }
/* n packed real numbers are finite up to at least here; n: all are. */
int64_t digest_finite(const void *p, Dtype dt, int64_t n);
#endif
