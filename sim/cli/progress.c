/* One thread that looks at the work every tenth of a second, so that the thread that does it never
 * waits for a terminal. It takes no signals: their handlers run in other threads and may wait for a
 * line that is being written. */
#include "cli/progress.h"
#include "cli/terminal.h"
#include "base/clock.h"
#include "base/ends.h"
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

struct ProgressLine {
    const Progress *p;
    int fd, at, of;
    double start, shown; /* seconds; the highest share shown */
    double moved;        /* seconds after the start when the share last grew */
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t wake;
    bool end;
    atomic_bool stop, writing, visible;
};
static const char clear[] = "\r\033[K";

static int left_text(char *out, size_t n, double s) {
    int64_t k = (int64_t)ceil(s);
    if (s >= 1e6) return snprintf(out, n, ", %.0f days left", s / 86400);
    if (k >= 3600)
        return snprintf(out, n, ", %lld h %lld min left", (long long)(k / 3600),
                        (long long)(k / 60 % 60));
    if (k >= 60)
        return snprintf(out, n, ", %lld min %lld s left", (long long)(k / 60), (long long)(k % 60));
    return snprintf(out, n, ", %lld s left", (long long)k);
}
int progress_text(char *out, size_t n, ProgressWords say, int width) {
    char time[64] = "", plan[48] = "";
    if (say.left >= 0) left_text(time, sizeof time, say.left);
    if (say.of > 1) snprintf(plan, sizeof plan, "plan %d of %d: ", say.at, say.of);
    int k = snprintf(out, n, "%s%.0f %%  %s%s", plan, floor(100 * say.done), say.phase, time);
    if (k >= (int)n) k = (int)n - 1;
    /* all of it is ASCII; the last column stays free for the cursor */
    if (width > 0 && k > width - 1) k = width - 1;
    out[k] = 0;
    return k;
}

/* Until a twentieth is done the estimate weighs more than what was seen; within a long step, in
 * which nothing is counted as done, the time goes on. */
double progress_left(ProgressSeen seen) {
    if (seen.share <= 0) return -1;
    double trust = seen.share / (seen.share + 0.05),
           whole = trust * seen.moved / seen.share + (1 - trust) * seen.estimate,
           left = whole * (1 - seen.share) - seen.since;
    return left < 0 ? -1 : left;
}

/* ---- the thread ---- */
static void draw(ProgressLine *l) {
    const char *phase = atomic_load_explicit(&l->p->phase, memory_order_acquire);
    double total = atomic_load_explicit(&l->p->total, memory_order_relaxed),
           done = atomic_load_explicit(&l->p->done, memory_order_relaxed);
    if (!phase) return;
    pid_t in_front = tcgetpgrp(l->fd);
    /* in the background: the terminal is somebody else's */
    if (in_front > 0 && in_front != getpgrp()) return;
    double share = total > 0 ? done / total : 0, spent = clock_seconds() - l->start;
    if (share > 0.99) share = 0.99; /* an estimate: it is done when it is */
    if (share > l->shown) l->shown = share, l->moved = spent;
    char text[192];
    double left = progress_left((ProgressSeen){l->shown, l->moved, spent - l->moved, total * 1e-9});
    int k = progress_text(text + 1, sizeof text - 8,
                          (ProgressWords){l->shown, phase, left, l->at, l->of},
                          terminal_columns(l->fd));
    text[0] = '\r';
    k += 1 + snprintf(text + 1 + k, 6, "\033[K");
    atomic_store(&l->writing, true);
    if (!atomic_load(&l->stop)) {
        atomic_store(&l->visible, true);
        /* the terminal is gone */
        if (write(l->fd, text, (size_t)k) < 0) atomic_store(&l->stop, true);
    }
    atomic_store(&l->writing, false);
}
static void *show(void *arg) {
    ProgressLine *l = arg;
    double next = l->start + 1;
    pthread_mutex_lock(&l->lock);
    while (!l->end) {
        struct timespec t = {(time_t)next, (long)((next - floor(next)) * 1e9)};
        /* woken: to end */
        if (pthread_cond_timedwait(&l->wake, &l->lock, &t) == 0 || l->end) continue;
        pthread_mutex_unlock(&l->lock);
        draw(l);
        pthread_mutex_lock(&l->lock);
        next = clock_seconds() + 0.1;
    }
    pthread_mutex_unlock(&l->lock);
    return NULL;
}

/* ---- the ends ---- */
/* Takes the line away for good; also inside a signal handler. */
static void take_away(void *arg) {
    ProgressLine *l = arg;
    atomic_store(&l->stop, true);
    /* a stopped terminal (Ctrl-S) may keep it there */
    for (int i = 0; i < 50 && atomic_load(&l->writing); i++) {
        struct timespec ms = {0, 1000000};
        nanosleep(&ms, NULL);
    }
    if (!atomic_exchange(&l->visible, false)) return;
    ssize_t written = write(l->fd, clear, sizeof clear - 1);
    (void)written;
}
ProgressLine *progress_line_start(Arena *a, const Progress *p, int fd, int at, int of) {
    ProgressLine *l = ARENA_NEW(a, ProgressLine);
    *l = (ProgressLine){.p = p, .fd = fd, .at = at, .of = of, .start = clock_seconds()};
    pthread_condattr_t attr;
    pthread_condattr_init(&attr);
    pthread_condattr_setclock(&attr, CLOCK_MONOTONIC);
    pthread_cond_init(&l->wake, &attr);
    pthread_condattr_destroy(&attr);
    pthread_mutex_init(&l->lock, NULL);
    sigset_t all, old;
    sigfillset(&all);
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&l->thread, NULL, show, l);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    if (failed) return NULL;
    base_cleanup_push(take_away, l);
    return l;
}
void progress_line_end(ProgressLine *l) {
    if (!l) return;
    pthread_mutex_lock(&l->lock);
    l->end = true;
    pthread_cond_signal(&l->wake);
    pthread_mutex_unlock(&l->lock);
    pthread_join(l->thread, NULL);
    base_cleanup_pop(take_away, l);
    take_away(l);
    pthread_cond_destroy(&l->wake);
    pthread_mutex_destroy(&l->lock);
}
