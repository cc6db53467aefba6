/* How processes find each other without an MPI: rank 0 listens, all others connect and say who they
 * are. Whoever does not know the token of the run, says half a word, nothing or too much is let go
 * and changes nothing. Refuses to know what is sent afterwards: star.h does. */
#ifndef SP_ENGINE_BOOT_H
#define SP_ENGINE_BOOT_H
#include "engine/place.h"

/* A socket that listens at the first free of `ports` ports from `port` on (0: any that is free), on
 * the address of `host`, or on all (NULL, or where that is none of this machine); *got is the port.
 * -1: there is none, and errno says why. */
int boot_listen(const char *host, int port, int ports, int *got);

/* Open files that a rank of NCCL wants beside its links: CUDA's, NCCL's, its guard's, a plan's. */
enum { BOOT_FILES = 64 };
/* Can so many files be opened at once? Takes the soft limit up to the hard one for it. False: `why`
 * (`room` bytes) says what is lacking. */
bool boot_files(int64_t n, char *why, int room);

typedef enum { BOOT_MET, BOOT_LATE, BOOT_REFUSED, BOOT_OVER } BootEnd;
typedef struct BootAsk {
    const Place *place;
    double deadline;          /* seconds */
    void (*lives)(void *arg); /* again and again */
    void *arg;
} BootAsk;
/* Returns when all processes are there. Links, sockets that do not block, owned by the caller: of
 * rank 0 one for each other rank (link[0] is -1), of the others link[0] to rank 0. BOOT_LATE: at
 * rank 0 *missing is the lowest rank that did not come, elsewhere -1. BOOT_REFUSED: `why`
 * (`room` bytes). BOOT_OVER: rank 0 has given up, and has said why. */
BootEnd boot_meet(const BootAsk *ask, int *link, int64_t *missing, char *why, int room);
#endif
