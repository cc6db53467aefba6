/* The figure of what each kind of step took, modelled and measured. */
#ifndef SP_RENDER_VIEW_TOOK_H
#define SP_RENDER_VIEW_TOOK_H
#include "render/furniture/furniture.h"

/* Of the measured steps of a rank; NULL: it has none. */
Scene *timeline_took(const ViewCall *c, PresetKind preset, int64_t rank);
#endif
