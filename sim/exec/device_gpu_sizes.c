/* A GPU of sizes: it has all the room that is asked for, and does nothing. What the device over it
 * takes, keeps and lends is what it would of a real one: who counts that knows how much memory a
 * run needs before it takes any. */
#include "exec/device_gpu.h"
#include "base/arena.h"
#include <stdlib.h>

/* Addresses that nobody follows. */
static void *there(void) { return (void *)(uintptr_t)((uintptr_t)1 << 20); }
static void *sizes_alloc(Gpu *g, size_t n) {
    (void)g, (void)n;
    return there();
}
static void sizes_release(Gpu *g, void *p) { (void)g, (void)p; }
static void sizes_copy(Gpu *g, void *to, const void *from, size_t n) {
    (void)g, (void)to, (void)from, (void)n;
}
static void sizes_launch(Gpu *g, const GpuLaunch *l) { (void)g, (void)l; }
static void sizes_gemm(Gpu *g, const GpuGemm *m) { (void)g, (void)m; }
static void sizes_lane(Gpu *g, int lane) { (void)g, (void)lane; }
static void *sizes_stream(Gpu *g) {
    (void)g;
    return there();
}
static void *sizes_mark(Gpu *g, void *mark) {
    (void)g, (void)mark;
    return there();
}
static void sizes_after(Gpu *g, void *mark) { (void)g, (void)mark; }
static double sizes_between(Gpu *g, void *from, void *to) {
    (void)g, (void)from, (void)to;
    return 0;
}
static double sizes_busy(Gpu *g) {
    (void)g;
    return 0;
}
static void sizes_close(Gpu *g) { free(g); }
Device *device_gpu_sizes(void) {
    Gpu *g = base_malloc(sizeof *g);
    *g = (Gpu){.name = "sizes",
               .staged = (size_t)1 << 16,
               .alloc = sizes_alloc,
               .release = sizes_release,
               .put = sizes_copy,
               .get = sizes_copy,
               .launch = sizes_launch,
               .gemm = sizes_gemm,
               .lane = sizes_lane,
               .stream = sizes_stream,
               .mark = sizes_mark,
               .after = sizes_after,
               .stamp = sizes_mark,
               .between = sizes_between,
               .busy = sizes_busy,
               .close = sizes_close};
    Device *d = device_gpu(g);
    d->sizes_only = true;
    return d;
}
