/* The rows that a run routes: the record of them, and the picture that is drawn of it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
/* cmocka.h needs the four above */
#include <cmocka.h>

#include "render/furniture/page_room.h"
#include "render/render.h"
#include "render/scene/scene.h"
#include "support/support.h"
#include "trace/trace_rows.h"
#include <math.h>
#include <stdlib.h>
#include <string.h>

#define MOE(model, data, mesh, rest)                                                               \
    "model: {preset: " model ", layers: 1, parts: [blocks]}\n"                                     \
    "data: {" data ", dtype: f32, seed: 5}\nmesh: {" mesh "}\nnames: torchtitan\n" rest
#define EP "plan:\n  layers.*.moe.experts: expert_parallel\n"

static const struct Case {
    const char *text;
    int64_t ranks, rows; /* of the run: tokens times experts per token, times copies of a token */
    int64_t group;       /* ranks that exchange rows; 0: nobody does */
} cases[] = {
    {MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 6", "ep: 4", "groups: {dp: ep}\n" EP), 4,
     48, 4},
    {MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 6", "edp: 2, ep: 2",
         "groups: {dp: edp*ep}\n" EP),
     4, 48, 2},
    {MOE("qwen3-30b-a3b, shrink: 32", "batch: 64, sequence: 2", "ep: 64", "groups: {dp: ep}\n" EP),
     64, 1024, 64},
    {MOE("qwen3-30b-a3b, shrink: 32", "batch: 16, sequence: 3", "ep: 16", "groups: {dp: ep}\n" EP),
     16, 384, 16},
};
enum { N_CASES = sizeof cases / sizeof *cases };

static PlanRun routed(Arena *a, const char *text) {
    PlanRun r = plan_run_with(a, "moe.yaml", text,
                              &(PipelineOptions){.execute = true, .numbers = true, .threads = 1});
    if (!r.t) run_print(&r);
    assert_non_null(r.t);
    return r;
}
static double sum(const TraceRouted *k, int64_t expert) {
    double all = 0;
    for (int64_t i = 0; i < k->n_rows; i++)
        all += expert < 0 || i % k->experts == expert ? k->rows[i] : 0;
    return all;
}

/* Every token asks for as many experts as it should, no row is lost or made on the way, and behind
 * the exchange an expert's rows are on one rank of the group. */
static void rows_are_those_of_the_run(void **state) {
    (void)state;
    for (int i = 0; i < N_CASES; i++) {
        Arena *a = arena_new();
        PlanRun r = routed(a, cases[i].text);
        assert_int_equal(r.t->n_routed, 2);
        const TraceRouted *from = &r.t->routed[0], *to = &r.t->routed[1];
        assert_string_equal(from->value, "layers.0.moe.list");
        assert_true(sum(from, -1) == (double)cases[i].rows);
        double own = 0;
        for (int64_t e = 0; e < from->experts; e++) assert_true(sum(from, e) == sum(to, e));
        for (int64_t e = 0; e < to->experts; e++)
            for (int64_t q = 0; q < r.t->ranks; q++) {
                int64_t holder = q % cases[i].group, each = to->experts / cases[i].group;
                double rows = to->rows[q * to->experts + e];
                if (e / each != holder) assert_true(rows == 0);
                own += rows;
            }
        assert_true(own == (double)cases[i].rows);
        size_t n; /* the record comes back from a file */
        const char *saved = trace_text(r.t, a, false, &n);
        Trace *back = trace_read(a, diags_new(a), "moe.trace.jsonl", saved, n);
        assert_non_null(back);
        assert_int_equal(back->n_routed, 2);
        assert_memory_equal(back->routed[1].rows, to->rows, sizeof *to->rows * (size_t)to->n_rows);
        arena_free(a);
    }
}

/* Pages, slides and columns are clean in all themes; what they say is in the record. */
/* The matrix names its ranks, all of them beside numbers, some beside squares, and says which of
 * the two it shows. */
static void matrix_is_named(const PlanRun *r, const RenderOptions *o, int64_t group) {
    Arena *a = arena_new();
    Scene *page[VIEW_MAX_PAGES];
    int n = render_pages(r->t, r->d, o, a, page), names = 0;
    bool sums = false, squares = false;
    assert_true(n >= 1);
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        if (m->kind != MARK_TEXT || m->group < 0) continue;
        if (strcmp(page[0]->groups[m->group].what, "matrix")) continue;
        const char *text = m->run[0].s;
        names += m->run[0].role == ROLE_SECOND && !text[strspn(text, "0123456789")];
        sums |= !strcmp(text, "received");
        squares |= strstr(text, "a square is") != NULL;
    }
    assert_true(sums != squares);
    assert_true(names >= (sums ? 2 * group : 6));
    arena_free(a);
}

static void pictures_are_clean(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"}, *const themes[] = {
                                                                              "light", "dark",
                                                                              "print"};
    for (int i = 0; i < N_CASES; i++) {
        Arena *a = arena_new();
        PlanRun r = routed(a, cases[i].text);
        const TraceRouted *k = &r.t->routed[0];
        RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
        for (int p = 0; p < 12; p++) {
            const char *report;
            o.preset = sizes[p % 4], o.theme = themes[p / 4];
            if (render_lint(r.t, r.d, &o, a, &report))
                fail_msg("%d %s %s: %s", i, o.preset, o.theme, report);
            matrix_is_named(&r, &o, cases[i].group);
        }
        size_t n;
        o.preset = o.theme = NULL;
        const char *text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
        assert_non_null(text);
        double rows = (double)cases[i].rows * (double)cases[i].group / (double)cases[i].ranks;
        const long long experts = (long long)k->experts,
                        groups = (long long)(cases[i].ranks / cases[i].group);
        const char *title =
            groups > 1 ? arena_printf(a, "MoE dispatch in one of %lld groups of ep: %.0f rows",
                                      groups, rows)
                       : arena_printf(a, "MoE dispatch: %.0f rows to %lld experts on %lld ranks",
                                      rows, experts, (long long)cases[i].group);
        if (strncmp(text, title, strlen(title))) fail_msg("%s\n%s", title, text);
        assert_null(strstr(text, "lost"));
        arena_free(a);
    }
}

/* Where ribbons cross both are seen, and none hides one that is narrower. */
static void ribbons_let_through(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = routed(a, cases[0].text);
    RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
    Scene *page[VIEW_MAX_PAGES];
    assert_true(render_pages(r.t, r.d, &o, a, page));
    double last = INFINITY;
    int n = 0;
    for (int i = 0; i < page[0]->n_marks; i++) {
        const Mark *m = &page[0]->marks[i];
        if (m->group < 0 || strcmp(page[0]->groups[m->group].what, "ribbon")) continue;
        assert_true(m->fill != ROLE_NONE && m->opacity > 0.4 && m->opacity < 0.8);
        double wide = m->pt[m->n - 1].y - m->pt[0].y;
        assert_true(wide <= last + 1e-9);
        last = wide, n++;
    }
    assert_true(n > 4);
    arena_free(a);
}

/* Experts among the ranks and their weights: clean pictures, and a rank has the experts that its
 * weights are. */
static void experts_among_ranks(void **state) {
    (void)state;
    static const char *const views[] = {"mesh", "shards", "overview"}, *const sizes[] = {
                                                                           "wide", "column",
                                                                           "slide", "a4"};
    for (int i = 0; i < N_CASES; i++) {
        Arena *a = arena_new();
        PlanRun r = plan_run_with(a, "moe.yaml", cases[i].text, &(PipelineOptions){0});
        assert_non_null(r.t);
        RenderOptions o = {.rank = cases[i].ranks - 1, .layer = -1};
        for (int v = 0; v < 12; v++) {
            const char *report;
            o.view = views[v / 4], o.preset = sizes[v % 4];
            o.rank = v / 4 == 2 ? -1 : cases[i].ranks - 1; /* an overview is of all */
            if (render_lint(r.t, r.d, &o, a, &report))
                fail_msg("%d %s %s: %s", i, o.view, o.preset, report);
        }
        o = (RenderOptions){.view = "mesh", .rank = cases[i].ranks - 1, .layer = -1};
        size_t n;
        const char *text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
        const TraceParam *w = find_param(r.t, "layers.0.moe.experts.w1");
        int64_t all = w->compute.global_shape[0], each = all / cases[i].group;
        const char *own =
            each == 1 ? arena_printf(a, "has E%lld", (long long)all - 1)
                      : arena_printf(a, "E%lld-%lld", (long long)(all - each), (long long)all - 1);
        if (!strstr(text, own)) fail_msg("%d: %s is not in\n%s", i, own, text);
        arena_free(a);
    }
}

/* The figures of a run with experts, times and the storyboard of the rows that were sent among
 * them.
 */
static void figures_of_a_run(void **state) {
    (void)state;
    static const char *const views[] = {"timeline", "memory", "storyboard"}, *const sizes[] = {
                                                                                 "wide", "column",
                                                                                 "slide", "a4"};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PipelineOptions how = {.execute = true, .numbers = true, .events = true, .threads = 1};
        PlanRun r = plan_run_with(a, "moe.yaml", cases[i].text, &how);
        assert_non_null(r.t);
        for (int v = 0; v < 12; v++) {
            RenderOptions o = {.view = views[v / 4], .preset = sizes[v % 4], .rank = -1};
            o.layer = -1;
            o.part = v / 4 == 2 ? "layers.0.moe.dispatched" : NULL;
            const char *report;
            size_t n;
            assert_non_null(render_text(r.t, r.d, &o, FORMAT_SVG, a, &n)); /* there is a figure */
            if (render_lint(r.t, r.d, &o, a, &report))
                fail_msg("%d %s %s: %s", i, o.view, o.preset, report);
        }
        RenderOptions o = {.view = "storyboard", .part = "layers.0.moe.dispatched", .rank = -1};
        o.layer = -1;
        size_t n;
        const char *text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
        const TraceCollective *c = find_collective(r.t, "all_to_all", o.part);
        for (int64_t k = 0; k < groups_size(&c->groups); k++)
            for (int64_t m = 0; m < groups_size(&c->groups); m++) {
                TracePair p = exchange_pair(trace_exchange(r.t, c->step), c, 0, k, m);
                const char *cell =
                    arena_printf(a, "%.0f =%lld→%lld", p.sent, (long long)k, (long long)m);
                if (!strstr(text, cell)) fail_msg("%d: %s is not in\n%s", i, cell, text);
            }
        arena_free(a);
    }
}

/* The matrix of the text is what sources ask of the experts' ranks, and a row that is missing
 * afterwards is told. */
static void numbers_are_the_records(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = routed(a, cases[0].text);
    RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
    const double *from = r.t->routed[0].rows;
    size_t n;
    const char *text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
    for (int i = 0; i < 4; i++) {
        Str row = str_new(a);
        str_addf(&row, "rank %d    ", i);
        for (int k = 0; k < 4; k++)
            str_addf(&row, "%6.0f", from[8 * i + 2 * k] + from[8 * i + 2 * k + 1]);
        if (!strstr(text, row.s)) fail_msg("%s is not in\n%s", row.s, text);
    }
    /* rows that stay are in the sum: `comms --pairs` calls those that leave "sent" */
    assert_null(strstr(text, " sent\n"));
    for (int64_t i = 0; i < 32; i++)
        if (r.t->routed[1].rows[i] > 1) {
            r.t->routed[1].rows[i]--;
            break;
        }
    text = render_text(r.t, r.d, &o, FORMAT_TEXT, a, &n);
    assert_non_null(strstr(text, "lost            1 row asked for is not there"));
    arena_free(a);
}

/* Where no number stands in the matrix: bands of rows, without a gap, hold each rank once, and
 * neither the first nor the last is empty. */
static void bands_are_right(Arena *a, const TraceRouted *k, int64_t n, const char *svg) {
    const char *at = strstr(svg, "Ranks by rows received");
    assert_non_null(at);
    int64_t told = 0, next = -1, last = 0;
    for (int band = 0; told < n; band++) {
        long lo, hi, ranks = 0;
        at = strchr(strstr(at, "<text"), '>');
        while (at && at[1] == '<') at = strchr(at + 1, '>');
        assert_non_null(at);
        if (sscanf(at, ">%ld to %ld<", &lo, &hi) != 2) hi = lo = strtol(at + 1, NULL, 10);
        if (next >= 0) assert_int_equal(lo, next);
        next = hi + 1;
        for (int64_t i = 0; i < n; i++)
            ranks += routed_on(k, i) >= (double)lo && routed_on(k, i) <= (double)hi;
        at = strstr(at, arena_printf(a, ">%ld<", ranks));
        if (!at) fail_msg("%ld ranks receive %ld to %ld", ranks, lo, hi);
        if (!band) assert_true(ranks > 0);
        told += ranks, last = ranks;
    }
    assert_int_equal(told, n);
    assert_true(last > 0);
}
/* And the five pairs that send most, by the lists before and after: no other sends more, and it is
 * said how many send as much. */
static void pairs_are_right(Arena *a, const PlanRun *r, int64_t n, const char *svg) {
    const TraceRouted *from = &r->t->routed[0], *to = &r->t->routed[1];
    double *sent = ARENA_ARRAY(a, double, n *n), least = 1e9;
    for (int64_t e = 0; e < to->experts; e++)
        for (int64_t i = 0; i < n; i++)
            for (int64_t k = 0; k < n; k++)
                if (to->rows[k * to->experts + e] > 0)
                    sent[i * n + k] += from->rows[i * from->experts + e];
    int shown = 0, more = 0;
    for (int64_t i = 0; i < n; i++)
        for (int64_t k = 0; k < n; k++) {
            double rows = sent[i * n + k];
            const char *tip = arena_printf(a, ">rank %lld to rank %lld: %.0f row%s<", (long long)i,
                                           (long long)k, rows, rows == 1 ? "" : "s");
            if (i == k || !strstr(svg, tip)) continue;
            shown++;
            least = rows < least ? rows : least;
        }
    if (!shown) { /* more than five send most */
        double most = 0;
        for (int64_t i = 0; i < n * n; i++)
            if (i / n != i % n) most = sent[i] > most ? sent[i] : most;
        for (int64_t i = 0; i < n * n; i++) more += i / n != i % n && sent[i] == most;
        assert_true(more > 5);
        const char *alike = arena_printf(a, ">%d pairs send %.0f row%s each, none more<", more,
                                         most, most == 1 ? "" : "s");
        if (!strstr(svg, alike)) fail_msg("%s", alike);
        return;
    }
    assert_int_equal(shown, 5);
    for (int64_t i = 0; i < n * n; i++) more += i / n != i % n && sent[i] >= least;
    const char *says = arena_printf(a, ">%d more send%s %.0f row%s, too<", more - 5,
                                    more == 6 ? "s" : "", least, least == 1 ? "" : "s");
    if ((strstr(svg, says) != NULL) != (more > 5)) fail_msg("%s", says);
    if (more <= 5) assert_null(strstr(svg, ", too<"));
    for (int64_t i = 0; i < n * n; i++)
        if (i / n != i % n && sent[i] > least) shown--;
    assert_true(shown > 0); /* those above the least are among the five */
}
static void many_ranks_are_summed_up(void **state) {
    (void)state;
    static const struct {
        int64_t ranks;
        const char *text;
    } many[] = {{32, MOE("qwen3-30b-a3b, shrink: 64", "batch: 32, sequence: 4", "ep: 32",
                         "groups: {dp: ep}\nmoe: {routing: ragged}\n" EP)},
                {32, MOE("qwen3-30b-a3b, shrink: 64", "batch: 32, sequence: 4", "ep: 32",
                         "groups: {dp: ep}\nmoe: {routing: hot_rank}\n" EP)},
                {32, MOE("qwen3-30b-a3b, shrink: 64", "batch: 32, sequence: 4", "ep: 32",
                         "groups: {dp: ep}\nmoe: {routing: balanced}\n" EP)},
                {64, MOE("qwen3-30b-a3b, shrink: 32", "batch: 64, sequence: 4", "ep: 64",
                         "groups: {dp: ep}\n" EP)}};
    static const char *const sizes[] = {"wide", "column", "a4", "slide"};
    for (size_t m = 0; m < sizeof many / sizeof *many; m++)
        for (int i = 0; i < 4; i++) {
            Arena *a = arena_new();
            PlanRun r = routed(a, many[m].text);
            RenderOptions o = {.view = "routing", .rank = -1, .layer = -1, .preset = sizes[i]};
            const char *report;
            size_t n;
            if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s: %s", o.preset, report);
            const char *svg = render_text(r.t, r.d, &o, FORMAT_SVG, a, &n);
            bands_are_right(a, &r.t->routed[1], many[m].ranks, svg);
            pairs_are_right(a, &r, many[m].ranks, svg);
            arena_free(a);
        }
}

/* What a capacity drops is told, by expert: 24 tokens of 2 sequences on 2 ranks, a third of which
 * asks for experts 0 and 1. */
static void drops_are_told(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r =
        routed(a, MOE("mixtral-8x7b, shrink: 64", "batch: 2, sequence: 24", "ep: 2",
                      "groups: {dp: ep}\nmoe: {routing: burst, capacity_factor: 1.0}\n" EP));
    int n;
    const TraceDispatch *d = trace_dispatches(r.t, a, &n);
    assert_true(n == 1 && d->asked == 96 && d->kept < 96);
    RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
    size_t size;
    const char *text = render_text(r.t, r.d, &o, FORMAT_SVG, a, &size);
    const char *says = arena_printf(a, "%.0f of 96 rows asked for are dropped", d->asked - d->kept);
    if (!strstr(text, says)) fail_msg("%s", says);
    assert_non_null(strstr(text, arena_printf(a, ">+%.0f over<", d->wanted[0] - 12)));
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    for (int i = 0; i < 4; i++) {
        const char *report;
        o.preset = sizes[i];
        if (render_lint(r.t, r.d, &o, a, &report)) fail_msg("%s: %s", o.preset, report);
    }
    arena_free(a);
}

/* ---- single tokens ---- */
/* Rows of a list by hand: rank, expert and token of each, in the order of the record. */
typedef struct {
    int64_t rank, expert, token;
    double weight;
} Row;
static Row *rows_of(Arena *a, const TraceRouted *k, int64_t *n) {
    Row *row = ARENA_ARRAY(a, Row, k->n_tokens + 1);
    *n = 0;
    for (int64_t i = 0; i < k->n_rows; i++)
        for (int64_t j = 0; j < (int64_t)k->rows[i]; j++, ++*n)
            row[*n] = (Row){i / k->experts, i % k->experts, (int64_t)k->tokens[*n],
                            *n < k->n_weights ? k->weights[*n] : -1};
    assert_int_equal(*n, k->n_tokens);
    return row;
}
/* Is the score of expert e among the `top` largest of its token, and of equal ones the first? */
static bool is_among(const TraceRouted *k, int64_t token, int64_t e, int64_t top) {
    const double *s = k->scores + token * k->experts;
    int64_t above = 0;
    for (int64_t i = 0; i < k->experts; i++) above += s[i] > s[e] || (s[i] == s[e] && i < e);
    return above < top;
}

static const struct Single {
    const char *text;
    int64_t tokens, top, members, room; /* of the group; 0: no capacity */
    bool sums;                          /* the weights of a token add up to 1 */
} singles[] = {
    {MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 6", "ep: 4", "groups: {dp: ep}\n" EP), 24,
     2, 4, 0, true},
    {MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 12", "ep: 4",
         "groups: {dp: ep}\nmoe: {routing: burst, capacity_factor: 1.25}\n" EP),
     48, 2, 4, 15, true},
    {MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 10", "dp: 2, cp: 2, tp: 2",
         "groups: {ep: dp*cp}\nmoe: {routing: hot_expert, capacity_factor: 1.5, capacity: "
         "local}\n" EP),
     40, 2, 4, 16, true},
    {MOE("qwen3-30b-a3b, shrink: 32", "batch: 8, sequence: 3", "ep: 8", "groups: {dp: ep}\n" EP),
     24, 8, 8, 0, true},
    {MOE("llama4-scout, shrink: 64", "batch: 2, sequence: 9", "ep: 2", "groups: {dp: ep}\n" EP), 18,
     1, 2, 0, false},
};
enum { N_SINGLES = sizeof singles / sizeof *singles };

/* The list as chosen names for each token the experts with its best scores; as sent, what room is
 * left for; as received, those rows, where their experts are. Weights are the router's. */
static void tokens_are_those_of_the_run(void **state) {
    (void)state;
    for (int i = 0; i < N_SINGLES; i++) {
        const struct Single *x = &singles[i];
        Arena *a = arena_new();
        PlanRun r = routed(a, x->text);
        const TraceRouted *list = &r.t->routed[0], *to = &r.t->routed[r.t->n_routed - 1],
                          *from = to;
        int64_t n, n_from, n_to;
        for (int k = 0; k < r.t->n_routed - 1; k++)
            if (!strcmp(r.t->routed[k].value, to->value)) from = &r.t->routed[k];
        Row *row = rows_of(a, list, &n), *sent = rows_of(a, from, &n_from),
            *got = rows_of(a, to, &n_to);
        assert_int_equal(list->n_scores, x->tokens * list->experts);
        for (int64_t k = 0; k < n; k++)
            if (!is_among(list, row[k].token, row[k].expert, x->top))
                fail_msg("%d: token %lld has not chosen expert %lld", i, (long long)row[k].token,
                         (long long)row[k].expert);
        assert_int_equal(n * x->members, x->tokens * x->top * r.t->ranks);
        assert_int_equal(n_from, n_to);
        for (int64_t k = 0; k < n_to; k++) { /* each is one that was sent */
            int found = 0;
            for (int64_t j = 0; j < n_from; j++)
                found += sent[j].token == got[k].token && sent[j].expert == got[k].expert;
            assert_int_equal(found, r.t->ranks / x->members);
        }
        for (int64_t k = 0; k < n && x->sums; k++) {
            double sum = 0;
            for (int64_t j = 0; j < n; j++)
                if (row[j].rank == row[k].rank && row[j].token == row[k].token)
                    sum += row[j].weight;
            if (fabs(sum - 1) > 1e-6) fail_msg("%d: weights of a token add up to %g", i, sum);
        }
        assert_int_equal(to->room, x->room);
        for (int64_t k = 0; x->room && k < to->n_rows; k++)
            assert_true(to->rows[k] <= (double)x->room);
        arena_free(a);
    }
}

static int tiles(const Scene *s, const char *within) {
    int n = 0;
    for (int i = 0; i < s->n_groups; i++) {
        const Group *g = &s->groups[i];
        if (strcmp(g->what, "token")) continue;
        n += !within || (g->parent >= 0 && !strcmp(s->groups[g->parent].id, within));
    }
    return n;
}
static void titled(const Scene *s, const char *want) {
    if (strcmp(s->title, want)) fail_msg("'%s' and not '%s'", s->title, want);
}
/* Seven frames follow the picture. Each has the tiles that the records have: what each rank sends,
 * what its experts compute, what goes back; clean in all sizes and themes. */
static void frames_show_each_token(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"}, *const themes[] = {
                                                                              "light", "dark",
                                                                              "print"};
    for (int i = 0; i < N_SINGLES; i++) {
        const struct Single *x = &singles[i];
        Arena *a = arena_new();
        PlanRun r = routed(a, x->text);
        const TraceRouted *list = &r.t->routed[0], *to = &r.t->routed[r.t->n_routed - 1];
        const TraceCollective *c = find_collective(r.t, "all_to_all", to->value);
        RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
        Scene *page[VIEW_MAX_PAGES];
        for (int p = 0; p < 12; p++) {
            const char *report;
            o.preset = sizes[p % 4], o.theme = themes[p / 4];
            if (render_lint(r.t, r.d, &o, a, &report))
                fail_msg("%d %s %s: %s", i, o.preset, o.theme, report);
        }
        o.preset = o.theme = NULL;
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 8);
        double sent = 0;
        for (int64_t m = 0; m < x->members; m++) {
            int64_t q = groups_member(&c->groups, 0, m);
            sent += routed_on(to, q);
            const char *panel = arena_printf(a, "rank-%lld", (long long)m);
            assert_int_equal(tiles(page[5], panel), (int64_t)routed_on(to, q));
            assert_int_equal(tiles(page[6], panel), (int64_t)routed_on(to, q));
        }
        assert_int_equal(tiles(page[1], NULL), x->tokens);
        assert_int_equal(tiles(page[3], NULL), x->tokens * x->top);
        assert_int_equal(tiles(page[4], NULL), (int64_t)sent);
        titled(page[1], arena_printf(a,
                                     "1 Scores: the router rates %lld experts for each of %lld "
                                     "tokens",
                                     (long long)list->experts, (long long)x->tokens));
        titled(page[2],
               arena_printf(a, "2 Top-%lld: %lld tokens ask for %lld rows", (long long)x->top,
                            (long long)x->tokens, (long long)(x->tokens * x->top)));
        if (sent < (double)(x->tokens * x->top))
            titled(page[3],
                   arena_printf(a, "3 Permute: %.0f rows sorted by expert, %.0f find no room", sent,
                                (double)(x->tokens * x->top) - sent));
        arena_free(a);
    }
}

/* A page's tiles: the height that all of them have (-1 where they differ or are no whole number),
 * and how much of its height the fullest panel uses. */
typedef struct {
    double low;                         /* the lower end of its panels */
    double tile, full, panels[8], left; /* how near tiles come to the left edge of their panel */
    int n;
} Filled;
static Filled filled(const Scene *s) {
    Filled f = {.left = INFINITY};
    double top = 0, h = 0;
    for (int i = 0; i < s->n_marks; i++) {
        const Mark *m = &s->marks[i];
        const char *what = m->group < 0 ? "" : s->groups[m->group].what;
        if (m->kind != MARK_RECT) continue;
        if (!strcmp(what, "rank") && m->dash == NULL) top = m->y, h = m->h, f.panels[f.n++ % 8] = h;
        f.low = fmax(f.low, top + h);
        if (strcmp(what, "token")) continue;
        f.left = fmin(f.left, m->x - s->groups[s->groups[m->group].parent].x);
        if (f.tile > 0 && f.tile != m->h) f.tile = -1;
        if (!f.tile) f.tile = m->h == floor(m->h) ? m->h : -1;
        f.full = fmax(f.full, (m->y + m->h - top) / h);
    }
    return f;
}
/* Tiles are as large as the fullest panel of any frame lets them be, in all frames alike; what is
 * in panels whose height scores of many experts give stays no tiny corner of them. */
static void tiles_fill_their_panels(void **state) {
    (void)state;
    static const char *const sizes[] = {"wide", "column", "slide", "a4"};
    const char *const text[] = {singles[0].text,
                                MOE("qwen3-30b-a3b, shrink: 32", "batch: 4, sequence: 2", "ep: 4",
                                    "groups: {dp: ep}\n" EP)};
    for (int k = 0; k < 2; k++) {
        Arena *a = arena_new();
        PlanRun r = routed(a, text[k]);
        RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
        for (int p = 0; p < 4; p++) {
            Scene *page[VIEW_MAX_PAGES];
            o.preset = sizes[p];
            assert_int_equal(render_pages(r.t, r.d, &o, a, page), 8);
            const Filled first = filled(page[3]);
            double full = 0;
            for (int i = 3; i < 7; i++) {
                const Filled f = filled(page[i]);
                full = fmax(full, f.full);
                if (f.tile != first.tile || f.tile < 17)
                    fail_msg("%d %s page %d: tiles %g high", k, sizes[p], i + 1, f.tile);
                if (f.left < 25) /* those of a second line stand under the first one's, no word */
                    fail_msg("%d %s page %d: a tile stands where words do", k, sizes[p], i + 1);
                assert_int_equal(f.n, first.n);
                assert_memory_equal(f.panels, first.panels, sizeof f.panels);
            }
            if (!strcmp(o.preset, "a4") && first.low < 0.78 * page_room(PRESET_A4))
                fail_msg("%d: panels end at %g of a sheet", k, first.low);
            if (first.tile < 30 && full < 0.8)
                fail_msg("%d %s: tiles %g high fill %.2f of the fullest panel", k, sizes[p],
                         first.tile, full);
        }
        arena_free(a);
    }
}

/* A cell of the exchange's storyboard names the tokens that go from a rank to another: those of its
 * list whose experts are there. */
static void cells_name_their_tokens(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = routed(a, singles[0].text);
    RenderOptions o = {.view = "storyboard", .part = "layers.0.moe.dispatched", .rank = -1};
    o.layer = -1;
    Scene *page[VIEW_MAX_PAGES];
    int64_t n;
    const Row *row = rows_of(a, &r.t->routed[0], &n);
    assert_true(render_pages(r.t, r.d, &o, a, page) >= 1);
    for (int64_t from = 0; from < 4; from++)
        for (int64_t to = 0; to < 4; to++) {
            Str want = str_new(a);
            int64_t last = -1;
            for (int64_t i = 0; i < n; i++) { /* two experts to a rank */
                if (row[i].rank != from || row[i].expert / 2 != to) continue;
                if (row[i].expert != last)
                    str_addf(&want, "%s E%lld:", last < 0 ? "; tokens of" : ",",
                             (long long)row[i].expert);
                str_addf(&want, " %lld", (long long)row[i].token);
                last = row[i].expert;
            }
            const char *pair = arena_printf(a, " of rank %lld for rank %lld%s", (long long)from,
                                            (long long)to, want.s);
            bool found = false;
            for (int i = 0; i < page[0]->n_groups && !found; i++)
                found = page[0]->groups[i].tip && strstr(page[0]->groups[i].tip, pair);
            if (!found) fail_msg("no cell says '%s'", pair);
        }
    arena_free(a);
}

/* A row that does not arrive is told by the frames, and its tile is not among its expert's. */
static void a_lost_row_is_told(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = routed(a, singles[0].text);
    TraceRouted *to = &r.t->routed[r.t->n_routed - 1];
    RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
    Scene *page[VIEW_MAX_PAGES];
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 8);
    int before = tiles(page[5], NULL);
    assert_non_null(strstr(page[5]->desc, "all 48 rows that were sent arrived, and as many came "
                                          "back from each rank"));
    to->tokens[0] = 1e6; /* another token's row in its place */
    assert_int_equal(render_pages(r.t, r.d, &o, a, page), 8);
    assert_int_equal(tiles(page[5], NULL), before - 1);
    assert_non_null(strstr(page[5]->desc, "1 of 48 rows that were sent did not arrive"));
    arena_free(a);
}

/* Many ranks, and many tokens of a rank, have the picture without tiles. */
static void too_many_have_no_tiles(void **state) {
    (void)state;
    static const char *const many[] = {
        MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 33", "ep: 4", "groups: {dp: ep}\n" EP),
        MOE("qwen3-30b-a3b, shrink: 32", "batch: 16, sequence: 3", "ep: 16",
            "groups: {dp: ep}\n" EP)};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PlanRun r = routed(a, many[i]);
        RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
        Scene *page[VIEW_MAX_PAGES];
        assert_int_equal(render_pages(r.t, r.d, &o, a, page), 1);
        assert_int_equal(tiles(page[0], NULL), 0);
        arena_free(a);
    }
}

/* Without experts, without an exchange and without a run there is nothing to draw, and it is said.
 */
static void nothing_to_draw_is_said(void **state) {
    (void)state;
    static const struct {
        const char *text, *says;
        bool run;
    } none[] = {
        {"model: {kind: mlp, sizes: [4, 8, 4]}\ndata: {rows: 4}\nmesh: {tp: 2}\n"
         "plan: {net1: colwise, net2: rowwise}\n",
         "says nothing of rows and experts", true},
        {MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 6", "tp: 2",
             "plan:\n  layers.*.moe.experts: {style: expert_parallel, axis: tp}\n"),
         "no all-to-all brings rows to experts", true},
        {MOE("mixtral-8x7b, shrink: 64", "batch: 4, sequence: 6", "ep: 4", "groups: {dp: ep}\n" EP),
         "nothing was run, and only a run knows", false}};
    for (int i = 0; i < 3; i++) {
        Arena *a = arena_new();
        PipelineOptions how = {.execute = none[i].run, .numbers = none[i].run, .threads = 1};
        PlanRun r = plan_run_with(a, "none.yaml", none[i].text, &how);
        if (!r.t) run_print(&r);
        assert_non_null(r.t);
        RenderOptions o = {.view = "routing", .rank = -1, .layer = -1};
        Diags *d = diags_new(a);
        size_t n;
        assert_null(render_text(r.t, d, &o, FORMAT_SVG, a, &n));
        assert_int_equal(d->n, 1);
        if (!strstr(d->item[0].message, none[i].says)) fail_msg("%d: %s", i, d->item[0].message);
        arena_free(a);
    }
}

/* The weights of all experts in one tensor have their own names in blocks, and shards tell them. */
static void expert_weights_have_names(void **state) {
    (void)state;
    Arena *a = arena_new();
    PlanRun r = plan_run_with(a, "moe.yaml", cases[0].text, &(PipelineOptions){0});
    assert_non_null(r.t);
    RenderOptions o = {.view = "block", .rank = -1, .layer = -1};
    size_t n;
    const char *text = render_text(r.t, r.d, &o, FORMAT_SVG, a, &n);
    assert_non_null(strstr(text, ">w1<"));
    assert_non_null(strstr(text, ">w2<"));
    assert_null(strstr(text, ">experts<"));
    o.view = "shards";
    text = render_text(r.t, r.d, &o, FORMAT_SVG, a, &n);
    assert_non_null(strstr(text, ">Experts<"));
    assert_non_null(strstr(text, ">w1, w3<"));
    assert_null(strstr(text, "Of all experts in one: "));
    arena_free(a);
}

/* One row is a row, in titles, labels and tooltips of all pages. */
static void one_row_is_a_row(void **state) {
    (void)state;
    static const char *const runs[] = {
        MOE("mixtral-8x7b, shrink: 256", "batch: 8, sequence: 4", "dp: 8",
            "groups: {ep: dp}\nmoe: {routing: ragged}\n" EP),
        MOE("llama4-scout, shrink: 64", "batch: 1, sequence: 1", "dp: 2", "groups: {ep: dp}\n" EP)};
    for (int i = 0; i < 2; i++) {
        Arena *a = arena_new();
        PlanRun r = routed(a, runs[i]);
        int met = 0;
        for (int page = 1; page <= 8; page++) {
            RenderOptions o = {.view = "routing", .rank = -1, .layer = -1, .page = page};
            size_t n;
            const char *text = render_text(r.t, r.d, &o, FORMAT_SVG, a, &n);
            assert_non_null(text);
            for (const char *at = text; (at = strstr(at, "1 row")); at++) {
                if (at > text && at[-1] >= '.' && at[-1] <= '9') continue;
                if (at[5] == 's') fail_msg("run %d, page %d: '%.40s'", i, page, at);
                met++;
            }
        }
        assert_true(met > 0);
        arena_free(a);
    }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_are_those_of_the_run),
        cmocka_unit_test(pictures_are_clean),
        cmocka_unit_test(ribbons_let_through),
        cmocka_unit_test(numbers_are_the_records),
        cmocka_unit_test(nothing_to_draw_is_said),
        cmocka_unit_test(expert_weights_have_names),
        cmocka_unit_test(experts_among_ranks),
        cmocka_unit_test(figures_of_a_run),
        cmocka_unit_test(drops_are_told),
        cmocka_unit_test(many_ranks_are_summed_up),
        cmocka_unit_test(tokens_are_those_of_the_run),
        cmocka_unit_test(frames_show_each_token),
        cmocka_unit_test(tiles_fill_their_panels),
        cmocka_unit_test(a_lost_row_is_told),
        cmocka_unit_test(cells_name_their_tokens),
        cmocka_unit_test(too_many_have_no_tiles),
        cmocka_unit_test(one_row_is_a_row),
    };
    int rc = cmocka_run_group_tests(tests, NULL, NULL);
    render_cleanup();
    return rc;
}
