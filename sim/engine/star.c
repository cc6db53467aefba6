/* Messages and hearts on the links of a rendezvous. See star.h. One thread reads and writes all
 * links; the other one puts messages into queues and takes them. */
#define _GNU_SOURCE /* POLLRDHUP */
#include "engine/star.h"
#include "engine/boot.h"
#include <assert.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* seconds: in which last words are passed on; for rank 0 to say that another has failed; between
 * two beats, at most; for rank 0, who can name a rank, to speak before those who only miss
 * somebody; for rank 1, to speak for all where it is rank 0 that is lost; a rank that ends by
 * itself, or by Ctrl-C, is not lost before; no look at the clock comes so soon after the last where
 * a process was stopped */
static const double HEARD = 0.3, SAY = 1, TICK = 0.25, GRACE = 0.25, TURN = 0.5, LEAVE = 0.25,
                    SHORT = 0.25;
enum { ENDED = ENGINE_STAGES, MAGIC = 0x53505354 };
typedef enum { DATA, BEAT, ABORT, FAIL, BYE } Kind;

typedef struct {
    int32_t magic, kind, from, to;
    int64_t n, at; /* bytes that follow; the place of `from` */
} Head;
typedef struct {
    int64_t calls, waiting;
} Beat;
typedef struct {
    int64_t rank, at;
    char what[400];
} Failure;
typedef struct Msg {
    struct Msg *next;
    Head h;   /* what goes over the wire begins here */
    char p[]; /* h.n bytes */
} Msg;
typedef struct {
    Msg *first, *last;
} List;
typedef struct {
    int fd;
    List out;
    size_t sent; /* of its first, head included */
    Head head;
    size_t got; /* of the head and what follows it */
    Msg *in;
    Beat theirs;
    int64_t at;         /* the place that it named last */
    double heard, gone; /* gone: since when the other side has closed; 0: it has not */
    bool bye;
} Link;
struct Star {
    StarOwner owner;
    EngineHost host;
    Engine *e;
    int64_t rank, ranks, n_links; /* link r of rank 0 is that to rank r, the first is none */
    Link *link;
    List *inbox; /* per rank */
    pthread_mutex_t lock;
    pthread_cond_t come;
    pthread_t heart;
    int wake[2];
    _Atomic int state;
    _Atomic double since; /* of the state */
    _Atomic int64_t calls, waiting;
    double missed, all_wait;
    int64_t all_calls, said; /* said: the place that was told last */
};

static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static void rest(double seconds) {
    struct timespec t = {(time_t)seconds, (long)((seconds - (double)(time_t)seconds) * 1e9)};
    nanosleep(&t, NULL);
}
static void enter(Star *s, int state) {
    atomic_store(&s->since, now());
    atomic_store(&s->state, state);
    s->host.stage(s->host.arg, state == ENDED ? ENGINE_ENDS : (EngineStage)state);
}

/* ---- queues ---- */
static void push(List *l, Msg *m) {
    m->next = NULL;
    if (l->last) l->last->next = m;
    else l->first = m;
    l->last = m;
}
static Msg *pop(List *l) {
    Msg *m = l->first;
    l->first = m->next;
    if (!l->first) l->last = NULL;
    return m;
}
static Msg *msg_new(Star *s, const Head *h) {
    Msg *m = h->n >= 0 ? malloc(sizeof *m + (size_t)h->n) : NULL;
    if (m) m->h = *h;
    else star_fail(s, "out of memory for a message");
    return m;
}
static int64_t place(const Star *s) { return __atomic_load_n(&s->e->at, __ATOMIC_RELAXED); }
static Msg *words(Star *s, Kind kind, int64_t to, const void *p, int64_t n) {
    Head h = {MAGIC, kind, (int32_t)s->rank, (int32_t)to, n, place(s)};
    Msg *m = msg_new(s, &h);
    if (n) memcpy(m->p, p, (size_t)n);
    return m;
}
static Link *link_to(Star *s, int64_t rank) { return &s->link[s->rank ? 0 : rank]; }
static bool is_open(const Link *l) { return l->fd >= 0 && l->gone == 0; }
/* Writes what the wire takes. */
static void flush(Link *l) {
    while (is_open(l) && l->out.first) {
        Msg *m = l->out.first;
        size_t all = sizeof m->h + (size_t)m->h.n;
        ssize_t n = send(l->fd, (char *)&m->h + l->sent, all - l->sent, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK) l->gone = now();
        if (n < 0) return;
        if ((l->sent += (size_t)n) < all) continue;
        l->sent = 0;
        free(pop(&l->out));
    }
}
static void put(Star *s, int64_t to, Kind kind, const void *p, int64_t n) {
    Link *l = link_to(s, to);
    push(&l->out, words(s, kind, to, p, n));
    flush(l);
}

/* ---- ends ---- */
static _Noreturn void leave(Star *s, int code) {
    if (s->owner.ending) s->owner.ending(s->owner.arg);
    _exit(code);
}
/* Tells all others, but for one, to end with that code. The lock is held, or nobody else is left to
 * take it. */
static void tell_end(Star *s, int code, int64_t but) {
    int64_t c = code;
    double until = now() + HEARD;
    for (int64_t k = 0; k < s->n_links; k++)
        if (k != but && is_open(&s->link[k])) put(s, s->rank ? 0 : k, ABORT, &c, sizeof c);
    for (bool left = true; left && now() < until;) {
        left = false;
        for (int64_t k = 0; k < s->n_links; k++) {
            flush(&s->link[k]);
            left |= k != but && is_open(&s->link[k]) && s->link[k].out.first;
        }
        if (left) rest(1e-3);
    }
}
_Noreturn void star_abort(Star *s, int code) {
    pthread_mutex_lock(&s->lock);
    tell_end(s, code, -1);
    leave(s, code);
}
static _Noreturn void say_failure(Star *s, const Failure *f) {
    s->host.died(s->host.arg, f->rank, f->at, f->what);
    tell_end(s, ENGINE_EXIT, -1);
    for (int64_t k = 0; k < s->n_links; k++) /* whoever waits for its end sees it now */
        if (is_open(&s->link[k])) shutdown(s->link[k].fd, SHUT_WR);
    leave(s, ENGINE_EXIT);
}
/* What fails often fails on all ranks at once: rank 0 speaks, for the first it hears of. It ends
 * this process then, and closes its link. */
static bool told_first(Star *s, const Failure *f) {
    Link *l = &s->link[0];
    double begin = now(), room = s->host.deadline / 2 < SAY ? s->host.deadline / 2 : SAY;
    if (!s->rank || !is_open(l)) return false;
    put(s, 0, FAIL, f, sizeof *f);
    while (now() - begin < room) {
        struct pollfd p = {.fd = l->fd, .events = POLLRDHUP};
        flush(l);
        if (!is_open(l)) return true;
        if (poll(&p, 1, (int)(1e3 * TICK / 10)) > 0 && p.revents) return true;
    }
    return false;
}
_Noreturn void star_fail(Star *s, const char *what) {
    Failure f = {.rank = s->rank, .at = place(s)};
    pthread_mutex_lock(&s->lock);
    snprintf(f.what, sizeof f.what, "%s", what);
    if (told_first(s, &f)) leave(s, ENGINE_EXIT);
    say_failure(s, &f);
}
/* Those who can name somebody speak first: who started the processes has ended this one then. Its
 * guard hears meanwhile that it lives. */
static void wait_turn(Star *s) {
    double step = s->host.deadline / 10 < TICK ? s->host.deadline / 10 : TICK;
    for (double begin = now(); now() - begin < TURN; rest(step)) s->host.lives(s->host.arg);
}
/* In the heart, which holds the lock. */
static _Noreturn void lose(Star *s, int64_t rank, double seconds, int64_t at) {
    if (rank <= 0 && s->rank > 1) wait_turn(s);
    s->host.lost(s->host.arg, rank, seconds, at);
    tell_end(s, ENGINE_EXIT, rank > 0 && !s->rank ? rank : -1);
    leave(s, ENGINE_EXIT);
}

/* ---- what comes ---- */
static void arrived(Star *s, Link *l, Msg *m) {
    Head h = m->h;
    if (!s->rank || !h.from) l->at = h.at; /* not what rank 0 passes on */
    if (h.kind == DATA && h.to == s->rank) {
        push(&s->inbox[h.from], m);
        pthread_cond_signal(&s->come);
        return;
    }
    if (h.kind == DATA) {
        Link *on = link_to(s, h.to);
        push(&on->out, m);
        flush(on);
        return;
    }
    if (h.kind == BEAT && h.n == (int64_t)sizeof l->theirs) memcpy(&l->theirs, m->p, sizeof(Beat));
    if (h.kind == BYE) {
        l->bye = true;
        pthread_cond_signal(&s->come);
    }
    if (h.kind == FAIL && h.n == (int64_t)sizeof(Failure)) {
        Failure f;
        memcpy(&f, m->p, sizeof f);
        f.rank = h.from;
        f.what[sizeof f.what - 1] = 0;
        say_failure(s, &f);
    }
    if (h.kind == ABORT && h.n == (int64_t)sizeof(int64_t)) {
        int64_t code;
        memcpy(&code, m->p, sizeof code);
        if (!s->rank) tell_end(s, (int)code, l - s->link);
        leave(s, (int)code);
    }
    free(m);
}
static bool makes_sense(const Star *s, const Link *l) {
    const Head *h = &l->head;
    int64_t from = s->rank ? h->from : l - s->link;
    return h->magic == MAGIC && h->kind >= DATA && h->kind <= BYE && h->n >= 0 && h->from == from &&
           h->from >= 0 && h->from < s->ranks && h->to >= 0 && h->to < s->ranks &&
           (!s->rank || h->to == s->rank);
}
/* Reads one piece; false: nothing is there. */
static bool read_some(Star *s, Link *l) {
    size_t head = sizeof l->head, all = head + (l->in ? (size_t)l->in->h.n : 0);
    char *to = l->got < head ? (char *)&l->head + l->got : l->in->p + (l->got - head);
    size_t want = l->got < head ? head - l->got : all - l->got;
    ssize_t n = want ? recv(l->fd, to, want, 0) : 0;
    if (want && n == 0) l->gone = now();
    if (n < 0 && errno != EAGAIN && errno != EWOULDBLOCK && errno != EINTR) l->gone = now();
    if (n < 0 || l->gone > 0) return false;
    l->heard = now();
    l->got += (size_t)n;
    if (l->got == head && !l->in) {
        if (!makes_sense(s, l)) star_fail(s, "a rank sent what makes no sense");
        l->in = msg_new(s, &l->head);
        all = head + (size_t)l->in->h.n;
    }
    if (l->in && l->in->h.kind == DATA) atomic_fetch_add(&s->calls, 1);
    if (l->in && l->got == all) {
        Msg *m = l->in;
        l->in = NULL;
        l->got = 0;
        arrived(s, l, m);
    }
    return true;
}

/* ---- the heart ---- */
static void beat_to(Star *s, int64_t k) {
    Beat mine = {atomic_load(&s->calls), atomic_load(&s->waiting)};
    Link *l = &s->link[k];
    /* a full wire says by itself, when it moves, that this process lives */
    if (is_open(l) && !l->out.first) put(s, s->rank ? 0 : k, BEAT, &mine, sizeof mine);
}
static void beat(Star *s) {
    for (int64_t k = 0; k < s->n_links; k++) beat_to(s, k);
}
static void watch(Star *s) {
    double t = now();
    int64_t calls = atomic_load(&s->calls), waiting = atomic_load(&s->waiting);
    bool silent = false; /* one that was stopped while it waited: it will be named */
    for (int64_t k = 0; k < s->n_links; k++) {
        Link *l = &s->link[k];
        if (l->fd < 0 || l->bye) continue;
        silent |= t - l->heard > s->host.deadline / 2;
        if (l->gone > 0 && t - l->gone > LEAVE) lose(s, s->rank ? 0 : k, 0, l->at);
        if (l->gone == 0 && t - l->heard > s->host.deadline)
            lose(s, s->rank ? 0 : k, t - l->heard, l->at);
        calls += l->theirs.calls;
        waiting += l->theirs.waiting;
    }
    if (s->rank || atomic_load(&s->state) != ENGINE_RUNS) return;
    if (waiting < s->ranks || calls != s->all_calls || s->all_wait <= 0)
        s->all_wait = waiting < s->ranks ? 0 : t;
    s->all_calls = calls;
    if (s->all_wait > 0 && t - s->all_wait > s->host.deadline && !silent)
        lose(s, ENGINE_ALL_WAIT, t - s->all_wait, s->e->at);
}
/* This process itself was stopped (Ctrl-Z) or had no processor: so long it could hear nobody. */
static void forgive(Star *s, double gap) {
    for (int64_t k = 0; k < s->n_links; k++) s->link[k].heard += gap;
    atomic_store(&s->since, atomic_load(&s->since) + gap);
    s->all_wait = 0;
}
static void wires(Star *s, struct pollfd *p, double tick) {
    for (int64_t k = 0; k < s->n_links; k++) {
        const Link *l = &s->link[k];
        p[k] = (struct pollfd){.fd = is_open(l) ? l->fd : -1,
                               .events = (short)(POLLIN | (l->out.first ? POLLOUT : 0))};
    }
    p[s->n_links] = (struct pollfd){.fd = s->wake[0], .events = POLLIN};
    pthread_mutex_unlock(&s->lock);
    poll(p, (nfds_t)s->n_links + 1, (int)(1e3 * tick) + 1);
    pthread_mutex_lock(&s->lock);
    char drain[64];
    while (read(s->wake[0], drain, sizeof drain) > 0) continue;
    for (int64_t k = 0; k < s->n_links; k++) {
        Link *l = &s->link[k];
        for (int turn = 0; turn < 64 && is_open(l) && read_some(s, l);) turn++;
        flush(l);
    }
}
static void *heart(void *arg) {
    Star *s = arg;
    struct pollfd *p = calloc((size_t)s->n_links + 1, sizeof *p);
    double tick = s->host.deadline / 10 < TICK ? s->host.deadline / 10 : TICK, last = now(),
           beaten = 0;
    if (!p) star_fail(s, "out of memory");
    pthread_mutex_lock(&s->lock);
    for (int state; (state = atomic_load(&s->state)) != ENDED;) {
        wires(s, p, tick);
        double t = now(), gap = t - last;
        last = t;
        if (gap > s->host.deadline / 2 && gap > SHORT) forgive(s, gap);
        if (t - beaten >= tick) {
            beat(s);
            beaten = t;
            if (state != ENGINE_RUNS) s->host.lives(s->host.arg);
        }
        double silent = t - atomic_load(&s->since);
        if (state == ENGINE_ENDS && silent > s->host.deadline + GRACE)
            lose(s, ENGINE_NOBODY, silent, state);
        watch(s);
    }
    pthread_mutex_unlock(&s->lock);
    free(p);
    return NULL;
}

/* ---- messages ---- */
/* The link's thread writes what the wire does not take at once. */
static void wake(Star *s) {
    ssize_t n = write(s->wake[1], "", 1);
    (void)n;
}
void star_waits(Star *s, bool waits) {
    atomic_fetch_add(&s->calls, 1);
    atomic_store(&s->waiting, waits);
    if (s->said == place(s) || s->ranks == 1) return;
    /* who speaks of a lost rank names where it was: of rank 0 that is rank 1 */
    pthread_mutex_lock(&s->lock);
    s->said = place(s);
    beat_to(s, s->rank ? 0 : 1);
    pthread_mutex_unlock(&s->lock);
}
static void take(Star *s, const EngineItem *x) {
    List *l = &s->inbox[x->peer];
    while (!l->first) pthread_cond_wait(&s->come, &s->lock);
    Msg *m = pop(l);
    if (m->h.n != x->bytes) star_fail(s, "a rank sent a message of another length");
    memcpy(x->p, m->p, (size_t)x->bytes);
    free(m);
    atomic_fetch_add(&s->calls, 1);
}
void star_exchange(Star *s, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    pthread_mutex_lock(&s->lock);
    bool left = false;
    for (int i = 0; i < n_out; i++) {
        assert(out[i].peer >= 0 && out[i].peer < s->ranks && out[i].peer != s->rank);
        if (!out[i].bytes) continue;
        put(s, out[i].peer, DATA, out[i].p, out[i].bytes);
        left |= link_to(s, out[i].peer)->out.first != NULL;
    }
    if (left) wake(s);
    star_waits(s, n_in > 0);
    for (int i = 0; i < n_in; i++)
        if (in[i].bytes) take(s, &in[i]);
    star_waits(s, false);
    pthread_mutex_unlock(&s->lock);
}
int64_t star_least(Star *s, int64_t mine) {
    EngineItem up = {0, sizeof mine, &mine};
    if (s->rank) {
        star_exchange(s, &up, 1, NULL, 0);
        star_exchange(s, NULL, 0, &up, 1);
        return mine;
    }
    for (int64_t r = 1; r < s->ranks; r++) {
        int64_t theirs;
        star_exchange(s, NULL, 0, &(EngineItem){r, sizeof theirs, &theirs}, 1);
        if (theirs < mine) mine = theirs;
    }
    for (int64_t r = 1; r < s->ranks; r++)
        star_exchange(s, &(EngineItem){r, sizeof mine, &mine}, 1, NULL, 0);
    return mine;
}

/* ---- begin and end ---- */
static void lives(void *arg) {
    Star *s = arg;
    s->host.lives(s->host.arg);
}
static bool start_heart(Star *s) {
    sigset_t all, old;
    if (pipe(s->wake) < 0) return false;
    for (int i = 0; i < 2; i++) {
        fcntl(s->wake[i], F_SETFL, O_NONBLOCK);
        fcntl(s->wake[i], F_SETFD, FD_CLOEXEC);
    }
    pthread_mutexattr_t again; /* who fails may hold it */
    pthread_mutexattr_init(&again);
    pthread_mutexattr_settype(&again, PTHREAD_MUTEX_RECURSIVE);
    pthread_mutex_init(&s->lock, &again);
    pthread_cond_init(&s->come, NULL);
    enter(s, ENGINE_RUNS);
    sigfillset(&all); /* the first thread takes the signals */
    pthread_sigmask(SIG_SETMASK, &all, &old);
    int failed = pthread_create(&s->heart, NULL, heart, s);
    pthread_sigmask(SIG_SETMASK, &old, NULL);
    errno = failed;
    return !failed;
}
static bool meet(Star *s, const Place *p) {
    char why[256] = "";
    int64_t missing;
    int *fd = malloc((size_t)s->ranks * sizeof *fd);
    BootAsk ask = {p, s->host.deadline, lives, s};
    if (!fd) return false;
    BootEnd end = boot_meet(&ask, fd, &missing, why, sizeof why);
    if (end == BOOT_LATE && s->rank > 1) wait_turn(s);
    if (end == BOOT_LATE)
        s->host.lost(s->host.arg, missing < 0 ? ENGINE_NOBODY : missing, s->host.deadline,
                     missing < 0 ? ENGINE_STARTS : ENGINE_ABSENT);
    if (end == BOOT_LATE || end == BOOT_OVER) _exit(ENGINE_EXIT);
    if (end == BOOT_REFUSED) s->host.failed(s->host.arg, why);
    for (int64_t k = 0; k < s->n_links; k++) s->link[k] = (Link){.fd = fd[k], .heard = now()};
    free(fd);
    return end == BOOT_MET;
}
Star *star_open(const StarOwner *owner, Engine *e) {
    const EngineHost *host = owner->host;
    const PlaceLack *lack;
    char why[160];
    Place p;
    if (!place_find(&p, &lack)) {
        host->failed(host->arg, lack ? lack->what : "no launcher has started this process");
        return NULL;
    }
    Star *s = calloc(1, sizeof *s);
    if (!s) return NULL;
    s->owner = *owner;
    s->host = *host;
    s->e = e;
    s->rank = e->rank = p.rank;
    s->ranks = e->ranks = p.ranks;
    s->n_links = p.rank ? 1 : p.ranks;
    s->link = calloc((size_t)s->n_links, sizeof *s->link);
    s->inbox = calloc((size_t)s->ranks, sizeof *s->inbox);
    enter(s, ENGINE_STARTS);
    if (!s->link || !s->inbox) host->failed(host->arg, "out of memory");
    else if (!boot_files(s->n_links + 3 + owner->files, why, sizeof why))
        host->failed(host->arg, why);
    else if (meet(s, &p)) {
        if (start_heart(s)) return s;
        snprintf(why, sizeof why, "its thread could not be started: %s", strerror(errno));
        host->failed(host->arg, why);
    }
    free(s->link);
    free(s->inbox);
    free(s);
    return NULL;
}
/* Says that this process has nothing more to say, and waits for the others to have said so: who is
 * gone then is not lost. */
static void part(Star *s) {
    pthread_mutex_lock(&s->lock);
    for (int pass = 0; pass < 2; pass++) {
        bool say = pass == (s->rank ? 0 : 1);
        for (int64_t k = 0; k < s->n_links; k++) {
            Link *l = &s->link[k];
            if (say && is_open(l)) put(s, s->rank ? 0 : k, BYE, NULL, 0);
            if (say) wake(s);
            while (!say && l->fd >= 0 && !l->bye) pthread_cond_wait(&s->come, &s->lock);
        }
    }
    for (bool left = true; left;) { /* the last words are on the wire */
        left = false;
        for (int64_t k = 0; k < s->n_links; k++)
            left |= is_open(&s->link[k]) && s->link[k].out.first;
        pthread_mutex_unlock(&s->lock);
        if (left) rest(1e-3);
        pthread_mutex_lock(&s->lock);
    }
    enter(s, ENDED);
    pthread_mutex_unlock(&s->lock);
}
void star_close(Star *s) {
    star_least(s, 0); /* rank 0 may write files for minutes: hearts beat meanwhile */
    enter(s, ENGINE_ENDS);
    part(s);
    wake(s);
    pthread_join(s->heart, NULL);
    for (int64_t k = 0; k < s->n_links; k++)
        if (s->link[k].fd >= 0) close(s->link[k].fd);
    for (int64_t r = 0; r < s->ranks; r++)
        while (s->inbox[r].first) free(pop(&s->inbox[r]));
    for (int i = 0; i < 2; i++) close(s->wake[i]);
    free(s->link);
    free(s->inbox);
    free(s);
}
