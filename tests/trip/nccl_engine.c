/* NCCL's plug-in as it is, for machines without a GPU: linked with the tests' NCCL
 * (tests/trip/nccl.c) in place of the real one and of CUDA's runtime. FAKE_GPU=host: its ranks
 * compute on the host, so that their traces are those of the virtual run. */
#include "engine/engine.h"
#pragma push_macro("ENGINE_OPEN")
#undef ENGINE_OPEN
#define ENGINE_OPEN nccl_engine
#include "engine/nccl/engine_nccl.c"
#pragma pop_macro("ENGINE_OPEN")
#include "nccl_abi.h"

__attribute__((visibility("default"))) EngineOpen ENGINE_OPEN;
Engine *ENGINE_OPEN(const EngineHost *host) {
    Engine *e = nccl_engine(host);
    const char *on = getenv("FAKE_GPU");
    if (e && on && !strcmp(on, "host")) e->device = -1;
    return e;
}
