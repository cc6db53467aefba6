/* A contraction whose letters are sorted, as matrix products; several that read one operand in
 * common are one product. Of ops/einsum.c. */
#ifndef SP_OPS_EINSUM_PRODUCT_H
#define SP_OPS_EINSUM_PRODUCT_H
#include "kernel/tensor.h"
#include <stdbool.h>
#include <stdint.h>

struct Pool;
enum { EINSUM_GROUP_MAX = 2 * LAYOUT_MAX_DIMS }; /* both operands may bring letters to be summed */
/* Letters, with their strides in the operands A and B and in the result C; 0 where one lacks it. */
typedef struct EinsumGroup {
    int n;
    int64_t size[EINSUM_GROUP_MAX];
    int64_t s[3][EINSUM_GROUP_MAX];
} EinsumGroup;
/* Batches of C[m,n] = sum over k of A[m,k] B[n,k]. */
typedef struct EinsumSorted {
    EinsumGroup batch, m, n, k;
    const void *a, *b;
    void *c;
    Dtype dtype;
    uint32_t floats; /* bit 0: A is float32 where dtype is not, bit 1: B is */
} EinsumSorted;

/* Combinations of the group's letters. */
int64_t einsum_count(const EinsumGroup *g);
/* One more letter, the innermost so far. */
void einsum_add(EinsumGroup *g, int64_t size, int64_t sa, int64_t sb, int64_t sc);
/* The product, on the pool's workers (NULL: on this thread). No size is 0 but in k. */
void einsum_product(const EinsumSorted *p, struct Pool *pool);
/* n such at once, in which some share an operand with others: that is packed once for all of them.
 * The numbers have the bits of products one by one. Sorts p, and may take the operands of each
 * for one another. False: none do, and no product was made. */
bool einsum_products(EinsumSorted *p, int64_t n, struct Pool *pool);
#endif
