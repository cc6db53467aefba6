/* NCCL and what its plug-in uses of CUDA's runtime, without a GPU: the tests' own, with the names
 * of the real ones. Its GPU's memory is behind a fence (support/fence.h), a stream is a thread, a
 * communicator has a socket to each of its ranks. As with the real one nothing is done when a call
 * returns: communicators become ready later, a call on one that is not ready is refused, copies and
 * collectives go on while the caller polls, what is in a group goes on together.
 * FAKE_GPUS: how many GPUs this process sees (16); FAKE_DRIVER: the version of a driver that is too
 * old, 0: there is none; FAKE_MODE: their compute mode; FAKE_NCCL_VERSION; FAKE_DIR: a folder where
 * ranks meet that have networks of their own. FAKE_FAULT="1 GroupEnd 3 remote" (planted.h): on rank
 * 1 the third call of that name fails. "returns remote" is what it returns; else "inprogress": it
 * is never done; "hang": what it asks for is never done; "kill", "stop", "hold": the process is;
 * another word: the communicator's asynchronous error, and what it asks for is never done. Of
 * CUDA's calls each word is an error that is returned. FAKE_FORGETS=cudaStreamWaitEvent: it does
 * nothing. Streams that nothing orders and that are at the same block end the process (order.h).
 * The tests' GPU (gpu.c) works on these streams too, in this memory: fake.h. FAKE_LOG=FILE: a line
 * for each communicator that is aborted.
 */
#include "fake.h"
#include "nccl_abi.h"
#include "planted.h"
#include "base/clock.h"
#include "support/order.h"
#include "support/fence.h"
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { RANKS = 16, ROOM = 1 << 30, NEVER = -1, NAP_MS = 1, POLLS = 2, TEXT = 64 };

/* ---- planted faults ---- */
static const struct {
    const char *word;
    int result;
} results[] = {
    {"cuda", ncclUnhandledCudaError},      {"system", ncclSystemError},
    {"internal", ncclInternalError},       {"argument", ncclInvalidArgument},
    {"usage", ncclInvalidUsage},           {"remote", ncclRemoteError},
    {"inprogress", ncclInProgress},        {"hang", NEVER},
    {"memory", cudaErrorMemoryAllocation}, {"address", cudaErrorIllegalAddress},
};
typedef struct {
    bool now, returned;
    int result;
} Fault;
static Fault fault(const char *call) {
    static _Atomic int seen[PLANTED_MOST];
    Fault f = {0};
    Planted p;
    if (!planted_at(call, seen, &p)) return f;
    f.returned = !strcmp(p.word, "returns");
    for (size_t i = 0; i < sizeof results / sizeof *results; i++)
        if (!strcmp(results[i].word, f.returned ? p.what : p.word)) {
            f.now = true;
            f.result = results[i].result;
        }
    if (!f.now) abort(); /* a word that nobody knows */
    return f;
}
#define FAULT(call)                                                                                \
    Fault f = fault(call);                                                                         \
    if (f.now && f.returned) return (ncclResult_t)f.result
/* Of a call that only asks: what hangs is the group that it is in. */
#define FAULT_RETURNED(call)                                                                       \
    do {                                                                                           \
        FAULT(call);                                                                               \
        if (f.now) abort(); /* nothing here can do that */                                         \
    } while (0)
#define CUDA_FAULT(call)                                                                           \
    do {                                                                                           \
        Fault f = fault(call);                                                                     \
        if (f.now) return (cudaError_t)f.result;                                                   \
    } while (0)

/* ---- waiting ---- */
/* Whoever waits sleeps until something has moved on, or looks again after a while: ranks are more
 * than processors, and those that spin keep the others from what they wait for. */
static struct {
    pthread_mutex_t lock;
    pthread_cond_t moved;
} W = {PTHREAD_MUTEX_INITIALIZER, PTHREAD_COND_INITIALIZER};
static void moved_on(void) {
    pthread_mutex_lock(&W.lock);
    pthread_cond_broadcast(&W.moved);
    pthread_mutex_unlock(&W.lock);
}
/* Waits once, where *x is still what it was. */
static void nap_while(const _Atomic int *x, int was) {
    struct timespec until;
    clock_gettime(CLOCK_REALTIME, &until);
    until.tv_nsec += NAP_MS * 1000000L;
    until.tv_sec += until.tv_nsec / 1000000000L;
    until.tv_nsec %= 1000000000L;
    pthread_mutex_lock(&W.lock);
    if (atomic_load(x) == was) pthread_cond_timedwait(&W.moved, &W.lock, &until);
    pthread_mutex_unlock(&W.lock);
}
static void nap(void) { usleep(NAP_MS * 1000); }

/* ---- memory and streams ---- */
static Fence *fence(void) {
    static Fence *all;
    if (!all) all = fence_new(ROOM);
    return all;
}
Fence *fake_fence(void) { return fence(); }
typedef struct Job {
    struct Job *next;
    bool (*run)(struct Job *j); /* false: it will never be done */
    char *to, *from;
    size_t n;
    void *more;
} Job;
struct CUstream_st {
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t come;
    Job *first, *last;
    _Atomic int left;
    bool ends;
    int number; /* of order.h */
};
static void *work(void *arg) {
    cudaStream_t s = arg;
    for (bool goes = true; goes;) {
        pthread_mutex_lock(&s->lock);
        while (!s->first && !s->ends) pthread_cond_wait(&s->come, &s->lock);
        Job *j = s->first;
        if (j && !(s->first = j->next)) s->last = NULL;
        pthread_mutex_unlock(&s->lock);
        if (!j) break;
        goes = j->run(j);
        free(j->more ? j->more : j->from);
        free(j);
        if (goes) atomic_fetch_sub(&s->left, 1);
        moved_on();
    }
    return NULL;
}
static void push(cudaStream_t s, Job j) {
    Job *one = malloc(sizeof *one);
    *one = j;
    one->next = NULL;
    atomic_fetch_add(&s->left, 1);
    pthread_mutex_lock(&s->lock);
    if (s->last) s->last->next = one;
    else s->first = one;
    s->last = one;
    pthread_cond_signal(&s->come);
    pthread_mutex_unlock(&s->lock);
}
cudaError_t cudaStreamCreateWithFlags(cudaStream_t *stream, unsigned flags) {
    cudaStream_t s = calloc(1, sizeof *s);
    if (flags != cudaStreamNonBlocking) return cudaErrorInvalidValue;
    pthread_mutex_init(&s->lock, NULL);
    pthread_cond_init(&s->come, NULL);
    s->number = order_stream();
    *stream = s;
    return pthread_create(&s->thread, NULL, work, s) ? cudaErrorMemoryAllocation : cudaSuccess;
}
cudaError_t cudaStreamQuery(cudaStream_t s) {
    CUDA_FAULT("cudaStreamQuery");
    int left = atomic_load(&s->left);
    if (left) nap_while(&s->left, left); /* an answer takes a while, as that of a busy GPU does */
    if (left) return cudaErrorNotReady;
    order_waited(s->number);
    return cudaSuccess;
}
cudaError_t cudaStreamSynchronize(cudaStream_t s) {
    for (int left; (left = atomic_load(&s->left));) nap_while(&s->left, left);
    order_waited(s->number);
    return cudaSuccess;
}
/* ---- events ---- */
struct CUevent_st {
    OrderClock clock;
    int asked; /* how often it was recorded; the stream has come to the last but ... */
    _Atomic int reached;
    bool timed;
    double at; /* seconds, when the stream came to it */
};
typedef struct {
    cudaEvent_t event;
    int which;
} AtEvent;
static bool record_job(Job *j) {
    const AtEvent *x = j->more;
    if (x->event->timed) x->event->at = clock_seconds();
    atomic_store(&x->event->reached, x->which);
    moved_on();
    return true;
}
static bool wait_job(Job *j) {
    const AtEvent *x = j->more;
    for (int at; (at = atomic_load(&x->event->reached)) < x->which;)
        nap_while(&x->event->reached, at);
    return true;
}
static void at_event(cudaStream_t s, cudaEvent_t e, bool (*run)(Job *j)) {
    AtEvent *x = malloc(sizeof *x);
    *x = (AtEvent){e, e->asked};
    push(s, (Job){.run = run, .more = x});
}
cudaError_t cudaEventCreateWithFlags(cudaEvent_t *e, unsigned flags) {
    *e = calloc(1, sizeof **e);
    (*e)->timed = flags == cudaEventDefault;
    return (*e)->timed || flags == cudaEventDisableTiming ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaEventSynchronize(cudaEvent_t e) {
    for (int at; (at = atomic_load(&e->reached)) < e->asked;) nap_while(&e->reached, at);
    return cudaSuccess;
}
cudaError_t cudaEventElapsedTime(float *ms, cudaEvent_t from, cudaEvent_t to) {
    if (!from->timed || !to->timed || !from->asked || !to->asked) return cudaErrorInvalidValue;
    if (from->reached < from->asked || to->reached < to->asked) return cudaErrorNotReady;
    *ms = (float)(1e3 * (to->at - from->at));
    return cudaSuccess;
}
cudaError_t cudaEventRecord(cudaEvent_t e, cudaStream_t s) {
    e->clock = order_now(s->number);
    e->asked++;
    at_event(s, e, record_job);
    return cudaSuccess;
}
cudaError_t cudaStreamWaitEvent(cudaStream_t s, cudaEvent_t e, unsigned flags) {
    const char *forgets = getenv("FAKE_FORGETS");
    if (flags) return cudaErrorInvalidValue;
    if (forgets && !strcmp(forgets, "cudaStreamWaitEvent")) return cudaSuccess;
    if (!e->asked) return cudaSuccess;
    order_behind(s->number, &e->clock);
    at_event(s, e, wait_job);
    return cudaSuccess;
}
cudaError_t cudaEventDestroy(cudaEvent_t e) {
    free(e);
    return cudaSuccess;
}
cudaError_t cudaStreamDestroy(cudaStream_t s) {
    pthread_mutex_lock(&s->lock);
    s->ends = true;
    pthread_cond_signal(&s->come);
    pthread_mutex_unlock(&s->lock);
    pthread_join(s->thread, NULL);
    free(s);
    return cudaSuccess;
}
cudaError_t cudaMalloc(void **p, size_t n) {
    CUDA_FAULT("cudaMalloc");
    *p = fence_take(fence(), n);
    order_take(*p, n);
    return cudaSuccess;
}
cudaError_t cudaFree(void *p) {
    order_give(p);
    fence_give(fence(), p);
    return cudaSuccess;
}
static bool copy_job(Job *j) {
    memcpy(j->to, j->from, j->n);
    return true;
}
static bool other_way(const void *to, const void *from, enum cudaMemcpyKind kind) {
    bool gpu = fence_has(fence(), to), host = !fence_has(fence(), from);
    return kind == cudaMemcpyHostToDevice ? !gpu || !host : gpu || host;
}
cudaError_t cudaMemcpy(void *to, const void *from, size_t n, enum cudaMemcpyKind kind) {
    CUDA_FAULT("cudaMemcpy");
    if (other_way(to, from, kind)) return cudaErrorInvalidValue;
    order_touch(ORDER_HOST, to, true, "cudaMemcpy");
    order_touch(ORDER_HOST, from, false, "cudaMemcpy");
    memcpy(fence_at(fence(), to), fence_at(fence(), from), n);
    return cudaSuccess;
}
/* What the host asks of a stream in CUDA's place: fn(arg), which it frees. */
typedef struct {
    void (*fn)(void *arg);
    char arg[];
} Task;
static bool task_job(Job *j) {
    Task *t = j->more;
    t->fn(t->arg);
    return true;
}
void fake_run(cudaStream_t s, const FakeTask *t) {
    Task *copy = malloc(sizeof *copy + t->bytes);
    copy->fn = t->fn;
    memcpy(copy->arg, t->arg, t->bytes);
    for (int i = 0; i < t->n; i++)
        order_touch(s->number, t->touches[i].p, t->touches[i].writes, t->name);
    order_asked(s->number, t->name);
    push(s, (Job){.run = task_job, .more = copy});
}
/* From memory of the host that is not pinned: it is read before this returns; to such memory: it is
 * written then. */
cudaError_t cudaMemcpyAsync(void *to, const void *from, size_t n, enum cudaMemcpyKind kind,
                            cudaStream_t s) {
    CUDA_FAULT("cudaMemcpyAsync");
    if (other_way(to, from, kind)) return cudaErrorInvalidValue;
    if (kind == cudaMemcpyDeviceToHost) {
        order_touch(s->number, from, false, "cudaMemcpyAsync");
        cudaStreamSynchronize(s);
        memcpy(to, fence_at(fence(), from), n);
        return cudaSuccess;
    }
    order_touch(s->number, to, true, "cudaMemcpyAsync");
    char *held = malloc(n + 1);
    memcpy(held, from, n);
    push(s, (Job){.run = copy_job, .to = fence_at(fence(), to), .from = held, .n = n});
    return cudaSuccess;
}
static int the_device;
cudaError_t cudaGetDeviceCount(int *n) {
    const char *gpus = getenv("FAKE_GPUS");
    *n = 0;
    if (getenv("FAKE_DRIVER")) return cudaErrorInsufficientDriver;
    *n = gpus ? atoi(gpus) : 16;
    return *n ? cudaSuccess : cudaErrorNoDevice;
}
cudaError_t cudaDriverGetVersion(int *version) {
    const char *driver = getenv("FAKE_DRIVER");
    *version = driver ? atoi(driver) : 13000;
    return cudaSuccess;
}
cudaError_t cudaDeviceGetAttribute(int *value, enum cudaDeviceAttr which, int device) {
    const char *mode = getenv("FAKE_MODE");
    *value = mode ? atoi(mode) : 0;
    return which == cudaDevAttrComputeMode && device >= 0 ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaSetDevice(int device) {
    CUDA_FAULT("cudaSetDevice");
    int n;
    cudaGetDeviceCount(&n);
    the_device = device;
    return device >= 0 && device < n ? cudaSuccess : cudaErrorInvalidValue;
}
cudaError_t cudaDeviceGetPCIBusId(char *text, int room, int device) {
    snprintf(text, (size_t)room, "0000:%02x:00.0", device + 1);
    return cudaSuccess;
}
const char *cudaGetErrorString(cudaError_t e) {
    return e == cudaErrorNoDevice             ? "no CUDA-capable device is detected"
           : e == cudaErrorInsufficientDriver ? "CUDA driver version is insufficient for CUDA "
                                                "runtime version"
           : e == cudaErrorIllegalAddress     ? "an illegal memory access was encountered"
           : e == cudaErrorMemoryAllocation   ? "out of memory"
                                              : "invalid argument";
}

/* ---- communicators ---- */
struct ncclComm {
    char name[TEXT]; /* of its sockets */
    int rank, n, fd[RANKS], splits;
    _Atomic int state, polls; /* so often a call is not done yet */
    _Atomic bool over, busy;  /* given up; a group of it is on its stream */
    pthread_t thread;
    /* of a split: what its thread makes */
    struct ncclComm **child;
    int color, key;
};
typedef struct {
    int rank, color, key;
} Seat;
/* The kernel's own names, of which no files are left; each network of a machine has its own, so
 * where a folder is named they are there. */
static socklen_t address(struct sockaddr_un *a, const char *name, int rank) {
    const char *dir = getenv("FAKE_DIR");
    int lead = dir ? 0 : 1;
    *a = (struct sockaddr_un){.sun_family = AF_UNIX};
    int n = snprintf(a->sun_path + lead, sizeof a->sun_path - 1, "%s%sspnccl-%s-%d", dir ? dir : "",
                     dir ? "/" : "", name, rank);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + (size_t)(lead + n + !lead));
}
static int open_socket(void) { return socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0); }
/* What NCCL holds two ranks to be apart by: their GPU, and the machine as NCCL_HOSTID names it when
 * it is first looked at. Two on one GPU are refused, but by versions that can be told to allow it.
 */
typedef struct {
    int rank, device;
    bool many;
    char host[TEXT];
} Card;
static Card own_card(int rank) {
    static Card me;
    static bool known;
    const char *id = getenv("NCCL_HOSTID"), *many = getenv("NCCL_MULTI_RANK_GPU_ENABLE");
    int version;
    ncclGetVersion(&version);
    if (!known) {
        me = (Card){.device = the_device, .many = version >= 23003 && many && !strcmp(many, "1")};
        if (id) snprintf(me.host, sizeof me.host, "%s", id);
        else gethostname(me.host, sizeof me.host - 1);
    }
    known = true;
    me.rank = rank;
    return me;
}
/* A socket to each rank: from the higher to the lower one. False: it was given up. */
static bool connect_all(ncclComm_t c) {
    struct sockaddr_un a;
    socklen_t len = address(&a, c->name, c->rank);
    int listener = open_socket(), higher = c->n - 1 - c->rank;
    const Card me = own_card(c->rank);
    if (bind(listener, (struct sockaddr *)&a, len) || listen(listener, RANKS)) abort();
    fcntl(listener, F_SETFL, O_NONBLOCK);
    for (int r = 0; r < c->n; r++) c->fd[r] = -1;
    for (int r = 0; r < c->rank; r++) {
        len = address(&a, c->name, r);
        c->fd[r] = open_socket();
        while (connect(c->fd[r], (struct sockaddr *)&a, len)) {
            nap();
            if (atomic_load(&c->over)) return false;
        }
        if (write(c->fd[r], &me, sizeof me) != sizeof me) abort();
    }
    while (higher && !atomic_load(&c->over)) {
        Card it;
        struct pollfd comes = {.fd = listener, .events = POLLIN};
        poll(&comes, 1, NAP_MS);
        int fd = accept(listener, NULL, NULL);
        if (fd < 0) continue;
        if (read(fd, &it, sizeof it) != sizeof it) abort();
        bool same = it.device == me.device && !strcmp(it.host, me.host);
        if (same && !(it.many && me.many)) atomic_store(&c->state, ncclInvalidUsage);
        c->fd[it.rank] = fd;
        higher--;
    }
    close(listener);
    for (int r = 0; r < c->n; r++)
        if (c->fd[r] >= 0) fcntl(c->fd[r], F_SETFL, O_NONBLOCK);
    return !higher;
}
static void *init(void *arg) {
    ncclComm_t c = arg;
    int was = ncclInProgress; /* or refused */
    if (connect_all(c)) atomic_compare_exchange_strong(&c->state, &was, ncclSuccess);
    moved_on();
    return NULL;
}
static ncclComm_t comm_new(const char *name, int rank, int n) {
    ncclComm_t c = calloc(1, sizeof *c);
    if (n > RANKS) abort();
    snprintf(c->name, sizeof c->name, "%s", name);
    c->rank = rank, c->n = n;
    atomic_store(&c->state, ncclInProgress);
    return c;
}
static bool is_config(const ncclConfig_t *x) {
    return x && x->size >= offsetof(ncclConfig_t, netName) && x->magic == 0xcafebeef &&
           x->blocking == 0;
}
ncclResult_t ncclGetVersion(int *version) {
    const char *as = getenv("FAKE_NCCL_VERSION");
    *version = as ? atoi(as) : NCCL_VERSION_CODE;
    return ncclSuccess;
}
ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    FAULT("GetUniqueId");
    uint64_t x;
    if (getrandom(&x, sizeof x, 0) != sizeof x) abort();
    *id = (ncclUniqueId){{0}};
    snprintf(id->internal, sizeof id->internal, "%016llx", (unsigned long long)x);
    return ncclSuccess;
}
ncclResult_t ncclCommInitRankConfig(ncclComm_t *comm, int n, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    FAULT("CommInitRankConfig");
    if (!is_config(config) || rank < 0 || rank >= n) return ncclInvalidArgument;
    *comm = comm_new(id.internal, rank, n);
    if (f.now) atomic_store(&(*comm)->state, f.result == NEVER ? ncclInProgress : f.result);
    else pthread_create(&(*comm)->thread, NULL, init, *comm);
    return ncclInProgress;
}
/* A call on a communicator that is not ready, or that has failed. */
static ncclResult_t not_ready(ncclComm_t c) {
    int state = c ? atomic_load(&c->state) : ncclInvalidArgument;
    if (c && (atomic_load(&c->polls) > 0 || state == ncclInProgress)) return ncclInvalidArgument;
    return (ncclResult_t)state;
}
ncclResult_t ncclCommGetAsyncError(ncclComm_t c, ncclResult_t *state) {
    if (!c) return ncclInvalidArgument;
    *state = (ncclResult_t)atomic_load(&c->state);
    if (*state == ncclSuccess && atomic_load(&c->polls) > 0) {
        atomic_fetch_sub(&c->polls, 1);
        *state = ncclInProgress;
    }
    if (*state == ncclInProgress) nap_while(&c->state, ncclInProgress);
    return ncclSuccess;
}

/* ---- what goes over the sockets ---- */
typedef struct {
    ncclComm_t comm;
    int peer;
    bool out;
    char *p;
    size_t n, at;
} Transfer;
/* One that an earlier one of the same peer and direction does not hold up; false: the peer is gone.
 */
static bool advance(Transfer *t) {
    int fd = t->comm->fd[t->peer];
    ssize_t n = t->out ? send(fd, t->p + t->at, t->n - t->at, MSG_NOSIGNAL)
                       : recv(fd, t->p + t->at, t->n - t->at, 0);
    if (n > 0) t->at += (size_t)n;
    return n > 0 || (n < 0 && (errno == EAGAIN || errno == EINTR));
}
static bool held_up(const Transfer *t, int i) {
    for (int k = 0; k < i; k++)
        if (t[k].at < t[k].n && t[k].comm == t[i].comm && t[k].peer == t[i].peer &&
            t[k].out == t[i].out)
            return true;
    return false;
}
/* Until one of them can go on, or a while: it may have been given up. */
static void nap_sockets(const Transfer *t, int n) {
    struct pollfd *p = malloc((size_t)n * sizeof *p);
    int k = 0;
    for (int i = 0; i < n; i++)
        if (t[i].at < t[i].n && !held_up(t, i))
            p[k++] = (struct pollfd){.fd = t[i].comm->fd[t[i].peer],
                                     .events = t[i].out ? POLLOUT : POLLIN};
    poll(p, (nfds_t)k, NAP_MS);
    free(p);
}
/* All of them together. A peer that is gone is the communicator's error, and never done. */
static bool transfer_all(Transfer *t, int n) {
    for (bool left = true; left;) {
        left = false;
        size_t before = 0, after = 0;
        for (int i = 0; i < n; i++) {
            if (t[i].at == t[i].n) continue;
            if (atomic_load(&t[i].comm->over)) return false;
            before += t[i].at;
            if (!held_up(t, i) && !advance(&t[i])) {
                atomic_store(&t[i].comm->state, ncclRemoteError);
                return false;
            }
            after += t[i].at;
            left |= t[i].at < t[i].n;
        }
        if (left && before == after) nap_sockets(t, n);
    }
    return true;
}
/* Every rank's seat, and the communicator of those with the same color, in the order of keys. */
static void *split(void *arg) {
    ncclComm_t c = arg;
    Seat mine = {c->rank, c->color, c->key}, all[RANKS];
    Transfer t[2 * RANKS];
    int n = 0, rank = 0, members = 0;
    for (int r = 0; r < c->n; r++) {
        if (r == c->rank) continue;
        t[n++] = (Transfer){c, r, true, (char *)&mine, sizeof mine, 0};
        t[n++] = (Transfer){c, r, false, (char *)&all[r], sizeof mine, 0};
    }
    all[c->rank] = mine;
    if (!transfer_all(t, n)) return NULL;
    for (int r = 0; r < c->n; r++) {
        if (all[r].color != c->color) continue;
        members++;
        rank += all[r].key < c->key || (all[r].key == c->key && r < c->rank);
    }
    char name[TEXT];
    snprintf(name, sizeof name, "%.30s+%d.%d", c->name, c->splits, c->color);
    ncclComm_t child = comm_new(name, rank, members);
    if (!connect_all(child)) return NULL;
    atomic_store(&child->state, ncclSuccess);
    *c->child = child; /* nobody sees it before */
    atomic_store(&c->state, ncclSuccess);
    moved_on();
    return NULL;
}
ncclResult_t ncclCommSplit(ncclComm_t c, int color, int key, ncclComm_t *child,
                           ncclConfig_t *config) {
    FAULT("CommSplit");
    ncclResult_t bad = not_ready(c);
    if (bad) return bad;
    if (atomic_load(&c->busy)) return ncclInvalidUsage; /* something is outstanding */
    if (!is_config(config) || color < 0) return ncclInvalidArgument;
    pthread_t thread;
    c->child = child, c->color = color, c->key = key, c->splits++;
    *child = NULL;
    atomic_store(&c->state, ncclInProgress);
    if (f.now && f.result != NEVER) atomic_store(&c->state, f.result);
    if (f.now) return ncclSuccess;
    pthread_create(&thread, NULL, split, c);
    pthread_detach(thread);
    return ncclSuccess; /* as NVIDIA's, though it has only begun: the parent's state says when */
}
ncclResult_t ncclCommFinalize(ncclComm_t c) {
    FAULT("CommFinalize");
    ncclResult_t bad = not_ready(c);
    if (bad) return bad;
    atomic_store(&c->polls, POLLS);
    if (f.now) atomic_store(&c->state, f.result == NEVER ? ncclInProgress : f.result);
    return ncclInProgress;
}
static void forget(ncclComm_t c) {
    atomic_store(&c->over, true);
    if (c->thread) pthread_join(c->thread, NULL);
    for (int r = 0; r < c->n; r++)
        if (r != c->rank && c->fd[r] > 0) close(c->fd[r]);
}
ncclResult_t ncclCommDestroy(ncclComm_t c) {
    FAULT("CommDestroy");
    if (not_ready(c) || atomic_load(&c->busy)) return ncclInvalidUsage;
    forget(c);
    free(c);
    return ncclSuccess;
}
ncclResult_t ncclCommAbort(ncclComm_t c) {
    const char *log = getenv("FAKE_LOG");
    FILE *to = log ? fopen(log, "a") : NULL;
    FAULT("CommAbort");
    while (f.now) nap(); /* it never returns */
    if (to) fprintf(to, "rank %s gave up %s as %d of %d\n", getenv("RANK"), c->name, c->rank, c->n);
    if (to) fclose(to);
    forget(c); /* what is on its stream may still look at it */
    return ncclSuccess;
}
ncclResult_t ncclCommCount(const ncclComm_t c, int *n) {
    *n = c->n;
    return not_ready(c);
}
ncclResult_t ncclCommUserRank(const ncclComm_t c, int *rank) {
    *rank = c->rank;
    return not_ready(c);
}
const char *ncclGetErrorString(ncclResult_t r) {
    static const char *const text[] = {
        "no error",
        "unhandled cuda error (run with NCCL_DEBUG=INFO for details)",
        "unhandled system error (run with NCCL_DEBUG=INFO for "
        "details)",
        "internal error - please report this issue to the NCCL "
        "developers",
        "invalid argument (run with NCCL_DEBUG=WARN for details)",
        "invalid usage (run with NCCL_DEBUG=WARN for details)",
        "remote process exited or there was a network error",
        "NCCL operation in progress"};
    return text[r];
}
const char *ncclGetLastError(ncclComm_t comm) {
    (void)comm;
    return "the tests' NCCL: what went wrong";
}

/* ---- groups ---- */
typedef struct {
    ncclComm_t comm;
    int peer, root; /* peer -1: a sum; root -1: to all */
    bool out, parts, max;
    const char *from;
    char *to;
    size_t n, size; /* elements that come to `to`, bytes of each */
    char *theirs;   /* of a sum: a block of n elements from each rank */
} Op;
typedef struct {
    Op *op;
    int n;
    bool never;
} Batch;
static struct {
    int depth, n;
    Op op[1024];
    cudaStream_t stream;
    ncclResult_t bad;
} G;

static void add(Op *o, const char *from) {
    for (size_t i = 0; i < o->n; i++) {
        if (o->size == 4) {
            float *a = (float *)o->to + i, b = ((const float *)from)[i];
            *a = o->max ? (b > *a ? b : *a) : *a + b;
        } else {
            double *a = (double *)o->to + i, b = ((const double *)from)[i];
            *a = o->max ? (b > *a ? b : *a) : *a + b;
        }
    }
}
/* What a rank that is `to` gets of this one's block. */
static const char *part_for(const Op *o, int to) {
    return o->from + (o->parts ? (size_t)to * o->n * o->size : 0);
}
static int transfers_of(Op *o, Transfer *t) {
    int n = 0, self = o->comm->rank;
    size_t bytes = o->n * o->size;
    bool gets = o->root < 0 || o->root == self;
    if (o->peer >= 0) {
        t[n++] = (Transfer){o->comm, o->peer, o->out, o->out ? (char *)(uintptr_t)o->from : o->to,
                            bytes,   0};
        return n;
    }
    o->theirs = malloc(bytes * (size_t)o->comm->n + 1);
    for (int r = 0; r < o->comm->n; r++) {
        if (r == self) continue;
        if (o->root < 0 || o->root == r)
            t[n++] = (Transfer){o->comm, r, true, (char *)(uintptr_t)part_for(o, r), bytes, 0};
        if (gets) t[n++] = (Transfer){o->comm, r, false, o->theirs + bytes * (size_t)r, bytes, 0};
    }
    return n;
}
/* From the last rank to the first: another order than the declared one. */
static void sum_up(Op *o) {
    int self = o->comm->rank, last = o->comm->n - 1;
    size_t bytes = o->n * o->size;
    if (o->root < 0 || o->root == self) {
        memcpy(o->theirs + bytes * (size_t)self, part_for(o, self), bytes);
        memcpy(o->to, o->theirs + bytes * (size_t)last, bytes);
        for (int r = last - 1; r >= 0; r--) add(o, o->theirs + bytes * (size_t)r);
    }
    free(o->theirs);
}
static bool batch_job(Job *j) {
    Batch *b = j->more;
    int n = 0;
    Transfer *t = malloc((size_t)b->n * 2 * RANKS * sizeof *t);
    for (int i = 0; i < b->n; i++) n += transfers_of(&b->op[i], t + n);
    bool done = !b->never && transfer_all(t, n);
    for (int i = 0; i < b->n; i++) {
        if (done && b->op[i].peer < 0) sum_up(&b->op[i]);
        if (done) atomic_store(&b->op[i].comm->busy, false);
    }
    free(t);
    free(b->op);
    return done;
}
static ncclResult_t put(Op o, cudaStream_t stream) {
    ncclResult_t bad = not_ready(o.comm);
    size_t size = o.size;
    const void *end = (const char *)o.to + o.n * size;
    if (!bad && !G.depth) bad = ncclInvalidUsage; /* the plug-in asks for nothing outside of one */
    if (!bad && (size == 0 || o.peer >= o.comm->n || o.peer == o.comm->rank || G.n == 1024))
        bad = ncclInvalidArgument;
    if (!bad && o.n &&
        ((o.from && !fence_has(fence(), o.from)) || (o.to && !fence_has(fence(), end))))
        bad = ncclInvalidArgument; /* NCCL_CHECK_POINTERS */
    if (bad) return G.bad = bad;
    order_touch(stream->number, o.from, false, "NCCL");
    order_touch(stream->number, o.to, true, "NCCL");
    o.from = fence_at(fence(), o.from);
    o.to = fence_at(fence(), o.to);
    G.op[G.n++] = o;
    G.stream = stream;
    return ncclSuccess;
}
static size_t size_of(ncclDataType_t type) {
    return type == ncclInt8 ? 1 : type == ncclFloat32 ? 4 : type == ncclFloat64 ? 8 : 0;
}
ncclResult_t ncclGroupStart(void) {
    FAULT_RETURNED("GroupStart");
    G.depth++;
    return ncclSuccess;
}
ncclResult_t ncclGroupEnd(void) {
    FAULT("GroupEnd");
    int n = G.n;
    ncclResult_t bad = G.bad;
    if (--G.depth || !n) return bad;
    G.n = 0, G.bad = ncclSuccess;
    if (bad) return bad;
    Batch *b = malloc(sizeof *b);
    *b = (Batch){.op = malloc((size_t)n * sizeof *b->op), .n = n, .never = f.now};
    memcpy(b->op, G.op, (size_t)n * sizeof *b->op);
    for (int i = 0; i < n; i++) {
        atomic_store(&b->op[i].comm->polls, POLLS);
        atomic_store(&b->op[i].comm->busy, true);
        if (f.now && f.result != NEVER) atomic_store(&b->op[i].comm->state, f.result);
    }
    order_asked(G.stream->number, "NCCL");
    push(G.stream, (Job){.run = batch_job, .more = b});
    return ncclInProgress;
}
ncclResult_t ncclSend(const void *p, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    FAULT_RETURNED("Send");
    return put((Op){comm, peer, -1, true, false, false, p, NULL, n, size_of(type), NULL}, stream);
}
ncclResult_t ncclRecv(void *p, size_t n, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    FAULT_RETURNED("Recv");
    return put((Op){comm, peer, -1, false, false, false, NULL, p, n, size_of(type), NULL}, stream);
}
static ncclResult_t put_sum(Op o, ncclRedOp_t op, cudaStream_t stream) {
    if (op != ncclSum && op != ncclMax) return ncclInvalidArgument;
    o.max = op == ncclMax;
    o.peer = -1;
    return put(o, stream);
}
ncclResult_t ncclAllReduce(const void *from, void *to, size_t n, ncclDataType_t type,
                           ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    FAULT_RETURNED("AllReduce");
    return put_sum(
        (Op){.comm = comm, .root = -1, .from = from, .to = to, .n = n, .size = size_of(type)}, op,
        stream);
}
ncclResult_t ncclReduceScatter(const void *from, void *to, size_t each, ncclDataType_t type,
                               ncclRedOp_t op, ncclComm_t comm, cudaStream_t stream) {
    FAULT_RETURNED("ReduceScatter");
    return put_sum((Op){.comm = comm,
                        .root = -1,
                        .parts = true,
                        .from = from,
                        .to = to,
                        .n = each,
                        .size = size_of(type)},
                   op, stream);
}
ncclResult_t ncclReduce(const void *from, void *to, size_t n, ncclDataType_t type, ncclRedOp_t op,
                        int root, ncclComm_t comm, cudaStream_t stream) {
    FAULT_RETURNED("Reduce");
    return put_sum(
        (Op){.comm = comm, .root = root, .from = from, .to = to, .n = n, .size = size_of(type)}, op,
        stream);
}
