/* Any bytes as a file of each framework, and the shape-only passes of the plan that comes of it.
 * The first byte says which framework, so that one corpus serves all. */
#include "drive/pipeline.h"
#include "fuzz.h"
#include "import/import.h"
#include <assert.h>
#include <string.h>

void fuzz_import(const uint8_t *p, size_t n) {
    static const char *const paths[] = {"plan.py",  "plan.json",  "train.toml",
                                        "args.txt", "specs.json", "config.json"};
    static const char *const frameworks[] = {"torch",    "torch", "torchtitan",
                                             "megatron", "jax",   "hf"};
    if (!n || n > 1 << 14) return;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    bool hf = *p & 32;
    int k = hf ? 5 : *p % 5;
    const char *text = arena_strndup(a, (const char *)p + 1, n - 1);
    ImportInput in = {.framework = frameworks[k],
                      .path = paths[k],
                      .text = arena_memdup(a, p + 1, n - 1),
                      .n = n - 1,
                      .model = *p & 128 && !hf ? "qwen3-0.6b" : NULL,
                      .mesh = *p & 64 && !hf ? "dp=2,tp=2" : NULL,
                      .tp = hf ? 2 : -1,
                      .ep = hf && *p & 1 ? 2 : -1,
                      .dir = "."};
    import_recognise("file", text, strlen(text));
    ImportedPlan plan = import_plan(a, d, &in);
    assert(plan.text || diags_errors(d));
    if (plan.text) {
        PipelineOptions o = {0};
        PipelineReport report;
        diags_origins(d, "imported.yaml", plan.origin, plan.n_origin);
        Trace *t = pipeline_run(a, d, (PlanText){"imported.yaml", plan.text, plan.n, NULL, 0}, &o,
                                &report);
        assert(t || diags_errors(d));
    }
    arena_free(a);
}
