/* Simulated time: roofline for compute, alpha-beta for collectives, from a stated hardware profile.
 * Reads and extends a trace; knows no plan and no tensor. */
#ifndef SP_COST_COST_H
#define SP_COST_COST_H
#include "trace/trace.h"
/* Words of a profile's group `nccl:`, in the order of their tables in hardware.c. */
enum { NCCL_AMPERE, NCCL_HOPPER, NCCL_BLACKWELL };
enum { NCCL_INTEL, NCCL_AMD };
enum { NCCL_NVLINK, NCCL_PCI };
/* What NCCL finds in a machine and chooses by (cost/nccl.h). */
typedef struct NcclProfile {
    int gpu, cpu, link;                /* one of the words above */
    int64_t channels;                  /* of rings and trees; 0: the profile has no such group */
    double channel_bandwidth;          /* bytes/s of one, within a node */
    int64_t nvls_channels, nvls_ranks; /* 0: no NVLS; the fewest ranks of a node that use it */
    double nvls_bandwidth;             /* bytes/s of one of its channels */
} NcclProfile;
typedef struct Hardware {
    const char *name, *what;
    double flops_f32, flops_f64, flops_bf16; /* FLOP/s that a matmul reaches (peak x efficiency) */
    double memory_bandwidth;                 /* bytes/s */
    double kernel_overhead;                  /* s per kernel */
    int64_t gpus_per_node;
    double intra_bandwidth, inter_bandwidth; /* bytes/s each way per GPU */
    double intra_latency, inter_latency;     /* s per step */
    int64_t memory;                          /* bytes per GPU */
    NcclProfile nccl;
} Hardware;
/* Reads plans/hardware/NAME.yaml (or a path); `dirs` is a NULL-terminated list of folders to look
 * in; a built-in copy of the shipped profiles answers when no file is found. NULL and E0213 with
 * the nearest name. */
const Hardware *hardware_find(Arena *arena, Diags *d, const char *name, const char *const *dirs,
                              Loc loc);
/* The file that hardware_of_plan reads, or NULL: a built-in profile, or none. */
const char *hardware_file(Arena *arena, const char *option, const char *in_plan,
                          const char *plan_dir);
/* The machine of a plan: what the option names (a path starts at the working directory), else what
 * the plan names (a path starts at the plan's folder), else h100-sxm. NULL and a diagnostic as
 * hardware_find. */
const Hardware *hardware_of_plan(Arena *arena, Diags *d, const char *option, const char *in_plan,
                                 const char *plan_dir, Loc plan_loc);
/* Names of the built-in profiles, NULL-terminated. */
const char *const *hardware_names(void);
/* Fills trace->events and trace->hardware: per rank class a compute stream and a stream per axis; a
 * collective starts when its input and its stream are ready, and sends when the last of its group
 * has come; what waits for it is exposed. Seconds.
 * Compute: the larger of FLOPs / rate and bytes / bandwidth, and an overhead per kernel (roofline).
 * A collective of p ranks that sends n bytes: steps of latency, and n over the bandwidth of the
 * slowest link that its groups cross (alpha-beta; nccl-tests, PERFORMANCE.md, has the bytes), or
 * what NCCL's tuner expects, where the profile has a group `nccl:` (cost/nccl.h). */
void cost_simulate(Trace *t, const Hardware *h);
/* After that, of a trace with a schedule: when each of its actions begins and ends, if every stage
 * takes as long as its events of one micro-batch say (computation, and communication that is not
 * hidden), and a message as long as the slowest. Fills actions, and takes the idle time
 * apart: what the schedule's closed form says of stages that all take the mean, what their being
 * different adds, what messages add. */
void cost_stages(Trace *t);
#endif
