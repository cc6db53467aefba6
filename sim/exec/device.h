/* What computes: memory for blocks and for what their check puts together, copies between regions,
 * kernels. Everything in this room that touches numbers in bulk does it through here, so that the
 * same walk over a program can be made with numbers or without. The host device is this process's
 * memory and workers; the dry device has sizes only, and says beforehand what the host will take.
 */
#ifndef SP_EXEC_DEVICE_H
#define SP_EXEC_DEVICE_H
#include "exec/region.h"
#include "kernel/pool.h"
#include "ops/op.h"

/* What of an op is run. */
typedef enum {
    DEVICE_FORWARD,
    DEVICE_ADJOINT,
    DEVICE_EXACT, /* --exact: of integers, forward and adjoint */
    DEVICE_EXACT_ADJOINT
} DeviceKernel;
static inline bool device_of_integers(DeviceKernel what) { return what >= DEVICE_EXACT; }

/* The most bytes that the arrays of a device ever took, large and small: what a host on which the
 * same is done will have touched. */
typedef struct DeviceUse {
    size_t large, small, scratch; /* scratch: what ops take beside, on all threads */
} DeviceUse;
/* What the dry device was asked to do so far: operations of kernels and of their bounds, by what
 * they compute with, and bytes that were taken. */
typedef enum { DEVICE_F32, DEVICE_F64, DEVICE_INTEGER, DEVICE_KINDS } DeviceArithmetic;
typedef struct DeviceWork {
    double ops[DEVICE_KINDS], bytes;
} DeviceWork;

enum { DEVICE_NO_STEP = -1, DEVICE_FIRST_STEP = -2 };
typedef struct Device Device;
struct Device {
    bool sizes_only;     /* there are no numbers: what looks at them has nothing to do */
    const char *backend; /* of the trace, where it is another than "virtual"; NULL */
    const char *name;    /* of the machine's part that it is, for people; NULL */
    int64_t room;        /* bytes of its own memory that are free; 0: it has the host's */
    bool own_order; /* its kernels add up in an order of their own: a bound holds them, not bits */
    bool halves;    /* a block that was rounded to bf16 takes half of its memory from then on */
    /* Memory for n bytes, contents undefined; ends the run (exit 5) if there is none. From one
     * thread at a time. */
    void *(*alloc)(Device *d, size_t n);
    void (*release)(Device *d, void *p); /* NULL is allowed */
    /* A tensor's numbers for the host to read and change, of the same sizes, strided or packed; put
     * makes the tensor's numbers those of `host`, done gives back what get returned. Where both are
     * the host's own memory there is but one of them. */
    Tensor (*get)(Device *d, const Tensor *t, Dtype dt);
    void (*put)(Device *d, const Tensor *t, const Tensor *host, Dtype dt);
    void (*done)(Device *d, Tensor *host);
    /* What region_copy does, within the device or between it and the host. */
    void (*copy)(Device *d, Block dst, Block src, Dtype dt, Combine how);
    /* Every element of a packed tensor becomes v; is multiplied by v. */
    void (*fill)(Device *d, Tensor *t, Dtype dt, double v);
    void (*scale)(Device *d, Tensor *t, Dtype dt, double v);
    /* Every float32 of a packed tensor becomes the nearest bf16 number (kernel/bf16.h). */
    void (*round)(Device *d, const Tensor *t);
    /* Runs n kernels, on the workers of `pool` (NULL: on the caller); each writes its c->out. */
    void (*call)(Device *d, OpCall *c, int64_t n, DeviceKernel what, Pool *pool);
    /* The error bounds of one result; see OpBound. */
    void (*bound)(Device *d, const OpBound *b);
    /* fn over pieces of 0..n-1, on the workers. */
    void (*pieces)(Device *d, Pool *pool, int64_t n, void (*fn)(void *arg, int64_t lo, int64_t hi),
                   void *arg);
    /* Seconds that kernels took since it was last asked, by the device's own clock; NULL: it has
     * none. */
    double (*busy)(Device *d);
    /* Moves between processes, of blocks that lie where an engine reaches them; NULL: the engine is
     * given the host's. From `lane` (above 0) to `lane` of 0 what is asked for goes on beside the
     * rest, in the order of the stream that is returned; who needs it later waits for it, on the
     * device. reach says where the numbers of a packed tensor lie that the engine reads or writes
     * there, in bf16 if `half` (what is written is a whole block); NULL: they do not lie so.
     * settles: what is called before the host waits for the device. */
    void *(*lane)(Device *d, int lane);
    void *(*reach)(Device *d, const Tensor *t, bool half, bool writes);
    void (*settles)(Device *d, void (*settle)(void *arg), void *arg);
    /* What is asked for from here on is of that step, up to the next; of none (DEVICE_NO_STEP), and
     * where it is DEVICE_FIRST_STEP the clock begins. took: from when to when the device was at a
     * step of that time, on the lane where it was moved or else on that of kernels; false: it did
     * nothing for it. Both are NULL where there are no lanes. */
    void (*step)(Device *d, int step);
    bool (*took)(Device *d, int step, double *begin, double *end);
    /* What it counts of itself; NULL: nothing. */
    DeviceUse (*use)(const Device *d);
    DeviceWork (*work)(const Device *d);
    void (*end)(Device *d); /* gives back what it is made of; NULL: nothing is */
};

/* The host, with room for `large` bytes of large arrays; what is more comes from malloc. */
Device *device_host(size_t large);
/* The host with malloc alone; it needs no device_free. */
Device *device_plain(void);
/* Sizes only; of a host with so many threads. */
Device *device_dry(int threads);
/* Ends a device, whoever made it; NULL is allowed. */
void device_free(Device *d);
/* What a device says of itself; zeros where it counts nothing. */
DeviceUse device_use(const Device *d);
DeviceWork device_work(const Device *d);

/* Has it sizes only, and copies and kernels take nothing for a while? Then who has nothing to make
 * need not ask for them. */
static inline bool device_counts_arrays(const Device *d) { return d->sizes_only && !d->reach; }
/* Seconds since it was last asked; 0 where there is no clock. */
static inline double device_busy(Device *d) { return d->busy ? d->busy(d) : 0; }
/* A call whose operands are where the host can read them, its output as it is; device_fetched gives
 * back what that took. */
OpCall device_fetch(Device *d, const OpCall *c);
void device_fetched(Device *d, OpCall *host);
/* Runs a call whose numbers lie on `at`, its output in the host's memory, by the kernels of d,
 * which has memory of its own. */
void device_lend(Device *d, Device *at, const OpCall *c, DeviceKernel what);
/* Level 3: every element becomes its residue in 0..p-1. Sums of residues are residues of sums, so
 * they may be taken anywhere. */
void device_residues(Device *d, const Tensor *t, Dtype dt, double p);
/* n elements of `size` bytes. */
static inline void *device_array(Device *d, int64_t n, int64_t size) {
    return d->alloc(d, base_mul((size_t)(n > 0 ? n : 1), (size_t)size));
}
#endif
