/* Which layers of a model are of which kind: that turn queries and keys, that attend within chunks
 * or a window, that have experts. From the lists of a config or the numbers that stand for them. */
#include "model/model.h"

bool model_rotates(const ModelDims *m, int64_t i) {
    const LayerKinds *k = &m->layers;
    if (k->rotates) return i >= 0 && i < m->L && k->rotates[i];
    return !k->unrotated_every || (i + 1) % k->unrotated_every != 0;
}
bool model_chunked(const ModelDims *m, int64_t i) {
    const LayerKinds *k = &m->layers;
    if (!m->chunk) return false;
    return k->chunked ? i >= 0 && i < m->L && k->chunked[i] : model_rotates(m, i);
}
bool model_windowed(const ModelDims *m, int64_t i) {
    const bool *list = m->layers.windowed;
    return m->window && !m->window_unread && (!list || (i >= 0 && i < m->L && list[i]));
}
bool model_has_experts(const ModelDims *m, int64_t i) {
    const LayerKinds *k = &m->layers;
    for (int d = 0; d < m->n_dense; d++)
        if (m->dense[d] == i) return false;
    if (m->sparse_step > 1) return (i + 1) % m->sparse_step == 0;
    if (k->experts) return i >= 0 && i < m->L && k->experts[i];
    return k->experts_every && i >= k->experts_from &&
           (i - k->experts_from) % k->experts_every == 0;
}
