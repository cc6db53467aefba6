/* Plug-ins of engines. They lie beside the program, or in lib beside its folder. Each stays open:
 * an MPI cannot be started twice. */
#include "engine/plugin.h"
#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* In the order in which they are asked: inside an allocation of Slurm the variables of mpirun are
 * the nearer ones. Variables that are not there are NULL. */
static const struct {
    const char *engine, *title, *rank, *ranks, *beside;
} launchers[] = {
    {"openmpi", "Open MPI", "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE",
     "OMPI_COMM_WORLD_LOCAL_SIZE"},
    {"openmpi", "Open MPI", "PMIX_RANK", NULL, NULL},
    {"mpich", "MPICH", "PMI_RANK", "PMI_SIZE", "MPI_LOCALNRANKS"},
};
static int64_t number(const char *name, int64_t otherwise) {
    const char *s = name ? getenv(name) : NULL;
    char *end;
    long long n = s ? strtoll(s, &end, 10) : 0;
    return s && *s && !*end && n >= 0 ? n : otherwise;
}
Launched plugin_launched(void) {
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        int64_t rank = number(launchers[i].rank, -1), beside = number(launchers[i].beside, 1);
        if (rank < 0) continue;
        return (Launched){launchers[i].engine, launchers[i].title, rank,
                          number(launchers[i].ranks, 0), beside > 0 ? beside : 1};
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
    if (symbol) memcpy(&open, &symbol, sizeof open); /* C has no cast for this */
    else
        diag_error(d, "E0601", diag_nowhere,
                   "build the plug-in on this machine, with the MPI it has",
                   "the engine of %s cannot be loaded: %s", by->title, dlerror());
    return open;
}
Engine *plugin_open(Arena *arena, Diags *d, const EngineHost *host) {
    Launched by = plugin_launched();
    if (!by.engine) {
        diag_error(d, "E0603", diag_nowhere, "mpirun -n 8 shardproof check PLAN --mpi",
                   "--mpi: no launcher of MPI has started this process");
        return NULL;
    }
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
