/* bfloat16: the upper 16 bits of a float32. A bf16 number is held as the float32 that it is, whose
 * lower 16 bits are zero, so kernels need not know of it: they read and sum in float32, and whoever
 * writes a result rounds it, once. It refuses to say what is rounded: exec/narrow.c does. */
#ifndef SP_KERNEL_BF16_H
#define SP_KERNEL_BF16_H
#include <stdint.h>
#include <string.h>

/* Round to nearest, ties to even (IEEE 754, 4.3.1): NaN stays NaN, what lies beyond the largest
 * finite number by half a unit or more is infinite, subnormals are kept. */
static inline float bf16_round(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    b = (b & 0x7fffffff) > 0x7f800000 ? b | 0x400000 : b + 0x7fff + (b >> 16 & 1);
    b &= 0xffff0000;
    memcpy(&x, &b, sizeof x);
    return x;
}
/* The same of a double, rounded once: by way of the float32 next to it on the side of zero, with
 * its last bit set where that is not it ("round to odd": Boldo and Melquiond, 2008), which no tie
 * of bf16 has. */
static inline double bf16_of_double(double x) {
    float f = (float)x;
    uint32_t b;
    if (x != x || (double)f == x) return (double)bf16_round(f);
    memcpy(&b, &f, sizeof b);
    double size = f < 0 ? -(double)f : (double)f;
    b -= size > (x < 0 ? -x : x);
    b |= 1;
    memcpy(&f, &b, sizeof f);
    return (double)bf16_round(f);
}
/* As the two bytes that are stored or sent, and back. */
static inline uint16_t bf16_bits(float x) {
    uint32_t b;
    memcpy(&b, &x, sizeof b);
    return (uint16_t)(b >> 16);
}
static inline float bf16_value(uint16_t h) {
    uint32_t b = (uint32_t)h << 16;
    float x;
    memcpy(&x, &b, sizeof x);
    return x;
}
/* n of them, in place. */
void bf16_round_f32(int64_t n, float *x);
void bf16_round_f64(int64_t n, double *x);
#endif
