/* An engine that fails: the plug-in that test_mpi_ends puts beside a copy of the program.
 * ENGINE_FAILS=0 at its start, N: at call N of any of its functions. ENGINE_STOPS=STAGE: as if
 * somebody stopped the process there; that of engine.h, or one more: when the engine has ended and
 * the process has not. It has one rank. */
#include "engine/engine.h"
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>

EngineOpen shardproof_engine;
static EngineHost host;
static Engine engine;
static int calls;

static void call(void) {
    const char *at = getenv("ENGINE_FAILS");
    if (++calls < (at ? atoi(at) : 1)) return;
    host.failed(host.arg, "the cable was pulled");
    _exit(ENGINE_EXIT);
}
static void exchange(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    (void)e, (void)out, (void)n_out, (void)in, (void)n_in;
    call();
}
static int64_t least(Engine *e, int64_t mine) {
    (void)e;
    call();
    return mine;
}
static void stage(EngineStage s) {
    const char *at = getenv("ENGINE_STOPS");
    host.stage(host.arg, s);
    if (at && atoi(at) == (int)s) raise(SIGSTOP);
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
__attribute__((destructor)) static void gone(void) {
    const char *at = getenv("ENGINE_STOPS");
    if (at && atoi(at) == ENGINE_STAGES) raise(SIGSTOP);
}
Engine *shardproof_engine(const EngineHost *h) {
    const char *at = getenv("ENGINE_FAILS");
    host = *h;
    engine = (Engine){.ranks = 1,
                      .device = -1,
                      .name = "an engine that fails",
                      .exchange = exchange,
                      .tell = exchange,
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
