/* From a call of an op to what a GPU is asked for: kernels with their spaces, strides and tables,
 * and plain products. Pure functions of the call: nothing here touches numbers or memory of the
 * GPU, so a test can look at, or interpret, what they ask for. Refuses to know where it will run.
 */
#ifndef SP_LAUNCH_LAUNCH_H
#define SP_LAUNCH_LAUNCH_H
#include "gpu/gpu.h"
#include "gpu/kernels.h"
#include "ops/op.h"

/* Who is asked, in order; each is done before the next. */
typedef struct LaunchTo {
    void (*run)(void *arg, const GpuLaunch *l);
    void (*gemm)(void *arg, const GpuGemm *g);
    /* n bytes of the GPU's memory until the call is done */
    void *(*scratch)(void *arg, int64_t n);
    void *arg;
} LaunchTo;
/* One call: the op's, forward or towards c->operand. */
typedef struct LaunchCall {
    const OpCall *c;
    bool adjoint;
    const LaunchTo *to;
} LaunchCall;

/* ---- for the files of this room ---- */
/* A launch over the dims of `space`, of which `out` is made: all sizes, the output's strides. */
GpuLaunch launch_over(const LaunchCall *x, int kernel, const Tensor *space, const Tensor *out);
/* Operand k of the launch: t, whose letters stand in the space's letters; one that it lacks has
 * stride 0. Of a tensor like the space: letters NULL. */
void launch_operand(GpuLaunch *l, int k, const Tensor *t, const char *letters, const char *space);
/* Sends a kernel that goes element by element (its dims joined where all tensors allow it, unless
 * it asks for positions), and one with a block for each of `rows`. */
void launch_map(const LaunchCall *x, GpuLaunch *l);
void launch_each(const LaunchCall *x, GpuLaunch *l, int64_t elements);
void launch_rows(const LaunchCall *x, GpuLaunch *l, int64_t rows);
/* A contraction of one or two operands by c->rule into c->out (op_einsum). False: of rows or of
 * integers. */
bool launch_einsum(const LaunchCall *x, const OpCall *c);
/* The plain product that a contraction is; false if it is none. */
bool launch_gemm_of(const OpCall *c, GpuGemm *g);
/* One of each for the ops of ops/list.h. */
typedef bool LaunchFn(const LaunchCall *x);
#endif
