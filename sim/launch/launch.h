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
    /* n bytes from p of the GPU's memory, for the host to read until the call is done */
    const void *(*read)(void *arg, const void *p, int64_t n);
    void *arg;
} LaunchTo;
/* One call: the op's, forward or towards c->operand. */
typedef struct LaunchCall {
    const OpCall *c;
    bool adjoint;
    const LaunchTo *to;
} LaunchCall;

/* ---- for the files of this room ---- */
/* There is one for each op of ops/list.h; false: the host has to do it. */
typedef bool LaunchFn(const LaunchCall *x);
/* The call at once; for each row of the batch by itself where positions differ from row to row. */
bool launch_packings(const LaunchCall *x, LaunchFn *one);
/* A launch over the dims of `space`, of which `out` is made: all sizes, the output's strides. */
GpuLaunch launch_over(const LaunchCall *x, int kernel, const Tensor *space, const Tensor *out);
/* Operand k of the launch: t, whose letters stand in the space's letters; one that it lacks has
 * stride 0. Of a tensor like the space: letters NULL. */
void launch_operand(GpuLaunch *l, int k, const Tensor *t, const char *letters, const char *space);
/* Sends a kernel that goes element by element (its dims joined where all tensors allow it, unless
 * it asks for positions), and one with a block for each of `rows`. */
void launch_map(const LaunchCall *x, GpuLaunch *l);
void launch_each(const LaunchCall *x, GpuLaunch *l, int64_t elements);
void launch_blocks(GpuLaunch *l, int64_t elements); /* sets how many blocks that takes */
void launch_rows(const LaunchCall *x, GpuLaunch *l, int64_t rows);
void launch_fill(const LaunchCall *x, const Tensor *t, double v);
/* A contraction of one or two operands by c->rule into c->out (op_einsum). False: no kernel has so
 * many letters, or whole numbers. */
bool launch_einsum(const LaunchCall *x, const OpCall *c);
typedef bool LaunchProduct(const LaunchCall *x, const OpCall *c);
/* The same over rows; `product` does it where there are none. */
bool launch_einsum_rows(const LaunchCall *x, const OpCall *c, LaunchProduct *product);
/* Operand k, which has no rows, beside the rows of the output: what their experts have of it; zeros
 * where this rank has them not. In scratch memory. */
Tensor launch_gathered(const LaunchCall *x, int k);
/* The call with its index list where the host can read it. */
OpCall launch_with_ids(const LaunchCall *x);
/* The plain product that a contraction is; false if it is none. */
bool launch_gemm_of(const OpCall *c, GpuGemm *g);
#endif
