/* Any bytes as a model's config.json, and the shape-only passes of a plan that uses it. */
#include "drive/pipeline.h"
#include "fuzz.h"
#include <assert.h>
#include <string.h>

void fuzz_config(const uint8_t *p, size_t n) {
    if (n > 1 << 14) return;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const char *plan = arena_printf(
        a,
        "model: {hf_config: %s, layers: 1, parts: [embedding, blocks, norm, head, loss]}\n"
        "mesh: {dp: 2, tp: 2}\nnames: hf\npass: train\noptimizer: adamw\nrecipe: hf-llama\n",
        fuzz_file(p, n));
    PipelineOptions o = {0};
    PipelineReport report;
    Trace *t = pipeline_run(a, d, plan_text("plan.yaml", plan), &o, &report);
    assert(t || diags_errors(d));
    arena_free(a);
}
