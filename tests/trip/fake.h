/* What the tests' GPU (gpu.c) asks of the tests' CUDA (nccl.c) where a run has both: one memory,
 * one set of streams. */
#ifndef SP_TESTS_FAKE_H
#define SP_TESTS_FAKE_H
#include "support/fence.h"
#include <cuda_runtime_api.h>
#include <stdbool.h>
#include <stddef.h>

enum { FAKE_TOUCHES = 8 };
typedef struct {
    const char *name;
    void (*fn)(void *arg);
    const void *arg; /* `bytes` of it are copied */
    size_t bytes;
    struct {
        const void *p;
        bool writes;
    } touches[FAKE_TOUCHES];
    int n;
} FakeTask;
typedef Fence *FakeFence(void);
FakeFence fake_fence;
/* As a kernel: behind what the stream was asked before. */
typedef void FakeRun(cudaStream_t s, const FakeTask *t);
FakeRun fake_run;
#endif
