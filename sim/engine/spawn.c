/* A process for each rank, and their ends. See spawn.h. */
#include "engine/spawn.h"
#include "base/arena.h"
#include "base/clock.h"
#include "base/ends.h"
#include "engine/boot.h"
#include "engine/claim.h"
#include "engine/engine.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/random.h>
#include <sys/wait.h>
#include <unistd.h>

/* seconds: for the others to end by themselves when one has ended; to clean up when they are told
 * to end */
static const double ALONE = 1, CLEAN = 0.5;
/* the shell's code where a program cannot be started */
enum { TICK_US = 2000, NO_PROGRAM = 126 };

typedef struct {
    pid_t pid; /* 0: has ended */
    int status;
    bool lost; /* was stopped when another had ended: its end is not its own */
} Child;
typedef struct {
    int64_t n;
    Child *child;
    int64_t first; /* that ended otherwise than well; -1 */
    bool told;     /* one has ended as a run ends, which has words for it */
} Crew;

/* Also from a signal handler: only kill and waitpid. */
static void tell(const Crew *c, int sig) {
    for (int64_t r = 0; r < c->n; r++) {
        if (c->child[r].pid <= 0) continue;
        kill(c->child[r].pid, sig);
        kill(c->child[r].pid, SIGCONT);
    }
}
static void note(Crew *c, pid_t pid, int status) {
    for (int64_t r = 0; r < c->n; r++) {
        if (c->child[r].pid != pid) continue;
        c->child[r].pid = 0, c->child[r].status = status;
        if (status && c->first < 0) c->first = r;
        c->told |= WIFEXITED(status) && WEXITSTATUS(status) == ENGINE_EXIT;
    }
}
static bool any(const Crew *c) {
    for (int64_t r = 0; r < c->n; r++)
        if (c->child[r].pid > 0) return true;
    return false;
}
/* Waits for all of them, so many seconds. */
static void reap(Crew *c, double seconds) {
    int status;
    for (int64_t turns = (int64_t)(seconds * 1e6) / TICK_US; any(c) && turns >= 0; turns--) {
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0) note(c, pid, status);
        else if (pid < 0 && errno == ECHILD) return;
        else usleep(TICK_US);
    }
}
/* One that somebody has stopped does not end by itself, and its guard would say once more what
 * another has said. */
static void end_stopped(Crew *c) {
    for (int64_t r = 0; r < c->n; r++) {
        siginfo_t x = {0};
        pid_t pid = c->child[r].pid;
        if (pid <= 0 || waitid(P_PID, (id_t)pid, &x, WSTOPPED | WNOHANG | WNOWAIT) < 0) continue;
        if (x.si_pid != pid) continue;
        c->child[r].lost = true;
        kill(pid, SIGTERM);
        kill(pid, SIGCONT);
    }
}
static void end_all(void *arg) {
    Crew *c = arg;
    tell(c, SIGTERM);
    reap(c, CLEAN);
    tell(c, SIGKILL);
    reap(c, CLEAN);
}
static void set(const char *name, int64_t value) {
    char text[32];
    snprintf(text, sizeof text, "%lld", (long long)value);
    setenv(name, text, 1);
}
static bool make_token(void) {
    unsigned char bytes[PLACE_TOKEN_BYTES / 2];
    char text[PLACE_TOKEN_BYTES + 1];
    if (getrandom(bytes, sizeof bytes, 0) != (ssize_t)sizeof bytes) return false;
    for (size_t i = 0; i < sizeof bytes; i++) snprintf(text + 2 * i, 3, "%02x", bytes[i]);
    claim_share(text); /* the processes that are started have it from here, as long as one lives */
    return setenv(PLACE_TOKEN, text, 1) == 0;
}
static _Noreturn void become(int64_t rank, char **argv, pid_t parent, int listener) {
    sigset_t none;
    prctl(PR_SET_PDEATHSIG, SIGTERM); /* it cleans up */
    if (getppid() != parent) _exit(ENGINE_EXIT);
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    set("RANK", rank);
    set("LOCAL_RANK", rank);
    if (rank) close(listener);
    else fcntl(listener, F_SETFD, 0);
    execv("/proc/self/exe", argv);
    _exit(NO_PROGRAM);
}
static bool start(Crew *c, char **argv, int listener) {
    pid_t self = getpid();
    for (int64_t r = 0; r < c->n; r++) {
        pid_t pid = fork();
        if (pid == 0) become(r, argv, self, listener);
        if (pid < 0) return false;
        c->child[r].pid = pid;
    }
    return true;
}
/* Where none has words for the end, nobody has seen it: it was before they met, or of all of them.
 */
static bool by_signal(const Crew *c) {
    return WIFSIGNALED(c->child[c->first].status) ||
           WEXITSTATUS(c->child[c->first].status) == NO_PROGRAM;
}
static void say(const Crew *c) {
    int status = c->child[c->first].status;
    bool by = WIFSIGNALED(status);
    base_last_words("look at the messages above; a machine that runs out of memory ends processes "
                    "by signal 9",
                    "rank %lld was ended by %s %d, and none has said why; all of them end [E0605]",
                    (long long)c->first, by ? "signal" : "its code",
                    by ? WTERMSIG(status) : WEXITSTATUS(status));
}
int spawn_ranks(int64_t n, char **argv, const char **why) {
    Crew c = {.n = n, .first = -1};
    static char few[160];
    *why = few;
    if (!boot_files(n + BOOT_FILES, few, sizeof few)) return -1;
    int port, listener = boot_listen("127.0.0.1", 0, 1, &port);
    *why = strerror(errno);
    if (listener < 0 || !make_token()) return -1;
    setenv("MASTER_ADDR", "127.0.0.1", 1);
    set("MASTER_PORT", port);
    set("WORLD_SIZE", n);
    set("LOCAL_WORLD_SIZE", n);
    set(PLACE_LISTENER, listener);
    c.child = base_malloc(base_mul((size_t)n, sizeof *c.child));
    memset(c.child, 0, (size_t)n * sizeof *c.child);
    fflush(NULL);
    base_cleanup_push(end_all, &c);
    bool started = start(&c, argv, listener);
    *why = strerror(errno);
    close(listener);
    while (started && any(&c) && c.first < 0) reap(&c, 0.1);
    if (c.first >= 0) end_stopped(&c);
    if (started && any(&c)) reap(&c, ALONE);
    int status = c.child[0].status, last = c.first < 0 ? 0 : ENGINE_EXIT;
    if (started && c.first >= 0 && !c.told && (any(&c) || by_signal(&c))) say(&c);
    bool own = WIFEXITED(status) && WEXITSTATUS(status) && !c.child[0].lost;
    end_all(&c);
    base_cleanup_pop(end_all, &c);
    free(c.child);
    return !started ? -1 : own ? WEXITSTATUS(status) : last;
}
