/* Diagnostics, the table of codes, reading and writing files, JSON. */
#include "base/diag.h"
#include "base/clock.h"
#include "base/file.h"
#include "formats/json.h"
#include <fcntl.h>
#include <poll.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static const Loc nowhere = {NULL, 0, 0};

static char *printed(const Diags *d, bool color) {
    FILE *f = tmpfile();
    assert_non_null(f);
    diags_print(d, f, color);
    long n = ftell(f);
    char *s = calloc((size_t)n + 1, 1);
    rewind(f);
    assert_int_equal(fread(s, 1, (size_t)n, f), n);
    fclose(f);
    return s;
}

#define assert_prints(d, want)                                                                     \
    do {                                                                                           \
        char *got_ = printed((d), false);                                                          \
        assert_string_equal(got_, (want));                                                         \
        free(got_);                                                                                \
    } while (0)

/* ---- diagnostics ---- */

static void test_print_place_caret_hint(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    const char *text = "model: x\n\tplän: [ß, colwsie]\nlast";
    diags_source(d, "old", "1\n2\n3\n", 6);
    diags_source(d, "p.yaml", "replaced by the next", 20);
    diags_source(d, "p.yaml", text, strlen(text));
    diags_source(d, "new", "4\n5\n6\n", 6);
    diag_error(d, "E0203", ((Loc){"p.yaml", 2, 13}), "colwise", "unknown style '%s'", "colwsie");
    diag_warn(d, "W0001", ((Loc){"p.yaml", 3, 5}), "look here", "odd");
    diag_note(d, "N0001", nowhere, NULL, "moved");
    diag_error(d, "E0101", ((Loc){"q.yaml", 0, 0}), "look there", "no file");
    /* the caret's line repeats the tab; columns are characters, not bytes */
    assert_prints(d, "p.yaml:2:13: error: unknown style 'colwsie' [E0203]\n"
                     "  \tplän: [ß, colwsie]\n"
                     "  \t           ^\n"
                     "  = help: did you mean 'colwise'?\n"
                     "p.yaml:3:5: warning: odd [W0001]\n"
                     "  last\n"
                     "      ^\n"
                     "  = help: look here\n"
                     "shardproof: note: moved [N0001]\n"
                     "q.yaml: error: no file [E0101]\n  = help: look there\n");
    char *s = printed(d, true);
    assert_non_null(strstr(s, "\033[1;31merror:\033[0m"));
    assert_non_null(strstr(s, "\033[1;31m^\033[0m"));
    free(s);
    arena_free(a);
}

static void test_long_lines_are_cut(void **state) {
    (void)state;
    Arena *a = arena_new();
    char line[400];
    for (int i = 0; i < 300; i++) line[i] = (char)('a' + i % 26);
    /* first character, middle, last: what stands over the caret is the character of that column */
    static const int cols[] = {1, 61, 150, 299, 300};
    for (size_t c = 0; c < sizeof cols / sizeof cols[0]; c++) {
        Diags *d = diags_new(a);
        diags_source(d, "p", line, 300);
        diag_error(d, "E0104", ((Loc){"p", 1, cols[c]}), NULL, "m");
        char *s = printed(d, false), *source = strchr(s, '\n') + 1,
             *caret = strchr(source, '\n') + 1;
        size_t width = (size_t)(caret - 1 - source), at = (size_t)(strchr(caret, '^') - caret);
        assert_true(width <= 2 + 120 + 6);
        assert_int_equal(source[at], line[cols[c] - 1]);
        assert_int_equal(strncmp(source, "  ...", 5) == 0, cols[c] > 61);
        assert_int_equal(strncmp(caret - 4, "...", 3) == 0, cols[c] < 240);
        free(s);
    }
    Diags *d = diags_new(a);
    diags_source(d, "p", line, 120); /* 120 are not too long */
    diag_error(d, "E0104", ((Loc){"p", 1, 120}), NULL, "m");
    char *s = printed(d, false);
    assert_null(strstr(s, "..."));
    free(s);
    arena_free(a);
}

static void test_order_dedupe_and_sources(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    char file[] = "b";
    diag_warn(d, "E0206", ((Loc){file, 9, 2}), NULL, "late");
    diag_warn(d, "E0206", ((Loc){"a", 1, 1}), NULL, "other file");
    diag_warn(d, "E0206", ((Loc){file, 9, 1}), NULL, "same line, before");
    diag_warn(d, "E0206", ((Loc){file, 2, 7}), NULL, "early");
    diag_warn(d, "E0206", ((Loc){file, 9, 2}), "another hint", "late"); /* identical */
    file[0] = 'x';                                                      /* texts are copied */
    assert_int_equal(d->n, 4);
    assert_prints(d, "b:2:7: warning: early [E0206]\nb:9:1: warning: same line, before [E0206]\n"
                     "b:9:2: warning: late [E0206]\na:1:1: warning: other file [E0206]\n");
    arena_free(a);
}

/* One line of a plan is wrong in many layers: said once. Other numbers, places and words stay
 * apart. */
static void test_layers_are_folded(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    for (int pass = 0; pass < 2; pass++) /* twice the same is no news */
        for (int i = 0; i < 126; i++)
            diag_error(d, "E0401", ((Loc){"p", 1, 2}), NULL, "%d dims: layers.%d.w2 of layers.%d",
                       2, i, i);
    for (int i = 9; i >= 0; i -= i ? 9 : 1)
        diag_error(d, "E0401", ((Loc){"p", 2, 2}), NULL, "layers.%d.w2", i);
    for (int i = 0; i < 3; i++) diag_error(d, "E0401", ((Loc){"p", 3, 2}), NULL, "blk.%d.w", i);
    assert_int_equal(d->n, 3);
    for (int i = 0; i < 2; i++) {
        diag_error(d, "E0401", ((Loc){"p", 4, 2}), NULL, "dim %d", i);
        diag_error(d, "E0401", ((Loc){"p", 4, 3}), NULL, "off by 1.%d", i + 1);
        diag_error(d, "E0401", ((Loc){"p", 4, 4}), NULL, "layers.%d has %d", i, i);
        diag_error(d, "E0401", ((Loc){"p", 4, 5}), NULL, "layers.%d and layers.3", i + 3);
        diag_error(d, "E0401", ((Loc){"p", 4, 6}), NULL, "layers.1.%s", i ? "x" : "y");
    }
    assert_int_equal(d->n, 13);
    assert_string_equal(d->item[0].message, "2 dims: layers.0.w2 of layers.0, and 125 more layers");
    assert_string_equal(d->item[1].message, "layers.9.w2, and 1 more layer");
    assert_string_equal(d->item[2].message, "blk.0.w, and 2 more of blk");
    for (int i = 3; i < 13; i++) assert_null(strstr(d->item[i].message, "more"));
    arena_free(a);
}

static void test_terminal_gets_no_control_characters(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    diags_source(d, "p", "a\033]0;x\007\xff\xc2\x9b!", 11);
    diag_warn(d, "E0201", ((Loc){"p", 1, 10}), NULL, "key '\033[31m\n\xc2\x9b'");
    assert_prints(d,
                  "p:1:10: warning: key '\\x1b[31m \\x9b' [E0201]\n  a\\x1b]0;x\\x07\\xff\\x9b!\n"
                  "                       ^\n");
    arena_free(a);
}

static void test_exit_codes(void **state) {
    (void)state;
    /* each pair: the first one wins, in either order */
    static const char *const wins[][2] = {{"E0901", "E0701"}, {"E0701", "E0105"},
                                          {"E0105", "E0201"}, {"E0201", "E0212"},
                                          {"E0212", "E0402"}, {"E0701", "E0402"}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof wins / sizeof wins[0]; i++)
        for (int flip = 0; flip < 2; flip++) {
            Diags *d = diags_new(a);
            assert_int_equal(diags_exit(d), 0);
            diag_error(d, wins[i][flip], nowhere, NULL, "m");
            diag_error(d, wins[i][!flip], nowhere, NULL, "m");
            assert_int_equal(diags_exit(d), diag_code(wins[i][0])->exit);
            assert_int_equal(diags_errors(d), 2);
        }
    Diags *d = diags_new(a);
    diag_warn(d, "E0402", nowhere, NULL, "only a warning");
    diag_note(d, "N0003", nowhere, NULL, "only a note");
    assert_int_equal(diags_exit(d), 0);
    assert_int_equal(diags_errors(d), 0);
    arena_free(a);
}

static void test_full_collection_keeps_what_matters(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    for (int i = 0; i < DIAG_KEEP + 10; i++)
        diag_note(d, "N0006", ((Loc){"p", i + 1, 1}), NULL, "note");
    assert_int_equal(d->n, DIAG_KEEP);
    assert_int_equal(d->hidden, 10);
    for (int i = 0; i < DIAG_KEEP + 5; i++)
        diag_error(d, "E0402", ((Loc){"p", i + 1, 2}), NULL, "error");
    assert_int_equal(diags_errors(d), DIAG_KEEP);
    assert_int_equal(diags_exit(d), 1);
    diag_error(d, "E0701", ((Loc){"p", 1, 3}), NULL, "limit");
    assert_int_equal(diags_exit(d), 5);
    assert_int_equal(d->n, DIAG_KEEP);
    char *s = printed(d, false);
    assert_non_null(strstr(s, "more of these are not shown"));
    free(s);
    arena_free(a);
}

static void test_long_messages_are_shortened(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    char name[5001];
    for (int i = 0; i < 2500; i++) memcpy(name + 2 * i, "ä", 2);
    name[5000] = 0;
    diag_error(d, "E0201", nowhere, NULL, "unknown key '%s' here", name);
    const char *m = d->item[0].message;
    assert_true(strlen(m) < 700);
    assert_non_null(strstr(m, "ä ... ä")); /* cut between characters */
    assert_string_equal(m + strlen(m) - 6, "' here");
    arena_free(a);
}

static void test_nearest(void **state) {
    (void)state;
    static const char *const names[] = {"colwise", "rowwise", "replicate", "sequence_parallel",
                                        "tp",      "dp",      "Colwise2",  NULL};
    static const struct {
        const char *word, *near;
    } t[] = {
        {"colwsie", "colwise"}, /* a transposition is one step */
        {"colwis", "colwise"},
        {"rowwisee", "rowwise"},
        {"COLWISE", "colwise"}, /* case costs nothing */
        {"sequenceparalel", "sequence_parallel"},
        {"tq", "tp"}, /* short words: one step */
        {"tqq", NULL},
        {"xyz", NULL},
        {"", NULL},
        {"sequence", "sequence_parallel"}, /* the word goes on */
        {"colwise2", "Colwise2"},          /* the better spelling wins */
        {"replicaaaaate", "replicate"},
        {"replicaaaaaate", NULL}, /* at most 4 */
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        const char *got = diag_nearest(t[i].word, names);
        if (t[i].near) assert_string_equal(got, t[i].near);
        else assert_null(got);
    }
    char big[5000];
    memset(big, 'a', sizeof big - 1);
    big[sizeof big - 1] = 0;
    assert_null(diag_nearest(big, names));
}

/* An error always says what to do: what its place knows, else what its code knows. */
static void test_help(void **state) {
    (void)state;
    Arena *a = arena_new();
    for (int i = 0; i < n_diag_codes; i++) {
        Diags *d = diags_new(a);
        if (!diag_codes[i].help) continue;
        diag_error(d, diag_codes[i].code, diag_nowhere, NULL, "something is wrong");
        assert_string_equal(d->item[0].hint, diag_codes[i].help);
        diag_error(d, diag_codes[i].code, diag_nowhere, "do this", "something else is wrong");
        assert_string_equal(d->item[1].hint, "do this");
        diag_warn(d, diag_codes[i].code, diag_nowhere, NULL, "something is odd");
        assert_null(d->item[2].hint);
    }
    arena_free(a);
}
static void test_codes_table(void **state) {
    (void)state;
    for (int i = 0; i < n_diag_codes; i++) {
        const DiagCode *c = &diag_codes[i];
        assert_int_equal(strlen(c->code), 5);
        assert_true(strlen(c->title) > 5 && strlen(c->text) > 10);
        assert_ptr_equal(diag_code(c->code), c); /* unique */
        if (c->code[0] != 'E') assert_int_equal(c->exit, 0);
        if (strncmp(c->code, "E07", 3) == 0 && strcmp(c->code, "E0704") != 0)
            assert_int_equal(c->exit, 5);
        if (c->code[0] == 'E') assert_true(c->exit > 0);
        /* no error without help: of wrong words the command line says "Try ... --help" */
        assert_int_equal(c->help != NULL, c->code[0] == 'E' && strcmp(c->code, "E0212"));
        if (c->help) assert_true(strlen(c->help) > 10 && !strchr(c->help, '\n'));
    }
    static const struct {
        const char *code;
        int exit;
    } t[] = {{"E0101", 3}, {"E0105", 4}, {"E0203", 3}, {"E0205", 3}, {"E0211", 3}, {"E0212", 2},
             {"E0302", 3}, {"E0303", 1}, {"E0304", 1}, {"E0305", 1}, {"E0307", 3}, {"E0401", 3},
             {"E0402", 1}, {"E0403", 1}, {"E0404", 1}, {"E0405", 1}, {"E0406", 1}, {"E0501", 1},
             {"E0502", 3}, {"E0503", 3}, {"E0504", 3}, {"E0505", 1}, {"E0506", 1}, {"E0507", 3},
             {"E0601", 5}, {"E0701", 5}, {"E0704", 3}};
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++)
        assert_int_equal(diag_code(t[i].code)->exit, t[i].exit);
    assert_null(diag_code("E9999"));
}

/* ---- files ---- */

typedef struct {
    Arena *a;
    Diags *d;
    char dir[64];
} Files;

static int setup_files(void **state) {
    Files *f = calloc(1, sizeof *f);
    f->a = arena_new();
    f->d = diags_new(f->a);
    strcpy(f->dir, "/tmp/sp_base_XXXXXX");
    *state = f;
    return mkdtemp(f->dir) ? 0 : -1;
}
static int teardown_files(void **state) {
    Files *f = *state;
    char cmd[128];
    snprintf(cmd, sizeof cmd, "rm -rf '%s'", f->dir);
    int rc = system(cmd);
    arena_free(f->a);
    free(f);
    return rc;
}
static const char *in(Files *f, const char *name) { return file_join(f->a, f->dir, name); }
static void put(Files *f, const char *name, const char *text) {
    FILE *h = fopen(in(f, name), "w");
    assert_non_null(h);
    fputs(text, h);
    fclose(h);
}
static const char *last_code(Files *f) { return f->d->n ? f->d->item[f->d->n - 1].code : ""; }
static int entries(Files *f) {
    char cmd[128];
    snprintf(cmd, sizeof cmd, "ls -A '%s' | wc -l", f->dir);
    FILE *p = popen(cmd, "r");
    int n = -1;
    assert_int_equal(fscanf(p, "%d", &n), 1);
    pclose(p);
    return n;
}

static void test_read_regular(void **state) {
    Files *f = *state;
    size_t n;
    put(f, "plan.yaml", "a: 1\n");
    char *s = file_read(f->a, f->d, in(f, "plan.yaml"), 5, nowhere, &n);
    assert_string_equal(s, "a: 1\n");
    assert_int_equal(n, 5);
    put(f, "empty", "");
    s = file_read(f->a, f->d, in(f, "empty"), 5, nowhere, &n);
    assert_string_equal(s, "");
    assert_int_equal(n, 0);
    assert_int_equal(f->d->n, 0);
    /* /proc files say that they have no size */
    s = file_read(f->a, f->d, "/proc/self/status", 1 << 20, nowhere, &n);
    assert_true(n > 100 && strncmp(s, "Name:", 5) == 0);
}

static void test_read_refusals(void **state) {
    Files *f = *state;
    size_t n;
    put(f, "plan.yaml", "a: 12\n");
    assert_null(file_read(f->a, f->d, in(f, "plna.yaml"), 99, nowhere, &n));
    assert_string_equal(last_code(f), "E0101");
    assert_string_equal(f->d->item[0].hint, in(f, "plan.yaml"));
    Loc at = {"other.yaml", 3, 4};
    assert_null(file_read(f->a, f->d, in(f, "plan.yaml/x"), 99, at, &n));
    assert_string_equal(last_code(f), "E0101");
    assert_string_equal(f->d->item[1].loc.file, "other.yaml");
    assert_int_equal(f->d->item[1].loc.col, 4);
    assert_null(file_read(f->a, f->d, f->dir, 99, nowhere, &n));
    assert_string_equal(last_code(f), "E0102");
    assert_null(file_read(f->a, f->d, in(f, "plan.yaml"), 5, nowhere, &n));
    assert_string_equal(last_code(f), "E0702");
    assert_null(file_read(f->a, f->d, "/proc/self/status", 10, nowhere, &n)); /* has no size */
    assert_string_equal(last_code(f), "E0702");
    assert_null(file_read(f->a, f->d, "/dev/zero", 1000, nowhere, &n)); /* has no size and no end */
    assert_string_equal(last_code(f), "E0702");
    assert_int_equal(diags_exit(f->d), 5);
}

/* Does `act` in a process of its own, which says whether it was in time for those who wait 2 s. */
static pid_t beside(bool (*act)(const char *path), const char *path) {
    double t = clock_seconds();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid) return pid;
    bool ok = act(path);
    _exit(clock_seconds() - t > 1.5 ? 2 : !ok);
}
/* 0: it did what it should; 2: the machine was too busy for it, which says nothing. */
static int ended(pid_t pid) {
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}
static bool write_late_in_pieces(const char *path) {
    usleep(300000);
    int fd = open(path, O_RDWR); /* does not wait for a reader who may have gone */
    bool ok = write(fd, "mod", 3) == 3;
    usleep(300000);
    ok = write(fd, "el: x", 5) == 5 && ok;
    close(fd);
    return ok;
}
static void read_late_writer(Files *f, const char *path) {
    for (int again = 0; again < 10; again++) {
        size_t n;
        Diags *d = diags_new(f->a);
        /* what is written before the reader comes is not lost */
        int keep = open(path, O_RDONLY | O_NONBLOCK);
        pid_t pid = beside(write_late_in_pieces, path);
        const char *s = file_read(f->a, d, path, 99, nowhere, &n);
        int how = ended(pid);
        close(keep);
        assert_int_not_equal(how, 1);
        if (how == 2) continue;
        assert_string_equal(s, "model: x");
        assert_int_equal(d->n, 0);
        return;
    }
    fail_msg("a process that sleeps 0.6 s was never back within 1.5 s");
}
static void test_read_fifo(void **state) {
    Files *f = *state;
    size_t n;
    const char *path = in(f, "fifo");
    assert_int_equal(mkfifo(path, 0600), 0);
    /* nobody writes: it gives up after 2 s; a busy machine may disturb a measurement, not ten */
    double took = 9;
    for (int again = 0; again < 10 && took >= 4; again++) {
        Diags *d = diags_new(f->a);
        double t = clock_seconds();
        assert_null(file_read(f->a, d, path, 99, nowhere, &n));
        took = clock_seconds() - t;
        assert_string_equal(d->item[0].code, "E0102");
        assert_true(took > 1.5);
    }
    assert_true(took < 4);
    read_late_writer(f, path);
    /* a writer that never closes */
    int keep = open(path, O_RDWR);
    assert_int_equal(write(keep, "abc", 3), 3);
    char *s = file_read(f->a, f->d, path, 99, nowhere, &n);
    assert_string_equal(s, "abc");
    assert_string_equal(last_code(f), "W0001");
    close(keep);
}

static void test_write_is_all_or_nothing(void **state) {
    Files *f = *state;
    size_t n;
    put(f, "out", "old");
    chmod(in(f, "out"), 0640);
    OutFile *o = file_create(f->d, in(f, "out"));
    assert_non_null(o);
    fputs("new and longer", file_stream(o));
    fflush(file_stream(o));
    assert_true(entries(f) <= 2); /* the target, and beside it at most the new one */
    assert_string_equal(file_read(f->a, f->d, in(f, "out"), 99, nowhere, &n), "old");
    assert_true(file_commit(f->d, o));
    assert_string_equal(file_read(f->a, f->d, in(f, "out"), 99, nowhere, &n), "new and longer");
    struct stat st;
    stat(in(f, "out"), &st);
    assert_int_equal(st.st_mode & 0777, 0640);
    assert_int_equal(entries(f), 1);
    o = file_create(f->d, in(f, "out"));
    fputs("half", file_stream(o));
    file_abandon(o);
    o = file_create(f->d, in(f, "fresh"));
    fputs("half", file_stream(o));
    base_run_cleanups(); /* what a signal does */
    assert_int_equal(entries(f), 1);
    file_abandon(o);
    assert_string_equal(file_read(f->a, f->d, in(f, "out"), 99, nowhere, &n), "new and longer");
    assert_true(file_write(f->d, in(f, "w"), "a\0b", 3));
    file_read(f->a, f->d, in(f, "w"), 99, nowhere, &n);
    assert_int_equal(n, 3);
    assert_int_equal(f->d->n, 0);
}

static bool read_late(const char *path) {
    usleep(200000);
    char buf[8] = {0};
    int fd = open(path, O_RDONLY | O_NONBLOCK); /* a writer who has gone is not waited for */
    poll(&(struct pollfd){fd, POLLIN, 0}, 1, 3000);
    return read(fd, buf, 8) == 4 && memcmp(buf, "data", 4) == 0;
}
static void write_to_late_reader(Files *f) {
    for (int again = 0; again < 10; again++) {
        Diags *d = diags_new(f->a);
        pid_t pid = beside(read_late, in(f, "fifo"));
        OutFile *o = file_create(d, in(f, "fifo"));
        int names = entries(f);
        if (o) fputs("data", file_stream(o));
        bool written = o && file_commit(d, o);
        int how = ended(pid);
        if (how == 2) continue;
        assert_int_equal(how, 0);
        assert_true(written && d->n == 0);
        assert_int_equal(names, 3); /* real, link, fifo: nothing beside it */
        return;
    }
    fail_msg("a process that sleeps 0.2 s was never back within 1.5 s");
}
static void test_write_through_links(void **state) {
    Files *f = *state;
    size_t n;
    put(f, "real", "old");
    assert_int_equal(symlink("real", in(f, "link")), 0);
    assert_true(file_write(f->d, in(f, "link"), "new", 3));
    struct stat st;
    lstat(in(f, "link"), &st);
    assert_true(S_ISLNK(st.st_mode)); /* the link stays, what it names is replaced */
    assert_string_equal(file_read(f->a, f->d, in(f, "real"), 99, nowhere, &n), "new");
    /* a FIFO is written through, never replaced */
    assert_int_equal(mkfifo(in(f, "fifo"), 0600), 0);
    write_to_late_reader(f);
    lstat(in(f, "fifo"), &st);
    assert_true(S_ISFIFO(st.st_mode));
    assert_int_equal(f->d->n, 0);
}

static void test_broken_pipe_ends_quietly(void **state) {
    Files *f = *state;
    assert_int_equal(mkfifo(in(f, "fifo"), 0600), 0);
    void (*old)(int) = signal(SIGPIPE, SIG_IGN);
    int reader = open(in(f, "fifo"), O_RDONLY | O_NONBLOCK);
    OutFile *o = file_create(f->d, in(f, "fifo"));
    assert_non_null(o);
    close(reader);
    fputs("nobody reads this", file_stream(o));
    assert_true(file_commit(f->d, o));
    assert_int_equal(f->d->n, 0);
    /* a reader that never comes */
    double took = 9;
    for (int again = 0; again < 10 && took >= 4; again++) {
        double t = clock_seconds();
        assert_null(file_create(f->d, in(f, "fifo")));
        took = clock_seconds() - t;
        assert_string_equal(last_code(f), "E0105");
    }
    assert_true(took < 4);
    signal(SIGPIPE, old);
}

static void test_write_to_own_stdout(void **state) {
    Files *f = *state;
    size_t n;
    /* stdout is a regular file and the output is /dev/stdout: it must not be replaced under us */
    pid_t pid = fork();
    if (!pid) {
        if (!freopen(in(f, "log"), "w", stdout)) _exit(9);
        fputs("before ", stdout);
        bool ok = file_write(f->d, "/dev/stdout", "middle ", 7);
        ok = file_write(f->d, in(f, "log"), "named ", 6) && ok;
        fputs("after", stdout);
        fflush(stdout);
        _exit(!ok);
    }
    int status;
    waitpid(pid, &status, 0);
    assert_int_equal(WEXITSTATUS(status), 0);
    assert_string_equal(file_read(f->a, f->d, in(f, "log"), 99, nowhere, &n),
                        "before middle named after");
    assert_int_equal(entries(f), 1);
}

static void test_write_refusals(void **state) {
    Files *f = *state;
    assert_null(file_create(f->d, in(f, "no/such/dir/x")));
    assert_string_equal(last_code(f), "E0105");
    assert_string_equal(f->d->item[0].hint, "the folder does not exist");
    assert_null(file_create(f->d, f->dir));
    assert_int_equal(f->d->n, 2);
    assert_false(file_write(f->d, "/dev/full", "x", 1)); /* noticed when it is flushed */
    assert_int_equal(f->d->n, 3);
    assert_non_null(strstr(f->d->item[2].message, "No space"));
    assert_int_equal(diags_exit(f->d), 4);
    assert_null(file_create(f->d, ""));
    assert_int_equal(entries(f), 0);
}

static void test_dirs_and_joins(void **state) {
    Files *f = *state;
    struct stat st;
    assert_true(file_make_dirs(f->d, in(f, "a/b/c")));
    assert_true(file_make_dirs(f->d, in(f, "a/b/c/")));
    assert_true(stat(in(f, "a/b/c"), &st) == 0 && S_ISDIR(st.st_mode));
    put(f, "file", "x");
    assert_false(file_make_dirs(f->d, in(f, "file/d")));
    assert_false(file_make_dirs(f->d, in(f, "file")));
    assert_string_equal(last_code(f), "E0105");
    assert_string_equal(file_join(f->a, "/a/b", "c.yaml"), "/a/b/c.yaml");
    assert_string_equal(file_join(f->a, "/a/b/", "c"), "/a/b/c");
    assert_string_equal(file_join(f->a, "/a", "/c"), "/c");
    assert_string_equal(file_join(f->a, ".", "c"), "c");
    assert_string_equal(file_dir(f->a, "a/b.yaml"), "a");
    assert_string_equal(file_dir(f->a, "b.yaml"), ".");
    assert_string_equal(file_dir(f->a, "/b.yaml"), "/");
}
/* One diagnostic is one write, so that those of several processes are not mixed: here each write is
 * a packet. */
static void test_diag_in_one_write(void **state) {
    (void)state;
    Arena *a = arena_new();
    Diags *d = diags_new(a);
    static const char plan[] = "model: llama3-8b\nmesh: {tp: 2}\n";
    diags_source(d, "p.yaml", plan, strlen(plan));
    diag_error(d, "E0603", ((Loc){"p.yaml", 2, 1}), "mpirun -n 2, or another mesh", "3 processes");
    int ends[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    FILE *out = fdopen(ends[1], "w");
    setvbuf(out, NULL, _IONBF, 0);
    diags_print(d, out, false);
    char said[4096];
    ssize_t n = recv(ends[0], said, sizeof said - 1, MSG_DONTWAIT);
    assert_true(n > 0);
    said[n] = 0;
    assert_string_equal(said, "p.yaml:2:1: error: 3 processes [E0603]\n  mesh: {tp: 2}\n  ^\n"
                              "  = help: mpirun -n 2, or another mesh\n");
    assert_true(recv(ends[0], said, sizeof said, MSG_DONTWAIT) < 0); /* nothing follows */
    fclose(out);
    close(ends[0]);
    arena_free(a);
}

/* ---- JSON ---- */

static void test_json_reads_all_kinds(void **state) {
    (void)state;
    Arena *a = arena_new();
    const char *e, *t = "\xEF\xBB\xBF{\"z\": [1, -2.5, true, null, \"a\\u00e9\\n\"], \"a\": "
                        "{\"big\": 9223372036854775807,\"more\": 9223372036854775808, \"low\": "
                        "-9223372036854775808, \"much\": 123456789012345678901, \"f\": 2.0}}";
    int line, col;
    Json *j = json_parse(a, t, strlen(t), &e, &line, &col);
    assert_non_null(j);
    assert_null(e);
    assert_int_equal(j->n, 2);
    assert_string_equal(j->key[0], "z"); /* the order of the text */
    Json *z = json_get(j, "z"), *o = json_get(j, "a");
    assert_int_equal(z->n, 5);
    assert_int_equal(z->item[0]->kind, JSON_INT);
    assert_true(z->item[0]->i == 1 && z->item[0]->r == 1.0);
    assert_true(z->item[1]->kind == JSON_REAL && z->item[1]->r == -2.5);
    assert_true(z->item[2]->kind == JSON_BOOL && z->item[2]->b);
    assert_int_equal(z->item[3]->kind, JSON_NULL);
    assert_string_equal(z->item[4]->s, "a\xC3\xA9\n");
    assert_true(json_get(o, "big")->i == INT64_MAX && json_get(o, "low")->i == INT64_MIN);
    assert_true(json_get(o, "more")->kind == JSON_REAL && json_get(o, "more")->r == 0x1p63);
    assert_true(json_get(o, "much")->r == 123456789012345678901.0);
    assert_int_equal(json_get(o, "f")->kind, JSON_REAL);
    j = json_parse(a, "-9223372036854775809", 20, &e, &line, &col); /* nothing but a number */
    assert_true(j->kind == JSON_REAL && j->r == -0x1p63);
    assert_null(json_get(o, "none"));
    assert_null(json_get(z, "a"));
    assert_null(json_get(NULL, "a"));
    arena_free(a);
}

static void test_json_errors_have_places(void **state) {
    (void)state;
    static const struct {
        const char *text, *error;
        int line, col;
    } t[] = {
        {"{\"a\": 1,\n  \"b\": x}", "invalid token", 2, 8},
        {"{\"ä\": 1\n,, 2}", "string or '}' expected", 2, 2},
        {"[1, 99999999999999999999, tru]", "invalid token", 1,
         27}, /* the patched number does not shift it */
        {"{\"a\": 1, \"a\": 2}", "duplicate object key \"a\"", 1, 10},
        {"{\"layers.0.attention.wq.weight\": 1, \"layers.0.attention.wq.weight\": 2}",
         "key \"layers.0.attention.wq.weight\"", 1, 37},
        {"{\"x\": 1e5, \"a quote: \\\" and a \\\\\": 1,\n \"a quote: \\\" and a \\\\\": 2}",
         "key \"a quote: \\\" and a \\\\\"", 2, 2},
        {"[1] 2", "end of file expected", 1, 5},
        {"", "'[' or '{'", 1, 1},
        {"\"\\u0000\"", "", 1, 1},
        {"{\"a\": \"\xff\"}", "unable to decode byte 0xff", 1, 8},
        {"[1e999]", "real number overflow", 1, 2},
        {"[NaN]", "invalid token", 1, 2},
    };
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        Arena *a = arena_new();
        const char *e;
        int line, col;
        assert_null(json_parse(a, t[i].text, strlen(t[i].text), &e, &line, &col));
        assert_non_null(e);
        if (*t[i].error && *t[i].text && !strstr(e, t[i].error))
            fail_msg("'%s' gave '%s'", t[i].text, e);
        if (line != t[i].line || abs(col - t[i].col) > 1)
            fail_msg("'%s' (%s) at %d:%d", t[i].text, e, line, col);
        arena_free(a);
    }
}

static void test_json_depth(void **state) {
    (void)state;
    char t[200000];
    const char *e;
    int line, col;
    for (int depth = 63; depth <= 66; depth++) {
        Arena *a = arena_new();
        memset(t, '[', (size_t)depth);
        memset(t + depth, ']', (size_t)depth);
        Json *j = json_parse(a, t, (size_t)depth * 2, &e, &line, &col);
        assert_int_equal(j != NULL, depth <= 64);
        if (!j) assert_int_equal(col, 65);
        arena_free(a);
    }
    Arena *a = arena_new();
    memset(t, '[', sizeof t);
    assert_null(json_parse(a, t, sizeof t, &e, &line, &col));
    /* brackets in strings are no depth */
    char s[300] = "[\"";
    memset(s + 2, '[', 200);
    strcpy(s + 202, "\\\"[\"]");
    assert_non_null(json_parse(a, s, strlen(s), &e, &line, &col));
    arena_free(a);
}

static void test_json_writes(void **state) {
    (void)state;
    Arena *a = arena_new();
    JsonWriter w = json_writer(a);
    json_open(&w, NULL, '{');
    json_str(&w, "s", "q\"\\\n\t\x01 é\xff");
    json_open(&w, "a", '[');
    json_int(&w, NULL, INT64_MIN);
    json_bool(&w, NULL, false);
    json_bool(&w, NULL, true);
    json_real(&w, NULL, INFINITY);
    json_null(&w, NULL);
    json_open(&w, NULL, '{');
    json_close(&w, '}');
    json_close(&w, ']');
    json_raw(&w, "r", "[1]");
    json_str(&w, "n", NULL);
    json_real(&w, "nan", NAN);
    json_real(&w, "inf", -INFINITY);
    json_close(&w, '}');
    json_newline(&w);
    json_int(&w, NULL, 2);
    json_newline(&w);
    assert_string_equal(w.s.s,
                        "{\"s\":\"q\\\"\\\\\\n\\t\\u0001 "
                        "é\xEF\xBF\xBD\",\"a\":[-9223372036854775808,false,true,\"inf\",null,{}],"
                        "\"r\":[1],\"n\":null,\"nan\":\"nan\",\"inf\":\"-inf\"}\n2\n");
    arena_free(a);
}

static void test_json_reals_round_trip(void **state) {
    (void)state;
    static const struct {
        double v;
        const char *text;
    } t[] = {{0.1, "0.1"},
             {1.0 / 3, "0.3333333333333333"},
             {2, "2"},
             {1e22, "1e+22"},
             {5e-324, "5e-324"},
             {-0.0, "-0.0"},
             {0.1 + 0.2, "0.30000000000000004"},
             {1.2e-6, "1.2e-06"},
             {123456789012345680.0, "1.2345678901234568e+17"}};
    Arena *a = arena_new();
    for (size_t i = 0; i < sizeof t / sizeof t[0]; i++) {
        JsonWriter w = json_writer(a);
        json_real(&w, NULL, t[i].v);
        assert_string_equal(w.s.s, t[i].text);
    }
    uint64_t x = 88172645463325252u;
    for (int i = 0; i < 20000; i++) {
        x ^= x << 13, x ^= x >> 7, x ^= x << 17;
        double v, back;
        memcpy(&v, &x, 8);
        if (!isfinite(v)) continue;
        JsonWriter w = json_writer(a);
        json_real(&w, NULL, v);
        const char *e;
        int line, col;
        Json *j = json_parse(a, w.s.s, w.s.n, &e, &line, &col);
        if (!j) fail_msg("%s: %s", w.s.s, e);
        back = j->r;
        assert_memory_equal(&back, &v, 8);
    }
    arena_free(a);
}

/* Arrays whose blocks move while others grow beside them: nothing is lost. */
static void test_large_arrays(void **state) {
    (void)state;
    enum { N = 300000 };
    Arena *a = arena_new();
    typedef struct {
        int64_t v, more;
    } Item;
    Item *x = NULL, *y = NULL;
    int nx = 0, ny = 0, cap_x = 0, cap_y = 0;
    const char *kept = arena_strdup(a, "kept");
    for (int i = 0; i < N; i++) {
        *ARENA_PUSH_LARGE(a, x, nx, cap_x) = (Item){i, 5};
        if (i % 3 == 0) *ARENA_PUSH_LARGE(a, y, ny, cap_y) = (Item){-i, 7};
        if (i % 1000 == 0) memset(arena_alloc(a, 700000), 1, 700000);
        if (i % 1000 == 0) kept = arena_strdup(a, kept);
    }
    assert_int_equal(nx, N);
    assert_string_equal(kept, "kept");
    for (int i = 0; i < N; i++) assert_true(x[i].v == i && x[i].more == 5);
    for (int i = 0; i < ny; i++) assert_true(y[i].v == -3 * i && y[i].more == 7);
    arena_free(a);
}

int main(void) {
#define FILES(t) cmocka_unit_test_setup_teardown(t, setup_files, teardown_files)
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_large_arrays),
        cmocka_unit_test(test_print_place_caret_hint),
        cmocka_unit_test(test_long_lines_are_cut),
        cmocka_unit_test(test_order_dedupe_and_sources),
        cmocka_unit_test(test_layers_are_folded),
        cmocka_unit_test(test_terminal_gets_no_control_characters),
        cmocka_unit_test(test_exit_codes),
        cmocka_unit_test(test_full_collection_keeps_what_matters),
        cmocka_unit_test(test_long_messages_are_shortened),
        cmocka_unit_test(test_nearest),
        cmocka_unit_test(test_codes_table),
        cmocka_unit_test(test_help),
        FILES(test_read_regular),
        FILES(test_read_refusals),
        FILES(test_read_fifo),
        FILES(test_write_is_all_or_nothing),
        FILES(test_write_through_links),
        FILES(test_broken_pipe_ends_quietly),
        FILES(test_write_to_own_stdout),
        FILES(test_write_refusals),
        FILES(test_dirs_and_joins),
        cmocka_unit_test(test_diag_in_one_write),
        cmocka_unit_test(test_json_reads_all_kinds),
        cmocka_unit_test(test_json_errors_have_places),
        cmocka_unit_test(test_json_depth),
        cmocka_unit_test(test_json_writes),
        cmocka_unit_test(test_json_reals_round_trip),
    };
    return cmocka_run_group_tests_name("base", tests, NULL, NULL);
}
