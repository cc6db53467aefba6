/* A profile's group `nccl:` from collectives that NCCL was seen to make: what its tuner starts from
 * (cost/nccl.h), and as comments each of them as nccl-tests counts it. Refuses to fit NCCL's own
 * latencies: they are those of its source. */
#ifndef SP_DRIVE_CALIBRATE_NCCL_H
#define SP_DRIVE_CALIBRATE_NCCL_H
#include "base/arena.h"
#include <stdint.h>

/* One collective: the bytes that a rank sends by a ring, and the seconds that it took. */
typedef struct NcclSeen {
    const char *op;
    int64_t ranks;
    double sent, seconds;
} NcclSeen;
/* The text, behind the profile; nothing where nothing was seen. gpu: its name. */
void calibrate_nccl(Str *s, const NcclSeen *seen, int n, const char *gpu);
#endif
