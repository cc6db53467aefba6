/* The JSON documents of `run` and `check`. Refuses to say anything that reports and records do not
 * say. */
#include "cli/document.h"
#include "cli/find.h"
#include "trace/trace_times.h"
#include <string.h>

static void put_checks(const Cli *c, JsonWriter *w, const Loaded *l) {
    const Trace *t = l->trace;
    json_str(w, "verdict", t->verdict);
    json_int(w, "pass", t->n_pass);
    json_int(w, "suspect", t->n_suspect);
    json_int(w, "fail", t->n_fail);
    json_int(w, "structure", summary_structure(t));
    json_str(w, "check", !t->executed ? NULL : l->report.quick ? "quick" : "full");
    json_str(w, "worst", t->worst_value);
    json_real(w, "used", t->worst_used);
    json_str(w, "first_wrong", t->first_wrong);
    json_str(w, "cause", summary_cause(t, c->o.strict));
    document_texts(w, "undeclared", t->undeclared, t->n_undeclared);
    document_texts(w, "unasked", t->unasked, t->n_unasked);
    TraceProjected q = trace_projected(t);
    if (q.notice) {
        json_open(w, "projected", '{');
        json_int(w, "products", q.products);
        json_int(w, "sums", q.sums);
        json_int(w, "projections", q.projections);
        json_int(w, "seed", l->report.plan ? (int64_t)l->report.plan->seed : 0);
        json_str(w, "value", q.notice->value);
        json_real(w, "notice", q.notice->notice);
        json_close(w, '}');
    }
    if (q.partly) {
        json_open(w, "in_float64", '{');
        json_int(w, "ops", q.partly);
        json_int(w, "asked", q.asked);
        json_int(w, "numbers", q.numbers);
        json_close(w, '}');
    }
    if (l->report.end_to_end_worst) {
        json_open(w, "end_to_end", '{');
        json_str(w, "value", l->report.end_to_end_worst);
        json_real(w, "off", l->report.end_to_end_rel);
        json_real(w, "bound", l->report.end_to_end_bound);
        json_close(w, '}');
    }
}
/* What came of --against: names under each result; nothing without it. */
static void put_against(JsonWriter *w, const Trace *t) {
    static const char *const result[][2] = {{"equal", "equal"},
                                            {"different", "different"},
                                            {"not_read", "not read"},
                                            {"only_in_file", "only in the file"},
                                            {"only_in_model", "only in the model"}};
    if (!t->n_against) return;
    json_open(w, "against", '{');
    for (size_t k = 0; k < sizeof result / sizeof *result; k++) {
        json_open(w, result[k][0], '[');
        for (int i = 0; i < t->n_against; i++)
            if (!strcmp(t->against[i].result, result[k][1])) json_str(w, NULL, t->against[i].name);
        json_close(w, ']');
    }
    json_close(w, '}');
}
/* Modelled seconds, as the report says them: on the ranks that the others wait for. */
static void put_time(JsonWriter *w, const Trace *t, Arena *a) {
    bool busiest;
    const RankSet *slowest = trace_slowest(t, &busiest);
    if (!slowest) {
        json_null(w, "time");
        return;
    }
    TraceTimes s = trace_times_of(t, rankset_first(slowest));
    json_open(w, "time", '{');
    json_raw(w, "ranks", trace_ranks_json(slowest, a));
    json_real(w, "span", s.span);
    json_real(w, "compute", s.compute);
    json_real(w, "exposed", s.exposed);
    json_real(w, "waiting", s.waiting);
    json_real(w, "hidden", s.hidden);
    json_real(w, "beside", s.beside);
    json_real(w, "comm", s.comm);
    json_str(w, "hardware", t->hardware);
    json_close(w, '}');
}
/* Bytes at the peak of the rank that has the highest, and the categories that add up to it. */
static void put_memory(JsonWriter *w, const Trace *t, Arena *a) {
    json_open(w, "memory", '{');
    if (t->n_memory) json_int(w, "peak", lookup_peak(t, NULL));
    else json_null(w, "peak");
    json_open(w, "categories", '{');
    for (const char *const *k = lookup_categories(t, a); *k; k++)
        json_int(w, *k, lookup_peak(t, *k));
    json_close(w, '}');
    json_close(w, '}');
}
static void put_mesh(JsonWriter *w, const Trace *t) {
    json_open(w, "mesh", '{');
    for (int i = 0; i < t->n_axes; i++) json_int(w, t->axes[i].name, t->axes[i].size);
    json_close(w, '}');
    json_int(w, "ranks", t->ranks);
}
static void put_plan(const Cli *c, JsonWriter *w, const Loaded *l) {
    const Trace *t = l->trace;
    json_str(w, "file", l->path);
    json_str(w, "result", l->exit ? "FAIL" : "ok");
    json_int(w, "exit", l->exit);
    json_open(w, "diagnostics", '[');
    document_diagnostics(w, l->d);
    json_close(w, ']');
    if (!t) return;
    json_str(w, "plan", t->plan);
    put_mesh(w, t);
    put_checks(c, w, l);
    put_against(w, t);
    put_time(w, t, c->arena);
    put_memory(w, t, c->arena);
    Table comms = table_comms(c, t);
    document_rows(w, "collectives", &comms);
}

void document_run(Cli *c, const Loaded *l, const char *const *files, int n) {
    JsonWriter w = document_head(c);
    put_plan(c, &w, l);
    if (l->trace) {
        Table shapes = table_shapes(c, l->trace);
        document_rows(&w, "shapes", &shapes);
    }
    document_texts(&w, "files", files, n);
    document_tail(c, &w);
}
const char *document_plan(const Cli *c, const Loaded *l, Arena *into) {
    JsonWriter w = json_writer(into);
    json_open(&w, NULL, '{');
    put_plan(c, &w, l);
    json_close(&w, '}');
    return w.s.s;
}
void document_check(Cli *c, const char *const *plan, int n, int failed) {
    JsonWriter w = document_head(c);
    json_open(&w, "diagnostics", '[');
    document_diagnostics(&w, c->left_out);
    json_close(&w, ']');
    json_int(&w, "failed", failed);
    json_open(&w, "plans", '[');
    for (int i = 0; i < n; i++) {
        json_break(&w);
        json_raw(&w, NULL, plan[i]);
    }
    json_close(&w, ']');
    document_tail(c, &w);
}
