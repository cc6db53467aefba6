/* A kind of move is whole: what the planner may insert has all its rows, in the table of kinds, in
 * that of records' words, and in those of the command line and of figures. A new kind without one
 * of them fails here, and not in somebody's picture. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "base/file.h"
#include "cli/words.h"
#include "cost/cost.h"
#include "layout/redistribute.h"
#include "ops/op.h"
#include "render/storyboard/story.h"
#include "support/support.h"
#include "trace/collectives.h"
#include <string.h>
#include <unistd.h>

/* Who needs others sends, who sends needs others, and a sum is no exchange. */
static void test_kinds(void **state) {
    (void)state;
    for (int i = 0; i < MOVE_KINDS; i++) {
        MoveKind k = (MoveKind)i;
        assert_non_null(move_name(k));
        assert_int_equal(move_communicates(k), move_source(k) != FROM_OWN);
        assert_true(!move_views(k) || move_source(k) == FROM_OWN);
        assert_int_equal(move_sends(k) == SENDS_PIECES, move_gathers(k) && move_cuts(k));
        assert_int_equal(move_sends(k) == SENDS_PART, move_reduces(k) && move_cuts(k));
        bool from_place = move_sends(k) == SENDS_ONCE || move_sends(k) == SENDS_ON;
        assert_int_equal(from_place, move_relocates(k));
        assert_int_equal(move_sends(k) == SENDS_BLOCK, move_gathers(k) && !move_cuts(k));
    }
}
static const Term *term_named(const char *name) {
    for (const Term *t = cli_terms; t->name; t++)
        if (!strcmp(t->name, name)) return t;
    return NULL;
}
/* A trace of one collective over two ranks. */
static Trace *trace_of(Arena *a, const char *op) {
    Trace *t = trace_new(a);
    t->ranks = 2;
    *ARENA_PUSH(a, t->collectives, t->n_collectives, t->cap_collectives) =
        (TraceCollective){.op = op,
                          .axis = "tp",
                          .axes = "tp",
                          .groups = {1, 0, {2}, {1}, {0}, {0}, 0},
                          .value = "x",
                          .value_step = -1,
                          .subject = {OF_ITSELF, "x"},
                          .pass = PHASE_FORWARD,
                          .layer = -1,
                          .dim = -1};
    return t;
}
static const char *name_in_time(Arena *a, const char *op) {
    Trace *t = trace_of(a, op);
    static const Hardware h = {.name = "test",
                               .flops_f32 = 1,
                               .memory_bandwidth = 1,
                               .intra_bandwidth = 1,
                               .inter_bandwidth = 1,
                               .gpus_per_node = 8};
    cost_simulate(t, &h);
    return t->n_events ? t->events[0].name : "";
}
static void test_words(void **state) {
    (void)state;
    for (int i = 0; i < MOVE_KINDS; i++) {
        if (!move_communicates((MoveKind)i)) continue;
        Arena *a = arena_new();
        const char *op = move_name((MoveKind)i);
        const CollWord *w = coll_word(op);
        const Term *term = term_named(op);
        if (!w || !term || term->kind != TERM_COLLECTIVE)
            fail_msg("%s: no row in %s", op, w ? "cli/terms.c" : "trace/collectives.c");
        /* explain AllGather; or AG, as pictures have it */
        assert_non_null(strstr(term->also, w->name));
        assert_non_null(strstr(term->also, w->code));
        assert_string_equal(name_in_time(a, op), arena_printf(a, "%s x", w->code));
        if (move_relocates((MoveKind)i)) { /* from one to one: no ring goes round */
            arena_free(a);
            continue;
        }
        Diags *d = diags_new(a);
        RenderOptions o = {.part = op};
        Story s = {0};
        ViewCall call = {.t = trace_of(a, op), .d = d, .o = &o, .arena = a};
        if (!story_prepare(&call, &s)) fail_msg("%s: no ring in the storyboard", op);
        arena_free(a);
    }
}
static void known(Cli *c, const char *word, const char *where) {
    if (!words_know(c, word)) fail_msg("explain does not know '%s' of %s", word, where);
}
/* What a box of a figure says, forward or backward, and what legends and captions say of it,
 * `explain` knows. */
static void test_words_of_figures(void **state) {
    (void)state;
    static const char *const captions[] = {"partial sum",
                                           "pending",
                                           "collective",
                                           "local move",
                                           "identity",
                                           "weight gradient",
                                           "kept for backward",
                                           "again",
                                           "exposed",
                                           "hidden",
                                           "zigzag",
                                           "striped",
                                           "rows",
                                           "in flight",
                                           "cotangent",
                                           "lse",
                                           "uses",
                                           "dx",
                                           "′",
                                           "over V",
                                           "hop",
                                           "micro-batch"},
                             *const plan[] = {"plans/22-llama3-8b-dp2-cp2-tp2-backward.yaml",
                                              "plans/30-mixtral-8x7b-ep-dp-cp.yaml",
                                              "plans/34-llama4-scout-torchtitan.yaml",
                                              "plans/36-mixtral-8x7b-capacity.yaml",
                                              "plans/41-llama3-8b-ring4-zigzag.yaml",
                                              "plans/48-llama3.2-1b-pp2-tied.yaml",
                                              "plans/54-deepseek-v3-latent-ring4.yaml",
                                              "plans/56-gpt-oss-20b-tp2-ep2.yaml"};
    Arena *a = arena_new();
    Cli c = {.arena = a, .d = diags_new(a)};
    for (size_t i = 0; i < sizeof captions / sizeof *captions; i++)
        known(&c, captions[i], "legends and captions");
    for (int i = 0; i < n_ops; i++)
        if (op_list[i]->label) known(&c, op_list[i]->label, "the table of ops");
    for (size_t i = 0; i < sizeof plan / sizeof *plan; i++) {
        size_t n;
        const char *text = file_read(a, c.d, plan[i], 1 << 20, (Loc){0}, &n);
        assert_non_null(text);
        PlanRun r = plan_run_with(a, plan[i], text, &(PipelineOptions){.threads = 1});
        assert_non_null(r.t);
        for (int k = 0; k < r.t->n_computes; k++) {
            const char *label = r.t->computes[k].label;
            if (!label || !*label) continue;
            known(&c, label, plan[i]);
            known(&c, arena_printf(a, "%s′", label), plan[i]);
        }
    }
    arena_free(a);
}
/* The frames of a planted step end as the step does: each rank with the chunk, or each place with
 * the block, that the run gives it; what frames do not show is said, and no frame says "done". */
static void stories_end_as_planted(void **state) {
    (void)state;
    static const struct {
        const char *plan, *says;
        int first; /* chunk that the first rank ends with, of an exchange for whom; -1: as due */
    } row[] = {
        {"plans/bugs/04-wrong-block.yaml", "rank 0 ends with c1, which is due to rank 1", 1},
        {"plans/bugs/18-fsdp-wrong-shard.yaml", "rank 0 ends with c1, which is due to rank 1", 1},
        {"plans/bugs/65-ulysses-heads-of-another-rank.yaml",
         "rank 0 ends with what is meant for rank 2", 1},
        {"plans/bugs/73-zero-gradient-averaged-twice.yaml", "without the mistake", -1},
        {"plans/bugs/61-dv-of-a-hop-not-added.yaml", "without the mistake", -1},
        {"plans/bugs/52-a-rank-without-tokens-skips.yaml", "without the mistake", -1},
        {"plans/bugs/12-gradient-over-the-wrong-group.yaml", "due is all_reduce(dp), sum", -1},
        {"plans/bugs/06-reduced-twice.yaml", "the frames show it once", -1}};
    if (access("plans", F_OK) != 0) skip();
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        Arena *a = arena_new();
        size_t n;
        const char *text = file_read(a, diags_new(a), row[i].plan, 1 << 20, (Loc){0}, &n);
        PlanRun r = plan_run_with(a, row[i].plan, text, &(PipelineOptions){.events = true});
        RenderOptions o = {.view = "storyboard", .rank = -1, .layer = -1};
        ViewCall c = {.t = r.t, .o = &o, .arena = a, .d = r.d};
        Story s;
        assert_non_null(r.t);
        assert_true(story_prepare(&c, &s));
        const char *note = s.wrong->note[wrong_number(s.wrong, s.step) - 1].text;
        if (!strstr(note, row[i].says))
            fail_msg("%s: no '%s' in '%s'", row[i].plan, row[i].says, note);
        const Ring *end = &s.frame[s.frames - 1];
        const bool without = !strcmp(row[i].says, "without the mistake");
        assert_int_equal(strstr(story_frame(&s, end), "done") == NULL, without);
        for (int chunk = 0; chunk < s.ring.n_shown && row[i].first >= 0; chunk++)
            for (int k = 0; k < s.ring.n_shown; k++) {
                const RingCell *x = &end->cell[chunk][k];
                const int due = (k + row[i].first) % s.ring.n;
                if (s.ring.kind == RING_EXCHANGE) assert_int_equal(x->to, due);
                else assert_int_equal(x->done, chunk == due);
                assert_int_equal(x->astray, x->done);
            }
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_kinds), cmocka_unit_test(test_words),
                                       cmocka_unit_test(test_words_of_figures),
                                       cmocka_unit_test(stories_end_as_planted)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
