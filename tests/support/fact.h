/* What a picture's title counts: of a plan that is wrong the title is the rule that is broken, and
 * the counting sentence stands under it. */
#ifndef SP_TESTS_FACT_H
#define SP_TESTS_FACT_H
#include "render/scene/scene.h"

static inline const char *picture_fact(const Scene *s) { return s->fact ? s->fact : s->title; }
#endif
