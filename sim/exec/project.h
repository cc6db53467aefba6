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

/* A part of a tensor, or all of it, and what it is seen through: positions along the dim that is
 * cut are those in the whole. */
typedef struct ProjectPart {
    Device *host;
    struct Pool *pool;
    Dtype dt;
    uint64_t seed, of;
    const double *column; /* [PROJECT_VECTORS, n], or NULL: to be drawn */
    Tensor t;
    int dim;           /* of it that is cut */
    int64_t n, *place; /* of the whole along dim; [t.n[dim]]: where its elements stand, ascending */
} ProjectPart;
/* Its sums: those of blocks first .. first + blocks - 1; where it has dim, sum has PROJECT_VECTORS
 * for each block, square (of all elements of a block, squared) has one. Packed, float64. */
typedef struct ProjectSums {
    int64_t first, blocks;
    Tensor sum, square;
} ProjectSums;
/* q->t is for the host to read. The sums are in memory of q->host, to be given back; what is needed
 * on the way lives in `arena`. */
ProjectSums project_part(const ProjectPart *q, Arena *arena);
void project_part_end(Device *host, ProjectSums *s);

/* The smaller product of what the factor that is cut became and of the other factor, or a part of
 * it. `like`: the call, whose output has the sizes that they make, but at `dim`, and p NULL. */
typedef struct ProjectKept {
    OpCall like;
    int step; /* whose call it is, for who asks elsewhere */
    bool adjoint;
    double u;
    int side, at, dim; /* which factor is cut, which dim of it, which of the output */
    Tensor kept;       /* in the run's dtype, for the host to read */
    Tensor cut;        /* float64, packed */
    Tensor length;     /* of its blocks, float64, packed */
} ProjectKept;
/* Result and bound; in memory of the host, to be released. */
typedef struct ProjectMade {
    Tensor out, bound;
} ProjectMade;
ProjectMade project_kept(Device *host, const ProjectKept *q);

/* What is elsewhere is seen there; false: it is not, the host can read it. */
typedef struct ProjectAway {
    bool (*sums)(void *arg, const ProjectPart *q, ProjectSums *out, Arena *arena);
    bool (*kept)(void *arg, const ProjectKept *q, ProjectMade *out);
    void *arg;
} ProjectAway;

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
    const AssembleParts *kept; /* the other factor, likewise; each part by itself with the other */
    const ProjectAway *away;   /* who asks for parts that are elsewhere; NULL: none is */
    double u;                  /* unit roundoff of the run */
    uint64_t seed, of;         /* of the columns: the run's seed, and which ones */
    int step;                  /* whose call it is, for who asks elsewhere */
} Projection;
/* What was seen. */
typedef struct Projected {
    bool held;          /* every projection within its bound */
    double residual;    /* the largest */
    double bound, used; /* of the one that used most of its bound */
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
/* May the factor that is used as it is come in these parts? Only letters of the output that the
 * other one lacks may tell them apart. */
bool project_apart(const Projection *p, const AssembleParts *kept);
/* A sum of n shares, each in parts, against what the ranks hold. */
typedef struct ProjectTotal {
    Device *host;
    struct Pool *pool;
    Dtype dt;
    double u;
    uint64_t seed, of;
    const ProjectAway *away;
    const AssembleParts *share, *out; /* [n], one */
    int64_t n;
} ProjectTotal;
/* Holds it; seen[n]: has the share any number but zeros? */
Projected project_total(const ProjectTotal *p, bool *seen);
/* The same of a forward call of an op that mixes the rows of an operand (Op.mixed), in float32:
 * what its values' rows are as seen through random columns, its result's must be. call.out is
 * there. */
Projected project_mixed(const Projection *p);
/* Holds call.out against the operands; project_can must be true. On the dry device it takes the
 * same memory and holds. */
Projected project_hold(const Projection *p);
#endif
