/* A second process beside a rank that sees whether the rank lives, where no other rank can see it:
 * while an engine starts, makes groups, and ends. (A rank that was stopped after its last word to
 * the others would keep a launcher waiting for ever.) It sleeps, is of the same process group, so
 * that Ctrl-Z stops both, and never outlives its rank. While a rank ends, who stops its guard as
 * well gains nothing: it wakes up by itself, and lets the rank be only where whoever waits for it
 * is stopped too. Of a rank that runs it refuses to judge what it does: the others do, who know
 * what they wait for. It ends only one that is stopped and that they, stopped as well, do not name.
 */
#ifndef SP_ENGINE_GUARD_H
#define SP_ENGINE_GUARD_H
#include "engine/engine.h"
#include <sys/types.h>
#include <time.h>

/* A timer of this process, whose signal lets a stopped one go on. */
typedef struct Waker {
    bool there;
    timer_t timer;
} Waker;
typedef struct Guard {
    int to; /* a socket; a byte: a stage, or that nothing is new; back: it has heard of the end */
    pid_t pid;
    double deadline;
    Waker waker; /* of the rank */
} Guard;
typedef struct GuardWords {
    /* The rank has been silent for so long; called in the guard's process, before it ends the rank
     * with ENGINE_EXIT. */
    void (*silent)(void *arg, EngineStage stage, double seconds);
    void *arg;
} GuardWords;

/* Starts the guard of this process, by the thread that lives as long as the process, before others
 * are started. The rank has `deadline` seconds from one word to the next; where it runs, a
 * second more, and only while it is stopped.
 * false: there can be no other process, errno says why. */
bool guard_start(Guard *g, double deadline, const GuardWords *words);
/* This process begins a stage; it lives. From any thread; they wait for nothing, but ENGINE_ENDS
 * for the moment in which the guard hears of it. */
void guard_stage(const Guard *g, EngineStage stage);
void guard_lives(const Guard *g);
#endif
