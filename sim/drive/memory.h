/* How much memory there is for a run. What one needs is found by the dry walk (drive/dry.c) and
 * said before anything is allocated: a plan that does not fit gets a diagnostic with the sizes and
 * what to change, not the kernel's out-of-memory killer. */
#ifndef SP_DRIVE_MEMORY_H
#define SP_DRIVE_MEMORY_H
#include "base/arena.h"

typedef struct {
    int64_t peak;      /* bytes, without what the process has already */
    int64_t sharded;   /* most at once, while the ranks run and are checked */
    int64_t unsharded; /* of the peak, if that is later: values of the float64 run that they are
                          compared with; 0: it is while the ranks run */
    int64_t beside;    /* of the peak, for the other processes on this machine */
    bool more;         /* enough was known, and nothing counted from there on */
    int64_t records;   /* of the checks, which every training step adds to */
    int64_t device;    /* most at once in the memory of a GPU on which all ranks are: their values,
                          and what is laid beside them to be computed and copied */
    int64_t large;     /* of the peak, in large arrays: the range that the device gets for them */
} MemoryNeed;

typedef struct {
    int64_t bytes;    /* that can still be had */
    const char *what; /* what sets the limit: "MemAvailable of the machine", "ulimit -v", "the
                         memory limit of the control group" */
    int64_t stacks;   /* of it, for a thread's stack: of a limit on addresses, not on memory */
} MemoryRoom;
/* The least of what the machine, the process limits and the control groups leave. Files that cannot
 * be read limit nothing. */
MemoryRoom memory_room(Arena *arena);
/* The same without the stacks of all threads but one, of so many. */
MemoryRoom memory_room_of(Arena *arena, int threads);
/* The same from texts, for tests: /proc/meminfo, and a control group's limit and use ("max" or a
 * number; NULL: none). */
int64_t memory_meminfo(const char *text);
int64_t memory_group(const char *limit, const char *use);
#endif
