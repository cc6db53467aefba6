/* The numbers that the tests' NCCL and the plug-in must agree about: held of the real headers where
 * they are there, and of those in tests/trip/cuda. */
#ifndef SP_TESTS_NCCL_ABI_H
#define SP_TESTS_NCCL_ABI_H
#include <cuda_runtime_api.h>
#include <nccl.h>
#include <stddef.h>

#define SAME(what, number) _Static_assert((what) == (number), #what)
SAME(sizeof(ncclUniqueId), 128);
SAME(offsetof(ncclConfig_t, magic), 8);
SAME(offsetof(ncclConfig_t, version), 12);
SAME(offsetof(ncclConfig_t, blocking), 16);
SAME(offsetof(ncclConfig_t, maxCTAs), 28);
SAME(offsetof(ncclConfig_t, netName), 32);
SAME(offsetof(ncclConfig_t, splitShare), 40);
SAME(offsetof(ncclConfig_t, commName), 48);
SAME(ncclUnhandledCudaError, 1);
SAME(ncclSystemError, 2);
SAME(ncclInternalError, 3);
SAME(ncclInvalidArgument, 4);
SAME(ncclInvalidUsage, 5);
SAME(ncclRemoteError, 6);
SAME(ncclInProgress, 7);
SAME(ncclSum, 0);
SAME(ncclMax, 2);
SAME(ncclInt8, 0);
SAME(ncclFloat32, 7);
SAME(ncclFloat64, 8);
SAME(cudaErrorMemoryAllocation, 2);
SAME(cudaErrorNoDevice, 100);
SAME(cudaErrorNotReady, 600);
SAME(cudaErrorIllegalAddress, 700);
SAME(cudaMemcpyHostToDevice, 1);
SAME(cudaMemcpyDeviceToHost, 2);
SAME(cudaStreamNonBlocking, 1);
SAME(cudaEventDisableTiming, 2);
SAME(cudaDevAttrComputeMode, 20);
SAME(cudaComputeModeExclusiveProcess, 3);
#undef SAME
#endif
