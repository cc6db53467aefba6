/* A product held by random projections (Freivalds, "Fast probabilistic algorithms", 1979; with
 * blocks as in algorithm-based fault tolerance, Huang and Abraham 1984): C = A B is right if
 * C r = A (B r) for random columns r, at a share of the operations. Here a letter of the
 * output that one operand has alone is cut into blocks of PROJECT_BLOCK, and each block has
 * PROJECT_VECTORS columns of its own. Any op that is linear in that operand and asks for no
 * positions can be held so; this file knows no op. It says "held" or "look closer", never "wrong":
 * the element-wise check decides. */
#ifndef SP_EXEC_PROJECT_H
#define SP_EXEC_PROJECT_H
#include "exec/assemble.h"

enum { PROJECT_BLOCK = 64, PROJECT_VECTORS = 2 };

/* What is asked. `call` is a step's call on whole operands (host memory, packed, in the run's
 * dtype; an adjoint if `adjoint`), whose `out` is what the ranks hold. */
typedef struct Projection {
    Device *host;
    OpCall call;
    bool adjoint;
    /* The factor that is cut, and the output, in parts that the host can read: each is projected
     * where it lies, and the sums are added up. The tensor in `call` has sizes only then. NULL: it
     * is there. */
    const AssembleParts *cut, *out;
    double u;          /* unit roundoff of the run */
    uint64_t seed, of; /* of the columns: the run's seed, the step */
} Projection;
/* What was seen. */
typedef struct Projected {
    bool held;                    /* every projection within its bound */
    double residual, bound, used; /* of the one that used most of its bound */
    double notice; /* an element that is off by more than this share of its row's root mean square
                      is noticed, with probability 1 - 2^-PROJECT_VECTORS whatever else is off in
                      the row; a row are the elements along the letter that is cut */
} Projected;

/* May calls of the op be products? Answers without sizes or numbers. */
bool project_may(const Op *op);
/* Is the call a sum of products that a projection makes cheaper? Asks for sizes only. */
bool project_can(const Projection *p);
/* The factors of a product: forward its operands, in an adjoint the other operand and the
 * cotangent. */
Tensor *project_factor(Projection *p, int k);
/* Which of them is cut: the other one is used as it is. Needs project_can. */
int project_side(const Projection *p);
/* Holds call.out against the operands; project_can must be true. On the dry device it takes the
 * same memory and holds. */
Projected project_hold(const Projection *p);
#endif
