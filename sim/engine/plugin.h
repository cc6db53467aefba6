/* Finding the launcher that started this process, and opening the engine that belongs to it. */
#ifndef SP_ENGINE_PLUGIN_H
#define SP_ENGINE_PLUGIN_H
#include "base/diag.h"
#include "engine/engine.h"

/* What a launcher says of this process, by the variables that it sets. */
typedef struct Launched {
    const char *engine;  /* "openmpi": the plug-in to open; NULL: nobody launched this */
    const char *title;   /* of people: "Open MPI" */
    int64_t rank, ranks; /* ranks 0: it does not say */
    int64_t beside;      /* processes on this machine; 1 if it does not say */
} Launched;
/* As a rank of MPI, or (gpus) of NCCL, which any launcher may start. */
Launched plugin_launched(bool gpus);
/* The file of a plug-in ("openmpi", "cuda"), in `arena`: "PROGRAM/shardproof-openmpi.so", or in lib
 * beside its folder; NULL: there is none. */
const char *plugin_find(Arena *arena, const char *engine);
/* Opens the engine: all processes come together. NULL and E0603 without a launcher, or if the
 * engine finds other processes than the launcher says, E0601 if there is no plug-in or it cannot be
 * loaded; the host was told if it could not be started. */
Engine *plugin_open(Arena *arena, Diags *d, const EngineHost *host, bool gpus);
#endif
