/* What `--part` means to a view, by any name that people use for it. */
#ifndef SP_CLI_PART_H
#define SP_CLI_PART_H
#include "render/render.h"

/* Puts in place of o->part what the view knows: of "attention.wo" or "self_attn.o_proj" the block
 * has the part "attention", the shards the module, the storyboard the value that is moved there;
 * o->layer too, where the name says it. What the view knows itself, and what is no name, stays;
 * then o->part_hint has the names that are near, or NULL. */
void part_resolve(Arena *a, const Trace *t, const RenderView *view, RenderOptions *o);
#endif
