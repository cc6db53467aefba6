/* A device whose memory nobody can touch but its own functions: every missing get or put of the
 * executor ends the process. */
#ifndef SP_TESTS_GUARD_H
#define SP_TESTS_GUARD_H
#include "exec/device.h"

/* One with room for `bytes`; guard_free gives it back. */
Device *guard_new(size_t bytes);
void guard_free(Device *d);
/* How often its functions were called that move numbers in (put), out (get), and that compute. */
typedef struct GuardCalls {
    long puts, gets, copies, kernels;
} GuardCalls;
GuardCalls guard_calls(const Device *d);
#endif
