/* Bands of steps. See bands.h. */
#include "render/memory/bands.h"
#include "base/text.h"

/* The band of compute i alone. Parts outside the layers (embedding, head, loss) stay apart on all
 * levels but that of passes. */
static MemBand band_of(const Trace *t, int i, BandLevel level) {
    const TraceCompute *c = &t->computes[i];
    MemBand b = {.pass = words_phase(c),
                 .part = trace_unit(t, i),
                 .first_layer = c->layer,
                 .last_layer = c->layer,
                 .from = c->step};
    if (level >= BAND_PASSES || (level > BAND_PARTS && c->layer >= 0)) b.part = NULL;
    if (level >= BAND_PASSES) b.first_layer = b.last_layer = -1;
    return b;
}
/* Do both stand under one name? */
static bool joins(const MemBand *x, const MemBand *y, BandLevel level) {
    if (x->pass != y->pass || !text_same(x->part, y->part)) return false;
    if (level == BAND_MODEL && x->last_layer >= 0 && y->first_layer >= 0) return true;
    return x->last_layer == y->first_layer;
}

int memory_bands(Arena *a, const Trace *t, int n_steps, BandLevel level, MemBand **out) {
    MemBand *b = ARENA_ARRAY(a, MemBand, t->n_computes + 1);
    int n = 0;
    for (int i = 0; i < t->n_computes; i++) {
        const TraceCompute *c = &t->computes[i];
        if (n && c->step < b[n - 1].from) continue; /* records of one step per class of ranks */
        MemBand x = band_of(t, i, level);
        MemBand *last = n ? &b[n - 1] : NULL;
        bool sum = last && !c->part && level < BAND_PASSES && last->pass == x.pass;
        if (last && (sum || joins(last, &x, level))) { /* a sum of gradients is of what it adds */
            if (sum) continue;
            if (x.first_layer < last->first_layer) last->first_layer = x.first_layer;
            if (x.last_layer > last->last_layer) last->last_layer = x.last_layer;
            continue;
        }
        if (last) last->to = c->step;
        b[n++] = x;
    }
    if (n) b[0].from = 0, b[n - 1].to = n_steps;
    *out = b;
    return n;
}

const char *memory_band_name(Arena *a, const MemBand *b, BandLevel level, bool brief) {
    const char *part = b->part ? part_term_word(b->part) : NULL;
    if (level == BAND_PASSES) return phase_text(b->pass);
    if (b->first_layer < 0) return part ? part : phase_text(b->pass);
    if (b->first_layer < b->last_layer)
        return arena_printf(a, "layers %d to %d", b->first_layer, b->last_layer);
    if (!part) return arena_printf(a, "layer %d", b->first_layer);
    return brief ? part : arena_printf(a, "layer %d, %s", b->first_layer, part);
}
