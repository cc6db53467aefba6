/* An engine that fails: the plug-in that test_mpi_ends puts beside a copy of the program.
 * ENGINE_FAILS=0 at its start, N: at call N of any of its functions. It has one rank. */
#include "engine/engine.h"
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
static void ungroup(Engine *e) { (void)e; }
static void stop(Engine *e, int code) {
    (void)e;
    _exit(code);
}
static void done(Engine *e) { (void)e; }
Engine *shardproof_engine(const EngineHost *h) {
    const char *at = getenv("ENGINE_FAILS");
    host = *h;
    engine = (Engine){.ranks = 1,
                      .name = "an engine that fails",
                      .exchange = exchange,
                      .least = least,
                      .ungroup = ungroup,
                      .abort = stop,
                      .close = done};
    if (at && atoi(at) > 0) return &engine;
    host.failed(host.arg, "no cable is plugged in");
    return NULL;
}
