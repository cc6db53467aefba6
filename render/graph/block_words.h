/* Words that the picture of a block and that of its backward pass share. */
#ifndef SP_RENDER_BLOCK_WORDS_H
#define SP_RENDER_BLOCK_WORDS_H
#include "render/graph/block_graph.h"

/* Columns of the text form. */
/* Text: a step, its output's symbolic shape, its shape on the rank, its bytes; in less than 80
 * columns the shape on the rank stands under the symbolic one. */
enum { COL_STEP = 30, COL_SYMBOL = 22, COL_SHAPE = 19, COL_BYTES = 9 };
/* One such line of four texts, `w` columns wide; lines that follow begin with `rail`. */
void block_text_cells(Str *out, int w, const char *rail, const char *const cell[4]);

/* Parts of the subtitle of a picture of such passes ("forward"), NULL-terminated, in the graph's
 * arena; `part` has room for 8. */
void block_subtitle(const BlockGraph *g, const char *passes, const char **part);
/* What a line of a page that begins with the strip is to another plan's: its title, which a piece
 * of it has of the whole; an MLP and experts take one another's place. */
const char *block_row_name(const BlockStrip *s);
/* One row of the text form: words of the step, symbolic shape, shape on the rank, bytes; what is
 * too wide moves to a line that starts with `rail`. */
void block_text_row(Str *out, const BlockGraph *g, int w, const char *rail, const char *step,
                    const TraceValue *v);
#endif
