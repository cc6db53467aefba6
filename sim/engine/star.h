/* What processes that met by themselves (boot.h) tell each other: messages in order between any
 * two, through rank 0; that each lives, and who does not; that all end. Its thread does this while
 * the process works, sleeps, or waits for a library. Every engine without an MPI stands on it.
 * Refuses to know what a message is about. */
#ifndef SP_ENGINE_STAR_H
#define SP_ENGINE_STAR_H
#include "engine/engine.h"

typedef struct Star Star;
typedef struct StarOwner {
    const EngineHost *host;
    /* Before this process ends because the run does, in the star's own thread; NULL: nothing. */
    void (*ending)(void *arg);
    void *arg;
    int files; /* that the engine will open, as far as one knows; 0: none */
} StarOwner;
/* When all processes are there. NULL: the host was told. `e` gets rank and ranks, and its `at` is
 * read from now on. */
Star *star_open(const StarOwner *owner, Engine *e);
/* The functions of an Engine that need no more than a star. */
void star_exchange(Star *s, const EngineItem *out, int n_out, const EngineItem *in, int n_in);
int64_t star_least(Star *s, int64_t mine);
_Noreturn void star_abort(Star *s, int code);
void star_close(Star *s);
/* The engine failed: one host is told, rank 0's if it lives, and all processes end. */
_Noreturn void star_fail(Star *s, const char *what);
/* This process waits for others outside of the star, or no more; and whatever it waits for moved.
 */
void star_waits(Star *s, bool waits);
#endif
