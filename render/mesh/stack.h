/* The ranks of a pipeline with two or more other axes as a stack of planes. See stack.c. */
#ifndef SP_RENDER_STACK_H
#define SP_RENDER_STACK_H
#include "render/furniture/furniture.h"

/* Is there one to draw: a pipeline's axis and at least two others, of more than one rank each? */
bool stack_of(const Trace *t, Arena *a);
Scene *stack_page(const ViewCall *c, PresetKind preset);
/* The same in words, wrapped at w. */
void stack_text(const ViewCall *c, Str *out, int w);
/* Of what counts and bytes of collectives are: "of one micro-batch of 4, and what is done once a
 * step"; "" without micro-batches. */
const char *stack_counts(Arena *a, const Trace *t);
/* "embedding, layers 0-1": what the forward pass of a rank consists of, in its order. */
const char *stack_parts(Arena *a, const Trace *t, int64_t rank);
#endif
