/* What files say about the model before there is a graph: the sizes of an inputs file, the names of
 * a weights file. Only headers are read here; the numbers are the business of sim/weights. */
#include "base/file.h"
#include "model/build.h"
#include "formats/safetensors.h"
#include <string.h>

/* The sizes that an inputs file fixes: of the first of these tensors that it has, [B, S, ...] or,
 * of an mlp, [B, I]; a dim more at the front counts training steps. NULL: it has none of them. */
static const StTensor *sizing_tensor(Arena *a, const SafeTensors *st, const ModelDims *m,
                                     const int64_t **shape) {
    const struct {
        const char *name;
        int nd;
    } from[] = {
        {m->mlp ? "input" : arena_printf(a, "layers.%d.input", m->first_layer), m->mlp ? 2 : 3},
        {"q", 4},
        {"input_ids", 2},
        {"input", m->mlp ? 2 : 3},
        {"inputs", m->mlp ? 2 : 3},
        {"labels", 2}};
    for (size_t i = 0; i < sizeof from / sizeof *from; i++) {
        const StTensor *t = st_find(st, from[i].name);
        if (!t || t->nd < from[i].nd) continue;
        *shape = t->shape + (t->nd == from[i].nd + 1);
        return t;
    }
    return NULL;
}

bool data_sizes(Arena *a, Diags *d, const Plan *p, ModelDims *m) {
    m->B = m->mlp && p->rows > 0 ? p->rows : p->batch;
    m->S = m->mlp ? 1 : p->sequence;
    if (p->inputs && (m->B <= 0 || m->S <= 0)) {
        SafeTensors *st = st_open(a, d, file_join(a, p->dir, p->inputs), p->inputs_loc);
        if (!st) return false;
        const int64_t *shape;
        const StTensor *t = sizing_tensor(a, st, m, &shape);
        if (t && m->B <= 0) m->B = shape[0];
        if (t && m->S <= 0) m->S = shape[1];
        st_close(st);
        if (t && (!m->B || !m->S)) {
            diag_error(d, "E0503", p->inputs_loc, NULL, "'%s' in %s is empty", t->name, p->inputs);
            return false;
        }
    }
    if (m->B <= 0 && p->documents_by_row) m->B = p->n_documents;
    if (m->B <= 0) m->B = m->mlp ? 8 : 2;
    if (m->S <= 0 && !p->n_documents) m->S = 64;
    return documents_lay(a, d, p, m);
}

/* Schemes whose weight files pair neighbouring rows of a head: all that keep Meta's order of rows.
 */
static bool scheme_interleaves(int scheme) {
    return scheme == NAMES_TORCHTITAN || scheme == NAMES_TORCHTUNE || scheme == NAMES_GGUF;
}

bool data_interleaved(Arena *a, Diags *d, const Plan *p) {
    if (p->rope_interleaved >= 0) return p->rope_interleaved;
    if (!p->weights) return false;
    for (int n = 0; p->weights_names && n < NAMES_COUNT; n++)
        if (!strcmp(p->weights_names, plan_names_text((Names)n))) return scheme_interleaves(n);
    SafeTensors *st = st_open(a, d, file_join(a, p->dir, p->weights), p->weights_loc);
    if (!st) return false;
    const char **names = ARENA_ARRAY(a, const char *, st->n);
    size_t skip = p->weights_prefix ? strlen(p->weights_prefix) : 0;
    int n = 0;
    for (int i = 0; i < st->n; i++)
        if (!skip || !strncmp(st->t[i].name, p->weights_prefix, skip))
            names[n++] = st->t[i].name + skip;
    bool yes = scheme_interleaves(names_recognise(names, n));
    st_close(st);
    return yes;
}
