/* How fast each pair of a head turns, and what YaRN multiplies besides. Frequencies are those of
 * Hugging Face's rotary embeddings of the same rope_type. */
#include "model/build.h"
#include <assert.h>
#include <math.h>
#include <string.h>

/* Llama 3.1: long waves are stretched, short ones kept, between the bands blended. Where the bands
 * touch (Llama 4) nothing is between them. */
static double llama3(const ModelDims *m, double theta, int64_t i) {
    (void)i;
    double wave = 2 * acos(-1) / theta; /* positions per turn */
    if (wave < m->rope_old_ctx / m->rope_high) return theta;
    double slow = theta / m->rope_factor;
    if (wave > m->rope_old_ctx / m->rope_low || m->rope_high <= m->rope_low) return slow;
    double smooth = (m->rope_old_ctx / wave - m->rope_low) / (m->rope_high - m->rope_low);
    return (1 - smooth) * theta / m->rope_factor + smooth * theta;
}
static double linear(const ModelDims *m, double theta, int64_t i) {
    (void)i;
    return theta / m->rope_factor;
}
/* The pair that turns `turns` times within the old context. */
static double yarn_pair(const ModelDims *m, double turns) {
    return (double)m->turned * log(m->rope_old_ctx / (turns * 2 * acos(-1))) /
           (2 * log(m->rope_base));
}
/* YaRN (Peng et al. 2023): pairs that turn beta_fast times and more within the old context are
 * kept, those that turn beta_slow times and less are stretched, a ramp lies between. */
static double yarn(const ModelDims *m, double theta, int64_t i) {
    double low = yarn_pair(m, m->yarn.fast), high = yarn_pair(m, m->yarn.slow);
    if (m->yarn.truncate) low = floor(low), high = ceil(high);
    low = fmax(low, 0), high = fmin(high, (double)(m->turned - 1));
    if (low == high) high += 0.001;
    double ramp = fmin(fmax(((double)i - low) / (high - low), 0), 1), keep = 1 - ramp;
    return theta / m->rope_factor * (1 - keep) + theta * keep;
}
/* LongRoPE (arXiv 2402.13753): each pair has a divisor of its own, for texts up to the old context
 * and for longer ones. Of a shrunk model the divisors are picked evenly. */
static double longrope(const ModelDims *m, double theta, int64_t i) {
    int64_t longest = m->documents ? 0 : m->S; /* positions begin anew with each document */
    for (int b = 0; m->documents && b < m->documents->rows; b++)
        for (int k = 0; k < m->documents->row[b].n; k++) {
            const AttentionRun *r = &m->documents->row[b].run[k];
            if (r->lim - r->from > longest) longest = r->lim - r->from;
        }
    const double *by = (double)longest > m->rope_old_ctx ? m->stretch_long : m->stretch_short;
    return theta / by[i * m->n_stretch / (m->turned / 2)];
}
static const struct {
    const char *type;
    double (*scaled)(const ModelDims *m, double theta, int64_t i);
} types[] = {{"linear", linear}, {"llama3", llama3}, {"yarn", yarn}, {"longrope", longrope}};

const double *model_inv_freq(Arena *arena, const ModelDims *m) {
    assert(m->turned >= 0);
    int64_t n = m->turned / 2;
    double *f = ARENA_ARRAY(arena, double, n);
    double (*scaled)(const ModelDims *, double, int64_t) = NULL;
    for (size_t k = 0; k < sizeof types / sizeof *types; k++)
        if (!strcmp(types[k].type, m->rope_type)) scaled = types[k].scaled;
    for (int64_t i = 0; i < n; i++) {
        double theta = 1 / pow(m->rope_base, (double)(2 * i) / (double)m->turned);
        f[i] = scaled ? scaled(m, theta, i) : theta;
    }
    return f;
}

/* What attention to a context stretched by `factor` is scaled by. */
static double yarn_magnitude(double factor, double scale) {
    return factor <= 1 ? 1 : 0.1 * scale * log(factor) + 1;
}
static double longrope_turn(const ModelDims *m) {
    double factor =
        m->rope_factor > 0 ? m->rope_factor : (double)m->max_positions / m->rope_old_ctx;
    if (m->yarn.attention_factor > 0) return m->yarn.attention_factor;
    return factor <= 1 ? 1 : sqrt(1 + log(factor) / log(m->rope_old_ctx));
}
double model_turn(const ModelDims *m) {
    if (!strcmp(m->rope_type, "longrope")) return longrope_turn(m);
    if (strcmp(m->rope_type, "yarn")) return 1;
    if (m->yarn.attention_factor > 0) return m->yarn.attention_factor;
    if (m->yarn.mscale > 0 && m->yarn.mscale_all > 0)
        return yarn_magnitude(m->rope_factor, m->yarn.mscale) /
               yarn_magnitude(m->rope_factor, m->yarn.mscale_all);
    return yarn_magnitude(m->rope_factor, 1);
}
double model_softmax_scale(const ModelDims *m) {
    double scale = m->softmax_scale > 0 ? m->softmax_scale : 1 / sqrt((double)m->d);
    if (!m->kv_rank || strcmp(m->rope_type, "yarn") || m->yarn.mscale_all <= 0) return scale;
    double s = yarn_magnitude(m->rope_factor, m->yarn.mscale_all);
    return scale * s * s;
}
