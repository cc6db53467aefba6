/* Many random plans on several processes, to be stopped and resumed:
 *     soak [PLANS [FIRST_SEED [PROCESSES [FOLDER]]]]
 * Process k runs seeds FIRST_SEED + k, + k + n, ... and leaves its counts in FOLDER/soak.k after
 * every hundred plans; a run with the same numbers goes on from there. Each process prints what is
 * wrong into FOLDER/soak.k.log. Exit status 1 if anything was. */
#include "support/random_run.h"
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

typedef struct {
    long plans, seed, n; /* what was asked for: another run's state is no start */
    long at;             /* legal plans that this process has done */
    uint64_t next;       /* its next seed */
    RandomTable table;
} State;
static const char *folder = "build/soak";
static volatile sig_atomic_t stopped; /* what has been counted is printed before the end */
static void stop(int sig) { stopped = sig; }

static const char *path(Arena *a, int k, const char *what) {
    return arena_printf(a, "%s/soak.%d%s", folder, k, what);
}
static bool load(Arena *a, int k, State *s, Coverage *c) {
    State from;
    FILE *f = fopen(path(a, k, ""), "r");
    if (!f) return false;
    bool ok = fread(&from, sizeof from, 1, f) == 1 && from.plans == s->plans &&
              from.seed == s->seed && from.n == s->n && coverage_load(c, f);
    if (ok) *s = from;
    fclose(f);
    return ok;
}
static bool save(Arena *a, int k, const State *s, const Coverage *c) {
    const char *to = path(a, k, ""), *beside = path(a, k, ".new");
    FILE *f = fopen(beside, "w");
    if (!f) return false;
    bool ok = fwrite(s, sizeof *s, 1, f) == 1;
    coverage_save(c, f);
    ok &= !ferror(f);
    ok &= !fclose(f);
    return ok && !rename(beside, to);
}
static int worker(int k, State s) {
    enum { EVERY = 100 };
    Arena *a = arena_new();
    Coverage *c = coverage_new(a);
    if (!load(a, k, &s, c)) s.next = (uint64_t)(s.seed + k);
    long mine = s.plans / s.n + (k < s.plans % s.n);
    if (!freopen(path(a, k, ".log"), "a", stdout)) return 1;
    while (s.at < mine) {
        random_run(s.next, &s.table, c);
        s.next += (uint64_t)s.n;
        s.at = s.table.legal;
        if (s.at % EVERY && s.at < mine) continue;
        fflush(stdout);
        if (!save(a, k, &s, c)) return 1;
    }
    arena_free(a);
    return 0;
}
/* Adds up what the processes have left so far. */
static RandomTable total(State s, Coverage *c) {
    RandomTable sum = {0};
    for (int k = 0; k < s.n; k++) {
        State one = s;
        if (load(c->a, k, &one, c)) random_table_add(&sum, &one.table);
    }
    return sum;
}
int main(int argc, char **argv) {
    State s = {.plans = argc > 1 ? atol(argv[1]) : 100000,
               .seed = argc > 2 ? atol(argv[2]) : 1000000,
               .n = argc > 3 ? atol(argv[3]) : 2};
    if (argc > 4) folder = argv[4];
    if (s.plans < 1 || s.seed < 0 || s.n < 1 || s.n > 64)
        return fprintf(stderr, "soak [PLANS [FIRST_SEED [PROCESSES [FOLDER]]]]\n"), 2;
    mkdir(folder, 0777);
    pid_t pid[64];
    for (int k = 0; k < s.n; k++)
        if (!(pid[k] = fork())) _exit(worker(k, s));
    signal(SIGINT, stop);
    signal(SIGTERM, stop);
    int running = (int)s.n, failed = 0;
    time_t start = time(NULL);
    while (running) { /* progress every ten seconds */
        for (int k = 0; k < s.n && stopped; k++) kill(pid[k], SIGTERM);
        int status, ended = 0;
        for (int i = 0; i < 100 && !ended && (!stopped || i < 1); i++) {
            if (waitpid(-1, &status, WNOHANG) > 0) running--, failed += status != 0, ended = 1;
            else nanosleep(&(struct timespec){.tv_nsec = 100000000}, NULL);
        }
        Arena *a = arena_new();
        Coverage *c = coverage_new(a);
        RandomTable t = total(s, c);
        fprintf(stderr, "\r%ld of %ld legal plans, %ld wrong, %ld s ", t.legal, s.plans,
                random_table_bad(&t), (long)(time(NULL) - start));
        arena_free(a);
    }
    fprintf(stderr, "\n");
    Arena *a = arena_new();
    Coverage *c = coverage_new(a);
    RandomTable t = total(s, c);
    int never = coverage_print(c, stdout, true);
    random_table_print(&t, stdout);
    if (random_table_bad(&t)) printf("what was wrong: %s/soak.*.log\n", folder);
    if (stopped)
        printf("stopped at %ld of %ld plans; the same command goes on from here\n", t.legal,
               s.plans);
    else if (failed) printf("%d of %ld processes ended before their time\n", failed, s.n);
    bool bad = random_table_bad(&t) || failed || t.legal < s.plans || (s.plans >= 1000 && never);
    arena_free(a);
    return bad;
}
