/* The ways a run ends early. All state here is process-wide by its nature: a signal handler has no
 * other. */
#include "base/ends.h"
#include "base/utf8.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <sys/time.h>
#include <time.h>
#include <unistd.h>

typedef void (*CleanupFn)(void *);
enum { SLOTS = 32 };
/* A slot is used while `fn` is set: it is set last and cleared first, so a handler never sees half
 * of one. */
static struct {
    _Atomic(CleanupFn) fn;
    void *_Atomic arg;
} slots[SLOTS];

void base_cleanup_push(CleanupFn fn, void *arg) {
    for (int i = 0; i < SLOTS; i++) {
        if (atomic_load(&slots[i].fn)) continue;
        atomic_store(&slots[i].arg, arg);
        atomic_store(&slots[i].fn, fn);
        return;
    }
}
void base_cleanup_pop(CleanupFn fn, void *arg) {
    for (int i = SLOTS - 1; i >= 0; i--)
        if (atomic_load(&slots[i].fn) == fn && atomic_load(&slots[i].arg) == arg) {
            atomic_store(&slots[i].fn, NULL);
            return;
        }
}
void base_run_cleanups(void) {
    for (int i = SLOTS - 1; i >= 0; i--) {
        CleanupFn fn = atomic_exchange(&slots[i].fn, NULL);
        if (fn) fn(atomic_load(&slots[i].arg));
    }
}

/* Names in it may hold what a terminal obeys; without memory a question mark must do. */
static int tame(char *s, int n) {
    int to = 0;
    for (int i = 0; i < n;) {
        int32_t code;
        int k = (int)utf8_char(s + i, (size_t)(n - i), &code);
        if (utf8_is_hostile(code)) s[to++] = '?';
        else
            for (int j = 0; j < k; j++) s[to++] = s[i + j];
        i += k;
    }
    return to;
}
/* ---- one of several processes ---- */
/* What the shared word holds but for the number of the process that is about to speak; milliseconds
 * that others give it for it: one that is stopped there never may */
enum { NOBODY = 0, SAID = -1, ABOUT_MS = 1000 };
static _Atomic(_Atomic int32_t *) shared;

void base_one_speaks(_Atomic int32_t *word) { atomic_store(&shared, word); }
static bool may_speak(_Atomic int32_t *word) {
    const struct timespec ms = {0, 1000000};
    for (int i = 0; word; i++) {
        int32_t is = NOBODY;
        if (atomic_compare_exchange_strong(word, &is, (int32_t)getpid())) return true;
        if (is == SAID) return false;
        bool never = i > ABOUT_MS || (kill(is, 0) < 0 && errno == ESRCH);
        if (never && atomic_compare_exchange_strong(word, &is, (int32_t)getpid())) return true;
        nanosleep(&ms, NULL);
    }
    return true;
}
/* One write: other processes may say something too. `help`: NULL, or a line for below. */
static void last_words(const char *before, const char *help, _Atomic int32_t *word, const char *fmt,
                       va_list ap) {
    enum { ROOM = 1024 };
    char text[2 * ROOM];
    int n = snprintf(text, ROOM, "%s", before), k = vsnprintf(text + n, ROOM - (size_t)n, fmt, ap);
    n = k < 0 ? n : n + k < ROOM - 1 ? n + k : ROOM - 1;
    n = tame(text, n);
    text[n++] = '\n';
    k = help ? snprintf(text + n, ROOM - 1, "  = help: %s\n", help) : 0;
    n += k < ROOM - 2 ? k : ROOM - 2;
    base_run_cleanups(); /* first: it takes the progress line away */
    if (!may_speak(word)) return;
    ssize_t written = write(STDERR_FILENO, text, (size_t)n);
    (void)written; /* there is nobody left to tell */
    if (word) atomic_store(word, SAID);
}
void base_last_words(const char *help, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    last_words("shardproof: error: ", help, atomic_load(&shared), fmt, ap);
    va_end(ap);
}
_Noreturn void base_die(int code, const char *fmt, ...) {
    va_list ap;
    va_start(ap, fmt);
    last_words("shardproof: ", NULL, NULL, fmt, ap);
    va_end(ap);
    _exit(code);
}

/* ---- signals ---- */
static void stop(int sig) {
    base_run_cleanups();
    _exit(128 + sig);
}
static void out_of_time(int sig) {
    static const char text[] =
        "shardproof: the limit of processor time was reached (ulimit -t) [E0705]\n";
    (void)sig;
    base_run_cleanups();
    ssize_t written = write(STDERR_FILENO, text, sizeof text - 1);
    (void)written;
    _exit(5);
}
/* The signal is back at its default (SA_RESETHAND), so that a core file shows the place. */
static void crash(int sig) {
    base_run_cleanups();
    raise(sig);
}
static const struct {
    int sig;
    void (*handler)(int);
} handled[] = {{SIGINT, stop},     {SIGTERM, stop},   {SIGHUP, stop},   {SIGXCPU, out_of_time},
               {SIGQUIT, crash},   {SIGABRT, crash},  {SIGSEGV, crash}, {SIGBUS, crash},
               {SIGFPE, crash},    {SIGILL, crash},   {SIGTRAP, crash}, {SIGSYS, crash},
               {SIGPIPE, SIG_IGN}, {SIGXFSZ, SIG_IGN}};

static void heed(int sig, void (*handler)(int)) {
    struct sigaction old, now = {.sa_handler = handler};
    sigfillset(&now.sa_mask);
    now.sa_flags = SA_ONSTACK | (handler == crash ? SA_RESETHAND | SA_NODEFER : 0);
    /* a shell has ignored SIGINT for what it starts in the background, nohup SIGHUP, a sanitizer
     * has its own SIGSEGV */
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_DFL) sigaction(sig, &now, NULL);
}
/* The limit of processor time comes whether or not whoever started us listens: where it is ignored
 * or blocked the kernel kills without a word. */
static void heed_time(int sig) {
    struct sigaction old;
    sigset_t one;
    sigemptyset(&one);
    sigaddset(&one, sig);
    if (sigaction(sig, NULL, &old) == 0 && old.sa_handler == SIG_IGN) signal(sig, SIG_DFL);
    heed(sig, out_of_time);
    sigprocmask(SIG_UNBLOCK, &one, NULL);
}
/* Where the soft limit of processor time is the hard one (`ulimit -t`), the kernel kills without a
 * word: a second earlier we are told. Of a single second, which is the least that it counts in, a
 * timer of the same time tells us a fifth before its end. */
static void lower_time_limit(void) {
    const struct itimerval first = {.it_value = {.tv_usec = 800000}};
    struct rlimit r;
    if (getrlimit(RLIMIT_CPU, &r) < 0 || r.rlim_cur == RLIM_INFINITY || r.rlim_cur < r.rlim_max)
        return;
    if (r.rlim_cur < 2) {
        heed_time(SIGPROF);
        setitimer(ITIMER_PROF, &first, NULL);
        return;
    }
    heed_time(SIGXCPU);
    r.rlim_cur--;
    setrlimit(RLIMIT_CPU, &r);
}

void base_catch_signals(void) {
    lower_time_limit();
    static max_align_t other_stack[4096]; /* for a handler after the stack has overflowed */
    stack_t s = {.ss_sp = other_stack, .ss_size = sizeof other_stack};
    sigaltstack(&s, NULL);
    for (size_t i = 0; i < sizeof handled / sizeof *handled; i++)
        heed(handled[i].sig, handled[i].handler);
}

void base_guard_streams(void) {
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++) {
        if (fcntl(fd, F_GETFD) != -1 || errno != EBADF) continue;
        /* the lowest free number is this one: those below are open by now */
        if (open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd) _exit(70);
    }
}
