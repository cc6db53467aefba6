/* Words that the picture of a block and that of its backward pass share. */
#include "render/graph/block_words.h"
#include "base/text.h"

/* Does anything that is drawn belong to the layer? Embedding, head and loss do not. */
static bool of_layer(const BlockGraph *g) {
    for (int i = 0; i < g->n; i++)
        if (g->node[i].strip >= 0 && g->node[i].n_op && g->node[i].op[0].c->layer == g->layer)
            return true;
    return false;
}
static const char *layer_words(const BlockGraph *g) {
    if (g->layer < 0 || g->n_layers <= 1 || !of_layer(g)) return "";
    const char *all = g->first_layer ? arena_printf(g->arena, "%d to %d", g->first_layer,
                                                    g->first_layer + g->n_layers - 1)
                                     : arena_printf(g->arena, "%d", g->n_layers);
    return arena_printf(g->arena, "layer %d of %s, the other%s folded (--layer)", g->layer, all,
                        g->n_layers == 2 ? " is" : "s are");
}

/* Parts of the subtitle. */
void block_subtitle(const BlockGraph *g, const char *passes, const char **part) {
    Arena *a = g->arena;
    const char *model = words_model(a, g->t), *order = words_order(a, g->t),
               *mesh = words_mesh(a, g->t);
    int n = 0;
    part[n++] = arena_printf(a, "rank %lld%s%s", (long long)g->rank, g->t->n_axes ? " " : "",
                             words_coords(a, g->t, g->rank));
    part[n++] = arena_printf(a, "%s%s%s", model ? model : "", model ? " " : "", passes);
    part[n++] = words_data(a, g->t);
    part[n++] = order ? arena_printf(a, "%s, %s", mesh, order) : mesh;
    part[n++] = words_class(a, g->t, g->rank);
    part[n++] = layer_words(g);
    part[n] = NULL;
}

void block_text_cells(Str *out, int w, const char *rail, const char *const cell[4]) {
    enum { WHOLE = COL_STEP + COL_SYMBOL + COL_SHAPE + COL_BYTES };
    const char *step = cell[0], *symbol = cell[1], *shape = cell[2], *bytes = cell[3];
    if (w >= WHOLE) {
        WordsCell row[] = {{step, COL_STEP, false},
                           {symbol, COL_SYMBOL, false},
                           {shape, COL_SHAPE, false},
                           {bytes, COL_BYTES, true}};
        words_row(out, rail, row, 4);
        return;
    }
    WordsCell row[] = {{step, COL_STEP, false},
                       {symbol, w - COL_STEP - COL_BYTES, false},
                       {bytes, COL_BYTES, true}};
    words_row(out, rail, row, 3);
    if (!*shape) return;
    str_add(out, rail);
    words_pad(out, "", COL_STEP - words_columns(rail), false);
    str_add(out, shape);
    words_end_line(out);
}

const char *block_row_name(const BlockStrip *s) {
    const PartTerm *part = part_term(s->part);
    return part->feeds && !part->attends ? "MLP" : s->whole ? s->whole : s->title;
}

void block_text_row(Str *out, const BlockGraph *g, int w, const char *rail, const char *step,
                    const TraceValue *v) {
    Arena *a = g->arena;
    const TraceLocal *l = v ? words_find_local(&v->shape, g->rank) : NULL;
    const char *sym = v ? words_symbol(a, v->shape.symbolic) : "";
    const char *shape = l ? words_shape(a, l->shape, v->shape.nd) : "",
               *bytes = l ? bytes_text(l->bytes, a) : "";
    block_text_cells(out, w, rail, (const char *const[]){step, sym, shape, bytes});
}
