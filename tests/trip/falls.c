/* A rank that is killed or stopped in a phase of a run with processes, not at a moment of the clock
 * (LD_PRELOAD). FAKE_FAULT (planted.h) names a call: "start", before main; "fork", of its guard;
 * "connect", "accept", of the TCP by which ranks meet; "tell", a message between ranks that is no
 * beat of a heart (engine/star.c); "rename", the last step of an output. What NCCL is asked for the
 * tests' NCCL knows (nccl.c). FALLS_TELLS=FILE: each rank adds a line when it ends, its number and
 * that of its tells. */
#define _GNU_SOURCE
#include "planted.h"
#include <dlfcn.h>
#include <netinet/in.h>
#include <stdint.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

enum { MAGIC = 0x53505354, DATA = 0 }; /* of star.c */
static _Atomic int tells;
static void fall(const char *call) {
    static _Atomic int seen[PLANTED_MOST];
    Planted p;
    if (planted_at(call, seen, &p)) abort(); /* a word that nobody knows here */
}
__attribute__((constructor)) static void start(void) { fall("start"); }
__attribute__((destructor)) static void end(void) {
    const char *to = getenv("FALLS_TELLS"), *rank = getenv("RANK");
    FILE *f = to && rank && tells ? fopen(to, "a") : NULL;
    if (f) fprintf(f, "%s %d\n", rank, tells);
    if (f) fclose(f);
}
#define REAL(name)                                                                                 \
    static __typeof__(&name) real;                                                                 \
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, #name)
static bool is_tcp(const struct sockaddr *a) {
    return a->sa_family == AF_INET || a->sa_family == AF_INET6;
}
pid_t fork(void) {
    REAL(fork);
    fall("fork");
    return real();
}
int connect(int fd, __CONST_SOCKADDR_ARG a, socklen_t n) {
    REAL(connect);
    if (is_tcp(a.__sockaddr__)) fall("connect");
    return real(fd, a, n);
}
int accept(int fd, __SOCKADDR_ARG a, socklen_t *n) {
    REAL(accept);
    struct sockaddr_storage is;
    socklen_t room = sizeof is;
    if (getsockname(fd, (struct sockaddr *)&is, &room) == 0 && is_tcp((struct sockaddr *)&is))
        fall("accept");
    return real(fd, a, n);
}
ssize_t send(int fd, const void *p, size_t n, int flags) {
    REAL(send);
    int32_t head[2] = {0, -1};
    if (n >= sizeof head) memcpy(head, p, sizeof head);
    if (head[0] == MAGIC && head[1] == DATA) {
        atomic_fetch_add(&tells, 1);
        fall("tell");
    }
    return real(fd, p, n, flags);
}
int rename(const char *from, const char *to) {
    REAL(rename);
    fall("rename");
    return real(from, to);
}
