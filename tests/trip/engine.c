/* An engine that fails: the plug-in that test_mpi_ends puts beside a copy of the program.
 * ENGINE_FAILS=0 at its start, N: at call N of any of its functions. ENGINE_STOPS=STAGE: as if
 * somebody stopped the process there; that of engine.h, or one more: when the engine has ended and
 * the process has not; with ENGINE_STOPS_GUARD its guard as well. It has one rank. Where this is
 * preloaded, ENGINE_NO_FORK: there can be no other process; ENGINE_STOPS_MET: as if somebody
 * stopped it between rank 0's word that all have met (engine/boot.c) and whatever it does then. */
#define _GNU_SOURCE
#include "engine/engine.h"
#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

EngineOpen ENGINE_OPEN, shardproof_engine;
static EngineHost host;
static Engine engine;
static int calls;

static void call(void) {
    const char *at = getenv("ENGINE_FAILS");
    if (++calls < (at ? atoi(at) : 1)) return;
    host.died(host.arg, engine.rank, engine.at, "the cable was pulled");
    _exit(ENGINE_EXIT);
}
static void tell(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    (void)e, (void)out, (void)n_out, (void)in, (void)n_in;
    call();
}
static void exchange(Engine *e, const EngineOn *on, const EngineItem *out, int n_out,
                     const EngineItem *in, int n_in) {
    (void)on;
    tell(e, out, n_out, in, n_in);
}
static int64_t least(Engine *e, int64_t mine) {
    (void)e;
    call();
    return mine;
}
pid_t fork(void) {
    pid_t (*real)(void);
    void *symbol = dlsym(RTLD_NEXT, "fork");
    memcpy(&real, &symbol, sizeof real);
    errno = EAGAIN;
    return getenv("ENGINE_NO_FORK") ? -1 : real();
}
ssize_t recv(int fd, void *p, size_t room, int flags) {
    ssize_t (*real)(int, void *, size_t, int);
    void *symbol = dlsym(RTLD_NEXT, "recv");
    memcpy(&real, &symbol, sizeof real);
    ssize_t n = real(fd, p, room, flags);
    if (getenv("ENGINE_STOPS_MET") && room == 1 && n == 1 && *(char *)p == 's') raise(SIGSTOP);
    return n;
}
static void stop_at(int place) {
    const char *at = getenv("ENGINE_STOPS");
    if (!at || atoi(at) != place) return;
    FILE *f = getenv("ENGINE_STOPS_GUARD") ? fopen("/proc/thread-self/children", "r") : NULL;
    for (int child; f && fscanf(f, "%d", &child) == 1;) kill(child, SIGSTOP);
    if (f) fclose(f);
    raise(SIGSTOP);
}
static void stage(EngineStage s) {
    host.stage(host.arg, s);
    stop_at((int)s);
}
static void ungroup(Engine *e) { (void)e; }
static void stop(Engine *e, int code) {
    (void)e;
    _exit(code);
}
static void done(Engine *e) {
    (void)e;
    stage(ENGINE_GROUPS);
    stage(ENGINE_RUNS);
    stage(ENGINE_ENDS);
}
__attribute__((destructor)) static void gone(void) { stop_at(ENGINE_STAGES); }
Engine *ENGINE_OPEN(const EngineHost *h) {
    const char *at = getenv("ENGINE_FAILS");
    host = *h;
    engine = (Engine){.ranks = 1,
                      .device = -1,
                      .name = "an engine that fails",
                      .exchange = exchange,
                      .tell = tell,
                      .least = least,
                      .ungroup = ungroup,
                      .abort = stop,
                      .close = done};
    stage(ENGINE_STARTS);
    if (at && atoi(at) > 0) {
        stage(ENGINE_RUNS);
        return &engine;
    }
    host.failed(host.arg, "no cable is plugged in");
    return NULL;
}
/* As plug-ins were called before there was a number in the name: nobody may. */
Engine *shardproof_engine(const EngineHost *h) {
    (void)h;
    abort();
}
