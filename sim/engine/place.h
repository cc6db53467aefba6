/* Where a process of a run stands, by the variables of whoever started it: which rank it is, and
 * where rank 0 is met. Refuses to connect to anything: boot.h does. */
#ifndef SP_ENGINE_PLACE_H
#define SP_ENGINE_PLACE_H
#include <stdbool.h>
#include <stdint.h>

/* The variables of a launcher; those that it has not are NULL. */
typedef struct Launcher {
    const char *mpi;   /* the MPI whose launcher it is: "openmpi"; NULL: of none */
    const char *title; /* of people: "Open MPI" */
    const char *rank, *ranks, *local, *beside, *job;
} Launcher;
/* In the order in which they are asked; *n of them. */
const Launcher *place_launchers(int *n);
/* A number that a variable holds, 0 or more, with nothing behind it; else `otherwise`. */
int64_t place_number(const char *name, int64_t otherwise);

/* What `run --cuda` tells the processes that it starts, besides torchrun's variables. */
#define PLACE_TOKEN "SHARDPROOF_TOKEN"
#define PLACE_LISTENER "SHARDPROOF_LISTENER"
enum { PLACE_TOKEN_BYTES = 32, PLACE_PORTS = 16 };
typedef struct Place {
    const Launcher *by;
    int64_t rank, ranks;
    int64_t local, beside;             /* which of how many on its machine */
    char host[256];                    /* of rank 0: name or address, IPv4 or IPv6 */
    int port, ports;                   /* the first that is tried, and how many */
    int listener;                      /* rank 0's, where it was opened by whoever started it; -1 */
    char token[PLACE_TOKEN_BYTES + 1]; /* what all processes of this run know */
} Place;
/* What the variables of a launcher lack, and how to mend it. */
typedef struct PlaceLack {
    const char *what, *help;
} PlaceLack;
/* false: no launcher has started this process; or *lack (static), of the launcher p->by. Half of
 * its variables are none of a launcher; both, but no rank of a run, are a lack: each such process
 * would start all ranks by itself. */
bool place_find(Place *p, const PlaceLack **lack);
/* What all processes of this run and of no other on this machine know, whatever they are started
 * for: the token of those that `run --cuda` starts, else by the launcher's job. */
void place_job(char *out, int room);
/* The first machine of a list of Slurm's, "gpu[007-9,12],login": "gpu007". false: none is named. */
bool place_first_host(const char *list, char *out, int room);
#endif
