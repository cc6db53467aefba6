/* Rendezvous over TCP. See boot.h. Part of the program, whose `run --cuda` opens the listener, and
 * of the plug-ins. */
#include "engine/boot.h"
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* connections that have not said who they are, at once; milliseconds between two looks */
enum { STRANGERS = 64, TICK_MS = 50, WORDS = 2 };
/* seconds: for a connection to say who it is; for an answer where another may listen; between two
 * tries; so much later than rank 0, who can name who is missing, the others give up; no look at
 * the clock comes so soon after the last where a process was stopped; between two questions
 * after the address of a name */
static const double HELLO = 5, ANSWER = 2, AGAIN = 0.05, GRACE = 0.5, SHORT = 0.25, LOOKUP = 1;

typedef struct {
    char magic[8];
    int32_t words; /* WORDS: which words are spoken */
    int32_t size;  /* of this: machines that disagree about it cannot speak to each other */
    int64_t rank, ranks;
    char token[PLACE_TOKEN_BYTES];
} Hello;
typedef enum { WELCOME, OTHER_RANKS, TAKEN, OTHER_WORDS, OVER } Answer;
typedef struct {
    char magic[8];
    int64_t answer, ranks;
} Reply;
static const char magic[8] = "SPBOOT1";

/* Time that a process was stopped or had no processor in is none of its own. */
typedef struct {
    double spent, last, of;
} Patience;
static double now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}
static bool patient(Patience *p) {
    double t = now(), gap = t - p->last;
    p->last = t;
    if (gap < p->of / 2 || gap < SHORT) p->spent += gap;
    return p->spent < p->of;
}
/* What was waited for by itself, since the last look: it may take longer than what `patient` takes
 * for a pause. */
static void waited(Patience *p) {
    double t = now();
    p->spent += t - p->last;
    p->last = t;
}
static void ready(int fd) {
    int one = 1;
    fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK);
    fcntl(fd, F_SETFD, FD_CLOEXEC);
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
}

/* ---- listening ---- */
static void set_port(struct sockaddr *at, int port) {
    if (at->sa_family == AF_INET6) ((struct sockaddr_in6 *)at)->sin6_port = htons((uint16_t)port);
    else ((struct sockaddr_in *)at)->sin_port = htons((uint16_t)port);
}
static int listen_at(const struct addrinfo *a, int port) {
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), one = 1, none = 0;
    struct sockaddr_storage at;
    memcpy(&at, a->ai_addr, a->ai_addrlen);
    set_port((struct sockaddr *)&at, port);
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &one, sizeof one);
    if (a->ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &none, sizeof none);
    if (bind(fd, (struct sockaddr *)&at, a->ai_addrlen) == 0 && listen(fd, SOMAXCONN) == 0)
        return fd;
    int why = errno;
    close(fd);
    errno = why;
    return -1;
}
static int listen_any(const char *host, int port) {
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = host ? 0 : AI_PASSIVE}, *all;
    int fd = -1;
    if (getaddrinfo(host, "0", &want, &all)) {
        errno = EADDRNOTAVAIL;
        return -1;
    }
    /* of all addresses at once IPv6's are IPv4's too */
    for (int six = host ? -1 : 1; six >= -1 && fd < 0; six -= 2)
        for (struct addrinfo *a = all; a && fd < 0; a = a->ai_next)
            if (six < 0 ? a->ai_family == AF_INET || a->ai_family == AF_INET6
                        : a->ai_family == AF_INET6)
                fd = listen_at(a, port);
    int why = errno;
    freeaddrinfo(all);
    errno = why;
    return fd;
}
int boot_listen(const char *host, int port, int ports, int *got) {
    for (int k = 0; k < ports; k++) {
        int at = port ? port + k : 0, fd = listen_any(host, at);
        /* a machine behind a translated address does not know its own */
        if (fd < 0 && errno == EADDRNOTAVAIL) fd = listen_any(NULL, at);
        if (fd < 0) continue;
        struct sockaddr_storage is;
        socklen_t n = sizeof is;
        getsockname(fd, (struct sockaddr *)&is, &n);
        *got = ntohs(is.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&is)->sin6_port
                                              : ((struct sockaddr_in *)&is)->sin_port);
        return fd;
    }
    return -1;
}

bool boot_files(int64_t n, char *why, int room) {
    struct rlimit l;
    if (getrlimit(RLIMIT_NOFILE, &l) == 0 && l.rlim_cur < l.rlim_max) {
        l.rlim_cur = l.rlim_max;
        setrlimit(RLIMIT_NOFILE, &l);
    }
    int *fd = malloc((size_t)n * sizeof *fd);
    int64_t k = 0;
    while (fd && k < n && (fd[k] = fcntl(STDERR_FILENO, F_DUPFD_CLOEXEC, 0)) >= 0) k++;
    bool none = k < n && errno == EMFILE; /* one that has no standard error is let be */
    for (int64_t i = 0; i < k; i++) close(fd[i]);
    free(fd);
    if (none)
        snprintf(why, (size_t)room,
                 "of open files it may have %lld more, and needs about %lld: the limit is %lld "
                 "(`ulimit -n`)",
                 (long long)k, (long long)n, (long long)l.rlim_cur);
    return !none;
}

/* ---- rank 0 ---- */
typedef struct {
    int fd; /* -1: nobody */
    size_t got;
    double since;
    Hello hello;
} Stranger;
typedef struct {
    const Place *place;
    int *link;
    int listener;
    int64_t missing;
    int full; /* errno: no connection can be taken any more */
    Stranger stranger[STRANGERS];
} Host;

static void let_go(Stranger *s) {
    if (s->fd >= 0) close(s->fd);
    s->fd = -1;
}
/* No byte of it tells how much of a token was right. */
static bool same_token(const char *a, const char *b) {
    int other = 0;
    for (int i = 0; i < PLACE_TOKEN_BYTES; i++) other |= a[i] ^ b[i];
    return !other;
}
static void judge(Host *h, Stranger *s) {
    const Hello *x = &s->hello;
    char token[PLACE_TOKEN_BYTES + 1] = "";
    snprintf(token, sizeof token, "%s", h->place->token);
    if (memcmp(x->magic, magic, sizeof magic) != 0 || !same_token(x->token, token)) {
        let_go(s);
        return;
    }
    Reply r = {.answer = WELCOME, .ranks = h->place->ranks};
    memcpy(r.magic, magic, sizeof magic);
    if (x->words != WORDS || x->size != (int32_t)sizeof *x) r.answer = OTHER_WORDS;
    else if (x->ranks != h->place->ranks || x->rank < 1 || x->rank >= x->ranks)
        r.answer = OTHER_RANKS;
    else if (h->link[x->rank] >= 0) r.answer = TAKEN;
    bool said = send(s->fd, &r, sizeof r, MSG_NOSIGNAL) == (ssize_t)sizeof r;
    if (r.answer != WELCOME || !said) {
        let_go(s);
        return;
    }
    h->link[x->rank] = s->fd;
    h->missing--;
    s->fd = -1;
}
static void hear(Host *h, Stranger *s) {
    ssize_t n = recv(s->fd, (char *)&s->hello + s->got, sizeof s->hello - s->got, 0);
    if (n < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (n <= 0) {
        let_go(s);
        return;
    }
    s->got += (size_t)n;
    if (s->got == sizeof s->hello) judge(h, s);
}
static void welcome(Host *h) {
    int fd = accept(h->listener, NULL, NULL), why = errno;
    if (fd < 0 && (why == EMFILE || why == ENFILE || why == ENOBUFS || why == ENOMEM)) {
        h->full = why;
        for (int i = 0; i < STRANGERS; i++) {
            if (h->stranger[i].fd < 0) continue;
            let_go(&h->stranger[i]); /* who is a rank comes again */
            h->full = 0;
        }
    }
    if (fd < 0) return;
    Stranger *to = &h->stranger[0];
    for (int i = 0; i < STRANGERS && to->fd >= 0; i++)
        if (h->stranger[i].fd < 0 || h->stranger[i].since < to->since) to = &h->stranger[i];
    let_go(to); /* the one that has been silent longest */
    ready(fd);
    *to = (Stranger){.fd = fd, .since = now()};
}
/* Who has come and gone may come again: a rank that thought that nobody answers. */
static void miss(Host *h, int64_t r) {
    char c;
    ssize_t n = recv(h->link[r], &c, 1, MSG_PEEK);
    if (n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR))) return;
    close(h->link[r]);
    h->link[r] = -1;
    h->missing++;
}
static void look(Host *h) {
    struct pollfd p[1 + STRANGERS];
    Stranger *of[1 + STRANGERS];
    nfds_t n = 0;
    p[n++] = (struct pollfd){.fd = h->listener, .events = POLLIN};
    for (int i = 0; i < STRANGERS; i++) {
        Stranger *s = &h->stranger[i];
        if (s->fd >= 0 && now() - s->since > HELLO) let_go(s);
        if (s->fd < 0) continue;
        of[n] = s;
        p[n++] = (struct pollfd){.fd = s->fd, .events = POLLIN};
    }
    if (poll(p, n, TICK_MS) <= 0) return;
    for (nfds_t i = 1; i < n; i++)
        if (p[i].revents) hear(h, of[i]);
    if (p[0].revents && h->missing) welcome(h);
}
static BootEnd host_all(const BootAsk *ask, int *link, int64_t *missing, char *why, int room) {
    const Place *p = ask->place;
    int got;
    Host h = {.place = p, .link = link, .listener = p->listener, .missing = p->ranks - 1};
    Patience patience = {0, now(), ask->deadline};
    for (int i = 0; i < STRANGERS; i++) h.stranger[i].fd = -1;
    /* of several machines: by whatever address the others know this one */
    const char *host = p->beside < p->ranks ? NULL : p->host;
    if (h.listener < 0) h.listener = boot_listen(host, p->port, p->ports, &got);
    if (h.listener < 0) {
        snprintf(why, (size_t)room, "rank 0 cannot listen at %s, ports %d to %d: %s", p->host,
                 p->port, p->port + p->ports - 1, strerror(errno));
        return BOOT_REFUSED;
    }
    ready(h.listener);
    while (h.missing && !h.full && patient(&patience)) {
        ask->lives(ask->arg);
        look(&h);
        for (int64_t r = 1; r < p->ranks; r++)
            if (link[r] >= 0) miss(&h, r);
    }
    close(h.listener);
    for (int i = 0; i < STRANGERS; i++) let_go(&h.stranger[i]);
    for (int64_t r = p->ranks - 1; r > 0; r--)
        if (link[r] < 0) *missing = r;
    for (int64_t r = 1; r < p->ranks; r++) {
        ssize_t n = link[r] < 0 ? 0 : send(link[r], h.missing ? "e" : "s", 1, MSG_NOSIGNAL);
        (void)n; /* who is gone by now is missed by the star */
    }
    if (h.full)
        snprintf(why, (size_t)room, "rank 0 cannot take the connections of %lld ranks: %s",
                 (long long)p->ranks - 1, strerror(h.full));
    return h.full ? BOOT_REFUSED : h.missing ? BOOT_LATE : BOOT_MET;
}

/* ---- the others ---- */
/* Waits until the socket is ready; false: not in `seconds`, or the run has no patience left. */
static bool wait_for(const BootAsk *ask, int fd, short events, double seconds, Patience *all) {
    Patience mine = {0, now(), seconds};
    for (;;) {
        struct pollfd p = {.fd = fd, .events = events};
        ask->lives(ask->arg);
        if (poll(&p, 1, TICK_MS) > 0) return true;
        bool go_on = patient(&mine);
        if (!patient(all) || !go_on) return false;
    }
}
static bool take(const BootAsk *ask, int fd, void *to, size_t n, double seconds, Patience *all) {
    for (size_t got = 0; got < n;) {
        if (!wait_for(ask, fd, POLLIN, seconds, all)) return false;
        ssize_t k = recv(fd, (char *)to + got, n - got, 0);
        if (k == 0 || (k < 0 && errno != EAGAIN && errno != EINTR)) return false;
        if (k > 0) got += (size_t)k;
    }
    return true;
}
/* One try at one address: a link when rank 0 says that all are there. */
static int join(const BootAsk *ask, const struct addrinfo *a, Patience *all, Reply *r) {
    const Place *p = ask->place;
    int fd = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0), bad = 0;
    socklen_t n = sizeof bad;
    char start;
    if (fd < 0) return -1;
    ready(fd);
    Hello x = {.words = WORDS, .size = sizeof x, .rank = p->rank, .ranks = p->ranks};
    memcpy(x.magic, magic, sizeof magic);
    memcpy(x.token, p->token, strlen(p->token)); /* the rest is 0 */
    bool ok = connect(fd, a->ai_addr, a->ai_addrlen) == 0 || errno == EINPROGRESS;
    /* where one port alone is named nobody else can be there */
    double answer = p->ports > 1 && ask->deadline > ANSWER ? ANSWER : ask->deadline;
    ok = ok && wait_for(ask, fd, POLLOUT, answer, all);
    ok = ok && getsockopt(fd, SOL_SOCKET, SO_ERROR, &bad, &n) == 0 && !bad;
    ok = ok && send(fd, &x, sizeof x, MSG_NOSIGNAL) == (ssize_t)sizeof x;
    ok = ok && take(ask, fd, r, sizeof *r, answer, all);
    if (!ok || memcmp(r->magic, magic, sizeof magic) != 0) *r = (Reply){.answer = -1};
    /* rank 0, who can name who is missing, began to wait before this: it gives up earlier */
    Patience rest = {0, now(), ask->deadline + GRACE};
    bool told = r->answer == WELCOME && take(ask, fd, &start, 1, ask->deadline + GRACE, &rest);
    if (told && start == 's') return fd;
    if (told) r->answer = OVER;
    close(fd);
    return -1;
}
static bool refused(const Place *p, const Reply *r, char *why, int room) {
    if (r->answer == OTHER_WORDS)
        snprintf(why, (size_t)room, "rank 0 runs another version of shardproof");
    else if (r->answer == OTHER_RANKS)
        snprintf(why, (size_t)room, "this process is rank %lld of %lld, and rank 0 counts %lld",
                 (long long)p->rank, (long long)p->ranks, (long long)r->ranks);
    else return false;
    return true;
}
/* The addresses of rank 0's machine; NULL, and *bad says why. */
static struct addrinfo *look_up(const Place *p, Patience *all, int *bad) {
    struct addrinfo want = {.ai_socktype = SOCK_STREAM, .ai_flags = AI_NUMERICSERV}, *found = NULL;
    patient(all);
    *bad = getaddrinfo(p->host, "1", &want, &found);
    waited(all);
    return *bad ? NULL : found;
}
/* One try at one port, at each address; -1: no link, and *r is what was answered. */
static int join_at(const BootAsk *ask, const struct addrinfo *found, int port, Patience *all,
                   Reply *r) {
    int fd = -1;
    *r = (Reply){.answer = -1};
    for (const struct addrinfo *a = found; a && fd < 0 && r->answer < 0; a = a->ai_next) {
        if (a->ai_family != AF_INET && a->ai_family != AF_INET6) continue;
        set_port(a->ai_addr, port);
        fd = join(ask, a, all, r);
    }
    return fd;
}
static BootEnd join_all(const BootAsk *ask, int *link, char *why, int room) {
    const Place *p = ask->place;
    Patience all = {0, now(), ask->deadline + GRACE};
    struct addrinfo *found = NULL;
    double asked = 0;
    int bad = 0;
    BootEnd end = BOOT_LATE;
    bool taken = false;
    for (int k = 0; end == BOOT_LATE; k = (k + 1) % p->ports) {
        Reply r;
        if (!asked || now() - asked > LOOKUP) { /* names may change, and servers are few */
            if (found) freeaddrinfo(found);
            found = look_up(p, &all, &bad);
            asked = now();
        }
        link[0] = join_at(ask, found, p->port + k, &all, &r);
        taken |= r.answer == TAKEN;
        if (link[0] >= 0) end = BOOT_MET;
        else if (r.answer == OVER) end = BOOT_OVER;
        else if (refused(p, &r, why, room)) end = BOOT_REFUSED;
        ask->lives(ask->arg);
        if (end == BOOT_LATE && (k == p->ports - 1 || !found)) poll(NULL, 0, (int)(1e3 * AGAIN));
        if (end != BOOT_LATE || patient(&all)) continue;
        if (taken) snprintf(why, (size_t)room, "there is another rank %lld", (long long)p->rank);
        else if (bad) snprintf(why, (size_t)room, "%s: %s", p->host, gai_strerror(bad));
        if (taken || bad) end = BOOT_REFUSED;
        break;
    }
    if (found) freeaddrinfo(found);
    return end;
}
BootEnd boot_meet(const BootAsk *ask, int *link, int64_t *missing, char *why, int room) {
    const Place *p = ask->place;
    *missing = -1;
    for (int64_t r = 0; r < (p->rank ? 1 : p->ranks); r++) link[r] = -1;
    if (p->rank == 0) return host_all(ask, link, missing, why, room);
    return join_all(ask, link, why, room);
}
