/* What part of the program each step belongs to, as bands under an axis of steps. Knows no lengths:
 * how fine the bands are is what its caller asks for. */
#ifndef SP_RENDER_MEMORY_BANDS_H
#define SP_RENDER_MEMORY_BANDS_H
#include "render/memory/memory.h"

/* From fine to coarse: attention, MLP, ...; whole layers; all layers in a row; a whole pass. */
typedef enum { BAND_PARTS, BAND_LAYERS, BAND_MODEL, BAND_PASSES, BAND_LEVELS } BandLevel;
typedef struct {
    Phase pass;
    const char *part;            /* NULL: layers, or a whole pass */
    int first_layer, last_layer; /* -1: of no layer */
    int from, to;                /* steps; the next band begins at `to` */
} MemBand;
/* The bands of a level in the order of steps; returns their number. In the arena. */
int memory_bands(Arena *a, const Trace *t, int n_steps, BandLevel level, MemBand **out);
/* What a band is called: "layer 3, MLP", "loss"; brief: of a part of a layer the part alone, "MLP".
 */
const char *memory_band_name(Arena *a, const MemBand *b, BandLevel level, bool brief);
#endif
