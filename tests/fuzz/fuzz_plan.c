/* Any bytes as a plan, through every pass that a shape-only command runs; and executed and checked,
 * if that is little work: a small plan may ask for hours of honest arithmetic. */
#include "drive/pipeline.h"
#include "fuzz.h"
#include <assert.h>
#include <stdlib.h>
#include <string.h>

enum { PLAN_LIMIT = 1 << 14 };

/* Many layers and many ranks are slow under sanitizers and no other than a few. */
static bool quick(Arena *a, const char *text, size_t n) {
    const Plan *p = plan_parse(a, diags_new(a), (PlanText){"plans/fuzz.yaml", text, n, NULL, 0});
    double ranks = 1;
    for (int i = 0; i < p->n_axes; i++) ranks *= (double)p->axes[i].size;
    int layers = p->layers_last - p->layers_first;
    return layers <= 3 && p->layers_last >= 0 && (ranks <= 1024 || ranks > 1e7);
}

/* Little enough to be executed? By what the records say, on every rank and in every repetition. */
static bool light(const Plan *p, const Trace *t) {
    const double most = 1.2e8; /* a block of a few layers, a tenth of a second */
    double flops = 0, times = (double)p->microbatches;
    if (p->pass == PASS_TRAIN) times *= (double)p->optimizer.steps;
    for (int i = 0; i < t->n_computes; i++) flops += (double)t->computes[i].flops + 1;
    return t->ranks <= 16 && flops * (double)t->ranks * times <= most;
}
static void execute(const char *text, size_t n) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    PipelineOptions o = {.execute = true, .threads = 1, .memory_limit = (int64_t)1 << 27};
    PipelineReport report;
    Trace *t = pipeline_run(a, d, (PlanText){"plans/fuzz.yaml", text, n, NULL, 0}, &o, &report);
    assert(t || diags_errors(d));
    assert(report.exit != 70);
    arena_free(a);
}

void fuzz_plan(const uint8_t *p, size_t n) {
    if (n > PLAN_LIMIT) return;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    char *text = arena_strndup(a, (const char *)p, n);
    if (!quick(a, text, n)) {
        arena_free(a);
        return;
    }
    PipelineOptions o = {.events = true};
    PipelineReport report;
    Trace *t = pipeline_run(a, d, (PlanText){"plans/fuzz.yaml", text, n, NULL, 0}, &o, &report);
    assert(t || diags_errors(d)); /* what is refused is refused with a reason */
    if (t) {
        size_t size;
        assert(trace_text(t, a, true, &size) && size);
        if (strcmp(t->verdict ? t->verdict : "", "invalid") && light(report.plan, t))
            execute(text, n);
    }
    char *out = NULL;
    size_t printed;
    FILE *f = open_memstream(&out, &printed);
    diags_print(d, f, false);
    fclose(f);
    free(out);
    arena_free(a);
}
