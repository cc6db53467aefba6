/* Any bytes as a safetensors file: its header, its numbers, and a small run that takes its weights
 * from there. */
#include "drive/pipeline.h"
#include "fuzz.h"
#include "formats/safetensors.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { FILE_LIMIT = 1 << 14 };

static void read_all(const SafeTensors *st) {
    static const Dtype as[] = {DT_F32, DT_F64, DT_I64};
    for (int i = 0; i < st->n; i++) {
        int64_t n = 1;
        for (int k = 0; k < st->t[i].nd; k++) n *= st->t[i].shape[k];
        assert(n <= FILE_LIMIT);
        for (int k = 0; k < 3; k++) {
            void *out = malloc((size_t)n * 8 + 8);
            assert(st_read(&st->t[i], 0, n, as[k], out));
            assert(!st_read(&st->t[i], n, 1, as[k], out));
            free(out);
        }
        assert(st_find(st, st->t[i].name) && *st_dtype_name(&st->t[i]));
    }
}

void fuzz_safetensors(const uint8_t *p, size_t n) {
    if (n > FILE_LIMIT) return;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const char *path = fuzz_file(p, n);
    SafeTensors *st = st_open(a, d, path, (Loc){0});
    assert(st || diags_errors(d));
    if (st) {
        read_all(st);
        const char *plan =
            arena_printf(a,
                         "model: {kind: mlp, sizes: [2, 3, 2], layer_names: [a, b], weights: %s}\n"
                         "data: {rows: 2, dtype: f64, inputs: %s}\nmesh: {tp: 2}\nplan: {a: "
                         "colwise, b: rowwise}\n",
                         path, path);
        PipelineOptions o = {.execute = true,
                             .numbers = true,
                             .threads = 1,
                             .against = path,
                             .memory_limit = 1 << 28};
        PipelineReport report;
        Trace *t = pipeline_run(a, d, plan_text("plan.yaml", plan), &o, &report);
        assert(t || diags_errors(d));
        st_close(st);
    }
    arena_free(a);
}
