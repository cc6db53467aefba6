/* What a page of a fixed height has room for. */
#ifndef SP_RENDER_PAGE_ROOM_H
#define SP_RENDER_PAGE_ROOM_H
#include "render/furniture/furniture.h"

/* In units of the preset's width; of A4 lying, less its margins. 0: a page is as high as what is on
 * it. */
static inline double page_room(PresetKind p) {
    if (p == PRESET_SLIDE) return presets[p].h;
    return p == PRESET_A4 ? presets[p].w * (595.276 - 40) / (841.890 - 40) : 0;
}
#endif
