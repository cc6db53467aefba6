/* Which instruction set the kernels use, and each thread's scratch memory. It refuses an
 * instruction set that this processor has not got. The chosen set is the only global mutable state
 * of sim/kernel: it changes speed, never a bit. */
#include "kernel/isa.h"
#include "base/arena.h"
#include "kernel/gemm.h"
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

static _Atomic(const KernelIsa *) current;

static const KernelIsa *find_isa(const char *name) {
    bool any = strcmp(name, "auto") == 0;
#if defined(__x86_64__)
    __builtin_cpu_init();
    bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
    bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                  __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
    if (avx512 && (any || strcmp(name, "avx512") == 0)) return &kernel_isa_avx512;
    if (avx2 && (any || strcmp(name, "avx2") == 0)) return &kernel_isa_avx2;
#endif
    return any || strcmp(name, "generic") == 0 ? &kernel_isa_generic : NULL;
}

/* SHARDPROOF_ISA is for tools such as valgrind, which knows no AVX-512; a name that is not
 * available counts as "auto". */
const KernelIsa *kernel_current(void) {
    const KernelIsa *k = atomic_load_explicit(&current, memory_order_acquire);
    if (k) return k;
    const char *want = getenv("SHARDPROOF_ISA");
    k = want ? find_isa(want) : NULL;
    if (!k) k = find_isa("auto");
    atomic_store_explicit(&current, k, memory_order_release);
    return k;
}

const char *kernel_isa(void) { return kernel_current()->name; }

bool kernel_select(const char *isa) {
    const KernelIsa *k = find_isa(isa);
    if (k) atomic_store_explicit(&current, k, memory_order_release);
    return k != NULL;
}

static _Thread_local struct {
    void *p;
    size_t n;
} scratch[SCRATCH_SLOTS];

enum { HUGE_PAGE = 1 << 21 };
static size_t alignment(size_t n) { return n >= HUGE_PAGE ? HUGE_PAGE : 64; }
size_t kernel_scratch_size(size_t n) {
    size_t align = alignment(n), want = n + n / 4; /* some room to grow */
    return (want + align - 1) / align * align;
}
/* First touch of fresh memory costs more than most products, so blocks grow and stay. */
void *kernel_scratch(ScratchSlot slot, size_t n) {
    if (scratch[slot].n >= n) return scratch[slot].p;
    size_t align = alignment(n), want = kernel_scratch_size(n);
    if (want < n) base_die(5, "a scratch block of %zu bytes does not fit in memory [E0701]", n);
    free(scratch[slot].p);
    scratch[slot].p = aligned_alloc(align, want);
    scratch[slot].n = scratch[slot].p ? want : 0;
    if (!scratch[slot].p)
        base_die(5, "out of memory: %zu bytes of scratch could not be had [E0701]", want);
#ifdef MADV_HUGEPAGE
    if (align == HUGE_PAGE) (void)madvise(scratch[slot].p, want, MADV_HUGEPAGE); /* only a hint */
#endif
    return scratch[slot].p;
}

void kernel_thread_cleanup(void) {
    for (int i = 0; i < SCRATCH_SLOTS; i++) {
        free(scratch[i].p);
        scratch[i].p = NULL;
        scratch[i].n = 0;
    }
}
