/* Plug-ins of engines. They lie beside the program, or in lib beside its folder. Each stays open:
 * an MPI cannot be started twice. */
#include "engine/plugin.h"
#include "engine/place.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char nccl[] = "nccl";

Launched plugin_launched(bool gpus) {
    int n;
    const Launcher *by = place_launchers(&n);
    const PlaceLack *lack;
    Place p;
    if (gpus && (place_find(&p, &lack) || lack))
        return (Launched){nccl, p.by->title, p.rank, p.ranks, p.beside};
    for (int i = 0; !gpus && i < n; i++) {
        int64_t rank = place_number(by[i].rank, -1), beside = place_number(by[i].beside, 1);
        if (rank < 0 || !by[i].mpi) continue;
        return (Launched){by[i].mpi, by[i].title, rank, place_number(by[i].ranks, 0),
                          beside > 0 ? beside : 1};
    }
    return (Launched){.beside = 1};
}
const char *plugin_find(Arena *arena, const char *engine) {
    static const char *const folders[] = {"", "../lib/", "../lib/shardproof/"};
    char self[4096];
    ssize_t n = readlink("/proc/self/exe", self, sizeof self - 1);
    self[n > 0 ? n : 0] = 0;
    char *slash = strrchr(self, '/');
    if (!slash) return NULL;
    slash[1] = 0;
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        const char *path = arena_printf(arena, "%s%sshardproof-%s.so", self, folders[i], engine);
        if (access(path, R_OK) == 0) return path;
    }
    return NULL;
}
static EngineOpen *load(Arena *arena, Diags *d, const Launched *by) {
    const char *path = plugin_find(arena, by->engine);
    if (!path && by->engine == nccl) {
        diag_error(
            d, "E0601", diag_nowhere,
            "`make CUDA=1` builds it where CUDA's toolkit and nccl.h are; without --cuda the "
            "plan runs on virtual ranks of this machine's processor",
            "--cuda: there is no shardproof-nccl.so beside the program or in ../lib");
        return NULL;
    }
    if (!path) {
        diag_error(d, "E0601", diag_nowhere,
                   arena_printf(arena,
                                "`make MPI=%s` builds it where %s is installed; or start the "
                                "processes with the launcher of another MPI",
                                by->engine, by->title),
                   "these processes were started by %s, and there is no shardproof-%s.so beside "
                   "the program or in ../lib",
                   by->title, by->engine);
        return NULL;
    }
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL);
    EngineOpen *open = NULL;
    void *symbol = lib ? dlsym(lib, ENGINE_SYMBOL) : NULL;
    const char *of = by->engine == nccl ? "--cuda" : by->title,
               *build = by->engine == nccl ? "make CUDA=1"
                                           : arena_printf(arena, "make MPI=%s", by->engine);
    if (symbol) memcpy(&open, &symbol, sizeof open); /* C has no cast for this */
    else if (lib)
        diag_error(d, "E0601", diag_nowhere,
                   arena_printf(arena, "`%s` builds the one that belongs to this program", build),
                   "the engine of %s cannot be used: %s belongs to another version of shardproof",
                   of, path);
    else
        diag_error(d, "E0601", diag_nowhere,
                   arena_printf(arena, "build the plug-in on this machine: `%s`", build),
                   "the engine of %s cannot be loaded: %s", of, dlerror());
    return open;
}
Engine *plugin_open(Arena *arena, Diags *d, const EngineHost *host, bool gpus) {
    Launched by = plugin_launched(gpus);
    const PlaceLack *lack = NULL;
    Place p;
    if (gpus && !place_find(&p, &lack))
        diag_error(d, "E0603", diag_nowhere,
                   lack ? lack->help : "torchrun and mpirun set RANK and WORLD_SIZE, or their own",
                   "--cuda: %s", lack ? lack->what : "no launcher has started this process");
    else if (!by.engine)
        diag_error(d, "E0603", diag_nowhere, "mpirun -n 8 shardproof check PLAN --mpi",
                   "--mpi: no launcher of MPI has started this process");
    if (lack || !by.engine) return NULL;
    EngineOpen *open = load(arena, d, &by);
    EngineHost h = *host;
    h.rank = by.rank;
    Engine *e = open ? open(&h) : NULL;
    if (!e || !by.ranks || e->ranks == by.ranks) return e;
    diag_error(d, "E0603", diag_nowhere, "use the launcher that belongs to the MPI of the plug-in",
               "the launcher says %lld processes, %s finds %lld", (long long)by.ranks, e->name,
               (long long)e->ranks);
    e->close(e);
    return NULL;
}
