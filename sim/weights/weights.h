/* Where numbers come from: counter-based random values addressable by global index, and safetensors
 * files. A value at global linear index i of a tensor depends on (seed, tensor name, i) only: never
 * on how it was cut. */
#ifndef SP_WEIGHTS_WEIGHTS_H
#define SP_WEIGHTS_WEIGHTS_H
#include "model/model.h"
#include "formats/safetensors.h"

/* ---- random (random.c, Random123 philox4x32-10) ---- */
typedef struct {
    uint64_t seed;
    uint64_t stream;    /* hash of the tensor's name */
    double mean, scale; /* uniform in mean +- scale, on a 24-bit grid: the same number in float32
                           and float64 */
    bool integers;      /* whole numbers from 1 to 4 in their place */
} RandomStream;
/* The stream for a tensor: weights uniform with variance 1/fan_in (gain 1), norm weights around 1,
 * biases about 0.1 wide and never zero-centred exactly, inputs unit variance. Skewed so that no two
 * ranks or dims look alike. */
RandomStream random_stream(const Graph *g, int tensor, uint64_t seed);
/* Values at linear indices first..first+n-1 (row-major over the letters) into out[n], as f32 or f64
 * (the same real numbers). Philox4x32-10 of Salmon et al., "Parallel random numbers: as easy as 1,
 * 2, 3" (2011): one counter per index, so any part can be made alone. */
void random_fill(const RandomStream *r, int64_t first, int64_t n, Dtype dtype, void *out);
/* Uniform integers in [0, bound) for ids and labels, one per linear index, into out[n]; bound > 0.
 */
void random_ints(const RandomStream *r, int64_t first, int64_t n, int64_t bound, int64_t *out);

/* ---- the tensors of a run (weights.c) ---- */
typedef struct Weights Weights;
/* Binds every parameter and input of the graph to its source: `weights:`, `inputs:` or random. All
 * missing (E0502) and misshaped (E0503) tensors are reported at once with the places in the plan;
 * NaN or infinity (E0504) with its index when loaded. Checkpoint names are recognised (with or
 * without "model.", the five schemes, a prefix). NULL if there were errors. */
Weights *weights_open(Arena *arena, Diags *d, const Plan *p, const Model *m);
/* Closes its files; NULL is allowed. Its memory is the arena's. */
void weights_close(Weights *w);
/* Loads the whole of tensor `t` in row-major order of its letters into out (dtype f32 / f64; i64
 * for ids). False and a diagnostic (E0504, E0507) if a value is not finite or out of range. */
bool weights_load(Weights *w, Diags *d, int t, Dtype dtype, void *out);
/* The same of a training step, from 0: inputs of a file may have a leading dim of steps (`inputs`
 * [steps, rows, in]); what has none is the same in every step. E0503 if the file has fewer steps.
 * weights_load is step 0. */
bool weights_load_step(Weights *w, Diags *d, int t, Dtype dtype, int64_t step, void *out);
/* Some of the elements of a tensor, in row-major order of its letters, in a training step. */
typedef struct WeightsPart {
    int t;
    Dtype dtype;
    int64_t step, first, n;
} WeightsPart;
/* Loads those elements alone; errors as those of weights_load_step, of these elements. */
bool weights_part(Weights *w, Diags *d, const WeightsPart *p, void *out);
/* A number for what its files hold (safetensors.h: st_fingerprint); 0 without files. */
uint64_t weights_fingerprint(const Weights *w);
/* Was there a load that failed? A file may shrink between two loads of one tensor: what was
 * computed from the first one then has nothing to be compared with. */
bool weights_failed(const Weights *w);
/* The random numbers that tensor t has, where no file has it: random_stream as the plan asks. */
RandomStream weights_random(const Weights *w, int t);
/* Where it comes from, for records: "random", "file.safetensors:NAME". */
const char *weights_source(const Weights *w, int t);
#endif
