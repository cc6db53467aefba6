/* `explain WORD` knows each word that the program itself uses as a term: what steps do, kinds of
 * values, places, passes, categories of memory, styles, faults, codes, and what reports say. */
#include "support/child.h"
#include "support/sandbox.h"
#include "support/support.h"
#include "base/text.h"
#include "cli/find.h"
#include "cli/words.h"
#include "lower/program.h"
#include <glob.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

/* Words, each once. */
typedef struct {
    Arena *a;
    const char **word;
    int n, cap;
} Seen;
/* What stands before a bracket; "linear_backward" is said of linear. */
static void see(Seen *s, const char *word) {
    if (!word || !*word) return;
    size_t n = strcspn(word, "("), back = text_before(word, "_backward");
    if (n > 1 && word[n - 1] == ' ') n--; /* "RMSNorm (1 + w)" */
    const char *bare = arena_strndup(s->a, word, back ? back : n);
    for (int i = 0; i < s->n; i++)
        if (!strcmp(s->word[i], bare)) return;
    *ARENA_PUSH(s->a, s->word, s->n, s->cap) = bare;
}
static void see_shape(Seen *s, const TraceShape *x) {
    for (int i = 0; i < x->n_places; i++) /* "partial at(0,3)" */
        see(s, arena_strndup(s->a, x->place[i].place, strcspn(x->place[i].place, " ")));
}
static void see_trace(Seen *s, const Trace *t, Arena *a) {
    for (int i = 0; i < t->n_computes; i++) {
        see(s, t->computes[i].label);
        see(s, phase_text(t->computes[i].pass));
    }
    for (int i = 0; i < t->n_moves; i++) see(s, t->moves[i].op);
    for (int i = 0; i < t->n_collectives; i++) see(s, t->collectives[i].op);
    for (int i = 0; i < t->n_values; i++) {
        see(s, value_role_words[t->values[i].kind]);
        see_shape(s, &t->values[i].shape);
    }
    for (int i = 0; i < t->n_params; i++) see_shape(s, &t->params[i].rest);
    for (const char *const *c = lookup_categories(t, a); *c; c++) see(s, *c);
    see(s, t->backend);
    see(s, t->schedule && !strpbrk(t->schedule, "./") ? t->schedule : NULL);
}
static void see_tables(Seen *s) {
    static const char *const others[] = {
        "equivalent",    "different", "invalid",     "PASS",        "SUSPECT",    "FAIL",
        "checks",        "worst",     "end to end",  "used",        "cause",      "structure",
        "sent",          "message",   "collective",  "exposed",     "hidden",     "waiting",
        "idle",          "peak",      "at rest",     "undeclared",  "unasked",    "inferred",
        "planted",       "modelled",  "algbw",       "measured",    "projected",  "shrunk",
        "a step",        "in flight", "span",        "level",       "bound",      "rank",
        "bus bandwidth", "virtual",   "partial sum", "closed form", "micro-batch"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++) see(s, others[i]);
    static const char *const figures[] = {"token",
                                          "residual stream",
                                          "logits",
                                          "node",
                                          "link",
                                          "chunk",
                                          "stale",
                                          "freed",
                                          "follows",
                                          "rounding",
                                          "compute waits",
                                          "ZeRO-1",
                                          "ZeRO-3",
                                          "ridge",
                                          "compute-bound",
                                          "padding",
                                          "dropped",
                                          "peak over mean",
                                          "warm-up",
                                          "conjugate",
                                          "bit for bit equal"};
    for (size_t i = 0; i < sizeof figures / sizeof *figures; i++) see(s, figures[i]);
    for (int i = 0; i < N_SEVERITIES; i++) see(s, severity_words[i]);
    for (int i = 0; i < n_diag_codes; i++) see(s, diag_codes[i].code);
    for (int i = 0; i < n_ops; i++) see(s, op_list[i]->name), see(s, op_list[i]->label);
    const char *const *what, *const *fault = fault_names(s->a, &what);
    for (int i = 0; fault[i]; i++) see(s, fault[i]);
    int n;
    const StyleRow *style = style_rows(&n);
    for (int i = 0; i < n; i++) see(s, style[i].style.name);
}
static void test_each_is_known(void **state) {
    (void)state;
    Seen s = {.a = arena};
    see_tables(&s);
    int tables = s.n, unknown = 0;
    for (PlanFiles f = plan_files("plans/{[0-9]*,models/*,bugs/*}.yaml", "plans");
         plan_files_next(&f);) {
        PlanRun r = plan_run(f.a, f.path, f.text, false);
        if (r.t) see_trace(&s, r.t, f.a);
    }
    assert_true(s.n > tables + 5);
    for (int i = 0; i < s.n; i++) {
        Ended e = {0};
        bool code = strlen(s.word[i]) == 5 && strchr("ENW", *s.word[i]) && s.word[i][1] <= '9';
        Cli c = {.arena = arena, .d = diags_new(arena)};
        if (code) e = child_run(arena, &(Child){.words = WORDS("explain", s.word[i])});
        if (code ? !e.code : words_know(&c, s.word[i])) continue;
        print_error("explain '%s' knows nothing\n", s.word[i]);
        unknown++;
    }
    printf("%d words\n", s.n);
    assert_int_equal(unknown, 0);
}
/* What several ops of the optimizer are is said of each of them. */
static void test_optimizer(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"weighted sum", "momentum"},
                                          {"clip factor", "at most 1"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("explain", rows[i][0])});
        assert_int_equal(e.code, 0);
        assert_non_null(strstr(e.out, rows[i][1]));
        assert_null(strstr(e.out, "square"));
    }
}
/* A phrase of a figure or a report is explained by its words. */
static void test_phrases(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"Σ tp pending", "sigma"},
                                          {"matmul, attention", "softmax"},
                                          {"saved / conjugate", "ReduceScatter"},
                                          {"communication behind other communication", "exchange"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("explain", rows[i][0])});
        assert_int_equal(e.code, 0);
        assert_non_null(strstr(e.out, rows[i][1]));
    }
}
/* A slip of the pen in a name, and in another word for it. */
static void test_near(void **state) {
    (void)state;
    static const char *const rows[][2] = {{"colwsie", "colwise"},
                                          {"cotangnet", "cotangent"},
                                          {"reduce_scater", "reduce_scatter"},
                                          {"rmsnrom", "rmsnorm"},
                                          {"equivalnet", "equivalent"},
                                          {"algwb", "algbw"},
                                          {"partial summ", "partial sum"}};
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Ended e = child_run(arena, &(Child){.words = WORDS("explain", rows[i][0])});
        child_expect(&e, 3, arena_printf(arena, "did you mean '%s'?", rows[i][1]));
    }
}

/* ---- what is written on figures and over tables ---- */
/* The texts of the groups of this class in an SVG. */
static void see_class(Seen *s, const char *svg, const char *class) {
    const char *key = arena_printf(s->a, "class=\"%s\">", class);
    for (const char *at = svg; at && (at = strstr(at, key));) {
        int deep = 1;
        for (at += strlen(key); deep && *at; at++) {
            if (!strncmp(at, "</g>", 4)) deep--;
            else if (!strncmp(at, "<g ", 3)) deep++;
            else if (!strncmp(at, "<text", 5)) {
                const char *from = strchr(at, '>') + 1, *end = strstr(from, "</text>");
                Str text = str_new(s->a);
                for (bool in = true; from < end; from++) { /* without spans */
                    if (*from == '<') in = false;
                    if (in) str_addf(&text, "%c", *from);
                    if (*from == '>') in = true;
                }
                if (text.n) see(s, text.s);
            }
        }
    }
}
/* What the legend of a figure says. */
static void see_keys(Seen *s, const char *svg) {
    see_class(s, svg, "legend");
    see_class(s, svg, "key");
}
/* The heads of a table written as Markdown. */
static void see_heads(Seen *s, const char *md) {
    const char *line = md ? strchr(md, '|') : NULL;
    assert_non_null(line);
    for (const char *end = strchr(line, '\n'); line + 1 < end;) {
        size_t n = strcspn(line + 1, "|\n");
        if (n > 2) see(s, arena_strndup(s->a, line + 2, n - 2));
        line += n + 1;
    }
}
/* The titles of sections, and the names before what is said of them, of a report. */
static void see_report(Seen *s, const char *text) {
    for (const char *line = text, *end; *line; line = *end ? end + 1 : end) {
        end = line + strcspn(line, "\n");
        const char *gap = strstr(line, "  ");
        bool named = end - line > 4 && !strncmp(line, "  ", 2) && line[2] >= 'a' && line[2] <= 'z';
        const char *to = named ? strstr(line + 2, "  ") : NULL;
        if (named && to && to < end && strcspn(line + 2, "._") < (size_t)(to - line - 2)) continue;
        if (named && to && to < end) see(s, arena_strndup(s->a, line + 2, (size_t)(to - line - 2)));
        else if (*line >= 'A' && *line <= 'Z' && (!gap || gap > end))
            see(s, arena_strndup(s->a, line, strcspn(line, "(\n")));
    }
}
/* Is there a word in it, and not only names of ranks, experts and coordinates? */
static bool says_something(const char *text) {
    for (const char *p = text; *p; p++) {
        size_t n = strspn(p, "abcdefghijklmnopqrstuvwxyz");
        if (n > 2) return true;
        if (n) p += n - 1;
    }
    return false;
}
/* ---- words of titles and captions ---- */
/* Words that mean there what they mean anywhere. A word of the field is none of them: it belongs in
 * sim/cli/terms.c. */
static const char plain_words[] =
    "added afterwards agree ahead alike all and another any are around back bar because "
    "beginning behind between both came can cell cells classes closed columns come comes "
    "communicates compared count counted decides diagram differ does done down drawn "
    "each end "
    "ends even every executed faces few fill filled first flight for gets goes has hatched have "
    "hold holds identical inside its keep largest last lasts later less lie likelihood likely line "
    "lines list long many marks may meant moment more most moves needs not nothing number numbered "
    "numbers off once one ones only other outlast outlasts outline outlined over pairs "
    "panel part per pieces place printed program ribbon right room rounded run same says side "
    "several some source stand starts stay swap table taken than that the their them then there "
    "these they thick this those title together transposed travel two under unless use "
    "waits what when which whole wide with within without ";
/* Is it a word, and not part of a name, a number or a formula? Small, but for a name of letters. */
static const char *bare_word(Arena *a, const char *from, size_t n) {
    while (n && strchr("(\"'", *from)) from++, n--;
    while (n && strchr(".,:;)\"'?", from[n - 1])) n--;
    if (n < 3) return NULL;
    for (size_t i = 0; i < n; i++) {
        const char small = (char)(from[i] | 0x20);
        if ((small < 'a' || small > 'z') && (from[i] != '-' || !i || i + 1 == n)) return NULL;
    }
    char *word = arena_strndup(a, from, n);
    const size_t least = strspn(word + 1, "abcdefghijklmnopqrstuvwxyz-");
    if (word[0] < 'a' && word[1 + least] == 0) word[0] |= 0x20; /* the first of a sentence */
    return word;
}
/* One of the tables knows it, or that of which it is the plural. */
static bool is_known(Cli *c, const char *word) {
    const size_t s = text_before(word, "s");
    return words_know(c, word) || (s && words_know(c, arena_strndup(c->arena, word, s)));
}
static void see_sentences(Seen *s, const char *svg) {
    see_class(s, svg, "title");
    see_class(s, svg, "footer");
    see_class(s, svg, "callout");
    const char *desc = strstr(svg, "<desc"), *from = desc ? strchr(desc, '>') + 1 : NULL;
    if (from) see(s, arena_strndup(s->a, from, strcspn(from, "<")));
}
static void test_titles(void **state) {
    (void)state;
    static const char *const plans[] = {"01-column-row-mlp",         "18-llama3-8b-backward",
                                        "19-llama3-8b-fsdp4",        "30-mixtral-8x7b-ep-dp-cp",
                                        "41-llama3-8b-ring4-zigzag", "47-llama3-8b-pp2-dp2-tp2",
                                        "50-llama3-8b-zero1",        "bugs/01-output-left-partial"};
    Seen s = {.a = arena}, words = {.a = arena};
    glob_t g;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const char *plan = arena_printf(arena, "plans/%s.yaml", plans[i]);
        Ended e = child_run(arena, &(Child){.words = WORDS("run", plan, "-o", in("out"))});
        assert_int_equal(e.code, 0);
    }
    assert_int_equal(glob(in("out/*.svg"), 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        see_sentences(&s, child_read(arena, g.gl_pathv[i], NULL));
        unlink(g.gl_pathv[i]);
    }
    globfree(&g);
    for (int i = 0; i < s.n; i++)
        for (const char *p = s.word[i]; *p;) {
            p += strspn(p, " ");
            const size_t n = strcspn(p, " ");
            const char *word = bare_word(arena, p, n);
            /* not the plan's own name, nor the gradient of a weight: dwo */
            bool own = word && !strncmp(word, "dw", 2);
            for (size_t k = 0; word && k < sizeof plans / sizeof *plans; k++)
                own |= strstr(plans[k], word) && strchr(word, '-');
            if (word && !own) see(&words, word);
            p += n;
        }
    int unknown = 0, plain = 0;
    for (int i = 0; i < words.n; i++) {
        Cli c = {.arena = arena, .d = diags_new(arena)};
        const bool known = is_known(&c, words.word[i]);
        plain += !known;
        if (known || text_has_word(plain_words, words.word[i])) continue;
        print_error("a title or caption says '%s', and explain does not\n", words.word[i]);
        unknown++;
    }
    printf("%d words, %d of them plain\n", words.n, plain);
    assert_true(words.n > 200);
    assert_int_equal(unknown, 0);
}
static void test_figures_and_tables(void **state) {
    (void)state;
    /* with all kinds of steps, pages and findings */
    static const char *const plans[] = {"18-llama3-8b-backward",      "19-llama3-8b-fsdp4",
                                        "30-mixtral-8x7b-ep-dp-cp",   "41-llama3-8b-ring4-zigzag",
                                        "47-llama3-8b-pp2-dp2-tp2",   "50-llama3-8b-zero1",
                                        "bugs/01-output-left-partial"};
    static const char *const tables[][3] = {{"shapes"},           {"params"}, {"comms"},
                                            {"comms", "--pairs"}, {"check"},  {"times"}};
    Seen s = {.a = arena};
    glob_t g;
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++) {
        const char *plan = arena_printf(arena, "plans/%s.yaml", plans[i]);
        Ended e = child_run(arena, &(Child){.words = WORDS("run", plan, "-o", in("out"))});
        assert_int_equal(e.code, 0);
        char *files = strstr(e.out, "\nFiles\n");
        assert_non_null(files);
        *files = 0;
        see_report(&s, e.out);
    }
    assert_int_equal(glob(in("out/*.svg"), 0, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++) {
        see_keys(&s, child_read(arena, g.gl_pathv[i], NULL));
        unlink(g.gl_pathv[i]);
    }
    if (g.gl_pathc < 50 || s.n < 60) fail_msg("%zu figures, %d words", g.gl_pathc, s.n);
    globfree(&g);
    const char *plan = "plans/30-mixtral-8x7b-ep-dp-cp.yaml";
    Ended e = child_run(
        arena, &(Child){.words = WORDS("draw", plan, "--view", "sweep", "--format", "svg")});
    see_keys(&s, e.out);
    for (size_t i = 0; i < sizeof tables / sizeof *tables; i++) {
        e = child_run(arena,
                      &(Child){.words = WORDS(tables[i][0], plan, "--format", "md", tables[i][1])});
        see_heads(&s, e.out);
    }
    e = child_run(arena, &(Child){.words = WORDS("explain", plan, "layers.0.o_proj")});
    see_report(&s, e.out);
    int unknown = 0, n = 0;
    for (int i = 0; i < s.n; i++) {
        if (!says_something(s.word[i])) continue;
        Cli c = {.arena = arena, .d = diags_new(arena), .format = "text", .text = str_new(arena)};
        n++;
        if (explain_word(&c, s.word[i])) continue;
        print_error("explain '%s' knows nothing\n", s.word[i]);
        unknown++;
    }
    printf("%d words and phrases\n", n);
    assert_int_equal(unknown, 0);
}

/* "1 ranks", "ranks 0": of one there are not several. */
static void one_rank(const char *text, const char *how) {
    for (const char *at = text; at && (at = strstr(at, "ranks ")); at += 6) {
        size_t n = strspn(at + 6, "0123456789");
        const char after = at[6 + n];
        const bool more = !n || strchr("-,:", after) || (after == '.' && at[7 + n] > ' ') ||
                          !strncmp(at + 6 + n, " to ", 4) || !strncmp(at + 6 + n, " and ", 5);
        if (!more) fail_msg("%s: %.60s", how, at);
    }
    for (const char *at = text; at && (at = strstr(at, "1 ranks")); at++)
        if (at == text || !strchr("0123456789,.", at[-1])) fail_msg("%s: %.60s", how, at);
}
static void test_one_rank(void **state) {
    (void)state;
    /* classes of one rank each, unequal traffic, a wrong value; and a single rank */
    const char *const plans[] = {"plans/48-llama3.2-1b-pp2-tied.yaml",
                                 "plans/bugs/01-output-left-partial.yaml",
                                 "plans/01-column-row-mlp.yaml", "one.yaml"};
    static const char *const ways[][6] = {{"run", "-o", NULL},
                                          {"check", "-v"},
                                          {"check", "--format", "json"},
                                          {"check", "--format", "junit"},
                                          {"shapes"},
                                          {"params"},
                                          {"comms"},
                                          {"comms", "--format", "json"},
                                          {"comms", "--pairs"},
                                          {"draw", "--view", "timeline", "--format", "chrome"},
                                          {"draw", "--view", "memory"},
                                          {"draw", "--view", "mesh", "--format", "svg"},
                                          {"draw", "--view", "errors"},
                                          {"draw", "--view", "timeline"},
                                          {"draw", "--rank", "9"},
                                          {"shapes", "--rank", "9"}};
    const char *own = put("one.yaml", "model: {kind: mlp, sizes: [4, 8, 4]}\nmesh: {tp: 1}\n"
                                      "plan: {net1: colwise, net2: rowwise}\n");
    for (size_t i = 0; i < sizeof plans / sizeof *plans; i++)
        for (size_t k = 0; k < sizeof ways / sizeof *ways; k++) {
            const char *plan = strchr(plans[i], '/') ? plans[i] : own;
            const char *const *w = ways[k];
            const bool run = !strcmp(w[0], "run");
            Ended e = child_run(
                arena, &(Child){.words = WORDS(w[0], plan, run ? "-o" : w[1],
                                               run    ? in("out")
                                               : w[1] ? w[2]
                                                      : NULL,
                                               w[1] && w[2] ? w[3] : NULL, w[3] ? w[4] : NULL)});
            const char *how = arena_printf(arena, "%s %s %s", w[0], plan, w[1] ? w[1] : "");
            one_rank(e.out, how);
            one_rank(e.err, how);
        }
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_one_rank, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_figures_and_tables, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_titles, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_each_is_known, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_optimizer, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_phrases, sandbox_new, sandbox_gone),
        cmocka_unit_test_setup_teardown(test_near, sandbox_new, sandbox_gone),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
