/* fork, exec, and reading what comes back without ever blocking the child. */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "child.h"
#include "base/clock.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <setjmp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <cmocka.h>

enum { LONGEST_S = 600 };

static char program[4096];
const char *child_program(void) {
    if (!program[0] && !realpath("./shardproof", program))
        fail_msg("there is no ./shardproof: run `make` in the working directory first");
    return program;
}
static void copy_to(const char *from, const char *to, mode_t mode) {
    Arena *a = arena_new();
    size_t n;
    const char *text = child_read(a, from, &n);
    FILE *f = fopen(to, "wb");
    assert_true(text && f && fwrite(text, 1, n, f) == n && fclose(f) == 0 && chmod(to, mode) == 0);
    arena_free(a);
}
void child_use(const char *to) {
    program[0] = 0;
    if (!to) return;
    if (access(to, F_OK) == 0) fail_msg("'%s' is there already: what is it?", to);
    copy_to(child_program(), to, 0755);
    snprintf(program, sizeof program, "%s", to);
}
void child_use_installed(const char *at) {
    if (access(at, X_OK) != 0) fail_msg("there is no program at '%s'", at);
    snprintf(program, sizeof program, "%s", at);
}
enum { PRELOADS = 4 };
static struct {
    char name[32], file[80];
} preload_copies[PRELOADS]; /* [PRELOADS]; an empty name: the rest is free */
static void remove_copies(void) {
    for (int i = 0; i < PRELOADS && *preload_copies[i].name; i++) unlink(preload_copies[i].file);
}
const char *child_built(Arena *a, const char *name) {
    char self[4096] = {0};
    if (readlink("/proc/self/exe", self, sizeof self - 1) < 0) fail_msg("no /proc/self/exe");
    *(strrchr(self, '/') + 1) = 0;
    const char *file = arena_printf(a, "%s%s", self, name);
    return access(file, R_OK) == 0 ? file : NULL;
}
const char *child_beside(Arena *a, const char *name) {
    const char *file = child_built(a, name);
    if (!file) fail_msg("there is no %s beside this program: run `make tests`", name);
    return file;
}
const char *child_preload(Arena *a, const char *name) {
    const char *built = child_beside(a, name);
    if (!strpbrk(built, " :\t")) return built;
    int i = 0;
    while (i < PRELOADS && *preload_copies[i].name && strcmp(preload_copies[i].name, name) != 0)
        i++;
    assert_true(i < PRELOADS);
    if (*preload_copies[i].name) return preload_copies[i].file;
    if (i == 0) atexit(remove_copies);
    snprintf(preload_copies[i].name, sizeof preload_copies[i].name, "%s", name);
    snprintf(preload_copies[i].file, sizeof preload_copies[i].file, "/tmp/shardproof-%ld-%s",
             (long)getpid(), name);
    copy_to(built, preload_copies[i].file, 0644);
    return preload_copies[i].file;
}

/* ---- the child's side ---- */
static void stream(int fd, const char *file, int pipe_end) {
    if (file && !*file) {
        close(fd);
        return;
    }
    int to = file ? open(file, O_WRONLY | O_CREAT | O_APPEND, 0666) : pipe_end;
    if (to < 0 || dup2(to, fd) < 0) _exit(126);
    if (to != pipe_end) close(to);
}
static void become(const Child *c, int out, int err) {
    /* a shell starts what runs behind it with these ignored */
    signal(SIGINT, SIG_DFL);
    signal(SIGTERM, SIG_DFL);
    const char *argv[64] = {"shardproof"};
    for (int i = 0; c->words[i]; i++) argv[i + 1] = c->words[i];
    for (const char *const *e = c->env; e && *e; e++) {
        if (strchr(*e, '=')) putenv((char *)(uintptr_t)*e);
        else unsetenv(*e);
    }
    if (c->limit_to) {
        struct rlimit r = {(rlim_t)c->limit_to, (rlim_t)c->limit_to};
        if (setrlimit((__rlimit_resource_t)c->limit, &r) < 0) _exit(126);
    }
    int in = open(c->in && *c->in ? c->in : "/dev/null", O_RDONLY);
    if (in < 0 || dup2(in, STDIN_FILENO) < 0) _exit(126);
    if (in > 2) close(in);
    if (c->in && !*c->in) close(STDIN_FILENO);
    stream(STDERR_FILENO, c->err, err);
    stream(STDOUT_FILENO, c->out, out);
    if (c->prepare) c->prepare();
    execv(child_program(), (char **)(uintptr_t)argv);
    _exit(127);
}

/* ---- our side ---- */
static bool take(int *fd, Str *s) {
    char buf[4096];
    ssize_t n = read(*fd, buf, sizeof buf);
    if (n > 0) str_addn(s, buf, (size_t)n);
    if (n > 0 || (n < 0 && errno == EINTR)) return true;
    close(*fd); /* end of file; a terminal whose other side is gone says EIO */
    *fd = -1;
    return false;
}
enum { STAT = 1024 };
/* What /proc says of a process behind its name, which may hold anything: ") S 1 ..."; NULL: it is
 * gone. */
static const char *stat_of(pid_t pid, char text[STAT]) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t n = fd >= 0 ? read(fd, text, STAT - 1) : 0;
    if (fd >= 0) close(fd);
    text[n > 0 ? n : 0] = 0;
    return strrchr(text, ')');
}
char process_state(pid_t pid) {
    char text[STAT];
    const char *s = stat_of(pid, text);
    return s && s[1] ? s[2] : 0;
}
bool process_ended(pid_t pid) {
    char c = process_state(pid);
    return !c || c == 'Z' || c == 'X';
}
pid_t process_parent(pid_t pid) {
    char text[STAT];
    const char *s = process_ended(pid) ? NULL : stat_of(pid, text);
    return s && strlen(s) > 4 ? (pid_t)atoi(s + 4) : 0;
}
/* Milliseconds of processor time that a process has used; 0 if nobody says. */
static double used_ms(pid_t pid) {
    char text[STAT];
    const char *s = stat_of(pid, text);
    unsigned long user = 0, system = 0;
    if (!s ||
        sscanf(s, ") %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %lu %lu", &user, &system) != 2)
        return 0;
    return 1e3 * (double)(user + system) / (double)sysconf(_SC_CLK_TCK);
}
static bool signal_due(const Child *c, pid_t pid, const Str *err, double t) {
    if (c->after_text) return strstr(err->s, c->after_text) != NULL;
    if (c->after_cpu_ms) return used_ms(pid) >= c->after_cpu_ms;
    return t * 1e6 >= c->after_us;
}
/* Whether it goes on: it has used processor time since `last_ms`, or waits for less than LONGEST_S.
 * However busy the machine is, a run that works is no run that hangs. */
static bool goes_on(pid_t pid, double t, double *last_ms, double *last_t) {
    double ms = used_ms(pid);
    if (ms > *last_ms) *last_ms = ms, *last_t = t;
    return t - *last_t <= LONGEST_S && ms <= 1e3 * LONGEST_S;
}
/* Gives the time of the signal, or that of the start. */
static double watch(const Child *c, pid_t pid, int *fd, Str *s, double start) {
    bool sent = false;
    double when = start, last_ms = 0, last_t = 0;
    while (fd[0] >= 0 || fd[1] >= 0) {
        double t = clock_seconds() - start;
        if (c->signal && !sent && signal_due(c, pid, &s[1], t)) {
            kill(pid, c->signal);
            sent = true;
            when = clock_seconds();
        }
        if (!goes_on(pid, t, &last_ms, &last_t)) kill(pid, SIGKILL);
        struct pollfd p[2] = {{fd[0], POLLIN, 0}, {fd[1], POLLIN, 0}};
        double wait = c->signal && !sent && !c->after_text ? c->after_us * 1e-6 - t : 1;
        if (c->after_cpu_ms && !sent) wait = 0.05;
        struct timespec ts = {(time_t)wait, (long)((wait - (double)(time_t)wait) * 1e9)};
        if (wait < 0) ts = (struct timespec){0};
        if (ppoll(p, 2, &ts, NULL) <= 0) continue;
        for (int i = 0; i < 2; i++)
            if (fd[i] >= 0 && p[i].revents) take(&fd[i], &s[i]);
    }
    return when;
}
Ended child_run(Arena *a, const Child *c) {
    int out[2], err[2], tty = -1, slave = -1;
    child_program();
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    struct winsize w = {.ws_row = 24,
                        .ws_col =
                            c->columns ? (unsigned short)(c->columns > 0 ? c->columns : 0) : 80};
    if (c->pty) {
        tty = posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(tty >= 0 && grantpt(tty) == 0 && unlockpt(tty) == 0);
        slave = open(ptsname(tty), O_RDWR | O_NOCTTY | O_CLOEXEC);
        assert_true(slave >= 0 && ioctl(slave, TIOCSWINSZ, &w) == 0);
    }
    int begun[2]; /* its writing end goes when the program takes the child's place */
    assert_int_equal(pipe2(begun, O_CLOEXEC), 0);
    double start = clock_seconds();
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (!pid) become(c, c->pty && c->pty_out ? slave : out[1], c->pty ? slave : err[1]);
    close(out[1]);
    close(err[1]);
    if (slave >= 0) close(slave);
    int fd[2] = {out[0], c->pty ? tty : err[0]};
    if (c->pty) close(err[0]);
    close(begun[1]);
    while (read(begun[0], &(char){0}, 1) < 0 && errno == EINTR) continue;
    close(begun[0]);
    Str s[2] = {str_new(a), str_new(a)};
    double sent = watch(c, pid, fd, s, clock_seconds());
    int status = 0;
    struct rusage u;
    wait4(pid, &status, 0, &u);
    return (Ended){.code = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status),
                   .signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0,
                   .out = s[0].s,
                   .err = s[1].s,
                   .n_err = s[1].n,
                   .seconds = clock_seconds() - start,
                   .after_signal = clock_seconds() - sent,
                   .max_kib = u.ru_maxrss};
}

void child_expect(const Ended *e, int code, const char *in_err) {
    if (e->code != code || !strstr(e->err, in_err))
        print_error("exit %d, wanted %d and '%s'\n%s%s", e->code, code, in_err, e->out, e->err);
    assert_int_equal(e->code, code);
    assert_non_null(strstr(e->err, in_err));
}

/* ---- files ---- */
int child_count(const char *dir, const char *suffix) {
    int n = 0;
    DIR *h = opendir(dir);
    for (struct dirent *e; h && (e = readdir(h));) {
        size_t k = strlen(e->d_name), m = strlen(suffix);
        if (strcmp(e->d_name, ".") == 0 || strcmp(e->d_name, "..") == 0) continue;
        n += k >= m && strcmp(e->d_name + k - m, suffix) == 0;
    }
    if (h) closedir(h);
    return n;
}
char *child_read(Arena *a, const char *path, size_t *n) {
    FILE *f = fopen(path, "rb");
    if (!f) return NULL;
    Str s = str_new(a);
    char buf[4096];
    for (size_t k; (k = fread(buf, 1, sizeof buf, f)) > 0;) str_addn(&s, buf, k);
    fclose(f);
    if (n) *n = s.n;
    return s.s;
}
void child_write(const char *path, const char *text) {
    FILE *f = fopen(path, "wb");
    assert_non_null(f);
    fputs(text, f);
    assert_int_equal(fclose(f), 0);
}
