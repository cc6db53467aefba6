/* libFuzzer's entry: FUZZ_TARGET is the target that this program is built for. */
#include "fuzz.h"
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n);
int LLVMFuzzerTestOneInput(const uint8_t *p, size_t n) {
    FUZZ_TARGET(p, n);
    return 0;
}
