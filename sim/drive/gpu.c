/* The GPU's plug-in: see gpu.h. Refuses to know CUDA. */
#include "drive/gpu.h"
#include "engine/plugin.h"
#include "exec/device_gpu.h"
#include "gpu/kernels.h"
#include <dlfcn.h>
#include <string.h>

/* An error in the middle of a run, in the library's own words. */
static void failed(void *arg, const char *what) {
    (void)arg;
    base_die(5, "the GPU failed: %s [E0607]", what);
}
static const struct {
    const char *cause, *fix;
} whys[] = {
    [GPU_NO_DRIVER] = {"there is no NVIDIA driver on this machine",
                       "leave --cuda out: the plan runs on virtual ranks of this machine's "
                       "processor; with a GPU install NVIDIA's driver (nvidia-smi must work)"},
    [GPU_NO_DEVICE] = {"the driver finds no GPU that this process may use",
                       "look at nvidia-smi and at CUDA_VISIBLE_DEVICES; without a GPU leave --cuda "
                       "out"},
    [GPU_OLD_DRIVER] = {"the driver is older than the CUDA that the plug-in was built with",
                        "install a newer driver, or build the plug-in with this machine's toolkit: "
                        "make CUDA=1"},
    [GPU_OTHER_VERSION] = {"the plug-in belongs to another version of shardproof",
                           "make CUDA=1 builds the one that belongs to this program"},
    [GPU_BROKEN] = {"the GPU cannot be used", "leave --cuda out, or mend what the message names"},
};
static GpuOpen *load(Arena *arena, Diags *d) {
    const char *path = plugin_find(arena, "cuda");
    if (!path) {
        diag_error(d, "E0601", diag_nowhere,
                   "`make CUDA=1` builds it where CUDA's toolkit is installed; without --cuda the "
                   "plan runs on virtual ranks of this machine's processor",
                   "--cuda: there is no shardproof-cuda.so beside the program or in ../lib");
        return NULL;
    }
    void *lib = dlopen(path, RTLD_NOW | RTLD_LOCAL), *symbol = lib ? dlsym(lib, GPU_SYMBOL) : NULL;
    GpuOpen *open = NULL;
    if (symbol) memcpy(&open, &symbol, sizeof open); /* C has no cast for this */
    else
        diag_error(d, "E0601", diag_nowhere, "build it on this machine: make CUDA=1",
                   "the plug-in for CUDA cannot be loaded: %s", dlerror());
    return open;
}
Device *gpu_open(Arena *arena, Diags *d, int at, int sharing) {
    GpuOpen *open = load(arena, d);
    GpuHost host = {.abi = GPU_ABI, .kernels = GPU_N_KERNELS, .device = at, .failed = failed};
    GpuWhy why = GPU_BROKEN;
    const char *text = "";
    Gpu *gpu = open ? open(&host, &why, &text) : NULL;
    if (gpu && sharing > 1) gpu->memory /= (size_t)sharing;
    if (gpu) return device_gpu(gpu);
    if (open)
        diag_error(d, "E0601", diag_nowhere, whys[why].fix, "--cuda: %s (%s)", whys[why].cause,
                   text);
    return NULL;
}
void gpu_notes(Device *dev, Arena *arena, Diags *d) {
    const char *missing = dev ? device_gpu_missing(dev, arena) : NULL;
    if (missing)
        diag_note(d, "N0017", diag_nowhere, NULL,
                  "ops without a kernel for GPUs ran on the host: %s calls", missing);
}
void gpu_close(Device *dev) { device_free(dev); }
