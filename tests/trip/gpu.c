/* A plug-in of --cuda for tests: its GPU is the process that opens it, which runs the kernels'
 * sources (tests/support/emulate.h). SHARDPROOF_GPU may say how it fails: "driver", "device",
 * "old", "version", "broken"; "launch 12": the twelfth kernel; "room 4096": so many bytes of
 * memory; "limit 4096": no more, and it says that there is more. */
#include "emulate.h"
#include "base/arena.h"
#include <stdlib.h>
#include <string.h>

static GpuHost program;
static long until; /* launches before one fails; below 0: none does */
static void (*launch)(Gpu *g, const GpuLaunch *l);
static void failing_launch(Gpu *g, const GpuLaunch *l) {
    if (until >= 0 && --until < 0)
        program.failed(program.arg, "softmax: an illegal memory access was encountered");
    launch(g, l);
}
/* Memory: no more at once than there is. */
static size_t room = (size_t)1 << 34, used;
static struct {
    void *p;
    size_t n;
} taken[1 << 16];
static void *(*alloc)(Gpu *g, size_t n);
static void (*release)(Gpu *g, void *p);
static void *limited_alloc(Gpu *g, size_t n) {
    size_t k = 0;
    if (n > room - used) return NULL;
    while (taken[k].p) k++;
    used += n;
    taken[k].n = n;
    return taken[k].p = alloc(g, n);
}
static void limited_release(Gpu *g, void *p) {
    size_t k = 0;
    while (taken[k].p != p) k++;
    used -= taken[k].n;
    taken[k].p = NULL;
    release(g, p);
}
static const struct {
    const char *word;
    GpuWhy why;
    const char *text;
} fails[] = {
    {"driver", GPU_NO_DRIVER, "CUDA driver version is insufficient for CUDA runtime version"},
    {"device", GPU_NO_DEVICE, "no CUDA-capable device is detected"},
    {"old", GPU_OLD_DRIVER, "CUDA driver version is insufficient for CUDA runtime version"},
    {"version", GPU_OTHER_VERSION, "the plug-in was built from another version of the program"},
    {"broken", GPU_BROKEN, "there is no libcublasLt.so.13 or .12"},
};
__attribute__((visibility("default"))) Gpu *shardproof_gpu(const GpuHost *host, GpuWhy *why,
                                                           const char **text);
Gpu *shardproof_gpu(const GpuHost *host, GpuWhy *why, const char **text) {
    const char *how = getenv("SHARDPROOF_GPU");
    for (size_t i = 0; how && i < sizeof fails / sizeof *fails; i++)
        if (!strcmp(how, fails[i].word)) {
            *why = fails[i].why;
            *text = fails[i].text;
            return NULL;
        }
    until = how && !strncmp(how, "launch ", 7) ? atol(how + 7) - 1 : -1;
    if (how && !strncmp(how, "room ", 5)) room = (size_t)atoll(how + 5);
    const size_t says = room;
    if (how && !strncmp(how, "limit ", 6)) room = (size_t)atoll(how + 6);
    program = *host;
    Gpu *g = emulated_gpu((size_t)1 << 34, GPU_WARP);
    g->memory = says;
    alloc = g->alloc;
    release = g->release;
    g->alloc = limited_alloc;
    g->release = limited_release;
    launch = g->launch;
    g->launch = failing_launch;
    *why = GPU_OK;
    return g;
}
