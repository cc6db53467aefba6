/* The engine of NCCL: the plug-in shardproof-nccl.so. Moves are grouped sends and receives, sums
 * the collective over the communicator of their group; what ranks tell each other goes over the
 * sockets by which they met (star.h), whose thread also sees who is lost while this one waits for a
 * GPU. Blocks that lie in the GPU's memory are moved where they lie, on the stream that they are
 * made and read on, which goes on while the program asks for other things; those in the host's are
 * staged. No call of NCCL waits: communicators do not block, and whoever waits here looks whether
 * the run has ended. NCCL is looked for when the engine is opened, as it is hundreds of MB. */
#include "engine/boot.h"
#include "engine/nccl_calls.h"
#include "engine/place.h"
#include "engine/star.h"
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <glob.h>
#include <nccl.h>
#include <pthread.h>
#include <sched.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

__attribute__((visibility("default"))) EngineOpen ENGINE_OPEN;
/* MAX_OPEN: streams that work at once. OWN_SWITCH: the NCCL from which on several ranks may have
 * one GPU when it is told so */
enum { MAX_GROUPS = 64, MAX_OPEN = 64, ALIGN = 256, TEXT = 200, OWN_SWITCH = 23003 };
/* seconds: for communicators to be given up; for hearts to find out whose end it is that NCCL sees
 */
static const double ABORTED = 1, WHOSE = 1;

/* What is used of NCCL, from whichever library is found. */
#define NCCL_FUNCTIONS(X)                                                                          \
    X(GetVersion)                                                                                  \
    X(GetUniqueId)                                                                                 \
    X(GetErrorString)                                                                              \
    X(CommInitRankConfig)                                                                          \
    X(CommSplit)                                                                                   \
    X(CommGetAsyncError)                                                                           \
    X(CommFinalize)                                                                                \
    X(CommDestroy)                                                                                 \
    X(CommAbort)                                                                                   \
    X(CommCount)                                                                                   \
    X(CommUserRank)                                                                                \
    X(GroupStart) X(GroupEnd) X(Send) X(Recv) X(AllReduce) X(ReduceScatter) X(Reduce)
static struct {
#define FIELD(name) __typeof__(&nccl##name) name;
    NCCL_FUNCTIONS(FIELD)
#undef FIELD
    __typeof__(&ncclGetLastError) GetLastError; /* since 2.13; NULL */
} N;
typedef struct {
    void *p;
    size_t room;
} Buffer;
static struct {
    Engine e; /* first */
    EngineHost host;
    Star *star;
    char name[64];
    cudaStream_t stream;
    ncclComm_t world, group[MAX_GROUPS];
    int n_groups, version;
    struct {
        cudaStream_t stream;
        ncclComm_t comm;
    } open[MAX_OPEN]; /* that were asked for something since the last settle */
    int n_open;
    Buffer out, in;
    _Atomic bool ending, inside, giving, aborted;
} M;

/* ---- waiting and ending ---- */
static void *give_up(void *arg) {
    if (atomic_exchange(&M.giving, true)) return arg;
    while (M.n_groups) N.CommAbort(M.group[--M.n_groups]);
    if (M.world) N.CommAbort(M.world);
    atomic_store(&M.aborted, true);
    return arg;
}
/* A peer's GPU may wait for ours, so communicators are given up: by whoever is inside of NCCL, or
 * else by a thread of its own, as that may never return. */
static void ending(void *arg) {
    struct timespec t = {0, 1000000};
    pthread_t other;
    (void)arg;
    atomic_store(&M.ending, true);
    if (!atomic_load(&M.inside) && pthread_create(&other, NULL, give_up, NULL) != 0) return;
    for (int ms = 0; !atomic_load(&M.aborted) && ms < 1e3 * ABORTED; ms++) nanosleep(&t, NULL);
}
static void look(void) {
    if (!atomic_load(&M.ending)) return;
    give_up(NULL);
    for (;;) pause(); /* the star's thread ends the process */
}
static void begin(void) {
    atomic_store(&M.inside, true);
    look();
    star_waits(M.star, true);
}
static void end(void) {
    star_waits(M.star, false);
    atomic_store(&M.inside, false);
    look();
}
static _Noreturn void fail(const char *text) {
    atomic_store(&M.inside, false);
    look(); /* it may be the end of another that was seen */
    star_fail(M.star, text);
}
static void pass_time(int turn) {
    struct timespec t = {0, 50000};
    look();
    if (turn < 1000) sched_yield();
    else nanosleep(&t, NULL);
}
static void must_cuda(const char *where, cudaError_t e) {
    char text[TEXT];
    if (e == cudaSuccess) return;
    snprintf(text, sizeof text, "%s: %s", where, cudaGetErrorString(e));
    fail(text);
}
/* What NCCL says where a peer's process has ended: those who listen to its heart can name it. */
static bool is_of_peer(ncclResult_t e) { return e == ncclRemoteError || e == ncclSystemError; }
static void fail_nccl(const char *where, ncclResult_t e) {
    struct timespec t = {0, 1000000};
    for (int ms = 0; is_of_peer(e) && ms < 1e3 * WHOSE; ms++) {
        look();
        nanosleep(&t, NULL);
    }
    char text[2 * TEXT];
    const char *more = N.GetLastError ? N.GetLastError(NULL) : NULL;
    snprintf(text, sizeof text, "%s: %s%s%s", where, N.GetErrorString(e), more && *more ? "; " : "",
             more ? more : "");
    for (char *c = text; *c; c++)
        if (*c == '\n') *c = ' ';
    fail(text);
}
/* A call has begun; returns when the communicator says that it is done. What the call itself
 * returns is not that: a split that has only begun says success, and there is no child yet. */
static void must(const char *where, ncclResult_t e, ncclComm_t comm) {
    if (e == ncclSuccess) e = ncclInProgress;
    for (int turn = 0; e == ncclInProgress; turn++) {
        ncclResult_t got = N.CommGetAsyncError(comm, &e);
        if (got != ncclSuccess) e = got;
        if (e == ncclInProgress) pass_time(turn);
    }
    if (e != ncclSuccess) fail_nccl(where, e);
}
static void finish(const char *where, cudaStream_t stream, ncclComm_t comm) {
    for (int turn = 0;; turn++) {
        cudaError_t e = cudaStreamQuery(stream);
        ncclResult_t state = ncclSuccess;
        if (e == cudaSuccess) return;
        if (e != cudaErrorNotReady) must_cuda(where, e);
        if (N.CommGetAsyncError(comm, &state) != ncclSuccess ||
            (state != ncclSuccess && state != ncclInProgress))
            fail_nccl(where, state);
        pass_time(turn);
    }
}
static void settle(Engine *e) {
    (void)e;
    if (!M.n_open) return;
    begin();
    while (M.n_open) {
        M.n_open--;
        finish("send, receive or sum", M.open[M.n_open].stream, M.open[M.n_open].comm);
    }
    end();
}
/* It goes on behind our back: settle waits for it. */
static void leave_open(cudaStream_t stream, ncclComm_t comm) {
    for (int i = 0; i < M.n_open; i++)
        if (M.open[i].stream == stream && M.open[i].comm == comm) return;
    if (M.n_open == MAX_OPEN) settle(NULL);
    M.open[M.n_open].stream = stream;
    M.open[M.n_open++].comm = comm;
}

/* ---- moves ---- */
static char *room_for(Buffer *b, size_t bytes) {
    if (bytes > b->room) {
        if (b->p) must_cuda("cudaFree", cudaFree(b->p));
        b->p = NULL;
        b->room = bytes;
        must_cuda("memory for messages", cudaMalloc(&b->p, bytes));
    }
    return b->p;
}
static size_t slot(int64_t bytes) { return ((size_t)bytes + ALIGN - 1) / ALIGN * ALIGN; }
static size_t slots(const EngineItem *x, int n) {
    size_t all = 0;
    for (int i = 0; i < n; i++) all += slot(x[i].bytes);
    return all;
}
static void to_gpu(char *at, const void *from, size_t n) {
    must_cuda("copy to the GPU", cudaMemcpyAsync(at, from, n, cudaMemcpyHostToDevice, M.stream));
}
/* The messages that lie at *at, one behind the other at multiples of ALIGN (NULL: where they say).
 */
static void post(const EngineItem *x, int n, char *at, bool out, ncclComm_t comm,
                 cudaStream_t stream) {
    for (int i = 0; i < n; i++) {
        void *p = at ? at : x[i].p;
        if (at) at += slot(x[i].bytes);
        if (!x[i].bytes) continue;
        size_t bytes = (size_t)x[i].bytes;
        must(out ? "ncclSend" : "ncclRecv",
             out ? N.Send(p, bytes, ncclInt8, (int)x[i].peer, comm, stream)
                 : N.Recv(p, bytes, ncclInt8, (int)x[i].peer, comm, stream),
             comm);
    }
}
static void exchange_here(const EngineOn *on, const EngineItem *out, int n_out,
                          const EngineItem *in, int n_in) {
    ncclComm_t comm = on->group < 0 ? M.world : M.group[on->group];
    begin();
    must("ncclGroupStart", N.GroupStart(), comm);
    post(out, n_out, NULL, true, comm, on->stream);
    post(in, n_in, NULL, false, comm, on->stream);
    must("ncclGroupEnd", N.GroupEnd(), comm);
    end();
    leave_open(on->stream, comm);
}
static void exchange(Engine *e, const EngineOn *on, const EngineItem *out, int n_out,
                     const EngineItem *in, int n_in) {
    size_t give = slots(out, n_out), get = slots(in, n_in);
    if (!give && !get) return;
    if (on) {
        exchange_here(on, out, n_out, in, n_in);
        return;
    }
    settle(e); /* the communicator of all may be at work */
    begin();
    char *a = room_for(&M.out, give + 1), *b = room_for(&M.in, get + 1), *at = a;
    for (int i = 0; i < n_out; at += slot(out[i++].bytes))
        if (out[i].bytes) to_gpu(at, out[i].p, (size_t)out[i].bytes);
    must("ncclGroupStart", N.GroupStart(), M.world);
    post(out, n_out, a, true, M.world, M.stream);
    post(in, n_in, b, false, M.world, M.stream);
    must("ncclGroupEnd", N.GroupEnd(), M.world);
    finish("send and receive", M.stream, M.world);
    at = b;
    for (int i = 0; i < n_in; at += slot(in[i++].bytes))
        if (in[i].bytes)
            must_cuda("copy from the GPU",
                      cudaMemcpy(in[i].p, at, (size_t)in[i].bytes, cudaMemcpyDeviceToHost));
    end();
}
static void tell(Engine *e, const EngineItem *out, int n_out, const EngineItem *in, int n_in) {
    (void)e;
    star_exchange(M.star, out, n_out, in, n_in);
}
static int64_t least(Engine *e, int64_t mine) {
    (void)e;
    return star_least(M.star, mine);
}

/* ---- sums ---- */
static int group(Engine *e, int64_t color, int64_t place) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    if (M.n_groups == MAX_GROUPS) return -1;
    config.blocking = 0;
    settle(e); /* nothing may be outstanding */
    begin();
    ncclComm_t *child = &M.group[M.n_groups];
    *child = NULL;
    must("ncclCommSplit", N.CommSplit(M.world, (int)color, (int)place, child, &config), M.world);
    must("ncclCommSplit", ncclInProgress, *child);
    end();
    return M.n_groups++;
}
static void drop(ncclComm_t comm) {
    must("ncclCommFinalize", N.CommFinalize(comm), comm);
    N.CommDestroy(comm);
}
static void ungroup(Engine *e) {
    if (!M.n_groups) return;
    settle(e);
    begin();
    while (M.n_groups) drop(M.group[--M.n_groups]);
    end();
}
static void one_call(const NcclCall *c, const EngineSum *s, cudaStream_t stream) {
    ncclDataType_t type = s->number == ENGINE_F32 ? ncclFloat32 : ncclFloat64;
    ncclRedOp_t op = s->max ? ncclMax : ncclSum;
    size_t n = (size_t)c->count, at = (size_t)c->from * (s->number == ENGINE_F32 ? 4 : 8);
    ncclComm_t comm = M.group[s->group];
    const char *mine = s->mine;
    ncclResult_t r = c->kind == NCCL_ALL_REDUCE
                         ? N.AllReduce(mine, s->out, n, type, op, comm, stream)
                     : c->kind == NCCL_REDUCE_SCATTER
                         ? N.ReduceScatter(mine, s->out, n, type, op, comm, stream)
                         : N.Reduce(mine + at, s->out, n, type, op, (int)c->root, comm, stream);
    must("a sum", r, comm);
}
/* Of blocks in the GPU's memory, on a stream. */
static void sum_here(const EngineSum *s, const NcclCall *calls, int n, cudaStream_t stream) {
    ncclComm_t comm = M.group[s->group];
    must("ncclGroupStart", N.GroupStart(), comm);
    for (int i = 0; i < n; i++) one_call(&calls[i], s, stream);
    must("ncclGroupEnd", N.GroupEnd(), comm);
}
static void sum(Engine *e, const EngineOn *on, const EngineSum *s) {
    size_t es = s->number == ENGINE_F32 ? 4 : 8;
    ncclComm_t comm = M.group[s->group];
    int members, self;
    if (!on) settle(e);
    begin();
    must("ncclCommCount", N.CommCount(comm, &members), comm);
    must("ncclCommUserRank", N.CommUserRank(comm, &self), comm);
    NcclCall *calls = malloc((size_t)members * sizeof *calls);
    if (!calls) fail("out of memory for its calls");
    int n = nccl_calls(s, members, calls);
    size_t give = (size_t)s->n * es, get = (size_t)(s->each ? s->each[self] : s->n) * es;
    if (on) sum_here(s, calls, n, on->stream);
    else {
        EngineSum staged = *s;
        staged.mine = room_for(&M.out, give + 1);
        staged.out = room_for(&M.in, get + 1);
        if (give) to_gpu(M.out.p, s->mine, give);
        sum_here(&staged, calls, n, M.stream);
        finish("a sum", M.stream, comm);
        if (get)
            must_cuda("copy from the GPU",
                      cudaMemcpy(s->out, staged.out, get, cudaMemcpyDeviceToHost));
    }
    free(calls);
    end();
    if (on) leave_open(on->stream, comm);
}

/* ---- begin and end ---- */
static void abort_all(Engine *e, int code) {
    (void)e;
    star_abort(M.star, code);
}
static void close_engine(Engine *e) {
    settle(e);
    ungroup(e);
    begin();
    drop(M.world);
    end();
    cudaStreamDestroy(M.stream);
    cudaFree(M.out.p);
    cudaFree(M.in.p);
    star_close(M.star);
}
/* NCCL where the linker finds it, where SHARDPROOF_NCCL says, or inside a Python package. */
static const char *find_nccl(void) {
    static const char *const inside[] = {
        "$VIRTUAL_ENV/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
        "$CONDA_PREFIX/lib/libnccl.so.2",
        "$CONDA_PREFIX/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
        "$HOME/.local/lib/python3*/site-packages/nvidia/nccl/lib/libnccl.so.2",
        "/usr/local/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
        "/usr/lib/python3*/*-packages/nvidia/nccl/lib/libnccl.so.2",
        "/usr/local/cuda*/lib*/libnccl.so.2",
    };
    const char *named = getenv("SHARDPROOF_NCCL");
    void *lib = dlopen(named && *named ? named : "libnccl.so.2", RTLD_NOW | RTLD_LOCAL);
    if (!lib && named && *named) return "the file that SHARDPROOF_NCCL names cannot be loaded";
    for (size_t i = 0; !lib && i < sizeof inside / sizeof *inside; i++) {
        const char *rest = strchr(inside[i], '/'), *root = "";
        char name[32], pattern[1024];
        if (*inside[i] == '$') {
            snprintf(name, sizeof name, "%.*s", (int)(rest - inside[i]) - 1, inside[i] + 1);
            root = getenv(name);
        }
        if (!root || (*inside[i] == '$' && !*root)) continue;
        snprintf(pattern, sizeof pattern, "%s%s", root, rest);
        glob_t g;
        if (glob(pattern, 0, NULL, &g) == 0) {
            for (size_t k = 0; !lib && k < g.gl_pathc; k++)
                lib = dlopen(g.gl_pathv[k], RTLD_NOW | RTLD_LOCAL);
            globfree(&g);
        }
    }
    if (!lib) return "there is no libnccl.so.2";
    const char *missing = NULL;
#define FIND(name)                                                                                 \
    *(void **)&N.name = dlsym(lib, "nccl" #name);                                                  \
    if (!N.name) missing = "this NCCL is too old: it has no nccl" #name;
    NCCL_FUNCTIONS(FIND)
#undef FIND
    *(void **)&N.GetLastError = dlsym(lib, "ncclGetLastError");
    return missing;
}
/* What a rank says of its machine before NCCL begins. */
typedef struct {
    int64_t lack;   /* an EngineLack; -1: nothing */
    int64_t beside; /* ranks with this GPU, which rank 0 counts */
    char text[TEXT], host[64], bus[32];
} Card;
static Card lacks(EngineLack what, const char *why, const char *more) {
    Card c = {.lack = what, .beside = 1};
    snprintf(c.text, sizeof c.text, "%s%s%s", why, more ? ": " : "", more ? more : "");
    return c;
}
/* CUDA has the same words where there is no driver and where it is older than the plug-in's. */
static Card no_gpu(cudaError_t e) {
    int driver = 0;
    bool old = e == cudaErrorInsufficientDriver && cudaDriverGetVersion(&driver) == cudaSuccess &&
               driver > 0;
    if (old)
        return lacks(ENGINE_NO_GPU,
                     "its driver is older than the CUDA that the plug-in was built with (a newer "
                     "driver, or make CUDA=1 there)",
                     cudaGetErrorString(e));
    return lacks(ENGINE_NO_GPU,
                 e == cudaErrorInsufficientDriver ? "there is no NVIDIA driver on its machine"
                                                  : "there is no GPU that it may use",
                 e == cudaSuccess ? NULL : cudaGetErrorString(e));
}
static Card own_card(int64_t local) {
    int n = 0, version = 0;
    const char *missing = find_nccl();
    cudaError_t e = cudaGetDeviceCount(&n);
    if (e != cudaSuccess || !n) return no_gpu(e);
    if (missing) return lacks(ENGINE_NO_LIBRARY, missing, NULL);
    /* of one: a launcher has chosen it, or it is shared */
    M.e.device = n == 1 ? 0 : (int)(M.host.share ? local % n : local);
    Card c = {.lack = -1, .beside = 1};
    if (M.e.device >= n) {
        snprintf(c.text, sizeof c.text, "it is process %lld of its machine, which has %d GPUs",
                 (long long)local + 1, n);
        c.lack = ENGINE_FEW_GPUS;
        return c;
    }
    e = cudaSetDevice(M.e.device);
    if (e == cudaSuccess) e = cudaStreamCreateWithFlags(&M.stream, cudaStreamNonBlocking);
    if (e == cudaSuccess) e = cudaDeviceGetPCIBusId(c.bus, sizeof c.bus, M.e.device);
    if (e != cudaSuccess)
        return lacks(ENGINE_NO_GPU, "its GPU cannot be used", cudaGetErrorString(e));
    gethostname(c.host, sizeof c.host - 1);
    int mode = 0;
    if (cudaDeviceGetAttribute(&mode, cudaDevAttrComputeMode, M.e.device) == cudaSuccess &&
        M.host.share && mode == cudaComputeModeExclusiveProcess)
        return lacks(ENGINE_NO_GPU, "its GPU is for one process alone", "compute mode");
    N.GetVersion(&version);
    M.version = version;
    snprintf(M.name, sizeof M.name, "NCCL %d.%d.%d", version / 10000, version / 100 % 100,
             version % 100);
    return c;
}
/* On rank 0: is there a rank that lacks something, or has another's GPU? */
static bool judge(Card *all) {
    char text[TEXT];
    for (int64_t r = 0; r < M.e.ranks; r++) {
        if (all[r].lack >= 0) {
            M.host.lacks(M.host.arg, r, (EngineLack)all[r].lack, all[r].text);
            return false;
        }
        for (int64_t k = 0; k < r; k++) {
            if (strcmp(all[r].bus, all[k].bus) != 0 || strcmp(all[r].host, all[k].host) != 0)
                continue;
            all[r].beside = ++all[k].beside; /* the last one has the number of all */
            if (M.host.share) continue;
            snprintf(text, sizeof text, "it has the GPU of rank %lld (%s of %s)", (long long)k,
                     all[r].bus, all[r].host);
            M.host.lacks(M.host.arg, r, ENGINE_FEW_GPUS, text);
            return false;
        }
    }
    return true;
}
static bool have_gpus(int64_t local) {
    Card mine = own_card(local), *all = calloc((size_t)M.e.ranks, sizeof *all);
    EngineItem up = {0, sizeof mine, &mine};
    int64_t good = 1, most = 1;
    if (!all) fail("out of memory");
    if (M.e.rank) star_exchange(M.star, &up, 1, NULL, 0);
    all[0] = mine;
    for (int64_t r = 1; !M.e.rank && r < M.e.ranks; r++)
        star_exchange(M.star, NULL, 0, &(EngineItem){r, sizeof *all, &all[r]}, 1);
    if (!M.e.rank) good = judge(all);
    for (int64_t r = 0; r < M.e.ranks; r++)
        if (all[r].beside > most) most = all[r].beside;
    free(all);
    M.e.sharing = (int)-star_least(M.star, -most);
    return star_least(M.star, good) != 0;
}
/* Several ranks on one GPU: before NCCL looks at its variables, which it does once. Up to 2.30.2 it
 * refuses them within one machine, so each rank is one of its own, whose wire is a socket; where
 * the wire is slow, and each message waits for its turn on the GPU, few large messages are the
 * best. What the user has set stays. */
static void share_gpu(const Place *p) {
    static const char
        *const own_switch[][2] = {{"NCCL_MULTI_RANK_GPU_ENABLE", "1"}},
               *const sockets[][2] = {{"NCCL_NET", "Socket"},     {"NCCL_IB_DISABLE", "1"},
                                      {"NCCL_P2P_DISABLE", "1"},  {"NCCL_SHM_DISABLE", "1"},
                                      {"NCCL_MNNVL_ENABLE", "0"}, {"NCCL_ALGO", "Ring"},
                                      {"NCCL_PROTO", "Simple"}},
               *const here[][2] = {{"NCCL_SOCKET_IFNAME", "lo"}, {"NCCL_SOCKET_FAMILY", "AF_INET"}},
               *const both[][2] = {{"NCCL_NVLS_ENABLE", "0"}, {"NCCL_RAS_ENABLE", "0"}};
    bool has_switch = M.version >= OWN_SWITCH;
    char id[sizeof p->token + 32];
#define SET(list)                                                                                  \
    for (size_t i = 0; i < sizeof list / sizeof *list; i++) setenv(list[i][0], list[i][1], 0)
    SET(both);
    setenv("NCCL_MAX_CTAS", M.e.sharing > 4 ? "2" : "4", 0);
    if (has_switch) SET(own_switch);
    else SET(sockets);
    if (!has_switch && p->beside >= p->ranks) SET(here);
#undef SET
    snprintf(id, sizeof id, "%s-r%lld", p->token, (long long)p->rank);
    if (!has_switch) setenv("NCCL_HOSTID", id, 1);
    unsetenv("CUDA_LAUNCH_BLOCKING");
}
static void join_world(void) {
    ncclConfig_t config = NCCL_CONFIG_INITIALIZER;
    ncclUniqueId id;
    ncclResult_t r = ncclSuccess;
    if (!M.e.rank) r = N.GetUniqueId(&id);
    if (r != ncclSuccess) fail_nccl("ncclGetUniqueId", r);
    EngineItem up = {0, sizeof id, &id};
    if (M.e.rank) star_exchange(M.star, NULL, 0, &up, 1);
    for (int64_t k = 1; !M.e.rank && k < M.e.ranks; k++)
        star_exchange(M.star, &(EngineItem){k, sizeof id, &id}, 1, NULL, 0);
    config.blocking = 0;
    begin();
    r = N.CommInitRankConfig(&M.world, (int)M.e.ranks, id, (int)M.e.rank, &config);
    if (r != ncclSuccess && r != ncclInProgress) fail_nccl("ncclCommInitRankConfig", r);
    must("ncclCommInitRankConfig", ncclInProgress, M.world);
    end();
}
Engine *ENGINE_OPEN(const EngineHost *host) {
    Place p;
    const PlaceLack *lack;
    M.host = *host;
    M.e = (Engine){.name = M.name,
                   .exchange = exchange,
                   .tell = tell,
                   .least = least,
                   .group = group,
                   .ungroup = ungroup,
                   .settle = settle,
                   .sum = sum,
                   .abort = abort_all,
                   .close = close_engine};
    StarOwner owner = {host, ending, NULL, BOOT_FILES};
    M.star = star_open(&owner, &M.e);
    if (!M.star || !place_find(&p, &lack)) return NULL;
    setenv("NCCL_LAUNCH_ORDER_IMPLICIT", "1", 0); /* several communicators on one GPU */
    if (!have_gpus(p.local)) {
        star_close(M.star);
        return NULL;
    }
    if (M.e.sharing > 1) share_gpu(&p);
    join_world();
    return &M.e;
}
