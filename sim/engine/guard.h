/* A second process beside a rank that sees whether the rank lives, where no other rank can see it:
 * while an engine starts, makes groups, and ends. (A rank that was stopped after its last word to
 * the others would keep a launcher waiting for ever.) It sleeps, is of the same process group, so
 * that Ctrl-Z stops both, and never outlives its rank. Refuses to judge a rank that runs: the
 * others do, who know what they wait for. */
#ifndef SP_ENGINE_GUARD_H
#define SP_ENGINE_GUARD_H
#include "engine/engine.h"
#include <sys/types.h>

typedef struct Guard {
    int out; /* a byte: a stage, or that nothing is new */
    pid_t pid;
} Guard;
typedef struct GuardWords {
    /* The rank has been silent for so long; called in the guard's process, before it ends the rank
     * with ENGINE_EXIT. */
    void (*silent)(void *arg, EngineStage stage, double seconds);
    void *arg;
} GuardWords;

/* Starts the guard of this process, by the thread that lives as long as the process, before others
 * are started. The rank has `deadline` seconds from one word to the next, unless it runs.
 * false: there can be no other process. */
bool guard_start(Guard *g, double deadline, const GuardWords *words);
/* This process begins a stage; it lives. From any thread; they wait for nothing. */
void guard_stage(const Guard *g, EngineStage stage);
void guard_lives(const Guard *g);
#endif
