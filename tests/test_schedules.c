/* Pipeline schedules: their orders against the tables of PyTorch, idle time and activations in
 * flight against closed forms, order by order; files of actions, and what a schedule that comes to
 * no end says. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include "schedule/play.h"
#include "support/support.h"
#include <dirent.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

/* ---- PyTorch's tables ---- */
static const struct {
    const char *file, *name;
} classes[] = {
    {"GPipe", "gpipe"},
    {"1F1B", "1f1b"},
    {"Interleaved1F1B", "interleaved"},
    {"LoopedBFS", "looped-bfs"},
    {"InterleavedZeroBubble", "interleaved-zb"},
    {"ZBVZeroBubble", "zb-v"},
    {"DualPipeV", "dualpipe-v"},
};
static const char *name_of(const char *class) {
    for (size_t i = 0; i < sizeof classes / sizeof *classes; i++)
        if (!strcmp(classes[i].file, class)) return classes[i].name;
    fail_msg("%s", class);
    return NULL;
}
static bool first_of(const char *word, const char *text) {
    return !strncmp(word, text, strlen(text));
}
/* The words of a table that say what our lists say. */
static const char *words_of(Arena *a, const char *table) {
    Str s = str_new(a);
    for (const char *p = table; *p;) {
        size_t n = strcspn(p, " ");
        const char *w = arena_strndup(a, p, n);
        size_t digits = strspn(w, "0123456789");
        const char *kind = w + digits;
        bool aside = first_of(kind, "UNSHARD") || first_of(kind, "RESHARD") ||
                     first_of(kind, "REDUCE") || first_of(kind, "WAIT") || !strcmp(w, ".");
        if (!aside && n) str_addf(&s, "%s%s", s.n ? " " : "", w);
        p += n + (p[n] == ' ');
    }
    return s.s;
}
/* Of a run only what was done, one after the other. */
static const char *list_text(Arena *a, const ActionList *l, bool run) {
    Str s = str_new(a);
    for (int i = 0; i < l->n; i++) {
        bool pair = l->a[i].joined && !run;
        str_addf(&s, "%s%s%s", i ? " " : "", pair ? "(" : "", action_text(&l->a[i], a));
        if (pair) str_addf(&s, ";%s)OVERLAP_F_B", action_text(&l->a[++i], a));
    }
    return s.s;
}
/* Without receives: PyTorch's simulation also takes turns for what our lists leave out (FSDP's
 * gathers, waits), so a receive may be posted one action earlier or later there. */
static const char *without_receives(Arena *a, const char *list) {
    Str s = str_new(a);
    for (const char *p = list; *p;) {
        size_t n = strcspn(p, " ");
        const char *w = arena_strndup(a, p, n);
        if (!strstr(w, "RECV")) str_addf(&s, "%s%s", s.n ? " " : "", w);
        p += n + (p[n] == ' ');
    }
    return s.s;
}
static void compare_lists(Arena *a, const Json *table, const Schedule *s, const char *what) {
    bool run = first_of(what, "runs/");
    for (int r = 0; r < s->ranks; r++) {
        const Json *want = json_get((Json *)(uintptr_t)table, arena_printf(a, "%d", r));
        assert_non_null(want);
        const char *got = without_receives(a, list_text(a, &s->rank[r], run)),
                   *due = without_receives(a, words_of(a, want->s));
        if (strcmp(got, due)) fail_msg("%s, rank %d:\n got %s\nwant %s", what, r, got, due);
    }
}
static void compare_table(Arena *a, const char *file) {
    Json *j = golden_json(a, golden_path(a, "schedules/%s", file));
    int p = (int)json_get(j, "pp")->i, v = (int)json_get(j, "stages_per_rank")->i,
        m = (int)json_get(j, "microbatches")->i;
    ScheduleAsk ask = {name_of(json_get(j, "schedule")->s), p, v, m};
    const char *fix;
    Json *order = json_get(j, "executed") ? json_get(j, "executed") : json_get(j, "order");
    /* the printed table of 1F1B is wrong on its last rank, and PyTorch refuses m < p */
    bool printed = !json_get(j, "executed") && !strcmp(ask.name, "1f1b");
    if (!order || printed) return;
    assert_null(schedule_refused(&ask, a, &fix));
    Schedule *s = schedule_make(&ask, a);
    Diags *d = diags_new(a);
    assert_true(schedule_check(s, d, diag_nowhere));
    Json *home = json_get(j, "stage_to_rank");
    assert_int_equal(home->n, s->stages);
    for (int i = 0; i < s->stages; i++) assert_int_equal(home->item[i]->i, s->home[i]);
    compare_lists(a, order, s, file);
    assert_true(schedule_add_p2p(s));
    bool plain = !strstr(file, "defer_pp_recv") && !strstr(file, "max_outstanding");
    if (json_get(j, "lowered") && plain) compare_lists(a, json_get(j, "lowered"), s, file);
    PlayTimes t = play_even(s, 1, 1, 1, a);
    Play *play = play_schedule(s, &t, a);
    assert_int_equal(play->n_blocked, 0);
    Json *peak = json_get(j, "peak_live_activations");
    for (int r = 0; peak && r < p; r++)
        assert_int_equal(play->in_flight[r], json_get(peak, arena_printf(a, "%d", r))->i);
}
/* Does so with each of PyTorch's tables, or runs; how many there were. */
static int each_table(Arena *a, const char *sub, void (*with)(Arena *, const char *)) {
    int n = 0;
    if (!golden_has(a, "schedules/%s", sub)) {
        printf("schedules/%s NOT COMPARED: only in the complete set, ../shared/golden\n", sub);
        return 0;
    }
    DIR *dir = opendir(golden_path(a, "schedules/%s", sub));
    assert_non_null(dir);
    for (struct dirent *e; (e = readdir(dir));) {
        size_t len = strlen(e->d_name);
        if (len < 5 || strcmp(e->d_name + len - 5, ".json")) continue;
        with(a, arena_printf(a, "%s/%s", sub, e->d_name));
        n++;
    }
    closedir(dir);
    return n;
}
static void test_tables(void **state) {
    (void)state;
    Arena *a = arena_new();
    int n = each_table(a, "tables", compare_table) + each_table(a, "runs", compare_table);
    printf("%d tables and runs of PyTorch\n", n);
    arena_free(a);
}
/* What is compared also without the complete set: a small case of each, from those tables. */
static void test_small_tables(void **state) {
    (void)state;
    static const struct {
        ScheduleAsk ask;
        int rank;
        const char *order;
    } rows[] = {
        {{"1f1b", 2, 1, 4}, 0, "0F0 0F1 0B0 0F2 0B1 0F3 0B2 0B3"},
        {{"gpipe", 2, 1, 2}, 1, "1F0 1F1 1B0 1B1"},
        {{"interleaved-zb", 2, 2, 4},
         1,
         "1F0 1F1 3F0 3I0 3F1 3I1 3W0 1F2 1I0 3W1 1F3 1I1 1W0 3F2 3I2 1W1 3F3 3I3 3W2 1I2 3W3 1I3 "
         "1W2 1W3"},
        {{"dualpipe-v", 2, 2, 4},
         1,
         "1F0 2F0 1F1 2F1 1F2 2B0 (2F2;1B0)OVERLAP_F_B (1F3;2B1)OVERLAP_F_B (2F3;1B1)OVERLAP_F_B "
         "2B2 1B2 2I3 1I3 2W3 1W3"},
        {{"zb-h1", 3, 1, 4}, 1, "1F0 1F1 1I0 1F2 1I1 1W0 1F3 1I2 1W1 1I3 1W2 1W3"},
        /* fewer micro-batches than ranks: PyTorch 2.15 makes these (and refuses 1f1b) */
        {{"looped-bfs", 4, 2, 2}, 1, "1F0 1F1 5F0 5F1 5B1 5B0 1B1 1B0"},
        {{"interleaved", 4, 2, 3}, 3, "3F0 3F1 3F2 7F0 7B0 7F1 7B1 7F2 7B2 3B0 3B1 3B2"},
        {{"interleaved-zb", 4, 2, 2}, 2, "2F0 2F1 6F0 6F1 6I0 6I1 2I0 6W0 2I1 6W1 2W0 2W1"},
        {{"zb-v", 4, 2, 2}, 3, "3F0 4F0 3F1 4F1 4I0 4W0 3I0 3W0 4I1 4W1 3I1 3W1"},
        {{"1f1b", 4, 1, 2}, 0, "0F0 0F1 0B0 0B1"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        Arena *a = arena_new();
        Schedule *s = schedule_make(&rows[i].ask, a);
        assert_string_equal(list_text(a, &s->rank[rows[i].rank], false), rows[i].order);
        arena_free(a);
    }
}

/* ---- closed forms ---- */
/* F = I = W = 1 for every schedule, and other lengths for those whose form has them apart. */
static void check_closed(const ScheduleKind *k, int p, int v, int m) {
    Arena *a = arena_new();
    const char *fix;
    ScheduleAsk ask = {k->name, p, v, m};
    if (schedule_refused(&ask, a, &fix)) {
        assert_non_null(fix);
        arena_free(a);
        return;
    }
    static const double lengths[][3] = {{1, 1, 1}, {1, 1.5, 0.5}, {2, 3, 1}};
    for (int n = 0; n < 3; n++) {
        Schedule *s = schedule_make(&ask, a);
        Diags *d = diags_new(a);
        assert_true(schedule_check(s, d, diag_nowhere));
        assert_true(schedule_add_p2p(s));
        const double *l = lengths[n];
        PlayTimes t = play_even(s, l[0], l[1], l[2], a);
        Play *play = play_schedule(s, &t, a);
        assert_int_equal(play->n_blocked, 0);
        StageTimes one = {l[0], l[1], l[2], l[0] + l[1] + l[2]};
        for (int r = 0; r < p; r++) {
            double idle = play->end - play->busy[r];
            assert_true(fabs(play->busy[r] - m * v * (l[0] + l[1] + l[2])) < 1e-9);
            bool holds = m >= p && k->idle && (!n || !strcmp(k->bubble, "(p-1)(F+B)"));
            if (holds && fabs(idle - k->idle(&ask, &one)) > 1e-9)
                fail_msg("%s p %d v %d m %d rank %d: idle %g, closed form %g", k->name, p, v, m, r,
                         idle, k->idle(&ask, &one));
            if (m >= 2 * p && play->in_flight[r] != k->flight(&ask, r))
                fail_msg("%s p %d v %d m %d rank %d: %d in flight, closed form %d", k->name, p, v,
                         m, r, play->in_flight[r], k->flight(&ask, r));
        }
    }
    arena_free(a);
}
static void test_closed_forms(void **state) {
    (void)state;
    int n;
    const ScheduleKind *k = schedule_kinds(&n);
    static const int ranks[] = {1, 2, 3, 4, 6, 8};
    for (int i = 0; i < n; i++)
        for (size_t r = 0; r < sizeof ranks / sizeof *ranks; r++)
            for (int v = 1; v <= 3; v++)
                for (int m = 1; m <= 24; m++) check_closed(&k[i], ranks[r], v, m);
}

/* ---- files, and orders that come to no end ---- */
static const int two[] = {0, 1};
typedef struct {
    Arena *a;
    Diags *d;
    Schedule *s;
    Play *play;
} Read;
/* `n` bytes of a file. */
static Read read_bytes(const char *rows, size_t n, const int *home, int stages) {
    Read x = {.a = arena_new()};
    x.d = diags_new(x.a);
    const char *path = temp_path(x.a, "schedule.csv");
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(rows, 1, n, f), n);
    fclose(f);
    x.s = schedule_read(x.a, x.d, diag_nowhere, path, home, stages);
    if (!x.s || !schedule_check(x.s, x.d, diag_nowhere)) return x;
    if (!strstr(rows, "SEND")) schedule_add_p2p(x.s);
    PlayTimes t = play_even(x.s, 1, 1, 1, x.a);
    x.play = play_schedule(x.s, &t, x.a);
    play_report(x.play, x.d, diag_nowhere);
    return x;
}
static Read read_rows(const char *rows, const int *home, int stages) {
    return read_bytes(rows, strlen(rows), home, stages);
}
/* The diagnostic that says so, with this fix. */
static const Diag *said(const Read *x, const char *code, const char *says, const char *fix) {
    for (int i = 0; i < x->d->n; i++) {
        const Diag *g = &x->d->item[i];
        if (!strcmp(g->code, code) && strstr(g->message, says) && strstr(g->hint, fix)) return g;
    }
    fail_msg("'%s' (%s) is not said, but:\n%s", says, fix, diags_text(x->a, x->d));
    return NULL;
}
static void expect_said(const char *rows, const char *code, const char *says) {
    Read x = read_rows(rows, two, 2);
    said(&x, code, says, "");
    arena_free(x.a);
}
static void test_files(void **state) {
    (void)state;
    Read x = read_rows("0F0,0F1,,0B0,0B1\n,1F0,1I0,1F1,1W0,1B1\n", two, 2);
    assert_int_equal(x.d->n, 0);
    assert_int_equal(x.s->parts, 2);
    assert_int_equal(x.play->n_blocked, 0);
    arena_free(x.a);
    x = read_rows("0UNSHARD,0F0,0SEND_F0,0RECV_B0,0B0,0REDUCE_GRAD,0WAIT_SEND_F0\n1RECV_F0,1F0,1B0,"
                  "1SEND_B0\n",
                  two, 2);
    assert_int_equal(x.d->n, 0);
    assert_int_equal(x.play->n_blocked, 0);
    arena_free(x.a);
    expect_said("0F0,0X0\n1F0,1B0\n", "E0310", "no action");
    expect_said("0F0,0B\n1F0,1B0\n", "E0310", "no action");
    expect_said("0F0,0B0,0REDUCE_GRADxyz\n1F0,1B0\n", "E0310", "no action");
    expect_said("0F0,0B0,0UNSHARD-7\n1F0,1B0\n", "E0310", "no action");
    expect_said("0F0,0B0,0WAIT_SEND_F\n1F0,1B0\n", "E0310", "no action");
    expect_said("0F0,0B0,7REDUCE_GRAD\n1F0,1B0\n", "E0310", "there are 2 stages");
    expect_said("0F0,0B0,1REDUCE_GRAD\n1F0,1B0\n", "E0310", "stage 1 is on rank 1");
    expect_said("0F0,0B0,2F0\n1F0,1B0\n", "E0310", "there are 2 stages");
    expect_said("0F0,0B0,1B0\n1F0\n", "E0310", "stage 1 is on rank 1");
    expect_said("0F0,0B0\n1F0\n", "E0310", "no backward of stage 1 for micro-batch 0");
    expect_said("0F0,0I0\n1F0,1B0\n", "E0310", "no weight gradients of stage 0");
    expect_said("0F0,0B0,0B0\n1F0,1B0\n", "E0310", "0B0 is done twice");
    /* B is I and W: beside one of them the same work is done twice, and the other's place is told
     */
    expect_said("0F0,0B0,0I0\n1F0,1B0\n", "E0310", "0I0 is done twice: a whole backward (B) is");
    expect_said("0F0,0B0,0I0\n1F0,1B0\n", "E0310", "and 0B0 is at 1:5");
    expect_said("0F0,0B0,0W0\n1F0,1B0\n", "E0310", "(W), and 0B0 is at 1:5");
    expect_said("0F0,0I0,0W0,0B0\n1F0,1B0\n", "E0310", "0B0 is done twice: a whole backward");
    expect_said("0F0,0W0\n1F0,1B0\n", "E0310", "no gradient of the input of stage 0");
    expect_said("0F0,0B0\n", "E0310", "stage 1 is on rank 1, and there is 1 row");
}
/* What editors and spreadsheets make of a file: read, or told at its place. */
static void test_odd_files(void **state) {
    (void)state;
#define ROWS(first, between, second, end) first "0F0,0B0" between second "1F0,1B0" end
    static const char *const good[] = {
        ROWS("", "\r\n", "", "\r\n"),        ROWS("", "\n", "", ""),
        ROWS("", "\n", "", "\n\n \n\r\n\n"), ROWS("\xEF\xBB\xBF", "\n", "", "\n"),
        ROWS(" ", " , ,\n", ",, ", "  \n"),  "\"0F0\", \"0B0\" \n1F0,\"\",\"1B0\"\n",
    };
    for (size_t i = 0; i < sizeof good / sizeof *good; i++) {
        Read x = read_rows(good[i], two, 2);
        if (x.d->n) fail_msg("%s\n%s", good[i], diags_text(x.a, x.d));
        assert_int_equal(x.s->ranks, 2);
        assert_int_equal(x.play->n_blocked, 0);
        arena_free(x.a);
    }
    static const struct {
        const char *rows;
        size_t n; /* 0: up to the NUL */
        int line, col, others;
        const char *says, *fix;
    } bad[] = {
        {"", 0, 0, 0, 0, "is empty", "one row of actions for each rank"},
        {"\n\r\n \n", 0, 0, 0, 0, "is empty", "one row of actions for each rank"},
        {"\xEF\xBB\xBF", 0, 0, 0, 0, "is empty", "one row of actions for each rank"},
        {ROWS("", "\n\n", "", "\n"), 0, 2, 1, 0, "an empty row, where that of rank 1 is due",
         "take the line out"},
        {ROWS("\n", "\n", "", "\n"), 0, 1, 1, 0, "an empty row, where that of rank 0 is due",
         "take the line out"},
        {ROWS("\"", "\n", "", "\n"), 0, 1, 1, 0, "a quote that is not closed", "close it"},
        {ROWS("", "\n", "\"", "\"\n"), 0, 2, 2, 0, "no action", "`0F3`"},
        {"0F0,\"0B0\"x\n1F0,1B0\n", 0, 1, 5, 0, "no action", "`0F3`"},
        {"0F0,0B0\"\n1F0,1B0\n", 0, 1, 5, 0, "no action", "`0F3`"},
        {ROWS("", "\r", "", "\r"), 0, 1, 8, 0, "a carriage return within a row", "line feed"},
        {"0F0,0B0\n1F0,1B0\0,\n", 18, 2, 8, 0, "a byte that is no text, 0x00", "plain text"},
        {"\xFF\xFE"
         "0\0F\0"
         "0\0\n\0",
         10, 1, 4, 0, "a byte that is no text, 0x00", "plain text"},
        {"a,b,c,d,e,f,g,h,i,j,k\n1F0,1B0\n", 0, 1, 17, 8, "here and in 2 other cells", "`0F3`"},
    };
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        Read x = read_bytes(bad[i].rows, bad[i].n ? bad[i].n : strlen(bad[i].rows), two, 2);
        const Diag *g = said(&x, "E0310", bad[i].says, bad[i].fix);
        if (g->loc.line != bad[i].line || g->loc.col != bad[i].col || x.d->n != bad[i].others + 1)
            fail_msg("%d:%d is not %d:%d, of %d\n%s", g->loc.line, g->loc.col, bad[i].line,
                     bad[i].col, x.d->n, diags_text(x.a, x.d));
        assert_null(x.s);
        arena_free(x.a);
    }
#undef ROWS
    /* a rank without stages has a list in which nothing stands */
    static const int apart[] = {0, 2};
    Read x = read_rows("0F0,0B0\n\n1F0,1B0\n", apart, 2);
    assert_int_equal(x.d->n, 0);
    assert_int_equal(x.s->ranks, 3);
    assert_int_equal(x.play->n_blocked, 0);
    arena_free(x.a);
}
/* Rows with messages of their own: one that leads out of the pipeline, or comes a second time. A
 * number that is far too large is one finding, not one for each that is missing below it. */
static void test_messages(void **state) {
    (void)state;
#define AHEAD "0F0,0SEND_F0,0RECV_B0,0B0"
#define BEHIND "1RECV_F0,1F0,1B0,1SEND_B0"
    expect_said(AHEAD "\n" BEHIND ",1SEND_F0\n", "E0310", "1SEND_F0: stage 1 is the last one");
    expect_said(AHEAD "\n" BEHIND ",1RECV_B0\n", "E0310", "1RECV_B0: stage 1 is the last one");
    expect_said(AHEAD ",0SEND_B0\n" BEHIND "\n", "E0310", "0SEND_B0: stage 0 is the first one");
    expect_said("0RECV_F0," AHEAD "\n" BEHIND "\n", "E0310", "0RECV_F0: stage 0 is the first one");
    expect_said(AHEAD "\n" BEHIND ",1SEND_B0\n", "E0310", "1SEND_B0 is done twice");
    expect_said(AHEAD "\n" BEHIND ",1RECV_F0\n", "E0310", "1RECV_F0 is done twice");
    Read x = read_rows("0F0,0B0,0F1048575\n1F0,1B0\n", two, 2);
    assert_in_range(x.d->n, 1, 8);
    arena_free(x.a);
    expect_said("0F0,0B0,0F1048575\n1F0,1B0\n", "E0310",
                "no forward of stage 0 for micro-batch 1, and for 1048573 others");
}
/* ---- what a file says of gathers and reductions ---- */
static Read read_asides(const char *rows, const int *home, int stages, bool gathers) {
    Read x = read_rows(rows, home, stages);
    assert_non_null(x.s);
    /* its messages stand between by now, and gathers stand by the list that was read */
    x.s = schedule_read(x.a, x.d, diag_nowhere, temp_path(x.a, "schedule.csv"), home, stages);
    bool ok = schedule_check_asides(x.s, x.d, gathers);
    assert_int_equal(ok, !x.d->n);
    return x;
}
#define AFTER "1UNSHARD,1F0,1F1,1B0,1B1,1REDUCE_GRAD,1WAIT_REDUCE_GRAD,1RESHARD\n"
static const struct {
    const char *rows;
    bool gathers;
} good_asides[] = {
    {"0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0RESHARD\n" AFTER, true},
    {"0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD,0REDUCE_GRAD\n" AFTER, true},
    {"0UNSHARD,0F0,0RESHARD,0UNSHARD,0F1,0B0,0I1,0RESHARD,0UNSHARD,0W1,0REDUCE_GRAD\n" AFTER, true},
    /* of PyTorch before REDUCE_GRAD, and computation alone with what reduces it */
    {"0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD\n1UNSHARD,1F0,1F1,1B0,1B1\n", true},
    {"0F0,0F1,0B0,0B1,0REDUCE_GRAD\n1F0,1F1,1B0,1B1,1REDUCE_GRAD\n", true},
    /* nothing is gathered where nothing is cut */
    {"0RESHARD,0F0,0F1,0UNSHARD,0UNSHARD,0B0,0B1,0REDUCE_GRAD\n" AFTER, false},
};
static const struct {
    const char *rows;
    int line, col;
    const char *says, *fix;
} bad_asides[] = {
    {"0F0,0UNSHARD,0F1,0B0,0B1,0REDUCE_GRAD\n" AFTER, 1, 1,
     "0F0 uses stage 0, which nothing has gathered", "put 0UNSHARD before 0F0"},
    {"0UNSHARD,0F0,0F1,0RESHARD,0B0,0B1,0REDUCE_GRAD\n" AFTER, 1, 27,
     "0B0 uses stage 0, which 0RESHARD at 1:18 has dropped",
     "put 0UNSHARD before 0B0, or 0RESHARD behind it"},
    {"0UNSHARD,0F0,0RESHARD,0F1,0UNSHARD,0B0,0B1,0REDUCE_GRAD\n" AFTER, 1, 23,
     "0F1 uses stage 0, which 0RESHARD at 1:14", "0UNSHARD before 0F1"},
    {"0UNSHARD,0F0,0F1,0I0,0W0,0RESHARD,0I1,0W1,0REDUCE_GRAD\n" AFTER, 1, 35, "0I1 uses stage 0",
     "0RESHARD behind it"},
    {"0UNSHARD,0F0,0UNSHARD,0F1,0B0,0B1,0REDUCE_GRAD\n" AFTER, 1, 14,
     "stage 0 is gathered already, by 0UNSHARD at 1:1", "0RESHARD before it"},
    {"0UNSHARD,0RESHARD,0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD\n" AFTER, 1, 1,
     "stage 0 is gathered here, and nothing uses it before it is dropped", "leave it out"},
    {"0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0UNSHARD\n" AFTER, 1, 39,
     "nothing uses it before the step ends", "leave it out"},
    {"0RESHARD,0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD\n" AFTER, 1, 1, "stage 0 is not gathered here",
     "put 0UNSHARD before"},
    {"0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD,0RESHARD,0REDUCE_GRAD\n" AFTER, 1, 35,
     "stage 0 is not gathered here", "leave it out"},
    {"0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0RESHARD,0RESHARD\n" AFTER, 1, 48,
     "stage 0 is not gathered here", "leave it out"},
    {"0UNSHARD,0F0,0F1,0B0,0B1,0RESHARD,0UNSHARD,0REDUCE_GRAD\n" AFTER, 1, 35,
     "nothing uses it before the step ends", "leave it out"},
    {"0UNSHARD,0F0,0F1,0B0,0REDUCE_GRAD,0B1\n" AFTER, 1, 22,
     "0REDUCE_GRAD comes before 0B1, whose gradients it leaves out", "put it behind 0B1"},
    {"0UNSHARD,0F0,0F1,0B0,0I1,0REDUCE_GRAD,0W1\n" AFTER, 1, 26, "comes before 0W1",
     "put it behind 0W1"},
    {"0UNSHARD,0F0,0F1,0B0,0B1,0REDUCE_GRAD,0REDUCE_GRAD\n" AFTER, 1, 39,
     "0REDUCE_GRAD is done twice: first at 1:26", "once"},
    {"0UNSHARD,0F0,0F1,0B0,0B1\n" AFTER, 1, 22, "has no 0REDUCE_GRAD",
     "put 0REDUCE_GRAD behind 0B1"},
    {"0UNSHARD,0F0,0F1,0B0,0B1,0WAIT_REDUCE_GRAD,0REDUCE_GRAD\n" AFTER, 1, 26,
     "0WAIT_REDUCE_GRAD waits for what has not begun", "behind 0REDUCE_GRAD"},
};
static void test_asides(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof good_asides / sizeof *good_asides; i++) {
        Read x = read_asides(good_asides[i].rows, two, 2, good_asides[i].gathers);
        if (x.d->n) fail_msg("%s%s", good_asides[i].rows, diags_text(x.a, x.d));
        arena_free(x.a);
    }
    for (size_t i = 0; i < sizeof bad_asides / sizeof *bad_asides; i++) {
        Read x = read_asides(bad_asides[i].rows, two, 2, true);
        const Diag *g = said(&x, "E0310", bad_asides[i].says, bad_asides[i].fix);
        if (g->loc.line != bad_asides[i].line || g->loc.col != bad_asides[i].col || x.d->n != 1)
            fail_msg("%d:%d is not %d:%d\n%s", g->loc.line, g->loc.col, bad_asides[i].line,
                     bad_asides[i].col, diags_text(x.a, x.d));
        arena_free(x.a);
    }
    /* of every rank, all at once */
    Read x = read_asides("0F0,0F1,0B0,0B1,0UNSHARD,0RESHARD\n1F0,1F1,1B0,1REDUCE_GRAD,1B1\n", two,
                         2, true);
    said(&x, "E0310", "0F0 uses stage 0", "");
    said(&x, "E0310", "has no 0REDUCE_GRAD", "");
    said(&x, "E0310", "1F0 uses stage 1", "");
    said(&x, "E0310", "1REDUCE_GRAD comes before 1B1", "");
    assert_int_equal(x.d->n, 4);
    arena_free(x.a);
}
/* A table as it is run, as rows of a file: but for the word `leave_out` (from 0), which is left
 * out, and `twice`, which comes a second time behind itself. `kind`: what word `leave_out` is. */
typedef struct {
    const Json *rows;
    int ranks, leave_out, twice;
} Spoil;
static const char *spoilt_rows(Arena *a, const Spoil *s, const char **kind) {
    Str out = str_new(a);
    int at = 0;
    *kind = NULL;
    for (int r = 0; r < s->ranks; r++) {
        const char *p = json_get((Json *)(uintptr_t)s->rows, arena_printf(a, "%d", r))->s;
        for (; *p; at++) {
            int n = (int)strcspn(p, " ");
            if (at == s->leave_out || at == s->twice)
                *kind = arena_strndup(a, p + strspn(p, "0123456789"),
                                      (size_t)n - strspn(p, "0123456789"));
            if (at != s->leave_out) str_addf(&out, "%.*s,", n, p);
            if (at == s->twice) str_addf(&out, "%.*s,", n, p);
            p += n + (p[n] == ' ');
        }
        str_addf(&out, "\n");
    }
    return out.s;
}
static bool asides_hold(const char *rows, const int *home, int stages) {
    Read x = read_asides(rows, home, stages, true);
    bool ok = !x.d->n;
    arena_free(x.a);
    return ok;
}
static struct { int tables, left_out, doubled; } asides;
/* PyTorch's own hold; each gather and each reduction that is left out, or done twice, is found. */
static void hold_asides(Arena *keep, const char *file) {
    Arena *a = arena_new();
    Json *j = golden_json(a, golden_path(keep, "schedules/%s", file)),
         *home = json_get(j, "stage_to_rank");
    int homes[64];
    if (!json_get(j, "lowered")) {
        arena_free(a);
        return;
    }
    for (int i = 0; i < home->n; i++) homes[i] = (int)home->item[i]->i;
    Spoil s = {json_get(j, "lowered"), (int)json_get(j, "pp")->i, -1, -1};
    const char *kind;
    if (!asides_hold(spoilt_rows(a, &s, &kind), homes, home->n)) fail_msg("%s", file);
    asides.tables++;
    bool small = strstr(file, "pp2_v2_m4") || strstr(file, "max_active_stages_1");
    for (s.leave_out = 0; small; s.leave_out++) {
        const char *rows = spoilt_rows(a, &s, &kind);
        if (!kind) break;
        if (strcmp(kind, "UNSHARD") && strcmp(kind, "REDUCE_GRAD")) continue;
        if (asides_hold(rows, homes, home->n)) fail_msg("%s: without\n%s", file, rows);
        asides.left_out++;
        Spoil more = {s.rows, s.ranks, -1, s.leave_out};
        rows = spoilt_rows(a, &more, &kind);
        if (asides_hold(rows, homes, home->n)) fail_msg("%s: twice\n%s", file, rows);
        asides.doubled++;
    }
    arena_free(a);
}
static void test_asides_of_tables(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (each_table(a, "tables", hold_asides)) {
        printf("%d tables hold; %d gathers and reductions left out, %d done twice\n", asides.tables,
               asides.left_out, asides.doubled);
        assert_true(asides.tables > 40 && asides.left_out > 40);
    }
    arena_free(a);
}
/* ---- what is gathered and reduced ---- */
/* How often the rows have that word. */
static int words_like(const Json *rows, int ranks, const char *word) {
    Arena *a = arena_new();
    int n = 0;
    size_t len = strlen(word);
    for (int r = 0; r < ranks; r++) {
        const char *p = json_get((Json *)(uintptr_t)rows, arena_printf(a, "%d", r))->s;
        for (; *p; p += strcspn(p, " "), p += *p == ' ')
            n += strcspn(p, " ") == len && !strncmp(p, word, len);
    }
    arena_free(a);
    return n;
}
/* A linear layer a stage, as the table puts them, cut over two ranks. */
static const char *plan_of_table(Arena *a, const Json *j, const char *csv) {
    const Json *home = json_get((Json *)(uintptr_t)j, "stage_to_rank");
    int m = (int)json_get((Json *)(uintptr_t)j, "microbatches")->i;
    Str sizes = str_new(a), homes = str_new(a);
    str_add(&sizes, "4");
    for (int i = 0; i < home->n; i++) {
        str_addf(&sizes, ", %d", 3 + (i + 2) % 4);
        str_addf(&homes, "%s%d", i ? ", " : "", (int)home->item[i]->i);
    }
    return arena_printf(a,
                        "model: {kind: mlp, sizes: [%s], bias: true}\nmesh: {pp: %d, dp: 2}\n"
                        "data: {rows: %d}\npass: backward\nloss: dot\ndata_parallel: {mode: fsdp, "
                        "unit: block}\npipeline: {file: %s, stage_to_rank: [%s], microbatches: "
                        "%d}\n",
                        sizes.s, (int)json_get((Json *)(uintptr_t)j, "pp")->i, 2 * m, csv, homes.s,
                        m);
}
static int per_step(const PlanRun *r, const char *op, const char *layer) {
    int n = 0;
    for (int i = 0; i < r->t->n_collectives; i++) {
        const TraceCollective *c = &r->t->collectives[i];
        if (strcmp(c->op, op) || strcmp(c->axis, "dp")) continue;
        if (strstr(c->value, layer)) n += collective_per_step(c);
    }
    return n;
}
static struct { int once, anew; } gathered;
/* The plan does not say when parameters are gathered: each stage is as often as in the table, once
 * a step, and reduced as often; where the table gathers a stage anew that is told. */
static void gather_as_table(Arena *keep, const char *file) {
    Arena *a = arena_new();
    Json *j = golden_json(a, golden_path(keep, "schedules/%s", file)),
         *rows = json_get(j, "lowered");
    const char *kind, *csv = temp_path(a, "table.csv");
    Spoil all = {rows, (int)json_get(j, "pp")->i, -1, -1};
    int stages = rows ? json_get(j, "stage_to_rank")->n : 0;
    if (!stages || stages > 8) {
        arena_free(a);
        return;
    }
    FILE *f = fopen(csv, "w");
    fputs(spoilt_rows(a, &all, &kind), f);
    fclose(f);
    PlanRun r = plan_good(a, plan_of_table(a, j, csv), strstr(file, "pp2_v2_m4") != NULL);
    bool anew = false;
    for (int g = 0; g < stages; g++) {
        const char *layer = arena_printf(a, "net%d.", g + 1);
        int gathers = words_like(rows, all.ranks, arena_printf(a, "%dUNSHARD", g)),
            reduces = words_like(rows, all.ranks, arena_printf(a, "%dREDUCE_GRAD", g));
        assert_int_equal(reduces, 1);
        assert_int_equal(per_step(&r, "reduce_scatter", layer), reduces);
        assert_int_equal(per_step(&r, "all_gather", layer), 1);
        anew |= gathers > 1;
    }
    if (anew != run_has(&r, "N0018")) fail_msg("%s: %s", file, diags_text(a, r.d));
    *(anew ? &gathered.anew : &gathered.once) += 1;
    arena_free(a);
}
static void test_gathers_of_tables(void **state) {
    (void)state;
    Arena *a = arena_new();
    if (each_table(a, "tables", gather_as_table)) {
        printf("%d tables gather each stage once, %d anew\n", gathered.once, gathered.anew);
        assert_true(gathered.once > 20 && gathered.anew > 0);
    }
    arena_free(a);
}
/* The fix is that of what others wait for as well. */
static const struct {
    const char *rows, *says, *fix;
} deadlocks[] = {
    /* its own forward comes later */
    {"0B0,0F0\n1F0,1B0\n",
     "rank 0 stands before 0B0 and waits for 0F0 on rank 0, which it has not come to",
     "put 0F0 before 0B0 in the list of rank 0"},
    {"0F0,0B0\n1W0,1F0,1I0\n",
     "rank 1 stands before 1W0 and waits for 1I0 on rank 1, which it has not come to",
     "put 1I0 before 1W0 in the list of rank 1"},
    /* a circle over two ranks */
    {"0F0,0B1,0F1,0B0\n1F0,1F1,1B0,1B1\n",
     "rank 1 stands before 1F1 and waits for 0F1 on rank 0, which it has not come to",
     "put 0F1 before 0B1 in the list of rank 0"},
    {"0F0,0B1,0F1,0B0\n1F0,1F1,1B0,1B1\n",
     "rank 0 stands before 0B1 and waits for 0F1 on rank 0, which it has not come to", ""},
    {"0F0,0B0,0F1,0B1\n1F1,1B1,1F0,1B0\n",
     "rank 0 stands before 0B0 and waits for 1B0 on rank 1, which it has not come to",
     "put 1B0 before 1F1 in the list of rank 1"},
    /* a send that was left out */
    {"0F0,0RECV_B0,0B0\n1RECV_F0,1F0,1B0,1SEND_B0\n",
     "rank 1 stands before 1F0 and waits for 0SEND_F0 on rank 0, which is in no list",
     "put 0SEND_F0 into the list of rank 0"},
    /* a receive that was left out */
    {"0F0,0SEND_F0,0RECV_B0,0B0\n1F0,1B0,1SEND_B0\n",
     "waits for 1RECV_F0 on rank 1, which is in no list", "put 1RECV_F0 into the list of rank 1"},
    /* a send before its result is made, in halves */
    {"0F0,0SEND_F0,0RECV_B0,0B0\n1RECV_F0,1F0,1SEND_B0,1I0,1W0\n",
     "rank 1 stands before 1SEND_B0 and waits for 1I0 on rank 1, which it has not come to",
     "put 1I0 before 1SEND_B0 in the list of rank 1"},
    /* received in another order than sent */
    {"0F0,0SEND_F0,0F1,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
     "1RECV_F1,1RECV_F0,1F0,1B0,1SEND_B0,1F1,1B1,1SEND_B1\n",
     "message 0 from rank 0 is 0SEND_F0, and rank 1 receives it as 0SEND_F1",
     "let rank 1 receive in the order in which rank 0 sends"},
    /* three sends before the first is received: there is room for two */
    {"0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0RECV_B2,0RECV_B0,0B0,0RECV_B1,0B1,0B2\n"
     "1F0,1RECV_F0,1B0,1SEND_B0,1RECV_F1,1F1,1B1,1SEND_B1,1RECV_F2,1F2,1B2,1SEND_B2\n",
     "room: rank 1 has not begun to receive the 2 before",
     "put 1RECV_F0 before 1F0 in the list of rank 1"},
    /* pairs that run together wait for each other's half: first and second in the pair, first and
       first */
    {"0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,(1F1;1B0)OVERLAP_F_B,1B1\n",
     "rank 0 stands before 0F1 and waits for 1B0 on rank 1, which it has not come to",
     "put 1B0 before 1F1 in the list of rank 1"},
    {"0F0,(0F1;0B0)OVERLAP_F_B,0B1\n1F0,(1B0;1F1)OVERLAP_F_B,1B1\n",
     "rank 0 stands before 0F1 and waits for 1B0 on rank 1, which waits itself",
     "let 1B0 run apart from 1F1 in the list of rank 1"},
};
static void test_deadlocks(void **state) {
    (void)state;
    /* rank 0 waits for what rank 1 would do next: the fix is that of the rank behind it */
    static const int three[] = {0, 1, 2};
    Read far = read_rows("0F1,0F0,0B1,0B0\n1F1,1B1,1F0,1B0\n2F0,2F1,2B0,2B1\n", three, 3);
    said(&far, "E0311", "rank 0 stands before 0B1 and waits for 1B1 on rank 1, which waits itself",
         "put 2B1 before 2F0 in the list of rank 2");
    arena_free(far.a);
    for (size_t i = 0; i < sizeof deadlocks / sizeof *deadlocks; i++) {
        Read x = read_rows(deadlocks[i].rows, two, 2);
        said(&x, "E0311", deadlocks[i].says, deadlocks[i].fix);
        arena_free(x.a);
    }
    /* sends that wait for room, until there is as much as the fix says */
    static const int back[] = {0, 1, 0};
#define SENDS "0F0,0SEND_F0,0F1,0SEND_F1,0F2,0SEND_F2,0F3,0SEND_F3"
#define LAST(m) ",2RECV_F" m ",2F" m ",2B" m ",2SEND_B" m ",0RECV_B" m ",0B" m
#define MID(m) "1RECV_F" m ",1F" m ",1SEND_F" m ",1RECV_B" m ",1B" m ",1SEND_B" m ","
    Read x = read_rows(SENDS LAST("0") LAST("1") LAST("2") LAST("3") "\n" MID("0") MID("1") MID("2")
                           MID("3") "\n",
                       back, 3);
    said(&x, "E0311", "room: rank 1 has not begun to receive the 2 before",
         "let rank 1 receive before 1B0, or let more wait: `pipeline: {p2p_buffers: 3}`");
    PlayTimes t = play_even(x.s, 1, 1, 1, x.a);
    t.buffers = 3;
    assert_int_equal(play_schedule(x.s, &t, x.a)->n_blocked, 0);
    arena_free(x.a);
#undef SENDS
#undef LAST
#undef MID
}
/* ---- every schedule, spoiled by one action ---- */
/* A schedule with its messages, of one that needs no other numbers than these. */
static Schedule *lowered(Arena *a, const ScheduleKind *k) {
    const char *fix;
    ScheduleAsk ask = {k->name, 4, k->least_chunks, 8};
    if (!k->most_chunks) ask.chunks = 2;
    assert_null(schedule_refused(&ask, a, &fix));
    Schedule *s = schedule_make(&ask, a);
    assert_true(schedule_add_p2p(s));
    return s;
}
static int cell_of(const Schedule *s, int kind, int stage, int part) {
    return (kind * s->stages + stage) * s->parts + part;
}
/* What must be done before an action, by plain rules over the whole order: true if all was. */
static bool due(const Schedule *s, const bool *done, const Action *a) {
#define DONE(k, stage) done[cell_of(s, k, stage, a->part)]
    int last = s->stages - 1, g = a->stage;
    bool away_up =
             g < last && schedule_rank_of(s, g, a->part) != schedule_rank_of(s, g + 1, a->part),
         away_down =
             g > 0 && schedule_rank_of(s, g, a->part) != schedule_rank_of(s, g - 1, a->part);
    switch (a->kind) {
    case DO_F:
        return !g || (away_down ? DONE(DO_SEND_F, g - 1) && DONE(DO_RECV_F, g) : DONE(DO_F, g - 1));
    case DO_W: return DONE(DO_I, g);
    case DO_B:
    case DO_I:
        return DONE(DO_F, g) &&
               (g == last || (away_up ? DONE(DO_SEND_B, g + 1) && DONE(DO_RECV_B, g)
                                      : DONE(DO_B, g + 1) || DONE(DO_I, g + 1)));
    case DO_SEND_F: return DONE(DO_F, g);
    case DO_SEND_B: return DONE(DO_B, g) || DONE(DO_I, g);
    default: return true; /* a receive may be posted at any time */
    }
#undef DONE
}
/* Whether the spoiled order is found, and said where: an action of a rank, or a message that is
 * received as another. What is not found must be an order that everyone could go through. */
static bool is_found(const Schedule *s, const char *what) {
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    bool found = !schedule_check(s, d, diag_nowhere);
    if (!found) {
        PlayTimes t = play_even(s, 1, 1, 1, a);
        Play *play = play_schedule(s, &t, a);
        play_report(play, d, diag_nowhere);
        found = play->n_blocked > 0;
        if (found) assert_non_null(strstr(d->item[0].message, "rank "));
        bool *done = ARENA_ARRAY(a, bool, DO_KINDS * s->stages * s->parts);
        int all = 0;
        for (int i = 0; i < play->n_steps && !found; i++, all++) {
            const Action *x = &s->rank[play->step[i].rank].a[play->step[i].at];
            if (!due(s, done, x) && !x->joined && !(play->step[i].at && (x - 1)->joined))
                fail_msg("%s %s: %s is done too early", s->name, what, action_text(x, a));
            done[cell_of(s, x->kind, x->stage, x->part)] = true;
        }
        for (int r = 0; r < s->ranks && !found; r++) all -= s->rank[r].n;
        assert_true(found || !all);
    }
    if (found) assert_true(d->n > 0 && *d->item[0].message);
    arena_free(a);
    return found;
}
typedef struct {
    int swapped, dropped, sent; /* found */
    int kept;                   /* swaps that everyone can go through all the same */
} Spoilt;
static void spoil(Spoilt *n, const Schedule *s, int rank, int i) {
    Action *x = &s->rank[rank].a[i], was = *x, next = i + 1 < s->rank[rank].n ? x[1] : was;
    ActionList *l = &s->rank[rank];
    if (i + 1 < l->n && !was.joined && !next.joined) {
        x[0] = next, x[1] = was;
        *(is_found(s, "swapped") ? &n->swapped : &n->kept) += 1;
        x[0] = was, x[1] = next;
    }
    memmove(x, x + 1, sizeof *x * (size_t)(l->n - i - 1));
    l->n--;
    if (!is_found(s, "dropped")) fail_msg("%s: an action dropped is not found", s->name);
    n->dropped++;
    l->n++;
    memmove(x + 1, x, sizeof *x * (size_t)(l->n - i - 1));
    *x = was;
    if (action_computes(was.kind)) return;
    for (int by = -1; by <= 1; by += 2) { /* to the stage beside, or of the micro-batch beside */
        x->stage = was.stage + by;
        bool there = x->stage >= 0 && x->stage < s->stages;
        if (there && !is_found(s, "of another stage"))
            fail_msg("%s: a message to the neighbour", s->name);
        *x = was;
        x->part = was.part + by;
        there = x->part >= 0 && x->part < s->parts;
        if (there && !is_found(s, "of another part")) fail_msg("%s: another message", s->name);
        n->sent += 2;
        *x = was;
    }
}
/* An action of every schedule exchanged with the next one of its rank, dropped, or sent to the
 * neighbour: nothing hangs, and what cannot be gone through is refused with a place. */
static void test_spoilt(void **state) {
    (void)state;
    int kinds;
    const ScheduleKind *k = schedule_kinds(&kinds);
    for (int i = 0; i < kinds; i++) {
        Arena *a = arena_new();
        Spoilt n = {0};
        Schedule *s = lowered(a, &k[i]);
        assert_false(is_found(s, "as it is"));
        for (int r = 0; r < s->ranks; r++)
            for (int at = 0; at < s->rank[r].n; at++) spoil(&n, s, r, at);
        print_message("%-14s found: %d swaps (%d others can be gone through), %d dropped, %d sent "
                      "elsewhere\n",
                      k[i].name, n.swapped, n.kept, n.dropped, n.sent);
        assert_true(n.swapped > 0 && n.kept > 0 && n.sent > 0);
        arena_free(a);
    }
}
int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_small_tables),
        cmocka_unit_test(test_closed_forms),
        cmocka_unit_test(test_files),
        cmocka_unit_test(test_messages),
        cmocka_unit_test(test_odd_files),
        cmocka_unit_test(test_deadlocks),
        cmocka_unit_test(test_spoilt),
        cmocka_unit_test(test_asides),
        cmocka_unit_test(test_asides_of_tables),
        cmocka_unit_test(test_gathers_of_tables),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
