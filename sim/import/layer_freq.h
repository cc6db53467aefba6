/* Which layers have experts, as Megatron-LM's --moe-layer-freq says it. */
#ifndef SP_IMPORT_LAYER_FREQ_H
#define SP_IMPORT_LAYER_FREQ_H
#include <stdbool.h>
#include <stdint.h>

enum { LAYER_FREQ_MOST = 4096 }; /* layers */

/* "2" (of each 2 layers the first) or sums and multiples of lists of 0 and 1, "([0]*3+[1]*58)":
 * experts[i] of the n layers. NULL, or why it is refused: no such text, or lists of another number
 * of layers. */
const char *layer_freq_read(const char *text, int64_t n, bool experts[LAYER_FREQ_MOST]);
#endif
