/* Which rows of the error picture belong to one part of the model, and may so stand in one row.
 * Refuses to name a part by a framework's module: attention is that in every scheme. */
#ifndef SP_RENDER_ERRORS_MODULES_H
#define SP_RENDER_ERRORS_MODULES_H
#include "render/errors/errors.h"

/* What a row belongs to: a part of the model ("layers.0.attention", "head"), and what is done
 * there, in words before it ("", "backward: "). Rows of one region have equal texts. */
typedef struct {
    const char *before, *name; /* name NULL: no part (inputs and parameters) */
} ErrRegion;
/* Regions as wide as parts ("layers.0.attention"), as layers ("layers.0"; other parts as they are),
 * or as what is done ("backward"). */
typedef enum { ERR_PARTS, ERR_LAYERS, ERR_PASSES, ERR_WIDTHS } ErrWidth;
/* Per row. */
ErrRegion *errors_regions(Arena *a, const ErrMap *m, ErrWidth w);
bool errors_same_region(ErrRegion a, ErrRegion b);
#endif
