/* Hostile inputs through the whole program, as a process of its own: each gets its diagnostic,
 * place and exit code, within 100 ms of processor time (where the machine is slow or busy: six
 * times an ordinary run, measured beside it) and 64 MiB, and leaves nothing behind. This program
 * plays shardproof when it is told to, so that every build (sanitizers too) tests its own code. */
#include "cli/cli.h"
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <math.h>
#include <setjmp.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#if defined __SANITIZE_ADDRESS__ || defined __SANITIZE_THREAD__
enum { SLOWER = 20, SANITIZED = 1 };
#else
enum { SLOWER = 1, SANITIZED = 0 };
#endif
enum { CPU_MS = 100, RSS_KIB = 64 << 10, ADDRESS_SPACE = 1 << 30, PATIENCE_S = 300, ORDINARY = 6 };

static char self[4096]; /* this program */
static char dir[] = "/tmp/test_hostile_XXXXXX";
static Arena *arena;
static double cpu_limit;
static bool nobody; /* the next runs are not root's */

/* ---- running ---- */
typedef struct {
    int code; /* -1: killed by a signal */
    double cpu_ms;
    long rss_kib;
    char err[8192], out[2048];
} Ran;

static void slurp(const char *path, char *to, size_t size) {
    int fd = open(path, O_RDONLY);
    ssize_t n = fd >= 0 ? read(fd, to, size - 1) : 0;
    to[n > 0 ? n : 0] = 0;
    if (fd >= 0) close(fd);
}
static Ran run(char *const *argv, const char *in) {
    Ran r = {0};
    const char *err = arena_printf(arena, "%s/stderr", dir),
               *out = arena_printf(arena, "%s/stdout", dir);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        int fi = open(in ? in : "/dev/null", O_RDONLY | O_NONBLOCK),
            fo = open(out, O_WRONLY | O_CREAT | O_TRUNC, 0600),
            fe = open(err, O_WRONLY | O_CREAT | O_TRUNC, 0600);
        dup2(fi, 0), dup2(fo, 1), dup2(fe, 2);
        struct rlimit as = {ADDRESS_SPACE, ADDRESS_SPACE};
        if (!SANITIZED) setrlimit(RLIMIT_AS, &as);
        alarm(PATIENCE_S);
        setenv("SHARDPROOF_PLAYED", "1", 1);
        /* counts of a --coverage build go where nobody may write */
        if (nobody) setenv("GCOV_PREFIX", dir, 1);
        if (nobody && (setgid(65534) != 0 || setuid(65534) != 0)) _exit(125);
        execv(self, argv);
        _exit(127);
    }
    int status;
    struct rusage u;
    while (wait4(pid, &status, 0, &u) < 0) assert_int_equal(errno, EINTR);
    r.code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    r.cpu_ms = 1e3 * (double)(u.ru_utime.tv_sec + u.ru_stime.tv_sec) +
               1e-3 * (double)(u.ru_utime.tv_usec + u.ru_stime.tv_usec);
    r.rss_kib = u.ru_maxrss;
    slurp(err, r.err, sizeof r.err);
    slurp(out, r.out, sizeof r.out);
    return r;
}
/* Words with '@' for the path; at most 15. */
static void split(const char *words, const char *path, char **argv) {
    int n = 0;
    char *copy = arena_strdup(arena, words), *save = NULL;
    argv[n++] = arena_strdup(arena, "shardproof");
    for (char *w = strtok_r(copy, " ", &save); w && n < 15; w = strtok_r(NULL, " ", &save))
        argv[n++] = !strcmp(w, "@")     ? arena_strdup(arena, path)
                    : !strcmp(w, "OUT") ? arena_printf(arena, "%s/out.svg", dir)
                    : !strcmp(w, "DIR") ? arena_printf(arena, "%s/outdir", dir)
                                        : w;
    argv[n] = NULL;
}
/* Processor time of an ordinary run of the same build, in ms: Llama-3.1-405B on 8,192 ranks, from
 * YAML to shapes. A machine that is slow or busy, or a sanitizer, makes it as much dearer as it
 * makes the run that was just measured; a mistake in how bad input is read does not. */
static double ordinary_ms(void) {
    static const char plan[] = "model: {preset: llama3.1-405b, layers: all}\n"
                               "data: {batch: 1024}\nmesh: {dp: 1024, tp: 8}\n"
                               "plan:\n  layers.*.attention.w[qkv]: colwise\n"
                               "  layers.*.attention.wo: rowwise\n"
                               "  layers.*.feed_forward.w[13]: colwise\n"
                               "  layers.*.feed_forward.w2: rowwise\n";
    char path[sizeof dir + 16], *argv[16];
    snprintf(path, sizeof path, "%s/ordinary.yaml", dir);
    FILE *f = fopen(path, "w");
    assert_true(f && fputs(plan, f) >= 0 && fclose(f) == 0);
    split("shapes @", path, argv);
    Ran r = run(argv, NULL);
    assert_int_equal(r.code, 0);
    return r.cpu_ms;
}
/* The limit now: 100 ms, or six ordinary runs (some 100 ms on a machine that has time for us). */
static double limit_now(void) {
    double ordinary = ORDINARY * ordinary_ms();
    return ordinary > cpu_limit ? ordinary : cpu_limit;
}
/* On a machine of many processors the system counts memory by and by. */
static bool small(const Ran *r) { return SANITIZED || r->rss_kib <= RSS_KIB; }
/* Runs one command line and holds it against what it must say. `where` is "path:line:col" or a
 * path; NULL: nowhere. */
static void expect(const char *what, const char *words, const char *path, const char *in, int exit,
                   const char *code, const char *where) {
    char *argv[16];
    Ran r;
    double limit = cpu_limit;
    split(words, path, argv);
    for (int again = 0;; again++) { /* a busy machine may disturb a measurement, not ten */
        r = run(argv, in);
        if (r.cpu_ms > limit) limit = fmax(limit, limit_now());
        if ((r.cpu_ms <= limit && small(&r)) || again == 9) break;
    }
    const char *wanted = code ? arena_printf(arena, "[%s]", code) : "";
    const char *place = where ? arena_printf(arena, "%s: error: ", where) : "";
    bool ok = r.code == exit && strstr(r.err, wanted) && strstr(r.err, place) &&
              r.cpu_ms <= limit && small(&r);
    struct stat st;
    char *out = arena_printf(arena, "%s/out.svg", dir);
    if (stat(out, &st) == 0) ok = false, unlink(out);
    if (!ok)
        fail_msg("%s: `%s`: exit %d (wanted %d), %.0f ms of %.0f, %ld KiB of %d, "
                 "wanted %s at %s\n%s",
                 what, words, r.code, exit, r.cpu_ms, limit, r.rss_kib, RSS_KIB, wanted,
                 where ? where : "-", r.err);
}
static const char *path_of(const char *name) { return arena_printf(arena, "%s/%s", dir, name); }
static const char *put(const char *name, const void *p, size_t n) {
    const char *path = path_of(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    assert_int_equal(fwrite(p, 1, n, f), n);
    assert_int_equal(fclose(f), 0);
    return path;
}
static const char *put_repeated(const char *name, const char *head, const char *unit, long times,
                                const char *tail) {
    const char *path = path_of(name);
    FILE *f = fopen(path, "w");
    assert_non_null(f);
    fputs(head, f);
    for (long i = 0; i < times; i++) fputs(unit, f);
    fputs(tail ? tail : "", f);
    assert_int_equal(fclose(f), 0);
    return path;
}

/* ---- every command that reads a plan ---- */
static const char *const readers[] = {"check @",
                                      "run @ -o DIR",
                                      "shapes @",
                                      "params @",
                                      "comms @",
                                      "explain @ net1",
                                      "draw @ -o OUT",
                                      "diff @ @",
                                      "draw @ --view mesh -o OUT",
                                      "check --update-expect @"};
static void every_reader(const char *what, const char *path, int exit, const char *code) {
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++)
        expect(what, readers[i], path, NULL, exit, code, NULL);
}
static void test_basics(void **state) {
    (void)state;
    every_reader("missing", path_of("none.yaml"), 3, "E0101");
    /* one of its own: in `dir` a busy machine has laid the plan of ordinary_ms */
    const char *folder = path_of("folder");
    assert_int_equal(mkdir(folder, 0700), 0);
    for (size_t i = 0; i < sizeof readers / sizeof *readers; i++) /* to check: the plans in it */
        expect("a folder", readers[i], folder, NULL, 3,
               strncmp(readers[i], "check ", 6) ? "E0102" : "E0101", NULL);
    every_reader("empty", put("empty.yaml", "", 0), 3, "E0103");
    every_reader("NUL bytes", put("nul.yaml", "a\0b\0c", 5), 3, "E0106");
    every_reader("binary",
                 put("binary.yaml",
                     "\x7f"
                     "ELF\x02\x01\x01\x00\xff\xfe\x80",
                     11),
                 3, "E0106");
    every_reader("UTF-16", put("utf16.yaml", "\xff\xfem\0o\0", 6), 3, "E0106");
    every_reader("/dev/zero", "/dev/zero", 5, "E0702");
    every_reader("100 MB",
                 put_repeated("huge.yaml", "",
                              "key: a value that goes on and on and on and on and on and on\n",
                              1700000, ""),
                 5, "E0702");
    unlink(path_of("huge.yaml"));
    struct stat st; /* a run that never began leaves no folder */
    assert_int_not_equal(stat(path_of("outdir"), &st), 0);
}
/* Sizes beyond any machine, of every kind of plan: what executes nothing answers, or says at which
 * line the size stands; it never tries to have the memory (there is a GiB of addresses). */
static void test_sizes(void **state) {
    (void)state;
    static const char *const sizes[] = {"data.sequence=4294967296", "data.sequence=1099511627776",
                                        "data.batch=4294967296"};
    glob_t g;
    int answered = 0, refused = 0;
    assert_int_equal(glob("plans/[0-9]*.yaml", 0, NULL, &g), 0);
    assert_int_equal(glob("plans/models/*.yaml", GLOB_APPEND, NULL, &g), 0);
    for (size_t i = 0; i < g.gl_pathc; i++)
        for (size_t k = 0; k < sizeof sizes / sizeof *sizes; k++) {
            char *argv[16];
            split(arena_printf(arena, "check --static @ --set %s", sizes[k]), g.gl_pathv[i], argv);
            Ran r = run(argv, NULL);
            const char *error = strstr(r.err, ": error: ");
            bool placed = error > r.err && error[-1] >= '0' && error[-1] <= '9';
            if (r.code != 0 && !((r.code == 3 || r.code == 5) && placed))
                fail_msg("%s, %s: exit %d, %s", g.gl_pathv[i], sizes[k], r.code, r.err);
            r.code ? refused++ : answered++;
        }
    globfree(&g);
    assert_true(answered > 30 && refused > 30);
}
/* Root reads everything, so for root the program runs as nobody. */
static void test_unreadable(void **state) {
    (void)state;
    const char *path = put("secret.yaml", "a: 1\n", 5);
    char *argv[] = {(char *)(uintptr_t) "shardproof", (char *)(uintptr_t) "--version", NULL};
    assert_int_equal(chmod(path, 0), 0);
    assert_int_equal(chmod(dir, 0777), 0);
    nobody = geteuid() == 0;
    if (nobody && run(argv, NULL).code != 0) {
        print_message("skipped: root reads everything, and this program cannot be run as nobody "
                      "from where it lies\n");
        skip();
    }
    every_reader("unreadable", path, 3, "E0102");
}
static void test_pipes(void **state) {
    (void)state;
    const char *fifo = path_of("fifo");
    assert_int_equal(mkfifo(fifo, 0600), 0);
    expect("a FIFO nobody writes to", "check @", fifo, NULL, 3, "E0102", fifo);
    expect("a pipe nobody writes to", "shapes -", "", fifo, 3, "E0102", "<stdin>");
    expect("standard input without end", "shapes -", "", "/dev/zero", 5, "E0702", "<stdin>");
}

/* ---- plans ---- */
typedef struct {
    const char *what, *head, *unit;
    long times;
    const char *tail;
    int exit;
    const char *code;
    int line, col; /* 0: not looked at */
} Bad;
#define EXPERTS                                                                                    \
    "model: {config: {model_type: mixtral, hidden_size: 16, intermediate_size: 24, "               \
    "num_hidden_layers: 1, num_attention_heads: 4, vocab_size: 32, num_local_experts: "
#define MLP "model: {kind: mlp, sizes: [6, 10, 3]}\n"
static const Bad bad_plans[] = {
    {"flow depth", "", "[", 10000, "", 3, "E0704", 1, 33},
    {"flow depth, 1 MB", "a: ", "[", 1000000, "", 3, "E0704", 1, 35},
    {"flow mappings", "", "{a: ", 10000, "", 3, "E0704", 1, 129},
    {"block depth", "", "- ", 10000, "x", 3, "E0704", 1, 65},
    {"aliases", "a: &a [x]\n", "b: [*a,*a,*a,*a]\n", 10, "", 3, "E0108", 1, 4},
    {"duplicate keys", MLP "mesh: {tp: 2}\n", "plan: {}\n", 2, "", 3, "E0107", 4, 1},
    {"a tag", MLP "mesh: !!map {tp: 2}\n", "", 0, "", 3, "E0108", 2, 7},
    {"a merge key", MLP "<<: {mesh: {tp: 2}}\n", "", 0, "", 3, "E0108", 2, 1},
    {"two documents", MLP, "---\nmesh: {tp: 2}\n", 1, "", 3, "E0108", 2, 1},
    {"beyond 64 bits", MLP "mesh: {tp: 9223372036854775808}\n", "", 0, "", 3, "E0302", 2, 12},
    {"a fraction", MLP "mesh: {tp: 1.5}\n", "", 0, "", 3, "E0302", 2, 12},
    {"an exponent", MLP "mesh: {tp: 1e3}\n", "", 0, "", 3, "E0302", 2, 12},
    {"hexadecimal", MLP "mesh: {tp: 0x10}\n", "", 0, "", 3, "E0302", 2, 12},
    {"octal", MLP "mesh: {tp: 010}\n", "", 0, "", 3, "E0302", 2, 12},
    {"negative", MLP "mesh: {tp: -1}\n", "", 0, "", 3, "E0302", 2, 12},
    {"zero", MLP "mesh: {tp: 0}\n", "", 0, "", 3, "E0302", 2, 12},
    {"not a number", MLP "mesh: {tp: .nan}\n", "", 0, "", 3, "E0302", 2, 12},
    {"a product beyond 63 bits", MLP "mesh: {a: 3037000500, b: 3037000500}\n", "", 0, "", 3,
     "E0306", 2, 26},
    {"ten million ranks", MLP "mesh: {tp: 10000000}\n", "", 0, "", 5, "E0703", 2, 12},
    {"2^63-1 ranks", MLP "mesh: {tp: 9223372036854775807}\n", "", 0, "", 5, "E0703", 2, 12},
    {"values beyond memory",
     "model: {kind: mlp, sizes: [1099511627776, 1099511627776]}\nmesh: {tp: 2}\n", "", 0, "", 5,
     "E0701", 1, 1},
    {"a batch beyond memory", MLP "data: {rows: 9223372036854775807}\nmesh: {tp: 2}\n", "", 0, "",
     5, "E0701", 2, 14},
    {"a sequence beyond memory",
     "model: {preset: llama3-8b, shrink: 64}\ndata: {sequence: 4611686018427387904}\nmesh: {tp: "
     "2}\n",
     "", 0, "", 5, "E0701", 2, 18},
    {"a cut sequence beyond lists",
     "model: {preset: llama3-8b, layers: 1, shrink: 64}\ndata: {sequence: 1099511627776, cut: "
     "{sequence: cp}}\nmesh: {cp: 2}\ncontext_parallel: {mode: all_gather}\nplan: {}\n",
     "", 0, "", 5, "E0701", 2, 18},
    {"a ring's sequence beyond lists",
     "model: {preset: llama3-8b, layers: 1, shrink: 64}\ndata: {sequence: 1099511627776, cut: "
     "{sequence: cp}}\nmesh: {cp: 2}\ncontext_parallel: {mode: ring}\nplan: {}\n",
     "", 0, "", 5, "E0701", 2, 18},
    {"more experts a token than there are", EXPERTS "4, num_experts_per_tok: 9}}\nmesh: {dp: 2}\n",
     "", 0, "", 3, "E0307", 1, 163},
    {"no experts", EXPERTS "0}}\nmesh: {dp: 2}\n", "", 0, "", 3, "E0302", 1, 141},
    {"a million million experts", EXPERTS "1000000000000}}\nmesh: {dp: 2}\n", "", 0, "", 5, "E0701",
     1, 1},
    {"a capacity of nothing", EXPERTS "4}}\nmesh: {dp: 2}\nmoe: {capacity_factor: 0}\n", "", 0, "",
     3, "E0309", 3, 24},
    {"a capacity without end", EXPERTS "4}}\nmesh: {dp: 2}\nmoe: {capacity_factor: .inf}\n", "", 0,
     "", 3, "E0301", 3, 24},
    {"a capacity that is no number", EXPERTS "4}}\nmesh: {dp: 2}\nmoe: {capacity_factor: .nan}\n",
     "", 0, "", 3, "E0301", 3, 24},
    {"experts over an axis that is not there", EXPERTS "4}}\nmesh: {dp: 2}\nmoe: {axis: nowhere}\n",
     "", 0, "", 3, "E0204", 3, 13},
    {"experts over an axis twice", EXPERTS "4}}\nmesh: {dp: 2}\nmoe: {axis: dp*dp}\n", "", 0, "", 1,
     "E0407", 3, 13},
    {"experts cut inside over their own axis",
     EXPERTS "4}}\nmesh: {dp: 2}\nmoe: {axis: dp, etp: dp}\n", "", 0, "", 1, "E0405", 3, 13},
    {"a group of an axis that is not there",
     EXPERTS "4}}\nmesh: {dp: 2}\ngroups: {ep: dp*zz}\nmoe: {axis: ep}\n", "", 0, "", 3, "E0204", 3,
     14},
    {"a balance beyond float32",
     EXPERTS "4}}\nmesh: {dp: 2}\npass: backward\nmoe: {aux_loss: exact, aux_coef: 1e308}\n", "", 0,
     "", 3, "E0309", 4, 34},
    {"a balance of parts of a token",
     EXPERTS "4}}\ndata: {batch: 4, microbatches: 1099511627776}\nmesh: {dp: 2}\npass: "
             "backward\nmoe: {aux_loss: exact, aux_coef: 0.1}\n",
     "", 0, "", 3, "E0307", 2, 15},
    {"a list for moe", EXPERTS "4}}\nmesh: {dp: 2}\nmoe: [1, 2]\n", "", 0, "", 3, "E0301", 3, 6},
    {"more groups of experts than experts",
     EXPERTS
     "4, router: deepseek_v3, num_experts_per_tok: 1, n_group: 1099511627776}}\nmesh: {dp: 2}\n",
     "", 0, "", 3, "E0307", 1, 208},
    {"more groups taken than there are",
     EXPERTS "4, router: deepseek_v3, num_experts_per_tok: 1, n_group: 2, topk_group: "
             "1099511627776}}\nmesh: {dp: 2}\n",
     "", 0, "", 3, "E0307", 1, 220},
    {"groups of experts that do not divide them",
     EXPERTS "4, router: deepseek_v3, num_experts_per_tok: 1, n_group: 3}}\nmesh: {dp: 2}\n", "", 0,
     "", 3, "E0307", 1, 208},
    {"more experts a token than its groups have",
     EXPERTS "4, router: deepseek_v3, num_experts_per_tok: 2, n_group: 4, topk_group: 1}}\nmesh: "
             "{dp: 2}\n",
     "", 0, "", 3, "E0307", 1, 184},
    {"scores in parts without a latent", EXPERTS "4}, scores: parts}\nmesh: {dp: 2}\n", "", 0, "",
     3, "E0215", 1, 0},
    {"scores of no kind", "model: {preset: deepseek-v3, scores: thirds}\nmesh: {dp: 2}\n", "", 0,
     "", 3, "E0206", 1, 38},
    {"a ring of a latent that is not there",
     EXPERTS "4}}\nmesh: {cp: 2}\ncontext_parallel: {mode: ring, latent: true}\n", "", 0, "", 3,
     "E0215", 3, 40},
    {"documents beyond 63 bits",
     EXPERTS "4}}\nmesh: {dp: 2}\ndata: {batch: 2, sequence: 8, documents: [9223372036854775807, "
             "9223372036854775807]}\n",
     "", 0, "", 3, "E0302", 3, 42},
    {"documents in documents in documents",
     EXPERTS "4}}\nmesh: {dp: 2}\ndata: {documents: [[[8]], 4]}\n", "", 0, "", 3, "E0301", 3, 21},
    {"a million documents", EXPERTS "4}}\nmesh: {dp: 2}\ndata: {documents: [", "1,", 100000,
     "1]}\n", 3, "E0704", 3, 0},
    {"kept cut over an axis that is not there",
     MLP "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, reshard_over: nowhere}\n", "", 0, "", 3,
     "E0204", 3, 43},
    {"kept cut where nothing is gathered",
     MLP "mesh: {dp: 2}\ndata_parallel: {mode: ddp, reshard_over: dp}\n", "", 0, "", 3, "E0215", 3,
     42},
    {"kept cut over a list",
     MLP "mesh: {dp: 2}\ndata_parallel: {mode: fsdp, reshard_over: [[dp]]}\n", "", 0, "", 3,
     "E0301", 3, 0},
    {"a name of 1 MB", MLP "mesh: {tp: 2}\nplan:\n  ", "n", 1000000, ": colwise\n", 3, "E0704", 4,
     3},
    {"a text of 1 MB", MLP "name: \"", "n", 1000000, "\"\nmesh: {tp: 2}\n", 3, "E0704", 2, 7},
    {"stars", MLP "mesh: {tp: 2}\nplan:\n  \"", "*n", 500, "b\": colwise\n", 3, "E0205", 4, 3},
    {"brackets", MLP "mesh: {tp: 2}\nplan:\n  \"", "*[n[:alpha:]]", 75, "\": colwise\n", 3, "E0205",
     4, 3},
    {"many items", "a: [", "x,", 200000, "]\n", 3, "E0704", 1, 0},
};
static void test_plans(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_plans / sizeof *bad_plans; i++) {
        const Bad *b = &bad_plans[i];
        const char *path = put_repeated("bad.yaml", b->head, b->unit, b->times, b->tail),
                   *where = NULL;
        if (b->col) where = arena_printf(arena, "%s:%d:%d", path, b->line, b->col);
        expect(b->what, "check @", path, NULL, b->exit, b->code, where);
        expect(b->what, "draw @ --view block -o OUT", path, NULL, b->exit, b->code, where);
    }
    put_repeated("bom.yaml", "\xEF\xBB\xBF" MLP "mesh: {tp: 2}\n", "", 0, "");
    expect("a byte order mark", "check @", path_of("bom.yaml"), NULL, 0, NULL, NULL);
    put_repeated("ranks.yaml", MLP "mesh: {tp: 1000000}\n", "", 0, "");
    expect("a million ranks executed", "check @ --strict", path_of("ranks.yaml"), NULL, 5, "E0703",
           NULL);
    expect("a million ranks held", "check @ -v", path_of("ranks.yaml"), NULL, 0, "N0014", NULL);
}

/* ---- schedules from files ---- */
static const Bad bad_schedules[] = {
    {"nothing", "", "", 0, "", 3, "E0310", 0, 0},
    {"empty lines", "", "\n", 1000000, "", 3, "E0310", 0, 0},
    {"an empty line between", "0F0,0B0\n", "\n", 1, "1F0,1B0\n", 3, "E0310", 2, 1},
    {"an open quote, 1 MB", "\"0F0", ",", 1000000, "0B0\n1F0,1B0\n", 3, "E0310", 1, 1},
    {"letters, 1 MB", "0F0,0B0,", "x", 1000000, "\n1F0,1B0\n", 3, "E0310", 1, 9},
    {"cells, 1 MB", "0F0,0B0,", "x,", 500000, "\n1F0,1B0\n", 3, "E0310", 1, 25},
    {"digits, 1 MB", "0F0,0F", "1", 1000000, "\n1F0,1B0\n", 3, "E0310", 1, 5},
    {"rows", "", "0F0\n", 200000, "", 3, "E0310", 0, 0},
    {"one action, 1 MB", "1F0,1B0\n", "0F0,", 250000, "\n", 3, "E0310", 2, 1},
    {"gathers, 1 MB", "", "0UNSHARD,", 110000, "0F0,0B0\n1UNSHARD,1F0,1B0\n", 3, "E0310", 1, 10},
    {"releases, 1 MB", "0F0,0B0\n1F0,1B0,", "1RESHARD,", 110000, "\n", 3, "E0310", 1, 1},
    {"reductions, 1 MB", "0F0,0B0,", "0REDUCE_GRAD,", 80000, "\n1F0,1B0\n", 3, "E0310", 1, 22},
    {"a carriage return", "0F0,0B0\r1F0,1B0\r", "", 0, "", 3, "E0310", 1, 8},
};
static void test_schedules(void **state) {
    (void)state;
    static const char plan[] =
        MLP "mesh: {pp: 2, dp: 2}\npipeline: {file: order.csv, stage_to_rank: "
            "[0, 1]}\npass: backward\ndata: {rows: 4}\ndata_parallel: "
            "fsdp\n";
    const char *path = put("staged.yaml", plan, sizeof plan - 1);
    for (size_t i = 0; i < sizeof bad_schedules / sizeof *bad_schedules; i++) {
        const Bad *b = &bad_schedules[i];
        const char *csv = put_repeated("order.csv", b->head, b->unit, b->times, b->tail),
                   *where = arena_printf(arena, "%s:3:18", path);
        if (b->col) where = arena_printf(arena, "%s:%d:%d", csv, b->line, b->col);
        expect(b->what, "check @", path, NULL, b->exit, b->code, where);
    }
    put("order.csv", "0F0,0B0\n1F0,1B0\0\n", 17);
    expect("a NUL", "check @", path, NULL, 3, "E0310",
           arena_printf(arena, "%s:2:8", path_of("order.csv")));
    put_repeated("order.csv",
                 "\xEF\xBB\xBF"
                 "0F0,0B0",
                 ",", 1000000, "\r\n\"1F0\",1B0\r\n\r\n\r\n");
    expect("a byte order mark, 1 MB of nothing, carriage returns", "check @", path, NULL, 0, NULL,
           NULL);
}

/* ---- files of other frameworks ---- */
typedef struct {
    const char *name; /* of the file: its ending says what it is */
    Bad bad;
} BadImport;
#define MODEL " --model llama3-8b --mesh tp=2"
#define TABLE "{'layers.*.attention.wq': ColwiseParallel("
static const BadImport bad_imports[] = {
    {"a.py", {"no data", "import os\nos.system('touch ", "x", 10, "')\n", 3, "E0217", 2, 1}},
    {"a.py", {"open brackets", "x = ", "[", 1000000, "", 3, "E0704", 1, 0}},
    {"a.py", {"nested calls", "x = ", "f(", 100000, "", 3, "E0704", 1, 0}},
    {"a.py", {"nested dicts", "x = ", "{'a': ", 100000, "", 3, "E0704", 1, 0}},
    {"a.py", {"a path without end", "x = a", ".a", 400000, "\nf(x)\n", 3, "E0704", 1, 0}},
    {"a.py", {"a name by itself", "x = x\n", "x = [x, x]\n", 10000, "f(x)\n", 3, "E0217", 0, 0}},
    {"a.py",
     {"a path that grows", "m = model\n", "m = m.a\n", 20000, "fully_shard(m)\n", 3, "E0217", 0,
      0}},
    {"a.py", {"blocks in blocks", "", "for x in m.layers:\n ", 1, "  pass\n y", 3, "E0110", 3, 2}},
    {"a.py",
     {"comprehensions in comprehensions",
      "x = [[[a for a in range(999)] for b in range(999)] for c in range(999)]", "", 0, "", 3,
      "E0704", 1, 0}},
    {"a.py",
     {"a long range", "x = [a for a in range(10**12)]\nf(x)\n", "", 0, "", 3, "E0217", 0, 0}},
    {"a.py", {"a list that doubles", "x = [1]\n", "x += x\n", 60, "", 3, "E0704", 0, 0}},
    {"a.py", {"a text that doubles", "x = 'a'\n", "x += x\n", 60, "f(x)\n", 3, "E0217", 0, 0}},
    {"a.py", {"a number that grows", "x = 9\n", "x = x * x\n", 60, "f(x)\n", 3, "E0217", 0, 0}},
    {"a.py",
     {"functions that call twice", "def f(x):\n return 1\n",
      "def g(x):\n h(x)\n h(x)\ndef h(x):\n g(x)\n g(x)\n", 2000, "g(1)\n", 3, "E0217", 0, 0}},
    {"a.py",
     {"branches without end", "if 1:\n pass\n", "elif 1:\n pass\n", 5000, "", 3, "E0704", 0, 0}},
    {"a.py", {"operators without end", "x = 1", " + 1", 50000, "\n", 3, "E0704", 1, 0}},
    {"a.py", {"signs without end", "x = ", "- ", 100000, "1\n", 3, "E0704", 1, 0}},
    {"a.py", {"powers without end", "x = 1", " ** 1", 50000, "\n", 3, "E0704", 1, 0}},
    {"a.py", {"conditions without end", "x = 1", " if 1 else 1", 50000, "\n", 3, "E0704", 1, 0}},
    {"a.py",
     {"f-strings in f-strings", "x = f\"{", "f'{", 1, "1}'}\"\n{x: ColwiseParallel()}", 3, "E0110",
      1, 0}},
    {"a.py", {"many braces", "x = f'", "{1}", 1000, "'\nf(x)\n", 3, "E0217", 2, 1}},
    {"a.py", {"a class", "class A(nn.Module):\n    pass\n", "", 0, TABLE ")}", 3, "E0217", 1, 1}},
    {"a.py", {"a text without end", "x = 'abc", "", 0, "\n", 3, "E0110", 1, 5}},
    {"a.py", {"a text of 1 MB", "x = '", "x", 1000000, "'\n", 3, "E0704", 1, 5}},
    {"a.py",
     {"a key twice", "{'a': ColwiseParallel(), ", "'a': ColwiseParallel(), ", 5000, "}", 3, "E0107",
      1, 26}},
    {"a.py", {"many values", "x = [", "1,", 400000, "]\n", 3, "E0704", 1, 0}},
    {"a.py", {"many keys", "x = {", "'a%': 1,", 1, "}", 3, "E0208", 1, 1}},
    {"a.py", {"many statements", "", "x = 1\n", 150000, "", 3, "E0704", 0, 0}},
    {"a.py",
     {"a NUL byte in an escape", "{'a\\x00': ColwiseParallel()}", "", 0, "", 3, "E0110", 1, 4}},
    {"a.py",
     {"an escape that is half a character", "{'\\ud800': ColwiseParallel()}", "", 0, "", 3, "E0110",
      1, 3}},
    {"a.py", {"not UTF-8", "{'\xff': ColwiseParallel()}", "", 0, "", 3, "E0106", 1, 3}},
    {"a.py",
     {"a dim beyond 64 bits", TABLE "output_layouts=Shard(", "9", 30, "))}", 3, "E0110", 1, 0}},
    {"a.py",
     {"100 MB", "", "# a comment that goes on and on and on and on and on and on\n", 1700000, "", 5,
      "E0702", 0, 0}},
    {"a.toml",
     {"100 MB", "", "key = 'a value that goes on and on and on and on and on and on'\n", 1700000,
      "", 5, "E0702", 0, 0}},
    {"a.toml", {"depth", "x = ", "[", 1000000, "", 3, "E0704", 1, 0}},
    {"a.toml", {"tables in tables", "x = ", "{a = ", 100000, "", 3, "E0704", 1, 0}},
    {"a.toml", {"a dotted key without end", "", "a.", 400000, "a = 1\n", 3, "E0704", 1, 0}},
    {"a.toml", {"a key twice", "[job]\na = 1\n", "a = 1\n", 50000, "", 3, "E0107", 3, 1}},
    {"a.toml", {"a table twice", "[job]\n", "[job]\n", 50000, "", 3, "E0107", 2, 2}},
    {"a.toml",
     {"a date", "[training]\nseq_len = 1979-05-27T07:32:00Z\n", "", 0, "", 3, "E0110", 2, 15}},
    {"a.toml", {"not a number", "[training]\nseq_len = nan\n", "", 0, "", 3, "E0110", 2, 11}},
    {"a.toml", {"beyond 64 bits", "[training]\nseq_len = ", "9", 40, "\n", 3, "E0110", 2, 11}},
    {"a.toml",
     {"degrees without end",
      "[parallelism]\ntensor_parallel_degree = 1048576\ncontext_parallel_degree = 1048576\n"
      "data_parallel_shard_degree = 1048576\n[training]\nlocal_batch_size = "
      "1048576\n[model]\nflavor = 'debugmodel'\n",
      "", 0, "", 5, "E0703", 0, 0}},
    {"a.txt",
     {"a size beyond 64 bits", "--tensor-model-parallel-size ", "9", 40, "\n", 3, "E0302", 1, 30}},
    {"a.txt", {"words without end", "--lr 1\n", "a ", 400000, "\n", 3, "E0704", 2, 0}},
    {"a.txt", {"variables", "--tensor-model-parallel-size $TP\n", "", 0, "", 3, "E0217", 1, 30}},
    {"a.sh",
     {"a command", "--tensor-model-parallel-size $(touch ", "x", 10, ")\n", 3, "E0217", 1, 30}},
    {"a.sh", {"a word that doubles", "A=x\n", "A=\"$A$A\"\n", 60, "", 3, "E0704", 0, 0}},
    {"a.sh", {"words that double", "A=(x)\n", "A+=(${A[@]})\n", 60, "", 3, "E0704", 0, 0}},
    {"a.sh", {"itself", "A=$A\n", "A=$A$A\n", 60, "$A\n", 3, "E0704", 0, 0}},
    {"a.sh", {"defaults in defaults", "A=", "${A:-", 100000, "", 3, "E0704", 1, 0}},
    {"a.sh",
     {"brackets without end", "A=$((", "(", 100000, "1))\n--lr $A --bf16 $A\n", 3, "E0110", 1, 3}},
    {"a.sh", {"signs without end", "A=$((", "-", 100000, "1))\n$A\n", 3, "E0704", 0, 0}},
    {"a.sh", {"blocks in blocks", "", "if [ $A ]; then\n", 10000, "", 3, "E0704", 65, 1}},
    {"a.sh", {"ends of nothing", "", "fi\n", 10000, "", 3, "E0110", 1, 1}},
    {"a.sh", {"many variables", "", "A%=1\n", 1, "A=1\n--lr $A --bf16 $A", 3, "E0201", 3, 0}},
    {"a.sh", {"a quote without end", "A=\"", "$B ", 100000, "\n", 3, "E0110", 1, 4}},
    {"a.sh", {"a text that feeds", "cat <<EOF\n", "x\n", 10, "EOF\n", 3, "E0217", 1, 5}},
    {"a.sh",
     {"100 MB", "", "# a comment that goes on and on and on and on and on and on\n", 1700000, "", 5,
      "E0702", 0, 0}},
    {"a.json", {"depth of specs", "{\"a.weight\": ", "[", 100000, "", 3, NULL, 0, 0}},
    {"a.json",
     {"a spec of 1 MB", "{\"layers.0.attention.wq.weight\": [", "null,", 150000, "null]}", 3,
      "E0704", 1, 0}},
    {"a.json",
     {"axes of a dim", "{\"layers.0.attention.wq.weight\": [[", "\"tp\",", 5000, "\"tp\"]]}", 1,
      NULL, 0, 0}},
};
/* Nothing is executed, nothing takes long, and each has its place. */
static void test_imports(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_imports / sizeof *bad_imports; i++) {
        const BadImport *m = &bad_imports[i];
        const Bad *b = &m->bad;
        const char *path = put_repeated(m->name, b->head, b->unit, b->times, b->tail),
                   *where = NULL;
        if (b->col) where = arena_printf(arena, "%s:%d:%d", path, b->line, b->col);
        bool torchtitan = strstr(m->name, "toml") != NULL;
        const char *words = torchtitan ? "check @" : "check @" MODEL;
        expect(b->what, words, path, NULL, b->exit, b->code, where);
        unlink(path);
    }
}

/* ---- Hugging Face's configs and files of names ---- */
#define SIZES                                                                                      \
    "\"hidden_size\": 16, \"intermediate_size\": 12, \"num_attention_heads\": 4, "                 \
    "\"num_key_value_heads\": 4, \"head_dim\": 4, \"vocab_size\": 14, \"num_experts_per_tok\": 2"
#define MIXTRAL "{\"model_type\": \"mixtral\", " SIZES
#define LATENT                                                                                     \
    ", \"n_routed_experts\": 6, \"q_lora_rank\": 4, \"kv_lora_rank\": 4, \"qk_rope_head_dim\": "   \
    "4, "                                                                                          \
    "\"qk_nope_head_dim\": 4, \"v_head_dim\": 4, \"moe_intermediate_size\": 4, "                   \
    "\"n_shared_experts\": 1, \"n_group\": 1, \"topk_group\": 1"
static const Bad bad_hf[] = {
    {"experts without end",
     MIXTRAL ", \"num_hidden_layers\": 2, \"num_local_experts\": 1000000000000}", "", 0, "", 5,
     "E0701", 0, 0},
    {"layers without end",
     MIXTRAL ", \"num_hidden_layers\": 1000000000000, \"num_local_experts\": 6}", "", 0, "", 5,
     "E0701", 0, 0},
    {"experts behind a billion layers",
     "{\"model_type\": \"llama4_text\", " SIZES
     ", \"intermediate_size_mlp\": 20, \"num_local_experts\": 6, \"num_hidden_layers\": "
     "1000000000, \"interleave_moe_layer_step\": 1000000000}",
     "", 0, "", 0, NULL, 0, 0},
    {"dense layers without end",
     "{\"model_type\": \"deepseek_v3\", " SIZES LATENT
     ", \"num_hidden_layers\": 1000000000, \"first_k_dense_replace\": 1000000000}",
     "", 0, "", 0, NULL, 0, 0},
    {"dense layers by number",
     "{\"model_type\": \"qwen3_moe\", " SIZES
     ", \"moe_intermediate_size\": 6, \"num_experts\": 6, \"num_hidden_layers\": 100000, "
     "\"mlp_only_layers\": [",
     "0,", 90000, "0]}", 0, NULL, 0, 0},
    {"no experts", MIXTRAL ", \"num_hidden_layers\": 2, \"num_local_experts\": 0}", "", 0, "", 3,
     "E0302", 0, 0},
    {"a model_type of 100 KB", "{\"model_type\": \"", "m", 100000, "\"}", 3, "E0704", 1, 16},
    {"a model_type twice", "{\"model_type\": \"mixtral\", \"model_type\": \"mixtral\"}", "", 0, "",
     3, NULL, 0, 0},
    {"depth", "{\"model_type\": ", "[", 100000, "", 3, NULL, 0, 0},
};
#define NAMES                                                                                      \
    "{\"model_type\": \"llama\", \"plan\": {\"tp\": {\"a\": \"colwise\"}}, "                       \
    "\"modules\": {\"a\": \"Linear\"}, \"parameters\": {"
static const Bad bad_names[] = {
    {"no JSON", "import os", "", 0, "", 3, NULL, 0, 0},
    {"depth", NAMES "\"a.weight\": ", "[", 100000, "", 3, NULL, 0, 0},
    {"a name twice", NAMES "\"a.weight\": [4, 4], ", "\"a.weight\": [4, 4], ", 1,
     "\"b.weight\": [4]}}", 3, "E0109", 0, 0},
    {"forty dims", NAMES "\"a.weight\": [", "4,", 40, "4]}}", 3, NULL, 0, 0},
    {"dims without end", NAMES "\"a.weight\": [", "4,", 310000, "4]}}", 3, "E0704", 0, 0},
    {"a dim beyond 64 bits", NAMES "\"a.weight\": [99999999999999999999]}}", "", 0, "", 3, NULL, 0,
     0},
    {"a negative dim", NAMES "\"a.weight\": [-4, 4]}}", "", 0, "", 3, NULL, 0, 0},
    {"a shape of text", NAMES "\"a.weight\": \"4x4\"}}", "", 0, "", 3, NULL, 0, 0},
    {"a name of 1 MB", NAMES "\"", "a", 1000000, "\": [4]}}", 3, "E0704", 0, 0},
};
static void test_huggingface(void **state) {
    (void)state;
    for (size_t i = 0; i < sizeof bad_hf / sizeof *bad_hf; i++) {
        const Bad *b = &bad_hf[i];
        const char *path = put_repeated("hf.json", b->head, b->unit, b->times, b->tail),
                   *where = b->col ? arena_printf(arena, "%s:%d:%d", path, b->line, b->col) : NULL;
        expect(b->what, "check @ --tp 2", path, NULL, b->exit, b->code, where);
    }
    for (size_t i = 0; i < sizeof bad_names / sizeof *bad_names; i++) {
        const Bad *b = &bad_names[i];
        const char *path = put_repeated("names.json", b->head, b->unit, b->times, b->tail);
        expect(b->what, "import hf --names @ --tp 2", path, NULL, b->exit, b->code, NULL);
    }
}

/* ---- JSON: configs, traces ---- */
static const Bad bad_configs[] = {
    {"empty", "", "", 0, "", 3, "E0109", 0, 0},
    {"depth", "", "[", 100000, "", 3, "E0109", 1, 65},
    {"depth of objects", "", "{\"a\":", 100000, "", 3, "E0109", 1, 0},
    {"cut off", "{\"hidden_size\": 8,", "", 0, "", 3, "E0109", 1, 0},
    {"a list", "[1]", "", 0, "", 3, "E0109", 0, 0},
    {"a key twice", "{\"hidden_size\": 8, \"hidden_size\": 8}", "", 0, "", 3, "E0109", 1, 0},
    {"a size beyond 64 bits", "{\"hidden_size\": 99999999999999999999, \"model_type\": \"llama\"}",
     "", 0, "", 3, "E0302", 1, 2},
    {"a negative size", "{\"hidden_size\": -8, \"model_type\": \"llama\"}", "", 0, "", 3, "E0302",
     1, 2},
    {"a fraction", "{\"hidden_size\": 8.5, \"model_type\": \"llama\"}", "", 0, "", 3, "E0302", 1,
     2},
    {"a text for a size", "{\"hidden_size\": \"8\", \"model_type\": \"llama\"}", "", 0, "", 3,
     "E0302", 1, 2},
    {"2 MB", "{\"a\": \"", "x", 2000000, "\"}", 5, "E0702", 0, 0},
    {"not UTF-8", "{\"a\": \"\xff\"}", "", 0, "", 3, "E0109", 1, 0},
    {"layers without end",
     "{\"model_type\":\"llama\",\"hidden_size\":8,\"intermediate_size\":8,\"num_hidden_layers\":"
     "1000000000000,\"num_attention_heads\":1,\"vocab_size\":8}",
     "", 0, "", 5, "E0701", 0, 0},
};
static void test_configs(void **state) {
    (void)state;
    const char *plan = put_repeated(
        "config-plan.yaml", "model: {hf_config: c.json, layers: all}\nmesh: {tp: 2}\n", "", 0, "");
    for (size_t i = 0; i < sizeof bad_configs / sizeof *bad_configs; i++) {
        const Bad *b = &bad_configs[i];
        const char *path = put_repeated("c.json", b->head, b->unit, b->times, b->tail);
        expect(b->what, "shapes @", plan, NULL, b->exit, b->code,
               b->line && b->col ? arena_printf(arena, "%s:%d:%d", path, b->line, b->col) : NULL);
    }
    const char *zero =
        put_repeated("zero-plan.yaml", "model: {hf_config: /dev/zero}\nmesh: {tp: 2}\n", "", 0, "");
    expect("/dev/zero as config", "shapes @", zero, NULL, 5, "E0702", NULL);
    const char *folder =
        put_repeated("folder-plan.yaml", "model: {hf_config: /tmp}\nmesh: {tp: 2}\n", "", 0, "");
    expect("a folder as config", "shapes @", folder, NULL, 3, "E0102", NULL);
}
#define RUN_LINE "{\"schema\":\"shardproof/1\",\"type\":\"run\",\"mesh\":{\"tp\":4},\"ranks\":4}\n"
#define LINE(x) "{\"schema\":\"shardproof/1\",\"type\":" x "}\n"
static const Bad bad_traces[] = {
    {"cut off", RUN_LINE,
     LINE("\"memory\",\"step\":0,\"ranks\":[0],\"category\":\"x\",\"bytes\":1"), 3, "", 3, "E0109",
     4, 0},
    {"depth", "{\"schema\":\"shardproof/1\",\"a\":", "[", 100000, "\n", 3, "E0109", 1, 0},
    {"values without end", "{\"schema\":\"shardproof/1\",\"a\":[", "[],", 1500000, "\n", 3, "E0109",
     1, 0},
    {"ranks without end", LINE("\"run\",\"mesh\":{\"tp\":1099511627776},\"ranks\":1099511627776"),
     "", 0, "", 3, "E0109", 1, 0},
    {"sizes beyond 64 bits",
     RUN_LINE LINE("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[1152921504606846976,64]"),
     "", 0, "", 3, "E0109", 2, 0},
    {"sums beyond 64 bits", RUN_LINE,
     LINE("\"memory\",\"step\":0,\"ranks\":[0],\"category\":\"x\",\"bytes\":1152921504606846976"),
     9, "", 3, "E0109", 4, 0},
    {"groups without end",
     RUN_LINE LINE("\"collective\",\"step\":0,\"op\":\"all_gather\",\"axes\":\"tp\",\"groups\":{"
                   "\"count\":1152921504606846976,\"size\":4,\"in\":[[1152921504606846976,4]],"
                   "\"out\":[[1,1]]}"),
     "", 0, "", 3, "E0109", 2, 0},
    {"groups of more than there are",
     RUN_LINE LINE("\"collective\",\"step\":0,\"op\":\"all_gather\",\"axes\":\"tp\",\"groups\":{"
                   "\"count\":1000000000,\"size\":1000000000,\"in\":[[1000000000,1]],\"out\":[]}"),
     "", 0, "", 3, "E0109", 2, 0},
    {"a step beyond all steps",
     RUN_LINE LINE("\"compute\",\"step\":2147483647,\"op\":\"linear\",\"ranks\":[0]"), "", 0, "", 3,
     "E0109", 2, 0},
    {"ranks beyond the mesh",
     RUN_LINE LINE("\"memory\",\"step\":0,\"ranks\":[0,1000000000000],\"category\":\"x\","
                   "\"bytes\":1"),
     "", 0, "", 3, "E0109", 2, 0},
    {"a value of many dims",
     RUN_LINE LINE("\"value\",\"step\":0,\"name\":\"x\",\"global_shape\":[1,1,1,1,1,1,1,1,1,1]"),
     "", 0, "", 3, "E0109", 2, 0},
    {"another schema", "{\"schema\":\"other/1\",\"type\":\"run\"}\n", "", 0, "", 3, "E0109", 1, 0},
    {"no text", RUN_LINE "{\"schema\":\"shardproof/1\",\"type\":\"\xff\"}\n", "", 0, "", 3, "E0109",
     2, 0},
};
static void test_traces(void **state) {
    (void)state;
    static const char *const draws[] = {"draw @ -o OUT", "draw @ --view memory -o OUT", "shapes @",
                                        "comms @", "diff @ @"};
    for (size_t i = 0; i < sizeof bad_traces / sizeof *bad_traces; i++) {
        const Bad *b = &bad_traces[i];
        const char *path = put_repeated("t.jsonl", b->head, b->unit, b->times, b->tail);
        for (size_t k = 0; k < sizeof draws / sizeof *draws; k++)
            expect(b->what, draws[k], path, NULL, b->exit, b->code, NULL);
    }
}

/* ---- safetensors ---- */
typedef struct {
    const char *what, *header;
    uint64_t length; /* 0: that of the header */
    size_t data;
    int exit;
    const char *code;
} Tensors;
#define T(name, dtype, shape, offsets)                                                             \
    "\"" name "\":{\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets "}"
static const Tensors bad_tensors[] = {
    {"too short", "", 2, 0, 3, "E0109"},
    {"a header beyond the file", "{}", 1000, 0, 3, "E0109"},
    {"a header of 2^63", "{}", (uint64_t)1 << 63, 0, 3, "E0109"},
    {"a header of 2^64-1", "{}", UINT64_MAX, 0, 3, "E0109"},
    {"not JSON", "{hello", 0, 0, 3, "E0109"},
    {"not an object", "[1, 2]", 0, 0, 3, "E0109"},
    {"an unknown dtype", "{" T("a", "Q4", "[1]", "[0,4]") "}", 0, 4, 3, "E0109"},
    {"offsets outside", "{" T("a", "F32", "[2]", "[0,8]") "}", 0, 4, 3, "E0109"},
    {"offsets turned around", "{" T("a", "F32", "[1]", "[4,0]") "}", 0, 4, 3, "E0109"},
    {"negative offsets", "{" T("a", "F32", "[1]", "[-4,0]") "}", 0, 4, 3, "E0109"},
    {"offsets beyond 64 bits",
     "{" T("a", "F32", "[1]", "[18446744073709551615,18446744073709551619]") "}", 0, 4, 3, "E0109"},
    {"dims that overflow", "{" T("a", "F32", "[4294967296,4294967296,4]", "[0,4]") "}", 0, 4, 3,
     "E0109"},
    {"a shape that lies", "{" T("a", "F32", "[2]", "[0,4]") "}", 0, 4, 3, "E0109"},
    {"nine dims", "{" T("a", "F32", "[1,1,1,1,1,1,1,1,1]", "[0,4]") "}", 0, 4, 3, "E0109"},
    {"an overlap", "{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[2,6]") "}", 0, 6, 3,
     "E0109"},
    {"a hole", "{" T("a", "F32", "[1]", "[0,4]") "," T("b", "F32", "[1]", "[8,12]") "}", 0, 12, 3,
     "E0109"},
    {"a name twice", "{" T("a", "F32", "[1]", "[0,4]") "," T("a", "F32", "[1]", "[4,8]") "}", 0, 8,
     3, "E0109"},
    {"data left over", "{" T("a", "F32", "[1]", "[0,4]") "}", 0, 9, 3, "E0109"},
    {"no tensors that fit", "{" T("a", "F32", "[1]", "[0,4]") "}", 0, 4, 3, "E0502"},
};
static const char *put_tensors(const Tensors *t) {
    size_t n = strlen(t->header);
    uint64_t length = t->length ? t->length : n;
    char *p = arena_alloc(arena, 8 + n + t->data);
    memcpy(p, &length, 8); /* little endian, as this machine */
    memcpy(p + 8, t->header, n);
    return put("w.safetensors", p, t->length == 2 ? 4 : 8 + n + t->data);
}
static void test_safetensors(void **state) {
    (void)state;
    const char *plan = put_repeated(
        "w.yaml", "model: {kind: mlp, sizes: [6, 10, 3], weights: w.safetensors}\nmesh: {tp: 2}\n",
        "", 0, "");
    const char *good = put_repeated("g.yaml", MLP "mesh: {tp: 2}\n", "", 0, "");
    for (size_t i = 0; i < sizeof bad_tensors / sizeof *bad_tensors; i++) {
        const Tensors *t = &bad_tensors[i];
        const char *path = put_tensors(t);
        expect(t->what, "check @", plan, NULL, t->exit, t->code, NULL);
        bool lies =
            !strcmp(t->code, "E0109"); /* a file that fits nothing is none to compare with */
        expect(t->what, arena_printf(arena, "check @ --against %s", path), good, NULL, 3,
               lies ? t->code : "E0209", NULL);
    }
    /* a header of 20 MB of nothing, and one of 1.5 million values */
    const char *path = path_of("w.safetensors");
    for (int k = 0; k < 2; k++) {
        uint64_t n = k ? 4500000 : 20000000;
        FILE *f = fopen(path, "w");
        fwrite(&n, 8, 1, f);
        for (uint64_t i = 0; i < n; i += k ? 3 : 1) fputs(k ? i ? "[]," : "[[," : i ? " " : "{", f);
        fclose(f);
        expect(k ? "values without end" : "a large header", "check @", plan, NULL, k ? 3 : 5,
               k ? "E0109" : "E0702", NULL);
    }
    expect("--against a folder", arena_printf(arena, "check @ --against %s/none", dir), good, NULL,
           3, "E0101", NULL);
    expect("--against /dev/zero", "check @ --against /dev/zero", good, NULL, 3, "E0109", NULL);
    const Tensors fits = bad_tensors[sizeof bad_tensors / sizeof *bad_tensors - 1];
    const char *list = put("map.yaml", "[a, b]\n", 7);
    expect("a map that is a list",
           arena_printf(arena, "check @ --against %s --map %s", put_tensors(&fits), list), good,
           NULL, 3, "E0301", arena_printf(arena, "%s:1:1", list));
}

/* ---- hardware profiles ---- */
static void test_hardware(void **state) {
    (void)state;
    const char *good = put_repeated("g.yaml", MLP "mesh: {tp: 2}\n", "", 0, "");
    const struct {
        const char *what, *text, *code;
        int exit;
    } row[] = {{"empty", "", "E0103", 3},
               {"a list", "[1]\n", "E0301", 3},
               {"numbers missing", "what: x\n", "E0208", 3},
               {"negative", "memory_bandwidth: -1\n", "E0309", 3},
               {"not a number", "memory_bandwidth: nan\n", "E0309", 3},
               {"an unknown key", "what: x\nmemory_bandwith: 1\n", "E0201", 3}};
    for (size_t i = 0; i < sizeof row / sizeof *row; i++) {
        const char *path = put("h.yaml", row[i].text, strlen(row[i].text));
        expect(row[i].what,
               arena_printf(arena, "draw @ --view timeline --hardware %s -o OUT", path), good, NULL,
               row[i].exit, row[i].code, NULL);
    }
    expect("/dev/zero", "draw @ --view timeline --hardware /dev/zero -o OUT", good, NULL, 5,
           "E0702", NULL);
}

static int setup(void **state) {
    (void)state;
    arena = arena_new();
    nobody = false;
    return 0;
}
static int teardown(void **state) {
    (void)state;
    arena_free(arena);
    return 0;
}
static int end(void **state) {
    (void)state;
    char command[sizeof dir + 16];
    snprintf(command, sizeof command, "rm -rf %s", dir);
    return system(command);
}
int main(int argc, char **argv) {
    if (getenv("SHARDPROOF_PLAYED")) {
        int code = cli_main(argc, argv, stdout, stderr);
        render_cleanup();
        return code;
    }
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) return 1;
    signal(SIGPIPE, SIG_IGN);
    const char *slow = getenv("SHARDPROOF_SLOW"); /* under tools: times mean nothing there */
    cpu_limit = CPU_MS * (slow && atof(slow) > SLOWER ? atof(slow) : SLOWER);
    if (!mkdtemp(dir)) return 1;
#define TEST(t) cmocka_unit_test_setup_teardown(t, setup, teardown)
    const struct CMUnitTest tests[] = {
        TEST(test_basics),      TEST(test_unreadable),  TEST(test_pipes),     TEST(test_plans),
        TEST(test_imports),     TEST(test_huggingface), TEST(test_configs),   TEST(test_traces),
        TEST(test_safetensors), TEST(test_hardware),    TEST(test_schedules), TEST(test_sizes)};
    return cmocka_run_group_tests_name("hostile", tests, NULL, end);
}
