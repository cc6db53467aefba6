/* Kernels for any processor: vectors of one element, fma from the C library where the hardware has
 * none. Slow and right. */
#include "kernel/isa.h"

#define ISA generic

#define IS_F64 1
#define V double
#define WORD uint64_t
#define BIAS 1023
#define MANTISSA 52
#define BUILTIN(name) __builtin_##name
#define LANE(name) name##_f64_generic
#include "kernel/generic.inc"

#define IS_F64 0
#define V float
#define WORD uint32_t
#define BIAS 127
#define MANTISSA 23
#define BUILTIN(name) __builtin_##name##f
#define LANE(name) name##_f32_generic
#include "kernel/generic.inc"

const KernelIsa kernel_isa_generic = {"generic", &ops_f32_generic, &ops_f64_generic};
