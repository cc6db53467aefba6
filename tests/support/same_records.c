/* See same_records.h. */
#include "same_records.h"
#include "child.h"
#include "mpi.h"
#include "random_run.h"
#include "support.h"
#include "wire_plans.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

enum { MOST_RANKS = 16, MOST_DRAWN = 8 };

const char *records_as_virtual(Arena *a, const char *path, const char *backend) {
    const char *name = arena_printf(a, "\"backend\":\"%s\"", backend);
    size_t n, long_name = strlen(name);
    const char *text = child_read(a, path, &n);
    Str s = str_new(a);
    assert_non_null(text);
    for (size_t k; *text; text += k) {
        k = strcspn(text, "\n");
        k += text[k] == '\n';
        const char *line = arena_strndup(a, text, k), *at = strstr(line, name);
        if (strstr(line, "\"type\":\"measured\"")) continue;
        if (at) str_addn(&s, line, (size_t)(at - line));
        if (at) str_add(&s, "\"backend\":\"virtual\"");
        str_add(&s, at ? at + long_name : line);
    }
    return s.s;
}
void same_records(const SameRecords *by, const char *plans, int ranks) {
    if (!*plans) return;
    Arena *a = arena_new();
    const char *v = temp_path(a, "virtual"), *m = temp_path(a, "real"), *e = temp_path(a, "err"),
               *count = by->counts ? arena_printf(a, " -n %d", ranks) : "";
    int want = line_code(v, "/dev/null", "%s check %s --format jsonl", by->program, plans);
    mpi_expect(line_code(m, e, "%s%s %s check %s %s --format jsonl", by->before, count, by->program,
                         plans, by->words),
               want, e, "");
    size_t n;
    assert_true(!strcmp(child_read(a, v, &n), records_as_virtual(a, m, by->backend)));
    assert_true(n > 1000);
    arena_free(a);
}
static void same_lists(const SameRecords *by, const Str *by_ranks) {
    for (int k = 2; k <= MOST_RANKS; k++) same_records(by, by_ranks[k].s, k);
}
int same_folder(const SameRecords *by, const char *pattern) {
    Arena *a = arena_new();
    Str by_ranks[MOST_RANKS + 1];
    int ran = 0, at = 0;
    const bool all = getenv("SHARDPROOF_SOAK") || getenv("SHARDPROOF_SAMPLE");
    for (int k = 0; k <= MOST_RANKS; k++) by_ranks[k] = str_new(a);
    if (!all) print_message("every second plan; the others are the other engine's\n");
    for (PlanFiles f = plan_files(pattern, "plans"); plan_files_next(&f);) {
        if (at++ % 2 != by->turn && !all) continue;
        PlanRun r = plan_run(f.a, f.path, f.text, false);
        int64_t ranks = r.t ? r.t->ranks : 0;
        if (ranks < 2 || ranks > MOST_RANKS) {
            print_message("left out: %s, %s\n", f.path,
                          !r.t        ? "it does not pass"
                          : ranks < 2 ? "one rank"
                                      : "too many ranks for one machine");
            continue;
        }
        str_addf(&by_ranks[ranks], " %s", f.path);
        ran++;
    }
    same_lists(by, by_ranks);
    arena_free(a);
    return ran;
}
void same_other_plans(const SameRecords *by) {
    Arena *a = arena_new();
    Str by_ranks[MOST_RANKS + 1];
    for (int k = 0; k <= MOST_RANKS; k++) by_ranks[k] = str_new(a);
    for (size_t i = 0; i < sizeof wire_plans / sizeof *wire_plans; i++) {
        const char *file = temp_path(a, arena_printf(a, "other%d.yaml", (int)i));
        child_write(file, wire_plans[i].text);
        str_addf(&by_ranks[wire_plans[i].ranks], " %s", file);
    }
    same_lists(by, by_ranks);
    arena_free(a);
}
int same_random_plans(const SameRecords *by, int plans) {
    Arena *a = arena_new();
    Str by_ranks[MOST_RANKS + 1];
    int ran = 0, piped = 0, of[MOST_RANKS + 1] = {0};
    for (int k = 0; k <= MOST_RANKS; k++) by_ranks[k] = str_new(a);
    for (uint64_t seed = 90000; ran < plans; seed++) {
        RandomPlan g;
        const char *text = random_plan(a, seed, &g);
        PlanRun r = plan_run(a, "random.yaml", text, false);
        int64_t ranks = r.t ? r.t->ranks : 0, most = ran % 20 ? 4 : MOST_DRAWN; /* few cores */
        const char *f = ranks > 1 && ranks <= most ? random_fault(a, &g.r, r.t) : NULL;
        if (!f) continue;
        of[ranks]++;
        piped += g.schedule != NULL;
        for (int wrong = 0; wrong < 2; wrong++) {
            const char *file = temp_path(a, arena_printf(a, "%d%s.yaml", ran, wrong ? "w" : ""));
            child_write(file, wrong ? arena_printf(a, "%s%s", text, f) : text);
            str_addf(&by_ranks[ranks], " %s", file);
        }
        ran++;
    }
    for (int k = 2; k <= MOST_RANKS; k++)
        if (of[k]) print_message("%d plans on %d ranks\n", of[k], k);
    same_lists(by, by_ranks);
    print_message("%d of them are pipelines\n", piped);
    arena_free(a);
    return piped;
}
