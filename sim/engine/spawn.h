/* Starting the processes of a run on this machine, one for each rank, where no launcher has: what
 * torchrun does on one machine. They hear of their places by torchrun's variables. Refuses to judge
 * a rank that lives: the ranks do. */
#ifndef SP_ENGINE_SPAWN_H
#define SP_ENGINE_SPAWN_H
#include <stdint.h>

/* Runs this program with the words `argv` as n ranks, to their end: rank 0's exit code, or 5 where
 * it has none. When one has ended otherwise than well, the others have a moment to say so, and are
 * ended: none is left, whatever ends this process. -1: no process was started, and *why (static)
 * says why. */
int spawn_ranks(int64_t n, char **argv, const char **why);
#endif
