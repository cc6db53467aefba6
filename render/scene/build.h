/* Figures that build up: the same page again and again, each time with one step more. */
#ifndef SP_RENDER_BUILD_H
#define SP_RENDER_BUILD_H
#include "render/scene/scene.h"

/* The steps at which marks of the scene appear (scene_at), ascending, in the scene's arena; 0: all
 * are there from the start. */
int build_steps(const Scene *s, const int **step);
/* The page as it stands after `step`: a scene with the marks that are there by then, at their
 * places. It shares everything with s and lives as long. */
Scene *build_until(const Scene *s, int step);
#endif
